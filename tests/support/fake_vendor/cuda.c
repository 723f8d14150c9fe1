/* The CUDA driver API over the engine: contexts, streams, events.  cuda_device.c and cuda_kernels.c have the rest. */
#include "cuda_front.h"

/* ---- the thread's stack of contexts ---- */

static _Thread_local struct fake_context *stack[64];
static _Thread_local size_t depth;

int fake_current_context(struct fake_context **out) {
  if (depth == 0) return FAKE_INVALID_CONTEXT;
  *out = stack[depth - 1];
  return FAKE_OK;
}

static int push(CUcontext handle) {
  struct fake_context *context;
  const int code = handle == NULL ? FAKE_INVALID_CONTEXT : fake_context_get(handle, &context);
  if (code != FAKE_OK) return code;
  if (depth == sizeof stack / sizeof *stack)
    fake_die("cuCtxPushCurrent: more than %zu contexts on the stack: one is never popped", depth);
  stack[depth++] = context;
  return FAKE_OK;
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { CU_CALL(push(context)); }

static int pop(CUcontext *out) {
  if (depth == 0) return FAKE_INVALID_CONTEXT;
  depth--;
  if (out != NULL) *out = stack[depth]->handle;
  return FAKE_OK;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *out) { CU_CALL(pop(out)); }

static int set_current(CUcontext handle) {
  struct fake_context *context = NULL;
  const int code = handle == NULL ? FAKE_OK : fake_context_get(handle, &context);
  if (code != FAKE_OK) return code;
  if (depth > 0) depth--;
  if (context != NULL) stack[depth++] = context;
  return FAKE_OK;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) { CU_CALL(set_current(context)); }

static int get_current(CUcontext *out) {
  if (out == NULL) return FAKE_INVALID_VALUE;
  *out = depth == 0 ? NULL : stack[depth - 1]->handle;
  return FAKE_OK;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *out) { CU_CALL(get_current(out)); }

static int current_device(CUdevice *out) {
  struct fake_context *context;
  const int code = fake_current_context(&context);
  if (code == FAKE_OK) *out = context->device->ordinal;
  return code;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *out) { CU_CALL(current_device(out)); }

static int synchronize_current(void) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  return code == FAKE_OK ? fake_context_synchronize(context) : code;
}

CUresult CUDAAPI cuCtxSynchronize(void) { CU_CALL(synchronize_current()); }

static int priority_range(int *least, int *greatest) {
  struct fake_context *context;
  const int code = fake_current_context(&context);
  if (code != FAKE_OK) return code;
  if (least != NULL) *least = fake_vendor.priority_least;
  if (greatest != NULL) *greatest = fake_vendor.priority_greatest;
  return FAKE_OK;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) { CU_CALL(priority_range(least, greatest)); }

static int create_context(CUcontext *out, unsigned flags, CUdevice device) {
  struct fake_context *context;
  if (out == NULL) return FAKE_INVALID_VALUE;
  const int code = fake_context_create(device, flags, &context);
  if (code != FAKE_OK) return code;
  *out = context->handle;
  return push(context->handle);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device) {
  CU_CALL(create_context(out, flags, device));
}

static int destroy_context(CUcontext handle) {
  struct fake_context *context;
  const int code = handle == NULL ? FAKE_INVALID_CONTEXT : fake_context_get(handle, &context);
  if (code != FAKE_OK) return code;
  if (depth > 0 && stack[depth - 1] == context) depth--;
  return fake_context_destroy(context);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) { CU_CALL(destroy_context(context)); }

/* ---- streams ---- */

static int create_stream(CUstream *out, unsigned flags, int priority) {
  void *handle = NULL;
  const int code = fake_stream_create(flags, priority, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned int flags) { CU_CALL(create_stream(out, flags, 0)); }

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
  CU_CALL(create_stream(out, flags, priority));
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) { CU_CALL(fake_stream_destroy(stream)); }

CUresult CUDAAPI cuStreamQuery(CUstream stream) { CU_CALL(fake_stream_query(stream)); }

CUresult CUDAAPI cuStreamSynchronize(CUstream stream) { CU_CALL(fake_stream_synchronize(stream)); }

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  CU_CALL(flags > CU_EVENT_WAIT_EXTERNAL ? FAKE_INVALID_VALUE : fake_stream_wait(stream, event));
}

