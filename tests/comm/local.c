/* Failures between ranks of one process on the CPU: mismatched operations, missing ranks, earlier failed work, aborts.
 * Each time all ranks are notified at once, with the rank, the operation and its number; everything can be released,
 * and a new communicator works. */
#include "ranks.h"

#include <rill/fault.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };
static const uint64_t deadline = 100 * UINT64_C(1000000);

static rill_device cpus[RANKS];
static rill_comm comms[RANKS];
static rill_stream streams[RANKS];
static int64_t cells[RANKS][8];

static void make_comms(uint64_t timeout_ns) {
  for (int i = 0; i < RANKS; i++) {
    if (cpus[i].id == 0) assert_ok(rill_device_open("cpu", &cpus[i]));
    assert_ok(rill_stream_create(cpus[i], RILL_STREAM_OPTIONS(.label = "work"), &streams[i]));
  }
  note_device(cpus[0]);
  assert_comm(rill_comm_create_all(cpus, RANKS, RILL_COMM_OPTIONS(.timeout_ns = timeout_ns, .label = "trio"), comms));
}

static void release_comms(void) {
  for (int i = 0; i < RANKS; i++) {
    assert_comm(rill_comm_release(comms[i]));
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_ok(rill_stream_release(streams[i]));
  }
}

static rill_status sum(int rank, size_t count) {
  return rill_comm_all_reduce(comms[rank], streams[rank], cells[rank], cells[rank], count, RILL_COMM_INT64,
                              RILL_COMM_SUM);
}

/* A new communicator works, whatever happened to others. */
static void works_again(void) {
  make_comms(0);
  for (int i = 0; i < RANKS; i++) {
    cells[i][0] = i;
    assert_comm(sum(i, 1));
  }
  for (int i = 0; i < RANKS; i++) {
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_int_equal(cells[i][0], 0 + 1 + 2);
  }
  release_comms();
}

/* The stream says so once, and then every call on the communicator. */
static void is_reported(int rank, rill_status status, const char *says) {
  assert_int_equal(rill_stream_synchronize(streams[rank]), status);
  if (strstr(rill_last_error_text(), says) == NULL) fail_msg("\"%s\" lacks \"%s\"", rill_last_error_text(), says);
  assert_ok(rill_stream_synchronize(streams[rank]));
}

static void has_ended(int rank, rill_status status, const char *says) {
  assert_comm_fails(rill_comm_validate(comms[rank]), status, says);
  assert_comm_fails(rill_comm_barrier(comms[rank], streams[rank]), status, says);
}

/* A host call that blocks until the test releases it. */
static sem_t gate;

static void wait_at_gate(void *user, rill_status status) {
  (void)user, (void)status;
  (void)sem_wait(&gate);
}

static void stand_still(int rank) {
  (void)sem_init(&gate, 0, 0);
  assert_ok(rill_stream_host_call(streams[rank], wait_at_gate, NULL));
}

static void go_on(void) { (void)sem_post(&gate); }

/* ---- mismatched operations ---- */

/* Rank 1's second operation is another one than that of the others. */
static rill_status differ(int rank, int what) {
  const uint32_t type = what == 1 ? RILL_COMM_UINT64 : RILL_COMM_INT64, op = what == 2 ? RILL_COMM_MAX : RILL_COMM_SUM;
  int64_t *p = cells[rank];
  switch (what) {
    case 3: return rill_comm_barrier(comms[rank], streams[rank]);
    case 4: return rill_comm_reduce(comms[rank], streams[rank], p, p, 4, RILL_COMM_INT64, RILL_COMM_SUM, 1);
    default: return rill_comm_all_reduce(comms[rank], streams[rank], p, p, what == 0 ? 5 : what == 5 ? 0 : 4, type, op);
  }
}

