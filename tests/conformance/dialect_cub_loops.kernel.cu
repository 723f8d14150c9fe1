/* The kernels of dialect_cub.kernel.cu, as loops over threads on the cpu. */
#include <rill/device/cuda_names.h>

#include "dialect_cub.kernel.cu"
