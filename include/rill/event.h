/* rill/event.h: points in the work of streams.
 *
 * An event marks the work submitted to a stream up to a call of rill_stream_record_event.  Other streams
 * wait for it without the host, the host asks or waits for it, and the time between two of them is
 * measured on the device.
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
 * The thing people get wrong: an event that was never recorded is ready.  rill_event_is_recorded tells
 * the difference.
 *
 * An event that was recorded on a held stream (rill_stream_wait_event) whose work then failed is failed: each query
 * and wait returns that status until the event is recorded again.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_EVENT_H
#define RILL_EVENT_H

#include <rill/base.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Who ends an imported native object: its owner, after the last reference to the handle has gone; or rill,
 *  with that reference. */
enum { RILL_IMPORT_BORROW = 0, RILL_IMPORT_ADOPT = 1 };

typedef struct rill_import_options {
  size_t struct_size;
  uint32_t ownership; /**< RILL_IMPORT_BORROW or RILL_IMPORT_ADOPT */
  const char *label;  /**< copied; may be NULL */
  /** With RILL_IMPORT_BORROW: called once, on the thread that drops the last reference, inside that call.
   *  May be NULL. */
  void (*release)(void *user, uintptr_t native);
  void *user;
} rill_import_options;
#define RILL_IMPORT_OPTIONS_INIT \
  { sizeof(rill_import_options), 0, NULL, NULL, NULL }
/** Options in place, in C and C++: rill_stream_import(d, n, RILL_IMPORT_OPTIONS(.label = "theirs"), &s). */
#define RILL_IMPORT_OPTIONS(...) RILL_OPTIONS_(rill_import_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_import_options, RILL_OPTIONS_FIELD_(ownership) RILL_OPTIONS_FIELD_(label)
                                              RILL_OPTIONS_FIELD_(release) RILL_OPTIONS_FIELD_(user))

typedef struct rill_event_options {
  size_t struct_size;
  bool timing;        /**< rill_event_elapsed_time can be asked; costs a little at each record */
  bool blocking_sync; /**< host waits sleep instead of spinning */
  bool interprocess;  /**< can be exported to other processes; not with timing */
  bool signaled;      /**< counts as recorded and complete from the start, but has no time until it is recorded */
  const char *label;  /**< copied; may be NULL */
} rill_event_options;
#define RILL_EVENT_OPTIONS_INIT \
  { sizeof(rill_event_options), false, false, false, false, NULL }
/** Options in place, in C and C++: rill_event_create(d, RILL_EVENT_OPTIONS(.timing = true), &e). */
#define RILL_EVENT_OPTIONS(...) RILL_OPTIONS_(rill_event_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_event_options,
                     RILL_OPTIONS_FIELD_(timing) RILL_OPTIONS_FIELD_(blocking_sync) RILL_OPTIONS_FIELD_(interprocess)
                         RILL_OPTIONS_FIELD_(signaled) RILL_OPTIONS_FIELD_(label))

/** A function that rill calls: of a host call (rill_stream_host_call) or of rill_event_then.  `status` is RILL_OK, or
 * the fault of the work before it. */
typedef void (*rill_host_fn)(void *user, rill_status status);

/** Creates an event of a device.  NULL options are all defaults.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (interprocess with timing), UNSUPPORTED, OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuEventCreate, hipEventCreateWithFlags, max.driver.DeviceEvent. */
RILL_API RILL_NODISCARD rill_status rill_event_create(rill_device device, const rill_event_options *options,
                                                      rill_event *out);

/** Wraps a native event (CUevent, cudaEvent_t, hipEvent_t) of that device.  It counts as recorded, and as
 *  one with timing: whether it is, the driver is asked.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (a device whose events have no native form),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuda.core Event.from_handle. */
RILL_API RILL_NODISCARD rill_status rill_event_import(rill_device device, uintptr_t native,
                                                      const rill_import_options *options, rill_event *out);

/** Adds a reference.  For a stream's cached event: nothing.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    a copy of a Mojo DeviceEvent. */
RILL_API RILL_NODISCARD rill_status rill_event_retain(rill_event event);

/** Drops a reference; the last one ends the event.  Never blocks; waits that streams have made for it
 *  remain valid.  Zero, and a stream's cached event: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuEventDestroy, hipEventDestroy. */
RILL_API rill_status rill_event_release(rill_event event);

/** Returns the native event; 0 on the CPU.  Others may record it from then on, so the driver is asked about its
 *  completion each time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_READY (the event was last recorded on a held stream,
 *           which went to another native event: record it again first).
 *  Like:    cuda.core Event.handle. */
RILL_API RILL_NODISCARD rill_status rill_event_native(rill_event event, uintptr_t *out);

/** Returns the event's device.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core Event.device. */
RILL_API RILL_NODISCARD rill_status rill_event_device(rill_event event, rill_device *out);

/** Returns whether the work that the event marks is done; true if it was never recorded.  Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_RECORDED (last recorded in a capture),
 *           DEVICE_LOST, BACKEND; that of a failed record.  An error is never reported as false.
 *  Like:    cuEventQuery, hipEventQuery, max.driver.DeviceEvent.is_ready. */
