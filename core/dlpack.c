/* rill/dlpack.h: arrays exported to and imported from other libraries. */
#include "core/object/options.h"
#include "core/pool/pool.h"
#include "core/stream/stream.h"
#include "core/sync/streams.h"
#include "core/tracking/ranges.h"

#include <rill/dlpack.h>
#include <stdlib.h>

enum { DL_READ_ONLY = 1 }; /* in DLManagedTensorVersioned.flags */
enum { MAX_DIMENSIONS = 64 };

/* ---- shapes ---- */

/* Computes the bytes that the array reaches in both directions from its first element: `below` before the element,
 * `above` from the element on.  Returns false if a size is negative, or if the array is larger than the address
 * space. */
static bool reach(const rill_tensor *tensor, size_t *below, size_t *above) {
  const uint64_t lanes = tensor->type_lanes == 0 ? 1 : tensor->type_lanes;
  const uint64_t element = (tensor->type_bits * lanes + 7) / 8;
  uint64_t down = 0, up = 1, compact = 1; /* in elements */
  bool empty = false, overflow = false;
  for (uint32_t i = tensor->dimensions; i-- > 0;) {
    const int64_t size = tensor->shape[i];
    if (size < 0) return false;
    empty = empty || size == 0;
    int64_t stride = 0;
    if (tensor->strides != NULL) {
      stride = tensor->strides[i];
    } else {
      overflow = overflow || compact > INT64_MAX;
      stride = (int64_t)compact;
    }
    const uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
    uint64_t span = 0;
    uint64_t *const side = stride < 0 ? &down : &up;
    overflow = __builtin_mul_overflow(size == 0 ? 0 : (uint64_t)size - 1, step, &span) || overflow;
    overflow = __builtin_add_overflow(*side, span, side) || overflow;
    overflow = (tensor->strides == NULL && __builtin_mul_overflow(compact, (uint64_t)size, &compact)) || overflow;
  }
  *below = *above = 0;
  if (empty) return true;
  overflow = __builtin_mul_overflow(down, element, below) || overflow;
  overflow = __builtin_mul_overflow(up, element, above) || overflow;
  return !overflow;
}

static rill_status check_tensor(const rill_tensor *tensor, size_t *below, size_t *above) {
  RILL_REQUIRE(tensor->type_bits != 0, RILL_ERROR_INVALID_ARGUMENT, "tensor: type_bits is 0");
  RILL_REQUIRE(tensor->dimensions <= MAX_DIMENSIONS, RILL_ERROR_INVALID_ARGUMENT,
               "tensor: dimensions is %u, but the limit is %d", tensor->dimensions, MAX_DIMENSIONS);
  RILL_REQUIRE(tensor->dimensions == 0 || tensor->shape != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "tensor: shape is NULL, but dimensions is %u", tensor->dimensions);
  for (uint32_t i = 0; i < tensor->dimensions; i++) {
    RILL_REQUIRE(tensor->shape[i] >= 0, RILL_ERROR_INVALID_ARGUMENT, "tensor: shape[%u] is %lld", i,
                 (long long)tensor->shape[i]);
  }
  RILL_REQUIRE(reach(tensor, below, above), RILL_ERROR_INVALID_ARGUMENT,
               "tensor: shape or strides are negative, or reach beyond the address space");
  RILL_REQUIRE(*above == 0 || tensor->data != NULL, RILL_ERROR_INVALID_ARGUMENT, "tensor: data is NULL");
  return RILL_OK;
}

/* ---- export ---- */

struct exported {
  rill_dlpack dlpack;
  rill_release_fn release;
  void *user;
  int64_t sizes[]; /* shape, then strides */
};

static void delete_exported(rill_dlpack *self) {
  struct exported *const exported = self->manager;
  if (exported->release != NULL) exported->release(exported->user);
  free(exported);
}

/* Finds DLPack's type of the memory. */
static rill_status find_type(struct rill__device *device, const rill_tensor *tensor, size_t below, size_t above,
                             int32_t *type) {
  const struct rill__dlpack *const names = &device->backend->dlpack;
  *type = names->device;
  if (above == 0) return RILL_OK; /* there are no elements */
  struct rill__allocation *const allocation = rill__ranges_find(tensor->data);
  uintptr_t begin = allocation != NULL ? allocation->begin : 0;
  size_t size = allocation != NULL ? allocation->size : 0;
  const bool known =
      allocation != NULL && (!allocation->pooled || rill__pool_find(allocation, tensor->data, &begin, &size));
  if (!known && !device->backend->gpu) return RILL_OK; /* any host memory is accepted */
  RILL_REQUIRE(known, RILL_ERROR_NOT_FOUND, "tensor: data %p is not a rill allocation, or has been freed",
               tensor->data);
  const uintptr_t at = (uintptr_t)tensor->data;
  RILL_REQUIRE(
      at - begin >= below && begin + size - at >= above, RILL_ERROR_OUT_OF_RANGE,
      "tensor: its elements lie from %zu bytes before %p to %zu bytes after; the allocation of %zu bytes begins "
      "at %p",
      below, tensor->data, above, size, (void *)begin);
  RILL_REQUIRE(allocation->base.device == device || allocation->kind != RILL_MEMORY_DEVICE, RILL_ERROR_WRONG_DEVICE,
               "tensor: data %p is memory of %s, and the stream is one of %s", tensor->data,
               allocation->base.device->name, device->name);
  if (allocation->kind == RILL_MEMORY_PINNED) *type = names->pinned;
  if (allocation->kind == RILL_MEMORY_MANAGED) *type = names->managed;
  return RILL_OK;
}

