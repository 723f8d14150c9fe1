/* Operations of random programs on graphs and captures. */
#include "mix_operations.h"

#include "mix.rill.h"

/* Reserves an entry for an execution object, by which its host call finds the object before it exists. */
static struct graph *note_graph(rill_device device) {
  unsigned number = atomic_load(&mix.graph_count);
  do {
    if (number == MIX_GRAPHS) return NULL;
  } while (!atomic_compare_exchange_weak(&mix.graph_count, &number, number + 1));
  struct graph *g = &mix.graphs[number];
  g->number = number;
  g->device = device;
  g->ran = mix.counters + 3 * MIX_STREAMS + number;
  return g;
}

static struct graph *graph_at(uint32_t place) { return atomic_load(&mix.graph_places[place % MIX_GRAPH_PLACES]); }

static uint32_t may_be_stale(const struct graph *g) {
  return atomic_load(&g->release_start) != 0 ? MIX_MAY(STALE_HANDLE) : 0;
}

/* Checks whether a call may have seen the object stale. */
static void check_stale(const struct call *call, const struct graph *g) {
  const uint64_t end = atomic_load(&g->release_end);
  if (call->status == RILL_OK && end != 0 && end < call->start) mix_complain(call, "succeeds after the last release");
}

static void end_graph(struct worker *w, struct graph *g) {
  atomic_store(&g->release_start, mix_tick());
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_graph_exec_release(g->exec), 0) != RILL_OK) mix_complain(call, "a graph is not released");
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_graph_release(g->graph), 0) != RILL_OK) mix_complain(call, "a graph is not released");
  atomic_store(&g->release_end, mix_tick());
}

static void put_graph(struct worker *w, uint32_t place, struct graph *g) {
  struct graph *old = atomic_exchange(&mix.graph_places[place % MIX_GRAPH_PLACES], g);
  if (old != NULL) end_graph(w, old);
}

/* Checks that the kernel of the same launch has run, and that the kernel of the next launch has not. */
static void count_launch(void *user, rill_status status) {
  struct graph *g = user;
  if (status != RILL_OK) {
    atomic_store(&g->failed, true);
    return;
  }
  g->called++;
  if (*g->ran != g->called)
    mix_complain(NULL, "graph %u: host call %u after %u kernels", g->number, g->called, *g->ran);
}

/* Instantiates the graph, and takes ownership of it. */
static void instantiate(struct worker *w, struct graph *g, rill_graph graph, bool keep, uint32_t place) {
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  const rill_status status = MIX_END(call, rill_graph_instantiate(graph, &g->exec), 0);
  if (keep && status == RILL_OK) {
    g->graph = graph;
  } else {
    call = mix_begin(w, CALL_OTHER, NULL, NULL);
    MIX_END(call, rill_graph_release(graph), 0);
  }
  if (status == RILL_OK) put_graph(w, place, g);
}

/* ---- explicit nodes ---- */

#define TRY_NODE(expression)                                      \
  do {                                                            \
    struct call *call_ = mix_begin(w, CALL_OTHER, NULL, NULL);    \
    if (MIX_END(call_, (expression), 0) != RILL_OK) return false; \
  } while (0)

/* Adds a kernel and then a host call, with empty nodes around them. */
static bool add_nodes(struct worker *w, struct graph *g, rill_graph graph, const struct operation *o) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_graph_node called, first[4], last;
  const size_t before = o->d % 4;
  rill_module module;
  rill_kernel kernel;
  for (size_t i = 0; i < before; i++) TRY_NODE(rill_graph_add_empty(graph, first, i, &first[i]));
  TRY_NODE(rill_module_load(g->device, &mix_bundle, &module));
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  const bool found = MIX_END(call, rill_module_get_kernel(module, "mix_run", &kernel), 0) == RILL_OK;
  (void)rill_module_release(module);
  if (!found) return false;
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call,
          rill_graph_add_kernel(graph, first, before, kernel, &launch,
                                RILL_ARGS(g->ran, (unsigned long long)(o->c % mix.round.delay_ns), 0u), &g->node),
          0);
  (void)rill_kernel_release(kernel);
  if (call->status != RILL_OK) return false;
  TRY_NODE(rill_graph_add_host_call(graph, NULL, 0, count_launch, g, &called));
  TRY_NODE(rill_graph_add_edge(graph, g->node, called));
  TRY_NODE(rill_graph_add_empty(graph, &called, 1, &last));
  return true;
}

