/* Operators on arrays, for engines that combine data on the host. */
#include "backends/comm/engine.h"

#include <rill/device/half.h>

/* The inner loop has a constant length, so that gcc vectorizes it with -O2. */
#define EACH(type, number, from, to, result)                \
  for (size_t i = 0, n; i < count; i += n) {                \
    enum { STEP = 64 };                                     \
    type *const restrict out = (type *)into + i;            \
    const type *const restrict in = (const type *)with + i; \
    n = count - i < STEP ? 1 : STEP;                        \
    if (n == STEP) {                                        \
      for (size_t k = 0; k < STEP; k++) {                   \
        const number a = from(out[k]), b = from(in[k]);     \
        out[k] = to(result);                                \
      }                                                     \
    } else {                                                \
      const number a = from(out[0]), b = from(in[0]);       \
      out[0] = to(result);                                  \
    }                                                       \
  }

/* wide: the type of sums and products, in which integers wrap around; from, to: convert a number of the type. */
#define COMBINE(type, wide, number, from, to)                                                 \
  switch (op) {                                                                               \
    case RILL_COMM_PRODUCT: EACH(type, number, from, to, (number)((wide)a * (wide)b)) return; \
    case RILL_COMM_MAX: EACH(type, number, from, to, a > b ? a : b) return;                   \
    case RILL_COMM_MIN: EACH(type, number, from, to, a < b ? a : b) return;                   \
    default: EACH(type, number, from, to, (number)((wide)a + (wide)b)) return;                \
  }

void rill__comm_combine(uint32_t type_of_data, uint32_t op, void *into, const void *with, size_t count) {
  switch (type_of_data) {
    case RILL_COMM_INT8: COMBINE(int8_t, uint64_t, int8_t, , )
    case RILL_COMM_UINT8: COMBINE(uint8_t, uint64_t, uint8_t, , )
    case RILL_COMM_INT32: COMBINE(int32_t, uint64_t, int32_t, , )
    case RILL_COMM_UINT32: COMBINE(uint32_t, uint64_t, uint32_t, , )
    case RILL_COMM_INT64: COMBINE(int64_t, uint64_t, int64_t, , )
    case RILL_COMM_UINT64: COMBINE(uint64_t, uint64_t, uint64_t, , )
    case RILL_COMM_HALF: COMBINE(rill_half, float, float, rill_half_to_float, rill_to_half)
    case RILL_COMM_FLOAT: COMBINE(float, float, float, , )
    case RILL_COMM_DOUBLE: COMBINE(double, double, double, , )
    default: COMBINE(rill_bfloat16, float, float, rill_bfloat16_to_float, rill_to_bfloat16)
  }
}

#define DIVIDE(type, number, from, to)                                                              \
  {                                                                                                 \
    type *const values = data;                                                                      \
    for (size_t i = 0; i < count; i++) values[i] = to((number)(from(values[i]) / (number)divisor)); \
    return;                                                                                         \
  }

void rill__comm_divide(uint32_t type_of_data, void *data, size_t count, uint32_t divisor) {
  switch (type_of_data) {
    case RILL_COMM_INT8: DIVIDE(int8_t, int64_t, , (int8_t))
    case RILL_COMM_UINT8: DIVIDE(uint8_t, uint64_t, , (uint8_t))
    case RILL_COMM_INT32: DIVIDE(int32_t, int64_t, , (int32_t))
    case RILL_COMM_UINT32: DIVIDE(uint32_t, uint64_t, , (uint32_t))
    case RILL_COMM_INT64: DIVIDE(int64_t, int64_t, , )
    case RILL_COMM_UINT64: DIVIDE(uint64_t, uint64_t, , )
    case RILL_COMM_HALF: DIVIDE(rill_half, float, rill_half_to_float, rill_to_half)
    case RILL_COMM_FLOAT: DIVIDE(float, float, , )
    case RILL_COMM_DOUBLE: DIVIDE(double, double, , )
    default: DIVIDE(rill_bfloat16, float, rill_bfloat16_to_float, rill_to_bfloat16)
  }
}