static void mismatched_operations_are_refused(void) {
  static const char *const says[] = { "of 5 elements of int64, sum",
                                      "of 4 elements of uint64",
                                      "elements of int64, max",
                                      "barrier of rank 1 of 3 (operation 2)",
                                      "reduce of rank 1 of 3 (operation 2)",
                                      "of 0 elements" };
  for (int what = 0; what < 6; what++) {
    for (int last = 0; last < 2; last++) { /* the one that differs comes in the middle, or at the end */
      make_comms(0);
      for (int i = 0; i < RANKS; i++) assert_comm(sum(i, 1));
      for (int i = 0; i < RANKS; i++) assert_ok(rill_stream_synchronize(streams[i]));
      assert_comm(sum(0, 4));
      if (last != 0) assert_comm(sum(2, 4));
      assert_comm_fails(differ(1, what), RILL_ERROR_INVALID_ARGUMENT, says[what]);
      assert_comm_fails(rill_comm_validate(comms[1]), RILL_ERROR_INVALID_ARGUMENT,
                        "all_reduce of rank 0 of 3 (operation 2) of 4 elements of int64, sum");
      is_reported(0, RILL_ERROR_INVALID_ARGUMENT, says[what]);
      if (last != 0) is_reported(2, RILL_ERROR_INVALID_ARGUMENT, says[what]);
      for (int i = 0; i < RANKS; i++) has_ended(i, RILL_ERROR_INVALID_ARGUMENT, says[what]);
      release_comms();
    }
  }
  works_again();
}

static void mismatched_messages_are_refused(void) {
  for (int what = 0; what < 2; what++) {
    make_comms(0);
    assert_comm(rill_comm_send(comms[0], streams[0], cells[0], 2, RILL_COMM_INT64, 2));
    assert_comm_fails(rill_comm_receive(comms[2], streams[2], cells[2], what == 0 ? 3 : 2,
                                        what == 0 ? RILL_COMM_INT64 : RILL_COMM_DOUBLE, 0),
                      RILL_ERROR_INVALID_ARGUMENT,
                      "send of rank 0 of 3 to rank 2 (operation 1) of 2 elements of int64");
    is_reported(0, RILL_ERROR_INVALID_ARGUMENT, "receive of rank 2 of 3 from rank 0 (operation 1) of");
    has_ended(1, RILL_ERROR_INVALID_ARGUMENT, "receive of rank 2");
    release_comms();
  }
  works_again();
}

/* A message on one rank, and on its peer a collective operation in place of the other side, or in another order. */
static rill_status call_message(int rank, bool sends, uint32_t peer) {
  int64_t *const cell = &cells[rank][4];
  return sends ? rill_comm_send(comms[rank], streams[rank], cell, 1, RILL_COMM_INT64, peer)
               : rill_comm_receive(comms[rank], streams[rank], cell, 1, RILL_COMM_INT64, peer);
}

static void a_message_matches_no_collective_operation(void) {
  for (int what = 0; what < 4; what++) {
    const bool sends = what % 2 == 0, message_first = what / 2 == 0;
    const char *const message =
        sends ? "send of rank 1 of 3 to rank 2 (operation 2)" : "receive of rank 1 of 3 from rank 2 (operation 2)";
    const char *const other = "does not match all_reduce of rank 2 of 3 (operation 2)";
    make_comms(0);
    for (int i = 0; i < RANKS; i++) assert_comm(sum(i, 1));
    for (int i = 0; i < RANKS; i++) assert_ok(rill_stream_synchronize(streams[i]));
    assert_comm(sum(0, 1));
    if (message_first) assert_comm(call_message(1, sends, 2));
    else assert_comm(sum(2, 1));
    assert_comm_fails(message_first ? sum(2, 1) : call_message(1, sends, 2), RILL_ERROR_INVALID_ARGUMENT, message);
    is_reported(0, RILL_ERROR_INVALID_ARGUMENT, other);
    is_reported(message_first ? 1 : 2, RILL_ERROR_INVALID_ARGUMENT, other);
    for (int i = 0; i < RANKS; i++) has_ended(i, RILL_ERROR_INVALID_ARGUMENT, message);
    release_comms();
  }
  works_again();
}

