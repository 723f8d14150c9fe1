/* Copies of two and three dimensions. */
#include "core/device/life.h"
#include "core/held/held.h"
#include "core/object/options.h"
#include "core/pool/pool.h"
#include "core/pool/staging.h"

/* Checks one end and gives the bytes from its first to behind its last. */
static rill_status extent(const struct rill__copy_3d *copy, size_t pitch, size_t slice_pitch, const char *what,
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

/* The same bytes in fewer dimensions, where there is nothing between rows or slices: the drivers are faster then, and
 * have limits on pitches. */
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

static rill_status give(struct rill__stream *s, const struct rill__copy_3d *copy) {
  if (copy->height == 1 && copy->depth == 1) {
    return RILL_DOOR(s, memory, copy, s, copy->dst, copy->dst_kind, copy->src, copy->src_kind, copy->width);
  }
  return RILL_DOOR(s, memory, copy_3d, s, copy);
}

/* Checks and submits; `copy` has everything but the kinds. */
static rill_status submit(struct rill__thread *self, struct rill__stream *s, struct rill__copy_3d *copy) {
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0) return RILL_OK;
  RILL_REQUIRE(copy->dst != NULL && copy->src != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               copy->dst == NULL ? "dst" : "src");
  size_t dst_size = 0, src_size = 0;
  RILL_TRY(extent(copy, copy->dst_pitch, copy->dst_slice_pitch, "dst", &dst_size));
  RILL_TRY(extent(copy, copy->src_pitch, copy->src_slice_pitch, "src", &src_size));
  RILL_TRY(rill__memory_check(s, copy->dst, dst_size, "dst", &copy->dst_kind));
  RILL_TRY(rill__memory_check(s, copy->src, src_size, "src", &copy->src_kind));
  RILL_TRY(rill__check_usable(s->base.device));
  flatten(copy);
  if (rill__is_held(s)) {
    bool taken = false;
    RILL_TRY(rill__held_copy(s, copy, &taken));
    if (taken) return RILL_OK;
  }
  const bool may_block = copy->dst_kind == RILL_MEMORY_UNKNOWN || copy->src_kind == RILL_MEMORY_UNKNOWN;
  if (may_block) rill__keep_and_leave(self, &s->base);
  rill__submission_begin(&s->work, self);
  const rill_status status = give(s, copy);
  rill__submission_end(&s->work, self);
  if (may_block) rill__drop(&s->base);
  return status;
}

rill_status rill_copy_2d_async(rill_stream stream, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                               size_t width, size_t height) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  struct rill__copy_3d copy = {
    .dst = dst,
    .src = src,
    .width = width,
    .height = height,
    .depth = 1,
    .dst_pitch = dst_pitch,
    .src_pitch = src_pitch,
  };
  return submit(self, s, &copy);
}

rill_status rill_copy_3d_async(rill_stream stream, const rill_copy_3d *copy) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(copy != NULL, RILL_ERROR_INVALID_ARGUMENT, "copy is NULL");
  rill_copy_3d given = RILL_COPY_3D_INIT;
  RILL_TRY(rill__options_read(&given, sizeof given, copy, "copy"));
  struct rill__copy_3d asked = {
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
  return submit(self, s, &asked);
}
