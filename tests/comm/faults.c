/* Failures below rill_comm, over the fake NCCL and RCCL: calls that fail, ranks that stall or die, calls that do not
 * return. Each time there is an error with a text, nothing leaks, and a new communicator can be created. */
#include "ranks.h"

#include <comm_control.h>
#include <fake_control.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };
static const uint64_t deadline = 200 * UINT64_C(1000000);  /* that passes */
static const uint64_t distant = 60 * UINT64_C(1000000000); /* that does not */

static const struct rill_fake_comm *engine;
static const struct rill_fake *driver;
static rill_device gpus[MAX_RANKS];
static rill_comm comms[RANKS];
static rill_stream streams[RANKS];
static int64_t *memory[RANKS];
static uint64_t took[RANKS]; /* the last call of `sum` of a rank, in ns */

/* ---- before and after each test ---- */

/* The deadline is one of joining too, which a loaded machine may miss. */
static void make_comms(uint64_t timeout_ns) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  rill_status status;
  do {
    status = rill_comm_create_all(gpus, RANKS, RILL_COMM_OPTIONS(.timeout_ns = timeout_ns, .label = "trio"), comms);
  } while (status == RILL_ERROR_TIMEOUT && timeout_ns < distant && now_ns() < until);
  assert_comm(status);
}

static void release_comms(void) {
  for (int i = 0; i < RANKS; i++) {
    assert_comm(rill_comm_release(comms[i]));
    comms[i] = RILL_NULL_COMM;
  }
}

/* Destruction continues on another thread: waits until it is over. */
static void engine_has(size_t live) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while (engine->live() != live && now_ns() < until) let_pass_ns(MILLISECOND);
  assert_int_equal(engine->live(), live);
}

static void begin(void) {
  if (engine == NULL) {
    assert_true(find_devices(gpus) >= RANKS);
    const bool cuda = strcmp(getenv("RILL_TEST_DEVICE"), "cuda") == 0;
    make_comms(0); /* opens the engine */
    release_comms();
    driver = rill_fake_find(cuda ? "libcuda.so.1" : "libamdhip64.so.7");
    engine = rill_fake_comm_find(cuda ? "libnccl.so.2" : "librccl.so.1");
    assert_non_null(engine);
  }
  for (int i = 0; i < RANKS; i++) {
    assert_ok(rill_stream_create(gpus[i], RILL_STREAM_OPTIONS(.label = "work"), &streams[i]));
    assert_ok(rill_alloc(gpus[i], 64, RILL_MEMORY_DEVICE, (void **)&memory[i]));
  }
}

static void end(void) {
  engine->clear();
  engine_has(0);
  for (int i = 0; i < RANKS; i++) {
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_ok(rill_stream_release(streams[i]));
    assert_ok(rill_free(memory[i]));
  }
}

static rill_status sum(int rank, size_t count) {
  const uint64_t start = now_ns();
  const rill_status status = rill_comm_all_reduce(comms[rank], streams[rank], memory[rank], memory[rank], count,
                                                  RILL_COMM_INT64, RILL_COMM_SUM);
  took[rank] = now_ns() - start;
  return status;
}

/* Returns whether the text is what ends a communicator whose call took longer than the deadline, on a loaded machine.
 */
static bool was_slow(int rank, const char *text) {
  return took[rank] >= deadline && strstr(text, "an engine call for rank") != NULL;
}

/* Calls an operation that will run into the deadline, unless the call itself does. */
static void start_sum(int rank, size_t count) {
  const rill_status status = sum(rank, count);
  if (status != RILL_ERROR_TIMEOUT || !was_slow(rank, rill_comm_last_error_text())) assert_comm(status);
}

/* The communicators work: each rank's number becomes their sum. */
static void works(void) {
  assert_comm(rill_comm_group_begin());
  for (int64_t i = 0; i < RANKS; i++) {
    assert_ok(rill_fill_async(streams[i], memory[i], &i, sizeof i, 1));
    assert_comm(sum((int)i, 1));
  }
  assert_comm(rill_comm_group_end());
  for (int i = 0; i < RANKS; i++) {
    int64_t *seen = NULL;
    assert_ok(rill_alloc(gpus[i], sizeof *seen, RILL_MEMORY_PINNED, (void **)&seen));
    assert_ok(rill_copy_async(streams[i], seen, memory[i], sizeof *seen));
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_int_equal(*seen, 0 + 1 + 2);
    assert_ok(rill_free(seen));
  }
}

