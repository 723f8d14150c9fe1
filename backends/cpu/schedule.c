#include "backends/cpu/schedule.h"

#include "backends/cpu/workers_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  TICK_MS = 5,
  SLEEPING_TICKS = 2, /* number of consecutive ticks for which a step, or all threads of the process, must be asleep */
  LONGEST_TICKS = 200,
  PACER_STEPS = 64,
  ALL_STEPS = 1000, /* for a thread that wants all work done, while others may still submit */
  KEEP_RANKS = 4,   /* a chosen queue gets a new rank one time in four */
};

bool rill__cpu_scheduled;

/* A waiting host thread; allocated on its stack. */
struct request {
  struct request *next;
  struct cpu_queue *queue; /* wait until it reaches `number`; NULL: wait for `steps` steps */
  uint64_t number, steps;
  _Atomic uint32_t woken;
};

/* A worker; allocated on its stack. */
struct runner {
  struct cpu_worker *worker;
  pid_t thread;
};

static struct {
  struct cpu_lock lock; /* protects the following fields */

  /* state of the generator, and the habits that the seed selects */
  uint64_t random;
  uint32_t early; /* number of submissions out of 256 that are followed by steps */
  uint32_t most;  /* maximum number of these steps */
  bool by_rank;   /* choose the queue with the highest rank; false: choose any */

  struct cpu_queue *ready; /* linked by `next_ready`, last one first */
  struct request *requests;
  struct runner *holder;  /* has the turn; may be NULL */
  uint64_t turn;          /* number of the turn */
  uint32_t idle;          /* workers that sleep until `calls` changes */
  bool starting;          /* a worker is being started */
  bool lost;              /* steps are made without requests */
  uint64_t request_count; /* number of requests by host threads */
  uint32_t pacer_steps;   /* steps requested by the pacer */
  bool pacer_awake;       /* the pacer is awake */
  _Atomic uint32_t calls, pacer_wake;
} schedule;

/* ---- the generator ---- */

