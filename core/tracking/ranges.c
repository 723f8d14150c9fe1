#include "core/tracking/ranges.h"

#include <stdlib.h>

enum { GRAIN_BITS = 8, LEVEL_BITS = 10, LEVELS = 4, ENTRIES = 1 << LEVEL_BITS, WORDS = ENTRIES / 64 };
#define ADDRESS_BITS (GRAIN_BITS + LEVELS * LEVEL_BITS)

/* A node of the lowest level, 0. */
struct leaf {
  /* an allocation that begins before the leaf and reaches into it, or NULL */
  _Atomic(struct rill__allocation *) from_below;
  _Atomic uint32_t words; /* one bit for each word of `begins` that is not 0 */
  _Atomic uint64_t begins[WORDS];
  _Atomic(struct rill__allocation *) last[ENTRIES]; /* for each grain, the last allocation that begins in it */
};

/* A node of the levels above.  An entry is 0, the address of an allocation, or, with the lowest bit set, the address of
 * a node.  The nodes below level 1 are leaves. */
struct node {
  _Atomic uintptr_t entries[ENTRIES];
};

static struct node root;

static void *below(uintptr_t entry) { return (void *)(entry & ~(uintptr_t)1); }

/* Returns the number of address bits below one entry of a level. */
static unsigned entry_bits(unsigned level) { return GRAIN_BITS + level * LEVEL_BITS; }

static bool range_contains(const struct rill__allocation *allocation, uintptr_t address) {
  return address - allocation->begin < allocation->size;
}

static uintptr_t end_of(const struct rill__allocation *allocation) { return allocation->begin + allocation->size; }

/* ---- searching ---- */

static unsigned last_bit(uint64_t word) { return 63 - (unsigned)__builtin_clzll(word); }

/* Returns the last allocation in the leaf that begins at or before `address`, or NULL. */
static struct rill__allocation *find_begin(struct leaf *leaf, uintptr_t address) {
  const unsigned grain = (unsigned)(address >> GRAIN_BITS) & (ENTRIES - 1);
  /* Most searches are for an address at which an allocation begins. */
  struct rill__allocation *here = atomic_load_explicit(&leaf->last[grain], memory_order_acquire);
  if (RILL__LIKELY(here != NULL) && RILL__LIKELY(here->begin <= address)) return here;
  uint32_t words = atomic_load_explicit(&leaf->words, memory_order_acquire) & (UINT32_MAX >> (31 - grain / 64));
  while (words != 0) {
    const unsigned word = last_bit(words);
    words &= ~(UINT32_C(1) << word);
    uint64_t bits = atomic_load_explicit(&leaf->begins[word], memory_order_acquire);
    if (word == grain / 64) bits &= UINT64_MAX >> (63 - grain % 64);
    while (bits != 0) {
      const unsigned bit = last_bit(bits);
      bits &= ~(UINT64_C(1) << bit);
      struct rill__allocation *found = atomic_load_explicit(&leaf->last[word * 64 + bit], memory_order_acquire);
      while (found != NULL && found->begin > address) found = atomic_load_explicit(&found->next, memory_order_acquire);
      if (found != NULL) return found;
    }
  }
  return NULL;
}

struct rill__allocation *rill__ranges_find(const void *p) {
  const uintptr_t address = (uintptr_t)p;
  if (address >> ADDRESS_BITS != 0) return NULL;
  struct node *node = &root;
  for (unsigned level = LEVELS - 1;; level--) {
    const uintptr_t entry =
        atomic_load_explicit(&node->entries[address >> entry_bits(level) & (ENTRIES - 1)], memory_order_acquire);
    if (entry == 0) return NULL;
    if ((entry & 1) == 0) {
      struct rill__allocation *allocation = (struct rill__allocation *)entry;
      return range_contains(allocation, address) ? allocation : NULL;
    }
    if (level == 1) {
      struct leaf *const leaf = below(entry);
      struct rill__allocation *found = find_begin(leaf, address);
      if (found == NULL) found = atomic_load_explicit(&leaf->from_below, memory_order_acquire);
      return found != NULL && range_contains(found, address) ? found : NULL;
    }
    node = below(entry);
  }
}

/* ---- leaves ---- */

/* Adds an allocation to a leaf; `low` is the leaf's first address. */
static void put_in_leaf(struct leaf *leaf, uintptr_t low, struct rill__allocation *allocation) {
  if (allocation->begin < low) {
    atomic_store_explicit(&leaf->from_below, allocation, memory_order_release);
    return;
  }
  const unsigned grain = (unsigned)(allocation->begin >> GRAIN_BITS) & (ENTRIES - 1), word = grain / 64;
  _Atomic(struct rill__allocation *) *link = &leaf->last[grain];
  struct rill__allocation *next = atomic_load(link);
  while (next != NULL && next->begin > allocation->begin) {
    link = &next->next;
    next = atomic_load(link);
  }
  if (next == allocation) return; /* a node that was just created has it already */
  /* The new allocation is complete before readers can reach it, and its bit is set after it can be found. */
  atomic_store_explicit(&allocation->next, next, memory_order_release);
  atomic_store_explicit(link, allocation, memory_order_release);
  const uint64_t bits = atomic_load_explicit(&leaf->begins[word], memory_order_relaxed);
  atomic_store_explicit(&leaf->begins[word], bits | UINT64_C(1) << grain % 64, memory_order_release);
  const uint32_t words = atomic_load_explicit(&leaf->words, memory_order_relaxed);
  atomic_store_explicit(&leaf->words, words | UINT32_C(1) << word, memory_order_release);
}

