/* engine.h: a GPU driver in host memory, without a vendor's names.
 *
 * cuda.c and hip.c are thin front ends over it: each entry point enters through FAKE_CALL, which counts the
 * call, makes it fail or hang if a test asked for that, and runs the engine's function under one lock.  Work is
 * really asynchronous: each stream has a thread that takes operations from a queue.
 *
 * Error codes are plain ints in the numbers that CUDA and HIP share.  Every function here expects the engine's
 * lock to be held unless its comment says otherwise; one that blocks lets the lock go meanwhile.
 */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H

#include "image.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rill/device/cpu_image.h>

/* More stand in image.h. */
enum {
  FAKE_INVALID_VALUE = 1,
  FAKE_NOT_INITIALIZED = 3,
  FAKE_NO_DEVICE = 100,
  FAKE_INVALID_DEVICE = 101,
  FAKE_INVALID_CONTEXT = 201,
  FAKE_INVALID_HANDLE = 400,
  FAKE_NOT_FOUND = 500,
  FAKE_NOT_READY = 600,
  FAKE_ILLEGAL_ADDRESS = 700,
  FAKE_PEER_ALREADY_ENABLED = 704,
  FAKE_PEER_NOT_ENABLED = 705,
  FAKE_CONTEXT_IS_DESTROYED = 709,
  FAKE_ASSERT = 710,
  FAKE_ALREADY_REGISTERED = 712,
  FAKE_NOT_REGISTERED = 713,
  FAKE_COOPERATIVE_TOO_LARGE = 720,
  FAKE_NOT_PERMITTED = 800,
  FAKE_NOT_SUPPORTED = 801,
  FAKE_CAPTURE_UNSUPPORTED = 900,
  FAKE_CAPTURE_INVALIDATED = 901,
  FAKE_CAPTURE_ISOLATION = 905,
  FAKE_CAPTURED_EVENT = 907,
  FAKE_CAPTURE_WRONG_THREAD = 908,
  FAKE_GRAPH_UPDATE_FAILURE = 910,
  FAKE_INVALID_CLUSTER_SIZE = 912,
};

enum { FAKE_MAX_DEVICES = 16, FAKE_MAX_THREADS_PER_BLOCK = 1024 };
enum {
  FAKE_COMPUTE_UNITS = 4,
  FAKE_THREADS_PER_UNIT = 2048,
  FAKE_BLOCKS_PER_UNIT = 32,
  FAKE_REGISTERS_PER_UNIT = 65536,
  FAKE_REGISTERS = 32, /* of every kernel's threads */
  FAKE_ACCESS_WINDOW = 4 << 20
};

/* ---- what a front end tells the engine (constants; defined in cuda.c and hip.c) ---- */

struct fake_vendor {
  const char *backend;                   /* of bundle images: "cuda" or "hip" */
  const char *library;                   /* for messages: "fake libcuda" */
  const char *default_target;            /* "sm_90" */
  int default_version;                   /* 13000 */
  int bad_shape;                         /* what a launch with an impossible shape answers */
  bool needs_init;                       /* calls before init fail */
  uint32_t shared_default, shared_optin; /* bytes of a block */
  uint32_t shared_per_unit;              /* bytes of a compute unit ... */
  uint32_t shared_reserved;              /* ... of which each block takes these besides its own */
  int priority_least, priority_greatest;
};
extern const struct fake_vendor fake_vendor;

/* Where versions of a vendor's library behave differently; all false: as the newest CUDA driver does. */
struct fake_quirks {
  bool captures_survive; /* calls that a capture forbids are refused, and invalidate nothing */
  /* What looks at the stream of an event's last record, which must not have ended (it is memory that was freed):
   * questions, hipEventSynchronize, waits, and a stream's own getters. */
  bool query_looks, synchronize_looks, wait_looks, getters_look;
  bool questions_break_captures; /* of an event last recorded on a stream that captures now, before that */
  bool waits_are_isolated;       /* waiting for such an event is refused */
  bool shared_records_are_lost;  /* other processes never see a record of a shared event, nor does this one */
  bool shared_waits_end;         /* streams do not wait for the 33rd record of a shared event and later ones */
  bool late_pitched_sources;     /* copies of 2 and 3 dimensions read pageable memory when their turn comes */
  bool silent_callbacks;         /* stream callbacks do not get faults */
  bool registers_twice;          /* host memory that is registered already */
  bool leaks_events;             /* that could not be opened */
  bool graphs_overlap;           /* launches of one execution object on several streams */
  bool graphs_read_early;        /* a launch reads the pageable sources of the graph's copies before any node runs */
  bool flat_pageable_rows;       /* such a copy of rows to pageable memory ignores the gaps between them */
  bool edges_are_lost;           /* of graphs with branches (graphs.c) */
  bool arguments_leak;           /* of kernel nodes, until their execution object is destroyed */
  bool updates_are_partial;      /* what an update has changed before it is refused stays changed */
};
const struct fake_quirks *fake_quirks(void); /* no lock needed */

