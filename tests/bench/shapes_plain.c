/* shapes_plain.c: the kernels of shapes.kernel.cu as plain C, each a function for a part of its units, as a program
 * would give it to the threads of OpenMP.  SIDE is put before the functions' names: each compiler makes its own. */
#include "shapes.h"

#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define SHAPE_FUNCTION(name)                                                    \
  void JOIN(SIDE, name)(const struct shape_data *d, size_t first, size_t last); \
  void JOIN(SIDE, name)(const struct shape_data *d, size_t first, size_t last)

#ifdef __clang__
typedef __fp16 half;
#else
typedef _Float16 half;
#endif

static void atomic_add(float *p, float v) {
  uint32_t old = 0, new = 0;
  __atomic_load((uint32_t *)p, &old, __ATOMIC_RELAXED);
  do {
    float sum = 0;
    memcpy(&sum, &old, sizeof sum);
    sum += v;
    memcpy(&new, &sum, sizeof new);
  } while (!__atomic_compare_exchange((uint32_t *)p, &old, &new, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Elements one by one */

SHAPE_FUNCTION(saxpy) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = 1.5f * x[i] + y[i];
}

SHAPE_FUNCTION(triad) {
  const double *x = d->dx, *y = d->dx + d->n;
  double *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = x[i] + 1.5 * y[i];
}

SHAPE_FUNCTION(grid_stride) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = 1.5f * x[i] + y[i];
}

SHAPE_FUNCTION(vectors) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z;
  for (size_t i = 4 * first; i < 4 * last; i += 4) {
    z[i] = x[i] * y[i];
    z[i + 1] = x[i + 1] + y[i + 1];
    z[i + 2] = x[i + 2] - y[i + 2];
    z[i + 3] = x[i + 3] * y[i + 3] + 1.0f;
  }
}

SHAPE_FUNCTION(polynomial) {
  const float *x = d->x;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float v = x[i];
    z[i] = ((((((0.1f * v + 0.2f) * v - 0.3f) * v + 0.4f) * v - 0.5f) * v + 0.6f) * v - 0.7f) * v + 0.8f;
  }
}

SHAPE_FUNCTION(polynomial_loop) {
  const float *x = d->x, *coefficients = d->y;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const float v = x[i];
    float sum = 0;
    for (size_t j = 0; j < k; j++) sum = sum * v + coefficients[j];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(polynomial_fp64) {
  const double *x = d->dx;
  double *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const double v = x[i];
    double sum = 0;
    for (int j = 1; j <= 12; j++) sum = sum * v + 1.0 / j;
    z[i] = sum;
  }
}

static inline float normal_cdf(float v) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(v));
  const float tail = 0.39894228f * expf(-0.5f * v * v) *
                     (k * (0.31938153f + k * (-0.35656378f + k * (1.7814779f + k * (-1.8212559f + k * 1.3302744f)))));
  return v > 0.0f ? 1.0f - tail : tail;
}

SHAPE_FUNCTION(black_scholes) {
  const float *prices = d->y, *strikes = d->y + d->n, rate = 0.02f, volatility = 0.3f, years = 1.5f;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float s = prices[i], x = strikes[i], root = sqrtf(years);
    const float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * years) / (volatility * root);
    const float d2 = d1 - volatility * root, discount = expf(-rate * years);
    const float call = s * normal_cdf(d1) - x * discount * normal_cdf(d2);
    z[2 * i] = call;
    z[2 * i + 1] = x * discount - s + call;
  }
}

SHAPE_FUNCTION(gelu) {
  const float *x = d->x;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++)
    z[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978846f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

SHAPE_FUNCTION(gelu_erf) {
  const float *x = d->x;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = 0.5f * x[i] * (1.0f + erff(0.70710678f * x[i]));
}

SHAPE_FUNCTION(silu) {
  const float *x = d->x, *gate = d->y;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = x[i] / (1.0f + expf(-x[i])) * gate[i];
}

SHAPE_FUNCTION(gamma_curve) {
  const float *y = d->y;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = powf(y[i], 0.4545f);
}

SHAPE_FUNCTION(polar) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z;
  const size_t n = d->n;
  for (size_t i = first; i < last; i++) {
    z[i] = sqrtf(x[i] * x[i] + y[i] * y[i]);
    z[n + i] = atan2f(x[i], y[i]);
  }
}

