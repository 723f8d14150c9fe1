/* Measures the cost of a call beside other streams: ns per call on one stream beside 1, 100 and 10,000 others. No rill
 * call may cost more because of other objects; calls that have to wait for n busy streams are not measured.
 *
 *     growth [--csv] [--only WORDS] [DEVICE ...]     cuda:0, hip:0, cpu; none: the cpu.  WORDS: part of rows' names
 *
 * Each other stream has had work, has an event that was recorded on it and memory of the pool that is allocated, and
 * has freed some; where a row says so it is held, or has been released.  Printed is the least of several batches.
 * Nothing is judged: the exit status is 1 if a call failed, else 0. */
#include "growth.h"

#include "gate.rill.h"
#include "overhead.rill.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEVELS = 3, FEW_BYTES = 64, CALLS = 32, ROUNDS = 60, PASSES = 3, LEAST_NS = 10000000 };
static const size_t levels[LEVELS] = { 1, 100, GROWTH_MOST };

static const char *only = "";

struct bench bench = { .gate = PTHREAD_MUTEX_INITIALIZER };

void need(rill_status status, const char *what) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "growth: %s: %s: %s\n", bench.name, what, rill_last_error_text());
  exit(1);
}

double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- the calls ---- */

static const rill_launch one_thread = { .struct_size = sizeof(rill_launch), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

static void launch(void) {
  NEED(rill_stream_launch(bench.stream, bench.five, &one_thread,
                          RILL_ARGS(1024, 2.0f, (void *)bench.memory, (void *)bench.memory, (void *)bench.memory)));
}

static void launch_on(rill_stream stream) {
  const unsigned step = 1;
  const rill_constant constant = { "gate_step", &step, sizeof step };
  rill_launch shape = one_thread;
  shape.constants = &constant;
  shape.constant_count = 1;
  NEED(rill_stream_launch(stream, bench.add_step, &shape, RILL_ARGS((void *)bench.memory)));
}

static void launch_with_constants(void) { launch_on(bench.stream); }
static void copy(void) { NEED(rill_copy_async(bench.stream, bench.memory, bench.host, BYTES)); }
static void fill(void) { NEED(rill_fill_async(bench.stream, bench.memory, &(uint32_t){ 7 }, 4, BYTES / 4)); }
static void record(void) { NEED(rill_stream_record_event(bench.stream, bench.event, 0)); }
static void wait_event(void) { NEED(rill_stream_wait_event(bench.next, bench.event, 0)); }
static void wait_stream(void) { NEED(rill_stream_wait_stream(bench.next, bench.stream)); }
static void host_call(void) { NEED(rill_stream_host_call(bench.stream, do_nothing, NULL)); }

static void query_stream(void) {
  bool complete;
  NEED(rill_stream_is_complete(bench.stream, &complete));
}

static void query_event(void) {
  bool ready;
  NEED(rill_event_is_ready(bench.event, &ready));
}

static void synchronize(void) { NEED(rill_stream_synchronize(bench.stream)); }

static void record_new(void) {
  rill_event event;
  NEED(rill_stream_record_new_event(bench.stream, NULL, &event));
  NEED(rill_event_release(event));
}

static void event_life(void) {
  rill_event event;
  NEED(rill_event_create(bench.device, NULL, &event));
  NEED(rill_event_release(event));
}

static void stream_life(void) {
  rill_stream stream;
  NEED(rill_stream_create(bench.device, NULL, &stream));
  NEED(rill_stream_release(stream));
}

static void pool_life(void) {
  void *p;
  NEED(rill_alloc_async(bench.stream, BYTES, &p));
  NEED(rill_free_async(bench.stream, p));
}

/* With work between, so that the stream's cache is used. */
static void pool_life_busy(void) {
  void *p;
  NEED(rill_alloc_async(bench.stream, BYTES, &p));
  NEED(rill_fill_async(bench.stream, p, &(uint32_t){ 7 }, 4, BYTES / 4));
  NEED(rill_free_async(bench.stream, p));
}

/* Memory that another stream uses and frees, and whose use by a third one is recorded. */
static void pass_memory(void) {
  void *p;
  NEED(rill_alloc_async(bench.stream, BYTES, &p));
  NEED(rill_fill_async(bench.stream, p, &(uint32_t){ 7 }, 4, BYTES / 4));
  NEED(rill_stream_wait_stream(bench.next, bench.stream));
  NEED(rill_memory_record_use(p, bench.next));
  NEED(rill_free_async(bench.stream, p));
}

/* One block, which ever more streams use. */
static void *shared;
static void use_shared(void) { NEED(rill_memory_record_use(shared, bench.stream)); }

static void memory_life(void) {
  void *p;
  NEED(rill_alloc(bench.device, BYTES, RILL_MEMORY_DEVICE, &p));
  NEED(rill_free(p));
}

static void *allocated[CALLS];
static int allocations;

static void allocate_one(int i) {
  NEED(rill_alloc(bench.device, FEW_BYTES, RILL_MEMORY_DEVICE, &allocated[i]));
  allocations = i + 1;
}

static void free_one(void) { NEED(rill_free(allocated[--allocations])); }

/* A stream is held and released by one call each. */
static void hold_and_record(void) {
  rill_event event;
  NEED(rill_event_create(bench.device, NULL, &event));
  NEED(rill_stream_wait_event(bench.next, event, 0));
  NEED(rill_stream_record_event(bench.stream, event, 0));
  NEED(rill_event_release(event));
}

/* ---- the others ---- */

static void drain(void) {
  NEED(rill_stream_synchronize(bench.stream));
  NEED(rill_stream_synchronize(bench.next));
}

static void make_other(struct other *other) {
  void *p;
  NEED(rill_stream_create(bench.device, NULL, &other->stream));
  NEED(rill_event_create(bench.device, NULL, &other->event));
  NEED(rill_alloc_async(other->stream, BYTES, &other->memory));
  NEED(rill_alloc_async(other->stream, BYTES, &p));
  NEED(rill_fill_async(other->stream, p, &(uint32_t){ 7 }, 4, BYTES / 4));
  NEED(rill_free_async(other->stream, p));
  NEED(rill_stream_record_event(other->stream, other->event, 0));
}

static void end_other(struct other *other) {
  NEED(rill_free_async(other->stream, other->memory));
  NEED(rill_event_release(other->event));
  NEED(rill_stream_release(other->stream));
}

static void have_others(size_t count) {
  for (; bench.count < count; bench.count++) make_other(&bench.others[bench.count]);
  for (; bench.count > count; bench.count--) end_other(&bench.others[bench.count - 1]);
  NEED(rill_device_synchronize(bench.device));
}

void make_none(size_t count) { (void)count; }

static void release_others(size_t count) {
  have_others(0);
  have_others(count);
  have_others(0);
}

/* Each for an event of its own, with a copy that is held. */
void hold_others(size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct other *other = &bench.others[i];
    NEED(rill_event_release(other->event));
    NEED(rill_event_create(bench.device, NULL, &other->event));
    NEED(rill_stream_wait_event(other->stream, other->event, 0));
    NEED(rill_copy_async(other->stream, other->memory, bench.host, BYTES));
  }
}

