/* A vendor's library on a stream of rill: cuBLAS or hipBLAS multiplies two matrices between a fill and a copy of
 * rill's.
 *
 * What such a library needs is the native stream (rill_stream_native), and the device's context as the thread's current
 * one while its handle is created: for CUDA the primary context, which rill_stream_context gives and cudaSetDevice
 * makes current as well; for HIP the current device.  Afterwards calls may come from any thread.
 *
 * A program that is built with the vendor's headers calls cublasCreate itself; this one opens the library at run time,
 * so that it builds everywhere, and says so where there is none. */
#include <dlfcn.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64 };

#define CHECK(call)                                    \
  do {                                                 \
    if ((call) != RILL_OK) {                           \
      fprintf(stderr, "%s\n", rill_last_error_text()); \
      exit(1);                                         \
    }                                                  \
  } while (0)

typedef int create_function(void **handle);
typedef int destroy_function(void *handle);
typedef int set_stream_function(void *handle, void *stream);
typedef int sgemm_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);

static struct {
  create_function *create;
  destroy_function *destroy;
  set_stream_function *set_stream;
  sgemm_function *sgemm;
  int as_it_is; /* the vendor's number for "not transposed" */
} blas;

static void *open_one(const char *const *names) {
  void *library = NULL;
  for (; *names != NULL && library == NULL; names++) library = dlopen(*names, RTLD_NOW);
  return library;
}

static int find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int open_blas(uint32_t backend) {
  static const char *const cuda[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL };
  static const char *const hip[] = { "libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0", NULL };
  if (backend != RILL_BACKEND_CUDA && backend != RILL_BACKEND_HIP) return 0;
  const int is_cuda = backend == RILL_BACKEND_CUDA;
  void *library = open_one(is_cuda ? cuda : hip);
  blas.as_it_is = is_cuda ? 0 : 111;
  return library != NULL && find(library, is_cuda ? "cublasCreate_v2" : "hipblasCreate", &blas.create) &&
         find(library, is_cuda ? "cublasDestroy_v2" : "hipblasDestroy", &blas.destroy) &&
         find(library, is_cuda ? "cublasSetStream_v2" : "hipblasSetStream", &blas.set_stream) &&
         find(library, is_cuda ? "cublasSgemm_v2" : "hipblasSgemm", &blas.sgemm);
}

/* Makes the stream's device the thread's current one, with the driver's own call. */
static int make_current(rill_stream stream, const rill_device_info *info) {
  static const char *const cuda[] = { "libcuda.so.1", NULL };
  static const char *const hip[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL };
  uintptr_t context = 0;
  int (*set_context)(void *);
  int (*set_device)(int);
  CHECK(rill_stream_context(stream, &context));
  if (info->backend == RILL_BACKEND_CUDA) {
    return find(open_one(cuda), "cuCtxSetCurrent", &set_context) && set_context((void *)context) == 0;
  }
  return find(open_one(hip), "hipSetDevice", &set_device) && set_device(info->ordinal) == 0;
}

int main(void) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream stream;
  float *a, *b, *c, *host;
  CHECK(rill_device_open(NULL, &device));
  CHECK(rill_device_get_info(device, &info));
  if (!open_blas(info.backend)) {
    printf("no cuBLAS or hipBLAS for %s\n", info.name);
    return 0;
  }
  CHECK(rill_stream_create(device, NULL, &stream));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, N * N, &a));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, N * N, &b));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, N * N, &c));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, N * N, &host));

  uintptr_t native = 0;
  void *handle = NULL;
  CHECK(rill_stream_native(stream, &native)); /* from here on others may use it, and rill assumes that they do */
  if (!make_current(stream, &info) || blas.create(&handle) != 0 || blas.set_stream(handle, (void *)native) != 0) {
    fprintf(stderr, "the vendor's library does not start\n");
    return 1;
  }

  /* In the order of the stream: rill's fills, the vendor's product, rill's copy. */
  const float two = 2, three = 3, one = 1, none = 0;
  CHECK(rill_fill_async(stream, a, &two, sizeof two, N * N));
  CHECK(rill_fill_async(stream, b, &three, sizeof three, N * N));
  if (blas.sgemm(handle, blas.as_it_is, blas.as_it_is, N, N, N, &one, a, N, b, N, &none, c, N) != 0) return 1;
  CHECK(rill_copy_async(stream, host, c, sizeof(float) * N * N));
  CHECK(rill_stream_synchronize(stream));

  int wrong = 0;
  for (int i = 0; i < N * N; i++) wrong += host[i] < 6.0f * (float)N || host[i] > 6.0f * (float)N;
  printf("every value is %.0f, %d wrong values\n", (double)host[0], wrong);
  (void)blas.destroy(handle);
  CHECK(rill_free(a));
  CHECK(rill_free(b));
  CHECK(rill_free(c));
  CHECK(rill_free(host));
  CHECK(rill_stream_release(stream));
  return wrong != 0;
}