SHAPE_FUNCTION(branches) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float v = x[i];
    if (v < -0.5f) z[i] = -1.0f;
    else if (v < 0.0f) z[i] = 0.1f * v;
    else if (v < 0.5f) z[i] = v * y[i];
    else z[i] = sqrtf(v) + y[i];
  }
}

SHAPE_FUNCTION(complex_product) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z;
  for (size_t i = 2 * first; i < 2 * last; i += 2) {
    z[i] = x[i] * y[i] - x[i + 1] * y[i + 1];
    z[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i];
  }
}

SHAPE_FUNCTION(rope) {
  const size_t k = d->k;
  for (size_t position = first; position < last; position++) {
    const float *x = d->x + position * k;
    float *restrict z = (float *)d->z + position * k;
    for (size_t pair = 0; pair < k / 2; pair++) {
      const float angle = (float)position * expf(-9.2103404f * (float)(2 * pair) / (float)k);
      const float c = cosf(angle), s = sinf(angle), a = x[2 * pair], b = x[2 * pair + 1];
      z[2 * pair] = a * c - b * s;
      z[2 * pair + 1] = a * s + b * c;
    }
  }
}

SHAPE_FUNCTION(strided) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) z[i] = x[i * k] * 2.0f;
}

SHAPE_FUNCTION(bits) {
  const unsigned *x = (const unsigned *)d->index;
  unsigned *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    unsigned v = x[i];
    v ^= v >> 16;
    v *= 0x7feb352du;
    v ^= v >> 15;
    v *= 0x846ca68bu;
    z[i] = (v ^ v >> 16) + (unsigned)__builtin_popcount(v);
  }
}

SHAPE_FUNCTION(quotients) {
  const int *x = d->index, k = (int)d->k;
  int *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = x[i] / k * 3 + x[i] % k;
}

SHAPE_FUNCTION(gray) {
  const uint8_t *rgb = d->bytes;
  uint8_t *restrict z = d->z;
  for (size_t i = first; i < last; i++)
    z[i] = (uint8_t)((77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8);
}

SHAPE_FUNCTION(half_axpy) {
  const half *x = (const half *)d->h, *y = x + d->n;
  half *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = (half)(1.5f * (float)x[i] + (float)y[i]);
}

SHAPE_FUNCTION(half2_product) {
  const half *x = (const half *)d->h, *y = x + 2 * d->n;
  half *restrict z = d->z;
  for (size_t i = 2 * first; i < 2 * last; i++) {
    const half product = (half)((float)x[i] * (float)y[i]);
    z[i] = (half)((float)product + (float)x[i]);
  }
}

SHAPE_FUNCTION(to_half) {
  const float *x = d->x;
  half *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = (half)x[i];
}

/* Numbers from elsewhere */

SHAPE_FUNCTION(gather) {
  const float *x = d->x;
  const int *index = d->index;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = x[index[i]];
}

SHAPE_FUNCTION(scatter) {
  const float *x = d->x;
  const int *index = d->index;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[index[i]] = x[i];
}

SHAPE_FUNCTION(embedding) {
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const float *row = d->x + (size_t)(d->index[i] & 4095) * k;
    float *restrict z = (float *)d->z + i * k;
    for (size_t j = 0; j < k; j++) z[j] = row[j];
  }
}

SHAPE_FUNCTION(lower_bound) {
  const int *sorted = d->sorted, *keys = d->index, k = (int)d->k;
  int *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    int low = 0, high = k;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (sorted[middle] < keys[i]) low = middle + 1;
      else high = middle;
    }
    z[i] = low;
  }
}

SHAPE_FUNCTION(spmv_thread) {
  const float *values = d->y, *x = d->x;
  const int *starts = d->starts, *columns = d->index, mask = (int)d->k - 1;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int j = starts[i]; j < starts[i + 1]; j++) sum += values[j] * x[columns[j] & mask];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(spmv_warp) { JOIN(SIDE, spmv_thread)(d, first, last); }

