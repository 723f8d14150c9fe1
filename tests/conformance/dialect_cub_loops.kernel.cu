/* The kernels of dialect_cub.kernel.cu, as loops over threads on the cpu.  They take long to compile: tests/levels has the
 * instances for float and double. */
#ifndef EVERY_INSTANCE
#define FEW_INSTANCES
#endif
#include <rill/device/cuda_names.h>

#include "dialect_cub.kernel.cu"
