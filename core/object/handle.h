/* Handles and their objects.
 *
 * An id consists of a kind (8 bits), a slot (24) and a generation (32).  Slots live in chunks that are never freed or
 * moved, so any id is safe to look up.  A slot's generation and its reference count share one atomic word: an object is
 * found if and only if its id's generation is the slot's and the count is not 0.  When its object has been destroyed, a
 * slot is reused with the next generation; a slot whose generations are used up is never reused.
 *
 * Besides the references that users hold, `refs` counts what needs the object's memory: the handle itself while it is
 * live, calls that block, and other objects.  At 0 the object is destroyed.
 *
 * The handle's own ref of a retired object is dropped once no call that may have found the object is running.  A
 * postponed object cannot be destroyed yet, because its work is not complete.  Every call except submissions ends with
 * rill__reclaim.
 *
 * Invariants
 * - An object that owns more than host memory is destroyed by the first rill__reclaim that no call of another thread
 *   delays.  Objects that own only host memory and recycled objects wait until several can be destroyed together,
 *   because scanning all threads costs microseconds.
 * - While one call delays all destruction, rill__reclaim only checks that this call is still running, however many
 *   objects wait.
 * - If there are up to RILL__POSTPONED_FEW postponed objects, each rill__reclaim tries all of them; otherwise it tries
 *   a few in turn.  Objects that wait only for the work of one stream are all tried when the host has waited for that
 *   stream.
 */
#ifndef RILL_CORE_OBJECT_HANDLE_H
#define RILL_CORE_OBJECT_HANDLE_H

#include "core/object/error.h"

enum rill__kind {
  RILL__DEVICE = 1,
  RILL__STREAM,
  RILL__EVENT,
  RILL__MODULE,
  RILL__KERNEL,
  RILL__POOL,
  RILL__GRAPH,
  RILL__GRAPH_EXEC,
  RILL__GRAPH_NODE,
  RILL__KIND_END
};

/* Nodes of a graph come in pages, and the pages are the objects: the id of a node is the id of its page, whose lowest
 * bits are 0, plus the node's position in the page. */
enum { RILL__PAGE_NODES = 64 };

struct rill__device;

/* The first member of every object. */
struct rill__object {
  uint64_t id;                 /* 0 until published */
  struct rill__device *device; /* for a device: itself */
  char *label;                 /* NULL if there is none */
  _Atomic uint32_t refs;
  _Atomic bool borrowed; /* retain and release do nothing */
  bool slot_freed;
  bool host_only; /* destroying the object frees only host memory, so it can wait until several objects can be destroyed
                     together */
  /* frees everything or postpones the object; called on any thread, outside epochs */
  void (*destroy)(struct rill__object *);
  /* returns true if it keeps the object and its slot for rill__object_republish; may be NULL */
  bool (*recycle)(struct rill__object *);
  uint64_t retired_at;
  /* for a postponed object: number of the stream whose work it waits for (rill__stream.number); 0 if it waits for
   * something else */
  uint64_t after;
  struct rill__object *next_retired;
};

struct rill__slot {
  _Atomic uint64_t word; /* generation << 32 | references */
  struct rill__object *object;
  uint32_t next_free;
};

enum { RILL__CHUNK_SLOTS = 1024, RILL__CHUNKS = (1 << 24) / RILL__CHUNK_SLOTS };

extern _Atomic(struct rill__slot *) rill__chunks[RILL__KIND_END][RILL__CHUNKS];

/* Returns the slot of a published object; at any time, no two objects of a kind have the same slot. */
static inline uint32_t rill__object_slot(const struct rill__object *object) {
  return (uint32_t)(object->id >> 32) & 0xffffffu;
}

/* Returns the object with the id, or NULL.  Call it only inside an epoch. */
static inline void *rill__find(uint64_t id, enum rill__kind kind) {
  if (RILL__UNLIKELY(id >> 56 != (uint64_t)kind)) return NULL;
  const uint32_t index = (uint32_t)(id >> 32) & 0xffffffu;
  struct rill__slot *chunk = atomic_load_explicit(&rill__chunks[kind][index / RILL__CHUNK_SLOTS], memory_order_acquire);
  if (RILL__UNLIKELY(chunk == NULL)) return NULL;
  struct rill__slot *slot = &chunk[index % RILL__CHUNK_SLOTS];
  const uint64_t word = atomic_load_explicit(&slot->word, memory_order_seq_cst);
  if (RILL__UNLIKELY(word >> 32 != (uint32_t)id || (uint32_t)word == 0)) return NULL;
  return slot->object;
}

