/* core/order/engine.h: which accesses are ordered, without the rest of rill. */
#include "core/order/engine.h"

#include "support/testing.h"

#include <stdlib.h>
#include <string.h>

enum { ADDRESS = 0x100000 };

/* The findings that an engine has reported, by the tag of the later operation. */
static struct {
  unsigned certain, possible, after_free;
  uint32_t earlier; /* earlier operation of the last finding; 0: none */
} reported;

static void count_finding(void *user, const struct rill__order_finding *finding) {
  (void)user;
  if (finding->certain) reported.certain++;
  else reported.possible++;
  reported.after_free += finding->after_free;
  reported.earlier = finding->earlier != NULL ? finding->earlier->tag : 0;
}

static struct rill__order *order;

static void begin(void) {
  memset(&reported, 0, sizeof reported);
  order = rill__order_new(count_finding, NULL);
  assert_non_null(order);
}

static void expect(unsigned certain, unsigned possible) {
  assert_int_equal(reported.certain, certain);
  assert_int_equal(reported.possible, possible);
  rill__order_free(order);
}

static struct rill__order_op *named(uint32_t tag) {
  struct rill__order_op *op = rill__order_op_new();
  assert_non_null(op);
  op->tag = tag;
  return op;
}

static const struct rill__order_range a_write = { ADDRESS, 64, true, false, false, false, 0 };
static const struct rill__order_range a_read = { ADDRESS, 64, false, false, false, false, 0 };

static void submit_kind(uint64_t stream, uint32_t tag, enum rill__touch_kind kind, uint32_t flags,
                        struct rill__order_range range) {
  struct rill__order_op *op = named(tag);
  rill__order_submit(order, stream, op, kind, flags, &range, 1);
  rill__order_op_unref(op);
}

static void submit(uint64_t stream, uint32_t tag, struct rill__order_range range) {
  submit_kind(stream, tag, RILL__TOUCH_USE, 0, range);
}

/* ---- one thing at a time ---- */

static void two_streams_race(void) {
  begin();
  submit(1, 10, a_write);
  submit(2, 20, a_read);
  assert_int_equal(reported.earlier, 10);
  expect(1, 0);
}

static void two_reads_do_not_race(void) {
  begin();
  submit(1, 10, a_read);
  submit(2, 20, a_read);
  submit(3, 30, a_write);
  expect(2, 0);
}

static void other_bytes_do_not_race(void) {
  begin();
  submit(1, 10, (struct rill__order_range){ ADDRESS, 64, true, false, false, false, 0 });
  submit(2, 20, (struct rill__order_range){ ADDRESS + 64, 64, true, false, false, false, 0 });
  submit(3, 30, (struct rill__order_range){ ADDRESS - 64, 64, true, false, false, false, 0 });
  expect(0, 0);
  begin();
  submit(1, 10, (struct rill__order_range){ ADDRESS, 65, true, false, false, false, 0 });
  submit(2, 20, (struct rill__order_range){ ADDRESS + 64, 64, true, false, false, false, 0 });
  expect(1, 0);
}

static void an_event_orders_streams(void) {
  begin();
  submit(1, 10, a_write);
  rill__order_record(order, 1, 5);
  rill__order_wait(order, 2, 5);
  submit(2, 20, a_write);
  expect(0, 0);
  begin(); /* recorded before the access */
  rill__order_record(order, 1, 5);
  submit(1, 10, a_write);
  rill__order_wait(order, 2, 5);
  submit(2, 20, a_write);
  expect(1, 0);
  begin(); /* through a third stream, and through an event that is recorded again afterwards */
  submit(1, 10, a_write);
  rill__order_record(order, 1, 5);
  rill__order_wait(order, 2, 5);
  rill__order_record(order, 2, 5);
  rill__order_wait(order, 3, 5);
  submit(3, 30, a_write);
  expect(0, 0);
}

