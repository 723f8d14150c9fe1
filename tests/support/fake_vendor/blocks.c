/* Runs a grid, one block after the other, on the thread of its stream.  A kernel whose threads may wait for one another
 * runs as one fiber for each thread of the block, each in turn until it waits. */
#include "engine.h"

#include "backends/cpu/fiber_switch.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK = 64 * 1024 };

enum waits { NO_WAIT, AT_BARRIER, IN_WARP, AT_PLACE };

struct fiber {
  struct context context;
  bool ended;
  enum waits waits;
  uint64_t given;     /* to the barrier: whether it counts; to the warp: a value */
  uint64_t mask;      /* in the warp: the lanes that it waits for */
  const void *place;  /* where it asks which lanes are active */
  uint32_t count;     /* what the barrier said */
  rill_cpu_warp warp; /* what the warp said */
};

struct team {
  struct context scheduler;
  struct fiber *fibers;
  size_t count, current;
  bool failed; /* an assertion did */
  char *stacks;
  const rill_cpu_kernel *kernel;
  const rill_cpu_block *block;
  jmp_buf out; /* where a failed assertion goes on, in a kernel that runs on its caller's stack */
};

static _Thread_local struct team *team; /* of the block that this thread runs */

uint32_t fake_warp_size(void) { return strncmp(fake_options()->target, "gfx9", 4) == 0 ? 64 : 32; }

/* ---- services ---- */

static struct fiber *wait_for_others(enum waits what, uint64_t given) {
  struct fiber *me = &team->fibers[team->current];
  me->waits = what;
  me->given = given;
  fiber_switch(&me->context, &team->scheduler);
  return me;
}

static void barrier(void) { (void)wait_for_others(AT_BARRIER, 0); }
static uint32_t barrier_count(uint32_t predicate) { return wait_for_others(AT_BARRIER, predicate != 0)->count; }
static const rill_cpu_warp *exchange_among(uint64_t value, uint64_t mask) {
  team->fibers[team->current].mask = mask;
  return &wait_for_others(IN_WARP, value)->warp;
}
static const rill_cpu_warp *exchange(uint64_t value) { return exchange_among(value, UINT64_MAX); }
static uint64_t active(const void *place) {
  team->fibers[team->current].place = place;
  return wait_for_others(AT_PLACE, 0)->warp.live;
}
static uint32_t lane(void) { return (uint32_t)(team->current % fake_warp_size()); }

static void assert_failed(const char *expression, const char *file, uint32_t line, const uint32_t block[3],
                          const uint32_t thread[3]) {
  fake_say("%s:%u: block (%u, %u, %u), thread (%u, %u, %u): assertion `%s' failed", file, line, block[0], block[1],
           block[2], thread[0], thread[1], thread[2], expression);
  if (team->kernel->run_block != NULL) longjmp(team->out, 1);
  team->failed = true;
  fiber_switch(&team->fibers[team->current].context, &team->scheduler);
}

/* ---- fibers ---- */

/* One thread of a block, then the same one of the next block. */
static void fiber_main(void) {
  struct team *const own = team;
  fiber_begin(&own->scheduler);
  const uint32_t *size = own->block->grid->block;
  const size_t n = own->current;
  const uint32_t index[3] = { (uint32_t)(n % size[0]), (uint32_t)(n / size[0] % size[1]),
                              (uint32_t)(n / size[0] / size[1]) };
  for (;;) {
    own->kernel->run_thread(own->block, index);
    own->fibers[n].ended = true;
    fiber_switch(&own->fibers[n].context, &own->scheduler);
  }
}

