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

hipError_t hipStreamCreate(hipStream_t *out) { HIP_CALL(fake_stream_create(0, 0, (void **)out)); }

hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned int flags) {
  HIP_CALL(fake_stream_create(flags, 0, (void **)out));
}

/* Unlike CUDA's, it waits for the stream's work. */
static int destroy_stream(hipStream_t stream) {
  if ((uintptr_t)stream <= 2) return FAKE_INVALID_HANDLE;
  const int code = fake_stream_synchronize(stream);
  return code == FAKE_OK ? fake_stream_destroy(stream) : code;
}

hipError_t hipStreamDestroy(hipStream_t stream) { HIP_CALL(destroy_stream(stream)); }

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  HIP_CALL(flags != 0 ? FAKE_INVALID_VALUE : fake_stream_wait(stream, event));
}

/* What a getter of one value needs: the stream, and somewhere to write to. */
static int look_at(hipStream_t handle, const void *out, struct fake_stream **stream) {
  return out == NULL ? FAKE_INVALID_VALUE : fake_stream_get(handle, stream);
}

static int stream_device(hipStream_t handle, int *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->context->device->ordinal;
  return code;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out) { HIP_CALL(stream_device(stream, out)); }

/* Returns a device, never an error. */
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

/* ---- events ---- */

static int create_event(hipEvent_t *out, unsigned flags) {
  const unsigned release = hipEventReleaseToDevice | hipEventReleaseToSystem; /* say how caches are flushed */
  return fake_event_create(flags & ~release, (void **)out);
}

hipError_t hipEventCreate(hipEvent_t *out) { HIP_CALL(create_event(out, 0)); }

hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) { HIP_CALL(create_event(out, flags)); }

/* ---- modules and launches ---- */

hipError_t hipModuleLoadData(hipModule_t *out, const void *image) { HIP_CALL(fake_module_load(image, (void **)out)); }

hipError_t hipModuleGetGlobal(hipDeviceptr_t *out, size_t *size, hipModule_t module, const char *name) {
  HIP_CALL(fake_module_global(module, name, out, size));
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
