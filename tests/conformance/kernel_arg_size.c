/* rill_kernel_arg_size */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_kernel(uint64_t id) {
  size_t size = 1;
  const rill_status status = rill_kernel_arg_size((rill_kernel){ id }, 0, &size);
  assert_int_equal(size, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_arg_size", call_with_kernel); }

static void refuses_null(void) {
  assert_fails(rill_kernel_arg_size(new_kernel(&launch_bundle, "store"), 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* K9: the text has the requested index and the number of arguments. */
static void refuses_unknown_argument_numbers(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  size_t size = 1;
  assert_fails(rill_kernel_arg_size(kernel, 2, &size), RILL_ERROR_OUT_OF_RANGE);
  assert_int_equal(size, 0);
  assert_says("store");
  assert_says("2");
  assert_fails(rill_kernel_arg_size(kernel, UINT32_MAX, &size), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_kernel_arg_size(new_kernel(&launch_bundle, "nothing"), 0, &size), RILL_ERROR_OUT_OF_RANGE);
}

/* C6.3, K9 */
static void returns_the_size_of_each_argument(void) {
  const size_t expected[] = { 1, 2, 4, 8, 4, 8, 1, 1, sizeof(void *) };
  rill_kernel kernel = new_kernel(&launch_bundle, "scalars");
  for (uint32_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    size_t size = 0;
    assert_ok(rill_kernel_arg_size(kernel, i, &size));
    assert_int_equal(size, expected[i]);
  }
}

TESTS_ON_EACH_DEVICE("rill_kernel_arg_size", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_unknown_argument_numbers), TEST(returns_the_size_of_each_argument))
