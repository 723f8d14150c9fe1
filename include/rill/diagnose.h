/* rill/diagnose.h: what rill checks, for libraries that check something themselves.
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
