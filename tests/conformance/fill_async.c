/* rill_fill_async */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) {
  const uint32_t zero = 0;
  return rill_fill_async((rill_stream){ id }, dut.memory, &zero, sizeof zero, 1);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_fill_async", call_with_stream); }

static void refuses_null(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t zero = 0;
  assert_fails(rill_fill_async(stream, NULL, &zero, sizeof zero, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_fill_async(stream, dut.memory, NULL, sizeof zero, 1), RILL_ERROR_INVALID_ARGUMENT);
}

/* C5.3; C10 of the edge cases */
static void refuses_invalid_pattern_sizes(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[64] = { 0 };
  const size_t bad[] = { 0, 3, 5, 6, 7, 9, 12, 15, 17, 32, 64, SIZE_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails(rill_fill_async(stream, dut.memory, pattern, bad[i], 1), RILL_ERROR_INVALID_ARGUMENT);
    if (bad[i] == 0 || bad[i] > 15) continue;
    char *const aligned = (char *)dut.memory + (bad[i] - (uintptr_t)dut.memory % bad[i]) % bad[i];
    assert_fails(rill_fill_async(stream, aligned, pattern, bad[i], 1), RILL_ERROR_INVALID_ARGUMENT);
  }
}

static const size_t sizes[] = { 1, 2, 4, 8, 16 };

static void refuses_destinations_that_are_not_aligned(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[16] = { 0 };
  for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
    void *dst = (unsigned char *)dut.memory + sizes[i] / 2;
    assert_fails(rill_fill_async(stream, dst, pattern, sizes[i], 1), RILL_ERROR_INVALID_ARGUMENT);
  }
}

/* C5.3 */
static void does_nothing_for_count_zero(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t pattern = 9;
  assert_ok(rill_fill_async(stream, dut.memory, &pattern, sizeof pattern, 0));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0);
}

/* C5.3, C1.6; C9, C13 of the edge cases: past the end, and products that overflow. */
static void refuses_ranges_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[16] = { 0 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const size_t fits = CELLS * sizeof *dut.memory / sizes[i];
    assert_fails(rill_fill_async(stream, dut.memory, pattern, sizes[i], fits + 1), RILL_ERROR_OUT_OF_RANGE);
    assert_fails(rill_fill_async(stream, dut.host, pattern, sizes[i], fits + 1), RILL_ERROR_OUT_OF_RANGE);
    assert_fails(rill_fill_async(stream, dut.memory, pattern, sizes[i], SIZE_MAX), RILL_ERROR_OUT_OF_RANGE);
    if (sizes[i] > 1) { /* a product that is 0 if truncated to the width of size_t */
      assert_fails(rill_fill_async(stream, dut.memory, pattern, sizes[i], SIZE_MAX / sizes[i] + 1),
                   RILL_ERROR_OUT_OF_RANGE);
    }
    assert_ok(rill_fill_async(stream, dut.memory, pattern, sizes[i], fits));
  }
  assert_completes(stream);
}

/* Makes a pattern whose first `size` bytes all differ. */
static void make_pattern(unsigned char pattern[16]) {
  for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(0x11 * i + 3);
}

/* Fills the middle of memory of `kind` and checks that the bytes around it are unchanged. */
static void check_fill(rill_stream stream, uint32_t kind, size_t size, size_t count) {
  enum { BEFORE = 16, AFTER = 33 };
  const size_t n = size * count, all = BEFORE + n + AFTER;
  unsigned char pattern[16], *memory = NULL, *seen = malloc(all);
  make_pattern(pattern);
  assert_ok(RILL_NEW(dut.device, kind, all, &memory));
  memset(seen, 0xee, all);
  assert_ok(rill_copy_async(stream, memory, seen, all));
  assert_ok(rill_fill_async(stream, memory + BEFORE, pattern, size, count));
  assert_ok(rill_copy_async(stream, seen, memory, all));
  assert_completes(stream);
  for (size_t i = 0; i < all; i++) {
    const unsigned char expected = i < BEFORE || i >= BEFORE + n ? 0xee : pattern[(i - BEFORE) % size];
    if (seen[i] != expected) fail_msg("%zu patterns of %zu bytes: byte %zu is %u", count, size, i, seen[i]);
  }
  assert_ok(rill_free(memory));
  free(seen);
}

/* C5.3 */
static void fills_with_every_pattern_size(void) {
  const size_t counts[] = { 1, 2, 3, 7, 255, 256, 257, 4099 };
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  rill_stream stream = new_stream("stream");
  for (size_t k = 0; k < 2; k++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) check_fill(stream, kinds[k], sizes[i], counts[j]);
    }
  }
}

static bool has_kind(uint32_t kind) {
  return kind != RILL_MEMORY_MANAGED || rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL);
}

/* Large fills may be split into pieces, each as long as all previous pieces together. The counts are one pattern less
 * than several pieces, exactly several pieces, one pattern more, and a count with an odd remainder. */
