/* rill/device/on_scan.h: the kernel dialect while rillcc reads a source.  Included by rill/device/kernel.h.
 *
 * Every macro of the dialect expands to itself: rillcc finds the words in the preprocessed text, and an #ifdef
 * of the source takes the way that it takes when the source is compiled (rill/device/on_host.h).
 */
#ifndef RILL_DEVICE_ON_SCAN_H
#define RILL_DEVICE_ON_SCAN_H

#include <sched.h>
#include <time.h>

#define __host__ __host__
#define __device__ __device__
#define __constant__ __constant__
#define __shared__ __shared__
#define __forceinline__ __forceinline__
#define __noinline__ __noinline__
#define __launch_bounds__(...) __launch_bounds__(__VA_ARGS__)
#define __align__(N) __align__(N)

#define RILL_KERNEL(...) RILL_KERNEL(__VA_ARGS__)
#define RILL_KERNEL_BOUNDED(...) RILL_KERNEL_BOUNDED(__VA_ARGS__)
#define RILL_DYNAMIC_SHARED(...) RILL_DYNAMIC_SHARED(__VA_ARGS__)

#endif
