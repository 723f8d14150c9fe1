/* Each dispatched call of some programs made to fail by rill_fault_set: the first of a kind, the second, the third …
 * until a run makes none fail; and each from there on.  Each time the program gets the status and a text that names the
 * rule, its outputs are null, every host call that was accepted has run exactly once, nothing leaks, and the next run
 * works.  The vendors' own calls are made to fail in fail_nth.c.
 *
 *     sweep            every program
 *     sweep NAME RULE  one rule: sweep graphs graph_launch:2=timeout */
#include "core/backend.h"

#include "children.h"

#include "gate.rill.h"

#include <rill/bundle.h>
#include <stdio.h>

enum {
  WORDS = 64,
  BYTES = WORDS * sizeof(uint32_t),
  STREAMS = 5,
  EVENTS = 5,
  BLOCKS = 5,
  MOST_CALLS = 300,
  MOST_CHECKED_CALLS = 12
};

/* All objects that a program may have created; null again after their release. */
struct world {
  rill_stream streams[STREAMS];
  rill_event events[EVENTS];
  rill_module module;
  rill_kernel kernel;
  rill_pool pool;
  rill_graph graph, other_graph;
  rill_graph_exec exec;
  void *allocated[BLOCKS]; /* of rill_alloc */
  void *of_stream[BLOCKS]; /* of streams[0] */
  bool capturing, registered;
  uint32_t accepted;  /* host calls */
  uint32_t launched;  /* graphs with a host call */
  const char *failed; /* the call that did; NULL: none */
};

static uint32_t pageable[WORDS], registered[WORDS];
static _Atomic uint32_t ran;
static const char *place; /* the rule and the program, for what is reported */
static unsigned problems;
#define BAD(...) (problems++, print_error("%s: ", place), print_error(__VA_ARGS__), print_error("\n"))

static void count_call(void *user, rill_status status) {
  (void)user;
  (void)status;
  atomic_fetch_add(&ran, 1);
}

#define TRY(call)                       \
  do {                                  \
    const rill_status status_ = (call); \
    if (status_ != RILL_OK) {           \
      w->failed = #call;                \
      return status_;                   \
    }                                   \
  } while (0)

