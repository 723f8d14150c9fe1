/* What must have come before what, worked out from the calls that were noted; and whether what was seen agrees.
 *
 * A clock has a tick for each stream: all that was submitted to the stream before that tick comes before the point that
 * the clock stands for.  Submitted is a call that has returned, and a host call that has been seen to run.  So on one
 * stream the clock of a call is the tick of its start, and what the waits before it know; a wait knows what the record
 * knows that it waits for.  Where several records may be the one, as when threads record an event at the same time, it
 * knows what all of them know.  The clocks are the least that is certain, whatever the threads' order was.
 *
 * An event that goes unrecorded makes work fail: `may_fail` is what may have met that, and counts for nothing, `fails`
 * what has.
 */
#include "mix.h"

#include <stdlib.h>

/* Something on a stream that is not done before a tick: a host call ends, an event is recorded. */
struct due {
  uint64_t submitted, done;
  const struct call *call;
};

/* A stream's calls. */
struct line {
  struct call **waits; /* by their end */
  uint64_t *joined;    /* clocks: what the first 1, 2, 3 ... waits know together */
  struct due *dues;    /* by the tick of submission; `done` is the latest of all so far */
  size_t wait_count, due_count;
  uint64_t unsure_from; /* what was submitted from then on may have failed */
};

struct calls {
  struct call **all;
  size_t count;
};

static struct line *lines; /* by stream */
static size_t line_count;
static struct calls *recordings; /* by event; by their start */
static struct calls everything, reads, cell_writes[MIX_CELLS];

