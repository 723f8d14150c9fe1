/* Random programs of operations, fills and copies, over several types, streams, groups and communicators, against a
 * model.
 *
 * All ranks make the same program from the same seed; what differs is their data, and when they come to what.  Each
 * one knows from the model what all ranks' buffers hold. */
#include "ranks.h"

#include <stdio.h>

enum { BUFFERS = 6, BYTES = 384, STREAMS = 3, OPS = 150, COMMS = 4 };

/* A communicator of each rank.  If it is a split by color, the colors are parts of all ranks. */
struct view {
  rill_comm comm;
  uint32_t rank, own; /* this rank's number in its part, and the part */
  uint32_t parts;
  struct part {
    uint32_t ranks, world[MAX_RANKS]; /* world: ranks among all, in the order of the part */
  } part[MAX_RANKS];
};

struct program {
  struct rank *r;
  uint64_t random;
  struct view views[COMMS];
  rill_stream streams[STREAMS];
  unsigned char *memory[BUFFERS]; /* the device's */
  uint32_t used_on[BUFFERS];      /* stream of the last use */
  unsigned char model[MAX_RANKS][BUFFERS][BYTES];
  unsigned char *host;
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

struct step {
  const struct view *view;
  rill_stream stream;
  uint32_t src, dst, op, type;
  size_t size;   /* of an element */
  size_t count;  /* elements that fit into a buffer, or fewer */
  uint64_t root; /* modulo the ranks of a part */
};

static uint32_t root_of(const struct step *s, const struct part *part) { return (uint32_t)(s->root % part->ranks); }
static const struct part *own_part(const struct step *s) { return &s->view->part[s->view->own]; }
static unsigned char *src_of(struct program *p, const struct part *part, uint32_t rank, const struct step *s) {
  return p->model[part->world[rank]][s->src];
}
static unsigned char *dst_of(struct program *p, const struct part *part, uint32_t rank, const struct step *s) {
  return p->model[part->world[rank]][s->dst];
}

/* The numbers of integer types, in 64 bits: those of the odd types have a sign. */
static uint64_t load(const unsigned char *from, uint32_t type, size_t size) {
  uint64_t value = 0;
  memcpy(&value, from, size); /* the order of bytes is little-endian */
  const bool negative = type % 2 == 1 && (value >> (8 * size - 1)) != 0;
  return negative && size < 8 ? value | ~UINT64_C(0) << 8 * size : value;
}

static uint64_t combine(uint64_t a, uint64_t b, uint32_t op, uint32_t type) {
  const bool less = type % 2 == 1 ? (int64_t)a < (int64_t)b : a < b;
  switch (op) {
    case RILL_COMM_SUM: return a + b;
    case RILL_COMM_PRODUCT: return a * b;
    case RILL_COMM_MAX: return less ? b : a;
    default: return less ? a : b;
  }
}

/* Combines `n` elements of all ranks of a part, from element `first` on. */
static void reduce(struct program *p, const struct part *part, const struct step *s, size_t first, size_t n,
                   unsigned char *out) {
  for (size_t i = 0; i < n; i++) {
    const size_t at = (first + i) * s->size;
    uint64_t value = load(src_of(p, part, 0, s) + at, s->type, s->size);
    for (uint32_t k = 1; k < part->ranks; k++) {
      value = combine(value, load(src_of(p, part, k, s) + at, s->type, s->size), s->op, s->type);
    }
    memcpy(out + i * s->size, &value, s->size);
  }
}

/* In a function for a step: once for each part of the communicator. */
#define EACH_PART(part, step) \
  for (const struct part *part = (step)->view->part; part < (step)->view->part + (step)->view->parts; part++)

static const char *all_reduce(struct program *p, const struct step *s) {
  COMM(rill_comm_all_reduce(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, s->type, s->op));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    reduce(p, part, s, 0, s->count, result);
    for (uint32_t k = 0; k < part->ranks; k++) memcpy(dst_of(p, part, k, s), result, s->count * s->size);
  }
  return NULL;
}

static const char *reduce_to_root(struct program *p, const struct step *s) {
  COMM(rill_comm_reduce(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, s->type, s->op,
                        root_of(s, own_part(s))));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    reduce(p, part, s, 0, s->count, result);
    memcpy(dst_of(p, part, root_of(s, part), s), result, s->count * s->size);
  }
  return NULL;
}

static const char *broadcast(struct program *p, const struct step *s) {
  COMM(rill_comm_broadcast(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, s->type,
                           root_of(s, own_part(s))));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    memcpy(result, src_of(p, part, root_of(s, part), s), s->count * s->size);
    for (uint32_t k = 0; k < part->ranks; k++) memcpy(dst_of(p, part, k, s), result, s->count * s->size);
  }
  return NULL;
}

