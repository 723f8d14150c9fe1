/* Random programs of operations, fills and copies, over several streams and two communicators, against a model.
 *
 * All ranks make the same program from the same seed; what differs is their data, and when they come to what.  Each
 * one knows from the model what all ranks' buffers hold. */
#include "ranks.h"

#include <stdio.h>

enum { BUFFERS = 6, WORDS = 48, STREAMS = 3, OPS = 150, COMMS = 2 };

struct program {
  struct rank *r;
  uint64_t random;
  rill_comm comms[COMMS];
  rill_stream streams[STREAMS];
  uint64_t *memory[BUFFERS]; /* the device's */
  uint32_t used_on[BUFFERS]; /* stream of the last use */
  uint64_t model[MAX_RANKS][BUFFERS][WORDS];
  uint64_t *host;
  rill_event held; /* a stream waits for it, and nobody has recorded it; or null */
};

static uint64_t draw(struct program *p, uint64_t below) {
  p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (p->random >> 33) % below;
}

/* Makes the buffer ready for a use on a stream. */
static rill_status take(struct program *p, uint32_t stream, uint32_t buffer) {
  const uint32_t before = p->used_on[buffer];
  p->used_on[buffer] = stream;
  return before == stream ? RILL_OK : rill_stream_wait_stream(p->streams[stream], p->streams[before]);
}

/* ---- operations, each with what it does to the model ---- */

static uint64_t combine(uint64_t a, uint64_t b, uint32_t op) {
  switch (op) {
    case RILL_COMM_SUM: return a + b;
    case RILL_COMM_PRODUCT: return a * b;
    case RILL_COMM_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
  }
}

static uint64_t reduce(const struct program *p, uint32_t buffer, size_t index, uint32_t op) {
  uint64_t result = p->model[0][buffer][index];
  for (uint32_t i = 1; i < p->r->ranks; i++) result = combine(result, p->model[i][buffer][index], op);
  return result;
}

struct step {
  rill_comm comm;
  rill_stream stream;
  uint32_t src, dst, op, root;
  size_t count;
};

static const char *all_reduce(struct program *p, const struct step *s) {
  COMM(rill_comm_all_reduce(s->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, RILL_COMM_UINT64,
                            s->op));
  uint64_t result[WORDS];
  for (size_t i = 0; i < s->count; i++) result[i] = reduce(p, s->src, i, s->op);
  for (uint32_t k = 0; k < p->r->ranks; k++) memcpy(p->model[k][s->dst], result, s->count * 8);
  return NULL;
}

static const char *reduce_to_root(struct program *p, const struct step *s) {
  COMM(rill_comm_reduce(s->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, RILL_COMM_UINT64, s->op,
                        s->root));
  uint64_t result[WORDS];
  for (size_t i = 0; i < s->count; i++) result[i] = reduce(p, s->src, i, s->op);
  memcpy(p->model[s->root][s->dst], result, s->count * 8);
  return NULL;
}

static const char *broadcast(struct program *p, const struct step *s) {
  COMM(rill_comm_broadcast(s->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, RILL_COMM_UINT64,
                           s->root));
  for (uint32_t k = 0; k < p->r->ranks; k++) memmove(p->model[k][s->dst], p->model[s->root][s->src], s->count * 8);
  return NULL;
}

static const char *all_gather(struct program *p, const struct step *s) {
  const size_t n = s->count / p->r->ranks;
  const bool in_place = s->src == s->dst;
  uint64_t *src = p->memory[s->src] + (in_place ? n * p->r->rank : 0);
  COMM(rill_comm_all_gather(s->comm, s->stream, p->memory[s->dst], src, n, RILL_COMM_UINT64));
  uint64_t result[WORDS];
  for (uint32_t k = 0; k < p->r->ranks; k++) {
    memcpy(result + n * k, p->model[k][s->src] + (in_place ? n * k : 0), n * 8);
  }
  for (uint32_t k = 0; k < p->r->ranks; k++) memcpy(p->model[k][s->dst], result, n * p->r->ranks * 8);
  return NULL;
}

static const char *reduce_scatter(struct program *p, const struct step *s) {
  const size_t n = s->count / p->r->ranks;
  const bool in_place = s->src == s->dst;
  uint64_t *dst = p->memory[s->dst] + (in_place ? n * p->r->rank : 0);
  COMM(rill_comm_reduce_scatter(s->comm, s->stream, dst, p->memory[s->src], n, RILL_COMM_UINT64, s->op));
  uint64_t result[WORDS];
  for (size_t i = 0; i < n * p->r->ranks; i++) result[i] = reduce(p, s->src, i, s->op);
  for (uint32_t k = 0; k < p->r->ranks; k++) {
    memcpy(p->model[k][s->dst] + (in_place ? n * k : 0), result + n * k, n * 8);
  }
  return NULL;
}

static const char *all_to_all(struct program *p, const struct step *s) {
  const size_t n = s->count / p->r->ranks;
  if (s->src == s->dst) return NULL;
  COMM(rill_comm_all_to_all(s->comm, s->stream, p->memory[s->dst], p->memory[s->src], n, RILL_COMM_UINT64));
  for (uint32_t to = 0; to < p->r->ranks; to++) {
    for (uint32_t from = 0; from < p->r->ranks; from++) {
      memcpy(p->model[to][s->dst] + n * from, p->model[from][s->src] + n * to, n * 8);
    }
  }
  return NULL;
}

