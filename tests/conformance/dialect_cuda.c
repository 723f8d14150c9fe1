/* rill/device/cuda_names.h: kernels written for CUDA have the same results on every device (C6.1). */
#include "support/testing.h"

#include "dialect_cuda.rill.h"
#include "graphs.h"
#include <rill/device/half.h>

#include <fenv.h>
#include <math.h>

enum { THREADS = 64 };

static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0xee, bytes);
  return p;
}

static rill_launch launch_of(uint32_t blocks) {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.grid = (rill_dim3){ blocks, 1, 1 };
  launch.block = (rill_dim3){ THREADS, 1, 1 };
  return launch;
}

/* ---- forms of kernels ---- */

static void a_plain_kernel_takes_a_struct(void) {
  rill_stream stream = new_stream("stream");
  const struct {
    float slope, offset;
    int count;
  } line = { 2.0f, 0.5f, 3 };
  float *y = pinned(100 * sizeof *y);
  const rill_launch launch = launch_of(2);
  assert_ok(cuda_plain_launch(stream, &launch, &line, 100, y));
  assert_completes(stream);
  for (int i = 0; i < 100; i++) assert_true(y[i] == 2.0f * (float)i + 3.5f);
  assert_ok(rill_free(y));
}

static void instances_of_a_template_have_names(void) {
  rill_stream stream = new_stream("stream");
  float *x = pinned(128 * sizeof *x), *y = pinned(128 * sizeof *y);
  int *k = pinned(128 * sizeof *k), *l = pinned(128 * sizeof *l);
  for (int i = 0; i < 128; i++) x[i] = (float)(k[i] = i * i);
  const rill_launch launch = launch_of(2);
  assert_ok(cuda_rotate_float_launch(stream, &launch, 128, x, y));
  assert_ok(cuda_rotate_int_launch(stream, &launch, 128, k, l));
  assert_completes(stream);
  for (int i = 0; i < 128; i++) {
    assert_true(y[i] == x[i / 64 * 64 + (i + 1) % 64]);
    assert_int_equal(l[i], k[i / 64 * 64 + (i + 5) % 64]);
  }
  assert_ok(rill_free(x));
  assert_ok(rill_free(y));
  assert_ok(rill_free(k));
  assert_ok(rill_free(l));
}

static void overloaded_kernels_have_names(void) {
  rill_stream stream = new_stream("stream");
  int *ranks = pinned(THREADS * sizeof *ranks);
  double *shifted = pinned(THREADS * sizeof *shifted);
  const rill_launch launch = launch_of(1);
  assert_ok(cuda_rotate_ranks_launch(stream, &launch, ranks));
  assert_ok(cuda_rotate_by_launch(stream, &launch, shifted, 9));
  assert_completes(stream);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(ranks[i], (i + 7) % THREADS);
    assert_true(shifted[i] == (i + 9) % THREADS);
  }
  assert_ok(rill_free(ranks));
  assert_ok(rill_free(shifted));
}

/* C6.3: the name in the source and the mangled symbol refer to the same kernel; error texts and graphs show the name in
 * the source. */
static void names_of_the_source_find_kernels(void) {
  static const char *const names[] = { "cuda_plain", "inner::cuda_named", "cuda_rotate<float, 1>", "cuda_dynamic" };
  rill_module module;
  rill_graph graph = new_graph();
  float *y = pinned(THREADS * sizeof *y);
  const rill_launch launch = launch_of(1);
  assert_ok(rill_module_load(dut.device, &dialect_cuda_bundle, &module));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    rill_kernel kernel, same;
    rill_kernel_info info = RILL_KERNEL_INFO_INIT, other = RILL_KERNEL_INFO_INIT;
    assert_ok(rill_module_get_kernel(module, names[i], &kernel));
    assert_ok(rill_kernel_get_info(kernel, &info));
    assert_ok(rill_module_get_kernel(module, info.name, &same));
    assert_ok(rill_kernel_get_info(same, &other));
    assert_string_equal(info.name, other.name);

    rill_stream stream = new_stream("stream");
    assert_fails(rill_stream_launch(stream, kernel, &launch, NULL, 0), RILL_ERROR_INVALID_ARGUMENT);
    assert_says(names[i]);
    assert_null(strstr(rill_last_error_text(), "_Z"));
    assert_ok(rill_kernel_release(kernel));
    assert_ok(rill_kernel_release(same));
  }

  rill_kernel kernel;
  rill_graph_node node, found;
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  int shift = 3;
  assert_fails(rill_module_get_kernel(module, "cuda_rotate", &kernel), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("_Z11cuda_rotatePdi");
  assert_says("_Z11cuda_rotatePfi");
  assert_fails(rill_module_get_kernel(module, "cuda_rotated", &kernel), RILL_ERROR_NOT_FOUND);
  assert_says("inner::cuda_named");
  assert_ok(rill_module_get_kernel(module, "_Z11cuda_rotatePfi", &kernel));
  assert_ok(rill_kernel_get_info(kernel, &info));
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(y, shift), &node));
  assert_ok(rill_graph_find_node(graph, "cuda_rotate", 0, &found));
  assert_int_equal(found.id, node.id);
  assert_ok(rill_graph_find_node(graph, info.name, 0, &found));
  assert_int_equal(found.id, node.id);
  assert_fails(rill_graph_find_node(graph, "_Z11cuda_rotatePdi", 0, &found), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  assert_ok(rill_free(y));
}