static void a_host_wait_orders_streams(void) {
  begin();
  submit(1, 10, a_write);
  rill__order_host_wait_stream(order, 1);
  submit(2, 20, a_write);
  rill__order_record(order, 2, 5);
  submit(2, 21, a_write);
  rill__order_host_wait_event(order, 5);
  submit(3, 30, a_read);
  expect(1, 0);
  begin(); /* a device: includes the waits of its streams, also of streams that have ended */
  rill__order_begin(order, 1, 0);
  rill__order_begin(order, 2, 1);
  submit(1, 10, a_write);
  rill__order_record(order, 1, 5);
  rill__order_wait(order, 2, 5);
  rill__order_end(order, 2);
  rill__order_host_wait_groups(order, 1, UINT32_MAX);
  submit(3, 30, a_write);
  expect(0, 0);
}

static void a_host_call_orders_streams(void) {
  begin();
  submit(1, 10, a_write);
  const uint64_t call = rill__order_call_submit(order, 1);
  submit(1, 11, (struct rill__order_range){ ADDRESS + 64, 64, true, false, false, false, 0 });
  rill__order_call_start(order, call);
  submit(2, 20, a_write);
  submit(2, 21, (struct rill__order_range){ ADDRESS + 64, 64, true, false, false, false, 0 });
  rill__order_call_end(order, call);
  expect(1, 0);
}

/* The second stream is complete before the host call ends, so the host call may have waited for it. */
static void a_host_call_delays_later_work(void) {
  begin();
  const uint64_t call = rill__order_call_submit(order, 1);
  submit(1, 10, a_write);
  rill__order_call_start(order, call);
  submit(2, 20, a_write);
  assert_int_equal(reported.certain + reported.possible, 0);
  rill__order_host_wait_stream(order, 2);
  rill__order_call_end(order, call);
  expect(0, 1);
  begin();
  const uint64_t other = rill__order_call_submit(order, 1);
  submit(1, 10, a_write);
  rill__order_call_start(order, other);
  submit(2, 20, a_write);
  rill__order_call_end(order, other);
  expect(1, 0);
}

static void flags_in_memory_may_order_work(void) {
  begin(); /* the host has seen what the kernel wrote */
  submit(1, 10, a_write);
  submit_kind(1, 11, RILL__TOUCH_USE, RILL__ORDER_PUBLISHES,
              (struct rill__order_range){ ADDRESS + 4096, 64, true, true, false, false, 0 });
  submit(2, 20, a_write);
  expect(0, 1);
  /* the kernel may wait until the host has seen the other stream complete; later it is known that it did not wait */
  begin();
  submit_kind(1, 11, RILL__TOUCH_USE, RILL__ORDER_POLLS,
              (struct rill__order_range){ ADDRESS + 4096, 64, false, true, false, false, 0 });
  submit(1, 10, a_write);
  submit(2, 20, a_write);
  assert_int_equal(reported.certain + reported.possible, 0);
  rill__order_host_wait_stream(order, 1);
  expect(1, 0);
  begin();
  submit_kind(1, 11, RILL__TOUCH_USE, RILL__ORDER_POLLS,
              (struct rill__order_range){ ADDRESS + 4096, 64, false, true, false, false, 0 });
  submit(1, 10, a_write);
  submit(2, 20, a_write);
  rill__order_host_wait_stream(order, 2);
  rill__order_host_wait_stream(order, 1);
  expect(0, 1);
  begin(); /* work after the kernel that writes is not known to be complete */
  submit_kind(1, 11, RILL__TOUCH_USE, RILL__ORDER_PUBLISHES,
              (struct rill__order_range){ ADDRESS + 4096, 64, true, true, false, false, 0 });
  submit(1, 10, a_write);
  submit(2, 20, a_write);
  expect(1, 0);
}

