/* The contract of a backend: all that the author of one reads.
 *
 * A backend is one `struct rill__backend`: a name, the sizes of its own parts of the objects, and a table of
 * functions for each kind of object.  Core allocates an object with the backend's part after it (reached with
 * rill__part), validates every call, and enters the backend through RILL_DISPATCH only.  Backends trust core: what
 * a slot's comment says of its arguments holds.
 *
 * Rules for every slot
 * - It runs on any thread, several at once, on one object too.
 * - It leaves the calling thread's native current device or context as it found it.
 * - It blocks only if its comment says so, and then holds no lock.
 * - On failure it has enqueued nothing, and returns what rill__fail, rill__fail_native or rill__device_lost
 *   returned.  A fault of work enqueued earlier goes through rill__device_lost.
 * - A slot marked optional may be NULL: that is the missing capability.
 */
#ifndef RILL_CORE_BACKEND_H
#define RILL_CORE_BACKEND_H

#include "core/diagnose/settings.h"
#include "core/kernel/image.h"
#include "core/object/cancel.h"
#include "core/object/handle.h"
#include "core/object/locks.h"

#include <pthread.h>
#include <rill/bundle.h>
#include <rill/rill.h>

struct rill__backend;
struct rill__stream;
struct rill__event;
struct rill__global;

/* ---- objects, as core and backends share them ---- */

/* Bytes for core's own fields of an object (core/object/core.h). */
#define RILL__OF_CORE(bytes) _Alignas(8) unsigned char of_core[bytes]

struct rill__device {
  struct rill__object base;
  const struct rill__backend *backend;
  char name[24];                /* "cpu"; of GPUs with ":" and the ordinal */
  rill_device_info info;        /* filled in by the backend's init, but for the clocks */
  uint64_t max_threads_per_dim; /* grid times block in one dimension; 0: no limit of its own */
  uint64_t max_access_window;   /* bytes of RILL_ATTR_ACCESS_POLICY */
  _Atomic bool active;          /* `activate` has succeeded */
  _Atomic rill_status lost;     /* not RILL_OK: what every submission, wait and query returns */
  _Atomic uint32_t checked;     /* how many modules are loaded whose kernels check what they access; one more with
                                 * RILL_CHECK=memory */
  bool reuses_early;            /* set by init: pools look for memory that is complete at each allocation */
  RILL__OF_CORE(1024);
};

struct rill__stream {
  struct rill__object base;
  uint64_t number;  /* unique in the process: the id where the driver has none */
  int32_t priority; /* native, as the stream runs with it */
  bool blocking;
  bool imported, owned; /* owned: ends with the last reference */
  uintptr_t native;     /* of an imported one, and of one whose native handle was given out */
  _Atomic bool foreign; /* others may submit to it: its completion is not remembered */
  RILL__OF_CORE(152);
};

struct rill__event {
  struct rill__object base;
  bool timing, blocking_sync, interprocess;
  bool signaled; /* created as recorded and complete */
  bool imported, owned;
  uintptr_t native;
  _Atomic bool foreign; /* others may record it: its completion is not remembered */
  RILL__OF_CORE(208);
};

struct rill__module {
  struct rill__object base;
  RILL__OF_CORE(256);
};

struct rill__kernel {
  struct rill__object base;
  struct rill__module *module;      /* referenced */
  struct rill__image own;           /* it alone */
  const rill_bundle_kernel *source; /* own.kernels: symbol and arguments, which may be RILL__ARGS_UNKNOWN */
  const char *name;                 /* in the source, for texts; the symbol if that is not known */
  const char *lasting_name;         /* the same, for as long as the process runs; NULL if there were too many */
  uint32_t max_threads;             /* of a block of this kernel */
  uint32_t block[3];                /* the only shape of a block that it runs in; 0: any */
  bool tells_accesses;              /* it takes launches with a token */
  uint64_t static_shared;           /* bytes; 0 if unknown */
  uint32_t registers;               /* of a thread; 0 if unknown */
  uint64_t local_bytes, constant_bytes;
  uint32_t required_cluster[3];    /* blocks; 0, 0, 0: any */
  _Atomic uint64_t shared_allowed; /* dynamic bytes that a launch may ask for without allow_shared */
  RILL__OF_CORE(16);
};

/* A value for a variable of the kernel's module, written before the kernel runs.  `from` is pinned memory that stays as
 * it is until the stream has passed the launch. */
struct rill__constant {
  void *to;
  const void *from;
  size_t size; /* > 0 */
};

