/* Warp and block functions: every statement of rill/device/warp.h (C6.1). */
#include "support/testing.h"

#include "dialect_warps.rill.h"

enum { MOST_LANES = 64, ROUNDS = 32 };

/* Blocks of whole warps and with partial warps, in one or more dimensions, for any warp size. */
static const rill_dim3 blocks[] = {
  { 1, 1, 1 }, { 7, 1, 1 }, { 32, 1, 1 }, { 64, 1, 1 }, { 67, 1, 1 }, { 256, 1, 1 }, { 5, 3, 2 }, { 9, 4, 5 },
};
/* Threads whose number is a multiple of this number return early; with 0 no thread does. With 1 no thread would remain.
 */
static const unsigned drops[] = { 0, 2, 3, 5, 33 };
#define EACH(i, array)                 \
  size_t i = 0;                        \
  i < sizeof(array) / sizeof *(array); \
  i++

static uint32_t threads_of(rill_dim3 block) { return block.x * block.y * block.z; }

static rill_launch one_block(rill_dim3 block) {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.grid = (rill_dim3){ 1, 1, 1 };
  launch.block = block;
  return launch;
}

/* Returns pinned memory, which kernels and the host can access, with every byte 0xee. */
static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0xee, bytes);
  return p;
}

static uint64_t hash(uint64_t x) {
  x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  return x * UINT64_C(0xbf58476d1ce4e5b9);
}

static bool lives(uint32_t thread, unsigned drop) { return drop == 0 || thread % drop != 0; }

/* ---- places ---- */

static void lanes_are_counted_x_first(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t warp = dut.info.warp_size;
  uint32_t *lanes = pinned(1024 * sizeof *lanes), *sizes = pinned(1024 * sizeof *sizes);
  for (EACH(b, blocks)) {
    const rill_launch launch = one_block(blocks[b]);
    assert_ok(warp_places_launch(stream, &launch, lanes, sizes));
    assert_completes(stream);
    for (uint32_t t = 0; t < threads_of(blocks[b]); t++) {
      assert_int_equal(lanes[t], t % warp);
      assert_int_equal(sizes[t], warp);
    }
  }
  assert_ok(rill_free(lanes));
  assert_ok(rill_free(sizes));
}

/* ---- shuffles ---- */

static const unsigned widths[] = { 0, 1, 2, 4, 8, 16, 32, 64 };
static const unsigned amounts[] = { 0, 1, 2, 3, 5, 8, 15, 16, 31, 32, 33, 63, 64, 1000, 0x80000000u, 0xffffffffu };
enum { WIDTHS = sizeof widths / sizeof *widths, AMOUNTS = sizeof amounts / sizeof *amounts };
enum { RESULTS = WIDTHS * AMOUNTS * 4, MOST_SHUFFLED = 180 };

/* Returns the thread whose value thread t receives; `kind`: 0 rill_shuffle, then _up, _down, _xor. 64 bits avoid
 * wrapping. */
static uint32_t source_of(uint32_t t, unsigned kind, uint64_t amount, uint32_t width, uint32_t threads, unsigned drop) {
  const uint32_t warp = dut.info.warp_size;
  if (width == 0 || width > warp) width = warp;
  const int64_t group = t / width * width, own = t % width;
  const int64_t wanted[] = { (int64_t)amount, own - (int64_t)amount, own + (int64_t)amount,
                             (int64_t)((uint64_t)own ^ amount) };
  const int64_t lane = wanted[kind];
  if (lane < 0 || lane >= width || group + lane >= threads || !lives((uint32_t)(group + lane), drop)) return t;
  return (uint32_t)(group + lane);
}

static void check_shuffles(const unsigned char *values, const unsigned char *results, size_t size, uint32_t threads,
                           unsigned drop) {
  for (unsigned r = 0; r < RESULTS; r++) {
    const unsigned width = widths[r / (4 * AMOUNTS)], amount = amounts[r / 4 % AMOUNTS];
    for (uint32_t t = 0; t < threads; t++) {
      if (!lives(t, drop)) continue;
      const uint32_t source = source_of(t, r % 4, amount, width, threads, drop);
      if (memcmp(results + (r * (size_t)threads + t) * size, values + source * size, size) == 0) continue;
      print_error("kind %u, amount %u, width %u, %u threads, drop %u: thread %u has not the value of thread %u\n",
                  r % 4, amount, width, threads, drop, t, source);
      fail();
    }
  }
}

