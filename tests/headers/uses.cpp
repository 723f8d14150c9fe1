/* What a C++ program writes of rill's macros and inline functions: no warning may come out of them. */
#include <rill/comm.h>
#include <rill/rill.h>

rill_status uses(rill_device device, rill_stream stream, rill_kernel kernel, const rill_bundle *bundle);

rill_status uses(rill_device device, rill_stream stream, rill_kernel kernel, const rill_bundle *bundle) {
  rill_stream_options stream_options = RILL_STREAM_OPTIONS_INIT;
  rill_import_options import_options = RILL_IMPORT_OPTIONS_INIT;
  rill_event_options event_options = RILL_EVENT_OPTIONS_INIT;
  rill_pool_options pool_options = RILL_POOL_OPTIONS_INIT;
  rill_graph_exec_options exec_options = RILL_GRAPH_EXEC_OPTIONS_INIT;
  rill_graph_update_result update_result = RILL_GRAPH_UPDATE_RESULT_INIT;
  rill_graph_node_params node_params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_trace_options trace_options = RILL_TRACE_OPTIONS_INIT;
  rill_comm_options comm_options = RILL_COMM_OPTIONS_INIT;
  rill_compile_options compile_options = RILL_COMPILE_OPTIONS_INIT;
  rill_error error = RILL_ERROR_INIT;
  rill_device_info device_info = RILL_DEVICE_INFO_INIT;
  rill_memory_info memory_info = RILL_MEMORY_INFO_INIT;
  rill_pool_info pool_info = RILL_POOL_INFO_INIT;
  rill_kernel_info kernel_info = RILL_KERNEL_INFO_INIT;
  rill_copy_3d box = RILL_COPY_3D_INIT;
  rill_launch launch = RILL_LAUNCH_INIT;
  stream_options.priority = RILL_PRIORITY_HIGH;
  import_options.ownership = RILL_IMPORT_ADOPT;
  event_options.timing = true;
  pool_options.kind = RILL_MEMORY_PINNED;
  exec_options.label = trace_options.path = comm_options.label = "x";
  launch = rill_launch_3d(1u << 20, 4, 4, 32, 4, 1);
  launch = rill_launch_2d(1u << 20, 4, 32, 4);
  launch = rill_launch_1d(1u << 20, 256);
  const bool same = rill_stream_equal(stream, RILL_NULL_STREAM) || rill_device_equal(device, RILL_NULL_DEVICE) ||
                    rill_kernel_equal(kernel, RILL_NULL_KERNEL) || update_result.reason == RILL_UPDATE_COUNT ||
                    memory_info.kind == RILL_MEMORY_DEVICE || pool_info.used != 0 || compile_options.struct_size == 0 ||
                    bundle == nullptr || node_params.kind != 0 || stream_options.blocking ||
                    import_options.release != nullptr || event_options.signaled || pool_options.max_size != 0 ||
                    exec_options.auto_free_on_launch || trace_options.max_bytes != 0 || comm_options.timeout_ns != 0;

  float *x = nullptr;
  rill_event event = RILL_NULL_EVENT;
  rill_status status = RILL_NEW(device, RILL_MEMORY_DEVICE, 100, &x);
  if (same || status != RILL_OK) return rill_last_error(&error) != RILL_OK ? RILL_ERROR_INTERNAL : error.status;
  if ((status = rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "copy", .priority = -1), &stream)) != RILL_OK ||
      (status = rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &event)) != RILL_OK ||
      (status = rill_stream_import(device, 1, RILL_IMPORT_OPTIONS(.ownership = RILL_IMPORT_BORROW), &stream)) !=
          RILL_OK ||
      (status = rill_device_get_info(device, &device_info)) != RILL_OK ||
      (status = rill_kernel_get_info(kernel, &kernel_info)) != RILL_OK ||
      (status = rill_copy_3d_async(stream, &box)) != RILL_OK ||
      (status = rill_trace_start(RILL_TRACE_OPTIONS(.path = "t", .graph_nodes = true))) != RILL_OK ||
      (status = rill_stream_launch(stream, kernel, &launch, RILL_ARGS(1, 2.0f, x, nullptr))) != RILL_OK ||
      (status = rill_stream_launch(stream, kernel, RILL_LAUNCH(.grid = rill_dim(64, 2, 1), .block = rill_dim(32, 8, 1)),
                                   RILL_ARGS())) != RILL_OK) {
    return status;
  }
  return rill_free(x);
}