/* What few launches have.  A value counts if `set` has the bit 1 << RILL_ATTR_* of its attribute. */
struct rill__launch_extras {
  uint32_t set;
  bool serialize;            /* RILL_ATTR_PROGRAMMATIC_SERIALIZATION: the kernel orders itself after the one before */
  int32_t priority;          /* native, in range */
  struct rill__event *event; /* of the same device, without timing, not shared */
  bool trigger_at_start;     /* of a block */
  struct {
    void *base;
    size_t size;
    float hit_ratio;
    uint32_t hit, miss; /* RILL_ACCESS_* */
  } access;
  int32_t sync_domain; /* 0 or 1 */
  int32_t carveout;    /* percent, or -1 */
  const struct rill__constant *constants;
  size_t constant_count;
};

/* A launch as a backend gets it: every dimension at least 1, limits checked. */
struct rill__launch {
  struct rill__kernel *kernel;
  uint32_t grid[3], block[3], shared_mem_bytes;
  bool clustered;      /* only if the device supports clusters */
  uint32_t cluster[3]; /* blocks, if clustered; the grid is a multiple */
  void *const *args;   /* a pointer to each value; read during the call; sizes are in kernel->source, if known */
  bool reaches_out;  /* if the backend has `may_be_address`: an argument has an address that rill does not know in it */
  const char *label; /* may be NULL */
  uint64_t frees;    /* if device->checked is not 0: what rill__access_find is to be given for it */
  uint64_t token;    /* only if kernel->tells_accesses: not 0 asks for rill__accessed, once, with it */
  const struct rill__launch_extras
      *extras; /* NULL: none.  No other work of the stream comes between constants and kernel */
};

/* A copy of `depth` slices of `height` rows of `width` bytes each; none is 0.  Each pitch is from row to row or slice
 * to slice, in bytes, and what it leaves between is not touched.  Kinds are as in the `copy` slot of memory. */
struct rill__copy_3d {
  void *dst;
  const void *src;
  uint32_t dst_kind, src_kind;
  size_t width, height, depth;
  size_t dst_pitch, dst_slice_pitch, src_pitch, src_slice_pitch; /* slice pitches mean nothing if depth is 1 */
};

/* A copy with a pageable end, cut into pieces that are copied one after another.  The host copies `by_host` of each
 * (rill__copy_rows), and the driver `by_driver`, which has no pageable end. */
struct rill__copy_piece {
  struct rill__copy_3d by_host, by_driver;
};
struct rill__staged_copy {
  enum { RILL__HOST_COPIES_ALONE, RILL__HOST_COPIES_FIRST, RILL__HOST_COPIES_LAST } order;
  size_t count;
  struct rill__copy_piece *pieces; /* ALONE: by_driver is not set */
};

enum { RILL__PATTERN_BYTES = 16 }; /* of a fill, at most */

/* A fill of `height` rows of `width` patterns of 1, 2, 4, 8 or 16 bytes each, neither 0; `dst` and the pitch, in bytes
 * from row to row, are multiples of the pattern's size.  The kind is as in the `copy` slot of memory. */
struct rill__fill_2d {
  void *dst;
  uint32_t dst_kind;
  size_t pitch, width, height;
  const void *pattern; /* read during the call */
  size_t pattern_size;
};

/* Work as data: constant once it is made (core/operation/operation.h).  There are thousands, so it is no object of a
 * handle, and small. */
struct rill__payload;
struct rill__operation {
  struct rill__device *device;
  char *label;                   /* the node's; or NULL */
  struct rill__payload *payload; /* owned; or NULL */
  _Atomic uint32_t refs;
  uint32_t kind; /* RILL_NODE_*; or one of core's own, which no backend gets */
  union {
    struct rill__launch launch; /* its kernel is kept; arguments and extras are owned */
    struct {
      struct rill__copy_3d copy;
      const struct rill__staged_copy *staged; /* how a step makes the copy, owned by the payload; NULL: as it is */
    };
    struct {
      struct rill__fill_2d rows; /* its pattern is here: */
      _Alignas(RILL__PATTERN_BYTES) unsigned char pattern[RILL__PATTERN_BYTES];
    } fill;
    struct {
      rill_host_fn fn;
      void *user;
    } host_call;
    struct rill__event *event; /* kept; of a record or a wait */
    uintptr_t others;          /* what others gave to the native stream: a native graph */
    struct {
      void *memory;       /* of an allocation, whose payload it is, or a free */
      _Atomic bool taken; /* of an allocation: core's, a step of an execution object stands for it */
    };
    struct { /* core's: of a prefetch */
      const void *p;
      size_t size;
    } prefetch;
    struct rill__graph_exec *exec; /* core's, kept: of a launch of it */
  };
  void *values[]; /* of a launch: pointers into the bytes after them */
};
void rill__operation_ref(struct rill__operation *operation);
void rill__operation_unref(struct rill__operation *operation);

