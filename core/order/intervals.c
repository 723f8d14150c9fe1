#include "core/order/intervals.h"

#include "core/object/assert.h"

#include <stdlib.h>

/* Finds the links across `p`: in each list the link to the first interval that ends after it. */
static void find_links(struct rill__intervals *map, uintptr_t p, struct rill__interval **links[]) {
  struct rill__interval **list = map->first;
  for (uint32_t level = RILL__INTERVAL_LEVELS; level-- > 0;) {
    while (list[level] != NULL && list[level]->end <= p) list = list[level]->next;
    links[level] = &list[level];
  }
}

struct rill__interval *rill__intervals_from(const struct rill__intervals *map, uintptr_t p) {
  struct rill__interval *const *list = map->first;
  for (uint32_t level = RILL__INTERVAL_LEVELS; level-- > 0;) {
    while (list[level] != NULL && list[level]->end <= p) list = list[level]->next;
  }
  return list[0];
}

/* Chooses one more level for each consecutive bit that is set. */
static uint32_t choose_levels(struct rill__intervals *map) {
  uint32_t bits = map->random != 0 ? map->random : 1, levels = 1;
  bits ^= bits << 13;
  bits ^= bits >> 17;
  bits ^= bits << 5;
  map->random = bits;
  while ((bits & 1) != 0 && levels < RILL__INTERVAL_LEVELS) {
    levels++;
    bits >>= 1;
  }
  return levels;
}

struct rill__interval *rill__intervals_add(struct rill__intervals *map, uintptr_t begin, uintptr_t end) {
  struct rill__interval **links[RILL__INTERVAL_LEVELS];
  const uint32_t levels = choose_levels(map);
  struct rill__interval *interval = malloc(sizeof *interval + levels * sizeof(struct rill__interval *));
  if (interval == NULL) return NULL;
  *interval = (struct rill__interval){ .begin = begin, .end = end, .levels = levels };
  find_links(map, begin, links);
  RILL_ASSERT(begin < end, "an interval is not empty");
  RILL_ASSERT(*links[0] == NULL || end <= (*links[0])->begin, "intervals are disjoint and sorted");
  for (uint32_t level = 0; level < levels; level++) {
    interval->next[level] = *links[level];
    *links[level] = interval;
  }
  map->count++;
  return interval;
}

void rill__intervals_remove(struct rill__intervals *map, struct rill__interval *interval) {
  struct rill__interval **links[RILL__INTERVAL_LEVELS];
  find_links(map, interval->begin, links);
  for (uint32_t level = 0; level < interval->levels; level++) {
    RILL_ASSERT(*links[level] == interval, "an interval with n levels is linked in the first n lists");
    *links[level] = interval->next[level];
  }
  map->count--;
  free(interval->touches);
  free(interval);
}

bool rill__interval_reserve(struct rill__interval *interval) {
  if (interval->count < interval->room) return true;
  const uint32_t room = interval->room == 0 ? 2 : interval->room * 2;
  struct rill__touch *touches = realloc(interval->touches, room * sizeof *touches);
  if (touches == NULL) return false;
  interval->touches = touches;
  interval->room = room;
  return true;
}

size_t rill__interval_bytes(const struct rill__interval *interval) {
  return sizeof *interval + interval->levels * sizeof(struct rill__interval *) +
         interval->room * sizeof(struct rill__touch);
}
