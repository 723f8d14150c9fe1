/* Random sequences of operations in which one rank deviates once: it passes another count, type, operator or root,
 * calls another operation, calls nothing more, releases its communicator, or aborts it.  All ranks draw the same
 * sequence from the seed, and know which rank, operation and number the reports have to name.  With MPI each rank is a
 * process, and RILL_CHECK=comm is on unless RILL_TEST_UNCHECKED is set.  Afterwards each rank releases the
 * communicator, and the same processes run the next sequence. */
#include "ranks.h"

#include <stdio.h>

enum { STEPS = 24, STREAMS = 2, MOST = 16 };
enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SHIFT, BARRIER, KINDS };
enum { COUNT, TYPE, OPERATOR, ROOT, KIND, NOTHING_MORE, LEAVES, ABORTS, CHANGES };

static uint64_t seed;

struct step {
  uint32_t kind, stream, type, op, root;
  size_t count;
};

struct sequence {
  uint64_t random;
  struct rank *r;
  rill_comm meeting; /* of the same ranks, and not affected by what is planted */
  rill_stream streams[STREAMS];
  struct buffer src[STREAMS], dst[STREAMS];
  uint32_t numbers; /* operations that every rank has called */
};

static uint32_t draw(struct sequence *s, uint32_t below) {
  s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((s->random >> 33) % below);
}

static struct step draw_step(struct sequence *s) {
  struct step step = { .kind = draw(s, KINDS), .stream = draw(s, STREAMS), .type = types[draw(s, TYPE_COUNT)].type };
  step.op = 1 + draw(s, 4);
  step.root = draw(s, s->r->ranks);
  step.count = 1 + draw(s, MOST - 1);
  return step;
}

/* MPI without RILL_CHECK=comm: only ranks that wait learn of a failure on another rank. */
static bool unchecked;

/* Makes the planted change, or another one if the operation cannot have it. */
static void change(struct step *step, uint32_t what, uint32_t ranks) {
  const bool reduces = step->kind == ALL_REDUCE || step->kind == REDUCE || step->kind == REDUCE_SCATTER;
  const bool rooted = step->kind == REDUCE || step->kind == BROADCAST;
  if (what == KIND && step->kind != SHIFT && step->count % 2 == 0) step->kind = SHIFT;
  else if (what == KIND || step->kind == BARRIER) step->kind = step->kind == ALL_GATHER ? ALL_TO_ALL : ALL_GATHER;
  else if (what == OPERATOR && reduces) step->op = step->op % 4 + 1;
  else if (what == ROOT && rooted) step->root = (step->root + 1) % ranks;
  else if (what == TYPE) step->type = step->type % TYPE_COUNT + 1;
  else step->count++;
}

static rill_status call(struct sequence *s, const struct step *step) {
  const rill_comm comm = s->r->comm;
  const rill_stream stream = s->streams[step->stream];
  const uint32_t type = step->type, ranks = s->r->ranks, rank = s->r->rank;
  void *dst = s->dst[step->stream].device, *src = s->src[step->stream].device;
  switch (step->kind) {
    case ALL_REDUCE: return rill_comm_all_reduce(comm, stream, dst, src, step->count, type, step->op);
    case REDUCE: return rill_comm_reduce(comm, stream, dst, src, step->count, type, step->op, step->root);
    case BROADCAST: return rill_comm_broadcast(comm, stream, dst, src, step->count, type, step->root);
    case ALL_GATHER: return rill_comm_all_gather(comm, stream, dst, src, step->count, type);
    case REDUCE_SCATTER: return rill_comm_reduce_scatter(comm, stream, dst, src, step->count, type, step->op);
    case ALL_TO_ALL: return rill_comm_all_to_all(comm, stream, dst, src, step->count, type);
    case BARRIER: return rill_comm_barrier(comm, stream);
    default: break;
  }
  if (rill_comm_group_begin() != RILL_OK) return RILL_ERROR_BACKEND;
  (void)!rill_comm_send(comm, stream, src, step->count, type, (rank + 1) % ranks);
  (void)!rill_comm_receive(comm, stream, dst, step->count, type, (rank + ranks - 1) % ranks);
  return rill_comm_group_end();
}

