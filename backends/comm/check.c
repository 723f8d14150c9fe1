/* RILL_CHECK=comm: before an operation, its ranks exchange records of what they are about to do.
 *
 * The records travel through the engine itself, on a stream that belongs to the library, and the host waits for them:
 * each call waits until all ranks have made their call.  For a collective operation the exchange is an all-gather.  A
 * send and its receive exchange records only if the engine does not compare messages itself; sends and receives that
 * cross must be in a group then, because otherwise the calls would wait for each other.
 *
 * Invariant: the operations of a communicator are submitted in the order in which they were compared, and only one call
 * at a time uses its records: the call that has the turn COMM_CHECKING.  Other calls wait for their turn.  The deadline
 * of the communicator and rill_comm_abort end both waits. */
#include "backends/comm/engine.h"

#include <stdlib.h>

enum { WORDS = sizeof(struct comm_record) / sizeof(uint64_t) };

bool rill__comm_checks(void) { return rill_check_is_on("comm"); }

/* ---- exchanging ---- */

/* Return the records.  Layout: one record per rank, followed by this rank's own, in pinned and in device memory. */
static struct comm_record *host_records(const struct comm *comm) { return comm->check_memory; }
static struct comm_record *device_records(const struct comm *comm) { return comm->check_device_memory; }

static rill_status prepare(struct comm *comm) {
  const size_t size = (comm->ranks + 1) * sizeof(struct comm_record);
  rill_status status = RILL_OK;
  if (rill_stream_equal(comm->check_stream, RILL_NULL_STREAM)) {
    status = rill_stream_create(comm->device, RILL_STREAM_OPTIONS(.label = "RILL_CHECK=comm"), &comm->check_stream);
  }
  if (status == RILL_OK && comm->check_device_memory == NULL) {
    status = rill_alloc(comm->device, size, RILL_MEMORY_DEVICE, &comm->check_device_memory);
  }
  if (status == RILL_OK && comm->check_memory == NULL) {
    status = rill_alloc(comm->device, size, RILL_MEMORY_PINNED, &comm->check_memory);
  }
  return status == RILL_OK ? RILL_OK : rill__comm_fail_rill(status, "RILL_CHECK=comm");
}

/* Returns the number that an operation will have. */
static uint64_t number_of(const struct comm_op *ops, size_t i) {
  uint64_t number = ops[i].comm->numbered + 1;
  for (size_t j = 0; j < i; j++) number += ops[j].comm == ops[i].comm && rill__comm_is_submitted(&ops[j]);
  return number;
}

static rill_status upload(const struct comm_op *op, uint64_t number) {
  struct comm *comm = op->comm;
  COMM_ASSERT(comm->turns[COMM_CHECKING].taken);
  COMM_TRY(prepare(comm));
  struct comm_record *own = host_records(comm) + comm->ranks;
  *own = comm_record_of(op, number);
  COMM_TRY_RILL(rill_copy_async(comm->check_stream, device_records(comm) + comm->ranks, own, sizeof *own),
                "RILL_CHECK=comm");
  return RILL_OK;
}

/* Returns the operation that exchanges the records of `op`.  `number`: the number that `op` will have. */
static struct comm_op gather(const struct comm_op *op, uint64_t number) {
  struct comm *const comm = op->comm;
  return (struct comm_op){ .comm = comm,
                           .stream = comm->check_stream,
                           .dst = device_records(comm),
                           .src = device_records(comm) + comm->ranks,
                           .count = WORDS,
                           .size = sizeof(uint64_t),
                           .kind = COMM_ALL_GATHER,
                           .type = RILL_COMM_UINT64,
                           .op = RILL_COMM_SUM,
                           .for_kind = op->kind,
                           .for_number = number };
}

/* Waits for the end of an exchange.  The stream of a GPU also gets there if the exchange was ended without a result: by
 * rill_comm_abort or by an error of the engine, which the stream reports only if there is a deadline. */
static rill_status wait_for_records(struct comm *comm) {
  COMM_TRY_RILL(rill_stream_synchronize(comm->check_stream), "RILL_CHECK=comm");
  return rill__comm_poll(comm);
}

