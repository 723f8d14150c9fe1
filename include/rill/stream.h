/* rill/stream.h: in-order queues of work.
 *
 * Work submitted to one stream runs in the order of submission. Work on different streams can overlap; only events
 * order it.
 *
 *     rill_stream copy, compute;
 *     rill_event uploaded;
 *     ... create them ...
 *     rill_copy_async(copy, device_memory, host_memory, bytes);
 *     rill_stream_record_event(copy, uploaded, 0);
 *     rill_stream_wait_event(compute, uploaded, 0);      // the device waits, the host does not
 *     rill_stream_launch(compute, kernel, &launch, RILL_ARGS(n, device_memory));
 *     rill_stream_synchronize(compute);
 *
 * Pitfall: a wait uses the point that the event marks when the wait is called. Recording the event again later does
 * not affect earlier waits.
 *
 * Calls on one stream are ordered as they arrive.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_STREAM_H
#define RILL_STREAM_H

#include <rill/base.h>
#include <rill/event.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Portable priorities. They lie outside every native range, so a value such as -1 remains a native priority. */
#define RILL_PRIORITY_NORMAL INT32_C(0)
#define RILL_PRIORITY_HIGH INT32_C(0x40000001)
#define RILL_PRIORITY_LOW INT32_C(0x40000002)

/** A native priority outside the device's range is clamped or refused. */
enum { RILL_PRIORITY_CLAMP = 0, RILL_PRIORITY_STRICT = 1 };

/** Flags of records and waits. */
enum {
  RILL_WAIT_IF_RECORDED = 1,      /**< an event that was never recorded is ignored */
  RILL_WAIT_MUST_BE_RECORDED = 2, /**< an event that was never recorded is refused with NOT_RECORDED */
  RILL_EVENT_EXTERNAL = 4         /**< in a capture: adds a node instead of an edge; otherwise no effect */
};

/** Options of rill_stream_create. */
typedef struct rill_stream_options {
  size_t struct_size;
  int32_t priority;         /**< RILL_PRIORITY_* or a native number; 0 is the default */
  uint32_t priority_policy; /**< RILL_PRIORITY_CLAMP or RILL_PRIORITY_STRICT */
  bool blocking;            /**< the stream synchronizes with the vendor's legacy null stream */
  const char *label;        /**< copied; may be NULL */
} rill_stream_options;
#define RILL_STREAM_OPTIONS_INIT \
  { sizeof(rill_stream_options), 0, 0, false, NULL }
/** An options expression for C and C++: rill_stream_create(d, RILL_STREAM_OPTIONS(.label = "copy"), &s). */
#define RILL_STREAM_OPTIONS(...) RILL_OPTIONS_(rill_stream_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_stream_options, RILL_OPTIONS_FIELD_(priority) RILL_OPTIONS_FIELD_(priority_policy)
                                              RILL_OPTIONS_FIELD_(blocking) RILL_OPTIONS_FIELD_(label))

/** Creates a new stream on a device. NULL selects the default options.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE (a priority with RILL_PRIORITY_STRICT; the text names the
 *           range), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuStreamCreateWithPriority, hipStreamCreateWithPriority, max.driver.DeviceStream,
 *           warp.Stream. */
RILL_API RILL_NODISCARD rill_status rill_stream_create(rill_device device, const rill_stream_options *options,
                                                       rill_stream *out);

/** Imports a native stream (CUstream, cudaStream_t, hipStream_t) of the device's primary context.
 *
 *  Native 0, 1 and 2 are the null stream, the legacy stream and the per-thread stream, resolved at each call.
 *  Importing a native stream again, or importing a native stream that rill_stream_native returned, returns the same
 *  handle and adds a reference; the options must not select another ownership. A borrowed native stream must outlive
 *  the handle.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, WRONG_DEVICE, UNSUPPORTED (a context other than the primary context; a
 *           device without native streams), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuda.core Stream.from_handle, warp.Stream(cuda_stream=). */
RILL_API RILL_NODISCARD rill_status rill_stream_import(rill_device device, uintptr_t native,
                                                       const rill_import_options *options, rill_stream *out);

/** Checks that an imported native stream still exists. Always succeeds for the vendor's default streams and for
 *  streams that rill created.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE (the handle is stale, or the native stream was destroyed and its value
 *           reused), UNSUPPORTED (the driver has no stream ids: RILL_FEATURE_STREAM_ID), DEVICE_LOST, BACKEND.
 *  Like:    a comparison of two results of cuStreamGetId. */
