/* rill_stream_import. The CPU has no native streams and reports UNSUPPORTED. */
#include "support/native.h"

#include <pthread.h>

static rill_status import_on(rill_device device, uintptr_t native, const rill_import_options *options,
                             rill_stream *out) {
  *out = (rill_stream){ 1 };
  const rill_status status = rill_stream_import(device, native, options, out);
  if (status != RILL_OK) assert_int_equal(out->id, 0);
  return status;
}

#define API "rill_stream_import"
#define IMPORT(device, native, options) import_on((device), (native), (options), &(rill_stream){ 0 })
#include "native_import.h"

static void refuses_null_out(void) {
  assert_fails(rill_stream_import(dut.device, 0, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static struct {
  pthread_t thread;
  unsigned calls;
  uintptr_t native;
} reported;

static void tell_release(void *user, uintptr_t native) {
  reported.thread = pthread_self();
  reported.calls += user == &reported;
  reported.native = native;
}

static const rill_import_options with_release = { sizeof with_release, RILL_IMPORT_BORROW, "borrowed", tell_release,
                                                  &reported };

/* A release function requires RILL_IMPORT_BORROW, and the vendor's default streams cannot be adopted. */
static void refuses_contradictory_ownership(void) {
  rill_stream out;
  rill_import_options options = with_release;
  options.ownership = RILL_IMPORT_ADOPT;
  assert_fails_in("rill_stream_import", import_on(dut.device, 0x1000, &options, &out), RILL_ERROR_INVALID_ARGUMENT);
  if (!dut.gpu) return;
  options.release = NULL;
  for (uintptr_t native = 0; native <= 2; native++) {
    assert_fails_in("rill_stream_import", import_on(dut.device, native, &options, &out), RILL_ERROR_INVALID_ARGUMENT);
  }
}

static rill_stream import(uintptr_t native, const rill_import_options *options) {
  rill_stream stream;
  assert_ok(import_on(dut.device, native, options, &stream));
  keep_stream_until_end(stream);
  return stream;
}

static void check_that_it_works(rill_stream stream, uint32_t value) {
  write_cell(stream, 0, value);
  read_cell(stream, 0);
  rill_event event = new_event("event");
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_completes(stream);
  assert_true(is_complete(stream));
  assert_int_equal(dut.host[0], value);
}

/* C3.3, S16: a borrowed stream is used but never destroyed. */
static void borrows(void) {
  if (!native_available()) return;
  const uintptr_t native = native_stream_create(dut.device);
  rill_stream stream = import(native, NULL);
  uintptr_t read = 0;
  assert_ok(rill_stream_native(stream, &read));
  assert_int_equal(read, native);
  check_that_it_works(stream, 1);
  assert_ok(rill_stream_release(stream));
  assert_true(native_stream_is_alive(native));
  stream = import(native, NULL);
  check_that_it_works(stream, 2);
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_device_synchronize(dut.device));
  native_stream_destroy(native);
}

/* C3.3: an adopted stream is destroyed with its handle. */
static void adopts(void) {
  if (!native_available()) return;
  const rill_import_options *options =
      &(rill_import_options){ .struct_size = sizeof *options, .ownership = RILL_IMPORT_ADOPT };
  rill_stream stream = import(native_stream_create(dut.device), options);
  check_that_it_works(stream, 3);
  assert_ok(rill_stream_release(stream));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_STALE_HANDLE);
}

/* C3.3: the function is called once, during the call that releases the last reference. */
static void calls_release_once(void) {
  if (!native_available()) return;
  const uintptr_t native = native_stream_create(dut.device);
  reported.calls = 0;
  rill_stream stream = import(native, &with_release);
  check_that_it_works(stream, 4);
  assert_ok(rill_stream_retain(stream));
  assert_ok(rill_stream_release(stream));
  assert_int_equal(reported.calls, 0);
  assert_ok(rill_stream_release(stream));
  assert_int_equal(reported.calls, 1);
  assert_true(pthread_equal(reported.thread, pthread_self()));
  assert_int_equal(reported.native, native);
  assert_ok(rill_device_synchronize(dut.device));
  native_stream_destroy(native);
  assert_int_equal(reported.calls, 1);
}

/* C3.3, S16: importing again returns the same handle with an additional reference; there is one owner. */
static void returns_the_same_handle_again(void) {
  if (!native_available()) return;
  const uintptr_t native = native_stream_create(dut.device);
  rill_stream first = import(native, NULL), second, refused;
  assert_ok(import_on(dut.device, native, NULL, &second));
  assert_true(rill_stream_equal(first, second));
  assert_fails_in("rill_stream_import", import_on(dut.device, native, &with_release, &refused),
                  RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_release(first));
  check_that_it_works(second, 5);
  assert_ok(rill_stream_release(second));
  assert_fails(rill_stream_synchronize(second), RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_device_synchronize(dut.device));
  native_stream_destroy(native);
}

/* C3.3: a stream that rill created is recognized, and is still destroyed by rill. */
static void recognizes_its_own_streams(void) {
  if (!native_available()) return;
  enum { STREAMS = 100 };
  rill_stream streams[STREAMS], again, refused;
  uintptr_t natives[STREAMS];
  for (unsigned i = 0; i < STREAMS; i++) {
    assert_ok(rill_stream_create(dut.device, NULL, &streams[i]));
    assert_ok(rill_stream_native(streams[i], &natives[i]));
    assert_ok(rill_stream_native(streams[i], &natives[i]));
  }
  for (unsigned i = 0; i < STREAMS; i++) {
    assert_ok(import_on(dut.device, natives[i], NULL, &again));
    assert_true(rill_stream_equal(again, streams[i]));
    assert_ok(rill_stream_release(again));
    check_that_it_works(streams[i], i);
  }
  assert_fails_in("rill_stream_import", import_on(dut.device, natives[0], &with_release, &refused),
                  RILL_ERROR_INVALID_ARGUMENT);
  const rill_import_options *adopt =
      &(rill_import_options){ .struct_size = sizeof *adopt, .ownership = RILL_IMPORT_ADOPT };
  assert_fails_in("rill_stream_import", import_on(dut.device, natives[0], adopt, &refused),
                  RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(import_on(dut.device, natives[0], NULL, &again));
  for (unsigned i = 0; i < STREAMS; i++) assert_ok(rill_stream_release(streams[i]));
  check_that_it_works(again, 7);
  assert_ok(rill_stream_release(again));
  assert_fails(rill_stream_synchronize(again), RILL_ERROR_STALE_HANDLE);
  rill_stream usual;
  assert_ok(rill_device_default_stream(dut.device, &usual));
  assert_ok(rill_stream_native(usual, &natives[0]));
  assert_ok(import_on(dut.device, natives[0], NULL, &again));
  assert_true(rill_stream_equal(again, usual));
}

/* C3.3: the properties are read from the native stream. */
static void reads_the_properties_of_the_stream(void) {
  if (!native_available()) return;
  const uintptr_t native = native_stream_create(dut.device);
  rill_stream stream =
      import(native, &(rill_import_options){ .struct_size = sizeof(rill_import_options), .label = "mine" });
  rill_device device;
  int32_t priority = -99;
  bool blocking = true;
  const char *label = NULL;
  assert_ok(rill_stream_device(stream, &device));
  assert_true(rill_device_equal(device, dut.device));
  assert_ok(rill_stream_priority(stream, &priority));
  assert_int_equal(priority, 0);
  assert_ok(rill_stream_is_blocking(stream, &blocking));
  assert_false(blocking);
  assert_ok(rill_stream_label(stream, &label));
  assert_string_equal(label, "mine");
  assert_ok(rill_stream_release(stream));
  native_stream_destroy(native);
}

/* C3.3, S18: the null, legacy and per-thread streams are resolved at each call. */
static void accepts_the_special_values(void) {
  if (!native_available()) return;
  rill_stream streams[3];
  for (uintptr_t native = 0; native <= 2; native++) {
    streams[native] = import(native, NULL);
    check_that_it_works(streams[native], 10 + (uint32_t)native);
    assert_true(rill_stream_equal(streams[native], import(native, NULL)));
  }
  assert_false(rill_stream_equal(streams[1], streams[2]));
}

static const char *is_idle_here(unsigned index, void *shared) {
  (void)index;
  bool complete = false;
  REQUIRE_OK(rill_stream_is_complete(*(const rill_stream *)shared, &complete));
  REQUIRE(complete);
  return NULL;
}

/* C3.3, D5: each thread has its own. */
static void each_thread_has_its_own_per_thread_stream(void) {
  if (!native_available()) return;
  rill_stream stream = import(2, NULL);
  struct gate *gate = gate_close(stream);
  assert_false(is_complete(stream));
  run_threads(2, is_idle_here, &stream);
  gate_open(gate);
  assert_completes(stream);
}

/* C3.3 */
static void refuses_a_stream_of_another_device(void) {
  needs_second_device();
  if (!native_available()) return;
  rill_stream out;
  const uintptr_t native = native_stream_create(dut.second);
  assert_fails_in("rill_stream_import", import_on(dut.device, native, NULL, &out), RILL_ERROR_WRONG_DEVICE);
  native_stream_destroy(native);
}

TESTS_ON_EACH_DEVICE("rill_stream_import", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_unsupported_on_the_cpu), TEST(refuses_invalid_options),
                     TEST(refuses_contradictory_ownership), TEST(borrows), TEST(adopts), TEST(calls_release_once),
                     TEST(returns_the_same_handle_again), TEST(recognizes_its_own_streams),
                     TEST(reads_the_properties_of_the_stream), TEST(accepts_the_special_values),
                     TEST(each_thread_has_its_own_per_thread_stream), TEST(refuses_a_stream_of_another_device))
