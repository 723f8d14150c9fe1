/* barriers.kernel.cu: kernels with barriers of every shape, to be run split and thread by thread.
 *
 * All have the same parameters: n numbers in, n numbers out (and more after them that nobody should touch), blocks
 * of any shape; dynamic shared memory of 2 floats a thread.  What they compute is written so that the result depends
 * on every barrier. */
#include <rill/device/kernel.h>

#define THREADS (blockDim.x * blockDim.y * blockDim.z)
#define THREAD ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)
#define BLOCK ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x)

constexpr int LIMIT = 1024;
enum { TILE = 16 };

static __device__ int twice(int v) { return 2 * v; }

RILL_KERNEL(reduce_tree, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int i = BLOCK * THREADS + THREAD;
  const unsigned t = THREAD;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  unsigned count = THREADS;
  while (count > 1) {
    const unsigned half = (count + 1) / 2;
    if (t + half < count) s[t] += s[t + half];
    __syncthreads();
    count = half;
  }
  if (t == 0) y[BLOCK] = s[0];
}

/* Blocks of one dimension, a power of two. */
RILL_KERNEL(reduce_halves, int n, const float *x, float *y) {
  __shared__ float s[LIMIT];
  const unsigned tid = threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + tid;
  s[tid] = i < static_cast<unsigned>(n) ? x[i] : 1.0f;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half >>= 1) {
    if (tid < half) s[tid] += s[tid + half];
    __syncthreads();
  }
  if (tid == 0) y[blockIdx.x] = s[0];
}

RILL_KERNEL(reduce_neighbours, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  unsigned tid = threadIdx.x;
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  s[tid] = (i < n) ? x[i] : 0;
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    unsigned at = 2 * step * tid;
    if (at + step < blockDim.x) {
      s[at] += s[at + step];
    }
    __syncthreads();
  }
  if (tid == 0) y[blockIdx.x] = s[0];
}

RILL_KERNEL(scan_hillis_steele, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  int in = 0, out = 1;
  const int t = THREAD, threads = THREADS;
  const int i = BLOCK * threads + t;
  s[out * threads + t] = i < n ? x[i] : 0.0f;
  s[in * threads + t] = 0.0f;
  __syncthreads();
  for (int offset = 1; offset < threads; offset *= 2) {
    out = 1 - out;
    in = 1 - out;
    if (t >= offset) s[out * threads + t] = s[in * threads + t] + s[in * threads + t - offset];
    else s[out * threads + t] = s[in * threads + t];
    __syncthreads();
  }
  if (i < n) y[i] = s[out * threads + t];
}

/* Blocks of one dimension, a power of two. */
RILL_KERNEL(scan_blelloch, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, temp);
  int thid = threadIdx.x;
  int offset = 1;
  int size = 2 * blockDim.x;
  int base = blockIdx.x * size;
  temp[2 * thid] = base + 2 * thid < n ? x[base + 2 * thid] : 0;
  temp[2 * thid + 1] = base + 2 * thid + 1 < n ? x[base + 2 * thid + 1] : 0;
  for (int d = size >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      temp[bi] += temp[ai];
    }
    offset *= 2;
  }
  if (thid == 0) temp[size - 1] = 0;
  for (int d = 1; d < size; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (thid < d) {
      int ai = offset * (2 * thid + 1) - 1;
      int bi = offset * (2 * thid + 2) - 1;
      float t = temp[ai];
      temp[ai] = temp[bi];
      temp[bi] += t;
    }
  }
  __syncthreads();
  if (base + 2 * thid < n) y[base + 2 * thid] = temp[2 * thid];
  if (base + 2 * thid + 1 < n) y[base + 2 * thid + 1] = temp[2 * thid + 1];
}