/* In a group the order of messages and collective operations is free. */
static void a_group_may_mix_messages_and_collective_operations(void) {
  make_comms(0);
  for (int i = 0; i < RANKS; i++) {
    assert_comm(rill_comm_group_begin());
    if (i == 1) assert_comm(call_message(1, true, 2));
    cells[i][0] = i;
    assert_comm(sum(i, 1));
    if (i == 2) assert_comm(call_message(2, false, 1));
    assert_comm(rill_comm_group_end());
  }
  for (int i = 0; i < RANKS; i++) {
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_int_equal(cells[i][0], 0 + 1 + 2);
  }
  release_comms();
}

/* One operation of a group differs: what met before it is dropped, what comes after it never meets. */
static void a_mismatched_group_is_refused(void) {
  make_comms(0);
  assert_comm(sum(0, 1));
  assert_comm(sum(0, 2));
  assert_comm(rill_comm_group_begin());
  assert_comm(sum(1, 1));
  assert_comm(rill_comm_barrier(comms[1], streams[1]));
  assert_comm(rill_comm_barrier(comms[1], streams[2])); /* on a stream of its own */
  assert_comm(sum(1, 2));
  assert_comm_fails(rill_comm_group_end(), RILL_ERROR_INVALID_ARGUMENT, "barrier of rank 1 of 3 (operation 2)");
  is_reported(0, RILL_ERROR_INVALID_ARGUMENT, "all_reduce of rank 0 of 3 (operation 2) of 2 elements");
  for (int i = 1; i < RANKS; i++) assert_ok(rill_stream_synchronize(streams[i])); /* the call has reported it */
  release_comms();
  works_again();
}

/* By a rule, as a program that is wrong would. */
static void an_injected_count_is_reported(void) {
  make_comms(0);
  assert_ok(rill_fault_set("comm_count@2:1=+1"));
  assert_comm(sum(0, 3));
  assert_comm_fails(sum(2, 3), RILL_ERROR_INVALID_ARGUMENT, "all_reduce of rank 2 of 3 (operation 1) of 4 elements");
  rill_fault_clear();
  is_reported(0, RILL_ERROR_INVALID_ARGUMENT, "of rank 2 of 3");
  release_comms();
  works_again();
}

/* ---- missing ranks ---- */

static void a_rank_that_does_not_call_is_named(void) {
  make_comms(deadline);
  for (int i = 0; i < RANKS; i++) assert_comm(sum(i, 1));
  for (int i = 0; i < RANKS; i++) assert_ok(rill_stream_synchronize(streams[i]));
  assert_comm(sum(2, 1));
  is_reported(2, RILL_ERROR_TIMEOUT,
              "all_reduce of rank 2 of 3 (operation 2) has not finished within 100000000 ns; rank 0 "
              "has not called it; rank 1 has not called it");
  assert_comm_fails(sum(1, 1), RILL_ERROR_TIMEOUT, "trio: all_reduce of rank 2 of 3 (operation 2)");
  has_ended(0, RILL_ERROR_TIMEOUT, "rank 1 has not called it");
  release_comms();
  works_again();
}

/* Many operations wait on one stream: it is notified once. */
static void many_waiting_operations_are_ended(void) {
  for (int round = 0; round < 20; round++) {
    make_comms(0);
    for (int i = 0; i < 50; i++) assert_comm(sum(0, 1));
    for (int i = 0; i < 10; i++) assert_comm(sum(2, 1));
    assert_comm_fails(sum(1, 2), RILL_ERROR_INVALID_ARGUMENT, "of rank 1 of 3 (operation 1)");
    is_reported(0, RILL_ERROR_INVALID_ARGUMENT, "of rank 1 of 3 (operation 1)");
    is_reported(2, RILL_ERROR_INVALID_ARGUMENT, "of rank 1 of 3 (operation 1)");
    release_comms();
  }
}

