/* The HIP runtime API over the engine: current device, streams, events, launches.  hip_device.c has the rest.
 * Where HIP differs from CUDA it does so here, as far as is known from AMD's source. */
#include "hip_calls.h"

/* ---- the thread's current device ---- */

static _Thread_local int current;

/* HIP makes the primary context of a device at its first use, and nobody counts it. */
int fake_current_context(struct fake_context **out) {
  struct fake_device *device;
  if (fake_options()->devices == 0) return FAKE_NO_DEVICE;
  int code = fake_device_get(current, &device);
  if (code == FAKE_OK && (device->primary == NULL || !device->primary->alive)) code = fake_primary_retain(current, out);
  if (code == FAKE_OK) *out = device->primary;
  return code;
}

static int get_device(int *out) {
  if (fake_options()->devices == 0) return FAKE_NO_DEVICE;
  if (out == NULL) return FAKE_INVALID_VALUE;
  *out = current;
  return FAKE_OK;
}

hipError_t hipGetDevice(int *out) { HIP_CALL(get_device(out)); }

static int set_device(int ordinal) {
  struct fake_device *device;
  const int code = fake_options()->devices == 0 ? FAKE_NO_DEVICE : fake_device_get(ordinal, &device);
  if (code == FAKE_OK) current = ordinal;
  return code;
}

hipError_t hipSetDevice(int ordinal) { HIP_CALL(set_device(ordinal)); }

static int synchronize_device(void) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  return code == FAKE_OK ? fake_context_synchronize(context) : code;
}

hipError_t hipDeviceSynchronize(void) { HIP_CALL(synchronize_device()); }

hipError_t hipDeviceReset(void) { HIP_CALL(fake_primary_reset(current)); }

static int priority_range(int *least, int *greatest) {
  if (least != NULL) *least = fake_vendor.priority_least;
  if (greatest != NULL) *greatest = fake_vendor.priority_greatest;
  return FAKE_OK;
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) { HIP_CALL(priority_range(least, greatest)); }

/* ---- streams ---- */

static int create_stream(hipStream_t *out, unsigned flags, int priority) {
  void *handle = NULL;
  const int code = fake_stream_create(flags, priority, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

hipError_t hipStreamCreate(hipStream_t *out) { HIP_CALL(create_stream(out, 0, 0)); }

hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned int flags) { HIP_CALL(create_stream(out, flags, 0)); }

hipError_t hipStreamCreateWithPriority(hipStream_t *out, unsigned int flags, int priority) {
  HIP_CALL(create_stream(out, flags, priority));
}

/* Unlike CUDA's, it waits for the stream's work. */
static int destroy_stream(hipStream_t stream) {
  if ((uintptr_t)stream <= 2) return FAKE_INVALID_HANDLE;
  const int code = fake_stream_synchronize(stream);
  return code == FAKE_OK ? fake_stream_destroy(stream) : code;
}

hipError_t hipStreamDestroy(hipStream_t stream) { HIP_CALL(destroy_stream(stream)); }

hipError_t hipStreamQuery(hipStream_t stream) { HIP_CALL(fake_stream_query(stream)); }

hipError_t hipStreamSynchronize(hipStream_t stream) { HIP_CALL(fake_stream_synchronize(stream)); }

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  HIP_CALL(flags != 0 ? FAKE_INVALID_VALUE : fake_stream_wait(stream, event));
}

/* What a getter of one value needs: the stream, and somewhere to write to. */
static int look_at(hipStream_t handle, const void *out, struct fake_stream **stream) {
  return out == NULL ? FAKE_INVALID_VALUE : fake_stream_get(handle, stream);
}

static int stream_priority(hipStream_t handle, int *out) {
  struct fake_stream *stream;
  if (fake_quirks()->getters_look) fake_stream_look(handle, __func__);
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->priority;
  return code;
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *out) { HIP_CALL(stream_priority(stream, out)); }

static int stream_flags(hipStream_t handle, unsigned *out) {
  struct fake_stream *stream;
  if (fake_quirks()->getters_look) fake_stream_look(handle, __func__);
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->flags;
  return code;
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *out) { HIP_CALL(stream_flags(stream, out)); }

static int stream_device(hipStream_t handle, int *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->context->device->ordinal;
  return code;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out) { HIP_CALL(stream_device(stream, out)); }

/* Gives a device, never an error. */
int hipGetStreamDeviceId(hipStream_t stream) {
  int device = current;
  fake_lock();
  (void)stream_device(stream, &device);
  fake_unlock();
  return device;
}

static int stream_id(hipStream_t handle, unsigned long long *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->id;
  return code;
}

hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *out) { HIP_CALL(stream_id(stream, out)); }

static int stream_is_capturing(hipStream_t handle, hipStreamCaptureStatus *out) {
  static const hipStreamCaptureStatus states[] = { hipStreamCaptureStatusNone, hipStreamCaptureStatusActive,
                                                   hipStreamCaptureStatusInvalidated };
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = states[stream->capture];
  return code;
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out) {
  HIP_CALL(stream_is_capturing(stream, out));
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  HIP_CALL(fake_capture_begin(stream, (int)mode));
}

static int end_capture(hipStream_t stream, hipGraph_t *out) {
  void *graph = NULL;
  const int code = out == NULL ? FAKE_INVALID_VALUE : fake_capture_end(stream, &graph);
  if (out != NULL) *out = graph;
  return code;
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) { HIP_CALL(end_capture(stream, out)); }

hipError_t hipGraphDestroy(hipGraph_t graph) { HIP_CALL(fake_graph_destroy(graph)); }

