/* The vendor's driver, called as a backend calls it; built once for each vendor, as the backends are. */
#include "bench.h"

#include "backends/gpu/gpu.h"
#if defined GPU_VENDOR_IS_CUDA
#include "tests/support/vendor_api/cuda_for_tests.h"
#else
#include "tests/support/vendor_api/hip_for_tests.h"
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define bench_driver GPU_NAME(bench_driver)

struct worker {
  gpu_stream_handle stream, other;
  gpu_event_handle event, timing, pending;
  gpu_pointer memory;
  void *host;
};

static struct {
  gpu_device_handle device;
  gpu_context context;
  gpu_function empty, five;
} driver;

static gpu_result failed_with;

/* True if a vendor call failed. */
static bool fails(gpu_result result) {
  if (RILL__LIKELY(result == GPU_SUCCESS)) return false;
  failed_with = result;
  return true;
}

#define FAILS(call) fails((gpu_result)gpu_api.call)

/* ---- the operations ---- */

#define LAUNCH(function, arguments) launch(function, 1, 1, 1, 1, 1, 1, 0, worker->stream, arguments, NULL)

static bool launch_five(const struct worker *worker) {
  int n = 1024;
  float a = 2;
  gpu_pointer memory = worker->memory;
  void *arguments[] = { &n, &a, &memory, &memory, &memory };
  return FAILS(LAUNCH(driver.five, arguments));
}

static void on_callback(gpu_stream_handle stream, gpu_native_result result, void *user) {
  (void)stream, (void)result, (void)user;
}

static void on_host(void *user) { (void)user; }

static bool copy_block(const struct worker *worker) {
  const char *symbol;
  return fails(gpu_vendor_copy((void *)(uintptr_t)worker->memory, RILL_MEMORY_DEVICE, worker->host, RILL_MEMORY_PINNED,
                               BENCH_BLOCK_BYTES, worker->stream, &symbol));
}

static bool live_event(void) {
  gpu_event_handle event;
  return FAILS(event_create(&event, GPU_EVENT_DISABLE_TIMING)) || FAILS(event_destroy(event));
}

static bool live_stream(void) {
  gpu_stream_handle stream;
  return FAILS(stream_create(&stream, GPU_STREAM_NON_BLOCKING, 0)) || FAILS(stream_destroy(stream));
}

static bool live_memory(void) {
  gpu_pointer memory;
  return FAILS(memory_alloc(&memory, BENCH_ALLOCATION_BYTES)) || FAILS(memory_free(memory));
}

/* The driver's own pool, which no backend uses.  Older drivers have none. */
#ifdef GPU_VENDOR_IS_CUDA
#define POOL_FUNCTIONS(X)                    \
  X(pool_alloc, cuMemAllocAsync)             \
  X(pool_free, cuMemFreeAsync)               \
  X(default_pool, cuDeviceGetDefaultMemPool) \
  X(set_pool_attribute, cuMemPoolSetAttribute)
#define RELEASE_THRESHOLD CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
typedef CUmemoryPool native_pool;
#else
#define POOL_FUNCTIONS(X)                     \
  X(pool_alloc, hipMallocAsync)               \
  X(pool_free, hipFreeAsync)                  \
  X(default_pool, hipDeviceGetDefaultMemPool) \
  X(set_pool_attribute, hipMemPoolSetAttribute)
#define RELEASE_THRESHOLD hipMemPoolAttrReleaseThreshold
typedef hipMemPool_t native_pool;
#endif

static struct {
#define POOL_FIELD(field, name) __typeof__(name) *field;
  POOL_FUNCTIONS(POOL_FIELD)
} driver_pool;

/* It keeps what is freed, as rill's does; else each drain would give it back. */
static bool open_pool(const char *library) {
  static const struct {
    const char *name;
    void *field;
  } functions[] = {
#define POOL_ENTRY(field, name) { #name, &driver_pool.field },
    POOL_FUNCTIONS(POOL_ENTRY)
  };
  void *opened = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof functions / sizeof *functions && opened != NULL; i++) {
    void *symbol = dlsym(opened, functions[i].name);
    if (symbol == NULL) opened = NULL;
    memcpy(functions[i].field, &symbol, sizeof symbol);
  }
  native_pool pool;
  uint64_t all = UINT64_MAX;
  if (opened != NULL && driver_pool.default_pool(&pool, driver.device) == 0 &&
      driver_pool.set_pool_attribute(pool, RELEASE_THRESHOLD, &all) == 0) {
    return true;
  }
  driver_pool.pool_alloc = NULL;
  return false;
}

static bool lacks(enum bench_operation operation) {
  return operation == BENCH_pool_life && driver_pool.pool_alloc == NULL;
}

static bool live_pool_memory(const struct worker *worker) {
  gpu_pointer memory;
  return fails((gpu_result)driver_pool.pool_alloc(&memory, BENCH_ALLOCATION_BYTES, worker->stream)) ||
         fails((gpu_result)driver_pool.pool_free(memory, worker->stream));
}

/* Pending is no failure. */
static bool query_fails(gpu_event_handle event) {
  const gpu_result result = (gpu_result)gpu_api.event_query(event);
  return result != GPU_NOT_READY && fails(result);
}

static bool launch_hundred(const struct worker *worker) {
  for (int i = 0; i < 100; i++) {
    if (FAILS(LAUNCH(driver.empty, NULL))) return true;
  }
  return FAILS(stream_synchronize(worker->stream));
}

