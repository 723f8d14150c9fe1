/* The GPU backends, written once.
 *
 * The vendors' programming interfaces mirror each other, so these sources are compiled once for each: the build
 * names the vendor's header in GPU_VENDOR_HEADER, and that header gives the types, constants and small functions
 * that these files use.  Outside gpu_api.def and gpu_enums.def, which list the vendors' functions and numbers, no
 * vendor is named here.  What crosses files is called gpu_something in the text and, by the list of macros below,
 * rill__<vendor>_something in the object files: both vendors may be in one library.
 *
 * One call.  On a stream of rill's own, `record` is one vendor call through a pointer: the handle says which
 * device and context are meant, and nothing else is asked, locked or allocated.  GPU_RUN is that call.  Where the
 * vendor wants its context (or device) to be the thread's current one, for creation, for the three default
 * streams, and on older drivers for everything, the call runs inside a scope that makes it current and puts
 * back what was there: gpu_enter and gpu_leave, always in pairs.
 *
 * Errors.  Every vendor call goes through gpu_vendor_result, which takes care that none remains as the
 * thread's "last error".  A failure becomes a status in gpu_fail alone; a fault of work that ran earlier makes
 * the device lost there.
 *
 * After a fork the child must not enter the driver again, not even to destroy: gpu_forked.
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
#define gpu_look_at_place GPU_NAME(look_at_place)
#define gpu_look_begin GPU_NAME(look_begin)
#define gpu_look_end GPU_NAME(look_end)
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

/* ---- this backend's parts of the objects ---- */

struct gpu_closure;
enum { GPU_SPARE_CLOSURES = 8, GPU_POOL_LEVELS = 8 };

/* A native stream that is rill's to destroy (native.c). */
struct gpu_native {
  gpu_stream_handle handle;
  uint32_t index;
  uint32_t ended_turn; /* of gpu_look_begin */
  uint64_t ended_at;   /* the epoch in which its rill stream ended, if it waits for its destruction; else 0 */
  _Atomic uint64_t generation;
  _Atomic uint64_t first; /* the generation that the handle came with; UINT64_MAX from before its destruction on */
  struct gpu_native *next;
};

struct gpu_native_pool {
  struct gpu_native *first; /* linked by next */
  uint32_t count;
};

struct gpu_device {
  gpu_device_handle native;
  gpu_context context;        /* the primary one, from activation on */
  gpu_stream_handle sentinel; /* NULL, or a stream that nobody uses: it ends only if the device is reset */
  gpu_function fill;          /* NULL, or the kernel for patterns of 8 and 16 bytes, from activation on */
  struct gpu_target target;
  size_t max_pitch;                                        /* of the vendor's copies of two and three dimensions */
  pthread_mutex_t pools_lock;                              /* guards `pools` */
  struct gpu_native_pool pools[2][GPU_POOL_LEVELS];        /* by blocking and priority, the least first */
  _Atomic(struct gpu_closure *) spare[GPU_SPARE_CLOSURES]; /* for the next host calls */
  _Atomic(struct gpu_closure *) captured;                  /* those that graphs may still call */
};

struct gpu_stream {
  gpu_stream_handle native;
  bool inside;      /* calls on it need a scope: one of the default streams */
  bool work_inside; /* launches, copies and fills need one */
  bool has_id;
  bool drained; /* when it was last asked, to be destroyed */
  /* How many host calls the stream has had, or waits for events that come after one; and as many of them are done. */
  _Atomic uint32_t host_calls, host_calls_done;
  uint64_t place;                 /* what events recorded on it note; 0: nothing */
  struct gpu_native *own;         /* NULL: borrowed */
  unsigned long long id;          /* of an imported one */
  pthread_mutex_t constants_lock; /* held by a launch with constants */
};

/* `place`: which stream it was last recorded on, if GPU_EVENTS_LOOK_AT_STREAMS.  Two threads may record an event at
 * once, on two streams: the places that they write differ in the turn, too. */
struct gpu_event {
  gpu_event_handle native;
  _Atomic uint64_t place;
  _Atomic bool after_host_calls; /* its last record may come after some that are not done */
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
  void *image; /* a copy of its own, where GPU_MODULES_KEEP_IMAGES */
};

struct gpu_kernel {
  gpu_function native;
};

/* The last launch of an execution object. */
enum gpu_launched {
  GPU_NEVER_LAUNCHED,
  GPU_LAUNCHED_UNMARKED, /* nothing has to know of its end */
  GPU_LAUNCHED_MARKED,
  GPU_LAUNCHED_MARK_REFUSED /* by the driver: only the mark after a later launch tells of its end */
};

/* An event after a launch.  An execution object records it after each of its launches, until what a change has replaced
 * waits for it, too: then it marks that launch for good. */
