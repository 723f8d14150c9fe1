/* images.h: every form in which a backend takes the kernels of a bundle, made from the bundle's own images.
 *
 *     struct image_forms *forms = image_forms_make(sample_bundle(), "cuda");
 *     for (size_t i = 0; i < forms->count; i++) ... forms->forms[i].data ...
 *     image_forms_free(forms);
 */
#ifndef RILL_TESTS_SUPPORT_IMAGES_H
#define RILL_TESTS_SUPPORT_IMAGES_H

#include <rill/bundle.h>

#include <stddef.h>

struct image_form {
  const char
      *what; /* "cubin", "PTX", "PTX without a zero", "fatbin", "code object", "offload bundle", "shared object" */
  const char *target;  /* "sm_90"; of several, that of the last */
  unsigned char *data; /* a block of exactly that size: memory checkers notice reads past it */
  size_t size;
};

enum { IMAGE_FORMS = 32 };

struct image_forms {
  struct image_form forms[IMAGE_FORMS];
  size_t count;
};

/* `backend` as in the bundle.  Several targets in one file are in the bundle's order. */
struct image_forms *image_forms_make(const rill_bundle *bundle, const char *backend);
void image_forms_free(struct image_forms *forms);

/* Puts a right seal at the end of a host image of at least 64 bytes, whose last 64 are to be one; `target` may be NULL,
 * which leaves the one that stands there. */
void image_seal(unsigned char *data, size_t size, const char *target);

#endif
