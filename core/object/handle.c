#include "core/object/handle.h"

#include "core/object/locks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic(struct rill__slot *) rill__chunks[RILL__KIND_END][RILL__CHUNKS];

/* Guards the free lists and the allocation of chunks. */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uint32_t first_free; /* index + 1; 0 if none */
  uint32_t used;       /* number of slots ever used */
} tables[RILL__KIND_END];

struct rill__waiting rill__waiting;
static _Atomic(struct rill__object *) retired; /* objects retired since the last scan, the newest first */

/* Objects that were scanned and may still be in use by a call, approximately in the order of their epochs, so that one
 * can be removed without visiting the others.  As long as `blocker` is in the epoch `blocked`, no retired object can be
 * destroyed. */
static struct {
  struct rill__object *first, **last; /* linked by next_retired */
  struct rill__thread *blocker;       /* NULL if none is known */
  uint64_t blocked;
} retired_list = { .last = &retired_list.first };

/* Objects whose native part could not be destroyed yet.  Each is in the list of the stream that it waits for, or else
 * in a list chosen by its address; the object that was tried longest ago comes first.  Every try queries the driver. If
 * there are many objects, each call tries only a few, and after unsuccessful tries more calls pass before the next
 * try. */
enum { LISTS = 64, TRIES = 2, LONGEST_PAUSE = 64 };
struct list {
  struct rill__object *first, *last; /* linked by next_retired */
};
static struct list postponed[LISTS];
static uint32_t next_list;
static uint32_t try_pause = 1, calls_to_try; /* calls of rill__reclaim */

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER;   /* guards `retired_list` */
static pthread_mutex_t postponed_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the postponed objects */

static enum rill__kind kind_of(uint64_t id) { return (enum rill__kind)(id >> 56); }

static struct rill__slot *slot_at(enum rill__kind kind, uint32_t index) {
  struct rill__slot *chunk = atomic_load_explicit(&rill__chunks[kind][index / RILL__CHUNK_SLOTS], memory_order_acquire);
  return chunk == NULL ? NULL : &chunk[index % RILL__CHUNK_SLOTS];
}

static struct rill__slot *slot_of(const struct rill__object *object) {
  return slot_at(kind_of(object->id), (uint32_t)(object->id >> 32) & 0xffffffu);
}

/* Returns the difference between consecutive generations of a slot. */
static uint32_t generation_step(enum rill__kind kind) { return kind == RILL__GRAPH_NODE ? RILL__PAGE_NODES : 1; }

const char *rill__kind_name(enum rill__kind kind) {
  static const char *const names[RILL__KIND_END] = { "object",           "device",    "stream", "event",
                                                     "module",           "kernel",    "pool",   "graph",
                                                     "execution object", "graph node" };
  return kind < RILL__KIND_END ? names[kind] : names[0];
}

struct rill__name rill__name_of(const struct rill__object *object) {
  struct rill__name name;
  if (object->label != NULL) {
    (void)snprintf(name.text, sizeof name.text, "%s \"%.*s\"", rill__kind_name(kind_of(object->id)), 80, object->label);
  } else {
    (void)snprintf(name.text, sizeof name.text, "%s 0x%llx", rill__kind_name(kind_of(object->id)),
                   (unsigned long long)object->id);
  }
  return name;
}

