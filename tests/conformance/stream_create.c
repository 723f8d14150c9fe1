/* rill_stream_create */
#include "support/testing.h"

#include <stdio.h>

static rill_status call_with_device(uint64_t id) {
  rill_stream out = { 1 };
  const rill_status status = rill_stream_create((rill_device){ id }, NULL, &out);
  assert_int_equal(out.id, 0);
  return status;
}

/* S1, S26 */
static void refuses_bad_handles(void) { refuses_bad_devices("rill_stream_create", call_with_device); }

static void refuses_null_out(void) {
  assert_fails(rill_stream_create(dut.device, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* S1: refuses an undefined policy. */
static void refuses_an_unknown_policy(void) {
  const uint32_t unknown[] = { RILL_PRIORITY_STRICT + 1, UINT32_MAX };
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    rill_stream out = { 1 };
    assert_fails(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.priority_policy = unknown[i]), &out),
                 RILL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(out.id, 0);
  }
}

static rill_status create_with(const void *options) {
  rill_stream out = { 1 };
  const rill_status status = rill_stream_create(dut.device, options, &out);
  if (status == RILL_OK) {
    keep_stream_until_end(out);
  } else {
    assert_int_equal(out.id, 0);
  }
  return status;
}

/* C1.4 */
static void accepts_older_and_newer_options(void) {
  const rill_stream_options options = { sizeof options, RILL_PRIORITY_HIGH, RILL_PRIORITY_STRICT, false, "grown" };
  takes_grown_options("rill_stream_create", create_with, &options, sizeof options,
                      offsetof(rill_stream_options, priority_policy));
  takes_grown_options("rill_stream_create", create_with, &options, sizeof options, sizeof(size_t));
}

/* C3.1 */
static void always_creates_a_new_stream(void) {
  rill_stream first = new_stream(NULL), second = new_stream(NULL), standard;
  assert_ok(rill_device_default_stream(dut.device, &standard));
  assert_true(first.id != 0);
  assert_false(rill_stream_equal(first, second));
  assert_false(rill_stream_equal(first, standard));
}

static int32_t priority_of(rill_stream stream) {
  int32_t priority = INT32_MAX;
  assert_ok(rill_stream_priority(stream, &priority));
  return priority;
}

static bool is_blocking(rill_stream stream) {
  bool blocking = false;
  assert_ok(rill_stream_is_blocking(stream, &blocking));
  return blocking;
}

/* C1.4, S3: NULL and zero are the defaults. */
static void has_defaults(void) {
  for (int i = 0; i < 2; i++) {
    rill_stream stream;
    const char *label = NULL;
    assert_ok(rill_stream_create(dut.device, i == 0 ? NULL : RILL_STREAM_OPTIONS(.label = NULL), &stream));
    keep_stream_until_end(stream);
    assert_int_equal(priority_of(stream), 0);
    assert_false(is_blocking(stream));
    assert_ok(rill_stream_label(stream, &label));
    assert_string_equal(label, "");
  }
}

/* S2 */
static void keeps_blocking_and_label(void) {
  char label[] = "mine";
  rill_stream stream;
  const char *read = NULL;
  assert_ok(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.blocking = true, .label = label), &stream));
  keep_stream_until_end(stream);
  label[0] = 'x'; /* copied */
  assert_true(is_blocking(stream));
  assert_ok(rill_stream_label(stream, &read));
  assert_string_equal(read, "mine");
}

static rill_stream with_priority(int32_t priority, uint32_t policy) {
  rill_stream stream;
  assert_ok(
      rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.priority = priority, .priority_policy = policy), &stream));
  keep_stream_until_end(stream);
  return stream;
}

/* C3.2, S2 */
static void keeps_native_priorities(void) {
  for (int32_t p = dut.info.priority_greatest; p <= dut.info.priority_least; p++) {
    assert_int_equal(priority_of(with_priority(p, RILL_PRIORITY_CLAMP)), p);
    assert_int_equal(priority_of(with_priority(p, RILL_PRIORITY_STRICT)), p);
  }
}

