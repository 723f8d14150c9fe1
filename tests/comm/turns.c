/* Several threads of each rank use its communicators at the same time, with RILL_CHECK=comm: each call waits for its
 * turn, and in it for the other ranks.  All threads call the same operations, so the order in which they arrive does
 * not matter.  In half of the programs one rank calls nothing, so every call waits until its rank aborts. */
#include "ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { MOST_THREADS = 4, CALLS = 12 };

static uint64_t seed;

struct shared {
  const struct rank *r;
  rill_comm both[2]; /* two communicators of the same ranks */
  bool waits_forever;
  atomic_uint begun; /* calls, by all threads of the rank */
};

struct thread {
  struct shared *s;
  pthread_t id;
  struct buffer buffer;
  char failure[1200];
};

static uint32_t draw(uint64_t *random, uint32_t below) {
  *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((*random >> 33) % below);
}

/* An operation of both communicators, in one order on all ranks. */
static rill_status call_both(struct thread *t, rill_stream stream) {
  const uint32_t first = (uint32_t)(seed / 2 % 2);
  int32_t *const p = t->buffer.device;
  rill_status status = rill_comm_group_begin();
  for (uint32_t i = 0; i < 2 && status == RILL_OK; i++) {
    const uint32_t which = first ^ i;
    status = rill_comm_all_reduce(t->s->both[which], stream, p + which, p + which, 1, RILL_COMM_INT32, RILL_COMM_MAX);
  }
  const rill_status ended = rill_comm_group_end();
  return status != RILL_OK ? status : ended;
}

static const char *call_many(struct thread *t) {
  rill_stream stream;
  RUN(rill_stream_create(t->s->r->device, NULL, &stream));
  for (int i = 0; i < CALLS; i++) {
    atomic_fetch_add(&t->s->begun, 1);
    const rill_status status = call_both(t, stream);
    if (t->s->waits_forever) {
      const char *const ended = "rill_comm_abort ended the communicator";
      const char *const failure = check_comm_failure(status, RILL_ERROR_BACKEND, ended, "a call that waits");
      if (failure != NULL) return failure;
    } else if (status != RILL_OK) {
      return rill_comm_last_error_text();
    }
  }
  if (t->s->waits_forever) (void)!rill_stream_synchronize(stream);
  else RUN(rill_stream_synchronize(stream));
  RUN(rill_stream_release(stream));
  return NULL;
}

static void *run_thread(void *thread) {
  struct thread *const t = thread;
  const char *const failure = call_many(t);
  if (failure != NULL) (void)snprintf(t->failure, sizeof t->failure, "%s", failure);
  return NULL;
}

static const char *check_results(const struct rank *r, const struct thread *t) {
  RUN(buffer_download(r, &t->buffer));
  RUN(rill_stream_synchronize(r->stream));
  for (int i = 0; i < 2; i++) REQUIRE(((const int32_t *)t->buffer.host)[i] == (int32_t)r->ranks - 1);
  return NULL;
}

/* The first operations of a GPU connect the ranks: their calls would wait inside NCCL for the rank that calls nothing.
 */
static const char *connect_ranks(struct thread *t) {
  const struct rank *const r = t->s->r;
  RUN(buffer_new(r, 8, &t->buffer));
  if (call_both(t, r->stream) != RILL_OK) return rill_comm_last_error_text();
  RUN(rill_stream_synchronize(r->stream));
  return NULL;
}

/* On real GPUs what hangs fails at last. */
static uint64_t deadline(void) { return on_real_gpus() ? TIMEOUT_NS : 0; }

static const char *run_program(struct rank *r) {
  static _Thread_local char where[1300];
  uint64_t random = seed; /* equal on all ranks */
  struct thread threads[MOST_THREADS] = { { .s = NULL } };
  struct shared s = { .r = r, .both = { r->comm } };
  const uint32_t count = 2 + draw(&random, MOST_THREADS - 1);
  const uint32_t silent = draw(&random, r->ranks), abort_at = 1 + draw(&random, count);
  s.waits_forever = seed % 2 == 0;
  COMM(rill_comm_split(r->comm, 0, 0, RILL_COMM_OPTIONS(.timeout_ns = deadline()), &s.both[1]));
  struct thread connecting = { .s = &s };
  const char *failure = on_real_gpus() ? connect_ranks(&connecting) : NULL;
  if (failure != NULL) return failure;
  for (uint32_t i = 0; i < count; i++) {
    threads[i].s = &s;
    RUN(buffer_new(r, 8, &threads[i].buffer));
    for (int k = 0; k < 2; k++) ((int32_t *)threads[i].buffer.host)[k] = (int32_t)r->rank;
    RUN(buffer_upload(r, &threads[i].buffer));
  }
  RUN(rill_stream_synchronize(r->stream));
  const bool calls = !s.waits_forever || r->rank != silent;
  for (uint32_t i = 0; i < count && calls; i++) {
    REQUIRE(pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) == 0);
  }
  /* Each thread begins its first call, whoever has the turn. */
  while (calls && atomic_load(&s.begun) < abort_at) (void)sched_yield();
  for (int i = 0; i < 2 && s.waits_forever; i++) COMM(rill_comm_abort(s.both[i]));
  for (uint32_t i = 0; i < count && calls; i++) {
    REQUIRE(pthread_join(threads[i].id, NULL) == 0);
    if (failure == NULL && threads[i].failure[0] != '\0') failure = threads[i].failure;
  }
  for (uint32_t i = 0; i < count && failure == NULL && !s.waits_forever; i++) failure = check_results(r, &threads[i]);
  /* To free memory may wait for all GPUs, so it waits forever if another rank has not aborted yet. */
  for (uint32_t i = 0; i < count && !s.waits_forever; i++) buffer_free(&threads[i].buffer);
  if (!s.waits_forever) buffer_free(&connecting.buffer);
  COMM(rill_comm_release(s.both[1]));
  if (failure == NULL) return NULL;
  (void)snprintf(where, sizeof where, "RILL_SEED=%llu: %s", (unsigned long long)seed, failure);
  return where;
}

static void threads_take_turns(void) {
  const char *const chosen = getenv("RILL_SEED");
  const uint64_t first = chosen != NULL ? strtoull(chosen, NULL, 10) : 1;
  const uint64_t last = chosen != NULL ? first : scaled(with_mpi() || on_real_gpus() ? 8 : 16);
  for (seed = first; seed <= last; seed++) run_ranks(run_program, deadline());
}

int main(void) {
  if (setenv("RILL_CHECK", "comm", 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = { TEST(threads_take_turns) };
  return RUN_ONCE("threads that share communicators", tests);
}
