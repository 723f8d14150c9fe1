/* Images that are not in a bundle.
 *
 * The function that finally loads an image receives no length and trusts the sizes in the image.  So the bytes are
 * copied first, and the backend's readers check the copy, which no other code can change afterwards. */
#include "core/device/backends.h"
#include "core/device/life.h"
#include "core/kernel/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reports what kind of image the bytes seem to be, according to a backend that recognizes them, or how they begin. */
static rill_status fail_unknown(const struct rill__device *device, const unsigned char *data, size_t size) {
  const char *const takes = device->backend->module->takes;
  for (size_t i = 0; rill__backend_at(i) != NULL; i++) {
    const struct rill__backend *backend = rill__backend_at(i);
    const char *words = backend->module->recognize(data, size);
    RILL_REQUIRE(words == NULL, RILL_ERROR_INVALID_ARGUMENT,
                 "the image of %zu bytes is %s, which is for devices of %s; %s takes %s", size, words, backend->name,
                 device->name, takes);
  }
  char begin[32] = "";
  for (size_t i = 0; i < size && i < 8; i++) (void)snprintf(begin + 3 * i, 4, " %02x", data[i]);
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                    "the image of %zu bytes begins with%s and has no known format; %s takes %s", size, begin,
                    device->name, takes);
}

static rill_status fail_damaged(const char *words, size_t size, const char *fault, const struct rill__image *image) {
  RILL_REQUIRE(!image->no_memory, RILL_ERROR_OUT_OF_MEMORY, "no host memory to read an image of %zu bytes", size);
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "the image of %zu bytes, %s, cannot be loaded: %s", size, words,
                    fault);
}

/* Loads a copy that is followed by a zero. */
static rill_status load_copy(struct rill__device *device, const void *data, size_t size, const char *label,
                             struct rill__image *image, struct rill__module **out) {
  const char *words = RILL_ASK(device, module, recognize, data, size);
  if (words == NULL) return fail_unknown(device, data, size);
  const char *fault = RILL_ASK(device, module, read_parts, data, size, image);
  if (fault != NULL) return fail_damaged(words, size, fault, image);
  const rill_bundle_image *part = rill__module_best(device, image->parts, image->part_count);
  if (part == NULL) {
    char what[128];
    (void)snprintf(what, sizeof what, "the image of %zu bytes, %s,", size, words);
    return rill__fail_no_part(device, what, image->parts, image->part_count);
  }
  fault = RILL_ASK(device, module, read_kernels, part, image);
  if (fault != NULL || image->no_memory) return fail_damaged(words, size, fault, image);
  const struct rill__module_source source = { label != NULL ? label : part->target, NULL, part, image };
  return rill__module_new(device, &source, out);
}

rill_status rill__module_load_image(struct rill__device *device, const void *data, size_t size, const char *label,
                                    struct rill__module **out) {
  RILL_REQUIRE(size < SIZE_MAX, RILL_ERROR_OUT_OF_RANGE, "an image of %zu bytes", size);
  char *copy = malloc(size + 1);
  RILL_REQUIRE(copy != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a copy of an image of %zu bytes", size);
  memcpy(copy, data, size);
  copy[size] = '\0';
  struct rill__image image = { .parts = NULL };
  const rill_status status = load_copy(device, copy, size, label, &image, out);
  rill__image_free(&image);
  free(copy);
  return status;
}
