/* rill/device/host_math_trig.h: trigonometric functions of double on the CPU. Included by
 * rill/device/host_math_double.h.
 *
 * sin, cos and tan are calls, because the rare arguments beyond RILL_NEAR_ need a branch, and a loop with a branch
 * would not vectorize. Each function exists for one number, and with clang also for vectors of 2, 4 and 8
 * numbers, which clang calls in loops (rillcc_lib/vector_calls.py). All of them are instances of the same templates,
 * so they return the same bits. D is double or a vector of doubles, and U is uint64_t or a vector of as many. */
#ifndef RILL_DEVICE_HOST_MATH_TRIG_H
#define RILL_DEVICE_HOST_MATH_TRIG_H

#if RILL_REGIONS
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpsabi" /* vectors are arguments of inlined functions only */
#define RILL_ONE_ __attribute__((noinline, const))
#else
#define RILL_ONE_ static inline
#endif
#define RILL_NEAR_ 4e5 /* the largest argument for which rill_math_near_ is accurate */

/* The bits of 2 / pi: 64 in front of the binary point, and those after it. */
static const uint64_t rill_math_inverse_[20] = {
  0x0000000000000000ull, 0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
  0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull,
  0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full, 0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull,
  0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
};

/* Returns x minus the nearest multiple of pi / 2, for |x| > RILL_NEAR_. *rest is what the result lost in rounding, and
 * *quarters the number of the multiple. x is an integer times a power of 2. The integer is multiplied by 192 bits of
 * 2 / pi, because the bits in front of them only add multiples of 4. No double is closer to a multiple of pi / 2 than
 * 2^-62, so at least 60 bits of the result are correct. */
static inline double rill_math_far_turn_(double x, double *rest, uint64_t *quarters) {
  typedef unsigned __int128 wide;
  uint64_t bits, w[3];
  memcpy(&bits, &x, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 2047), first = exponent - 1077 + 64;
  if (exponent == 2047) return *rest = static_cast<double>(RILL_NO_NUMBER_);
  const uint64_t m = (bits & ((1ull << 52) - 1)) | 1ull << 52, minus = bits >> 63;
  for (int i = 0; i < 3; i++) {
    const uint64_t *from = &rill_math_inverse_[(first >> 6) + i];
    w[i] = from[0] << (first & 63) | from[1] >> 1 >> (63 - (first & 63));
  }
  /* x * 2 / pi modulo 4, in units of 2^-190. The last 64 bits are in `last`. */
  wide last = static_cast<wide>(m) * w[2], part = static_cast<wide>(m * w[0]) << 64;
  part += static_cast<wide>(m) * w[1] + (last >> 64);
  const uint64_t count = (static_cast<uint64_t>(part >> 64) + (1ull << 61)) >> 62;
  part -= static_cast<wide>(count) << 126;
  const uint64_t negative = static_cast<uint64_t>(part >> 127);
  if (negative != 0) part = ~part, last = ~last;
  const uint64_t top = static_cast<uint64_t>(part >> 64), low = static_cast<uint64_t>(part);
  const int zeros = top != 0 ? __builtin_clzll(top) : 64 + __builtin_clzll(low | 1), more = zeros & 63;
  const uint64_t high = zeros < 64 ? top : low, next = zeros < 64 ? low : static_cast<uint64_t>(last);
  const uint64_t found = high << more | next >> 1 >> (63 - more); /* in units of 2^(-62 - zeros) */
  const uint64_t angle = static_cast<uint64_t>(static_cast<wide>(found) * 0xc90fdaa22168c235ull >> 64);
  const uint64_t unit = static_cast<uint64_t>(1023 - 61 - zeros) << 52 | (minus ^ negative) << 63;
  double scale;
  memcpy(&scale, &unit, sizeof scale);
  *quarters = minus != 0 ? 0 - count : count;
  *rest = static_cast<double>(static_cast<int>(angle & 2047)) * scale;
  return static_cast<double>(static_cast<int64_t>(angle >> 11)) * (2048.0 * scale);
}

/* Replaces the results of rill_math_near_ for those of n numbers that are not near. */
static __attribute__((noinline)) void rill_math_far_(int n, const double *x, double *r, double *rest,
                                                     uint64_t *quarters) {
#if RILL_REGIONS
#pragma clang loop unroll(disable) vectorize(disable)
#endif
  for (int i = 0; i < n; i++) {
    if (!(__builtin_fabs(x[i]) <= RILL_NEAR_)) r[i] = rill_math_far_turn_(x[i], &rest[i], &quarters[i]);
  }
}

template <typename U, typename D> static __forceinline__ U rill_math_to_bits_(D d) {
  U bits;
  memcpy(&bits, &d, sizeof bits);
  return bits;
}

