/* The formats of code for AMD GPUs.  These are pure functions over arbitrary bytes, as in core/kernel/image.h; no
 * vendor header is needed.
 *
 *   code_object.c   machine code for one target: an ELF file, with a note that describes its kernels
 *   metadata.c      the note
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

/* Checks the whole file, counting the work of the image, and returns its target: "gfx90a", "gfx90a:sramecc+:xnack-". */
const char *rill__hip_code_object_check(const void *data, size_t size, char target[HIP_TARGET_SIZE],
                                        struct rill__image *image);

/* Adds the kernels of bytes that were checked. */
const char *rill__hip_code_object_kernels(const void *data, size_t size, struct rill__image *out);

/* Reads the note of a code object: its target, "" if the note names none, or, if `target` is NULL, its kernels, which
 * are added. */
const char *rill__hip_metadata_read(const void *data, size_t size, char target[HIP_TARGET_SIZE],
                                    struct rill__image *image);

/* Adds one part for each code object of a bundle. */
const char *rill__hip_offload_parts(const void *data, size_t size, struct rill__image *out);

#pragma GCC visibility pop

#endif
