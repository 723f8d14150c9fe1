/* The trace.
 *
 * Around each operation that a stream's driver gets stand two timing events.  The operation waits in its stream's track
 * until the second one is complete, and is then written.
 *
 * Invariants
 * - `tracks_lock` guards the tracks and is never held across a call of a backend: a driver's answer may be a fault,
 * which makes core submit other work.
 * - Only the thread that has set a track's `harvested` looks at the events of the operations in it and takes them out;
 *   all threads add at the end.
 * - A track's operations are complete in their order, since they are of one stream. */
#include "core/timeline/timeline.h"

#include "core/held/held.h"
#include "core/object/error.h"
#include "core/sync/submit.h"
#include "core/timeline/clock.h"
#include "core/timeline/file.h"
#include "core/timeline/vendor_ranges.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  BUCKETS = 256,
  KEPT_TRACKS = 1024,   /* more than these are forgotten when they have nothing to time */
  MOST_PENDING = 16384, /* operations; what comes beyond is dropped */
  HARVEST_FROM = 4096,  /* pending operations from which submissions write some, not only the ends of waits */
  HARVEST_AT_ONCE = 8,  /* operations that one submission writes, at most */
  NAME_BYTES = 128,
  COUNTED_DEVICES = 64,
  ARROWS = 4096
};

struct timed {
  struct timed *next;
  struct rill__event *start, *end; /* start NULL: a point */
  uint64_t base;
  uint64_t trace; /* its number: what comes late is not written to the next one */
  uint64_t arrow; /* a record: that begins here; a wait: that ends here; 0: none */
  char text[];    /* the rest of its JSON object: category, name and arguments; "" of a record */
};

struct track {
  struct track *next;
  uint64_t number; /* the stream's */
  unsigned process;
  bool harvested;
  uint64_t begin, end; /* of what was written last */
  struct timed *first, **last;
};

static pthread_mutex_t tracks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct track *tracks[BUCKETS];
static uint32_t track_count, pending;
static struct { /* the memory that was allocated since the trace began, less what was freed */
  const struct rill__device *device;
  int64_t bytes;
} counts[COUNTED_DEVICES];
enum { IDLE, CHANGING, RUNNING };
static _Atomic uint32_t state;

/* An observed call, from before it to after it; calls nest, as a wait that hands over held work does. */
enum { DEPTH = 8 };
struct begun {
  uint64_t ns;
  struct timed *timed; /* NULL: nothing to time */
};
static _Thread_local struct begun begun[DEPTH] __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t nesting __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t introduced_in __attribute__((tls_model("initial-exec"))); /* the number of a trace */
static _Atomic uint64_t trace_number;                                                   /* from 1 on */
static uint64_t last_arrow;
static struct arrow {
  const struct rill__event *event;
  uint64_t number;
} arrows[ARROWS];

enum { HOST = 0 };

static double us(uint64_t ns) { return (double)ns * 1e-3; }

static unsigned process_of(const struct rill__device *device) {
  return 1000 * device->backend->id + (unsigned)device->info.ordinal;
}

/* ---- tracks ---- */