/* A call with an output, which is null after a failure. */
#define MAKE(out, call)                                                                              \
  do {                                                                                               \
    memset(&(out), 0xa5, sizeof(out));                                                               \
    const rill_status status_ = (call);                                                              \
    static const char null_[sizeof(out)];                                                            \
    if (status_ == RILL_OK) break;                                                                   \
    if (memcmp(&(out), null_, sizeof(out)) != 0) BAD("%s leaves an output that is not null", #call); \
    memset(&(out), 0, sizeof(out));                                                                  \
    w->failed = #call;                                                                               \
    return status_;                                                                                  \
  } while (0)

#define HOST_CALL(stream)                                 \
  do {                                                    \
    TRY(rill_stream_host_call(stream, count_call, NULL)); \
    w->accepted++;                                        \
  } while (0)

/* ---- programs ---- */

static const uint32_t pattern[4] = { 1, 2, 3, 4 };

static rill_status make_streams(struct world *w) {
  for (size_t i = 0; i < STREAMS - 1; i++) MAKE(w->streams[i], rill_stream_create(dut.device, NULL, &w->streams[i]));
  return RILL_OK;
}

static rill_status order(struct world *w) {
  float ms;
  bool out;
  uint64_t id;
  uintptr_t native;
  rill_event cached;
  TRY(make_streams(w));
  rill_stream first = w->streams[0], second = w->streams[1];
  MAKE(w->events[0], rill_event_create(dut.device, RILL_EVENT_OPTIONS(.timing = true), &w->events[0]));
  MAKE(w->events[1], rill_event_create(dut.device, RILL_EVENT_OPTIONS(.timing = true), &w->events[1]));
  MAKE(w->events[2], rill_event_create(dut.device, RILL_EVENT_OPTIONS(.blocking_sync = true), &w->events[2]));
  TRY(rill_stream_record_event(first, w->events[0], 0));
  HOST_CALL(first);
  TRY(rill_stream_record_event(first, w->events[1], 0));
  TRY(rill_stream_record_event(first, w->events[2], 0));
  TRY(rill_stream_wait_event(second, w->events[2], 0));
  HOST_CALL(second);
  TRY(rill_stream_wait_stream(first, second));
  TRY(rill_stream_wait_device(w->streams[2], dut.device));
  MAKE(w->events[3], rill_stream_record_new_event(first, NULL, &w->events[3]));
  MAKE(cached, rill_stream_cached_event(first, &cached));
  MAKE(out, rill_stream_is_complete(first, &out));
  MAKE(out, rill_event_is_ready(w->events[3], &out));
  MAKE(out, rill_stream_is_capturing(first, &out));
  MAKE(id, rill_stream_id(first, &id));
  TRY(rill_event_synchronize(w->events[1]));
  TRY(rill_event_synchronize(w->events[2]));
  MAKE(ms, rill_event_elapsed_time(w->events[0], w->events[1], &ms));
  TRY(rill_stream_synchronize_for(second, TIMEOUT_NS));
  TRY(rill_stream_synchronize(first));
  MAKE(native, rill_stream_context(first, &native));
  MAKE(native, rill_stream_native(w->streams[2], &native));
  if (native != 0) {
    MAKE(w->streams[4], rill_stream_import(dut.device, native, NULL, &w->streams[4]));
    TRY(rill_stream_validate(w->streams[4]));
    HOST_CALL(w->streams[4]);
    TRY(rill_stream_synchronize(w->streams[4]));
  }
  TRY(rill_device_synchronize(dut.device));
  return RILL_OK;
}

static rill_status memory(struct world *w) {
  rill_pool pool;
  uint64_t free_bytes, total_bytes;
  TRY(make_streams(w));
  rill_stream first = w->streams[0], second = w->streams[1];
  MAKE(w->allocated[0], rill_alloc(dut.device, BYTES, RILL_MEMORY_DEVICE, &w->allocated[0]));
  MAKE(w->allocated[1], rill_alloc(dut.device, BYTES, RILL_MEMORY_PINNED, &w->allocated[1]));
  uint32_t *device = w->allocated[0], *pinned = w->allocated[1];
  TRY(rill_fill_async(first, device, pattern, 16, WORDS / 4));
  TRY(rill_fill_2d_async(first, device, 32, pattern, 4, 4, 3));
  TRY(rill_copy_async(first, pinned, device, BYTES));
  TRY(rill_copy_2d_async(first, device, 64, pinned, 32, 16, 2));
  TRY(rill_copy_async(first, pageable, device, BYTES));
  TRY(rill_copy_async(first, device, pageable, BYTES));
  TRY(rill_copy_2d_async(first, pageable, 64, device, 64, 16, 4));
  TRY(rill_host_register(dut.device, registered, sizeof registered));
  w->registered = true;
  TRY(rill_copy_async(first, registered, device, BYTES));
  if (rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) {
    MAKE(w->allocated[2], rill_alloc(dut.device, BYTES, RILL_MEMORY_MANAGED, &w->allocated[2]));
    TRY(rill_memory_advise(w->allocated[2], BYTES, dut.device, RILL_ADVICE_READ_MOSTLY));
    if (!dut.gpu) TRY(rill_memory_prefetch_async(first, w->allocated[2], BYTES));
  }
  MAKE(w->of_stream[0], rill_alloc_async(first, BYTES, &w->of_stream[0]));
  MAKE(w->pool, rill_pool_create(dut.device, NULL, &w->pool));
  MAKE(w->of_stream[1], rill_pool_alloc_async(w->pool, first, 5 << 20, &w->of_stream[1]));
  TRY(rill_copy_async(first, w->of_stream[1], w->of_stream[0], BYTES));
  TRY(rill_stream_wait_stream(second, first));
  TRY(rill_fill_async(second, w->of_stream[1], pattern, 4, WORDS));
  TRY(rill_memory_record_use(w->of_stream[1], second));
  TRY(rill_free_async(first, w->of_stream[1]));
  w->of_stream[1] = NULL;
  TRY(rill_free_async(first, w->of_stream[0]));
  w->of_stream[0] = NULL;
  MAKE(w->of_stream[2], rill_pool_alloc_async(w->pool, second, 5 << 20, &w->of_stream[2]));
  TRY(rill_free(w->of_stream[2]));
  w->of_stream[2] = NULL;
  TRY(rill_stream_synchronize(first));
  TRY(rill_stream_synchronize(second));
  TRY(rill_pool_trim(w->pool, 0));
  if (rill_device_supports(dut.device, RILL_FEATURE_IPC, NULL)) {
    rill_ipc_handle handle;
    MAKE(handle, rill_memory_ipc_export(device, &handle));
  }
  if (dut.second.id != 0 && rill_device_can_access_peer(dut.device, dut.second, NULL)) {
    TRY(rill_device_enable_peer(dut.device, dut.second));
    TRY(rill_device_disable_peer(dut.device, dut.second));
  }
  MAKE(pool, rill_pool_default(dut.device, &pool));
  TRY(rill_pool_trim(pool, 0));
  MAKE(free_bytes, rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  TRY(rill_host_unregister(registered));
  w->registered = false;
  return RILL_OK;
}

static rill_status kernels(struct world *w) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  uint32_t blocks, threads;
  TRY(make_streams(w));
  MAKE(w->allocated[0], rill_alloc(dut.device, BYTES, RILL_MEMORY_DEVICE, &w->allocated[0]));
  uint32_t *counter = w->allocated[0];
  TRY(rill_fill_async(w->streams[0], counter, pattern, 4, WORDS));
  TRY(rill_bundle_unload(&gate_bundle));
  TRY(rill_bundle_preload(dut.device, &gate_bundle));
  TRY(increment_launch(w->streams[0], &shape, counter));
  MAKE(w->module, rill_module_load(dut.device, &gate_bundle, &w->module));
  MAKE(w->kernel, rill_module_get_kernel(w->module, "increment", &w->kernel));
  TRY(rill_kernel_get_info(w->kernel, &info));
  void *step;
  size_t size;
  MAKE(step, rill_module_get_global(w->module, "gate_step", &step, &size));
  MAKE(blocks, rill_kernel_occupancy(w->kernel, 32, 0, &blocks));
  MAKE(threads, rill_kernel_suggest_block(w->kernel, 0, 0, &threads, &blocks));
  TRY(rill_stream_launch(w->streams[0], w->kernel, &shape, RILL_ARGS(counter)));
  TRY(add_step_launch(w->streams[0], &shape, counter));
  TRY(rill_copy_async(w->streams[0], pageable, counter, BYTES));
  TRY(rill_stream_synchronize(w->streams[0]));
  if (pageable[0] != 3) BAD("the counter is %u, not 3", pageable[0]);
  return RILL_OK;
}

static rill_status held(struct world *w) {
  const rill_launch shape = rill_launch_1d(1, 1);
  TRY(make_streams(w));
  rill_stream first = w->streams[0], second = w->streams[1];
  MAKE(w->allocated[0], rill_alloc(dut.device, BYTES, RILL_MEMORY_DEVICE, &w->allocated[0]));
  uint32_t *counter = w->allocated[0];
  MAKE(w->events[0], rill_event_create(dut.device, NULL, &w->events[0]));
  MAKE(w->events[1], rill_event_create(dut.device, NULL, &w->events[1]));
  TRY(rill_stream_wait_event(first, w->events[0], 0));
  TRY(rill_fill_async(first, counter, pattern, 4, WORDS));
  HOST_CALL(first);
  TRY(increment_launch(first, &shape, counter));
  TRY(rill_copy_async(first, pageable, counter, BYTES));
  TRY(rill_stream_record_event(first, w->events[1], 0));
  TRY(rill_stream_wait_event(second, w->events[1], 0));
  HOST_CALL(second);
  TRY(rill_stream_wait_stream(w->streams[2], second));
  MAKE(w->of_stream[0], rill_alloc_async(first, BYTES, &w->of_stream[0]));
  TRY(rill_fill_async(first, w->of_stream[0], pattern, 4, WORDS));
  TRY(rill_free_async(first, w->of_stream[0]));
  w->of_stream[0] = NULL;
  HOST_CALL(w->streams[2]);
  TRY(rill_stream_record_event(w->streams[3], w->events[0], 0));
  for (size_t i = 0; i < 3; i++) TRY(rill_stream_synchronize(w->streams[i]));
  if (pageable[0] != 2) BAD("the counter is %u, not 2", pageable[0]);
  return RILL_OK;
}

static rill_status build_graph(struct world *w, uint32_t *counter, rill_graph_node *kernel, rill_graph_node *fill) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph_node last;
  TRY(rill_graph_add_fill(w->graph, NULL, 0, counter, pattern, 4, WORDS, fill));
  TRY(rill_graph_add_kernel(w->graph, fill, 1, w->kernel, &shape, RILL_ARGS(counter), kernel));
  TRY(rill_graph_add_copy(w->graph, kernel, 1, pageable, counter, BYTES, &last));
  TRY(rill_graph_add_host_call(w->graph, &last, 1, count_call, NULL, &last));
  TRY(rill_graph_add_event_record(w->graph, &last, 1, w->events[0], &last));
  return RILL_OK;
}

