/* The remembered accesses of memory, and the comparison of a new access with them. */
#include "core/backend.h"
#include "core/object/assert.h"
#include "core/order/state.h"

/* ---- lists of touches ---- */

static void drop_touch(struct rill__order *order, const struct rill__touch *touch) {
  rill__order_op_unref(touch->op);
  rill__timeline_drop(order, touch->timeline);
}

static void drop_touches(struct rill__order *order, struct rill__interval *interval) {
  for (uint32_t i = 0; i < interval->count; i++) drop_touch(order, &interval->touches[i]);
  interval->count = 0;
}

static bool add_touch(struct rill__interval *interval, const struct rill__touch *touch) {
  if (!rill__interval_reserve(interval)) return false;
  RILL_ASSERT(touch->position > 0 && touch->position <= touch->timeline->position,
              "a touch is of an operation that was submitted");
  RILL_ASSERT(touch->how != 0, "a touch reads or writes");
  interval->touches[interval->count++] = *touch;
  touch->op->references++;
  touch->timeline->names++;
  return true;
}

/* Returns whether the host has seen the touch complete.  The mark of a free is kept even then, because it is only
 * needed to name the free; a sweep removes it. */
static bool is_past(const struct rill__touch *touch) {
  return touch->position <= touch->timeline->seen && touch->kind != RILL__TOUCH_FREE;
}

static bool is_before(const struct rill__touch *touch, const struct rill__timeline *timeline) {
  if (touch->timeline == timeline || touch->position <= touch->timeline->seen) return true;
  if (timeline == NULL) return false;
  return touch->position <= rill__clock_get(&timeline->clock, touch->timeline->base.number);
}

/* Returns true if the touch is made redundant by a later touch with these properties: every access that is unordered
 * with it and conflicts with it is also unordered with the later touch and conflicts with that touch, with at least the
 * same certainty. */
static bool covers(const struct rill__touch *touch, uint32_t how, bool vague, uint64_t gate) {
  const bool atomic = (touch->how & (RILL__ACCESSED_UPDATE | RILL__ACCESSED_POLL)) != 0;
  const bool covers_kinds = (touch->how & ~how) == 0 || ((how & RILL__ACCESSED_WRITE) != 0 && !atomic);
  return touch->kind != RILL__TOUCH_FREE && covers_kinds && (!vague || touch->vague) && gate <= touch->gate;
}

/* ---- combinations of two accesses to the same bytes ---- */

static bool is_combination(uint32_t a, uint32_t b, uint32_t first, uint32_t second) {
  return ((a & first) != 0 && (b & second) != 0) || ((b & first) != 0 && (a & second) != 0);
}

/* Returns true if the accesses conflict.  Atomic accesses do not conflict with each other, and polled memory may be a
 * flag that another operation writes. */
static bool kinds_conflict(uint32_t a, uint32_t b) {
  return is_combination(a, b, RILL__ACCESSED_WRITE,
                        RILL__ACCESSED_READ | RILL__ACCESSED_WRITE | RILL__ACCESSED_UPDATE) ||
         is_combination(a, b, RILL__ACCESSED_READ, RILL__ACCESSED_UPDATE);
}

static bool may_signal(uint32_t a, uint32_t b) {
  return is_combination(a, b, RILL__ACCESSED_UPDATE, RILL__ACCESSED_UPDATE | RILL__ACCESSED_POLL) ||
         is_combination(a, b, RILL__ACCESSED_WRITE, RILL__ACCESSED_POLL);
}

static uint32_t access_kinds_of(const struct rill__order_range *range) {
  if (range->how != 0) return range->how;
  return range->write ? RILL__ACCESSED_WRITE : RILL__ACCESSED_READ;
}

/* Drops touches of one stream that differ only by gates that are open by now. */
static void compact(struct rill__order *order, struct rill__interval *interval) {
  enum { MANY = 8 };
  if (interval->count < MANY) return;
  for (uint32_t i = 0; i < interval->count; i++) {
    struct rill__touch *const touch = &interval->touches[i];
    if (touch->gate != 0 && rill__gates_are_open(order, touch->gate)) touch->gate = 0;
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < interval->count; i++) {
    const struct rill__touch touch = interval->touches[i];
    bool redundant = false;
    for (uint32_t j = i + 1; j < interval->count && !redundant; j++) {
      const struct rill__touch *const later = &interval->touches[j];
      redundant = later->timeline == touch.timeline && covers(&touch, later->how, later->vague, later->gate) &&
                  (!later->kept || touch.kept);
    }
    if (redundant) drop_touch(order, &touch);
    else interval->touches[kept++] = touch;
  }
  interval->count = kept;
}

/* ---- findings ---- */