/* Kinds of calls that captures forbid. */
enum fake_safety {
  FAKE_SAFE,
  FAKE_UNSAFE,            /* while a capture in global mode is under way, unless the thread is in relaxed mode */
  FAKE_UNSAFE_ALWAYS,     /* the same, in relaxed mode too */
  FAKE_WAITS_FOR_CONTEXT, /* as FAKE_UNSAFE, and every capture of the current context in any mode */
  FAKE_WAITS_FOR_ALL      /* every capture, in any mode */
};
enum fake_safety fake_safety_of(const char *function);

/* The devices that an environment variable of the vendor's leaves; NULL: no such variable is set. */
const char *fake_device_mask(void);

/* The context that creation calls and special streams use on this thread. */
struct fake_context;
int fake_current_context(struct fake_context **out);

/* ---- calls.c: the way into every entry point ---- */

struct fake_call {
  const char *name;  /* as written in C: "cuMemAlloc_v2" */
  bool free_of_init; /* may be called before init, in a forked child too */
  bool known;        /* in the list of calls */
  uint64_t count;
  enum fake_safety safety;
  struct fake_call *next;
};

/* Takes the lock and gives FAKE_OK, or gives the error to return and has let the lock go. */
int fake_enter(struct fake_call *call);
/* Lets the lock go; returns `code`. */
int fake_leave(int code);

#define FAKE_CALL_AS(type, before_init, expression)                                      \
  do {                                                                                   \
    static struct fake_call call_ = { .name = __func__, .free_of_init = (before_init) }; \
    const int entered_ = fake_enter(&call_);                                             \
    return (type)(entered_ != FAKE_OK ? entered_ : fake_leave(expression));              \
  } while (0)

void fake_lock(void);
void fake_unlock(void);
/* Blocks until `condition` is signalled; the lock is free meanwhile. */
void fake_wait(pthread_cond_t *condition);

void fake_set_initialized(void);
/* The thread runs a host function: calls of the vendor's functions are refused. */
void fake_set_in_host_function(bool inside);

/* One line to stderr. */
void fake_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, then abort: for damage that no driver would report. */
_Noreturn void fake_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- options.c: the environment, read once ---- */

struct fake_options {
  int devices;        /* RILL_FAKE_DEVICES */
  int version;        /* RILL_FAKE_VERSION */
  int init_code;      /* RILL_FAKE_INIT: what the vendor's init answers */
  uint64_t memory;    /* RILL_FAKE_MEMORY, MiB of each device */
  char target[64];    /* RILL_FAKE_TARGET */
  bool reuse_handles; /* RILL_FAKE_REUSE */
  bool summary;       /* RILL_FAKE_SUMMARY */
  bool peers;         /* RILL_FAKE_PEERS: devices reach each other's memory */
  bool yields;        /* RILL_FAKE_YIELD: other threads run after each call */
  uint64_t query_ns;  /* processor time that a query of an event takes */
};
const struct fake_options *fake_options(void); /* no lock needed */

/* ---- handles.c: what callers hold; a stale or forged one is never dereferenced ---- */

enum fake_kind {
  FAKE_FREE_SLOT,
  FAKE_CONTEXT,
  FAKE_STREAM,
  FAKE_EVENT,
  FAKE_MODULE,
  FAKE_FUNCTION,
  FAKE_GRAPH,
  FAKE_GRAPH_NODE,
  FAKE_GRAPH_EXEC,
  FAKE_USER_OBJECT,
  FAKE_KINDS
};
extern const char *const fake_kind_names[FAKE_KINDS];

