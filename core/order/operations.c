/* Describes operations of streams to the engine: the memory that they access, and their other effects. */
#include "core/order/watch.h"
#include "core/pool/blocks.h"
#include "core/pool/pool.h"
#include "core/sync/submit.h"

#include <stdlib.h>
#include <string.h>

enum {
  ROWS_MAX = 4096, /* if a copy has more rows, everything from its first byte to its last counts as possibly accessed */
  RANGES_FEW = 16
};

/* The effects of one operation. */
struct noted {
  const struct rill__stream *stream;
  uint64_t timeline; /* number of the stream, or of one line of a graph */
  bool in_graph;
  uint32_t flags;
  struct rill__order_range *ranges;
  size_t count, room;
  struct rill__order_range few[RANGES_FEW];
};

/* ---- names and numbers ---- */

uint32_t rill__order_group_of(const struct rill__device *device) {
  return device->backend->id << 16 | ((uint32_t)device->info.ordinal & 0xffff);
}

uint64_t rill__order_number(void) {
  static uint64_t last; /* guarded by the lock */
  return UINT64_C(1) << 63 | ++last;
}

static void copy_label(char *to, size_t size, const char *from) {
  const size_t length = from != NULL ? strnlen(from, size - 1) : 0;
  if (length > 0) memcpy(to, from, length);
  to[length] = '\0';
}

struct rill__order_op *rill__order_op_of(const struct rill__stream *stream, const char *what, const char *name,
                                         size_t size) {
  struct rill__order_op *op = rill__order_op_new();
  if (op == NULL) return NULL;
  op->what = what;
  op->size = size;
  op->stream = stream != NULL ? stream->number : 0;
  if (stream != NULL) op->tag = UINT32_C(1) << stream->base.device->backend->id;
  copy_label(op->label, sizeof op->label, stream != NULL ? stream->base.label : NULL);
  copy_label(op->name, sizeof op->name, name);
  return op;
}

/* ---- memory ---- */

bool rill__order_is_shared(const struct rill__device *device) {
  const uint32_t vendors = atomic_load(&rill__shared_vendors);
  if (device == NULL) return vendors != 0 || atomic_load(&rill__is_shared);
  return device->backend->gpu && (atomic_load(&rill__is_shared) || (vendors >> device->backend->id & 1) != 0);
}

static bool is_used_by_others(const struct rill__stream *stream, const struct rill__allocation *allocation) {
  if (allocation != NULL && (allocation->imported || atomic_load(&allocation->exported))) return true;
  /* A program requests a blocking stream if other code uses the vendor's null stream, which orders such streams. */
  const bool blocking = stream->blocking && stream->base.device->backend->gpu;
  return blocking || atomic_load_explicit(&stream->foreign, memory_order_relaxed) ||
         rill__order_is_shared(stream->base.device);
}

static bool is_staging(const struct rill__allocation *allocation) {
  const struct rill__device *device = allocation->base.device;
  return allocation->pooled && ((const struct rill__segment *)allocation)->pool ==
                                   atomic_load_explicit(&rill__core(device)->staging_pool, memory_order_acquire);
}

bool rill__order_find(const struct rill__stream *stream, const void *p, size_t size, bool write,
                      struct rill__order_range *out) {
  const struct rill__allocation *const allocation = rill__ranges_find(p);
  *out = (struct rill__order_range){ .begin = (uintptr_t)p, .size = size, .write = write };
  if (size == 0 || out->begin > UINTPTR_MAX - size) return false;
  out->vague = is_used_by_others(stream, allocation);
  if (allocation == NULL) {
    /* A driver may itself have waited for work on pageable memory. */
    out->vague |= stream->base.device->backend->gpu;
    return true;
  }
  if (is_staging(allocation)) return false;
  uintptr_t begin = 0;
  size_t complete = 0;
  out->freed = allocation->pooled && !rill__pool_find(allocation, p, &begin, &complete);
  return true;
}

static struct rill__order_range *note_range(struct noted *noted, const struct rill__order_range *range) {
  if (noted->count == noted->room) {
    const size_t room = 2 * noted->room;
    struct rill__order_range *larger = malloc(room * sizeof *larger);
    if (larger == NULL) return NULL;
    memcpy(larger, noted->ranges, noted->count * sizeof *larger);
    if (noted->ranges != noted->few) free(noted->ranges);
    noted->ranges = larger;
    noted->room = room;
  }
  noted->ranges[noted->count] = *range;
  return &noted->ranges[noted->count++];
}

/* The rows of a copy or fill.  `passing`: the rows are read before the call returns. */
struct rows {
  const void *p;
  uint32_t kind; /* of the memory, when the operation was made */
  size_t width, height, depth, pitch, slice_pitch;
  bool write, passing;
};

