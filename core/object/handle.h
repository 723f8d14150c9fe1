/* Handles and their objects.
 *
 * An id is kind (8 bits), slot (24) and generation (32).  Slots live in chunks that are never freed or moved, so
 * any id is safe to look at.  A slot's generation and count of references share one atomic word: an object is
 * found exactly if its id's generation is the slot's and the count is not 0.  A slot is used again, with the
 * next generation, when its object has been destroyed; one whose generations are used up never is.
 *
 * Beside the references that users hold, `keeps` counts who needs the object's memory: the handle itself as
 * long as it lives, calls that block, and other objects.  At 0 the object is destroyed.
 *
 * A retired object has lost its handle's keep, but for calls that may have found it.  A postponed one cannot be
 * destroyed yet, because its work is not complete.  Every call but a submission ends with rill__reclaim.
 *
 * Invariants
 * - What owns more than host memory is destroyed by the first rill__reclaim that no other thread's call holds up.  What
 *   does not, and what is recycled, waits for company: looking at all threads costs microseconds.
 * - While one call holds everything up, a look costs no more than finding that call still there, however much waits.
 * - Up to RILL__POSTPONED_FEW postponed objects are all tried by each rill__reclaim.  Of more a few are, in turn; those
 *   that wait for one stream's work alone are all tried when the host has waited for that stream.
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

/* Nodes of a graph come in pages, which are the objects: a node's id is its page's, whose lowest bits are 0, plus its
 * place. */
enum { RILL__PAGE_NODES = 64 };

struct rill__device;

/* The first member of every object. */
struct rill__object {
  uint64_t id;                 /* 0 until published */
  struct rill__device *device; /* of a device: itself */
  char *label;                 /* NULL if there is none */
  _Atomic uint32_t refs;
  _Atomic bool borrowed; /* retain and release do nothing */
  bool slot_freed;
  bool host_only; /* nothing but host memory goes with it, which can wait for more of the same */
  void (*destroy)(struct rill__object *); /* frees all, or postpones; on any thread, outside epochs */
  bool (*recycle)(struct rill__object *); /* NULL, or: keeps the object, with its slot, for rill__object_republish */
  uint64_t retired_at;
  uint64_t after; /* postponed: until this stream's work is complete (rill__stream.number); 0: other things count */
  struct rill__object *next_retired;
};

struct rill__slot {
  _Atomic uint64_t word; /* generation << 32 | references */
  struct rill__object *object;
  uint32_t next_free;
};

enum { RILL__CHUNK_SLOTS = 1024, RILL__CHUNKS = (1 << 24) / RILL__CHUNK_SLOTS };

extern _Atomic(struct rill__slot *) rill__chunks[RILL__KIND_END][RILL__CHUNKS];

/* The slot of a published object: no two objects of a kind have the same at a time. */
static inline uint32_t rill__object_slot(const struct rill__object *object) {
  return (uint32_t)(object->id >> 32) & 0xffffffu;
}

/* The object of an id, or NULL.  Only inside an epoch. */
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

/* Fails with what is wrong with an id that rill__find does not find. */
rill_status rill__fail_handle(uint64_t id, enum rill__kind kind, const char *argument) __attribute__((cold));

/* Finds the object of a handle for a local pointer, or returns from the calling function.  The first object found
 * is the one that an error names. */
#define RILL_RESOLVE(kind, handle, argument, object)                                                  \
  do {                                                                                                \
    rill__announce(self, (handle).id);                                                                \
    *(object) = rill__find((handle).id, (kind));                                                      \
    if (RILL__UNLIKELY(*(object) == NULL)) return rill__fail_handle((handle).id, (kind), (argument)); \
    if (self->subject == NULL) self->subject = &(*(object))->base;                                    \
  } while (0)

/* Allocates an object of `size` zeroed bytes with a copy of the label and one keep, its handle's. */
rill_status rill__object_new(size_t size, struct rill__device *device, const char *label,
                             void (*destroy)(struct rill__object *), void *out);

/* The same for `object`, zeroed bytes from calloc, without a label: what no two threads write needs no lines of its
 * own. */
void rill__object_init(struct rill__object *object, struct rill__device *device,
                       void (*destroy)(struct rill__object *));

/* Gives a recycled object the next generation of its slot, with one reference and one keep. */
void rill__object_republish(struct rill__object *object);

/* Frees an object's own memory: the last thing that `destroy` does. */
void rill__object_free(struct rill__object *object);

/* What `destroy` calls instead when the native object cannot go yet: a later rill__reclaim tries again.  `after` says
 * when that can be. */
void rill__object_postpone(struct rill__object *object);

/* Gives the object its id, with one reference.  On failure the caller still owns it. */
rill_status rill__object_publish(struct rill__object *object, enum rill__kind kind);

/* retain and release of every counted kind.  `last` is set to the object if its last reference went; the caller
 * undoes what it has to and hands it to rill__object_retire. */
rill_status rill__object_retain(uint64_t id, enum rill__kind kind);
rill_status rill__object_release(uint64_t id, enum rill__kind kind, struct rill__object **last);

/* Makes the object's handle stale, and drops the handle's keep once no call can be using it. */
void rill__object_retire(struct rill__object *object);

/* The same for an object that was never published. */
void rill__object_defer(struct rill__object *object);

/* True until the last reference has gone. */
bool rill__object_is_live(const struct rill__object *object);

/* Adds a reference for a new holder of the handle, from inside; false if the last one has gone already. */
bool rill__object_revive(struct rill__object *object);

void rill__ref(struct rill__object *object);
bool rill__ref_if_alive(struct rill__object *object); /* false if the last keep has gone */
void rill__unref(struct rill__object *object);

/* Leaves the epoch for a call that may block, keeping `object` alive; rill__unref ends that. */
static inline void rill__ref_and_leave(struct rill__thread *self, struct rill__object *object) {
  rill__ref(object);
  rill__leave(&self);
}

/* Before rill__reclaim (core/object/thread.h) at the end of a call that has waited for a stream's work, by the stream's
 * number: tries what is postponed until then.  And all that is postponed: for who needs what one of them has, or has
 * waited for a device. */
enum { RILL__POSTPONED_FEW = 16 };
void rill__reclaim_after(uint64_t stream);
void rill__reclaim_all(void);

/* "stream "copy"", or "stream 0x200000000000001" for an object without a label. */
struct rill__name {
  char text[112];
};
struct rill__name rill__name_of(const struct rill__object *object);
const char *rill__kind_name(enum rill__kind kind);

/* For fork: takes and releases what this file locks. */
void rill__handles_lock(void);
void rill__handles_unlock(void);

#endif
