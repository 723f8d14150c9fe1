/* Common source of the GPU backends.
 *
 * The vendors' APIs mirror each other, so these files are compiled once per vendor.  The build defines
 * GPU_VENDOR_HEADER, a header with the types, constants and small functions of the vendor.  Only gpu_api.def and
 * gpu_enums.def, which list the vendors' functions and numbers, contain vendor names.  Names shared by several files
 * are written gpu_something; the macros below rename them to rill__<vendor>_something, because both vendors may be in
 * one library.
 *
 * Calls.  On a stream that rill created, `record` is one vendor call through a pointer (GPU_RUN): the handle determines
 * the device and context, and nothing else is queried, locked or allocated.  Some calls need the context or device to
 * be current: creation, calls on the three default streams, and on older drivers every call.  They run in a scope that
 * makes it current and restores the previous one (gpu_enter and gpu_leave, always in pairs).
 *
 * Errors.  Every vendor call goes through gpu_vendor_result, which clears the vendor's "last error" of the thread.
 * Only gpu_fail converts a failure to a status.  If the failure is a fault of earlier work, gpu_fail marks the device
 * as lost.
 *
 * After a fork the child must not call the driver, not even to destroy objects (gpu_forked).
 */
#ifndef RILL_BACKENDS_GPU_GPU_H
#define RILL_BACKENDS_GPU_GPU_H

#include GPU_VENDOR_HEADER

#include "backends/gpu/api.h"

#define gpu_backend GPU_NAME(backend)
#define gpu_compile GPU_NAME(compile)
#define gpu_compiler GPU_NAME(compiler)
#define gpu_copy_3d GPU_NAME(copy_3d)
#define gpu_device_count GPU_NAME(device_count)
#define gpu_device_table GPU_NAME(device_table)
#define gpu_devices GPU_NAME(devices)
#define gpu_event_is_over GPU_NAME(event_is_over)
#define gpu_event_table GPU_NAME(event_table)
#define gpu_fail GPU_NAME(fail)
#define gpu_fail_unfinished GPU_NAME(fail_unfinished)
#define gpu_fill GPU_NAME(fill)
#define gpu_fill_2d GPU_NAME(fill_2d)
#define gpu_forked GPU_NAME(forked)
#define gpu_graph_make GPU_NAME(graph_make)
#define gpu_graph_set_nodes GPU_NAME(graph_set_nodes)
#define gpu_graph_enable_nodes GPU_NAME(graph_enable_nodes)
#define gpu_graph_table GPU_NAME(graph_table)
#define gpu_graph_unmake GPU_NAME(graph_unmake)
#define gpu_graphs_missing GPU_NAME(graphs_missing)
#define gpu_host_call GPU_NAME(host_call)
#define gpu_ipc_close GPU_NAME(ipc_close)
#define gpu_ipc_export_event GPU_NAME(ipc_export_event)
#define gpu_ipc_export_memory GPU_NAME(ipc_export_memory)
#define gpu_ipc_import_event GPU_NAME(ipc_import_event)
#define gpu_ipc_import_memory GPU_NAME(ipc_import_memory)
#define gpu_kernel_table GPU_NAME(kernel_table)
#define gpu_mark_is_complete GPU_NAME(mark_is_complete)
#define gpu_mark_is_over GPU_NAME(mark_is_over)
#define gpu_memory_table GPU_NAME(memory_table)
#define gpu_is_captured GPU_NAME(is_captured)
#define gpu_read_place GPU_NAME(read_place)
#define gpu_access_begin GPU_NAME(access_begin)
#define gpu_access_end GPU_NAME(access_end)
#define gpu_module_table GPU_NAME(module_table)
#define gpu_native_create GPU_NAME(native_create)
#define gpu_native_end GPU_NAME(native_end)
#define gpu_native_forget GPU_NAME(native_forget)
#define gpu_native_new GPU_NAME(native_new)
#define gpu_can_access_peer GPU_NAME(can_access_peer)
#define gpu_backoff_again GPU_NAME(backoff_again)
#define gpu_backoff_start GPU_NAME(backoff_start)
#define gpu_read_kernels GPU_NAME(read_kernels)
#define gpu_read_parts GPU_NAME(read_parts)
#define gpu_recognize GPU_NAME(recognize)
#define gpu_set_peer GPU_NAME(set_peer)
#define gpu_status_of GPU_NAME(status_of)
#define gpu_stream_table GPU_NAME(stream_table)
#define gpu_wait_for_all GPU_NAME(wait_for_all)
#define gpu_wait_for_host_calls GPU_NAME(wait_for_host_calls)