static uint64_t draw(void) {
  uint64_t x = schedule.random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Returns a number from 0 to `count` - 1. */
static uint64_t draw_below(uint64_t count) { return draw() % count; }

/* Returns a number other than 0. */
static uint64_t draw_rank(void) { return draw() | 1; }

void rill__cpu_schedule_read(void) {
  const struct rill__settings *const settings = rill__settings();
  if (!settings->schedules) return;
  static const struct {
    uint32_t early, most;
  } profiles[] = { { 0, 0 }, { 0, 0 }, { 32, 2 }, { 128, 4 }, { 256, ALL_STEPS } };
  schedule.random = settings->schedule_seed;
  const uint64_t profile = draw_below(sizeof profiles / sizeof *profiles);
  schedule.early = profiles[profile].early;
  schedule.most = profiles[profile].most;
  schedule.by_rank = draw_below(2) == 0;
  rill__cpu_scheduled = true;
  (void)fprintf(stderr, "rill: RILL_CPU_SCHEDULE=seed:%" PRIu64 "\n", settings->schedule_seed);
}

/* Chooses a ready queue and removes it from the list. */
static struct cpu_queue *choose_queue(void) {
  struct cpu_queue **chosen = &schedule.ready;
  uint64_t count = 0;
  for (struct cpu_queue **link = &schedule.ready; *link != NULL; link = &(*link)->next_ready) {
    count++;
    if (schedule.by_rank ? (*link)->rank > (*chosen)->rank : draw_below(count) == 0) chosen = link;
  }
  struct cpu_queue *const queue = *chosen;
  *chosen = queue->next_ready;
  if (schedule.by_rank && draw_below(KEEP_RANKS) == 0) queue->rank = draw_rank();
  return queue;
}

/* ---- requests; call these functions under the lock ---- */

static bool may_step(void) {
  return schedule.holder == NULL && schedule.ready != NULL &&
         (schedule.requests != NULL || schedule.lost || schedule.pacer_steps > 0);
}

static bool is_answered(const struct request *request) {
  if (request->queue != NULL)
    return cpu_queue_reached(request->queue, request->number) || cpu_is_lost(request->queue->device);
  return request->steps == 0 || (schedule.ready == NULL && schedule.holder == NULL);
}

static void answer(void) {
  for (struct request **link = &schedule.requests; *link != NULL;) {
    struct request *const request = *link;
    if (!is_answered(request)) {
      link = &request->next;
      continue;
    }
    *link = request->next;
    /* After the store the request may no longer exist.  Waking whatever is at its address then is harmless. */
    _Atomic uint32_t *const word = &request->woken;
    atomic_store_explicit(word, 1, memory_order_release);
    rill__cpu_wake_one(word);
  }
}

/* Releases the lock, and calls a worker if a step is to be made. */
static void unlock_schedule(void) {
  bool start = false;
  if (may_step() && schedule.idle > 0) {
    (void)atomic_fetch_add(&schedule.calls, 1);
    rill__cpu_wake_one(&schedule.calls);
  } else if (may_step() && !schedule.starting) {
    schedule.starting = start = true;
  }
  cpu_release(&schedule.lock);
  if (!start || rill__cpu_workers_add()) return;
  cpu_acquire(&schedule.lock);
  schedule.starting = false; /* the pacer tries again */
  cpu_release(&schedule.lock);
}

/* ---- host threads ---- */

/* Lists the request and waits for its answer.  Called under the lock, which it releases.  Returns when the request is
 * answered, or at `until` if that is not 0. */
static void submit_request(struct request *request, uint64_t until) {
  schedule.request_count++;
  schedule.pacer_steps = 0;
  request->next = schedule.requests;
  schedule.requests = request;
  answer();
  unlock_schedule();
  const struct timespec deadline = cpu_timespec(until);
  while (atomic_load_explicit(&request->woken, memory_order_acquire) == 0) {
    rill__cpu_sleep(&request->woken, 0, until != 0 ? &deadline : NULL);
    if (until == 0 || cpu_now() < until) continue;
    cpu_acquire(&schedule.lock);
    struct request **link = &schedule.requests;
    while (*link != NULL && *link != request) link = &(*link)->next;
    const bool there = *link != NULL;
    if (there) *link = request->next;
    cpu_release(&schedule.lock);
    if (there) return; /* otherwise it is being answered */
  }
}

static void request_steps(bool query) {
  if (rill__in_host_call) return;
  struct request request = { .queue = NULL };
  cpu_acquire(&schedule.lock);
  if (draw_below(256) < schedule.early)
    request.steps = schedule.most == ALL_STEPS ? ALL_STEPS : 1 + draw_below(schedule.most);
  if (query && request.steps == 0) request.steps = draw_below(2);
  submit_request(&request, 0);
}

void rill__cpu_schedule_submitted(void) { request_steps(false); }
void rill__cpu_schedule_queried(void) { request_steps(true); }

bool rill__cpu_schedule_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns) {
  const bool forever = ns > UINT64_MAX / 4;
  if (ns == 0) {
    request_steps(true);
  } else {
    struct request request = { .queue = queue, .number = number };
    const uint64_t until = forever ? 0 : cpu_now() + ns;
    cpu_acquire(&schedule.lock);
    submit_request(&request, until);
  }
  return cpu_queue_reached(queue, number);
}

/* ---- workers ---- */

void rill__cpu_schedule_push(struct cpu_queue *queue) {
  cpu_acquire(&schedule.lock);
  RILL_ASSERT(atomic_load(&queue->active), "a queue that is ready has an owner");
  if (queue->rank == 0) queue->rank = draw_rank();
  queue->next_ready = schedule.ready;
  schedule.ready = queue;
  const bool pacer_awake = schedule.pacer_awake;
  schedule.pacer_awake = true;
  if (!pacer_awake) {
    atomic_store(&schedule.pacer_wake, 1);
    rill__cpu_wake_one(&schedule.pacer_wake);
  }
  unlock_schedule();
}

