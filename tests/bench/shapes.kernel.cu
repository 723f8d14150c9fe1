/* shapes.kernel.cu: loops as programs for CUDA have them; shapes_plain.c has each as plain C, and shapes.def their
 * sizes.
 *
 * With -DLOOP_BARRIER=__syncthreads each loop that all threads of a block run alike has a useless barrier in it. */
#ifndef LOOP_BARRIER
#define LOOP_BARRIER()
#endif

/* Elements one by one */

__global__ void saxpy(int n, float a, const float *x, const float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = a * x[i] + y[i];
}

__global__ void triad(int n, double a, const double *x, double *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + a * x[n + i];
}

__global__ void grid_stride(int n, float a, const float *x, const float *y, float *z) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) z[i] = a * x[i] + y[i];
}

__global__ void vectors(int n, const float4 *x, const float4 *y, float4 *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 a = x[i], b = y[i];
  z[i] = make_float4(a.x * b.x, a.y + b.y, a.z - b.z, a.w * b.w + 1.0f);
}

__global__ void polynomial(int n, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  z[i] = ((((((0.1f * v + 0.2f) * v - 0.3f) * v + 0.4f) * v - 0.5f) * v + 0.6f) * v - 0.7f) * v + 0.8f;
}

__global__ void polynomial_loop(int n, int k, const float *x, const float *coefficients, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum = sum * v + coefficients[j];
  }
  z[i] = sum;
}

__global__ void polynomial_fp64(int n, const double *x, double *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double v = x[i], sum = 0.0;
  for (int j = 1; j <= 12; j++) sum = sum * v + 1.0 / j;
  z[i] = sum;
}

__device__ float normal_cdf(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float tail = 0.39894228f * expf(-0.5f * d * d) *
               (k * (0.31938153f + k * (-0.35656378f + k * (1.7814779f + k * (-1.8212559f + k * 1.3302744f)))));
  return d > 0.0f ? 1.0f - tail : tail;
}

__global__ void black_scholes(int n, const float *prices, const float *strikes, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float rate = 0.02f, volatility = 0.3f, years = 1.5f;
  float s = prices[i], x = strikes[n + i], root = sqrtf(years);
  float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * years) / (volatility * root);
  float d2 = d1 - volatility * root, discount = expf(-rate * years);
  float call = s * normal_cdf(d1) - x * discount * normal_cdf(d2);
  z[2 * i] = call;
  z[2 * i + 1] = x * discount - s + call;
}

__global__ void gelu(int n, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978846f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

__global__ void gelu_erf(int n, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = 0.5f * x[i] * (1.0f + erff(0.70710678f * x[i]));
}

__global__ void silu(int n, const float *x, const float *gate, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] / (1.0f + expf(-x[i])) * gate[i];
}

__global__ void gamma_curve(int n, const float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = powf(y[i], 0.4545f);
}

__global__ void polar(int n, const float *x, const float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  z[i] = sqrtf(x[i] * x[i] + y[i] * y[i]);
  z[n + i] = atan2f(x[i], y[i]);
}

__global__ void branches(int n, const float *x, const float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  if (v < -0.5f) z[i] = -1.0f;
  else if (v < 0.0f) z[i] = 0.1f * v;
  else if (v < 0.5f) z[i] = v * y[i];
  else z[i] = sqrtf(v) + y[i];
}

__global__ void complex_product(int n, const float2 *x, const float2 *y, float2 *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 a = x[i], b = y[i];
  z[i] = make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__global__ void rope(int n, int k, const float *x, float *z) {
  int pair = threadIdx.x, position = blockIdx.x;
  float angle = position * expf(-9.2103404f * (2 * pair) / k), c = cosf(angle), s = sinf(angle);
  float a = x[position * k + 2 * pair], b = x[position * k + 2 * pair + 1];
  z[position * k + 2 * pair] = a * c - b * s;
  z[position * k + 2 * pair + 1] = a * s + b * c;
}

__global__ void strided(int n, int k, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i * k] * 2.0f;
}

__global__ void bits(int n, const unsigned *x, unsigned *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = x[i];
  v ^= v >> 16;
  v *= 0x7feb352du;
  v ^= v >> 15;
  v *= 0x846ca68bu;
  z[i] = (v ^ v >> 16) + __popc(v);
}

__global__ void quotients(int n, int k, const int *x, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] / k * 3 + x[i] % k;
}