/* The deviation, and the text that the report has to contain. */
struct planted {
  uint32_t victim, what;
  bool messages, victim_messages; /* the others call a shift; the victim calls one */
  char says[160], or_says[160];
};

static bool stops(const struct planted *p) { return p->what == NOTHING_MORE || p->what == LEAVES; }
static bool aborts(const struct planted *p) { return p->what == ABORTS; }

/* What NCCL does with mismatched arguments is undefined, and it need not notice. */
static uint32_t draw_change(struct sequence *s) {
  return on_real_gpus() ? NOTHING_MORE + draw(s, CHANGES - NOTHING_MORE) : draw(s, CHANGES);
}

/* On GPUs a deadline passes on each rank that waits. */
static void expect_on_gpus(struct planted *p, const struct sequence *s) {
  if (p->what == NOTHING_MORE) {
    (void)snprintf(p->says, sizeof p->says, "; rank %u has called %u operations", p->victim, s->numbers);
  } else {
    (void)snprintf(p->says, sizeof p->says, " of rank %u of %u", s->r->rank, s->r->ranks);
  }
}

/* Local ranks are all notified of the rank that deviates. */
static void expect_of_local(struct planted *p, const struct sequence *s) {
  if (stops(p)) {
    (void)snprintf(p->says, sizeof p->says, "; rank %u has not called ", p->victim);
  } else if (p->messages || p->victim_messages) {
    (void)snprintf(p->says, sizeof p->says, "of rank %u of %u ", p->victim, s->r->ranks); /* its send, or its receive */
  } else {
    (void)snprintf(p->says, sizeof p->says, "of rank %u of %u (operation %u)", p->victim, s->r->ranks, s->numbers + 1);
  }
}

/* So are the processes of MPI.  Of a message only the receiver can report anything: the victim, or the rank to which it
 * sends.  The receive is the second operation of a shift. */
static void expect_with_mpi(struct planted *p, const struct sequence *s) {
  const uint32_t ranks = s->r->ranks, victim = p->victim;
  if (p->messages && (stops(p) || p->victim_messages)) {
    static const char format[] = "receive of rank %u of %u from rank %u (operation %u)";
    (void)snprintf(p->says, sizeof p->says, format, (victim + 1) % ranks, ranks, victim, s->numbers + 2);
    if (stops(p)) return;
    (void)snprintf(p->or_says, sizeof p->or_says, format, victim, ranks, (victim + ranks - 1) % ranks, s->numbers + 2);
  } else if (stops(p) && unchecked) {
    (void)snprintf(p->says, sizeof p->says, "; rank %u is not known to have reached it", victim);
  } else {
    expect_of_local(p, s);
  }
}

/* Returns whether the planted deviation ends the communicator on a rank.  Of a shift, the ranks that receive from the
 * victim, or as it: NCCL completes a send of few bytes without its receiver, so it need not notice anything. */
static bool is_affected(const struct planted *p, uint32_t rank, uint32_t ranks) {
  if (!p->messages || (on_cpu() && !unchecked)) return true;
  return rank == (p->victim + 1) % ranks || (rank == p->victim && !stops(p));
}

static rill_status expected_status(const struct planted *p, const struct sequence *s) {
  if (aborts(p) && (on_cpu() || s->r->rank == p->victim)) return RILL_ERROR_BACKEND;
  return on_cpu() && !stops(p) ? RILL_ERROR_INVALID_ARGUMENT : RILL_ERROR_TIMEOUT;
}

/* What this rank was notified of: by the call, or by a later one.  A communicator that nothing ends fails the test. */
static const char *has_ended(struct sequence *s, rill_status status, struct planted *p) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while (status == RILL_OK && (status = rill_comm_validate(s->r->comm)) == RILL_OK && now_ns() < until)
    let_pass_ns(MILLISECOND);
  for (int i = 0; i < STREAMS; i++) (void)!rill_stream_synchronize_for(s->streams[i], TIMEOUT_NS);
  const bool other = p->or_says[0] != '\0' && strstr(rill_comm_last_error_text(), p->or_says) != NULL;
  const char *says = other ? p->or_says : p->says;
  const rill_status expected = expected_status(p, s);
  const char *failure = check_comm_failure(status, expected, says, "the planted operation");
  if (failure != NULL || expected == RILL_ERROR_BACKEND) return failure;
  if (strstr(rill_comm_last_error_text(), " (operation ") != NULL) return NULL;
  return check_comm_failure(status, status, " (operation ", "the planted operation");
}