/* Makes the consumer's stream wait for the work submitted to `stream` so far. */
static rill_status order_consumer(struct rill__stream *stream, intptr_t consumer) {
  struct rill__device *const device = stream->base.device;
  const struct rill__dlpack *const names = &device->backend->dlpack;
  if (consumer == RILL_DLPACK_NO_STREAM) return RILL_OK;
  RILL_REQUIRE(device->backend->gpu, RILL_ERROR_INVALID_ARGUMENT,
               "consumer is %lld, but consumers have no streams on %s" RILL_HINT
               "synchronize the stream, and pass RILL_DLPACK_NO_STREAM",
               (long long)consumer, device->name);
  RILL_REQUIRE(consumer > 2 || (consumer >= names->first_stream && consumer <= names->last_stream),
               RILL_ERROR_INVALID_ARGUMENT,
               "consumer is %lld, which is not a stream of %s" RILL_HINT
               "valid values are -1: no synchronization; %s; larger numbers: a native stream",
               (long long)consumer, device->name, names->streams);
  struct rill__stream *other = NULL;
  RILL_TRY(rill__stream_import(device, (uintptr_t)consumer, NULL, &other));
  const rill_status status = rill__stream_wait_stream(other, stream);
  struct rill__object *last = NULL;
  const rill_status released = rill__object_release(other->base.id, RILL__STREAM, &last);
  if (last != NULL) rill__stream_end((struct rill__stream *)last);
  return status != RILL_OK ? status : released;
}

rill_status rill_dlpack_export(rill_stream stream, const rill_tensor *tensor, intptr_t consumer,
                               rill_release_fn release, void *user, void **managed) {
  RILL_ENTER();
  if (managed != NULL) *managed = NULL;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(managed != NULL && tensor != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               tensor == NULL ? "tensor" : "managed");
  rill_tensor t = RILL_TENSOR_INIT;
  size_t below, above;
  int32_t type;
  RILL_TRY(rill__options_read(&t, sizeof t, tensor, "rill_tensor"));
  RILL_TRY(check_tensor(&t, &below, &above));
  RILL_TRY(find_type(s->base.device, &t, below, above, &type));
  struct exported *const made = malloc(sizeof *made + 2 * sizeof(int64_t) * t.dimensions);
  RILL_REQUIRE(made != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for the description of a tensor");
  const rill_status status = order_consumer(s, consumer);
  if (status != RILL_OK) {
    free(made);
    return status;
  }
  int64_t *const shape = made->sizes, *const strides = made->sizes + t.dimensions;
  int64_t compact = 1;
  for (uint32_t i = t.dimensions; i-- > 0; compact *= t.shape[i] == 0 ? 1 : t.shape[i]) {
    shape[i] = t.shape[i];
    strides[i] = t.strides != NULL ? t.strides[i] : compact;
  }
  made->release = release;
  made->user = user;
  made->dlpack = (rill_dlpack){ .major = 1,
                                .manager = made,
                                .deleter = delete_exported,
                                .flags = t.read_only ? DL_READ_ONLY : 0,
                                .data = t.data,
                                .device_type = type,
                                .device_id = s->base.device->info.ordinal,
                                .dimensions = (int32_t)t.dimensions,
                                .type_code = t.type_code,
                                .type_bits = t.type_bits,
                                .type_lanes = t.type_lanes == 0 ? 1 : t.type_lanes,
                                .shape = shape,
                                .strides = strides };
  *managed = &made->dlpack;
  return RILL_OK;
}

/* ---- import ---- */

rill_status rill_dlpack_import(rill_device device, const void *managed, rill_tensor *tensor) {
  RILL_ENTER();
  rill_tensor t = RILL_TENSOR_INIT;
  if (tensor != NULL && tensor->struct_size >= sizeof(size_t)) rill__options_write(tensor, &t, sizeof t);
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__options_check_output(tensor, "tensor"));
  RILL_REQUIRE(managed != NULL, RILL_ERROR_INVALID_ARGUMENT, "managed is NULL");
  const rill_dlpack *const dlpack = managed;
  RILL_REQUIRE(dlpack->major == 1, RILL_ERROR_UNSUPPORTED,
               "the tensor has version %u.%u of DLPack; rill reads 1.x" RILL_HINT
               "a capsule named \"dltensor\" has no version: ask its producer for max_version=(1, 0)",
               dlpack->major, dlpack->minor);
  const struct rill__dlpack *const names = &d->backend->dlpack;
  const int32_t type = dlpack->device_type;
  RILL_REQUIRE(type == names->device ? dlpack->device_id == d->info.ordinal
                                     : type == names->pinned || type == names->managed,
               RILL_ERROR_WRONG_DEVICE,
               "the tensor is in memory of device %d of DLPack's type %d, which %s (device %d of type %d) cannot use",
               dlpack->device_id, type, d->name, d->info.ordinal, names->device);
  RILL_REQUIRE(dlpack->dimensions >= 0, RILL_ERROR_INVALID_ARGUMENT, "tensor: dimensions is %d, which is negative",
               dlpack->dimensions);
  t.data = (char *)dlpack->data + dlpack->byte_offset;
  t.type_code = dlpack->type_code;
  t.type_bits = dlpack->type_bits;
  t.type_lanes = dlpack->type_lanes;
  t.dimensions = (uint32_t)dlpack->dimensions;
  t.shape = dlpack->shape;
  t.strides = dlpack->strides;
  t.read_only = (dlpack->flags & DL_READ_ONLY) != 0;
  size_t below, above;
  RILL_TRY(check_tensor(&t, &below, &above));
  rill__options_write(tensor, &t, sizeof t);
  return RILL_OK;
}
