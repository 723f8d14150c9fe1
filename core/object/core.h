/* Core's own fields of objects, which backends do not see: rill__core(stream)->held. */
#ifndef RILL_CORE_OBJECT_CORE_H
#define RILL_CORE_OBJECT_CORE_H

#include "core/backend.h"
#include "core/object/completion.h"

struct rill__natives;
struct rill__queue;
struct rill__fence;
struct rill__failure;
struct rill__pool;
struct rill__deferred_free;
struct rill__capture_member;
struct rill__captured_point;
struct rill__graph;
struct rill__block;
struct rill__use_queue;
struct rill__guards;

/* The spare events of one kind (core/sync/event_cache.h). */
struct rill__event_cache {
  pthread_mutex_t lock;
  struct rill__event *head; /* linked by next_spare */
  _Atomic uint32_t count;   /* written under the lock; read without it where an approximate value is enough */
};
enum { RILL__EVENT_CACHES = 4 }; /* indexed by timing and blocking_sync */

enum { RILL__OPERATIONS_TEXT = 768 }; /* leaves room in a message for these operations and the cause */

struct rill__device_core {
  _Atomic bool clocks_known; /* `clocks` has been called; its results are in the next two fields */
  _Atomic uint32_t core_clock_khz, memory_clock_khz;
  pthread_mutex_t lock; /* guards activation, `natives` and `streams` */
  _Atomic(struct rill__stream *) default_stream;
  struct rill__natives *natives; /* streams by native handle (core/stream/native.c); NULL if there are none */
  struct rill__stream *streams;  /* streams whose native stream may have work, linked by next */
  _Atomic uint64_t peers[4];     /* one bit for each ordinal whose memory the device may access (core/device/peer.c) */
  _Atomic uint32_t held_streams; /* number of held streams */
  struct rill__event_cache spare_events[RILL__EVENT_CACHES];
  pthread_mutex_t pools_lock; /* guards `pools` */
  struct rill__pool *pools;   /* linked by next (core/pool/cache.h) */
  _Atomic(struct rill__pool *) default_pool, staging_pool;
  _Atomic bool pool_thresholds; /* a pool has or had a release threshold, or there are guards */
  /* guarded as described in core/tracking/deferred_free.h */
  struct rill__deferred_free *first_deferred, *last_deferred;
  _Atomic uint64_t deferred_bytes;
  struct rill__guards *guards; /* RILL_CHECK=memory (core/tracking/guards.h); constant once the device is active */
  _Atomic bool losing;
  struct {
    int32_t code;
    char name[80], text[400];
    char *operations; /* operations in progress, one per line, each after a newline; RILL__OPERATIONS_TEXT bytes */
  } cause;            /* why the device was lost; constant once `lost` is set */
};

/* Bits of rill__stream_core.diverted; at most one is set. */
enum {
  RILL__HELD = 1,    /* submissions go to the stream's queue (core/held/held.h) */
  RILL__CAPTURED = 2 /* submissions go into a graph (core/graph/capture.h) */
};

/* The fields that submissions read come first.  They share one cache line with the fields that backends see, and use
 * the next one. */
struct rill__stream_core {
  /* where submissions go instead of the driver: RILL__HELD or RILL__CAPTURED; 0: to the driver */
  _Atomic uint32_t diverted;
  _Atomic uint32_t visitors; /* threads that use the native stream without the handle */
  _Atomic uint32_t caches;   /* number of pools that have a cache for the stream (core/pool/cache.h) */
  _Atomic bool pools_closed; /* the stream is ending: pools create no more caches for it */
  bool in_natives;
  /* membership of a capture; guarded by the lock of captures (core/graph/capture.h) */
  struct rill__capture_member *member;
  struct rill__completion work; /* everything that was submitted */
  uint64_t place;               /* `place` in entries of the recorder (core/diagnose/record.h) */
  _Atomic(struct rill__event *) cached_event;
  struct rill__queue *queue;               /* created when the stream is first held; guarded by the lock of held work */
  _Atomic(struct rill__failure *) failure; /* failure of held work, for the next synchronize */
  struct rill__stream *next_native;        /* list device->natives */
  struct rill__stream *next, **link;       /* list device->streams; link is NULL if the stream is not in it */
  void (*release)(void *user, uintptr_t native);
  void *release_user;
};

enum rill__event_state {
  RILL__EVENT_UNRECORDED,
  RILL__EVENT_RECORDED, /* recorded in the driver, or possibly by other code */
  RILL__EVENT_FENCED,   /* the event stands for its fence */
  RILL__EVENT_CAPTURED  /* the last record was made in a capture */
};

