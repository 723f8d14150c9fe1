/* The objects that core and backends share, and what core passes to backends: launches, copies, fills, steps of graphs,
 * sources to compile.  A part of core/backend.h. */
#ifndef RILL_CORE_OBJECTS_H
#define RILL_CORE_OBJECTS_H

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

/* Bytes for core's own fields of an object (core/object/core.h). */
#define RILL__OF_CORE(bytes) _Alignas(8) unsigned char of_core[bytes]

struct rill__device {
  struct rill__object base;
  const struct rill__backend *backend;
  char name[24];                /* "cpu"; for GPUs followed by ":" and the ordinal */
  rill_device_info info;        /* filled in by the backend's `init`, except the clocks */
  uint64_t max_threads_per_dim; /* grid times block in one dimension; 0: no limit */
  uint64_t max_access_window;   /* bytes, for RILL_ATTR_ACCESS_POLICY */
  _Atomic bool active;          /* `activate` has succeeded */
  _Atomic rill_status lost;     /* not RILL_OK: returned by every submission, wait and query */
  /* The number of loaded modules whose kernels check their accesses, plus one with RILL_CHECK=memory. */
  _Atomic uint32_t checked;
  bool reads_addresses; /* set by core: the backend has `may_be_address` */
  bool reuses_early;    /* set by `init`: at each allocation, pools search for memory whose work is complete */
  RILL__OF_CORE(1024);
};

struct rill__stream {
  struct rill__object base;
  uint64_t number;  /* unique in the process; the stream's id if the driver has none */
  int32_t priority; /* native; the priority that the stream runs with */
  bool blocking;
  bool imported, owned; /* owned: the native stream is destroyed with the last reference */
  uintptr_t native;     /* set if the stream was imported or its native handle was given out */
  _Atomic bool foreign; /* other code may submit to the stream, so its completion is not cached */
  RILL__OF_CORE(152);
};

struct rill__event {
  struct rill__object base;
  bool timing, blocking_sync, interprocess;
  bool signaled; /* created as recorded and complete */
  bool imported, owned;
  uintptr_t native;
  _Atomic bool foreign; /* other code may record the event, so its completion is not cached */
  RILL__OF_CORE(208);
};

struct rill__module {
  struct rill__object base;
  RILL__OF_CORE(256);
};

struct rill__kernel {
  struct rill__object base;
  struct rill__module *module;      /* referenced */
  struct rill__image own;           /* describes this kernel only */
  const rill_bundle_kernel *source; /* own.kernels: symbol and arguments, possibly RILL__ARGS_UNKNOWN */
  const char *name;                 /* the name in the source, for texts; the symbol if that name is not known */
  const char *lasting_name;         /* `name`, valid until the process ends; NULL if memory or room for names ran out */
  uint32_t max_threads;             /* the most threads in a block of this kernel */
  uint32_t block[3];                /* the only block shape that the kernel runs in; 0: any */
  bool tells_accesses;              /* the kernel reports its accesses: its launches may have a token */
  uint64_t static_shared;           /* bytes; 0 if unknown */
  uint32_t registers;               /* per thread; 0 if unknown */
  uint64_t local_bytes, constant_bytes;
  uint32_t required_cluster[3];    /* in blocks; 0, 0, 0: any */
  _Atomic uint64_t shared_allowed; /* dynamic bytes that a launch may request without allow_shared */
  RILL__OF_CORE(16);
};

/* A value for a variable of the kernel's module, written before the kernel runs.  `from` is pinned memory that stays
 * unchanged until the stream has passed the launch. */
struct rill__constant {
  void *to;
  const void *from;
  size_t size; /* > 0 */
};

