/* rill/device/cuda_simd.h: CUDA's functions on the two halves or the four bytes of a word. Included by
 * rill/device/cuda_names.h. __vavgs2, __vavgs4, and the _relu and three-way functions are missing. */
#ifndef RILL_DEVICE_CUDA_SIMD_H
#define RILL_DEVICE_CUDA_SIMD_H

/* In RESULT, a and b are the parts of x and y, and low and high are the limits of their type. */
#define RILL_PARTS_(NAME, BITS, PART, RESULT)                                                   \
  RILL_NAME_ unsigned NAME(unsigned x, unsigned y) {                                            \
    const int low = static_cast<PART>(-1) < 0 ? -(1 << (BITS - 1)) : 0;                         \
    const int high = low + (1 << BITS) - 1;                                                     \
    unsigned result = 0;                                                                        \
    for (int at = 0; at < 32; at += BITS) {                                                     \
      const int a = static_cast<PART>(x >> at), b = static_cast<PART>(y >> at);                 \
      result |= (static_cast<unsigned>(RESULT) & static_cast<unsigned>((1 << BITS) - 1)) << at; \
    }                                                                                           \
    static_cast<void>(high);                                                                    \
    return result;                                                                              \
  }
#define RILL_SIMD_S_(NAME, RESULT)        \
  RILL_PARTS_(NAME##2, 16, short, RESULT) \
  RILL_PARTS_(NAME##4, 8, signed char, RESULT)
#define RILL_SIMD_U_(NAME, RESULT)                 \
  RILL_PARTS_(NAME##2, 16, unsigned short, RESULT) \
  RILL_PARTS_(NAME##4, 8, unsigned char, RESULT)
#define RILL_SIMD_COMPARE_(KIND, NAME, OPERATOR) \
  RILL_SIMD_##KIND##_(__vcmp##NAME, a OPERATOR b ? -1 : 0) RILL_SIMD_##KIND##_(__vset##NAME, a OPERATOR b ? 1 : 0)

RILL_NAME_ int rill_within_(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

RILL_SIMD_U_(__vadd, a + b)
RILL_SIMD_U_(__vsub, a - b)
RILL_SIMD_S_(__vaddss, rill_within_(a + b, low, high))
RILL_SIMD_U_(__vaddus, rill_within_(a + b, low, high))
RILL_SIMD_S_(__vsubss, rill_within_(a - b, low, high))
RILL_SIMD_U_(__vsubus, rill_within_(a - b, low, high))
RILL_SIMD_S_(__vabsdiffs, a < b ? b - a : a - b)
RILL_SIMD_U_(__vabsdiffu, a < b ? b - a : a - b)
RILL_SIMD_U_(__vavgu, (a + b + 1) >> 1)
RILL_SIMD_U_(__vhaddu, (a + b) >> 1)
RILL_SIMD_S_(__vmaxs, a < b ? b : a)
RILL_SIMD_U_(__vmaxu, a < b ? b : a)
RILL_SIMD_S_(__vmins, b < a ? b : a)
RILL_SIMD_U_(__vminu, b < a ? b : a)
RILL_SIMD_COMPARE_(U, eq, ==)
RILL_SIMD_COMPARE_(U, ne, !=)
RILL_SIMD_COMPARE_(S, ges, >=)
RILL_SIMD_COMPARE_(U, geu, >=)
RILL_SIMD_COMPARE_(S, gts, >)
RILL_SIMD_COMPARE_(U, gtu, >)
RILL_SIMD_COMPARE_(S, les, <=)
RILL_SIMD_COMPARE_(U, leu, <=)
RILL_SIMD_COMPARE_(S, lts, <)
RILL_SIMD_COMPARE_(U, ltu, <)

RILL_NAME_ unsigned __vneg2(unsigned x) { return __vsub2(0, x); }
RILL_NAME_ unsigned __vneg4(unsigned x) { return __vsub4(0, x); }
RILL_NAME_ unsigned __vnegss2(unsigned x) { return __vsubss2(0, x); }
RILL_NAME_ unsigned __vnegss4(unsigned x) { return __vsubss4(0, x); }
RILL_NAME_ unsigned __vabs2(unsigned x) { return __vabsdiffs2(x, 0); }
RILL_NAME_ unsigned __vabs4(unsigned x) { return __vabsdiffs4(x, 0); }
RILL_NAME_ unsigned __vabsss2(unsigned x) { return __vmaxs2(x, __vnegss2(x)); }
RILL_NAME_ unsigned __vabsss4(unsigned x) { return __vmaxs4(x, __vnegss4(x)); }

/* Returns the sum of the parts of a word. */
RILL_NAME_ unsigned rill_sum_of_2_(unsigned x) { return (x & 0xffff) + (x >> 16); }
RILL_NAME_ unsigned rill_sum_of_4_(unsigned x) { return rill_sum_of_2_((x & 0xff00ffu) + (x >> 8 & 0xff00ffu)); }
RILL_NAME_ unsigned __vsads2(unsigned x, unsigned y) { return rill_sum_of_2_(__vabsdiffs2(x, y)); }
RILL_NAME_ unsigned __vsads4(unsigned x, unsigned y) { return rill_sum_of_4_(__vabsdiffs4(x, y)); }
RILL_NAME_ unsigned __vsadu2(unsigned x, unsigned y) { return rill_sum_of_2_(__vabsdiffu2(x, y)); }
RILL_NAME_ unsigned __vsadu4(unsigned x, unsigned y) { return rill_sum_of_4_(__vabsdiffu4(x, y)); }

/* Adds z and the sum of the products of four bytes, for vector types. These are templates for the reason given in
 * cuda_bits.h. */
template <class RillByte, class RillBytes, class RillT>
RILL_NAME_ RillT rill_dot_vectors_(RillBytes x, RillBytes y, RillT z) {
  RillT a, b;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  return rill_dot_bytes_<RillByte>(a, b, z);
}
template <int = 0> RILL_NAME_ int __dp4a(char4 x, char4 y, int z) { return rill_dot_vectors_<signed char>(x, y, z); }
template <int = 0> RILL_NAME_ unsigned __dp4a(uchar4 x, uchar4 y, unsigned z) {
  return rill_dot_vectors_<unsigned char>(x, y, z);
}

#endif
