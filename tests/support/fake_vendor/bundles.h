/* bundles.h: the kernel bundles of the whole program, wherever they are. */
#ifndef FAKE_BUNDLES_H
#define FAKE_BUNDLES_H

#include <rill/bundle.h>
#include <stdbool.h>
#include <stddef.h>

/* The first bundle that `wanted` says true of; NULL if there is none. */
const rill_bundle *fake_bundle_find(bool (*wanted)(const rill_bundle *bundle, void *data), void *data);

/* The bundle whose image for `backend` is, or holds, these bytes, and that image; NULL if there is none. */
const rill_bundle *fake_bundle_of_image(const char *backend, const void *bytes, size_t size,
                                        const rill_bundle_image **image);

#endif
