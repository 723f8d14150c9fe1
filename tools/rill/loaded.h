/* Libraries that this process has loaded. */
#ifndef RILL_TOOL_LOADED_H
#define RILL_TOOL_LOADED_H

#include <rill/rill.h>

/* Returns the path, with links resolved, of the library whose file name begins with `name`, such as "libcuda.so"; NULL
 * if none is loaded.  `path` has room for PATH_MAX bytes. */
const char *loaded_library(const char *name, char *path);

/* Returns the path of the vendor's library for a backend's devices; NULL for the CPU. */
const char *loaded_driver(uint32_t backend, char *path);

#endif
