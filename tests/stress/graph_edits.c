/* Adds, reads, changes and removes nodes at random, creates execution objects in between, and compares with a model
 * (C7.1). A node must read as it was set, an object must run what the graph contained when the object was created or
 * updated, and a change of an object must apply to the right step. Each node writes its own cell. RILL_STRESS_SEED
 * repeats a run. */
#include "support/testing.h"

#include "gate.rill.h"

#include <rill/bundle.h>
#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>
#include <rill/graph_exec.h>

enum { MOST = 40, PLACES = 64, OBJECTS = 3, STEPS = 200, EVENTS = 4 };
enum kind { FILL, COPY, CALL, KERNEL, RECORD, KINDS };

struct node {
  rill_graph_node handle;
  enum kind kind;
  unsigned cell, salt; /* salt: the value that the node writes; 1 for a kernel; the event for a record */
};

struct object {
  rill_graph_exec exec;
  struct node nodes[MOST]; /* as the object executes them */
  unsigned count, shape;
};

static struct {
  unsigned random, seed;
  bool updates, records;
  rill_stream stream;
  rill_kernel increment;
  rill_event events[EVENTS]; /* so few that several nodes record the same event, in a defined order or unordered */
  unsigned *cells, *values;  /* pinned */
  rill_graph graph;
  struct node nodes[MOST];
  unsigned count, shape; /* shape: a number that changes whenever a node or edge is added or removed */
  struct object objects[OBJECTS];
  struct node calls[2 * STEPS]; /* the data of host calls */
  unsigned call_count;
} all;

static unsigned pick(unsigned below) {
  all.random = all.random * 1664525 + 1013904223;
  return (all.random >> 8) % below;
}

static void call_node(void *user, rill_status status) {
  const struct node *node = user;
  if (status == RILL_OK) all.cells[node->cell] = node->salt;
}

static struct node *new_call(const struct node *node) {
  all.calls[all.call_count] = *node;
  return &all.calls[all.call_count++];
}

static unsigned free_cell(void) {
  for (;;) {
    const unsigned cell = pick(PLACES);
    bool used = false;
    for (unsigned i = 0; i < all.count; i++) used |= all.nodes[i].cell == cell;
    if (!used) return cell;
  }
}

static unsigned new_salt(enum kind kind) {
  return kind == KERNEL ? 1 : kind == RECORD ? pick(EVENTS) : 1 + pick(PLACES - 1);
}

/* ---- objects ---- */

static void launch_and_compare(const struct object *object) {
  unsigned expected[PLACES] = { 0 };
  memset(all.cells, 0, PLACES * sizeof *all.cells);
  assert_ok(rill_graph_launch(object->exec, all.stream));
  assert_completes(all.stream);
  for (unsigned i = 0; i < object->count; i++) {
    const struct node *node = &object->nodes[i];
    if (node->kind == RECORD && !is_ready(all.events[node->salt]))
      fail_msg("seed %u: an event is not complete", all.seed);
    if (node->kind != RECORD) expected[node->cell] = node->kind == COPY ? all.values[node->salt] : node->salt;
  }
  for (unsigned i = 0; i < PLACES; i++) {
    if (all.cells[i] != expected[i])
      fail_msg("seed %u: cell %u is %u, %u in the model", all.seed, i, all.cells[i], expected[i]);
  }
}

static void note_nodes(struct object *object) {
  memcpy(object->nodes, all.nodes, sizeof object->nodes);
  object->count = all.count;
  object->shape = all.shape;
}

static void make_object(struct object *object) {
  if (object->exec.id != 0) assert_ok(rill_graph_exec_release(object->exec));
  assert_ok(rill_graph_instantiate(all.graph, &object->exec));
  note_nodes(object);
}

static void update_object(struct object *object) {
  if (!all.updates || object->exec.id == 0 || object->shape != all.shape) return;
  assert_ok(rill_graph_update(object->exec, all.graph));
  note_nodes(object);
}

static bool is_there(rill_graph_node handle) {
  bool found = false;
  for (unsigned i = 0; i < all.count; i++) found |= all.nodes[i].handle.id == handle.id;
  return found;
}