static rill_status capture(struct world *w, uint32_t *counter) {
  void *p = NULL;
  TRY(rill_stream_capture_begin(w->streams[0], RILL_CAPTURE_THREAD));
  w->capturing = true;
  TRY(rill_fill_async(w->streams[0], counter, pattern, 4, WORDS));
  TRY(rill_stream_wait_stream(w->streams[1], w->streams[0]));
  TRY(rill_copy_async(w->streams[1], pageable, counter, BYTES));
  TRY(rill_alloc_async(w->streams[0], BYTES, &p));
  TRY(rill_copy_async(w->streams[0], p, counter, BYTES));
  TRY(rill_free_async(w->streams[0], p));
  TRY(rill_stream_host_call(w->streams[0], count_call, NULL));
  TRY(rill_stream_wait_stream(w->streams[0], w->streams[1]));
  w->capturing = false;
  MAKE(w->other_graph, rill_stream_capture_end(w->streams[0], &w->other_graph));
  return RILL_OK;
}

#define LAUNCH_GRAPH(exec, stream)        \
  do {                                    \
    TRY(rill_graph_launch(exec, stream)); \
    w->launched++;                        \
  } while (0)

static rill_status graphs(struct world *w) {
  rill_graph_node kernel, fill;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) return RILL_OK;
  TRY(make_streams(w));
  MAKE(w->allocated[0], rill_alloc(dut.device, BYTES, RILL_MEMORY_DEVICE, &w->allocated[0]));
  uint32_t *counter = w->allocated[0], *cell = counter + 1;
  MAKE(w->events[0], rill_event_create(dut.device, NULL, &w->events[0]));
  MAKE(w->events[1], rill_event_create(dut.device, NULL, &w->events[1]));
  MAKE(w->module, rill_module_load(dut.device, &gate_bundle, &w->module));
  MAKE(w->kernel, rill_module_get_kernel(w->module, "increment", &w->kernel));
  MAKE(w->graph, rill_graph_create(dut.device, &w->graph));
  TRY(build_graph(w, counter, &kernel, &fill));
  MAKE(w->exec, rill_graph_instantiate(w->graph, &w->exec));
  TRY(rill_graph_upload(w->exec, w->streams[0]));
  LAUNCH_GRAPH(w->exec, w->streams[0]);
  LAUNCH_GRAPH(w->exec, w->streams[1]);
  if (rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL)) {
    TRY(rill_graph_exec_set_kernel_arg(w->exec, kernel, 0, &cell, sizeof cell));
    TRY(rill_graph_exec_set_fill(w->exec, fill, counter, pattern, 4, WORDS - 1));
    LAUNCH_GRAPH(w->exec, w->streams[0]);
    TRY(rill_graph_update(w->exec, w->graph));
  }
  TRY(rill_stream_wait_event(w->streams[2], w->events[1], 0));
  LAUNCH_GRAPH(w->exec, w->streams[2]);
  TRY(rill_stream_record_event(w->streams[0], w->events[1], 0));
  TRY(rill_stream_synchronize(w->streams[2]));
  TRY(rill_graph_exec_release(w->exec));
  w->exec.id = 0;
  TRY(capture(w, counter));
  MAKE(w->exec, rill_graph_instantiate(w->other_graph, &w->exec));
  LAUNCH_GRAPH(w->exec, w->streams[0]);
  TRY(rill_stream_synchronize(w->streams[0]));
  TRY(rill_stream_synchronize(w->streams[1]));
  return RILL_OK;
}