/* A reference may have either name; both find the same kernel. */
static void references_have_names_of_the_source(void) {
  rill_stream stream = new_stream("stream");
  float *y = pinned(THREADS * sizeof *y);
  const rill_launch launch = launch_of(1);
  rill_kernel_ref ref = { &dialect_cuda_bundle, "inner::cuda_named", { 0, 0 } };
  for (int i = 0; i < 3; i++) {
    assert_ok(rill_stream_launch_ref(stream, &ref, &launch, RILL_ARGS(y)));
    assert_ok(cuda_named_launch(stream, &launch, (uint32_t *)(void *)y));
  }
  assert_completes(stream);
  assert_ok(rill_free(y));
}

static void a_namespace_and_dynamic_shared_memory(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *y = pinned(THREADS * sizeof *y);
  rill_launch launch = launch_of(1);
  assert_ok(cuda_named_launch(stream, &launch, y));
  assert_completes(stream);
  for (int i = 0; i < THREADS; i++) assert_int_equal(y[i], THREADS);
  launch.shared_mem_bytes = THREADS * sizeof *y;
  assert_ok(cuda_dynamic_launch(stream, &launch, y));
  assert_completes(stream);
  for (uint32_t i = 0; i < THREADS; i++) assert_int_equal(y[i], (THREADS - 1 - i) * (THREADS - 1 - i));
  assert_ok(rill_free(y));
}

/* ---- warps of 32 lanes, whatever the size of a wave ---- */

static uint32_t value(uint32_t thread) { return thread * UINT32_C(2654435761); }

static void warps_have_32_lanes(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = pinned(16 * THREADS * sizeof *out);
  const rill_launch launch = launch_of(1);
  assert_ok(cuda_warps_launch(stream, &launch, out));
  assert_completes(stream);
  for (uint32_t t = 0; t < THREADS; t++) {
    const uint32_t lane = t % 32, first = t - lane, tile = t / 8 * 8, *o = out + 16 * t;
    uint32_t odd = 0, twos = 0, tile_sum = 0;
    double sum = 0;
    for (uint32_t i = 0; i < 32; i++) odd |= (value(first + i) & 1) << i;
    for (uint32_t i = 0; i < 8; i++) twos |= (value(tile + i) >> 1 & 1) << i, tile_sum += value(tile + i);
    for (uint32_t i = 0; i < 32; i++) sum += (double)value(first + i);
    assert_int_equal(o[0], value(first + lane * 7 % 32));
    assert_int_equal(o[1], value(tile + 11 % 8));
    assert_int_equal(o[2], value(lane >= 3 ? t - 3 : t));
    assert_int_equal(o[3], value(lane % 16 + 5 < 16 ? t + 5 : t));
    assert_int_equal(o[4], value(t ^ 9));
    assert_int_equal(o[5], value(((lane ^ 9) <= (lane | 7)) ? first + (lane ^ 9) : t));
    assert_int_equal(o[6], odd);
    assert_int_equal(o[7], (first == 0 ? 1 : 0) + 2);
    assert_int_equal(o[8], value(tile + 3) + t % 8);
    assert_int_equal(o[9], twos);
    assert_int_equal(o[10], tile_sum);
    assert_int_equal(o[11], t + THREADS);
    assert_int_equal(o[12], (uint32_t)(sum / 64.0));
    assert_int_equal(o[13], 32);
  }
  assert_ok(rill_free(out));
}

