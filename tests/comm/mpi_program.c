/* Programs that use MPI themselves, and jobs that go wrong: one case a run, named on the command line.  Each rank says
 * on stdout what it saw; test_mpi.py, which starts mpirun, knows what that has to be. */
#include <mpi.h> /* before rill/comm_mpi.h, which then has more */

#include "ranks.h"

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static rill_device cpu;
static rill_stream stream;
static uint32_t ranks, rank;

static void check(rill_status status, const char *call) {
  if (status == RILL_OK) return;
  (void)printf("%s failed: %s; %s\n", call, rill_last_error_text(), rill_comm_last_error_text());
  (void)fflush(stdout);
  _exit(2);
}
#define CHECK(call) check((call), #call)

static void say(const char *what, const char *text) {
  (void)printf("%s: %s\n", what, text);
  (void)fflush(stdout);
}

static rill_comm join(uint64_t timeout_ns) {
  rill_comm_id id;
  rill_comm comm;
  CHECK(rill_comm_mpi_world(&id, &ranks, &rank));
  if (timeout_ns != 0) (void)MPI_Barrier(MPI_COMM_WORLD); /* processes may start at different times */
  CHECK(rill_comm_create(cpu, &id, ranks, rank, RILL_COMM_OPTIONS(.timeout_ns = timeout_ns, .label = "job"), &comm));
  return comm;
}

static int64_t sum_of(rill_comm comm, int64_t value) {
  static int64_t cell;
  cell = value;
  CHECK(rill_comm_all_reduce(comm, stream, &cell, &cell, 1, RILL_COMM_INT64, RILL_COMM_SUM));
  CHECK(rill_stream_synchronize(stream));
  return cell;
}

/* Waits until the others are through, for as long as a test waits for anything. */
static void meet(void) { (void)MPI_Barrier(MPI_COMM_WORLD); }

/* ---- MPI of the program's own ---- */

static int own_communicator(void) {
  int level = 0;
  (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
  int me = 0;
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm half;
  (void)MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half); /* the even and the odd ones, backwards */
  rill_comm_id id;
  rill_comm comm;
  if (rill_comm_mpi_handle_id(MPI_Comm_c2f(half), "another MPI", &id, &ranks, &rank) == RILL_OK) return 3;
  say("another", rill_comm_last_error_text());
  if (rill_comm_mpi_handle_id(MPI_Comm_c2f(half), NULL, &id, &ranks, &rank) == RILL_OK) return 3;
  if (rill_comm_mpi_id(MPI_COMM_NULL, &id, &ranks, &rank) == RILL_OK) return 3;
  say("null", rill_comm_last_error_text());
  CHECK(rill_comm_mpi_id(half, &id, &ranks, &rank));
  CHECK(rill_comm_create(cpu, &id, ranks, rank, NULL, &comm));
  (void)MPI_Comm_free(&half);
  const int64_t sum = sum_of(comm, me);
  const bool right = ranks == 2 && rank == (me < 2 ? 1 : 0) && sum == (me % 2 == 0 ? 2 : 4);
  say("half", right ? "right" : "wrong");
  CHECK(rill_comm_release(comm));
  (void)MPI_Finalize();
  rill_comm_id none;
  if (rill_comm_mpi_world(&none, &ranks, &rank) == RILL_OK) return 3;
  say("after MPI_Finalize", rill_comm_last_error_text());
  return 0;
}

