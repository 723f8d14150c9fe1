/* The table that tests find; fake_control.h says what each entry does. */
#include "calls.h"
#include "fake_control.h"

#include <string.h>

__attribute__((visibility("default"))) const struct rill_fake *rill_fake_control(void);

static struct fake_device *device_of(int ordinal) {
  struct fake_device *device;
  if (fake_device_get(ordinal, &device) != FAKE_OK) fake_die("there is no device %d to control", ordinal);
  return device;
}

static void pause_device(int ordinal) {
  fake_lock();
  device_of(ordinal)->paused = true;
  fake_unlock();
}

static void resume_device(int ordinal) {
  fake_lock();
  struct fake_device *device = device_of(ordinal);
  device->paused = false;
  (void)pthread_cond_broadcast(&device->resumed);
  fake_unlock();
}

static void fault(int ordinal, int code) {
  fake_lock();
  fake_device_fault(device_of(ordinal), code);
  fake_unlock();
}

static void fault_next_launch(int ordinal, int code) {
  fake_lock();
  device_of(ordinal)->fault_next_launch = code;
  fake_unlock();
}

static void revive(int ordinal) {
  fake_lock();
  device_of(ordinal)->fault = FAKE_OK;
  fake_unlock();
}

static size_t live(const char *kind) {
  const bool any = strcmp(kind, "*") == 0;
  fake_lock();
  size_t count = any || strcmp(kind, "memory") == 0 ? fake_memory_live() : 0;
  for (int i = FAKE_FREE_SLOT + 1; i < FAKE_KINDS; i++)
    if (any || strcmp(kind, fake_kind_names[i]) == 0) count += fake_handle_live((enum fake_kind)i);
  fake_unlock();
  return count;
}

static void reuse_handles(bool on) {
  fake_lock();
  fake_handle_set_reuse(on);
  fake_unlock();
}

static uint64_t bytes(void) {
  fake_lock();
  const uint64_t count = fake_memory_bytes;
  fake_unlock();
  return count;
}

static void weightless(bool on) {
  fake_lock();
  fake_memory_weightless = on;
  fake_unlock();
}

static void print_summary(void) {
  for (int i = FAKE_FREE_SLOT + 1; i < FAKE_KINDS; i++)
    fake_say("%8zu live: %s", live(fake_kind_names[i]), fake_kind_names[i]);
  fake_say("%8zu live: memory", live("memory"));
  fake_calls_print();
}

__attribute__((destructor)) static void at_exit(void) {
  if (fake_options()->summary) print_summary();
}

static uint64_t launch_attributes(void) {
  fake_lock();
  const uint64_t carried = fake_launch_carried;
  fake_unlock();
  return carried;
}

/* ---- for other libraries over this one ---- */

static int enqueue(void *handle, void (*run)(void *data, int status), void *data) {
  fake_lock();
  struct fake_stream *stream;
  int code = fake_stream_get(handle, &stream);
  struct fake_op *op = code == FAKE_OK ? fake_op_new(run, NULL, data) : NULL;
  if (op != NULL) op->after_fault = true;
  if (code == FAKE_OK) code = fake_submit(stream, op);
  fake_unlock();
  return code;
}

static int capture(void *handle, void (*run)(void *data, int status), void (*finish)(void *data), void *data) {
  fake_lock();
  struct fake_stream *stream;
  int code = fake_stream_get(handle, &stream);
  if (code == FAKE_OK && stream->capture == FAKE_CAPTURE_NONE) code = -1;
  struct fake_op *op = code == FAKE_OK ? fake_op_new(run, finish, data) : NULL;
  if (op != NULL) op->after_fault = true;
  if (code == FAKE_OK) code = fake_submit(stream, op);
  fake_unlock();
  return code;
}

static int current_device(void) {
  fake_lock();
  struct fake_context *context;
  const int device = fake_current_context(&context) == FAKE_OK ? context->device->ordinal : -1;
  fake_unlock();
  return device;
}

static int device_of_stream(void *handle) {
  fake_lock();
  struct fake_stream *stream;
  const int device = fake_stream_get(handle, &stream) == FAKE_OK ? stream->context->device->ordinal : -1;
  fake_unlock();
  return device;
}

const struct rill_fake *rill_fake_control(void) {
  static const struct rill_fake table = {
    .fail_call = fake_calls_fail,
    .hang = fake_calls_hang,
    .hanging = fake_calls_hanging,
    .clear = fake_calls_clear,
    .calls = fake_calls_count,
    .pause = pause_device,
    .resume = resume_device,
    .fault = fault,
    .fault_next_launch = fault_next_launch,
    .revive = revive,
    .live = live,
    .reuse_handles = reuse_handles,
    .bytes = bytes,
    .weightless = weightless,
    .print_summary = print_summary,
    .launch_attributes = launch_attributes,
    .enqueue = enqueue,
    .current_device = current_device,
    .device_of_stream = device_of_stream,
    .capture = capture,
  };
  return &table;
}
