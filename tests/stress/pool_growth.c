/* A pool's reserved memory does not grow with time, however memory passes between streams (C5.2). */
#include "support/testing.h"
#include "support/traffic.h"

#include <stdio.h>

enum { SEGMENT = 2 << 20 };

/* Returns the bound for a fixed set of sizes: twice the memory needed at the peak, and one segment each for small and
 * large blocks. */
static uint64_t bound(const struct traffic_numbers *numbers) { return 2 * numbers->peak + 2 * (uint64_t)SEGMENT; }

/* Returns the bound for sizes that grow over ten powers of two. A large block then fits into none of the segments left
 * by smaller blocks, and the pool releases these segments only while the device is idle, down to 1.5 times what it
 * needs. The memory that a round allocates while work runs may be added. */
static uint64_t bound_of_growing(const struct traffic_numbers *numbers) { return bound(numbers) + numbers->peak / 2; }

static bool is_bounded(const struct traffic_pattern *pattern, const struct traffic_numbers *numbers, bool fixed) {
  /* the overlap of threads and of rounds differs from run to run, and so does the memory needed */
  const bool varies = pattern->threads > 1 || pattern->lag != 0;
  /* a pool of one or two segments may later need one more because of fragmentation */
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

/* Frees many blocks whose uses are not complete, and one block whose use is. The blocks were used on one stream each,
 * or all on one stream, on which the complete use was recorded first. */
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
  assert_ok(rill_pool_get_info(pool, &info)); /* the allocation itself must have found the complete block */
  const uint64_t reserved = info.reserved;
  for (unsigned i = 0; i < BLOCKS; i++) assert_ok(rill_free_async(stream, waiting[i]));
  assert_ok(rill_free_async(stream, ready));
  void *rest[8]; /* blocks that fill the remainder of the last segment */
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

/* Returns whether work that a closed gate blocks is incomplete; a null vendor reports all work as complete. */
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
  if (!device_waits()) return; /* with a null vendor no work is ever pending */
  find_among_waiting(false);
  find_among_waiting(true);
}

TESTS_ON_EACH_DEVICE("stress: pool growth", TEST(few_sizes_take_at_most_twice_the_need),
                     TEST(arbitrary_sizes_do_not_grow), TEST(complete_blocks_are_found_among_waiting_ones))
