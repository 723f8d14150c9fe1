/* Per-thread state: the call epoch, which keeps objects alive while a call uses them, and the last error.
 *
 * Another thread may release a handle between the lookup of its object and the use of the object.  So every public call
 * runs inside an epoch, and an object whose last reference was released is destroyed only when every call that could
 * have found it has left.
 *
 * Invariant: let T be the value of rill__epoch that a retiring thread increments after making the object's slot dead. A
 * call that entered with an epoch greater than T read the counter after that increment, so it finds the slot dead.  A
 * call that entered with T or less and is still inside shows this in its thread's `epoch`, which delays the destruction
 * of the object.  The reader's store of its epoch must be ordered before its load of the slot.  If the kernel has
 * membarrier(2), the destroying thread pays for this ordering; otherwise each call does.
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

/* The contents of rill_last_error. */
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

/* The last operations that a thread submitted to streams (core/diagnose/record.h): 8 KiB plus one cache line. */
enum { RILL__ENTRIES = 128, RILL__ENTRY_LABEL = 16 };

struct rill__entry {
  _Atomic uint64_t stream;  /* id of the stream */
  _Atomic uint64_t place;   /* kind, device and number in the stream; 0: the entry is empty */
  _Atomic uint64_t subject; /* for a launch the kernel's name; for others a number of bytes, an id or an address */
  union {
    _Atomic uint32_t shape[6]; /* for a launch: grid and block */
    _Atomic uint64_t words[3];
  };
  /* first characters of the label; the first byte is 0 if there is none */
  _Atomic uint64_t label[RILL__ENTRY_LABEL / 8];
};

struct rill__recorder {
  _Alignas(64) _Atomic uint64_t written; /* number of entries so far */
  _Alignas(64) struct rill__entry entries[RILL__ENTRIES];
};

struct rill__thread {
  _Atomic uint64_t epoch;             /* the epoch of the call that the thread is in; 0 outside calls */
  uint64_t number;                    /* number of the thread that has the record; never reused */
  const char *api;                    /* function that was called last; NULL after a typed launch */
  const struct rill__object *subject; /* first object that was passed to the function */
  uint32_t handles;                   /* number of handles looked up so far */
  /* the latest of these handles; a call looks up at most four, but some entries may be of earlier calls */
  _Atomic uint64_t ids[4];
  _Atomic(struct rill__recorder *) recorder; /* kept with the record; NULL if nothing is recorded or memory ran out */
  struct rill__error_record error;
  struct rill__error_record
      suspended_error;  /* receives failures between rill__errors_suspend and rill__errors_resume */
  char injected[192];   /* the rule of RILL_FAULT that made a call fail last (core/diagnose/inject.h) */
  uint32_t injected_at; /* `handles` at that time */
  uint32_t suspend_depth;
  uint32_t ranges; /* number of ranges that rill_range_push has begun and that have not ended */
  /* Captures of mode RILL_CAPTURE_THREAD that this thread began, for each backend, the newest first; after them,
   * captures of threads that had the record before.  Guarded by the lock of captures. */
  struct rill__capture *captures[RILL_BACKEND_END_];
  bool reclaims;                        /* the thread is in rill__reclaim, which does not nest */
  const struct rill__object *postponed; /* the object that it postponed last; only compared, never dereferenced */
  /* What the thread waits for on the host (core/diagnose/waits.h). */
  struct {
    _Atomic uint64_t number;   /* odd while the thread waits */
    _Atomic uint64_t object;   /* id of a stream, event or device */
    _Atomic uint64_t device;   /* id of that object's device */
    _Atomic uint64_t freed;    /* address that rill_free was called with; 0 for other calls */
    _Atomic uint64_t since;    /* CLOCK_MONOTONIC_COARSE, in ns */
    _Atomic uint64_t reported; /* number of the last wait that RILL_DEADLINE reported */
  } wait;
  _Atomic bool in_use;
  struct rill__thread *next; /* list of all records ever created; records are reused, never freed */
};

/* The initial-exec model saves a call on every use; one pointer fits into the static TLS surplus, which loaders reserve
 * for libraries that are loaded late. */
extern _Thread_local struct rill__thread *rill__self __attribute__((tls_model("initial-exec")));
/* a caller's fn is running on the thread */
extern _Thread_local bool rill__in_host_call __attribute__((tls_model("initial-exec")));
extern _Atomic uint64_t rill__epoch;
extern bool rill__has_membarrier; /* set before the first record exists */

/* Stops threads from recording what they submit.  Call it before anything is recorded. */
void rill__recorders_off(void);

/* Returns the newest record; `thread->next` leads to all older ones. */
struct rill__thread *rill__threads_first(void);

/* Creates this thread's record; returns NULL if memory ran out. */
struct rill__thread *rill__thread_attach(void);

/* Returns the oldest epoch that a call of any thread is in, and its thread in `holder`; UINT64_MAX and NULL if there is
 * none.  Never blocks.  Orders the caller's earlier stores before its loads from the other threads. */
uint64_t rill__oldest_epoch(struct rill__thread **holder);

/* Blocks until every call of another thread that started earlier and looked up the handle `id` has ended.  It may also
 * wait for another call of a thread that looked up `id` in a recent call, which is harmless outside epochs. */
void rill__wait_for_users(uint64_t id);

/* Resets the records in the child of a fork, in which only the calling thread exists. */
void rill__threads_after_fork(void);

#if defined(__SANITIZE_THREAD__)
#define RILL__MEMBARRIER_USABLE false /* the race detector does not know membarrier */
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

/* Stores the id, before the handle is looked up, for rill__wait_for_users. */
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

/* The numbers of objects that wait to be destroyed (core/object/handle.h). */
struct rill__waiting {
  _Atomic uint32_t retired; /* sum of the objects' weights */
  _Atomic uint32_t postponed;
};
enum { RILL__RECLAIM_WEIGHT = 64 };
extern struct rill__waiting rill__waiting;
void rill__reclaim_now(void);

/* Destroys everything that no call can be using any more.  Call it outside epochs. */
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

/* Opens a public function that returns a status: names the function for errors and enters an epoch, which every exit
 * leaves.  When the function returns, everything that can be destroyed is destroyed. */
#define RILL_ENTER()                                                                                         \
  struct rill__thread *const self __attribute__((cleanup(rill__leave_and_reclaim))) = rill__enter(__func__); \
  if (RILL__UNLIKELY(self == NULL)) return RILL_ERROR_OUT_OF_MEMORY

/* Does the same for a submission, which destroys nothing. */
#define RILL_ENTER_TO_SUBMIT()                                                                   \
  struct rill__thread *const self __attribute__((cleanup(rill__leave))) = rill__enter(__func__); \
  if (RILL__UNLIKELY(self == NULL)) return RILL_ERROR_OUT_OF_MEMORY

/* Does the same for a function that blocks.  Inside a host call such a function could wait for work queued after that
 * host call, or for the thread that runs it. */
#define RILL_ENTER_TO_BLOCK() \
  RILL_WITHOUT_CANCEL();      \
  RILL_ENTER();               \
  if (RILL__UNLIKELY(rill__in_host_call)) return rill__fail_in_host_call()
rill_status rill__fail_in_host_call(void) __attribute__((cold));

#endif
