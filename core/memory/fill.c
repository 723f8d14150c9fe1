/* Fills in two dimensions. */
#include "core/memory/memory.h"

#include "core/device/life.h"
#include "core/held/held.h"
#include "core/sync/submit.h"

/* Checks the shape of a fill and returns its extent, from the first byte to the byte after the last. */
static rill_status fill_extent(const struct rill__fill_2d *fill, size_t *out) {
  size_t row = 0, rows = 0;
  RILL_REQUIRE(!__builtin_mul_overflow(fill->width, fill->pattern_size, &row), RILL_ERROR_OUT_OF_RANGE,
               "%zu patterns of %zu bytes overflow", fill->width, fill->pattern_size);
  RILL_REQUIRE(row <= fill->pitch, RILL_ERROR_INVALID_ARGUMENT,
               "dst: a row of %zu patterns of %zu bytes, %zu bytes, exceeds pitch %zu", fill->width, fill->pattern_size,
               row, fill->pitch);
  RILL_REQUIRE(fill->pitch % fill->pattern_size == 0, RILL_ERROR_INVALID_ARGUMENT,
               "dst: pitch %zu is not a multiple of the pattern's %zu bytes", fill->pitch, fill->pattern_size);
  const bool overflows = __builtin_mul_overflow(fill->pitch, fill->height - 1, &rows);
  RILL_REQUIRE(!__builtin_add_overflow(rows, row, out) && !overflows, RILL_ERROR_OUT_OF_RANGE,
               "dst: %zu rows of pitch %zu overflow", fill->height, fill->pitch);
  return RILL_OK;
}

rill_status rill__fill_submit(struct rill__stream *s, struct rill__fill_2d *fill) {
  const size_t pattern_size = fill->pattern_size;
  RILL_TRY(rill__memory_check_pattern(pattern_size));
  if (fill->width == 0 || fill->height == 0) return RILL_OK;
  RILL_REQUIRE(fill->dst != NULL && fill->pattern != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               fill->dst == NULL ? "dst" : "pattern");
  RILL_REQUIRE((uintptr_t)fill->dst % pattern_size == 0, RILL_ERROR_INVALID_ARGUMENT,
               "dst %p is not aligned to the pattern's %zu bytes", fill->dst, pattern_size);
  size_t size = 0;
  RILL_TRY(fill_extent(fill, &size));
  RILL_TRY(rill__memory_check(s, fill->dst, size, "dst", &fill->dst_kind));
  RILL_TRY(rill__check_usable(s->base.device));
  if (fill->pitch == fill->width * pattern_size) { /* there is no gap between the rows */
    fill->width *= fill->height;
    fill->height = 1;
  }
  RILL_DIVERT(s, rill__held_fill, fill);
  return rill__submit_fill(s, fill);
}

rill_status rill__fill_line(struct rill__stream *stream, void *dst, const void *pattern, size_t pattern_size,
                            size_t count) {
  RILL_TRY(rill__memory_check_pattern(pattern_size));
  struct rill__fill_2d fill = {
    .dst = dst,
    .pitch = SIZE_MAX - (pattern_size - 1),
    .width = count,
    .height = 1,
    .pattern = pattern,
    .pattern_size = pattern_size,
  };
  return rill__fill_submit(stream, &fill);
}
