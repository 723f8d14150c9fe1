#include "backends/cpu/fiber.h"

#include "backends/cpu/fiber_switch.h"

#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
enum { STACK_BYTES = 256 * 1024 }; /* instrumented frames are larger */
#else
enum { STACK_BYTES = 64 * 1024 };
#endif
enum {
  GUARD_BYTES = 8192,
  HEAD_BYTES = 8192, /* below the guard; of the first stack of a slab it holds the slab */
  SLOT_BYTES = HEAD_BYTES + GUARD_BYTES + STACK_BYTES,
  /* Stacks begin at different cache sets: the fibers of a block all use the first few lines of theirs. */
  COLOURS = 64,
  COLOUR_BYTES = 64
};

/* At the top of its own stack. */
struct fiber {
  struct context context;
  struct fiber *next, *previous; /* in the ring; next in the list of spare ones */
};

/* The start of a mapping of `count` slots: head, guard, stack, fiber. */
struct slab {
  struct slab *next;
  uint32_t count;
};

/* One for each worker. */
struct cpu_fibers {
  struct slab *slabs;
  struct fiber *spare;
  uint32_t count;

  /* the block that runs */
  const rill_cpu_kernel *kernel;
  const rill_cpu_block *block;
  uint32_t begun, threads;
  uint32_t index[3]; /* of the next thread to begin */
  struct fiber *current;
  struct context *left; /* what was switched away from, for a fiber that begins */
  struct context worker;
};

/* What the fibers of this thread belong to: a barrier has no argument to tell it. */
static _Thread_local struct cpu_fibers *running __attribute__((tls_model("initial-exec")));

/* ---- stacks ---- */

static void body(void);

static struct fiber *fiber_in(struct slab *slab, uint32_t i) {
  char *const end = (char *)slab + (size_t)(i + 1) * SLOT_BYTES - (size_t)(i % COLOURS) * COLOUR_BYTES;
  return (struct fiber *)(void *)(end - (sizeof(struct fiber) + 63) / 64 * 64);
}

/* Makes an overflow of the stack above stop at once.  Without it (many mappings are a limited resource, and older
 * kernels need one for each guard) only that is lost. */
static void guard(char *page) {
  if (madvise(page, GUARD_BYTES, MADV_GUARD_INSTALL) != 0) (void)mprotect(page, GUARD_BYTES, PROT_NONE);
}

static bool add_stacks(struct cpu_fibers *fibers, uint32_t count) {
  void *memory = mmap(NULL, (size_t)count * SLOT_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  (void)madvise(memory, (size_t)count * SLOT_BYTES, MADV_NOHUGEPAGE); /* little of each stack is ever touched */
  struct slab *slab = memory;
  slab->next = fibers->slabs;
  slab->count = count;
  fibers->slabs = slab;
  for (uint32_t i = count; i-- > 0;) {
    char *const slot = (char *)memory + (size_t)i * SLOT_BYTES;
    char *const stack = slot + HEAD_BYTES + GUARD_BYTES;
    struct fiber *fiber = fiber_in(slab, i);
    guard(slot + HEAD_BYTES);
    fiber_prepare(&fiber->context, stack, (size_t)((char *)fiber - stack), body);
    fiber->next = fibers->spare;
    fibers->spare = fiber;
  }
  fibers->count += count;
  return true;
}

struct cpu_fibers *cpu_fibers_for(struct cpu_fibers **own, uint32_t threads) {
  if (*own == NULL) *own = calloc(1, sizeof **own);
  struct cpu_fibers *fibers = *own;
  if (fibers == NULL) return NULL;
  if (fibers->count < threads && !add_stacks(fibers, threads - fibers->count)) return NULL;
  return fibers;
}

void cpu_fibers_free(struct cpu_fibers *fibers) {
  if (fibers == NULL) return;
  for (struct slab *slab = fibers->slabs; slab != NULL;) {
    struct slab *next = slab->next;
    for (uint32_t i = 0; i < slab->count; i++) fiber_end(&fiber_in(slab, i)->context);
    (void)munmap(slab, (size_t)slab->count * SLOT_BYTES);
    slab = next;
  }
  free(fibers);
}

/* ---- threads ---- */

static void switch_to(struct cpu_fibers *fibers, struct context *from, struct fiber *to) {
  fibers->current = to;
  fibers->left = from;
  fiber_switch(from, &to->context);
}

/* Runs the next thread that has not begun. */
static void run_thread(struct cpu_fibers *fibers) {
  const uint32_t *const size = fibers->block->grid->block;
  uint32_t *const next = fibers->index;
  const uint32_t index[3] = { next[0], next[1], next[2] };
  fibers->begun++;
  if (++next[0] == size[0]) {
    next[0] = 0;
    if (++next[1] == size[1]) {
      next[1] = 0;
      next[2]++;
    }
  }
  fibers->kernel->run_thread(fibers->block, index);
}

/* What every fiber runs, over and over: threads of a block, then it is spare until it is switched to again. */
static void body(void) {
  struct cpu_fibers *const fibers = running;
  struct fiber *const me = fibers->current;
  fiber_begin(fibers->left);
  for (;;) {
    while (fibers->begun < fibers->threads) run_thread(fibers);
    struct fiber *const next = me->next;
    me->previous->next = next;
    next->previous = me->previous;
    me->next = fibers->spare;
    fibers->spare = me;
    if (next == me) {
      fiber_switch(&me->context, &fibers->worker); /* it was the last one */
    } else {
      switch_to(fibers, &me->context, next);
    }
  }
}

static struct fiber *take_spare(struct cpu_fibers *fibers) {
  struct fiber *fiber = fibers->spare;
  fibers->spare = fiber->next;
  return fiber;
}

static void barrier(void) {
  struct cpu_fibers *const fibers = running;
  struct fiber *const me = fibers->current;
  struct fiber *next = me->next;
  if (fibers->begun < fibers->threads) { /* the last in the ring is the one that runs */
    next = take_spare(fibers);
    next->previous = me;
    next->next = me->next;
    me->next->previous = next;
    me->next = next;
  }
  if (next != me) switch_to(fibers, &me->context, next);
}

const rill_cpu_services cpu_services = { .barrier = barrier };

void cpu_fibers_run(struct cpu_fibers *fibers, const rill_cpu_kernel *kernel, const rill_cpu_block *block) {
  const uint32_t *const size = block->grid->block;
  running = fibers;
  fibers->kernel = kernel;
  fibers->block = block;
  fibers->threads = size[0] * size[1] * size[2];
  fibers->begun = 0;
  fibers->index[0] = fibers->index[1] = fibers->index[2] = 0;
#ifdef FIBER_TSAN
  fibers->worker.tsan = __tsan_get_current_fiber();
#endif
  struct fiber *first = take_spare(fibers);
  first->next = first->previous = first;
  switch_to(fibers, &fibers->worker, first);
}
