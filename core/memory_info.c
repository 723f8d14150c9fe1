#include "core/memory.h"
#include "core/options.h"

rill_status rill_memory_get_info(const void *p, rill_memory_info *info) {
  RILL_ENTER();
  rill_memory_info found = RILL_MEMORY_INFO_INIT;
  if (info != NULL && info->struct_size >= sizeof(size_t)) rill__options_write(info, &found, sizeof found);
  const struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_TRY(rill__options_check_output(info, "info"));
  found.kind = allocation->kind;
  found.device.id = allocation->base.device->base.id;
  found.base = (void *)allocation->begin;
  found.size = allocation->size;
  rill__options_write(info, &found, sizeof found);
  return RILL_OK;
}
