/* rill bench copies, stream, peers: bandwidth. */
#include "bench.h"
#include "rill_kernels.h"
#include "stream.rill.h"
#include "tool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool rill_ok(rill_status status) { return status == RILL_OK || complain_of_rill(); }

/* ---- a copy ---- */

struct copy {
  rill_stream stream;
  void *to;
  const void *from;
  size_t size;
};

static bool copy_once(void *copy_) {
  const struct copy *copy = copy_;
  return rill_ok(rill_copy_async(copy->stream, copy->to, copy->from, copy->size));
}

static bool copy_drain(void *copy_) {
  const struct copy *copy = copy_;
  return rill_ok(rill_stream_synchronize(copy->stream));
}

static bool measure_copy(const struct bench *bench, struct copy *copy, double *rate) {
  double ns = 0;
  const struct bench_task task = { copy_once, copy_drain, copy, true };
  if (!bench_measure(bench, &task, &ns)) return false;
  *rate = (double)copy->size / ns; /* bytes per ns equal GB/s */
  return true;
}

/* ---- copies ---- */

enum { SMALLEST = 4096, LARGEST = 256 << 20, LARGEST_QUICK = 4 << 20 };

struct buffers {
  rill_stream stream;
  void *device, *second, *pinned, *pageable;
  size_t size;
};

static void free_buffers(struct buffers *buffers) {
  (void)rill_free(buffers->device);
  (void)rill_free(buffers->second);
  (void)rill_free(buffers->pinned);
  free(buffers->pageable);
  buffers->device = buffers->second = buffers->pinned = buffers->pageable = NULL;
}

/* Allocates the largest size for which there is memory. */
static bool alloc_buffers(const struct bench *bench, struct buffers *buffers) {
  for (buffers->size = bench->quick ? LARGEST_QUICK : LARGEST; buffers->size >= SMALLEST; buffers->size /= 4) {
    buffers->pageable = malloc(buffers->size);
    if (buffers->pageable != NULL &&
        rill_alloc(bench->device, buffers->size, RILL_MEMORY_DEVICE, &buffers->device) == RILL_OK &&
        rill_alloc(bench->device, buffers->size, RILL_MEMORY_DEVICE, &buffers->second) == RILL_OK &&
        rill_alloc(bench->device, buffers->size, RILL_MEMORY_PINNED, &buffers->pinned) == RILL_OK) {
      memset(buffers->pageable, 1, buffers->size); /* otherwise all of it is one zero page */
      return true;
    }
    free_buffers(buffers);
  }
  return complain("no memory for copies of 4 KiB: %s", rill_last_error_text());
}

static const char *size_text(size_t size, char text[16]) {
  (void)snprintf(text, 16, size < 1 << 20 ? "%zu KiB" : "%zu MiB", size < 1 << 20 ? size >> 10 : size >> 20);
  return text;
}

bool bench_copies(const struct bench *bench) {
  static const struct bench_section section = { "copies",
                                                "GB/s",
                                                { "pinned to device", "pageable to device", "device to pinned",
                                                  "device to pageable", "device to device" } };
  struct buffers b = { .size = 0 };
  bool ok = rill_ok(rill_stream_create(bench->device, NULL, &b.stream)) && alloc_buffers(bench, &b);
  if (ok) bench_begin(bench, &section);
  for (size_t size = SMALLEST; size <= b.size && ok; size *= 4) {
    char text[16];
    double rates[BENCH_COLUMNS] = { NAN, NAN, NAN, NAN, NAN };
    struct copy copies[BENCH_COLUMNS] = {
      { b.stream, b.device, b.pinned, size }, { b.stream, b.device, b.pageable, size },
      { b.stream, b.pinned, b.device, size }, { b.stream, b.pageable, b.device, size },
      { b.stream, b.second, b.device, size },
    };
    for (int i = 0; i < BENCH_COLUMNS && ok; i++) ok = measure_copy(bench, &copies[i], &rates[i]);
    if (ok) bench_row(bench, &section, size_text(size, text), rates);
  }
  if (ok) bench_end(bench, NULL);
  free_buffers(&b);
  (void)rill_stream_release(b.stream);
  return ok;
}

/* ---- STREAM ---- */

struct arrays {
  rill_stream stream;
  void *memory[3];
  size_t size; /* size of each array, in bytes */
  int kernel;
  bool doubles;
};

static bool run_stream(void *arrays_) {
  const struct arrays *a = arrays_;
  const size_t element = a->doubles ? sizeof(double) : sizeof(float);
  const int64_t n = (int64_t)(a->size / element);
  const rill_launch shape = rill_kernels_wide((uint64_t)n, element, 1024);
  if (a->doubles) {
    double *x = a->memory[0], *y = a->memory[1], *z = a->memory[2];
    return rill_ok(a->kernel == 0   ? stream_copy_f64_launch(a->stream, &shape, n, x, z)
                   : a->kernel == 1 ? stream_scale_f64_launch(a->stream, &shape, n, 3, z, y)
                   : a->kernel == 2 ? stream_add_f64_launch(a->stream, &shape, n, x, y, z)
                                    : stream_triad_f64_launch(a->stream, &shape, n, 3, y, z, x));
  }
  float *x = a->memory[0], *y = a->memory[1], *z = a->memory[2];
  return rill_ok(a->kernel == 0   ? stream_copy_f32_launch(a->stream, &shape, n, x, z)
                 : a->kernel == 1 ? stream_scale_f32_launch(a->stream, &shape, n, 3, z, y)
                 : a->kernel == 2 ? stream_add_f32_launch(a->stream, &shape, n, x, y, z)
                                  : stream_triad_f32_launch(a->stream, &shape, n, 3, y, z, x));
}

