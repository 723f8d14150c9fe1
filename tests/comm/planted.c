/* Random sequences of operations in which one rank does one thing otherwise: it passes another count, type, operator or
 * root, calls another operation, or calls nothing more.  All ranks make the same sequence from the seed, and know which
 * rank, operation and number the reports have to name. */
#include "ranks.h"

#include <stdio.h>

enum { STEPS = 24, STREAMS = 2, MOST = 16 };
enum { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SHIFT, BARRIER, KINDS };
enum { COUNT, TYPE, OPERATOR, ROOT, KIND, NOTHING_MORE, CHANGES };

static uint64_t seed;

struct step {
  uint32_t kind, stream, type, op, root;
  size_t count;
};

struct sequence {
  uint64_t random;
  struct rank *r;
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

/* The change that is planted, or one that such an operation can have. */
static void change(struct step *step, uint32_t what, uint32_t ranks) {
  const bool reduces = step->kind == ALL_REDUCE || step->kind == REDUCE || step->kind == REDUCE_SCATTER;
  const bool rooted = step->kind == REDUCE || step->kind == BROADCAST;
  const bool other = what == KIND && step->kind != SHIFT; /* in place of messages: only a deadline notices that */
  if (other || step->kind == BARRIER) step->kind = step->kind == ALL_GATHER ? ALL_TO_ALL : ALL_GATHER;
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

/* The last notification of this rank: by a call, or by its streams and then by a call. */
static const char *has_ended(struct sequence *s, rill_status status, rill_status expected, const char *says) {
  if (status == RILL_OK) {
    for (int i = 0; i < STREAMS; i++) (void)!rill_stream_synchronize(s->streams[i]);
    while ((status = rill_comm_validate(s->r->comm)) == RILL_OK)
      let_pass_ns(MILLISECOND); /* the test has a time limit */
  }
  return check_comm_failure(status, expected, says, "the planted operation");
}

/* On the CPU all ranks are notified of the one that differs; on GPUs a deadline passes on each. */
static const char *expect(struct sequence *s, rill_status status, uint32_t victim, bool stops, bool pair) {
  static _Thread_local char says[160];
  const uint32_t ranks = s->r->ranks;
  const unsigned number = s->numbers + 1;
  if (stops && on_cpu()) {
    (void)snprintf(says, sizeof says, "; rank %u has not called ", victim);
  } else if (stops) {
    (void)snprintf(says, sizeof says, "; rank %u has called %u operations", victim, s->numbers);
  } else if (on_cpu() && pair) {
    (void)snprintf(says, sizeof says, "of rank %u of %u ", victim, ranks); /* its send, or its receive */
  } else if (on_cpu()) {
    (void)snprintf(says, sizeof says, "of rank %u of %u (operation %u)", victim, ranks, number);
  } else {
    (void)snprintf(says, sizeof says, " of rank %u of %u", s->r->rank, ranks);
  }
  const bool neighbour =
      s->r->rank == victim || (s->r->rank + 1) % ranks == victim || (victim + 1) % ranks == s->r->rank;
  if (pair && !on_cpu() && !neighbour) return NULL; /* its messages pass */
  const bool reported = on_cpu() && !stops;
  return has_ended(s, status, reported ? RILL_ERROR_INVALID_ARGUMENT : RILL_ERROR_TIMEOUT, says);
}

static const char *run_sequence(struct sequence *s) {
  const uint32_t ranks = s->r->ranks, rank = s->r->rank;
  const uint32_t what = draw(s, CHANGES), at = draw(s, STEPS), victim = draw(s, ranks); /* `what` first: deadline_for */
  for (uint32_t i = 0; i < at; i++) {
    const struct step step = draw_step(s);
    COMM(call(s, &step));
    s->numbers += step.kind == SHIFT ? 2 : 1;
  }
  /* What came before passes: then only the planted operation can fail. */
  for (int i = 0; i < STREAMS; i++) RUN(rill_stream_synchronize(s->streams[i]));
  COMM(rill_comm_barrier(s->r->comm, s->streams[0])); /* on all ranks */
  RUN(rill_stream_synchronize(s->streams[0]));
  s->numbers++;
  struct step step = draw_step(s);
  const bool stops = what == NOTHING_MORE, pair = step.kind == SHIFT;
  if (rank == victim && !stops) change(&step, what, ranks);
  if (rank == victim && stops && !on_cpu()) return NULL;
  const rill_status status = rank == victim && stops ? RILL_OK : call(s, &step);
  return expect(s, status, victim, stops, pair);
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
  const char *failure = run_sequence(&s);
  if (failure != NULL) (void)snprintf(where, sizeof where, "RILL_SEED=%llu: %s", (unsigned long long)seed, failure);
  for (int i = 0; i < STREAMS; i++) {
    (void)rill_stream_release(s.streams[i]);
    buffer_free(&s.src[i]);
    buffer_free(&s.dst[i]);
  }
  return failure != NULL ? where : NULL;
}

/* If a deadline ends the communicator, it passes once in each sequence; otherwise it never passes. */
static uint64_t deadline_for(uint64_t of_seed) {
  struct sequence s = { .random = of_seed };
  return draw(&s, CHANGES) == NOTHING_MORE || !on_cpu() ? 1000 * MILLISECOND : TIMEOUT_NS;
}

static void planted_mistakes(void) {
  const char *chosen = getenv("RILL_SEED");
  const uint64_t first = chosen != NULL ? strtoull(chosen, NULL, 10) : 1;
  const uint64_t last = chosen != NULL ? first : first + scaled(on_cpu() ? 60 : 12);
  for (seed = first; seed <= last; seed++) run_ranks(run_planted, deadline_for(seed));
}

TESTS_ONCE("planted mistakes of rill_comm", TEST(planted_mistakes))
