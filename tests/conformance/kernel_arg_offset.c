/* rill_kernel_arg_offset */
#include "support/testing.h"

#include "launch.rill.h"

#include <rill/bundle.h>

static rill_status call_with_kernel(uint64_t id) {
  size_t offset = 1;
  const rill_status status = rill_kernel_arg_offset((rill_kernel){ id }, 1, &offset);
  assert_int_equal(offset, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_arg_offset", call_with_kernel); }

static void refuses_null(void) {
  assert_fails(rill_kernel_arg_offset(new_kernel(&launch_bundle, "store"), 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* K9 */
static void refuses_unknown_argument_numbers(void) {
  size_t offset = 1;
  assert_fails(rill_kernel_arg_offset(new_kernel(&launch_bundle, "store"), 2, &offset), RILL_ERROR_OUT_OF_RANGE);
  assert_int_equal(offset, 0);
  assert_says("kernel \"store\" has 2 arguments; there is no index 2");
}

/* C6.3, K9: offsets are those of the members of a struct. */
static void returns_the_offset_of_each_argument(void) {
  struct scalars {
    signed char a;
    unsigned short b;
    int c;
    unsigned long long d;
    float e;
    double f;
    bool g;
    char h;
    double *out;
  };
  const size_t expected[] = { offsetof(struct scalars, a), offsetof(struct scalars, b), offsetof(struct scalars, c),
                              offsetof(struct scalars, d), offsetof(struct scalars, e), offsetof(struct scalars, f),
                              offsetof(struct scalars, g), offsetof(struct scalars, h), offsetof(struct scalars, out) };
  rill_kernel kernel = new_kernel(&launch_bundle, "scalars");
  for (uint32_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    size_t offset = SIZE_MAX;
    assert_ok(rill_kernel_arg_offset(kernel, i, &offset));
    assert_int_equal(offset, expected[i]);
  }
}

/* C1.8: bundles of older compilers have zeros in place of offsets. */
static void says_when_the_bundle_has_no_offsets(void) {
  static const rill_bundle_arg args[] = { { "value", 4, 0 }, { "out", sizeof(void *), 0 } };
  static const rill_bundle_kernel kernels[] = { { "store", args, 2 } };
  static rill_bundle older;
  older = launch_bundle;
  older.kernels = kernels;
  older.kernel_count = 1;
  size_t offset = 1;
  rill_kernel kernel = new_kernel(&older, "store");
  assert_ok(rill_kernel_arg_offset(kernel, 0, &offset));
  assert_int_equal(offset, 0);
  assert_fails(rill_kernel_arg_offset(kernel, 1, &offset), RILL_ERROR_UNSUPPORTED);
  assert_says(dut.name);
}

TESTS_ON_EACH_DEVICE("rill_kernel_arg_offset", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_unknown_argument_numbers), TEST(returns_the_offset_of_each_argument),
                     TEST(says_when_the_bundle_has_no_offsets))