/* Fails with the reason why rill__find does not find the id. */
rill_status rill__fail_handle(uint64_t id, enum rill__kind kind, const char *argument) __attribute__((cold));

/* Finds the object of a handle for a local pointer, or returns from the calling function.  An error names the first
 * object found. */
#define RILL_RESOLVE(kind, handle, argument, object)                                                  \
  do {                                                                                                \
    rill__announce(self, (handle).id);                                                                \
    *(object) = rill__find((handle).id, (kind));                                                      \
    if (RILL__UNLIKELY(*(object) == NULL)) return rill__fail_handle((handle).id, (kind), (argument)); \
    if (self->subject == NULL) self->subject = &(*(object))->base;                                    \
  } while (0)

/* Allocates an object of `size` zeroed bytes with a copy of the label and one ref, which belongs to the handle. */
rill_status rill__object_new(size_t size, struct rill__device *device, const char *label,
                             void (*destroy)(struct rill__object *), void *out);

/* Does the same for `object`, zeroed bytes from calloc, without a label.  Such an object shares cache lines, because no
 * two threads write it. */
void rill__object_init(struct rill__object *object, struct rill__device *device,
                       void (*destroy)(struct rill__object *));

/* Moves a recycled object to the next generation of its slot, with one reference and one ref. */
void rill__object_republish(struct rill__object *object);

/* Frees an object's own memory; `destroy` calls it last. */
void rill__object_free(struct rill__object *object);

/* Called by `destroy` if the native object cannot be destroyed yet: a later rill__reclaim tries again.  `after` says
 * when that can succeed. */
void rill__object_postpone(struct rill__object *object);

/* Assigns the object its id, with one reference.  On failure the caller still owns the object. */
rill_status rill__object_publish(struct rill__object *object, enum rill__kind kind);

/* Implement retain and release for every counted kind.  `last` is set to the object if its last reference was released;
 * the caller then undoes what is necessary and passes the object to rill__object_retire. */
rill_status rill__object_retain(uint64_t id, enum rill__kind kind);
rill_status rill__object_release(uint64_t id, enum rill__kind kind, struct rill__object **last);

/* Makes the object's handle stale, and drops the handle's ref once no call can be using it. */
void rill__object_retire(struct rill__object *object);

/* Does the same for an object that was never published. */
void rill__object_defer(struct rill__object *object);

/* Returns true until the last reference is released. */
bool rill__object_is_live(const struct rill__object *object);

/* Adds a reference for another holder of the handle, from inside the library; returns false if the last reference was
 * already released. */
bool rill__object_try_ref(struct rill__object *object);

void rill__ref(struct rill__object *object);
bool rill__ref_if_alive(struct rill__object *object); /* false if the last ref was already dropped */
void rill__unref(struct rill__object *object);

/* Leaves the epoch for a call that may block and keeps `object` alive until rill__unref. */
static inline void rill__ref_and_leave(struct rill__thread *self, struct rill__object *object) {
  rill__ref(object);
  rill__leave(&self);
}

/* Called before rill__reclaim (core/object/thread.h) at the end of a call that has waited for a stream's work.  The
 * first function tries all objects postponed until that stream's work is complete; `stream` is its number.  The second
 * tries all postponed objects, for a caller that needs memory that one of them owns, or that has waited for a device.
 */
enum { RILL__POSTPONED_FEW = 16 };
void rill__reclaim_after(uint64_t stream);
void rill__reclaim_all(void);

/* The name of an object for messages: "stream "copy"", or "stream 0x200000000000001" for an object without a label. */
struct rill__name {
  char text[112];
};
struct rill__name rill__name_of(const struct rill__object *object);
const char *rill__kind_name(enum rill__kind kind);

/* Take and release the locks of this file, around a fork. */
void rill__handles_lock(void);
void rill__handles_unlock(void);

#endif