SHAPE_FUNCTION(spmv_ell) {
  const float *values = d->y, *x = d->x;
  const int *columns = d->index;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = 0;
  for (size_t j = 0; j < d->k; j++)
    for (size_t i = first; i < last; i++) z[i] += values[j * d->n + i] * x[columns[j * d->n + i] & 16383];
}

SHAPE_FUNCTION(checksum) {
  const uint8_t *bytes = d->bytes;
  const unsigned *table = (const unsigned *)d->index;
  unsigned *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    unsigned sum = ~0u;
    for (size_t j = 0; j < k; j++) sum = table[(sum ^ bytes[i * k + j]) & 255] ^ sum >> 8;
    z[i] = ~sum;
  }
}

/* Matrix by vector */

SHAPE_FUNCTION(matvec_row) {
  const float *x = d->y;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const float *a = d->x + i * k;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < k; j++) sum += a[j] * x[j];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(matvec_warp) { JOIN(SIDE, matvec_row)(d, first, last); }
SHAPE_FUNCTION(matvec_block) { JOIN(SIDE, matvec_row)(d, first, last); }

SHAPE_FUNCTION(matvec_column) {
  const float *x = d->y;
  float *restrict z = d->z;
  const size_t n = d->n, k = d->k;
  for (size_t i = first; i < last; i++) z[i] = 0;
  for (size_t j = 0; j < k; j++) {
    const float *a = d->x + j * n, factor = x[j];
    for (size_t i = first; i < last; i++) z[i] += a[i] * factor;
  }
}

SHAPE_FUNCTION(matvec_half) {
  const float *x = d->y;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const half *a = (const half *)d->h + i * k;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < k; j++) sum += (float)a[j] * x[j];
    z[i] = sum;
  }
}

static inline float from_bfloat16(uint16_t v) {
  const uint32_t bits = (uint32_t)v << 16;
  float f = 0;
  memcpy(&f, &bits, sizeof f);
  return f;
}

SHAPE_FUNCTION(matvec_bfloat16) {
  const float *x = d->y;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const uint16_t *a = d->b + i * k;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < k; j++) sum += from_bfloat16(a[j]) * x[j];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(int8_thread) {
  const int8_t *x = (const int8_t *)d->bytes + FLOATS / 2;
  int *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const int8_t *a = (const int8_t *)d->bytes + i * k;
    int sum = 0;
    for (size_t j = 0; j < k; j++) sum += a[j] * x[j];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(int8_warp) { JOIN(SIDE, int8_thread)(d, first, last); }

SHAPE_FUNCTION(q4_warp) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t k = d->k / 32;
  for (size_t i = first; i < last; i++) {
    float sum = 0;
    for (size_t b = 0; b < k; b++) {
      const struct q4_block *block = &d->blocks[i * k + b];
      float part = 0;
#pragma omp simd reduction(+ : part)
      for (size_t j = 0; j < 16; j++) {
        part += (float)((block->pairs[j] & 15) - 8) * x[32 * b + j];
        part += (float)((block->pairs[j] >> 4) - 8) * x[32 * b + 16 + j];
      }
      sum += part * block->scale;
    }
    z[i] = sum;
  }
}

/* Matrices */

SHAPE_FUNCTION(sgemm_plain) {
  const size_t k = d->k;
  const float *b = d->y;
  for (size_t i = first; i < last; i++) {
    const float *a = d->x + i * k;
    float *restrict c = (float *)d->z + i * k;
    for (size_t l = 0; l < k; l++) c[l] = 0;
    for (size_t j = 0; j < k; j++)
      for (size_t l = 0; l < k; l++) c[l] += a[j] * b[j * k + l];
  }
}

SHAPE_FUNCTION(sgemm_tiled) { JOIN(SIDE, sgemm_plain)(d, first, last); }

SHAPE_FUNCTION(distances) {
  const size_t n = d->n, k = d->k;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float *restrict z = (float *)d->z + i * n;
    for (size_t l = 0; l < n; l++) {
      const float *y = d->y + l * k;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (size_t j = 0; j < k; j++) sum += (x[j] - y[j]) * (x[j] - y[j]);
      z[l] = sqrtf(sum);
    }
  }
}

