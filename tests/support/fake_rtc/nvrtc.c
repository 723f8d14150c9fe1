/* NVRTC for tests: knows no architecture after 8.0, so that intermediate code comes out for newer devices. */
#include "fake_rtc.h"

#pragma GCC visibility push(default)
#include "backends/cuda/cuda_api.h"
#pragma GCC visibility pop

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rtc_program *program_of(nvrtcProgram program) { return (struct rtc_program *)(void *)program; }

const char *nvrtcGetErrorString(nvrtcResult result) {
  switch ((int)result) {
    case RTC_OK: return "NVRTC_SUCCESS";
    case RTC_NO_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case RTC_BAD_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
    case RTC_BAD_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
    case RTC_BAD_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
    case RTC_HAS_ERRORS: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR unknown";
  }
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  *count = 2;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *archs) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  archs[0] = 75;
  archs[1] = 80;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int count,
                               const char *const *headers, const char *const *names) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  struct rtc_program *program = NULL;
  const int result = rtc_create(&program, source, name, count, headers, names);
  if (result == RTC_OK) *out = (nvrtcProgram)(void *)program;
  return (nvrtcResult)result;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  const int refused = rtc_enter(__func__), result = rtc_destroy((struct rtc_program **)(void *)program);
  return (nvrtcResult)(refused != RTC_OK ? refused : result);
}

/* Options that are NVRTC's alone are checked and left out. */
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  const char **words = calloc((size_t)count + 1, sizeof *words);
  int n = 0, result = RTC_OK;
  for (int i = 0; i < count; i++) {
    const char *option = options[i];
    const bool own = strcmp(option, "--gpu-architecture=compute_80") == 0 || strcmp(option, "-fmad=true") == 0 ||
                     strcmp(option, "-fmad=false") == 0 || strcmp(option, "-lineinfo") == 0;
    const bool shared = strncmp(option, "-D", 2) == 0 || strncmp(option, "-U", 2) == 0 ||
                        strcmp(option, "-std=c++17") == 0 || strcmp(option, "-std=c++20") == 0;
    if (!own && !shared) result = RTC_BAD_OPTION;
    if (shared) words[n++] = option;
  }
  rtc_note_options(options, count);
  if (result == RTC_OK) result = rtc_preprocess(program_of(program), words, n);
  free(words);
  return (nvrtcResult)result;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  const char *log = program_of(program)->log;
  *size = (log != NULL ? strlen(log) : 0) + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  (void)strcpy(log, program_of(program)->log != NULL ? program_of(program)->log : "");
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  *size = 0; /* as for every "compute" architecture */
  return program_of(program)->kernels != NULL ? NVRTC_SUCCESS : (nvrtcResult)RTC_BAD_PROGRAM;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *code) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  (void)program, (void)code;
  return (nvrtcResult)RTC_BAD_PROGRAM;
}

/* The text, or its size with the zero if `into` is NULL. */
static size_t write_ptx(const struct rtc_program *program, char *into) {
  static const char head[] = ".version 7.0\n.target sm_80\n.address_size 64\n";
  size_t size = 0;
  const char *names = program->kernels;
  for (bool first = true; first || *names != '\0'; first = false) {
    char piece[512];
    if (first) {
      (void)snprintf(piece, sizeof piece, "%s", head);
    } else {
      const size_t length = strcspn(names, "\n");
      (void)snprintf(piece, sizeof piece, ".visible .entry %.*s(\n)\n{\n  ret;\n}\n", (int)length, names);
      names += length + 1;
    }
    if (into != NULL) (void)strcpy(into + size, piece);
    size += strlen(piece);
  }
  return size + 1;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  if (program_of(program)->kernels == NULL) return (nvrtcResult)RTC_BAD_PROGRAM;
  *size = write_ptx(program_of(program), NULL);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) {
  const int refused = rtc_enter(__func__);
  if (refused != RTC_OK) return (nvrtcResult)refused;
  if (program_of(program)->kernels == NULL) return (nvrtcResult)RTC_BAD_PROGRAM;
  (void)write_ptx(program_of(program), ptx);
  return NVRTC_SUCCESS;
}
