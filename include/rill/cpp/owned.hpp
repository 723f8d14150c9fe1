/* rill/cpp/owned.hpp: owning references to rill objects, and the device type.  Included by rill/cpp/stream.hpp.
 *
 *     rill::stream mine(device);
 *     rill::stream ours = mine.share();          // another reference to the same stream
 *     rill_stream theirs = ours.release();       // for C code that calls rill_stream_release
 *     rill::stream back = rill::stream::adopt(theirs);
 *
 * Pitfall: adopt takes over a reference. If other code releases the handle, use the borrowed type (stream_ref)
 * instead; functions take borrowed types.
 */
#ifndef RILL_CPP_OWNED_HPP
#define RILL_CPP_OWNED_HPP

#include <rill/cpp/outcome.hpp>
#include <rill/device.h>

#include <cstdint>
#include <type_traits>

RILL_CPP_BEGIN

class stream_ref;

/** A GPU or the CPU. A device is a value and needs no release. A default-constructed device is null. */
class device {
public:
  constexpr device() noexcept = default;
  constexpr device(rill_device handle) noexcept : handle_(handle) {}

  /** Opens a device by name: "cuda:0", "hip:1", "cpu", "gpu". NULL selects the default device (rill_device_open). */
  [[nodiscard]] static outcome<device> open(const char *name = nullptr) {
    rill_device handle = { 0 };
    const rill_status status = rill_device_open(name, &handle);
    return detail::give(status, device(handle));
  }
  /** Returns device number `index`, counted from 0. */
  [[nodiscard]] static outcome<device> at(std::int32_t index) {
    rill_device handle = { 0 };
    const rill_status status = rill_device_get(index, &handle);
    return detail::give(status, device(handle));
  }
  [[nodiscard]] static outcome<std::int32_t> count() {
    std::int32_t devices = 0;
    const rill_status status = rill_device_count(&devices);
    return detail::give(status, devices);
  }

  [[nodiscard]] constexpr rill_device handle() const noexcept { return handle_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return handle_.id != 0; }
  [[nodiscard]] outcome<rill_device_info> info() const {
    rill_device_info out = RILL_DEVICE_INFO_INIT;
    const rill_status status = rill_device_get_info(handle_, &out);
    return detail::give(status, out);
  }
  /** Returns whether the device supports a feature (RILL_FEATURE_*). If `why` is not null and the result is false,
   *  `*why` is set to the reason. */
  [[nodiscard]] bool supports(std::uint32_t feature, const char **why = nullptr) const noexcept {
    return rill_device_supports(handle_, feature, why);
  }
  [[nodiscard]] outcome<stream_ref> default_stream() const;
  /** Blocks until all work of the device is done. */
  outcome<> synchronize() const { return detail::give(rill_device_synchronize(handle_)); }

  friend constexpr bool operator==(device a, device b) noexcept { return a.handle_.id == b.handle_.id; }
  friend constexpr bool operator!=(device a, device b) noexcept { return !(a == b); }

private:
  rill_device handle_ = { 0 };
};

namespace detail {

/* Common base of the owning and the borrowed type: the handle. Only borrowed types are copyable. */
template <class Handle> class handle_base {
public:
  using handle_type = Handle;
  /** Returns the handle, for the C interface. */
  [[nodiscard]] constexpr Handle handle() const noexcept { return handle_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return handle_.id != 0; }

  friend constexpr bool operator==(const handle_base &a, const handle_base &b) noexcept {
    return a.handle_.id == b.handle_.id;
  }
  friend constexpr bool operator!=(const handle_base &a, const handle_base &b) noexcept { return !(a == b); }

protected:
  Handle handle_ = { 0 };
  constexpr handle_base() noexcept = default;
  constexpr explicit handle_base(Handle handle) noexcept : handle_(handle) {}
  constexpr handle_base(const handle_base &) noexcept = default;
  handle_base &operator=(const handle_base &) noexcept = default;
  ~handle_base() = default;
};

/* Holds one reference. Base provides the object's calls and the static functions retain_ and release_. */
template <class Base, class Self> class owned : public Base {
public:
  using handle_type = typename Base::handle_type;

  /** Owns nothing. */
  owned() noexcept = default;
  owned(owned &&other) noexcept : Base(other.release()) {}
  owned &operator=(owned &&other) noexcept {
    if (this != &other) {
      reset();
      this->handle_ = other.release();
    }
    return *this;
  }
  owned(const owned &) = delete;
  owned &operator=(const owned &) = delete;
  /** Drops the reference.  Does not block; submitted work still completes. */
  ~owned() { reset(); }

  /** Drops the reference and becomes empty. */
  void reset() noexcept {
    if (this->handle_.id != 0) static_cast<void>(Base::release_(release()));
  }
  /** Passes the reference to the caller and becomes empty. */
  [[nodiscard]] handle_type release() noexcept {
    const handle_type handle = this->handle_;
    this->handle_ = handle_type{ 0 };
    return handle;
  }
  /** Takes over a reference from the caller. */
  [[nodiscard]] static Self adopt(handle_type handle) noexcept { return Self(adopted{}, handle); }
  /** Returns another owner of the same object. */
  [[nodiscard]] outcome<Self> share() const {
    const rill_status status = Base::retain_(this->handle_);
    return give_owner<Self>(status, this->handle_);
  }

protected:
  struct adopted {};
  owned(adopted, handle_type handle) noexcept : Base(handle) {}
};

/* Converts a vendor's handle, a pointer or an integer, to a number. */
template <class Native> std::uintptr_t native_number(Native native) noexcept {
  if constexpr (std::is_pointer_v<Native>) {
    return reinterpret_cast<std::uintptr_t>(native);
  } else {
    static_assert(std::is_integral_v<Native>, "a vendor's handle is a pointer or an integer");
    return std::uintptr_t{ native };
  }
}
template <class Native> Native native_pointer(std::uintptr_t number) noexcept {
  if constexpr (std::is_pointer_v<Native>) {
    return reinterpret_cast<Native>(number);
  } else {
    static_assert(std::is_same_v<Native, std::uintptr_t>, "a vendor's handle is a pointer or std::uintptr_t");
    return number;
  }
}

} // namespace detail

RILL_CPP_END

#endif
