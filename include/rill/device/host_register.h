/* rill/device/host_register.h: kernels that note themselves, for sources that are compiled at run time.
 *
 * rillcc reads a source and lists its kernels; the run-time compiler of the cpu backend (rill_module_compile) does
 * not.  It puts this file before the source and RILL_REGISTERED_IMAGE behind it: RILL_KERNEL then also leaves an
 * entry in a section of its own, and the image's table is what stands there.  RILL_REGISTERED_LOOPS is 1 if no kernel
 * of the source can meet a barrier.
 */
#ifndef RILL_DEVICE_HOST_REGISTER_H
#define RILL_DEVICE_HOST_REGISTER_H

#include <rill/device/kernel.h>

#include <rill/device/host_image.h>

template <auto Body, class Type = decltype(Body)> struct rill_registered;
template <auto Body, class... P> struct rill_registered<Body, void (*)(uint3, uint3, dim3, dim3, void *, P...)> {
  static constexpr rill_cpu_kernel as(const char *name) {
    return rill_host_kernel<Body, RILL_REGISTERED_LOOPS != 0, P...>(name);
  }
};

#define RILL_REGISTER_(NAME, ...)                                                                            \
  static __forceinline__ void RILL_JOIN_(rill_body_, NAME)(uint3, uint3, dim3, dim3, void *, ##__VA_ARGS__); \
  __attribute__((section("rill_kernels"), used, aligned(8))) static const rill_cpu_kernel RILL_JOIN_(        \
      rill_entry_, NAME) = rill_registered<RILL_JOIN_(rill_body_, NAME)>::as(#NAME);                         \
  static __forceinline__ void RILL_JOIN_(rill_body_, NAME)(                                                  \
      [[maybe_unused]] const uint3 threadIdx, [[maybe_unused]] const uint3 blockIdx,                         \
      [[maybe_unused]] const dim3 blockDim, [[maybe_unused]] const dim3 gridDim,                             \
      [[maybe_unused]] void *const rill_dynamic_shared, ##__VA_ARGS__)
#undef RILL_KERNEL
#define RILL_KERNEL(NAME, ...) RILL_REGISTER_(NAME, ##__VA_ARGS__)

/* The linker's names for the ends of the section; without kernels there is none. */
extern "C" const rill_cpu_kernel __start_rill_kernels[] __attribute__((weak, visibility("hidden")));
extern "C" const rill_cpu_kernel __stop_rill_kernels[] __attribute__((weak, visibility("hidden")));

/* Where the run-time compiler writes the stack that each kernel of the image needs (rill/device/cpu_image.h): it finds
 * the place by its mark, once the compiler has told the number. */
struct rill_stacks_place {
  char mark[16];
  uint64_t stacks[2];
};

#define RILL_REGISTERED_IMAGE()                                                                          \
  __attribute__((used)) static const rill_stacks_place rill_stacks = { RILL_CPU_STACKS_MARK, { 1, 0 } }; \
  extern "C" __attribute__((visibility("default"))) const rill_cpu_image_table rill_cpu_image;           \
  extern "C" const rill_cpu_image_table rill_cpu_image = { RILL_CPU_IMAGE_MAGIC,                         \
                                                           RILL_CPU_IMAGE_VERSION,                       \
                                                           __start_rill_kernels,                         \
                                                           nullptr,                                      \
                                                           static_cast<uint32_t>(__stop_rill_kernels -   \
                                                                                 __start_rill_kernels),  \
                                                           0,                                            \
                                                           rill_stacks.stacks };

#endif
