/* Streams, events, gates and cells of a test. */
#include "testing_internal.h"

#include "gate.rill.h"

#include <rill/bundle.h>

#include <stdio.h>
#if UNDER_RACE_DETECTOR
#include <sanitizer/tsan_interface.h>
#include <unistd.h>
#endif

enum { GATES = 1024, OBJECTS = 2048 };
static const uint64_t gate_limit_ns = UINT64_C(20) * 1000 * MILLISECOND;

struct gate {
  unsigned flag, timed_out; /* pinned: the kernel looks at one and sets the other */
};

static struct {
  struct gate *gates;
  bool may_time_out[GATES];
  uint64_t limits[GATES]; /* ns */
  unsigned gate_count;
  rill_stream streams[OBJECTS];
  rill_event events[OBJECTS];
  rill_kernel kernels[OBJECTS];
  rill_graph graphs[OBJECTS];
  rill_graph_exec execs[OBJECTS];
  unsigned stream_count, event_count, kernel_count, graph_count, exec_count;
} test;

static rill_bundle private_bundle; /* a copy: gates keep the original loaded */
const rill_bundle *sample_bundle(void) { return &private_bundle; }

const char *sample_kernel_name(void) { return "wait_for_flag"; }

/* ---- objects ---- */

void keep_stream_until_end(rill_stream stream) {
  assert_true(test.stream_count < OBJECTS);
  test.streams[test.stream_count++] = stream;
}

void keep_event_until_end(rill_event event) {
  assert_true(test.event_count < OBJECTS);
  test.events[test.event_count++] = event;
}

void keep_graph_until_end(rill_graph graph) {
  assert_true(test.graph_count < OBJECTS);
  test.graphs[test.graph_count++] = graph;
}

void keep_exec_until_end(rill_graph_exec exec) {
  assert_true(test.exec_count < OBJECTS);
  test.execs[test.exec_count++] = exec;
}

rill_stream new_stream_on(rill_device device, const char *label) {
  rill_stream stream;
  assert_ok(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = label), &stream));
  keep_stream_until_end(stream);
  return stream;
}

rill_stream new_stream(const char *label) { return new_stream_on(dut.device, label); }

static rill_event make_event(rill_device device, const char *label, bool timing) {
  rill_event event;
  assert_ok(rill_event_create(device, RILL_EVENT_OPTIONS(.label = label, .timing = timing), &event));
  keep_event_until_end(event);
  return event;
}

rill_event new_event_on(rill_device device, const char *label) { return make_event(device, label, false); }
rill_event new_event(const char *label) { return make_event(dut.device, label, false); }
rill_event new_timing_event(const char *label) { return make_event(dut.device, label, true); }

rill_kernel new_kernel_on(rill_device device, const rill_bundle *bundle, const char *name) {
  rill_module module;
  rill_kernel kernel;
  assert_ok(rill_module_load(device, bundle, &module));
  assert_ok(rill_module_get_kernel(module, name, &kernel));
  assert_ok(rill_module_release(module)); /* the kernel keeps it */
  assert_true(test.kernel_count < OBJECTS);
  test.kernels[test.kernel_count++] = kernel;
  return kernel;
}

rill_kernel new_kernel(const rill_bundle *bundle, const char *name) { return new_kernel_on(dut.device, bundle, name); }

/* ---- gates ---- */

/* A gate as a host call.  The race detector does not see what kernels do, and so not that a gate was waited for. */
static void wait_at_gate(void *user, rill_status status) {
  (void)status;
  struct gate *gate = user;
  const uint64_t end = now_ns() + test.limits[gate - test.gates];
  while (__atomic_load_n(&gate->flag, __ATOMIC_SEQ_CST) == 0) {
    if (now_ns() >= end) {
      gate->timed_out = 1;
      return;
    }
    let_pass_ns(1000);
  }
}

static struct gate *close_gate(rill_stream stream, uint64_t limit_ns, bool may_time_out) {
  assert_true(test.gate_count < GATES);
  const unsigned index = test.gate_count++;
  struct gate *gate = &test.gates[index];
  test.may_time_out[index] = may_time_out;
  test.limits[index] = limit_ns;
  if (UNDER_RACE_DETECTOR && !dut.gpu) {
    assert_ok(rill_stream_host_call(stream, wait_at_gate, gate));
  } else {
    const rill_launch launch = rill_launch_1d(1, 1);
    assert_ok(wait_for_flag_launch(stream, &launch, &gate->flag, 1, limit_ns, &gate->timed_out));
  }
  return gate;
}

struct gate *gate_close(rill_stream stream) {
  return close_gate(stream, gate_limit_ns, false);
}
struct gate *gate_close_for(rill_stream stream, uint64_t ns) {
  return close_gate(stream, ns, true);
}
void gate_open(struct gate *gate) {
#if UNDER_RACE_DETECTOR
  __tsan_release(&environ); /* for kernels of the fake vendors, which are not instrumented */
#endif
  __atomic_store_n(&gate->flag, 1, __ATOMIC_SEQ_CST);
}

/* ---- cells ---- */

