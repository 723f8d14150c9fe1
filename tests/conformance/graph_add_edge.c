/* rill_graph_add_edge */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  return rill_graph_add_edge((rill_graph){ id }, RILL_NULL_GRAPH_NODE, RILL_NULL_GRAPH_NODE);
}

static rill_graph_node first_of(rill_graph graph) {
  rill_graph_node first = RILL_NULL_GRAPH_NODE;
  size_t count = 1;
  assert_ok(rill_graph_get_nodes(graph, &first, &count));
  assert_true(count > 0);
  return first;
}

static rill_status add_bad_from(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  (void)count;
  return rill_graph_add_edge(graph, nodes[0], first_of(graph));
}

static rill_status add_to_bad(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  (void)count;
  return rill_graph_add_edge(graph, first_of(graph), nodes[0]);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_edge", add_to);
  refuses_bad_nodes("rill_graph_add_edge", add_bad_from);
  refuses_bad_nodes("rill_graph_add_edge", add_to_bad);
}

/* C7.1, G20 */
static void refuses_cycles(void) {
  enum { LENGTH = 50 };
  rill_graph graph = new_graph();
  rill_graph_node nodes[LENGTH];
  size_t edges = 0;
  for (unsigned i = 0; i < LENGTH; i++) nodes[i] = add_write(graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, 0, i);
  assert_fails(rill_graph_add_edge(graph, nodes[3], nodes[3]), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_edge(graph, nodes[LENGTH - 1], nodes[0]), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("node 49 to node 0");
  assert_fails(rill_graph_add_edge(graph, nodes[7], nodes[6]), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &edges));
  assert_int_equal(edges, LENGTH - 1);
  /* the text counts nodes as rill_graph_get_nodes lists them, also after a removal */
  assert_ok(rill_graph_remove_node(graph, nodes[1]));
  assert_fails(rill_graph_add_edge(graph, nodes[7], nodes[6]), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("node 6 to node 5");
  assert_fails(rill_graph_add_edge(graph, nodes[3], nodes[3]), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("node 2 cannot");
  assert_fails(rill_graph_remove_edge(graph, nodes[3], nodes[9]), RILL_ERROR_NOT_FOUND);
  assert_says("node 8 does not come after node 2");
}

/* G20: a duplicate edge, and an edge that other edges make redundant. */
static void accepts_redundant_edges(void) {
  rill_graph graph = new_graph();
  size_t edges = 0;
  rill_graph_node first = add_write(graph, NULL, 0, 0, 1), second = add_write(graph, &first, 1, 0, 2);
  rill_graph_node third = add_read(graph, &second, 1, 0), twice[2] = { first, first }, fourth;
  assert_ok(rill_graph_add_edge(graph, first, second));
  assert_ok(rill_graph_add_edge(graph, first, third));
  assert_ok(rill_graph_add_empty(graph, twice, 2, &fourth));
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &edges));
  assert_int_equal(edges, 4);
  run_graph(graph);
  assert_int_equal(dut.host[0], 2);
}

/* C7.1: an edge may lead from a node that was added later. */
static void orders_nodes_added_in_any_order(void) {
  enum { LENGTH = 40 };
  rill_graph graph = new_graph();
  rill_graph_node nodes[LENGTH];
  for (unsigned i = 0; i < LENGTH; i++) nodes[i] = add_write(graph, NULL, 0, 0, i);
  rill_graph_node last = add_read(graph, NULL, 0, 0);
  for (unsigned i = 0; i + 1 < LENGTH; i++) assert_ok(rill_graph_add_edge(graph, nodes[i + 1], nodes[i]));
  assert_ok(rill_graph_add_edge(graph, nodes[0], last));
  assert_fails(rill_graph_add_edge(graph, last, nodes[LENGTH - 1]), RILL_ERROR_INVALID_ARGUMENT);
  dut.host[0] = 99;
  run_graph(graph);
  assert_int_equal(dut.host[0], 0);
}

/* ---- random edges, against a model ---- */

