/* rill/pool.h: memory that is allocated and freed in the order of a stream.
 *
 * A pool keeps memory that was freed, and gives it out again without the driver: at once to the stream that it was
 * freed on, to another stream when the work before the free is complete.  Every device has a default pool, of device
 * memory; pools of pinned and of managed memory are made (rill_pool_options, kind).
 *
 *     float *x = NULL;
 *     if (rill_alloc_async(stream, bytes, (void **)&x) != RILL_OK) ...
 *     saxpy_launch(stream, &launch, n, 2.0f, x, y);
 *     rill_free_async(stream, x);
 *
 * The pointer is valid at once for work that is submitted to the stream it was allocated on, and for other streams'
 * work that is ordered after the call.  The host may touch pinned and managed memory of a pool when the stream has
 * reached the call, as after a synchronize: earlier work of the stream may still use what was there.
 *
 * The thing people get wrong: rill_free_async says that all uses are ordered before this point of its stream.  A use on
 * another stream that is not must be recorded (rill_memory_record_use), or the memory is reused too early.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_POOL_H
#define RILL_POOL_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

typedef struct rill_pool_options {
  size_t struct_size;
  uint64_t max_size; /**< bytes that it takes from the driver, at most; 0: no limit */
  uint64_t
      release_threshold; /**< free memory above this is released when the host synchronizes; 0: never automatically */
  const char *label;
  uint32_t kind; /**< RILL_MEMORY_DEVICE, _PINNED or _MANAGED; 0: device memory */
} rill_pool_options;
#define RILL_POOL_OPTIONS_INIT \
  { sizeof(rill_pool_options), 0, 0, NULL, 0 }
/** Options in place, in C and C++. */
#define RILL_POOL_OPTIONS(...) RILL_OPTIONS_(rill_pool_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_pool_options, RILL_OPTIONS_FIELD_(max_size) RILL_OPTIONS_FIELD_(release_threshold)
                                            RILL_OPTIONS_FIELD_(label) RILL_OPTIONS_FIELD_(kind))

/** Bytes.  `reserved` is what the pool has from the driver: `used`, which is allocated and not freed yet, rounded up as
 *  the pool does; `waiting`, which was freed but may still be used by work that is not complete; and `cached`, which is
 *  free for use.  The last three add up to the first.  Peaks are since the pool was created or rill_pool_reset_peaks.
 * With RILL_CHECK=memory `waiting` also has red zones and freed memory that is kept back, and max_size limits `used`
 * instead. */
typedef struct rill_pool_info {
  size_t struct_size;
  uint64_t reserved, used, reserved_peak, used_peak;
  uint64_t waiting, cached;
} rill_pool_info;
#define RILL_POOL_INFO_INIT \
  { sizeof(rill_pool_info), 0, 0, 0, 0, 0, 0 }

/** Makes `used_peak` and `reserved_peak` of rill_pool_get_info what is used and reserved now.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuMemPoolSetAttribute and hipMemPoolSetAttribute of RESERVED_MEM_HIGH and USED_MEM_HIGH. */
RILL_API RILL_NODISCARD rill_status rill_pool_reset_peaks(rill_pool pool);

/** Allocates `size` bytes from the default pool of the stream's device.  They are not zeroed; the address is a
 *  multiple of 256.  Size 0 is OK and gives NULL.
 *
 *  Does not block while the pool or the driver has memory.  If neither has any, the stream is made to wait for
 *  memory that was freed on another stream; if there is none either, memory that the device's pools do not use is
 *  released to the driver, which may block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL), OUT_OF_MEMORY (asked, free and total and the
 *           pool's own numbers are in the text; the device stays usable), CAPTURE_ACTIVE, DEVICE_LOST, BACKEND.
 *  Like:    cuMemAllocAsync, hipMallocAsync. */
RILL_API RILL_NODISCARD rill_status rill_alloc_async(rill_stream stream, size_t size, void **out);

/** Frees memory of a pool at this point of the stream: says that every use of it, but those recorded with
 *  rill_memory_record_use, is ordered before.  NULL: nothing happens.
 *
 *  The stream may be another one of the device than that of the allocation.  It may be released right after.  If it
 *  captures, memory of its graph is freed by a node, and other memory when the capture ends.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, NOT_FOUND (no allocation of rill, or freed already), INVALID_ARGUMENT
 *           (inside one, or of rill_alloc), WRONG_DEVICE, WRONG_BACKEND, CAPTURE_ACTIVE, DEVICE_LOST, BACKEND.  The
 *           memory then stays allocated.
 *  Like:    cuMemFreeAsync, hipFreeAsync. */
RILL_API rill_status rill_free_async(rill_stream stream, void *p);

/** Creates a pool of memory of one kind.  It takes memory from the driver when it is needed.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL, options, kind), UNSUPPORTED (managed memory that the device does
 *           not have), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuMemPoolCreate, hipMemPoolCreate. */
RILL_API RILL_NODISCARD rill_status rill_pool_create(rill_device device, const rill_pool_options *options,
                                                     rill_pool *out);

