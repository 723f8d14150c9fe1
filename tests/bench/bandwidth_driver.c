/* The vendor's driver as a side of the bandwidth benchmark; built once for each vendor, as the backends are. */
#include "bandwidth.h"

#include "backends/gpu/gpu.h"

#include <dlfcn.h>

static gpu_stream_handle streams[2];
static gpu_device_handle device, far_device;
static gpu_context context, far_context;

#define FAILS(call) ((gpu_result)gpu_api.call != GPU_SUCCESS)

#ifdef GPU_VENDOR_IS_CUDA
typedef CUresult peer_copy(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n, CUstream stream);
#define PEER_COPY "cuMemcpyPeerAsync"
#define PEER_ARGUMENTS(dst, src, n) GPU_POINTER(dst), far_context, GPU_POINTER(src), context, n, streams[0]
#else
typedef hipError_t peer_copy(void *dst, int to, const void *src, int from, size_t n, hipStream_t stream);
#define PEER_COPY "hipMemcpyPeerAsync"
#define PEER_ARGUMENTS(dst, src, n) dst, far_device, src, device, n, streams[0]
#endif

static peer_copy *copy_to_peer;

static void find_peer_copy(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  void *address = handle != NULL ? dlsym(handle, PEER_COPY) : NULL;
  memcpy(&copy_to_peer, &address, sizeof address);
}

static bool copies(void *dst, uint32_t dst_kind, const void *src, uint32_t src_kind, size_t n, int which) {
  const char *symbol;
  return gpu_vendor_copy(dst, dst_kind, src, src_kind, n, streams[which], &symbol) == GPU_SUCCESS;
}

static bool copies_rows(const struct transfer_memory *m) {
  const struct rill__copy_3d rows = { .dst = m->other,
                                      .src = m->device,
                                      .dst_kind = RILL_MEMORY_DEVICE,
                                      .src_kind = RILL_MEMORY_DEVICE,
                                      .width = ROW_BYTES,
                                      .height = m->size / ROW_PITCH,
                                      .depth = 1,
                                      .dst_pitch = ROW_PITCH,
                                      .src_pitch = ROW_PITCH };
  return gpu_vendor_copy_2d(&rows, streams[0]) == GPU_SUCCESS;
}

static bool run(enum transfer transfer, const struct transfer_memory *m) {
  enum { D = RILL_MEMORY_DEVICE, P = RILL_MEMORY_PINNED, U = RILL_MEMORY_UNKNOWN };
  const gpu_pointer to = GPU_POINTER(m->device);
  switch (transfer) {
    case TO_DEVICE: return copies(m->device, D, m->pinned, P, m->size, 0);
    case TO_HOST: return copies(m->pinned, P, m->device, D, m->size, 0);
    case BOTH:
      return copies(m->device, D, m->pinned, P, m->size, 0) && copies(m->pinned_other, P, m->other, D, m->size, 1);
    case FROM_PAGEABLE: return copies(m->device, D, m->pageable, U, m->size, 0);
    case TO_PAGEABLE: return copies(m->pageable, U, m->device, D, m->size, 0);
    case ACROSS: return copies(m->other, D, m->device, D, m->size, 0);
    case FILL_1: return !FAILS(fill_8(to, 7, m->size, streams[0]));
    case FILL_2: return !FAILS(fill_16(to, 7, m->size / 2, streams[0]));
    case FILL_4:
    case FILL_8:
    case FILL_16: return !FAILS(fill_32(to, 7, m->size / 4, streams[0]));
    case COPY_2D: return copies_rows(m);
    case FILL_2D:
      if (gpu_api.fill_2d_32 == NULL)
        return !FAILS(fill_2d_8(to, ROW_PITCH, 7, ROW_BYTES, m->size / ROW_PITCH, streams[0]));
      return !FAILS(fill_2d_32(to, ROW_PITCH, 7, ROW_BYTES / 4, m->size / ROW_PITCH, streams[0]));
    case PEER:
    case PEER_ON:
      if (copy_to_peer == NULL) return copies(m->far, D, m->device, D, m->size, 0); /* a library that lacks it */
      return (gpu_result)copy_to_peer(PEER_ARGUMENTS(m->far, m->device, m->size)) == GPU_SUCCESS;
    case TRANSFER_COUNT: break;
  }
  return false;
}

static bool wait(void) { return !FAILS(stream_synchronize(streams[0])) && !FAILS(stream_synchronize(streams[1])); }

open_raw GPU_NAME(open_raw);

bool GPU_NAME(open_raw)(int ordinal, int far, const uintptr_t natives[2], struct transfer_side *out) {
  char why[512];
  const char *library = gpu_load(why, sizeof why);
  struct gpu_scope scope;
  if (library == NULL || FAILS(init(0)) || FAILS(device_get(&device, ordinal))) return false;
  if (gpu_vendor_open(device, &context) != GPU_SUCCESS) return false;
  if (far >= 0 && (FAILS(device_get(&far_device, far)) || gpu_vendor_open(far_device, &far_context) != GPU_SUCCESS))
    return false;
  if (gpu_vendor_enter(&scope, device, context) != GPU_SUCCESS) return false; /* for good */
  find_peer_copy(library);
  for (int i = 0; i < 2; i++) streams[i] = (gpu_stream_handle)natives[i];
  *out = (struct transfer_side){ run, wait };
  return true;
}
