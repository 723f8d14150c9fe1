#include "core/kernel/launch.h"
#include "core/object/options.h"

#include <string.h>

rill_status rill_kernel_retain(rill_kernel kernel) {
  RILL_ENTER();
  return rill__object_retain(kernel.id, RILL__KERNEL);
}

rill_status rill_kernel_release(rill_kernel kernel) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(kernel.id, RILL__KERNEL, &last);
  if (last != NULL) rill__object_retire(last);
  rill__leave(&self);
  rill__reclaim();
  return status;
}

rill_status rill_kernel_get_info(rill_kernel kernel, rill_kernel_info *info) {
  RILL_ENTER();
  rill_kernel_info result = RILL_KERNEL_INFO_INIT;
  const bool writable = info != NULL && info->struct_size >= sizeof(size_t);
  if (writable) rill__options_write(info, &result, sizeof result);
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_TRY(rill__options_check_output(info, "info"));
  result.name = k->source->name;
  result.arg_count = k->source->arg_count == RILL__ARGS_UNKNOWN ? 0 : k->source->arg_count;
  result.registers = k->registers;
  result.max_threads = k->max_threads;
  result.shared_bytes = k->static_shared;
  result.local_bytes = k->local_bytes;
  result.constant_bytes = k->constant_bytes;
  result.warp_size = k->base.device->info.warp_size;
  memcpy(result.required_block, k->block, sizeof result.required_block);
  memcpy(result.required_cluster, k->required_cluster, sizeof result.required_cluster);
  rill__options_write(info, &result, sizeof result);
  return RILL_OK;
}

rill_status rill__fail_unknown_args(const struct rill__kernel *kernel) {
  const char *why = "";
  (void)RILL_DOOR(kernel, device, supports, kernel->base.device, RILL_FEATURE_KERNEL_ARGS, &why);
  return rill__fail(RILL_ERROR_UNSUPPORTED, "the arguments of kernel \"%s\" are not known on %s: %s",
                    kernel->source->name, kernel->base.device->name, why);
}

static rill_status check_index(const struct rill__kernel *kernel, uint32_t index) {
  if (kernel->source->arg_count == RILL__ARGS_UNKNOWN) return rill__fail_unknown_args(kernel);
  RILL_REQUIRE(index < kernel->source->arg_count, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\" has %u arguments, no number %u", kernel->source->name, kernel->source->arg_count, index);
  return RILL_OK;
}

rill_status rill_kernel_arg_size(rill_kernel kernel, uint32_t index, size_t *size) {
  RILL_ENTER();
  if (size != NULL) *size = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(size != NULL, RILL_ERROR_INVALID_ARGUMENT, "size is NULL");
  RILL_TRY(check_index(k, index));
  *size = k->source->args[index].size;
  return RILL_OK;
}

rill_status rill_kernel_arg_offset(rill_kernel kernel, uint32_t index, size_t *offset) {
  RILL_ENTER();
  if (offset != NULL) *offset = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(offset != NULL, RILL_ERROR_INVALID_ARGUMENT, "offset is NULL");
  RILL_TRY(check_index(k, index));
  const uint32_t known = k->source->args[index].offset;
  RILL_REQUIRE(known != 0 || index == 0, RILL_ERROR_UNSUPPORTED,
               "kernel \"%s\" on %s: the image does not say where argument %u lies" RILL_HINT
               "compile it with the rillcc of this version",
               k->source->name, k->base.device->name, index);
  *offset = known;
  return RILL_OK;
}

rill_status rill_kernel_native(rill_kernel kernel, uintptr_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  if (k->base.device->backend->kernel->native != NULL) *out = RILL_DOOR(k, kernel, native, k);
  return RILL_OK;
}