static bool report_pair(struct rill__order *order, const struct rill__access_by *by,
                        const struct rill__order_range *range, const struct rill__touch *touch,
                        const struct rill__interval *at) {
  struct rill__order_finding finding = { .earlier = touch->op,
                                         .later = by->op,
                                         .earlier_kind = (enum rill__touch_kind)touch->kind,
                                         .later_kind = by->kind,
                                         .earlier_write = touch->write,
                                         .later_write = range->write,
                                         .begin = at->begin,
                                         .size = at->end - at->begin };
  const bool maybe = touch->position <= touch->timeline->maybe_seen;
  finding.certain = !maybe && !touch->vague && !range->vague;
  /* Even in the other order, memory would be used before it is allocated or after it is freed. */
  const bool either = touch->kind != RILL__TOUCH_USE || by->kind != RILL__TOUCH_USE;
  if (finding.certain && !either && touch->gate != 0 && !rill__gates_are_open(order, touch->gate)) {
    if (by->timeline != NULL && !rill__gates_are_signaled(order, touch->gate))
      return rill__pending_add(order, &finding, by->timeline, touch->gate);
    finding.certain = false;
  }
  order->report(order->user, &finding);
  return true;
}

static void report_after_free(struct rill__order *order, const struct rill__access_by *by,
                              const struct rill__order_range *range, const struct rill__touch *mark) {
  const struct rill__order_finding finding = { .earlier = mark != NULL ? mark->op : NULL,
                                               .later = by->op,
                                               .earlier_kind = RILL__TOUCH_FREE,
                                               .later_kind = by->kind,
                                               .earlier_write = true,
                                               .later_write = range->write,
                                               .certain = !range->vague,
                                               .after_free = true,
                                               .begin = range->begin,
                                               .size = range->size };
  order->report(order->user, &finding);
}

static bool conflict(const struct rill__touch *touch, const struct rill__access_by *by,
                     const struct rill__order_range *range) {
  if (touch->kind == RILL__TOUCH_FREE || is_before(touch, by->timeline)) return false;
  if (by->kind == RILL__TOUCH_FREE && (touch->kept || touch->kind == RILL__TOUCH_ALLOCATE)) return false;
  return kinds_conflict(touch->how, access_kinds_of(range));
}

bool rill__touch_signals(const struct rill__order *order, const struct rill__access_by *by,
                         const struct rill__order_range *range) {
  const uintptr_t end = range->begin + range->size;
  const struct rill__interval *at = rill__intervals_from(&order->memory, range->begin);
  for (; at != NULL && at->begin < end; at = at->next[0]) {
    for (uint32_t i = 0; i < at->count; i++) {
      const struct rill__touch *const touch = &at->touches[i];
      if (may_signal(touch->how, access_kinds_of(range)) && !is_before(touch, by->timeline)) return true;
    }
  }
  return false;
}

/* ---- one interval, which lies inside the range ---- */

struct visit {
  const struct rill__access_by *by;
  const struct rill__order_range *range;
  const struct rill__order_op *reported; /* last operation reported; it is reported once for the range */
  bool marked;                           /* a use of freed memory was reported */
};

static bool compare(struct rill__order *order, struct visit *visit, struct rill__interval *at) {
  for (uint32_t i = 0; i < at->count; i++) {
    const struct rill__touch *const touch = &at->touches[i];
    if (visit->range->freed && touch->kind == RILL__TOUCH_FREE && !visit->marked) {
      visit->marked = true;
      report_after_free(order, visit->by, visit->range, touch);
    }
    if (touch->op == visit->reported || !conflict(touch, visit->by, visit->range)) continue;
    visit->reported = touch->op;
    if (!report_pair(order, visit->by, visit->range, touch, at)) return false;
  }
  return true;
}

/* Drops touches that are no longer needed, and adds the access. */
static bool store_touch(struct rill__order *order, const struct visit *visit, struct rill__interval *at) {
  const struct rill__access_by *const by = visit->by;
  const bool stays = by->timeline != NULL && !visit->range->freed && !visit->range->passing;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < at->count; i++) {
    const struct rill__touch touch = at->touches[i];
    const bool dropped = is_past(&touch) || by->kind == RILL__TOUCH_FREE ||
                         (stays && is_before(&touch, by->timeline) &&
                          covers(&touch, access_kinds_of(visit->range), visit->range->vague, by->gate));
    if (dropped) drop_touch(order, &touch);
    else at->touches[kept++] = touch;
  }
  at->count = kept;
  if (!stays) return true;
  const struct rill__touch touch = { .timeline = by->timeline,
                                     .op = by->op,
                                     .position = by->position,
                                     .gate = by->gate,
                                     .kind = (uint8_t)by->kind,
                                     .how = (uint8_t)access_kinds_of(visit->range),
                                     .write = visit->range->write,
                                     .vague = visit->range->vague };
  if (!add_touch(at, &touch)) return false;
  compact(order, at);
  return true;
}

/* ---- ranges ---- */