static const struct program {
  const char *name;
  rill_status (*run)(struct world *w);
} programs[] = {
  { "order", order }, { "memory", memory }, { "kernels", kernels }, { "held", held }, { "graphs", graphs }
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* ---- the end of a program ---- */

/* Releases all objects; objects that cannot be released stay for the next try. Returns false if anything failed. */
#define RELEASE(live, call, forget) \
  do {                              \
    if (live) {                     \
      if ((call) == RILL_OK) {      \
        forget;                     \
      } else {                      \
        good = false;               \
        w->failed = #call;          \
      }                             \
    }                               \
  } while (0)

static bool clean_up(struct world *w) {
  bool good = true;
  RELEASE(w->capturing, rill_stream_capture_abort(w->streams[0]), w->capturing = false);
  for (size_t i = 0; i < BLOCKS; i++)
    RELEASE(w->of_stream[i] != NULL, rill_free(w->of_stream[i]), w->of_stream[i] = NULL);
  for (size_t i = 0; i < EVENTS; i++)
    RELEASE(w->events[i].id != 0, rill_event_release(w->events[i]), w->events[i].id = 0);
  for (size_t i = 0; i < STREAMS; i++) /* a failure of held work is reported once */
    if (w->streams[i].id != 0 && rill_stream_synchronize(w->streams[i]) != RILL_OK) good = false;
  RELEASE(w->registered, rill_host_unregister(registered), w->registered = false);
  for (size_t i = 0; i < BLOCKS; i++)
    RELEASE(w->allocated[i] != NULL, rill_free(w->allocated[i]), w->allocated[i] = NULL);
  RELEASE(w->exec.id != 0, rill_graph_exec_release(w->exec), w->exec.id = 0);
  RELEASE(w->graph.id != 0, rill_graph_release(w->graph), w->graph.id = 0);
  RELEASE(w->other_graph.id != 0, rill_graph_release(w->other_graph), w->other_graph.id = 0);
  RELEASE(w->kernel.id != 0, rill_kernel_release(w->kernel), w->kernel.id = 0);
  RELEASE(w->module.id != 0, rill_module_release(w->module), w->module.id = 0);
  RELEASE(w->pool.id != 0, rill_pool_release(w->pool), w->pool.id = 0);
  return good;
}

/* Streams come last: they report the results of the other objects' work. */
static bool release_streams(struct world *w) {
  bool good = true;
  for (size_t i = 0; i < STREAMS; i++)
    RELEASE(w->streams[i].id != 0, rill_stream_release(w->streams[i]), w->streams[i].id = 0);
  return good;
}

static size_t leaks(void) {
  size_t count = 0;
  if (!rill_check_is_on("memory")) return 0;
  assert_ok(rill_device_get_leaks(dut.device, NULL, &count));
  return count;
}

static void print_leaks(void) {
  rill_leak list[8];
  size_t count = 8;
  assert_ok(rill_device_get_leaks(dut.device, list, &count));
  for (size_t i = 0; i < count && i < 8; i++)
    print_error("  %llu x %s %s, %llu bytes\n", (unsigned long long)list[i].count, list[i].what, list[i].label,
                (unsigned long long)list[i].bytes);
}

/* ---- sweeping ---- */

/* Calls whose failure need not concern a caller: their answer is found otherwise, or their work is done later. */
static const struct {
  const char *word, *program;
} silent[] = {
  { "is_complete", NULL }, { "is_capturing", NULL }, { "is_ready", NULL }, { "device_get_memory", NULL },
  { "is_known", NULL },    { "alloc", "memory" }, /* the pool finds memory that was freed */
  { "record", "memory" },                         /* of a batch of frees: the stream is waited for instead */
  { "record", "kernels" }, /* after the work that may use a module: the device is waited for instead */
};

static bool may_pass(const char *word, const char *program) {
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
    if (strcmp(word, silent[i].word) == 0 && (silent[i].program == NULL || strcmp(program, silent[i].program) == 0))
      return true;
  }
  return false;
}

