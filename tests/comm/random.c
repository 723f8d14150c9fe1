/* Random programs of operations, fills and copies, over several types, streams, groups, communicators and graphs, and
 * of operations that are refused, against a model.
 *
 * All ranks make the same program from the same seed; what differs is their data, and when they come to what.  Each
 * one knows from the model what all ranks' buffers hold. */
#include "ranks.h"

#include <math.h>
#include <stdio.h>

enum { BUFFERS = 6, BYTES = 384, STREAMS = 3, OPS = 150, LASTING = 4, COMMS = 6, GRAPHS = 2, CAPTURED = 3 };

/* A communicator of each rank.  If it is a split by color, the colors are parts of the ranks.  A rank that joined no
 * part has the one after the last, which consists of one rank. */
struct view {
  rill_comm comm;     /* null if this rank joined no part */
  uint32_t rank, own; /* this rank's number in its part, and the part */
  uint32_t parts;
  struct part {
    uint32_t ranks, world[MAX_RANKS]; /* world: ranks among all, in the order of the part */
  } part[MAX_RANKS];
};

struct step {
  const struct view *view;
  rill_stream stream;
  uint32_t src, dst, op, type;
  size_t size;   /* of an element */
  size_t count;  /* elements that fit into a buffer, or fewer */
  uint64_t root; /* modulo the ranks of a part */
  bool numbers;  /* the operation gets small numbers, with which it is exact (fill_numbers) */
};

/* An execution object, and what a launch of it does; exec is null if there is none. */
struct captured {
  rill_graph_exec exec;
  uint32_t count, which[CAPTURED];
  struct step steps[CAPTURED];
};

