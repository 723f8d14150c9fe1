/* Giving work to the driver. */
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

rill_status rill__submit_copy(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  RILL__SUBMIT(stream, rill__copy_dispatch(stream, copy), .kind = RILL__OBSERVED_COPY, .copy = *copy);
}

rill_status rill__submit_fill(struct rill__stream *stream, const struct rill__fill_2d *fill) {
  RILL__SUBMIT(stream, rill__fill_dispatch(stream, fill), .kind = RILL__OBSERVED_FILL, .fill = *fill);
}

rill_status rill__submit_prefetch(struct rill__stream *stream, const void *p, size_t size) {
  RILL__SUBMIT(stream, RILL_DISPATCH(stream, memory, prefetch, stream, p, size), .kind = RILL__OBSERVED_PREFETCH,
               .memory = { (void *)(uintptr_t)p, size, RILL_MEMORY_MANAGED });
}

rill_status rill__submit_graph(struct rill__stream *stream, struct rill__graph_exec *exec) {
  RILL__SUBMIT(stream, RILL_DISPATCH(stream, graph, launch, exec, stream), .kind = RILL__OBSERVED_GRAPH, .exec = exec);
}

rill_status rill__submit_upload(struct rill__stream *stream, struct rill__graph_exec *exec) {
  RILL__SUBMIT(stream, RILL_DISPATCH(stream, graph, upload, exec, stream), .kind = RILL__OBSERVED_UPLOAD, .exec = exec);
}

/* ---- observed ---- */

static rill_status dispatch_observed(struct rill__stream *stream, const struct rill__observed *what) {
  switch (what->kind) {
    case RILL__OBSERVED_LAUNCH: return RILL_DISPATCH_LAUNCH(stream, what->launch);
    case RILL__OBSERVED_COPY: return rill__copy_dispatch(stream, &what->copy);
    case RILL__OBSERVED_FILL: return rill__fill_dispatch(stream, &what->fill);
    case RILL__OBSERVED_PREFETCH:
      return RILL_DISPATCH(stream, memory, prefetch, stream, what->memory.p, what->memory.size);
    case RILL__OBSERVED_HOST_CALL:
      return RILL_DISPATCH(stream, stream, host_call, stream, what->host_call.fn, what->host_call.user);
    case RILL__OBSERVED_RECORD:
      return RILL_DISPATCH(stream, stream, record, stream, what->event.event, what->event.flags);
    case RILL__OBSERVED_WAIT: return RILL_DISPATCH(stream, stream, wait, stream, what->event.event, what->event.flags);
    case RILL__OBSERVED_GRAPH: return RILL_DISPATCH(stream, graph, launch, what->exec, stream);
    case RILL__OBSERVED_UPLOAD: return RILL_DISPATCH(stream, graph, upload, what->exec, stream);
    default: return rill__fail(RILL_ERROR_INTERNAL, "observed work of kind %d is no stream's", (int)what->kind);
  }
}

rill_status rill__submit_observed(struct rill__stream *stream, struct rill__observed what) {
  struct rill__thread *const self = rill__self;
  struct rill__event *const recorded = what.kind == RILL__OBSERVED_RECORD ? what.event.event : NULL;
  what.device = stream->base.device;
  what.stream = stream;
  what.held = rill__is_held(stream);
  RILL_TRY(rill__observe_before(&what));
  if (recorded != NULL) (void)rill__submission_begin(&rill__core(recorded)->work, self);
  what.sequence = rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = dispatch_observed(stream, &what);
  rill__submission_end(&rill__core(stream)->work, self);
  if (recorded != NULL) rill__submission_end(&rill__core(recorded)->work, self);
  return rill__observe_after(&what, status);
}
