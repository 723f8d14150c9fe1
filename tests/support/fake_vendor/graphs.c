/* Graphs: nodes in the order in which they were made, which is one that their edges allow; a launch runs them one after
 * another. */
#include "engine.h"

#include <stdlib.h>

/* What a node does, shared by its graph, execution objects and launches. */
struct work {
  unsigned refs;
  void (*run)(void *data, int status);
  void (*finish)(void *data);
  void *data;
  bool host_function;
  void *recorded, *awaited; /* events, by handle */
  struct fake_graph *child;
};

struct fake_graph_node {
  void *handle;
  struct fake_graph *graph;
  struct work *work;
};

struct fake_graph {
  void *handle;
  unsigned refs;
  size_t count;
  struct fake_graph_node **nodes;
};

struct exec {
  size_t count;
  struct work **works;
  void **nodes; /* handles, of the graph that it was made from */
  struct fake_op *last;
};

static void release_work(struct work *work) {
  if (--work->refs != 0) return;
  if (work->finish != NULL) work->finish(work->data);
  if (work->child != NULL) fake_graph_release(work->child);
  free(work);
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

static int add(struct fake_graph *graph, const struct work *what, void **out) {
  struct fake_graph_node **nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *nodes);
  if (nodes == NULL) return FAKE_OUT_OF_MEMORY;
  graph->nodes = nodes;
  struct fake_graph_node *node = calloc(1, sizeof *node);
  struct work *work = malloc(sizeof *work);
  if (node != NULL) node->handle = fake_handle_new(FAKE_GRAPH_NODE, node);
  if (node == NULL || work == NULL || node->handle == NULL) {
    free(node);
    free(work);
    return FAKE_OUT_OF_MEMORY;
  }
  *work = *what;
  work->refs = 1;
  node->graph = graph;
  node->work = work;
  graph->nodes[graph->count++] = node;
  *out = node->handle;
  return FAKE_OK;
}

int fake_graph_check_nodes(const struct fake_graph *graph, void *const *nodes, size_t count) {
  if (count > 0 && nodes == NULL) return FAKE_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    const struct fake_graph_node *node = fake_handle_get(FAKE_GRAPH_NODE, nodes[i]);
    if (node == NULL || node->graph != graph) return FAKE_INVALID_VALUE;
  }
  return FAKE_OK;
}

/* Takes what the operation holds over. */
int fake_graph_capture(struct fake_graph *graph, struct fake_op *op, void **out) {
  const struct work what = {
    .run = op->run, .finish = op->finish, .data = op->data, .host_function = op->host_function
  };
  const int code = add(graph, &what, out);
  if (code != FAKE_OK && op->finish != NULL) op->finish(op->data);
  op->finish = NULL;
  return code;
}

static int add_after(const struct fake_graph_place *place, const struct work *what, void **out) {
  struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, place->graph);
  if (graph == NULL || out == NULL) return FAKE_INVALID_VALUE;
  const int code = fake_graph_check_nodes(graph, place->after, place->count);
  return code == FAKE_OK ? add(graph, what, out) : code;
}

int fake_graph_add_empty(const struct fake_graph_place *place, void **out) {
  return add_after(place, &(struct work){ .run = NULL }, out);
}

int fake_graph_add_event(const struct fake_graph_place *place, void *event, bool record, void **out) {
  if (fake_handle_get(FAKE_EVENT, event) == NULL) return FAKE_INVALID_HANDLE;
  return add_after(place, &(struct work){ .recorded = record ? event : NULL, .awaited = record ? NULL : event }, out);
}

int fake_graph_add_host(const struct fake_graph_place *place, const struct fake_host_call *values, void **out) {
  struct fake_host_call *call = malloc(sizeof *call);
  if (call == NULL) return FAKE_OUT_OF_MEMORY;
  *call = *values;
  const struct work what = { .run = fake_run_host_call, .finish = free, .data = call, .host_function = true };
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
  return FAKE_OK;
}

int fake_graph_exec_destroy(void *handle) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  if (exec == NULL) return FAKE_INVALID_VALUE;
  fake_handle_end(handle);
  free_exec(exec);
  return FAKE_OK;
}

int fake_graph_exec_update(const void *handle, const void *graph_handle) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  const struct fake_graph *graph = fake_handle_get(FAKE_GRAPH, graph_handle);
  if (exec == NULL || graph == NULL) return FAKE_INVALID_VALUE;
  if (exec->count != graph->count) return FAKE_GRAPH_UPDATE_FAILURE;
  for (size_t i = 0; i < exec->count; i++) {
    if (exec->works[i]->run != graph->nodes[i]->work->run) return FAKE_GRAPH_UPDATE_FAILURE;
  }
  for (size_t i = 0; i < exec->count; i++) {
    release_work(exec->works[i]);
    exec->works[i] = graph->nodes[i]->work;
    exec->works[i]->refs++;
  }
  return FAKE_OK;
}

int fake_graph_exec_set(const void *handle, const void *node, struct fake_op *op) {
  struct exec *exec = fake_handle_get(FAKE_GRAPH_EXEC, handle);
  struct work *work = calloc(1, sizeof *work);
  size_t i = 0;
  while (exec != NULL && i < exec->count && exec->nodes[i] != node) i++;
  if (exec == NULL || i == exec->count || work == NULL || exec->works[i]->run != op->run) {
    free(work);
    return work == NULL ? FAKE_OUT_OF_MEMORY : FAKE_INVALID_VALUE;
  }
  *work = (struct work){ .refs = 1, .run = op->run, .finish = op->finish, .data = op->data };
  op->finish = NULL;
  release_work(exec->works[i]);
  exec->works[i] = work;
  return FAKE_OK;
}

/* ---- launches ---- */

static void run_work(void *data, int status) {
  const struct work *work = data;
  work->run(work->data, status);
}

static void finish_work(void *data) {
  fake_lock();
  release_work(data);
  fake_unlock();
}

static int launch_work(struct work *work, const void *stream_handle, struct fake_stream *stream, struct exec *exec) {
  if (work->recorded != NULL) return fake_event_record(work->recorded, stream_handle);
  if (work->awaited != NULL) return fake_stream_wait(stream_handle, work->awaited);
  if (work->child != NULL) {
    int code = FAKE_OK;
    for (size_t i = 0; i < work->child->count && code == FAKE_OK; i++)
      code = launch_work(work->child->nodes[i]->work, stream_handle, stream, exec);
    return code;
  }
  struct fake_op *op = fake_op_new(work->run != NULL ? run_work : NULL, finish_work, work);
  if (op == NULL) return FAKE_OUT_OF_MEMORY;
  work->refs++;
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
  for (size_t i = 0; i < exec->count && code == FAKE_OK; i++)
    code = launch_work(exec->works[i], stream_handle, stream, exec);
  fake_op_release(exec->last);
  exec->last = stream->last;
  if (exec->last != NULL) exec->last->refs++;
  return code;
}
