/* rill/diagnose.h: reports of what streams are doing, and the checks of RILL_CHECK.
 *
 *     char text[4096];
 *     size_t size = sizeof text;
 *     if (rill_stream_synchronize_for(stream, limit) == RILL_ERROR_TIMEOUT &&
 *         rill_device_explain(device, text, &size) == RILL_OK) ... print text
 *
 * The environment variable RILL_CHECK is a list of checks, such as "comm,memory". rill reads it once, when a program
 * first uses a device, and reports unknown words on standard error.
 *
 *     if (rill_check_is_on("comm")) ... compare what the ranks do
 *
 * Pitfall: changing RILL_CHECK after the first use of a device has no effect.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DIAGNOSE_H
#define RILL_DIAGNOSE_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Writes a report of what the stream is doing: the operations in the flight recorder (the last operations of each
 *  thread) that may be incomplete, the event that holds the stream, and which threads wait for the stream and since
 *  when. On entry `*size` is the capacity of `text` in bytes; on return it is the size of the whole report, including
 *  the final 0. A report that is too long is truncated. `text` may be NULL if `*size` is 0. The wording may change
 *  between versions.
 *
 *  Never blocks. Works while other threads wait, after a time-out, and on a lost device.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_explain(rill_stream stream, char *text, size_t *size);

/** Writes a report like rill_stream_explain for all streams of the device that may have work, and for all threads
 *  that wait for the device, its streams or its events.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_device_explain(rill_device device, char *text, size_t *size);

/** Returns whether the environment variable RILL_CHECK lists `name`. False for an unknown name and in set-user-id
 *  programs.
 *
 *  Errors:  none; false if `name` is NULL.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD bool rill_check_is_on(const char *name);

/** A group of similar objects or allocations that have not been released. */
typedef struct rill_leak {
  char what[32];   /**< "device memory", "pinned memory", "registered memory", "stream", "event", "graph", ... */
  char label[64];  /**< "" if there is none; for pool memory, the label of the pool */
  uint64_t bytes;  /**< size of one allocation; 0 for other objects */
  uint64_t count;  /**< number of objects with equal fields that were created by the same call stack */
  char where[640]; /**< this call stack, innermost first, one per line: "module+0xoffset (function+0xoffset)" */
} rill_leak;

/** Lists the objects of a device that the program has not released: memory, streams, events, modules, kernels, pools,
 *  graphs and execution objects. Needs RILL_CHECK=memory. On entry `*count` is the capacity of `leaks`; on return it
 *  is the number of leaks, which may be larger. `leaks` may be NULL if `*count` is 0.
 *
 *  The list excludes borrowed handles, internal objects of rill, and memory that was allocated in a capture, which is
 *  freed with its graph. At exit the same list is written to standard error.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (RILL_CHECK does not list memory), OUT_OF_MEMORY.
 *  Like:    compute-sanitizer --leak-check full, LeakSanitizer. */
RILL_API RILL_NODISCARD rill_status rill_device_get_leaks(rill_device device, rill_leak *leaks, size_t *count);

/** Describes an operation of other code for reports and traces. Such an operation was submitted by a library through
 *  the stream's native handle, or run by the host on behalf of the stream. Strings are copied. */
typedef struct rill_stream_note {
  size_t struct_size;
  const char *name;  /**< name of the operation, such as "all_reduce"; rill keeps each distinct name, so use few */
  const char *group; /**< group of the operation, such as the label of a communicator; NULL: none */
  uint64_t number;   /**< number of the operation within the group, from 1 */
  uint64_t bytes;    /**< bytes that this process sends or receives */
  uint32_t rank;     /**< rank of this process in the group */
  uint32_t ranks;    /**< number of ranks in the group; 0: none */
} rill_stream_note;
#define RILL_STREAM_NOTE_INIT \
  { sizeof(rill_stream_note), NULL, NULL, 0, 0, 0, 0 }
/** A note expression for C and C++. */
#define RILL_STREAM_NOTE(...) RILL_OPTIONS_(rill_stream_note, __VA_ARGS__)

/** Notes that other code is about to submit an operation to the stream. Reports list it among the stream's
 * operations, and a trace shows it from here to rill_stream_note_end. rill_comm notes its own operations.
 *
 * Costs a few nanoseconds. Has no effect on a stream that is held or capturing.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (note, its name, a rank that is not below ranks).
 *  Threads: any; if several threads note and submit at the same time, the order of the notes may differ from that of
 *           the operations.
 *  Like:    nvtxRangePushEx, which marks only time on the host. */
RILL_API RILL_NODISCARD rill_status rill_stream_note_begin(rill_stream stream, const rill_stream_note *note);

/** Notes that the operation of the last open rill_stream_note_begin has been submitted.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API rill_status rill_stream_note_end(rill_stream stream);

/** Adds to the trace an operation that the host ran on behalf of the stream. The times are in nanoseconds of
 *  CLOCK_MONOTONIC. Has no effect if no trace is running.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (as for rill_stream_note_begin; the end precedes
 *           the beginning).
 *  Like:    nothing. */
RILL_API rill_status rill_stream_note_ran(rill_stream stream, const rill_stream_note *note, uint64_t begin_ns,
                                          uint64_t end_ns);

RILL_EXTERN_C_END

#endif
