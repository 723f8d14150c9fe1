/* NVTX 3 has no library.  Each library that uses NVTX opens the profiler's library, which NVTX_INJECTION64_PATH names,
 * and passes tables of pointers to it; the profiler fills in the functions that it handles. */
#ifndef RILL_CORE_TIMELINE_INJECTION_H
#define RILL_CORE_TIMELINE_INJECTION_H

#include <stdbool.h>

/* Opens the profiler's library; call it once.  Returns false if there is none, or if it does not handle ranges. */
bool rill__injection_open(int (**push)(const char *name), int (**pop)(void));

#endif
