/* The forms that code for NVIDIA GPUs comes in.  Pure functions over bytes that may be anything, as core/kernel/image.h
 * has it; no vendor's header is needed here.
 *
 *   cubin.c    machine code for one target: an ELF file
 *   ptx.c      text for one virtual architecture, which the driver compiles
 *   fatbin.c   several of both, perhaps compressed
 */
#ifndef RILL_BACKENDS_CUDA_FORMATS_H
#define RILL_BACKENDS_CUDA_FORMATS_H

#include "core/backend.h"

enum { CUDA_ELF_MACHINE = 190, CUDA_TARGET_SIZE = 24 };

#pragma GCC visibility push(hidden)

bool rill__cuda_is_cubin(const void *data, size_t size);
bool rill__cuda_is_ptx(const void *data, size_t size);
bool rill__cuda_is_fatbin(const void *data, size_t size);

/* Looks the whole file over, as work of the image, and returns its target: "sm_90". */
const char *rill__cuda_cubin_check(const void *data, size_t size, char target[CUDA_TARGET_SIZE],
                                   struct rill__image *image);
/* The target of a text: "ptx_80", "ptx_90a". */
const char *rill__cuda_ptx_check(const void *data, size_t size, char target[CUDA_TARGET_SIZE],
                                 struct rill__image *image);

/* Adds the kernels.  Of bytes that were checked. */
const char *rill__cuda_cubin_kernels(const void *data, size_t size, struct rill__image *out);
const char *rill__cuda_ptx_kernels(const void *data, size_t size, struct rill__image *out);

/* Adds the parts, one for each entry that is code.  Compressed entries are for the driver to take out: their part is
 * the whole file. */
const char *rill__cuda_fatbin_parts(const void *data, size_t size, struct rill__image *out);

#pragma GCC visibility pop

#endif
