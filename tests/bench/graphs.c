/* Measures what a graph saves: a hundred empty kernels of five arguments, as one chain and as ten chains of ten, given
 * to streams one by one and launched as a graph. Prints nanoseconds per kernel: of the calls alone, and until all is
 * done. Then what it costs to make, change and launch a chain; on an NVIDIA GPU beside the driver's own calls, in
 * rounds that alternate; and how what many have in one place grows. usage: graphs [device] */
#include "graphs.h"
#include "overhead.rill.h"

#include <pthread.h>
#include <rill/rill.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KERNELS = 100, ROUNDS = 400, MOST_CHAINS = 10 };

#define TRY(call)                                            \
  do {                                                       \
    if ((call) != RILL_OK) {                                 \
      (void)fprintf(stderr, "%s\n", rill_last_error_text()); \
      exit(1);                                               \
    }                                                        \
  } while (0)

static rill_device device;
static rill_stream streams[MOST_CHAINS];
static rill_kernel kernel;
static float *memory;

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* ---- the ways ---- */

struct way {
  const char *name;
  void (*submit)(unsigned chains);
  double host[ROUNDS], done[ROUNDS];
};

static rill_graph_exec exec;

static void launch_kernel(rill_stream stream) {
  const rill_launch shape = rill_launch_1d(1, 1);
  TRY(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(1, 2.0f, memory, memory, memory)));
}

static void submit_to_streams(unsigned chains) {
  for (unsigned i = 0; i < KERNELS / chains; i++) {
    for (unsigned c = 0; c < chains; c++) launch_kernel(streams[c]);
  }
}

static void submit_graph(unsigned chains) {
  (void)chains;
  TRY(rill_graph_launch(exec, streams[0]));
}

static void run_round(struct way *way, unsigned chains, unsigned round) {
  const double start = now();
  way->submit(chains);
  const double submitted = now();
  for (unsigned c = 0; c < chains; c++) TRY(rill_stream_synchronize(streams[c]));
  way->host[round] = (submitted - start) / (double)KERNELS;
  way->done[round] = (now() - start) / (double)KERNELS;
}

/* ---- both shapes ---- */

/* In the nodes of a chain from `from` on, n is `value`. */
static rill_graph new_graph(unsigned chains, unsigned length, unsigned from, int value, rill_graph_node *last) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph graph;
  TRY(rill_graph_create(device, &graph));
  for (unsigned c = 0; c < chains; c++) {
    for (unsigned i = 0; i < length; i++) {
      const int n = i < from ? 1 : value;
      TRY(rill_graph_add_kernel(graph, last, i > 0, kernel, &shape, RILL_ARGS(n, 2.0f, memory, memory, memory), last));
    }
  }
  return graph;
}

static double median(double *values, unsigned count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

static void compare_ways(unsigned chains) {
  static struct way ways[] = { { .name = "streams", .submit = submit_to_streams },
                               { .name = "graph", .submit = submit_graph } };
  rill_graph_node last;
  rill_graph graph = new_graph(chains, KERNELS / chains, 0, 1, &last);
  TRY(rill_graph_instantiate(graph, &exec));
  TRY(rill_graph_release(graph));
  for (unsigned w = 0; w < 2; w++) run_round(&ways[w], chains, 0);
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned w = 0; w < 2; w++) run_round(&ways[w], chains, round);
  }
  for (unsigned w = 0; w < 2; w++) {
    (void)printf("%2u x %3u  %-15s %8.1f ns a kernel in calls, %8.1f until done\n", chains, KERNELS / chains,
                 ways[w].name, median(ways[w].host, ROUNDS), median(ways[w].done, ROUNDS));
  }
  TRY(rill_graph_exec_release(exec));
}

/* ---- the calls, beside the driver's ---- */

static rill_graph chain;
static rill_graph_node chain_end;

static bool make_chain(unsigned count) {
  chain = new_graph(1, count, 0, 1, &chain_end);
  TRY(rill_graph_instantiate(chain, &exec));
  return true;
}

/* `node` is the last one. */
static bool set_argument(unsigned node, int n) {
  (void)node;
  TRY(rill_graph_exec_set_kernel_arg(exec, chain_end, 0, &n, sizeof n));
  return true;
}