static int exchange_capture_mode(hipStreamCaptureMode *mode) {
  int value = mode == NULL ? -1 : (int)*mode;
  const int code = fake_capture_exchange(&value);
  if (code == FAKE_OK) *mode = (hipStreamCaptureMode)value;
  return code;
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) { HIP_CALL(exchange_capture_mode(mode)); }

/* ---- host functions ---- */

static void invoke_callback(const struct fake_host_call *call, int status) {
  ((hipStreamCallback_t)call->function)(call->stream, (hipError_t)status, call->user);
}

static void invoke_host_function(const struct fake_host_call *call, int status) {
  (void)status;
  ((hipHostFn_t)call->function)(call->user);
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *user, unsigned int flags) {
  HIP_CALL(flags != 0 ? FAKE_INVALID_VALUE
                      : fake_host_call(&(struct fake_host_call){ .invoke = invoke_callback,
                                                                 .function = (void (*)(void))callback,
                                                                 .stream = stream,
                                                                 .user = user,
                                                                 .notified_of_faults = true }));
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *user) {
  HIP_CALL(fake_host_call(&(struct fake_host_call){
      .invoke = invoke_host_function, .function = (void (*)(void))function, .stream = stream, .user = user }));
}

/* ---- events ---- */

static int create_event(hipEvent_t *out, unsigned flags) {
  void *handle = NULL;
  const unsigned release = hipEventReleaseToDevice | hipEventReleaseToSystem; /* say how caches are flushed */
  const int code = fake_event_create(flags & ~release, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

hipError_t hipEventCreate(hipEvent_t *out) { HIP_CALL(create_event(out, 0)); }

hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) { HIP_CALL(create_event(out, flags)); }

hipError_t hipEventDestroy(hipEvent_t event) { HIP_CALL(fake_event_destroy(event)); }

hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *out, hipEvent_t event) {
  HIP_CALL(fake_ipc_export_event(event, out));
}

static int open_event(hipEvent_t *out, const hipIpcEventHandle_t *bytes) {
  void *handle = NULL;
  const int code = fake_ipc_open_event(bytes, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

hipError_t hipIpcOpenEventHandle(hipEvent_t *out, hipIpcEventHandle_t handle) { HIP_CALL(open_event(out, &handle)); }

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) { HIP_CALL(fake_event_record(event, stream)); }

hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags) {
  HIP_CALL(flags > 1 ? FAKE_INVALID_VALUE : fake_event_record(event, stream));
}

hipError_t hipEventQuery(hipEvent_t event) { HIP_CALL(fake_event_query(event)); }

hipError_t hipEventSynchronize(hipEvent_t event) { HIP_CALL(fake_event_synchronize(event)); }

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t end) {
  HIP_CALL(fake_event_elapsed(start, end, ms));
}

/* ---- modules and launches ---- */

static int load_module(hipModule_t *out, const void *image) {
  void *handle = NULL;
  const int code = fake_module_load(image, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

hipError_t hipModuleLoadData(hipModule_t *out, const void *image) { HIP_CALL(load_module(out, image)); }

hipError_t hipModuleUnload(hipModule_t module) { HIP_CALL(fake_module_unload(module)); }

static int get_function(hipFunction_t *out, hipModule_t module, const char *name) {
  void *handle = NULL;
  const int code = fake_module_function(module, name, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
  HIP_CALL(get_function(out, module, name));
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *out, size_t *size, hipModule_t module, const char *name) {
  HIP_CALL(fake_module_global(module, name, out, size));
}

static int function_attribute(int *out, hipFunction_attribute attribute, hipFunction_t handle) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK) return code;
  if (out == NULL || (int)attribute < 0 || attribute >= HIP_FUNC_ATTRIBUTE_MAX) return FAKE_INVALID_VALUE;
  *out = attribute == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? FAKE_MAX_THREADS_PER_BLOCK
         : attribute == HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES             ? (int)function->static_shared
         : attribute == HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? (int)function->dynamic_limit
         : attribute == HIP_FUNC_ATTRIBUTE_NUM_REGS                      ? FAKE_REGISTERS
                                                                         : 0;
  return FAKE_OK;
}

hipError_t hipFuncGetAttribute(int *out, hipFunction_attribute attribute, hipFunction_t function) {
  HIP_CALL(function_attribute(out, attribute, function));
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function, int threads,
                                                              size_t shared) {
  HIP_CALL(fake_occupancy(function, threads, shared, blocks));
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *blocks, int *threads, hipFunction_t function, size_t shared,
                                                   int limit) {
  HIP_CALL(fake_suggest_block(function, shared, limit, threads, blocks));
}

/* The stream must be of the current device. */
static int launch(hipFunction_t function, hipStream_t stream, struct fake_launch *values, void **extra) {
  int device, code = fake_launch_extra(values, extra, HIP_LAUNCH_PARAM_END);
  if (code == FAKE_OK) code = stream_device(stream, &device);
  if (code == FAKE_OK && device != current) code = FAKE_INVALID_HANDLE;
  return code == FAKE_OK ? fake_launch(function, stream, values) : code;
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared, hipStream_t stream,
                                            void **arguments) {
  struct fake_launch values = { .grid = { grid_x, grid_y, grid_z },
                                .block = { block_x, block_y, block_z },
                                .shared = shared,
                                .args = arguments,
                                .cooperative = true,
                                .carried = 1u << 2 };
  HIP_CALL(launch(function, stream, &values, NULL));
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                 hipStream_t stream, void **arguments, void **extra) {
  struct fake_launch values = {
    .grid = { grid_x, grid_y, grid_z }, .block = { block_x, block_y, block_z }, .shared = shared, .args = arguments
  };
  HIP_CALL(launch(function, stream, &values, extra));
}
