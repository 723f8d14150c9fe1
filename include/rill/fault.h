/* rill/fault.h: makes calls of a backend fail on purpose, to test what a program does then.
 *
 *     rill_fault_set("alloc:3=out_of_memory");       // the third allocation from now on fails
 *     run_the_part_that_is_tested();
 *     if (rill_fault_count() == 0) ... it makes fewer than three
 *     rill_fault_clear();
 *
 * RILL_FAULT in the environment has the same rules for a whole program.  They work on every backend, GPUs included: the
 * driver hears nothing of a call that fails so, and rill does what it does when the driver refuses one.  The text of
 * the error says that it was injected, by which rule, and which call it was.
 *
 * Rules are separated by commas, and the first that a call meets counts:
 *
 *     CALL:N=STATUS          call number N fails, once
 *     CALL:N+=STATUS         call number N and all after it
 *     CALL:p=X=STATUS        each with probability X from 0 to 1
 *     CALL@LABEL:...         calls that concern an object, a launch or a kernel of this name, or a device ("cuda:0")
 *     seed=S                 what the probabilities start from; 1 unless given
 *
 * CALL is alloc, copy, launch, record, synchronize and so on, or any (docs/reference/ERRORS.md has the list), STATUS the name of
 * a status in small letters without RILL_ERROR_; without "=STATUS" it is backend.  device_lost loses the device for
 * good; a GPU finishes first what it has, since no work uses the memory of a lost device any more.
 *
 * What people get wrong: N counts calls of the backend, not of rill's functions.  A pool allocates rarely and tries
 * again after a failure, work of held streams and graphs reaches the driver later, and rill remembers what is complete.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_FAULT_H
#define RILL_FAULT_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Replaces all rules, those of RILL_FAULT included, and counts from 0.  "" is no rules.  On failure the rules stay as
 *  they were.  There may be 32 rules; a label has up to 63 bytes and no comma.
 *
 *  Errors:  INVALID_ARGUMENT (NULL, or what cannot be understood: the text says at which character).
 *  Threads: any; the rules and their counts are those of the process.  Threads that make calls meanwhile meet the old
 *           rules or the new ones.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_fault_set(const char *rules);

/** Removes all rules, those of RILL_FAULT included: no call fails any more.  What rill_fault_count returns stays.
 *
 *  Errors:  none.
 *  Like:    nothing. */
RILL_API void rill_fault_clear(void);

/** Returns how many calls have failed by the rules since they were set.
 *
 *  Errors:  none.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD uint64_t rill_fault_count(void);

/** For libraries over rill: whether the next event named `word` is to go wrong, which this call counts as one.  `label`
 * is what a rule may have after "@", such as a rank; NULL: nothing.  `*value` becomes what the rule has after "=": a
 * time in ns or a number; 0 if there is nothing.  The words are comm_late, comm_die and comm_count, of rill_comm.
 *
 *  Errors:  none; false and 0 if `word` is NULL or none of these.  `value` may be NULL.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD bool rill_fault_is_due(const char *word, const char *label, int64_t *value);

RILL_EXTERN_C_END

#endif