static bool make_fibers(struct team *t) {
  t->fibers = calloc(t->count, sizeof *t->fibers);
  t->stacks = mmap(NULL, t->count * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (t->fibers == NULL || t->stacks == MAP_FAILED) return false;
#ifdef FIBER_TSAN
  t->scheduler.tsan = __tsan_get_current_fiber();
#endif
  for (size_t i = 0; i < t->count; i++) fiber_prepare(&t->fibers[i].context, t->stacks + i * STACK, STACK, fiber_main);
  return true;
}

static void free_fibers(struct team *t) {
  for (size_t i = 0; i < t->count; i++) fiber_end(&t->fibers[i].context);
  (void)munmap(t->stacks, t->count * STACK);
  free(t->fibers);
}

/* Lets those go on that wait at a barrier, if all do that have not ended. */
static bool pass_barrier(struct team *t) {
  uint32_t count = 0, live = 0;
  for (size_t i = 0; i < t->count; i++) {
    if (t->fibers[i].ended) continue;
    if (t->fibers[i].waits != AT_BARRIER) return false;
    live++;
    count += t->fibers[i].given != 0;
  }
  for (size_t i = 0; i < t->count; i++) {
    t->fibers[i].waits = NO_WAIT;
    t->fibers[i].count = count;
  }
  return live > 0;
}

/* The fibers of the warp from `first` up to `end` that wait for the same as fiber i go on, if all have come. */
static bool let_go(struct team *t, size_t first, size_t end, size_t i) {
  const struct fiber *const one = &t->fibers[i];
  const enum waits what = one->waits;
  const uint64_t mask = one->mask;
  const void *const place = one->place;
  rill_cpu_warp said = { .live = 0 };
  for (size_t k = first; k < end; k++) {
    const struct fiber *const fiber = &t->fibers[k];
    const uint64_t bit = UINT64_C(1) << (k - first);
    const bool same = fiber->waits == what && (what == AT_PLACE ? fiber->place == place : fiber->mask == mask);
    if (fiber->ended || !same) {
      if (what == IN_WARP && !fiber->ended && (mask & bit) != 0) return false;
      continue;
    }
    said.values[k - first] = fiber->given;
    said.live |= bit;
    if (fiber->given != 0) said.nonzero |= bit;
  }
  for (size_t k = first; k < end; k++) {
    if ((said.live >> (k - first) & 1) == 0) continue;
    t->fibers[k].waits = NO_WAIT;
    t->fibers[k].warp = said;
  }
  return true;
}

static bool let_some_go(struct team *t) {
  bool any = pass_barrier(t);
  const size_t warp = fake_warp_size();
  for (int what = IN_WARP; what <= AT_PLACE && !any; what++) {
    for (size_t i = 0; i < t->count; i++) {
      const size_t first = i / warp * warp, end = first + warp < t->count ? first + warp : t->count;
      if (!t->fibers[i].ended && t->fibers[i].waits == (enum waits)what) any |= let_go(t, first, end, i);
    }
  }
  return any;
}

/* Runs each thread until it waits or ends, and repeats this until all have ended or one has failed. */
static void run_block_of_fibers(struct team *t) {
  for (size_t i = 0; i < t->count; i++) {
    t->fibers[i].ended = false;
    t->fibers[i].waits = NO_WAIT;
  }
  bool left;
  do {
    left = false;
    for (t->current = 0; t->current < t->count && !t->failed; t->current++) {
      struct fiber *fiber = &t->fibers[t->current];
      if (!fiber->ended && fiber->waits == NO_WAIT) fiber_switch(&t->scheduler, &fiber->context);
      left |= !fiber->ended;
    }
    if (left && !t->failed && !let_some_go(t)) fake_die("the threads of a block wait for each other for ever");
  } while (left && !t->failed);
}

static void run_blocks(struct team *t, rill_cpu_block *block) {
  const uint32_t *grid = block->grid->grid;
  for (block->index[2] = 0; block->index[2] < grid[2]; block->index[2]++)
    for (block->index[1] = 0; block->index[1] < grid[1]; block->index[1]++)
      for (block->index[0] = 0; block->index[0] < grid[0]; block->index[0]++) {
        if (t->kernel->run_block != NULL) t->kernel->run_block(block);
        else run_block_of_fibers(t);
        if (t->failed) return;
      }
}

int fake_run_grid(const rill_cpu_kernel *kernel, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                  void *const *args) {
  const rill_cpu_services services = { .barrier = barrier,
                                       .warp_size = fake_warp_size(),
                                       .barrier_count = barrier_count,
                                       .exchange = exchange,
                                       .lane = lane,
                                       .assert_failed = assert_failed,
                                       .exchange_among = exchange_among,
                                       .active = active };
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
  if (_setjmp(t.out) == 0) run_blocks(&t, &values);
  else t.failed = true;
  team = NULL;
  if (kernel->run_block == NULL) free_fibers(&t);
  free(values.shared);
#ifdef FIBER_TSAN
  __tsan_acquire(&environ); /* what it saw of other threads the race detector does not know (gate_open) */
#endif
  return t.failed ? FAKE_ASSERT : FAKE_OK;
}
