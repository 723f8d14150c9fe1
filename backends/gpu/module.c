#include "backends/gpu/gpu.h"

static uint32_t fit(struct rill__device *device, const rill_bundle_image *image) {
  if (strcmp(image->backend, GPU_BACKEND_NAME) != 0) return 0;
  return gpu_vendor_fit(&gpu_device_of(device)->target, image->target);
}

static void needs(struct rill__device *device, char *text, size_t size) {
  gpu_vendor_needs(&gpu_device_of(device)->target, text, size);
}

static rill_status load(struct rill__module *module, const rill_bundle_image *image) {
  struct rill__device *device = module->base.device;
  char log[600] = ""; /* what the compiler of intermediate code has to say */
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_module_load(&gpu_module_of(module)->native, image->data, log, sizeof log);
  gpu_leave(&scope);
  if (result == GPU_SUCCESS) return RILL_OK;
  log[sizeof log - 1] = '\0';
  const rill_status status = GPU_FAIL(device, result, module_load);
  if (status != RILL_ERROR_BACKEND) return status;
  return rill__fail_native(status, result, gpu_vendor_error_name(result), "%s: image %s of %zu bytes was refused%s%s",
                           gpu_symbols.module_load, image->target, image->size, log[0] != '\0' ? ": " : "", log);
}

/* A refusal leaves nothing to do: the driver has shut down at exit, or the device is lost. */
static void unload(struct rill__module *module) {
  struct rill__device *device = module->base.device;
  const bool lost = atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK;
  if (gpu_forked || (lost && GPU_MAY_HANG_BEHIND_FAULT)) return;
  gpu_result result;
  GPU_RUN_INSIDE(result, device, module_unload, (gpu_module_of(module)->native));
  (void)result;
}

const struct rill__module_table gpu_module_table = {
  .fit = fit,
  .needs = needs,
  .load = load,
  .unload = unload,
  .takes = GPU_TAKES,
  .recognize = gpu_recognize,
  .read_parts = gpu_read_parts,
  .read_kernels = gpu_read_kernels,
};

/* ---- kernels ---- */

/* Inside a scope; 0 if the driver does not say. */
static uint32_t attribute(gpu_function function, gpu_function_attribute which) {
  int value = 0;
  if (GPU_CALL(function_attribute(&value, which, function)) != GPU_SUCCESS || value < 0) return 0;
  return (uint32_t)value;
}

/* Inside a scope.  Adds the arguments that the driver tells of; if it cannot, they stay unknown. */
static gpu_result ask_for_args(struct rill__kernel *kernel) {
  enum { MOST = 4096 }; /* more than fit any limit of a vendor */
  rill_bundle_kernel *source = kernel->own.kernels;
  for (size_t i = 0; i < MOST; i++) {
    size_t size = 0;
    const gpu_result result = gpu_vendor_arg_size(gpu_kernel_of(kernel)->native, i, &size);
    if (result == GPU_NOT_SUPPORTED && i == 0) return GPU_SUCCESS;
    if (result == GPU_INVALID_VALUE) { /* that was the last */
      if (i == 0) source->arg_count = 0;
      return GPU_SUCCESS;
    }
    if (result != GPU_SUCCESS) return result;
    if (!rill__image_add_arg(&kernel->own, "", 0, (uint32_t)size)) return GPU_SUCCESS; /* core looks at no_memory */
  }
  return GPU_SUCCESS;
}

static rill_status find(struct rill__kernel *kernel) {
  struct rill__device *device = kernel->base.device;
  struct gpu_kernel *part = gpu_kernel_of(kernel);
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = GPU_CALL(module_function(&part->native, gpu_module_of(kernel->module)->native, kernel->source->name));
  if (result == GPU_SUCCESS) {
    kernel->max_threads = attribute(part->native, GPU_FUNCTION_MAX_THREADS);
    kernel->static_shared = attribute(part->native, GPU_FUNCTION_SHARED);
    kernel->registers = attribute(part->native, GPU_FUNCTION_REGISTERS);
    kernel->local_bytes = attribute(part->native, GPU_FUNCTION_LOCAL);
    kernel->constant_bytes = attribute(part->native, GPU_FUNCTION_CONSTANT);
  }
  const bool found = result == GPU_SUCCESS;
  if (found && kernel->source->arg_count == RILL__ARGS_UNKNOWN) result = ask_for_args(kernel);
  gpu_leave(&scope);
  RILL_REQUIRE(result != GPU_NOT_FOUND, RILL_ERROR_NOT_FOUND, "the image that was loaded has no kernel \"%s\"",
               kernel->source->name);
  if (found && result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ARG_SIZE_TEXT);
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, module_function);
  if (kernel->max_threads == 0) kernel->max_threads = device->info.max_threads_per_block;
  const uint64_t shared = device->info.shared_per_block;
  atomic_store(&kernel->shared_allowed, shared > kernel->static_shared ? shared - kernel->static_shared : 0);
  return RILL_OK;
}

/* All that a block can have, at once: a smaller request would take a larger one of another thread back. */
static rill_status allow_shared(struct rill__kernel *kernel, uint64_t bytes) {
  struct rill__device *device = kernel->base.device;
  const uint64_t most = device->info.shared_per_block_optin - kernel->static_shared;
  struct gpu_scope scope;
  (void)bytes;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_allow_shared(gpu_kernel_of(kernel)->native, most);
  gpu_leave(&scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ALLOW_SHARED_TEXT);
  atomic_store(&kernel->shared_allowed, most);
  return RILL_OK;
}

static rill_status launch_clusters(struct rill__stream *stream, const struct rill__launch *shape) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_launch_clusters(gpu_kernel_of(shape->kernel)->native, shape->grid, shape->block, shape->cluster,
                                      shape->shared_mem_bytes, part->native, (void **)shape->args);
  gpu_leave(&scope);
  return result == GPU_SUCCESS ? RILL_OK : gpu_fail(device, result, "a launch in clusters");
}

static rill_status launch(struct rill__stream *stream, const struct rill__launch *shape) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  if (RILL__UNLIKELY(shape->clustered)) return launch_clusters(stream, shape);
  GPU_RUN(result, device, part->work_inside, launch,
          (gpu_kernel_of(shape->kernel)->native, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
           shape->block[1], shape->block[2], shape->shared_mem_bytes, part->native, (void **)shape->args, NULL));
  return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, launch);
}

static rill_status preload(struct rill__kernel *kernel) {
  struct rill__device *device = kernel->base.device;
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_load_function(gpu_kernel_of(kernel)->native);
  gpu_leave(&scope);
  return result == GPU_SUCCESS ? RILL_OK : gpu_fail(device, result, GPU_LOAD_FUNCTION_TEXT);
}

const struct rill__kernel_table gpu_kernel_table = {
  .find = find,
  .preload = preload,
  .allow_shared = allow_shared,
  .launch = launch,
};
