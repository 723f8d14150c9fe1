/* rill_device_set_workers */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_device(uint64_t id) { return rill_device_set_workers((rill_device){ id }, 1); }

static void refuses_bad_handles(void) { refuses_bad_devices("rill_device_set_workers", call_with_device); }

static void refuses_too_many(void) {
  assert_fails(rill_device_set_workers(dut.device, 1025), RILL_ERROR_OUT_OF_RANGE);
  assert_says("1025");
  assert_fails(rill_device_set_workers(dut.device, UINT32_MAX), RILL_ERROR_OUT_OF_RANGE);
}

/* C1.8 */
static void is_unsupported_on_gpus(void) {
  if (!dut.gpu) return;
  assert_fails(rill_device_set_workers(dut.device, 2), RILL_ERROR_UNSUPPORTED);
  assert_says(dut.name);
}

static void check_workers(uint32_t count) {
  uint32_t workers = 0;
  assert_ok(rill_device_get_workers(dut.device, &workers));
  assert_int_equal(workers, count);
}

static _Atomic unsigned inside;

/* Many of these host calls block at the same time, however few workers there are. */
static void stay(void *user, rill_status status) {
  (void)status;
  (void)atomic_fetch_add(&inside, 1);
  const uint64_t end = now_ns() + TIMEOUT_NS;
  while (atomic_load(&inside) < *(const unsigned *)user && now_ns() < end) let_pass_ns(100000);
}

/* Work of every kind is correct with any number of workers, even if the number changes while it runs. */
static void work_completes_with_any_number(void) {
  if (dut.gpu) return;
  enum { WORDS = 1 << 20, STREAMS = 6 };
  static const uint32_t counts[] = { 1, 2, 7, 64, 1, 0, 3 };
  uint32_t *p = NULL, before = 0;
  rill_stream streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) streams[i] = new_stream("stream");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, WORDS, &p));
  assert_ok(rill_device_get_workers(dut.device, &before));
  for (uint32_t round = 0; round < sizeof counts / sizeof *counts; round++) {
    const uint32_t value = round + 5;
    assert_ok(rill_device_set_workers(dut.device, counts[round]));
    check_workers(counts[round] != 0 ? counts[round] : before);
    for (int i = 0; i < 20; i++) {
      const rill_launch launch = rill_launch_1d(CELLS, 8);
      assert_ok(rill_fill_async(streams[0], p, &value, sizeof value, WORDS));
      assert_ok(store_launch(streams[0], &launch, value, p + WORDS - 1));
      if (i == 10) assert_ok(rill_device_set_workers(dut.device, counts[round] + 1));
    }
    unsigned number = STREAMS - 1;
    atomic_store(&inside, 0);
    for (int i = 1; i < STREAMS; i++) assert_ok(rill_stream_host_call(streams[i], stay, &number));
    for (int i = 0; i < STREAMS; i++) assert_completes(streams[i]);
    assert_int_equal(atomic_load(&inside), number);
    for (size_t i = 0; i < WORDS; i++) assert_int_equal(p[i], value);
  }
  assert_ok(rill_device_set_workers(dut.device, 0));
  check_workers(before);
  assert_ok(rill_free(p));
}

TESTS_ON_EACH_DEVICE("rill_device_set_workers", TEST(refuses_bad_handles), TEST(refuses_too_many),
                     TEST(is_unsupported_on_gpus), TEST(work_completes_with_any_number))