/* Blocks of one dimension, a power of two. */
RILL_KERNEL(bitonic_sort, int n, const float *x, float *y) {
  __shared__ float keys[LIMIT];
  const unsigned t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  keys[t] = i < n ? x[i] : 1e30f;
  __syncthreads();
  for (unsigned k = 2; k <= blockDim.x; k <<= 1) {
    for (unsigned j = k >> 1; j > 0; j >>= 1) {
      const unsigned other = t ^ j;
      if (other > t) {
        const bool up = (t & k) == 0;
        if ((keys[t] > keys[other]) == up) {
          const float kept = keys[t];
          keys[t] = keys[other];
          keys[other] = kept;
        }
      }
      __syncthreads();
    }
  }
  if (i < n) y[i] = keys[t];
}

/* n is the width of a square matrix; blocks of TILE x any. */
RILL_KERNEL(transpose, int n, const float *x, float *y) {
  __shared__ float tile[TILE][TILE + 1];
  int col = blockIdx.x * TILE + threadIdx.x;
  int row = blockIdx.y * TILE + threadIdx.y;
  for (int r = 0; r < TILE; r += blockDim.y) {
    if (col < n && row + r < n && threadIdx.y + r < TILE) tile[threadIdx.y + r][threadIdx.x] = x[(row + r) * n + col];
  }
  __syncthreads();
  col = blockIdx.y * TILE + threadIdx.x;
  row = blockIdx.x * TILE + threadIdx.y;
  for (int r = 0; r < TILE; r += blockDim.y)
    if (col < n && row + r < n && threadIdx.y + r < TILE) y[(row + r) * n + col] = tile[threadIdx.x][threadIdx.y + r];
}

/* Square matrices of n by n: y = x * x.  Blocks of TILE x TILE. */
RILL_KERNEL_BOUNDED(TILE *TILE, matmul, int n, const float *x, float *y) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < (n + TILE - 1) / TILE; ++tile) {
    const int ax = tile * TILE + threadIdx.x, by = tile * TILE + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = row < n && ax < n ? x[row * n + ax] : 0.0f;
    b[threadIdx.y][threadIdx.x] = by < n && col < n ? x[by * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k++) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) y[row * n + col] = sum;
}

RILL_KERNEL(histogram, int n, const float *x, float *y) {
  __shared__ unsigned bins[32];
  const unsigned t = THREAD, threads = THREADS;
  for (unsigned bin = t; bin < 32; bin += threads) bins[bin] = 0;
  __syncthreads();
  for (int i = BLOCK * threads + t; i < n; i += threads * gridDim.x * gridDim.y * gridDim.z)
    atomicAdd(&bins[static_cast<int>(x[i]) & 31], 1u);
  __syncthreads();
  for (unsigned bin = t; bin < 32; bin += threads)
    if (BLOCK * 32 + bin < n) y[BLOCK * 32 + bin] = static_cast<float>(bins[bin]);
}

RILL_KERNEL(stencil, int n, const float *x, float *y) {
  __shared__ float line[LIMIT + 4];
  const int t = THREAD, threads = THREADS;
  const int i = BLOCK * threads + t;
  line[t + 2] = i < n ? x[i] : 0.0f;
  if (t < 2) {
    line[t] = i >= 2 && i - 2 < n ? x[i - 2] : 0.0f;
    const int right = i + threads;
    line[t + threads + 2] = right < n ? x[right] : 0.0f;
  }
  __syncthreads();
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < 5; k++) sum += line[t + k];
    y[i] = sum;
  }
}

/* Threads that end before a barrier, and others after. */
RILL_KERNEL(early_return, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, i = BLOCK * THREADS + t;
  s[t] = -1.0f;
  __syncthreads();
  if (i >= n || i % 7 == 3) return;
  float mine = x[i];
  s[t] = mine;
  __syncthreads();
  if (i % 5 == 1) {
    y[i] = -mine;
    return;
  }
  mine += s[(t + 1) % THREADS];
  __syncthreads();
  s[t] = mine;
  __syncthreads();
  y[i] = mine + s[(t + THREADS - 1) % THREADS];
}

