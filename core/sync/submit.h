/* Submitting work to the driver, and what is known about its completion. */
#ifndef RILL_CORE_SYNC_SUBMIT_H
#define RILL_CORE_SYNC_SUBMIT_H

#include "core/diagnose/record.h"

#include <rill/diagnose.h>

/* Returns true if submissions to the stream go to its queue or into a graph instead of the driver. */
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

/* Returns true if the stream is known to be idle without a query to the driver.  The completion cache covers work that
 * the driver had; held work comes after that. */
static inline bool rill__known_idle(struct rill__stream *stream) {
  return !rill__is_diverted(stream) && rill__completion_is_known(&rill__core(stream)->work) &&
         !atomic_load_explicit(&stream->foreign, memory_order_relaxed);
}

/* Returns true if no work was ever submitted to the stream. */
static inline bool rill__never_had_work(const struct rill__stream *stream) {
  return !rill__is_diverted(stream) && rill__completion_is_unused(&rill__core(stream)->work);
}

/* Returns true if the last record that the driver has of the event is known to be complete without a query to the
 * driver. */
static inline bool rill__known_complete(struct rill__event *event) {
  return rill__completion_is_known(&rill__core(event)->work) &&
         !atomic_load_explicit(&event->foreign, memory_order_relaxed);
}

/* Notes that the driver has reported the event's record as complete.  `query` and `where` were read before the query.
 */
static inline void rill__event_seen(struct rill__event *event, const struct rill__completion_query *query,
                                    const struct rill__recorded *where) {
  const bool same = rill__completion_remember(&rill__core(event)->work, query);
  if (same && !atomic_load_explicit(&event->foreign, memory_order_relaxed)) {
    rill__record_seen(event->base.device, where);
  }
}

/* Return a copy of one row and a fill of one row. */
static inline struct rill__copy_3d rill__line(void *dst, uint32_t dst_kind, const void *src, uint32_t src_kind,
                                              size_t n) {
  return (struct rill__copy_3d){
    .dst = dst, .src = src, .dst_kind = dst_kind, .src_kind = src_kind, .width = n, .height = 1, .depth = 1
  };
}
static inline struct rill__fill_2d rill__row(void *dst, uint32_t kind, const void *pattern, size_t pattern_size,
                                             size_t count) {
  return (struct rill__fill_2d){
    .dst = dst, .dst_kind = kind, .width = count, .height = 1, .pattern = pattern, .pattern_size = pattern_size
  };
}

/* ---- submitting to the driver: the only place where operations of streams are counted and observed ---- */

/* Submits rill's own work, which observers do not see: one call of a slot, counted before and after. */
#define RILL__SUBMIT_UNOBSERVED(status, stream, table, slot, ...)        \
  do {                                                                   \
    struct rill__thread *const submitter_ = rill__self;                  \
    (void)rill__submission_begin(&rill__core(stream)->work, submitter_); \
    (status) = RILL_DISPATCH((stream), table, slot, __VA_ARGS__);        \
    rill__submission_end(&rill__core(stream)->work, submitter_);         \
  } while (0)

/* Submits an operation that is described as observers see it.  The following functions call this one if there are
 * observers (core/diagnose/observe.h). */
rill_status rill__submit_observed(struct rill__stream *stream, struct rill__observed what);

static inline __attribute__((always_inline)) rill_status rill__submit_launch(struct rill__stream *stream,
                                                                             const struct rill__launch *launch) {
  if (rill__is_observed())
    return rill__submit_observed(stream, (struct rill__observed){ .kind = RILL__OBSERVED_LAUNCH, .launch = launch });
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_UNOBSERVED(stream, kernel, launch, stream, launch);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (RILL__LIKELY(status == RILL_OK)) rill__record_launch(self, stream, sequence, launch);
  return status;
}

/* Submit a copy of `n` bytes, and a copy of any shape. */
static inline rill_status rill__submit_line(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *src,
                                            uint32_t src_kind, size_t n) {
  if (rill__is_observed()) {
    return rill__submit_observed(
        stream,
        (struct rill__observed){ .kind = RILL__OBSERVED_COPY, .copy = rill__line(dst, dst_kind, src, src_kind, n) });
  }
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_UNOBSERVED(stream, memory, copy, stream, dst, dst_kind, src, src_kind, n);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (RILL__LIKELY(status == RILL_OK))
    rill__record(self, stream, RILL__OBSERVED_COPY, sequence, n, (uintptr_t)dst, (uintptr_t)src);
  return status;
}
rill_status rill__submit_copy(struct rill__stream *stream, const struct rill__copy_3d *copy);

