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
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_MEMORY_H
#define RILL_MEMORY_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Kinds of memory. */
enum {
  RILL_MEMORY_UNKNOWN = 0,
  RILL_MEMORY_DEVICE = 1,    /**< the device's own */
  RILL_MEMORY_PINNED = 2,    /**< host memory that all devices of the backend can access, at the same address */
  RILL_MEMORY_MANAGED = 3,   /**< moves between host and devices automatically, at the same address */
  RILL_MEMORY_REGISTERED = 4 /**< other host memory that was pinned; not a kind to allocate */
};

/** What rill knows of the memory that a pointer lies in. */
typedef struct rill_memory_info {
  size_t struct_size; /**< left as it is, on failure too */
  uint32_t kind;      /**< RILL_MEMORY_* */
  rill_device device; /**< that it was allocated or registered for */
  void *base;         /**< where the allocation starts */
  size_t size;        /**< of the allocation, in bytes */
} rill_memory_info;
#define RILL_MEMORY_INFO_INIT \
  { sizeof(rill_memory_info), 0, { 0 }, 0, 0 }

/** Allocates `size` bytes.  They are not zeroed.  Size 0 is OK and gives NULL.
 *
 *  If the driver has no more, memory that the device's pools of this kind do not use is released first, which may
 *  block.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (kind), UNSUPPORTED, OUT_OF_MEMORY (asked, free and total are
 *           in the text; the device stays usable), DEVICE_LOST, BACKEND.
 *  Like:    cuMemAlloc, cuMemHostAlloc, hipMalloc, hipHostMalloc. */
RILL_API RILL_NODISCARD rill_status rill_alloc(rill_device device, size_t size, uint32_t kind, void **out);

/** As rill_alloc; the address is a multiple of `alignment`, which is a power of two.  What rill_alloc gives is aligned
 *  to 256 bytes.  More than that costs up to `alignment` bytes more.
 *
 *  Errors:  as rill_alloc; INVALID_ARGUMENT also where the alignment is no power of two.
 *  Like:    aligned_alloc. */
RILL_API RILL_NODISCARD rill_status rill_alloc_aligned(rill_device device, size_t size, size_t alignment, uint32_t kind,
                                                       void **out);

/** Frees memory of rill_alloc or of a pool (rill/pool.h), or closes that of rill_memory_ipc_import.  NULL: nothing
 *  happens.
 *
 *  May block: it waits for all work submitted to the memory's device, for pinned and managed memory to all devices of
 *  the backend; uses of device memory on another device are recorded with rill_memory_record_use.  Work of held streams
 *  is not waited for: while there is any, the free is deferred until what was held before it is done, and the memory is
 *  freed in a later call.  While that is more than half of the device's memory, rill_alloc fails.
 *
 *  Errors:  NOT_FOUND (no allocation of rill), INVALID_ARGUMENT (inside one; called in a host call), OUT_OF_MEMORY
 *           (the CPU's, that was shared with other processes: it is not freed), CHECK (RILL_CHECK=memory found a
 *           mistake: the memory has been freed), DEVICE_LOST, BACKEND.
 *  Like:    cuMemFree, cuMemFreeHost, cuIpcCloseMemHandle, hipFree, hipHostFree. */
RILL_API rill_status rill_free(void *p);

/** Returns kind, device, start and size of the allocation or registered range that `p` lies in; `p` may lie anywhere
 *  inside.  The driver is not asked.
 *
 *  Errors:  NOT_FOUND (`p` lies in no memory of rill's, NULL included), INVALID_ARGUMENT (info).
 *  Like:    cuPointerGetAttribute, hipPointerGetAttributes. */
RILL_API RILL_NODISCARD rill_status rill_memory_get_info(const void *p, rill_memory_info *info);

/** Pins `size` bytes of host memory that rill did not allocate: copies from and to it are as fast as with
 *  RILL_MEMORY_PINNED and do not block, for all devices of the backend.  `p` and `size` may be anything; the
 *  system pins whole pages, and a driver may refuse two ranges that share one.
 *
 *  The memory must stay until it is unregistered.  Takes microseconds to milliseconds.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL, size 0, memory that rill allocated or that is registered
 *           already, in part too), OUT_OF_RANGE (past the end of memory), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuMemHostRegister, hipHostRegister. */
RILL_API RILL_NODISCARD rill_status rill_host_register(rill_device device, void *p, size_t size);

