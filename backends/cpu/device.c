#include "backends/cpu/cpu.h"
#include "backends/cpu/fault.h"
#include "backends/cpu/fiber.h"
#include "backends/cpu/pages.h"
#include "backends/cpu/schedule.h"

#include <stdio.h>
#include <string.h>

static uint32_t cpu_device_count(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return 1;
}

static struct rill__device *the_device;

static rill_status cpu_device_init(struct rill__device *device) {
  the_device = device;
  rill_device_info *info = &device->info;
  rill__cpu_name_read(info->name, sizeof info->name);
  rill__cpu_x86_level_read();
  rill__cpu_target(info->arch, sizeof info->arch);
  rill__cpu_memory_set_up();
  info->memory_total = rill__cpu_memory_total();
  rill__cpu_processors_read();
  rill__cpu_workers_read_count();
  rill__cpu_schedule_read();
  device->reuses_early = rill__cpu_scheduled;
  info->compute_units = rill__cpu_workers_count();
  info->warp_size = CPU_WARP_SIZE; /* device functions that work across lanes are written for this size */
  info->max_threads_per_block = RILL_CPU_MAX_THREADS;
  memcpy(info->max_block_dim, (const uint32_t[]){ 1024, 1024, 64 }, sizeof info->max_block_dim);
  memcpy(info->max_grid_dim, (const uint32_t[]){ 2147483647, 65535, 65535 }, sizeof info->max_grid_dim);
  info->shared_per_block = 49152;
  info->shared_per_block_optin = CPU_SHARED_BYTES;
  info->max_threads_per_unit = info->max_threads_per_block; /* a worker runs one block at a time */
  info->shared_per_unit = CPU_SHARED_BYTES;
  info->priority_least = CPU_LEVELS - 2;
  info->priority_greatest = -1;
  return RILL_OK;
}

static void cpu_device_clocks(struct rill__device *device, uint32_t *core, uint32_t *memory) {
  (void)device, (void)memory;
  *core = rill__cpu_clock_read();
}

/* Does nothing: the first submission starts the workers.  The child of a fork has to start new ones anyway. */
static rill_status cpu_device_activate(struct rill__device *device) {
  (void)device;
  return RILL_OK;
}

static bool cpu_device_supports(struct rill__device *device, uint32_t feature, const char **why) {
  (void)device;
  if (feature == RILL_FEATURE_RTC) return rill__cpu_can_compile(why);
  static const char *const reasons[] = {
    [RILL_FEATURE_PEER] = "there is only one cpu device",
    [RILL_FEATURE_MANAGED] = "",
    [RILL_FEATURE_POOL] = "",
    [RILL_FEATURE_IPC] = "",
    [RILL_FEATURE_CLUSTER] = "the cpu backend runs blocks independently of one another",
    [RILL_FEATURE_COOPERATIVE] = CPU_NO_COOPERATIVE,
    [RILL_FEATURE_GRAPH] = "",
    [RILL_FEATURE_GRAPH_UPDATE] = "",
    [RILL_FEATURE_STREAM_ID] = "the cpu backend has no native streams to import",
    [RILL_FEATURE_KERNEL_ARGS] = "",
    [RILL_FEATURE_EVENT_IPC] = "events of the cpu backend exist only in the memory of their process",
    [RILL_FEATURE_CONDITIONAL] = RILL__NO_CONDITIONALS,
  };
  _Static_assert(sizeof reasons / sizeof *reasons == RILL_FEATURE_END_, "an answer for each feature");
  *why = reasons[feature];
  return reasons[feature][0] == '\0';
}

static rill_status cpu_device_synchronize(struct rill__device *device) { return rill__cpu_wait_for_all(device); }

static void set_workers(struct rill__device *device, uint32_t count) {
  (void)device;
  rill__cpu_workers_set_count(count);
}

static uint32_t get_workers(struct rill__device *device) {
  (void)device;
  return rill__cpu_workers_count();
}

static rill_status cpu_device_get_memory(struct rill__device *device, uint64_t *free_bytes, uint64_t *total_bytes) {
  (void)device;
  *total_bytes = rill__cpu_memory_total();
  *free_bytes = rill__cpu_memory_free_bytes();
  return RILL_OK;
}

static const struct rill__device_table device_table = {
  .count = cpu_device_count,
  .init = cpu_device_init,
  .clocks = cpu_device_clocks,
  .activate = cpu_device_activate,
  .supports = cpu_device_supports,
  .synchronize = cpu_device_synchronize,
  .get_memory = cpu_device_get_memory,
  .set_workers = set_workers,
  .get_workers = get_workers,
};

/* ---- fork ----
 *
 * The child has no workers, and the pending work belongs to the parent.  In the child this work counts as done, so
 * nothing waits for it, and the first submission starts workers.  Locks that other threads held are free in the next
 * generation of the process (lock.h).  The list of queues, which those threads may have been changing, is locked around
 * the fork.
 */

static void cpu_before_fork(void) { rill__cpu_queues_lock(); }

static void cpu_after_fork_in_parent(void) { rill__cpu_queues_unlock(); }

static void cpu_after_fork_in_child(void) {
  rill__cpu_queues_unlock();
  atomic_fetch_add(&rill__cpu_generation, CPU_GENERATION_STEP);
  rill__cpu_workers_reset();
  rill__cpu_schedule_reset();
  rill__cpu_queues_reset();
  rill__cpu_faults_reset();
  rill__cpu_pages_reset();
  if (the_device == NULL) return;
  rill__device_renew(the_device); /* the loss of the device affects only the parent */
}

const struct rill__backend rill__cpu_backend = {
  .name = "cpu",
  .id = RILL_BACKEND_CPU,
  .stream_size = sizeof(struct cpu_stream),
  .event_size = sizeof(struct cpu_event),
  .module_size = sizeof(struct cpu_module),
  .kernel_size = sizeof(struct cpu_kernel),
  .exec_size = sizeof(struct cpu_exec),
  .device = &device_table,
  .stream = &rill__cpu_stream_table,
  .event = &rill__cpu_event_table,
  .memory = &rill__cpu_memory_table,
  .module = &rill__cpu_module_table,
  .kernel = &rill__cpu_kernel_table,
  .graph = &rill__cpu_graph_table,
  .dlpack = { 1, 1, 1, 0, -1, NULL }, /* kDLCPU */
  .before_fork = cpu_before_fork,
  .after_fork_in_parent = cpu_after_fork_in_parent,
  .after_fork_in_child = cpu_after_fork_in_child,
};
