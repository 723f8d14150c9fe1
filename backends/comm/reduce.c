/* Reduction operators on arrays, for engines that move data on the host. */
#include "backends/comm/engine.h"

#include <rill/device/half.h>

/* wide: the type in which sums and products are computed; unsigned for integers, so that they wrap around.  from, to:
 * convert a value from and to the storage type. */
#define COMBINE(type, wide, number, from, to)                                \
  {                                                                          \
    type *const out = into;                                                  \
    const type *const in = with;                                             \
    for (size_t i = 0; i < count; i++) {                                     \
      const number a = from(out[i]), b = from(in[i]);                        \
      if (op == RILL_COMM_PRODUCT) out[i] = to((number)((wide)a * (wide)b)); \
      else if (op == RILL_COMM_MAX) out[i] = to(a > b ? a : b);              \
      else if (op == RILL_COMM_MIN) out[i] = to(a < b ? a : b);              \
      else out[i] = to((number)((wide)a + (wide)b));                         \
    }                                                                        \
    return;                                                                  \
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
