#include "core/graph/places.h"

#include "core/graph/graph.h"

#include <stdlib.h>

struct rill__join {
  uint32_t references;
  uint64_t walk; /* last walk that visited the join */
  struct rill__place *parts;
  size_t count, room;
  size_t next_part;        /* position of a walk */
  struct rill__join *next; /* the join that a walk came from, or the next join to be freed */
};

static uint64_t walks;

void rill__place_keep(struct rill__place place) {
  if (place.join != NULL) place.join->references++;
}

static bool is_last_reference(struct rill__join *join) {
  RILL_ASSERT(join->references > 0, "the holder of a place references its join");
  return --join->references == 0;
}

/* Not recursive, because joins may be nested thousands deep. */
void rill__place_drop(struct rill__place *place) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__join *dead = place->join;
  *place = (struct rill__place){ NULL, NULL };
  if (dead == NULL || !is_last_reference(dead)) return;
  dead->next = NULL;
  while (dead != NULL) {
    struct rill__join *const join = dead;
    dead = join->next;
    for (size_t i = 0; i < join->count; i++) {
      struct rill__join *const part = join->parts[i].join;
      if (part == NULL || !is_last_reference(part)) continue;
      part->next = dead;
      dead = part;
    }
    free(join->parts);
    free(join);
  }
}

static bool is_same(struct rill__place a, struct rill__place b) { return a.node == b.node && a.join == b.join; }

static bool is_none(struct rill__place place) { return place.node == NULL && place.join == NULL; }

static bool make_room_for_part(struct rill__join *join) {
  return rill__graph_make_room(&join->parts, join->count, &join->room, sizeof *join->parts);
}

/* Creates a join that contains only the place and has one reference. */
static struct rill__join *new_join(struct rill__place place) {
  struct rill__join *join = calloc(1, sizeof *join);
  if (join == NULL) return NULL;
  join->references = 1;
  if (!make_room_for_part(join)) {
    free(join);
    return NULL;
  }
  join->parts[join->count++] = place;
  return join;
}

bool rill__place_add(struct rill__place *place, struct rill__place other) {
  RILL_ASSERT_GRAPHS_LOCKED();
  if (is_none(other) || is_same(*place, other)) return true;
  if (is_none(*place)) {
    rill__place_keep(other);
    *place = other;
    return true;
  }
  if (place->join != NULL && is_same(place->join->parts[place->join->count - 1], other)) return true;
  /* A join with several references must not change: other places contain exactly its current nodes. */
  if (place->join == NULL || place->join->references > 1) {
    struct rill__join *const join = new_join(*place); /* takes over the reference that the place had */
    if (join == NULL) return false;
    *place = (struct rill__place){ NULL, join };
  }
  if (!make_room_for_part(place->join)) return false;
  rill__place_keep(other);
  place->join->parts[place->join->count++] = other;
  return true;
}

static void enter_join(struct rill__place_walk *walk, struct rill__join *join) {
  if (join->walk == walk->number) return;
  join->walk = walk->number;
  join->next_part = 0;
  join->next = walk->at;
  walk->at = join;
}

struct rill__place_walk rill__place_walk(struct rill__place place) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__place_walk walk = { .node = place.node, .number = ++walks };
  if (place.join != NULL) enter_join(&walk, place.join);
  return walk;
}

struct rill__graph_node *rill__place_next(struct rill__place_walk *walk) {
  struct rill__graph_node *node = walk->node;
  walk->node = NULL;
  while (node == NULL && walk->at != NULL) {
    struct rill__join *const join = walk->at;
    if (join->next_part == join->count) {
      walk->at = join->next;
      continue;
    }
    const struct rill__place part = join->parts[join->next_part++];
    node = part.node;
    if (part.join != NULL) enter_join(walk, part.join);
  }
  return node;
}
