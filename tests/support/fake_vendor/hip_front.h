/* hip_front.h: HIP's functions, those of newer headers too, as they are to be exported.  The HIP shim uses it too. */
#ifndef FAKE_HIP_FRONT_H
#define FAKE_HIP_FRONT_H

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
/* All else is hidden. */
#pragma GCC visibility push(default)
#include <hip/hip_runtime_api.h>

/* Functions that the oldest headers do not have; the same in the newer ones. */
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                            unsigned int block_z, unsigned int shared, hipStream_t stream,
                                            void **arguments);
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *id);
hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags);
hipError_t hipMemsetD2D16Async(hipDeviceptr_t dst, size_t pitch, unsigned short value, size_t width, size_t height,
                               hipStream_t stream);
hipError_t hipMemsetD2D32Async(hipDeviceptr_t dst, size_t pitch, unsigned int value, size_t width, size_t height,
                               hipStream_t stream);

/* The struct of hipGetDeviceProperties grew in 6, whose header renames the function; the library goes on
 * exporting both. */
#ifdef hipGetDeviceProperties
#undef hipGetDeviceProperties
typedef void hip_old_properties;
typedef hipDeviceProp_tR0600 hip_new_properties;
hipError_t hipGetDeviceProperties(hip_old_properties *properties, int device);
#else
typedef hipDeviceProp_t hip_old_properties;
typedef void hip_new_properties;
hipError_t hipGetDevicePropertiesR0600(hip_new_properties *properties, int device);
#endif
#pragma GCC visibility pop

#endif
