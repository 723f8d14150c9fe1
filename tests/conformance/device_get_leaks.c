/* rill_device_get_leaks, and the other checks of RILL_CHECK=memory */
#include "fault/children.h"

#include "launch.rill.h"

enum { MANY = 64 };

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

/* ---- arguments ---- */

static rill_status call_with_device(uint64_t id) {
  size_t count = 7;
  const rill_status status = rill_device_get_leaks((rill_device){ id }, NULL, &count);
  assert_int_equal(count, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_device_get_leaks", call_with_device); }

static void refuses_null(void) {
  size_t count = 1;
  assert_fails(rill_device_get_leaks(dut.device, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_device_get_leaks(dut.device, NULL, &count), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(count, 0);
}

/* ---- writes outside ---- */

/* Stores a word with a kernel, which works on every device. */
static void store(rill_stream stream, void *p, unsigned value) {
  assert_ok(store_launch(stream, &one_thread, value, p));
}

#define assert_found(call) assert_fails(call, RILL_ERROR_CHECK)

static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };

static bool has(uint32_t kind) {
  return kind != RILL_MEMORY_MANAGED || rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL);
}

static void finds_stores_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char *p;
    if (!has(kinds[i])) continue;
    assert_ok(rill_alloc(dut.device, 1000, kinds[i], (void **)&p));
    store(stream, p + 1000, 0x01020304);
    assert_found(rill_stream_synchronize(stream));
    assert_says("4 bytes were written past the end, from offset 1000 on, of 1000 bytes of");
    assert_says(kinds[i] == RILL_MEMORY_DEVICE   ? "device memory"
                : kinds[i] == RILL_MEMORY_PINNED ? "pinned memory"
                                                 : "managed memory");
    assert_says("the first is 0x04");
    assert_ok(rill_stream_synchronize(stream)); /* reported only once */
    assert_ok(rill_device_synchronize(dut.device));
    assert_ok(rill_free(p));
  }
}

static void finds_stores_before_the_start(void) {
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char *p;
    if (!has(kinds[i])) continue;
    assert_ok(rill_alloc(dut.device, 1000, kinds[i], (void **)&p));
    store(stream, p - 8, 0x01020304);
    assert_found(rill_free(p)); /* the memory is freed nevertheless */
    assert_says("4 bytes were written before the start, from offset -8 on, of 1000 bytes");
    assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
  }
}

/* The error's details name the calls that made the allocation. */
static void says_where_it_was_allocated(void) {
  char *p;
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_alloc(dut.device, 100, RILL_MEMORY_PINNED, (void **)&p));
  p[100] = 1;
  assert_found(rill_device_synchronize(dut.device));
  assert_ok(rill_last_error(&error));
  assert_non_null(strstr(error.message, "1 byte was written past the end, from offset 100 on"));
  assert_non_null(strstr(error.message, "it is 0x01\n  allocated at\n    conformance_device_get_leaks+0x"));
  assert_ok(rill_free(p));
}

/* Adds 1 to the number at `p`. */
static void add_to_float(char *p) { *(float *)(void *)p += 1; }
static void add_to_double(char *p) { *(double *)(void *)p += 1; }
static void add_to_int(char *p) { *(int *)(void *)p += 1; }
static void (*const additions[])(char *p) = { add_to_float, add_to_double, add_to_int };

/* A kernel that adds to its output may change only the last bits of what is there. */
static void finds_additions(void) {
  for (size_t i = 0; i < sizeof additions / sizeof *additions; i++) {
    char *p;
    assert_ok(rill_alloc(dut.device, 1000, RILL_MEMORY_PINNED, (void **)&p));
    additions[i](p + 1000);
    assert_found(rill_device_synchronize(dut.device));
    assert_says("written past the end, from offset ");
    assert_says(" (allocated at conformance_device_get_leaks+0x");
    assert_ok(rill_free(p));
    assert_ok(rill_alloc(dut.device, 1000, RILL_MEMORY_PINNED, (void **)&p));
    assert_ok(rill_free(p));
    additions[i](p + 8); /* kept back, so the program can still write it */
    assert_found(rill_device_synchronize(dut.device));
    assert_says("after they were freed");
  }
}