static void introduce(unsigned process, const char *process_name, uint64_t track, const char *name) {
  char text[NAME_BYTES];
  rill__json_escape(text, sizeof text, process_name);
  rill__trace_file_add("{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}",
                       process, text);
  rill__json_escape(text, sizeof text, name);
  rill__trace_file_add("{\"ph\":\"M\",\"pid\":%u,\"tid\":%llu,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                       process, (unsigned long long)track, text);
}

/* The calling thread's track. */
static uint64_t thread_track(void) {
  const uint64_t number = rill__self->number, trace = atomic_load(&trace_number);
  if (introduced_in != trace) {
    char name[32];
    introduced_in = trace;
    (void)snprintf(name, sizeof name, "thread %llu", (unsigned long long)number);
    introduce(HOST, "host", number, name);
  }
  return number;
}

static struct track **find_track(uint64_t number) {
  struct track **link = &tracks[number % BUCKETS];
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  return link;
}

/* Adds an operation at the end of its stream's track.  False if memory ran out, or too much is pending. */
static bool add_to_track(const struct rill__stream *stream, struct timed *timed) {
  pthread_mutex_lock(&tracks_lock);
  struct track **link = find_track(stream->number), *track = *link;
  const bool made = track == NULL;
  if (made) {
    track = calloc(1, sizeof *track);
    if (track != NULL) {
      *track = (struct track){ .number = stream->number, .process = process_of(stream->base.device) };
      track->last = &track->first;
      *link = track;
      track_count++;
    }
  }
  const bool added = track != NULL && pending < MOST_PENDING;
  if (added) {
    timed->next = NULL;
    *track->last = timed;
    track->last = &timed->next;
    pending++;
  }
  pthread_mutex_unlock(&tracks_lock);
  if (made && track != NULL) {
    introduce(process_of(stream->base.device), stream->base.device->name, stream->number,
              rill__name_of(&stream->base).text);
  }
  return added;
}

static void free_timed(struct timed *timed) {
  if (timed == NULL) return;
  rill__trace_event_put(timed->start);
  rill__trace_event_put(timed->end);
  free(timed);
}

/* ---- writing what is complete; under no lock ---- */

static void write_arrow(const struct track *track, char end, uint64_t arrow, uint64_t ns) {
  rill__trace_file_add(
      "{\"ph\":\"%c\",\"bp\":\"e\",\"cat\":\"order\",\"name\":\"event\",\"id\":%llu,\"pid\":%u,\"tid\":%llu,"
      "\"ts\":%.3f}",
      end, (unsigned long long)arrow, track->process, (unsigned long long)track->number, us(ns));
}

/* A viewer ties an arrow to the bar that its end lies in, so one from a record leaves the bar before it. */
static void write_point(const struct track *track, const struct timed *point) {
  if (track->end != 0) write_arrow(track, 's', point->arrow, track->begin + (track->end - track->begin) / 2);
}

/* Times are known to some tenths of a microsecond, so bars might overlap by as much. */
static void write_bar(struct track *track, const struct timed *timed, uint64_t begin, uint64_t end) {
  track->begin = begin > track->end ? begin : track->end;
  track->end = end > track->begin ? end : track->begin;
  rill__trace_file_add("{\"ph\":\"X\",\"pid\":%u,\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f,%s}", track->process,
                       (unsigned long long)track->number, us(track->begin), us(track->end - track->begin), timed->text);
  if (timed->arrow != 0) write_arrow(track, 'f', timed->arrow, track->begin + (track->end - track->begin) / 2);
}

static void write_timed(struct track *track, const struct timed *timed) {
  uint64_t begin = 0, end = 0;
  if (timed->trace != atomic_load(&trace_number)) return;
  if (timed->text[0] == '\0') {
    write_point(track, timed);
  } else if (rill__trace_time_of(timed->start, timed->base, &begin) &&
             rill__trace_time_of(timed->end, timed->base, &end)) {
    write_bar(track, timed, begin, end);
  } else {
    rill__trace_file_drop();
  }
}

/* Whether the operation is complete, or never will be. */
static bool has_ended(struct timed *timed, bool wait) {
  bool ready = true;
  if (timed->end == NULL) return true;
  const rill_status status = wait ? RILL_DISPATCH(timed->end, event, synchronize, timed->end, RILL__FOREVER)
                                  : RILL_DISPATCH(timed->end, event, is_ready, timed->end, &ready);
  return status != RILL_OK || ready;
}

/* Takes the track to look at; NULL if another thread has it. */
static struct track *take_track(struct track *track) {
  if (track == NULL || track->harvested) return NULL;
  track->harvested = true;
  return track;
}

static void leave_track(struct track *track) {
  pthread_mutex_lock(&tracks_lock);
  track->harvested = false;
  if (track->first == NULL && track_count > KEPT_TRACKS) {
    *find_track(track->number) = track->next;
    track_count--;
    free(track);
  }
  pthread_mutex_unlock(&tracks_lock);
}

/* Writes up to `most` operations of a track that the caller has taken. */
static void harvest_track(struct track *track, uint32_t most, bool wait) {
  rill__errors_suspend();
  for (uint32_t i = 0; i < most; i++) {
    pthread_mutex_lock(&tracks_lock);
    struct timed *first = track->first;
    pthread_mutex_unlock(&tracks_lock);
    if (first == NULL || !has_ended(first, wait)) break;
    write_timed(track, first);
    pthread_mutex_lock(&tracks_lock);
    track->first = first->next;
    if (track->first == NULL) track->last = &track->first;
    RILL_ASSERT(track->harvested && pending > 0, "one thread takes out what was counted when it was added");
    pending--;
    pthread_mutex_unlock(&tracks_lock);
    free_timed(first);
  }
  rill__errors_resume();
  leave_track(track);
}

static void harvest_stream(const struct rill__stream *stream) {
  pthread_mutex_lock(&tracks_lock);
  struct track *track = pending >= HARVEST_FROM ? take_track(*find_track(stream->number)) : NULL;
  pthread_mutex_unlock(&tracks_lock);
  if (track != NULL) harvest_track(track, HARVEST_AT_ONCE, false);
}

static void harvest_all(bool wait) {
  for (uint32_t i = 0; i < BUCKETS; i++) {
    uint64_t done = 0; /* tracks of a bucket are visited in the order of their numbers, since they come and go */
    for (;;) {
      struct track *next = NULL;
      pthread_mutex_lock(&tracks_lock);
      for (struct track *t = tracks[i]; t != NULL; t = t->next) {
        if (t->number > done && (next == NULL || t->number < next->number)) next = t;
      }
      if (next != NULL) done = next->number;
      struct track *const taken = take_track(next);
      pthread_mutex_unlock(&tracks_lock);
      if (next == NULL) break;
      if (taken != NULL) {
        harvest_track(taken, UINT32_MAX, wait);
      } else if (wait) { /* another thread has it for a moment */
        done--;
        (void)sched_yield();
      }
    }
  }
}

/* ---- what an operation is called ---- */

static const char *place_name(uint32_t kind) {
  switch (kind) {
    case RILL_MEMORY_DEVICE: return "device";
    case RILL__MEMORY_PEER: return "peer";
    case RILL_MEMORY_MANAGED: return "managed";
    default: return "host";
  }
}

/* Copies through memory that a GPU's driver does not know are copied by the host first. */
static bool is_pageable(struct rill__device *device, const void *p, uint32_t kind) {
  bool known = false;
  if (kind != RILL_MEMORY_UNKNOWN || device->backend->memory->is_known == NULL) return false;
  return RILL_DISPATCH(device, memory, is_known, device, p, &known) == RILL_OK && !known;
}

static void name_launch(const struct rill__launch *launch, char *text, size_t size) {
  char name[NAME_BYTES], label[NAME_BYTES];
  rill__json_escape(name, sizeof name, launch->kernel->name);
  rill__json_escape(label, sizeof label, launch->label != NULL ? launch->label : "");
  (void)snprintf(
      text, size,
      "\"cat\":\"kernel\",\"name\":\"%s\",\"args\":{\"label\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
      "\"shared\":%u",
      name, label, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
      launch->block[2], launch->shared_mem_bytes);
}

static void name_copy(struct rill__device *device, const struct rill__copy_3d *copy, char *text, size_t size) {
  const bool pageable =
      is_pageable(device, copy->dst, copy->dst_kind) || is_pageable(device, copy->src, copy->src_kind);
  (void)snprintf(text, size, "\"cat\":\"copy\",\"name\":\"copy %s to %s\",\"args\":{\"bytes\":%llu,\"pageable\":%s",
                 place_name(copy->src_kind), place_name(copy->dst_kind),
                 (unsigned long long)copy->width * copy->height * copy->depth, pageable ? "true" : "false");
}

static void name_host_call(rill_host_fn fn, char *text, size_t size) {
  Dl_info info;
  void *address = NULL;
  memcpy(&address, &fn, sizeof address);
  const bool named = dladdr(address, &info) != 0 && info.dli_sname != NULL && info.dli_saddr == address;
  char name[NAME_BYTES];
  rill__json_escape(name, sizeof name, named ? info.dli_sname : "host call");
  (void)snprintf(text, size, "\"cat\":\"host call\",\"name\":\"%s\",\"args\":{\"address\":\"%p\"", name, address);
}

static void name_object(const char *category, const char *name, const struct rill__object *object, char *text,
                        size_t size) {
  char label[NAME_BYTES];
  rill__json_escape(label, sizeof label, object->label != NULL ? object->label : "");
  (void)snprintf(text, size, "\"cat\":\"%s\",\"name\":\"%s%s%s\",\"args\":{\"label\":\"%s\"", category, name,
                 label[0] != '\0' ? " " : "", label, label);
}

/* Category, name and the first arguments.  False of what takes no time on a stream. */
static bool name_operation(const struct rill__observed *what, char *text, size_t size) {
  switch (what->kind) {
    case RILL__OBSERVED_LAUNCH: name_launch(what->launch, text, size); return true;
    case RILL__OBSERVED_COPY: name_copy(what->device, &what->copy, text, size); return true;
    case RILL__OBSERVED_FILL:
      (void)snprintf(text, size, "\"cat\":\"fill\",\"name\":\"fill\",\"args\":{\"bytes\":%llu",
                     (unsigned long long)what->fill.width * what->fill.height * what->fill.pattern_size);
      return true;
    case RILL__OBSERVED_PREFETCH:
      (void)snprintf(text, size, "\"cat\":\"copy\",\"name\":\"prefetch\",\"args\":{\"bytes\":%llu",
                     (unsigned long long)what->memory.size);
      return true;
    case RILL__OBSERVED_HOST_CALL: name_host_call(what->host_call.fn, text, size); return true;
    case RILL__OBSERVED_WAIT: name_object("wait", "wait", &what->event.event->base, text, size); return true;
    case RILL__OBSERVED_GRAPH: name_object("graph", "graph", &what->exec->base, text, size); return true;
    case RILL__OBSERVED_UPLOAD: name_object("graph", "upload", &what->exec->base, text, size); return true;
    case RILL__OBSERVED_RECORD: text[0] = '\0'; return true;
    default: return false;
  }
}

/* ---- observing ---- */

static struct timed *begin_timing(const struct rill__observed *what, uint64_t now) {
  enum { TEXT_BYTES = 512 };
  char text[TEXT_BYTES];
  struct rill__stream *const stream = what->stream;
  if (!name_operation(what, text, sizeof text - 64)) return NULL;
  const bool point = text[0] == '\0';
  if (!point) {
    const size_t used = strlen(text);
    (void)snprintf(text + used, sizeof text - used, ",\"submitted\":%.3f%s}", us(now),
                   stream->imported && stream->native <= 1 ? ",\"null_stream\":true" : "");
  }
  struct timed *timed = malloc(sizeof *timed + strlen(text) + 1);
  if (timed == NULL) {
    rill__trace_file_drop();
    return NULL;
  }
  *timed = (struct timed){ .base = point ? 0 : rill__trace_base(what->device), .trace = atomic_load(&trace_number) };
  memcpy(timed->text, text, strlen(text) + 1);
  if (point) return timed;
  timed->start = rill__trace_event_take(what->device);
  timed->end = rill__trace_event_take(what->device);
  if (timed->start != NULL && timed->end != NULL && timed->base != 0 &&
      rill__record_unobserved(stream, timed->start, 0) == RILL_OK) {
    return timed;
  }
  free_timed(timed);
  rill__trace_file_drop();
  return NULL;
}

static rill_status begin_observed(struct rill__observed *what) {
  const uint64_t now = rill__trace_now();
  if (nesting < DEPTH) {
    struct timed *timed = NULL;
    rill__errors_suspend();
    if (what->stream != NULL) timed = begin_timing(what, now);
    rill__errors_resume();
    begun[nesting] = (struct begun){ now, timed };
  }
  nesting++;
  if (what->kind == RILL__OBSERVED_LAUNCH && what->launch->label != NULL) rill__vendor_range_push(what->launch->label);
  return RILL_OK;
}

/* The arrow from the last record of an event to the waits for it; of two events in one place the latter counts. */
static uint64_t arrow_of(const struct rill__observed *what) {
  if (what->kind != RILL__OBSERVED_RECORD && what->kind != RILL__OBSERVED_WAIT) return 0;
  const struct rill__event *const event = what->event.event;
  struct arrow *const arrow = &arrows[(uintptr_t)event / 64 % ARROWS];
  pthread_mutex_lock(&tracks_lock);
  if (what->kind == RILL__OBSERVED_RECORD) *arrow = (struct arrow){ event, ++last_arrow };
  const uint64_t found = arrow->event == event ? arrow->number : 0;
  pthread_mutex_unlock(&tracks_lock);
  return found;
}

static void end_timing(const struct rill__observed *what, struct timed *timed, rill_status status) {
  if (status == RILL_OK) timed->arrow = arrow_of(what);
  const bool point = timed->text[0] == '\0';
  if (status != RILL_OK || (!point && rill__record_unobserved(what->stream, timed->end, 0) != RILL_OK)) {
    free_timed(timed);
  } else if (add_to_track(what->stream, timed)) {
    harvest_stream(what->stream);
  } else {
    free_timed(timed);
    rill__trace_file_drop();
  }
}

static bool is_wait_of_host(const struct rill__observed *what) {
  return what->kind == RILL__OBSERVED_STREAM_WAIT || what->kind == RILL__OBSERVED_EVENT_WAIT ||
         what->kind == RILL__OBSERVED_DEVICE_WAIT;
}

static void write_call(const struct rill__observed *what, uint64_t begin, rill_status status) {
  const char *const api = rill__self->api;
  rill__trace_file_add("{\"ph\":\"X\",\"pid\":%d,\"tid\":%llu,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"%s\","
                       "\"args\":{\"status\":%d}}",
                       HOST, (unsigned long long)thread_track(), us(begin), us(rill__trace_now() - begin),
                       is_wait_of_host(what) ? "wait" : "call", api != NULL ? api : "typed launch", (int)status);
}

static void count_memory(const struct rill__observed *what) {
  const int64_t size = (int64_t)what->memory.size;
  int64_t bytes = 0;
  pthread_mutex_lock(&tracks_lock);
  for (int i = 0; i < COUNTED_DEVICES; i++) {
    if (counts[i].device != NULL && counts[i].device != what->device) continue;
    counts[i].device = what->device;
    counts[i].bytes += what->kind == RILL__OBSERVED_ALLOC ? size : -size;
    bytes = counts[i].bytes;
    break;
  }
  pthread_mutex_unlock(&tracks_lock);
  rill__trace_file_add("{\"ph\":\"C\",\"pid\":%u,\"tid\":0,\"ts\":%.3f,\"name\":\"memory\",\"args\":{\"bytes\":%lld}}",
                       process_of(what->device), us(rill__trace_now()), (long long)bytes);
}

static rill_status end_observed(struct rill__observed *what, rill_status status) {
  if (what->kind == RILL__OBSERVED_LAUNCH && what->launch->label != NULL) rill__vendor_range_pop();
  if (--nesting >= DEPTH) return status;
  const struct begun mine = begun[nesting];
  rill__errors_suspend();
  write_call(what, mine.ns, status);
  if (mine.timed != NULL) end_timing(what, mine.timed, status);
  if ((what->kind == RILL__OBSERVED_ALLOC || what->kind == RILL__OBSERVED_FREE) && status == RILL_OK)
    count_memory(what);
  if (is_wait_of_host(what)) {
    harvest_all(false);
    rill__trace_file_flush();
  }
  rill__errors_resume();
  return status;
}

static const struct rill__observer timeline_observer = { begin_observed, end_observed };

/* ---- the trace ---- */

static void end_with_process(void) {
  if (atomic_load(&state) == RUNNING) (void)rill__timeline_stop(false);
}

rill_status rill__timeline_start(const char *path, uint64_t limit, bool nodes) {
  static _Atomic bool ends_with_process;
  uint32_t idle = IDLE;
  RILL_REQUIRE(atomic_compare_exchange_strong(&state, &idle, CHANGING), RILL_ERROR_INVALID_ARGUMENT,
               "a trace runs already" RILL_HINT "call rill_trace_stop first");
  const rill_status status = rill__trace_file_open(path, limit);
  if (status != RILL_OK) {
    atomic_store(&state, IDLE);
    return status;
  }
  if (!atomic_exchange(&ends_with_process, true)) (void)atexit(end_with_process);
  rill__trace_now_is_zero();
  pthread_mutex_lock(&tracks_lock); /* calls that the last trace has seen begin may still end */
  memset(counts, 0, sizeof counts);
  memset(arrows, 0, sizeof arrows);
  pthread_mutex_unlock(&tracks_lock);
  atomic_fetch_add(&trace_number, 1);
  atomic_store(&rill__graphs_in_steps, nodes);
  rill__observe(RILL__OBSERVER_TIMELINE, &timeline_observer);
  atomic_store(&state, RUNNING);
  return RILL_OK;
}

/* What is still pending is not timed any more. */
static uint64_t forget_pending(void) {
  uint64_t forgotten = 0;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    for (;;) {
      pthread_mutex_lock(&tracks_lock);
      struct track *const track = tracks[i];
      if (track != NULL && !track->harvested) {
        tracks[i] = track->next;
        track_count--;
        for (const struct timed *t = track->first; t != NULL; t = t->next) pending--;
      }
      const bool mine = track != NULL && !track->harvested;
      pthread_mutex_unlock(&tracks_lock);
      if (!mine) break;
      while (track->first != NULL) {
        struct timed *const timed = track->first;
        track->first = timed->next;
        free_timed(timed);
        forgotten++;
      }
      free(track);
    }
  }
  return forgotten;
}

