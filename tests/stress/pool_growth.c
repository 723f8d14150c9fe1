/* A pool's reserved memory does not grow with time, in whatever way memory passes between streams (C5.2). */
#include "support/testing.h"
#include "support/traffic.h"

#include <stdio.h>

enum { SEGMENT = 2 << 20 };

/* The bound for a fixed set of sizes: twice what is needed at the peak, and a segment of small blocks and of large. */
static uint64_t bound(const struct traffic_numbers *numbers) { return 2 * numbers->peak + 2 * (uint64_t)SEGMENT; }

/* The bound where arbitrary sizes grow over ten powers of two, so that a large block fits into none of the segments
 * that smaller ones left.  Only while the device is idle does the pool release these, down to one and a half times what
 * is needed; what a round allocates while work runs may be added to that. */
static uint64_t bound_of_growing(const struct traffic_numbers *numbers) { return bound(numbers) + numbers->peak / 2; }

static bool is_bounded(const struct traffic_pattern *pattern, const struct traffic_numbers *numbers, bool fixed) {
  /* How threads and rounds under way overlap differs from run to run, and with it what is needed. */
  const bool varies = pattern->threads > 1 || pattern->lag != 0;
  /* A pool of one or two segments may need another one for fragments that others have not met by then. */
  const bool small = numbers->reserved <= numbers->early + SEGMENT && numbers->reserved <= bound(numbers);
  const bool steady = numbers->reserved <= numbers->early + numbers->early / 20 || small;
  const bool bounded = numbers->reserved <= bound(numbers);
  const bool growing = pattern->grows && numbers->reserved <= bound_of_growing(numbers);
  const bool ok = fixed ? bounded : steady || growing || (varies && bounded);
  if (!ok) {
    (void)printf("# %s, %s sizes: %llu KiB needed at most, %llu KiB reserved after %d rounds, %llu KiB at the end\n",
                 pattern->name, fixed ? "fixed" : "arbitrary", (unsigned long long)numbers->peak >> 10,
                 (unsigned long long)numbers->early >> 10, (int)TRAFFIC_EARLY,
                 (unsigned long long)numbers->reserved >> 10);
  }
  return ok;
}

static void run_all(bool fixed) {
  unsigned bounded = 0;
  for (unsigned i = 0; i < traffic_pattern_count; i++) {
    const struct traffic_pattern *pattern = &traffic_patterns[i];
    struct traffic_numbers numbers;
    const char *failure = traffic_run(dut.device, pattern, scaled(1500), fixed, NULL, &numbers);
    if (failure != NULL) (void)printf("# %s: %s: %s\n", pattern->name, failure, rill_last_error_text());
    assert_null(failure);
    bounded += is_bounded(pattern, &numbers, fixed);
  }
  assert_int_equal(bounded, traffic_pattern_count);
}

static void few_sizes_take_at_most_twice_the_need(void) { run_all(true); }
static void arbitrary_sizes_do_not_grow(void) { run_all(false); }

/* A block whose last use is complete, among many that were freed earlier and wait; each on a stream of its own, or all
 * on one, where the use that is complete was recorded first. */
static void find_among_waiting(bool one_stream) {
  enum { BLOCKS = 40, BLOCK = 1 << 20 };
  rill_pool pool;
  rill_stream stream = new_stream("stream"), users[BLOCKS];
  void *waiting[BLOCKS], *ready = NULL, *again = NULL;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  for (unsigned i = 0; i < BLOCKS; i++) {
    users[i] = one_stream && i > 0 ? users[0] : new_stream("user");
    assert_ok(rill_pool_alloc_async(pool, stream, BLOCK, &waiting[i]));
  }
  assert_ok(rill_pool_alloc_async(pool, stream, BLOCK, &ready));
  write_cell(users[0], 0, 1);
  assert_ok(rill_memory_record_use(ready, users[0]));
  assert_completes(users[0]);

  struct gate *gate = gate_close(users[0]);
  for (unsigned i = 1; i < BLOCKS && !one_stream; i++) {
    assert_ok(rill_stream_wait_stream(users[i], users[0]));
  }
  for (unsigned i = 0; i < BLOCKS; i++) assert_ok(rill_memory_record_use(waiting[i], users[i]));
  assert_ok(rill_pool_get_info(pool, &info)); /* not later: it looks for what is complete */
  const uint64_t reserved = info.reserved;
  for (unsigned i = 0; i < BLOCKS; i++) assert_ok(rill_free_async(stream, waiting[i]));
  assert_ok(rill_free_async(stream, ready));
  void *rest[8]; /* what the last segment has more than the blocks need */
  unsigned count = 0;
  for (; again != ready && count < 8; count++) {
    assert_ok(rill_pool_alloc_async(pool, stream, BLOCK, &again));
    rest[count] = again;
  }
  assert_ptr_equal(again, ready);
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.reserved, reserved);
  gate_open(gate);
  while (count > 0) assert_ok(rill_free_async(stream, rest[--count]));
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_pool_trim(pool, 0));
  assert_ok(rill_pool_release(pool));
}

/* Whether work that a gate holds up is unfinished; a null vendor calls everything complete. */
static bool device_waits(void) {
  rill_stream stream = new_stream("held up");
  struct gate *gate = gate_close(stream);
  bool complete = false;
  assert_ok(rill_stream_is_complete(stream, &complete));
  gate_open(gate);
  assert_ok(rill_stream_synchronize(stream));
  return !complete;
}

static void complete_blocks_are_found_among_waiting_ones(void) {
  if (!device_waits()) return; /* no work is ever pending there */
  find_among_waiting(false);
  find_among_waiting(true);
}

TESTS_ON_EACH_DEVICE("stress: pool growth", TEST(few_sizes_take_at_most_twice_the_need),
                     TEST(arbitrary_sizes_do_not_grow), TEST(complete_blocks_are_found_among_waiting_ones))