/* An event that stands for a last use of memory (core/tracking/last_use.h). */
struct rill__last_use {
  struct rill__last_use *next;
  /* The next four fields are valid if the memory is a block of a pool (core/pool/uses.h). */
  struct rill__last_use **link;           /* points to the pointer to this struct in the block's list */
  struct rill__last_use *earlier, *later; /* neighbours in the queue */
  struct rill__block *block;
  struct rill__use_queue *queue;
  struct rill__event *event;  /* the event that contains this struct; owned */
  uint64_t started, recorded; /* when the record started and returned, in a common order of all records */
  uint64_t stream;            /* number of the stream */
  uint64_t freed;             /* for a batch: number of the last free that it covers (core/pool/cache.h) */
};

struct rill__event_core {
  _Atomic uint32_t state;                /* enum rill__event_state */
  uint32_t awaited;                      /* queued waits whose mark is this event; guarded by the lock of held work */
  _Atomic(struct rill__fence *) fence;   /* valid when FENCED: what the event stands for (core/held/held.h) */
  struct rill__captured_point *captured; /* guarded by the lock of captures; NULL unless CAPTURED */
  bool cached;                           /* a stream's cached event, which users may not record */
  bool given;                            /* created by a caller; otherwise rill uses the event internally */
  struct rill__completion work;          /* the last record */
  /* id of the stream of the last record (0: none), and in the next field the record's number in that stream */
  _Atomic uint64_t recorded_on;
  _Atomic uint64_t recorded_at;
  struct rill__event *next_spare;
  struct rill__last_use last_use;
  void (*release)(void *user, uintptr_t native);
  void *release_user;
};

struct rill__module_core {
  /* the bundle it was loaded from; never dereferenced; guarded by the lock in core/kernel/bundle.c */
  const rill_bundle *bundle;
  struct rill__image inside; /* its kernels */
  bool loaded;
  bool marked;
  /* events after all work that may use the module; valid while the module waits to be unloaded */
  struct rill__event **marks;
  size_t mark_count;
  struct rill__kernel *ref_kernels; /* kernels found by rill_kernel_refs, linked by next_ref */
  struct rill__module *next_loaded;
  struct rill__global *globals; /* variables that have been found (core/kernel/global.c) */
};

struct rill__kernel_core {
  struct rill__kernel *next_ref;
  bool found; /* the backend's `find` has succeeded */
};

/* The serials that the nodes of a graph had at some time, in order (core/graph/graph.h). */
struct rill__node_names {
  uint32_t count;
  uint64_t *serials; /* NULL: each serial equals the node's number */
};

struct rill__exec_core {
  struct rill__graph *graph;      /* referenced; keeps the handles of its nodes */
  struct rill__node_names names;  /* the nodes that the object was created with */
  uint32_t *step_of;              /* for each of these nodes, by its number at that time, its step */
  uint32_t *edges;                /* the steps that each step comes after */
  bool claimed;                   /* claimed by a thread that launches or changes the object (core/graph/graph.h) */
  uint32_t claimants;             /* threads that wait for the end of the claim */
  _Atomic uint32_t held_launches; /* launches in the queue of `held_stream` or being submitted (core/held/held.h) */
  /* both fields change under the lock of held work; raising the count also requires the claim */
  struct rill__stream *held_stream;
  uint32_t records;   /* number of steps that record events */
  bool made;          /* the backend's `instantiate` has succeeded */
  bool other_kernels; /* a step was given a different kernel than its node has */
  /* For each disabled step, which is an empty operation, the operation that it gets back when it is enabled
   * (referenced); NULL for the other steps.  The array is NULL until a step is disabled.  It changes when steps
   * change. */
  struct rill__operation **disabled;
};

_Static_assert(sizeof(struct rill__device_core) <= sizeof((struct rill__device *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__stream_core) <= sizeof((struct rill__stream *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__event_core) <= sizeof((struct rill__event *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__exec_core) <= sizeof((struct rill__graph_exec *)0)->of_core,
               "room for core's fields");
_Static_assert(sizeof(struct rill__module_core) <= sizeof((struct rill__module *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__kernel_core) <= sizeof((struct rill__kernel *)0)->of_core, "room for core's fields");

/* Returns core's own fields of an object. */
#define rill__core(object) \
  ((__typeof__(_Generic((object),                                                              \
       struct rill__device *: (struct rill__device_core *)NULL,                                \
       const struct rill__device *: (const struct rill__device_core *)NULL,                    \
       struct rill__stream *: (struct rill__stream_core *)NULL,                                \
       const struct rill__stream *: (const struct rill__stream_core *)NULL,                    \
       struct rill__graph_exec *: (struct rill__exec_core *)NULL,                              \
       struct rill__event *: (struct rill__event_core *)NULL,                                  \
       const struct rill__event *: (const struct rill__event_core *)NULL,                      \
       struct rill__module *: (struct rill__module_core *)NULL,                                \
       const struct rill__module *: (const struct rill__module_core *)NULL,                    \
       struct rill__kernel *: (struct rill__kernel_core *)NULL,                                \
       const struct rill__kernel *: (const struct rill__kernel_core *)NULL)))(void *)(uintptr_t)(object)->of_core)

#endif
