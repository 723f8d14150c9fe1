/* rill/dlpack.h: exchanges arrays with PyTorch, CuPy, NumPy, JAX and others through DLPack, without a copy.
 *
 * DLPack is a struct that these libraries share. It holds an address, a device, a shape, and a function that the
 * consumer calls when it no longer uses the memory. In Python the struct is passed in a capsule named
 * "dltensor_versioned".
 *
 *     int64_t shape[] = { rows, columns };
 *     rill_tensor tensor = RILL_TENSOR_INIT;              // for memory from rill_alloc or a pool
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
 * A consumer's stream is given as the number that the array API standard defines for `__dlpack__(stream=...)`. -1
 * means no synchronization. With CUDA, 1 is the legacy default stream, 2 the per-thread default stream, and any other
 * number a cudaStream_t. With ROCm, 0 is the default stream and any other number a hipStream_t. Python's None means 1
 * with CUDA and 0 with ROCm. A program that consumes arrays on a rill stream passes the native handle of the stream
 * (rill_stream_native) to `__dlpack__`.
 *
 * Pitfall: the deleter must not be called before all work that uses the memory has completed. Call it after a
 * synchronize or in a host call.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DLPACK_H
#define RILL_DLPACK_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Element kinds, with the numbers of DLPack. */
enum {
  RILL_TENSOR_INT = 0,
  RILL_TENSOR_UINT = 1,
  RILL_TENSOR_FLOAT = 2,
  RILL_TENSOR_BFLOAT = 4,
  RILL_TENSOR_COMPLEX = 5,
  RILL_TENSOR_BOOL = 6
};

/** The consumer needs no ordering, because the producer's work is complete or the consumer waits for it by other
 *  means. */
#define RILL_DLPACK_NO_STREAM (-1)

/** An array in memory. */
typedef struct rill_tensor {
  size_t struct_size;
  void *data;             /**< the first element */
  uint8_t type_code;      /**< RILL_TENSOR_* or another DLPack type code */
  uint8_t type_bits;      /**< bits of one lane: 32 for float */
  uint16_t type_lanes;    /**< lanes of a vector; 0 means 1 */
  uint32_t dimensions;    /**< 0: a single element */
  const int64_t *shape;   /**< elements in each dimension */
  const int64_t *strides; /**< distance between indices in elements; NULL: row-major without gaps */
  bool read_only;         /**< the consumer must not write it */
} rill_tensor;
#define RILL_TENSOR_INIT \
  { sizeof(rill_tensor), NULL, 0, 0, 0, 0, NULL, NULL, false }

/** The struct DLManagedTensorVersioned of DLPack 1.0. */
typedef struct rill_dlpack {
  uint32_t major, minor; /**< version of DLPack */
  void *manager;
  void (*deleter)(struct rill_dlpack *self); /**< frees the struct and releases the memory; may be NULL */
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

/** Exports an array as a DLManagedTensorVersioned of DLPack 1.0, which is stored in *managed. On a GPU the array must
 *  be in memory that rill allocated.
 *
 *  `consumer` is the number of the consumer's stream (see above), which is made to wait for the work submitted to
 *  `stream` so far. On the CPU, where consumers have no streams, synchronize first and pass RILL_DLPACK_NO_STREAM.
 *  The consumer calls the deleter once, on any thread, and the deleter calls `release(user)`. The memory must exist
 *  until then. `release` may be NULL, and is not called after an error. Shape and strides are copied.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a type without bits, a negative size, an invalid stream
 *           number), NOT_FOUND (on a GPU, rill did not allocate the data), OUT_OF_RANGE (an element lies outside its
 *           allocation), WRONG_DEVICE (memory of another device), OUT_OF_MEMORY; those of rill_stream_import and
 *           rill_stream_wait_stream.
 *  Like:    torch.utils.dlpack.to_dlpack, cupy.ndarray.__dlpack__. */
RILL_API RILL_NODISCARD rill_status rill_dlpack_export(rill_stream stream, const rill_tensor *tensor, intptr_t consumer,
                                                       rill_release_fn release, void *user, void **managed);

/** Imports the array that a DLManagedTensorVersioned describes, for work on `device`.
 *
 *  Shape and strides point into the struct and are valid until the caller calls its deleter. On a GPU the array can
 *  be in memory of that GPU, in pinned memory or in managed memory.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (NULL, a negative size), UNSUPPORTED (another major version of DLPack),
 *           WRONG_DEVICE (the device cannot use the memory; the text has both device numbers).
 *  Like:    torch.utils.dlpack.from_dlpack, cupy.from_dlpack. */
RILL_API RILL_NODISCARD rill_status rill_dlpack_import(rill_device device, const void *managed, rill_tensor *tensor);

RILL_EXTERN_C_END

#endif
