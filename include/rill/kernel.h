/* rill/kernel.h: host functions that load and launch kernels.
 *
 * rillcc compiles a kernel source into a C file that contains a bundle: the machine code for every target, and a
 * description of each kernel's arguments. Loading a bundle on a device creates a module, which returns kernels by
 * name. rillcc also writes a header that declares a typed launch function for each kernel:
 *
 *     #include "saxpy.rill.h"
 *     rill_launch launch = rill_launch_1d(n, 256);
 *     saxpy_launch(stream, &launch, n, 2.0f, x, y);                          // checked by the compiler
 *
 *     rill_module module;
 *     rill_kernel kernel;
 *     rill_module_load(device, &saxpy_bundle, &module);
 *     rill_module_get_kernel(module, "saxpy", &kernel);
 *     rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, 2.0f, x, y)); // checked at the call
 *
 * Pitfall: a literal in RILL_ARGS has its C type. 2.0 is a double of 8 bytes; pass 2.0f for a float parameter.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_KERNEL_H
#define RILL_KERNEL_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Dimensions of a grid or a block. A y or z of 0 means 1. */
typedef struct rill_dim3 {
  uint32_t x, y, z;
} rill_dim3;

/** Returns dimensions, for use in an expression. */
static inline rill_dim3 rill_dim(uint32_t x, uint32_t y, uint32_t z) {
  rill_dim3 sizes = { x, y, z };
  return sizes;
}

/** One kernel argument: a pointer to its value, and its size in bytes. */
typedef struct rill_arg {
  const void *data;
  size_t size;
} rill_arg;

/** A value for a `__constant__` variable, written in stream order before the kernel. */
typedef struct rill_constant {
  const char *symbol;
  const void *data;
  size_t size;
} rill_constant;

/** Kinds of launch attribute, with their values; docs/guides/LAUNCH.md lists which devices support each. */
enum {
  RILL_ATTR_COOPERATIVE = 1,            /**< i32 0 or 1: all blocks run at once (rill_kernel_cooperative_blocks) */
  RILL_ATTR_PRIORITY,                   /**< i32: priority of this launch, clamped, as for a stream */
  RILL_ATTR_PROGRAMMATIC_SERIALIZATION, /**< i32 0 or 1: may start before the previous kernel has finished */
  RILL_ATTR_PROGRAMMATIC_EVENT,         /**< event, without timing: recorded when all blocks have triggered it */
  RILL_ATTR_ACCESS_POLICY,              /**< access: the memory that the L2 cache should keep */
  RILL_ATTR_MEMORY_SYNC_DOMAIN,         /**< i32 0 or 1: the domain whose writes the kernel's fences wait for */
  RILL_ATTR_CARVEOUT,                   /**< i32: preferred shared memory in percent of the maximum; -1: default */
  RILL_ATTR_END_                        /* private: one past the last */
};

/** A flag for RILL_ATTR_PROGRAMMATIC_EVENT: each block triggers the event when it starts. Other attributes have no
 *  flags. In a capture the event is recorded when the whole kernel is complete. */
enum { RILL_ATTR_TRIGGER_AT_BLOCK_START = 1 };

/** Values of rill_launch_attribute.value.access.hit and .miss; a miss cannot be persisting. */
enum { RILL_ACCESS_NORMAL = 0, RILL_ACCESS_STREAMING = 1, RILL_ACCESS_PERSISTING = 2 };

/** An attribute of a launch: RILL_ATTR_* and its value. */
typedef struct rill_launch_attribute {
  uint32_t kind, flags;
  union { /* selected by kind */
    int32_t i32;
    rill_event event;
    struct {
      void *base;
      size_t size;
      float hit_ratio; /* 0 to 1: the part of the accesses that is treated as a hit */
      uint32_t hit, miss;
    } access;
    uint8_t raw[32];
  } value;
} rill_launch_attribute;

