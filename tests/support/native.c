#include "native.h"

#include <dlfcn.h>

/* Both vendors return 0 for success, and 600 for "not ready". */
enum { NOT_READY = 600 };

static struct {
  void *library;
  bool cuda;
  int (*stream_create)(uintptr_t *stream, unsigned flags);
  int (*stream_destroy)(uintptr_t stream);
  int (*stream_query)(uintptr_t stream);
  int (*event_create)(uintptr_t *event, unsigned flags);
  int (*event_record)(uintptr_t event, uintptr_t stream);
  int (*event_destroy)(uintptr_t event);
  int (*memory_alloc)(uintptr_t *p, size_t size);
  int (*memory_free)(uintptr_t p);
  int (*host_alloc)(void **p, size_t size, unsigned flags);
  int (*host_free)(void *p);
  /* CUDA's driver names a context, HIP a device. */
  int (*context_get)(uintptr_t *context);
  int (*context_set)(uintptr_t context);
  int (*device_get)(int *device);
  int (*device_set)(int device);
  int (*capture_begin)(uintptr_t stream, int mode);
  int (*capture_end)(uintptr_t stream, uintptr_t *graph);
  int (*graph_destroy)(uintptr_t graph);
  int (*fill)(uintptr_t p, unsigned char value, size_t n, uintptr_t stream);
} vendor;

static void *open_library(bool cuda) {
  static const char *const names[] = { "libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  for (int i = cuda ? 0 : 1; i < (cuda ? 1 : 4); i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) return library;
  }
  return NULL;
}

/* A function by its name; ISO C has no cast from an object pointer for it. */
static void find(void *function, const char *cuda_name, const char *hip_name) {
  const char *name = vendor.cuda ? cuda_name : hip_name;
  if (name == NULL) return;
  void *address = dlsym(vendor.library, name);
  if (address == NULL) fail_msg("the vendor's library has no %s", name);
  memcpy(function, &address, sizeof address);
}

bool native_available(void) {
  if (!dut.gpu) return false;
  vendor.cuda = dut.info.backend == RILL_BACKEND_CUDA;
  vendor.library = open_library(vendor.cuda);
  if (vendor.library == NULL) fail_msg("%s works, but its vendor's library is not loaded", dut.name);
  find(&vendor.stream_create, "cuStreamCreate", "hipStreamCreateWithFlags");
  find(&vendor.stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy");
  find(&vendor.stream_query, "cuStreamQuery", "hipStreamQuery");
  find(&vendor.event_create, "cuEventCreate", "hipEventCreateWithFlags");
  find(&vendor.event_record, "cuEventRecord", "hipEventRecord");
  find(&vendor.event_destroy, "cuEventDestroy_v2", "hipEventDestroy");
  find(&vendor.memory_alloc, "cuMemAlloc_v2", "hipMalloc");
  find(&vendor.memory_free, "cuMemFree_v2", "hipFree");
  find(&vendor.host_alloc, "cuMemHostAlloc", "hipHostMalloc");
  find(&vendor.host_free, "cuMemFreeHost", "hipHostFree");
  find(&vendor.context_get, "cuCtxGetCurrent", NULL);
  find(&vendor.context_set, "cuCtxSetCurrent", NULL);
  find(&vendor.device_get, NULL, "hipGetDevice");
  find(&vendor.device_set, NULL, "hipSetDevice");
  find(&vendor.capture_begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture");
  find(&vendor.capture_end, "cuStreamEndCapture", "hipStreamEndCapture");
  find(&vendor.graph_destroy, "cuGraphDestroy", "hipGraphDestroy");
  find(&vendor.fill, "cuMemsetD8Async", "hipMemsetD8Async");
  return true;
}

uintptr_t native_current(void) {
  uintptr_t context = 0;
  int device = 0;
  if (vendor.cuda) {
    assert_int_equal(vendor.context_get(&context), 0);
    return context;
  }
  assert_int_equal(vendor.device_get(&device), 0);
  return (uintptr_t)device;
}

static void set_current(uintptr_t current) {
  assert_int_equal(vendor.cuda ? vendor.context_set(current) : vendor.device_set((int)current), 0);
}

/* Makes the device current as its owner would, and returns what was current before. */
static uintptr_t enter(rill_device device) {
  const uintptr_t before = native_current();
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream stream;
  uintptr_t context = 0;
  assert_ok(rill_device_get_info(device, &info));
  assert_ok(rill_device_default_stream(device, &stream));
  assert_ok(rill_stream_context(stream, &context));
  set_current(vendor.cuda ? context : (uintptr_t)info.ordinal);
  return before;
}

uintptr_t native_stream_create(rill_device device) {
  uintptr_t stream = 0;
  const uintptr_t before = enter(device);
  assert_int_equal(vendor.stream_create(&stream, 1), 0); /* non-blocking */
  set_current(before);
  return stream;
}

void native_stream_destroy(uintptr_t stream) { assert_int_equal(vendor.stream_destroy(stream), 0); }

bool native_stream_is_alive(uintptr_t stream) {
  const int status = vendor.stream_query(stream);
  return status == 0 || status == NOT_READY;
}

int native_capture_begin(uintptr_t stream, bool global) { return vendor.capture_begin(stream, global ? 0 : 2); }

bool native_capture_end(uintptr_t stream) {
  uintptr_t graph = 0;
  if (vendor.capture_end(stream, &graph) != 0) return false;
  return graph == 0 || vendor.graph_destroy(graph) == 0;
}

void native_fill(uintptr_t stream, void *p, unsigned char value, size_t n) {
  assert_int_equal(vendor.fill((uintptr_t)p, value, n, stream), 0);
}

uintptr_t native_event_create(rill_device device) {
  uintptr_t event = 0;
  const uintptr_t before = enter(device);
  assert_int_equal(vendor.event_create(&event, 0), 0); /* with timing */
  set_current(before);
  return event;
}

void native_event_record(uintptr_t event, uintptr_t stream) { assert_int_equal(vendor.event_record(event, stream), 0); }

void native_event_destroy(uintptr_t event) { assert_int_equal(vendor.event_destroy(event), 0); }

void *native_memory_alloc(rill_device device, size_t size, bool pinned) {
  uintptr_t memory = 0;
  void *host = NULL;
  const uintptr_t before = enter(device);
  assert_int_equal(pinned ? vendor.host_alloc(&host, size, 1) : vendor.memory_alloc(&memory, size), 0); /* portable */
  set_current(before);
  return pinned ? host : (void *)memory;
}

void native_memory_free(rill_device device, void *p, bool pinned) {
  const uintptr_t before = enter(device);
  assert_int_equal(pinned ? vendor.host_free(p) : vendor.memory_free((uintptr_t)p), 0);
  set_current(before);
}
