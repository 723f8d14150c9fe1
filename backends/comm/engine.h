/* Declarations shared by the files of rill_comm, and the interface of an engine.
 *
 * rill_comm uses only rill's public interface.  An engine (NCCL, RCCL, MPI, or local.c for threads of one process)
 * joins ranks and runs operations; comm.c has the handles, join.c joins, operation.c checks and groups operations,
 * watch.c enforces deadlines for engines that do not, quiet.c ends communicators of engines that block the process
 * meanwhile, parts.c blocks streams of the CPU.
 *
 * States of a communicator, in order: joined; broken, at most once, by a deadline, an error of the engine or
 * rill_comm_abort, which calls engine->abort once; destroyed when its last reference is released, which calls
 * engine->end once, after abort has returned. */
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

/* In a format string: separates the message from the hint. */
#define COMM_HINT "\x1f"

/* The contents of the last error, and of the error that broke a communicator. */
struct comm_error {
  rill_status status;
  int32_t native_code;
  const char *api;
  char object[96], native_name[48], message[640], hint[256];
};

rill_status rill__comm_fail(rill_status status, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
rill_status rill__comm_fail_native(rill_status status, int32_t code, const char *name, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));
/* Makes rill's last error the last error of this library, after a call to rill has failed.  `what`: the purpose of the
 * call. */
rill_status rill__comm_fail_rill(rill_status status, const char *what) __attribute__((cold));
/* Makes `error` the last error, attributed to the current function. */
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
/* Works like COMM_TRY, for calls to rill. */
#define COMM_TRY_RILL(call, what)                                                 \
  do {                                                                            \
    const rill_status try_status_ = (call);                                       \
    if (try_status_ != RILL_OK) return rill__comm_fail_rill(try_status_, (what)); \
  } while (0)

