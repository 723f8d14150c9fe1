/* Graphs: nodes and what each comes after.  A launch runs the nodes one after another, each time in another order of
 * those that the edges allow: an edge that is missing is noticed soon. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* What a node does, shared by its graph, execution objects and launches. */
struct work {
  unsigned refs;
  void (*run)(void *data, int status);
  void (*finish)(void *data);
  void *data;
  bool host_function;
  void *recorded, *awaited; /* events, by handle */
  struct fake_graph *child;
  struct work *disabled; /* what the node does when it is enabled again; NULL: it is enabled */
  enum fake_node kind;
  size_t argument_bytes;
  size_t after_count;
  uint32_t *after; /* numbers of nodes */
};

struct fake_graph_node {
  void *handle;
  struct fake_graph *graph;
  struct work *work;
  uint32_t number;
};

/* References to user objects, each of which is a work that does nothing: `finish` calls the destructor. */
struct objects {
  size_t count;
  struct work **works;
};

struct fake_graph {
  void *handle;
  unsigned refs;
  size_t count;
  struct fake_graph_node **nodes;
  struct objects objects;
};

struct exec {
  struct objects objects; /* those of child graphs belong to these */
  size_t count;
  struct work **works;
  void **nodes;  /* handles, of the graph that it was made from */
  size_t leaked; /* bytes of arguments, since it was made */
  struct fake_op *last;
};

static void release_work(struct work *work) {
  if (--work->refs != 0) return;
  if (work->finish != NULL) work->finish(work->data);
  if (work->child != NULL) fake_graph_release(work->child);
  if (work->disabled != NULL) release_work(work->disabled);
  free(work->after);
  free(work);
}

/* ---- user objects ---- */

struct user_object {
  void *handle;
  void (*destroy)(void *data);
  void *data;
};

/* On a thread of the driver's own, which must not call the driver. */
static void *run_destructor(void *argument) {
  struct user_object *object = argument;
  fake_set_in_host_function(true);
  object->destroy(object->data);
  free(object);
  return NULL;
}

static void destroy_object(void *data) {
  struct user_object *object = data;
  pthread_t thread;
  fake_handle_end(object->handle);
  if (pthread_create(&thread, NULL, run_destructor, object) != 0) fake_die("no thread for a destructor");
  (void)pthread_detach(thread);
}

int fake_object_create(void **out, void *data, void (*destroy)(void *data), unsigned refs, unsigned flags) {
  if (out == NULL || destroy == NULL || refs == 0 || flags != 1) return FAKE_INVALID_VALUE;
  struct user_object *object = malloc(sizeof *object);
  struct work *work = malloc(sizeof *work);
  if (object == NULL || work == NULL) fake_die("no memory for a user object");
  *work = (struct work){ .refs = refs, .finish = destroy_object, .data = object };
  *object = (struct user_object){ fake_handle_new(FAKE_USER_OBJECT, work), destroy, data };
  if (object->handle == NULL) fake_die("no memory for a user object");
  *out = object->handle;
  return FAKE_OK;
}

int fake_object_release(const void *handle, unsigned refs) {
  struct work *work = fake_handle_get(FAKE_USER_OBJECT, handle);
  if (work == NULL || refs == 0 || refs > work->refs) return FAKE_INVALID_VALUE;
  for (unsigned i = 0; i < refs; i++) release_work(work);
  return FAKE_OK;
}

static void add_object(struct objects *objects, struct work *work) {
  struct work **works = realloc(objects->works, (objects->count + 1) * sizeof *works);
  if (works == NULL) fake_die("no memory for a user object");
  objects->works = works;
  works[objects->count++] = work;
}

int fake_graph_retain_object(const void *handle, const void *object, unsigned refs, unsigned flags) {
  struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, handle);
  struct work *work = fake_handle_get(FAKE_USER_OBJECT, object);
  if (graph == NULL || work == NULL || refs == 0 || flags > 1) return FAKE_INVALID_VALUE;
  for (unsigned i = 0; i < refs; i++) add_object(&graph->objects, work);
  if (flags == 0) work->refs += refs; /* otherwise they are the caller's */
  return FAKE_OK;
}

static void drop_objects(struct objects *objects) {
  for (size_t i = 0; i < objects->count; i++) release_work(objects->works[i]);
  free(objects->works);
  *objects = (struct objects){ .count = 0 };
}