static void works_again(void) {
  make_comms(0);
  works();
  release_comms();
}

/* The stream's synchronize reports once what ended its operation, with this in the text; then it continues. */
static void is_reported(int rank, rill_status status, const char *says) {
  rill_status got = RILL_OK;
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while ((got = rill_stream_synchronize_for(streams[rank], 10 * MILLISECOND)) == RILL_ERROR_TIMEOUT) {
    rill_error error = RILL_ERROR_INIT;
    assert_ok(rill_last_error(&error));
    if (strstr(error.message, "failed") != NULL) break; /* reported: a deadline's status is the same */
    assert_true(now_ns() < until);
  }
  assert_int_equal(got, status);
  const char *const text = rill_last_error_text();
  if (strstr(text, says) == NULL && !was_slow(rank, text)) fail_msg("\"%s\" lacks \"%s\"", text, says);
  assert_ok(rill_stream_synchronize(streams[rank]));
}

/* ---- tests ---- */

static void a_join_that_fails_can_be_repeated(void) {
  static const char *const calls[] = { "ncclGetUniqueId", "ncclCommInitRank", "ncclGroupStart", "ncclGroupEnd" };
  begin();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    engine->fail_call(calls[i], 1, 3);
    assert_comm_fails(rill_comm_create_all(gpus, RANKS, NULL, comms), RILL_ERROR_BACKEND, "[3 ncclInternalError]");
    for (int k = 0; k < RANKS; k++) assert_int_equal(comms[k].id, 0);
    engine->clear();
    works_again();
  }
  end();
}

static void a_failed_submission_breaks_the_communicator(void) {
  begin();
  make_comms(0);
  engine->fail_call("ncclAllReduce", 1, 4); /* of the arguments: nothing has started, the communicator lives */
  assert_comm_fails(sum(0, 1), RILL_ERROR_INVALID_ARGUMENT, "ncclInvalidArgument");
  works();
  engine->fail_call("ncclAllReduce", 1, 1); /* of the device: nobody knows */
  assert_comm_fails(sum(1, 1), RILL_ERROR_BACKEND, "ncclUnhandledCudaError");
  assert_comm_fails(sum(1, 1), RILL_ERROR_BACKEND, "ncclUnhandledCudaError");
  assert_comm_fails(rill_comm_validate(comms[1]), RILL_ERROR_BACKEND, "rill_comm_validate");
  assert_comm(rill_comm_validate(comms[0]));
  release_comms();
  works_again();
  end();
}

static void a_stalled_rank_is_named(void) {
  begin();
  make_comms(deadline);
  const uint64_t start = now_ns();
  start_sum(0, 1);
  start_sum(2, 1);
  is_reported(0, RILL_ERROR_TIMEOUT,
              "all_reduce of rank 0 of 3 (operation 1) has not finished within 200000000 ns; "
              "rank 1 has called 0 operations");
  is_reported(2, RILL_ERROR_TIMEOUT, "rank 2 of 3");
  assert_true(now_ns() - start >= deadline);
  assert_comm_fails(sum(0, 1), RILL_ERROR_TIMEOUT, "trio");
  assert_comm_fails(rill_comm_barrier(comms[2], streams[2]), RILL_ERROR_TIMEOUT, "rill_comm_barrier");
  assert_comm(rill_comm_validate(comms[1])); /* it has noticed nothing */
  release_comms();
  works_again();
  end();
}

/* By a rule: its stream waits before its first operation, and the others' for it. */
static void a_rule_delays_a_rank(void) {
  begin();
  make_comms(0);
  const uint64_t start = now_ns();
  assert_ok(rill_fault_set("comm_late@1:1=200ms"));
  for (int i = 0; i < RANKS; i++) assert_comm(sum(i, 1));
  assert_int_equal(rill_fault_count(), 1);
  rill_fault_clear();
  assert_ok(rill_stream_synchronize(streams[0]));
  assert_true(now_ns() - start >= 200 * (uint64_t)MILLISECOND);
  works();
  release_comms();
  end();
}

