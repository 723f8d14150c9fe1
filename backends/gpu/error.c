#include "backends/gpu/gpu.h"

/* Returns the fault of earlier work that a code reports, if the device is unusable after it; otherwise NULL. */
static const char *fault_of(gpu_result result) {
  switch (result) {
    case GPU_ECC_UNCORRECTABLE: return "its memory has an error that cannot be corrected";
    case GPU_LINK_UNCORRECTABLE: return "a link between GPUs has an error that cannot be corrected";
    case GPU_CONTAINED: return "an error of the hardware or of a peer's memory was contained";
    case GPU_ILLEGAL_ADDRESS: return "a kernel or copy accessed an address that is unmapped or not its own";
    case GPU_LAUNCH_TIMEOUT: return "a kernel ran longer than the system allows";
    case GPU_ASSERT: return "an assertion in a kernel failed";
    case GPU_STACK_ERROR: return "the stack of a kernel overflowed or was overwritten";
    case GPU_ILLEGAL_INSTRUCTION: return "a kernel executed an illegal instruction";
    case GPU_MISALIGNED_ADDRESS: return "a kernel used an address that is not aligned";
    case GPU_INVALID_ADDRESS_SPACE: return "a kernel used an address of the wrong address space";
    case GPU_INVALID_PC: return "a kernel's program counter left its code";
    case GPU_LAUNCH_FAILED: return "a kernel failed";
    case GPU_TENSOR_MEMORY_LEAK: return "a kernel did not release its tensor memory";
    case GPU_MPS_CLIENT_TERMINATED:
      return "the server that shares the device among processes has disconnected this one";
    case GPU_EXTERNAL_DEVICE: return "an external device that work waited for reported an error";
    default: return NULL;
  }
}

rill_status gpu_status_of(gpu_result result) {
  if (fault_of(result) != NULL) return RILL_ERROR_DEVICE_LOST;
  switch (result) {
    case GPU_SUCCESS: return RILL_OK;
    case GPU_OUT_OF_MEMORY: return RILL_ERROR_OUT_OF_MEMORY;
    case GPU_NOT_READY: return RILL_ERROR_NOT_READY;
    case GPU_PEER_UNSUPPORTED:
    case GPU_TOO_MANY_PEERS:
    case GPU_NOT_SUPPORTED: return RILL_ERROR_UNSUPPORTED;
    case GPU_LAUNCH_TOO_LARGE:
    case GPU_COOPERATIVE_TOO_LARGE:
    case GPU_CLUSTER_TOO_LARGE: return RILL_ERROR_OUT_OF_RANGE;
    case GPU_CAPTURED_EVENT: return RILL_ERROR_NOT_RECORDED;
    case GPU_CAPTURE_UNSUPPORTED:
    case GPU_CAPTURE_MERGE:
    case GPU_CAPTURE_ISOLATION:
    case GPU_CAPTURE_IMPLICIT: return RILL_ERROR_CAPTURE_ACTIVE;
    case GPU_CAPTURE_INVALIDATED:
    case GPU_CAPTURE_UNMATCHED:
    case GPU_CAPTURE_UNJOINED:
    case GPU_CAPTURE_WRONG_THREAD: return RILL_ERROR_CAPTURE_INVALID;
    default: return RILL_ERROR_BACKEND;
  }
}

/* Returns why the driver refused a call, with a hint, in the form of core's texts. */
static const char *reason_of(gpu_result result) {
  switch (result) {
    case GPU_OUT_OF_MEMORY: return "memory ran out";
    case GPU_DEINITIALIZED: return "the driver has shut down: the process is ending";
    case GPU_INVALID_HANDLE:
    case GPU_INVALID_CONTEXT:
    case GPU_CONTEXT_DESTROYED:
      return "a native handle does not belong to this device, or was destroyed" RILL_HINT
             "keep native streams and events alive for as long as rill uses them";
    case GPU_NOT_READY: return "the work is not complete";
    case GPU_NOT_SUPPORTED: return "the driver or the device cannot do this";
    case GPU_PEER_UNSUPPORTED: return "the device cannot access the other one's memory";
    case GPU_TOO_MANY_PEERS: return "the device has access to the maximum number of peers that the hardware allows";
    case GPU_HOST_MEMORY_REGISTERED:
      return "some of the memory's pages are pinned already: they were allocated as pinned memory, or registered by "
             "other code";
    case GPU_LAUNCH_TOO_LARGE:
      return "a block needs more registers or shared memory than the device has" RILL_HINT "launch smaller blocks";
    case GPU_COOPERATIVE_TOO_LARGE:
      return "the blocks of the cooperative grid cannot all run concurrently" RILL_HINT
             "rill_kernel_cooperative_blocks returns how many can, if nothing else uses the device";
    case GPU_CLUSTER_TOO_LARGE: return "a cluster of this many blocks does not fit";
    case GPU_CAPTURED_EVENT: return "the event was last recorded in a capture";
    case GPU_CAPTURE_UNSUPPORTED: return "it is not permitted while a stream is being captured";
    case GPU_CAPTURE_INVALIDATED:
      return "the capture has been invalidated by an earlier error" RILL_HINT "end the capture";
    case GPU_CAPTURE_MERGE: return "it would join two captures";
    case GPU_CAPTURE_UNMATCHED: return "the capture did not begin on this stream";
    case GPU_CAPTURE_UNJOINED: return "the capture has a stream that was not joined to its first one";
    case GPU_CAPTURE_ISOLATION: return "it would order work inside a capture after work outside, or the reverse";
    case GPU_CAPTURE_IMPLICIT:
      return "the vendor's null stream cannot be used while a blocking stream is being captured";
    case GPU_CAPTURE_WRONG_THREAD: return "the capture was begun by another thread";
    default: return "the driver refused the call";
  }
}

rill_status gpu_fail(struct rill__device *device, gpu_result result, const char *symbol) {
  if (result < 0) { /* from gpu_enter */
    result = -result;
    symbol = GPU_ENTER_TEXT;
  }
  const char *name = gpu_vendor_error_name(result);
  if (name == NULL) name = "unknown error";
  const char *fault = fault_of(result);
  const bool bad_handle =
      result == GPU_CONTEXT_DESTROYED || result == GPU_INVALID_CONTEXT || result == GPU_INVALID_HANDLE;
  if (fault == NULL && bad_handle && device != NULL &&
      gpu_vendor_context_is_lost(gpu_device_of(device)->native, gpu_device_of(device)->sentinel)) {
    fault = "its context was destroyed or reset by other code of this process";
  }
  if (fault != NULL && device != NULL)
    return rill__device_lost(device, result, name, "%s (reported by %s)", fault, symbol);
  return rill__fail_native(gpu_status_of(result), result, name, "%s: %s", symbol, reason_of(result));
}

rill_status gpu_fail_unfinished(const char *what, uint64_t ns) {
  return rill__fail(RILL_ERROR_TIMEOUT,
                    "the %s was not complete within %llu ns" RILL_HINT "it is still running; wait again", what,
                    (unsigned long long)ns);
}
