/* A ring of what is looked at in turn: the first is the one to be looked at next. */
#ifndef RILL_CORE_POOL_RING_H
#define RILL_CORE_POOL_RING_H

#include <stddef.h>

struct rill__ring_link {
  struct rill__ring_link *next, *prev; /* NULL: it is in no ring */
};

struct rill__ring {
  struct rill__ring_link *first;
  size_t count;
};

/* Puts it in as the first, unless it is in already. */
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

/* Takes it out, if it is in. */
static inline void rill__ring_leave(struct rill__ring *ring, struct rill__ring_link *link) {
  if (link->next == NULL) return;
  if (ring->first == link) ring->first = link->next != link ? link->next : NULL;
  link->prev->next = link->next;
  link->next->prev = link->prev;
  link->next = link->prev = NULL;
  ring->count--;
}

/* The first becomes the last. */
static inline void rill__ring_turn(struct rill__ring *ring) { ring->first = ring->first->next; }

#endif
