/* What the files of the engine (core/order/engine.h) share. */
#ifndef RILL_CORE_ORDER_STATE_H
#define RILL_CORE_ORDER_STATE_H

#include "core/order/clock.h"
#include "core/order/engine.h"
#include "core/order/intervals.h"

/* By number, in chains. */
struct rill__numbered {
  uint64_t number;
  struct rill__numbered *next;
};
struct rill__number_table {
  struct rill__numbered **chains;
  size_t count, room; /* room: a power of two, or 0 */
};
struct rill__numbered *rill__numbered_find(const struct rill__number_table *table, uint64_t number);
bool rill__numbered_add(struct rill__number_table *table, struct rill__numbered *item); /* false without host memory */
void rill__numbered_remove(struct rill__number_table *table, const struct rill__numbered *item);

/* A stream's operations.  Freed when it has ended and no touch, gate or pending finding names it: what is not found is
 * known to the host, or nobody asks about it. */
struct rill__timeline {
  struct rill__numbered base; /* the stream */
  uint32_t group;
  bool ended;
  uint64_t position;         /* of the last operation */
  uint64_t seen, maybe_seen; /* up to where the host knows, or perhaps knows, that all is complete */
  uint64_t names;            /* how many touches, gates and findings there are of it */
  uint64_t gate;             /* the last one that comes before what is submitted next */
  struct rill__clock clock;  /* of other streams, what comes before what is submitted next */
  uint32_t pruned;           /* parts of the clock when it was pruned */
};

struct rill__order_event {
  struct rill__numbered base;
  struct rill__clock clock; /* of the record's stream, too */
  uint64_t gate;
};

/* A device, and what came before the ends of its streams that have ended. */
struct rill__order_group {
  struct rill__numbered base;
  struct rill__clock clock;
  uint32_t pruned;
};

/* Serial numbers grow.  A timeline has one gate at most for all its kernels that poll: it has the serial number of the
 * first that is not known to be complete, and the position of the last. */
struct rill__gate {
  uint64_t serial, position;
  struct rill__timeline *timeline;
  struct rill__clock clock; /* of a host call: what comes before it on other streams */
  bool polls, ended;
  bool is_signaled; /* it may wait for work, of which nobody knows when it was seen */
};

/* Of an earlier access that a gate may be holding back. */
struct rill__pending {
  struct rill__order_finding finding;
  struct rill__order_op *earlier, *later; /* referenced */
  struct rill__timeline *timeline;        /* of the later one */
  uint64_t position, gate;
  bool seen; /* the host has seen the later one complete, or perhaps has */
};

struct rill__order {
  rill__order_report_fn *report;
  void *user;
  struct rill__number_table timelines, events, groups;
  bool has_atomics; /* there have been atomic accesses */
  struct rill__intervals memory;
  size_t swept; /* intervals after the last sweep */
  struct rill__gate *gates;
  size_t gate_count, gate_room;
  size_t gates_ended; /* host calls that have ended since gates were last dropped */
  uint64_t gate_serial;
  struct rill__pending *pending;
  size_t pending_count, pending_room;
};

/* ---- core/order/engine.c ---- */

struct rill__timeline *rill__timeline_find(const struct rill__order *order, uint64_t stream);
/* Begins the stream if it is not known; NULL without host memory. */
struct rill__timeline *rill__timeline_get(struct rill__order *order, uint64_t stream);
void rill__timeline_let_go(struct rill__order *order, struct rill__timeline *timeline); /* one name less */

/* The host knows, or perhaps knows, all that the clock knows. */
void rill__host_join(const struct rill__order *order, const struct rill__clock *clock);
void rill__host_join_maybe(const struct rill__order *order, const struct rill__clock *clock);

/* Without host memory: all is forgotten. */
void rill__order_give_up(struct rill__order *order);

/* ---- core/order/gates.c ---- */

/* Whether nothing may hold an operation back any more whose last gate is `gate`. */
bool rill__gates_are_open(const struct rill__order *order, uint64_t gate);
bool rill__gate_of_poll(struct rill__order *order, struct rill__timeline *timeline, bool is_signaled);
/* Whether one of those that may be holding it back may have been opened by work. */
bool rill__gates_are_signaled(const struct rill__order *order, uint64_t gate);

/* Keeps a finding until no gate may hold the earlier access back. */
bool rill__pending_add(struct rill__order *order, const struct rill__order_finding *finding,
                       struct rill__timeline *timeline, uint64_t gate);

/* Around what opens gates or tells the host something: notes which later operations the host has seen by then; and
 * reports the findings that no gate is left for. */
void rill__pending_look(struct rill__order *order);
void rill__pending_decide(struct rill__order *order);
void rill__gates_clear(struct rill__order *order);

/* ---- core/order/touches.c ---- */

struct rill__access_by {
  struct rill__timeline *timeline; /* NULL: the host */
  struct rill__order_op *op;
  enum rill__touch_kind kind;
  uint64_t position, gate;
};

/* Compares the access with what is remembered, reports, and remembers it.  False without host memory. */
bool rill__touch_range(struct rill__order *order, const struct rill__access_by *by,
                       const struct rill__order_range *range);
void rill__touches_clear(struct rill__order *order);

/* Whether the access and an earlier one that neither comes before nor after it may have synchronized by memory. */
bool rill__touch_signals(const struct rill__order *order, const struct rill__access_by *by,
                         const struct rill__order_range *range);

#endif
