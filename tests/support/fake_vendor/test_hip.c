/* The fake HIP runtime by itself: where it differs from the fake CUDA driver.  Also the HIP shim over the fake CUDA
 * driver (FAKE_CONTROL_SONAME is then libcuda.so.1, and RILL_TEST_SHIM is defined), since it is to do the same. */
#include "bundles_for_tests.h"
#include "fake_control.h"
#include "tests/support/vendor_api/hip_for_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define assert_ok(call) assert_int_equal((call), hipSuccess)

static const struct rill_fake *fake;

static int set_up(void **state) {
  (void)state;
  return hipSetDevice(0) != hipSuccess;
}

static int tear_down(void **state) {
  (void)state;
  fake->clear();
  (void)hipGetLastError();
  for (int device = 1; device >= 0; device--)
    if (hipSetDevice(device) != hipSuccess || hipDeviceReset() != hipSuccess) return 1;
  return fake->live("*") != 0;
}

static void creation_uses_the_current_device(void **state) {
  (void)state;
  hipStream_t zero, one;
  hipEvent_t event;
  int least, greatest, priority;
  assert_ok(hipStreamCreateWithPriority(&zero, hipStreamNonBlocking, -100));
  assert_ok(hipDeviceGetStreamPriorityRange(&least, &greatest));
  assert_ok(hipStreamGetPriority(zero, &priority));
  assert_int_equal(priority, greatest);
  assert_ok(hipSetDevice(1));
  assert_ok(hipStreamCreate(&one));
  assert_ok(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  assert_int_equal(hipGetStreamDeviceId(zero), 0);
  assert_int_equal(hipGetStreamDeviceId(one), 1);
  assert_int_equal(hipEventRecord(event, zero), hipErrorInvalidHandle);
  assert_ok(hipEventRecord(event, one));
  assert_ok(hipStreamWaitEvent(zero, event, 0)); /* across devices */
  assert_int_equal(hipStreamWaitEvent(zero, event, 1), hipErrorInvalidValue);
  assert_ok(hipStreamSynchronize(zero));
  assert_int_equal(hipSetDevice(2), hipErrorInvalidDevice);
  int device;
  assert_ok(hipGetDevice(&device));
  assert_int_equal(device, 1);
  assert_ok(hipEventDestroy(event));
  assert_ok(hipStreamDestroy(one));
  assert_ok(hipStreamDestroy(zero));
  assert_int_equal(hipStreamQuery(zero), hipErrorContextIsDestroyed);
}

static void errors_stay_the_last_error(void **state) {
  (void)state;
  hipStream_t stream;
  assert_ok(hipStreamCreate(&stream));
  fake->pause(0);
  void *p;
  assert_ok(hipMalloc(&p, 4));
  assert_ok(hipMemsetD32Async(p, 1, 1, stream));
  assert_int_equal(hipStreamQuery(stream), hipErrorNotReady);
  fake->resume(0);
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(hipGetLastError(), hipErrorNotReady);
  assert_int_equal(hipGetLastError(), hipSuccess);
  assert_ok(hipFree(p));
  assert_ok(hipMalloc(&p, 0));
  assert_null(p);
  assert_ok(hipStreamDestroy(stream));
}

static void kernels_run_on_the_current_device(void **state) {
  (void)state;
  hipModule_t module;
  hipFunction_t fill, sum;
  hipStream_t stream;
  float *p, *sums, result = 0, value = 3.0f;
  int n = 100;
  const rill_bundle_image *own = bundle_image("hip", "gfx90a"), *other = bundle_image("hip", "gfx1030");
  const rill_bundle_image *cuda = bundle_image("cuda", "sm_90");
  if (own == NULL || other == NULL || cuda == NULL) skip(); /* built without a compiler */
  assert_int_equal(hipModuleLoadData(&module, other->data), hipErrorNoBinaryForGpu);
  assert_int_equal(hipModuleLoadData(&module, cuda->data), hipErrorInvalidImage);
  assert_ok(hipModuleLoadData(&module, own->data));
  assert_ok(hipModuleGetFunction(&fill, module, "fill"));
  assert_ok(hipModuleGetFunction(&sum, module, "block_sum"));
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipMalloc((void **)&p, 128 * sizeof *p));
  assert_ok(hipMalloc((void **)&sums, sizeof *sums));
  void *fill_arguments[] = { &n, &value, &p }, *sum_arguments[] = { &n, &p, &sums };
  assert_ok(hipModuleLaunchKernel(fill, 1, 1, 1, 128, 1, 1, 0, stream, fill_arguments, NULL));
  struct {
    int n;
    float *p, *sums;
  } packed = { n, p, sums };
  size_t size = sizeof packed;
  void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                    HIP_LAUNCH_PARAM_END };
  assert_ok(hipModuleLaunchKernel(sum, 1, 1, 1, 128, 1, 1, 128 * sizeof *p, stream, NULL, extra));
  assert_ok(hipMemcpyAsync(&result, sums, sizeof result, hipMemcpyDefault, stream));
  assert_true(result == 300.0f);
  assert_int_equal(hipModuleLaunchKernel(sum, 1, 1, 1, 0, 1, 1, 0, stream, sum_arguments, NULL),
                   hipErrorInvalidConfiguration);
  assert_ok(hipSetDevice(1));
  assert_int_equal(hipModuleLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 0, stream, sum_arguments, NULL), hipErrorInvalidHandle);
  assert_ok(hipFree(p));
  assert_ok(hipFree(sums));
  assert_ok(hipModuleUnload(module));
  assert_ok(hipStreamDestroy(stream));
}

