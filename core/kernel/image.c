#include "core/kernel/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- growing arrays ---- */

static void *without_const(const void *p) { return (void *)(uintptr_t)p; }

/* Makes room for one more element of `size` bytes, zeroed, in an array of `count`.  The array doubles whenever the
 * count is a power of two. */
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

/* ---- names ---- */

enum { FEW_KERNELS = 8 };

static uint32_t hash_name(uint64_t seed, const char *name, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
  hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(hash >> 32);
}

static bool is_called(const rill_bundle_kernel *kernel, const char *name, size_t length) {
  return strncmp(kernel->name, name, length) == 0 && kernel->name[length] == '\0';
}

/* Returns the position of the name in the table, or the position where it would be. */
static uint32_t place_of_name(const struct rill__image *image, const char *name, size_t length) {
  uint32_t place = hash_name(image->name_seed, name, length) & (image->name_room - 1);
  while (image->by_name[place] != 0 && !is_called(&image->kernels[image->by_name[place] - 1], name, length))
    place = (place + 1) & (image->name_room - 1);
  return place;
}

/* Adds the kernel with that number to the table; if several have the same name, the first is found. */
static void enter_name(struct rill__image *image, size_t i) {
  const char *const name = image->kernels[i].name;
  uint32_t *const place = &image->by_name[place_of_name(image, name, strlen(name))];
  if (*place == 0) *place = (uint32_t)i + 1;
}

/* Makes sure that half of the table stays empty. */
static bool make_room_for_name(struct rill__image *image) {
  if (image->kernel_count < FEW_KERNELS || 2 * (image->kernel_count + 1) <= image->name_room) return true;
  const size_t room = image->name_room == 0 ? (size_t)4 * FEW_KERNELS : (size_t)2 * image->name_room;
  uint32_t *table = room <= UINT32_MAX / 2 ? calloc(room, sizeof *table) : NULL;
  if (table == NULL) {
    image->no_memory = true;
    return false;
  }
  if (image->by_name == NULL) image->name_seed = (uint64_t)(uintptr_t)table * UINT64_C(0x9e3779b97f4a7c15);
  free(image->by_name);
  image->by_name = table;
  image->name_room = (uint32_t)room;
  for (size_t i = 0; i < image->kernel_count; i++) enter_name(image, i);
  return true;
}

static size_t find_name(const struct rill__image *image, const char *name, size_t length) {
  if (image->by_name != NULL) {
    const uint32_t number = image->by_name[place_of_name(image, name, length)];
    return number != 0 ? number - 1 : image->kernel_count;
  }
  size_t i = 0;
  while (i < image->kernel_count && !is_called(&image->kernels[i], name, length)) i++;
  return i;
}

/* ---- adding parts and kernels that readers find ---- */

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
      !grow_array(image, &image->needs, image->kernel_count, sizeof *image->needs) || !make_room_for_name(image))
    return false;
  char *copy = copy_text(image, name, length);
  if (copy == NULL) return false;
  image->kernels[image->kernel_count++] = (rill_bundle_kernel){ .name = copy, .arg_count = arg_count };
  if (image->by_name != NULL) enter_name(image, image->kernel_count - 1);
  return true;
}

bool rill__image_has_kernel(const struct rill__image *image, const char *name, size_t length) {
  return find_name(image, name, length) != image->kernel_count;
}

const char *rill__image_read_kernel(struct rill__image *image, const char *name, size_t length, uint32_t arg_count) {
  const size_t same = find_name(image, name, length);
  if (same != image->kernel_count) {
    return rill__image_fault(image, "its kernels %zu and %zu have the same name, \"%.*s\"", same + 1,
                             image->kernel_count + 1, length < 80 ? (int)length : 80, name);
  }
  image->work += length;
  return rill__image_add_kernel(image, name, length, arg_count) ? NULL : "no memory";
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
  return find_name(image, name, strlen(name));
}

/* ---- faults ---- */

const char *rill__image_fault(struct rill__image *image, const char *format, ...) {
  enum { TEXT_SIZE = 256 };
  char *text = malloc(TEXT_SIZE);
  if (text == NULL) {
    image->no_memory = true;
    return "no memory";
  }
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, TEXT_SIZE, format, arguments);
  va_end(arguments);
  free(image->fault);
  image->fault = text;
  return text;
}

static int compare_byte_ranges(const void *a, const void *b) {
  const struct rill__byte_range *first = a, *second = b;
  return first->offset < second->offset ? -1 : first->offset > second->offset;
}

const char *rill__image_check_disjoint(struct rill__image *image, struct rill__byte_range *list, size_t count,
                                       const char *what) {
  if (count > 1) qsort(list, count, sizeof *list, compare_byte_ranges);
  for (size_t i = 1; i < count; i++) {
    const struct rill__byte_range *first = &list[i - 1], *second = &list[i];
    if (second->offset - first->offset >= first->size) continue;
    return rill__image_fault(image, "its %s %zu (%llu bytes at %llu) and %zu (%llu bytes at %llu) overlap", what,
                             first->number, (unsigned long long)first->size, (unsigned long long)first->offset,
                             second->number, (unsigned long long)second->size, (unsigned long long)second->offset);
  }
  return NULL;
}

void rill__image_free(struct rill__image *image) {
  for (size_t i = 0; i < image->part_count; i++) free(without_const(image->parts[i].target));
  for (size_t i = 0; i < image->kernel_count; i++) {
    const rill_bundle_kernel *kernel = &image->kernels[i];
    for (uint32_t k = 0; kernel->args != NULL && k < kernel->arg_count; k++) free(without_const(kernel->args[k].name));
    free(without_const(kernel->args));
    free(without_const(kernel->name));
  }
  free(image->by_name);
  free(image->fault);
  free(image->parts);
  free(image->kernels);
  free(image->needs);
  *image = (struct rill__image){ .parts = NULL };
}
