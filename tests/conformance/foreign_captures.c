/* Captures that other code of the process has begun in global mode on another thread (C7.3). No rill call invalidates
 * one, except calls that wait for a whole device. The CPU has no such captures. */
#include "support/native.h"

#include "gate.rill.h"
#include "launch.rill.h"

#include <pthread.h>
#include <rill/bundle.h>
#include <stdio.h>

/* ---- the thread that captures ---- */

enum request { NOTHING, BEGIN, END, LEAVE };

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  enum request request;
  uintptr_t stream;
  int code;   /* result of beginning the capture */
  bool valid; /* the capture was valid at its end */
} owner = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *own_captures(void *argument) {
  (void)argument;
  (void)pthread_mutex_lock(&owner.lock);
  for (bool leaves = false; !leaves;) {
    while (owner.request == NOTHING) (void)pthread_cond_wait(&owner.changed, &owner.lock);
    if (owner.request == BEGIN) owner.code = native_capture_begin(owner.stream, true);
    if (owner.request == END) owner.valid = native_capture_end(owner.stream);
    leaves = owner.request == LEAVE;
    owner.request = NOTHING;
    (void)pthread_cond_broadcast(&owner.changed);
  }
  (void)pthread_mutex_unlock(&owner.lock);
  return NULL;
}

static void ask_owner(enum request request) {
  (void)pthread_mutex_lock(&owner.lock);
  owner.request = request;
  (void)pthread_cond_broadcast(&owner.changed);
  while (owner.request != NOTHING) (void)pthread_cond_wait(&owner.changed, &owner.lock);
  (void)pthread_mutex_unlock(&owner.lock);
}

static void start_owner(void) {
  owner.stream = native_stream_create(dut.device);
  assert_int_equal(pthread_create(&owner.thread, NULL, own_captures, NULL), 0);
}

static void end_owner(void) {
  ask_owner(LEAVE);
  assert_int_equal(pthread_join(owner.thread, NULL), 0);
  native_stream_destroy(owner.stream);
}

static void begin_capture(void) {
  ask_owner(BEGIN);
  assert_int_equal(owner.code, 0);
}

static bool end_capture(void) {
  ask_owner(END);
  return owner.valid;
}

/* ---- what is called meanwhile ---- */

enum { BYTES = 4096 };

static struct {
  rill_stream stream, other, imported;
  rill_event event, start, end, first;
  rill_pool pools[3];
  rill_module module;
  rill_kernel kernel;
  rill_bundle bundle;
  uintptr_t native;
  void *memory, *pinned, *pooled[3];
  char pageable[BYTES], registered[BYTES];
} scene;

#define TRY(call)                           \
  do {                                      \
    const rill_status status_ = (call);     \
    if (status_ != RILL_OK) return status_; \
  } while (0)

static rill_status make_streams(void) {
  rill_stream standard, streams[3];
  TRY(rill_device_default_stream(dut.device, &standard));
  TRY(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.priority = RILL_PRIORITY_HIGH), &streams[0]));
  TRY(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.label = "third"), &streams[1]));
  TRY(rill_stream_import(dut.device, scene.native, NULL, &streams[2]));
  for (int i = 0; i < 3; i++) TRY(rill_stream_release(streams[i]));
  TRY(rill_stream_create(dut.device, NULL, &scene.stream));
  TRY(rill_stream_create(dut.device, NULL, &scene.other));
  return rill_stream_import(dut.device, scene.native, NULL, &scene.imported);
}

static rill_status ask_streams(void) {
  rill_device device;
  uintptr_t native = 0;
  uint64_t id = 0;
  int32_t priority = 0;
  bool out = false;
  TRY(rill_stream_id(scene.stream, &id));
  TRY(rill_stream_priority(scene.imported, &priority));
  TRY(rill_stream_context(scene.stream, &native));
  TRY(rill_stream_is_capturing(scene.imported, &out));
  TRY(rill_device_of_native_stream(dut.info.backend, scene.native, &device));
  return rill_device_supports(dut.device, RILL_FEATURE_STREAM_ID, NULL) ? rill_stream_validate(scene.imported)
                                                                        : RILL_OK;
}