static int too_few_threads(void) {
  int level = 0;
  (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  rill_comm_id id;
  if (rill_comm_mpi_world(&id, &ranks, &rank) == RILL_OK && level < MPI_THREAD_MULTIPLE) return 3;
  say("level", rill_comm_last_error_text());
  (void)MPI_Finalize();
  return 0;
}

/* ---- one id for all, or not ---- */

static int other_ids(void) {
  rill_comm_id id;
  rill_comm comm;
  (void)join(0);
  CHECK(rill_comm_id_create(cpu, &id)); /* each process has its own */
  if (rill_comm_create(cpu, &id, ranks, rank, NULL, &comm) == RILL_OK) return 3;
  say("ids", rill_comm_last_error_text());
  (void)MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD); /* as programs for GPUs do */
  CHECK(rill_comm_create(cpu, &id, ranks, rank, NULL, &comm));
  CHECK(rill_comm_barrier(comm, stream));
  CHECK(rill_stream_synchronize(stream));
  CHECK(rill_comm_release(comm));
  CHECK(rill_comm_mpi_world(&id, &ranks, &rank));
  if (rill_comm_create(cpu, &id, ranks + 1, rank, NULL, &comm) == RILL_OK) return 3;
  say("ranks", rill_comm_last_error_text());
  if (rill_comm_create(cpu, &id, ranks, rank / 2, NULL, &comm) == RILL_OK) return 3;
  say("same rank", rill_comm_last_error_text());
  return 0;
}

/* ---- jobs that go wrong ---- */

static void say_end(rill_comm comm) {
  (void)!rill_stream_synchronize(stream);
  say("stream", rill_last_error_text());
  while (rill_comm_validate(comm) == RILL_OK) (void)sched_yield(); /* the test has a time limit */
  (void)!rill_comm_barrier(comm, stream);
  say("comm", rill_comm_last_error_text());
}

/* Rank 1 does not come in time.  What was after the operation does not run. */
static int stall(void) {
  const rill_comm comm = join(2000 * MILLISECOND);
  uint32_t later = 5, written = 7;
  if (rank != 1) {
    CHECK(rill_comm_barrier(comm, stream));
    CHECK(rill_fill_async(stream, &later, &written, sizeof written, 1));
    say_end(comm);
    say("later", later == 5 ? "not run" : "run");
    CHECK(rill_stream_synchronize(stream)); /* reported once */
  }
  meet();
  return 0;
}

/* RILL_FAULT makes rank 1 late, or kills it, at its second operation. */
static int injected(void) {
  const rill_comm comm = join(2000 * MILLISECOND);
  if (sum_of(comm, rank) != 6) return 3;
  say("first", "right");
  CHECK(rill_comm_barrier(comm, stream));
  if (rank == 1) {
    say("late", rill_stream_synchronize(stream) == RILL_OK ? "passed" : rill_last_error_text());
  } else {
    say_end(comm);
  }
  meet();
  return 0;
}

/* RILL_FAULT makes rank 2 pass a count of 3 less than the others' to its first operation. */
static int injected_count(void) {
  static int64_t cells[4];
  const rill_comm comm = join(2000 * MILLISECOND);
  const rill_status status = rill_comm_all_reduce(comm, stream, cells, cells, 4, RILL_COMM_INT64, RILL_COMM_SUM);
  if (status != RILL_OK) say("count", rill_comm_last_error_text());
  else say("count", rill_stream_synchronize(stream) != RILL_OK ? rill_last_error_text() : "not noticed");
  CHECK(rill_comm_release(comm));
  const rill_comm next = join(0);
  say("next", sum_of(next, 1) == ranks ? "right" : "wrong");
  return 0;
}

/* An operation whose stream failed before it. */
static int fail_before(void) {
  const rill_comm comm = join(2000 * MILLISECOND);
  rill_event never;
  if (rank == 1) {
    CHECK(rill_event_create(cpu, RILL_EVENT_OPTIONS(.label = "never"), &never));
    CHECK(rill_stream_wait_event(stream, never, 0));
  }
  CHECK(rill_comm_barrier(comm, stream));
  if (rank == 1) CHECK(rill_event_release(never));
  say_end(comm);
  meet();
  return 0;
}

