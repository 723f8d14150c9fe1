/* rill/device.h: the GPUs of this machine and its CPU.
 *
 * Devices are numbered GPUs first, the CPU last. The CPU is always present. A device is opened by name or index,
 * costs nothing until it is used, and is never released. Opening the same device again returns the same handle.
 *
 * A vendor's library is loaded when one of its devices is first needed. "cpu" loads none, "hip:0" loads AMD's, "gpu"
 * and NULL load one vendor's library after another until a GPU is found, and rill_device_count loads all of them.
 *
 *     rill_device device;
 *     if (rill_device_open(NULL, &device) != RILL_OK)          // RILL_DEVICE, else a GPU, else the CPU
 *       ...
 *     rill_device_info info = RILL_DEVICE_INFO_INIT;
 *     if (rill_device_get_info(device, &info) == RILL_OK) puts(info.name);
 *
 * Pitfall: there is no current device. Every call names the device or one of its streams, and does not change the
 * thread's current device in the vendor's runtime.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DEVICE_H
#define RILL_DEVICE_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** The values of rill_device_info.backend: X(constant, number, prefix of its device names). Numbers never change. */
#define RILL_BACKEND_LIST(X)      \
  X(RILL_BACKEND_CPU, 1, "cpu")   \
  X(RILL_BACKEND_CUDA, 2, "cuda") \
  X(RILL_BACKEND_HIP, 3, "hip")

#define RILL_BACKEND_NUMBER_(constant, number, name) constant = number,
enum {
  RILL_BACKEND_LIST(RILL_BACKEND_NUMBER_) RILL_BACKEND_END_ /* private: one past the last */
};
#undef RILL_BACKEND_NUMBER_

/** Features for rill_device_supports. */
enum {
  RILL_FEATURE_PEER = 1,     /**< reading another device's memory */
  RILL_FEATURE_MANAGED,      /**< memory that moves between host and device automatically */
  RILL_FEATURE_POOL,         /**< allocation in stream order */
  RILL_FEATURE_IPC,          /**< memory shared with other processes */
  RILL_FEATURE_CLUSTER,      /**< thread block clusters */
  RILL_FEATURE_COOPERATIVE,  /**< launches whose whole grid can synchronize */
  RILL_FEATURE_GRAPH,        /**< capture and graphs */
  RILL_FEATURE_GRAPH_UPDATE, /**< changing an instantiated graph */
  RILL_FEATURE_RTC,          /**< compiling kernels at run time */
  RILL_FEATURE_STREAM_ID,    /**< rill_stream_validate detects a reused native stream */
  RILL_FEATURE_KERNEL_ARGS,  /**< kernel arguments are known and checked for every image */
  RILL_FEATURE_EVENT_IPC,    /**< events shared with other processes */
  RILL_FEATURE_CONDITIONAL,  /**< conditional graph nodes and loops; no device has them in this version */
  RILL_FEATURE_END_          /* private: one past the last */
};

