/* error_names.h: the vendors' names of the codes that rill knows, the engine gives or tests inject. */
#ifndef FAKE_ERROR_NAMES_H
#define FAKE_ERROR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* NULL if it is none of these. */
static inline const char *fake_error_name(int code, bool hip) {
  static const struct {
    int code;
    const char *cuda, *hip;
  } names[] = {
#define GPU_CODE(field, number, cuda_name, hip_name) { number, #cuda_name, #hip_name },
#define GPU_CODE_CUDA(field, number, cuda_name) { number, #cuda_name, NULL },
#include "backends/gpu/gpu_enums.def"
    { 3, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized" },
    { 9, "CUDA_ERROR_INVALID_CONFIGURATION", "hipErrorInvalidConfiguration" },
    { 35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "hipErrorInsufficientDriver" },
    { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "hipErrorDevicesUnavailable" },
    { 100, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice" },
    { 101, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice" },
    { 200, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage" },
    { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorNoBinaryForGpu" },
    { 218, "CUDA_ERROR_INVALID_PTX", "hipErrorInvalidKernelFile" },
    { 304, "CUDA_ERROR_OPERATING_SYSTEM", "hipErrorOperatingSystem" },
    { 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "hipErrorHostMemoryNotRegistered" },
    { 800, "CUDA_ERROR_NOT_PERMITTED", NULL },
    { 999, "CUDA_ERROR_UNKNOWN", "hipErrorUnknown" },
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].code == code) return hip ? names[i].hip : names[i].cuda;
  }
  return NULL;
}

#endif