static void change_object(struct object *object) {
  if (!all.updates || object->count == 0 || object->exec.id == 0) return;
  struct node *node = &object->nodes[pick(object->count)];
  if (node->kind != FILL) return;
  const unsigned salt = 1 + pick(1000);
  const rill_status status =
      rill_graph_exec_set_fill(object->exec, node->handle, all.cells + node->cell, &salt, sizeof salt, 1);
  if (!is_there(node->handle)) {
    assert_int_equal(status, RILL_ERROR_STALE_HANDLE);
    return;
  }
  assert_int_equal(status, RILL_OK);
  node->salt = salt;
}

/* ---- nodes ---- */

static void add_node(void) {
  struct node *node = &all.nodes[all.count];
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph_node after[2];
  const size_t count = all.count > 0 ? pick(3) : 0;
  for (size_t i = 0; i < count; i++) after[i] = all.nodes[pick(all.count)].handle;
  *node = (struct node){ .kind = (enum kind)pick(all.records ? KINDS : RECORD), .cell = free_cell() };
  node->salt = new_salt(node->kind);
  unsigned *cell = all.cells + node->cell;
  switch (node->kind) {
    case FILL:
      assert_ok(rill_graph_add_fill(all.graph, after, count, cell, &node->salt, sizeof *cell, 1, &node->handle));
      break;
    case COPY:
      assert_ok(
          rill_graph_add_copy(all.graph, after, count, cell, all.values + node->salt, sizeof *cell, &node->handle));
      break;
    case CALL:
      assert_ok(rill_graph_add_host_call(all.graph, after, count, call_node, new_call(node), &node->handle));
      break;
    case KERNEL:
      assert_ok(rill_graph_add_kernel(all.graph, after, count, all.increment, &shape, RILL_ARGS(cell), &node->handle));
      break;
    default:
      assert_ok(rill_graph_add_event_record(all.graph, after, count, all.events[node->salt], &node->handle));
      break;
  }
  all.count++;
  all.shape++;
}

static void read_node(const struct node *node) {
  rill_launch launch = RILL_LAUNCH_INIT;
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  rill_arg arg = { NULL, 0 };
  rill_graph_node_params read = RILL_GRAPH_NODE_PARAMS_INIT;
  unsigned *cell = all.cells + node->cell;
  bool same = false;
  read.launch = &launch;
  read.copy = &copy;
  read.args = &arg;
  read.arg_count = 1;
  assert_ok(rill_graph_get_node_params(all.graph, node->handle, &read));
  switch (node->kind) {
    case FILL:
      same = read.kind == RILL_NODE_FILL && read.dst == cell && *(const unsigned *)read.pattern == node->salt &&
             read.width == 1 && read.height == 1;
      break;
    case COPY:
      same = read.kind == RILL_NODE_COPY && copy.dst == cell && copy.src == all.values + node->salt &&
             copy.width == sizeof *cell && copy.height == 1 && copy.depth == 1;
      break;
    case CALL: {
      const struct node *given = read.user;
      same = read.kind == RILL_NODE_HOST_CALL && read.fn == call_node && given->cell == node->cell &&
             given->salt == node->salt;
      break;
    }
    case KERNEL:
      same = read.kind == RILL_NODE_KERNEL && read.kernel.id == all.increment.id && read.arg_count == 1 &&
             memcmp(arg.data, &cell, sizeof cell) == 0 && launch.grid.x == 1 && launch.block.x == 1;
      break;
    default: same = read.kind == RILL_NODE_EVENT_RECORD && read.event.id == all.events[node->salt].id; break;
  }
  if (!same) fail_msg("seed %u: a node of kind %d does not read as it was set", all.seed, (int)node->kind);
}

/* Gives the node another cell and another value. */
static void change_node(struct node *node) {
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  rill_graph_node_params set = RILL_GRAPH_NODE_PARAMS_INIT;
  node->cell = free_cell();
  node->salt = new_salt(node->kind);
  unsigned *cell = all.cells + node->cell;
  const rill_arg arg = { &cell, sizeof cell };
  rill_arg args[] = { arg };
  switch (node->kind) {
    case FILL:
      set.dst = cell;
      set.pattern = &node->salt;
      set.pattern_size = sizeof *cell;
      set.width = set.height = 1;
      break;
    case COPY:
      copy.dst = cell;
      copy.src = all.values + node->salt;
      copy.width = copy.dst_pitch = copy.src_pitch = sizeof *cell;
      copy.height = copy.depth = 1;
      set.copy = &copy;
      break;
    case CALL:
      set.fn = call_node;
      set.user = new_call(node);
      break;
    case KERNEL:
      set.args = args;
      set.arg_count = 1;
      break;
    default: set.event = all.events[node->salt]; break;
  }
  assert_ok(rill_graph_set_node_params(all.graph, node->handle, &set));
}