OPERATION(new_graph) {
  struct graph *g = note_graph(mix.devices[o->b % mix.device_count]);
  rill_graph graph;
  if (g == NULL) return;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_graph_create(g->device, &graph), 0) != RILL_OK) return;
  if (add_nodes(w, g, graph, o)) {
    instantiate(w, g, graph, true, o->a);
  } else {
    (void)rill_graph_release(graph);
  }
}

/* ---- captures ---- */

/* Performs any other operation during the thread's capture. */
static void do_something_else(struct worker *w, uint32_t random) {
  for (unsigned i = 0; i < random % 4 && mix_has_room(w); i++) {
    const struct operation o = mix_operation_at(w->index + 1000, (random >> 4) + i);
    if (!mix_is_about_graphs(&o) || o.what == MIX_launch_graph) mix_do(w, &o);
  }
}

static bool use_memory(struct worker *w, rill_stream stream) {
  const uint32_t value = 0x11223344;
  void *memory = NULL;
  TRY_NODE(rill_alloc_async(stream, 4096, &memory));
  TRY_NODE(rill_fill_async(stream, memory, &value, 4, 1024));
  TRY_NODE(rill_free_async(stream, memory));
  return true;
}

/* Captures work on one stream, or on a second stream that is joined and joined back. */
static bool capture_work(struct worker *w, struct graph *g, const rill_stream *streams, const struct operation *o) {
  const rill_launch launch = rill_launch_1d(1, 1);
  const unsigned long long ns = o->c % mix.round.delay_ns;
  const bool fork = o->d % 2 == 0;
  if (o->d % 8 == 1 && !use_memory(w, streams[0])) return false;
  TRY_NODE(mix_run_launch(streams[0], &launch, g->ran, ns, 0));
  do_something_else(w, o->d >> 8);
  if (fork) TRY_NODE(rill_stream_wait_stream(streams[1], streams[0]));
  TRY_NODE(rill_stream_host_call(streams[fork], count_launch, g));
  do_something_else(w, o->d >> 16);
  if (fork) TRY_NODE(rill_stream_wait_stream(streams[0], streams[1]));
  return true;
}

static bool capture(struct worker *w, struct graph *g, const rill_stream *streams, const struct operation *o,
                    rill_graph *graph) {
  const uint32_t modes[] = { RILL_CAPTURE_GLOBAL, RILL_CAPTURE_THREAD, RILL_CAPTURE_RELAXED };
  bool captured = false;
  atomic_fetch_add(&mix.captures, 1);
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_stream_capture_begin(streams[0], modes[o->c % 3]), 0) == RILL_OK) {
    captured = capture_work(w, g, streams, o) && o->b % 8 != 0;
    call = mix_begin(w, CALL_OTHER, NULL, NULL);
    if (captured) {
      captured = MIX_END(call, rill_stream_capture_end(streams[0], graph), 0) == RILL_OK;
    } else {
      MIX_END(call, rill_stream_capture_abort(streams[0]), 0);
    }
    if (call->status != RILL_OK) mix_complain(call, "a capture does not end");
  }
  atomic_store(&mix.capture_ended, mix_tick());
  atomic_fetch_sub(&mix.captures, 1);
  return captured;
}

/* Captures streams that only this thread uses, and uses them for other work afterwards. */
OPERATION(capture) {
  struct graph *g = note_graph(mix.devices[o->b % mix.device_count]);
  rill_stream streams[2] = { RILL_NULL_STREAM, RILL_NULL_STREAM };
  rill_graph graph;
  if (g == NULL) return;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_stream_create(g->device, NULL, &streams[0]), 0) != RILL_OK) return;
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_stream_create(g->device, NULL, &streams[1]), 0) == RILL_OK) {
    const bool captured = capture(w, g, streams, o, &graph);
    for (int i = 0; i < 2; i++) {
      call = mix_begin(w, CALL_OTHER, NULL, NULL);
      MIX_END(call, rill_stream_synchronize(streams[i]), 0);
    }
    if (captured) instantiate(w, g, graph, false, o->a);
  }
  (void)rill_stream_release(streams[0]);
  (void)rill_stream_release(streams[1]);
}

/* ---- launches ---- */

