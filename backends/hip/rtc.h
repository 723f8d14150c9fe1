/* The parts of run-time compilation that are specific to hipRTC; included by vendor.h. */
#ifndef RILL_BACKENDS_HIP_RTC_H
#define RILL_BACKENDS_HIP_RTC_H

typedef hiprtcResult gpu_rtc_result;
typedef hiprtcProgram gpu_rtc_program;
typedef const char **gpu_rtc_strings;

static inline void gpu_vendor_rtc_target(const struct gpu_target *device, char *option, size_t size) {
  (void)snprintf(option, size, "--offload-arch=%s", device->name);
}

/* Turns off a compiler pass that has miscompiled code for gfx9 and gfx10 (docs/reference/HIP.md), as rillcc does.  An
 * LLVM that does not know an option terminates the process, so only hipRTC up to 7, whose LLVMs know this option, gets
 * it.  hipRTC up to 5.5 may ignore it; 5.2.21153 does not pass it to the code generator. */
static inline int gpu_vendor_rtc_options(const char **options) {
  if (gpu_vendor_library_version() >= 8000) return 0;
  options[0] = "-mllvm";
  options[1] = "-amdgpu-sdwa-peephole=0";
  return 2;
}

static inline int gpu_vendor_rtc_code_size(gpu_rtc_program program, size_t *size, bool *text) {
  *text = false;
  return (int)gpu_rtc.code_size(program, size);
}

static inline int gpu_vendor_rtc_code(gpu_rtc_program program, bool text, char *into) {
  (void)text;
  return (int)gpu_rtc.code(program, into);
}

#endif