/** The pool that rill_alloc_async takes from: the same handle every time, borrowed.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool. */
RILL_API RILL_NODISCARD rill_status rill_pool_default(rill_device device, rill_pool *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    Py_INCREF of a cuda.core.MemoryResource. */
RILL_API RILL_NODISCARD rill_status rill_pool_retain(rill_pool pool);

/** Drops a reference; the last one ends the pool.  Its allocations remain valid until they are freed, and its memory
 *  is released to the driver when it is unused, in a later call.  The null handle: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuMemPoolDestroy, hipMemPoolDestroy. */
RILL_API rill_status rill_pool_release(rill_pool pool);

/** As rill_alloc_async, from this pool.  A pool with a limit records a point of the stream at each free, so that
 *  another stream that reuses the memory waits for no later work; one without a limit does so only once memory has run
 *  out, and may take a later point before that.
 *
 *  Errors:  as rill_alloc_async; WRONG_DEVICE, WRONG_BACKEND.  OUT_OF_MEMORY also where the limit would be exceeded.
 *  Like:    cuMemAllocFromPoolAsync, hipMallocFromPoolAsync. */
RILL_API RILL_NODISCARD rill_status rill_pool_alloc_async(rill_pool pool, rill_stream stream, size_t size, void **out);

/** As rill_pool_alloc_async; the address is a multiple of `alignment`, which is a power of two.
 *
 *  Errors:  as rill_pool_alloc_async; INVALID_ARGUMENT also where the alignment is no power of two.
 *  Like:    std::pmr::memory_resource::allocate. */
RILL_API RILL_NODISCARD rill_status rill_pool_alloc_aligned_async(rill_pool pool, rill_stream stream, size_t size,
                                                                  size_t alignment, void **out);

/** Releases unused memory to the driver until the pool has no more than `keep` bytes of it, as far as whole segments
 *  are free and the work before their last free is complete.  May block, as drivers do when memory is released.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (called in a host call), DEVICE_LOST, BACKEND.
 *  Like:    cuMemPoolTrimTo, hipMemPoolTrimTo. */
RILL_API RILL_NODISCARD rill_status rill_pool_trim(rill_pool pool, uint64_t keep);

/** The pool's numbers.  Asks the driver which of the freed memory is complete.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, struct_size).
 *  Threads: any.  Numbers taken while others allocate may belong to slightly different moments.
 *  Like:    cuMemPoolGetAttribute, hipMemPoolGetAttribute. */
RILL_API RILL_NODISCARD rill_status rill_pool_get_info(rill_pool pool, rill_pool_info *info);

/** The limit that the pool was created with, in bytes; 0: none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL).
 *  Like:    cuMemPoolGetAttribute, hipMemPoolGetAttribute. */
RILL_API RILL_NODISCARD rill_status rill_pool_max_size(rill_pool pool, uint64_t *out);

/** The kind of memory that the pool gives: RILL_MEMORY_DEVICE, _PINNED or _MANAGED.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL).
 *  Like:    CUmemPoolProps::location. */
RILL_API RILL_NODISCARD rill_status rill_pool_kind(rill_pool pool, uint32_t *out);

/** The pool's release threshold in bytes; 0: never released automatically.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL).
 *  Like:    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, where 0 means the opposite: all is released. */
RILL_API RILL_NODISCARD rill_status rill_pool_release_threshold(rill_pool pool, uint64_t *out);

/** Sets the release threshold: from then on, when the host synchronizes with the device, or with a stream or an event
 *  while nothing else runs, unused memory goes back to the driver until the pool has no more than so many bytes.  0:
 *  never released automatically.  Whatever it is, rill_pool_trim releases unused memory, and so does an allocation that
 *  would fail otherwise.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, where 0 means the opposite: all is released. */
RILL_API RILL_NODISCARD rill_status rill_pool_set_release_threshold(rill_pool pool, uint64_t bytes);

/** The pool that `p`, an address in an allocation, comes from.  Borrowed: retain it to keep it.  Null for memory of
 *  rill_alloc.
 *
 *  Errors:  INVALID_ARGUMENT (NULL), NOT_FOUND (no allocation of rill).
 *  Like:    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE. */
RILL_API RILL_NODISCARD rill_status rill_memory_pool(const void *p, rill_pool *out);

/** Records that work of `stream` submitted so far uses the allocation that starts at `p`: once freed, the memory is
 *  not reused or released before that work is complete.  For memory of rill_alloc, too: rill_free knows the streams of
 *  its own device, but of a peer that accesses it only what is recorded here.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, inside an allocation), NOT_FOUND (no allocation of
 *           rill, or freed already), WRONG_BACKEND, OUT_OF_MEMORY, CAPTURE_ACTIVE, DEVICE_LOST, BACKEND.
 *  Like:    torch.Tensor.record_stream. */
RILL_API RILL_NODISCARD rill_status rill_memory_record_use(void *p, rill_stream stream);

RILL_EXTERN_C_END

#endif
