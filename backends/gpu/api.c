#include "backends/gpu/gpu.h"

#include <dlfcn.h>

struct gpu_api gpu_api;

const struct gpu_symbols gpu_symbols = {
#define GPU_FUNCTION(field, name, need) .field = #name,
#include "backends/gpu/gpu_api.def"
};

enum { REQUIRED = 1, OPTIONAL = 0 };

static const struct {
  const char *name;
  size_t offset;
  int need;
} functions[] = {
#define GPU_FUNCTION(field, name, need) { #name, offsetof(struct gpu_api, field), need },
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

bool gpu_has_symbol(const char *name) { return library != NULL && dlsym(library, name) != NULL; }