/* Launch settings that are rarely used.  A value counts if `set` has the bit 1 << RILL_ATTR_* of its attribute. */
struct rill__launch_extras {
  uint32_t set;
  bool serialize;            /* RILL_ATTR_PROGRAMMATIC_SERIALIZATION: the kernel itself waits for the previous one */
  int32_t priority;          /* native, in range */
  struct rill__event *event; /* of the same device, without timing, not shared */
  bool trigger_at_start;     /* at the start of each block */
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

/* A launch as a backend receives it: every dimension is at least 1, and all limits have been checked. */
struct rill__launch {
  struct rill__kernel *kernel;
  uint32_t grid[3], block[3], shared_mem_bytes;
  bool clustered;      /* true only if the device supports clusters */
  uint32_t cluster[3]; /* in blocks, valid if clustered; the grid is a multiple of it */
  void *const *args;   /* one pointer per value; read during the call; sizes in kernel->source, if known */
  /* Valid if the backend has `may_be_address`: an argument contains an address that rill does not know. */
  bool has_unknown_address;
  const char *label; /* may be NULL */
  uint64_t frees;    /* valid if device->checked is not 0: the value to pass to rill__access_find for this launch */
  uint64_t token;    /* valid if kernel->tells_accesses: if not 0, rill__accessed must be called once with it */
  const struct rill__launch_extras
      *extras; /* NULL if none.  No other work of the stream runs between writing the constants and the kernel */
};

/* A copy of `depth` slices of `height` rows of `width` bytes each; none of the three is 0.  A pitch is the distance
 * between rows or between slices, in bytes; the bytes between them are not touched.  The kinds are those of the `copy`
 * slot of the memory table. */
struct rill__copy_3d {
  void *dst;
  const void *src;
  uint32_t dst_kind, src_kind;
  size_t width, height, depth;
  size_t dst_pitch, dst_slice_pitch, src_pitch, src_slice_pitch; /* slice pitches are ignored if depth is 1 */
};

/* A copy that has a pageable end, cut into pieces that are copied one after another.  For each piece the host makes the
 * copy `by_host` (rill__copy_rows), and the driver makes the copy `by_driver`, which has no pageable end. */
struct rill__copy_piece {
  struct rill__copy_3d by_host, by_driver;
};
struct rill__staged_copy {
  enum { RILL__HOST_COPIES_ALONE, RILL__HOST_COPIES_FIRST, RILL__HOST_COPIES_LAST } order;
  size_t count;
  struct rill__copy_piece *pieces; /* ALONE: by_driver is not set */
};

enum { RILL__PATTERN_BYTES = 16 }; /* the longest pattern of a fill */

/* A fill of `height` rows of `width` patterns each; neither is 0.  A pattern has 1, 2, 4, 8 or 16 bytes.  `dst` and
 * `pitch` (bytes between rows) are multiples of the pattern's size.  The kind is one of those of the `copy` slot of the
 * memory table. */
struct rill__fill_2d {
  void *dst;
  uint32_t dst_kind;
  size_t pitch, width, height;
  const void *pattern; /* read during the call */
  size_t pattern_size;
};

/* A stored submission, constant once it has been created (core/operation/operation.h).  There are thousands of
 * operations, so an operation is small and is not an object with a handle. */
struct rill__payload;
struct rill__operation {
  struct rill__device *device;
  char *label;                   /* the label of the node; or NULL */
  struct rill__payload *payload; /* owned; or NULL */
  _Atomic uint32_t refs;
  uint32_t kind; /* RILL_NODE_*, or one of core's own kinds, which no backend receives */
  union {
    struct rill__launch launch; /* the kernel is referenced; arguments and extras are owned */
    struct {
      struct rill__copy_3d copy;
      const struct rill__staged_copy *staged; /* how a step copies; owned by the payload; NULL: directly */
    };
    struct {
      struct rill__fill_2d rows; /* `rows.pattern` points to `pattern`, which follows */
      _Alignas(RILL__PATTERN_BYTES) unsigned char pattern[RILL__PATTERN_BYTES];
    } fill;
    struct {
      rill_host_fn fn;
      void *user;
    } host_call;
    struct rill__event *event; /* referenced; for a record or a wait */
    uintptr_t others;          /* native graph of the work that other code submitted to the native stream */
    struct {
      void *memory;       /* the memory to allocate, owned by the payload, or to free */
      _Atomic bool taken; /* for an allocation; used by core: an execution object has claimed the memory */
    };
    struct { /* for a prefetch; used by core */
      const void *p;
      size_t size;
    } prefetch;
    struct rill__graph_exec *exec; /* for a launch of an execution object; referenced; used by core */
  };
  void *values[]; /* for a launch: pointers to the values of the arguments, which follow */
};
void rill__operation_ref(struct rill__operation *operation);
void rill__operation_unref(struct rill__operation *operation);

/* A node of a graph that is to be executed.  In an array of steps each step comes after those that it depends on. */
struct rill__step {
  struct rill__operation *operation; /* referenced */
  const uint32_t *after;             /* indices of the steps that this one depends on */
  uint32_t after_count;
};

/* A graph that can be launched.  Core ensures that only one thread at a time uses it. */
struct rill__graph_exec {
  struct rill__object base;
  uint32_t count;
  struct rill__step *steps;
  /* The caller's objects (core/graph/attached.c).  The steps and their launches need them, so they reference this
   * object; may be NULL. */
  struct rill__object *attached;
  RILL__OF_CORE(128);
};

/* A kernel source to be compiled; everything in it has been checked.  These fields, the compiler, and the device's
 * architecture determine the result. */
struct rill__compile {
  const char *source;
  const char *label;                  /* the name of the source in messages */
  const char *const *definitions;     /* "-DNAME=VALUE" and "-UNAME", in order */
  const rill_compile_header *headers; /* the dialect's headers, then the caller's */
  size_t definition_count, header_count, dialect_header_count;
  uint32_t standard; /* C++ standard: 17 or 20 */
  bool fuse;         /* contract products and sums, if the backend can do that */
  bool debug;        /* emit line information for debuggers */
  bool closed;       /* read no file except these headers and the compiler's own */
};

/* The result of a compilation; both pointers are from malloc, or NULL if there is nothing. */
struct rill__compiled {
  void *image;
  size_t size;
  char *log;
};

/* The bytes that the backend of one process passes to the backend of another inside a rill_ipc_handle.  Only the
 * backend interprets them. */
struct rill__ipc_native {
  unsigned char bytes[64];
};

#endif
