/* What a trace costs in calls of the driver.  While queries and times are made to hang, the thread of the trace stands
 * still, so all calls are those of the submitting thread, and one that asked the driver would never return. */
#include "children.h"
#include "vendor.h"

#include <stdio.h>
#include <unistd.h>

enum { BYTES = 256, OPERATIONS = 1000, MANY = 10000, MOST = 16384, SPARE = 8192 };

static void *memory;
static char path[64];

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

struct counts {
  uint64_t records, events, waits, queries;
};
static struct counts counts(void) {
  return (struct counts){ vendor_calls("event_record"), vendor_calls("event_create"), vendor_calls("stream_wait_event"),
                          vendor_calls("event_query") + vendor_calls("event_elapsed_time") };
}
static struct counts since(struct counts before) {
  const struct counts now = counts();
  return (struct counts){ now.records - before.records, now.events - before.events, now.waits - before.waits,
                          now.queries - before.queries };
}

static void fill(rill_stream stream) {
  const uint32_t zero = 0;
  assert_ok(rill_fill_async(stream, memory, &zero, sizeof zero, BYTES / sizeof zero));
}

static void copy(rill_stream stream) { assert_ok(rill_copy_async(stream, memory, memory, BYTES)); }

/* Starts a trace, in which each stream has done something. */
static void start(const rill_stream *streams, unsigned count) {
  assert_ok(rill_trace_start(RILL_TRACE_OPTIONS(.path = path)));
  for (unsigned i = 0; i < count; i++) fill(streams[i]);
  assert_ok(rill_device_synchronize(vendor.device));
}

/* From here on nothing completes, and only the submitting thread calls the driver. */
static void stand_still(void) {
  vendor.fake->pause(0);
  vendor.fake->hang(vendor_name("event_query"));
  vendor.fake->hang(vendor_name("event_elapsed_time"));
}
static void go_on(void) {
  vendor.fake->clear();
  vendor.fake->resume(0);
}

static char *stop(void) {
  assert_ok(rill_trace_stop());
  FILE *const file = fopen(path, "r");
  static char text[8 << 20];
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  assert_int_equal(fclose(file), 0);
  assert_int_equal(unlink(path), 0);
  return text;
}
static unsigned count_of(const char *text, const char *pattern) {
  unsigned count = 0;
  for (const char *at = text; (at = strstr(at, pattern)) != NULL; at++) count++;
  return count;
}
/* Returns a number of the last line, which says how many operations are missing. */
static unsigned missing(const char *text, const char *name) {
  const char *const end = strstr(text, "\"end of the trace\"");
  assert_non_null(end);
  const char *const at = strstr(end, name);
  assert_non_null(at);
  return (unsigned)strtoul(at + strlen(name) + 2, NULL, 10);
}

static void begin(void) {
  vendor_begin();
  (void)snprintf(path, sizeof path, "/tmp/rill-tracing-test-%ld.json", (long)getpid());
  assert_ok(rill_alloc(vendor.device, BYTES, RILL_MEMORY_DEVICE, &memory));
}
static void end(const rill_stream *streams, unsigned count) {
  for (unsigned i = 0; i < count; i++) assert_ok(rill_stream_release(streams[i]));
  assert_ok(rill_free(memory));
  vendor_end();
}
static rill_stream make_stream(void) {
  rill_stream stream;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  return stream;
}
static rill_event make_event(void) {
  rill_event event;
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  return event;
}

static void an_operation_costs_one_event(void) {
  begin();
  rill_stream stream = make_stream();
  start(&stream, 1);
  stand_still();
  fill(stream); /* the host has seen the stream idle, so the start of this one has an event also */
  const struct counts before = counts();
  for (unsigned i = 0; i < OPERATIONS; i++) {
    if (i % 3 == 0) fill(stream);
    if (i % 3 == 1) copy(stream);
    if (i % 3 == 2) assert_ok(rill_stream_host_call(stream, do_nothing, NULL));
  }
  const struct counts used = since(before);
  go_on();
  const char *const text = stop();
  assert_int_equal(used.records, OPERATIONS);
  assert_int_equal(used.events, 0);
  assert_int_equal(count_of(text, "\"cat\":\"copy\""), OPERATIONS / 3);
  assert_int_equal(count_of(text, "\"cat\":\"host call\""), OPERATIONS / 3);
  assert_int_equal(missing(text, "dropped"), 0);
  end(&stream, 1);
}

