#include "core/object/handle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic(struct rill__slot *) rill__chunks[RILL__KIND_END][RILL__CHUNKS];

/* Guards the free lists and the making of chunks. */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uint32_t first_free; /* index + 1; 0: none */
  uint32_t used;       /* slots ever used */
} tables[RILL__KIND_END];

static _Atomic(struct rill__object *) retired;
static _Atomic uint32_t retired_urgent, retired_recyclable; /* how many of `retired` are which, about */
enum { RECYCLABLE_BATCH = 64 };

/* How many calls of rill__reclaim still look away.  A call that stands still (its thread was preempted) holds up what
 * was retired since; to walk that for each release would cost the square of its length. */
static _Atomic uint32_t looks_away;
enum { SHORT_LIST = 64 };

/* Objects whose native part could not go when they were destroyed, the one that was tried longest ago first.  Each try
 * asks the driver, so a call tries few of them, and after tries in vain the next ones wait for ever more calls. */
static struct {
  struct rill__object *first, **last; /* linked by next_retired */
  uint32_t pause;                     /* calls to the next try, after one in vain */
} postponed = { NULL, &postponed.first, 1 };
static _Atomic uint32_t postponed_count, calls_to_try;
enum { TRIES = 2, LONGEST_PAUSE = 64 };

static pthread_mutex_t reclaim_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t postponed_lock = PTHREAD_MUTEX_INITIALIZER;

static enum rill__kind kind_of(uint64_t id) { return (enum rill__kind)(id >> 56); }

static struct rill__slot *slot_at(enum rill__kind kind, uint32_t index) {
  struct rill__slot *chunk = atomic_load_explicit(&rill__chunks[kind][index / RILL__CHUNK_SLOTS], memory_order_acquire);
  return chunk == NULL ? NULL : &chunk[index % RILL__CHUNK_SLOTS];
}

static struct rill__slot *slot_of(const struct rill__object *object) {
  return slot_at(kind_of(object->id), (uint32_t)(object->id >> 32) & 0xffffffu);
}

/* From one generation of a slot to the next. */
static uint32_t generation_step(enum rill__kind kind) { return kind == RILL__GRAPH_NODE ? RILL__PAGE_NODES : 1; }

const char *rill__kind_name(enum rill__kind kind) {
  static const char *const names[RILL__KIND_END] = { "object", "device", "stream", "event",      "module",
                                                     "kernel", "pool",   "graph",  "graph_exec", "graph_node" };
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
    return rill__fail(RILL_ERROR_INVALID_HANDLE, "%s 0x%llx is %s%s, where one of kind %s is wanted", argument,
                      (unsigned long long)id, known ? "a handle of kind " : "no handle of rill",
                      known ? rill__kind_name(given) : "", wanted);
  }
  struct rill__slot *slot = slot_at(kind, (uint32_t)(id >> 32) & 0xffffffu);
  const uint32_t generation = slot == NULL ? 0 : (uint32_t)(atomic_load(&slot->word) >> 32);
  const uint32_t of_id = (uint32_t)id - (uint32_t)id % generation_step(kind);
  if (of_id == 0 || of_id > generation) {
    return rill__fail(RILL_ERROR_INVALID_HANDLE, "%s 0x%llx was never a handle of kind %s", argument,
                      (unsigned long long)id, wanted);
  }
  return rill__fail(RILL_ERROR_STALE_HANDLE, "%s 0x%llx: the last reference to the %s has been released" RILL_HINT "%s",
                    argument, (unsigned long long)id, wanted,
                    kind == RILL__GRAPH_NODE ? "keep its graph, or an execution object made from it"
                                             : "retain it for as long as it is used");
}

void rill__object_init(struct rill__object *object, struct rill__device *device,
                       void (*destroy)(struct rill__object *)) {
  object->device = device;
  object->destroy = destroy;
  atomic_init(&object->refs, 1);
}

