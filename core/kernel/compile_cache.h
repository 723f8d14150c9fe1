/* What run-time compilers made, kept on disk for this user alone.
 *
 * The folder is what RILL_CACHE names (an absolute path; "off" or nothing: no cache), else rill/kernels in
 * XDG_CACHE_HOME or in ~/.cache.  It must belong to the user and nobody else may write to it.  Each file is one
 * result, named for the hash of everything that went into it, and holds the hash of its own content: what does not
 * agree is not used, and removed.  A file appears complete, by a rename, so any number of processes may share the
 * folder; when it grows beyond its limit, what was used longest ago goes.
 */
#ifndef RILL_CORE_KERNEL_COMPILE_CACHE_H
#define RILL_CORE_KERNEL_COMPILE_CACHE_H

#include "core/object/sha256.h"

#include <stdbool.h>

#define RILL__CACHE_BYTES (UINT64_C(256) << 20)

/* Opens the folder, and makes it where it is missing.  -1: there is no cache (never in a program that runs with more
 * rights than its user). */
int rill__cache_open(void);

/* Returns what is kept under a key, to be freed, or false. */
bool rill__cache_get(int folder, const uint8_t key[RILL__SHA256_BYTES], void **data, size_t *size);

/* Keeps something, if it can, and lets others go until all are at most `most` bytes. */
void rill__cache_put(int folder, const uint8_t key[RILL__SHA256_BYTES], const void *data, size_t size, uint64_t most);

#endif