static void add(struct calls *calls, struct call *call) {
  if ((calls->count & (calls->count - 1)) == 0) {
    calls->all = realloc(calls->all, (calls->count == 0 ? 1 : 2 * calls->count) * sizeof *calls->all);
    assert_non_null(calls->all);
  }
  calls->all[calls->count++] = call;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t greatest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static bool is_wait(const struct call *call) {
  return call->kind == CALL_WAIT || call->kind == CALL_WAIT_STREAM || call->kind == CALL_WAIT_CACHED;
}

/* ---- gathering ---- */

static int by_start(const void *a, const void *b) {
  const uint64_t x = (*(struct call *const *)a)->start, y = (*(struct call *const *)b)->start;
  return (x > y) - (x < y);
}

static int by_end(const void *a, const void *b) {
  const uint64_t x = (*(struct call *const *)a)->end, y = (*(struct call *const *)b)->end;
  return (x > y) - (x < y);
}

static int by_submission(const void *a, const void *b) {
  const uint64_t x = ((const struct due *)a)->submitted, y = ((const struct due *)b)->submitted;
  return (x > y) - (x < y);
}

static void sort(struct calls *calls, int (*compare)(const void *, const void *)) {
  if (calls->count > 1) qsort(calls->all, calls->count, sizeof *calls->all, compare);
}

static void gather(void) {
  line_count = atomic_load(&mix.stream_count);
  lines = calloc(line_count, sizeof *lines);
  recordings = calloc(atomic_load(&mix.event_count), sizeof *recordings);
  struct calls *waits = calloc(line_count, sizeof *waits);
  assert_true(lines != NULL && recordings != NULL && waits != NULL);
  for (unsigned t = 0; t <= mix.round.threads; t++) {
    for (unsigned i = 0; i < atomic_load(&mix.workers[t].count); i++) add(&everything, &mix.workers[t].calls[i]);
  }
  sort(&everything, by_start);
  for (size_t i = 0; i < everything.count; i++) {
    struct call *call = everything.all[i];
    if (call->status != RILL_OK) continue;
    if (is_wait(call)) add(&waits[call->object->number], call);
    if (call->kind == CALL_RECORD && call->other != NULL) add(&recordings[call->other->number], call);
    if (call->kind == CALL_WRITE && call->data.cell < MIX_CELLS) add(&cell_writes[call->data.cell], call);
    if (call->kind == CALL_READ) add(&reads, call);
  }
  for (size_t i = 0; i < line_count; i++) {
    sort(&waits[i], by_end);
    lines[i].waits = waits[i].all;
    lines[i].wait_count = waits[i].count;
    lines[i].unsure_from = UINT64_MAX;
  }
  free(waits);
}

static void forget(void) {
  for (size_t i = 0; i < line_count; i++) {
    free(lines[i].waits);
    free(lines[i].joined);
    free(lines[i].dues);
  }
  for (unsigned i = 0; i < atomic_load(&mix.event_count); i++) free(recordings[i].all);
  for (size_t i = 0; i < everything.count; i++) {
    free(everything.all[i]->known.clock);
    free(everything.all[i]->known.records);
  }
  for (unsigned i = 0; i < MIX_CELLS; i++) free(cell_writes[i].all);
  memset(cell_writes, 0, sizeof cell_writes);
  free(lines);
  free(recordings);
  free(everything.all);
  free(reads.all);
  everything = reads = (struct calls){ NULL, 0 };
}

/* ---- which record ---- */

/* A question may be answered with a record that started while it was under way, a wait waits for one that comes later.
 */
static void find_records(struct call *call) {
  const struct object *event = call->kind == CALL_WAIT ? call->other : call->object;
  const struct calls *all = &recordings[event->number];
  uint64_t replaced_until = 0, first_end = UINT64_MAX;
  for (size_t i = 0; i < all->count; i++) {
    if (all->all[i]->end < call->start) replaced_until = greatest(replaced_until, all->all[i]->start);
    first_end = least(first_end, all->all[i]->end);
  }
  const bool maybe_never = first_end > call->start;
  const bool holds = call->kind == CALL_WAIT && (call->flags & RILL_WAIT_IF_RECORDED) == 0 && !event->signaled;
  struct calls found = { NULL, 0 };
  for (size_t i = 0; i < all->count; i++) {
    struct call *record = all->all[i];
    const bool now = record->start < call->end && record->end >= replaced_until;
    if (now || (maybe_never && holds && record->start <= first_end)) add(&found, record);
  }
  call->known.records = found.all;
  call->known.record_count = found.count;
  call->known.may_pass = maybe_never && !holds;
}

/* ---- failures of work that waited for an event which went unrecorded ---- */

static bool may_fail(const struct call *call) {
  if (lines[call->object->number].unsure_from < call->end) return true; /* with what it comes after */
  if (call->kind == CALL_RECORD) return false;
  if (call->kind != CALL_WAIT) return lines[call->other->number].unsure_from < call->end;
  const uint64_t released = atomic_load(&call->other->release_start);
  if (released != 0 && !call->known.may_pass) {
    bool recorded = false;
    for (size_t i = 0; i < recordings[call->other->number].count; i++) {
      const struct call *record = recordings[call->other->number].all[i];
      recorded |= record->end < released && !record->known.may_fail;
    }
    if (!recorded && mix.round.abandons) return true;
  }
  for (size_t i = 0; i < call->known.record_count; i++) {
    if (call->known.records[i]->known.may_fail) return true;
  }
  return false;
}

/* Certain to fail: a wait for what went unrecorded, if it is the first of its stream that may fail, and those before it
 * are over; what was recorded after it, and nothing else that may fail, before that happened; and who waited for such
 * a record. */
static bool fails_with(struct call *call, const struct call *cause) {
  call->known.fails_from = cause->known.fails_from;
  call->known.fails_until = cause->known.fails_until;
  call->known.cause = cause;
  return true;
}

/* Nothing of the stream was held before the tick. */
static bool is_free(const struct object *stream, uint64_t tick) {
  const struct line *line = &lines[stream->number];
  for (size_t i = 0; i < line->wait_count; i++) {
    if (line->waits[i]->start < tick) return false;
  }
  return true;
}

/* A wait is surely over at a tick. */
static bool is_over(const struct call *wait, uint64_t tick) {
  if (wait->kind != CALL_WAIT) return is_free(wait->other, wait->end);
  for (size_t i = 0; i < wait->known.record_count; i++) {
    const struct call *record = wait->known.records[i];
    if (record->end > tick || !is_free(record->object, record->end)) return false;
  }
  return wait->known.record_count > 0;
}

static bool comes_to_it(const struct call *wait, uint64_t tick) {
  const struct line *line = &lines[wait->object->number];
  for (size_t i = 0; i < line->wait_count; i++) {
    const struct call *other = line->waits[i];
    if (other != wait && other->start < wait->end && !is_over(other, tick)) return false;
  }
  return true;
}

static bool fails(struct call *call) {
  const struct line *line = &lines[call->object->number];
  if (call->kind == CALL_RECORD) {
    const struct call *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < line->wait_count; i++) {
      if (!line->waits[i]->known.may_fail || line->waits[i]->start > call->end) continue;
      only = line->waits[i];
      count++;
    }
    if (count != 1 || !only->known.fails || only->end > call->start || call->end > only->known.fails_from) return false;
    return fails_with(call, only);
  }
  if (call->kind != CALL_WAIT || call->known.may_pass || line->unsure_from < call->start) return false;
  const struct object *event = call->other;
  const struct call *record = call->known.record_count == 1 ? call->known.records[0] : NULL;
  if (record != NULL && record->known.fails && call->end < record->known.fails_from)
    return comes_to_it(call, record->known.fails_from) && fails_with(call, record);
  call->known.fails_from = atomic_load(&event->release_start);
  call->known.fails_until = atomic_load(&event->release_end);
  return recordings[event->number].count == 0 && call->known.fails_until != 0 && call->end < call->known.fails_from &&
         comes_to_it(call, call->known.fails_from);
}

