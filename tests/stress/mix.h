/* mix.h: random programs of any public calls on shared objects, by many threads at once.
 *
 * Operation i of thread t is derived only from the seed, t and i. Any operation can therefore be omitted without
 * changing the others, and mix_shrink.py finds the few that a failure needs. Operations use places, and another thread
 * may replace the object in a place at any time, so any handle may be stale.
 *
 * No lock is held around a call. The test records every call with ticks of one clock before and after it, every host
 * call with ticks at its start and end, and every word that is read. It checks conditions afterwards: a call that
 * returned before another call started came first, and the order of overlapping calls is unknown (mix_history.c). */
#ifndef RILL_TESTS_STRESS_MIX_H
#define RILL_TESTS_STRESS_MIX_H

#include "support/testing_internal.h"

#include <rill/bundle.h>

#include <stdio.h>

enum {
  MIX_THREADS = 30,
  MIX_STREAMS = 1024, /* created in one round, including replacements */
  MIX_EVENTS = 1 << 14,
  MIX_PLACES = 512,
  MIX_CALLS = 4096, /* calls of one thread */
  MIX_CELLS = 256,
  MIX_SHARED_CELLS = 32,
  MIX_WORDS = 4, /* words of a cell */
  MIX_VALUES = 1 << 14,
  MIX_PIECES = 16,
  MIX_GRAPHS = 512, /* created in one round */
  MIX_GRAPH_PLACES = 4,
  MIX_SIGNAL_STACK = 64 << 10,
  MIX_UNSEEN = 0x5eed5eed
};

/* ---- operations ---- */

/* X(name, group, weight) */
#define MIX_OPERATIONS(X)      \
  X(record, events, 12)        \
  X(record_new, events, 6)     \
  X(wait, events, 16)          \
  X(wait_stream, events, 5)    \
  X(wait_device, events, 1)    \
  X(cached_event, events, 1)   \
  X(hand_over, events, 4)      \
  X(relay, wide, 2)            \
  X(is_ready, questions, 6)    \
  X(is_recorded, questions, 3) \
  X(is_complete, questions, 8) \
  X(elapsed, questions, 2)     \
  X(tell, questions, 2)        \
  X(wait_a_moment, host, 4)    \
  X(synchronize, host, 1)      \
  X(host_call, calls, 14)      \
  X(write, data, 12)           \
  X(read, data, 10)            \
  X(pass, kernels, 6)          \
  X(add, kernels, 4)           \
  X(new_event, life, 8)        \
  X(new_stream, life, 1)       \
  X(share, life, 3)            \
  X(misuse, life, 1)           \
  X(allocate, memory, 4)       \
  X(end_piece, memory, 4)      \
  X(trim, memory, 1)           \
  X(register, memory, 1)       \
  X(load, modules, 1)          \
  X(native, native, 2)         \
  X(import, import, 1)         \
  X(new_graph, graphs, 3)      \
  X(capture, graphs, 5)        \
  X(launch_graph, graphs, 10)  \
  X(change_graph, graphs, 4)   \
  X(extend_graph, graphs, 4)   \
  X(execute_graph, graphs, 4)  \
  X(pile_up, full, 1)

enum mix_operation {
#define MIX_ENUM(name, group, weight) MIX_##name,
  MIX_OPERATIONS(MIX_ENUM)
#undef MIX_ENUM
      MIX_OPERATION_COUNT
};

struct operation {
  enum mix_operation what;
  uint32_t a, b, c, d; /* choose the places and the variant of the operation */
};

/* ---- objects ---- */

struct object {
  uint64_t id;
  rill_device device;
  unsigned number; /* index among the round's streams or events */
  bool is_stream, imported, timing, signaled;
  bool borrowed; /* never released by the test */
  bool shared;   /* others may have references, so its destruction is not observed */
  _Atomic bool native_given, recorded;
  _Atomic unsigned references;
  _Atomic uint64_t release_start, release_end; /* first and last release; 0: none */
  /* For a stream: number of kernels accepted, and pinned counters of kernels that started and that ended. */
  _Atomic unsigned passes, adds;
  unsigned *started, *ended, *added;
  _Atomic unsigned host_calls, reported;
  _Atomic uint64_t stream_id; /* as returned by rill_stream_id */
};