/* A node of a graph that is to be executed.  In an array of them each comes after those that it depends on. */
struct rill__step {
  struct rill__operation *operation; /* kept */
  const uint32_t *after;             /* steps */
  uint32_t after_count;
};

/* A graph that can be launched.  Core lets one thread at a time use it. */
struct rill__graph_exec {
  struct rill__object base;
  uint32_t count;
  struct rill__step *steps;
  struct rill__object *attached; /* what is kept beside the steps, and by launches as they are; or NULL */
  RILL__OF_CORE(128);
};

/* A kernel source to be compiled, everything checked.  What stands here, with the compiler and the device's
 * architecture, decides what comes out. */
struct rill__compile {
  const char *source;
  const char *label;                  /* how messages name the source */
  const char *const *definitions;     /* "-DNAME=VALUE" and "-UNAME" in their order */
  const rill_compile_header *headers; /* those of the dialect, then the caller's */
  size_t definition_count, header_count, dialect_header_count;
  uint32_t standard; /* of C++: 17 or 20 */
  bool fuse;         /* products and sums, where the backend does that */
  bool debug;        /* lines for debuggers */
  bool closed;       /* nothing else is read: no file but those and the compiler's own */
};

/* What came out; both from malloc, NULL if there is none. */
struct rill__compiled {
  void *image;
  size_t size;
  char *log;
};

/* What the backend of one process hands to that of another, inside a rill_ipc_handle: bytes that only it reads. */
struct rill__ipc_native {
  unsigned char bytes[64];
};

/* ---- the tables ---- */

#define RILL__FOREVER UINT64_MAX

/* Why no device supports RILL_FEATURE_CONDITIONAL. */
#define RILL__NO_CONDITIONALS \
  "graphs have the same kinds of nodes on every device, and not every vendor has some under a condition"

struct rill__device_table {
  /* Looks for devices, once in the process.  Returns their number; if 0, `why`: a sentence with what was
   * tried, and perhaps lines of details.  If there seem to be more than that number, `why` says so. */
  uint32_t (*count)(char *why, size_t why_size);
  /* Fills in device->info, but for the clocks, for device number info.ordinal.  Creates no context. */
  rill_status (*init)(struct rill__device *device);
  /* Both in kHz, 0 if unknown.  Called when somebody wants to know: it takes some drivers tens of milliseconds. */
  void (*clocks)(struct rill__device *device, uint32_t *core, uint32_t *memory);
  /* Creates what the device needs before its first real use.  Called once, before any slot of the other tables,
   * or again if it failed. */
  rill_status (*activate)(struct rill__device *device);
  /* `why`: a static sentence if false, "" if true. */
  bool (*supports)(struct rill__device *device, uint32_t feature, const char **why);
  /* Blocks until all work of the device is done, foreign streams too. */
  rill_status (*synchronize)(struct rill__device *device);
  rill_status (*get_memory)(struct rill__device *device, uint64_t *free_bytes, uint64_t *total_bytes);
  /* Optional: without them no device accesses another one's memory.  Of two different devices of the backend.
   * `can_access_peer`: `why` as for supports. */
  bool (*can_access_peer)(struct rill__device *device, struct rill__device *memory_of, const char **why);
  /* Both are active.  Turns on what can_access_peer says is possible, or off; what is so already is no failure. */
  rill_status (*set_peer)(struct rill__device *device, struct rill__device *memory_of, bool on);
  /* Optional, both or none: how many threads of this process run the device's work at a time.  `set_workers`: up to
   * 1024; 0: the default. */
  void (*set_workers)(struct rill__device *device, uint32_t count);
  uint32_t (*get_workers)(struct rill__device *device);
  /* Optional.  The number of the device that a native stream other than 0, 1 and 2 belongs to.  Called before any
   * device has been activated, too. */
  rill_status (*of_native_stream)(uintptr_t native, uint32_t *ordinal);
};