static void masks_name_the_calling_lanes(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = pinned(THREADS * sizeof *out);
  const rill_launch launch = launch_of(1);
  assert_ok(cuda_masks_launch(stream, &launch, out));
  assert_completes(stream);
  for (uint32_t t = 0; t < THREADS; t++) {
    const uint32_t lane = t % 32, first = t - lane;
    uint32_t expected = 7 + (lane < 31 ? t + 1 : t);
    if (lane < 16) expected = 16 * first + 120 + 1000 * UINT32_C(0xaaaa);
    if (out[1] == 1) expected = t; /* on the cpu without clang, all lanes of a warp are active */
    assert_int_equal(out[t], expected);
  }
  assert_ok(rill_free(out));
}

static void converged_lanes_form_a_group(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = pinned(8 * THREADS * sizeof *out);
  memset(out, 0, 8 * THREADS * sizeof *out);
  const rill_launch launch = rill_launch_1d(1, THREADS);
  assert_ok(cuda_coalesced_launch(stream, &launch, out));
  assert_completes(stream);
  for (uint32_t t = 0; t < THREADS; t++) {
    const uint32_t first = t / 32 * 32, start = first + (first == 0 ? 1 : 2), rank = (t - start) / 3, *o = out + 8 * t;
    const uint32_t size = first == 0 ? 11 : 10, sum = size * start + 3 * size * (size - 1) / 2;
    if (out[8] == 0) continue; /* on the cpu without clang, all lanes of a warp are active */
    const uint32_t last = first + 31, of_three = (first + 2) / 3 * 3, not_of_three = first + (first % 3 == 0 ? 1 : 0);
    const uint32_t count = t % 3 == 0 ? last / 3 - (of_three / 3) + 1 : 32 - (last / 3 - (of_three / 3) + 1);
    const uint32_t greatest = t % 3 == 0 ? last / 3 * 3 : last % 3 == 0 ? last - 1 : last;
    assert_int_equal(o[6], count + 100 * (t % 3 == 0 ? of_three : not_of_three));
    assert_int_equal(o[7], greatest + 100 * (first + 2 + t % 2));
    if (t % 3 != 1) continue;
    assert_int_equal(o[0], size);
    assert_int_equal(o[1], rank);
    assert_int_equal(o[2], start + 6);
    assert_int_equal(o[3], (rank + 1 < size ? t + 3 : t) + 1000 * (rank >= 2 ? t - 6 : t));
    assert_int_equal(o[4], (UINT32_C(0xaaaaaaaa) & ((1u << size) - 1)) + 2);
    assert_int_equal(o[5], sum);
  }
  assert_ok(rill_free(out));
}

/* Passes a block, tiles whose size is known only at run time, and other groups to a function that takes any group. */
static void groups_may_be_of_any_kind(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = pinned(4 * THREADS * sizeof *out);
  const rill_launch launch = launch_of(1);
  for (uint32_t lanes = 2; lanes <= 32; lanes *= 2) {
    assert_ok(cuda_any_group_launch(stream, &launch, lanes, out));
    assert_completes(stream);
    const uint32_t sizes[4] = { THREADS, lanes, 2, 16 };
    for (uint32_t t = 0; t < THREADS; t++)
      for (int i = 0; i < 4; i++)
        if (t % sizes[i] == 0) assert_int_equal(out[4 * t + (uint32_t)i], sizes[i] * t + sizes[i] * (sizes[i] - 1) / 2);
  }
  assert_ok(rill_free(out));
}

/* ---- bits and numbers ---- */