struct program {
  struct rank *r;
  bool captures, launches; /* a step is captured: it changes no model; a launch runs it: it calls nothing */
  rill_status refused;     /* what the calls of a step give, with this in the text; RILL_OK: they succeed */
  const char *says;
  uint64_t random;
  struct view views[COMMS];
  rill_stream streams[STREAMS];
  unsigned char *memory[BUFFERS]; /* the device's */
  uint32_t used_on[BUFFERS];      /* stream of the last use */
  unsigned char model[MAX_RANKS][BUFFERS][BYTES];
  unsigned char *host;
  rill_event held; /* a stream waits for it, and nobody has recorded it; or null */
  struct captured graphs[GRAPHS];
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

/* Calls an operation on the ranks that have one. */
#define CALL(call)                                                            \
  do {                                                                        \
    if (p->launches || rill_comm_equal(s->view->comm, RILL_NULL_COMM)) break; \
    if (p->refused == RILL_OK) COMM(call);                                    \
    else COMM_FAILS(call, p->refused, p->says);                               \
  } while (0)

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

/* ---- small numbers, exact in each type ---- */

static bool is_float(uint32_t type) { return type >= RILL_COMM_HALF; }

static double decode(const unsigned char *from, uint32_t type, size_t size) {
  float single;
  double value;
  const uint64_t bits = load(from, is_float(type) ? RILL_COMM_UINT64 : type, size);
  const uint32_t wide = (uint32_t)bits << 16;
  switch (type) {
    case RILL_COMM_HALF:
      value = (bits & 0x7fff) == 0 ? 0 : ldexp(1024 + (double)(bits & 1023), (int)(bits >> 10 & 31) - 25);
      return (bits & 0x8000) != 0 ? -value : value;
    case RILL_COMM_FLOAT: memcpy(&single, from, sizeof single); return (double)single;
    case RILL_COMM_BFLOAT16: memcpy(&single, &wide, sizeof single); return (double)single;
    case RILL_COMM_DOUBLE: memcpy(&value, from, sizeof value); return value;
    default: return type % 2 == 1 ? (double)(int64_t)bits : (double)bits;
  }
}

/* `value` must be exact in the type. */
static void encode(unsigned char *to, uint32_t type, size_t size, double value) {
  const float single = (float)value;
  uint64_t bits = (uint64_t)(int64_t)value;
  uint32_t of_single;
  int exponent = 0;
  memcpy(&of_single, &single, sizeof of_single);
  const double fraction = frexp(fabs(value), &exponent); /* 0.5 to 1, or 0 */
  if (type == RILL_COMM_FLOAT) bits = of_single;
  if (type == RILL_COMM_BFLOAT16) bits = of_single >> 16;
  if (type == RILL_COMM_DOUBLE) memcpy(&bits, &value, sizeof bits);
  if (type == RILL_COMM_HALF) {
    bits = value < 0 ? 0x8000 : 0;
    if (fraction > 0) bits |= (uint64_t)(exponent + 14) << 10 | (uint64_t)((2 * fraction - 1) * 1024);
  }
  memcpy(to, &bits, size);
}

/* The number at a place of the source of a rank, which is in a part of `ranks` ranks. */
static double number_for(const struct step *s, uint32_t rank, uint32_t ranks, uint32_t place) {
  const uint64_t x = rank * 7 + place * 3 + s->root;
  const bool has_sign = is_float(s->type) || s->type % 2 == 1;
  if (s->op == RILL_COMM_PRODUCT) { /* a power of two, at most 32 for all ranks */
    const double factor = rank < 5 && x % 3 == 0 ? 2 : 1;
    return has_sign && x % 2 == 0 ? -factor : factor;
  }
  const double value = (double)(x % 9) - (has_sign ? 4 : 0);
  if (s->op != RILL_COMM_AVERAGE || !is_float(s->type)) return value;
  return ranks > 8 ? (value < 0 ? -(double)ranks : ranks) : value * ranks; /* the average is exact */
}

/* Writes the numbers that a reduction needs into its source. */
static const char *fill_numbers(struct program *p, const struct step *s) {
  uint64_t own = 0;
  for (uint32_t k = 0; k < p->r->ranks; k++) {
    uint32_t ranks = 1;
    uint64_t word = 0;
    for (const struct part *part = s->view->part; part < s->view->part + s->view->parts; part++) {
      for (uint32_t i = 0; i < part->ranks; i++) ranks = part->world[i] == k ? part->ranks : ranks;
    }
    for (uint32_t i = 0; i < 8 / s->size; i++) {
      encode((unsigned char *)&word + i * s->size, s->type, s->size, number_for(s, k, ranks, i));
    }
    for (size_t i = 0; i < BYTES / 8 && !p->captures; i++) memcpy(p->model[k][s->src] + 8 * i, &word, 8);
    if (k == p->r->rank) own = word;
  }
  if (!p->launches) RUN(rill_fill_async(s->stream, p->memory[s->src], &own, sizeof own, BYTES / 8));
  return NULL;
}

static double combine_numbers(double a, double b, uint32_t op) {
  switch (op) {
    case RILL_COMM_PRODUCT: return a * b;
    case RILL_COMM_MAX: return fmax(a, b);
    case RILL_COMM_MIN: return fmin(a, b);
    default: return a + b;
  }
}

static void reduce_numbers(struct program *p, const struct part *part, const struct step *s, size_t first, size_t n,
                           unsigned char *out) {
  for (size_t i = 0; i < n; i++) {
    const size_t at = (first + i) * s->size;
    double value = decode(src_of(p, part, 0, s) + at, s->type, s->size);
    for (uint32_t k = 1; k < part->ranks; k++) {
      value = combine_numbers(value, decode(src_of(p, part, k, s) + at, s->type, s->size), s->op);
    }
    if (s->op == RILL_COMM_AVERAGE) value /= part->ranks;
    encode(out + i * s->size, s->type, s->size, is_float(s->type) ? value : trunc(value));
  }
}

/* Combines `n` elements of all ranks of a part, from element `first` on. */
static void reduce(struct program *p, const struct part *part, const struct step *s, size_t first, size_t n,
                   unsigned char *out) {
  if (s->numbers) {
    reduce_numbers(p, part, s, first, n, out);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const size_t at = (first + i) * s->size;
    uint64_t value = load(src_of(p, part, 0, s) + at, s->type, s->size);
    for (uint32_t k = 1; k < part->ranks; k++) {
      value = combine(value, load(src_of(p, part, k, s) + at, s->type, s->size), s->op, s->type);
    }
    memcpy(out + i * s->size, &value, s->size);
  }
}

/* In a function for a step, before its change of the model: once for each part of the communicator. */
#define EACH_PART(part, step)                                                                                         \
  for (const struct part *part = (step)->view->part; !p->captures && part < (step)->view->part + (step)->view->parts; \
       part++)

static const char *all_reduce(struct program *p, const struct step *s) {
  CALL(rill_comm_all_reduce(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, s->type, s->op));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    reduce(p, part, s, 0, s->count, result);
    for (uint32_t k = 0; k < part->ranks; k++) memcpy(dst_of(p, part, k, s), result, s->count * s->size);
  }
  return NULL;
}

static const char *reduce_to_root(struct program *p, const struct step *s) {
  CALL(rill_comm_reduce(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, s->type, s->op,
                        root_of(s, own_part(s))));
  EACH_PART(part, s) {
    unsigned char result[BYTES];
    reduce(p, part, s, 0, s->count, result);
    memcpy(dst_of(p, part, root_of(s, part), s), result, s->count * s->size);
  }
  return NULL;
}