static void remove_node(unsigned number) {
  const rill_graph_node gone = all.nodes[number].handle;
  rill_graph_node_params read = RILL_GRAPH_NODE_PARAMS_INIT;
  assert_ok(rill_graph_remove_node(all.graph, gone));
  all.count--;
  for (unsigned i = number; i < all.count; i++) all.nodes[i] = all.nodes[i + 1];
  all.shape++;
  assert_fails_in("rill_graph_get_node_params", rill_graph_get_node_params(all.graph, gone, &read),
                  RILL_ERROR_STALE_HANDLE);
}

/* Stores the handles of the nodes from `first` on, and compares the handles of the other nodes. */
static void list_nodes(unsigned first) {
  rill_graph_node nodes[MOST + 1];
  size_t count = MOST + 1;
  assert_ok(rill_graph_get_nodes(all.graph, nodes, &count));
  assert_int_equal(count, all.count);
  for (unsigned i = 0; i < all.count; i++) {
    if (i >= first) all.nodes[i].handle = nodes[i];
    if (nodes[i].id != all.nodes[i].handle.id) fail_msg("seed %u: node %u is listed in another place", all.seed, i);
  }
}

static struct node *next_fill(void) {
  all.nodes[all.count] = (struct node){ .kind = FILL, .cell = free_cell(), .salt = 1 + pick(1000) };
  return &all.nodes[all.count++];
}

/* Adds nodes with a capture, which removes them again if it is aborted. */
static void capture_nodes(void) {
  const unsigned first = all.count, count = 1 + pick(2);
  const rill_graph_node after = all.nodes[pick(all.count)].handle;
  rill_graph same;
  assert_ok(rill_stream_capture_begin_to_graph(all.stream, all.graph, &after, 1, RILL_CAPTURE_RELAXED));
  for (unsigned i = 0; i < count; i++) {
    const struct node *node = next_fill();
    assert_ok(rill_fill_async(all.stream, all.cells + node->cell, &node->salt, sizeof *all.cells, 1));
    if (pick(2) == 0) list_nodes(first);
  }
  if (pick(2) == 0) {
    assert_ok(rill_stream_capture_abort(all.stream));
    all.count = first;
  } else {
    assert_ok(rill_stream_capture_end(all.stream, &same));
    assert_ok(rill_graph_release(same));
    all.shape++;
  }
  list_nodes(first);
}

/* Adds a child graph: its nodes, but not the node that joins them. */
static void add_child(void) {
  const unsigned first = all.count, count = pick(3);
  const rill_graph_node after = all.nodes[pick(all.count)].handle;
  rill_graph child;
  rill_graph_node node, join;
  assert_ok(rill_graph_create(dut.device, &child));
  for (unsigned i = 0; i < count; i++) {
    const struct node *fill = next_fill();
    assert_ok(rill_graph_add_fill(child, &node, i > 0 ? pick(2) : 0, all.cells + fill->cell, &fill->salt,
                                  sizeof *all.cells, 1, &node));
  }
  assert_ok(rill_graph_add_child(all.graph, &after, 1, child, &join));
  assert_ok(rill_graph_release(child));
  assert_ok(rill_graph_remove_node(all.graph, join));
  all.shape++;
  list_nodes(first);
}

static void run_round(void) {
  all.count = all.call_count = 0;
  memset(all.objects, 0, sizeof all.objects);
  assert_ok(rill_graph_create(dut.device, &all.graph));
  for (unsigned step = 0; step < STEPS; step++) {
    const unsigned what = pick(100);
    struct object *object = &all.objects[pick(OBJECTS)];
    if (all.count == 0 || (what < 30 && all.count < MOST)) add_node();
    else if (what < 45) remove_node(pick(all.count));
    else if (what < 48 && all.count + 2 <= MOST) capture_nodes();
    else if (what < 51 && all.count + 2 <= MOST) add_child();
    else if (what < 65) change_node(&all.nodes[pick(all.count)]);
    else if (what < 75) read_node(&all.nodes[pick(all.count)]);
    else if (what < 80) make_object(object);
    else if (what < 85) update_object(object);
    else if (what < 93) change_object(object);
    else if (object->exec.id != 0) launch_and_compare(object);
  }
  for (unsigned i = 0; i < all.count; i++) read_node(&all.nodes[i]);
  for (unsigned i = 0; i < OBJECTS; i++) {
    if (all.objects[i].exec.id != 0) assert_ok(rill_graph_exec_release(all.objects[i].exec));
  }
  assert_ok(rill_graph_release(all.graph));
}

