/* The vendor's library as a table of functions.  Included by the vendor.h, between its types and its functions. */
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
#define gpu_rtc GPU_NAME(rtc)
#define gpu_rtc_load GPU_NAME(rtc_load)

#pragma GCC visibility push(hidden)

/* One pointer for each function of gpu_api.def, typed by the declarations that vendor.h includes.  Filled in once, by
 * gpu_load; constant afterwards. */
extern struct gpu_api {
#define GPU_FUNCTION(field, name, need, capture) __typeof__(name) *field;
#include "backends/gpu/gpu_api.def"
} gpu_api;

/* The names of the same, as the library exports them. */
extern const struct gpu_symbols {
#define GPU_FUNCTION(field, name, need, capture) const char *field;
#include "backends/gpu/gpu_api.def"
} gpu_symbols;

/* Which of them captures forbid. */
enum {
  GPU_CAPTURE_SAFE = 0,
  GPU_CAPTURE_UNSAFE = 1,
#define GPU_FUNCTION(field, name, need, capture) GPU_CAPTURE_OF_##field = GPU_CAPTURE_##capture,
#include "backends/gpu/gpu_api.def"
};

/* Adds to a text that ends with a zero; what `size` cannot hold is cut off and marked with "...". */
void gpu_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Where a vendor's library may be, in the order in which the places are tried.  Lists end with NULL. */
struct gpu_places {
  const char *const *names;       /* sonames, the newest first */
  const char *const *other_names; /* under which only one that the process has loaded is taken */
  const char *const *variables;   /* of the environment: a folder that has a library in lib/ */
  const char *folders; /* a pattern of more of these; the one of the newest version is tried first.  Or NULL */
};

/* Opens one, which stays open.  If there is none, NULL, and `why`: what was tried, and what the loader said. */
void *gpu_library_open(const struct gpu_places *places, char *why, size_t size);
extern bool gpu_was_loaded; /* the process had it before */

/* The file of a library that is open, as the loader opened it. */
const char *gpu_library_path(void *library);

/* A library that is loaded, or lies in the folder of another one that is.  NULL: there is none. */
void *gpu_library_beside(void *library, const char *name);

/* Opens the vendor's library, fills in gpu_api, and returns the library's path.  If that fails, NULL, and `why`. */
const char *gpu_load(char *why, size_t why_size);

/* Whether the library that was opened exports a symbol. */
bool gpu_has_symbol(const char *name);

/* The run-time compiler's functions: filled in by the first gpu_rtc_load that finds it.  Returns a static sentence if
 * there is none. */
extern struct gpu_rtc {
#define GPU_RTC_FUNCTION(field, name, need) __typeof__(name) *field;
#include "backends/gpu/gpu_api.def"
} gpu_rtc;
bool gpu_rtc_load(const char **why);

#pragma GCC visibility pop

/* The vendor's numbers by neutral names: results, attributes, flags. */
enum {
#define GPU_NUMBER(field, number) GPU_##field = (number),
#include "backends/gpu/gpu_enums.def"
};

/* What a vendor call gave: its code as a plain number. */
typedef int gpu_result;

/* The vendor's code as a plain number; in vendor.h. */
static inline gpu_result gpu_vendor_result(gpu_native_result result);

/* Between the two this thread is in relaxed mode, if the call is one that captures forbid. */
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

/* One vendor call: GPU_CALL(event_record, (event, stream)).  No other way leads to the vendor, so that none disturbs a
 * capture that this thread or, in global mode, others have under way (gpu_api.def). */
#define GPU_CALL(field, arguments)                                         \
  __extension__({                                                          \
    struct gpu_relaxed relaxed_ = gpu_relax(GPU_CAPTURE_OF_##field);       \
    const gpu_result called_ = gpu_vendor_result(gpu_api.field arguments); \
    gpu_unrelax(&relaxed_);                                                \
    called_;                                                               \
  })

/* Where a node of a native graph goes, and the one that was made.  With `exec`, whose `node` is to be changed: only
 * where GPU_NODES_CHANGE. */
struct gpu_spot {
  gpu_graph graph;
  gpu_graph_handle exec;
  const gpu_graph_node *after;
  size_t count;
  gpu_graph_node node;
};

/* One fill of the vendors': `height` rows of `width` elements of 1, 2 or 4 bytes. */
struct gpu_fill_node {
  void *dst;
  size_t pitch, width, height;
  uint32_t value, element;
};

/* Whose a native stream is. */
enum gpu_owner { GPU_OWNER_THIS, GPU_OWNER_OTHER_DEVICE, GPU_OWNER_OTHER_CONTEXT };

#endif
