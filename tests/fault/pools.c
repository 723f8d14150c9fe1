/* Pools, aligned allocation and deferred frees, with a vendor that refuses calls or runs out of memory: each call of a
 * round is made to fail, memory runs out (C5.1, C5.2), and memory that held work may use is freed (C3.8). */
#include "children.h"
#include "tour.h"

#include <stdio.h>

enum { CODE = 999, NO_MEMORY = 2, MOST_CALLS = 400, MIB = 1 << 20 };

/* ---- a round ---- */

struct round {
  rill_stream stream, other, held, there;
  rill_event event;
  rill_pool pools[3];
  void *pooled[3], *aligned, *other_pooled, *plain, *second;
};

/* One call, which fails with null in its output. */
#define STEP(call, out)                                                                  \
  do {                                                                                   \
    memset(&(out), 0xa5, sizeof(out));                                                   \
    const rill_status status_ = (call);                                                  \
    if (status_ != RILL_OK) {                                                            \
      static const char zeros[sizeof(out)];                                              \
      if (memcmp(&(out), zeros, sizeof(out)) != 0) fail_msg("%s left an output", #call); \
      return status_;                                                                    \
    }                                                                                    \
  } while (0)
#define TRY(call)                           \
  do {                                      \
    const rill_status status_ = (call);     \
    if (status_ != RILL_OK) return status_; \
  } while (0)

/* Removed objects no longer exist. */
#define TAKE(call, pointer) \
  do {                      \
    TRY(call);              \
    (pointer) = NULL;       \
  } while (0)

static rill_status make(struct round *r) {
  const rill_device device = vendor.device;
  STEP(rill_stream_create(device, NULL, &r->stream), r->stream);
  STEP(rill_stream_create(device, NULL, &r->other), r->other);
  STEP(rill_stream_create(device, NULL, &r->held), r->held);
  STEP(rill_stream_create(vendor.second, NULL, &r->there), r->there);
  STEP(rill_event_create(device, NULL, &r->event), r->event);
  for (uint32_t i = 0; i < 3; i++) {
    const rill_pool_options options = { .struct_size = sizeof options, .kind = i + 1, .release_threshold = i };
    STEP(rill_pool_create(device, &options, &r->pools[i]), r->pools[i]);
    STEP(rill_pool_alloc_async(r->pools[i], r->stream, 1000 + i, &r->pooled[i]), r->pooled[i]);
  }
  STEP(rill_pool_alloc_aligned_async(r->pools[0], r->stream, 100, 1 << 22, &r->aligned), r->aligned);
  STEP(rill_pool_alloc_async(r->pools[0], r->other, 3 * MIB, &r->other_pooled), r->other_pooled);
  STEP(rill_alloc_aligned(device, 5000, 8192, RILL_MEMORY_DEVICE, &r->plain), r->plain);
  STEP(rill_alloc_aligned(device, 5000, 8192, RILL_MEMORY_PINNED, &r->second), r->second);
  return RILL_OK;
}

static rill_status use(struct round *r) {
  const uint32_t value = 4;
  TRY(rill_fill_async(r->stream, r->pooled[0], &value, 4, 250));
  TRY(rill_memory_record_use(r->pooled[0], r->other));
  TRY(rill_memory_record_use(r->plain, r->there));
  TAKE(rill_free_async(r->stream, r->pooled[0]), r->pooled[0]);
  TAKE(rill_free_async(r->stream, r->other_pooled), r->other_pooled); /* on another stream than its own */
  TAKE(rill_free(r->pooled[1]), r->pooled[1]);
  TRY(rill_stream_wait_event(r->held, r->event, 0));
  TRY(rill_fill_async(r->held, r->plain, &value, 4, 250));
  TRY(rill_memory_record_use(r->second, r->held));
  TAKE(rill_free(r->plain), r->plain); /* both are deferred */
  TAKE(rill_free(r->second), r->second);
  TAKE(rill_free(r->pooled[2]), r->pooled[2]); /* waits for every stream, including this one */
  TRY(rill_stream_record_event(r->stream, r->event, 0));
  TRY(rill_stream_synchronize(r->held));
  TRY(rill_stream_synchronize(r->other));
  TRY(rill_stream_synchronize(r->stream));
  TRY(rill_pool_trim(r->pools[0], 0));
  STEP(rill_alloc(vendor.device, 100, RILL_MEMORY_DEVICE, &r->plain), r->plain);
  TRY(rill_device_synchronize(vendor.device));
  return RILL_OK;
}

/* Releases never fail; a free that is refused leaves the memory, and works the next time. */
static void end(struct round *r) {
  void **const memory[] = { &r->pooled[0],    &r->pooled[1], &r->pooled[2], &r->aligned,
                            &r->other_pooled, &r->plain,     &r->second };
  assert_ok(rill_event_release(r->event)); /* what is held for it fails */
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) assert_ok(rill_free(*memory[i]));
  for (size_t i = 0; i < 3; i++) assert_ok(rill_pool_release(r->pools[i]));
  ignore(rill_stream_synchronize(r->held));
  assert_ok(rill_stream_release(r->stream));
  assert_ok(rill_stream_release(r->other));
  assert_ok(rill_stream_release(r->held));
  assert_ok(rill_stream_release(r->there));
  assert_ok(rill_device_synchronize(vendor.device));
}