/* Returns true if a node of a graph uses memory that rill allocated when the node was added, and that no allocation
 * contains any more.  Pinned memory is left out, because the program may own it (rill_host_register). */
static bool has_been_freed(const struct noted *noted, const struct rows *rows, const void *p) {
  const bool allocated =
      rows->kind == RILL_MEMORY_DEVICE || rows->kind == RILL_MEMORY_MANAGED || rows->kind == RILL__MEMORY_PEER;
  return noted->in_graph && allocated && rill__ranges_find(p) == NULL;
}

static void note_bytes(struct noted *noted, const struct rows *rows, const void *p, size_t size, bool vague) {
  struct rill__order_range range;
  if (!rill__order_find(noted->stream, p, size, rows->write, &range)) return;
  if (has_been_freed(noted, rows, p)) {
    range.freed = true;
    range.vague = is_used_by_others(noted->stream, NULL); /* other code may have allocated the same addresses */
  }
  range.vague |= vague;
  range.passing = rows->passing;
  (void)note_range(noted, &range);
}

/* Returns true for a write as small as a flag, to memory that the host or a kernel may poll. */
static bool may_be_flag(const struct rows *rows) {
  if (!rows->write || rows->width * rows->height * rows->depth > sizeof(uint64_t)) return false;
  const struct rill__allocation *const allocation = rill__ranges_find(rows->p);
  return allocation != NULL && allocation->kind != RILL_MEMORY_DEVICE;
}

/* Joins rows without gaps into one row. */
static struct rows join_rows(struct rows rows) {
  if (rows.height > 1 && rows.pitch == rows.width) {
    rows.width *= rows.height;
    rows.height = 1;
  }
  if (rows.depth > 1 && rows.height == 1 && rows.slice_pitch == rows.width) {
    rows.width *= rows.depth;
    rows.depth = 1;
  }
  return rows;
}

static void note_rows(struct noted *noted, const struct rows *given) {
  const struct rows joined = join_rows(*given), *const rows = &joined;
  if (may_be_flag(rows)) noted->flags |= RILL__ORDER_PUBLISHES_EARLIER;
  if (rows->height > ROWS_MAX / rows->depth) {
    const size_t last = (rows->depth - 1) * rows->slice_pitch + (rows->height - 1) * rows->pitch;
    note_bytes(noted, rows, rows->p, last + rows->width, true);
    return;
  }
  for (size_t slice = 0; slice < rows->depth; slice++) {
    for (size_t row = 0; row < rows->height; row++) {
      note_bytes(noted, rows, (const char *)rows->p + slice * rows->slice_pitch + row * rows->pitch, rows->width,
                 false);
    }
  }
}

/* ---- kernels ---- */

/* Notes the allocation that contains an address.  An allocation that the host can also read may contain a flag. */
static void note_pointer(struct noted *noted, uintptr_t p, bool reads) {
  struct rill__allocation *const allocation = rill__ranges_find((const void *)p);
  if (allocation == NULL) return;
  uintptr_t begin = allocation->begin;
  size_t size = allocation->size;
  struct rill__order_range range = { .write = !reads, .vague = true };
  range.freed = allocation->pooled && !rill__pool_find(allocation, (const void *)p, &begin, &size);
  if (is_staging(allocation)) return;
  range.begin = range.freed ? p : begin;
  range.size = range.freed ? 1 : size;
  if (allocation->kind != RILL_MEMORY_DEVICE) noted->flags |= RILL__ORDER_POLLS | (reads ? 0 : RILL__ORDER_PUBLISHES);
  (void)note_range(noted, &range);
}

/* Returns true for numbers that may be addresses of memory that rill does not know. */
static bool may_be_unknown(const struct rill__device *device, uint64_t word) {
  const uint64_t least = UINT64_C(1) << 32, end = UINT64_C(1) << 48;
  if (device->backend->memory->may_be_address != NULL && !device->backend->memory->may_be_address(word)) return false;
  return word >= least && word < end;
}

static void note_argument(struct noted *noted, const void *value, size_t size, bool reads) {
  for (size_t at = 0; at + sizeof(uint64_t) <= size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, (const char *)value + at, sizeof word);
    if (rill__ranges_find((const void *)(uintptr_t)word) != NULL) {
      note_pointer(noted, (uintptr_t)word, reads);
    } else if (may_be_unknown(noted->stream->base.device, word)) {
      noted->flags |= RILL__ORDER_POLLS | RILL__ORDER_PUBLISHES;
    }
  }
}

