/* Uses cuFFT or hipFFT on a rill stream: a transform and its inverse, ordered by an event after an upload on another
 * stream.
 *
 * Creating a plan allocates memory, so create it before a capture. Its stream is set once. */
#include "vendor_library.h"

enum { N = 1 << 12 };

typedef struct {
  float re, im;
} complex_value;

static struct {
  int (*plan)(void *plan, int n, int type, int batch);
  int (*set_stream)(void *plan, void *stream);
  int (*run)(void *plan, complex_value *in, complex_value *out, int direction);
  int (*destroy)(void *plan);
} hip;

/* A plan is an int with CUDA and a pointer with HIP, so each vendor has its own function types. */
static struct {
  int (*plan)(int *plan, int n, int type, int batch);
  int (*set_stream)(int plan, void *stream);
  int (*run)(int plan, complex_value *in, complex_value *out, int direction);
  int (*destroy)(int plan);
} cuda;

enum { C2C = 0x29, FORWARD = -1, INVERSE = 1 };

static int open_fft(uint32_t backend) {
  static const char *const cuda_names[] = { "libcufft.so.12", "libcufft.so.11", "libcufft.so.10", NULL };
  static const char *const hip_names[] = { "libhipfft.so.0", NULL };
  void *library = NULL;
  if (backend == RILL_BACKEND_CUDA && (library = open_one(cuda_names)) != NULL) {
    return find(library, "cufftPlan1d", &cuda.plan) && find(library, "cufftSetStream", &cuda.set_stream) &&
           find(library, "cufftExecC2C", &cuda.run) && find(library, "cufftDestroy", &cuda.destroy);
  }
  if (backend == RILL_BACKEND_HIP && (library = open_one(hip_names)) != NULL) {
    return find(library, "hipfftPlan1d", &hip.plan) && find(library, "hipfftSetStream", &hip.set_stream) &&
           find(library, "hipfftExecC2C", &hip.run) && find(library, "hipfftDestroy", &hip.destroy);
  }
  return 0;
}

int main(void) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream upload, compute;
  rill_event uploaded;
  complex_value *values, *host;
  uintptr_t native = 0;
  CHECK(rill_device_open(NULL, &device));
  CHECK(rill_device_get_info(device, &info));
  if (!open_fft(info.backend)) {
    printf("no cuFFT or hipFFT for %s\n", info.name);
    return 0;
  }
  CHECK(rill_stream_create(device, NULL, &upload));
  CHECK(rill_stream_create(device, NULL, &compute));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, N, &values));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, N, &host));
  for (int i = 0; i < N; i++) host[i] = (complex_value){ (float)(i % 7), (float)(i % 3) };

  int cuda_plan = 0;
  void *hip_plan = NULL;
  const int is_cuda = info.backend == RILL_BACKEND_CUDA;
  CHECK(rill_stream_native(compute, &native));
  if (!make_current(compute, &info)) return 1;
  CHECK_VENDOR(is_cuda ? cuda.plan(&cuda_plan, N, C2C, 1) : hip.plan(&hip_plan, N, C2C, 1));
  CHECK_VENDOR(is_cuda ? cuda.set_stream(cuda_plan, (void *)native) : hip.set_stream(hip_plan, (void *)native));

  CHECK(rill_copy_async(upload, values, host, sizeof *values * N));
  CHECK(rill_stream_record_new_event(upload, NULL, &uploaded));
  CHECK(rill_stream_wait_event(compute, uploaded, 0)); /* the library's work runs after the upload */
  for (int i = 0; i < 2; i++) {
    const int direction = i == 0 ? FORWARD : INVERSE;
    CHECK_VENDOR(is_cuda ? cuda.run(cuda_plan, values, values, direction)
                         : hip.run(hip_plan, values, values, direction));
  }
  CHECK(rill_copy_async(compute, host, values, sizeof *values * N));
  CHECK(rill_stream_synchronize(compute));

  int wrong = 0;
  for (int i = 0; i < N; i++) { /* the inverse is not divided by N */
    const float re = host[i].re / (float)N - (float)(i % 7), im = host[i].im / (float)N - (float)(i % 3);
    wrong += re * re + im * im > 1e-6f;
  }
  printf("%d of %d values differ after a transform and its inverse\n", wrong, N);
  CHECK_VENDOR(is_cuda ? cuda.destroy(cuda_plan) : hip.destroy(hip_plan));
  CHECK(rill_event_release(uploaded));
  CHECK(rill_free(values));
  CHECK(rill_free(host));
  CHECK(rill_stream_release(upload));
  CHECK(rill_stream_release(compute));
  return wrong != 0;
}
