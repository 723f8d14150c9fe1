#include "backends/cpu/cpu.h"
#include "backends/cpu/fiber.h"

#include <string.h>

/* ---- finding ---- */

/* Whether the image's arguments are those of the bundle. */
static rill_status check_args(const rill_cpu_kernel *code, const rill_bundle_kernel *source) {
  RILL_REQUIRE(code->arg_count == source->arg_count, RILL_ERROR_BACKEND,
               "kernel \"%s\": the bundle says %u arguments, its image %u", source->name, source->arg_count,
               code->arg_count);
  for (uint32_t i = 0; i < code->arg_count; i++) {
    RILL_REQUIRE(code->arg_sizes[i] == source->args[i].size, RILL_ERROR_BACKEND,
                 "kernel \"%s\": argument %u has %u bytes in the bundle, %u in its image", source->name, i,
                 source->args[i].size, code->arg_sizes[i]);
  }
  RILL_REQUIRE(code->run_block != NULL || code->run_thread != NULL, RILL_ERROR_BACKEND,
               "kernel \"%s\": the image has no code for it", source->name);
  return RILL_OK;
}

static rill_status find(struct rill__kernel *kernel) {
  const struct cpu_module *module = rill__part(kernel->module);
  struct cpu_kernel *part = rill__part(kernel);
  for (uint32_t i = 0; i < module->image->kernel_count; i++) {
    const rill_cpu_kernel *code = &module->image->kernels[i];
    if (strcmp(code->name, kernel->source->name) != 0) continue;
    RILL_TRY(check_args(code, kernel->source));
    const rill_device_info *info = &kernel->base.device->info;
    part->code = code;
    kernel->max_threads = info->max_threads_per_block;
    atomic_store(&kernel->shared_allowed, info->shared_per_block_optin); /* there is nothing to opt in to */
    return RILL_OK;
  }
  return rill__fail(RILL_ERROR_NOT_FOUND, "the image for %s has no kernel \"%s\"", kernel->base.device->name,
                    kernel->source->name);
}

/* ---- running ---- */

/* Core unloads a module only when no submitted work uses it, so the code stays. */
struct launch {
  struct cpu_op op;
  struct rill__device *device;
  const rill_cpu_kernel *code;
  rill_cpu_grid grid;
  void *args[]; /* pointers to the values, which follow */
};

static void run_on_fibers(const struct launch *launch, struct cpu_worker *worker, const rill_cpu_block *block) {
  const uint32_t *const size = launch->grid.block;
  const uint32_t threads = size[0] * size[1] * size[2];
  struct cpu_fibers *fibers = cpu_fibers_for(&worker->fibers, threads);
  if (RILL__LIKELY(fibers != NULL)) {
    cpu_fibers_run(fibers, launch->code, block);
  } else {
    (void)rill__device_lost(launch->device, 0, "", "no memory for the stacks of a block of %u threads", threads);
  }
}

static void run_blocks(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct launch *launch = (const struct launch *)op;
  const uint32_t *const size = launch->grid.grid;
  struct cpu_worker *worker = cpu_worker_self();
  rill_cpu_block block = { .grid = &launch->grid };
  if (launch->grid.shared_mem_bytes > 0) block.shared = worker->shared;
  block.index[0] = (uint32_t)(first % size[0]);
  block.index[1] = (uint32_t)(first / size[0] % size[1]);
  block.index[2] = (uint32_t)(first / size[0] / size[1]);
  for (uint64_t i = first; i < end; i++) {
    if (launch->code->run_block != NULL) {
      launch->code->run_block(&block);
    } else {
      run_on_fibers(launch, worker, &block);
    }
    if (++block.index[0] < size[0]) continue;
    block.index[0] = 0;
    if (++block.index[1] < size[1]) continue;
    block.index[1] = 0;
    block.index[2]++;
  }
}

static bool run_launch(struct cpu_queue *queue, struct cpu_op *op) {
  const uint32_t *const size = ((const struct launch *)op)->grid.grid;
  return cpu_pool_share(queue, op, (uint64_t)size[0] * size[1] * size[2], run_blocks);
}

/* ---- submitting ---- */

/* A value's place behind `offset`.  An image does not say how arguments are aligned, but an alignment divides the
 * size of its type. */
static size_t place(size_t offset, size_t size) {
  const size_t divisor = size & (~size + 1);
  const size_t alignment = divisor == 0 || divisor > 64 ? 64 : divisor;
  return (offset + alignment - 1) / alignment * alignment;
}

static rill_status launch(struct rill__stream *stream, const struct rill__launch *asked) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const struct cpu_kernel *part = rill__part(asked->kernel);
  const rill_cpu_kernel *code = part->code;
  const size_t values = sizeof(struct launch) + code->arg_count * sizeof(void *);
  size_t size = values;
  for (uint32_t i = 0; i < code->arg_count; i++) size = place(size, code->arg_sizes[i]) + code->arg_sizes[i];

  struct launch *op = NULL;
  RILL_TRY(cpu_queue_begin(queue, size, &op));
  op->op.run = run_launch;
  op->op.end = NULL;
  op->device = stream->base.device;
  op->code = code;
  op->grid.args = op->args;
  memcpy(op->grid.grid, asked->grid, sizeof op->grid.grid);
  memcpy(op->grid.block, asked->block, sizeof op->grid.block);
  op->grid.shared_mem_bytes = asked->shared_mem_bytes;
  op->grid.services = &cpu_services;
  size_t offset = values;
  for (uint32_t i = 0; i < code->arg_count; i++) {
    offset = place(offset, code->arg_sizes[i]);
    op->args[i] = memcpy((char *)op + offset, asked->args[i], code->arg_sizes[i]);
    offset += code->arg_sizes[i];
  }
  (void)cpu_queue_commit(queue);
  return RILL_OK;
}

const struct rill__kernel_table cpu_kernel_table = {
  .find = find,
  .launch = launch,
};
