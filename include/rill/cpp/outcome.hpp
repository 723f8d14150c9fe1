/* rill/cpp/outcome.hpp: errors and results of calls that can fail. Included by rill/rill.hpp.
 *
 *     try { stream.synchronize(); }                                      // with exceptions
 *     catch (const rill::error &e) { std::puts(e.what()); }
 *
 *     if (auto done = stream.synchronize(); !done) std::puts(done.text());  // without
 *
 * Pitfall: the strings of a result's error() belong to the thread and are valid until its next failing call. The
 * strings of an exception are valid as long as the exception.
 */
#ifndef RILL_CPP_OUTCOME_HPP
#define RILL_CPP_OUTCOME_HPP

#include <rill/status.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#if defined(__cpp_exceptions) && !defined(RILL_CPP_RESULTS)
#define RILL_CPP_THROWS 1
#define RILL_CPP_BEGIN \
  namespace rill {     \
  inline namespace throwing {
#include <exception>
#include <memory>
#include <string>
#else
#define RILL_CPP_THROWS 0
#define RILL_CPP_BEGIN \
  namespace rill {     \
  inline namespace returning {
#endif
#define RILL_CPP_END \
  }                  \
  }

RILL_CPP_BEGIN

namespace detail {
/* Discards a status that cannot be passed on. */
inline void ignore(rill_status) noexcept {}

/* Aborts the program, for an error that can be neither returned nor thrown. */
[[noreturn, gnu::cold]] inline void die(const char *what, const char *text) noexcept {
  static_cast<void>(std::fprintf(stderr, "rill: %s: %s\n", what, text));
  std::abort();
}
} // namespace detail

#if RILL_CPP_THROWS

/** The exception that a failing call throws. Copies share their text. */
class error : public std::exception {
public:
  explicit error(const rill_error &from, const char *text) : kept_(std::make_shared<kept>(from, text)) {}
  error(const error &) noexcept = default; /* there is no move, because it would leave an error without text */
  error &operator=(const error &) noexcept = default;
  ~error() override = default;

  /** Returns the status, one of RILL_ERROR_*. */
  [[nodiscard]] rill_status status() const noexcept { return kept_->fields.status; }
  /** Returns the failure in one line, with the text of rill_last_error_text. */
  [[nodiscard]] const char *what() const noexcept override { return kept_->text.c_str(); }
  /** Returns the fields of rill_last_error: the call, the object, the vendor's code and name, message and hint. */
  [[nodiscard]] const rill_error &fields() const noexcept { return kept_->fields; }

private:
  struct kept {
    std::string text, api, object, native_name, message, hint;
    rill_error fields;
    kept(const rill_error &from, const char *line)
        : text(line), api(from.api), object(from.object), native_name(from.native_name), message(from.message),
          hint(from.hint), fields(from) {
      fields.api = api.c_str();
      fields.object = object.c_str();
      fields.native_name = native_name.c_str();
      fields.message = message.c_str();
      fields.hint = hint.c_str();
    }
  };
  std::shared_ptr<const kept> kept_;
};

template <class T = void> using outcome = T;

namespace detail {
/* Reports a failure detected by these headers, not by the C interface. */
template <class T = void>
[[noreturn, gnu::cold]] outcome<T> refuse(rill_status status, const char *api, const char *message) {
  rill_error made = { sizeof made, status, 0, api, "", "", message, "" };
  throw error(made, (std::string(api) + ": " + message).c_str());
}

/* Throws the failure of a call, or of a user's function that returned only a status. */
[[noreturn, gnu::cold, gnu::noinline]] inline void raise(rill_status status) {
  rill_error last = RILL_ERROR_INIT;
  detail::ignore(rill_last_error(&last));
  if (last.status != status) refuse(status, rill_status_name(status), rill_status_message(status));
  throw error(last, rill_last_error_text());
}

inline void give(rill_status status) {
  if (status != RILL_OK) raise(status);
}
template <class T> T give(rill_status status, const T &value) {
  if (status != RILL_OK) raise(status);
  return value;
}
/* Returns the result of `made()`, which is called only if the status is RILL_OK. */
template <class T, class F> T give_made(rill_status status, F made) {
  if (status != RILL_OK) raise(status);
  return made();
}
} // namespace detail

#else

namespace detail {
/* Marks failures detected by these headers. Their text is in last_refusal(). */
constexpr rill_status refused_here = 0x40000000;
struct refusal {
  const char *api;
  char message[200], text[280];
};
inline refusal &last_refusal() {
  static thread_local refusal last = { "", "", "" };
  return last;
}
} // namespace detail

template <class T = void> class result;

/** The failure of a result. It converts to a result of any other type. */
class [[nodiscard]] failure {
public:
  constexpr explicit failure(rill_status raw) noexcept : raw_(raw) {}
  /** Returns one of RILL_ERROR_*, or RILL_OK if the call succeeded. */
  [[nodiscard]] constexpr rill_status status() const noexcept { return raw_ & ~detail::refused_here; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return raw_ == RILL_OK; }
  /** Returns the failure in one line. The string is valid until the thread's next failing call. */
  [[nodiscard]] const char *text() const {
    if (raw_ == RILL_OK) return "";
    return (raw_ & detail::refused_here) != 0 ? detail::last_refusal().text : rill_last_error_text();
  }
  /** Returns the fields of rill_last_error. The strings are valid until the thread's next failing call. */
  [[nodiscard]] rill_error error() const {
    rill_error last = RILL_ERROR_INIT;
    if ((raw_ & detail::refused_here) != 0) {
      last = { sizeof last, status(), 0, detail::last_refusal().api, "", "", detail::last_refusal().message, "" };
    } else {
      detail::ignore(rill_last_error(&last));
    }
    return last;
  }

protected:
  rill_status raw_;
};

/** RILL_OK or a failure. */
template <> class [[nodiscard]] result<void> : public failure {
public:
  constexpr explicit result(rill_status raw) noexcept : failure(raw) {}
  constexpr result(failure f) noexcept : failure(f) {}
};

/** A value or a failure. Reading the value of a failure prints its text and aborts the program. */
template <class T> class [[nodiscard]] result : public failure {
public:
  constexpr result(failure f) noexcept : failure(f), value_() {}
  constexpr result(rill_status raw, T &&value) noexcept : failure(raw), value_(std::move(value)) {}

  [[nodiscard]] T &value() & { return checked(), value_; }
  [[nodiscard]] const T &value() const & { return checked(), value_; }
  [[nodiscard]] T &&value() && { return checked(), std::move(value_); }
  [[nodiscard]] T &operator*() & { return value(); }
  [[nodiscard]] const T &operator*() const & { return value(); }
  [[nodiscard]] T &&operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T *operator->() { return &value(); }
  [[nodiscard]] const T *operator->() const { return &value(); }

private:
  T value_;
  void checked() const {
    if (raw_ != RILL_OK) detail::die("the value of a failed result was asked for", text());
  }
};

template <class T = void> using outcome = result<T>;

namespace detail {
template <class T = void> [[gnu::cold]] outcome<T> refuse(rill_status status, const char *api, const char *message) {
  refusal &last = last_refusal();
  last.api = api;
  static_cast<void>(std::snprintf(last.message, sizeof last.message, "%s", message));
  static_cast<void>(std::snprintf(last.text, sizeof last.text, "%s: %s", api, message));
  return failure(status | refused_here);
}

inline result<> give(rill_status status) { return result<>(status); }
template <class T> result<T> give(rill_status status, const T &value) { return result<T>(status, T(value)); }
template <class T, class F> result<T> give_made(rill_status status, F made) {
  return status == RILL_OK ? result<T>(status, made()) : result<T>(failure(status));
}
} // namespace detail

#endif

namespace detail {
/* Creates the owner of a handle that a call returned with a reference. */
template <class Owner, class Handle> outcome<Owner> give_owner(rill_status status, const Handle &handle) {
  return give_made<Owner>(status, [&] { return Owner::adopt(handle); });
}

/* Reports a failure with two numbers in its text. */
template <class T = void>
[[gnu::cold]] outcome<T> refuse(rill_status status, const char *api, const char *format, std::size_t a, std::size_t b) {
  char message[200];
  static_cast<void>(std::snprintf(message, sizeof message, format, a, b));
  return refuse<T>(status, api, message);
}
} // namespace detail

RILL_CPP_END

#endif