RILL_KERNEL(return_from_a_loop, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, i = BLOCK * THREADS + t;
  float mine = i < n ? x[i] : 0.0f;
  for (int round = 0; round < 6; round++) {
    s[t] = mine;
    __syncthreads();
    for (int k = 0; k < 3; k++) {
      if (round * 3 + k == t % 20) {
        if (i < n) y[i] = mine;
        return;
      }
    }
    mine += s[(t + round) % THREADS];
    __syncthreads();
  }
  if (i < n) y[i] = -mine;
}

RILL_KERNEL(nested_loops, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float a = i < n ? x[i] : 2.0f, b = 0;
  for (int outer = 0; outer < 3; outer++) {
    float c = a;
    for (int inner = outer; inner < 4; inner++) {
      s[t] = c + inner;
      __syncthreads();
      c = s[(t + inner + 1) % threads] * 0.5f;
      __syncthreads();
    }
    b += c;
    a = b - a;
  }
  if (i < n) y[i] = a + b;
}

/* Conditions that all threads of a block agree about, in ways that are seen and in ways that are not. */
RILL_KERNEL(uniform_branches, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  __shared__ int agreed;
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float v = i < n ? x[i] : 0.0f;
  if (t == 0) agreed = static_cast<int>(x[BLOCK % n]) & 1;
  s[t] = v;
  __syncthreads();
  if (blockIdx.x % 2 == 0) {
    v += s[(t + 1) % threads];
    __syncthreads();
    s[t] = v;
  } else if (n > 100) {
    v -= 1.0f;
  }
  __syncthreads();
  if (agreed) {
    v *= s[(t + 2) % threads];
    __syncthreads();
    s[t] = v;
    __syncthreads();
    v += s[(t + 3) % threads];
  } else {
    v -= s[(t + 4) % threads];
    __syncthreads();
    if (t % 2) v += 1.0f;
    s[t] = v;
    __syncthreads();
    v *= s[(t + 5) % threads];
  }
  if (i < n) y[i] = v;
}

/* A loop whose end is found in shared memory. */
RILL_KERNEL(until_done, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  __shared__ int done;
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float v = i < n ? x[i] : 0.0f;
  int rounds = 0;
  if (t == 0) done = 0;
  __syncthreads();
  while (!done) {
    s[t] = v;
    __syncthreads();
    v = 0.5f * v + s[(t + 1) % threads];
    rounds++;
    if (t == threads - 1 && rounds >= 3 + static_cast<int>(BLOCK % 4)) done = 1;
    __syncthreads();
  }
  if (i < n) y[i] = v + rounds;
}

RILL_KERNEL(do_while, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float v = i < n ? x[i] : 0.0f;
  int k = 0;
  do {
    s[t] = v;
    __syncthreads();
    v += s[(t + k) % threads];
    k++;
    __syncthreads();
  } while (k < 4);
  int left = 3;
  do {
    s[t] = v;
    __syncthreads();
    v -= 0.25f * s[(t + left) % threads];
    __syncthreads();
  } while (--left > 0);
  if (i < n) y[i] = v;
}

/* break and continue, before and after barriers, that all threads take together. */
RILL_KERNEL(jumps, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float v = i < n ? x[i] : 0.0f;
  const int limit = static_cast<int>(x[0]) & 3;
  for (int k = 0; k < 12; k++) {
    if (k == 2) continue;
    s[t] = v;
    if (k % 3 == limit) {
      v += 1.0f;
      __syncthreads();
      continue;
    }
    __syncthreads();
    v += s[(t + k) % threads] * 0.125f;
    if (k == 7 + limit) break;
    for (int j = 0; j < 5; j++) {
      if (j == t % 5) break;
      if (j == 1) continue;
      v += 0.5f;
    }
    __syncthreads();
    if (n == 12345) break;
    if (n == 12346) return;
  }
  switch (t % 3) {
  case 0: v = -v; break;
  case 1: v += 1;
  default: v *= 2; break;
  }
  if (i < n) y[i] = v;
}

