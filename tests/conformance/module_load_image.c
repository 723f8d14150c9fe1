/* rill_module_load_image */
#include "support/images.h"
#include "support/testing.h"

#include "gate.rill.h"

#include <stdio.h>

static struct image_forms *forms_of(const char *backend) { return image_forms_make(&gate_bundle, backend); }
static struct image_forms *own_forms(void) { return forms_of(backend_name(dut.info.backend)); }

/* Loads a valid image. Returns false if it is for other devices, and checks that the text says so. */
static bool load(const struct image_form *form, rill_module *out) {
  *out = (rill_module){ 1 };
  spoil_last_error();
  const rill_status status = rill_module_load_image(dut.device, form->data, form->size, out);
  if (status == RILL_OK) return true;
  assert_int_equal(status, RILL_ERROR_NOT_FOUND);
  assert_int_equal(out->id, 0);
  assert_says(form->target);
  if (dut.gpu) assert_says(dut.info.arch);
  return false;
}

/* Returns the first form of the bundle's kernels that this device can load, in an allocation of its own. */
static struct image_form good_form(void) {
  struct image_forms *forms = own_forms();
  struct image_form found = { NULL, NULL, NULL, 0 };
  rill_module module;
  for (size_t i = 0; i < forms->count && found.data == NULL; i++) {
    if (!load(&forms->forms[i], &module)) continue;
    assert_ok(rill_module_release(module));
    found = forms->forms[i];
    forms->forms[i].data = NULL;
  }
  image_forms_free(forms);
  assert_non_null(found.data);
  return found;
}

/* Gets the kernel `increment`, releases the module, launches the kernel once, and checks that it ran. */
static void use(rill_module module) {
  rill_stream stream = new_stream("stream");
  rill_kernel kernel;
  const rill_launch shape = rill_launch_1d(1, 1);
  uint32_t *counter = dut.memory;
  write_cell(stream, 0, 6);
  assert_ok(rill_module_get_kernel(module, "increment", &kernel));
  assert_ok(rill_module_release(module));
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter)));
  assert_ok(rill_kernel_release(kernel));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);
}

/* ---- misuse ---- */