static const char *shift(struct program *p, const struct step *s) {
  const uint32_t n = p->r->ranks, by = 1 + s->root % n;
  if (s->src == s->dst) return NULL;
  COMM(rill_comm_group_begin());
  COMM(rill_comm_send(s->comm, s->stream, p->memory[s->src], s->count, RILL_COMM_UINT64, (p->r->rank + by) % n));
  COMM(rill_comm_receive(s->comm, s->stream, p->memory[s->dst], s->count, RILL_COMM_UINT64,
                         (p->r->rank + n - by % n) % n));
  COMM(rill_comm_group_end());
  for (uint32_t to = 0; to < n; to++)
    memcpy(p->model[to][s->dst], p->model[(to + n - by % n) % n][s->src], s->count * 8);
  return NULL;
}

/* How many elements `from` has for `to`: as many as leave room for all. */
static size_t count_for(const struct program *p, const struct step *s, uint32_t from, uint32_t to) {
  return (from * 5 + to * 3 + s->root) % (s->count / p->r->ranks + 1);
}

static const char *all_to_all_v(struct program *p, const struct step *s) {
  const uint32_t ranks = p->r->ranks;
  size_t in[MAX_RANKS] = { 0 }, out[MAX_RANKS] = { 0 };
  if (s->src == s->dst) return NULL;
  for (uint32_t i = 0; i < ranks; i++) {
    in[i] = count_for(p, s, i, p->r->rank);
    out[i] = count_for(p, s, p->r->rank, i);
  }
  COMM(rill_comm_all_to_all_v(s->comm, s->stream, p->memory[s->dst], in, NULL, p->memory[s->src], out, NULL,
                              RILL_COMM_UINT64));
  for (uint32_t to = 0; to < ranks; to++) {
    size_t at = 0;
    for (uint32_t from = 0; from < ranks; from++) {
      size_t begins = 0;
      for (uint32_t i = 0; i < to; i++) begins += count_for(p, s, from, i);
      const size_t n = count_for(p, s, from, to);
      memcpy(p->model[to][s->dst] + at, p->model[from][s->src] + begins, n * 8);
      at += n;
    }
  }
  return NULL;
}

static const char *gather_v(struct program *p, const struct step *s) {
  const uint32_t ranks = p->r->ranks;
  size_t counts[MAX_RANKS] = { 0 }, at = 0;
  if (s->src == s->dst) return NULL;
  for (uint32_t i = 0; i < ranks; i++) counts[i] = count_for(p, s, i, s->root);
  COMM(rill_comm_gather_v(s->comm, s->stream, p->memory[s->dst], counts, NULL, p->memory[s->src], counts[p->r->rank],
                          RILL_COMM_UINT64, s->root));
  for (uint32_t i = 0; i < ranks; i++) {
    memcpy(p->model[s->root][s->dst] + at, p->model[i][s->src], counts[i] * 8);
    at += counts[i];
  }
  return NULL;
}

static const char *scatter_v(struct program *p, const struct step *s) {
  const uint32_t ranks = p->r->ranks;
  size_t counts[MAX_RANKS] = { 0 }, at = 0;
  if (s->src == s->dst) return NULL;
  for (uint32_t i = 0; i < ranks; i++) counts[i] = count_for(p, s, s->root, i);
  COMM(rill_comm_scatter_v(s->comm, s->stream, p->memory[s->dst], counts[p->r->rank], p->memory[s->src], counts, NULL,
                           RILL_COMM_UINT64, s->root));
  for (uint32_t i = 0; i < ranks; i++) {
    memcpy(p->model[i][s->dst], p->model[s->root][s->src] + at, counts[i] * 8);
    at += counts[i];
  }
  return NULL;
}

static const char *barrier(struct program *p, const struct step *s) {
  (void)p;
  COMM(rill_comm_barrier(s->comm, s->stream));
  return NULL;
}

static const char *fill(struct program *p, const struct step *s) {
  for (uint32_t k = 0; k < p->r->ranks; k++) {
    for (size_t i = 0; i < s->count; i++) p->model[k][s->dst][i] = s->op * 1000 + k;
  }
  const uint64_t own = s->op * 1000 + p->r->rank;
  RUN(rill_fill_async(s->stream, p->memory[s->dst], &own, sizeof own, s->count));
  return NULL;
}

static const char *copy(struct program *p, const struct step *s) {
  if (s->src == s->dst) return NULL;
  RUN(rill_copy_async(s->stream, p->memory[s->dst], p->memory[s->src], s->count * 8));
  for (uint32_t k = 0; k < p->r->ranks; k++) memcpy(p->model[k][s->dst], p->model[k][s->src], s->count * 8);
  return NULL;
}

