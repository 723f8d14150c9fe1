/* RILL_CHECK=comm: before a collective operation, its ranks tell each other what they are about to do.
 *
 * The records travel through the engine itself, as an all-gather on a stream of the library's own, and the host waits
 * for them: so each call waits until all ranks have made theirs.  Sends and receives are not compared: what they match
 * is decided as they run. */
#include "backends/comm/engine.h"

#include <stdlib.h>
#include <string.h>

/* What is compared. */
struct record {
  uint64_t number, kind, count, type, op, root;
};

enum { WORDS = sizeof(struct record) / sizeof(uint64_t) };

bool rill__comm_checks(void) { return rill_check_is_on("comm"); }

/* ---- exchanging ---- */

/* The memory has a record of each rank, then this one's; first in pinned memory, then in the device's. */
static struct record *host_records(const struct comm *comm) { return comm->check_memory; }
static struct record *device_records(const struct comm *comm) { return comm->check_device_memory; }

static rill_status prepare(struct comm *comm) {
  const size_t size = (comm->ranks + 1) * sizeof(struct record);
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

static rill_status upload(const struct comm_op *op) {
  struct comm *comm = op->comm;
  COMM_TRY(prepare(comm));
  struct record *own = host_records(comm) + comm->ranks;
  *own = (struct record){ ++comm->checked, op->kind, op->count, op->type, op->op, op->peer };
  COMM_TRY_RILL(rill_copy_async(comm->check_stream, device_records(comm) + comm->ranks, own, sizeof *own),
                "RILL_CHECK=comm");
  return RILL_OK;
}

static struct comm_op gather(struct comm *comm) {
  return (struct comm_op){ .comm = comm,
                           .stream = comm->check_stream,
                           .dst = device_records(comm),
                           .src = device_records(comm) + comm->ranks,
                           .count = WORDS,
                           .size = sizeof(uint64_t),
                           .kind = COMM_ALL_GATHER,
                           .type = RILL_COMM_UINT64,
                           .op = RILL_COMM_SUM };
}

static rill_status compare(struct comm *comm) {
  const size_t size = comm->ranks * sizeof(struct record);
  COMM_TRY_RILL(rill_copy_async(comm->check_stream, host_records(comm), device_records(comm), size), "RILL_CHECK=comm");
  COMM_TRY_RILL(rill_stream_synchronize(comm->check_stream), "RILL_CHECK=comm");
  const struct record *own = host_records(comm) + comm->ranks;
  for (uint32_t i = 0; i < comm->ranks; i++) {
    const struct record *other = host_records(comm) + i;
    if (memcmp(own, other, sizeof *own) == 0) continue;
    return rill__comm_fail(
        RILL_ERROR_INVALID_ARGUMENT,
        "operation %llu of rank %u is %s of %llu elements, type %llu, op %llu, root %llu; of rank %u "
        "it is %s of %llu, type %llu, op %llu, root %llu",
        (unsigned long long)own->number, comm->rank, comm_kind_name(own->kind), (unsigned long long)own->count,
        (unsigned long long)own->type, (unsigned long long)own->op, (unsigned long long)own->root, i,
        comm_kind_name(other->kind), (unsigned long long)other->count, (unsigned long long)other->type,
        (unsigned long long)other->op, (unsigned long long)other->root);
  }
  return RILL_OK;
}

/* ---- rounds ---- */

static bool is_collective(const struct comm_op *op) { return op->kind != COMM_SEND && op->kind != COMM_RECEIVE; }

/* How many collective operations of the same communicator come before it. */
static size_t round_of(const struct comm_op *ops, size_t i) {
  size_t before = 0;
  for (size_t j = 0; j < i; j++) before += ops[j].comm == ops[i].comm && is_collective(&ops[j]);
  return before;
}

/* Compares the operations of one round, one of each communicator. */
static rill_status compare_round(const struct comm_op *ops, size_t count, size_t round, struct comm_op *gathers,
                                 size_t *found) {
  *found = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_collective(&ops[i]) || round_of(ops, i) != round) continue;
    COMM_TRY(upload(&ops[i]));
    gathers[(*found)++] = gather(ops[i].comm);
  }
  if (*found == 0) return RILL_OK;
  COMM_TRY(rill__comm_submit(gathers, *found));
  for (size_t i = 0; i < *found; i++) COMM_TRY(compare(gathers[i].comm));
  return RILL_OK;
}

rill_status rill__comm_check(const struct comm_op *ops, size_t count) {
  if (!rill__comm_checks()) return RILL_OK;
  struct comm_op *gathers = malloc(count * sizeof *gathers);
  COMM_REQUIRE(gathers != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to compare %zu operations", count);
  rill_status status = RILL_OK;
  size_t found = 1;
  for (size_t round = 0; found > 0 && status == RILL_OK; round++) {
    status = compare_round(ops, count, round, gathers, &found);
  }
  free(gathers);
  return status;
}
