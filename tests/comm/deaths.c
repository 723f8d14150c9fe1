/* Random sequences of operations in which the process of one rank dies, with the stand-ins of NCCL and RCCL: before an
 * operation, or in the middle of one that it has called or not.  The others learn of it by an asynchronous error or not
 * at all, and have a deadline or not.  Each time the waits of the others end with a report of the operation, the
 * communicator can be released, and they go on with another one. */
#include "ranks.h"

#include <comm_control.h>
#include <stdatomic.h>
#include <stdio.h>

enum { STEPS = 12, COUNT = 4, KINDS = 5 };
/* When the rank dies: before the others call the operation, while they wait in it, or after it has called it too while
 * one of the others, which is late, has not. */
enum { BEFORE, DURING, IN_OPERATION, MOMENTS };

static const struct rill_fake_comm *engine;
static const char *const names[KINDS] = { "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier" };

/* Drawn from the seed, and the same for all ranks. */
static struct plan {
  uint64_t seed, timeout;
  uint32_t steps, kinds[STEPS + 1], moment;
  int error; /* the asynchronous error; 0: there is none */
} plan;
static atomic_uint met;
static atomic_bool failed; /* on a rank, which meets nobody any more */
static rill_comm_id next_id;

static uint32_t draw(uint64_t *random, uint32_t below) {
  *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((*random >> 33) % below);
}

static void draw_plan(uint64_t seed) {
  enum { SYSTEM_ERROR = 2, REMOTE_ERROR = 6 };
  static const int errors[] = { 0, REMOTE_ERROR, SYSTEM_ERROR };
  uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
  plan = (struct plan){ .seed = seed, .moment = draw(&random, MOMENTS), .error = errors[draw(&random, 3)] };
  plan.steps = draw(&random, STEPS);
  for (int i = 0; i <= STEPS; i++) plan.kinds[i] = draw(&random, KINDS);
  /* What a rank has sent may arrive after its death: the others would complete an exchange. */
  enum { ALL_TO_ALL = 3 };
  uint32_t *const last = &plan.kinds[plan.steps];
  if (plan.moment == IN_OPERATION && *last == ALL_TO_ALL) *last = 0;
  const bool watched = draw(&random, 3) > 0;
  plan.timeout = !watched ? 0 : plan.error != 0 ? TIMEOUT_NS : 800 * MILLISECOND;
}

/* The ranks are threads of this process. */
static const char *meet(const struct rank *r, unsigned *meetings) {
  atomic_fetch_add(&met, 1);
  ++*meetings;
  while (atomic_load(&met) < *meetings * r->ranks && !atomic_load(&failed)) let_pass_ns(MILLISECOND / 10);
  return atomic_load(&failed) ? "another rank failed" : NULL;
}
#define MEET()                                      \
  do {                                              \
    const char *const missed_ = meet(r, &meetings); \
    if (missed_ != NULL) return missed_;            \
  } while (0)

static rill_status call(rill_comm comm, rill_stream stream, const struct buffer *b, uint32_t kind) {
  char *const src = b->device, *const dst = src + b->bytes / 2;
  switch (kind) {
    case 0: return rill_comm_all_reduce(comm, stream, dst, src, COUNT, RILL_COMM_INT32, RILL_COMM_SUM);
    case 1: return rill_comm_all_gather(comm, stream, dst, src, COUNT, RILL_COMM_INT32);
    case 2: return rill_comm_reduce_scatter(comm, stream, dst, src, COUNT, RILL_COMM_INT32, RILL_COMM_MAX);
    case 3: return rill_comm_all_to_all(comm, stream, dst, src, COUNT, RILL_COMM_INT32);
    default: return rill_comm_barrier(comm, stream);
  }
}

/* The wait of a survivor ends, and with it the communicator. */
static const char *wait_ends(struct rank *r, bool is_late, rill_status called, uint32_t kind) {
  const bool watched = plan.timeout != 0, silent = plan.error == 0;
  const rill_status expected = silent && watched ? RILL_ERROR_TIMEOUT : RILL_ERROR_BACKEND;
  const uint64_t until = now_ns() + TIMEOUT_NS;
  char says[160];
  const unsigned number = plan.steps + 1;
  if (silent && !watched) {
    (void)snprintf(says, sizeof says, "rill_comm_abort ended the communicator");
    COMM(called);
    COMM(rill_comm_abort(r->comm));
  } else if (silent) {
    (void)snprintf(says, sizeof says, "%s of rank %u of %u (operation %u) has not finished within %llu ns", names[kind],
                   r->rank, r->ranks, number, (unsigned long long)plan.timeout);
  } else if (!watched || is_late) { /* the error may be found before the operation is known */
    (void)snprintf(says, sizeof says, "rank %u of %u", r->rank, r->ranks);
  } else {
    (void)snprintf(says, sizeof says, "%s of rank %u of %u (operation %u): asynchronous error: ", names[kind], r->rank,
                   r->ranks, number);
  }
  if (called == RILL_OK && watched) { /* the stream reports it, once */
    const rill_status status = rill_stream_synchronize_for(r->stream, TIMEOUT_NS);
    REQUIRE(status == expected);
    if (strstr(rill_last_error_text(), says) == NULL) return rill_last_error_text();
  }
  rill_status status = called;
  while (status == RILL_OK && (status = rill_comm_validate(r->comm)) == RILL_OK && now_ns() < until)
    let_pass_ns(MILLISECOND);
  const char *failure = check_comm_failure(status, expected, says, "the operation");
  if (failure != NULL) return failure;
  RUN(rill_stream_synchronize_for(r->stream, TIMEOUT_NS)); /* the process goes on */
  COMM_FAILS(rill_comm_barrier(r->comm, r->stream), expected, says);
  return NULL;
}