void let_others_go(size_t count) {
  for (size_t i = 0; i < count; i++) NEED(rill_stream_record_event(bench.stream, bench.others[i].event, 0));
  NEED(rill_device_synchronize(bench.device));
}

static void pass_gate(void *user, rill_status status) {
  (void)status;
  pthread_mutex_lock(user);
  pthread_mutex_unlock(user);
}

/* Their work is all after a host call that waits, on the cpu; other devices have done theirs. */
static void block_others(size_t count) {
  if (bench.cpu) {
    pthread_mutex_lock(&bench.gate);
    NEED(rill_stream_host_call(bench.others[0].stream, pass_gate, &bench.gate));
  }
  NEED(rill_stream_record_event(bench.others[0].stream, bench.pending, 0));
  for (size_t i = 1; i < count; i++) NEED(rill_stream_wait_event(bench.others[i].stream, bench.pending, 0));
}

static void launch_with_constants_on_others(size_t count) {
  block_others(count);
  for (size_t i = 0; i < count; i++) launch_on(bench.others[i].stream);
}

/* Each of them also has a block that waits for the use of the next one, which is blocked. */
static void let_blocks_wait(size_t count) {
  block_others(count);
  for (size_t i = 0; i < count; i++) {
    void *p;
    NEED(rill_alloc_async(bench.others[i].stream, BYTES, &p));
    NEED(rill_memory_record_use(p, bench.others[(i + 1) % count].stream));
    NEED(rill_free_async(bench.others[i].stream, p));
  }
}

