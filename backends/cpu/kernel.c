#include "backends/cpu/accesses.h"
#include "backends/cpu/check.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/fault.h"
#include "backends/cpu/fiber.h"
#include "backends/cpu/schedule.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* ---- finding ---- */

/* Checks that the arguments in the image match those in the bundle. */
static rill_status check_args(const rill_cpu_kernel *code, const struct rill__kernel *kernel) {
  const rill_bundle_kernel *const source = kernel->source;
  RILL_REQUIRE(code->arg_count == source->arg_count, RILL_ERROR_BACKEND,
               "kernel \"%s\": the bundle lists %u arguments, but its image has %u", kernel->name, source->arg_count,
               code->arg_count);
  for (uint32_t i = 0; i < code->arg_count; i++) {
    RILL_REQUIRE(code->arg_sizes[i] == source->args[i].size, RILL_ERROR_BACKEND,
                 "kernel \"%s\": argument %u has %u bytes in the bundle, but %u in its image", kernel->name, i + 1,
                 source->args[i].size, code->arg_sizes[i]);
  }
  RILL_REQUIRE(code->run_block != NULL || code->run_thread != NULL, RILL_ERROR_BACKEND,
               "kernel \"%s\": the image has no code for it", kernel->name);
  return RILL_OK;
}

/* Returns the stack that kernel number `i` needs according to the image; 0 if unknown. */
static size_t stack_of(const rill_cpu_image_table *image, uint32_t i) {
  const uint64_t *stacks = image->version >= 3 ? image->stacks : NULL;
  if (stacks == NULL || stacks[0] == 0) return 0;
  return (size_t)stacks[1 + (i < stacks[0] ? i : stacks[0] - 1)];
}

static uint8_t facts_of(const rill_cpu_image_table *image, uint32_t i) {
  const uint8_t *facts = image->version >= 8 ? image->facts : NULL;
  return facts != NULL ? facts[i] : 0;
}

static rill_status cpu_kernel_find(struct rill__kernel *kernel) {
  const struct cpu_module *module = rill__part(kernel->module);
  struct cpu_kernel *part = rill__part(kernel);
  for (uint32_t i = 0; i < module->image->kernel_count; i++) {
    const rill_cpu_kernel *code = &module->image->kernels[i];
    if (strcmp(code->name, kernel->source->name) != 0) continue;
    RILL_TRY(check_args(code, kernel));
    const rill_device_info *info = &kernel->base.device->info;
    part->code = code;
    part->stack = stack_of(module->image, i);
    part->objects = module->objects;
    kernel->tells_accesses = module->objects != NULL && module->image->version >= 9;
    part->facts = facts_of(module->image, i);
    kernel->max_threads = info->max_threads_per_block;
    atomic_store(&kernel->shared_allowed, info->shared_per_block_optin); /* no opt-in is needed */
    return RILL_OK;
  }
  return rill__fail(RILL_ERROR_NOT_FOUND, "the image for %s has no kernel \"%s\"", kernel->base.device->name,
                    kernel->name);
}

/* ---- running ---- */

/* Core unloads a module only when no submitted work uses it, so `code` stays valid. */
struct launch {
  struct cpu_op op;
  struct cpu_inside inside;
  const rill_cpu_kernel *code;
  size_t stack;                      /* bytes per thread */
  const struct cpu_objects *objects; /* for a kernel that checks its accesses; NULL otherwise */
  uint64_t frees;                    /* valid with objects: `frees` of struct rill__launch */
  struct cpu_accesses *accesses;     /* valid with objects; NULL if core does not record accesses */
  uint8_t facts;                     /* RILL_CPU_BLOCKS_NEVER_WAIT and others */
  rill_cpu_grid grid;
  size_t constant_count;
  const struct rill__constant *constants; /* stored after the values */
  void *args[];                           /* pointers to the argument values, which follow */
};

/* The block that this worker runs, for the services, which have no argument that could pass it. */
struct running {
  const struct launch *launch;
  const rill_cpu_block *block; /* for a block that runs as loops */
  bool on_fibers;
  jmp_buf out;
};
static _Thread_local struct running running_kernel;

