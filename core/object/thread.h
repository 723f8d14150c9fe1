/* Per-thread state: the call epoch that keeps objects alive while a call uses them, and the last error.
 *
 * Looking a handle up is not yet using it: another thread may release it in between.  So every public call
 * runs inside an epoch, and an object whose last reference went is destroyed only when every call that could
 * have seen it has left.
 *
 * Invariant.  Let T be the value of rill__epoch that a retiring thread increments after making the object's
 * slot dead.  A call that entered with an epoch greater than T read the counter after that increment, so it
 * finds the slot dead.  A call that entered with T or less and is still inside shows in its thread's `epoch`,
 * and holds the object's destruction up.  The reader's store of its epoch must be ordered before its look at
 * the slot: where the kernel has membarrier(2) the destroying side pays for that, else each call does.
 *
 * Nothing that runs inside an epoch blocks.  A call that blocks takes a reference (rill__ref) and leaves.
 */
#ifndef RILL_CORE_OBJECT_THREAD_H
#define RILL_CORE_OBJECT_THREAD_H

#include "core/object/assert.h"
#include "core/object/cancel.h"

#include <rill/device.h>
#include <rill/status.h>
#include <stdatomic.h>
#include <stdbool.h>

#define RILL__LIKELY(x) __builtin_expect(!!(x), 1)
#define RILL__UNLIKELY(x) __builtin_expect(!!(x), 0)

struct rill__object;
struct rill__capture;

/* What rill_last_error tells. */
struct rill__error_record {
  rill_status status;
  int32_t native_code;
  char api[128];
  char object[112];
  char native_name[80];
  char message[1280];
  char hint[304];
  char line[2048];
};

/* The last operations that a thread gave to streams (core/diagnose/record.h): 8 KiB and a line. */
enum { RILL__ENTRIES = 128, RILL__ENTRY_LABEL = 16 };

struct rill__entry {
  _Atomic uint64_t stream;  /* its id */
  _Atomic uint64_t place;   /* kind, device and number in the stream; 0: there is none */
  _Atomic uint64_t subject; /* of a launch the kernel's name; of others a number of bytes, an id or an address */
  union {
    _Atomic uint32_t shape[6]; /* of a launch: grid and block */
    _Atomic uint64_t words[3];
  };
  _Atomic uint64_t label[RILL__ENTRY_LABEL / 8]; /* how it begins; the first byte is 0 if there is none */
};

struct rill__recorder {
  _Alignas(64) _Atomic uint64_t written; /* entries so far */
  _Alignas(64) struct rill__entry entries[RILL__ENTRIES];
};

struct rill__thread {
  _Atomic uint64_t epoch;             /* 0 outside calls */
  uint64_t number;                    /* of the thread that has the record: never used again */
  const char *api;                    /* the function that was called last; NULL after a typed launch */
  const struct rill__object *subject; /* the first object it was given */
  uint32_t handles;                   /* how many it has looked up so far ... */
  _Atomic uint64_t ids[4];            /* ... and which, the latest; no call looks up more, but some may be of others */
  _Atomic(struct rill__recorder *) recorder; /* kept with the record; NULL: nothing is recorded, or memory ran out */
  struct rill__error_record error;
  struct rill__error_record
      suspended_error;  /* where failures go between rill__errors_suspend and rill__errors_resume */
  char injected[192];   /* what RILL_FAULT made fail last (core/diagnose/inject.h), and ... */
  uint32_t injected_at; /* ... `handles` then */
  uint32_t suspend_depth;
  uint32_t ranges; /* of rill_range_push that are open */
  /* Captures of mode RILL_CAPTURE_THREAD that this thread began, of each backend, the newest first; after those, ones
   * of threads that had the record before.  Guarded by the lock of captures. */
  struct rill__capture *captures[RILL_BACKEND_END_];
  bool reclaims;                        /* it is in rill__reclaim, which does not nest */
  const struct rill__object *postponed; /* the last one that it has postponed; never looked into */
  /* What the thread waits for on the host (core/diagnose/waits.h). */
  struct {
    _Atomic uint64_t number;   /* odd while it waits */
    _Atomic uint64_t object;   /* the id of a stream, event or device */
    _Atomic uint64_t device;   /* and of its device */
    _Atomic uint64_t freed;    /* the address that rill_free was called with; 0: another call */
    _Atomic uint64_t since;    /* CLOCK_MONOTONIC_COARSE, ns */
    _Atomic uint64_t reported; /* the number of the last one that RILL_DEADLINE has reported */
  } wait;
  _Atomic bool in_use;
  struct rill__thread *next; /* of all records ever made; they are reused, never freed */
};

/* The initial-exec model saves a call on every use; one pointer fits the space that loaders reserve for
 * libraries that are loaded late. */
extern _Thread_local struct rill__thread *rill__self __attribute__((tls_model("initial-exec")));
extern _Thread_local bool rill__in_host_call __attribute__((tls_model("initial-exec"))); /* is in a caller's fn */
extern _Atomic uint64_t rill__epoch;
extern bool rill__has_membarrier; /* set before the first record exists */

