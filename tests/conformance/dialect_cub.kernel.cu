/* CUB's names for blocks and warps: rill/device/cuda_cub.h, with nvcc NVIDIA's own. */
#include <cub/block/block_load.cuh>
#include <cub/cub.cuh>
#include <rill/device/cuda_names.h>

/* x -> a * x + b, one function after the other: not commutative. */
struct affine {
  unsigned a, b;
  unsigned char also[12]; /* is the right one's */
};
struct after {
  __device__ affine operator()(const affine &f, const affine &g) const {
    affine both = g;
    both.a = f.a * g.a;
    both.b = g.a * f.b + g.b;
    return both;
  }
};
template <class T> struct plus {
  __device__ T operator()(const T &a, const T &b) const { return a + b; }
};
template <class T> struct greatest {
  __device__ T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};

/* The prefix of a block that comes after others, of which thread 0's is used. */
template <class T, class OP> struct running {
  T so_far;
  __device__ T operator()(T aggregate) {
    const T old = so_far;
    so_far = OP()(so_far, aggregate);
    return old;
  }
};

/* y has 12 sections of the block's items. */
template <class T, class OP, int X, int Y, int ITEMS, bool NUMBERS>
__global__ void block(int valid, const T *initial, const T *x, T *y) {
  constexpr int threads = X * Y, count = threads * ITEMS;
  using reduce = cub::BlockReduce<T, X, cub::BLOCK_REDUCE_WARP_REDUCTIONS, Y>;
  using scan = cub::BlockScan<T, X, cub::BLOCK_SCAN_WARP_SCANS, Y>;
  using load = cub::BlockLoad<T, X, ITEMS, cub::BLOCK_LOAD_TRANSPOSE, Y>;
  using striped = cub::BlockLoad<T, X, ITEMS, cub::BLOCK_LOAD_STRIPED, Y>;
  using store = cub::BlockStore<T, X, ITEMS, cub::BLOCK_STORE_DIRECT, Y>;
  using transposed = cub::BlockStore<T, X, ITEMS, cub::BLOCK_STORE_TRANSPOSE, Y>;
  using store_striped = cub::BlockStore<T, X, ITEMS, cub::BLOCK_STORE_STRIPED, Y>;
  __shared__ union {
    typename reduce::TempStorage for_reduce;
    typename scan::TempStorage for_scan;
    typename load::TempStorage for_load;
    typename striped::TempStorage for_striped;
    typename store::TempStorage for_store;
  } temp;
  const int t = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  T in[ITEMS], out[ITEMS], one = *initial, aggregate = *initial;
  load(temp.for_load).Load(x, in);
  __syncthreads();

  one = reduce(temp.for_reduce).Reduce(in[0], OP());
  if (t == 0) y[0] = one;
  __syncthreads();
  one = reduce(temp.for_reduce).Reduce(in, OP());
  if (t == 0) y[1] = one;
  __syncthreads();
  one = reduce(temp.for_reduce).Reduce(in[0], OP(), valid);
  if (t == 0) y[2] = one;
  __syncthreads();

  y += count;
  scan(temp.for_scan).InclusiveScan(in[0], one, OP(), aggregate);
  y[t] = one;
  if (t == threads - 1) y[threads] = aggregate;
  __syncthreads();
  y += count;
  scan(temp.for_scan).ExclusiveScan(in[0], one, *initial, OP());
  y[t] = one;
  __syncthreads();
  y += count;
  scan(temp.for_scan).InclusiveScan(in, out, OP());
  store(temp.for_store).Store(y, out);
  __syncthreads();
  y += count;
  scan(temp.for_scan).ExclusiveScan(in, out, *initial, OP(), aggregate);
  store(temp.for_store).Store(y, out);
  __syncthreads();
  y += count;
  y[t] = aggregate;
  running<T, OP> prefix{ *initial };
  for (int i = 0; i < 2; i++) {
    scan(temp.for_scan).InclusiveScan(in, out, OP(), prefix);
    __syncthreads();
  }
  y += count;
  store(temp.for_store).Store(y, out);
  __syncthreads();
  y += count;
  scan(temp.for_scan).ExclusiveScan(in[0], one, OP());
  y[t] = t == 0 ? *initial : one;
  __syncthreads();

  y += count;
  striped(temp.for_striped).Load(x, out);
  __syncthreads();
  store(temp.for_store).Store(y, out);
  __syncthreads();
  y += count;
  for (int i = 0; i < ITEMS; i++) y[ITEMS * t + i] = *initial;
  load(temp.for_load).Load(x, out, valid, x[0]);
  __syncthreads();
  __shared__ typename transposed::TempStorage room;
  transposed(room).Store(y, out, count - 2);
  y += count;
  __shared__ typename store_striped::TempStorage other_room;
  store_striped(other_room).Store(y, in);
  __syncthreads();

  y += count;
  if constexpr (NUMBERS) {
    one = reduce(temp.for_reduce).Sum(in);
    __syncthreads();
    scan(temp.for_scan).ExclusiveSum(in, in, aggregate);
    store(temp.for_store).Store(y, in);
    if (t == 0) y[0] = one;
    if (t == threads - 1) y[1] = aggregate;
  }
}
RILL_KERNEL_INSTANCE(cub_block_int, block<int, greatest<int>, 256, 1, 4, true>);
RILL_KERNEL_INSTANCE(cub_block_long, block<unsigned long long, plus<unsigned long long>, 50, 2, 3, true>);
#ifndef FEW_INSTANCES
RILL_KERNEL_INSTANCE(cub_block_float, block<float, plus<float>, 50, 2, 3, true>);
RILL_KERNEL_INSTANCE(cub_block_double, block<double, greatest<double>, 32, 1, 3, true>);
#endif
RILL_KERNEL_INSTANCE(cub_block_affine, block<affine, after, 50, 2, 3, false>);

