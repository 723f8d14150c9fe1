/* Asserts. */
#include "testing.h"

#include <stdio.h>

void check_ok(rill_status status, const char *call, const char *file, int line) {
  if (status == RILL_OK) return;
  print_error("%s\n  gave %s: %s\n", call, rill_status_name(status), rill_last_error_text());
  _fail(file, line);
}

void spoil_last_error(void) { ignore(rill_device_count(NULL)); }

static void explain(const char *call, const char *what, const char *wanted, const char *file, int line) {
  print_error("%s\n  %s, not \"%s\"; the last error is: %s\n", call, what, wanted, rill_last_error_text());
  _fail(file, line);
}

/* The function's name at the beginning of the text of a call. */
static void name_of_call(const char *call, char *name, size_t size) {
  (void)snprintf(name, size, "%.*s", (int)strcspn(call, "("), call);
}

void check_fails(rill_status status, rill_status expected, const char *api, const char *call, const char *file,
                 int line) {
  if (status != expected) {
    print_error("%s\n  gave %s, not %s%s%s\n", call, rill_status_name(status), rill_status_name(expected),
                status == RILL_OK ? "" : ": ", status == RILL_OK ? "" : rill_last_error_text());
    _fail(file, line);
  }
  char name[80];
  if (api == NULL) {
    name_of_call(call, name, sizeof name);
    api = name;
  }
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (error.status != expected) explain(call, "the last error's status", rill_status_name(expected), file, line);
  if (strcmp(error.api, api) != 0) explain(call, "the last error's function", api, file, line);
  if (error.message[0] == '\0') explain(call, "the message is empty", "", file, line);
  if (error.object == NULL || error.native_name == NULL || error.hint == NULL) {
    explain(call, "a string of the last error is NULL", "", file, line);
  }
  const char *text = rill_last_error_text();
  if (strncmp(text, api, strlen(api)) != 0) explain(call, "the text does not begin with the function", api, file, line);
  if (strchr(text, '\n') != NULL) explain(call, "the text has several lines", "", file, line);
}

void check_says(const char *text, const char *file, int line) {
  if (strstr(rill_last_error_text(), text) == NULL) explain("rill_last_error_text", "lacks a text", text, file, line);
}

void check_names(const char *text, const char *file, int line) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (strstr(error.object, text) == NULL) explain(error.object, "is the error's object", text, file, line);
}

/* ---- handles that are none ---- */

/* One object of each kind. */
struct samples {
  uint64_t device, stream, event, module, kernel, pool;
};

static const char *fails_with(uint64_t id, rill_status expected, const char *api, call_with_id call) {
  static char text[192];
  spoil_last_error();
  const rill_status status = call(id);
  if (status != expected) {
    (void)snprintf(text, sizeof text, "handle 0x%llx gave %s, not %s", (unsigned long long)id, rill_status_name(status),
                   rill_status_name(expected));
    return text;
  }
  rill_error error = RILL_ERROR_INIT;
  if (rill_last_error(&error) != RILL_OK || error.status != expected || strcmp(error.api, api) != 0 ||
      error.message[0] == '\0') {
    (void)snprintf(text, sizeof text, "handle 0x%llx: last error is %.100s", (unsigned long long)id,
                   rill_last_error_text());
    return text;
  }
  return NULL;
}

static void refuses(const char *api, call_with_id call, const uint64_t *ids, size_t count, rill_status expected) {
  for (size_t i = 0; i < count; i++) {
    const char *text = fails_with(ids[i], expected, api, call);
    if (text != NULL) fail_msg("%s: %s", api, text);
  }
}

static struct samples make_samples(void) {
  rill_module module;
  rill_kernel kernel;
  rill_pool pool;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  assert_ok(rill_module_get_kernel(module, sample_kernel_name(), &kernel));
  return (
      struct samples){ dut.device.id, new_stream("sample").id, new_event("sample").id, module.id, kernel.id, pool.id };
}

static void release_samples(struct samples samples) {
  ignore(rill_kernel_release((rill_kernel){ samples.kernel }));
  ignore(rill_module_release((rill_module){ samples.module }));
  ignore(rill_pool_release((rill_pool){ samples.pool }));
}

/* `live` is a good handle; the other kinds' are in `samples`. */
static void refuses_bad_handles(const char *api, call_with_id call, uint64_t live, struct samples samples) {
  const uint64_t garbage[] = {
    0,
    1,
    UINT64_MAX,
    UINT64_C(0xdeadbeefdeadbeef),
    live & ~(UINT64_C(0xff) << 56),
    live | UINT64_C(0x7f) << 56,
    live ^ (UINT64_C(0x800000) << 32), /* a slot that was never used */
    live | 0xffffffff,                 /* a generation that has not been */
    live & ~UINT64_C(0xffffffff),      /* generation 0 */
  };
  refuses(api, call, garbage, sizeof garbage / sizeof *garbage, RILL_ERROR_INVALID_HANDLE);
  const uint64_t kinds[] = {
    samples.device, samples.stream, samples.event, samples.module, samples.kernel, samples.pool
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (kinds[i] != live) refuses(api, call, &kinds[i], 1, RILL_ERROR_INVALID_HANDLE);
  }
  release_samples(samples);
}

