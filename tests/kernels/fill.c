/* kernels/fill.kernel.cu */
#include "arrays.h"

#include "fill.rill.h"

ELEMENTWISE_TEST(fills_floats, float, fill_f32_launch(stream, launch, n, -1.25f, out), -1.25f)
ELEMENTWISE_TEST(fills_doubles, double, fill_f64_launch(stream, launch, n, 1e-300, out), 1e-300)

/* All bits of a value are stored, whatever they mean. */
static void keeps_the_bits_of_a_nan(void) {
  const uint32_t bits = 0x7fc12345u;
  uint32_t expected[100];
  float value;
  memcpy(&value, &bits, sizeof value);
  for (size_t i = 0; i < 100; i++) expected[i] = bits;
  rill_stream stream = new_stream("fill");
  void *const x = new_array(stream, NULL, sizeof expected, 0);
  const rill_launch launch = rill_kernels_wide(100, 4, 32);
  assert_ok(fill_f32_launch(stream, &launch, 100, value, x));
  expect_array(stream, x, expected, 100, 4, "fill with a NaN");
  free_array(x, 0);
}

TESTS_ON_EACH_DEVICE("kernel fill", TEST(fills_floats), TEST(fills_doubles), TEST(keeps_the_bits_of_a_nan))
