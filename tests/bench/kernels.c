/* How fast the kernels of kernels/ are: GB/s or GFLOP/s, beside the same work in plain CUDA, cuBLAS, OpenMP or
 * OpenBLAS, in turns in the same run; and how long it takes from nothing to the first kernel.
 *
 *     kernels [--csv] [--only TEXT] [--mib N] [--order N] [--rounds N] [DEVICE ...]
 *
 * DEVICE: cuda:0, hip:0, cpu; none: the default device.  --mib: the size of an array (GPU: 1024, CPU: 64); --order:
 * the size of the matrices (GPU: 4096, CPU: 512).  Times on a GPU come from events around the work, which waits after
 * a kernel that spins until all is enqueued; on the CPU from the clock, until the stream is done, right after a run
 * that does not count.  What counts is the fastest of several rounds, on the CPU their median, and the first is left
 * out.  Of several shapes the best one is reported. Nothing is judged: the exit status is 1 if a call failed, else 0.
 */
#include "kernels.h"

#include "axpy.rill.h"
#include "copy2d.rill.h"
#include "fill.rill.h"
#include "gate.rill.h"
#include "histogram.rill.h"
#include "rill_kernels.h"
#include "sgemm.rill.h"
#include "stencil.rill.h"
#include "stream.rill.h"
#include "transpose.rill.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct scene scene;

static uint64_t now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool complain(const char *what) {
  (void)fprintf(stderr, "kernels: %s: %s\n", what, rill_last_error_text());
  return false;
}

/* ---- the kernels ---- */

/* The shapes of blocks that are tried. */
static const uint32_t wide_blocks[] = { 1024, 512, 256 };
static const rill_dim3 flat_blocks[] = { { 64, 4, 1 }, { 32, 8, 1 }, { 128, 2, 1 }, { 256, 1, 1 } };
static char shape_name[32];

static bool choose_wide(unsigned form, size_t size, rill_launch *launch) {
  if (form >= sizeof wide_blocks / sizeof *wide_blocks) return false;
  *launch = rill_kernels_wide(scene.bytes / size, size, wide_blocks[form]);
  (void)snprintf(shape_name, sizeof shape_name, "%u", wide_blocks[form]);
  return true;
}

/* A space of 512 x 512 columns. */
enum { SIDE = 512 };

static bool choose_flat(unsigned form, rill_dim3 *block) {
  if (form >= sizeof flat_blocks / sizeof *flat_blocks) return false;
  *block = flat_blocks[form];
  (void)snprintf(shape_name, sizeof shape_name, "%u x %u", block->x, block->y);
  return true;
}

static bool only(unsigned form, const char *name) {
  (void)snprintf(shape_name, sizeof shape_name, "%s", name);
  return form == 0;
}

/* Enqueues a kernel in one of its forms; false if there is no such form. */
typedef bool run_kernel(unsigned form, rill_status *status);

#define KERNEL(NAME, CHOOSE, CALL)                             \
  static bool run_##NAME(unsigned form, rill_status *status) { \
    rill_launch launch = RILL_LAUNCH_INIT;                     \
    rill_dim3 block = { 0, 0, 0 };                             \
    (void)launch, (void)block;                                 \
    if (!(CHOOSE)) return false;                               \
    *status = CALL;                                            \
    return true;                                               \
  }
#define WIDE(NAME, T, CALL) KERNEL(NAME, choose_wide(form, sizeof(T), &launch), CALL)
#define N(T) ((int64_t)(scene.bytes / sizeof(T)))
#define ROWS(T) (N(T) / PICTURE_COLUMNS)

