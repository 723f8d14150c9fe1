/* Random work on several streams, checked against a model of the required order. For each stream and each recorded
 * event the model has a clock: the number of operations of every stream that are ordered before it. Before a stream
 * accesses a cell, the model checks whether the last accesses of the cell are ordered before; if not, it orders them
 * with an event or a stream wait, chosen at random, and with nothing else. Each read therefore has exactly one correct
 * result, and a wait that orders too little shows as a wrong result. */
#include "support/testing.h"

#include "gate.rill.h"

#include <stdio.h>

enum { STREAMS = 6, EVENTS = 8, USED_CELLS = 12, READS = 4096 };

struct clock {
  unsigned done[STREAMS];
};

static struct {
  unsigned random;
  rill_stream streams[STREAMS];
  struct clock known[STREAMS]; /* clock of the stream's next operation */
  unsigned submitted[STREAMS];
  rill_event events[EVENTS];
  struct clock marked[EVENTS];
  bool is_recorded[EVENTS];
  struct cell {
    uint32_t value;
    int writer; /* number of the stream, or -1 */
    unsigned written_at;
    unsigned read_at[STREAMS]; /* each stream's last read since the last write; 0: none */
  } cells[USED_CELLS];
  uint32_t *seen, expected[READS];
  unsigned reads;
  struct gate *gate; /* at most one gate is closed, because it blocks a worker */
} model;

static unsigned pick(unsigned below) {
  model.random = model.random * 1664525 + 1013904223;
  return (model.random >> 8) % below;
}

/* Returns the number of the next operation of `stream`. */
static unsigned submit(unsigned stream) {
  model.known[stream].done[stream] = ++model.submitted[stream];
  return model.submitted[stream];
}

static void merge(struct clock *into, const struct clock *from) {
  for (unsigned i = 0; i < STREAMS; i++) {
    if (into->done[i] < from->done[i]) into->done[i] = from->done[i];
  }
}

static bool is_before(int first, unsigned number, unsigned stream) {
  return first < 0 || number == 0 || model.known[stream].done[first] >= number;
}

/* ---- ordering ---- */

static void record(unsigned event, unsigned stream) {
  assert_ok(rill_stream_record_event(model.streams[stream], model.events[event], 0));
  model.marked[event] = model.known[stream];
  model.is_recorded[event] = true;
}

static void wait_for(unsigned stream, unsigned event) {
  assert_ok(rill_stream_wait_event(model.streams[stream], model.events[event], 0));
  merge(&model.known[stream], &model.marked[event]);
}

/* Orders operation `number` of stream `first` before the next operation of `stream`, in one of several ways. */
static void order(unsigned first, unsigned number, unsigned stream) {
  for (unsigned e = 0; e < EVENTS && pick(2) == 0; e++) { /* a recorded event may already cover it */
    if (model.is_recorded[e] && model.marked[e].done[first] >= number) {
      wait_for(stream, e);
      return;
    }
  }
  if (pick(2) == 0) {
    const unsigned event = pick(EVENTS);
    record(event, first);
    wait_for(stream, event);
    if (pick(4) == 0) record(event, pick(STREAMS)); /* a later record must not change the wait */
  } else {
    assert_ok(rill_stream_wait_stream(model.streams[stream], model.streams[first]));
    merge(&model.known[stream], &model.known[first]);
  }
}

static void order_for_read(unsigned stream, const struct cell *cell) {
  if (!is_before(cell->writer, cell->written_at, stream)) order((unsigned)cell->writer, cell->written_at, stream);
}

static void order_for_write(unsigned stream, const struct cell *cell) {
  order_for_read(stream, cell);
  for (unsigned i = 0; i < STREAMS; i++) {
    if (!is_before((int)i, cell->read_at[i], stream)) order(i, cell->read_at[i], stream);
  }
}

/* ---- operations ---- */

static void note_write(unsigned stream, struct cell *cell, uint32_t value) {
  *cell = (struct cell){ .value = value, .writer = (int)stream, .written_at = submit(stream) };
}

static void write_value(unsigned stream, unsigned index) {
  static uint32_t value;
  const rill_launch launch = rill_launch_1d(1, 1);
  order_for_write(stream, &model.cells[index]);
  value++;
  if (pick(2) == 0) {
    write_cell(model.streams[stream], index, value);
  } else {
    assert_ok(set_flag_launch(model.streams[stream], &launch, dut.memory + index, value));
  }
  note_write(stream, &model.cells[index], value);
}

