/* rill_module_get_global */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_module(uint64_t id) {
  void *p = &id;
  size_t size = 1;
  const rill_status status = rill_module_get_global((rill_module){ id }, "factors", &p, &size);
  assert_null(p);
  assert_int_equal(size, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_modules("rill_module_get_global", call_with_module); }

static rill_module module;

static void load(void) { assert_ok(rill_module_load(dut.device, &launch_bundle, &module)); }

/* K4 */
static void refuses_null(void) {
  load();
  void *p = &p;
  size_t size = 1;
  assert_fails(rill_module_get_global(module, NULL, &p, &size), RILL_ERROR_INVALID_ARGUMENT);
  assert_null(p);
  assert_int_equal(size, 0);
  assert_fails(rill_module_get_global(module, "factors", NULL, &size), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_module_release(module));
}

/* K4: a kernel's name is not found. */
static void refuses_unknown_names(void) {
  const char *const none[] = { "", "no_such_variable", "FACTORS", "factor", "factors ", "give_constants" };
  load();
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    void *p = &p;
    size_t size = 1;
    assert_fails(rill_module_get_global(module, none[i], &p, &size), RILL_ERROR_NOT_FOUND);
    assert_null(p);
    assert_int_equal(size, 0);
    assert_says(none[i]);
    assert_says(dut.name);
  }
  assert_ok(rill_module_release(module));
}

/* L16: a variable's name is not found as a kernel. */
static void kernels_are_not_variables(void) {
  rill_kernel kernel;
  load();
  assert_fails_in("rill_module_get_kernel", rill_module_get_kernel(module, "total", &kernel), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_module_release(module));
}

/* C6.3, K4 */
static void returns_address_and_size(void) {
  void *factors = NULL, *again = NULL, *offset = NULL;
  size_t size = 0;
  load();
  assert_ok(rill_module_get_global(module, "factors", &factors, &size));
  assert_non_null(factors);
  assert_int_equal(size, 4 * sizeof(unsigned));
  assert_ok(rill_module_get_global(module, "factors", &again, NULL));
  assert_ptr_equal(factors, again);
  assert_ok(rill_module_get_global(module, "offset_of_all", &offset, &size));
  assert_int_equal(size, sizeof(double));
  assert_ptr_not_equal(factors, offset);
  assert_ok(rill_module_release(module));
}

/* C6.3, L14: kernels read what was copied to the variable, and values written by kernels can be copied from it. */
static void kernels_see_the_same_variable(void) {
  const unsigned values[4] = { 2, 3, 5, 7 };
  const double offset = -1.5;
  unsigned zero = 0, read[4] = { 0 }, count = 9;
  void *factors, *offset_of_all, *total;
  rill_stream stream = new_stream("stream");
  load();
  assert_ok(rill_module_get_global(module, "factors", &factors, NULL));
  assert_ok(rill_module_get_global(module, "offset_of_all", &offset_of_all, NULL));
  assert_ok(rill_module_get_global(module, "total", &total, NULL));
  assert_ok(rill_copy_async(stream, factors, values, sizeof values));
  assert_ok(rill_copy_async(stream, offset_of_all, &offset, sizeof offset));
  assert_ok(rill_fill_async(stream, total, &zero, sizeof zero, 1));
  const rill_launch one_thread = rill_launch_1d(1, 1);
  unsigned *out = dut.host;
  double *out_offset = (double *)(void *)(dut.host + 8);
  for (int i = 0; i < 3; i++) assert_ok(give_constants_launch(stream, &one_thread, out, out_offset));
  assert_ok(rill_copy_async(stream, read, factors, sizeof read));
  assert_ok(rill_copy_async(stream, &count, total, sizeof count));
  assert_completes(stream);
  assert_memory_equal(out, values, sizeof values);
  assert_memory_equal(read, values, sizeof values);
  assert_true(*out_offset == offset);
  assert_int_equal(count, 3);
  assert_ok(rill_module_release(module));
}

/* C5.3: copies past the end of the variable are refused. */
static void is_memory_known_to_rill(void) {
  unsigned char bytes[64] = { 0 };
  void *p;
  size_t size;
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  rill_stream stream = new_stream("stream");
  load();
  assert_ok(rill_module_get_global(module, "factors", &p, &size));
  assert_fails_in("rill_copy_async", rill_copy_async(stream, p, bytes, size + 1), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_memory_get_info((char *)p + 1, &info));
  assert_int_equal(info.kind, RILL_MEMORY_DEVICE);
  assert_true(info.base == p && info.size == size && rill_device_equal(info.device, dut.device));
  assert_fails_in("rill_free", rill_free(p), RILL_ERROR_NOT_FOUND);
  assert_says("variable");
  assert_fails_in("rill_free_async", rill_free_async(stream, p), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_copy_async(stream, p, bytes, size));
  assert_completes(stream);
  assert_ok(rill_module_release(module));
}

/* C3.8: a held stream treats it as device memory, not as host memory. */
static void serves_held_streams(void) {
  const unsigned values[4] = { 11, 12, 13, 14 };
  unsigned read[4] = { 0 };
  void *factors;
  load();
  assert_ok(rill_module_get_global(module, "factors", &factors, NULL));
  rill_stream stream = new_stream("held");
  rill_event event = new_event("never recorded before");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_ok(rill_copy_async(stream, factors, values, sizeof values));
  assert_ok(rill_copy_async(stream, read, factors, sizeof read));
  assert_ok(rill_stream_record_event(new_stream("other"), event, 0));
  assert_completes(stream);
  assert_memory_equal(read, values, sizeof values);
  assert_ok(rill_module_release(module));
}

static const char *ask(unsigned index, void *shared) {
  void *p = NULL;
  size_t size = 0;
  REQUIRE_OK(rill_module_get_global(module, index % 2 == 0 ? "factors" : "total", &p, &size));
  REQUIRE(p == ((void **)shared)[index % 2]);
  return NULL;
}

/* C1.7 */
static void serves_many_threads(void) {
  void *expected[2];
  load();
  assert_ok(rill_module_get_global(module, "factors", &expected[0], NULL));
  assert_ok(rill_module_get_global(module, "total", &expected[1], NULL));
  assert_ok(rill_module_release(module));
  for (unsigned round = 0; round < scaled(20); round++) {
    load(); /* reloaded if it had been unloaded */
    assert_ok(rill_module_get_global(module, "factors", &expected[0], NULL));
    if (round % 2 == 0) assert_ok(rill_module_get_global(module, "total", &expected[1], NULL));
    if (round % 2 == 0) run_threads(8, ask, expected);
    assert_ok(rill_module_release(module));
  }
}

TESTS_ON_EACH_DEVICE("rill_module_get_global", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_unknown_names), TEST(kernels_are_not_variables), TEST(returns_address_and_size),
                     TEST(kernels_see_the_same_variable), TEST(is_memory_known_to_rill), TEST(serves_held_streams),
                     TEST(serves_many_threads))
