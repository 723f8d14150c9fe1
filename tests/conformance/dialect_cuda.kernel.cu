/* Kernels as CUDA programs have them: rill/device/cuda_names.h, and __global__ without RILL_KERNEL. */
#include <rill/device/cuda_names.h>
#include <rill/device/kernel.h>

namespace cg = cooperative_groups;

struct cuda_line {
  float slope, offset;
  int count;
  __host__ __device__ float at(float x) const { return slope * x + offset; }
};

/* ---- forms ---- */

__global__ void __launch_bounds__(256, 2)
    cuda_plain(const __grid_constant__ cuda_line line, const int n, float *const y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = line.at(static_cast<float>(i)) + static_cast<float>(line.count);
}

template <class T, int SHIFT> __global__ void cuda_rotate(int n, const T *__restrict__ x, T *__restrict__ y) {
  __shared__ T tile[64];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  tile[threadIdx.x] = i < n ? x[i] : T(0);
  __syncthreads();
  if (i < n) y[i] = tile[(threadIdx.x + SHIFT) % blockDim.x];
}
RILL_KERNEL_INSTANCE(cuda_rotate_float, cuda_rotate<float, 1>);
RILL_KERNEL_INSTANCE(cuda_rotate_int, cuda_rotate<int, 5>);
/* Others of that name, for which only a pointer's type says which is meant. */
template <class T, int SHIFT> __global__ void cuda_rotate(T *y) {
  y[threadIdx.x] = T((threadIdx.x + SHIFT) % blockDim.x);
}
__global__ void cuda_rotate(double *y, int shift) { y[threadIdx.x] = (threadIdx.x + shift) % blockDim.x; }
__global__ void cuda_rotate(float *y, int shift) {
  y[threadIdx.x] = static_cast<float>((threadIdx.x + shift) % blockDim.x);
}
/* Specializations are instances: only one that has a name is launched. */
template <> __global__ void cuda_rotate<long long, 0>(int n, const long long *x, long long *y) {
  __shared__ long long first;
  if (threadIdx.x == 0) first = x[0];
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < n) y[threadIdx.x] = first;
}
template <> __global__ void cuda_rotate<int, 7>(int *y) {
  y[threadIdx.x] = static_cast<int>((threadIdx.x + 7) % blockDim.x);
}
RILL_KERNEL_INSTANCE(cuda_rotate_ranks, static_cast<void (*)(int *)>(cuda_rotate<int, 7>));
RILL_KERNEL_INSTANCE(cuda_rotate_by, static_cast<void (*)(double *, int)>(cuda_rotate));
RILL_KERNEL_INSTANCE(cuda_rotate_float_by, static_cast<void (*)(float *, int)>(cuda_rotate));

namespace inner {
__global__ void cuda_named(unsigned *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = blockDim.x; }
} // namespace inner

