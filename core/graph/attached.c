/* The caller's objects that graphs and execution objects reference (rill_graph_add_user_object). */
#include "core/graph/graph.h"

#include <stdlib.h>

struct user_object {
  struct rill__object base;
  rill_release_fn release;
  void *user;
};

static void release_user_object(struct rill__object *object) {
  const struct user_object *attached = (struct user_object *)object;
  attached->release(attached->user);
  rill__object_free(object);
}

/* Defers the release: this may run inside an epoch or under a lock, and the caller's function may call rill. */
static void end_user_object(struct rill__object *object) {
  object->destroy = release_user_object;
  atomic_store(&object->refs, 1);
  rill__object_defer(object);
}

static rill_status add_attachment(struct rill__attachment **list, struct rill__object *object) {
  struct rill__attachment *attachment = malloc(sizeof *attachment);
  RILL_REQUIRE(attachment != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a user object");
  *attachment = (struct rill__attachment){ *list, object };
  *list = attachment;
  return RILL_OK;
}

rill_status rill__attach_new(struct rill__attachment **list, rill_release_fn release, void *user) {
  struct user_object *object = calloc(1, sizeof *object);
  RILL_REQUIRE(object != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a user object");
  rill__object_init(&object->base, NULL, end_user_object);
  object->release = release;
  object->user = user;
  const rill_status status = add_attachment(list, &object->base);
  if (status != RILL_OK) free(object);
  return status;
}

rill_status rill__attach_copies(struct rill__attachment **list, const struct rill__attachment *others) {
  struct rill__attachment *copies = NULL;
  for (; others != NULL; others = others->next) {
    const rill_status status = add_attachment(&copies, others->object);
    if (status == RILL_OK) rill__ref(others->object);
    if (status == RILL_OK) continue;
    rill__detach_all(&copies);
    return status;
  }
  rill__attach_moved(list, &copies);
  return RILL_OK;
}

/* Allocates nothing, because finish_capture cannot fail. */
void rill__attach_moved(struct rill__attachment **list, struct rill__attachment **others) {
  struct rill__attachment **last = others;
  while (*last != NULL) last = &(*last)->next;
  *last = *list;
  *list = *others;
  *others = NULL;
}

void rill__detach_all(struct rill__attachment **list) {
  while (*list != NULL) {
    struct rill__attachment *attachment = *list;
    *list = attachment->next;
    rill__unref(attachment->object);
    free(attachment);
  }
}

/* ---- objects of execution objects ---- */

struct attached {
  struct rill__object base;
  struct rill__attachment *list;
};

static void destroy_attached(struct rill__object *object) {
  rill__detach_all(&((struct attached *)object)->list);
  rill__object_free(object);
}

rill_status rill__attached_new(struct rill__device *device, const struct rill__attachment *list,
                               struct rill__object **out) {
  if (list == NULL) return RILL_OK;
  struct attached *attached = calloc(1, sizeof *attached);
  RILL_REQUIRE(attached != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for the user objects of a graph");
  rill__object_init(&attached->base, device, destroy_attached);
  const rill_status status = rill__attach_copies(&attached->list, list);
  if (status != RILL_OK) free(attached);
  if (status == RILL_OK) *out = &attached->base;
  return status;
}

const struct rill__attachment *rill__attached_list(const struct rill__object *attached) {
  return attached != NULL ? ((const struct attached *)attached)->list : NULL;
}
