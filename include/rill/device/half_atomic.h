/* rill/device/half_atomic.h: atomicAdd on 16-bit numbers and pairs of them, built on atomicCAS of the word that holds
 * them. Included by rill/device/cuda_half.h and hip_half.h. */
#ifndef RILL_DEVICE_HALF_ATOMIC_H
#define RILL_DEVICE_HALF_ATOMIC_H

template <class T> RILL_UNCHECKED_ static __device__ __forceinline__ T rill_half_atomic_add_(T *p, T v) {
  typedef unsigned __attribute__((__may_alias__)) word;
  const size_t offset = reinterpret_cast<size_t>(p) % sizeof(word);
  word *const at = reinterpret_cast<word *>(reinterpret_cast<char *>(p) - offset);
  unsigned seen = *const_cast<volatile word *>(at);
  for (;;) {
    T old;
    memcpy(&old, reinterpret_cast<char *>(&seen) + offset, sizeof old);
    const T sum = old + v;
    unsigned mine = seen;
    memcpy(reinterpret_cast<char *>(&mine) + offset, &sum, sizeof sum);
    RILL_UPDATE_BEGINS_(p, sizeof(T));
    const unsigned found = atomicCAS(at, seen, mine);
    RILL_UPDATE_ENDS_();
    if (found == seen) return old;
    seen = found;
  }
}

#endif