/* Removes an allocation from a leaf, or replaces it by `by` if that is not NULL. */
static void take_from_leaf(struct leaf *leaf, uintptr_t low, struct rill__allocation *allocation,
                           struct rill__allocation *by) {
  if (allocation->begin < low) {
    if (atomic_load(&leaf->from_below) == allocation) {
      atomic_store_explicit(&leaf->from_below, by, memory_order_release);
    }
    return;
  }
  const unsigned grain = (unsigned)(allocation->begin >> GRAIN_BITS) & (ENTRIES - 1), word = grain / 64;
  _Atomic(struct rill__allocation *) *link = &leaf->last[grain];
  struct rill__allocation *at = atomic_load(link);
  while (at != NULL && at != allocation) {
    link = &at->next;
    at = atomic_load(link);
  }
  if (at == NULL) return;
  if (by != NULL) {
    atomic_store_explicit(&by->next, atomic_load(&allocation->next), memory_order_release);
    atomic_store_explicit(link, by, memory_order_release);
    return;
  }
  /* The allocation keeps its `next`, for readers that have found it. */
  atomic_store_explicit(link, atomic_load(&allocation->next), memory_order_release);
  if (atomic_load(&leaf->last[grain]) != NULL) return;
  const uint64_t bits = atomic_load_explicit(&leaf->begins[word], memory_order_relaxed) & ~(UINT64_C(1) << grain % 64);
  atomic_store_explicit(&leaf->begins[word], bits, memory_order_release);
  if (bits != 0) return;
  const uint32_t words = atomic_load_explicit(&leaf->words, memory_order_relaxed);
  atomic_store_explicit(&leaf->words, words & ~(UINT32_C(1) << word), memory_order_release);
}

/* ---- changing ---- */

static uintptr_t greater(uintptr_t a, uintptr_t b) { return a > b ? a : b; }
static uintptr_t lesser(uintptr_t a, uintptr_t b) { return a < b ? a : b; }

/* Visits the entries of a node whose spans overlap [begin, end), which is not empty and lies in the span of the
 * node. */
#define FOR_ENTRIES(node, level, begin, end, entry, low)                                                       \
  for (uintptr_t low = (begin) >> entry_bits(level) << entry_bits(level); low < (end);                         \
       low += (uintptr_t)1 << entry_bits(level))                                                               \
    for (_Atomic uintptr_t *entry = &(node)->entries[low >> entry_bits(level) & (ENTRIES - 1)]; entry != NULL; \
         entry = NULL)

/* Adds an allocation after room has been made: every entry is empty, the allocation itself, or a node with room. */
static void put_range(struct node *node, unsigned level, uintptr_t begin, uintptr_t end,
                      struct rill__allocation *allocation) {
  FOR_ENTRIES(node, level, begin, end, entry, low) {
    const uintptr_t value = atomic_load(entry);
    if ((value & 1) == 0) {
      atomic_store_explicit(entry, (uintptr_t)allocation, memory_order_release);
    } else if (level == 1) {
      put_in_leaf(below(value), low, allocation);
    } else {
      put_range(below(value), level - 1, greater(begin, low), lesser(end, low + ((uintptr_t)1 << entry_bits(level))),
                allocation);
    }
  }
}

/* Replaces the allocation in an entry by a node that contains the allocation. */
static bool divide(_Atomic uintptr_t *entry, unsigned level, uintptr_t low) {
  struct rill__allocation *held = below(atomic_load(entry));
  const uintptr_t high = low + ((uintptr_t)1 << entry_bits(level));
  void *made = calloc(1, level == 1 ? sizeof(struct leaf) : sizeof(struct node));
  if (made == NULL) return false;
  if (level == 1) {
    put_in_leaf(made, low, held);
  } else {
    put_range(made, level - 1, greater(held->begin, low), lesser(end_of(held), high), held);
  }
  /* Published when the node is complete, so readers find the allocation before and after. */
  atomic_store_explicit(entry, (uintptr_t)made | 1, memory_order_release);
  return true;
}

/* Makes room for another allocation in [begin, end). */
static bool make_room_in_node(struct node *node, unsigned level, uintptr_t begin, uintptr_t end) {
  FOR_ENTRIES(node, level, begin, end, entry, low) {
    if (atomic_load(entry) == 0) continue;
    if ((atomic_load(entry) & 1) == 0 && !divide(entry, level, low)) return false;
    const uintptr_t high = low + ((uintptr_t)1 << entry_bits(level));
    if (level > 1 && !make_room_in_node(below(atomic_load(entry)), level - 1, greater(begin, low), lesser(end, high))) {
      return false;
    }
  }
  return true;
}

