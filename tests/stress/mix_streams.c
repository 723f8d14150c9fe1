/* Operations of random programs on streams and events. */
#include "mix_operations.h"

#include <stdio.h>

struct object *mix_stream_at(uint32_t place) {
  return atomic_load(&mix.stream_places[place % mix.round.streams]);
}
struct object *mix_event_at(uint32_t place) {
  return atomic_load(&mix.event_places[place % mix.round.events]);
}

/* Puts an event into a place. The old event is released; if no other thread will record it, it is recorded first. */
void mix_put_event(struct worker *w, uint32_t place, struct object *event) {
  struct object *old = atomic_exchange(&mix.event_places[place % mix.round.events], event);
  if (!mix.round.abandons && !atomic_load(&old->recorded)) {
    (void)mix_record(w, mix.rescue[old->device.id == mix.devices[0].id ? 0 : 1], old, 0);
  }
  mix_release(w, old);
}

static void put_stream(struct worker *w, uint32_t place, struct object *stream) {
  mix_release(w, atomic_exchange(&mix.stream_places[place % mix.round.streams], stream));
}

/* ---- records and waits ---- */

OPERATION(record) {
  (void)mix_record(w, mix_stream_at(o->a), mix_event_at(o->b), o->c % 8 == 0 ? RILL_EVENT_EXTERNAL : 0);
}

static struct object *record_new(struct worker *w, struct object *stream, bool timing) {
  rill_event_options options = RILL_EVENT_OPTIONS_INIT;
  rill_event id;
  options.timing = timing;
  struct call *call = mix_begin(w, CALL_RECORD, stream, NULL);
  if (MIX_END(call, rill_stream_record_new_event(stream_of(stream), &options, &id), mix_full()) != RILL_OK) return NULL;
  struct object *event = mix_note_event(id, stream->device);
  if (event == NULL) {
    (void)rill_event_release(id);
    return NULL;
  }
  event->timing = timing;
  atomic_store(&event->recorded, true);
  call->other = event;
  return event;
}

OPERATION(record_new) {
  struct object *event = record_new(w, mix_stream_at(o->a), o->c % 2 == 0);
  if (event != NULL) mix_put_event(w, o->b, event);
}

OPERATION(wait) {
  static const uint32_t flags[] = {
    0, 0, 0, 0, RILL_EVENT_EXTERNAL, RILL_WAIT_IF_RECORDED, RILL_WAIT_MUST_BE_RECORDED
  };
  (void)mix_wait(w, mix_stream_at(o->a), mix_event_at(o->b), flags[o->c % 7]);
}

OPERATION(wait_stream) { (void)mix_wait_stream(w, mix_stream_at(o->a), mix_stream_at(o->b)); }

OPERATION(wait_device) {
  struct object *stream = mix_stream_at(o->a), *other = &mix.streams[o->b % mix.device_count]; /* a default stream */
  struct call *call = mix_begin(w, CALL_WAIT_STREAM, stream, other);
  MIX_END(call, rill_stream_wait_device(stream_of(stream), other->device),
          mix_not_held(stream) | mix_failed() | mix_full());
}

/* Uses the stream's cached event, which is released with the stream. */
OPERATION(cached_event) {
  struct object *stream = mix_stream_at(o->a), *other = mix_stream_at(o->b);
  rill_event event;
  bool answer;
  struct call *call = mix_begin(w, CALL_OTHER, other, NULL);
  if (MIX_END(call, rill_stream_cached_event(stream_of(other), &event), 0) != RILL_OK) return;
  call = mix_begin(w, CALL_WAIT_CACHED, stream, other);
  MIX_END(call, rill_stream_wait_event(stream_of(stream), event, RILL_WAIT_IF_RECORDED),
          MIX_MAY(NOT_RECORDED) | mix_full());
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_event_is_ready(event, &answer), MIX_MAY(NOT_RECORDED) | MIX_MAY(STALE_HANDLE));
  if (stream->device.id != other->device.id) return;
  call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, rill_stream_record_event(stream_of(stream), event, 0),
          MIX_MAY(INVALID_ARGUMENT) | MIX_MAY(STALE_HANDLE));
  if (call->status == RILL_OK) mix_complain(call, "a cached event is recorded by hand");
}

/* Orders the work of one stream before that of the next with an event that is released immediately. */
static void hand_over(struct worker *w, struct object *from, struct object *to) {
  struct object *event = record_new(w, from, false);
  if (event == NULL) return;
  (void)mix_wait(w, to, event, 0);
  mix_release(w, event);
}

