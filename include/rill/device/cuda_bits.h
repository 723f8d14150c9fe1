/* rill/device/cuda_bits.h: CUDA's bit and integer functions, and conversions. Included by
 * rill/device/cuda_names.h. */
#ifndef RILL_DEVICE_CUDA_BITS_H
#define RILL_DEVICE_CUDA_BITS_H

#define RILL_NAME_ static __device__ __forceinline__
#define RILL_NAMED_ __device__ __forceinline__ /* for members of a class */

#if !RILL_HIP_HAS_
RILL_NAME_ int __popc(unsigned x) { return __builtin_popcount(x); }
RILL_NAME_ int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
RILL_NAME_ int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
RILL_NAME_ int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
RILL_NAME_ int __ffs(int x) { return __builtin_ffs(x); }
RILL_NAME_ int __ffsll(long long x) { return __builtin_ffsll(x); }
RILL_NAME_ unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
RILL_NAME_ unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
RILL_NAME_ int __mul24(int x, int y) {
  return static_cast<int>(static_cast<unsigned>(static_cast<int>(static_cast<unsigned>(x) << 8) >> 8) *
                          static_cast<unsigned>(static_cast<int>(static_cast<unsigned>(y) << 8) >> 8));
}
RILL_NAME_ unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffffu) * (y & 0xffffffu); }
RILL_NAME_ int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
RILL_NAME_ unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
RILL_NAME_ long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
RILL_NAME_ unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
RILL_NAME_ unsigned __sad(int x, int y, unsigned z) {
  return (x > y ? static_cast<unsigned>(x) - static_cast<unsigned>(y)
                : static_cast<unsigned>(y) - static_cast<unsigned>(x)) +
         z;
}
RILL_NAME_ unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }

