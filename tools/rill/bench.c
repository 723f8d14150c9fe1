/* rill bench: the command, how a figure is measured, and how it is printed. */
#include "bench.h"

#include "stream.rill.h"
#include "tool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- measuring ---- */

uint64_t bench_now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool run_batch(const struct bench_task *task, uint32_t count, double *ns) {
  const uint64_t start = bench_now();
  for (uint32_t i = 0; i < count; i++) {
    if (!task->work(task->user)) return false;
  }
  const uint64_t submitted = bench_now();
  if (!task->drain(task->user)) return false;
  *ns = (double)((task->timed_drain ? bench_now() : submitted) - start);
  return true;
}

/* Batches grow to a tenth of the time budget, but stay below the size of a driver's queue, because calls block if it
 * is full. */
bool bench_measure(const struct bench *bench, const struct bench_task *task, double *ns) {
  enum { MOST = 256 };
  double taken = 0;
  if (!run_batch(task, 1, &taken)) return false; /* first-use costs */
  const uint64_t end = bench_now() + bench->budget_ns;
  *ns = 1e300;
  for (uint32_t count = 1; bench_now() < end || *ns == 1e300;) {
    if (!run_batch(task, count, &taken)) return false;
    *ns = taken / count < *ns ? taken / count : *ns;
    if (taken < (double)bench->budget_ns / 10 && count < MOST) count *= 2;
  }
  return true;
}

/* ---- printing ---- */

static int width_of(const char *column) { return strlen(column) < 10 ? 12 : (int)strlen(column) + 2; }

void bench_begin(const struct bench *bench, const struct bench_section *section) {
  if (bench->json != NULL) {
    json_open(bench->json, NULL, '{');
    json_text(bench->json, "section", section->name);
    json_text(bench->json, "unit", section->unit);
    json_open(bench->json, "rows", '[');
    return;
  }
  char title[64];
  (void)snprintf(title, sizeof title, "%s, %s", section->name, section->unit);
  (void)printf("\n%-28s", title);
  for (int i = 0; i < BENCH_COLUMNS && section->columns[i] != NULL; i++) {
    (void)printf("%*s", width_of(section->columns[i]), section->columns[i]);
  }
  (void)putchar('\n');
}

static void write_value(struct json *json, const char *column, double value) {
  char key[32];
  (void)snprintf(key, sizeof key, "%s", column);
  for (char *c = key; *c != '\0'; c++) *c = *c == ' ' ? '_' : *c;
  if (isnan(value)) {
    json_null(json, key);
  } else {
    json_number(json, key, value);
  }
}

void bench_row(const struct bench *bench, const struct bench_section *section, const char *what, const double *values) {
  if (bench->json != NULL) {
    json_open(bench->json, NULL, '{');
    json_text(bench->json, "what", what);
    for (int i = 0; i < BENCH_COLUMNS && section->columns[i] != NULL; i++) {
      write_value(bench->json, section->columns[i], values[i]);
    }
    json_close(bench->json, '}');
    return;
  }
  (void)printf("  %-26s", what);
  for (int i = 0; i < BENCH_COLUMNS && section->columns[i] != NULL; i++) {
    if (isnan(values[i])) {
      (void)printf("%*s", width_of(section->columns[i]), "-");
    } else {
      (void)printf("%*.*f", width_of(section->columns[i]),
                   fabs(values[i]) < 10     ? 2
                   : fabs(values[i]) < 1000 ? 1
                                            : 0,
                   values[i]);
    }
  }
  (void)putchar('\n');
  (void)fflush(stdout);
}

void bench_end(const struct bench *bench, const char *left_out) {
  if (bench->json != NULL) {
    json_close(bench->json, ']');
    json_text(bench->json, "left_out", left_out);
    json_close(bench->json, '}');
  } else if (left_out != NULL) {
    (void)printf("  left out: %s\n", left_out);
  }
}

/* ---- a launch ---- */

bool bench_launch_open(const struct bench *bench, struct bench_launch *launch) {
  *launch = (struct bench_launch){ .kernel = bench->kernel, .shape = rill_launch_1d(1, 1), .n = 1 };
  void *memory = NULL;
  const bool ok = rill_stream_create(bench->device, NULL, &launch->stream) == RILL_OK &&
                  rill_alloc(bench->device, 2 * sizeof *launch->memory, RILL_MEMORY_DEVICE, &memory) == RILL_OK &&
                  rill_fill_async(launch->stream, memory, &(uint32_t){ 0 }, 4, 2) == RILL_OK &&
                  rill_stream_synchronize(launch->stream) == RILL_OK;
  launch->memory = memory;
  launch->args[0] = (rill_arg){ &launch->n, sizeof launch->n };
  launch->args[1] = launch->args[2] = (rill_arg){ &launch->memory, sizeof launch->memory };
  if (ok) return true;
  (void)complain_of_rill();
  bench_launch_close(launch);
  return false;
}

