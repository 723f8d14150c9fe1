/* Which accesses of memory are not ordered: happens-before of streams by vector clocks.
 *
 * The engine knows no objects of rill.  Streams and events are numbers that are never used again; memory is ranges of
 * addresses.  It is notified of what happens, in that order, and reports each access that conflicts with an
 * earlier one, at least one of the two being a write, if neither is known to come before the other.
 *
 * What orders: the operations of a stream; a wait of a stream, after all that the event's record comes after; what the
 * host has waited for, before all that is submitted from then on by any thread, since the engine sees no locks of the
 * program.  A host call's start shows the host what comes before it, and its end the call.
 *
 * Findings are CERTAIN or POSSIBLE.  They are possible where one access is vague (a whole allocation that a kernel was
 * given), or where something that the engine does not see may have ordered the two:
 *
 *   published  an operation may have shown the host or a kernel how far its stream is, through memory that the host can
 *              read.  What comes before it is perhaps known to the host from then on.
 *   gate       an operation before the earlier of the two accesses may be waiting for the host: a host call that has
 *              not ended, or a kernel that can read such memory.  Then the access that was submitted first may run
 *              last.  When the gate is known to be open, it is known whether the host had seen the other one by then,
 *              so such a finding waits for that.
 *
 *   signal     two kernels, of which neither comes before the other, use the same bytes atomically, or one polls what
 *              the other writes: one may have waited for the other.  Such accesses are no conflict, and all that has
 *              been submitted by then is perhaps known to all that follows.  A kernel that polls while later work is
 *              submitted is a gate that this work may open.
 *
 * Which touches are kept.  A touch goes when a later one comes after it that conflicts with all that it would conflict
 * with, and is no vaguer: then whatever is not ordered after the former is not ordered after the latter.  So an
 * interval has at most a few of each stream, and an operation is reported exactly if it conflicts with any before it.
 * A touch that the host has waited for also goes, since all that comes is ordered after it.
 *
 * A caller's lock guards all of an engine.  Without host memory it forgets all that it knows and is silent. */
#ifndef RILL_CORE_ORDER_ENGINE_H
#define RILL_CORE_ORDER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rill__order;

/* What a report says of an operation.  Made by the caller with one reference. */
struct rill__order_op {
  uint32_t references;
  uint32_t tag;     /* the caller's */
  const char *what; /* "copy": static */
  uint64_t size;    /* bytes; 0: not said */
  uint64_t stream;  /* the number, for one without a label; 0: the host */
  char label[48];   /* of the stream */
  char name[64];    /* of a kernel, or what the user calls it */
};

/* NULL without host memory. */
struct rill__order_op *rill__order_op_new(void);
void rill__order_op_unref(struct rill__order_op *op);

enum rill__touch_kind {
  RILL__TOUCH_USE,
  RILL__TOUCH_ALLOCATE, /* of memory in the order of a stream: writes it, as it were; a free need not come after it */
  RILL__TOUCH_FREE      /* writes it too, and leaves a mark until it is allocated again */
};

struct rill__order_range {
  uintptr_t begin;
  size_t size; /* > 0, within the address space */
  bool write;
  bool vague;   /* perhaps it is not accessed, or not all of it */
  bool freed;   /* the memory is not allocated: a use is reported even if it is ordered after the free */
  bool passing; /* the access is complete when the call returns that submits it, so nothing can race with it later */
  uint8_t how;  /* RILL__ACCESSED_* of a kernel that reports its accesses; 0: as `write` says */
};

/* What an operation may do besides its accesses. */
enum {
  RILL__ORDER_PUBLISHES = 1,         /* tell how far its stream is, itself included */
  RILL__ORDER_POLLS = 2,             /* wait for the host */
  RILL__ORDER_PUBLISHES_EARLIER = 4, /* tell that what comes before it is done */
  RILL__ORDER_FOLLOWS = 8,           /* it is part of the operation before it, and tells if that did */
  RILL__ORDER_IS_SIGNALED = 16       /* wait for work that was submitted after it */
};

struct rill__order_finding {
  const struct rill__order_op *earlier, *later; /* earlier NULL: a free that is not known any more */
  enum rill__touch_kind earlier_kind, later_kind;
  bool earlier_write, later_write;
  bool certain, after_free;
  uintptr_t begin; /* bytes that both access, or some of them */
  size_t size;
};
typedef void rill__order_report_fn(void *user, const struct rill__order_finding *finding);

/* Work that has been put in: bounded by what is not known to be complete, and by `RILL__ORDER_INTERVALS`. */
struct rill__order_size {
  size_t timelines, events, intervals, touches, bytes;
};
enum { RILL__ORDER_INTERVALS = 1 << 20 };

/* NULL without host memory. */
struct rill__order *rill__order_new(rill__order_report_fn *report, void *user);
void rill__order_free(struct rill__order *order);
struct rill__order_size rill__order_measure(const struct rill__order *order);

/* ---- streams; a stream that is not known is begun by its first operation ---- */

/* `group`: the device, for rill__order_host_wait_groups. */
void rill__order_begin(struct rill__order *order, uint64_t stream, uint32_t group);
void rill__order_end(struct rill__order *order, uint64_t stream); /* nothing is submitted to it any more */

/* Keeps a reference to the operation as long as it needs it. */
void rill__order_submit(struct rill__order *order, uint64_t stream, struct rill__order_op *op,
                        enum rill__touch_kind kind, uint32_t flags, const struct rill__order_range *ranges,
                        size_t count);

void rill__order_record(struct rill__order *order, uint64_t stream, uint64_t event);
void rill__order_wait(struct rill__order *order, uint64_t stream, uint64_t event); /* not recorded: nothing happens */
void rill__order_forget_event(struct rill__order *order, uint64_t event);

/* ---- the host ---- */

void rill__order_host_wait_stream(struct rill__order *order, uint64_t stream);
void rill__order_host_wait_event(struct rill__order *order, uint64_t event);
/* All groups that are `group` in the bits of `mask`. */
void rill__order_host_wait_groups(struct rill__order *order, uint32_t group, uint32_t mask);

/* A host call is submitted to a stream, starts and ends.  The number that submit returns is its name; 0: none. */
uint64_t rill__order_call_submit(struct rill__order *order, uint64_t stream);
void rill__order_call_start(struct rill__order *order, uint64_t call);
void rill__order_call_end(struct rill__order *order, uint64_t call);

/* The host accesses memory now. */
void rill__order_host_access(struct rill__order *order, struct rill__order_op *op,
                             const struct rill__order_range *range);

/* The host frees memory now, which is then forgotten. */
void rill__order_host_free(struct rill__order *order, struct rill__order_op *op, const struct rill__order_range *range);

/* ---- memory ---- */

/* It is new, or is no memory of anybody's any more. */
void rill__order_forget(struct rill__order *order, uintptr_t begin, size_t size);

/* All memory is as if it were new. */
void rill__order_forget_all(struct rill__order *order);

/* A free of the memory waits by itself for what the stream has been given so far. */
void rill__order_keep(struct rill__order *order, uint64_t stream, uintptr_t begin, size_t size);

#endif
