/* The journal of calls to the engine (core/order/journal.h).
 *
 * Invariants
 * - The waiting notes are a list in the order of the calls.  It is empty or begins with a kernel that has not reported
 *   its accesses.
 * - A kernel that has not reported its accesses is in the table of awaited kernels, under its token; no other note is.
 */
#include "core/order/journal.h"

#include "core/object/assert.h"
#include "core/order/state.h"

#include <stdlib.h>
#include <string.h>

enum note_kind {
  NOTE_BEGIN,
  NOTE_END,
  NOTE_RECORD,
  NOTE_WAIT,
  NOTE_FORGET_EVENT,
  NOTE_SEEN_STREAM,
  NOTE_SEEN_EVENT,
  NOTE_SEEN_GROUPS,
  NOTE_HOST_ACCESS,
  NOTE_HOST_FREE,
  NOTE_FORGET,
  NOTE_FORGET_ALL,
  NOTE_KEEP,
  NOTE_SUBMIT,
  NOTE_CALL_SUBMIT,
  NOTE_CALL_START,
  NOTE_CALL_END
};

struct note {
  struct rill__numbered base; /* the token, for a kernel that has not reported its accesses; else 0 */
  struct note *next;
  enum note_kind kind;
  enum rill__touch_kind touch;
  uint64_t stream, event; /* event, or number of a host call */
  uint32_t group, mask, flags;
  uintptr_t begin;
  size_t size;
  struct rill__order_op *op; /* referenced while the note waits; may be NULL */
  size_t count;
  const struct rill__order_range *ranges; /* from malloc while the note waits */
};

/* The gate of a host call in the engine. */
struct call {
  struct rill__numbered base;
  uint64_t gate;
};

struct rill__journal {
  struct rill__order *order;
  struct note *first, **end;
  size_t bytes; /* size of the waiting notes */
  struct rill__number_table awaited, calls;
  bool was_full;
};

struct rill__journal *rill__journal_new(rill__order_report_fn *report, void *user) {
  struct rill__journal *journal = calloc(1, sizeof *journal);
  if (journal == NULL) return NULL;
  journal->order = rill__order_new(report, user);
  journal->end = &journal->first;
  if (journal->order != NULL) return journal;
  free(journal);
  return NULL;
}

/* ---- host calls ---- */

static void submit_call(struct rill__journal *journal, const struct note *note) {
  struct call *call = calloc(1, sizeof *call);
  if (call == NULL) {
    rill__order_clear(journal->order);
    return;
  }
  call->base.number = note->event;
  call->gate = rill__order_call_submit(journal->order, note->stream);
  if (rill__numbered_add(&journal->calls, &call->base)) return;
  free(call);
  rill__order_clear(journal->order);
}

static void start_call(const struct rill__journal *journal, uint64_t number) {
  const struct call *call = (const struct call *)rill__numbered_find(&journal->calls, number);
  if (call != NULL) rill__order_call_start(journal->order, call->gate);
}

static void end_call(struct rill__journal *journal, uint64_t number) {
  struct call *call = (struct call *)rill__numbered_find(&journal->calls, number);
  if (call == NULL) return;
  rill__order_call_end(journal->order, call->gate);
  rill__numbered_remove(&journal->calls, &call->base);
  free(call);
}

/* ---- notes ---- */

static void apply(struct rill__journal *journal, const struct note *note) {
  struct rill__order *const order = journal->order;
  switch (note->kind) {
    case NOTE_BEGIN: rill__order_begin(order, note->stream, note->group); return;
    case NOTE_END: rill__order_end(order, note->stream); return;
    case NOTE_RECORD: rill__order_record(order, note->stream, note->event); return;
    case NOTE_WAIT: rill__order_wait(order, note->stream, note->event); return;
    case NOTE_FORGET_EVENT: rill__order_forget_event(order, note->event); return;
    case NOTE_SEEN_STREAM: rill__order_host_wait_stream(order, note->stream); return;
    case NOTE_SEEN_EVENT: rill__order_host_wait_event(order, note->event); return;
    case NOTE_SEEN_GROUPS: rill__order_host_wait_groups(order, note->group, note->mask); return;
    case NOTE_HOST_ACCESS: rill__order_host_access(order, note->op, note->ranges); return;
    case NOTE_HOST_FREE: rill__order_host_free(order, note->op, note->ranges); return;
    case NOTE_FORGET: rill__order_forget(order, note->begin, note->size); return;
    case NOTE_FORGET_ALL: rill__order_forget_all(order); return;
    case NOTE_KEEP: rill__order_keep(order, note->stream, note->begin, note->size); return;
    case NOTE_SUBMIT:
      rill__order_submit(order, note->stream, note->op, note->touch, note->flags, note->ranges, note->count);
      return;
    case NOTE_CALL_SUBMIT: submit_call(journal, note); return;
    case NOTE_CALL_START: start_call(journal, note->event); return;
    case NOTE_CALL_END: end_call(journal, note->event); return;
  }
}

