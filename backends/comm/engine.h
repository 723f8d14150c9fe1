/* What the parts of rill_comm share, and the contract of an engine.
 *
 * rill_comm stands on rill's public interface alone.  An engine (NCCL, RCCL, MPI, or local.c for threads of one
 * process) joins ranks and takes operations; comm.c keeps the handles, join.c joins, operation.c checks and groups,
 * watch.c keeps the deadlines of engines that have none, parts.c holds streams of the CPU.
 *
 * A communicator, in the order of its life: joined; broken (once, by whoever is first: a deadline, an error of the
 * engine, rill_comm_abort), which calls engine->abort once; ended by its last reference, which calls engine->end once,
 * after abort has returned.
 */
#ifndef RILL_COMM_ENGINE_H
#define RILL_COMM_ENGINE_H

#include <rill/comm.h>
#include <rill/comm_mpi.h>
#include <rill/diagnose.h>
#include <rill/event.h>
#include <rill/memory.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- failures ---- */

/* In a format: ends what was wrong, begins what to do about it. */
#define COMM_HINT "\x1f"

/* What the last error tells, and what ended a communicator. */
struct comm_error {
  rill_status status;
  int32_t native_code;
  const char *api;
  char object[96], native_name[48], message[640], hint[256];
};

rill_status rill__comm_fail(rill_status status, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
rill_status rill__comm_fail_native(rill_status status, int32_t code, const char *name, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));
/* After a call of rill has failed: what rill says of it becomes the last error.  `what` was it for. */
rill_status rill__comm_fail_rill(rill_status status, const char *what) __attribute__((cold));
/* Makes `error` the last error, of the function that runs. */
rill_status rill__comm_fail_as(const struct comm_error *error) __attribute__((cold));

/* The calling thread's last error. */
extern _Thread_local struct comm_error rill__comm_last_error;

#define COMM_REQUIRE(condition, status, ...)                         \
  do {                                                               \
    if (!(condition)) return rill__comm_fail((status), __VA_ARGS__); \
  } while (0)
#define COMM_TRY(call)                              \
  do {                                              \
    const rill_status try_status_ = (call);         \
    if (try_status_ != RILL_OK) return try_status_; \
  } while (0)
/* The same of a call of rill. */
#define COMM_TRY_RILL(call, what)                                                 \
  do {                                                                            \
    const rill_status try_status_ = (call);                                       \
    if (try_status_ != RILL_OK) return rill__comm_fail_rill(try_status_, (what)); \
  } while (0)