static inline rill_stream stream_of(const struct object *o) { return (rill_stream){ o->id }; }
static inline rill_event event_of(const struct object *o) { return (rill_event){ o->id }; }

/* ---- calls ---- */

enum call_kind {
  CALL_OTHER,
  CALL_RECORD,
  CALL_WAIT,
  CALL_WAIT_STREAM,
  CALL_WAIT_CACHED, /* waits for the last record of the other stream's cached event */
  CALL_HOST_CALL,
  CALL_WRITE,
  CALL_READ,
  CALL_STREAM_DONE, /* a query or a wait for all work of a stream; `answer`: the work is complete */
  CALL_EVENT_DONE,
  CALL_DEVICE_DONE,
  CALL_IS_RECORDED
};

struct call {
  enum call_kind kind;
  rill_status status;
  const char *text; /* the source text of the call */
  unsigned thread, operation;
  uint64_t start, end;   /* ticks */
  struct object *object; /* the stream or event that the call uses */
  struct object *other;  /* the second event or stream */
  uint32_t flags;
  bool answer;
  struct { /* for a host call */
    uint64_t ns, start, end;
    _Atomic unsigned times;
    rill_status reported;
  } run;
  struct { /* for a write or read */
    unsigned cell;
    uint32_t value, *seen;
    const struct call *source; /* the only write whose value a read may return; NULL: see mix_history.c */
  } data;
  struct { /* computed by mix_history.c */
    uint64_t *clock;
    struct call **records; /* the records that a wait or query may refer to */
    size_t record_count, position;
    bool may_pass, may_fail, fails;
    uint64_t fails_from, fails_until;
    const struct call *cause; /* the failed call that caused this failure; NULL: a released event did */
  } known;
};

/* Memory that one thread has allocated and another thread may free. */
struct piece {
  uint32_t *words;
  size_t count;
  struct call *fill;  /* fills the piece, on the stream that allocated it */
  struct piece *next; /* next in the list of pieces that could not be freed */
};

/* An execution object. Its launches run one after another: the kernel counts them, and the host call then checks the
 * count. */
struct graph {
  rill_graph_exec exec;
  rill_graph graph;     /* the graph that it was instantiated from; null: the graph is not kept */
  rill_graph_node node; /* the kernel's node, if the graph is kept */
  rill_device device;
  unsigned number;
  unsigned *ran; /* pinned */
  unsigned called;
  _Atomic bool failed; /* a host call received a failure */
  _Atomic unsigned launches;
  _Atomic uint64_t release_start, release_end;
};

struct worker {
  unsigned index;
  struct call *calls;
  _Atomic unsigned count;
  _Atomic unsigned operation; /* number of the operation that the thread is executing */
  _Atomic bool ended;
  char *page, *signal_stack; /* page: pageable memory for copies */
  bool registered;           /* the page is registered */
  rill_bundle bundle;        /* a copy of the bundle, which only this thread loads */
};

/* Records the start and the end of a call. The statuses OK and STALE_HANDLE (if a handle may be stale) are checked
 * separately; `allowed` has a bit 1 << status for each other valid status. */