void bench_launch_close(struct bench_launch *launch) {
  (void)rill_free(launch->memory);
  (void)rill_stream_release(launch->stream);
  *launch = (struct bench_launch){ .memory = NULL };
}

bool bench_launch_once(void *launch_) {
  const struct bench_launch *launch = launch_;
  return rill_stream_launch(launch->stream, launch->kernel, &launch->shape, launch->args, 3) == RILL_OK ||
         complain_of_rill();
}

bool bench_launch_drain(void *launch_) {
  const struct bench_launch *launch = launch_;
  return rill_stream_synchronize(launch->stream) == RILL_OK || complain_of_rill();
}

/* ---- the command ---- */

static const struct {
  const char *name;
  bool (*run)(const struct bench *bench);
} sections[] = {
  { "layer", bench_layer },       { "copies", bench_copies }, { "stream", bench_stream },
  { "launches", bench_launches }, { "peers", bench_peers },   { "graphs", bench_graphs },
};
enum { SECTIONS = sizeof sections / sizeof *sections };

struct options {
  const char *device;
  bool chosen[SECTIONS], any;
};

static int misuse(const char *argument) {
  (void)complain(
      "bench: unexpected argument \"%s\"; usage: rill bench [layer] [copies] [stream] [launches] [peers] [graphs] "
      "[--device NAME] [--quick] [--json]",
      argument);
  return EXIT_USAGE;
}

static bool choose(const char *name, struct options *options) {
  for (int i = 0; i < SECTIONS; i++) {
    if (strcmp(sections[i].name, name) == 0) return options->any = options->chosen[i] = true;
  }
  return false;
}

/* Returns the invalid argument, or NULL if there is none. */
static const char *parse(int argc, char **argv, struct options *options, struct bench *bench, struct json *json) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) {
      bench->json = json;
    } else if (strcmp(argv[i], "--quick") == 0) {
      bench->quick = true;
    } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      options->device = argv[++i];
    } else if (!choose(argv[i], options)) {
      return argv[i];
    }
  }
  return NULL;
}

static bool open_device(const char *name, struct bench *bench, rill_module *module) {
  bench->info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  if (rill_device_open(name, &bench->device) != RILL_OK ||
      rill_device_get_info(bench->device, &bench->info) != RILL_OK) {
    return complain_of_rill();
  }
  const rill_status status = rill_module_load(bench->device, &stream_bundle, module);
  if (status == RILL_ERROR_NOT_FOUND) {
    (void)snprintf(bench->no_kernels, sizeof bench->no_kernels, "%s", rill_last_error_text());
    return true;
  }
  if (status == RILL_OK && rill_module_get_kernel(*module, "stream_copy_f32", &bench->kernel) == RILL_OK) return true;
  return complain_of_rill();
}

static void begin_output(const struct bench *bench) {
  if (bench->json == NULL) {
    (void)printf("%s: %s, rill %s%s\n", device_name(&bench->info).text, bench->info.name,
                 version_text(rill_version()).text, bench->quick ? ", --quick" : "");
    return;
  }
  json_open(bench->json, NULL, '{');
  json_text(bench->json, "version", version_text(rill_version()).text);
  json_text(bench->json, "device", device_name(&bench->info).text);
  json_text(bench->json, "name", bench->info.name);
  json_flag(bench->json, "quick", bench->quick);
  json_open(bench->json, "sections", '[');
}

int bench_command(int argc, char **argv) {
  struct json json = { 0 };
  struct options options = { .device = NULL };
  struct bench bench = { .quick = false };
  rill_module module = { 0 };
  const char *wrong = parse(argc, argv, &options, &bench, &json);
  if (wrong != NULL) return misuse(wrong);
  bench.budget_ns = bench.quick ? 5000000 : 100000000;
  if (!open_device(options.device, &bench, &module)) return EXIT_WORK;
  begin_output(&bench);
  bool ok = true;
  for (int i = 0; i < SECTIONS && ok; i++) {
    if (options.chosen[i] || !options.any) ok = sections[i].run(&bench);
  }
  if (ok && bench.json != NULL) {
    json_close(&json, ']');
    json_close(&json, '}');
  }
  (void)rill_kernel_release(bench.kernel);
  (void)rill_module_release(module);
  return fflush(stdout) == 0 && ok ? 0 : EXIT_WORK;
}