rill_status rill__fail_handle(uint64_t id, enum rill__kind kind, const char *argument) {
  const enum rill__kind given = kind_of(id);
  const char *wanted = rill__kind_name(kind);
  RILL_REQUIRE(id != 0, RILL_ERROR_INVALID_HANDLE, "%s is a null %s handle", argument, wanted);
  if (given != kind) {
    const bool known = given > 0 && given < RILL__KIND_END;
    return rill__fail(RILL_ERROR_INVALID_HANDLE, "%s 0x%llx is %s%s, but a handle of kind %s is needed", argument,
                      (unsigned long long)id, known ? "a handle of kind " : "not a rill handle",
                      known ? rill__kind_name(given) : "", wanted);
  }
  struct rill__slot *slot = slot_at(kind, (uint32_t)(id >> 32) & 0xffffffu);
  const uint32_t generation = slot == NULL ? 0 : (uint32_t)(atomic_load(&slot->word) >> 32);
  const uint32_t of_id = (uint32_t)id - (uint32_t)id % generation_step(kind);
  if (of_id == 0 || of_id > generation) {
    return rill__fail(RILL_ERROR_INVALID_HANDLE, "%s 0x%llx was never a handle of kind %s", argument,
                      (unsigned long long)id, wanted);
  }
  const bool node = kind == RILL__GRAPH_NODE;
  return rill__fail(
      RILL_ERROR_STALE_HANDLE, "%s 0x%llx: %sthe last reference to the %s has been released" RILL_HINT "%s", argument,
      (unsigned long long)id, node ? "it was removed from its graph, or " : "", node ? "graph" : wanted,
      node ? "keep its graph, or an execution object made from it" : "retain it for as long as it is used");
}

void rill__object_init(struct rill__object *object, struct rill__device *device,
                       void (*destroy)(struct rill__object *)) {
  object->device = device;
  object->destroy = destroy;
  atomic_init(&object->refs, 1);
}

rill_status rill__object_new(size_t size, struct rill__device *device, const char *label,
                             void (*destroy)(struct rill__object *), void *out) {
  /* Objects contain atomics that different threads write, so each object gets its own cache lines. */
  const size_t rounded = (size + 63) / 64 * 64;
  struct rill__object *object = aligned_alloc(64, rounded);
  char *copy = label != NULL && label[0] != '\0' ? strdup(label) : NULL;
  if (object == NULL || (copy == NULL && label != NULL && label[0] != '\0')) {
    free(object);
    free(copy);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for an object of %zu bytes", size);
  }
  memset(object, 0, rounded);
  rill__object_init(object, device, destroy);
  object->label = copy;
  *(struct rill__object **)out = object;
  return RILL_OK;
}

void rill__object_free(struct rill__object *object) {
  RILL_ASSERT(object->id == 0 || object->slot_freed || !rill__object_is_live(object),
              "an object is destroyed after its slot is dead");
  free(object->label);
  free(object);
}

/* Returns a free slot, or NULL.  Call it under slots_lock. */
static struct rill__slot *take_slot(enum rill__kind kind, uint32_t *index) {
  if (tables[kind].first_free != 0) {
    *index = tables[kind].first_free - 1;
    struct rill__slot *slot = slot_at(kind, *index);
    tables[kind].first_free = slot->next_free;
    return slot;
  }
  const uint32_t next = tables[kind].used;
  if (next >= (uint32_t)RILL__CHUNKS * RILL__CHUNK_SLOTS) return NULL;
  if (next % RILL__CHUNK_SLOTS == 0) {
    struct rill__slot *chunk = calloc(RILL__CHUNK_SLOTS, sizeof *chunk);
    if (chunk == NULL) return NULL;
    atomic_store_explicit(&rill__chunks[kind][next / RILL__CHUNK_SLOTS], chunk, memory_order_release);
  }
  tables[kind].used++;
  *index = next;
  return slot_at(kind, next);
}

rill_status rill__object_publish(struct rill__object *object, enum rill__kind kind) {
  uint32_t index = 0;
  pthread_mutex_lock(&slots_lock);
  struct rill__slot *slot = take_slot(kind, &index);
  pthread_mutex_unlock(&slots_lock);
  RILL_REQUIRE(slot != NULL, RILL_ERROR_OUT_OF_MEMORY, "no slot is left for another %s", rill__kind_name(kind));
  const uint64_t generation = (atomic_load(&slot->word) >> 32) + generation_step(kind);
  object->id = (uint64_t)kind << 56 | (uint64_t)index << 32 | generation;
  slot->object = object;
  atomic_store_explicit(&slot->word, generation << 32 | 1, memory_order_release);
  return RILL_OK;
}