static bool find_may_fail(struct call *call) {
  if (call->known.may_fail || !may_fail(call)) return false;
  call->known.may_fail = true;
  if (is_wait(call)) {
    uint64_t *from = &lines[call->object->number].unsure_from;
    *from = least(*from, call->start);
  }
  return true;
}

static bool find_fails(struct call *call) { return !call->known.fails && (call->known.fails = fails(call)); }

static void find_failures(void) {
  bool (*const steps[])(struct call *) = { find_may_fail, find_fails };
  for (int step = 0; step < 2; step++) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < everything.count; i++) {
        struct call *call = everything.all[i];
        if (call->status == RILL_OK && (is_wait(call) || call->kind == CALL_RECORD)) changed |= steps[step](call);
      }
    }
  }
}

static bool is_sure(const struct call *call) {
  return call->object == NULL || call->end < lines[call->object->number].unsure_from;
}

/* ---- clocks ---- */

static uint64_t *new_clock(void) {
  uint64_t *clock = calloc(line_count, sizeof *clock);
  assert_non_null(clock);
  return clock;
}

/* What comes before a call of a stream that begins at a tick. */
static void clock_at(size_t stream, uint64_t tick, uint64_t *out) {
  const struct line *line = &lines[stream];
  size_t low = 0, high = line->wait_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (line->waits[middle]->end < tick) low = middle + 1;
    else high = middle;
  }
  if (low > 0) memcpy(out, line->joined + (low - 1) * line_count, line_count * sizeof *out);
  else memset(out, 0, line_count * sizeof *out);
  out[stream] = greatest(out[stream], tick);
}

/* What all the records that may be the one know. */
static void clock_of_records(const struct call *call, uint64_t *out) {
  memset(out, 0, line_count * sizeof *out);
  for (size_t i = 0; i < call->known.record_count && !call->known.may_pass; i++) {
    const uint64_t *clock = call->known.records[i]->known.clock;
    for (size_t k = 0; k < line_count; k++) out[k] = i == 0 ? clock[k] : least(out[k], clock[k]);
  }
}

static bool update_clock(struct call *call, uint64_t *scratch) {
  if ((call->known.may_fail && is_wait(call)) || call->kind == CALL_WAIT_CACHED) return false;
  if (call->kind == CALL_WAIT) clock_of_records(call, scratch);
  else clock_at(call->kind == CALL_WAIT_STREAM ? call->other->number : call->object->number, call->start, scratch);
  if (memcmp(call->known.clock, scratch, line_count * sizeof *scratch) == 0) return false;
  memcpy(call->known.clock, scratch, line_count * sizeof *scratch);
  return true;
}

/* The waits of a stream after one that has learnt something, as far as it is news to them. */
static void tell_later_waits(struct line *line, size_t first) {
  for (size_t i = first; i < line->wait_count; i++) {
    uint64_t *here = line->joined + i * line_count;
    const uint64_t *news = line->waits[first]->known.clock;
    bool changed = false;
    for (size_t k = 0; k < line_count; k++) {
      changed |= here[k] < news[k];
      here[k] = greatest(here[k], news[k]);
    }
    if (!changed) return;
  }
}

static bool has_clock(const struct call *call) {
  return call->status == RILL_OK &&
         (is_wait(call) || call->kind == CALL_RECORD || call->kind == CALL_WRITE || call->kind == CALL_READ);
}

