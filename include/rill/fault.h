/* rill/fault.h: makes backend calls fail on purpose, to test how a program handles failures.
 *
 *     rill_fault_set("alloc:3=out_of_memory");       // the third allocation from now fails
 *     run_the_part_that_is_tested();
 *     if (rill_fault_count() == 0) ... it makes fewer than three allocations
 *     rill_fault_clear();
 *
 * RILL_FAULT in the environment sets rules for a whole program. Rules work on every backend, including GPUs: a call
 * that fails by a rule does not reach the driver, and rill handles the failure like one that the driver returned. The
 * error text says that the fault was injected, by which rule, and in which call.
 *
 * Rules are separated by commas. The first matching rule applies:
 *
 *     CALL:N=STATUS          call number N fails, once
 *     CALL:N+=STATUS         call number N and all later calls
 *     CALL:p=X=STATUS        each call, with probability X from 0 to 1
 *     CALL@LABEL:...         calls for an object, launch or kernel with this name, or for a device ("cuda:0")
 *     seed=S                 seed of the probabilities; 1 by default
 *
 * CALL is alloc, copy, launch, record, synchronize or another word listed in docs/reference/ERRORS.md, or any. STATUS
 * is the name of a status in lower case without RILL_ERROR_; the default is backend. device_lost makes the device
 * permanently unusable; a GPU first finishes its work, because no work may use the memory of a lost device.
 *
 * Pitfall: N counts backend calls, not calls of rill's functions. A pool allocates rarely and retries after a
 * failure, held work and graphs reach the driver later, and rill does not query work that it knows to be complete.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_FAULT_H
#define RILL_FAULT_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Replaces all rules, including those of RILL_FAULT, and resets their counts. "" means no rules. On failure the
 *  rules do not change. There can be 32 rules; a label has up to 63 bytes and no comma.
 *
 *  Errors:  INVALID_ARGUMENT (NULL, or a syntax error: the text has its position).
 *  Threads: any; rules and counts belong to the process. Concurrent calls use either the old or the new rules.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_fault_set(const char *rules);

/** Removes all rules, including those of RILL_FAULT. Does not change the result of rill_fault_count.
 *
 *  Errors:  none.
 *  Like:    nothing. */
RILL_API void rill_fault_clear(void);

/** Returns the number of calls that rules have made fail since rill_fault_set.
 *
 *  Errors:  none.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD uint64_t rill_fault_count(void);

/** Counts one call, named `word`, of a library that is built on rill, and returns whether a rule makes it fail.
 * `label`, for example a rank, is compared with the text after "@" in a rule. It may be NULL. `*value` is set to the
 * number or the time in ns after "=" in the rule, or to 0 if there is none. The words are comm_late, comm_die and
 * comm_count, for rill_comm.
 *
 *  Errors:  none; false and 0 if `word` is NULL or unknown. `value` may be NULL.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD bool rill_fault_is_due(const char *word, const char *label, int64_t *value);

RILL_EXTERN_C_END

#endif
