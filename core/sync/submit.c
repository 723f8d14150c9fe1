/* Submitting work to the driver. */
#include "core/sync/submit.h"

rill_status rill__copy_dispatch(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  if (copy->height == 1 && copy->depth == 1) {
    return RILL_DISPATCH(stream, memory, copy, stream, copy->dst, copy->dst_kind, copy->src, copy->src_kind,
                         copy->width);
  }
  return RILL_DISPATCH(stream, memory, copy_3d, stream, copy);
}

rill_status rill__fill_dispatch(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  if (fill->height == 1) {
    return RILL_DISPATCH(stream, memory, fill, stream, fill->dst, fill->dst_kind, fill->pattern, fill->pattern_size,
                         fill->width);
  }
  return RILL_DISPATCH(stream, memory, fill_2d, stream, fill);
}

/* ---- rare submissions ---- */

/* Records an operation that has been numbered. */
static void record_observed(struct rill__thread *self, const struct rill__observed *what) {
  struct rill__stream *const stream = what->stream;
  uint64_t subject = 0, first = 0, second = 0;
  switch (what->kind) {
    case RILL__OBSERVED_LAUNCH: rill__record_launch(self, stream, what->sequence, what->launch); return;
    case RILL__OBSERVED_COPY:
      subject = what->copy.width * what->copy.height * what->copy.depth;
      first = (uintptr_t)what->copy.dst;
      second = (uintptr_t)what->copy.src;
      break;
    case RILL__OBSERVED_FILL:
      subject = what->fill.width * what->fill.height * what->fill.pattern_size;
      first = (uintptr_t)what->fill.dst;
      break;
    case RILL__OBSERVED_PREFETCH:
      subject = what->memory.size;
      first = (uintptr_t)what->memory.p;
      break;
    case RILL__OBSERVED_HOST_CALL:
      subject = (uintptr_t)what->host_call.fn;
      first = (uintptr_t)what->host_call.user;
      break;
    case RILL__OBSERVED_RECORD: subject = what->event.event->base.id; break;
    case RILL__OBSERVED_WAIT:
      subject = what->event.event->base.id;
      first = atomic_load_explicit(&rill__core(what->event.event)->recorded_on, memory_order_relaxed);
      second = atomic_load_explicit(&rill__core(what->event.event)->recorded_at, memory_order_relaxed);
      break;
    default: subject = what->exec->base.id; break;
  }
  rill__record(self, stream, what->kind, what->sequence, subject, first, second);
}

void rill__record_note(struct rill__thread *self, struct rill__stream *stream, const rill_stream_note *note) {
  rill__submission_begin(&rill__core(stream)->work, self);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  struct rill__recorder *const recorder = atomic_load_explicit(&self->recorder, memory_order_relaxed);
  if (recorder == NULL) return;
  const uint64_t written = atomic_load_explicit(&recorder->written, memory_order_relaxed);
  struct rill__entry *const entry = rill__entry_begin(recorder, written, stream, RILL__OBSERVED_NOTE, sequence,
                                                      (uintptr_t)rill__name_intern(note->name));
  atomic_store_explicit(&entry->words[0], note->number, memory_order_relaxed);
  atomic_store_explicit(&entry->words[1], note->bytes, memory_order_relaxed);
  atomic_store_explicit(&entry->words[2], (uint64_t)note->ranks << 32 | note->rank, memory_order_relaxed);
  rill__entry_label(entry, note->group != NULL ? note->group : "");
  rill__entry_end(recorder, written);
}

static rill_status dispatch_launch(struct rill__stream *stream, const struct rill__observed *what) {
  if (what->token == 0) return RILL_DISPATCH_LAUNCH(stream, what->launch);
  struct rill__launch launch = *what->launch;
  launch.token = what->token;
  return RILL_DISPATCH_LAUNCH(stream, &launch);
}

