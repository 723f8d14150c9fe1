/* rill/base.h: what every header of rill builds on: export macros, handles, small value types.
 *
 * A handle is a small value.  Copy it freely: copies name the same object.  Its 64 bits carry slot,
 * generation and kind, so a handle whose object is gone is distinguished from every living one for as
 * long as the process runs, and a foreign language may declare each handle as a plain uint64_t.
 *
 *     rill_stream stream = RILL_NULL_STREAM;
 *     if (rill_stream_create(device, NULL, &stream) != RILL_OK) ...
 *     rill_stream_release(stream);
 *
 * The thing people get wrong: a handle is not a pointer.  Compare handles with rill_stream_equal and
 * its siblings, never with memcmp on a struct that holds more than the handle.
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

/* How functions are declared.  RILL_STATIC: for a C file that includes rill.c (docs/guides/EMBEDDING.md), which keeps its copy
 * to itself.  -DRILL_API=: for a copy inside a program or plugin that exports none of its names. */
#ifdef RILL_STATIC
#ifdef __cplusplus
#error \
    "RILL_STATIC is for C files that include rill.c; C++ calls a rill.c that is compiled by itself, without RILL_STATIC"
#endif
#undef RILL_API
#define RILL_API static __attribute__((unused))
#elif !defined(RILL_API)
#ifdef __cplusplus /* they are C: nothing is thrown through them, so callers in C++ need no code for that */
#define RILL_API __attribute__((visibility("default"), nothrow))
#else
#define RILL_API __attribute__((visibility("default")))
#endif
#endif
#define RILL_NODISCARD __attribute__((warn_unused_result))

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0
/* Whether the headers are of that version or a later one, for #if as well.  No number of a version exceeds 255; those
 * that are asked for may.  The version of the library that is loaded: rill_version. */
#define RILL_VERSION_AT_LEAST(major, minor, patch) \
  (RILL_VERSION_MAJOR > (major) ||                 \
   (RILL_VERSION_MAJOR == (major) &&               \
    (RILL_VERSION_MINOR > (minor) || (RILL_VERSION_MINOR == (minor) && RILL_VERSION_PATCH >= (patch)))))

RILL_EXTERN_C_BEGIN

/** Outcome of a call: RILL_OK or one of RILL_ERROR_* of rill/status.h.  Fixed width. */
typedef int32_t rill_status;

/** A GPU or the CPU.  Borrowed for ever: never released. */
typedef struct {
  uint64_t id;
} rill_device;
/** An in-order queue of work on one device.  Counted. */
typedef struct {
  uint64_t id;
} rill_stream;
/** A point in the work of a stream.  Counted. */
typedef struct {
  uint64_t id;
} rill_event;
/** Kernels loaded on one device.  Counted. */
typedef struct {
  uint64_t id;
} rill_module;
/** One kernel of a module.  Counted; keeps its module. */
typedef struct {
  uint64_t id;
} rill_kernel;
/** Where memory that is allocated in stream order comes from.  Counted. */
typedef struct {
  uint64_t id;
} rill_pool;

/** Work that is built once and launched often.  Counted. */
typedef struct {
  uint64_t id;
} rill_graph;
/** A graph made ready to be launched.  Counted; keeps what its nodes use. */
typedef struct {
  uint64_t id;
} rill_graph_exec;
/** A node of a graph.  Not counted: lives as long as its graph, or execution objects made from it. */
typedef struct {
  uint64_t id;
} rill_graph_node;

/** What one process gives another for an event or memory: plain bytes, to be sent as they are.  They carry what it is,
 *  of which device, and a check; rill_event_ipc_import and rill_memory_ipc_import refuse bytes that are damaged. */
typedef struct {
  uint8_t bytes[128];
} rill_ipc_handle;

/** Releases what a program has given to rill, with the pointer that it gave: called once, when nothing keeps it any
 * more. */
typedef void (*rill_release_fn)(void *user);

/* The null handles, and equality: two handles are equal exactly if they name the same object. */
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

/** The version of the library that is loaded, as 0x00MMmmpp; RILL_VERSION_* is that of the headers.
 *
 *  Errors:  none.
 *  Like:    cuDriverGetVersion. */
RILL_API RILL_NODISCARD uint32_t rill_version(void);

RILL_EXTERN_C_END

#endif
