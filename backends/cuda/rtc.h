/* The parts of run-time compilation that are specific to NVRTC; included by vendor.h. */
#ifndef RILL_BACKENDS_CUDA_RTC_H
#define RILL_BACKENDS_CUDA_RTC_H

typedef nvrtcResult gpu_rtc_result;
typedef nvrtcProgram gpu_rtc_program;
typedef const char *const *gpu_rtc_strings;

/* Returns the newest architecture known to the compiler that does not exceed the wanted one.  If the device is newer
 * than the compiler, the driver translates the intermediate code for this architecture. */
static inline int gpu_vendor_rtc_newest(int wanted) {
  int count = 0, archs[128], newest = 0;
  if (gpu_rtc.arch_count == NULL || gpu_rtc.archs == NULL || gpu_rtc.arch_count(&count) != NVRTC_SUCCESS) return wanted;
  if (count <= 0 || count > 128 || gpu_rtc.archs(archs) != NVRTC_SUCCESS) return wanted;
  for (int i = 0; i < count; i++) {
    if (archs[i] > newest && archs[i] <= wanted) newest = archs[i];
  }
  /* If the wanted architecture is older than all known ones, the compiler reports the error. */
  return newest != 0 ? newest : wanted;
}

static inline void gpu_vendor_rtc_target(const struct gpu_target *device, char *option, size_t size) {
  const int wanted = device->major * 10 + device->minor, newest = gpu_vendor_rtc_newest(wanted);
  (void)snprintf(option, size, "--gpu-architecture=%s_%d", newest == wanted ? "sm" : "compute", newest);
}

static inline int gpu_vendor_rtc_options(const char **options) {
  (void)options;
  return 0;
}

/* Return the size of the code in bytes, and the code: machine code, or intermediate code as text if there is no machine
 * code. */
static inline int gpu_vendor_rtc_code_size(gpu_rtc_program program, size_t *size, bool *text) {
  *size = 0;
  const nvrtcResult result = gpu_rtc.code_size(program, size);
  *text = result == NVRTC_SUCCESS && *size == 0;
  return (int)(*text ? gpu_rtc.text_size(program, size) : result);
}

static inline int gpu_vendor_rtc_code(gpu_rtc_program program, bool text, char *into) {
  return (int)(text ? gpu_rtc.text(program, into) : gpu_rtc.code(program, into));
}

#endif
