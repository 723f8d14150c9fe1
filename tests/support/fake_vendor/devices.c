/* Devices and contexts.  A context's struct is never freed: threads may have an ended one as current. */
#include "engine.h"

#include <stdlib.h>

static struct fake_device devices[FAKE_MAX_DEVICES];
static bool made;

static void make_devices(void) {
  for (int i = 0; i < FAKE_MAX_DEVICES; i++) {
    devices[i].ordinal = i;
    (void)pthread_cond_init(&devices[i].resumed, NULL);
    (void)pthread_mutex_init(&devices[i].host_functions, NULL);
  }
  made = true;
}

int fake_device_get(int ordinal, struct fake_device **out) {
  if (!made) make_devices();
  if (ordinal < 0 || ordinal >= fake_options()->devices) return FAKE_INVALID_DEVICE;
  *out = &devices[ordinal];
  return FAKE_OK;
}

void fake_device_fault(struct fake_device *device, int code) {
  if (device->fault == FAKE_OK) device->fault = code;
  device->paused = false;
  (void)pthread_cond_broadcast(&device->resumed);
}

int fake_peer_enable(struct fake_device *from, struct fake_device *to, bool on) {
  if (from == to) return FAKE_INVALID_DEVICE;
  bool *enabled = &from->peers[to->ordinal];
  if (*enabled == on) return on ? FAKE_PEER_ALREADY_ENABLED : FAKE_PEER_NOT_ENABLED;
  *enabled = on;
  return FAKE_OK;
}

static struct fake_context *new_context(struct fake_device *device, bool primary) {
  struct fake_context *context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  context->device = device;
  context->primary = primary;
  return context;
}

/* Prepares the context for use. */
static int start_context(struct fake_context *context) {
  context->handle = fake_handle_new(FAKE_CONTEXT, context);
  if (context->handle == NULL) return FAKE_OUT_OF_MEMORY;
  context->null_stream = fake_null_stream_new(context);
  if (context->null_stream == NULL) {
    fake_handle_end(context->handle);
    return FAKE_OUT_OF_MEMORY;
  }
  context->alive = true;
  return FAKE_OK;
}

static void end_context(struct fake_context *context) {
  if (!context->alive) return;
  (void)fake_context_synchronize(context);
  if (!context->alive) /* another thread was faster */
    return;
  context->alive = false;
  context->retained = 0;
  while (context->modules != NULL) fake_module_end(context->modules);
  while (context->events != NULL) fake_event_end(context->events);
  for (struct fake_stream *stream = context->streams, *next; stream != NULL; stream = next) {
    next = stream->next;
    fake_stream_end(stream);
  }
  context->null_stream = NULL;
  fake_memory_end_context(context);
  fake_handle_end(context->handle);
}

int fake_primary_retain(int ordinal, struct fake_context **out) {
  struct fake_device *device;
  int code = fake_device_get(ordinal, &device);
  if (code != FAKE_OK) return code;
  if (device->fault != FAKE_OK) return device->fault;
  if (device->primary == NULL && (device->primary = new_context(device, true)) == NULL) return FAKE_OUT_OF_MEMORY;
  if (!device->primary->alive && (code = start_context(device->primary)) != FAKE_OK) return code;
  device->primary->retained++;
  *out = device->primary;
  return FAKE_OK;
}

int fake_primary_release(int ordinal) {
  struct fake_device *device;
  const int code = fake_device_get(ordinal, &device);
  if (code != FAKE_OK) return code;
  if (device->primary == NULL || !device->primary->alive || device->primary->retained == 0) return FAKE_INVALID_CONTEXT;
  if (--device->primary->retained == 0) end_context(device->primary);
  return FAKE_OK;
}

int fake_primary_reset(int ordinal) {
  struct fake_device *device;
  const int code = fake_device_get(ordinal, &device);
  if (code != FAKE_OK) return code;
  if (device->primary != NULL) end_context(device->primary);
  return FAKE_OK;
}

int fake_context_create(int ordinal, unsigned flags, struct fake_context **out) {
  struct fake_device *device;
  int code = fake_device_get(ordinal, &device);
  if (code != FAKE_OK) return code;
  if (device->fault != FAKE_OK) return device->fault;
  struct fake_context *context = new_context(device, false);
  if (context == NULL) return FAKE_OUT_OF_MEMORY;
  context->flags = flags;
  code = start_context(context);
  if (code == FAKE_OK) *out = context;
  else free(context);
  return code;
}

int fake_context_destroy(struct fake_context *context) {
  if (context->primary) return FAKE_INVALID_CONTEXT;
  end_context(context);
  return FAKE_OK;
}

int fake_context_get(const void *handle, struct fake_context **out) {
  if (handle == NULL) return fake_current_context(out);
  struct fake_context *context = fake_handle_get(FAKE_CONTEXT, handle);
  if (context == NULL) return fake_handle_was(FAKE_CONTEXT, handle) ? FAKE_CONTEXT_IS_DESTROYED : FAKE_INVALID_CONTEXT;
  *out = context;
  return FAKE_OK;
}

int fake_context_check(const struct fake_context *context) {
  return context->alive ? context->device->fault : FAKE_CONTEXT_IS_DESTROYED;
}

int fake_context_synchronize(struct fake_context *context) {
  size_t count = 0;
  for (const struct fake_stream *s = context->streams; s != NULL; s = s->next) count += s->last != NULL;
  struct fake_op **last = count == 0 ? NULL : malloc(count * sizeof *last);
  if (count != 0 && last == NULL) return FAKE_OUT_OF_MEMORY;
  size_t n = 0;
  for (const struct fake_stream *s = context->streams; s != NULL; s = s->next)
    if (s->last != NULL) {
      s->last->refs++;
      last[n++] = s->last;
    }
  for (size_t i = 0; i < n; i++) {
    fake_op_wait(last[i]);
    fake_op_release(last[i]);
  }
  free(last);
  return fake_context_check(context);
}