/* Launches are refused while launches of the object are held on another stream. */
OPERATION(launch_graph) {
  struct object *stream = mix_stream_at(o->a);
  struct graph *g = graph_at(o->b);
  if (g == NULL) return;
  const bool elsewhere = stream->device.id != g->device.id;
  struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, rill_graph_launch(g->exec, stream_of(stream)),
          may_be_stale(g) | MIX_MAY(NOT_READY) | mix_full() | (elsewhere ? MIX_MAY(WRONG_DEVICE) : 0));
  if (call->status != RILL_OK) return;
  check_stale(call, g);
  if (elsewhere) mix_complain(call, "launches a graph of another device");
  atomic_fetch_add(&g->launches, 1);
}

OPERATION(change_graph) {
  struct graph *g = graph_at(o->b);
  if (g == NULL || g->graph.id == 0) return;
  const unsigned long long ns = o->c % mix.round.delay_ns;
  const unsigned anything = o->d;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  const uint32_t may = MIX_MAY(NOT_READY);
  switch (o->a % 3) {
    case 0:
      MIX_END(call, rill_graph_exec_set_kernel_arg(g->exec, g->node, 1, &ns, sizeof ns), may_be_stale(g) | may);
      break;
    case 1:
      MIX_END(call, rill_graph_exec_set_kernel_arg(g->exec, g->node, 2, &anything, sizeof anything),
              may_be_stale(g) | may);
      break;
    default:
      MIX_END(call, rill_graph_update(g->exec, g->graph), may_be_stale(g) | may | MIX_MAY(CAPTURE_ACTIVE));
      break;
  }
  check_stale(call, g);
}

/* ---- graphs that several threads build and execute ---- */

static void complain_that_it_runs(void *user, rill_status status) {
  (void)status;
  mix_complain(NULL, "graph %u: a node of an aborted capture runs", ((const struct graph *)user)->number);
}

/* Adds nodes to a graph by a capture that is aborted. */
OPERATION(extend_graph) {
  struct graph *g = graph_at(o->b);
  rill_stream stream;
  if (g == NULL || g->graph.id == 0) return;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_stream_create(g->device, NULL, &stream), 0) != RILL_OK) return;
  atomic_fetch_add(&mix.captures, 1);
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  const rill_status status =
      MIX_END(call, rill_stream_capture_begin_to_graph(stream, g->graph, NULL, 0, RILL_CAPTURE_RELAXED),
              may_be_stale(g) | MIX_MAY(CAPTURE_ACTIVE));
  check_stale(call, g);
  for (unsigned i = 0; i < o->c % 6 && status == RILL_OK; i++) {
    call = mix_begin(w, CALL_OTHER, NULL, NULL);
    MIX_END(call, rill_stream_host_call(stream, complain_that_it_runs, g), 0);
  }
  if (status == RILL_OK) {
    call = mix_begin(w, CALL_OTHER, NULL, NULL);
    MIX_END(call, rill_stream_capture_abort(stream), 0);
  }
  atomic_store(&mix.capture_ended, mix_tick());
  atomic_fetch_sub(&mix.captures, 1);
  (void)rill_stream_release(stream);
}

/* Creates another execution object of a graph. It is not launched, because its launches could overlap those of the
 * first object. */
OPERATION(execute_graph) {
  struct graph *g = graph_at(o->b);
  rill_graph_exec exec;
  if (g == NULL || g->graph.id == 0) return;
  const uint32_t may = MIX_MAY(CAPTURE_ACTIVE);
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_graph_instantiate(g->graph, &exec), may_be_stale(g) | may) != RILL_OK) return;
  check_stale(call, g);
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_graph_update(exec, g->graph), may_be_stale(g) | may);
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_graph_exec_release(exec), 0);
}

/* ---- the end of a round ---- */

void mix_end_graphs(struct worker *w) {
  for (unsigned i = 0; i < MIX_GRAPH_PLACES; i++) put_graph(w, i, NULL);
  for (unsigned i = 0; i < atomic_load(&mix.graph_count); i++) {
    const struct graph *g = &mix.graphs[i];
    const unsigned launches = atomic_load(&g->launches);
    const bool all = *g->ran == launches && g->called == launches;
    if (atomic_load(&g->failed) && !mix.round.abandons) mix_complain(NULL, "graph %u: a host call has failed", i);
    if (!all && (!mix.round.abandons || *g->ran > launches || g->called != *g->ran)) {
      mix_complain(NULL, "graph %u: %u launches, %u kernels, %u host calls", i, launches, *g->ran, g->called);
    }
  }
}
