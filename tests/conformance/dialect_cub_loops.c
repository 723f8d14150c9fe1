/* The tests of dialect_cub.c, with kernels compiled to loops over threads on the cpu device. */
#define LOOPS 1
#include "dialect_cub_loops.rill.h"

#include "dialect_cub.c"