static void copy_objects(struct objects *into, const struct objects *from) {
  for (size_t i = 0; i < from->count; i++) {
    from->works[i]->refs++;
    add_object(into, from->works[i]);
  }
}

/* ---- graphs ---- */

struct fake_graph *fake_graph_new(void) {
  struct fake_graph *graph = calloc(1, sizeof *graph);
  if (graph == NULL) return NULL;
  graph->refs = 1;
  graph->handle = fake_handle_new(FAKE_GRAPH, graph);
  if (graph->handle != NULL) return graph;
  free(graph);
  return NULL;
}

void *fake_graph_handle(const struct fake_graph *graph) { return graph->handle; }

void fake_graph_release(struct fake_graph *graph) {
  if (--graph->refs != 0) return;
  for (size_t i = 0; i < graph->count; i++) {
    fake_handle_end(graph->nodes[i]->handle);
    release_work(graph->nodes[i]->work);
    free(graph->nodes[i]);
  }
  drop_objects(&graph->objects);
  free(graph->nodes);
  free(graph);
}

int fake_graph_destroy(void *handle) {
  struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, handle);
  if (graph == NULL) return FAKE_INVALID_VALUE;
  fake_handle_end(handle);
  graph->handle = NULL;
  fake_graph_release(graph);
  return FAKE_OK;
}

int fake_graph_create(void **out) {
  struct fake_graph *graph = out != NULL ? fake_graph_new() : NULL;
  if (graph == NULL) return out == NULL ? FAKE_INVALID_VALUE : FAKE_OUT_OF_MEMORY;
  *out = graph->handle;
  return FAKE_OK;
}

int fake_graph_check_nodes(const struct fake_graph *graph, void *const *nodes, size_t count) {
  if (count > 0 && nodes == NULL) return FAKE_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    const struct fake_graph_node *node = fake_handle_get(FAKE_GRAPH_NODE, nodes[i]);
    if (node == NULL || node->graph != graph) return FAKE_INVALID_VALUE;
    for (size_t k = 0; k < i; k++)
      if (nodes[k] == nodes[i]) return FAKE_INVALID_VALUE;
  }
  return FAKE_OK;
}

static int add_after_node(struct work *work, const void *before) {
  uint32_t *after = realloc(work->after, (work->after_count + 1) * sizeof *after);
  if (after == NULL) return FAKE_OUT_OF_MEMORY;
  work->after = after;
  after[work->after_count++] = ((const struct fake_graph_node *)fake_handle_get(FAKE_GRAPH_NODE, before))->number;
  return FAKE_OK;
}

static int add(struct fake_graph *graph, const struct fake_graph_place *place, const struct work *what, void **out) {
  int code = out == NULL ? FAKE_INVALID_VALUE : fake_graph_check_nodes(graph, place->after, place->count);
  if (code != FAKE_OK) return code;
  struct fake_graph_node **nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *nodes);
  if (nodes == NULL) return FAKE_OUT_OF_MEMORY;
  graph->nodes = nodes;
  struct fake_graph_node *node = calloc(1, sizeof *node);
  struct work *work = malloc(sizeof *work);
  if (node == NULL || work == NULL) fake_die("no memory for a node");
  *work = *what;
  work->refs = 1;
  *node = (struct fake_graph_node){ .graph = graph, .work = work, .number = (uint32_t)graph->count };
  node->handle = fake_handle_new(FAKE_GRAPH_NODE, node);
  for (size_t i = 0; i < place->count && code == FAKE_OK; i++) code = add_after_node(work, place->after[i]);
  if (node->handle == NULL || code != FAKE_OK) fake_die("no memory for a node");
  graph->nodes[graph->count++] = node;
  *out = node->handle;
  return FAKE_OK;
}

static struct work work_of(struct fake_op *op, enum fake_node kind) {
  return (struct work){
    .run = op->run,
    .finish = op->finish,
    .data = op->data,
    .host_function = op->host_function,
    .kind = kind,
    .argument_bytes = op->argument_bytes,
  };
}

/* Takes what the operation holds over. */
int fake_graph_capture(struct fake_graph *graph, const struct fake_graph_place *place, struct fake_op *op, void **out) {
  const struct work what = work_of(op, FAKE_NODE_OTHER);
  const int code = add(graph, place, &what, out);
  if (code != FAKE_OK && op->finish != NULL) op->finish(op->data);
  op->finish = NULL;
  return code;
}

