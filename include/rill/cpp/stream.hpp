/* rill/cpp/stream.hpp: streams and events.  Included by rill/rill.hpp. The rules are in rill/stream.h and
 * rill/event.h.
 *
 *     rill::stream copy(device, RILL_STREAM_OPTIONS(.label = "copy")), compute(device);
 *     rill::event uploaded(device);
 *     copy.copy(x, host);
 *     copy.record(uploaded);
 *     compute.wait(uploaded);            // the device waits, the host does not
 *     compute.launch(scale_launch, rill::threads(n), n, 2.0f, x);
 *     if (!compute.synchronize_for(5s)) ...
 *
 * Pitfall: a lambda passed to host_call runs later, on another thread, and must not call rill. Objects that it
 * captures by reference must live until then.
 */
#ifndef RILL_CPP_STREAM_HPP
#define RILL_CPP_STREAM_HPP

#include <rill/capture.h>
#include <rill/cpp/kernel.hpp>
#include <rill/cpp/owned.hpp>
#include <rill/cpp/view.hpp>
#include <rill/event.h>
#include <rill/graph_compose.h>
#include <rill/memory.h>
#include <rill/stream.h>

#include <chrono>
#include <cstring>
#include <type_traits>

RILL_CPP_BEGIN

class event;
class stream;

namespace detail {

/* Converts a duration to nanoseconds, rounding up. A negative duration becomes 0. */
template <class Rep, class Period> std::uint64_t nanoseconds(std::chrono::duration<Rep, Period> d) {
  if (!(d > d.zero())) return 0;
  using longest = std::chrono::duration<long double, std::nano>;
  const long double ns = std::chrono::duration_cast<longest>(d).count();
  if (ns >= 18446744073709549568.0L) return UINT64_MAX;
  const auto floor = static_cast<std::uint64_t>(ns);
  return static_cast<long double>(floor) < ns ? floor + 1 : floor;
}

/* Maps TIMEOUT to false. A wait with a limit does not fail on a timeout. */
inline outcome<bool> in_time(rill_status status) {
  return give(status == RILL_ERROR_TIMEOUT ? RILL_OK : status, status == RILL_OK);
}

template <class Clock, class Duration> auto until(std::chrono::time_point<Clock, Duration> deadline) {
  return deadline - Clock::now();
}

class event_calls : public handle_base<rill_event> {
public:
  [[nodiscard]] outcome<bool> is_ready() const {
    bool out = false;
    const rill_status status = rill_event_is_ready(handle_, &out);
    return give(status, out);
  }
  [[nodiscard]] outcome<bool> is_recorded() const {
    bool out = false;
    const rill_status status = rill_event_is_recorded(handle_, &out);
    return give(status, out);
  }
  /** Blocks until the work that the event marks is done. */
  outcome<> synchronize() const { return give(rill_event_synchronize(handle_)); }
  /** Blocks for at most `limit`. Returns whether the work is done. */
  template <class Rep, class Period>
  [[nodiscard]] outcome<bool> synchronize_for(std::chrono::duration<Rep, Period> limit) const {
    return in_time(rill_event_synchronize_for(handle_, nanoseconds(limit)));
  }
  template <class Clock, class Duration>
  [[nodiscard]] outcome<bool> synchronize_until(std::chrono::time_point<Clock, Duration> deadline) const {
    return synchronize_for(until(deadline));
  }
  [[nodiscard]] outcome<rill::device> get_device() const {
    rill_device out = { 0 };
    const rill_status status = rill_event_device(handle_, &out);
    return give(status, rill::device(out));
  }
  /** Returns the vendor's event: native<cudaEvent_t>(). */
  template <class Native = std::uintptr_t> [[nodiscard]] outcome<Native> native() const {
    std::uintptr_t out = 0;
    const rill_status status = rill_event_native(handle_, &out);
    return give(status, native_pointer<Native>(out));
  }

protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_event e) noexcept { return rill_event_retain(e); }
  static rill_status release_(rill_event e) noexcept { return rill_event_release(e); }
};

} // namespace detail

/** A borrowed event. */
class event_ref : public detail::event_calls {
public:
  constexpr event_ref(rill_event handle) noexcept : event_calls(handle) {}
  constexpr event_ref(const event_calls &other) noexcept : event_calls(other) {}
};

