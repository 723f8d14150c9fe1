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

RILL_EXTERN_C_END

#endif
