/* rill/memory.h: allocation, copies and fills.
 *
 * Memory is addressed by plain pointers, which kernels and the vendor's libraries accept. Copies and fills are work
 * of a stream.
 *
 *     float *x = NULL;
 *     if (RILL_NEW(device, RILL_MEMORY_DEVICE, n, &x) != RILL_OK) ...
 *     rill_copy_async(stream, x, host, n * sizeof *x);
 *     ...
 *     rill_free(x);
 *
 * Pitfall: host memory that a copy reads or writes must exist until the copy has completed, and only copies of pinned
 * memory overlap with other work.
 *
 * Calls on one stream are ordered as they arrive.
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
  RILL_MEMORY_DEVICE = 1,    /**< memory of the device */
  RILL_MEMORY_PINNED = 2,    /**< host memory that all devices of the backend can access at the same address */
  RILL_MEMORY_MANAGED = 3,   /**< moves between host and devices automatically, at the same address */
  RILL_MEMORY_REGISTERED = 4 /**< host memory pinned by rill_host_register; cannot be allocated */
};

/** The allocation or registered range that contains an address. */
typedef struct rill_memory_info {
  size_t struct_size; /**< set by the caller, never changed */
  uint32_t kind;      /**< RILL_MEMORY_* */
  rill_device device; /**< device for which the memory was allocated or registered */
  void *base;         /**< start of the allocation */
  size_t size;        /**< size of the allocation in bytes */
} rill_memory_info;
#define RILL_MEMORY_INFO_INIT \
  { sizeof(rill_memory_info), 0, { 0 }, 0, 0 }

/** Allocates `size` bytes. The memory is not zeroed. Size 0 returns OK and NULL.
 *
 *  If the driver is out of memory, unused memory of the device's pools of this kind is released first, which may
 *  block.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (kind), UNSUPPORTED, OUT_OF_MEMORY (the text has the requested, free and
 *           total bytes; the device remains usable), DEVICE_LOST, BACKEND.
 *  Like:    cuMemAlloc, cuMemHostAlloc, hipMalloc, hipHostMalloc. */
RILL_API RILL_NODISCARD rill_status rill_alloc(rill_device device, size_t size, uint32_t kind, void **out);

/** Allocates like rill_alloc, at a multiple of `alignment`, a power of two. rill_alloc aligns to 256 bytes. A larger
 *  alignment costs up to `alignment` additional bytes.
 *
 *  Errors:  those of rill_alloc; INVALID_ARGUMENT also if the alignment is not a power of two.
 *  Like:    aligned_alloc. */
RILL_API RILL_NODISCARD rill_status rill_alloc_aligned(rill_device device, size_t size, size_t alignment, uint32_t kind,
                                                       void **out);

/** Frees memory from rill_alloc or from a pool (rill/pool.h), or closes memory from rill_memory_ipc_import. Has no
 *  effect on NULL.
 *
 *  May block: waits for all work submitted to the memory's device, or to all devices of the backend if the memory is
 *  pinned or managed. Uses of device memory by other devices must be recorded with rill_memory_record_use. Held streams
 *  are not waited for. If any stream is held, the free is deferred: a later rill call frees the memory, once all work
 *  that was held at this point has finished. While deferred frees exceed half of the device's memory, rill_alloc fails.
 *
 *  Errors:  NOT_FOUND (not allocated by rill), INVALID_ARGUMENT (an address inside an allocation; called in a host
 *           call), OUT_OF_MEMORY (CPU memory shared with other processes; it stays allocated), CHECK (the memory was
 *           freed, but RILL_CHECK=memory found a mistake), DEVICE_LOST, BACKEND.
 *  Like:    cuMemFree, cuMemFreeHost, cuIpcCloseMemHandle, hipFree, hipHostFree. */
RILL_API rill_status rill_free(void *p);

/** Returns kind, device, start and size of the allocation or registered range that contains `p`. Does not call the
 *  driver.
 *
 *  Errors:  NOT_FOUND (rill did not allocate or register the memory; `p` is NULL), INVALID_ARGUMENT (info).
 *  Like:    cuPointerGetAttribute, hipPointerGetAttributes. */
RILL_API RILL_NODISCARD rill_status rill_memory_get_info(const void *p, rill_memory_info *info);

/** Pins `size` bytes of host memory that rill did not allocate. Copies from and to it are then as fast as with
 *  RILL_MEMORY_PINNED and do not block, on all devices of the backend. `p` and `size` need no alignment. The system
 *  pins whole pages, and a driver may refuse two ranges that share a page.
 *
 *  The memory must exist until it is unregistered. The call takes microseconds to milliseconds.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL, size 0, or a range that overlaps memory that rill allocated or
 *           registered), OUT_OF_RANGE (past the end of the address space), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuMemHostRegister, hipHostRegister. */