struct rill__stream_table {
  /* Makes stream->priority (in range) and stream->blocking true. */
  rill_status (*create)(struct rill__stream *stream);
  /* Optional.  Takes stream->native, of this device and its primary context or refused; 0, 1 and 2 are the null,
   * legacy and per-thread streams, to be resolved at each later call.  Reads priority and blocking back. */
  rill_status (*import)(struct rill__stream *stream);
  /* Whether a released stream's work is done.  Core asks again later if it is not. */
  bool (*may_destroy)(struct rill__stream *stream);
  /* Ends a stream that `create` or `import` made, the native one only if stream->owned.  After `may_destroy`, when no
   * other thread finds the stream any more.  Returns false if that would block: core tries again later. */
  bool (*destroy)(struct rill__stream *stream);
  uintptr_t (*native)(struct rill__stream *stream);
  rill_status (*context)(struct rill__stream *stream, uintptr_t *out);
  /* Optional: the driver's number for the stream.  Without it, core's own. */
  rill_status (*id)(struct rill__stream *stream, uint64_t *out);
  /* Optional, with `import`.  Whether an imported stream other than 0, 1 and 2 is still the one that was imported. */
  rill_status (*validate)(struct rill__stream *stream, bool *same);
  /* Same device.  flags: RILL_EVENT_EXTERNAL or 0. */
  rill_status (*record)(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
  /* Same backend; the event has been recorded.  flags: RILL_EVENT_EXTERNAL or 0. */
  rill_status (*wait)(struct rill__stream *stream, struct rill__event *event, uint32_t flags);
  /* Blocks for `ns` at most (RILL__FOREVER: until done); RILL_ERROR_TIMEOUT, never early. */
  rill_status (*synchronize)(struct rill__stream *stream, uint64_t ns);
  rill_status (*is_complete)(struct rill__stream *stream, bool *out);
  rill_status (*is_capturing)(struct rill__stream *stream, bool *out);
  /* Runs fn by rill__call_host. */
  rill_status (*host_call)(struct rill__stream *stream, rill_host_fn fn, void *user);
};

/* Woken by a backend that has been asked to, once, on any thread, perhaps with locks of its own. */
struct rill__waker {
  void (*wake)(struct rill__waker *waker);
  _Alignas(8) unsigned char of_backend[96];
};

struct rill__event_table {
  /* Makes timing, blocking_sync and interprocess true, or refuses with UNSUPPORTED. */
  rill_status (*create)(struct rill__event *event);
  /* Optional.  Takes event->native. */
  rill_status (*import)(struct rill__event *event);
  void (*destroy)(struct rill__event *event);
  /* Optional: makes an event, recorded or not, as `create` left it.  With it, released events are used again. */
  void (*recycle)(struct rill__event *event);
  uintptr_t (*native)(struct rill__event *event);
  /* For an event that has been recorded. */
  rill_status (*is_ready)(struct rill__event *event, bool *out);
  /* As synchronize of streams. */
  rill_status (*synchronize)(struct rill__event *event, uint64_t ns);
  /* Optional, both or none: without them core asks again and again.  `notify`, of an event that has been recorded:
   * wakes the waker, perhaps during the call, when the record is complete or the device is lost; false if that is so
   * already, and the waker is not woken.  `notified`: frees what `notify` keeps, once after it has woken the waker. */
  bool (*notify)(struct rill__event *event, struct rill__waker *waker);
  void (*notified)(struct rill__event *event, struct rill__waker *waker);
  /* Both have timing, have been recorded and are complete; same device.  NOT_READY if one was recorded again. */
  rill_status (*elapsed)(struct rill__event *start, struct rill__event *end, float *ms);
  /* With RILL_FEATURE_EVENT_IPC: sharing with other processes.  The event was created with interprocess. */
  rill_status (*ipc_export)(struct rill__event *event, struct rill__ipc_native *out);
  /* Makes `event` another process's, of the same device; `destroy` ends it.  The bytes may be anything: NOT_FOUND if
   * they refer to nothing. */
  rill_status (*ipc_import)(struct rill__event *event, const struct rill__ipc_native *from);
};

/* What core knows of memory is a RILL_MEMORY_* of rill's public kinds, or this one. */
enum { RILL__MEMORY_PEER = 0x100 }; /* DEVICE, of another device of the backend than the stream's */

struct rill__memory_table {
  /* size > 0.  The address is a multiple of 256.  Fails with OUT_OF_MEMORY without text: core writes it. */
  rill_status (*alloc)(struct rill__device *device, size_t size, uint32_t kind, void **out);
  /* Frees memory of `alloc` once submitted work of the device is done; may block for that. */
  rill_status (*free)(struct rill__device *device, void *p, uint32_t kind);
  /* Optional: frees memory of `alloc` that no work uses, without waiting for other work. */
  rill_status (*free_unused)(struct rill__device *device, void *p, uint32_t kind);
  /* Optional: makes memory of others pinned, for all devices of the backend; and takes that back once submitted work
   * of all of them is done.  size > 0; no byte of it is in an allocation or another registered range. */
  rill_status (*host_register)(struct rill__device *device, void *p, size_t size);
  rill_status (*host_unregister)(struct rill__device *device, void *p);
  /* n > 0.  Kinds are what core knows of the pointers: DEVICE, PEER, PINNED (registered memory too), MANAGED, or
   * UNKNOWN if they are not rill's. */
  rill_status (*copy)(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *src, uint32_t src_kind,
                      size_t n);
  /* Rows that do not join into one of fewer dimensions: height > 1; of several slices, if depth > 1. */
  rill_status (*copy_3d)(struct rill__stream *stream, const struct rill__copy_3d *copy);
  /* Optional, with managed memory.  `prefetch`: work of the stream, that brings `size` > 0 bytes inside an allocation
   * of managed memory of the backend to the stream's device.  `advise`: RILL_ADVICE_* about such a range; `at` is a
   * device of the backend, or NULL for the host. */
  rill_status (*prefetch)(struct rill__stream *stream, const void *p, size_t size);
  rill_status (*may_prefetch)(struct rill__device *device); /* optional: UNSUPPORTED, as `prefetch` would say it */
  rill_status (*advise)(struct rill__device *device, const void *p, size_t size, struct rill__device *at,
                        uint32_t advice);
  /* count > 0; pattern_size 1, 2, 4, 8 or 16; dst aligned to it; the product does not overflow. */
  rill_status (*fill)(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *pattern,
                      size_t pattern_size, size_t count);
  /* Rows that do not join into one: height > 1, and something between them. */
  rill_status (*fill_2d)(struct rill__stream *stream, const struct rill__fill_2d *fill);
  /* Optional.  Whether the driver knows the memory at `p`, of which rill knows nothing: then it is not pageable.  Not
   * asked on the way of work that goes to the driver.  A backend with this slot has the copies of graphs staged
   * (rill__operation.staged), so that no copy of its driver's graphs has a pageable end. */
  rill_status (*is_known)(struct rill__device *device, const void *p, bool *out);
  /* Optional, of a backend that takes pageable sources itself, and so has to know what may still write them: whether a
   * number may be an address at all.  Any thread, without a handle. */
  bool (*may_be_address)(uint64_t number);
  /* With RILL_FEATURE_IPC: the same for memory.  `p` and `size` are an allocation of kind DEVICE.  May block for
   * submitted work. */
  rill_status (*ipc_export)(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out);
  /* The bytes may be anything: NOT_FOUND if they refer to nothing, INVALID_ARGUMENT if it is smaller than
   * `size`. The address is a multiple of 256; it may be one that was given before, and each import has its close. */
  rill_status (*ipc_import)(struct rill__device *device, const struct rill__ipc_native *from, size_t size, void **out);
  /* As `free`. */
  rill_status (*ipc_close)(struct rill__device *device, void *p, size_t size);
};

struct rill__module_table {
  /* How well an image fits the device: 0 not at all; of several the greatest is loaded. */
  uint32_t (*fit)(struct rill__device *device, const rill_bundle_image *image);
  /* What the device needs, in the words of a target: "sm_90 or an older ptx". */
  void (*needs)(struct rill__device *device, char *text, size_t size);
  /* The image's bytes are not needed after the call. */
  rill_status (*load)(struct rill__module *module, const rill_bundle_image *image);
  /* No work that was submitted through rill uses it any more. */
  void (*unload)(struct rill__module *module);
  /* Images from elsewhere (core/kernel/image.h); these look at no device.  A zero follows the bytes.
   * `takes`: what the backend loads, in words.  `recognize`: what these bytes are, in words, or NULL if the backend
   * does not know.  `read_parts` takes bytes that it knows apart.  `read_kernels` adds the kernels of one part, as far
   * as it tells; bundles' images come here, too. */
  const char *takes;
  const char *(*recognize)(const void *data, size_t size);
  const char *(*read_parts)(const void *data, size_t size, struct rill__image *out);
  const char *(*read_kernels)(const rill_bundle_image *part, struct rill__image *out);
  /* Optional: adds all kernels of a module that is loaded, where read_kernels left some unknown. */
  void (*list)(struct rill__module *module, struct rill__image *out);
  /* Address and size of a variable; *p NULL if there is none of that name, which is not "". */
  rill_status (*global)(struct rill__module *module, const char *symbol, void **p, size_t *size);
  /* Optional: the native handle.  Without it, 0. */
  uintptr_t (*native)(struct rill__module *module);
  /* Both, if the device supports RILL_FEATURE_RTC (struct rill__compile).  `compiler` names
   * the compiler and its version, for the key under which results are kept.  `compile` blocks; it is OK, with a log and
   * no image, if the source has errors. */
  rill_status (*compiler)(struct rill__device *device, char *identity, size_t size);
  rill_status (*compile)(struct rill__device *device, const struct rill__compile *request,
                         struct rill__compiled *result);
};

struct rill__kernel_table {
  /* Finds kernel->source->name in kernel->module and fills in the kernel's numbers; NOT_FOUND if it is not there.  If
   * arguments are unknown, adds them to kernel->own, if the driver tells. */
  rill_status (*find)(struct rill__kernel *kernel);
  /* Optional: frees what `find` made. */
  void (*forget)(struct rill__kernel *kernel);
  /* Optional: does what the driver may have deferred until the first launch. */
  rill_status (*preload)(struct rill__kernel *kernel);
  /* Optional: opts in to more dynamic shared memory than shared_allowed, within the device's limit. */
  rill_status (*allow_shared)(struct rill__kernel *kernel, uint64_t bytes);
  rill_status (*launch)(struct rill__stream *stream, const struct rill__launch *launch);
  /* Whether a launch may have RILL_ATTR_*; only then one gets here.  `why` as for supports. */
  bool (*has_attribute)(struct rill__device *device, uint32_t kind, const char **why);
  /* How many blocks of `threads` threads with `shared` bytes of dynamic shared memory run on a compute unit at a time.
   * Each is what a block may have, and allowed. */
  rill_status (*occupancy)(struct rill__kernel *kernel, uint32_t threads, uint64_t shared, uint32_t *blocks);
  /* The size of a block, of `limit` threads at most, that lets most threads run at a time, and how many such blocks
   * fill the device. */
  rill_status (*suggest_block)(struct rill__kernel *kernel, uint64_t shared, uint32_t limit, uint32_t *threads,
                               uint32_t *blocks);
  /* Optional, both with clusters.  Of a launch that is clustered: the most blocks that its cluster may have; how many
   * of its clusters run at a time. */
  rill_status (*cluster_limit)(struct rill__kernel *kernel, const struct rill__launch *launch, uint32_t *blocks);
  rill_status (*active_clusters)(struct rill__kernel *kernel, const struct rill__launch *launch, uint32_t *clusters);
  /* Optional: the native handle.  Without it, 0. */
  uintptr_t (*native)(struct rill__kernel *kernel);
};

struct rill__graph_table {
  /* Makes the execution object of `exec->steps`. */
  rill_status (*instantiate)(struct rill__graph_exec *exec);
  /* Work of the stream, after earlier launches of the same object on other streams too. */
  rill_status (*launch)(struct rill__graph_exec *exec, struct rill__stream *stream);
  /* Later launches have other operations: `operations[i]` instead of `exec->steps[i].operation`, where they differ;
   * each of the same kind, or a kernel, copy or fill in the place of an empty one; and `attached` instead of
   * `exec->attached`.  Core then keeps them, and lets go what was there: the backend keeps what launches that have been
   * made use.  On failure all is as before. */
  rill_status (*update)(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                        struct rill__object *attached);
  /* The same for one step alone: an operation of the same kind, perhaps of another kernel or event; or an empty one in
   * the place of a kernel, copy or fill, or the other way round. */
  rill_status (*set)(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation);
  /* Optional: what the first launch on a stream needs, as work of the stream. */
  rill_status (*upload)(struct rill__graph_exec *exec, struct rill__stream *stream);
  /* Optional: the native execution object, and the native graph that it was made from.  Without it, 0. */
  uintptr_t (*native)(struct rill__graph_exec *exec, bool graph);
  /* False if that cannot be yet, since launches are under way: core tries again later. */
  bool (*destroy)(struct rill__graph_exec *exec);
  /* Optional: what others give to the native stream while core captures.  Between begin and end it becomes a native
   * graph, which `end` gives; 0 if there was nothing, or on failure.  The stream is not capturing natively after `end`,
   * whatever that returns.  The graph is a node of kind RILL_NODE_OTHER in those that are instantiated. */
  rill_status (*others_begin)(struct rill__stream *stream);
  bool (*others_have_work)(struct rill__stream *stream);
  rill_status (*others_end)(struct rill__stream *stream, uintptr_t *out);
  void (*others_destroy)(struct rill__device *device, uintptr_t graph);
};

/* What DLPack and the array API call a backend's memory and streams (rill/dlpack.h). */
struct rill__dlpack {
  int32_t device, pinned, managed;    /* DLDeviceType */
  intptr_t first_stream, last_stream; /* of default streams; native ones are above 2 */
  const char *streams;                /* those, for people; NULL without native streams */
};

struct rill__backend {
  const char *name; /* what comes before the colon in a device's name */
  uint32_t id;      /* RILL_BACKEND_* */
  bool gpu;         /* counted before the CPU */
  size_t device_size, stream_size, event_size, module_size, kernel_size, exec_size; /* of its own parts */
  const struct rill__device_table *device;
  const struct rill__stream_table *stream;
  const struct rill__event_table *event;
  const struct rill__memory_table *memory;
  const struct rill__module_table *module;
  const struct rill__kernel_table *kernel;
  const struct rill__graph_table *graph; /* NULL: no graphs */
  struct rill__dlpack dlpack;
  /* Optional: around fork, on the forking thread.  after_in_child makes the backend usable again, or leaves its
   * devices lost. */
  void (*before_fork)(void);
  void (*after_fork_in_parent)(void);
  void (*after_fork_in_child)(void);
};

/* The slots that return a status and that core calls, with the word that RILL_FAULT has for each; slots that do one
 * thing have one word.  A slot that is not in this list cannot be dispatched. */
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
  CALL(graph, others_begin, "capture_begin_others")  \
  CALL(graph, others_end, "capture_end_others")

enum rill__call {
#define RILL__CALL_NUMBER(table, slot, word) RILL__CALL_##table##_##slot,
  RILL__CALL_LIST(RILL__CALL_NUMBER)
#undef RILL__CALL_NUMBER
      RILL__CALLS
};

/* The one way from core into a backend: calls a slot of a table for an object of a device, a slot that returns a
 * status. RILL_TRACE in the environment has each such call printed, and RILL_FAULT makes some fail instead
 * (core/device/trace.c); whatever else looks at calls hooks in here. */
#define RILL_DISPATCH(object, table, slot, ...) RILL__DISPATCH(NULL, NULL, object, table, slot, __VA_ARGS__)
/* With another object that the call is about, whose label a rule of RILL_FAULT may have. */
#define RILL_DISPATCH_ABOUT(other, object, table, slot, ...) \
  RILL__DISPATCH(other, NULL, object, table, slot, __VA_ARGS__)
#define RILL_DISPATCH_LAUNCH(stream, launched) RILL__DISPATCH(NULL, launched, stream, kernel, launch, stream, launched)
/* For a caller that has found nobody observing, RILL_TRACE and RILL_FAULT included (core/diagnose/observe.h). */
#define RILL_DISPATCH_UNOBSERVED(object, table, slot, ...) RILL__SLOT(object, table, slot)(__VA_ARGS__)
#define RILL__DISPATCH(other, launched, object, table, slot, ...)                                           \
  (__extension__((RILL__UNLIKELY(atomic_load_explicit(&rill__calls_watched, memory_order_relaxed) != 0)     \
                      ? rill__call_watched(&(object)->base, RILL__CALL_##table##_##slot, (other), launched) \
                      : RILL_OK)                                                                            \
                     ?: RILL__SLOT(object, table, slot)(__VA_ARGS__)))
/* A slot that returns no status: a call that cannot fail. */
#define RILL_ASK(object, table, slot, ...)                                                                \
  ((RILL__UNLIKELY(atomic_load_explicit(&rill__calls_watched, memory_order_relaxed) & RILL__CALLS_TRACED) \
        ? rill__trace(&(object)->base, #table "." #slot, NULL)                                            \
        : (void)0),                                                                                       \
   RILL__SLOT(object, table, slot)(__VA_ARGS__))
#define RILL__SLOT(object, table, slot)                                                    \
  (RILL_ASSERT(!rill__has_lock(RILL__LOCK_CLAIMS | RILL__LOCK_REGISTRY | RILL__LOCK_HELD), \
               "a backend is called without core's locks: it may wait for the device"),    \
   (object)->base.device->backend->table->slot)

enum { RILL__CALLS_TRACED = 1, RILL__CALLS_FAULTED = 2 };
extern _Atomic uint32_t rill__calls_watched; /* who looks at calls (core/diagnose/observe.h) */

/* Prints the call, if it is to be; not RILL_OK: the call is to fail with that, whose text stands. */
rill_status rill__call_watched(const struct rill__object *object, enum rill__call call,
                               const struct rill__object *other, const struct rill__launch *launch)
    __attribute__((cold));
void rill__trace(const struct rill__object *object, const char *slot, const struct rill__launch *launch)
    __attribute__((cold));

/* The backend's own part of an object, zeroed when the object is made; aligned to 64. */
#define RILL__PART_OFFSET(type) ((sizeof(type) + 63) / 64 * 64)
#define rill__part(object) ((void *)((char *)(object) + RILL__PART_OFFSET(__typeof__(*(object)))))

/* ---- what core offers to backends ---- */

/* A native stream or event has been imported or given out.  Before that nobody else can have begun a capture that
 * involves rill's streams. */
extern _Atomic bool rill__is_shared;

/* A vendor's library was in the process before rill looked for it: other code may use the vendor's devices. */
extern _Atomic bool rill__vendor_is_shared;

/* Marks the device as lost for good, unless it is already, and fails with the first cause. */
rill_status rill__device_lost(struct rill__device *device, int32_t code, const char *name, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));

/* The same with a status and no vendor code: for a device that cannot be used for another reason. */
void rill__device_close(struct rill__device *device, rill_status status, const char *text);

/* The device is lost no more: in the child of a fork, for a device that works there. */
void rill__device_renew(struct rill__device *device);

/* Whether a test holds for a stream of the device that others may have a native handle of, and the name of that one.
 * The test runs under a lock, and calls nothing of core. */
bool rill__device_any_shared_stream(struct rill__device *device, bool (*test)(struct rill__stream *stream),
                                    struct rill__name *out);

/* Calls what was given to a host call of the stream with this id, or of a graph if it is 0: every such call goes
 * through here.  Reports tell that it runs (core/diagnose/calls.h). */
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

/* Gives a kernel, copy, fill or host call to a stream, as part of work that is being submitted. */
rill_status rill__operation_submit(struct rill__operation *operation, struct rill__stream *stream);

/* Copies rows `first` to `end` - 1, counted through all slices, on the host. */
void rill__copy_rows(const struct rill__copy_3d *copy, size_t first, size_t end);

/* What core knows of an address that a kernel accesses, for backends whose kernels check what they access.  From
 * rill__access_begin, when such a module is loaded, to rill__access_end, when it is unloaded, a red zone of
 * RILL__RED_ZONE bytes, which belongs to no allocation, follows each allocation of the device, and frees are noted. */
enum { RILL__RED_ZONE = 128 };
void rill__access_begin(struct rill__device *device);
void rill__access_end(struct rill__device *device);

struct rill__access {
  enum {
    RILL__ACCESS_RIGHT,  /* in memory that the kernel may use */
    RILL__ACCESS_LATE,   /* in memory that was freed after the launch, or may have been */
    RILL__ACCESS_FREED,  /* in memory that was freed before it */
    RILL__ACCESS_PEER,   /* in memory of a device of another backend */
    RILL__ACCESS_BESIDE, /* in none; the nearest there is */
    RILL__ACCESS_NOWHERE /* and there is none; the rest is not set */
  } what;
  uintptr_t begin; /* of the allocation, registered range or variable */
  size_t size;
  uint32_t kind; /* RILL_MEMORY_*; 0 of what was freed */
  bool variable;
};

/* A number that grows with each free that is noted.  While it stays, what was found RIGHT is right. */
uint64_t rill__frees_count(void);

/* `frees`: of the launch.  Any thread, in an epoch or not. */
void rill__access_find(struct rill__device *device, uintptr_t p, uint64_t frees, struct rill__access *out);

/* What a launch with a token has accessed, in memory that core knows: disjoint ranges.  Called before the launch counts
 * as complete; `complete`: these are all its accesses.  Any thread that holds no lock. */
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

/* Fails as a lost device does.  Only when device->lost is set. */
rill_status rill__fail_lost(struct rill__device *device) __attribute__((cold));

#endif
