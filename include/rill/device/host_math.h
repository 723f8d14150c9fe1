/* rill/device/host_math.h: float functions that vectorize on the CPU: expf, powf, erff, sinf and others. Included by
 * rill/device/on_host.h if the source appears to use any of them (rillcc then defines RILL_MATHEMATICS).
 *
 * The C library's functions need one call per thread. These functions are a few double operations without branches,
 * rounded to float once. Their error is below 0.51 ulp, and they return the same bits on every processor, in loops
 * and on fibers. An image contains them under the C library's names, for kernels and for std::exp of float and
 * similar functions. rillcc replaces expf by rill_math_expf (rillcc_lib/spmd.py); without clang, the image's own expf
 * is found first.
 */
#ifndef RILL_DEVICE_HOST_MATH_H
#define RILL_DEVICE_HOST_MATH_H

/* Keeps the order of operations, including with -ffast-math. */
#if defined(__clang__)
#define RILL_AS_WRITTEN_ _Pragma("clang fp reassociate(off)")
#define RILL_KEEP_(X)
#elif defined(__FAST_MATH__)
#define RILL_AS_WRITTEN_
#define RILL_KEEP_(X) __asm__("" : "+m"(X))
#else
#define RILL_AS_WRITTEN_
#define RILL_KEEP_(X)
#endif
#ifdef __GLIBC__
#define RILL_C_THROWS_ noexcept
#else
#define RILL_C_THROWS_
#endif

#define RILL_LOG2_E_ 1.4426950408889634
#define RILL_LN_2_ 0.6931471805599453
#define RILL_LOG10_E_ 0.4342944819032518
#define RILL_LOG10_2_ 0.3010299956639812
#define RILL_LOG2_10_ 3.321928094887362
#define RILL_MOST_ 3.4028234663852886e38f