/* Its stream is blocked by a gate, before and after everything has been released. */
static void a_rank_whose_stream_is_late_is_named(void) {
  for (int released = 0; released < 2; released++) {
    make_comms(deadline);
    stand_still(1);
    for (int i = 0; i < RANKS; i++) assert_comm(sum(i, 1));
    for (int i = 0; i < RANKS && released != 0; i++) assert_comm(rill_comm_release(comms[i]));
    const char *const says = "; the stream of rank 1 has not reached it (operation 1)";
    is_reported(0, RILL_ERROR_TIMEOUT, says);
    is_reported(2, RILL_ERROR_TIMEOUT, says);
    go_on();
    is_reported(1, RILL_ERROR_TIMEOUT, says);
    for (int i = 0; i < RANKS && released != 0; i++) comms[i] = RILL_NULL_COMM;
    release_comms();
  }
  works_again();
}

static void a_message_that_nobody_sends_times_out(void) {
  make_comms(deadline);
  assert_comm(rill_comm_receive(comms[1], streams[1], cells[1], 1, RILL_COMM_INT64, 2));
  is_reported(
      1, RILL_ERROR_TIMEOUT,
      "receive of rank 1 of 3 from rank 2 (operation 1) has not finished within 100000000 ns; rank 2 has not called "
      "the send");
  release_comms();
  works_again();
}

/* The deadline counts from the time when the stream reaches the operation. */
static void deadlines_begin_when_the_stream_is_reached(void) {
  make_comms(deadline);
  stand_still(0);
  assert_comm(sum(0, 1));
  let_pass_ns(2 * deadline);
  assert_comm(rill_comm_validate(comms[0]));
  go_on();
  assert_comm(sum(1, 1));
  assert_comm(sum(2, 1));
  for (int i = 0; i < RANKS; i++) assert_ok(rill_stream_synchronize(streams[i]));
  release_comms();
}

/* ---- other ends of a communicator ---- */

static void earlier_failed_work_fails_the_operation(void) {
  make_comms(0);
  rill_event never;
  assert_ok(rill_event_create(cpus[1], RILL_EVENT_OPTIONS(.label = "never"), &never));
  assert_ok(rill_stream_wait_event(streams[1], never, 0));
  assert_comm(sum(0, 1));
  assert_comm(sum(1, 1));
  assert_ok(rill_event_release(never));
  is_reported(0, RILL_ERROR_NOT_RECORDED,
              "all_reduce of rank 1 of 3 (operation 1) did not start: the work before it failed");
  assert_int_equal(rill_stream_synchronize(streams[1]), RILL_ERROR_NOT_RECORDED);
  has_ended(2, RILL_ERROR_NOT_RECORDED, "all_reduce of rank 1");
  release_comms();
  works_again();
}

static void an_abort_ends_operations(void) {
  make_comms(0);
  assert_comm(sum(0, 1));
  assert_comm(sum(2, 1));
  assert_comm(rill_comm_abort(comms[2]));
  assert_comm(rill_comm_abort(comms[2]));
  is_reported(0, RILL_ERROR_BACKEND, "rank 2 of 3: rill_comm_abort ended the communicator");
  is_reported(2, RILL_ERROR_BACKEND, "rill_comm_abort");
  has_ended(1, RILL_ERROR_BACKEND, "rill_comm_abort");
  release_comms();
  works_again();
}

/* Ranks that were released while their operations waited are free of them when one of the others gives up. */
static void an_abort_ends_operations_of_released_handles(void) {
  make_comms(0);
  assert_comm(sum(0, 1));
  assert_comm(sum(1, 1));
  assert_comm(rill_comm_release(comms[0]));
  assert_comm(rill_comm_release(comms[1]));
  assert_comm(rill_comm_abort(comms[2]));
  is_reported(0, RILL_ERROR_BACKEND, "rank 2 of 3");
  is_reported(1, RILL_ERROR_BACKEND, "rank 2 of 3");
  comms[0] = comms[1] = RILL_NULL_COMM;
  release_comms();
  works_again();
}