static uint32_t reversed(uint32_t x) {
  uint32_t y = 0;
  for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
  return y;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static void check_bits(uint32_t x, uint32_t y, const uint32_t *o) {
  const uint64_t wide = (uint64_t)x << 32 | y;
  uint32_t ones = 0, wide_ones = 0, zeros = 0, first = 0, wide_first = 0;
  for (int i = 0; i < 64; i++) wide_ones += (uint32_t)(wide >> i & 1), ones += i < 32 && (x >> i & 1);
  while (zeros < 32 && (x >> (31 - zeros) & 1) == 0) zeros++;
  uint32_t wide_zeros = 0;
  while (wide_zeros < 64 && (wide >> (63 - wide_zeros) & 1) == 0) wide_zeros++;
  while (x != 0 && (x >> first & 1) == 0) first++;
  while (wide != 0 && (wide >> wide_first & 1) == 0) wide_first++;
  assert_int_equal(o[0], ones + 100 * wide_ones);
  assert_int_equal(o[1], zeros + 100 * wide_zeros);
  assert_int_equal(o[2], (x == 0 ? 0 : first + 1) + 100 * (wide == 0 ? 0 : wide_first + 1));
  assert_int_equal(o[3], reversed(x));
  assert_int_equal(o[4], reversed(y));
  assert_int_equal(o[5], (x & 0xfff) * (y & 0xfff));
  assert_int_equal(o[6], (uint32_t)((uint64_t)x * y >> 32));
  assert_int_equal(o[7], (uint32_t)(uint64_t)((int64_t)(int32_t)x * (int32_t)y >> 32));
  const uint32_t f_bits = (x & 0x807fffffu) | 0x42000000u;
  float f;
  memcpy(&f, &f_bits, sizeof f);
  assert_int_equal(o[9], f_bits);
  assert_int_equal((int32_t)o[10], (int32_t)rintf(f));
  assert_int_equal((int32_t)o[11], (int32_t)f);
  assert_int_equal((int32_t)o[12], (int32_t)floorf(f));
  assert_int_equal((int32_t)o[13], (int32_t)ceilf(f));
  const float part = f * 0.03f;
  assert_int_equal(o[14], bits_of(part > 0 ? (part < 1 ? part : 1.0f) : 0.0f));
  assert_int_equal(o[15], bits_of(fmaf(f, f, 1.0f)));
  const float square = f * f;
  assert_int_equal(o[16], bits_of(square + 1.0f));
  assert_int_equal(o[17], 2 * x);
  assert_int_equal(o[18], x);
  assert_int_equal(o[19], (x ^ y) + 32);
  assert_int_equal(o[20], bits_of(rill_half_to_float(rill_to_half(f))));
  const float low = rill_half_to_float(rill_to_half(rill_half_to_float(rill_to_half(f)) + 2.0f));
  assert_int_equal(o[21], bits_of(low) ^ bits_of(3.0f));
}

static void functions_of_bits_and_numbers(void) {
  enum { COUNT = 500 };
  rill_stream stream = new_stream("stream");
  uint32_t *in = pinned(COUNT * sizeof *in), *out = pinned(24 * COUNT * sizeof *out);
  for (uint32_t i = 0; i < COUNT; i++) in[i] = i < 4 ? i : i < 8 ? ~i : value(i * i);
  const rill_launch launch = launch_of((COUNT + THREADS - 1) / THREADS);
  assert_ok(cuda_bits_launch(stream, &launch, COUNT, in, out));
  assert_completes(stream);
  for (uint32_t i = 0; i < COUNT; i++) check_bits(in[i], in[(i + 1) % COUNT], out + 24 * i);
  assert_ok(rill_free(in));
  assert_ok(rill_free(out));
}

/* ---- halves and bytes of words ---- */

static int64_t within(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

/* Returns the result of the kernel's function number k for a and b, in parts of `bits` bits: s are signed, u
 * unsigned. */
static int64_t of_parts(int k, int bits, int64_t as, int64_t bs, int64_t au, int64_t bu) {
  const int64_t top = (INT64_C(1) << bits) - 1, half = (top + 1) / 2;
  switch (k) {
    case 0: return au + bu;
    case 1: return au - bu;
    case 2: return within(as + bs, -half, half - 1);
    case 3: return within(au + bu, 0, top);
    case 4: return within(as - bs, -half, half - 1);
    case 5: return within(au - bu, 0, top);
    case 6:
    case 20: return magnitude(as - bs);
    case 7:
    case 21: return magnitude(au - bu);
    case 8: return (au + bu + 1) / 2;
    case 9: return (au + bu) / 2;
    case 10: return as > bs ? as : bs;
    case 11: return au > bu ? au : bu;
    case 12: return as > bs ? bs : as;
    case 13: return au > bu ? bu : au;
    case 14: return as == bs ? top : 0;
    case 15: return as == bs ? 0 : top;
    case 16: return as < bs ? 0 : top;
    case 17: return au > bu ? top : 0;
    case 18: return as > bs ? 0 : 1;
    case 19: return au < bu ? 1 : 0;
    case 22: return magnitude(as);
    case 23: return within(magnitude(as), 0, half - 1);
    case 24: return -as;
    default: return within(-as, -half, half - 1);
  }
}

static uint32_t cuda_simd_of(int k, int bits, uint32_t x, uint32_t y) {
  const int64_t top = (INT64_C(1) << bits) - 1, half = (top + 1) / 2;
  uint32_t result = 0;
  for (int at = 0; at < 32; at += bits) {
    const int64_t au = (int64_t)(x >> at) & top, bu = (int64_t)(y >> at) & top;
    const int64_t part = of_parts(k, bits, (au ^ half) - half, (bu ^ half) - half, au, bu);
    if (k == 20 || k == 21) result += (uint32_t)part; /* the results of __vsads and __vsadu are sums */
    else result |= (uint32_t)(part & top) << at;
  }
  return result;
}

static void functions_of_halves_and_bytes(void) {
  enum { COUNT = 500, RESULTS = 52 };
  static const uint32_t edges[] = { 0, 0x80008000, 0x7fff8000, 0x80808080, 0x7f80ff00, 0xffffffff, 0x80808080, 1, 1 };
  rill_stream stream = new_stream("stream");
  uint32_t *in = pinned(COUNT * sizeof *in), *out = pinned(RESULTS * COUNT * sizeof *out);
  for (uint32_t i = 0; i < COUNT; i++) in[i] = i < sizeof edges / sizeof *edges ? edges[i] : value(i * i);
  const rill_launch launch = launch_of((COUNT + THREADS - 1) / THREADS);
  assert_ok(cuda_simd_launch(stream, &launch, COUNT, in, out));
  assert_completes(stream);
  for (int i = 0; i < COUNT; i++)
    for (int k = 0; k < RESULTS; k++)
      if (out[RESULTS * i + k] != cuda_simd_of(k / 2, k % 2 ? 8 : 16, in[i], in[(i + 1) % COUNT]))
        fail_msg("function %d of %#x and %#x is %#x", k, in[i], in[(i + 1) % COUNT], out[RESULTS * i + k]);
  assert_ok(rill_free(in));
  assert_ok(rill_free(out));
}

static void finds_lanes_with_equal_values(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *out = pinned(4 * THREADS * sizeof *out);
  const rill_launch launch = launch_of(1);
  assert_ok(cuda_matches_launch(stream, &launch, out));
  assert_completes(stream);
  for (uint32_t t = 0; t < THREADS; t++) {
    uint32_t same = 0;
    for (uint32_t lane = 0; lane < 32; lane++) same |= (uint32_t)((t - t % 32 + lane) % 5 == t % 5) << lane;
    assert_int_equal(out[4 * t], same);
    assert_int_equal(out[4 * t + 1], t < 32 ? UINT32_MAX : t < 40 ? 0xffu : ~0xffu);
    assert_int_equal(out[4 * t + 2], UINT32_MAX - 1);
    assert_int_equal(out[4 * t + 3], 0);
  }
  assert_ok(rill_free(out));
}

/* Checks directed rounding against the host's processor in the corresponding rounding mode. */
static void check_directed(int64_t x, const double *o) {
  static const int ways[3] = { FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD };
  volatile const int32_t n = (int32_t)x;
  volatile const uint32_t m = (uint32_t)x;
  volatile const int64_t wide = x;
  volatile const uint64_t u = (uint64_t)x;
  for (int w = 0; w < 3; w++) {
    (void)fesetround(ways[w]);
    volatile const float f[4] = { (float)n, (float)m, (float)wide, (float)u };
    volatile const double d[2] = { (double)wide, (double)u };
    (void)fesetround(FE_TONEAREST);
    for (int i = 0; i < 4; i++) assert_true(o[3 * i + w] == (double)f[i]);
    for (int i = 0; i < 2; i++) assert_true(o[12 + 3 * i + w] == d[i]);
  }
}

static void integers_are_rounded_as_asked(void) {
  enum { COUNT = 300 };
  rill_stream stream = new_stream("stream");
  int64_t *in = pinned(COUNT * sizeof *in);
  double *out = pinned(18 * COUNT * sizeof *out);
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint64_t x = (uint64_t)value(i) << 32 | value(7 * i + 1);
    in[i] = i < 3 ? (int64_t)i - 1 : i == 3 ? INT64_MIN : i == 4 ? INT64_MAX : (int64_t)x >> i % 60;
  }
  const rill_launch launch = launch_of((COUNT + THREADS - 1) / THREADS);
  assert_ok(cuda_directed_launch(stream, &launch, COUNT, (const long long *)in, out));
  assert_completes(stream);
  for (uint32_t i = 0; i < COUNT; i++) check_directed(in[i], out + 18 * i);
  assert_ok(rill_free(in));
  assert_ok(rill_free(out));
}

static int64_t saturated(double x, bool is_signed, int bits) {
  const double least = is_signed ? -ldexp(1.0, bits - 1) : 0.0, end = ldexp(1.0, is_signed ? bits - 1 : bits);
  if (x <= least) return is_signed ? -(int64_t)(UINT64_C(1) << (bits - 2)) * 2 : 0;
  if (x >= end) return is_signed ? (int64_t)((UINT64_C(1) << (bits - 1)) - 1) : (int64_t)(~UINT64_C(0) >> (64 - bits));
  return is_signed ? (int64_t)x : (int64_t)(uint64_t)x;
}

static void out_of_range_conversions_saturate(void) {
  static const double numbers[] = { 0.0,
                                    -0.9,
                                    1.9,
                                    -1.9,
                                    3e9,
                                    -3e9,
                                    2147483647.5,
                                    -2147483648.5,
                                    5e9,
                                    1e10,
                                    1e19,
                                    1e20,
                                    -1e20,
                                    9.2e18,
                                    9.223372036854775e18,
                                    1.8e19,
                                    1e40,
                                    NAN,
                                    1e39,
                                    -1e9,
                                    (double)INFINITY,
                                    -(double)INFINITY };
  enum { COUNT = sizeof numbers / sizeof *numbers, CLANG = 1, NVIDIA, AMD };
  rill_stream stream = new_stream("stream");
  double *in = pinned(sizeof numbers);
  long long *out = pinned(9 * COUNT * sizeof *out);
  memcpy(in, numbers, sizeof numbers);
  const rill_launch launch = launch_of(1);
  assert_ok(cuda_outside_launch(stream, &launch, COUNT, in, out));
  assert_completes(stream);
  for (int i = 0; i < COUNT; i++) {
    const long long *const o = out + 9 * i;
    for (int k = 0; k < 8 && o[8] != 0; k++) {
      const bool from_float = k % 4 < 2, is_signed = k % 2 == 0;
      const int bits = k < 4 ? 32 : 64;
      int64_t expected = saturated(from_float ? (double)(float)in[i] : in[i], is_signed, bits);
      if (isnan(in[i])) {
        if (o[8] == AMD && bits == 64) continue;
        const bool is_zero = o[8] != NVIDIA || (from_float && bits == 32);
        expected = is_zero ? 0 : bits == 64 ? INT64_MIN : is_signed ? INT32_MIN : (int64_t)UINT32_C(0x80000000);
      }
      if (o[k] != expected) fail_msg("%g, conversion %d: 0x%llx, not 0x%llx", in[i], k, o[k], (long long)expected);
    }
  }
  assert_ok(rill_free(in));
  assert_ok(rill_free(out));
}

static void pairs_of_halves(void) {
  static const float expected[7] = { -3.75f, -8.75f, 0.0f, 0.0f, 0.0f, -2.0f / 3.0f, 2.5f };
  rill_stream stream = new_stream("stream");
  float *x = pinned(2 * sizeof *x), *out = pinned(7 * sizeof *out);
  x[0] = 1.5f;
  x[1] = 2.5f;
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(cuda_pairs_launch(stream, &launch, x, out));
  assert_completes(stream);
  for (int i = 0; i < 7; i++) assert_true(fabsf(out[i] - expected[i]) < 1e-3f);
  assert_ok(rill_free(x));
  assert_ok(rill_free(out));
}

static void halves_are_rounded_as_asked(void) {
  static const struct {
    float x;
    uint16_t zero, up, down;
  } cases[] = {
    { 0x1.004p0f, 0x3c01, 0x3c01, 0x3c01 },   { 0x1.0044p0f, 0x3c01, 0x3c02, 0x3c01 },
    { 0x1.007cp0f, 0x3c01, 0x3c02, 0x3c01 },  { -0x1.0044p0f, 0xbc01, 0xbc01, 0xbc02 },
    { -0x1.007cp0f, 0xbc01, 0xbc01, 0xbc02 }, { 0x1.ffep0f, 0x3fff, 0x4000, 0x3fff },
    { 0x1p-30f, 0x0000, 0x0001, 0x0000 },     { -0x1p-30f, 0x8000, 0x8000, 0x8001 },
    { 0x1.8p-24f, 0x0001, 0x0002, 0x0001 },   { 0.0f, 0x0000, 0x0000, 0x0000 },
    { -0.0f, 0x8000, 0x8000, 0x8000 },        { 65504.0f, 0x7bff, 0x7bff, 0x7bff },
    { 65505.0f, 0x7bff, 0x7c00, 0x7bff },     { 1e6f, 0x7bff, 0x7c00, 0x7bff },
    { -1e6f, 0xfbff, 0xfbff, 0xfc00 },        { INFINITY, 0x7c00, 0x7c00, 0x7c00 },
    { -INFINITY, 0xfc00, 0xfc00, 0xfc00 },
  };
  enum { COUNT = sizeof cases / sizeof *cases };
  rill_stream stream = new_stream("stream");
  float *x = pinned(COUNT * sizeof *x);
  uint16_t *out = pinned(3 * COUNT * sizeof *out);
  for (int i = 0; i < COUNT; i++) x[i] = cases[i].x;
  const rill_launch launch = rill_launch_1d(COUNT, COUNT);
  assert_ok(cuda_rounded_halves_launch(stream, &launch, x, out));
  assert_completes(stream);
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(out[3 * i], cases[i].zero);
    assert_int_equal(out[3 * i + 1], cases[i].up);
    assert_int_equal(out[3 * i + 2], cases[i].down);
  }
  assert_ok(rill_free(x));
  assert_ok(rill_free(out));
}

