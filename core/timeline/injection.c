#include "core/timeline/injection.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of NVTX's interface: the tables, the modules in the first table, and the functions in the core module. */
enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3, INTERFACE_VERSION = 3 };
enum { MODULE_CORE = 1, MODULE_SYNC = 6, MODULES };
enum { CORE_PUSH = 9, CORE_POP = 11, MAX_FUNCTIONS = 16 };

typedef void any_function(void);
typedef any_function **const *function_table; /* entry 0 is NULL */

/* The number of functions of each module, plus one.  `functions` is filled in by the profiler. */
static const unsigned module_sizes[MODULES] = { 0, 16, 9, 15, 7, 16, 7 };
static any_function *functions[MODULES][MAX_FUNCTIONS];
static any_function **entries[MODULES][MAX_FUNCTIONS + 1];

static int get_functions(int module, function_table *table, unsigned *size) {
  if (module < MODULE_CORE || module >= MODULES) return 0;
  if (table != NULL) *table = entries[module];
  if (size != NULL) *size = module_sizes[module];
  return 1;
}

static void set_profiler_version(uint32_t version) { (void)version; }

static const void *get_table(uint32_t table) {
  static const struct {
    size_t struct_size;
    int (*get_functions)(int module, function_table *table, unsigned *size);
  } callbacks = { sizeof callbacks, get_functions };
  static const struct {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_profiler_version)(uint32_t version);
  } version = { sizeof version, INTERFACE_VERSION, 0, set_profiler_version };
  if (table == TABLE_CALLBACKS) return &callbacks;
  return table == TABLE_VERSION ? &version : NULL;
}

static void prepare_entries(void) {
  for (int module = MODULE_CORE; module < MODULES; module++) {
    for (unsigned i = 1; i < module_sizes[module]; i++) entries[module][i] = &functions[module][i];
  }
}

bool rill__injection_open(int (**push)(const char *name), int (**pop)(void)) {
  const char *const path = secure_getenv("NVTX_INJECTION64_PATH");
  if (sizeof(void *) != 8 || path == NULL || path[0] == '\0') return false;
  void *const library = dlopen(path, RTLD_LAZY); /* never closed, so it stays loaded */
  void *const symbol = library != NULL ? dlsym(library, "InitializeInjectionNvtx2") : NULL;
  int (*initialize)(const void *(*get_table)(uint32_t table)) = NULL;
  if (symbol == NULL) return false;
  memcpy(&initialize, &symbol, sizeof initialize);
  prepare_entries();
  if (initialize(get_table) == 0) return false;
  memcpy(push, &functions[MODULE_CORE][CORE_PUSH], sizeof *push);
  memcpy(pop, &functions[MODULE_CORE][CORE_POP], sizeof *pop);
  return *push != NULL && *pop != NULL;
}
