/* Images for the backend hip. */
#include "images.h"

const char *const fuzz_images_backend = "hip";
