#include "core/operation/operation.h"

#include "core/sync/submit.h"

#include <stdlib.h>
#include <string.h>

const char *rill__node_kind_name(uint32_t kind) {
  static const char *const kinds[] = {
    [RILL_NODE_KERNEL] = "kernel",
    [RILL_NODE_COPY] = "copy",
    [RILL_NODE_FILL] = "fill",
    [RILL_NODE_HOST_CALL] = "host call",
    [RILL_NODE_EMPTY] = "empty",
    [RILL_NODE_EVENT_RECORD] = "event record",
    [RILL_NODE_EVENT_WAIT] = "event wait",
    [RILL_NODE_OTHER] = "foreign",
    [RILL_NODE_ALLOC] = "allocation",
    [RILL_NODE_FREE] = "free",
  };
  return kinds[kind];
}

static void destroy_operation(struct rill__operation *operation) {
  if (operation->payload != NULL) operation->payload->drop(operation->payload);
  if (operation->kind == RILL_NODE_KERNEL) {
    rill__unref(&operation->launch.kernel->base);
    free((void *)(uintptr_t)operation->launch.extras);
  }
  if (operation->kind == RILL_NODE_EVENT_RECORD || operation->kind == RILL_NODE_EVENT_WAIT) {
    rill__unref(&operation->event->base);
  }
  if (operation->kind == RILL_NODE_OTHER) {
    RILL_ASK(operation->device, graph, foreign_destroy, operation->device, operation->others);
  }
  if (operation->kind == RILL__OPERATION_EXEC) rill__unref(&operation->exec->base);
  free(operation->label);
  free(operation);
}

void rill__operation_ref(struct rill__operation *operation) {
  atomic_fetch_add_explicit(&operation->refs, 1, memory_order_relaxed);
}

void rill__operation_unref(struct rill__operation *operation) {
  if (atomic_fetch_sub_explicit(&operation->refs, 1, memory_order_acq_rel) == 1) destroy_operation(operation);
}

/* Creates an operation; the caller sets the union's member for the kind. */
static rill_status new_operation(uint32_t kind, struct rill__device *device, const char *label, size_t extra,
                                 struct rill__operation **out) {
  const bool labelled = label != NULL && label[0] != '\0';
  struct rill__operation *operation = malloc(sizeof *operation + extra);
  char *copy = labelled ? strdup(label) : NULL;
  if (operation == NULL || (labelled && copy == NULL)) {
    free(operation);
    free(copy);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for an operation that is submitted later");
  }
  operation->device = device;
  operation->label = copy;
  operation->payload = NULL;
  operation->kind = kind;
  atomic_init(&operation->refs, 1);
  *out = operation;
  return RILL_OK;
}

/* Returns where a value of `size` bytes begins: no type has an alignment larger than its size. */
static size_t value_offset(size_t end, size_t size) {
  const size_t alignment = size <= 8 ? 8 : 16;
  return (end + alignment - 1) & ~(alignment - 1);
}

/* Copies a value.  Most values are pointers and numbers, for which the compiler needs no call. */
static void copy_value(void *to, const void *from, size_t size) {
  if (size == 8) {
    memcpy(to, from, 8);
  } else if (size == 4) {
    memcpy(to, from, 4);
  } else {
    memcpy(to, from, size);
  }
}

