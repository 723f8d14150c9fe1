/* Determines which record each call with an event refers to, and what fails when an event is released unrecorded;
 * checks that the results of event queries agree (mix_history.c). */
#include "mix_history.h"

#include <stdlib.h>

/* ---- which record a call refers to ---- */

/* Finds the records that a call may refer to. A query may also refer to a record that started during the query; a wait
 * may also refer to a later record. */
void mix_find_records(struct call *call) {
  const struct object *event = call->kind == CALL_WAIT ? call->other : call->object;
  const struct calls *all = &mix_past.recordings[event->number];
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
    if (now || (maybe_never && holds && record->start <= first_end)) mix_add_call(&found, record);
  }
  call->known.records = found.all;
  call->known.record_count = found.count;
  call->known.may_pass = maybe_never && !holds;
}

/* ---- failures of work that waited for an event which went unrecorded ---- */

static bool may_fail(const struct call *call) {
  if (mix_past.lines[call->object->number].unsure_from < call->end) return true; /* including its dependencies */
  if (call->kind == CALL_RECORD) return false;
  if (call->kind != CALL_WAIT) return mix_past.lines[call->other->number].unsure_from < call->end;
  const uint64_t released = atomic_load(&call->other->release_start);
  if (released != 0 && !call->known.may_pass) {
    bool recorded = false;
    for (size_t i = 0; i < mix_past.recordings[call->other->number].count; i++) {
      const struct call *record = mix_past.recordings[call->other->number].all[i];
      recorded |= record->end < released && !record->known.may_fail;
    }
    if (!recorded && mix.round.abandons) return true;
  }
  for (size_t i = 0; i < call->known.record_count; i++) {
    if (call->known.records[i]->known.may_fail) return true;
  }
  return false;
}

/* Returns whether a call is certain to fail because of `cause`. These are certain to fail: a wait for the unrecorded
 * event, if it is the first wait of its stream that may fail and all earlier waits are over; a record after such a
 * wait, if nothing else may have failed earlier; and a wait for such a record. */
static bool fails_with(struct call *call, const struct call *cause) {
  call->known.fails_from = cause->known.fails_from;
  call->known.fails_until = cause->known.fails_until;
  call->known.cause = cause;
  return true;
}

/* Returns whether the stream was certainly not held before the tick. */
static bool is_free(const struct object *stream, uint64_t tick) {
  const struct line *line = &mix_past.lines[stream->number];
  for (size_t i = 0; i < line->wait_count; i++) {
    if (line->waits[i]->start < tick) return false;
  }
  return true;
}

/* Returns whether a wait is certainly over at a tick. */
static bool is_over(const struct call *wait, uint64_t tick) {
  if (wait->kind != CALL_WAIT) return is_free(wait->other, wait->end);
  for (size_t i = 0; i < wait->known.record_count; i++) {
    const struct call *record = wait->known.records[i];
    if (record->end > tick || !is_free(record->object, record->end)) return false;
  }
  return wait->known.record_count > 0;
}

static bool comes_to_it(const struct call *wait, uint64_t tick) {
  const struct line *line = &mix_past.lines[wait->object->number];
  for (size_t i = 0; i < line->wait_count; i++) {
    const struct call *other = line->waits[i];
    if (other != wait && other->start < wait->end && !is_over(other, tick)) return false;
  }
  return true;
}

static bool fails(struct call *call) {
  const struct line *line = &mix_past.lines[call->object->number];
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
  return mix_past.recordings[event->number].count == 0 && call->known.fails_until != 0 &&
         call->end < call->known.fails_from && comes_to_it(call, call->known.fails_from);
}

static bool find_may_fail(struct call *call) {
  if (call->known.may_fail || !may_fail(call)) return false;
  call->known.may_fail = true;
  if (is_wait(call)) {
    uint64_t *from = &mix_past.lines[call->object->number].unsure_from;
    *from = least(*from, call->start);
  }
  return true;
}

static bool find_fails(struct call *call) { return !call->known.fails && (call->known.fails = fails(call)); }

void mix_find_failures(void) {
  bool (*const steps[])(struct call *) = { find_may_fail, find_fails };
  for (int step = 0; step < 2; step++) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < mix_past.everything.count; i++) {
        struct call *call = mix_past.everything.all[i];
        if (call->status == RILL_OK && (is_wait(call) || call->kind == CALL_RECORD)) changed |= steps[step](call);
      }
    }
  }
}

/* ---- answers about events ---- */

/* Returns whether the event's last record failed and it was not recorded again. */
static bool has_failed(const struct call *call) {
  if (call->known.record_count != 1 || call->known.may_pass) return false;
  const struct call *record = call->known.records[0];
  const bool at_once = record->known.cause == NULL || record->known.cause->known.cause == NULL;
  return record->known.fails && record->known.fails_until < call->start && (at_once || mix.round.threads == 1);
}

void mix_check_question(const struct call *call) {
  const struct object *event = call->kind == CALL_WAIT ? call->other : call->object;
  const struct calls *all = &mix_past.recordings[event->number];
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

/* Returns whether work submitted to a stream before a tick may wait, directly or indirectly, for the event whose record
 * was refused. */
static bool may_wait_for(size_t stream, uint64_t tick, const struct call *refused, uint64_t *seen) {
  if (seen[stream] >= tick) return false;
  seen[stream] = tick;
  for (size_t i = 0; i < mix_past.lines[stream].wait_count; i++) {
    const struct call *wait = mix_past.lines[stream].waits[i];
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

/* Checks a refused record: it must be one that would wait for itself. */
void mix_check_refusal(const struct call *call) {
  uint64_t *seen = mix_new_clock();
  const struct calls *all = &mix_past.recordings[call->other->number];
  bool may = true;
  for (size_t i = 0; i < all->count; i++) may &= all->all[i]->end >= call->start;
  may = may && may_wait_for(call->object->number, call->end, call, seen);
  if (!may && !mix.round.abandons) mix_complain(call, "is refused, though nothing before it waits for the event");
  free(seen);
}
