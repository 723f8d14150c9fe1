/* rill/device/host_math.h: expf, exp2f, logf, log2f, log10f, tanhf, sinf, cosf and sincosf on the cpu, which vectorize.
 * Included by rill/device/on_host.h.
 *
 * The C library's functions are calls, one for each thread.  These are a few operations of double without branches,
 * rounded to float once: within 0.51 ulp, and the same bits on every processor, in loops and on fibers.  An image has
 * them by the C library's names, for kernels and for std::exp of float and its like: rillcc puts rill_math_expf in the
 * place of expf (rillcc_lib/spmd.py); without clang, the image's own expf is found first.
 */
#ifndef RILL_DEVICE_HOST_MATH_H
#define RILL_DEVICE_HOST_MATH_H

/* Also with -ffast-math. */
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

/* 2^(i / 32), less what the addition of i << 47 to its bits makes up for. */
static const uint64_t rill_math_powers_[32] = {
  0x3ff0000000000000ull, 0x3fefd9b0d3158574ull, 0x3fefb5586cf9890full, 0x3fef9301d0125b51ull, 0x3fef72b83c7d517bull,
  0x3fef54873168b9aaull, 0x3fef387a6e756238ull, 0x3fef1e9df51fdee1ull, 0x3fef06fe0a31b715ull, 0x3feef1a7373aa9cbull,
  0x3feedea64c123422ull, 0x3feece086061892dull, 0x3feebfdad5362a27ull, 0x3feeb42b569d4f82ull, 0x3feeab07dd485429ull,
  0x3feea47eb03a5585ull, 0x3feea09e667f3bcdull, 0x3fee9f75e8ec5f74ull, 0x3feea11473eb0187ull, 0x3feea589994cce13ull,
  0x3feeace5422aa0dbull, 0x3feeb737b0cdc5e5ull, 0x3feec49182a3f090ull, 0x3feed503b23e255dull, 0x3feee89f995ad3adull,
  0x3feeff76f2fb5e47ull, 0x3fef199bdd85529cull, 0x3fef3720dcef9069ull, 0x3fef5818dcfba487ull, 0x3fef7c97337b9b5full,
  0x3fefa4afa2a490daull, 0x3fefd0765b6e4540ull,
};

/* 2^z = *power * (1 + p), where p is given: 2^r - 1 of what is left of z without its nearest 32nd.  |z| < 1000; of a
 * NaN a NaN.  The polynomial is within 2^-36 of (2^r - 1) / r. */
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

/* 2^z, beyond what float holds infinity or 0. */
static __forceinline__ float rill_math_power_(double z) {
  double power;
  z = z > 200.0 ? 200.0 : z;
  z = z < -200.0 ? -200.0 : z;
  const double p = rill_math_exp2_(z, &power);
  return static_cast<float>(power * p + power);
}

/* e * each + log(m) * scale, where x = m * 2^e and m is from sqrt(0.5) to sqrt(2): log(m) = 2 * atanh(s), s being
 * (m - 1) / (m + 1).  The polynomial is within 2^-29 of (atanh(s) / s - 1) / s^2. */
static __forceinline__ float rill_math_log_(float x, double each, double scale) {
  const double d = x;
  uint64_t bits, first = 0x3fe6a09e667f3bcdull; /* sqrt(0.5) */
  memcpy(&bits, &d, sizeof d);
  const uint64_t above = bits - first + (1023ull << 52);
  const int e = static_cast<int>(static_cast<uint32_t>(above >> 52)) - 1023;
  bits = first + (above & ((1ull << 52) - 1));
  double m;
  memcpy(&m, &bits, sizeof m);
  const double s = (m - 1.0) / (m + 1.0), w = s * s;
  double p = 0.11665233608151918;
  p = p * w + 0.14275410407980332;
  p = p * w + 0.20000060919903062;
  p = p * w + 0.33333333277248545;
  const float result = static_cast<float>(e * each + (s + s * w * p) * (2.0 * scale));
  const uint32_t bits_outside = x == 0.0f ? 0xff800000u : 0x7fc00000u; /* -infinity, a NaN */
  float outside;
  memcpy(&outside, &bits_outside, sizeof outside);
  outside = x > 0.0f ? x : outside;
  return x > 0.0f && x <= 3.4028234663852886e38f ? result : outside;
}

/* One of five numbers, by a float without its sign. */
static __forceinline__ double rill_math_choose_(float x, double a, double b, double c, double d, double e) {
  double found = x >= 4294967296.0f ? b : a;       /* 2^32 */
  found = x >= 72057594037927936.0f ? c : found;   /* 2^56 */
  found = x >= 1.2089258196146292e24f ? d : found; /* 2^80 */
  return x >= 2.028240960365167e31f ? e : found;   /* 2^104 */
}

/* The nearest integer, whose last bits are added to *last: |v| < 2^51. */
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

