/* The interface between core and a backend: with core/objects.h, everything that the author of a backend has to read.
 *
 * A backend is one `struct rill__backend`: a name, the sizes of its own parts of the objects, and one table of
 * functions for each kind of object.  Core allocates an object with the backend's part after it (reached with
 * rill__part), validates every call, and enters the backend only through RILL_DISPATCH.  Core has checked everything
 * that the comment of a slot states about the arguments.
 *
 * Rules for every slot
 * - It may be called on any thread and on several threads at once, even for the same object.
 * - It leaves the calling thread's native current device or context as it found it.
 * - It blocks only if its comment says so, and then it holds no lock.
 * - On failure it has enqueued nothing, and it returns what rill__fail, rill__fail_native or rill__device_lost
 *   returned.  A fault of work that was enqueued earlier is reported through rill__device_lost.
 * - A slot marked optional may be NULL, which means that the backend lacks the capability. */
#ifndef RILL_CORE_BACKEND_H
#define RILL_CORE_BACKEND_H

#include "core/objects.h"

/* ---- the tables ---- */

#define RILL__FOREVER UINT64_MAX

/* The reason why no device supports RILL_FEATURE_CONDITIONAL. */
#define RILL__NO_CONDITIONALS \
  "graphs have the same kinds of nodes on every device, and not every vendor has conditional nodes"

struct rill__device_table {
  /* Searches for devices, once in the process.  Returns their number.  If it is 0, `why` is a sentence that says what
   * was tried, perhaps followed by lines of details.  If there seem to be more devices than were counted, `why` says
   * so. */
  uint32_t (*count)(char *why, size_t why_size);
  /* Fills in device->info, except the clocks, for the device with the number info.ordinal.  Creates no context. */
  rill_status (*init)(struct rill__device *device);
  /* Returns both clocks in kHz, 0 if unknown.  Called only on request, because some drivers take tens of milliseconds.
   */
  void (*clocks)(struct rill__device *device, uint32_t *core, uint32_t *memory);
  /* Creates what the device needs before its first real use.  Called once before any slot of the other tables, and
   * again if it failed. */
  rill_status (*activate)(struct rill__device *device);
  /* Returns whether the device supports a RILL_FEATURE_*.  Sets `why` to a static sentence if it does not, and to "" if
   * it does. */
  bool (*supports)(struct rill__device *device, uint32_t feature, const char **why);
  /* Blocks until all work of the device is complete, including work on foreign streams. */
  rill_status (*synchronize)(struct rill__device *device);
  rill_status (*get_memory)(struct rill__device *device, uint64_t *free_bytes, uint64_t *total_bytes);
  /* Optional: without these two, no device can access another device's memory.  Both take two different devices of this
   * backend.  `can_access_peer` sets `why` as `supports` does. */
  bool (*can_access_peer)(struct rill__device *device, struct rill__device *memory_of, const char **why);
  /* Enables or disables access that can_access_peer reports as possible; succeeds if that is already the state.  Both
   * devices are active. */
  rill_status (*set_peer)(struct rill__device *device, struct rill__device *memory_of, bool on);
  /* Optional, both or neither: set and return the number of threads of this process that run the device's work.
   * `set_workers` accepts up to 1024; 0 means the default. */
  void (*set_workers)(struct rill__device *device, uint32_t count);
  uint32_t (*get_workers)(struct rill__device *device);
  /* Optional.  Returns the number of the device that a native stream belongs to; the stream is not 0, 1 or 2.  May be
   * called before any device has been activated. */
  rill_status (*of_native_stream)(uintptr_t native, uint32_t *ordinal);
};

