/* What public functions begin with: handles to objects, and whether their device can still be used. */
#ifndef RILL_CORE_CALL_H
#define RILL_CORE_CALL_H

#include "core/backend.h"

/* Finds the object of a handle for a local pointer, or returns from the calling function.  The first object found
 * is the one that an error names. */
#define RILL_RESOLVE(kind, handle, argument, object)                                                  \
  do {                                                                                                \
    rill__announce(self, (handle).id);                                                                \
    *(object) = rill__find((handle).id, (kind));                                                      \
    if (RILL__UNLIKELY(*(object) == NULL)) return rill__fail_handle((handle).id, (kind), (argument)); \
    if (self->subject == NULL) self->subject = &(*(object))->base;                                    \
  } while (0)

static inline rill_status rill__check_usable(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK))
    return rill__fail_lost(device);
  return RILL_OK;
}

/* True if the stream is known to be idle without asking the driver.  What is remembered is of work that the driver had:
 * held work comes after that. */
static inline bool rill__known_idle(struct rill__stream *stream) {
  return !atomic_load_explicit(&stream->held, memory_order_acquire) && rill__completion_is_known(&stream->work) &&
         !atomic_load_explicit(&stream->foreign, memory_order_relaxed);
}

/* True if no work has been submitted to the stream. */
static inline bool rill__never_had_work(const struct rill__stream *stream) {
  return !atomic_load_explicit(&stream->held, memory_order_acquire) && rill__completion_is_unused(&stream->work);
}

/* True if the last record that the driver has of the event is known to be complete without asking the driver. */
static inline bool rill__known_complete(struct rill__event *event) {
  return rill__completion_is_known(&event->work) && !atomic_load_explicit(&event->foreign, memory_order_relaxed);
}

/* Work for a stream: one call into the backend, counted before and after it. */
#define RILL_SUBMIT(status, stream, table, slot, ...)         \
  do {                                                        \
    struct rill__thread *const submitter_ = rill__self;       \
    rill__submission_begin(&(stream)->work, submitter_);      \
    (status) = RILL_DOOR((stream), table, slot, __VA_ARGS__); \
    rill__submission_end(&(stream)->work, submitter_);        \
  } while (0)

/* Makes a device ready for its first real use; nothing if it is. */
rill_status rill__device_activate(struct rill__device *device);

/* Refuses objects of two backends, or of two devices. */
rill_status rill__check_same_backend(const struct rill__object *a, const struct rill__object *b);
rill_status rill__fail_other_device(const struct rill__object *a, const struct rill__object *b) __attribute__((cold));

static inline rill_status rill__check_same_device(const struct rill__object *a, const struct rill__object *b) {
  return RILL__LIKELY(a->device == b->device) ? RILL_OK : rill__fail_other_device(a, b);
}

/* Leaves the epoch for a call that may block, keeping `object` alive; rill__drop ends that. */
static inline void rill__keep_and_leave(struct rill__thread *self, struct rill__object *object) {
  rill__keep(object);
  rill__leave(&self);
}

/* Records and creations that several files need. */
/* Of a stream for an event that has been recorded. */
rill_status rill__stream_wait(struct rill__stream *stream, struct rill__event *event);
rill_status rill__stream_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
/* The driver call alone, of a stream that is not held or whose queue is run. */
rill_status rill__record_in_driver(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
rill_status rill__device_default_stream(struct rill__device *device, struct rill__stream **out);
rill_status rill__stream_create(struct rill__device *device, const rill_stream_options *options,
                                struct rill__stream **out);
void rill__stream_end(struct rill__stream *stream); /* its last reference has gone; leaves the epoch */
rill_status rill__stream_new(struct rill__device *device, const char *label, struct rill__stream **out); /* empty */
void rill__stream_list(struct rill__stream *stream); /* it may have work from here on */
/* Lets rill_stream_import find a stream of rill's own by its native handle; and ends that, when no call uses it. */
rill_status rill__native_list(struct rill__stream *stream, uintptr_t native);
void rill__native_unlist(struct rill__stream *stream);
rill_status rill__import_options_read(rill_import_options *into, const rill_import_options *from, bool special);
rill_status rill__event_new(struct rill__device *device, const char *label, struct rill__event **out); /* empty */
rill_status rill__event_create(struct rill__device *device, const rill_event_options *options,
                               struct rill__event **out);
rill_status rill__event_is_ready(struct rill__event *event, bool *out);

/* For who uses a stream without its handle: the owner of an imported stream may destroy the native one when the handle
 * is released, which waits for visitors.  A visit is as short as a call that does not block. */
static inline void rill__stream_visit(struct rill__stream *stream) {
  rill__keep(&stream->base);
  atomic_fetch_add(&stream->visitors, 1);
}
static inline void rill__stream_leave(struct rill__stream *stream) {
  atomic_fetch_sub(&stream->visitors, 1);
  rill__drop(&stream->base);
}

/* All streams of the device that may have work, each visited; NULL if memory ran out. */
struct rill__stream **rill__device_visit_streams(struct rill__device *device, size_t *count);

/* Makes it the first of the device's streams that is looked at. */
void rill__stream_to_front(struct rill__stream *stream);

/* Whether the device has no work: taking memory back then waits for nothing. */
bool rill__device_is_idle(struct rill__device *device);

/* The devices of the backend that are active and not lost: the next one after `after`, NULL for the first. */
struct rill__device *rill__next_active(const struct rill__device *like, const struct rill__device *after);
#define RILL__FOR_EACH_ACTIVE(like, device)                                             \
  for (struct rill__device *device = rill__next_active((like), NULL); (device) != NULL; \
       (device) = rill__next_active((like), (device)))

/* Of all devices of the backend that are active: whether they have no work, and waiting until the driver has no work of
 * theirs.  Outside epochs. */
bool rill__backend_is_idle(const struct rill__device *like);
rill_status rill__backend_synchronize(const struct rill__device *like);

/* Puts memory into the map of core/memory/ranges.h, and takes it out; false if host memory ran out. */
struct rill__allocation;
bool rill__memory_know(struct rill__allocation *allocation);
void rill__memory_forget(struct rill__allocation *allocation);
/* The map's entry of memory: core/memory_ipc.c shares it with core/memory.c.  `imports` are under the writers' lock:
 * takes the one that gave `p` out, NULL if there is none; puts one in, false if there is no host memory for that. */
struct rill__allocation;
struct rill__allocation *rill__import_take_out(struct rill__allocation *first, const void *p);
bool rill__import_put_in(struct rill__allocation *import);
void rill__allocation_destroy(struct rill__object *object);

/* What fork must not happen in the middle of, by file. */
void rill__memory_lock(void);
void rill__memory_unlock(void);
void rill__modules_lock(void);
void rill__modules_unlock(void);
void rill__globals_lock(void);
void rill__globals_unlock(void);

#endif
