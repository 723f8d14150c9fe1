/* rill/device/host_math.h: expf, exp2f, logf, log2f, log10f and tanhf on the cpu, which vectorize.  Included by
 * rill/device/on_host.h.
 *
 * The C library's functions are calls, one for each thread.  These are a few operations of double without branches or
 * tables, rounded to float once: within 0.51 ulp, and the same bits on every processor, in loops and on
 * fibers.  An image has them by the C library's names, for kernels and for std::exp of float and its like: rillcc puts
 * rill_math_expf in the place of expf (rillcc_lib/spmd.py); without clang, the image's own expf is found first.
 */
#ifndef RILL_DEVICE_HOST_MATH_H
#define RILL_DEVICE_HOST_MATH_H

#ifdef __GLIBC__
#define RILL_C_THROWS_ noexcept
#else
#define RILL_C_THROWS_
#endif

/* 2^z - 1 = *power * p + (*power - 1), where p is given: 2^f - 1 of what is left of z without its nearest integer.
 * |z| < 1000.  The polynomial is within 2^-31 of (2^f - 1) / f. */
static __forceinline__ double rill_math_exp2_(double z, double *power) {
  const int k = static_cast<int>(z + (z < 0.0 ? -0.5 : 0.5));
  const double f = z - k;
  const uint64_t bits = static_cast<uint64_t>(static_cast<uint32_t>(k + 1023)) << 52;
  memcpy(power, &bits, sizeof bits);
  double p = 1.5297323760701075e-05;
  p = p * f + 0.0001546144469856913;
  p = p * f + 0.001333350238616277;
  p = p * f + 0.009618056678524637;
  p = p * f + 0.055504108839096185;
  p = p * f + 0.24022650922288757;
  p = p * f + 0.6931471805599453;
  return p * f;
}

/* 2^z, beyond what float holds infinity or 0; of a NaN anything. */
static __forceinline__ float rill_math_power_(double z) {
  double power;
  z = z > -200.0 ? z : -200.0;
  z = z < 200.0 ? z : 200.0;
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
  const float outside = x == 0.0f ? -__builtin_inff() : x < 0.0f ? __builtin_nanf("") : x;
  return x > 0.0f && x < __builtin_inff() ? result : outside;
}

#define RILL_LOG2_E_ 1.4426950408889634
#define RILL_LN_2_ 0.6931471805599453
#define RILL_LOG10_E_ 0.4342944819032518
#define RILL_LOG10_2_ 0.3010299956639812

extern "C" {
float rill_math_expf(float x) {
  const float power = rill_math_power_(static_cast<double>(x) * RILL_LOG2_E_);
  return x != x ? x : power;
}
float rill_math_exp2f(float x) {
  const float power = rill_math_power_(static_cast<double>(x));
  return x != x ? x : power;
}
float rill_math_logf(float x) { return rill_math_log_(x, RILL_LN_2_, 1.0); }
float rill_math_log2f(float x) { return rill_math_log_(x, 1.0, RILL_LOG2_E_); }
float rill_math_log10f(float x) { return rill_math_log_(x, RILL_LOG10_2_, RILL_LOG10_E_); }
float rill_math_tanhf(float x) {
  double z = static_cast<double>(__builtin_fabsf(x)) * (2.0 * RILL_LOG2_E_), power;
  z = z < 100.0 ? z : 100.0;
  const double p = rill_math_exp2_(z, &power), grown = power * p + (power - 1.0);
  const float result = __builtin_copysignf(static_cast<float>(grown / (grown + 2.0)), x);
  return x != x ? x : result;
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
#undef RILL_INSTEAD_
#endif
}
#undef RILL_LOG2_E_
#undef RILL_LN_2_
#undef RILL_LOG10_E_
#undef RILL_LOG10_2_

#endif
