/* rill/device.h: the GPUs of this machine and its CPU.
 *
 * Devices are counted GPUs first, the CPU last; there is always at least the CPU.  A device is opened
 * by name or index, costs nothing until it is used, and is borrowed for ever: there is nothing to
 * release, and the same device always gives the same handle.
 *
 * A vendor's library is opened when one of its devices is asked for, not before: "cpu" opens none,
 * "hip:0" AMD's, "gpu" and NULL those of the vendors up to the first that has a GPU, and
 * rill_device_count all.
 *
 *     rill_device device;
 *     if (rill_device_open(NULL, &device) != RILL_OK)          // RILL_DEVICE, else a GPU, else the CPU
 *       ...
 *     rill_device_info info = RILL_DEVICE_INFO_INIT;
 *     if (rill_device_get_info(device, &info) == RILL_OK) puts(info.name);
 *
 * The thing people get wrong: there is no current device.  Every call names the device, or a stream of
 * it, and leaves the thread's native current device as it found it.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DEVICE_H
#define RILL_DEVICE_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** The values of rill_device_info.backend: X(constant, number, what names of its devices begin with).  Numbers never
 *  change. */
#define RILL_BACKEND_LIST(X)      \
  X(RILL_BACKEND_CPU, 1, "cpu")   \
  X(RILL_BACKEND_CUDA, 2, "cuda") \
  X(RILL_BACKEND_HIP, 3, "hip")

#define RILL_BACKEND_NUMBER_(constant, number, name) constant = number,
enum {
  RILL_BACKEND_LIST(RILL_BACKEND_NUMBER_) RILL_BACKEND_END_ /* private: one past the last */
};
#undef RILL_BACKEND_NUMBER_

/** What rill_device_supports can be asked about. */
enum {
  RILL_FEATURE_PEER = 1,     /**< reading another device's memory */
  RILL_FEATURE_MANAGED,      /**< memory that moves between host and device automatically */
  RILL_FEATURE_POOL,         /**< allocation in stream order */
  RILL_FEATURE_IPC,          /**< memory shared with other processes */
  RILL_FEATURE_CLUSTER,      /**< thread block clusters */
  RILL_FEATURE_COOPERATIVE,  /**< grids that synchronize as a whole */
  RILL_FEATURE_GRAPH,        /**< capture and graphs */
  RILL_FEATURE_GRAPH_UPDATE, /**< changing an instantiated graph */
  RILL_FEATURE_RTC,          /**< compiling kernels at run time */
  RILL_FEATURE_STREAM_ID,    /**< rill_stream_validate can tell a reused native stream */
  RILL_FEATURE_KERNEL_ARGS,  /**< the arguments of kernels are known, and checked, of every image */
  RILL_FEATURE_EVENT_IPC,    /**< events shared with other processes */
  RILL_FEATURE_CONDITIONAL,  /**< nodes of graphs under a condition or in a loop; no device, up to this version */
  RILL_FEATURE_END_          /* private: one past the last */
};