/* Copies the values from `values`, one pointer each. */
static rill_status new_launch_operation(const struct rill__launch *launch, void *const *values,
                                        struct rill__operation **out) {
  const rill_bundle_kernel *source = launch->kernel->source;
  const size_t values_at = sizeof(struct rill__operation) + source->arg_count * sizeof(void *);
  size_t end = values_at;
  for (uint32_t i = 0; i < source->arg_count; i++) end = value_offset(end, source->args[i].size) + source->args[i].size;
  struct rill__launch_extras *extras = NULL;
  if (launch->extras != NULL) {
    extras = malloc(sizeof *extras);
    RILL_REQUIRE(extras != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a launch");
    *extras = *launch->extras;
  }
  struct rill__operation *operation = NULL;
  const rill_status status =
      new_operation(RILL_NODE_KERNEL, launch->kernel->base.device, launch->label, end - sizeof *operation, &operation);
  if (status != RILL_OK) {
    free(extras);
    return status;
  }
  rill__ref(&launch->kernel->base);
  operation->launch = *launch;
  operation->launch.label = operation->label;
  operation->launch.extras = extras;
  operation->launch.args = operation->values;
  end = values_at;
  for (uint32_t i = 0; i < source->arg_count; i++) {
    end = value_offset(end, source->args[i].size);
    operation->values[i] = (char *)operation + end;
    copy_value(operation->values[i], values[i], source->args[i].size);
    end += source->args[i].size;
  }
  *out = operation;
  return RILL_OK;
}

rill_status rill__operation_launch(const struct rill__launch *launch, struct rill__operation **out) {
  return new_launch_operation(launch, launch->args, out);
}

size_t rill__operation_size(const struct rill__operation *operation) {
  size_t size = sizeof *operation;
  if (operation->kind == RILL_NODE_KERNEL && operation->launch.kernel->source->arg_count > 0) {
    const rill_bundle_kernel *source = operation->launch.kernel->source;
    const uint32_t last = source->arg_count - 1;
    size = (size_t)((char *)operation->values[last] - (const char *)operation) + source->args[last].size;
  }
  return size + (operation->payload != NULL ? operation->payload->bytes : 0);
}

void rill__operation_finish(struct rill__operation *operation, struct rill__stream *stream) {
  struct rill__payload *payload = operation->payload;
  operation->payload = NULL;
  if (payload != NULL) payload->finish(stream, payload);
}

rill_status rill__operation_with_arg(const struct rill__operation *launch, uint32_t index, const void *data,
                                     struct rill__operation **out) {
  const uint32_t count = launch->launch.kernel->source->arg_count;
  void *values[count + 1];
  for (uint32_t i = 0; i < count; i++) values[i] = launch->values[i];
  values[index] = (void *)(uintptr_t)data;
  RILL_REQUIRE(launch->payload == NULL, RILL_ERROR_UNSUPPORTED,
               "the launch has constants, so its arguments cannot be changed one by one" RILL_HINT
               "replace the whole launch (rill_graph_exec_set_kernel)");
  return new_launch_operation(&launch->launch, values, out);
}

rill_status rill__operation_copy(struct rill__device *device, const struct rill__copy_3d *copy,
                                 struct rill__operation **out) {
  RILL_TRY(new_operation(RILL_NODE_COPY, device, NULL, 0, out));
  (*out)->copy = *copy;
  (*out)->staged = NULL;
  return RILL_OK;
}

rill_status rill__operation_fill(struct rill__device *device, const struct rill__fill_2d *fill,
                                 struct rill__operation **out) {
  RILL_TRY(new_operation(RILL_NODE_FILL, device, NULL, 0, out));
  (*out)->fill.rows = *fill;
  (*out)->fill.rows.pattern = memcpy((*out)->fill.pattern, fill->pattern, fill->pattern_size);
  return RILL_OK;
}

rill_status rill__operation_host_call(struct rill__device *device, rill_host_fn fn, void *user,
                                      struct rill__operation **out) {
  RILL_TRY(new_operation(RILL_NODE_HOST_CALL, device, NULL, 0, out));
  (*out)->host_call.fn = fn;
  (*out)->host_call.user = user;
  return RILL_OK;
}

rill_status rill__operation_prefetch(struct rill__device *device, const void *p, size_t size,
                                     struct rill__operation **out) {
  RILL_TRY(new_operation(RILL__OPERATION_PREFETCH, device, NULL, 0, out));
  (*out)->prefetch.p = p;
  (*out)->prefetch.size = size;
  return RILL_OK;
}

rill_status rill__operation_exec(struct rill__graph_exec *exec, struct rill__operation **out) {
  RILL_TRY(new_operation(RILL__OPERATION_EXEC, exec->base.device, NULL, 0, out));
  rill__ref(&exec->base);
  (*out)->exec = exec;
  return RILL_OK;
}

rill_status rill__operation_event(uint32_t kind, struct rill__event *event, struct rill__operation **out) {
  RILL_TRY(new_operation(kind, event->base.device, event->base.label, 0, out));
  rill__ref(&event->base);
  (*out)->event = event;
  return RILL_OK;
}

rill_status rill__operation_foreign(struct rill__device *device, uintptr_t graph, struct rill__operation **out) {
  const rill_status status = new_operation(RILL_NODE_OTHER, device, NULL, 0, out);
  if (status != RILL_OK) {
    RILL_ASK(device, graph, foreign_destroy, device, graph);
    return status;
  }
  (*out)->others = graph;
  return RILL_OK;
}

rill_status rill__operation_memory(struct rill__device *device, uint32_t kind, void *memory,
                                   struct rill__payload *payload, struct rill__operation **out) {
  RILL_TRY(new_operation(kind, device, NULL, 0, out));
  (*out)->memory = memory;
  atomic_init(&(*out)->taken, false);
  (*out)->payload = payload;
  return RILL_OK;
}

rill_status rill__operation_empty(struct rill__device *device, struct rill__operation **out) {
  return new_operation(RILL_NODE_EMPTY, device, NULL, 0, out);
}

rill_status rill__operation_submit(struct rill__operation *operation, struct rill__stream *stream) {
  switch (operation->kind) {
    case RILL_NODE_KERNEL: return RILL_DISPATCH_LAUNCH(stream, &operation->launch);
    case RILL_NODE_COPY: return rill__copy_dispatch(stream, &operation->copy);
    case RILL_NODE_FILL: return rill__fill_dispatch(stream, &operation->fill.rows);
    case RILL_NODE_HOST_CALL:
      return RILL_DISPATCH(stream, stream, host_call, stream, operation->host_call.fn, operation->host_call.user);
    default: return RILL_ERROR_INTERNAL;
  }
}