static void shuffle(const char *kernel_name, size_t size) {
  rill_stream stream = new_stream("stream");
  rill_kernel kernel = new_kernel(&dialect_warps_bundle, kernel_name);
  unsigned *lists = pinned(sizeof widths + sizeof amounts);
  memcpy(lists, widths, sizeof widths);
  memcpy(lists + WIDTHS, amounts, sizeof amounts);
  unsigned char *values = pinned(MOST_SHUFFLED * size), *results = pinned((size_t)RESULTS * MOST_SHUFFLED * size);
  for (size_t i = 0; i < MOST_SHUFFLED; i++) {
    /* the bits of a number in (0.5, 1), because copying a NaN may change it */
    uint64_t bits = hash(i) >> 1;
    if (strcmp(kernel_name, "shuffle_float") == 0) bits = 0x3f000000u | (bits & 0x7fffff);
    if (strcmp(kernel_name, "shuffle_double") == 0) bits = UINT64_C(0x3fe) << 52 | (bits & UINT64_C(0xfffffffffffff));
    memcpy(values + i * size, &bits, size);
  }
  const void *width_list = lists, *amount_list = lists + WIDTHS;
  for (EACH(b, blocks)) {
    const uint32_t threads = threads_of(blocks[b]);
    if (threads > MOST_SHUFFLED) continue;
    for (EACH(d, drops)) {
      const rill_launch launch = one_block(blocks[b]);
      const unsigned width_count = WIDTHS, amount_count = AMOUNTS;
      assert_ok(
          rill_stream_launch(stream, kernel, &launch,
                             RILL_ARGS(drops[d], width_list, width_count, amount_list, amount_count, values, results)));
      assert_completes(stream);
      check_shuffles(values, results, size, threads, drops[d]);
    }
  }
  assert_ok(rill_free(lists));
  assert_ok(rill_free(values));
  assert_ok(rill_free(results));
}

static void shuffles_of_bytes(void) { shuffle("shuffle_char", 1); }
static void shuffles_of_shorts(void) { shuffle("shuffle_short", 2); }
static void shuffles_of_ints(void) { shuffle("shuffle_int", 4); }
static void shuffles_of_unsigneds(void) { shuffle("shuffle_unsigned", 4); }
static void shuffles_of_long_longs(void) { shuffle("shuffle_long_long", 8); }
static void shuffles_of_unsigned_long_longs(void) { shuffle("shuffle_unsigned_long_long", 8); }
static void shuffles_of_floats(void) { shuffle("shuffle_float", 4); }
static void shuffles_of_doubles(void) { shuffle("shuffle_double", 8); }

/* ---- votes ---- */

/* Round 0: no lane; 1: every lane; 2: only the first lane of each warp of 32; 3: all others; later rounds: random
 * lanes. */
static void fill_words(uint32_t *words, uint32_t count) {
  for (uint32_t t = 0; t < count; t++) {
    words[t] = (uint32_t)(hash(t) >> 20) & ~15u;
    words[t] |= 2u | (t % 32 == 0 ? 4u : 8u);
  }
}

static void votes_cover_the_warp(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t warp = dut.info.warp_size;
  enum { MOST = 256 };
  uint32_t *words = pinned(MOST * sizeof *words);
  unsigned long long *ballots = pinned(ROUNDS * MOST * sizeof *ballots);
  unsigned char *all = pinned(ROUNDS * MOST), *any = pinned(ROUNDS * MOST);
  fill_words(words, MOST);
  for (EACH(b, blocks)) {
    for (EACH(d, drops)) {
      const uint32_t threads = threads_of(blocks[b]);
      const rill_launch launch = one_block(blocks[b]);
      assert_ok(votes_launch(stream, &launch, drops[d], words, ballots, all, any));
      assert_completes(stream);
      for (uint32_t at = 0; at < ROUNDS * threads; at++) {
        const uint32_t t = at % threads, first = t / warp * warp;
        if (!lives(t, drops[d])) continue;
        uint64_t live = 0, yes = 0;
        for (uint32_t other = first; other < first + warp && other < threads; other++) {
          if (!lives(other, drops[d])) continue;
          live |= UINT64_C(1) << (other - first);
          if ((words[other] >> at / threads & 1) != 0) yes |= UINT64_C(1) << (other - first);
        }
        assert_int_equal(ballots[at], yes);
        assert_int_equal(all[at], yes == live);
        assert_int_equal(any[at], yes != 0);
      }
    }
  }
  assert_ok(rill_free(words));
  assert_ok(rill_free(ballots));
  assert_ok(rill_free(all));
  assert_ok(rill_free(any));
}