template <typename D, typename U> static __forceinline__ D rill_math_from_bits_(U bits) {
  D d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

template <typename D, typename M> static __forceinline__ D rill_math_pick_(M mask, D a, D b) { return mask ? a : b; }

static __forceinline__ bool rill_math_any_(bool is) { return is; }
#if RILL_REGIONS
template <typename M> static __forceinline__ bool rill_math_any_(M mask) { return __builtin_reduce_or(mask) != 0; }
#endif

/* Returns x minus the nearest multiple of pi / 2, which is split into three parts. The first two have 35 bits. Their
 * products with the number of the multiple are exact, and the first difference is exact. */
template <typename D, typename U> static __forceinline__ D rill_math_near_(D x, D *rest, U *quarters) {
  RILL_AS_WRITTEN_
  const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
  D shifted = x * 0.6366197723675814 + shift;
  RILL_KEEP_(shifted);
  *quarters = rill_math_to_bits_<U>(shifted);
  const D k = shifted - shift, a = x - k * 1.5707963267923333, b = k * 2.5633441515839558e-12, c = a - b;
  const D d = ((a - c) - b) - k * 1.0562999066987428e-23;
  D r = c + d;
  RILL_KEEP_(r);
  *rest = (c - r) + d;
  return r;
}

template <typename D, typename U> static __forceinline__ D rill_math_wide_turn_(D x, D *rest, U *quarters) {
  D r = rill_math_near_(x, rest, quarters);
  const D size = rill_math_from_bits_<D>(rill_math_to_bits_<U>(x) & ~(1ull << 63));
  if (__builtin_expect(rill_math_any_(!(size <= RILL_NEAR_)), 0)) {
    const int n = sizeof(D) / sizeof(double);
    double from[n], to[n], rests[n];
    uint64_t counts[n];
    memcpy(from, &x, sizeof x);
    memcpy(to, &r, sizeof r);
    memcpy(rests, rest, sizeof r);
    memcpy(counts, quarters, sizeof r);
    rill_math_far_(n, from, to, rests, counts);
    memcpy(&r, to, sizeof r);
    memcpy(rest, rests, sizeof r);
    memcpy(quarters, counts, sizeof r);
  }
  return r;
}

/* Returns (cos(r) - 1 + r^2 / 2) / r^4 if `cosine`, otherwise (sin(r) - r) / r^3, for |r| <= pi / 4, where w is r^2.
 * The sine is within 2^-57. */
template <typename D, typename M> static __forceinline__ D rill_math_bend_(M cosine, D w) {
  RILL_AS_WRITTEN_
  const D v = w * w;
  D p = rill_math_pick_<D>(cosine, 2.087571966056506e-09, -2.505075337852853e-08);
  D q = rill_math_pick_<D>(cosine, -1.1359454112843535e-11, 1.5896511939551874e-10);
  p = p * v + rill_math_pick_<D>(cosine, 2.4801587289397362e-05, -0.00019841269829726978);
  q = q * v + rill_math_pick_<D>(cosine, -2.755731432675705e-07, 2.7557313662735385e-06);
  p = p * v + rill_math_pick_<D>(cosine, 0.0416666666666666, -0.16666666666666632);
  q = q * v + rill_math_pick_<D>(cosine, -0.0013888888888873995, 0.008333333333322318);
  return p + q * w;
}

/* sin(r + rest + quarters * pi / 2). */
template <typename D, typename U> static __forceinline__ D rill_math_wide_wave_(D r, D rest, U quarters) {
  RILL_AS_WRITTEN_
  const auto odd = (quarters & 1) != 0;
  const D w = r * r, half = 0.5 * w, below = 1.0 - half;
  const D bent = w * rill_math_pick_<D>(odd, w, r) * rill_math_bend_(odd, w);
  const D lost = rill_math_pick_<D>(odd, ((1.0 - below) - half) - r * rest, rest * below);
  const D result = rill_math_pick_<D>(odd, below, r) + (bent + lost);
  return rill_math_from_bits_<D>(rill_math_to_bits_<U>(result) ^ (quarters & 2) << 62);
}

template <typename D, typename U> static __forceinline__ D rill_math_wide_sin_(D x) {
  D rest;
  U quarters;
  const D r = rill_math_wide_turn_(x, &rest, &quarters), result = rill_math_wide_wave_(r, rest, quarters);
  return rill_math_pick_<D>(x == 0.0, x, result);
}

template <typename D, typename U> static __forceinline__ D rill_math_wide_cos_(D x) {
  D rest;
  U quarters;
  const D r = rill_math_wide_turn_(x, &rest, &quarters);
  return rill_math_wide_wave_<D, U>(r, rest, quarters + 1);
}

template <typename D, typename U> static __forceinline__ D rill_math_wide_tan_(D x) {
  RILL_AS_WRITTEN_
  D rest;
  U quarters;
  const D r = rill_math_wide_turn_(x, &rest, &quarters), w = r * r, half = 0.5 * w, below = 1.0 - half;
  const D sine = r + (w * r * rill_math_bend_(false, w) + rest * below);
  const D cosine = below + (w * w * rill_math_bend_(true, w) + (((1.0 - below) - half) - r * rest));
  const auto odd = (quarters & 1) != 0;
  const D result = rill_math_pick_<D>(odd, -cosine, sine) / rill_math_pick_<D>(odd, sine, cosine);
  return rill_math_pick_<D>(x == 0.0, x, result);
}

/* sin(x * pi + quarters * pi / 2). Doubles of at least 2^53 are even integers. Small numbers are scaled, so that no
 * part of the product with pi / 2 is subnormal. Two parts of 26 bits have an exact product. */
static __forceinline__ double rill_math_wide_sinpi_(double x, uint64_t quarters) {
  RILL_AS_WRITTEN_
  const double size = __builtin_fabs(x), scale = size < 1e-200 && quarters == 0 ? 0x1p300 : 1.0;
  const double near = size >= 9007199254740992.0 ? 0.0 : x;
  uint64_t fours = 0;
  const double turns = 2.0 * (near - 4.0 * rill_math_nearest_(near * 0.25, &fours));
  const double left = (turns - rill_math_nearest_(turns, &quarters)) * scale;
  const double high = rill_math_from_bits_<double>(rill_math_to_bits_<uint64_t>(left) & ~0ull << 27);
  const double exact = high * 1.5707963109016418;
  const double more = (left - high) * 1.5707963109016418 + left * 1.5893254773528196e-08;
  double r = exact + more;
  RILL_KEEP_(r);
  const double result = rill_math_wide_wave_(r, (exact - r) + more, quarters) * (1.0 / scale);
  return size <= RILL_MOST_DOUBLE_ ? result : static_cast<double>(RILL_NO_NUMBER_);
}

#if RILL_REGIONS
/* Replaces N numbers by the results of a function. rillcc makes functions of vectors from these functions. */
#define RILL_LANES_(NAME, N)                                                 \
  __attribute__((always_inline)) void rill_math_##NAME##_of_##N(double *x) { \
    typedef double numbers __attribute__((ext_vector_type(N)));              \
    typedef uint64_t words __attribute__((ext_vector_type(N)));              \
    numbers all;                                                             \
    memcpy(&all, x, sizeof all);                                             \
    all = rill_math_wide_##NAME##_<numbers, words>(all);                     \
    memcpy(x, &all, sizeof all);                                             \
  }
