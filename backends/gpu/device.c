#include "backends/gpu/gpu.h"

#include <ctype.h>
#include <stdlib.h>

struct rill__device **gpu_devices;
uint32_t gpu_device_count;
bool gpu_forked;

/* ---- finding devices ---- */

/* Appends the values of the variables that hide devices, the usual reason for finding none. */
static uint32_t explain_none(char *why, size_t size) {
  static const char *const names[] = { GPU_MASK_VARIABLES };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    if (value != NULL) gpu_append(why, size, "; %s is \"%s\"", names[i], value);
  }
  gpu_vendor_explain(true, 0, why, size);
  return 0;
}

static uint32_t fail_count(char *why, size_t size, const char *library, gpu_result result, const char *symbol) {
  const char *name = gpu_vendor_error_name(result);
  gpu_append(why, size, "%s was opened, but its %s returned %d %s", library, symbol, result,
             name != NULL ? name : "(unknown error)");
  return explain_none(why, size);
}

static uint32_t gpu_count_devices(char *why, size_t why_size) {
  const char *library = gpu_load(why, why_size);
  if (library == NULL) {
    gpu_vendor_explain(false, 0, why, why_size);
    return 0;
  }
  if (gpu_was_loaded) atomic_fetch_or(&rill__shared_vendors, UINT32_C(1) << GPU_BACKEND_ID);
  gpu_users_note();
  int number = 0;
  gpu_result result = GPU_CALL(init, (0));
  if (result != GPU_SUCCESS) return fail_count(why, why_size, library, result, gpu_symbols.init);
  result = GPU_CALL(device_count, (&number));
  if (result != GPU_SUCCESS) return fail_count(why, why_size, library, result, gpu_symbols.device_count);
  if (number <= 0) {
    gpu_append(why, why_size, "%s was opened, but it reports no devices", library);
    return explain_none(why, why_size);
  }
  gpu_vendor_explain(true, (uint32_t)number, why, why_size);
  gpu_devices = calloc((size_t)number, sizeof(struct rill__device *));
  if (gpu_devices == NULL) {
    (void)snprintf(why, why_size, "no host memory");
    return 0;
  }
  gpu_device_count = (uint32_t)number;
  return gpu_device_count;
}

/* ---- properties of a device ---- */

/* Returns 0 if the driver does not know the attribute. */
static uint32_t device_attribute(gpu_device_handle device, gpu_attribute which) {
  int value = 0;
  if (GPU_CALL(device_attribute, (&value, which, device)) != GPU_SUCCESS || value < 0) return 0;
  return (uint32_t)value;
}

static int32_t numa_node_of(const char *pci_bus_id) {
  char path[96];
  (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci_bus_id);
  FILE *file = pci_bus_id[0] != '\0' ? fopen(path, "re") : NULL;
  if (file == NULL) return -1;
  int node = -1;
  if (fscanf(file, "%d", &node) != 1) node = -1;
  (void)fclose(file);
  return node;
}

static void fill_place(rill_device_info *info, gpu_device_handle device) {
  gpu_uuid uuid;
  if (gpu_api.device_uuid != NULL && GPU_CALL(device_uuid, (&uuid, device)) == GPU_SUCCESS) {
    _Static_assert(sizeof uuid.bytes == sizeof info->uuid, "16 bytes each");
    memcpy(info->uuid, uuid.bytes, sizeof info->uuid);
  }
  if (gpu_api.device_pci_bus_id != NULL) {
    const int size = sizeof info->pci_bus_id;
    if (GPU_CALL(device_pci_bus_id, (info->pci_bus_id, size, device)) != GPU_SUCCESS) info->pci_bus_id[0] = '\0';
  }
  info->pci_bus_id[sizeof info->pci_bus_id - 1] = '\0';
  for (char *c = info->pci_bus_id; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c); /* as in sysfs */
  info->numa_node = numa_node_of(info->pci_bus_id);
}

