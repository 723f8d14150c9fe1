/* One- and two-dimensional fills. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/schedule.h"

#include <string.h>

/* A part is a group of short rows, or one of the `pieces` of a long row. */
struct fill {
  struct cpu_op op;
  char *dst;
  size_t pitch, row_bytes, rows;
  size_t rows_of_part, pieces;
  char pattern[16]; /* repeated to 16 bytes */
};

/* Fills bytes with the pattern, which starts at `dst`. */
static void fill_bytes(char *dst, size_t size, const char pattern[16]) {
  if (memcmp(pattern, pattern + 1, 15) == 0) { /* all bytes are equal */
    memset(dst, pattern[0], size);
    return;
  }
  for (; size >= 16; size -= 16, dst += 16) memcpy(dst, pattern, 16);
  memcpy(dst, pattern, size);
}

static void fill_rows(const struct fill *fill, size_t first, size_t end) {
  for (size_t row = first; row < end; row++) fill_bytes(fill->dst + row * fill->pitch, fill->row_bytes, fill->pattern);
}

static void fill_parts(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct fill *fill = (const struct fill *)op;
  for (size_t part = (size_t)first; part < end; part++) {
    if (fill->pieces == 1) {
      const size_t row = part * fill->rows_of_part, left = fill->rows - row;
      fill_rows(fill, row, row + (left < fill->rows_of_part ? left : fill->rows_of_part));
    } else {
      const size_t row = part / fill->pieces, from = part % fill->pieces * CPU_PART_BYTES,
                   left = fill->row_bytes - from;
      fill_bytes(fill->dst + row * fill->pitch + from, left < CPU_PART_BYTES ? left : CPU_PART_BYTES, fill->pattern);
    }
  }
}

static bool run_fill(struct cpu_queue *queue, struct cpu_op *op) {
  const struct fill *fill = (const struct fill *)op;
  if (fill->rows * fill->row_bytes >= CPU_SHARE_BYTES) {
    const size_t groups = (fill->rows + fill->rows_of_part - 1) / fill->rows_of_part;
    return rill__cpu_workers_share(queue, op, groups * fill->pieces, CPU_BY_PLACE, fill_parts);
  }
  fill_rows(fill, 0, fill->rows);
  return true;
}

rill_status rill__cpu_fill_2d(struct rill__stream *stream, const struct rill__fill_2d *wanted) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const size_t row_bytes = wanted->width * wanted->pattern_size;
  struct fill request = {
    .op = { .run = run_fill },
    .dst = wanted->dst,
    .pitch = wanted->pitch,
    .row_bytes = row_bytes,
    .rows = wanted->height,
    .rows_of_part = row_bytes < CPU_PART_BYTES ? CPU_PART_BYTES / row_bytes : 1,
    .pieces = (row_bytes + CPU_PART_BYTES - 1) / CPU_PART_BYTES,
  };
  for (size_t at = 0; at < sizeof request.pattern; at += wanted->pattern_size) {
    memcpy(request.pattern + at, wanted->pattern, wanted->pattern_size);
  }
  if (row_bytes * request.rows <= CPU_DIRECT_BYTES && rill__cpu_queue_take(queue)) {
    fill_rows(&request, 0, request.rows);
    rill__cpu_queue_cancel(queue);
    return RILL_OK;
  }
  struct fill *op = NULL;
  RILL_TRY(rill__cpu_queue_begin(queue, sizeof *op, &op));
  request.op.size = op->op.size;
  *op = request;
  if (wanted->dst_kind == RILL_MEMORY_UNKNOWN) cpu_queue_unsettle(queue);
  (void)rill__cpu_queue_commit(queue);
  cpu_submitted(queue);
  return RILL_OK;
}

rill_status rill__cpu_fill(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                           size_t pattern_size, size_t count) {
  const struct rill__fill_2d row = {
    .dst = dst, .dst_kind = dst_kind, .width = count, .height = 1, .pattern = pattern, .pattern_size = pattern_size
  };
  return rill__cpu_fill_2d(stream, &row);
}