/* Hands over to another stream and back, several times. */
OPERATION(hand_over) {
  for (uint32_t i = 0; i <= o->c % 4; i++) {
    hand_over(w, mix_stream_at(o->a), mix_stream_at(o->b));
    hand_over(w, mix_stream_at(o->b), mix_stream_at(o->a));
  }
}

/* Hands over from stream to stream, through all streams. */
OPERATION(relay) {
  for (uint32_t i = 1; i < mix.round.streams && mix_has_room(w); i++) {
    hand_over(w, mix_stream_at(o->a + i - 1), mix_stream_at(o->a + i));
  }
}

/* ---- queries ---- */

OPERATION(is_ready) {
  struct object *event = mix_event_at(o->b);
  struct call *call = mix_begin(w, CALL_EVENT_DONE, event, NULL);
  MIX_END(call, rill_event_is_ready(event_of(event), &call->answer), mix_failed());
}

OPERATION(is_recorded) {
  struct object *event = mix_event_at(o->b);
  struct call *call = mix_begin(w, CALL_IS_RECORDED, event, NULL);
  MIX_END(call, rill_event_is_recorded(event_of(event), &call->answer), mix_failed());
}

/* Checks a query: if the host has seen a kernel start, the stream must not be complete before the kernel has ended.
 * Host calls are checked by their ticks. */
OPERATION(is_complete) {
  struct object *stream = mix_stream_at(o->a);
  const unsigned started = __atomic_load_n(stream->started, __ATOMIC_ACQUIRE);
  struct call *call = mix_begin(w, CALL_STREAM_DONE, stream, NULL);
  MIX_END(call, rill_stream_is_complete(stream_of(stream), &call->answer), 0);
  const unsigned ended = __atomic_load_n(stream->ended, __ATOMIC_ACQUIRE);
  if (call->answer && ended < started) {
    mix_complain(call, "complete, with %u kernels seen to start and %u ended", started, ended);
  }
}

OPERATION(elapsed) {
  struct object *start = mix_event_at(o->a), *end = mix_event_at(o->b);
  float ms;
  uint32_t may = MIX_MAY(NOT_RECORDED) | MIX_MAY(NOT_READY);
  if (!start->timing || !end->timing) may = MIX_MAY(TIMING_DISABLED);
  if (start->device.id != end->device.id) may |= MIX_MAY(WRONG_DEVICE);
  struct call *call = mix_begin(w, CALL_EVENT_DONE, end, start);
  MIX_END(call, rill_event_elapsed_time(event_of(start), event_of(end), &ms), may);
  call->answer = call->status == RILL_OK;
  if (call->answer && may != (MIX_MAY(NOT_RECORDED) | MIX_MAY(NOT_READY))) {
    mix_complain(call, "gives a time of events without timing, or of two devices");
  }
}

/* Queries properties that never change. */
OPERATION(tell) {
  struct object *stream = mix_stream_at(o->a), *event = mix_event_at(o->b);
  rill_device device;
  uint64_t id = 0;
  int32_t priority;
  bool answer;
  struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
  if (MIX_END(call, rill_stream_device(stream_of(stream), &device), 0) == RILL_OK && device.id != stream->device.id) {
    mix_complain(call, "is of another device than it was created on");
  }
  call = mix_begin(w, CALL_OTHER, stream, NULL);
  if (MIX_END(call, rill_stream_id(stream_of(stream), &id), 0) == RILL_OK) {
    uint64_t known = 0;
    if (!stream->shared && !atomic_compare_exchange_strong(&stream->stream_id, &known, id) && known != id) {
      mix_complain(call, "gives %llu, and gave %llu", (unsigned long long)id, (unsigned long long)known);
    }
  }
  call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, rill_stream_priority(stream_of(stream), &priority), 0);
  call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, rill_stream_is_capturing(stream_of(stream), &answer), 0);
  if (answer) mix_complain(call, "a stream captures that nobody made capture");
  call = mix_begin(w, CALL_OTHER, event, NULL);
  MIX_END(call, rill_event_device(event_of(event), &device), 0);
}

/* ---- the host waits ---- */

static void check_time(const struct call *call, uint64_t since, uint64_t ns) {
  if (call->status == RILL_ERROR_TIMEOUT && now_ns() - since < ns) {
    mix_complain(call, "gives TIMEOUT %llu ns early", (unsigned long long)(ns - (now_ns() - since)));
  }
}