#ifndef RILL_TEST_SHIM
static void write_sevens(void *rows) { memset(rows, 7, 16); }

/* Two rows of 4 bytes from pageable memory to pageable memory, in a graph whose first node writes the source: the
 * launch has read it before, and the gap is copied instead of the second row. */
static void graph_copies_read_pageable_memory_too_early(void **state) {
  (void)state;
  unsigned char from[16], to[16] = { 0 };
  const unsigned char expected[16] = { 1, 1, 1, 1, 2, 2, 2, 2 };
  const hipHostNodeParams call = { .fn = write_sevens, .userData = from };
  const hipMemcpy3DParms copy = { .srcPtr = { .ptr = from, .pitch = 8, .xsize = 8, .ysize = 2 },
                                  .dstPtr = { .ptr = to, .pitch = 8, .xsize = 8, .ysize = 2 },
                                  .extent = { .width = 4, .height = 2, .depth = 1 },
                                  .kind = hipMemcpyDefault };
  hipGraph_t graph;
  hipGraphExec_t exec;
  hipGraphNode_t written, copied;
  hipStream_t stream;
  for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(1 + i / 4);
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipGraphCreate(&graph, 0));
  assert_ok(hipGraphAddHostNode(&written, graph, NULL, 0, &call));
  assert_ok(hipGraphAddMemcpyNode(&copied, graph, &written, 1, &copy));
  assert_ok(hipGraphInstantiateWithFlags(&exec, graph, 0));
  assert_ok(hipGraphLaunch(exec, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(from[0], 7);
  assert_memory_equal(to, expected, sizeof to);
  assert_ok(hipGraphExecDestroy(exec));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipStreamDestroy(stream));
}