static rill_status dispatch_observed(struct rill__stream *stream, const struct rill__observed *what) {
  switch (what->kind) {
    case RILL__OBSERVED_LAUNCH: return dispatch_launch(stream, what);
    case RILL__OBSERVED_COPY: return rill__copy_dispatch(stream, &what->copy);
    case RILL__OBSERVED_FILL: return rill__fill_dispatch(stream, &what->fill);
    case RILL__OBSERVED_PREFETCH:
      return RILL_DISPATCH(stream, memory, prefetch, stream, what->memory.p, what->memory.size);
    case RILL__OBSERVED_HOST_CALL:
      if (what->host_call.through != NULL) {
        return RILL_DISPATCH(stream, stream, host_call, stream, what->host_call.through, what->host_call.through_user);
      }
      return RILL_DISPATCH(stream, stream, host_call, stream, what->host_call.fn, what->host_call.user);
    case RILL__OBSERVED_RECORD:
      return RILL_DISPATCH_ABOUT(&what->event.event->base, stream, stream, record, stream, what->event.event,
                                 what->event.flags);
    case RILL__OBSERVED_WAIT:
      return RILL_DISPATCH_ABOUT(&what->event.event->base, stream, stream, wait, stream, what->event.event,
                                 what->event.flags);
    case RILL__OBSERVED_GRAPH: return RILL_DISPATCH(stream, graph, launch, what->exec, stream);
    case RILL__OBSERVED_UPLOAD: return RILL_DISPATCH(stream, graph, upload, what->exec, stream);
    default:
      return rill__fail(RILL_ERROR_INTERNAL, "observed work of kind %d is not an operation of a stream",
                        (int)what->kind);
  }
}

/* Submits the operation, counts it and records it. */
static rill_status submit(struct rill__observed *what) {
  struct rill__thread *const self = rill__self;
  struct rill__stream *const stream = what->stream;
  struct rill__event *const recorded = what->kind == RILL__OBSERVED_RECORD ? what->event.event : NULL;
  if (recorded != NULL) rill__submission_begin(&rill__core(recorded)->work, self);
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = dispatch_observed(stream, what);
  what->sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (status == RILL_OK) record_observed(self, what);
  if (status == RILL_OK && recorded != NULL) rill__event_note_record(recorded, stream, what->sequence);
  if (recorded != NULL) rill__submission_end(&rill__core(recorded)->work, self);
  return status;
}

rill_status rill__submit_observed(struct rill__stream *stream, struct rill__observed what) {
  what.device = stream->base.device;
  what.stream = stream;
  what.held = rill__is_held(stream);
  if (!rill__is_observed()) return submit(&what);
  RILL_TRY(rill__observe_before(&what));
  return rill__observe_end(&what, submit(&what));
}

rill_status rill__submit_copy(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  if (copy->height == 1 && copy->depth == 1)
    return rill__submit_line(stream, copy->dst, copy->dst_kind, copy->src, copy->src_kind, copy->width);
  return rill__submit_observed(stream, (struct rill__observed){ .kind = RILL__OBSERVED_COPY, .copy = *copy });
}

rill_status rill__submit_fill(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  if (fill->height == 1)
    return rill__submit_pattern(stream, fill->dst, fill->dst_kind, fill->pattern, fill->pattern_size, fill->width);
  return rill__submit_observed(stream, (struct rill__observed){ .kind = RILL__OBSERVED_FILL, .fill = *fill });
}

rill_status rill__submit_prefetch(struct rill__stream *stream, const void *p, size_t size) {
  return rill__submit_observed(
      stream, (struct rill__observed){ .kind = RILL__OBSERVED_PREFETCH,
                                       .memory = { (void *)(uintptr_t)p, size, RILL_MEMORY_MANAGED } });
}

rill_status rill__submit_graph(struct rill__stream *stream, struct rill__graph_exec *exec) {
  return rill__submit_observed(stream, (struct rill__observed){ .kind = RILL__OBSERVED_GRAPH, .exec = exec });
}

rill_status rill__submit_upload(struct rill__stream *stream, struct rill__graph_exec *exec) {
  return rill__submit_observed(stream, (struct rill__observed){ .kind = RILL__OBSERVED_UPLOAD, .exec = exec });
}