static void share_block(size_t count) {
  NEED(rill_alloc_async(bench.stream, BYTES, &shared));
  for (size_t i = 0; i < count; i++) NEED(rill_memory_record_use(shared, bench.others[i].stream));
}

static void free_shared(size_t count) {
  (void)count;
  NEED(rill_free_async(bench.stream, shared));
  NEED(rill_device_synchronize(bench.device));
}

/* ---- memory that held work may use, or that many streams do ---- */

static _Alignas(4096) char region[4096];

static void register_region(void) {
  NEED(rill_host_register(bench.device, region, sizeof region));
  NEED(rill_host_unregister(region));
}

/* Each other stream, with a fill. */
static void hold_fills(size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct other *other = &bench.others[i];
    NEED(rill_event_release(other->event));
    NEED(rill_event_create(bench.device, NULL, &other->event));
    NEED(rill_stream_wait_event(other->stream, other->event, 0));
    NEED(rill_fill_async(other->stream, other->memory, &(uint32_t){ 7 }, 4, BYTES / 4));
  }
}

/* Each stream uses one block, in turns: for each use. */
static double time_turns(size_t count, void *block) {
  double least = 1e18;
  for (int round = 0; round < 5; round++) {
    const double start = now();
    for (size_t i = 0; i < count; i++) NEED(rill_memory_record_use(block, bench.others[i].stream));
    const double ns = (now() - start) / (double)count;
    if (ns < least) least = ns;
  }
  return least;
}

static double time_uses(size_t count) {
  NEED(rill_alloc_async(bench.stream, BYTES, &shared));
  const double ns = time_turns(count, shared);
  free_shared(count);
  return ns;
}

/* Of memory of rill_alloc only uses by streams that are held are noted on its own device. */
static double time_held_uses(size_t count) {
  void *pinned;
  NEED(rill_alloc(bench.device, BYTES, RILL_MEMORY_PINNED, &pinned));
  hold_others(count);
  const double ns = time_turns(count, pinned);
  let_others_go(count);
  NEED(rill_free(pinned));
  return ns;
}

static void open_others(size_t count) {
  (void)count;
  if (bench.cpu) pthread_mutex_unlock(&bench.gate);
  NEED(rill_device_synchronize(bench.device));
}

/* ---- timing ---- */

static double time_calls(const struct row *row) {
  double least = 1e18;
  const double started = now();
  for (int round = 0; round < ROUNDS || now() - started < (double)LEAST_NS; round++) {
    for (int i = 0; i < CALLS && row->prepare != NULL; i++) row->prepare(i);
    const double start = now();
    for (int i = 0; i < CALLS; i++) row->call();
    const double ns = (now() - start) / (double)CALLS;
    if (ns < least) least = ns;
    drain();
  }
  return least;
}

/* Of n streams that wait for as many marks of one busy stream of the cpu: time until all have continued, for each
 * stream. */
