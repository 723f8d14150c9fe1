/* image.h: what is inside a cubin, PTX or AMD code object.  Stands alone: the HIP shim uses it too. */
#ifndef FAKE_IMAGE_H
#define FAKE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_OK = 0, FAKE_OUT_OF_MEMORY = 2, FAKE_INVALID_IMAGE = 200, FAKE_NO_BINARY = 209 };

struct fake_symbol {
  char *name;
  uint32_t shared; /* static shared memory, bytes; 0 if the image does not say */
};

struct fake_image {
  unsigned char *data; /* a copy; of a bundle, of the part for the target */
  size_t size;
  struct fake_symbol *kernels;
  size_t kernel_count;
};

/* `backend` says what is taken: "cuda" (cubin, PTX) or "hip" (AMD code object, alone or in clang's bundle).
 * Never reads outside what is mapped: anything else is FAKE_INVALID_IMAGE. */
int fake_image_read(const void *data, const char *backend, const char *target, struct fake_image *out);
void fake_image_free(struct fake_image *image);

#endif