/* ---- the backend's parts of objects ---- */

struct gpu_closure;
enum { GPU_SPARE_CLOSURES = 8, GPU_POOL_LEVELS = 8 };

/* A native stream that rill owns (native.c). */
struct gpu_native {
  gpu_stream_handle handle;
  uint32_t index;
  uint32_t ended_turn; /* turn of gpu_access_begin when the stream was retired */
  uint64_t ended_at;   /* epoch of its retirement while it waits for destruction; otherwise 0 */
  _Atomic uint64_t generation;
  _Atomic uint64_t first; /* first generation of the handle; UINT64_MAX from before its destruction on */
  struct gpu_native *next;
};

struct gpu_native_pool {
  struct gpu_native *first; /* linked by next */
  uint32_t count;
};

struct gpu_device {
  gpu_device_handle native;
  gpu_context context;        /* the primary context; valid after activation */
  gpu_stream_handle sentinel; /* NULL, or an unused stream that is only destroyed by a device reset */
  gpu_function fill;          /* kernel for patterns of 8 and 16 bytes, or NULL; valid after activation */
  struct gpu_target target;
  size_t max_pitch;                                        /* maximum pitch of the vendor's 2D and 3D copies */
  pthread_mutex_t pools_lock;                              /* protects `pools` */
  struct gpu_native_pool pools[2][GPU_POOL_LEVELS];        /* by blocking and priority, lowest first */
  _Atomic(struct gpu_closure *) spare[GPU_SPARE_CLOSURES]; /* reused by the next host calls */
  _Atomic(struct gpu_closure *) captured;                  /* closures that graphs may still call */
};

struct gpu_stream {
  gpu_stream_handle native;
  bool inside;      /* a default stream: calls on it need a scope */
  bool work_inside; /* launches, copies and fills need a scope */
  bool has_id;
  bool drained; /* result of the last query before destruction */
  /* Host calls of the stream, including waits for events that follow one: submitted and done. */
  _Atomic uint32_t host_calls, host_calls_done;
  uint64_t place;                 /* place that events recorded on it store; 0: none */
  struct gpu_native *own;         /* NULL if borrowed */
  unsigned long long id;          /* driver's id of an imported stream */
  pthread_mutex_t constants_lock; /* held during a launch with constants */
};

/* `place` is the stream of the last record if GPU_EVENTS_ACCESS_STREAMS. A place also contains a turn, which is
 * incremented when the stream of the last record changes, so that a thread notices records that other threads make on
 * other streams at the same time. */
struct gpu_event {
  gpu_event_handle native;
  _Atomic uint64_t place;
  _Atomic bool after_host_calls; /* its last record may follow host calls that are not done */
};

enum { GPU_PLACE_BORROWED = 1, GPU_PLACE_TURN = 2, GPU_PLACE_TURNS = 0x1fe, GPU_PLACE_SHIFT = 9 };
enum { GPU_INDEX_BITS = 20, GPU_GENERATION_BITS = 35 };
#define GPU_PLACE_OF(native)                                                           \
  (((uint64_t)(native)->index << GPU_GENERATION_BITS |                                 \
    (atomic_load(&(native)->generation) & ((UINT64_C(1) << GPU_GENERATION_BITS) - 1))) \
   << GPU_PLACE_SHIFT)