/* Threads that go around different numbers of times past barriers that all of them that are left meet. */
RILL_KERNEL(leave_one_by_one, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float v = i < n ? x[i] : 0.0f;
  s[t] = v;
  __syncthreads();
  for (int k = 0;; k++) {
    if (k > t % 9) {
      if (i < n) y[i] = v;
      return;
    }
    v += s[(t + k) % threads];
    __syncthreads();
    s[t] = v;
    __syncthreads();
  }
}

struct pair {
  float a;
  int b;
};

/* Variables of all kinds that live across barriers; shadowed names; parameters that change. */
RILL_KERNEL(variables, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const unsigned t = THREAD;
  const ptrdiff_t i = static_cast<ptrdiff_t>(BLOCK) * THREADS + t;
  float parts[3] = { i < n ? x[i] : 0.0f, 1.0f }, sums[2][2];
  pair both = { parts[0], twice(static_cast<int>(t)) };
  const float *p = x + (i < n ? i : 0);
  const float first = *p, second(first * 2), third{ second + 1 };
  double wide = third;
  unsigned char small = static_cast<unsigned char>(t);
  for (int k = 0; k < 4; k++) sums[k / 2][k % 2] = parts[k % 3] + k;
  s[t] = both.a;
  __syncthreads();
  {
    const float first = s[(t + 1) % THREADS];
    parts[2] = first;
    int t = 3;
    parts[1] += t;
  }
  __syncthreads();
  float &r = parts[0];
  r += 1;
  both.b++;
  if (n > 3) n -= static_cast<int>(t % 3);
  s[t] = parts[2] + small;
  __syncthreads();
  p = p == x ? p : p - 1;
  wide += s[(t + 2) % THREADS] + *p;
  small += 7;
  int *count = &both.b;
  *count += 1;
  __syncthreads();
  s[t] = static_cast<float>(wide) + small;
  __syncthreads();
  const float total = s[(t + 3) % THREADS] + sums[1][0] + sums[0][1] + parts[0] + parts[1] + both.b + first + second;
  if (i < n) y[i] = total + third;
}

/* Pointers to shared memory that change places. */
RILL_KERNEL(ping_pong, int n, const float *x, float *y) {
  alignas(16) __shared__ float one[LIMIT], two[LIMIT];
  float *from = one, *to = two;
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  from[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = 0; k < 5; k++) {
    to[t] = 0.25f * from[(t + threads - 1) % threads] + 0.5f * from[t] + 0.25f * from[(t + 1) % threads];
    __syncthreads();
    float *const other = from;
    from = to;
    to = other;
  }
  if (i < n) y[i] = from[t];
}

struct two_pointers {
  float *first, *second;
};

/* Pointers to a thread's own variables that live longer than the names do. */
RILL_KERNEL(kept_pointers, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float first[4] = { i < n ? x[i] : 0, 2 }, second[4] = { 3.0f * t }, single = t;
  two_pointers both = { first, &single };
  float *p = t % 3 == 0 ? first : second;
  float *const q[2] = { &first[1], p };
  s[t] = both.first[0];
  __syncthreads();
  const float sum = p[0] + *q[0] + *both.second + q[1][0] + s[(t + 1) % threads];
  __syncthreads();
  s[t] = sum;
  both.first[0] += sum;
  __syncthreads();
  if (i < n) y[i] = s[t] + p[0] + s[(t + 3) % threads];
}

/* What is loaded for the next round while this one's is used: pointers to a thread's own arrays change places. */
RILL_KERNEL(register_buffers, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  float one[2], two[2];
  float *now = one, *next = two;
  for (int k = 0; k < 2; k++) now[k] = i + k < n ? x[i + k] : 1;
  float sum = 0;
  for (int round = 0; round < 4; round++) {
    for (int k = 0; k < 2; k++) next[k] = i + round < n ? x[i + round] + k : 2;
    s[t] = now[0] * now[1];
    __syncthreads();
    sum += s[(t + round) % threads] + now[1];
    __syncthreads();
    float *const other = now;
    now = next;
    next = other;
  }
  if (i < n) y[i] = sum;
}

