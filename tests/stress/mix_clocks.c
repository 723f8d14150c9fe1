/* Computes the clocks of a round's calls, and checks that earlier work was complete before later work (mix_history.c).
 */
#include "mix_history.h"

#include <stdlib.h>

static int by_submission(const void *a, const void *b) {
  const uint64_t x = ((const struct due *)a)->submitted, y = ((const struct due *)b)->submitted;
  return (x > y) - (x < y);
}

/* ---- clocks ---- */

uint64_t *mix_new_clock(void) {
  uint64_t *clock = calloc(mix_past.line_count, sizeof *clock);
  assert_non_null(clock);
  return clock;
}

/* Computes the clock of a call on a stream that starts at a tick. */
static void clock_at(size_t stream, uint64_t tick, uint64_t *out) {
  const struct line *line = &mix_past.lines[stream];
  size_t low = 0, high = line->wait_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (line->waits[middle]->end < tick) low = middle + 1;
    else high = middle;
  }
  if (low > 0) memcpy(out, line->joined + (low - 1) * mix_past.line_count, mix_past.line_count * sizeof *out);
  else memset(out, 0, mix_past.line_count * sizeof *out);
  out[stream] = greatest(out[stream], tick);
}

/* Computes the clock that all records have in common to which the call may refer. */
static void clock_of_records(const struct call *call, uint64_t *out) {
  memset(out, 0, mix_past.line_count * sizeof *out);
  for (size_t i = 0; i < call->known.record_count && !call->known.may_pass; i++) {
    const uint64_t *clock = call->known.records[i]->known.clock;
    for (size_t k = 0; k < mix_past.line_count; k++) out[k] = i == 0 ? clock[k] : least(out[k], clock[k]);
  }
}

static bool update_clock(struct call *call, uint64_t *scratch) {
  if ((call->known.may_fail && is_wait(call)) || call->kind == CALL_WAIT_CACHED) return false;
  if (call->kind == CALL_WAIT) clock_of_records(call, scratch);
  else clock_at(call->kind == CALL_WAIT_STREAM ? call->other->number : call->object->number, call->start, scratch);
  if (memcmp(call->known.clock, scratch, mix_past.line_count * sizeof *scratch) == 0) return false;
  memcpy(call->known.clock, scratch, mix_past.line_count * sizeof *scratch);
  return true;
}

/* Updates the clocks of the later waits of a stream after the clock of one wait has changed. */
static void update_later_waits(struct line *line, size_t first) {
  for (size_t i = first; i < line->wait_count; i++) {
    uint64_t *here = line->joined + i * mix_past.line_count;
    const uint64_t *news = line->waits[first]->known.clock;
    bool changed = false;
    for (size_t k = 0; k < mix_past.line_count; k++) {
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
  uint64_t *scratch = mix_new_clock();
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    if (has_clock(mix_past.everything.all[i])) mix_past.everything.all[i]->known.clock = mix_new_clock();
  }
  for (size_t i = 0; i < mix_past.line_count; i++) {
    mix_past.lines[i].joined = calloc(mix_past.lines[i].wait_count * mix_past.line_count + 1, sizeof(uint64_t));
    assert_non_null(mix_past.lines[i].joined);
    for (size_t k = 0; k < mix_past.lines[i].wait_count; k++) mix_past.lines[i].waits[k]->known.position = k;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < mix_past.everything.count; i++) {
      struct call *call = mix_past.everything.all[i];
      if (!has_clock(call) || !update_clock(call, scratch)) continue;
      changed = true;
      if (is_wait(call)) update_later_waits(&mix_past.lines[call->object->number], call->known.position);
    }
  }
  free(scratch);
}

/* ---- earlier work is complete before later work ---- */

/* Returns the tick of submission. A host call that has started was submitted, even if the submitting call has not
 * returned. */
static uint64_t submission_of(const struct call *call) {
  return call->kind == CALL_HOST_CALL ? least(call->end, call->run.start) : call->end;
}

static void add_due(const struct call *call, uint64_t done) {
  struct line *line = &mix_past.lines[call->object->number];
  line->dues[line->due_count++] = (struct due){ submission_of(call), done, call };
}

static void find_dues(void) {
  for (size_t i = 0; i < mix_past.line_count; i++) {
    mix_past.lines[i].dues = calloc(mix_past.lines[i].wait_count + atomic_load(&mix.streams[i].host_calls) + 1,
                                    sizeof *mix_past.lines[i].dues);
    assert_non_null(mix_past.lines[i].dues);
  }
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    const struct call *call = mix_past.everything.all[i];
    if (call->status != RILL_OK) continue;
    if (call->kind == CALL_HOST_CALL) add_due(call, call->run.end);
    if (call->kind != CALL_WAIT || call->known.may_pass || call->known.may_fail) continue;
    uint64_t first = UINT64_MAX;
    for (size_t k = 0; k < call->known.record_count; k++) first = least(first, call->known.records[k]->start);
    add_due(call, first);
  }
  for (size_t i = 0; i < mix_past.line_count; i++) {
    struct due *dues = mix_past.lines[i].dues;
    qsort(dues, mix_past.lines[i].due_count, sizeof *dues, by_submission);
    for (size_t k = 1; k < mix_past.lines[i].due_count; k++) {
      if (dues[k].done < dues[k - 1].done) {
        dues[k].done = dues[k - 1].done;
        dues[k].call = dues[k - 1].call;
      }
    }
  }
}

/* Returns the event or host call, among those submitted to a stream before a tick, that completed last; NULL if there
 * is none. */
static const struct due *last_due(const struct line *line, uint64_t tick) {
  size_t low = 0, high = line->due_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (line->dues[middle].submitted < tick) low = middle + 1;
    else high = middle;
  }
  return low == 0 ? NULL : &line->dues[low - 1];
}

/* Explains why `first` comes before work that is submitted to a stream at a tick. */
static void complain_of_path(size_t stream, uint64_t tick, const struct call *first) {
  const size_t from = first->object->number;
  for (unsigned steps = 0; stream != from && steps < 8; steps++) {
    const struct call *wait = NULL;
    for (size_t i = 0; i < mix_past.lines[stream].wait_count && wait == NULL; i++) {
      const struct call *one = mix_past.lines[stream].waits[i];
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
  for (size_t i = 0; i < mix_past.line_count; i++) {
    const struct due *due = last_due(&mix_past.lines[i], clock[i]);
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

void mix_check_order(void) {
  find_clocks();
  find_dues();
  uint64_t *clock = mix_new_clock();
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    const struct call *call = mix_past.everything.all[i];
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
    for (size_t k = 0; k < mix_past.line_count && call->kind == CALL_DEVICE_DONE; k++) {
      if (mix.streams[k].device.id != mix.devices[call->flags].id) continue;
      clock_at(k, call->start, clock);
      check_before(call, clock, call->end);
    }
  }
  free(clock);
}
