#include "core/order/watch.h"

#include "core/device/backends.h"
#include "core/diagnose/calls.h"
#include "core/diagnose/order_notes.h"
#include "core/diagnose/settings.h"
#include "core/held/held.h"
#include "core/order/report.h"
#include "core/pool/cache.h"
#include "core/pool/pool.h"
#include "core/tracking/map.h"
#include "core/tracking/ranges.h"

#include <rill/order.h>
#include <stdlib.h>
#include <unistd.h>

/* The lock guards the journal with its engine, and the text.  It is never held across a call of a backend. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rill__journal *journal; /* constant once it is set; NULL if the check is off */
static struct rill__order_text text;
static bool tells_all, is_precise;

/* Returns true if the check is on.  The notes are set last, when everything else is ready. */
static bool is_watching(void) { return atomic_load(&rill__order_notes) != NULL; }

void rill__order_lock(void) { pthread_mutex_lock(&lock); }
void rill__order_unlock(void) { pthread_mutex_unlock(&lock); }
void rill__order_after_fork(void) {
  if (is_watching()) rill__journal_clear(journal);
  pthread_mutex_unlock(&lock);
}

/* Returns true if code that was loaded after the check started may have synchronized by itself with work of the
 * backends whose bits 1 << id are given.  From then on, such code counts as present. */
static bool have_others_come(uint32_t backends) {
  const struct rill__backend *backend;
  for (size_t i = 0; (backend = rill__backend_at(i)) != NULL; i++) {
    const uint32_t bit = UINT32_C(1) << backend->id;
    if ((backends & bit) == 0 || backend->has_later_users == NULL || !backend->has_later_users()) continue;
    atomic_fetch_or(&rill__shared_vendors, bit);
    return true;
  }
  return false;
}

/* The tag of an operation is the bit of its backend. */
static void report_finding(void *user, const struct rill__order_finding *finding) {
  struct rill__order_finding said = *finding;
  const uint32_t backends = finding->later->tag | (finding->earlier != NULL ? finding->earlier->tag : 0);
  if (said.certain && !said.after_free && have_others_come(backends)) said.certain = false;
  if (said.certain || tells_all) rill__order_describe(user, &said);
}

/* Enters an epoch if the caller is in none, so that everything found in the map of memory stays valid until the end. */
struct watching {
  struct rill__thread *entered;
};

static struct watching enter_epoch(void) {
  struct watching watching = { rill__self != NULL && rill__is_outside_epochs() ? rill__self : NULL };
  if (watching.entered != NULL) rill__enter_epoch(watching.entered);
  return watching;
}

static struct watching begin_watch(void) {
  const struct watching watching = enter_epoch();
  pthread_mutex_lock(&lock);
  return watching;
}

static void end_watch(const struct watching *watching) {
  if (rill__journal_was_full(journal)) {
    rill__order_say(&text, "rill: RILL_CHECK=order:precise: more than 64 MiB of records wait for running kernels; the "
                           "kernels are compared by their allocations, as with RILL_CHECK=order\n");
  }
  char *const lines = text.text;
  const size_t size = text.used;
  if (size > 0) {
    text.text = NULL;
    text.used = text.room = 0;
  }
  pthread_mutex_unlock(&lock);
  if (watching->entered != NULL) rill__leave(&watching->entered);
  if (size == 0) return;
  for (size_t done = 0; done < size;) {
    const ssize_t written = write(STDERR_FILENO, lines + done, size - done);
    if (written <= 0) break; /* standard error is closed */
    done += (size_t)written;
  }
  free(lines);
}

/* ---- host calls ---- */

struct watched_call {
  rill_host_fn shown, fn; /* `fn` is called: the program's function `shown`, or what another observer put before it */
  void *user;
  uint64_t number;
};

static void call_watched(void *user, rill_status status) {
  const struct watched_call call = *(struct watched_call *)user;
  free(user);
  struct watching watching = begin_watch();
  rill__journal_call_start(journal, call.number);
  end_watch(&watching);
  rill__call_is_of(call.shown);
  call.fn(call.user, status);
  watching = begin_watch();
  rill__journal_call_end(journal, call.number);
  end_watch(&watching);
}