/* What a getter of one value needs: the stream, and somewhere to write to. */
static int look_at(CUstream handle, const void *out, struct fake_stream **stream) {
  return out == NULL ? FAKE_INVALID_VALUE : fake_stream_get(handle, stream);
}

static int stream_priority(CUstream handle, int *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->priority;
  return code;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream stream, int *out) { CU_CALL(stream_priority(stream, out)); }

static int stream_flags(CUstream handle, unsigned *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->flags;
  return code;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned int *out) { CU_CALL(stream_flags(stream, out)); }

static int stream_context(CUstream handle, CUcontext *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->context->handle;
  return code;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *out) { CU_CALL(stream_context(stream, out)); }

/* As measured on driver 580: asking during a capture invalidates it. */
static int stream_id(CUstream handle, unsigned long long *out) {
  struct fake_stream *stream;
  int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) code = fake_capture_refuse(stream);
  if (code == FAKE_OK) *out = stream->id;
  return code;
}

CUresult CUDAAPI cuStreamGetId(CUstream stream, unsigned long long *out) { CU_CALL(stream_id(stream, out)); }

static int stream_is_capturing(CUstream handle, CUstreamCaptureStatus *out) {
  static const CUstreamCaptureStatus states[] = { CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                                  CU_STREAM_CAPTURE_STATUS_INVALIDATED };
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = states[stream->capture];
  return code;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out) {
  CU_CALL(stream_is_capturing(stream, out));
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  CU_CALL(fake_capture_begin(stream, (int)mode));
}

static int end_capture(CUstream stream, CUgraph *out) {
  void *graph = NULL;
  const int code = out == NULL ? FAKE_INVALID_VALUE : fake_capture_end(stream, &graph);
  if (out != NULL) *out = graph;
  return code;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *out) { CU_CALL(end_capture(stream, out)); }

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) { CU_CALL(fake_graph_destroy(graph)); }

static int exchange_capture_mode(CUstreamCaptureMode *mode) {
  int value = mode == NULL ? -1 : (int)*mode;
  const int code = fake_capture_exchange(&value);
  if (code == FAKE_OK) *mode = (CUstreamCaptureMode)value;
  return code;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) { CU_CALL(exchange_capture_mode(mode)); }

/* ---- host functions ---- */

static void invoke_callback(const struct fake_host_call *call, int status) {
  ((CUstreamCallback)call->function)(call->stream, (CUresult)status, call->user);
}

static void invoke_host_function(const struct fake_host_call *call, int status) {
  (void)status;
  ((CUhostFn)call->function)(call->user);
}

CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user, unsigned int flags) {
  CU_CALL(flags != 0 ? FAKE_INVALID_VALUE
                     : fake_host_call(&(struct fake_host_call){ .invoke = invoke_callback,
                                                                .function = (void (*)(void))callback,
                                                                .stream = stream,
                                                                .user = user,
                                                                .notified_of_faults = true }));
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user) {
  CU_CALL(fake_host_call(&(struct fake_host_call){
      .invoke = invoke_host_function, .function = (void (*)(void))function, .stream = stream, .user = user }));
}

/* ---- events ---- */

static int create_event(CUevent *out, unsigned flags) {
  void *handle = NULL;
  const int code = fake_event_create(flags, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned int flags) { CU_CALL(create_event(out, flags)); }

CUresult CUDAAPI cuEventDestroy(CUevent event) { CU_CALL(fake_event_destroy(event)); }

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event) {
  CU_CALL(fake_ipc_export_event(event, out));
}

static int open_event(CUevent *out, const CUipcEventHandle *bytes) {
  void *handle = NULL;
  const int code = fake_ipc_open_event(bytes, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  return code;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) { CU_CALL(open_event(out, &handle)); }

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) { CU_CALL(fake_event_record(event, stream)); }

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  CU_CALL(flags > CU_EVENT_RECORD_EXTERNAL ? FAKE_INVALID_VALUE : fake_event_record(event, stream));
}

CUresult CUDAAPI cuEventQuery(CUevent event) { CU_CALL(fake_event_query(event)); }

CUresult CUDAAPI cuEventSynchronize(CUevent event) { CU_CALL(fake_event_synchronize(event)); }

CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  CU_CALL(fake_event_elapsed(start, end, ms));
}