/* `memory`: of `size` bytes; NULL: there was none. */
static rill_status make_object(void *memory, size_t size, struct rill__device *device, const char *label,
                               void (*destroy)(struct rill__object *), void *out) {
  struct rill__object *object = memory;
  char *copy = label != NULL && label[0] != '\0' ? strdup(label) : NULL;
  if (object == NULL || (copy == NULL && label != NULL && label[0] != '\0')) {
    free(object);
    free(copy);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for an object of %zu bytes", size);
  }
  memset(object, 0, size);
  rill__object_init(object, device, destroy);
  object->label = copy;
  *(struct rill__object **)out = object;
  return RILL_OK;
}

rill_status rill__object_new(size_t size, struct rill__device *device, const char *label,
                             void (*destroy)(struct rill__object *), void *out) {
  /* Objects carry atomics that different threads write: whole cache lines of their own. */
  const size_t rounded = (size + 63) / 64 * 64;
  return make_object(aligned_alloc(64, rounded), rounded, device, label, destroy, out);
}

rill_status rill__object_new_small(size_t size, struct rill__device *device, const char *label,
                                   void (*destroy)(struct rill__object *), void *out) {
  return make_object(malloc(size), size, device, label, destroy, out);
}

void rill__object_free(struct rill__object *object) {
  RILL_ASSERT(object->id == 0 || object->slot_freed || !rill__object_is_live(object),
              "an object is destroyed after its slot is dead");
  free(object->label);
  free(object);
}

/* A slot that is free, or NULL.  Under slots_lock. */
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

