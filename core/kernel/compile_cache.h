/* Results of run-time compilation, cached on disk for this user only.
 *
 * The folder is named by RILL_CACHE (an absolute path; "off" or an empty value disables the cache), or else is
 * rill/kernels in XDG_CACHE_HOME or in ~/.cache.  It must belong to the user, and nobody else may be able to write to
 * it.  Each file is one result.  It is named after the hash of all inputs and contains the hash of its own content; a
 * file that does not agree with them is removed and not used.  A file appears complete, by a rename, so any number of
 * processes may share the folder.  When the folder grows beyond its limit, the results that were used longest ago are
 * removed.
 */
#ifndef RILL_CORE_KERNEL_COMPILE_CACHE_H
#define RILL_CORE_KERNEL_COMPILE_CACHE_H

#include "core/object/sha256.h"

#include <stdbool.h>

#define RILL__CACHE_BYTES (UINT64_C(256) << 20)

/* Opens the folder, creating it if it is missing.  Returns -1 if there is no cache, which is always the case in a
 * program that runs with more privileges than its user. */
int rill__cache_open(void);

/* Returns true and the result for a key, which the caller frees, or false. */
bool rill__cache_get(int folder, const uint8_t key[RILL__SHA256_BYTES], void **data, size_t *size);

/* Stores a result if possible, and removes others until all results together have at most `most` bytes. */
void rill__cache_put(int folder, const uint8_t key[RILL__SHA256_BYTES], const void *data, size_t size, uint64_t most);

#endif
