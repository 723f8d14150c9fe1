/* rill_module_load */
#include "support/testing.h"

#include <rill/device/cpu_image.h>
#include <stdio.h>

#include <rill/bundle.h>

static rill_status call_with_device(uint64_t id) {
  rill_module out = { 1 };
  const rill_status status = rill_module_load((rill_device){ id }, sample_bundle(), &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_module_load", call_with_device); }

/* K1 */
static void refuses_null(void) {
  rill_module out = { 1 };
  assert_fails(rill_module_load(dut.device, NULL, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
  assert_fails(rill_module_load(dut.device, sample_bundle(), NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* K1: an invalid bundle, or a bundle of a newer rillcc. */
static void refuses_invalid_bundles(void) {
  rill_bundle bundle = *sample_bundle();
  rill_module out = { 1 };
  bundle.magic++;
  assert_fails(rill_module_load(dut.device, &bundle, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
  bundle = *sample_bundle();
  bundle.version = RILL_BUNDLE_VERSION + 1;
  assert_fails(rill_module_load(dut.device, &bundle, &out), RILL_ERROR_INVALID_ARGUMENT);
}

/* C6.2: the text lists the images of the bundle, and the target that the device needs. */
static void says_what_is_inside_when_no_image_fits(void) {
  const rill_bundle_image images[] = {
    { "cuda", "sm_9999", "none", 5 },
    { "hip", "gfx9999", "none", 5 },
    { "cpu", "abacus", "none", 5 },
    { "other", "thing", "none", 5 },
  };
  rill_bundle bundle = *sample_bundle();
  rill_module out = { 1 };
  bundle.images = images;
  bundle.image_count = 4;
  assert_fails(rill_module_load(dut.device, &bundle, &out), RILL_ERROR_NOT_FOUND);
  assert_int_equal(out.id, 0);
  assert_says("sm_9999");
  assert_says("gfx9999");
  assert_says("abacus");
  if (dut.gpu) assert_says(dut.info.arch);
  bundle.image_count = 0;
  assert_fails(rill_module_load(dut.device, &bundle, &out), RILL_ERROR_NOT_FOUND);
}

/* Loads the bundle with each image replaced by `n` bytes at `data`: there must be an error with a text, and no crash.
 */
static void refuses_images_of(const void *data, size_t n) {
  rill_bundle bundle = *sample_bundle();
  rill_bundle_image *images = calloc(bundle.image_count, sizeof *images);
  for (size_t i = 0; i < bundle.image_count; i++) {
    images[i] = bundle.images[i];
    images[i].data = data;
    images[i].size = n;
  }
  bundle.images = images;
  rill_module out = { 1 };
  spoil_last_error();
  assert_int_not_equal(rill_module_load(dut.device, &bundle, &out), RILL_OK);
  assert_int_equal(out.id, 0);
  assert_says("rill_module_load");
  free(images);
}

/* C6.2, K1 */
static void refuses_corrupt_images(void) {
  static const unsigned char zeros[4096];
  unsigned char noise[4096];
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)(i * 37 + 11);
  noise[sizeof noise - 1] = 0; /* terminates images that are text */
  refuses_images_of(zeros, sizeof zeros);
  refuses_images_of(noise, sizeof noise);
  refuses_images_of("", 1);
  rill_module module; /* the device stays usable */
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  assert_ok(rill_module_release(module));
}

/* Loads the bundle with the version in the table of its cpu images replaced. */
static rill_status load_version(uint32_t version) {
  static const uint32_t magic = RILL_CPU_IMAGE_MAGIC;
  rill_bundle bundle = *sample_bundle();
  rill_bundle_image *images = calloc(bundle.image_count, sizeof *images);
  unsigned found = 0;
  for (size_t i = 0; i < bundle.image_count; i++) {
    images[i] = bundle.images[i];
    if (strcmp(images[i].backend, "cpu") != 0) continue;
    char *data = malloc(images[i].size);
    images[i].data = memcpy(data, images[i].data, images[i].size);
    for (size_t at = 0; at + 2 * sizeof magic <= images[i].size; at += sizeof magic) {
      uint32_t own = 0; /* checked images have a later version than others */
      memcpy(&own, data + at + sizeof magic, sizeof own);
      if (memcmp(data + at, &magic, sizeof magic) != 0 || own == 0 || own > RILL_CPU_IMAGE_VERSION) continue;
      memcpy(data + at + sizeof magic, &version, sizeof version);
      found++;
    }
  }
  assert_true(found > 0);
  bundle.images = images;
  rill_module module = { 1 };
  const rill_status status = rill_module_load(dut.device, &bundle, &module);
  if (status == RILL_OK) assert_ok(rill_module_release(module));
  else assert_int_equal(module.id, 0);
  for (size_t i = 0; i < bundle.image_count; i++)
    if (images[i].data != sample_bundle()->images[i].data) free((void *)(uintptr_t)images[i].data);
  free(images);
  return status;
}

/* Images of an older rillcc load; for images of a newer one the text says that the library is too old. */
static void loads_images_of_older_versions(void) {
  if (dut.gpu) return; /* only cpu images have versions */
  for (uint32_t version = 1; version <= RILL_CPU_IMAGE_VERSION; version++) assert_ok(load_version(version));
  assert_fails_in("rill_module_load", load_version(RILL_CPU_IMAGE_VERSION + 1), RILL_ERROR_BACKEND);
  char text[64];
  (void)snprintf(text, sizeof text, "has version %u, but this library reads up to %u", RILL_CPU_IMAGE_VERSION + 1,
                 RILL_CPU_IMAGE_VERSION);
  assert_says(text);
  assert_fails_in("rill_module_load", load_version(0), RILL_ERROR_BACKEND);
}

/* Each load adds a reference. */
static void loads_the_same_bundle_again(void) {
  rill_module first, second;
  rill_kernel kernel;
  assert_ok(rill_module_load(dut.device, sample_bundle(), &first));
  assert_ok(rill_module_load(dut.device, sample_bundle(), &second));
  assert_ok(rill_module_release(first));
  assert_ok(rill_module_get_kernel(second, sample_kernel_name(), &kernel));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(second));
  assert_fails(rill_module_get_kernel(second, sample_kernel_name(), &kernel), RILL_ERROR_STALE_HANDLE);
}

static const char *loads(unsigned index, void *shared) {
  (void)index, (void)shared;
  for (unsigned i = 0; i < 20; i++) {
    rill_module module;
    rill_kernel kernel;
    REQUIRE_OK(rill_module_load(dut.device, sample_bundle(), &module));
    REQUIRE_OK(rill_module_get_kernel(module, sample_kernel_name(), &kernel));
    REQUIRE_OK(rill_kernel_release(kernel));
    REQUIRE_OK(rill_module_release(module));
  }
  return NULL;
}

/* K10 */
static void serves_many_threads(void) { run_threads(8, loads, NULL); }

TESTS_ON_EACH_DEVICE("rill_module_load", TEST(refuses_bad_handles), TEST(refuses_null), TEST(refuses_invalid_bundles),
                     TEST(says_what_is_inside_when_no_image_fits), TEST(refuses_corrupt_images),
                     TEST(loads_images_of_older_versions), TEST(loads_the_same_bundle_again), TEST(serves_many_threads))