__global__ void gray(int n, const unsigned char *rgb, unsigned char *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}

__global__ void half_axpy(int n, const half *x, half *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = __hfma(__float2half(1.5f), x[i], x[n + i]);
}

__global__ void half2_product(int n, const half2 *x, half2 *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = __hadd2(__hmul2(x[i], x[n + i]), x[i]);
}

__global__ void to_half(int n, const float *x, half *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = __float2half(x[i]);
}

/* Numbers from elsewhere */

__global__ void gather(int n, const float *x, const int *index, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[index[i]];
}

__global__ void scatter(int n, const float *x, const int *index, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[index[i]] = x[i];
}

__global__ void embedding(int k, const float *table, const int *index, float *z) {
  int row = index[blockIdx.x] & 4095;
  for (int j = threadIdx.x; j < k; j += blockDim.x) z[blockIdx.x * k + j] = table[row * k + j];
}

__global__ void lower_bound(int n, int k, const int *sorted, const int *keys, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int low = 0, high = k;
  while (low < high) {
    int middle = (low + high) / 2;
    if (sorted[middle] < keys[i]) low = middle + 1;
    else high = middle;
  }
  z[i] = low;
}

__global__ void spmv_thread(int n, int k, const int *starts, const int *columns, const float *values, const float *x,
                            float *z) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = starts[row]; j < starts[row + 1]; j++) sum += values[j] * x[columns[j] & (k - 1)];
  z[row] = sum;
}

__global__ void spmv_warp(int n, int k, const int *starts, const int *columns, const float *values, const float *x,
                          float *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = starts[row] + in_warp; j < starts[row + 1]; j += 32) sum += values[j] * x[columns[j] & (k - 1)];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (in_warp == 0) z[row] = sum;
}

__global__ void spmv_ell(int n, int k, const int *columns, const float *values, const float *x, float *z) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += values[j * n + row] * x[columns[j * n + row] & 16383];
  }
  z[row] = sum;
}

__global__ void checksum(int n, int k, const unsigned char *bytes, const unsigned *table, unsigned *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned sum = ~0u;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum = table[(sum ^ bytes[i * k + j]) & 255] ^ sum >> 8;
  }
  z[i] = ~sum;
}

/* Matrix by vector */

__global__ void matvec_row(int n, int k, const float *a, const float *x, float *z) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += a[row * k + j] * x[j];
  }
  z[row] = sum;
}

__global__ void matvec_column(int n, int k, const float *a, const float *x, float *z) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += a[j * n + column] * x[j];
  }
  z[column] = sum;
}

__global__ void matvec_warp(int n, int k, const float *a, const float *x, float *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = in_warp; j < k; j += 32) sum += a[row * k + j] * x[j];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (in_warp == 0) z[row] = sum;
}

__device__ float block_sum(float v) {
  __shared__ float warps[32];
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
  if (threadIdx.x < 32) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
    if (threadIdx.x == 0) warps[0] = v;
  }
  __syncthreads();
  return warps[0];
}

__global__ void matvec_block(int k, const float *a, const float *x, float *z) {
  float sum = 0.0f;
  for (int j = threadIdx.x; j < k; j += blockDim.x) sum += a[blockIdx.x * k + j] * x[j];
  sum = block_sum(sum);
  if (threadIdx.x == 0) z[blockIdx.x] = sum;
}

__global__ void matvec_half(int n, int k, const half *a, const float *x, float *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = in_warp; j < k; j += 32) sum += __half2float(a[row * k + j]) * x[j];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (in_warp == 0) z[row] = sum;
}

__global__ void matvec_bfloat16(int n, int k, const __nv_bfloat16 *a, const float *x, float *z) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += __bfloat162float(a[row * k + j]) * x[j];
  }
  z[row] = sum;
}

__global__ void int8_thread(int n, int k, const signed char *a, const signed char *x, int *z) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  int sum = 0;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += a[row * k + j] * x[j];
  }
  z[row] = sum;
}

