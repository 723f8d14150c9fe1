/* hipRTC: what is its own among run-time compilers.  Included by vendor.h. */
#ifndef RILL_BACKENDS_HIP_RTC_H
#define RILL_BACKENDS_HIP_RTC_H

typedef hiprtcResult gpu_rtc_result;
typedef hiprtcProgram gpu_rtc_program;
typedef const char **gpu_rtc_strings;

static inline void gpu_vendor_rtc_target(const struct gpu_target *device, char *option, size_t size) {
  (void)snprintf(option, size, "--offload-arch=%s", device->name);
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
