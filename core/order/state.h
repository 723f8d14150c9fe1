/* Shared by the files of the engine (core/order/engine.h). */
#ifndef RILL_CORE_ORDER_STATE_H
#define RILL_CORE_ORDER_STATE_H

#include "core/order/clock.h"
#include "core/order/engine.h"
#include "core/order/intervals.h"

/* A hash table by number, with chains. */
struct rill__numbered {
  uint64_t number;
  struct rill__numbered *next;
};
struct rill__number_table {
  struct rill__numbered **chains;
  size_t count, room; /* room: a power of two, or 0 */
};
struct rill__numbered *rill__numbered_find(const struct rill__number_table *table, uint64_t number);
/* false if there is no host memory */
bool rill__numbered_add(struct rill__number_table *table, struct rill__numbered *item);
void rill__numbered_remove(struct rill__number_table *table, const struct rill__numbered *item);

/* The operations of a stream.  Freed when the stream has ended and no touch, gate or pending finding refers to it.  A
 * timeline that is not found is therefore known to the host, or is not needed. */
struct rill__timeline {
  struct rill__numbered base; /* number of the stream */
  uint32_t group;
  bool ended;
  uint64_t position;         /* position of the last operation */
  uint64_t seen, maybe_seen; /* positions up to which the host knows, or may know, that all operations are complete */
  uint64_t names;            /* number of touches, gates and findings that refer to it */
  uint64_t gate;             /* last gate that precedes the next operation */
  struct rill__clock clock;  /* positions of other streams that precede the next operation */
  uint32_t pruned;           /* number of parts of the clock when it was last pruned */
};

struct rill__order_event {
  struct rill__numbered base;
  struct rill__clock clock; /* includes the record's stream */
  uint64_t gate;
};

/* A device, and the work that preceded the ends of its streams that have ended. */
struct rill__order_group {
  struct rill__numbered base;
  struct rill__clock clock;
  uint32_t pruned;
};

/* Serial numbers increase.  A timeline has at most one gate for all its kernels that poll.  The gate has the serial
 * number of the first of these kernels that is not known to be complete, and the position of the last one. */
struct rill__gate {
  uint64_t serial, position;
  struct rill__timeline *timeline;
  struct rill__clock clock; /* for a host call: positions of other streams that precede it */
  bool polls, ended;
  bool is_signaled; /* it may wait for work, and it is unknown when it saw that work */
};

/* A finding whose earlier access a gate may be delaying. */
struct rill__pending {
  struct rill__order_finding finding;
  struct rill__order_op *earlier, *later; /* referenced */
  struct rill__timeline *timeline;        /* timeline of the later access */
  uint64_t position, gate;
  bool seen; /* the host has seen, or may have seen, the later access complete */
};

struct rill__order {
  rill__order_report_fn *report;
  void *user;
  struct rill__number_table timelines, events, groups;
  bool has_atomics; /* there were atomic accesses */
  struct rill__intervals memory;
  size_t count_after_sweep; /* number of intervals after the last sweep */
  struct rill__gate *gates;
  size_t gate_count, gate_room;
  size_t gates_ended; /* number of host calls that have ended since gates were last dropped */
  uint64_t gate_serial;
  struct rill__pending *pending;
  size_t pending_count, pending_room;
};

/* ---- core/order/engine.c ---- */

struct rill__timeline *rill__timeline_find(const struct rill__order *order, uint64_t stream);
/* Returns the timeline of the stream, and begins it if it is unknown; NULL if there is no host memory. */
struct rill__timeline *rill__timeline_get(struct rill__order *order, uint64_t stream);
/* Drops one reference by a touch, gate or finding. */
void rill__timeline_drop(struct rill__order *order, struct rill__timeline *timeline);

/* Note that the host knows, or may know, everything that the clock knows. */
void rill__host_join(const struct rill__order *order, const struct rill__clock *clock);
void rill__host_join_maybe(const struct rill__order *order, const struct rill__clock *clock);

/* Forgets everything, because there is no host memory. */
void rill__order_clear(struct rill__order *order);

/* ---- core/order/gates.c ---- */

/* Returns true if no gate up to `gate` can delay an operation any more. */
bool rill__gates_are_open(const struct rill__order *order, uint64_t gate);
bool rill__gate_of_poll(struct rill__order *order, struct rill__timeline *timeline, bool is_signaled);
/* Returns true if a gate that may be delaying the operation may have been opened by work. */
bool rill__gates_are_signaled(const struct rill__order *order, uint64_t gate);

/* Keeps a finding until no gate can delay the earlier access. */
bool rill__pending_add(struct rill__order *order, const struct rill__order_finding *finding,
                       struct rill__timeline *timeline, uint64_t gate);

/* Update and decide pending findings before and after a step that opens gates or shows the host something.  The first
 * notes which later operations the host has seen by then; the second reports the findings for which no gate is left. */
void rill__pending_update(struct rill__order *order);
void rill__pending_decide(struct rill__order *order);
void rill__gates_clear(struct rill__order *order);

/* ---- core/order/touches.c ---- */

struct rill__access_by {
  struct rill__timeline *timeline; /* NULL for the host */
  struct rill__order_op *op;
  enum rill__touch_kind kind;
  uint64_t position, gate;
};

/* Compares the access with the remembered ones, reports conflicts, and remembers it.  Returns false if there is no host
 * memory. */
bool rill__touch_range(struct rill__order *order, const struct rill__access_by *by,
                       const struct rill__order_range *range);
void rill__touches_clear(struct rill__order *order);

/* Returns true if the access may have synchronized through memory with an earlier one that is neither before nor after
 * it. */
bool rill__touch_signals(const struct rill__order *order, const struct rill__access_by *by,
                         const struct rill__order_range *range);

#endif
