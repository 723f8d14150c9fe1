/* rill/memory.h: allocation, copies and fills.
 *
 * Memory is plain pointers, usable in kernels and by the vendor's libraries.  Copies and fills are work of
 * a stream.
 *
 *     float *x = NULL;
 *     if (RILL_NEW(device, RILL_MEMORY_DEVICE, n, &x) != RILL_OK) ...
 *     rill_copy_async(stream, x, host, n * sizeof *x);
 *     ...
 *     rill_free(x);
 *
 * The thing people get wrong: host memory that is the source or destination of a copy must stay until the
 * copy is done, and only pinned memory lets a copy overlap with other work.
 */
#ifndef RILL_MEMORY_H
#define RILL_MEMORY_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Kinds of memory. */
enum {
  RILL_MEMORY_UNKNOWN = 0,
  RILL_MEMORY_DEVICE = 1, /**< the device's own */
  RILL_MEMORY_PINNED = 2, /**< host memory that all devices of the backend reach, at the same address */
  RILL_MEMORY_MANAGED = 3,
  RILL_MEMORY_REGISTERED = 4
};

/** Allocates `size` bytes.  They are not zeroed.  Size 0 is OK and gives NULL.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (kind), UNSUPPORTED, OUT_OF_MEMORY (asked, free and total are
 *           in the text; the device stays usable), DEVICE_LOST, BACKEND.
 *  Threads: any.
 *  Like:    cuMemAlloc, cuMemHostAlloc, hipMalloc, hipHostMalloc.      Since: 0.1 */
RILL_API RILL_NODISCARD rill_status rill_alloc(rill_device device, size_t size, uint32_t kind, void **out);

/** Frees what rill_alloc or a pool gave (rill/pool.h).  NULL: nothing happens.  May block: the memory does not go before the work
 *  submitted to its device is done.
 *
 *  Errors:  NOT_FOUND (no allocation of rill), INVALID_ARGUMENT (inside one), DEVICE_LOST, BACKEND.
 *  Threads: any.
 *  Like:    cuMemFree, cuMemFreeHost, hipFree, hipHostFree.      Since: 0.1 */
RILL_API rill_status rill_free(void *p);

/** Copies `n` bytes from `src` to `dst`, in any direction, as work of the stream.  0 bytes: nothing happens.
 *
 *  A range that starts inside an allocation of rill must end inside it.  Pageable memory may make the call
 *  block; a pageable source has been read when it returns.  Ranges that overlap: undefined on a GPU, as
 *  memmove on the CPU.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL), OUT_OF_RANGE, DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemcpyAsync, hipMemcpyAsync.      Since: 0.1 */
RILL_API RILL_NODISCARD rill_status rill_copy_async(rill_stream stream, void *dst, const void *src, size_t n);

/** Writes `count` copies of a pattern of 1, 2, 4, 8 or 16 bytes, as work of the stream.  The pattern is read
 *  at the call; `dst` must be aligned to its size.  Count 0: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, pattern size, alignment), OUT_OF_RANGE,
 *           DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async, hipMemsetD32Async.      Since: 0.1 */
RILL_API RILL_NODISCARD rill_status rill_fill_async(rill_stream stream, void *dst, const void *pattern,
                                                    size_t pattern_size, size_t count);

/* Allocation of `count` times `size` bytes with the product checked: what RILL_NEW calls. */
static inline RILL_NODISCARD rill_status rill_alloc_array_(rill_device device, uint32_t kind, size_t count, size_t size,
                                                           void **out) {
  const size_t bytes = size != 0 && count > SIZE_MAX / size ? SIZE_MAX : count * size;
  return rill_alloc(device, bytes, kind, out);
}

/** Typed allocation: RILL_NEW(device, RILL_MEMORY_DEVICE, 100, &p) for a `float *p` is 100 floats.  A
 *  product that does not fit size_t is OUT_OF_MEMORY. */
#define RILL_NEW(device, kind, count, pointer) \
  rill_alloc_array_((device), (kind), (count), sizeof(**(pointer)), (void **)(pointer))

RILL_EXTERN_C_END

#endif