static const char *broadcast(struct program *p, const struct step *s) {
  CALL(rill_comm_broadcast(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src], s->count, s->type,
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
  CALL(rill_comm_all_gather(s->view->comm, s->stream, p->memory[s->dst], src, n, s->type));
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
  CALL(rill_comm_reduce_scatter(s->view->comm, s->stream, dst, p->memory[s->src], n, s->type, s->op));
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
  CALL(rill_comm_all_to_all(s->view->comm, s->stream, p->memory[s->dst], p->memory[s->src],
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
  CALL(rill_comm_group_begin());
  CALL(rill_comm_send(s->view->comm, s->stream, p->memory[s->src], s->count, s->type, (s->view->rank + by) % n));
  CALL(rill_comm_receive(s->view->comm, s->stream, p->memory[s->dst], s->count, s->type, (s->view->rank + n - by) % n));
  CALL(rill_comm_group_end());
  EACH_PART(part, s) {
    for (uint32_t from = 0; from < part->ranks; from++) {
      const uint32_t to = (from + root_of(s, part)) % part->ranks;
      memcpy(dst_of(p, part, to, s), src_of(p, part, from, s), s->count * s->size);
    }
  }
  return NULL;
}

/* One message, from one rank of each part to another. */
static const char *message(struct program *p, const struct step *s) {
  const uint32_t n = own_part(s)->ranks, from = root_of(s, own_part(s));
  const uint32_t to = n > 1 ? (from + 1 + (uint32_t)(s->root / 16 % (n - 1))) % n : 0;
  if (n > 1 && s->view->rank == from) {
    CALL(rill_comm_send(s->view->comm, s->stream, p->memory[s->src], s->count, s->type, to));
  } else if (n > 1 && s->view->rank == to) {
    CALL(rill_comm_receive(s->view->comm, s->stream, p->memory[s->dst], s->count, s->type, from));
  }
  EACH_PART(part, s) {
    if (part->ranks < 2) continue;
    const uint32_t sender = root_of(s, part);
    const uint32_t receiver = (sender + 1 + (uint32_t)(s->root / 16 % (part->ranks - 1))) % part->ranks;
    memcpy(dst_of(p, part, receiver, s), src_of(p, part, sender, s), s->count * s->size);
  }
  return NULL;
}

/* How many elements `from` has for `to`: as many as leave room for all. */
static size_t count_for(const struct step *s, const struct part *part, uint32_t from, uint32_t to) {
  return (from * 5 + to * 3 + s->root) % (s->count / part->ranks + 1);
}

/* Where the parts of a buffer begin: one after the other, or in half of the steps backwards, with offsets. */
static void place(const struct step *s, const size_t *counts, uint32_t ranks, size_t *offsets) {
  size_t at = 0;
  for (uint32_t i = 0; i < ranks; i++) {
    const uint32_t k = s->root % 2 == 0 ? i : ranks - 1 - i;
    offsets[k] = at;
    at += counts[k];
  }
}
static const size_t *given(const struct step *s, const size_t *offsets) { return s->root % 2 == 0 ? NULL : offsets; }

/* The counts and places of what a rank sends to each rank, and receives from each rank. */
struct row {
  size_t out[MAX_RANKS], in[MAX_RANKS], from[MAX_RANKS], to[MAX_RANKS];
};

static struct row row_of(const struct step *s, const struct part *part, uint32_t rank) {
  struct row row = { .out = { 0 } };
  for (uint32_t i = 0; i < part->ranks; i++) {
    row.out[i] = count_for(s, part, rank, i);
    row.in[i] = count_for(s, part, i, rank);
  }
  place(s, row.out, part->ranks, row.from);
  place(s, row.in, part->ranks, row.to);
  return row;
}

static const char *all_to_all_v(struct program *p, const struct step *s) {
  if (s->src == s->dst) return NULL;
  const struct row own = row_of(s, own_part(s), s->view->rank);
  CALL(rill_comm_all_to_all_v(s->view->comm, s->stream, p->memory[s->dst], own.in, given(s, own.to), p->memory[s->src],
                              own.out, given(s, own.from), s->type));
  EACH_PART(part, s) {
    for (uint32_t to = 0; to < part->ranks; to++) {
      const struct row receiver = row_of(s, part, to);
      for (uint32_t from = 0; from < part->ranks; from++) {
        const struct row sender = row_of(s, part, from);
        memcpy(dst_of(p, part, to, s) + receiver.to[from] * s->size,
               src_of(p, part, from, s) + sender.from[to] * s->size, receiver.in[from] * s->size);
      }
    }
  }
  return NULL;
}

static const char *gather_v(struct program *p, const struct step *s) {
  const uint32_t root = root_of(s, own_part(s));
  const bool in_place = s->src == s->dst;
  const struct row row = row_of(s, own_part(s), root);
  unsigned char *src = p->memory[s->src] + (in_place && s->view->rank == root ? row.to[root] * s->size : 0);
  CALL(rill_comm_gather_v(s->view->comm, s->stream, p->memory[s->dst], row.in, given(s, row.to), src,
                          row.in[s->view->rank], s->type, root));
  EACH_PART(part, s) {
    const struct row of_root = row_of(s, part, root_of(s, part));
    for (uint32_t i = 0; i < part->ranks; i++) {
      if (in_place && i == root_of(s, part)) continue;
      memcpy(dst_of(p, part, root_of(s, part), s) + of_root.to[i] * s->size, src_of(p, part, i, s),
             of_root.in[i] * s->size);
    }
  }
  return NULL;
}

static const char *scatter_v(struct program *p, const struct step *s) {
  const uint32_t root = root_of(s, own_part(s));
  const bool in_place = s->src == s->dst;
  const struct row row = row_of(s, own_part(s), root);
  unsigned char *dst = p->memory[s->dst] + (in_place && s->view->rank == root ? row.from[root] * s->size : 0);
  CALL(rill_comm_scatter_v(s->view->comm, s->stream, dst, row.out[s->view->rank], p->memory[s->src], row.out,
                           given(s, row.from), s->type, root));
  EACH_PART(part, s) {
    const struct row of_root = row_of(s, part, root_of(s, part));
    for (uint32_t i = 0; i < part->ranks; i++) {
      if (in_place && i == root_of(s, part)) continue;
      memcpy(dst_of(p, part, i, s), src_of(p, part, root_of(s, part), s) + of_root.from[i] * s->size,
             of_root.out[i] * s->size);
    }
  }
  return NULL;
}

static const char *barrier(struct program *p, const struct step *s) {
  (void)p;
  CALL(rill_comm_barrier(s->view->comm, s->stream));
  return NULL;
}

static uint64_t pattern_of(const struct step *s, uint32_t rank) {
  return (s->root * 1000 + rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static const char *fill(struct program *p, const struct step *s) {
  const size_t words = s->count * s->size / 8;
  for (uint32_t k = 0; k < p->r->ranks && !p->captures; k++) {
    const uint64_t value = pattern_of(s, k);
    for (size_t i = 0; i < words; i++) memcpy(p->model[k][s->dst] + 8 * i, &value, 8);
  }
  const uint64_t own = pattern_of(s, p->r->rank);
  if (!p->launches) RUN(rill_fill_async(s->stream, p->memory[s->dst], &own, sizeof own, words));
  return NULL;
}

static const char *copy(struct program *p, const struct step *s) {
  const size_t bytes = s->count * s->size;
  if (s->src == s->dst) return NULL;
  if (!p->launches) RUN(rill_copy_async(s->stream, p->memory[s->dst], p->memory[s->src], bytes));
  for (uint32_t k = 0; k < p->r->ranks && !p->captures; k++) memcpy(p->model[k][s->dst], p->model[k][s->src], bytes);
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
                                      all_to_all_v, gather_v,       scatter_v, shift,      message,        barrier };
static const step_fn others[] = { fill, copy, fill };
enum { OPERATIONS = sizeof operations / sizeof *operations, ALL = OPERATIONS + sizeof others / sizeof *others };

/* An average multiplies by a fraction on GPUs, which is exact only for a power of two. */
static bool averages_exactly(const struct view *view) {
  for (uint32_t i = 0; i < view->parts; i++) {
    if (!on_cpu() && (view->part[i].ranks & (view->part[i].ranks - 1)) != 0) return false;
  }
  return true;
}

static struct step draw_step(struct program *p, uint32_t stream, uint32_t which) {
  const bool reduces = which < OPERATIONS && (operations[which] == all_reduce || operations[which] == reduce_to_root ||
                                              operations[which] == reduce_scatter);
  const struct type *const type = &types[draw(p, TYPE_COUNT)];
  struct step s = { .view = &p->views[draw(p, COMMS)],
                    .stream = p->streams[stream],
                    .src = (uint32_t)draw(p, BUFFERS),
                    .dst = (uint32_t)draw(p, BUFFERS),
                    .op = 1 + (uint32_t)draw(p, 5),
                    .type = type->type,
                    .size = type->size,
                    .root = draw(p, 1000),
                    .count = draw(p, BYTES / type->size + 1) };
  if (s.op == RILL_COMM_AVERAGE && is_float(s.type) && !averages_exactly(s.view)) s.op = RILL_COMM_SUM;
  s.numbers = reduces && (is_float(s.type) || s.op == RILL_COMM_AVERAGE);
  return s;
}

/* Returns whether some ranks may have nothing to call in the step. */
static bool is_partial(const struct program *p, const struct step *s, uint32_t which) {
  const step_fn f = operations[which];
  return s->view >= &p->views[LASTING] || f == message || f == all_to_all_v || f == gather_v || f == scatter_v;
}

/* Several operations that make progress together, on streams and buffers of their own.  NCCL runs them in the order of
 * the first use of a communicator and a stream, which must be the same on all ranks; if not all ranks call all of them,
 * they use one communicator and one stream there. */
static const char *run_group(struct program *p) {
  const uint32_t count = 2 + (uint32_t)draw(p, 2), turn = (uint32_t)draw(p, BUFFERS);
  struct step steps[3];
  uint32_t which[3], streams[3];
  bool partial = false;
  for (uint32_t i = 0; i < count; i++) {
    streams[i] = (uint32_t)draw(p, STREAMS);
    which[i] = (uint32_t)draw(p, OPERATIONS);
    steps[i] = draw_step(p, streams[i], which[i]);
    steps[i].src = (2 * i + turn) % BUFFERS;
    steps[i].dst = (2 * i + turn + 1) % BUFFERS;
    partial |= is_partial(p, &steps[i], which[i]);
  }
  for (uint32_t i = 1; i < count && partial && !on_cpu(); i++) {
    streams[i] = streams[0];
    steps[i].stream = steps[0].stream;
    steps[i].view = steps[0].view;
    if (steps[i].op == RILL_COMM_AVERAGE && is_float(steps[i].type) && !averages_exactly(steps[i].view)) {
      steps[i].op = RILL_COMM_SUM;
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    RUN(take(p, streams[i], steps[i].src));
    RUN(take(p, streams[i], steps[i].dst));
    const char *const failure = steps[i].numbers ? fill_numbers(p, &steps[i]) : NULL;
    if (failure != NULL) return failure;
  }
  COMM(rill_comm_group_begin());
  for (uint32_t i = 0; i < count; i++) {
    const char *const failure = operations[which[i]](p, &steps[i]);
    if (failure != NULL) return failure;
  }
  COMM(rill_comm_group_end());
  return NULL;
}

/* The functions that submit nothing. */
static const char *query(const struct view *view) {
  rill_comm_info info = RILL_COMM_INFO_INIT;
  if (rill_comm_equal(view->comm, RILL_NULL_COMM)) return NULL;
  COMM(rill_comm_retain(view->comm));
  COMM(rill_comm_validate(view->comm));
  COMM(rill_comm_get_info(view->comm, &info));
  COMM(rill_comm_release(view->comm));
  REQUIRE(info.rank == view->rank && info.ranks == view->part[view->own].ranks);
  return NULL;
}

static const char *run_operation(struct program *p, const struct step *s, uint32_t which) {
  const char *const failure = s->numbers ? fill_numbers(p, s) : NULL;
  return failure != NULL ? failure : (which < OPERATIONS ? operations[which] : others[which - OPERATIONS])(p, s);
}

/* ---- graphs ---- */

/* Launches after all work of all streams, and before all later work.  NCCL would order what uses one communicator by
 * itself, but the stand-in does not order a graph with operations of another stream. */
static const char *launch(struct program *p, const struct captured *graph, uint32_t stream) {
  for (uint32_t i = 0; i < STREAMS; i++) {
    if (i != stream) RUN(rill_stream_wait_stream(p->streams[stream], p->streams[i]));
  }
  RUN(rill_graph_launch(graph->exec, p->streams[stream]));
  for (uint32_t i = 0; i < STREAMS; i++) {
    if (i != stream) RUN(rill_stream_wait_stream(p->streams[i], p->streams[stream]));
  }
  for (uint32_t b = 0; b < BUFFERS; b++) p->used_on[b] = stream;
  const char *failure = NULL;
  p->launches = true;
  for (uint32_t i = 0; i < graph->count && failure == NULL; i++) {
    failure = run_operation(p, &graph->steps[i], graph->which[i]);
  }
  p->launches = false;
  return failure;
}

static const char *end_capture(rill_stream stream, struct captured *graph) {
  rill_graph captured;
  RUN(rill_stream_capture_end(stream, &captured));
  RUN(rill_graph_instantiate(captured, &graph->exec));
  RUN(rill_graph_release(captured));
  return NULL;
}

/* One after the other on two streams, the first of them a fill: a rank may have no operation. */
static const char *capture(struct program *p, struct captured *graph) {
  const uint32_t origin = (uint32_t)draw(p, STREAMS), other = (uint32_t)draw(p, STREAMS);
  uint32_t last = origin;
  const char *failure = NULL;
  graph->count = 2 + (uint32_t)draw(p, CAPTURED - 1);
  RUN(rill_stream_capture_begin(p->streams[origin], RILL_CAPTURE_THREAD));
  p->captures = true;
  for (uint32_t i = 0; i < graph->count && failure == NULL; i++) {
    const uint32_t stream = i > 0 && draw(p, 2) == 0 ? other : origin;
    graph->which[i] = i == 0 ? OPERATIONS : (uint32_t)draw(p, ALL);
    graph->steps[i] = draw_step(p, stream, graph->which[i]);
    if (stream != last) RUN(rill_stream_wait_stream(p->streams[stream], p->streams[last]));
    last = stream;
    failure = run_operation(p, &graph->steps[i], graph->which[i]);
  }
  p->captures = false;
  if (failure != NULL) return failure;
  if (last != origin) RUN(rill_stream_wait_stream(p->streams[origin], p->streams[last]));
  return end_capture(p->streams[origin], graph);
}

/* Operations with both buffers on each rank, or with none, whose counts are not 0. */
static const struct {
  step_fn run;
  const char *name;
  bool divides; /* the count by the ranks */
} refusable[] = {
  { all_reduce, "all_reduce", false }, { reduce_to_root, "reduce", false },        { broadcast, "broadcast", false },
  { all_gather, "all_gather", true },  { reduce_scatter, "reduce_scatter", true }, { all_to_all, "all_to_all", true },
  { barrier, "barrier", false }
};

/* The capture of an operation is refused: on the CPU, and on a GPU on a stream that the engine has not used before.  A
 * group with it is refused as a whole.  The capture goes on without it. */
static const char *capture_refused(struct program *p) {
  const uint32_t origin = (uint32_t)draw(p, STREAMS), which = (uint32_t)draw(p, sizeof refusable / sizeof *refusable);
  const bool grouped = draw(p, 2) == 0;
  struct captured graph = { .count = 2, .which = { OPERATIONS, OPERATIONS } };
  rill_stream stream; /* a new one: of the CPU, operations hold the others */
  RUN(rill_stream_create(p->r->device, NULL, &stream));
  struct step s = draw_step(p, origin, which);
  char says[120], of[80];
  s.stream = stream;
  s.count = MAX_RANKS + draw(p, BYTES / 8 - MAX_RANKS);
  s.dst = (s.src + 1) % BUFFERS;
  if (grouped) s.view = &p->views[0];
  const uint32_t ranks = own_part(&s)->ranks;
  const size_t bytes = refusable[which].run == barrier ? 0 : s.count / (refusable[which].divides ? ranks : 1) * s.size;
  (void)snprintf(says, sizeof says, "%zu bytes: its stream is capturing, and a graph of the CPU cannot", bytes);
  (void)snprintf(of, sizeof of, ": %s of rank %u of %u (operation ", refusable[which].name, s.view->rank, ranks);
  const rill_status status = on_cpu() ? RILL_ERROR_UNSUPPORTED : RILL_ERROR_CAPTURE_ACTIVE;
  p->says = on_cpu() ? says : "capturing";
  RUN(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  p->captures = true;
  for (uint32_t i = 0; i < graph.count; i++) {
    graph.steps[i] = draw_step(p, origin, OPERATIONS);
    graph.steps[i].stream = stream;
    const char *failure = fill(p, &graph.steps[i]);
    if (failure != NULL) return failure;
    if (i > 0) continue;
    if (grouped) { /* after one that could start */
      COMM(rill_comm_group_begin());
      COMM(rill_comm_barrier(p->r->comm, p->streams[(origin + 1) % STREAMS]));
    }
    p->refused = grouped ? RILL_OK : status;
    failure = refusable[which].run(p, &s);
    p->refused = RILL_OK;
    if (failure != NULL) return failure;
    if (grouped) COMM_FAILS(rill_comm_group_end(), status, p->says);
    if (rill_comm_equal(s.view->comm, RILL_NULL_COMM)) continue;
    REQUIRE(!on_cpu() || strstr(rill_comm_last_error_text(), of) != NULL);
    COMM(rill_comm_validate(s.view->comm));
  }
  p->captures = false;
  const char *failure = end_capture(stream, &graph);
  if (failure == NULL) failure = launch(p, &graph, origin);
  RUN(rill_stream_release(stream));
  RUN(rill_graph_exec_release(graph.exec));
  return failure;
}

static const char *run_alone(struct program *p) {
  const uint32_t stream = (uint32_t)draw(p, STREAMS), which = (uint32_t)draw(p, ALL);
  const struct step s = draw_step(p, stream, which);
  RUN(take(p, stream, s.src));
  RUN(take(p, stream, s.dst));
  return run_operation(p, &s, which);
}

/* Captures and launches, with other operations in between, or launches an older graph again. */
static const char *run_graph(struct program *p) {
  struct captured *const graph = &p->graphs[draw(p, GRAPHS)];
  if (on_cpu() || draw(p, 4) == 0) return capture_refused(p);
  const char *failure = NULL;
  if (graph->exec.id == 0 || draw(p, 2) == 0) {
    RUN(rill_graph_exec_release(graph->exec));
    graph->exec = RILL_NULL_GRAPH_EXEC;
    failure = capture(p, graph);
  }
  const uint64_t launches = 1 + draw(p, 3);
  for (uint64_t i = 0; i < launches && failure == NULL; i++) {
    failure = launch(p, graph, (uint32_t)draw(p, STREAMS));
    if (failure == NULL && draw(p, 2) == 0) failure = run_alone(p);
  }
  return failure;
}

/* ---- overlaps ---- */

struct range {
  const unsigned char *p;
  size_t bytes;
};
static bool ranges_overlap(struct range a, struct range b) {
  return a.bytes > 0 && b.bytes > 0 && a.p < b.p + b.bytes && b.p < a.p + a.bytes;
}

/* The text for the first parts that overlap, in the order of the ranks. */
static void say_parts(char *says, size_t size, const struct range *to, const struct range *from, uint32_t ranks) {
  const bool same = to == from;
  for (uint32_t i = 0; i < ranks; i++) {
    for (uint32_t j = 0; j < ranks; j++) {
      if ((same && i == j) || !ranges_overlap(to[i], from[j])) continue;
      (void)snprintf(says, size,
                     "the part of rank %u of dst, %zu bytes at %p, and the part of rank %u of %s, %zu bytes at %p, "
                     "overlap",
                     i, to[i].bytes, (const void *)to[i].p, j, same ? "dst" : "src", from[j].bytes,
                     (const void *)from[j].p);
      return;
    }
  }
}

/* Makes a call that is refused with `says`: in half of the cases in a group after a message that could start, which is
 * refused with it. */
#define REFUSED(call)                                                                              \
  do {                                                                                             \
    const bool grouped_ = draw(p, 2) == 0;                                                         \
    if (grouped_) COMM(rill_comm_group_begin());                                                   \
    if (grouped_) COMM(rill_comm_send(view->comm, p->streams[0], p->host, 1, RILL_COMM_INT64, 0)); \
    COMM_FAILS(call, RILL_ERROR_INVALID_ARGUMENT, says);                                           \
    if (grouped_) COMM_FAILS(rill_comm_group_end(), RILL_ERROR_INVALID_ARGUMENT, says);            \
  } while (0)

/* An operation with counts per rank whose buffers overlap.  Of a gather or a scatter only the root is refused, and only
 * it makes the call. */
static const char *overlap_parts(struct program *p, const struct view *view, uint32_t ranks, const struct type *type) {
  const size_t n = BYTES / type->size / ranks / 2, by = 1 + draw(p, n * ranks - 1);
  const uint64_t kind = draw(p, 4);
  const uint32_t root = (uint32_t)draw(p, ranks);
  unsigned char *const base = p->memory[draw(p, BUFFERS)], *const moved = base + by * type->size;
  size_t counts[MAX_RANKS], offsets[MAX_RANKS];
  struct range to[MAX_RANKS] = { { NULL, 0 } }, from[MAX_RANKS] = { { NULL, 0 } };
  char says[240] = "";
  for (uint32_t i = 0; i < ranks; i++) {
    counts[i] = n;
    offsets[i] = (kind == 3 ? 0 : ranks - 1 - i) * n;
    to[i] = (struct range){ (kind == 2 ? moved : base) + offsets[i] * type->size, n * type->size };
    from[i] = (struct range){ (kind == 2 ? base : moved) + offsets[i] * type->size, n * type->size };
  }
  const rill_comm comm = view->comm;
  const rill_stream stream = p->streams[0];
  if (kind == 0) {
    say_parts(says, sizeof says, to, from, ranks);
    REFUSED(rill_comm_all_to_all_v(comm, stream, base, counts, offsets, moved, counts, offsets, type->type));
  } else if (kind == 3 && ranks > 1) { /* all parts of dst are one */
    say_parts(says, sizeof says, to, to, ranks);
    REFUSED(rill_comm_all_to_all_v(comm, stream, base, counts, offsets, p->host, counts, NULL, type->type));
  } else if (kind < 3 && view->rank == root && by % n != 0) { /* its own part is a little after where it may be */
    unsigned char *const own = base + (offsets[root] + by % n) * type->size;
    struct range one[MAX_RANKS] = { { NULL, 0 } };
    one[root] = (struct range){ own, n * type->size };
    say_parts(says, sizeof says, kind == 1 ? to : one, kind == 1 ? one : from, ranks);
    if (kind == 1) REFUSED(rill_comm_gather_v(comm, stream, base, counts, offsets, own, n, type->type, root));
    else REFUSED(rill_comm_scatter_v(comm, stream, own, n, base, counts, offsets, type->type, root));
  }
  return NULL;
}

/* The same for one count.  Of a reduce or a broadcast only the root has both buffers. */
static const char *overlap_one_count(struct program *p, const struct view *view, uint32_t ranks,
                                     const struct type *type) {
  const size_t n = BYTES / type->size / ranks / 2, part = n * type->size, by = 1 + draw(p, part - 1);
  const uint64_t kind = draw(p, 6);
  const uint32_t root = (uint32_t)draw(p, ranks), t = type->type;
  const bool swaps = draw(p, 2) == 0;
  unsigned char *const base = p->memory[draw(p, BUFFERS)];
  unsigned char *dst = base, *src = base + by;
  size_t to = part, from = part;
  if (kind == 1 || kind == 3) to *= ranks;
  if (kind == 2 || kind == 3) from *= ranks;
  if (kind == 1) src = base + part * view->rank + by;
  if (kind == 2) dst = base + part * view->rank + by, src = base;
  if (swaps && kind != 1 && kind != 2) dst = src, src = base;
  char says[200];
  (void)snprintf(says, sizeof says, "dst, %zu bytes at %p, and src, %zu bytes at %p, overlap", to, (void *)dst, from,
                 (void *)src);
  const rill_comm comm = view->comm;
  const rill_stream stream = p->streams[0];
  switch (kind) {
    case 0: REFUSED(rill_comm_all_reduce(comm, stream, dst, src, n, t, RILL_COMM_MAX)); break;
    case 1: REFUSED(rill_comm_all_gather(comm, stream, dst, src, n, t)); break;
    case 2: REFUSED(rill_comm_reduce_scatter(comm, stream, dst, src, n, t, RILL_COMM_MAX)); break;
    case 3: REFUSED(rill_comm_all_to_all(comm, stream, dst, src, n, t)); break;
    default:
      if (view->rank != root) break;
      if (kind == 4) REFUSED(rill_comm_reduce(comm, stream, dst, src, n, t, RILL_COMM_MAX, root));
      else REFUSED(rill_comm_broadcast(comm, stream, dst, src, n, t, root));
  }
  return NULL;
}

/* Buffers that overlap are refused, with their places in the text, and nothing starts. */
static const char *overlap(struct program *p) {
  const struct view *const view = &p->views[draw(p, COMMS)];
  const struct type *const type = &types[draw(p, TYPE_COUNT)];
  const bool has_parts = draw(p, 2) == 0;
  const uint64_t own = draw(p, UINT32_MAX), after = p->random;
  if (rill_comm_equal(view->comm, RILL_NULL_COMM)) return NULL;
  p->random = own; /* the ranks need not draw equally often */
  const char *const failure =
      (has_parts ? overlap_parts : overlap_one_count)(p, view, view->part[view->own].ranks, type);
  p->random = after;
  if (failure == NULL) COMM(rill_comm_validate(view->comm));
  return failure;
}

static const char *run_step(struct program *p) {
  if (draw(p, 6) == 0) return run_group(p);
  if (draw(p, 10) == 0) return overlap(p);
  if (draw(p, 10) == 0) return run_graph(p);
  const uint32_t stream = (uint32_t)draw(p, STREAMS), which = (uint32_t)draw(p, ALL);
  const struct step s = draw_step(p, stream, which);
  const uint64_t extra = draw(p, 12), when = draw(p, p->r->ranks);
  RUN(take(p, stream, s.src));
  RUN(take(p, stream, s.dst));
  const char *failure = run_operation(p, &s, which);
  if (failure == NULL && extra == 4) failure = query(s.view);
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

/* Splits a communicator of all ranks by random colors and keys.  The parts are in the order of the colors. */
static const char *split(struct program *p, const struct view *parent, struct view *view) {
  enum { COLORS = 3 };
  uint32_t color[MAX_RANKS], key[MAX_RANKS];
  const struct part *const all = &parent->part[0];
  *view = (struct view){ .rank = 0 };
  for (uint32_t k = 0; k < all->ranks; k++) {
    color[k] = (uint32_t)draw(p, COLORS + 1);
    key[k] = (uint32_t)draw(p, 4);
  }
  const bool joins = color[parent->rank] < COLORS;
  for (uint32_t c = 0; c < COLORS; c++) {
    struct part *const part = &view->part[view->parts];
    for (uint32_t of_key = 0; of_key < 4; of_key++) {
      for (uint32_t k = 0; k < all->ranks; k++) {
        if (color[k] != c || key[k] != of_key) continue;
        if (k == parent->rank) view->rank = part->ranks;
        part->world[part->ranks++] = all->world[k];
      }
    }
    if (joins && c == color[parent->rank]) view->own = view->parts;
    view->parts += part->ranks > 0;
  }
  if (!joins) view->own = view->parts;
  if (!joins) view->part[view->own].ranks = 1;
  const uint64_t timeout = draw(p, 2) * TIMEOUT_NS;
  COMM(rill_comm_split(parent->comm, joins ? color[parent->rank] : RILL_COMM_NO_COLOR, key[parent->rank],
                       RILL_COMM_OPTIONS(.timeout_ns = timeout), &view->comm));
  REQUIRE(joins != rill_comm_equal(view->comm, RILL_NULL_COMM));
  return query(view);
}

static const char *run_program(struct program *p, uint64_t seed) {
  const uint64_t zero = 0;
  p->random = seed;
  memset(p->model, 0, sizeof p->model);
  for (uint32_t b = 0; b < BUFFERS; b++) {
    p->used_on[b] = 0;
    RUN(rill_fill_async(p->streams[0], p->memory[b], &zero, sizeof zero, BYTES / 8));
  }
  const char *failure = split(p, &p->views[0], &p->views[LASTING]);
  if (failure == NULL) failure = split(p, &p->views[2], &p->views[LASTING + 1]);
  for (int i = 0; i < OPS && failure == NULL; i++) failure = run_step(p);
  if (failure == NULL) failure = let_go(p);
  for (uint32_t i = 0; i < GRAPHS; i++) { /* launches that still run complete, before the communicators */
    RUN(rill_graph_exec_release(p->graphs[i].exec));
    p->graphs[i].exec = RILL_NULL_GRAPH_EXEC;
  }
  for (uint32_t i = LASTING; i < COMMS && failure == NULL; i++) COMM(rill_comm_release(p->views[i].comm));
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
  for (uint32_t i = 0; i < LASTING; i++) {
    const char *const failure = make_view(p, i);
    if (failure != NULL) return failure;
  }
  for (int i = 0; i < STREAMS; i++) {
    RUN(rill_stream_create(r->device, NULL, &p->streams[i]));
    COMM(rill_comm_barrier(r->comm, p->streams[i])); /* captures need streams that the engine has used */
  }
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
  for (uint32_t i = 1; i < LASTING; i++) COMM(rill_comm_release(p->views[i].comm));
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