/* On the CPU a stream may be held when operations are submitted to it. */
static const char *hold(struct program *p, uint32_t stream) {
  if (!rill_event_equal(p->held, RILL_NULL_EVENT) || !on_cpu()) return NULL;
  RUN(rill_event_create(p->r->device, NULL, &p->held));
  RUN(rill_stream_wait_event(p->streams[stream], p->held, 0));
  return NULL;
}

static const char *let_go(struct program *p) {
  if (rill_event_equal(p->held, RILL_NULL_EVENT)) return NULL;
  RUN(rill_stream_record_event(p->r->stream, p->held, 0));
  RUN(rill_event_release(p->held));
  p->held = RILL_NULL_EVENT;
  return NULL;
}

static const char *run_step(struct program *p) {
  static const char *(*const steps[])(struct program *, const struct step *) = {
    all_reduce, reduce_to_root, broadcast, all_gather, reduce_scatter, all_to_all, all_to_all_v,
    gather_v,   scatter_v,      shift,     barrier,    fill,           copy,       fill
  };
  const uint32_t stream = (uint32_t)draw(p, STREAMS), which = (uint32_t)draw(p, sizeof steps / sizeof *steps);
  const struct step s = { .comm = p->comms[draw(p, COMMS)],
                          .stream = p->streams[stream],
                          .src = (uint32_t)draw(p, BUFFERS),
                          .dst = (uint32_t)draw(p, BUFFERS),
                          .op = 1 + (uint32_t)draw(p, 4),
                          .root = (uint32_t)draw(p, p->r->ranks),
                          .count = draw(p, WORDS + 1) };
  const uint64_t extra = draw(p, 12), when = draw(p, p->r->ranks);
  RUN(take(p, stream, s.src));
  RUN(take(p, stream, s.dst));
  const char *failure = steps[which](p, &s);
  if (failure == NULL && extra == 0) failure = hold(p, stream);
  if (failure == NULL && extra <= 2) failure = let_go(p);
  /* Only one of the ranks waits. */
  if (failure == NULL && extra == 3 && when == p->r->rank && rill_event_equal(p->held, RILL_NULL_EVENT)) {
    RUN(rill_stream_synchronize(p->streams[stream]));
  }
  return failure;
}

static const char *compare(struct program *p) {
  for (uint32_t i = 0; i < STREAMS; i++) RUN(rill_stream_synchronize(p->streams[i]));
  for (uint32_t b = 0; b < BUFFERS; b++) {
    RUN(rill_copy_async(p->r->stream, p->host, p->memory[b], WORDS * 8));
    RUN(rill_stream_synchronize(p->r->stream));
    REQUIRE(memcmp(p->host, p->model[p->r->rank][b], WORDS * 8) == 0);
  }
  return NULL;
}

static const char *run_program(struct program *p, uint64_t seed) {
  const uint64_t zero = 0;
  p->random = seed;
  memset(p->model, 0, sizeof p->model);
  for (uint32_t b = 0; b < BUFFERS; b++) {
    p->used_on[b] = 0;
    RUN(rill_fill_async(p->streams[0], p->memory[b], &zero, sizeof zero, WORDS));
  }
  for (int i = 0; i < OPS; i++) {
    const char *failure = run_step(p);
    if (failure != NULL) return failure;
  }
  const char *failure = let_go(p);
  return failure != NULL ? failure : compare(p);
}

static uint64_t first_seed, programs;
static _Thread_local char where[2200];

static const char *run_programs(struct rank *r) {
  struct program *p = calloc(1, sizeof *p);
  REQUIRE(p != NULL);
  p->r = r;
  p->comms[0] = r->comm;
  COMM(rill_comm_split(r->comm, 0, r->rank, NULL, &p->comms[1])); /* the same ranks in the same order */
  for (int i = 0; i < STREAMS; i++) RUN(rill_stream_create(r->device, NULL, &p->streams[i]));
  for (int i = 0; i < BUFFERS; i++) RUN(rill_alloc(r->device, WORDS * 8, RILL_MEMORY_DEVICE, (void **)&p->memory[i]));
  RUN(rill_alloc(r->device, WORDS * 8, RILL_MEMORY_PINNED, (void **)&p->host));
  const char *failure = NULL;
  for (uint64_t seed = first_seed; seed < first_seed + programs && failure == NULL; seed++) {
    failure = run_program(p, seed);
    if (failure != NULL) (void)snprintf(where, sizeof where, "RILL_SEED=%llu: %s", (unsigned long long)seed, failure);
  }
  for (int i = 0; i < STREAMS; i++) (void)rill_stream_release(p->streams[i]);
  for (int i = 0; i < BUFFERS; i++) (void)rill_free(p->memory[i]);
  (void)rill_free(p->host);
  COMM(rill_comm_release(p->comms[1]));
  free(p);
  return failure != NULL ? where : NULL;
}

static void random_programs(void) { run_ranks(run_programs, TIMEOUT_NS); }

int main(void) {
  const char *seed = getenv("RILL_SEED");
  first_seed = seed != NULL ? strtoull(seed, NULL, 10) : 1;
  programs = seed != NULL ? 1 : scaled(40);
  static const struct test tests[] = { TEST(random_programs) };
  return RUN_ONCE("random programs of rill_comm", tests);
}
