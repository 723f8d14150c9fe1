/* The readers of image formats: pure functions over bytes, with nothing of a device. */
#include "support/images.h"
#include "core/device/registry.h"
#include "core/kernel/module.h"
#include "support/testing.h"

#include "gate.rill.h"

#include <stdio.h>

static const struct rill__backend *backend_named(const char *name) {
  for (size_t i = 0; rill__backend_at(i) != NULL; i++) {
    if (strcmp(rill__backend_at(i)->name, name) == 0) return rill__backend_at(i);
  }
  return NULL;
}

/* Reads as rill_module_load_image does, without a device: all parts of it.  NULL, or what is wrong. */
static const char *read_image(const struct rill__backend *backend, const void *data, size_t size,
                              struct rill__image *out) {
  char *copy = malloc(size + 1); /* a zero follows, and nothing else may be looked at */
  memcpy(copy, data, size);
  copy[size] = '\0';
  const char *fault = "not known";
  if (backend->module->recognize(copy, size) != NULL) fault = backend->module->read_parts(copy, size, out);
  for (size_t i = 0; fault == NULL && i < out->part_count; i++) {
    assert_true(out->parts[i].size > 0);
    fault = backend->module->read_kernels(&out->parts[i], out);
  }
  free(copy);
  assert_false(out->no_memory);
  return fault;
}

static void read_and_forget(const struct rill__backend *backend, const void *data, size_t size) {
  struct rill__image image = { .parts = NULL };
  (void)read_image(backend, data, size, &image);
  rill__image_free(&image);
}

typedef void form_body(const struct rill__backend *backend, const struct image_form *form);

static void for_each_form(form_body *body) {
  static const char *const names[] = { "cuda", "hip", "cpu" };
  for (size_t i = 0; i < 3; i++) {
    const struct rill__backend *backend = backend_named(names[i]);
    if (backend == NULL) continue;
    struct image_forms *forms = image_forms_make(&gate_bundle, names[i]);
    for (size_t k = 0; k < forms->count; k++) body(backend, &forms->forms[k]);
    image_forms_free(forms);
  }
}

/* ---- what is read ---- */

static void check_form(const struct rill__backend *backend, const struct image_form *form) {
  struct rill__image image = { .parts = NULL };
  const char *fault = read_image(backend, form->data, form->size, &image);
  if (fault != NULL) fail_msg("%s %s: %s", form->what, form->target, fault);
  const size_t parts = image.part_count;
  assert_true(parts > 0);
  assert_string_equal(image.parts[parts - 1].target, form->target);
  assert_string_equal(image.parts[parts - 1].backend, backend->name);
  if (strcmp(backend->name, "cpu") == 0) {
    assert_true(image.kernels_unknown); /* until it is loaded */
  } else {
    assert_int_equal(image.kernel_count, parts * gate_bundle.kernel_count);
    for (size_t i = 0; i < gate_bundle.kernel_count; i++) {
      const rill_bundle_kernel *expected = &gate_bundle.kernels[i];
      const size_t found = rill__image_find(&image, expected->name);
      assert_int_not_equal(found, image.kernel_count);
      const rill_bundle_kernel *kernel = &image.kernels[found];
      if (strcmp(backend->name, "hip") != 0) {
        assert_true(kernel->arg_count == RILL__ARGS_UNKNOWN); /* the driver tells */
        continue;
      }
      assert_int_equal(kernel->arg_count, expected->arg_count);
      for (uint32_t k = 0; k < kernel->arg_count; k++) assert_int_equal(kernel->args[k].size, expected->args[k].size);
      assert_true(image.needs[found].warp_size == 32 || image.needs[found].warp_size == 64);
      assert_true(image.needs[found].max_threads >= 64);
    }
  }
  rill__image_free(&image);
}

static void reads_every_form(void) { for_each_form(check_form); }

/* ---- damage ---- */

static void cut_off(const struct rill__backend *backend, const struct image_form *form) {
  const bool text = strncmp(form->what, "PTX", 3) == 0;
  const size_t step = form->size > 65536 ? 13 : 1;
  for (size_t size = 0; size < form->size; size += step) {
    struct rill__image image = { .parts = NULL };
    const char *fault = read_image(backend, form->data, size, &image);
    rill__image_free(&image);
    if (fault == NULL && !text) fail_msg("%zu of %zu bytes of a %s are read", size, form->size, form->what);
  }
}

static void refuses_every_truncation(void) { for_each_form(cut_off); }

/* Each byte near the begin and the end, where headers lie.  (A sealed image is summed up each time.) */
static void change_bytes(const struct rill__backend *backend, const struct image_form *form) {
  const size_t near = strcmp(backend->name, "cpu") == 0 ? 128 : 2048;
  for (size_t i = 0; i < form->size; i++) {
    if (i >= near && i + near < form->size) continue;
    static const unsigned char changes[] = { 0xff, 0x80, 0x01 };
    for (size_t k = 0; k < sizeof changes; k++) {
      form->data[i] ^= changes[k];
      read_and_forget(backend, form->data, form->size);
      form->data[i] ^= changes[k];
    }
  }
}

