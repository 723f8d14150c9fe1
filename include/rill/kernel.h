/* rill/kernel.h: loading kernels and launching them, from the host's side.
 *
 * A kernel source is compiled by rillcc into a C file that holds a bundle: the machine code for every target, and a
 * description of each kernel's arguments.  A bundle is loaded as a module of one device, which gives kernels by name.
 * rillcc's header also declares a typed launch function for each kernel:
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
 * The thing people get wrong: in RILL_ARGS a literal has its C type.  2.0 is a double and 8 bytes; a kernel's
 * float takes 2.0f.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_KERNEL_H
#define RILL_KERNEL_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Sizes of a grid or a block.  y or z 0 reads as 1. */
typedef struct rill_dim3 {
  uint32_t x, y, z;
} rill_dim3;

/** Sizes as an expression, in C and C++. */
static inline rill_dim3 rill_dim(uint32_t x, uint32_t y, uint32_t z) {
  rill_dim3 sizes = { x, y, z };
  return sizes;
}

/** One kernel argument: where its value is, and its size in bytes. */
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

/** Kinds of launch attribute, with their values; docs/guides/LAUNCH.md says which device has which. */
enum {
  RILL_ATTR_COOPERATIVE = 1,            /**< i32 0 or 1: all blocks run at a time (rill_kernel_cooperative_blocks) */
  RILL_ATTR_PRIORITY,                   /**< i32: as of a stream, clamped, for this launch */
  RILL_ATTR_PROGRAMMATIC_SERIALIZATION, /**< i32 0 or 1: may start before the kernel in front has ended */
  RILL_ATTR_PROGRAMMATIC_EVENT,         /**< event: recorded when all blocks have triggered it; without timing */
  RILL_ATTR_ACCESS_POLICY,              /**< access: which part of memory the cache is to keep */
  RILL_ATTR_MEMORY_SYNC_DOMAIN,         /**< i32 0 or 1: whose writes a fence of the kernel waits for */
  RILL_ATTR_CARVEOUT,                   /**< i32: percent of a unit's memory preferred as shared memory; -1: default */
  RILL_ATTR_END_                        /* private: one past the last */
};

/** In rill_launch_attribute.flags of RILL_ATTR_PROGRAMMATIC_EVENT: each block triggers the event as it starts.  The
 *  others take no flags.  In a capture the event is recorded when the whole kernel is complete. */
enum { RILL_ATTR_TRIGGER_AT_BLOCK_START = 1 };

/** Values of rill_launch_attribute.value.access.hit and .miss; a miss cannot be persisting. */
enum { RILL_ACCESS_NORMAL = 0, RILL_ACCESS_STREAMING = 1, RILL_ACCESS_PERSISTING = 2 };

typedef struct rill_launch_attribute {
  uint32_t kind, flags;
  union { /* kind decides */
    int32_t i32;
    rill_event event;
    struct {
      void *base;
      size_t size;
      float hit_ratio; /* 0 to 1: how much of it is treated as a hit */
      uint32_t hit, miss;
    } access;
    uint8_t raw[32];
  } value;
} rill_launch_attribute;

/** The shape of a launch. */
typedef struct rill_launch {
  size_t struct_size;
  rill_dim3 grid;            /**< blocks, with clusters too */
  rill_dim3 block;           /**< threads */
  rill_dim3 cluster;         /**< blocks; all 0: none */
  uint32_t shared_mem_bytes; /**< dynamic shared memory of a block */
  uint32_t reserved;         /**< 0 */
  const rill_launch_attribute *attributes;
  size_t attribute_count;
  const rill_constant *constants;
  size_t constant_count;
  const char *label; /**< names the launch in error texts, in RILL_TRACE, and on the CPU in faults; may be NULL */
} rill_launch;
#define RILL_LAUNCH_INIT \
  { sizeof(rill_launch), { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL }
/** A shape in place, in C and C++: saxpy_launch(s, RILL_LAUNCH(.grid = rill_dim(64, 2, 1), .block = rill_dim(32, 8, 1),
 *  .shared_mem_bytes = 4096), n, 2.0f, x, y). */
#define RILL_LAUNCH(...) RILL_OPTIONS_(rill_launch, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_launch, RILL_OPTIONS_FIELD_(grid) RILL_OPTIONS_FIELD_(block) RILL_OPTIONS_FIELD_(cluster)
                                      RILL_OPTIONS_FIELD_(shared_mem_bytes) RILL_OPTIONS_FIELD_(attributes)
                                          RILL_OPTIONS_FIELD_(attribute_count) RILL_OPTIONS_FIELD_(constants)
                                              RILL_OPTIONS_FIELD_(constant_count) RILL_OPTIONS_FIELD_(label))

