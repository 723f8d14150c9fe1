/* The engine: streams, events and the host. */
#include "core/backend.h"
#include "core/object/assert.h"
#include "core/order/state.h"

#include <stdlib.h>

/* ---- operations ---- */

struct rill__order_op *rill__order_op_new(void) {
  struct rill__order_op *op = calloc(1, sizeof *op);
  if (op != NULL) op->references = 1;
  return op;
}

void rill__order_op_unref(struct rill__order_op *op) {
  RILL_ASSERT(op->references > 0, "an operation is freed with its last reference");
  if (--op->references == 0) free(op);
}

/* ---- numbers ---- */

static size_t chain_of(const struct rill__number_table *table, uint64_t number) {
  return (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->room - 1);
}

struct rill__numbered *rill__numbered_find(const struct rill__number_table *table, uint64_t number) {
  if (table->room == 0) return NULL;
  struct rill__numbered *item = table->chains[chain_of(table, number)];
  while (item != NULL && item->number != number) item = item->next;
  return item;
}

static bool grow_table(struct rill__number_table *table) {
  struct rill__number_table larger = { .room = table->room == 0 ? 64 : 2 * table->room };
  larger.chains = calloc(larger.room, sizeof(struct rill__numbered *));
  if (larger.chains == NULL) return false;
  for (size_t i = 0; i < table->room; i++) {
    for (struct rill__numbered *item = table->chains[i], *next; item != NULL; item = next) {
      struct rill__numbered **const chain = &larger.chains[chain_of(&larger, item->number)];
      next = item->next;
      item->next = *chain;
      *chain = item;
    }
  }
  larger.count = table->count;
  free(table->chains);
  *table = larger;
  return true;
}

bool rill__numbered_add(struct rill__number_table *table, struct rill__numbered *item) {
  if (table->count >= table->room && !grow_table(table)) return false;
  struct rill__numbered **const chain = &table->chains[chain_of(table, item->number)];
  item->next = *chain;
  *chain = item;
  table->count++;
  return true;
}

void rill__numbered_remove(struct rill__number_table *table, const struct rill__numbered *item) {
  struct rill__numbered **link = &table->chains[chain_of(table, item->number)];
  while (*link != item) link = &(*link)->next;
  *link = item->next;
  table->count--;
}

/* ---- streams ---- */

struct rill__timeline *rill__timeline_find(const struct rill__order *order, uint64_t stream) {
  return (struct rill__timeline *)rill__numbered_find(&order->timelines, stream);
}

static void free_timeline(struct rill__timeline *timeline) {
  rill__clock_free(&timeline->clock);
  free(timeline);
}

static void end_unnamed(struct rill__order *order, struct rill__timeline *timeline) {
  RILL_ASSERT(timeline->maybe_seen <= timeline->position,
              "the host cannot have seen an operation that was not submitted");
  if (!timeline->ended || timeline->names > 0) return;
  rill__numbered_remove(&order->timelines, &timeline->base);
  free_timeline(timeline);
}

void rill__timeline_drop(struct rill__order *order, struct rill__timeline *timeline) {
  RILL_ASSERT(timeline->names > 0, "each reference to a timeline is counted");
  timeline->names--;
  end_unnamed(order, timeline);
}

struct rill__timeline *rill__timeline_get(struct rill__order *order, uint64_t stream) {
  struct rill__timeline *timeline = rill__timeline_find(order, stream);
  if (timeline != NULL) return timeline;
  timeline = calloc(1, sizeof *timeline);
  if (timeline != NULL) {
    timeline->base.number = stream;
    if (rill__numbered_add(&order->timelines, &timeline->base)) return timeline;
    free(timeline);
  }
  rill__order_clear(order);
  return NULL;
}

void rill__order_begin(struct rill__order *order, uint64_t stream, uint32_t group) {
  struct rill__timeline *timeline = rill__timeline_get(order, stream);
  if (timeline != NULL) timeline->group = group;
}

/* Returns whether the host has seen the position.  A stream that cannot be found counts as seen: nothing needs it any
 * more. */
static bool is_seen(void *user, uint64_t stream, uint64_t position) {
  const struct rill__timeline *timeline = rill__timeline_find(user, stream);
  return timeline == NULL || position <= timeline->seen;
}

/* Joins a clock into another and prunes the result if it has grown.  `pruned`: number of parts that the clock had when
 * it was last pruned. */
