/* Variables of modules.
 *
 * A variable that has been found is device memory known to rill: it is in the map of allocations, so copies check their
 * ranges and know that it is not host memory.  It is removed from the map before its module is unloaded.
 */
#include "core/kernel/global.h"

#include "core/device/life.h"
#include "core/tracking/map.h"

#include <stdlib.h>
#include <string.h>

struct rill__global {
  struct rill__global *next;
  struct rill__allocation *allocation; /* NULL if the variable has no bytes */
  void *p;
  size_t size;
  char symbol[];
};

static pthread_mutex_t globals_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the lists of all modules */

void rill__globals_lock(void) { pthread_mutex_lock(&globals_lock); }
void rill__globals_unlock(void) { pthread_mutex_unlock(&globals_lock); }

/* Returns the variable if it was found before, or NULL.  Call it under the lock. */
static const struct rill__global *find_known(const struct rill__module *module, const char *symbol) {
  const struct rill__global *global = rill__core(module)->globals;
  while (global != NULL && strcmp(global->symbol, symbol) != 0) global = global->next;
  return global;
}

/* Creates the struct for a variable that was not found before. */
static rill_status new_global(struct rill__module *module, const char *symbol, void *p, size_t size,
                              struct rill__global **out) {
  const size_t length = strlen(symbol) + 1;
  struct rill__global *global = calloc(1, sizeof *global + length);
  RILL_REQUIRE(global != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of variable \"%s\"", symbol);
  memcpy(global->symbol, symbol, length);
  global->p = p;
  global->size = size;
  rill_status status = RILL_OK;
  if (size > 0) {
    status = rill__object_new(sizeof *global->allocation, module->base.device, symbol, rill__allocation_destroy,
                              &global->allocation);
  }
  if (status != RILL_OK) {
    free(global);
    return status;
  }
  if (size > 0) {
    global->allocation->begin = (uintptr_t)p;
    global->allocation->size = size;
    global->allocation->kind = RILL_MEMORY_DEVICE;
    global->allocation->variable = true;
  }
  *out = global;
  return RILL_OK;
}

/* Adds the variable to the list and the map, unless another thread has added it meanwhile. */
static rill_status enter(struct rill__module *module, struct rill__global *global) {
  struct rill__allocation *other = NULL;
  rill__globals_lock();
  const bool first = find_known(module, global->symbol) == NULL;
  const bool mapped = first && (global->allocation == NULL || rill__memory_insert(global->allocation, &other));
  if (mapped) {
    global->next = rill__core(module)->globals;
    rill__core(module)->globals = global;
  }
  rill__globals_unlock();
  if (mapped) return RILL_OK;
  rill_status status = RILL_OK;
  if (first && other != NULL) {
    status = rill__fail(RILL_ERROR_BACKEND, "variable \"%s\": %zu bytes at %p overlap other memory", global->symbol,
                        global->size, global->p);
  } else if (first) {
    status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of variable \"%s\"", global->symbol);
  }
  if (global->allocation != NULL) rill__unref(&global->allocation->base); /* no other thread has found it */
  free(global);
  return status;
}

rill_status rill__global_find(struct rill__module *module, const char *symbol, void **p, size_t *size) {
  rill__globals_lock();
  const struct rill__global *known = find_known(module, symbol);
  if (known != NULL) {
    *p = known->p;
    *size = known->size;
  }
  rill__globals_unlock();
  if (known != NULL) return RILL_OK;
  void *found = NULL;
  size_t bytes = 0;
  if (symbol[0] != '\0') RILL_TRY(RILL_DISPATCH(module, module, global, module, symbol, &found, &bytes));
  RILL_REQUIRE(found != NULL, RILL_ERROR_NOT_FOUND,
               "there is no variable \"%s\" in %s on %s" RILL_HINT
               "declare it __constant__ or __device__ outside namespaces, and use it in a kernel",
               symbol, rill__name_of(&module->base).text, module->base.device->name);
  struct rill__global *global = NULL;
  RILL_TRY(new_global(module, symbol, found, bytes, &global));
  RILL_TRY(enter(module, global));
  *p = found;
  *size = bytes;
  return RILL_OK;
}

void rill__globals_forget(struct rill__module *module) {
  while (rill__core(module)->globals != NULL) { /* no other thread has the module any more */
    struct rill__global *global = rill__core(module)->globals;
    rill__core(module)->globals = global->next;
    if (global->allocation != NULL) {
      rill__memory_untrack(global->allocation);
      rill__object_defer(&global->allocation->base);
    }
    free(global);
  }
}
