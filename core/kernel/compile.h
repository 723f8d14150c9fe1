/* Compiling kernel sources while the program runs. */
#ifndef RILL_CORE_KERNEL_COMPILE_H
#define RILL_CORE_KERNEL_COMPILE_H

#include "core/object/core.h"

#include <rill/compile.h>

/* The kernel dialect's headers, which are part of the library: made by core/embed_headers.py. */
extern const rill_compile_header *const rill__dialect_headers;
extern const size_t rill__dialect_header_count;

rill_status rill__compile_check_options(const rill_compile_options *options);
rill_status rill__compile_check_device(struct rill__device *device);

/* Outside epochs, since it takes long. */
rill_status rill__compile(struct rill__device *device, const char *source, const rill_compile_options *options,
                          struct rill__module **out);

/* The calling thread's log of its last compile, "" if there is none. */
const char *rill__compile_log(void);
void rill__compile_log_clear(void);

#endif
