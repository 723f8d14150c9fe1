/* rill/occupancy.h: occupancy of kernels, and block sizes that maximize it.
 *
 *     uint32_t threads, blocks;
 *     rill_kernel_suggest_block(kernel, 0, 0, &threads, &blocks);
 *     rill_launch launch = rill_launch_1d(n, threads);
 *
 * The blocks on a compute unit share its registers, shared memory and thread slots. The results come from the driver
 * and apply to the kernel's device only. On the CPU a compute unit is a processor, which runs one block at a time.
 *
 * Pitfall: the highest occupancy does not always give the shortest run time. A kernel with few large blocks may be
 * faster.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_OCCUPANCY_H
#define RILL_OCCUPANCY_H

#include <rill/kernel.h>

RILL_EXTERN_C_BEGIN

/** Returns the number of blocks of `block_threads` threads, each with `shared` bytes of dynamic shared memory, that
 *  one compute unit runs at the same time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE (more threads or memory than a block can
 *           have), DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor. */
RILL_API RILL_NODISCARD rill_status rill_kernel_occupancy(rill_kernel kernel, uint32_t block_threads, size_t shared,
                                                          uint32_t *blocks_per_unit);

/** Returns the block size that gives the highest occupancy, and the number of such blocks that fill the device.
 *
 *  `shared` is the dynamic shared memory per block in bytes. `limit` is the maximum block size, or 0 for none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyMaxPotentialBlockSize, hipModuleOccupancyMaxPotentialBlockSize. */
RILL_API RILL_NODISCARD rill_status rill_kernel_suggest_block(rill_kernel kernel, size_t shared, uint32_t limit,
                                                              uint32_t *block_threads, uint32_t *blocks);

/** Returns the largest dynamic shared memory per block, in bytes, with which a compute unit runs `blocks_per_unit`
 *  blocks of `block_threads` threads at the same time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE (the blocks do not fit even without shared
 *           memory), DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyAvailableDynamicSMemPerBlock. */
RILL_API RILL_NODISCARD rill_status rill_kernel_available_shared(rill_kernel kernel, uint32_t block_threads,
                                                                 uint32_t blocks_per_unit, size_t *shared);

/** Returns the maximum number of blocks of a cooperative launch (RILL_ATTR_COOPERATIVE): those that the device runs
 *  at the same time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (RILL_FEATURE_COOPERATIVE),
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuLaunchCooperativeKernel, hipModuleLaunchCooperativeKernel. */
RILL_API RILL_NODISCARD rill_status rill_kernel_cooperative_blocks(rill_kernel kernel, uint32_t block_threads,
                                                                   size_t shared, uint32_t *blocks);

/** Returns the number of clusters of a launch with the shape `launch` that the device runs at the same time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (including a launch without clusters), OUT_OF_RANGE,
 *           UNSUPPORTED (RILL_FEATURE_CLUSTER), DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyMaxActiveClusters. */
RILL_API RILL_NODISCARD rill_status rill_kernel_active_clusters(rill_kernel kernel, const rill_launch *launch,
                                                                uint32_t *clusters);

RILL_EXTERN_C_END

#endif
