#include "vendor.h"

#include "gate.rill.h"

#include <rill/bundle.h>

#include <stdio.h>

struct vendor vendor;

/* Both vendors' names of a field. */
static const struct {
  const char *field, *cuda, *hip;
  bool required;
} both[] = {
#define REQUIRED true
#define OPTIONAL false
#define GPU_FN(field, cuda_name, hip_name, need, capture) { #field, #cuda_name, #hip_name, need },
#define GPU_FN_CUDA(field, cuda_name, need, capture) { #field, #cuda_name, NULL, need },
#define GPU_FN_HIP(field, hip_name, need, capture) { #field, NULL, #hip_name, need },
#include "backends/gpu/gpu_api.def"
};
enum { FUNCTIONS = sizeof both / sizeof *both };

struct vendor_function vendor_functions[FUNCTIONS];
const size_t vendor_function_count = FUNCTIONS;

/* The vendor's functions that rill does not use itself, and those that a test calls directly. */
static struct {
  void *library;
  int (*stream_create)(uintptr_t *stream, unsigned flags);
  int (*stream_destroy)(uintptr_t stream);
  int (*event_create)(uintptr_t *event, unsigned flags);
  int (*event_record)(uintptr_t event, uintptr_t stream);
  int (*event_destroy)(uintptr_t event);
  int (*exchange_capture_mode)(int *mode);
  int (*stream_priority)(uintptr_t stream, int *priority);
  int (*stream_flags)(uintptr_t stream, unsigned *flags);
  int (*event_query)(uintptr_t event);
  /* CUDA */
  int (*context_get)(uintptr_t *context);
  int (*context_set)(uintptr_t context);
  int (*primary_retain)(uintptr_t *context, int device);
  int (*primary_reset)(int device);
  /* HIP */
  int (*device_get)(int *device);
  int (*device_set)(int device);
  int (*device_reset)(void);
  int (*peek_error)(void);
  int (*get_error)(void);
} native;

void vendor_names(void) {
  const char *name = getenv("RILL_TEST_VENDOR");
  if (name == NULL || (strcmp(name, "cuda") != 0 && strcmp(name, "hip") != 0)) {
    (void)fprintf(stderr, "RILL_TEST_VENDOR: expected cuda or hip\n");
    exit(2);
  }
  vendor.cuda = strcmp(name, "cuda") == 0;
  vendor.backend = vendor.cuda ? "cuda" : "hip";
  vendor.unknown = vendor.cuda ? "CUDA_ERROR_UNKNOWN" : "hipErrorUnknown";
  for (size_t i = 0; i < FUNCTIONS; i++) {
    vendor_functions[i].field = both[i].field;
    vendor_functions[i].name = vendor.cuda ? both[i].cuda : both[i].hip;
    vendor_functions[i].required = both[i].required;
  }
}

static const char *name_of(const char *field) {
  for (size_t i = 0; i < FUNCTIONS; i++) {
    if (strcmp(vendor_functions[i].field, field) == 0 && vendor_functions[i].name != NULL) {
      return vendor_functions[i].name;
    }
  }
  return NULL;
}

const char *vendor_name(const char *field) {
  const char *name = name_of(field);
  if (name == NULL) fail_msg("%s has no function \"%s\"", vendor.backend, field);
  return name;
}

/* The library may have a second version of it alone. */
bool vendor_has(const char *field) {
  char second[96];
  (void)snprintf(second, sizeof second, "%s_v2", vendor_name(field));
  return dlsym(native.library, vendor_name(field)) != NULL || dlsym(native.library, second) != NULL;
}

uint64_t vendor_calls(const char *field) {
  const char *name = name_of(field);
  return name == NULL ? 0 : vendor.fake->calls(name);
}

/* ISO C has no cast from an object pointer to a function's. */
static void find(void *function, const char *name) {
  void *address = name == NULL ? NULL : dlsym(native.library, name);
  if (name != NULL && address == NULL) fail_msg("the fake has no %s", name);
  memcpy(function, &address, sizeof address);
}

