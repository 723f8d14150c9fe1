#include "core/ranges.h"

#include <stdlib.h>

enum { GRAIN_BITS = 8, LEVEL_BITS = 10, LEVELS = 4, ENTRIES = 1 << LEVEL_BITS };
#define ADDRESS_BITS (GRAIN_BITS + LEVELS * LEVEL_BITS)

/* An entry: 0, an allocation's address, or a node's address with the lowest bit set. */
struct node {
  _Atomic uintptr_t entries[ENTRIES];
};

static struct node root;

static struct node *as_node(uintptr_t entry) { return (struct node *)(entry & ~(uintptr_t)1); }

/* The bits of address below one entry of a level; level 0 is the lowest. */
static unsigned entry_bits(unsigned level) { return GRAIN_BITS + level * LEVEL_BITS; }

struct rill__allocation *rill__ranges_find(const void *p) {
  const uintptr_t address = (uintptr_t)p;
  if (address >> ADDRESS_BITS != 0) return NULL;
  struct node *node = &root;
  for (unsigned level = LEVELS; level-- > 0;) {
    const uintptr_t entry =
        atomic_load_explicit(&node->entries[address >> entry_bits(level) & (ENTRIES - 1)], memory_order_acquire);
    if (entry == 0) return NULL;
    if ((entry & 1) == 0) {
      struct rill__allocation *allocation = (struct rill__allocation *)entry;
      return address - allocation->begin < allocation->size ? allocation : NULL;
    }
    node = as_node(entry);
  }
  return NULL;
}

/* Makes the lower nodes that writing [begin, end) needs; `begin` and `end` lie in the span of `node`, whose entries
 * have `level`.  An entry that is not wholly inside, above the lowest level, needs a lower node. */
static bool prepare(struct node *node, unsigned level, uintptr_t begin, uintptr_t end) {
  const unsigned bits = entry_bits(level);
  if (level == 0) return true;
  for (uintptr_t at = begin >> bits; at <= (end - 1) >> bits; at++) {
    const uintptr_t low = at << bits, high = low + ((uintptr_t)1 << bits);
    if (begin <= low && high <= end) continue;
    _Atomic uintptr_t *entry = &node->entries[at & (ENTRIES - 1)];
    if (atomic_load(entry) == 0) {
      struct node *made = calloc(1, sizeof *made);
      if (made == NULL) return false;
      atomic_store_explicit(entry, (uintptr_t)made | 1, memory_order_release);
    }
    if (!prepare(as_node(atomic_load(entry)), level - 1, begin > low ? begin : low, end < high ? end : high))
      return false;
  }
  return true;
}

/* Writes `value` over [begin, end).  A node below an entry that is wholly inside holds nothing: it is left there and
 * written through. */
static void write(struct node *node, unsigned level, uintptr_t begin, uintptr_t end, uintptr_t value) {
  const unsigned bits = entry_bits(level);
  for (uintptr_t at = begin >> bits; at <= (end - 1) >> bits; at++) {
    _Atomic uintptr_t *entry = &node->entries[at & (ENTRIES - 1)];
    const uintptr_t below = atomic_load(entry);
    if ((below & 1) == 0) {
      atomic_store_explicit(entry, value, memory_order_release);
      continue;
    }
    const uintptr_t low = at << bits, high = low + ((uintptr_t)1 << bits);
    write(as_node(below), level - 1, begin > low ? begin : low, end < high ? end : high, value);
  }
}

bool rill__ranges_insert(struct rill__allocation *allocation) {
  const uintptr_t begin = allocation->begin, end = begin + allocation->size;
  if (begin % (1u << GRAIN_BITS) != 0 || end < begin || (end - 1) >> ADDRESS_BITS != 0) return false;
  if (!prepare(&root, LEVELS - 1, begin, end)) return false;
  write(&root, LEVELS - 1, begin, end, (uintptr_t)allocation);
  return true;
}

void rill__ranges_remove(struct rill__allocation *allocation) {
  write(&root, LEVELS - 1, allocation->begin, allocation->begin + allocation->size, 0);
}