/* sin(x + quarters * pi / 2).  2 / pi is in three parts, the first two of 29 bits, so that x times one of these is
 * exact; for large x it is without the bits that make multiples of 4.  What is left of x beside quarters of a turn is a
 * multiple of 2^-33 of one, exactly, and less than 2^-8 more, of which 2^-61 is lost; no float is nearer to a quarter
 * than 2^-31. */
static __forceinline__ float rill_math_sin_(float x, uint64_t quarters) {
  RILL_AS_WRITTEN_
  const float size = __builtin_fabsf(x);
  const double wide = x;
  const double a = wide * rill_math_choose_(size, 0.636619770899415, 0.003807272354606539, 7.118246443671428e-11,
                                            1.6153797855624593e-17, 1.1109428133944797e-24);
  const double b = wide * rill_math_choose_(size, 1.4681663246252086e-09, 1.2974804038242901e-11, 5.412865960671359e-19,
                                            2.526826028529932e-26, 9.372006500203007e-34);
  const double c = wide * rill_math_choose_(size, 2.276010073078396e-18, 2.6290565170974656e-20, 1.0344533474420156e-27,
                                            7.053217946672059e-35, 4.420676015940119e-42);
  double left = a - rill_math_nearest_(a, &quarters);
  left += b - rill_math_nearest_(b, &quarters);
  left -= rill_math_nearest_(left, &quarters);
  const double r = (left + c) * 1.5707963267948966, w = r * r;
  const bool odd = (quarters & 1) != 0; /* the cosine's series, else the sine's */
  double p = odd ? -1.0 / 3628800 : -1.0 / 39916800;
  p = p * w + (odd ? 1.0 / 40320 : 1.0 / 362880);
  p = p * w - (odd ? 1.0 / 720 : 1.0 / 5040);
  p = p * w + (odd ? 1.0 / 24 : 1.0 / 120);
  p = p * w - (odd ? 1.0 / 2 : 1.0 / 6);
  double result = odd ? 1.0 : r;
  result += result * w * p;
  result = (quarters & 2) != 0 ? -result : result;
  const uint32_t nan_bits = 0x7fc00000u;
  float nan;
  memcpy(&nan, &nan_bits, sizeof nan);
  return size <= 3.4028234663852886e38f ? static_cast<float>(result) : nan;
}

#define RILL_LOG2_E_ 1.4426950408889634
#define RILL_LN_2_ 0.6931471805599453
#define RILL_LOG10_E_ 0.4342944819032518
#define RILL_LOG10_2_ 0.3010299956639812

extern "C" {
float rill_math_expf(float x) { return rill_math_power_(static_cast<double>(x) * RILL_LOG2_E_); }
float rill_math_exp2f(float x) { return rill_math_power_(static_cast<double>(x)); }
float rill_math_logf(float x) { return rill_math_log_(x, RILL_LN_2_, 1.0); }
float rill_math_log2f(float x) { return rill_math_log_(x, 1.0, RILL_LOG2_E_); }
float rill_math_log10f(float x) { return rill_math_log_(x, RILL_LOG10_2_, RILL_LOG10_E_); }
float rill_math_tanhf(float x) {
  double z = static_cast<double>(__builtin_fabsf(x)) * (2.0 * RILL_LOG2_E_), power;
  z = z > 100.0 ? 100.0 : z;
  const double p = rill_math_exp2_(z, &power), grown = power * p + (power - 1.0);
  return __builtin_copysignf(static_cast<float>(grown / (grown + 2.0)), x);
}
float rill_math_sinf(float x) { return x == 0.0f ? x : rill_math_sin_(x, 0); }
float rill_math_cosf(float x) { return rill_math_sin_(x, 1); }
void rill_math_sincosf(float x, float *s, float *c) {
  *s = rill_math_sinf(x);
  *c = rill_math_cosf(x);
}
#if !RILL_REGIONS
#define RILL_INSTEAD_(NAME)                                                   \
  __asm__(".hidden " #NAME); /* the C library's header says that it is not */ \
  float NAME(float x) RILL_C_THROWS_ { return rill_math_##NAME(x); }
RILL_INSTEAD_(expf)
RILL_INSTEAD_(exp2f)
RILL_INSTEAD_(logf)
RILL_INSTEAD_(log2f)
RILL_INSTEAD_(log10f)
RILL_INSTEAD_(tanhf)
RILL_INSTEAD_(sinf)
RILL_INSTEAD_(cosf)
__asm__(".hidden sincosf");
void sincosf(float x, float *s, float *c) RILL_C_THROWS_ { rill_math_sincosf(x, s, c); }
#undef RILL_INSTEAD_
#endif
}
#undef RILL_LOG2_E_
#undef RILL_LN_2_
#undef RILL_LOG10_E_
#undef RILL_LOG10_2_

#endif