/* C3.2, S4 */
static void clamps_priorities_out_of_range(void) {
  const int32_t greatest = dut.info.priority_greatest, least = dut.info.priority_least;
  assert_int_equal(priority_of(with_priority(greatest - 1, RILL_PRIORITY_CLAMP)), greatest);
  assert_int_equal(priority_of(with_priority(-1000, RILL_PRIORITY_CLAMP)), greatest);
  assert_int_equal(priority_of(with_priority(INT32_MIN, RILL_PRIORITY_CLAMP)), greatest);
  assert_int_equal(priority_of(with_priority(least + 1, RILL_PRIORITY_CLAMP)), least);
  assert_int_equal(priority_of(with_priority(1000, RILL_PRIORITY_CLAMP)), least);
}

/* C3.2, S4: the text has the valid range. */
static void refuses_priorities_out_of_range_when_strict(void) {
  const int32_t outside[] = { dut.info.priority_greatest - 1, dut.info.priority_least + 1, INT32_MIN };
  char least[16], greatest[16];
  (void)snprintf(least, sizeof least, "%d", (int)dut.info.priority_least);
  (void)snprintf(greatest, sizeof greatest, "%d", (int)dut.info.priority_greatest);
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
    rill_stream out = { 1 };
    const rill_stream_options *options =
        RILL_STREAM_OPTIONS(.priority = outside[i], .priority_policy = RILL_PRIORITY_STRICT);
    assert_fails(rill_stream_create(dut.device, options, &out), RILL_ERROR_OUT_OF_RANGE);
    assert_int_equal(out.id, 0);
    assert_says(least);
    assert_says(greatest);
  }
}

/* C3.2: priorities by intent are valid on every device, also with the strict policy. */
static void accepts_priorities_by_intent(void) {
  const uint32_t policies[] = { RILL_PRIORITY_CLAMP, RILL_PRIORITY_STRICT };
  for (size_t i = 0; i < 2; i++) {
    const int32_t high = priority_of(with_priority(RILL_PRIORITY_HIGH, policies[i]));
    const int32_t normal = priority_of(with_priority(RILL_PRIORITY_NORMAL, policies[i]));
    const int32_t low = priority_of(with_priority(RILL_PRIORITY_LOW, policies[i]));
    assert_int_equal(normal, 0);
    assert_true(high >= dut.info.priority_greatest && low <= dut.info.priority_least);
    assert_int_equal(high < normal, dut.info.priority_greatest < 0);
    assert_true(low >= normal);
  }
}

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* S22 */
static void many_exist_at_once(void) {
  unsigned calls = 0;
  const unsigned count = 1024;
  for (unsigned i = 0; i < count; i++) assert_ok(rill_stream_host_call(new_stream(NULL), count_call, &calls));
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), count);
}

/* S21 */
static void many_are_created_and_released(void) {
  unsigned calls = 0, expected = 0;
  for (unsigned i = 0; i < scaled(2000); i++) {
    rill_stream stream;
    assert_ok(rill_stream_create(dut.device, NULL, &stream));
    if (i % 16 == 0) {
      assert_ok(rill_stream_host_call(stream, count_call, &calls));
      expected++;
    }
    assert_ok(rill_stream_release(stream));
  }
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), expected);
}

static const char *creates_and_uses(unsigned index, void *shared) {
  rill_stream *out = (rill_stream *)shared + index;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, out));
  REQUIRE_OK(rill_fill_async(*out, dut.memory + index, &index, sizeof index, 1));
  return NULL;
}

/* C1.7, S23: any thread can use a stream. */
static void serves_threads_that_did_not_create_it(void) {
  rill_stream streams[8];
  run_threads(8, creates_and_uses, streams);
  for (unsigned i = 0; i < 8; i++) {
    keep_stream_until_end(streams[i]);
    read_cell(streams[i], i);
    assert_completes(streams[i]);
    assert_int_equal(dut.host[i], i);
  }
}

TESTS_ON_EACH_DEVICE("rill_stream_create", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(refuses_an_unknown_policy), TEST(accepts_older_and_newer_options),
                     TEST(always_creates_a_new_stream), TEST(has_defaults), TEST(keeps_blocking_and_label),
                     TEST(keeps_native_priorities), TEST(clamps_priorities_out_of_range),
                     TEST(refuses_priorities_out_of_range_when_strict), TEST(accepts_priorities_by_intent),
                     TEST(many_exist_at_once), TEST(many_are_created_and_released),
                     TEST(serves_threads_that_did_not_create_it))