RILL_API RILL_NODISCARD rill_status rill_event_is_ready(rill_event event, bool *out);

/** Returns whether the event has ever been recorded; imported and signaled events have.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT; that of a failed record.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_event_is_recorded(rill_event event, bool *out);

/** Blocks until the work that the event marks is done; returns at once if it was never recorded.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (called in a host call), NOT_RECORDED (last recorded in a
 *           capture), CHECK (RILL_CHECK=memory found a mistake), DEVICE_LOST, BACKEND; that of a failed record.
 *  Threads: any; blocks the calling thread only.
 *  Like:    cuEventSynchronize, hipEventSynchronize, max.driver.DeviceEvent.synchronize. */
RILL_API RILL_NODISCARD rill_status rill_event_synchronize(rill_event event);

/** Blocks as rill_event_synchronize does, for `ns` nanoseconds at most, never less.
 *
 *  Errors:  those of rill_event_synchronize, TIMEOUT.
 *  Threads: any; blocks the calling thread only.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_event_synchronize_for(rill_event event, uint64_t ns);

/** Adds 1 to an eventfd (eventfd(2)) when the point that the event now marks is reached or has failed, once for each
 *  call: for programs that wait with poll, epoll or a library such as libuv.
 *
 *  Takes effect at once if the point is complete already, and for an event that was never recorded.  Recording or
 *  releasing the event later changes nothing.  Delays no work of the device: a thread of rill does it (docs/guides/THREADS.md
 *  says how soon).  rill_event_is_ready then tells whether the point was reached or failed.
 *
 *  `fd` must stay open until then.  If its counter is as high as it can be, nothing is added.  The child of a fork gets
 *  no notifications for calls of its parent.  An event that other code may record (imported, or whose native handle was
 *  given out), and one that a graph records, must not be recorded again before the notification, or that is for the
 *  later record; the native event of an imported one must exist until then.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (fd is not open, or no eventfd), NOT_RECORDED (last recorded
 *           in a capture), OUT_OF_MEMORY, DEVICE_LOST.  After a failure nothing is added.
 *  Like:    cuLaunchHostFunc, hipLaunchHostFunc, which delay the stream. */
RILL_API RILL_NODISCARD rill_status rill_event_notify_fd(rill_event event, int fd);

/** Calls `fn(user, status)` on a thread of rill, once, when the point that the event now marks is reached (RILL_OK) or
 *  has failed.  `status` is that of the failed record, or DEVICE_LOST.
 *
 *  Takes effect as rill_event_notify_fd does, also for an event that is complete already: the call itself never runs
 *  `fn`.  `fn` may call rill, including functions that block.  Functions run one after another on one thread: one that
 *  takes long delays those after it, though no notification of an eventfd and no work of a device, and one must not
 * wait for another.  Points of one stream have their functions called in the order of their records.  A process that
 * ends may do so before `fn` is called.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (fn is NULL), NOT_RECORDED (last recorded in a capture),
 *           OUT_OF_MEMORY, DEVICE_LOST.  After a failure `fn` is not called.
 *  Like:    cuStreamAddCallback, hipStreamAddCallback, which delay the stream. */
RILL_API RILL_NODISCARD rill_status rill_event_then(rill_event event, rill_host_fn fn, void *user);

/** Returns the milliseconds on the device from `start` to `end`; negative if end came first.  Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, then in this order, each naming the event:
 *           TIMING_DISABLED, NOT_RECORDED (an event that is only signaled, too), NOT_READY, WRONG_DEVICE;
 *           DEVICE_LOST, BACKEND; that of a failed record.
 *  Like:    cuEventElapsedTime, hipEventElapsedTime, max.driver.DeviceEvent.elapsed_time. */
RILL_API RILL_NODISCARD rill_status rill_event_elapsed_time(rill_event start, rill_event end, float *ms);

/** Returns what another process needs to share the event, which was created with `interprocess`.  From then on it
 * counts as recorded: the other process may record it at any time.  Keep the event until the others have released
 * theirs.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (created without interprocess, or imported), UNSUPPORTED
 *           (the CPU, with the reason), DEVICE_LOST, BACKEND.
 *  Like:    cuIpcGetEventHandle, hipIpcGetEventHandle. */
RILL_API RILL_NODISCARD rill_status rill_event_ipc_export(rill_event event, rill_ipc_handle *out);

/** Opens the event of another process, of the same GPU.  It counts as recorded, and each process may record it, wait
 *  for it and query it.  Releasing it leaves the exporter's event alone.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT (bytes that are no handle or damaged, a handle of memory, one that this
 *           process itself exported: use the event), WRONG_BACKEND, WRONG_DEVICE (each naming the handle's),
 *           NOT_FOUND (the exporter has ended or released it), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuIpcOpenEventHandle, hipIpcOpenEventHandle. */
RILL_API RILL_NODISCARD rill_status rill_event_ipc_import(rill_device device, const rill_ipc_handle *handle,
                                                          rill_event *out);

RILL_EXTERN_C_END

#endif