/** Undoes rill_host_register; `p` is what it was given.  May block: waits for the work submitted to all
 *  devices of the backend, and for work of held streams that may use the memory: copies and fills of it, kernels and
 *  host calls.  So the event that such a stream waits for must be recorded by another thread, or before.
 *
 *  Errors:  NOT_FOUND (no registered memory, NULL included), INVALID_ARGUMENT (inside a registered range; called in a
 *           host call), DEVICE_LOST, BACKEND.
 *  Like:    cuMemHostUnregister, hipHostUnregister. */
RILL_API rill_status rill_host_unregister(void *p);

/** Brings managed memory to the stream's device ahead of its use there, as work of the stream.  `p` may lie inside an
 *  allocation.  Size 0: nothing happens.  Where all memory is in one place (the CPU) there is nothing to bring.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, NOT_FOUND (no memory of rill), INVALID_ARGUMENT (memory of another kind),
 *           WRONG_BACKEND, OUT_OF_RANGE, UNSUPPORTED, DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemPrefetchAsync, hipMemPrefetchAsync. */
RILL_API RILL_NODISCARD rill_status rill_memory_prefetch_async(rill_stream stream, const void *p, size_t size);

/** What rill_memory_advise can say of a range; each is a hint, and the second of a pair undoes the first. */
enum {
  RILL_ADVICE_READ_MOSTLY = 1, /**< read far more than written: each place may keep a copy */
  RILL_ADVICE_NOT_READ_MOSTLY = 2,
  RILL_ADVICE_PREFERRED_LOCATION = 3, /**< it should live on the device named, and be accessed there */
  RILL_ADVICE_NO_PREFERRED_LOCATION = 4,
  RILL_ADVICE_ACCESSED_BY = 5, /**< the device named will use it: keep it mapped there */
  RILL_ADVICE_NOT_ACCESSED_BY = 6
};

/** Says how managed memory is going to be used.  Takes effect at once; changes speed only.  `device` is one of the
 *  memory's backend, or the CPU for the host; RILL_ADVICE_READ_MOSTLY ignores it, but it must be a device.  `p` may lie
 *  inside an allocation.  Size 0: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (advice, memory of another kind), NOT_FOUND (no memory of rill),
 *           WRONG_BACKEND, OUT_OF_RANGE, UNSUPPORTED, DEVICE_LOST, BACKEND.
 *  Like:    cuMemAdvise, hipMemAdvise. */
RILL_API RILL_NODISCARD rill_status rill_memory_advise(const void *p, size_t size, rill_device device, uint32_t advice);

/** Returns what another process needs to share memory of kind RILL_MEMORY_DEVICE; `p` may be anywhere inside an
 *  allocation, and the other process gets a pointer to the same byte.  Free the memory after the others have closed it.
 *
 *  The first export of an allocation on the CPU waits for all submitted work, and moves the bytes to where others can
 *  access them, at the same address: until the call returns, nothing may write them.  From then on a child made by fork
 *  shares them with its parent.
 *
 *  Errors:  INVALID_ARGUMENT (NULL, imported memory; called in a host call), NOT_FOUND (no allocation of rill),
 *           UNSUPPORTED (another kind, a device that cannot: with the reason), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuIpcGetMemHandle, hipIpcGetMemHandle. */
RILL_API RILL_NODISCARD rill_status rill_memory_ipc_export(void *p, rill_ipc_handle *out);

/** Opens memory of another process, of the same device, and gives the pointer to what it exported.  All of its
 *  allocation can be accessed, and each process sees what the other's completed work wrote.  rill_free closes it, once
 *  for each import.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (bytes that are no handle or damaged, a handle of an event, one that this
 *           process itself exported: use the pointer), WRONG_BACKEND, WRONG_DEVICE (each naming the handle's),
 *           NOT_FOUND (the exporter has ended or freed it), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuIpcOpenMemHandle, hipIpcOpenMemHandle. */
RILL_API RILL_NODISCARD rill_status rill_memory_ipc_import(rill_device device, const rill_ipc_handle *handle,
                                                           void **out);

/** Copies `n` bytes from `src` to `dst`, in any direction, as work of the stream.  0 bytes: nothing happens.
 *
 *  A range that starts inside an allocation of rill must end inside it.  Pageable memory may make the call
 *  block; a pageable source has been read when it returns, and after earlier work of the stream that writes it.
 *  Ranges that overlap: undefined on a GPU, as memmove on the CPU.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL; it would block, in a host call), OUT_OF_RANGE,
 *           NOT_FOUND (memory of a pool that is not allocated), WRONG_BACKEND (device or managed memory of another
 *           backend), OUT_OF_MEMORY (on a held stream, or on the CPU), DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemcpyAsync, hipMemcpyAsync. */