static void unknown_accesses_are_possible_races(void) {
  begin();
  submit(1, 10, (struct rill__order_range){ ADDRESS, 64, true, true, false, false, 0 });
  submit(2, 20, a_write);
  expect(0, 1);
  begin(); /* possible findings hide no certain finding */
  submit(1, 10, a_write);
  submit(1, 11, (struct rill__order_range){ ADDRESS, 64, true, true, false, false, 0 });
  submit(2, 20, a_write);
  expect(1, 1);
}

static void memory_is_freed_in_order(void) {
  begin();
  submit_kind(1, 1, RILL__TOUCH_ALLOCATE, 0, a_write);
  submit(1, 10, a_write);
  submit(2, 20, a_read); /* ordered neither after the allocation nor after the write */
  assert_int_equal(reported.certain, 1);
  submit_kind(1, 2, RILL__TOUCH_FREE, 0, a_write); /* not ordered before the free */
  expect(2, 0);
  begin(); /* a recorded use */
  submit(2, 20, a_read);
  rill__order_keep(order, 2, ADDRESS, 64);
  submit_kind(1, 2, RILL__TOUCH_FREE, 0, a_write);
  submit(1, 10, (struct rill__order_range){ ADDRESS, 4, false, false, true, false, 0 });
  assert_int_equal(reported.after_free, 1);
  assert_int_equal(reported.earlier, 2);
  rill__order_forget(order, ADDRESS, 64);
  submit(3, 30, a_write);
  expect(1, 0);
}

static void host_accesses_are_checked(void) {
  begin();
  struct rill__order_op *op = named(1);
  submit(1, 10, a_read);
  rill__order_host_access(order, op, &a_read);
  assert_int_equal(reported.certain, 0);
  rill__order_host_access(order, op, &a_write);
  assert_int_equal(reported.certain, 1);
  rill__order_host_wait_stream(order, 1);
  rill__order_host_access(order, op, &a_write);
  rill__order_op_unref(op);
  expect(1, 0);
}

/* ---- growth ---- */

/* Replaces streams, records events, and uses memory of many sizes; the host waits occasionally. */
static void run_long(unsigned first, unsigned end) {
  for (unsigned i = first; i < end; i++) {
    const uint64_t stream = 1 + i / 50 % 8 + i / 400 * 8;
    const uintptr_t p = ADDRESS + i * UINT64_C(2654435761) % (1 << 20) * 64;
    submit(stream, 1, (struct rill__order_range){ p, 64 + i % 7 * 512, i % 3 == 0, false, false, false, 0 });
    if (i % 4 == 0) rill__order_record(order, stream, 1 + i % 32);
    if (i % 4 == 2) rill__order_wait(order, stream, 1 + i * 7 % 32);
    if (i % 50 == 49) rill__order_end(order, stream);
    if (i % 1000 == 999) rill__order_host_wait_groups(order, 0, 0);
  }
}

static void work_that_the_host_waited_for_is_forgotten(void) {
  const unsigned rounds[] = { 10000, 100000 };
  struct rill__order_size size[2];
  unsigned done = 0;
  begin();
  for (unsigned i = 0; i < 2; i++) {
    const uint64_t start = now_ns();
    run_long(done, rounds[i]);
    const uint64_t ns = (now_ns() - start) / (rounds[i] - done);
    done = rounds[i];
    size[i] = rill__order_measure(order);
    print_message("%u operations: %zu bytes, %zu streams, %zu intervals, %llu ns each\n", done, size[i].bytes,
                  size[i].timelines, size[i].intervals, (unsigned long long)ns);
  }
  assert_true(size[1].bytes < 2 * size[0].bytes);
  assert_true(size[1].timelines < 2 * size[0].timelines + 16);
  rill__order_free(order);
}