struct rill__stream_table {
  /* Creates a native stream with stream->priority (which is in range) and stream->blocking. */
  rill_status (*create)(struct rill__stream *stream);
  /* Optional.  Imports stream->native, which must belong to this device and its primary context; any other is refused.
   * 0, 1 and 2 are the null, legacy and per-thread streams, to be resolved at each later call.  Reads back priority and
   * blocking. */
  rill_status (*import)(struct rill__stream *stream);
  /* Returns whether the work of a released stream is complete.  If it is not, core calls again later. */
  bool (*may_destroy)(struct rill__stream *stream);
  /* Destroys a stream that `create` or `import` made, and the native stream only if stream->owned.  Called after
   * `may_destroy` returned true, when no other thread can find the stream any more.  Returns false if it would block;
   * core then tries again later. */
  bool (*destroy)(struct rill__stream *stream);
  uintptr_t (*native)(struct rill__stream *stream);
  rill_status (*context)(struct rill__stream *stream, uintptr_t *out);
  /* Optional: returns the driver's number of the stream.  Without it, core uses its own number. */
  rill_status (*id)(struct rill__stream *stream, uint64_t *out);
  /* Optional, with `import`.  Returns whether an imported stream is still the one that was imported; the stream is not
   * 0, 1 or 2. */
  rill_status (*validate)(struct rill__stream *stream, bool *same);
  /* Records an event of the same device.  flags: RILL_EVENT_EXTERNAL or 0. */
  rill_status (*record)(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
  /* Waits for an event of the same backend that has been recorded.  flags: RILL_EVENT_EXTERNAL or 0. */
  rill_status (*wait)(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
  /* Blocks for at most `ns` (RILL__FOREVER: until the work is complete); returns RILL_ERROR_TIMEOUT, never early. */
  rill_status (*synchronize)(struct rill__stream *stream, uint64_t ns);
  rill_status (*is_complete)(struct rill__stream *stream, bool *out);
  rill_status (*is_capturing)(struct rill__stream *stream, bool *out);
  /* Submits a call of `fn`, which the backend makes through rill__call_host. */
  rill_status (*host_call)(struct rill__stream *stream, rill_host_fn fn, void *user);
};

/* A callback of core.  A backend that takes a waker calls `wake` once, on any thread, perhaps while it holds locks of
 * its own. */
struct rill__waker {
  void (*wake)(struct rill__waker *waker);
  _Alignas(8) unsigned char of_backend[96];
};

struct rill__event_table {
  /* Creates a native event with timing, blocking_sync and interprocess, or refuses with UNSUPPORTED. */
  rill_status (*create)(struct rill__event *event);
  /* Optional: imports event->native. */
  rill_status (*import)(struct rill__event *event);
  void (*destroy)(struct rill__event *event);
  /* Optional: resets an event, recorded or not, to the state in which `create` left it.  With this slot, released
   * events are reused. */
  void (*recycle)(struct rill__event *event);
  uintptr_t (*native)(struct rill__event *event);
  /* Returns whether the record is complete.  The event has been recorded. */
  rill_status (*is_ready)(struct rill__event *event, bool *out);
  /* Works like `synchronize` of streams. */
  rill_status (*synchronize)(struct rill__event *event, uint64_t ns);
  /* Optional, both or neither; without them core polls.
   *
   * `notify` takes an event that has been recorded.  It wakes the waker, perhaps during the call, when the record is
   * complete or the device is lost.  If one of these holds already, it returns false and does not wake the waker.
   *
   * `notified` frees what `notify` allocated.  It is called once after the waker has been woken.
   */
  bool (*notify)(struct rill__event *event, struct rill__waker *waker);
  void (*notified)(struct rill__event *event, struct rill__waker *waker);
  /* Returns the time between two events.  Both have timing, have been recorded and are complete; they belong to the
   * same device.  Returns NOT_READY if one was recorded again. */
  rill_status (*elapsed)(struct rill__event *start, struct rill__event *end, float *ms);
  /* With RILL_FEATURE_EVENT_IPC: shares the event with other processes.  The event was created with interprocess. */
  rill_status (*ipc_export)(struct rill__event *event, struct rill__ipc_native *out);
  /* Makes `event` refer to an event of another process, of the same device, until `destroy`.  The bytes may be
   * anything: returns NOT_FOUND if they refer to nothing. */
  rill_status (*ipc_import)(struct rill__event *event, const struct rill__ipc_native *from);
};

/* Kinds of memory as core knows them: the public RILL_MEMORY_*, and this one. */
enum { RILL__MEMORY_PEER = 0x100 }; /* DEVICE, but of a device other than the stream's, of the same backend */

struct rill__memory_table {
  /* Allocates `size` > 0 bytes at a multiple of 256.  Fails with OUT_OF_MEMORY without a text; core writes the text. */
  rill_status (*alloc)(struct rill__device *device, size_t size, uint32_t kind, void **out);
  /* Frees memory from `alloc` once the submitted work of the device is complete; may block for that. */
  rill_status (*free)(struct rill__device *device, void *p, uint32_t kind);
  /* Optional: frees memory from `alloc` that no work uses, without waiting for other work. */
  rill_status (*free_unused)(struct rill__device *device, void *p, uint32_t kind);
  /* Optional: host_register pins memory of other code, for all devices of the backend; host_unregister unpins it once
   * the submitted work of all of them is complete.  size > 0; no byte of the range is in an allocation or in another
   * registered range. */
  rill_status (*host_register)(struct rill__device *device, void *p, size_t size);
  rill_status (*host_unregister)(struct rill__device *device, void *p);
  /* Copies n > 0 bytes.  The kinds are what core knows about the pointers: DEVICE, PEER, PINNED (also registered
   * memory), MANAGED, or UNKNOWN if the memory is not rill's. */
  rill_status (*copy)(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *src, uint32_t src_kind,
                      size_t n);
  /* Makes a copy that cannot be reduced to fewer dimensions: height > 1; it has several slices if depth > 1. */
  rill_status (*copy_3d)(struct rill__stream *stream, const struct rill__copy_3d *copy);
  /* Optional, with managed memory.  `prefetch` submits work to the stream that moves `size` > 0 bytes inside a managed
   * allocation of this backend to the stream's device.  `advise` applies a RILL_ADVICE_* to such a range; `at` is a
   * device of the backend, or NULL for the host. */
  rill_status (*prefetch)(struct rill__stream *stream, const void *p, size_t size);
  /* optional: returns the UNSUPPORTED that `prefetch` would return */
  rill_status (*may_prefetch)(struct rill__device *device);
  rill_status (*advise)(struct rill__device *device, const void *p, size_t size, struct rill__device *at,
                        uint32_t advice);
  /* Fills `count` > 0 patterns.  pattern_size is 1, 2, 4, 8 or 16; dst is aligned to it; the product does not overflow.
   */
  rill_status (*fill)(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                      size_t pattern_size, size_t count);
  /* Fills rows that cannot be joined into one: height > 1, and there are bytes between them. */
  rill_status (*fill_2d)(struct rill__stream *stream, const struct rill__fill_2d *fill);
  /* Optional.  Returns whether the driver knows the memory at `p`, which rill does not know; if so, the memory is not
   * pageable.  Not called on the path by which work is submitted to the driver.  For a backend that has this slot, the
   * copies of graphs are staged (rill__operation.staged), so that no copy in a native graph has a pageable end. */
  rill_status (*is_known)(struct rill__device *device, const void *p, bool *out);
  /* Optional, for a backend that accepts pageable sources itself and therefore has to know which work may still write
   * to them.  Returns whether a number may be an address at all.  Called on any thread, without a handle. */
  bool (*may_be_address)(uint64_t number);
  /* With RILL_FEATURE_IPC: shares memory with other processes.  `p` and `size` are an allocation of kind DEVICE.  May
   * block for submitted work. */
  rill_status (*ipc_export)(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out);
  /* Maps memory of another process.  The bytes may be anything: returns NOT_FOUND if they refer to nothing,
   * INVALID_ARGUMENT if the memory is smaller than `size`.  The address is a multiple of 256.  It may be one that was
   * returned before; every import has its own close. */
  rill_status (*ipc_import)(struct rill__device *device, const struct rill__ipc_native *from, size_t size, void **out);
  /* Closes an import, and may block like `free`. */
  rill_status (*ipc_close)(struct rill__device *device, void *p, size_t size);
};

struct rill__module_table {
  /* Returns how well an image fits the device; 0: it cannot be loaded.  Of several images, core loads the one with the
   * greatest value. */
  uint32_t (*fit)(struct rill__device *device, const rill_bundle_image *image);
  /* Writes which targets the device accepts, for messages: "sm_90 or an older ptx". */
  void (*needs)(struct rill__device *device, char *text, size_t size);
  /* Loads an image, whose bytes are not needed after the call. */
  rill_status (*load)(struct rill__module *module, const rill_bundle_image *image);
  /* Unloads a module that no work submitted through rill uses any more. */
  void (*unload)(struct rill__module *module);
  /* For images that are in no bundle (core/kernel/image.h); these slots use no device.  A zero byte follows the data.
   * - `takes`: describes what the backend can load, for texts.
   * - `recognize`: describes what these bytes are, or returns NULL if the backend does not know.
   * - `read_parts`: splits bytes that the backend recognizes into parts.
   * - `read_kernels`: adds the kernels of one part, as far as the part describes them; also called for images of
   *   bundles. */
  const char *takes;
  const char *(*recognize)(const void *data, size_t size);
  const char *(*read_parts)(const void *data, size_t size, struct rill__image *out);
  const char *(*read_kernels)(const rill_bundle_image *part, struct rill__image *out);
  /* Optional: adds all kernels of a loaded module, if read_kernels has not found all of them. */
  void (*list)(struct rill__module *module, struct rill__image *out);
  /* Returns the address and size of a variable; *p is NULL if there is none with that name.  The name is not "". */
  rill_status (*global)(struct rill__module *module, const char *symbol, void **p, size_t *size);
  /* Optional: returns the native handle.  Without it, core returns 0. */
  uintptr_t (*native)(struct rill__module *module);
  /* For devices with RILL_FEATURE_RTC (struct rill__compile).  `compiler` names the compiler and its version, which are
   * part of the key under which results are cached.  `compile` blocks.  If the source has errors, it returns OK with a
   * log and no image. */
  rill_status (*compiler)(struct rill__device *device, char *identity, size_t size);
  rill_status (*compile)(struct rill__device *device, const struct rill__compile *request,
                         struct rill__compiled *result);
};

struct rill__kernel_table {
  /* Finds kernel->source->name in kernel->module and fills in the kernel's numbers; returns NOT_FOUND if it is not
   * there.  If the arguments are unknown, adds them to kernel->own if the driver knows them. */
  rill_status (*find)(struct rill__kernel *kernel);
  /* Optional: frees what `find` allocated. */
  void (*forget)(struct rill__kernel *kernel);
  /* Optional: does now what the driver may have deferred until the first launch. */
  rill_status (*preload)(struct rill__kernel *kernel);
  /* Optional: enables more dynamic shared memory than shared_allowed, within the device's limit. */
  rill_status (*allow_shared)(struct rill__kernel *kernel, uint64_t bytes);
  rill_status (*launch)(struct rill__stream *stream, const struct rill__launch *launch);
  /* Returns whether a launch may have RILL_ATTR_*; core passes an attribute to `launch` only if so.  Sets `why` as
   * `supports` does. */
  bool (*has_attribute)(struct rill__device *device, uint32_t kind, const char **why);
  /* Returns how many blocks of `threads` threads with `shared` bytes of dynamic shared memory run on a compute unit at
   * a time.  Both numbers are within the limits of a block, and `shared` has been enabled. */
  rill_status (*occupancy)(struct rill__kernel *kernel, uint32_t threads, uint64_t shared, uint32_t *blocks);
  /* Returns the block size, at most `limit` threads, that lets the most threads run at a time, and the number of such
   * blocks that fill the device. */
  rill_status (*suggest_block)(struct rill__kernel *kernel, uint64_t shared, uint32_t limit, uint32_t *threads,
                               uint32_t *blocks);
  /* Optional, both with clusters.  For a clustered launch: the most blocks that its cluster may have, and how many of
   * its clusters run at a time. */
  rill_status (*cluster_limit)(struct rill__kernel *kernel, const struct rill__launch *launch, uint32_t *blocks);
  rill_status (*active_clusters)(struct rill__kernel *kernel, const struct rill__launch *launch, uint32_t *clusters);
  /* Optional: returns the native handle.  Without it, core returns 0. */
  uintptr_t (*native)(struct rill__kernel *kernel);
};

struct rill__graph_table {
  /* Creates the native execution object from `exec->steps`. */
  rill_status (*instantiate)(struct rill__graph_exec *exec);
  /* Submits the graph to the stream, ordered after earlier launches of the same object, including those on other
   * streams. */
  rill_status (*launch)(struct rill__graph_exec *exec, struct rill__stream *stream);
  /* Replaces the operations of later launches.  If `operations[i]` and `exec->steps[i].operation` differ, later
   * launches run `operations[i]`: an operation of the same kind, or a kernel, copy or fill that replaces an empty one.
   * `attached` replaces `exec->attached`.  After the call core references the new operations and drops its references
   * to the old ones, so the backend must reference everything that earlier launches still use.  On failure nothing has
   * changed. */
  rill_status (*update)(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                        struct rill__object *attached);
  /* Does the same for a single step: an operation of the same kind, perhaps of another kernel or event; or an empty
   * operation that replaces a kernel, copy or fill, or the reverse. */
  rill_status (*set)(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation);
  /* Optional: submits to the stream the preparation that the first launch on it needs. */
  rill_status (*upload)(struct rill__graph_exec *exec, struct rill__stream *stream);
  /* Optional: returns the native execution object or, if `graph`, the native graph that it was made from.  Without it,
   * core returns 0. */
  uintptr_t (*native)(struct rill__graph_exec *exec, bool graph);
  /* Returns false if the object cannot be destroyed yet because launches are pending; core tries again later. */
  bool (*destroy)(struct rill__graph_exec *exec);
  /* Optional: captures work that other code submits to the native stream while core captures.  Work between begin and
   * end is captured into a native graph, which `end` returns; 0 if there was none, or on failure.  After `end` the
   * stream is not capturing natively, whatever `end` returned.  In graphs that are instantiated, the native graph is a
   * node of kind RILL_NODE_OTHER. */
  rill_status (*foreign_begin)(struct rill__stream *stream);
  bool (*foreign_has_work)(struct rill__stream *stream);
  rill_status (*foreign_end)(struct rill__stream *stream, uintptr_t *out);
  void (*foreign_destroy)(struct rill__device *device, uintptr_t graph);
};

/* How DLPack and the array API identify a backend's memory and streams (rill/dlpack.h). */
struct rill__dlpack {
  int32_t device, pinned, managed;    /* DLDeviceType */
  intptr_t first_stream, last_stream; /* of default streams; native streams are greater than 2 */
  const char *streams;                /* a description of the default streams; NULL without native streams */
};

struct rill__backend {
  const char *name; /* the part of a device's name before the colon */
  uint32_t id;      /* RILL_BACKEND_* */
  bool gpu;         /* its devices are numbered before the CPU */
  size_t device_size, stream_size, event_size, module_size, kernel_size, exec_size; /* bytes of its own parts */
  const struct rill__device_table *device;
  const struct rill__stream_table *stream;
  const struct rill__event_table *event;
  const struct rill__memory_table *memory;
  const struct rill__module_table *module;
  const struct rill__kernel_table *kernel;
  const struct rill__graph_table *graph; /* NULL: the backend has no graphs */
  struct rill__dlpack dlpack;
  /* Optional: returns true if code that the process loaded after the search for devices may use the vendor's library
   * by itself.  Called by one thread at a time. */
  bool (*has_later_users)(void);
  /* Optional: called around fork, on the forking thread.  after_in_child makes the backend usable again, or leaves its
   * devices lost. */
  void (*before_fork)(void);
  void (*after_fork_in_parent)(void);
  void (*after_fork_in_child)(void);
};

/* The slots that return a status and that core calls, each with its word in RILL_FAULT; slots with the same purpose
 * share a word.  A slot that is not in this list cannot be dispatched. */
#define RILL__CALL_LIST(CALL)                        \
  CALL(device, init, "device_open")                  \
  CALL(device, activate, "device_activate")          \
  CALL(device, synchronize, "device_synchronize")    \
  CALL(device, get_memory, "device_get_memory")      \
  CALL(device, set_peer, "device_set_peer")          \
  CALL(device, of_native_stream, "device_of_native") \
  CALL(stream, create, "stream_create")              \
  CALL(stream, import, "stream_import")              \
  CALL(stream, context, "stream_context")            \
  CALL(stream, id, "stream_id")                      \
  CALL(stream, validate, "stream_validate")          \
  CALL(stream, record, "record")                     \
  CALL(stream, wait, "wait")                         \
  CALL(stream, synchronize, "synchronize")           \
  CALL(stream, is_complete, "is_complete")           \
  CALL(stream, is_capturing, "is_capturing")         \
  CALL(stream, host_call, "host_call")               \
  CALL(event, create, "event_create")                \
  CALL(event, import, "event_import")                \
  CALL(event, is_ready, "is_ready")                  \
  CALL(event, synchronize, "event_synchronize")      \
  CALL(event, elapsed, "elapsed_time")               \
  CALL(event, ipc_export, "event_ipc_export")        \
  CALL(event, ipc_import, "event_ipc_import")        \
  CALL(memory, alloc, "alloc")                       \
  CALL(memory, free, "free")                         \
  CALL(memory, free_unused, "free")                  \
  CALL(memory, host_register, "host_register")       \
  CALL(memory, host_unregister, "host_unregister")   \
  CALL(memory, copy, "copy")                         \
  CALL(memory, copy_3d, "copy")                      \
  CALL(memory, prefetch, "prefetch")                 \
  CALL(memory, may_prefetch, "prefetch")             \
  CALL(memory, advise, "advise")                     \
  CALL(memory, fill, "fill")                         \
  CALL(memory, fill_2d, "fill")                      \
  CALL(memory, is_known, "is_known")                 \
  CALL(memory, ipc_export, "memory_ipc_export")      \
  CALL(memory, ipc_import, "memory_ipc_import")      \
  CALL(memory, ipc_close, "memory_ipc_close")        \
  CALL(module, load, "module_load")                  \
  CALL(module, global, "module_get_global")          \
  CALL(module, compiler, "compile")                  \
  CALL(module, compile, "compile")                   \
  CALL(kernel, find, "kernel_find")                  \
  CALL(kernel, preload, "kernel_preload")            \
  CALL(kernel, allow_shared, "kernel_allow_shared")  \
  CALL(kernel, launch, "launch")                     \
  CALL(kernel, occupancy, "occupancy")               \
  CALL(kernel, suggest_block, "occupancy")           \
  CALL(kernel, cluster_limit, "occupancy")           \
  CALL(kernel, active_clusters, "occupancy")         \
  CALL(graph, instantiate, "graph_instantiate")      \
  CALL(graph, launch, "graph_launch")                \
  CALL(graph, update, "graph_update")                \
  CALL(graph, set, "graph_set")                      \
  CALL(graph, upload, "graph_upload")                \
  CALL(graph, foreign_begin, "capture_begin_others") \
  CALL(graph, foreign_end, "capture_end_others")

enum rill__call {
#define RILL__CALL_NUMBER(table, slot, word) RILL__CALL_##table##_##slot,
  RILL__CALL_LIST(RILL__CALL_NUMBER)
#undef RILL__CALL_NUMBER
      RILL__CALLS
};

/* The only way from core into a backend: calls a slot that returns a status, for an object that belongs to a device.
 * RILL_TRACE in the environment prints each such call, and RILL_FAULT makes some of them fail instead
 * (core/device/trace.c).  Anything else that observes calls is added here. */
#define RILL_DISPATCH(object, table, slot, ...) RILL__DISPATCH(NULL, NULL, object, table, slot, __VA_ARGS__)
/* Does the same and names another object that the call is about, whose label a rule of RILL_FAULT may match. */
#define RILL_DISPATCH_ABOUT(other, object, table, slot, ...) \
  RILL__DISPATCH(other, NULL, object, table, slot, __VA_ARGS__)
#define RILL_DISPATCH_LAUNCH(stream, launched) RILL__DISPATCH(NULL, launched, stream, kernel, launch, stream, launched)
/* Use this only after checking that nothing observes the call, including RILL_TRACE and RILL_FAULT
 * (core/diagnose/observe.h). */
#define RILL_DISPATCH_UNOBSERVED(object, table, slot, ...) RILL__SLOT(object, table, slot)(__VA_ARGS__)
#define RILL__DISPATCH(other, launched, object, table, slot, ...)                                           \
  (__extension__((RILL__UNLIKELY(atomic_load_explicit(&rill__calls_watched, memory_order_relaxed) != 0)     \
                      ? rill__call_watched(&(object)->base, RILL__CALL_##table##_##slot, (other), launched) \
                      : RILL_OK)                                                                            \
                     ?: RILL__SLOT(object, table, slot)(__VA_ARGS__)))
/* Calls a slot that returns no status, for a call that cannot fail. */
#define RILL_ASK(object, table, slot, ...)                                                                \
  ((RILL__UNLIKELY(atomic_load_explicit(&rill__calls_watched, memory_order_relaxed) & RILL__CALLS_TRACED) \
        ? rill__trace(&(object)->base, #table "." #slot, NULL)                                            \
        : (void)0),                                                                                       \
   RILL__SLOT(object, table, slot)(__VA_ARGS__))
#define RILL__SLOT(object, table, slot)                                                                   \
  (RILL_ASSERT(!rill__has_lock(RILL__LOCK_CLAIMS | RILL__LOCK_REGISTRY | RILL__LOCK_HELD),                \
               "core holds none of these locks while it calls a backend, which may wait for the device"), \
   (object)->base.device->backend->table->slot)

enum { RILL__CALLS_TRACED = 1, RILL__CALLS_FAULTED = 2 };
extern _Atomic uint32_t rill__calls_watched; /* bits that say what observes calls (core/diagnose/observe.h) */

/* Prints the call if RILL_TRACE is on.  If the result is not RILL_OK, RILL_FAULT makes the call fail with it; the error
 * text is set. */
rill_status rill__call_watched(const struct rill__object *object, enum rill__call call,
                               const struct rill__object *other, const struct rill__launch *launch)
    __attribute__((cold));
void rill__trace(const struct rill__object *object, const char *slot, const struct rill__launch *launch)
    __attribute__((cold));

/* Returns the backend's own part of an object, zeroed when the object is created and aligned to 64. */
#define RILL__PART_OFFSET(type) ((sizeof(type) + 63) / 64 * 64)
#define rill__part(object) ((void *)((char *)(object) + RILL__PART_OFFSET(__typeof__(*(object)))))

/* ---- what core offers to backends ---- */

/* Set once a native stream or event was imported, or its handle was returned to the caller.  Until then no other code
 * can have begun a capture that involves rill's streams. */
extern _Atomic bool rill__is_shared;

/* Has the bit 1 << id of each backend whose vendor's library was in the process before rill searched for it, so other
 * code may use the vendor's devices. */
extern _Atomic uint32_t rill__shared_vendors;

/* Marks the device as permanently lost, unless it is already lost, and fails with the first cause. */
rill_status rill__device_lost(struct rill__device *device, int32_t code, const char *name, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));

/* Marks the device as lost in the same way, with a status and no vendor code, if it becomes unusable for a reason other
 * than a fault. */
void rill__device_close(struct rill__device *device, rill_status status, const char *text);

/* Makes a lost device usable again: in the child of a fork, for a device that works there. */
void rill__device_renew(struct rill__device *device);

/* Returns whether `test` holds for a stream of the device whose native handle other code may have, and stores the name
 * of that stream.  `test` is called under a lock, and must not call core. */
bool rill__device_any_shared_stream(struct rill__device *device, bool (*test)(struct rill__stream *stream),
                                    struct rill__name *out);

/* Bracket a host call of the stream with this id, or of a graph if the id is 0, so that reports show it as running
 * (core/diagnose/calls.h).  Backends make every host call through rill__call_host. */
struct rill__running_call *rill__call_begin(uint64_t stream, rill_host_fn fn);
void rill__call_end(struct rill__running_call *call);
static inline void rill__call_host(uint64_t stream, rill_host_fn fn, void *user, rill_status status) {
  const bool before = rill__in_host_call;
  struct rill__running_call *const call = rill__call_begin(stream, fn);
  rill__in_host_call = true;
  fn(user, status);
  rill__in_host_call = before;
  rill__call_end(call);
}

/* Submits a kernel, copy, fill or host call to a stream, as part of work that is being submitted. */
rill_status rill__operation_submit(struct rill__operation *operation, struct rill__stream *stream);

/* Copies the rows `first` to `end` - 1, counted through all slices, on the host. */
void rill__copy_rows(const struct rill__copy_3d *copy, size_t first, size_t end);

/* Describes what core knows about an address that a kernel accesses, for backends whose kernels check their accesses.
 * rill__access_begin is called when such a module is loaded, and rill__access_end when it is unloaded.  In between,
 * each allocation of the device is followed by a red zone of RILL__RED_ZONE bytes, which belongs to no allocation, and
 * frees are recorded. */
enum { RILL__RED_ZONE = 128 };
void rill__access_begin(struct rill__device *device);
void rill__access_end(struct rill__device *device);

struct rill__access {
  enum {
    RILL__ACCESS_RIGHT,  /* in memory that the kernel may use */
    RILL__ACCESS_LATE,   /* in memory that was, or may have been, freed after the launch */
    RILL__ACCESS_FREED,  /* in memory that was freed before the launch */
    RILL__ACCESS_PEER,   /* in memory of a device of another backend */
    RILL__ACCESS_BESIDE, /* in no memory; the nearest is described */
    RILL__ACCESS_NOWHERE /* in no memory, and there is none near; nothing else is set */
  } what;
  uintptr_t begin; /* start of the allocation, registered range or variable */
  size_t size;
  uint32_t kind; /* RILL_MEMORY_*; 0 for freed memory */
  bool variable;
};

/* Returns a number that grows with each recorded free.  As long as it has not changed, an address that was found RIGHT
 * is still RIGHT. */
uint64_t rill__frees_count(void);

/* Describes the memory at an address.  `frees`: rill__frees_count at the launch.  Called on any thread, inside an epoch
 * or outside. */
void rill__access_find(struct rill__device *device, uintptr_t p, uint64_t frees, struct rill__access *out);

/* Reports what a launch with a token has accessed in memory that core knows, as disjoint ranges.  Called before the
 * launch counts as complete, on any thread that holds no lock.  `complete`: these are all its accesses. */
enum {
  RILL__ACCESSED_READ = 1,
  RILL__ACCESSED_WRITE = 2,
  RILL__ACCESSED_UPDATE = 4, /* atomically: a write, and perhaps a read */
  RILL__ACCESSED_POLL = 8,   /* atomically: a read of what another kernel may be about to write */
  RILL__ACCESSED_KINDS = 4
};
struct rill__accessed {
  uintptr_t begin;
  size_t size;
  uint32_t how; /* RILL__ACCESSED_* */
};
void rill__accessed(uint64_t token, const struct rill__accessed *ranges, size_t count, bool complete);

/* Fails with the error that every call on a lost device returns.  device->lost must be set. */
rill_status rill__fail_lost(struct rill__device *device) __attribute__((cold));

#endif
