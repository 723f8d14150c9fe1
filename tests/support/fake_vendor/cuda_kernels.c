/* The CUDA driver API over the engine: modules, kernels and launches. */
#include "cuda_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int load_module(CUmodule *out, const void *image, unsigned count, const CUjit_option *options, void **values) {
  void *handle = NULL;
  const int code = fake_module_load(image, out == NULL ? NULL : &handle);
  if (code == FAKE_OK) *out = handle;
  size_t size = 0;
  char *log = NULL;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = (size_t)(uintptr_t)values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
  }
  if (log != NULL && size != 0)
    (void)snprintf(log, size, "%s", code == FAKE_OK ? "" : "the fake cannot read this image");
  return code;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image) { CU_CALL(load_module(out, image, 0, NULL, NULL)); }

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options,
                                    void **values) {
  CU_CALL(load_module(out, image, count, options, values));
}

static int get_global(CUdeviceptr *out, size_t *size, CUmodule module, const char *name) {
  void *p = NULL;
  const int code = fake_module_global(module, name, &p, size);
  if (code == FAKE_OK && out != NULL) *out = (CUdeviceptr)(uintptr_t)p;
  return code;
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *out, size_t *size, CUmodule module, const char *name) {
  CU_CALL(get_global(out, size, module, name));
}

static int set_function_attribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK || attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return code;
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    function->non_portable = value != 0;
    return value == 0 || value == 1 ? FAKE_OK : FAKE_INVALID_VALUE;
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      (uint64_t)value + function->static_shared > fake_vendor.shared_optin)
    return FAKE_INVALID_VALUE;
  function->dynamic_limit = (uint32_t)value;
  return FAKE_OK;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  CU_CALL(set_function_attribute(function, attribute, value));
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  CU_CALL(fake_function_parameter(function, index, offset, size));
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                             size_t shared) {
  CU_CALL(fake_occupancy(function, threads, shared, blocks));
}

/* A function that says how much shared memory a block size needs is not known here. */
CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  CU_CALL(shared_of != NULL ? FAKE_INVALID_VALUE : fake_suggest_block(function, shared, limit, threads, blocks));
}

static int load_function(CUfunction handle) {
  struct fake_function *function;
  return fake_function_get(handle, &function);
}

CUresult CUDAAPI cuFuncLoad(CUfunction function) { CU_CALL(load_function(function)); }

static int launch(CUfunction function, CUstream stream, struct fake_launch *values, void **extra) {
  const int code = fake_launch_extra(values, extra, CU_LAUNCH_PARAM_END);
  return code == FAKE_OK ? fake_launch(function, stream, values) : code;
}

/* ---- launches with attributes ---- */

static int capability(void) { return atoi(strpbrk(fake_options()->target, "0123456789")); }

static int check_access(const CUaccessPolicyWindow *window) {
  if (capability() < 80) return FAKE_NOT_SUPPORTED;
  return window->num_bytes <= FAKE_ACCESS_WINDOW && window->hitRatio >= 0 && window->hitRatio <= 1 &&
                 (int)window->hitProp >= 0 && window->hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
                 (int)window->missProp >= 0 && window->missProp < CU_ACCESS_PROPERTY_PERSISTING
             ? FAKE_OK
             : FAKE_INVALID_VALUE;
}

/* An event that the launch records: it must not time, nor be shared. */
static int take_event(const CUlaunchAttributeValue *value, struct fake_launch *launch) {
  if (capability() < 90) return FAKE_NOT_SUPPORTED;
  const struct fake_event *event = fake_handle_get(FAKE_EVENT, value->programmaticEvent.event);
  if (event == NULL) return FAKE_INVALID_HANDLE;
  if ((event->flags & FAKE_EVENT_DISABLE_TIMING) == 0 || (event->flags & FAKE_EVENT_INTERPROCESS) != 0 ||
      value->programmaticEvent.flags != 0)
    return FAKE_INVALID_VALUE;
  launch->event = value->programmaticEvent.event;
  return FAKE_OK;
}

