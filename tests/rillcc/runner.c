/* Runs a kernel of a host image without the library: as the loops that it has, or each thread of a block on a stack
 * of its own.  Threads run in order, each up to its next barrier. */
#include <rill/device/cpu_image.h>

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 * 1024 };

struct thread {
  ucontext_t context;
  uint32_t index[3];
  int ended;
  void *stack;
};

static struct {
  ucontext_t main;
  struct thread *current;
  const rill_cpu_kernel *kernel;
  const rill_cpu_block *block;
} run;

static void barrier(void) { (void)swapcontext(&run.current->context, &run.main); }

static const rill_cpu_services services = { .barrier = barrier };

static void body(void) {
  run.kernel->run_thread(run.block, run.current->index);
  run.current->ended = 1;
}

static void run_on_stacks(const rill_cpu_block *block, struct thread *threads, uint32_t count) {
  const uint32_t *const size = block->grid->block;
  run.block = block;
  for (uint32_t i = 0; i < count; i++) {
    struct thread *const thread = &threads[i];
    const uint32_t index[3] = { i % size[0], i / size[0] % size[1], i / size[0] / size[1] };
    memcpy(thread->index, index, sizeof index);
    thread->ended = 0;
    (void)getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = STACK_BYTES;
    thread->context.uc_link = &run.main;
    makecontext(&thread->context, body, 0);
  }
  for (uint32_t left = count; left > 0;) {
    for (uint32_t i = 0; i < count; i++) {
      if (threads[i].ended) continue;
      run.current = &threads[i];
      (void)swapcontext(&run.main, &threads[i].context);
      left -= (uint32_t)threads[i].ended;
    }
  }
}

/* Gives 0, or 1 if there is no such form, 2 if there is no memory. */
int run_grid(const rill_cpu_kernel *kernel, rill_cpu_grid *grid, int as_loops);
int run_grid(const rill_cpu_kernel *kernel, rill_cpu_grid *grid, int as_loops) {
  if (as_loops && kernel->run_block == NULL) return 1;
  const uint32_t count = grid->block[0] * grid->block[1] * grid->block[2];
  struct thread *threads = calloc(count, sizeof *threads);
  void *shared = grid->shared_mem_bytes > 0 ? aligned_alloc(64, (grid->shared_mem_bytes + 63) / 64 * 64) : NULL;
  int failed = threads == NULL;
  for (uint32_t i = 0; !failed && !as_loops && i < count; i++) {
    threads[i].stack = malloc(STACK_BYTES);
    failed = threads[i].stack == NULL;
  }
  grid->services = &services;
  run.kernel = kernel;
  const uint64_t blocks = (uint64_t)grid->grid[0] * grid->grid[1] * grid->grid[2];
  for (uint64_t i = 0; !failed && i < blocks; i++) {
    rill_cpu_block block = { .grid = grid, .shared = shared };
    block.index[0] = (uint32_t)(i % grid->grid[0]);
    block.index[1] = (uint32_t)(i / grid->grid[0] % grid->grid[1]);
    block.index[2] = (uint32_t)(i / grid->grid[0] / grid->grid[1]);
    if (as_loops) {
      kernel->run_block(&block);
    } else {
      run_on_stacks(&block, threads, count);
    }
  }
  for (uint32_t i = 0; threads != NULL && i < count; i++) free(threads[i].stack);
  free(threads);
  free(shared);
  return failed ? 2 : 0;
}