/* The host never waits: the same few streams and buffers are ordered only by events. */
static void a_pipeline_without_the_host_is_bounded(void) {
  struct rill__order_size size[2] = { { 0 } };
  begin();
  for (unsigned i = 0; i < 100000; i++) {
    const uint64_t stream = 1 + i % 3;
    rill__order_wait(order, stream, 1 + (i + 2) % 3);
    submit(stream, 1, (struct rill__order_range){ ADDRESS + i % 16 * 4096, 4096, true, false, false, false, 0 });
    rill__order_record(order, stream, 1 + i % 3);
    if (i == 9999) size[0] = rill__order_measure(order);
  }
  size[1] = rill__order_measure(order);
  assert_int_equal(size[1].bytes, size[0].bytes);
  expect(0, 0);
}

/* ---- random programs against a graph ----
 *
 * The oracle shares no code with the engine. Each step is a node of a graph, with edges to the nodes that it depends
 * on. Two accesses are ordered if one node can be reached from the other. */

enum {
  STEPS = 70,
  PIECES = 12, /* number of pieces of memory, of PIECE bytes each */
  PIECE = 4,
  STREAMS = 5,
  EVENTS = 4,
  NODES = 8 * STEPS,
  EDGES = 2 * STREAMS + 4
};

struct node {
  uint64_t stream;   /* 0: the host */
  unsigned cells[2]; /* bits of the cells that are read and written */
  bool vague;
  unsigned forgotten; /* bits of cells that have since been freed and allocated again */
  uint64_t gate;      /* the last earlier gate that was not open; 0: none */
  int after[EDGES];
  unsigned after_count;
  bool reached;
};

struct model_gate {
  int node, last; /* last: for a poll, the last node that it covers */
  uint64_t stream, serial;
  bool polls, started, ended;
  bool was_open;
};

struct undecided {
  int a, b;
  uint64_t gate;
  bool seen;
};

static struct {
  struct node nodes[NODES];
  int count;
  int host;          /* the last node of the host */
  int last[STREAMS]; /* the last node of each stream; -1: none */
  uint64_t name[STREAMS], names;
  uint32_t group[STREAMS];
  int ended[STREAMS * STEPS]; /* last nodes of streams that have ended, by group 0 and 1 */
  unsigned ended_count;
  uint32_t ended_group[STREAMS * STEPS];
  int recorded[EVENTS];
  bool maybe[NODES]; /* the host may know that the node is complete */
  struct model_gate gates[STEPS];
  unsigned gate_count;
  struct undecided undecided[NODES * 8];
  unsigned undecided_count;
  bool certain[NODES], any[NODES];           /* findings of the oracle */
  bool said_certain[NODES], said_any[NODES]; /* findings of the engine */
} model;

static void note_finding(void *user, const struct rill__order_finding *finding) {
  (void)user;
  model.said_any[finding->later->tag] = true;
  if (finding->certain) model.said_certain[finding->later->tag] = true;
}

static int new_node(uint64_t stream) {
  assert_true(model.count < NODES);
  struct node *const node = &model.nodes[model.count];
  memset(node, 0, sizeof *node);
  node->stream = stream;
  return model.count++;
}

static void come_after(int node, int other) {
  if (other < 0) return;
  assert_true(model.nodes[node].after_count < EDGES);
  model.nodes[node].after[model.nodes[node].after_count++] = other;
}

static void mark_reached(int node, bool through_host) {
  struct node *const n = &model.nodes[node];
  if (n->reached) return;
  n->reached = true;
  for (unsigned i = 0; i < n->after_count; i++) {
    if (!through_host && model.nodes[n->after[i]].stream == 0) continue;
    mark_reached(n->after[i], through_host);
  }
}

static void reach(int node, bool through_host) {
  for (int i = 0; i < model.count; i++) model.nodes[i].reached = false;
  if (node >= 0) mark_reached(node, through_host);
}

static bool host_knows(int node) {
  reach(model.host, true);
  return model.nodes[node].reached;
}

static bool is_open(const struct model_gate *gate) {
  return gate->ended || host_knows(gate->polls ? gate->last : gate->node);
}