static double time_waits(size_t count) {
  double least = 1e18;
  for (int round = 0; round < 20; round++) {
    struct other *const first = &bench.others[0];
    pthread_mutex_lock(&bench.gate);
    NEED(rill_stream_host_call(first->stream, pass_gate, &bench.gate));
    const double start = now();
    for (size_t i = 0; i < count; i++) {
      struct other *const other = &bench.others[i];
      NEED(rill_stream_record_event(first->stream, other->event, 0));
      NEED(rill_stream_wait_event(i > 0 ? other->stream : bench.next, other->event, 0));
    }
    pthread_mutex_unlock(&bench.gate);
    NEED(rill_device_synchronize(bench.device));
    const double ns = (now() - start) / (double)count;
    if (ns < least) least = ns;
  }
  return least;
}

static const struct row rows[] = {
  { "launch, 5 arguments", launch, make_none, make_none, KERNELS, NULL },
  { "launch with constants", launch_with_constants, make_none, make_none, CONSTANTS, NULL },
  { "launch with constants, beside as many under way", launch_with_constants, launch_with_constants_on_others,
    open_others, CONSTANTS, NULL },
  { "copy 4 KiB, pinned to device", copy, make_none, make_none, HOST, NULL },
  { "fill 4 KiB", fill, make_none, make_none, HOST, NULL },
  { "record event", record, make_none, make_none, HOST, NULL },
  { "record event, beside held streams", record, hold_others, let_others_go, HOST, NULL },
  { "record new event + release", record_new, make_none, make_none, HOST, NULL },
  { "wait for event", wait_event, make_none, make_none, HOST, NULL },
  { "wait for stream", wait_stream, make_none, make_none, HOST, NULL },
  { "hold a stream + record, beside held streams", hold_and_record, hold_others, let_others_go, HOST, NULL },
  { "query stream", query_stream, make_none, make_none, HOST, NULL },
  { "query event", query_event, make_none, make_none, HOST, NULL },
  { "synchronize stream", synchronize, make_none, make_none, HOST, NULL },
  { "host call", host_call, make_none, make_none, HOST, NULL },
  { "create + release event", event_life, make_none, make_none, HOST, NULL },
  { "create + release event, beside streams that wait", event_life, block_others, open_others, HOST, NULL },
  { "create + release stream", stream_life, make_none, make_none, HOST, NULL },
  { "allocate + free, in stream order", pool_life, make_none, make_none, HOST, NULL },
  { "allocate + fill + free, in stream order", pool_life_busy, make_none, make_none, HOST, NULL },
  { "allocate + fill + free, other streams released", pool_life_busy, release_others, make_none, HOST, NULL },
  { "allocate + fill + free, beside streams that wait", pool_life_busy, block_others, open_others, HOST, NULL },
  { "allocate + record a use + free", pass_memory, make_none, make_none, HOST, NULL },
  { "allocate + record a use + free, beside waiting blocks", pass_memory, let_blocks_wait, open_others, HOST, NULL },
  { "record a use, of a block with as many uses", use_shared, share_block, free_shared, HOST, NULL },
  { "allocate + free", memory_life, make_none, make_none, HOST, NULL },
  { "free, beside held streams", free_one, hold_others, let_others_go, HOST, allocate_one },
  { "register + unregister host memory, beside held fills", register_region, hold_fills, let_others_go, HOST, NULL },
};

static const struct each_row uses = { "as many streams record a use of one block, for each", time_uses };
static const struct each_row held_uses = { "as many held streams record a use of one block, for each", time_held_uses };
static const struct each_row waits = { "as many streams wait for events of one, for each", time_waits };

static void print_row(const char *name, const double ns[LEVELS]) {
  if (bench.csv) {
    (void)printf("%s,\"%s\",%.1f,%.1f,%.1f\n", bench.name, name, ns[0], ns[1], ns[2]);
  } else {
    (void)printf("%-50s %9.0f %9.0f %9.0f %7.2f\n", name, ns[0], ns[1], ns[2], ns[2] / ns[0]);
  }
  (void)fflush(stdout);
}

static bool is_here(const struct row *row) {
  return strstr(row->name, only) != NULL &&
         (row->needs == HOST || (bench.launches && (row->needs == KERNELS || bench.constants)));
}

