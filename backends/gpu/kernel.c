#include "backends/gpu/gpu.h"

/* Returns 0 if the driver does not know the attribute.  Call it inside a scope. */
static uint32_t kernel_attribute(gpu_function function, gpu_function_attribute which) {
  int value = 0;
  if (GPU_CALL(function_attribute, (&value, which, function)) != GPU_SUCCESS || value < 0) return 0;
  return (uint32_t)value;
}

/* Reads the required cluster size; no attribute reports a required block size.  Call it inside a scope. */
static void read_required_cluster(struct rill__kernel *kernel) {
  if (!gpu_vendor_required_cluster(gpu_kernel_of(kernel)->native, kernel->required_cluster)) return;
  for (int i = 1; i < 3; i++) {
    if (kernel->required_cluster[i] == 0) kernel->required_cluster[i] = 1;
  }
}

/* Adds the arguments that the driver reports; if it cannot report them, they stay unknown.  Call it inside a scope. */
static gpu_result query_args(struct rill__kernel *kernel) {
  enum { MAX_ARGUMENTS = 4096 }; /* exceeds the limits of all vendors */
  rill_bundle_kernel *source = kernel->own.kernels;
  for (size_t i = 0; i < MAX_ARGUMENTS; i++) {
    size_t offset = 0, size = 0;
    const gpu_result result = gpu_vendor_arg_place(gpu_kernel_of(kernel)->native, i, &offset, &size);
    if (result == GPU_NOT_SUPPORTED && i == 0) return GPU_SUCCESS;
    if (result == GPU_INVALID_VALUE) { /* there are no more arguments */
      if (i == 0) source->arg_count = 0;
      return GPU_SUCCESS;
    }
    if (result != GPU_SUCCESS) return result;
    if (!rill__image_add_arg(&kernel->own, "", 0, (uint32_t)size)) return GPU_SUCCESS; /* core checks no_memory */
    rill__image_set_offset(&kernel->own, (uint32_t)offset);
  }
  return GPU_SUCCESS;
}

static rill_status gpu_kernel_find(struct rill__kernel *kernel) {
  struct rill__device *device = kernel->base.device;
  struct gpu_kernel *part = gpu_kernel_of(kernel);
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = GPU_CALL(module_function, (&part->native, gpu_module_of(kernel->module)->native, kernel->source->name));
  if (result == GPU_SUCCESS) {
    kernel->max_threads = kernel_attribute(part->native, GPU_FUNCTION_MAX_THREADS);
    kernel->static_shared = kernel_attribute(part->native, GPU_FUNCTION_SHARED);
    kernel->registers = kernel_attribute(part->native, GPU_FUNCTION_REGISTERS);
    kernel->local_bytes = kernel_attribute(part->native, GPU_FUNCTION_LOCAL);
    kernel->constant_bytes = kernel_attribute(part->native, GPU_FUNCTION_CONSTANT);
    read_required_cluster(kernel);
  }
  const bool found = result == GPU_SUCCESS;
  if (found && kernel->source->arg_count == RILL__ARGS_UNKNOWN) result = query_args(kernel);
  gpu_leave(&scope);
  RILL_REQUIRE(result != GPU_NOT_FOUND, RILL_ERROR_NOT_FOUND, "the image that was loaded has no kernel \"%s\"",
               kernel->name);
  if (found && result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ARG_SIZE_TEXT);
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, module_function);
  if (kernel->max_threads == 0) kernel->max_threads = device->info.max_threads_per_block;
  const uint64_t shared = device->info.shared_per_block;
  atomic_store(&kernel->shared_allowed, shared > kernel->static_shared ? shared - kernel->static_shared : 0);
  return RILL_OK;
}

/* Allows the maximum at once, because a smaller request could undo a larger one of another thread. */
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

static gpu_result write_constants(const struct rill__launch_extras *extras, gpu_stream_handle stream,
                                  const char **symbol) {
  gpu_result result = GPU_SUCCESS;
  for (size_t i = 0; i < extras->constant_count && result == GPU_SUCCESS; i++) {
    const struct rill__constant *constant = &extras->constants[i];
    result = gpu_vendor_copy(constant->to, RILL_MEMORY_DEVICE, constant->from, RILL_MEMORY_PINNED, constant->size,
                             stream, symbol);
  }
  return result;
}

/* Writes the constants, and launches with a cluster or attributes.  Call it inside a scope. */
static gpu_result launch_with_extras(const struct gpu_stream *part, const struct rill__launch *shape,
                                     const char **symbol) {
  const struct rill__launch_extras *extras = shape->extras;
  const gpu_function function = gpu_kernel_of(shape->kernel)->native;
  if (extras != NULL && extras->constant_count > 0) {
    const gpu_result result = write_constants(extras, part->native, symbol);
    if (result != GPU_SUCCESS) return result;
  }
  if (shape->clustered || (extras != NULL && extras->set != 0)) {
    *symbol = GPU_LAUNCH_EXTENDED_TEXT;
    const bool records = extras != NULL && extras->event != NULL;
    return gpu_vendor_launch_extended(function, shape, part->native,
                                      records ? gpu_event_of(extras->event)->native : (gpu_event_handle)NULL);
  }
  *symbol = gpu_symbols.launch;
  return GPU_CALL(launch, (function, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
                           shape->block[2], shape->shared_mem_bytes, part->native, (void **)shape->args, NULL));
}