/* Each as the driver documents it; the numbers are those of every version of the header. */
int fake_cuda_take_attribute(const CUlaunchAttribute *attribute, struct fake_launch *launch) {
  const CUlaunchAttributeValue *value = &attribute->value;
  int number;
  memcpy(&number, value, sizeof number);
  if ((launch->carried >> attribute->id & 1) != 0) return FAKE_INVALID_VALUE; /* twice */
  launch->carried |= UINT64_C(1) << attribute->id;
  switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return check_access(&value->accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: launch->cooperative = number != 0; return FAKE_OK;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      memcpy(launch->cluster, &value->clusterDim, sizeof launch->cluster);
      return capability() >= 90 ? FAKE_OK : FAKE_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return capability() >= 90 ? FAKE_OK : FAKE_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: return take_event(value, launch);
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return number <= fake_vendor.priority_least && number >= fake_vendor.priority_greatest ? FAKE_OK
                                                                                             : FAKE_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      if (fake_options()->version < 12000) return FAKE_INVALID_VALUE;
      return capability() < 90 ? FAKE_NOT_SUPPORTED : number == 0 || number == 1 ? FAKE_OK : FAKE_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return fake_options()->version >= 12050 && number >= 0 && number <= 100 ? FAKE_OK : FAKE_INVALID_VALUE;
    default: return FAKE_INVALID_VALUE;
  }
}

static int read_config(const CUlaunchConfig *config, struct fake_launch *launch) {
  *launch = (struct fake_launch){ .grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
                                  .block = { config->blockDimX, config->blockDimY, config->blockDimZ },
                                  .shared = config->sharedMemBytes };
  int code = config->numAttrs != 0 && config->attrs == NULL ? FAKE_INVALID_VALUE : FAKE_OK;
  for (unsigned i = 0; i < config->numAttrs && code == FAKE_OK; i++)
    code = fake_cuda_take_attribute(&config->attrs[i], launch);
  return code;
}

static int launch_extended(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra) {
  struct fake_launch values;
  const int code = read_config(config, &values);
  values.args = arguments;
  return code == FAKE_OK ? launch(function, config->hStream, &values, extra) : code;
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra) {
  CU_CALL(launch_extended(config, function, arguments, extra));
}

static int cluster_limit(int *out, CUfunction handle, const CUlaunchConfig *config) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK) return code;
  if (out == NULL || config == NULL) return FAKE_INVALID_VALUE;
  if (capability() < 90) return FAKE_NOT_SUPPORTED;
  *out = function->non_portable ? 16 : 8;
  return FAKE_OK;
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int *out, CUfunction function, const CUlaunchConfig *config) {
  CU_CALL(cluster_limit(out, function, config));
}

static int active_clusters(int *out, CUfunction handle, const CUlaunchConfig *config) {
  struct fake_launch values;
  int blocks = 0, code = out == NULL || config == NULL ? FAKE_INVALID_VALUE : read_config(config, &values);
  if (code != FAKE_OK) return code;
  const uint32_t size = values.cluster[0] * values.cluster[1] * values.cluster[2];
  const uint32_t threads = values.block[0] * values.block[1] * values.block[2];
  if (size == 0) return FAKE_INVALID_VALUE;
  code = fake_occupancy(handle, (int)threads, values.shared, &blocks);
  if (code == FAKE_OK) *out = blocks * FAKE_COMPUTE_UNITS / (int)size;
  return code;
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int *out, CUfunction function, const CUlaunchConfig *config) {
  CU_CALL(active_clusters(out, function, config));
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared, CUstream stream,
                                           void **arguments) {
  struct fake_launch values = { .grid = { grid_x, grid_y, grid_z },
                                .block = { block_x, block_y, block_z },
                                .shared = shared,
                                .args = arguments,
                                .cooperative = true,
                                .carried = 1u << CU_LAUNCH_ATTRIBUTE_COOPERATIVE };
  CU_CALL(launch(function, stream, &values, NULL));
}

/* ---- launches without ---- */

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                CUstream stream, void **arguments, void **extra) {
  struct fake_launch values = {
    .grid = { grid_x, grid_y, grid_z }, .block = { block_x, block_y, block_z }, .shared = shared, .args = arguments
  };
  CU_CALL(launch(function, stream, &values, extra));
}