static void survives_every_changed_byte(void) { for_each_form(change_bytes); }

/* ---- containers ---- */

static const char *read_words(const char *name, const void *data, size_t size) {
  struct rill__image image = { .parts = NULL };
  const struct rill__backend *backend = backend_named(name);
  const char *fault = read_image(backend, data, size, &image);
  rill__image_free(&image);
  return fault;
}

static void reads_text_as_it_is_written(void) {
  if (backend_named("cuda") == NULL) return;
  static const char text[] = "// .entry not_this(\n/* .target sm_10 */\n.version 8.0\n.target sm_90a, texmode_unified\n"
                             ".file 1 \".entry nor_this.cu\"\n.visible .entry one(.param .u32 one_param_0) {}\n"
                             ".entry\n\t$two$ ( ) { }\n.weak .func three() {}\n";
  struct rill__image image = { .parts = NULL };
  assert_null(read_image(backend_named("cuda"), text, sizeof text, &image));
  assert_int_equal(image.part_count, 1);
  assert_string_equal(image.parts[0].target, "ptx_90a");
  assert_int_equal(image.kernel_count, 2);
  assert_string_equal(image.kernels[0].name, "one");
  assert_string_equal(image.kernels[1].name, "$two$");
  rill__image_free(&image);
  assert_string_equal(read_words("cuda", ".version 8.0\n", 13), "it has no .target");
  assert_string_equal(read_words("cuda", ".version 8.0\n.target x", 22), "its .target is no sm_NN");
  assert_string_equal(read_words("cuda", ".version 8.0\n.target sm_80\n.entry (", 35), "an .entry has no name");
  assert_string_equal(read_words("cuda", ".version 8.0\0.target sm_80\n", 27), "it has a zero byte inside");
}

static void reads_an_empty_fatbin(void) {
  if (backend_named("cuda") == NULL) return;
  const unsigned char file[16] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0 };
  unsigned char compressed[16 + 64 + 8] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 72 };
  struct rill__image image = { .parts = NULL };
  assert_null(read_image(backend_named("cuda"), file, sizeof file, &image));
  assert_int_equal(image.part_count, 0);
  unsigned char *entry = compressed + 16;
  entry[0] = 2, entry[4] = 64, entry[8] = 8, entry[16] = 5, entry[28] = 90, entry[41] = 0x80, entry[42] = 0x10;
  assert_null(read_image(backend_named("cuda"), compressed, sizeof compressed, &image));
  assert_int_equal(image.part_count, 1);
  assert_string_equal(image.parts[0].target, "sm_90a");
  assert_int_equal(image.parts[0].size, sizeof compressed); /* the driver takes it apart */
  assert_true(image.kernels_unknown);
  rill__image_free(&image);
  entry[16] = 9;
  assert_string_equal(read_words("cuda", compressed, sizeof compressed),
                      "an entry's compressed code is longer than the entry");
  entry[16] = 5, entry[8] = 9;
  assert_string_equal(read_words("cuda", compressed, sizeof compressed), "an entry reaches past its end");
}

static void refuses_compressed_bundles(void) {
  if (backend_named("hip") == NULL) return;
  const char *fault = read_words("hip", "CCOB\2\0\1\0", 8);
  assert_non_null(strstr(fault, "-no-offload-compress"));
}

/* One that is nothing but a seal, whose begin looks like an ELF file's. */
static void refuses_a_seal_alone(void) {
  unsigned char file[64] = "\177ELF\2\1\1";
  file[16] = 3, file[18] = 62;
  image_seal(file, sizeof file, NULL);
  assert_string_equal(read_words("cpu", file, sizeof file), "it ends before its seal");
}

/* ---- the fit of targets ---- */

/* Of the fake's device, a gfx906. */
static uint32_t fit_of(const char *target) {
  const rill_bundle_image part = { "hip", target, "", 1 };
  rill_device device;
  assert_ok(rill_device_open("hip:0", &device));
  struct rill__device *d = rill__find(device.id, RILL__DEVICE);
  assert_non_null(d);
  return d->backend->module->fit(d, &part);
}

static void generic_targets_stand_for_others(void) {
  if (backend_named("hip") == NULL) return;
  assert_true(fit_of("gfx906") > fit_of("gfx9-generic"));
  assert_true(fit_of("gfx9-generic") > 0);
  static const char *const others[] = {
    "gfx9-4-generic", "gfx10-1-generic",     "gfx9",        "gfx90", "gfx9060", "gfx9-", "",
    "gfx90a",         "gfx9-generic:xnack+", "machine 0x2f"
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_int_equal(fit_of(others[i]), 0);
}

TESTS_ONCE("image formats", TEST(reads_every_form), TEST(refuses_every_truncation), TEST(survives_every_changed_byte),
           TEST(reads_text_as_it_is_written), TEST(reads_an_empty_fatbin), TEST(refuses_compressed_bundles),
           TEST(refuses_a_seal_alone), TEST(generic_targets_stand_for_others))
