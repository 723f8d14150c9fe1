/* Images of kernels, for the targets that read one backend's. */
#ifndef RILL_TESTS_FUZZ_IMAGES_H
#define RILL_TESTS_FUZZ_IMAGES_H

#include "fuzz.h"

/* Which backend this target is for. */
extern const char *const fuzz_images_backend;

#endif
