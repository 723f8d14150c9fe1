/* The readers of one backend: parts and kernels of an arbitrary image. Their answers must be complete. */
#include "images.h"

#include "core/device/registry.h"
#include "core/kernel/module.h"
#include "support/images.h"

#include "gate.rill.h"

#include <string.h>

static const struct rill__backend *backend;
static struct image_forms *forms;

void fuzz_end(void) { image_forms_free(forms); }

size_t fuzz_seed(unsigned index, uint8_t *out, size_t capacity) {
  if (index >= forms->count) return fuzz_images_by_hand(index - (unsigned)forms->count, out);
  if (forms->forms[index].size > capacity) return 0;
  memcpy(out, forms->forms[index].data, forms->forms[index].size);
  return forms->forms[index].size;
}

size_t fuzz_repair(uint8_t *data, size_t size, size_t capacity) {
  (void)capacity;
  if (strcmp(fuzz_images_backend, "cpu") == 0 && size >= 64) image_seal(data, size, NULL);
  return size;
}

static void check_text(const char *text) { FUZZ_REQUIRE(strlen(text) <= RILL__NAME_MAX, "a text of any length"); }

static void check_part(const rill_bundle_image *part, const char *bytes, size_t size) {
  const size_t offset = (size_t)((const char *)part->data - bytes);
  FUZZ_REQUIRE(strcmp(part->backend, backend->name) == 0, "a part of %s", part->backend);
  /* The zero after the bytes is the end of a text. */
  FUZZ_REQUIRE(offset < size && part->size > 0 && part->size <= size + 1 - offset, "%zu bytes at %zu of %zu",
               part->size, offset, size);
  check_text(part->target);
}

static void check_kernel(const rill_bundle_kernel *kernel) {
  check_text(kernel->name);
  FUZZ_REQUIRE(kernel->name[0] != '\0', "a kernel without a name");
  for (uint32_t i = 0; kernel->arg_count != RILL__ARGS_UNKNOWN && i < kernel->arg_count; i++) {
    check_text(kernel->args[i].name);
  }
}

/* The work of readers is proportional to the number of bytes. */
static void check_work(const struct rill__image *image, size_t size) {
  enum { WORK_PER_BYTE = 32, WORK_AT_LEAST = 4096 };
  FUZZ_REQUIRE(image->work <= (uint64_t)WORK_PER_BYTE * size + WORK_AT_LEAST, "%llu steps to read %zu bytes",
               (unsigned long long)image->work, size);
}

/* False if the part cannot be read. */
static bool check_kernels(const rill_bundle_image *part) {
  struct rill__image image = { .parts = NULL };
  const char *fault = backend->module->read_kernels(part, &image);
  for (size_t i = 0; i < image.kernel_count; i++) check_kernel(&image.kernels[i]);
  FUZZ_REQUIRE(!image.no_memory, "memory ran out");
  FUZZ_REQUIRE(fault == NULL || fault[0] != '\0', "an empty text");
  check_work(&image, part->size);
  rill__image_free(&image);
  return fault == NULL;
}

/* False if the image, or one of its parts, cannot be read. */
static bool read_image(const uint8_t *data, size_t size) {
  char *bytes = malloc(size + 1);
  FUZZ_REQUIRE(bytes != NULL, "no memory");
  memcpy(bytes, data, size);
  bytes[size] = '\0';
  struct rill__image image = { .parts = NULL };
  const char *fault = "not known";
  if (backend->module->recognize(bytes, size) != NULL) fault = backend->module->read_parts(bytes, size, &image);
  bool readable = fault == NULL;
  for (size_t i = 0; i < image.part_count; i++) {
    check_part(&image.parts[i], bytes, size);
    if (readable) readable = check_kernels(&image.parts[i]);
  }
  check_work(&image, size);
  FUZZ_REQUIRE(!image.no_memory, "memory ran out");
  FUZZ_REQUIRE(fault == NULL || fault[0] != '\0', "an empty text");
  rill__image_free(&image);
  free(bytes);
  return readable;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0) (void)read_image(data, size);
  return 0;
}

void fuzz_begin(int argc, char **argv) {
  static uint8_t bytes[FUZZ_MOST_BYTES];
  (void)argc, (void)argv;
  for (size_t i = 0; rill__backend_at(i) != NULL; i++) {
    if (strcmp(rill__backend_at(i)->name, fuzz_images_backend) == 0) backend = rill__backend_at(i);
  }
  FUZZ_REQUIRE(backend != NULL, "%s is not built in", fuzz_images_backend);
  forms = image_forms_make(&gate_bundle, fuzz_images_backend);
  size_t size;
  for (unsigned i = 0; (size = fuzz_seed(i, bytes, sizeof bytes)) > 0; i++) {
    FUZZ_REQUIRE(read_image(bytes, size), "valid input %u cannot be read", i);
  }
}
