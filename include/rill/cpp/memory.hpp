/* rill/cpp/memory.hpp: owned memory and pools. Included by rill/rill.hpp. The rules are in rill/memory.h and
 * rill/pool.h.
 *
 *     rill::buffer<float> x(device, n);                                // freed by the destructor
 *     rill::buffer<float> host(device, n, rill::memory::pinned);
 *     for (float &value : rill::view(host)) value = 1;
 *
 *     rill::async_buffer<float> scratch(stream, n);                    // in the order of the stream
 *     stream.launch(sums_launch, rill::threads(n), n, x, scratch);
 *                                                                      // freed after the launch, without waiting
 *
 * Pitfall: the destructor of an async_buffer frees the memory at the current point of its stream, so all uses must be
 * ordered before this point. For a use on another stream, call record_use or make the buffer's stream wait for the
 * other stream.
 */
#ifndef RILL_CPP_MEMORY_HPP
#define RILL_CPP_MEMORY_HPP

#include <rill/cpp/stream.hpp>
#include <rill/memory.h>
#include <rill/pool.h>

RILL_CPP_BEGIN

/** Kinds of memory. */
enum class memory : std::uint32_t {
  device = RILL_MEMORY_DEVICE,
  pinned = RILL_MEMORY_PINNED,
  managed = RILL_MEMORY_MANAGED
};

namespace detail {
class pool_calls : public handle_base<rill_pool> {
public:
  /** Returns unused memory above `keep` bytes to the driver. May block. */
  outcome<> trim(std::uint64_t keep = 0) const { return give(rill_pool_trim(handle_, keep)); }
  [[nodiscard]] outcome<rill_pool_info> info() const {
    rill_pool_info out = RILL_POOL_INFO_INIT;
    const rill_status status = rill_pool_get_info(handle_, &out);
    return give(status, out);
  }

protected:
  using handle_base::handle_base;
  static rill_status retain_(rill_pool p) noexcept { return rill_pool_retain(p); }
  static rill_status release_(rill_pool p) noexcept { return rill_pool_release(p); }
};
} // namespace detail

/** A borrowed pool, for example the default pool of a device. */
class pool_ref : public detail::pool_calls {
public:
  constexpr pool_ref() noexcept = default;
  constexpr pool_ref(rill_pool handle) noexcept : pool_calls(handle) {}
  constexpr pool_ref(const pool_calls &other) noexcept : pool_calls(other) {}

  [[nodiscard]] static outcome<pool_ref> default_of(rill::device device) {
    rill_pool out = { 0 };
    const rill_status status = rill_pool_default(device.handle(), &out);
    return detail::give(status, pool_ref(out));
  }
};

/** An owned pool of one kind of memory. Its allocations may outlive it. */
class pool : public detail::owned<detail::pool_calls, pool> {
public:
  pool() noexcept = default;
  [[nodiscard]] static outcome<pool> create(rill::device device, const rill_pool_options *options = nullptr) {
    rill_pool handle = { 0 };
    const rill_status status = rill_pool_create(device.handle(), options, &handle);
    return detail::give_owner<pool>(status, handle);
  }
#if RILL_CPP_THROWS
  explicit pool(rill::device device, const rill_pool_options *options = nullptr) : pool(create(device, options)) {}
#endif

private:
  friend owned;
  pool(adopted tag, rill_pool handle) noexcept : owned(tag, handle) {}
};