struct call *mix_begin(struct worker *w, enum call_kind kind, struct object *object, struct object *other);
rill_status mix_end(struct call *call, const char *text, rill_status status, uint32_t allowed);
/* Evaluates `allowed` after the call, because another thread may have changed it during the call. */
#define MIX_END(call, expression, allowed)            \
  __extension__({                                     \
    const rill_status status_ = (expression);         \
    mix_end((call), #expression, status_, (allowed)); \
  })
#define MIX_MAY(status) (UINT32_C(1) << RILL_ERROR_##status)

/* Reports a problem, with the call unless it is NULL, and ends the round. */
void mix_complain(const struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool mix_has_room(const struct worker *w) { return w->count + 64 <= MIX_CALLS; }

/* ---- a round ---- */

struct round {
  uint64_t seed;
  unsigned threads, operations, streams, events;
  uint32_t delay_ns; /* maximum duration of host calls and kernels */
  unsigned weights[MIX_OPERATION_COUNT];
  bool abandons; /* events may be released unrecorded while streams wait for them */
};

struct mix {
  struct round round;
  rill_device devices[2];
  unsigned device_count;
  bool has_graphs;
  struct worker workers[MIX_THREADS + 1]; /* the last worker is the main thread */
  struct object *streams, *events;        /* of the whole round */
  _Atomic unsigned stream_count, event_count;
  _Atomic(struct object *) stream_places[MIX_PLACES], event_places[MIX_PLACES];
  struct object *rescue[2]; /* for each device, a stream that waits for nothing */
  rill_pool pools[2];       /* pools of the first device; the second pool has a limit */
  _Atomic(struct piece *) pieces[MIX_PIECES], leftovers;
  uint32_t *cells[2];       /* in device memory, and in pinned memory */
  uint32_t *sources, *seen; /* pinned; a location for each value and for each read */
  uint32_t *pageable_seen;  /* pageable; a location for each read */
  _Atomic unsigned values, reads;
  _Atomic(struct call *) writes[MIX_VALUES]; /* indexed by value */
  unsigned *counters;
  struct graph *graphs; /* of the whole round */
  _Atomic unsigned graph_count;
  _Atomic(struct graph *) graph_places[MIX_GRAPH_PLACES];
  _Atomic unsigned captures;      /* captures in progress */
  _Atomic uint64_t capture_ended; /* tick at which the last capture ended */
  void *pile;                     /* destination of pile_up, on the first device */
  _Atomic bool piling;
  _Atomic bool failed;
  _Atomic uint64_t progress; /* number of operations finished in all rounds */
};
extern struct mix mix;

uint64_t mix_tick(void);
uint64_t mix_hash(uint64_t a, uint64_t b);
struct operation mix_operation_at(unsigned thread, unsigned index);
void mix_print_operation(FILE *file, unsigned thread, unsigned index);
void mix_do(struct worker *w, const struct operation *o);
bool mix_is_about_graphs(const struct operation *o);

struct object *mix_stream_at(uint32_t place);
struct object *mix_event_at(uint32_t place);

/* Returns NULL if the round cannot have more. */
struct object *mix_new_stream(struct worker *w, rill_device device, const rill_stream_options *options);
struct object *mix_new_event(struct worker *w, rill_device device, const rill_event_options *options);
struct object *mix_note_stream(rill_stream stream, rill_device device);
struct object *mix_note_event(rill_event event, rill_device device);
void mix_release(struct worker *w, struct object *object);
void mix_put_event(struct worker *w, uint32_t place, struct object *event);
rill_status mix_record(struct worker *w, struct object *stream, struct object *event, uint32_t flags);
rill_status mix_wait(struct worker *w, struct object *stream, struct object *event, uint32_t flags);
rill_status mix_wait_stream(struct worker *w, struct object *stream, struct object *other);

/* Records every event in a place that has not been recorded, so that no stream is held even if no other thread
 * continues. */
void mix_let_go(struct worker *w);
/* Call before a call that blocks until held work is complete: if this is the only thread, no other can release the
 * work. */
static inline void mix_before_blocking(struct worker *w) {
  if (mix.round.threads == 1) mix_let_go(w);
}

/* Statuses that are valid if queues may be full, if an event may have been released unrecorded, and if a stream cannot
 * be held. */
static inline uint32_t mix_full(void) { return mix.round.weights[MIX_pile_up] != 0 ? MIX_MAY(OUT_OF_MEMORY) : 0; }
static inline uint32_t mix_failed(void) { return mix.round.abandons ? MIX_MAY(NOT_RECORDED) : 0; }
static inline uint32_t mix_not_held(struct object *stream) {
  return stream->imported || atomic_load(&stream->native_given) ? MIX_MAY(NOT_RECORDED) : 0;
}

/* Destroys the execution objects, which have no pending work, and checks their results. */
void mix_end_graphs(struct worker *w);

/* Removes the registration of the thread's page, if there is one. */
void mix_unregister(struct worker *w);

/* Checks the memory and frees it. */
void mix_end_piece(struct worker *w, struct piece *piece, struct object *stream, uint32_t how);

/* Checks all calls of the round after all work is complete. */
void mix_check_history(void);

#endif
