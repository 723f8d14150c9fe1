/* hip_for_tests.h: what tests and fakes use of AMD's HIP runtime beyond what rill does.  Declared here, as in
 * backends/hip/hip_api.h, and compared with the real headers by tools/check-headers too. */
#ifndef RILL_TESTS_HIP_FOR_TESTS_H
#define RILL_TESTS_HIP_FOR_TESTS_H

#include "backends/hip/hip_api.h"

typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct hipUserObject *hipUserObject_t;
typedef unsigned int hipMemPoolAttr;
typedef unsigned int hipGraphExecUpdateResult;

enum {
  hipErrorNotInitialized = 3,
  hipErrorInvalidConfiguration = 9,
  hipErrorInsufficientDriver = 35,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidImage = 200,
  hipErrorNoBinaryForGpu = 209,
  hipErrorInvalidKernelFile = 218,
  hipErrorOperatingSystem = 304,
  hipErrorHostMemoryNotRegistered = 713,
  hipErrorUnknown = 999,
  hipDeviceAttributeAsyncEngineCount = 2,
  hipDeviceAttributeConcurrentKernels = 8,
  hipDeviceAttributeComputeCapabilityMajor = 23,
  hipDeviceAttributeMemoryBusWidth = 59,
  hipDeviceAttributeComputeCapabilityMinor = 61,
  hipDeviceAttributePciBusId = 67,
  HIP_FUNC_ATTRIBUTE_MAX = 10,
  hipEventReleaseToDevice = 0x40000000,
  hipStreamCaptureStatusActive = 1,
  hipStreamCaptureStatusInvalidated = 2,
  hipMemPoolAttrReleaseThreshold = 4,
};

#define hipEventReleaseToSystem 0x80000000u
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void *)0x2)
#define HIP_LAUNCH_PARAM_END ((void *)0x3)

const char *hipGetErrorString(hipError_t error);
hipError_t hipPeekAtLastError(void);
hipError_t hipDeviceReset(void);
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device);
hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags);
hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream);
hipError_t hipFreeAsync(void *pointer, hipStream_t stream);
hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value);
hipError_t hipMemcpy(void *dst, const void *src, size_t size, hipMemcpyKind kind);
hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *failing,
                              hipGraphExecUpdateResult *result);
hipError_t hipUserObjectCreate(hipUserObject_t *object, void *data, hipHostFn_t destroy, unsigned int references,
                               unsigned int flags);
hipError_t hipUserObjectRelease(hipUserObject_t object, unsigned int references);
hipError_t hipGraphRetainUserObject(hipGraph_t graph, hipUserObject_t object, unsigned int references,
                                    unsigned int flags);
hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t size);

#endif
