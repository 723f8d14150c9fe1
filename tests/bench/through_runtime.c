/* The CUDA runtime, if installed: the calls of a program that does not use the driver itself. */
#include "bench.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <rill/bundle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels of our own images can be had from this version on. */
#define HAS_LIBRARIES (CUDART_VERSION >= 12080)

#define RUNTIME_FUNCTIONS(X)   \
  X(cudaGetErrorName)          \
  X(cudaSetDevice)             \
  X(cudaStreamCreateWithFlags) \
  X(cudaStreamDestroy)         \
  X(cudaStreamQuery)           \
  X(cudaStreamSynchronize)     \
  X(cudaStreamWaitEvent)       \
  X(cudaStreamAddCallback)     \
  X(cudaLaunchHostFunc)        \
  X(cudaEventCreateWithFlags)  \
  X(cudaEventDestroy)          \
  X(cudaEventRecord)           \
  X(cudaEventQuery)            \
  X(cudaEventSynchronize)      \
  X(cudaMalloc)                \
  X(cudaFree)                  \
  X(cudaMallocAsync)           \
  X(cudaFreeAsync)             \
  X(cudaHostAlloc)             \
  X(cudaMemcpyAsync)           \
  X(cudaMemsetAsync)           \
  X(cudaLaunchKernel)

static struct {
#define DECLARE(name) __typeof__(name) *name;
  RUNTIME_FUNCTIONS(DECLARE)
#if HAS_LIBRARIES
  DECLARE(cudaLibraryLoadData)
  DECLARE(cudaLibraryGetKernel)
#endif
#undef DECLARE
} runtime;

struct worker {
  cudaStream_t stream, other;
  cudaEvent_t event, timing, pending;
  void *memory, *host;
};

static int ordinal;
static const void *empty_kernel, *five_kernel;
static cudaError_t failed_with;

static bool fails(cudaError_t result) {
  if (__builtin_expect(result == cudaSuccess, 1)) return false;
  failed_with = result;
  return true;
}

#define FAILS(call) fails(runtime.call)

/* ---- the operations ---- */

static const dim3 one = { 1, 1, 1 };

static bool launch_five(const struct worker *worker) {
  int n = 1024;
  float a = 2;
  void *memory = worker->memory;
  void *arguments[] = { &n, &a, &memory, &memory, &memory };
  return FAILS(cudaLaunchKernel(five_kernel, one, one, arguments, 0, worker->stream));
}

#define LAUNCH_FAILS FAILS(cudaLaunchKernel(empty_kernel, one, one, NULL, 0, worker->stream))

static void CUDART_CB on_callback(cudaStream_t stream, cudaError_t result, void *user) {
  (void)stream, (void)result, (void)user;
}

static void CUDART_CB on_host(void *user) { (void)user; }

static bool live_event(void) {
  cudaEvent_t event;
  return FAILS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) || FAILS(cudaEventDestroy(event));
}

static bool live_stream(void) {
  cudaStream_t stream;
  return FAILS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) || FAILS(cudaStreamDestroy(stream));
}

static bool live_memory(void) {
  void *memory;
  return FAILS(cudaMalloc(&memory, BENCH_ALLOCATION_BYTES)) || FAILS(cudaFree(memory));
}

/* Of the driver's default pool, which the driver's side has set to keep what is freed. */
static bool live_pool_memory(const struct worker *worker) {
  void *memory;
  return FAILS(cudaMallocAsync(&memory, BENCH_ALLOCATION_BYTES, worker->stream)) ||
         FAILS(cudaFreeAsync(memory, worker->stream));
}

static bool query_fails(cudaEvent_t event) {
  const cudaError_t result = runtime.cudaEventQuery(event);
  return result != cudaErrorNotReady && fails(result);
}

static bool launch_hundred(const struct worker *worker) {
  for (int i = 0; i < 100; i++) {
    if (LAUNCH_FAILS) return true;
  }
  return FAILS(cudaStreamSynchronize(worker->stream));
}

BENCH_BATCH(launch, LAUNCH_FAILS)
BENCH_BATCH(launch_5, launch_five(worker))
BENCH_BATCH(launch_ref, launch_five(worker))
BENCH_BATCH(record, FAILS(cudaEventRecord(worker->event, worker->stream)))
BENCH_BATCH(record_timing, FAILS(cudaEventRecord(worker->timing, worker->stream)))
BENCH_BATCH(wait, FAILS(cudaStreamWaitEvent(worker->other, worker->event, 0)))
BENCH_BATCH(wait_known, FAILS(cudaStreamWaitEvent(worker->other, worker->event, 0)))
BENCH_BATCH(wait_stream, FAILS(cudaEventRecord(worker->event, worker->stream)) ||
                             FAILS(cudaStreamWaitEvent(worker->other, worker->event, 0)))
BENCH_BATCH(query_pending, query_fails(worker->pending))
BENCH_BATCH(query_known, query_fails(worker->event))
BENCH_BATCH(query_stream, FAILS(cudaStreamQuery(worker->stream)))
BENCH_BATCH(synchronize_event, FAILS(cudaEventSynchronize(worker->event)))
BENCH_BATCH(synchronize_stream, FAILS(cudaStreamSynchronize(worker->stream)))
BENCH_BATCH(copy, FAILS(cudaMemcpyAsync(worker->memory, worker->host, BENCH_BLOCK_BYTES, cudaMemcpyHostToDevice,
                                        worker->stream)))