/** The shape of a launch. */
typedef struct rill_launch {
  size_t struct_size;
  rill_dim3 grid;            /**< blocks, even if clusters are used */
  rill_dim3 block;           /**< threads */
  rill_dim3 cluster;         /**< blocks; all 0: none */
  uint32_t shared_mem_bytes; /**< dynamic shared memory per block */
  uint32_t reserved;         /**< must be 0 */
  const rill_launch_attribute *attributes;
  size_t attribute_count;
  const rill_constant *constants;
  size_t constant_count;
  const char *label; /**< names the launch in error texts, in RILL_TRACE and in CPU faults; may be NULL */
} rill_launch;
#define RILL_LAUNCH_INIT \
  { sizeof(rill_launch), { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL }
/** A launch expression for C and C++: saxpy_launch(s, RILL_LAUNCH(.grid = rill_dim(64, 2, 1), .block = rill_dim(32,
 *  8, 1), .shared_mem_bytes = 4096), n, 2.0f, x, y). */
#define RILL_LAUNCH(...) RILL_OPTIONS_(rill_launch, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_launch, RILL_OPTIONS_FIELD_(grid) RILL_OPTIONS_FIELD_(block) RILL_OPTIONS_FIELD_(cluster)
                                      RILL_OPTIONS_FIELD_(shared_mem_bytes) RILL_OPTIONS_FIELD_(attributes)
                                          RILL_OPTIONS_FIELD_(attribute_count) RILL_OPTIONS_FIELD_(constants)
                                              RILL_OPTIONS_FIELD_(constant_count) RILL_OPTIONS_FIELD_(label))

/** Properties of a kernel. A field is 0 if the device does not report it. */
typedef struct rill_kernel_info {
  size_t struct_size;
  const char *name;     /**< symbol in the image; valid while the caller holds a reference to the kernel */
  uint32_t arg_count;   /**< 0 also if the arguments are unknown */
  uint32_t registers;   /**< per thread */
  uint32_t max_threads; /**< per block of this kernel */
  uint64_t shared_bytes, local_bytes, constant_bytes;
  uint32_t warp_size;           /**< threads per warp on this device */
  uint32_t required_block[3];   /**< required block shape in threads; 0, 0, 0: any */
  uint32_t required_cluster[3]; /**< required cluster shape in blocks; 0, 0, 0: any */
} rill_kernel_info;
#define RILL_KERNEL_INFO_INIT                                                     \
  {                                                                               \
    sizeof(rill_kernel_info), NULL, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0 }, { 0, 0, 0 } \
  }

/** Kernels compiled by rillcc, as opaque constant data. */
typedef struct rill_bundle rill_bundle;

/** A kernel that is looked up by name at its first launch on each device. Must be static, with `cache` zero. */
typedef struct rill_kernel_ref {
  const rill_bundle *bundle;
  const char *name;
  uint64_t cache[2];
} rill_kernel_ref;

/** Loads the image of a bundle that best fits the device.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, NOT_FOUND (no image fits; the text lists the images and what the device
 *           needs), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuModuleLoadData, cuLibraryLoadData, hipModuleLoadData. */