/* Checks an internal invariant in builds with RILL_CHECKS.  A caller's mistake is reported as a status instead. */
#ifdef RILL_CHECKS
#define COMM_ASSERT(condition) \
  ((condition) ? (void)0 : (void)(fprintf(stderr, "%s:%d: rill_comm: %s\n", __FILE__, __LINE__, #condition), abort()))
#else
#define COMM_ASSERT(condition) ((void)sizeof(condition))
#endif

/* Begins a public function: sets its name, and the object that errors name. */
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
  size_t count, size; /* size: bytes per element */
  enum comm_kind kind;
  uint32_t type, op, peer; /* RILL_COMM_*; peer: root, or the other rank of a message */
  uint64_t number;         /* counts the communicator's operations, from 1; 0: submitted by the library ... */
  enum comm_kind for_kind; /* ... for an operation of this kind and number (RILL_CHECK=comm) */
  uint64_t for_number;
  struct comm_busy *busy; /* owned by quiet.c; valid while the operation is submitted */
};

static inline size_t comm_bytes(const struct comm_op *op) {
  return op->kind == COMM_BARRIER ? 0 : op->count * op->size;
}

/* One or several operations on one stream that share a deadline (watch.c). */
struct comm_flight {
  struct comm_flight *next;
  struct comm *comm;
  rill_stream stream; /* retained */
  rill_event start, end;
  uint64_t since;    /* when the stream was first seen to have reached the flight; 0: not yet */
  struct comm_op op; /* the first operation */
};

/* A queue of the calls that use a communicator one after the other, in the order in which they arrive.  No mutex is
 * held during a turn, which may wait for a driver or for other ranks. */
struct comm_turns {
  uint64_t next;  /* ticket of the next call that arrives */
  uint64_t first; /* ticket of the call that has the turn, or gets it when it arrives */
  bool taken;     /* a call has the turn */
};
enum comm_turn {
  COMM_CHECKING, /* RILL_CHECK=comm: the call compares its operations and submits them.  It owns the records. */
  COMM_SUBMITTING,
  COMM_TURNS
};

struct comm {
  const struct comm_engine *engine;
  rill_comm handle;
  struct comm *next; /* owned by comm.c, like the next two; after the last reference, by quiet.c */
  uint32_t references, pins;
  rill_device device;
  int32_t ordinal;
  uintptr_t context; /* native context of the device; 0 if the backend has none */
  uint32_t ranks, rank;
  uint64_t timeout;
  char label[64];
  void *native;             /* owned by the engine */
  void *scratch;            /* 8 bytes of the device's memory, for barriers; NULL if the engine needs none */
  rill_stream check_stream; /* used by RILL_CHECK=comm (check.c), like the next two */
  void *check_memory, *check_device_memory;
  uint64_t graphs; /* owned by quiet.c; captured operations that graphs still have */
  void *pair_memory[COMM_PAIR_SIZES], *pair_device_memory[COMM_PAIR_SIZES]; /* [k]: for 2^k sends and receives */
  _Atomic uint64_t numbered; /* number of the last operation; changed by the call whose turn COMM_SUBMITTING is */
  uint64_t family;           /* equal on all ranks of a communicator, and very likely unique to it; 0: not joined */
  uint64_t splits;           /* number of splits so far; changed like `numbered` */

  pthread_mutex_t lock; /* guards the following fields; never held across a call to the engine or to rill */
  pthread_cond_t changed;
  struct comm_turns turns[COMM_TURNS];
  bool broken, aborted; /* aborted: engine->abort has returned */
  struct comm_error failure;
  uint32_t inside;           /* running calls of the engine */
  uint64_t submitting_since; /* when the current submission started; 0: none is running */
  struct comm_flight *first, **last;
  struct comm *next_watched;
  bool watched_now;
};

static inline bool comm_is_message(const struct comm_op *op) {
  return op->kind == COMM_SEND || op->kind == COMM_RECEIVE;
}

static inline const char *comm_type_name(uint64_t type) {
  static const char *const names[] = { "?",      "int8", "uint8", "int32",  "uint32",  "int64",
                                       "uint64", "half", "float", "double", "bfloat16" };
  return names[type <= RILL_COMM_BFLOAT16 ? type : 0];
}

/* Returns the bytes of an element; 0 for an unknown type. */
static inline size_t comm_size_of(uint64_t type) {
  static const uint8_t sizes[] = { 0, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
  return sizes[type <= RILL_COMM_BFLOAT16 ? type : 0];
}

static inline const char *comm_operator_name(uint64_t op) {
  static const char *const names[] = { "?", "sum", "product", "max", "min", "average" };
  return names[op <= RILL_COMM_AVERAGE ? op : 0];
}

/* An operation as reports name it: "send of rank 2 of 4 to rank 3 (operation 7)". */
struct comm_op_text {
  char text[112];
};

/* Returns the text of the arguments that the ranks of an operation must have in common: "5 elements of float, sum, root
 * 0". */
static inline struct comm_op_text comm_arguments(uint64_t kind, uint64_t count, uint64_t type, uint64_t op,
                                                 uint64_t root) {
  struct comm_op_text made;
  const bool reduces = kind == COMM_ALL_REDUCE || kind == COMM_REDUCE || kind == COMM_REDUCE_SCATTER;
  char more[32] = "";
  if (kind == COMM_REDUCE || kind == COMM_BROADCAST) (void)snprintf(more, sizeof more, ", root %u", (unsigned)root);
  (void)snprintf(made.text, sizeof made.text, "%llu element%s of %s%s%s%s", (unsigned long long)count,
                 count == 1 ? "" : "s", comm_type_name(type), reduces ? ", " : "",
                 reduces ? comm_operator_name(op) : "", more);
  return made;
}
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

/* The arguments of an operation, which must be the same on all ranks. */
struct comm_record {
  uint64_t kind, count, type, op, peer; /* compared; of messages only count and type */
  uint64_t rank, ranks, number;         /* for reports */
};

static inline struct comm_record comm_record_of(const struct comm_op *op, uint64_t number) {
  return (
      struct comm_record){ op->kind, op->count, op->type, op->op, op->peer, op->comm->rank, op->comm->ranks, number };
}

/* Returns whether two collective operations, or the two sides of a message, match. */
static inline bool comm_records_match(const struct comm_record *a, const struct comm_record *b) {
  const bool same = a->count == b->count && a->type == b->type;
  if (a->kind == COMM_SEND || a->kind == COMM_RECEIVE) return same && a->kind + b->kind == COMM_SEND + COMM_RECEIVE;
  return same && a->kind == b->kind && a->op == b->op && a->peer == b->peer;
}

struct comm_record_text {
  char text[240];
};
static inline struct comm_record_text comm_describe_record(const struct comm_record *record) {
  struct comm_record_text made;
  const unsigned peer = (unsigned)record->peer;
  char to[32] = "";
  if (record->kind == COMM_SEND) (void)snprintf(to, sizeof to, " to rank %u", peer);
  if (record->kind == COMM_RECEIVE) (void)snprintf(to, sizeof to, " from rank %u", peer);
  (void)snprintf(made.text, sizeof made.text, "%s of rank %u of %u%s (operation %llu) of %s",
                 comm_kind_name(record->kind), (unsigned)record->rank, (unsigned)record->ranks, to,
                 (unsigned long long)record->number,
                 comm_arguments(record->kind, record->count, record->type, record->op, peer).text);
  return made;
}

/* Returns the description of an operation for rill's reports and traces. */
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
  uint32_t backend; /* RILL_BACKEND_* of the devices that it serves */
  size_t max_count; /* most elements per operation */
  bool keeps_deadlines, needs_scratch;
  bool compares_messages; /* a receive fails by itself if it does not match the message */
  bool takes_empty;       /* takes operations of 0 elements, to compare them */
  bool joins_in_time;   /* `join` and `split` enforce the communicator's deadline, so they run on the caller's thread */
  bool notes;           /* the engine itself reports to rill when its operations ran */
  bool cannot_cancel;   /* operations may use their buffers even after a broken communicator has ended */
  bool ends_when_quiet; /* `end` is called at quiet moments only (quiet.c) */
  bool aborts_apart;    /* `abort` may wait for other communicators of the device, so it gets a thread of its own */

  /* Makes the engine usable.  Called on the caller's thread before each use.  A failure says what was tried. */
  rill_status (*start)(void);
  uint32_t (*version)(void);
  rill_status (*make_id)(uint8_t bytes[COMM_ID_BYTES]);
  /* Joins ranks of this process.  Called on any thread; may block until the other ranks join. */
  rill_status (*join)(struct comm *const *comms, uint32_t count, const uint8_t id[COMM_ID_BYTES]);
  /* Joins the ranks of `parent` with the same color into `child`, and sets its rank and ranks (0 ranks with
   * RILL_COMM_NO_COLOR).  Blocks as `join` does.  NULL if the engine cannot split. */
  rill_status (*split)(struct comm *parent, uint32_t color, uint32_t key, struct comm *child);
  /* Submits one or more operations.  Their communicators are not broken, and no other submission runs on them.  A
   * failure that leaves a communicator unusable calls rill__comm_break.  With ends_when_quiet, operations may run after
   * RILL_OK and after RILL_ERROR_BACKEND, and after no other failure. */
  rill_status (*submit)(const struct comm_op *ops, size_t count);
  /* Called before `submit` for an operation on a stream that captures: calls rill__comm_quiet_count_graph for the
   * graph, and again when the graph and its execution objects have been destroyed.  Only with ends_when_quiet. */
  rill_status (*capture)(struct comm *comm, rill_stream stream);
  /* Fails if the engine has detected an error.  Optional. */
  rill_status (*poll)(struct comm *comm);
  /* Makes a submission that blocks inside the engine return; returns false if it cannot.  Optional. */
  bool (*interrupt)(struct comm *comm);
  /* Stops the operations in progress.  A submission may still be inside if the engine cannot interrupt it. */
  void (*abort)(struct comm *comm);
  /* Waits until all submitted operations have ended.  Optional.  The engine may break the communicator until drain
   * returns, and not afterwards. */
  void (*drain)(struct comm *comm);
  /* Frees the engine's resources, including after abort.  Without `drain`, it may block for as long as drain would. */
  void (*end)(struct comm *comm);
  /* Called on a thread of this library before it first queries the engine or ends a communicator, because that must not
   * disturb captures.  May be called again.  Optional. */
  void (*begin_watch)(void);

  /* Only for MPI: returns the ranks of all processes, looks up an MPI communicator by its handle, and broadcasts bytes
   * from rank 0. */
  rill_status (*world)(uint32_t *ranks, uint32_t *rank);
  rill_status (*of_handle)(int32_t handle, const char *library, uint8_t id[COMM_ID_BYTES], uint32_t *ranks,
                           uint32_t *rank);
  rill_status (*pass)(const uint8_t id[COMM_ID_BYTES], uint32_t ranks, uint32_t rank, bool have,
                      uint8_t bytes[COMM_ID_BYTES]);
};

extern const struct comm_engine rill__comm_nccl, rill__comm_rccl, rill__comm_local;

/* The backend number of the local engine, which is also used in ids.  Its devices belong to RILL_BACKEND_CPU, and its
 * ranks to one process. */
enum { COMM_LOCAL = 16 };

/* ---- streams of the CPU (parts.c) ---- */

struct comm_part;

/* An engine's state for its parts. */
struct comm_parts {
  pthread_mutex_t lock; /* guards all parts; never held across a call to rill */
  pthread_cond_t changed;
  rill_stream stream; /* the stream on which gates are recorded */
  /* Called under the lock after `reached` or `armed` was set.  Returns whether the engine's thread must be woken.
   * Optional: by default it is woken when both are set, and when a part is armed. */
  bool (*changed_part)(struct comm_part *part);
};

struct comm_part {
  struct comm_part *next; /* in the same submission */
  struct comm_parts *of;
  rill_stream stream; /* retained */
  rill_event gate;
  uint32_t left;       /* operations that have not ended; used only by the engine's thread after the submission */
  bool failed;         /* used like `left` */
  uint32_t references; /* held by the host call and by the owner of the operations; the last one frees the struct */
  bool reached,
      armed; /* reached: the host call has run; armed: host call and wait were submitted, or submitting them failed */
  rill_status reported; /* status that the host call received, or with which submitting failed */
  void *works;          /* owned by the engine */
};

/* Finds the part of the operation's stream in the list, or adds one, and counts the operation in it. */
rill_status rill__comm_part_of(struct comm_parts *of, const struct comm_op *op, struct comm_part **list,
                               struct comm_part **out);
/* Frees parts that were not submitted. */
void rill__comm_parts_free(struct comm_part *parts);
/* Submits each part's host call and wait to its stream, and hands the parts to the engine's thread.  If `refused` is a
 * failure, or after the first failure, parts are handed over without using their streams. */
rill_status rill__comm_parts_submit(struct comm_part *parts, rill_status refused);
/* Fails the part's stream because an operation was dropped.  Called on the engine's thread. */
void rill__comm_part_fail(struct comm_part *part, const struct comm_error *why);
/* Counts an operation of the part as ended.  Returns true if it was the last one; the part must not be used any more.
 */
bool rill__comm_part_end_one(struct comm_part *part);

/* Functions of this library for the MPI engine, which is a separate library. */
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

/* The function that the MPI engine exports.  Returns NULL if it was built for another version. */
#define COMM_MPI_SYMBOL rill_comm_mpi_engine
typedef const struct comm_engine *comm_mpi_engine_fn(const struct comm_services *services, uint32_t version);

/* ---- between the files ---- */

/* Stores `into` OPERATOR `with` in `into`, `count` elements; an average is a sum here (reduce.c).  The arrays must not
 * overlap. */
void rill__comm_combine(uint32_t type, uint32_t op, void *into, const void *with, size_t count);
/* Divides sums by `divisor`, the number of ranks, for RILL_COMM_AVERAGE. */
void rill__comm_divide(uint32_t type, void *data, size_t count, uint32_t divisor);

/* Stops the thread of the local engine at exit. */
void rill__comm_local_stop(void);

/* Starts the engine for devices of a backend if necessary, and returns it. */
rill_status rill__comm_engine_start(uint32_t backend, const struct comm_engine **out);
void rill__comm_id_write(rill_comm_id *id, uint32_t backend, const uint8_t bytes[COMM_ID_BYTES]);

/* Return the monotonic time in nanoseconds, a deadline `ns` from now, and a condition variable that uses this clock.  A
 * deadline beyond 2^60 ns is cut to that. */
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

/* Prepares the library; called before any other use of it.  Fails in a forked child. */
rill_status rill__comm_begin_use(void);
/* Creates a communicator of a device.  It has not joined yet, and no caller knows its handle. */
rill_status rill__comm_new(const struct comm_engine *engine, rill_device device, const rill_device_info *info,
                           const rill_comm_options *options, struct comm **out);
void rill__comm_discard(struct comm *comm); /* frees a communicator whose handle was never returned */
/* Registers the exit handler, after an engine's first join; from then on its communicators are destroyed at exit. */
void rill__comm_handle_exit(const struct comm_engine *engine);

/* Finds the communicator of a handle and keeps it alive until rill__comm_unpin. */
rill_status rill__comm_pin(rill_comm handle, struct comm **out);
void rill__comm_unpin(struct comm *comm);

/* Waits until it is the call's turn, which ends with rill__comm_pass_turn.  Fails, without a turn, if the communicator
 * is broken or breaks during the wait.  A call takes COMM_CHECKING before COMM_SUBMITTING, and the turns of several
 * communicators in the order of their addresses.  A call that takes a turn is not inside any communicator, so that
 * abort does not wait for it. */
rill_status rill__comm_take_turn(struct comm *comm, enum comm_turn which);
void rill__comm_pass_turn(struct comm *comm, enum comm_turn which);

/* Bracket each engine call that uses the communicator, so that abort waits for it.  The first one fails if the
 * communicator is broken. */
rill_status rill__comm_go_inside(struct comm *comm, bool submits);
void rill__comm_come_out(struct comm *comm, bool submits);

/* Polls the engine, and breaks the communicator if the engine reports an error. */
rill_status rill__comm_poll(struct comm *comm);
/* Fails with the error that broke the communicator, if it is broken. */
rill_status rill__comm_check_intact(struct comm *comm);
/* Breaks the communicator unless it is broken already: fails its streams and calls the engine's abort, on a helper
 * thread if `apart`. */
void rill__comm_break(struct comm *comm, const struct comm_error *why, bool apart);

/* Appends to `text` which ranks of this process have not reached operation `number` of this rank. */
void rill__comm_name_missing(const struct comm *comm, uint64_t number, char *text, size_t size);

/* Returns whether an operation is numbered and passed to the engine.  Some operations of 0 elements are not. */
bool rill__comm_is_submitted(const struct comm_op *op);
/* Submits operations that have been checked, and modifies their structs. */
rill_status rill__comm_submit(struct comm_op *ops, size_t count);

/* Checks an operation of a public function `api`, and submits it or adds it to the calling thread's open group. */
rill_status rill__comm_enqueue(rill_comm handle, struct comm_op op, const char *api);
/* Open and close a group of the calling thread.  Closing the outermost one submits its operations, or fails with the
 * error of the first one that was refused. */
rill_status rill__comm_group_open(void);
rill_status rill__comm_group_close(void);
/* Fails the calling thread's open group, if any, with the last error.  Returns `status`. */
rill_status rill__comm_group_refuse(rill_status status);

/* Runs a function on a detached thread, for which at_exit waits; returns false if no thread could be created. */
bool rill__comm_run_apart(void *(*run)(void *), void *argument);

/* Frees a communicator and its resources, except those of the engine, which have been freed. */
void rill__comm_free(struct comm *comm);

/* The end of communicators whose engine has ends_when_quiet (quiet.c); without effect for others.  `add`: the
 * communicator exists; `end`: it has neither references nor calls, and is ended and freed at a quiet moment. */
void rill__comm_quiet_add(const struct comm *comm);
void rill__comm_quiet_end(struct comm *comm);
/* Bracket each submission.  The first one may wait for communicators that are being ended, and fails without effect;
 * the second one follows unless the first one failed.  `may_run`: operations may have started. */
rill_status rill__comm_quiet_enter(struct comm_op *ops, size_t count);
void rill__comm_quiet_leave(const struct comm_op *ops, size_t count, bool may_run);
/* Counts a captured operation of the communicator, before it is captured (1) and when no graph has it any more (-1).
 * Calls nothing of a driver. */
void rill__comm_quiet_count_graph(struct comm *comm, int change);
void rill__comm_quiet_init(void);
/* Called at exit: waits no more for graphs, and at last for nothing. */
void rill__comm_quiet_leave_process(void);
void rill__comm_quiet_stop(void);
void rill__comm_quiet_forked(void);

/* Deadlines, for engines that do not enforce them.  These functions do nothing for a communicator without a deadline.
 */
rill_status rill__comm_watch_add(struct comm *comm);
void rill__comm_watch_remove(struct comm *comm); /* waits until the flights have ended */
void rill__comm_watch_wake(struct comm *comm);   /* called when a submission starts */
bool rill__comm_watch_is_started(void);
void rill__comm_watch_stop(void);
/* rill__comm_flight_begin adds a flight to the list before operations are submitted to a stream.
 * rill__comm_flights_end starts watching the flights, or frees them if nothing was submitted. */
rill_status rill__comm_flight_begin(const struct comm_op *op, struct comm_flight **flights);
void rill__comm_flights_end(struct comm_flight *flights, bool submitted);
/* Fails the streams of flights that have not ended, and frees all flights. */
void rill__comm_watch_tell(struct comm_flight *flights, const struct comm_error *why);

/* RILL_CHECK=comm: rill__comm_checks returns whether it is on; rill__comm_check compares what the ranks are about to
 * do.  Call it in the turn COMM_CHECKING of the communicators. */
bool rill__comm_checks(void);
rill_status rill__comm_check(const struct comm_op *ops, size_t count);

/* Applies what RILL_FAULT requests before an operation: delays its stream, kills the process, or changes the count. */
rill_status rill__comm_inject(struct comm_op *op);

#endif