static const char *all_gather(struct program *p, const struct step *s) {
  const size_t n = s->count / own_part(s)->ranks;
  const bool in_place = s->src == s->dst;
  unsigned char *src = p->memory[s->src] + (in_place ? n * s->size * s->view->rank : 0);
  COMM(rill_comm_all_gather(s->view->comm, s->stream, p->memory[s->dst], src, n, s->type));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    const size_t bytes = s->count / part->ranks * s->size;
    for (uint32_t k = 0; k < part->ranks; k++) {
      memcpy(result + bytes * k, src_of(p, part, k, s) + (in_place ? bytes * k : 0), bytes);
    }
    for (uint32_t k = 0; k < part->ranks; k++) memcpy(dst_of(p, part, k, s), result, bytes * part->ranks);
  }
  return NULL;
}

static const char *reduce_scatter(struct program *p, const struct step *s) {
  const size_t n = s->count / own_part(s)->ranks;
  const bool in_place = s->src == s->dst;
  unsigned char *dst = p->memory[s->dst] + (in_place ? n * s->size * s->view->rank : 0);
  COMM(rill_comm_reduce_scatter(s->view->comm, s->stream, dst, p->memory[s->src], n, s->type, s->op));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    const size_t own = s->count / part->ranks, bytes = own * s->size;
    reduce(p, part, s, 0, own * part->ranks, result);
    for (uint32_t k = 0; k < part->ranks; k++) {
      memcpy(dst_of(p, part, k, s) + (in_place ? bytes * k : 0), result + bytes * k, bytes);
    }
  }
  return NULL;
}

static const char *all_to_all(struct program *p, const struct step *s) {
  if (s->src == s->dst) return NULL;
  COMM(rill_comm_all_to_all(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src],
                            s->count / own_part(s)->ranks, s->type));
  EACH_PART(part, s) {
    const size_t bytes = s->count / part->ranks * s->size;
    for (uint32_t to = 0; to < part->ranks; to++) {
      for (uint32_t from = 0; from < part->ranks; from++) {
        memcpy(dst_of(p, part, to, s) + bytes * from, src_of(p, part, from, s) + bytes * to, bytes);
      }
    }
  }
  return NULL;
}

static const char *shift(struct program *p, const struct step *s) {
  const uint32_t n = own_part(s)->ranks, by = root_of(s, own_part(s));
  if (s->src == s->dst) return NULL;
  COMM(rill_comm_group_begin());
  COMM(rill_comm_send(s->view->comm, s->stream, p->memory[s->src], s->count, s->type, (s->view->rank + by) % n));
  COMM(rill_comm_receive(s->view->comm, s->stream, p->memory[s->dst], s->count, s->type, (s->view->rank + n - by) % n));
  COMM(rill_comm_group_end());
  EACH_PART(part, s) {
    for (uint32_t from = 0; from < part->ranks; from++) {
      const uint32_t to = (from + root_of(s, part)) % part->ranks;
      memcpy(dst_of(p, part, to, s), src_of(p, part, from, s), s->count * s->size);
    }
  }
  return NULL;
}

/* How many elements `from` has for `to`: as many as leave room for all. */
static size_t count_for(const struct step *s, const struct part *part, uint32_t from, uint32_t to) {
  return (from * 5 + to * 3 + s->root) % (s->count / part->ranks + 1);
}

static const char *all_to_all_v(struct program *p, const struct step *s) {
  size_t in[MAX_RANKS] = { 0 }, out[MAX_RANKS] = { 0 };
  if (s->src == s->dst) return NULL;
  for (uint32_t i = 0; i < own_part(s)->ranks; i++) {
    in[i] = count_for(s, own_part(s), i, s->view->rank);
    out[i] = count_for(s, own_part(s), s->view->rank, i);
  }
  COMM(rill_comm_all_to_all_v(s->view->comm, s->stream, p->memory[s->dst], in, NULL, p->memory[s->src], out, NULL,
                              s->type));
  EACH_PART(part, s) {
    for (uint32_t to = 0; to < part->ranks; to++) {
      size_t at = 0;
      for (uint32_t from = 0; from < part->ranks; from++) {
        size_t begins = 0;
        for (uint32_t i = 0; i < to; i++) begins += count_for(s, part, from, i);
        const size_t n = count_for(s, part, from, to);
        memcpy(dst_of(p, part, to, s) + at * s->size, src_of(p, part, from, s) + begins * s->size, n * s->size);
        at += n;
      }
    }
  }
  return NULL;
}