#define GPU_PLACE_OF_BORROWED(handle) ((uint64_t)(uintptr_t)(handle) << GPU_PLACE_SHIFT | GPU_PLACE_BORROWED)

struct gpu_module {
  gpu_module_handle native;
  void *image; /* copy of the image if GPU_MODULES_KEEP_IMAGES */
};

struct gpu_kernel {
  gpu_function native;
};

/* State of the last launch of an execution object. */
enum gpu_launched {
  GPU_NEVER_LAUNCHED,
  GPU_LAUNCHED_UNMARKED, /* its completion is not needed */
  GPU_LAUNCHED_MARKED,
  GPU_LAUNCHED_MARK_REFUSED /* refused by the driver; a later mark tells when this launch is complete */
};

/* An event recorded after a launch. An execution object records the same event after each launch, until a replaced
 * object also waits for the event; from then on the event marks that launch permanently. */
struct gpu_mark {
  _Atomic uint32_t references;
  gpu_event_handle event;
  uint64_t place;        /* place of the stream of its last record */
  _Atomic bool recorded; /* false if never recorded, or if the driver refused the last record */
};

/* Part of an execution object (graph.c). */
struct gpu_exec {
  gpu_graph graph; /* graph of `native`; its nodes identify the nodes of the execution object */
  gpu_graph_handle native;
  gpu_graph_node *nodes;  /* last native node of each step */
  struct gpu_mark *mark;  /* mark of the last launch, or NULL if no launch needed one */
  gpu_stream_handle last; /* stream of the last launch, or NULL */
  enum gpu_launched launched;
  uint32_t changes;         /* changes of nodes of `native` */
  size_t change_bytes;      /* most bytes that the driver allocated for these changes, if GPU_CHANGES_LEAK */
  bool half_changed;        /* the driver applied part of a change: rebuild `native` before a launch */
  bool marks;               /* later launches are marked */
  bool calls_host, records; /* the graph has host calls, or records of events */
  bool unordered;           /* launches are ordered by the mark: the driver may overlap them, has no
                                     node to order, or received earlier launches with another native object */
};

static inline struct gpu_device *gpu_device_of(struct rill__device *device) { return rill__part(device); }
static inline struct gpu_stream *gpu_stream_of(struct rill__stream *stream) { return rill__part(stream); }
static inline struct gpu_event *gpu_event_of(struct rill__event *event) { return rill__part(event); }
static inline struct gpu_module *gpu_module_of(struct rill__module *module) { return rill__part(module); }
static inline struct gpu_kernel *gpu_kernel_of(struct rill__kernel *kernel) { return rill__part(kernel); }

/* ---- shared by several files ---- */

#pragma GCC visibility push(hidden)

extern const struct rill__backend gpu_backend;
extern const struct rill__device_table gpu_device_table;
extern const struct rill__stream_table gpu_stream_table;
extern const struct rill__event_table gpu_event_table;
extern const struct rill__memory_table gpu_memory_table;
extern const struct rill__module_table gpu_module_table;
extern const struct rill__kernel_table gpu_kernel_table;
extern const struct rill__graph_table gpu_graph_table;

extern struct rill__device **gpu_devices; /* by ordinal; NULL until core sets it */
extern uint32_t gpu_device_count;
extern bool gpu_forked; /* true in the child of a fork; does not change while the process has several threads */

/* Returns the status for a vendor's error code, and sets the error text from the failed call and its meaning.
 *  `device` may be NULL. */
rill_status gpu_fail(struct rill__device *device, gpu_result result, const char *symbol) __attribute__((cold));

/* Returns the status for a vendor's error code without setting an error. */
rill_status gpu_status_of(gpu_result result);

/* Polls for a host wait with a limit, with growing pauses.
 *
 *     struct gpu_backoff backoff = gpu_backoff_start(ns);
 *     while ((result = ask()) == GPU_NOT_READY) {
 *       if (!gpu_backoff_again(&backoff)) return gpu_fail_unfinished("stream", ns);
 *     }
 */