static int add_after(const struct fake_graph_place *place, const struct work *what, void **out) {
  struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, place->graph);
  return graph == NULL ? FAKE_INVALID_VALUE : add(graph, place, what, out);
}

int fake_graph_add_op(const struct fake_graph_place *place, enum fake_node kind, struct fake_op *op, void **out) {
  const struct work what = work_of(op, kind);
  const int code = add_after(place, &what, out);
  if (code == FAKE_OK) op->finish = NULL;
  return code;
}

enum fake_node fake_graph_kind(const void *handle) {
  const struct fake_graph_node *node = fake_handle_get(FAKE_GRAPH_NODE, handle);
  return node != NULL ? node->work->kind : FAKE_NODE_OTHER;
}

/* Edges lead to later nodes only, as all that is tested here do: so there is no cycle to look for. */
int fake_graph_add_edges(const void *handle, void *const *from, void *const *to, size_t count) {
  const struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, handle);
  int code = graph == NULL ? FAKE_INVALID_VALUE : FAKE_OK;
  for (size_t i = 0; i < count && code == FAKE_OK; i++) {
    code = fake_graph_check_nodes(graph, &from[i], 1);
    if (code == FAKE_OK) code = fake_graph_check_nodes(graph, &to[i], 1);
    if (code != FAKE_OK) break;
    struct fake_graph_node *later = fake_handle_get(FAKE_GRAPH_NODE, to[i]);
    const struct fake_graph_node *earlier = fake_handle_get(FAKE_GRAPH_NODE, from[i]);
    code = earlier->number < later->number ? add_after_node(later->work, from[i]) : FAKE_INVALID_VALUE;
  }
  return code;
}

int fake_graph_add_empty(const struct fake_graph_place *place, void **out) {
  return add_after(place, &(struct work){ .run = NULL }, out);
}

int fake_graph_add_event(const struct fake_graph_place *place, void *event, bool record, void **out) {
  if (fake_handle_get(FAKE_EVENT, event) == NULL) return FAKE_INVALID_HANDLE;
  return add_after(place, &(struct work){ .recorded = record ? event : NULL, .awaited = record ? NULL : event }, out);
}

static struct work work_of_call(struct fake_host_call *call) {
  return (struct work){ .run = fake_run_host_call, .finish = free, .data = call, .host_function = true };
}

int fake_graph_add_host(const struct fake_graph_place *place, const struct fake_host_call *values, void **out) {
  struct fake_host_call *call = malloc(sizeof *call);
  if (call == NULL) return FAKE_OUT_OF_MEMORY;
  *call = *values;
  const struct work what = work_of_call(call);
  const int code = values->function != NULL ? add_after(place, &what, out) : FAKE_INVALID_VALUE;
  if (code != FAKE_OK) free(call);
  return code;
}

/* A copy, in that it keeps the other graph's nodes; nobody adds to that one afterwards. */
int fake_graph_add_child(const struct fake_graph_place *place, const void *handle, void **out) {
  struct fake_graph *child = fake_handle_get(FAKE_GRAPH, handle);
  if (child == NULL) return FAKE_INVALID_VALUE;
  const int code = add_after(place, &(struct work){ .child = child }, out);
  if (code == FAKE_OK) child->refs++;
  return code;
}

int fake_graph_count(const void *handle, size_t *count) {
  const struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, handle);
  if (graph == NULL || count == NULL) return FAKE_INVALID_VALUE;
  *count = graph->count;
  return FAKE_OK;
}

/* ---- execution objects ---- */

static void free_exec(struct exec *exec) {
  for (size_t i = 0; i < exec->count; i++) release_work(exec->works[i]);
  drop_objects(&exec->objects);
  fake_op_release(exec->last);
  free(exec->works);
  free(exec->nodes);
  free(exec);
}

