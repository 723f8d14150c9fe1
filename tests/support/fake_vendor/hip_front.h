/* hip_front.h: HIP's functions as they are to be exported.  The HIP shim uses it too. */
#ifndef FAKE_HIP_FRONT_H
#define FAKE_HIP_FRONT_H

/* All else is hidden. */
#pragma GCC visibility push(default)
#include "tests/support/vendor_api/hip_for_tests.h"
#pragma GCC visibility pop

#endif