/* ---- one stream for all ranks ---- */

static void ranks_may_share_one_stream(void) {
  make_comms(deadline);
  assert_comm(rill_comm_group_begin());
  for (int i = 0; i < RANKS; i++) {
    cells[i][0] = i;
    assert_comm(rill_comm_all_reduce(comms[i], streams[0], cells[i], cells[i], 1, RILL_COMM_INT64, RILL_COMM_SUM));
  }
  assert_comm(rill_comm_group_end());
  assert_ok(rill_stream_synchronize(streams[0]));
  for (int i = 0; i < RANKS; i++) assert_int_equal(cells[i][0], 3);
  for (int i = 0; i < RANKS; i++) { /* without a group the first one holds the stream of the others */
    assert_comm(rill_comm_barrier(comms[i], streams[0]));
  }
  is_reported(0, RILL_ERROR_TIMEOUT, "the stream of rank 1 has not reached it (operation 2)");
  release_comms();
  works_again();
}

/* ---- joining ---- */

static rill_comm_id id;

static const char *join(unsigned index, void *shared) {
  (void)shared;
  COMM(rill_comm_create(cpus[index], &id, RANKS, index, NULL, &comms[index]));
  COMM(sum((int)index, 1));
  RUN(rill_stream_synchronize(streams[index]));
  return NULL;
}

static void threads_join(void) {
  make_comms(0);
  for (int i = 0; i < RANKS; i++) assert_comm(rill_comm_release(comms[i]));
  assert_comm(rill_comm_id_create(cpus[0], &id));
  run_threads(RANKS, join, NULL);
  rill_comm again;
  assert_comm_fails(rill_comm_create(cpus[0], &id, RANKS, 0, NULL, &again), RILL_ERROR_INVALID_ARGUMENT,
                    "rank 0 of 3 has already joined with this id");
  assert_comm_fails(rill_comm_create(cpus[0], &id, 2, 0, NULL, &again), RILL_ERROR_INVALID_ARGUMENT,
                    "rank 0 of 2: other ranks have joined with this id as ranks of 3");
  release_comms();
}

/* No byte of an id can change unnoticed. */
static void damaged_ids_are_refused(void) {
  make_comms(0);
  rill_comm comm;
  assert_comm(rill_comm_id_create(cpus[0], &id));
  for (size_t i = 0; i < sizeof id.bytes; i++) {
    rill_comm_id damaged = id;
    damaged.bytes[i] ^= 4;
    assert_comm_fails(rill_comm_create(cpus[0], &damaged, 1, 0, NULL, &comm), RILL_ERROR_INVALID_ARGUMENT,
                      "id is not valid");
  }
  assert_comm(rill_comm_create(cpus[0], &id, 1, 0, NULL, &comm));
  assert_comm(rill_comm_release(comm));
  release_comms();
}

/* A rank that gave up waiting can join again. */
static void nobody_else_joins(void) {
  make_comms(0);
  for (int i = 0; i < RANKS; i++) assert_comm(rill_comm_release(comms[i]));
  assert_comm(rill_comm_id_create(cpus[0], &id));
  rill_comm comm = { 1 };
  assert_comm_fails(rill_comm_create(cpus[0], &id, RANKS, 1, RILL_COMM_OPTIONS(.timeout_ns = deadline), &comm),
                    RILL_ERROR_TIMEOUT, "rank 1 of 3: the others have not joined within 100000000 ns: rank 0, 2");
  assert_int_equal(comm.id, 0);
  run_threads(RANKS, join, NULL);
  release_comms();
}

static const char *split_alone(unsigned index, void *shared) {
  rill_comm part = { 1 };
  (void)shared;
  if (index == 1) return NULL;
  COMM_FAILS(rill_comm_split(comms[index], 0, 0, RILL_COMM_OPTIONS(.timeout_ns = deadline), &part), RILL_ERROR_TIMEOUT,
             "the others have not called rill_comm_split within 100000000 ns: rank ");
  REQUIRE(part.id == 0);
  return NULL;
}

