/* Measures rill's cost: ns per call of the vendor's driver, of rill, and of the vendor's runtime if there is one, side
 * by side. Over a driver whose calls return at once, what is left is rill itself. On the CPU there is rill alone.
 *
 *     overhead [--csv] [--only TEXT] [DEVICE ...]     cuda:0, hip:0, cpu; none: the default device
 *
 * --only leaves out operations whose names below do not contain the text.
 * Nothing is judged: the exit status is 1 if a call failed, else 0. */
#include "bench.h"

#include "gate.rill.h"
#include "overhead.rill.h"

#include <stdio.h>
#include <string.h>

static const char *const names[BENCH_COUNT] = {
#define NAME(name, text) [BENCH_##name] = text,
  BENCH_OPERATIONS(NAME)
#undef NAME
};

enum { DRIVER, RILL, RUNTIME };

struct bench {
  struct bench_target target;
  const char *device; /* as asked for; NULL: the default one */
  const char *only;   /* or NULL */
  bool csv;
  const struct bench_side *sides[BENCH_SIDES]; /* NULL: not here */
  void *workers[BENCH_SIDES][BENCH_THREADS];
  char used[BENCH_SIDES][512]; /* what the sides use, or why they are not here */
};

static const char *name_of(const struct bench *bench) { return bench->device != NULL ? bench->device : "default"; }

static rill_device drained;

static bool drain(void) { return rill_device_synchronize(drained) == RILL_OK; }

static bool complain(const struct bench *bench, const char *what, const char *why) {
  (void)fprintf(stderr, "overhead: %s: %s: %s\n", name_of(bench), what, why);
  return false;
}

static bool complain_of_side(const struct bench *bench, size_t side, const char *what) {
  char doing[128], why[512];
  (void)snprintf(doing, sizeof doing, "%s, through %s", what, bench->sides[side]->name);
  bench->sides[side]->explain(why, sizeof why);
  return complain(bench, doing, why);
}

static bool complain_of_rill(const struct bench *bench, const char *what) {
  return complain(bench, what, rill_last_error_text());
}

/* ---- setting up ---- */

static void choose_sides(struct bench *bench) {
  bench->sides[RILL] = &bench_rill;
#ifdef BENCH_CUDA
  if (bench->target.info.backend == RILL_BACKEND_CUDA) {
    bench->sides[DRIVER] = &rill__cuda_bench_driver;
#ifdef BENCH_CUDA_RUNTIME
    bench->sides[RUNTIME] = &rill__cuda_bench_runtime;
#endif
  }
#endif
#ifdef BENCH_HIP
  if (bench->target.info.backend == RILL_BACKEND_HIP) bench->sides[DRIVER] = &rill__hip_bench_driver;
#endif
}

static bool open_sides(struct bench *bench) {
  for (size_t i = 0; i < BENCH_SIDES; i++) {
    if (bench->sides[i] == NULL) continue;
    if (!bench->sides[i]->open(&bench->target, bench->used[i], sizeof bench->used[i])) {
      if (i != RUNTIME) return complain(bench, bench->sides[i]->name, bench->used[i]);
      bench->sides[i] = NULL;
      continue;
    }
    for (size_t k = 0; k < BENCH_THREADS; k++) {
      bench->workers[i][k] = bench->sides[i]->new_worker();
      if (bench->workers[i][k] == NULL) return complain_of_side(bench, i, "streams, events and memory");
    }
  }
  return true;
}

static bool open_bench(struct bench *bench) {
  struct bench_target *target = &bench->target;
  rill_module module;
  target->info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  target->bundle = &overhead_bundle;
  if (rill_device_open(bench->device, &target->device) != RILL_OK ||
      rill_device_get_info(target->device, &target->info) != RILL_OK) {
    return complain_of_rill(bench, "opening it");
  }
  drained = target->device;
  const rill_status status = rill_module_load(target->device, target->bundle, &module);
  target->launches = status == RILL_OK;
  if (status != RILL_OK && status != RILL_ERROR_NOT_FOUND) return complain_of_rill(bench, "loading kernels");
  choose_sides(bench);
  return open_sides(bench);
}

