/* kernels/stream.kernel.cu: one rounding for each element, so the result equals C bit for bit. */
#include "arrays.h"

#include "stream.rill.h"

ELEMENTWISE_TEST(copies_floats, float, stream_copy_f32_launch(stream, launch, n, a, out), a[i])
ELEMENTWISE_TEST(copies_doubles, double, stream_copy_f64_launch(stream, launch, n, a, out), a[i])
ELEMENTWISE_TEST(scales_floats, float, stream_scale_f32_launch(stream, launch, n, 0.7f, a, out), 0.7f * a[i])
ELEMENTWISE_TEST(scales_doubles, double, stream_scale_f64_launch(stream, launch, n, 0.7, a, out), 0.7 * a[i])
ELEMENTWISE_TEST(adds_floats, float, stream_add_f32_launch(stream, launch, n, a, b, out), a[i] + b[i])
ELEMENTWISE_TEST(adds_doubles, double, stream_add_f64_launch(stream, launch, n, a, b, out), a[i] + b[i])
ELEMENTWISE_TEST(triads_of_floats_are_fused, float, stream_triad_f32_launch(stream, launch, n, 3.1f, a, b, out),
                 fmaf(3.1f, b[i], a[i]))
ELEMENTWISE_TEST(triads_of_doubles_are_fused, double, stream_triad_f64_launch(stream, launch, n, 3.1, a, b, out),
                 fma(3.1, b[i], a[i]))
ELEMENTWISE_TEST(arrays_may_be_the_same, float, stream_scale_f32_launch(stream, launch, n, 0.7f, out, out), 0.7f * b[i])

TESTS_ON_EACH_DEVICE("kernels stream", TEST(copies_floats), TEST(copies_doubles), TEST(scales_floats),
                     TEST(scales_doubles), TEST(adds_floats), TEST(adds_doubles), TEST(triads_of_floats_are_fused),
                     TEST(triads_of_doubles_are_fused), TEST(arrays_may_be_the_same))
