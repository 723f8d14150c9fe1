/* The layout of public structs, as foreign languages and programs compiled earlier know it: fields may be added at the
 * end, nothing else.  For 64-bit machines; through layout.cpp in C++ too. */
#include <rill/rill.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif
#define AT(type, field, offset) CHECK(offsetof(type, field) == (offset))

CHECK(sizeof(void *) == 8 && sizeof(size_t) == 8);
CHECK(sizeof(rill_status) == 4 && sizeof(rill_device) == 8 && sizeof(rill_stream) == 8 && sizeof(rill_event) == 8);
CHECK(sizeof(rill_module) == 8 && sizeof(rill_kernel) == 8);
CHECK(sizeof(rill_ipc_handle) == 128);

AT(rill_error, status, 8);
AT(rill_error, native_code, 12);
AT(rill_error, api, 16);
AT(rill_error, object, 24);
AT(rill_error, native_name, 32);
AT(rill_error, message, 40);
AT(rill_error, hint, 48);

AT(rill_device_info, backend, 8);
AT(rill_device_info, ordinal, 12);
AT(rill_device_info, name, 16);
AT(rill_device_info, arch, 144);
AT(rill_device_info, pci_bus_id, 208);
AT(rill_device_info, uuid, 240);
AT(rill_device_info, numa_node, 256);
AT(rill_device_info, compute_units, 260);
AT(rill_device_info, warp_size, 264);
AT(rill_device_info, max_threads_per_block, 268);
AT(rill_device_info, max_block_dim, 272);
AT(rill_device_info, max_grid_dim, 284);
AT(rill_device_info, registers_per_block, 296);
AT(rill_device_info, shared_per_block, 304);
AT(rill_device_info, shared_per_block_optin, 312);
AT(rill_device_info, memory_total, 320);
AT(rill_device_info, core_clock_khz, 328);
AT(rill_device_info, memory_clock_khz, 332);
AT(rill_device_info, driver_version, 336);
AT(rill_device_info, runtime_version, 340);
AT(rill_device_info, priority_least, 344);
AT(rill_device_info, priority_greatest, 348);
AT(rill_device_info, max_threads_per_unit, 352);
AT(rill_device_info, registers_per_unit, 356);
AT(rill_device_info, shared_per_unit, 360);
CHECK(sizeof(rill_device_info) == 368);

AT(rill_stream_options, priority, 8);
AT(rill_stream_options, priority_policy, 12);
AT(rill_stream_options, blocking, 16);
AT(rill_stream_options, label, 24);

AT(rill_import_options, ownership, 8);
AT(rill_import_options, label, 16);
AT(rill_import_options, release, 24);
AT(rill_import_options, user, 32);

AT(rill_event_options, timing, 8);
AT(rill_event_options, blocking_sync, 9);
AT(rill_event_options, interprocess, 10);
AT(rill_event_options, signaled, 11);
AT(rill_event_options, label, 16);

AT(rill_compile_header, name, 0);
AT(rill_compile_header, text, 8);

AT(rill_compile_options, options, 8);
AT(rill_compile_options, option_count, 16);
AT(rill_compile_options, headers, 24);
AT(rill_compile_options, header_count, 32);
AT(rill_compile_options, label, 40);
AT(rill_compile_options, no_cache, 48);

AT(rill_pool_options, max_size, 8);
AT(rill_pool_options, release_threshold, 16);
AT(rill_pool_options, label, 24);
AT(rill_pool_options, kind, 32);

AT(rill_pool_info, reserved, 8);
AT(rill_pool_info, used, 16);
AT(rill_pool_info, reserved_peak, 24);
AT(rill_pool_info, used_peak, 32);

CHECK(sizeof(rill_dim3) == 12 && sizeof(rill_arg) == 16 && sizeof(rill_constant) == 24);
CHECK(sizeof(rill_launch_attribute) == 40);
AT(rill_launch, grid, 8);
AT(rill_launch, block, 20);
AT(rill_launch, cluster, 32);
AT(rill_launch, shared_mem_bytes, 44);
AT(rill_launch, reserved, 48);
AT(rill_launch, attributes, 56);
AT(rill_launch, attribute_count, 64);
AT(rill_launch, constants, 72);
AT(rill_launch, constant_count, 80);
AT(rill_launch, label, 88);

AT(rill_copy_3d, dst, 8);
AT(rill_copy_3d, src, 16);
AT(rill_copy_3d, dst_pitch, 24);
AT(rill_copy_3d, dst_slice_pitch, 32);
AT(rill_copy_3d, src_pitch, 40);
AT(rill_copy_3d, src_slice_pitch, 48);
AT(rill_copy_3d, width, 56);
AT(rill_copy_3d, height, 64);
AT(rill_copy_3d, depth, 72);

AT(rill_memory_info, kind, 8);
AT(rill_memory_info, device, 16);
AT(rill_memory_info, base, 24);
AT(rill_memory_info, size, 32);

AT(rill_kernel_info, name, 8);
AT(rill_kernel_info, arg_count, 16);
AT(rill_kernel_info, registers, 20);
AT(rill_kernel_info, max_threads, 24);
AT(rill_kernel_info, shared_bytes, 32);
AT(rill_kernel_info, local_bytes, 40);
AT(rill_kernel_info, constant_bytes, 48);
AT(rill_kernel_info, warp_size, 56);
AT(rill_kernel_info, required_block, 60);
AT(rill_kernel_info, required_cluster, 72);

CHECK(sizeof(rill_kernel_ref) == 32);

/* Constants whose numbers are part of the interface.  What is new stands here too: the ends say so. */
CHECK(RILL_BACKEND_CPU == 1 && RILL_BACKEND_CUDA == 2 && RILL_BACKEND_HIP == 3 && RILL_BACKEND_END_ == 4);
CHECK(RILL_FEATURE_PEER == 1 && RILL_FEATURE_STREAM_ID == 10 && RILL_FEATURE_KERNEL_ARGS == 11 &&
      RILL_FEATURE_EVENT_IPC == 12 && RILL_FEATURE_END_ == 13);
CHECK(RILL_PRIORITY_NORMAL == 0 && RILL_PRIORITY_HIGH == 0x40000001 && RILL_PRIORITY_LOW == 0x40000002);
CHECK(RILL_PRIORITY_CLAMP == 0 && RILL_PRIORITY_STRICT == 1 && RILL_IMPORT_BORROW == 0 && RILL_IMPORT_ADOPT == 1);
CHECK(RILL_WAIT_IF_RECORDED == 1 && RILL_WAIT_MUST_BE_RECORDED == 2 && RILL_EVENT_EXTERNAL == 4);
CHECK(RILL_MEMORY_UNKNOWN == 0 && RILL_MEMORY_DEVICE == 1 && RILL_MEMORY_PINNED == 2 && RILL_MEMORY_MANAGED == 3);
CHECK(RILL_MEMORY_REGISTERED == 4);
CHECK(RILL_ATTR_TRIGGER_AT_BLOCK_START == 1 && RILL_ACCESS_NORMAL == 0 && RILL_ACCESS_PERSISTING == 2);
CHECK(RILL_ATTR_COOPERATIVE == 1 && RILL_ATTR_CARVEOUT == 7 && RILL_ATTR_END_ == 8);

int main(void) { return 0; }