static rill_status compare(struct comm *comm) {
  const size_t size = comm->ranks * sizeof(struct comm_record);
  COMM_TRY_RILL(rill_copy_async(comm->check_stream, host_records(comm), device_records(comm), size), "RILL_CHECK=comm");
  COMM_TRY(wait_for_records(comm));
  const struct comm_record *own = host_records(comm) + comm->ranks;
  for (uint32_t i = 0; i < comm->ranks; i++) {
    const struct comm_record *other = host_records(comm) + i;
    COMM_REQUIRE(comm_records_match(own, other), RILL_ERROR_INVALID_ARGUMENT, "%s does not match %s",
                 comm_describe_record(own).text, comm_describe_record(other).text);
  }
  return RILL_OK;
}

/* ---- rounds ---- */

/* Returns how many collective operations of the same communicator come before operation `i`. */
static size_t round_of(const struct comm_op *ops, size_t i) {
  size_t before = 0;
  for (size_t j = 0; j < i; j++) before += ops[j].comm == ops[i].comm && !comm_is_message(&ops[j]);
  return before;
}

/* Compares the operations of one round: at most one operation per communicator. */
static rill_status compare_round(const struct comm_op *ops, size_t count, size_t round, struct comm_op *gathers,
                                 size_t *found) {
  *found = 0;
  for (size_t i = 0; i < count; i++) {
    if (comm_is_message(&ops[i]) || round_of(ops, i) != round) continue;
    const uint64_t number = number_of(ops, i);
    COMM_TRY(upload(&ops[i], number));
    gathers[(*found)++] = gather(&ops[i], number);
  }
  if (*found == 0) return RILL_OK;
  COMM_TRY(rill__comm_submit(gathers, *found));
  for (size_t i = 0; i < *found; i++) COMM_TRY(compare(gathers[i].comm));
  return RILL_OK;
}

/* ---- sends and receives ---- */

static bool is_pair(const struct comm_op *op) {
  return comm_is_message(op) && !op->comm->engine->compares_messages && op->peer != op->comm->rank;
}

/* Returns whether the message goes to the higher of the two ranks. */
static bool goes_up(const struct comm_op *op) { return (op->kind == COMM_SEND) == (op->comm->rank < op->peer); }

/* Invariant: both ranks of a pair exchange the records of their messages in the same order: first messages to the
 * higher rank, and within a direction in the order of the operations.  The engine has one queue per direction, so with
 * different orders a record would be matched with the answer to another one. */
static size_t list_pairs(const struct comm_op *ops, size_t count, const struct comm *comm,
                         const struct comm_op **pairs) {
  size_t found = 0;
  for (int up = 1; up >= 0; up--) {
    for (size_t i = 0; i < count; i++) {
      if (ops[i].comm == comm && is_pair(&ops[i]) && goes_up(&ops[i]) == up) pairs[found++] = &ops[i];
    }
  }
  return found;
}

/* Returns memory for `n` records and `n` answers.  The memory is kept, because freeing it would wait for other ranks.
 */
static rill_status pair_records(struct comm *comm, size_t n, struct comm_record **host, struct comm_record **device) {
  int k = 0;
  while (k < COMM_PAIR_SIZES - 1 && (size_t)1 << k < n) k++;
  COMM_REQUIRE((size_t)1 << k >= n, RILL_ERROR_OUT_OF_RANGE, "RILL_CHECK=comm compares at most %zu sends and receives",
               (size_t)1 << k);
  const size_t size = ((size_t)2 << k) * sizeof(struct comm_record);
  rill_status status = RILL_OK;
  if (comm->pair_device_memory[k] == NULL) {
    status = rill_alloc(comm->device, size, RILL_MEMORY_DEVICE, &comm->pair_device_memory[k]);
  }
  if (status == RILL_OK && comm->pair_memory[k] == NULL) {
    status = rill_alloc(comm->device, size, RILL_MEMORY_PINNED, &comm->pair_memory[k]);
  }
  *host = comm->pair_memory[k];
  *device = comm->pair_device_memory[k];
  return status == RILL_OK ? RILL_OK : rill__comm_fail_rill(status, "RILL_CHECK=comm");
}

/* The records to compare for one communicator: n of this rank, then the n answers. */
struct pairs {
  struct comm *comm;
  size_t n;
  struct comm_record *host, *device;
};