static void clean_round(void) {
  struct round r;
  memset(&r, 0, sizeof r);
  assert_ok(make(&r));
  assert_ok(use(&r));
  end(&r);
}

/* ---- each call refused ---- */

static size_t alive;

/* Objects that stay if the vendor refuses to destroy them, since a release never fails. */
static size_t leaves_for_good(const struct vendor_function *f) {
  if (strcmp(f->field, "stream_destroy") == 0 || strcmp(f->field, "event_destroy") == 0) return 1;
  return strcmp(f->field, "context_push") == 0 || strcmp(f->field, "get_device") == 0 ? 2 : 0;
}

/* False if the function was called fewer times. */
static bool refused_round(const struct vendor_function *f, unsigned nth, int code) {
  struct round r;
  memset(&r, 0, sizeof r);
  const uint64_t calls = vendor.fake->calls(f->name);
  vendor.fake->fail_call(f->name, nth, code);
  rill_status status = make(&r);
  if (status == RILL_OK) status = use(&r);
  const bool struck = vendor.fake->calls(f->name) - calls >= nth;
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  vendor.fake->clear();
  /* Failed queries may be ignored, and failed frees are retried. */
  if (status != RILL_OK && code == NO_MEMORY) {
    assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
    if (strstr(error.message, "bytes") == NULL) fail_msg("%s: no numbers: %s", f->name, error.message);
  } else if (status == RILL_ERROR_UNSUPPORTED) {
    assert_string_equal(f->field, "device_attribute"); /* a feature that the driver does not report is unsupported */
  } else if (status != RILL_OK) {
    if (status != RILL_ERROR_BACKEND || error.native_code != code || strstr(error.message, f->name) == NULL) {
      fail_msg("%s, call %u: %s: %s", f->name, nth, rill_status_name(status), error.message);
    }
  }
  end(&r);
  const size_t now = settle();
  if (now > alive + leaves_for_good(f))
    fail_msg("%s, call %u: %zu native objects are left, not %zu", f->name, nth, now, alive);
  if (now > alive) alive = now;
  return struck;
}

static void refuse_each(int code, bool memory_only) {
  unsigned functions = 0;
  vendor_begin();
  for (int i = 0; i < 3; i++) clean_round();
  alive = settle();
  for (size_t i = 0; i < vendor_function_count; i++) {
    const struct vendor_function *f = &vendor_functions[i];
    /* The first cannot fail; the second would leave another device current. */
    if (f->name == NULL || strcmp(f->field, "context_pop") == 0 || strcmp(f->field, "set_device") == 0) continue;
    if (memory_only && strstr(f->field, "alloc") == NULL) continue;
    unsigned nth = 1;
    while (nth < MOST_CALLS && refused_round(f, nth, code)) nth++;
    assert_true(nth < MOST_CALLS);
    functions += nth > 1;
  }
  clean_round();
  assert_true(functions >= (memory_only ? 3 : 12));
}

static void every_call_of_a_round_can_fail(void) { refuse_each(CODE, false); }

/* An allocation that the driver refuses once for lack of memory frees unused memory and retries, or reports how much
 * there is. */
static void every_allocation_can_find_no_memory(void) { refuse_each(NO_MEMORY, true); }

/* ---- memory runs out: with 64 MiB ---- */

static void says_what_there_is(size_t asked) {
  char text[32];
  (void)snprintf(text, sizeof text, "%zu bytes requested", asked);
  assert_says(text);
  assert_says("bytes free of 67108864");
}