static rill_status make_events(void) {
  rill_event event;
  const bool shares = rill_device_supports(dut.device, RILL_FEATURE_EVENT_IPC, NULL);
  TRY(rill_event_create(dut.device, NULL, &scene.event));
  TRY(rill_event_create(dut.device, NULL, &scene.first));
  TRY(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.timing = true), &scene.start));
  TRY(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.timing = true, .blocking_sync = true), &scene.end));
  TRY(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.interprocess = shares), &event));
  if (shares) {
    rill_ipc_handle handle;
    TRY(rill_event_ipc_export(event, &handle));
  }
  return rill_event_release(event);
}

static rill_status give_work(void) {
  const uint32_t pattern[4] = { 1, 2, 3, 4 };
  rill_event event;
  TRY(rill_stream_record_event(scene.stream, scene.start, 0));
  for (size_t size = 1; size <= 16; size *= 2) {
    TRY(rill_fill_async(scene.stream, scene.memory, pattern, size, BYTES / size));
    TRY(rill_fill_2d_async(scene.stream, scene.memory, 64, pattern, size, 32 / size, 4));
  }
  TRY(rill_copy_async(scene.stream, scene.memory, scene.pinned, BYTES));
  TRY(rill_copy_async(scene.stream, scene.memory, scene.pageable, BYTES));
  TRY(rill_copy_async(scene.stream, scene.pageable, scene.memory, BYTES));
  TRY(rill_copy_2d_async(scene.stream, scene.memory, 64, scene.pinned, 128, 32, 4));
  TRY(rill_copy_2d_async(scene.stream, scene.memory, 64, scene.pageable, 128, 32, 4));
  TRY(rill_stream_record_event(scene.stream, scene.event, 0));
  TRY(rill_stream_wait_event(scene.other, scene.event, 0));
  TRY(rill_stream_wait_stream(scene.other, scene.stream));
  TRY(rill_stream_wait_device(scene.other, dut.device));
  TRY(rill_stream_record_new_event(scene.other, NULL, &event));
  TRY(rill_event_release(event));
  return rill_stream_record_event(scene.stream, scene.end, 0);
}

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

static rill_status call_host(void) {
  static unsigned calls;
  TRY(rill_stream_host_call(scene.stream, count_call, &calls));
  TRY(rill_copy_async(scene.stream, scene.pinned, (char *)scene.pinned + BYTES / 2, BYTES / 2)); /* work of the host */
  return rill_stream_synchronize(scene.stream);
}

/* Queries streams that a gate blocks, so that the driver is queried. */
static rill_status ask_busy_streams(void) {
  bool out = true;
  struct gate *gate = gate_close(scene.stream);
  TRY(rill_stream_record_event(scene.stream, scene.event, 0));
  TRY(rill_stream_is_complete(scene.stream, &out));
  TRY(rill_event_is_ready(scene.event, &out));
  if (out) return RILL_ERROR_INTERNAL;
  if (rill_stream_synchronize_for(scene.stream, 1000) != RILL_ERROR_TIMEOUT) return RILL_ERROR_INTERNAL;
  if (rill_event_synchronize_for(scene.event, 1000) != RILL_ERROR_TIMEOUT) return RILL_ERROR_INTERNAL;
  gate_open(gate);
  TRY(rill_event_synchronize(scene.event));
  return rill_stream_synchronize(scene.stream);
}