RILL_API RILL_NODISCARD rill_status rill_stream_validate(rill_stream stream);

/** Adds a reference. Has no effect on a default stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    a copy of a Mojo DeviceStream. */
RILL_API RILL_NODISCARD rill_status rill_stream_retain(rill_stream stream);

/** Drops a reference; the last one destroys the stream. Never blocks; submitted work still completes. Has no effect
 *  on a null handle or a default stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuStreamDestroy, hipStreamDestroy, cuda.core Stream.close. */
RILL_API rill_status rill_stream_release(rill_stream stream);

/** Returns the native stream, or 0 on the CPU. From then on other code may submit to the stream, so it can no longer
 *  be held (rill_stream_wait_event), and every query of its completion asks the driver.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_READY (the stream is held), CAPTURE_ACTIVE (the stream
 *           is capturing, and its native stream was not returned before the capture), OUT_OF_MEMORY.
 *  Like:    cuda.core Stream.handle. */
RILL_API RILL_NODISCARD rill_status rill_stream_native(rill_stream stream, uintptr_t *out);

/** Returns the native context of the stream, or 0 if there is none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core Stream.context, cuStreamGetCtx. */
RILL_API RILL_NODISCARD rill_status rill_stream_context(rill_stream stream, uintptr_t *out);

/** Returns the stream's device.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    max.driver.DeviceStream.device, cuda.core Stream.device. */
RILL_API RILL_NODISCARD rill_status rill_stream_device(rill_stream stream, rill_device *out);

/** Returns the native priority of the stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetPriority, warp.Stream.priority. */
RILL_API RILL_NODISCARD rill_status rill_stream_priority(rill_stream stream, int32_t *native);

/** Returns whether the stream synchronizes with the vendor's legacy null stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetFlags, cuda.core Stream.is_nonblocking (negated). */
RILL_API RILL_NODISCARD rill_status rill_stream_is_blocking(rill_stream stream, bool *out);

/** Returns the label of the stream, or "" if it has none. The string is valid while the caller holds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nvtxNameCuStreamA, which sets a name. */
RILL_API RILL_NODISCARD rill_status rill_stream_label(rill_stream stream, const char **out);

/** Returns a number that no other stream of this process has or had. For an imported stream this is the driver's
 *  stream id, if the driver has stream ids. Otherwise rill assigns the number, because drivers reuse native handles.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, BACKEND.
 *  Like:    cuStreamGetId. */
RILL_API RILL_NODISCARD rill_status rill_stream_id(rill_stream stream, uint64_t *out);

/** Records `event` on `stream`. The event then marks all work submitted to the stream so far, instead of the point that
 *  it marked before.
 *
 *  Returns immediately. Earlier waits keep their point. Later work on the stream does not delay the event. Flags:
 *  RILL_EVENT_EXTERNAL or 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (unknown flags; a stream's cached event; a record on a
 *           held stream that would wait for itself: the text names the cycle), WRONG_DEVICE,
 *           WRONG_BACKEND, CAPTURE_ACTIVE (the stream is capturing, and other streams are held for the event),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuEventRecord, hipEventRecord, warp.Stream.record_event. */
RILL_API RILL_NODISCARD rill_status rill_stream_record_event(rill_stream stream, rill_event event, uint32_t flags);

/** Creates an event and records it. On failure no event exists.
 *
 *  Errors:  those of rill_event_create and rill_stream_record_event.
 *  Like:    max.driver.DeviceStream.record_event, cuda.core Stream.record. */
RILL_API RILL_NODISCARD rill_status rill_stream_record_new_event(rill_stream stream, const rill_event_options *options,
                                                                 rill_event *out);

/** Makes later work on `stream` wait until `event` has completed.
 *
 *  Returns immediately; the device waits. The wait uses the point that `event` marks now; recording the event again
 *  later does not affect it. The event can belong to another device of the same backend, and can be released right
 *  after the call.
 *
 *  If the event was never recorded, the stream is held: later work is checked and its arguments are copied as usual,
 *  but the work is submitted to the device by the call that records the event. RILL_WAIT_* flags select another
 *  behaviour. If the event is released unrecorded, the held work fails with NOT_RECORDED: host calls receive the
 *  status, the stream's next synchronize returns it once, and the stream remains usable.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, WRONG_BACKEND, NOT_RECORDED (RILL_WAIT_MUST_BE_RECORDED;
 *           or the stream cannot be held because it is capturing, imported, or its native handle was returned),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND, or the status with which the work that the event marks failed while
 *           it was held.
 *  Like:    cuStreamWaitEvent, hipStreamWaitEvent, warp.Stream.wait_event. */