RILL_API RILL_NODISCARD rill_status rill_module_load(rill_device device, const rill_bundle *bundle, rill_module *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_module_retain(rill_module module);

/** Drops a reference. After the last one, and after all its kernels are released, a later call unloads the module
 *  once its work has completed. On a GPU it is unloaded only when the device has no work at all, because drivers wait
 *  for all work of the device before they unload a module. Has no effect on the null handle.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuModuleUnload, hipModuleUnload. */
RILL_API rill_status rill_module_release(rill_module module);

/** Returns a kernel of a module. The kernel holds a reference to the module. `name` is the symbol in the image, or
 *  the name in the C++ source without parameters: "game::move", "scale<float, 4>".
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (several kernels have this name in the source; the text
 *           lists their symbols), NOT_FOUND (the text lists the kernels of the module),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuModuleGetFunction, hipModuleGetFunction. */
RILL_API RILL_NODISCARD rill_status rill_module_get_kernel(rill_module module, const char *name, rill_kernel *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_kernel_retain(rill_kernel kernel);

/** Drops a reference. Submitted launches still run. Has no effect on the null handle.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API rill_status rill_kernel_release(rill_kernel kernel);

/** Fills in the properties of a kernel.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuFuncGetAttribute, hipFuncGetAttribute. */
RILL_API RILL_NODISCARD rill_status rill_kernel_get_info(rill_kernel kernel, rill_kernel_info *info);

/** Returns the size in bytes of argument `index`, counted from 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the arguments are unknown:
 *           RILL_FEATURE_KERNEL_ARGS).
 *  Like:    cuFuncGetParamInfo. */
RILL_API RILL_NODISCARD rill_status rill_kernel_arg_size(rill_kernel kernel, uint32_t index, size_t *size);

/** Returns the offset in bytes of argument `index`, counted from 0, in a struct that has the arguments as its
 *  members.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the arguments are unknown:
 *           RILL_FEATURE_KERNEL_ARGS; or an older rillcc made the bundle).
 *  Like:    cuFuncGetParamInfo. */
RILL_API RILL_NODISCARD rill_status rill_kernel_arg_offset(rill_kernel kernel, uint32_t index, size_t *offset);

/** Returns the CUfunction or hipFunction_t of a kernel, or 0 on the CPU. The kernel owns it.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_kernel_native(rill_kernel kernel, uintptr_t *out);

/** Launches a kernel as work of the stream. Arguments are read during the call.
 *
 *  Argument count and sizes, dimensions and shared memory are checked on every backend. The error text names the
 *  argument, the sizes and the kernel.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, WRONG_BACKEND, INVALID_ARGUMENT, OUT_OF_RANGE,
 *           UNSUPPORTED (the device does not support an attribute, clusters or constants), NOT_FOUND (the variable of
 *           a constant), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuLaunchKernelEx, hipModuleLaunchKernel, Mojo DeviceStream.enqueue_function. */
RILL_API RILL_NODISCARD rill_status rill_stream_launch(rill_stream stream, rill_kernel kernel,
                                                       const rill_launch *launch, const rill_arg *args,
                                                       size_t arg_count);

/** Launches a kernel by reference. The first launch on a device loads the bundle there; later launches reuse the
 *  kernel.
 *
 *  Errors:  those of rill_module_load, rill_module_get_kernel and rill_stream_launch.
 *  Threads: any, including for one reference.
 *  Like:    Mojo DeviceStream.enqueue_function of an uncompiled function. */
RILL_API RILL_NODISCARD rill_status rill_stream_launch_ref(rill_stream stream, rill_kernel_ref *ref,
                                                           const rill_launch *launch, const rill_arg *args,
                                                           size_t arg_count);

/** Launches like rill_stream_launch_ref, for the typed launch functions that rillcc writes. Errors and lines of
 *  RILL_TRACE name `function`, which is copied; NULL selects the name of this function.
 *
 *  Errors:  those of rill_stream_launch_ref.
 *  Threads: any, including for one reference.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_launch_typed(rill_stream stream, rill_kernel_ref *ref,
                                                             const rill_launch *launch, const rill_arg *args,
                                                             size_t arg_count, const char *function);

/** Returns a one-dimensional launch of at least `threads` threads, in blocks of `block` threads.
 *
 *  With 0 threads or a block of 0 the grid is 0; with more blocks than fit into 32 bits it is UINT32_MAX. A launch
 *  refuses both. */
static inline rill_launch rill_launch_1d(uint64_t threads, uint32_t block) {
  rill_launch launch = RILL_LAUNCH_INIT;
  const uint64_t blocks = block == 0 ? 0 : threads / block + (threads % block != 0);
  launch.grid.x = blocks > UINT32_MAX ? UINT32_MAX : RILL_CAST_(uint32_t, blocks);
  launch.block.x = block;
  return launch;
}

/** Returns a three-dimensional launch of at least `width` by `height` by `depth` threads. If any argument is 0,
 *  grid.x is 0. */
static inline rill_launch rill_launch_3d(uint64_t width, uint64_t height, uint64_t depth, uint32_t block_x,
                                         uint32_t block_y, uint32_t block_z) {
  rill_launch launch = rill_launch_1d(width, block_x);
  launch.grid.y = rill_launch_1d(height, block_y).grid.x;
  launch.grid.z = rill_launch_1d(depth, block_z).grid.x;
  launch.block.y = block_y;
  launch.block.z = block_z;
  if (launch.grid.y == 0 || launch.grid.z == 0) launch.grid.x = 0; /* a launch treats a y or z of 0 as 1 */
  return launch;
}

/** Returns a two-dimensional launch of at least `width` by `height` threads. */
static inline rill_launch rill_launch_2d(uint64_t width, uint64_t height, uint32_t block_x, uint32_t block_y) {
  return rill_launch_3d(width, height, 1, block_x, block_y, 1);
}

RILL_EXTERN_C_END

#include <rill/args.h>

#endif
