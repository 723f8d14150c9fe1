/* RILL_FAULT: a rank is late, dies, or passes a wrong count. */
#include "backends/comm/engine.h"

#include <errno.h>
#include <rill/fault.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Blocks the stream for the requested time.  Runs as a host call before the operation. */
static void be_late(void *user, rill_status status) {
  struct timespec *const left = user;
  while (status == RILL_OK && nanosleep(left, left) != 0 && errno == EINTR) {
  }
  free(left);
}

static rill_status delay(const struct comm_op *op, int64_t ns) {
  struct timespec *const time = malloc(sizeof *time);
  COMM_REQUIRE(time != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for RILL_FAULT");
  *time = (struct timespec){ ns / 1000000000, ns % 1000000000 };
  const rill_status status = rill_stream_host_call(op->stream, be_late, time);
  if (status == RILL_OK) return RILL_OK;
  free(time);
  return rill__comm_fail_rill(status, "RILL_FAULT: comm_late");
}

/* Dies as if killed by the system: nothing is sent or released. */
static void die(const struct comm_op *op) {
  char line[120];
  const int length = snprintf(line, sizeof line, "rill: RILL_FAULT: comm_die: rank %u of %u is killed at its %s\n",
                              op->comm->rank, op->comm->ranks, comm_kind_name(op->kind));
  if (length > 0) (void)!write(STDERR_FILENO, line, (size_t)length);
  (void)raise(SIGKILL);
}

static rill_status change_count(struct comm_op *op, int64_t more) {
  const size_t magnitude = (size_t)(more < 0 ? -more : more);
  COMM_REQUIRE(more > 0 ? op->count <= SIZE_MAX - magnitude : op->count >= magnitude, RILL_ERROR_OUT_OF_RANGE,
               "RILL_FAULT: comm_count: a count of %zu cannot change by %lld", op->count, (long long)more);
  op->count = more < 0 ? op->count - magnitude : op->count + magnitude;
  return RILL_OK;
}

rill_status rill__comm_inject(struct comm_op *op) {
  char rank[16];
  int64_t value = 0;
  (void)snprintf(rank, sizeof rank, "%u", op->comm->rank);
  if (rill_fault_is_due("comm_die", rank, NULL)) die(op);
  if (rill_fault_is_due("comm_late", rank, &value)) COMM_TRY(delay(op, value));
  if (op->kind != COMM_BARRIER && rill_fault_is_due("comm_count", rank, &value)) COMM_TRY(change_count(op, value));
  return RILL_OK;
}
