/* MPI types and operators, and replacements for those that MPI lacks or gets wrong.
 *
 * MPI 3 has no 16-bit floating-point types.  They are two bytes here, and each step of a reduction rounds.  MPICH 4.0
 * compares unsigned integers as if they were signed; Open MPI 4.1 does so for one type.  Open MPI 4.1 saturates sums of
 * 8-bit integers on processors with AVX, where every other engine wraps around. */
#include "backends/comm/mpi_types.h"
#include "backends/comm/engine.h"

#include <rill/device/half.h>
#include <string.h>

enum { TYPES = RILL_COMM_BFLOAT16 + 1, OPERATORS = RILL_COMM_MIN + 1 };

static MPI_Datatype half, bfloat16, pair_type;
static MPI_Op own[TYPES][OPERATORS], joins_pairs;

/* Defines an MPI reduction: b = a OPERATOR b. */
#define OPERATOR(name, type, number, from, to, result)                          \
  static void name(void *in, void *inout, int *count, MPI_Datatype *datatype) { \
    const type *const in_ = in;                                                 \
    type *const out = inout;                                                    \
    (void)datatype;                                                             \
    for (int i = 0; i < *count; i++) {                                          \
      const number a = from(in_[i]), b = from(out[i]);                          \
      out[i] = to(result);                                                      \
    }                                                                           \
  }
#define LARGER a > b ? a : b
#define SMALLER a < b ? a : b
#define OF_FLOATS(name, type, from, to)                      \
  OPERATOR(sum_##name, type, float, from, to, a + b)         \
  OPERATOR(product_##name, type, float, from, to, (a) * (b)) \
  OPERATOR(max_##name, type, float, from, to, LARGER)        \
  OPERATOR(min_##name, type, float, from, to, SMALLER)
#define OF_INTEGERS(type)                      \
  OPERATOR(max_##type, type, type, , , LARGER) \
  OPERATOR(min_##type, type, type, , , SMALLER)

OF_FLOATS(half, rill_half, rill_half_to_float, rill_to_half)
OF_FLOATS(bfloat16, rill_bfloat16, rill_bfloat16_to_float, rill_to_bfloat16)
OPERATOR(sum_int8, int8_t, int, , (int8_t), a + b)
OPERATOR(sum_uint8, uint8_t, int, , (uint8_t), a + b)
OF_INTEGERS(uint8_t)
OF_INTEGERS(uint32_t)
OF_INTEGERS(uint64_t)

static MPI_User_function *const functions[TYPES][OPERATORS] = {
  [RILL_COMM_HALF] = { NULL, sum_half, product_half, max_half, min_half },
  [RILL_COMM_BFLOAT16] = { NULL, sum_bfloat16, product_bfloat16, max_bfloat16, min_bfloat16 },
  [RILL_COMM_INT8] = { [RILL_COMM_SUM] = sum_int8 },
  [RILL_COMM_UINT8] = { [RILL_COMM_SUM] = sum_uint8, [RILL_COMM_MAX] = max_uint8_t, [RILL_COMM_MIN] = min_uint8_t },
  [RILL_COMM_UINT32] = { [RILL_COMM_MAX] = max_uint32_t, [RILL_COMM_MIN] = min_uint32_t },
  [RILL_COMM_UINT64] = { [RILL_COMM_MAX] = max_uint64_t, [RILL_COMM_MIN] = min_uint64_t },
};

/* Returns the record of the lower rank among the records that are present; NULL if neither is. */
static const struct comm_record *choose(const struct comm_record *a, const struct comm_record *b) {
  if (a == NULL || a->ranks == 0) return b != NULL && b->ranks != 0 ? b : NULL;
  return b == NULL || b->ranks == 0 || a->rank < b->rank ? a : b;
}

/* b = a joined with b.  The result does not depend on the order in which MPI joins the ranks: it is the record of the
 * lowest rank, and the record of the lowest rank whose operation does not match it. */
static void join_pairs(void *in, void *inout, int *count, MPI_Datatype *datatype) {
  const struct comm_record *a = in;
  struct comm_record *b = inout;
  (void)datatype;
  for (int i = 0; i < *count; i++, a += 2, b += 2) {
    const bool a_first = a->rank < b->rank;
    const struct comm_record *const first = a_first ? a : b, *const second = a_first ? b : a;
    const struct comm_record *const differs = comm_records_match(first, second) ? second + 1 : second;
    const struct comm_record *const other = choose(first + 1, differs);
    const struct comm_record joined[2] = { *first, other != NULL ? *other : (struct comm_record){ .ranks = 0 } };
    memcpy(b, joined, sizeof joined);
  }
}

MPI_Datatype rill__comm_mpi_pair(void) { return pair_type; }
MPI_Op rill__comm_mpi_join_pairs(void) { return joins_pairs; }

void rill__comm_mpi_types_make(void) {
  (void)MPI_Type_contiguous(2 * (int)sizeof(struct comm_record), MPI_BYTE, &pair_type);
  (void)MPI_Type_commit(&pair_type);
  (void)MPI_Op_create(join_pairs, 1, &joins_pairs);
  (void)MPI_Type_contiguous(2, MPI_BYTE, &half);
  (void)MPI_Type_commit(&half);
  (void)MPI_Type_contiguous(2, MPI_BYTE, &bfloat16);
  (void)MPI_Type_commit(&bfloat16);
  for (int type = 0; type < TYPES; type++) {
    for (int op = 0; op < OPERATORS; op++) {
      if (functions[type][op] != NULL) (void)MPI_Op_create(functions[type][op], 1, &own[type][op]);
    }
  }
}

void rill__comm_mpi_types_free(void) {
  (void)MPI_Op_free(&joins_pairs);
  (void)MPI_Type_free(&pair_type);
  (void)MPI_Type_free(&half);
  (void)MPI_Type_free(&bfloat16);
  for (int type = 0; type < TYPES; type++) {
    for (int op = 0; op < OPERATORS; op++) {
      if (functions[type][op] != NULL) (void)MPI_Op_free(&own[type][op]);
    }
  }
}

MPI_Datatype rill__comm_mpi_type(uint32_t type) {
  switch (type) {
    case RILL_COMM_INT8: return MPI_INT8_T;
    case RILL_COMM_UINT8: return MPI_UINT8_T;
    case RILL_COMM_INT32: return MPI_INT32_T;
    case RILL_COMM_UINT32: return MPI_UINT32_T;
    case RILL_COMM_INT64: return MPI_INT64_T;
    case RILL_COMM_UINT64: return MPI_UINT64_T;
    case RILL_COMM_HALF: return half;
    case RILL_COMM_FLOAT: return MPI_FLOAT;
    case RILL_COMM_DOUBLE: return MPI_DOUBLE;
    default: return bfloat16;
  }
}

MPI_Op rill__comm_mpi_operator(uint32_t type, uint32_t op) {
  if (op == RILL_COMM_AVERAGE) op = RILL_COMM_SUM; /* the sum is divided afterwards */
  if (functions[type][op] != NULL) return own[type][op];
  switch (op) {
    case RILL_COMM_SUM: return MPI_SUM;
    case RILL_COMM_PRODUCT: return MPI_PROD;
    case RILL_COMM_MAX: return MPI_MAX;
    default: return MPI_MIN;
  }
}