namespace detail {
/* Elements at an address. The derived class owns the memory. */
template <class T> class elements {
  static_assert(std::is_trivially_copyable_v<T>, "devices copy bytes: the elements must be trivially copyable");
  static_assert(!std::is_const_v<T>, "a buffer of const elements could not be filled");
  static_assert(alignof(T) <= 256, "rill aligns memory to 256 bytes, which is too little for this type");

public:
  using value_type = T;
  [[nodiscard]] T *data() &noexcept { return data_; }
  [[nodiscard]] const T *data() const &noexcept { return data_; }
  void data() const && = delete; /* the temporary would free the memory */
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /** Records a use of the memory by the work submitted to `stream` so far. Freed memory is not reused before this
   *  work is done. */
  outcome<> record_use(stream_ref stream) { return give(rill_memory_record_use(data_, stream.handle())); }

protected:
  T *data_ = nullptr;
  std::size_t size_ = 0;

  elements() noexcept = default;
  elements(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  elements(elements &&other) noexcept : data_(other.data_), size_(other.size_) { other.forget(); }
  ~elements() = default;
  void take(elements &other) noexcept {
    data_ = other.data_;
    size_ = other.size_;
    other.forget();
  }
  T *forget() noexcept {
    T *const had = data_;
    data_ = nullptr;
    size_ = 0;
    return had;
  }
  /* Size of an allocation in bytes. If the product overflows, returns SIZE_MAX, which every pool refuses. */
  static std::size_t bytes(std::size_t count) noexcept {
    return count > SIZE_MAX / sizeof(T) ? SIZE_MAX : count * sizeof(T);
  }
};
} // namespace detail

/** Memory from rill_alloc: `size()` uninitialized elements. */
template <class T> class buffer : public detail::elements<T> {
  using base = detail::elements<T>;

public:
  buffer() noexcept = default;
  [[nodiscard]] static outcome<buffer> create(rill::device device, std::size_t count,
                                              rill::memory kind = rill::memory::device) {
    void *p = nullptr;
    const rill_status status =
        rill_alloc_array_(device.handle(), static_cast<std::uint32_t>(kind), count, sizeof(T), &p);
    return detail::give_made<buffer>(status, [&] { return buffer(static_cast<T *>(p), count); });
  }
#if RILL_CPP_THROWS
  explicit buffer(rill::device device, std::size_t count, rill::memory kind = rill::memory::device)
      : buffer(create(device, count, kind)) {}
#endif
  buffer(buffer &&) noexcept = default;
  buffer &operator=(buffer &&other) noexcept {
    if (this != &other) {
      static_cast<void>(rill_free(this->forget()));
      this->take(other);
    }
    return *this;
  }
  buffer(const buffer &) = delete;
  buffer &operator=(const buffer &) = delete;
  /** Frees the memory. May block until submitted work that can use the memory is done (rill_free). */
  ~buffer() {
    if (this->data_ != nullptr) static_cast<void>(rill_free(this->data_));
  }
  /** Frees the memory and reports failures. May block, like the destructor. */
  outcome<> free() { return detail::give(rill_free(this->forget())); }
  /** Passes ownership to the caller, who must call rill_free. */
  [[nodiscard]] T *release() noexcept { return this->forget(); }

private:
  buffer(T *data, std::size_t size) noexcept : base(data, size) {}
};

/** Memory from a pool, allocated and freed in stream order. The buffer holds a reference to the stream on which the
 *  memory is freed. This is the stream of the allocation, unless free_on selects another. */
template <class T> class async_buffer : public detail::elements<T> {
  using base = detail::elements<T>;

public:
  async_buffer() noexcept = default;
  /** Allocates from the default pool of the stream's device. */
  [[nodiscard]] static outcome<async_buffer> create(stream_ref stream, std::size_t count) {
    void *p = nullptr;
    return finish(rill_alloc_async(stream.handle(), base::bytes(count), &p), stream, p, count);
  }
  [[nodiscard]] static outcome<async_buffer> create(pool_ref pool, stream_ref stream, std::size_t count) {
    void *p = nullptr;
    return finish(rill_pool_alloc_async(pool.handle(), stream.handle(), base::bytes(count), &p), stream, p, count);
  }
#if RILL_CPP_THROWS
  explicit async_buffer(stream_ref stream, std::size_t count) : async_buffer(create(stream, count)) {}
  explicit async_buffer(pool_ref pool, stream_ref stream, std::size_t count)
      : async_buffer(create(pool, stream, count)) {}
#endif
  async_buffer(async_buffer &&) noexcept = default;
  async_buffer &operator=(async_buffer &&other) noexcept {
    if (this != &other) {
      discard();
      this->take(other);
      stream_ = std::move(other.stream_);
    }
    return *this;
  }
  async_buffer(const async_buffer &) = delete;
  async_buffer &operator=(const async_buffer &) = delete;
  /** Frees the memory at this point of its stream.  Does not block. */
  ~async_buffer() { discard(); }

  /** Frees the memory at this point of its stream. On failure, the buffer keeps the memory. */
  outcome<> free() {
    const rill_status status = this->data_ == nullptr ? RILL_OK : rill_free_async(stream_.handle(), this->data_);
    if (status == RILL_OK) {
      this->forget();
      stream_.reset();
    }
    return detail::give(status);
  }
  /** Selects another stream of the device, on which the memory is freed. */
  outcome<> free_on(stream_ref other) {
    const rill_status status = rill_stream_retain(other.handle());
    if (status == RILL_OK) stream_ = rill::stream::adopt(other.handle());
    return detail::give(status);
  }
  /** Returns the stream on which the memory is freed. */
  [[nodiscard]] stream_ref get_stream() const noexcept { return stream_; }

private:
  rill::stream stream_;

  async_buffer(T *data, std::size_t size, rill_stream retained) noexcept
      : base(data, size), stream_(rill::stream::adopt(retained)) {}

  void discard() noexcept {
    if (this->data_ != nullptr) static_cast<void>(rill_free_async(stream_.handle(), this->forget()));
  }
  /* `p` is a reference: the call in the first argument writes it, and arguments may be evaluated in any order. */
  static outcome<async_buffer> finish(rill_status status, stream_ref stream, void *const &p, std::size_t count) {
    if (status == RILL_OK) {
      status = rill_stream_retain(stream.handle());
      if (status != RILL_OK) static_cast<void>(rill_free_async(stream.handle(), p));
    }
    return detail::give_made<async_buffer>(status,
                                           [&] { return async_buffer(static_cast<T *>(p), count, stream.handle()); });
  }
};

RILL_CPP_END

#endif