static void find_clocks(void) {
  uint64_t *scratch = new_clock();
  for (size_t i = 0; i < everything.count; i++) {
    if (has_clock(everything.all[i])) everything.all[i]->known.clock = new_clock();
  }
  for (size_t i = 0; i < line_count; i++) {
    lines[i].joined = calloc(lines[i].wait_count * line_count + 1, sizeof(uint64_t));
    assert_non_null(lines[i].joined);
    for (size_t k = 0; k < lines[i].wait_count; k++) lines[i].waits[k]->known.position = k;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < everything.count; i++) {
      struct call *call = everything.all[i];
      if (!has_clock(call) || !update_clock(call, scratch)) continue;
      changed = true;
      if (is_wait(call)) tell_later_waits(&lines[call->object->number], call->known.position);
    }
  }
  free(scratch);
}

/* ---- what comes before is done before ---- */

/* A host call that is seen to run was submitted, whether the call has returned or not. */
static uint64_t submission_of(const struct call *call) {
  return call->kind == CALL_HOST_CALL ? least(call->end, call->run.start) : call->end;
}

static void add_due(const struct call *call, uint64_t done) {
  struct line *line = &lines[call->object->number];
  line->dues[line->due_count++] = (struct due){ submission_of(call), done, call };
}

static void find_dues(void) {
  for (size_t i = 0; i < line_count; i++) {
    lines[i].dues = calloc(lines[i].wait_count + atomic_load(&mix.streams[i].host_calls) + 1, sizeof *lines[i].dues);
    assert_non_null(lines[i].dues);
  }
  for (size_t i = 0; i < everything.count; i++) {
    const struct call *call = everything.all[i];
    if (call->status != RILL_OK) continue;
    if (call->kind == CALL_HOST_CALL) add_due(call, call->run.end);
    if (call->kind != CALL_WAIT || call->known.may_pass || call->known.may_fail) continue;
    uint64_t first = UINT64_MAX;
    for (size_t k = 0; k < call->known.record_count; k++) first = least(first, call->known.records[k]->start);
    add_due(call, first);
  }
  for (size_t i = 0; i < line_count; i++) {
    struct due *dues = lines[i].dues;
    qsort(dues, lines[i].due_count, sizeof *dues, by_submission);
    for (size_t k = 1; k < lines[i].due_count; k++) {
      if (dues[k].done < dues[k - 1].done) {
        dues[k].done = dues[k - 1].done;
        dues[k].call = dues[k - 1].call;
      }
    }
  }
}

/* The last of what was submitted to a stream before a tick to be done; NULL: nothing. */
static const struct due *last_due(const struct line *line, uint64_t tick) {
  size_t low = 0, high = line->due_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (line->dues[middle].submitted < tick) low = middle + 1;
    else high = middle;
  }
  return low == 0 ? NULL : &line->dues[low - 1];
}

/* Why `first` comes before what a stream gets at a tick. */
static void complain_of_path(size_t stream, uint64_t tick, const struct call *first) {
  const size_t from = first->object->number;
  for (unsigned steps = 0; stream != from && steps < 8; steps++) {
    const struct call *wait = NULL;
    for (size_t i = 0; i < lines[stream].wait_count && wait == NULL; i++) {
      const struct call *one = lines[stream].waits[i];
      if (one->end < tick && one->known.clock[from] > submission_of(first)) wait = one;
    }
    if (wait == NULL) return;
    mix_complain(wait, "comes between, and");
    const struct call *next = wait;
    for (size_t i = 0; i < wait->known.record_count; i++) {
      next = wait->known.records[i];
      mix_complain(next, i == 0 ? "is the record" : "or this is the record");
    }
    stream = next == wait ? wait->other->number : next->object->number;
    tick = next->start;
  }
}

static void check_before(const struct call *call, const uint64_t *clock, uint64_t tick) {
  for (size_t i = 0; i < line_count; i++) {
    const struct due *due = last_due(&lines[i], clock[i]);
    if (due == NULL || due->done < tick) continue;
    mix_complain(call, "at tick %llu comes too early", (unsigned long long)tick);
    if (due->call->kind == CALL_HOST_CALL) {
      mix_complain(due->call, "comes before it, and ended at tick %llu", (unsigned long long)due->done);
    } else {
      mix_complain(due->call, "comes before it, and waits for an event that was not recorded by then");
    }
    const struct call *record = call->known.record_count > 0 ? call->known.records[0] : NULL;
    if (record != NULL) mix_complain(record, "is the record asked about, or one of %zu", call->known.record_count);
    if (record != NULL) complain_of_path(record->object->number, record->start, due->call);
    else if (call->object != NULL) complain_of_path(call->object->number, call->start, due->call);
    return;
  }
}