/* Adds a node for the next step of the stream, which comes after everything that the host knows. */
static int add_step(unsigned s) {
  const int node = new_node(model.name[s]);
  come_after(node, model.last[s]);
  come_after(node, model.host);
  model.last[s] = node;
  return node;
}

static int host_step(void) {
  const int node = new_node(0);
  come_after(node, model.host);
  model.host = node;
  return node;
}

static uint64_t last_gate_before(int node) {
  uint64_t found = 0;
  bool any_closed = false;
  bool reached[NODES];
  reach(node, false);
  for (int i = 0; i < model.count; i++) reached[i] = model.nodes[i].reached;
  for (unsigned i = 0; i < model.gate_count; i++) {
    const struct model_gate *const gate = &model.gates[i];
    if (gate->node == node || !reached[gate->node]) continue;
    found = gate->serial;
  }
  for (unsigned i = 0; i < model.gate_count; i++)
    any_closed |= model.gates[i].serial <= found && !is_open(&model.gates[i]);
  return any_closed ? found : 0;
}

static void judge(int a, int b) {
  const struct node *const earlier = &model.nodes[a], *const later = &model.nodes[b];
  bool closed = false;
  for (unsigned i = 0; i < model.gate_count; i++) {
    closed |= model.gates[i].serial <= earlier->gate && !is_open(&model.gates[i]);
  }
  const bool vague = earlier->vague || later->vague || model.maybe[a];
  if (!vague && closed && later->stream != 0) {
    model.undecided[model.undecided_count++] = (struct undecided){ a, b, earlier->gate, false };
    return;
  }
  model.any[b] = true;
  if (!vague && !closed) model.certain[b] = true;
}

static void judge_all(int b) {
  bool reached[NODES];
  reach(b, true);
  for (int i = 0; i < model.count; i++) reached[i] = model.nodes[i].reached;
  for (int a = 0; a < b; a++) {
    const struct node *const earlier = &model.nodes[a], *const later = &model.nodes[b];
    const unsigned written =
        (earlier->cells[1] & (later->cells[0] | later->cells[1])) | (earlier->cells[0] & later->cells[1]);
    if (earlier->stream != 0 && !reached[a] && (written & ~earlier->forgotten) != 0) judge(a, b);
  }
}

/* Compares the findings before the host waits for something, and again afterwards. */
static void look_all(void) {
  for (unsigned i = 0; i < model.undecided_count; i++) {
    model.undecided[i].seen = host_knows(model.undecided[i].b) || model.maybe[model.undecided[i].b];
  }
}

static void decide_all(void) {
  unsigned kept = 0;
  for (unsigned i = 0; i < model.undecided_count; i++) {
    const struct undecided u = model.undecided[i];
    bool closed = false;
    for (unsigned j = 0; j < model.gate_count; j++) {
      closed |= model.gates[j].serial <= u.gate && !is_open(&model.gates[j]);
    }
    if (!u.seen && closed) {
      model.undecided[kept++] = u;
      continue;
    }
    model.any[u.b] = true;
    if (!u.seen) model.certain[u.b] = true;
  }
  model.undecided_count = kept;
}

static uint64_t state;
static unsigned pick(unsigned n) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (unsigned)(state >> 33) % n;
}

static unsigned cells_of(unsigned first, unsigned count) { return ((1u << count) - 1) << first; }

static struct rill__order_range pick_range(struct node *node, bool vague) {
  const unsigned first = pick(PIECES), count = 1 + pick(PIECES - first);
  const bool write = pick(2) == 0;
  node->cells[write] |= cells_of(first, count);
  return (struct rill__order_range){ ADDRESS + PIECE * first, (size_t)PIECE * count, write, vague, false, false, 0 };
}