/* No thread records what it gives to streams.  Before anything is. */
void rill__recorders_off(void);

/* All records, the newest first; `thread->next` leads to the next. */
struct rill__thread *rill__threads_first(void);

/* Makes this thread's record; NULL when memory ran out. */
struct rill__thread *rill__thread_attach(void);

/* Waits for no one: the oldest epoch that a call of any thread is in, and in `who` the thread; UINT64_MAX and NULL if
 * there is none.  Orders the caller's earlier stores before the look at the other threads. */
uint64_t rill__oldest_epoch(struct rill__thread **who);

/* Blocks until every call of another thread has ended that started before and looked up the handle `id`.  It may wait
 * for another call of a thread that did so a few handles ago, too: outside epochs that is no harm. */
void rill__wait_for_users(uint64_t id);

/* In the child of a fork: only the calling thread exists. */
void rill__threads_after_fork(void);

#if defined(__SANITIZE_THREAD__)
#define RILL__MEMBARRIER_USABLE false /* the race detector does not know of it */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RILL__MEMBARRIER_USABLE false
#endif
#endif
#ifndef RILL__MEMBARRIER_USABLE
#define RILL__MEMBARRIER_USABLE rill__has_membarrier
#endif

static inline void rill__enter_epoch(struct rill__thread *self) {
  const uint64_t epoch = atomic_load_explicit(&rill__epoch, memory_order_acquire);
  if (RILL__LIKELY(RILL__MEMBARRIER_USABLE)) {
    atomic_store_explicit(&self->epoch, epoch, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
  } else {
    atomic_store_explicit(&self->epoch, epoch, memory_order_seq_cst);
  }
}

static inline struct rill__thread *rill__enter(const char *api) {
  struct rill__thread *self = rill__self;
  if (RILL__UNLIKELY(self == NULL)) {
    self = rill__thread_attach();
    if (self == NULL) return NULL;
  }
  RILL_ASSERT(atomic_load_explicit(&self->epoch, memory_order_relaxed) == 0 || rill__in_host_call,
              "epochs do not nest: leaving the inner one would leave the outer one without protection");
  self->api = api;
  self->subject = NULL;
  rill__enter_epoch(self);
  return self;
}

/* Before a handle is looked up. */
static inline void rill__announce(struct rill__thread *self, uint64_t id) {
  _Atomic uint64_t *place = &self->ids[self->handles++ % 4];
  if (RILL__LIKELY(RILL__MEMBARRIER_USABLE)) {
    atomic_store_explicit(place, id, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
  } else {
    atomic_store_explicit(place, id, memory_order_seq_cst);
  }
}

static inline void rill__leave(struct rill__thread *const *self) {
  if (RILL__LIKELY(*self != NULL)) atomic_store_explicit(&(*self)->epoch, 0, memory_order_release);
}

/* What waits to be destroyed (core/object/handle.h). */
struct rill__waiting {
  _Atomic uint32_t retired; /* the sum of their weights */
  _Atomic uint32_t postponed;
};
enum { RILL__RECLAIM_WEIGHT = 64 };
extern struct rill__waiting rill__waiting;
void rill__reclaim_now(void);

/* Destroys what nobody can be using any more; outside epochs. */
static inline void rill__reclaim(void) {
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__waiting.retired, memory_order_relaxed) >= RILL__RECLAIM_WEIGHT) ||
      RILL__UNLIKELY(atomic_load_explicit(&rill__waiting.postponed, memory_order_relaxed) != 0)) {
    rill__reclaim_now();
  }
}

static inline void rill__leave_and_reclaim(struct rill__thread *const *self) {
  rill__leave(self);
  rill__reclaim();
}

/* Opens a public function that returns a status: names it for errors and enters an epoch, which every way out leaves.
 * At its end, all that waits to be destroyed and can be is. */
#define RILL_ENTER()                                                                                         \
  struct rill__thread *const self __attribute__((cleanup(rill__leave_and_reclaim))) = rill__enter(__func__); \
  if (RILL__UNLIKELY(self == NULL)) return RILL_ERROR_OUT_OF_MEMORY

/* The same for a submission, which destroys nothing. */
#define RILL_ENTER_TO_SUBMIT()                                                                   \
  struct rill__thread *const self __attribute__((cleanup(rill__leave))) = rill__enter(__func__); \
  if (RILL__UNLIKELY(self == NULL)) return RILL_ERROR_OUT_OF_MEMORY

/* The same for one that blocks.  Inside a host call it would wait for work that comes after that, or for the thread
 * that runs it. */
#define RILL_ENTER_TO_BLOCK() \
  RILL_WITHOUT_CANCEL();      \
  RILL_ENTER();               \
  if (RILL__UNLIKELY(rill__in_host_call)) return rill__fail_in_host_call()
rill_status rill__fail_in_host_call(void) __attribute__((cold));

#endif