/** What is known of a kernel.  0 where the device does not say. */
typedef struct rill_kernel_info {
  size_t struct_size;
  const char *name;     /**< the symbol in the image; valid while a reference to the kernel is held */
  uint32_t arg_count;   /**< 0 too if the arguments are not known */
  uint32_t registers;   /**< of a thread */
  uint32_t max_threads; /**< of a block of this kernel */
  uint64_t shared_bytes, local_bytes, constant_bytes;
  uint32_t warp_size;           /**< threads that run in step on this device */
  uint32_t required_block[3];   /**< threads: a block has this shape; 0, 0, 0: any */
  uint32_t required_cluster[3]; /**< blocks: a cluster has this shape; 0, 0, 0: any */
} rill_kernel_info;
#define RILL_KERNEL_INFO_INIT                                                     \
  {                                                                               \
    sizeof(rill_kernel_info), NULL, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0 }, { 0, 0, 0 } \
  }

/** Constant data that rillcc writes; opaque. */
typedef struct rill_bundle rill_bundle;

/** A kernel by name, looked up at its first launch on each device.  Static, with a zero cache. */
typedef struct rill_kernel_ref {
  const rill_bundle *bundle;
  const char *name;
  uint64_t cache[2];
} rill_kernel_ref;

/** Loads a bundle on a device: picks the image that fits it best.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, NOT_FOUND (no image fits; the text lists what is inside and
 *           what the device needs), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuModuleLoadData, cuLibraryLoadData, hipModuleLoadData. */
