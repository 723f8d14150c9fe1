/* Every template of rill.hpp, instantiated: no warning may come out of them, in either mode. */
#include <rill/rill.hpp>

#include <array>
#include <string>
#include <vector>

template class rill::view<int>;
template class rill::view<const double>;
template class rill::buffer<float>;
template class rill::async_buffer<std::uint64_t>;

static rill_status typed_launch(rill_stream stream, const rill_launch *launch, int n, float a, const float *x,
                                float *y) {
  const rill_arg args[] = { { &n, sizeof n }, { &a, sizeof a }, { &x, sizeof x }, { &y, sizeof y } };
  rill_kernel kernel = RILL_NULL_KERNEL;
  return rill_stream_launch(stream, kernel, launch, args, 4);
}

/* Not called: what a call gives is dropped, in both modes. */
template <class T> static T value(T &&given) { return std::forward<T>(given); }
#if RILL_CPP_THROWS
#define TRY(call) call
#define GET(call) value(call)
#else
template <class T> static T value(rill::result<T> &&given) { return std::move(given).value(); }
#define TRY(call)             \
  do {                        \
    const auto tried = call;  \
    if (!tried) return tried; \
  } while (0)
#define GET(call) value(call)
#endif

rill::outcome<> uses_hpp(rill::device device);

rill::outcome<> uses_hpp(rill::device device) {
  const auto stream = GET(rill::stream::create(device, RILL_STREAM_OPTIONS(.label = "x", .priority = 1)));
  auto x = GET(rill::buffer<float>::create(device, 8));
  auto y = GET(rill::async_buffer<float>::create(stream, 8));
  std::vector<float> host(8);
  std::array<float, 4> four{};
  float two[2] = { 0, 1 };
  TRY(stream.copy(x, host));
  TRY(stream.copy(four, GET(rill::view(x).first(4))));
  TRY(stream.copy(rill::view(two), GET(rill::view(x).last(2))));
  TRY(stream.fill(x, 1.0f));
  TRY(stream.launch(typed_launch, rill::grid({ 2, 2 }, 64, 16, "typed"), 8, 2.0f, x, y));
  TRY(stream.launch(rill_kernel{ 0 }, rill::threads(8), 8, 2.0f, x, y, nullptr));
  std::string text = "kept";
  TRY(stream.host_call([text] { static_cast<void>(text.size()); }));
  TRY(stream.host_call([](rill_status) {}));
  const auto event = GET(stream.record());
  TRY(stream.wait(event));
  TRY(stream.wait(stream));
  TRY(y.free_on(stream));
  if (!GET(stream.synchronize_for(std::chrono::milliseconds(3))) ||
      !GET(event.synchronize_until(std::chrono::system_clock::now()))) {
    static_cast<void>(GET(rill::elapsed(event, event)));
  }
  const auto graph = GET(rill::capture(stream, [&] { return rill_fill_async(stream.handle(), x.data(), two, 4, 1); }));
  const auto exec = GET(graph.instantiate());
  TRY(exec.launch(stream));
  const auto pool = GET(rill::pool::create(device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_PINNED)));
  auto pinned = GET(rill::pool_resource::create(device, pool));
  const std::pmr::vector<int> container(3, &pinned);
  static_cast<void>(GET(rill::stream::import(device, static_cast<void *>(nullptr))));
  static_cast<void>(GET(stream.native<void *>()));
  return stream.synchronize();
}
