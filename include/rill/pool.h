/* rill/pool.h: memory that is allocated and freed in stream order.
 *
 * A pool keeps freed memory and reuses it without calling the driver. The stream that freed the memory can reuse it
 * immediately; another stream can reuse it once the work before the free is complete. Every device has a default pool
 * of device memory. rill_pool_create creates other pools, including pools of pinned and managed memory.
 *
 *     float *x = NULL;
 *     if (rill_alloc_async(stream, bytes, (void **)&x) != RILL_OK) ...
 *     saxpy_launch(stream, &launch, n, 2.0f, x, y);
 *     rill_free_async(stream, x);
 *
 * The pointer is valid immediately for work that is submitted to the allocating stream, and for work of other streams
 * that is ordered after the allocation. The host may access pinned and managed memory of a pool only after the stream
 * has reached the allocation, for example after a synchronize, because earlier work of the stream may still use the
 * memory.
 *
 * Pitfall: rill_free_async declares that all uses are ordered before this point of its stream. Record any other use
 * on another stream with rill_memory_record_use, or the memory is reused too early.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_POOL_H
#define RILL_POOL_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Options of rill_pool_create. */
typedef struct rill_pool_options {
  size_t struct_size;
  uint64_t max_size;          /**< maximum bytes allocated from the driver; 0: no limit */
  uint64_t release_threshold; /**< free memory above this is released when the host synchronizes; 0: never */
  const char *label;
  uint32_t kind; /**< RILL_MEMORY_DEVICE, _PINNED or _MANAGED; 0: device memory */
} rill_pool_options;
#define RILL_POOL_OPTIONS_INIT \
  { sizeof(rill_pool_options), 0, 0, NULL, 0 }
/** An options expression for C and C++. */
#define RILL_POOL_OPTIONS(...) RILL_OPTIONS_(rill_pool_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_pool_options, RILL_OPTIONS_FIELD_(max_size) RILL_OPTIONS_FIELD_(release_threshold)
                                            RILL_OPTIONS_FIELD_(label) RILL_OPTIONS_FIELD_(kind))

/** Sizes in bytes. `reserved` is the memory allocated from the driver. It is the sum of `used` (allocated and not yet
 *  freed, rounded up to the pool's granularity), `waiting` (freed, but incomplete work may still use it) and `cached`
 *  (free). Peaks are counted since the pool was created or since rill_pool_reset_peaks. With RILL_CHECK=memory,
 *  `waiting` includes red zones and freed memory that is kept back, and max_size limits `used` instead of
 *  `reserved`. */
typedef struct rill_pool_info {
  size_t struct_size;
  uint64_t reserved, used, reserved_peak, used_peak;
  uint64_t waiting, cached;
} rill_pool_info;
#define RILL_POOL_INFO_INIT \
  { sizeof(rill_pool_info), 0, 0, 0, 0, 0, 0 }

/** Resets `used_peak` and `reserved_peak` of rill_pool_get_info to the current values.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuMemPoolSetAttribute and hipMemPoolSetAttribute of RESERVED_MEM_HIGH and USED_MEM_HIGH. */
RILL_API RILL_NODISCARD rill_status rill_pool_reset_peaks(rill_pool pool);

/** Allocates `size` bytes from the default pool of the stream's device. The memory is not zeroed. The address is a
 *  multiple of 256. Size 0 returns OK and NULL.
 *
 *  Does not block while the pool or the driver has memory. Otherwise the stream is made to wait for memory that was
 *  freed on another stream. If no such memory exists, unused memory of the device's pools is released to the driver,
 *  which may block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL), OUT_OF_MEMORY (the text has the requested, free
 *           and total bytes and the pool's sizes; the device remains usable), CAPTURE_ACTIVE, DEVICE_LOST, BACKEND.
 *  Like:    cuMemAllocAsync, hipMallocAsync. */
RILL_API RILL_NODISCARD rill_status rill_alloc_async(rill_stream stream, size_t size, void **out);

/** Frees pool memory at this point of the stream. Every use of the memory must be ordered before this point or
 *  recorded with rill_memory_record_use. Has no effect on NULL.
 *
 *  The stream can be any stream of the device, and can be released right after the call. If the stream is capturing,
 *  memory allocated in its graph is freed by a node, and other memory is freed when the capture ends.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, NOT_FOUND (not allocated by rill, or already freed), INVALID_ARGUMENT
 *           (an address inside an allocation, or memory from rill_alloc), WRONG_DEVICE, WRONG_BACKEND, CAPTURE_ACTIVE,
 *           DEVICE_LOST, BACKEND. After an error the memory stays allocated.
 *  Like:    cuMemFreeAsync, hipFreeAsync. */
RILL_API rill_status rill_free_async(rill_stream stream, void *p);

/** Creates a pool of memory of one kind. The pool allocates memory from the driver on demand.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL, options, kind), UNSUPPORTED (the device has no managed memory),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuMemPoolCreate, hipMemPoolCreate. */
RILL_API RILL_NODISCARD rill_status rill_pool_create(rill_device device, const rill_pool_options *options,
                                                     rill_pool *out);

