/* The trace: the observer, the records of calls, and the writing thread (rill/trace.h).
 *
 * The program's threads add small records of their calls here, and of operations in core/timeline/tracks.h.  One thread
 * formats and writes them, and passes the file to the system.  It queries the driver for times, which slows down
 * threads that submit to the same device, so it starts when no call has ended since the last tick, when half of the
 * records are in use, or after LATE_TICKS.  A process that is killed loses the records of that time.
 *
 * Invariants
 * - Records of calls are in two lists.  Threads add to one of them under `calls_lock`.  Only the thread that has
 *   `writing` switches the lists, and writes the other one.
 * - A thread that finds the list full writes the lists itself, so no call is dropped. */
#include "core/timeline/timeline.h"

#include "core/held/held.h"
#include "core/object/error.h"
#include "core/timeline/clock.h"
#include "core/timeline/file.h"
#include "core/timeline/tracks.h"
#include "core/timeline/vendor_ranges.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 16384, CALLS_MANY = CALLS / 2, COUNTED_DEVICES = 64, TICK_NS = 10000000, LATE_TICKS = 10 };

static struct { /* bytes allocated since the trace began minus bytes freed */
  const struct rill__device *device;
  int64_t bytes;
} counts[COUNTED_DEVICES];
static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;
enum { IDLE, CHANGING, RUNNING };
static _Atomic uint32_t state;

/* An observed call, between its two notifications.  Calls nest: a record, for example, may submit held work. */
enum { DEPTH = 8 };
struct begun {
  uint64_t ns;
  struct rill__trace_item *item; /* NULL if there is nothing to time */
};
static _Thread_local struct begun begun[DEPTH] __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t nesting __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t named_in __attribute__((tls_model("initial-exec"))); /* number of a trace */

/* ---- tracks of threads ---- */

void rill__trace_name_process(const struct rill__device *device) {
  char text[RILL__TRACE_NAME_BYTES];
  rill__json_escape(text, sizeof text, device->name);
  rill__trace_file_add("{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}",
                       rill__trace_process(device), text);
}

void rill__trace_name_track(unsigned process, uint64_t track, const char *name) {
  char text[RILL__TRACE_NAME_BYTES];
  rill__json_escape(text, sizeof text, name);
  rill__trace_file_add("{\"ph\":\"M\",\"pid\":%u,\"tid\":%llu,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                       process, (unsigned long long)track, text);
}

/* Returns the calling thread's track. */
static uint64_t thread_track(void) {
  const uint64_t number = rill__self->number, trace = rill__trace_number();
  if (named_in != trace) {
    char name[32];
    named_in = trace;
    (void)snprintf(name, sizeof name, "thread %llu", (unsigned long long)number);
    rill__trace_name_track(RILL__TRACE_HOST, number, name);
  }
  return number;
}

/* ---- calls ---- */

struct call {
  uint64_t begin, end, thread, trace;
  const char *api; /* NULL for a typed launch */
  int32_t status;
  bool waits;
};

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* taken before calls_lock */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct call calls[2][CALLS];
static size_t calls_count;
static uint64_t calls_ended; /* since the process started */
static uint64_t last_end;    /* when the last call of the trace ended */
static unsigned calls_added; /* index of the list that threads add to */

/* Writes to the memory of the lists, so that the threads that add to them have no page faults. */
static void prepare_calls(void) {
  pthread_mutex_lock(&writing);
  pthread_mutex_lock(&calls_lock);
  if (calls_count == 0) memset(calls, 0, sizeof calls);
  last_end = 0;
  pthread_mutex_unlock(&calls_lock);
  pthread_mutex_unlock(&writing);
}

static void write_call(const struct call *call) {
  rill__trace_file_add("{\"ph\":\"X\",\"pid\":%d,\"tid\":%llu,\"ts\":" RILL__US_FORMAT ",\"dur\":" RILL__US_FORMAT
                       ",\"cat\":\"%s\",\"name\":\"%s\",\"args\":{\"status\":%d}}",
                       RILL__TRACE_HOST, (unsigned long long)call->thread, RILL__US(call->begin),
                       RILL__US(call->end - call->begin), call->waits ? "wait" : "call",
                       call->api != NULL ? call->api : "typed launch", (int)call->status);
}

static void write_calls(void) {
  pthread_mutex_lock(&writing);
  pthread_mutex_lock(&calls_lock);
  const struct call *const list = calls[calls_added];
  const size_t count = calls_count;
  calls_added = 1 - calls_added;
  calls_count = 0;
  pthread_mutex_unlock(&calls_lock);
  const uint64_t trace = rill__trace_number();
  for (size_t i = 0; i < count; i++) {
    if (list[i].trace == trace) write_call(&list[i]);
  }
  pthread_mutex_unlock(&writing);
}

/* ---- the thread ---- */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  bool runs, ends, woken;
} writer = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void write_all(bool wait) {
  rill__trace_harvest(wait);
  write_calls();
}

