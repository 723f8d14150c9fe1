/* What the operations compute, one element after the other. */
#include "fake_comm.h"

#include <rill/device/half.h>
#include <string.h>

enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT16 };
enum { SUM, PRODUCT, MAX, MIN, AVERAGE };

size_t fake_comm_size_of(int type) {
  static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
  return sizes[type];
}

/* wide: what sums and products are made in, so that they wrap around. */
#define COMBINE(name, type, wide)                     \
  static type name(type a, type b, int reduction) {   \
    switch (reduction) {                              \
      case AVERAGE: /* divided afterwards */          \
      case SUM: return (type)((wide)a + (wide)b);     \
      case PRODUCT: return (type)((wide)a * (wide)b); \
      case MAX: return a > b ? a : b;                 \
      default: return a < b ? a : b;                  \
    }                                                 \
  }
COMBINE(combine_int8, int8_t, uint64_t)
COMBINE(combine_uint8, uint8_t, uint64_t)
COMBINE(combine_int32, int32_t, uint64_t)
COMBINE(combine_uint32, uint32_t, uint64_t)
COMBINE(combine_int64, int64_t, uint64_t)
COMBINE(combine_uint64, uint64_t, uint64_t)
COMBINE(combine_float, float, float)
COMBINE(combine_double, double, double)

#define CASE(NUMBER, type, combine) \
  case NUMBER: {                    \
    type a, b;                      \
    memcpy(&a, into, sizeof a);     \
    memcpy(&b, with, sizeof b);     \
    a = combine(a, b, reduction);   \
    memcpy(into, &a, sizeof a);     \
    return;                         \
  }

static rill_half combine_half(rill_half a, rill_half b, int reduction) {
  return rill_to_half(combine_float(rill_half_to_float(a), rill_half_to_float(b), reduction));
}
static rill_bfloat16 combine_bfloat16(rill_bfloat16 a, rill_bfloat16 b, int reduction) {
  return rill_to_bfloat16(combine_float(rill_bfloat16_to_float(a), rill_bfloat16_to_float(b), reduction));
}

static void combine(void *into, const void *with, int type, int reduction) {
  switch (type) {
    CASE(INT8, int8_t, combine_int8)
    CASE(UINT8, uint8_t, combine_uint8)
    CASE(INT32, int32_t, combine_int32)
    CASE(UINT32, uint32_t, combine_uint32)
    CASE(INT64, int64_t, combine_int64)
    CASE(UINT64, uint64_t, combine_uint64)
    CASE(HALF, rill_half, combine_half)
    CASE(FLOAT, float, combine_float)
    CASE(DOUBLE, double, combine_double)
    CASE(BFLOAT16, rill_bfloat16, combine_bfloat16)
    default: return;
  }
}

#define DIVIDE(NUMBER, type, number, from, to) \
  case NUMBER: {                               \
    type a;                                    \
    memcpy(&a, value, sizeof a);               \
    a = to((number)(from(a) / (number)ranks)); \
    memcpy(value, &a, sizeof a);               \
    return;                                    \
  }

static void divide(void *value, int type_of_value, int ranks) {
  switch (type_of_value) {
    DIVIDE(INT8, int8_t, int64_t, , (int8_t))
    DIVIDE(UINT8, uint8_t, uint64_t, , (uint8_t))
    DIVIDE(INT32, int32_t, int64_t, , (int32_t))
    DIVIDE(UINT32, uint32_t, uint64_t, , (uint32_t))
    DIVIDE(INT64, int64_t, int64_t, , )
    DIVIDE(UINT64, uint64_t, uint64_t, , )
    DIVIDE(HALF, rill_half, float, rill_half_to_float, rill_to_half)
    DIVIDE(FLOAT, float, float, , )
    DIVIDE(DOUBLE, double, double, , )
    DIVIDE(BFLOAT16, rill_bfloat16, float, rill_bfloat16_to_float, rill_to_bfloat16)
    default: return;
  }
}

/* Element `index` of all ranks' sources. */
static void reduce_element(struct fake_comm_op *const *ops, int ranks, size_t index, void *out) {
  const size_t size = fake_comm_size_of(ops[0]->type);
  memcpy(out, (const char *)ops[0]->src + index * size, size);
  for (int i = 1; i < ranks; i++) {
    combine(out, (const char *)ops[i]->src + index * size, ops[0]->type, ops[0]->reduction);
  }
  if (ops[0]->reduction == AVERAGE) divide(out, ops[0]->type, ranks);
}

static void gather(struct fake_comm_op *const *ops, int ranks) {
  const size_t part = ops[0]->count * fake_comm_size_of(ops[0]->type);
  for (int to = 0; to < ranks; to++) {
    for (int from = 0; from < ranks; from++) {
      char *dst = (char *)ops[to]->dst + part * (size_t)from;
      if (dst != ops[from]->src) memcpy(dst, ops[from]->src, part);
    }
  }
}

void fake_comm_compute(struct fake_comm_op *const *ops, int ranks) {
  const size_t size = fake_comm_size_of(ops[0]->type), count = ops[0]->count;
  const int root = ops[0]->peer;
  const enum fake_comm_kind kind = ops[0]->kind;
  if (kind == FAKE_ALL_GATHER) {
    gather(ops, ranks);
    return;
  }
  if (kind == FAKE_BROADCAST) {
    for (int to = 0; to < ranks; to++) {
      if (ops[to]->dst != NULL && ops[to]->dst != ops[root]->src) memcpy(ops[to]->dst, ops[root]->src, count * size);
    }
    return;
  }
  /* All sources of an element are read before a destination, which may be one of them, is written. */
  const size_t elements = kind == FAKE_REDUCE_SCATTER ? count * (size_t)ranks : count;
  for (size_t i = 0; i < elements; i++) {
    unsigned char value[8];
    reduce_element(ops, ranks, i, value);
    for (int to = 0; to < ranks; to++) {
      if (kind == FAKE_REDUCE_SCATTER && i / count != (size_t)to) continue;
      if (kind == FAKE_REDUCE && to != root) continue;
      memcpy((char *)ops[to]->dst + (kind == FAKE_REDUCE_SCATTER ? i % count : i) * size, value, size);
    }
  }
}
