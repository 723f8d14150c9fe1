#include "core/kernel/launch.h"

#include "core/device/life.h"
#include "core/kernel/module.h"
#include "core/object/options.h"
#include "core/object/origin.h"

#include <string.h>

/* ---- modules ---- */

rill_status rill_module_load(rill_device device, const rill_bundle *bundle, rill_module *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_MODULE;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__module *module = NULL;
  RILL_TRY(rill__module_load(d, bundle, &module));
  out->id = module->base.id;
  rill__origin_note(&module->base);
  return RILL_OK;
}

rill_status rill_module_retain(rill_module module) {
  RILL_ENTER();
  return rill__object_retain(module.id, RILL__MODULE);
}

rill_status rill_module_release(rill_module module) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(module.id, RILL__MODULE, &last);
  if (last != NULL) rill__module_end((struct rill__module *)last);
  return status;
}

rill_status rill_module_get_kernel(rill_module module, const char *name, rill_kernel *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_KERNEL;
  struct rill__module *m;
  RILL_RESOLVE(RILL__MODULE, module, "module", &m);
  RILL_REQUIRE(name != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", name == NULL ? "name" : "out");
  RILL_TRY(rill__check_usable(m->base.device));
  struct rill__kernel *kernel = NULL;
  RILL_TRY(rill__module_kernel(m, name, &kernel));
  out->id = kernel->base.id;
  rill__origin_note(&kernel->base);
  return RILL_OK;
}

/* ---- kernels ---- */

rill_status rill_kernel_retain(rill_kernel kernel) {
  RILL_ENTER();
  return rill__object_retain(kernel.id, RILL__KERNEL);
}

rill_status rill_kernel_release(rill_kernel kernel) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(kernel.id, RILL__KERNEL, &last);
  if (last != NULL) rill__object_retire(last);
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

static rill_status check_index(const struct rill__kernel *kernel, uint32_t index) {
  if (kernel->source->arg_count == RILL__ARGS_UNKNOWN) return rill__fail_unknown_args(kernel);
  RILL_REQUIRE(index < kernel->source->arg_count, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\" has %u arguments; there is no index %u", kernel->name, kernel->source->arg_count, index);
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
  const uint32_t known = k->source->args[index].offset & ~RILL_BUNDLE_ARG_READS;
  RILL_REQUIRE(known != 0 || index == 0, RILL_ERROR_UNSUPPORTED,
               "kernel \"%s\" on %s: the image does not contain the offset of argument %u" RILL_HINT
               "compile it with the rillcc of this version",
               k->name, k->base.device->name, index);
  *offset = known;
  return RILL_OK;
}

rill_status rill_kernel_native(rill_kernel kernel, uintptr_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  if (k->base.device->backend->kernel->native != NULL) *out = RILL_ASK(k, kernel, native, k);
  return RILL_OK;
}

/* ---- launches ---- */

rill_status rill_stream_launch(rill_stream stream, rill_kernel kernel, const rill_launch *shape, const rill_arg *args,
                               size_t arg_count) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  return rill__launch(s, k, shape, args, arg_count);
}

/* Returns the kernel from the cache of a reference, which holds the ids of the kernels that the reference was last
 * resolved to on two devices.  The two words need not be consistent with each other: an id that is stale, or that
 * belongs to a kernel of another device, is looked up again. */
static struct rill__kernel *cached_kernel(const struct rill__device *device, rill_kernel_ref *ref) {
  for (int i = 0; i < 2; i++) {
    struct rill__kernel *kernel = rill__find(__atomic_load_n(&ref->cache[i], __ATOMIC_RELAXED), RILL__KERNEL);
    if (kernel != NULL && kernel->base.device == device) return kernel;
  }
  return NULL;
}

static inline __attribute__((always_inline)) rill_status launch_ref(struct rill__thread *self, rill_stream stream,
                                                                    rill_kernel_ref *ref, const rill_launch *shape,
                                                                    const rill_arg *args, size_t arg_count) {
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(ref != NULL, RILL_ERROR_INVALID_ARGUMENT, "ref is NULL");
  struct rill__kernel *kernel = cached_kernel(s->base.device, ref);
  if (RILL__UNLIKELY(kernel == NULL)) {
    RILL_TRY(rill__check_usable(s->base.device));
    RILL_TRY(rill__ref_resolve(s->base.device, ref, &kernel));
    __atomic_store_n(&ref->cache[(unsigned)s->base.device->info.ordinal % 2], kernel->base.id, __ATOMIC_RELAXED);
  }
  return rill__launch(s, kernel, shape, args, arg_count);
}

rill_status rill_stream_launch_ref(rill_stream stream, rill_kernel_ref *ref, const rill_launch *shape,
                                   const rill_arg *args, size_t arg_count) {
  RILL_ENTER_TO_SUBMIT();
  return launch_ref(self, stream, ref, shape, args, arg_count);
}

/* Clears the name of the current function: it may be in a library that is unloaded later. */
static inline void leave_typed(struct rill__thread *const *self) {
  if (RILL__LIKELY(*self != NULL)) (*self)->api = NULL;
  rill__leave(self);
}

rill_status rill_stream_launch_typed(rill_stream stream, rill_kernel_ref *ref, const rill_launch *shape,
                                     const rill_arg *args, size_t arg_count, const char *function) {
  struct rill__thread *const self __attribute__((cleanup(leave_typed))) =
      rill__enter(function != NULL ? function : __func__);
  if (RILL__UNLIKELY(self == NULL)) return RILL_ERROR_OUT_OF_MEMORY;
  return launch_ref(self, stream, ref, shape, args, arg_count);
}
