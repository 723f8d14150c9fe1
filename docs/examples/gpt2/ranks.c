#include "ranks.h"

#include "../vendor_library.h"

#include <rill/comm_mpi.h>

#define CHECK_COMM(call)                                          \
  do {                                                            \
    if ((call) != RILL_OK) {                                      \
      (void)fprintf(stderr, "%s\n", rill_comm_last_error_text()); \
      exit(1);                                                    \
    }                                                             \
  } while (0)

static void average(const ranks *r, rill_stream stream, float *x, size_t count) {
  CHECK_COMM(rill_comm_all_reduce(r->comm, stream, x, x, count, RILL_COMM_FLOAT, RILL_COMM_AVERAGE));
}

static void gradients_ready(void *user, float *first, size_t count) {
  const ranks *const r = user;
  CHECK(rill_stream_wait_stream(r->stream, r->model->stream));
  average(r, r->stream, first, count);
}

static void before_update(void *user) {
  const ranks *const r = user;
  average(r, r->stream, r->model->loss, 1);
  CHECK(rill_stream_wait_stream(r->model->stream, r->stream));
}

void ranks_open(ranks *r, rill_device device, const gpt2 *model, gpt2_options *options) {
  rill_comm_id id;
  CHECK_COMM(rill_comm_mpi_world(&id, &r->count, &r->rank));
  CHECK(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "gradients"), &r->stream));
  CHECK_COMM(rill_comm_create(device, &id, r->count, r->rank, RILL_COMM_OPTIONS(.timeout_ns = UINT64_C(300000000000)),
                              &r->comm));
  CHECK_COMM(rill_comm_barrier(r->comm, r->stream)); /* a capture needs a stream that the engine has used */
  if (options->batch % (int)r->count != 0) {
    (void)fprintf(stderr, "a batch of %d sequences cannot be shared by %u processes\n", options->batch, r->count);
    exit(1);
  }
  r->model = model;
  options->batch /= (int)r->count;
  options->gradients_ready = gradients_ready;
  options->before_update = before_update;
  options->user = r;
}

void ranks_close(ranks *r) {
  CHECK(rill_stream_synchronize(r->stream));
  CHECK_COMM(rill_comm_release(r->comm));
  CHECK(rill_stream_release(r->stream));
}
