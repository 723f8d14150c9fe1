/* Threads allocate, use and free memory of one pool on many streams that are created and released, in the order of one
 * stream and across streams (C5.2, C3.8). Work on a stream fills live memory with its owner's pattern, and work before
 * the free checks the pattern. Slow host calls delay each stream differently. If two allocations overlap, or memory is
 * reused before earlier work on it is complete, the check finds a foreign pattern. */
#include "support/testing.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 6, STREAMS = 6, LIVE = 16, CHECKS = 4096, LEAST_WORDS = 64, GIVEN = 8 };

struct live {
  uint32_t *memory;
  size_t words;
  uint32_t pattern;
  unsigned stream; /* stream of its allocation and fill */
  bool filled;
};

struct worker {
  rill_stream streams[STREAMS], recorder;
  rill_event awaited[STREAMS]; /* the event that holds the stream; null: not held */
  struct live live[LIVE];
  uint32_t *seen, expected[CHECKS];
  unsigned checks, random;
};

static struct {
  rill_pool pool;
  uint64_t max_size;
  unsigned keeps_stream; /* approximate number of steps for which a stream is kept */
  unsigned seed;
} storm;

/* Allocations that one thread has passed to another, with an event recorded after their fills. */
static struct {
  pthread_mutex_t lock;
  struct live live[GIVEN];
  rill_event filled[GIVEN];
  unsigned count;
} given = { .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned pick(struct worker *worker, unsigned below) {
  worker->random = worker->random * 1664525 + 1013904223;
  return (worker->random >> 8) % below;
}

/* ---- streams ---- */

static void take_a_while(void *user, rill_status status) {
  (void)status;
  let_pass_ns((uintptr_t)user);
}

static const char *delay(struct worker *worker, unsigned stream) {
  const uintptr_t ns = (uintptr_t)1 << pick(worker, 18);
  REQUIRE_OK(rill_stream_host_call(worker->streams[stream], take_a_while, (void *)ns));
  return NULL;
}

static const char *hold(struct worker *worker, unsigned stream) {
  REQUIRE_OK(rill_event_create(dut.device, NULL, &worker->awaited[stream]));
  REQUIRE_OK(rill_stream_wait_event(worker->streams[stream], worker->awaited[stream], 0));
  return NULL;
}

static const char *release_held(struct worker *worker, unsigned stream) {
  if (worker->awaited[stream].id == 0) return NULL;
  REQUIRE_OK(rill_stream_record_event(worker->recorder, worker->awaited[stream], 0));
  REQUIRE_OK(rill_event_release(worker->awaited[stream]));
  worker->awaited[stream] = RILL_NULL_EVENT;
  return NULL;
}

/* Replaces a stream with a new stream that waits for all work of the old one, and keeps its allocations. */
static const char *replace(struct worker *worker, unsigned stream) {
  rill_stream fresh;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &fresh));
  /* the new stream is also held if the old one is */
  REQUIRE_OK(rill_stream_wait_stream(fresh, worker->streams[stream]));
  const char *failure = release_held(worker, stream);
  REQUIRE_OK(rill_stream_release(worker->streams[stream]));
  worker->streams[stream] = fresh;
  return failure;
}

/* ---- checks ---- */

/* Checks the first word, the last word and one between, as the stream sees them. */
static const char *look(struct worker *worker, unsigned stream, const struct live *live) {
  if (!live->filled || worker->checks + 3 > CHECKS) return NULL;
  const size_t places[] = { 0, live->words - 1, pick(worker, (unsigned)live->words) };
  for (size_t i = 0; i < 3; i++) {
    REQUIRE_OK(rill_copy_async(worker->streams[stream], worker->seen + worker->checks, live->memory + places[i], 4));
    worker->expected[worker->checks++] = live->pattern;
  }
  return NULL;
}

static const char *compare(struct worker *worker) {
  const char *failure = NULL;
  for (unsigned i = 0; i < STREAMS && failure == NULL; i++) failure = release_held(worker, i);
  if (failure != NULL) return failure;
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_synchronize(worker->streams[i]));
  REQUIRE_OK(rill_stream_synchronize(worker->recorder));
  for (unsigned i = 0; i < worker->checks; i++) REQUIRE(worker->seen[i] == worker->expected[i]);
  worker->checks = 0;
  return NULL;
}

