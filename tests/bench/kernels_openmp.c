/* The peer on the CPU: plain C loops with OpenMP. */
#include "kernels.h"

#include <string.h>

static volatile double result; /* of reductions, which nobody else looks at */

#define LOOPS(SUFFIX, T)                                                                                      \
  static void copy_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {           \
    (void)b;                                                                                                  \
    _Pragma("omp parallel for simd") for (ptrdiff_t i = 0; i < n; i++) c[i] = a[i];                           \
  }                                                                                                           \
  static void scale_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {          \
    (void)b;                                                                                                  \
    _Pragma("omp parallel for simd") for (ptrdiff_t i = 0; i < n; i++) c[i] = (T)0.5 * a[i];                  \
  }                                                                                                           \
  static void add_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {            \
    _Pragma("omp parallel for simd") for (ptrdiff_t i = 0; i < n; i++) c[i] = a[i] + b[i];                    \
  }                                                                                                           \
  static void triad_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {          \
    _Pragma("omp parallel for simd") for (ptrdiff_t i = 0; i < n; i++) c[i] = a[i] + (T)0.5 * b[i];           \
  }                                                                                                           \
  static void axpy_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {           \
    (void)b;                                                                                                  \
    _Pragma("omp parallel for simd") for (ptrdiff_t i = 0; i < n; i++) c[i] = (T)0.5 * a[i] + c[i];           \
  }                                                                                                           \
  static void fill_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {           \
    (void)a, (void)b;                                                                                         \
    _Pragma("omp parallel for simd") for (ptrdiff_t i = 0; i < n; i++) c[i] = (T)0.5;                         \
  }                                                                                                           \
  static void dot_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {            \
    T sum = 0;                                                                                                \
    (void)c;                                                                                                  \
    _Pragma("omp parallel for simd reduction(+ : sum)") for (ptrdiff_t i = 0; i < n; i++) sum += a[i] * b[i]; \
    result = (double)sum;                                                                                     \
  }                                                                                                           \
  static void sum_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {            \
    T sum = 0;                                                                                                \
    (void)b, (void)c;                                                                                         \
    _Pragma("omp parallel for simd reduction(+ : sum)") for (ptrdiff_t i = 0; i < n; i++) sum += a[i];        \
    result = (double)sum;                                                                                     \
  }
LOOPS(f32, float)
LOOPS(f64, double)

#define ENTRY(NAME) \
  { #NAME "_f32", NAME##_f32, NULL }, { #NAME "_f64", NULL, NAME##_f64 }
static const struct {
  const char *name;
  void (*floats)(ptrdiff_t n, const float *a, const float *b, float *c);
  void (*doubles)(ptrdiff_t n, const double *a, const double *b, double *c);
} loops[] = { ENTRY(copy), ENTRY(scale), ENTRY(add), ENTRY(triad), ENTRY(axpy), ENTRY(fill), ENTRY(dot), ENTRY(sum) };

static const char *open_peer(const struct scene *scene) {
  (void)scene;
  return NULL;
}

static bool run(const struct scene *scene, const char *kernel, unsigned form, const char **form_name) {
  if (form > 0) return false;
  *form_name = "loop";
  for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
    if (strcmp(loops[i].name, kernel) != 0) continue;
    if (loops[i].floats != NULL) loops[i].floats((ptrdiff_t)(scene->bytes / 4), scene->a, scene->b, scene->c);
    else loops[i].doubles((ptrdiff_t)(scene->bytes / 8), scene->a, scene->b, scene->c);
    return true;
  }
  return false;
}

struct peer bench_openmp = { .name = "OpenMP", .open = open_peer, .run = run };