/** Properties of a device. The strings are stored in the struct. */
typedef struct rill_device_info {
  size_t struct_size; /**< set by the caller, never changed */
  uint32_t backend;   /**< RILL_BACKEND_* */
  int32_t ordinal;    /**< the number for cudaSetDevice or hipSetDevice in this process; 0 for the CPU */
  char name[128];
  char arch[64];       /**< "sm_90", "gfx942", "x86-64-v3" */
  char pci_bus_id[32]; /**< "0000:3b:00.0"; "" for the CPU */
  uint8_t uuid[16];    /**< all zero if unknown */
  int32_t numa_node;   /**< -1 if unknown */
  uint32_t compute_units, warp_size, max_threads_per_block;
  uint32_t max_block_dim[3], max_grid_dim[3];
  uint32_t registers_per_block;                      /**< 0 if not applicable */
  uint64_t shared_per_block, shared_per_block_optin; /**< bytes; default and maximum */
  uint64_t memory_total;                             /**< bytes */
  uint32_t core_clock_khz, memory_clock_khz;         /**< 0 if unknown */
  uint32_t driver_version, runtime_version;          /**< 13000 is 13.0; 0 if there is none */
  int32_t priority_least, priority_greatest;         /**< native; the greatest priority is the lowest number */
  uint32_t max_threads_per_unit, registers_per_unit; /**< resident on a compute unit at once; 0 if unknown */
  uint64_t shared_per_unit;                          /**< bytes of shared memory per compute unit; 0 if unknown */
} rill_device_info;
#define RILL_DEVICE_INFO_INIT \
  { sizeof(rill_device_info), 0, 0, "", "", "", { 0 }, 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Returns the number of devices, including the CPU.
 *
 *  Errors:  INVALID_ARGUMENT.
 *  Like:    cudaGetDeviceCount, hipGetDeviceCount. */
RILL_API RILL_NODISCARD rill_status rill_device_count(int32_t *count);

/** Returns device number `index`, 0 <= index < count.
 *
 *  Errors:  INVALID_ARGUMENT, NOT_FOUND.
 *  Like:    cuDeviceGet, hipDeviceGet. */
RILL_API RILL_NODISCARD rill_status rill_device_get(int32_t index, rill_device *out);

/** Returns a device by name: "cuda:0", "hip:1", "cpu", "gpu" (the first GPU), or NULL.
 *
 *  NULL selects the device named by the environment variable RILL_DEVICE. If RILL_DEVICE is unset or empty, NULL
 *  selects the first GPU, or the CPU if there is no GPU. A backend name without a number, such as "cuda", selects
 *  device 0 of the backend. N in "cuda:N" is the number for cudaSetDevice in this process.
 *
 *  Errors:  INVALID_ARGUMENT, NOT_FOUND (no such name or number), NO_DEVICE (the backend is not built in or finds no
 *           device; the text lists what was tried).
 *  Like:    max.driver.Accelerator, warp.get_device, cuda.core Device(). */
RILL_API RILL_NODISCARD rill_status rill_device_open(const char *name, rill_device *out);

/** Returns the device that a native stream (CUstream, cudaStream_t, hipStream_t) belongs to.  `backend` is
 *  RILL_BACKEND_CUDA or RILL_BACKEND_HIP.
 *
 *  Native 0, 1 and 2 name default streams of whichever device is current, so they belong to no particular device.
 *
 *  Errors:  INVALID_ARGUMENT (backend, or native is 0, 1 or 2), NO_DEVICE, NOT_FOUND, UNSUPPORTED (the CPU, or a
 *           driver without this query), BACKEND.
 *  Threads: any; the stream must exist during the call.
 *  Like:    cuStreamGetDevice, hipStreamGetDevice. */
RILL_API RILL_NODISCARD rill_status rill_device_of_native_stream(uint32_t backend, uintptr_t native, rill_device *out);

/** Fills in the properties of a device. Creates no context.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT.
 *  Like:    cudaGetDeviceProperties, hipGetDeviceProperties. */
RILL_API RILL_NODISCARD rill_status rill_device_get_info(rill_device device, rill_device_info *info);

/** Probes whether a device supports a feature (RILL_FEATURE_*). `why` may be NULL; otherwise it is set to a static
 *  string with the reason if the result is false, and to "" if it is true.
 *
 *  Errors:  none: a bad handle or feature returns false, with the reason.
 *  Like:    cuDeviceGetAttribute, hipDeviceGetAttribute. */
RILL_API RILL_NODISCARD bool rill_device_supports(rill_device device, uint32_t feature, const char **why);

/** Returns the default stream of the device. Every call returns the same handle, which needs no release.
 *
 *  The default stream is not the vendor's null stream and does not wait for it; rill_stream_import of 0 returns the
 *  null stream. The default stream is created on first use.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    max.driver.Device.default_stream. */
RILL_API RILL_NODISCARD rill_status rill_device_default_stream(rill_device device, rill_stream *out);

/** Blocks until all work of the device's context is done, including work on streams that rill did not create.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (called in a host call), CHECK (the work is done, but RILL_CHECK=memory
 *           found a mistake), DEVICE_LOST, BACKEND.
 *  Like:    cuCtxSynchronize, hipDeviceSynchronize, max.driver.Device.synchronize. */
RILL_API RILL_NODISCARD rill_status rill_device_synchronize(rill_device device);

/** Returns the free and total memory of a device in bytes. May create the context.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, DEVICE_LOST, BACKEND.
 *  Like:    cuMemGetInfo, hipMemGetInfo. */
RILL_API RILL_NODISCARD rill_status rill_device_get_memory(rill_device device, uint64_t *free_bytes,
                                                           uint64_t *total_bytes);

/** Sets the number of worker threads of the CPU device, 1 to 1024. All workers share each kernel, large copy and
 *  large fill. 0 selects the value of the environment variable RILL_CPU_WORKERS, or the number of processors
 *  available to the process.
 *
 *  A program with its own threads can use this to keep the total number of threads at the number of processors. The
 *  new number applies to operations that start later. While all workers are in long operations, including blocking
 *  host calls, additional threads run other work that is ready.
 *
 *  Errors:  INVALID_HANDLE, OUT_OF_RANGE (more than 1024), UNSUPPORTED (a GPU).
 *  Like:    omp_set_num_threads. */
RILL_API RILL_NODISCARD rill_status rill_device_set_workers(rill_device device, uint32_t count);

/** Returns the number of worker threads of the CPU device.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (a GPU).
 *  Like:    omp_get_max_threads. */
RILL_API RILL_NODISCARD rill_status rill_device_get_workers(rill_device device, uint32_t *out);

/** Returns whether work of `device` can access the memory of `memory_of` directly. A device can always access its own
 *  memory. `why` may be NULL; otherwise it is set to a static string with the reason if the result is false, and to
 *  "" if it is true.
 *
 *  Copies between devices of one backend always work; without peer access they go through the host.
 *
 *  Errors:  none: a bad handle returns false, with the reason.
 *  Like:    cuDeviceCanAccessPeer, hipDeviceCanAccessPeer. */
RILL_API RILL_NODISCARD bool rill_device_can_access_peer(rill_device device, rill_device memory_of, const char **why);

/** Lets work of `device` access the memory of `memory_of` directly, in kernels and in copies. Enables one direction
 *  only. Returns OK if access is enabled already or if both devices are the same.
 *
 *  Applies to existing and future memory and to the whole process, including other users of the devices. May block.
 *
 *  Errors:  INVALID_HANDLE, WRONG_BACKEND, UNSUPPORTED (rill_device_can_access_peer returns false), DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuCtxEnablePeerAccess, hipDeviceEnablePeerAccess. */
RILL_API RILL_NODISCARD rill_status rill_device_enable_peer(rill_device device, rill_device memory_of);

/** Undoes rill_device_enable_peer. Returns OK if access is disabled already. A device can always access its own
 *  memory. No pending work may use the other device's memory.
 *
 *  Errors:  INVALID_HANDLE, WRONG_BACKEND, DEVICE_LOST, BACKEND.
 *  Like:    cuCtxDisablePeerAccess, hipDeviceDisablePeerAccess. */
RILL_API RILL_NODISCARD rill_status rill_device_disable_peer(rill_device device, rill_device memory_of);

/** Returns whether rill has enabled access of `device` to the memory of `memory_of`. True if both are the same
 *  device. Access that other code enabled is not included, because drivers do not report it.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, WRONG_BACKEND.
 *  Like:    warp.is_peer_access_enabled. */
RILL_API RILL_NODISCARD rill_status rill_device_is_peer_enabled(rill_device device, rill_device memory_of, bool *out);

RILL_EXTERN_C_END

#endif