static void edited_graphs_match_a_model(void) {
  const char *text = getenv("RILL_STRESS_SEED");
  const unsigned first = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 1;
  rill_graph_node node;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  memset(&all, 0, sizeof all);
  all.updates = rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL);
  all.stream = new_stream("of graphs");
  all.increment = new_kernel(&gate_bundle, "increment");
  for (unsigned i = 0; i < EVENTS; i++) all.events[i] = new_event("recorded by nodes");
  assert_ok(rill_graph_create(dut.device, &all.graph));
  all.records = rill_graph_add_event_record(all.graph, NULL, 0, all.events[0], &node) == RILL_OK;
  assert_ok(rill_graph_release(all.graph));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, PLACES, &all.cells));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, PLACES, &all.values));
  for (unsigned i = 0; i < PLACES; i++) all.values[i] = 1000 + i;
  for (all.seed = first; all.seed < first + (text != NULL ? 1 : scaled(200)); all.seed++) {
    all.random = all.seed * 2654435761u;
    run_round();
  }
  assert_ok(rill_free(all.cells));
  assert_ok(rill_free(all.values));
}

/* ---- threads ---- */

enum { EDITORS = 4, SHARED = 8 };
struct editing {
  rill_graph graph;
  rill_graph_node kept[SHARED];
};

/* Adds and removes nodes of its own, and changes and reads the shared nodes. */
static const char *edit(unsigned index, void *user) {
  const struct editing *editing = user;
  unsigned random = index + 1;
  for (unsigned round = 0; round < scaled(3000); round++) {
    random = random * 1664525 + 1013904223;
    const rill_graph_node shared = editing->kept[(random >> 8) % SHARED];
    rill_graph_node_params set = RILL_GRAPH_NODE_PARAMS_INIT, read = RILL_GRAPH_NODE_PARAMS_INIT;
    rill_graph_node own;
    rill_graph_exec exec;
    set.fn = call_node;
    REQUIRE_OK(rill_graph_add_host_call(editing->graph, &shared, 1, call_node, NULL, &own));
    REQUIRE_OK(rill_graph_set_node_params(editing->graph, shared, &set));
    REQUIRE_OK(rill_graph_get_node_params(editing->graph, shared, &read));
    REQUIRE(read.kind == RILL_NODE_HOST_CALL && read.fn == call_node);
    if (round % 64 == 0) {
      REQUIRE_OK(rill_graph_instantiate(editing->graph, &exec));
      REQUIRE_OK(rill_graph_exec_release(exec));
    }
    REQUIRE_OK(rill_graph_remove_node(editing->graph, own));
    REQUIRE(rill_graph_remove_node(editing->graph, own) == RILL_ERROR_STALE_HANDLE);
  }
  return NULL;
}

static void threads_edit_one_graph(void) {
  struct editing editing;
  size_t nodes = 0, edges = 0;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  assert_ok(rill_graph_create(dut.device, &editing.graph));
  for (unsigned i = 0; i < SHARED; i++)
    assert_ok(rill_graph_add_host_call(editing.graph, NULL, 0, call_node, NULL, &editing.kept[i]));
  run_threads(EDITORS, edit, &editing);
  assert_ok(rill_graph_get_nodes(editing.graph, NULL, &nodes));
  assert_ok(rill_graph_get_edges(editing.graph, NULL, NULL, &edges));
  assert_int_equal(nodes, SHARED);
  assert_int_equal(edges, 0);
  assert_ok(rill_graph_release(editing.graph));
}

TESTS_ON_EACH_DEVICE("stress: edited graphs", TEST(edited_graphs_match_a_model), TEST(threads_edit_one_graph))
