/* rill/dlpack.h: arrays given to and taken from PyTorch, CuPy, NumPy, JAX and others, by DLPack, without a copy.
 *
 * DLPack is a struct that these libraries agree on: an address, a device, a shape, and a function to call when the
 * consumer has finished with the memory.  In Python it travels as a capsule named "dltensor_versioned".
 *
 *     int64_t shape[] = { rows, columns };
 *     rill_tensor tensor = RILL_TENSOR_INIT;              // of memory of rill_alloc or a pool
 *     tensor.data = x;
 *     tensor.type_code = RILL_TENSOR_FLOAT, tensor.type_bits = 32;
 *     tensor.dimensions = 2, tensor.shape = shape;
 *     void *managed;
 *     rill_dlpack_export(stream, &tensor, consumer_stream, done, user, &managed);
 *     capsule = PyCapsule_New(managed, "dltensor_versioned", destroy);
 *
 *     managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
 *     rill_dlpack_import(device, managed, &tensor);       // then rename the capsule to "used_dltensor_versioned"
 *     ... work on tensor.data ...
 *     ((rill_dlpack *)managed)->deleter(managed);         // when the work is done
 *
 * The number of a consumer's stream is the one that the array API standard has for `__dlpack__(stream=...)`: -1 for no
 * synchronization; with CUDA 1 for the legacy default stream, 2 for the per-thread one, else the cudaStream_t as a
 * number; with ROCm 0 for the default stream, else the hipStream_t.  Python's None stands for 1 with CUDA and for 0
 * with ROCm. What a consumer of rill's passes to `__dlpack__` is the native handle of its stream (rill_stream_native).
 *
 * The thing people get wrong: calling the deleter while work that uses the memory has not run yet.  Call it after a
 * synchronize, or in a host call.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DLPACK_H
#define RILL_DLPACK_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Kinds of element, with DLPack's numbers. */
enum {
  RILL_TENSOR_INT = 0,
  RILL_TENSOR_UINT = 1,
  RILL_TENSOR_FLOAT = 2,
  RILL_TENSOR_BFLOAT = 4,
  RILL_TENSOR_COMPLEX = 5,
  RILL_TENSOR_BOOL = 6
};

/** The consumer needs no order after the work of a stream: it is complete, or the consumer waits by other means. */
#define RILL_DLPACK_NO_STREAM (-1)

/** An array in memory. */
typedef struct rill_tensor {
  size_t struct_size;
  void *data;             /**< the first element */
  uint8_t type_code;      /**< RILL_TENSOR_*, or another code of DLPack's */
  uint8_t type_bits;      /**< of one lane: 32 for float */
  uint16_t type_lanes;    /**< of a vector; 0 reads as 1 */
  uint32_t dimensions;    /**< 0: a single element */
  const int64_t *shape;   /**< elements in each dimension */
  const int64_t *strides; /**< elements from one index to the next; NULL: row-major without gaps */
  bool read_only;         /**< the consumer must not write it */
} rill_tensor;
#define RILL_TENSOR_INIT \
  { sizeof(rill_tensor), NULL, 0, 0, 0, 0, NULL, NULL, false }

/** DLManagedTensorVersioned of DLPack 1.0, field by field. */
typedef struct rill_dlpack {
  uint32_t major, minor; /**< of DLPack */
  void *manager;
  void (*deleter)(struct rill_dlpack *self); /**< frees the struct and what keeps the memory; may be NULL */
  uint64_t flags;                            /**< bit 0: read-only; bit 1: a copy */
  void *data;
  int32_t device_type, device_id;
  int32_t dimensions;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} rill_dlpack;

/** Describes an array in memory of rill for a consumer: *managed becomes a DLManagedTensorVersioned of DLPack 1.0.
 *
 *  `consumer` is the number of the consumer's stream (above); that stream waits for what `stream` has at the call.
 *  On the CPU consumers have no streams: synchronize first, and pass RILL_DLPACK_NO_STREAM.  The consumer calls the
 *  deleter once, on any thread, and the deleter calls `release(user)`; until then the memory must stay.  `release` may
 *  be NULL.  After an error it is not called.  Shape and strides are copied.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a type without bits, a negative size, a number that names
 *           no stream), NOT_FOUND (on a GPU: the data is no memory of rill), OUT_OF_RANGE (an element lies outside of
 *           its allocation), WRONG_DEVICE (memory of another device), OUT_OF_MEMORY; those of rill_stream_import and
 *           rill_stream_wait_stream.
 *  Like:    torch.utils.dlpack.to_dlpack, cupy.ndarray.__dlpack__. */
RILL_API RILL_NODISCARD rill_status rill_dlpack_export(rill_stream stream, const rill_tensor *tensor, intptr_t consumer,
                                                       rill_release_fn release, void *user, void **managed);

/** Fills in the array that a DLManagedTensorVersioned describes, for work on `device`.
 *
 *  Shape and strides are the struct's own, valid until its deleter is called, which remains the caller's to do.  On a
 *  GPU the array may be in memory of that GPU, pinned or managed.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL, a negative size), UNSUPPORTED (another major version of DLPack),
 *           WRONG_DEVICE (memory that the device cannot use; the text has both numbers).
 *  Like:    torch.utils.dlpack.from_dlpack, cupy.from_dlpack. */
RILL_API RILL_NODISCARD rill_status rill_dlpack_import(rill_device device, const void *managed, rill_tensor *tensor);

RILL_EXTERN_C_END

#endif
