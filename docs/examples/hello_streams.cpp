/* hello_streams.c in C++: a producer fills a buffer, a consumer copies it out, and the host waits once.
 *
 *     c++ -std=c++17 hello_streams.cpp $(pkg-config --cflags --libs rill) && ./a.out
 */
#include <cstdint>
#include <cstdio>
#include <rill/rill.hpp>

int main() try {
  constexpr std::size_t count = 1 << 16, rounds = 4;
  const rill::device device = rill::device::open();
  const rill::stream producer(device, RILL_STREAM_OPTIONS(.label = "producer"));
  const rill::stream consumer(device, RILL_STREAM_OPTIONS(.label = "consumer"));

  /* `taken` guards the buffer.  It is created signaled, because the first round has nothing to wait for. */
  const rill::event filled(device), taken(device, RILL_EVENT_OPTIONS(.signaled = true));
  rill::buffer<std::uint32_t> buffer(device, count);
  rill::buffer<std::uint32_t> results(device, count * rounds, rill::memory::pinned);

  for (std::uint32_t round = 0; round < rounds; round++) {
    producer.wait(taken);
    producer.fill(buffer, round);
    producer.record(filled);

    consumer.wait(filled);
    consumer.copy(rill::view(results).subview(round * count, count), buffer);
    consumer.record(taken);
  }
  consumer.synchronize();

  int wrong = 0;
  const rill::view<const std::uint32_t> seen(results);
  for (std::size_t i = 0; i < seen.size(); i++) wrong += seen[i] != i / count;
  std::printf("%zu rounds, %d wrong values\n", rounds, wrong);
  return wrong != 0;
} catch (const rill::error &e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
