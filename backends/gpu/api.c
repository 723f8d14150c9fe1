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

static const char *const libraries[] = { GPU_LIBRARIES };
static void *library; /* stays open: drivers do not survive being closed */

_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "dlsym gives functions as void *");

const char *gpu_load(char *why, size_t why_size) {
  const char *name = NULL;
  size_t used = 0;
  why[0] = '\0';
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0] && library == NULL; i++) {
    name = libraries[i];
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL || used >= why_size) continue;
    const char *said = dlerror(); /* begins with the library's name */
    used += (size_t)snprintf(why + used, why_size - used, "%s%s", used > 0 ? "; " : "", said != NULL ? said : name);
  }
  if (library == NULL) return NULL;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *symbol = dlsym(library, functions[i].name);
    if (symbol == NULL && functions[i].need == REQUIRED) {
      (void)snprintf(why, why_size, "%s does not export %s: it is too old, or not what its name says", name,
                     functions[i].name);
      return NULL;
    }
    memcpy((char *)&gpu_api + functions[i].offset, &symbol, sizeof symbol);
  }
  return name;
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

/* The one inside the driver's library, where there is one, is of its version. */
static void find_rtc(void) {
  static const char *const names[] = { GPU_RTC_LIBRARIES };
  if (GPU_RTC_SYMBOL != NULL && gpu_has_symbol(GPU_RTC_SYMBOL)) rtc_found = fill_rtc(library);
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !rtc_found; i++) {
    void *opened = dlopen(names[i], RTLD_NOW | RTLD_LOCAL); /* stays open, as all of the vendor's do */
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