__global__ void int8_warp(int n, int k, const int *a, const int *x, int *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  int sum = 0;
  for (int j = in_warp; j < k / 4; j += 32) sum = __dp4a(a[row * (k / 4) + j], x[j], sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (in_warp == 0) z[row] = sum;
}

struct q4_block {
  float scale;
  unsigned char pairs[16];
};

__global__ void q4_warp(int n, int k, const q4_block *a, const float *x, float *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float sum = 0.0f;
  for (int b = in_warp; b < k / 32; b += 32) {
    const q4_block *block = &a[row * (k / 32) + b];
    float part = 0.0f;
    for (int j = 0; j < 16; j++) {
      part += ((block->pairs[j] & 15) - 8) * x[32 * b + j];
      part += ((block->pairs[j] >> 4) - 8) * x[32 * b + 16 + j];
    }
    sum += part * block->scale;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (in_warp == 0) z[row] = sum;
}

/* Matrices */

__global__ void sgemm_plain(int n, int k, const float *a, const float *b, float *c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= k) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += a[row * k + j] * b[j * k + column];
  }
  c[row * k + column] = sum;
}

__global__ void sgemm_tiled(int k, const float *a, const float *b, float *c) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0.0f;
  for (int t = 0; t < k; t += 16) {
    tile_a[y][x] = a[row * k + t + x];
    tile_b[y][x] = b[(t + y) * k + column];
    __syncthreads();
    for (int j = 0; j < 16; j++) sum += tile_a[y][j] * tile_b[j][x];
    __syncthreads();
  }
  c[row * k + column] = sum;
}

__global__ void distances(int n, int k, const float *x, const float *y, float *z) {
  int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    float d = x[row * k + j] - y[column * k + j];
    sum += d * d;
  }
  z[row * n + column] = sqrtf(sum);
}

__global__ void transpose(int n, int k, const float *x, float *z) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && column < k) z[column * n + row] = x[row * k + column];
}

__global__ void transpose_tiled(int n, int k, const float *x, float *z) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * k + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) z[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void small_products(int n, const float *a, const float *b, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int row = 0; row < 4; row++)
    for (int column = 0; column < 4; column++) {
      float sum = 0.0f;
      for (int j = 0; j < 4; j++) sum += a[i * 16 + row * 4 + j] * b[i * 16 + j * 4 + column];
      c[i * 16 + row * 4 + column] = sum;
    }
}

__global__ void lu4(int n, const float *x, const float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a[4][4], b[4];
  for (int r = 0; r < 4; r++) {
    for (int c = 0; c < 4; c++) a[r][c] = x[i * 16 + r * 4 + c] + (r == c ? 4.0f : 0.0f);
    b[r] = y[i * 4 + r];
  }
  for (int p = 0; p < 4; p++)
    for (int r = p + 1; r < 4; r++) {
      float factor = a[r][p] / a[p][p];
      for (int c = p; c < 4; c++) a[r][c] -= factor * a[p][c];
      b[r] -= factor * b[p];
    }
  for (int r = 3; r >= 0; r--) {
    for (int c = r + 1; c < 4; c++) b[r] -= a[r][c] * b[c];
    b[r] /= a[r][r];
    z[i * 4 + r] = b[r];
  }
}

__global__ void tridiagonal(int n, int k, const float *x, const float *y, float *work, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float c = 0.0f, d = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    float lower = x[j * n + i], pivot = 1.0f / (4.0f - lower * c);
    c = 0.5f * pivot;
    d = (y[j * n + i] - lower * d) * pivot;
    work[j * n + i] = c;
    z[j * n + i] = d;
  }
  for (int j = k - 2; j >= 0; j--) {
    LOOP_BARRIER();
    d = z[j * n + i] - work[j * n + i] * d;
    z[j * n + i] = d;
  }
}

/* Neighbours */

__global__ void filter_1d(int n, int k, const float *x, const float *weights, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    sum += x[i + j] * weights[j];
  }
  z[i] = sum;
}

__global__ void filter_border(int n, int k, const float *x, const float *weights, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = -k; j <= k; j++) {
    LOOP_BARRIER();
    int at = i + j;
    if (at < 0 || at >= n) continue;
    sum += x[at] * weights[k + j];
  }
  z[i] = sum;
}

__global__ void filter_2d(int n, int k, const float *x, const float *weights, float *z) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= k) return;
  float sum = 0.0f;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++) {
      int r = min(max(row + dy, 0), n - 1), c = min(max(column + dx, 0), k - 1);
      sum += x[r * k + c] * weights[(dy + 2) * 5 + dx + 2];
    }
  z[row * k + column] = sum;
}

