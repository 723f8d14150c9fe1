/* Passes GPU images with every header byte changed, one at a time, to a driver: the result is a status with a text or a
 * module, never a crash. This is not in the conformance suite, since a real driver decides about bytes that pass the
 * checks. */
#include "support/images.h"
#include "vendor.h"

#include "gate.rill.h"

#include <stdio.h>

static void load(const struct image_form *form) {
  rill_module module = { 1 };
  spoil_last_error();
  const rill_status status = rill_module_load_image(vendor.device, form->data, form->size, &module);
  if (status == RILL_OK) {
    assert_ok(rill_module_release(module));
    return;
  }
  assert_int_equal(module.id, 0);
  assert_true(status == RILL_ERROR_INVALID_ARGUMENT || status == RILL_ERROR_NOT_FOUND || status == RILL_ERROR_BACKEND);
  assert_says("rill_module_load_image");
}

static void survives_every_changed_byte(void) {
  enum { NEAR = 160 };
  struct image_forms *forms = image_forms_make(&gate_bundle, vendor.backend);
  assert_true(forms->count > 0);
  for (size_t i = 0; i < forms->count; i++) {
    struct image_form *form = &forms->forms[i];
    load(form);
    for (size_t k = 0; k < form->size; k++) {
      if (k >= NEAR && k + NEAR < form->size) continue;
      static const unsigned char changes[] = { 0xff, 0x01 };
      for (size_t c = 0; c < sizeof changes; c++) {
        form->data[k] ^= changes[c];
        load(form);
        form->data[k] ^= changes[c];
      }
    }
    load(form);
  }
  image_forms_free(forms);
}

/* C6.5: a driver that does not describe arguments. Nothing is checked, and rill_device_supports says so. */
static void arguments_unknown_to_the_driver(void) {
  const char *why = NULL;
  if (strcmp(vendor.backend, "hip") == 0) { /* the note of a code object tells them, whatever the driver */
    assert_true(rill_device_supports(vendor.device, RILL_FEATURE_KERNEL_ARGS, &why));
    return;
  }
  assert_false(rill_device_supports(vendor.device, RILL_FEATURE_KERNEL_ARGS, &why));
  assert_non_null(strstr(why, "12.4"));
  struct image_forms *forms = image_forms_make(&gate_bundle, vendor.backend);
  rill_module module = RILL_NULL_MODULE;
  for (size_t i = 0; i < forms->count && module.id == 0; i++) {
    ignore(rill_module_load_image(vendor.device, forms->forms[i].data, forms->forms[i].size, &module));
  }
  image_forms_free(forms);
  rill_kernel kernel;
  rill_stream stream;
  rill_event first;
  size_t size = 1;
  uint32_t *counter = NULL;
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  assert_ok(rill_module_get_kernel(module, "increment", &kernel));
  assert_ok(rill_kernel_get_info(kernel, &info));
  assert_int_equal(info.arg_count, 0);
  assert_fails(rill_kernel_arg_size(kernel, 0, &size), RILL_ERROR_UNSUPPORTED);
  assert_says("12.4");
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, 1, &counter));
  *counter = 4;
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter)));
  assert_fails(rill_stream_launch(stream, kernel, &shape, (&(const rill_arg){ NULL, 8 }), 1),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_says("argument 1: data is NULL");
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(*counter, 5);
  /* Work of a held stream would have to be copied. */
  assert_ok(rill_event_create(vendor.device, NULL, &first));
  assert_ok(rill_stream_wait_event(stream, first, 0));
  assert_fails(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter)), RILL_ERROR_UNSUPPORTED);
  assert_says("12.4");
  ignore(rill_event_release(first));
  ignore(rill_stream_synchronize(stream));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_free(counter));
}

int main(int argc, char **argv) {
  static const struct test begin[] = { TEST(vendor_begin) };
  static const struct test tests[] = { TEST(survives_every_changed_byte) };
  static const struct test old[] = { TEST(arguments_unknown_to_the_driver) };
  (void)argv; /* any: the environment asks for an old driver */
  if (RUN_ONCE("fake devices", begin) != 0) return 1;
  return argc > 1 ? RUN_ONCE("arguments of foreign images", old) : RUN_ONCE("images with a changed byte", tests);
}