void *fake_handle_new(enum fake_kind kind, void *object); /* NULL: out of memory */
void *fake_handle_get(enum fake_kind kind, const void *handle);
/* Returns whether this was a handle of this kind that has ended. */
bool fake_handle_was(enum fake_kind kind, const void *handle);
void fake_handle_end(void *handle);
void fake_handle_set_reuse(bool on);
size_t fake_handle_live(enum fake_kind kind);

/* ---- devices.c ---- */

struct fake_device {
  int ordinal, fault; /* fault: sticky */
  bool paused;        /* no operation starts */
  int fault_next_launch;
  pthread_cond_t resumed;
  pthread_mutex_t host_functions; /* one host function at a time, as real drivers may do */
  uint64_t memory_used;
  struct fake_context *primary;
  bool peers[FAKE_MAX_DEVICES];
};

struct fake_context {
  struct fake_device *device;
  void *handle;
  bool primary, alive;
  unsigned retained, flags;
  struct fake_stream *null_stream;
  struct fake_stream *streams; /* those that still have work too */
  struct fake_event *events;
  struct fake_module *modules;
};

int fake_device_get(int ordinal, struct fake_device **out);
int fake_primary_retain(int ordinal, struct fake_context **out);
int fake_primary_release(int ordinal);
/* Destroys everything in the primary context, however often it is retained. */
int fake_primary_reset(int ordinal);
int fake_context_create(int ordinal, unsigned flags, struct fake_context **out);
int fake_context_destroy(struct fake_context *context);
/* NULL handle: the current context. */
int fake_context_get(const void *handle, struct fake_context **out);
/* FAKE_OK, or why nothing can be done with it: a fault, its end. */
int fake_context_check(const struct fake_context *context);
int fake_context_synchronize(struct fake_context *context);
void fake_device_fault(struct fake_device *device, int code);
int fake_peer_enable(struct fake_device *from, struct fake_device *to, bool on);

/* ---- streams.c ---- */

/* An operation: one entry of a stream's queue, and the point in it that events and waits refer to. */
struct fake_op {
  unsigned refs;
  bool done;
  uint64_t time_ns; /* when it was done */
  pthread_cond_t finished;
  /* Runs without the lock; status is the device's fault.  NULL: a marker.  `finish` frees what `data` holds and
   * always runs; without the lock too. */
  void (*run)(void *data, int status);
  void (*finish)(void *data);
  void *data;
  size_t argument_bytes;           /* of a kernel */
  bool after_fault, host_function; /* after_fault: runs after a fault too */
  size_t after_count;
  struct fake_op **after; /* operations of other streams */
  struct fake_op *next;
};

struct fake_stream {
  struct fake_context *context;
  void *handle;
  uint64_t id;
  int priority;
  unsigned flags;
  bool null, blocking, ended, has_thread;
  int capture;                /* FAKE_CAPTURE_NONE ... */
  int capture_mode;           /* FAKE_CAPTURE_GLOBAL ... */
  const void *capture_thread; /* which began it */
  struct fake_graph *capture_graph;
  void **capture_nodes; /* what the next node comes after, by handle */
  size_t capture_count;
  struct fake_stream *next_capturing;
  uint64_t owner;                      /* a per-thread stream: its thread's number, else 0 */
  struct fake_op *first, *last_queued; /* queue */
  struct fake_op *last;                /* the latest operation, done or not */
  pthread_cond_t work;
  struct fake_stream *next;
};

enum { FAKE_STREAM_NON_BLOCKING = 1 };

int fake_stream_create(unsigned flags, int priority, void **out);
int fake_stream_destroy(void *handle);
/* Any stream handle, 0, 1 and 2 included; checks context and fault. */
int fake_stream_get(const void *handle, struct fake_stream **out);
/* Ends the program if the stream has ended: the library would read memory that it has freed. */
void fake_stream_look(const void *handle, const char *what);
int fake_stream_query(const void *handle);
int fake_stream_synchronize(const void *handle);

struct fake_op *fake_op_new(void (*run)(void *data, int status), void (*finish)(void *data), void *data);
void fake_op_release(struct fake_op *op); /* NULL: nothing happens */
/* Makes `op`, not yet submitted, run after `other`. */
int fake_op_after(struct fake_op *op, struct fake_op *other);
/* Queues `op` and takes it over, also on failure. */
int fake_submit(struct fake_stream *stream, struct fake_op *op);
/* Blocks until `op` is done. */
void fake_op_wait(struct fake_op *op);
/* Ends a stream with its context: work still queued has been waited for. */
void fake_stream_end(struct fake_stream *stream);
struct fake_stream *fake_null_stream_new(struct fake_context *context);

