/* The ranks of a communicator exchange their states.
 *
 * MPI does not detect that one rank waits in a collective operation while another rank waits for a message, and does
 * not tell the other ranks when a communicator fails on one rank.  A rank whose operation has waited for long therefore
 * sends its state to the ranks for which the operation may wait, once for each such operation: if two ranks wait for
 * each other, one of them sees why.  Until the operation ends, the rank receives states.  A rank whose
 * communicator has failed sends its state, with the failure, to all other ranks.  An operation that does not wait sends
 * nothing.
 *
 * With RILL_CHECK=comm a rank also sends its state to all other ranks when it has submitted a collective operation, and
 * receives states even while no operation runs.  If an earlier state has not been sent yet, only the later one is sent.
 *
 * All ranks must submit their operations in the same order.  A rank that has submitted more collective operations than
 * this rank must therefore have submitted its side of every message that this rank has submitted.  Otherwise the ranks
 * use different orders, which is reported.
 *
 * Invariant: a state is a consistent copy, because it is read under the lock, which is held while the operations of one
 * submission are counted.  States of one rank arrive in the order in which they were read, so no count decreases.
 *
 * Invariant: MPI reads `outgoing` from the time when `in_flight` is set until `request` has ended, and in this time the
 * progress thread does not write it.
 *
 * Invariant: no message with a state is left that another communicator could receive.  MPI may reuse the context of a
 * communicator that has been freed.  With RILL_CHECK=comm a communicator that works is freed when the states of all its
 * collective operations have been received.  Otherwise a state is sent with MPI_Issend, and a rank frees `apart` only
 * if all its states have been received.  A state that arrives after the receiver has freed its side can still be found
 * by a later communicator of other ranks: an exchange ignores the state because of its serial, and a receive because of
 * its tag. */
#include "backends/comm/mpi_engine.h"

#include <stddef.h>
#include <string.h>

/* ---- counting submitted operations, under the lock ---- */

void rill__comm_mpi_count(struct joined *joined, struct work *work) {
  const struct comm_op *op = &work->op;
  COMM_ASSERT(work->collective == 0 && !joined->ending);
  if (comm_is_message(op)) {
    struct mpi_peer *peer = &joined->peers[op->peer];
    const bool sends = op->kind == COMM_SEND;
    (*(sends ? &peer->sent : &peer->received))++;
    *(sends ? &peer->last_send : &peer->last_receive) = op->number;
    return;
  }
  work->collective = ++joined->collectives;
  joined->kind = op->number != 0 ? op->kind : op->for_kind;
  joined->number = op->number != 0 ? op->number : op->for_number;
  if (rill__comm_mpi_engine.checks) rill__comm_mpi_set_due(joined);
}

static void set_due_to(struct joined *joined, uint32_t rank) {
  if (rank == joined->comm->rank) return;
  joined->peers[rank].due = joined->tells = rill__comm_mpi_engine.exchanges = true;
}

void rill__comm_mpi_set_due(struct joined *joined) {
  for (uint32_t i = 0; i < joined->comm->ranks; i++) set_due_to(joined, i);
}

/* With RILL_CHECK=comm, returns whether all states of this rank have been sent, and every other rank has reported at
 * least as many collective operations as this rank has submitted.  A rank that has done so sends another state only if
 * it submits more. */
bool rill__comm_mpi_is_settled(const struct joined *joined) {
  if (joined->dead || !rill__comm_mpi_engine.checks) return true;
  for (uint32_t i = 0; i < joined->comm->ranks; i++) {
    const struct mpi_peer *peer = &joined->peers[i];
    if (i == joined->comm->rank) continue;
    if (peer->due || peer->in_flight || peer->state.collectives < joined->collectives) return false;
  }
  return true;
}

bool rill__comm_mpi_is_due(const struct joined *joined) {
  for (uint32_t i = 0; i < joined->comm->ranks; i++) {
    if (joined->peers[i].due) return true;
  }
  return false;
}

bool rill__comm_mpi_free_peers(struct joined *joined) {
  for (uint32_t i = 0; i < joined->ranks; i++) {
    if (joined->peers[i].in_flight) return false; /* MPI may still read the state; it cannot be cancelled */
  }
  free(joined->peers);
  return true;
}

/* ---- on the progress thread, without the lock ---- */

static void lock(void) { pthread_mutex_lock(&rill__comm_mpi_engine.parts.lock); }
static void unlock(void) { pthread_mutex_unlock(&rill__comm_mpi_engine.parts.lock); }

/* Takes the request to send a state to a rank; returns false if there is none.  If the communicator works, copies the
 * state. */
