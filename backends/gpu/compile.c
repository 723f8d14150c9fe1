/* Run-time compilation by the vendor's compiler, which needs no device and works in memory. */
#include "backends/gpu/gpu.h"

#include <stdlib.h>

/* The vendors' compilers use the same numbers for the results that matter here. */
enum { RTC_SUCCESS = 0, RTC_OUT_OF_MEMORY = 1, RTC_SOURCE_HAS_ERRORS = 6 };

static rill_status fail(int result, const char *what) {
  const char *text = gpu_rtc.error_text((gpu_rtc_result)result);
  if (result == RTC_OUT_OF_MEMORY)
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "%s: the compiler ran out of memory", what);
  return rill__fail_native(RILL_ERROR_BACKEND, result, text != NULL ? text : "unknown error",
                           "%s: the run-time compiler failed", what);
}

rill_status gpu_compiler(struct rill__device *device, char *identity, size_t size) {
  int major = 0, minor = 0;
  char target[128];
  const int result = (int)gpu_rtc.version(&major, &minor);
  if (result != RTC_SUCCESS) return fail(result, "querying the version");
  gpu_vendor_rtc_target(&gpu_device_of(device)->target, target, sizeof target);
  (void)snprintf(identity, size, "%d.%d %s %u", major, minor, target, gpu_vendor_runtime_version());
  return RILL_OK;
}

/* Returns a copy of the compiler's messages; NULL if there are none. */
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
  bool text = false;
  int code = gpu_vendor_rtc_code_size(program, &size, &text);
  if (code != RTC_SUCCESS) return fail(code, "querying the size of the code");
  result->image = calloc(size + 1, 1);
  RILL_REQUIRE(result->image != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu bytes of code", size);
  code = gpu_vendor_rtc_code(program, text, result->image);
  if (code != RTC_SUCCESS) {
    free(result->image);
    result->image = NULL;
    return fail(code, "reading the code");
  }
  result->size = size;
  return RILL_OK;
}

/* Options that older compilers do not know (GPU_RTC_ATOMICS).  Until a compilation has succeeded, one that fails with
 * them is repeated without them. */
static const char *const newer_options[] = { GPU_RTC_ATOMICS NULL };
static _Atomic enum { NOT_TRIED, KNOWN, UNKNOWN } newer;
enum { VENDOR_OPTIONS = 2, OWN_OPTIONS = 4 + VENDOR_OPTIONS + sizeof newer_options / sizeof newer_options[0] };

