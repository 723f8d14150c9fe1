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

CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned int flags) {
  CU_CALL(fake_stream_create(flags, 0, (void **)out));
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) { CU_CALL(fake_stream_destroy(stream)); }

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  CU_CALL(flags > CU_EVENT_WAIT_EXTERNAL ? FAKE_INVALID_VALUE : fake_stream_wait(stream, event));
}

/* What a getter of one value needs: the stream, and somewhere to write to. */
static int look_at(CUstream handle, const void *out, struct fake_stream **stream) {
  return out == NULL ? FAKE_INVALID_VALUE : fake_stream_get(handle, stream);
}

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

/* ---- events ---- */

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned int flags) { CU_CALL(fake_event_create(flags, (void **)out)); }