OPERATION(wait_a_moment) {
  const uint64_t ns = o->c % 2 == 0 ? 0 : o->d % mix.round.delay_ns, since = now_ns();
  const uint32_t may = MIX_MAY(TIMEOUT) | mix_failed();
  struct call *call;
  if (o->c % 4 < 2) {
    struct object *stream = mix_stream_at(o->a);
    call = mix_begin(w, CALL_STREAM_DONE, stream, NULL);
    MIX_END(call, rill_stream_synchronize_for(stream_of(stream), ns), may);
  } else {
    struct object *event = mix_event_at(o->b);
    call = mix_begin(w, CALL_EVENT_DONE, event, NULL);
    MIX_END(call, rill_event_synchronize_for(event_of(event), ns), may);
  }
  call->answer = call->status == RILL_OK;
  check_time(call, since, ns);
}

OPERATION(synchronize) {
  mix_before_blocking(w);
  struct call *call;
  if (o->c % 8 == 0) {
    call = mix_begin(w, CALL_DEVICE_DONE, NULL, NULL);
    call->flags = o->d % mix.device_count;
    MIX_END(call, rill_device_synchronize(mix.devices[call->flags]), 0);
  } else if (o->c % 2 == 0) {
    struct object *stream = mix_stream_at(o->a);
    call = mix_begin(w, CALL_STREAM_DONE, stream, NULL);
    MIX_END(call, rill_stream_synchronize(stream_of(stream)), mix_failed());
  } else {
    struct object *event = mix_event_at(o->b);
    call = mix_begin(w, CALL_EVENT_DONE, event, NULL);
    MIX_END(call, rill_event_synchronize(event_of(event)), mix_failed());
  }
  call->answer = call->status == RILL_OK;
}

/* ---- host calls ---- */

static void run_host_call(void *user, rill_status status) {
  struct call *call = user;
  call->run.start = mix_tick();
  call->run.reported = status;
  atomic_fetch_add(&call->run.times, 1);
  if (call->run.ns != 0) let_pass_ns(call->run.ns);
  atomic_fetch_add(&call->object->reported, 1);
  call->run.end = mix_tick();
}

OPERATION(host_call) {
  struct object *stream = mix_stream_at(o->a);
  struct call *call = mix_begin(w, CALL_HOST_CALL, stream, NULL);
  call->run.ns = o->c % 2 == 0 ? o->d % mix.round.delay_ns : 0;
  MIX_END(call, rill_stream_host_call(stream_of(stream), run_host_call, call), mix_full());
  if (call->status == RILL_OK) atomic_fetch_add(&stream->host_calls, 1);
}

/* ---- creation and destruction ---- */

OPERATION(new_event) {
  char label[16];
  (void)snprintf(label, sizeof label, "e%u", o->d % 1000);
  rill_event_options options = RILL_EVENT_OPTIONS_INIT;
  options.timing = o->c % 4 == 0;
  options.signaled = o->c % 16 < 2;
  options.blocking_sync = o->c % 8 == 3;
  options.label = o->d % 2 == 0 ? label : NULL;
  struct object *event = mix_new_event(w, mix.devices[o->b % mix.round.events % mix.device_count], &options);
  if (event != NULL) mix_put_event(w, o->b, event);
}

OPERATION(new_stream) {
  static const int32_t priorities[] = { 0, RILL_PRIORITY_HIGH, RILL_PRIORITY_LOW, -1000 };
  rill_stream_options options = RILL_STREAM_OPTIONS_INIT;
  options.priority = priorities[o->c % 4];
  options.label = o->d % 2 == 0 ? "a stream" : NULL;
  const uint32_t place = o->a % mix.round.streams;
  if (place < mix.device_count) return; /* default streams are not replaced */
  struct object *stream = mix_new_stream(w, mix.devices[place % mix.device_count], &options);
  if (stream != NULL) put_stream(w, place, stream);
}

/* Takes a reference, which keeps the handle valid while this thread has it. */
OPERATION(share) {
  struct object *object = o->c % 2 == 0 ? mix_stream_at(o->a) : mix_event_at(o->b);
  atomic_fetch_add(&object->references, 1);
  struct call *call = mix_begin(w, CALL_OTHER, object, NULL);
  if (object->is_stream) {
    MIX_END(call, rill_stream_retain(stream_of(object)), 0);
  } else {
    MIX_END(call, rill_event_retain(event_of(object)), 0);
  }
  if (call->status != RILL_OK) {
    if (atomic_fetch_sub(&object->references, 1) == 1) atomic_store(&object->release_end, mix_tick());
    return;
  }
  if (object->is_stream) {
    call = mix_begin(w, CALL_STREAM_DONE, object, NULL);
    MIX_END(call, rill_stream_is_complete(stream_of(object), &call->answer), 0);
  } else {
    rill_device device;
    call = mix_begin(w, CALL_OTHER, object, NULL);
    MIX_END(call, rill_event_device(event_of(object), &device), 0);
  }
  if (call->status != RILL_OK)
    mix_complain(call, "a handle that this thread has retained gives %s", rill_status_name(call->status));
  mix_release(w, object);
}