static void check_failure(const struct world *w, rill_status status, rill_status expected) {
  if (status != expected) BAD("%s gave %s: %s", w->failed, rill_status_name(status), rill_last_error_text());
  if (strstr(rill_last_error_text(), "injected by RILL_FAULT") == NULL)
    BAD("%s: the text does not say that it was injected: %s", w->failed, rill_last_error_text());
}

/* Runs once with a rule; returns false if nothing was made to fail. */
static bool run_with_rule(const struct program *program, const char *rules, const char *word, rill_status expected) {
  static char text[160];
  struct world world = { .failed = NULL }, *w = &world;
  const size_t leaks_before = leaks();
  const uint32_t ran_before = atomic_load(&ran);
  (void)snprintf(text, sizeof text, "%s, %s, %s", dut.name, program->name, rules);
  place = text;
  assert_ok(rill_fault_set(rules));
  const rill_status status = program->run(w);
  const uint64_t injected = rill_fault_count();
  if (status != RILL_OK) check_failure(w, status, expected);
  /* A memory check inspects what it can. */
  if (status == RILL_OK && injected > 0 && !may_pass(word, program->name) && !rill_check_is_on("memory"))
    BAD("the failure is passed over");
  (void)clean_up(w);
  (void)release_streams(w);
  const bool any = rill_fault_count() > 0;
  rill_fault_clear();
  for (unsigned i = 0; i < 2 && !clean_up(w); i++) {
  } /* a stream reports once what failed */
  if (!clean_up(w)) BAD("%s fails without a rule: %s", w->failed, rill_last_error_text());
  if (!release_streams(w)) BAD("%s fails without a rule: %s", w->failed, rill_last_error_text());
  if (rill_bundle_unload(&gate_bundle) != RILL_OK) BAD("the kernels: %s", rill_last_error_text());
  if (rill_device_synchronize(dut.device) != RILL_OK) BAD("the device: %s", rill_last_error_text());
  /* The host call of a held launch does not run if that fails when it is handed over. */
  const uint32_t now = atomic_load(&ran) - ran_before, most = w->accepted + w->launched;
  if (now > most || now < (status == RILL_OK ? most : w->accepted))
    BAD("%u host calls ran of %u and %u of graphs", now, w->accepted, w->launched);
  if (leaks() != leaks_before) BAD("%zu things leak", leaks() - leaks_before), print_leaks();
  return any;
}

