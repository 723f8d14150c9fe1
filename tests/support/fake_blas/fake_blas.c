/* cuBLAS or hipBLAS for the fake drivers: what docs/examples/gpt2 calls of it.
 *
 * A product is a host function of the stream, as the fake drivers run their kernels on the host.  Matrices lie column
 * after column, as the vendors' documents say.  The library refuses what the real one would not accept: another
 * transposition than its own numbers, and leading dimensions that are too small. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if FAKE_BLAS_IS_HIP
#define DRIVER "libamdhip64.so.7"
#define HOST_FUNCTION "hipLaunchHostFunc"
#define NAME(cuda, hip) hip
enum { PLAIN = 111, TRANSPOSED = 112, INVALID_VALUE = 3, NOT_INITIALIZED = 1 };
#else
#define DRIVER "libcuda.so.1"
#define HOST_FUNCTION "cuLaunchHostFunc"
#define NAME(cuda, hip) cuda
enum { PLAIN = 0, TRANSPOSED = 1, INVALID_VALUE = 7, NOT_INITIALIZED = 1 };
#endif
#define EXPORT __attribute__((visibility("default")))

/* Graphs may run a call again and again: calls stay until their handle is destroyed. */
typedef struct call {
  struct call *next;
  int transpose_a, transpose_b, m, n, k, lda, ldb, ldc, batch;
  float alpha, beta;
  const float *a, *b;
  float *c;
  long long stride_a, stride_b, stride_c;
} call;

typedef struct handle {
  void *stream;
  int (*launch_host_function)(void *stream, void (*function)(void *), void *user);
  call *calls;
} handle;

static void multiply(void *user) {
  const call *const x = user;
  for (int batch = 0; batch < x->batch; batch++) {
    const float *const a = x->a + batch * x->stride_a, *const b = x->b + batch * x->stride_b;
    float *const c = x->c + batch * x->stride_c;
    for (int j = 0; j < x->n; j++)
      for (int i = 0; i < x->m; i++) {
        float sum = 0;
        for (int l = 0; l < x->k; l++) {
          const size_t at_a =
              x->transpose_a == PLAIN ? (size_t)i + (size_t)l * (size_t)x->lda : (size_t)l + (size_t)i * (size_t)x->lda;
          const size_t at_b =
              x->transpose_b == PLAIN ? (size_t)l + (size_t)j * (size_t)x->ldb : (size_t)j + (size_t)l * (size_t)x->ldb;
          sum += a[at_a] * b[at_b];
        }
        float *const to = c + i + (size_t)j * (size_t)x->ldc;
        *to = x->beta < 0 || x->beta > 0 ? x->alpha * sum + x->beta * *to : x->alpha * sum;
      }
  }
}

EXPORT int NAME(cublasCreate_v2, hipblasCreate)(void **out);
EXPORT int NAME(cublasDestroy_v2, hipblasDestroy)(void *blas);
EXPORT int NAME(cublasSetStream_v2, hipblasSetStream)(void *blas, void *stream);
EXPORT int NAME(cublasSgemmStridedBatched,
                hipblasSgemmStridedBatched)(void *blas, int transpose_a, int transpose_b, int m, int n, int k,
                                            const float *alpha, const float *a, int lda, long long stride_a,
                                            const float *b, int ldb, long long stride_b, const float *beta, float *c,
                                            int ldc, long long stride_c, int batch);

int NAME(cublasCreate_v2, hipblasCreate)(void **out) {
  handle *const h = calloc(1, sizeof *h);
  void *const driver = dlopen(DRIVER, RTLD_NOW), *const symbol = driver != NULL ? dlsym(driver, HOST_FUNCTION) : NULL;
  if (h == NULL || symbol == NULL) {
    free(h);
    return NOT_INITIALIZED;
  }
  memcpy(&h->launch_host_function, &symbol, sizeof symbol);
  *out = h;
  return 0;
}

int NAME(cublasDestroy_v2, hipblasDestroy)(void *blas) {
  handle *const h = blas;
  for (call *x = h->calls, *next; x != NULL; x = next) {
    next = x->next;
    free(x);
  }
  free(h);
  return 0;
}

int NAME(cublasSetStream_v2, hipblasSetStream)(void *blas, void *stream) {
  ((handle *)blas)->stream = stream;
  return 0;
}

int NAME(cublasSgemmStridedBatched, hipblasSgemmStridedBatched)(void *blas, int transpose_a, int transpose_b, int m,
                                                                int n, int k, const float *alpha, const float *a,
                                                                int lda, long long stride_a, const float *b, int ldb,
                                                                long long stride_b, const float *beta, float *c,
                                                                int ldc, long long stride_c, int batch) {
  handle *const h = blas;
  const call values = { h->calls, transpose_a, transpose_b, m, n, k, lda,      ldb,      ldc,
                        batch,    *alpha,      *beta,       a, b, c, stride_a, stride_b, stride_c };
  if ((transpose_a != PLAIN && transpose_a != TRANSPOSED) || (transpose_b != PLAIN && transpose_b != TRANSPOSED) ||
      m < 0 || n < 0 || k < 0 || batch < 0 || lda < (transpose_a == PLAIN ? m : k) ||
      ldb < (transpose_b == PLAIN ? k : n) || ldc < m)
    return INVALID_VALUE;
  call *const x = malloc(sizeof *x);
  if (x == NULL) return NOT_INITIALIZED;
  *x = values;
  h->calls = x;
  return h->launch_host_function(h->stream, multiply, x);
}
