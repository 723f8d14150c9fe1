/* The calls and objects of a random program, and how they are recorded. */
#include "mix.h"

#include <stdio.h>

struct mix mix;

uint64_t mix_hash(uint64_t a, uint64_t b) { /* splitmix64 */
  uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b + UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* Relaxed, so that the clock does not hide missing ordering in the library from the race detector. */
uint64_t mix_tick(void) {
  static _Atomic uint64_t last;
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* ---- reports of problems ---- */

static void print_object(FILE *file, const struct object *o) {
  if (o != NULL)
    (void)fprintf(file, ", %s%s %u (0x%llx)", o->imported ? "imported " : "", o->is_stream ? "stream" : "event",
                  o->number, (unsigned long long)o->id);
}

void mix_complain(const struct call *call, const char *format, ...) {
  static _Atomic unsigned complaints;
  va_list arguments;
  va_start(arguments, format);
  flockfile(stderr);
  if (!atomic_exchange(&mix.failed, true)) atomic_store(&complaints, 0);
  if (atomic_fetch_add(&complaints, 1) < 12) {
    if (call != NULL) {
      mix_print_operation(stderr, call->thread, call->operation);
      const char *text = call->text != NULL ? call->text : "";
      (void)fprintf(stderr, "  %.*s", (int)strcspn(text, "("), text);
      print_object(stderr, call->object);
      print_object(stderr, call->other);
      (void)fprintf(stderr, ", ticks %llu to %llu\n", (unsigned long long)call->start, (unsigned long long)call->end);
    }
    (void)fputs("  ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputs("\n", stderr);
  }
  funlockfile(stderr);
  va_end(arguments);
}

/* ---- calls ---- */

struct call *mix_begin(struct worker *w, enum call_kind kind, struct object *object, struct object *other) {
  const unsigned index = atomic_fetch_add_explicit(&w->count, 1, memory_order_relaxed);
  if (index == MIX_CALLS) abort(); /* an operation must not make more calls than mix_has_room reserves */
  struct call *call = &w->calls[index];
  call->kind = kind;
  call->object = object;
  call->other = other;
  call->thread = w->index;
  call->operation = atomic_load_explicit(&w->operation, memory_order_relaxed);
  call->start = mix_tick();
  return call;
}

/* Returns what is known about stale objects at the end of a call: 0 if none was stale, 1 if one may have been, 2 if one
 * was. */
static int staleness(const struct call *call) {
  int result = 0;
  const struct object *const objects[] = { call->object, call->other };
  for (int i = 0; i < 2; i++) {
    if (objects[i] == NULL || atomic_load(&objects[i]->release_start) == 0) continue;
    const uint64_t end = atomic_load(&objects[i]->release_end);
    const bool lives_on = objects[i]->shared || (i == 1 && call->kind == CALL_WAIT_CACHED);
    const int one = end != 0 && end < call->start && !lives_on ? 2 : 1;
    if (one > result) result = one;
  }
  return result;
}

/* Returns whether a capture was in progress during the call; the call may have invalidated it by waiting for work or
 * allocating driver memory. */
static bool may_break_capture(const struct call *call) {
  const bool there = atomic_load(&mix.captures) > 0 || atomic_load(&mix.capture_ended) > call->start;
  return there && call->kind != CALL_RECORD && call->kind != CALL_HOST_CALL;
}

rill_status mix_end(struct call *call, const char *text, rill_status status, uint32_t allowed) {
  call->end = mix_tick();
  call->text = text;
  call->status = status;
  const int stale = staleness(call);
  if (status == RILL_OK) {
    if (stale == 2) mix_complain(call, "succeeds, though the last reference had gone before");
    return status;
  }
  rill_error error = RILL_ERROR_INIT;
  if (rill_last_error(&error) != RILL_OK || error.status != status || error.message[0] == '\0') {
    mix_complain(call, "gives %s, and the last error is: %s", rill_status_name(status), rill_last_error_text());
  }
  if (status == RILL_ERROR_CAPTURE_ACTIVE && may_break_capture(call)) return status;
  const bool is_stale = status == RILL_ERROR_STALE_HANDLE && stale != 0;
  if (!is_stale && ((allowed >> status) & 1) == 0) {
    mix_complain(call, "gives %s: %s", rill_status_name(status), rill_last_error_text());
  }
  return status;
}

/* ---- objects ---- */

static struct object *note(struct object *all, _Atomic unsigned *count, unsigned most, uint64_t id,
                           rill_device device) {
  unsigned number = atomic_load(count);
  do {
    if (number == most) return NULL;
  } while (!atomic_compare_exchange_weak(count, &number, number + 1));
  struct object *o = &all[number];
  o->id = id;
  o->device = device;
  o->number = number;
  o->is_stream = all == mix.streams;
  atomic_store(&o->references, 1);
  o->started = mix.counters + 3 * number;
  o->ended = o->started + 1;
  o->added = o->started + 2;
  return o;
}

struct object *mix_note_stream(rill_stream stream, rill_device device) {
  return note(mix.streams, &mix.stream_count, MIX_STREAMS, stream.id, device);
}

struct object *mix_note_event(rill_event event, rill_device device) {
  return note(mix.events, &mix.event_count, MIX_EVENTS, event.id, device);
}

struct object *mix_new_stream(struct worker *w, rill_device device, const rill_stream_options *options) {
  rill_stream stream;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_stream_create(device, options, &stream), 0) != RILL_OK) return NULL;
  struct object *o = mix_note_stream(stream, device);
  if (o == NULL) (void)rill_stream_release(stream);
  return o;
}

struct object *mix_new_event(struct worker *w, rill_device device, const rill_event_options *options) {
  rill_event event;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_event_create(device, options, &event), 0) != RILL_OK) return NULL;
  struct object *o = mix_note_event(event, device);
  if (o == NULL) {
    (void)rill_event_release(event);
    return NULL;
  }
  o->timing = options->timing;
  o->signaled = options->signaled;
  return o;
}