static void runs_clean(const struct program *program) {
  if (run_with_rule(program, "", "", RILL_OK)) BAD("something was made to fail");
}

static const char *const words[] = {
#define WORD(table, slot, word) word,
  RILL__CALL_LIST(WORD)
#undef WORD
};

static const struct {
  const char *rule;
  rill_status status;
} ways[] = { { "%s:%u=backend", RILL_ERROR_BACKEND },
             { "%s:%u+=out_of_memory", RILL_ERROR_OUT_OF_MEMORY },
             { "%s:%u=timeout", RILL_ERROR_TIMEOUT } };

static void sweep(const struct program *program) {
  unsigned rules_tried = 0, words_met = 0;
  const unsigned most = rill_check_is_on("memory") ? MOST_CHECKED_CALLS : MOST_CALLS; /* it checks all freed memory */
  for (unsigned i = 0; i < 2; i++) runs_clean(program);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (i > 0 && strcmp(words[i], words[i - 1]) == 0) continue;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
      char rules[80];
      unsigned nth = 1;
      for (bool more = true; more && nth < most; nth++) {
        (void)snprintf(rules, sizeof rules, ways[way].rule, words[i], nth);
        more = run_with_rule(program, rules, words[i], ways[way].status);
        if (more) runs_clean(program);
      }
      rules_tried += nth;
      words_met += way == 0 && nth > 2;
    }
  }
  print_message("%s, %s: %u runs, %u kinds of calls\n", dut.name, program->name, rules_tried, words_met);
  assert_true(words_met >= 3 || program->run == graphs);
}

static void order_can_fail(void) { sweep(&programs[0]); }
static void memory_can_fail(void) { sweep(&programs[1]); }
static void kernels_can_fail(void) { sweep(&programs[2]); }
static void held_can_fail(void) { sweep(&programs[3]); }
static void graphs_can_fail(void) { sweep(&programs[4]); }
static void all_runs_were_correct(void) { assert_int_equal(problems, 0); }

/* ---- random calls, each of which may fail ---- */

enum { LINES = 3, RANDOM_CALLS = 150 };

static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

/* Streams that fill a cell each: what a cell has in the end is what the last fill that was accepted wrote, and every
 * host call that was accepted has run.  Work of a stream that was held may fail later. */
struct lines {
  rill_stream streams[LINES + 1]; /* the last only records */
  rill_event events[LINES], gate;
  void *blocks[LINES];
  uint32_t expected[LINES], accepted;
  bool held[LINES];
};

static bool took(rill_status status) {
  if (status != RILL_OK && strstr(rill_last_error_text(), "injected by RILL_FAULT") == NULL)
    BAD("a call fails by itself: %s", rill_last_error_text());
  return status == RILL_OK;
}

