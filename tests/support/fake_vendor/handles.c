/* Handles: addresses of slots that are never given back to the system, so any pointer a caller passes can be checked
 * safely. An ended slot stays empty, so that a stale handle is always noticed; a test can enable immediate reuse of
 * handles, as in drivers. */
#include "engine.h"

#include <stdlib.h>

struct slot {
  enum fake_kind kind, was;
  void *object;
  struct slot *next_free;
};

enum { SLOTS = 1024 };

struct chunk {
  struct slot slots[SLOTS];
  struct chunk *next;
};

const char *const fake_kind_names[FAKE_KINDS] = { "free",     "context", "stream",     "event",      "module",
                                                  "function", "graph",   "graph node", "graph exec", "user object" };

static struct chunk *chunks;
static size_t used = SLOTS; /* of the newest chunk */
static struct slot *ended;  /* latest first */
static size_t live[FAKE_KINDS];
static bool reuse, reuse_read;

static struct slot *find(const void *handle) {
  for (struct chunk *chunk = chunks; chunk != NULL; chunk = chunk->next) {
    const uintptr_t offset = (uintptr_t)handle - (uintptr_t)chunk->slots;
    if (offset < sizeof chunk->slots)
      return offset % sizeof(struct slot) == 0 ? &chunk->slots[offset / sizeof(struct slot)] : NULL;
  }
  return NULL;
}

static struct slot *new_slot(void) {
  if (!reuse_read) fake_handle_set_reuse(fake_options()->reuse_handles);
  if (reuse && ended != NULL) {
    struct slot *slot = ended;
    ended = slot->next_free;
    return slot;
  }
  if (used == SLOTS) {
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) return NULL;
    chunk->next = chunks;
    chunks = chunk;
    used = 0;
  }
  return &chunks->slots[used++];
}

void *fake_handle_new(enum fake_kind kind, void *object) {
  struct slot *slot = new_slot();
  if (slot == NULL) return NULL;
  *slot = (struct slot){ .kind = kind, .was = kind, .object = object };
  live[kind]++;
  return slot;
}

void *fake_handle_get(enum fake_kind kind, const void *handle) {
  const struct slot *slot = find(handle);
  return slot != NULL && slot->kind == kind ? slot->object : NULL;
}

bool fake_handle_was(enum fake_kind kind, const void *handle) {
  const struct slot *slot = find(handle);
  return slot != NULL && slot->kind == FAKE_FREE_SLOT && slot->was == kind;
}

void fake_handle_end(void *handle) {
  struct slot *slot = find(handle);
  live[slot->kind]--;
  slot->kind = FAKE_FREE_SLOT;
  slot->object = NULL;
  slot->next_free = ended;
  ended = slot;
}

void fake_handle_set_reuse(bool on) {
  reuse = on;
  reuse_read = true;
}

size_t fake_handle_live(enum fake_kind kind) { return live[kind]; }
