/* rill/rill.hpp on one device.  Compiled with exceptions and without; a program may have both (RUN names the function).
 */
#include "conformance.hpp"

#include "launch.rill.h"

#include <rill/rill.hpp>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

int failures = 0;

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      failures++;                                                 \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                             \
  } while (0)

/* The value of a call that must succeed, in both modes. */
#if RILL_CPP_THROWS
#define MUST(call) (call)
/* The status of a call that fails, and whether its text has `word` in it. */
#define FAILS(call, wanted, word)                                                        \
  do {                                                                                   \
    bool failed_ = false;                                                                \
    try {                                                                                \
      (void)(call);                                                                      \
    } catch (const rill::error &e) {                                                     \
      failed_ = true;                                                                    \
      CHECK(e.status() == (wanted));                                                     \
      CHECK(e.fields().status == (wanted));                                              \
      CHECK(std::strstr(e.what(), word) != nullptr);                                     \
      CHECK(std::strstr(e.what(), e.fields().api) != nullptr && e.fields().api[0] != 0); \
    }                                                                                    \
    CHECK(failed_ &&#call);                                                              \
  } while (0)
#else
template <class T> T must(rill::result<T> &&result) { return std::move(result).value(); }
inline void must(rill::result<> &&result) {
  if (!result) rill::detail::die("a call failed", result.text());
}
#define MUST(call) must(call)
#define FAILS(call, wanted, word)                                                                      \
  do {                                                                                                 \
    const auto failed_ = call;                                                                         \
    CHECK(!failed_);                                                                                   \
    CHECK(failed_.status() == (wanted));                                                               \
    CHECK(failed_.error().status == (wanted));                                                         \
    CHECK(std::strstr(failed_.text(), word) != nullptr);                                               \
    CHECK(std::strstr(failed_.text(), failed_.error().api) != nullptr && failed_.error().api[0] != 0); \
  } while (0)
#endif

constexpr std::size_t n = 1000;

std::vector<unsigned> counted(unsigned first) {
  std::vector<unsigned> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

void owns_and_borrows(rill::device device) {
  auto stream = MUST(rill::stream::create(device, RILL_STREAM_OPTIONS(.label = "first")));
  CHECK(stream && std::strcmp(MUST(stream.label()), "first") == 0);
  CHECK(MUST(stream.get_device()) == device);
  CHECK(MUST(stream.is_complete()) && !MUST(stream.is_capturing()));

  const rill_stream handle = stream.handle();
  rill::stream_ref borrowed = stream;
  CHECK(borrowed == stream && rill_stream_equal(borrowed.handle(), handle));
  auto moved = std::move(stream);
  CHECK(!stream && moved.handle().id == handle.id); // NOLINT: what is left after a move is stated
  auto other = MUST(moved.share());
  moved.reset();
  CHECK(!moved && MUST(other.is_complete()));
  other = MUST(rill::stream::share(borrowed)); /* to itself: the reference is taken before the other is dropped */
  CHECK(MUST(other.is_complete()));
  auto &same = other;
  other = std::move(same);
  CHECK(other.handle().id == handle.id);

  const rill_stream taken = other.release();
  CHECK(!other && taken.id == handle.id);
  auto adopted = rill::stream::adopt(taken);
  adopted.reset();
  FAILS(borrowed.synchronize(), RILL_ERROR_STALE_HANDLE, "rill_stream_synchronize");

  /* A C handle is a borrowed type. */
  rill_stream raw = { 0 };
  CHECK(rill_stream_create(device.handle(), nullptr, &raw) == RILL_OK);
  const auto wants = [](rill::stream_ref s) { return MUST(s.is_complete()); };
  CHECK(wants(raw));
  CHECK(rill_stream_release(raw) == RILL_OK);
  CHECK(MUST(MUST(device.default_stream()).is_complete()));
}

void imports(rill::device device) {
  auto stream = MUST(rill::stream::create(device));
  const auto native = MUST(stream.native<void *>());
  if (native == nullptr) return; /* the CPU */
  const auto again = MUST(rill::stream::import(device, native));
  CHECK(again == stream);
  /* A function that takes a borrowed type is given an import: the temporary owns it until the function returns. */
  const auto fills = [&](rill::stream_ref borrowed, rill::event_ref marked) {
    MUST(borrowed.record(marked));
    MUST(borrowed.wait(marked));
    return MUST(marked.is_recorded());
  };
  const auto borrowed_event = MUST(rill::event::create(device));
  const auto native_event = MUST(borrowed_event.native<void *>());
  CHECK(fills(MUST(rill::stream::import(device, native)), MUST(rill::event::import(device, native_event))));
  CHECK(MUST(rill::stream::import(device, MUST(stream.native()))) == stream);
  const auto event = MUST(rill::event::create(device));
  MUST(stream.record(event));
  const auto wrapped = MUST(rill::event::import(device, MUST(event.native<void *>())));
  MUST(stream.wait(wrapped));
  MUST(stream.synchronize());

  /* A capture that the vendor's API began: a lambda that has to be kept is refused, a small one is captured. */
  const char *const names[][4] = {
    { "libcuda.so.1", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphDestroy" },
    { "libamdhip64.so.7", "hipStreamBeginCapture", "hipStreamEndCapture", "hipGraphDestroy" }
  };
  for (const auto &name : names) {
    void *const library = dlopen(name[0], RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr || (MUST(device.info()).backend == RILL_BACKEND_CUDA) != (&name == &names[0])) continue;
    const auto begin = reinterpret_cast<int (*)(void *, int)>(dlsym(library, name[1]));
    const auto end = reinterpret_cast<int (*)(void *, void **)>(dlsym(library, name[2]));
    const auto destroy = reinterpret_cast<int (*)(void *)>(dlsym(library, name[3]));
    void *graph = nullptr;
    auto counter = std::make_shared<int>(0);
    const std::weak_ptr<int> alive = counter;
    CHECK(begin != nullptr && end != nullptr && destroy != nullptr && begin(native, 2) == 0);
    CHECK(MUST(stream.is_capturing()));
    FAILS(stream.host_call([kept = std::move(counter)] { (*kept)++; }), RILL_ERROR_UNSUPPORTED,
          "other code is capturing");
    CHECK(alive.expired());
    MUST(stream.host_call([] {}));
    CHECK(end(native, &graph) == 0 && graph != nullptr && destroy(graph) == 0);
    CHECK(dlclose(library) == 0);
  }
  MUST(stream.synchronize());
}

void orders_work(rill::device device) {
  const auto first = MUST(rill::stream::create(device)), second = MUST(rill::stream::create(device));
  auto x = MUST(rill::buffer<unsigned>::create(device, n));
  std::vector<unsigned> from = counted(5), to(n);
  const auto copied = MUST(rill::event::create(device));

  MUST(second.wait(copied)); /* never recorded: held */
  MUST(second.copy(to, x));
  CHECK(!MUST(second.synchronize_for(2ms)));
  CHECK(!MUST(second.synchronize_until(std::chrono::steady_clock::now() + 2ms)));
  CHECK(!MUST(second.synchronize_until(std::chrono::steady_clock::now() - 1h)));
  CHECK(!MUST(second.is_complete()));
  MUST(first.copy(x, from));
  MUST(first.record(copied));
  CHECK(MUST(second.synchronize_for(10min)));
  CHECK(to == from);
  CHECK(MUST(copied.is_recorded()) && MUST(copied.is_ready()) && MUST(copied.synchronize_for(0s)));
  MUST(copied.synchronize());
  CHECK(MUST(copied.get_device()) == device);

  MUST(second.wait(first));
  MUST(second.wait(device));
  MUST(second.wait(first.handle()));
  const auto start = MUST(first.record(RILL_EVENT_OPTIONS(.timing = true)));
  MUST(first.fill(x, 0u));
  const auto end = MUST(first.record(RILL_EVENT_OPTIONS(.timing = true)));
  MUST(first.synchronize());
  CHECK(MUST(rill::elapsed(start, end)) >= 0ms);
  FAILS(rill::elapsed(start, copied), RILL_ERROR_TIMING_DISABLED, "rill_event_elapsed_time");
  MUST(device.synchronize());
}

void converts_durations() {
  using rill::detail::nanoseconds;
  CHECK(nanoseconds(0ns) == 0 && nanoseconds(-5s) == 0 && nanoseconds(7ns) == 7 && nanoseconds(3us) == 3000);
  CHECK(nanoseconds(std::chrono::duration<double>(1e30)) == UINT64_MAX);
  CHECK(nanoseconds(std::chrono::hours(24) * 365 * 100000) == UINT64_MAX);
  CHECK(nanoseconds(std::chrono::duration<double, std::nano>(1.25)) == 2); /* never less */
  CHECK(nanoseconds(std::chrono::nanoseconds::max()) == UINT64_C(0x7fffffffffffffff));
  CHECK(nanoseconds(std::chrono::duration<double>(-0.0)) == 0);
}

/* A pattern of several elements; one whose type could be either is a value. */
void fills_from_views(rill::device device, rill::stream_ref stream) {
  auto x = MUST(rill::buffer<unsigned>::create(device, 8));
  using pair = std::array<unsigned, 2>;
  const std::vector<unsigned> pattern{ 5, 6 };
  const pair one{ 7, 8 };
  unsigned result[8] = {}, four[] = { 1, 2, 3, 4 };
  const rill::view head(x);
  const auto filled = [&](unsigned first, unsigned second, unsigned third) {
    MUST(stream.copy(rill::view(result), head));
    MUST(stream.synchronize());
    return result[0] == first && result[1] == second && result[2] == third && result[7] == result[3];
  };
  MUST(stream.fill(head, pattern));
  CHECK(filled(5, 6, 5));
  MUST(stream.fill(head, rill::view(four)));
  CHECK(filled(1, 2, 3));
  MUST(stream.fill(head, one)); /* two unsigned for a view of unsigned */
  CHECK(filled(7, 8, 7));
  MUST(stream.fill(MUST(rill::view<pair>(reinterpret_cast<pair *>(head.data()), 4).first(4)), pair{ 3, 2 }));
  CHECK(filled(3, 2, 3));
  FAILS(stream.fill(head, MUST(rill::view(four).first(3))), RILL_ERROR_INVALID_ARGUMENT, "pattern of 3 elements");
  FAILS(stream.fill(head, std::vector<unsigned>()), RILL_ERROR_INVALID_ARGUMENT, "pattern of 0 elements");
  FAILS(stream.fill(head, std::vector<unsigned>(8)), RILL_ERROR_INVALID_ARGUMENT, "rill_fill_async");
  CHECK(filled(3, 2, 3));
}

void copies_and_fills(rill::device device) {
  const auto stream = MUST(rill::stream::create(device));
  auto x = MUST(rill::buffer<unsigned>::create(device, n));
  CHECK(x.size() == n && x.size_bytes() == n * sizeof(unsigned) && !x.empty() && x.data() != nullptr);
  const std::vector<unsigned> from = counted(1);
  std::array<unsigned, 10> middle{};
  std::vector<unsigned> short_one(n - 1);

  MUST(stream.copy(x, from));
  MUST(stream.fill(MUST(rill::view(x).first(3)), 9u));
  fills_from_views(device, stream);
  MUST(stream.copy(middle, MUST(rill::view(x).subview(1, 10))));
  MUST(stream.synchronize());
  const std::array<unsigned, 10> expected = { 9, 9, 4, 5, 6, 7, 8, 9, 10, 11 };
  CHECK(middle == expected);
  unsigned last[2] = { 0, 0 };
  MUST(stream.copy(rill::view(last), MUST(rill::view(x).last(2))));
  MUST(stream.synchronize());
  CHECK(last[0] == n - 1 && last[1] == n);

  FAILS(stream.copy(short_one, x), RILL_ERROR_INVALID_ARGUMENT, "999 elements");
  FAILS(rill::view(x).first(n + 1), RILL_ERROR_OUT_OF_RANGE, "1001");
  FAILS(rill::view(x).last(n + 1), RILL_ERROR_OUT_OF_RANGE, "1000 elements");
  FAILS(rill::view(x).subview(1, SIZE_MAX), RILL_ERROR_OUT_OF_RANGE, "rill::view");
  FAILS(rill::view(x).subview(n + 1, 0), RILL_ERROR_OUT_OF_RANGE, "1000 elements");
  CHECK(MUST(rill::view(x).subview(n, 0)).empty());
#if RILL_CPP_THROWS
  const rill::view<const unsigned> all = from;
  CHECK(all[n - 1] == n);
  FAILS(all[n], RILL_ERROR_OUT_OF_RANGE, "index 1000");
#endif
  /* A failure of rill after one of the header: each has its own text. */
  FAILS(rill::buffer<unsigned>::create(device, SIZE_MAX / 2), RILL_ERROR_OUT_OF_MEMORY, "rill_alloc");
  MUST(stream.copy(rill::view<unsigned>(), rill::view<const unsigned>())); /* nothing */
  auto nothing = MUST(rill::buffer<unsigned>::create(device, 0));
  CHECK(nothing.empty() && nothing.data() == nullptr);

  auto moved = std::move(x);
  CHECK(x.data() == nullptr && x.size() == 0 && moved.size() == n); // NOLINT
  x = std::move(moved);
  CHECK(x.size() == n);
  x = MUST(rill::buffer<unsigned>::create(device, 5));
  unsigned *const raw = x.release();
  CHECK(x.empty() && rill_free(raw) == RILL_OK);
  auto freed = MUST(rill::buffer<unsigned>::create(device, 5));
  MUST(freed.record_use(stream));
  MUST(freed.free());
  MUST(freed.free()); /* nothing */
  auto pinned = MUST(rill::buffer<unsigned>::create(device, 4, rill::memory::pinned));
  for (unsigned &value : rill::view(pinned)) value = 3;
  CHECK(rill::view(pinned)[3] == 3);
}

void allocates_in_order(rill::device device) {
  auto stream = MUST(rill::stream::create(device));
  const auto other = MUST(rill::stream::create(device));
  std::vector<unsigned> result(n);
  auto pool = MUST(rill::pool::create(device, RILL_POOL_OPTIONS(.label = "own")));
  {
    auto a = MUST(rill::async_buffer<unsigned>::create(stream, n));
    auto b = MUST(rill::async_buffer<unsigned>::create(pool, stream, n));
    CHECK(a.get_stream() == stream && MUST(pool.info()).used >= n * sizeof(unsigned));
    MUST(stream.fill(a, 7u));
    MUST(stream.copy(b, a));
    MUST(stream.copy(result, b));
    MUST(other.wait(stream));
    MUST(b.free_on(other));
    CHECK(b.get_stream() == other);
    FAILS(a.free_on(rill_stream{ 0 }), RILL_ERROR_INVALID_HANDLE, "rill_stream_retain");
    auto moved = std::move(a);
    CHECK(a.empty() && moved.size() == n); // NOLINT
    a = std::move(moved);
    a = MUST(rill::async_buffer<unsigned>::create(stream, 3));
    MUST(a.free());
    CHECK(a.empty());
    MUST(a.free()); /* nothing */
    stream.reset(); /* the buffers keep what they need */
  }
  MUST(other.synchronize());
  CHECK(result == std::vector<unsigned>(n, 7));
  CHECK(MUST(pool.info()).used == 0);
  MUST(pool.trim());
  CHECK(MUST(rill::pool_ref::default_of(device)));
  stream = MUST(rill::stream::create(device));
  FAILS(rill::async_buffer<unsigned>::create(stream, SIZE_MAX / 2), RILL_ERROR_OUT_OF_MEMORY, "rill_alloc_async");
}

void launches(rill::device device) {
  const auto stream = MUST(rill::stream::create(device));
  auto count = MUST(rill::buffer<unsigned>::create(device, 64));
  auto out = MUST(rill::async_buffer<unsigned>::create(stream, 1));
  std::vector<unsigned> result(64), one(1);
  const std::vector<unsigned> ones(64, 1);

  MUST(stream.fill(count, 0u));
  MUST(stream.launch(count_threads_launch, rill::grid({ 2, 2 }, { 4, 2, 2 }), count)); /* a buffer */
  MUST(stream.copy(result, count));
  MUST(stream.synchronize());
  CHECK(result == ones);
  MUST(stream.launch(count_threads_launch, rill::threads(64, 32), rill::view(count))); /* a view */
  MUST(stream.launch(store_launch, rill::grid(1, 1), 41u, out));
  MUST(stream.launch(nothing_launch, *RILL_LAUNCH(.grid = rill_dim(3, 1, 1), .block = rill_dim(1, 1, 1))));
  MUST(stream.copy(one, out));
  MUST(stream.synchronize());
  CHECK(one[0] == 41);
  FAILS(stream.launch(store_launch, rill::grid(0, 1, 0, "empty"), 1u, out.data()), RILL_ERROR_INVALID_ARGUMENT,
        "store_launch");

  auto module = MUST(rill::kernel_module::load(device, launch_bundle));
  const auto store = MUST(module.get_kernel("store"));
  module.reset(); /* the kernel keeps it */
  CHECK(MUST(store.info()).struct_size == sizeof(rill_kernel_info));
  MUST(stream.launch(store, rill::grid(1, 1), 43u, out));
  MUST(stream.copy(one, out));
  MUST(stream.synchronize());
  CHECK(one[0] == 43);
  FAILS(stream.launch(store, rill::grid(1, 1), 1.0, out.data()), RILL_ERROR_INVALID_ARGUMENT, "store");
  const unsigned char nothing = 0;
  FAILS(rill::kernel_module::load_image(device, &nothing, 1), RILL_ERROR_INVALID_ARGUMENT, "rill_module_load_image");
}

void calls_the_host(rill::device device) {
  const auto stream = MUST(rill::stream::create(device));
  static std::atomic<int> plain;
  plain = 0;
  std::atomic<int> seen{ 0 };
  std::array<int, 20> large{};
  large[19] = 4;
  auto counter = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = counter;

  MUST(stream.host_call([] { plain++; }));
  MUST(stream.host_call([&seen] { seen++; }));
  MUST(stream.host_call([&seen, large](rill_status status) { seen += status == RILL_OK ? large[19] : 100; }));
  MUST(stream.host_call([&seen, kept = std::move(counter)]() mutable { seen += 10 + (*kept)++; }));
  MUST(stream.synchronize());
  CHECK(plain == 1 && seen == 15);
  CHECK(alive.expired()); /* deleted after its call */

  auto left = std::make_shared<int>(0);
  const std::weak_ptr<int> left_alive = left;
  FAILS(rill::stream_ref(rill_stream{ 0 }).host_call([kept = std::move(left)] { (*kept)++; }),
        RILL_ERROR_INVALID_HANDLE, "rill_stream");
  CHECK(left_alive.expired());
}

void captures(rill::device device) {
  const auto stream = MUST(rill::stream::create(device));
  auto x = MUST(rill::buffer<unsigned>::create(device, n));
  std::vector<unsigned> result(n);
  std::atomic<int> calls{ 0 };
  auto counter = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = counter;
  auto pinned = MUST(rill::buffer<unsigned>::create(device, n, rill::memory::pinned));
  {
    auto graph = MUST(rill::capture(
        stream,
        [&] {
          MUST(stream.fill(x, 6u));
          MUST(stream.launch(store_launch, rill::grid(1, 1), 8u, x));
          MUST(stream.copy(pinned, x));
          MUST(stream.host_call([&calls, kept = std::move(counter)] { calls += 1 + 0 * *kept; }));
        },
        rill::capture_mode::thread));
    CHECK(!MUST(stream.is_capturing()) && calls == 0);
    auto exec = MUST(graph.instantiate(RILL_GRAPH_EXEC_OPTIONS(.label = "twice")));
    graph.reset();
    MUST(exec.upload(stream));
    MUST(exec.launch(stream));
    MUST(exec.launch(stream));
    MUST(stream.synchronize());
    CHECK(calls == 2 && rill::view(pinned)[0] == 8 && rill::view(pinned)[n - 1] == 6);
    CHECK(!alive.expired());
  }
  MUST(stream.synchronize());
  CHECK(alive.expired());

#if RILL_CPP_THROWS
  bool thrown = false;
  try {
    static_cast<void>(rill::capture(stream, [&] {
      stream.fill(x, 1u);
      throw std::string("left");
    }));
  } catch (const std::string &text) {
    thrown = text == "left";
  }
  CHECK(thrown);
#else
  FAILS(rill::capture(stream, [&] { return stream.copy(x, rill::view(result.data(), 3)); }),
        RILL_ERROR_INVALID_ARGUMENT, "1000 elements");
#endif
  CHECK(!MUST(stream.is_capturing()));
  FAILS(rill::capture(stream, [&] { return rill_copy_async(stream.handle(), nullptr, x.data(), 4); }),
        RILL_ERROR_INVALID_ARGUMENT, "rill_copy_async");
  CHECK(!MUST(stream.is_capturing()));
#if RILL_CPP_THROWS
  /* A status that no call of rill has failed with. */
  FAILS(rill::capture(stream, [] { return rill_status{ RILL_ERROR_INTERNAL }; }), RILL_ERROR_INTERNAL,
        "ERROR_INTERNAL");
#endif
  MUST(stream.fill(x, 2u)); /* the stream works on */
  MUST(stream.synchronize());
  auto empty = MUST(rill::graph::create(device));
  auto exec = MUST(empty.instantiate());
  MUST(exec.update(empty));

  /* Nodes are read, changed and removed. */
  rill_graph_node node = { 0 }, other = { 0 };
  const unsigned three = 3;
  CHECK(rill_graph_add_fill(empty.handle(), nullptr, 0, pinned.data(), &three, sizeof three, n, &node) == RILL_OK);
  CHECK(rill_graph_add_empty(empty.handle(), &node, 1, &other) == RILL_OK);
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  MUST(empty.get(node, params));
  CHECK(params.kind == RILL_NODE_FILL && params.dst == pinned.data() && params.width == n);
  params.width = 1;
  MUST(empty.set(node, params));
  MUST(empty.remove(other));
  FAILS(empty.remove(other), RILL_ERROR_STALE_HANDLE, "removed");
  const rill::view cells(pinned);
  cells[0] = cells[1] = 0;
  MUST(MUST(empty.instantiate()).launch(stream));
  MUST(stream.synchronize());
  CHECK(cells[0] == 3 && cells[1] == 0);
}

void lends_to_containers(rill::device device) {
  const auto stream = MUST(rill::stream::create(device));
  const auto pool = MUST(rill::pool::create(device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_PINNED)));
  auto x = MUST(rill::buffer<unsigned>::create(device, n));
  {
    auto bound = MUST(rill::stream_resource::create(pool, stream));
    CHECK(bound.get_stream() == stream);
    for (unsigned round = 0; round < 20; round++) {
      std::pmr::vector<unsigned> host(&bound);
      for (unsigned i = 0; i < n; i++) host.push_back(i + round); /* grows */
      rill_memory_info info = RILL_MEMORY_INFO_INIT;
      CHECK(rill_memory_get_info(host.data(), &info) == RILL_OK && info.kind == RILL_MEMORY_PINNED);
      MUST(stream.copy(x, host)); /* the vector ends before the copy does: the stream orders them */
    }
    std::vector<unsigned> result(n);
    MUST(stream.copy(result, x));
    MUST(stream.synchronize());
    CHECK(result == counted(19));
    struct alignas(128) wide {
      int a;
    };
    std::pmr::vector<wide> aligned(3, &bound);
    CHECK(reinterpret_cast<std::uintptr_t>(aligned.data()) % 128 == 0);
  }
  {
    auto own = MUST(rill::pool_resource::create(device, pool));
    std::pmr::vector<unsigned> host(n, 5u, &own);
    MUST(stream.copy(x, host));
    MUST(stream.synchronize());
    CHECK(own.is_equal(own));
    const auto second = MUST(rill::pool_resource::create(device, pool));
    CHECK(!own.is_equal(second));
  }
  CHECK(MUST(pool.info()).used == 0);
  const auto device_pool = MUST(rill::pool::create(device));
  FAILS(rill::stream_resource::create(device_pool, stream), RILL_ERROR_INVALID_ARGUMENT, "device memory");
}

void fails_with_fields(rill::device device) {
  CHECK(MUST(rill::device::count()) >= 1 && MUST(rill::device::at(0)));
  CHECK(MUST(device.info()).struct_size == sizeof(rill_device_info));
  const char *why = nullptr;
  CHECK(device.supports(RILL_FEATURE_GRAPH, &why) || why != nullptr);
  CHECK(!rill::device() && rill::device() != device);
  FAILS(rill::device::open("nonsense"), RILL_ERROR_NOT_FOUND, "nonsense");
  FAILS(rill::device().info(), RILL_ERROR_INVALID_HANDLE, "rill_device_get_info");
  FAILS(rill::device::at(-1), RILL_ERROR_NOT_FOUND, "-1");
#if RILL_CPP_THROWS
  /* The text outlives the thread's next failure, and the copy its original. */
  rill::error kept = [&] {
    try {
      static_cast<void>(rill::device::open("nonsense"));
    } catch (const rill::error &e) {
      return e;
    }
    throw;
  }();
  FAILS(rill::device::at(-1), RILL_ERROR_NOT_FOUND, "-1");
  CHECK(std::strstr(kept.what(), "nonsense") != nullptr && std::strstr(kept.fields().message, "nonsense") != nullptr);
  /* Constructors. */
  rill::stream stream(device);
  rill::event event(device);
  rill::buffer<int> buffer(device, 3, rill::memory::pinned);
  rill::pool pool(device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_PINNED));
  rill::async_buffer<int> first(stream, 3), second(pool, stream, 3);
  rill::stream_resource resource(pool, stream);
  rill::pool_resource own(device, pool);
  stream.synchronize();
#endif
}

} // namespace

int RUN(const rill_device *handle) {
  const rill::device device(*handle);
  fails_with_fields(device);
  converts_durations();
  owns_and_borrows(device);
  imports(device);
  orders_work(device);
  copies_and_fills(device);
  allocates_in_order(device);
  launches(device);
  calls_the_host(device);
  captures(device);
  lends_to_containers(device);
  MUST(device.synchronize());
  return failures;
}
