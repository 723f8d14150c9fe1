/* Launches, changes and relaunches random graphs with branches, and compares them with a model (C7.1). Each node writes
 * its own cell. Kernels and host calls read the cells of all nodes that they depend on. Cells are cleared before a
 * launch, so a node that runs too early writes a wrong value. RILL_STRESS_SEED repeats a run. */
#include "support/testing.h"

#include "graph_branches.rill.h"

#include <rill/bundle.h>

enum { MOST_NODES = 21, CELL = 4, LAUNCHES = 4, UPDATES = 1000, WIDE = 32 };
enum kind { KERNEL, CALL, FILL, COPY, ROWS, EMPTY, KINDS };

/* The operation of a node. Host calls of earlier launches keep their data, so each change allocates new data. */
struct node {
  enum kind kind;
  unsigned number, before, salt; /* before: a bit for each node that this node depends on */
};

static struct {
  unsigned random, seed;
  rill_stream stream;
  rill_kernel combine;
  unsigned *cells, *values; /* pinned; values: read by copies that depend on no node */
  unsigned count;
  struct node nodes[MOST_NODES], called[MOST_NODES]; /* called: the data of host calls */
  rill_graph_node made[MOST_NODES];
} all;

static unsigned pick(unsigned below) {
  all.random = all.random * 1664525 + 1013904223;
  return (all.random >> 8) % below;
}

static unsigned combine(const unsigned *cells, const struct node *node) {
  unsigned sum = node->salt;
  for (unsigned i = 0; i < node->number; i++) {
    if ((node->before >> i & 1) != 0) sum = sum * 31 + cells[CELL * i] + 7 * cells[CELL * i + 2];
  }
  return sum;
}

static void set_cell(unsigned *cell, unsigned value) {
  for (unsigned i = 0; i < CELL; i++) cell[i] = value;
}

static void call_node(void *user, rill_status status) {
  const struct node *node = user;
  (void)status;
  set_cell(all.cells + (size_t)CELL * node->number, combine(all.cells, node));
}

/* Returns the source of a copy: the cell of the first node that it depends on, or a constant. */
static unsigned *source_of(unsigned *cells, const struct node *node) {
  if (node->before == 0) return all.values + (size_t)CELL * (node->salt % MOST_NODES);
  return cells + (size_t)CELL * (unsigned)__builtin_ctz(node->before);
}

/* ---- the model ---- */

static void run_model(unsigned *cells) {
  memset(cells, 0, sizeof(unsigned) * CELL * MOST_NODES);
  for (unsigned i = 0; i < all.count; i++) {
    const struct node *node = &all.nodes[i];
    unsigned *cell = cells + (size_t)CELL * i;
    switch (node->kind) {
      case KERNEL:
      case CALL: set_cell(cell, combine(cells, node)); break;
      case FILL: set_cell(cell, node->salt); break;
      case COPY: memcpy(cell, source_of(cells, node), CELL * sizeof *cell); break;
      case ROWS:
        cell[0] = source_of(cells, node)[0];
        cell[2] = source_of(cells, node)[2];
        break;
      default: break;
    }
  }
}

static void launch_and_compare(rill_graph_exec exec) {
  unsigned expected[CELL * MOST_NODES];
  memset(all.cells, 0, sizeof expected);
  assert_ok(rill_graph_launch(exec, all.stream));
  assert_completes(all.stream);
  run_model(expected);
  for (unsigned i = 0; i < CELL * all.count; i++) {
    if (all.cells[i] == expected[i]) continue;
    fail_msg("seed %u: word %u of node %u of %u, kind %d, is %u, the model has %u", all.seed, i % CELL, i / CELL,
             all.count, (int)all.nodes[i / CELL].kind, all.cells[i], expected[i]);
  }
}

/* ---- graphs ---- */