/* Makes a call with one invalid argument; it must be refused for this reason, whatever else is valid. */
OPERATION(misuse) {
  struct object *stream = mix_stream_at(o->a), *event = mix_event_at(o->b);
  const uint32_t bad = MIX_MAY(INVALID_HANDLE);
  bool answer;
  struct call *call = mix_begin(w, CALL_OTHER, stream, event);
  switch (o->c % 5) {
    case 0: MIX_END(call, rill_stream_wait_event(stream_of(event), event_of(stream), 0), bad); break;
    case 1: MIX_END(call, rill_stream_record_event(stream_of(stream), RILL_NULL_EVENT, 0), bad); break;
    case 2:
      MIX_END(call, rill_stream_wait_event(stream_of(stream), event_of(event), 3), MIX_MAY(INVALID_ARGUMENT));
      break;
    case 3: MIX_END(call, rill_event_is_ready((rill_event){ event->id | UINT64_C(1) << 62 }, &answer), bad); break;
    default: MIX_END(call, rill_stream_host_call(stream_of(stream), NULL, NULL), MIX_MAY(INVALID_ARGUMENT)); break;
  }
  if (call->status == RILL_OK) mix_complain(call, "is not refused");
}

/* ---- native handles ---- */

/* Obtains the native handle. From then on a stream of a GPU is never held; on the CPU nothing changes. Default streams
 * are excluded, because the effect would last for all later rounds. */
OPERATION(native) {
  struct object *stream = mix_stream_at(o->a);
  uintptr_t native = 0;
  if (stream->borrowed) return;
  if (dut.gpu) atomic_store(&stream->native_given, true);
  struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, rill_stream_native(stream_of(stream), &native), MIX_MAY(NOT_READY));
  if (call->status == RILL_OK && (native != 0) != dut.gpu && !stream->imported)
    mix_complain(call, "gives 0x%llx", (unsigned long long)native);
}

/* Imports the native handle of a stream that rill has created, which returns the same handle with an additional
 * reference. For other places, `import` uses the vendor's null and legacy streams. */
static void import_own(struct worker *w, struct object *stream) {
  uintptr_t native = 0;
  rill_stream again = RILL_NULL_STREAM;
  atomic_store(&stream->native_given, true);
  atomic_fetch_add(&stream->references, 1);
  struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
  if (MIX_END(call, rill_stream_retain(stream_of(stream)), 0) != RILL_OK) {
    if (atomic_fetch_sub(&stream->references, 1) == 1) atomic_store(&stream->release_end, mix_tick());
    return;
  }
  call = mix_begin(w, CALL_OTHER, stream, NULL);
  if (MIX_END(call, rill_stream_native(stream_of(stream), &native), MIX_MAY(NOT_READY)) == RILL_OK) {
    call = mix_begin(w, CALL_OTHER, stream, NULL);
    if (MIX_END(call, rill_stream_import(stream->device, native, NULL, &again), 0) == RILL_OK) {
      if (again.id != stream->id)
        mix_complain(call, "gives 0x%llx, not the stream's own handle", (unsigned long long)again.id);
      call = mix_begin(w, CALL_OTHER, stream, NULL);
      MIX_END(call, rill_stream_release(again), 0);
    }
  }
  mix_release(w, stream);
}

OPERATION(import) {
  rill_stream id;
  const uint32_t place = o->a % mix.round.streams;
  if (!dut.gpu || place < mix.device_count) return;
  if (o->c % 2 == 0) {
    import_own(w, mix_stream_at(place));
    return;
  }
  const rill_device device = mix.devices[place % mix.device_count];
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_stream_import(device, o->d % 2, NULL, &id), 0) != RILL_OK) return;
  struct object *stream = mix_note_stream(id, device);
  if (stream == NULL) {
    (void)rill_stream_release(id);
    return;
  }
  stream->imported = stream->shared = true;
  put_stream(w, place, stream);
}
