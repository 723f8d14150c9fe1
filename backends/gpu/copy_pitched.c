/* Two- and three-dimensional copies. */
#include "backends/gpu/gpu.h"

#include <stdlib.h>

static void copy_rows_on_host(void *user, rill_status stream_status) {
  struct rill__copy_3d *copy = user;
  if (stream_status == RILL_OK) rill__copy_rows(copy, 0, copy->height * copy->depth);
  free(copy);
}

/* Lets the host copy between pinned memory, in stream order; the one-dimensional copy (memory.c) explains why.  `done`
 * is false in a capture. */
static rill_status try_host_copy_of_rows(struct rill__stream *stream, const struct rill__copy_3d *request, bool *done) {
  bool capturing = false;
  RILL_TRY(gpu_stream_table.is_capturing(stream, &capturing));
  *done = !capturing;
  if (capturing) return RILL_OK;
  struct rill__copy_3d *copy = malloc(sizeof *copy);
  RILL_REQUIRE(copy != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a copy between pinned memory");
  *copy = *request;
  const rill_status status = gpu_host_call(stream, copy_rows_on_host, copy);
  if (status != RILL_OK) free(copy);
  return status;
}

/* Copies with one vendor call. */
static rill_status copy_at_once(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result (*const call)(const struct rill__copy_3d *, gpu_stream_handle) =
      copy->depth == 1 ? gpu_vendor_copy_2d : gpu_vendor_copy_3d;
  gpu_result result = GPU_INVALID_CONTEXT;
  if (RILL__LIKELY(!part->work_inside)) result = call(copy, part->native);
  if (RILL__UNLIKELY(result == GPU_INVALID_CONTEXT)) { /* like GPU_RUN */
    struct gpu_scope scope;
    result = gpu_enter(device, &scope);
    if (result == GPU_SUCCESS) {
      result = call(copy, part->native);
      gpu_leave(&scope);
    }
  }
  if (RILL__LIKELY(result == GPU_SUCCESS)) return RILL_OK;
  return gpu_fail(device, result, copy->depth == 1 ? gpu_symbols.copy_2d : gpu_symbols.copy_3d);
}

static bool is_too_wide(const struct rill__device *device, size_t pitch) {
  const size_t most = ((const struct gpu_device *)rill__part(device))->max_pitch;
  return most != 0 && pitch > most;
}

/* Copies row by row, for pitches that exceed the vendor's limit.  Such pitches are gigabytes, so there are few rows. */
static rill_status copy_by_rows(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  for (size_t row = 0; row < copy->height; row++) {
    RILL_TRY(gpu_memory_table.copy(stream, (char *)copy->dst + row * copy->dst_pitch, copy->dst_kind,
                                   (const char *)copy->src + row * copy->src_pitch, copy->src_kind, copy->width));
  }
  return RILL_OK;
}

/* Copies slice by slice, for slice pitches that are not a multiple of the pitch, which the vendors cannot express. */
static rill_status copy_by_slices(struct rill__stream *stream, const struct rill__copy_3d *copy, bool by_rows) {
  struct rill__copy_3d slice = *copy;
  slice.depth = 1;
  for (size_t i = 0; i < copy->depth; i++) {
    slice.dst = (char *)copy->dst + i * copy->dst_slice_pitch;
    slice.src = (const char *)copy->src + i * copy->src_slice_pitch;
    RILL_TRY(by_rows ? copy_by_rows(stream, &slice) : copy_at_once(stream, &slice));
  }
  return RILL_OK;
}

/* Waits until a pageable source has been read.  In a capture the source is read when the graph runs. */
static rill_status wait_for_pageable(struct rill__stream *stream, const void *src) {
  bool capturing = false, known = false;
  RILL_TRY(gpu_stream_table.is_capturing(stream, &capturing));
  if (capturing) return RILL_OK;
  RILL_TRY(gpu_memory_table.is_known(stream->base.device, src, &known));
  return known ? RILL_OK : gpu_stream_table.synchronize(stream, RILL__FOREVER);
}

/* Copies rows and slices.  If several vendor calls are needed, the first one already fails for any invalid argument;
 * later calls can fail only if the device does. */
rill_status gpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  const struct rill__device *device = stream->base.device;
  if (RILL__UNLIKELY(copy->dst_kind == RILL_MEMORY_PINNED && copy->src_kind == RILL_MEMORY_PINNED)) {
    bool done = false;
    RILL_TRY(try_host_copy_of_rows(stream, copy, &done));
    if (done) return RILL_OK;
  }
  if (RILL__UNLIKELY(copy->src_kind == RILL_MEMORY_UNKNOWN && gpu_has_host_calls(gpu_stream_of(stream)))) {
    RILL_TRY(gpu_wait_for_host_calls(stream, copy->src));
  }
  const bool by_rows = is_too_wide(device, copy->dst_pitch) || is_too_wide(device, copy->src_pitch);
  const bool uneven =
      copy->depth > 1 && (copy->dst_slice_pitch % copy->dst_pitch != 0 || copy->src_slice_pitch % copy->src_pitch != 0);
  RILL_TRY(by_rows || uneven ? copy_by_slices(stream, copy, by_rows) : copy_at_once(stream, copy));
  if (!GPU_PITCHED_COPIES_READ_LATE || copy->src_kind != RILL_MEMORY_UNKNOWN) return RILL_OK;
  return wait_for_pageable(stream, copy->src);
}
