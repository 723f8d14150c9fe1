/* rill/options.h: options in place, in C and in C++17.  Included by the headers that have options.
 *
 *     rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "copy", .blocking = true), &stream);
 *
 * gives a pointer to options that hold the defaults but for these fields, up to twelve, in any order.  It is good until
 * the end of the statement in C++, of the block in C: for a call, not to be kept.  In C++ it is an expression like any
 * other: default arguments, member initializers and constants may have it.
 */
#ifndef RILL_OPTIONS_H
#define RILL_OPTIONS_H

#ifdef __cplusplus

namespace rill_options_detail {
/* A value for one field, to be stored later. */
template <auto Field, class Value> struct setting { Value value; };

/* Stands for a field of the options: assigning to it gives the setting. */
template <class Value, auto Field> struct field {
  constexpr setting<Field, Value> operator=(Value value) const { return { value }; }
};

struct fields {}; /* by itself: no setting */

template <class T> struct in_place {
  T value;
  constexpr explicit in_place(const fields &) : value() { value.struct_size = sizeof value; }
  template <class... Value, auto... Field>
  constexpr explicit in_place(const setting<Field, Value> &...settings) : value() {
    value.struct_size = sizeof value;
    ((value.*Field = settings.value), ...);
  }
  constexpr operator const T *() const { return &value; }
};
} // namespace rill_options_detail

/* Designated initializers are not C++17's: each `.field = value` becomes an assignment to a member of TYPE_fields_,
 * which RILL_OPTIONS_FIELDS_ defines, with a RILL_OPTIONS_FIELD_ for each field but struct_size. */
#define RILL_OPTIONS_FIELDS_(type, ...)                   \
  struct type##_fields_ : ::rill_options_detail::fields { \
    using options_ = type;                                \
    __VA_ARGS__                                           \
  };
#define RILL_OPTIONS_FIELD_(name) ::rill_options_detail::field<decltype(options_::name), &options_::name> name;

#define RILL_OPTIONS_13TH_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, n, ...) n
#define RILL_OPTIONS_JOIN_(a, b) RILL_OPTIONS_JOIN_1_(a, b)
#define RILL_OPTIONS_JOIN_1_(a, b) a##b##_
#define RILL_OPTIONS_SET_1_(type, x) (type##_fields_() x)
#define RILL_OPTIONS_SET_2_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_1_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_3_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_2_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_4_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_3_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_5_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_4_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_6_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_5_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_7_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_6_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_8_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_7_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_9_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_8_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_10_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_9_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_11_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_10_(type, __VA_ARGS__)
#define RILL_OPTIONS_SET_12_(type, x, ...) (type##_fields_() x), RILL_OPTIONS_SET_11_(type, __VA_ARGS__)
#define RILL_OPTIONS_(type, ...)                                                                          \
  ::rill_options_detail::in_place<type>(RILL_OPTIONS_JOIN_(                                               \
      RILL_OPTIONS_SET_, RILL_OPTIONS_13TH_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))(type, \
                                                                                                    __VA_ARGS__))

#else

#define RILL_OPTIONS_FIELDS_(type, ...)
#define RILL_OPTIONS_(type, ...) (&(type){ .struct_size = sizeof(type), __VA_ARGS__ })

#endif

#endif
