/* What looks at each operation: fault injection, traces, checks of order.
 *
 * Every operation that goes to a driver, whatever the backend, comes through core/sync/submit.h, and every allocation,
 * free and wait of the host through its public function.  While anybody observes, each of these calls the observers
 * before it and after it; else it costs one load and a branch.
 *
 * Invariants
 * - An operation of a stream is observed when it is given to the driver: work of a held stream when it is handed over,
 *   with `held`, and work of a capture not at all, but for the launches of its graph.
 * - `sequence` is how many operations of the stream were submitted before.  It grows along each order of two
 *   submissions that the program makes certain; only submissions that race may have the same.
 * - Of an operation that an observer refuses, the driver hears nothing, and every observer that was called before it is
 *   called after it, with the refusal.
 * - Observers take no lock that core has during a call of a driver (core/object/locks.h), and may be inside an epoch.
 */
#ifndef RILL_CORE_DIAGNOSE_OBSERVE_H
#define RILL_CORE_DIAGNOSE_OBSERVE_H

#include "core/object/core.h"

enum rill__observed_kind {
  /* of a stream; those that execute something come first */
  RILL__OBSERVED_LAUNCH,
  RILL__OBSERVED_COPY,
  RILL__OBSERVED_FILL,
  RILL__OBSERVED_PREFETCH,
  RILL__OBSERVED_HOST_CALL,
  RILL__OBSERVED_RECORD,
  RILL__OBSERVED_WAIT,
  RILL__OBSERVED_GRAPH,
  RILL__OBSERVED_UPLOAD,
  RILL__OBSERVED_NOTE, /* of other code (rill_stream_note_begin): recorded and timed, but not observed */
  /* of a stream, or of the device if `stream` is NULL: rill_alloc and rill_free */
  RILL__OBSERVED_ALLOC,
  RILL__OBSERVED_FREE,
  /* of the host: between the two calls the thread waits */
  RILL__OBSERVED_STREAM_WAIT,
  RILL__OBSERVED_EVENT_WAIT,
  RILL__OBSERVED_DEVICE_WAIT
};

/* On the stack of the thread that submits; valid until the observers have been called after it. */
struct rill__observed {
  enum rill__observed_kind kind;
  bool held;                   /* handed over from the queue of a held stream */
  uint32_t called;             /* observers that have been called before it */
  struct rill__device *device; /* of the work or memory */
  struct rill__stream *stream; /* NULL of what is no stream's */
  uint64_t sequence;           /* of an operation of a stream; set for `after` */
  union {
    struct {
      const struct rill__launch *launch;
      uint64_t token; /* an observer's: of struct rill__launch, if it is not 0 */
    };
    struct rill__copy_3d copy;
    struct rill__fill_2d fill;
    struct {
      rill_host_fn fn;
      void *user;
      rill_host_fn through; /* an observer's, which the driver is given instead and which calls fn; NULL: none */
      void *through_user;
    } host_call;
    struct {
      struct rill__event *event; /* the one that the driver is given: a mark, of a record that was held */
      uint32_t flags;
    } event;
    struct rill__graph_exec *exec;
    struct {
      void *p; /* of an allocation: NULL before it */
      size_t size;
      uint32_t kind; /* RILL_MEMORY_* */
    } memory;
  };
};

struct rill__observer {
  /* Optional: a failure refuses the operation. */
  rill_status (*before)(struct rill__observed *what);
  /* Optional.  `status`: of the operation; returns what the caller is to get. */
  rill_status (*after)(struct rill__observed *what, rill_status status);
};

/* The observers, in the order in which they are called. */
enum rill__observer_index {
  RILL__OBSERVER_CALLS,    /* RILL_TRACE and RILL_FAULT: RILL_DISPATCH looks for them on the way of what is observed */
  RILL__OBSERVER_CRASH,    /* core/diagnose/crash.c */
  RILL__OBSERVER_FAULTS,   /* core/sync/faults.c */
  RILL__OBSERVER_TIMELINE, /* core/timeline/timeline.c */
  RILL__OBSERVER_ORDER, /* core/order/watch.c; the last, since it puts its own host calls around those of the caller */
  RILL__OBSERVERS
};

extern _Atomic uint32_t rill__observers_on; /* a bit for each */

static inline bool rill__is_observed(void) {
  return RILL__UNLIKELY(atomic_load_explicit(&rill__observers_on, memory_order_relaxed) != 0);
}

/* From here on the observer is called; NULL: it is called only for what it has seen the start of.  An observer is
 * constant and stays for ever. */
void rill__observe(enum rill__observer_index index, const struct rill__observer *observer);

/* From here on RILL_DISPATCH calls rill__call_watched for what `bit` stands for, RILL__CALLS_*; or no more. */
void rill__calls_watch(uint32_t bit, bool on);

/* Call the observers.  What `after` makes of a success counts only where that can be undone: not for an allocation. */
rill_status rill__observe_before(struct rill__observed *what) __attribute__((cold));
rill_status rill__observe_after(struct rill__observed *what, rill_status status) __attribute__((cold));

/* The same around a call of rill_alloc or rill_free, if anybody observes.  `what`, with `called`
 * 0, is ended also if it was not started. */
static inline rill_status rill__observe_start(struct rill__observed *what) {
  return rill__is_observed() ? rill__observe_before(what) : RILL_OK;
}
static inline rill_status rill__observe_end(struct rill__observed *what, rill_status status) {
  return RILL__UNLIKELY(what->called != 0) ? rill__observe_after(what, status) : status;
}

#endif