SHAPE_FUNCTION(transpose) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t n = d->n, k = d->k;
  for (size_t i = first; i < last; i++)
    for (size_t j = 0; j < k; j++) z[j * n + i] = x[i * k + j];
}

SHAPE_FUNCTION(transpose_tiled) { /* a unit is 32 rows */
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t n = d->n * 32, k = d->k;
  for (size_t i = first * 32; i < last * 32; i += 32)
    for (size_t j = 0; j < k; j += 32)
      for (size_t c = j; c < j + 32; c++)
        for (size_t r = i; r < i + 32; r++) z[c * n + r] = x[r * k + c];
}

SHAPE_FUNCTION(small_products) {
  for (size_t i = first; i < last; i++) {
    const float *a = d->x + 16 * i, *b = d->y + 16 * i;
    float *restrict c = (float *)d->z + 16 * i;
    for (size_t row = 0; row < 4; row++)
      for (size_t column = 0; column < 4; column++) {
        float sum = 0;
        for (size_t j = 0; j < 4; j++) sum += a[row * 4 + j] * b[j * 4 + column];
        c[row * 4 + column] = sum;
      }
  }
}

SHAPE_FUNCTION(lu4) {
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    float a[4][4], b[4];
    for (size_t r = 0; r < 4; r++) {
      for (size_t c = 0; c < 4; c++) a[r][c] = d->x[i * 16 + r * 4 + c] + (r == c ? 4.0f : 0.0f);
      b[r] = d->y[i * 4 + r];
    }
    for (size_t p = 0; p < 4; p++)
      for (size_t r = p + 1; r < 4; r++) {
        const float factor = a[r][p] / a[p][p];
        for (size_t c = p; c < 4; c++) a[r][c] -= factor * a[p][c];
        b[r] -= factor * b[p];
      }
    for (size_t r = 4; r-- > 0;) {
      for (size_t c = r + 1; c < 4; c++) b[r] -= a[r][c] * b[c];
      b[r] /= a[r][r];
      z[i * 4 + r] = b[r];
    }
  }
}

SHAPE_FUNCTION(tridiagonal) {
  const float *x = d->x, *y = d->y;
  float *restrict z = d->z, *restrict work = d->work;
  const size_t n = d->n, k = d->k;
  for (size_t i = first; i < last; i++) {
    float c = 0, v = 0;
    for (size_t j = 0; j < k; j++) {
      const float lower = x[j * n + i], pivot = 1.0f / (4.0f - lower * c);
      c = 0.5f * pivot;
      v = (y[j * n + i] - lower * v) * pivot;
      work[j * n + i] = c;
      z[j * n + i] = v;
    }
    for (size_t j = k - 1; j-- > 0;) {
      v = z[j * n + i] - work[j * n + i] * v;
      z[j * n + i] = v;
    }
  }
}

/* Neighbours */

SHAPE_FUNCTION(filter_1d) {
  const float *x = d->x, *weights = d->y;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < k; j++) sum += x[i + j] * weights[j];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(filter_border) {
  const float *x = d->x, *weights = d->y;
  float *restrict z = d->z;
  const size_t k = d->k, n = d->n;
  for (size_t i = first; i < last; i++) {
    const size_t from = i < k ? k - i : 0, to = i + k < n ? 2 * k + 1 : n + k - i;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = from; j < to; j++) sum += x[i + j - k] * weights[j];
    z[i] = sum;
  }
}

static inline ptrdiff_t clamp(ptrdiff_t v, ptrdiff_t most) { return v < 0 ? 0 : v > most ? most : v; }

SHAPE_FUNCTION(filter_2d) {
  const float *x = d->x, *weights = d->y;
  float *restrict z = d->z;
  const ptrdiff_t n = (ptrdiff_t)d->n, k = (ptrdiff_t)d->k;
  for (ptrdiff_t row = (ptrdiff_t)first; row < (ptrdiff_t)last; row++)
    for (ptrdiff_t column = 0; column < k; column++) {
      float sum = 0;
      for (ptrdiff_t dy = -2; dy <= 2; dy++)
        for (ptrdiff_t dx = -2; dx <= 2; dx++)
          sum += x[clamp(row + dy, n - 1) * k + clamp(column + dx, k - 1)] * weights[(dy + 2) * 5 + dx + 2];
      z[row * k + column] = sum;
    }
}