static bool take_due(struct joined *joined, uint32_t rank, bool dead) {
  struct mpi_peer *peer = &joined->peers[rank];
  lock();
  const bool due = peer->due;
  COMM_ASSERT(dead || (!peer->in_flight && peer->request == MPI_REQUEST_NULL));
  peer->due = false;
  peer->in_flight |= due;
  if (due && !dead) {
    peer->outgoing = (struct mpi_state){ .serial = joined->serial,
                                         .collectives = joined->collectives,
                                         .sent = peer->sent,
                                         .received = peer->received,
                                         .kind = joined->kind,
                                         .number = joined->number };
  }
  unlock();
  return due;
}

/* Sends the failure to a rank, even if the rank has not received an earlier state.  A communicator that has failed is
 * never freed, so the message may arrive at any time. */
static bool send_failure(struct joined *joined, uint32_t rank) {
  struct mpi_failure *const failure = &joined->outgoing;
  MPI_Request request;
  if (!take_due(joined, rank, true)) return false;
  if (failure->state.status == RILL_OK) {
    failure->state = (struct mpi_state){ .serial = joined->serial,
                                         .collectives = UINT64_MAX,
                                         .sent = UINT64_MAX,
                                         .received = UINT64_MAX,
                                         .status = joined->comm->failure.status };
    (void)snprintf(failure->message, sizeof failure->message, "%s", joined->comm->failure.message);
  }
  const size_t bytes = offsetof(struct mpi_failure, message) + strlen(failure->message) + 1;
  (void)MPI_Isend(failure, (int)bytes, MPI_BYTE, (int)rank, MPI_STATE_TAG, joined->apart, &request);
  return true;
}

static bool send_state(struct joined *joined, uint32_t rank) {
  struct mpi_peer *peer = &joined->peers[rank];
  if (joined->dead) return send_failure(joined, rank);
  if (peer->request != MPI_REQUEST_NULL) {
    int done = 0;
    (void)MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE);
    if (!done) return false;
    lock();
    peer->in_flight = false;
    unlock();
  }
  if (!take_due(joined, rank, false)) return false;
  int (*const send)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) =
      rill__comm_mpi_engine.checks ? MPI_Isend : MPI_Issend;
  (void)send(&peer->outgoing, sizeof peer->outgoing, MPI_BYTE, (int)rank, MPI_STATE_TAG, joined->apart, &peer->request);
  return true;
}

static void fail(struct joined *joined, const struct comm_error *why) {
  rill__comm_mpi_services->break_comm(joined->comm, why, true);
  joined->dead = true;
}

static bool receive_state(struct joined *joined) {
  int found = 0;
  MPI_Message message;
  MPI_Status status;
  struct mpi_failure from = { .message = "" };
  const int code = MPI_Improbe(MPI_ANY_SOURCE, MPI_STATE_TAG, joined->apart, &found, &message, &status);
  if (code != MPI_SUCCESS || !found) return false;
  (void)MPI_Mrecv(&from, sizeof from, MPI_BYTE, &message, &status);
  const struct mpi_state state = from.state;
  if (state.serial != joined->serial) return true; /* of an earlier communicator, which this rank has released */
  lock();
  struct mpi_state *const known = &joined->peers[status.MPI_SOURCE].state;
  COMM_ASSERT((uint32_t)status.MPI_SOURCE < joined->comm->ranks && (uint32_t)status.MPI_SOURCE != joined->comm->rank);
  COMM_ASSERT(state.collectives >= known->collectives);
  COMM_ASSERT(state.sent >= known->sent && state.received >= known->received);
  *known = state;
  joined->was_notified |= state.status != RILL_OK;
  unlock();
  if (state.status == RILL_OK || joined->dead) return true;
  (void)rill__comm_fail(state.status, "%s", from.message);
  fail(joined, rill__comm_mpi_services->last_error());
  return true;
}

/* A message of this rank whose other side has not been submitted, and the other rank's latest collective operation. */
struct mismatch {
  uint32_t rank; /* the other rank */
  bool sends;    /* whether this rank sends */
  uint64_t message, number, kind;
};

static bool find_mismatch(const struct joined *joined, struct mismatch *out) {
  for (uint32_t i = 0; i < joined->comm->ranks; i++) {
    const struct mpi_peer *peer = &joined->peers[i];
    if (i == joined->comm->rank || joined->collectives >= peer->state.collectives) continue;
    const bool sends = peer->sent > peer->state.received;
    if (!sends && peer->received <= peer->state.sent) continue;
    *out = (struct mismatch){ i, sends, sends ? peer->last_send : peer->last_receive, peer->state.number,
                              peer->state.kind };
    return true;
  }
  return false;
}

