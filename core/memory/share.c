/* Memory shared between processes. */
#include "core/memory/memory.h"

#include "core/device/ipc.h"

#include "core/tracking/map.h"

rill_status rill__memory_check_exportable(const struct rill__allocation *allocation, const void *p) {
  static const char *const kinds[] = { "RILL_MEMORY_UNKNOWN", "RILL_MEMORY_DEVICE", "RILL_MEMORY_PINNED",
                                       "RILL_MEMORY_MANAGED", "RILL_MEMORY_REGISTERED" };
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
  RILL_REQUIRE(!allocation->imported, RILL_ERROR_INVALID_ARGUMENT,
               "%p is imported" RILL_HINT
               "export it in the process that allocated it; one handle serves any number of processes",
               p);
  RILL_REQUIRE(!allocation->variable, RILL_ERROR_UNSUPPORTED,
               "%p is a variable of a module on %s: no backend shares it between processes" RILL_HINT
               "allocate memory with rill_alloc",
               p, allocation->base.device->name);
  RILL_REQUIRE(!allocation->pooled, RILL_ERROR_UNSUPPORTED,
               "%p is memory of a pool on %s: a pool's memory cannot be shared between processes" RILL_HINT
               "allocate it with rill_alloc",
               p, allocation->base.device->name);
  RILL_REQUIRE(allocation->kind == RILL_MEMORY_DEVICE, RILL_ERROR_UNSUPPORTED,
               "%p is memory of kind %s on %s: no backend shares it between processes" RILL_HINT
               "allocate RILL_MEMORY_DEVICE",
               p, kinds[allocation->kind], allocation->base.device->name);
  return RILL_OK;
}

/* Adds an import to the map.  `opened`: as the backend returned it; `p`: the address that the user gets. */
static rill_status enter_import(struct rill__allocation *import, void *opened, void *p) {
  import->native = (uintptr_t)opened;
  import->pointer = (uintptr_t)p;
  rill__memory_lock();
  const struct rill__allocation *first = rill__ranges_find((void *)import->begin);
  const bool fits = first == NULL || (first->imported && first->begin == import->begin && first->size == import->size);
  const bool entered = fits && rill__import_insert(import);
  rill__memory_unlock();
  RILL_REQUIRE(
      fits, RILL_ERROR_INVALID_ARGUMENT,
      "the handle is forged: it claims %zu bytes, but the driver opened it at %p, where it overlaps other memory",
      import->size, opened);
  RILL_REQUIRE(entered, RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of %zu bytes at %p", import->size,
               opened);
  return RILL_OK;
}

rill_status rill__memory_open_import(struct rill__device *device, const struct rill__ipc_bytes *content,
                                     struct rill__allocation *import, void **out) {
  void *opened = NULL;
  RILL_REQUIRE(content->size <= SIZE_MAX && content->size <= device->info.memory_total, RILL_ERROR_INVALID_ARGUMENT,
               "the handle is forged: it claims %llu bytes, but %s has only %llu", (unsigned long long)content->size,
               device->name, (unsigned long long)device->info.memory_total);
  import->native_size = (size_t)content->size;
  import->size = import->native_size - content->lead;
  import->kind = RILL_MEMORY_DEVICE;
  import->imported = true;
  RILL_TRY(RILL_DISPATCH(device, memory, ipc_import, device, &content->native, import->native_size, &opened));
  void *p = (char *)opened + content->offset;
  import->begin = (uintptr_t)opened + content->lead;
  const rill_status status = enter_import(import, opened, p);
  if (status != RILL_OK) {
    rill__errors_suspend();
    (void)RILL_DISPATCH(device, memory, ipc_close, device, opened, import->native_size);
    rill__errors_resume();
    return status;
  }
  *out = p;
  return RILL_OK;
}
