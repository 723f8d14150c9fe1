/* Deadlines and asynchronous errors, for engines that do not handle these themselves.
 *
 * A flight consists of the operations that a communicator submitted to one stream at one time, with an event before and
 * an event after them.  One thread polls only the oldest flight of each communicator, because an engine runs a
 * communicator's operations in order.  The deadline of a flight counts from when its stream was seen to have reached
 * it.  A communicator without a deadline has no flights. */
#include "backends/comm/engine.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_TICK_NS = 1000000, MOST_TICK_NS = 100000000, TICKS = 20 }; /* TICKS: polls per deadline */

static struct {
  pthread_mutex_t lock; /* taken before a communicator's lock */
  pthread_cond_t changed;
  struct comm *first; /* linked by next_watched */
  bool started, stopped, asleep;
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* ---- flights ---- */

static bool is_watched(const struct comm *comm) { return comm->timeout != 0 && !comm->engine->keeps_deadlines; }

static void free_flights(struct comm_flight *flight) {
  while (flight != NULL) {
    struct comm_flight *next = flight->next;
    (void)rill_event_release(flight->start);
    (void)rill_event_release(flight->end);
    (void)rill_stream_release(flight->stream);
    free(flight);
    flight = next;
  }
}

rill_status rill__comm_flight_begin(const struct comm_op *op, struct comm_flight **flights) {
  bool capturing = false; /* captured work runs later, any number of times */
  if (!is_watched(op->comm)) return RILL_OK;
  COMM_TRY_RILL(rill_stream_is_capturing(op->stream, &capturing), "stream");
  if (capturing) return RILL_OK;
  struct comm_flight *flight = calloc(1, sizeof *flight);
  COMM_REQUIRE(flight != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to watch an operation");
  flight->next = *flights;
  flight->comm = op->comm;
  flight->op = *op;
  *flights = flight;
  COMM_TRY_RILL(rill_stream_retain(op->stream), "stream");
  flight->stream = op->stream;
  COMM_TRY_RILL(rill_event_create(op->comm->device, NULL, &flight->end), "watching an operation");
  COMM_TRY_RILL(rill_stream_record_new_event(op->stream, NULL, &flight->start), "watching an operation");
  return RILL_OK;
}

/* Adds the flight to its communicator's list, after its operations were submitted. */
static void watch_flight(struct comm_flight *flight) {
  struct comm *comm = flight->comm;
  flight->next = NULL;
  /* A failure needs no handling: if the device is lost, every later call reports it. */
  (void)!rill_stream_record_event(flight->stream, flight->end, 0);
  pthread_mutex_lock(&comm->lock);
  const bool broken = comm->broken;
  if (!broken) {
    *comm->last = flight;
    comm->last = &flight->next;
  }
  const struct comm_error why = comm->failure;
  pthread_mutex_unlock(&comm->lock);
  if (broken) rill__comm_watch_tell(flight, &why);
}

void rill__comm_flights_end(struct comm_flight *flights, bool submitted) {
  if (!submitted) {
    free_flights(flights);
    return;
  }
  while (flights != NULL) {
    struct comm_flight *flight = flights;
    flights = flight->next;
    watch_flight(flight);
  }
}

void rill__comm_watch_tell(struct comm_flight *flights, const struct comm_error *why) {
  for (struct comm_flight *flight = flights; flight != NULL; flight = flight->next) {
    bool ended = false;
    if (rill_event_is_ready(flight->end, &ended) == RILL_OK && ended) continue;
    (void)!rill_stream_fail(flight->stream, why->status, why->message);
  }
  free_flights(flights);
}

/* ---- polling ----
 *
 * The thread that breaks a communicator frees its flights.  The watch thread therefore polls a copy, whose handles may
 * be stale, and uses the result only if that flight is still the oldest. */

static bool is_oldest(const struct comm *comm, const struct comm_flight *copy) { /* under the lock */
  return comm->first != NULL && rill_event_equal(comm->first->end, copy->end);
}

static bool copy_oldest(struct comm *comm, struct comm_flight *copy) {
  pthread_mutex_lock(&comm->lock);
  const bool any = comm->first != NULL;
  if (any) *copy = *comm->first;
  pthread_mutex_unlock(&comm->lock);
  return any;
}

static void land(struct comm *comm, const struct comm_flight *copy) {
  pthread_mutex_lock(&comm->lock);
  struct comm_flight *flight = is_oldest(comm, copy) ? comm->first : NULL;
  if (flight != NULL) {
    comm->first = flight->next;
    if (comm->first == NULL) comm->last = &comm->first;
    flight->next = NULL;
    pthread_cond_broadcast(&comm->changed);
  }
  pthread_mutex_unlock(&comm->lock);
  free_flights(flight);
}

static void start_clock(struct comm *comm, struct comm_flight *copy) {
  copy->since = comm_now();
  pthread_mutex_lock(&comm->lock);
  if (is_oldest(comm, copy)) comm->first->since = copy->since;
  pthread_mutex_unlock(&comm->lock);
}

static bool is_ready(rill_event event) {
  bool ready = false;
  return rill_event_is_ready(event, &ready) == RILL_OK && ready;
}

/* Returns whether the deadline has passed. */
static bool is_late(struct comm *comm) {
  struct comm_flight oldest;
  while (copy_oldest(comm, &oldest) && is_ready(oldest.end)) land(comm, &oldest);
  pthread_mutex_lock(&comm->lock);
  uint64_t since = comm->submitting_since; /* the engine may block the host until a peer arrives */
  pthread_mutex_unlock(&comm->lock);
  uint64_t number = atomic_load(&comm->numbered);
  struct comm_op_text what;
  (void)snprintf(what.text, sizeof what.text, "an engine call for rank %u of %u", comm->rank, comm->ranks);
  if (copy_oldest(comm, &oldest)) {
    if (oldest.since == 0 && is_ready(oldest.start)) start_clock(comm, &oldest);
    if (oldest.since != 0 && (since == 0 || oldest.since < since)) {
      since = oldest.since;
      what = comm_describe(&oldest.op);
      number = oldest.op.number != 0 ? oldest.op.number : oldest.op.for_number;
    }
  }
  if (since == 0 || comm_now() - since <= comm->timeout) return false;
  char missing[320] = "";
  rill__comm_name_missing(comm, number, missing, sizeof missing);
  (void)rill__comm_fail(RILL_ERROR_TIMEOUT,
                        "%s has not finished within %llu ns%s" COMM_HINT "look for a rank that died or stalled%s",
                        what.text, (unsigned long long)comm->timeout, missing,
                        rill__comm_checks() ? "" : ", or that called something else (RILL_CHECK=comm)");
  return true;
}

static void check_one(struct comm *comm) {
  if (is_late(comm)) {
    rill__comm_break(comm, &rill__comm_last_error, true);
  } else {
    (void)!rill__comm_poll(comm);
  }
}

/* ---- the watch thread ---- */

/* Returns the shortest tick of communicators that have work; 0 if none has.  Call under the watch's lock. */
static uint64_t choose_tick(void) {
  uint64_t least = 0;
  for (struct comm *comm = watch.first; comm != NULL; comm = comm->next_watched) {
    pthread_mutex_lock(&comm->lock);
    const bool at_work = !comm->broken && (comm->first != NULL || comm->submitting_since != 0);
    pthread_mutex_unlock(&comm->lock);
    uint64_t tick = comm->timeout / TICKS;
    if (tick < LEAST_TICK_NS) tick = LEAST_TICK_NS;
    if (tick > MOST_TICK_NS) tick = MOST_TICK_NS;
    if (at_work && (least == 0 || tick < least)) least = tick;
  }
  return least;
}

/* Waits for work or for the next poll.  Call under the watch's lock. */
static void rest(void) {
  const uint64_t tick = choose_tick();
  if (tick == 0) {
    watch.asleep = true;
    (void)pthread_cond_wait(&watch.changed, &watch.lock);
    watch.asleep = false;
    return;
  }
  const struct timespec until = comm_after(tick);
  while (!watch.stopped && pthread_cond_timedwait(&watch.changed, &watch.lock, &until) != ETIMEDOUT) continue;
}

static void *run_watch(void *unused) {
  (void)unused;
  const struct comm_engine *started = NULL;
  rill__comm_enter("rill_comm");
  pthread_mutex_lock(&watch.lock);
  while (!watch.stopped) {
    for (struct comm *comm = watch.first; comm != NULL && !watch.stopped; comm = comm->next_watched) {
      comm->watched_now = true; /* keeps it on the list during the poll */
      pthread_mutex_unlock(&watch.lock);
      if (started != comm->engine && comm->engine->begin_watch != NULL) comm->engine->begin_watch();
      started = comm->engine;
      check_one(comm);
      pthread_mutex_lock(&watch.lock);
      comm->watched_now = false;
      pthread_cond_broadcast(&watch.changed);
    }
    if (!watch.stopped) rest();
  }
  pthread_mutex_unlock(&watch.lock);
  return NULL;
}

void rill__comm_watch_wake(struct comm *comm) {
  if (!is_watched(comm)) return;
  pthread_mutex_lock(&watch.lock);
  if (watch.asleep) pthread_cond_broadcast(&watch.changed);
  pthread_mutex_unlock(&watch.lock);
}

rill_status rill__comm_watch_add(struct comm *comm) {
  if (!is_watched(comm)) return RILL_OK;
  pthread_mutex_lock(&watch.lock);
  if (!watch.started) {
    comm_init_condition(&watch.changed);
    watch.started = rill__comm_run_apart(run_watch, NULL);
  }
  const bool started = watch.started;
  if (started) {
    comm->next_watched = watch.first;
    watch.first = comm;
  }
  pthread_mutex_unlock(&watch.lock);
  COMM_REQUIRE(started, RILL_ERROR_OUT_OF_MEMORY, "could not create the watch thread");
  return RILL_OK;
}

void rill__comm_watch_remove(struct comm *comm) {
  if (!is_watched(comm)) return;
  pthread_mutex_lock(&comm->lock);
  while (comm->first != NULL) (void)pthread_cond_wait(&comm->changed, &comm->lock);
  pthread_mutex_unlock(&comm->lock);
  pthread_mutex_lock(&watch.lock);
  while (comm->watched_now) (void)pthread_cond_wait(&watch.changed, &watch.lock);
  struct comm **link = &watch.first;
  while (*link != NULL && *link != comm) link = &(*link)->next_watched;
  if (*link != NULL) *link = comm->next_watched;
  pthread_mutex_unlock(&watch.lock);
}

bool rill__comm_watch_is_started(void) {
  pthread_mutex_lock(&watch.lock);
  const bool started = watch.started;
  pthread_mutex_unlock(&watch.lock);
  return started;
}

void rill__comm_watch_stop(void) {
  pthread_mutex_lock(&watch.lock);
  watch.stopped = true;
  pthread_cond_broadcast(&watch.changed);
  pthread_mutex_unlock(&watch.lock);
}