int fake_graph_instantiate(const void *handle, void **out) {
  const struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, handle);
  if (graph == NULL || out == NULL) return FAKE_INVALID_VALUE;
  struct exec *exec = calloc(1, sizeof *exec);
  if (exec == NULL) return FAKE_OUT_OF_MEMORY;
  exec->works = calloc(graph->count + 1, sizeof *exec->works);
  exec->nodes = calloc(graph->count + 1, sizeof *exec->nodes);
  if (exec->works != NULL && exec->nodes != NULL) *out = fake_handle_new(FAKE_GRAPH_EXEC, exec);
  if (exec->works == NULL || exec->nodes == NULL || *out == NULL) {
    free_exec(exec);
    return FAKE_OUT_OF_MEMORY;
  }
  for (size_t i = 0; i < graph->count; i++) {
    exec->works[i] = graph->nodes[i]->work;
    exec->works[i]->refs++;
    exec->nodes[i] = graph->nodes[i]->handle;
  }
  exec->count = graph->count;
  copy_objects(&exec->objects, &graph->objects);
  return FAKE_OK;
}

int fake_graph_exec_destroy(void *handle) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  if (exec == NULL) return FAKE_INVALID_VALUE;
  if (fake_quirks()->graphs_overlap && exec->last != NULL && !exec->last->done)
    fake_die("an execution object is destroyed while a launch of it is under way");
  fake_handle_end(handle);
  free_exec(exec);
  return FAKE_OK;
}

static bool same_edges(const struct work *a, const struct work *b) {
  return a->after_count == b->after_count &&
         (a->after_count == 0 || memcmp(a->after, b->after, a->after_count * sizeof *a->after) == 0);
}

static bool same_fill(const struct fake_fill *a, const struct fake_fill *b) {
  return a->dst == b->dst && a->pitch == b->pitch && a->element == b->element && a->count == b->count &&
         a->height == b->height && a->value == b->value;
}

/* A kernel takes its arguments from memory that only the object's end frees.  AMD's runtime goes on until a launch
 * reads other memory. */
static void leak_arguments(struct exec *exec, const struct work *work) {
  enum { MOST = 2 << 20 };
  if (!fake_quirks()->arguments_leak) return;
  exec->leaked += work->argument_bytes;
  if (exec->leaked > MOST)
    fake_die("changes of one execution object have taken %zu bytes for arguments, which only its end frees",
             exec->leaked);
}

static bool is_copy(const struct work *work) {
  return work->kind == FAKE_NODE_COPY || work->kind == FAKE_NODE_COPY_OF_ROWS;
}

/* As drivers do, it refuses other kinds and edges, and other fills of several rows. */
static bool may_change(const struct work *before, const struct work *after) {
  if (is_copy(before) && is_copy(after) && before->kind != after->kind)
    fake_die("a node for a copy of one row is changed to one of several, which is of another class");
  if (before->run != after->run || before->kind != after->kind || !same_edges(before, after)) return false;
  return before->kind != FAKE_NODE_FILL_OF_ROWS || same_fill(before->data, after->data);
}

int fake_graph_exec_update(const void *handle, const void *graph_handle, void **failing) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  const struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, graph_handle);
  if (exec == NULL || graph == NULL) return FAKE_INVALID_VALUE;
  if (exec->count != graph->count) return FAKE_GRAPH_UPDATE_FAILURE;
  size_t good = 0;
  while (good < exec->count && may_change(exec->works[good], graph->nodes[good]->work)) good++;
  *failing = good < exec->count ? graph->nodes[good]->handle : NULL;
  if (*failing != NULL && !fake_quirks()->updates_are_partial) return FAKE_GRAPH_UPDATE_FAILURE;
  for (size_t i = 0; i < good; i++) {
    release_work(exec->works[i]);
    exec->works[i] = graph->nodes[i]->work;
    exec->works[i]->refs++;
    leak_arguments(exec, exec->works[i]);
  }
  if (*failing != NULL) return FAKE_GRAPH_UPDATE_FAILURE;
  struct objects before = exec->objects;
  exec->objects = (struct objects){ .count = 0 };
  copy_objects(&exec->objects, &graph->objects);
  drop_objects(&before);
  return FAKE_OK;
}

static uint32_t *copy_edges(const struct work *work) {
  uint32_t *after = malloc((work->after_count + 1) * sizeof *after);
  if (after == NULL) fake_die("no memory for a node");
  if (work->after_count > 0) memcpy(after, work->after, work->after_count * sizeof *after);
  return after;
}

