/* Streams, events and host functions. */
#include "shim.h"

#include <stdlib.h>
#include <string.h>

/* ---- streams ---- */

/* HIP has 1, 0 and -1, CUDA 0 to -5: each is one less there, so that it can be read back. */
enum { LEAST = 1, GREATEST = -1 };

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least != NULL) *least = LEAST;
  if (greatest != NULL) *greatest = GREATEST;
  return shim_result((int)shim_start());
}

hipError_t hipStreamCreateWithPriority(hipStream_t *out, unsigned int flags, int priority) {
  const int clamped = priority > LEAST ? LEAST : priority < GREATEST ? GREATEST : priority;
  SHIM_CALL(cuStreamCreateWithPriority, (CUstream *)(void *)out, flags, clamped - 1);
}

hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned int flags) {
  return hipStreamCreateWithPriority(out, flags, 0);
}

hipError_t hipStreamCreate(hipStream_t *out) { return hipStreamCreateWithPriority(out, 0, 0); }

/* Unlike CUDA's, it waits for the stream's work. */
static CUresult wait_and_destroy(CUstream stream) {
  const CUresult waited = shim_cuda.cuStreamSynchronize(stream);
  const CUresult code = shim_cuda.cuStreamDestroy(stream);
  return code != CUDA_SUCCESS ? code : waited;
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  hipError_t code = (uintptr_t)stream <= 2 ? hipErrorInvalidHandle : shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)wait_and_destroy(shim_stream(stream));
    shim_leave();
  }
  return shim_result((int)code);
}

hipError_t hipStreamQuery(hipStream_t stream) { SHIM_CALL(cuStreamQuery, shim_stream(stream)); }

hipError_t hipStreamSynchronize(hipStream_t stream) { SHIM_CALL(cuStreamSynchronize, shim_stream(stream)); }

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  if (flags != 0) return shim_result(hipErrorInvalidValue);
  SHIM_CALL(cuStreamWaitEvent, shim_stream(stream), shim_event(event), 0);
}

static CUresult get_priority(CUstream stream, int *out) {
  const CUresult code = shim_cuda.cuStreamGetPriority(stream, out);
  if (code == CUDA_SUCCESS && (uintptr_t)stream > 2) ++*out;
  return code;
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *out) {
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)get_priority(shim_stream(stream), out);
    shim_leave();
  }
  return shim_result((int)code);
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *out) {
  SHIM_CALL(cuStreamGetFlags, shim_stream(stream), out);
}

hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *out) {
  SHIM_CALL(cuStreamGetId, shim_stream(stream), out);
}

hipError_t shim_stream_device(hipStream_t stream, int *out) {
  CUcontext context;
  *out = shim_current_device();
  if ((uintptr_t)stream <= 2) return hipSuccess;
  CUresult code = shim_cuda.cuStreamGetCtx(shim_stream(stream), &context);
  if (code == CUDA_SUCCESS) code = shim_cuda.cuCtxPushCurrent(context);
  if (code != CUDA_SUCCESS) return (hipError_t)code;
  code = shim_cuda.cuCtxGetDevice(out);
  shim_leave();
  return (hipError_t)code;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out) {
  const hipError_t code = shim_start();
  return shim_result((int)(code != hipSuccess ? code : shim_stream_device(stream, out)));
}

int hipGetStreamDeviceId(hipStream_t stream) {
  int device = shim_current_device();
  if (shim_start() == hipSuccess) (void)shim_stream_device(stream, &device);
  return device;
}

/* ---- captures ---- */

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuStreamIsCapturing(shim_stream(stream), &status);
    shim_leave();
  }
  *out = status == CU_STREAM_CAPTURE_STATUS_ACTIVE        ? hipStreamCaptureStatusActive
         : status == CU_STREAM_CAPTURE_STATUS_INVALIDATED ? hipStreamCaptureStatusInvalidated
                                                          : hipStreamCaptureStatusNone;
  return shim_result((int)code);
}

/* The numbers of the modes are the same. */
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  CUstreamCaptureMode cuda_mode = (CUstreamCaptureMode)*mode;
  hipError_t code = shim_start();
  if (code == hipSuccess) code = (hipError_t)shim_cuda.cuThreadExchangeStreamCaptureMode(&cuda_mode);
  *mode = (hipStreamCaptureMode)cuda_mode;
  return shim_result((int)code);
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  SHIM_CALL(cuStreamBeginCapture, shim_stream(stream), (CUstreamCaptureMode)mode);
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) {
  SHIM_CALL(cuStreamEndCapture, shim_stream(stream), (CUgraph *)(void *)out);
}

hipError_t hipGraphDestroy(hipGraph_t graph) { SHIM_CALL_PLAIN(cuGraphDestroy, (CUgraph)(void *)graph); }

/* ---- host functions ---- */

struct callback {
  hipStreamCallback_t function;
  void *user;
};

static void CUDA_CB run_callback(CUstream stream, CUresult status, void *data) {
  const struct callback callback = *(struct callback *)data;
  free(data);
  callback.function((hipStream_t)stream, (hipError_t)status, callback.user);
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t function, void *user, unsigned int flags) {
  struct callback *callback = function == NULL ? NULL : malloc(sizeof *callback);
  if (callback == NULL) return shim_result(function == NULL ? hipErrorInvalidValue : hipErrorOutOfMemory);
  *callback = (struct callback){ .function = function, .user = user };
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuStreamAddCallback(shim_stream(stream), run_callback, callback, flags);
    shim_leave();
  }
  if (code != hipSuccess) free(callback);
  return shim_result((int)code);
}

hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *user) {
  SHIM_CALL(cuLaunchHostFunc, shim_stream(stream), function, user);
}

/* ---- events ---- */

hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
  const unsigned release = hipEventReleaseToDevice | hipEventReleaseToSystem; /* CUDA does not ask */
  SHIM_CALL(cuEventCreate, (CUevent *)(void *)out, flags & ~release);
}

hipError_t hipEventCreate(hipEvent_t *out) { return hipEventCreateWithFlags(out, 0); }

hipError_t hipEventDestroy(hipEvent_t event) { SHIM_CALL(cuEventDestroy, shim_event(event)); }

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  SHIM_CALL(cuEventRecord, shim_event(event), shim_stream(stream));
}

hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags) {
  SHIM_CALL(cuEventRecordWithFlags, shim_event(event), shim_stream(stream), flags);
}

hipError_t hipEventQuery(hipEvent_t event) { SHIM_CALL(cuEventQuery, shim_event(event)); }

hipError_t hipEventSynchronize(hipEvent_t event) { SHIM_CALL(cuEventSynchronize, shim_event(event)); }

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t end) {
  SHIM_CALL(cuEventElapsedTime, ms, shim_event(start), shim_event(end));
}

/* ---- sharing between processes: the handles have one size, and the same bytes ---- */

hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *out, hipEvent_t event) {
  SHIM_CALL(cuIpcGetEventHandle, (CUipcEventHandle *)(void *)out, shim_event(event));
}

hipError_t hipIpcOpenEventHandle(hipEvent_t *out, hipIpcEventHandle_t handle) {
  CUipcEventHandle bytes;
  _Static_assert(sizeof bytes == sizeof handle, "64 bytes each");
  memcpy(&bytes, &handle, sizeof bytes);
  SHIM_CALL(cuIpcOpenEventHandle, (CUevent *)(void *)out, bytes);
}