static void overrun(void *user, rill_status status) {
  char *p = user;
  if (status == RILL_OK) memset(p + 4, 0x5a, 8);
}

static void finds_what_a_host_call_wrote(void) {
  rill_stream stream = new_stream("stream");
  char *p;
  assert_ok(rill_alloc(dut.device, 4, RILL_MEMORY_PINNED, (void **)&p));
  assert_ok(rill_stream_host_call(stream, overrun, p));
  assert_found(rill_stream_synchronize(stream));
  assert_says("8 bytes were written past the end, from offset 4 on, of 4 bytes of pinned memory");
  assert_ok(rill_free(p));
}

/* Stores beside pool memory are found, also by the synchronize of an event. Memory with a requested alignment has a red
 * zone directly before it. */
static void finds_stores_beside_pool_memory(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  rill_pool pool;
  char *p, *q;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.label = "of a test"), &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 500, (void **)&p));
  assert_ok(rill_pool_alloc_aligned_async(pool, stream, 500, 8192, (void **)&q));
  assert_int_equal((uintptr_t)p % 256, 0);
  assert_int_equal((uintptr_t)q % 8192, 0);
  store(stream, p + 500, 1);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_found(rill_event_synchronize(event));
  assert_says("past the end, from offset 500 on, of 500 bytes of device memory of pool \"of a test\"");
  store(stream, q - 4, 1);
  assert_ok(rill_free_async(stream, q));
  assert_found(rill_stream_synchronize(stream));
  assert_says("before the start, from offset -4 on");
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_pool_release(pool));
}

/* Memory of a held stream, and of a graph: nothing has used it before. */
static void finds_stores_of_held_work_and_graphs(void) {
  rill_stream held = new_stream("held"), captured = new_stream("captured");
  rill_event event = new_event("event");
  rill_pool pool;
  rill_graph graph;
  rill_graph_exec exec;
  char *p, *q;
  assert_ok(rill_pool_create(dut.device, NULL, &pool)); /* whose memory is new */
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_pool_alloc_async(pool, held, 1000, (void **)&p));
  store(held, p + 1000, 1);
  assert_ok(rill_stream_record_event(new_stream("other"), event, 0));
  assert_found(rill_stream_synchronize(held));
  assert_says("past the end, from offset 1000 on, of 1000 bytes");
  assert_ok(rill_free_async(held, p));
  assert_ok(rill_stream_capture_begin(captured, RILL_CAPTURE_RELAXED));
  assert_ok(rill_pool_alloc_async(pool, captured, 2000, (void **)&q));
  store(captured, q - 4, 1);
  assert_ok(rill_stream_capture_end(captured, &graph));
  assert_ok(rill_graph_instantiate(graph, &exec));
  assert_ok(rill_device_synchronize(dut.device)); /* nothing has run */
  assert_ok(rill_graph_launch(exec, captured));
  assert_found(rill_stream_synchronize(captured));
  assert_says("before the start, from offset -4 on, of 2000 bytes");
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_pool_release(pool));
  assert_ok(rill_device_synchronize(dut.device));
}

static void reports_several_at_once(void) {
  rill_error error = RILL_ERROR_INIT;
  char *p[3];
  for (int i = 0; i < 3; i++) {
    assert_ok(rill_alloc(dut.device, (size_t)(i + 1), RILL_MEMORY_PINNED, (void **)&p[i]));
    p[i][i + 1] = 1;
  }
  assert_found(rill_device_synchronize(dut.device));
  assert_ok(rill_last_error(&error));
  assert_non_null(strstr(error.message, "of 1 bytes"));
  assert_non_null(strstr(error.message, "of 2 bytes"));
  for (int i = 0; i < 3; i++) assert_ok(rill_free(p[i]));
}

