/* The host calls that are running, with their stream and start time, for reports.
 *
 * Host calls mostly run on threads of a driver, so their places are not in the records of threads.  A thread searches
 * for a free place starting at one that depends on the thread, so each thread usually finds its own place, which is in
 * no other processor's cache.  A call that finds no free place is not reported.
 *
 * Invariants
 * - `owner` is the thread that has taken the place, by compare-and-swap from 0.  Only that thread writes the other
 *   words, and sets `owner` to 0 after its call.
 * - `number` is set to an even value before the other words are stored, and to an odd one after they have been stored.
 *   So a reader that finds the same odd number before and after reading the words has the words of one call.
 */
#ifndef RILL_CORE_DIAGNOSE_CALLS_H
#define RILL_CORE_DIAGNOSE_CALLS_H

#include "core/object/core.h"

struct rill__host_call_seen {
  uint64_t stream; /* id of the stream; 0 for a host call of a graph */
  uint64_t fn;     /* address of the function */
  uint64_t since;  /* time as returned by rill__now (core/diagnose/waits.h) */
};

/* Sets the function of the call that the thread is running, if it differs from the one that the backend received. */
void rill__call_is_of(rill_host_fn fn);

/* Returns the call that the thread is running; false if there is none.  May be called by a signal handler. */
bool rill__call_own(struct rill__host_call_seen *out);

/* Names of functions.  rill__function_name returns the file and the address for addr2line, and waits for no thread that
 * is loading a library, so reports of hangs may call it.  rill__function_symbol returns the symbol of a function that
 * the program exports, and otherwise the same. */
struct rill__function_name {
  char text[160];
};
uint64_t rill__function_address(rill_host_fn fn);
struct rill__function_name rill__function_name(uint64_t address);
struct rill__function_name rill__function_symbol(uint64_t address);

/* Returns the call running in a place, from 0 to RILL__CALL_PLACES - 1; false if there is none. */
enum { RILL__CALL_PLACES = 64 };
bool rill__call_at(size_t place, struct rill__host_call_seen *out);

/* Frees all places in the child of a fork, in which the other threads do not exist. */
void rill__calls_after_fork(void);

#endif