__global__ void convolution(int n, int channels, const float *__restrict__ x, const float *__restrict__ weights,
                            float *__restrict__ z) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y, out = blockIdx.z;
  if (column >= n - 2) return;
  float sum = 0.0f;
  for (int c = 0; c < channels; c++) {
    LOOP_BARRIER();
    for (int dy = 0; dy < 3; dy++)
      for (int dx = 0; dx < 3; dx++)
        sum += x[(c * n + row + dy) * n + column + dx] * weights[(out * channels + c) * 9 + dy * 3 + dx];
  }
  z[(out * (n - 2) + row) * (n - 2) + column] = sum;
}

__global__ void stencil_1d(int n, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) z[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

__global__ void stencil_2d(int n, int k, const float *x, float *z) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < 1 || r >= n - 1 || c < 1 || c >= k - 1) return;
  z[r * k + c] =
      0.5f * x[r * k + c] + 0.125f * (x[(r - 1) * k + c] + x[(r + 1) * k + c] + x[r * k + c - 1] + x[r * k + c + 1]);
}

__global__ void stencil_2d_shared(int n, int k, const float *x, float *z) {
  __shared__ float tile[18][34];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  tile[ty][tx] = x[r * k + c];
  if (tx == 1 && c > 0) tile[ty][0] = x[r * k + c - 1];
  if (tx == 32 && c < k - 1) tile[ty][33] = x[r * k + c + 1];
  if (ty == 1 && r > 0) tile[0][tx] = x[(r - 1) * k + c];
  if (ty == 16 && r < n - 1) tile[17][tx] = x[(r + 1) * k + c];
  __syncthreads();
  if (r > 0 && r < n - 1 && c > 0 && c < k - 1)
    z[r * k + c] =
        0.5f * tile[ty][tx] + 0.125f * (tile[ty - 1][tx] + tile[ty + 1][tx] + tile[ty][tx - 1] + tile[ty][tx + 1]);
}

__global__ void stencil_3d(int n, int k, const float *x, float *z) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < 1 || r >= k - 1 || c < 1 || c >= k - 1) return;
  for (int p = 1; p < n - 1; p++) {
    LOOP_BARRIER();
    int i = (p * k + r) * k + c;
    z[i] = 0.4f * x[i] + 0.1f * (x[i - 1] + x[i + 1] + x[i - k] + x[i + k] + x[i - k * k] + x[i + k * k]);
  }
}

__global__ void max_pool(int n, int k, const float *x, float *z) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (c >= k) return;
  float best = -INFINITY;
  for (int dy = 0; dy < 2; dy++)
    for (int dx = 0; dx < 2; dx++) best = fmaxf(best, x[(2 * r + dy) * 2 * k + 2 * c + dx]);
  z[r * k + c] = best;
}

__global__ void resize(int n, int k, const float *x, float *z) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (c >= k) return;
  float fy = r * 0.7f, fx = c * 0.7f;
  int y0 = (int)fy, x0 = (int)fx;
  float dy = fy - y0, dx = fx - x0;
  const float *p = &x[y0 * k + x0];
  z[r * k + c] = (p[0] * (1.0f - dx) + p[1] * dx) * (1.0f - dy) + (p[k] * (1.0f - dx) + p[k + 1] * dx) * dy;
}

/* Rows of numbers */

__device__ float block_max(float v) {
  __shared__ float shared[256];
  __syncthreads();
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  return shared[0];
}

__global__ void softmax_block(int k, const float *x, float *z) {
  const float *row = x + blockIdx.x * k;
  float *out = z + blockIdx.x * k, most = -INFINITY, sum = 0.0f;
  for (int j = threadIdx.x; j < k; j += blockDim.x) most = fmaxf(most, row[j]);
  most = block_max(most);
  for (int j = threadIdx.x; j < k; j += blockDim.x) {
    float e = expf(row[j] - most);
    out[j] = e;
    sum += e;
  }
  sum = block_sum(sum);
  for (int j = threadIdx.x; j < k; j += blockDim.x) out[j] /= sum;
}

__global__ void softmax_warp(int n, int k, const float *x, float *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float most = -INFINITY, sum = 0.0f;
  for (int j = in_warp; j < k; j += 32) most = fmaxf(most, x[row * k + j]);
  for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
  for (int j = in_warp; j < k; j += 32) sum += expf(x[row * k + j] - most);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  for (int j = in_warp; j < k; j += 32) z[row * k + j] = expf(x[row * k + j] - most) / sum;
}