static void add_node(rill_graph graph, struct node *node, rill_graph_node *made) {
  const rill_launch shape = rill_launch_1d(1, 1);
  unsigned *cell = all.cells + (size_t)CELL * node->number;
  rill_graph_node after[MOST_NODES], *out = &made[node->number];
  size_t count = 0;
  for (unsigned i = 0; i < node->number; i++) {
    if ((node->before >> i & 1) != 0) after[count++] = made[i];
  }
  switch (node->kind) {
    case KERNEL:
      assert_ok(rill_graph_add_kernel(graph, after, count, all.combine, &shape,
                                      RILL_ARGS(all.cells, node->number, node->before, node->salt), out));
      break;
    case CALL: assert_ok(rill_graph_add_host_call(graph, after, count, call_node, node, out)); break;
    case FILL: assert_ok(rill_graph_add_fill(graph, after, count, cell, &node->salt, 4, CELL, out)); break;
    case COPY:
      assert_ok(rill_graph_add_copy(graph, after, count, cell, source_of(all.cells, node), 4 * CELL, out));
      break;
    case ROWS:
      assert_ok(rill_graph_add_copy_2d(graph, after, count, cell, 8, source_of(all.cells, node), 8, 4, 2, out));
      break;
    default: assert_ok(rill_graph_add_empty(graph, after, count, out)); break;
  }
}

static rill_graph build(rill_graph_node *made) {
  rill_graph graph;
  assert_ok(rill_graph_create(dut.device, &graph));
  memcpy(all.called, all.nodes, sizeof all.called);
  for (unsigned i = 0; i < all.count; i++) add_node(graph, &all.called[i], made);
  return graph;
}

/* Prefers recently added nodes, which makes long branches. */
static unsigned pick_before(unsigned number) {
  unsigned before = 0;
  for (unsigned edges = pick(4); number > 0 && edges > 0; edges--) {
    const unsigned far = pick(2) == 0 ? pick(number) : pick(number < 3 ? number : 3);
    before |= 1u << (number - 1 - far);
  }
  return before;
}

static void choose_graph(void) {
  all.count = 2 + pick(MOST_NODES - 1);
  for (unsigned i = 0; i < all.count; i++) {
    all.nodes[i] = (struct node){ (enum kind)pick(KINDS), i, pick_before(i), 1 + pick(1000) };
  }
}

/* ---- changes ---- */

/* Changes all nodes; copies become copies of rows, and the reverse. */
static void change_all(rill_graph_exec exec) {
  rill_graph_node others[MOST_NODES];
  for (unsigned i = 0; i < all.count; i++) {
    struct node *node = &all.nodes[i];
    if (pick(2) == 0) continue;
    node->salt = 1 + pick(1000);
    if (node->kind == COPY || node->kind == ROWS) node->kind = pick(2) == 0 ? COPY : ROWS;
  }
  const rill_graph graph = build(others);
  assert_ok(rill_graph_update(exec, graph));
  assert_ok(rill_graph_release(graph));
}

static void change_one(rill_graph_exec exec) {
  struct node *node = &all.nodes[pick(all.count)];
  const rill_launch shape = rill_launch_1d(1, 1);
  const rill_graph_node name = all.made[node->number];
  unsigned *cell = all.cells + (size_t)CELL * node->number;
  const unsigned salt = 1 + pick(1000);
  if (node->kind == CALL || node->kind == EMPTY) return;
  node->salt = salt;
  if (node->kind == KERNEL && pick(2) == 0) {
    assert_ok(rill_graph_exec_set_kernel_arg(exec, name, 3, &salt, sizeof salt));
  } else if (node->kind == KERNEL) {
    assert_ok(
        rill_graph_exec_set_kernel(exec, name, &shape, RILL_ARGS(all.cells, node->number, node->before, node->salt)));
  } else if (node->kind == FILL) {
    assert_ok(rill_graph_exec_set_fill(exec, name, cell, &salt, 4, CELL));
  } else {
    node->kind = COPY;
    assert_ok(rill_graph_exec_set_copy(exec, name, cell, source_of(all.cells, node), 4 * CELL));
  }
}

