/* The local engine: ranks of one process, on the CPU.
 *
 * The ranks of a communicator form a clique.  Operations that belong together form a match: the nth collective
 * operation of every rank, or the nth send from one rank to another with the nth receive on the other side.  Submission
 * compares an operation with those that its match already contains (local_match.c).  Once all operations of a match
 * have been submitted and their streams have reached them (parts.c), the progress thread moves the data (local_move.c)
 * and releases the streams.
 *
 * A mismatch, a missed deadline, earlier work that failed, and an abort fail the clique, with one report for all ranks.
 * Its operations are dropped, and each rank breaks its own communicator in its next call.
 *
 * Invariant: a work item that was submitted is in exactly one place: a match in the table of its clique, a match in the
 * ready list, the list of dropped work items, or in the hands of the progress thread.  Only the progress thread removes
 * work items from the two lists, and only it frees them. */
#include "backends/comm/local.h"

#include <errno.h>
#include <rill/rill.h>

struct local_engine rill__comm_local_engine = { .parts = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                                           .changed = PTHREAD_COND_INITIALIZER,
                                                           .changed_part = rill__comm_local_part_changed },
                                                .last_ready = &rill__comm_local_engine.ready,
                                                .last_dropped = &rill__comm_local_engine.dropped,
                                                .deadline = UINT64_MAX };

/* ---- deadlines; the lock is held ---- */

/* Appends the ranks that a match waits for to a text. */
static void list_missing(const struct local_match *match, char *text, size_t size) {
  size_t used = 0;
  for (uint32_t i = 0; i < match->size && used + 80 < size; i++) {
    const struct local_work *work = match->works[i];
    const uint32_t rank = match->key.from == LOCAL_ALL ? i : i == 0 ? match->key.from : match->key.to;
    if (work != NULL && work->state == LOCAL_ARRIVED) continue;
    const char *what = match->key.from == LOCAL_ALL ? "it" : i == 0 ? "the send" : "the receive";
    const int wrote =
        work == NULL ? snprintf(text + used, size - used, "; rank %u has not called %s", rank, what)
                     : snprintf(text + used, size - used, "; the stream of rank %u has not reached %s (operation %llu)",
                                rank, what, (unsigned long long)work->op.number);
    used += wrote > 0 ? (size_t)wrote : 0;
  }
}

static void report_late(const struct local_work *work) {
  char missing[320] = "";
  list_missing(work->match, missing, sizeof missing);
  (void)rill__comm_fail(RILL_ERROR_TIMEOUT, "%s has not finished within %llu ns%s", comm_describe(&work->op).text,
                        (unsigned long long)work->op.comm->timeout, missing);
  rill__comm_local_fail(work->match->clique, &rill__comm_last_error);
}

/* Returns the waiting operation of a clique with the earliest deadline, or NULL. */
static const struct local_work *find_earliest(const struct local_clique *clique) {
  const struct local_work *earliest = NULL;
  for (int i = 0; i < LOCAL_BUCKETS; i++) {
    for (const struct local_match *match = clique->table[i]; match != NULL; match = match->next) {
      for (uint32_t k = 0; k < match->size; k++) {
        const struct local_work *work = match->works[k];
        const bool waits = work != NULL && work->state == LOCAL_ARRIVED && local_deadline_of(work) != UINT64_MAX;
        if (waits && (earliest == NULL || local_deadline_of(work) < local_deadline_of(earliest))) earliest = work;
      }
    }
  }
  return earliest;
}

/* Fails the cliques that have missed a deadline, and determines the next deadline. */
static void check_deadlines(void) {
  const uint64_t now = comm_now();
  rill__comm_local_engine.deadline = UINT64_MAX;
  for (struct local_clique *clique = rill__comm_local_engine.cliques; clique != NULL; clique = clique->next) {
    const struct local_work *work = find_earliest(clique);
    if (work != NULL && local_deadline_of(work) < now) report_late(work);
    else if (work != NULL) local_note_deadline(work);
  }
}

/* ---- the progress thread ---- */

/* Ends a work item; `why` is NULL unless the item was dropped.  Frees all items of a part when the last of them
 * ends. */
static void finish(struct local_work *work, const struct comm_error *why) {
  struct comm_part *part = work->part;
  struct local_member *member = local_member_of(work->op.comm);
  struct local_work *of_part = part->works;
  if (part->left == 1) { /* the part's host call may still run; it must not find the work items */
    local_lock();
    part->works = NULL;
    local_unlock();
  }
  if (why != NULL) rill__comm_part_fail(part, why);
  if (why == NULL && work->op.number != 0 && !part->failed) {
    const rill_stream_note note = comm_note(&work->op);
    (void)rill_stream_note_ran(part->stream, &note, work->since, comm_now());
  }
  const bool last = rill__comm_part_end_one(part);
  local_lock();
  COMM_ASSERT(member->outstanding > 0);
  member->outstanding--;
  local_wake();
  local_unlock();
  while (last && of_part != NULL) {
    struct local_work *next = of_part->next_of_part;
    free(of_part);
    of_part = next;
  }
}

static void run_match(struct local_match *match) {
  rill__comm_local_move(match->works, match->size);
  for (uint32_t i = 0; i < match->size; i++) finish(match->works[i], NULL);
  free(match);
}

/* Fails all streams before it finishes the first work item.  Otherwise a stream that is released by the first item
 * could report the failure, and report it again when a later item fails the stream. */
static void drop_all(struct local_work *works) {
  for (struct local_work *work = works; work != NULL; work = work->next) {
    rill__comm_part_fail(work->part, &local_clique_of(work->op.comm)->why);
  }
  while (works != NULL) {
    struct local_work *work = works;
    works = work->next;
    finish(work, &local_clique_of(work->op.comm)->why);
  }
}