/* Marks the device as lost, and ends all waits for it. */
#define LOSE(launch, ...)                                                 \
  do {                                                                    \
    (void)rill__device_lost((launch)->inside.device, 0, "", __VA_ARGS__); \
    rill__cpu_queues_abort();                                             \
  } while (0)

/* Marks the device as lost and ends the block of a failed assertion, as on a GPU; other blocks of the launch that have
 * started continue. */
static void assert_failed(const char *expression, const char *file, uint32_t line, const uint32_t block[3],
                          const uint32_t thread[3]) {
  const struct launch *launch = running_kernel.launch;
  char at[96] = "";
  if (block != NULL && thread != NULL) {
    (void)snprintf(at, sizeof at, ", block (%u, %u, %u), thread (%u, %u, %u)", block[0], block[1], block[2], thread[0],
                   thread[1], thread[2]);
  }
  LOSE(launch, "%s:%u: %s%s: assertion \"%s\" failed", file, line, rill__cpu_name_of(&launch->inside).text, at,
       expression);
  if (running_kernel.on_fibers) rill__cpu_fibers_abort();
  longjmp(running_kernel.out, 1);
}

/* Marks the device as lost because threads of a block are deadlocked.  `at`: index of the block. */
static void report_deadlock(const struct launch *launch, const uint32_t at[3], uint32_t at_barrier, uint32_t in_warp) {
  LOSE(launch,
       "%s, block (%u, %u, %u): the threads are deadlocked: %u wait at a block barrier and %u in a warp function",
       rill__cpu_name_of(&launch->inside).text, at[0], at[1], at[2], at_barrier, in_warp);
}

static void handle_deadlock(uint32_t at_barrier, uint32_t in_warp) {
  report_deadlock(running_kernel.launch, running_kernel.block->index, at_barrier, in_warp);
  longjmp(running_kernel.out, 1);
}

/* Ends the block like a failed assertion.  Threads of images that check themselves always run on fibers. */
static void check_failed(const char *file, uint32_t line, const uint32_t block[3], const char *text) {
  const struct launch *launch = running_kernel.launch;
  LOSE(launch, "%s:%u: %s, block (%u, %u, %u): %s", file, line, rill__cpu_name_of(&launch->inside).text, block[0],
       block[1], block[2], text);
  rill__cpu_fibers_abort();
}

static const char *find_fault(const void *at, uint64_t size, const void *of, const void *state);
static const char *check_and_note(const void *at, uint64_t size, const void *of, const void *state, uint32_t how);

static const rill_cpu_services services = {
  .barrier = rill__cpu_fibers_barrier,
  .warp_size = CPU_WARP_SIZE,
  .barrier_count = rill__cpu_fibers_barrier_count,
  .exchange = rill__cpu_fibers_exchange,
  .lane = rill__cpu_fibers_lane,
  .assert_failed = assert_failed,
  .waits_for_ever = handle_deadlock,
  .check_failed = check_failed,
  .exchange_among = rill__cpu_fibers_exchange_among,
  .active = rill__cpu_fibers_active,
  .find_fault = find_fault,
  .access = check_and_note,
};

static const char *check_and_note(const void *at, uint64_t size, const void *of, const void *state, uint32_t how) {
  const struct launch *launch = running_kernel.launch;
  const struct cpu_worker *worker = rill__cpu_worker_self();
  const struct cpu_accessible accessible = {
    .device = launch->inside.device,
    .objects = launch->objects,
    .frees = launch->frees,
    .locals = (uintptr_t)state - launch->objects->state,
    .shared = (uintptr_t)worker->shared,
    .shared_bytes = launch->grid.shared_mem_bytes,
    .own = { { (uintptr_t)launch, launch->op.size }, { (uintptr_t)&services, sizeof services } },
  };
  bool global = false;
  const char *const fault = rill__cpu_find_fault(&accessible, (uintptr_t)at, (size_t)size, (uintptr_t)of, &global);
  if (fault == NULL && how != 0 && global && launch->accesses != NULL)
    rill__cpu_accesses_note(launch->accesses, (uintptr_t)at, (size_t)size, how);
  return fault;
}

