/* front.h: the vendor whose front end is compiled, by neutral names: VENDOR(StreamQuery) is cuStreamQuery or
 * hipStreamQuery. For front_*.c, the common parts of both. */
#ifndef FAKE_FRONT_H
#define FAKE_FRONT_H

#ifdef FAKE_HIP_VERSION
#include "hip_calls.h"

#define VENDOR(name) hip##name
#define VENDOR_CALL HIP_CALL
#define hipStreamGetCaptureInfo hipStreamGetCaptureInfo_v2

typedef hipError_t vendor_result;
typedef hipDevice_t vendor_device;
typedef hipUUID vendor_uuid;
typedef hipStream_t vendor_stream;
typedef hipStreamCallback_t vendor_callback;
typedef hipHostFn_t vendor_host_fn;
typedef hipEvent_t vendor_event;
typedef hipIpcEventHandle_t vendor_ipc_event;
typedef hipStreamCaptureMode vendor_capture_mode;
typedef hipStreamCaptureStatus vendor_capture_status;
typedef unsigned long long vendor_capture_id;
typedef hipGraph_t vendor_graph;
typedef hipGraphNode_t vendor_node;
typedef hipGraphExec_t vendor_exec;
typedef hipGraphExecUpdateResult vendor_update_result;
typedef hipHostNodeParams vendor_host_node;
typedef hipUserObject_t vendor_object;
typedef hipMemoryAdvise vendor_advice;
typedef void *vendor_pointer;
typedef const void *vendor_const_pointer;
typedef int vendor_word;
typedef hipIpcMemHandle_t vendor_ipc_memory;
typedef hipModule_t vendor_module;
typedef hipFunction_t vendor_function;
typedef hipFunction_attribute vendor_function_attribute;
#define VENDOR_FUNCTION_ATTRIBUTES HIP_FUNC_ATTRIBUTE_MAX
#else
#include "cuda_front.h"

#define VENDOR(name) cu##name
#define VENDOR_CALL CU_CALL

typedef CUresult vendor_result;
typedef CUdevice vendor_device;
typedef CUuuid vendor_uuid;
typedef CUstream vendor_stream;
typedef CUstreamCallback vendor_callback;
typedef CUhostFn vendor_host_fn;
typedef CUevent vendor_event;
typedef CUipcEventHandle vendor_ipc_event;
typedef CUstreamCaptureMode vendor_capture_mode;
typedef CUstreamCaptureStatus vendor_capture_status;
typedef cuuint64_t vendor_capture_id;
typedef CUgraph vendor_graph;
typedef CUgraphNode vendor_node;
typedef CUgraphExec vendor_exec;
typedef CUgraphExecUpdateResult vendor_update_result;
typedef CUDA_HOST_NODE_PARAMS vendor_host_node;
typedef CUuserObject vendor_object;
typedef CUmem_advise vendor_advice;
typedef CUdeviceptr vendor_pointer;
typedef CUdeviceptr vendor_const_pointer;
typedef unsigned int vendor_word;
typedef CUipcMemHandle vendor_ipc_memory;
typedef CUmodule vendor_module;
typedef CUfunction vendor_function;
typedef CUfunction_attribute vendor_function_attribute;
#define VENDOR_FUNCTION_ATTRIBUTES FAKE_FUNC_ATTRIBUTE_MAX
#endif

/* The vendors number these alike. */
enum {
#define GPU_CODE(field, number, cuda_name, hip_name) VENDOR_##field = (number),
#define GPU_ENUM(field, number, cuda_name, hip_name) VENDOR_##field = (number),
#include "backends/gpu/gpu_enums.def"
};

#define ADDRESS(p) ((void *)(uintptr_t)(p))

struct fake_host_call fake_call_of_node(const vendor_host_node *node);

#endif
