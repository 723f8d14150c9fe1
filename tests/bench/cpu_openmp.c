/* The works of cpu_kernels.c as plain C loops with OpenMP; compiled twice. */
#include "cpu_kernels.h"

#ifdef __FAST_MATH__
#define SIDE fast_math_side
#define NAME "OpenMP with -ffast-math"
#else
#define SIDE openmp_side
#define NAME "OpenMP"
#endif

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *x, *y, *z, *c;
static double *dx, *dy, *dz, sum;

static const char *open_side(void) {
  x = malloc(COUNT * sizeof *x);
  y = malloc(COUNT * sizeof *y);
  z = malloc(COUNT * sizeof *z);
  c = calloc((size_t)ORDER * ORDER, sizeof *c);
  dx = malloc(COUNT * sizeof *dx);
  dy = malloc(COUNT * sizeof *dy);
  dz = malloc(COUNT * sizeof *dz);
  if (x == NULL || y == NULL || z == NULL || c == NULL || dx == NULL || dy == NULL || dz == NULL) return "no memory";
#pragma omp parallel for
  for (size_t i = 0; i < COUNT; i++) {
    x[i] = fill_x(i);
    y[i] = fill_y(i);
    z[i] = 0;
    dx[i] = (double)fill_x(i);
    dy[i] = (double)fill_y(i);
    dz[i] = 0;
  }
  return NULL;
}

static void sgemm(void) {
  enum { HEIGHT = 4, DEPTH = 64 };
#pragma omp parallel for
  for (size_t i = 0; i < ORDER; i += HEIGHT) {
    memset(&c[i * ORDER], 0, HEIGHT * ORDER * sizeof *c);
    for (size_t deep = 0; deep < ORDER; deep += DEPTH) {
      for (size_t j = 0; j < ORDER; j += 64) {
        for (size_t k = deep; k < deep + DEPTH; k++) {
          for (size_t r = 0; r < HEIGHT; r++) {
            const float a = x[(i + r) * ORDER + k];
#pragma omp simd
            for (size_t l = j; l < j + 64; l++) c[(i + r) * ORDER + l] += a * y[k * ORDER + l];
          }
        }
      }
    }
  }
}

static void columns(void) {
  enum { ACROSS = COUNT / ROWS, STRIP = 64 };
#pragma omp parallel for
  for (size_t first = 0; first < ACROSS; first += STRIP) {
    float strip[STRIP] = { 0 };
    for (size_t k = 0; k < ROWS; k++) {
#pragma omp simd
      for (size_t i = 0; i < STRIP; i++) strip[i] += y[k] * x[k * ACROSS + first + i];
    }
    memcpy(&z[first], strip, sizeof strip);
  }
}

static void forces(void) {
#pragma omp parallel for
  for (size_t i = 0; i < BODIES; i++) {
    float fx = 0, fy = 0;
#pragma omp simd reduction(+ : fx, fy)
    for (size_t k = 0; k < BODIES; k++) {
      const float away_x = x[k] - x[i], away_y = y[k] - y[i], r = away_x * away_x + away_y * away_y + 0.01f;
      const float f = 1.0f / (r * sqrtf(r));
      fx += away_x * f;
      fy += away_y * f;
    }
    z[i] = fx * fx + fy * fy;
  }
}

static void filter(void) {
#pragma omp parallel for simd
  for (size_t i = 0; i < COUNT - TAPS; i++) {
    float total = 0;
    for (size_t k = 0; k < TAPS; k++) total += x[i + k] * y[k];
    z[i] = total;
  }
}

static volatile float zero; /* which -ffast-math would not multiply by */

static bool run(enum work work) {
  if (work == SAXPY) {
    const float a = zero;
#pragma omp parallel for simd
    for (size_t i = 0; i < COUNT; i++) y[i] = a * x[i] + y[i];
  } else if (work == TRIAD) {
#pragma omp parallel for simd
    for (size_t i = 0; i < COUNT; i++) dz[i] = dx[i] + 2.0 * dy[i];
  } else if (work == REDUCE || work == WARP || work == BLOCK) {
    float total = 0;
#pragma omp parallel for simd reduction(+ : total)
    for (size_t i = 0; i < COUNT; i++) total += x[i];
    sum = (double)total;
  } else if (work == EXP) {
#pragma omp parallel for simd
    for (size_t i = 0; i < COUNT; i++) z[i] = expf(-x[i]);
  } else if (work == GELU) {
#pragma omp parallel for simd
    for (size_t i = 0; i < COUNT; i++)
      z[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978846f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
  } else if (work == COLUMNS) {
    columns();
  } else if (work == FORCES) {
    forces();
  } else if (work == FILTER) {
    filter();
  } else {
    sgemm();
  }
  return true;
}

static double check(enum work work) {
  double total = 0;
  if (work == REDUCE || work == WARP || work == BLOCK) return sum;
  for (size_t i = 0; (work == EXP || work == GELU) && i < COUNT; i++) total += (double)z[i];
  for (size_t i = 0; work == SAXPY && i < COUNT; i++) total += (double)y[i];
  for (size_t i = 0; work == TRIAD && i < COUNT; i++) total += dz[i];
  for (size_t i = 0; work == COLUMNS && i < COUNT / ROWS; i++) total += (double)z[i];
  for (size_t i = 0; work == FORCES && i < BODIES; i++) total += (double)z[i];
  for (size_t i = 0; work == FILTER && i < COUNT - TAPS; i++) total += (double)z[i];
  for (size_t i = 0; (work == SGEMM || work == PLAIN_SGEMM) && i < (size_t)ORDER * ORDER; i++) total += (double)c[i];
  return total;
}

const struct side SIDE = { NAME, open_side, run, check };