_Static_assert(RILL_CPU_READS == RILL__ACCESSED_READ && RILL_CPU_WRITES == RILL__ACCESSED_WRITE &&
                   RILL_CPU_UPDATES == RILL__ACCESSED_UPDATE && RILL_CPU_POLLS == RILL__ACCESSED_POLL,
               "images and core use the same numbers for kinds of accesses");

static const char *find_fault(const void *at, uint64_t size, const void *of, const void *state) {
  return check_and_note(at, size, of, state, 0);
}

/* Returns true if the block ran to its end. */
static bool run_on_fibers(const struct launch *launch, struct cpu_worker *worker, const rill_cpu_block *block) {
  const uint32_t *const size = launch->grid.block;
  const uint32_t threads = size[0] * size[1] * size[2];
  struct cpu_fibers *fibers = rill__cpu_fibers_for(&worker->fibers, threads, launch->stack);
  if (RILL__UNLIKELY(fibers == NULL)) {
    LOSE(launch, "%s: no memory for the stacks of a block of %u threads, each of %zu bytes",
         rill__cpu_name_of(&launch->inside).text, threads, launch->stack);
    return false;
  }
  const struct cpu_fibers_end end = rill__cpu_fibers_run(fibers, launch->code, block);
  if (RILL__LIKELY(!end.given_up)) return true;
  rill__cpu_fibers_free(&worker->fibers, SIZE_MAX);
  if (end.at_barrier + end.in_warp > 0) { /* otherwise assert_failed has reported it */
    report_deadlock(launch, block->index, end.at_barrier, end.in_warp);
  }
  return false;
}

static void run_each_block(const struct launch *launch, struct cpu_worker *worker, uint64_t first, uint64_t end) {
  const uint32_t *const size = launch->grid.grid;
  rill_cpu_block block = { .grid = &launch->grid };
  if (launch->grid.shared_mem_bytes > 0) block.shared = worker->shared;
  block.index[0] = (uint32_t)(first % size[0]);
  block.index[1] = (uint32_t)(first / size[0] % size[1]);
  block.index[2] = (uint32_t)(first / size[0] / size[1]);
  running_kernel.block = &block;
  for (uint64_t i = first; i < end; i++) {
    if (launch->code->run_block != NULL) {
      launch->code->run_block(&block);
    } else if (!run_on_fibers(launch, worker, &block)) {
      break;
    }
    if (++block.index[0] < size[0]) continue;
    block.index[0] = 0;
    if (++block.index[1] < size[1]) continue;
    block.index[1] = 0;
    block.index[2]++;
  }
  running_kernel.block = NULL;
}

static void run_blocks(struct cpu_op *op, uint64_t first, uint64_t end) {
  const struct launch *launch = (const struct launch *)op;
  struct cpu_worker *const worker = rill__cpu_worker_self();
  if (RILL__UNLIKELY(cpu_is_lost(launch->inside.device))) return;
  running_kernel.launch = launch;
  running_kernel.on_fibers = launch->code->run_block == NULL;
  cpu_enter_kernel(worker, &launch->inside);
  if (running_kernel.on_fibers || _setjmp(running_kernel.out) == 0) run_each_block(launch, worker, first, end);
  cpu_leave_kernel(worker);
}

/* Divides a grid into blocks of another shape, for a kernel whose threads know only their indices in the grid.  The
 * product of grid and block stays the same on each axis.  If rows have at least LEAST_ROW threads, a block becomes a
 * part of one row, so that memory is accessed in its order; neighbouring blocks of a row are joined in any case.  The
 * grid keeps at least EACH blocks per worker if it had as many. */