static rill_status ask_idle_streams(void) {
  float ms = 0;
  bool out = false;
  TRY(rill_stream_record_event(scene.other, scene.event, 0));
  TRY(rill_stream_synchronize_for(scene.other, TIMEOUT_NS));
  TRY(rill_stream_is_complete(scene.other, &out));
  TRY(rill_stream_is_complete(scene.imported, &out));
  TRY(rill_stream_synchronize(scene.imported));
  TRY(rill_event_synchronize_for(scene.event, TIMEOUT_NS));
  return rill_event_elapsed_time(scene.start, scene.end, &ms);
}

static rill_status hold(void) {
  TRY(rill_stream_wait_event(scene.stream, scene.first, 0));
  TRY(rill_copy_async(scene.stream, scene.memory, scene.pageable, BYTES));
  TRY(rill_copy_2d_async(scene.stream, scene.memory, 64, scene.pageable, 128, 32, 4));
  TRY(rill_stream_record_event(scene.stream, scene.event, 0));
  TRY(rill_stream_record_event(scene.other, scene.first, 0));
  return rill_stream_synchronize(scene.stream);
}

static rill_status take_memory(void) {
  uint64_t free_bytes = 0, total = 0;
  TRY(rill_device_get_memory(dut.device, &free_bytes, &total));
  TRY(rill_alloc(dut.device, BYTES, RILL_MEMORY_DEVICE, &scene.memory));
  return rill_alloc(dut.device, BYTES, RILL_MEMORY_PINNED, &scene.pinned);
}

static rill_status use_managed(void) {
  void *p = NULL;
  if (!rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) return RILL_OK;
  TRY(rill_alloc(dut.device, BYTES, RILL_MEMORY_MANAGED, &p));
  ignore(rill_memory_advise(p, BYTES, dut.device, RILL_ADVICE_PREFERRED_LOCATION));
  ignore(rill_memory_prefetch_async(scene.stream, p, BYTES));
  TRY(rill_stream_synchronize(scene.stream));
  return rill_free(p);
}

static rill_status free_memory(void) {
  rill_ipc_handle handle;
  if (rill_device_supports(dut.device, RILL_FEATURE_IPC, NULL)) TRY(rill_memory_ipc_export(scene.memory, &handle));
  return rill_free(scene.memory);
}

static rill_status free_pinned(void) { return rill_free(scene.pinned); }

static rill_status register_memory(void) {
  return rill_host_register(dut.device, scene.registered, sizeof scene.registered);
}

static rill_status unregister_memory(void) { return rill_host_unregister(scene.registered); }

static rill_status use_default_pool(void) {
  void *first = NULL, *second = NULL;
  TRY(rill_alloc_async(scene.stream, BYTES, &first));
  TRY(rill_free_async(scene.stream, first));
  TRY(rill_alloc_async(scene.other, BYTES, &second)); /* gets memory that another stream has freed */
  TRY(rill_memory_record_use(second, scene.stream));
  return rill_free_async(scene.other, second);
}

static rill_status make_pools(void) {
  for (uint32_t i = 0; i < 3; i++) {
    const rill_pool_options options = { .struct_size = sizeof options, .kind = i + 1 };
    if (i + 1 == RILL_MEMORY_MANAGED && !rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) continue;
    TRY(rill_pool_create(dut.device, &options, &scene.pools[i]));
    TRY(rill_pool_alloc_async(scene.pools[i], scene.stream, BYTES, &scene.pooled[i]));
  }
  return rill_pool_alloc_aligned_async(scene.pools[0], scene.stream, BYTES, 1 << 22, &scene.memory);
}

static rill_status free_pooled(void) {
  TRY(rill_free_async(scene.other, scene.memory));
  for (int i = 0; i < 3; i++) TRY(rill_free_async(scene.stream, scene.pooled[i]));
  TRY(rill_stream_synchronize(scene.other));
  return rill_stream_synchronize(scene.stream);
}

