/* Notes for a check of order, in addition to operations (core/diagnose/observe.h): completions that the host has
 * learned of, ordering without the driver, and destruction.  Usually there is no check, and each note costs one load
 * and a branch. */
#ifndef RILL_CORE_DIAGNOSE_ORDER_NOTES_H
#define RILL_CORE_DIAGNOSE_ORDER_NOTES_H

#include "core/object/core.h"

struct rill__order_notes {
  /* The host has learned that all work of the stream, or the work before the event's record, is complete. */
  void (*seen_stream)(struct rill__stream *stream);
  void (*seen_event)(struct rill__event *event);
  /* The host has learned that all work of the device, or of all devices of its backend, is complete. */
  void (*seen_device)(struct rill__device *device, bool all);
  /* The stream waits for an event that is known to be complete; the driver does not receive this wait. */
  void (*ordered)(struct rill__stream *stream, struct rill__event *event);
  /* A free of the memory will itself wait for everything submitted to the stream so far. */
  void (*kept)(struct rill__stream *stream, uintptr_t begin, size_t size);
  /* The stream with this number was destroyed, or the event or execution object with this handle.  Any lock may be
   * held. */
  void (*stream_ended)(uint64_t number);
  void (*forget_event)(uint64_t id);
  /* See rill__accessed. */
  void (*accessed)(uint64_t token, const struct rill__accessed *ranges, size_t count, bool complete);
};

/* Constant once it is set; NULL if there is no check. */
extern const struct rill__order_notes *_Atomic rill__order_notes;

#define RILL__NOTE_ORDER(what, ...)                                                                                \
  do {                                                                                                             \
    const struct rill__order_notes *const notes_ = atomic_load_explicit(&rill__order_notes, memory_order_relaxed); \
    if (RILL__UNLIKELY(notes_ != NULL)) notes_->what(__VA_ARGS__);                                                 \
  } while (0)

#endif