/* A function of the caller's, in stream order.  The front end knows its type. */
struct fake_host_call {
  void (*invoke)(const struct fake_host_call *call, int status);
  void (*function)(void); /* cast back by invoke */
  void *stream, *user;
  bool notified_of_faults; /* runs after a fault too, as stream callbacks do; a host function then never runs */
};
int fake_host_call(const struct fake_host_call *call);
void fake_run_host_call(void *data, int status);

/* ---- captures.c ---- */

enum { FAKE_CAPTURE_NONE, FAKE_CAPTURE_ACTIVE, FAKE_CAPTURE_BROKEN };
enum { FAKE_CAPTURE_GLOBAL, FAKE_CAPTURE_THREAD, FAKE_CAPTURE_RELAXED };

int fake_capture_begin(void *stream, int mode);
int fake_capture_end(void *stream, void **graph);
/* Sets the calling thread's mode, and returns the one before. */
int fake_capture_exchange(int *mode);
/* The stream ends, with what it captures. */
void fake_capture_drop(struct fake_stream *stream);
/* FAKE_OK if the stream is not in a capture; else invalidates it, as a query or synchronize does. */
int fake_capture_refuse(struct fake_stream *stream);
/* FAKE_OK if no capture forbids such a call of this thread; else invalidates those that do. */
int fake_capture_check(enum fake_safety safety);

/* Makes the operation, which is taken over, a node. */
int fake_capture_add(struct fake_stream *stream, struct fake_op *op);
/* Of a stream that captures: its graph and what its next node comes after. */
int fake_capture_info(const void *stream, int *status, void **graph, void *const **nodes, size_t *count);

/* ---- graphs.c ---- */

struct fake_graph;
struct fake_graph_place {
  const void *graph;
  void *const *after;
  size_t count;
};
struct fake_graph *fake_graph_new(void);
void *fake_graph_handle(const struct fake_graph *graph);
void fake_graph_release(struct fake_graph *graph);
int fake_graph_check_nodes(const struct fake_graph *graph, void *const *nodes, size_t count);
int fake_graph_capture(struct fake_graph *graph, const struct fake_graph_place *place, struct fake_op *op, void **out);
int fake_graph_destroy(void *graph);
int fake_graph_create(void **out);
/* The operation of a node, a kernel, copy or fill: taken over, if it succeeds. */
enum fake_node {
  FAKE_NODE_OTHER,
  FAKE_NODE_KERNEL,
  FAKE_NODE_COPY,
  FAKE_NODE_COPY_OF_ROWS, /* where the vendor has a class of its own for it */
  FAKE_NODE_FILL,
  FAKE_NODE_FILL_OF_ROWS
};
int fake_graph_add_op(const struct fake_graph_place *place, enum fake_node kind, struct fake_op *op, void **out);
enum fake_node fake_graph_kind(const void *node);
int fake_graph_add_edges(const void *graph, void *const *from, void *const *to, size_t count);
int fake_graph_add_empty(const struct fake_graph_place *place, void **out);
int fake_graph_add_event(const struct fake_graph_place *place, void *event, bool record, void **out);
int fake_graph_add_host(const struct fake_graph_place *place, const struct fake_host_call *call, void **out);
int fake_graph_add_child(const struct fake_graph_place *place, const void *child, void **out);
int fake_graph_count(const void *graph, size_t *count);
int fake_graph_instantiate(const void *graph, void **out);
int fake_graph_launch(const void *exec, const void *stream);
int fake_graph_exec_update(const void *exec, const void *graph, void **failing);
/* Takes what the operation holds over, if it succeeds. */
int fake_graph_exec_set(const void *exec, const void *node, enum fake_node kind, struct fake_op *op);
int fake_graph_exec_enable(const void *exec, const void *node, bool enabled);
int fake_graph_exec_set_host(const void *exec, const void *node, const struct fake_host_call *call);
int fake_graph_upload(const void *exec, const void *stream);
int fake_graph_exec_destroy(void *exec);
/* User objects: references are owned by the caller, graphs (child graphs have their own), execution objects and
 * launches; the destructor is called on a thread of its own. */
int fake_object_create(void **out, void *data, void (*destroy)(void *data), unsigned refs, unsigned flags);
int fake_object_release(const void *object, unsigned refs);
int fake_graph_retain_object(const void *graph, const void *object, unsigned refs, unsigned flags);

