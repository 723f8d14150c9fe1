/* The calls of the engine (core/order/engine.h) in order, with kernels whose accesses are known only after they have
 * run.
 *
 * The engine compares an operation with earlier ones at the call for it, so it has to know by then which bytes a kernel
 * accesses.  Calls that are made while an earlier kernel is under way are kept here, and are made in the same order as
 * soon as that kernel has reported its accesses.  The engine therefore finds what it would have found if everything had
 * been known at once, only later.  Without such kernels every call is made at once.
 *
 * A caller's lock guards a journal, as it does the engine. */
#ifndef RILL_CORE_ORDER_JOURNAL_H
#define RILL_CORE_ORDER_JOURNAL_H

#include "core/backend.h"
#include "core/order/engine.h"

struct rill__journal;

/* NULL without host memory. */
struct rill__journal *rill__journal_new(rill__order_report_fn *report, void *user);
void rill__journal_free(struct rill__journal *journal);

/* The functions of the engine, by their names. */
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

/* `token`: of a kernel that is going to report its accesses; 0: `ranges` are what the operation accesses.  The ranges
 * of a kernel count if it accesses too much to report. */
void rill__journal_submit(struct rill__journal *journal, uint64_t stream, struct rill__order_op *op,
                          enum rill__touch_kind kind, uint32_t flags, const struct rill__order_range *ranges,
                          size_t count, uint64_t token);

/* A host call, under a number that no other one has. */
void rill__journal_call_submit(struct rill__journal *journal, uint64_t stream, uint64_t call);
void rill__journal_call_start(struct rill__journal *journal, uint64_t call);
void rill__journal_call_end(struct rill__journal *journal, uint64_t call);

/* What the kernel accessed; `flags`: RILL__ORDER_* for that.  Nothing happens if nothing waits for the token. */
void rill__journal_accessed(struct rill__journal *journal, uint64_t token, const struct rill__order_range *ranges,
                            size_t count, uint32_t flags);

/* The kernel's accesses are not going to be known: those that it was submitted with count. */
void rill__journal_give_up(struct rill__journal *journal, uint64_t token);

/* Whether anything waits for the token.  `label`: of the kernel, if it does. */
bool rill__journal_awaits(const struct rill__journal *journal, uint64_t token, const char **label);

/* What waits is dropped, and all memory is as if it were new: for the child of a fork. */
void rill__journal_clear(struct rill__journal *journal);

/* Bytes that wait at most.  Past them the kernels that are under way are given up.  True once after that. */
enum { RILL__JOURNAL_BYTES = 64 << 20 };
bool rill__journal_was_full(struct rill__journal *journal);

#endif