/* Runs in several passes, since other programs may slow the machine for a while. */
static void measure(const struct row *row) {
  double ns[LEVELS];
  for (size_t i = 0; i < PASSES * LEVELS; i++) {
    const size_t level = i % LEVELS;
    have_others(levels[level]);
    row->before(levels[level]);
    (void)time_calls(row); /* leftovers of the others are freed */
    const double least = time_calls(row);
    if (i < LEVELS || least < ns[level]) ns[level] = least;
    row->after(levels[level]);
  }
  print_row(row->name, ns);
}

static void measure_each(const struct each_row *row) {
  double ns[LEVELS];
  if (strstr(row->name, only) == NULL) return;
  for (size_t i = 0; i < PASSES * LEVELS; i++) {
    const size_t level = i % LEVELS;
    have_others(levels[level]);
    const double least = row->time(levels[level]);
    if (i < LEVELS || least < ns[level]) ns[level] = least;
  }
  print_row(row->name, ns);
}

static void measure_all(const struct row *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (is_here(&list[i])) measure(&list[i]);
  }
}

static void open_bench(const char *name) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_module module;
  void *variable;
  size_t size;
  bench.name = name;
  NEED(rill_device_open(name, &bench.device));
  NEED(rill_device_get_info(bench.device, &info));
  bench.cpu = info.backend == RILL_BACKEND_CPU;
  const rill_status status = rill_module_load(bench.device, &overhead_bundle, &module);
  bench.launches = status == RILL_OK;
  if (bench.launches) {
    NEED(rill_module_get_kernel(module, "five", &bench.five));
    NEED(rill_module_load(bench.device, &gate_bundle, &module));
    NEED(rill_module_get_kernel(module, "add_step", &bench.add_step));
    bench.constants = rill_module_get_global(module, "gate_step", &variable, &size) == RILL_OK;
  } else if (status != RILL_ERROR_NOT_FOUND) {
    NEED(status);
  }
  NEED(rill_stream_create(bench.device, NULL, &bench.stream));
  NEED(rill_stream_create(bench.device, NULL, &bench.next));
  NEED(rill_event_create(bench.device, NULL, &bench.event));
  NEED(rill_event_create(bench.device, NULL, &bench.pending));
  NEED(rill_alloc(bench.device, BYTES, RILL_MEMORY_DEVICE, (void **)&bench.memory));
  NEED(rill_alloc(bench.device, BYTES, RILL_MEMORY_PINNED, (void **)&bench.host));
  memset(bench.host, 0, BYTES);
  NEED(rill_stream_record_event(bench.stream, bench.event, 0));
}

static void close_bench(void) {
  have_others(0);
  NEED(rill_free(bench.memory));
  NEED(rill_free(bench.host));
  NEED(rill_event_release(bench.event));
  NEED(rill_event_release(bench.pending));
  NEED(rill_stream_release(bench.stream));
  NEED(rill_stream_release(bench.next));
}

int main(int argc, char **argv) {
  const char *devices[16] = { "cpu" };
  size_t count = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--csv") == 0) {
      bench.csv = true;
    } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else if (argv[i][0] != '-' && count < sizeof devices / sizeof *devices) {
      devices[count++] = argv[i];
    } else {
      (void)fprintf(stderr, "usage: growth [--csv] [--only WORDS] [DEVICE ...]\n");
      return 2;
    }
  }
  if (bench.csv) (void)printf("device,call,beside 1,beside 100,beside 10000\n");
  for (size_t i = 0; i == 0 || i < count; i++) {
    open_bench(devices[i]);
    if (!bench.csv) {
      (void)printf("%s\n%-50s %9s %9s %9s %7s\n", bench.name, "ns per call, beside so many streams", "1", "100",
                   "10,000", "growth");
    }
    measure_all(rows, sizeof rows / sizeof *rows);
    measure_each(&uses);
    measure_each(&held_uses);
    measure_all(graph_rows, graph_row_count);
    for (size_t k = 0; k < graph_each_row_count; k++) measure_each(&graph_each_rows[k]);
    if (bench.cpu) measure_each(&waits);
    close_bench();
  }
  return 0;
}