/** What is known of a device without using it.  All text is inline: no lifetimes. */
typedef struct rill_device_info {
  size_t struct_size; /**< left as it is, on failure too */
  uint32_t backend;   /**< RILL_BACKEND_* */
  int32_t ordinal;    /**< what cudaSetDevice or hipSetDevice takes in this process; 0 for the CPU */
  char name[128];
  char arch[64];       /**< "sm_90", "gfx942", "x86-64-v3" */
  char pci_bus_id[32]; /**< "0000:3b:00.0"; "" for the CPU */
  uint8_t uuid[16];    /**< all zero if unknown */
  int32_t numa_node;   /**< -1 if unknown */
  uint32_t compute_units, warp_size, max_threads_per_block;
  uint32_t max_block_dim[3], max_grid_dim[3];
  uint32_t registers_per_block;                      /**< 0 if the notion does not apply */
  uint64_t shared_per_block, shared_per_block_optin; /**< bytes; by default, and at most */
  uint64_t memory_total;                             /**< bytes */
  uint32_t core_clock_khz, memory_clock_khz;         /**< 0 if unknown */
  uint32_t driver_version, runtime_version;          /**< 13000 is 13.0; 0 if there is none */
  int32_t priority_least, priority_greatest;         /**< native; the greatest is the lowest number */
  uint32_t max_threads_per_unit, registers_per_unit; /**< resident on a compute unit at once; 0 if unknown */
  uint64_t shared_per_unit;                          /**< bytes of shared memory of a compute unit; 0 if unknown */
} rill_device_info;
#define RILL_DEVICE_INFO_INIT \
  { sizeof(rill_device_info), 0, 0, "", "", "", { 0 }, 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Returns the number of devices: at least 1, the CPU.
 *
 *  Errors:  INVALID_ARGUMENT.
 *  Like:    cudaGetDeviceCount, hipGetDeviceCount. */
RILL_API RILL_NODISCARD rill_status rill_device_count(int32_t *count);

/** Returns device number `index`, 0 <= index < count.
 *
 *  Errors:  INVALID_ARGUMENT, NOT_FOUND.
 *  Like:    cuDeviceGet, hipDeviceGet. */
RILL_API RILL_NODISCARD rill_status rill_device_get(int32_t index, rill_device *out);

/** Returns the device with a name: "cuda:0", "hip:1", "cpu", "gpu" (the first GPU), or NULL.
 *
 *  NULL reads the environment variable RILL_DEVICE; if that is unset or empty it is the first GPU, else
 *  the CPU.  A backend's name without a number is its device 0.  N in "cuda:N" is what cudaSetDevice(N)
 *  means in this process.
 *
 *  Errors:  INVALID_ARGUMENT, NOT_FOUND (no such name or number), NO_DEVICE (the backend is not built in
 *           or finds no device; the text tells what was tried).
 *  Like:    max.driver.Accelerator, warp.get_device, cuda.core Device(). */
RILL_API RILL_NODISCARD rill_status rill_device_open(const char *name, rill_device *out);

/** Returns the device that a native stream (CUstream, cudaStream_t, hipStream_t) belongs to.  `backend` is
 *  RILL_BACKEND_CUDA or RILL_BACKEND_HIP.
 *
 *  Native 0, 1 and 2 name a default stream of whichever device is current, so they belong to none.
 *
 *  Errors:  INVALID_ARGUMENT (backend, or native is 0, 1 or 2), NO_DEVICE, NOT_FOUND, UNSUPPORTED (the CPU; a driver
 *           that cannot tell), BACKEND.
 *  Threads: any; the stream must live during the call.
 *  Like:    cuStreamGetDevice, hipStreamGetDevice. */
RILL_API RILL_NODISCARD rill_status rill_device_of_native_stream(uint32_t backend, uintptr_t native, rill_device *out);

/** Fills in what is known of a device.  Creates no context.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT.
 *  Like:    cudaGetDeviceProperties, hipGetDeviceProperties. */
RILL_API RILL_NODISCARD rill_status rill_device_get_info(rill_device device, rill_device_info *info);

/** Returns whether a device can do RILL_FEATURE_*.  Probed, not guessed from the vendor.  `why` may be
 *  NULL; it gets a static sentence when the answer is false, "" when it is true.
 *
 *  Errors:  none: a bad handle or feature is false, with the reason.
 *  Like:    cuDeviceGetAttribute, hipDeviceGetAttribute. */
RILL_API RILL_NODISCARD bool rill_device_supports(rill_device device, uint32_t feature, const char **why);

/** Returns the device's default stream: one per device, the same handle every time, borrowed.
 *
 *  It is a stream of rill's own, which does not wait for the vendor's null stream; that one is available by
 *  rill_stream_import of 0.  Created on first use.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    max.driver.Device.default_stream. */
RILL_API RILL_NODISCARD rill_status rill_device_default_stream(rill_device device, rill_stream *out);

/** Blocks until all work of the device's context is done, foreign streams too.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (called in a host call), CHECK (RILL_CHECK=memory found a mistake: the
 *           work is done), DEVICE_LOST, BACKEND.
 *  Like:    cuCtxSynchronize, hipDeviceSynchronize, max.driver.Device.synchronize. */
RILL_API RILL_NODISCARD rill_status rill_device_synchronize(rill_device device);

/** Returns the free and the total memory of a device in bytes.  May create the context.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, DEVICE_LOST, BACKEND.
 *  Like:    cuMemGetInfo, hipMemGetInfo. */
RILL_API RILL_NODISCARD rill_status rill_device_get_memory(rill_device device, uint64_t *free_bytes,
                                                           uint64_t *total_bytes);

/** Sets how many threads run the CPU's work; they share each kernel, large copy and fill.  0: as many as there are
 *  processors for the process, or what the environment variable RILL_CPU_WORKERS says (1 to 1024).
 *
 *  For programs with threads of their own, so that together there are as many as processors.  Takes effect for
 *  operations that start later.  While all of them are in long operations, blocking host calls included, further
 *  threads run whatever else is ready.
 *
 *  Errors:  INVALID_HANDLE, OUT_OF_RANGE (more than 1024), UNSUPPORTED (a GPU).
 *  Like:    omp_set_num_threads. */
RILL_API RILL_NODISCARD rill_status rill_device_set_workers(rill_device device, uint32_t count);

/** Returns how many threads run the CPU's work.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (a GPU).
 *  Like:    omp_get_max_threads. */
RILL_API RILL_NODISCARD rill_status rill_device_get_workers(rill_device device, uint32_t *out);

/** Returns whether work of `device` can access another device's memory directly.  A device can always access its own.
 *  `why` may be NULL; it gets a static sentence when the answer is false, "" when it is true.
 *
 *  Copies between devices of one backend always work, through the host if need be.
 *
 *  Errors:  none: a bad handle is false, with the reason.
 *  Like:    cuDeviceCanAccessPeer, hipDeviceCanAccessPeer. */
RILL_API RILL_NODISCARD bool rill_device_can_access_peer(rill_device device, rill_device memory_of, const char **why);

/** Lets work of `device` access the memory of `memory_of` directly: kernels without a copy, copies without staging. One
 *  direction only.  OK if it is enabled
 *  already, or if the memory is the device's own.
 *
 *  Holds for the whole process, other users of the devices included, for existing and future memory.  May block.
 *
 *  Errors:  INVALID_HANDLE, WRONG_BACKEND, UNSUPPORTED (rill_device_can_access_peer says no), DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuCtxEnablePeerAccess, hipDeviceEnablePeerAccess. */
RILL_API RILL_NODISCARD rill_status rill_device_enable_peer(rill_device device, rill_device memory_of);

/** Undoes rill_device_enable_peer.  OK if it is disabled already; a device can always access its own memory.  No work
 *  under way may be using the other device's memory.
 *
 *  Errors:  INVALID_HANDLE, WRONG_BACKEND, DEVICE_LOST, BACKEND.
 *  Like:    cuCtxDisablePeerAccess, hipDeviceDisablePeerAccess. */
RILL_API RILL_NODISCARD rill_status rill_device_disable_peer(rill_device device, rill_device memory_of);

/** Returns whether `device` may access the memory of `memory_of`, as far as rill knows: it is its own, or
 *  rill_device_enable_peer was called last.  Drivers do not report what other code has enabled.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, WRONG_BACKEND.
 *  Like:    warp.is_peer_access_enabled. */
RILL_API RILL_NODISCARD rill_status rill_device_is_peer_enabled(rill_device device, rill_device memory_of, bool *out);

RILL_EXTERN_C_END

#endif
