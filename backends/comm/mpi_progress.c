/* The MPI progress thread: starts operations whose streams have reached them, polls those in progress, and ends their
 * parts. */
#include "backends/comm/mpi_engine.h"
#include "backends/comm/mpi_types.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Breaks the communicator of a work item with the last error.  No further operation of the communicator starts, because
 * the other ranks would match that operation with the failed one. */
static void break_joined(struct work *work) {
  struct joined *joined = work->op.comm->native;
  rill__comm_mpi_services->break_comm(work->op.comm, rill__comm_mpi_services->last_error(), true);
  joined->dead = true;
}

static bool is_dead(const struct work *work) { return ((const struct joined *)work->op.comm->native)->dead; }

static int begin_reduction(struct work *work, MPI_Comm mpi) {
  const struct comm_op *op = &work->op;
  const MPI_Datatype type = rill__comm_mpi_type(op->type);
  const MPI_Op reduction = rill__comm_mpi_operator(op->type, op->op);
  const int count = (int)op->count, root = (int)op->peer;
  const void *src = op->src == op->dst ? MPI_IN_PLACE : op->src;
  void *dst = op->dst;
  if (op->kind == COMM_ALL_REDUCE) return MPI_Iallreduce(src, dst, count, type, reduction, mpi, &work->request);
  if (op->kind == COMM_REDUCE) {
    if (op->peer != op->comm->rank) src = op->src;
    return MPI_Ireduce(src, dst, count, type, reduction, root, mpi, &work->request);
  }
  /* MPI_IN_PLACE would put the result elsewhere. */
  const size_t part = op->count * op->size;
  if ((const char *)op->dst == (const char *)op->src + part * op->comm->rank) {
    work->own_dst = dst = malloc(part);
    if (dst == NULL) return MPI_ERR_NO_MEM;
  }
  return MPI_Ireduce_scatter_block(op->src, dst, count, type, reduction, mpi, &work->request);
}

static int begin_operation(struct work *work, MPI_Comm mpi) {
  const struct comm_op *op = &work->op;
  const MPI_Datatype type = rill__comm_mpi_type(op->type);
  const int count = (int)op->count, peer = (int)op->peer;
  const size_t own = op->count * op->size * op->comm->rank;
  MPI_Request *request = &work->request;
  switch (op->kind) {
    case COMM_ALL_REDUCE:
    case COMM_REDUCE:
    case COMM_REDUCE_SCATTER: return begin_reduction(work, mpi);
    case COMM_BROADCAST: {
      const bool root = op->peer == op->comm->rank;
      if (root && op->dst != op->src) memcpy(op->dst, op->src, op->count * op->size);
      return MPI_Ibcast(op->dst, count, type, peer, mpi, request);
    }
    case COMM_ALL_GATHER: {
      const void *src = (const char *)op->src == (char *)op->dst + own ? MPI_IN_PLACE : op->src;
      return MPI_Iallgather(src, count, type, op->dst, count, type, mpi, request);
    }
    case COMM_ALL_TO_ALL: return MPI_Ialltoall(op->src, count, type, op->dst, count, type, mpi, request);
    case COMM_SEND: return MPI_Isend(op->src, count, type, peer, (int)op->type, mpi, request);
    case COMM_RECEIVE: work->awaits = true; return MPI_SUCCESS;
    case COMM_BARRIER: return MPI_Ibarrier(mpi, request);
    case COMM_KINDS: break;
  }
  return MPI_ERR_INTERN;
}

/* Starts a work item, or fails its communicator. */
static void start_operation(struct work *work) {
  const struct comm_op *op = &work->op;
  work->phase = MPI_STARTED;
  if (op->count == 0 && !comm_is_message(op)) return; /* its request stays MPI_REQUEST_NULL, which counts as ended */
  const int code = begin_operation(work, ((const struct joined *)op->comm->native)->mpi);
  if (code == MPI_SUCCESS) return;
  (void)rill__comm_mpi_fail(code, comm_kind_name(op->kind));
  break_joined(work);
}