BENCH_BATCH(launch, FAILS(LAUNCH(driver.empty, NULL)))
BENCH_BATCH(launch_5, launch_five(worker))
BENCH_BATCH(launch_ref, launch_five(worker))
BENCH_BATCH(record, FAILS(event_record(worker->event, worker->stream)))
BENCH_BATCH(record_timing, FAILS(event_record(worker->timing, worker->stream)))
BENCH_BATCH(wait, FAILS(stream_wait_event(worker->other, worker->event, 0)))
BENCH_BATCH(wait_known, FAILS(stream_wait_event(worker->other, worker->event, 0)))
BENCH_BATCH(wait_stream, FAILS(event_record(worker->event, worker->stream)) ||
                             FAILS(stream_wait_event(worker->other, worker->event, 0)))
BENCH_BATCH(query_pending, query_fails(worker->pending))
BENCH_BATCH(query_known, query_fails(worker->event))
BENCH_BATCH(query_stream, FAILS(stream_query(worker->stream)))
BENCH_BATCH(synchronize_event, FAILS(event_synchronize(worker->event)))
BENCH_BATCH(synchronize_stream, FAILS(stream_synchronize(worker->stream)))
BENCH_BATCH(copy, copy_block(worker))
BENCH_BATCH(fill, FAILS(fill_32(worker->memory, 7, BENCH_BLOCK_BYTES / 4, worker->stream)))
BENCH_BATCH(host_call, FAILS(stream_add_callback(worker->stream, on_callback, NULL, 0)))
BENCH_BATCH(host_function, FAILS(launch_host_function(worker->stream, on_host, NULL)))
BENCH_BATCH(event_life, ((void)worker, live_event()))
BENCH_BATCH(stream_life, ((void)worker, live_stream()))
BENCH_BATCH(memory_life, ((void)worker, live_memory()))
BENCH_BATCH(pool_life, live_pool_memory(worker))
BENCH_BATCH(round_trip, FAILS(LAUNCH(driver.empty, NULL)) || FAILS(stream_synchronize(worker->stream)))
BENCH_BATCH(idle_round_trip, FAILS(LAUNCH(driver.empty, NULL)) || FAILS(stream_synchronize(worker->stream)))
BENCH_BATCH(hundred, launch_hundred(worker))

/* ---- the side ---- */

/* Makes the device current on this thread, for good. */
static bool enter(void) {
  struct gpu_scope scope;
  return !fails(gpu_vendor_enter(&scope, driver.device, driver.context));
}

/* The first image that the driver takes; a bundle has its images of one vendor in no order. */
static bool load_kernels(const rill_bundle *bundle) {
  for (size_t i = 0; i < bundle->image_count; i++) {
    gpu_module_handle module;
    char log[256];
    if (strcmp(bundle->images[i].backend, GPU_BACKEND_NAME) != 0) continue;
    if (fails(gpu_vendor_module_load(&module, bundle->images[i].data, log, sizeof log))) continue;
    return !FAILS(module_function(&driver.empty, module, "empty")) &&
           !FAILS(module_function(&driver.five, module, "five"));
  }
  return false;
}

static void explain(char *text, size_t size) {
  const char *name = gpu_vendor_error_name(failed_with);
  (void)snprintf(text, size, "%s (%d)", name != NULL ? name : "unknown error", failed_with);
}

static bool open_side(const struct bench_target *target, char *text, size_t size) {
  const char *library = gpu_load(text, size);
  if (library == NULL) return false;
  const bool opened = !FAILS(init(0)) && !FAILS(device_get(&driver.device, target->info.ordinal)) &&
                      !fails(gpu_vendor_open(driver.device, &driver.context)) && enter() &&
                      (!target->launches || load_kernels(target->bundle));
  if (opened) {
    (void)snprintf(text, size, "%s, version %u%s", library, target->info.driver_version,
                   open_pool(library) ? "" : ", without pools");
  } else {
    explain(text, size);
  }
  return opened;
}

static void *new_worker(void) {
  struct worker *worker = calloc(1, sizeof *worker);
  const bool made =
      worker != NULL && !FAILS(stream_create(&worker->stream, GPU_STREAM_NON_BLOCKING, 0)) &&
      !FAILS(stream_create(&worker->other, GPU_STREAM_NON_BLOCKING, 0)) &&
      !FAILS(event_create(&worker->event, GPU_EVENT_DISABLE_TIMING)) && !FAILS(event_create(&worker->timing, 0)) &&
      !FAILS(event_create(&worker->pending, GPU_EVENT_DISABLE_TIMING)) &&
      !FAILS(memory_alloc(&worker->memory, BENCH_BLOCK_BYTES)) &&
      !FAILS(host_alloc(&worker->host, BENCH_BLOCK_BYTES, GPU_HOST_ALLOC_PORTABLE | GPU_HOST_ALLOC_MAPPED)) &&
      !FAILS(event_record(worker->event, worker->stream));
  return made ? worker : NULL;
}

static bool make_pending(void *worker_, rill_event gate, uintptr_t native_gate) {
  const struct worker *worker = worker_;
  (void)gate;
  return !FAILS(stream_wait_event(worker->stream, (gpu_event_handle)native_gate, 0)) &&
         !FAILS(event_record(worker->pending, worker->stream));
}

const struct bench_side bench_driver = {
  .name = "driver",
  .open = open_side,
  .enter = enter,
  .new_worker = new_worker,
  .make_pending = make_pending,
  .explain = explain,
  .lacks = lacks,
  .batches = BENCH_TABLE(),
};
