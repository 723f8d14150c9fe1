/* cpu_kernels.kernel.cu: what cpu_kernels.c runs in three ways.  cpu_opencl.c has the first four in OpenCL C. */
#include <rill/device/kernel.h>

RILL_KERNEL(saxpy, int n, float a, const float *x, float *y) {
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

RILL_KERNEL(triad, int n, double a, const double *x, const double *y, double *z) {
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + a * y[i];
}

RILL_KERNEL(reduce, int n, const float *x, float *sums) {
  __shared__ float s[256];
  const unsigned t = threadIdx.x;
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}

/* c = a * b, square, n a multiple of 16. */
RILL_KERNEL(sgemm, int n, const float *a, const float *b, float *c) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 16) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

RILL_KERNEL(warp_sum, int n, const float *x, float *sums) {
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
  for (unsigned step = 16; step > 0; step /= 2) v += rill_shuffle_down(v, step);
  if (threadIdx.x % 32 == 0) sums[i / 32] = v;
}

RILL_KERNEL(block_sum, int n, const float *x, float *sums) {
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float sum = rill_block_sum(i < n ? x[i] : 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

RILL_KERNEL(exponential, int n, const float *x, float *y) {
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = expf(-x[i]);
}

/* y = x * w, a row of numbers and a matrix: a thread for each column. */
RILL_KERNEL(columns, int rows, int count, const float *x, const float *w, float *y) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= count) return;
  float sum = 0.0f;
  for (int k = 0; k < rows; k++) sum += x[k] * w[k * count + column];
  y[column] = sum;
}

/* c = a * b, square: a thread for each element, without shared memory. */
RILL_KERNEL(plain_sgemm, int n, const float *a, const float *b, float *c) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

RILL_KERNEL(forces, int n, const float *x, const float *y, float *force) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float fx = 0.0f, fy = 0.0f;
  for (int k = 0; k < n; k++) {
    const float dx = x[k] - x[i], dy = y[k] - y[i], r = dx * dx + dy * dy + 0.01f, f = 1.0f / (r * sqrtf(r));
    fx += dx * f;
    fy += dy * f;
  }
  force[i] = fx * fx + fy * fy;
}

RILL_KERNEL(filter, int n, int taps, const float *x, const float *weights, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n - taps) return;
  float sum = 0.0f;
  for (int k = 0; k < taps; k++) sum += x[i + k] * weights[k];
  y[i] = sum;
}

RILL_KERNEL(gelu, int n, const float *x, float *y) {
  const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978846f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
