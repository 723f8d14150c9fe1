#include "backends/cpu/fiber.h"

#include "backends/cpu/fiber_switch.h"
#include "core/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* since Linux 6.13 */
#endif

#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
enum { STACK_LEAST = 256 * 1024 }; /* instrumented frames are larger */
#else
enum { STACK_LEAST = 64 * 1024 };
#endif
enum {
  GUARD_BYTES = 65536, /* larger than any frame of a function compiled without stack probes */
  HEAD_BYTES = 8192,   /* below the guard; in the first slot of a slab it holds the slab */
  OTHER_BYTES = 8192,  /* part of a stack used by the fiber and its colour offset */
  /* Stacks start at different cache sets, because all fibers of a block use the first few lines of their stacks. */
  COLOURS = 64,
  COLOUR_BYTES = 64
};

/* Stored at the top of its own stack. */
struct fiber {
  struct context context;
  struct fiber *next; /* in its queue, or in the list of spare fibers */
  uint32_t thread;    /* index in the block of the thread that it runs */
};

struct line {
  struct fiber *first, *last;
};

/* A collective operation of some lanes of a warp.  It is open until all of them have arrived, and in use until each of
 * them has ended or reached its next exchange. */
struct exchange {
  uint32_t mask;     /* participating lanes */
  const void *place; /* place in the code where lanes ask which are active; NULL for an exchange of values */
  uint32_t readers;  /* lanes that have arrived and may still read the values */
  struct line line;  /* valid while open */
  rill_cpu_warp values;
};

/* The threads of a warp.  Each lane reads at most one exchange, so an arriving lane always finds a free one. */
struct warp {
  uint32_t live;               /* lanes that have not ended, including those that have not started */
  uint32_t used, open;         /* bit masks of exchanges */
  uint8_t read[CPU_WARP_SIZE]; /* the exchange that each lane reads, or NONE */
  struct exchange exchanges[CPU_WARP_SIZE];
};
enum { NONE = 255 };

/* Start of a mapping of `count` slots; a slot has a head, guard, stack and fiber. */
struct slab {
  struct slab *next;
  size_t slot; /* size of a slot in bytes */
  uint32_t count;
};

/* A worker has one for each size of stacks that it has used. */
struct cpu_fibers {
  struct cpu_fibers *next; /* next one of the same worker */
  size_t stack;            /* bytes of each stack: STACK_LEAST times a power of two */
  struct slab *slabs;
  struct fiber *spare;
  struct warp *warps;
  uint32_t count, warp_count;

  /* the running block */
  const rill_cpu_kernel *kernel;
  const rill_cpu_block *block;
  uint32_t started, threads;
  uint32_t index[3]; /* index of the next thread to start */
  uint32_t live;     /* threads that have not ended, including those that have not started */
  struct line ready;
  struct line barrier;
  uint32_t arrived, said_true; /* threads at the barrier, and how many of them passed true */
  uint32_t last_count;         /* result of the last barrier */
  bool given_up;
  struct fiber *current;
  struct context *left; /* the context that was left, for a fiber that starts */
  struct context worker;
};

/* The fibers that this thread runs.  A barrier has no argument that could pass them. */
static _Thread_local struct cpu_fibers *running __attribute__((tls_model("initial-exec")));

/* ---- stacks ---- */

static void body(void);

static struct fiber *fiber_in(struct slab *slab, uint32_t i) {
  char *const end = (char *)slab + (i + 1) * slab->slot - (size_t)(i % COLOURS) * COLOUR_BYTES;
  return (struct fiber *)(void *)(end - (sizeof(struct fiber) + 63) / 64 * 64);
}

/* Makes an overflow of the stack above fault immediately.  A guard is only a diagnostic: if there are too many
 * mappings, which older kernels need for guards, the stack works without it. */
static void guard(char *page) {
  if (madvise(page, GUARD_BYTES, MADV_GUARD_INSTALL) != 0) (void)mprotect(page, GUARD_BYTES, PROT_NONE);
}

