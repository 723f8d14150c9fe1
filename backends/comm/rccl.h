/* AMD's part of gpu_comm.c: where RCCL is found, and how a device is made current for its calls. */
#ifndef RILL_COMM_RCCL_H
#define RILL_COMM_RCCL_H

#define ENGINE rill__comm_rccl
#define ENGINE_NAME "rccl"
#define ENGINE_BACKEND RILL_BACKEND_HIP
#define ENGINE_LIBRARY "librccl.so.1"
/* Searched in the runtime's folder first, because RCCL needs the exact runtime version that it was linked with. */
#define ENGINE_BESIDE "librccl.so.1", "librccl.so",
#define ENGINE_INSTALL "install librccl1 (Debian, Ubuntu) or rccl (ROCm's package repository)"

#define DRIVER_LIBRARIES "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"
struct driver {
  int (*get)(int *device);
  int (*set)(int device);
  int (*exchange_capture_mode)(int *mode);
  int (*capture_info)(void *stream, int *status, unsigned long long *id, void **graph, const void **nodes,
                      size_t *count);
  int (*create_object)(void **object, void *data, void (*destroy)(void *data), unsigned references, unsigned flags);
  int (*release_object)(void *object, unsigned references);
  int (*retain_object)(void *graph, void *object, unsigned references, unsigned flags);
};
#define DRIVER_FUNCTIONS                                                       \
  DRIVER_FN(get, "hipGetDevice", true)                                         \
  DRIVER_FN(set, "hipSetDevice", true)                                         \
  DRIVER_FN(exchange_capture_mode, "hipThreadExchangeStreamCaptureMode", true) \
  DRIVER_FN(capture_info, "hipStreamGetCaptureInfo_v2", true)                  \
  DRIVER_FN(create_object, "hipUserObjectCreate", false)                       \
  DRIVER_FN(release_object, "hipUserObjectRelease", false)                     \
  DRIVER_FN(retain_object, "hipGraphRetainUserObject", false)

static inline int enter_device(const struct driver *driver, const struct comm *comm, int *before) {
  const int code = driver->get(before);
  return code == 0 && *before != comm->ordinal ? driver->set(comm->ordinal) : code;
}
static inline void leave_device(const struct driver *driver, int before) { (void)driver->set(before); }

#endif