/* Creates infinities and NaNs from bits, because with -ffast-math compilers may ignore them in source code. */
static __forceinline__ float rill_math_of_bits_(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
#define RILL_INFINITE_ rill_math_of_bits_(0x7f800000u)
#define RILL_NO_NUMBER_ rill_math_of_bits_(0x7fc00000u)

/* The bits of 2^(i / 32), minus i << 47, which rill_math_exp2_ adds. */
static const uint64_t rill_math_powers_[32] = {
  0x3ff0000000000000ull, 0x3fefd9b0d3158574ull, 0x3fefb5586cf9890full, 0x3fef9301d0125b51ull, 0x3fef72b83c7d517bull,
  0x3fef54873168b9aaull, 0x3fef387a6e756238ull, 0x3fef1e9df51fdee1ull, 0x3fef06fe0a31b715ull, 0x3feef1a7373aa9cbull,
  0x3feedea64c123422ull, 0x3feece086061892dull, 0x3feebfdad5362a27ull, 0x3feeb42b569d4f82ull, 0x3feeab07dd485429ull,
  0x3feea47eb03a5585ull, 0x3feea09e667f3bcdull, 0x3fee9f75e8ec5f74ull, 0x3feea11473eb0187ull, 0x3feea589994cce13ull,
  0x3feeace5422aa0dbull, 0x3feeb737b0cdc5e5ull, 0x3feec49182a3f090ull, 0x3feed503b23e255dull, 0x3feee89f995ad3adull,
  0x3feeff76f2fb5e47ull, 0x3fef199bdd85529cull, 0x3fef3720dcef9069ull, 0x3fef5818dcfba487ull, 0x3fef7c97337b9b5full,
  0x3fefa4afa2a490daull, 0x3fefd0765b6e4540ull,
};

/* Returns p with 2^z = *power * (1 + p), for |z| < 1000. p is 2^r - 1, where r is z minus the nearest multiple of 1 /
 * 32. Returns a NaN for a NaN. The polynomial is within 2^-36 of (2^r - 1) / r. */
static __forceinline__ double rill_math_exp2_(double z, double *power) {
  RILL_AS_WRITTEN_
  const double shift = 211106232532992.0; /* 3 * 2^46: the last bit of a sum with it is worth 1 / 32 */
  double shifted = z + shift;
  RILL_KEEP_(shifted);
  const double r = z - (shifted - shift);
  uint64_t k;
  memcpy(&k, &shifted, sizeof k);
  k = rill_math_powers_[k % 32] + (k << 47);
  memcpy(power, &k, sizeof k);
  return (((0.009618166713972776 * r + 0.055504434191939005) * r + 0.24022650695795306) * r + 0.693147180550011) * r;
}

/* 2^z, or infinity or 0 outside the range of float. */
static __forceinline__ float rill_math_power_(double z) {
  double power;
  z = z > 200.0 ? 200.0 : z;
  z = z < -200.0 ? -200.0 : z;
  const double p = rill_math_exp2_(z, &power);
  return static_cast<float>(power * p + power);
}

/* 2^z - 1. */
static __forceinline__ double rill_math_growth_(double z) {
  double power;
  z = z > 200.0 ? 200.0 : z;
  z = z < -200.0 ? -200.0 : z;
  const double p = rill_math_exp2_(z, &power);
  return power * p + (power - 1.0);
}

/* Returns e with d = *m * 2^e, where *m is from sqrt(0.5) to sqrt(2). d must be normal and greater than 0. */
static __forceinline__ double rill_math_split_(double d, double *m) {
  uint64_t bits, first = 0x3fe6a09e667f3bcdull; /* sqrt(0.5) */
  memcpy(&bits, &d, sizeof d);
  const uint64_t above = bits - first + (1023ull << 52);
  bits = first + (above & ((1ull << 52) - 1));
  memcpy(m, &bits, sizeof bits);
  return static_cast<int>(static_cast<uint32_t>(above >> 52)) - 1023;
}

/* log(1 + f) / 2 = atanh(s), where s = f / (2 + f) and 1 + f is from sqrt(0.5) to sqrt(2). The polynomial is within
 * 2^-29 of (atanh(s) / s - 1) / s^2. */
static __forceinline__ double rill_math_log_of_(double f) {
  const double s = f / (f + 2.0), w = s * s;
  double p = 0.11665233608151918;
  p = p * w + 0.14275410407980332;
  p = p * w + 0.20000060919903062;
  p = p * w + 0.33333333277248545;
  return s + s * w * p;
}

/* Handles the special cases of a function that is -infinity at x = least, infinity at infinity, and a NaN for smaller
 * x and for a NaN. */
static __forceinline__ float rill_math_above_(float x, float least, float result) {
  const float below = x == least ? -RILL_INFINITE_ : RILL_NO_NUMBER_, outside = x > least ? x : below;
  return x > least && x <= RILL_MOST_ ? result : outside;
}

/* e * each + log(m) * scale, where x = m * 2^e. */
static __forceinline__ float rill_math_log_(float x, double each, double scale) {
  double m;
  const double e = rill_math_split_(x, &m);
  const float result = static_cast<float>(e * each + rill_math_log_of_(m - 1.0) * (2.0 * scale));
  return rill_math_above_(x, 0.0f, result);
}

/* Selects one of five numbers by the magnitude of a float. */
static __forceinline__ double rill_math_choose_(float x, double a, double b, double c, double d, double e) {
  double found = x >= 4294967296.0f ? b : a;       /* 2^32 */
  found = x >= 72057594037927936.0f ? c : found;   /* 2^56 */
  found = x >= 1.2089258196146292e24f ? d : found; /* 2^80 */
  return x >= 2.028240960365167e31f ? e : found;   /* 2^104 */
}

/* Returns the integer nearest to v, for |v| < 2^51, and adds its last bits to *last. */
static __forceinline__ double rill_math_nearest_(double v, uint64_t *last) {
  RILL_AS_WRITTEN_
  const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
  double shifted = v + shift;
  RILL_KEEP_(shifted);
  uint64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  *last += bits;
  return shifted - shift;
}

/* Returns x minus the nearest multiple of pi / 2, and adds the number of this multiple to *quarters. 2 / pi is split
 * into three parts. The first two have 29 bits, so their products with x are exact. For large x the parts omit the
 * bits that only add multiples of 4. In quarters of a turn, the remainder is an exact multiple of 2^-33 plus a term
 * below 2^-8, whose rounding error is at most 2^-61. No float is closer to a multiple of a quarter turn than 2^-31. */
static __forceinline__ double rill_math_turn_(float x, uint64_t *quarters) {
  RILL_AS_WRITTEN_
  const float size = __builtin_fabsf(x);
  const double wide = x;
  const double a = wide * rill_math_choose_(size, 0.636619770899415, 0.003807272354606539, 7.118246443671428e-11,
                                            1.6153797855624593e-17, 1.1109428133944797e-24);
  const double b = wide * rill_math_choose_(size, 1.4681663246252086e-09, 1.2974804038242901e-11, 5.412865960671359e-19,
                                            2.526826028529932e-26, 9.372006500203007e-34);
  const double c = wide * rill_math_choose_(size, 2.276010073078396e-18, 2.6290565170974656e-20, 1.0344533474420156e-27,
                                            7.053217946672059e-35, 4.420676015940119e-42);
  double left = a - rill_math_nearest_(a, quarters);
  left += b - rill_math_nearest_(b, quarters);
  left -= rill_math_nearest_(left, quarters);
  return (left + c) * 1.5707963267948966;
}

/* Returns the cosine of r if `cosine`, otherwise the sine, for |r| <= pi / 4. */
static __forceinline__ double rill_math_wave_(double r, bool cosine) {
  const double w = r * r;
  double p = cosine ? -1.0 / 3628800 : -1.0 / 39916800;
  p = p * w + (cosine ? 1.0 / 40320 : 1.0 / 362880);
  p = p * w - (cosine ? 1.0 / 720 : 1.0 / 5040);
  p = p * w + (cosine ? 1.0 / 24 : 1.0 / 120);
  p = p * w - (cosine ? 1.0 / 2 : 1.0 / 6);
  const double result = cosine ? 1.0 : r;
  return result + result * w * p;
}

/* Returns `result` as a float, or a NaN if x is infinite. */
static __forceinline__ float rill_math_of_finite_(float x, double result) {
  return __builtin_fabsf(x) <= RILL_MOST_ ? static_cast<float>(result) : RILL_NO_NUMBER_;
}

/* sin(x + quarters * pi / 2). */
static __forceinline__ float rill_math_sin_(float x, uint64_t quarters) {
  const double r = rill_math_turn_(x, &quarters), result = rill_math_wave_(r, (quarters & 1) != 0);
  return rill_math_of_finite_(x, (quarters & 2) != 0 ? -result : result);
}

/* sin(x * pi + quarters * pi / 2).  Floats of at least 2^24 are even integers. */
static __forceinline__ float rill_math_sinpi_(float x, uint64_t quarters) {
  const double turns = __builtin_fabsf(x) >= 16777216.0f ? 0.0 : static_cast<double>(x) * 2.0;
  const double r = (turns - rill_math_nearest_(turns, &quarters)) * 1.5707963267948966;
  const double result = rill_math_wave_(r, (quarters & 1) != 0);
  return rill_math_of_finite_(x, (quarters & 2) != 0 ? -result : result);
}

/* log(1 + t) for t > -1, with full relative accuracy for small t. */
static __forceinline__ double rill_math_log1p_(double t) {
  double m;
  const double e = rill_math_split_(1.0 + t, &m), f = e == 0.0 ? t : m - 1.0;
  return e * RILL_LN_2_ + rill_math_log_of_(f) * 2.0;
}

/* atan(y / x) for x, y >= 0. One division reduces the argument to an angle of at most an eighth of a turn, because
 * atan(t) = pi / 4 + atan((t - 1) / (t + 1)). The polynomial is within 2^-35. */
static __forceinline__ double rill_math_angle_(double y, double x) {
  const bool steep = y > x;
  const double low = steep ? x : y, most = steep ? y : x, high = most == 0.0 ? 1.0 : most;
  const bool half = low > high * 0.4142135623730951;
  const double t = (half ? low - high : low) / (half ? low + high : high), w = t * t;
  const double v = w * w, p = (0.04743824969383573 * v + 0.11044673353531628) * v + 0.19999903858553622;
  const double q = (-0.08476164274898686 * v - 0.14282006319471607) * v - 0.33333332498567775;
  const double angle = (half ? 0.7853981633974483 : 0.0) + (t + t * w * (q + p * w));
  return steep ? 1.5707963267948966 - angle : angle;
}

/* erfc(x) = exp(-x^2) * f(x), where f is a polynomial of (x - 3) / (x + 3) that is within 2^-34 of it. */
static __forceinline__ double rill_math_erfc_(double x) {
  double a = __builtin_fabs(x);
  a = a > 10.2 ? 10.2 : a; /* outside the range of float */
  const double t = (a - 3.0) / (a + 3.0);
  const double w = t * t; /* two chains of operations: even and odd powers */
  double p = -6.694622560375402e-06, q = -9.547205823037576e-06;
  p = p * w + 6.395370995364382e-05;
  q = q * w + 4.325860004520852e-05;
  p = p * w - 0.0005972925739084944;
  q = q * w + 0.0007083271974819636;
  p = p * w + 0.004269215042504097;
  q = q * w - 0.02439258388031958;
  p = p * w + 0.07166582881111325;
  q = q * w - 0.15011593103000564;
  p = p * w + 0.24560380195530362;
  q = q * w - 0.32623356014602123;
  p = p * w + 0.17900115118091417;
  p += q * t;
  double power;
  const double grown = rill_math_exp2_(a * a * -RILL_LOG2_E_, &power), result = (power * grown + power) * p;
  return x < 0.0 ? 2.0 - result : result;
}

/* a^(-1/3) within 2^-36: an estimate within 1/30, and two correction steps with h = 1 - a * y^3. */
static __forceinline__ double rill_math_cube_(double a) {
  uint64_t bits;
  memcpy(&bits, &a, sizeof bits);
  bits = (0x553ee8b4ull - ((bits >> 32) * 0x55555556ull >> 32)) << 32;
  double y, h;
  memcpy(&y, &bits, sizeof y);
  h = 1.0 - a * y * (y * y);
  y *= ((0.17459431932345282 * h + 0.22376811721503506) * h + 0.33332823256391375) * h + 0.9999979364611773;
  h = 1.0 - a * y * (y * y);
  return y + y * h * (1.0 / 3.0);
}

/* Used by rillcc, which inserts calls of these functions into the loops that it vectorizes, or by the functions
 * below. */
#if RILL_REGIONS
#define RILL_MATH_ __attribute__((always_inline))
#else
#define RILL_MATH_ static inline
#endif
extern "C" {
RILL_MATH_ float rill_math_expf(float x) { return rill_math_power_(static_cast<double>(x) * RILL_LOG2_E_); }
RILL_MATH_ float rill_math_exp2f(float x) { return rill_math_power_(static_cast<double>(x)); }
RILL_MATH_ float rill_math_logf(float x) { return rill_math_log_(x, RILL_LN_2_, 1.0); }
RILL_MATH_ float rill_math_log2f(float x) { return rill_math_log_(x, 1.0, RILL_LOG2_E_); }
RILL_MATH_ float rill_math_log10f(float x) { return rill_math_log_(x, RILL_LOG10_2_, RILL_LOG10_E_); }
RILL_MATH_ float rill_math_tanhf(float x) {
  double z = static_cast<double>(__builtin_fabsf(x)) * (2.0 * RILL_LOG2_E_), power;
  z = z > 100.0 ? 100.0 : z;
  const double p = rill_math_exp2_(z, &power), grown = power * p + (power - 1.0);
  return __builtin_copysignf(static_cast<float>(grown / (grown + 2.0)), x);
}
RILL_MATH_ float rill_math_sinf(float x) { return x == 0.0f ? x : rill_math_sin_(x, 0); }
RILL_MATH_ float rill_math_cosf(float x) { return rill_math_sin_(x, 1); }
RILL_MATH_ float rill_math_tanf(float x) {
  uint64_t quarters = 0;
  const double r = rill_math_turn_(x, &quarters), sine = rill_math_wave_(r, false), cosine = rill_math_wave_(r, true);
  const bool odd = (quarters & 1) != 0;
  const float result = rill_math_of_finite_(x, (odd ? -cosine : sine) / (odd ? sine : cosine));
  return x == 0.0f ? x : result;
}
RILL_MATH_ float rill_math_exp10f(float x) { return rill_math_power_(static_cast<double>(x) * RILL_LOG2_10_); }
RILL_MATH_ float rill_math_expm1f(float x) {
  return __builtin_copysignf(static_cast<float>(rill_math_growth_(static_cast<double>(x) * RILL_LOG2_E_)), x);
}
RILL_MATH_ float rill_math_log1pf(float x) {
  const float result = static_cast<float>(rill_math_log1p_(static_cast<double>(x)));
  return x == 0.0f ? x : rill_math_above_(x, -1.0f, result);
}
RILL_MATH_ float rill_math_sinhf(float x) {
  const double e = rill_math_growth_(static_cast<double>(__builtin_fabsf(x)) * RILL_LOG2_E_);
  return __builtin_copysignf(static_cast<float>((e + e / (e + 1.0)) * 0.5), x);
}
RILL_MATH_ float rill_math_coshf(float x) {
  const double e = rill_math_growth_(static_cast<double>(__builtin_fabsf(x)) * RILL_LOG2_E_) + 1.0;
  return static_cast<float>((e + 1.0 / e) * 0.5);
}
RILL_MATH_ float rill_math_asinhf(float x) {
  const float size = __builtin_fabsf(x);
  const double a = static_cast<double>(size), w = a * a;
  const float result = static_cast<float>(rill_math_log1p_(a + w / (1.0 + __builtin_sqrt(1.0 + w))));
  return __builtin_copysignf(size <= RILL_MOST_ ? result : size, x);
}
RILL_MATH_ float rill_math_acoshf(float x) {
  const double t = static_cast<double>(x) - 1.0;
  const float result = static_cast<float>(rill_math_log1p_(t + __builtin_sqrt(t * (t + 2.0))));
  return x == 1.0f ? 0.0f : rill_math_above_(x, 1.0f, result);
}
RILL_MATH_ float rill_math_atanhf(float x) {
  const float size = __builtin_fabsf(x);
  const double a = static_cast<double>(size);
  const float result = static_cast<float>(0.5 * rill_math_log1p_(2.0 * a / (1.0 - a)));
  const float outside = size == 1.0f ? RILL_INFINITE_ : RILL_NO_NUMBER_;
  return __builtin_copysignf(size < 1.0f ? result : outside, x);
}
RILL_MATH_ float rill_math_asinf(float x) {
  const double a = static_cast<double>(__builtin_fabsf(x));
  const double angle = rill_math_angle_(a, __builtin_sqrt((1.0 - a) * (1.0 + a)));
  return __builtin_copysignf(static_cast<float>(angle), x);
}
RILL_MATH_ float rill_math_acosf(float x) {
  const double a = static_cast<double>(__builtin_fabsf(x));
  const double angle = rill_math_angle_(__builtin_sqrt((1.0 - a) * (1.0 + a)), a);
  return static_cast<float>(x < 0.0f ? 3.141592653589793 - angle : angle);
}
RILL_MATH_ float rill_math_atanf(float x) {
  const double angle = rill_math_angle_(static_cast<double>(__builtin_fabsf(x)), 1.0);
  return __builtin_copysignf(static_cast<float>(angle), x);
}
RILL_MATH_ float rill_math_atan2f(float y, float x) {
  const float high = __builtin_fabsf(y), wide = __builtin_fabsf(x);
  const bool infinite = high > RILL_MOST_ && wide > RILL_MOST_;
  const double angle =
      rill_math_angle_(static_cast<double>(infinite ? 1.0f : high), static_cast<double>(infinite ? 1.0f : wide));
  const float result = static_cast<float>(__builtin_copysignf(1.0f, x) < 0.0f ? 3.141592653589793 - angle : angle);
  return __builtin_copysignf(result, y);
}
/* 1 - 2^q, where q = log2(erfc(x)) is a polynomial without a constant term, for x from 0 to 4. For larger x the
 * result is 1. */
RILL_MATH_ float rill_math_erff(float x) {
  double a = static_cast<double>(__builtin_fabsf(x));
  a = a > 4.0 ? 4.0 : a;
  const double w = a * a;
  double p = 1.5261354769008634e-07, q = -2.178656083927164e-06;
  p = p * w + 1.1345852517411275e-05;
  q = q * w - 1.2279541590193473e-05;
  p = p * w - 0.0001558401000951513;
  q = q * w + 0.0009619751999216944;
  p = p * w - 0.002513318484259569;
  q = q * w + 0.0003264049523565026;
  p = p * w + 0.02759123571425785;
  q = q * w - 0.14826895299365267;
  p = p * w - 0.9184482121951616;
  q = q * w - 1.6279070284536579;
  p = p * w + q * a;
  return __builtin_copysignf(static_cast<float>(-rill_math_growth_(p)), x);
}
RILL_MATH_ float rill_math_erfcf(float x) { return static_cast<float>(rill_math_erfc_(static_cast<double>(x))); }
RILL_MATH_ float rill_math_normcdff(float x) {
  return static_cast<float>(0.5 * rill_math_erfc_(static_cast<double>(x) * -0.7071067811865476));
}
/* x * y^2, where y is x^(-1/3). */
RILL_MATH_ float rill_math_cbrtf(float x) {
  const float size = __builtin_fabsf(x);
  const double a = static_cast<double>(size), y = rill_math_cube_(a);
  return __builtin_copysignf(size <= RILL_MOST_ ? static_cast<float>(a * y * y) : size, x);
}
RILL_MATH_ float rill_math_hypotf(float x, float y) {
  const double a = static_cast<double>(x), b = static_cast<double>(y);
  const float result = static_cast<float>(__builtin_sqrt(a * a + b * b));
  const bool infinite = __builtin_fabsf(x) > RILL_MOST_ || __builtin_fabsf(y) > RILL_MOST_;
  return infinite ? RILL_INFINITE_ : result;
}
/* 2^(y * log2(x)). */
RILL_MATH_ float rill_math_powf(float x, float y) {
  const float size = __builtin_fabsf(x);
  const double a = static_cast<double>(size), b = static_cast<double>(y);
  double m;
  const double e = rill_math_split_(a, &m), s = (m - 1.0) / (m + 1.0), w = s * s;
  const double v = w * w, p = (0.097918078085738 * v + 0.14286054108740234) * v + 0.33333333337886867;
  const double q = 0.11088113481696353 * v + 0.1999999781546719;
  double log = e + (s + s * w * (p + q * w)) * (2.0 * RILL_LOG2_E_);
  log = size <= RILL_MOST_ ? log : a;
  log = size == 0.0f ? -static_cast<double>(RILL_INFINITE_) : log;
  float result = rill_math_power_(b * log);
  uint64_t last = 0;
  const bool large = __builtin_fabsf(y) >= 16777216.0f; /* an even integer */
  const bool integer = rill_math_nearest_(b, &last) == b || large, odd = (last & 1) != 0 && integer && !large;
  result = size == 1.0f ? 1.0f : result;
  result = odd ? __builtin_copysignf(result, x) : result;
  result = x < 0.0f && !integer && size <= RILL_MOST_ ? RILL_NO_NUMBER_ : result;
  result = y == 0.0f || x == 1.0f ? 1.0f : result;
  return y == 2.0f ? x * x : result; /* the most common constant; everything else is then optimized away */
}
RILL_MATH_ float rill_math_sinpif(float x) {
  const float result = rill_math_sinpi_(x, 0);
  return result == 0.0f ? __builtin_copysignf(0.0f, x) : result;
}
RILL_MATH_ float rill_math_cospif(float x) { return rill_math_sinpi_(x, 1) + 0.0f; }
RILL_MATH_ void rill_math_sincosf(float x, float *s, float *c) {
  *s = rill_math_sinf(x);
  *c = rill_math_cosf(x);
}
#if !RILL_REGIONS
#define RILL_INSTEAD_(NAME)                                                   \
  __asm__(".hidden " #NAME); /* the C library's header declares it visible */ \
  float NAME(float x) RILL_C_THROWS_ { return rill_math_##NAME(x); }
#define RILL_INSTEAD_OF_TWO_(NAME) \
  __asm__(".hidden " #NAME);       \
  float NAME(float x, float y) RILL_C_THROWS_ { return rill_math_##NAME(x, y); }
RILL_INSTEAD_(expf)
RILL_INSTEAD_(exp2f)
#ifdef __USE_GNU
RILL_INSTEAD_(exp10f)
#if defined(__GLIBC_PREREQ) && __GLIBC_PREREQ(2, 41)
RILL_INSTEAD_(sinpif)
RILL_INSTEAD_(cospif)
#endif
#endif
RILL_INSTEAD_(expm1f)
RILL_INSTEAD_(logf)
RILL_INSTEAD_(log2f)
RILL_INSTEAD_(log10f)
RILL_INSTEAD_(log1pf)
RILL_INSTEAD_(sinf)
RILL_INSTEAD_(cosf)
RILL_INSTEAD_(tanf)
RILL_INSTEAD_(asinf)
RILL_INSTEAD_(acosf)
RILL_INSTEAD_(atanf)
RILL_INSTEAD_(sinhf)
RILL_INSTEAD_(coshf)
RILL_INSTEAD_(tanhf)
RILL_INSTEAD_(asinhf)
RILL_INSTEAD_(acoshf)
RILL_INSTEAD_(atanhf)
RILL_INSTEAD_(erff)
RILL_INSTEAD_(erfcf)
RILL_INSTEAD_(cbrtf)
RILL_INSTEAD_OF_TWO_(powf)
RILL_INSTEAD_OF_TWO_(atan2f)
RILL_INSTEAD_OF_TWO_(hypotf)
__asm__(".hidden sincosf");
void sincosf(float x, float *s, float *c) RILL_C_THROWS_ { rill_math_sincosf(x, s, c); }
#undef RILL_INSTEAD_
#undef RILL_INSTEAD_OF_TWO_
#endif
}
#include <rill/device/host_math_double.h>
#undef RILL_LOG2_E_
#undef RILL_LN_2_
#undef RILL_LOG10_E_
#undef RILL_LOG10_2_
#undef RILL_LOG2_10_
#undef RILL_MOST_
#undef RILL_INFINITE_
#undef RILL_NO_NUMBER_
#undef RILL_MATH_

#endif