void write_cell(rill_stream stream, unsigned cell, uint32_t value) {
  assert_ok(rill_fill_async(stream, dut.memory + cell, &value, sizeof value, 1));
}

void read_cell(rill_stream stream, unsigned cell) {
  assert_ok(rill_copy_async(stream, dut.host + cell, dut.memory + cell, sizeof *dut.host));
}

bool is_complete(rill_stream stream) {
  bool complete = false;
  assert_ok(rill_stream_is_complete(stream, &complete));
  return complete;
}

bool is_ready(rill_event event) {
  bool ready = false;
  assert_ok(rill_event_is_ready(event, &ready));
  return ready;
}

void check_completes(rill_stream stream, const char *name, const char *file, int line) {
  check_ok(rill_stream_synchronize_for(stream, TIMEOUT_NS), name, file, line);
}

void check_becomes_ready(rill_event event, const char *name, const char *file, int line) {
  check_ok(rill_event_synchronize_for(event, TIMEOUT_NS), name, file, line);
}

/* ---- around tests ---- */

static rill_status clear_cells(void) {
  rill_stream stream;
  const uint32_t zero = 0;
  memset(dut.host, 0, CELLS * sizeof *dut.host);
  rill_status status = rill_device_default_stream(dut.device, &stream);
  if (status == RILL_OK) status = rill_fill_async(stream, dut.memory, &zero, sizeof zero, CELLS);
  if (status == RILL_OK) status = rill_copy_async(stream, dut.host, dut.memory, sizeof zero);
  if (status == RILL_OK) status = rill_stream_synchronize(stream);
  return status;
}

/* A driver may load a kernel at its first launch, and wait for running ones to do so: not after a gate, then. */
static rill_status load_gate(rill_device device) {
  rill_stream stream;
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_status status = rill_device_default_stream(device, &stream);
  test.gates[0].flag = 1;
  if (status == RILL_OK) {
    status = wait_for_flag_launch(stream, &launch, &test.gates[0].flag, 1, gate_limit_ns, &test.gates[0].timed_out);
  }
  if (status == RILL_OK) status = rill_stream_synchronize(stream);
  return status;
}

int objects_begin(void) {
  private_bundle = gate_bundle;
  rill_status status = RILL_NEW(dut.device, RILL_MEMORY_DEVICE, CELLS, &dut.memory);
  if (status == RILL_OK) status = RILL_NEW(dut.device, RILL_MEMORY_PINNED, CELLS, &dut.host);
  if (status == RILL_OK) status = RILL_NEW(dut.device, RILL_MEMORY_PINNED, GATES, &test.gates);
  if (status == RILL_OK) status = load_gate(dut.device);
  if (status == RILL_OK && dut.second.id != 0) status = load_gate(dut.second);
  if (status == RILL_OK) status = clear_cells();
  if (status == RILL_OK) {
    note_device(dut.device);
    if (dut.second.id != 0) note_device(dut.second);
    return 0;
  }
  print_error("%s cannot be prepared: %s\n", dut.name, rill_last_error_text());
  return -1;
}

void objects_end(void) {
  (void)rill_free(dut.memory);
  (void)rill_free(dut.host);
  (void)rill_free(test.gates);
  test.gates = NULL;
}

void objects_reset(void) {
  memset(test.gates, 0, GATES * sizeof *test.gates);
  test.gate_count = test.stream_count = test.event_count = test.kernel_count = 0;
  test.graph_count = test.exec_count = 0;
  assert_ok(clear_cells());
}

static bool gates_held(void) {
  bool held = true;
  for (unsigned i = 0; i < test.gate_count; i++) {
    if (test.gates[i].timed_out != 0 && !test.may_time_out[i]) held = false;
  }
  if (!held) print_error("a gate opened itself before the test opened it: something blocked\n");
  return held;
}

void gates_forget(void) {
  assert_ok(rill_device_synchronize(dut.device));
  if (dut.second.id != 0) assert_ok(rill_device_synchronize(dut.second));
  assert_true(gates_held());
  memset(test.gates, 0, test.gate_count * sizeof *test.gates);
  test.gate_count = 0;
}

bool objects_finish(void) {
  for (unsigned i = 0; i < test.gate_count; i++) gate_open(&test.gates[i]);
  for (unsigned i = 0; i < test.event_count; i++)
    ignore(rill_event_release(test.events[i])); /* no work waits for them any more */
  bool good = rill_device_synchronize(dut.device) == RILL_OK;
  if (good && dut.second.id != 0) good = rill_device_synchronize(dut.second) == RILL_OK;
  if (!good) print_error("after the test: %s\n", rill_last_error_text());
  for (unsigned i = 0; i < test.exec_count; i++) ignore(rill_graph_exec_release(test.execs[i]));
  for (unsigned i = 0; i < test.graph_count; i++) ignore(rill_graph_release(test.graphs[i]));
  for (unsigned i = 0; i < test.stream_count; i++) ignore(rill_stream_release(test.streams[i]));
  for (unsigned i = 0; i < test.kernel_count; i++) ignore(rill_kernel_release(test.kernels[i]));
  return gates_held() && good;
}