SHAPE_FUNCTION(convolution) { /* a unit is a plane of the output; k channels */
  const float *x = d->x, *weights = d->y;
  float *restrict z = d->z;
  const size_t n = 66, k = d->k;
  for (size_t out = first; out < last; out++)
    for (size_t row = 0; row < n - 2; row++) {
      float *restrict line = &z[(out * (n - 2) + row) * (n - 2)];
      for (size_t i = 0; i < n - 2; i++) line[i] = 0;
      for (size_t c = 0; c < k; c++)
        for (size_t dy = 0; dy < 3; dy++)
          for (size_t dx = 0; dx < 3; dx++) {
            const float *from = &x[(c * n + row + dy) * n + dx], weight = weights[(out * k + c) * 9 + dy * 3 + dx];
            for (size_t i = 0; i < n - 2; i++) line[i] += from[i] * weight;
          }
    }
}

SHAPE_FUNCTION(stencil_1d) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t from = first > 0 ? first : 1, to = last < d->n ? last : d->n - 1;
  for (size_t i = from; i < to; i++) z[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

SHAPE_FUNCTION(stencil_2d) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t k = d->k, from = first > 0 ? first : 1, to = last < d->n ? last : d->n - 1;
  for (size_t r = from; r < to; r++)
    for (size_t c = 1; c < k - 1; c++)
      z[r * k + c] = 0.5f * x[r * k + c] +
                     0.125f * (x[(r - 1) * k + c] + x[(r + 1) * k + c] + x[r * k + c - 1] + x[r * k + c + 1]);
}

SHAPE_FUNCTION(stencil_2d_shared) { JOIN(SIDE, stencil_2d)(d, first, last); }

SHAPE_FUNCTION(stencil_3d) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t k = d->k, from = first > 0 ? first : 1, to = last < d->n ? last : d->n - 1;
  for (size_t p = from; p < to; p++)
    for (size_t r = 1; r < k - 1; r++)
      for (size_t c = 1; c < k - 1; c++) {
        const size_t i = (p * k + r) * k + c;
        z[i] = 0.4f * x[i] + 0.1f * (x[i - 1] + x[i + 1] + x[i - k] + x[i + k] + x[i - k * k] + x[i + k * k]);
      }
}

SHAPE_FUNCTION(max_pool) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t r = first; r < last; r++)
    for (size_t c = 0; c < k; c++) {
      const float *p = &x[2 * r * 2 * k + 2 * c], *q = p + 2 * k;
      z[r * k + c] = fmaxf(fmaxf(p[0], p[1]), fmaxf(q[0], q[1]));
    }
}

SHAPE_FUNCTION(resize) {
  const float *x = d->x;
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t r = first; r < last; r++)
    for (size_t c = 0; c < k; c++) {
      const float fy = (float)r * 0.7f, fx = (float)c * 0.7f;
      const int y0 = (int)fy, x0 = (int)fx;
      const float dy = fy - (float)y0, dx = fx - (float)x0, *p = &x[(size_t)y0 * k + (size_t)x0];
      z[r * k + c] = (p[0] * (1.0f - dx) + p[1] * dx) * (1.0f - dy) + (p[k] * (1.0f - dx) + p[k + 1] * dx) * dy;
    }
}

/* Rows of numbers */

SHAPE_FUNCTION(softmax_block) {
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float *restrict z = (float *)d->z + i * k, most = -INFINITY, sum = 0;
#pragma omp simd reduction(max : most)
    for (size_t j = 0; j < k; j++) most = x[j] > most ? x[j] : most;
    for (size_t j = 0; j < k; j++) {
      z[j] = expf(x[j] - most);
      sum += z[j];
    }
    for (size_t j = 0; j < k; j++) z[j] /= sum;
  }
}

SHAPE_FUNCTION(softmax_warp) { JOIN(SIDE, softmax_block)(d, first, last); }

SHAPE_FUNCTION(layer_norm) {
  const size_t k = d->k;
  const float *weight = d->y;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float *restrict z = (float *)d->z + i * k, sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < k; j++) sum += x[j];
    const float mean = sum / (float)k;
