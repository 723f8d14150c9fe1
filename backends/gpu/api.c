#include "backends/gpu/gpu.h"

#include <dlfcn.h>

struct gpu_api gpu_api;

const struct gpu_symbols gpu_symbols = {
#define GPU_FUNCTION(field, name, need, capture) .field = #name,
#include "backends/gpu/gpu_api.def"
};

enum { REQUIRED = 1, OPTIONAL = 0 };

static const struct {
  const char *name;
  size_t offset;
  int need;
} functions[] = {
#define GPU_FUNCTION(field, name, need, capture) { #name, offsetof(struct gpu_api, field), need },
#include "backends/gpu/gpu_api.def"
};

static void *library; /* never closed: drivers do not survive dlclose */

_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "dlsym returns functions as void *");

static void *open_runtime(char *why, size_t why_size) {
  static const char *const names[] = { GPU_LIBRARIES, NULL }, *const other_names[] = { GPU_OTHER_LIBRARIES NULL };
  static const char *const variables[] = { GPU_FOLDER_VARIABLES NULL };
  static const struct gpu_places places = { names, other_names, variables, GPU_FOLDERS };
  return gpu_library_open(&places, why, why_size);
}

const char *gpu_load(char *why, size_t why_size) {
  if (library == NULL) library = open_runtime(why, why_size);
  if (library == NULL) return NULL;
  const char *path = gpu_library_path(library);
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *symbol = dlsym(library, functions[i].name);
    if (symbol == NULL && functions[i].need == REQUIRED) {
      (void)snprintf(why, why_size, "%s does not export %s: it is too old, or a different library", path,
                     functions[i].name);
      return NULL;
    }
    memcpy((char *)&gpu_api + functions[i].offset, &symbol, sizeof symbol);
  }
  return path;
}

/* ---- the run-time compiler ---- */

struct gpu_rtc gpu_rtc;

static const struct {
  const char *name;
  size_t offset;
  int need;
} rtc_functions[] = {
#define GPU_RTC_FUNCTION(field, name, need) { #name, offsetof(struct gpu_rtc, field), need },
#include "backends/gpu/gpu_api.def"
};

static bool fill_rtc(void *from) {
  for (size_t i = 0; i < sizeof rtc_functions / sizeof rtc_functions[0]; i++) {
    void *symbol = dlsym(from, rtc_functions[i].name);
    if (symbol == NULL && rtc_functions[i].need == REQUIRED) return false;
    memcpy((char *)&gpu_rtc + rtc_functions[i].offset, &symbol, sizeof symbol);
  }
  return true;
}

static bool rtc_found;

/* Prefers the compiler inside the driver's library, and then one in the same folder, because their versions match the
 * driver. */
static void find_rtc(void) {
  static const char *const beside[] = { GPU_RTC_BESIDE NULL }, *const names[] = { GPU_RTC_LIBRARIES, NULL };
  if (GPU_RTC_SYMBOL != NULL && gpu_has_symbol(GPU_RTC_SYMBOL)) rtc_found = fill_rtc(library);
  for (size_t i = 0; beside[i] != NULL && library != NULL && !rtc_found; i++) {
    void *opened = gpu_library_beside(library, beside[i]); /* never closed, like all vendor libraries */
    rtc_found = opened != NULL && fill_rtc(opened);
  }
  for (size_t i = 0; names[i] != NULL && !rtc_found; i++) {
    void *opened = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    rtc_found = opened != NULL && fill_rtc(opened);
  }
}

bool gpu_rtc_load(const char **why) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, find_rtc);
  *why = GPU_RTC_LIBRARIES_TEXT;
  return rtc_found;
}

bool gpu_has_symbol(const char *name) { return library != NULL && dlsym(library, name) != NULL; }