static void run_round(void) {
  rill_graph_exec exec;
  choose_graph();
  const rill_graph graph = build(all.made);
  assert_ok(rill_graph_instantiate(graph, &exec));
  launch_and_compare(exec);
  for (unsigned i = 1; i < LAUNCHES; i++) {
    for (unsigned changes = 1 + pick(4); changes > 0; changes--) {
      if (pick(4) == 0) change_all(exec);
      else change_one(exec);
    }
    launch_and_compare(exec);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

static void nodes_run_after_their_dependencies(void) {
  const char *text = getenv("RILL_STRESS_SEED");
  const unsigned first = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 1;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL)) skip_because("graphs are not changed here");
  memset(&all, 0, sizeof all);
  all.stream = new_stream("of graphs");
  all.combine = new_kernel(&graph_branches_bundle, "combine");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, CELL * MOST_NODES, &all.cells));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, CELL * MOST_NODES, &all.values));
  for (unsigned i = 0; i < CELL * MOST_NODES; i++) all.values[i] = 1000 + i;
  for (all.seed = first; all.seed < first + (text != NULL ? 1 : scaled(500)); all.seed++) {
    all.random = all.seed * 2654435761u;
    run_round();
  }
  assert_ok(rill_free(all.cells));
  assert_ok(rill_free(all.values));
}

/* ---- one object, changed many times ---- */

static struct {
  rill_kernel add;
  unsigned *sums, numbers[WIDE], expected[WIDE]; /* sums: pinned */
  rill_graph_node nodes[WIDE], others[WIDE];
} wide;

static rill_graph build_wide(rill_graph_node *nodes) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph graph;
  assert_ok(rill_graph_create(dut.device, &graph));
  for (unsigned i = 0; i < WIDE; i++) {
    assert_ok(rill_graph_add_kernel(graph, i < 4 ? NULL : &nodes[i - 4], i < 4 ? 0 : 1, wide.add, &shape,
                                    RILL_ARGS(wide.sums + i, wide.numbers[i]), &nodes[i]));
  }
  return graph;
}

static void change_wide(rill_graph_exec exec, unsigned number) {
  if (number % 2 == 0) {
    const unsigned i = number % WIDE;
    wide.numbers[i] = number;
    assert_ok(rill_graph_exec_set_kernel_arg(exec, wide.nodes[i], 1, &wide.numbers[i], sizeof wide.numbers[i]));
    return;
  }
  for (unsigned i = 0; i < WIDE; i++) wide.numbers[i] += i + number;
  const rill_graph graph = build_wide(wide.others);
  assert_ok(rill_graph_update(exec, graph));
  assert_ok(rill_graph_release(graph));
}

static void one_object_is_updated_a_thousand_times(void) {
  rill_stream streams[2] = { new_stream("first"), new_stream("second") };
  rill_graph_exec exec;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL)) skip_because("graphs are not changed here");
  memset(&wide, 0, sizeof wide);
  wide.add = new_kernel(&graph_branches_bundle, "add");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, WIDE, &wide.sums));
  memset(wide.sums, 0, WIDE * sizeof *wide.sums);
  const rill_graph graph = build_wide(wide.nodes);
  assert_ok(rill_graph_instantiate(graph, &exec));
  for (unsigned number = 0; number < UPDATES; number++) {
    change_wide(exec, number);
    assert_ok(rill_graph_launch(exec, streams[number / 7 % 2]));
    for (unsigned i = 0; i < WIDE; i++) wide.expected[i] += wide.numbers[i];
    if (number % 50 == 0) assert_completes(streams[number / 7 % 2]);
  }
  for (int i = 0; i < 2; i++) assert_completes(streams[i]);
  for (unsigned i = 0; i < WIDE; i++) assert_int_equal(wide.sums[i], wide.expected[i]);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_free(wide.sums));
}

TESTS_ON_EACH_DEVICE("stress: graph branches", TEST(nodes_run_after_their_dependencies),
                     TEST(one_object_is_updated_a_thousand_times))