static void note_launch(struct noted *noted, const struct rill__launch *launch) {
  const rill_bundle_kernel *const source = launch->kernel->source;
  if (source->arg_count == RILL__ARGS_UNKNOWN) {
    noted->flags |= RILL__ORDER_POLLS | RILL__ORDER_PUBLISHES;
    return;
  }
  for (uint32_t i = 0; i < source->arg_count; i++) {
    const rill_bundle_arg *const arg = &source->args[i];
    note_argument(noted, launch->args[i], arg->size, (arg->offset & RILL_BUNDLE_ARG_READS) != 0);
  }
}

/* ---- one operation ---- */

static void note_copy(struct noted *noted, const struct rill__copy_3d *copy) {
  struct rows rows = { .p = copy->src,
                       .kind = copy->src_kind,
                       .width = copy->width,
                       .height = copy->height,
                       .depth = copy->depth,
                       .pitch = copy->src_pitch,
                       .slice_pitch = copy->src_slice_pitch,
                       .passing = copy->src_kind == RILL_MEMORY_UNKNOWN && !noted->in_graph };
  note_rows(noted, &rows);
  rows.p = copy->dst;
  rows.kind = copy->dst_kind;
  rows.pitch = copy->dst_pitch;
  rows.slice_pitch = copy->dst_slice_pitch;
  rows.write = true;
  rows.passing = false;
  note_rows(noted, &rows);
}

static void note_fill(struct noted *noted, const struct rill__fill_2d *fill) {
  const struct rows rows = { .p = fill->dst,
                             .kind = fill->dst_kind,
                             .width = fill->width * fill->pattern_size,
                             .height = fill->height,
                             .depth = 1,
                             .pitch = fill->pitch,
                             .write = true };
  note_rows(noted, &rows);
}

/* Submits an operation to the journal.  If a held operation is submitted after its memory was freed, the free comes
 * after the operation, so freed ranges are left out. */
static void forward_to_engine(struct rill__journal *journal, struct noted *noted, struct rill__order_op *op, bool held,
                              uint64_t token) {
  size_t kept = 0;
  for (size_t i = 0; i < noted->count; i++) {
    if (!held || !noted->ranges[i].freed) noted->ranges[kept++] = noted->ranges[i];
  }
  if (op != NULL) {
    rill__journal_submit(journal, noted->timeline, op, RILL__TOUCH_USE, noted->flags, noted->ranges, kept, token);
    rill__order_op_unref(op);
  }
  if (noted->ranges != noted->few) free(noted->ranges);
}

static void begin_noted(struct noted *noted, const struct rill__stream *stream, uint64_t timeline, bool in_graph) {
  noted->stream = stream;
  noted->timeline = timeline;
  noted->in_graph = in_graph;
  noted->flags = 0;
  noted->ranges = noted->few;
  noted->count = 0;
  noted->room = RANGES_FEW;
}

/* ---- graphs ---- */

/* The lines into which the steps of a graph are divided.  A step continues the line of one of its predecessors, if no
 * other step continues that line yet, and waits for the other predecessors. The stream itself is the first line. */
struct lines {
  const struct rill__stream *stream;
  uint64_t *of;     /* the timeline of each step */
  bool *followed;   /* for each step */
  uint64_t event;   /* event of step 0; the event of step i is i more */
  uint64_t began;   /* an event that stands for the work before the launch */
  bool first_taken; /* the stream's own timeline is used */
  bool held;        /* the launch was held, so memory may have been freed after it */
};

static void submit_step(struct rill__journal *journal, const struct lines *lines, uint64_t timeline,
                        const struct rill__operation *operation) {
  const struct rill__stream *const stream = lines->stream;
  struct noted noted;
  struct rill__order_op *op = NULL;
  begin_noted(&noted, stream, timeline, true);
  switch (operation->kind) {
    case RILL_NODE_KERNEL:
      note_launch(&noted, &operation->launch);
      op = rill__order_op_of(stream, "kernel of a graph",
                             operation->label != NULL ? operation->label : operation->launch.kernel->name, 0);
      break;
    case RILL_NODE_COPY:
      note_copy(&noted, &operation->copy);
      op = rill__order_op_of(stream, "copy of a graph", operation->label,
                             operation->copy.width * operation->copy.height * operation->copy.depth);
      break;
    case RILL_NODE_FILL:
      note_fill(&noted, &operation->fill.rows);
      op = rill__order_op_of(stream, "fill of a graph", operation->label,
                             operation->fill.rows.width * operation->fill.rows.height *
                                 operation->fill.rows.pattern_size);
      break;
    case RILL_NODE_HOST_CALL: /* the engine is not notified of its start and end */
    case RILL_NODE_OTHER:
      noted.flags = RILL__ORDER_POLLS | RILL__ORDER_PUBLISHES;
      op = rill__order_op_of(stream, "host call of a graph", operation->label, 0);
      break;
    case RILL_NODE_EVENT_RECORD: rill__journal_record(journal, timeline, operation->event->base.id); return;
    case RILL_NODE_EVENT_WAIT: rill__journal_wait(journal, timeline, operation->event->base.id); return;
    default: return;
  }
  forward_to_engine(journal, &noted, op, lines->held, 0);
}

