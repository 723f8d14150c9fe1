/* The end of communicators at quiet moments (NCCL, RCCL).
 *
 * When a communicator ends, such an engine frees memory and destroys streams.  In these calls the driver waits for all
 * running work of the process, and other calls of the process wait for the driver.  If an operation runs then, and
 * waits for a rank of the same process whose thread is about to submit, neither continues.  The engine also does not
 * return while a graph has an operation of the communicator.  Therefore a communicator without references waits here
 * until the process is quiet: no submission is inside the engine, no operation is in flight, and no graph has
 * operations.
 *
 * Invariant: while the gate is closed, the process is quiet.  Submissions that wait at the gate therefore wait only for
 * calls that wait for nothing.  The gate is never closed to make the process quiet: a rank that has submitted would
 * wait for one that is kept out.  Joins and splits neither wait at the gate nor delay its closing: they wait for other
 * ranks on the host, and run nothing on a device that does.
 *
 * If all communicators of the process are on one device, every operation waits for other processes only, and a
 * communicator ends as soon as no graph has its operations.  Their streams are not recorded here. */
#include "backends/comm/engine.h"

#include <errno.h>

enum { LEAST_REST_NS = 50000, MOST_REST_NS = 10000000, LEAST_KEPT = 64 };

/* A stream with operations in flight: `event` is recorded after each submission.  The stream itself is not retained.
 * Only the ender removes these structs, and only if no submission uses them. */
struct comm_busy {
  struct comm_busy *next;
  rill_stream stream;
  rill_event event;
  const struct comm_engine *engine;
  uint32_t users;   /* submissions that are inside and use the stream */
  uint64_t records; /* of `event`, successful or not */
};

static struct {
  pthread_mutex_t lock; /* never held across a call to the engine or to rill */
  pthread_cond_t changed;
  const struct comm_engine *engine; /* of the first communicator, like `ordinal`; NULL: there was none */
  int32_t ordinal;
  bool spread;                 /* there were communicators on several devices */
  struct comm *waiting;        /* communicators without references; linked by next */
  struct comm_busy *in_flight; /* one per stream */
  uint32_t kept, most_kept;    /* streams in flight, and up to how many the ender need not look for ends */
  uint32_t inside;             /* submissions inside the engine */
  uint64_t unseen; /* operations that may run and whose end cannot be seen: those that graphs have, and those after
                      which an event could not be recorded, which stay */
  uint32_t ends;   /* threads that end communicators; unless 0 and if spread, the gate is closed */
  bool ending;     /* the ender runs */
  bool leaving;    /* the process exits ... */
  bool stopped;    /* ... and does not wait any longer */
} quiet = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .most_kept = LEAST_KEPT };

static bool is_quiet(void) { return quiet.inside == 0 && quiet.in_flight == NULL && quiet.unseen == 0; }

/* ---- devices ---- */

void rill__comm_quiet_add(const struct comm *comm) {
  if (!comm->engine->ends_when_quiet) return;
  pthread_mutex_lock(&quiet.lock);
  if (quiet.engine == NULL) {
    quiet.engine = comm->engine;
    quiet.ordinal = comm->ordinal;
  }
  quiet.spread |= comm->engine != quiet.engine || comm->ordinal != quiet.ordinal;
  pthread_cond_broadcast(&quiet.changed);
  pthread_mutex_unlock(&quiet.lock);
}

/* ---- submissions ---- */

static struct comm_busy *find_busy(rill_stream stream) {
  struct comm_busy *busy = quiet.in_flight;
  while (busy != NULL && !rill_stream_equal(busy->stream, stream)) busy = busy->next;
  if (busy != NULL) busy->users++;
  return busy;
}

