/* saxpy.c in C++: one kernel source for any device, launched with the typed function of rillcc's header, then by
 * handle.
 *
 *     rillcc -o saxpy.rill.c --header saxpy.rill.h saxpy.kernel.cu
 *     cc -c saxpy.rill.c $(pkg-config --cflags rill)
 *     c++ -std=c++17 saxpy.cpp saxpy.rill.o $(pkg-config --cflags --libs rill) && ./a.out
 */
#include "saxpy.rill.h"

#include <cstdio>
#include <numeric>
#include <rill/rill.hpp>

int main() {
  constexpr int n = 100000;
  const rill::device device = rill::device::open();
  const rill::stream stream(device);
  rill::buffer<float> host(device, n, rill::memory::pinned), x(device, n), y(device, n);

  const rill::view<float> values(host);
  std::iota(values.begin(), values.end(), 0.0f);
  stream.copy(x, host);
  stream.fill(y, 1.0f);

  /* The compiler checks the arguments; the kernel is loaded at its first launch. */
  stream.launch(saxpy_launch, rill::threads(n), n, 2.0f, x, y);

  /* Launches the kernel by its handle: the call checks the number and the sizes of the arguments. */
  const auto module = rill::kernel_module::load(device, saxpy_bundle);
  const auto kernel = module.get_kernel("saxpy");
  stream.launch(kernel, rill::threads(n), n, 2.0f, x, y);

  stream.copy(host, y);
  stream.synchronize();

  int wrong = 0;
  for (int i = 0; i < n; i++) {
    const float value = values[static_cast<std::size_t>(i)], expected = 4.0f * static_cast<float>(i) + 1;
    wrong += value < expected || value > expected;
  }
  std::printf("y[%d] = %.0f, %d wrong values\n", n - 1, static_cast<double>(values[n - 1]), wrong);
  return wrong != 0;
}