static uint64_t choose_line(struct rill__journal *journal, struct lines *lines, const struct rill__step *step) {
  for (uint32_t i = 0; i < step->after_count; i++) {
    const uint32_t before = step->after[i];
    if (lines->followed[before]) continue;
    lines->followed[before] = true;
    return lines->of[before];
  }
  if (!lines->first_taken) {
    lines->first_taken = true;
    return lines->stream->number;
  }
  const uint64_t timeline = rill__order_number();
  rill__journal_begin(journal, timeline, rill__order_group_of(lines->stream->base.device));
  rill__journal_wait(journal, timeline, lines->began);
  return timeline;
}

static void submit_steps(struct rill__journal *journal, struct lines *lines, const struct rill__graph_exec *exec) {
  const uint64_t own = lines->stream->number;
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__step *const step = &exec->steps[i];
    const uint64_t timeline = lines->of[i] = choose_line(journal, lines, step);
    for (uint32_t j = 0; j < step->after_count; j++) {
      if (lines->of[step->after[j]] != timeline) rill__journal_wait(journal, timeline, lines->event + step->after[j]);
    }
    submit_step(journal, lines, timeline, step->operation);
    rill__journal_record(journal, timeline, lines->event + i);
  }
  for (uint32_t i = 0; i < exec->count; i++) {
    if (!lines->followed[i] && lines->of[i] != own) {
      rill__journal_wait(journal, own, lines->event + i);
      rill__journal_end(journal, lines->of[i]);
    }
    rill__journal_forget_event(journal, lines->event + i);
  }
}

/* Submits the steps of a launch.  A launch comes after earlier launches of the same object, on any stream. */
static void submit_graph_launch(struct rill__journal *journal, const struct rill__stream *stream,
                                const struct rill__graph_exec *exec, bool held) {
  struct lines lines = { .stream = stream, .held = held };
  lines.of = calloc((size_t)exec->count + 1, sizeof *lines.of);
  lines.followed = calloc((size_t)exec->count + 1, sizeof *lines.followed);
  if (lines.of != NULL && lines.followed != NULL) {
    lines.began = rill__order_number();
    lines.event = rill__order_number();
    for (uint32_t i = 1; i < exec->count; i++) (void)rill__order_number();
    rill__journal_wait(journal, stream->number, exec->base.id);
    rill__journal_record(journal, stream->number, lines.began);
    submit_steps(journal, &lines, exec);
    rill__journal_forget_event(journal, lines.began);
    rill__journal_record(journal, stream->number, exec->base.id);
  }
  free(lines.of);
  free(lines.followed);
}

/* ---- operations ---- */

void rill__order_notify(struct rill__journal *journal, const struct rill__observed *what) {
  struct rill__stream *const stream = what->stream;
  struct rill__order_op *op = NULL;
  struct noted noted;
  rill__journal_begin(journal, stream->number, rill__order_group_of(stream->base.device));
  begin_noted(&noted, stream, stream->number, false);
  switch (what->kind) {
    case RILL__OBSERVED_LAUNCH:
      note_launch(&noted, what->launch);
      op = rill__order_op_of(stream, "kernel",
                             what->launch->label != NULL ? what->launch->label : what->launch->kernel->name, 0);
      break;
    case RILL__OBSERVED_COPY:
      note_copy(&noted, &what->copy);
      op = rill__order_op_of(stream, "copy", NULL, what->copy.width * what->copy.height * what->copy.depth);
      break;
    case RILL__OBSERVED_FILL:
      note_fill(&noted, &what->fill);
      op = rill__order_op_of(stream, "fill", NULL, what->fill.width * what->fill.height * what->fill.pattern_size);
      break;
    case RILL__OBSERVED_GRAPH: submit_graph_launch(journal, stream, what->exec, what->held); return;
    default: return;
  }
  forward_to_engine(journal, &noted, op, what->held, what->kind == RILL__OBSERVED_LAUNCH ? what->token : 0);
  const bool records =
      what->kind == RILL__OBSERVED_LAUNCH && what->launch->extras != NULL && what->launch->extras->event != NULL;
  if (records) rill__journal_record(journal, stream->number, what->launch->extras->event->base.id);
}
