/* The tests of dialect_cub.c, with kernels compiled to loops over threads on the cpu device. */
#define LOOPS 1
#ifndef EVERY_INSTANCE
#define FEW_INSTANCES /* as in dialect_cub_loops.kernel.cu */
#endif
#include "dialect_cub_loops.rill.h"

#include "dialect_cub.c"
