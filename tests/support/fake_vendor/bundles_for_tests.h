/* bundles_for_tests.h: images for tests that call a vendor library themselves. */
#ifndef FAKE_BUNDLES_FOR_TESTS_H
#define FAKE_BUNDLES_FOR_TESTS_H

#include <rill/bundle.h>
#include <string.h>

extern const rill_bundle basic_bundle;

/* The image of the bundle "basic" for a target; NULL where its compiler was missing. */
static inline const rill_bundle_image *bundle_image(const char *backend, const char *target) {
  for (size_t i = 0; i < basic_bundle.image_count; i++) {
    const rill_bundle_image *image = &basic_bundle.images[i];
    if (strcmp(image->backend, backend) == 0 && strcmp(image->target, target) == 0) return image;
  }
  return NULL;
}

#endif