static void check_order(void) {
  uint64_t *clock = new_clock();
  for (size_t i = 0; i < everything.count; i++) {
    const struct call *call = everything.all[i];
    if (call->kind == CALL_HOST_CALL && call->status == RILL_OK && call->run.reported == RILL_OK) {
      clock_at(call->object->number, call->start, clock);
      check_before(call, clock, call->run.start);
    }
    if (!call->answer || call->status != RILL_OK) continue;
    if (call->kind == CALL_STREAM_DONE) {
      clock_at(call->object->number, call->start, clock);
      check_before(call, clock, call->end);
    }
    if (call->kind == CALL_EVENT_DONE) {
      clock_of_records(call, clock);
      check_before(call, clock, call->end);
    }
    for (size_t k = 0; k < line_count && call->kind == CALL_DEVICE_DONE; k++) {
      if (mix.streams[k].device.id != mix.devices[call->flags].id) continue;
      clock_at(k, call->start, clock);
      check_before(call, clock, call->end);
    }
  }
  free(clock);
}

/* ---- host calls and kernels: once ---- */

static void check_host_call(const struct call *call) {
  const unsigned times = atomic_load(&call->run.times), wanted = call->status == RILL_OK;
  if (times != wanted) mix_complain(call, "runs %u times, not %u", times, wanted);
  if (times == 0 || call->run.reported == RILL_OK) return;
  if (call->run.reported != RILL_ERROR_NOT_RECORDED || is_sure(call)) {
    mix_complain(call, "is given %s", rill_status_name(call->run.reported));
  }
}

static void check_counts(const struct object *stream, const struct line *line) {
  const unsigned passes = atomic_load(&stream->passes), adds = atomic_load(&stream->adds);
  const bool some_may_fail = line->unsure_from != UINT64_MAX;
  if (*stream->started != *stream->ended || *stream->ended > passes || (*stream->ended < passes && !some_may_fail)) {
    mix_complain(NULL, "stream %u: %u launches, %u started, %u ended", stream->number, passes, *stream->started,
                 *stream->ended);
  }
  if (*stream->added > adds || (*stream->added < adds && !some_may_fail)) {
    mix_complain(NULL, "stream %u: %u launches with constants, which added up to %u", stream->number, adds,
                 *stream->added);
  }
}

/* ---- words ---- */

static bool is_before(const struct call *first, const struct call *second) {
  return first->end < second->known.clock[first->object->number];
}

static void check_value(const struct call *read, uint32_t value) {
  const struct calls *writes = &cell_writes[read->data.cell];
  const struct call *from = value != 0 && value < MIX_VALUES ? atomic_load(&mix.writes[value]) : NULL;
  if (value != 0 && (from == NULL || from->status != RILL_OK || from->data.cell != read->data.cell)) {
    mix_complain(read, "sees 0x%x in cell %u, which no accepted call wrote there", (unsigned)value, read->data.cell);
    return;
  }
  if (from != NULL && is_before(read, from)) {
    mix_complain(read, "sees %u, which is written later:", (unsigned)value);
    mix_complain(from, "wrote it");
  }
  for (size_t i = 0; i < writes->count; i++) {
    const struct call *write = writes->all[i];
    if (write == from || !is_sure(write) || !is_before(write, read) || (from != NULL && !is_before(from, write)))
      continue;
    mix_complain(read, "sees %u in cell %u, which was written over before:", (unsigned)value, read->data.cell);
    if (from != NULL) mix_complain(from, "wrote it");
    mix_complain(write, "wrote %u over it", (unsigned)write->data.value);
    return;
  }
}

static void check_words(void) {
  for (size_t i = 0; i < reads.count; i++) {
    const struct call *read = reads.all[i], *source = read->data.source;
    for (unsigned k = 0; k < MIX_WORDS; k++) {
      const uint32_t value = read->data.seen[k];
      if (value == MIX_UNSEEN && !is_sure(read)) continue;
      if (source == NULL) check_value(read, value);
      else if (value != source->data.value && is_sure(source)) {
        mix_complain(read, "sees 0x%x in memory that was filled with 0x%x", (unsigned)value,
                     (unsigned)source->data.value);
      }
    }
  }
}

/* ---- answers about events ---- */

/* Its last record is one that has failed, and it was not recorded since. */
static bool has_failed(const struct call *call) {
  if (call->known.record_count != 1 || call->known.may_pass) return false;
  const struct call *record = call->known.records[0];
  const bool at_once = record->known.cause == NULL || record->known.cause->known.cause == NULL;
  return record->known.fails && record->known.fails_until < call->start && (at_once || mix.round.threads == 1);
}