#define TYPED(SUFFIX, T)                                                                                               \
  WIDE(copy_##SUFFIX, T, stream_copy_##SUFFIX##_launch(scene.stream, &launch, N(T), scene.a, scene.c))                 \
  WIDE(scale_##SUFFIX, T, stream_scale_##SUFFIX##_launch(scene.stream, &launch, N(T), (T)0.5, scene.a, scene.c))       \
  WIDE(add_##SUFFIX, T, stream_add_##SUFFIX##_launch(scene.stream, &launch, N(T), scene.a, scene.b, scene.c))          \
  WIDE(triad_##SUFFIX, T,                                                                                              \
       stream_triad_##SUFFIX##_launch(scene.stream, &launch, N(T), (T)0.5, scene.a, scene.b, scene.c))                 \
  KERNEL(dot_##SUFFIX, only(form, "256"),                                                                              \
         rill_kernels_dot_##SUFFIX(scene.stream, (uint64_t)N(T), scene.a, scene.b, scene.c))                           \
  WIDE(fill_##SUFFIX, T, fill_##SUFFIX##_launch(scene.stream, &launch, N(T), (T)0.5, scene.c))                         \
  WIDE(axpy_##SUFFIX, T, axpy_##SUFFIX##_launch(scene.stream, &launch, N(T), (T)0.5, scene.a, scene.c))                \
  KERNEL(sum_##SUFFIX, only(form, "256"), rill_kernels_sum_##SUFFIX(scene.stream, (uint64_t)N(T), scene.a, scene.c))   \
  KERNEL(max_##SUFFIX, only(form, "256"), rill_kernels_max_##SUFFIX(scene.stream, (uint64_t)N(T), scene.a, scene.c))   \
  KERNEL(scan_##SUFFIX, only(form, "256"),                                                                             \
         rill_kernels_scan_##SUFFIX(scene.stream, (uint64_t)N(T), false, scene.a, scene.c))                            \
  KERNEL(copy2d_##SUFFIX,                                                                                              \
         choose_flat(form, &block) &&                                                                                  \
             (launch = rill_kernels_copy2d(PICTURE_COLUMNS - 8, (uint64_t)ROWS(T), block.x, block.y), true),           \
         copy2d_##SUFFIX##_launch(scene.stream, &launch, PICTURE_COLUMNS - 8, ROWS(T), scene.a, PICTURE_COLUMNS,       \
                                  scene.c, PICTURE_COLUMNS))                                                           \
  KERNEL(transpose_##SUFFIX,                                                                                           \
         only(form, "32 x 8") && (launch = rill_kernels_transpose((uint64_t)ROWS(T), PICTURE_COLUMNS), true),          \
         transpose_##SUFFIX##_launch(scene.stream, &launch, ROWS(T), PICTURE_COLUMNS, scene.a, PICTURE_COLUMNS,        \
                                     scene.c, ROWS(T)))                                                                \
  KERNEL(                                                                                                              \
      stencil5_##SUFFIX,                                                                                               \
      choose_flat(form, &block) &&                                                                                     \
          (launch = rill_kernels_stencil5(PICTURE_COLUMNS, (uint64_t)ROWS(T), sizeof(T), block.x, block.y), true),     \
      stencil5_##SUFFIX##_launch(scene.stream, &launch, PICTURE_COLUMNS, ROWS(T), (T)0.5, (T)0.125, scene.a, scene.c)) \
  KERNEL(stencil7_##SUFFIX,                                                                                            \
         choose_flat(form, &block) &&                                                                                  \
             (launch = rill_kernels_stencil7(SIDE, SIDE, (uint64_t)N(T) / SIDE / SIDE, sizeof(T), block.x, block.y),   \
              true),                                                                                                   \
         stencil7_##SUFFIX##_launch(scene.stream, &launch, SIDE, SIDE, N(T) / SIDE / SIDE, (T)0.5, (T)0.0625, scene.a, \
                                    scene.c))
TYPED(f32, float)
TYPED(f64, double)

KERNEL(histogram_f32,
       only(form, "256") && (launch = rill_kernels_histogram((uint64_t)N(float), 256, scene.info.compute_units), true),
       histogram_f32_launch(scene.stream, &launch, N(float), scene.a, 0.0f, 256.0f, 256, scene.c))

#define SGEMM(NAME)                                                                                                   \
  KERNEL(NAME, only(form, "") && (launch = rill_kernels_##NAME(scene.order, scene.order), true),                      \
         NAME##_launch(scene.stream, &launch, (int64_t)scene.order, (int64_t)scene.order, (int64_t)scene.order, 1.0f, \
                       scene.a, (int64_t)scene.order, scene.b, (int64_t)scene.order, 0.0f, scene.c,                   \
                       (int64_t)scene.order))
SGEMM(sgemm)
SGEMM(sgemm_16x16)

/* What a kernel is measured by: how many arrays it reads and writes, or, if 0, the operations of a product. */
#define ENTRY(NAME, ARRAYS) \
  { #NAME, run_##NAME, ARRAYS }
#define BOTH(NAME, ARRAYS) ENTRY(NAME##_f32, ARRAYS), ENTRY(NAME##_f64, ARRAYS)
static const struct kernel {
  const char *name;
  run_kernel *run;
  unsigned arrays;
} kernels[] = {
  BOTH(copy, 2),   BOTH(scale, 2),        BOTH(add, 3),      BOTH(triad, 3),    BOTH(dot, 2),
  BOTH(fill, 1),   BOTH(axpy, 3),         BOTH(sum, 1),      BOTH(max, 1),      BOTH(scan, 2),
  BOTH(copy2d, 2), BOTH(transpose, 2),    BOTH(stencil5, 2), BOTH(stencil7, 2), ENTRY(histogram_f32, 1),
  ENTRY(sgemm, 0), ENTRY(sgemm_16x16, 0),
};

/* ---- timing ---- */

enum { MOST_FORMS = 16, MOST_PEERS = 2, MOST_ROUNDS = 100 };

/* A kernel, or a peer's way to do its work. */
struct contender {
  const struct kernel *kernel;
  struct peer *peer; /* NULL: rill */
  unsigned form;
  char name[32]; /* of the form */
  double times[MOST_ROUNDS];
  double ns; /* the fastest time, on the CPU the median; valid after the rounds */
};

static rill_event start_event, end_event;

static bool run_contender(struct contender *c, bool *there) {
  rill_status status = RILL_OK;
  const char *form_name = "";
  if (c->peer == NULL) {
    *there = c->kernel->run(c->form, &status);
    form_name = shape_name;
  } else {
    *there = c->peer->run(&scene, c->kernel->name, c->form, &form_name);
  }
  if (*there) (void)snprintf(c->name, sizeof c->name, "%s", form_name);
  if (c->peer != NULL && c->peer->failed) {
    (void)fprintf(stderr, "kernels: %s: %s failed\n", c->kernel->name, c->peer->name);
    return false;
  }
  return status == RILL_OK || complain(c->kernel->name);
}

static bool time_on_gpu(struct contender *c, bool *there, double *ns) {
  const rill_launch one_thread = rill_launch_1d(1, 1);
  float ms = 0;
  if (spin_launch(scene.stream, &one_thread, 100000) != RILL_OK ||
      rill_stream_record_event(scene.stream, start_event, 0) != RILL_OK) {
    return complain("before the kernel");
  }
  if (!run_contender(c, there)) return false;
  if (rill_stream_record_event(scene.stream, end_event, 0) != RILL_OK || rill_event_synchronize(end_event) != RILL_OK ||
      rill_event_elapsed_time(start_event, end_event, &ms) != RILL_OK) {
    return complain(c->kernel->name);
  }
  *ns = (double)ms * 1e6;
  return true;
}

/* Threads of OpenMP look for work for some 20 ms after a loop, on the processors that the next one is to use: first the
 * benchmark waits until they sleep. Then an uncounted run wakes the contender's own threads. */
static bool time_on_cpu(struct contender *c, bool *there, double *ns) {
  (void)nanosleep(&(struct timespec){ 0, 40000000 }, NULL);
  for (int i = 0; i < 2; i++) {
    const uint64_t start = now_ns();
    if (!run_contender(c, there)) return false;
    if (rill_stream_synchronize(scene.stream) != RILL_OK) return complain(c->kernel->name);
    *ns = (double)(now_ns() - start);
  }
  return true;
}

static bool time_once(struct contender *c, bool *there, double *ns) {
  return scene.info.backend == RILL_BACKEND_CPU ? time_on_cpu(c, there, ns) : time_on_gpu(c, there, ns);
}

/* Finds the forms of one side, running each once. */
static bool find_forms(const struct kernel *kernel, struct peer *peer, struct contender *list, size_t *count) {
  for (unsigned form = 0; form < MOST_FORMS; form++) {
    bool there = false;
    double ns;
    list[*count] = (struct contender){ .kernel = kernel, .peer = peer, .form = form };
    if (!time_once(&list[*count], &there, &ns)) return false;
    if (!there) break;
    ++*count;
  }
  return true;
}

static int compare(const void *a, const void *b) {
  const double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

static bool run_rounds(struct contender *list, size_t count, unsigned rounds) {
  for (unsigned round = 0; round < rounds; round++) {
    for (size_t k = 0; k < count; k++) {
      struct contender *c = &list[(k + round) % count]; /* none is always the first */
      bool there;
      if (!time_once(c, &there, &c->times[round])) return false;
    }
  }
  for (size_t k = 0; k < count; k++) {
    double *const times = list[k].times;
    qsort(times, rounds, sizeof *times, compare);
    list[k].ns = scene.info.backend == RILL_BACKEND_CPU ? (times[(rounds - 1) / 2] + times[rounds / 2]) / 2 : times[0];
  }
  return true;
}

/* ---- the table ---- */

struct report {
  struct peer *peers[MOST_PEERS]; /* NULL: none */
  const char *device;
  bool csv;
  unsigned rounds;
};

static const struct contender *best_of(const struct contender *list, size_t count, const struct peer *peer) {
  const struct contender *best = NULL;
  for (size_t i = 0; i < count; i++) {
    if (list[i].peer == peer && (best == NULL || list[i].ns < best->ns)) best = &list[i];
  }
  return best;
}

/* GB/s or GFLOP/s. */
static double rate(const struct contender *c) {
  const double n = (double)scene.order;
  return (c->kernel->arrays != 0 ? (double)c->kernel->arrays * (double)scene.bytes : 2 * n * n * n) / c->ns;
}

static void print_row(const struct report *report, const struct kernel *kernel, const struct contender *list,
                      size_t count) {
  const struct contender *rill = best_of(list, count, NULL), *other = NULL;
  for (size_t i = 0; i < MOST_PEERS && other == NULL; i++) {
    if (report->peers[i] != NULL) other = best_of(list, count, report->peers[i]);
  }
  const char *unit = kernel->arrays != 0 ? "GB/s" : "GFLOP/s";
  if (report->csv) {
    for (size_t i = 0; i < count; i++) {
      (void)printf("%s,%s,%s,\"%s\",%.1f,%s\n", report->device, kernel->name,
                   list[i].peer != NULL ? list[i].peer->name : "rill", list[i].name, rate(&list[i]), unit);
    }
    return;
  }
  (void)printf("%-14s %9.1f %-8s %-9s", kernel->name, rate(rill), unit, rill->name);
  if (other != NULL) {
    (void)printf(" %9.1f  %6.3f  %s (%s)\n", rate(other), rate(rill) / rate(other), other->peer->name, other->name);
  } else {
    (void)printf(" %9s  %6s\n", "-", "-");
  }
  (void)fflush(stdout);
}

static bool measure(const struct report *report, const struct kernel *kernel) {
  static struct contender list[(1 + MOST_PEERS) * MOST_FORMS];
  size_t count = 0;
  bool ok = find_forms(kernel, NULL, list, &count);
  for (size_t i = 0; i < MOST_PEERS && ok; i++) {
    if (report->peers[i] != NULL) ok = find_forms(kernel, report->peers[i], list, &count);
  }
  ok = ok && run_rounds(list, count, report->rounds);
  if (ok) print_row(report, kernel, list, count);
  return ok;
}

/* ---- setting up ---- */

/* Numbers between 0 and 1, some MiB of them again and again. */
static bool make_numbers(void *array, uint64_t seed) {
  enum { COUNT = 1 << 20 };
  float *const numbers = malloc(COUNT * sizeof *numbers);
  bool ok = numbers != NULL;
  for (size_t i = 0; ok && i < COUNT; i++) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    numbers[i] = (float)(seed >> 40) * 0x1p-24f;
  }
  for (size_t at = 0; ok && at < scene.bytes; at += COUNT * sizeof *numbers) {
    const size_t left = scene.bytes - at, size = left < COUNT * sizeof *numbers ? left : COUNT * sizeof *numbers;
    ok = rill_copy_async(scene.stream, (char *)array + at, numbers, size) == RILL_OK;
  }
  ok = rill_stream_synchronize(scene.stream) == RILL_OK && ok;
  free(numbers);
  return ok;
}

static bool open_scene(const char *device, size_t mib, size_t order) {
  const rill_event_options timing = { .struct_size = sizeof timing, .timing = true };
  scene = (struct scene){ .info = RILL_DEVICE_INFO_INIT };
  if (rill_device_open(device, &scene.device) != RILL_OK ||
      rill_device_get_info(scene.device, &scene.info) != RILL_OK) {
    return complain(device != NULL ? device : "the default device");
  }
  const bool gpu = scene.info.backend != RILL_BACKEND_CPU;
  scene.order = order != 0 ? order : gpu ? 4096 : 512;
  scene.bytes = (mib != 0 ? mib : gpu ? 1024 : 64) << 20;
  const size_t matrix = scene.order * scene.order * 4;
  if (scene.bytes < matrix) scene.bytes = (matrix + (16 << 20) - 1) >> 24 << 24;
  if (rill_stream_create(scene.device, NULL, &scene.stream) != RILL_OK ||
      rill_event_create(scene.device, &timing, &start_event) != RILL_OK ||
      rill_event_create(scene.device, &timing, &end_event) != RILL_OK ||
      (gpu && rill_stream_native(scene.stream, &scene.native) != RILL_OK)) {
    return complain("a stream and events");
  }
  void **const arrays[] = { &scene.a, &scene.b, &scene.c };
  for (uint64_t i = 0; i < 3; i++) {
    if (rill_alloc(scene.device, scene.bytes, RILL_MEMORY_DEVICE, arrays[i]) != RILL_OK ||
        !make_numbers(*arrays[i], i + 1)) {
      return complain("arrays");
    }
  }
  return true;
}

static bool close_scene(void) {
  const bool freed = rill_free(scene.a) == RILL_OK && rill_free(scene.b) == RILL_OK && rill_free(scene.c) == RILL_OK;
  return rill_event_release(start_event) == RILL_OK && rill_event_release(end_event) == RILL_OK &&
         rill_stream_release(scene.stream) == RILL_OK && (freed || complain("the end"));
}

static void choose_peers(struct report *report) {
  struct peer *wanted[MOST_PEERS] = { NULL };
#ifdef BENCH_CUDA
  if (scene.info.backend == RILL_BACKEND_CUDA) {
    wanted[0] = &rill__cuda_bench_plain;
    wanted[1] = &rill__cuda_bench_cublas;
  }
#endif
#ifdef BENCH_OPENMP
  if (scene.info.backend == RILL_BACKEND_CPU) wanted[0] = &bench_openmp;
#endif
  if (scene.info.backend == RILL_BACKEND_CPU) wanted[1] = &bench_openblas;
  for (size_t i = 0; i < MOST_PEERS; i++) {
    report->peers[i] = NULL;
    if (wanted[i] == NULL) continue;
    const char *why = wanted[i]->open(&scene);
    if (why == NULL) report->peers[i] = wanted[i];
    else if (!report->csv) (void)printf("%s left out: %s\n", wanted[i]->name, why);
  }
}

static bool run(const char *device, const char *text, bool csv, size_t mib, size_t order, unsigned rounds) {
  struct report report = { .device = device != NULL ? device : "default", .csv = csv, .rounds = rounds };
  if (!open_scene(device, mib, order)) return false;
  if (!csv) {
    (void)printf("%s: %s; arrays of %zu MiB, matrices of %zu x %zu, %s of %u rounds\n", report.device, scene.info.name,
                 scene.bytes >> 20, scene.order, scene.order,
                 scene.info.backend == RILL_BACKEND_CPU ? "median" : "fastest", rounds);
  }
  choose_peers(&report);
  if (!csv) (void)printf("\n%-14s %9s %-8s %-9s %9s  %6s\n", "kernel", "rill", "", "block", "other", "ratio");
  bool ok = true;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels && ok; i++) {
    if (text == NULL || strstr(kernels[i].name, text) != NULL) ok = measure(&report, &kernels[i]);
  }
  return close_scene() && ok;
}

/* ---- from nothing to the first kernel ---- */

/* In a process of its own: prints the time since `started`. */
static int first_kernel(const char *way, const char *device, uint64_t started) {
  rill_device opened;
  rill_stream stream;
  float *x = NULL;
  const rill_launch launch = rill_kernels_wide(1, sizeof *x, 32);
  bool ok;
#ifdef BENCH_CUDA
  if (strcmp(way, "driver") == 0) {
    ok = rill__cuda_bench_first_kernel((int32_t)strtol(strchr(device, ':') + 1, NULL, 10));
  } else
#endif
  {
    (void)way;
    ok = rill_device_open(device, &opened) == RILL_OK && rill_stream_create(opened, NULL, &stream) == RILL_OK &&
         rill_alloc(opened, 256, RILL_MEMORY_DEVICE, (void **)&x) == RILL_OK &&
         fill_f32_launch(stream, &launch, 1, 1.0f, x) == RILL_OK && rill_stream_synchronize(stream) == RILL_OK;
    if (!ok) (void)complain("the first kernel");
  }
  if (ok) (void)printf("%llu\n", (unsigned long long)(now_ns() - started));
  return ok ? 0 : 1;
}

/* Returns ms, negative if it failed. */
static double start_process(const char *way, const char *device) {
  extern char **environ;
  char path[4096], started[32], line[64] = "";
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  int ends[2], state = -1;
  pid_t child = -1;
  posix_spawn_file_actions_t actions;
  if (length < 0 || pipe(ends) != 0) return -1;
  path[length] = '\0';
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  (void)posix_spawn_file_actions_addclose(&actions, ends[0]);
  (void)snprintf(started, sizeof started, "%llu", (unsigned long long)now_ns());
  char *const arguments[] = { path, (char[]){ "--first" }, (char *)(uintptr_t)way, (char *)(uintptr_t)device, started,
                              NULL };
  const bool spawned = posix_spawn(&child, path, &actions, NULL, arguments, environ) == 0;
  (void)close(ends[1]);
  (void)posix_spawn_file_actions_destroy(&actions);
  const ssize_t got = spawned ? read(ends[0], line, sizeof line - 1) : -1;
  (void)close(ends[0]);
  if (spawned) (void)waitpid(child, &state, 0);
  return got > 0 && state == 0 ? strtod(line, NULL) / 1e6 : -1;
}

static bool measure_start(const char *device, bool csv) {
  enum { TIMES = 7 };
  static const char *const ways[] = { "rill", "driver" };
  const size_t count = scene.info.backend == RILL_BACKEND_CUDA ? 2 : 1;
  char name[32];
  const char *backend = scene.info.backend == RILL_BACKEND_CUDA  ? "cuda"
                        : scene.info.backend == RILL_BACKEND_HIP ? "hip"
                                                                 : "cpu";
  (void)device;
  if (scene.info.backend == RILL_BACKEND_CPU) (void)snprintf(name, sizeof name, "cpu");
  else (void)snprintf(name, sizeof name, "%s:%d", backend, (int)scene.info.ordinal);
  double best[2] = { -1, -1 };
  for (int i = 0; i < TIMES; i++) {
    for (size_t k = 0; k < count; k++) {
      const double ms = start_process(ways[k], name);
      if (ms < 0 && k == 0) return false;
      if (ms >= 0 && (best[k] < 0 || ms < best[k])) best[k] = ms;
    }
  }
  for (size_t k = 0; k < count; k++) {
    if (best[k] < 0) continue;
    if (csv) (void)printf("%s,\"first kernel\",%s,,%.2f,ms\n", name, ways[k], best[k]);
    else
      (void)printf("%sfrom nothing to the first kernel, through %s: %.2f ms", k == 0 ? "\n" : "; ", ways[k], best[k]);
  }
  if (!csv) (void)printf("\n\n");
  return true;
}

/* ---- the program ---- */

static const char *const usage =
    "usage: kernels [--csv] [--only TEXT] [--mib N] [--order N] [--rounds N] [DEVICE ...]\n";

int main(int argc, char **argv) {
  const char *devices[16] = { NULL }; /* the default one */
  const char *text = NULL;
  size_t count = 0, mib = 0, order = 0, rounds = 10;
  bool csv = false, ok = true;
  if (argc == 5 && strcmp(argv[1], "--first") == 0) return first_kernel(argv[2], argv[3], strtoull(argv[4], NULL, 10));
  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    if (strcmp(argv[i], "--csv") == 0) csv = true;
    else if (strcmp(argv[i], "--only") == 0 && more) text = argv[++i];
    else if (strcmp(argv[i], "--mib") == 0 && more) mib = strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--order") == 0 && more) order = strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--rounds") == 0 && more) rounds = strtoul(argv[++i], NULL, 10);
    else if (argv[i][0] != '-' && count < sizeof devices / sizeof *devices) devices[count++] = argv[i];
    else {
      (void)fputs(usage, stderr);
      return 2;
    }
  }
  if (csv) (void)printf("device,kernel,through,form,rate,unit\n");
  for (size_t i = 0; i == 0 || i < count; i++) {
    ok = run(devices[i], text, csv, mib, order,
             (unsigned)(rounds < 1             ? 1
                        : rounds < MOST_ROUNDS ? rounds
                                               : MOST_ROUNDS)) &&
         ok;
    if (ok && (text == NULL || strstr("first kernel", text) != NULL)) ok = measure_start(devices[i], csv);
  }
  return ok ? 0 : 1;
}
