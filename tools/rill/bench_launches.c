/* rill bench launches, graphs: throughput of small launches. */
#include "bench.h"
#include "tool.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static bool rill_ok(rill_status status) { return status == RILL_OK || complain_of_rill(); }

/* ---- launches from several threads, each on its own stream ---- */

enum { MOST_THREADS = 16, BATCH = 64 };

struct launcher {
  struct bench_launch launch;
  pthread_t thread;
  uint64_t budget_ns;
  double rate; /* launches per ns */
  bool ok;
};

static void *run_launcher(void *launcher_) {
  struct launcher *launcher = launcher_;
  const uint64_t start = bench_now(), end = start + launcher->budget_ns;
  uint64_t launches = 0;
  do {
    for (int i = 0; i < BATCH && launcher->ok; i++) launcher->ok = bench_launch_once(&launcher->launch);
    launcher->ok = launcher->ok && bench_launch_drain(&launcher->launch);
    launches += BATCH;
  } while (launcher->ok && bench_now() < end);
  launcher->rate = (double)launches / (double)(bench_now() - start);
  return NULL;
}

/* Measures millions of launches per second of all threads together. */
static bool measure_threads(const struct bench *bench, unsigned count, double *rate) {
  struct launcher launchers[MOST_THREADS] = { { .ok = false } };
  unsigned opened = 0, started = 0;
  bool ok = true;
  *rate = 0;
  for (; opened < count && ok; opened++) {
    launchers[opened].budget_ns = bench->budget_ns;
    ok = launchers[opened].ok = bench_launch_open(bench, &launchers[opened].launch);
  }
  for (; started < count && ok; started++) {
    struct launcher *launcher = &launchers[started];
    ok = pthread_create(&launcher->thread, NULL, run_launcher, launcher) == 0 ||
         complain("cannot create a thread to launch from");
    if (!ok) break;
  }
  for (unsigned i = 0; i < started; i++) {
    (void)pthread_join(launchers[i].thread, NULL);
    ok = ok && launchers[i].ok;
    *rate += launchers[i].rate * 1e3;
  }
  for (unsigned i = 0; i < opened; i++) bench_launch_close(&launchers[i].launch);
  return ok;
}

bool bench_launches(const struct bench *bench) {
  static const struct bench_section section = { "launches", "million per second", { "together", "per thread" } };
  const bool runs = bench->no_kernels[0] == '\0';
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  bool ok = true;
  bench_begin(bench, &section);
  for (unsigned count = 1; ok && runs && count <= MOST_THREADS && (long)count <= processors; count *= 2) {
    char what[32];
    double rates[2] = { NAN, NAN };
    ok = measure_threads(bench, count, &rates[0]);
    rates[1] = rates[0] / count;
    (void)snprintf(what, sizeof what, "%u thread%s", count, count == 1 ? "" : "s");
    if (ok) bench_row(bench, &section, what, rates);
  }
  if (ok) bench_end(bench, runs ? NULL : bench->no_kernels);
  return ok;
}

/* ---- a chain of kernels, launched one by one and as a graph ---- */

enum { SIZES = 3 };

struct chain {
  struct bench_launch launch;
  rill_graph graph;
  rill_graph_exec exec;
  uint32_t kernels;
};

static bool drain_chain(void *chain_) {
  struct chain *chain = chain_;
  return bench_launch_drain(&chain->launch);
}

static bool launch_each(void *chain_) {
  struct chain *chain = chain_;
  for (uint32_t i = 0; i < chain->kernels; i++) {
    if (!bench_launch_once(&chain->launch)) return false;
  }
  return bench_launch_drain(&chain->launch);
}

static bool launch_graph(void *chain_) {
  struct chain *chain = chain_;
  return rill_ok(rill_graph_launch(chain->exec, chain->launch.stream)) && bench_launch_drain(&chain->launch);
}

static bool instantiate(void *chain_) {
  const struct chain *chain = chain_;
  rill_graph_exec exec;
  return rill_ok(rill_graph_instantiate(chain->graph, &exec)) && rill_ok(rill_graph_exec_release(exec));
}

static bool update(void *chain_) {
  const struct chain *chain = chain_;
  return rill_ok(rill_graph_update(chain->exec, chain->graph));
}

static const struct {
  const char *what;
  bool (*work)(void *chain);
} chain_works[] = {
  { "launched on a stream", launch_each },
  { "launched as a graph", launch_graph },
  { "instantiate the graph", instantiate },
  { "update it, with no changes", update },
};
enum { WORKS = sizeof chain_works / sizeof *chain_works };

static bool open_chain(const struct bench *bench, struct chain *chain) {
  rill_graph_node last;
  bool ok = bench_launch_open(bench, &chain->launch) && rill_ok(rill_graph_create(bench->device, &chain->graph));
  for (uint32_t i = 0; i < chain->kernels && ok; i++) {
    const struct bench_launch *launch = &chain->launch;
    ok = rill_ok(
        rill_graph_add_kernel(chain->graph, &last, i > 0, launch->kernel, &launch->shape, launch->args, 3, &last));
  }
  return ok && rill_ok(rill_graph_instantiate(chain->graph, &chain->exec));
}

static void close_chain(struct chain *chain) {
  (void)rill_graph_exec_release(chain->exec);
  (void)rill_graph_release(chain->graph);
  bench_launch_close(&chain->launch);
}

/* Measures a chain of kernels in us per kernel, for each size of work. */
static bool measure_chain(const struct bench *bench, uint32_t kernels, double times[WORKS]) {
  struct chain chain = { .kernels = kernels };
  bool ok = open_chain(bench, &chain);
  for (int i = 0; i < WORKS && ok; i++) {
    const struct bench_task task = { chain_works[i].work, drain_chain, &chain, false };
    ok = bench_measure(bench, &task, &times[i]);
    times[i] /= 1e3 * kernels;
  }
  close_chain(&chain);
  return ok;
}

bool bench_graphs(const struct bench *bench) {
  static const struct bench_section section = { "graphs",
                                                "us per kernel",
                                                { "10 kernels", "100 kernels", "1000 kernels" } };
  static const uint32_t kernels[SIZES] = { 10, 100, 1000 };
  double times[SIZES][WORKS];
  const char *why = NULL;
  bool ok = true;
  if (bench->no_kernels[0] != '\0') {
    why = bench->no_kernels;
  } else if (rill_device_supports(bench->device, RILL_FEATURE_GRAPH, &why)) {
    why = NULL;
  }
  bench_begin(bench, &section);
  for (int i = 0; i < SIZES && ok && why == NULL; i++) ok = measure_chain(bench, kernels[i], times[i]);
  for (int work = 0; work < WORKS && ok && why == NULL; work++) {
    bench_row(bench, &section, chain_works[work].what,
              (const double[]){ times[0][work], times[1][work], times[2][work] });
  }
  if (ok) bench_end(bench, why);
  return ok;
}