/* The survivors join again, and their communicator works. */
static const char *go_on(struct rank *r, uint32_t victim, const struct buffer *b) {
  rill_comm comm;
  const uint32_t rank = r->rank - (r->rank > victim);
  const int32_t own = (int32_t)rank + 1;
  COMM(rill_comm_create(r->device, &next_id, r->ranks - 1, rank, RILL_COMM_OPTIONS(.timeout_ns = TIMEOUT_NS), &comm));
  RUN(rill_fill_async(r->stream, b->device, &own, sizeof own, COUNT));
  COMM(call(comm, r->stream, b, 0));
  RUN(buffer_download(r, b));
  RUN(rill_stream_synchronize(r->stream));
  for (int i = 0; i < COUNT; i++) {
    REQUIRE(((const int32_t *)b->host)[b->bytes / 8 + (size_t)i] == (int32_t)(r->ranks * (r->ranks - 1) / 2));
  }
  COMM(rill_comm_release(comm));
  return NULL;
}

static const char *run_death(struct rank *r, const struct buffer *b) {
  const uint32_t victim = (uint32_t)(plan.seed % r->ranks), late = (victim + 1) % r->ranks;
  const uint32_t kind = plan.kinds[plan.steps];
  const bool dies = r->rank == victim,
             is_late = plan.moment == BEFORE || (plan.moment == IN_OPERATION && r->rank == late);
  unsigned meetings = 0;
  rill_status called = RILL_OK;
  for (uint32_t i = 0; i < plan.steps; i++) COMM(call(r->comm, r->stream, b, plan.kinds[i]));
  RUN(rill_stream_synchronize(r->stream));
  if (r->rank == late && rill_comm_id_create(r->device, &next_id) != RILL_OK) return rill_comm_last_error_text();
  MEET();
  if (dies ? plan.moment == IN_OPERATION : !is_late) COMM(call(r->comm, r->stream, b, kind));
  MEET();
  if (dies) engine->kill((int)victim, plan.error);
  MEET();
  if (!dies && is_late) called = call(r->comm, r->stream, b, kind);
  const char *failure = dies ? NULL : wait_ends(r, is_late, called, kind);
  if (failure != NULL) return failure;
  MEET();
  COMM(rill_comm_release(r->comm));
  r->comm = RILL_NULL_COMM;
  if (!dies) failure = go_on(r, victim, b);
  if (failure != NULL) return failure;
  MEET(); /* to free memory waits for all GPUs */
  return NULL;
}

static const char *run_plan(struct rank *r) {
  static _Thread_local char where[2200];
  struct buffer b;
  RUN(buffer_new(r, (size_t)2 * COUNT * sizeof(int32_t) * r->ranks, &b));
  memset(b.host, 0, b.bytes);
  RUN(buffer_upload(r, &b));
  const char *const failure = run_death(r, &b);
  if (failure == NULL) buffer_free(&b);
  if (failure == NULL) return NULL;
  (void)snprintf(where, sizeof where, "RILL_SEED=%llu: %s", (unsigned long long)plan.seed, failure);
  atomic_store(&failed, true);
  return where;
}

static const char *join_once(struct rank *r) {
  (void)r;
  return NULL;
}

static void deaths_are_survived(void) {
  run_ranks(join_once, 0); /* loads the engine */
  engine = rill_fake_comm_find(strcmp(getenv("RILL_TEST_DEVICE"), "cuda") == 0 ? "libnccl.so.2" : "librccl.so.1");
  assert_non_null(engine);
  const char *const chosen = getenv("RILL_SEED");
  const uint64_t first = chosen != NULL ? strtoull(chosen, NULL, 10) : 1;
  const uint64_t last = chosen != NULL ? first : scaled(5);
  for (uint64_t seed = first; seed <= last; seed++) {
    draw_plan(seed);
    atomic_store(&met, 0);
    run_ranks(run_plan, plan.timeout);
    const uint64_t until = now_ns() + TIMEOUT_NS;
    while (engine->live() > 0 && now_ns() < until) let_pass_ns(MILLISECOND);
    assert_int_equal(engine->live(), 0);
  }
}

TESTS_ONCE("deaths of ranks of rill_comm", TEST(deaths_are_survived))