static bool add_stacks(struct cpu_fibers *fibers, uint32_t count) {
  const size_t slot_bytes = HEAD_BYTES + GUARD_BYTES + fibers->stack;
  void *memory = mmap(NULL, count * slot_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  (void)madvise(memory, count * slot_bytes, MADV_NOHUGEPAGE); /* few pages of each stack are ever touched */
  struct slab *slab = memory;
  slab->next = fibers->slabs;
  slab->slot = slot_bytes;
  slab->count = count;
  fibers->slabs = slab;
  for (uint32_t i = count; i-- > 0;) {
    char *const slot = (char *)memory + i * slot_bytes;
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

static bool add_warps(struct cpu_fibers *fibers, uint32_t count) {
  struct warp *warps = realloc(fibers->warps, count * sizeof *warps);
  if (warps == NULL) return false;
  fibers->warps = warps;
  fibers->warp_count = count;
  return true;
}

/* Lets leak checkers find the fibers: they do not scan the mapped memory in which a worker has its list. */
static _Thread_local struct cpu_fibers *volatile all;

struct cpu_fibers *rill__cpu_fibers_for(struct cpu_fibers **own, uint32_t threads, size_t stack) {
  const uint32_t warps = (threads + CPU_WARP_SIZE - 1) / CPU_WARP_SIZE;
  size_t bytes = STACK_LEAST;
  while (bytes - OTHER_BYTES < stack) bytes *= 2;
  struct cpu_fibers *fibers = *own;
  while (fibers != NULL && fibers->stack != bytes) fibers = fibers->next;
  if (fibers == NULL) {
    fibers = calloc(1, sizeof *fibers);
    if (fibers == NULL) return NULL;
    fibers->stack = bytes;
    fibers->next = *own;
    all = *own = fibers;
  }
  if (fibers->warp_count < warps && !add_warps(fibers, warps)) return NULL;
  if (fibers->count < threads && !add_stacks(fibers, threads - fibers->count)) return NULL;
  return fibers;
}

static void free_one(struct cpu_fibers *fibers) {
  for (struct slab *slab = fibers->slabs; slab != NULL;) {
    struct slab *next = slab->next;
    for (uint32_t i = 0; i < slab->count; i++) fiber_end(&fiber_in(slab, i)->context);
    (void)munmap(slab, slab->count * slab->slot);
    slab = next;
  }
  free(fibers->warps);
  free(fibers);
}

void rill__cpu_fibers_free(struct cpu_fibers **own, size_t above) {
  for (struct cpu_fibers **link = own; *link != NULL;) {
    struct cpu_fibers *const fibers = *link;
    if (fibers->stack > above || fibers->given_up) {
      *link = fibers->next;
      free_one(fibers);
    } else {
      link = &fibers->next;
    }
  }
  all = *own;
}

void rill__cpu_fibers_trim(struct cpu_fibers **own) { rill__cpu_fibers_free(own, STACK_LEAST); }

bool rill__cpu_fibers_are_large(const struct cpu_fibers *fibers) {
  while (fibers != NULL && fibers->stack == STACK_LEAST) fibers = fibers->next;
  return fibers != NULL;
}

bool rill__cpu_fibers_guard(const struct cpu_fibers *fibers, uintptr_t address) {
  for (; fibers != NULL; fibers = fibers->next) {
    for (const struct slab *slab = fibers->slabs; slab != NULL; slab = slab->next) {
      const uintptr_t offset = address - (uintptr_t)slab;
      if (address < (uintptr_t)slab || offset >= slab->count * slab->slot) continue;
      return offset % slab->slot >= HEAD_BYTES && offset % slab->slot < HEAD_BYTES + GUARD_BYTES;
    }
  }
  return false;
}

/* Includes the guard of the calling thread's stack, because an overflow is reported as a different fault. */
bool rill__cpu_fibers_own(uintptr_t address) {
  const struct cpu_fibers *const fibers = running;
  const uintptr_t here = (uintptr_t)fibers->current;
  if (address - (uintptr_t)fibers->warps < fibers->warp_count * sizeof *fibers->warps) return true;
  for (const struct slab *slab = fibers->slabs; slab != NULL; slab = slab->next) {
    const uintptr_t first = (uintptr_t)slab, bytes = slab->count * slab->slot;
    if (here - first < bytes && address - first < bytes)
      return (here - first) / slab->slot == (address - first) / slab->slot;
  }
  return false;
}

/* ---- queues of fibers ---- */

static void append_fiber(struct line *line, struct fiber *fiber) {
  fiber->next = NULL;
  if (line->first == NULL) {
    line->first = fiber;
  } else {
    line->last->next = fiber;
  }
  line->last = fiber;
}

/* Moves all of `from` to the end of `to`. */
static void append_line(struct line *to, struct line *from) {
  if (to->first == NULL) {
    to->first = from->first;
  } else {
    to->last->next = from->first;
  }
  to->last = from->last;
  from->first = NULL;
}

static struct fiber *take_ready_fiber(struct cpu_fibers *fibers) {
  struct fiber *fiber = fibers->ready.first;
  if (fiber != NULL) fibers->ready.first = fiber->next;
  return fiber;
}

static struct fiber *take_spare(struct cpu_fibers *fibers) {
  struct fiber *fiber = fibers->spare;
  fibers->spare = fiber->next;
  return fiber;
}

/* Makes the fibers at the barrier ready if all the threads that it waits for have arrived. */
static void complete_barrier(struct cpu_fibers *fibers) {
  if (fibers->arrived == 0 || fibers->arrived < fibers->live) return;
  fibers->last_count = fibers->said_true;
  fibers->arrived = fibers->said_true = 0;
  append_line(&fibers->ready, &fibers->barrier);
}

static void close_exchange(struct cpu_fibers *fibers, struct warp *warp, uint32_t i) {
  warp->open &= ~(1u << i);
  append_line(&fibers->ready, &warp->exchanges[i].line);
}

/* Makes the fibers in the exchange ready if all the lanes that it waits for have arrived. */
static void complete_exchange(struct cpu_fibers *fibers, struct warp *warp, uint32_t i) {
  const struct exchange *const exchange = &warp->exchanges[i];
  if (exchange->place == NULL && (exchange->mask & warp->live & ~exchange->readers) == 0) {
    close_exchange(fibers, warp, i);
  }
}

/* Ends the lane's reading of the exchange that it took part in last. */
static void leave_exchange(struct warp *warp, uint32_t lane) {
  const uint32_t i = warp->read[lane];
  if (i == NONE) return;
  warp->read[lane] = NONE;
  warp->exchanges[i].readers &= ~(1u << lane);
  if (warp->exchanges[i].readers == 0) warp->used &= ~(1u << i);
}

/* Completes, in all warps, the queries of lanes for the active lanes.  Called when nothing else can run.  Only the
 * queries at the lowest place in the code are completed, because their lanes may still reach the other places. */
static void answer_active(struct cpu_fibers *fibers) {
  const uint32_t warps = (fibers->threads + CPU_WARP_SIZE - 1) / CPU_WARP_SIZE;
  const void *first = NULL;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t w = 0; w < warps; w++) {
      struct warp *const warp = &fibers->warps[w];
      for (uint32_t left = warp->open; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const void *const place = warp->exchanges[i].place;
        if (place == NULL) continue;
        if (pass == 0 && (first == NULL || (uintptr_t)place < (uintptr_t)first)) first = place;
        if (pass == 1 && place == first) close_exchange(fibers, warp, i);
      }
    }
  }
}

/* Returns the fiber to run next, or NULL if a thread has to start first or none can run. */
static struct fiber *next_fiber(struct cpu_fibers *fibers) {
  if (fibers->ready.first == NULL && fibers->started == fibers->threads) answer_active(fibers);
  return take_ready_fiber(fibers);
}

/* ---- threads ---- */

static void switch_to(struct cpu_fibers *fibers, struct context *from, struct fiber *to) {
  fibers->current = to;
  fibers->left = from;
  fiber_switch(from, &to->context);
}

static void begin_warp(struct cpu_fibers *fibers, uint32_t first) {
  struct warp *warp = &fibers->warps[first / CPU_WARP_SIZE];
  const uint32_t left = fibers->threads - first;
  warp->live = left < CPU_WARP_SIZE ? (1u << left) - 1 : UINT32_MAX;
  warp->used = warp->open = 0;
  memset(warp->read, NONE, sizeof warp->read);
}

/* Runs the next thread that has not started. */
static void run_thread(struct cpu_fibers *fibers, struct fiber *me) {
  const uint32_t *const size = fibers->block->grid->block;
  uint32_t *const next = fibers->index;
  const uint32_t index[3] = { next[0], next[1], next[2] };
  me->thread = fibers->started++;
  if (me->thread % CPU_WARP_SIZE == 0) begin_warp(fibers, me->thread);
  if (++next[0] == size[0]) {
    next[0] = 0;
    if (++next[1] == size[1]) {
      next[1] = 0;
      next[2]++;
    }
  }
  fibers->kernel->run_thread(fibers->block, index);

  struct warp *const warp = &fibers->warps[me->thread / CPU_WARP_SIZE];
  const uint32_t lane = me->thread % CPU_WARP_SIZE;
  fibers->live--;
  warp->live &= ~(1u << lane);
  leave_exchange(warp, lane);
  for (uint32_t left = warp->open; left != 0; left &= left - 1) {
    complete_exchange(fibers, warp, (uint32_t)__builtin_ctz(left));
  }
  complete_barrier(fibers);
}

/* Runs threads of a block, then becomes spare until it is switched to again: the loop of every fiber. */
static void body(void) {
  struct cpu_fibers *const fibers = running;
  struct fiber *const me = fibers->current;
  fiber_begin(fibers->left);
  for (;;) {
    while (fibers->ready.first == NULL && fibers->started < fibers->threads) run_thread(fibers, me);
    struct fiber *const next = next_fiber(fibers);
    me->next = fibers->spare;
    fibers->spare = me;
    if (next == NULL) {
      fiber_switch(&me->context, &fibers->worker); /* all threads have ended or are deadlocked */
    } else {
      switch_to(fibers, &me->context, next);
    }
  }
}

/* Runs other fibers until the caller, which is queued, is ready and its turn comes. */
static void wait_in_queue(struct cpu_fibers *fibers, struct fiber *me) {
#if RILL_CHECKS
  RILL_ASSERT(fibers->arrived == 0 || fibers->arrived < fibers->live,
              "a queue never holds all the threads that it waits for");
  const struct warp *const warp = &fibers->warps[me->thread / CPU_WARP_SIZE];
  for (uint32_t left = warp->open; left != 0; left &= left - 1) {
    const struct exchange *const exchange = &warp->exchanges[__builtin_ctz(left)];
    RILL_ASSERT(exchange->place != NULL || (exchange->mask & warp->live & ~exchange->readers) != 0,
                "a queue never holds all the threads that it waits for");
  }
#endif
  struct fiber *next = next_fiber(fibers);
  if (next == me) return;
  if (next == NULL && fibers->started < fibers->threads) next = take_spare(fibers);
  if (next == NULL) {
    fiber_switch(&me->context, &fibers->worker); /* deadlock: never returns */
  } else {
    switch_to(fibers, &me->context, next);
  }
}

struct cpu_fibers_end rill__cpu_fibers_run(struct cpu_fibers *fibers, const rill_cpu_kernel *kernel,
                                           const rill_cpu_block *block) {
  const uint32_t *const size = block->grid->block;
  running = fibers;
  fibers->kernel = kernel;
  fibers->block = block;
  fibers->threads = fibers->live = size[0] * size[1] * size[2];
  fibers->started = 0;
  fibers->index[0] = fibers->index[1] = fibers->index[2] = 0;
#ifdef FIBER_TSAN
  fibers->worker.tsan = __tsan_get_current_fiber();
#endif
  switch_to(fibers, &fibers->worker, take_spare(fibers));
  RILL_ASSERT(fibers->given_up || (fibers->started == fibers->threads && fibers->ready.first == NULL),
              "a block is left when all of its threads have started and none is ready");
  RILL_ASSERT(fibers->live > 0 || fibers->arrived == 0, "threads that have ended are in no queue");
  if (fibers->live == 0) return (struct cpu_fibers_end){ .given_up = false };
  struct cpu_fibers_end end = { .given_up = true };
  if (!fibers->given_up) {
    end.at_barrier = fibers->arrived;
    end.in_warp = fibers->live - fibers->arrived;
  }
  fibers->given_up = true;
  return end;
}

_Noreturn void rill__cpu_fibers_abort(void) {
  struct cpu_fibers *const fibers = running;
  fibers->given_up = true;
  fiber_switch(&fibers->current->context, &fibers->worker);
  abort(); /* never reached */
}

/* ---- services ---- */

uint32_t rill__cpu_fibers_barrier_count(uint32_t predicate) {
  struct cpu_fibers *const fibers = running;
  struct fiber *const me = fibers->current;
  fibers->arrived++;
  fibers->said_true += predicate != 0;
  append_fiber(&fibers->barrier, me);
  complete_barrier(fibers);
  wait_in_queue(fibers, me);
  return fibers->last_count; /* valid until the caller reaches another barrier */
}

void rill__cpu_fibers_barrier(void) { (void)rill__cpu_fibers_barrier_count(0); }

/* Returns the warp's open exchange among these lanes or at this place, a new one if there is none. */
static uint32_t find_exchange(struct warp *warp, uint32_t mask, const void *place) {
  for (uint32_t left = warp->open; left != 0; left &= left - 1) {
    const uint32_t i = (uint32_t)__builtin_ctz(left);
    if (warp->exchanges[i].mask == mask && warp->exchanges[i].place == place) return i;
  }
  const uint32_t i = (uint32_t)__builtin_ctz(~warp->used);
  struct exchange *const exchange = &warp->exchanges[i];
  warp->used |= 1u << i;
  warp->open |= 1u << i;
  exchange->mask = mask;
  exchange->place = place;
  exchange->readers = 0;
  exchange->line.first = NULL;
  exchange->values.live = exchange->values.nonzero = 0;
  return i;
}

static const rill_cpu_warp *exchange_at(uint64_t value, uint32_t mask, const void *place) {
  struct cpu_fibers *const fibers = running;
  struct fiber *const me = fibers->current;
  struct warp *const warp = &fibers->warps[me->thread / CPU_WARP_SIZE];
  const uint32_t lane = me->thread % CPU_WARP_SIZE, bit = 1u << lane;
  leave_exchange(warp, lane);
  const uint32_t i = find_exchange(warp, place == NULL ? mask | bit : mask, place);
  struct exchange *const exchange = &warp->exchanges[i];
  warp->read[lane] = (uint8_t)i;
  exchange->readers |= bit;
  exchange->values.values[lane] = value;
  exchange->values.live |= bit;
  if (value != 0) exchange->values.nonzero |= bit;
  append_fiber(&exchange->line, me);
  complete_exchange(fibers, warp, i);
  wait_in_queue(fibers, me);
  return &exchange->values;
}

const rill_cpu_warp *rill__cpu_fibers_exchange(uint64_t value) { return exchange_at(value, UINT32_MAX, NULL); }

const rill_cpu_warp *rill__cpu_fibers_exchange_among(uint64_t value, uint64_t mask) {
  return exchange_at(value, (uint32_t)mask, NULL);
}

uint64_t rill__cpu_fibers_active(const void *place) { return exchange_at(0, UINT32_MAX, place)->live; }

uint32_t rill__cpu_fibers_lane(void) { return running->current->thread % CPU_WARP_SIZE; }
