/* rill/occupancy.h: how much of a device a launch can use: what fits on a compute unit at once, and what block size
 * to choose.
 *
 *     uint32_t threads, blocks;
 *     rill_kernel_suggest_block(kernel, 0, 0, &threads, &blocks);
 *     rill_launch launch = rill_launch_1d(n, threads);
 *
 * Registers, shared memory and threads of a compute unit are shared by the blocks that run there.  The answers are the
 * driver's, for one device; another one gives others.  On the CPU a compute unit is a processor, which runs one block
 * at a time.
 *
 * The thing people get wrong: full units are not always faster.  A kernel with few, large blocks may be.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_OCCUPANCY_H
#define RILL_OCCUPANCY_H

#include <rill/kernel.h>

RILL_EXTERN_C_BEGIN

/** Returns how many blocks of `block_threads` threads, each with `shared` bytes of dynamic shared memory, one compute
 *  unit runs at a time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE (more than a block can have), DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuOccupancyMaxActiveBlocksPerMultiprocessor, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor. */
RILL_API RILL_NODISCARD rill_status rill_kernel_occupancy(rill_kernel kernel, uint32_t block_threads, size_t shared,
                                                          uint32_t *blocks_per_unit);

/** Returns the number of threads of a block with which most threads of the kernel run at a time, and how many such
 * blocks it takes to fill the device.
 *
 *  `shared` is the dynamic shared memory of a block; `limit`, unless 0, the most threads that it may have.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyMaxPotentialBlockSize, hipModuleOccupancyMaxPotentialBlockSize. */
RILL_API RILL_NODISCARD rill_status rill_kernel_suggest_block(rill_kernel kernel, size_t shared, uint32_t limit,
                                                              uint32_t *block_threads, uint32_t *blocks);

/** Returns the most dynamic shared memory in bytes with which a compute unit still runs `blocks_per_unit` blocks of
 *  `block_threads` threads at a time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE (so many do not fit even without any),
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyAvailableDynamicSMemPerBlock. */
RILL_API RILL_NODISCARD rill_status rill_kernel_available_shared(rill_kernel kernel, uint32_t block_threads,
                                                                 uint32_t blocks_per_unit, size_t *shared);

/** Returns how many blocks a cooperative launch (RILL_ATTR_COOPERATIVE) may have: as many as the whole device runs at a
 *  time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE, UNSUPPORTED (RILL_FEATURE_COOPERATIVE),
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuLaunchCooperativeKernel, hipModuleLaunchCooperativeKernel. */
RILL_API RILL_NODISCARD rill_status rill_kernel_cooperative_blocks(rill_kernel kernel, uint32_t block_threads,
                                                                   size_t shared, uint32_t *blocks);

/** Returns how many clusters of a launch, whose shape is `launch`, the device runs at a time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (also without a cluster), OUT_OF_RANGE, UNSUPPORTED
 *           (RILL_FEATURE_CLUSTER), DEVICE_LOST, BACKEND.
 *  Like:    cuOccupancyMaxActiveClusters. */
RILL_API RILL_NODISCARD rill_status rill_kernel_active_clusters(rill_kernel kernel, const rill_launch *launch,
                                                                uint32_t *clusters);

RILL_EXTERN_C_END

#endif