bool rill__object_is_live(const struct rill__object *object) {
  const uint64_t word = atomic_load(&slot_of(object)->word);
  return word >> 32 == (uint32_t)object->id && (uint32_t)word != 0;
}

bool rill__object_try_ref(struct rill__object *object) {
  struct rill__slot *slot = slot_of(object);
  uint64_t word = atomic_load(&slot->word);
  do {
    if (word >> 32 != (uint32_t)object->id || (uint32_t)word == 0 || (uint32_t)word == UINT32_MAX) return false;
  } while (!atomic_compare_exchange_weak(&slot->word, &word, word + 1));
  return true;
}

rill_status rill__object_retain(uint64_t id, enum rill__kind kind) {
  struct rill__object *object = rill__find(id, kind);
  if (object == NULL) return rill__fail_handle(id, kind, rill__kind_name(kind));
  if (object->borrowed || rill__object_try_ref(object)) return RILL_OK;
  if (rill__find(id, kind) != NULL) {
    return rill__fail(RILL_ERROR_OUT_OF_RANGE, "the %s already has %u references", rill__kind_name(kind), UINT32_MAX);
  }
  return rill__fail_handle(id, kind, rill__kind_name(kind));
}

rill_status rill__object_release(uint64_t id, enum rill__kind kind, struct rill__object **last) {
  *last = NULL;
  if (id == 0) return RILL_OK;
  struct rill__object *object = rill__find(id, kind);
  if (object == NULL) return rill__fail_handle(id, kind, rill__kind_name(kind));
  if (object->borrowed) return RILL_OK;
  struct rill__slot *slot = slot_of(object);
  uint64_t word = atomic_load(&slot->word);
  do {
    if ((uint32_t)word == 0) return rill__fail_handle(id, kind, rill__kind_name(kind));
  } while (!atomic_compare_exchange_weak(&slot->word, &word, word - 1));
  if ((uint32_t)word == 1) *last = object;
  return RILL_OK;
}

/* ---- retiring ---- */

static uint32_t weight_of(const struct rill__object *object) {
  return object->recycle == NULL && !object->host_only ? RILL__RECLAIM_WEIGHT : 1;
}

void rill__object_defer(struct rill__object *object) {
  object->retired_at = atomic_fetch_add(&rill__epoch, 1);
  atomic_fetch_add_explicit(&rill__waiting.retired, weight_of(object), memory_order_relaxed);
  object->next_retired = atomic_load(&retired);
  while (!atomic_compare_exchange_weak(&retired, &object->next_retired, object)) {
  }
}

void rill__object_retire(struct rill__object *object) {
  struct rill__slot *slot = slot_of(object);
  const uint64_t dead = (uint64_t)(uint32_t)object->id << 32;
  if (RILL__LIKELY(RILL__MEMBARRIER_USABLE)) { /* rill__oldest_epoch provides the ordering */
    atomic_store_explicit(&slot->word, dead, memory_order_release);
  } else {
    atomic_store(&slot->word, dead);
  }
  rill__object_defer(object);
}

static void free_slot(struct rill__object *object) {
  if (object->id == 0 || object->slot_freed) return;
  const enum rill__kind kind = kind_of(object->id);
  if ((uint32_t)object->id > UINT32_MAX - generation_step(kind)) return; /* all generations of the slot are used up */
  struct rill__slot *slot = slot_of(object);
  object->slot_freed = true;
  pthread_mutex_lock(&slots_lock);
  slot->object = NULL;
  slot->next_free = tables[kind].first_free;
  tables[kind].first_free = ((uint32_t)(object->id >> 32) & 0xffffffu) + 1;
  pthread_mutex_unlock(&slots_lock);
}

/* Appends the objects retired since the last call to those that were scanned. */
static void scan_retired(void) {
  struct rill__object *list = atomic_exchange(&retired, NULL), *turned = NULL;
  struct rill__object **const end = retired_list.last;
  if (list != NULL) retired_list.last = &list->next_retired;
  while (list != NULL) {
    struct rill__object *object = list;
    list = object->next_retired;
    object->next_retired = turned;
    turned = object;
  }
  *end = turned;
}