/* ---- freed memory ---- */

static void finds_use_after_free_async(void) {
  rill_stream stream = new_stream("stream");
  char *p;
  assert_ok(rill_alloc_async(stream, 3000, (void **)&p));
  assert_ok(rill_free_async(stream, p));
  store(stream, p + 2000, 0x01020304);
  assert_found(rill_stream_synchronize(stream));
  assert_says("4 bytes were written from offset 2000 on into 3000 bytes of device memory");
  assert_says("after they were freed");
  assert_ok(rill_stream_synchronize(stream));
  assert_fails(rill_free_async(stream, p), RILL_ERROR_NOT_FOUND);
}

/* Only the device compares memory far inside a freed block. */
static void finds_use_after_free(void) {
  rill_stream stream = new_stream("stream");
  char *p;
  assert_ok(rill_alloc(dut.device, 100000, RILL_MEMORY_DEVICE, (void **)&p));
  assert_ok(rill_free(p));
  store(stream, p + 90000, 0x01020304);
  assert_ok(rill_stream_synchronize(stream));
  assert_found(rill_device_synchronize(dut.device));
  assert_says("4 bytes were written from offset 90000 on into 100000 bytes of device memory");
  assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
}

/* A late use is found at the latest when the memory is released. */
static void finds_use_when_memory_is_released(void) {
  rill_stream stream = new_stream("stream");
  char *p;
  rill_pool pool;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, 100000, (void **)&p));
  assert_ok(rill_free_async(stream, p));
  store(stream, p + 90000, 0x01020304);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_pool_trim(pool, 0));
  assert_found(rill_stream_synchronize(stream));
  assert_says("4 bytes were written from offset 90000 on into 100000 bytes of device memory");
  assert_ok(rill_pool_release(pool));
}

/* The freed memory that is kept for checking is bounded, and so stays the size of the pool. */
static void holds_back_no_more_than_its_limit(void) {
  enum { SIZE = 100000, LIMIT = 64 << 20 };
  rill_stream stream = new_stream("stream");
  rill_pool pool;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  void *p;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  for (unsigned i = 0; i < scaled(10000); i++) {
    assert_ok(rill_pool_alloc_async(pool, stream, SIZE, &p));
    assert_ok(rill_free_async(stream, p));
    if (i % 64 == 63) assert_ok(rill_stream_synchronize(stream));
  }
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.used, 0);
  assert_true(info.reserved <= 4 * (uint64_t)LIMIT);
  for (unsigned i = 0; i < scaled(2000); i++) {
    assert_ok(rill_alloc(dut.device, SIZE, RILL_MEMORY_DEVICE, &p));
    assert_ok(rill_free(p));
  }
  assert_ok(rill_pool_trim(pool, 0));
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.reserved, 0);
  assert_ok(rill_pool_release(pool));
}

/* A pool's limit counts only allocated memory; freed memory that is kept for checking is reused when needed. */
static void limits_count_only_allocated_memory(void) {
  enum { MIB = 1 << 20 };
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  rill_pool pool;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  void *p;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = MIB), &pool));
  struct gate *gate = gate_close(stream);
  for (int i = 0; i < 10; i++) {
    assert_ok(rill_pool_alloc_async(pool, i % 2 == 0 ? stream : other, MIB, &p));
    assert_ok(rill_pool_get_info(pool, &info));
    assert_int_equal(info.used, MIB);
    void *more;
    assert_fails(rill_pool_alloc_async(pool, stream, 1, &more), RILL_ERROR_OUT_OF_MEMORY);
    assert_ok(rill_free_async(i % 2 == 0 ? stream : other, p));
  }
  gate_open(gate);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_pool_release(pool));
}

/* ---- what is right ---- */