/* Rank 1 arrives after the others have given up: it waits in vain, and all can be released, before or after. */
static void a_rank_whose_stream_is_late_is_named(void) {
  begin();
  for (int released = 0; released < 2; released++) {
    make_comms(deadline);
    driver->pause(1);
    for (int i = 0; i < RANKS; i++) start_sum(i, 1);
    if (released != 0) release_comms();
    /* Of a rank that was released, the others do not know. */
    const char *const late = released != 0 ? " ns" : " ns; the stream of rank 1 has not reached its operation 1";
    is_reported(0, RILL_ERROR_TIMEOUT, late);
    is_reported(2, RILL_ERROR_TIMEOUT, late);
    driver->resume(1);
    is_reported(1, RILL_ERROR_TIMEOUT, "all_reduce of rank 1 of 3");
    if (released == 0) release_comms();
    engine_has(0);
  }
  works_again();
  end();
}

/* The deadline counts from the time when the stream reaches the operation, not from the call. It is a long one, because
 * the streams have to get there within it. */
static void deadlines_begin_when_the_stream_is_reached(void) {
  const uint64_t from_the_call = 3 * deadline;
  begin();
  make_comms(from_the_call);
  for (int i = 0; i < RANKS; i++) driver->pause(i);
  for (int i = 0; i < RANKS; i++) assert_comm(sum(i, 1));
  let_pass_ns(from_the_call + deadline);
  for (int i = 0; i < RANKS; i++) assert_comm(rill_comm_validate(comms[i]));
  for (int i = 0; i < RANKS; i++) driver->resume(i);
  for (int i = 0; i < RANKS; i++) assert_ok(rill_stream_synchronize(streams[i]));
  release_comms();
  end();
}

static void different_counts_time_out(void) {
  begin();
  make_comms(deadline);
  for (int i = 0; i < RANKS; i++) start_sum(i, i == 1 ? 2 : 1);
  for (int i = 0; i < RANKS; i++) is_reported(i, RILL_ERROR_TIMEOUT, "all_reduce");
  release_comms();
  works_again();
  end();
}

static void a_dead_rank_is_reported(void) {
  begin();
  make_comms(distant);
  assert_comm(sum(0, 1));
  assert_comm(sum(2, 1));
  engine->kill(1, 6);
  is_reported(0, RILL_ERROR_BACKEND,
              "all_reduce of rank 0 of 3 (operation 1): asynchronous error: a rank has gone; rank 1 has called 0");
  is_reported(2, RILL_ERROR_BACKEND, "all_reduce of rank 2 of 3 (operation 1): asynchronous error: a rank has gone");
  assert_comm_fails(sum(0, 1), RILL_ERROR_BACKEND, "[6 ncclRemoteError]");
  release_comms();
  works_again();
  end();
}

/* Without a deadline nothing watches: the next query finds the failure, and an abort ends running operations. */
static void a_dead_rank_is_found_without_a_deadline(void) {
  begin();
  make_comms(0);
  assert_comm(sum(0, 1));
  engine->kill(1, 6);
  assert_comm_fails(rill_comm_validate(comms[0]), RILL_ERROR_BACKEND,
                    "rank 0 of 3, after its operation 1: asynchronous error: a rank has gone; rank 1 has called 0 "
                    "operations; rank 2 has called 0 operations [6 ncclRemoteError]");
  assert_ok(rill_stream_synchronize(streams[0]));
  release_comms();
  works_again();
  end();
}

static void an_abort_ends_operations(void) {
  begin();
  for (int watched = 0; watched < 2; watched++) {
    make_comms(watched != 0 ? distant : 0);
    assert_comm(sum(0, 1));
    assert_comm(rill_comm_abort(comms[0]));
    assert_comm(rill_comm_abort(comms[0]));
    if (watched != 0) is_reported(0, RILL_ERROR_BACKEND, "rill_comm_abort");
    assert_ok(rill_stream_synchronize(streams[0]));
    assert_comm_fails(sum(0, 1), RILL_ERROR_BACKEND, "rill_comm_abort ended");
    release_comms();
  }
  works_again();
  end();
}

/* ---- calls that do not return ---- */

