/* Observers of operations: fault injection, traces, checks of order.
 *
 * Every operation that goes to a driver, of any backend, passes through core/sync/submit.h, and every allocation, free
 * and host wait passes through its public function.  While there are observers, each of these functions calls them
 * before and after the operation; otherwise this costs one load and a branch.
 *
 * Invariants
 * - An operation of a stream is observed when it is submitted to the driver: work of a held stream when its queue is
 *   submitted, with `held` set; work of a capture is not observed, only the launches of its graph.
 * - `sequence` is the number of operations that were submitted to the stream before.  If the program orders two
 *   submissions, the later one has the larger number; only submissions that race may have the same number.
 * - If an observer refuses an operation, the operation is not submitted, and every observer that was called before it
 *   is called after it, with the refusal.
 * - Observers take no lock that core may hold during a call of a driver (core/object/locks.h), and may run inside an
 *   epoch.
 */
#ifndef RILL_CORE_DIAGNOSE_OBSERVE_H
#define RILL_CORE_DIAGNOSE_OBSERVE_H

#include "core/object/core.h"

enum rill__observed_kind {
  /* operations of a stream; those that execute something come first */
  RILL__OBSERVED_LAUNCH,
  RILL__OBSERVED_COPY,
  RILL__OBSERVED_FILL,
  RILL__OBSERVED_PREFETCH,
  RILL__OBSERVED_HOST_CALL,
  RILL__OBSERVED_RECORD,
  RILL__OBSERVED_WAIT,
  RILL__OBSERVED_GRAPH,
  RILL__OBSERVED_UPLOAD,
  RILL__OBSERVED_NOTE, /* work of other code (rill_stream_note_begin): recorded and timed, but not observed */
  /* rill_alloc and rill_free: of a stream, or of the device if `stream` is NULL */
  RILL__OBSERVED_ALLOC,
  RILL__OBSERVED_FREE,
  /* waits of the host: the thread waits between the two calls */
  RILL__OBSERVED_STREAM_WAIT,
  RILL__OBSERVED_EVENT_WAIT,
  RILL__OBSERVED_DEVICE_WAIT
};

/* On the stack of the submitting thread; valid until the observers have been called after the operation. */
struct rill__observed {
  enum rill__observed_kind kind;
  bool held;                   /* submitted from the queue of a held stream */
  uint32_t called;             /* bit set of the observers that were called before the operation */
  struct rill__device *device; /* device of the work or memory */
  struct rill__stream *stream; /* NULL if it is not an operation of a stream */
  uint64_t sequence;           /* for an operation of a stream; set for `after` */
  union {
    struct {
      const struct rill__launch *launch;
      uint64_t token; /* set by an observer; passed on in struct rill__launch if it is not 0 */
    };
    struct rill__copy_3d copy;
    struct rill__fill_2d fill;
    struct {
      rill_host_fn fn;
      void *user;
      rill_host_fn through; /* set by an observer: passed to the driver instead of fn, and calls fn; NULL: none */
      void *through_user;
      void *guarded; /* of core/diagnose/crash.c */
    } host_call;
    struct {
      struct rill__event *event; /* the event that the driver receives, which is a mark if the record was held */
      uint32_t flags;
    } event;
    struct rill__graph_exec *exec;
    struct {
      void *p; /* for an allocation, NULL before it */
      size_t size;
      uint32_t kind; /* RILL_MEMORY_* */
    } memory;
  };
};

struct rill__observer {
  /* Optional.  A failure refuses the operation. */
  rill_status (*before)(struct rill__observed *what);
  /* Optional.  `status`: the result of the operation; returns the result for the caller. */
  rill_status (*after)(struct rill__observed *what, rill_status status);
};

/* The observers, in the order in which they are called. */
enum rill__observer_index {
  RILL__OBSERVER_CALLS,    /* RILL_TRACE and RILL_FAULT: RILL_DISPATCH checks for them on the observed path */
  RILL__OBSERVER_CRASH,    /* core/diagnose/crash.c */
  RILL__OBSERVER_FAULTS,   /* core/sync/faults.c */
  RILL__OBSERVER_TIMELINE, /* core/timeline/timeline.c */
  RILL__OBSERVER_ORDER,    /* core/order/watch.c; last, because it wraps the caller's host calls */
  RILL__OBSERVERS
};

extern _Atomic uint32_t rill__observers_on; /* one bit for each active observer */

static inline bool rill__is_observed(void) {
  return RILL__UNLIKELY(atomic_load_explicit(&rill__observers_on, memory_order_relaxed) != 0);
}

/* Starts to call an observer.  NULL: stops calling it, except after operations whose start it has seen.  An observer is
 * constant and never freed. */
void rill__observe(enum rill__observer_index index, const struct rill__observer *observer);

/* Makes RILL_DISPATCH call rill__call_watched for the purpose `bit` (RILL__CALLS_*), or stops this. */
void rill__calls_watch(uint32_t bit, bool on);

/* Call the observers.  If `after` turns a success into a failure, the failure counts only for operations that can be
 * undone, not for an allocation. */
rill_status rill__observe_before(struct rill__observed *what) __attribute__((cold));
rill_status rill__observe_after(struct rill__observed *what, rill_status status) __attribute__((cold));

/* Call the observers for a call of rill_alloc or rill_free, if there are any.  rill__observe_end may also be called if
 * the operation was not started; `called` is 0 then. */
static inline rill_status rill__observe_start(struct rill__observed *what) {
  return rill__is_observed() ? rill__observe_before(what) : RILL_OK;
}
static inline rill_status rill__observe_end(struct rill__observed *what, rill_status status) {
  return RILL__UNLIKELY(what->called != 0) ? rill__observe_after(what, status) : status;
}

#endif
