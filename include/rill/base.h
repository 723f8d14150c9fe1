/* rill/base.h: export macros, handles and small value types, which every other header uses.
 *
 * A handle is a 64-bit value that names an object. Copies of a handle name the same object. The 64 bits hold a slot,
 * a generation and a kind, so the handle of a destroyed object never equals the handle of a later object of the same
 * process. Other languages can declare each handle as a plain uint64_t.
 *
 *     rill_stream stream = RILL_NULL_STREAM;
 *     if (rill_stream_create(device, NULL, &stream) != RILL_OK) ...
 *     rill_stream_release(stream);
 *
 * Pitfall: a handle is not a pointer. Compare handles with the function for their type, such as rill_stream_equal,
 * never with memcmp on a struct that holds more than the handle.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_BASE_H
#define RILL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define RILL_EXTERN_C_BEGIN extern "C" {
#define RILL_EXTERN_C_END }
#define RILL_CAST_(type, value) static_cast<type>(value)
#else
#define RILL_EXTERN_C_BEGIN
#define RILL_EXTERN_C_END
#define RILL_CAST_(type, value) ((type)(value))
#endif

/* The attributes of every public function. Define RILL_STATIC in a C file that includes rill.c
 * (docs/guides/EMBEDDING.md) to make every function static. Compile with -DRILL_API= to keep a copy inside a program
 * or plugin from exporting its names. */
#ifdef RILL_STATIC
#ifdef __cplusplus
#error "RILL_STATIC is for C files that include rill.c; a C++ program compiles rill.c separately, without RILL_STATIC"
#endif
#undef RILL_API
#define RILL_API static __attribute__((unused))
#elif !defined(RILL_API)
#ifdef __cplusplus /* C functions do not throw, so C++ callers need no unwinding code for them */
#define RILL_API __attribute__((visibility("default"), nothrow))
#else
#define RILL_API __attribute__((visibility("default")))
#endif
#endif
#define RILL_NODISCARD __attribute__((warn_unused_result))

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0
/* True if the headers are of this version or a later one. Works in #if. Each part of a version is at most 255; the
 * arguments may be larger. rill_version returns the version of the loaded library. */
#define RILL_VERSION_AT_LEAST(major, minor, patch) \
  (RILL_VERSION_MAJOR > (major) ||                 \
   (RILL_VERSION_MAJOR == (major) &&               \
    (RILL_VERSION_MINOR > (minor) || (RILL_VERSION_MINOR == (minor) && RILL_VERSION_PATCH >= (patch)))))

RILL_EXTERN_C_BEGIN

/** Outcome of a call: RILL_OK or one of RILL_ERROR_* of rill/status.h.  Fixed width. */
typedef int32_t rill_status;

/** A GPU or the CPU. Never released. */
typedef struct {
  uint64_t id;
} rill_device;
/** An in-order queue of work on one device. Reference-counted. */
typedef struct {
  uint64_t id;
} rill_stream;
/** A point in the work of a stream. Reference-counted. */
typedef struct {
  uint64_t id;
} rill_event;
/** Kernels loaded on one device. Reference-counted. */
typedef struct {
  uint64_t id;
} rill_module;
/** One kernel of a module. Reference-counted; holds a reference to its module. */
typedef struct {
  uint64_t id;
} rill_kernel;
/** A source of memory that is allocated in stream order. Reference-counted. */
typedef struct {
  uint64_t id;
} rill_pool;

/** Work that is described once and launched many times. Reference-counted. */
typedef struct {
  uint64_t id;
} rill_graph;
/** An instantiated graph. Reference-counted; holds references to the objects that its nodes use. */
typedef struct {
  uint64_t id;
} rill_graph_exec;
/** A node of a graph. Not reference-counted; valid until its graph and all execution objects made from the graph are
 *  destroyed. */
typedef struct {
  uint64_t id;
} rill_graph_node;

/** An event or memory exported to another process, as plain bytes to be sent unchanged. The bytes hold the kind of
 *  object, its device and a checksum; rill_event_ipc_import and rill_memory_ipc_import refuse damaged bytes. */
typedef struct {
  uint8_t bytes[128];
} rill_ipc_handle;

/** Releases a resource that a program handed to rill. Called once, with the program's pointer, after the last use. */
typedef void (*rill_release_fn)(void *user);

/* The null handles, and equality. Two handles are equal if and only if they name the same object. */
#define RILL_HANDLE_HELPERS_(NAME, TYPE)                                 \
  static const rill_##TYPE RILL_NULL_##NAME = { 0 };                     \
  static inline bool rill_##TYPE##_equal(rill_##TYPE a, rill_##TYPE b) { \
    (void)RILL_NULL_##NAME;                                              \
    return a.id == b.id;                                                 \
  }
RILL_HANDLE_HELPERS_(DEVICE, device)
RILL_HANDLE_HELPERS_(STREAM, stream)
RILL_HANDLE_HELPERS_(EVENT, event)
RILL_HANDLE_HELPERS_(MODULE, module)
RILL_HANDLE_HELPERS_(KERNEL, kernel)
RILL_HANDLE_HELPERS_(POOL, pool)
RILL_HANDLE_HELPERS_(GRAPH, graph)
RILL_HANDLE_HELPERS_(GRAPH_EXEC, graph_exec)
RILL_HANDLE_HELPERS_(GRAPH_NODE, graph_node)
#undef RILL_HANDLE_HELPERS_

/** Returns the version of the loaded library as 0x00MMmmpp. RILL_VERSION_* is the version of the headers.
 *
 *  Errors:  none.
 *  Like:    cuDriverGetVersion. */
RILL_API RILL_NODISCARD uint32_t rill_version(void);

RILL_EXTERN_C_END

#endif