RILL_API RILL_NODISCARD rill_status rill_host_register(rill_device device, void *p, size_t size);

/** Unregisters memory; `p` is the address that was passed to rill_host_register. May block: waits for the work
 *  submitted to all devices of the backend, and for held work that may use the memory (copies and fills of it, and
 *  all kernels and host calls). An event that holds such work must therefore be recorded before the call or by
 *  another thread.
 *
 *  Errors:  NOT_FOUND (not registered, or NULL), INVALID_ARGUMENT (an address inside a registered range; called in a
 *           host call), DEVICE_LOST, BACKEND.
 *  Like:    cuMemHostUnregister, hipHostUnregister. */
RILL_API rill_status rill_host_unregister(void *p);

/** Moves managed memory to the stream's device before it is used there, as work of the stream. `p` can be any address
 *  inside an allocation. Has no effect if the size is 0, or on the CPU.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, NOT_FOUND (not allocated by rill), INVALID_ARGUMENT (memory of another
 *           kind), WRONG_BACKEND, OUT_OF_RANGE, UNSUPPORTED, DEVICE_LOST, BACKEND.
 *  Like:    cuMemPrefetchAsync, hipMemPrefetchAsync. */
RILL_API RILL_NODISCARD rill_status rill_memory_prefetch_async(rill_stream stream, const void *p, size_t size);

/** Hints for rill_memory_advise. The second hint of each pair undoes the first. */
enum {
  RILL_ADVICE_READ_MOSTLY = 1, /**< mostly read: each processor may keep a copy */
  RILL_ADVICE_NOT_READ_MOSTLY = 2,
  RILL_ADVICE_PREFERRED_LOCATION = 3, /**< the memory should stay on `device` */
  RILL_ADVICE_NO_PREFERRED_LOCATION = 4,
  RILL_ADVICE_ACCESSED_BY = 5, /**< `device` will access the memory: keep it mapped there */
  RILL_ADVICE_NOT_ACCESSED_BY = 6
};

/** Declares how managed memory will be used. Takes effect immediately and affects speed only. `device` belongs to the
 *  memory's backend, or is the CPU for the host; RILL_ADVICE_READ_MOSTLY ignores it, but it must be valid. `p` can be
 *  any address inside an allocation. Size 0 has no effect.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (advice, memory of another kind), NOT_FOUND (not allocated by rill),
 *           WRONG_BACKEND, OUT_OF_RANGE, UNSUPPORTED, DEVICE_LOST, BACKEND.
 *  Like:    cuMemAdvise, hipMemAdvise. */
RILL_API RILL_NODISCARD rill_status rill_memory_advise(const void *p, size_t size, rill_device device, uint32_t advice);

/** Exports memory of kind RILL_MEMORY_DEVICE to other processes. `p` can be any address inside an allocation; the
 *  importer receives a pointer to the same byte. Free the memory only after all importers have closed it.
 *
 *  The first export of a CPU allocation waits for all submitted work and moves the bytes into shared memory at the
 *  same address; nothing may write to the allocation until the call returns. From then on a child made by fork shares
 *  the bytes with its parent.
 *
 *  Errors:  INVALID_ARGUMENT (NULL, imported memory; called in a host call), NOT_FOUND (not allocated by rill),
 *           UNSUPPORTED (memory of another kind, or a device without support; the text has the reason), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuIpcGetMemHandle, hipIpcGetMemHandle. */
RILL_API RILL_NODISCARD rill_status rill_memory_ipc_export(void *p, rill_ipc_handle *out);

/** Imports memory of another process on the same device, and returns the pointer to the exported byte. The whole
 *  allocation is accessible. Each process sees the writes of the other process's completed work. Call rill_free once
 *  for each import to close it.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (the bytes are damaged or not a handle, the handle is for an event, or
 *           this process exported it: use the pointer itself), WRONG_BACKEND, WRONG_DEVICE (each names the handle's
 *           device), NOT_FOUND (the exporter exited or freed the memory), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuIpcOpenMemHandle, hipIpcOpenMemHandle. */
RILL_API RILL_NODISCARD rill_status rill_memory_ipc_import(rill_device device, const rill_ipc_handle *handle,
                                                           void **out);

