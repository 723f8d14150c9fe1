/* rill/device/host_math_double.h: double functions that vectorize on the CPU. Included by rill/device/host_math.h,
 * which has the float functions.
 *
 * There is no wider type to round from, and not every processor has a fused multiply-add. docs/reference/KERNELS.md
 * lists the errors. */
#ifndef RILL_DEVICE_HOST_MATH_DOUBLE_H
#define RILL_DEVICE_HOST_MATH_DOUBLE_H

#define RILL_MOST_DOUBLE_ 1.7976931348623157e308
#define RILL_LEAST_DOUBLE_ 2.2250738585072014e-308 /* least normal number */
#define RILL_TWO_54_ 18014398509481984.0

/* 2^(bits - 1023), from the exponent's bits. */
static __forceinline__ double rill_math_of_exponent_(uint64_t bits) {
  bits <<= 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* e^r - 1 for |r| <= log(2) / 2, within 2^-57. */
static __forceinline__ double rill_math_rise_(double r) {
  RILL_AS_WRITTEN_
  const double w = r * r;
  double p = 2.0826598760820224e-09, q = 2.5112142826233854e-08;
  p = p * w + 2.755758256377054e-07;
  q = q * w + 2.75572345612739e-06;
  p = p * w + 2.480158692492647e-05;
  q = q * w + 0.00019841269896677703;
  p = p * w + 0.0013888888889117062;
  q = q * w + 0.00833333333331692;
  p = p * w + 0.04166666666666609;
  q = q * w + 0.16666666666666682;
  p = p * w + 0.5;
  return r + w * (p + q * r);
}

/* (1 + p) * 2^k, where k is in the last bits of `last`. A subnormal result is rounded twice. */
static __forceinline__ double rill_math_scaled_(double p, uint64_t last) {
  RILL_AS_WRITTEN_
  const uint64_t k = last - 0x4338000000000000ull + 4096, half = k >> 1;
  return (1.0 + p) * rill_math_of_exponent_(half - 2048 + 1023) * rill_math_of_exponent_(k - half - 2048 + 1023);
}

static __forceinline__ double rill_math_between_(double x, double least, double most) {
  x = x > most ? most : x;
  return x < least ? least : x;
}

/* x - k * log(2), where k is the integer nearest to x * log2(e). */
static __forceinline__ double rill_math_rest_(double x, uint64_t *last) {
  RILL_AS_WRITTEN_
  const double k = rill_math_nearest_(x * RILL_LOG2_E_, last);
  return (x - k * 0.6931471805582987) - k * 1.6465949582897082e-12;
}

/* (e^x - 1) / 4. */
static __forceinline__ double rill_math_quarter_(double x) {
  RILL_AS_WRITTEN_
  uint64_t last = 0;
  const double p = rill_math_rise_(rill_math_rest_(x, &last));
  const double power = rill_math_of_exponent_(last - 0x4338000000000000ull - 2 + 1023);
  return power * p + (power - 0.25);
}

/* log(1 + f) - f, for 1 + f from sqrt(0.5) to sqrt(2). With s = f / (2 + f), log(1 + f) is 2 * s + 2 * s^3 * (1 / 3 +
 * ...), and 2 * s = f - f^2 / 2 + s * f^2 / 2. */
static __forceinline__ double rill_math_below_(double f) {
  RILL_AS_WRITTEN_
  const double s = f / (f + 2.0), w = s * s, v = w * w, square = 0.5 * f * f;
  double p = 0.07398054668078191, q = 0.07657017718456274;
  p = p * v + 0.09091782441589151;
  q = q * v + 0.11111099281565918;
  p = p * v + 0.14285714371239486;
  q = q * v + 0.1999999999970715;
  p = p * v + 0.3333333333333367;
  return s * (square + 2.0 * w * (p + q * w)) - square;
}

/* Handles the special cases of a function that is `end` at x = least, infinity at infinity, and a NaN for smaller x
 * and for a NaN. */
static __forceinline__ double rill_math_wide_above_(double x, double least, double end, double result) {
  const double below = x == least ? end : static_cast<double>(RILL_NO_NUMBER_), outside = x > least ? x : below;
  return x > least && x <= RILL_MOST_DOUBLE_ ? result : outside;
}

/* e * (each + rest) + log(m) * scale, where x = m * 2^e. */
static __forceinline__ double rill_math_log_(double x, double each, double rest, double scale) {
  RILL_AS_WRITTEN_
  const bool small = x < RILL_LEAST_DOUBLE_;
  double m;
  const double e = rill_math_split_(small ? x * RILL_TWO_54_ : x, &m) - (small ? 54.0 : 0.0), f = m - 1.0;
  const double below = rill_math_below_(f);
  const double result =
      scale == 1.0 ? e * each + (f + (below + e * rest)) : e * each + ((f + below) * scale + e * rest);
  return rill_math_wide_above_(x, 0.0, -static_cast<double>(RILL_INFINITE_), result);
}

/* log(1 + t) for t > -1. The rounding error of 1 + t is added to the logarithm. */
static __forceinline__ double rill_math_wide_log1p_(double t) {
  RILL_AS_WRITTEN_
  const double d = 1.0 + t, lost = t > 1.0 ? 1.0 - (d - t) : t - (d - 1.0);
  double m;
  const double e = rill_math_split_(d, &m), f = e == 0.0 ? t : m - 1.0, rest = e == 0.0 ? 0.0 : lost / d;
  return e * 0.6931471805582987 + (f + (rill_math_below_(f) + (e * 1.6465949582897082e-12 + rest)));
}

/* atan(y / x) for x, y >= 0, computed like rill_math_angle_. */
static __forceinline__ double rill_math_wide_angle_(double y, double x) {
  RILL_AS_WRITTEN_
  const bool steep = y > x;
  double low = steep ? x : y, high = steep ? y : x;
  const double scale = high > 1e300 ? 1e-20 : 1.0; /* so that the sum of both does not overflow */
  low *= scale;
  high = high == 0.0 ? 1.0 : high * scale;
  const bool half = low > high * 0.4142135623730951;
  const double t = (half ? low - high : low) / (half ? low + high : high), w = t * t, v = w * w;
  double p = -0.01792092260788681, q = 0.0380771095855515;
  p = p * v - 0.05039798979012346;
  q = q * v + 0.05847998859864663;
  p = p * v - 0.06663119041574303;
  q = q * v + 0.0769206152277806;
  p = p * v - 0.09090897830247607;
  q = q * v + 0.1111111078593062;
  p = p * v - 0.14285714280244544;
  q = q * v + 0.19999999999954043;
  p = p * v - 0.333333333333332;
  const double bent = t * w * (p + q * w);
  const double angle = half ? 0.7853981633974483 + (t + (bent + 3.061616997868383e-17)) : t + bent;
  return steep ? 1.5707963267948966 - (angle - 6.123233995736766e-17) : angle;
}

extern "C" {
RILL_MATH_ double rill_math_exp(double x) {
  uint64_t last = 0;
  const double r = rill_math_rest_(rill_math_between_(x, -746.0, 710.0), &last);
  return rill_math_scaled_(rill_math_rise_(r), last);
}
RILL_MATH_ double rill_math_exp2(double x) {
  uint64_t last = 0;
  const double z = rill_math_between_(x, -1076.0, 1025.0), r = z - rill_math_nearest_(z, &last);
  return rill_math_scaled_(rill_math_rise_(r * RILL_LN_2_), last);
}
RILL_MATH_ double rill_math_exp10(double x) {
  RILL_AS_WRITTEN_
  uint64_t last = 0;
  const double z = rill_math_between_(x, -324.0, 309.0), k = rill_math_nearest_(z * RILL_LOG2_10_, &last);
  const double r = (z - k * 0.30102999566224753) - k * 1.7336659603752853e-12;
  return rill_math_scaled_(rill_math_rise_(r * 2.302585092994046), last);
}
RILL_MATH_ double rill_math_expm1(double x) {
  const double result = 4.0 * rill_math_quarter_(rill_math_between_(x, -60.0, 710.0));
  return __builtin_fabs(x) < 1e-18 ? x : result;
}
RILL_MATH_ double rill_math_sinh(double x) {
  const double size = __builtin_fabs(x), e = rill_math_quarter_(rill_math_between_(size, 0.0, 710.5));
  return size < 1e-18 ? x : __builtin_copysign(2.0 * (e + e / (4.0 * e + 1.0)), x);
}
RILL_MATH_ double rill_math_cosh(double x) {
  const double e = rill_math_quarter_(rill_math_between_(__builtin_fabs(x), 0.0, 710.5)) + 0.25;
  return 2.0 * (e + 0.0625 / e);
}
RILL_MATH_ double rill_math_tanh(double x) {
  const double size = __builtin_fabs(x), e = rill_math_quarter_(rill_math_between_(2.0 * size, 0.0, 50.0));
  return size < 1e-18 ? x : __builtin_copysign(e / (e + 0.5), x);
}
RILL_MATH_ double rill_math_log(double x) { return rill_math_log_(x, 0.6931471805582987, 1.6465949582897082e-12, 1.0); }
RILL_MATH_ double rill_math_log2(double x) { return rill_math_log_(x, 1.0, 0.0, RILL_LOG2_E_); }
RILL_MATH_ double rill_math_log10(double x) {
  return rill_math_log_(x, 0.30102999566224753, 1.7336659603752853e-12, RILL_LOG10_E_);
}
RILL_MATH_ double rill_math_log1p(double x) {
  const double result = rill_math_wide_log1p_(x);
  return x == 0.0 ? x : rill_math_wide_above_(x, -1.0, -static_cast<double>(RILL_INFINITE_), result);
}
RILL_MATH_ double rill_math_asinh(double x) {
  const double a = __builtin_fabs(x), w = a * a;
  const bool large = a > 1e9; /* log(2 * a) */
  const double result = rill_math_wide_log1p_(large ? a - 1.0 : a + w / (1.0 + __builtin_sqrt(1.0 + w)));
  return a <= RILL_MOST_DOUBLE_ ? __builtin_copysign(result + (large ? RILL_LN_2_ : 0.0), x) : x;
}
RILL_MATH_ double rill_math_acosh(double x) {
  const double t = x - 1.0;
  const bool large = x > 1e9; /* log(2 * x) */
  const double result = rill_math_wide_log1p_(large ? t : t + __builtin_sqrt(t * (t + 2.0)));
  return rill_math_wide_above_(x, 1.0, 0.0, result + (large ? RILL_LN_2_ : 0.0));
}
RILL_MATH_ double rill_math_atanh(double x) {
  const double a = __builtin_fabs(x), result = 0.5 * rill_math_wide_log1p_(2.0 * a / (1.0 - a));
  const double outside = static_cast<double>(a == 1.0 ? RILL_INFINITE_ : RILL_NO_NUMBER_);
  return a < 1e-10 ? x : __builtin_copysign(a < 1.0 ? result : outside, x);
}
RILL_MATH_ double rill_math_atan(double x) {
  return __builtin_copysign(rill_math_wide_angle_(__builtin_fabs(x), 1.0), x);
}
RILL_MATH_ double rill_math_atan2(double y, double x) {
  RILL_AS_WRITTEN_
  const double high = __builtin_fabs(y), wide = __builtin_fabs(x);
  const bool infinite = high > RILL_MOST_DOUBLE_ && wide > RILL_MOST_DOUBLE_;
  const double angle = rill_math_wide_angle_(infinite ? 1.0 : high, infinite ? 1.0 : wide);
  const double beyond = 3.141592653589793 - (angle - 1.2246467991473532e-16);
  return __builtin_copysign(__builtin_copysign(1.0, x) < 0.0 ? beyond : angle, y);
}
RILL_MATH_ double rill_math_asin(double x) {
  const double a = __builtin_fabs(x);
  return __builtin_copysign(rill_math_wide_angle_(a, __builtin_sqrt((1.0 - a) * (1.0 + a))), x);
}
RILL_MATH_ double rill_math_acos(double x) {
  RILL_AS_WRITTEN_
  const double a = __builtin_fabs(x), angle = rill_math_wide_angle_(__builtin_sqrt((1.0 - a) * (1.0 + a)), a);
  return x < 0.0 ? 3.141592653589793 - (angle - 1.2246467991473532e-16) : angle;
}
/* Truncates the estimate of rill_math_cbrtf so that its square is exact. One correction step leaves an error
 * proportional to the cube of the estimate's error. */
RILL_MATH_ double rill_math_cbrt(double x) {
  RILL_AS_WRITTEN_
  const double size = __builtin_fabs(x);
  const bool small = size < RILL_LEAST_DOUBLE_;
  const double a = small ? size * RILL_TWO_54_ : size, y = rill_math_cube_(a);
  double t = a * y * y;
  uint64_t bits;
  memcpy(&bits, &t, sizeof bits);
  bits &= ~0ull << 28;
  memcpy(&t, &bits, sizeof bits);
  const double r = a / (t * t), root = t + t * ((r - t) / (t + t + r));
  const double result = small ? root * 3.814697265625e-06 : root; /* 2^-18 */
  return size > 0.0 && size <= RILL_MOST_DOUBLE_ ? __builtin_copysign(result, x) : x;
}
RILL_MATH_ double rill_math_hypot(double x, double y) {
  const double a = __builtin_fabs(x), b = __builtin_fabs(y), most = a > b ? a : b;
  const double large = most > 1e150 ? 0x1p-600 : 1.0, scale = most < 1e-140 ? 0x1p600 : large;
  const double c = a * scale, d = b * scale, result = __builtin_sqrt(c * c + d * d) * (1.0 / scale);
  return a > RILL_MOST_DOUBLE_ || b > RILL_MOST_DOUBLE_ ? static_cast<double>(RILL_INFINITE_) : result;
}
#if !RILL_REGIONS
#define RILL_INSTEAD_(NAME)  \
  __asm__(".hidden " #NAME); \
  double NAME(double x) RILL_C_THROWS_ { return rill_math_##NAME(x); }
RILL_INSTEAD_(exp)
RILL_INSTEAD_(exp2)
#ifdef __USE_GNU
RILL_INSTEAD_(exp10)
#endif
RILL_INSTEAD_(expm1)
RILL_INSTEAD_(sinh)
RILL_INSTEAD_(cosh)
RILL_INSTEAD_(tanh)
RILL_INSTEAD_(log)
RILL_INSTEAD_(log2)
RILL_INSTEAD_(log10)
RILL_INSTEAD_(log1p)
RILL_INSTEAD_(asinh)
RILL_INSTEAD_(acosh)
RILL_INSTEAD_(atanh)
RILL_INSTEAD_(atan)
RILL_INSTEAD_(asin)
RILL_INSTEAD_(acos)
RILL_INSTEAD_(cbrt)
#undef RILL_INSTEAD_
__asm__(".hidden atan2");
double atan2(double y, double x) RILL_C_THROWS_ { return rill_math_atan2(y, x); }
__asm__(".hidden hypot");
double hypot(double x, double y) RILL_C_THROWS_ { return rill_math_hypot(x, y); }
#endif
}
#include <rill/device/host_math_trig.h>
#undef RILL_MOST_DOUBLE_
#undef RILL_LEAST_DOUBLE_
#undef RILL_TWO_54_

#endif