/* Waits for the next tick, or until the thread is needed at once.  Returns false when the trace ends. */
static bool wait_for_tick(bool *needed) {
  struct timespec until;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += TICK_NS;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_mutex_lock(&writer.lock);
  while (!writer.ends && !writer.woken) {
    if (pthread_cond_timedwait(&writer.changed, &writer.lock, &until) == ETIMEDOUT) break;
  }
  *needed = writer.woken;
  writer.woken = false;
  const bool continues = !writer.ends;
  pthread_mutex_unlock(&writer.lock);
  return continues;
}

static uint64_t count_ended_calls(void) {
  pthread_mutex_lock(&calls_lock);
  const uint64_t count = calls_ended;
  pthread_mutex_unlock(&calls_lock);
  return count;
}

static void *write_trace(void *unused) {
  uint64_t ended = 0;
  unsigned late = 0;
  bool needed = false;
  if (rill__thread_attach() == NULL) return unused; /* then the thread that ends the trace writes it */
  rill__errors_suspend();
  while (wait_for_tick(&needed)) {
    const uint64_t before = ended;
    ended = count_ended_calls();
    late++;
    if (needed || ended == before || late >= LATE_TICKS) {
      write_all(false);
      late = 0;
    }
    rill__trace_clocks_renew();
    rill__trace_file_flush();
  }
  rill__errors_resume();
  return unused;
}

static rill_status start_writer(void) {
  pthread_condattr_t monotonic;
  sigset_t all, before;
  (void)pthread_condattr_init(&monotonic);
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&writer.changed, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
  writer.ends = writer.woken = false;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are left to the program's own threads */
  writer.runs = pthread_create(&writer.thread, NULL, write_trace, NULL) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  RILL_REQUIRE(writer.runs, RILL_ERROR_OUT_OF_MEMORY, "the thread that writes the trace could not be created");
  return RILL_OK;
}

static void stop_writer(void) {
  if (!writer.runs) return;
  pthread_mutex_lock(&writer.lock);
  writer.ends = true;
  pthread_cond_signal(&writer.changed);
  pthread_mutex_unlock(&writer.lock);
  (void)pthread_join(writer.thread, NULL);
  writer.runs = false;
}

static void wake_writer(void) {
  pthread_mutex_lock(&writer.lock);
  if (!writer.woken) {
    writer.woken = true;
    pthread_cond_signal(&writer.changed);
  }
  pthread_mutex_unlock(&writer.lock);
}

static void add_call(const struct call *call) {
  pthread_mutex_lock(&calls_lock);
  while (calls_count == CALLS) {
    pthread_mutex_unlock(&calls_lock);
    write_calls();
    pthread_mutex_lock(&calls_lock);
  }
  calls[calls_added][calls_count++] = *call;
  calls_ended++;
  last_end = call->end;
  const bool many = calls_count == CALLS_MANY;
  pthread_mutex_unlock(&calls_lock);
  if (many) wake_writer();
}

/* ---- observing ---- */

