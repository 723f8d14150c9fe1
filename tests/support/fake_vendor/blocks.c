/* Runs a grid, one block after the other, on the thread of its stream.  A kernel with barriers runs as one
 * fiber for each thread of the block, each in turn until its next barrier. */
#include "engine.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAKE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FAKE_TSAN 1
#endif
#ifdef FAKE_TSAN
#include <sanitizer/tsan_interface.h>
#endif

enum { STACK = 64 * 1024 };

struct fiber {
  ucontext_t context; /* where it begins; with the thread sanitizer, where it goes on */
  jmp_buf here;       /* where it goes on: a jump costs no system call */
  bool started, ended;
#ifdef FAKE_TSAN
  void *tsan;
#endif
};

struct team {
  struct fiber scheduler, *fibers;
  size_t count, current;
  char *stacks;
  const rill_cpu_kernel *kernel;
  const rill_cpu_block *block;
};

static _Thread_local struct team *team; /* of the block that this thread runs */

#ifdef FAKE_TSAN
static void switch_to(struct fiber *from, struct fiber *to) {
  __tsan_switch_to_fiber(to->tsan, 0);
  (void)swapcontext(&from->context, &to->context);
}
#else
static void switch_to(struct fiber *from, struct fiber *to) {
  if (_setjmp(from->here) != 0) return;
  if (to->started) _longjmp(to->here, 1);
  to->started = true;
  (void)setcontext(&to->context);
}
#endif

static void barrier(void) { switch_to(&team->fibers[team->current], &team->scheduler); }

/* One thread of a block, then the same one of the next block. */
static void fiber_main(void) {
  struct team *const own = team;
  const uint32_t *size = own->block->grid->block;
  const size_t n = own->current;
  const uint32_t index[3] = { (uint32_t)(n % size[0]), (uint32_t)(n / size[0] % size[1]),
                              (uint32_t)(n / size[0] / size[1]) };
  for (;;) {
    own->kernel->run_thread(own->block, index);
    own->fibers[n].ended = true;
    switch_to(&own->fibers[n], &own->scheduler);
  }
}

static void make_fiber(struct fiber *fiber, char *stack) {
  (void)getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = stack;
  fiber->context.uc_stack.ss_size = STACK;
  makecontext(&fiber->context, fiber_main, 0);
#ifdef FAKE_TSAN
  fiber->tsan = __tsan_create_fiber(0);
#endif
}

static bool make_fibers(struct team *t) {
  t->fibers = calloc(t->count, sizeof *t->fibers);
  t->stacks = mmap(NULL, t->count * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (t->fibers == NULL || t->stacks == MAP_FAILED) return false;
  t->scheduler.started = true;
#ifdef FAKE_TSAN
  t->scheduler.tsan = __tsan_get_current_fiber();
#endif
  for (size_t i = 0; i < t->count; i++) make_fiber(&t->fibers[i], t->stacks + i * STACK);
  return true;
}

static void free_fibers(struct team *t) {
#ifdef FAKE_TSAN
  for (size_t i = 0; i < t->count; i++) __tsan_destroy_fiber(t->fibers[i].tsan);
#endif
  (void)munmap(t->stacks, t->count * STACK);
  free(t->fibers);
}

/* Each thread runs to its next barrier or its end; and again, until all have ended. */
static void run_block_of_fibers(struct team *t) {
  for (size_t i = 0; i < t->count; i++) t->fibers[i].ended = false;
  for (bool left = true; left;) {
    left = false;
    for (t->current = 0; t->current < t->count; t->current++) {
      struct fiber *fiber = &t->fibers[t->current];
      if (!fiber->ended) switch_to(&t->scheduler, fiber);
      left |= !fiber->ended;
    }
  }
}

void fake_run_grid(const rill_cpu_kernel *kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                   void *const *args) {
  static const rill_cpu_services services = { .barrier = barrier };
  const rill_cpu_grid launch = { .args = args,
                                 .grid = { grid[0], grid[1], grid[2] },
                                 .block = { block[0], block[1], block[2] },
                                 .shared_mem_bytes = shared,
                                 .services = &services };
  rill_cpu_block values = { .grid = &launch };
  struct team t = { .count = (size_t)block[0] * block[1] * block[2], .kernel = kernel, .block = &values };
  if (shared != 0 && (values.shared = aligned_alloc(64, (shared + (size_t)63) / 64 * 64)) == NULL)
    fake_die("no memory for a kernel's shared memory");
  if (kernel->run_block == NULL && !make_fibers(&t)) fake_die("no memory for the threads of a block");
  team = &t;
  for (values.index[2] = 0; values.index[2] < grid[2]; values.index[2]++)
    for (values.index[1] = 0; values.index[1] < grid[1]; values.index[1]++)
      for (values.index[0] = 0; values.index[0] < grid[0]; values.index[0]++) {
        if (kernel->run_block != NULL) kernel->run_block(&values);
        else run_block_of_fibers(&t);
      }
  team = NULL;
  if (kernel->run_block == NULL) free_fibers(&t);
  free(values.shared);
}