static void check_order(struct joined *joined) {
  const struct comm *comm = joined->comm;
  struct mismatch found;
  lock();
  const bool any = find_mismatch(joined, &found);
  unlock();
  if (!any || joined->dead) return;
  (void)rill__comm_fail(RILL_ERROR_INVALID_ARGUMENT,
                        "%s of rank %u of %u %s rank %u (operation %llu) does not match %s of rank %u of %u (operation "
                        "%llu)" COMM_HINT "call the operations in the same order on all ranks",
                        found.sends ? "send" : "receive", comm->rank, comm->ranks, found.sends ? "to" : "from",
                        found.rank, (unsigned long long)found.message, comm_kind_name(found.kind), found.rank,
                        comm->ranks, (unsigned long long)found.number);
  fail(joined, rill__comm_mpi_services->last_error());
}

static bool exchange(struct joined *joined) {
  bool any = false;
  joined->waits = false;
  COMM_ASSERT(pthread_equal(rill__comm_mpi_engine.thread, pthread_self()));
  for (uint32_t i = 0; i < joined->comm->ranks; i++) any |= i != joined->comm->rank && send_state(joined, i);
  if (joined->ending) return any;
  while (receive_state(joined)) any = true;
  check_order(joined);
  return any;
}

/* Returns whether a state can be sent.  A state that waits for an earlier one to be received is sent while the rank
 * itself waits. */
static bool can_send(const struct joined *joined) {
  for (uint32_t i = 0; i < joined->comm->ranks; i++) {
    if (joined->peers[i].due && (joined->dead || !joined->peers[i].in_flight)) return true;
  }
  return false;
}

/* Exchanges the states of all communicators that have some.  A communicator is neither drained nor ended while
 * `exchanging` is set. */
bool rill__comm_mpi_exchange(void) {
  bool any = false, tells = false;
  lock();
  for (struct joined *joined = rill__comm_mpi_engine.all; joined != NULL; joined = joined->next) {
    if (!rill__comm_mpi_engine.checks && !joined->waits && !joined->tells) continue;
    joined->exchanging = true;
    unlock();
    any |= exchange(joined);
    lock();
    joined->tells = can_send(joined);
    joined->exchanging = false;
    pthread_cond_broadcast(&rill__comm_mpi_engine.parts.changed);
  }
  for (const struct joined *joined = rill__comm_mpi_engine.all; joined != NULL; joined = joined->next) {
    tells |= joined->tells;
  }
  rill__comm_mpi_engine.exchanges = tells;
  unlock();
  return any;
}

bool rill__comm_mpi_end_exchange(struct joined *joined) {
  struct mpi_failure state;
  int found = 1;
  bool all_received = true;
  while (found) {
    MPI_Message message;
    const int code = MPI_Improbe(MPI_ANY_SOURCE, MPI_STATE_TAG, joined->apart, &found, &message, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) found = 0;
    if (found) (void)MPI_Mrecv(&state, sizeof state, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  }
  for (uint32_t i = 0; i < joined->ranks; i++) {
    struct mpi_peer *const peer = &joined->peers[i];
    int done = 1;
    if (peer->request != MPI_REQUEST_NULL) (void)MPI_Test(&peer->request, &done, MPI_STATUS_IGNORE);
    if (done) peer->in_flight = false;
    else all_received = false;
  }
  return all_received;
}

void rill__comm_mpi_tell(struct work *work) {
  struct joined *joined = work->op.comm->native;
  joined->waits = true;
  lock();
  rill__comm_mpi_engine.exchanges = true;
  if (!work->notified && comm_is_message(&work->op)) set_due_to(joined, work->op.peer);
  else if (!work->notified) rill__comm_mpi_set_due(joined);
  unlock();
  work->notified = true;
}

void rill__comm_mpi_list_missing(const struct work *work, char *text, size_t size) {
  const struct joined *joined = work->op.comm->native;
  size_t used = 0;
  text[0] = '\0';
  const bool checks = rill__comm_mpi_engine.checks;
  if (work->collective == 0 || (!checks && !work->notified)) return;
  lock();
  for (uint32_t i = 0; i < joined->comm->ranks && used + 40 < size; i++) {
    if (i == joined->comm->rank || joined->peers[i].state.collectives >= work->collective) continue;
    const int wrote = snprintf(text + used, size - used, "; rank %u %s", i,
                               checks ? "has not called it" : "is not known to have reached it");
    used += wrote > 0 ? (size_t)wrote : 0;
  }
  unlock();
}