/* A collective operation that RILL_CHECK=comm has refused leaves the communicator intact. */
static const char *goes_on(struct sequence *s) {
  COMM(rill_comm_validate(s->r->comm));
  COMM(rill_comm_barrier(s->r->comm, s->streams[0]));
  RUN(rill_stream_synchronize(s->streams[0]));
  return NULL;
}

/* The victim's deviation other than a call. */
static const char *deviate(struct sequence *s, struct planted *p) {
  if (aborts(p)) {
    COMM(rill_comm_abort(s->r->comm));
    return has_ended(s, RILL_OK, p);
  }
  if (p->what == LEAVES) {
    COMM(rill_comm_release(s->r->comm));
    s->r->comm = RILL_NULL_COMM;
    return NULL;
  }
  return on_cpu() && !unchecked ? has_ended(s, RILL_OK, p) : NULL;
}

/* Waits for all ranks. */
static const char *meet(struct sequence *s) {
  COMM(rill_comm_barrier(s->meeting, s->r->stream));
  RUN(rill_stream_synchronize(s->r->stream));
  return NULL;
}

static const char *run_sequence(struct sequence *s) {
  const uint32_t ranks = s->r->ranks, rank = s->r->rank;
  struct planted p = { .what = draw_change(s) }; /* first: deadline_for */
  const uint32_t at = draw(s, STEPS);
  p.victim = draw(s, ranks);
  for (uint32_t i = 0; i < at; i++) {
    const struct step step = draw_step(s);
    COMM(call(s, &step));
    s->numbers += step.kind == SHIFT ? 2 : 1;
  }
  struct step step = draw_step(s);
  /* NCCL completes an operation of few bytes on a rank that only sends, whatever the others do.  Its first operation of
   * a kind connects the ranks: the call, not the stream, would wait for the victim. */
  if (!on_cpu() && (step.kind == REDUCE || step.kind == BROADCAST)) step.kind = ALL_REDUCE;
  if (!on_cpu()) {
    COMM(call(s, &step));
    s->numbers += step.kind == SHIFT ? 2 : 1;
  }
  /* What came before passes on all ranks: then only the planted operation can fail. */
  for (int i = 0; i < STREAMS; i++) RUN(rill_stream_synchronize(s->streams[i]));
  const char *const late = meet(s);
  if (late != NULL) return late;
  struct step changed = step;
  if (!stops(&p) && !aborts(&p)) change(&changed, p.what, ranks);
  p.messages = step.kind == SHIFT;
  p.victim_messages = changed.kind == SHIFT;
  if (aborts(&p) && expected_status(&p, s) == RILL_ERROR_BACKEND) {
    (void)snprintf(p.says, sizeof p.says, "rill_comm_abort ended the communicator");
  } else if (with_mpi()) expect_with_mpi(&p, s);
  else if (on_cpu()) expect_of_local(&p, s);
  else expect_on_gpus(&p, s);
  if (rank == p.victim && (stops(&p) || aborts(&p))) return deviate(s, &p);
  const rill_status status = call(s, rank == p.victim ? &changed : &step);
  if (!is_affected(&p, rank, ranks)) { /* its messages pass */
    for (int i = 0; i < STREAMS && on_cpu(); i++) RUN(rill_stream_synchronize(s->streams[i]));
    return NULL;
  }
  const bool refused = with_mpi() && !unchecked && p.what < NOTHING_MORE && !p.messages && !p.victim_messages;
  if (refused) REQUIRE(status != RILL_OK);
  const char *failure = has_ended(s, status, &p);
  return failure == NULL && refused ? goes_on(s) : failure;
}