RILL_API RILL_NODISCARD rill_status rill_stream_wait_event(rill_stream stream, rill_event event, uint32_t flags);

/** Makes later work on `stream` wait for all work submitted to `other` before this call.
 *
 *  Returns immediately. Work submitted to `other` during the call may be included. Has no effect if both streams are
 *  the same. `other` can be released right after the call.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_BACKEND, DEVICE_LOST, BACKEND.
 *  Like:    max.driver.DeviceStream.wait_for, warp.Stream.wait_stream. */
RILL_API RILL_NODISCARD rill_status rill_stream_wait_stream(rill_stream stream, rill_stream other);

/** Makes later work on `stream` wait for all work submitted to the default stream of `device`.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_BACKEND, DEVICE_LOST, BACKEND.
 *  Like:    max.driver.DeviceStream.wait_for(device). */
RILL_API RILL_NODISCARD rill_status rill_stream_wait_device(rill_stream stream, rill_device device);

/** Returns the event that rill_stream_wait_stream records on this stream. The event belongs to the stream: callers
 *  can wait for it and query it, but cannot record or release it.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    warp.Stream.cached_event. */
RILL_API RILL_NODISCARD rill_status rill_stream_cached_event(rill_stream stream, rill_event *out);

/** Blocks until all work submitted to the stream before the call is done.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (called in a host call), DEVICE_LOST (the work faulted;
 *           every later call also reports it), CHECK (the work is done, but RILL_CHECK=memory found a mistake),
 *           BACKEND, or the status with which held work failed, which is returned only once.
 *  Threads: any; blocks the calling thread only.
 *  Like:    cuStreamSynchronize, hipStreamSynchronize, max.driver.DeviceStream.synchronize. */
RILL_API RILL_NODISCARD rill_status rill_stream_synchronize(rill_stream stream);

/** Blocks like rill_stream_synchronize, but for about `ns` nanoseconds at most. Never times out before `ns`
 *  nanoseconds have passed.
 *
 *  Errors:  those of rill_stream_synchronize, TIMEOUT (the stream remains usable; for a held stream the text names
 *           the event that holds it, and the chain of waits that leads to that event).
 *  Threads: any; blocks the calling thread only.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_synchronize_for(rill_stream stream, uint64_t ns);

/** Returns whether all work submitted to the stream so far has completed. Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, DEVICE_LOST, BACKEND.
 *  Like:    cuStreamQuery, hipStreamQuery, warp.Stream.is_complete. */
RILL_API RILL_NODISCARD rill_status rill_stream_is_complete(rill_stream stream, bool *out);

/** Returns whether the stream is part of a capture, including a capture that other code began. Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, DEVICE_LOST, BACKEND.
 *  Like:    cuStreamIsCapturing, hipStreamIsCapturing, warp.Stream.is_capturing. */
RILL_API RILL_NODISCARD rill_status rill_stream_is_capturing(rill_stream stream, bool *out);

/** Runs `fn(user, status)` on another thread, in stream order, exactly once.
 *
 *  After a fault `fn` receives the status of the fault (not on AMD GPUs, whose runtime does not report it). `fn`
 *  cannot make the stream fail. `fn` must not call rill or wait for other work of the device, because host calls of
 *  different streams may run one after another. Calls that block are refused inside `fn` with INVALID_ARGUMENT.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (fn is NULL), OUT_OF_MEMORY, DEVICE_LOST (fn
 *           does not run), BACKEND.
 *  Like:    cuLaunchHostFunc, cuStreamAddCallback, hipStreamAddCallback. */
RILL_API RILL_NODISCARD rill_status rill_stream_host_call(rill_stream stream, rill_host_fn fn, void *user);

/** Reports a failure of work that another library submitted to the stream. The stream's next synchronize waits as
 *  usual and then fails once with `status` and `text`. The stream remains usable. If several failures are reported,
 *  the synchronize returns the first.
 *
 *  It is meant for libraries that submit through the native handle or hold the stream with their own event, and learn
 *  later that their work failed.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (the status is OK or unknown; text is NULL),
 *           OUT_OF_MEMORY.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_fail(rill_stream stream, rill_status status, const char *text);

RILL_EXTERN_C_END

#endif
