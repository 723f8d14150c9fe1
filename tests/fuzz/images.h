/* Images of kernels, for the targets that read one backend's. */
#ifndef RILL_TESTS_FUZZ_IMAGES_H
#define RILL_TESTS_FUZZ_IMAGES_H

#include "fuzz.h"

/* Which backend this target is for. */
extern const char *const fuzz_images_backend;

/* Writes the valid image `index` of those that need no compiler, of a few KiB, and returns its size; 0 if there is
 * none. */
size_t fuzz_images_by_hand(unsigned index, uint8_t *out);

#endif