static rill_status call_with_device(uint64_t id) {
  rill_module out = { 1 };
  const rill_status status = rill_module_load_image((rill_device){ id }, "image", 5, &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_module_load_image", call_with_device); }

/* K1 */
static void refuses_null(void) {
  rill_module out = { 1 };
  assert_fails(rill_module_load_image(dut.device, NULL, 5, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
  assert_fails(rill_module_load_image(dut.device, "image", 5, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* K1: refuses an empty image and other invalid bytes; the text shows the first bytes and names the formats that the
 * device accepts. */
static void refuses_invalid_images(void) {
  static const unsigned char zeros[4096];
  unsigned char noise[4096];
  rill_module out = { 1 };
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)(i * 37 + 11);
  assert_fails(rill_module_load_image(dut.device, "", 0, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("size is 0");
  assert_fails(rill_module_load_image(dut.device, "", 1, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_module_load_image(dut.device, zeros, sizeof zeros, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("4096 bytes begins with 00 00 00 00 00 00 00 00");
  assert_fails(rill_module_load_image(dut.device, noise, sizeof noise, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("0b 30 55");
  assert_fails(rill_module_load_image(dut.device, "\177ELF", 4, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_says(dut.gpu ? " takes a c" : "rillcc"); /* " takes a cubin ..." or " takes a code object ..." */
  assert_int_equal(out.id, 0);
}

/* K1: the text names the image's format, and the formats that the device accepts. */
static void refuses_images_for_other_backends(void) {
  static const struct {
    uint32_t backend;
    const char *words[8];
  } others[] = {
    { RILL_BACKEND_CUDA, { "is a cubin", "is PTX", "is a fatbin" } },
    { RILL_BACKEND_HIP, { "is an AMD code object", "is a clang offload bundle" } },
    { RILL_BACKEND_CPU, { "is a shared object for" } },
  };
  for (size_t i = 0; i < 3; i++) {
    const char *name = backend_name(others[i].backend);
    rill_device device;
    if (others[i].backend == dut.info.backend) continue;
    ignore(rill_device_open(name, &device));
    /* a backend that is not built in has no known format */
    if (strstr(rill_last_error_text(), "not built in") != NULL) continue;
    struct image_forms *forms = forms_of(name);
    for (size_t k = 0; k < forms->count; k++) {
      rill_module out = { 1 };
      const struct image_form *form = &forms->forms[k];
      assert_fails(rill_module_load_image(dut.device, form->data, form->size, &out), RILL_ERROR_INVALID_ARGUMENT);
      assert_int_equal(out.id, 0);
      bool said = false;
      for (size_t w = 0; others[i].words[w] != NULL; w++)
        said = said || strstr(rill_last_error_text(), others[i].words[w]) != NULL;
      if (!said) fail_msg("%s: %s", form->what, rill_last_error_text());
      assert_says(name);
    }
    image_forms_free(forms);
  }
}

/* Changes the target of an image to a target that no device has. */
static void change_target(struct image_form *form) {
  unsigned char *at = form->data;
  switch (dut.info.backend) {
    case RILL_BACKEND_CUDA: at[0x30] = 10, at[0x31] = at[8] >= 8 ? 10 : 0; break; /* sm_10 */
    case RILL_BACKEND_HIP:
      for (; (at = memmem(at, (size_t)(form->data + form->size - at), "--gfx", 5)) != NULL; at += 5)
        at[5] = '1', at[6] = '9'; /* the target in the note: gfx90a becomes gfx19a */
      break;
    default: image_seal(form->data, form->size, "abacus"); break;
  }
}

/* K1, C6.2: machine code for another target. */
static void says_what_an_unsuitable_image_is_for(void) {
  struct image_forms *forms = own_forms();
  size_t changed = 0;
  for (size_t i = 0; i < forms->count; i++) {
    struct image_form *form = &forms->forms[i];
    rill_module out = { 1 };
    const bool code = strcmp(form->what, "cubin") == 0 || strcmp(form->what, "code object") == 0 || !dut.gpu;
    if (!code) continue;
    change_target(form);
    assert_fails(rill_module_load_image(dut.device, form->data, form->size, &out), RILL_ERROR_NOT_FOUND);
    assert_int_equal(out.id, 0);
    assert_says(!dut.gpu ? "cpu:abacus" : dut.info.backend == RILL_BACKEND_CUDA ? "cuda:sm_10" : "hip:gfx19");
    assert_says("is needed");
    assert_says(dut.info.arch);
    changed++;
  }
  image_forms_free(forms);
  if (changed == 0) skip_because("the kernels are PTX alone, which fits every GPU");
}

/* ---- damage ---- */

/* K1, C6.2: refuses images truncated at any length. Some prefixes of text are complete programs. */
static void refuses_every_truncation(void) {
  struct image_forms *forms = own_forms();
  for (size_t i = 0; i < forms->count; i++) {
    const struct image_form *form = &forms->forms[i];
    const bool text = strncmp(form->what, "PTX", 3) == 0;
    /* larger steps for text, because a real driver compiles it */
    const size_t step = text ? 61 : form->size > 65536 ? 17 : 1;
    for (size_t size = 1; size < form->size; size += step) {
      unsigned char *cut = malloc(size);
      rill_module out = { 1 };
      memcpy(cut, form->data, size);
      const rill_status status = rill_module_load_image(dut.device, cut, size, &out);
      free(cut);
      if (status == RILL_OK && text) {
        assert_ok(rill_module_release(out));
        continue;
      }
      if (status == RILL_OK) fail_msg("%zu of %zu bytes of a %s were loaded", size, form->size, form->what);
      assert_int_equal(out.id, 0);
    }
  }
  image_forms_free(forms);
}

/* CPU images are sealed, so every changed byte is detected. (For GPU images see fault/images.c.) */
static void refuses_every_changed_byte(void) {
  if (dut.gpu) return;
  struct image_form form = good_form();
  for (size_t i = 0; i < form.size; i += i < 4096 || i + 4096 > form.size ? 1 : 101) {
    rill_module out = { 1 };
    form.data[i] ^= (unsigned char)(1u << i % 8);
    assert_int_equal(rill_module_load_image(dut.device, form.data, form.size, &out), RILL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(out.id, 0);
    form.data[i] ^= (unsigned char)(1u << i % 8);
  }
  rill_module module;
  assert_true(load(&form, &module));
  use(module);
  free(form.data);
}

/* ---- loading ---- */

/* C6.2: loads each form of the same kernels, except forms for other targets. K8: the bytes are not needed afterwards.
 */
static void loads_every_form(void) {
  struct image_forms *forms = own_forms();
  size_t loaded = 0;
  for (size_t i = 0; i < forms->count; i++) {
    rill_module module;
    struct image_form *form = &forms->forms[i];
    if (!load(form, &module)) continue;
    memset(form->data, 0xa5, form->size);
    free(form->data);
    form->data = NULL;
    use(module);
    loaded++;
  }
  assert_true(loaded >= (dut.gpu ? 2 : 1));
  image_forms_free(forms);
}

/* The bytes may have any alignment. */
static void accepts_bytes_at_odd_addresses(void) {
  struct image_form form = good_form();
  for (size_t offset = 1; offset < 8; offset++) {
    rill_module module;
    unsigned char *block = malloc(form.size + offset);
    memcpy(block + offset, form.data, form.size);
    assert_ok(rill_module_load_image(dut.device, block + offset, form.size, &module));
    free(block);
    use(module);
  }
  free(form.data);
}

/* K6 */
static void loading_an_image_twice_creates_two_modules(void) {
  struct image_form form = good_form();
  rill_module first, second;
  assert_true(load(&form, &first));
  assert_true(load(&form, &second));
  assert_int_not_equal(first.id, second.id);
  assert_ok(rill_module_release(first));
  rill_kernel kernel = { 1 };
  assert_fails(rill_module_get_kernel(first, "increment", &kernel), RILL_ERROR_STALE_HANDLE);
  use(second);
  free(form.data);
}

/* K3 */
static void lists_the_kernels_inside(void) {
  struct image_form form = good_form();
  rill_module module;
  rill_kernel kernel = { 1 };
  assert_true(load(&form, &module));
  assert_fails(rill_module_get_kernel(module, "no_such_kernel", &kernel), RILL_ERROR_NOT_FOUND);
  assert_int_equal(kernel.id, 0);
  assert_says("no_such_kernel");
  assert_says("increment");
  assert_says("wait_for_flag");
  assert_fails(rill_module_get_kernel(module, "", &kernel), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_module_release(module));
  free(form.data);
}

/* K9, C6.5: arguments are checked if the image or the driver describes them; otherwise the device says so. */
static void checks_arguments(void) {
  struct image_form form = good_form();
  rill_module module;
  rill_kernel kernel;
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_stream stream = new_stream("stream");
  const char *why = NULL;
  size_t size = 1;
  assert_true(load(&form, &module));
  assert_ok(rill_module_get_kernel(module, "wait_for_flag", &kernel));
  assert_ok(rill_module_release(module));
  assert_ok(rill_kernel_get_info(kernel, &info));
  if (rill_device_supports(dut.device, RILL_FEATURE_KERNEL_ARGS, &why)) {
    static const size_t sizes[] = { 8, 4, 8, 8 };
    assert_int_equal(info.arg_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
      assert_ok(rill_kernel_arg_size(kernel, i, &size));
      assert_int_equal(size, sizes[i]);
      if (dut.gpu) { /* the CPU passes each argument separately */
        assert_ok(rill_kernel_arg_offset(kernel, i, &size));
        assert_int_equal(size, 8 * i);
      }
    }
    assert_fails(rill_kernel_arg_size(kernel, 4, &size), RILL_ERROR_OUT_OF_RANGE);
    assert_fails(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(size)), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("kernel \"wait_for_flag\": 1 arguments passed, 4 expected");
    assert_fails(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(size, size, size, size)),
                 RILL_ERROR_INVALID_ARGUMENT);
    assert_says("argument 2");
    assert_says("8 bytes passed, 4 expected");
  } else {
    assert_fails(rill_kernel_arg_size(kernel, 0, &size), RILL_ERROR_UNSUPPORTED);
    assert_says(why);
    assert_int_equal(info.arg_count, 0);
  }
  assert_ok(rill_kernel_release(kernel));
  free(form.data);
}

/* K7 */
static void kernels_serve_their_own_device(void) {
  needs_second_device();
  struct image_form form = good_form();
  rill_module module;
  rill_kernel kernel;
  const rill_launch shape = rill_launch_1d(1, 1);
  uint32_t *counter = dut.memory;
  assert_ok(rill_module_load_image(dut.second, form.data, form.size, &module));
  assert_ok(rill_module_get_kernel(module, "increment", &kernel));
  assert_fails(rill_stream_launch(new_stream("here"), kernel, &shape, RILL_ARGS(counter)), RILL_ERROR_WRONG_DEVICE);
  uint32_t *pinned = dut.host;
  rill_stream there = new_stream_on(dut.second, "there");
  assert_ok(rill_stream_launch(there, kernel, &shape, RILL_ARGS(pinned)));
  assert_completes(there);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  free(form.data);
}

/* K5: released while one of its kernels runs. */
static void may_be_released_while_it_runs(void) {
  struct image_form form = good_form();
  rill_module module;
  rill_kernel kernel;
  rill_stream stream = new_stream("stream");
  const rill_launch shape = rill_launch_1d(1, 1);
  const unsigned *flag = dut.host;
  unsigned *timed_out = dut.host + 1;
  assert_true(load(&form, &module));
  free(form.data);
  assert_ok(rill_module_get_kernel(module, "wait_for_flag", &kernel));
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(flag, 1u, 20000000000ull, timed_out)));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  assert_fails(rill_module_release(module), RILL_ERROR_STALE_HANDLE);
  assert_false(is_complete(stream));
  __atomic_store_n(dut.host, 1, __ATOMIC_SEQ_CST);
  assert_completes(stream);
  assert_int_equal(dut.host[1], 0);
}

static const char *loads(unsigned index, void *shared) {
  const struct image_form *form = shared;
  const rill_launch shape = rill_launch_1d(1, 1);
  uint32_t *counter = dut.memory + index;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < 20; i++) {
    rill_module module;
    rill_kernel kernel;
    REQUIRE_OK(rill_module_load_image(dut.device, form->data, form->size, &module));
    REQUIRE_OK(rill_module_get_kernel(module, "increment", &kernel));
    REQUIRE_OK(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(counter)));
    REQUIRE_OK(rill_kernel_release(kernel));
    REQUIRE_OK(rill_module_release(module));
  }
  REQUIRE_OK(rill_copy_async(stream, dut.host + index, counter, sizeof *counter));
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  REQUIRE(dut.host[index] == 20);
  return NULL;
}

/* K10 */
static void serves_many_threads(void) {
  struct image_form form = good_form();
  run_threads(8, loads, &form);
  free(form.data);
}

TESTS_ON_EACH_DEVICE("rill_module_load_image", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_invalid_images), TEST(refuses_images_for_other_backends),
                     TEST(says_what_an_unsuitable_image_is_for), TEST(refuses_every_truncation),
                     TEST(refuses_every_changed_byte), TEST(loads_every_form), TEST(accepts_bytes_at_odd_addresses),
                     TEST(loading_an_image_twice_creates_two_modules), TEST(lists_the_kernels_inside),
                     TEST(checks_arguments), TEST(kernels_serve_their_own_device), TEST(may_be_released_while_it_runs),
                     TEST(serves_many_threads))
