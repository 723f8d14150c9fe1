/* rill/cpp/graph.hpp: captures, graphs and execution objects.  Included by rill/rill.hpp. The rules are in
 * rill/graph.h, rill/graph_exec.h, rill/graph_edit.h and rill/capture.h.
 *
 *     rill::graph graph = rill::capture(stream, [&] {
 *       stream.copy(x, host);
 *       stream.launch(scale_launch, rill::threads(n), n, 2.0f, x);
 *     });
 *     rill::graph_exec exec = graph.instantiate();
 *     exec.launch(stream);
 *
 * To add nodes, call the C interface: rill_graph_add_kernel(graph.handle(), ...).
 *
 * Pitfall: captured work has not run when the capture ends. Buffers that the work uses must exist until the last
 * launch of the graph has completed.
 */
#ifndef RILL_CPP_GRAPH_HPP
#define RILL_CPP_GRAPH_HPP

#include <rill/cpp/stream.hpp>
#include <rill/graph_edit.h>
#include <rill/graph_exec.h>

RILL_CPP_BEGIN

class graph_exec;

namespace detail {
class graph_calls : public handle_base<rill_graph> {
public:
  [[nodiscard]] outcome<graph_exec> instantiate(const rill_graph_exec_options *options = nullptr) const;
  /** Reads the parameters of a node. `launch`, `args` and `copy` in `params` point to the memory to fill in. */
  outcome<> get(rill_graph_node node, rill_graph_node_params &params) const {
    return give(rill_graph_get_node_params(handle_, node, &params));
  }
  /** Changes the parameters of a node, for execution objects created afterwards. */
  outcome<> set(rill_graph_node node, const rill_graph_node_params &params) const {
    return give(rill_graph_set_node_params(handle_, node, &params));
  }
  /** Removes a node and its edges. */
  outcome<> remove(rill_graph_node node) const { return give(rill_graph_remove_node(handle_, node)); }

protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_graph g) noexcept { return rill_graph_retain(g); }
  static rill_status release_(rill_graph g) noexcept { return rill_graph_release(g); }
};
} // namespace detail

/** A borrowed graph. */
class graph_ref : public detail::graph_calls {
public:
  constexpr graph_ref(rill_graph handle) noexcept : graph_calls(handle) {}
  constexpr graph_ref(const graph_calls &other) noexcept : graph_calls(other) {}
};

namespace detail {
class graph_exec_calls : public handle_base<rill_graph_exec> {
public:
  outcome<> launch(stream_ref stream) const { return give(rill_graph_launch(handle_, stream.handle())); }
  /** Prepares the first launch in advance. */
  outcome<> upload(stream_ref stream) const { return give(rill_graph_upload(handle_, stream.handle())); }
  /** Makes later launches run the nodes of another graph of the same shape. */
  outcome<> update(graph_ref graph) const { return give(rill_graph_update(handle_, graph.handle())); }

protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_graph_exec x) noexcept { return rill_graph_exec_retain(x); }
  static rill_status release_(rill_graph_exec x) noexcept { return rill_graph_exec_release(x); }
};
} // namespace detail

/** A borrowed execution object. */
class graph_exec_ref : public detail::graph_exec_calls {
public:
  constexpr graph_exec_ref(rill_graph_exec handle) noexcept : graph_exec_calls(handle) {}
  constexpr graph_exec_ref(const graph_exec_calls &other) noexcept : graph_exec_calls(other) {}
};

/** An owned execution object: a graph prepared for launches. */
class graph_exec : public detail::owned<detail::graph_exec_calls, graph_exec> {
public:
  graph_exec() noexcept = default;

private:
  friend owned;
  graph_exec(adopted tag, rill_graph_exec handle) noexcept : owned(tag, handle) {}
};

/** An owned graph: work that is described once and launched many times. */
class graph : public detail::owned<detail::graph_calls, graph> {
public:
  graph() noexcept = default;
  [[nodiscard]] static outcome<graph> create(rill::device device) {
    rill_graph handle = { 0 };
    const rill_status status = rill_graph_create(device.handle(), &handle);
    return detail::give_owner<graph>(status, handle);
  }

private:
  friend owned;
  graph(adopted tag, rill_graph handle) noexcept : owned(tag, handle) {}
};

inline outcome<graph_exec> detail::graph_calls::instantiate(const rill_graph_exec_options *options) const {
  rill_graph_exec out = { 0 };
  const rill_status status = rill_graph_instantiate_with_options(handle_, options, &out);
  return give_owner<graph_exec>(status, out);
}

/** Selects the threads whose blocking calls are refused during a capture. */
enum class capture_mode : std::uint32_t {
  global = RILL_CAPTURE_GLOBAL,
  thread = RILL_CAPTURE_THREAD,
  relaxed = RILL_CAPTURE_RELAXED
};

namespace detail {
/* Aborts the capture, unless it has ended. */
class capture_guard {
public:
  explicit capture_guard(rill_stream stream) noexcept : stream_(stream) {}
  capture_guard(const capture_guard &) = delete;
  capture_guard &operator=(const capture_guard &) = delete;
  ~capture_guard() {
    if (active_) detail::ignore(rill_stream_capture_abort(stream_));
  }
  rill_status end(rill_graph *out) noexcept {
    active_ = false;
    return rill_stream_capture_end(stream_, out);
  }

private:
  rill_stream stream_;
  bool active_ = true;
};
} // namespace detail

/** Captures the work that `work()` submits to the stream, and returns its graph. If `work` throws, or returns a
 * failed result or status, the capture is aborted and the failure is passed on. */
template <class F>
[[nodiscard]] outcome<graph> capture(stream_ref stream, F &&work, capture_mode mode = capture_mode::global) {
  rill_graph out = { 0 };
  rill_status status = rill_stream_capture_begin(stream.handle(), static_cast<std::uint32_t>(mode));
  if (status != RILL_OK) return detail::give_owner<graph>(status, out);
  detail::capture_guard guard(stream.handle());
  using given = decltype(work());
  if constexpr (std::is_same_v<given, rill_status>) {
    status = work();
    if (status != RILL_OK) return detail::give_owner<graph>(status, out);
#if !RILL_CPP_THROWS
  } else if constexpr (std::is_base_of_v<failure, given>) {
    const failure failed = work();
    if (!failed) return failed;
#endif
  } else {
    static_assert(std::is_void_v<given>, "the work of a capture returns nothing, a rill_status or a result");
    work();
  }
  status = guard.end(&out);
  return detail::give_owner<graph>(status, out);
}

RILL_CPP_END

#endif
