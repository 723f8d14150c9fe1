/* What a graph saves: a hundred empty kernels of five arguments, as one chain and as ten chains of ten, given to
 * streams one by one and launched as a graph; on an NVIDIA GPU beside the driver's own calls.  Prints nanoseconds per
 * kernel: of the calls alone, and until all is done.  usage: graphs [device] */
#include "overhead.rill.h"

#include <dlfcn.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static void (*driver_launch)(void);

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

static void submit_by_driver(unsigned chains) {
  (void)chains;
  driver_launch();
}

static void run_round(struct way *way, unsigned chains, unsigned round) {
  const double start = now();
  way->submit(chains);
  const double submitted = now();
  for (unsigned c = 0; c < chains; c++) TRY(rill_stream_synchronize(streams[c]));
  way->host[round] = (submitted - start) / (double)KERNELS;
  way->done[round] = (now() - start) / (double)KERNELS;
}

/* ---- the driver's own ---- */

static int (*driver_graph_launch)(uintptr_t exec, uintptr_t stream);
static uintptr_t driver_exec, driver_stream;

static void launch_driver_graph(void) {
  if (driver_graph_launch(driver_exec, driver_stream) != 0) exit(1);
}

static void find(void *library, void *function, const char *name) {
  void *address = dlsym(library, name);
  if (address == NULL) exit(1);
  memcpy(function, &address, sizeof address);
}

/* One chain, captured and instantiated by the driver itself; false where there is none. */
static bool make_driver_graph(void) {
  int (*begin)(uintptr_t, int), (*end)(uintptr_t, uintptr_t *),
      (*instantiate)(uintptr_t *, uintptr_t, unsigned long long);
  int (*launch)(uintptr_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uintptr_t, void **,
                void **);
  int (*push)(uintptr_t);
  uintptr_t graph = 0, function = 0, context = 0;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  TRY(rill_device_get_info(device, &info));
  void *library = info.backend == RILL_BACKEND_CUDA ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
  if (library == NULL) return false;
  find(library, &begin, "cuStreamBeginCapture_v2");
  find(library, &end, "cuStreamEndCapture");
  find(library, &launch, "cuLaunchKernel");
  find(library, &instantiate, "cuGraphInstantiateWithFlags");
  find(library, &push, "cuCtxPushCurrent_v2");
  find(library, &driver_graph_launch, "cuGraphLaunch");
  TRY(rill_kernel_native(kernel, &function));
  TRY(rill_stream_context(streams[0], &context));
  TRY(rill_stream_native(streams[0], &driver_stream));
  int n = 1;
  float a = 2;
  void *args[] = { &n, &a, &memory, &memory, &memory };
  if (push(context) != 0 || begin(driver_stream, 2) != 0) return false;
  for (int i = 0; i < KERNELS; i++) {
    if (launch(function, 1, 1, 1, 1, 1, 1, 0, driver_stream, args, NULL) != 0) return false;
  }
  driver_launch = launch_driver_graph;
  return end(driver_stream, &graph) == 0 && instantiate(&driver_exec, graph, 0) == 0;
}

/* ---- both shapes ---- */

static void make_graph(unsigned chains) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph graph;
  TRY(rill_graph_create(device, &graph));
  for (unsigned c = 0; c < chains; c++) {
    rill_graph_node last;
    for (unsigned i = 0; i < KERNELS / chains; i++) {
      TRY(rill_graph_add_kernel(graph, &last, i > 0, kernel, &shape, RILL_ARGS(1, 2.0f, memory, memory, memory),
                                &last));
    }
  }
  TRY(rill_graph_instantiate(graph, &exec));
  TRY(rill_graph_release(graph));
}

static double median(double *values) {
  qsort(values, ROUNDS, sizeof *values, compare);
  return values[ROUNDS / 2];
}

static void compare_ways(unsigned chains, bool driver) {
  static struct way ways[] = { { .name = "streams", .submit = submit_to_streams },
                               { .name = "graph", .submit = submit_graph },
                               { .name = "driver's graph", .submit = submit_by_driver } };
  const unsigned count = driver ? 3 : 2;
  make_graph(chains);
  for (unsigned w = 0; w < count; w++) run_round(&ways[w], chains, 0);
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned w = 0; w < count; w++) run_round(&ways[w], chains, round);
  }
  for (unsigned w = 0; w < count; w++) {
    (void)printf("%2u x %3u  %-15s %8.1f ns a kernel in calls, %8.1f until done\n", chains, KERNELS / chains,
                 ways[w].name, median(ways[w].host), median(ways[w].done));
  }
  TRY(rill_graph_exec_release(exec));
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
  compare_ways(1, false);
  compare_ways(MOST_CHAINS, false);
  if (make_driver_graph()) compare_ways(1, true);
  return 0;
}