__global__ void layer_norm(int k, const float *x, const float *weight, float *z) {
  const float *row = x + blockIdx.x * k;
  float sum = 0.0f, squares = 0.0f;
  for (int j = threadIdx.x; j < k; j += blockDim.x) sum += row[j];
  float mean = block_sum(sum) / k;
  for (int j = threadIdx.x; j < k; j += blockDim.x) squares += (row[j] - mean) * (row[j] - mean);
  float scale = rsqrtf(block_sum(squares) / k + 1e-5f);
  for (int j = threadIdx.x; j < k; j += blockDim.x) z[blockIdx.x * k + j] = (row[j] - mean) * scale * weight[j] + 0.5f;
}

__global__ void rms_norm(int n, int k, const float *x, const float *weight, float *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float squares = 0.0f;
  for (int j = in_warp; j < k; j += 32) squares += x[row * k + j] * x[row * k + j];
  for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffff, squares, step);
  float scale = rsqrtf(squares / k + 1e-5f);
  for (int j = in_warp; j < k; j += 32) z[row * k + j] = x[row * k + j] * scale * weight[j];
}

__global__ void argmax_warp(int n, int k, const float *x, int *z) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, in_warp = threadIdx.x % 32;
  if (row >= n) return;
  float best = -INFINITY;
  int at = 0;
  for (int j = in_warp; j < k; j += 32) {
    float v = x[row * k + j];
    if (v > best) {
      best = v;
      at = j;
    }
  }
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_xor_sync(0xffffffff, best, step);
    int place = __shfl_xor_sync(0xffffffff, at, step);
    if (other > best || (other == best && place < at)) {
      best = other;
      at = place;
    }
  }
  if (in_warp == 0) z[row] = at;
}

__global__ void attention(int k, const float *__restrict__ queries, const float *__restrict__ keys,
                          const float *__restrict__ values, float *__restrict__ z) {
  __shared__ float scores[1024];
  int head = blockIdx.x;
  float most = -INFINITY, sum = 0.0f;
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    float score = 0.0f;
    for (int d = 0; d < 64; d++) score += queries[head * 64 + d] * keys[(head * k + t) * 64 + d];
    scores[t] = score * 0.125f;
    most = fmaxf(most, scores[t]);
  }
  most = block_max(most);
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    scores[t] = expf(scores[t] - most);
    sum += scores[t];
  }
  sum = block_sum(sum);
  for (int d = threadIdx.x; d < 64; d += blockDim.x) {
    float out = 0.0f;
    for (int t = 0; t < k; t++) out += scores[t] * values[(head * k + t) * 64 + d];
    z[head * 64 + d] = out / sum;
  }
}

__global__ void attention_half(int k, const half *__restrict__ queries, const half *__restrict__ keys,
                               const half *__restrict__ values, float *__restrict__ z) {
  __shared__ float scores[1024];
  int head = blockIdx.x;
  float most = -INFINITY, sum = 0.0f;
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    float score = 0.0f;
    for (int d = 0; d < 64; d++)
      score += __half2float(queries[head * 64 + d]) * __half2float(keys[(head * k + t) * 64 + d]);
    scores[t] = score * 0.125f;
    most = fmaxf(most, scores[t]);
  }
  most = block_max(most);
  for (int t = threadIdx.x; t < k; t += blockDim.x) {
    scores[t] = expf(scores[t] - most);
    sum += scores[t];
  }
  sum = block_sum(sum);
  for (int d = threadIdx.x; d < 64; d += blockDim.x) {
    float out = 0.0f;
    for (int t = 0; t < k; t++) out += scores[t] * __half2float(values[(head * k + t) * 64 + d]);
    z[head * 64 + d] = out / sum;
  }
}

/* Sums */

__global__ void sum_tree(const float *x, float *z) {
  __shared__ float shared[256];
  shared[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) z[blockIdx.x] = shared[0];
}

__global__ void sum_shuffles(int n, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
  if (threadIdx.x % 32 == 0) z[i / 32] = v;
}

__global__ void dot_atomic(int n, const float *x, const float *y, float *z) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += x[i] * y[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(z, sum);
}

__global__ void max_block(int k, const float *x, float *z) {
  float most = -INFINITY;
  for (int j = threadIdx.x; j < k; j += blockDim.x) most = fmaxf(most, x[blockIdx.x * k + j]);
  most = block_max(most);
  if (threadIdx.x == 0) z[blockIdx.x] = most;
}

