/* Compiling kernel sources at run time. */
#ifndef RILL_CORE_KERNEL_COMPILE_H
#define RILL_CORE_KERNEL_COMPILE_H

#include "core/object/core.h"

#include <rill/compile.h>

/* The headers of the kernel dialect, which are embedded in the library by core/embed_headers.py. */
extern const rill_compile_header *const rill__dialect_headers;
extern const size_t rill__dialect_header_count;

rill_status rill__compile_check_options(const rill_compile_options *options);
rill_status rill__compile_check_device(struct rill__device *device);

/* Compiles a source and loads the result.  Call it outside epochs, because it takes a long time. */
rill_status rill__compile(struct rill__device *device, const char *source, const rill_compile_options *options,
                          struct rill__module **out);

/* Returns the log of the calling thread's last compilation, or "". */
const char *rill__compile_log(void);
void rill__compile_log_clear(void);

#endif
