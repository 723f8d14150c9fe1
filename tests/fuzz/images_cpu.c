/* Images for the backend cpu. */
#include "images.h"

const char *const fuzz_images_backend = "cpu";
