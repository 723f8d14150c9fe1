/* Matrix products. cuBLAS and hipBLAS store matrices in column-major order and see a row-major matrix as its
 * transpose, so they compute b * a with rows and columns exchanged.  blas.c describes the stream that such a library
 * needs. */
#include "products.h"

#include "../vendor_library.h"

enum { WORKSPACE = 32 << 20, TF32_MODE = 3 };

typedef int multiply_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,
                              const float *a, int lda, long long stride_a, const float *b, int ldb, long long stride_b,
                              const float *beta, float *c, int ldc, long long stride_c, int batch);

static struct {
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, void *stream);
  int (*set_workspace)(void *handle, void *workspace, size_t size); /* NULL if hipBLAS has none */
  int (*set_mode)(void *handle, int mode);                          /* NULL if TF32 is unknown */
  multiply_function *multiply;
  int plain, transposed; /* the vendor's numbers */
} blas;

static int open_blas(uint32_t backend) {
  static const char *const cuda[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL };
  static const char *const hip[] = { "libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0", NULL };
  if (backend != RILL_BACKEND_CUDA && backend != RILL_BACKEND_HIP) return 0;
  const int is_cuda = backend == RILL_BACKEND_CUDA;
  void *library = open_one(is_cuda ? cuda : hip);
  if (library == NULL) return 0;
  blas.plain = is_cuda ? 0 : 111;
  blas.transposed = is_cuda ? 1 : 112;
  (void)find(library, is_cuda ? "cublasSetWorkspace_v2" : "hipblasSetWorkspace", &blas.set_workspace);
  if (is_cuda) (void)find(library, "cublasSetMathMode", &blas.set_mode);
  return find(library, is_cuda ? "cublasCreate_v2" : "hipblasCreate", &blas.create) &&
         find(library, is_cuda ? "cublasDestroy_v2" : "hipblasDestroy", &blas.destroy) &&
         find(library, is_cuda ? "cublasSetStream_v2" : "hipblasSetStream", &blas.set_stream) &&
         find(library, is_cuda ? "cublasSgemmStridedBatched" : "hipblasSgemmStridedBatched", &blas.multiply);
}

void products_open(products *p, rill_device device, rill_stream stream, const product_options *options) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  uintptr_t native = 0;
  memset(p, 0, sizeof *p);
  p->stream = stream;
  CHECK(rill_device_get_info(device, &info));
  if (options->own || !open_blas(info.backend)) {
    if (options->tf32) (void)fprintf(stderr, "no cuBLAS for %s: products are of 24 bits\n", info.name);
    return;
  }
  CHECK(rill_stream_native(stream, &native));
  if (!make_current(stream, &info) || blas.create(&p->handle) != 0) {
    (void)fprintf(stderr, "the vendor's library of products does not start\n");
    exit(1);
  }
  CHECK(rill_alloc(device, WORKSPACE, RILL_MEMORY_DEVICE, &p->workspace));
  CHECK_VENDOR(blas.set_stream(p->handle, (void *)native));
  if (blas.set_workspace != NULL) CHECK_VENDOR(blas.set_workspace(p->handle, p->workspace, WORKSPACE));
  if (options->tf32 && blas.set_mode != NULL) CHECK_VENDOR(blas.set_mode(p->handle, TF32_MODE));
}

void products_close(products *p) {
  if (p->handle == NULL) return;
  CHECK_VENDOR(blas.destroy(p->handle));
  CHECK(rill_free(p->workspace));
}

void products_multiply(products *p, const product *x) {
  const bool transpose_a = x->form == AT_B, transpose_b = x->form == A_BT;
  const int lda = transpose_a ? x->m : x->k, ldb = transpose_b ? x->k : x->n;
  const long long a = (long long)x->m * x->k, b = (long long)x->k * x->n, c = (long long)x->m * x->n;
  const float none = 0;
  if (p->handle != NULL) {
    CHECK_VENDOR(blas.multiply(p->handle, transpose_b ? blas.transposed : blas.plain,
                               transpose_a ? blas.transposed : blas.plain, x->n, x->m, x->k, &x->factor, x->b, ldb, b,
                               x->a, lda, a, &none, x->c, x->n, c, x->count));
    return;
  }
  rill_kernels_sgemm_problem own = { .batch = (uint64_t)x->count, .alpha = x->factor };
  own.m = (uint64_t)x->m, own.n = (uint64_t)x->n, own.k = (uint64_t)x->k;
  own.transpose_a = transpose_a, own.transpose_b = transpose_b;
  own.a = x->a, own.b = x->b, own.c = x->c;
  own.lda = (uint64_t)lda, own.ldb = (uint64_t)ldb, own.ldc = own.n;
  own.stride_a = (uint64_t)a, own.stride_b = (uint64_t)b, own.stride_c = (uint64_t)c;
  CHECK(rill_kernels_sgemm_many(p->stream, &own));
}
