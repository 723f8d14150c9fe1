/* rill/device/atomic_types.h: the types that atomic functions accept. Included by the headers that define atomic
 * functions. */
#ifndef RILL_DEVICE_ATOMIC_TYPES_H
#define RILL_DEVICE_ATOMIC_TYPES_H

/* Marks functions that read a value plainly before an atomic access, which rillcc --check would report as a race. */
#ifndef RILL_UNCHECKED_
#define RILL_UNCHECKED_
#endif
/* Between these two macros a compare-and-exchange is part of an atomic function that changes `SIZE` bytes at `P`. */
#ifndef RILL_UPDATE_BEGINS_
#define RILL_UPDATE_BEGINS_(P, SIZE) ((void)0)
#define RILL_UPDATE_ENDS_() ((void)0)
#endif

template <class T> constexpr bool rill_is_integer = false;
template <> inline constexpr bool rill_is_integer<int> = true;
template <> inline constexpr bool rill_is_integer<unsigned> = true;
template <> inline constexpr bool rill_is_integer<long> = true;
template <> inline constexpr bool rill_is_integer<unsigned long> = true;
template <> inline constexpr bool rill_is_integer<long long> = true;
template <> inline constexpr bool rill_is_integer<unsigned long long> = true;
template <class T> constexpr bool rill_is_floating = false;
template <> inline constexpr bool rill_is_floating<float> = true;
template <> inline constexpr bool rill_is_floating<double> = true;
template <class T> constexpr bool rill_is_number = rill_is_integer<T> || rill_is_floating<T>;
template <class T> constexpr bool rill_is_unsigned_int = false;
template <> inline constexpr bool rill_is_unsigned_int<unsigned> = true;

template <bool Condition, class T> struct rill_if_;
template <class T> struct rill_if_<true, T> { using type = T; };
/** The return type T of a function template that exists only for some types. */
#define RILL_FOR_(TYPES) typename rill_if_<TYPES<T>, T>::type

/** T, but not deduced from an argument of this type, so a literal may have another type. */
template <class T> struct rill_same_ { using type = T; };
template <class T> using rill_same_type = typename rill_same_<T>::type;

#endif