/* The first sums differ from the midpoint of two halves by less than the last bit of a float. */
static void halves_are_fused_and_compared(void) {
  enum { LESS = 1 + 2 + 8, GREATER = 8 + 16 + 32, EQUAL = 2 + 4 + 16, UNORDERED = 8, A_NAN = 0x7e00 };
  static const struct {
    uint16_t a, b, c, fused, most, least, compared;
  } cases[] = {
    { 0x3c01, 0x0ffe, 0x3c01, 0x3c01, 0x3c01, 0x0ffe, GREATER },
    { 0xbc01, 0x0ffe, 0xbc01, 0xbc01, 0x0ffe, 0xbc01, LESS },
    { 0x4000, 0x4200, 0x3c00, 0x4700, 0x4200, 0x4000, LESS },
    { 0x7bff, 0x4000, 0xfbff, 0x7bff, 0x7bff, 0x4000, GREATER },
    { 0x7bff, 0x4000, 0x0000, 0x7c00, 0x7bff, 0x4000, GREATER },
    { 0x0001, 0x0001, 0x0001, 0x0001, 0x0001, 0x0001, EQUAL },
    { 0x0001, 0x3800, 0x0001, 0x0002, 0x3800, 0x0001, LESS },
    { 0x8001, 0x0001, 0x0000, 0x8000, 0x0001, 0x8001, LESS },
    { 0x7c00, 0x3c00, 0x3c00, 0x7c00, 0x7c00, 0x3c00, GREATER },
    { 0xfc00, 0x3c00, 0x7c00, A_NAN, 0x3c00, 0xfc00, LESS },
    { A_NAN, 0x3c00, 0x3c00, A_NAN, 0x3c00, 0x3c00, UNORDERED },
    { 0x3c00, A_NAN, 0x3c00, A_NAN, 0x3c00, 0x3c00, UNORDERED },
    { 0xbc00, 0xbc00, 0xbc00, 0x0000, 0xbc00, 0xbc00, EQUAL },
    { 0xfe00, 0x7e01, 0x3c00, A_NAN, A_NAN, A_NAN, UNORDERED },
  };
  enum { COUNT = sizeof cases / sizeof *cases };
  rill_stream stream = new_stream("stream");
  uint16_t *in = pinned(3 * COUNT * sizeof *in), *out = pinned(4 * COUNT * sizeof *out);
  for (int i = 0; i < COUNT; i++) in[3 * i] = cases[i].a, in[3 * i + 1] = cases[i].b, in[3 * i + 2] = cases[i].c;
  const rill_launch launch = rill_launch_1d(COUNT, COUNT);
  assert_ok(cuda_fused_halves_launch(stream, &launch, in, out));
  assert_completes(stream);
  for (int i = 0; i < COUNT; i++) {
    const uint16_t expected[3] = { cases[i].fused, cases[i].most, cases[i].least };
    for (int k = 0; k < 3; k++) {
      if (expected[k] == A_NAN) assert_true((out[4 * i + k] & 0x7fff) > 0x7c00);
      else assert_int_equal(out[4 * i + k], expected[k]);
    }
    assert_int_equal(out[4 * i + 3], cases[i].compared);
  }
  assert_ok(rill_free(in));
  assert_ok(rill_free(out));
}

