/* A fake of the libraries through which programs name ranges for a profiler: the C functions of NVTX before version 3,
 * or of ROCTX.  Writes the ranges to standard error. */
#include <stdio.h>

#if RANGES_ROCTX
#define PUSH roctxRangePushA
#define POP roctxRangePop
#else
#define PUSH nvtxRangePushA
#define POP nvtxRangePop
#endif

int PUSH(const char *name);
int POP(void);

int PUSH(const char *name) { return fprintf(stderr, "push %s\n", name); }
int POP(void) { return fprintf(stderr, "pop\n"); }