static rill_status end_pool(int i) {
  if (scene.pools[i].id == 0) return RILL_OK;
  TRY(rill_pool_trim(scene.pools[i], 0));
  return rill_pool_release(scene.pools[i]);
}
static rill_status end_device_pool(void) { return end_pool(RILL_MEMORY_DEVICE - 1); }
static rill_status end_pinned_pool(void) { return end_pool(RILL_MEMORY_PINNED - 1); }
static rill_status end_managed_pool(void) { return end_pool(RILL_MEMORY_MANAGED - 1); }

static rill_status load_kernels(void) {
  uint32_t blocks = 0, threads = 0;
  void *p = NULL;
  size_t size = 0;
  scene.bundle = launch_bundle;
  TRY(rill_module_load(dut.device, &scene.bundle, &scene.module));
  TRY(rill_module_get_kernel(scene.module, "give_constants", &scene.kernel));
  TRY(rill_module_get_global(scene.module, "factors", &p, &size));
  TRY(rill_kernel_occupancy(scene.kernel, 32, 0, &blocks));
  TRY(rill_kernel_suggest_block(scene.kernel, 0, 0, &threads, &blocks));
  return rill_bundle_preload(dut.device, &gate_bundle);
}

static rill_status launch_kernels(void) {
  const unsigned values[4] = { 1, 2, 3, 4 };
  const rill_constant constant = { "factors", values, sizeof values };
  unsigned *out = dut.host;
  double *offset = (double *)(void *)(dut.host + CELLS - 2);
  rill_launch one_thread = rill_launch_1d(1, 1);
  TRY(rill_stream_launch(scene.stream, scene.kernel, &one_thread, RILL_ARGS(out, offset)));
  one_thread.constants = &constant;
  one_thread.constant_count = 1;
  TRY(rill_stream_launch(scene.stream, scene.kernel, &one_thread, RILL_ARGS(out, offset)));
  return rill_stream_synchronize(scene.stream);
}

static rill_status unload_kernels(void) {
  TRY(rill_kernel_release(scene.kernel));
  TRY(rill_module_release(scene.module));
  return rill_bundle_unload(&scene.bundle);
}

static rill_status reach_peer(void) {
  if (dut.second.id == 0 || !rill_device_can_access_peer(dut.device, dut.second, NULL)) return RILL_OK;
  TRY(rill_device_enable_peer(dut.device, dut.second));
  return rill_device_disable_peer(dut.device, dut.second);
}

static rill_status end_busy_stream(void) {
  rill_stream stream;
  rill_event event;
  TRY(rill_stream_create(dut.device, NULL, &stream));
  struct gate *gate = gate_close(stream);
  TRY(rill_stream_record_new_event(stream, NULL, &event));
  TRY(rill_stream_release(stream));
  TRY(rill_stream_create(dut.device, NULL, &stream));
  TRY(rill_stream_release(stream));
  gate_open(gate);
  TRY(rill_event_synchronize(event));
  return rill_event_release(event);
}

static rill_status end_everything(void) {
  TRY(rill_event_release(scene.event));
  TRY(rill_event_release(scene.first));
  TRY(rill_event_release(scene.start));
  TRY(rill_event_release(scene.end));
  TRY(rill_stream_release(scene.imported));
  TRY(rill_stream_release(scene.other));
  return rill_stream_release(scene.stream);
}

static rill_status synchronize_device(void) { return rill_device_synchronize(dut.device); }

/* `waits`: the call waits for a whole device or for all devices. Such a call may be refused, and may invalidate a
 * capture that rill does not know. */
