/* The forms that code for AMD GPUs comes in.  Pure functions over bytes that may be anything, as core/kernel/image.h
 * has it; no vendor's header is needed here.
 *
 *   code_object.c   machine code for one target: an ELF file, with a note that describes its kernels
 *   metadata.c      that note
 *   offload.c       clang's bundle of several code objects
 */
#ifndef RILL_BACKENDS_HIP_FORMATS_H
#define RILL_BACKENDS_HIP_FORMATS_H

#include "core/backend.h"

enum { HIP_ELF_MACHINE = 224, HIP_TARGET_SIZE = 64 };

#pragma GCC visibility push(hidden)

bool rill__hip_is_code_object(const void *data, size_t size);
bool rill__hip_is_offload_bundle(const void *data, size_t size);
bool rill__hip_is_compressed_bundle(const void *data, size_t size);

/* Looks the whole file over, as work of the image, and returns its target: "gfx90a", "gfx90a:sramecc+:xnack-". */
const char *rill__hip_code_object_check(const void *data, size_t size, char target[HIP_TARGET_SIZE],
                                        struct rill__image *image);

/* Adds the kernels.  Of bytes that were checked. */
const char *rill__hip_code_object_kernels(const void *data, size_t size, struct rill__image *out);

/* The note of a code object: its target, "" if it tells none; or, if `target` is NULL, its kernels, which are added. */
const char *rill__hip_metadata_read(const void *data, size_t size, char target[HIP_TARGET_SIZE],
                                    struct rill__image *image);

/* Adds the parts: the code objects of a bundle. */
const char *rill__hip_offload_parts(const void *data, size_t size, struct rill__image *out);

#pragma GCC visibility pop

#endif