static void find_all(void) {
  const bool cuda = vendor.cuda;
  find(&native.stream_create, cuda ? "cuStreamCreate" : "hipStreamCreateWithFlags");
  find(&native.stream_destroy, cuda ? "cuStreamDestroy_v2" : "hipStreamDestroy");
  find(&native.event_create, cuda ? "cuEventCreate" : "hipEventCreateWithFlags");
  find(&native.event_record, cuda ? "cuEventRecord" : "hipEventRecord");
  find(&native.event_destroy, cuda ? "cuEventDestroy_v2" : "hipEventDestroy");
  find(&native.stream_priority, cuda ? "cuStreamGetPriority" : "hipStreamGetPriority");
  find(&native.stream_flags, cuda ? "cuStreamGetFlags" : "hipStreamGetFlags");
  find(&native.event_query, cuda ? "cuEventQuery" : "hipEventQuery");
  const char *exchange = cuda ? "cuThreadExchangeStreamCaptureMode" : "hipThreadExchangeStreamCaptureMode";
  find(&native.exchange_capture_mode, dlsym(native.library, exchange) != NULL ? exchange : NULL);
  find(&native.context_get, cuda ? "cuCtxGetCurrent" : NULL);
  find(&native.context_set, cuda ? "cuCtxSetCurrent" : NULL);
  find(&native.primary_retain, cuda ? "cuDevicePrimaryCtxRetain" : NULL);
  find(&native.primary_reset, cuda ? "cuDevicePrimaryCtxReset_v2" : NULL);
  find(&native.device_get, cuda ? NULL : "hipGetDevice");
  find(&native.device_set, cuda ? NULL : "hipSetDevice");
  find(&native.device_reset, cuda ? NULL : "hipDeviceReset");
  find(&native.peek_error, cuda ? NULL : "hipPeekAtLastError");
  find(&native.get_error, cuda ? NULL : "hipGetLastError");
}

static void load(void) {
  static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  for (int i = 0; i < 3 && native.library == NULL; i++) {
    const char *name = vendor.cuda ? "libcuda.so.1" : names[i];
    vendor.fake = rill_fake_find(name);
    if (vendor.fake != NULL) native.library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  }
  if (vendor.fake == NULL)
    fail_msg("the fake library of %s is not what was loaded: see LD_LIBRARY_PATH", vendor.backend);
}

static bool bundle_has_backend(const rill_bundle *bundle, const char *backend) {
  for (size_t i = 0; i < bundle->image_count; i++) {
    if (strcmp(bundle->images[i].backend, backend) == 0) return true;
  }
  return false;
}

uintptr_t native_new_stream(void) {
  uintptr_t before = 0, context = 0, stream = 0;
  int device = 0;
  if (vendor.cuda) {
    assert_int_equal(native.context_get(&before), 0);
    assert_int_equal(native.primary_retain(&context, 0), 0);
    assert_int_equal(native.context_set(context), 0);
  } else {
    assert_int_equal(native.device_get(&device), 0);
    assert_int_equal(native.device_set(0), 0);
  }
  assert_int_equal(native.stream_create(&stream, 1), 0); /* non-blocking */
  assert_int_equal(vendor.cuda ? native.context_set(before) : native.device_set(device), 0);
  return stream;
}

void native_destroy_stream(uintptr_t stream) { assert_int_equal(native.stream_destroy(stream), 0); }

bool native_event_is_ready(uintptr_t event) {
  const int code = native.event_query(event);
  assert_true(code == 0 || code == 600);
  if (native.get_error != NULL) (void)native.get_error();
  return code == 0;
}

void native_record_event(uintptr_t event, uintptr_t stream) { assert_int_equal(native.event_record(event, stream), 0); }

int native_priority(uintptr_t stream) {
  int priority = 99;
  assert_int_equal(native.stream_priority(stream, &priority), 0);
  return priority;
}

bool native_is_blocking(uintptr_t stream) {
  unsigned flags = 0;
  assert_int_equal(native.stream_flags(stream, &flags), 0);
  return (flags & 1) == 0;
}

void vendor_begin(void) {
  char name[16];
  vendor_names();
  (void)snprintf(name, sizeof name, "%s:0", vendor.backend);
  assert_ok(rill_device_open(name, &vendor.device));
  (void)snprintf(name, sizeof name, "%s:1", vendor.backend);
  assert_ok(rill_device_open(name, &vendor.second));
  assert_ok(rill_device_open("cpu", &vendor.cpu));
  vendor.info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  assert_ok(rill_device_get_info(vendor.device, &vendor.info));
  load();
  find_all();
  note_device(vendor.device);
  note_device(vendor.second);
  vendor.has_kernels = bundle_has_backend(&gate_bundle, vendor.backend);
  uintptr_t before = 0, context = 0;
  int device = 0;
  vendor.native_stream = native_new_stream();
  if (vendor.cuda) {
    assert_int_equal(native.context_get(&before), 0);
    assert_int_equal(native.primary_retain(&context, 0), 0);
    assert_int_equal(native.context_set(context), 0);
  } else {
    assert_int_equal(native.device_get(&device), 0);
    assert_int_equal(native.device_set(0), 0);
  }
  assert_int_equal(native.event_create(&vendor.native_event, 0), 0);
  assert_int_equal(native.event_record(vendor.native_event, vendor.native_stream), 0);
  assert_int_equal(vendor.cuda ? native.context_set(before) : native.device_set(device), 0);
}