/* y has 8 sections of a block of 96 threads. */
template <class T, class OP, int LANES> __global__ void warp(int valid, const T *initial, const T *x, T *y) {
  using reduce = cub::WarpReduce<T, LANES>;
  using scan = cub::WarpScan<T, LANES>;
  constexpr int threads = 96;
  __shared__ typename reduce::TempStorage reduces[threads / LANES];
  __shared__ typename scan::TempStorage scans[threads / LANES];
  const int t = static_cast<int>(threadIdx.x), warp = t / LANES;
  T one = *initial, other = *initial, aggregate = *initial;
  y += t;
  one = reduce(reduces[warp]).Reduce(x[t], OP());
  y[0 * threads] = t % LANES == 0 ? one : *initial;
  __syncthreads();
  one = reduce(reduces[warp]).Reduce(x[t], OP(), valid);
  y[1 * threads] = t % LANES == 0 ? one : *initial;
  __syncthreads();
  scan(scans[warp]).InclusiveScan(x[t], one, OP(), aggregate);
  y[2 * threads] = one;
  y[3 * threads] = aggregate;
  __syncthreads();
  scan(scans[warp]).ExclusiveScan(x[t], one, *initial, OP());
  y[4 * threads] = one;
  __syncthreads();
  scan(scans[warp]).Scan(x[t], one, other, OP());
  y[5 * threads] = one;
  y[6 * threads] = t % LANES == 0 ? *initial : other;
  __syncthreads();
  y[7 * threads] = scan(scans[warp]).Broadcast(x[t], LANES / 2);
}
RILL_KERNEL_INSTANCE(cub_warp_int, warp<int, greatest<int>, 32>);
RILL_KERNEL_INSTANCE(cub_warp_long, warp<unsigned long long, plus<unsigned long long>, 2>);
#ifndef FEW_INSTANCES
RILL_KERNEL_INSTANCE(cub_warp_float, warp<float, plus<float>, 16>);
RILL_KERNEL_INSTANCE(cub_warp_double, warp<double, greatest<double>, 32>);
#endif
RILL_KERNEL_INSTANCE(cub_warp_affine, warp<affine, after, 8>);

/* Half of the threads of a warp make the call, each in its own logical warp; and CUB's own operations, which newer
 * versions have no more. */
__global__ void cub_operations(const int *x, int *y) {
  __shared__ cub::WarpReduce<int, 16>::TempStorage temp[4];
  const int t = static_cast<int>(threadIdx.x);
  if (t % 32 < 16) {
    const int sum = cub::WarpReduce<int, 16>(temp[t / 16]).Sum(x[t]);
    if (t % 16 == 0) y[t / 32] = sum;
  }
#ifndef __NVCC__
  using best = cub::KeyValuePair<int, int>;
  using reduce = cub::BlockReduce<best, 64, cub::BLOCK_REDUCE_RAKING>;
  __shared__ reduce::TempStorage room;
  const best highest = reduce(room).Reduce(best{ t, x[t] % 7 }, cub::ArgMax());
  __syncthreads();
  const best lowest = reduce(room).Reduce(best{ t, x[t] % 7 }, cub::ArgMin());
  __syncthreads();
  __shared__ cub::BlockReduce<int, 64>::TempStorage numbers;
  const int most = cub::BlockReduce<int, 64>(numbers).Reduce(x[t], cub::Max());
  __syncthreads();
  const int least = cub::BlockReduce<int, 64>(numbers).Reduce(x[t], cub::Min());
  if (t == 0) y[2] = highest.key, y[3] = lowest.key, y[4] = most, y[5] = least;
#endif
}