static void step_submit(unsigned s, bool flags) {
  struct rill__order_range ranges[2];
  const int b = add_step(s);
  struct node *const node = &model.nodes[b];
  const uint32_t does = flags ? pick(4) : 0;
  node->vague = pick(6) == 0;
  const size_t count = 1 + pick(2);
  for (size_t i = 0; i < count; i++) ranges[i] = pick_range(node, node->vague);
  node->gate = last_gate_before(b);
  judge_all(b);
  struct rill__order_op *op = named((uint32_t)b);
  rill__order_submit(order, model.name[s], op, RILL__TOUCH_USE, does, ranges, count);
  rill__order_op_unref(op);
  if ((does & RILL__ORDER_POLLS) != 0) {
    struct model_gate *same = NULL;
    for (unsigned i = 0; i < model.gate_count; i++) {
      struct model_gate *const gate = &model.gates[i];
      if (gate->polls && gate->stream == model.name[s] && !is_open(gate)) same = gate;
    }
    if (same == NULL) {
      same = &model.gates[model.gate_count++];
      *same = (struct model_gate){ .node = b, .stream = model.name[s], .serial = model.gate_count, .polls = true };
    }
    same->last = b;
  }
  if ((does & RILL__ORDER_PUBLISHES) != 0) {
    reach(b, true);
    for (int i = 0; i < model.count; i++) model.maybe[i] |= model.nodes[i].reached;
  }
}

static void step_call(unsigned s) {
  const int b = add_step(s);
  struct model_gate *const gate = &model.gates[model.gate_count++];
  *gate = (struct model_gate){ .node = b, .stream = model.name[s], .serial = model.gate_count };
  assert_true(rill__order_call_submit(order, model.name[s]) == gate->serial);
}

/* Starts or ends the first call that has not ended. */
static bool step_of_call(void) {
  for (unsigned i = 0; i < model.gate_count; i++) {
    struct model_gate *const gate = &model.gates[i];
    if (gate->polls || gate->ended) continue;
    const int node = gate->node;
    if (!gate->started) {
      const int host = host_step();
      for (unsigned j = 0; j < model.nodes[node].after_count; j++) come_after(host, model.nodes[node].after[j]);
      gate->started = true;
      rill__order_call_start(order, gate->serial);
      return true;
    }
    look_all();
    gate->ended = true;
    decide_all();
    come_after(host_step(), node);
    rill__order_call_end(order, gate->serial);
    return true;
  }
  return false;
}

static void step_host_wait(unsigned s) {
  const unsigned what = pick(3), event = pick(EVENTS);
  look_all();
  if (what == 0) {
    come_after(host_step(), model.last[s]);
    rill__order_host_wait_stream(order, model.name[s]);
  } else if (what == 1) {
    come_after(host_step(), model.recorded[event]);
    rill__order_host_wait_event(order, 1000 + event);
  } else {
    const uint32_t group = pick(2);
    for (unsigned i = 0; i < STREAMS; i++) {
      if (model.group[i] == group) come_after(host_step(), model.last[i]);
    }
    for (unsigned i = 0; i < model.ended_count; i++) {
      if (model.ended_group[i] == group && model.ended[i] >= 0 && !host_knows(model.ended[i]))
        come_after(host_step(), model.ended[i]);
    }
    rill__order_host_wait_groups(order, group, 1);
  }
  decide_all();
}

static void begin_stream(unsigned s) {
  model.name[s] = ++model.names;
  model.group[s] = pick(2);
  model.last[s] = -1;
  rill__order_begin(order, model.name[s], model.group[s]);
}

static void step_replace_stream(unsigned s) {
  model.ended[model.ended_count] = model.last[s];
  model.ended_group[model.ended_count++] = model.group[s];
  rill__order_end(order, model.name[s]);
  begin_stream(s);
}

static void step_host_access(void) {
  const int b = host_step();
  struct node *const node = &model.nodes[b];
  const struct rill__order_range range = pick_range(node, false);
  judge_all(b);
  struct rill__order_op *op = named((uint32_t)b);
  rill__order_host_access(order, op, &range);
  rill__order_op_unref(op);
}