/* Notes a host call before it is submitted, because it may run before the submission returns. */
static rill_status watch_call(struct rill__observed *what) {
  struct watched_call *const call = malloc(sizeof *call);
  RILL_REQUIRE(call != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for RILL_CHECK=order to watch a host call");
  const struct watching watching = begin_watch();
  rill__journal_begin(journal, what->stream->number, rill__order_group_of(what->device));
  const uint64_t number = rill__order_number();
  rill__journal_call_submit(journal, what->stream->number, number);
  end_watch(&watching);
  const bool alone = what->host_call.through == NULL;
  *call = (struct watched_call){ .shown = what->host_call.fn,
                                 .fn = alone ? what->host_call.fn : what->host_call.through,
                                 .user = alone ? what->host_call.user : what->host_call.through_user,
                                 .number = number };
  what->host_call.through = call_watched;
  what->host_call.through_user = call;
  return RILL_OK;
}

static void drop_call(const struct rill__observed *what) {
  if (what->host_call.through != call_watched) return;
  struct watched_call *const call = what->host_call.through_user;
  const struct watching watching = begin_watch();
  rill__journal_call_end(journal, call->number);
  end_watch(&watching);
  free(call);
}

/* ---- memory ---- */

/* Finds the allocation that begins at `p`. */
static bool find_block(const struct rill__observed *what, struct rill__order_range *out) {
  *out = (struct rill__order_range){ .begin = (uintptr_t)what->memory.p,
                                     .size = what->memory.size,
                                     .write = true,
                                     .vague = rill__order_is_shared(what->device) };
  const struct rill__allocation *const allocation = rill__ranges_find(what->memory.p);
  if (allocation == NULL || what->memory.size == 0 || allocation->imported || allocation->variable) return false;
  uintptr_t begin = allocation->begin;
  size_t size = allocation->size;
  if (allocation->pooled && !rill__pool_find(allocation, what->memory.p, &begin, &size)) return false;
  return begin == out->begin && allocation->kind != RILL_MEMORY_REGISTERED;
}

/* Notes a free by the host.  rill_free waits for the memory's device, or for all devices of the backend if the memory
 * is pinned or managed.  If work is held, the free is deferred, and the memory is forgotten. */
static void tell_host_free(const struct rill__observed *what, struct rill__order_range *range) {
  const bool all = what->memory.kind != RILL_MEMORY_DEVICE;
  if (atomic_load(&rill__held_count) != 0) {
    rill__journal_forget(journal, range->begin, range->size);
    return;
  }
  rill__journal_host_wait_groups(journal, rill__order_group_of(what->device), all ? 0xffff0000 : UINT32_MAX);
  struct rill__order_op *op = rill__order_op_of(NULL, "rill_free", NULL, range->size);
  if (op == NULL) return;
  rill__journal_host_free(journal, op, range);
  rill__order_op_unref(op);
}

static void tell_memory(const struct rill__observed *what, struct rill__order_range *range, enum rill__touch_kind kind,
                        const char *name) {
  struct rill__order_op *op = rill__order_op_of(what->stream, name, NULL, range->size);
  if (op == NULL) return;
  rill__journal_begin(journal, what->stream->number, rill__order_group_of(what->device));
  rill__journal_submit(journal, what->stream->number, op, kind, 0, range, 1, 0);
  rill__order_op_unref(op);
}

static void tell_free(const struct rill__observed *what) {
  struct rill__order_range range;
  if (!find_block(what, &range)) return;
  if (what->stream == NULL) {
    tell_host_free(what, &range);
  } else if (rill__is_held(what->stream)) { /* the free comes after the queued work */
    rill__journal_forget(journal, range.begin, range.size);
  } else {
    tell_memory(what, &range, RILL__TOUCH_FREE, "rill_free_async");
  }
}

/* Returns true if earlier work of the stream may still be using memory that was just allocated from a pool.  Called
 * without this file's lock, because the pool's lock is not taken under it. */
static bool is_used_before(const struct rill__observed *what) {
  const struct rill__allocation *const allocation = rill__ranges_find(what->memory.p);
  if (allocation == NULL || !allocation->pooled) return false;
  const struct rill__segment *const segment = (const struct rill__segment *)allocation;
  rill__pool_lock(segment->pool);
  struct rill__block *const block = rill__segment_block(segment, (uintptr_t)what->memory.p);
  const bool used = block != NULL && !rill__block_is_complete(segment->pool, block);
  rill__pool_unlock(segment->pool);
  return used;
}

static void tell_allocation(const struct rill__observed *what, bool used_before) {
  struct rill__order_range range;
  if (what->memory.p == NULL || !find_block(what, &range)) return;
  rill__journal_forget(journal, range.begin, range.size);
  if (used_before) tell_memory(what, &range, RILL__TOUCH_ALLOCATE, "allocation");
}

/* ---- the observer ---- */

static bool accesses_memory(const struct rill__observed *what) {
  return what->kind == RILL__OBSERVED_LAUNCH || what->kind == RILL__OBSERVED_COPY ||
         what->kind == RILL__OBSERVED_FILL || what->kind == RILL__OBSERVED_GRAPH;
}

/* Notifies the journal before the driver gets the operation: another thread may see it complete and reuse its memory
 * before this call returns. */
static rill_status before_operation(struct rill__observed *what) {
  const enum rill__observed_kind kind = what->kind;
  if (kind == RILL__OBSERVED_HOST_CALL) return watch_call(what);
  const bool orders = kind == RILL__OBSERVED_RECORD || kind == RILL__OBSERVED_WAIT;
  if (!orders && kind != RILL__OBSERVED_FREE && !accesses_memory(what)) return RILL_OK;
  const struct watching watching = begin_watch();
  if (kind == RILL__OBSERVED_LAUNCH && is_precise && what->launch->kernel->tells_accesses)
    what->token = rill__order_number();
  if (what->stream != NULL) rill__journal_begin(journal, what->stream->number, rill__order_group_of(what->device));
  if (kind == RILL__OBSERVED_RECORD) {
    rill__journal_record(journal, what->stream->number, what->event.event->base.id);
  } else if (kind == RILL__OBSERVED_WAIT) {
    rill__journal_wait(journal, what->stream->number, what->event.event->base.id);
  } else if (kind == RILL__OBSERVED_FREE) {
    tell_free(what);
  } else {
    rill__order_notify(journal, what);
  }
  end_watch(&watching);
  return RILL_OK;
}

/* Notes an allocation.  After a refusal, forgets all memory: the refused operation accesses nothing, but its touches
 * may have replaced others. */
static rill_status after_operation(struct rill__observed *what, rill_status status) {
  if (status != RILL_OK) {
    if (what->kind == RILL__OBSERVED_HOST_CALL) drop_call(what);
    if (!accesses_memory(what)) return status;
    const struct watching watching = begin_watch();
    if (what->kind == RILL__OBSERVED_LAUNCH) rill__journal_accessed(journal, what->token, NULL, 0, 0);
    rill__journal_forget_all(journal);
    end_watch(&watching);
    return status;
  }
  if (what->kind != RILL__OBSERVED_ALLOC) return status;
  const struct watching watching = enter_epoch();
  const bool used_before = what->stream != NULL && !rill__is_held(what->stream) && is_used_before(what);
  pthread_mutex_lock(&lock);
  tell_allocation(what, used_before);
  end_watch(&watching);
  return status;
}

/* ---- accesses that kernels report ---- */

/* Describes an accessed range.  If the host or other processes can see the memory, they may have ordered the operations
 * that use it. */
static void look_up(const struct rill__accessed *accessed, struct rill__order_range *range, uint32_t *flags) {
  const bool writes = (accessed->how & (RILL__ACCESSED_WRITE | RILL__ACCESSED_UPDATE)) != 0;
  *range = (struct rill__order_range){
    .begin = accessed->begin, .size = accessed->size, .write = writes, .how = (uint8_t)accessed->how
  };
  const struct rill__allocation *const allocation = rill__ranges_find((const void *)accessed->begin);
  if (allocation == NULL) return;
  range->vague = allocation->imported || atomic_load(&allocation->exported);
  if (allocation->kind != RILL_MEMORY_DEVICE && !allocation->variable)
    *flags |= RILL__ORDER_POLLS | (writes ? RILL__ORDER_PUBLISHES : 0);
}

/* Returns NULL if there is no host memory. */
static struct rill__order_range *look_up_all(const struct rill__accessed *accessed, size_t count, uint32_t *flags) {
  struct rill__order_range *ranges = malloc((count + 1) * sizeof *ranges);
  if (ranges == NULL) return NULL;
  rill__memory_lock();
  for (size_t i = 0; i < count; i++) look_up(&accessed[i], &ranges[i], flags);
  rill__memory_unlock();
  return ranges;
}

/* Stops waiting for the kernel's accesses, so it is not compared byte by byte.  Prints a message once. */
static void compare_by_allocations(uint64_t token) {
  static bool warned;
  const char *label = NULL;
  if (!rill__journal_awaits(journal, token, &label)) return;
  if (!warned) {
    rill__order_say(&text,
                    "rill: RILL_CHECK=order:precise: kernel \"%s\" uses more than 64 MiB or more than 262144 ranges of "
                    "bytes; it is compared by its allocations, as with RILL_CHECK=order\n",
                    label);
  }
  warned = true;
  rill__journal_stop_waiting(journal, token);
}

/* Passes the accesses of a kernel to the journal.  Called by a worker of the backend, outside epochs. */
static void note_accessed(uint64_t token, const struct rill__accessed *accessed, size_t count, bool complete) {
  uint32_t flags = 0;
  struct rill__order_range *const ranges = complete ? look_up_all(accessed, count, &flags) : NULL;
  const struct watching watching = begin_watch();
  if (ranges != NULL) rill__journal_accessed(journal, token, ranges, count, flags);
  if (ranges == NULL) compare_by_allocations(token);
  end_watch(&watching);
  free(ranges);
}

static const struct rill__observer observer = { .before = before_operation, .after = after_operation };

/* ---- notes ---- */

static void note_seen_stream(struct rill__stream *stream) {
  const struct watching watching = begin_watch();
  rill__journal_host_wait_stream(journal, stream->number);
  end_watch(&watching);
}

static void note_seen_event(struct rill__event *event) {
  const struct watching watching = begin_watch();
  rill__journal_host_wait_event(journal, event->base.id);
  end_watch(&watching);
}

static void note_seen_device(struct rill__device *device, bool all) {
  const struct watching watching = begin_watch();
  rill__journal_host_wait_groups(journal, rill__order_group_of(device), all ? 0xffff0000 : UINT32_MAX);
  end_watch(&watching);
}

static void note_ordered(struct rill__stream *stream, struct rill__event *event) {
  const struct watching watching = begin_watch();
  rill__journal_begin(journal, stream->number, rill__order_group_of(stream->base.device));
  rill__journal_wait(journal, stream->number, event->base.id);
  end_watch(&watching);
}

static void note_kept(struct rill__stream *stream, uintptr_t begin, size_t size) {
  const struct watching watching = begin_watch();
  rill__journal_keep(journal, stream->number, begin, size);
  end_watch(&watching);
}

static void note_stream_ended(uint64_t number) {
  pthread_mutex_lock(&lock);
  rill__journal_end(journal, number);
  pthread_mutex_unlock(&lock);
}

static void note_forget_event(uint64_t id) {
  pthread_mutex_lock(&lock);
  rill__journal_forget_event(journal, id);
  pthread_mutex_unlock(&lock);
}

static const struct rill__order_notes notes = { .seen_stream = note_seen_stream,
                                                .seen_event = note_seen_event,
                                                .seen_device = note_seen_device,
                                                .ordered = note_ordered,
                                                .kept = note_kept,
                                                .stream_ended = note_stream_ended,
                                                .forget_event = note_forget_event,
                                                .accessed = note_accessed };

/* ---- declared accesses ---- */

void rill__order_declare(struct rill__stream *stream, const void *p, size_t size, uint32_t access, const char *label) {
  if (!is_watching()) return;
  const char *const what = stream != NULL ? "declared access" : "declared access of the host";
  struct rill__order_range range = { .begin = (uintptr_t)p, .size = size };
  struct watching watching = begin_watch();
  struct rill__order_op *op = rill__order_op_of(stream, what, label, size);
  const bool write = (access & RILL_ORDER_WRITE) != 0;
  range.write = write;
  range.vague = rill__order_is_shared(NULL);
  if (op != NULL && stream == NULL) {
    rill__journal_host_access(journal, op, &range);
  } else if (op != NULL && rill__order_find(stream, p, size, write, &range)) {
    rill__journal_begin(journal, stream->number, rill__order_group_of(stream->base.device));
    rill__journal_submit(journal, stream->number, op, RILL__TOUCH_USE, RILL__ORDER_FOLLOWS, &range, 1, 0);
  }
  if (op != NULL) rill__order_op_unref(op);
  end_watch(&watching);
}

/* ---- starting ---- */

void rill__order_start(void) {
  tells_all = rill__checks(RILL__CHECK_ORDER_ALL);
  is_precise = rill__checks(RILL__CHECK_ORDER_PRECISE);
  if (!rill__checks(RILL__CHECK_ORDER) && !tells_all && !is_precise) return;
  journal = rill__journal_new(report_finding, &text);
  if (journal == NULL) return;
  atomic_store(&rill__order_notes, &notes);
  rill__observe(RILL__OBSERVER_ORDER, &observer);
}
