/* mix.h: random programs of any public calls on shared objects, by many threads at once.
 *
 * Operation i of thread t is made from the seed, t and i alone, so any of them can be left out and the others stay
 * what they are: mix_shrink.py finds the few that matter. Operations name places, and other threads may replace the
 * object in a place at any time, so a handle may be stale at any time.
 *
 * No lock is held around a call. Every call is noted with the ticks of one clock before and after it, every host call
 * with those of its start and its end, and every word that is read. The conditions are derived afterwards: a call that
 * returned before another started came first, and the order of overlapping calls is unknown (mix_history.c). */
#ifndef RILL_TESTS_STRESS_MIX_H
#define RILL_TESTS_STRESS_MIX_H

#include "support/testing_internal.h"

#include <rill/bundle.h>

#include <stdio.h>

enum {
  MIX_THREADS = 30,
  MIX_STREAMS = 1024, /* made in one round, those that replace others too */
  MIX_EVENTS = 1 << 14,
  MIX_PLACES = 512,
  MIX_CALLS = 4096, /* of one thread */
  MIX_CELLS = 256,
  MIX_SHARED_CELLS = 32,
  MIX_WORDS = 4, /* of a cell */
  MIX_VALUES = 1 << 14,
  MIX_PIECES = 16,
  MIX_GRAPHS = 512, /* made in one round */
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
  uint32_t a, b, c, d; /* which places, which way of doing it */
};

/* ---- objects ---- */

struct object {
  uint64_t id;
  rill_device device;
  unsigned number; /* among the round's streams or events */
  bool is_stream, imported, timing, signaled;
  bool borrowed; /* never released */
  bool shared;   /* others may have references: its end is not known */
  _Atomic bool native_given, recorded;
  _Atomic unsigned references;
  _Atomic uint64_t release_start, release_end; /* ticks: before any release, after the last; 0: not yet */
  /* Of a stream: kernels accepted, and pinned counters of those that started and ended. */
  _Atomic unsigned passes, adds;
  unsigned *started, *ended, *added;
  _Atomic unsigned host_calls, reported;
  _Atomic uint64_t stream_id; /* as rill_stream_id gave it */
};

static inline rill_stream stream_of(const struct object *o) { return (rill_stream){ o->id }; }
static inline rill_event event_of(const struct object *o) { return (rill_event){ o->id }; }

/* ---- calls ---- */

enum call_kind {
  CALL_OTHER,
  CALL_RECORD,
  CALL_WAIT,
  CALL_WAIT_STREAM,
  CALL_WAIT_CACHED, /* for whatever the cached event of the other stream marks */
  CALL_HOST_CALL,
  CALL_WRITE,
  CALL_READ,
  CALL_STREAM_DONE, /* asks whether, or waits until, a stream's work is done; `answer` is that it is */
  CALL_EVENT_DONE,
  CALL_DEVICE_DONE,
  CALL_IS_RECORDED
};

struct call {
  enum call_kind kind;
  rill_status status;
  const char *text; /* of the call in C */
  unsigned thread, operation;
  uint64_t start, end;   /* ticks */
  struct object *object; /* the stream or event that it is about */
  struct object *other;  /* the event or stream beside it */
  uint32_t flags;
  bool answer;
  struct { /* of a host call */
    uint64_t ns, start, end;
    _Atomic unsigned times;
    rill_status reported;
  } run;
  struct { /* of a write or read */
    unsigned cell;
    uint32_t value, *seen;
    const struct call *source; /* the only write that a read may see; NULL: see mix_history.c */
  } data;
  struct { /* worked out by mix_history.c */
    uint64_t *clock;
    struct call **records; /* that a wait or question may be about */
    size_t record_count, position;
    bool may_pass, may_fail, fails;
    uint64_t fails_from, fails_until;
    const struct call *cause; /* which fails too; NULL: an event went */
  } known;
};

/* Memory that one thread allocated and another may end. */
struct piece {
  uint32_t *words;
  size_t count;
  struct call *fill;  /* of all of it, on the stream that it was allocated on */
  struct piece *next; /* of those that could not be freed */
};

/* An execution object.  Launches of one object run one after another: its kernel counts them, and then its host call
 * finds the next number. */
struct graph {
  rill_graph_exec exec;
  rill_graph graph;     /* that it was made from; null: it is not kept */
  rill_graph_node node; /* the kernel's, if the graph is kept */
  rill_device device;
  unsigned number;
  unsigned *ran; /* pinned */
  unsigned called;
  _Atomic bool failed; /* so a host call was notified */
  _Atomic unsigned launches;
  _Atomic uint64_t release_start, release_end;
};

struct worker {
  unsigned index;
  struct call *calls;
  _Atomic unsigned count;
  _Atomic unsigned operation; /* the one that it is at */
  _Atomic bool ended;
  char *page, *signal_stack; /* the first is pageable memory for copies */
  bool registered;           /* the page */
  rill_bundle bundle;        /* a copy that nobody else loads */
};

