/* Stored operations: submissions that are made later, once from the queue of a held stream or repeatedly from a graph.
 *
 * Invariants
 * - An operation is constant once it is created, and owns or references everything that its submission reads:
 *   arguments, pattern, label, extras, kernel, event, execution object and payload.
 * - A queue does not share its operations, so it may finish the payload when the driver has the work.  A graph shares
 *   operations with its clones and execution objects; the last of them to drop its reference drops the payload.
 */
#ifndef RILL_CORE_OPERATION_OPERATION_H
#define RILL_CORE_OPERATION_OPERATION_H

#include "core/object/core.h"

#include <rill/graph.h>
#include <string.h>

/* The resources that an operation owns besides its own struct, such as memory that data was copied to. finish: called
 * when the driver has the work that uses the resources; drop: called when nothing will use them. */
struct rill__payload {
  void (*finish)(struct rill__stream *stream, struct rill__payload *payload);
  void (*drop)(struct rill__payload *payload);
  size_t bytes;
  /* the operation that replaces the owner in one execution object, with a reference; or NULL */
  struct rill__operation *of;
};

/* Kinds in addition to RILL_NODE_*: no graph has such a node, and no backend receives one. */
enum {
  RILL__OPERATION_PREFETCH = 0x100,
  RILL__OPERATION_EXEC /* a launch of an execution object */
};

/* Each function creates an operation of the device with one reference.  For a launch, the arguments have already been
 * checked, and are copied. */
rill_status rill__operation_launch(const struct rill__launch *launch, struct rill__operation **out);
rill_status rill__operation_copy(struct rill__device *device, const struct rill__copy_3d *copy,
                                 struct rill__operation **out);
rill_status rill__operation_fill(struct rill__device *device, const struct rill__fill_2d *fill,
                                 struct rill__operation **out);
rill_status rill__operation_host_call(struct rill__device *device, rill_host_fn fn, void *user,
                                      struct rill__operation **out);
/* Creates a record or a wait.  `kind`: RILL_NODE_EVENT_RECORD or RILL_NODE_EVENT_WAIT. */
rill_status rill__operation_event(uint32_t kind, struct rill__event *event, struct rill__operation **out);
/* Creates an allocation or a free.  `kind`: RILL_NODE_ALLOC, which takes over the payload, or RILL_NODE_FREE. */
rill_status rill__operation_memory(struct rill__device *device, uint32_t kind, void *memory,
                                   struct rill__payload *payload, struct rill__operation **out);
/* Creates a node of other code's work.  Takes over the native graph. */
rill_status rill__operation_foreign(struct rill__device *device, uintptr_t graph, struct rill__operation **out);
rill_status rill__operation_prefetch(struct rill__device *device, const void *p, size_t size,
                                     struct rill__operation **out);
rill_status rill__operation_exec(struct rill__graph_exec *exec, struct rill__operation **out);
rill_status rill__operation_empty(struct rill__device *device, struct rill__operation **out);

/* Returns the bytes of the operation and its payload. */
size_t rill__operation_size(const struct rill__operation *operation);

/* Passes the payload to its `finish`: from here on the stream's driver uses what the operation owned.  Only the caller
 * has the operation. */
void rill__operation_finish(struct rill__operation *operation, struct rill__stream *stream);

/* Creates a launch with another value of argument `index`. */
rill_status rill__operation_with_arg(const struct rill__operation *launch, uint32_t index, const void *data,
                                     struct rill__operation **out);

/* Returns the name of the node: its label, or the kernel's name, or NULL if it has neither. */
static inline const char *rill__operation_name(const struct rill__operation *operation) {
  if (operation->label != NULL) return operation->label;
  return operation->kind == RILL_NODE_KERNEL ? operation->launch.kernel->name : NULL;
}

/* Returns true if the node has that name.  A kernel without a label also has its symbol as a name. */
static inline bool rill__operation_has_name(const struct rill__operation *operation, const char *name) {
  const char *const own = rill__operation_name(operation);
  if (own != NULL && strcmp(own, name) == 0) return true;
  return operation->label == NULL && operation->kind == RILL_NODE_KERNEL &&
         strcmp(operation->launch.kernel->source->name, name) == 0;
}

/* Returns the name of a kind of node: "kernel", "copy" ... */
const char *rill__node_kind_name(uint32_t kind);

#endif
