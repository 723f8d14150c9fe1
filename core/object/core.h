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

/* Spare events of one kind (core/sync/event_cache.h). */
struct rill__event_cache {
  pthread_mutex_t lock;
  struct rill__event *head; /* linked by next_spare */
  _Atomic uint32_t count;   /* written under the lock; read without it by those whom about is enough */
};
enum { RILL__EVENT_CACHES = 4 }; /* by timing and blocking_sync */

enum { RILL__OPERATIONS_TEXT = 768 }; /* a message has room for that and the cause */

struct rill__device_core {
  _Atomic bool clocks_known; /* `clocks` has been called; what it gave stands in the next two */
  _Atomic uint32_t core_clock_khz, memory_clock_khz;
  pthread_mutex_t lock; /* guards activation, `natives` and `streams` */
  _Atomic(struct rill__stream *) default_stream;
  struct rill__natives *natives; /* streams by native handle (core/stream/native.c); NULL: none */
  struct rill__stream *streams;  /* those whose native stream may have work, linked by next */
  _Atomic uint64_t peers[4];     /* a bit for each ordinal whose memory it may access (core/device/peer.c) */
  _Atomic uint32_t held_streams; /* how many of its streams are held */
  struct rill__event_cache spare_events[RILL__EVENT_CACHES];
  pthread_mutex_t pools_lock; /* guards `pools` */
  struct rill__pool *pools;   /* core/pool/cache.h; linked by next */
  _Atomic(struct rill__pool *) default_pool, staging_pool;
  _Atomic bool pool_thresholds; /* a pool has or had a release threshold, or there are guards */
  /* core/tracking/deferred_free.h, which says what guards them */
  struct rill__deferred_free *first_deferred, *last_deferred;
  _Atomic uint64_t deferred_bytes;
  struct rill__guards *guards; /* RILL_CHECK=memory (core/tracking/guards.h); constant once it is active */
  _Atomic bool losing;
  struct {
    int32_t code;
    char name[80], text[400];
    char *operations; /* what was under way: lines, each after a newline; RILL__OPERATIONS_TEXT bytes */
  } cause;            /* why the device is lost; constant once `lost` is set */
};

/* Bits of rill__stream_core.diverted, never both. */
enum {
  RILL__HELD = 1,    /* to the stream's queue (core/held/held.h) */
  RILL__CAPTURED = 2 /* into a graph (core/graph/capture.h) */
};

/* What submissions look at comes first, in one cache line with what backends see of the stream, and the next one. */
struct rill__stream_core {
  _Atomic uint32_t diverted; /* where submissions go instead of the driver: RILL__HELD or RILL__CAPTURED */
  _Atomic uint32_t visitors; /* threads that use its native stream without its handle */
  _Atomic uint32_t caches;   /* how many pools have one for it (core/pool/cache.h) */
  _Atomic bool pools_closed; /* it is ending: no pool makes one any more */
  bool in_natives;
  struct rill__capture_member *member; /* of a capture; guarded by the lock of captures (core/graph/capture.h) */
  struct rill__completion work;        /* all that was submitted */
  uint64_t place;                      /* of entries of the recorder (core/diagnose/record.h) */
  _Atomic(struct rill__event *) cached_event;
  struct rill__queue *queue;               /* made when it is first held; guarded by the lock of held work */
  _Atomic(struct rill__failure *) failure; /* of held work, for the next synchronize */
  struct rill__stream *next_native;        /* of device->natives */
  struct rill__stream *next, **link;       /* of device->streams; link NULL: not there */
  void (*release)(void *user, uintptr_t native);
  void *release_user;
};

enum rill__event_state {
  RILL__EVENT_UNRECORDED,
  RILL__EVENT_RECORDED, /* in the driver; or others may have */
  RILL__EVENT_FENCED,   /* it stands for its fence */
  RILL__EVENT_CAPTURED  /* its last record was in a capture */
};

/* An event that stands for a last use of memory (core/tracking/last_use.h). */
struct rill__last_use {
  struct rill__last_use *next;
  /* Of a block of a pool: core/pool/uses.h. */
  struct rill__last_use **link;           /* that points here in the block's list */
  struct rill__last_use *earlier, *later; /* in the queue */
  struct rill__block *block;
  struct rill__use_queue *queue;
  struct rill__event *event;  /* that it is a part of, and owns */
  uint64_t started, recorded; /* when, in the order of all of them */
  uint64_t stream;            /* its number */
  uint64_t freed;             /* of a batch (core/pool/cache.h) */
};

struct rill__event_core {
  _Atomic uint32_t state;                /* enum rill__event_state */
  uint32_t awaited;                      /* queued waits for which it is the mark; guarded by the lock of held work */
  _Atomic(struct rill__fence *) fence;   /* FENCED: what it stands for (core/held/held.h) */
  struct rill__captured_point *captured; /* guarded by the lock of captures; NULL unless CAPTURED */
  bool cached;                           /* a stream's cached event: its users may not record it */
  bool given;                            /* a caller has made it; else it is of rill's own */
  struct rill__completion work;          /* the last record */
  _Atomic uint64_t recorded_on;          /* the id of the stream of that, 0: none, and its number there */
  _Atomic uint64_t recorded_at;
  struct rill__event *next_spare;
  struct rill__last_use last_use;
  void (*release)(void *user, uintptr_t native);
  void *release_user;
};

struct rill__module_core {
  const rill_bundle *bundle; /* it was loaded from; never looked into; guarded by core/kernel/bundle.c's lock */
  struct rill__image inside; /* its kernels */
  bool loaded;
  bool marked;
  struct rill__event **marks; /* while it waits to be unloaded: after all work that may use it */
  size_t mark_count;
  struct rill__kernel *ref_kernels; /* those that rill_kernel_refs have found, linked by next_ref */
  struct rill__module *next_loaded;
  struct rill__global *globals; /* variables that have been found (core/kernel/global.c) */
};

struct rill__kernel_core {
  struct rill__kernel *next_ref;
  bool found; /* the backend's `find` has succeeded */
};

struct rill__exec_core {
  struct rill__graph *graph;        /* kept: its nodes are found in `step_of` */
  uint32_t *step_of;                /* of each node, by its index */
  uint32_t *edges;                  /* what the steps come after */
  bool claimed;                     /* by a thread that launches or changes it (core/graph/graph.h) */
  uint32_t claimants;               /* threads that wait for the end of that */
  _Atomic uint32_t held_launches;   /* in the queue of `held_stream`, or being handed over (core/held/held.h) */
  struct rill__stream *held_stream; /* both change under the lock of held work; they rise under the claim too */
  uint32_t records;                 /* steps that record events */
  bool made;                        /* the backend's `instantiate` has succeeded */
  bool other_kernels;               /* a step has been given another kernel than its node has */
  /* For each step that is disabled, which is an empty operation, the operation that it has when it is enabled again,
   * kept; else NULL.  NULL until a step is disabled.  Changes as steps do. */
  struct rill__operation **disabled;
};

_Static_assert(sizeof(struct rill__device_core) <= sizeof((struct rill__device *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__stream_core) <= sizeof((struct rill__stream *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__event_core) <= sizeof((struct rill__event *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__exec_core) <= sizeof((struct rill__graph_exec *)0)->of_core,
               "room for core's fields");
_Static_assert(sizeof(struct rill__module_core) <= sizeof((struct rill__module *)0)->of_core, "room for core's fields");
_Static_assert(sizeof(struct rill__kernel_core) <= sizeof((struct rill__kernel *)0)->of_core, "room for core's fields");

/* Core's own fields of an object. */
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