static const char *run_planted(struct rank *r) {
  static _Thread_local char where[2200];
  struct sequence s = { .random = seed, .r = r };
  for (int i = 0; i < STREAMS; i++) {
    RUN(rill_stream_create(r->device, NULL, &s.streams[i]));
    const size_t bytes = (size_t)(MOST + 1) * 8 * r->ranks;
    RUN(buffer_new(r, bytes, &s.src[i]));
    RUN(buffer_new(r, bytes, &s.dst[i]));
    memset(s.src[i].host, 0, bytes);
    RUN(buffer_upload(r, &s.src[i]));
  }
  RUN(rill_stream_synchronize(r->stream));
  COMM(rill_comm_split(r->comm, 0, 0, RILL_COMM_OPTIONS(.timeout_ns = TIMEOUT_NS), &s.meeting));
  const char *failure = run_sequence(&s);
  /* To free memory of a GPU may wait for what runs on it, so no rank still waits then. */
  const char *const late = on_cpu() ? NULL : meet(&s);
  if (failure == NULL) failure = late;
  if (failure != NULL) (void)snprintf(where, sizeof where, "RILL_SEED=%llu: %s", (unsigned long long)seed, failure);
  COMM(rill_comm_release(s.meeting));
  const bool keeps = with_mpi() && rill_comm_validate(r->comm) != RILL_OK; /* MPI may still use the buffers */
  for (int i = 0; i < STREAMS; i++) {
    (void)rill_stream_release(s.streams[i]);
    if (keeps) continue;
    buffer_free(&s.src[i]);
    buffer_free(&s.dst[i]);
  }
  return failure != NULL ? where : NULL;
}

/* Nothing is planted: collective operations, and messages between two ranks each, in one order for all ranks. */
static const char *run_in_order(struct rank *r) {
  struct sequence s = { .random = seed, .r = r };
  struct buffer cell;
  RUN(buffer_new(r, 64, &cell));
  memset(cell.host, 0, cell.bytes);
  RUN(buffer_upload(r, &cell));
  RUN(rill_stream_synchronize(r->stream));
  for (int i = 0; i < STREAMS; i++) RUN(rill_stream_create(r->device, NULL, &s.streams[i]));
  char *const p = cell.device;
  for (int i = 0; i < 4 * STEPS; i++) {
    const uint32_t from = draw(&s, r->ranks), to = (from + 1 + draw(&s, r->ranks - 1)) % r->ranks;
    const uint32_t kind = draw(&s, 4);
    if (kind == 0) COMM(rill_comm_all_reduce(r->comm, s.streams[0], p, p, 1, RILL_COMM_INT64, RILL_COMM_MAX));
    else if (from == r->rank) COMM(rill_comm_send(r->comm, s.streams[kind % 2], p + 16, 1, RILL_COMM_INT64, to));
    else if (to == r->rank) COMM(rill_comm_receive(r->comm, s.streams[0], p + 32, 1, RILL_COMM_INT64, from));
  }
  for (int i = 0; i < STREAMS; i++) RUN(rill_stream_synchronize(s.streams[i]));
  COMM(rill_comm_validate(r->comm));
  for (int i = 0; i < STREAMS; i++) (void)rill_stream_release(s.streams[i]);
  buffer_free(&cell);
  return NULL;
}

static void operations_in_order(void) {
  for (seed = 1; seed <= scaled(on_real_gpus() ? 4 : 20); seed++) run_ranks(run_in_order, TIMEOUT_NS);
}

/* Where a deadline is what ends the communicator, it passes once in each sequence; elsewhere it never does. */
static uint64_t deadline_for(uint64_t of_seed) {
  struct sequence s = { .random = of_seed };
  const uint32_t what = draw_change(&s);
  if (on_real_gpus()) return 10000 * (uint64_t)MILLISECOND; /* the first operation connects the ranks */
  return what == NOTHING_MORE || what == LEAVES || !on_cpu() ? 1000 * MILLISECOND : TIMEOUT_NS;
}

static void planted_mistakes_are_reported(void) {
  const char *chosen = getenv("RILL_SEED");
  const uint64_t first = chosen != NULL ? strtoull(chosen, NULL, 10) : 1;
  const unsigned rounds = with_mpi() ? 24 : on_cpu() ? 60 : on_real_gpus() ? 6 : 12;
  const uint64_t last = chosen != NULL ? first : first + scaled(rounds);
  for (seed = first; seed <= last; seed++) run_ranks(run_planted, deadline_for(seed));
}

int main(void) {
  unchecked = with_mpi() && getenv("RILL_TEST_UNCHECKED") != NULL;
  if (with_mpi() && !unchecked && setenv("RILL_CHECK", "comm", 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = { TEST(planted_mistakes_are_reported), TEST(operations_in_order) };
  return RUN_ONCE("planted mistakes of rill_comm", tests);
}