/* Unused memory of a pool is freed for rill_alloc and for other pools of its kind. */
static void unused_memory_serves_others(void) {
  rill_pool pool, other;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  rill_stream stream;
  void *p, *q;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_pool_create(vendor.device, NULL, &pool));
  assert_ok(rill_pool_create(vendor.device, NULL, &other));
  for (int round = 0; round < 3; round++) {
    assert_ok(rill_pool_alloc_async(pool, stream, 40 * MIB, &p));
    assert_fails(rill_alloc(vendor.device, 40 * MIB, RILL_MEMORY_DEVICE, &q), RILL_ERROR_OUT_OF_MEMORY);
    assert_null(q);
    says_what_there_is(40 * MIB);
    assert_fails(rill_pool_alloc_async(other, stream, 40 * MIB, &q), RILL_ERROR_OUT_OF_MEMORY);
    assert_null(q);
    says_what_there_is(40 * MIB);
    assert_ok(rill_free_async(stream, p));
    if (round == 0) assert_ok(rill_alloc(vendor.device, 40 * MIB, RILL_MEMORY_DEVICE, &q));
    if (round == 1) assert_ok(rill_pool_alloc_async(other, stream, 40 * MIB, &q));
    if (round == 2) assert_ok(rill_alloc_aligned(vendor.device, 40 * MIB, MIB, RILL_MEMORY_DEVICE, &q));
    assert_ok(rill_free(q));
    assert_ok(rill_pool_trim(other, 0));
    assert_ok(rill_pool_get_info(pool, &info));
    assert_int_equal(info.reserved, 0);
    assert_true(info.reserved_peak >= 40 * MIB);
  }
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_pool_release(other));
  assert_ok(rill_stream_release(stream));
}

/* The driver's memory is full of what other streams have freed and still use: the stream waits for it in the device. */
static void a_stream_waits_when_there_is_no_more(void) {
  rill_pool pool;
  rill_stream first, second;
  void *p, *q;
  bool complete = true;
  const uint32_t value = 1;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &first));
  assert_ok(rill_stream_create(vendor.device, NULL, &second));
  assert_ok(rill_pool_create(vendor.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, first, 40 * MIB, &p));
  vendor.fake->pause(0);
  assert_ok(rill_fill_async(first, p, &value, 4, 1));
  assert_ok(rill_free_async(first, p));
  assert_ok(rill_pool_alloc_async(pool, second, 40 * MIB, &q));
  assert_ptr_equal(p, q);
  assert_ok(rill_stream_is_complete(second, &complete));
  assert_false(complete);
  vendor.fake->resume(0);
  assert_ok(rill_free_async(second, q));
  assert_ok(rill_device_synchronize(vendor.device));
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_stream_release(first));
  assert_ok(rill_stream_release(second));
}

/* The text includes memory of deferred frees, which is reclaimed when there is no other memory and the work is done. */
static void deferred_frees_are_taken_back(void) {
  rill_stream held, other;
  rill_event event;
  void *p = NULL, *q = NULL;
  const uint32_t value = 1;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.label = "held"), &held));
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  assert_ok(rill_alloc(vendor.device, 30 * MIB, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_alloc(vendor.device, 20 * MIB, RILL_MEMORY_DEVICE, &q));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_free(q)); /* while no held work uses memory: it is available at once */
  assert_ok(rill_fill_async(held, p, &value, 4, 1));
  assert_ok(rill_free(p));
  assert_ok(rill_alloc(vendor.device, 2 * MIB, RILL_MEMORY_DEVICE, &q));
  assert_fails(rill_alloc(vendor.device, 30 * MIB, RILL_MEMORY_DEVICE, &p), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(p);
  assert_says("31457280"); /* 30 MiB */
  assert_says("held");
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_event(other, event, 0));
  vendor.fake->resume(0);
  assert_ok(rill_alloc(vendor.device, 50 * MIB, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_free(p));
  assert_ok(rill_free(q));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(held));
  assert_ok(rill_stream_release(other));
}

/* ---- when deferred frees happen ---- */

struct pair {
  rill_stream stream;
  rill_event event;
  uint32_t *memory;
};

static void hold(struct pair *pair) {
  const uint32_t value = 6;
  assert_ok(rill_stream_create(vendor.device, NULL, &pair->stream));
  assert_ok(rill_event_create(vendor.device, NULL, &pair->event));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, 64, &pair->memory));
  assert_ok(rill_stream_wait_event(pair->stream, pair->event, 0));
  assert_ok(rill_fill_async(pair->stream, pair->memory, &value, sizeof value, 64));
}

static void end_pair(struct pair *pair) {
  assert_ok(rill_event_release(pair->event));
  assert_ok(rill_stream_release(pair->stream));
}