/* Ends a step.  Also called for a step that lost the turn, because it may have completed the work that a thread waits
 * for. */
static void end_step(const struct runner *runner) {
  if (schedule.holder == runner) {
    schedule.holder = NULL;
    if (schedule.pacer_steps > 0) schedule.pacer_steps--;
    for (struct request *request = schedule.requests; request != NULL; request = request->next) {
      if (request->steps > 0) request->steps--;
    }
  }
  answer();
}

_Noreturn void rill__cpu_schedule_serve(struct cpu_worker *worker) {
  struct runner runner = { .worker = worker, .thread = (pid_t)syscall(SYS_gettid) };
  cpu_acquire(&schedule.lock);
  schedule.starting = false;
  for (;;) {
    if (!may_step()) {
      const uint32_t calls = atomic_load(&schedule.calls);
      schedule.idle++;
      cpu_release(&schedule.lock);
      rill__cpu_sleep(&schedule.calls, calls, NULL);
      cpu_acquire(&schedule.lock);
      schedule.idle--;
      continue;
    }
    struct cpu_queue *const queue = choose_queue();
    schedule.holder = &runner;
    schedule.turn++;
    cpu_release(&schedule.lock);
    rill__cpu_queue_step(queue);
    cpu_acquire(&schedule.lock);
    end_step(&runner);
  }
}

/* Takes the turn from the worker that has it. */
static void take_turn(void) {
  schedule.holder = NULL;
  for (struct request *request = schedule.requests; request != NULL; request = request->next) request->steps = 0;
  answer();
}

void rill__cpu_schedule_drop_turn(const struct cpu_worker *worker) {
  cpu_acquire(&schedule.lock);
  worker->queue->job.open = false;
  if (schedule.holder != NULL && schedule.holder->worker == worker) take_turn();
  unlock_schedule();
}

void rill__cpu_schedule_abort(void) {
  cpu_acquire(&schedule.lock);
  schedule.lost = true;
  answer();
  unlock_schedule();
}

/* ---- operations with parts ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

bool rill__cpu_schedule_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts, enum cpu_sharing sharing,
                              void (*run)(struct cpu_op *op, uint64_t first, uint64_t end)) {
  struct cpu_job *const job = &queue->job;
  job->op = op;
  job->run = run;
  job->parts = parts;
  job->first = 0;
  job->stride = 1;
  atomic_store_explicit(&job->taken, 0, memory_order_relaxed);
  if (sharing == CPU_BY_PLACE) {
    cpu_acquire(&schedule.lock);
    job->first = draw_below(parts);
    /* 32-bit numbers only, so that their product fits into 64 bits */
    if (parts <= UINT32_MAX) job->stride = 1 + draw_below(parts);
    cpu_release(&schedule.lock);
    while (common_divisor(job->stride, parts) != 1) job->stride--;
  }
  job->open = true;
  rill__cpu_schedule_push(queue);
  return false;
}

bool rill__cpu_schedule_parts(struct cpu_queue *queue) {
  struct cpu_worker *const self = rill__cpu_worker_self();
  struct cpu_job *const job = &queue->job;
  self->queue = queue;
  self->job = NULL;
  uint64_t taken = atomic_load_explicit(&job->taken, memory_order_relaxed);
  RILL_ASSERT(job->open && taken < job->parts, "an operation that is half run has parts left");
  cpu_acquire(&schedule.lock);
  const uint64_t end = taken + 1 + draw_below(job->parts - taken);
  if (end < job->parts) queue->rank = draw_rank(); /* lets other queues run between the parts */
  cpu_release(&schedule.lock);
  atomic_store_explicit(&job->taken, end, memory_order_relaxed);
  job->open = end < job->parts;
  if (job->stride == 1 && job->first == 0) {
    job->run(job->op, taken, end);
    return !job->open;
  }
  for (; taken < end; taken++) {
    const uint64_t part = (job->first + taken * job->stride % job->parts) % job->parts;
    job->run(job->op, part, part + 1);
  }
  return !job->open;
}

