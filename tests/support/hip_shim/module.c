/* Modules and launches.
 *
 * The image that the backend loads is AMD machine code, which an NVIDIA GPU cannot run.  The bundle that it came
 * from has the same source compiled for CUDA beside it: that is what runs. */
#include "bundles.h"
#include "image.h"
#include "shim.h"

#include <stdlib.h>
#include <string.h>

/* Loads the first of the bundle's images of this kind that the driver takes, the newest target first. */
static CUresult load_one(const rill_bundle *bundle, const char *prefix, CUmodule *out) {
  CUresult code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (size_t i = bundle->image_count; i-- > 0 && code != CUDA_SUCCESS;) {
    const rill_bundle_image *image = &bundle->images[i]; /* rillcc sorts them by target */
    if (strcmp(image->backend, "cuda") == 0 && strncmp(image->target, prefix, strlen(prefix)) == 0)
      code = shim_cuda.cuModuleLoadData(out, image->data);
  }
  return code;
}

static CUresult load_instead(const void *amd_image, const char *target, CUmodule *out) {
  struct fake_image image;
  const rill_bundle_image *found;
  const int read = fake_image_read(amd_image, "hip", target, &image);
  if (read != FAKE_OK) return (CUresult)read;
  const rill_bundle *bundle = fake_bundle_of_image("hip", image.data, image.size, &found);
  fake_image_free(&image);
  if (bundle == NULL) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (strcmp(found->target, target) != 0) return CUDA_ERROR_NO_BINARY_FOR_GPU; /* as AMD's runtime says */
  const CUresult code = load_one(bundle, "sm_", out);
  return code == CUDA_SUCCESS ? code : load_one(bundle, "ptx_", out);
}

hipError_t hipModuleLoadData(hipModule_t *out, const void *image) {
  if (out == NULL || image == NULL) return shim_result(hipErrorInvalidValue);
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)load_instead(image, shim_target(), (CUmodule *)(void *)out);
    shim_leave();
  }
  return shim_result((int)code);
}

hipError_t hipModuleUnload(hipModule_t module) { SHIM_CALL(cuModuleUnload, (CUmodule)(void *)module); }

/* On AMD every launch may use all shared memory that a block can have; here a function must be allowed to first. */
static CUresult get_function(CUfunction *out, CUmodule module, const char *name) {
  int static_bytes = 0;
  CUresult code = shim_cuda.cuModuleGetFunction(out, module, name);
  if (code == CUDA_SUCCESS)
    code = shim_cuda.cuFuncGetAttribute(&static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, *out);
  if (code == CUDA_SUCCESS && static_bytes <= SHIM_SHARED_BYTES)
    code = shim_cuda.cuFuncSetAttribute(*out, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        SHIM_SHARED_BYTES - static_bytes);
  return code;
}

hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)get_function((CUfunction *)(void *)out, (CUmodule)(void *)module, name);
    shim_leave();
  }
  return shim_result((int)code);
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *out, size_t *size, hipModule_t module, const char *name) {
  CUdeviceptr p = 0;
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuModuleGetGlobal(&p, size, (CUmodule)(void *)module, name);
    shim_leave();
  }
  if (code == hipSuccess) *out = (void *)(uintptr_t)p;
  return shim_result((int)code);
}

/* The numbers of the attributes are the same. */
hipError_t hipFuncGetAttribute(int *out, hipFunction_attribute attribute, hipFunction_t function) {
  SHIM_CALL(cuFuncGetAttribute, out, (CUfunction_attribute)attribute, (CUfunction)(void *)function);
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared, hipStream_t stream,
                                            void **arguments) {
  SHIM_CALL(cuLaunchCooperativeKernel, (CUfunction)(void *)function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
            shared, shim_stream(stream), arguments);
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t function, int threads,
                                                              size_t shared) {
  SHIM_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, (CUfunction)(void *)function, threads, shared);
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *blocks, int *threads, hipFunction_t function, size_t shared,
                                                   int limit) {
  SHIM_CALL(cuOccupancyMaxPotentialBlockSize, blocks, threads, (CUfunction)(void *)function, NULL, shared, limit);
}

/* HIP and CUDA end the list of `extra` with different marks, and refuse other shapes with different codes. */
static CUresult launch(hipFunction_t function, const unsigned grid[3], const unsigned block[3], unsigned shared,
                       hipStream_t stream, void **arguments, void **extra) {
  enum { MOST = 8 };
  void *cuda_extra[MOST + 1] = { CU_LAUNCH_PARAM_END };
  size_t n = 0;
  for (; extra != NULL && extra[n] != HIP_LAUNCH_PARAM_END; n += 2) {
    if (n + 2 > MOST) return CUDA_ERROR_INVALID_VALUE;
    cuda_extra[n] = extra[n]; /* the other marks are the same */
    cuda_extra[n + 1] = extra[n + 1];
  }
  cuda_extra[n] = CU_LAUNCH_PARAM_END;
  return shim_cuda.cuLaunchKernel((CUfunction)(void *)function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                  shared, shim_stream(stream), arguments, extra == NULL ? NULL : cuda_extra);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                 hipStream_t stream, void **arguments, void **extra) {
  const unsigned grid[3] = { grid_x, grid_y, grid_z }, block[3] = { block_x, block_y, block_z };
  int device;
  hipError_t code = shim_enter();
  if (code != hipSuccess) return shim_result((int)code);
  code = shim_stream_device(stream, &device);
  if (code == hipSuccess && device != shim_current_device()) code = hipErrorInvalidHandle;
  if (code == hipSuccess && (block_x == 0 || block_y == 0 || block_z == 0)) code = hipErrorInvalidConfiguration;
  if (code == hipSuccess) code = (hipError_t)launch(function, grid, block, shared, stream, arguments, extra);
  shim_leave();
  return shim_result((int)code);
}