static size_t note_bytes_of(const struct note *note) { return sizeof *note + note->count * sizeof *note->ranges; }

static void free_note(struct rill__journal *journal, struct note *note) {
  journal->bytes -= note_bytes_of(note);
  if (note->op != NULL) rill__order_op_unref(note->op);
  free((void *)(uintptr_t)note->ranges);
  free(note);
}

static bool is_awaited(const struct note *note) { return note->base.number != 0; }

/* Passes the notes before the first awaited kernel to the engine. */
static void apply_known(struct rill__journal *journal) {
  while (journal->first != NULL && !is_awaited(journal->first)) {
    struct note *const note = journal->first;
    apply(journal, note);
    journal->first = note->next;
    if (journal->first == NULL) journal->end = &journal->first;
    free_note(journal, note);
  }
  RILL_ASSERT((journal->first == NULL) == (journal->end == &journal->first),
              "`end` is the start of the list if and only if the list is empty");
  RILL_ASSERT(journal->first != NULL || (journal->bytes == 0 && journal->awaited.count == 0),
              "an empty journal awaits nothing");
}

static void set_known(struct rill__journal *journal, struct note *note) {
  rill__numbered_remove(&journal->awaited, &note->base);
  note->base.number = 0;
}

static void stop_all_waiting(struct rill__journal *journal) {
  for (struct note *note = journal->first; note != NULL; note = note->next) {
    if (is_awaited(note)) set_known(journal, note);
  }
  apply_known(journal);
}

static struct rill__order_range *copy_ranges(const struct rill__order_range *ranges, size_t count) {
  struct rill__order_range *copy = malloc((count + 1) * sizeof *copy);
  if (copy != NULL && count > 0) memcpy(copy, ranges, count * sizeof *copy);
  return copy;
}

/* Appends a copy of the note to the list; returns false if there is no host memory. */
static bool add_note(struct rill__journal *journal, const struct note *note) {
  struct note *copy = malloc(sizeof *copy);
  struct rill__order_range *ranges = copy_ranges(note->ranges, note->count);
  if (copy != NULL) *copy = *note;
  if (copy == NULL || ranges == NULL || (is_awaited(note) && !rill__numbered_add(&journal->awaited, &copy->base))) {
    free(copy);
    free(ranges);
    return false;
  }
  copy->ranges = ranges;
  copy->next = NULL;
  if (copy->op != NULL) copy->op->references++;
  *journal->end = copy;
  journal->end = &copy->next;
  journal->bytes += note_bytes_of(copy);
  return true;
}

static void take(struct rill__journal *journal, const struct note *note) {
  if (journal->first == NULL && !is_awaited(note)) {
    apply(journal, note);
    return;
  }
  if (journal->bytes <= RILL__JOURNAL_BYTES && add_note(journal, note)) return;
  struct note known = *note;
  known.base.number = 0;
  journal->was_full = true;
  stop_all_waiting(journal);
  apply(journal, &known);
}

/* ---- the functions of the engine ---- */

void rill__journal_begin(struct rill__journal *journal, uint64_t stream, uint32_t group) {
  take(journal, &(struct note){ .kind = NOTE_BEGIN, .stream = stream, .group = group });
}

void rill__journal_end(struct rill__journal *journal, uint64_t stream) {
  take(journal, &(struct note){ .kind = NOTE_END, .stream = stream });
}

void rill__journal_record(struct rill__journal *journal, uint64_t stream, uint64_t event) {
  take(journal, &(struct note){ .kind = NOTE_RECORD, .stream = stream, .event = event });
}

void rill__journal_wait(struct rill__journal *journal, uint64_t stream, uint64_t event) {
  take(journal, &(struct note){ .kind = NOTE_WAIT, .stream = stream, .event = event });
}

void rill__journal_forget_event(struct rill__journal *journal, uint64_t event) {
  take(journal, &(struct note){ .kind = NOTE_FORGET_EVENT, .event = event });
}

void rill__journal_host_wait_stream(struct rill__journal *journal, uint64_t stream) {
  take(journal, &(struct note){ .kind = NOTE_SEEN_STREAM, .stream = stream });
}

void rill__journal_host_wait_event(struct rill__journal *journal, uint64_t event) {
  take(journal, &(struct note){ .kind = NOTE_SEEN_EVENT, .event = event });
}

void rill__journal_host_wait_groups(struct rill__journal *journal, uint32_t group, uint32_t mask) {
  take(journal, &(struct note){ .kind = NOTE_SEEN_GROUPS, .group = group, .mask = mask });
}

void rill__journal_host_access(struct rill__journal *journal, struct rill__order_op *op,
                               const struct rill__order_range *range) {
  take(journal, &(struct note){ .kind = NOTE_HOST_ACCESS, .op = op, .ranges = range, .count = 1 });
}

void rill__journal_host_free(struct rill__journal *journal, struct rill__order_op *op,
                             const struct rill__order_range *range) {
  take(journal, &(struct note){ .kind = NOTE_HOST_FREE, .op = op, .ranges = range, .count = 1 });
}