bool rill__object_revive(struct rill__object *object) {
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
  if (object->borrowed || rill__object_revive(object)) return RILL_OK;
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

static void push_retired(struct rill__object *object) {
  _Atomic uint32_t *const count = object->recycle == NULL && !object->host_only ? &retired_urgent : &retired_recyclable;
  object->next_retired = atomic_load(&retired);
  while (!atomic_compare_exchange_weak(&retired, &object->next_retired, object)) {
  }
  /* Only now: a reclaim that has zeroed the count in between has the object, or the count is still to come. */
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

void rill__object_defer(struct rill__object *object) {
  object->retired_at = atomic_fetch_add(&rill__epoch, 1);
  push_retired(object);
}

void rill__object_retire(struct rill__object *object) {
  struct rill__slot *slot = slot_of(object);
  const uint64_t dead = (uint64_t)(uint32_t)object->id << 32;
  if (RILL__LIKELY(RILL__MEMBARRIER_USABLE)) { /* as in rill__enter: rill__oldest_epoch pays for the order */
    atomic_store_explicit(&slot->word, dead, memory_order_release);
  } else {
    atomic_store(&slot->word, dead);
  }
  rill__object_defer(object);
}

void rill__object_postpone(struct rill__object *object) {
  atomic_store(&object->refs, 1);
  object->next_retired = NULL;
  pthread_mutex_lock(&postponed_lock);
  *postponed.last = object;
  postponed.last = &object->next_retired;
  postponed.pause = 1;
  atomic_store(&calls_to_try, 0);
  atomic_fetch_add(&postponed_count, 1);
  pthread_mutex_unlock(&postponed_lock);
}

static struct rill__object *take_postponed(void) {
  pthread_mutex_lock(&postponed_lock);
  struct rill__object *object = postponed.first;
  if (object != NULL) {
    postponed.first = object->next_retired;
    if (postponed.first == NULL) postponed.last = &postponed.first;
    atomic_fetch_sub(&postponed_count, 1);
  }
  pthread_mutex_unlock(&postponed_lock);
  return object;
}

/* Tries to end a few of the postponed; what cannot go yet is postponed again. */
static void try_postponed(void) {
  const uint32_t before = atomic_load(&postponed_count);
  pthread_mutex_lock(&postponed_lock);
  const uint32_t pause = postponed.pause;
  pthread_mutex_unlock(&postponed_lock);
  rill__errors_suspend();
  for (uint32_t tries = 0; tries < TRIES && tries < before; tries++) {
    struct rill__object *object = take_postponed();
    if (object != NULL) rill__unref(object);
  }
  rill__errors_resume();
  pthread_mutex_lock(&postponed_lock);
  const bool in_vain = atomic_load(&postponed_count) >= before;
  postponed.pause = !in_vain ? 1 : pause < LONGEST_PAUSE ? 2 * pause : LONGEST_PAUSE;
  atomic_store(&calls_to_try, in_vain ? postponed.pause : 0);
  pthread_mutex_unlock(&postponed_lock);
}

static void free_slot(struct rill__object *object) {
  if (object->id == 0 || object->slot_freed) return;
  const enum rill__kind kind = kind_of(object->id);
  if ((uint32_t)object->id > UINT32_MAX - generation_step(kind)) return; /* the slot's generations are used up */
  struct rill__slot *slot = slot_of(object);
  object->slot_freed = true;
  pthread_mutex_lock(&slots_lock);
  slot->object = NULL;
  slot->next_free = tables[kind].first_free;
  tables[kind].first_free = ((uint32_t)(object->id >> 32) & 0xffffffu) + 1;
  pthread_mutex_unlock(&slots_lock);
}

void rill__reclaim_all(void) {
  rill__reclaim();
  rill__errors_suspend();
  for (uint32_t left = atomic_load(&postponed_count); left > 0; left--) {
    struct rill__object *object = take_postponed();
    if (object != NULL) rill__unref(object);
  }
  rill__errors_resume();
}

void rill__reclaim(void) {
  if (RILL__UNLIKELY(atomic_load_explicit(&postponed_count, memory_order_relaxed) != 0)) {
    uint32_t calls = atomic_load_explicit(&calls_to_try, memory_order_relaxed);
    if (calls == 0) {
      try_postponed();
    } else {
      (void)atomic_compare_exchange_strong(&calls_to_try, &calls, calls - 1);
    }
  }
  if (RILL__LIKELY(atomic_load_explicit(&retired_urgent, memory_order_relaxed) == 0) &&
      atomic_load_explicit(&retired_recyclable, memory_order_relaxed) < RECYCLABLE_BATCH) {
    return;
  }
  uint32_t away = atomic_load_explicit(&looks_away, memory_order_relaxed);
  if (away != 0 && atomic_compare_exchange_strong(&looks_away, &away, away - 1)) return;
  if (pthread_mutex_trylock(&reclaim_lock) != 0) return;
  atomic_store(&retired_urgent, 0);
  atomic_store(&retired_recyclable, 0);
  struct rill__object *list = atomic_exchange(&retired, NULL);
  const uint64_t oldest = rill__oldest_epoch();
  struct rill__object *unused = NULL;
  uint32_t held_up = 0;
  while (list != NULL) {
    struct rill__object *object = list;
    list = object->next_retired;
    if (object->retired_at < oldest) {
      object->next_retired = unused;
      unused = object;
    } else {
      push_retired(object);
      held_up++;
    }
  }
  atomic_store(&looks_away, held_up > SHORT_LIST ? held_up / 8 : 0);
  pthread_mutex_unlock(&reclaim_lock);
  while (unused != NULL) {
    struct rill__object *object = unused;
    unused = object->next_retired;
    RILL_ASSERT(object->id == 0 || object->slot_freed || !rill__object_is_live(object),
                "the slot of a retired object is dead before its calls end");
    if (object->recycle != NULL && object->recycle(object)) continue;
    free_slot(object);
    rill__errors_suspend();
    rill__unref(object);
    rill__errors_resume();
  }
}

void rill__object_republish(struct rill__object *object) {
  struct rill__slot *slot = slot_of(object);
  object->id++;
  atomic_store_explicit(&object->refs, 1, memory_order_relaxed); /* nobody else has it yet */
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
