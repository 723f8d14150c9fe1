/* Memory shared between processes. */
#include "core/device/life.h"
#include "core/ipc.h"
#include "core/memory.h"
#include "core/memory/map.h"
#include "core/memory/ranges.h"

#include <string.h>

static rill_status check_exportable(const struct rill__allocation *allocation, const void *p) {
  static const char *const kinds[] = { "RILL_MEMORY_UNKNOWN", "RILL_MEMORY_DEVICE", "RILL_MEMORY_PINNED",
                                       "RILL_MEMORY_MANAGED", "RILL_MEMORY_REGISTERED" };
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_REQUIRE(!allocation->imported, RILL_ERROR_INVALID_ARGUMENT,
               "%p is imported" RILL_HINT "export it where it was allocated; its handle serves any number of processes",
               p);
  RILL_REQUIRE(!allocation->variable, RILL_ERROR_UNSUPPORTED,
               "%p is a variable of a module on %s: no backend shares it between processes, in any version" RILL_HINT
               "allocate memory with rill_alloc",
               p, allocation->base.device->name);
  RILL_REQUIRE(!allocation->pooled, RILL_ERROR_UNSUPPORTED,
               "%p is memory of a pool on %s: a pool's memory serves one process, in any version" RILL_HINT
               "allocate it with rill_alloc",
               p, allocation->base.device->name);
  RILL_REQUIRE(allocation->kind == RILL_MEMORY_DEVICE, RILL_ERROR_UNSUPPORTED,
               "%p is of kind %s on %s: no backend shares it between processes, in any version" RILL_HINT
               "allocate RILL_MEMORY_DEVICE",
               p, kinds[allocation->kind], allocation->base.device->name);
  return RILL_OK;
}

rill_status rill_memory_ipc_export(void *p, rill_ipc_handle *out) {
  RILL_ENTER_TO_BLOCK();
  if (out != NULL) memset(out, 0, sizeof *out);
  RILL_REQUIRE(out != NULL && p != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", out == NULL ? "out" : "p");
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_TRY(check_exportable(allocation, p));
  struct rill__device *device = allocation->base.device;
  RILL_TRY(rill__ipc_check_able(device, RILL_FEATURE_IPC));
  struct rill__ipc_bytes content = { .kind = RILL__IPC_MEMORY, .size = allocation->native_size };
  content.offset = (uintptr_t)p - allocation->native;
  RILL_REQUIRE(rill__memory_hold(allocation), RILL_ERROR_NOT_FOUND, "%p is being freed", p);
  rill__leave(&self);
  const rill_status status = RILL_DOOR(device, memory, ipc_export, device, (void *)allocation->native,
                                       allocation->native_size, &content.native);
  const bool freed = rill__memory_let_go(allocation);
  if (status != RILL_OK) return status;
  RILL_REQUIRE(!freed, RILL_ERROR_NOT_FOUND, "%p was freed by another thread meanwhile", p);
  rill__ipc_write(&content, device, out);
  return RILL_OK;
}

/* Puts what was opened into the map.  `p` is what the user gets. */
static rill_status enter_import(struct rill__allocation *import, void *opened, void *p) {
  import->begin = import->native = (uintptr_t)opened;
  import->pointer = (uintptr_t)p;
  rill__memory_lock();
  const struct rill__allocation *first = rill__ranges_find(opened);
  const bool fits = first == NULL || (first->imported && first->begin == import->begin && first->size == import->size);
  const bool entered = fits && rill__import_put_in(import);
  rill__memory_unlock();
  RILL_REQUIRE(fits, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: it says %zu bytes, and the driver opens them at %p, where other memory is",
               import->size, opened);
  RILL_REQUIRE(entered, RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of %zu bytes at %p", import->size,
               opened);
  return RILL_OK;
}

static rill_status open_import(struct rill__device *device, const struct rill__ipc_bytes *content,
                               struct rill__allocation *import, void **out) {
  void *opened = NULL;
  RILL_REQUIRE(content->size <= SIZE_MAX && content->size <= device->info.memory_total, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: %llu bytes, and %s has %llu", (unsigned long long)content->size, device->name,
               (unsigned long long)device->info.memory_total);
  import->size = import->native_size = (size_t)content->size;
  import->kind = RILL_MEMORY_DEVICE;
  import->imported = true;
  RILL_TRY(RILL_DOOR(device, memory, ipc_import, device, &content->native, import->size, &opened));
  void *p = (char *)opened + content->offset;
  const rill_status status = enter_import(import, opened, p);
  if (status != RILL_OK) {
    rill__errors_aside();
    (void)RILL_DOOR(device, memory, ipc_close, device, opened, import->size);
    rill__errors_back();
    return status;
  }
  *out = p;
  return RILL_OK;
}

rill_status rill_memory_ipc_import(rill_device device, const rill_ipc_handle *handle, void **out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = NULL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL && handle != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               out == NULL ? "out" : "handle");
  RILL_TRY(rill__ipc_check_able(d, RILL_FEATURE_IPC));
  struct rill__ipc_bytes content;
  RILL_TRY(rill__ipc_read(handle, d, RILL__IPC_MEMORY, &content));
  RILL_TRY(rill__device_activate(d));
  struct rill__allocation *import = NULL;
  RILL_TRY(rill__object_new(sizeof *import, d, NULL, rill__allocation_destroy, &import));
  const rill_status status = open_import(d, &content, import, out);
  if (status != RILL_OK) rill__drop(&import->base);
  return status;
}