struct gpu_mark {
  _Atomic uint32_t references;
  gpu_event_handle event;
  uint64_t place;        /* of the stream that it was last recorded on */
  _Atomic bool recorded; /* false: never, or the driver has refused it the last time */
};

/* Of an execution object (graph.c). */
struct gpu_exec {
  gpu_graph graph; /* that it was made from: its nodes name those of the object */
  gpu_graph_handle native;
  gpu_graph_node *nodes;  /* the last one of each step */
  struct gpu_mark *mark;  /* after the last launch, if that is marked; NULL: no launch was to be */
  gpu_stream_handle last; /* of the last launch; NULL: there was none */
  enum gpu_launched launched;
  uint32_t changes;    /* of nodes of `native`, and the most bytes that the driver has allocated for them ... */
  size_t change_bytes; /* ... where GPU_CHANGES_LEAK */
  bool half_changed;   /* the driver took a part of a change: its object is made as the steps are before a launch */
  bool marks;          /* launches to come are marked */
  bool calls_host, records; /* there are such steps */
  bool unordered; /* the driver does not order all launches of the object: the mark does.  It may let them overlap, has
                   * no node of it, or has another object than at the launches before */
};

static inline struct gpu_device *gpu_device_of(struct rill__device *device) { return rill__part(device); }
static inline struct gpu_stream *gpu_stream_of(struct rill__stream *stream) { return rill__part(stream); }
static inline struct gpu_event *gpu_event_of(struct rill__event *event) { return rill__part(event); }
static inline struct gpu_module *gpu_module_of(struct rill__module *module) { return rill__part(module); }
static inline struct gpu_kernel *gpu_kernel_of(struct rill__kernel *kernel) { return rill__part(kernel); }

/* ---- across the files ---- */

#pragma GCC visibility push(hidden)

extern const struct rill__backend gpu_backend;
extern const struct rill__device_table gpu_device_table;
extern const struct rill__stream_table gpu_stream_table;
extern const struct rill__event_table gpu_event_table;
extern const struct rill__memory_table gpu_memory_table;
extern const struct rill__module_table gpu_module_table;
extern const struct rill__kernel_table gpu_kernel_table;
extern const struct rill__graph_table gpu_graph_table;

extern struct rill__device **gpu_devices; /* by ordinal; NULL until core has set it up */
extern uint32_t gpu_device_count;
extern bool gpu_forked; /* this is the child of a fork; constant while it has more than one thread */

/* The status of a vendor's code, with the text: which call failed and what that means.  `device` may be NULL. */
rill_status gpu_fail(struct rill__device *device, gpu_result result, const char *symbol) __attribute__((cold));

/* The status alone, for those who only pass it on. */
rill_status gpu_status_of(gpu_result result);

/* A host wait with a limit asks again and again, ever less often, and sleeps in between.
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
bool gpu_backoff_again(struct gpu_backoff *backoff); /* false once the limit has passed, never before */
rill_status gpu_fail_unfinished(const char *what, uint64_t ns) __attribute__((cold));

/* What the driver lacks for graphs; NULL: nothing. */
const char *gpu_graphs_missing(void);

/* A native graph of the object's steps, or of other operations in their places (NULL: none); `nodes` gets the last
 * native node of each, and is zeroed before.  And its end; NULL: nothing happens. */
rill_status gpu_graph_make(const struct rill__graph_exec *exec, struct rill__operation *const *operations,
                           gpu_graph_node *nodes, gpu_graph *out);
void gpu_graph_unmake(struct rill__device *device, gpu_graph graph);
/* Gives `count` steps from `first` on other operations, one each, by changing single nodes of the native execution
 * object: those that differ.  False: one takes more than that, or the driver refuses, and the graph has to be made
 * anew. */
bool gpu_graph_set_nodes(struct rill__graph_exec *exec, uint32_t first, uint32_t count,
                         struct rill__operation *const *operations);

/* After the driver has taken a graph of these operations over: enables nodes that were disabled and are not any more.
 */
void gpu_graph_enable_nodes(struct rill__graph_exec *exec, struct rill__operation *const *operations);

/* Slots of devices. */
bool gpu_can_access_peer(struct rill__device *device, struct rill__device *memory_of, const char **why);
rill_status gpu_set_peer(struct rill__device *device, struct rill__device *memory_of, bool on);

/* Slots of modules for compiling at run time. */
rill_status gpu_compiler(struct rill__device *device, char *identity, size_t size);
rill_status gpu_compile(struct rill__device *device, const struct rill__compile *request,
                        struct rill__compiled *result);

/* The copy_3d slot of memory. */
rill_status gpu_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *copy);