static bool update_chain(unsigned count, unsigned from, int value) {
  rill_graph_node last;
  rill_graph graph = new_graph(1, count, from, value, &last);
  TRY(rill_graph_update(exec, graph));
  TRY(rill_graph_release(graph));
  return true;
}

static bool launch_chain(void) {
  TRY(rill_graph_launch(exec, streams[0]));
  return true;
}

static bool end_chain(void) {
  TRY(rill_graph_exec_release(exec));
  TRY(rill_graph_release(chain));
  return true;
}

static const struct graph_side rill_side = { NULL, make_chain, set_argument, update_chain, launch_chain, end_chain };

enum { MAKE, SET, SET_MEANWHILE, UPDATE, UPDATE_LAST, LAUNCH, DONE, RELEASE, CALLS, CALL_ROUNDS = 100 };
static const char *const call_names[CALLS] = {
  [MAKE] = "build and instantiate",
  [SET] = "set an argument",
  [SET_MEANWHILE] = "the same in a launch",
  [UPDATE] = "build another, update",
  [UPDATE_LAST] = "the same, one differs",
  [LAUNCH] = "launch",
  [DONE] = "launch, until done",
  [RELEASE] = "release both",
};

static atomic_bool may_go_on;

/* A vendor library whose calls do nothing runs it in the call, where nothing is to be waited for. */
static void wait_for_it(void *user, rill_status status) {
  (void)status;
  while (!atomic_load(&may_go_on) && !pthread_equal(pthread_self(), *(pthread_t *)user)) (void)sched_yield();
}

/* While an earlier launch, which keeps its values, is running. */
static bool set_meanwhile(const struct graph_side *side, unsigned count, int n, double *us) {
  pthread_t self = pthread_self();
  atomic_store(&may_go_on, false);
  TRY(rill_stream_host_call(streams[0], wait_for_it, &self));
  bool works = side->launch();
  const double start = now();
  works = works && side->set_argument(count - 1, n);
  *us = (now() - start) / 1e3;
  atomic_store(&may_go_on, true);
  TRY(rill_stream_synchronize(streams[0]));
  return works;
}

/* Microseconds; each side's stream is the same. */
static bool time_calls(const struct graph_side *side, unsigned count, unsigned round,
                       double times[CALLS][CALL_ROUNDS]) {
  double at[CALLS];
  at[MAKE] = now();
  bool works = side->make(count);
  works = works && side->launch(); /* the first one brings it to the device */
  TRY(rill_stream_synchronize(streams[0]));
  at[SET] = now();
  works = works && side->set_argument(count - 1, (int)round);
  const double set = now();
  works = works && set_meanwhile(side, count, (int)round + 2, &times[SET_MEANWHILE][round]);
  at[UPDATE] = now();
  works = works && side->update(count, 0, (int)round + 1);
  const double updated = now();
  works = works && side->update(count, 0, 1); /* as it was made */
  at[UPDATE_LAST] = now();
  works = works && side->update(count, count - 1, (int)round + 2);
  const double updated_last = now();
  works = works && side->launch();
  TRY(rill_stream_synchronize(streams[0]));
  at[LAUNCH] = now();
  works = works && side->launch();
  at[DONE] = now();
  TRY(rill_stream_synchronize(streams[0]));
  at[RELEASE] = now();
  times[MAKE][round] = (at[SET] - at[MAKE]) / 1e3;
  times[SET][round] = (set - at[SET]) / 1e3;
  times[UPDATE][round] = (updated - at[UPDATE]) / 1e3;
  times[UPDATE_LAST][round] = (updated_last - at[UPDATE_LAST]) / 1e3;
  times[LAUNCH][round] = (at[DONE] - at[LAUNCH]) / 1e3;
  times[DONE][round] = (at[RELEASE] - at[LAUNCH]) / 1e3;
  works = works && side->end();
  times[RELEASE][round] = (now() - at[RELEASE]) / 1e3;
  return works;
}

