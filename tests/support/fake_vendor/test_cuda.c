/* Tests the properties of the fake CUDA driver on which rill's tests rely. */
#include "bundles_for_tests.h"
#include "fake_control.h"
#include "tests/support/vendor_api/cuda_for_tests.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define assert_ok(call) assert_int_equal((call), CUDA_SUCCESS)

static const struct rill_fake *fake;
static CUcontext context;

/* A stream that is blocked in a host function until the gate is opened. */
struct gate {
  sem_t open;
};

static void CUDA_CB wait_for_gate(void *user) { (void)sem_wait(&((struct gate *)user)->open); }

static void close_gate(struct gate *gate, CUstream stream) {
  (void)sem_init(&gate->open, 0, 0);
  assert_ok(cuLaunchHostFunc(stream, wait_for_gate, gate));
}

static void open_gate(struct gate *gate) { (void)sem_post(&gate->open); }

static CUstream new_stream(unsigned flags) {
  CUstream stream = NULL;
  assert_ok(cuStreamCreate(&stream, flags));
  return stream;
}

static CUevent new_event(unsigned flags) {
  CUevent event = NULL;
  assert_ok(cuEventCreate(&event, flags));
  return event;
}

static int set_up(void **state) {
  (void)state;
  return cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
         cuCtxPushCurrent(context) != CUDA_SUCCESS;
}

static int tear_down(void **state) {
  (void)state;
  fake->clear();
  fake->revive(0);
  CUcontext popped;
  return cuCtxPopCurrent(&popped) != CUDA_SUCCESS || cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS ||
         fake->live("*") != 0;
}

