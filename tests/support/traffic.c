#include "support/traffic.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 10, MOST_STREAMS = 8, MOST_THREADS = 6, MOST_LAG = 4, CYCLE = 100 };

const struct traffic_pattern traffic_patterns[] = {
  { "freed on its own stream", TRAFFIC_OWN, 2, 1, 0, 0, false, false },
  { "freed on the other stream", TRAFFIC_OTHER, 2, 1, 0, 0, false, false },
  { "freed on either stream", TRAFFIC_EITHER, 2, 1, 0, 0, false, false },
  { "used on the other stream, recorded", TRAFFIC_RECORD_USE, 2, 1, 0, 0, false, false },
  { "ring of 8 streams", TRAFFIC_EITHER, 8, 1, 0, 0, true, false },
  { "directions alternate", TRAFFIC_OTHER, 2, 1, 0, 0, true, false },
  { "6 threads with short-lived streams", TRAFFIC_EITHER, 2, 6, 4, 0, false, false },
  { "sizes grow", TRAFFIC_EITHER, 2, 1, 0, 0, false, true },
  { "uses on several streams", TRAFFIC_SEVERAL_USES, 4, 1, 0, 0, true, false },
  { "host 3 rounds ahead, other stream", TRAFFIC_OTHER, 2, 1, 0, 3, false, false },
  { "host 3 rounds ahead, ring of 8", TRAFFIC_EITHER, 8, 1, 0, 3, true, false },
  { "short-lived streams, recorded", TRAFFIC_RECORD_USE, 2, 1, 2, 0, false, false },
};
const unsigned traffic_pattern_count = sizeof traffic_patterns / sizeof *traffic_patterns;

#define TRY(call) \
  if ((call) != RILL_OK) return #call

struct worker {
  rill_stream streams[MOST_STREAMS];
  rill_event ends[MOST_LAG + 1][MOST_STREAMS]; /* of a round, on each stream; by round */
  uint64_t bytes[MOST_LAG + 1];                /* allocated in it */
  unsigned random, round, rounds;
};

static struct {
  rill_device device;
  rill_pool pool;
  const struct traffic_pattern *pattern;
  const struct traffic_allocator *other;
  bool fixed;
  _Atomic uint64_t outstanding, peak;
} run;

static unsigned pick(struct worker *worker, unsigned below) {
  worker->random = worker->random * 1664525 + 1013904223;
  return (worker->random >> 8) % below;
}

/* ---- sizes ---- */

static size_t pick_size(struct worker *worker) {
  static const size_t fixed[] = { 4 << 10, 60000, 256 << 10, 1 << 20 };
  if (run.pattern->grows) { /* by a factor of 2 in each tenth of the cycle */
    const size_t least = (size_t)8192 << (worker->round % CYCLE) / (CYCLE / 10);
    return least + (run.fixed ? 0 : pick(worker, (unsigned)least));
  }
  return run.fixed ? fixed[pick(worker, 4)] : 100 + pick(worker, 65000);
}

/* What an allocator has to have for a block: in granules, as pools round. */
static uint64_t rounded(size_t size) {
  const uint64_t granule = size > 256 << 10 ? 32 << 10 : 512;
  return (size + granule - 1) / granule * granule;
}

static void count(struct worker *worker, size_t size) {
  worker->bytes[worker->round % (MOST_LAG + 1)] += rounded(size);
  const uint64_t now = atomic_fetch_add(&run.outstanding, rounded(size)) + rounded(size);
  uint64_t peak = atomic_load(&run.peak);
  while (peak < now && !atomic_compare_exchange_weak(&run.peak, &peak, now)) {
  }
}

/* ---- one block ---- */

static int allocate(rill_stream stream, size_t size, void **out) {
  return run.other != NULL ? run.other->alloc(stream, size, out)
                           : (int)rill_pool_alloc_async(run.pool, stream, size, out);
}

static int release(rill_stream stream, void *p) {
  return run.other != NULL ? run.other->free(stream, p) : (int)rill_free_async(stream, p);
}

