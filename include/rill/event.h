/* rill/event.h: points in the work of streams.
 *
 * An event marks the work submitted to a stream up to a call of rill_stream_record_event. Other streams can wait for
 * the event without blocking the host, the host can query it or wait for it, and two timing events measure a time
 * span on the device.
 *
 *     rill_event start, end;
 *     rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &start);    // and end
 *     rill_stream_record_event(stream, start, 0);
 *     ... work ...
 *     rill_stream_record_event(stream, end, 0);
 *     rill_event_synchronize(end);
 *     float ms;
 *     rill_event_elapsed_time(start, end, &ms);
 *
 * Pitfall: an event that was never recorded is ready. Use rill_event_is_recorded to distinguish it from a complete
 * event.
 *
 * If an event was recorded on a held stream (rill_stream_wait_event) and the held work failed, every query of the
 * event and every wait for it returns the status of the failure until the event is recorded again.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_EVENT_H
#define RILL_EVENT_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Who destroys an imported native object: its owner, after the last reference to the handle is dropped, or rill,
 *  when the last reference is dropped. */
enum { RILL_IMPORT_BORROW = 0, RILL_IMPORT_ADOPT = 1 };

/** Options of rill_event_import and rill_stream_import. */
typedef struct rill_import_options {
  size_t struct_size;
  uint32_t ownership; /**< RILL_IMPORT_BORROW or RILL_IMPORT_ADOPT */
  const char *label;  /**< copied; may be NULL */
  /** For RILL_IMPORT_BORROW: called once by the call that drops the last reference, on that thread. May be NULL. */
  void (*release)(void *user, uintptr_t native);
  void *user;
} rill_import_options;
#define RILL_IMPORT_OPTIONS_INIT \
  { sizeof(rill_import_options), 0, NULL, NULL, NULL }
/** An options expression for C and C++: rill_stream_import(d, n, RILL_IMPORT_OPTIONS(.label = "theirs"), &s). */
#define RILL_IMPORT_OPTIONS(...) RILL_OPTIONS_(rill_import_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_import_options, RILL_OPTIONS_FIELD_(ownership) RILL_OPTIONS_FIELD_(label)
                                              RILL_OPTIONS_FIELD_(release) RILL_OPTIONS_FIELD_(user))

/** Options of rill_event_create. */
typedef struct rill_event_options {
  size_t struct_size;
  bool timing;        /**< enables rill_event_elapsed_time; makes each record slightly slower */
  bool blocking_sync; /**< host waits sleep instead of spinning */
  bool interprocess;  /**< can be exported to other processes; excludes timing */
  bool signaled;      /**< recorded and complete from the start; has no time until a stream records it */
  const char *label;  /**< copied; may be NULL */
} rill_event_options;
#define RILL_EVENT_OPTIONS_INIT \
  { sizeof(rill_event_options), false, false, false, false, NULL }
/** An options expression for C and C++: rill_event_create(d, RILL_EVENT_OPTIONS(.timing = true), &e). */
#define RILL_EVENT_OPTIONS(...) RILL_OPTIONS_(rill_event_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_event_options,
                     RILL_OPTIONS_FIELD_(timing) RILL_OPTIONS_FIELD_(blocking_sync) RILL_OPTIONS_FIELD_(interprocess)
                         RILL_OPTIONS_FIELD_(signaled) RILL_OPTIONS_FIELD_(label))

/** A function for rill_stream_host_call or rill_event_then. `status` is RILL_OK, or the status with which the
 * preceding work failed. */
typedef void (*rill_host_fn)(void *user, rill_status status);

/** Creates an event on a device. NULL selects the default options.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (interprocess with timing), UNSUPPORTED, OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuEventCreate, hipEventCreateWithFlags, max.driver.DeviceEvent. */
RILL_API RILL_NODISCARD rill_status rill_event_create(rill_device device, const rill_event_options *options,
                                                      rill_event *out);

/** Imports a native event (CUevent, cudaEvent_t, hipEvent_t) of the device. The event is treated as already recorded.
 *  rill_event_elapsed_time asks the driver whether the event has timing.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (a device without native events), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuda.core Event.from_handle. */
RILL_API RILL_NODISCARD rill_status rill_event_import(rill_device device, uintptr_t native,
                                                      const rill_import_options *options, rill_event *out);

/** Adds a reference. Has no effect on a stream's cached event.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    a copy of a Mojo DeviceEvent. */
RILL_API RILL_NODISCARD rill_status rill_event_retain(rill_event event);

/** Drops a reference; the last one destroys the event. Never blocks; waits for the event that were enqueued on
 *  streams remain valid. Has no effect on a null handle or a stream's cached event.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuEventDestroy, hipEventDestroy. */
RILL_API rill_status rill_event_release(rill_event event);

/** Returns the native event, or 0 on the CPU. From then on other code may record the event, so every query of its
 *  completion asks the driver.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_READY (the last record was on a held stream and used
 *           another native event; record the event again first).
 *  Like:    cuda.core Event.handle. */
RILL_API RILL_NODISCARD rill_status rill_event_native(rill_event event, uintptr_t *out);

/** Returns the event's device.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core Event.device. */
RILL_API RILL_NODISCARD rill_status rill_event_device(rill_event event, rill_device *out);

/** Returns whether the work that the event marks has completed, or true if the event was never recorded. Does not
 *  block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_RECORDED (last recorded in a capture),
 *           DEVICE_LOST, BACKEND, or the status with which the recorded work failed. An error is never reported as
 *           false.
 *  Like:    cuEventQuery, hipEventQuery, max.driver.DeviceEvent.is_ready. */