/* Writes the records of `pairs`, which are among `ops`, and adds their exchange to the list. */
static rill_status begin_exchange(struct pairs *made, const struct comm_op *ops, const struct comm_op *const *pairs,
                                  struct comm_op *list) {
  struct comm *const comm = made->comm;
  COMM_TRY(prepare(comm));
  COMM_TRY(pair_records(comm, made->n, &made->host, &made->device));
  for (size_t i = 0; i < made->n; i++) {
    const uint64_t number = number_of(ops, (size_t)(pairs[i] - ops));
    made->host[i] = comm_record_of(pairs[i], number);
    struct comm_op op = gather(pairs[i], number);
    op.peer = pairs[i]->peer;
    op.kind = COMM_SEND, op.dst = NULL, op.src = made->device + i;
    list[2 * i] = op;
    op.kind = COMM_RECEIVE, op.dst = made->device + made->n + i, op.src = NULL;
    list[2 * i + 1] = op;
  }
  COMM_TRY_RILL(rill_copy_async(comm->check_stream, made->device, made->host, made->n * sizeof(struct comm_record)),
                "RILL_CHECK=comm");
  return RILL_OK;
}

static rill_status compare_answers(const struct pairs *made) {
  const struct comm *const comm = made->comm;
  const size_t n = made->n;
  COMM_TRY_RILL(rill_copy_async(comm->check_stream, made->host + n, made->device + n, n * sizeof(struct comm_record)),
                "RILL_CHECK=comm");
  COMM_TRY(wait_for_records(made->comm));
  for (size_t i = 0; i < n; i++) {
    const struct comm_record *const own = made->host + i, *const other = made->host + n + i;
    COMM_REQUIRE(comm_records_match(own, other), RILL_ERROR_INVALID_ARGUMENT, "%s does not match %s",
                 comm_describe_record(own).text, comm_describe_record(other).text);
  }
  return RILL_OK;
}

static bool is_first_of_comm(const struct comm_op *ops, size_t i) {
  for (size_t j = 0; j < i; j++) {
    if (ops[j].comm == ops[i].comm) return false;
  }
  return true;
}

/* Exchanges the records of all communicators in one submission: several ranks may belong to this thread, and separate
 * exchanges would deadlock. */
static rill_status exchange_all(const struct comm_op *ops, size_t count, const struct comm_op **pairs,
                                struct comm_op *list, struct pairs *made) {
  size_t listed = 0, comms = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_first_of_comm(ops, i)) continue;
    made[comms] = (struct pairs){ .comm = ops[i].comm, .n = list_pairs(ops, count, ops[i].comm, pairs) };
    if (made[comms].n == 0) continue;
    COMM_TRY(begin_exchange(&made[comms], ops, pairs, list + listed));
    listed += 2 * made[comms++].n;
  }
  if (listed == 0) return RILL_OK;
  COMM_TRY(rill__comm_submit(list, listed));
  for (size_t i = 0; i < comms; i++) COMM_TRY(compare_answers(&made[i]));
  return RILL_OK;
}

static rill_status compare_pairs(const struct comm_op *ops, size_t count) {
  const struct comm_op **pairs = malloc(count * sizeof(struct comm_op *));
  struct comm_op *list = malloc(2 * count * sizeof *list);
  struct pairs *made = malloc(count * sizeof *made);
  const bool room = pairs != NULL && list != NULL && made != NULL;
  const rill_status status =
      room ? exchange_all(ops, count, pairs, list, made)
           : rill__comm_fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to compare %zu operations", count);
  free(made);
  free(list);
  free(pairs);
  return status;
}

rill_status rill__comm_check(const struct comm_op *ops, size_t count) {
  struct comm_op *gathers = malloc(count * sizeof *gathers);
  COMM_REQUIRE(gathers != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to compare %zu operations", count);
  rill_status status = RILL_OK;
  size_t found = 1;
  for (size_t round = 0; found > 0 && status == RILL_OK; round++) {
    status = compare_round(ops, count, round, gathers, &found);
  }
  free(gathers);
  return status == RILL_OK ? compare_pairs(ops, count) : status;
}