static rill_status begin_observed(struct rill__observed *what) {
  if (nesting < DEPTH) {
    const bool operation = what->stream != NULL && what->kind <= RILL__OBSERVED_UPLOAD;
    const bool timed = operation && what->kind != RILL__OBSERVED_RECORD;
    struct begun mine = { 0, NULL };
    rill__errors_suspend();
    const uint64_t base = timed ? rill__trace_base(what->device) : 0; /* the first one takes long */
    mine.ns = rill__trace_now();
    if (operation) mine.item = rill__trace_begin(what, base, mine.ns);
    rill__errors_resume();
    begun[nesting] = mine;
  }
  nesting++;
  if (what->kind == RILL__OBSERVED_LAUNCH && what->launch->label != NULL) rill__vendor_range_push(what->launch->label);
  return RILL_OK;
}

static bool is_wait_of_host(const struct rill__observed *what) {
  return what->kind == RILL__OBSERVED_STREAM_WAIT || what->kind == RILL__OBSERVED_EVENT_WAIT ||
         what->kind == RILL__OBSERVED_DEVICE_WAIT;
}

static void count_memory(const struct rill__observed *what) {
  const int64_t size = (int64_t)what->memory.size;
  int64_t bytes = 0;
  bool is_first = false;
  pthread_mutex_lock(&counts_lock);
  for (int i = 0; i < COUNTED_DEVICES; i++) {
    if (counts[i].device != NULL && counts[i].device != what->device) continue;
    is_first = counts[i].device == NULL;
    counts[i].device = what->device;
    counts[i].bytes += what->kind == RILL__OBSERVED_ALLOC ? size : -size;
    bytes = counts[i].bytes;
    break;
  }
  pthread_mutex_unlock(&counts_lock);
  if (is_first) rill__trace_name_process(what->device);
  rill__trace_file_add("{\"ph\":\"C\",\"pid\":%u,\"tid\":0,\"ts\":" RILL__US_FORMAT
                       ",\"name\":\"memory\",\"args\":{\"bytes\":%lld}}",
                       rill__trace_process(what->device), RILL__US(rill__trace_now()), (long long)bytes);
}

static rill_status end_observed(struct rill__observed *what, rill_status status) {
  if (what->kind == RILL__OBSERVED_LAUNCH && what->launch->label != NULL) rill__vendor_range_pop();
  if (--nesting >= DEPTH) return status;
  const struct begun mine = begun[nesting];
  const uint64_t now = rill__trace_now();
  rill__errors_suspend();
  add_call(&(struct call){ .begin = mine.ns < now ? mine.ns : now, /* it may have begun before this trace */
                           .end = now,
                           .thread = thread_track(),
                           .trace = rill__trace_number(),
                           .api = rill__self->api,
                           .status = (int32_t)status,
                           .waits = is_wait_of_host(what) });
  if (mine.item != NULL) rill__trace_end(what, mine.item, status);
  if ((what->kind == RILL__OBSERVED_ALLOC || what->kind == RILL__OBSERVED_FREE) && status == RILL_OK)
    count_memory(what);
  if (rill__trace_has_many()) wake_writer();
  rill__errors_resume();
  return status;
}

static const struct rill__observer timeline_observer = { begin_observed, end_observed };

/* ---- notes ---- */

void rill__timeline_note_begin(struct rill__stream *stream, const rill_stream_note *note) {
  if (atomic_load_explicit(&state, memory_order_relaxed) != RUNNING) return;
  rill__errors_suspend();
  rill__trace_note_begin(stream, note);
  rill__errors_resume();
}

void rill__timeline_note_end(struct rill__stream *stream) {
  if (rill__trace_number() == 0) return; /* there was no trace, so no note is open */
  rill__errors_suspend();
  rill__trace_note_end(stream);
  rill__errors_resume();
}

void rill__timeline_note_ran(struct rill__stream *stream, const rill_stream_note *note, uint64_t begin_ns,
                             uint64_t end_ns) {
  if (atomic_load_explicit(&state, memory_order_relaxed) != RUNNING) return;
  rill__errors_suspend();
  rill__trace_note_ran(stream, note, rill__trace_time(begin_ns), rill__trace_time(end_ns));
  rill__errors_resume();
}

/* ---- the trace ---- */

static void end_with_process(void) {
  if (atomic_load(&state) == RUNNING) (void)rill__timeline_stop(false);
}

void rill__timeline_handle_exit(void) { (void)atexit(end_with_process); }