static bool join_clock(struct rill__order *order, struct rill__clock *clock, const struct rill__clock *other,
                       uint32_t *pruned) {
  enum { FEW = 8 };
  if (!rill__clock_join(clock, other)) return false;
  if (clock->count <= 2 * *pruned + FEW) return true;
  rill__clock_prune(clock, is_seen, order);
  *pruned = clock->count;
  return true;
}

/* ---- groups ---- */

static struct rill__order_group *find_ended(const struct rill__order *order, uint32_t group) {
  return (struct rill__order_group *)rill__numbered_find(&order->groups, group);
}

static struct rill__order_group *get_ended(struct rill__order *order, uint32_t number) {
  struct rill__order_group *group = find_ended(order, number);
  if (group != NULL) return group;
  group = calloc(1, sizeof *group);
  if (group == NULL) return NULL;
  group->base.number = number;
  if (rill__numbered_add(&order->groups, &group->base)) return group;
  free(group);
  return NULL;
}

void rill__order_end(struct rill__order *order, uint64_t stream) {
  struct rill__timeline *timeline = rill__timeline_find(order, stream);
  if (timeline == NULL) return;
  struct rill__order_group *group = get_ended(order, timeline->group);
  if (group == NULL || !join_clock(order, &group->clock, &timeline->clock, &group->pruned) ||
      (timeline->position > 0 && !rill__clock_advance(&group->clock, stream, timeline->position))) {
    rill__order_clear(order);
    return;
  }
  timeline->ended = true;
  end_unnamed(order, timeline);
}

/* ---- events ---- */

static struct rill__order_event *find_event(const struct rill__order *order, uint64_t event) {
  return (struct rill__order_event *)rill__numbered_find(&order->events, event);
}

static struct rill__order_event *get_event(struct rill__order *order, uint64_t number) {
  struct rill__order_event *event = find_event(order, number);
  if (event != NULL) return event;
  event = calloc(1, sizeof *event);
  if (event == NULL) return NULL;
  event->base.number = number;
  if (rill__numbered_add(&order->events, &event->base)) return event;
  free(event);
  return NULL;
}

static void free_event(struct rill__order_event *event) {
  rill__clock_free(&event->clock);
  free(event);
}

void rill__order_record(struct rill__order *order, uint64_t stream, uint64_t number) {
  struct rill__timeline *timeline = rill__timeline_get(order, stream);
  struct rill__order_event *event = timeline != NULL ? get_event(order, number) : NULL;
  bool done = event != NULL;
  if (done) {
    event->clock.count = 0;
    event->gate = timeline->gate;
    rill__clock_prune(&timeline->clock, is_seen, order);
    done = rill__clock_join(&event->clock, &timeline->clock) &&
           (timeline->position <= timeline->seen || rill__clock_advance(&event->clock, stream, timeline->position));
  }
  if (timeline != NULL && !done) rill__order_clear(order);
}

void rill__order_wait(struct rill__order *order, uint64_t stream, uint64_t number) {
  const struct rill__order_event *event = find_event(order, number);
  struct rill__timeline *timeline = event != NULL ? rill__timeline_get(order, stream) : NULL;
  if (timeline == NULL) return;
  if (timeline->gate < event->gate) timeline->gate = event->gate;
  if (!join_clock(order, &timeline->clock, &event->clock, &timeline->pruned)) rill__order_clear(order);
}

void rill__order_forget_event(struct rill__order *order, uint64_t number) {
  struct rill__order_event *event = find_event(order, number);
  if (event == NULL) return;
  rill__numbered_remove(&order->events, &event->base);
  free_event(event);
}

/* ---- the host ---- */

static void see(struct rill__timeline *timeline, uint64_t position) {
  if (timeline == NULL || timeline->seen >= position) return;
  RILL_ASSERT(position <= timeline->position, "the host knows only of operations that were submitted");
  timeline->seen = position;
}

void rill__host_join(const struct rill__order *order, const struct rill__clock *clock) {
  for (uint32_t i = 0; i < clock->count; i++) {
    see(rill__timeline_find(order, clock->parts[i].stream), clock->parts[i].position);
  }
}