static void halves_are_added_atomically(void) {
  enum { COUNT = 384 };
  rill_stream stream = new_stream("stream");
  uint16_t *sums = pinned(4 * sizeof *sums), *before = pinned(COUNT * sizeof *before);
  uint32_t *pairs = pinned(2 * sizeof *pairs);
  memset(sums, 0, 4 * sizeof *sums);
  memset(pairs, 0, 2 * sizeof *pairs);
  const rill_launch launch = rill_launch_1d(COUNT, 96);
  assert_ok(cuda_half_sums_launch(stream, &launch, sums, pairs, before));
  assert_completes(stream);
  for (int i = 0; i < 3; i++) assert_int_equal(sums[i], rill_to_half(COUNT / 3).bits);
  assert_int_equal(sums[3], rill_to_half(COUNT).bits);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pairs[i] & 0xffffu, rill_to_half(COUNT / 2).bits);
    assert_int_equal(pairs[i] >> 16, rill_to_half(-COUNT).bits);
  }
  bool seen[COUNT] = { false };
  for (int i = 0; i < COUNT; i++) {
    const int old = (int)rill_half_to_float((rill_half){ before[i] });
    assert_in_range(old, 0, COUNT - 1);
    assert_false(seen[old]);
    seen[old] = true;
  }
  assert_ok(rill_free(sums));
  assert_ok(rill_free(pairs));
  assert_ok(rill_free(before));
}