static void fill_limits(rill_device_info *info, gpu_device_handle device) {
  info->compute_units = device_attribute(device, GPU_ATTRIBUTE_COMPUTE_UNITS);
  info->warp_size = device_attribute(device, GPU_ATTRIBUTE_WARP_SIZE);
  info->max_threads_per_block = device_attribute(device, GPU_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  info->max_block_dim[0] = device_attribute(device, GPU_ATTRIBUTE_MAX_BLOCK_DIM_X);
  info->max_block_dim[1] = device_attribute(device, GPU_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  info->max_block_dim[2] = device_attribute(device, GPU_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  info->max_grid_dim[0] = device_attribute(device, GPU_ATTRIBUTE_MAX_GRID_DIM_X);
  info->max_grid_dim[1] = device_attribute(device, GPU_ATTRIBUTE_MAX_GRID_DIM_Y);
  info->max_grid_dim[2] = device_attribute(device, GPU_ATTRIBUTE_MAX_GRID_DIM_Z);
  info->registers_per_block = device_attribute(device, GPU_ATTRIBUTE_REGISTERS_PER_BLOCK);
  info->shared_per_block = device_attribute(device, GPU_ATTRIBUTE_SHARED_PER_BLOCK);
  info->shared_per_block_optin = device_attribute(device, GPU_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN);
  if (info->shared_per_block_optin < info->shared_per_block) info->shared_per_block_optin = info->shared_per_block;
  info->max_threads_per_unit = device_attribute(device, GPU_ATTRIBUTE_THREADS_PER_UNIT);
  info->registers_per_unit = device_attribute(device, GPU_ATTRIBUTE_REGISTERS_PER_UNIT);
  info->shared_per_unit = device_attribute(device, GPU_ATTRIBUTE_SHARED_PER_UNIT);
}

static void gpu_device_clocks(struct rill__device *device, uint32_t *core, uint32_t *memory) {
  if (gpu_forked) return;
  *core = device_attribute(gpu_device_of(device)->native, GPU_ATTRIBUTE_CORE_CLOCK);
  *memory = device_attribute(gpu_device_of(device)->native, GPU_ATTRIBUTE_MEMORY_CLOCK);
}

static rill_status gpu_device_init(struct rill__device *device) {
  struct gpu_device *part = gpu_device_of(device);
  rill_device_info *info = &device->info;
  size_t memory = 0;
  GPU_TRY(device, device_get, (&part->native, info->ordinal));
  GPU_TRY(device, device_name, (info->name, (int)sizeof info->name, part->native));
  GPU_TRY(device, device_total_memory, (&memory, part->native));
  const gpu_result result = gpu_vendor_identify(part->native, &part->target, info->arch, sizeof info->arch);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_IDENTIFY_TEXT);
  info->name[sizeof info->name - 1] = '\0';
  info->memory_total = memory;
  fill_place(info, part->native);
  fill_limits(info, part->native);
  part->max_pitch = device_attribute(part->native, GPU_ATTRIBUTE_MAX_PITCH);
  device->max_threads_per_dim = GPU_MAX_THREADS_PER_DIM;
  device->max_access_window = gpu_vendor_access_window(part->native);
  info->driver_version = gpu_vendor_driver_version();
  info->runtime_version = gpu_vendor_runtime_version();
  /* defaults; `activate` queries the driver, which may need a context for that */
  info->priority_least = GPU_PRIORITY_LEAST;
  info->priority_greatest = GPU_PRIORITY_GREATEST;
  (void)pthread_mutex_init(&part->pools_lock, NULL);
  gpu_devices[info->ordinal] = device;
  return RILL_OK;
}

/* Loads the kernel now, because a driver that loads code may wait for running kernels.  If the kernel cannot be loaded,
 * fills work without it. */
static rill_status load_fill_kernel(struct rill__device *device) {
  struct gpu_device *part = gpu_device_of(device);
  gpu_module_handle module = NULL;
  gpu_function function = NULL;
  struct gpu_scope scope;
  char log[8] = "";
  if (GPU_FILL_CODE == NULL || part->fill != NULL) return RILL_OK;
  gpu_result result = gpu_enter(device, &scope);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_ENTER_TEXT);
  if (gpu_vendor_module_load(&module, GPU_FILL_CODE, log, sizeof log) == GPU_SUCCESS) {
    result = GPU_CALL(module_function, (&function, module, GPU_FILL_NAME));
    if (result == GPU_SUCCESS) result = gpu_vendor_load_function(function);
    if (result == GPU_SUCCESS) part->fill = function;
    else (void)GPU_CALL(module_unload, (module));
  }
  gpu_leave(&scope);
  return RILL_OK;
}

static rill_status gpu_device_activate(struct rill__device *device) {
  struct gpu_device *part = gpu_device_of(device);
  gpu_result result = gpu_vendor_open(part->native, &part->context);
  if (result != GPU_SUCCESS) {
    return gpu_fail(device, result, GPU_OPEN_TEXT);
  }
  int least = 0, greatest = 0;
  const char *symbol = gpu_symbols.context_priority_range;
  GPU_RUN_INSIDE(result, device, context_priority_range, (&least, &greatest));
  if (result == GPU_SUCCESS && GPU_NEEDS_SENTINEL && part->sentinel == NULL) {
    symbol = gpu_symbols.stream_create;
    GPU_RUN_INSIDE(result, device, stream_create, (&part->sentinel, GPU_STREAM_NON_BLOCKING, 0));
  }
  if (result != GPU_SUCCESS) return gpu_fail(device, result, symbol);
  RILL_TRY(load_fill_kernel(device));
  /* Other threads may be reading these fields: do not write equal values. */
  if (device->info.priority_least != least) device->info.priority_least = least;
  if (device->info.priority_greatest != greatest) device->info.priority_greatest = greatest;
  return RILL_OK;
}

/* ---- features of a device ---- */

static bool has_peers(const struct gpu_device *part, const char **why) {
  *why = gpu_device_count > 1 ? "the driver says that it cannot access any other device's memory"
                              : "there is no other device of this vendor";
  for (uint32_t i = 0; i < gpu_device_count && gpu_api.device_can_access_peer != NULL; i++) {
    int can = 0;
    if (gpu_devices[i] == NULL) continue;
    const gpu_device_handle other = gpu_device_of(gpu_devices[i])->native;
    if (other == part->native) continue;
    if (GPU_CALL(device_can_access_peer, (&can, part->native, other)) == GPU_SUCCESS && can != 0) return true;
  }
  return false;
}

static bool can(struct rill__device *device, uint32_t feature, const char **why) {
  const struct gpu_device *part = gpu_device_of(device);
  switch (feature) {
    case RILL_FEATURE_PEER: return has_peers(part, why);
    case RILL_FEATURE_MANAGED:
      *why = "the driver says that the device has no managed memory";
      return gpu_api.managed_alloc != NULL && device_attribute(part->native, GPU_ATTRIBUTE_MANAGED) != 0;
    case RILL_FEATURE_POOL: return true; /* implemented by core */
    case RILL_FEATURE_IPC:
      *why = "the driver lacks functions to share memory between processes";
      return gpu_api.ipc_export_memory != NULL && gpu_api.ipc_open_memory != NULL && gpu_api.ipc_close_memory != NULL;
    case RILL_FEATURE_CLUSTER: return gpu_vendor_has_clusters(part->native, why);
    case RILL_FEATURE_COOPERATIVE:
      *why = "the driver says that the device has no cooperative launches";
      return device_attribute(part->native, GPU_ATTRIBUTE_COOPERATIVE) != 0 && gpu_vendor_has_cooperative(why);
    case RILL_FEATURE_GRAPH: *why = GPU_GRAPHS_TEXT; return gpu_graphs_missing() == NULL;
    case RILL_FEATURE_GRAPH_UPDATE:
      *why = "the driver cannot update graphs";
      return gpu_graphs_missing() == NULL && GPU_GRAPHS_CHANGE;
    case RILL_FEATURE_RTC: return gpu_rtc_load(why);
    case RILL_FEATURE_STREAM_ID: *why = GPU_STREAM_ID_TEXT; return gpu_api.stream_id != NULL;
    case RILL_FEATURE_EVENT_IPC:
      *why = "the driver lacks functions to share events between processes";
      return gpu_api.ipc_export_event != NULL && gpu_api.ipc_open_event != NULL &&
             gpu_vendor_has_event_ipc(part->native, why);
    case RILL_FEATURE_CONDITIONAL: *why = RILL__NO_CONDITIONALS; return false;
    case RILL_FEATURE_KERNEL_ARGS: *why = GPU_KERNEL_ARGS_TEXT; return GPU_KNOWS_KERNEL_ARGS;
    default: *why = "there is no such feature"; return false;
  }
}

static bool gpu_device_supports(struct rill__device *device, uint32_t feature, const char **why) {
  *why = "GPUs cannot be used in the child of a fork";
  if (gpu_forked || !can(device, feature, why)) return false;
  *why = "";
  return true;
}

/* ---- whole devices ---- */

/* Fails if a stream of the device is capturing.  Only rill's streams can be checked, and of these only streams whose
 * handles other code has.  If the driver does not report a capture, none is assumed. */
static rill_status refuse_in_capture_of(struct rill__device *device, const struct rill__device *waits_for) {
  struct rill__name capturing;
  if (device == NULL || atomic_load(&device->lost) != RILL_OK) return RILL_OK;
  RILL_REQUIRE(!rill__device_any_shared_stream(device, gpu_is_captured, &capturing), RILL_ERROR_CAPTURE_ACTIVE,
               "%s is capturing: synchronizing %s would invalidate the capture" RILL_HINT
               "end the capture first, or wait for streams and events",
               capturing.text, waits_for->name);
  return RILL_OK;
}

/* Refuses to synchronize during captures.  Synchronizing a device invalidates captures of its streams in every mode,
 * and with one vendor captures on all devices. */
static rill_status refuse_in_capture(struct rill__device *device) {
  if (!atomic_load(&rill__is_shared)) return RILL_OK;
  if (!GPU_SYNCHRONIZE_BREAKS_ALL) return refuse_in_capture_of(device, device);
  for (uint32_t i = 0; i < gpu_device_count; i++) RILL_TRY(refuse_in_capture_of(gpu_devices[i], device));
  return RILL_OK;
}

static rill_status gpu_device_synchronize(struct rill__device *device) {
  gpu_result result;
  RILL_TRY(refuse_in_capture(device));
  GPU_RUN_INSIDE(result, device, context_synchronize, ());
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, context_synchronize);
}