static void creation_needs_a_current_context(void **state) {
  (void)state;
  CUcontext popped, none;
  CUstream stream = new_stream(0), other;
  CUevent event = new_event(0);
  CUdeviceptr p;
  assert_ok(cuCtxPopCurrent(&popped));
  assert_ptr_equal(popped, context);
  assert_ok(cuCtxGetCurrent(&none));
  assert_null(none);
  assert_int_equal(cuStreamCreate(&other, 0), CUDA_ERROR_INVALID_CONTEXT);
  assert_int_equal(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
  assert_int_equal(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_CONTEXT);
  assert_ok(cuEventRecord(event, stream)); /* real handles know theirs */
  assert_ok(cuStreamWaitEvent(stream, event, 0));
  assert_ok(cuStreamSynchronize(stream));
  assert_ok(cuCtxPushCurrent(context));
  assert_ok(cuStreamDestroy(stream));
  assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  assert_int_equal(cuStreamQuery((CUstream)(uintptr_t)0x1234560), CUDA_ERROR_INVALID_HANDLE);
  assert_ok(cuEventDestroy(event));
}

static void priorities_are_clamped(void **state) {
  (void)state;
  CUstream stream;
  int priority, least, greatest;
  assert_ok(cuCtxGetStreamPriorityRange(&least, &greatest));
  assert_ok(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  assert_ok(cuStreamGetPriority(stream, &priority));
  assert_int_equal(priority, greatest);
  assert_ok(cuStreamDestroy(stream));
}

static void a_stream_runs_in_order_and_asynchronously(void **state) {
  (void)state;
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = new_event(0);
  uint32_t *host;
  CUdeviceptr memory;
  assert_ok(cuMemAllocHost((void **)&host, 4));
  assert_ok(cuMemAlloc(&memory, 4));
  *host = 0;
  fake->pause(0);
  assert_ok(cuMemsetD32Async(memory, 7, 1, stream));
  assert_ok(cuMemcpyDtoHAsync(host, memory, 4, stream));
  assert_ok(cuEventRecord(event, stream));
  assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  assert_int_equal(*host, 0);
  fake->resume(0);
  assert_ok(cuEventSynchronize(event));
  assert_int_equal(*host, 7);
  assert_ok(cuStreamQuery(stream));
  assert_ok(cuMemFree(memory));
  assert_ok(cuMemFreeHost(host));
  assert_ok(cuEventDestroy(event));
  assert_ok(cuStreamDestroy(stream));
}

static void a_wait_keeps_the_recording_it_took(void **state) {
  (void)state;
  CUstream first = new_stream(1), second = new_stream(1), third = new_stream(1);
  CUevent event = new_event(CU_EVENT_DISABLE_TIMING), again = new_event(CU_EVENT_DISABLE_TIMING);
  struct gate gate;
  assert_ok(cuStreamWaitEvent(second, again, 0)); /* never recorded: nothing to wait for */
  assert_ok(cuStreamSynchronize(second));
  close_gate(&gate, first);
  assert_ok(cuEventRecord(event, first));
  assert_ok(cuStreamWaitEvent(second, event, 0));
  assert_ok(cuEventRecord(again, second));
  assert_ok(cuEventRecord(event, third)); /* now it stands for another point */
  assert_ok(cuEventSynchronize(event));
  assert_ok(cuStreamWaitEvent(third, event, 0));
  assert_ok(cuStreamSynchronize(third));
  assert_int_equal(cuEventQuery(again), CUDA_ERROR_NOT_READY);
  assert_ok(cuEventDestroy(event)); /* the wait stays good */
  assert_int_equal(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  assert_ok(cuStreamDestroy(first)); /* its work goes on */
  open_gate(&gate);
  assert_ok(cuEventSynchronize(again));
  assert_ok(cuEventDestroy(again));
  assert_ok(cuStreamDestroy(second));
  assert_ok(cuStreamDestroy(third));
}

static void the_null_stream_orders_blocking_streams(void **state) {
  (void)state;
  CUstream blocking = new_stream(0), free_one = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent event = new_event(0);
  struct gate gate;
  close_gate(&gate, blocking);
  assert_int_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
  assert_ok(cuEventRecord(event, CU_STREAM_LEGACY));
  assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  assert_ok(cuStreamSynchronize(free_one));
  assert_ok(cuEventRecord(event, free_one));
  assert_ok(cuEventSynchronize(event));
  open_gate(&gate);
  assert_ok(cuStreamSynchronize(NULL));
  assert_ok(cuStreamQuery(blocking));

  close_gate(&gate, NULL); /* and the other way around */
  assert_ok(cuEventRecord(event, blocking));
  assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  assert_ok(cuEventRecord(event, free_one));
  assert_ok(cuEventSynchronize(event));
  assert_ok(cuStreamQuery(CU_STREAM_PER_THREAD)); /* it has no work */
  open_gate(&gate);
  assert_ok(cuCtxSynchronize());
  assert_ok(cuEventDestroy(event));
  assert_ok(cuStreamDestroy(blocking));
  assert_ok(cuStreamDestroy(free_one));
}

static void elapsed_time_checks_its_conditions(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  CUevent start = new_event(0), end = new_event(0), untimed = new_event(CU_EVENT_DISABLE_TIMING);
  float ms = -1;
  assert_ok(cuEventRecord(start, stream));
  assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
  assert_ok(cuEventRecord(untimed, stream));
  assert_int_equal(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
  fake->pause(0);
  assert_ok(cuEventRecord(end, stream));
  assert_int_equal(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
  fake->resume(0);
  assert_ok(cuStreamSynchronize(stream));
  assert_ok(cuEventElapsedTime(&ms, start, end));
  assert_true(ms >= 0);
  assert_int_equal(cuEventCreate(&start, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  assert_ok(cuEventDestroy(start));
  assert_ok(cuEventDestroy(end));
  assert_ok(cuEventDestroy(untimed));
  assert_ok(cuStreamDestroy(stream));
}

static void copies_are_checked(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  CUdeviceptr p;
  char pageable[8] = "1234567";
  assert_ok(cuMemAlloc(&p, 8));
  fake->pause(0);
  assert_ok(cuMemcpyHtoDAsync(p, pageable, 8, stream)); /* taken now */
  memset(pageable, 0, sizeof pageable);
  fake->resume(0);
  assert_ok(cuMemcpyDtoHAsync(pageable, p, 8, stream)); /* blocks: pageable */
  assert_string_equal(pageable, "1234567");
  assert_int_equal(cuMemcpyHtoDAsync(p + 1, pageable, 8, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemcpyHtoDAsync(p + 8, pageable, 1, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemsetD16Async(p, 1, 5, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemFree(p + 1), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemFreeHost((void *)(uintptr_t)p), CUDA_ERROR_INVALID_VALUE);
  assert_ok(cuMemFree(p));
  assert_int_equal(cuMemcpyHtoDAsync(p, pageable, 8, stream), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
  size_t free_bytes, total;
  assert_ok(cuMemGetInfo(&free_bytes, &total));
  assert_int_equal(free_bytes, total);
  assert_int_equal(cuMemAlloc(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  assert_ok(cuStreamDestroy(stream));
}

static void the_nth_call_fails(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  CUevent event = new_event(0);
  const uint64_t before = fake->calls("cuEventRecord");
  fake->fail_call("cuEventRecord", 3, 999);
  assert_ok(cuEventRecord(event, stream));
  assert_ok(cuEventRecord(event, stream));
  assert_int_equal(cuEventRecord(event, stream), CUDA_ERROR_UNKNOWN);
  assert_ok(cuEventRecord(event, stream));
  assert_int_equal(fake->calls("cuEventRecord"), before + 4);
  fake->fail_call("cuMemAlloc", 0, 2);
  CUdeviceptr p;
  assert_int_equal(cuMemAlloc(&p, 4), CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal(cuMemAlloc(&p, 4), CUDA_ERROR_OUT_OF_MEMORY);
  fake->clear();
  fake->fail_call("*", 2, 46);
  assert_ok(cuMemAlloc(&p, 4));
  assert_int_equal(cuMemFree(p), 46);
  assert_ok(cuMemFree(p));
  assert_ok(cuEventDestroy(event));
  assert_ok(cuStreamDestroy(stream));
}

static void *synchronize(void *stream) { return cuStreamSynchronize((CUstream)stream) == CUDA_SUCCESS ? stream : NULL; }

static void a_call_hangs_until_released(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  pthread_t thread;
  fake->hang("cuStreamSynchronize");
  assert_int_equal(pthread_create(&thread, NULL, synchronize, stream), 0);
  while (fake->hanging() == 0) (void)sched_yield();
  assert_ok(cuStreamQuery(stream));
  fake->clear();
  void *result;
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, stream);
  assert_ok(cuStreamDestroy(stream));
}

/* Skips the test where the kernels were built without nvcc. */
static CUmodule load(const char *target) {
  const rill_bundle_image *image = bundle_image("cuda", target);
  CUmodule module = NULL;
  if (image == NULL) skip();
  assert_ok(cuModuleLoadData(&module, image->data));
  return module;
}

static void kernels_run(void **state) {
  (void)state;
  static const char *const targets[] = { "sm_90", "ptx_80" };
  for (size_t i = 0; i < 2; i++) {
    CUmodule module = load(targets[i]);
    CUfunction fill, sum;
    CUdeviceptr p, sums;
    int n = 1000;
    float value = 2.0f, result[4] = { 0 };
    assert_ok(cuModuleGetFunction(&fill, module, "fill"));
    assert_ok(cuModuleGetFunction(&sum, module, "block_sum"));
    assert_int_equal(cuModuleGetFunction(&sum, module, "no such kernel"), CUDA_ERROR_NOT_FOUND);
    assert_ok(cuMemAlloc(&p, (size_t)n * sizeof value));
    assert_ok(cuMemAlloc(&sums, sizeof result));
    void *fill_arguments[] = { &n, &value, &p }, *sum_arguments[] = { &n, &p, &sums };
    assert_ok(cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, NULL, fill_arguments, NULL));
    assert_ok(cuLaunchKernel(sum, 4, 1, 1, 256, 1, 1, 256 * sizeof value, NULL, sum_arguments, NULL));
    assert_ok(cuMemcpyDtoH(result, sums, sizeof result));
    assert_true(result[0] == 512.0f && result[3] == 464.0f);
    assert_int_equal(cuLaunchKernel(fill, 1, 1, 1, 1025, 1, 1, 0, NULL, fill_arguments, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 100 << 10, NULL, sum_arguments, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuFuncSetAttribute(sum, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
    assert_ok(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 100 << 10, NULL, sum_arguments, NULL));
    size_t offset, size;
    assert_ok(cuFuncGetParamInfo(sum, 2, &offset, &size));
    assert_int_equal(offset, 16);
    assert_int_equal(size, 8);
    assert_int_equal(cuFuncGetParamInfo(sum, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuMemFree(p));
    assert_ok(cuMemFree(sums));
    assert_ok(cuModuleUnload(module));
  }
}

static void invalid_images_are_refused(void **state) {
  (void)state;
  const rill_bundle_image *image = bundle_image("cuda", "sm_90"), *amd_image = bundle_image("hip", "gfx90a");
  CUmodule module;
  assert_int_equal(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
  assert_int_equal(cuModuleLoadData(&module, "neither ELF nor PTX"), CUDA_ERROR_INVALID_IMAGE);
  assert_int_equal(cuModuleLoadData(&module, (void *)8), CUDA_ERROR_INVALID_IMAGE);
  assert_int_equal(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
  if (image == NULL || amd_image == NULL) skip();
  assert_int_equal(cuModuleLoadData(&module, amd_image->data), CUDA_ERROR_INVALID_IMAGE);
  unsigned char *copy = malloc(image->size);
  for (size_t i = 0; i < 600; i++) { /* damage to the headers: an answer, whatever it is */
    memcpy(copy, image->data, image->size);
    copy[i * 7919 % (i < 300 ? 64 : image->size)] ^= (unsigned char)(1u << i % 8);
    module = NULL;
    if (cuModuleLoadData(&module, copy) == CUDA_SUCCESS) assert_ok(cuModuleUnload(module));
  }
  for (size_t size = 0; size < 64; size++) {
    memcpy(copy, image->data, size);
    memset(copy + size, 0, image->size - size);
    assert_int_equal(cuModuleLoadData(&module, copy), CUDA_ERROR_INVALID_IMAGE);
  }
  free(copy);
}

static int ran;

static void CUDA_CB count_run(void *user) { (void)user, ran++; }

static void CUDA_CB keep_status(CUstream stream, CUresult status, void *user) {
  (void)stream;
  *(CUresult *)user = status;
}

static void a_fault_is_sticky(void **state) {
  (void)state;
  CUmodule module = load("sm_90");
  CUfunction fill;
  CUstream stream = new_stream(1);
  CUevent before = new_event(0);
  CUresult reported = CUDA_SUCCESS;
  CUdeviceptr p;
  int n = 1;
  float value = 1;
  assert_ok(cuMemAlloc(&p, 4));
  assert_ok(cuModuleGetFunction(&fill, module, "fill"));
  void *arguments[] = { &n, &value, &p };
  ran = 0;
  assert_ok(cuEventRecord(before, stream));
  assert_ok(cuEventSynchronize(before));
  fake->fault_next_launch(0, 700);
  fake->pause(0);
  assert_ok(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
  assert_ok(cuLaunchHostFunc(stream, count_run, NULL));
  assert_ok(cuStreamAddCallback(stream, keep_status, &reported, 0));
  fake->resume(0);
  assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(reported, CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(ran, 0);
  assert_int_equal(cuEventQuery(before), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuLaunchHostFunc(stream, count_run, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuStreamAddCallback(stream, keep_status, &reported, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuMemFree(p), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cuStreamDestroy(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUcontext other;
  assert_ok(cuDevicePrimaryCtxRetain(&other, 1)); /* other devices continue */
  assert_ok(cuDevicePrimaryCtxRelease(1));
}

static void a_reset_ends_everything(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  CUevent event = new_event(0);
  CUdeviceptr p;
  unsigned flags;
  int active;
  assert_ok(cuMemAlloc(&p, 4));
  assert_ok(cuEventRecord(event, stream));
  assert_ok(cuDevicePrimaryCtxReset(0));
  assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
  assert_int_equal(active, 0);
  assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  assert_int_equal(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(cuStreamCreate(&stream, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  assert_int_equal(fake->live("*"), 0);
  assert_ok(cuDevicePrimaryCtxRetain(&context, 0));
}

static void captures_are_distinguished(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  CUstreamCaptureStatus status;
  CUgraph graph;
  assert_ok(cuStreamIsCapturing(stream, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
  assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  assert_ok(cuStreamIsCapturing(stream, &status));
  assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  assert_ok(cuStreamEndCapture(stream, &graph));
  assert_ok(cuGraphDestroy(graph));
  assert_ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_ok(cuStreamQuery(stream));
  assert_ok(cuStreamDestroy(stream));
}

static void handles_are_reused_on_request(void **state) {
  (void)state;
  CUstream first = new_stream(1), second;
  unsigned long long id, other;
  assert_ok(cuStreamGetId(first, &id));
  assert_ok(cuStreamDestroy(first));
  second = new_stream(1);
  assert_ptr_not_equal(first, second);
  fake->reuse_handles(true);
  assert_ok(cuStreamDestroy(second));
  first = new_stream(1);
  assert_ptr_equal(first, second);
  assert_ok(cuStreamGetId(first, &other));
  assert_true(id != other);
  fake->reuse_handles(false);
  assert_ok(cuStreamDestroy(first));
}

static CUresult inside;

static void CUDA_CB call_driver(void *user) {
  CUcontext current;
  (void)user;
  inside = cuCtxGetCurrent(&current);
}

static void host_functions_may_not_call_the_driver(void **state) {
  (void)state;
  CUstream stream = new_stream(1);
  assert_ok(cuLaunchHostFunc(stream, call_driver, NULL));
  assert_ok(cuStreamSynchronize(stream));
  assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
  assert_ok(cuStreamDestroy(stream));
}

static void a_forked_child_has_no_driver(void **state) {
  (void)state;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    CUcontext current;
    _exit(cuCtxGetCurrent(&current) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *use_own_streams(void *unused) {
  (void)unused;
  CUstream stream;
  CUevent event;
  bool good = cuCtxSetCurrent(context) == CUDA_SUCCESS;
  for (int i = 0; i < 200; i++) {
    good = good && cuStreamCreate(&stream, 0) == CUDA_SUCCESS && cuEventCreate(&event, 0) == CUDA_SUCCESS &&
           cuEventRecord(event, stream) == CUDA_SUCCESS && cuStreamWaitEvent(NULL, event, 0) == CUDA_SUCCESS &&
           cuEventRecord(event, CU_STREAM_PER_THREAD) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS &&
           cuEventSynchronize(event) == CUDA_SUCCESS && cuEventDestroy(event) == CUDA_SUCCESS;
  }
  return good ? context : NULL;
}

static void many_threads_work_at_once(void **state) {
  (void)state;
  pthread_t threads[8];
  for (size_t i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_own_streams, NULL), 0);
  for (size_t i = 0; i < 8; i++) {
    void *result;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_non_null(result);
  }
  assert_ok(cuCtxSynchronize());
}

static void has_every_function_of_the_backend(void **state) {
  (void)state;
  /* The old function's name, whatever the header makes of it. */
#undef cuEventElapsedTime
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#define TEXT(name) #name
#define GPU_FUNCTION(field, name, need, capture) TEXT(name),
  static const char *const functions[] = {
#include "backends/gpu/gpu_api.def"
  };
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (dlsym(library, functions[i]) == NULL) fail_msg("%s is missing", functions[i]);
  (void)dlclose(library);
}

/* With RILL_FAKE_VERSION=11080 and RILL_FAKE_MISSING=cuLaunchHostFunc,cuMemAlloc. */
static int check_missing(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  int version = 0;
  const bool good = library != NULL && dlsym(library, "cuStreamGetId") == NULL &&
                    dlsym(library, "cuEventElapsedTime_v2") == NULL && dlsym(library, "cuLaunchHostFunc") == NULL &&
                    dlsym(library, "cuMemAlloc_v2") == NULL && dlsym(library, "cuEventElapsedTime") != NULL &&
                    dlsym(library, "cuMemAllocHost_v2") != NULL && dlsym(library, "cuInit") != NULL &&
                    cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 11080;
  return good ? 0 : 1;
}

int main(int argc, char **argv) {
  (void)argv;
  fake = rill_fake_find("libcuda.so.1");
  if (fake == NULL) return 1;
  if (argc > 1) return check_missing();
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(creation_needs_a_current_context),
    TEST(priorities_are_clamped),
    TEST(a_stream_runs_in_order_and_asynchronously),
    TEST(a_wait_keeps_the_recording_it_took),
    TEST(the_null_stream_orders_blocking_streams),
    TEST(elapsed_time_checks_its_conditions),
    TEST(copies_are_checked),
    TEST(the_nth_call_fails),
    TEST(a_call_hangs_until_released),
    TEST(kernels_run),
    TEST(invalid_images_are_refused),
    TEST(a_fault_is_sticky),
    TEST(a_reset_ends_everything),
    TEST(captures_are_distinguished),
    TEST(handles_are_reused_on_request),
    TEST(host_functions_may_not_call_the_driver),
    TEST(a_forked_child_has_no_driver),
    TEST(many_threads_work_at_once),
    TEST(has_every_function_of_the_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