/** Copies `n` bytes from `src` to `dst`, in any direction, as work of the stream. Has no effect if `n` is 0.
 *
 *  A range that starts inside one of rill's allocations must end inside it. With pageable memory the call may block. A
 *  pageable source is read after earlier work of the stream that writes it, and before the call returns. Overlapping
 *  ranges are undefined on a GPU and copied as by memmove on the CPU.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL; in a host call, a copy that would block),
 *           OUT_OF_RANGE, NOT_FOUND (pool memory that is not allocated), WRONG_BACKEND (device or managed memory of
 *           another backend), OUT_OF_MEMORY (on a held stream or on the CPU), DEVICE_LOST, BACKEND.
 *  Like:    cuMemcpyAsync, hipMemcpyAsync. */
RILL_API RILL_NODISCARD rill_status rill_copy_async(rill_stream stream, void *dst, const void *src, size_t n);

/** Copies `height` rows of `width` bytes, as work of the stream. Bytes between rows are not changed. A pitch is the
 *  distance in bytes from the start of one row to the start of the next. Has no effect if the width or height is 0.
 *
 *  Otherwise like rill_copy_async. On each side, the range extends from the first byte to the last.
 *
 *  Errors:  those of rill_copy_async; INVALID_ARGUMENT also if a pitch is less than the width, OUT_OF_RANGE also if
 *           sizes overflow.
 *  Like:    cuMemcpy2DAsync, hipMemcpy2DAsync. */
RILL_API RILL_NODISCARD rill_status rill_copy_2d_async(rill_stream stream, void *dst, size_t dst_pitch, const void *src,
                                                       size_t src_pitch, size_t width, size_t height);

/** A box of bytes: `depth` slices of `height` rows of `width` bytes. */
typedef struct rill_copy_3d {
  size_t struct_size;
  void *dst;
  const void *src;
  size_t dst_pitch, dst_slice_pitch; /**< bytes from row to row; from slice to slice, >= height * dst_pitch */
  size_t src_pitch, src_slice_pitch; /**< as above, for the source; slice pitches are ignored if depth is 1 */
  size_t width, height, depth;       /**< bytes, rows, slices */
} rill_copy_3d;
#define RILL_COPY_3D_INIT \
  { sizeof(rill_copy_3d), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Copies a box of bytes, as work of the stream. Bytes between rows and slices are not changed. Has no effect if the
 *  width, height or depth is 0. The struct is read during the call. Otherwise like rill_copy_2d_async.
 *
 *  Errors:  those of rill_copy_2d_async; INVALID_ARGUMENT also if a slice pitch is less than the rows of a slice, or
 *           if the struct is invalid.
 *  Like:    cuMemcpy3DAsync, hipMemcpy3DAsync. */
RILL_API RILL_NODISCARD rill_status rill_copy_3d_async(rill_stream stream, const rill_copy_3d *copy);

/** Writes `count` copies of a pattern of 1, 2, 4, 8 or 16 bytes, as work of the stream. The pattern is read during
 *  the call; `dst` must be aligned to the pattern size. Has no effect if `count` is 0.
 *
 *  Errors:  those of rill_copy_async; INVALID_ARGUMENT also for a wrong pattern size or alignment.
 *  Like:    cuMemsetD8Async, cuMemsetD16Async, cuMemsetD32Async, hipMemsetD32Async. */
RILL_API RILL_NODISCARD rill_status rill_fill_async(rill_stream stream, void *dst, const void *pattern,
                                                    size_t pattern_size, size_t count);

/** Writes `height` rows of `width` copies of a pattern, as work of the stream. Bytes between rows are not changed.
 *  The pitch is the distance in bytes from the start of one row to the start of the next, a multiple of the pattern
 *  size. Has no effect if the width or height is 0. Otherwise like rill_fill_async. The range extends from the first
 *  byte to the last.
 *
 *  Errors:  those of rill_fill_async; INVALID_ARGUMENT also if the pitch is less than a row, OUT_OF_RANGE also if
 *           sizes overflow.
 *  Like:    cuMemsetD2D8Async, cuMemsetD2D16Async, cuMemsetD2D32Async, hipMemset2DAsync. */
RILL_API RILL_NODISCARD rill_status rill_fill_2d_async(rill_stream stream, void *dst, size_t dst_pitch,
                                                       const void *pattern, size_t pattern_size, size_t width,
                                                       size_t height);

/* Allocates `count` times `size` bytes and checks the product for overflow. Used by RILL_NEW. */
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

/** Allocates an array: with a `float *p`, RILL_NEW(device, RILL_MEMORY_DEVICE, 100, &p) allocates 100 floats. Returns
 *  OUT_OF_MEMORY if the size does not fit size_t. */
#define RILL_NEW(device, kind, count, pointer) \
  rill_alloc_array_((device), (kind), (count), sizeof(**(pointer)), RILL_NEW_OUT_(pointer))

RILL_EXTERN_C_END

#endif
