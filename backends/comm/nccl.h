/* NVIDIA's part of gpu_comm.c: where NCCL is found, and how a device is made current for its calls. */
#ifndef RILL_COMM_NCCL_H
#define RILL_COMM_NCCL_H

#define ENGINE rill__comm_nccl
#define ENGINE_NAME "nccl"
#define ENGINE_BACKEND RILL_BACKEND_CUDA
#define ENGINE_LIBRARY "libnccl.so.2"
#define ENGINE_BESIDE
#define ENGINE_INSTALL                                                                                           \
  "install libnccl2 from NVIDIA's package repository, or nvidia-nccl-cu13 with pip and put its lib folder into " \
  "LD_LIBRARY_PATH"

#define DRIVER_LIBRARIES "libcuda.so.1"
struct driver {
  int (*push)(void *context);
  int (*pop)(void **context);
  int (*exchange_capture_mode)(int *mode);
  int (*capture_info)(void *stream, int *status, unsigned long long *id, void **graph, const void **nodes,
                      size_t *count);
  int (*create_object)(void **object, void *data, void (*destroy)(void *data), unsigned references, unsigned flags);
  int (*release_object)(void *object, unsigned references);
  int (*retain_object)(void *graph, void *object, unsigned references, unsigned flags);
};
#define DRIVER_FUNCTIONS                                                      \
  DRIVER_FN(push, "cuCtxPushCurrent_v2", true)                                \
  DRIVER_FN(pop, "cuCtxPopCurrent_v2", true)                                  \
  DRIVER_FN(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", true) \
  DRIVER_FN(capture_info, "cuStreamGetCaptureInfo_v2", true)                  \
  DRIVER_FN(create_object, "cuUserObjectCreate", false)                       \
  DRIVER_FN(release_object, "cuUserObjectRelease", false)                     \
  DRIVER_FN(retain_object, "cuGraphRetainUserObject", false)

/* Makes the device's context current.  NCCL uses the thread's current context, and restores the context that it found.
 */
static inline int enter_device(const struct driver *driver, const struct comm *comm, int *before) {
  (void)before;
  return driver->push((void *)comm->context);
}
static inline void leave_device(const struct driver *driver, int before) {
  void *context;
  (void)before;
  (void)driver->pop(&context);
}

#endif