static void fills_in_several_pieces(void) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };
  rill_stream stream = new_stream("stream");
  for (size_t k = 0; k < 3; k++) {
    if (!has_kind(kinds[k])) continue;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t piece = 4096; piece <= 65536; piece *= 2) {
        const size_t count = piece / sizes[i];
        check_fill(stream, kinds[k], sizes[i], count - 1);
        check_fill(stream, kinds[k], sizes[i], count);
        check_fill(stream, kinds[k], sizes[i], count + 1);
      }
      check_fill(stream, kinds[k], sizes[i], 3 * 65536 / sizes[i] + 7);
      check_fill(stream, kinds[k], sizes[i], (1 << 20) / sizes[i] - 1);
      check_fill(stream, kinds[k], sizes[i], (1 << 20) / sizes[i] + 4321);
    }
  }
}

/* The fill runs in stream order, and the call does not wait for the stream: after a gate, which would open by itself if
 * the call waited, and on a held stream (C3.8). */
static void does_not_wait_for_the_stream(void) {
  enum { PATTERNS = 12345 };
  static unsigned char seen[PATTERNS * 16];
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };
  unsigned char pattern[16], *memory = NULL;
  rill_stream other = new_stream("other");
  for (size_t k = 0; k < 3; k++) {
    if (!has_kind(kinds[k])) continue;
    assert_ok(RILL_NEW(dut.device, kinds[k], sizeof seen, &memory));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (int held = 0; held < 2; held++) {
        const uint8_t before = 0xee;
        const size_t n = PATTERNS * sizes[i];
        rill_stream stream = new_stream("stream");
        rill_event event = new_event("awaited");
        make_pattern(pattern);
        assert_ok(rill_fill_async(other, memory, &before, 1, sizeof seen));
        assert_completes(other);
        struct gate *gate = held ? NULL : gate_close_for(stream, (uint64_t)10000 * MILLISECOND);
        if (held) assert_ok(rill_stream_wait_event(stream, event, 0));
        assert_ok(rill_fill_async(stream, memory, pattern, sizes[i], PATTERNS));
        assert_false(is_complete(stream));
        memset(pattern, 0x43, sizeof pattern);
        if (held) assert_ok(rill_stream_record_event(other, event, 0));
        else gate_open(gate);
        assert_ok(rill_copy_async(stream, seen, memory, sizeof seen));
        assert_completes(stream);
        make_pattern(pattern);
        for (size_t at = 0; at < sizeof seen; at++) {
          if (seen[at] != (at < n ? pattern[at % sizes[i]] : 0xee)) fail_msg("byte %zu: %u", at, seen[at]);
        }
      }
    }
    assert_ok(rill_free(memory));
  }
}

/* A pattern of equal bytes or words may use another path than other patterns. */
static void fills_with_patterns_that_repeat(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char fills[] = { 0, 0xff, 0x80, 1 };
  for (size_t f = 0; f < sizeof fills; f++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      unsigned char pattern[16];
      memset(pattern, fills[f], sizeof pattern);
      assert_ok(rill_fill_async(stream, dut.memory, pattern, sizes[i], CELLS * sizeof *dut.memory / sizes[i]));
      assert_ok(rill_copy_async(stream, dut.host, dut.memory, CELLS * sizeof *dut.memory));
      assert_completes(stream);
      for (size_t c = 0; c < CELLS * sizeof *dut.memory; c++) {
        assert_int_equal(((const unsigned char *)dut.host)[c], fills[f]);
      }
    }
  }
}

/* The pattern is read at the call. */
static void reads_the_pattern_at_the_call(void) {
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned char pattern[16];
    memset(pattern, 0x21, sizeof pattern);
    struct gate *gate = gate_close(stream);
    assert_ok(rill_fill_async(stream, dut.memory, pattern, sizes[i], 16 / sizes[i]));
    memset(pattern, 0x43, sizeof pattern);
    assert_ok(rill_copy_async(stream, dut.host, dut.memory, 16));
    gate_open(gate);
    assert_completes(stream);
    for (unsigned c = 0; c < 4; c++) assert_int_equal(dut.host[c], 0x21212121);
  }
}

static void runs_in_stream_order(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (uint32_t i = 0; i < 100; i++) write_cell(stream, 0, i);
  read_cell(stream, 0);
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 99);
}

TESTS_ON_EACH_DEVICE("rill_fill_async", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_invalid_pattern_sizes), TEST(refuses_destinations_that_are_not_aligned),
                     TEST(does_nothing_for_count_zero), TEST(refuses_ranges_past_the_end),
                     TEST(fills_with_every_pattern_size), TEST(fills_in_several_pieces),
                     TEST(does_not_wait_for_the_stream), TEST(fills_with_patterns_that_repeat),
                     TEST(reads_the_pattern_at_the_call), TEST(runs_in_stream_order))