enum { MODEL_NODES = 24, MODEL_STEPS = 1500 };
struct edges {
  rill_graph graph;
  rill_graph_node nodes[MODEL_NODES];
  unsigned count;
  bool after[MODEL_NODES][MODEL_NODES]; /* [to][from] */
};

/* Returns the next number below `limit` of a fixed random sequence. */
static unsigned pick(uint64_t *state, unsigned limit) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(*state >> 33) % limit;
}

static bool reaches(const struct edges *e, unsigned from, unsigned to) {
  bool seen[MODEL_NODES] = { false };
  unsigned stack[MODEL_NODES * MODEL_NODES + 1], depth = 0;
  stack[depth++] = to;
  while (depth > 0) {
    const unsigned at = stack[--depth];
    if (at == from) return true;
    if (seen[at]) continue;
    seen[at] = true;
    for (unsigned i = 0; i < e->count; i++) {
      if (e->after[at][i]) stack[depth++] = i;
    }
  }
  return false;
}

static void add_random_node(struct edges *e, uint64_t *state) {
  rill_graph_node after[6];
  const unsigned count = e->count == 0 ? 0 : pick(state, 7);
  for (unsigned i = 0; i < count; i++) {
    const unsigned from = pick(state, e->count);
    after[i] = e->nodes[from];
    e->after[e->count][from] = true;
  }
  assert_ok(rill_graph_add_empty(e->graph, after, count, &e->nodes[e->count]));
  e->count++;
}

static void expect_edges(const struct edges *e) {
  enum { MOST = MODEL_NODES * MODEL_NODES };
  rill_graph_node from[MOST], to[MOST];
  size_t count = MOST, expected = 0;
  for (unsigned i = 0; i < MODEL_NODES * MODEL_NODES; i++) expected += e->after[i / MODEL_NODES][i % MODEL_NODES];
  assert_ok(rill_graph_get_edges(e->graph, from, to, &count));
  assert_int_equal(count, expected);
  for (size_t i = 0; i < count; i++) {
    unsigned a = 0, b = 0;
    while (e->nodes[a].id != from[i].id) a++;
    while (e->nodes[b].id != to[i].id) b++;
    assert_true(e->after[b][a]);
  }
}

/* Adds nodes that depend on several others, some of them named twice; adds edges to few nodes and to all, removes some,
 * and tries to close cycles. */
static void edges_match_a_model(void) {
  uint64_t state = 20;
  for (unsigned round = 0; round < 8; round++) {
    struct edges e = { .graph = new_graph() };
    unsigned favourite = 0;
    add_random_node(&e, &state);
    for (unsigned step = 0; step < MODEL_STEPS; step++) {
      unsigned from = pick(&state, e.count);
      const unsigned choice = pick(&state, 16);
      if (choice == 0) favourite = pick(&state, e.count);
      unsigned to = choice % 2 == 0 ? favourite : pick(&state, e.count);
      /* in even rounds edges follow the order of the nodes, so no search for cycles is needed */
      if (round % 2 == 0 && from > to) {
        const unsigned larger = from;
        from = to;
        to = larger;
      }
      if (choice == 1 && e.count < MODEL_NODES) {
        add_random_node(&e, &state);
      } else if (choice < 4) {
        const rill_status status = rill_graph_remove_edge(e.graph, e.nodes[from], e.nodes[to]);
        assert_int_equal(status, e.after[to][from] ? RILL_OK : RILL_ERROR_NOT_FOUND);
        e.after[to][from] = false;
      } else {
        const rill_status status = rill_graph_add_edge(e.graph, e.nodes[from], e.nodes[to]);
        const bool cycle = reaches(&e, to, from);
        assert_int_equal(status, cycle ? RILL_ERROR_INVALID_ARGUMENT : RILL_OK);
        if (!cycle) e.after[to][from] = true;
      }
      if (step % 8 == 0) expect_edges(&e);
    }
    expect_edges(&e);
    assert_ok(rill_graph_release(e.graph));
  }
}

TESTS_ON_EACH_DEVICE("rill_graph_add_edge", TEST(edges_match_a_model), TEST(refuses_bad_handles), TEST(refuses_cycles),
                     TEST(accepts_redundant_edges), TEST(orders_nodes_added_in_any_order))
