/* Copies in two and three dimensions. */
#include "core/memory/memory.h"
#include "core/object/options.h"

#include "core/device/life.h"
#include "core/held/held.h"
#include "core/sync/submit.h"

/* Checks one end of a copy and returns its extent, from the first byte to the byte after the last. */
static rill_status copy_extent(const struct rill__copy_3d *copy, size_t pitch, size_t slice_pitch, const char *what,
                               size_t *out) {
  RILL_REQUIRE(copy->width <= pitch, RILL_ERROR_INVALID_ARGUMENT, "%s: width %zu exceeds pitch %zu", what, copy->width,
               pitch);
  size_t slices = 0, rows = 0, slice = 0;
  bool overflows = __builtin_mul_overflow(pitch, copy->height, &slice);
  if (copy->depth > 1) {
    RILL_REQUIRE(overflows || slice <= slice_pitch, RILL_ERROR_INVALID_ARGUMENT,
                 "%s: slice pitch %zu is less than %zu rows of pitch %zu", what, slice_pitch, copy->height, pitch);
    overflows |= __builtin_mul_overflow(slice_pitch, copy->depth - 1, &slices);
  }
  overflows |= __builtin_mul_overflow(pitch, copy->height - 1, &rows);
  overflows |= __builtin_add_overflow(slices, rows, out);
  overflows |= __builtin_add_overflow(*out, copy->width, out);
  RILL_REQUIRE(!overflows, RILL_ERROR_OUT_OF_RANGE, "%s: %zu rows of pitch %zu in %zu slices of pitch %zu overflow",
               what, copy->height, pitch, copy->depth, slice_pitch);
  return RILL_OK;
}

/* Reduces the number of dimensions where there are no gaps between rows or slices: drivers are faster then, and they
 * limit pitches. */
static void flatten(struct rill__copy_3d *copy) {
  if (copy->depth > 1 && copy->height == 1) { /* slices of one row are rows */
    copy->height = copy->depth;
    copy->depth = 1;
    copy->dst_pitch = copy->dst_slice_pitch;
    copy->src_pitch = copy->src_slice_pitch;
  }
  if (copy->depth > 1 && copy->dst_slice_pitch == copy->dst_pitch * copy->height &&
      copy->src_slice_pitch == copy->src_pitch * copy->height) {
    copy->height *= copy->depth;
    copy->depth = 1;
  }
  if (copy->height > 1 && copy->dst_pitch == copy->width && copy->src_pitch == copy->width) {
    copy->width *= copy->height;
    copy->height = 1;
    if (copy->depth > 1) {
      copy->height = copy->depth;
      copy->depth = 1;
      copy->dst_pitch = copy->dst_slice_pitch;
      copy->src_pitch = copy->src_slice_pitch;
    }
  }
}

void rill__copy_split(const struct rill__copy_3d *copy, void *memory, struct rill__copy_3d *to_memory,
                      struct rill__copy_3d *from_memory) {
  *to_memory = *from_memory = *copy;
  to_memory->dst = memory;
  to_memory->dst_kind = RILL_MEMORY_PINNED;
  to_memory->dst_pitch = copy->width;
  to_memory->dst_slice_pitch = copy->width * copy->height;
  from_memory->src = memory;
  from_memory->src_kind = RILL_MEMORY_PINNED;
  from_memory->src_pitch = to_memory->dst_pitch;
  from_memory->src_slice_pitch = to_memory->dst_slice_pitch;
}

rill_status rill__copy_submit(struct rill__thread *self, struct rill__stream *s, struct rill__copy_3d *copy) {
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return RILL_OK;
  RILL_REQUIRE(copy->dst != NULL && copy->src != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               copy->dst == NULL ? "dst" : "src");
  size_t dst_size = 0, src_size = 0;
  RILL_TRY(copy_extent(copy, copy->dst_pitch, copy->dst_slice_pitch, "dst", &dst_size));
  RILL_TRY(copy_extent(copy, copy->src_pitch, copy->src_slice_pitch, "src", &src_size));
  RILL_TRY(rill__memory_check(s, copy->dst, dst_size, "dst", &copy->dst_kind));
  RILL_TRY(rill__memory_check(s, copy->src, src_size, "src", &copy->src_kind));
  RILL_TRY(rill__check_usable(s->base.device));
  flatten(copy);
  RILL_DIVERT(s, rill__held_copy, copy);
  const bool may_block = copy->dst_kind == RILL_MEMORY_UNKNOWN || copy->src_kind == RILL_MEMORY_UNKNOWN;
  if (may_block) rill__ref_and_leave(self, &s->base);
  const rill_status status = rill__submit_copy(s, copy);
  if (may_block) rill__unref(&s->base);
  return status;
}

rill_status rill__copy_line(struct rill__thread *self, struct rill__stream *stream, void *dst, const void *src,
                            size_t n) {
  struct rill__copy_3d copy = {
    .dst = dst, .src = src, .width = n, .height = 1, .depth = 1, .dst_pitch = n, .src_pitch = n
  };
  return rill__copy_submit(self, stream, &copy);
}

rill_status rill__copy_3d_read(struct rill__copy_3d *out, const rill_copy_3d *copy) {
  rill_copy_3d given = RILL_COPY_3D_INIT;
  RILL_REQUIRE(copy != NULL, RILL_ERROR_INVALID_ARGUMENT, "copy is NULL");
  RILL_TRY(rill__options_read(&given, sizeof given, copy, "copy"));
  *out = (struct rill__copy_3d){
    .dst = given.dst,
    .src = given.src,
    .width = given.width,
    .height = given.height,
    .depth = given.depth,
    .dst_pitch = given.dst_pitch,
    .dst_slice_pitch = given.dst_slice_pitch,
    .src_pitch = given.src_pitch,
    .src_slice_pitch = given.src_slice_pitch,
  };
  return RILL_OK;
}
