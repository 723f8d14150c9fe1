/* rill/options.h: options structs as expressions, in C and C++17. Included by the headers that have options.
 *
 *     rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "copy", .blocking = true), &stream);
 *
 * The expression is a pointer to options with the given fields (at most twelve, in any order) and defaults for all
 * others. The options live until the end of the statement in C++ and of the block in C, so pass the pointer to a call
 * and do not keep it. In C++ the expression is also allowed in default arguments, member initializers and constants.
 */
#ifndef RILL_OPTIONS_H
#define RILL_OPTIONS_H

#ifdef __cplusplus

namespace rill_options_detail {
/* The value for one field, which in_place stores in the struct. */
template <auto Field, class Value> struct setting { Value value; };

/* Represents a field of the options. Assigning to it returns a setting. */
template <class Value, auto Field> struct field {
  constexpr setting<Field, Value> operator=(Value value) const { return { value }; }
};

struct fields {}; /* an empty list of settings */

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

/* C++17 has no designated initializers. Each `.field = value` becomes an assignment to a member of TYPE_fields_,
 * which RILL_OPTIONS_FIELDS_ defines with a RILL_OPTIONS_FIELD_ for each field except struct_size. */
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
