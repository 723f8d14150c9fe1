/* rill/device/cache_hints.h: CUDA's loads and stores with cache hints, as plain loads and stores. Included by
 * rill/device/on_host.h and rill/device/on_hip.h. */
#ifndef RILL_DEVICE_CACHE_HINTS_H
#define RILL_DEVICE_CACHE_HINTS_H

#define RILL_LOAD_(NAME) \
  template <class T> static __device__ __forceinline__ T NAME(const T *p) { return *p; }
#define RILL_STORE_(NAME) \
  template <class T> static __device__ __forceinline__ void NAME(T *p, T v) { *p = v; }
#if !defined(__HIP__) || defined(RILL_HIP_FREESTANDING) /* HIP has this function */
RILL_LOAD_(__ldg)
#endif
RILL_LOAD_(__ldca)
RILL_LOAD_(__ldcg)
RILL_LOAD_(__ldcs)
RILL_LOAD_(__ldlu)
RILL_STORE_(__stwb)
RILL_STORE_(__stcg)
RILL_STORE_(__stcs)
RILL_STORE_(__stwt)
#undef RILL_LOAD_
#undef RILL_STORE_
template <class T> static __device__ __forceinline__ T __ldcv(const T *p) { return *const_cast<const volatile T *>(p); }

#endif