static void take_range(struct node *node, unsigned level, uintptr_t begin, uintptr_t end,
                       struct rill__allocation *allocation, struct rill__allocation *by) {
  FOR_ENTRIES(node, level, begin, end, entry, low) {
    const uintptr_t value = atomic_load(entry);
    if (value == (uintptr_t)allocation) {
      atomic_store_explicit(entry, (uintptr_t)by, memory_order_release);
    } else if ((value & 1) != 0 && level == 1) {
      take_from_leaf(below(value), low, allocation, by);
    } else if ((value & 1) != 0) {
      take_range(below(value), level - 1, greater(begin, low), lesser(end, low + ((uintptr_t)1 << entry_bits(level))),
                 allocation, by);
    }
  }
}

static bool has_address_bits(uintptr_t begin, size_t size) {
  return size > 0 && begin <= UINTPTR_MAX - size && (begin + size - 1) >> ADDRESS_BITS == 0;
}

bool rill__ranges_insert(struct rill__allocation *allocation) {
  if (!has_address_bits(allocation->begin, allocation->size)) return false;
  if (!make_room_in_node(&root, LEVELS - 1, allocation->begin, end_of(allocation))) return false;
  put_range(&root, LEVELS - 1, allocation->begin, end_of(allocation), allocation);
  return true;
}

void rill__ranges_remove(struct rill__allocation *allocation) {
  take_range(&root, LEVELS - 1, allocation->begin, end_of(allocation), allocation, NULL);
}

void rill__ranges_replace(struct rill__allocation *allocation, struct rill__allocation *by) {
  take_range(&root, LEVELS - 1, allocation->begin, end_of(allocation), allocation, by);
}

/* ---- overlaps ---- */

/* Returns the first allocation that begins in [begin, end), which lies in one leaf. */
static struct rill__allocation *first_in_leaf(struct leaf *leaf, uintptr_t begin, uintptr_t end) {
  for (uintptr_t at = begin >> GRAIN_BITS; at <= (end - 1) >> GRAIN_BITS; at++) {
    const unsigned grain = (unsigned)at & (ENTRIES - 1);
    if ((atomic_load(&leaf->begins[grain / 64]) >> grain % 64 & 1) == 0) continue;
    for (struct rill__allocation *a = atomic_load(&leaf->last[grain]); a != NULL; a = atomic_load(&a->next)) {
      if (a->begin >= begin && a->begin < end) return a;
    }
  }
  return NULL;
}

static struct rill__allocation *first_in(struct node *node, unsigned level, uintptr_t begin, uintptr_t end) {
  FOR_ENTRIES(node, level, begin, end, entry, low) {
    const uintptr_t value = atomic_load(entry);
    if (value == 0) continue;
    const uintptr_t from = greater(begin, low), to = lesser(end, low + ((uintptr_t)1 << entry_bits(level)));
    struct rill__allocation *found = NULL;
    if ((value & 1) == 0) {
      struct rill__allocation *held = below(value);
      if (held->begin < to && from < end_of(held)) found = held;
    } else {
      found = level == 1 ? first_in_leaf(below(value), from, to) : first_in(below(value), level - 1, from, to);
    }
    if (found != NULL) return found;
  }
  return NULL;
}

struct rill__allocation *rill__ranges_overlapping(uintptr_t begin, size_t size) {
  if (!has_address_bits(begin, size)) return NULL;
  /* An allocation that starts before `begin` contains the first byte. */
  struct rill__allocation *found = rill__ranges_find((const void *)begin);
  return found != NULL ? found : first_in(&root, LEVELS - 1, begin, begin + size);
}

/* ---- neighbours ---- */

/* Both functions search ranges of doubling size until one contains an allocation, and then search for a nearer one. */

struct rill__allocation *rill__ranges_before(uintptr_t p) {
  struct rill__allocation *found = NULL, *next = NULL;
  if (p >> ADDRESS_BITS != 0) p = (uintptr_t)1 << ADDRESS_BITS;
  for (uintptr_t size = 1 << GRAIN_BITS; next == NULL && size / 2 < p; size *= 2) {
    const uintptr_t from = size < p ? p - size : 0;
    next = rill__ranges_overlapping(from, p - from);
  }
  while (next != NULL) {
    found = next;
    next = end_of(found) < p ? rill__ranges_overlapping(end_of(found), p - end_of(found)) : NULL;
  }
  return found;
}

struct rill__allocation *rill__ranges_after(uintptr_t p) {
  const uintptr_t end = (uintptr_t)1 << ADDRESS_BITS;
  struct rill__allocation *found = NULL, *next = NULL;
  if (p >= end) return NULL;
  for (uintptr_t size = 1 << GRAIN_BITS; next == NULL && size / 2 < end - p; size *= 2) {
    next = rill__ranges_overlapping(p, size < end - p ? size : end - p);
  }
  while (next != NULL) {
    found = next;
    next = found->begin > p ? rill__ranges_overlapping(p, found->begin - p) : NULL;
  }
  return found;
}