/* Rank 1 receives something else than rank 0 sends; nothing past its buffer is written. */
static int receive_otherwise(size_t sent, uint32_t type, size_t received) {
  enum { MOST = 1 << 18 }; /* more than MPI sends before it knows of a receive */
  static int32_t cells[MOST];
  const rill_comm comm = join(TIMEOUT_NS);
  for (size_t i = 0; i < MOST; i++) cells[i] = 7;
  if (rank == 0) CHECK(rill_comm_send(comm, stream, cells, sent, type, 1));
  if (rank == 1) {
    CHECK(rill_comm_receive(comm, stream, cells, received, RILL_COMM_INT32, 0));
    say_end(comm);
    for (size_t i = 0; i < MOST; i++) {
      if (cells[i] != 7) say("written", "something");
    }
  } else if (rank != 0) {
    CHECK(rill_stream_synchronize(stream));
  }
  meet();
  return 0;
}
static int receive_less(void) { return receive_otherwise(1 << 18, RILL_COMM_INT32, 1 << 17); }
static int receive_more(void) { return receive_otherwise(2, RILL_COMM_INT32, 3); }
static int receive_of_nothing(void) { return receive_otherwise(0, RILL_COMM_INT32, 3); }
static int receive_another_type(void) { return receive_otherwise(2, RILL_COMM_FLOAT, 2); }

/* Rank 1 sends to rank 2, or receives from it, and the others call a collective operation; there is no deadline. */
static int kinds_differ(bool sends) {
  enum { COUNT = 1 << 18 }; /* more than MPI sends before it knows of a receive */
  static int32_t cells[COUNT];
  const rill_comm comm = join(0);
  if (rank != 1) (void)!rill_comm_all_reduce(comm, stream, cells, cells, 1, RILL_COMM_INT32, RILL_COMM_SUM);
  else if (sends) CHECK(rill_comm_send(comm, stream, cells, COUNT, RILL_COMM_INT32, 2));
  else CHECK(rill_comm_receive(comm, stream, cells, COUNT, RILL_COMM_INT32, 2));
  say_end(comm);
  CHECK(rill_comm_release(comm));
  const rill_comm next = join(0);
  say("next", sum_of(next, 1) == ranks ? "right" : "wrong");
  CHECK(rill_comm_release(next));
  return 0;
}
static int send_for_all_reduce(void) { return kinds_differ(true); }
static int receive_for_all_reduce(void) { return kinds_differ(false); }

/* Rank 0 sends no elements, and rank 1 receives some; there is no deadline. */
static int empty_message(void) {
  static int32_t cells[4];
  const rill_comm comm = join(0);
  if (rank == 0) CHECK(rill_comm_send(comm, stream, NULL, 0, RILL_COMM_INT32, 1));
  if (rank == 1) CHECK(rill_comm_receive(comm, stream, cells, 4, RILL_COMM_INT32, 0));
  say_end(comm);
  return 0;
}

/* Rank 1 reduces fewer elements than the others, or as many as given.  Nothing is written, and the process goes on. */
static int reduce_otherwise(size_t count) {
  enum { COUNT = 1 << 18 };
  static int32_t cells[2 * COUNT];
  const rill_comm comm = join(0);
  for (size_t i = 0; i < 2 * COUNT; i++) cells[i] = 7;
  CHECK(rill_comm_all_reduce(comm, stream, cells, cells, rank == 1 ? count : COUNT, RILL_COMM_INT32, RILL_COMM_SUM));
  say_end(comm);
  for (size_t i = 0; i < 2 * COUNT; i++) {
    if (cells[i] != 7) say("written", "something");
  }
  CHECK(rill_comm_release(comm));
  const uint32_t pattern = 3;
  CHECK(rill_fill_async(stream, cells, &pattern, sizeof pattern, COUNT));
  CHECK(rill_stream_synchronize(stream));
  const rill_comm next = join(0);
  say("goes on", cells[COUNT - 1] == 3 && sum_of(next, 2) == 2 * (int64_t)ranks ? "yes" : "no");
  CHECK(rill_comm_release(next));
  return 0;
}
static int reduce_less(void) { return reduce_otherwise(1 << 17); }
static int reduce_more(void) { return reduce_otherwise(1 << 19); }
static int reduce_nothing(void) { return reduce_otherwise(0); }

static int die(void) {
  const rill_comm comm = join(0);
  if (rank == 1) _exit(7);
  CHECK(rill_comm_barrier(comm, stream));
  CHECK(rill_stream_synchronize(stream));
  say("barrier", "passed");
  return 0;
}