static rill_status gpu_device_get_memory(struct rill__device *device, uint64_t *free_bytes, uint64_t *total_bytes) {
  size_t free_size = 0, total_size = 0;
  gpu_result result;
  GPU_RUN_INSIDE(result, device, memory_info, (&free_size, &total_size));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, memory_info);
  *free_bytes = free_size;
  *total_bytes = total_size;
  return RILL_OK;
}

static rill_status of_native_stream(uintptr_t native, uint32_t *ordinal) {
  gpu_device_handle handle = 0;
  const gpu_result result = gpu_vendor_stream_device((gpu_stream_handle)native, &handle);
  if (result != GPU_SUCCESS) return gpu_fail(NULL, result, "querying the stream's device");
  for (uint32_t i = 0; i < gpu_device_count; i++) {
    *ordinal = i;
    if (gpu_devices[i] != NULL && gpu_device_of(gpu_devices[i])->native == handle) return RILL_OK;
  }
  *ordinal = UINT32_MAX;
  return RILL_OK;
}

const struct rill__device_table gpu_device_table = {
  .count = gpu_count_devices,
  .init = gpu_device_init,
  .clocks = gpu_device_clocks,
  .activate = gpu_device_activate,
  .supports = gpu_device_supports,
  .synchronize = gpu_device_synchronize,
  .get_memory = gpu_device_get_memory,
  .can_access_peer = gpu_can_access_peer,
  .set_peer = gpu_set_peer,
  .of_native_stream = of_native_stream,
};
