/* Threads and streams that allocate, use and free memory of one pool, in their own stream's order and across (C5.2).
 *
 * What is live is filled with its owner's pattern by work of the stream, and looked at by work of the stream right
 * before its free.  Memory that two allocations have at once, or that is given out before the work of an earlier stream
 * is done, shows as a foreign pattern. */
#include "support/testing.h"

enum { THREADS = 6, LIVE = 12, CHECKS = 4096, LEAST_WORDS = 64 };

struct live {
  uint32_t *memory;
  size_t words;
  uint32_t pattern;
};

struct lane {
  rill_stream stream, other;
  struct live live[LIVE];
  uint32_t *seen, expected[CHECKS];
  unsigned checks, random;
};

static unsigned pick(struct lane *lane, unsigned below) {
  lane->random = lane->random * 1664525 + 1013904223;
  return (lane->random >> 8) % below;
}

static const char *begin(struct lane *lane, struct live *live, rill_pool pool, uint32_t pattern) {
  live->words = (size_t)LEAST_WORDS << pick(lane, 12);
  live->words += pick(lane, 64);
  live->pattern = pattern;
  const rill_status status = rill_pool_alloc_async(pool, lane->stream, live->words * 4, (void **)&live->memory);
  if (status == RILL_ERROR_OUT_OF_MEMORY) return NULL; /* the pool has a limit */
  REQUIRE_OK(status);
  REQUIRE_OK(rill_fill_async(lane->stream, live->memory, &live->pattern, 4, live->words));
  return NULL;
}

/* The first and the last word as the stream finds them. */
static const char *look(struct lane *lane, rill_stream stream, const struct live *live) {
  if (lane->checks + 2 > CHECKS) return NULL;
  REQUIRE_OK(rill_copy_async(stream, lane->seen + lane->checks, live->memory, 4));
  REQUIRE_OK(rill_copy_async(stream, lane->seen + lane->checks + 1, live->memory + live->words - 1, 4));
  lane->expected[lane->checks++] = live->pattern;
  lane->expected[lane->checks++] = live->pattern;
  return NULL;
}

static const char *end(struct lane *lane, struct live *live) {
  const char *failure = NULL;
  switch (pick(lane, 8)) {
    case 0: /* another stream reads it, and the pool is told */
      REQUIRE_OK(rill_stream_wait_stream(lane->other, lane->stream));
      failure = look(lane, lane->other, live);
      REQUIRE_OK(rill_memory_record_use(live->memory, lane->other));
      REQUIRE_OK(rill_free_async(lane->stream, live->memory));
      break;
    case 1: /* another stream reads and frees it */
      REQUIRE_OK(rill_stream_wait_stream(lane->other, lane->stream));
      failure = look(lane, lane->other, live);
      REQUIRE_OK(rill_free_async(lane->other, live->memory));
      break;
    case 2:
      failure = look(lane, lane->stream, live);
      if (pick(lane, 8) == 0) {
        REQUIRE_OK(rill_free(live->memory));
      } else {
        REQUIRE_OK(rill_free_async(lane->stream, live->memory));
      }
      break;
    default:
      failure = look(lane, lane->stream, live);
      REQUIRE_OK(rill_free_async(lane->stream, live->memory));
      break;
  }
  live->memory = NULL;
  return failure;
}

static const char *compare(struct lane *lane) {
  REQUIRE_OK(rill_stream_synchronize(lane->stream));
  REQUIRE_OK(rill_stream_synchronize(lane->other));
  for (unsigned i = 0; i < lane->checks; i++) REQUIRE(lane->seen[i] == lane->expected[i]);
  lane->checks = 0;
  return NULL;
}

static const char *runs(struct lane *lane, unsigned index, rill_pool pool) {
  const char *failure = NULL;
  for (unsigned i = 0; i < scaled(3000) && failure == NULL; i++) {
    struct live *live = &lane->live[pick(lane, LIVE)];
    failure = live->memory == NULL ? begin(lane, live, pool, index << 24 | i) : end(lane, live);
    if (failure == NULL && lane->checks + 2 > CHECKS) failure = compare(lane);
    if (failure == NULL && pick(lane, 200) == 0) REQUIRE_OK(rill_pool_trim(pool, 1 << 20));
    if (pick(lane, 100) == 0) { /* a stream may go with its memory still allocated */
      failure = failure != NULL ? failure : compare(lane);
      REQUIRE_OK(rill_stream_release(lane->stream));
      REQUIRE_OK(rill_stream_create(dut.device, NULL, &lane->stream));
    }
  }
  for (unsigned i = 0; i < LIVE && failure == NULL; i++) {
    if (lane->live[i].memory != NULL) failure = end(lane, &lane->live[i]);
  }
  return failure != NULL ? failure : compare(lane);
}

static const char *allocates(unsigned index, void *shared) {
  static struct lane lanes[THREADS];
  struct lane *lane = &lanes[index];
  memset(lane, 0, sizeof *lane);
  lane->random = index * 2654435761u + 17;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &lane->stream));
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &lane->other));
  REQUIRE_OK(RILL_NEW(dut.device, RILL_MEMORY_PINNED, CHECKS, &lane->seen));
  const char *failure = runs(lane, index, *(const rill_pool *)shared);
  REQUIRE_OK(rill_stream_release(lane->stream));
  REQUIRE_OK(rill_stream_release(lane->other));
  REQUIRE_OK(rill_free(lane->seen));
  return failure;
}

static void storm(uint64_t max_size) {
  rill_pool pool;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = max_size, .label = "storm"), &pool));
  run_threads(THREADS, allocates, &pool);
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.used, 0);
  assert_true(max_size == 0 || info.reserved_peak <= max_size);
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_pool_trim(pool, 0));
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.reserved, 0);
  assert_ok(rill_pool_release(pool));
}

static void memory_is_one_allocations_at_a_time(void) { storm(0); }

/* So little that streams take it from one another all the time. */
static void and_so_it_is_under_pressure(void) { storm(6 << 20); }

int main(void) {
  static const struct test tests[] = { TEST(memory_is_one_allocations_at_a_time), TEST(and_so_it_is_under_pressure) };
  return RUN_ON_EACH_DEVICE("stress: pools", tests);
}
