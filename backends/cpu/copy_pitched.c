/* Copies of two and three dimensions. */
#include "backends/cpu/cpu.h"

#include <stdlib.h>

struct pitched {
  struct cpu_op op;
  struct rill__copy_3d copy;
  bool overlaps;
  void *staged; /* a copy of the source to free, or room for one, or NULL */
};

static size_t rows_of(const struct rill__copy_3d *copy) { return copy->height * copy->depth; }

static size_t rows_of_part(const struct rill__copy_3d *copy) {
  return copy->width < CPU_PART_BYTES ? CPU_PART_BYTES / copy->width : 1;
}

static size_t extent(const struct rill__copy_3d *copy, size_t pitch, size_t slice_pitch) {
  return (copy->depth - 1) * slice_pitch + (copy->height - 1) * pitch + copy->width;
}

static bool overlaps(const struct rill__copy_3d *copy) {
  const uintptr_t dst = (uintptr_t)copy->dst, src = (uintptr_t)copy->src;
  return dst < src + extent(copy, copy->src_pitch, copy->src_slice_pitch) &&
         src < dst + extent(copy, copy->dst_pitch, copy->dst_slice_pitch);
}

/* Whether rows of an overlapping copy can go one by one, as memmove goes byte by byte. */
static bool is_regular(const struct rill__copy_3d *copy) {
  return copy->dst_pitch == copy->src_pitch && (copy->depth == 1 || copy->dst_slice_pitch == copy->src_slice_pitch);
}

/* Takes the source, without what lies between its rows. */
static void take(struct rill__copy_3d *copy, void *staged) {
  struct rill__copy_3d into = *copy;
  into.dst = staged;
  into.dst_pitch = copy->width;
  into.dst_slice_pitch = copy->width * copy->height;
  rill__copy_rows(&into, 0, rows_of(copy));
  copy->src = staged;
  copy->src_pitch = into.dst_pitch;
  copy->src_slice_pitch = into.dst_slice_pitch;
}

/* An overlapping copy as memmove would do it: through `room`, or row by row from the right end. */
static void move(const struct rill__copy_3d *asked, void *room) {
  struct rill__copy_3d copy = *asked;
  if (room != NULL) take(&copy, room);
  const bool forward = room != NULL || (uintptr_t)copy.dst <= (uintptr_t)copy.src;
  if (forward) rill__copy_rows(&copy, 0, rows_of(&copy));
  for (size_t i = forward ? 0 : rows_of(&copy); i > 0; i--) rill__copy_rows(&copy, i - 1, i);
}

static void copy_parts(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct rill__copy_3d *copy = &((const struct pitched *)op)->copy;
  const size_t rows = rows_of(copy), part = rows_of_part(copy);
  rill__copy_rows(copy, (size_t)first * part, (size_t)end * part < rows ? (size_t)end * part : rows);
}

static bool run(struct cpu_queue *queue, struct cpu_op *op) {
  const struct rill__copy_3d *copy = &((const struct pitched *)op)->copy;
  const size_t rows = rows_of(copy), part = rows_of_part(copy);
  if (((const struct pitched *)op)->overlaps) {
    move(copy, ((const struct pitched *)op)->staged);
    return true;
  }
  if (rows * copy->width >= CPU_SHARE_BYTES) return cpu_pool_share(queue, op, (rows + part - 1) / part, copy_parts);
  rill__copy_rows(copy, 0, rows);
  return true;
}

static void end(struct cpu_op *op) { free(((struct pitched *)op)->staged); }

/* As `copy` in memory.c.  A source that is taken at the call does not overlap any more. */
rill_status cpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *asked) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  struct rill__copy_3d copy = *asked;
  const size_t size = rows_of(asked) * asked->width;
  const bool pageable = asked->src_kind == RILL_MEMORY_UNKNOWN, inside = overlaps(asked);
  const bool irregular = inside && !is_regular(asked);
  void *staged = NULL;
  if (irregular) {
    staged = malloc(size);
    RILL_REQUIRE(staged != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an overlapping copy of %zu bytes", size);
  }
  if ((pageable || size <= CPU_DIRECT_BYTES) && cpu_queue_take(queue)) {
    if (inside) move(asked, staged);
    else rill__copy_rows(asked, 0, rows_of(asked));
    cpu_queue_give_back(queue);
    free(staged);
    return RILL_OK;
  }
  if (pageable && staged == NULL) staged = malloc(size);
  const bool taken = pageable && staged != NULL;
  if (taken) take(&copy, staged);
  struct pitched *op = NULL;
  const rill_status status = cpu_queue_begin(queue, sizeof *op, &op);
  if (status != RILL_OK) {
    free(staged);
    return status;
  }
  op->op.run = run;
  op->op.end = end;
  op->copy = copy;
  op->overlaps = inside && !taken;
  op->staged = staged;
  const uint64_t number = cpu_queue_commit(queue);
  if (pageable && !taken) (void)cpu_queue_wait(queue, number, RILL__FOREVER, true);
  return RILL_OK;
}