static const char *submit_and_block(unsigned index, void *shared) {
  (void)shared;
  COMM_FAILS(sum((int)index, 1), RILL_ERROR_BACKEND, "all_reduce");
  COMM_FAILS(sum((int)index, 1), RILL_ERROR_TIMEOUT, "an engine call for rank");
  return NULL;
}

static void a_blocked_submission_times_out(void) {
  begin();
  make_comms(deadline);
  engine->block_submissions(1);
  run_threads(2, submit_and_block, NULL);
  engine->block_submissions(0);
  release_comms();
  works_again();
  end();
}

static rill_comm_id id;

static const char *join_alone(unsigned index, void *shared) {
  (void)shared;
  rill_comm comm = { 1 };
  COMM_FAILS(rill_comm_create(gpus[index], &id, 2, index, RILL_COMM_OPTIONS(.timeout_ns = deadline), &comm),
             RILL_ERROR_TIMEOUT, "the others have not joined within 200000000 ns");
  REQUIRE(comm.id == 0);
  return NULL;
}

/* A rank that gave up waiting is not left when the other arrives at last. */
static void nobody_else_joins(void) {
  begin();
  assert_comm(rill_comm_id_create(gpus[0], &id));
  run_threads(1, join_alone, NULL);
  rill_comm late = RILL_NULL_COMM;
  assert_comm(rill_comm_create(gpus[1], &id, 2, 1, NULL, &late));
  assert_comm(rill_comm_release(late));
  works_again();
  end();
}

static const char *join_together(unsigned index, void *shared) {
  rill_comm *out = shared;
  COMM(rill_comm_create(gpus[index], &id, RANKS, index, NULL, &out[index]));
  return NULL;
}

static void threads_join(void) {
  begin();
  assert_comm(rill_comm_id_create(gpus[0], &id));
  run_threads(RANKS, join_together, comms);
  works();
  release_comms();
  end();
}

/* ---- rill's part ---- */

static void a_held_stream_is_refused(void) {
  begin();
  make_comms(0);
  rill_event never = RILL_NULL_EVENT;
  assert_ok(rill_event_create(gpus[0], NULL, &never));
  assert_ok(rill_stream_wait_event(streams[0], never, 0));
  assert_comm_fails(sum(0, 1), RILL_ERROR_NOT_READY, "held");
  rill_stream other = RILL_NULL_STREAM;
  assert_ok(rill_stream_create(gpus[0], NULL, &other));
  assert_ok(rill_stream_record_event(other, never, 0));
  assert_ok(rill_stream_synchronize(streams[0]));
  works();
  assert_ok(rill_stream_release(other));
  assert_ok(rill_event_release(never));
  release_comms();
  end();
}

static void the_current_device_stays(void) {
  begin();
  const int before = driver->current_device();
  make_comms(distant);
  works();
  assert_comm(rill_comm_abort(comms[0]));
  assert_int_equal(driver->current_device(), before);
  release_comms();
  end();
}

