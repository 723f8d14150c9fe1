/* rill bench layer: cost of a rill call compared with the vendor's own. */
#include "bench.h"
#include "loaded.h"
#include "tool.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Both vendors' functions have these forms. */
struct raw {
  int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, void *stream, void **args, void **extra);
  int (*record)(void *event, void *stream);
  int (*wait)(void *stream, void *event, unsigned flags);
  int (*synchronize)(void *stream);
  int (*set_device)(int ordinal); /* HIP only: its launches use the thread's device */
};

/* Streams and events of one side. Each side has its own, because rill queries the driver for objects whose native
 * handles it returned. */
struct side {
  struct bench_launch launch;
  rill_stream other;
  rill_event event;
  struct raw raw;
  void *native_function, *native_stream, *native_other, *native_event;
  void *args[3];
};

/* ---- the vendor's library ---- */

static bool fill(void *library, const char *name, void *field) {
  void *symbol = dlsym(library, name);
  memcpy(field, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool find_functions(const struct bench *bench, struct raw *raw) {
  char path[PATH_MAX];
  const bool cuda = bench->info.backend == RILL_BACKEND_CUDA;
  const char *found = loaded_driver(bench->info.backend, path);
  void *library = found != NULL ? dlopen(found, RTLD_NOW | RTLD_NOLOAD) : NULL; /* rill keeps it open */
  return library != NULL && fill(library, cuda ? "cuLaunchKernel" : "hipModuleLaunchKernel", &raw->launch) &&
         fill(library, cuda ? "cuEventRecord" : "hipEventRecord", &raw->record) &&
         fill(library, cuda ? "cuStreamWaitEvent" : "hipStreamWaitEvent", &raw->wait) &&
         fill(library, cuda ? "cuStreamSynchronize" : "hipStreamSynchronize", &raw->synchronize) &&
         (cuda || fill(library, "hipSetDevice", &raw->set_device));
}

/* Returns false if there is nothing to compare with. */
static bool open_raw(const struct bench *bench, struct side *side) {
  uintptr_t stream = 0, other = 0, event = 0, function = 0;
  const bool found = find_functions(bench, &side->raw) &&
                     (side->raw.set_device == NULL || side->raw.set_device(bench->info.ordinal) == 0) &&
                     rill_stream_native(side->launch.stream, &stream) == RILL_OK &&
                     rill_stream_native(side->other, &other) == RILL_OK &&
                     rill_event_native(side->event, &event) == RILL_OK;
  const bool launches = bench->no_kernels[0] == '\0';
  if (!found || (launches && rill_kernel_native(bench->kernel, &function) != RILL_OK)) return false;
  side->native_stream = (void *)stream;
  side->native_other = (void *)other;
  side->native_event = (void *)event;
  side->native_function = (void *)function;
  side->args[0] = &side->launch.n;
  side->args[1] = side->args[2] = &side->launch.memory;
  return true;
}

/* ---- the operations ---- */

static bool raw_ok(const char *what, int code) {
  return code == 0 || complain("the driver's own %s fails with %d", what, code);
}

static bool raw_launch(void *side_) {
  struct side *side = side_;
  return raw_ok("launch",
                side->raw.launch(side->native_function, 1, 1, 1, 1, 1, 1, 0, side->native_stream, side->args, NULL));
}

static bool raw_record(void *side_) {
  struct side *side = side_;
  return raw_ok("record of an event", side->raw.record(side->native_event, side->native_stream));
}

static bool raw_wait(void *side_) {
  struct side *side = side_;
  return raw_ok("wait for an event", side->raw.wait(side->native_other, side->native_event, 0));
}

static bool raw_synchronize(void *side_) {
  struct side *side = side_;
  return raw_ok("synchronization", side->raw.synchronize(side->native_stream));
}

static bool raw_round_trip(void *side) { return raw_launch(side) && raw_synchronize(side); }

static bool rill_ok(rill_status status) { return status == RILL_OK || complain_of_rill(); }

static bool launch(void *side_) {
  struct side *side = side_;
  return bench_launch_once(&side->launch);
}

static bool record(void *side_) {
  struct side *side = side_;
  return rill_ok(rill_stream_record_event(side->launch.stream, side->event, 0));
}

static bool wait(void *side_) {
  struct side *side = side_;
  return rill_ok(rill_stream_wait_event(side->other, side->event, 0));
}

static bool synchronize(void *side_) {
  struct side *side = side_;
  return rill_ok(rill_stream_synchronize(side->launch.stream));
}

static bool round_trip(void *side) { return launch(side) && synchronize(side); }

static bool drain(void *side_) {
  struct side *side = side_;
  return rill_ok(rill_stream_synchronize(side->launch.stream)) && rill_ok(rill_stream_synchronize(side->other));
}

static const struct {
  const char *what;
  bool (*rill)(void *side), (*raw)(void *side);
  bool launches;
} operations[] = {
  { "launch of one thread", launch, raw_launch, true },
  { "record an event", record, raw_record, false },
  { "wait for an event", wait, raw_wait, false },
  { "synchronize, when idle", synchronize, raw_synchronize, false },
  { "launch and synchronize", round_trip, raw_round_trip, true },
};

/* ---- the section ---- */

static bool open_side(const struct bench *bench, struct side *side) {
  return bench_launch_open(bench, &side->launch) && rill_ok(rill_stream_create(bench->device, NULL, &side->other)) &&
         rill_ok(rill_event_create(bench->device, NULL, &side->event)) &&
         rill_ok(rill_stream_record_event(side->launch.stream, side->event, 0));
}

static void close_side(struct side *side) {
  bench_launch_close(&side->launch);
  (void)rill_stream_release(side->other);
  (void)rill_event_release(side->event);
}

bool bench_layer(const struct bench *bench) {
  static const struct bench_section section = { "layer", "ns per call", { "rill", "driver", "difference" } };
  struct side own = { .native_stream = NULL }, vendors = { .native_stream = NULL };
  bool ok = open_side(bench, &own) && open_side(bench, &vendors);
  const bool compares = ok && bench->info.backend != RILL_BACKEND_CPU && open_raw(bench, &vendors);
  if (ok) bench_begin(bench, &section);
  for (size_t i = 0; i < sizeof operations / sizeof *operations && ok; i++) {
    double values[3] = { NAN, NAN, NAN };
    if (operations[i].launches && bench->no_kernels[0] != '\0') continue;
    const struct bench_task rills = { operations[i].rill, drain, &own, false };
    const struct bench_task raws = { operations[i].raw, drain, &vendors, false };
    ok = bench_measure(bench, &rills, &values[0]) && (!compares || bench_measure(bench, &raws, &values[1]));
    if (compares) values[2] = values[0] - values[1];
    if (ok) bench_row(bench, &section, operations[i].what, values);
  }
  if (ok) bench_end(bench, NULL);
  close_side(&own);
  close_side(&vendors);
  return ok;
}
