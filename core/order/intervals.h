/* Memory as intervals of addresses, each with the accesses that are remembered of all its bytes.
 *
 * Invariants
 * - Intervals are disjoint, not empty, and sorted; what lies in none has no access that is remembered.
 * - It is a skip list: an interval with n levels is linked in the lists 0 to n - 1, and list 0 has them all. */
#ifndef RILL_CORE_ORDER_INTERVALS_H
#define RILL_CORE_ORDER_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rill__timeline;
struct rill__order_op;

/* One access of one operation. */
struct rill__touch {
  struct rill__timeline *timeline; /* counted there, so it is not freed */
  struct rill__order_op *op;       /* referenced */
  uint64_t position;               /* in the timeline */
  uint64_t gate;                   /* the last gate that the operation may be waiting for; 0: none */
  uint8_t kind;                    /* enum rill__touch_kind */
  uint8_t how;                     /* RILL__ACCESSED_* */
  bool write, vague;
  bool kept; /* a free of the memory waits for it by itself */
};

struct rill__interval {
  uintptr_t begin, end;
  struct rill__touch *touches;
  uint32_t count, room;
  uint32_t levels;
  struct rill__interval *next[];
};

enum { RILL__INTERVAL_LEVELS = 24 };

struct rill__intervals {
  struct rill__interval *first[RILL__INTERVAL_LEVELS];
  size_t count;
  uint32_t random;
};

/* The first interval that ends after `p`; NULL if there is none. */
struct rill__interval *rill__intervals_from(const struct rill__intervals *map, uintptr_t p);

/* Adds an interval without touches, where there is none; NULL without host memory. */
struct rill__interval *rill__intervals_add(struct rill__intervals *map, uintptr_t begin, uintptr_t end);

/* Takes an interval out and frees it; its touches are the caller's to drop before. */
void rill__intervals_remove(struct rill__intervals *map, struct rill__interval *interval);

/* Room for one more touch; false without host memory. */
bool rill__interval_reserve(struct rill__interval *interval);

/* Bytes of host memory. */
size_t rill__interval_bytes(const struct rill__interval *interval);

#endif