static void barriers_count_the_block(void) {
  rill_stream stream = new_stream("stream");
  enum { MOST = 256 };
  uint32_t *words = pinned(MOST * sizeof *words);
  int *count = pinned(ROUNDS * MOST * sizeof *count);
  unsigned char *all = pinned(ROUNDS * MOST), *any = pinned(ROUNDS * MOST);
  fill_words(words, MOST);
  for (EACH(b, blocks)) {
    for (EACH(d, drops)) {
      const uint32_t threads = threads_of(blocks[b]);
      const rill_launch launch = one_block(blocks[b]);
      assert_ok(counts_launch(stream, &launch, drops[d], words, count, all, any));
      assert_completes(stream);
      for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t live = 0, yes = 0;
        for (uint32_t t = 0; t < threads; t++) {
          live += lives(t, drops[d]);
          yes += lives(t, drops[d]) && (words[t] >> round & 1) != 0;
        }
        for (uint32_t t = 0; t < threads; t++) {
          if (!lives(t, drops[d])) continue;
          assert_int_equal(count[round * threads + t], yes);
          assert_int_equal(all[round * threads + t], yes == live);
          assert_int_equal(any[round * threads + t], yes != 0);
        }
      }
    }
  }
  assert_ok(rill_free(words));
  assert_ok(rill_free(count));
  assert_ok(rill_free(all));
  assert_ok(rill_free(any));
}

/* ---- memory ---- */

static void a_warp_sync_orders_shared_memory(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t warp = dut.info.warp_size;
  uint32_t *out = pinned(1024 * sizeof *out);
  for (EACH(b, blocks)) {
    const uint32_t threads = threads_of(blocks[b]), rounds = 101;
    rill_launch launch = one_block(blocks[b]);
    launch.shared_mem_bytes = threads * (uint32_t)sizeof *out;
    assert_ok(hand_on_launch(stream, &launch, rounds, out));
    assert_completes(stream);
    for (uint32_t t = 0; t < threads; t++) {
      const uint32_t first = t / warp * warp, lanes = threads - first < warp ? threads - first : warp;
      assert_int_equal(out[t], first + (t - first + lanes * rounds - rounds % lanes) % lanes);
    }
  }
  assert_ok(rill_free(out));
}

static void shuffles_and_barriers_work_together(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *x = pinned(1024 * sizeof *x), *total = pinned(sizeof *total);
  const rill_dim3 larger[] = { { 1024, 1, 1 }, { 1000, 1, 1 }, { 10, 10, 10 }, { 33, 1, 1 }, { 3, 1, 1 } };
  for (uint32_t t = 0; t < 1024; t++) x[t] = (uint32_t)(hash(t) >> 40);
  for (EACH(b, larger)) {
    const uint32_t threads = threads_of(larger[b]);
    const rill_launch launch = one_block(larger[b]);
    uint32_t expected = 0;
    for (uint32_t t = 0; t < threads; t++) expected += x[t];
    assert_ok(block_total_launch(stream, &launch, x, total));
    assert_completes(stream);
    assert_int_equal(*total, expected);
  }
  assert_ok(rill_free(x));
  assert_ok(rill_free(total));
}

TESTS_ON_EACH_DEVICE("warps in kernels", TEST(lanes_are_counted_x_first), TEST(shuffles_of_bytes),
                     TEST(shuffles_of_shorts), TEST(shuffles_of_ints), TEST(shuffles_of_unsigneds),
                     TEST(shuffles_of_long_longs), TEST(shuffles_of_unsigned_long_longs), TEST(shuffles_of_floats),
                     TEST(shuffles_of_doubles), TEST(votes_cover_the_warp), TEST(barriers_count_the_block),
                     TEST(a_warp_sync_orders_shared_memory), TEST(shuffles_and_barriers_work_together))