void refuses_bad_devices(const char *api, call_with_id call) {
  const struct samples samples = make_samples();
  refuses_bad_handles(api, call, samples.device, samples);
}

void refuses_bad_streams(const char *api, call_with_id call) {
  const struct samples samples = make_samples();
  refuses_bad_handles(api, call, samples.stream, samples);
  assert_ok(rill_stream_release((rill_stream){ samples.stream }));
  refuses(api, call, &samples.stream, 1, RILL_ERROR_STALE_HANDLE);
}

void refuses_bad_events(const char *api, call_with_id call) {
  const struct samples samples = make_samples();
  refuses_bad_handles(api, call, samples.event, samples);
  assert_ok(rill_event_release((rill_event){ samples.event }));
  refuses(api, call, &samples.event, 1, RILL_ERROR_STALE_HANDLE);
}

void refuses_bad_modules(const char *api, call_with_id call) {
  const struct samples samples = make_samples();
  refuses_bad_handles(api, call, samples.module, samples);
  refuses(api, call, &samples.module, 1, RILL_ERROR_STALE_HANDLE);
}

void refuses_bad_kernels(const char *api, call_with_id call) {
  const struct samples samples = make_samples();
  refuses_bad_handles(api, call, samples.kernel, samples);
  refuses(api, call, &samples.kernel, 1, RILL_ERROR_STALE_HANDLE);
}

void refuses_bad_pools(const char *api, call_with_id call) {
  const struct samples samples = make_samples();
  refuses_bad_handles(api, call, samples.pool, samples);
  refuses(api, call, &samples.pool, 1, RILL_ERROR_STALE_HANDLE);
}

/* ---- structs that grow ---- */

enum { TAIL = 24, BIGGEST = 512 };

static void set_struct_size(unsigned char *bytes, size_t size) { memcpy(bytes, &size, sizeof size); }

void takes_grown_options(const char *api, call_with_options call, const void *options, size_t size, size_t shortest) {
  _Alignas(max_align_t) unsigned char bytes[BIGGEST];
  assert_true(size + TAIL <= sizeof bytes && shortest >= sizeof(size_t) && shortest <= size);

  /* longer, with nothing in it that is unknown */
  memset(bytes, 0, sizeof bytes);
  memcpy(bytes, options, size);
  set_struct_size(bytes, size + TAIL);
  assert_ok(call(bytes));

  /* longer, with something unknown at its first byte, and at its last */
  bytes[size] = 1;
  assert_fails_in(api, call(bytes), RILL_ERROR_INVALID_ARGUMENT);
  bytes[size] = 0;
  bytes[size + TAIL - 1] = 0x80;
  assert_fails_in(api, call(bytes), RILL_ERROR_INVALID_ARGUMENT);

  /* shorter: what lies past its end is not looked at */
  memset(bytes, 0xa5, sizeof bytes);
  memcpy(bytes, options, shortest);
  set_struct_size(bytes, shortest);
  assert_ok(call(bytes));

  /* no size at all, and one that leaves no room for itself */
  memcpy(bytes, options, size);
  set_struct_size(bytes, 0);
  assert_fails_in(api, call(bytes), RILL_ERROR_INVALID_ARGUMENT);
  set_struct_size(bytes, sizeof(size_t) - 1);
  assert_fails_in(api, call(bytes), RILL_ERROR_INVALID_ARGUMENT);
}

void fills_grown_structs(const char *api, call_with_output call, size_t size) {
  _Alignas(max_align_t) unsigned char full[BIGGEST], bytes[BIGGEST];
  assert_true(size + TAIL <= sizeof bytes);
  memset(full, 0, sizeof full);
  set_struct_size(full, size);
  assert_ok(call(full));

  /* longer: filled as far as this library knows it */
  memset(bytes, 0, sizeof bytes);
  set_struct_size(bytes, size + TAIL);
  assert_ok(call(bytes));
  assert_memory_equal(bytes + sizeof(size_t), full + sizeof(size_t), size - sizeof(size_t));
  for (size_t i = 0; i < TAIL; i++) assert_int_equal(bytes[size + i], 0);

  /* shorter: filled as far as it goes, its size kept */
  const size_t shorter = sizeof(size_t) + 4;
  memset(bytes, 0xa5, sizeof bytes);
  set_struct_size(bytes, shorter);
  assert_ok(call(bytes));
  size_t kept;
  memcpy(&kept, bytes, sizeof kept);
  assert_int_equal(kept, shorter);
  assert_memory_equal(bytes + sizeof(size_t), full + sizeof(size_t), shorter - sizeof(size_t));
  for (size_t i = shorter; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xa5);

  set_struct_size(bytes, 0);
  assert_fails_in(api, call(bytes), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails_in(api, call(NULL), RILL_ERROR_INVALID_ARGUMENT);
}
