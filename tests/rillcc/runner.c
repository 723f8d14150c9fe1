/* Runs a kernel of a host image without the library: as the loops that it has, or each thread of a block on a stack
 * of its own.  Threads run in order, each up to its next barrier or exchange. */
#include <rill/device/cpu_image.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 * 1024, WARP = 32 };
enum { READY, AT_BARRIER, IN_WARP, AT_PLACE, ENDED };

struct thread {
  ucontext_t context;
  uint32_t index[3];
  int state;
  uint64_t value, mask;
  const void *place;
  void *stack;
};

static struct {
  ucontext_t main;
  struct thread *threads, *current;
  uint32_t count, said_true;
  const rill_cpu_kernel *kernel;
  const rill_cpu_block *block;
  rill_cpu_warp *warps; /* of each thread: what it was given last */
  char found[1024];     /* by an image that checks itself */
} run;

static void wait(int state, uint64_t value) {
  run.current->state = state;
  run.current->value = value;
  (void)swapcontext(&run.current->context, &run.main);
}

static uint32_t barrier_count(uint32_t predicate) {
  wait(AT_BARRIER, predicate != 0);
  return run.said_true;
}
static void barrier(void) { (void)barrier_count(0); }
static const rill_cpu_warp *exchange_among(uint64_t value, uint64_t mask) {
  run.current->mask = mask;
  wait(IN_WARP, value);
  return &run.warps[run.current - run.threads];
}
static const rill_cpu_warp *exchange(uint64_t value) { return exchange_among(value, UINT64_MAX); }
static uint64_t active(const void *place) {
  run.current->place = place;
  wait(AT_PLACE, 0);
  return run.warps[run.current - run.threads].live;
}
static uint32_t lane(void) { return (uint32_t)(run.current - run.threads) % WARP; }
static void check_failed(const char *file, uint32_t line, const uint32_t block[3], const char *text) {
  (void)snprintf(run.found, sizeof run.found, "%s:%u: block (%u, %u, %u): %s", file, line, block[0], block[1], block[2],
                 text);
  wait(READY, 0); /* main runs nobody again */
}
/* Without the library no allocations are known. */
static const char *find_fault(const void *at, uint64_t size, const void *of, const void *state) {
  (void)at, (void)size, (void)of, (void)state;
  return NULL;
}
static const char *check_access(const void *at, uint64_t size, const void *of, const void *state, uint32_t how) {
  (void)how;
  return find_fault(at, size, of, state);
}
static const rill_cpu_services services = {
  .barrier = barrier,
  .warp_size = WARP,
  .barrier_count = barrier_count,
  .exchange = exchange,
  .lane = lane,
  .check_failed = check_failed,
  .exchange_among = exchange_among,
  .active = active,
  .find_fault = find_fault,
  .access = check_access,
};

static void body(void) {
  run.kernel->run_thread(run.block, run.current->index);
  run.current->state = ENDED;
}

/* Lets the lanes of the warp from `first` on continue that wait for the same as thread i, if all have arrived. */
static int let_go(uint32_t first, uint32_t i) {
  const struct thread one = run.threads[i];
  const uint32_t lanes = run.count - first < WARP ? run.count - first : WARP;
  rill_cpu_warp warp = { .live = 0 };
  for (uint32_t l = 0; l < lanes; l++) {
    const struct thread *const thread = &run.threads[first + l];
    const uint64_t bit = UINT64_C(1) << l;
    if (thread->state == one.state && (one.state == AT_PLACE ? thread->place == one.place : thread->mask == one.mask)) {
      warp.values[l] = thread->value;
      warp.live |= bit;
      if (thread->value != 0) warp.nonzero |= bit;
    } else if (one.state == IN_WARP && thread->state != ENDED && (one.mask & bit) != 0) {
      return 0;
    }
  }
  for (uint32_t l = 0; l < lanes; l++) {
    if ((warp.live >> l & 1) == 0) continue;
    run.warps[first + l] = warp;
    run.threads[first + l].state = READY;
  }
  return 1;
}

