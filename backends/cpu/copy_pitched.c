/* Two- and three-dimensional copies. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/pages.h"
#include "backends/cpu/schedule.h"

struct pitched {
  struct cpu_op op;
  struct rill__copy_3d copy;
  bool overlaps;
  bool reads_caller; /* the source is pageable memory, and the caller waits until it has been read */
  struct cpu_staged staged;
  void *room; /* buffer for an overlapping copy that cannot be done row by row; NULL otherwise */
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

/* Returns true if the rows of an overlapping copy can be copied one by one, in the order in which memmove copies
 * bytes. */
static bool is_regular(const struct rill__copy_3d *copy) {
  return copy->dst_pitch == copy->src_pitch && (copy->depth == 1 || copy->dst_slice_pitch == copy->src_slice_pitch);
}

/* Packs the source rows into `staged`, and makes that the source. */
static void copy_to_staging(struct rill__copy_3d *copy, void *staged) {
  struct rill__copy_3d into = *copy;
  into.dst = staged;
  into.dst_pitch = copy->width;
  into.dst_slice_pitch = copy->width * copy->height;
  rill__copy_rows(&into, 0, rows_of(copy));
  copy->src = staged;
  copy->src_pitch = into.dst_pitch;
  copy->src_slice_pitch = into.dst_slice_pitch;
}

/* Makes an overlapping copy like memmove: through `room`, or row by row starting at the safe end. */
static void move(const struct rill__copy_3d *request, void *room) {
  struct rill__copy_3d copy = *request;
  if (room != NULL) copy_to_staging(&copy, room);
  const bool forward = room != NULL || (uintptr_t)copy.dst <= (uintptr_t)copy.src;
  if (forward) rill__copy_rows(&copy, 0, rows_of(&copy));
  for (size_t i = forward ? 0 : rows_of(&copy); i > 0; i--) rill__copy_rows(&copy, i - 1, i);
}

static void copy_rows_of(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct rill__copy_3d *copy = &((const struct pitched *)op)->copy;
  const size_t rows = rows_of(copy), part = rows_of_part(copy);
  rill__copy_rows(copy, (size_t)first * part, (size_t)end * part < rows ? (size_t)end * part : rows);
}

static bool run_copy_rows(struct cpu_queue *queue, struct cpu_op *op) {
  const struct rill__copy_3d *copy = &((const struct pitched *)op)->copy;
  const size_t rows = rows_of(copy), part = rows_of_part(copy);
  if (((const struct pitched *)op)->reads_caller && !rill__cpu_queue_begin_reading(queue)) return true;
  if (((const struct pitched *)op)->overlaps) {
    move(copy, ((const struct pitched *)op)->room);
    return true;
  }
  if (rows * copy->width >= CPU_SHARE_BYTES)
    return rill__cpu_workers_share(queue, op, (rows + part - 1) / part, CPU_BY_PLACE, copy_rows_of);
  rill__copy_rows(copy, 0, rows);
  return true;
}

static size_t bytes_of(const struct rill__copy_3d *copy) { return rows_of(copy) * copy->width; }

static void end(struct cpu_op *op) {
  const struct pitched *pitched = (const struct pitched *)op;
  rill__cpu_unstage(&pitched->staged);
  if (pitched->room != NULL) rill__cpu_pages_free(pitched->room, bytes_of(&pitched->copy));
}

/* Submits a copy.  `what`: the operation except for its header.  Staged data holds the source rows packed. */
static rill_status submit_copy_rows(struct cpu_queue *queue, struct pitched *what, bool pageable, bool stages) {
  struct pitched *op = NULL;
  const rill_status status = rill__cpu_queue_begin(queue, sizeof *op, &op);
  if (status != RILL_OK) {
    end(&what->op);
    return status;
  }
  const size_t size = op->op.size;
  *op = *what;
  op->op = (struct cpu_op){ .run = run_copy_rows, .end = end, .size = size };
  /* Checked again, because other threads may have submitted work after the source was staged. */
  op->reads_caller = pageable && !(stages && cpu_queue_is_settled(queue));
  if (pageable && !op->reads_caller) {
    op->copy.src = what->staged.pages;
    op->copy.src_pitch = what->copy.width;
    op->copy.src_slice_pitch = what->copy.width * what->copy.height;
    op->overlaps = false;
  }
  if (what->copy.dst_kind == RILL_MEMORY_UNKNOWN) cpu_queue_unsettle(queue);
  const bool waits = op->reads_caller;
  const uint64_t number = rill__cpu_queue_commit(queue);
  if (waits) return rill__cpu_queue_wait_for_reading(queue, number);
  cpu_submitted(queue);
  return RILL_OK;
}

/* Copies rows and slices; works like `copy` in memory.c. */
rill_status rill__cpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *request) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const size_t size = bytes_of(request);
  const bool pageable = request->src_kind == RILL_MEMORY_UNKNOWN && !queue->collects;
  struct pitched what = { .copy = *request, .overlaps = overlaps(request) };
  if (what.overlaps && !is_regular(request)) {
    what.room = rill__cpu_pages_take(size);
    RILL_REQUIRE(what.room != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an overlapping copy of %zu bytes",
                 size);
  }
  if ((pageable || size <= CPU_DIRECT_BYTES) && rill__cpu_queue_take(queue)) {
    if (what.overlaps) move(request, what.room);
    else rill__copy_rows(request, 0, rows_of(request));
    rill__cpu_queue_cancel(queue);
    end(&what.op);
    return RILL_OK;
  }
  const bool stages = pageable && cpu_queue_is_settled(queue) && rill__cpu_stage(&what.staged, size, 0);
  if (pageable && !stages && rill__in_host_call) {
    end(&what.op);
    return rill__fail_in_host_call();
  }
  struct rill__copy_3d copy = *request;
  if (stages) copy_to_staging(&copy, what.staged.pages);
  return submit_copy_rows(queue, &what, pageable, stages);
}