/* Launches with a cluster, attributes or constants.  Constants and their kernel take several calls, so threads that
 * launch this way on one stream exclude each other. */
static rill_status launch_extended(struct rill__stream *stream, const struct rill__launch *shape) {
  struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  const bool several = shape->extras != NULL && shape->extras->constant_count > 0;
  const char *symbol = "";
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  if (several) (void)pthread_mutex_lock(&part->constants_lock);
  result = launch_with_extras(part, shape, &symbol);
  if (several) (void)pthread_mutex_unlock(&part->constants_lock);
  gpu_leave(&scope);
  return result == GPU_SUCCESS ? RILL_OK : gpu_fail(device, result, symbol);
}

static rill_status gpu_kernel_launch(struct rill__stream *stream, const struct rill__launch *shape) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  if (RILL__UNLIKELY(shape->clustered || shape->extras != NULL)) return launch_extended(stream, shape);
  GPU_RUN(result, device, part->work_inside, launch,
          (gpu_kernel_of(shape->kernel)->native, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
           shape->block[1], shape->block[2], shape->shared_mem_bytes, part->native, (void **)shape->args, NULL));
  return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, launch);
}

static rill_status gpu_kernel_preload(struct rill__kernel *kernel) {
  struct rill__device *device = kernel->base.device;
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_load_function(gpu_kernel_of(kernel)->native);
  gpu_leave(&scope);
  return result == GPU_SUCCESS ? RILL_OK : gpu_fail(device, result, GPU_LOAD_FUNCTION_TEXT);
}

/* ---- attributes and occupancy ---- */

static bool gpu_kernel_has_attribute(struct rill__device *device, uint32_t kind, const char **why) {
  *why = "";
  if (kind == RILL_ATTR_COOPERATIVE) return gpu_device_table.supports(device, RILL_FEATURE_COOPERATIVE, why);
  return gpu_vendor_has_attribute(gpu_device_of(device)->native, kind, why);
}

static rill_status gpu_kernel_occupancy(struct rill__kernel *kernel, uint32_t threads, uint64_t shared,
                                        uint32_t *blocks) {
  gpu_result result;
  int value = 0;
  GPU_RUN_INSIDE(result, kernel->base.device, occupancy,
                 (&value, gpu_kernel_of(kernel)->native, (int)threads, (size_t)shared));
  if (result != GPU_SUCCESS) return GPU_FAIL(kernel->base.device, result, occupancy);
  *blocks = value > 0 ? (uint32_t)value : 0;
  return RILL_OK;
}

static rill_status gpu_kernel_suggest_block(struct rill__kernel *kernel, uint64_t shared, uint32_t limit,
                                            uint32_t *threads, uint32_t *blocks) {
  struct rill__device *device = kernel->base.device;
  struct gpu_scope scope;
  int size = 0, count = 0;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_suggest_block(&count, &size, gpu_kernel_of(kernel)->native, (size_t)shared, (int)limit);
  gpu_leave(&scope);
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, suggest_block);
  *threads = size > 0 ? (uint32_t)size : 0;
  *blocks = count > 0 ? (uint32_t)count : 0;
  return RILL_OK;
}

static rill_status cluster_limit(struct rill__kernel *kernel, const struct rill__launch *shape, uint32_t *blocks) {
  struct rill__device *device = kernel->base.device;
  struct gpu_scope scope;
  int value = 0;
  const char *symbol = "";
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_cluster_limit(gpu_kernel_of(kernel)->native, shape, &value, &symbol);
  gpu_leave(&scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, symbol);
  *blocks = value > 0 ? (uint32_t)value : 0;
  return RILL_OK;
}

static rill_status active_clusters(struct rill__kernel *kernel, const struct rill__launch *shape, uint32_t *clusters) {
  struct rill__device *device = kernel->base.device;
  struct gpu_scope scope;
  int value = 0;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  result = gpu_vendor_active_clusters(gpu_kernel_of(kernel)->native, shape, &value);
  gpu_leave(&scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ACTIVE_CLUSTERS_TEXT);
  *clusters = value > 0 ? (uint32_t)value : 0;
  return RILL_OK;
}

static uintptr_t gpu_kernel_native(struct rill__kernel *kernel) { return (uintptr_t)gpu_kernel_of(kernel)->native; }

const struct rill__kernel_table gpu_kernel_table = {
  .find = gpu_kernel_find,
  .preload = gpu_kernel_preload,
  .allow_shared = allow_shared,
  .launch = gpu_kernel_launch,
  .has_attribute = gpu_kernel_has_attribute,
  .occupancy = gpu_kernel_occupancy,
  .suggest_block = gpu_kernel_suggest_block,
  .cluster_limit = cluster_limit,
  .active_clusters = active_clusters,
  .native = gpu_kernel_native,
};