RILL_API RILL_NODISCARD rill_status rill_copy_async(rill_stream stream, void *dst, const void *src, size_t n);

/** Copies `height` rows of `width` bytes, as work of the stream, and leaves alone what lies between rows.  A pitch is
 *  the bytes from the start of one row to the start of the next.  No bytes (a width or height of 0): nothing happens.
 *
 *  All else is as for rill_copy_async, the range of each end being from its first byte to its last.
 *
 *  Errors:  those of rill_copy_async; INVALID_ARGUMENT also where a pitch is less than the width, OUT_OF_RANGE also
 *           where sizes overflow.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemcpy2DAsync, hipMemcpy2DAsync. */
RILL_API RILL_NODISCARD rill_status rill_copy_2d_async(rill_stream stream, void *dst, size_t dst_pitch, const void *src,
                                                       size_t src_pitch, size_t width, size_t height);

/** A box of bytes: `depth` slices of `height` rows of `width` bytes. */
typedef struct rill_copy_3d {
  size_t struct_size;
  void *dst;
  const void *src;
  size_t dst_pitch, dst_slice_pitch; /**< bytes from row to row, and from slice to slice: at least `height` pitches */
  size_t src_pitch, src_slice_pitch; /**< the same of the source; with a depth of 1 slice pitches mean nothing */
  size_t width, height, depth;       /**< bytes, rows, slices */
} rill_copy_3d;
#define RILL_COPY_3D_INIT \
  { sizeof(rill_copy_3d), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Copies a box of bytes, as work of the stream, and leaves alone what lies between rows and slices.  No bytes (a
 *  width, height or depth of 0): nothing happens.  The struct is read at the call.  All else is as for
 *  rill_copy_2d_async.
 *
 *  Errors:  those of rill_copy_2d_async; INVALID_ARGUMENT also where a slice pitch is less than the rows of a slice,
 *           and of the struct.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemcpy3DAsync, hipMemcpy3DAsync. */
RILL_API RILL_NODISCARD rill_status rill_copy_3d_async(rill_stream stream, const rill_copy_3d *copy);

/** Writes `count` copies of a pattern of 1, 2, 4, 8 or 16 bytes, as work of the stream.  The pattern is read
 *  at the call; `dst` must be aligned to its size.  Count 0: nothing happens.
 *
 *  Errors:  those of rill_copy_async; INVALID_ARGUMENT also of the pattern's size and of alignment.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async, hipMemsetD32Async. */
RILL_API RILL_NODISCARD rill_status rill_fill_async(rill_stream stream, void *dst, const void *pattern,
                                                    size_t pattern_size, size_t count);

/** Writes `height` rows of `width` copies of a pattern, as work of the stream, and leaves alone what lies between rows.
 *  The pitch is the bytes from the start of one row to the start of the next, a multiple of the pattern's size.  No
 *  patterns (a width or height of 0): nothing happens.  All else is as for rill_fill_async, the range being from its
 *  first byte to its last.
 *
 *  Errors:  those of rill_fill_async; INVALID_ARGUMENT also where a pitch is less than a row, OUT_OF_RANGE also where
 *           sizes overflow.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuMemsetD2D8Async, cuMemsetD2D16Async, cuMemsetD2D32Async, hipMemset2DAsync. */
RILL_API RILL_NODISCARD rill_status rill_fill_2d_async(rill_stream stream, void *dst, size_t dst_pitch,
                                                       const void *pattern, size_t pattern_size, size_t width,
                                                       size_t height);

/* Allocation of `count` times `size` bytes with the product checked: what RILL_NEW calls. */
static inline RILL_NODISCARD rill_status rill_alloc_array_(rill_device device, uint32_t kind, size_t count, size_t size,
                                                           void **out) {
  const size_t bytes = size != 0 && count > SIZE_MAX / size ? SIZE_MAX : count * size;
  return rill_alloc(device, bytes, kind, out);
}

#ifdef __cplusplus
#define RILL_NEW_OUT_(pointer) reinterpret_cast<void **>(pointer)
#else
#define RILL_NEW_OUT_(pointer) ((void **)(pointer))
#endif

/** Typed allocation: RILL_NEW(device, RILL_MEMORY_DEVICE, 100, &p) for a `float *p` is 100 floats.  A
 *  product that does not fit size_t is OUT_OF_MEMORY. */
#define RILL_NEW(device, kind, count, pointer) \
  rill_alloc_array_((device), (kind), (count), sizeof(**(pointer)), RILL_NEW_OUT_(pointer))

RILL_EXTERN_C_END

#endif