static void begin(struct work *work) {
  if (is_dead(work)) return;
  work->since = comm_now();
  if (work->part->reported != RILL_OK) {
    (void)rill__comm_fail(work->part->reported, "%s did not start: the work before it failed",
                          comm_describe(&work->op).text);
    break_joined(work);
    return;
  }
  const bool compares = !rill__comm_mpi_engine.checks && work->collective != 0 && work->op.comm->ranks > 1;
  if (compares) work->phase = MPI_TO_COMPARE;
  else start_operation(work);
}

/* Matches a receive with its message before MPI gets the buffer.  Some MPI libraries would write a longer message past
 * the end of the buffer, and none would report a shorter message or a different type.  The tag of a message is its
 * type.
 *
 * Invariant: messages of one rank are matched with its receives in order.  Once a receive has found no message, no
 * later receive from the same rank probes in this round, although a message may have arrived since. */
static void match_message(struct work *work, uint64_t round) {
  const struct comm_op *op = &work->op;
  struct joined *joined = op->comm->native;
  int found = 0, sent = 0;
  MPI_Message message;
  MPI_Status status;
  if (joined->looked[op->peer] == round) return;
  int code = MPI_Improbe((int)op->peer, MPI_ANY_TAG, joined->mpi, &found, &message, &status);
  if (code == MPI_SUCCESS && !found) {
    joined->looked[op->peer] = round;
    return;
  }
  if (code == MPI_SUCCESS && status.MPI_TAG == MPI_STATE_TAG) { /* left by a communicator that was freed */
    struct mpi_failure left;
    (void)MPI_Mrecv(&left, sizeof left, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    joined->looked[op->peer] = round;
    return;
  }
  work->awaits = false;
  if (code == MPI_SUCCESS) {
    const uint32_t type = (uint32_t)status.MPI_TAG;
    (void)MPI_Get_count(&status, rill__comm_mpi_type(type), &sent);
    if (type == op->type && (size_t)sent == op->count) {
      code = MPI_Imrecv(op->dst, (int)op->count, rill__comm_mpi_type(type), &message, &work->request);
      if (code == MPI_SUCCESS) return;
    } else {
      (void)rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT, "%s of %s does not match what rank %u sent: %s",
                            comm_describe(op).text, comm_arguments(op->kind, op->count, op->type, 0, 0).text, op->peer,
                            comm_arguments(op->kind, (uint64_t)sent, type, 0, 0).text);
      break_joined(work);
      return;
    }
  }
  (void)rill__comm_mpi_fail(code, comm_kind_name(op->kind));
  break_joined(work);
}

/* Frees a request that has ended, and returns its error.  Open MPI passes errors of collective operations to the error
 * handler of MPI_COMM_WORLD instead of the communicator's.  The default handler would end the process, so a handler
 * that returns is set during the call. */
static int complete(MPI_Request *request) {
  MPI_Errhandler before;
  int done = 0;
  (void)MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
  (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  (void)MPI_Errhandler_free(&before);
  return code;
}

/* Compares a collective operation with those of the other ranks, and then starts it.  RILL_CHECK=comm has compared it
 * before.
 *
 * Invariant: all ranks start the comparisons and the operations of a communicator in the same order, as MPI requires:
 * an operation is compared after the one before it has started.  Work items are polled in the order of submission. */
static void compare(struct work *work) {
  struct joined *joined = work->op.comm->native;
  int done = 0, code = MPI_SUCCESS;
  if (work->phase == MPI_TO_COMPARE) {
    if (joined->comparing != NULL) return;
    COMM_ASSERT(joined->comparison == MPI_REQUEST_NULL);
    COMM_ASSERT(joined->compared + 1 == work->collective);
    joined->compared = work->collective;
    joined->comparing = work;
    joined->pair[0] = comm_record_of(&work->op, work->op.number);
    joined->pair[1] = (struct comm_record){ .ranks = 0 };
    work->phase = MPI_COMPARING;
    code = MPI_Iallreduce(MPI_IN_PLACE, joined->pair, 1, rill__comm_mpi_pair(), rill__comm_mpi_join_pairs(),
                          joined->mpi, &joined->comparison);
  }
  COMM_ASSERT(joined->comparing == work);
  if (code == MPI_SUCCESS) code = MPI_Request_get_status(joined->comparison, &done, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS && !done) return;
  if (code == MPI_SUCCESS) code = complete(&joined->comparison);
  joined->comparing = NULL;
  if (code == MPI_SUCCESS && joined->pair[1].ranks == 0) {
    start_operation(work);
    return;
  }
  if (code == MPI_SUCCESS) {
    (void)rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT, "%s does not match %s",
                          comm_describe_record(&joined->pair[1]).text, comm_describe_record(&joined->pair[0]).text);
  } else {
    (void)rill__comm_mpi_fail(code, comm_kind_name(work->op.kind));
  }
  break_joined(work);
}