static void vectors_of_bytes_have_dot_products(void) {
  rill_stream stream = new_stream("stream");
  int *out = pinned(2 * sizeof *out);
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(cuda_dots_launch(stream, &launch, out));
  assert_completes(stream);
  assert_int_equal(out[0], 127 - 10 - 18 + 16384 - 7);
  assert_int_equal(out[1], 65025 + 4 + 10 + 18 + 9);
  assert_ok(rill_free(out));
}

int main(void) {
  const struct test tests[] = {
    TEST(a_plain_kernel_takes_a_struct),
    TEST(instances_of_a_template_have_names),
    TEST(overloaded_kernels_have_names),
    TEST(names_of_the_source_find_kernels),
    TEST(references_have_names_of_the_source),
    TEST(a_namespace_and_dynamic_shared_memory),
    TEST(warps_have_32_lanes),
    TEST(masks_name_the_calling_lanes),
    TEST(converged_lanes_form_a_group),
    TEST(groups_may_be_of_any_kind),
    TEST(functions_of_bits_and_numbers),
    TEST(functions_of_halves_and_bytes),
    TEST(finds_lanes_with_equal_values),
    TEST(integers_are_rounded_as_asked),
    TEST(out_of_range_conversions_saturate),
    TEST(pairs_of_halves),
    TEST(halves_are_rounded_as_asked),
    TEST(halves_are_fused_and_compared),
    TEST(halves_are_added_atomically),
    TEST(vectors_of_bytes_have_dot_products),
  };
  return RUN_ON_EACH_DEVICE("CUDA kernels", tests);
}
