/* NVTX 3 has no library: each library that uses it opens the one of the profiler, which NVTX_INJECTION64_PATH names,
 * and hands it tables of pointers, in which the profiler sets the functions that it wants to be called. */
#ifndef RILL_CORE_TIMELINE_INJECTION_H
#define RILL_CORE_TIMELINE_INJECTION_H

#include <stdbool.h>

/* Opens the profiler's library.  Once; false if there is none, or it takes no ranges. */
bool rill__injection_open(int (**push)(const char *name), int (**pop)(void));

#endif