/* Which functions there are follows the version, and both structs say what the device is. */
static void the_version_decides_which_functions_exist(void **state) {
  (void)state;
  char properties[1472] = "";
  int version;
  assert_ok(hipDriverGetVersion(&version));
  void *library = dlopen(FAKE_HIP_SONAME, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  hipError_t (*get)(void *, int);
  *(void **)&get = dlsym(library, "hipGetDeviceProperties");
  assert_ok(get(properties, 0));
  assert_string_equal(properties, "Fake GPU 0");
  assert_string_equal(properties + 396, "gfx90a");
  *(void **)&get = dlsym(library, "hipGetDevicePropertiesR0600");
  assert_int_equal(get != NULL, version >= 60000000);
  if (get != NULL) {
    assert_ok(get(properties, 0));
    assert_string_equal(properties + 1160, "gfx90a");
  }
  assert_int_equal(dlsym(library, "hipLaunchHostFunc") != NULL, version >= 50300000);
  assert_int_equal(dlsym(library, "hipStreamGetId") != NULL, version >= 70000000);
  (void)dlclose(library);
}

static hipGraph_t graph_of_fill_and_copy(unsigned *p, unsigned value, size_t rows) {
  hipGraph_t graph;
  hipGraphNode_t fill, copy;
  const hipMemsetParams first = { .dst = p, .elementSize = 4, .height = 1, .pitch = 4, .value = value, .width = 1 };
  const hipMemcpy3DParms parts = {
    .srcPtr = { p, 8, 8, rows }, .dstPtr = { p + 16, 8, 8, rows }, .extent = { 4, rows, 1 }, .kind = hipMemcpyDefault
  };
  assert_ok(hipGraphCreate(&graph, 0));
  assert_ok(hipGraphAddMemsetNode(&fill, graph, NULL, 0, &first));
  if (rows > 1) assert_ok(hipGraphAddMemcpyNode(&copy, graph, &fill, 1, &parts));
  else assert_ok(hipGraphAddEmptyNode(&copy, graph, &fill, 1));
  return graph;
}

/* As AMD's runtime has it: what an update has changed before it is refused stays changed. */
static void a_refused_update_leaves_a_part(void **state) {
  (void)state;
  hipStream_t stream;
  hipGraphExec_t exec;
  hipGraphNode_t failing;
  hipGraphExecUpdateResult why;
  unsigned *p, value = 0;
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipMalloc((void **)&p, 128));
  const hipGraph_t graph = graph_of_fill_and_copy(p, 5, 2), other = graph_of_fill_and_copy(p, 6, 1);
  assert_ok(hipGraphInstantiateWithFlags(&exec, graph, 0));
  assert_int_equal(hipGraphExecUpdate(exec, other, &failing, &why), hipErrorGraphExecUpdateFailure);
  assert_non_null(failing);
  assert_ok(hipGraphLaunch(exec, stream));
  assert_ok(hipMemcpyAsync(&value, p, sizeof value, hipMemcpyDefault, stream));
  assert_ok(hipStreamSynchronize(stream));
  assert_int_equal(value, 6);
  assert_ok(hipGraphExecDestroy(exec));
  assert_ok(hipGraphDestroy(graph));
  assert_ok(hipGraphDestroy(other));
  assert_ok(hipFree(p));
  assert_ok(hipStreamDestroy(stream));
}
#endif

/* The functions that the backend requires, in every version, and all that it uses, in the newest. */
static void has_every_function_of_the_backend(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool required;
  } functions[] = {
  /* The old function's name, whatever the header makes of it. */
#undef hipGetDeviceProperties
#define REQUIRED true
#define OPTIONAL false
#define GPU_FUNCTION(field, name, need, capture) { #name, need },
#include "backends/gpu/gpu_api.def"
  };
  int version;
  assert_ok(hipDriverGetVersion(&version));
  void *library = dlopen(FAKE_HIP_SONAME, RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if ((functions[i].required || version >= 70100000) && dlsym(library, functions[i].name) == NULL)
      fail_msg("%s is missing", functions[i].name);
  (void)dlclose(library);
}

int main(void) {
  /* The shim opens libcuda when it is first used. */
  const bool started = hipInit(0) == hipSuccess;
  fake = rill_fake_find(FAKE_CONTROL_SONAME);
  if (fake == NULL || !started) return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(creation_uses_the_current_device),
    TEST(errors_stay_the_last_error),
    TEST(kernels_run_on_the_current_device),
    TEST(has_every_function_of_the_backend),
#ifndef RILL_TEST_SHIM
    TEST(graph_copies_read_pageable_memory_too_early),
    TEST(the_version_decides_which_functions_exist),
    TEST(a_refused_update_leaves_a_part),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