static void reshape(rill_cpu_grid *grid) {
  enum { MOST = RILL_CPU_MAX_THREADS, LEAST_ROW = 256, EACH = 16 };
  uint32_t *const size = grid->grid, *const block = grid->block;
  const uint64_t blocks = (uint64_t)size[0] * size[1] * size[2], least = (uint64_t)EACH * rill__cpu_workers_count();
  for (int i = 0; i < 3; i++) {
    if ((uint64_t)size[i] * block[i] > INT32_MAX) return;
  }
  uint32_t rows = block[1] * block[2];
  const bool in_rows = rows > 1 && (uint64_t)size[0] * block[0] >= LEAST_ROW;
  uint32_t times = MOST / (block[0] * (in_rows ? 1 : rows));
  while (times > 1 && (size[0] % times != 0 || blocks / times * (in_rows ? rows : 1) < least)) times--;
  if (in_rows && block[0] * times >= LEAST_ROW) {
    for (int i = 1; i < 3; i++) {
      size[i] *= block[i];
      block[i] = 1;
    }
    rows = 1;
  }
  if (block[0] * times * rows > MOST) return;
  size[0] /= times;
  block[0] *= times;
}

static bool run_launch(struct cpu_queue *queue, struct cpu_op *op) {
  struct launch *launch = (struct launch *)op;
  const uint32_t *const size = launch->grid.grid;
  if ((launch->facts & RILL_CPU_ANY_SHAPE) != 0 && !rill__cpu_scheduled) reshape(&launch->grid);
  for (size_t i = 0; i < launch->constant_count; i++) {
    memcpy(launch->constants[i].to, launch->constants[i].from, launch->constants[i].size);
    if (launch->accesses != NULL) {
      rill__cpu_accesses_note(launch->accesses, (uintptr_t)launch->constants[i].to, launch->constants[i].size,
                              RILL__ACCESSED_WRITE);
    }
  }
  return rill__cpu_workers_share(queue, op, (uint64_t)size[0] * size[1] * size[2],
                                 (launch->facts & RILL_CPU_BLOCKS_NEVER_WAIT) != 0 ? CPU_BY_PLACE : CPU_IN_ORDER,
                                 run_blocks);
}

/* ---- submitting ---- */

/* Returns the next offset at which a value of `size` bytes is aligned.  An image does not record alignments, but the
 * alignment of a type divides its size. */
static size_t place_arg(size_t offset, size_t size) {
  const size_t divisor = size & (~size + 1);
  const size_t alignment = divisor == 0 || divisor > 64 ? 64 : divisor;
  return (offset + alignment - 1) / alignment * alignment;
}

enum { LABEL_MAX = 60 }; /* characters of a label that a message shows */

static void end_noted_launch(struct cpu_op *op) { rill__cpu_accesses_end(((struct launch *)op)->accesses); }

