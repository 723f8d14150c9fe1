/* How much of a pool's memory is in use: allocation traces of two kinds of programs, replayed.
 *
 *     traces [DEVICE]      default: cpu
 *
 * The traces are derived, not recorded:
 * - training: a transformer's step.  The sizes follow from its shape (layers, hidden size, sequence, batch of bf16):
 *   weights, gradients and two moments live for ever; forward, each layer allocates its activations and a workspace
 *   that goes at once; backward, the layers in reverse order allocate a gradient of their output and a workspace, and
 *   free their activations and the gradient before.  The batch's sequence length changes from step to step.
 * - server: requests come at random, each with a prompt of random length (most are short, few long), grow a key-value
 *   cache in pieces of 64 tokens for a random number of rounds, need a workspace each round, and free everything at
 *   their end.  Four streams, a request on one of them.
 * Sizes are divided by 16, so that any machine has the memory.  Printed: the peak of what was asked for and is live;
 * the pool's peaks; fragmentation, which is the reserved peak over the live one; the hit rate, of allocations that took
 * nothing from the driver; and the time of an allocation with its free, misses included, the least of several more
 * runs, which ask the pool for no numbers. */
#include <rill/rill.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 20, STREAMS = 4, SCALE = 16, LAYERS = 24, HIDDEN = 2048, BATCH = 8, REQUESTS = 64, PIECES = 512 };

static struct {
  rill_device device;
  rill_stream streams[STREAMS];
  rill_pool pool;
  uint64_t live, live_peak, calls, misses;
  bool timed;            /* else counted */
  double started, least; /* ns */
  unsigned random;
} trace;

struct piece {
  void *memory;
  size_t size;
};

static unsigned pick(unsigned below) {
  trace.random = trace.random * 1664525 + 1013904223;
  return (trace.random >> 8) % below;
}

static void need(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "traces: %s\n", rill_last_error_text());
  exit(1);
}

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t reserved(void) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  if (!trace.timed) need(rill_pool_get_info(trace.pool, &info));
  return info.reserved;
}

static struct piece make(unsigned stream, size_t size) {
  struct piece piece = { NULL, size / SCALE };
  const uint64_t before = reserved();
  need(rill_pool_alloc_async(trace.pool, trace.streams[stream], piece.size, &piece.memory));
  trace.live += piece.size;
  trace.calls++;
  trace.misses += reserved() != before;
  if (trace.live_peak < trace.live) trace.live_peak = trace.live;
  return piece;
}

static void end(unsigned stream, struct piece *piece) {
  need(rill_free_async(trace.streams[stream], piece->memory));
  trace.live -= piece->size;
  piece->memory = NULL;
}

static void begin_trace(void) {
  need(rill_pool_create(trace.device, NULL, &trace.pool));
  for (int i = 0; i < STREAMS; i++) need(rill_stream_create(trace.device, NULL, &trace.streams[i]));
  trace.live = trace.live_peak = trace.calls = trace.misses = 0;
  trace.random = 12345;
  trace.started = now();
}

static rill_pool_info counted; /* at the end of the run that counts */

static void end_trace(void) {
  const double spent = now() - trace.started;
  if (trace.timed && (trace.least == 0 || spent < trace.least)) trace.least = spent;
  if (!trace.timed) need(rill_pool_get_info(trace.pool, &counted));
  for (int i = 0; i < STREAMS; i++) need(rill_stream_release(trace.streams[i]));
  need(rill_pool_release(trace.pool));
}

static void step(size_t sequence) {
  static struct piece activations[LAYERS][4];
  const size_t tokens = BATCH * sequence, plane = tokens * HIDDEN * 2;
  for (int i = 0; i < LAYERS; i++) {
    const size_t sizes[4] = { plane, 3 * plane, 4 * plane, tokens * 4 * 16 };
    for (int j = 0; j < 4; j++) {
      struct piece workspace = make(0, j == 1 ? BATCH * 16 * sequence * sequence * 2 : plane / 2);
      activations[i][j] = make(0, sizes[j]);
      end(0, &workspace);
    }
  }
  struct piece logits = make(0, tokens * 32000 * 2), gradient = make(0, plane);
  end(0, &logits);
  for (int i = LAYERS; i-- > 0;) {
    struct piece workspace = make(0, 4 * plane), next = make(0, plane);
    for (int j = 4; j-- > 0;) end(0, &activations[i][j]);
    end(0, &gradient);
    end(0, &workspace);
    gradient = next;
  }
  end(0, &gradient);
}

static void train(void) {
  static struct piece weights[LAYERS][4];
  begin_trace();
  for (int i = 0; i < LAYERS; i++) {
    for (int j = 0; j < 4; j++) weights[i][j] = make(0, (size_t)12 * HIDDEN * HIDDEN * (j < 2 ? 2 : 4));
  }
  for (int i = 0; i < 30; i++) step(256 + 64 * pick(13));
  for (int i = 0; i < LAYERS; i++) {
    for (int j = 0; j < 4; j++) end(0, &weights[i][j]);
  }
  end_trace();
}

static struct request {
  struct piece pieces[PIECES];
  unsigned count, rounds;
} requests[REQUESTS];

static void serve(void) {
  const size_t token = (size_t)2 * LAYERS * HIDDEN * 2;
  begin_trace();
  for (int round = 0; round < 4000; round++) {
    const unsigned place = pick(REQUESTS), stream = place % STREAMS;
    struct request *request = &requests[place];
    if (request->count == 0) {
      const unsigned prompt = 16u << pick(pick(8) == 0 ? 8 : 4);
      request->rounds = 1 + pick(40);
      request->pieces[request->count++] = make(stream, token * (prompt + pick(prompt)));
    } else if (request->rounds-- == 0 || request->count == PIECES) {
      while (request->count > 0) end(stream, &request->pieces[--request->count]);
      continue;
    }
    struct piece workspace = make(stream, (size_t)HIDDEN * 4 * (1 + pick(512)));
    request->pieces[request->count++] = make(stream, token * 64);
    end(stream, &workspace);
    if (round % 50 == 0) need(rill_stream_synchronize(trace.streams[stream]));
  }
  for (unsigned i = 0; i < REQUESTS; i++) {
    while (requests[i].count > 0) end(i % STREAMS, &requests[i].pieces[--requests[i].count]);
  }
  end_trace();
}

static void replay(const char *name, void (*run)(void)) {
  const double mib = 1 << 20;
  counted = (rill_pool_info)RILL_POOL_INFO_INIT;
  trace.least = 0;
  trace.timed = false;
  run();
  const double pairs = (double)trace.calls, hits = pairs - (double)trace.misses;
  trace.timed = true;
  for (int round = 0; round < ROUNDS; round++) run();
  (void)printf("%-10s %8.0f %10.1f %10.1f %13.1f %14.3f %9.2f %% %11.1f\n", name, pairs, (double)trace.live_peak / mib,
               (double)counted.used_peak / mib, (double)counted.reserved_peak / mib,
               (double)counted.reserved_peak / (double)trace.live_peak, 100.0 * hits / pairs, trace.least / pairs);
}

int main(int count, char **arguments) {
  need(rill_device_open(count > 1 ? arguments[1] : "cpu", &trace.device));
  (void)printf("%-10s %8s %10s %10s %13s %14s %11s %11s\n", "trace", "pairs", "live MiB", "used MiB", "reserved MiB",
               "fragmentation", "hit rate", "ns a pair");
  replay("training", train);
  replay("server", serve);
  return 0;
}
