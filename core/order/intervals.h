/* Memory as intervals of addresses, each with the remembered accesses of all its bytes.
 *
 * Invariants
 * - Intervals are disjoint, not empty, and sorted.  Memory outside of them has no remembered access.
 * - The map is a skip list: an interval with n levels is linked in the lists 0 to n - 1, and list 0 contains all
 *   intervals.
 */
#ifndef RILL_CORE_ORDER_INTERVALS_H
#define RILL_CORE_ORDER_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rill__timeline;
struct rill__order_op;

/* A remembered access by one operation. */
struct rill__touch {
  struct rill__timeline *timeline; /* counts the touch, so it is not freed */
  struct rill__order_op *op;       /* referenced */
  uint64_t position;               /* position in the timeline */
  uint64_t gate;                   /* last gate that the operation may be waiting for; 0 if none */
  uint8_t kind;                    /* enum rill__touch_kind */
  uint8_t how;                     /* RILL__ACCESSED_* */
  bool write, vague;
  bool kept; /* a free of the memory will itself wait for this access */
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

/* Returns the first interval that ends after `p`, or NULL. */
struct rill__interval *rill__intervals_from(const struct rill__intervals *map, uintptr_t p);

/* Adds an interval without touches where there is none.  Returns NULL if there is no host memory. */
struct rill__interval *rill__intervals_add(struct rill__intervals *map, uintptr_t begin, uintptr_t end);

/* Removes an interval and frees it; the caller has dropped its touches. */
void rill__intervals_remove(struct rill__intervals *map, struct rill__interval *interval);

/* Makes room for one more touch; returns false if there is no host memory. */
bool rill__interval_reserve(struct rill__interval *interval);

/* Returns the host memory that the interval uses, in bytes. */
size_t rill__interval_bytes(const struct rill__interval *interval);

#endif