rill_status rill__timeline_stop(bool wait) {
  uint32_t running = RUNNING;
  RILL_REQUIRE(atomic_compare_exchange_strong(&state, &running, CHANGING), RILL_ERROR_INVALID_ARGUMENT,
               "no trace runs" RILL_HINT "call rill_trace_start first");
  rill__observe(RILL__OBSERVER_TIMELINE, NULL);
  atomic_store(&rill__graphs_in_steps, false);
  harvest_all(wait);
  const uint64_t unfinished = forget_pending();
  const bool complete = rill__trace_file_close(unfinished);
  atomic_store(&state, IDLE);
  RILL_REQUIRE(complete, RILL_ERROR_BACKEND,
               "the timeline could not be written completely" RILL_HINT "is the disk full?");
  return RILL_OK;
}

/* ---- ranges ---- */

void rill__timeline_range_push(const char *name) {
  rill__vendor_range_push(name);
  if (atomic_load_explicit(&state, memory_order_relaxed) != RUNNING) return;
  char text[NAME_BYTES];
  rill__json_escape(text, sizeof text, name);
  rill__trace_file_add("{\"ph\":\"B\",\"pid\":%d,\"tid\":%llu,\"ts\":%.3f,\"cat\":\"range\",\"name\":\"%s\"}", HOST,
                       (unsigned long long)thread_track(), us(rill__trace_now()), text);
}

void rill__timeline_range_pop(void) {
  rill__vendor_range_pop();
  if (atomic_load_explicit(&state, memory_order_relaxed) != RUNNING) return;
  rill__trace_file_add("{\"ph\":\"E\",\"pid\":%d,\"tid\":%llu,\"ts\":%.3f}", HOST, (unsigned long long)thread_track(),
                       us(rill__trace_now()));
}

void rill__timeline_after_fork(void) {
  pthread_mutex_init(&tracks_lock, NULL); /* another thread may have had it */
  for (uint32_t i = 0; i < BUCKETS; i++) tracks[i] = NULL;
  track_count = pending = 0;
  rill__observe(RILL__OBSERVER_TIMELINE, NULL);
  atomic_store(&rill__graphs_in_steps, false);
  rill__trace_file_abandon();
  rill__trace_clock_after_fork();
  atomic_store(&state, IDLE);
}
