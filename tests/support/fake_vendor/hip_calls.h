/* hip_calls.h: the way into an entry point of the HIP front end, which keeps the thread's last error. */
#ifndef FAKE_HIP_CALLS_H
#define FAKE_HIP_CALLS_H

#include "engine.h"
#include "hip_front.h"

/* Keeps an error, "not ready" too, as HIP does; gives it on. */
hipError_t fake_hip_result(int code);

#define HIP_CALL(expression) FAKE_CALL_AS(fake_hip_result, false, expression)

#endif