static void call_at_random(struct lines *l, uint64_t *state) {
  const uint32_t i = next_random(state) % LINES, other = next_random(state) % LINES, value = next_random(state);
  bool out;
  switch (next_random(state) % 10) {
    case 0: l->held[i] |= took(rill_stream_wait_event(l->streams[i], l->gate, 0)); break;
    case 1: (void)took(rill_stream_is_complete(l->streams[i], &out)); break;
    case 2: (void)took(rill_stream_record_event(l->streams[i], l->events[i], 0)); break;
    case 3:
      if (took(rill_stream_wait_event(l->streams[i], l->events[other], RILL_WAIT_IF_RECORDED)))
        l->held[i] |= l->held[other];
      break;
    case 4:
      if (took(rill_stream_wait_stream(l->streams[i], l->streams[other]))) l->held[i] |= l->held[other];
      break;
    case 5:
      if (l->blocks[i] == NULL) {
        (void)took(rill_alloc_async(l->streams[i], 1 + value % (1 << 20), &l->blocks[i]));
      } else if (took(rill_free_async(l->streams[i], l->blocks[i]))) {
        l->blocks[i] = NULL;
      }
      break;
    case 6: l->accepted += took(rill_stream_host_call(l->streams[i], count_call, NULL)); break;
    default:
      if (took(rill_fill_async(l->streams[i], dut.memory + i, &value, 4, 1))) l->expected[i] = value;
  }
}

static void check_lines(struct lines *l, uint32_t ran_before) {
  assert_ok(rill_stream_record_event(l->streams[LINES], l->gate, 0));
  for (size_t i = 0; i < LINES; i++) {
    const rill_status status = rill_stream_synchronize(l->streams[i]);
    if (status != RILL_OK && !l->held[i]) BAD("stream %zu: %s", i, rill_last_error_text());
    assert_ok(rill_stream_synchronize(l->streams[i]));
    read_cell(l->streams[i], (unsigned)i);
    if (l->blocks[i] != NULL) assert_ok(rill_free_async(l->streams[i], l->blocks[i]));
    assert_ok(rill_stream_synchronize(l->streams[i]));
    if (status == RILL_OK && dut.host[i] != l->expected[i])
      BAD("cell %zu is %u, not %u", i, dut.host[i], l->expected[i]);
  }
  if (atomic_load(&ran) - ran_before != l->accepted)
    BAD("%u host calls ran of %u", atomic_load(&ran) - ran_before, l->accepted);
}

static void random_calls(unsigned seed) {
  static char text[96];
  char rules[48];
  struct lines lines = { .accepted = 0 }, *l = &lines;
  const size_t leaks_before = leaks();
  const uint32_t ran_before = atomic_load(&ran);
  uint64_t state = seed;
  (void)snprintf(rules, sizeof rules, "any:p=0.0%u,seed=%u", seed % 10, seed);
  (void)snprintf(text, sizeof text, "%s, random calls, %s", dut.name, rules);
  place = text;
  for (size_t i = 0; i <= LINES; i++) assert_ok(rill_stream_create(dut.device, NULL, &l->streams[i]));
  for (size_t i = 0; i < LINES; i++) assert_ok(rill_event_create(dut.device, NULL, &l->events[i]));
  assert_ok(rill_event_create(dut.device, NULL, &l->gate));
  for (unsigned i = 0; i < LINES; i++) write_cell(l->streams[i], i, 0);
  assert_ok(rill_fault_set(rules));
  for (unsigned i = 0; i < RANDOM_CALLS; i++) call_at_random(l, &state);
  rill_fault_clear();
  check_lines(l, ran_before);
  for (size_t i = 0; i < LINES; i++) assert_ok(rill_event_release(l->events[i]));
  assert_ok(rill_event_release(l->gate));
  for (size_t i = 0; i <= LINES; i++) assert_ok(rill_stream_release(l->streams[i]));
  assert_ok(rill_device_synchronize(dut.device));
  if (leaks() != leaks_before) BAD("%zu things leak", leaks() - leaks_before), print_leaks();
}

static void any_call_can_fail(void) {
  const unsigned most = scaled(rill_check_is_on("memory") ? 30 : 300);
  for (unsigned seed = 1; seed <= most; seed++) random_calls(seed);
}

/* ---- losses, each in a process of its own ---- */

enum { NOTHING_LOST = 0, LOST = 3 };