void vendor_end(void) {
  (void)native.event_destroy(vendor.native_event);
  (void)native.stream_destroy(vendor.native_stream);
}

/* ---- the thread's native state ---- */

struct native_state native_state(void) {
  struct native_state state = { .capture_mode = 2 }; /* relaxed */
  int device = 0;
  if (vendor.cuda) {
    assert_int_equal(native.context_get(&state.current), 0);
  } else {
    state.last_error = native.peek_error();
    assert_int_equal(native.device_get(&device), 0);
    state.current = (uintptr_t)device;
  }
  if (native.exchange_capture_mode == NULL) return state;
  assert_int_equal(native.exchange_capture_mode(&state.capture_mode), 0);
  int mode = state.capture_mode;
  assert_int_equal(native.exchange_capture_mode(&mode), 0);
  return state;
}

void native_set_nothing(void) { assert_int_equal(vendor.cuda ? native.context_set(0) : native.device_set(0), 0); }

void native_set_second(void) {
  uintptr_t context = 0;
  if (!vendor.cuda) {
    assert_int_equal(native.device_set(1), 0);
    return;
  }
  assert_int_equal(native.primary_retain(&context, 1), 0);
  assert_int_equal(native.context_set(context), 0);
}

/* HIP has one context for each device. */
void native_set_foreign(void) {
  uintptr_t context = 0;
  if (!vendor.cuda) {
    native_set_second();
    return;
  }
  if (dlsym(native.library, "cuCtxCreate_v4") != NULL) { /* the version whose third argument is new */
    int (*create)(uintptr_t *, void *, unsigned, int);
    find(&create, "cuCtxCreate_v4");
    assert_int_equal(create(&context, NULL, 0, 0), 0);
  } else {
    int (*create)(uintptr_t *, unsigned, int);
    find(&create, "cuCtxCreate_v2");
    assert_int_equal(create(&context, 0, 0), 0);
  }
}

void native_put_back(struct native_state state) {
  int mode = state.capture_mode;
  if (native.exchange_capture_mode != NULL) assert_int_equal(native.exchange_capture_mode(&mode), 0);
  assert_int_equal(vendor.cuda ? native.context_set(state.current) : native.device_set((int)state.current), 0);
}

void native_leave_error(void) {
  if (vendor.cuda) return;
  assert_int_not_equal(native.device_set(99), 0);
}

static uintptr_t native_of(rill_stream stream) {
  uintptr_t handle = 0;
  assert_ok(rill_stream_native(stream, &handle));
  return handle;
}

bool native_begin_capture(rill_stream stream) {
  int (*begin)(uintptr_t, int);
  const char *name = vendor.cuda ? "cuStreamBeginCapture_v2" : "hipStreamBeginCapture";
  const char *end = vendor.cuda ? "cuStreamEndCapture" : "hipStreamEndCapture";
  if (dlsym(native.library, name) == NULL || dlsym(native.library, end) == NULL) return false;
  find(&begin, name);
  assert_int_equal(begin(native_of(stream), 2), 0); /* relaxed */
  return true;
}

void native_end_capture(rill_stream stream) {
  int (*end)(uintptr_t, uintptr_t *);
  uintptr_t graph = 0;
  find(&end, vendor.cuda ? "cuStreamEndCapture" : "hipStreamEndCapture");
  assert_int_equal(end(native_of(stream), &graph), 0);
}

void native_reset(void) {
  if (vendor.cuda) {
    assert_int_equal(native.primary_reset(0), 0);
    return;
  }
  int device = 0;
  assert_int_equal(native.device_get(&device), 0);
  assert_int_equal(native.device_set(0), 0);
  assert_int_equal(native.device_reset(), 0);
  assert_int_equal(native.device_set(device), 0);
}
