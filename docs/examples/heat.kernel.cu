/* Computes one step of heat conduction on rows of `width` cells: rows first to last - 1 of `out`, from the same rows of
 * `in` and their neighbours. The outer columns do not change. */
#include <rill/device/kernel.h>

RILL_KERNEL(heat, int width, int first, int last, const float *in, float *out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = first + blockIdx.y;
  if (x >= width || y >= last) return;
  const int i = y * width + x;
  if (x == 0 || x == width - 1) {
    out[i] = in[i];
  } else {
    out[i] = in[i] + 0.2f * (in[i - width] + in[i + width] + in[i - 1] + in[i + 1] - 4.0f * in[i]);
  }
}