/* A step that all threads do at once in the middle of what each does by itself. */
RILL_KERNEL(steps, int n, const float *x, float *y) {
  RILL_DYNAMIC_SHARED(float, s);
  const int t = THREAD, threads = THREADS, i = BLOCK * threads + t;
  int step = 1;
  float v = i < n ? x[i] : 0.0f;
  while (step < 16) {
    s[t] = v + step;
    __syncthreads();
    v += s[(t + step) % threads];
    step *= 2;
    v *= step;
    const int after = step + 1;
    v += after;
    __syncthreads();
    step += 1;
  }
  if (i < n) y[i] = v;
}

/* Without barriers: threads inside and outside, in blocks that are inside as a whole and others. */

RILL_KERNEL(inside_int, int n, const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x * blockDim.y * blockDim.z + threadIdx.x;
  if (i < n && threadIdx.y + threadIdx.z == 0) y[i] = 2 * x[i];
}

RILL_KERNEL(inside_returns, int n, const float *x, float *y) {
  int tx = threadIdx.x, line = threadIdx.y + blockDim.y * threadIdx.z;
  size_t i = (static_cast<size_t>(blockIdx.x) * blockDim.y * blockDim.z + line) * blockDim.x + tx;
  if (i >= static_cast<size_t>(n) || n < 3) return;
  const float v = x[i];
  if (v < 20.0f) {
    y[i] = -v;
    return;
  }
  y[i] = v;
}

/* An index that goes past the largest number to 0 inside a row. */
RILL_KERNEL(inside_wraps, int n, const float *x, float *y) {
  const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x;
  const unsigned i = 4294967293u + t + threadIdx.x;
  if (blockIdx.x == 0 && i < n) y[i] = 3 * x[i];
}

/* One that begins below 0, against a bound that makes it unsigned. */
RILL_KERNEL(inside_below_zero, int n, const float *x, float *y) {
  const int i = static_cast<int>(BLOCK * THREADS + threadIdx.y * blockDim.x + threadIdx.x) - 5;
  const int j = -5 + static_cast<int>(threadIdx.x);
  const unsigned end = n;
  if (i < end) y[i] = x[i] + 1;
  if (j < end && threadIdx.y + threadIdx.z + blockIdx.x == 0) y[j] = x[j] + 2;
}

RILL_KERNEL(inside_unsigned_bound, int n, const float *x, float *y) {
  const int j = -3 + static_cast<int>(threadIdx.x);
  const unsigned end = n;
  if (j < end && threadIdx.y + threadIdx.z + blockIdx.x == 0) y[j] = x[j] + 2;
}

/* Reductions, of all threads and of those that a condition leaves; several in a row. */

RILL_KERNEL(reductions_all, int n, const float *x, float *y) {
  const int i = BLOCK * THREADS + THREAD;
  const float v = i < n ? x[i] : 0.0f;
  const float sum = rill_block_sum(v), least = rill_block_min(v), greatest = rill_block_max(v);
  const float warp = rill_warp_sum(v) - rill_warp_max(v + sum);
  if (i < n) y[i] = sum + least * greatest + warp + rill_warp_min(-v);
}

RILL_KERNEL(reductions_some, int n, const float *x, float *y) {
  const int i = BLOCK * THREADS + THREAD;
  if (i >= n || i % 5 == 3) return;
  float v = x[i];
  for (int k = 0; k < 3; k++) v = (rill_block_sum(v + k) - rill_warp_sum(v)) / (1 + rill_block_max(rill_warp_max(k * v)));
  y[i] = v;
}

RILL_KERNEL(reductions_after_branch, int n, const float *x, float *y) {
  const int i = BLOCK * THREADS + THREAD;
  int count = 0;
  for (int k = 0; i < n && k < static_cast<int>(x[i]) % 7; k++) count += k;
  if (n % 2 == 0) count = rill_block_sum(count);
  const unsigned long long most = rill_warp_max(static_cast<unsigned long long>(count) << 40);
  if (i < n) y[i] = static_cast<float>(count) + static_cast<float>(most >> 40);
}