/* The fill slots of memory. */
rill_status gpu_fill(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                     size_t pattern_size, size_t count);
rill_status gpu_fill_2d(struct rill__stream *stream, const struct rill__fill_2d *fill);

/* The host_call slot of streams. */
rill_status gpu_host_call(struct rill__stream *stream, rill_host_fn fn, void *user);

/* Slots of events and memory for sharing with other processes. */
rill_status gpu_ipc_export_event(struct rill__event *event, struct rill__ipc_native *out);
rill_status gpu_ipc_import_event(struct rill__event *event, const struct rill__ipc_native *from);
rill_status gpu_ipc_export_memory(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out);
rill_status gpu_ipc_import_memory(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                  void **out);
rill_status gpu_ipc_close(struct rill__device *device, void *p, size_t size);

/* Slots of modules; in the vendor's image.c. */
const char *gpu_recognize(const void *data, size_t size);
const char *gpu_read_parts(const void *data, size_t size, struct rill__image *out);
const char *gpu_read_kernels(const rill_bundle_image *part, struct rill__image *out);

/* Blocks until the work of all devices of the vendor is done. */
rill_status gpu_wait_for_all(void);

/* Before a copy: the vendors read a pageable source at the call, so earlier host calls, which may write it, are waited
 * for first. */
rill_status gpu_wait_for_host_calls(struct rill__stream *stream, const void *src);
static inline bool gpu_has_host_calls(const struct gpu_stream *part) {
  return atomic_load_explicit(&part->host_calls, memory_order_relaxed) !=
         atomic_load_explicit(&part->host_calls_done, memory_order_relaxed);
}

/* Whether a capture involves the stream; false if the driver does not say. */
bool gpu_is_captured(struct rill__stream *stream);

/* A native stream of the device's: one that was used before, or a new one. */
rill_status gpu_native_create(struct rill__device *device, int32_t priority, bool blocking, struct gpu_native **out);
/* For a native stream of others that rill is to destroy; NULL: no host memory.  And the reverse. */
struct gpu_native *gpu_native_new(gpu_stream_handle handle);
void gpu_native_forget(struct gpu_native *native);
/* The stream has ended, and its work is complete.  `reuse`: nobody else has its handle.  False if the native stream may
 * still be looked at by a call that is under way: to be called again. */
bool gpu_native_end(struct rill__stream *stream, struct gpu_native *native, bool reuse);

/* Around a look at an event's place and a call of the vendor's about that event. */
int gpu_look_begin(void);
void gpu_look_end(int slot);
/* Whether the stream of the event's last record has ended: with it, the event is complete. */
bool gpu_event_is_over(struct rill__event *event);
/* The same of a native event of this layer's own, last recorded on a stream of that place; and whether it is complete:
 * false too if asking would break what the stream captures. */
bool gpu_mark_is_over(uint64_t place);
bool gpu_mark_is_complete(gpu_event_handle mark, uint64_t place);
/* What has become of the stream of a place, and the handle of its native stream; NULL if the place does not say. */
enum gpu_place_state { GPU_PLACE_LIVES, GPU_PLACE_USED_AGAIN, GPU_PLACE_DESTROYED };
enum gpu_place_state gpu_look_at_place(uint64_t place, gpu_stream_handle *handle);

#pragma GCC visibility pop

/* ---- calling the vendor ---- */

/* Fails as a vendor call did. */
#define GPU_FAIL(device, result, field) gpu_fail((device), (result), gpu_symbols.field)

/* One vendor call, or the calling function fails: GPU_TRY(device, device_get, (&native, ordinal)). */
#define GPU_TRY(device, field, arguments)                                                        \
  do {                                                                                           \
    const gpu_result try_result_ = GPU_CALL(field, arguments);                                   \
    if (RILL__UNLIKELY(try_result_ != GPU_SUCCESS)) return GPU_FAIL(device, try_result_, field); \
  } while (0)

/* Makes the device's context the current one, until gpu_leave.  A failure is the vendor's code with its sign turned:
 * the call that was to follow did not run, and its name does not belong into the text (gpu_fail). */
static inline gpu_result gpu_enter(struct rill__device *device, struct gpu_scope *scope) {
  const struct gpu_device *part = gpu_device_of(device);
  return -gpu_vendor_enter(scope, part->native, part->context);
}

static inline void gpu_leave(struct gpu_scope *scope) { gpu_vendor_leave(scope); }

/* One vendor call inside a scope.  GPU_CALL_INSIDE takes the expression that makes the call instead of its parts. */
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

/* One vendor call whose handles say all, inside a scope if `inside`.  A driver that still wants a current
 * context refuses the call before it does anything, and gets it in a second try. */
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
