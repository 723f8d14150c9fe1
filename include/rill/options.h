/* rill/options.h: options in place, in C and in C++17.  Included by the headers that have options.
 *
 *     rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "copy", .blocking = true), &stream);
 *
 * gives a pointer to options that hold the defaults but for these fields, up to eight.  It is good until the end of the
 * statement in C++, of the block in C: for a call, not to be kept.
 */
#ifndef RILL_OPTIONS_H
#define RILL_OPTIONS_H

#ifdef __cplusplus

namespace rill_options_detail {
template <class T> struct in_place {
  T value;
  template <class F> explicit in_place(F set) : value() {
    value.struct_size = sizeof value;
    set(value);
  }
  operator const T *() const { return &value; }
};
} // namespace rill_options_detail

/* Designated initializers are not C++17's: each `.field = value` becomes an assignment. */
#define RILL_OPTIONS_9TH_(a1, a2, a3, a4, a5, a6, a7, a8, n, ...) n
#define RILL_OPTIONS_JOIN_(a, b) RILL_OPTIONS_JOIN_1_(a, b)
#define RILL_OPTIONS_JOIN_1_(a, b) a##b
#define RILL_OPTIONS_SET_1(x) (void)(rill_options_ x);
#define RILL_OPTIONS_SET_2(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_1(__VA_ARGS__)
#define RILL_OPTIONS_SET_3(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_2(__VA_ARGS__)
#define RILL_OPTIONS_SET_4(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_3(__VA_ARGS__)
#define RILL_OPTIONS_SET_5(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_4(__VA_ARGS__)
#define RILL_OPTIONS_SET_6(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_5(__VA_ARGS__)
#define RILL_OPTIONS_SET_7(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_6(__VA_ARGS__)
#define RILL_OPTIONS_SET_8(x, ...) \
  (void)(rill_options_ x);         \
  RILL_OPTIONS_SET_7(__VA_ARGS__)
#define RILL_OPTIONS_(type, ...)                                                                                  \
  ::rill_options_detail::in_place<type>([&](type &rill_options_) {                                                \
    RILL_OPTIONS_JOIN_(RILL_OPTIONS_SET_, RILL_OPTIONS_9TH_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0))(__VA_ARGS__) \
  })

#else

#define RILL_OPTIONS_(type, ...) (&(type){ .struct_size = sizeof(type), __VA_ARGS__ })

#endif

#endif