/* Earlier launches keep their work. */
static void enable_node(struct exec *exec, size_t i, bool enabled) {
  struct work *const before = exec->works[i];
  if (enabled == (before->disabled == NULL)) return;
  if (enabled) {
    exec->works[i] = before->disabled;
    exec->works[i]->refs++;
    release_work(before);
    return;
  }
  struct work *work = calloc(1, sizeof *work);
  if (work == NULL) fake_die("no memory for a node");
  *work = (struct work){ .refs = 1, .run = before->run, .kind = before->kind, .disabled = before };
  work->after = copy_edges(before);
  work->after_count = before->after_count;
  exec->works[i] = work;
}

int fake_graph_exec_enable(const void *handle, const void *node, bool enabled) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  size_t i = 0;
  while (exec != NULL && i < exec->count && exec->nodes[i] != node) i++;
  if (exec == NULL || i == exec->count) return FAKE_INVALID_VALUE;
  switch (exec->works[i]->kind) {
    case FAKE_NODE_KERNEL:
    case FAKE_NODE_COPY:
    case FAKE_NODE_COPY_OF_ROWS:
    case FAKE_NODE_FILL:
    case FAKE_NODE_FILL_OF_ROWS: enable_node(exec, i, enabled); return FAKE_OK;
    default: return FAKE_INVALID_VALUE;
  }
}

/* Replaces a node's operation by another node's; returns false if the node is not in the object, or has another
 * kind. */
static bool replace_work(struct exec *exec, const void *node, const struct work *what) {
  size_t i = 0;
  while (exec != NULL && i < exec->count && exec->nodes[i] != node) i++;
  struct work *before = exec != NULL && i < exec->count ? exec->works[i] : NULL;
  if (before == NULL || before->run != what->run || before->kind != what->kind) return false;
  struct work *work = malloc(sizeof *work);
  if (work == NULL) fake_die("no memory for a node");
  *work = *what;
  work->refs = 1;
  work->after = copy_edges(before);
  work->after_count = before->after_count;
  const bool enabled = before->disabled == NULL;
  release_work(before);
  exec->works[i] = work;
  leak_arguments(exec, work);
  enable_node(exec, i, enabled); /* a disabled node stays so */
  return true;
}

int fake_graph_exec_set(const void *handle, const void *node, enum fake_node kind, struct fake_op *op) {
  const struct work what = work_of(op, kind);
  if (kind == FAKE_NODE_FILL_OF_ROWS || !replace_work(fake_handle_get(FAKE_GRAPH_EXEC, handle), node, &what)) {
    return FAKE_INVALID_VALUE;
  }
  op->finish = NULL;
  return FAKE_OK;
}

int fake_graph_exec_set_host(const void *handle, const void *node, const struct fake_host_call *values) {
  struct fake_host_call *call = malloc(sizeof *call);
  if (call == NULL) return FAKE_OUT_OF_MEMORY;
  *call = *values;
  const struct work what = work_of_call(call);
  if (values->function != NULL && replace_work(fake_handle_get(FAKE_GRAPH_EXEC, handle), node, &what)) return FAKE_OK;
  free(call);
  return FAKE_INVALID_VALUE;
}

/* ---- launches ---- */

static void run_work(void *data, int status) {
  const struct work *work = data;
  if (work->disabled == NULL) work->run(work->data, status);
}

static void finish_work(void *data) {
  fake_lock();
  release_work(data);
  fake_unlock();
}

static bool is_chain(struct work *const *works, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (works[i]->after_count != (i > 0) || (i > 0 && works[i]->after[0] != i - 1)) return false;
  return true;
}

/* Whether the runtime loses a node's edge: those from disabled fills; and with the quirk, one of each node that has
 * several, and beside branches those from child graphs. */
static bool is_lost(struct work *const *works, size_t node, size_t edge, bool chain) {
  const struct work *work = works[node], *before = works[work->after[edge]];
  if (before->disabled != NULL && (before->kind == FAKE_NODE_FILL || before->kind == FAKE_NODE_FILL_OF_ROWS))
    return true;
  if (!fake_quirks()->edges_are_lost) return false;
  return (work->after_count > 1 && edge == node % work->after_count) || (!chain && before->child != NULL);
}

