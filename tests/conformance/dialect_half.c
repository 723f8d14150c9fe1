/* 16-bit floating-point numbers in kernels: all of them, and floats around all rounding boundaries, compared with an
 * independent implementation in double. The functions for C programs are tested in the same way (C6.1). */
#include "support/testing.h"

#include <math.h>

#include "dialect_half.rill.h"

enum { ALL = 65536, PAIRS = 20000 };

static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0, bytes);
  return p;
}

/* ---- a reference: significand and exponent, nothing of rill ---- */

struct format {
  int fraction_bits, bias, infinite; /* infinite: the exponent of infinity and NaN */
};
static const struct format half_format = { 10, 15, 31 }, bfloat16_format = { 7, 127, 255 };

static double value_of(struct format f, uint32_t bits) {
  const int exponent = (int)(bits >> f.fraction_bits) & f.infinite;
  const uint32_t fraction = bits & ((UINT32_C(1) << f.fraction_bits) - 1);
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  if (exponent == f.infinite) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  if (exponent == 0) return sign * ldexp(fraction, 1 - f.bias - f.fraction_bits);
  return sign * ldexp((double)(fraction + (UINT32_C(1) << f.fraction_bits)), exponent - f.bias - f.fraction_bits);
}

/* Returns the nearest number: the largest one that is not larger in magnitude, or the next one. */
static uint32_t bits_of(struct format f, double v) {
  const uint32_t sign = signbit(v) ? 0x8000u : 0, infinity = (uint32_t)f.infinite << f.fraction_bits;
  const double magnitude = fabs(v);
  if (isinf(v)) return sign | infinity;
  uint32_t low = 0, high = infinity;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (value_of(f, middle) <= magnitude) low = middle;
    else high = middle;
  }
  /* the number after the largest one is infinity */
  const double below = value_of(f, low), step = ldexp(1, (low >> f.fraction_bits) == 0 ? 1 - f.bias - f.fraction_bits
                                                                                       : (int)(low >> f.fraction_bits) -
                                                                                             f.bias - f.fraction_bits);
  const double rest = magnitude - below;
  const bool up = rest > step / 2 || (rest == step / 2 && (low & 1) != 0);
  return sign | (up ? low + 1 : low);
}

static bool is_nan(struct format f, uint32_t bits) { return isnan(value_of(f, bits)); }

static void same(struct format f, uint32_t got, uint32_t expected) {
  if (is_nan(f, expected)) assert_true(is_nan(f, got));
  else assert_int_equal(got, expected);
}

/* ---- conversions ---- */

static void every_half_converts_to_its_float(void) {
  rill_stream stream = new_stream("stream");
  uint16_t *x = pinned(ALL * sizeof *x);
  float *y = pinned(ALL * sizeof *y);
  const rill_launch launch = rill_launch_1d(ALL, 128);
  for (uint32_t i = 0; i < ALL; i++) x[i] = (uint16_t)i;
  for (int kind = 0; kind < 2; kind++) {
    const struct format f = kind == 0 ? half_format : bfloat16_format;
    if (kind == 0) assert_ok(half_to_floats_launch(stream, &launch, ALL, (const rill_half *)(const void *)x, y));
    else assert_ok(bfloat16_to_floats_launch(stream, &launch, ALL, (const rill_bfloat16 *)(const void *)x, y));
    assert_completes(stream);
    for (uint32_t i = 0; i < ALL; i++) {
      const float here =
          kind == 0 ? rill_half_to_float((rill_half){ x[i] }) : rill_bfloat16_to_float((rill_bfloat16){ x[i] });
      const double expected = value_of(f, i);
      if (isnan(expected)) {
        assert_true(isnan(y[i]) && isnan(here));
      } else {
        assert_true((double)y[i] == expected && (double)here == expected);
        assert_true(!signbit(y[i]) == !signbit(expected) && !signbit(here) == !signbit(expected));
      }
    }
  }
  assert_ok(rill_free(x));
  assert_ok(rill_free(y));
}

