/* bundles_for_tests.h: images for tests that call a vendor library themselves. */
#ifndef FAKE_BUNDLES_FOR_TESTS_H
#define FAKE_BUNDLES_FOR_TESTS_H

#include <rill/bundle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const rill_bundle basic_bundle, gate_bundle;

/* The image of the bundle "basic" or "gate" for a target; ends the program if there is none. */
static inline const rill_bundle_image *bundle_image(const char *name, const char *backend, const char *target) {
  const rill_bundle *bundle = strcmp(name, "basic") == 0 ? &basic_bundle : &gate_bundle;
  for (size_t i = 0; i < bundle->image_count; i++)
    if (strcmp(bundle->images[i].backend, backend) == 0 && strcmp(bundle->images[i].target, target) == 0)
      return &bundle->images[i];
  (void)fprintf(stderr, "the bundle %s has no image for %s %s\n", name, backend, target);
  exit(1);
}

#endif
