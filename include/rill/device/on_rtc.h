/* rill/device/on_rtc.h: replaces the standard headers for the vendors' run-time compilers, which have none. Included
 * by rill/device/kernel.h. The functions of <math.h> are built into both compilers.
 */
#ifndef RILL_DEVICE_ON_RTC_H
#define RILL_DEVICE_ON_RTC_H

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
#ifdef __CUDACC_RTC__ /* hipRTC has its own definitions of these types */
typedef decltype(sizeof(0)) size_t;
typedef decltype(static_cast<char *>(0) - static_cast<char *>(0)) ptrdiff_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#endif
typedef decltype(static_cast<char *>(0) - static_cast<char *>(0)) intptr_t;
typedef decltype(sizeof(0)) uintptr_t;

#ifndef INT32_MAX
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807L
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1L)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ul
#endif
#ifndef NULL
#define NULL nullptr
#endif

#endif