/** Returns the pool that rill_alloc_async uses. Every call returns the same handle, which needs no release.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool. */
RILL_API RILL_NODISCARD rill_status rill_pool_default(rill_device device, rill_pool *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    Py_INCREF of a cuda.core.MemoryResource. */
RILL_API RILL_NODISCARD rill_status rill_pool_retain(rill_pool pool);

/** Drops a reference; the last one destroys the pool. Its allocations remain valid until they are freed. A later call
 *  releases the pool's memory to the driver once it is unused. Has no effect on the null handle.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuMemPoolDestroy, hipMemPoolDestroy. */
RILL_API rill_status rill_pool_release(rill_pool pool);

/** Allocates like rill_alloc_async, from this pool. A pool with a limit records a point of the stream at each free,
 *  so another stream that reuses the memory waits only for work before the free. A pool without a limit records such
 *  points only after memory has run out. Before that, a stream that reuses memory may also wait for work after the
 *  free.
 *
 *  Errors:  those of rill_alloc_async; WRONG_DEVICE, WRONG_BACKEND. OUT_OF_MEMORY also if the limit would be exceeded.
 *  Like:    cuMemAllocFromPoolAsync, hipMallocFromPoolAsync. */
RILL_API RILL_NODISCARD rill_status rill_pool_alloc_async(rill_pool pool, rill_stream stream, size_t size, void **out);

/** Allocates like rill_pool_alloc_async, at a multiple of `alignment`, a power of two.
 *
 *  Errors:  those of rill_pool_alloc_async; INVALID_ARGUMENT also if the alignment is not a power of two.
 *  Like:    std::pmr::memory_resource::allocate. */
RILL_API RILL_NODISCARD rill_status rill_pool_alloc_aligned_async(rill_pool pool, rill_stream stream, size_t size,
                                                                  size_t alignment, void **out);

/** Releases unused memory to the driver until the pool holds at most `keep` unused bytes. Releases only whole free
 *  segments whose last use is complete. May block, because drivers may block when they release memory.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (called in a host call), DEVICE_LOST, BACKEND.
 *  Like:    cuMemPoolTrimTo, hipMemPoolTrimTo. */
RILL_API RILL_NODISCARD rill_status rill_pool_trim(rill_pool pool, uint64_t keep);

/** Returns the sizes of the pool. Asks the driver which uses of freed memory are complete.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, struct_size).
 *  Threads: any.  While other threads allocate, the values may belong to slightly different moments.
 *  Like:    cuMemPoolGetAttribute, hipMemPoolGetAttribute. */
RILL_API RILL_NODISCARD rill_status rill_pool_get_info(rill_pool pool, rill_pool_info *info);

/** Returns the limit of the pool in bytes, or 0 if it has none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL).
 *  Like:    cuMemPoolGetAttribute, hipMemPoolGetAttribute. */
RILL_API RILL_NODISCARD rill_status rill_pool_max_size(rill_pool pool, uint64_t *out);

/** Returns the kind of the pool's memory: RILL_MEMORY_DEVICE, _PINNED or _MANAGED.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL).
 *  Like:    CUmemPoolProps::location. */
RILL_API RILL_NODISCARD rill_status rill_pool_kind(rill_pool pool, uint32_t *out);

/** Returns the release threshold of the pool in bytes, or 0 if memory is never released automatically.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL).
 *  Like:    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, where 0 has the opposite meaning: all memory is released. */
RILL_API RILL_NODISCARD rill_status rill_pool_release_threshold(rill_pool pool, uint64_t *out);

/** Sets the release threshold in bytes. When the host synchronizes with the device, or with a stream or an event
 *  while nothing else runs, unused memory is released to the driver until the pool holds no more than this. With 0,
 *  memory is never released automatically. rill_pool_trim, and an allocation that would otherwise fail, release
 *  unused memory regardless of the threshold.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, where 0 has the opposite meaning: all memory is released. */
RILL_API RILL_NODISCARD rill_status rill_pool_set_release_threshold(rill_pool pool, uint64_t bytes);

/** Returns the pool of the allocation that contains `p`, or the null handle for memory from rill_alloc. Adds no
 *  reference; call rill_pool_retain to keep the pool.
 *
 *  Errors:  INVALID_ARGUMENT (NULL), NOT_FOUND (not allocated by rill).
 *  Like:    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE. */
RILL_API RILL_NODISCARD rill_status rill_memory_pool(const void *p, rill_pool *out);

/** Records that work submitted to `stream` so far uses the allocation that starts at `p`. After a free the memory is
 *  not reused or released before that work is complete. This also applies to memory from rill_alloc: rill_free waits
 *  for all streams of the memory's device, but on a peer device only for the uses that are recorded here.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, an address inside an allocation), NOT_FOUND (not
 *           allocated by rill, or already freed), WRONG_BACKEND, OUT_OF_MEMORY, CAPTURE_ACTIVE, DEVICE_LOST, BACKEND.
 *  Like:    torch.Tensor.record_stream. */
RILL_API RILL_NODISCARD rill_status rill_memory_record_use(void *p, rill_stream stream);

RILL_EXTERN_C_END

#endif
