/* error_names.h: X(code, name in CUDA, name in HIP) for the codes that the engine gives or tests inject. */
#define FAKE_ERROR_NAMES(X)                                                                  \
  X(0, "CUDA_SUCCESS", "hipSuccess")                                                         \
  X(1, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue")                                   \
  X(2, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory")                                    \
  X(3, "CUDA_ERROR_NOT_INITIALIZED", "hipErrorNotInitialized")                               \
  X(4, "CUDA_ERROR_DEINITIALIZED", "hipErrorDeinitialized")                                  \
  X(9, "CUDA_ERROR_INVALID_CONFIGURATION", "hipErrorInvalidConfiguration")                   \
  X(35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "hipErrorInsufficientDriver")                      \
  X(46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "hipErrorDevicesUnavailable")                       \
  X(100, "CUDA_ERROR_NO_DEVICE", "hipErrorNoDevice")                                         \
  X(101, "CUDA_ERROR_INVALID_DEVICE", "hipErrorInvalidDevice")                               \
  X(200, "CUDA_ERROR_INVALID_IMAGE", "hipErrorInvalidImage")                                 \
  X(201, "CUDA_ERROR_INVALID_CONTEXT", "hipErrorInvalidContext")                             \
  X(209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorNoBinaryForGpu")                           \
  X(214, "CUDA_ERROR_ECC_UNCORRECTABLE", "hipErrorECCNotCorrectable")                        \
  X(218, "CUDA_ERROR_INVALID_PTX", "hipErrorInvalidKernelFile")                              \
  X(304, "CUDA_ERROR_OPERATING_SYSTEM", "hipErrorOperatingSystem")                           \
  X(400, "CUDA_ERROR_INVALID_HANDLE", "hipErrorInvalidHandle")                               \
  X(500, "CUDA_ERROR_NOT_FOUND", "hipErrorNotFound")                                         \
  X(600, "CUDA_ERROR_NOT_READY", "hipErrorNotReady")                                         \
  X(700, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress")                             \
  X(702, "CUDA_ERROR_LAUNCH_TIMEOUT", "hipErrorLaunchTimeOut")                               \
  X(704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "hipErrorPeerAccessAlreadyEnabled")       \
  X(705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "hipErrorPeerAccessNotEnabled")               \
  X(712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "hipErrorHostMemoryAlreadyRegistered") \
  X(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "hipErrorHostMemoryNotRegistered")         \
  X(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "hipErrorContextIsDestroyed")                    \
  X(710, "CUDA_ERROR_ASSERT", "hipErrorAssert")                                              \
  X(719, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure")                                \
  X(800, "CUDA_ERROR_NOT_PERMITTED", "hipErrorNotPermitted")                                 \
  X(801, "CUDA_ERROR_NOT_SUPPORTED", "hipErrorNotSupported")                                 \
  X(900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "hipErrorStreamCaptureUnsupported")        \
  X(901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "hipErrorStreamCaptureInvalidated")        \
  X(903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "hipErrorStreamCaptureUnmatched")            \
  X(908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "hipErrorStreamCaptureWrongThread")       \
  X(999, "CUDA_ERROR_UNKNOWN", "hipErrorUnknown")
