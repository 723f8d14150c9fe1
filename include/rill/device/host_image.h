/* rill/device/host_image.h: makes an image (rill/device/cpu_image.h) of the kernels of one source.
 *
 * rillcc compiles a file that includes the source, then this, and then lists what it found in the source:
 *
 *     static constexpr rill_cpu_kernel rill_kernels[] = {
 *       rill_host_kernel<rill_body_saxpy, true, int, float, const float *, float *>("saxpy"),
 *       rill_host_kernel<rill_body_sum, rill_split_sum, int, const float *, float *>("sum"),
 *     };
 *     RILL_HOST_IMAGE(rill_kernels, 2, nullptr, 0)
 *
 * `true`: no barrier can be met, so the kernel gets the run_block form from its body.  A function: what rillcc
 * made of a kernel with barriers, and the run_block form comes from that.  `false`: there is no such form.  That
 * the types are those of the source is checked here, since what rillcc writes for C callers is made from the
 * same list.
 */
#ifndef RILL_DEVICE_HOST_IMAGE_H
#define RILL_DEVICE_HOST_IMAGE_H

#include <rill/device/on_host.h>

#include <type_traits>
#include <utility>

template <class T> static __forceinline__ T rill_host_arg(const rill_cpu_block *block, size_t i) {
  static_assert(std::is_trivially_copyable_v<T>, "a kernel parameter is a plain value");
  T value;
  __builtin_memcpy(&value, block->grid->args[i], sizeof value);
  return value;
}

static __forceinline__ void rill_host_enter_block(const rill_cpu_block *block) {
  const rill_cpu_grid *const grid = block->grid;
  rill_services = grid->services;
#if RILL_HELPERS_READ_INDEX
  blockIdx = { block->index[0], block->index[1], block->index[2] };
  blockDim = { grid->block[0], grid->block[1], grid->block[2] };
  gridDim = { grid->grid[0], grid->grid[1], grid->grid[2] };
  rill_dynamic_shared = block->shared;
#endif
}

/** The forms of the kernel Body, a function with the hidden parameters and then P. */
template <auto Body, class Indices, class... P> struct rill_host_forms;
template <auto Body, size_t... I, class... P> struct rill_host_forms<Body, std::index_sequence<I...>, P...> {
  static_assert(std::is_same_v<decltype(Body), void (*)(uint3, uint3, dim3, dim3, void *, P...)>,
                "rillcc read other parameter types than the compiler");
  static constexpr uint32_t arg_sizes[sizeof...(P) + 1] = { sizeof(P)..., 0 };

  /* The arguments are parameters here so that they stay in registers through the loops. */
  static __forceinline__ void loop(const rill_cpu_block *block, P... args) {
    const rill_cpu_grid *const grid = block->grid;
    const uint3 index = { block->index[0], block->index[1], block->index[2] };
    const dim3 block_size(grid->block[0], grid->block[1], grid->block[2]);
    const dim3 grid_size(grid->grid[0], grid->grid[1], grid->grid[2]);
    void *const shared = block->shared;
    for (unsigned z = 0; z < block_size.z; z++)
      for (unsigned y = 0; y < block_size.y; y++)
        for (unsigned x = 0; x < block_size.x; x++) {
          rill_host_enter_thread({ x, y, z });
          Body({ x, y, z }, index, block_size, grid_size, shared, args...);
        }
  }

  static void run_block(const rill_cpu_block *block) {
    rill_host_enter_block(block);
    loop(block, rill_host_arg<P>(block, I)...);
  }

  /* Most blocks have one dimension: then there is one loop, not three. */
  template <auto Split> static __forceinline__ void split(const rill_cpu_block *block, P... args) {
    const rill_cpu_grid *const grid = block->grid;
    const uint3 index = { block->index[0], block->index[1], block->index[2] };
    const dim3 size(grid->block[0], grid->block[1], grid->block[2]);
    const dim3 grid_size(grid->grid[0], grid->grid[1], grid->grid[2]);
    if (size.y == 1 && size.z == 1) Split(index, dim3(size.x, 1, 1), grid_size, block->shared, args...);
    else Split(index, size, grid_size, block->shared, args...);
  }

  template <auto Split> static void run_split(const rill_cpu_block *block) {
    rill_host_enter_block(block);
    split<Split>(block, rill_host_arg<P>(block, I)...);
  }

  static void run_thread(const rill_cpu_block *block, const uint32_t thread_index[3]) {
    const rill_cpu_grid *const grid = block->grid;
    const uint3 thread = { thread_index[0], thread_index[1], thread_index[2] };
    rill_host_enter_block(block);
    rill_host_enter_thread(thread);
    Body(thread, { block->index[0], block->index[1], block->index[2] },
         dim3(grid->block[0], grid->block[1], grid->block[2]), dim3(grid->grid[0], grid->grid[1], grid->grid[2]),
         block->shared, rill_host_arg<P>(block, I)...);
  }
};

template <auto Body, auto Loops, class... P> constexpr rill_cpu_kernel rill_host_kernel(const char *name) {
  using forms = rill_host_forms<Body, std::index_sequence_for<P...>, P...>;
  rill_cpu_kernel kernel = { name, nullptr, &forms::run_thread, forms::arg_sizes, sizeof...(P) };
  if constexpr (!std::is_same_v<decltype(Loops), bool>) kernel.run_block = &forms::template run_split<Loops>;
  else if constexpr (Loops) kernel.run_block = &forms::run_block;
  return kernel;
}

/* What assert of <assert.h> calls.  This one is the image's own, and nobody else's: the C library's would end the
 * process.  rillcc sees to it that the indices are there where a source asserts anything. */
#ifdef __GLIBC__
extern "C" __attribute__((noreturn)) void __assert_fail(const char *expression, const char *file, unsigned line,
                                                        const char *function) noexcept;
extern "C" void __assert_fail(const char *expression, const char *file, unsigned line, const char *) noexcept {
#else
extern "C" __attribute__((noreturn)) void __assert_fail(const char *expression, const char *file, int line,
                                                        const char *function);
extern "C" void __assert_fail(const char *expression, const char *file, int line, const char *) {
#endif
#if RILL_HELPERS_READ_INDEX
  const uint32_t block[3] = { blockIdx.x, blockIdx.y, blockIdx.z },
                 thread[3] = { threadIdx.x, threadIdx.y, threadIdx.z };
  rill_services->assert_failed(expression, file, static_cast<uint32_t>(line), block, thread);
#else
  rill_services->assert_failed(expression, file, static_cast<uint32_t>(line), nullptr, nullptr);
#endif
  __builtin_trap();
}

/* For the table of an image.  Who compiles it puts this behind what the compiler made, which tells the numbers. */
extern "C" const uint64_t rill_cpu_stacks[] __attribute__((weak, visibility("hidden")));

#define RILL_HOST_IMAGE(KERNELS, KERNEL_COUNT, VARIABLES, VARIABLE_COUNT)                                           \
  extern "C" __attribute__((visibility("default"))) const rill_cpu_image_table rill_cpu_image;                      \
  extern "C" const rill_cpu_image_table rill_cpu_image = {                                                          \
    RILL_CPU_IMAGE_MAGIC, RILL_CPU_IMAGE_VERSION, KERNELS, VARIABLES, KERNEL_COUNT, VARIABLE_COUNT, rill_cpu_stacks \
  };

#endif