/* ---- the pacer ---- */

/* Returns true if a thread of this process sleeps, and also if its state cannot be read. */
static bool thread_sleeps(const char *number) {
  char path[64], line[512];
  (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", number);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const ssize_t size = read(file, line, sizeof line - 1);
  (void)close(file);
  if (size <= 0) return true;
  line[size] = '\0';
  const char *const name = strrchr(line, ')');
  return name == NULL || name[1] == '\0' || name[2] == 'S';
}

static bool all_threads_sleep(void) {
  const long own = syscall(SYS_gettid);
  DIR *const folder = opendir("/proc/self/task");
  if (folder == NULL) return true;
  bool all = true;
  for (const struct dirent *entry; all && (entry = readdir(folder)) != NULL;) {
    const bool other = entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != own;
    all = !other || thread_sleeps(entry->d_name);
  }
  (void)closedir(folder);
  return all;
}

/* The state that the pacer observed at its last checks. */
struct observed {
  uint64_t turn, request_count;
  uint32_t same, asleep;
};

/* Returns true if the observed state has been unchanged, or asleep, for long enough. */
static bool note_check(struct observed *observed, bool same, bool asleep) {
  if (!same) observed->same = observed->asleep = 0;
  observed->same++;
  observed->asleep = asleep ? observed->asleep + 1 : 0;
  return observed->asleep > SLEEPING_TICKS || observed->same > LONGEST_TICKS;
}

/* Takes the turn from a step that has slept or run for too long.  Called and returns under the lock, which it releases
 * meanwhile. */
static void check_step(struct observed *observed) {
  char thread[24];
  const uint64_t turn = schedule.turn;
  (void)snprintf(thread, sizeof thread, "%ld", (long)schedule.holder->thread);
  cpu_release(&schedule.lock);
  const bool asleep = thread_sleeps(thread);
  cpu_acquire(&schedule.lock);
  if (schedule.holder == NULL || schedule.turn != turn) return;
  const bool stuck = note_check(observed, observed->turn == turn, asleep);
  observed->turn = turn;
  if (stuck) take_turn();
}

static void check_host(struct observed *observed) {
  const uint64_t request_count = schedule.request_count;
  cpu_release(&schedule.lock);
  const bool asleep = all_threads_sleep();
  cpu_acquire(&schedule.lock);
  const bool quiet =
      note_check(observed, observed->request_count == request_count && schedule.request_count == request_count, asleep);
  observed->request_count = request_count;
  if (quiet && schedule.requests == NULL) schedule.pacer_steps = PACER_STEPS;
}

static void *run_pacer(void *unused) {
  (void)unused;
  struct observed step = { 0 }, host = { 0 };
  cpu_acquire(&schedule.lock);
  for (;;) {
    while (schedule.ready == NULL && schedule.holder == NULL) {
      schedule.pacer_awake = false;
      atomic_store(&schedule.pacer_wake, 0);
      unlock_schedule();
      while (atomic_load(&schedule.pacer_wake) == 0) rill__cpu_sleep(&schedule.pacer_wake, 0, NULL);
      cpu_acquire(&schedule.lock);
    }
    unlock_schedule();
    const struct timespec tick = cpu_timespec(UINT64_C(1000000) * TICK_MS);
    (void)nanosleep(&tick, NULL);
    cpu_acquire(&schedule.lock);
    if (schedule.holder != NULL) {
      check_step(&step);
    } else if (schedule.ready != NULL) {
      check_host(&host);
    }
  }
  return NULL;
}

int rill__cpu_schedule_start(void) {
  schedule.starting = true;
  return rill__cpu_thread_start(run_pacer, NULL);
}

/* ---- fork ---- */

void rill__cpu_schedule_reset(void) {
  schedule.ready = NULL;
  schedule.requests = NULL;
  schedule.holder = NULL;
  schedule.idle = schedule.pacer_steps = 0;
  schedule.starting = schedule.lost = schedule.pacer_awake = false;
}
