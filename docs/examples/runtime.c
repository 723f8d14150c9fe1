/* Combines code that uses the CUDA runtime or HIP with code that uses rill: they share memory, a stream of rill, and
 * a stream of the runtime. */
#include "vendor_library.h"

enum { N = 1 << 16 };

static struct {
  int (*set_device)(int device);
  int (*fill)(void *p, int value, size_t n, void *stream);
  int (*create)(void **stream, unsigned flags);
  int (*destroy)(void *stream);
} runtime;

static int open_runtime(uint32_t backend) {
  static const char *const cuda[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", NULL };
  static const char *const hip[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL };
  if (backend != RILL_BACKEND_CUDA && backend != RILL_BACKEND_HIP) return 0;
  const int is_cuda = backend == RILL_BACKEND_CUDA;
  void *library = open_one(is_cuda ? cuda : hip);
  return library != NULL && find(library, is_cuda ? "cudaSetDevice" : "hipSetDevice", &runtime.set_device) &&
         find(library, is_cuda ? "cudaMemsetAsync" : "hipMemsetAsync", &runtime.fill) &&
         find(library, is_cuda ? "cudaStreamCreateWithFlags" : "hipStreamCreateWithFlags", &runtime.create) &&
         find(library, is_cuda ? "cudaStreamDestroy" : "hipStreamDestroy", &runtime.destroy);
}

static int count_wrong(const unsigned char *bytes, unsigned char expected) {
  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += bytes[i] != expected;
  return wrong;
}

int main(void) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream own, theirs;
  unsigned char *memory, *host;
  uintptr_t native = 0;
  void *their_stream = NULL;
  CHECK(rill_device_open(NULL, &device));
  CHECK(rill_device_get_info(device, &info));
  if (!open_runtime(info.backend)) {
    printf("no CUDA runtime and no HIP for %s\n", info.name);
    return 0;
  }
  CHECK(rill_stream_create(device, NULL, &own));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, N, &memory));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, N, &host));
  CHECK_VENDOR(runtime.set_device(info.ordinal)); /* the same device and context as in rill */

  /* The runtime submits to a stream of rill. */
  CHECK(rill_stream_native(own, &native));
  CHECK_VENDOR(runtime.fill(memory, 3, N, (void *)native));
  CHECK(rill_copy_async(own, host, memory, N));
  CHECK(rill_stream_synchronize(own));
  int wrong = count_wrong(host, 3);

  /* rill submits to a stream of the runtime. Flag 1 means that the stream does not wait for stream 0. */
  CHECK_VENDOR(runtime.create(&their_stream, 1));
  CHECK(rill_stream_import(device, (uintptr_t)their_stream, NULL, &theirs));
  CHECK_VENDOR(runtime.fill(memory, 4, N, their_stream));
  CHECK(rill_stream_wait_stream(own, theirs)); /* streams of both can wait for each other */
  CHECK(rill_copy_async(own, host, memory, N));
  CHECK(rill_stream_wait_stream(theirs, own));
  CHECK_VENDOR(runtime.fill(memory, 5, N, their_stream));
  CHECK(rill_stream_synchronize(theirs));
  wrong += count_wrong(host, 4);
  printf("%d wrong bytes\n", wrong);

  CHECK(rill_stream_release(theirs)); /* borrowed: the runtime destroys the stream itself */
  CHECK_VENDOR(runtime.destroy(their_stream));
  CHECK(rill_free(memory));
  CHECK(rill_free(host));
  CHECK(rill_stream_release(own));
  return wrong != 0;
}