/* An invariant of our own, where core checks its own; a caller's mistake is a status. */
#ifdef RILL_CHECKS
#define COMM_ASSERT(condition) \
  ((condition) ? (void)0 : (void)(fprintf(stderr, "%s:%d: rill_comm: %s\n", __FILE__, __LINE__, #condition), abort()))
#else
#define COMM_ASSERT(condition) ((void)sizeof(condition))
#endif

/* Opens a public function: its name, and the object that errors name. */
void rill__comm_enter(const char *api);
void rill__comm_about(const char *object);

/* ---- communicators and operations ---- */

enum { COMM_ID_BYTES = 128, COMM_PAIR_SIZES = 16 };

enum comm_kind {
  COMM_ALL_REDUCE,
  COMM_REDUCE,
  COMM_BROADCAST,
  COMM_ALL_GATHER,
  COMM_REDUCE_SCATTER,
  COMM_ALL_TO_ALL,
  COMM_SEND,
  COMM_RECEIVE,
  COMM_BARRIER,
  COMM_KINDS
};

static inline const char *comm_kind_name(uint64_t kind) {
  static const char *const names[COMM_KINDS] = { "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
                                                 "all_to_all", "send",   "receive",   "barrier" };
  return kind < COMM_KINDS ? names[kind] : "?";
}

struct comm_op {
  struct comm *comm;
  rill_comm handle;
  rill_stream stream;
  void *dst;
  const void *src;
  size_t count, size; /* size: bytes of an element */
  enum comm_kind kind;
  uint32_t type, op, peer; /* RILL_COMM_*; peer: root, or the other rank of a message */
  uint64_t number;         /* counts the communicator's operations, from 1; 0: submitted by the library ... */
  enum comm_kind for_kind; /* ... for an operation of this kind and number (RILL_CHECK=comm) */
  uint64_t for_number;
};

static inline size_t comm_bytes(const struct comm_op *op) {
  return op->kind == COMM_BARRIER ? 0 : op->count * op->size;
}

/* An operation, or several of one stream, that a deadline runs for (watch.c). */
struct comm_flight {
  struct comm_flight *next;
  struct comm *comm;
  rill_stream stream; /* retained */
  rill_event start, end;
  uint64_t since;    /* when its stream was first seen to have come to it; 0: not yet */
  struct comm_op op; /* the first one */
};

struct comm {
  const struct comm_engine *engine;
  rill_comm handle;
  struct comm *next; /* comm.c's, as the next two are */
  uint32_t references, pins;
  rill_device device;
  int32_t ordinal;
  uintptr_t context; /* of the device, for its driver; 0 where there is none */
  uint32_t ranks, rank;
  uint64_t timeout;
  char label[64];
  void *native;             /* the engine's */
  void *scratch;            /* 8 bytes of the device's memory, for barriers; NULL if the engine needs none */
  rill_stream check_stream; /* of RILL_CHECK=comm (check.c), as the next two are */
  void *check_memory, *check_device_memory;
  void *pair_memory[COMM_PAIR_SIZES], *pair_device_memory[COMM_PAIR_SIZES]; /* [k]: for 2^k sends and receives */
  _Atomic uint64_t numbered; /* operations so far; `submitting` orders changes */
  uint64_t family;           /* the same for all ranks of a communicator, and for few others; 0: not joined */
  uint64_t splits;           /* so far; guarded by `submitting` */

  pthread_mutex_t submitting; /* orders submissions; an engine's call may be waited for under it, by its users alone */

  pthread_mutex_t lock; /* guards the rest; never held across a call of the engine's or of rill's */
  pthread_cond_t changed;
  bool broken, aborted; /* aborted: engine->abort has returned */
  struct comm_error failure;
  uint32_t inside;           /* calls of the engine's that run */
  uint64_t submitting_since; /* when the one that submits started; 0: there is none */
  struct comm_flight *first, **last;
  struct comm *next_watched;
  bool watched_now;
};

static inline bool comm_is_message(const struct comm_op *op) {
  return op->kind == COMM_SEND || op->kind == COMM_RECEIVE;
}

/* An operation as reports name it: "send of rank 2 of 4 to rank 3 (operation 7)". */
struct comm_op_text {
  char text[112];
};
static inline struct comm_op_text comm_describe(const struct comm_op *op) {
  struct comm_op_text made;
  const enum comm_kind kind = op->number != 0 ? op->kind : op->for_kind;
  const uint64_t number = op->number != 0 ? op->number : op->for_number;
  char peer[32] = "";
  if (kind == COMM_SEND) (void)snprintf(peer, sizeof peer, " to rank %u", op->peer);
  if (kind == COMM_RECEIVE) (void)snprintf(peer, sizeof peer, " from rank %u", op->peer);
  (void)snprintf(made.text, sizeof made.text, "%s of rank %u of %u%s (operation %llu)", comm_kind_name(kind),
                 op->comm->rank, op->comm->ranks, peer, (unsigned long long)number);
  return made;
}

/* What rill's reports and traces say of an operation. */
static inline rill_stream_note comm_note(const struct comm_op *op) {
  return (rill_stream_note){ .struct_size = sizeof(rill_stream_note),
                             .name = comm_kind_name(op->kind),
                             .group = op->comm->label[0] != '\0' ? op->comm->label : NULL,
                             .number = op->number,
                             .bytes = comm_bytes(op),
                             .rank = op->comm->rank,
                             .ranks = op->comm->ranks };
}

/* ---- engines ---- */

struct comm_engine {
  const char *name;
  uint32_t backend; /* RILL_BACKEND_* of its devices */
  size_t max_count; /* elements of an operation */
  bool keeps_deadlines, needs_scratch;
  bool compares_messages; /* a receive that does not fit what was sent fails by itself */
  bool takes_empty;       /* operations of no elements too, to compare them */
  bool joins_in_time; /* `join` and `split` keep the deadline of their communicators, and run on the caller's thread */
  bool notes;         /* it tells rill itself when its operations ran */

  /* Makes the engine usable; at each use, on the caller's thread.  Fails with what was tried. */
  rill_status (*start)(void);
  uint32_t (*version)(void);
  rill_status (*make_id)(uint8_t bytes[COMM_ID_BYTES]);
  /* Joins ranks of this process; may block for as long as others do not come, on any thread. */
  rill_status (*join)(struct comm *const *comms, uint32_t count, const uint8_t id[COMM_ID_BYTES]);
  /* Joins the ranks of `parent` with the same color to `child`, whose rank and ranks it sets; 0 ranks: of
   * RILL_COMM_NO_COLOR.  Blocks as `join` does.  NULL: the engine cannot. */
  rill_status (*split)(struct comm *parent, uint32_t color, uint32_t key, struct comm *child);
  /* Takes operations, at least one.  Their communicators are not broken, and no other submission runs for them.  A
   * failure that leaves one unusable goes through rill__comm_break. */
  rill_status (*submit)(const struct comm_op *ops, size_t count);
  /* Fails if the engine knows of an error; optional. */
  rill_status (*poll)(struct comm *comm);
  /* Makes a submission that is inside the engine return; false if it cannot.  Optional. */
  bool (*interrupt)(struct comm *comm);
  /* Ends the operations under way.  A submission may still be inside, if the engine cannot be interrupted. */
  void (*abort)(struct comm *comm);
  /* Waits until all that was submitted has ended; optional.  Until then the engine may break the communicator, and
   * afterwards it does not. */
  void (*drain)(struct comm *comm);
  /* Frees what the engine has, after abort too; without `drain` it may block as that does. */
  void (*end)(struct comm *comm);
  /* The thread that keeps deadlines begins: its queries must not disturb captures; optional. */
  void (*begin_watch)(void);

  /* Of MPI alone: all processes, a communicator by its handle, and passing bytes from rank 0 to all. */
  rill_status (*world)(uint32_t *ranks, uint32_t *rank);
  rill_status (*of_handle)(int32_t handle, const char *library, uint8_t id[COMM_ID_BYTES], uint32_t *ranks,
                           uint32_t *rank);
  rill_status (*pass)(const uint8_t id[COMM_ID_BYTES], uint32_t ranks, uint32_t rank, bool have,
                      uint8_t bytes[COMM_ID_BYTES]);
};

extern const struct comm_engine rill__comm_nccl, rill__comm_rccl, rill__comm_local;

/* In ids, and as the backend of the local engine: devices of RILL_BACKEND_CPU, but ranks of one process. */
enum { COMM_LOCAL = 16 };

/* ---- streams of the CPU (parts.c) ---- */

struct comm_part;

/* What an engine has for its parts. */
struct comm_parts {
  pthread_mutex_t lock; /* guards all parts; never held across a call of rill's */
  pthread_cond_t changed;
  rill_stream stream;                           /* what gates are recorded on */
  void (*changed_part)(struct comm_part *part); /* under the lock: `reached` or `armed` was set; optional */
};

struct comm_part {
  struct comm_part *next; /* of one submission */
  struct comm_parts *of;
  rill_stream stream; /* retained */
  rill_event gate;
  uint32_t left;        /* operations that have not ended; after the submission the engine's thread's */
  bool failed;          /* the same */
  uint32_t references;  /* the host call, and whoever has the operations: the last one frees the struct */
  bool reached, armed;  /* the host call has run; the stream has both, or never will */
  rill_status reported; /* by the host call, or why it is not there */
  void *works;          /* the engine's */
};

/* Finds the part of an operation's stream in the list, or adds one; counts the operation in. */
rill_status rill__comm_part_of(struct comm_parts *of, const struct comm_op *op, struct comm_part **list,
                               struct comm_part **out);
/* Frees parts that were not submitted. */
void rill__comm_parts_free(struct comm_part *parts);
/* Gives the streams what belongs to the parts, and the parts to the engine's thread; if `refused` is a failure, or from
 * the first failure on, without the streams. */
rill_status rill__comm_parts_submit(struct comm_part *parts, rill_status refused);
/* On the engine's thread: an operation of a part was dropped. */
void rill__comm_part_fail(struct comm_part *part, const struct comm_error *why);
/* An operation has ended; true if it was the last one, and the part is not to be used any more. */
bool rill__comm_part_end_one(struct comm_part *part);

/* What the MPI engine, a library of its own, needs of this one. */
struct comm_services {
  rill_status (*fail)(rill_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
  rill_status (*fail_native)(rill_status status, int32_t code, const char *name, const char *format, ...)
      __attribute__((format(printf, 4, 5)));
  rill_status (*fail_rill)(rill_status status, const char *what);
  const struct comm_error *(*last_error)(void);
  void (*break_comm)(struct comm *comm, const struct comm_error *why, bool apart);
  rill_status (*part_of)(struct comm_parts *of, const struct comm_op *op, struct comm_part **list,
                         struct comm_part **out);
  void (*parts_free)(struct comm_part *parts);
  rill_status (*parts_submit)(struct comm_part *parts, rill_status refused);
  void (*part_fail)(struct comm_part *part, const struct comm_error *why);
  bool (*part_end_one)(struct comm_part *part);
  void (*divide)(uint32_t type, void *data, size_t count, uint32_t divisor);
};

/* What it exports; NULL if it was built for another version. */
#define COMM_MPI_SYMBOL rill_comm_mpi_engine
typedef const struct comm_engine *comm_mpi_engine_fn(const struct comm_services *services, uint32_t version);

/* ---- between the files ---- */

/* Stores `into` OPERATOR `with` in `into`, `count` elements; an average is a sum here (reduce.c).  The arrays must not
 * overlap. */
void rill__comm_combine(uint32_t type, uint32_t op, void *into, const void *with, size_t count);
/* What RILL_COMM_AVERAGE does to a sum of `divisor` ranks. */
void rill__comm_divide(uint32_t type, void *data, size_t count, uint32_t divisor);

/* At exit: ends the thread of the local engine. */
void rill__comm_local_stop(void);

/* The engine of a backend's devices, started. */
rill_status rill__comm_engine_start(uint32_t backend, const struct comm_engine **out);
void rill__comm_id_write(rill_comm_id *id, uint32_t backend, const uint8_t bytes[COMM_ID_BYTES]);

/* Nanoseconds of a clock that only goes forward; a time on it, `ns` from now or as good as never; conditions for it. */
static inline uint64_t comm_now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
static inline struct timespec comm_after(uint64_t ns) {
  const uint64_t most = UINT64_C(1) << 60, at = comm_now() + (ns < most ? ns : most);
  return (struct timespec){ (time_t)(at / 1000000000u), (long)(at % 1000000000u) };
}
static inline void comm_init_condition(pthread_cond_t *condition) {
  pthread_condattr_t monotonic;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(condition, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
}

/* Before anything else of the library; fails in a child of fork. */
rill_status rill__comm_begin_use(void);
/* A communicator of a device, which has not joined; its handle is not known to anybody yet. */
rill_status rill__comm_new(const struct comm_engine *engine, rill_device device, const rill_device_info *info,
                           const rill_comm_options *options, struct comm **out);
void rill__comm_discard(struct comm *comm); /* one whose handle nobody got */
/* After the first joining of an engine: from here on its communicators are ended at exit. */
void rill__comm_handle_exit(const struct comm_engine *engine);

/* Finds the communicator of a handle and keeps it; rill__comm_unpin ends that. */
rill_status rill__comm_pin(rill_comm handle, struct comm **out);
void rill__comm_unpin(struct comm *comm);

/* Around each call of the engine's with the communicator, so that it is not aborted meanwhile; fails if it is broken.
 */
rill_status rill__comm_go_inside(struct comm *comm, bool submits);
void rill__comm_come_out(struct comm *comm, bool submits);

/* Asks the engine, and breaks the communicator if it knows of an error. */
rill_status rill__comm_poll(struct comm *comm);
/* Fails with what broke it. */
rill_status rill__comm_check_intact(struct comm *comm);
/* Breaks the communicator, unless it is: its streams are failed, and the engine's abort runs; on a thread of its own if
 * `apart`. */
void rill__comm_break(struct comm *comm, const struct comm_error *why, bool apart);

/* Adds to a text which other ranks of this process have not come to what this rank calls its operation `number`. */
void rill__comm_name_missing(const struct comm *comm, uint64_t number, char *text, size_t size);

/* Returns false for an operation without elements that is not passed to the engine, and gets no number. */
bool rill__comm_is_submitted(const struct comm_op *op);
/* Submits operations that have been checked; changes them. */
rill_status rill__comm_submit(struct comm_op *ops, size_t count);

/* Runs a function on a detached thread; false if there can be none. */
bool rill__comm_run_apart(void *(*run)(void *), void *argument);

/* Deadlines of engines that keep none.  Nothing, for a communicator without one. */
rill_status rill__comm_watch_add(struct comm *comm);
void rill__comm_watch_remove(struct comm *comm); /* waits until its flights have ended */
void rill__comm_watch_wake(struct comm *comm);   /* a submission starts */
bool rill__comm_watch_is_started(void);
void rill__comm_watch_stop(void);
/* Before operations are submitted to a communicator's stream, adds a flight to the list; afterwards, lets them count,
 * or frees them if nothing was submitted. */
rill_status rill__comm_flight_begin(const struct comm_op *op, struct comm_flight **flights);
void rill__comm_flights_end(struct comm_flight *flights, bool submitted);
/* Tells the streams of flights that have not ended, and frees the flights. */
void rill__comm_watch_tell(struct comm_flight *flights, const struct comm_error *why);

/* RILL_CHECK=comm: whether it is on; compares what the ranks are about to do, nothing if it is off. */
bool rill__comm_checks(void);
rill_status rill__comm_check(const struct comm_op *ops, size_t count);

/* What RILL_FAULT asks for before an operation: its stream waits, the process dies, or its count is another one. */
rill_status rill__comm_inject(struct comm_op *op);

#endif