static const char *gather_v(struct program *p, const struct step *s) {
  const uint32_t root = root_of(s, own_part(s));
  size_t counts[MAX_RANKS] = { 0 };
  if (s->src == s->dst) return NULL;
  for (uint32_t i = 0; i < own_part(s)->ranks; i++) counts[i] = count_for(s, own_part(s), i, root);
  COMM(rill_comm_gather_v(s->view->comm, s->stream, p->memory[s->dst], counts, NULL, p->memory[s->src],
                          counts[s->view->rank], s->type, root));
  EACH_PART(part, s) {
    size_t at = 0;
    for (uint32_t i = 0; i < part->ranks; i++) {
      const size_t bytes = count_for(s, part, i, root_of(s, part)) * s->size;
      memcpy(dst_of(p, part, root_of(s, part), s) + at, src_of(p, part, i, s), bytes);
      at += bytes;
    }
  }
  return NULL;
}

static const char *scatter_v(struct program *p, const struct step *s) {
  const uint32_t root = root_of(s, own_part(s));
  size_t counts[MAX_RANKS] = { 0 };
  if (s->src == s->dst) return NULL;
  for (uint32_t i = 0; i < own_part(s)->ranks; i++) counts[i] = count_for(s, own_part(s), root, i);
  COMM(rill_comm_scatter_v(s->view->comm, s->stream, p->memory[s->dst], counts[s->view->rank], p->memory[s->src],
                           counts, NULL, s->type, root));
  EACH_PART(part, s) {
    size_t at = 0;
    for (uint32_t i = 0; i < part->ranks; i++) {
      const size_t bytes = count_for(s, part, root_of(s, part), i) * s->size;
      memcpy(dst_of(p, part, i, s), src_of(p, part, root_of(s, part), s) + at, bytes);
      at += bytes;
    }
  }
  return NULL;
}

static const char *barrier(struct program *p, const struct step *s) {
  (void)p;
  COMM(rill_comm_barrier(s->view->comm, s->stream));
  return NULL;
}