/* Returns whether the work item has ended successfully. */
static bool has_ended(struct work *work, uint64_t round) {
  int done = 0;
  if (work->phase != MPI_STARTED) compare(work);
  if (work->phase == MPI_STARTED && work->awaits) match_message(work, round);
  if (work->phase != MPI_STARTED || work->awaits || is_dead(work)) return false;
  int code = MPI_Request_get_status(work->request, &done, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS && done) code = complete(&work->request);
  if (code == MPI_SUCCESS) return done != 0;
  (void)rill__comm_mpi_fail(code, comm_kind_name(work->op.kind));
  break_joined(work);
  return false;
}

/* Returns whether other ranks should know that the work waits.  A collective operation that has been compared waits for
 * no rank that has not called it.  RILL_CHECK=comm tells the ranks in any case.  `now` is 0 in most rounds, to save
 * queries of the clock. */
static bool has_waited(const struct work *work, uint64_t now) {
  enum { LONG_NS = 10000000 };
  if (rill__comm_mpi_engine.checks || (work->phase == MPI_STARTED && !comm_is_message(&work->op))) return false;
  return now > work->since && now - work->since > LONG_NS;
}

static bool is_late(struct work *work) {
  const struct comm *comm = work->op.comm;
  if (comm->timeout == 0 || comm_now() - work->since <= comm->timeout) return false;
  char missing[320];
  rill__comm_mpi_list_missing(work, missing, sizeof missing);
  (void)rill__comm_fail(RILL_ERROR_TIMEOUT,
                        "%s has not finished within %llu ns%s" COMM_HINT
                        "look for a rank that stalled, or for operations that wait for each other",
                        comm_describe(&work->op).text, (unsigned long long)comm->timeout, missing);
  return true;
}

/* Ends a work item that was removed from all lists. */
static void finish(struct work *work) {
  struct comm_part *part = work->part;
  struct joined *joined = work->op.comm->native;
  const struct comm_op *op = &work->op;
  if (work->own_dst != NULL && !part->failed) memcpy(op->dst, work->own_dst, op->count * op->size);
  const bool has_result = op->kind != COMM_REDUCE || op->peer == op->comm->rank;
  if (op->op == RILL_COMM_AVERAGE && has_result && !part->failed) {
    rill__comm_divide(op->type, op->dst, op->count, op->comm->ranks);
  }
  if (op->number != 0 && !part->failed) {
    const rill_stream_note note = comm_note(op);
    (void)rill_stream_note_ran(part->stream, &note, work->since, comm_now());
  }
  (void)rill__comm_part_end_one(part);
  free(work->own_dst);
  free(work);
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  joined->outstanding--;
  pthread_cond_broadcast(&rill__comm_mpi_engine.parts.changed);
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
}

/* Ends a work item of a broken communicator.  If the operation has started, MPI may still use its buffers, so own_dst
 * is not freed. */
static void drop(struct work *work) {
  const struct comm *comm = work->op.comm;
  rill__comm_part_fail(work->part, &comm->failure);
  if (work->request != MPI_REQUEST_NULL) work->own_dst = NULL;
  struct joined *joined = comm->native;
  if (joined->comparing == work) joined->comparing = NULL;
  finish(work);
}

/* Removes work items that can start, or that must be dropped, from the queues.  Call under the lock. */
static void take_ready(struct work **ready, struct work **dead) {
  struct work **last = ready, **last_dead = dead;
  for (struct joined *joined = rill__comm_mpi_engine.all; joined != NULL; joined = joined->next) {
    for (;;) {
      struct work *work = joined->first;
      if (work == NULL || !work->part->armed || (!work->part->reached && !joined->dead)) break;
      joined->first = work->next;
      if (joined->first == NULL) joined->last = &joined->first;
      work->next = NULL;
      struct work ***end = joined->dead ? &last_dead : &last;
      **end = work;
      *end = &work->next;
    }
  }
}