struct gpu_backoff {
  uint64_t deadline, pause; /* ns */
};
struct gpu_backoff gpu_backoff_start(uint64_t ns);
bool gpu_backoff_again(struct gpu_backoff *backoff); /* false if and only if the limit has passed */
rill_status gpu_fail_unfinished(const char *what, uint64_t ns) __attribute__((cold));

/* Returns what the driver lacks for graphs, or NULL. */
const char *gpu_graphs_missing(void);

/* Create and destroy a native graph of the steps, or of `operations` in their place if not NULL. Stores the last native
 * node of each step in `nodes`, which must be zeroed. Destroying NULL has no effect. */
rill_status gpu_graph_make(const struct rill__graph_exec *exec, struct rill__operation *const *operations,
                           gpu_graph_node *nodes, gpu_graph *out);
void gpu_graph_unmake(struct rill__device *device, gpu_graph graph);
/* Changes `count` steps from `first` to other operations by changing the native nodes that differ. Returns false if a
 * step needs more than that or the driver refuses; the graph must then be rebuilt. */
bool gpu_graph_set_nodes(struct rill__graph_exec *exec, uint32_t first, uint32_t count,
                         struct rill__operation *const *operations);

/* Enables nodes that are no longer disabled, after the driver has accepted a graph of these operations. */
void gpu_graph_enable_nodes(struct rill__graph_exec *exec, struct rill__operation *const *operations);

/* Device slots. */
bool gpu_can_access_peer(struct rill__device *device, struct rill__device *memory_of, const char **why);
rill_status gpu_set_peer(struct rill__device *device, struct rill__device *memory_of, bool on);

/* Module slots for run-time compilation. */
rill_status gpu_compiler(struct rill__device *device, char *identity, size_t size);
rill_status gpu_compile(struct rill__device *device, const struct rill__compile *request,
                        struct rill__compiled *result);

/* Memory slot copy_3d. */
rill_status gpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *copy);

/* Memory slots for fills. */
rill_status gpu_fill(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                     size_t pattern_size, size_t count);
rill_status gpu_fill_2d(struct rill__stream *stream, const struct rill__fill_2d *fill);

/* Stream slot host_call. */
rill_status gpu_host_call(struct rill__stream *stream, rill_host_fn fn, void *user);

/* Event and memory slots for sharing with other processes. */
rill_status gpu_ipc_export_event(struct rill__event *event, struct rill__ipc_native *out);
rill_status gpu_ipc_import_event(struct rill__event *event, const struct rill__ipc_native *from);
rill_status gpu_ipc_export_memory(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out);
rill_status gpu_ipc_import_memory(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                  void **out);
rill_status gpu_ipc_close(struct rill__device *device, void *p, size_t size);

/* Module slots, defined in the vendor's image.c. */
const char *gpu_recognize(const void *data, size_t size);
const char *gpu_read_parts(const void *data, size_t size, struct rill__image *out);
const char *gpu_read_kernels(const rill_bundle_image *part, struct rill__image *out);

/* Blocks until all work of all devices of the vendor is complete. */
rill_status gpu_wait_for_all(void);

/* Waits for earlier host calls before a copy: the vendors read a pageable source during the call, and a host call may
 * write it. */
rill_status gpu_wait_for_host_calls(struct rill__stream *stream, const void *src);
static inline bool gpu_has_host_calls(const struct gpu_stream *part) {
  return atomic_load_explicit(&part->host_calls, memory_order_relaxed) !=
         atomic_load_explicit(&part->host_calls_done, memory_order_relaxed);
}

/* Returns whether the stream is part of a capture; false if the driver cannot tell. */
bool gpu_is_captured(struct rill__stream *stream);

/* Returns a native stream, recycled or new. */
rill_status gpu_native_create(struct rill__device *device, int32_t priority, bool blocking, struct gpu_native **out);
/* Takes over an imported native stream that rill must destroy, or returns NULL if host memory is exhausted. The
 *  second function undoes it. */