/* After a loss in any call, all later calls report it, accepted host calls are notified, and everything can be
 * released. */
static void lose(const struct program *program) {
  struct world world = { .failed = NULL }, *w = &world;
  const rill_status status = program->run(w);
  if (rill_fault_count() == 0) return;
  if (status != RILL_OK) check_failure(w, status, RILL_ERROR_DEVICE_LOST);
  if (rill_device_synchronize(dut.device) != RILL_ERROR_DEVICE_LOST) BAD("the device is not lost");
  if (strstr(rill_last_error_text(), "injected by RILL_FAULT") == NULL) BAD("%s", rill_last_error_text());
  (void)clean_up(w);
  (void)release_streams(w);
  for (size_t i = 0; i < STREAMS; i++) {
    if (w->streams[i].id != 0) BAD("stream %zu cannot be released", i);
  }
  for (const uint64_t until = now_ns() + TIMEOUT_NS; atomic_load(&ran) < w->accepted && now_ns() < until;)
    let_pass_ns(MILLISECOND);
  if (atomic_load(&ran) < w->accepted || atomic_load(&ran) > w->accepted + w->launched)
    BAD("%u host calls ran of %u", atomic_load(&ran), w->accepted);
}

/* Runs this program as a child. */
static int lose_as_child(const char *name) {
  place = getenv("RILL_FAULT");
  if (rill_device_open(getenv("RILL_TEST_DEVICE"), &dut.device) != RILL_OK) return NOTHING_LOST + 1;
  for (size_t i = 0; i < PROGRAMS; i++) {
    if (strcmp(programs[i].name, name) == 0) lose(&programs[i]);
  }
  return problems != 0 ? 1 : rill_fault_count() > 0 ? LOST : NOTHING_LOST;
}

static void a_loss_at_any_call(void) {
  static struct child child;
  unsigned losses = 0;
  for (size_t i = 0; i < PROGRAMS * (sizeof words / sizeof *words); i++) {
    const struct program *const program = &programs[i % PROGRAMS];
    const size_t word = i / PROGRAMS;
    if (word > 0 && strcmp(words[word], words[word - 1]) == 0) continue;
    if (strncmp(words[word], "device_open", 11) == 0) continue; /* then there is no device */
    child.exit_code = LOST;
    for (unsigned nth = 1; child.exit_code == LOST && nth <= 3; nth++) {
      char rules[96], device[64];
      (void)snprintf(rules, sizeof rules, "RILL_FAULT=%s@%s:%u=device_lost", words[word], dut.name, nth);
      (void)snprintf(device, sizeof device, "RILL_TEST_DEVICE=%s", dut.name);
      /* Frees that were deferred for held work do not happen when the device is lost. */
      const char *const variables[] = { rules, device, "ASAN_OPTIONS=detect_leaks=0:intercept_tls_get_addr=0" };
      run_child(program->name, variables, 3, &child);
      losses += child.exit_code == LOST;
      if (child.exit_code != LOST && child.exit_code != NOTHING_LOST) {
        problems++;
        print_error("%s, %s: %s\n%s\n", program->name, rules, child_end(&child), child.output);
      }
    }
  }
  print_message("%s: %u losses\n", dut.name, losses);
  assert_true(losses > 50);
}

static const char *one_name, *one_rule;

static void one(void) {
  for (size_t i = 0; i < PROGRAMS; i++) {
    if (strcmp(programs[i].name, one_name) != 0) continue;
    runs_clean(&programs[i]);
    const bool failed = run_with_rule(&programs[i], one_rule, "", RILL_OK);
    print_message("%s: %s\n", place, failed ? "something was made to fail" : "nothing was made to fail");
  }
}

int main(int argc, char **argv) {
  static const struct test all[] = { TEST(order_can_fail),     TEST(memory_can_fail),      TEST(kernels_can_fail),
                                     TEST(held_can_fail),      TEST(graphs_can_fail),      TEST(any_call_can_fail),
                                     TEST(a_loss_at_any_call), TEST(all_runs_were_correct) };
  static const struct test single[] = { TEST(one) };
  if (argc == 2) return lose_as_child(argv[1]);
  if (argc == 3) {
    one_name = argv[1];
    one_rule = argv[2];
    return RUN_ON_EACH_DEVICE("one failure", single);
  }
  return RUN_ON_EACH_DEVICE("failing calls", all);
}
