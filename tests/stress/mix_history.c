/* Determines the required order of work from the recorded calls, and checks that the observations agree.
 *
 * A clock has a tick for each stream: everything that was submitted to the stream before that tick comes before the
 * point that the clock describes. Work is submitted when its call has returned, or when its host call has started. On
 * one stream, the clock of a call consists of the tick of its start and the clocks of the waits before it. A wait has
 * the clock of the record that it refers to. If it may refer to several records, for example because threads record the
 * event concurrently, it has what the clocks of all of them have in common. The clocks contain only what is certain,
 * whatever the order of the threads was.
 *
 * An event that is released unrecorded makes work fail: `may_fail` marks work that may have failed, which is not used
 * as evidence, and `fails` marks work that certainly failed. */
#include "mix_history.h"

#include <stdlib.h>

struct past mix_past;

void mix_add_call(struct calls *calls, struct call *call) {
  if ((calls->count & (calls->count - 1)) == 0) {
    calls->all = realloc(calls->all, (calls->count == 0 ? 1 : 2 * calls->count) * sizeof *calls->all);
    assert_non_null(calls->all);
  }
  calls->all[calls->count++] = call;
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

static void sort(struct calls *calls, int (*compare)(const void *, const void *)) {
  if (calls->count > 1) qsort(calls->all, calls->count, sizeof *calls->all, compare);
}

static void gather(void) {
  mix_past.line_count = atomic_load(&mix.stream_count);
  mix_past.lines = calloc(mix_past.line_count, sizeof *mix_past.lines);
  mix_past.recordings = calloc(atomic_load(&mix.event_count), sizeof *mix_past.recordings);
  struct calls *waits = calloc(mix_past.line_count, sizeof *waits);
  assert_true(mix_past.lines != NULL && mix_past.recordings != NULL && waits != NULL);
  for (unsigned t = 0; t <= mix.round.threads; t++) {
    for (unsigned i = 0; i < atomic_load(&mix.workers[t].count); i++)
      mix_add_call(&mix_past.everything, &mix.workers[t].calls[i]);
  }
  sort(&mix_past.everything, by_start);
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    struct call *call = mix_past.everything.all[i];
    if (call->status != RILL_OK) continue;
    if (is_wait(call)) mix_add_call(&waits[call->object->number], call);
    if (call->kind == CALL_RECORD && call->other != NULL) mix_add_call(&mix_past.recordings[call->other->number], call);
    if (call->kind == CALL_WRITE && call->data.cell < MIX_CELLS)
      mix_add_call(&mix_past.cell_writes[call->data.cell], call);
    if (call->kind == CALL_READ) mix_add_call(&mix_past.reads, call);
  }
  for (size_t i = 0; i < mix_past.line_count; i++) {
    sort(&waits[i], by_end);
    mix_past.lines[i].waits = waits[i].all;
    mix_past.lines[i].wait_count = waits[i].count;
    mix_past.lines[i].unsure_from = UINT64_MAX;
  }
  free(waits);
}

static void forget(void) {
  for (size_t i = 0; i < mix_past.line_count; i++) {
    free(mix_past.lines[i].waits);
    free(mix_past.lines[i].joined);
    free(mix_past.lines[i].dues);
  }
  for (unsigned i = 0; i < atomic_load(&mix.event_count); i++) free(mix_past.recordings[i].all);
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    free(mix_past.everything.all[i]->known.clock);
    free(mix_past.everything.all[i]->known.records);
  }
  for (unsigned i = 0; i < MIX_CELLS; i++) free(mix_past.cell_writes[i].all);
  memset(mix_past.cell_writes, 0, sizeof mix_past.cell_writes);
  free(mix_past.lines);
  free(mix_past.recordings);
  free(mix_past.everything.all);
  free(mix_past.reads.all);
  mix_past.everything = mix_past.reads = (struct calls){ NULL, 0 };
}

/* ---- host calls and kernels run exactly once ---- */

static void check_host_call(const struct call *call) {
  const unsigned times = atomic_load(&call->run.times), wanted = call->status == RILL_OK;
  if (times != wanted) mix_complain(call, "runs %u times, not %u", times, wanted);
  if (times == 0 || call->run.reported == RILL_OK) return;
  if (call->run.reported != RILL_ERROR_NOT_RECORDED || mix_is_sure(call)) {
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
  const struct calls *writes = &mix_past.cell_writes[read->data.cell];
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
    if (write == from || !mix_is_sure(write) || !is_before(write, read) || (from != NULL && !is_before(from, write)))
      continue;
    mix_complain(read, "sees %u in cell %u, which was written over before:", (unsigned)value, read->data.cell);
    if (from != NULL) mix_complain(from, "wrote it");
    mix_complain(write, "wrote %u over it", (unsigned)write->data.value);
    return;
  }
}

static void check_words(void) {
  for (size_t i = 0; i < mix_past.reads.count; i++) {
    const struct call *read = mix_past.reads.all[i], *source = read->data.source;
    for (unsigned k = 0; k < MIX_WORDS; k++) {
      const uint32_t value = read->data.seen[k];
      if (value == MIX_UNSEEN && !mix_is_sure(read)) continue;
      if (source == NULL) check_value(read, value);
      else if (value != source->data.value && mix_is_sure(source)) {
        mix_complain(read, "sees 0x%x in memory that was filled with 0x%x", (unsigned)value,
                     (unsigned)source->data.value);
      }
    }
  }
}

void mix_check_history(void) {
  const bool with_clocks = atomic_load(&mix.stream_count) <= 128; /* with many streams the clocks would be too large */
  gather();
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    const enum call_kind kind = mix_past.everything.all[i]->kind;
    if (kind == CALL_WAIT || kind == CALL_EVENT_DONE || kind == CALL_IS_RECORDED)
      mix_find_records(mix_past.everything.all[i]);
  }
  mix_find_failures();
  for (size_t i = 0; i < mix_past.everything.count; i++) {
    const struct call *call = mix_past.everything.all[i];
    if (call->kind == CALL_HOST_CALL) check_host_call(call);
    if (call->kind == CALL_WAIT || call->kind == CALL_EVENT_DONE || call->kind == CALL_IS_RECORDED)
      mix_check_question(call);
    if (call->kind == CALL_RECORD && call->status == RILL_ERROR_INVALID_ARGUMENT) mix_check_refusal(call);
  }
  for (size_t i = 0; i < mix_past.line_count; i++) check_counts(&mix.streams[i], &mix_past.lines[i]);
  if (with_clocks && !atomic_load(&mix.failed)) {
    mix_check_order();
    check_words();
  }
  forget();
}