static rill_status run_rtc(gpu_rtc_program program, struct rill__device *device, const struct rill__compile *request,
                           bool with_newer, int *code) {
  char target[128];
  const char **options = calloc(request->definition_count + OWN_OPTIONS, sizeof *options);
  RILL_REQUIRE(options != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a compiler's options");
  int count = 0;
  gpu_vendor_rtc_target(&gpu_device_of(device)->target, target, sizeof target);
  options[count++] = target;
  options[count++] = request->standard == 20 ? "-std=c++20" : "-std=c++17";
  options[count++] = request->fuse ? GPU_RTC_FUSE : GPU_RTC_NO_FUSE;
  if (request->debug) options[count++] = GPU_RTC_DEBUG;
  count += gpu_vendor_rtc_options(options + count); /* adds VENDOR_OPTIONS options, or none */
  for (size_t i = 0; with_newer && newer_options[i] != NULL; i++) options[count++] = newer_options[i];
  for (size_t i = 0; i < request->definition_count; i++) options[count++] = request->definitions[i];
  *code = (int)gpu_rtc.compile(program, count, (gpu_rtc_strings)options);
  free(options);
  return RILL_OK;
}

/* The compilers have no C headers.  They declare the functions of these headers that kernels may use, but not every
 * compiler declares assert.  A built-in assert ignores NDEBUG, which has to be evaluated at each inclusion. */
static const char assert_header[] = "#ifdef NDEBUG\n"
                                    "#ifndef RILL_NO_ASSERT\n"
                                    "#define RILL_NO_ASSERT\n"
                                    "#pragma push_macro(\"assert\")\n"
                                    "#undef assert\n"
                                    "#define assert(condition) (static_cast<void>(0))\n"
                                    "#endif\n"
                                    "#elif defined(RILL_NO_ASSERT)\n"
                                    "#undef RILL_NO_ASSERT\n"
                                    "#pragma pop_macro(\"assert\")\n"
                                    "#endif\n"
                                    "#if !defined(NDEBUG) && !defined(assert)\n"
                                    "#define assert(condition) "
                                    "((condition) ? static_cast<void>(0) : __builtin_trap())\n"
                                    "#endif\n";
static const rill_compile_header c_headers[] = {
  { "assert.h", assert_header },
  { "math.h", "" },
  { "stddef.h", "#include <rill/device/on_rtc.h>\n" },
  { "stdint.h", "#include <rill/device/on_rtc.h>\n" },
  { "stdio.h", "" },
  { "string.h", "" },
};
enum { C_HEADERS = sizeof c_headers / sizeof c_headers[0] };

/* Returns true if the caller supplies a header of this name. */
static bool is_rtc_header(const struct rill__compile *request, const char *name) {
  for (size_t i = request->dialect_header_count; i < request->header_count; i++) {
    if (strcmp(request->headers[i].name, name) == 0) return true;
  }
  return false;
}

/* Returns the texts of all headers, followed by their names, in one array, which the caller frees. */
static const char **list_headers(const struct rill__compile *request, const char ***names, int *count) {
  const size_t most = request->header_count + C_HEADERS;
  const char **texts = calloc(2 * most, sizeof *texts);
  if (texts == NULL) return NULL;
  *names = texts + most;
  *count = 0;
  for (size_t i = 0; i < most; i++) {
    const bool own = i >= request->header_count;
    const rill_compile_header *header = own ? &c_headers[i - request->header_count] : &request->headers[i];
    if (own && is_rtc_header(request, header->name)) continue;
    texts[*count] = header->text[0] != '\0' ? header->text : "\n"; /* one of the compilers rejects an empty text */
    (*names)[(*count)++] = header->name;
  }
  return texts;
}

/* Returns the source after a #line directive with its label, because not every compiler shows the label otherwise.  The
 * caller frees the result. */
static char *named_source(const struct rill__compile *request) {
  static const char form[] = "#line 1 \"%s\"\n%s";
  const size_t size = sizeof form + strlen(request->label) + strlen(request->source);
  char *source = malloc(size);
  if (source != NULL) (void)snprintf(source, size, form, request->label, request->source);
  return source;
}

/* The texts of a program; the caller frees them. */
struct texts {
  char *source;
  const char **headers, **names;
  int count;
};

static rill_status compile_once(struct rill__device *device, const struct rill__compile *request,
                                const struct texts *texts, bool with_newer, int *code, struct rill__compiled *result) {
  gpu_rtc_program program = NULL;
  *code = (int)gpu_rtc.create(&program, texts->source, request->label, texts->count, (gpu_rtc_strings)texts->headers,
                              (gpu_rtc_strings)texts->names);
  if (*code != RTC_SUCCESS) return fail(*code, "passing the source");
  rill_status status = run_rtc(program, device, request, with_newer, code);
  if (status == RILL_OK) result->log = read_log(program);
  if (status == RILL_OK && *code == RTC_SUCCESS) status = read_code(program, result);
  (void)gpu_rtc.destroy(&program);
  return status;
}

static rill_status gpu_module_compile(struct rill__device *device, const struct rill__compile *request,
                                      const struct texts *texts, struct rill__compiled *result) {
  int code = RTC_SUCCESS;
  const bool with_newer = atomic_load(&newer) != UNKNOWN;
  RILL_TRY(compile_once(device, request, texts, with_newer, &code, result));
  if (code != RTC_SUCCESS && newer_options[0] != NULL && atomic_load(&newer) == NOT_TRIED) {
    free(result->log);
    result->log = NULL;
    RILL_TRY(compile_once(device, request, texts, false, &code, result));
    if (code == RTC_SUCCESS) atomic_store(&newer, UNKNOWN);
  } else if (code == RTC_SUCCESS && with_newer) {
    atomic_store(&newer, KNOWN);
  }
  return code == RTC_SUCCESS || code == RTC_SOURCE_HAS_ERRORS ? RILL_OK : fail(code, "compiling");
}

rill_status gpu_compile(struct rill__device *device, const struct rill__compile *request,
                        struct rill__compiled *result) {
  struct texts texts = { .source = NULL };
  texts.headers = list_headers(request, &texts.names, &texts.count);
  RILL_REQUIRE(texts.headers != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu headers",
               request->header_count);
  texts.source = named_source(request);
  const rill_status status = texts.source != NULL
                                 ? gpu_module_compile(device, request, &texts, result)
                                 : rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a copy of the source");
  free(texts.source);
  free(texts.headers);
  return status;
}
