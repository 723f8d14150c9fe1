/* rill/stream.h: in-order queues of work.
 *
 * Work submitted to one stream runs in the order of submission; work on different streams overlaps where
 * the hardware can, and is ordered by events alone.
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
 * The thing people get wrong: a wait takes the point that the event marks when the wait is called.
 * Recording the event again later changes nothing for waits that were made before.
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

/** Priorities by intent.  They lie outside every native range, so that -1 stays a native number. */
#define RILL_PRIORITY_NORMAL INT32_C(0)
#define RILL_PRIORITY_HIGH INT32_C(0x40000001)
#define RILL_PRIORITY_LOW INT32_C(0x40000002)

/** What happens to a native priority outside the device's range. */
enum { RILL_PRIORITY_CLAMP = 0, RILL_PRIORITY_STRICT = 1 };

/** Flags of record and wait: one space. */
enum {
  RILL_WAIT_IF_RECORDED = 1,      /**< an event never recorded is ignored */
  RILL_WAIT_MUST_BE_RECORDED = 2, /**< an event never recorded is NOT_RECORDED */
  RILL_EVENT_EXTERNAL = 4         /**< in a capture: a node instead of an edge; elsewhere no effect */
};

typedef struct rill_stream_options {
  size_t struct_size;
  int32_t priority;         /**< RILL_PRIORITY_* or a native number; 0 is the default */
  uint32_t priority_policy; /**< RILL_PRIORITY_CLAMP or RILL_PRIORITY_STRICT */
  bool blocking;            /**< orders itself against the vendor's legacy null stream */
  const char *label;        /**< copied; may be NULL */
} rill_stream_options;
#define RILL_STREAM_OPTIONS_INIT \
  { sizeof(rill_stream_options), 0, 0, false, NULL }
/** Options in place, in C and C++: rill_stream_create(d, RILL_STREAM_OPTIONS(.label = "copy"), &s). */
#define RILL_STREAM_OPTIONS(...) RILL_OPTIONS_(rill_stream_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_stream_options, RILL_OPTIONS_FIELD_(priority) RILL_OPTIONS_FIELD_(priority_policy)
                                              RILL_OPTIONS_FIELD_(blocking) RILL_OPTIONS_FIELD_(label))

/** Creates a stream on a device; always a new one.  NULL options are all defaults.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, OUT_OF_RANGE (priority, when strict; the text names the
 *           range), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuStreamCreateWithPriority, hipStreamCreateWithPriority, max.driver.DeviceStream,
 *           warp.Stream. */
RILL_API RILL_NODISCARD rill_status rill_stream_create(rill_device device, const rill_stream_options *options,
                                                       rill_stream *out);

/** Wraps a native stream (CUstream, cudaStream_t, hipStream_t) of that device's primary context.
 *
 *  Native 0, 1 and 2 are the null stream, the legacy one and the per-thread one, resolved at each call.
 *  Importing a native stream that is already imported, or that rill_stream_native gave, gives the same handle,
 *  retained; its options must not ask for another ownership.  A borrowed stream must outlive the handle.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, WRONG_DEVICE, UNSUPPORTED (a context other than the primary
 *           one; a device whose streams have no native form), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuda.core Stream.from_handle, warp.Stream(cuda_stream=). */
RILL_API RILL_NODISCARD rill_status rill_stream_import(rill_device device, uintptr_t native,
                                                       const rill_import_options *options, rill_stream *out);

/** Returns whether an imported native stream is still the one that was imported.  The vendor's default streams and
 *  streams of rill's own always are.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE (the handle; or the native stream was destroyed and its value used again),
 *           UNSUPPORTED (the driver has no stream ids: RILL_FEATURE_STREAM_ID), DEVICE_LOST, BACKEND.
 *  Like:    cuStreamGetId, compared. */
RILL_API RILL_NODISCARD rill_status rill_stream_validate(rill_stream stream);

/** Adds a reference.  For a device's default stream: nothing.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    a copy of a Mojo DeviceStream. */
RILL_API RILL_NODISCARD rill_status rill_stream_retain(rill_stream stream);