static void bad_ids_and_devices_are_refused(void) {
  begin();
  rill_comm comm;
  rill_comm_id good, bad;
  rill_device cpu;
  assert_ok(rill_device_open("cpu", &cpu));
  assert_comm(rill_comm_id_create(gpus[0], &good));
  bad = good;
  bad.bytes[0] ^= 1;
  assert_comm_fails(rill_comm_create(gpus[0], &bad, 2, 0, NULL, &comm), RILL_ERROR_INVALID_ARGUMENT, "id is not valid");
  bad = good;
  bad.bytes[191] = 1;
  assert_comm_fails(rill_comm_create(gpus[0], &bad, 2, 0, NULL, &comm), RILL_ERROR_INVALID_ARGUMENT, "id is not valid");
  assert_comm_fails(rill_comm_create(cpu, &good, 2, 0, NULL, &comm), RILL_ERROR_WRONG_BACKEND, "backend");
  assert_comm_fails(rill_comm_create(gpus[0], NULL, 2, 0, NULL, &comm), RILL_ERROR_INVALID_ARGUMENT, "id is NULL");
  assert_comm_fails(rill_comm_create(gpus[0], &good, 2, 0, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  assert_comm_fails(rill_comm_create(gpus[0], &good, 2, 2, NULL, &comm), RILL_ERROR_OUT_OF_RANGE, "rank 2 of 2");
  assert_comm_fails(rill_comm_create((rill_device){ 9 }, &good, 2, 0, NULL, &comm), RILL_ERROR_INVALID_HANDLE,
                    "device");
  rill_comm_options options = { 0 };
  assert_comm_fails(rill_comm_create(gpus[0], &good, 2, 0, &options, &comm), RILL_ERROR_INVALID_ARGUMENT,
                    "struct_size");
  const rill_device twice[] = { gpus[0], gpus[0] }, mixed[] = { gpus[0], cpu };
  assert_comm_fails(rill_comm_create_all(twice, 2, NULL, comms), RILL_ERROR_INVALID_ARGUMENT, "are the same");
  assert_comm_fails(rill_comm_create_all(mixed, 2, NULL, comms), RILL_ERROR_WRONG_BACKEND, "devices[1]");
  rill_comm_id local;
  assert_comm(rill_comm_id_create(cpu, &local));
  assert_comm_fails(rill_comm_create(gpus[0], &local, 1, 0, NULL, &comm), RILL_ERROR_WRONG_BACKEND, "of backend 1");
  assert_comm_fails(rill_comm_create_all(gpus, 0, NULL, comms), RILL_ERROR_OUT_OF_RANGE, "count is 0");
  make_comms(0);
  assert_comm_fails(rill_comm_barrier(comms[0], streams[1]), RILL_ERROR_WRONG_DEVICE, "a device other than");
  release_comms();
  end();
}

static void a_thousand_communicators_leak_nothing(void) {
  begin();
  const size_t before = driver->live("*");
  const unsigned rounds = scaled(1000);
  for (unsigned i = 0; i < rounds; i++) {
    make_comms(i % 2 == 0 ? 0 : distant);
    if (i % 50 == 0) works();
    release_comms();
  }
  engine_has(0);
  const uint64_t until = now_ns() + TIMEOUT_NS; /* destruction on another thread frees memory a moment later */
  while (driver->live("*") > before + 16 && now_ns() < until) let_pass_ns(MILLISECOND);
  assert_true(driver->live("*") <= before + 16);
  end();
}

static void a_forked_child_is_refused(void) {
  begin();
  make_comms(0);
  const pid_t child = fork();
  if (child == 0) {
    rill_comm comm;
    const bool refused = rill_comm_barrier(comms[0], streams[0]) == RILL_ERROR_NO_DEVICE &&
                         rill_comm_create(gpus[0], &id, 1, 0, NULL, &comm) != RILL_OK;
    _exit(refused ? 0 : 1);
  }
  int result = 1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  works();
  release_comms();
  end();
}

/* Exit with everything under way: a child, since it is a process's end. */
static void the_process_may_exit_during_operations(void) {
  begin();
  assert_int_equal(system("\"$RILL_COMM_SELF\" exit"), 0);
  end();
}

static int leave_in_the_middle(void) {
  begin();
  make_comms(deadline);
  (void)!sum(0, 1); /* no other rank joins */
  (void)rill_comm_release(comms[1]);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return leave_in_the_middle();
  if (setenv("RILL_COMM_SELF", argv[0], 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = {
    TEST(a_join_that_fails_can_be_repeated),
    TEST(a_failed_submission_breaks_the_communicator),
    TEST(a_stalled_rank_is_named),
    TEST(a_rule_delays_a_rank),
    TEST(a_rank_whose_stream_is_late_is_named),
    TEST(deadlines_begin_when_the_stream_is_reached),
    TEST(different_counts_time_out),
    TEST(a_dead_rank_is_reported),
    TEST(a_dead_rank_is_found_without_a_deadline),
    TEST(an_abort_ends_operations),
    TEST(a_blocked_submission_times_out),
    TEST(nobody_else_joins),
    TEST(threads_join),
    TEST(a_held_stream_is_refused),
    TEST(the_current_device_stays),
    TEST(bad_ids_and_devices_are_refused),
    TEST(a_thousand_communicators_leak_nothing),
    TEST(a_forked_child_is_refused),
    TEST(the_process_may_exit_during_operations),
  };
  return RUN_ONCE("faults of rill_comm", tests);
}
