/* rill/cpp/resource.hpp: pinned and managed memory for the containers of std::pmr.  Included by rill/rill.hpp.
 *
 *     rill::pool pool(device, RILL_POOL_OPTIONS(.kind = RILL_MEMORY_PINNED));
 *     rill::pool_resource pinned(device, pool);
 *     std::pmr::vector<float> host(n, &pinned);
 *     stream.copy(host, x);                       // as fast as for other pinned memory
 *
 * pool_resource creates its own stream, on which nothing else runs. stream_resource uses a stream of the program:
 * memory that a container frees is reused only after all work submitted to this stream before the free has completed.
 *
 * Pitfall: a container frees its memory when it is destroyed. With pool_resource, all work that uses the memory must
 * be done before then or be recorded with rill_memory_record_use. With stream_resource, this applies only to work on
 * other streams.
 */
#ifndef RILL_CPP_RESOURCE_HPP
#define RILL_CPP_RESOURCE_HPP

#include <rill/cpp/memory.hpp>

#include <memory_resource>

RILL_CPP_BEGIN

/** Memory from a pinned or managed pool, freed in the order of a stream. Holds a reference to the pool and to the
 *  stream. Do not move the resource while containers use it. */
class stream_resource : public std::pmr::memory_resource {
public:
  stream_resource() noexcept = default;
  /** Creates a resource. Fails with INVALID_ARGUMENT for a pool of device memory, which containers cannot use. */
  [[nodiscard]] static outcome<stream_resource> create(pool_ref pool, stream_ref stream) {
    std::uint32_t kind = 0;
    rill_status status = rill_pool_kind(pool.handle(), &kind);
    if (status == RILL_OK && kind == RILL_MEMORY_DEVICE) {
      return detail::refuse<stream_resource>(RILL_ERROR_INVALID_ARGUMENT, "rill::stream_resource",
                                             "the pool has device memory, which the host cannot use; containers take a "
                                             "pool of pinned or managed memory");
    }
    stream_resource made;
    if (status == RILL_OK) status = rill_pool_retain(pool.handle());
    if (status == RILL_OK) made.pool_ = rill::pool::adopt(pool.handle());
    if (status == RILL_OK) status = rill_stream_retain(stream.handle());
    if (status == RILL_OK) made.stream_ = rill::stream::adopt(stream.handle());
    return detail::give_made<stream_resource>(status, [&] { return std::move(made); });
  }
#if RILL_CPP_THROWS
  explicit stream_resource(pool_ref pool, stream_ref stream) : stream_resource(create(pool, stream)) {}
#endif
  stream_resource(stream_resource &&) noexcept = default;
  stream_resource &operator=(stream_resource &&) noexcept = default;
  stream_resource(const stream_resource &) = delete;
  stream_resource &operator=(const stream_resource &) = delete;
  ~stream_resource() override = default;

  [[nodiscard]] stream_ref get_stream() const noexcept { return stream_; }

private:
  rill::pool pool_;
  rill::stream stream_;

  /* Blocks until the stream has reached the allocation, because earlier work may still use the memory. A failure
   * throws rill::error. Without exceptions it aborts the program, because a container cannot return errors. */
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    void *p = nullptr;
    rill_status status =
        rill_pool_alloc_aligned_async(pool_.handle(), stream_.handle(), bytes == 0 ? 1 : bytes, alignment, &p);
    if (status == RILL_OK) {
      status = rill_stream_synchronize(stream_.handle());
      if (status != RILL_OK) static_cast<void>(rill_free_async(stream_.handle(), p));
    }
#if RILL_CPP_THROWS
    return detail::give(status, p);
#else
    if (status != RILL_OK) detail::die("a memory resource failed", rill_last_error_text());
    return p;
#endif
  }
  void do_deallocate(void *p, std::size_t, std::size_t) override {
    static_cast<void>(rill_free_async(stream_.handle(), p));
  }
  [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }
};

/** Memory from a pinned or managed pool, on a stream that the resource creates. */
class pool_resource : public stream_resource {
public:
  pool_resource() noexcept = default;
  [[nodiscard]] static outcome<pool_resource> create(rill::device device, pool_ref pool) {
#if RILL_CPP_THROWS
    return pool_resource(stream_resource::create(pool, rill::stream(device)));
#else
    auto stream = rill::stream::create(device);
    if (!stream) return stream;
    auto made = stream_resource::create(pool, *stream);
    if (!made) return made;
    return outcome<pool_resource>(RILL_OK, pool_resource(std::move(*made)));
#endif
  }
#if RILL_CPP_THROWS
  explicit pool_resource(rill::device device, pool_ref pool) : pool_resource(create(device, pool)) {}
#endif

private:
  explicit pool_resource(stream_resource &&made) noexcept : stream_resource(std::move(made)) {}
};

RILL_CPP_END

#endif