static rill_status cpu_kernel_launch(struct rill__stream *stream, const struct rill__launch *request) {
  struct cpu_queue *queue = cpu_queue_of(stream);
  const struct cpu_kernel *part = rill__part(request->kernel);
  const rill_cpu_kernel *code = part->code;
  const size_t values = sizeof(struct launch) + code->arg_count * sizeof(void *);
  size_t size = values;
  for (uint32_t i = 0; i < code->arg_count; i++) size = place_arg(size, code->arg_sizes[i]) + code->arg_sizes[i];
  const size_t constant_count = request->extras != NULL ? request->extras->constant_count : 0;
  if (constant_count > 0) size = place_arg(size, 64) + constant_count * sizeof(struct rill__constant);
  const size_t label = request->label != NULL ? strnlen(request->label, LABEL_MAX) + 1 : 0;

  RILL_TRY(rill__cpu_faults_catch());
  struct launch *op = NULL;
  struct cpu_accesses *const accesses = request->token != 0 ? rill__cpu_accesses_new(request->token) : NULL;
  RILL_REQUIRE(accesses != NULL || request->token == 0, RILL_ERROR_OUT_OF_MEMORY,
               "no host memory to record the accesses of kernel \"%s\"", request->kernel->name);
  const rill_status status = rill__cpu_queue_begin(queue, size + label, &op);
  if (status != RILL_OK && accesses != NULL) rill__cpu_accesses_end(accesses);
  if (status != RILL_OK) return status;
  op->op.run = run_launch;
  op->op.end = accesses != NULL ? end_noted_launch : NULL;
  op->accesses = accesses;
  op->inside = (struct cpu_inside){ stream->base.device, code->name, label > 0 ? (char *)op + size : NULL };
  if (label > 0) (void)snprintf((char *)op + size, label, "%s", request->label);
  op->code = code;
  op->stack = part->stack;
  op->objects = part->objects;
  op->frees = request->frees;
  op->facts = part->facts;
  op->grid.args = op->args;
  memcpy(op->grid.grid, request->grid, sizeof op->grid.grid);
  memcpy(op->grid.block, request->block, sizeof op->grid.block);
  op->grid.shared_mem_bytes = request->shared_mem_bytes;
  op->grid.services = &services;
  size_t offset = values;
  for (uint32_t i = 0; i < code->arg_count; i++) {
    offset = place_arg(offset, code->arg_sizes[i]);
    op->args[i] = memcpy((char *)op + offset, request->args[i], code->arg_sizes[i]);
    offset += code->arg_sizes[i];
  }
  op->constant_count = constant_count;
  if (constant_count > 0) {
    op->constants = memcpy((char *)op + place_arg(offset, 64), request->extras->constants,
                           constant_count * sizeof(struct rill__constant));
  }
  if (request->has_unknown_address) cpu_queue_unsettle(queue);
  (void)rill__cpu_queue_commit(queue);
  cpu_submitted(queue);
  return RILL_OK;
}

/* ---- occupancy ---- */

/* Returns 1, because a worker runs one block at a time. */
static rill_status cpu_kernel_occupancy(struct rill__kernel *kernel, uint32_t threads, uint64_t shared,
                                        uint32_t *blocks) {
  (void)kernel, (void)threads, (void)shared;
  *blocks = 1;
  return RILL_OK;
}

/* Suggests a few hundred threads, which hide the cost of a block; more would only make the grid coarser. */
static rill_status cpu_kernel_suggest_block(struct rill__kernel *kernel, uint64_t shared, uint32_t limit,
                                            uint32_t *threads, uint32_t *blocks) {
  enum { SUGGESTED = 256 };
  (void)shared;
  *threads = limit < SUGGESTED ? limit : SUGGESTED;
  *blocks = kernel->base.device->info.compute_units;
  return RILL_OK;
}

/* ---- attributes ---- */

static bool cpu_kernel_has_attribute(struct rill__device *device, uint32_t kind, const char **why) {
  static const char *const reasons[] = {
    [RILL_ATTR_COOPERATIVE] = CPU_NO_COOPERATIVE,
    [RILL_ATTR_PRIORITY] = "the cpu backend supports priorities of streams, not of launches",
    [RILL_ATTR_PROGRAMMATIC_SERIALIZATION] = "on the cpu a kernel starts when the previous one has ended",
    [RILL_ATTR_PROGRAMMATIC_EVENT] = "on the cpu the blocks of a kernel trigger no events",
    [RILL_ATTR_ACCESS_POLICY] = "a program cannot control what a processor's caches keep",
    [RILL_ATTR_MEMORY_SYNC_DOMAIN] = "the cpu has a single memory synchronization domain",
    [RILL_ATTR_CARVEOUT] = "on the cpu shared memory is ordinary memory",
  };
  _Static_assert(sizeof reasons / sizeof *reasons == RILL_ATTR_END_, "an answer for each attribute");
  (void)device;
  *why = reasons[kind];
  return false;
}

const struct rill__kernel_table rill__cpu_kernel_table = {
  .find = cpu_kernel_find,
  .launch = cpu_kernel_launch,
  .has_attribute = cpu_kernel_has_attribute,
  .occupancy = cpu_kernel_occupancy,
  .suggest_block = cpu_kernel_suggest_block,
};