/** An owned event: marks a point in the work of a stream. */
class event : public detail::owned<detail::event_calls, event> {
public:
  event() noexcept = default;
  [[nodiscard]] static outcome<event> create(rill::device device, const rill_event_options *options = nullptr) {
    rill_event handle = { 0 };
    const rill_status status = rill_event_create(device.handle(), options, &handle);
    return detail::give_owner<event>(status, handle);
  }
#if RILL_CPP_THROWS
  explicit event(rill::device device, const rill_event_options *options = nullptr) : event(create(device, options)) {}
#endif
  /** Imports a vendor's event. It must outlive this object unless the options select another ownership. */
  template <class Native>
  [[nodiscard]] static outcome<event> import(rill::device device, Native native,
                                             const rill_import_options *options = nullptr) {
    rill_event handle = { 0 };
    const rill_status status = rill_event_import(device.handle(), detail::native_number(native), options, &handle);
    return detail::give_owner<event>(status, handle);
  }

private:
  friend owned;
  event(adopted tag, rill_event handle) noexcept : owned(tag, handle) {}
};

/** Returns the device time between two events that were created with timing. */
[[nodiscard]] inline outcome<std::chrono::duration<float, std::milli>> elapsed(event_ref start, event_ref end) {
  float ms = 0;
  const rill_status status = rill_event_elapsed_time(start.handle(), end.handle(), &ms);
  return detail::give(status, std::chrono::duration<float, std::milli>(ms));
}

namespace detail {

/* Runs a callable for rill_host_fn. If the callable takes a status, it receives the status of the preceding work. */
template <class F> void run_host_call(F &f, rill_status status) noexcept {
  const auto call = [&] {
    if constexpr (std::is_invocable_v<F &, rill_status>) {
      f(status);
    } else {
      static_cast<void>(status);
      f();
    }
  };
#if RILL_CPP_THROWS
  try {
    call();
  } catch (const std::exception &e) {
    die("a host call threw an exception", e.what());
  } catch (...) {
    die("a host call threw an exception", "not a std::exception");
  }
#else
  call();
#endif
}

/* True if a callable fits into the user pointer itself, so that nothing is allocated. */
template <class F>
constexpr bool fits_pointer = std::is_trivially_copyable_v<F> &&std::is_trivially_destructible_v<F> &&
                              sizeof(F) <= sizeof(void *) && alignof(F) <= alignof(void *);

template <class F> void host_call_in_pointer(void *user, rill_status status) noexcept {
  alignas(F) unsigned char bytes[sizeof(F)];
  std::memcpy(bytes, &user, sizeof bytes);
  run_host_call(*reinterpret_cast<F *>(bytes), status);
}
template <class F> void host_call_once(void *user, rill_status status) noexcept {
  F *const f = static_cast<F *>(user);
  run_host_call(*f, status);
  delete f;
}
template <class F> void host_call_kept(void *user, rill_status status) noexcept {
  run_host_call(*static_cast<F *>(user), status);
}
template <class F> void host_call_delete(void *user) noexcept { delete static_cast<F *>(user); }

class stream_calls : public handle_base<rill_stream> {
public:
  /* Ordering. */

  /** Records the event, which then marks the work submitted so far. */
  outcome<> record(event_ref event, std::uint32_t flags = 0) const {
    return give(rill_stream_record_event(handle_, event.handle(), flags));
  }
  /** Records a new event. */
  [[nodiscard]] outcome<rill::event> record(const rill_event_options *options = nullptr) const {
    rill_event handle = { 0 };
    const rill_status status = rill_stream_record_new_event(handle_, options, &handle);
    return give_owner<rill::event>(status, handle);
  }
  /** Makes later work wait for an event, for the work submitted so far to another stream, or for the work submitted
   *  so far to a device's default stream. */
  outcome<> wait(event_ref event, std::uint32_t flags = 0) const {
    return give(rill_stream_wait_event(handle_, event.handle(), flags));
  }
  outcome<> wait(const stream_calls &other) const { return give(rill_stream_wait_stream(handle_, other.handle_)); }
  outcome<> wait(rill_stream other) const { return give(rill_stream_wait_stream(handle_, other)); }
  outcome<> wait(rill::device device) const { return give(rill_stream_wait_device(handle_, device.handle())); }

  /* Host waits and host calls. */

  /** Blocks until all work submitted so far is done. */
  outcome<> synchronize() const { return give(rill_stream_synchronize(handle_)); }
  /** Blocks for at most `limit`. Returns whether the work is done; if not, the stream continues. */
  template <class Rep, class Period>
  [[nodiscard]] outcome<bool> synchronize_for(std::chrono::duration<Rep, Period> limit) const {
    return in_time(rill_stream_synchronize_for(handle_, nanoseconds(limit)));
  }
  template <class Clock, class Duration>
  [[nodiscard]] outcome<bool> synchronize_until(std::chrono::time_point<Clock, Duration> deadline) const {
    return synchronize_for(until(deadline));
  }
  [[nodiscard]] outcome<bool> is_complete() const {
    bool out = false;
    const rill_status status = rill_stream_is_complete(handle_, &out);
    return give(status, out);
  }

