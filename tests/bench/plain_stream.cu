/* STREAM in plain CUDA, as one writes it by hand: what rill's kernels are measured against.
 *
 * Three forms of each: an element a thread, 16 bytes a thread, and 16 bytes a thread over and over.  n is a multiple of
 * what 16 bytes hold, and arrays are aligned. */

template <class T> struct sixteen;
template <> struct sixteen<float> { using type = float4; };
template <> struct sixteen<double> { using type = double2; };

struct copy {
  template <class T> static __device__ T of(T, T a, T) { return a; }
};
struct scale {
  template <class T> static __device__ T of(T s, T a, T) { return s * a; }
};
struct add {
  template <class T> static __device__ T of(T, T a, T b) { return a + b; }
};
struct triad {
  template <class T> static __device__ T of(T s, T a, T b) { return a + s * b; }
};

template <class F> __device__ float4 of16(float s, float4 a, float4 b) {
  return make_float4(F::of(s, a.x, b.x), F::of(s, a.y, b.y), F::of(s, a.z, b.z), F::of(s, a.w, b.w));
}
template <class F> __device__ double2 of16(double s, double2 a, double2 b) {
  return make_double2(F::of(s, a.x, b.x), F::of(s, a.y, b.y));
}

template <class F, bool BINARY, class T> __device__ void one(long long n, T s, const T *a, const T *b, T *c) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) c[i] = F::of(s, a[i], BINARY ? b[i] : a[i]);
}

template <class F, bool BINARY, class T> __device__ void wide(long long n, T s, const T *a, const T *b, T *c) {
  using V = typename sixteen<T>::type;
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i >= n / static_cast<long long>(16 / sizeof(T))) return;
  const V va = reinterpret_cast<const V *>(a)[i];
  reinterpret_cast<V *>(c)[i] = of16<F>(s, va, BINARY ? reinterpret_cast<const V *>(b)[i] : va);
}

template <class F, bool BINARY, class T> __device__ void stride(long long n, T s, const T *a, const T *b, T *c) {
  using V = typename sixteen<T>::type;
  const long long step = gridDim.x * static_cast<long long>(blockDim.x);
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
       i < n / static_cast<long long>(16 / sizeof(T)); i += step) {
    const V va = reinterpret_cast<const V *>(a)[i];
    reinterpret_cast<V *>(c)[i] = of16<F>(s, va, BINARY ? reinterpret_cast<const V *>(b)[i] : va);
  }
}

#define KERNEL(FORM, NAME, BINARY, T, SUFFIX)                                                           \
  extern "C" __global__ void FORM##_##NAME##_##SUFFIX(long long n, T s, const T *a, const T *b, T *c) { \
    FORM<NAME, BINARY>(n, s, a, b, c);                                                                  \
  }
#define FORMS(NAME, BINARY, T, SUFFIX)  \
  KERNEL(one, NAME, BINARY, T, SUFFIX)  \
  KERNEL(wide, NAME, BINARY, T, SUFFIX) \
  KERNEL(stride, NAME, BINARY, T, SUFFIX)
#define ALL(T, SUFFIX)           \
  FORMS(copy, false, T, SUFFIX)  \
  FORMS(scale, false, T, SUFFIX) \
  FORMS(add, true, T, SUFFIX)    \
  FORMS(triad, true, T, SUFFIX)
ALL(float, f32)
ALL(double, f64)

/* The dot product is added to *c: shuffles in a warp, shared memory in a block, an atomic in the grid. */
static __device__ float product(float sum, float4 a, float4 b) {
  return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
static __device__ double product(double sum, double2 a, double2 b) { return sum + a.x * b.x + a.y * b.y; }

template <class T> __device__ void dot(long long n, const T *a, const T *b, T *c) {
  using V = typename sixteen<T>::type;
  __shared__ T sums[32];
  const long long step = gridDim.x * static_cast<long long>(blockDim.x);
  T sum = 0;
#pragma unroll 4
  for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
       i < n / static_cast<long long>(16 / sizeof(T)); i += step)
    sum = product(sum, reinterpret_cast<const V *>(a)[i], reinterpret_cast<const V *>(b)[i]);
  for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(0xffffffffu, sum, k);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : T(0);
  for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(0xffffffffu, sum, k);
  if (threadIdx.x == 0) atomicAdd(c, sum);
}

extern "C" __global__ void stride_dot_f32(long long n, float, const float *a, const float *b, float *c) {
  dot(n, a, b, c);
}
extern "C" __global__ void stride_dot_f64(long long n, double, const double *a, const double *b, double *c) {
  dot(n, a, b, c);
}

/* For the time to the first kernel. */
extern "C" __global__ void set_one(float *x) { *x = 1; }
