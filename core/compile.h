/* The kernel dialect's headers, which are part of the library: made by core/embed_headers.py. */
#ifndef RILL_CORE_COMPILE_H
#define RILL_CORE_COMPILE_H

#include <rill/compile.h>

extern const rill_compile_header rill__dialect_headers[];
extern const size_t rill__dialect_header_count;

#endif