static void is_silent_about_whole_allocations(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  const unsigned char byte = 0xc1;
  for (size_t size = 1; size < 5000; size = 3 * size + 1) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
      void *p, *q;
      rill_memory_info info = RILL_MEMORY_INFO_INIT;
      if (!has(kinds[i])) continue;
      assert_ok(rill_alloc_aligned(dut.device, size, 4096, kinds[i], &p));
      assert_int_equal((uintptr_t)p % 4096, 0);
      assert_ok(rill_memory_get_info((char *)p + size - 1, &info));
      assert_ptr_equal(info.base, p);
      assert_int_equal(info.size, size);
      assert_fails(rill_memory_get_info((char *)p + size, &info), RILL_ERROR_NOT_FOUND);
      assert_fails(rill_memory_get_info((char *)p - 1, &info), RILL_ERROR_NOT_FOUND);
      assert_ok(rill_alloc_async(stream, size, &q));
      assert_ok(rill_memory_get_info((char *)q + size - 1, &info));
      assert_ptr_equal(info.base, q);
      assert_int_equal(info.size, size);
      assert_ok(rill_fill_async(stream, p, &byte, 1, size));
      assert_ok(rill_fill_async(stream, q, &byte, 1, size));
      assert_ok(rill_memory_record_use(q, other));
      assert_ok(rill_free_async(stream, q));
      assert_ok(rill_device_synchronize(dut.device));
      assert_ok(rill_free(p));
    }
  }
  assert_ok(rill_device_synchronize(dut.device));
}

/* If padding for an alignment is a red zone, it belongs to no other allocation. */
static void zones_belong_to_one_allocation(void) {
  enum { COUNT = 64, SIZE = 500 };
  rill_stream stream = new_stream("stream");
  rill_pool pool;
  void *p[2 * COUNT];
  const unsigned char byte = 7;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  for (int i = 0; i < 2 * COUNT; i++) {
    assert_ok(rill_pool_alloc_aligned_async(pool, stream, SIZE, i < COUNT ? 4096 : 1, &p[i]));
    assert_ok(rill_fill_async(stream, p[i], &byte, 1, SIZE));
  }
  assert_ok(rill_stream_synchronize(stream));
  for (int i = 0; i < 2 * COUNT; i++) assert_ok(rill_free_async(stream, p[i]));
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_pool_release(pool));
}

/* On held and capturing streams no red zones are written, and memory is not compared too early. */
static void is_silent_about_held_streams_and_captures(void) {
  rill_stream stream = new_stream("stream"), gated = new_stream("gated");
  rill_event event = new_event("event");
  void *held, *captured, *beside;
  rill_graph graph;
  const unsigned char byte = 1;
  struct gate *gate = gate_close(gated);
  assert_ok(rill_alloc_async(gated, 1000, &beside)); /* its red zones have not been written yet */
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_ok(rill_alloc_async(stream, 1000, &held));
  assert_ok(rill_fill_async(stream, held, &byte, 1, 1000));
  assert_ok(rill_free_async(stream, held));
  assert_ok(rill_stream_synchronize(new_stream("third")));
  assert_ok(rill_stream_record_event(new_stream("fourth"), event, 0));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_RELAXED));
  assert_ok(rill_alloc_async(stream, 1000, &captured));
  assert_ok(rill_fill_async(stream, captured, &byte, 1, 1000));
  assert_ok(rill_free_async(stream, captured));
  assert_ok(rill_stream_synchronize(new_stream("fifth")));
  assert_ok(rill_stream_capture_end(stream, &graph));
  size_t nodes = 0;
  assert_ok(rill_graph_get_nodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 3);
  assert_ok(rill_graph_release(graph));
  gate_open(gate);
  assert_ok(rill_free_async(gated, beside));
  assert_ok(rill_device_synchronize(dut.device));
}