BENCH_BATCH(fill, FAILS(cudaMemsetAsync(worker->memory, 7, BENCH_BLOCK_BYTES, worker->stream)))
BENCH_BATCH(host_call, FAILS(cudaStreamAddCallback(worker->stream, on_callback, NULL, 0)))
BENCH_BATCH(host_function, FAILS(cudaLaunchHostFunc(worker->stream, on_host, NULL)))
BENCH_BATCH(event_life, ((void)worker, live_event()))
BENCH_BATCH(stream_life, ((void)worker, live_stream()))
BENCH_BATCH(memory_life, ((void)worker, live_memory()))
BENCH_BATCH(pool_life, live_pool_memory(worker))
BENCH_BATCH(round_trip, LAUNCH_FAILS || FAILS(cudaStreamSynchronize(worker->stream)))
BENCH_BATCH(idle_round_trip, LAUNCH_FAILS || FAILS(cudaStreamSynchronize(worker->stream)))
BENCH_BATCH(hundred, launch_hundred(worker))

/* ---- the side ---- */

static bool load_functions(void *library, char *text, size_t size) {
  const struct {
    const char *name;
    void *field;
  } functions[] = {
#define TEXT(name) #name
#define ENTRY(name) { TEXT(name), &runtime.name },
    RUNTIME_FUNCTIONS(ENTRY)
#if HAS_LIBRARIES
        ENTRY(cudaLibraryLoadData) ENTRY(cudaLibraryGetKernel)
#endif
#undef ENTRY
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *symbol = dlsym(library, functions[i].name);
    if (symbol == NULL) {
      (void)snprintf(text, size, "%s is missing", functions[i].name);
      return false;
    }
    memcpy(functions[i].field, &symbol, sizeof symbol);
  }
  return true;
}

static bool load_kernels(const rill_bundle *bundle) {
#if HAS_LIBRARIES
  for (size_t i = 0; i < bundle->image_count; i++) {
    cudaLibrary_t library;
    cudaKernel_t empty, five;
    if (strcmp(bundle->images[i].backend, "cuda") != 0) continue;
    if (FAILS(cudaLibraryLoadData(&library, bundle->images[i].data, NULL, NULL, 0, NULL, NULL, 0))) continue;
    if (FAILS(cudaLibraryGetKernel(&empty, library, "empty"))) continue;
    if (FAILS(cudaLibraryGetKernel(&five, library, "five"))) continue;
    empty_kernel = (const void *)empty;
    five_kernel = (const void *)five;
    /* An image of another architecture may be refused only here. */
    if (FAILS(cudaLaunchKernel(empty_kernel, one, one, NULL, 0, NULL)) || FAILS(cudaStreamSynchronize(NULL))) continue;
    return true;
  }
#else
  (void)bundle;
  failed_with = cudaErrorNotSupported;
#endif
  return false;
}

static bool enter(void) { return !FAILS(cudaSetDevice(ordinal)); }

static void explain(char *text, size_t size) {
  (void)snprintf(text, size, "%s (%d)", runtime.cudaGetErrorName(failed_with), failed_with);
}

static bool open_side(const struct bench_target *target, char *text, size_t size) {
  static const char *const names[] = { "libcudart.so.13", "libcudart.so.12" };
  void *library = NULL;
  const char *name = "";
  for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++) {
    name = names[i];
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    (void)snprintf(text, size, "neither libcudart.so.13 nor .12 can be opened");
    return false;
  }
  if (!load_functions(library, text, size)) return false;
  ordinal = target->info.ordinal;
  if (enter() && !FAILS(cudaFree(NULL)) && (!target->launches || load_kernels(target->bundle))) {
    (void)snprintf(text, size, "%s", name);
    return true;
  }
  explain(text, size);
  return false;
}

static void *new_worker(void) {
  struct worker *worker = calloc(1, sizeof *worker);
  const bool made = worker != NULL && !FAILS(cudaStreamCreateWithFlags(&worker->stream, cudaStreamNonBlocking)) &&
                    !FAILS(cudaStreamCreateWithFlags(&worker->other, cudaStreamNonBlocking)) &&
                    !FAILS(cudaEventCreateWithFlags(&worker->event, cudaEventDisableTiming)) &&
                    !FAILS(cudaEventCreateWithFlags(&worker->timing, 0)) &&
                    !FAILS(cudaEventCreateWithFlags(&worker->pending, cudaEventDisableTiming)) &&
                    !FAILS(cudaMalloc(&worker->memory, BENCH_BLOCK_BYTES)) &&
                    !FAILS(cudaHostAlloc(&worker->host, BENCH_BLOCK_BYTES, cudaHostAllocDefault)) &&
                    !FAILS(cudaEventRecord(worker->event, worker->stream));
  return made ? worker : NULL;
}

static bool make_pending(void *worker_, rill_event gate, uintptr_t native_gate) {
  const struct worker *worker = worker_;
  (void)gate;
  return !FAILS(cudaStreamWaitEvent(worker->stream, (cudaEvent_t)native_gate, 0)) &&
         !FAILS(cudaEventRecord(worker->pending, worker->stream));
}

const struct bench_side rill__cuda_bench_runtime = {
  .name = "runtime",
  .open = open_side,
  .enter = enter,
  .new_worker = new_worker,
  .make_pending = make_pending,
  .explain = explain,
  .batches = BENCH_TABLE(),
};