#pragma omp simd reduction(+ : squares)
    for (size_t j = 0; j < k; j++) squares += (x[j] - mean) * (x[j] - mean);
    const float scale = 1.0f / sqrtf(squares / (float)k + 1e-5f);
    for (size_t j = 0; j < k; j++) z[j] = (x[j] - mean) * scale * weight[j] + 0.5f;
  }
}

SHAPE_FUNCTION(rms_norm) {
  const size_t k = d->k;
  const float *weight = d->y;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float *restrict z = (float *)d->z + i * k, squares = 0;
#pragma omp simd reduction(+ : squares)
    for (size_t j = 0; j < k; j++) squares += x[j] * x[j];
    const float scale = 1.0f / sqrtf(squares / (float)k + 1e-5f);
    for (size_t j = 0; j < k; j++) z[j] = x[j] * scale * weight[j];
  }
}

SHAPE_FUNCTION(argmax_warp) {
  const size_t k = d->k;
  int *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float best = -INFINITY;
    int at = 0;
    for (size_t j = 0; j < k; j++)
      if (x[j] > best) {
        best = x[j];
        at = (int)j;
      }
    z[i] = at;
  }
}

#define ATTENTION(type, from)                                                            \
  const size_t k = d->k;                                                                 \
  for (size_t head = first; head < last; head++) {                                       \
    const type *query = (from) + head * 64, *keys = (from) + FLOATS / 4 + head * k * 64; \
    const type *values = (from) + FLOATS / 2 + head * k * 64;                            \
    float scores[1024], out[64] = { 0 }, most = -INFINITY, sum = 0;                      \
    for (size_t t = 0; t < k; t++) {                                                     \
      float score = 0;                                                                   \
      _Pragma("omp simd reduction(+ : score)") for (size_t i = 0; i < 64; i++) score +=  \
          (float)query[i] * (float)keys[t * 64 + i];                                     \
      scores[t] = score * 0.125f;                                                        \
      most = scores[t] > most ? scores[t] : most;                                        \
    }                                                                                    \
    for (size_t t = 0; t < k; t++) {                                                     \
      scores[t] = expf(scores[t] - most);                                                \
      sum += scores[t];                                                                  \
    }                                                                                    \
    for (size_t t = 0; t < k; t++)                                                       \
      for (size_t i = 0; i < 64; i++) out[i] += scores[t] * (float)values[t * 64 + i];   \
    for (size_t i = 0; i < 64; i++) ((float *)d->z)[head * 64 + i] = out[i] / sum;       \
  }

SHAPE_FUNCTION(attention){ ATTENTION(float, d->x) } SHAPE_FUNCTION(attention_half) {
  ATTENTION(half, (const half *)d->h)
}

/* Sums */

static inline void sums(const struct shape_data *d, size_t first, size_t last, size_t k) {
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < k; j++) sum += x[j];
    z[i] = sum;
  }
}

SHAPE_FUNCTION(sum_tree) { sums(d, first, last, 256); }
SHAPE_FUNCTION(sum_shuffles) { sums(d, first, last, 32); }

SHAPE_FUNCTION(dot_atomic) {
  const float *x = d->x, *y = d->y;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = first; i < last; i++) sum += x[i] * y[i];
  atomic_add(d->z, sum);
}

SHAPE_FUNCTION(max_block) {
  const size_t k = d->k;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float *x = d->x + i * k;
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (size_t j = 0; j < k; j++) most = x[j] > most ? x[j] : most;
    z[i] = most;
  }
}

SHAPE_FUNCTION(column_sums) {
  const size_t n = d->n, k = d->k;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) z[i] = 0;
  for (size_t j = 0; j < k; j++)
    for (size_t i = first; i < last; i++) z[i] += d->x[j * n + i];
}

SHAPE_FUNCTION(histogram_shared) {
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    int *restrict bins = (int *)d->z + i * 256;
    memset(bins, 0, 256 * sizeof *bins);
    for (size_t j = 0; j < k; j++) bins[d->bytes[i * k + j]]++;
  }
}