void mix_release(struct worker *w, struct object *o) {
  if (o->borrowed) return;
  uint64_t none = 0;
  (void)atomic_compare_exchange_strong(&o->release_start, &none, mix_tick());
  struct call *call = mix_begin(w, CALL_OTHER, o, NULL);
  rill_status status;
  if (o->is_stream) {
    status = MIX_END(call, rill_stream_release(stream_of(o)), 0);
  } else {
    status = MIX_END(call, rill_event_release(event_of(o)), 0);
  }
  if (status != RILL_OK) mix_complain(call, "a reference of the caller's is not there any more");
  if (atomic_fetch_sub(&o->references, 1) == 1) atomic_store(&o->release_end, mix_tick());
}

/* ---- calls that several operations make ---- */

rill_status mix_record(struct worker *w, struct object *stream, struct object *event, uint32_t flags) {
  const bool elsewhere = stream->device.id != event->device.id;
  struct call *call = mix_begin(w, CALL_RECORD, stream, event);
  MIX_END(call, rill_stream_record_event(stream_of(stream), event_of(event), flags),
          elsewhere ? MIX_MAY(WRONG_DEVICE) : MIX_MAY(INVALID_ARGUMENT) | mix_full());
  if (call->status != RILL_OK) return call->status;
  if (elsewhere) mix_complain(call, "records an event of another device");
  atomic_store(&event->recorded, true);
  return RILL_OK;
}

rill_status mix_wait(struct worker *w, struct object *stream, struct object *event, uint32_t flags) {
  struct call *call = mix_begin(w, CALL_WAIT, stream, event);
  call->flags = flags;
  return MIX_END(call, rill_stream_wait_event(stream_of(stream), event_of(event), flags),
                 MIX_MAY(NOT_RECORDED) | mix_full());
}

rill_status mix_wait_stream(struct worker *w, struct object *stream, struct object *other) {
  struct call *call = mix_begin(w, CALL_WAIT_STREAM, stream, other);
  return MIX_END(call, rill_stream_wait_stream(stream_of(stream), stream_of(other)),
                 mix_not_held(stream) | mix_failed() | mix_full());
}

void mix_let_go(struct worker *w) {
  for (unsigned i = 0; i < mix.round.events && mix_has_room(w); i++) {
    struct object *event = atomic_load(&mix.event_places[i]);
    if (atomic_load(&event->recorded)) continue;
    (void)mix_record(w, mix.rescue[event->device.id == mix.rescue[0]->device.id ? 0 : 1], event, 0);
  }
}
