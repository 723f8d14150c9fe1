/* dialect_half.kernel.cu: numbers of 16 bits, one a thread. */
#include <rill/device/kernel.h>

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

RILL_KERNEL(half_to_floats, int n, const rill_half *x, float *y) {
  const int i = INDEX;
  if (i < n) y[i] = rill_to_float(x[i]);
}
RILL_KERNEL(half_from_floats, int n, const float *x, rill_half *y) {
  const int i = INDEX;
  if (i < n) y[i] = rill_to_half(x[i]);
}
RILL_KERNEL(bfloat16_to_floats, int n, const rill_bfloat16 *x, float *y) {
  const int i = INDEX;
  if (i < n) y[i] = rill_to_float(x[i]);
}
RILL_KERNEL(bfloat16_from_floats, int n, const float *x, rill_bfloat16 *y) {
  const int i = INDEX;
  if (i < n) y[i] = rill_to_bfloat16(x[i]);
}

/* y[0] to y[4]: sum, difference, product, quotient, negative of a; bits of `compared`: == != < <= > >=. */
template <class T> static __device__ void calculate(T a, T b, T *y, unsigned *compared) {
  y[0] = a + b;
  y[1] = a;
  y[1] -= b;
  y[2] = a * b;
  y[3] = a;
  y[3] /= b;
  y[4] = -a;
  *compared = (a == b) | (a != b) << 1 | (a < b) << 2 | (a <= b) << 3 | (a > b) << 4 | (a >= b) << 5;
}
RILL_KERNEL(half_arithmetic, int n, const rill_half *a, const rill_half *b, rill_half *y, unsigned *compared) {
  const int i = INDEX;
  if (i < n) calculate(a[i], b[i], y + 5 * i, compared + i);
}
RILL_KERNEL(bfloat16_arithmetic, int n, const rill_bfloat16 *a, const rill_bfloat16 *b, rill_bfloat16 *y,
            unsigned *compared) {
  const int i = INDEX;
  if (i < n) calculate(a[i], b[i], y + 5 * i, compared + i);
}

/* By value, and from lane to lane. */
RILL_KERNEL(half_by_value, rill_half a, rill_bfloat16 b, rill_half *x, rill_bfloat16 *y) {
  const unsigned t = threadIdx.x;
  const rill_half mine = rill_to_half(rill_to_float(a) + static_cast<float>(t));
  x[t] = rill_shuffle_xor(mine, 1);
  y[t] = rill_shuffle(b + rill_to_bfloat16(static_cast<float>(t)), 3);
}