static void print_heading(const struct bench *bench) {
  const rill_device_info *info = &bench->target.info;
  if (bench->csv) return;
  (void)printf("%s: %s\nrill %s", name_of(bench), info->name, bench->used[RILL]);
  if (bench->sides[DRIVER] != NULL) (void)printf("; driver %s", bench->used[DRIVER]);
  if (info->backend == RILL_BACKEND_CUDA) {
    (void)printf("; runtime %s%s", bench->sides[RUNTIME] != NULL ? "" : "left out: ", bench->used[RUNTIME]);
  }
  (void)printf("\n");
#ifndef __OPTIMIZE__
  (void)printf("Built without optimization: these figures are of no use.\n");
#endif
  if (!bench->target.launches) (void)printf("Launches are left out: no compiler made kernels for this device.\n");
}

/* ---- one thread ---- */

static void print_number(double value) {
  if (value < 0) {
    (void)printf(" %8s", "-");
  } else {
    (void)printf(value < 1000 ? " %8.1f" : " %8.0f", value);
  }
}

static void print_numbers(const struct bench *bench, const double values[BENCH_SIDES]) {
  if (bench->sides[DRIVER] == NULL) {
    print_number(values[RILL]);
    return;
  }
  print_number(values[DRIVER]);
  print_number(values[RILL]);
  if (values[DRIVER] < 0) {
    (void)printf(" %8s %6s", "-", "-");
  } else {
    (void)printf(" %+8.1f %6.2f", values[RILL] - values[DRIVER], values[RILL] / values[DRIVER]);
  }
  if (bench->sides[RUNTIME] != NULL) print_number(values[RUNTIME]);
}

static void print_columns(const struct bench *bench) {
  const bool driver = bench->sides[DRIVER] != NULL, runtime = bench->sides[RUNTIME] != NULL;
  const char *columns = !driver   ? "     rill"
                        : runtime ? "   driver     rill     over  ratio  runtime"
                                  : "   driver     rill     over  ratio";
  if (bench->csv) return;
  (void)printf("\n%-36s%-*s    %s\n%-36s%s    %s\n", "ns per call", (int)strlen(columns), "  minimum of batches",
               "  median of batches", "", columns, columns);
}

static void print_row(const struct bench *bench, enum bench_operation operation,
                      const struct bench_time times[BENCH_SIDES]) {
  double minimum[BENCH_SIDES], median[BENCH_SIDES];
  for (size_t i = 0; i < BENCH_SIDES; i++) {
    minimum[i] = times[i].minimum;
    median[i] = times[i].median;
    if (bench->csv && bench->sides[i] != NULL) {
      (void)printf("%s,\"%s\",%s,%.2f,%.2f\n", name_of(bench), names[operation], bench->sides[i]->name, minimum[i],
                   median[i]);
    }
  }
  if (bench->csv) return;
  (void)printf("%-36s", names[operation]);
  print_numbers(bench, minimum);
  (void)printf("    ");
  print_numbers(bench, median);
  (void)printf("\n");
  (void)fflush(stdout);
}

static bool needs_kernels(enum bench_operation operation) {
  switch (operation) {
    case BENCH_launch:
    case BENCH_launch_5:
    case BENCH_launch_ref:
    case BENCH_round_trip:
    case BENCH_idle_round_trip:
    case BENCH_hundred: return true;
    default: return false;
  }
}

static bool measure(struct bench *bench, enum bench_operation operation, bool (*drain_with)(void)) {
  void *const workers[BENCH_SIDES] = { bench->workers[DRIVER][0], bench->workers[RILL][0], bench->workers[RUNTIME][0] };
  struct bench_time times[BENCH_SIDES];
  size_t failed = 0;
  if (!bench_measure(bench->sides, workers, operation, drain_with, times, &failed)) {
    return complain_of_side(bench, failed, names[operation]);
  }
  print_row(bench, operation, times);
  return true;
}

/* ---- an event that is pending ---- */

static bool leave_undrained(void) { return true; }