  /** Runs `f()`, or `f(status of the work before it)`, on another thread in stream order. It runs once; if the stream
   * is capturing, it runs once per launch of the graph. rill keeps a copy of `f`. If `f` throws, the text of the
   * exception is printed and the program aborts. */
  template <class F> outcome<> host_call(F f) const {
    static_assert(std::is_invocable_v<F &> || std::is_invocable_v<F &, rill_status>,
                  "the callable of a host call must take no argument or one rill_status");
    if constexpr (fits_pointer<F>) {
      void *user = nullptr;
      std::memcpy(&user, &f, sizeof f);
      return give(rill_stream_host_call(handle_, host_call_in_pointer<F>, user));
    } else {
      rill_graph graph = { 0 };
      rill_status status = rill_stream_capture_graph(handle_, &graph);
      bool foreign = false;
      if (status == RILL_OK && graph.id == 0) status = rill_stream_is_capturing(handle_, &foreign);
      if (status != RILL_OK) return give(status);
      if (foreign) {
        return refuse(
            RILL_ERROR_UNSUPPORTED, "rill::stream::host_call",
            "other code is capturing the stream, so rill cannot attach the lambda to the graph; a lambda that is no "
            "larger than a pointer is accepted");
      }
      F *const kept = new F(std::move(f));
      if (graph.id == 0) {
        status = rill_stream_host_call(handle_, host_call_once<F>, kept);
        if (status != RILL_OK) delete kept;
        return give(status);
      }
      status = rill_graph_add_user_object(graph, host_call_delete<F>, kept); /* the graph owns it from here on */
      if (status != RILL_OK) {
        delete kept;
        return give(status);
      }
      return give(rill_stream_host_call(handle_, host_call_kept<F>, kept));
    }
  }

  /* Memory. */

  /** Copies all elements of `from` to `to`. Fails with INVALID_ARGUMENT if their sizes differ. Both arguments are
   * views, or lvalues that convert to a view. */
  template <class To, class From> outcome<> copy(To &&to, From &&from) const {
    const auto target = view_of(std::forward<To>(to));
    const auto source = view_of(std::forward<From>(from));
    using element = typename decltype(target)::element_type;
    static_assert(!std::is_const_v<element>, "the target of a copy is const");
    static_assert(std::is_same_v<element, typename decltype(source)::value_type>,
                  "the target and the source of a copy have different types");
    if (target.size() != source.size()) {
      return refuse(RILL_ERROR_INVALID_ARGUMENT, "rill::stream::copy",
                    "the target has %zu elements, but the source has %zu", target.size(), source.size());
    }
    return give(rill_copy_async(handle_, target.data(), source.data(), target.size_bytes()));
  }
  /** Sets every element of `to` to `value`, or repeats a pattern if `value` is a view or container on the host.
   *
   *  The element, or the whole pattern, must have 1, 2, 4, 8 or 16 bytes. The pattern is read at the call. Fails with
   *  INVALID_ARGUMENT if the size of `to` is not a multiple of the size of the pattern. */
  template <class To, class Value> outcome<> fill(To &&to, const Value &value) const {
    const auto target = view_of(std::forward<To>(to));
    using element = typename decltype(target)::element_type;
    static_assert(!std::is_const_v<element>, "the target of a fill is const");
    if constexpr (is_pattern<const Value, element>::value) {
      return fill_pattern(target, rill::view(value));
    } else {
      return fill_value(target, value);
    }
  }

  /* Kernels. */

  /** Launches with a typed function from rillcc's header: launch(saxpy_launch, rill::threads(n), n, 2.0f, x, y).
   *  Arguments convert as in a direct call; a buffer or view is passed as its pointer. */
  template <class... P>
  outcome<> launch(rill_status (*function)(rill_stream, const rill_launch *, P...), const rill_launch &shape,
                   typename parameter<P>::type... arguments) const {
    return give(function(handle_, &shape, parameter<P>::value(arguments)...));
  }
  /** Launches a loaded kernel. Each argument must have exactly the size of the kernel's parameter. */
  template <class... A> outcome<> launch(kernel_ref kernel, const rill_launch &shape, A &&...arguments) const {
    const rill_args_detail::pack values{ argument(std::forward<A>(arguments))... };
    return give(rill_stream_launch(handle_, kernel.handle(), &shape, values, sizeof...(A)));
  }

  /* Properties. */

