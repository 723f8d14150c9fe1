/* A ring of items that are processed in turn; `first` is the next one. */
#ifndef RILL_CORE_POOL_RING_H
#define RILL_CORE_POOL_RING_H

#include <stddef.h>

struct rill__ring_link {
  struct rill__ring_link *next, *prev; /* NULL if it is in no ring */
};

struct rill__ring {
  struct rill__ring_link *first;
  size_t count;
};

/* Adds an item as the first, unless it is in the ring already. */
static inline void rill__ring_enter(struct rill__ring *ring, struct rill__ring_link *link) {
  if (link->next != NULL) return;
  struct rill__ring_link *const first = ring->first != NULL ? ring->first : link;
  if (ring->first == NULL) link->next = link->prev = link;
  link->next = first;
  link->prev = first->prev;
  link->prev->next = link->next->prev = link;
  ring->first = link;
  ring->count++;
}

/* Removes an item if it is in the ring. */
static inline void rill__ring_leave(struct rill__ring *ring, struct rill__ring_link *link) {
  if (link->next == NULL) return;
  if (ring->first == link) ring->first = link->next != link ? link->next : NULL;
  link->prev->next = link->next;
  link->next->prev = link->prev;
  link->next = link->prev = NULL;
  ring->count--;
}

/* Makes the first item the last. */
static inline void rill__ring_turn(struct rill__ring *ring) { ring->first = ring->first->next; }

#endif