static uint64_t pattern_of(const struct step *s, uint32_t rank) {
  return (s->root * 1000 + rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static const char *fill(struct program *p, const struct step *s) {
  const size_t words = s->count * s->size / 8;
  for (uint32_t k = 0; k < p->r->ranks; k++) {
    const uint64_t value = pattern_of(s, k);
    for (size_t i = 0; i < words; i++) memcpy(p->model[k][s->dst] + 8 * i, &value, 8);
  }
  const uint64_t own = pattern_of(s, p->r->rank);
  RUN(rill_fill_async(s->stream, p->memory[s->dst], &own, sizeof own, words));
  return NULL;
}

static const char *copy(struct program *p, const struct step *s) {
  const size_t bytes = s->count * s->size;
  if (s->src == s->dst) return NULL;
  RUN(rill_copy_async(s->stream, p->memory[s->dst], p->memory[s->src], bytes));
  for (uint32_t k = 0; k < p->r->ranks; k++) memcpy(p->model[k][s->dst], p->model[k][s->src], bytes);
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

typedef const char *(*step_fn)(struct program *, const struct step *);
static const step_fn operations[] = { all_reduce,   reduce_to_root, broadcast, all_gather, reduce_scatter, all_to_all,
                                      all_to_all_v, gather_v,       scatter_v, shift,      barrier };
static const step_fn others[] = { fill, copy, fill };
enum { OPERATIONS = sizeof operations / sizeof *operations, ALL = OPERATIONS + sizeof others / sizeof *others };

static struct step draw_step(struct program *p, uint32_t stream, uint32_t which) {
  const bool reduces = which < OPERATIONS && (operations[which] == all_reduce || operations[which] == reduce_to_root ||
                                              operations[which] == reduce_scatter);
  const struct type *const type = &types[draw(p, reduces ? 6 : TYPE_COUNT)]; /* integers, whose order does not matter */
  return (struct step){ .view = &p->views[draw(p, COMMS)],
                        .stream = p->streams[stream],
                        .src = (uint32_t)draw(p, BUFFERS),
                        .dst = (uint32_t)draw(p, BUFFERS),
                        .op = 1 + (uint32_t)draw(p, 4),
                        .type = type->type,
                        .size = type->size,
                        .root = draw(p, 1000),
                        .count = draw(p, BYTES / type->size + 1) };
}

/* Several operations that make progress together, on streams and buffers of their own. */
static const char *run_group(struct program *p) {
  const uint32_t count = 2 + (uint32_t)draw(p, 2), turn = (uint32_t)draw(p, BUFFERS);
  struct step steps[3];
  uint32_t which[3];
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t stream = (uint32_t)draw(p, STREAMS);
    which[i] = (uint32_t)draw(p, OPERATIONS);
    steps[i] = draw_step(p, stream, which[i]);
    steps[i].src = (2 * i + turn) % BUFFERS;
    steps[i].dst = (2 * i + turn + 1) % BUFFERS;
    RUN(take(p, stream, steps[i].src));
    RUN(take(p, stream, steps[i].dst));
  }
  COMM(rill_comm_group_begin());
  for (uint32_t i = 0; i < count; i++) {
    const char *const failure = operations[which[i]](p, &steps[i]);
    if (failure != NULL) return failure;
  }
  COMM(rill_comm_group_end());
  return NULL;
}

static const char *run_step(struct program *p) {
  if (draw(p, 6) == 0) return run_group(p);
  const uint32_t stream = (uint32_t)draw(p, STREAMS), which = (uint32_t)draw(p, ALL);
  const struct step s = draw_step(p, stream, which);
  const uint64_t extra = draw(p, 12), when = draw(p, p->r->ranks);
  RUN(take(p, stream, s.src));
  RUN(take(p, stream, s.dst));
  const char *failure = (which < OPERATIONS ? operations[which] : others[which - OPERATIONS])(p, &s);
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
    RUN(rill_copy_async(p->r->stream, p->host, p->memory[b], BYTES));
    RUN(rill_stream_synchronize(p->r->stream));
    REQUIRE(memcmp(p->host, p->model[p->r->rank][b], BYTES) == 0);
  }
  return NULL;
}

static const char *run_program(struct program *p, uint64_t seed) {
  const uint64_t zero = 0;
  p->random = seed;
  memset(p->model, 0, sizeof p->model);
  for (uint32_t b = 0; b < BUFFERS; b++) {
    p->used_on[b] = 0;
    RUN(rill_fill_async(p->streams[0], p->memory[b], &zero, sizeof zero, BYTES / 8));
  }
  for (int i = 0; i < OPS; i++) {
    const char *failure = run_step(p);
    if (failure != NULL) return failure;
  }
  const char *failure = let_go(p);
  return failure != NULL ? failure : compare(p);
}

/* The communicators: all ranks, the same ranks, the same ranks backwards, and the even and the odd ranks apart. */
static const char *make_view(struct program *p, uint32_t i) {
  struct view *const view = &p->views[i];
  const uint32_t ranks = p->r->ranks, rank = p->r->rank;
  const uint32_t colors = i == 3 ? 2 : 1;
  view->parts = colors;
  view->own = rank % colors;
  for (uint32_t k = 0; k < ranks; k++) {
    const uint32_t world = i == 2 ? ranks - 1 - k : k;
    struct part *const part = &view->part[world % colors];
    if (world == rank) view->rank = part->ranks;
    part->world[part->ranks++] = world;
  }
  view->comm = p->r->comm;
  if (i > 0) COMM(rill_comm_split(p->r->comm, view->own, i == 2 ? ranks - rank : 0, NULL, &view->comm));
  return NULL;
}

static uint64_t first_seed, programs;
static _Thread_local char where[2200];

static const char *run_programs(struct rank *r) {
  struct program *p = calloc(1, sizeof *p);
  REQUIRE(p != NULL);
  p->r = r;
  for (uint32_t i = 0; i < COMMS; i++) {
    const char *const failure = make_view(p, i);
    if (failure != NULL) return failure;
  }
  for (int i = 0; i < STREAMS; i++) RUN(rill_stream_create(r->device, NULL, &p->streams[i]));
  for (int i = 0; i < BUFFERS; i++) RUN(rill_alloc(r->device, BYTES, RILL_MEMORY_DEVICE, (void **)&p->memory[i]));
  RUN(rill_alloc(r->device, BYTES, RILL_MEMORY_PINNED, (void **)&p->host));
  const char *failure = NULL;
  for (uint64_t seed = first_seed; seed < first_seed + programs && failure == NULL; seed++) {
    failure = run_program(p, seed);
    if (failure != NULL) (void)snprintf(where, sizeof where, "RILL_SEED=%llu: %s", (unsigned long long)seed, failure);
  }
  for (int i = 0; i < STREAMS; i++) (void)rill_stream_release(p->streams[i]);
  for (int i = 0; i < BUFFERS; i++) (void)rill_free(p->memory[i]);
  (void)rill_free(p->host);
  for (uint32_t i = 1; i < COMMS; i++) COMM(rill_comm_release(p->views[i].comm));
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