struct gpu_native *gpu_native_new(gpu_stream_handle handle);
void gpu_native_forget(struct gpu_native *native);
/* Retires the native stream of a destroyed stream whose work is complete. `reuse`: no other code has its handle.
 * Returns false if a call in progress may still access the native stream; the caller must then try again. */
bool gpu_native_end(struct rill__stream *stream, struct gpu_native *native, bool reuse);

/* Bracket an access to an event's place and a vendor call for that event, so that the native stream of the place is not
 * destroyed meanwhile. */
int gpu_access_begin(void);
void gpu_access_end(int slot);
/* Returns whether the stream of the event's last record was destroyed; if so the event is complete. */
bool gpu_event_is_over(struct rill__event *event);
/* gpu_mark_is_over does the same for an internal native event that was last recorded on the stream of `place`.
 * gpu_mark_is_complete returns whether the event is complete; false also if a query would break a capture of the
 * stream. */
bool gpu_mark_is_over(uint64_t place);
bool gpu_mark_is_complete(gpu_event_handle mark, uint64_t place);
/* Returns the state of the stream of a place, and the handle of its native stream, or NULL if the place has none. */
enum gpu_place_state { GPU_PLACE_LIVES, GPU_PLACE_USED_AGAIN, GPU_PLACE_DESTROYED };
enum gpu_place_state gpu_read_place(uint64_t place, gpu_stream_handle *handle);

#pragma GCC visibility pop

/* ---- calling the vendor ---- */

/* Sets the error of a failed vendor call and returns its status. */
#define GPU_FAIL(device, result, field) gpu_fail((device), (result), gpu_symbols.field)

/* Makes one vendor call and returns from the calling function if it fails: GPU_TRY(device, device_get, (&native,
 *  ordinal)). */
#define GPU_TRY(device, field, arguments)                                                        \
  do {                                                                                           \
    const gpu_result try_result_ = GPU_CALL(field, arguments);                                   \
    if (RILL__UNLIKELY(try_result_ != GPU_SUCCESS)) return GPU_FAIL(device, try_result_, field); \
  } while (0)

/* Makes the device's context current until gpu_leave. On failure returns the negated vendor code, so that gpu_fail
 * does not name the call that was to follow. */
static inline gpu_result gpu_enter(struct rill__device *device, struct gpu_scope *scope) {
  const struct gpu_device *part = gpu_device_of(device);
  return -gpu_vendor_enter(scope, part->native, part->context);
}

static inline void gpu_leave(struct gpu_scope *scope) { gpu_vendor_leave(scope); }

/* Makes one vendor call inside a scope. GPU_CALL_INSIDE takes the call as an expression. */
#define GPU_RUN_INSIDE(result, device, field, arguments) GPU_CALL_INSIDE(result, device, GPU_CALL(field, arguments))
#define GPU_CALL_INSIDE(result, device, call)    \
  do {                                           \
    struct gpu_scope scope_;                     \
    (result) = gpu_enter((device), &scope_);     \
    if (RILL__LIKELY((result) == GPU_SUCCESS)) { \
      (result) = (call);                         \
      gpu_leave(&scope_);                        \
    }                                            \
  } while (0)

/* Makes one vendor call that needs no current context, or inside a scope if `inside`. A driver that needs a current
 * context refuses the call without effect; the call is then repeated inside a scope. */
#define GPU_RUN(result, device, inside, field, arguments) \
  GPU_CALL_ANYWHERE(result, device, inside, GPU_CALL(field, arguments))
#define GPU_CALL_ANYWHERE(result, device, inside, call)                 \
  do {                                                                  \
    bool inside_ = (inside);                                            \
    if (RILL__LIKELY(!inside_)) {                                       \
      (result) = (call);                                                \
      inside_ = (result) == GPU_INVALID_CONTEXT;                        \
    }                                                                   \
    if (RILL__UNLIKELY(inside_)) GPU_CALL_INSIDE(result, device, call); \
  } while (0)

#endif
