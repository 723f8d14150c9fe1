/* What a check of order has to hear besides operations (core/diagnose/observe.h): what the host has learned, what is
 * ordered without the driver, and what ends.  Nobody listens, as a rule: then each costs one load and a branch. */
#ifndef RILL_CORE_DIAGNOSE_ORDER_NOTES_H
#define RILL_CORE_DIAGNOSE_ORDER_NOTES_H

#include "core/object/core.h"

struct rill__order_notes {
  /* The host has learned that all work of the stream, or the work before the event's record, is complete. */
  void (*seen_stream)(struct rill__stream *stream);
  void (*seen_event)(struct rill__event *event);
  /* All work of the device, or of all devices of its backend. */
  void (*seen_device)(struct rill__device *device, bool all);
  /* A wait for an event that is known to be complete, of which the driver hears nothing. */
  void (*ordered)(struct rill__stream *stream, struct rill__event *event);
  /* A free of the memory waits by itself for what the stream has been given so far. */
  void (*kept)(struct rill__stream *stream, uintptr_t begin, size_t size);
  /* The stream with this number, and the event or execution object with this handle, is no more.  Under any lock. */
  void (*stream_ended)(uint64_t number);
  void (*forget_event)(uint64_t id);
  /* rill__accessed. */
  void (*accessed)(uint64_t token, const struct rill__accessed *ranges, size_t count, bool complete);
};

/* Constant once it is set; NULL: nobody listens. */
extern const struct rill__order_notes *_Atomic rill__order_notes;

#define RILL__NOTE_ORDER(what, ...)                                                                                \
  do {                                                                                                             \
    const struct rill__order_notes *const notes_ = atomic_load_explicit(&rill__order_notes, memory_order_relaxed); \
    if (RILL__UNLIKELY(notes_ != NULL)) notes_->what(__VA_ARGS__);                                                 \
  } while (0)

#endif