static const char *allocate_and_free(unsigned index, void *shared) {
  (void)shared;
  rill_stream stream;
  void *p[4], *q;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned round = 0; round < scaled(100); round++) {
    for (unsigned i = 0; i < 4; i++) REQUIRE_OK(rill_alloc_async(stream, 100 + 1000 * i + index, &p[i]));
    REQUIRE_OK(rill_alloc(dut.device, 100 + round, RILL_MEMORY_PINNED, &q));
    if (round % 4 == index % 4) REQUIRE_OK(rill_stream_synchronize(stream));
    for (unsigned i = 0; i < 4; i++) REQUIRE_OK(rill_free_async(stream, p[i]));
    REQUIRE_OK(rill_free(q));
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void serves_many_threads(void) {
  run_threads(8, allocate_and_free, NULL);
  assert_ok(rill_device_synchronize(dut.device));
}

/* ---- leaks ---- */

static uint64_t count_of(const char *what, const char *label, uint64_t bytes, char *where) {
  rill_leak leaks[MANY];
  size_t count = MANY;
  uint64_t found = 0;
  assert_ok(rill_device_get_leaks(dut.device, leaks, &count));
  for (size_t i = 0; i < count && i < MANY; i++) {
    if (strcmp(leaks[i].what, what) != 0 || strcmp(leaks[i].label, label) != 0 || leaks[i].bytes != bytes) continue;
    found += leaks[i].count;
    if (where != NULL) memcpy(where, leaks[i].where, sizeof leaks[i].where);
  }
  return found;
}

static void make_events(rill_event events[3]) {
  for (int i = 0; i < 3; i++) assert_ok(rill_event_create(dut.device, NULL, &events[i]));
}

static void lists_memory_and_objects(void) {
  char where[sizeof((rill_leak *)0)->where] = "";
  rill_event events[3];
  rill_stream stream;
  rill_graph graph;
  rill_pool pool;
  void *p, *q;
  const uint64_t before = count_of("event", "", 0, NULL);
  make_events(events);
  assert_int_equal(count_of("event", "", 0, where), before + 3);
  assert_non_null(strstr(where, "conformance_device_get_leaks+0x"));
  for (int i = 0; i < 3; i++) assert_ok(rill_event_release(events[i]));
  assert_int_equal(count_of("event", "", 0, NULL), before);
  assert_ok(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.label = "left"), &stream));
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.label = "left too"), &pool));
  assert_ok(rill_alloc(dut.device, 12345, RILL_MEMORY_PINNED, &p));
  assert_ok(rill_pool_alloc_async(pool, stream, 54321, &q));
  assert_int_equal(count_of("stream", "left", 0, NULL), 1);
  assert_int_equal(count_of("graph", "", 0, NULL), 1);
  assert_int_equal(count_of("pool", "left too", 0, NULL), 1);
  assert_int_equal(count_of("pinned memory", "", 12345, where), 1);
  assert_non_null(strstr(where, "conformance_device_get_leaks+0x"));
  assert_int_equal(count_of("device memory", "left too", 54321, NULL), 1);
  assert_ok(rill_free(p));
  assert_ok(rill_free_async(stream, q));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_pool_release(pool));
  assert_int_equal(count_of("stream", "left", 0, NULL), 0);
  assert_int_equal(count_of("graph", "", 0, NULL), 0);
  assert_int_equal(count_of("pool", "left too", 0, NULL), 0);
  assert_int_equal(count_of("pinned memory", "", 12345, NULL), 0);
  assert_int_equal(count_of("device memory", "left too", 54321, NULL), 0);
}

static void lists_registered_memory(void) {
  static char memory[8192];
  if (rill_host_register(dut.device, memory, sizeof memory) != RILL_OK) skip_because("nothing can be registered");
  assert_int_equal(count_of("registered memory", "", sizeof memory, NULL), 1);
  memory[0] = memory[sizeof memory - 1] = 1;
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_host_unregister(memory));
  assert_int_equal(count_of("registered memory", "", sizeof memory, NULL), 0);
}

