/* rill/device/hip_freestanding.h: the definitions that the HIP headers would provide, for `clang -x hip -nogpulib
 * -nogpuinc`. Included by rill/device/on_hip.h.
 *
 * Everything here is a compiler builtin that is compiled to instructions and needs no library. Functions that need a
 * library (sinf, expf, powf and the like) are in rill/device/clc_math.h if libclc is installed; otherwise only hipcc
 * has them.
 */
#ifndef RILL_DEVICE_HIP_FREESTANDING_H
#define RILL_DEVICE_HIP_FREESTANDING_H

/* __noinline__ is a keyword of clang. */
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
/* clang's own launch_bounds has no effect on AMD's code generator. */
#define RILL_BOUND_1_(THREADS) __attribute__((amdgpu_flat_work_group_size(1, THREADS)))
#define RILL_BOUND_2_(THREADS, WAVES) RILL_BOUND_1_(THREADS) __attribute__((amdgpu_waves_per_eu(WAVES)))
#define RILL_BOUND_(A, B, NAME, ...) NAME
#define __launch_bounds__(...) RILL_BOUND_(__VA_ARGS__, RILL_BOUND_2_, RILL_BOUND_1_, )(__VA_ARGS__)
#define __align__(N) __attribute__((aligned(N)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ constexpr operator uint3() const { return { x, y, z }; }
};

static __device__ __forceinline__ uint3 rill_thread_idx() {
  return { __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z() };
}
static __device__ __forceinline__ uint3 rill_block_idx() {
  return { __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z() };
}
static __device__ __forceinline__ dim3 rill_block_dim() {
  return { __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
           __builtin_amdgcn_workgroup_size_z() };
}
/* The hardware reports threads, not blocks. Launches consist of whole blocks. */
static __device__ __forceinline__ dim3 rill_grid_dim() {
  return { __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
           __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
           __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z() };
}
#define threadIdx (rill_thread_idx())
#define blockIdx (rill_block_idx())
#define blockDim (rill_block_dim())
#define gridDim (rill_grid_dim())

static __device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ __forceinline__ void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

static __device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/* Returns the number of threads of the block whose p is not 0. The first barrier waits for threads that still read
 * the last count, the second for the reset to 0, the third for the sum. */
static __device__ inline int __syncthreads_count(int p) {
  static __shared__ unsigned count;
  __syncthreads();
  __hip_atomic_store(&count, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads();
  const unsigned long long all = __builtin_amdgcn_uicmp(1u, 0u, 33), said = __builtin_amdgcn_uicmp(p != 0, 0u, 33);
  const unsigned lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  if (lane == static_cast<unsigned>(__builtin_ctzll(all))) {
    __hip_atomic_fetch_add(&count, static_cast<unsigned>(__builtin_popcountll(said)), __ATOMIC_RELAXED,
                           __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  __syncthreads();
  return static_cast<int>(__hip_atomic_load(&count, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP));
}
static __device__ __forceinline__ int __syncthreads_and(int p) { return __syncthreads_count(p == 0) == 0; }
static __device__ __forceinline__ int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }

/* Called by assert of <assert.h>. The text cannot be printed. */
static __device__ __forceinline__ void __assert_fail(const char *, const char *, unsigned, const char *) {
  __builtin_trap();
}
template <class... T> static __device__ int printf(const char *, T...) {
  static_assert(sizeof...(T) == ~size_t{ 0 },
                "printf in a kernel needs hipcc: clang without HIP's device libraries cannot print");
  return 0;
}

static __device__ __forceinline__ void *memcpy(void *to, const void *from, size_t size) {
  return __builtin_memcpy(to, from, size);
}
static __device__ __forceinline__ void *memset(void *to, int value, size_t size) {
  return __builtin_memset(to, value, size);
}

/* Exactly rounded functions of one or a few instructions. clang lets a device function overload the host function of
 * the same name. */
#define RILL_MATH_1_(NAME)                                                                    \
  static __device__ __forceinline__ float NAME##f(float x) { return __builtin_##NAME##f(x); } \
  static __device__ __forceinline__ double NAME(double x) { return __builtin_##NAME(x); }
#define RILL_MATH_2_(NAME)                                                                                \
  static __device__ __forceinline__ float NAME##f(float x, float y) { return __builtin_##NAME##f(x, y); } \
  static __device__ __forceinline__ double NAME(double x, double y) { return __builtin_##NAME(x, y); }
RILL_MATH_1_(sqrt)
RILL_MATH_1_(fabs)
RILL_MATH_1_(floor)
RILL_MATH_1_(ceil)
RILL_MATH_1_(trunc)
RILL_MATH_1_(rint)
RILL_MATH_2_(fmin)
RILL_MATH_2_(fmax)
RILL_MATH_2_(copysign)
#undef RILL_MATH_1_
#undef RILL_MATH_2_
static __device__ __forceinline__ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ __forceinline__ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static __device__ __forceinline__ int abs(int x) { return __builtin_abs(x); }
static __device__ __forceinline__ float nanf(const char *) { return __builtin_nanf(""); } /* ignores the tag */
static __device__ __forceinline__ double nan(const char *) { return __builtin_nan(""); }

#endif