SHAPE_FUNCTION(histogram_global) {
  int bins[256] = { 0 };
  for (size_t i = first; i < last; i++) bins[d->bytes[i]]++;
  for (size_t i = 0; i < 256; i++) (void)__atomic_fetch_add((int *)d->z + i, bins[i], __ATOMIC_RELAXED);
}

SHAPE_FUNCTION(scan_block) {
  for (size_t i = first; i < last; i++) {
    float sum = 0;
    for (size_t j = i * 256; j < (i + 1) * 256; j++) {
      sum += d->x[j];
      ((float *)d->z)[j] = sum;
    }
  }
}

SHAPE_FUNCTION(scan_warp) {
  for (size_t i = first; i < last; i++) {
    int sum = 0;
    for (size_t j = i * 32; j < (i + 1) * 32; j++) {
      sum += d->index[j];
      ((int *)d->z)[j] = sum;
    }
  }
}

/* Work within a unit */

SHAPE_FUNCTION(sort_8) {
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    float v[8];
    for (size_t j = 0; j < 8; j++) v[j] = d->x[i * 8 + j];
    for (size_t round = 0; round < 8; round++)
      for (size_t j = round % 2; j < 7; j += 2) {
        const float a = v[j], b = v[j + 1];
        v[j] = a < b ? a : b;
        v[j + 1] = a < b ? b : a;
      }
    for (size_t j = 0; j < 8; j++) z[i * 8 + j] = v[j];
  }
}

SHAPE_FUNCTION(sort_block) {
  for (size_t i = first; i < last; i++) {
    float *restrict v = (float *)d->z + i * 256;
    memcpy(v, d->x + i * 256, 256 * sizeof *v);
    for (size_t size = 2; size <= 256; size *= 2)
      for (size_t step = size / 2; step > 0; step /= 2)
        for (size_t t = 0; t < 256; t++) {
          const size_t other = t ^ step;
          if (other > t && (v[t] > v[other]) == ((t & size) == 0)) {
            const float a = v[t];
            v[t] = v[other];
            v[other] = a;
          }
        }
  }
}

SHAPE_FUNCTION(mandelbrot) {
  const size_t n = d->n, k = d->k;
  int *restrict z = d->z;
  for (size_t row = first; row < last; row++)
    for (size_t column = 0; column < k; column++) {
      const float cx = -2.0f + 3.0f * (float)column / (float)k, cy = -1.2f + 2.4f * (float)row / (float)n;
      float x = 0, y = 0;
      int rounds = 0;
      while (rounds < 128 && x * x + y * y < 4.0f) {
        const float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        rounds++;
      }
      z[row * k + column] = rounds;
    }
}

SHAPE_FUNCTION(logistic_map) {
  float *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    float v = 0.5f * d->y[i];
    for (size_t j = 0; j < k; j++) v = 2.5f * v * (1.0f - v);
    z[i] = v;
  }
}

SHAPE_FUNCTION(monte_carlo) {
  int *restrict z = d->z;
  const size_t k = d->k;
  for (size_t i = first; i < last; i++) {
    unsigned state = (unsigned)i * 2654435761u + 1u;
    int inside = 0;
    for (size_t j = 0; j < k; j++) {
      state = state * 1664525u + 1013904223u;
      const float a = (float)(state >> 8) * 5.9604645e-8f;
      state = state * 1664525u + 1013904223u;
      const float b = (float)(state >> 8) * 5.9604645e-8f;
      if (a * a + b * b < 1.0f) inside++;
    }
    z[i] = inside;
  }
}

SHAPE_FUNCTION(n_body) {
  const size_t n = d->n;
  const float *bodies = d->y;
  float *restrict z = d->z;
  for (size_t i = first; i < last; i++) {
    const float *me = &bodies[4 * i];
    float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (size_t j = 0; j < n; j++) {
      const float *body = &bodies[4 * j], dx = body[0] - me[0], dy = body[1] - me[1], dz = body[2] - me[2];
      const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      const float f = body[3] * inverse * inverse * inverse;
      ax += dx * f;
      ay += dy * f;
      az += dz * f;
    }
    z[3 * i] = ax;
    z[3 * i + 1] = ay;
    z[3 * i + 2] = az;
  }
}

SHAPE_FUNCTION(n_body_tiled) { JOIN(SIDE, n_body)(d, first, last); }
