/* Uses a vendor's library on a rill stream: cuBLAS or hipBLAS multiplies two matrices between a fill and a copy by
 * rill, and then again as a node of a graph.
 *
 * The library needs the native stream (rill_stream_native). While the library's handle is created, the device's
 * context must be current in the thread. For CUDA this is the primary context, which rill_stream_context returns and
 * cudaSetDevice makes current; for HIP it is the current device. Afterwards any thread may call the library.
 */
#include "vendor_library.h"

enum { N = 64, WORKSPACE = 32 << 20 };

typedef int create_function(void **handle);
typedef int destroy_function(void *handle);
typedef int set_stream_function(void *handle, void *stream);
typedef int set_workspace_function(void *handle, void *workspace, size_t size);
typedef int sgemm_function(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,
                           const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc);

static struct {
  create_function *create;
  destroy_function *destroy;
  set_stream_function *set_stream;
  sgemm_function *sgemm;
  set_workspace_function *set_workspace; /* NULL if hipBLAS has none */
  int as_it_is;                          /* the vendor's number for "not transposed" */
} blas;

static int open_blas(uint32_t backend) {
  static const char *const cuda[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL };
  static const char *const hip[] = { "libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1", "libhipblas.so.0", NULL };
  if (backend != RILL_BACKEND_CUDA && backend != RILL_BACKEND_HIP) return 0;
  const int is_cuda = backend == RILL_BACKEND_CUDA;
  void *library = open_one(is_cuda ? cuda : hip);
  blas.as_it_is = is_cuda ? 0 : 111;
  if (library != NULL)
    (void)find(library, is_cuda ? "cublasSetWorkspace_v2" : "hipblasSetWorkspace", &blas.set_workspace);
  return library != NULL && find(library, is_cuda ? "cublasCreate_v2" : "hipblasCreate", &blas.create) &&
         find(library, is_cuda ? "cublasDestroy_v2" : "hipblasDestroy", &blas.destroy) &&
         find(library, is_cuda ? "cublasSetStream_v2" : "hipblasSetStream", &blas.set_stream) &&
         find(library, is_cuda ? "cublasSgemm_v2" : "hipblasSgemm", &blas.sgemm);
}

static int count_wrong(const float *values, float expected) {
  int wrong = 0;
  for (int i = 0; i < N * N; i++) wrong += values[i] < expected || values[i] > expected;
  return wrong;
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
  CHECK(rill_stream_native(stream, &native)); /* from here on, rill assumes that other code submits to it */
  if (!make_current(stream, &info) || blas.create(&handle) != 0 || blas.set_stream(handle, (void *)native) != 0) {
    fprintf(stderr, "the vendor's library does not start\n");
    return 1;
  }

  /* In stream order: rill's fills, the vendor's product, rill's copy. */
  const float two = 2, three = 3, one = 1, none = 0;
  CHECK(rill_fill_async(stream, a, &two, sizeof two, N * N));
  CHECK(rill_fill_async(stream, b, &three, sizeof three, N * N));
  if (blas.sgemm(handle, blas.as_it_is, blas.as_it_is, N, N, N, &one, a, N, b, N, &none, c, N) != 0) return 1;
  CHECK(rill_copy_async(stream, host, c, sizeof(float) * N * N));
  CHECK(rill_stream_synchronize(stream));

  int wrong = count_wrong(host, 6.0f * (float)N);
  printf("every value is %.0f, %d wrong values\n", (double)host[0], wrong);

  /* Captures the same work as a graph. The work that the library submits becomes one node. The library must not
   * allocate in a capture, so it needs a workspace. Set the workspace after the stream, because setting the
   * stream resets it. */
  void *workspace = NULL;
  rill_graph graph;
  rill_graph_exec exec;
  CHECK(rill_alloc(device, WORKSPACE, RILL_MEMORY_DEVICE, &workspace));
  CHECK_VENDOR(blas.set_stream(handle, (void *)native));
  if (blas.set_workspace != NULL) CHECK_VENDOR(blas.set_workspace(handle, workspace, WORKSPACE));
  CHECK(rill_stream_capture_begin(stream, RILL_CAPTURE_RELAXED));
  CHECK(rill_fill_async(stream, a, &three, sizeof three, N * N));
  CHECK_VENDOR(blas.sgemm(handle, blas.as_it_is, blas.as_it_is, N, N, N, &one, a, N, b, N, &none, c, N));
  CHECK(rill_copy_async(stream, host, c, sizeof(float) * N * N));
  CHECK(rill_stream_capture_end(stream, &graph));
  CHECK(rill_graph_instantiate(graph, &exec));
  CHECK(rill_graph_launch(exec, stream));
  CHECK(rill_stream_synchronize(stream));
  const int wrong_in_graph = count_wrong(host, 9.0f * (float)N);
  printf("by a graph every value is %.0f, %d wrong values\n", (double)host[0], wrong_in_graph);
  wrong += wrong_in_graph;
  CHECK(rill_graph_exec_release(exec));
  CHECK(rill_graph_release(graph));
  (void)blas.destroy(handle);
  CHECK(rill_free(a));
  CHECK(rill_free(b));
  CHECK(rill_free(c));
  CHECK(rill_free(host));
  CHECK(rill_free(workspace));
  CHECK(rill_stream_release(stream));
  return wrong != 0;
}
