/* The formats of code for NVIDIA GPUs.  These are pure functions over arbitrary bytes, as in core/kernel/image.h; no
 * vendor header is needed.
 *
 *   cubin.c    machine code for one target: an ELF file
 *   ptx.c      text for one virtual architecture, which the driver compiles
 *   fatbin.c   several cubins and PTX texts, possibly compressed
 */
#ifndef RILL_BACKENDS_CUDA_FORMATS_H
#define RILL_BACKENDS_CUDA_FORMATS_H

#include "core/backend.h"

enum { CUDA_ELF_MACHINE = 190, CUDA_TARGET_SIZE = 24 };

#pragma GCC visibility push(hidden)

bool rill__cuda_is_cubin(const void *data, size_t size);
bool rill__cuda_is_ptx(const void *data, size_t size);
bool rill__cuda_is_fatbin(const void *data, size_t size);

/* Checks the whole file, counting the work of the image, and returns its target: "sm_90". */
const char *rill__cuda_cubin_check(const void *data, size_t size, char target[CUDA_TARGET_SIZE],
                                   struct rill__image *image);
/* Returns the target of a text: "ptx_80", "ptx_90a". */
const char *rill__cuda_ptx_check(const void *data, size_t size, char target[CUDA_TARGET_SIZE],
                                 struct rill__image *image);

/* Add the kernels of bytes that were checked. */
const char *rill__cuda_cubin_kernels(const void *data, size_t size, struct rill__image *out);
const char *rill__cuda_ptx_kernels(const void *data, size_t size, struct rill__image *out);

/* Adds one part for each entry with code.  The part of a compressed entry is the whole file, because the driver
 * decompresses it. */
const char *rill__cuda_fatbin_parts(const void *data, size_t size, struct rill__image *out);

#pragma GCC visibility pop

#endif
