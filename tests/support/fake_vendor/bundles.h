/* bundles.h: the bundles of the project's kernels, linked into the fakes and the shim. */
#ifndef FAKE_BUNDLES_H
#define FAKE_BUNDLES_H

#include <rill/bundle.h>
#include <stdbool.h>
#include <stddef.h>

/* Linked ones first, then those that tests added; NULL past the last. */
const rill_bundle *fake_bundle(size_t index);
bool fake_bundle_add(const rill_bundle *bundle);

/* The bundle whose image for `backend` is, or holds, these bytes; NULL if there is none. */
const rill_bundle *fake_bundle_of_image(const char *backend, const void *data, size_t size,
                                        const rill_bundle_image **image);

#endif