void rill__journal_forget(struct rill__journal *journal, uintptr_t begin, size_t size) {
  take(journal, &(struct note){ .kind = NOTE_FORGET, .begin = begin, .size = size });
}

void rill__journal_forget_all(struct rill__journal *journal) {
  take(journal, &(struct note){ .kind = NOTE_FORGET_ALL });
}

void rill__journal_keep(struct rill__journal *journal, uint64_t stream, uintptr_t begin, size_t size) {
  take(journal, &(struct note){ .kind = NOTE_KEEP, .stream = stream, .begin = begin, .size = size });
}

void rill__journal_submit(struct rill__journal *journal, uint64_t stream, struct rill__order_op *op,
                          enum rill__touch_kind kind, uint32_t flags, const struct rill__order_range *ranges,
                          size_t count, uint64_t token) {
  take(journal, &(struct note){ .base = { .number = token },
                                .kind = NOTE_SUBMIT,
                                .stream = stream,
                                .op = op,
                                .touch = kind,
                                .flags = flags,
                                .ranges = ranges,
                                .count = count });
}

void rill__journal_call_submit(struct rill__journal *journal, uint64_t stream, uint64_t call) {
  take(journal, &(struct note){ .kind = NOTE_CALL_SUBMIT, .stream = stream, .event = call });
}

void rill__journal_call_start(struct rill__journal *journal, uint64_t call) {
  take(journal, &(struct note){ .kind = NOTE_CALL_START, .event = call });
}

void rill__journal_call_end(struct rill__journal *journal, uint64_t call) {
  take(journal, &(struct note){ .kind = NOTE_CALL_END, .event = call });
}

/* ---- reports of kernels ---- */

static struct note *find_awaited(const struct rill__journal *journal, uint64_t token) {
  return (struct note *)rill__numbered_find(&journal->awaited, token);
}

/* Returns true if work of other streams was submitted after the kernel, which may then have waited for that work. */
static bool is_overtaken(const struct note *kernel) {
  for (const struct note *note = kernel->next; note != NULL; note = note->next) {
    if (note->kind == NOTE_SUBMIT && note->stream != kernel->stream) return true;
  }
  return false;
}

static bool may_wait(const struct rill__order_range *ranges, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if ((ranges[i].how & RILL__ACCESSED_POLL) != 0) return true;
  }
  return false;
}

/* Keeps the accesses of freed memory that the kernel was submitted with. */
void rill__journal_accessed(struct rill__journal *journal, uint64_t token, const struct rill__order_range *ranges,
                            size_t count, uint32_t flags) {
  struct note *const note = find_awaited(journal, token);
  if (note == NULL) return;
  struct rill__order_range *known = malloc((count + note->count + 1) * sizeof *known);
  if (known != NULL) {
    size_t kept = count;
    if (count > 0) memcpy(known, ranges, count * sizeof *known);
    for (size_t i = 0; i < note->count; i++) {
      if (note->ranges[i].freed) known[kept++] = note->ranges[i];
    }
    journal->bytes -= note_bytes_of(note);
    free((void *)(uintptr_t)note->ranges);
    note->ranges = known;
    note->count = kept;
    journal->bytes += note_bytes_of(note);
    note->flags = flags | (may_wait(ranges, count) && is_overtaken(note) ? RILL__ORDER_IS_SIGNALED : 0);
  }
  set_known(journal, note);
  apply_known(journal);
}

void rill__journal_stop_waiting(struct rill__journal *journal, uint64_t token) {
  struct note *const note = find_awaited(journal, token);
  if (note == NULL) return;
  set_known(journal, note);
  apply_known(journal);
}

bool rill__journal_awaits(const struct rill__journal *journal, uint64_t token, const char **label) {
  const struct note *const note = find_awaited(journal, token);
  if (note != NULL) *label = note->op->name;
  return note != NULL;
}

bool rill__journal_was_full(struct rill__journal *journal) {
  const bool full = journal->was_full;
  journal->was_full = false;
  return full;
}

static void free_call(struct rill__journal *journal, struct rill__numbered *call) {
  rill__numbered_remove(&journal->calls, call);
  free(call);
}

void rill__journal_free(struct rill__journal *journal) {
  rill__journal_clear(journal);
  for (size_t i = 0; i < journal->calls.room; i++) {
    while (journal->calls.chains[i] != NULL) free_call(journal, journal->calls.chains[i]);
  }
  free(journal->calls.chains);
  free(journal->awaited.chains);
  rill__order_free(journal->order);
  free(journal);
}

void rill__journal_clear(struct rill__journal *journal) {
  for (struct note *note = journal->first, *next; note != NULL; note = next) {
    next = note->next;
    if (is_awaited(note)) set_known(journal, note);
    free_note(journal, note);
  }
  journal->first = NULL;
  journal->end = &journal->first;
  rill__order_forget_all(journal->order);
}
