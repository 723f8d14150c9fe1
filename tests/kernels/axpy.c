/* kernels/axpy.kernel.cu: one rounding, so the result equals fma bit for bit. */
#include "arrays.h"

#include "axpy.rill.h"

ELEMENTWISE_TEST(floats_are_fused, float, axpy_f32_launch(stream, launch, n, 1.7f, a, out), fmaf(1.7f, a[i], b[i]))
ELEMENTWISE_TEST(doubles_are_fused, double, axpy_f64_launch(stream, launch, n, 1.7, a, out), fma(1.7, a[i], b[i]))
ELEMENTWISE_TEST(x_may_be_y, float, axpy_f32_launch(stream, launch, n, 1.7f, out, out), fmaf(1.7f, b[i], b[i]))

TESTS_ON_EACH_DEVICE("kernel axpy", TEST(floats_are_fused), TEST(doubles_are_fused), TEST(x_may_be_y))