/** Drops a reference; the last one ends the stream.  Never blocks; submitted work still completes.
 *  Zero, and a device's default stream: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuStreamDestroy, hipStreamDestroy, cuda.core Stream.close. */
RILL_API rill_status rill_stream_release(rill_stream stream);

/** Returns the native stream; 0 on the CPU.  Others may submit to it from then on, so the stream cannot be held any
 * more (rill_stream_wait_event), and the driver is asked about its completion each time.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_READY (the stream is held), OUT_OF_MEMORY.
 *  Like:    cuda.core Stream.handle. */
RILL_API RILL_NODISCARD rill_status rill_stream_native(rill_stream stream, uintptr_t *out);

/** Returns the native context of the stream; 0 where there is none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core Stream.context, cuStreamGetCtx. */
RILL_API RILL_NODISCARD rill_status rill_stream_context(rill_stream stream, uintptr_t *out);

/** Returns the stream's device.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    max.driver.DeviceStream.device, cuda.core Stream.device. */
RILL_API RILL_NODISCARD rill_status rill_stream_device(rill_stream stream, rill_device *out);

/** Returns the native priority that the stream runs with.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetPriority, warp.Stream.priority. */
RILL_API RILL_NODISCARD rill_status rill_stream_priority(rill_stream stream, int32_t *native);

/** Returns whether the stream orders itself against the vendor's legacy null stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetFlags, cuda.core Stream.is_nonblocking (negated). */
RILL_API RILL_NODISCARD rill_status rill_stream_is_blocking(rill_stream stream, bool *out);

/** Returns the label of the stream; "" if it has none.  Valid while a reference is held.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    nvtxNameCuStreamA, read back. */
RILL_API RILL_NODISCARD rill_status rill_stream_label(rill_stream stream, const char **out);

/** Returns a number that no other stream of this process has had: for an imported stream the driver's
 *  stream id, where it has one; otherwise a number of rill's own, since native streams are reused.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, BACKEND.
 *  Like:    cuStreamGetId. */
RILL_API RILL_NODISCARD rill_status rill_stream_id(rill_stream stream, uint64_t *out);

/** Marks the work submitted to `stream` so far with `event`; replaces the point that it marked before.
 *
 *  Returns at once.  Waits made earlier keep their point; later work on the stream does not delay the
 *  event.  Flags: RILL_EVENT_EXTERNAL or 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (unknown flags; a stream's cached event; a record on
 *           a held stream that could only be reached through itself: the text names the chain), WRONG_DEVICE,
 *           WRONG_BACKEND, CAPTURE_ACTIVE (the stream is capturing, and other streams are held for the event),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuEventRecord, hipEventRecord, warp.Stream.record_event. */
RILL_API RILL_NODISCARD rill_status rill_stream_record_event(rill_stream stream, rill_event event, uint32_t flags);

/** Creates an event and records it.  On failure there is no event.
 *
 *  Errors:  those of rill_event_create and rill_stream_record_event.
 *  Like:    max.driver.DeviceStream.record_event, cuda.core Stream.record. */
RILL_API RILL_NODISCARD rill_status rill_stream_record_new_event(rill_stream stream, const rill_event_options *options,
                                                                 rill_event *out);

/** Makes later work on `stream` wait until `event` has completed.
 *
 *  Returns at once; the device does the waiting.  The point awaited is the one that `event` marks now:
 *  recording it again later changes nothing.  The event may be of another device of the same backend,
 *  and may be released right after.
 *
 *  For an event that has never been recorded the stream is held: later work is checked and copied as usual,
 *  and goes to the device when the event has been recorded, in the call that records it.  RILL_WAIT_* asks for
 *  something else.  If the event is released without a record, held work fails with NOT_RECORDED: host calls
 *  get the status, the stream's next synchronize says so once, and the stream goes on.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, WRONG_BACKEND, NOT_RECORDED (asked for; or the stream
 *           is capturing, imported, or its native handle was given out, so that it cannot be held), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND; that of held work which failed before the event's last record.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuStreamWaitEvent, hipStreamWaitEvent, warp.Stream.wait_event. */