/* Events that memory waits for, and the device's own streams and pools, are not reported as leaks. */
static void does_not_list_internal_objects(void) {
  size_t before = 0, after = 0;
  rill_stream stream = new_stream("stream"), borrowed;
  rill_pool pool;
  void *p;
  assert_ok(rill_device_get_leaks(dut.device, NULL, &before));
  assert_ok(rill_device_default_stream(dut.device, &borrowed));
  assert_ok(rill_pool_default(dut.device, &pool));
  assert_ok(rill_alloc_async(stream, 100, &p));
  assert_ok(rill_memory_record_use(p, borrowed));
  assert_ok(rill_free_async(stream, p));
  assert_ok(rill_alloc(dut.device, 100, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_free(p));
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_device_get_leaks(dut.device, NULL, &after));
  assert_int_equal(after, before);
}

/* ---- at exit ---- */

static const char *mode;

/* The child process: exits without releasing its objects. */
static int forget(void) {
  rill_device device;
  rill_event event;
  rill_stream stream;
  char *p;
  if (rill_device_open(mode, &device) != RILL_OK) return 2;
  for (int i = 0; i < 5; i++) {
    if (rill_event_create(device, RILL_EVENT_OPTIONS(.label = "forgotten"), &event) != RILL_OK) return 3;
  }
  if (rill_stream_create(device, NULL, &stream) != RILL_OK) return 4;
  if (rill_alloc_async(stream, 777, (void **)&p) != RILL_OK) return 5;
  if (rill_stream_synchronize(stream) != RILL_OK || rill_stream_release(stream) != RILL_OK) return 6;
  return 42;
}

static void reports_leaks_at_exit(void) {
  static struct child child;
  const char *const on = "RILL_CHECK=memory", *const off = "RILL_CHECK=";
  run_child(dut.name, &on, 1, &child);
  assert_int_equal(child.exit_code, 42);
  assert_non_null(strstr(child.output, "6 not released at exit (addr2line "));
  assert_non_null(strstr(child.output, "5 x event \"forgotten\", made at\n    conformance_device_get_leaks+0x"));
  assert_non_null(strstr(child.output, "1 x device memory, 777 bytes, made at\n    conformance_device_get_leaks+0x"));
  assert_null(strstr(child.output, "x stream"));
  run_child(dut.name, &off, 1, &child);
  assert_int_equal(child.exit_code, 42);
  assert_null(strstr(child.output, "not released"));
}

int main(int argc, char **argv) {
  if (argc > 1) {
    mode = argv[1];
    return forget();
  }
  if (setenv("RILL_CHECK", "memory", 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = { TEST(refuses_bad_handles),
                                       TEST(refuses_null),
                                       TEST(finds_stores_past_the_end),
                                       TEST(finds_stores_before_the_start),
                                       TEST(says_where_it_was_allocated),
                                       TEST(finds_additions),
                                       TEST(finds_what_a_host_call_wrote),
                                       TEST(finds_stores_beside_pool_memory),
                                       TEST(finds_stores_of_held_work_and_graphs),
                                       TEST(reports_several_at_once),
                                       TEST(finds_use_after_free_async),
                                       TEST(finds_use_after_free),
                                       TEST(finds_use_when_memory_is_released),
                                       TEST(holds_back_no_more_than_its_limit),
                                       TEST(limits_count_only_allocated_memory),
                                       TEST(is_silent_about_whole_allocations),
                                       TEST(zones_belong_to_one_allocation),
                                       TEST(is_silent_about_held_streams_and_captures),
                                       TEST(serves_many_threads),
                                       TEST(lists_memory_and_objects),
                                       TEST(lists_registered_memory),
                                       TEST(does_not_list_internal_objects),
                                       TEST(reports_leaks_at_exit) };
  return RUN_ON_EACH_DEVICE("rill_device_get_leaks", tests);
}
