/* The engine of the check of order.  It finds accesses of memory that are not ordered, from the happens-before relation
 * of streams, with vector clocks.
 *
 * The engine knows none of rill's objects.  Streams and events are numbers that are never reused, and memory is ranges
 * of addresses.  The engine is notified of operations in the order in which they happen.  It reports each access that
 * conflicts with an earlier one (at least one of them is a write) if neither is known to come before the other.
 *
 * The following are ordered: the operations of a stream; a wait of a stream, after everything that precedes the record
 * of its event; and what the host has waited for, before everything that any thread submits afterwards, because the
 * engine does not see the locks of the program.  The start of a host call shows the host that the work before it is
 * complete, and its end shows that the call is.
 *
 * Findings are CERTAIN or POSSIBLE.  A finding is possible if one access is vague (an entire allocation that was passed
 * to a kernel), or if something that the engine does not see may have ordered the two accesses:
 *
 * - published: an operation may have shown the host or a kernel the progress of its stream, through memory that the
 *   host can read.  From then on the host may know that the work before it is complete.
 * - gate: an operation before the earlier of the two accesses may be waiting for the host.  It is a host call that has
 *   not ended, or a kernel that can read such memory.  Then the access that was submitted first may run last.  Once the
 *   gate is known to be open, it is known whether the host had seen the other access complete by then, so the finding
 *   is kept until that time.
 * - signal: two kernels, neither of which comes before the other, use the same bytes atomically, or one polls what the
 *   other writes, so one may have waited for the other.  Such accesses do not conflict, and everything submitted so far
 *   may be known to everything that follows.  A kernel that polls while later work is submitted is a gate that this
 *   work may open.
 *
 * A touch is a remembered access.  An earlier touch is dropped if a later touch is ordered after it, conflicts with
 * every access that the earlier one conflicts with, and is no vaguer: an access that is not ordered after the earlier
 * touch is then not ordered after the later one either.  So an interval has at most a few touches of each stream, and
 * an operation is reported if and only if it conflicts with some operation before it.  A touch that the host has waited
 * for is also dropped, because everything that follows is ordered after it.
 *
 * A lock of the caller guards the engine.  If there is no host memory, the engine forgets everything and reports
 * nothing.
 */
#ifndef RILL_CORE_ORDER_ENGINE_H
#define RILL_CORE_ORDER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rill__order;

/* The description of an operation in a report.  Created by the caller with one reference. */
struct rill__order_op {
  uint32_t references;
  uint32_t tag;     /* for the caller's use */
  const char *what; /* static text, such as "copy" */
  uint64_t size;    /* in bytes; 0 if not reported */
  uint64_t stream;  /* number of the stream, for a stream without a label; 0 for the host */
  char label[48];   /* label of the stream */
  char name[64];    /* name of a kernel, or the user's name for the operation */
};

/* Returns NULL if there is no host memory. */
struct rill__order_op *rill__order_op_new(void);
void rill__order_op_unref(struct rill__order_op *op);

enum rill__touch_kind {
  RILL__TOUCH_USE,
  /* allocation in the order of a stream: treated as a write; a free does not have to come after it */
  RILL__TOUCH_ALLOCATE,
  RILL__TOUCH_FREE /* also treated as a write; leaves a mark until the memory is allocated again */
};

struct rill__order_range {
  uintptr_t begin;
  size_t size; /* > 0, within the address space */
  bool write;
  bool vague;   /* the range may be accessed only partly or not at all */
  bool freed;   /* the memory is not allocated: a use is reported even if it is ordered after the free */
  bool passing; /* the access is complete when the submitting call returns, so nothing later can race with it */
  uint8_t how;  /* RILL__ACCESSED_* for a kernel that reports its accesses; 0: as `write` says */
};

/* Effects that an operation may have besides its accesses. */
enum {
  RILL__ORDER_PUBLISHES = 1,         /* show the progress of its stream, including itself */
  RILL__ORDER_POLLS = 2,             /* wait for the host */
  RILL__ORDER_PUBLISHES_EARLIER = 4, /* show that everything before it is complete */
  RILL__ORDER_FOLLOWS = 8,           /* it is part of the operation before it, and publishes if that operation did */
  RILL__ORDER_IS_SIGNALED = 16       /* wait for work that was submitted after it */
};

struct rill__order_finding {
  const struct rill__order_op *earlier, *later; /* earlier is NULL for a free that is no longer known */
  enum rill__touch_kind earlier_kind, later_kind;
  bool earlier_write, later_write;
  bool certain, after_free;
  uintptr_t begin; /* bytes that both operations access, or some of them */
  size_t size;
};
typedef void rill__order_report_fn(void *user, const struct rill__order_finding *finding);

/* The size of the engine's data, which is bounded by the work that is not known to be complete, and by
 * RILL__ORDER_INTERVALS. */
struct rill__order_size {
  size_t timelines, events, intervals, touches, bytes;
};
enum { RILL__ORDER_INTERVALS = 1 << 20 };

/* Returns NULL if there is no host memory. */
struct rill__order *rill__order_new(rill__order_report_fn *report, void *user);
void rill__order_free(struct rill__order *order);
struct rill__order_size rill__order_measure(const struct rill__order *order);

/* ---- streams; an unknown stream begins with its first operation ---- */

/* Begins a stream.  `group`: the device, for rill__order_host_wait_groups. */
void rill__order_begin(struct rill__order *order, uint64_t stream, uint32_t group);
void rill__order_end(struct rill__order *order, uint64_t stream); /* nothing more is submitted to the stream */

/* Keeps a reference to the operation as long as necessary. */
void rill__order_submit(struct rill__order *order, uint64_t stream, struct rill__order_op *op,
                        enum rill__touch_kind kind, uint32_t flags, const struct rill__order_range *ranges,
                        size_t count);

void rill__order_record(struct rill__order *order, uint64_t stream, uint64_t event);
/* does nothing if the event was not recorded */
void rill__order_wait(struct rill__order *order, uint64_t stream, uint64_t event);
void rill__order_forget_event(struct rill__order *order, uint64_t event);

/* ---- the host ---- */

void rill__order_host_wait_stream(struct rill__order *order, uint64_t stream);
void rill__order_host_wait_event(struct rill__order *order, uint64_t event);
/* Waits for all groups that equal `group` in the bits of `mask`. */
void rill__order_host_wait_groups(struct rill__order *order, uint32_t group, uint32_t mask);

/* Note that a host call is submitted to a stream, starts, and ends.  Submitting returns a number that identifies the
 * call; 0 if there is none. */
uint64_t rill__order_call_submit(struct rill__order *order, uint64_t stream);
void rill__order_call_start(struct rill__order *order, uint64_t call);
void rill__order_call_end(struct rill__order *order, uint64_t call);

/* Notes that the host accesses memory now. */
void rill__order_host_access(struct rill__order *order, struct rill__order_op *op,
                             const struct rill__order_range *range);

/* Notes that the host frees memory now, which is then forgotten. */
void rill__order_host_free(struct rill__order *order, struct rill__order_op *op, const struct rill__order_range *range);

/* ---- memory ---- */

/* Forgets memory that is new, or that nobody owns any more. */
void rill__order_forget(struct rill__order *order, uintptr_t begin, size_t size);

/* Treats all memory as new. */
void rill__order_forget_all(struct rill__order *order);

/* Notes that a free of the memory will itself wait for everything submitted to the stream so far. */
void rill__order_keep(struct rill__order *order, uint64_t stream, uintptr_t begin, size_t size);

#endif