void rill__host_join_maybe(const struct rill__order *order, const struct rill__clock *clock) {
  for (uint32_t i = 0; i < clock->count; i++) {
    struct rill__timeline *timeline = rill__timeline_find(order, clock->parts[i].stream);
    if (timeline != NULL && timeline->maybe_seen < clock->parts[i].position) {
      timeline->maybe_seen = clock->parts[i].position;
    }
  }
}

static void see_all_of(const struct rill__order *order, struct rill__timeline *timeline) {
  see(timeline, timeline->position);
  rill__host_join(order, &timeline->clock);
}

void rill__order_host_wait_stream(struct rill__order *order, uint64_t stream) {
  rill__pending_update(order);
  struct rill__timeline *timeline = rill__timeline_find(order, stream);
  if (timeline != NULL) see_all_of(order, timeline);
  rill__pending_decide(order);
}

void rill__order_host_wait_event(struct rill__order *order, uint64_t number) {
  rill__pending_update(order);
  const struct rill__order_event *event = find_event(order, number);
  if (event != NULL) rill__host_join(order, &event->clock);
  rill__pending_decide(order);
}

static void see_ended(const struct rill__order *order, struct rill__order_group *ended) {
  rill__host_join(order, &ended->clock);
  ended->clock.count = ended->pruned = 0;
}

void rill__order_host_wait_groups(struct rill__order *order, uint32_t group, uint32_t mask) {
  rill__pending_update(order);
  for (size_t i = 0; i < order->groups.room; i++) {
    for (struct rill__numbered *item = order->groups.chains[i]; item != NULL; item = item->next) {
      if ((item->number & mask) == (group & mask)) see_ended(order, (struct rill__order_group *)item);
    }
  }
  for (size_t i = 0; i < order->timelines.room; i++) {
    for (struct rill__numbered *item = order->timelines.chains[i]; item != NULL; item = item->next) {
      struct rill__timeline *timeline = (struct rill__timeline *)item;
      if ((timeline->group & mask) == (group & mask)) see_all_of(order, timeline);
    }
  }
  rill__pending_decide(order);
}

/* ---- operations with memory ---- */

/* Notes an operation that exchanges signals with an earlier one: from then on, anything may be ordered after everything
 * that has been submitted so far. */
static void note_signals(struct rill__order *order, const struct rill__access_by *by,
                         const struct rill__order_range *ranges, size_t count) {
  bool signals = false;
  for (size_t i = 0; i < count && !order->has_atomics; i++) {
    order->has_atomics = (ranges[i].how & (RILL__ACCESSED_UPDATE | RILL__ACCESSED_POLL)) != 0;
  }
  if (!order->has_atomics) return;
  for (size_t i = 0; i < count && !signals; i++) signals = rill__touch_signals(order, by, &ranges[i]);
  for (size_t i = 0; signals && i < order->timelines.room; i++) {
    for (struct rill__numbered *item = order->timelines.chains[i]; item != NULL; item = item->next) {
      struct rill__timeline *const timeline = (struct rill__timeline *)item;
      timeline->maybe_seen = timeline->position;
    }
  }
}

void rill__order_submit(struct rill__order *order, uint64_t stream, struct rill__order_op *op,
                        enum rill__touch_kind kind, uint32_t flags, const struct rill__order_range *ranges,
                        size_t count) {
  struct rill__timeline *timeline = rill__timeline_get(order, stream);
  if (timeline == NULL) return;
  timeline->position++;
  if (timeline->gate != 0 && rill__gates_are_open(order, timeline->gate)) timeline->gate = 0;
  const bool follows =
      (flags & RILL__ORDER_FOLLOWS) != 0 && timeline->maybe_seen != 0 && timeline->maybe_seen + 1 == timeline->position;
  const uint64_t publishes = (flags & RILL__ORDER_PUBLISHES) != 0 || follows ? timeline->position
                             : (flags & RILL__ORDER_PUBLISHES_EARLIER) != 0  ? timeline->position - 1
                                                                             : 0;
  const bool is_signaled = (flags & RILL__ORDER_IS_SIGNALED) != 0;
  const bool polls = (flags & RILL__ORDER_POLLS) != 0, exact = count > 0 && ranges[0].how != 0;
  bool done = true;
  if (exact && (polls || is_signaled)) done = rill__gate_of_poll(order, timeline, is_signaled);
  const struct rill__access_by by = { timeline, op, kind, timeline->position, timeline->gate };
  note_signals(order, &by, ranges, count);
  for (size_t i = 0; i < count && done; i++) done = rill__touch_range(order, &by, &ranges[i]);
  if (done && polls && !exact) done = rill__gate_of_poll(order, timeline, false);
  if (done && publishes != 0) {
    timeline->maybe_seen = publishes;
    rill__host_join_maybe(order, &timeline->clock);
  }
  if (!done) rill__order_clear(order);
}

