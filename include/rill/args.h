/* rill/args.h: RILL_ARGS, the arguments of a launch as an expression. Included by rill/kernel.h.
 *
 *     rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, 2.0f, x, y));
 *
 * expands to two arguments, a `const rill_arg *` and a `size_t`. It takes 0 to 32 values, including rvalues and
 * structs. Each value has the size of its C type; an array is passed as a pointer. Cast bit-fields, because in C
 * their size depends on the compiler. The values live until the end of the statement; a launch reads them before it
 * returns.
 */
#ifndef RILL_ARGS_H
#define RILL_ARGS_H

#include <rill/kernel.h>

#ifdef __cplusplus

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace rill_args_detail {
template <class... T> struct pack {
  std::tuple<T...> values;
  rill_arg list[sizeof...(T) + 1];

  explicit pack(T... value) : values(value...), list() {
    std::apply(
        [this](const auto &...v) {
          std::size_t i = 0;
          ((list[i].data = &v, list[i].size = sizeof v, ++i), ...);
          (void)i;
        },
        values);
  }
  pack(const pack &) = delete; /* `list` points into `values` */
  pack &operator=(const pack &) = delete;
  operator const rill_arg *() const { return list; }
};
template <class... T> pack(T...) -> pack<T...>;
template <class... T> std::integral_constant<std::size_t, sizeof...(T)> count(T...);
} // namespace rill_args_detail

#define RILL_ARGS(...) ::rill_args_detail::pack{ __VA_ARGS__ }, decltype(::rill_args_detail::count(__VA_ARGS__))::value

#else

/* One value, as a compound literal of its decayed type, so that rvalues have an address. The literal is an array of
 * one element, because in a compound literal of a struct the value would initialize the first member. */
#define RILL_ARG_(x) \
  { (__typeof__(((void)0, (x)))[1]){ (x) }, sizeof(__typeof__(((void)0, (x)))) }

/* Counts arguments, including 0. A list is empty if it expands to a comma with RILL_ARGS_COMMA_ before it and ()
 * after it, but not with only one of these additions or with neither. */
#define RILL_ARGS_COMMA_(...) ,
#define RILL_ARGS_33RD_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, \
                        a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, n, ...)                        \
  n
#define RILL_ARGS_HAS_COMMA_(...)                                                                                     \
  RILL_ARGS_33RD_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, \
                  1, 1, 0, 0)
#define RILL_ARGS_COUNT_1_(...)                                                                                        \
  RILL_ARGS_33RD_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, \
                  10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define RILL_ARGS_IS_EMPTY_(...)                                                                               \
  RILL_ARGS_IS_EMPTY_1_(RILL_ARGS_HAS_COMMA_(__VA_ARGS__), RILL_ARGS_HAS_COMMA_(RILL_ARGS_COMMA_ __VA_ARGS__), \
                        RILL_ARGS_HAS_COMMA_(__VA_ARGS__()), RILL_ARGS_HAS_COMMA_(RILL_ARGS_COMMA_ __VA_ARGS__()))
#define RILL_ARGS_IS_EMPTY_1_(a, b, c, d) RILL_ARGS_IS_EMPTY_2_(a, b, c, d)
#define RILL_ARGS_IS_EMPTY_2_(a, b, c, d) RILL_ARGS_HAS_COMMA_(RILL_ARGS_EMPTY_CASE_##a##b##c##d)
#define RILL_ARGS_EMPTY_CASE_0001 ,
#define RILL_ARGS_JOIN_(a, b) RILL_ARGS_JOIN_1_(a, b)
#define RILL_ARGS_JOIN_1_(a, b) a##b

#define RILL_ARGS_LIST_1(x) RILL_ARG_(x)
#define RILL_ARGS_LIST_2(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_1(__VA_ARGS__)
#define RILL_ARGS_LIST_3(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_2(__VA_ARGS__)
#define RILL_ARGS_LIST_4(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_3(__VA_ARGS__)
#define RILL_ARGS_LIST_5(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_4(__VA_ARGS__)
#define RILL_ARGS_LIST_6(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_5(__VA_ARGS__)
#define RILL_ARGS_LIST_7(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_6(__VA_ARGS__)
#define RILL_ARGS_LIST_8(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_7(__VA_ARGS__)
#define RILL_ARGS_LIST_9(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_8(__VA_ARGS__)
#define RILL_ARGS_LIST_10(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_9(__VA_ARGS__)
#define RILL_ARGS_LIST_11(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_10(__VA_ARGS__)
#define RILL_ARGS_LIST_12(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_11(__VA_ARGS__)
#define RILL_ARGS_LIST_13(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_12(__VA_ARGS__)
#define RILL_ARGS_LIST_14(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_13(__VA_ARGS__)
#define RILL_ARGS_LIST_15(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_14(__VA_ARGS__)
#define RILL_ARGS_LIST_16(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_15(__VA_ARGS__)
#define RILL_ARGS_LIST_17(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_16(__VA_ARGS__)
#define RILL_ARGS_LIST_18(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_17(__VA_ARGS__)
#define RILL_ARGS_LIST_19(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_18(__VA_ARGS__)
#define RILL_ARGS_LIST_20(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_19(__VA_ARGS__)
#define RILL_ARGS_LIST_21(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_20(__VA_ARGS__)
#define RILL_ARGS_LIST_22(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_21(__VA_ARGS__)
#define RILL_ARGS_LIST_23(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_22(__VA_ARGS__)
#define RILL_ARGS_LIST_24(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_23(__VA_ARGS__)
#define RILL_ARGS_LIST_25(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_24(__VA_ARGS__)
#define RILL_ARGS_LIST_26(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_25(__VA_ARGS__)
#define RILL_ARGS_LIST_27(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_26(__VA_ARGS__)
#define RILL_ARGS_LIST_28(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_27(__VA_ARGS__)
#define RILL_ARGS_LIST_29(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_28(__VA_ARGS__)
#define RILL_ARGS_LIST_30(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_29(__VA_ARGS__)
#define RILL_ARGS_LIST_31(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_30(__VA_ARGS__)
#define RILL_ARGS_LIST_32(x, ...) RILL_ARG_(x), RILL_ARGS_LIST_31(__VA_ARGS__)

#define RILL_ARGS_WHEN_EMPTY_1(...) NULL, (size_t)0
#define RILL_ARGS_WHEN_EMPTY_0(...)                                                                     \
  (const rill_arg[]){ RILL_ARGS_JOIN_(RILL_ARGS_LIST_, RILL_ARGS_COUNT_1_(__VA_ARGS__))(__VA_ARGS__) }, \
      (size_t)RILL_ARGS_COUNT_1_(__VA_ARGS__)
#define RILL_ARGS(...) RILL_ARGS_JOIN_(RILL_ARGS_WHEN_EMPTY_, RILL_ARGS_IS_EMPTY_(__VA_ARGS__))(__VA_ARGS__)

#endif

#endif