RILL_API RILL_NODISCARD rill_status rill_module_load(rill_device device, const rill_bundle *bundle, rill_module *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_module_retain(rill_module module);

/** Drops a reference; the module is unloaded in a later call, when none of its kernels is left and its work is done:
 *  on a GPU when the device has no work at all, since drivers wait for all of it to unload.  Zero: nothing
 *  happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuModuleUnload, hipModuleUnload. */
RILL_API rill_status rill_module_release(rill_module module);

/** Returns a kernel of a module.  It keeps the module.  `name` is the symbol in the image, or the name in a C++ source
 *  without parameters: "game::move", "scale<float, 4>".
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (several kernels have that name in the source; the text has
 *           symbols), NOT_FOUND (the text lists the kernels inside),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuModuleGetFunction, hipModuleGetFunction. */
RILL_API RILL_NODISCARD rill_status rill_module_get_kernel(rill_module module, const char *name, rill_kernel *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_kernel_retain(rill_kernel kernel);

/** Drops a reference.  Launches that were submitted still run.  Zero: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    nothing. */
RILL_API rill_status rill_kernel_release(rill_kernel kernel);

/** Fills in what is known of a kernel.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuFuncGetAttribute, hipFuncGetAttribute. */
RILL_API RILL_NODISCARD rill_status rill_kernel_get_info(rill_kernel kernel, rill_kernel_info *info);

/** Returns the size in bytes of argument `index`, counted from 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the arguments are not known:
 *           RILL_FEATURE_KERNEL_ARGS).
 *  Like:    cuFuncGetParamInfo. */
RILL_API RILL_NODISCARD rill_status rill_kernel_arg_size(rill_kernel kernel, uint32_t index, size_t *size);

/** Returns the offset in bytes of argument `index`, counted from 0, where all arguments lie in one buffer, as a struct
 *  with these members has them.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (the arguments are not known:
 *           RILL_FEATURE_KERNEL_ARGS; or an older rillcc made the bundle).
 *  Like:    cuFuncGetParamInfo. */
RILL_API RILL_NODISCARD rill_status rill_kernel_arg_offset(rill_kernel kernel, uint32_t index, size_t *offset);

/** Returns the CUfunction or hipFunction_t of a kernel; 0 on the CPU.  It stays the kernel's.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_kernel_native(rill_kernel kernel, uintptr_t *out);

/** Launches a kernel as work of the stream.  Arguments are read at the call.
 *
 *  Argument count and sizes, dimensions and shared memory are checked on every backend, and the text of a
 *  refusal names the argument, the sizes and the kernel.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, WRONG_BACKEND, INVALID_ARGUMENT, OUT_OF_RANGE,
 *           UNSUPPORTED (an attribute, a cluster or constants that the device cannot do), NOT_FOUND (the variable of
 *           a constant), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuLaunchKernelEx, hipModuleLaunchKernel, Mojo DeviceStream.enqueue_function. */
RILL_API RILL_NODISCARD rill_status rill_stream_launch(rill_stream stream, rill_kernel kernel,
                                                       const rill_launch *launch, const rill_arg *args,
                                                       size_t arg_count);

/** Launches a kernel by reference: loads its bundle on the stream's device at the first use there, and
 *  remembers the kernel.
 *
 *  Errors:  those of rill_module_load, rill_module_get_kernel and rill_stream_launch.
 *  Threads: any, on one reference too.
 *  Like:    Mojo DeviceStream.enqueue_function of an uncompiled function. */
RILL_API RILL_NODISCARD rill_status rill_stream_launch_ref(rill_stream stream, rill_kernel_ref *ref,
                                                           const rill_launch *launch, const rill_arg *args,
                                                           size_t arg_count);

/** Does the same for the typed launch functions that rillcc writes: an error, and a line of RILL_TRACE, has the name
 *  `function`, which the call copies.  NULL: this function's.
 *
 *  Errors:  those of rill_stream_launch_ref.
 *  Threads: any, on one reference too.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_launch_typed(rill_stream stream, rill_kernel_ref *ref,
                                                             const rill_launch *launch, const rill_arg *args,
                                                             size_t arg_count, const char *function);

/** The shape of a launch of at least `threads` threads in one dimension, in blocks of `block` threads.
 *
 *  0 threads or a block of 0 give a grid of 0, and more blocks than fit 32 bits a grid of UINT32_MAX: a
 *  launch refuses both. */
static inline rill_launch rill_launch_1d(uint64_t threads, uint32_t block) {
  rill_launch launch = RILL_LAUNCH_INIT;
  const uint64_t blocks = block == 0 ? 0 : threads / block + (threads % block != 0);
  launch.grid.x = blocks > UINT32_MAX ? UINT32_MAX : RILL_CAST_(uint32_t, blocks);
  launch.block.x = block;
  return launch;
}

/** The same in three dimensions: at least `width` by `height` by `depth` threads.  A 0 anywhere gives a grid.x of 0. */
static inline rill_launch rill_launch_3d(uint64_t width, uint64_t height, uint64_t depth, uint32_t block_x,
                                         uint32_t block_y, uint32_t block_z) {
  rill_launch launch = rill_launch_1d(width, block_x);
  launch.grid.y = rill_launch_1d(height, block_y).grid.x;
  launch.grid.z = rill_launch_1d(depth, block_z).grid.x;
  launch.block.y = block_y;
  launch.block.z = block_z;
  if (launch.grid.y == 0 || launch.grid.z == 0) launch.grid.x = 0; /* in y and z a launch takes 0 for 1 */
  return launch;
}

/** The same in two dimensions. */
static inline rill_launch rill_launch_2d(uint64_t width, uint64_t height, uint32_t block_x, uint32_t block_y) {
  return rill_launch_3d(width, height, 1, block_x, block_y, 1);
}

RILL_EXTERN_C_END

#include <rill/args.h>

#endif