/* The order of a pipeline: a copy, three kernels and a copy, each on its own stream and after the previous one. */
static void a_wait_costs_none(void) {
  enum { TILES = 100, SLOTS = 4 };
  begin();
  rill_stream streams[3];
  rill_event copied = make_event(), computed = make_event(), freed[SLOTS];
  for (unsigned i = 0; i < 3; i++) streams[i] = make_stream();
  for (unsigned i = 0; i < SLOTS; i++) freed[i] = make_event();
  start(streams, 3);
  stand_still();
  for (unsigned i = 0; i < 3; i++) fill(streams[i]);
  const struct counts before = counts();
  for (unsigned i = 0; i < TILES; i++) {
    if (i >= SLOTS) assert_ok(rill_stream_wait_event(streams[0], freed[i % SLOTS], 0));
    copy(streams[0]);
    assert_ok(rill_stream_record_event(streams[0], copied, 0));
    assert_ok(rill_stream_wait_event(streams[1], copied, 0));
    for (unsigned k = 0; k < 3; k++) fill(streams[1]);
    assert_ok(rill_stream_record_event(streams[1], computed, 0));
    assert_ok(rill_stream_wait_event(streams[2], computed, 0));
    copy(streams[2]);
    assert_ok(rill_stream_record_event(streams[2], freed[i % SLOTS], 0));
  }
  const struct counts used = since(before);
  go_on();
  const char *const text = stop();
  assert_int_equal(used.records, (3 + 5) * TILES); /* three are the program's own */
  assert_int_equal(used.waits, 3 * TILES - SLOTS);
  assert_int_equal(used.events, 0);
  assert_int_equal(count_of(text, "\"name\":\"wait\""), 3 * TILES - SLOTS);
  assert_int_equal(count_of(text, "\"ph\":\"s\""), 3 * TILES);
  assert_int_equal(count_of(text, "\"ph\":\"f\""), 3 * TILES - SLOTS);
  assert_int_equal(missing(text, "dropped"), 0);
  assert_ok(rill_event_release(copied));
  assert_ok(rill_event_release(computed));
  for (unsigned i = 0; i < SLOTS; i++) assert_ok(rill_event_release(freed[i]));
  end(streams, 3);
}

/* Ten thousand operations outstanding are all timed; of more than MOST, the rest is dropped and costs no event.  The
 * one before them may not have been written yet. */
static void is_bounded(void) {
  begin();
  rill_stream stream = make_stream();
  start(&stream, 1);
  stand_still();
  for (unsigned i = 0; i < MANY; i++) fill(stream);
  const struct counts before = counts();
  for (unsigned i = MANY; i < 2 * MOST; i++) fill(stream);
  const struct counts used = since(before);
  const size_t live = vendor.fake->live("event");
  go_on();
  const char *const text = stop();
  const unsigned written = count_of(text, "\"cat\":\"fill\"");
  assert_in_range(used.records, MOST - MANY - 1, MOST - MANY);
  assert_in_range(written, MOST, MOST + 1);
  assert_int_equal(written + missing(text, "dropped"), 2 * MOST + 1);
  assert_in_range(live, MOST - 1, MOST + SPARE + 64);
  end(&stream, 1);
}

int main(int argc, char **argv) {
  static const struct mode modes[] = { MODE(an_operation_costs_one_event), MODE(a_wait_costs_none), MODE(is_bounded) };
  return RUN_MODES("tracing", argc, argv, modes);
}