template <class RillTo, class RillFrom> RILL_NAME_ RillTo rill_bits_as_(RillFrom x) {
  static_assert(sizeof(RillTo) == sizeof(RillFrom), "");
  RillTo y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
RILL_NAME_ int __float_as_int(float x) { return rill_bits_as_<int>(x); }
RILL_NAME_ unsigned __float_as_uint(float x) { return rill_bits_as_<unsigned>(x); }
RILL_NAME_ float __int_as_float(int x) { return rill_bits_as_<float>(x); }
RILL_NAME_ float __uint_as_float(unsigned x) { return rill_bits_as_<float>(x); }
RILL_NAME_ long long __double_as_longlong(double x) { return rill_bits_as_<long long>(x); }
RILL_NAME_ double __longlong_as_double(long long x) { return rill_bits_as_<double>(x); }
RILL_NAME_ int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
RILL_NAME_ int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
RILL_NAME_ double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

/* Converts to an integer. A value that is too large becomes the largest integer, and a NaN becomes 0. */
template <class RillTo, class RillFrom> RILL_NAME_ RillTo rill_to_integer_(RillFrom x) {
  constexpr bool is_signed = static_cast<RillTo>(-1) < static_cast<RillTo>(0);
  constexpr int bits = static_cast<int>(8 * sizeof(RillTo)) - (is_signed ? 1 : 0);
  constexpr RillTo most = static_cast<RillTo>(~0ull >> (64 - bits));
  constexpr RillTo least = static_cast<RillTo>(is_signed ? -most - 1 : 0);
  const RillFrom limit = static_cast<RillFrom>(1ull << (bits - 1)) * 2;
  if (!(x == x)) return 0;
  if (x >= limit) return most;
  if (x <= (is_signed ? -limit : 0)) return least;
  return static_cast<RillTo>(x);
}
#define RILL_TO_INTEGER_(FROM, FLOAT, F, TO, INTEGER)                                                           \
  RILL_NAME_ INTEGER __##FROM##2##TO##_rn(FLOAT x) { return rill_to_integer_<INTEGER>(__builtin_rint##F(x)); }  \
  RILL_NAME_ INTEGER __##FROM##2##TO##_rz(FLOAT x) { return rill_to_integer_<INTEGER>(__builtin_trunc##F(x)); } \
  RILL_NAME_ INTEGER __##FROM##2##TO##_ru(FLOAT x) { return rill_to_integer_<INTEGER>(__builtin_ceil##F(x)); }  \
  RILL_NAME_ INTEGER __##FROM##2##TO##_rd(FLOAT x) { return rill_to_integer_<INTEGER>(__builtin_floor##F(x)); }
RILL_TO_INTEGER_(float, float, f, int, int)
RILL_TO_INTEGER_(float, float, f, uint, unsigned)
RILL_TO_INTEGER_(float, float, f, ll, long long)
RILL_TO_INTEGER_(float, float, f, ull, unsigned long long)
RILL_TO_INTEGER_(double, double, , int, int)
RILL_TO_INTEGER_(double, double, , uint, unsigned)
RILL_TO_INTEGER_(double, double, , ll, long long)
RILL_TO_INTEGER_(double, double, , ull, unsigned long long)
#undef RILL_TO_INTEGER_
RILL_NAME_ float __int2float_rn(int x) { return static_cast<float>(x); }
RILL_NAME_ float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
RILL_NAME_ float __ll2float_rn(long long x) { return static_cast<float>(x); }
RILL_NAME_ float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
RILL_NAME_ double __int2double_rn(int x) { return static_cast<double>(x); }
RILL_NAME_ double __uint2double_rn(unsigned x) { return static_cast<double>(x); }
RILL_NAME_ double __ll2double_rn(long long x) { return static_cast<double>(x); }
RILL_NAME_ double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
/* Converts a magnitude, rounding towards zero, or away from zero if `grows`. */
template <class RillTo> RILL_NAME_ RillTo rill_from_magnitude_(unsigned long long m, bool grows) {
  const int beyond = 64 - __clzll(static_cast<long long>(m)) - (sizeof(RillTo) == 4 ? 24 : 53);
  if (beyond <= 0) return static_cast<RillTo>(m);
  const unsigned long long last = 1ull << beyond, leading = m & ~(last - 1);
  return static_cast<RillTo>(leading) + static_cast<RillTo>(grows && leading != m ? last : 0);
}
template <class RillTo, class RillFrom> RILL_NAME_ RillTo rill_from_integer_(RillFrom x, bool up, bool down) {
  const unsigned long long m = static_cast<unsigned long long>(x);
  return x < 0 ? -rill_from_magnitude_<RillTo>(0 - m, down) : rill_from_magnitude_<RillTo>(m, up);
}
#define RILL_FROM_INTEGER_(FROM, INTEGER, TO)                                                       \
  RILL_NAME_ TO __##FROM##2##TO##_rz(INTEGER x) { return rill_from_integer_<TO>(x, false, false); } \
  RILL_NAME_ TO __##FROM##2##TO##_ru(INTEGER x) { return rill_from_integer_<TO>(x, true, false); }  \
  RILL_NAME_ TO __##FROM##2##TO##_rd(INTEGER x) { return rill_from_integer_<TO>(x, false, true); }
RILL_FROM_INTEGER_(int, int, float)
RILL_FROM_INTEGER_(uint, unsigned, float)
RILL_FROM_INTEGER_(ll, long long, float)
RILL_FROM_INTEGER_(ull, unsigned long long, float)
RILL_FROM_INTEGER_(ll, long long, double)
RILL_FROM_INTEGER_(ull, unsigned long long, double)
#undef RILL_FROM_INTEGER_
RILL_NAME_ float fdividef(float x, float y) { return x / y; }
#if defined(RILL_CUDA_FREESTANDING)
RILL_NAME_ long long clock64() { return static_cast<long long>(__nvvm_read_ptx_sreg_clock64()); }
#else
RILL_NAME_ long long clock64() { return static_cast<long long>(rill_clock_ns()); }
#endif
RILL_NAME_ float __double2float_rn(double x) { return static_cast<float>(x); }

RILL_NAME_ unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; i++) {
    const unsigned pick = selector >> (4 * i);
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7))) & 0xffu;
    if (pick & 8) byte = byte & 0x80u ? 0xffu : 0;
    result |= byte << (8 * i);
  }
  return result;
}
RILL_NAME_ unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return by % 32 == 0 ? high : high << (by % 32) | low >> (32 - by % 32);
}
RILL_NAME_ unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return by % 32 == 0 ? low : low >> (by % 32) | high << (32 - by % 32);
}
#endif
/* These are templates, so the functions of the same names in some versions of HIP are preferred. */
template <int = 0> RILL_NAME_ unsigned umin(unsigned x, unsigned y) { return x < y ? x : y; }
template <int = 0> RILL_NAME_ unsigned umax(unsigned x, unsigned y) { return x < y ? y : x; }
/* Returns z plus the sum of the products of four bytes. */
template <class RillByte, class RillT> RILL_NAME_ RillT rill_dot_bytes_(RillT x, RillT y, RillT z) {
  unsigned sum = static_cast<unsigned>(z);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned>(static_cast<RillByte>(x >> i) * static_cast<RillByte>(y >> i));
  return static_cast<RillT>(sum);
}
template <int = 0> RILL_NAME_ int __dp4a(int x, int y, int z) { return rill_dot_bytes_<signed char>(x, y, z); }
template <int = 0> RILL_NAME_ unsigned __dp4a(unsigned x, unsigned y, unsigned z) {
  return rill_dot_bytes_<unsigned char>(x, y, z);
}
#define __trap __builtin_trap

#endif