#define RILL_ALL_LANES_(NAME) \
  RILL_LANES_(NAME, 2)        \
  RILL_LANES_(NAME, 4)        \
  RILL_LANES_(NAME, 8)
#else
#define RILL_ALL_LANES_(NAME)
#endif
#define RILL_CALL_(NAME)                                                                                \
  RILL_ONE_ double rill_math_##NAME(double x) { return rill_math_wide_##NAME##_<double, uint64_t>(x); } \
  RILL_ALL_LANES_(NAME)
extern "C" {
RILL_CALL_(sin)
RILL_CALL_(cos)
RILL_CALL_(tan)
RILL_MATH_ void rill_math_sincos(double x, double *s, double *c) {
  *s = rill_math_sin(x);
  *c = rill_math_cos(x);
}
RILL_MATH_ double rill_math_sinpi(double x) {
  const double result = rill_math_wide_sinpi_(x, 0);
  return result == 0.0 ? __builtin_copysign(0.0, x) : result;
}
RILL_MATH_ double rill_math_cospi(double x) { return rill_math_wide_sinpi_(x, 1) + 0.0; }
#if !RILL_REGIONS
#define RILL_INSTEAD_(NAME)  \
  __asm__(".hidden " #NAME); \
  double NAME(double x) RILL_C_THROWS_ { return rill_math_##NAME(x); }
RILL_INSTEAD_(sin)
RILL_INSTEAD_(cos)
RILL_INSTEAD_(tan)
#undef RILL_INSTEAD_
__asm__(".hidden sincos");
void sincos(double x, double *s, double *c) RILL_C_THROWS_ { rill_math_sincos(x, s, c); }
#endif
}
#undef RILL_CALL_
#undef RILL_ALL_LANES_
#undef RILL_ONE_
#undef RILL_NEAR_
#if RILL_REGIONS
#undef RILL_LANES_
#pragma clang diagnostic pop
#endif

#endif