/* While a kernel on a stream of its own waits for a flag, every side's event is after it. */
static bool measure_pending(struct bench *bench) {
  const uint64_t limit = UINT64_C(20000000000);
  rill_stream stream;
  rill_event gate;
  uint32_t *flags;
  uintptr_t native;
  bool ok = rill_stream_create(bench->target.device, NULL, &stream) == RILL_OK &&
            rill_event_create(bench->target.device, NULL, &gate) == RILL_OK &&
            rill_alloc(bench->target.device, 2 * sizeof *flags, RILL_MEMORY_PINNED, (void **)&flags) == RILL_OK;
  if (!ok) return complain_of_rill(bench, "a gate");
  __atomic_store_n(&flags[0], 0, __ATOMIC_RELEASE);
  if (bench->target.launches) {
    const rill_launch one_thread = rill_launch_1d(1, 1);
    ok = wait_for_flag_launch(stream, &one_thread, &flags[0], 1, limit, &flags[1]) == RILL_OK;
  }
  ok = ok && rill_stream_record_event(stream, gate, 0) == RILL_OK && rill_event_native(gate, &native) == RILL_OK;
  if (!ok) (void)complain_of_rill(bench, "a gate");
  for (size_t i = 0; i < BENCH_SIDES && ok; i++) {
    if (bench->sides[i] == NULL) continue;
    ok = bench->sides[i]->make_pending(bench->workers[i][0], gate, native);
    if (!ok) (void)complain_of_side(bench, i, "an event after a gate");
  }
  ok = ok && measure(bench, BENCH_query_pending, leave_undrained);
  __atomic_store_n(&flags[0], 1, __ATOMIC_RELEASE);
  if (!drain()) return complain_of_rill(bench, "rill_device_synchronize");
  return rill_free(flags) == RILL_OK && rill_event_release(gate) == RILL_OK && rill_stream_release(stream) == RILL_OK &&
         ok;
}

/* ---- many threads ---- */

enum { ROUNDS = 5 };

static bool measure_threads(struct bench *bench, enum bench_operation operation) {
  double best[BENCH_SIDES] = { 0 };
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < BENCH_SIDES; i++) {
      double per_second = 0;
      if (bench->sides[i] == NULL) continue;
      if (!bench_threads(bench->sides[i], bench->workers[i], operation, &per_second) || !drain()) {
        return complain_of_side(bench, i, names[operation]);
      }
      if (per_second > best[i]) best[i] = per_second;
    }
  }
  if (!bench->csv) (void)printf("%-36s", names[operation]);
  for (size_t i = 0; i < BENCH_SIDES; i++) {
    if (bench->sides[i] == NULL) continue;
    if (bench->csv) {
      (void)printf("%s,\"%s, %d threads, calls per second\",%s,%.0f,\n", name_of(bench), names[operation],
                   BENCH_THREADS, bench->sides[i]->name, best[i]);
    } else {
      (void)printf("   %s %.2f", bench->sides[i]->name, best[i] / 1e6);
    }
  }
  if (!bench->csv) (void)printf("\n");
  return true;
}

/* ---- the program ---- */

static bool is_wanted(const struct bench *bench, enum bench_operation operation) {
  if (!bench->target.launches && needs_kernels(operation)) return false;
  return bench->only == NULL || strstr(names[operation], bench->only) != NULL;
}

static bool run(struct bench *bench) {
  static const enum bench_operation threaded[] = { BENCH_launch_5, BENCH_record };
  bool ok = open_bench(bench);
  bool started = false;
  if (!ok) return false;
  print_heading(bench);
  print_columns(bench);
  for (enum bench_operation operation = 0; operation < BENCH_COUNT && ok; operation++) {
    if (!is_wanted(bench, operation)) continue;
    ok = operation == BENCH_query_pending ? measure_pending(bench) : measure(bench, operation, drain);
  }
  for (size_t i = 0; i < sizeof threaded / sizeof *threaded && ok; i++) {
    if (!is_wanted(bench, threaded[i])) continue;
    if (!bench->csv && !started)
      (void)printf("\nmillions of calls per second, %d threads on as many streams\n", BENCH_THREADS);
    started = true;
    ok = measure_threads(bench, threaded[i]);
  }
  if (!bench->csv) (void)printf("\n");
  return ok;
}

int main(int argc, char **argv) {
  static struct bench bench;
  const char *devices[16] = { NULL }; /* the default one */
  const char *only = NULL;
  size_t count = 0;
  bool csv = false, ok = true;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--csv") == 0) {
      csv = true;
    } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else if (argv[i][0] != '-' && count < sizeof devices / sizeof *devices) {
      devices[count++] = argv[i];
    } else {
      (void)fprintf(stderr, "usage: overhead [--csv] [--only TEXT] [DEVICE ...]\n");
      return 2;
    }
  }
  if (csv) (void)printf("device,operation,through,minimum,median\n");
  for (size_t i = 0; i == 0 || i < count; i++) {
    bench = (struct bench){ .device = devices[i], .only = only, .csv = csv };
    ok = run(&bench) && ok;
  }
  return ok ? 0 : 1;
}