static void step_forget(void) {
  const unsigned first = pick(PIECES), count = 1 + pick(PIECES - first);
  for (int i = 0; i < model.count; i++) model.nodes[i].forgotten |= cells_of(first, count);
  rill__order_forget(order, ADDRESS + PIECE * first, (size_t)PIECE * count);
}

static void run_program(uint64_t seed, bool flags, bool calls) {
  state = seed * 977 + 1;
  memset(&model, 0, sizeof model);
  order = rill__order_new(note_finding, NULL);
  assert_non_null(order);
  model.host = -1;
  (void)host_step();
  for (unsigned s = 0; s < STREAMS; s++) begin_stream(s);
  for (unsigned e = 0; e < EVENTS; e++) model.recorded[e] = -1;
  for (unsigned i = 0; i < STEPS; i++) {
    const unsigned s = pick(STREAMS), event = pick(EVENTS), what = pick(20);
    if (what < 8) {
      step_submit(s, flags);
    } else if (what < 11) {
      model.recorded[event] = add_step(s);
      rill__order_record(order, model.name[s], 1000 + event);
    } else if (what < 14) {
      if (model.recorded[event] >= 0) come_after(add_step(s), model.recorded[event]);
      rill__order_wait(order, model.name[s], 1000 + event);
    } else if (what == 14) {
      step_host_wait(s);
    } else if (what == 15) {
      step_replace_stream(s);
    } else if (what == 16) {
      step_host_access();
    } else if (what == 17) {
      step_forget();
    } else if (calls && what == 18) {
      step_call(s);
    } else if (calls) {
      (void)step_of_call();
    }
  }
  while (step_of_call()) {
  }
  for (unsigned s = 0; s < STREAMS; s++) {
    look_all();
    come_after(host_step(), model.last[s]);
    decide_all();
    rill__order_host_wait_stream(order, model.name[s]);
  }
  look_all();
  for (unsigned i = 0; i < model.ended_count; i++) {
    if (model.ended[i] >= 0) come_after(host_step(), model.ended[i]);
  }
  decide_all();
  rill__order_host_wait_groups(order, 0, 0);
  for (int i = 0; i < model.count; i++) {
    if (model.any[i] != model.said_any[i] || model.certain[i] != model.said_certain[i]) {
      fail_msg("program %llu, node %d: any %d, certain %d; the engine says any %d, certain %d",
               (unsigned long long)seed, i, model.any[i], model.certain[i], model.said_any[i], model.said_certain[i]);
    }
  }
  rill__order_free(order);
}

static void agrees_with_a_graph(void) {
  const unsigned programs = scaled(1500);
  for (unsigned i = 0; i < programs; i++) run_program(i, false, false);
}
static void agrees_about_flags(void) {
  const unsigned programs = scaled(1500);
  for (unsigned i = 0; i < programs; i++) run_program(i, true, false);
}
static void agrees_about_host_calls(void) {
  const unsigned programs = scaled(1500);
  for (unsigned i = 0; i < programs; i++) run_program(i, i % 2 == 0, true);
}

TESTS_ONCE("core/order/engine.h", TEST(two_streams_race), TEST(two_reads_do_not_race), TEST(other_bytes_do_not_race),
           TEST(an_event_orders_streams), TEST(a_host_wait_orders_streams), TEST(a_host_call_orders_streams),
           TEST(a_host_call_delays_later_work), TEST(flags_in_memory_may_order_work),
           TEST(unknown_accesses_are_possible_races), TEST(memory_is_freed_in_order), TEST(host_accesses_are_checked),
           TEST(work_that_the_host_waited_for_is_forgotten), TEST(a_pipeline_without_the_host_is_bounded),
           TEST(agrees_with_a_graph), TEST(agrees_about_flags), TEST(agrees_about_host_calls))
