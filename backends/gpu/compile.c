/* Run-time compilation by the vendor's compiler, which works without a device and in memory. */
#include "backends/gpu/gpu.h"

#include <stdlib.h>

#if GPU_HAS_RTC /* else the device does not support it */

/* The compilers number alike what means something here. */
enum { RTC_SUCCESS = 0, RTC_OUT_OF_MEMORY = 1, RTC_SOURCE_HAS_ERRORS = 6 };

static rill_status fail(int result, const char *what) {
  const char *text = gpu_rtc.error_text((gpu_rtc_result)result);
  if (result == RTC_OUT_OF_MEMORY) return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "%s: the compiler has no memory", what);
  return rill__fail_native(RILL_ERROR_BACKEND, result, text != NULL ? text : "unknown error",
                           "%s: the run-time compiler failed", what);
}

rill_status gpu_compiler(struct rill__device *device, char *identity, size_t size) {
  int major = 0, minor = 0;
  char target[128];
  const int result = (int)gpu_rtc.version(&major, &minor);
  if (result != RTC_SUCCESS) return fail(result, "asking for its version");
  gpu_vendor_rtc_target(&gpu_device_of(device)->target, target, sizeof target);
  (void)snprintf(identity, size, "%d.%d %s %u", major, minor, target, gpu_vendor_runtime_version());
  return RILL_OK;
}

/* A copy of what the compiler said; NULL if it said nothing. */
static char *read_log(gpu_rtc_program program) {
  size_t size = 0;
  if ((int)gpu_rtc.log_size(program, &size) != RTC_SUCCESS || size <= 1) return NULL;
  char *log = calloc(size + 1, 1);
  if (log != NULL && (int)gpu_rtc.log(program, log) == RTC_SUCCESS) return log;
  free(log);
  return NULL;
}

static rill_status read_code(gpu_rtc_program program, struct rill__compiled *result) {
  size_t size = 0;
  int code = gpu_vendor_rtc_code_size(program, &size);
  if (code != RTC_SUCCESS) return fail(code, "asking for the size of the code");
  result->image = calloc(size + 1, 1);
  RILL_REQUIRE(result->image != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu bytes of code", size);
  code = gpu_vendor_rtc_code(program, result->image);
  if (code != RTC_SUCCESS) {
    free(result->image);
    result->image = NULL;
    return fail(code, "asking for the code");
  }
  result->size = size;
  return RILL_OK;
}

enum { OWN_OPTIONS = 4 };

static rill_status run(gpu_rtc_program program, const struct rill__device *device, const struct rill__compile *request,
                       struct rill__compiled *result) {
  char target[128];
  const char **options = calloc(request->definition_count + OWN_OPTIONS, sizeof *options);
  RILL_REQUIRE(options != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a compiler's options");
  int count = 0;
  gpu_vendor_rtc_target(&gpu_device_of((struct rill__device *)(uintptr_t)device)->target, target, sizeof target);
  options[count++] = target;
  options[count++] = request->standard == 20 ? "-std=c++20" : "-std=c++17";
  options[count++] = request->fuse ? GPU_RTC_FUSE : GPU_RTC_NO_FUSE;
  if (request->debug) options[count++] = GPU_RTC_DEBUG;
  for (size_t i = 0; i < request->definition_count; i++) options[count++] = request->definitions[i];
  const int code = (int)gpu_rtc.compile(program, count, (gpu_rtc_strings)options);
  free(options);
  result->log = read_log(program);
  if (code == RTC_SOURCE_HAS_ERRORS) return RILL_OK;
  return code == RTC_SUCCESS ? read_code(program, result) : fail(code, "compiling");
}

rill_status gpu_compile(struct rill__device *device, const struct rill__compile *request,
                        struct rill__compiled *result) {
  const char **texts = calloc(2 * request->header_count + 1, sizeof *texts);
  RILL_REQUIRE(texts != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu headers", request->header_count);
  const char **names = texts + request->header_count;
  for (size_t i = 0; i < request->header_count; i++) {
    texts[i] = request->headers[i].text;
    names[i] = request->headers[i].name;
  }
  gpu_rtc_program program = NULL;
  const int code = (int)gpu_rtc.create(&program, request->source, request->label, (int)request->header_count,
                                       (gpu_rtc_strings)texts, (gpu_rtc_strings)names);
  rill_status status = RILL_OK;
  if (code != RTC_SUCCESS) {
    status = fail(code, "taking the source");
  } else {
    status = run(program, device, request, result);
    (void)gpu_rtc.destroy(&program);
  }
  free(texts);
  return status;
}

#endif