static uint64_t reserved(void) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  if (run.other != NULL) return run.other->reserved();
  return rill_pool_get_info(run.pool, &info) == RILL_OK ? info.reserved : 0;
}

/* Each of several uses has a word of the block to itself.  Another allocator does not know of recorded uses: its stream
 * waits for them. */
static const char *use_elsewhere(rill_stream own, rill_stream other, void *p, unsigned word) {
  TRY(rill_stream_wait_stream(other, own));
  TRY(rill_fill_async(other, (uint32_t *)p + word, &(uint32_t){ 2 }, 4, 1));
  if (run.other == NULL) TRY(rill_memory_record_use(p, other));
  if (run.other != NULL) TRY(rill_stream_wait_stream(own, other));
  return NULL;
}

static const char *pass_block(struct worker *worker, unsigned from) {
  const struct traffic_pattern *pattern = run.pattern;
  const rill_stream own = worker->streams[from], next = worker->streams[(from + 1) % pattern->streams];
  const size_t size = pick_size(worker);
  void *p = NULL;
  count(worker, size);
  TRY(allocate(own, size, &p));
  TRY(rill_fill_async(own, p, &(uint32_t){ 1 }, 4, 25));
  const char *failure = NULL;
  bool away = pattern->way == TRAFFIC_OTHER || (pattern->way == TRAFFIC_EITHER && pick(worker, 2) == 0);
  if (pattern->way == TRAFFIC_RECORD_USE) failure = use_elsewhere(own, next, p, 0);
  for (unsigned i = 1; i + 1 < pattern->streams && pattern->way == TRAFFIC_SEVERAL_USES && failure == NULL; i++) {
    failure = use_elsewhere(own, worker->streams[(from + 1 + i) % pattern->streams], p, i);
    away = true;
  }
  if (failure != NULL) return failure;
  if (away) TRY(rill_stream_wait_stream(next, own));
  TRY(release(away ? next : own, p));
  return NULL;
}

/* ---- rounds ---- */

/* Waits until the round that many before is complete, with all of its memory. */
static const char *finish_round(struct worker *worker, unsigned before) {
  const unsigned slot = (worker->round + MOST_LAG + 1 - before) % (MOST_LAG + 1);
  for (unsigned i = 0; i < run.pattern->streams; i++) {
    if (worker->ends[slot][i].id == 0) continue;
    TRY(rill_event_synchronize(worker->ends[slot][i]));
    TRY(rill_event_release(worker->ends[slot][i]));
    worker->ends[slot][i] = RILL_NULL_EVENT;
  }
  atomic_fetch_sub(&run.outstanding, worker->bytes[slot]);
  worker->bytes[slot] = 0;
  return NULL;
}

static const char *finish_all(struct worker *worker) {
  const char *failure = NULL;
  for (unsigned before = 0; before <= MOST_LAG && failure == NULL; before++) failure = finish_round(worker, before);
  for (unsigned i = 0; i < run.pattern->streams; i++) TRY(rill_stream_synchronize(worker->streams[i]));
  return failure;
}

static const char *make_streams(struct worker *worker) {
  for (unsigned i = 0; i < run.pattern->streams; i++) {
    TRY(rill_stream_create(run.device, NULL, &worker->streams[i]));
  }
  return NULL;
}

static const char *end_streams(struct worker *worker) {
  for (unsigned i = 0; i < run.pattern->streams; i++) TRY(rill_stream_release(worker->streams[i]));
  return NULL;
}

static const char *play_round(struct worker *worker) {
  const struct traffic_pattern *pattern = run.pattern;
  const unsigned from = pattern->turns ? worker->round % pattern->streams : 0;
  const char *failure = NULL;
  if (pattern->lifetime != 0 && worker->round % pattern->lifetime == 0) {
    if (worker->round != 0) failure = end_streams(worker);
    if (failure == NULL) failure = make_streams(worker);
  }
  for (unsigned i = 0; i < BLOCKS && failure == NULL; i++) failure = pass_block(worker, from);
  for (unsigned i = 0; i < pattern->streams && pattern->lag != 0 && failure == NULL; i++) {
    rill_event *end = &worker->ends[worker->round % (MOST_LAG + 1)][i];
    TRY(rill_stream_record_new_event(worker->streams[i], NULL, end));
  }
  if (failure != NULL) return failure;
  if (pattern->lag != 0) {
    failure = finish_round(worker, pattern->lag);
  } else {
    for (unsigned i = 0; i < pattern->streams; i++) TRY(rill_stream_synchronize(worker->streams[i]));
    failure = finish_round(worker, 0);
  }
  worker->round++;
  return failure;
}