static int abort_it(void) {
  const rill_comm comm = join(0);
  if (rank != 1) {
    CHECK(rill_comm_barrier(comm, stream));
    CHECK(rill_comm_abort(comm));
    say_end(comm);
  }
  meet();
  return 0;
}

/* ---- no worker waits ---- */

static int threads_of_process(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  int threads = -1;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Threads: %d", &threads) == 1) break;
  }
  if (file != NULL) (void)fclose(file);
  return threads;
}

static void count(void *user, rill_status stream_status) {
  (void)stream_status;
  (void)sem_post(user);
}

/* Receives that wait on 400 streams, and other streams that go on with no thread more. */
static int wait_on_many_streams(void) {
  enum { WAITING = 400, OTHERS = 200 };
  static rill_stream waiting[WAITING];
  static int32_t cells[WAITING];
  const rill_comm comm = join(TIMEOUT_NS);
  sem_t done;
  (void)sem_init(&done, 0, 0);
  (void)sum_of(comm, 1);
  const int before = threads_of_process();
  for (int32_t i = 0; i < WAITING; i++) {
    CHECK(rill_stream_create(cpu, NULL, &waiting[i]));
    if (rank % 2 == 0) CHECK(rill_comm_receive(comm, waiting[i], &cells[i], 1, RILL_COMM_INT32, rank + 1));
  }
  for (int i = 0; i < OTHERS; i++) CHECK(rill_stream_host_call(stream, count, &done));
  for (int i = 0; i < OTHERS; i++) (void)sem_wait(&done);
  const int during = threads_of_process();
  say("threads", during - before <= WAITING / 10 ? "few" : "many");
  meet();
  for (int32_t i = 0; i < WAITING; i++) {
    cells[i] = rank % 2 == 1 ? i : cells[i];
    if (rank % 2 == 1) CHECK(rill_comm_send(comm, waiting[i], &cells[i], 1, RILL_COMM_INT32, rank - 1));
  }
  bool right = true;
  for (int32_t i = 0; i < WAITING; i++) {
    CHECK(rill_stream_synchronize(waiting[i]));
    right &= cells[i] == i;
  }
  say("received", right ? "right" : "wrong");
  return 0;
}

/* Many communicators, one after the other and several at a time, more than MPICH has room for. */
static int many_communicators(void) {
  enum { ROUNDS = 2500, KEPT = 8 };
  rill_comm kept[KEPT] = { RILL_NULL_COMM };
  bool right = true;
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(rill_comm_release(kept[i % KEPT]));
    kept[i % KEPT] = join(0);
    if (i % 100 == 0) right &= sum_of(kept[i % KEPT], 1) == ranks;
  }
  for (int i = 0; i < KEPT; i++) {
    right &= sum_of(kept[i], i) == (int64_t)ranks * i;
    CHECK(rill_comm_release(kept[i]));
  }
  say("many", right ? "right" : "wrong");
  return 0;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(void);
  } cases[] = {
    { "own_communicator", own_communicator },
    { "too_few_threads", too_few_threads },
    { "other_ids", other_ids },
    { "stall", stall },
    { "injected", injected },
    { "injected_count", injected_count },
    { "fail_before", fail_before },
    { "receive_less", receive_less },
    { "receive_more", receive_more },
    { "receive_another_type", receive_another_type },
    { "receive_of_nothing", receive_of_nothing },
    { "reduce_less", reduce_less },
    { "reduce_more", reduce_more },
    { "reduce_nothing", reduce_nothing },
    { "send_for_all_reduce", send_for_all_reduce },
    { "receive_for_all_reduce", receive_for_all_reduce },
    { "empty_message", empty_message },
    { "die", die },
    { "abort", abort_it },
    { "wait_on_many_streams", wait_on_many_streams },
    { "many_communicators", many_communicators },
  };
  CHECK(rill_device_open("cpu", &cpu));
  CHECK(rill_stream_create(cpu, NULL, &stream));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) return cases[i].run();
  }
  return 4;
}