/* Returns the retired objects that no call can be using any more. */
static struct rill__object *take_unused(void) {
  struct rill__object *unused = NULL, **last = &unused;
  scan_retired();
  if (retired_list.blocker != NULL && atomic_load(&retired_list.blocker->epoch) == retired_list.blocked) return NULL;
  const uint64_t oldest = rill__oldest_epoch(&retired_list.blocker);
  retired_list.blocked = oldest;
  while (retired_list.first != NULL && retired_list.first->retired_at < oldest) {
    struct rill__object *object = retired_list.first;
    retired_list.first = object->next_retired;
    if (retired_list.first == NULL) retired_list.last = &retired_list.first;
    atomic_fetch_sub_explicit(&rill__waiting.retired, weight_of(object), memory_order_relaxed);
    *last = object;
    last = &object->next_retired;
  }
  *last = NULL;
  return unused;
}

/* Destroys retired objects.  `least`: the sum of weights at which scanning all threads is worthwhile.  Returns false if
 * there was nothing to destroy. */
static bool destroy_retired(uint32_t least) {
  if (atomic_load_explicit(&rill__waiting.retired, memory_order_relaxed) < least) return false;
  if (pthread_mutex_trylock(&reclaim_lock) != 0) return false;
  struct rill__object *list = take_unused();
  pthread_mutex_unlock(&reclaim_lock);
  const bool any = list != NULL;
  while (list != NULL) {
    struct rill__object *object = list;
    list = object->next_retired;
    RILL_ASSERT(object->id == 0 || object->slot_freed || !rill__object_is_live(object),
                "the slot of a retired object is dead before its calls end");
    if (object->recycle != NULL && object->recycle(object)) continue;
    free_slot(object);
    rill__unref(object);
  }
  return any;
}

/* ---- postponing ---- */

static struct list *postponed_list(uint64_t stream) { return &postponed[stream % LISTS]; }

void rill__object_postpone(struct rill__object *object) {
  struct list *list = postponed_list(object->after != 0 ? object->after : (uintptr_t)object >> 6);
  atomic_store(&object->refs, 1);
  object->next_retired = NULL;
  if (rill__self != NULL) rill__self->postponed = object;
  pthread_mutex_lock(&postponed_lock);
  *(list->first == NULL ? &list->first : &list->last->next_retired) = object;
  list->last = object;
  atomic_fetch_add(&rill__waiting.postponed, 1);
  calls_to_try = 0;
  pthread_mutex_unlock(&postponed_lock);
}

/* The postponed objects to try. */
struct choice {
  bool all;
  uint64_t stream; /* not 0: all objects that wait for this stream, in addition to the usual ones */
};

/* Moves up to `most` objects from one list to another; only those that wait for `stream` if it is not 0. */
static uint32_t move_postponed(struct list *from, struct rill__object **to, uint64_t stream, uint32_t most) {
  struct rill__object **link = &from->first, *before = NULL;
  uint32_t moved = 0;
  while (*link != NULL && moved < most) {
    struct rill__object *object = *link;
    if (stream != 0 && object->after != stream) {
      before = object;
      link = &object->next_retired;
      continue;
    }
    *link = object->next_retired;
    if (from->last == object) from->last = before;
    object->next_retired = *to;
    *to = object;
    moved++;
  }
  return moved;
}

