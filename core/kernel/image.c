#include "core/kernel/image.h"

#include <stdlib.h>
#include <string.h>

/* ---- growing ---- */

static void *without_const(const void *p) { return (void *)(uintptr_t)p; }

/* Room for one more of `size` bytes in an array of `count`, zeroed: arrays double where the count is a power of two. */
static bool grow_array(struct rill__image *image, void *array, size_t count, size_t size) {
  void **const place = array;
  if ((count & (count - 1)) == 0) {
    void *grown = realloc(*place, (count == 0 ? 1 : 2 * count) * size);
    if (grown == NULL) {
      image->no_memory = true;
      return false;
    }
    *place = grown;
  }
  memset((char *)*place + count * size, 0, size);
  return true;
}

static char *copy_text(struct rill__image *image, const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (copy == NULL) {
    image->no_memory = true;
    return NULL;
  }
  if (length > 0) memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

bool rill__image_add_part(struct rill__image *image, const char *backend, const char *target, const void *data,
                          size_t size) {
  if (!grow_array(image, &image->parts, image->part_count, sizeof *image->parts)) return false;
  char *copy = copy_text(image, target, strlen(target));
  if (copy == NULL) return false;
  image->parts[image->part_count++] =
      (rill_bundle_image){ .backend = backend, .target = copy, .data = data, .size = size };
  return true;
}

bool rill__image_add_kernel(struct rill__image *image, const char *name, size_t length, uint32_t arg_count) {
  if (!grow_array(image, &image->kernels, image->kernel_count, sizeof *image->kernels) ||
      !grow_array(image, &image->needs, image->kernel_count, sizeof *image->needs))
    return false;
  char *copy = copy_text(image, name, length);
  if (copy == NULL) return false;
  image->kernels[image->kernel_count++] = (rill_bundle_kernel){ .name = copy, .arg_count = arg_count };
  return true;
}

bool rill__image_add_arg(struct rill__image *image, const char *name, size_t length, uint32_t size) {
  rill_bundle_kernel *kernel = &image->kernels[image->kernel_count - 1];
  rill_bundle_arg *args = without_const(kernel->args);
  const uint32_t count = kernel->arg_count == RILL__ARGS_UNKNOWN ? 0 : kernel->arg_count;
  if (!grow_array(image, &args, count, sizeof *args)) return false;
  kernel->args = args;
  kernel->arg_count = count;
  char *copy = copy_text(image, name, length);
  if (copy == NULL) return false;
  args[kernel->arg_count++] = (rill_bundle_arg){ .name = copy, .size = size };
  return true;
}

void rill__image_set_offset(struct rill__image *image, uint32_t offset) {
  const rill_bundle_kernel *kernel = &image->kernels[image->kernel_count - 1];
  rill_bundle_arg *args = without_const(kernel->args);
  args[kernel->arg_count - 1].offset = offset;
}

bool rill__image_copy_kernel(struct rill__image *image, const rill_bundle_kernel *kernel,
                             const struct rill__kernel_needs *needs) {
  const bool known = kernel->arg_count != RILL__ARGS_UNKNOWN;
  if (!rill__image_add_kernel(image, kernel->name, strlen(kernel->name), known ? 0 : RILL__ARGS_UNKNOWN)) return false;
  if (needs != NULL) image->needs[image->kernel_count - 1] = *needs;
  for (uint32_t i = 0; known && i < kernel->arg_count; i++) {
    const char *name = kernel->args[i].name;
    if (!rill__image_add_arg(image, name, strlen(name), kernel->args[i].size)) return false;
    rill__image_set_offset(image, kernel->args[i].offset);
  }
  return true;
}

/* ---- the image ---- */

size_t rill__image_find(const struct rill__image *image, const char *name) {
  size_t i = 0;
  while (i < image->kernel_count && strcmp(image->kernels[i].name, name) != 0) i++;
  return i;
}

void rill__image_free(struct rill__image *image) {
  for (size_t i = 0; i < image->part_count; i++) free(without_const(image->parts[i].target));
  for (size_t i = 0; i < image->kernel_count; i++) {
    const rill_bundle_kernel *kernel = &image->kernels[i];
    for (uint32_t k = 0; kernel->args != NULL && k < kernel->arg_count; k++) free(without_const(kernel->args[k].name));
    free(without_const(kernel->args));
    free(without_const(kernel->name));
  }
  free(image->parts);
  free(image->kernels);
  free(image->needs);
  *image = (struct rill__image){ .parts = NULL };
}
