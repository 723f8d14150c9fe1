/* rill/cpp/view.hpp: a pointer and a number of elements, in any memory.  Included by rill/rill.hpp.
 *
 *     rill::view<const float> half = rill::view(x).first(n / 2);
 *
 * Any lvalue that has data() and size() converts to a view: a buffer, a std::vector, a std::array, another view. A
 * view owns nothing.
 *
 * Pitfall: a view does not know where its memory is. The host can index a view of host, pinned or managed memory, but
 * not a view of GPU memory.
 */
#ifndef RILL_CPP_VIEW_HPP
#define RILL_CPP_VIEW_HPP

#include <rill/cpp/outcome.hpp>

#include <cstddef>
#include <type_traits>

RILL_CPP_BEGIN

template <class T> class view;

namespace detail {
template <class T> struct is_view : std::false_type {};
template <class T> struct is_view<view<T>> : std::true_type {};

template <class C> using element_of = std::remove_pointer_t<decltype(std::declval<C &>().data())>;

/* The conversion from U to T may only add const, because a derived class can have another size. */
template <class U, class T> using if_same_elements = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>, int>;
} // namespace detail

/** Contiguous elements. A view is copyable and does not keep the memory alive. */
template <class T> class view {
  static_assert(std::is_trivially_copyable_v<T>, "devices copy bytes: the elements must be trivially copyable");

public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using size_type = std::size_t;
  using iterator = T *;

  constexpr view() noexcept = default;
  constexpr view(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <std::size_t N> constexpr view(T (&array)[N]) noexcept : data_(array), size_(N) {}
  /** Creates a view of an lvalue that has data() and size(). */
  template <class C, detail::if_same_elements<detail::element_of<C>, T> = 0>
  constexpr view(C &container) : data_(container.data()), size_(container.size()) {}
  template <class U, detail::if_same_elements<U, T> = 0>
  constexpr view(const view<U> &other) noexcept : data_(other.data()), size_(other.size()) {}

  [[nodiscard]] constexpr T *data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  /* For use on the host. */
  [[nodiscard]] constexpr T *begin() const noexcept { return data_; }
  [[nodiscard]] constexpr T *end() const noexcept { return data_ + size_; }

  /** Returns an element, on the host. An index past the end throws OUT_OF_RANGE; without exceptions, it aborts the
   *  program. */
  [[nodiscard]] constexpr T &operator[](std::size_t index) const {
    if (index >= size_) outside(index);
    return data_[index];
  }

  /** Returns a view of `count` elements from `offset`. Fails with OUT_OF_RANGE if they are not all inside. */
  [[nodiscard]] constexpr outcome<view> subview(std::size_t offset, std::size_t count) const {
    if (offset > size_ || count > size_ - offset) {
      return detail::refuse<view>(RILL_ERROR_OUT_OF_RANGE, "rill::view",
                                  "the subview ends at index %zu, but the view has only %zu elements",
                                  count > SIZE_MAX - offset ? SIZE_MAX : offset + count, size_);
    }
#if RILL_CPP_THROWS
    return view(data_ + offset, count);
#else
    return outcome<view>(RILL_OK, view(data_ + offset, count));
#endif
  }
  [[nodiscard]] constexpr outcome<view> first(std::size_t count) const { return subview(0, count); }
  [[nodiscard]] constexpr outcome<view> last(std::size_t count) const {
    return subview(count > size_ ? 0 : size_ - count, count);
  }

private:
  T *data_ = nullptr;
  std::size_t size_ = 0;

  [[noreturn, gnu::cold]] void outside(std::size_t index) const {
#if RILL_CPP_THROWS
    detail::refuse(RILL_ERROR_OUT_OF_RANGE, "rill::view", "index %zu is outside a view of %zu elements", index, size_);
#else
    const auto refused = detail::refuse(RILL_ERROR_OUT_OF_RANGE, "rill::view",
                                        "index %zu is outside a view of %zu elements", index, size_);
    detail::die("out of bounds", refused.text());
#endif
    std::abort();
  }
};

template <class C> view(C &) -> view<detail::element_of<C>>;
template <class T, std::size_t N> view(T (&)[N]) -> view<T>;

namespace detail {
/* Returns the view itself, or a view of the container. */
template <class C> constexpr auto view_of(C &&c) {
  if constexpr (is_view<std::remove_cv_t<std::remove_reference_t<C>>>::value) {
    return c;
  } else {
    static_assert(std::is_lvalue_reference_v<C>,
                  "the temporary that owns the memory would free it before the view is used");
    return view(c);
  }
}

/* True if the value of a fill is a pattern: a view of elements of type T, or a container that converts to such a
 * view. */
template <class C, class T, class = void> struct is_pattern : std::false_type {};
template <class C, class T>
struct is_pattern<C, T, std::void_t<decltype(view(std::declval<C &>()))>>
    : std::bool_constant<!std::is_same_v<std::remove_const_t<C>, T> &&
                         std::is_same_v<typename decltype(view(std::declval<C &>()))::value_type, T>> {};
} // namespace detail

RILL_CPP_END

#endif
