/* Images for the backend cuda. */
#include "images.h"

const char *const fuzz_images_backend = "cuda";