void rill__order_host_access(struct rill__order *order, struct rill__order_op *op,
                             const struct rill__order_range *range) {
  const struct rill__access_by by = { .op = op, .kind = RILL__TOUCH_USE };
  if (!rill__touch_range(order, &by, range)) rill__order_clear(order);
}

void rill__order_host_free(struct rill__order *order, struct rill__order_op *op,
                           const struct rill__order_range *range) {
  const struct rill__access_by by = { .op = op, .kind = RILL__TOUCH_FREE };
  if (rill__touch_range(order, &by, range)) {
    rill__order_forget(order, range->begin, range->size);
  } else {
    rill__order_clear(order);
  }
}

/* ---- the engine ---- */

struct rill__order *rill__order_new(rill__order_report_fn *report, void *user) {
  struct rill__order *order = calloc(1, sizeof *order);
  if (order == NULL) return NULL;
  order->report = report;
  order->user = user;
  return order;
}

static void clear_table(struct rill__number_table *table, void (*drop)(struct rill__numbered *item)) {
  for (size_t i = 0; i < table->room; i++) {
    for (struct rill__numbered *item = table->chains[i], *next; item != NULL; item = next) {
      next = item->next;
      drop(item);
    }
  }
  free(table->chains);
  *table = (struct rill__number_table){ 0 };
}

static void drop_timeline(struct rill__numbered *item) { free_timeline((struct rill__timeline *)item); }
static void drop_group(struct rill__numbered *item) {
  struct rill__order_group *group = (struct rill__order_group *)item;
  rill__clock_free(&group->clock);
  free(group);
}
static void drop_event(struct rill__numbered *item) { free_event((struct rill__order_event *)item); }

/* Forgets all memory.  Streams that are still used begin again, without their earlier work. */
void rill__order_clear(struct rill__order *order) {
  rill__touches_clear(order);
  rill__gates_clear(order);
  clear_table(&order->events, drop_event);
  clear_table(&order->groups, drop_group);
  clear_table(&order->timelines, drop_timeline);
}

void rill__order_free(struct rill__order *order) {
  rill__order_clear(order);
  free(order->gates);
  free(order->pending);
  free(order);
}

static size_t measure_tables(const struct rill__order *order) {
  size_t bytes = (order->timelines.room + order->events.room) * sizeof(struct rill__numbered *);
  for (size_t i = 0; i < order->timelines.room; i++) {
    for (const struct rill__numbered *item = order->timelines.chains[i]; item != NULL; item = item->next) {
      bytes += sizeof(struct rill__timeline) +
               ((const struct rill__timeline *)item)->clock.room * sizeof(struct rill__clock_part);
    }
  }
  for (size_t i = 0; i < order->events.room; i++) {
    for (const struct rill__numbered *item = order->events.chains[i]; item != NULL; item = item->next) {
      bytes += sizeof(struct rill__order_event) +
               ((const struct rill__order_event *)item)->clock.room * sizeof(struct rill__clock_part);
    }
  }
  for (size_t i = 0; i < order->groups.room; i++) {
    for (const struct rill__numbered *item = order->groups.chains[i]; item != NULL; item = item->next) {
      bytes += sizeof(struct rill__order_group) +
               ((const struct rill__order_group *)item)->clock.room * sizeof(struct rill__clock_part);
    }
  }
  return bytes;
}

struct rill__order_size rill__order_measure(const struct rill__order *order) {
  struct rill__order_size size = { .timelines = order->timelines.count,
                                   .events = order->events.count,
                                   .intervals = order->memory.count,
                                   .bytes = sizeof *order + measure_tables(order) };
  size.bytes += order->gate_room * sizeof *order->gates + order->pending_room * sizeof *order->pending;
  for (const struct rill__interval *at = order->memory.first[0]; at != NULL; at = at->next[0]) {
    size.touches += at->count;
    size.bytes += rill__interval_bytes(at) + at->count * sizeof(struct rill__order_op);
  }
  return size;
}