static struct rill__object *take_postponed(const struct choice *choice) {
  struct rill__object *taken = NULL;
  uint32_t moved = 0;
  pthread_mutex_lock(&postponed_lock);
  const uint32_t count = atomic_load(&rill__waiting.postponed);
  if (choice->stream != 0) moved = move_postponed(postponed_list(choice->stream), &taken, choice->stream, UINT32_MAX);
  if (choice->all || count <= RILL__POSTPONED_FEW) {
    for (uint32_t i = 0; i < LISTS; i++) moved += move_postponed(&postponed[i], &taken, 0, UINT32_MAX);
  } else if (choice->stream == 0 && calls_to_try > 0) {
    calls_to_try--;
  } else if (choice->stream == 0) {
    for (uint32_t i = 0; i < LISTS && moved < TRIES; i++)
      moved += move_postponed(&postponed[next_list++ % LISTS], &taken, 0, 1);
  }
  atomic_fetch_sub(&rill__waiting.postponed, moved);
  pthread_mutex_unlock(&postponed_lock);
  return taken;
}

/* Returns true if an object was destroyed. */
static bool try_postponed(struct rill__thread *self, const struct choice *choice) {
  struct rill__object *list = take_postponed(choice);
  const bool tried = list != NULL;
  bool any = false;
  while (list != NULL) {
    struct rill__object *object = list;
    list = object->next_retired;
    self->postponed = NULL;
    rill__unref(object);
    any |= self->postponed != object;
  }
  if (!tried) return false;
  pthread_mutex_lock(&postponed_lock);
  try_pause = any ? 1 : try_pause < LONGEST_PAUSE ? 2 * try_pause : LONGEST_PAUSE;
  calls_to_try = any ? 0 : try_pause;
  pthread_mutex_unlock(&postponed_lock);
  return any;
}

/* ---- reclaiming ---- */

/* Destroys objects until nothing is left.  Destroying an object may retire other objects, and a caller's function that
 * is called meanwhile may release objects; so only the outermost call runs, and repeats. */
static void reclaim(const struct choice *choice) {
  struct rill__thread *self = rill__self != NULL ? rill__self : rill__thread_attach();
  if (self == NULL || self->reclaims || rill__in_host_call) return;
  RILL_ASSERT(rill__is_outside_epochs(),
              "objects are destroyed outside epochs, since destruction may call back or wait");
  RILL_WITHOUT_CANCEL();
  self->reclaims = true;
  self->subject = NULL; /* `subject` may be one of the objects destroyed */
  rill__errors_suspend();
  do {
    while (destroy_retired(choice->all ? 1 : RILL__RECLAIM_WEIGHT)) {
    }
  } while (atomic_load_explicit(&rill__waiting.postponed, memory_order_relaxed) != 0 && try_postponed(self, choice));
  rill__errors_resume();
  self->reclaims = false;
}

void rill__reclaim_now(void) { reclaim(&(struct choice){ .all = false }); }
void rill__reclaim_all(void) { reclaim(&(struct choice){ .all = true }); }

void rill__reclaim_after(uint64_t stream) {
  if (RILL__LIKELY(atomic_load_explicit(&rill__waiting.postponed, memory_order_relaxed) == 0)) return;
  reclaim(&(struct choice){ .stream = stream });
}

void rill__object_republish(struct rill__object *object) {
  struct rill__slot *slot = slot_of(object);
  object->id++;
  atomic_store_explicit(&object->refs, 1, memory_order_relaxed); /* no other thread has the object yet */
  atomic_store_explicit(&slot->word, (uint64_t)(uint32_t)object->id << 32 | 1, memory_order_release);
}

void rill__ref(struct rill__object *object) { atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed); }

bool rill__ref_if_alive(struct rill__object *object) {
  uint32_t refs = atomic_load(&object->refs);
  while (refs != 0) {
    if (atomic_compare_exchange_weak(&object->refs, &refs, refs + 1)) return true;
  }
  return false;
}

void rill__unref(struct rill__object *object) {
  if (atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1) object->destroy(object);
}

void rill__handles_lock(void) {
  pthread_mutex_lock(&reclaim_lock);
  pthread_mutex_lock(&postponed_lock);
  pthread_mutex_lock(&slots_lock);
}

void rill__handles_unlock(void) {
  pthread_mutex_unlock(&slots_lock);
  pthread_mutex_unlock(&postponed_lock);
  pthread_mutex_unlock(&reclaim_lock);
}
