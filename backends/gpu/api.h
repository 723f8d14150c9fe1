/* The vendor's library as a table of functions.  The vendor's vendor.h includes this header between its types and its
 * functions. */
#ifndef RILL_BACKENDS_GPU_API_H
#define RILL_BACKENDS_GPU_API_H

#include "core/backend.h"

#include <string.h>

#define gpu_api GPU_NAME(api)
#define gpu_symbols GPU_NAME(symbols)
#define gpu_load GPU_NAME(load)
#define gpu_has_symbol GPU_NAME(has_symbol)
#define gpu_append GPU_NAME(append)
#define gpu_library_open GPU_NAME(library_open)
#define gpu_library_path GPU_NAME(library_path)
#define gpu_was_loaded GPU_NAME(was_loaded)
#define gpu_library_beside GPU_NAME(library_beside)
#define gpu_users_note GPU_NAME(users_note)
#define gpu_has_later_users GPU_NAME(has_later_users)
#define gpu_rtc GPU_NAME(rtc)
#define gpu_rtc_load GPU_NAME(rtc_load)

#pragma GCC visibility push(hidden)

/* One pointer per function in gpu_api.def, typed by the declarations that vendor.h includes.  Filled in once by
 * gpu_load, and constant afterwards. */
extern struct gpu_api {
#define GPU_FUNCTION(field, name, need, capture) __typeof__(name) *field;
#include "backends/gpu/gpu_api.def"
} gpu_api;

/* The names of these functions, as the library exports them. */
extern const struct gpu_symbols {
#define GPU_FUNCTION(field, name, need, capture) const char *field;
#include "backends/gpu/gpu_api.def"
} gpu_symbols;

/* Says for each of these functions whether captures forbid the call. */
enum {
  GPU_CAPTURE_SAFE = 0,
  GPU_CAPTURE_UNSAFE = 1,
#define GPU_FUNCTION(field, name, need, capture) GPU_CAPTURE_OF_##field = GPU_CAPTURE_##capture,
#include "backends/gpu/gpu_api.def"
};

/* Appends to a zero-terminated text.  If the result exceeds `size`, it is cut off and marked with "...". */
void gpu_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Places where a vendor's library may be, in the order in which they are tried.  Lists end with NULL. */
struct gpu_places {
  const char *const *names;       /* sonames, newest first */
  const char *const *other_names; /* names that are used only if the process has the library loaded */
  const char *const *variables;   /* environment variables; each names a folder with a library in lib/ */
  const char *folders;            /* glob pattern of further such folders, newest version first; may be NULL */
};

/* Opens a library, which is never closed.  If none is found, returns NULL, and `why` lists what was tried and the
 * loader's messages. */
void *gpu_library_open(const struct gpu_places *places, char *why, size_t size);
extern bool gpu_was_loaded; /* true if the process had loaded it before */

/* Notes the objects of the process, when the library is open. */
void gpu_users_note(void);
/* Returns true if an object that was loaded later uses the library.  Not thread safe. */
bool gpu_has_later_users(void);

/* Returns the path of an open library, as the loader opened it. */
const char *gpu_library_path(void *library);

/* Returns a library that is loaded, or that lies in the folder of another loaded one; NULL if there is none. */
void *gpu_library_beside(void *library, const char *name);

/* Opens the vendor's library, fills in gpu_api and returns the library's path.  Returns NULL and sets `why` on
 * failure. */
const char *gpu_load(char *why, size_t why_size);

/* Returns true if the opened library exports a symbol. */
bool gpu_has_symbol(const char *name);

/* Functions of the run-time compiler.  The first gpu_rtc_load that finds the compiler fills them in.  If there is none,
 * `why` is set to a static sentence. */
extern struct gpu_rtc {
#define GPU_RTC_FUNCTION(field, name, need) __typeof__(name) *field;
#include "backends/gpu/gpu_api.def"
} gpu_rtc;
bool gpu_rtc_load(const char **why);

#pragma GCC visibility pop

/* The vendor's numbers under neutral names: results, attributes, flags. */
enum {
#define GPU_NUMBER(field, number) GPU_##field = (number),
#include "backends/gpu/gpu_enums.def"
};

/* Result of a vendor call, as a plain number. */
typedef int gpu_result;

/* Converts the vendor's result to a plain number; defined in vendor.h. */
static inline gpu_result gpu_vendor_result(gpu_native_result result);

/* Between gpu_relax and gpu_unrelax the thread's capture mode is relaxed, if the call is one that captures forbid. */
struct gpu_relaxed {
  gpu_capture_mode mode;
  bool changed;
};

static inline struct gpu_relaxed gpu_relax(int capture) {
  struct gpu_relaxed relaxed = { GPU_CAPTURE_RELAXED, false };
  if (capture == GPU_CAPTURE_UNSAFE && gpu_api.exchange_capture_mode != NULL) {
    relaxed.changed = gpu_vendor_result(gpu_api.exchange_capture_mode(&relaxed.mode)) == GPU_SUCCESS;
  }
  return relaxed;
}

static inline void gpu_unrelax(struct gpu_relaxed *relaxed) {
  if (relaxed->changed) (void)gpu_vendor_result(gpu_api.exchange_capture_mode(&relaxed->mode));
}

/* Makes a vendor call: GPU_CALL(event_record, (event, stream)).  All calls use this macro, so that no call invalidates
 * a capture that this thread has in progress, or another thread in global mode (gpu_api.def). */
#define GPU_CALL(field, arguments)                                         \
  __extension__({                                                          \
    struct gpu_relaxed relaxed_ = gpu_relax(GPU_CAPTURE_OF_##field);       \
    const gpu_result called_ = gpu_vendor_result(gpu_api.field arguments); \
    gpu_unrelax(&relaxed_);                                                \
    called_;                                                               \
  })

/* Where to add a node to a native graph; receives the new node.  With `exec`, its `node` is changed instead, which only
 * GPU_NODES_CHANGE permits. */
struct gpu_insertion {
  gpu_graph graph;
  gpu_graph_handle exec;
  const gpu_graph_node *after;
  size_t count;
  gpu_graph_node node;
};

/* A fill that vendors support: `height` rows of `width` elements of 1, 2 or 4 bytes. */
struct gpu_fill_node {
  void *dst;
  size_t pitch, width, height;
  uint32_t value, element;
};

/* Who owns a native stream. */
enum gpu_owner { GPU_OWNER_THIS, GPU_OWNER_OTHER_DEVICE, GPU_OWNER_OTHER_CONTEXT };

#endif