static rill_status new_busy(const struct comm_op *op, struct comm_busy **out) {
  struct comm_busy *busy = calloc(1, sizeof *busy);
  COMM_REQUIRE(busy != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a stream of operations");
  *busy = (struct comm_busy){ .stream = op->stream, .engine = op->comm->engine, .users = 1 };
  const rill_status status = rill_event_create(op->comm->device, NULL, &busy->event);
  if (status != RILL_OK) free(busy);
  if (status != RILL_OK) return rill__comm_fail_rill(status, "an event for the end of operations");
  *out = busy;
  return RILL_OK;
}

static void free_busy(struct comm_busy *busy) {
  if (busy != NULL) (void)rill_event_release(busy->event);
  free(busy);
}

/* Begins a use of the operation's stream. */
static rill_status use_stream(struct comm_op *op) {
  struct comm_busy *made = NULL;
  pthread_mutex_lock(&quiet.lock);
  op->busy = find_busy(op->stream);
  pthread_mutex_unlock(&quiet.lock);
  if (op->busy != NULL) return RILL_OK;
  COMM_TRY(new_busy(op, &made));
  pthread_mutex_lock(&quiet.lock);
  op->busy = find_busy(op->stream); /* another thread may have added the stream */
  if (op->busy == NULL) {
    struct comm_busy **last = &quiet.in_flight;
    while (*last != NULL) last = &(*last)->next;
    *last = op->busy = made;
    quiet.kept++;
    made = NULL;
  }
  pthread_mutex_unlock(&quiet.lock);
  free_busy(made);
  return RILL_OK;
}

/* Records that an operation, which `before` precedes in its submission, will be in flight or in a graph. */
static rill_status expect(struct comm_op *op, const struct comm_op *before, bool spread) {
  const bool same = before != NULL && rill_stream_equal(before->stream, op->stream);
  bool captures = false;
  if (same && before->comm == op->comm) return RILL_OK;
  COMM_TRY_RILL(rill_stream_is_capturing(op->stream, &captures), "stream");
  if (captures) return op->comm->engine->capture(op->comm, op->stream);
  return spread && !same ? use_stream(op) : RILL_OK;
}

rill_status rill__comm_quiet_enter(struct comm_op *ops, size_t count) {
  if (!ops[0].comm->engine->ends_when_quiet) return RILL_OK;
  pthread_mutex_lock(&quiet.lock);
  while (quiet.spread && quiet.ends > 0) (void)pthread_cond_wait(&quiet.changed, &quiet.lock);
  quiet.inside++;
  const bool spread = quiet.spread;
  pthread_mutex_unlock(&quiet.lock);
  rill_status status = RILL_OK;
  for (size_t i = 0; i < count; i++) ops[i].busy = NULL;
  for (size_t i = 0; i < count && status == RILL_OK; i++) {
    status = expect(&ops[i], i > 0 ? &ops[i - 1] : NULL, spread);
  }
  if (status != RILL_OK) rill__comm_quiet_leave(ops, count, false);
  return status;
}

static void start_ender(void);

void rill__comm_quiet_leave(const struct comm_op *ops, size_t count, bool may_run) {
  if (!ops[0].comm->engine->ends_when_quiet) return;
  for (size_t i = 0; i < count; i++) {
    if (ops[i].busy == NULL) continue;
    const rill_status status = may_run ? rill_stream_record_event(ops[i].stream, ops[i].busy->event, 0) : RILL_OK;
    pthread_mutex_lock(&quiet.lock);
    ops[i].busy->records++;
    if (status != RILL_OK && status != RILL_ERROR_DEVICE_LOST) quiet.unseen++; /* nothing runs on a lost device */
    ops[i].busy->users--;
    pthread_mutex_unlock(&quiet.lock);
  }
  pthread_mutex_lock(&quiet.lock);
  COMM_ASSERT(quiet.inside > 0);
  quiet.inside--;
  if (is_quiet()) pthread_cond_broadcast(&quiet.changed);
  const bool many = quiet.kept > quiet.most_kept;
  pthread_mutex_unlock(&quiet.lock);
  if (many) start_ender();
}

void rill__comm_quiet_count_graph(struct comm *comm, int change) {
  pthread_mutex_lock(&quiet.lock);
  comm->graphs += (uint64_t)(int64_t)change;
  quiet.unseen += (uint64_t)(int64_t)change;
  if (change < 0) pthread_cond_broadcast(&quiet.changed);
  pthread_mutex_unlock(&quiet.lock);
}

/* ---- the ender ----
 *
 * One thread, which exists only while communicators wait or many streams are recorded.  Its functions are called under
 * the lock. */

/* Asks whether the operations of a stream have ended, and removes it then.  Releases the lock meanwhile. */
static bool remove_idle(struct comm_busy *busy) {
  bool ready = false;
  const uint64_t records = busy->records;
  if (busy->users > 0) return false;
  pthread_mutex_unlock(&quiet.lock);
  if (busy->engine->begin_watch != NULL) busy->engine->begin_watch();
  const rill_status status = rill_event_is_ready(busy->event, &ready);
  pthread_mutex_lock(&quiet.lock);
  const bool over = status == RILL_OK ? ready : status == RILL_ERROR_DEVICE_LOST;
  if (!over || busy->users > 0 || busy->records != records) return false;
  struct comm_busy **link = &quiet.in_flight;
  while (*link != busy) link = &(*link)->next;
  *link = busy->next;
  quiet.kept--;
  pthread_mutex_unlock(&quiet.lock);
  free_busy(busy);
  pthread_mutex_lock(&quiet.lock);
  return true;
}

/* Returns whether any stream was removed. */
static bool remove_all_idle(void) {
  bool any = false;
  struct comm_busy *next = NULL;
  for (struct comm_busy *busy = quiet.in_flight; busy != NULL; busy = next) {
    next = busy->next; /* stays: only this thread removes */
    any |= remove_idle(busy);
  }
  quiet.most_kept = 2 * quiet.kept > LEAST_KEPT ? 2 * quiet.kept : LEAST_KEPT;
  return any;
}

static void end_now(struct comm *comm) {
  COMM_ASSERT(comm->graphs == 0);
  comm->engine->end(comm);
  rill__comm_free(comm);
}

/* Begins and ends a period in which communicators are ended. */
static void change_ends(int change) {
  quiet.ends += (uint32_t)change;
  pthread_cond_broadcast(&quiet.changed);
}

static void *end_alone(void *comm) {
  end_now(comm);
  pthread_mutex_lock(&quiet.lock);
  change_ends(-1);
  pthread_mutex_unlock(&quiet.lock);
  return NULL;
}

/* Ends a communicator, on a thread of its own because the call may wait for operations.  Returns false if there is none
 * that may end now. */
static bool end_one_alone(void) {
  struct comm **link = &quiet.waiting;
  while (*link != NULL && (*link)->graphs > 0) link = &(*link)->next;
  struct comm *const comm = *link;
  if (comm == NULL) return false;
  *link = comm->next;
  change_ends(1);
  pthread_mutex_unlock(&quiet.lock);
  if (!rill__comm_run_apart(end_alone, comm)) (void)end_alone(comm);
  pthread_mutex_lock(&quiet.lock);
  return true;
}

/* Ends all communicators that wait, if the process is quiet. */
static bool end_all(void) {
  if (!is_quiet() || quiet.ends > 0) return false;
  struct comm *comm = quiet.waiting;
  quiet.waiting = NULL;
  change_ends(1);
  pthread_mutex_unlock(&quiet.lock);
  while (comm != NULL) {
    struct comm *const next = comm->next;
    if (comm->engine->begin_watch != NULL) comm->engine->begin_watch();
    end_now(comm);
    comm = next;
  }
  pthread_mutex_lock(&quiet.lock);
  COMM_ASSERT(is_quiet());
  change_ends(-1);
  return true;
}

static bool end_some(void) {
  if (quiet.waiting == NULL) return false;
  return quiet.spread ? end_all() : end_one_alone();
}

/* Returns whether the ender has nothing more to do.  At exit it waits only for operations in flight: graphs and
 * submissions of other threads may stay, and their communicators are left to the end of the process. */
static bool is_done(void) {
  if (quiet.waiting == NULL) return quiet.kept <= quiet.most_kept;
  return quiet.stopped || (quiet.leaving && (quiet.unseen > 0 || quiet.inside > 0));
}

/* Waits for a change, or for the time at which to ask again: what makes `unseen` 0 signals, but a submission that ends
 * does not, since it would wake the thread for nothing most of the time. */
static void rest(uint64_t ns) {
  const struct timespec until = comm_after(ns);
  if (quiet.unseen > 0) (void)pthread_cond_wait(&quiet.changed, &quiet.lock);
  else (void)pthread_cond_timedwait(&quiet.changed, &quiet.lock, &until);
}

static void *run_ender(void *unused) {
  uint64_t tick = LEAST_REST_NS;
  (void)unused;
  rill__comm_enter("rill_comm");
  pthread_mutex_lock(&quiet.lock);
  while (!is_done()) {
    const bool useful = quiet.unseen == 0 || quiet.kept > quiet.most_kept; /* to ask for ends */
    if (end_some() || (useful && remove_all_idle())) {
      tick = LEAST_REST_NS;
    } else if (!is_done()) {
      rest(tick);
      tick = tick < MOST_REST_NS / 2 ? 2 * tick : MOST_REST_NS;
    }
  }
  quiet.ending = false;
  pthread_mutex_unlock(&quiet.lock);
  return NULL;
}

/* Without a thread nothing ends; the next call tries again. */
static void start_ender(void) {
  pthread_mutex_lock(&quiet.lock);
  const bool start = !quiet.ending;
  quiet.ending = true;
  pthread_cond_broadcast(&quiet.changed);
  pthread_mutex_unlock(&quiet.lock);
  if (!start || rill__comm_run_apart(run_ender, NULL)) return;
  pthread_mutex_lock(&quiet.lock);
  quiet.ending = false;
  pthread_mutex_unlock(&quiet.lock);
}

void rill__comm_quiet_end(struct comm *comm) {
  pthread_mutex_lock(&quiet.lock);
  const bool at_once = !quiet.spread && comm->graphs == 0;
  if (at_once) {
    change_ends(1);
  } else {
    comm->next = quiet.waiting;
    quiet.waiting = comm;
  }
  pthread_mutex_unlock(&quiet.lock);
  if (at_once) (void)end_alone(comm);
  else start_ender();
}

/* ---- at exit and fork ---- */

void rill__comm_quiet_leave_process(void) {
  pthread_mutex_lock(&quiet.lock);
  quiet.leaving = true;
  pthread_cond_broadcast(&quiet.changed);
  pthread_mutex_unlock(&quiet.lock);
}

void rill__comm_quiet_stop(void) {
  pthread_mutex_lock(&quiet.lock);
  quiet.stopped = true;
  pthread_cond_broadcast(&quiet.changed);
  pthread_mutex_unlock(&quiet.lock);
}

void rill__comm_quiet_init(void) { comm_init_condition(&quiet.changed); }

void rill__comm_quiet_forked(void) { (void)pthread_mutex_init(&quiet.lock, NULL); }
