/* cuda_front.h: what the files of the CUDA front end share. */
#ifndef FAKE_CUDA_FRONT_H
#define FAKE_CUDA_FRONT_H

#include "engine.h"

/* All else is hidden. */
#pragma GCC visibility push(default)
#include "tests/support/vendor_api/cuda_for_tests.h"
#pragma GCC visibility pop

#define CU_CALL(expression) FAKE_CALL_AS(CUresult, false, expression)
#define CU_CALL_BEFORE_INIT(expression) FAKE_CALL_AS(CUresult, true, expression)

/* Reads one attribute of a launch, or of a node, into it. */
int fake_cuda_take_attribute(const CUlaunchAttribute *attribute, struct fake_launch *launch);

#endif
