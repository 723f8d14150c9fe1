/* RILL_CHECK=comm: operations of the ranks are compared; mismatched ones are refused on all ranks, and nothing
 * hangs. */
#include "ranks.h"

#include <pthread.h>
#include <stdio.h>

enum { DIFFERENCES = 6 };

/* Rank 1 calls a different operation than the others. */
static rill_status call_differently(const struct rank *r, const struct buffer *b, int what) {
  const bool odd = r->rank == 1;
  const uint32_t type = what == 0 && odd ? RILL_COMM_UINT32 : RILL_COMM_INT32;
  const uint32_t op = what == 1 && odd ? RILL_COMM_MAX : RILL_COMM_SUM;
  const size_t count = what == 2 && odd ? 5 : 4;
  char *const dst = b->device;
  switch (what) {
    case 0:
    case 1:
    case 2: return rill_comm_all_reduce(r->comm, r->stream, dst, dst, count, type, op);
    case 3: return rill_comm_broadcast(r->comm, r->stream, dst, dst, count, type, odd ? 1 : 0);
    case 4:
      return odd ? rill_comm_barrier(r->comm, r->stream)
                 : rill_comm_all_reduce(r->comm, r->stream, dst, dst, count, type, op);
    default: return rill_comm_reduce(r->comm, r->stream, dst, dst, odd ? 0 : count, type, op, 0);
  }
}

static const char *differ(struct rank *r) {
  static const char *const says[DIFFERENCES] = { "uint32", "max", "of 5", "root 1", "barrier", "of 0" };
  struct buffer b;
  RUN(buffer_new(r, 64, &b));
  for (int what = 0; what < DIFFERENCES; what++) {
    ((int32_t *)b.host)[0] = 1;
    RUN(buffer_upload(r, &b));
    COMM_FAILS(call_differently(r, &b, what), RILL_ERROR_INVALID_ARGUMENT, says[what]);
    COMM(rill_comm_validate(r->comm));
    COMM(rill_comm_all_reduce(r->comm, r->stream, b.device, b.device, 1, RILL_COMM_INT32, RILL_COMM_SUM));
    RUN(buffer_download(r, &b));
    RUN(rill_stream_synchronize(r->stream));
    REQUIRE(((int32_t *)b.host)[0] == (int32_t)r->ranks);
  }
  buffer_free(&b);
  return NULL;
}
static void mismatched_operations_are_refused(void) { run_ranks(differ, TIMEOUT_NS); }

/* Groups are compared operation by operation. */
static const char *differ_in_group(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 64, &b));
  ((int32_t *)b.host)[0] = ((int32_t *)b.host)[1] = 1;
  RUN(buffer_upload(r, &b));
  for (int differs = 1; differs >= 0; differs--) {
    int32_t *p = b.device;
    COMM(rill_comm_group_begin());
    COMM(rill_comm_all_reduce(r->comm, r->stream, p, p, 1, RILL_COMM_INT32, RILL_COMM_SUM));
    COMM(rill_comm_all_reduce(r->comm, r->stream, p + 1, p + 1, 1, RILL_COMM_INT32,
                              differs && r->rank == 0 ? RILL_COMM_MIN : RILL_COMM_SUM));
    if (differs) COMM_FAILS(rill_comm_group_end(), RILL_ERROR_INVALID_ARGUMENT, "min");
    else COMM(rill_comm_group_end());
  }
  RUN(buffer_download(r, &b));
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(((int32_t *)b.host)[0] == (int32_t)r->ranks && ((int32_t *)b.host)[1] == (int32_t)r->ranks);
  buffer_free(&b);
  return NULL;
}
static void groups_are_compared(void) { run_ranks(differ_in_group, TIMEOUT_NS); }

/* One thread for all ranks, where a process can have several. */
static void one_thread_for_all(void) {
  rill_device devices[MAX_RANKS];
  rill_comm comms[MAX_RANKS];
  rill_stream streams[MAX_RANKS];
  int32_t *memory[MAX_RANKS];
  if (with_mpi()) return;
  const uint32_t count = find_devices(devices);
  create_comms(devices, count, NULL, comms);
  for (uint32_t i = 0; i < count; i++) {
    assert_ok(rill_stream_create(devices[i], NULL, &streams[i]));
    assert_ok(rill_alloc(devices[i], 64, RILL_MEMORY_DEVICE, (void **)&memory[i]));
  }
  for (int differs = 1; differs >= 0; differs--) {
    assert_comm(rill_comm_group_begin());
    for (uint32_t i = 0; i < count; i++) {
      const size_t n = differs && i == 1 ? 3 : 2;
      assert_comm(rill_comm_all_reduce(comms[i], streams[i], memory[i], memory[i], n, RILL_COMM_INT32, RILL_COMM_SUM));
    }
    if (differs) assert_comm_fails(rill_comm_group_end(), RILL_ERROR_INVALID_ARGUMENT, "of 3");
    else assert_comm(rill_comm_group_end());
  }
  for (uint32_t i = 0; i < count; i++) {
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_ok(rill_stream_release(streams[i]));
    assert_comm(rill_comm_release(comms[i]));
    assert_ok(rill_free(memory[i]));
  }
}