static const char *check_info(void) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  REQUIRE_OK(rill_pool_get_info(storm.pool, &info));
  REQUIRE(info.used + info.waiting + info.cached == info.reserved && info.used <= info.used_peak);
  REQUIRE(info.used_peak <= info.reserved_peak && info.reserved <= info.reserved_peak);
  REQUIRE(storm.max_size == 0 || info.reserved_peak <= storm.max_size);
  return NULL;
}

/* ---- memory ---- */

static const char *begin(struct worker *worker, struct live *live, uint32_t pattern) {
  live->words = ((size_t)LEAST_WORDS << pick(worker, 12)) + pick(worker, 64);
  live->pattern = pattern;
  live->stream = pick(worker, STREAMS);
  live->filled = pick(worker, 8) != 0;
  const rill_stream stream = worker->streams[live->stream];
  const rill_status status = rill_pool_alloc_async(storm.pool, stream, live->words * 4, (void **)&live->memory);
  if (status == RILL_ERROR_OUT_OF_MEMORY && storm.max_size != 0) return NULL;
  REQUIRE_OK(status);
  if (live->filled) REQUIRE_OK(rill_fill_async(stream, live->memory, &live->pattern, 4, live->words));
  return NULL;
}

/* Makes another stream wait for the fill and check the memory. */
static const char *look_elsewhere(struct worker *worker, unsigned other, const struct live *live) {
  REQUIRE_OK(rill_stream_wait_stream(worker->streams[other], worker->streams[live->stream]));
  return look(worker, other, live);
}

static const char *give_away(struct worker *worker, const struct live *live) {
  rill_event filled;
  REQUIRE_OK(rill_stream_record_new_event(worker->streams[live->stream], NULL, &filled));
  pthread_mutex_lock(&given.lock);
  const bool room = given.count < GIVEN;
  if (room) given.live[given.count] = *live;
  if (room) given.filled[given.count++] = filled;
  pthread_mutex_unlock(&given.lock);
  if (room) return NULL;
  REQUIRE_OK(rill_event_release(filled));
  REQUIRE_OK(rill_free_async(worker->streams[live->stream], live->memory));
  return NULL;
}

static const char *end_given(struct worker *worker) {
  struct live live = { .memory = NULL };
  rill_event filled = RILL_NULL_EVENT;
  pthread_mutex_lock(&given.lock);
  if (given.count > 0) {
    live = given.live[--given.count];
    filled = given.filled[given.count];
  }
  pthread_mutex_unlock(&given.lock);
  if (live.memory == NULL) return NULL;
  const unsigned stream = pick(worker, STREAMS);
  REQUIRE_OK(rill_stream_wait_event(worker->streams[stream], filled, 0));
  REQUIRE_OK(rill_event_release(filled));
  const char *failure = look(worker, stream, &live);
  REQUIRE_OK(rill_free_async(worker->streams[stream], live.memory));
  return failure;
}

/* Frees memory that has not been used, on a stream that is ordered after nothing. */
static const char *end_unused(struct worker *worker, const struct live *live) {
  REQUIRE_OK(rill_free_async(worker->streams[pick(worker, STREAMS)], live->memory));
  return NULL;
}

static const char *end(struct worker *worker, struct live *live) {
  const unsigned own = live->stream, other = pick(worker, STREAMS);
  const char *failure = NULL;
  if (!live->filled) {
    failure = end_unused(worker, live);
  } else {
    switch (pick(worker, 12)) {
      case 0: /* read on another stream, and the use is recorded */
        failure = look_elsewhere(worker, other, live);
        REQUIRE_OK(rill_memory_record_use(live->memory, worker->streams[other]));
        REQUIRE_OK(rill_free_async(worker->streams[own], live->memory));
        break;
      case 1: /* read and freed on another stream */
      case 2:
        failure = look_elsewhere(worker, other, live);
        REQUIRE_OK(rill_free_async(worker->streams[other], live->memory));
        break;
      case 3: failure = give_away(worker, live); break;
      case 4:
        failure = look(worker, own, live);
        if (pick(worker, 8) == 0) {
          REQUIRE_OK(rill_free(live->memory));
        } else {
          REQUIRE_OK(rill_free_async(worker->streams[own], live->memory));
        }
        break;
      default:
        failure = look(worker, own, live);
        REQUIRE_OK(rill_free_async(worker->streams[own], live->memory));
        break;
    }
  }
  live->memory = NULL;
  return failure;
}