/* Of those that may run now, another one each time. */
static size_t choose_next(struct work *const *works, size_t count, const bool *done, bool chain) {
  static uint32_t random = 1;
  size_t chosen = count;
  uint32_t candidates = 0;
  for (size_t i = 0; i < count; i++) {
    bool ready = !done[i];
    for (size_t k = 0; k < works[i]->after_count && ready; k++)
      ready = done[works[i]->after[k]] || is_lost(works, i, k, chain);
    if (!ready) continue;
    random = random * 1664525 + 1013904223;
    if ((random >> 16) % ++candidates == 0) chosen = i;
  }
  if (chosen == count) fake_die("a graph's nodes wait for each other");
  return chosen;
}

static int launch_work(struct work *work, const void *stream_handle, struct fake_stream *stream, struct exec *exec);

static int launch_works(struct work *const *works, size_t count, const void *stream_handle, struct fake_stream *stream,
                        struct exec *exec) {
  enum { MANY = 256 }; /* looking takes time that grows with the square */
  const bool chain = is_chain(works, count);
  int code = FAKE_OK;
  bool *done = calloc(count + 1, sizeof *done);
  if (done == NULL) return FAKE_OUT_OF_MEMORY;
  for (size_t i = 0; i < count && code == FAKE_OK; i++) {
    const size_t next = count <= MANY ? choose_next(works, count, done, chain) : i;
    done[next] = true;
    code = launch_work(works[next], stream_handle, stream, exec);
  }
  free(done);
  return code;
}

/* A launch keeps user objects until it has ended. */
static int keep_objects(const struct objects *objects, struct fake_stream *stream) {
  int code = FAKE_OK;
  for (size_t i = 0; i < objects->count && code == FAKE_OK; i++) {
    struct fake_op *op = fake_op_new(NULL, finish_work, objects->works[i]);
    if (op == NULL) return FAKE_OUT_OF_MEMORY;
    objects->works[i]->refs++;
    code = fake_submit(stream, op);
  }
  return code;
}

static int launch_child(const struct fake_graph *child, const void *stream_handle, struct fake_stream *stream,
                        struct exec *exec) {
  struct work **works = malloc((child->count + 1) * sizeof *works);
  if (works == NULL) return FAKE_OUT_OF_MEMORY;
  for (size_t i = 0; i < child->count; i++) works[i] = child->nodes[i]->work;
  const int code = launch_works(works, child->count, stream_handle, stream, exec);
  free(works);
  return code == FAKE_OK ? keep_objects(&child->objects, stream) : code;
}

static int launch_work(struct work *work, const void *stream_handle, struct fake_stream *stream, struct exec *exec) {
  if (work->recorded != NULL) return fake_event_record(work->recorded, stream_handle);
  if (work->awaited != NULL) return fake_stream_wait(stream_handle, work->awaited);
  if (work->child != NULL) return launch_child(work->child, stream_handle, stream, exec);
  struct fake_op *op = NULL;
  const int code = is_copy(work) ? fake_copy_at_launch(work->data, &op) : FAKE_OK;
  if (code != FAKE_OK) return code;
  if (op == NULL) {
    op = fake_op_new(work->run != NULL ? run_work : NULL, finish_work, work);
    if (op == NULL) return FAKE_OUT_OF_MEMORY;
    work->refs++;
  }
  op->host_function = work->host_function;
  if (!fake_quirks()->graphs_overlap) (void)fake_op_after(op, exec->last);
  return fake_submit(stream, op);
}

int fake_graph_upload(const void *handle, const void *stream_handle) {
  struct fake_stream *stream;
  const int code = fake_stream_get(stream_handle, &stream);
  if (fake_handle_get(FAKE_GRAPH_EXEC, handle) == NULL) return FAKE_INVALID_VALUE;
  return code == FAKE_OK && stream->capture != FAKE_CAPTURE_NONE ? FAKE_CAPTURE_UNSUPPORTED : code;
}

int fake_graph_launch(const void *handle, const void *stream_handle) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  struct fake_stream *stream;
  int code = fake_stream_get(stream_handle, &stream);
  if (exec == NULL || code != FAKE_OK) return exec == NULL ? FAKE_INVALID_VALUE : code;
  if (stream->capture != FAKE_CAPTURE_NONE) return FAKE_CAPTURE_UNSUPPORTED;
  code = launch_works(exec->works, exec->count, stream_handle, stream, exec);
  if (code == FAKE_OK) code = keep_objects(&exec->objects, stream);
  fake_op_release(exec->last);
  exec->last = stream->last;
  if (exec->last != NULL) exec->last->refs++;
  return code;
}
