/* The list grows with the sources in kernels/. */
#include "bundles.h"

#include <string.h>

extern const rill_bundle basic_bundle, gate_bundle, image_bundle;

static const rill_bundle *const linked[] = { &basic_bundle, &gate_bundle, &image_bundle };
static const rill_bundle *added[64];
static size_t added_count;

const rill_bundle *fake_bundle(size_t index) {
  const size_t count = sizeof linked / sizeof *linked;
  if (index < count)
    return linked[index];
  return index - count < added_count ? added[index - count] : NULL;
}

bool fake_bundle_add(const rill_bundle *bundle) {
  if (added_count == sizeof added / sizeof *added)
    return false;
  added[added_count++] = bundle;
  return true;
}

const rill_bundle *fake_bundle_of_image(const char *backend, const void *data, size_t size,
                                        const rill_bundle_image **image) {
  const rill_bundle *bundle;
  for (size_t i = 0; (bundle = fake_bundle(i)) != NULL; i++)
    for (size_t j = 0; j < bundle->image_count; j++) {
      const rill_bundle_image *one = &bundle->images[j];
      if (strcmp(one->backend, backend) == 0 && memmem(one->data, one->size, data, size) != NULL) {
        *image = one;
        return bundle;
      }
    }
  return NULL;
}