rill_status rill__timeline_start(const char *path, uint64_t limit, bool nodes) {
  static _Atomic bool ends_with_process;
  uint32_t idle = IDLE;
  RILL_REQUIRE(atomic_compare_exchange_strong(&state, &idle, CHANGING), RILL_ERROR_INVALID_ARGUMENT,
               "a trace is already running" RILL_HINT "call rill_trace_stop first");
  rill_status status = rill__trace_file_open(path, limit);
  if (status != RILL_OK) {
    atomic_store(&state, IDLE);
    return status;
  }
  if (!atomic_exchange(&ends_with_process, true)) (void)atexit(end_with_process);
  rill__trace_now_is_zero();
  pthread_mutex_lock(&counts_lock); /* calls that started during the last trace may still end */
  memset(counts, 0, sizeof counts);
  pthread_mutex_unlock(&counts_lock);
  rill__trace_renew();
  prepare_calls();
  status = start_writer();
  if (status != RILL_OK) {
    (void)rill__trace_file_close(0, 0);
    atomic_store(&state, IDLE);
    return status;
  }
  atomic_store(&rill__graphs_in_steps, nodes);
  rill__observe(RILL__OBSERVER_TIMELINE, &timeline_observer);
  atomic_store(&state, RUNNING);
  return RILL_OK;
}

rill_status rill__timeline_stop(bool wait) {
  uint32_t running = RUNNING;
  RILL_REQUIRE(atomic_compare_exchange_strong(&state, &running, CHANGING), RILL_ERROR_INVALID_ARGUMENT,
               "no trace is running" RILL_HINT "call rill_trace_start first");
  rill__observe(RILL__OBSERVER_TIMELINE, NULL);
  atomic_store(&rill__graphs_in_steps, false);
  stop_writer();
  rill__errors_suspend();
  write_all(wait);
  const uint64_t unfinished = rill__trace_forget();
  rill__errors_resume();
  pthread_mutex_lock(&calls_lock); /* calls of other threads may still end */
  const uint64_t end = last_end;
  pthread_mutex_unlock(&calls_lock);
  const bool complete = rill__trace_file_close(unfinished, end);
  atomic_store(&state, IDLE);
  RILL_REQUIRE(complete, RILL_ERROR_BACKEND,
               "the timeline could not be written completely" RILL_HINT "is the disk full?");
  return RILL_OK;
}

/* ---- ranges ---- */

void rill__timeline_range_push(const char *name) {
  rill__vendor_range_push(name);
  if (atomic_load_explicit(&state, memory_order_relaxed) != RUNNING) return;
  char text[RILL__TRACE_NAME_BYTES];
  rill__json_escape(text, sizeof text, name);
  rill__trace_file_add("{\"ph\":\"B\",\"pid\":%d,\"tid\":%llu,\"ts\":" RILL__US_FORMAT
                       ",\"cat\":\"range\",\"name\":\"%s\"}",
                       RILL__TRACE_HOST, (unsigned long long)thread_track(), RILL__US(rill__trace_now()), text);
}

void rill__timeline_range_pop(void) {
  rill__vendor_range_pop();
  if (atomic_load_explicit(&state, memory_order_relaxed) != RUNNING) return;
  rill__trace_file_add("{\"ph\":\"E\",\"pid\":%d,\"tid\":%llu,\"ts\":" RILL__US_FORMAT "}", RILL__TRACE_HOST,
                       (unsigned long long)thread_track(), RILL__US(rill__trace_now()));
}

void rill__timeline_after_fork(void) {
  (void)pthread_mutex_init(&counts_lock, NULL); /* other threads may have held these */
  (void)pthread_mutex_init(&writing, NULL);
  (void)pthread_mutex_init(&calls_lock, NULL);
  (void)pthread_mutex_init(&writer.lock, NULL);
  writer.runs = false;
  calls_count = 0;
  rill__trace_tracks_after_fork();
  rill__observe(RILL__OBSERVER_TIMELINE, NULL);
  atomic_store(&rill__graphs_in_steps, false);
  rill__trace_file_abandon();
  rill__trace_clock_after_fork();
  atomic_store(&state, IDLE);
}