static void copy_cell(unsigned stream, unsigned from, unsigned to) {
  if (from == to) return;
  order_for_read(stream, &model.cells[from]);
  order_for_write(stream, &model.cells[to]);
  assert_ok(rill_copy_async(model.streams[stream], dut.memory + to, dut.memory + from, sizeof(uint32_t)));
  note_write(stream, &model.cells[to], model.cells[from].value);
  model.cells[from].read_at[stream] = model.submitted[stream];
}

static void read_value(unsigned stream, unsigned index) {
  if (model.reads == READS) return;
  order_for_read(stream, &model.cells[index]);
  assert_ok(rill_copy_async(model.streams[stream], model.seen + model.reads, dut.memory + index, sizeof(uint32_t)));
  model.cells[index].read_at[stream] = submit(stream);
  model.expected[model.reads++] = model.cells[index].value;
}

static void delay(unsigned stream) {
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(spin_launch(model.streams[stream], &launch, pick(50000)));
}

/* Opens or closes a gate. While it is closed, the rest of the program is queued. */
static void open_or_close(unsigned stream) {
  if (model.gate != NULL) {
    gate_open(model.gate);
    model.gate = NULL;
  } else {
    model.gate = gate_close(model.streams[stream]);
  }
}

/* Releases objects while their work is pending; the model does not change. */
static void replace_event(unsigned event) {
  assert_ok(rill_event_release(model.events[event]));
  assert_ok(rill_event_create(dut.device, NULL, &model.events[event]));
  model.is_recorded[event] = false;
}

static void replace_stream(unsigned stream) {
  rill_stream fresh;
  assert_ok(rill_stream_create(dut.device, NULL, &fresh));
  /* the new stream continues the order of the old one */
  assert_ok(rill_stream_wait_stream(fresh, model.streams[stream]));
  assert_ok(rill_stream_release(model.streams[stream]));
  model.streams[stream] = fresh;
}

static void step(unsigned number) {
  const unsigned stream = pick(STREAMS), cell = pick(USED_CELLS), what = pick(100);
  if (what < 30) {
    write_value(stream, cell);
  } else if (what < 55) {
    copy_cell(stream, cell, pick(USED_CELLS));
  } else if (what < 75) {
    read_value(stream, cell);
  } else if (what < 85) {
    record(pick(EVENTS), stream);
  } else if (what < 93) {
    delay(stream);
  } else if (what < 95) {
    replace_event(pick(EVENTS));
  } else if (what < 96) {
    replace_stream(stream);
  } else if (number % 40 == 0 || model.gate != NULL) {
    open_or_close(stream);
  }
}

static void begin(unsigned seed) {
  uint32_t *seen = model.seen;
  memset(&model, 0, sizeof model);
  model.seen = seen;
  model.random = seed;
  for (unsigned i = 0; i < STREAMS; i++) assert_ok(rill_stream_create(dut.device, NULL, &model.streams[i]));
  for (unsigned i = 0; i < EVENTS; i++) assert_ok(rill_event_create(dut.device, NULL, &model.events[i]));
  for (unsigned i = 0; i < USED_CELLS; i++) {
    model.cells[i].writer = -1;
    write_value(pick(STREAMS), i);
  }
}

static void finish(unsigned seed) {
  if (model.gate != NULL) gate_open(model.gate);
  for (unsigned i = 0; i < STREAMS; i++) assert_completes(model.streams[i]);
  for (unsigned i = 0; i < model.reads; i++) {
    if (model.seen[i] != model.expected[i]) {
      fail_msg("seed %u: read %u of %u saw %u, not %u", seed, i, model.reads, (unsigned)model.seen[i],
               (unsigned)model.expected[i]);
    }
  }
  for (unsigned i = 0; i < STREAMS; i++) assert_ok(rill_stream_release(model.streams[i]));
  for (unsigned i = 0; i < EVENTS; i++) assert_ok(rill_event_release(model.events[i]));
  gates_forget();
}

static void run_program(unsigned seed, unsigned steps) {
  begin(seed);
  for (unsigned i = 0; i < steps; i++) step(i);
  finish(seed);
}

static void every_read_matches_the_model(void) {
  const char *text = getenv("RILL_STRESS_SEED");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, READS, &model.seen));
  if (text != NULL) {
    run_program((unsigned)strtoul(text, NULL, 10), 3000);
  } else {
    for (unsigned seed = 1; seed <= scaled(40); seed++) run_program(seed, 3000);
  }
  assert_ok(rill_free(model.seen));
}

TESTS_ON_EACH_DEVICE("stress: random graph", TEST(every_read_matches_the_model))
