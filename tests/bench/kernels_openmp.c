/* The peer on the CPU: plain C loops with OpenMP. */
#include "kernels.h"

#include <omp.h>
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

/* A scan reads twice: the sum of each thread's part, then its running sums.  A transpose goes in squares. */
enum { THREADS_MOST = 256, SQUARE = 16 };

#define MORE_LOOPS(SUFFIX, T)                                                                                       \
  static void max_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {                  \
    T most = a[0];                                                                                                  \
    (void)b, (void)c;                                                                                               \
    _Pragma("omp parallel for simd reduction(max : most)") for (ptrdiff_t i = 0; i < n; i++) most =                 \
        a[i] > most ? a[i] : most;                                                                                  \
    result = (double)most;                                                                                          \
  }                                                                                                                 \
  static T total_##SUFFIX(ptrdiff_t n, const T *x) {                                                                \
    T sum = 0;                                                                                                      \
    _Pragma("omp simd reduction(+ : sum)") for (ptrdiff_t i = 0; i < n; i++) sum += x[i];                           \
    return sum;                                                                                                     \
  }                                                                                                                 \
  static void scan_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {                 \
    static T totals[THREADS_MOST];                                                                                  \
    const int most = omp_get_max_threads() < THREADS_MOST ? omp_get_max_threads() : THREADS_MOST;                   \
    (void)b;                                                                                                        \
    _Pragma("omp parallel num_threads(most)") {                                                                     \
      const int thread = omp_get_thread_num(), threads = omp_get_num_threads();                                     \
      const ptrdiff_t begin = n * thread / threads, end = n * (thread + 1) / threads;                               \
      totals[thread] = total_##SUFFIX(end - begin, a + begin);                                                      \
      _Pragma("omp barrier") T running = 0;                                                                         \
      for (int i = 0; i < thread; i++) running += totals[i];                                                        \
      for (ptrdiff_t i = begin; i < end; i++) c[i] = running += a[i];                                               \
    }                                                                                                               \
  }                                                                                                                 \
  static void transpose_square_##SUFFIX(const T *restrict x, ptrdiff_t x_pitch, T *restrict y, ptrdiff_t y_pitch) { \
    for (ptrdiff_t j = 0; j < SQUARE; j++)                                                                          \
      for (ptrdiff_t i = 0; i < SQUARE; i++) y[j * y_pitch + i] = x[i * x_pitch + j];                               \
  }                                                                                                                 \
  static void transpose_##SUFFIX(ptrdiff_t n, const T *restrict a, const T *restrict b, T *restrict c) {            \
    const ptrdiff_t columns = PICTURE_COLUMNS, rows = n / columns, across = columns / SQUARE;                       \
    (void)b;                                                                                                        \
    _Pragma("omp parallel for") for (ptrdiff_t i = 0; i < across * (rows / SQUARE); i++) {                          \
      const ptrdiff_t left = i % across * SQUARE, top = i / across * SQUARE;                                        \
      transpose_square_##SUFFIX(a + top * columns + left, columns, c + left * rows + top, rows);                    \
    }                                                                                                               \
  }
MORE_LOOPS(f32, float)
MORE_LOOPS(f64, double)

static void histogram_f32(ptrdiff_t n, const float *restrict a, const float *restrict b, float *restrict c) {
  enum { BINS = 256 };
  uint64_t counts[BINS] = { 0 };
  (void)b;
#pragma omp parallel for reduction(+ : counts[:BINS])
  for (ptrdiff_t i = 0; i < n; i++) {
    const float bin = a[i] * 256.0f;
    if (bin >= 0 && bin < BINS) counts[(int)bin]++;
  }
  memcpy(c, counts, sizeof counts);
}

#define ENTRY(NAME) \
  { #NAME "_f32", NAME##_f32, NULL }, { #NAME "_f64", NULL, NAME##_f64 }
static const struct {
  const char *name;
  void (*floats)(ptrdiff_t n, const float *a, const float *b, float *c);
  void (*doubles)(ptrdiff_t n, const double *a, const double *b, double *c);
} loops[] = { ENTRY(copy), ENTRY(scale), ENTRY(add),       ENTRY(triad),
              ENTRY(axpy), ENTRY(fill),  ENTRY(dot),       ENTRY(sum),
              ENTRY(max),  ENTRY(scan),  ENTRY(transpose), { "histogram_f32", histogram_f32, NULL } };

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