/* Removes the first match from the ready list.  Returns NULL if its clique has failed, in which case its work items are
 * dropped. */
static struct local_match *take_ready(void) {
  struct local_match *match = rill__comm_local_engine.ready;
  rill__comm_local_engine.ready = match->next;
  if (match->next == NULL) rill__comm_local_engine.last_ready = &rill__comm_local_engine.ready;
  if (!match->clique->dead) return match;
  for (uint32_t i = 0; i < match->size; i++) rill__comm_local_queue_drop(match->works[i]);
  free(match);
  return NULL;
}

static struct local_work *take_dropped(void) {
  struct local_work *works = rill__comm_local_engine.dropped;
  rill__comm_local_engine.dropped = NULL;
  rill__comm_local_engine.last_dropped = &rill__comm_local_engine.dropped;
  return works;
}

/* Waits for work or for the next deadline. */
static void wait_for_work(void) {
  const uint64_t now = comm_now(), deadline = rill__comm_local_engine.deadline;
  struct comm_parts *parts = &rill__comm_local_engine.parts;
  if (deadline < now) {
    check_deadlines();
  } else if (deadline == UINT64_MAX) {
    (void)pthread_cond_wait(&parts->changed, &parts->lock);
  } else {
    const struct timespec until = comm_after(deadline - now + 1);
    (void)pthread_cond_timedwait(&parts->changed, &parts->lock, &until);
  }
}

static void *make_progress(void *unused) {
  (void)unused;
  rill__comm_enter("rill_comm");
  local_lock();
  while (!rill__comm_local_engine.stop) {
    if (rill__comm_local_engine.ready != NULL) {
      struct local_match *match = take_ready();
      if (match == NULL) continue;
      local_unlock();
      run_match(match);
      local_lock();
    } else if (rill__comm_local_engine.dropped != NULL) {
      struct local_work *works = take_dropped();
      local_unlock();
      drop_all(works);
      local_lock();
    } else {
      wait_for_work();
    }
  }
  rill__comm_local_engine.stopped = true;
  local_wake();
  local_unlock();
  return NULL;
}

/* ---- start and stop ---- */

static rill_status start_once(void) {
  struct comm_parts *parts = &rill__comm_local_engine.parts;
  rill_device cpu;
  pthread_t thread;
  COMM_TRY_RILL(rill_device_open("cpu", &cpu), "the CPU");
  if (rill_stream_equal(parts->stream, RILL_NULL_STREAM)) {
    COMM_TRY_RILL(rill_stream_create(cpu, RILL_STREAM_OPTIONS(.label = "rill_comm"), &parts->stream), "a stream");
    comm_init_condition(&parts->changed); /* no thread waits on it yet */
  }
  rill__comm_local_engine.started = pthread_create(&thread, NULL, make_progress, NULL) == 0;
  COMM_REQUIRE(rill__comm_local_engine.started, RILL_ERROR_OUT_OF_MEMORY, "could not create the progress thread");
  (void)pthread_detach(thread);
  return RILL_OK;
}

static rill_status start(void) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  static bool started;
  pthread_mutex_lock(&once);
  const rill_status status = started ? RILL_OK : start_once();
  started |= status == RILL_OK;
  pthread_mutex_unlock(&once);
  return status;
}

void rill__comm_local_stop(void) {
  enum { SECONDS = 2 };
  struct local_engine *engine = &rill__comm_local_engine;
  const struct timespec until = comm_after(SECONDS * UINT64_C(1000000000));
  local_lock();
  engine->stop = true;
  local_wake();
  while (engine->started && !engine->stopped &&
         pthread_cond_timedwait(&engine->parts.changed, &engine->parts.lock, &until) != ETIMEDOUT) {
  }
  local_unlock();
}

static uint32_t engine_version(void) { return rill_version(); }

/* ---- the end of a communicator ---- */

static rill_status poll_error(struct comm *comm) {
  const struct local_clique *clique = local_clique_of(comm);
  local_lock();
  const rill_status status = clique->dead ? rill__comm_fail_as(&clique->why) : RILL_OK;
  local_unlock();
  return status;
}

static void abort_comm(struct comm *comm) {
  const bool broken = comm->failure.status != RILL_OK; /* once it is broken, the failure does not change */
  (void)rill__comm_fail(broken ? comm->failure.status : RILL_ERROR_BACKEND, "rank %u of %u: %.560s", comm->rank,
                        comm->ranks,
                        broken ? comm->failure.message : "could not create its communicator after joining");
  local_lock();
  rill__comm_local_fail(local_clique_of(comm), &rill__comm_last_error);
  local_unlock();
}

static void drain(struct comm *comm) {
  struct comm_parts *parts = &rill__comm_local_engine.parts;
  local_lock();
  while (local_member_of(comm)->outstanding > 0) (void)pthread_cond_wait(&parts->changed, &parts->lock);
  local_unlock();
}

static void end(struct comm *comm) {
  local_lock();
  rill__comm_local_remove_member(local_clique_of(comm), comm->rank);
  local_unlock();
}

const struct comm_engine rill__comm_local = {
  .name = "local",
  .backend = COMM_LOCAL,
  .max_count = SIZE_MAX,
  .keeps_deadlines = true,
  .compares_messages = true,
  .takes_empty = true,
  .joins_in_time = true,
  .notes = true,
  .start = start,
  .version = engine_version,
  .make_id = rill__comm_local_make_id,
  .join = rill__comm_local_join,
  .split = rill__comm_local_split,
  .submit = rill__comm_local_submit,
  .poll = poll_error,
  .abort = abort_comm,
  .drain = drain,
  .end = end,
};
