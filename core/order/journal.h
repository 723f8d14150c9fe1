/* A journal of the calls to the engine (core/order/engine.h), for kernels whose accesses are known only after they have
 * run.
 *
 * The engine compares an operation with earlier ones when the call for it is made, so it has to know by then which
 * bytes a kernel accesses.  Calls made while an earlier kernel is running are stored here, and are made in the same
 * order once that kernel has reported its accesses.  So the engine finds what it would have found if everything had
 * been known at once, only later.  If there are no such kernels, every call is made immediately.
 *
 * A lock of the caller guards a journal, as it does the engine.
 */
#ifndef RILL_CORE_ORDER_JOURNAL_H
#define RILL_CORE_ORDER_JOURNAL_H

#include "core/backend.h"
#include "core/order/engine.h"

struct rill__journal;

/* Returns NULL if there is no host memory. */
struct rill__journal *rill__journal_new(rill__order_report_fn *report, void *user);
void rill__journal_free(struct rill__journal *journal);

/* Forward to the functions of the engine with the same names, at once or later. */
void rill__journal_begin(struct rill__journal *journal, uint64_t stream, uint32_t group);
void rill__journal_end(struct rill__journal *journal, uint64_t stream);
void rill__journal_record(struct rill__journal *journal, uint64_t stream, uint64_t event);
void rill__journal_wait(struct rill__journal *journal, uint64_t stream, uint64_t event);
void rill__journal_forget_event(struct rill__journal *journal, uint64_t event);
void rill__journal_host_wait_stream(struct rill__journal *journal, uint64_t stream);
void rill__journal_host_wait_event(struct rill__journal *journal, uint64_t event);
void rill__journal_host_wait_groups(struct rill__journal *journal, uint32_t group, uint32_t mask);
void rill__journal_host_access(struct rill__journal *journal, struct rill__order_op *op,
                               const struct rill__order_range *range);
void rill__journal_host_free(struct rill__journal *journal, struct rill__order_op *op,
                             const struct rill__order_range *range);
void rill__journal_forget(struct rill__journal *journal, uintptr_t begin, size_t size);
void rill__journal_forget_all(struct rill__journal *journal);
void rill__journal_keep(struct rill__journal *journal, uint64_t stream, uintptr_t begin, size_t size);

/* Submits an operation.  `token`: the token of a kernel that is going to report its accesses; 0: `ranges` are the
 * accesses of the operation. The ranges of a kernel are used if it accesses too much to report. */
void rill__journal_submit(struct rill__journal *journal, uint64_t stream, struct rill__order_op *op,
                          enum rill__touch_kind kind, uint32_t flags, const struct rill__order_range *ranges,
                          size_t count, uint64_t token);

/* Note a host call, under a unique number. */
void rill__journal_call_submit(struct rill__journal *journal, uint64_t stream, uint64_t call);
void rill__journal_call_start(struct rill__journal *journal, uint64_t call);
void rill__journal_call_end(struct rill__journal *journal, uint64_t call);

/* Reports the accesses of a kernel; `flags`: the RILL__ORDER_* that follow from them.  Does nothing if no kernel with
 * the token is awaited. */
void rill__journal_accessed(struct rill__journal *journal, uint64_t token, const struct rill__order_range *ranges,
                            size_t count, uint32_t flags);

/* Stops waiting for a kernel's accesses; the ranges that it was submitted with are used. */
void rill__journal_stop_waiting(struct rill__journal *journal, uint64_t token);

/* Returns true if a kernel with the token is awaited.  `label`: its name. */
bool rill__journal_awaits(const struct rill__journal *journal, uint64_t token, const char **label);

/* Drops the waiting notes and treats all memory as new, for the child of a fork. */
void rill__journal_clear(struct rill__journal *journal);

/* Limit on the size of the waiting notes in bytes.  If it is exceeded, the journal stops waiting for the kernels in
 * progress, and rill__journal_was_full returns true once. */
enum { RILL__JOURNAL_BYTES = 64 << 20 };
bool rill__journal_was_full(struct rill__journal *journal);

#endif