__global__ void column_sums(int n, int k, const float *x, float *z) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  float sum = 0.0f;
  for (int row = 0; row < k; row++) {
    LOOP_BARRIER();
    sum += x[row * n + column];
  }
  z[column] = sum;
}

__global__ void histogram_shared(int k, const unsigned char *bytes, int *z) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int j = threadIdx.x; j < k; j += blockDim.x) atomicAdd(&bins[bytes[blockIdx.x * k + j]], 1);
  __syncthreads();
  z[blockIdx.x * 256 + threadIdx.x] = bins[threadIdx.x];
}

__global__ void histogram_global(int n, const unsigned char *bytes, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&z[bytes[i]], 1);
}

__global__ void scan_block(const float *x, float *z) {
  __shared__ float shared[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  shared[t] = x[i];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    float other = t >= step ? shared[t - step] : 0.0f;
    __syncthreads();
    shared[t] += other;
    __syncthreads();
  }
  z[i] = shared[t];
}

__global__ void scan_warp(const int *x, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, in_warp = threadIdx.x % 32, v = x[i];
  for (int step = 1; step < 32; step *= 2) {
    int other = __shfl_up_sync(0xffffffff, v, step);
    if (in_warp >= step) v += other;
  }
  z[i] = v;
}

/* Work within a thread, a block */

__global__ void sort_8(int n, const float *x, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v[8];
  for (int j = 0; j < 8; j++) v[j] = x[i * 8 + j];
  for (int round = 0; round < 8; round++)
    for (int j = round % 2; j < 7; j += 2) {
      float low = fminf(v[j], v[j + 1]), high = fmaxf(v[j], v[j + 1]);
      v[j] = low;
      v[j + 1] = high;
    }
  for (int j = 0; j < 8; j++) z[i * 8 + j] = v[j];
}

__global__ void sort_block(const float *x, float *z) {
  __shared__ float v[256];
  int t = threadIdx.x;
  v[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int size = 2; size <= 256; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      int other = t ^ step;
      if (other > t) {
        float a = v[t], b = v[other];
        if ((a > b) == ((t & size) == 0)) {
          v[t] = b;
          v[other] = a;
        }
      }
      __syncthreads();
    }
  z[blockIdx.x * 256 + t] = v[t];
}

__global__ void mandelbrot(int n, int k, int *z) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= k) return;
  float cx = -2.0f + 3.0f * column / k, cy = -1.2f + 2.4f * row / n, x = 0.0f, y = 0.0f;
  int rounds = 0;
  while (rounds < 128 && x * x + y * y < 4.0f) {
    float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    rounds++;
  }
  z[row * k + column] = rounds;
}

__global__ void logistic_map(int n, int k, const float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = 0.5f * y[i];
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    v = 2.5f * v * (1.0f - v);
  }
  z[i] = v;
}

__global__ void monte_carlo(int n, int k, int *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = i * 2654435761u + 1u;
  int inside = 0;
  for (int j = 0; j < k; j++) {
    LOOP_BARRIER();
    state = state * 1664525u + 1013904223u;
    float a = (state >> 8) * 5.9604645e-8f;
    state = state * 1664525u + 1013904223u;
    float b = (state >> 8) * 5.9604645e-8f;
    if (a * a + b * b < 1.0f) inside++;
  }
  z[i] = inside;
}

__global__ void n_body(int n, const float4 *bodies, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 me = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < n; j++) {
    LOOP_BARRIER();
    float4 body = bodies[j];
    float dx = body.x - me.x, dy = body.y - me.y, dz = body.z - me.z;
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = body.w * inverse * inverse * inverse;
    ax += dx * f;
    ay += dy * f;
    az += dz * f;
  }
  z[3 * i] = ax;
  z[3 * i + 1] = ay;
  z[3 * i + 2] = az;
}

__global__ void n_body_tiled(int n, const float4 *bodies, float *z) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += 256) {
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; j++) {
      float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = tile[j].w * inverse * inverse * inverse;
      ax += dx * f;
      ay += dy * f;
      az += dz * f;
    }
    __syncthreads();
  }
  z[3 * i] = ax;
  z[3 * i + 1] = ay;
  z[3 * i + 2] = az;
}
