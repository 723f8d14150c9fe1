/* rill/cpp/kernel.hpp: launch shapes, modules and kernels.  Included by rill/rill.hpp.
 *
 *     stream.launch(saxpy_launch, rill::threads(n), n, 2.0f, x, y);              // checked by the compiler
 *     stream.launch(blur_launch, rill::grid({ 64, 64 }, { 16, 16 }, 4096), in, out);
 *
 *     auto module = rill::kernel_module::load(device, saxpy_bundle);
 *     auto saxpy = module.get_kernel("saxpy");
 *     stream.launch(saxpy, rill::threads(n), n, 2.0f, x, y);                     // checked at the call
 *
 * Pitfall: with a loaded kernel, arguments are not converted. 2.0 is a double; pass 2.0f for a float parameter.
 */
#ifndef RILL_CPP_KERNEL_HPP
#define RILL_CPP_KERNEL_HPP

#include <rill/cpp/owned.hpp>
#include <rill/cpp/view.hpp>
#include <rill/kernel.h>
#include <rill/module.h>

RILL_CPP_BEGIN

/** Sizes in one to three dimensions: 64, { 64, 2 }, { 64, 2, 4 }. */
struct dim : rill_dim3 {
  constexpr dim(std::uint32_t x_, std::uint32_t y_ = 1, std::uint32_t z_ = 1) noexcept : rill_dim3{ x_, y_, z_ } {}
};

/** Returns a launch of `blocks` blocks of `threads` threads, with `shared_mem_bytes` of dynamic shared memory per
 *  block. The label names the launch in errors and traces. To use clusters, attributes or constants, set the fields
 *  of the returned rill_launch. */
[[nodiscard]] constexpr rill_launch grid(dim blocks, dim threads, std::uint32_t shared_mem_bytes = 0,
                                         const char *label = nullptr) noexcept {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.grid = blocks;
  launch.block = threads;
  launch.shared_mem_bytes = shared_mem_bytes;
  launch.label = label;
  return launch;
}

/** Returns a launch of at least `count` threads, in blocks of `block` threads. */
[[nodiscard]] inline rill_launch threads(std::uint64_t count, std::uint32_t block = 256) noexcept {
  return rill_launch_1d(count, block);
}

template <class T> class buffer;
template <class T> class async_buffer;

namespace detail {
template <class T> struct is_memory : is_view<T> {};
template <class T> struct is_memory<buffer<T>> : std::true_type {};
template <class T> struct is_memory<async_buffer<T>> : std::true_type {};

/* Argument type of a typed launch for a kernel parameter of type P. A pointer also accepts buffers and views. */
template <class P> struct parameter {
  using type = P;
  static constexpr const P &value(const P &p) noexcept { return p; }
};
template <class T> class pointer_parameter {
public:
  constexpr pointer_parameter(T *p) noexcept : pointer_(p) {}
  template <class M, std::enable_if_t<is_memory<std::remove_cv_t<std::remove_reference_t<M>>>::value &&
                                          std::is_convertible_v<decltype(std::declval<M>().data()), T *>,
                                      int> = 0>
  constexpr pointer_parameter(M &&memory) noexcept : pointer_(std::forward<M>(memory).data()) {}
  constexpr T *get() const noexcept { return pointer_; }

private:
  T *pointer_;
};
template <class T> struct parameter<T *> {
  using type = pointer_parameter<T>;
  static constexpr T *value(const type &p) noexcept { return p.get(); }
};

/* Returns the value to pass to a loaded kernel for an argument. */
template <class A> constexpr auto argument(A &&a) noexcept {
  using plain = std::remove_cv_t<std::remove_reference_t<A>>;
  if constexpr (is_memory<plain>::value) {
    return std::forward<A>(a).data();
  } else {
    static_assert(std::is_trivially_copyable_v<plain>, "kernel arguments are copied as bytes");
    return std::decay_t<A>(a);
  }
}

class kernel_calls : public handle_base<rill_kernel> {
public:
  [[nodiscard]] outcome<rill_kernel_info> info() const {
    rill_kernel_info out = RILL_KERNEL_INFO_INIT;
    const rill_status status = rill_kernel_get_info(handle_, &out);
    return give(status, out);
  }

protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_kernel k) noexcept { return rill_kernel_retain(k); }
  static rill_status release_(rill_kernel k) noexcept { return rill_kernel_release(k); }
};

class module_calls : public handle_base<rill_module> {
protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_module m) noexcept { return rill_module_retain(m); }
  static rill_status release_(rill_module m) noexcept { return rill_module_release(m); }
};
} // namespace detail

/** A borrowed kernel. */
class kernel_ref : public detail::kernel_calls {
public:
  constexpr kernel_ref(rill_kernel handle) noexcept : kernel_calls(handle) {}
  constexpr kernel_ref(const kernel_calls &other) noexcept : kernel_calls(other) {}
};

/** An owned kernel of a module. It keeps the module loaded. */
class kernel : public detail::owned<detail::kernel_calls, kernel> {
public:
  kernel() noexcept = default;

private:
  friend owned;
  kernel(adopted tag, rill_kernel handle) noexcept : owned(tag, handle) {}
};

/** An owned module: kernels loaded on one device. */
class kernel_module : public detail::owned<detail::module_calls, kernel_module> {
public:
  kernel_module() noexcept = default;
  /** Loads a bundle that rillcc compiled. */
  [[nodiscard]] static outcome<kernel_module> load(rill::device device, const rill_bundle &bundle) {
    rill_module handle = { 0 };
    const rill_status status = rill_module_load(device.handle(), &bundle, &handle);
    return detail::give_owner<kernel_module>(status, handle);
  }
  /** Loads machine code from another compiler. */
  [[nodiscard]] static outcome<kernel_module> load_image(rill::device device, const void *data, std::size_t size) {
    rill_module handle = { 0 };
    const rill_status status = rill_module_load_image(device.handle(), data, size, &handle);
    return detail::give_owner<kernel_module>(status, handle);
  }
  [[nodiscard]] outcome<kernel> get_kernel(const char *name) const {
    rill_kernel out = { 0 };
    const rill_status status = rill_module_get_kernel(handle_, name, &out);
    return detail::give_owner<kernel>(status, out);
  }

private:
  friend owned;
  kernel_module(adopted tag, rill_module handle) noexcept : owned(tag, handle) {}
};

RILL_CPP_END

#endif