RILL_API RILL_NODISCARD rill_status rill_stream_wait_event(rill_stream stream, rill_event event, uint32_t flags);

/** Makes later work on `stream` wait for all work submitted to `other` before this call.
 *
 *  Returns at once.  Work submitted to `other` while the call runs may be included.  The same stream:
 *  nothing happens.  `other` may be released right after.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_BACKEND, DEVICE_LOST, BACKEND.
 *  Like:    max.driver.DeviceStream.wait_for, warp.Stream.wait_stream. */
RILL_API RILL_NODISCARD rill_status rill_stream_wait_stream(rill_stream stream, rill_stream other);

/** Makes later work on `stream` wait for all work submitted to the default stream of `device`.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_BACKEND, DEVICE_LOST, BACKEND.
 *  Like:    max.driver.DeviceStream.wait_for(device). */
RILL_API RILL_NODISCARD rill_status rill_stream_wait_device(rill_stream stream, rill_device device);

/** Returns the event that rill_stream_wait_stream records on this stream.  Borrowed: it lives as long as
 *  the stream, may be waited for and queried, and is not for others to record.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    warp.Stream.cached_event. */
RILL_API RILL_NODISCARD rill_status rill_stream_cached_event(rill_stream stream, rill_event *out);

/** Blocks until all work submitted to the stream before the call is done.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (called in a host call), DEVICE_LOST (the work faulted:
 *           reported here and from then on), CHECK (RILL_CHECK=memory found a mistake: the work is done), BACKEND;
 *           the status of held work that failed, once.
 *  Threads: any; blocks the calling thread only.
 *  Like:    cuStreamSynchronize, hipStreamSynchronize, max.driver.DeviceStream.synchronize. */
RILL_API RILL_NODISCARD rill_status rill_stream_synchronize(rill_stream stream);

/** Blocks as rill_stream_synchronize does, for `ns` nanoseconds at most, never less.
 *
 *  Errors:  those of rill_stream_synchronize, TIMEOUT (the stream goes on and stays usable; for a held stream the
 *           text names the event that holds it, and the chain that leads there).
 *  Threads: any; blocks the calling thread only.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_synchronize_for(rill_stream stream, uint64_t ns);

/** Returns whether all work submitted to the stream so far is done.  Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, DEVICE_LOST, BACKEND.
 *  Like:    cuStreamQuery, hipStreamQuery, warp.Stream.is_complete. */
RILL_API RILL_NODISCARD rill_status rill_stream_is_complete(rill_stream stream, bool *out);

/** Returns whether a capture involves the stream, captures that other code began included.  Does not block.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, DEVICE_LOST, BACKEND.
 *  Like:    cuStreamIsCapturing, hipStreamIsCapturing, warp.Stream.is_capturing. */
RILL_API RILL_NODISCARD rill_status rill_stream_is_capturing(rill_stream stream, bool *out);

/** Runs `fn(user, status)` on another thread, in stream order, exactly once.
 *
 *  After a fault fn gets the status (not on AMD GPUs, whose runtime does not report it); it cannot fail the stream.  fn
 * must not call rill nor wait for other work of the device: host calls of different streams may be run one after the
 * other.  Calls that block are refused there with INVALID_ARGUMENT.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (fn is NULL), OUT_OF_MEMORY, DEVICE_LOST (fn
 *           does not run), BACKEND.
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    cuLaunchHostFunc, cuStreamAddCallback, hipStreamAddCallback. */
RILL_API RILL_NODISCARD rill_status rill_stream_host_call(rill_stream stream, rill_host_fn fn, void *user);

/** Reports a failure of work that another library has put on the stream: the stream's next synchronize waits as usual,
 *  and then fails with `status` and `text`, once.  The stream goes on.  Of several failures the first is reported.
 *
 *  For libraries that enqueue through the native handle, or that hold the stream with an event of their own, and learn
 *  later that their work failed.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a status that is OK or none; NULL), OUT_OF_MEMORY.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_stream_fail(rill_stream stream, rill_status status, const char *text);

RILL_EXTERN_C_END

#endif
