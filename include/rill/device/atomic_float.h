/* rill/device/atomic_float.h: atomic minimum and maximum of float and double, built on atomicCAS. Included by
 * rill/device/atomic.h and rill/device/on_cuda.h. */
#ifndef RILL_DEVICE_ATOMIC_FLOAT_H
#define RILL_DEVICE_ATOMIC_FLOAT_H

template <size_t Bytes> struct rill_word_;
template <> struct rill_word_<4> { typedef unsigned __attribute__((__may_alias__)) type; };
template <> struct rill_word_<8> { typedef unsigned long long __attribute__((__may_alias__)) type; };

/** Replaces *p by v if `goes_first(v, *p)` or if *p is a NaN. Returns the old value. */
template <class T, class Order>
RILL_UNCHECKED_ static __device__ __forceinline__ T rill_atomic_order_(T *p, T v, Order goes_first) {
  using word = typename rill_word_<sizeof(T)>::type;
  word *const at = reinterpret_cast<word *>(p);
  word seen = *const_cast<volatile word *>(at), mine;
  memcpy(&mine, &v, sizeof mine);
  for (;;) {
    T old;
    memcpy(&old, &seen, sizeof old);
    if (!goes_first(v, old) && old == old) return old;
    RILL_UPDATE_BEGINS_(at, sizeof(word));
    const word found = atomicCAS(at, seen, mine);
    RILL_UPDATE_ENDS_();
    if (found == seen) return old;
    seen = found;
  }
}

/** rill_atomic_min and rill_atomic_max replace *p by the smaller or the larger of *p and v, for float and double. If
 *  one of the two is a NaN, the other is stored. They return the old value, with relaxed order and device scope. */
template <class T>
static __device__ __forceinline__ RILL_FOR_(rill_is_floating) rill_atomic_min(T *p, rill_same_type<T> v) {
  return rill_atomic_order_(p, v, [](T a, T b) { return a < b; });
}
template <class T>
static __device__ __forceinline__ RILL_FOR_(rill_is_floating) rill_atomic_max(T *p, rill_same_type<T> v) {
  return rill_atomic_order_(p, v, [](T a, T b) { return a > b; });
}

#endif
