/* The points and operations of held queues: made, kept and freed. */
#include "core/held.h"

#include "core/held_queue.h"
#include "core/launch_extras.h"

#include <stdlib.h>
#include <string.h>

/* ---- points ---- */

void rill__point_use(struct rill__point *point) { point->users++; }

void rill__point_unuse(struct rill__point *point) {
  if (--point->users > 0) return;
  rill__object_retire(&point->mark->base);
  free(point);
}

rill_status rill__point_new(struct rill__device *device, struct rill__point **out) {
  struct rill__point *point = calloc(1, sizeof *point);
  RILL_REQUIRE(point != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a held record");
  const rill_status status = rill__event_create(device, NULL, &point->mark);
  if (status != RILL_OK) {
    free(point);
    return status;
  }
  point->users = 1;
  *out = point;
  return RILL_OK;
}

void rill__point_free(struct rill__point *point) {
  rill__held_lock();
  rill__point_unuse(point);
  rill__held_unlock();
}

/* ---- operations ---- */

void rill__held_op_free(struct held_op *op) {
  switch (op->kind) {
    case HELD_WAIT_EVENT: rill__drop(&op->event->base); break;
    case HELD_WAIT_POINT: rill__point_free(op->point); break;
    case HELD_RECORD:
      rill__drop(&op->record.event->base);
      rill__point_free(op->record.point);
      break;
    case HELD_LAUNCH:
      rill__constants_drop(op->launch.constants);
      rill__drop(&op->launch.shape.kernel->base);
      free((void *)(uintptr_t)op->launch.shape.label);
      free((void *)(uintptr_t)op->launch.shape.extras);
      break;
    case HELD_COPY:
      if (op->copy.staging != NULL) rill__staging_keep(op->copy.staging);
      break;
    case HELD_HOST_CALL:
    case HELD_FILL:
    case HELD_PREFETCH: break;
  }
  free(op);
}

rill_status rill__held_op_new(enum held_kind kind, size_t extra, struct held_op **out) {
  *out = extra > HELD_BYTES_MAX ? NULL : calloc(1, sizeof **out + extra);
  RILL_REQUIRE(*out != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu bytes of held work", extra);
  (*out)->kind = kind;
  (*out)->bytes = sizeof **out + extra;
  return RILL_OK;
}

/* Puts an operation at the end of a held stream's queue.  Under the lock. */
void rill__held_append(struct rill__held *held, struct held_op *op) {
  op->position = ++held->stream->held_pushed;
  op->serial = ++rill__held_serial;
  held->bytes += op->bytes;
  *held->last = op;
  held->last = &op->next;
}

bool rill__held_has_room(const struct rill__held *held, const struct held_op *op) {
  return op->bytes <= HELD_BYTES_MAX - held->bytes;
}

rill_status rill__held_fail_full(const struct rill__held *held, const struct held_op *op) {
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY,
                    "%s is held with %zu bytes queued; %zu more pass the limit of %d" RILL_HINT
                    "record the event that it "
                    "waits for",
                    rill__name_of(&held->stream->base).text, held->bytes, op->bytes, HELD_BYTES_MAX);
}

/* As rill__held_push, but an operation that is not taken stays the caller's. */
static rill_status push_or_keep(struct rill__stream *stream, struct held_op *op, bool *taken) {
  rill__held_lock();
  struct rill__held *held = atomic_load(&stream->held);
  *taken = held != NULL && rill__held_has_room(held, op);
  if (*taken) rill__held_append(held, op);
  rill__held_unlock();
  return *taken || held == NULL ? RILL_OK : rill__held_fail_full(held, op);
}

rill_status rill__held_push(struct rill__stream *stream, struct held_op *op, bool *taken) {
  const rill_status status = push_or_keep(stream, op, taken);
  if (!*taken) rill__held_op_free(op);
  return status;
}

rill_status rill__held_host_call(struct rill__stream *stream, rill_host_fn fn, void *user, bool *taken) {
  struct held_op *op = NULL;
  RILL_TRY(rill__held_op_new(HELD_HOST_CALL, 0, &op));
  op->host_call.fn = fn;
  op->host_call.user = user;
  return rill__held_push(stream, op, taken);
}

rill_status rill__held_fill(struct rill__stream *stream, const struct rill__fill_2d *fill, bool *taken) {
  struct held_op *op = NULL;
  RILL_TRY(rill__held_op_new(HELD_FILL, 0, &op));
  op->fill.rows = *fill;
  op->fill.rows.pattern = memcpy(op->fill.pattern, fill->pattern, fill->pattern_size);
  return rill__held_push(stream, op, taken);
}

/* What of a launch lies behind pointers, its arguments aside; false if memory ran out. */
static bool copy_strange_parts(struct held_op *op, const struct rill__launch *launch) {
  if (launch->label != NULL) {
    op->launch.shape.label = strdup(launch->label);
    if (op->launch.shape.label == NULL) return false;
  }
  if (launch->extras != NULL) {
    struct rill__launch_extras *extras = malloc(sizeof *extras);
    if (extras == NULL) return false;
    *extras = *launch->extras;
    op->launch.shape.extras = extras;
  }
  return true;
}

rill_status rill__held_launch(struct rill__stream *stream, const struct rill__launch *launch,
                              struct rill__constants **constants, bool *taken) {
  const rill_bundle_kernel *source = launch->kernel->source;
  size_t offset = source->arg_count * sizeof(void *);
  offset = (offset + 15) / 16 * 16;
  size_t end = offset;
  for (uint32_t i = 0; i < source->arg_count; i++) end += (source->args[i].size + 15) / 16 * 16;
  struct held_op *op = NULL;
  RILL_TRY(rill__held_op_new(HELD_LAUNCH, end + 16, &op));
  op->launch.shape = *launch;
  op->launch.shape.label = NULL;
  op->launch.shape.extras = NULL;
  op->launch.shape.args = op->values;
  rill__keep(&launch->kernel->base);
  char *bytes = (char *)(((uintptr_t)op->values + offset + 15) & ~(uintptr_t)15);
  for (uint32_t i = 0; i < source->arg_count; i++) {
    op->values[i] = bytes;
    memcpy(bytes, launch->args[i], source->args[i].size);
    bytes += (source->args[i].size + 15) / 16 * 16;
  }
  if (!copy_strange_parts(op, launch)) {
    rill__held_op_free(op);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a held launch");
  }
  if (constants == NULL) return rill__held_push(stream, op, taken);
  op->bytes += rill__constants_bytes(*constants);
  op->launch.constants = *constants;
  const rill_status status = push_or_keep(stream, op, taken);
  if (*taken) {
    *constants = NULL;
  } else {
    op->launch.constants = NULL; /* they stay the caller's */
    rill__held_op_free(op);
  }
  return status;
}