  [[nodiscard]] outcome<rill::device> get_device() const {
    rill_device out = { 0 };
    const rill_status status = rill_stream_device(handle_, &out);
    return give(status, rill::device(out));
  }
  [[nodiscard]] outcome<std::int32_t> priority() const {
    std::int32_t out = 0;
    const rill_status status = rill_stream_priority(handle_, &out);
    return give(status, out);
  }
  /** Returns the label. The string is valid while a reference is held. */
  [[nodiscard]] outcome<const char *> label() const {
    const char *out = "";
    const rill_status status = rill_stream_label(handle_, &out);
    return give(status, out);
  }
  [[nodiscard]] outcome<bool> is_capturing() const {
    bool out = false;
    const rill_status status = rill_stream_is_capturing(handle_, &out);
    return give(status, out);
  }
  /** Returns the vendor's stream: native<cudaStream_t>(). */
  template <class Native = std::uintptr_t> [[nodiscard]] outcome<Native> native() const {
    std::uintptr_t out = 0;
    const rill_status status = rill_stream_native(handle_, &out);
    return give(status, native_pointer<Native>(out));
  }

protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_stream s) noexcept { return rill_stream_retain(s); }
  static rill_status release_(rill_stream s) noexcept { return rill_stream_release(s); }

private:
  template <class T, class Value> outcome<> fill_value(view<T> target, const Value &value) const {
    using element = T;
    static_assert(std::is_same_v<element, Value> ||
                      (std::is_arithmetic_v<element> && std::is_arithmetic_v<Value> &&
                       sizeof(Value) <= sizeof(element) &&
                       std::is_floating_point_v<element> == std::is_floating_point_v<Value>),
                  "the value of a fill must have the type of the elements, or a type that converts to it without loss");
    static_assert(sizeof(element) <= 16 && (sizeof(element) & (sizeof(element) - 1)) == 0,
                  "elements of a fill have 1, 2, 4, 8 or 16 bytes");
    const element pattern = static_cast<element>(value);
    return give(rill_fill_async(handle_, target.data(), &pattern, sizeof pattern, target.size()));
  }
  template <class T, class U> outcome<> fill_pattern(view<T> target, view<U> pattern) const {
    if (pattern.empty() || target.size() % pattern.size() != 0) {
      return refuse(RILL_ERROR_INVALID_ARGUMENT, "rill::stream::fill",
                    "a pattern of %zu elements does not fit a whole number of times into a view of %zu elements",
                    pattern.size(), target.size());
    }
    return give(
        rill_fill_async(handle_, target.data(), pattern.data(), pattern.size_bytes(), target.size() / pattern.size()));
  }
};

} // namespace detail

/** A borrowed stream. */
class stream_ref : public detail::stream_calls {
public:
  constexpr stream_ref() noexcept = default;
  constexpr stream_ref(rill_stream handle) noexcept : stream_calls(handle) {}
  constexpr stream_ref(const stream_calls &other) noexcept : stream_calls(other) {}
};

/** An owned stream: an in-order queue of work on one device. */
class stream : public detail::owned<detail::stream_calls, stream> {
public:
  stream() noexcept = default;
  [[nodiscard]] static outcome<stream> create(rill::device device, const rill_stream_options *options = nullptr) {
    rill_stream handle = { 0 };
    const rill_status status = rill_stream_create(device.handle(), options, &handle);
    return detail::give_owner<stream>(status, handle);
  }
#if RILL_CPP_THROWS
  explicit stream(rill::device device, const rill_stream_options *options = nullptr)
      : stream(create(device, options)) {}
#endif
  /** Imports a vendor's stream. It must outlive this object unless the options select another ownership. To call a
   *  function that takes a stream_ref, pass rill::stream::import(device, cuda_stream). */
  template <class Native>
  [[nodiscard]] static outcome<stream> import(rill::device device, Native native,
                                              const rill_import_options *options = nullptr) {
    rill_stream handle = { 0 };
    const rill_status status = rill_stream_import(device.handle(), detail::native_number(native), options, &handle);
    return detail::give_owner<stream>(status, handle);
  }
  /** Returns a new owner of a borrowed stream. */
  [[nodiscard]] static outcome<stream> share(stream_ref other) {
    const rill_status status = rill_stream_retain(other.handle());
    return detail::give_owner<stream>(status, other.handle());
  }
  using owned::share;

private:
  friend owned;
  stream(adopted tag, rill_stream handle) noexcept : owned(tag, handle) {}
};

inline outcome<stream_ref> device::default_stream() const {
  rill_stream out = { 0 };
  const rill_status status = rill_device_default_stream(handle_, &out);
  return detail::give(status, stream_ref(out));
}

RILL_CPP_END

#endif