static bool drain_stream(void *arrays_) {
  const struct arrays *a = arrays_;
  return rill_ok(rill_stream_synchronize(a->stream));
}

static bool open_arrays(const struct bench *bench, struct arrays *a) {
  const uint32_t zero = 0;
  const uint64_t fits = bench->info.memory_total / 16;
  a->size = bench->quick ? 4 << 20 : 256 << 20;
  while (a->size > fits && a->size > SMALLEST) a->size /= 2;
  if (!rill_ok(rill_stream_create(bench->device, NULL, &a->stream))) return false;
  for (int i = 0; i < 3; i++) {
    if (!rill_ok(rill_alloc(bench->device, a->size, RILL_MEMORY_DEVICE, &a->memory[i])) ||
        !rill_ok(rill_fill_async(a->stream, a->memory[i], &zero, 4, a->size / 4))) {
      return false;
    }
  }
  return true;
}

bool bench_stream(const struct bench *bench) {
  static const struct bench_section section = { "stream", "GB/s", { "float", "double" } };
  static const struct {
    const char *what;
    int arrays; /* number of arrays that the kernel reads and writes */
  } kernels[] = { { "copy", 2 }, { "scale", 2 }, { "add", 3 }, { "triad", 3 } };
  struct arrays a = { .size = 0 };
  const bool runs = bench->no_kernels[0] == '\0';
  bool ok = !runs || open_arrays(bench, &a);
  if (ok) bench_begin(bench, &section);
  for (a.kernel = 0; a.kernel < 4 && ok && runs; a.kernel++) {
    double rates[2] = { NAN, NAN };
    for (int i = 0; i < 2 && ok; i++) {
      double ns = 0;
      a.doubles = i == 1;
      const struct bench_task task = { run_stream, drain_stream, &a, true };
      ok = bench_measure(bench, &task, &ns);
      rates[i] = (double)a.size * kernels[a.kernel].arrays / ns;
    }
    if (ok) bench_row(bench, &section, kernels[a.kernel].what, rates);
  }
  if (ok) bench_end(bench, runs ? NULL : bench->no_kernels);
  for (int i = 0; i < 3; i++) (void)rill_free(a.memory[i]);
  (void)rill_stream_release(a.stream);
  return ok;
}

/* ---- peers ---- */

/* Measures copies without access to the other device's memory, then with access if the devices support it.
 */
static bool measure_pair(const struct bench *bench, const struct bench_section *section, rill_device from,
                         rill_device to) {
  const size_t size = bench->quick ? 1 << 20 : 64 << 20;
  rill_device_info ends[2] = { RILL_DEVICE_INFO_INIT, RILL_DEVICE_INFO_INIT };
  double rates[2] = { NAN, NAN };
  void *source = NULL, *target = NULL;
  struct copy copy = { .size = size };
  bool ok = rill_ok(rill_device_get_info(from, &ends[0])) && rill_ok(rill_device_get_info(to, &ends[1])) &&
            rill_ok(rill_stream_create(from, NULL, &copy.stream)) &&
            rill_ok(rill_alloc(from, size, RILL_MEMORY_DEVICE, &source)) &&
            rill_ok(rill_alloc(to, size, RILL_MEMORY_DEVICE, &target));
  copy.from = source;
  copy.to = target;
  ok = ok && measure_copy(bench, &copy, &rates[0]);
  if (ok && rill_device_can_access_peer(from, to, NULL)) {
    ok = rill_ok(rill_device_enable_peer(from, to)) && measure_copy(bench, &copy, &rates[1]) &&
         rill_ok(rill_device_disable_peer(from, to));
  }
  char what[64];
  (void)snprintf(what, sizeof what, "%s to %s", device_name(&ends[0]).text, device_name(&ends[1]).text);
  if (ok) bench_row(bench, section, what, rates);
  (void)rill_free(source);
  (void)rill_free(target);
  (void)rill_stream_release(copy.stream);
  return ok;
}

bool bench_peers(const struct bench *bench) {
  static const struct bench_section section = { "peers", "GB/s", { "access off", "access on" } };
  bool ok = true, any = false;
  bench_begin(bench, &section);
  for (int32_t ordinal = 0; ok; ordinal++) {
    char name[32];
    rill_device other;
    (void)snprintf(name, sizeof name, "%s:%d", backend_name(bench->info.backend), (int)ordinal);
    if (rill_device_open(name, &other) != RILL_OK) break;
    if (rill_device_equal(other, bench->device)) continue;
    any = true;
    ok = measure_pair(bench, &section, bench->device, other) && measure_pair(bench, &section, other, bench->device);
  }
  if (ok) bench_end(bench, any ? NULL : "this backend has no other device");
  return ok;
}