/* Polls all started work items; returns whether any has ended. */
static bool poll_active(void) {
  enum { ROUNDS_PER_LOOK = 16 };
  static uint64_t round;
  bool any = false;
  const uint64_t now = ++round % ROUNDS_PER_LOOK == 0 ? comm_now() : 0;
  for (struct work **link = &rill__comm_mpi_engine.active; *link != NULL;) {
    struct work *work = *link;
    const bool dead = is_dead(work);
    const bool ended = !dead && has_ended(work, round);
    if (!dead && !ended) {
      if (!is_dead(work) && has_waited(work, now)) rill__comm_mpi_tell(work);
      if (!is_dead(work) && is_late(work)) break_joined(work);
      link = &work->next;
      continue;
    }
    *link = work->next;
    any = true;
    if (dead) {
      drop(work);
    } else {
      finish(work);
    }
  }
  return any;
}

/* Pauses after `looks` polls that found nothing.  The first polls are followed by no pause, later ones by a yield, then
 * by a short sleep, and finally by a long one.  If there is no work, waits for work, or until states of other ranks may
 * have arrived.  Call under the lock. */
static void rest(uint32_t looks) {
  enum { SPINS = 20, YIELDS = 200, SHORT = 2000, SHORT_NS = 50000, LONG_NS = 200000, EXCHANGE_NS = 2000000 };
  const bool idle = rill__comm_mpi_engine.active == NULL;
  const bool exchanges =
      rill__comm_mpi_engine.exchanges || (rill__comm_mpi_engine.checks && rill__comm_mpi_engine.all != NULL);
  if (looks < YIELDS) {
    pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
    if (looks >= SPINS) (void)sched_yield();
    pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  } else if (idle && !exchanges) {
    (void)pthread_cond_wait(&rill__comm_mpi_engine.parts.changed, &rill__comm_mpi_engine.parts.lock);
  } else {
    const struct timespec until = comm_after(idle ? EXCHANGE_NS : looks < SHORT ? SHORT_NS : LONG_NS);
    (void)pthread_cond_timedwait(&rill__comm_mpi_engine.parts.changed, &rill__comm_mpi_engine.parts.lock, &until);
  }
}

/* Fails the streams of dead work items.  Must run before any of their gates is released: releasing a gate fails the
 * held work after it, so a stream that is failed only afterwards would report a second failure. */
static void fail_dead(struct work *works) {
  for (struct work *work = works; work != NULL; work = work->next) {
    if (is_dead(work)) rill__comm_part_fail(work->part, &work->op.comm->failure);
  }
}

/* Runs one round; returns whether anything started or ended. */
static bool go_round(struct work *ready, struct work *dead, bool exchanges) {
  bool any = ready != NULL || dead != NULL;
  any |= exchanges && rill__comm_mpi_exchange();
  fail_dead(dead);
  fail_dead(rill__comm_mpi_engine.active);
  while (dead != NULL) {
    struct work *work = dead;
    dead = work->next;
    drop(work);
  }
  for (struct work *work = ready; work != NULL; work = work->next) begin(work);
  struct work **last = &rill__comm_mpi_engine.active;
  while (*last != NULL) last = &(*last)->next;
  *last = ready;
  return poll_active() || any;
}

void *rill__comm_mpi_progress(void *unused) {
  (void)unused;
  rill__comm_mpi_engine.thread = pthread_self();
  uint32_t looks = 0; /* rounds since anything happened */
  bool rested = true;
  pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  while (!rill__comm_mpi_engine.stop) {
    struct work *ready = NULL, *dead = NULL;
    take_ready(&ready, &dead);
    if (ready == NULL && dead == NULL && !rested) {
      rest(looks++);
      rested = true;
      continue;
    }
    const bool exchanges = rill__comm_mpi_engine.checks || rill__comm_mpi_engine.exchanges;
    pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
    rested = go_round(ready, dead, exchanges);
    if (rested) looks = 0;
    pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock);
  }
  rill__comm_mpi_engine.stopped = true;
  pthread_cond_broadcast(&rill__comm_mpi_engine.parts.changed);
  pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock);
  return NULL;
}
