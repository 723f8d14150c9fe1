#include "backends/gpu/gpu.h"

#include <stdlib.h>

static uint32_t gpu_module_fit(struct rill__device *device, const rill_bundle_image *image) {
  if (strcmp(image->backend, GPU_BACKEND_NAME) != 0) return 0;
  return gpu_vendor_fit(&gpu_device_of(device)->target, image->target);
}

static void gpu_module_needs(struct rill__device *device, char *text, size_t size) {
  gpu_vendor_needs(&gpu_device_of(device)->target, text, size);
}

static rill_status load_from(struct rill__module *module, const rill_bundle_image *image, const void *data) {
  struct rill__device *device = module->base.device;
  char log[600] = ""; /* messages of the compiler of intermediate code */
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_module_load(&gpu_module_of(module)->native, data, log, sizeof log);
  gpu_leave(&scope);
  if (result == GPU_SUCCESS) return RILL_OK;
  log[sizeof log - 1] = '\0';
  const rill_status status = GPU_FAIL(device, result, module_load);
  if (status != RILL_ERROR_BACKEND) return status;
  return rill__fail_native(status, result, gpu_vendor_error_name(result), "%s: image %s of %zu bytes was refused%s%s",
                           gpu_symbols.module_load, image->target, image->size, log[0] != '\0' ? ": " : "", log);
}

static rill_status gpu_module_load(struct rill__module *module, const rill_bundle_image *image) {
  struct gpu_module *part = gpu_module_of(module);
  if (!GPU_MODULES_KEEP_IMAGES) return load_from(module, image, image->data);
  part->image = malloc(image->size);
  RILL_REQUIRE(part->image != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a copy of image %s of %zu bytes",
               image->target, image->size);
  memcpy(part->image, image->data, image->size);
  const rill_status status = load_from(module, image, part->image);
  if (status != RILL_OK) free(part->image);
  return status;
}

/* Errors are ignored: the driver has shut down at exit, or the device is lost. */
static void gpu_module_unload(struct rill__module *module) {
  struct rill__device *device = module->base.device;
  const bool lost = atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK;
  gpu_result result = GPU_SUCCESS;
  if (!gpu_forked && !(lost && GPU_MAY_HANG_AFTER_FAULT)) {
    GPU_RUN_INSIDE(result, device, module_unload, (gpu_module_of(module)->native));
  }
  (void)result;
  free(gpu_module_of(module)->image); /* no later call can read it */
}

static rill_status gpu_module_global(struct rill__module *module, const char *symbol, void **p, size_t *size) {
  gpu_result result;
  gpu_pointer address = 0;
  GPU_RUN_INSIDE(result, module->base.device, module_global, (&address, size, gpu_module_of(module)->native, symbol));
  *p = result == GPU_SUCCESS ? (void *)(uintptr_t)address : NULL;
  /* Some drivers report an invalid value for a name that is not a variable's, for example a kernel's. */
  const bool none = result == GPU_NOT_FOUND || result == GPU_INVALID_VALUE;
  return result == GPU_SUCCESS || none ? RILL_OK : GPU_FAIL(module->base.device, result, module_global);
}

static uintptr_t gpu_module_native(struct rill__module *module) { return (uintptr_t)gpu_module_of(module)->native; }

const struct rill__module_table gpu_module_table = {
  .fit = gpu_module_fit,
  .needs = gpu_module_needs,
  .load = gpu_module_load,
  .unload = gpu_module_unload,
  .takes = GPU_TAKES,
  .recognize = gpu_recognize,
  .read_parts = gpu_read_parts,
  .read_kernels = gpu_read_kernels,
  .global = gpu_module_global,
  .native = gpu_module_native,
  .compiler = gpu_compiler,
  .compile = gpu_compile,
};