/* Lets threads continue that no longer wait for others; returns whether there are any. */
static int release(void) {
  uint32_t at_barrier = 0, live = 0, said_true = 0;
  int ready = 0;
  for (int state = IN_WARP; state <= AT_PLACE && !ready; state++) {
    for (uint32_t i = 0; i < run.count; i++) {
      if (run.threads[i].state == state) ready |= let_go(i / WARP * WARP, i);
    }
  }
  for (uint32_t i = 0; i < run.count; i++) {
    live += run.threads[i].state != ENDED;
    at_barrier += run.threads[i].state == AT_BARRIER;
    said_true += run.threads[i].state == AT_BARRIER && run.threads[i].value != 0;
  }
  if (ready || at_barrier == 0 || at_barrier < live) return ready;
  run.said_true = said_true;
  for (uint32_t i = 0; i < run.count; i++) {
    if (run.threads[i].state == AT_BARRIER) run.threads[i].state = READY;
  }
  return 1;
}

/* Returns whether all threads have ended. */
static int run_on_stacks(const rill_cpu_block *block) {
  const uint32_t *const size = block->grid->block;
  run.block = block;
  for (uint32_t i = 0; i < run.count; i++) {
    struct thread *const thread = &run.threads[i];
    const uint32_t index[3] = { i % size[0], i / size[0] % size[1], i / size[0] / size[1] };
    memcpy(thread->index, index, sizeof index);
    thread->state = READY;
    (void)getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = STACK_BYTES;
    thread->context.uc_link = &run.main;
    makecontext(&thread->context, body, 0);
  }
  uint32_t ended = 0;
  do {
    for (uint32_t i = 0; i < run.count; i++) {
      run.current = &run.threads[i];
      if (run.current->state != READY) continue;
      (void)swapcontext(&run.main, &run.current->context);
      if (run.found[0] != '\0') return 0;
      ended += run.current->state == ENDED;
    }
  } while (release());
  return ended == run.count;
}

/* Prints the image's finding in the last grid, if any. */
const char *run_found(void);
const char *run_found(void) { return run.found; }

/* Returns 0, or 1 if there is no such form, 2 if there is no memory, 3 if threads wait forever or something was
 * found. */
int run_grid(const rill_cpu_kernel *kernel, rill_cpu_grid *grid, int as_loops);
int run_grid(const rill_cpu_kernel *kernel, rill_cpu_grid *grid, int as_loops) {
  if (as_loops ? kernel->run_block == NULL : kernel->run_thread == NULL) return 1;
  run.count = grid->block[0] * grid->block[1] * grid->block[2];
  run.threads = calloc(run.count, sizeof *run.threads);
  run.warps = calloc(run.count, sizeof *run.warps);
  void *shared = grid->shared_mem_bytes > 0 ? aligned_alloc(64, (grid->shared_mem_bytes + 63) / 64 * 64) : NULL;
  int failed = run.threads == NULL || run.warps == NULL ? 2 : 0;
  for (uint32_t i = 0; !failed && !as_loops && i < run.count; i++) {
    run.threads[i].stack = malloc(STACK_BYTES);
    if (run.threads[i].stack == NULL) failed = 2;
  }
  grid->services = &services;
  run.found[0] = '\0';
  run.kernel = kernel;
  const uint64_t blocks = (uint64_t)grid->grid[0] * grid->grid[1] * grid->grid[2];
  for (uint64_t i = 0; !failed && i < blocks; i++) {
    rill_cpu_block block = { .grid = grid, .shared = shared };
    block.index[0] = (uint32_t)(i % grid->grid[0]);
    block.index[1] = (uint32_t)(i / grid->grid[0] % grid->grid[1]);
    block.index[2] = (uint32_t)(i / grid->grid[0] / grid->grid[1]);
    if (as_loops) {
      kernel->run_block(&block);
    } else if (!run_on_stacks(&block)) {
      failed = 3;
    }
  }
  for (uint32_t i = 0; run.threads != NULL && i < run.count; i++) free(run.threads[i].stack);
  free(run.threads);
  free(run.warps);
  free(shared);
  return failed;
}