static void compare_calls(const struct graph_side *driver, unsigned count) {
  static double ours[CALLS][CALL_ROUNDS], theirs[CALLS][CALL_ROUNDS], ratios[CALL_ROUNDS];
  for (unsigned i = 0; i <= CALL_ROUNDS; i++) {
    const unsigned round = i == 0 ? 0 : i - 1; /* the first one warms up */
    (void)time_calls(&rill_side, count, round, ours);
    if (driver != NULL && !time_calls(driver, count, round, theirs)) {
      (void)printf("a call of the driver failed\n");
      exit(1);
    }
  }
  for (unsigned c = 0; c < CALLS; c++) {
    for (unsigned i = 0; i < CALL_ROUNDS && driver != NULL; i++) ratios[i] = ours[c][i] / theirs[c][i];
    (void)printf("%5u nodes, %-22s %10.1f us", count, call_names[c], median(ours[c], CALL_ROUNDS));
    if (driver != NULL) {
      (void)printf(", driver %10.1f, ratio %.3f", median(theirs[c], CALL_ROUNDS), median(ratios, CALL_ROUNDS));
    }
    (void)printf("\n");
  }
}

/* ---- many at one place ---- */

static void add_after_all(rill_graph graph, const rill_graph_node *nodes, unsigned count) {
  rill_graph_node last;
  TRY(rill_graph_add_empty(graph, nodes, count, &last));
}

static void add_edges_to_last(rill_graph graph, const rill_graph_node *nodes, unsigned count) {
  for (unsigned i = 0; i + 1 < count; i++) TRY(rill_graph_add_edge(graph, nodes[i], nodes[count - 1]));
}

static void add_memory(rill_graph graph, const rill_graph_node *nodes, unsigned count) {
  void **places = malloc(count * sizeof *places);
  rill_graph_node node;
  for (unsigned i = 0; i < count; i++) TRY(rill_graph_add_alloc(graph, nodes, 1, 64, &places[i], &node));
  for (unsigned i = 0; i < count; i++) TRY(rill_graph_add_free(graph, &node, 1, places[i], &node));
  free(places);
}

/* Measures the cost of each of `count` nodes if all are in one graph and precede one node. */
static void show_growth(const char *name, void (*add)(rill_graph, const rill_graph_node *, unsigned)) {
  (void)printf("%-36s", name);
  for (unsigned count = 100; count <= 10000; count *= 10) {
    rill_graph_node *nodes = malloc(count * sizeof *nodes);
    double best = 1e30;
    for (unsigned round = 0; round < 5; round++) {
      rill_graph graph;
      TRY(rill_graph_create(device, &graph));
      for (unsigned i = 0; i < count; i++) TRY(rill_graph_add_empty(graph, NULL, 0, &nodes[i]));
      const double start = now();
      add(graph, nodes, count);
      const double ns = (now() - start) / (double)count;
      if (ns < best) best = ns;
      TRY(rill_graph_release(graph));
    }
    (void)printf(" %8.1f", best);
    free(nodes);
  }
  (void)printf(" ns each of 100, 1000, 10000\n");
}

/* NULL: there is none. */
static const struct graph_side *driver_side(void) {
#ifdef BENCH_CUDA
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  TRY(rill_device_get_info(device, &info));
  if (info.backend == RILL_BACKEND_CUDA && rill__cuda_graph_side.open(streams[0], kernel, memory)) {
    return &rill__cuda_graph_side;
  }
#endif
  return NULL;
}

int main(int argc, char **argv) {
  const char *why = "";
  rill_module module;
  TRY(rill_device_open(argc > 1 ? argv[1] : NULL, &device));
  if (!rill_device_supports(device, RILL_FEATURE_GRAPH, &why)) {
    (void)printf("no graphs: %s\n", why);
    return 0;
  }
  TRY(rill_module_load(device, &overhead_bundle, &module));
  TRY(rill_module_get_kernel(module, "five", &kernel));
  TRY(rill_alloc(device, 4096, RILL_MEMORY_DEVICE, (void **)&memory));
  for (unsigned i = 0; i < MOST_CHAINS; i++) TRY(rill_stream_create(device, NULL, &streams[i]));
  compare_ways(1);
  compare_ways(MOST_CHAINS);
  const struct graph_side *const driver = driver_side();
  compare_calls(driver, 100);
  compare_calls(driver, 1000);
  compare_calls(driver, 10000);
  show_growth("one node after all", add_after_all);
  show_growth("edges to one node", add_edges_to_last);
  show_growth("allocations and their frees", add_memory);
  return 0;
}
