#include "core/memory/ranges.h"
#include "core/object/options.h"
#include "core/pool/pool.h"

#include <string.h>

rill_status rill_memory_get_info(const void *p, rill_memory_info *info) {
  RILL_ENTER();
  rill_memory_info found;
  memset(&found, 0, sizeof found); /* what lies between its fields too */
  found.struct_size = sizeof found;
  if (info != NULL && info->struct_size >= sizeof(size_t)) rill__options_write(info, &found, sizeof found);
  struct rill__allocation *allocation = rill__ranges_find(p);
  uintptr_t begin = allocation != NULL ? allocation->begin : 0;
  size_t size = allocation != NULL ? allocation->size : 0;
  const bool known = allocation != NULL && (!allocation->pooled || rill__pool_find(allocation, p, &begin, &size));
  RILL_REQUIRE(known, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_TRY(rill__options_check_output(info, "info"));
  found.kind = allocation->kind;
  found.device.id = allocation->base.device->base.id;
  found.base = (void *)begin;
  found.size = size;
  rill__options_write(info, &found, sizeof found);
  return RILL_OK;
}