static const char *split_and_sum(unsigned index, void *shared) {
  rill_comm part;
  (void)shared;
  COMM(rill_comm_split(comms[index], 4, RANKS - index, NULL, &part));
  cells[index][0] = 1;
  COMM(rill_comm_all_reduce(part, streams[index], cells[index], cells[index], 1, RILL_COMM_INT64, RILL_COMM_SUM));
  COMM(rill_comm_release(part));
  RUN(rill_stream_synchronize(streams[index]));
  REQUIRE(cells[index][0] == RANKS);
  return NULL;
}

static void nobody_else_splits(void) {
  make_comms(0);
  run_threads(RANKS, split_alone, NULL);
  run_threads(RANKS, split_and_sum, NULL);
  release_comms();
}

static const char *split_or_abort(unsigned index, void *shared) {
  rill_comm part;
  (void)shared;
  if (index == 1) COMM(rill_comm_abort(comms[1]));
  else COMM_FAILS(rill_comm_split(comms[index], 0, 0, NULL, &part), RILL_ERROR_BACKEND, "rill_comm_abort ended");
  return NULL;
}

static void an_abort_ends_a_split(void) {
  make_comms(0);
  run_threads(RANKS, split_or_abort, NULL);
  release_comms();
  works_again();
}

/* ---- the process ---- */

static int count_threads(void) {
  FILE *const file = fopen("/proc/self/status", "r");
  char line[256];
  int threads = -1;
  while (file != NULL && fgets(line, sizeof line, file) != NULL && sscanf(line, "Threads: %d", &threads) != 1) continue;
  if (file != NULL) (void)fclose(file);
  return threads;
}

static void a_forked_child_is_refused(void) {
  make_comms(0);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = rill_comm_barrier(comms[0], streams[0]) == RILL_ERROR_NO_DEVICE;
    for (int i = 0; i < RANKS; i++) (void)rill_comm_release(comms[i]);
    _exit(refused && count_threads() == 1 ? 0 : 1); /* nothing destroys the communicators */
  }
  int result = 1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  release_comms();
  works_again();
}

/* Exit with everything under way, in a child that is another program. */
static void the_process_may_exit_during_operations(void) { assert_int_equal(system("\"$RILL_COMM_SELF\" exit"), 0); }

static int leave_in_the_middle(void) {
  make_comms(deadline);
  (void)!sum(0, 1);
  (void)rill_comm_release(comms[1]);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return leave_in_the_middle();
  if (setenv("RILL_COMM_SELF", argv[0], 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = {
    TEST(mismatched_operations_are_refused),
    TEST(mismatched_messages_are_refused),
    TEST(a_message_matches_no_collective_operation),
    TEST(a_group_may_mix_messages_and_collective_operations),
    TEST(a_mismatched_group_is_refused),
    TEST(an_injected_count_is_reported),
    TEST(a_rank_that_does_not_call_is_named),
    TEST(many_waiting_operations_are_ended),
    TEST(a_rank_whose_stream_is_late_is_named),
    TEST(a_message_that_nobody_sends_times_out),
    TEST(deadlines_begin_when_the_stream_is_reached),
    TEST(earlier_failed_work_fails_the_operation),
    TEST(an_abort_ends_operations),
    TEST(an_abort_ends_operations_of_released_handles),
    TEST(ranks_may_share_one_stream),
    TEST(threads_join),
    TEST(damaged_ids_are_refused),
    TEST(nobody_else_joins),
    TEST(nobody_else_splits),
    TEST(an_abort_ends_a_split),
    TEST(a_forked_child_is_refused),
    TEST(the_process_may_exit_during_operations),
  };
  return RUN_ONCE("local ranks of rill_comm", tests);
}