static const struct call {
  const char *name;
  rill_status (*run)(void);
  bool waits;
} calls[] = {
#define CALL(function) \
  { #function, function, false }
#define CALL_THAT_WAITS(function) \
  { #function, function, true }
  CALL(make_streams),
  CALL(ask_streams),
  CALL(make_events),
  CALL(take_memory),
  CALL(load_kernels),
  CALL(give_work),
  CALL(call_host),
  CALL(ask_idle_streams),
  CALL(ask_busy_streams),
  CALL(hold),
  CALL(launch_kernels),
  CALL(use_default_pool),
  CALL(register_memory),
  CALL(reach_peer),
  CALL(end_busy_stream),
  CALL_THAT_WAITS(use_managed),
  CALL_THAT_WAITS(unregister_memory),
  CALL(free_memory),
  CALL_THAT_WAITS(free_pinned),
  CALL(make_pools),
  CALL(free_pooled),
  CALL(end_device_pool),
  CALL_THAT_WAITS(end_pinned_pool),
  CALL_THAT_WAITS(end_managed_pool),
  CALL_THAT_WAITS(synchronize_device),
  CALL(unload_kernels),
  CALL(end_everything),
};

/* Makes one call during a capture; repeats a refused call afterwards. Returns false if the call broke a rule. */
static bool check_call(const struct call *call, bool known) {
  begin_capture();
  spoil_last_error();
  const rill_status status = call->run();
  const bool refused = status == RILL_ERROR_CAPTURE_ACTIVE;
  const bool valid = end_capture();
  if (status != RILL_OK && !(refused && call->waits)) {
    print_error("%s: %s\n", call->name, rill_last_error_text());
    return false;
  }
  /* with RILL_CHECK=memory rill_free itself waits for the device */
  if (!valid && !known && call->run == free_memory && rill_check_is_on("memory")) return true;
  if (!valid && (known || !refused)) print_error("%s broke the capture\n", call->name);
  if (refused) assert_ok(call->run());
  return valid || (refused && !known);
}

static void check_all_calls(bool known) {
  unsigned failed = 0;
  memset(&scene, 0, sizeof scene);
  start_owner();
  scene.native = native_stream_create(dut.device);
  rill_stream capturing = RILL_NULL_STREAM;
  if (known) assert_ok(rill_stream_import(dut.device, owner.stream, NULL, &capturing));
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) failed += !check_call(&calls[i], known);
  assert_ok(rill_stream_release(capturing));
  assert_ok(rill_device_synchronize(dut.device));
  native_stream_destroy(scene.native);
  end_owner();
  assert_int_equal(failed, 0);
}

/* C7.3: captures on a stream that rill does not know. */
static void no_call_breaks_a_capture(void) {
  if (native_available()) check_all_calls(false);
}

/* C7.3: captures on a stream that rill knows: a call that would invalidate the capture is refused before it reaches the
 * driver. */
static void known_captures_are_never_broken(void) {
  if (native_available()) check_all_calls(true);
}

/* C7.3, C3.12: rill does not query the capturing stream. */
static void its_stream_is_not_queried(void) {
  bool out = false;
  if (!native_available()) return;
  const rill_import_options options = { .struct_size = sizeof options, .label = "theirs" };
  rill_stream capturing;
  start_owner();
  assert_ok(rill_stream_import(dut.device, owner.stream, &options, &capturing));
  begin_capture();
  assert_ok(rill_stream_is_capturing(capturing, &out));
  assert_true(out);
  assert_fails(rill_stream_is_complete(capturing, &out), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("theirs");
  assert_fails(rill_stream_synchronize(capturing), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("theirs");
  assert_fails(rill_stream_synchronize_for(capturing, 1000), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_device_synchronize(dut.device), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("theirs");
  if (dut.second.id != 0) { /* some runtimes invalidate the captures of all devices */
    const rill_status status = rill_device_synchronize(dut.second);
    assert_true(status == RILL_OK || status == RILL_ERROR_CAPTURE_ACTIVE);
  }
  assert_true(end_capture());
  assert_ok(rill_stream_synchronize(capturing));
  assert_ok(rill_stream_release(capturing));
  end_owner();
}

TESTS_ON_EACH_DEVICE("captures of other code", TEST(no_call_breaks_a_capture), TEST(known_captures_are_never_broken),
                     TEST(its_stream_is_not_queried))