RILL_API RILL_NODISCARD rill_status rill_event_is_ready(rill_event event, bool *out);

/** Returns whether the event was ever recorded; true for imported and signaled events.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, or the status with which the recorded work failed.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_event_is_recorded(rill_event event, bool *out);

/** Blocks until the work that the event marks has completed. Returns immediately if the event was never recorded.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (called in a host call), NOT_RECORDED (last recorded in a
 *           capture), CHECK (RILL_CHECK=memory found a mistake), DEVICE_LOST, BACKEND, or the status with which the
 *           recorded work failed.
 *  Threads: any; blocks the calling thread only.
 *  Like:    cuEventSynchronize, hipEventSynchronize, max.driver.DeviceEvent.synchronize. */
RILL_API RILL_NODISCARD rill_status rill_event_synchronize(rill_event event);

/** Blocks like rill_event_synchronize, but for about `ns` nanoseconds at most. Never times out before `ns`
 *  nanoseconds have passed.
 *
 *  Errors:  those of rill_event_synchronize, TIMEOUT.
 *  Threads: any; blocks the calling thread only.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_event_synchronize_for(rill_event event, uint64_t ns);

/** Adds 1 to an eventfd (eventfd(2)) once, when the point that the event now marks is reached or has failed. It is
 *  meant for programs that wait with poll, epoll or a library such as libuv.
 *
 *  Takes effect immediately if the point is already complete or the event was never recorded. Recording or releasing
 *  the event later has no effect on the notification. One of rill's threads writes to the eventfd, so no device work is
 *  delayed (docs/guides/THREADS.md has the latency). Afterwards rill_event_is_ready tells whether the point was reached
 *  or failed.
 *
 *  `fd` must stay open until the notification. Nothing is added if its counter is at its maximum. A child created by
 *  fork receives no notifications for its parent's calls. Two kinds of event must not be recorded again before the
 *  notification: an event that other code may record (imported, or with a native handle that was returned), and an
 *  event that a graph records. Otherwise the notification is for the later record. The native event of an imported
 *  event must exist until the notification.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (fd is not open or not an eventfd), NOT_RECORDED (last
 *           recorded in a capture), OUT_OF_MEMORY, DEVICE_LOST. After a failure nothing is added.
 *  Like:    cuLaunchHostFunc, hipLaunchHostFunc, which delay the stream. */
RILL_API RILL_NODISCARD rill_status rill_event_notify_fd(rill_event event, int fd);

/** Calls `fn(user, status)` once on one of rill's threads, when the point that the event now marks is reached or has
 *  failed. `status` is RILL_OK, the status with which the recorded work failed, or DEVICE_LOST.
 *
 *  Takes effect like rill_event_notify_fd. The call itself never runs `fn`, even if the event is already complete.
 *  `fn` may call rill, including functions that block. All functions run one after another on one thread. A slow
 *  function delays later functions, but no eventfd notification and no work of a device. A function must not wait for
 *  another function. Functions for points of one stream are called in the order of the records. A process may exit
 *  before `fn` is called.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (fn is NULL), NOT_RECORDED (last recorded in a capture),
 *           OUT_OF_MEMORY, DEVICE_LOST.  After a failure `fn` is not called.
 *  Like:    cuStreamAddCallback, hipStreamAddCallback, which delay the stream. */
RILL_API RILL_NODISCARD rill_status rill_event_then(rill_event event, rill_host_fn fn, void *user);

/** Returns the device time from `start` to `end` in milliseconds, negative if `end` came first. Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, then in this order, each naming the event:
 *           TIMING_DISABLED, NOT_RECORDED (including an event that was only signaled), NOT_READY, WRONG_DEVICE; then
 *           DEVICE_LOST, BACKEND, or the status with which the recorded work failed.
 *  Like:    cuEventElapsedTime, hipEventElapsedTime, max.driver.DeviceEvent.elapsed_time. */
RILL_API RILL_NODISCARD rill_status rill_event_elapsed_time(rill_event start, rill_event end, float *ms);

/** Exports an event that was created with `interprocess`, so that another process can import it. From then on the
 *  event is treated as recorded, because the other process may record it at any time. Do not release the event before
 *  all importers have released their copies.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (created without interprocess, or imported), UNSUPPORTED
 *           (the CPU, with the reason), DEVICE_LOST, BACKEND.
 *  Like:    cuIpcGetEventHandle, hipIpcGetEventHandle. */
RILL_API RILL_NODISCARD rill_status rill_event_ipc_export(rill_event event, rill_ipc_handle *out);

/** Imports an event of another process on the same GPU. The event is treated as recorded. Each process may record it,
 *  wait for it and query it. Releasing the imported event does not affect the exporter's event.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (the bytes are damaged or not a handle, the handle is for memory, or
 *           this process exported it: use the event itself), WRONG_BACKEND, WRONG_DEVICE (each names the handle's
 *           device), NOT_FOUND (the exporter exited or released the event), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST,
 *           BACKEND.
 *  Like:    cuIpcOpenEventHandle, hipIpcOpenEventHandle. */
RILL_API RILL_NODISCARD rill_status rill_event_ipc_import(rill_device device, const rill_ipc_handle *handle,
                                                          rill_event *out);

RILL_EXTERN_C_END

#endif