#if RILL_ON_CPU && !defined(__clang__)
RILL_KERNEL(cuda_dynamic, unsigned *y) {
  RILL_DYNAMIC_SHARED(unsigned, tile);
#else
extern __shared__ unsigned tile[];
extern "C" __global__ void cuda_dynamic(unsigned *y) { /* as RILL_KERNEL names it */
#endif
  tile[threadIdx.x] = threadIdx.x * threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

/* ---- warps: what each thread sees, ROUNDS of them ---- */

__global__ void cuda_warps(unsigned *out) {
  const unsigned t = threadIdx.x, lane = t & 31, v = t * 2654435761u;
  unsigned *const o = out + 16 * t;
  o[0] = __shfl_sync(~0u, v, static_cast<int>(lane * 7));
  o[1] = __shfl_sync(~0u, v, 11, 8);
  o[2] = __shfl_up_sync(~0u, v, 3);
  o[3] = __shfl_down_sync(~0u, v, 5, 16);
  o[4] = __shfl_xor_sync(~0u, v, 9);
  o[5] = __shfl_xor_sync(~0u, v, 9, 8);
  o[6] = __ballot_sync(~0u, v & 1);
  o[7] = static_cast<unsigned>(__any_sync(~0u, v == 0) + 2 * __all_sync(~0u, lane < 32));
  __syncwarp();
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  o[8] = tile.shfl(v, 3) + tile.thread_rank();
  o[9] = tile.ballot(v & 2);
  tile.sync();
  o[10] = cg::reduce(tile, v, cg::plus<unsigned>());
  o[11] = block.thread_rank() + block.size();
  block.sync();
  double sum = static_cast<double>(v);
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, static_cast<unsigned>(by));
  o[12] = static_cast<unsigned>(__shfl_sync(~0u, sum, 0) / 64.0);
  o[13] = static_cast<unsigned>(__popc(__activemask()));
}

/* Lanes that go their own ways: each call is of those that its mask names. */
__global__ void cuda_masks(unsigned *out) {
  const unsigned t = threadIdx.x;
  unsigned v = t;
#if !RILL_ON_CPU || defined(__clang__)
  if (t % 32 < 16) {
    for (int by = 8; by > 0; by /= 2) v += __shfl_xor_sync(0xffffu, v, by, 16);
    v += 1000 * __ballot_sync(0xffffu, t & 1);
  } else {
    v = 7 + __shfl_down_sync(0xffff0000u, v, 1);
  }
#endif
  out[t] = v;
}

/* Lanes that come together are a group. */
__global__ void cuda_coalesced(unsigned *out) {
  const unsigned t = threadIdx.x;
  unsigned *const o = out + 8 * t;
#if __CUDA_ARCH__ >= 700 && (!RILL_ON_CPU || defined(__clang__))
  if (t % 3 == 1) {
    const cg::coalesced_group group = cg::coalesced_threads();
    const unsigned rank = group.thread_rank();
    o[0] = group.size();
    o[1] = rank;
    o[2] = group.shfl(t, 2);
    o[3] = group.shfl_down(t, 1) + 1000 * group.shfl_up(t, 2);
    o[4] = group.ballot(static_cast<int>(rank & 1)) + static_cast<unsigned>(group.any(rank == 3) + group.all(t > 0));
    o[5] = cg::reduce(group, t, cg::plus<unsigned>());
    group.sync();
  }
  /* Three groups of the warp's lanes, each by itself. */
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  const cg::coalesced_group same = cg::labeled_partition(warp, t * t % 3);
  const cg::coalesced_group even = cg::binary_partition(warp, t % 2 == 0);
  o[6] = same.size() + 100 * same.shfl(t, 0);
  o[7] = cg::reduce(same, t, cg::greater<unsigned>()) + 100 * even.shfl(t, 1);
#else
  o[0] = 0;
#endif
}

/* The sum of the group's threads' numbers, in its first thread, by way of memory that is the group's. */
static __device__ unsigned cuda_sum_of(cooperative_groups::thread_group group, unsigned *shared) {
  const unsigned rank = group.thread_rank();
  unsigned sum = threadIdx.x;
  for (unsigned half = group.size() / 2; half > 0; half /= 2) {
    shared[rank] = sum;
    group.sync();
    if (rank < half) sum += shared[rank + half];
    group.sync();
  }
  return sum;
}

__global__ void cuda_any_group(unsigned lanes, unsigned *out) {
  namespace cg = cooperative_groups;
  __shared__ unsigned shared[64];
  const unsigned t = threadIdx.x;
  const cg::thread_group tile = cg::tiled_partition(cg::this_thread_block(), lanes),
                         pair = cg::tiled_partition(tile, 2);
  out[4 * t] = cuda_sum_of(cg::this_thread_block(), shared);
  out[4 * t + 1] = cuda_sum_of(tile, &shared[t - tile.thread_rank()]);
  out[4 * t + 2] = cuda_sum_of(pair, &shared[t - pair.thread_rank()]);
  out[4 * t + 3] = cuda_sum_of(cg::tiled_partition<16>(cg::this_thread_block()), &shared[t / 16 * 16]);
}

__global__ void cuda_matches(unsigned *out) {
  const unsigned t = threadIdx.x;
  unsigned *const o = out + 4 * t;
  int all = 0;
  o[0] = __match_any_sync(~0u, t % 5);
  o[1] = __match_any_sync(~0u, t < 40 ? 1.5 : 2.5);
  o[2] = __match_all_sync(~0u, t / 32, &all) ^ static_cast<unsigned>(all);
  o[3] = __match_all_sync(~0u, t, &all) + static_cast<unsigned>(all);
}

/* ---- numbers ---- */

/* Of each pair of words, on its halves and on its bytes; cuda_simd_of in dialect_cuda.c has the same order. */
#define BOTH(NAME) o[n++] = NAME##2(x, y), o[n++] = NAME##4(x, y)
#define BOTH_OF_ONE(NAME) o[n++] = NAME##2(x), o[n++] = NAME##4(x)
__global__ void cuda_simd(int count, const unsigned *in, unsigned *out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const unsigned x = in[i], y = in[(i + 1) % count];
  unsigned *const o = out + 52 * i;
  int n = 0;
  BOTH(__vadd);
  BOTH(__vsub);
  BOTH(__vaddss);
  BOTH(__vaddus);
  BOTH(__vsubss);
  BOTH(__vsubus);
  BOTH(__vabsdiffs);
  BOTH(__vabsdiffu);
  BOTH(__vavgu);
  BOTH(__vhaddu);
  BOTH(__vmaxs);
  BOTH(__vmaxu);
  BOTH(__vmins);
  BOTH(__vminu);
  BOTH(__vcmpeq);
  BOTH(__vcmpne);
  BOTH(__vcmpges);
  BOTH(__vcmpgtu);
  BOTH(__vsetles);
  BOTH(__vsetltu);
  BOTH(__vsads);
  BOTH(__vsadu);
  BOTH_OF_ONE(__vabs);
  BOTH_OF_ONE(__vabsss);
  BOTH_OF_ONE(__vneg);
  BOTH_OF_ONE(__vnegss);
}

__global__ void cuda_bits(int count, const unsigned *in, unsigned *out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const unsigned x = in[i], y = in[(i + 1) % count];
  const unsigned long long wide = static_cast<unsigned long long>(x) << 32 | y;
  unsigned *const o = out + 24 * i;
  o[0] = static_cast<unsigned>(__popc(x) + 100 * __popcll(wide));
  o[1] = static_cast<unsigned>(__clz(static_cast<int>(x)) + 100 * __clzll(static_cast<long long>(wide)));
  o[2] = static_cast<unsigned>(__ffs(static_cast<int>(x)) + 100 * __ffsll(static_cast<long long>(wide)));
  o[3] = __brev(x);
  o[4] = static_cast<unsigned>(__brevll(wide) >> 32);
  o[5] = static_cast<unsigned>(__mul24(static_cast<int>(x & 0xfff), static_cast<int>(y & 0xfff)));
  o[6] = __umulhi(x, y);
  o[7] = static_cast<unsigned>(__mulhi(static_cast<int>(x), static_cast<int>(y)));
  o[8] = static_cast<unsigned>(__umul64hi(wide, ~wide));
  const float f = __uint_as_float((x & 0x807fffffu) | 0x42000000u);
  o[9] = __float_as_uint(f);
  o[10] = static_cast<unsigned>(__float2int_rn(f));
  o[11] = static_cast<unsigned>(__float2int_rz(f));
  o[12] = static_cast<unsigned>(__float2int_rd(f));
  o[13] = static_cast<unsigned>(__float2int_ru(f));
  o[14] = __float_as_uint(__saturatef(f * 0.03f));
  o[15] = __float_as_uint(__fmaf_rn(f, f, 1.0f));
  o[16] = __float_as_uint(__fadd_rn(__fmul_rn(f, f), 1.0f));
  o[17] = __ldg(in + i) + __ldcs(in + i);
  __stcs(out + 24 * i + 18, x);
  const int2 pair = make_int2(static_cast<int>(x), static_cast<int>(y));
  o[19] = static_cast<unsigned>(pair.x ^ pair.y) + static_cast<unsigned>(sizeof(float4) + alignof(float4));
  const half h = __float2half(f);
  o[20] = __float_as_uint(__half2float(h));
  const half2 both = __hadd2(__floats2half2_rn(f, 1.0f), __float2half2_rn(2.0f));
  o[21] = __float_as_uint(__low2float(both)) ^ __float_as_uint(__high2float(both));
}

/* HIP's own headers round these to the nearest. */
__global__ void cuda_directed(int count, const long long *in, double *out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const long long x = in[i];
  double *const o = out + 18 * i;
#if !defined(__HIP__) || defined(RILL_HIP_FREESTANDING)
  const unsigned long long u = static_cast<unsigned long long>(x);
  const int n = static_cast<int>(x);
  const unsigned m = static_cast<unsigned>(x);
  o[0] = __int2float_rz(n), o[1] = __int2float_ru(n), o[2] = __int2float_rd(n);
  o[3] = __uint2float_rz(m), o[4] = __uint2float_ru(m), o[5] = __uint2float_rd(m);
  o[6] = __ll2float_rz(x), o[7] = __ll2float_ru(x), o[8] = __ll2float_rd(x);
  o[9] = __ull2float_rz(u), o[10] = __ull2float_ru(u), o[11] = __ull2float_rd(u);
  o[12] = __ll2double_rz(x), o[13] = __ll2double_ru(x), o[14] = __ll2double_rd(x);
  o[15] = __ull2double_rz(u), o[16] = __ull2double_ru(u), o[17] = __ull2double_rd(u);
#else
  o[0] = __longlong_as_double(x);
#endif
}

/* What numbers outside a type become; the last one tells who compiled: 0 makes no promise, 1 is clang for the cpu, 2 is
 * for NVIDIA, 3 for AMD. */
__global__ void cuda_outside(int count, const double *in, long long *out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const double d = in[i];
  const float f = static_cast<float>(d);
  long long *const o = out + 9 * i;
  o[0] = static_cast<int>(f), o[1] = static_cast<unsigned>(f), o[2] = static_cast<int>(d),
  o[3] = static_cast<unsigned>(d);
  o[4] = static_cast<long long>(f), o[5] = static_cast<long long>(static_cast<unsigned long long>(f));
  o[6] = static_cast<long long>(d), o[7] = static_cast<long long>(static_cast<unsigned long long>(d));
#if RILL_ON_CPU && defined(__clang__)
  o[8] = 1;
#elif RILL_ON_CPU
  o[8] = 0;
#elif defined(__HIP__)
  o[8] = 3;
#else
  o[8] = 2;
#endif
}

__global__ void cuda_pairs(const float *x, float *out) {
  half2 a = __floats2half2_rn(x[0], x[1]);
  const half2 b = -a;
  a += __float2half2_rn(1.0f);
  a *= b;
  out[0] = __low2float(a), out[1] = __high2float(a);
  const half2 greater = __hgt2(a, b);
  out[2] = __low2float(greater), out[3] = __high2float(greater);
  out[4] = __hbgt2(a, b) ? 1.0f : 0.0f;
  out[5] = __low2float(__h2div(__float2half2_rn(1.0f), b)), out[6] = __high2float(__hneg2(b));
}

/* out[3 i] to out[3 i + 2]: x[i] as a half, rounded towards zero, upwards, downwards. */
__global__ void cuda_rounded_halves(const float *x, unsigned short *out) {
  const unsigned i = threadIdx.x;
  out[3 * i] = __half_as_ushort(__float2half_rz(x[i]));
  out[3 * i + 1] = __half_as_ushort(__float2half_ru(x[i]));
  out[3 * i + 2] = __half_as_ushort(__float2half_rd(x[i]));
}

/* out[4 i] to out[4 i + 3]: a * b + c with one rounding, the greater and the lesser of a and b, and how they compare.
 */
__global__ void cuda_fused_halves(const unsigned short *in, unsigned short *out) {
  const unsigned i = threadIdx.x;
  const half a = __ushort_as_half(in[3 * i]), b = __ushort_as_half(in[3 * i + 1]), c = __ushort_as_half(in[3 * i + 2]);
  out[4 * i] = __half_as_ushort(__hfma(a, b, c));
  out[4 * i + 1] = __half_as_ushort(__hmax(a, b));
  out[4 * i + 2] = __half_as_ushort(__hmin(a, b));
  const int compared = (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a >= b) + 32 * (a > b);
  out[4 * i + 3] = static_cast<unsigned short>(compared);
}

/* Many threads add to the same halves, at even and odd places, and to both of a pair; before[i]: what was there. */
__global__ void cuda_half_sums(unsigned short *sums, unsigned *pairs, unsigned short *before) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(reinterpret_cast<half *>(sums) + i % 3, __float2half(1.0f));
  atomicAdd(reinterpret_cast<half2 *>(pairs) + i % 2, __floats2half2_rn(1.0f, -2.0f));
  before[i] = __half_as_ushort(atomicAdd(reinterpret_cast<half *>(sums) + 3, __float2half(1.0f)));
}

__global__ void cuda_dots(int *out) {
  out[0] = __dp4a(make_char4(1, -2, 3, -128), make_char4(127, 5, -6, -128), -7);
  out[1] = static_cast<int>(__dp4a(make_uchar4(255, 1, 2, 3), make_uchar4(255, 4, 5, 6), 9u));
}
