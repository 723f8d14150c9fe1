/* Submitting work to the driver, and what is remembered of its completion. */
#ifndef RILL_CORE_SYNC_SUBMIT_H
#define RILL_CORE_SYNC_SUBMIT_H

#include "core/object/core.h"

/* Submissions to the stream go to its queue, or into a graph, instead of the driver. */
static inline bool rill__is_diverted(const struct rill__stream *stream) {
  return RILL__UNLIKELY(atomic_load_explicit(&rill__core(stream)->diverted, memory_order_acquire) != 0);
}
static inline bool rill__is_held(const struct rill__stream *stream) {
  return RILL__UNLIKELY((atomic_load_explicit(&rill__core(stream)->diverted, memory_order_acquire) & RILL__HELD) != 0);
}
static inline bool rill__is_captured(const struct rill__stream *stream) {
  return RILL__UNLIKELY((atomic_load_explicit(&rill__core(stream)->diverted, memory_order_acquire) & RILL__CAPTURED) !=
                        0);
}

/* True if the stream is known to be idle without asking the driver.  What is remembered is of work that the driver had:
 * held work comes after that. */
static inline bool rill__known_idle(struct rill__stream *stream) {
  return !rill__is_diverted(stream) && rill__completion_is_known(&rill__core(stream)->work) &&
         !atomic_load_explicit(&stream->foreign, memory_order_relaxed);
}

/* True if no work has been submitted to the stream. */
static inline bool rill__never_had_work(const struct rill__stream *stream) {
  return !rill__is_diverted(stream) && rill__completion_is_unused(&rill__core(stream)->work);
}

/* True if the last record that the driver has of the event is known to be complete without asking the driver. */
static inline bool rill__known_complete(struct rill__event *event) {
  return rill__completion_is_known(&rill__core(event)->work) &&
         !atomic_load_explicit(&event->foreign, memory_order_relaxed);
}

/* Work for a stream: one call into the backend, counted before and after it. */
#define RILL_SUBMIT(status, stream, table, slot, ...)              \
  do {                                                             \
    struct rill__thread *const submitter_ = rill__self;            \
    rill__submission_begin(&rill__core(stream)->work, submitter_); \
    (status) = RILL_DISPATCH((stream), table, slot, __VA_ARGS__);  \
    rill__submission_end(&rill__core(stream)->work, submitter_);   \
  } while (0)

/* A record of a stream that is not held, or whose queue is run. */
static inline rill_status rill__record_in_driver(struct rill__stream *stream, struct rill__event *event,
                                                 uint32_t flags) {
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(event)->work, self);
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH(stream, stream, record, stream, event, flags);
  rill__submission_end(&rill__core(stream)->work, self);
  rill__submission_end(&rill__core(event)->work, self);
  return status;
}

/* Hands a copy of one or several rows to the backend. */
static inline rill_status rill__submit_copy(struct rill__stream *stream, const struct rill__copy_3d *copy) {
  if (copy->height == 1 && copy->depth == 1) {
    return RILL_DISPATCH(stream, memory, copy, stream, copy->dst, copy->dst_kind, copy->src, copy->src_kind,
                         copy->width);
  }
  return RILL_DISPATCH(stream, memory, copy_3d, stream, copy);
}

/* The same for a fill. */
rill_status rill__fill_rows(struct rill__stream *stream, const struct rill__fill_2d *fill);

#endif