static void check_question(const struct call *call) {
  const struct object *event = call->kind == CALL_WAIT ? call->other : call->object;
  const struct calls *all = &recordings[event->number];
  bool before = event->signaled, by_its_end = event->signaled;
  for (size_t i = 0; i < all->count; i++) {
    before |= all->all[i]->end < call->start && !all->all[i]->known.may_fail;
    by_its_end |= all->all[i]->start < call->end;
  }
  if (call->kind == CALL_IS_RECORDED) {
    if (call->status == RILL_OK && (call->answer ? !by_its_end : before))
      mix_complain(call, "answers %s", call->answer ? "true" : "false");
    return;
  }
  const bool answered = call->status == RILL_OK || call->status == RILL_ERROR_TIMEOUT;
  if (answered && has_failed(call) && (call->flags & RILL_WAIT_IF_RECORDED) == 0) {
    mix_complain(
        call, "gives %s for an event whose record has failed with what it came after:", rill_status_name(call->status));
    for (const struct call *cause = call->known.records[0]; cause != NULL; cause = cause->known.cause) {
      mix_complain(cause, "failed at tick %llu", (unsigned long long)cause->known.fails_from);
    }
  }
  if (call->kind != CALL_WAIT) return;
  const bool must = (call->flags & RILL_WAIT_MUST_BE_RECORDED) != 0;
  const bool may_refuse = (must && !before) || mix_not_held(call->object) != 0 || mix.round.abandons;
  if (call->status == RILL_ERROR_NOT_RECORDED && !may_refuse)
    mix_complain(call, "refuses an event that was recorded, or a wait that holds");
  if (call->status == RILL_OK && must && !by_its_end) mix_complain(call, "takes an event that was not recorded");
}

/* Might what a stream got before a tick wait, through however many others, for the event that a record was refused of?
 */
static bool may_wait_for(size_t stream, uint64_t tick, const struct call *refused, uint64_t *seen) {
  if (seen[stream] >= tick) return false;
  seen[stream] = tick;
  for (size_t i = 0; i < lines[stream].wait_count; i++) {
    const struct call *wait = lines[stream].waits[i];
    if (wait->start >= tick) continue;
    if (wait->kind != CALL_WAIT) {
      if (may_wait_for(wait->other->number, wait->end, refused, seen)) return true;
      continue;
    }
    if (wait->other == refused->other) return true;
    for (size_t k = 0; k < wait->known.record_count; k++) {
      const struct call *record = wait->known.records[k];
      if (record->start < refused->end && may_wait_for(record->object->number, record->end, refused, seen)) return true;
    }
  }
  return false;
}

/* A record is refused if it could only be reached through itself. */
static void check_refusal(const struct call *call) {
  uint64_t *seen = new_clock();
  const struct calls *all = &recordings[call->other->number];
  bool may = true;
  for (size_t i = 0; i < all->count; i++) may &= all->all[i]->end >= call->start;
  may = may && may_wait_for(call->object->number, call->end, call, seen);
  if (!may && !mix.round.abandons) mix_complain(call, "is refused, though nothing before it waits for the event");
  free(seen);
}

void mix_check_history(void) {
  const bool with_clocks = atomic_load(&mix.stream_count) <= 128; /* of many streams they would be too large */
  gather();
  for (size_t i = 0; i < everything.count; i++) {
    const enum call_kind kind = everything.all[i]->kind;
    if (kind == CALL_WAIT || kind == CALL_EVENT_DONE || kind == CALL_IS_RECORDED) find_records(everything.all[i]);
  }
  find_failures();
  for (size_t i = 0; i < everything.count; i++) {
    const struct call *call = everything.all[i];
    if (call->kind == CALL_HOST_CALL) check_host_call(call);
    if (call->kind == CALL_WAIT || call->kind == CALL_EVENT_DONE || call->kind == CALL_IS_RECORDED)
      check_question(call);
    if (call->kind == CALL_RECORD && call->status == RILL_ERROR_INVALID_ARGUMENT) check_refusal(call);
  }
  for (size_t i = 0; i < line_count; i++) check_counts(&mix.streams[i], &lines[i]);
  if (with_clocks && !atomic_load(&mix.failed)) {
    find_clocks();
    find_dues();
    check_order();
    check_words();
  }
  forget();
}