/* Notes a call that starts, and its end. Of the statuses, OK and (where a handle may be stale) STALE_HANDLE are checked
 * by themselves, and `allowed` has a bit 1 << status for each other one that would be right. */
struct call *mix_begin(struct worker *w, enum call_kind kind, struct object *object, struct object *other);
rill_status mix_end(struct call *call, const char *text, rill_status status, uint32_t allowed);
/* What is allowed is looked up after the call: another thread may have changed it meanwhile. */
#define MIX_END(call, expression, allowed)            \
  __extension__({                                     \
    const rill_status status_ = (expression);         \
    mix_end((call), #expression, status_, (allowed)); \
  })
#define MIX_MAY(status) (UINT32_C(1) << RILL_ERROR_##status)

/* Reports a problem, with the call if it is not NULL, and ends the round. */
void mix_complain(const struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline bool mix_has_room(const struct worker *w) { return w->count + 64 <= MIX_CALLS; }

/* ---- a round ---- */

struct round {
  uint64_t seed;
  unsigned threads, operations, streams, events;
  uint32_t delay_ns; /* how long host calls and kernels take at most */
  unsigned weights[MIX_OPERATION_COUNT];
  bool abandons; /* never-recorded events go while streams may wait for them */
};

struct mix {
  struct round round;
  rill_device devices[2];
  unsigned device_count;
  bool has_graphs;
  struct worker workers[MIX_THREADS + 1]; /* the last is the main thread's */
  struct object *streams, *events;        /* all of the round's */
  _Atomic unsigned stream_count, event_count;
  _Atomic(struct object *) stream_places[MIX_PLACES], event_places[MIX_PLACES];
  struct object *rescue[2]; /* a stream of each device that waits for nothing */
  rill_pool pools[2];       /* of the first device; the second has a limit */
  _Atomic(struct piece *) pieces[MIX_PIECES], leftovers;
  uint32_t *cells[2];       /* of the device, and pinned */
  uint32_t *sources, *seen; /* pinned; a place for each value and each read */
  uint32_t *pageable_seen;  /* the same, pageable */
  _Atomic unsigned values, reads;
  _Atomic(struct call *) writes[MIX_VALUES]; /* by value */
  unsigned *counters;
  struct graph *graphs; /* all of the round's */
  _Atomic unsigned graph_count;
  _Atomic(struct graph *) graph_places[MIX_GRAPH_PLACES];
  _Atomic unsigned captures;      /* under way */
  _Atomic uint64_t capture_ended; /* tick: the last one */
  void *pile;                     /* memory of the first device */
  _Atomic bool piling;
  _Atomic bool failed;
  _Atomic uint64_t progress; /* operations that ended, of all rounds */
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

/* NULL: no more in this round. */
struct object *mix_new_stream(struct worker *w, rill_device device, const rill_stream_options *options);
struct object *mix_new_event(struct worker *w, rill_device device, const rill_event_options *options);
struct object *mix_note_stream(rill_stream stream, rill_device device);
struct object *mix_note_event(rill_event event, rill_device device);
void mix_release(struct worker *w, struct object *object);
void mix_put_event(struct worker *w, uint32_t place, struct object *event);
rill_status mix_record(struct worker *w, struct object *stream, struct object *event, uint32_t flags);
rill_status mix_wait(struct worker *w, struct object *stream, struct object *event, uint32_t flags);
rill_status mix_wait_stream(struct worker *w, struct object *stream, struct object *other);

/* Records every event in a place that was not recorded yet, so that no stream is held if no thread continues. */
void mix_let_go(struct worker *w);
/* Called before a call that blocks until held work is done: if this thread is the only one, no other could release
 * it. */
static inline void mix_before_blocking(struct worker *w) {
  if (mix.round.threads == 1) mix_let_go(w);
}

/* Statuses that are right where queues may be full, where an event or stream may have failed with an event that went
 * unrecorded, and where one cannot be held. */
static inline uint32_t mix_full(void) { return mix.round.weights[MIX_pile_up] != 0 ? MIX_MAY(OUT_OF_MEMORY) : 0; }
static inline uint32_t mix_failed(void) { return mix.round.abandons ? MIX_MAY(NOT_RECORDED) : 0; }
static inline uint32_t mix_not_held(struct object *stream) {
  return stream->imported || atomic_load(&stream->native_given) ? MIX_MAY(NOT_RECORDED) : 0;
}

/* Destroys the execution objects, which have no work left, and checks their results. */
void mix_end_graphs(struct worker *w);

/* Removes the registration of the thread's page, if there is one. */
void mix_unregister(struct worker *w);

/* Checks memory, and frees it. */
void mix_end_piece(struct worker *w, struct piece *piece, struct object *stream, uint32_t how);

/* Checks all calls of the round, when all work is done. */
void mix_check_history(void);

#endif
