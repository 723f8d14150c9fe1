/* Measures a pool's reserved memory while memory passes between streams in many ways (tests/support/traffic.h).
 *
 *     growth_pools [--csv] [--rounds N] [DEVICE ...]     cuda:0, hip:0, cpu; none: the cpu
 *
 * For each way, with sizes of a fixed set and arbitrary ones: KiB that are in use or not known to be complete at most,
 * which any allocator has to have; KiB that rill's pool has after 300 rounds and at the end; microseconds for each
 * round; and on a GPU the same of the driver's own pool, which is set to keep what is freed.  Nothing is judged here
 * (tests/stress/pool_growth.c does): the exit status is 1 if a call failed, else 0. */
#include "support/traffic.h"

#include <rill/rill.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool csv;

/* ---- the driver's own pool ---- */

/* CUDA's and HIP's functions have the same shapes. */
static struct {
  int (*alloc)(void **out, size_t size, void *stream);
  int (*free)(void *p, void *stream);
  int (*default_pool)(void **out, int device);
  int (*get)(void *pool, int attribute, void *out);
  int (*set)(void *pool, int attribute, void *value);
  int (*trim)(void *pool, size_t keep);
  int (*make_current)(void *context); /* CUDA's */
  int (*set_device)(int device);      /* HIP's */
  void *pool, *context;
  int ordinal;
} driver;

enum { RELEASE_THRESHOLD = 4, RESERVED_NOW = 5 }; /* of both vendors */

static bool find(void *library, const char *name, void *function) {
  void *const symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* False if this device has no such pool. */
static bool find_driver(uint32_t backend) {
  static const char *const hip[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  void *library = NULL;
  memset(&driver, 0, sizeof driver);
  if (backend == RILL_BACKEND_CUDA) {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library != NULL && find(library, "cuMemAllocAsync", &driver.alloc) &&
           find(library, "cuMemFreeAsync", &driver.free) &&
           find(library, "cuDeviceGetDefaultMemPool", &driver.default_pool) &&
           find(library, "cuMemPoolGetAttribute", &driver.get) && find(library, "cuMemPoolSetAttribute", &driver.set) &&
           find(library, "cuMemPoolTrimTo", &driver.trim) && find(library, "cuCtxSetCurrent", &driver.make_current);
  }
  if (backend != RILL_BACKEND_HIP) return false;
  for (size_t i = 0; i < sizeof hip / sizeof *hip && library == NULL; i++) {
    library = dlopen(hip[i], RTLD_NOW | RTLD_NOLOAD);
  }
  return library != NULL && find(library, "hipMallocAsync", &driver.alloc) &&
         find(library, "hipFreeAsync", &driver.free) &&
         find(library, "hipDeviceGetDefaultMemPool", &driver.default_pool) &&
         find(library, "hipMemPoolGetAttribute", &driver.get) && find(library, "hipMemPoolSetAttribute", &driver.set) &&
         find(library, "hipMemPoolTrimTo", &driver.trim) && find(library, "hipSetDevice", &driver.set_device);
}

static int enter_driver(void) {
  return driver.make_current != NULL ? driver.make_current(driver.context) : driver.set_device(driver.ordinal);
}

static int open_driver(rill_device device) {
  uint64_t all = UINT64_MAX;
  rill_stream stream;
  uintptr_t context = 0;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  if (rill_device_get_info(device, &info) != RILL_OK || rill_device_default_stream(device, &stream) != RILL_OK ||
      rill_stream_context(stream, &context) != RILL_OK) {
    return 1;
  }
  driver.ordinal = info.ordinal;
  driver.context = (void *)context;
  int failed = enter_driver();
  if (failed == 0) failed = driver.default_pool(&driver.pool, driver.ordinal);
  return failed != 0 ? failed : driver.set(driver.pool, RELEASE_THRESHOLD, &all);
}

static int alloc_of_driver(rill_stream stream, size_t size, void **out) {
  uintptr_t native = 0;
  if (rill_stream_native(stream, &native) != RILL_OK || enter_driver() != 0) return 1;
  return driver.alloc(out, size, (void *)native);
}

static int free_of_driver(rill_stream stream, void *p) {
  uintptr_t native = 0;
  if (rill_stream_native(stream, &native) != RILL_OK || enter_driver() != 0) return 1;
  return driver.free(p, (void *)native);
}

static uint64_t reserved_of_driver(void) {
  uint64_t bytes = 0;
  return driver.get(driver.pool, RESERVED_NOW, &bytes) == 0 ? bytes : 0;
}

static void close_driver(void) { (void)driver.trim(driver.pool, 0); }

static const struct traffic_allocator of_driver = { open_driver, alloc_of_driver, free_of_driver, reserved_of_driver,
                                                    close_driver };

/* ---- rows ---- */

static unsigned long long kib(uint64_t bytes) { return (unsigned long long)(bytes >> 10); }

static void print_row(const char *name, const char *pattern, bool fixed, const char *side,
                      const struct traffic_numbers *numbers) {
  (void)printf(csv ? "%s,\"%s\",%s,%s,%llu,%llu,%llu,%.1f\n" : "%-7s %-36s %-9s %-6s %8llu %9llu %9llu %9.1f\n", name,
               pattern, fixed ? "fixed" : "arbitrary", side, kib(numbers->peak), kib(numbers->early),
               kib(numbers->reserved), numbers->ns / 1e3);
  (void)fflush(stdout);
}

static void play(rill_device device, const char *name, const struct traffic_pattern *pattern, unsigned rounds,
                 bool fixed, const struct traffic_allocator *other) {
  struct traffic_numbers numbers;
  const char *const failure = traffic_run(device, pattern, rounds, fixed, other, &numbers);
  if (failure != NULL) {
    (void)fprintf(stderr, "growth_pools: %s: %s: %s: %s\n", name, pattern->name, failure, rill_last_error_text());
    exit(1);
  }
  print_row(name, pattern->name, fixed, other != NULL ? "driver" : "rill", &numbers);
}

static void run(const char *name, unsigned rounds) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  if (rill_device_open(name, &device) != RILL_OK || rill_device_get_info(device, &info) != RILL_OK) {
    (void)fprintf(stderr, "growth_pools: %s: %s\n", name, rill_last_error_text());
    exit(1);
  }
  (void)printf(csv ? "%s,%s,%s,%s,%s,%s,%s,%s\n" : "%-7s %-36s %-9s %-6s %8s %9s %9s %9s\n", "device", "pattern",
               "sizes", "side", "needed", "after 300", "at end", "us/round");
  for (unsigned i = 0; i < 2 * traffic_pattern_count; i++) {
    const struct traffic_pattern *pattern = &traffic_patterns[i / 2];
    play(device, name, pattern, rounds, i % 2 == 0, NULL);
    if (find_driver(info.backend)) play(device, name, pattern, rounds, i % 2 == 0, &of_driver);
  }
}

int main(int argc, char **argv) {
  const char *devices[16] = { "cpu" };
  size_t count = 0;
  unsigned rounds = 3000;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--csv") == 0) {
      csv = true;
    } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = (unsigned)strtoul(argv[++i], NULL, 10);
    } else if (argv[i][0] != '-' && count < sizeof devices / sizeof *devices) {
      devices[count++] = argv[i];
    } else {
      (void)fprintf(stderr, "usage: growth_pools [--csv] [--rounds N] [DEVICE ...]\n");
      return 2;
    }
  }
  for (size_t i = 0; i == 0 || i < count; i++) run(devices[i], rounds);
  return 0;
}