/* Tests each number, the midpoint to the next number, and the floats on both sides of each of them. */
static void every_float_rounds_to_the_nearest_half(void) {
  enum { NEAR = 6, COUNT = ALL * NEAR };
  rill_stream stream = new_stream("stream");
  float *x = pinned(COUNT * sizeof *x);
  uint16_t *y = pinned(COUNT * sizeof *y);
  const rill_launch launch = rill_launch_1d(COUNT, 256);
  for (int kind = 0; kind < 2; kind++) {
    const struct format f = kind == 0 ? half_format : bfloat16_format;
    for (uint32_t i = 0; i < ALL; i++) {
      const float v = (float)value_of(f, i), next = (float)value_of(f, (i & 0x7fffu) == 0x7fff ? i : i + 1);
      float middle = (float)(((double)v + (double)next) / 2);
      if (isinf(next) && !isinf(v)) middle = (float)value_of(f, i) * (kind == 0 ? 65520.0f / 65504.0f : 1);
      x[i * NEAR] = v;
      x[i * NEAR + 1] = nextafterf(v, INFINITY);
      x[i * NEAR + 2] = nextafterf(v, -INFINITY);
      x[i * NEAR + 3] = middle;
      x[i * NEAR + 4] = nextafterf(middle, INFINITY);
      x[i * NEAR + 5] = nextafterf(middle, -INFINITY);
    }
    if (kind == 0) assert_ok(half_from_floats_launch(stream, &launch, COUNT, x, (rill_half *)(void *)y));
    else assert_ok(bfloat16_from_floats_launch(stream, &launch, COUNT, x, (rill_bfloat16 *)(void *)y));
    assert_completes(stream);
    for (uint32_t i = 0; i < COUNT; i++) {
      const uint16_t here = kind == 0 ? rill_to_half(x[i]).bits : rill_to_bfloat16(x[i]).bits;
      if (isnan(x[i])) {
        assert_true(is_nan(f, y[i]) && is_nan(f, here));
        continue;
      }
      const uint32_t expected = bits_of(f, (double)x[i]);
      assert_int_equal(y[i], expected);
      assert_int_equal(here, expected);
    }
  }
  assert_ok(rill_free(x));
  assert_ok(rill_free(y));
}

/* ---- arithmetic: in float, then rounded ---- */

static uint32_t pick(uint32_t i) {
  uint64_t x = (i + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  static const uint16_t special[] = { 0,      0x8000, 1,      0x8001, 0x3c00, 0x3f80, 0x7c00, 0x7f80,
                                      0xfc00, 0xff80, 0x7bff, 0x7f7f, 0x0400, 0x0080, 0x7e00, 0x7fff };
  return (x >> 60) == 0 ? special[x >> 32 & 15] : (uint32_t)(x >> 32 & 0xffff);
}

static void results_are_rounded_floats(void) {
  rill_stream stream = new_stream("stream");
  uint16_t *a = pinned(PAIRS * sizeof *a), *b = pinned(PAIRS * sizeof *b), *y = pinned(5 * PAIRS * sizeof *y);
  uint32_t *compared = pinned(PAIRS * sizeof *compared);
  const rill_launch launch = rill_launch_1d(PAIRS, 64);
  for (uint32_t i = 0; i < PAIRS; i++) {
    a[i] = (uint16_t)pick(2 * i);
    b[i] = (uint16_t)(i % 9 == 0 ? a[i] : pick(2 * i + 1));
  }
  for (int kind = 0; kind < 2; kind++) {
    const struct format f = kind == 0 ? half_format : bfloat16_format;
    const void *x1 = a, *x2 = b;
    void *out = y;
    if (kind == 0) assert_ok(half_arithmetic_launch(stream, &launch, PAIRS, x1, x2, out, compared));
    else assert_ok(bfloat16_arithmetic_launch(stream, &launch, PAIRS, x1, x2, out, compared));
    assert_completes(stream);
    for (uint32_t i = 0; i < PAIRS; i++) {
      const float v = (float)value_of(f, a[i]), w = (float)value_of(f, b[i]);
      const float results[] = { v + w, v - w, v * w, v / w };
      for (int j = 0; j < 4; j++) {
        const uint32_t expected = isnan(results[j]) ? 0x7fffu : bits_of(f, (double)results[j]);
        same(f, y[5 * i + (uint32_t)j], expected);
      }
      assert_int_equal(y[5 * i + 4], a[i] ^ 0x8000u);
      const unsigned expected = (unsigned)(v == w) | (unsigned)(v != w) << 1 | (unsigned)(v < w) << 2 |
                                (unsigned)(v <= w) << 3 | (unsigned)(v > w) << 4 | (unsigned)(v >= w) << 5;
      assert_int_equal(compared[i], expected);
    }
  }
  assert_ok(rill_free(a));
  assert_ok(rill_free(b));
  assert_ok(rill_free(y));
  assert_ok(rill_free(compared));
}

static void halves_are_passed_by_value_and_between_lanes(void) {
  rill_stream stream = new_stream("stream");
  rill_half *x = pinned(32 * sizeof *x);
  rill_bfloat16 *y = pinned(32 * sizeof *y);
  const rill_launch launch = rill_launch_1d(32, 32);
  assert_ok(half_by_value_launch(stream, &launch, rill_to_half(100), rill_to_bfloat16(-20), x, y));
  assert_completes(stream);
  for (uint32_t t = 0; t < 32; t++) {
    assert_int_equal(x[t].bits, bits_of(half_format, 100 + (t ^ 1u)));
    assert_int_equal(y[t].bits, bits_of(bfloat16_format, -17));
  }
  assert_ok(rill_free(x));
  assert_ok(rill_free(y));
}

TESTS_ON_EACH_DEVICE("16-bit numbers in kernels", TEST(every_half_converts_to_its_float),
                     TEST(every_float_rounds_to_the_nearest_half), TEST(results_are_rounded_floats),
                     TEST(halves_are_passed_by_value_and_between_lanes))