static void free_one(void) {
  uint32_t *memory = NULL;
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, 64, &memory));
  assert_ok(rill_free(memory)); /* a call that may block */
}

/* Frees wait for work that was held before them, and not for work held later, on the same stream or another. */
static void it_is_freed_after_the_work_before_it(void) {
  struct pair first, second;
  rill_stream recorder;
  rill_event again = RILL_NULL_EVENT;
  uint32_t *other = NULL;
  const uint32_t value = 7;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &recorder));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, 64, &other));
  const size_t before = vendor.fake->live("memory");
  hold(&first);
  assert_ok(rill_free(first.memory));
  hold(&second);
  assert_ok(rill_free(second.memory));
  assert_int_equal(vendor.fake->live("memory"), before + 2);
  assert_ok(rill_stream_record_event(recorder, first.event, 0));
  free_one();
  assert_int_equal(vendor.fake->live("memory"), before + 2); /* the second one, and this */
  assert_ok(rill_event_create(vendor.device, NULL, &again));
  assert_ok(rill_stream_wait_event(first.stream, again, 0)); /* held once more */
  assert_ok(rill_fill_async(first.stream, other, &value, sizeof value, 64));
  assert_ok(rill_stream_record_event(recorder, second.event, 0));
  free_one();
  assert_int_equal(vendor.fake->live("memory"), before + 1);
  assert_ok(rill_event_release(again));
  ignore(rill_stream_synchronize(first.stream)); /* its work failed with the event */
  assert_ok(rill_free(other));
  assert_int_equal(vendor.fake->live("memory"), before - 1);
  end_pair(&first);
  end_pair(&second);
  assert_ok(rill_stream_release(recorder));
}

/* A synchronize frees it if the device has no work, and otherwise does not wait. */
static void a_synchronize_gives_it_back(void) {
  struct pair pair;
  rill_stream recorder;
  rill_event later;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &recorder));
  assert_ok(rill_event_create(vendor.device, NULL, &later));
  const size_t before = vendor.fake->live("memory");
  for (int how = 0; how < 3; how++) {
    hold(&pair);
    assert_ok(rill_free(pair.memory));
    assert_int_equal(vendor.fake->live("memory"), before + 1);
    assert_ok(rill_stream_record_event(recorder, pair.event, 0));
    assert_ok(rill_stream_record_event(pair.stream, later, 0));
    assert_ok(rill_stream_synchronize(recorder));
    assert_ok(how == 0   ? rill_stream_synchronize(pair.stream)
              : how == 1 ? rill_event_synchronize(later)
                         : rill_device_synchronize(vendor.device));
    if (how == 1) assert_ok(rill_stream_synchronize(pair.stream)); /* the event is done before the stream is */
    assert_int_equal(vendor.fake->live("memory"), before);
    end_pair(&pair);
  }
  assert_ok(rill_event_release(later));
  assert_ok(rill_stream_release(recorder));
}

/* Recording a use repeatedly leaves one event, not one for each use. */
static void recorded_uses_do_not_pile_up(void) {
  rill_stream stream, user, there;
  void *pooled, *plain;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_stream_create(vendor.device, NULL, &user));
  assert_ok(rill_stream_create(vendor.second, NULL, &there));
  assert_ok(rill_alloc_async(stream, 4096, &pooled));
  assert_ok(rill_alloc(vendor.device, 4096, RILL_MEMORY_DEVICE, &plain));
  const size_t before = settle();
  for (int i = 0; i < 5000; i++) {
    assert_ok(rill_memory_record_use(pooled, user));
    assert_ok(rill_memory_record_use(plain, there));
  }
  assert_true(settle() <= before + 8);
  assert_ok(rill_free_async(stream, pooled));
  assert_ok(rill_free(plain));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_stream_release(user));
  assert_ok(rill_stream_release(there));
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(every_call_of_a_round_can_fail),
    MODE(every_allocation_can_find_no_memory),
    MODE_WITH(unused_memory_serves_others, "RILL_FAKE_MEMORY=64"),
    MODE_WITH(a_stream_waits_when_there_is_no_more, "RILL_FAKE_MEMORY=64"),
    MODE_WITH(deferred_frees_are_taken_back, "RILL_FAKE_MEMORY=64"),
    MODE(it_is_freed_after_the_work_before_it),
    MODE(a_synchronize_gives_it_back),
    MODE(recorded_uses_do_not_pile_up),
  };
  return RUN_MODES("pools and memory that runs out", argc, argv, modes);
}
