/* MPI types and operators, and replacements for those that MPI lacks or gets wrong.
 *
 * MPI 3 has no 16-bit floating-point types.  They are two bytes here, and each step of a reduction rounds.  MPICH 4.0
 * compares unsigned integers as if they were signed; Open MPI 4.1 does so for one type. */
#include "backends/comm/mpi_types.h"

#include <rill/comm.h>
#include <rill/device/half.h>

enum { TYPES = RILL_COMM_BFLOAT16 + 1, OPERATORS = RILL_COMM_MIN + 1 };

static MPI_Datatype half, bfloat16;
static MPI_Op own[TYPES][OPERATORS];

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
OF_INTEGERS(uint8_t)
OF_INTEGERS(uint32_t)
OF_INTEGERS(uint64_t)

static MPI_User_function *const functions[TYPES][OPERATORS] = {
  [RILL_COMM_HALF] = { NULL, sum_half, product_half, max_half, min_half },
  [RILL_COMM_BFLOAT16] = { NULL, sum_bfloat16, product_bfloat16, max_bfloat16, min_bfloat16 },
  [RILL_COMM_UINT8] = { [RILL_COMM_MAX] = max_uint8_t, [RILL_COMM_MIN] = min_uint8_t },
  [RILL_COMM_UINT32] = { [RILL_COMM_MAX] = max_uint32_t, [RILL_COMM_MIN] = min_uint32_t },
  [RILL_COMM_UINT64] = { [RILL_COMM_MAX] = max_uint64_t, [RILL_COMM_MIN] = min_uint64_t },
};

void rill__comm_mpi_types_make(void) {
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