/* Splits an interval at `p` and returns the second part; NULL if there is no host memory. */
static struct rill__interval *split_interval(struct rill__order *order, struct rill__interval *interval, uintptr_t p) {
  const uintptr_t end = interval->end;
  interval->end = p;
  struct rill__interval *rest = rill__intervals_add(&order->memory, p, end);
  bool done = rest != NULL;
  for (uint32_t i = 0; i < interval->count && done; i++) done = add_touch(rest, &interval->touches[i]);
  return done ? rest : NULL;
}

static bool has_equal_touches(const struct rill__interval *a, const struct rill__interval *b) {
  if (a->end != b->begin || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const struct rill__touch *const x = &a->touches[i], *const y = &b->touches[i];
    if (x->op != y->op || x->position != y->position || x->gate != y->gate || x->kind != y->kind || x->how != y->how ||
        x->write != y->write || x->vague != y->vague || x->kept != y->kept) {
      return false;
    }
  }
  return true;
}

static void remove_interval(struct rill__order *order, struct rill__interval *interval) {
  drop_touches(order, interval);
  rill__intervals_remove(&order->memory, interval);
}

/* Joins an interval with the one before it if both have the same touches, and removes an interval without touches.
 * Returns the last interval that is left. */
static struct rill__interval *merge_or_remove(struct rill__order *order, struct rill__interval *before,
                                              struct rill__interval *interval) {
  if (interval->count > 0 && (before == NULL || !has_equal_touches(before, interval))) return interval;
  const uintptr_t end = interval->end;
  const bool joins = interval->count > 0;
  remove_interval(order, interval);
  if (joins) before->end = end;
  return before;
}

static void sweep(struct rill__order *order) {
  struct rill__interval *before = NULL;
  for (struct rill__interval *at = order->memory.first[0], *next; at != NULL; at = next) {
    next = at->next[0];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < at->count; i++) {
      const struct rill__touch touch = at->touches[i];
      if (touch.position <= touch.timeline->seen) drop_touch(order, &touch);
      else at->touches[kept++] = touch;
    }
    at->count = kept;
    before = merge_or_remove(order, before, at);
  }
  order->count_after_sweep = order->memory.count;
  if (order->count_after_sweep > RILL__ORDER_INTERVALS) rill__touches_clear(order);
}

/* Returns the interval that contains the part of the range from `p` on, and creates one if there is none.  The interval
 * does not extend beyond the range. */
static struct rill__interval *take_part(struct rill__order *order, uintptr_t p, uintptr_t end) {
  struct rill__interval *at = rill__intervals_from(&order->memory, p);
  if (at == NULL || at->begin > p) {
    return rill__intervals_add(&order->memory, p, at == NULL || at->begin > end ? end : at->begin);
  }
  if (at->begin < p) at = split_interval(order, at, p);
  if (at != NULL && at->end > end && split_interval(order, at, end) == NULL) return NULL;
  return at;
}

bool rill__touch_range(struct rill__order *order, const struct rill__access_by *by,
                       const struct rill__order_range *range) {
  enum { FEW = 1024 };
  if (order->memory.count > 2 * order->count_after_sweep + FEW) sweep(order);
  struct visit visit = { .by = by, .range = range };
  struct rill__interval *before = NULL;
  const uintptr_t end = range->begin + range->size;
  for (uintptr_t p = range->begin; p < end;) {
    struct rill__interval *at = take_part(order, p, end);
    if (at == NULL || !compare(order, &visit, at) || !store_touch(order, &visit, at)) return false;
    RILL_ASSERT(at->begin == p && at->end <= end, "each interval that is compared lies inside the access");
    p = at->end;
    before = merge_or_remove(order, before, at);
  }
  if (range->freed && !visit.marked) report_after_free(order, by, range, NULL);
  return true;
}

void rill__order_forget(struct rill__order *order, uintptr_t begin, size_t size) {
  const uintptr_t end = begin + size;
  for (struct rill__interval *at; (at = rill__intervals_from(&order->memory, begin)) != NULL && at->begin < end;) {
    at = take_part(order, at->begin < begin ? begin : at->begin, end);
    if (at == NULL) {
      rill__order_clear(order);
      return;
    }
    remove_interval(order, at);
  }
}

void rill__order_forget_all(struct rill__order *order) { rill__touches_clear(order); }

void rill__order_keep(struct rill__order *order, uint64_t stream, uintptr_t begin, size_t size) {
  const struct rill__timeline *timeline = rill__timeline_find(order, stream);
  const uintptr_t end = begin + size;
  struct rill__interval *at = timeline != NULL ? rill__intervals_from(&order->memory, begin) : NULL;
  for (; at != NULL && at->begin < end; at = at->next[0]) {
    for (uint32_t i = 0; i < at->count; i++) {
      if (is_before(&at->touches[i], timeline)) at->touches[i].kept = true;
    }
  }
}

void rill__touches_clear(struct rill__order *order) {
  while (order->memory.first[0] != NULL) remove_interval(order, order->memory.first[0]);
  order->count_after_sweep = 0;
}