/* ---- events.c ---- */

struct fake_shared_event;

struct fake_event {
  struct fake_context *context;
  void *handle;
  unsigned flags;
  struct fake_shared_event *shared; /* NULL: this process's alone */
  bool in_capture;                  /* last recorded in a capture */
  struct fake_op *recorded;         /* NULL: never */
  const void *stream;               /* of the last record: its handle, NULL for special ones */
  struct fake_event *next;
};

enum { FAKE_EVENT_BLOCKING_SYNC = 1, FAKE_EVENT_DISABLE_TIMING = 2, FAKE_EVENT_INTERPROCESS = 4 };

int fake_event_create(unsigned flags, void **out);
int fake_event_destroy(void *handle);
int fake_event_record(void *event, const void *stream);
void fake_event_spend(void); /* RILL_FAKE_QUERY_NS; without the lock */
int fake_event_query(const void *event);
int fake_event_synchronize(const void *event);
int fake_event_elapsed(const void *start, const void *end, float *ms);
int fake_stream_wait(const void *stream, const void *event);
void fake_event_end(struct fake_event *event);

/* A new event; `shared` is NULL or taken over, in success only. */
int fake_event_of(struct fake_context *context, unsigned flags, struct fake_shared_event *shared, void **out);

/* ---- ipc.c ---- */

enum { FAKE_IPC_HANDLE = 64 };

/* Memory in a file without a name; fd -1: closed, or another process's. */
struct fake_file {
  int fd;
  void *address;
  size_t size;
  uint64_t inode;
};
bool fake_file_new(size_t size, struct fake_file *out);
void fake_file_close(struct fake_file *file); /* it stays mapped */
void fake_file_unmap(struct fake_file *file);

struct fake_shared_event *fake_shared_new(void); /* NULL: out of memory */
void fake_shared_end(struct fake_shared_event *event);
/* Operations, not yet submitted: one that is the event's next record, one that waits for its last.  NULL: out of
 * memory. */
struct fake_op *fake_shared_record(struct fake_shared_event *event);
struct fake_op *fake_shared_wait(struct fake_shared_event *event);
uint32_t fake_shared_records(const struct fake_shared_event *event);
bool fake_shared_is_done(const struct fake_shared_event *event);
void fake_shared_synchronize(struct fake_shared_event *event);

/* Handles are FAKE_IPC_HANDLE bytes. */
int fake_ipc_export_event(const void *event, void *out);
int fake_ipc_open_event(const void *bytes, void **out);
int fake_ipc_export_memory(const void *p, void *out);
int fake_ipc_open_memory(const void *bytes, void **out);

/* ---- memory.c ---- */

enum fake_memory {
  FAKE_DEVICE_MEMORY = 1,
  FAKE_HOST_MEMORY,
  FAKE_MANAGED_MEMORY,
  FAKE_VARIABLE,
  FAKE_IMPORTED_MEMORY,
  FAKE_REGISTERED
};

int fake_memory_alloc(enum fake_memory kind, size_t size, void **out);
/* Waits for the context's work. */
int fake_memory_free(enum fake_memory kind, void *p);
/* A variable of a module: memory that is not the engine's to free. */
int fake_memory_add(struct fake_context *context, void *p, size_t size);
void fake_memory_forget(void *p);
/* The block that p lies in. */
int fake_memory_range(const void *p, void **base, size_t *size);
/* The kind of memory that p lies in; false: the driver does not know it. */
bool fake_memory_kind(const void *p, enum fake_memory *kind);
bool fake_memory_device(const void *p, int *ordinal);
/* The file of device memory that begins at p. */
int fake_memory_file(const void *p, struct fake_file *out, struct fake_context **context);
/* Memory of another process: takes the file over, in success only.  The same file again gives the same address, and
 * each time has its close. */
int fake_memory_import(struct fake_context *context, const struct fake_file *file, void **out);
bool fake_memory_open_again(struct fake_context *context, uint64_t inode, void **out);
int fake_memory_close(void *p);
void fake_memory_end_context(struct fake_context *context);
size_t fake_memory_live(void);
/* Host memory of the caller's, known from then on.  Unregistering waits for nothing. */
int fake_memory_register(void *p, size_t size);
int fake_memory_unregister(void *p);
/* Whether the bytes are managed memory. */
int fake_memory_check_managed(const void *p, size_t size);
/* An operation that does nothing but check its range. */
int fake_prefetch(const void *stream, const void *p, size_t size);

