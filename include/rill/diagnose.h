/* rill/diagnose.h: what streams are doing, for a program that hangs, and what rill checks.
 *
 *     char text[4096];
 *     size_t size = sizeof text;
 *     if (rill_stream_synchronize_for(stream, limit) == RILL_ERROR_TIMEOUT &&
 *         rill_device_explain(device, text, &size) == RILL_OK) ... print text
 *
 * RILL_CHECK in the environment is a list of checks, such as "comm,memory".  rill reads it once, when a program first
 * asks for a device, and names a word that it does not know on standard error.
 *
 *     if (rill_check_is_on("comm")) ... compare what the ranks do
 *
 * The thing people get wrong: a change of RILL_CHECK after the first device has been asked for has no effect.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DIAGNOSE_H
#define RILL_DIAGNOSE_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Describes what the stream is doing, in lines for people: its operations that are not known to be complete, as far as
 *  the flight recorder has them, what it waits for if it is held, and which threads wait for it and since when.
 *  `*size` is how many bytes `text` has room for, and becomes how many there are, the final 0 among them; as many as
 *  there is room for are written, the last a 0.  `text` may be NULL if `*size` is 0.  The wording may change.
 *
 *  Never blocks; works while other threads wait, after a time-out, and on a lost device.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_explain(rill_stream stream, char *text, size_t *size);

/** The same for all streams of the device that may have work, and all threads that wait for one of its streams, events
 *  or for itself.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_device_explain(rill_device device, char *text, size_t *size);

/** Returns whether RILL_CHECK in the environment lists `name`; false for a name that is no check, and in a set-user-id
 *  program.
 *
 *  Errors:  none; false if `name` is NULL.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD bool rill_check_is_on(const char *name);

/** Objects or allocations that are alike and still alive. */
typedef struct rill_leak {
  char what[32];   /**< "device memory", "pinned memory", "registered memory", "stream", "event", "graph", ... */
  char label[64];  /**< "" if there is none; of a pool's memory the pool's */
  uint64_t bytes;  /**< of one allocation; 0 of what is no memory */
  uint64_t count;  /**< how many are alike: these fields and the calls that made them are the same */
  char where[640]; /**< those calls, the innermost first: "module+0xoffset (function+0xoffset)", one a line */
} rill_leak;

/** Lists what the program has made on a device and not released: memory, streams, events, modules, kernels, pools,
 *  graphs and execution objects.  Needs RILL_CHECK=memory.  `*count` is how many `leaks` has room for, and becomes how
 *  many there are; as many as there is room for are written.  `leaks` may be NULL if `*count` is 0.
 *
 *  Borrowed handles and what rill keeps for itself are not in it, nor is memory that was allocated in a capture, which
 *  goes with its graph.  At exit the same list is written to standard error.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (RILL_CHECK does not ask for it), OUT_OF_MEMORY.
 *  Like:    no vendor's call; compute-sanitizer --leak-check full, LeakSanitizer. */
RILL_API RILL_NODISCARD rill_status rill_device_get_leaks(rill_device device, rill_leak *leaks, size_t *count);

/** What other code gives to a stream, for reports and traces: an operation of a library that works on the stream's
 * native handle, or that the host does in the stream's place.  The texts are copied. */
typedef struct rill_stream_note {
  size_t struct_size;
  const char *name;  /**< of the operation, such as "all_reduce"; one of few, since each is kept */
  const char *group; /**< whose operation it is, such as the label of a communicator; NULL: none */
  uint64_t number;   /**< of the operation among those of the group, from 1 on */
  uint64_t bytes;    /**< that this process gives or gets */
  uint32_t rank;     /**< of this process in the group ... */
  uint32_t ranks;    /**< ... which has so many; 0: it has no ranks */
} rill_stream_note;
#define RILL_STREAM_NOTE_INIT \
  { sizeof(rill_stream_note), NULL, NULL, 0, 0, 0, 0 }
/** A note in place, in C and C++. */
#define RILL_STREAM_NOTE(...) RILL_OPTIONS_(rill_stream_note, __VA_ARGS__)

/** Notes that other code is about to give an operation to the stream.  Reports name it among the stream's operations,
 * and a trace shows it from here to rill_stream_note_end.  rill_comm notes its operations by itself.
 *
 *  Does nothing on a stream that is held or captures, and nothing but a note otherwise: it costs some nanoseconds.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (note, its name, a rank that is not below ranks).
 *  Threads: any; what is noted and given by several threads at once may be noted in another order.
 *  Like:    no vendor's call; nvtxRangePushEx, for the time on the host alone. */
RILL_API RILL_NODISCARD rill_status rill_stream_note_begin(rill_stream stream, const rill_stream_note *note);

/** Notes that the operation has been given to the stream which was noted last and has not been ended.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    no vendor's call. */
RILL_API rill_status rill_stream_note_end(rill_stream stream);

/** Notes an operation that the host has done in the stream's place, from one time of CLOCK_MONOTONIC to another one, in
 *  nanoseconds: a trace shows it there.  Nothing happens without a trace.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (as rill_stream_note_begin; it ends before it begins).
 *  Like:    no vendor's call. */
RILL_API rill_status rill_stream_note_ran(rill_stream stream, const rill_stream_note *note, uint64_t begin_ns,
                                          uint64_t end_ns);

RILL_EXTERN_C_END

#endif