static void *play_rounds(void *argument) {
  struct worker *worker = argument;
  const char *failure = NULL;
  for (unsigned end = worker->round + worker->rounds; worker->round < end && failure == NULL;) {
    failure = play_round(worker);
  }
  return (void *)failure;
}

/* So many rounds of each thread. */
static const char *play(struct worker *workers, unsigned rounds) {
  pthread_t threads[MOST_THREADS];
  const char *failure = NULL;
  for (unsigned i = 0; i < run.pattern->threads; i++) workers[i].rounds = rounds;
  if (run.pattern->threads == 1) return play_rounds(&workers[0]);
  for (unsigned i = 0; i < run.pattern->threads; i++) {
    if (pthread_create(&threads[i], NULL, play_rounds, &workers[i]) != 0) abort();
  }
  for (unsigned i = 0; i < run.pattern->threads; i++) {
    void *result = NULL;
    (void)pthread_join(threads[i], &result);
    if (result != NULL) failure = result;
  }
  return failure;
}

/* ---- a run ---- */

static double now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static const char *play_both(struct worker *workers, unsigned rounds, struct traffic_numbers *numbers) {
  const unsigned threads = run.pattern->threads;
  const char *failure = play(workers, TRAFFIC_EARLY);
  if (failure != NULL) return failure;
  numbers->early = reserved();
  const double start = now_ns();
  failure = play(workers, rounds - TRAFFIC_EARLY);
  numbers->ns = (now_ns() - start) / (rounds > TRAFFIC_EARLY ? rounds - TRAFFIC_EARLY : 1);
  numbers->reserved = reserved();
  numbers->peak = atomic_load(&run.peak);
  for (unsigned i = 0; i < threads && failure == NULL; i++) failure = finish_all(&workers[i]);
  for (unsigned i = 0; i < threads && failure == NULL; i++) failure = end_streams(&workers[i]);
  return failure;
}

const char *traffic_run(rill_device device, const struct traffic_pattern *pattern, unsigned rounds, bool fixed,
                        const struct traffic_allocator *other, struct traffic_numbers *numbers) {
  static struct worker workers[MOST_THREADS];
  memset(workers, 0, sizeof workers);
  run.device = device;
  run.pattern = pattern;
  run.other = other;
  run.fixed = fixed;
  atomic_store(&run.outstanding, 0);
  atomic_store(&run.peak, 0);
  if (other != NULL) TRY(other->open(device));
  if (other == NULL) TRY(rill_pool_create(device, RILL_POOL_OPTIONS(.label = pattern->name), &run.pool));
  const char *failure = NULL;
  for (unsigned i = 0; i < pattern->threads; i++) {
    workers[i].random = i * 2654435761u + 17;
    if (pattern->lifetime == 0 && failure == NULL) failure = make_streams(&workers[i]);
  }
  if (failure == NULL) failure = play_both(workers, rounds < TRAFFIC_EARLY ? TRAFFIC_EARLY : rounds, numbers);
  if (failure != NULL) return failure;
  if (other != NULL) {
    other->close();
    return NULL;
  }
  rill_pool_info info = RILL_POOL_INFO_INIT;
  TRY(rill_pool_trim(run.pool, 0));
  TRY(rill_pool_get_info(run.pool, &info));
  TRY(rill_pool_release(run.pool));
  if (info.used != 0) return "memory is in use at the end";
  return info.reserved == 0 ? NULL : "memory remains reserved when nothing is in use";
}