/* What tests look at and set: bytes that copies and fills were asked to write; whether they do. */
extern uint64_t fake_memory_bytes;
extern bool fake_memory_weightless;

struct fake_copy {
  char *dst;
  const char *src;
  size_t dst_pitch, src_pitch, width, height;
  size_t dst_slice, src_slice, depth; /* from slice to slice; depth 0 is 1 */
};
/* Checks both ranges; reads a pageable source now; blocks for a pageable destination. */
int fake_copy(const void *stream, const struct fake_copy *copy, bool blocking);
/* The operation of a node, which is checked as drivers check nodes. */
int fake_copy_node(const struct fake_copy *copy, struct fake_op **out);
/* The operation that a launch makes of such a node's, if it has to differ; else NULL. */
int fake_copy_at_launch(const void *node_data, struct fake_op **out);

/* `height` rows of `count` elements of 1, 2 or 4 bytes. */
struct fake_fill {
  char *dst;
  size_t pitch, element, count, height;
  uint32_t value;
};
int fake_fill(const void *stream, const struct fake_fill *fill);
int fake_fill_node(const struct fake_fill *fill, struct fake_op **out);

/* ---- modules.c ---- */

struct fake_function {
  void *handle;
  struct fake_module *module;
  const char *name;
  const rill_cpu_kernel *host;
  uint32_t static_shared, dynamic_limit;
  bool non_portable; /* clusters of more than 8 blocks are allowed */
  struct fake_function *next;
};

struct fake_module {
  struct fake_context *context;
  void *handle;
  struct fake_image image;
  int host_file; /* open while the library is; or -1 */
  void *host_library;
  const rill_cpu_image_table *host;
  struct fake_function *functions;
  struct fake_module *next;
};

int fake_module_load(const void *data, void **out);
int fake_module_unload(void *handle);
int fake_module_function(const void *module, const char *name, void **out);
int fake_module_global(const void *module, const char *name, void **p, size_t *size);
int fake_function_get(const void *handle, struct fake_function **out);
/* Offset and size of an argument in a packed buffer; INVALID_VALUE past the last. */
int fake_function_parameter(const void *function, size_t index, size_t *offset, size_t *size);
/* Blocks that run on a compute unit at a time; and the size of block that lets most threads do so, with the number of
 * such blocks that fill the device.  limit 0: none. */
int fake_occupancy(const void *function, int threads, size_t shared, int *blocks);
int fake_suggest_block(const void *function, size_t shared, int limit, int *threads, int *blocks);
void fake_module_end(struct fake_module *module);

struct fake_launch {
  uint32_t grid[3], block[3], shared;
  void **args;                 /* pointers to values, or */
  const unsigned char *packed; /* all values at their offsets */
  size_t packed_size;
  bool cooperative;
  uint32_t cluster[3]; /* 0, 0, 0: none */
  void *event;         /* recorded after the kernel; or NULL */
  uint64_t carried;    /* bits of the numbers that CUDA gives to launch attributes */
};
/* Reads the `extra` argument of the vendors' launches into `packed`; `end` ends the list. */
int fake_launch_extra(struct fake_launch *launch, void **extra, const void *end);
int fake_launch(const void *function, const void *stream, const struct fake_launch *launch);
/* Whether blocks, clusters and the device fit together. */
int fake_launch_check(const void *function, const struct fake_launch *launch);
/* The operation of such a launch; for a node, of the current context. */
int fake_launch_node(const void *function, const struct fake_launch *launch, struct fake_op **out);
int fake_launch_op(const void *function, struct fake_context *context, const struct fake_launch *launch,
                   struct fake_op **out);
/* Attributes of the last launch. */
extern uint64_t fake_launch_carried;

/* ---- blocks.c: runs a kernel's host code; no lock ---- */

/* Lanes of a warp: gfx9 has 64, all others 32. */
uint32_t fake_warp_size(void);

/* FAKE_OK, or FAKE_ASSERT if an assertion failed in one of its threads. */
int fake_run_grid(const rill_cpu_kernel *kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                  void *const *args);

/* ---- for missing.c, from the front end; no lock ---- */

/* The driver's version that the exported function came with; 0: it always was there. */
int fake_first_version(const char *name);

#endif