/* Submit a fill of `count` patterns, and a fill of rows of patterns. */
static inline rill_status rill__submit_pattern(struct rill__stream *stream, void *dst, uint32_t kind,
                                               const void *pattern, size_t size, size_t count) {
  if (rill__is_observed()) {
    return rill__submit_observed(stream, (struct rill__observed){ .kind = RILL__OBSERVED_FILL,
                                                                  .fill = rill__row(dst, kind, pattern, size, count) });
  }
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_UNOBSERVED(stream, memory, fill, stream, dst, kind, pattern, size, count);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (RILL__LIKELY(status == RILL_OK))
    rill__record(self, stream, RILL__OBSERVED_FILL, sequence, size * count, (uintptr_t)dst, 0);
  return status;
}
rill_status rill__submit_fill(struct rill__stream *stream, const struct rill__fill_2d *fill);

static inline rill_status rill__submit_host_call(struct rill__stream *stream, rill_host_fn fn, void *user) {
  if (rill__is_observed()) {
    return rill__submit_observed(
        stream, (struct rill__observed){ .kind = RILL__OBSERVED_HOST_CALL, .host_call = { .fn = fn, .user = user } });
  }
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_UNOBSERVED(stream, stream, host_call, stream, fn, user);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (RILL__LIKELY(status == RILL_OK))
    rill__record(self, stream, RILL__OBSERVED_HOST_CALL, sequence, (uintptr_t)fn, (uintptr_t)user, 0);
  return status;
}

static inline rill_status rill__submit_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  if (rill__is_observed()) {
    return rill__submit_observed(stream,
                                 (struct rill__observed){ .kind = RILL__OBSERVED_WAIT, .event = { event, flags } });
  }
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_UNOBSERVED(stream, stream, wait, stream, event, flags);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (RILL__LIKELY(status == RILL_OK))
    rill__record(self, stream, RILL__OBSERVED_WAIT, sequence, event->base.id,
                 atomic_load_explicit(&rill__core(event)->recorded_on, memory_order_relaxed),
                 atomic_load_explicit(&rill__core(event)->recorded_at, memory_order_relaxed));
  return status;
}

/* Records an event for an observer; no observer sees this record. */
static inline rill_status rill__record_unobserved(struct rill__stream *stream, struct rill__event *event,
                                                  uint32_t flags) {
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(event)->work, self);
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_ABOUT(&event->base, stream, stream, record, stream, event, flags);
  (void)rill__submission_end(&rill__core(stream)->work, self);
  rill__submission_end(&rill__core(event)->work, self);
  return status;
}

/* Records an event on a stream that is not held, or whose queue is being submitted. */
static inline rill_status rill__record_in_driver(struct rill__stream *stream, struct rill__event *event,
                                                 uint32_t flags) {
  if (rill__is_observed()) {
    return rill__submit_observed(stream,
                                 (struct rill__observed){ .kind = RILL__OBSERVED_RECORD, .event = { event, flags } });
  }
  struct rill__thread *const self = rill__self;
  rill__submission_begin(&rill__core(event)->work, self);
  rill__submission_begin(&rill__core(stream)->work, self);
  const rill_status status = RILL_DISPATCH_UNOBSERVED(stream, stream, record, stream, event, flags);
  const uint64_t sequence = rill__submission_end(&rill__core(stream)->work, self);
  if (RILL__LIKELY(status == RILL_OK)) {
    rill__record(self, stream, RILL__OBSERVED_RECORD, sequence, event->base.id, 0, 0);
    rill__event_note_record(event, stream, sequence);
  }
  rill__submission_end(&rill__core(event)->work, self);
  return status;
}

/* Records the work that other code is about to submit to the stream.  The note is numbered like an operation. */
void rill__record_note(struct rill__thread *self, struct rill__stream *stream, const rill_stream_note *note);

rill_status rill__submit_prefetch(struct rill__stream *stream, const void *p, size_t size);
rill_status rill__submit_graph(struct rill__stream *stream, struct rill__graph_exec *exec);
rill_status rill__submit_upload(struct rill__stream *stream, struct rill__graph_exec *exec);

/* Pass a copy or fill of one or several rows to the backend, as part of an operation that is being submitted. */
rill_status rill__copy_dispatch(struct rill__stream *stream, const struct rill__copy_3d *copy);
rill_status rill__fill_dispatch(struct rill__stream *stream, const struct rill__fill_2d *fill);

#endif
