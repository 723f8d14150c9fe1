/* hip_calls.h: the way into an entry point of the HIP front end, which keeps the thread's last error. */
#ifndef FAKE_HIP_CALLS_H
#define FAKE_HIP_CALLS_H

#include "engine.h"
#include "hip_front.h"

/* Keeps an error, "not ready" too, as HIP does; gives it on. */
hipError_t fake_hip_result(int code);

/* Arrays and offsets are not known here; false: the runtime refuses the values. */
static inline bool fake_hip_copy_3d(const hipMemcpy3DParms *values, struct fake_copy *out) {
  if (values == NULL || values->srcArray != NULL || values->dstArray != NULL) return false;
  *out = (struct fake_copy){ .dst = values->dstPtr.ptr,
                             .src = values->srcPtr.ptr,
                             .dst_pitch = values->dstPtr.pitch,
                             .src_pitch = values->srcPtr.pitch,
                             .width = values->extent.width,
                             .height = values->extent.height,
                             .dst_slice = values->dstPtr.pitch * values->dstPtr.ysize,
                             .src_slice = values->srcPtr.pitch * values->srcPtr.ysize,
                             .depth = values->extent.depth };
  return (int)values->kind >= 0 && values->kind <= hipMemcpyDefault;
}

#define HIP_CALL(expression) FAKE_CALL_AS(fake_hip_result, false, expression)

#endif