/* A send and its receive of another count or type: both sides are refused, or with MPI the one that receives. */
static const char *differ_in_messages(struct rank *r) {
  struct buffer b;
  RUN(buffer_new(r, 64, &b));
  char *const p = b.device;
  for (int what = 0; what < 4; what++) {
    const uint32_t type = what == 1 ? RILL_COMM_UINT32 : RILL_COMM_INT32;
    const size_t count = what == 2 ? 3 : 4;
    const bool wrong = what == 1 || what == 2;
    const char *const says = r->rank == 0 ? "send of rank 0 of " : "receive of rank 1 of ";
    if (r->rank == 0) {
      const rill_status status = rill_comm_send(r->comm, r->stream, p, 4, RILL_COMM_INT32, 1);
      const char *failure = wrong ? check_comm_failure(status, RILL_ERROR_INVALID_ARGUMENT, says, "send") : NULL;
      if (failure != NULL) return failure;
      REQUIRE(wrong || status == RILL_OK);
    } else if (r->rank == 1) {
      const rill_status status = rill_comm_receive(r->comm, r->stream, p, count, type, 0);
      const char *failure = wrong ? check_comm_failure(status, RILL_ERROR_INVALID_ARGUMENT, says, "receive") : NULL;
      if (failure != NULL) return failure;
      REQUIRE(wrong || status == RILL_OK);
    }
    COMM(rill_comm_validate(r->comm));
  }
  /* Messages that cross, several each way, in orders of each rank's own. */
  if (r->rank < 2) {
    const uint32_t peer = r->rank ^ 1;
    COMM(rill_comm_group_begin());
    if (r->rank == 0) COMM(rill_comm_receive(r->comm, r->stream, p + 32, 2, RILL_COMM_INT32, peer));
    COMM(rill_comm_send(r->comm, r->stream, p, r->rank + 1, RILL_COMM_INT32, peer));
    COMM(rill_comm_send(r->comm, r->stream, p, 3, RILL_COMM_INT8, peer));
    if (r->rank == 1) COMM(rill_comm_receive(r->comm, r->stream, p + 32, 1, RILL_COMM_INT32, peer));
    COMM(rill_comm_receive(r->comm, r->stream, p + 48, 3, RILL_COMM_INT8, peer));
    COMM(rill_comm_group_end());
  }
  RUN(rill_stream_synchronize(r->stream));
  buffer_free(&b);
  return NULL;
}
static void mismatched_messages_are_refused(void) {
  if (on_cpu()) skip_because("the engines of the CPU compare messages themselves, as they come");
  run_ranks(differ_in_messages, TIMEOUT_NS);
}

/* Two threads of each rank use its communicator at the same time.  They call the same operation, so that the order of
 * the ranks is the same whichever thread comes first. */
struct shared_rank {
  const struct rank *r;
  struct buffer buffers[2];
  char failures[2][512];
};

static const char *sum_many(unsigned index, const struct shared_rank *s) {
  int32_t *const p = s->buffers[index].device;
  rill_stream stream;
  RUN(rill_stream_create(s->r->device, NULL, &stream));
  for (int i = 0; i < 20; i++) {
    COMM(rill_comm_all_reduce(s->r->comm, stream, p, p, 2, RILL_COMM_INT32, RILL_COMM_MAX));
    COMM(rill_comm_validate(s->r->comm));
  }
  RUN(rill_stream_synchronize(stream));
  RUN(rill_stream_release(stream));
  return NULL;
}

static void note_failure(struct shared_rank *s, unsigned index) {
  const char *const failure = sum_many(index, s);
  if (failure != NULL) (void)snprintf(s->failures[index], sizeof s->failures[index], "thread %u: %s", index, failure);
}

static void *run_second(void *shared) {
  note_failure(shared, 1);
  return NULL;
}

static const char *share(struct rank *r) {
  static _Thread_local struct shared_rank s;
  pthread_t second;
  s = (struct shared_rank){ .r = r };
  for (int i = 0; i < 2; i++) {
    RUN(buffer_new(r, 8, &s.buffers[i]));
    for (int k = 0; k < 2; k++) ((int32_t *)s.buffers[i].host)[k] = (int32_t)r->rank;
    RUN(buffer_upload(r, &s.buffers[i]));
  }
  RUN(rill_stream_synchronize(r->stream));
  REQUIRE(pthread_create(&second, NULL, run_second, &s) == 0);
  note_failure(&s, 0);
  REQUIRE(pthread_join(second, NULL) == 0);
  for (int i = 0; i < 2; i++) {
    if (s.failures[i][0] != '\0') return s.failures[i];
  }
  for (int i = 0; i < 2; i++) {
    RUN(buffer_download(r, &s.buffers[i]));
    RUN(rill_stream_synchronize(r->stream));
    for (int k = 0; k < 2; k++) REQUIRE(((const int32_t *)s.buffers[i].host)[k] == (int32_t)r->ranks - 1);
  }
  for (int i = 0; i < 2; i++) buffer_free(&s.buffers[i]);
  return NULL;
}
static void two_threads_of_a_rank(void) { run_ranks(share, TIMEOUT_NS); }

int main(void) {
  if (setenv("RILL_CHECK", ",comm", 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = { TEST(mismatched_operations_are_refused), TEST(groups_are_compared),
                                       TEST(one_thread_for_all), TEST(mismatched_messages_are_refused),
                                       TEST(two_threads_of_a_rank) };
  return RUN_ONCE("RILL_CHECK=comm", tests);
}