/* ---- the storms ---- */

static const char *step(struct worker *worker, uint32_t pattern) {
  struct live *live = &worker->live[pick(worker, LIVE)];
  const unsigned stream = pick(worker, STREAMS);
  const char *failure = live->memory == NULL ? begin(worker, live, pattern) : end(worker, live);
  if (failure == NULL && worker->checks + 3 > CHECKS) failure = compare(worker);
  if (failure == NULL && pick(worker, 6) == 0) failure = delay(worker, stream);
  if (failure == NULL && pick(worker, 4) == 0) failure = end_given(worker);
  if (failure == NULL && pick(worker, 60) == 0) {
    failure = worker->awaited[stream].id == 0 ? hold(worker, stream) : release_held(worker, stream);
  }
  if (failure == NULL && pick(worker, storm.keeps_stream) == 0) failure = replace(worker, stream);
  if (failure == NULL && pick(worker, 200) == 0) failure = compare(worker);
  if (failure == NULL && pick(worker, 200) == 0) REQUIRE_OK(rill_pool_trim(storm.pool, 1 << 20));
  return failure != NULL ? failure : check_info();
}

static const char *runs(struct worker *worker, unsigned index) {
  const char *failure = NULL;
  for (unsigned i = 0; i < scaled(2000) && failure == NULL; i++) failure = step(worker, index << 24 | i);
  for (unsigned i = 0; i < LIVE && failure == NULL; i++) {
    if (worker->live[i].memory != NULL) failure = end(worker, &worker->live[i]);
  }
  return failure != NULL ? failure : compare(worker);
}

static const char *allocates(unsigned index, void *shared) {
  static struct worker workers[THREADS];
  struct worker *worker = &workers[index];
  (void)shared;
  memset(worker, 0, sizeof *worker);
  worker->random = index * 2654435761u + storm.seed;
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_create(dut.device, NULL, &worker->streams[i]));
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &worker->recorder));
  REQUIRE_OK(RILL_NEW(dut.device, RILL_MEMORY_PINNED, CHECKS, &worker->seen));
  const char *failure = runs(worker, index);
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_release(worker->streams[i]));
  REQUIRE_OK(rill_stream_release(worker->recorder));
  REQUIRE_OK(rill_free(worker->seen));
  return failure;
}

/* Frees allocations that were passed to threads which had already ended. */
static void end_all_given(void) {
  rill_stream stream = new_stream("last");
  for (; given.count > 0; given.count--) {
    assert_ok(rill_stream_wait_event(stream, given.filled[given.count - 1], 0));
    assert_ok(rill_event_release(given.filled[given.count - 1]));
    assert_ok(rill_free_async(stream, given.live[given.count - 1].memory));
  }
  assert_completes(stream);
}

static void run_storm(uint64_t max_size, unsigned keeps_stream) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  storm.max_size = max_size;
  storm.keeps_stream = keeps_stream;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = max_size, .label = "storm"), &storm.pool));
  run_threads(THREADS, allocates, NULL);
  end_all_given();
  assert_ok(rill_pool_get_info(storm.pool, &info));
  assert_int_equal(info.used, 0);
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_pool_trim(storm.pool, 0));
  assert_ok(rill_pool_get_info(storm.pool, &info));
  assert_int_equal(info.reserved, 0);
  assert_ok(rill_pool_release(storm.pool));
}

static void memory_belongs_to_one_allocation_at_a_time(void) { run_storm(0, 200); }

/* The memory is so small that streams constantly take it from each other. */
static void memory_stays_exclusive_under_pressure(void) { run_storm(6 << 20, 200); }

static void memory_stays_exclusive_when_streams_change(void) { run_storm(0, 4); }

int main(void) {
  const char *seed = getenv("RILL_STRESS_SEED");
  storm.seed = seed != NULL ? (unsigned)strtoul(seed, NULL, 0) : 17;
  static const struct test tests[] = { TEST(memory_belongs_to_one_allocation_at_a_time),
                                       TEST(memory_stays_exclusive_under_pressure),
                                       TEST(memory_stays_exclusive_when_streams_change) };
  return RUN_ON_EACH_DEVICE("stress: pools", tests);
}
