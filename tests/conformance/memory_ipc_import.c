/* rill_memory_ipc_import; a second process imports what the first one exports. */
#include "ipc.h"

enum { WORDS = 5000, AT = 77 }; /* AT: the exported pointer is this many words after the start */

static rill_status import_on(rill_device device, const rill_ipc_handle *handle, void *out) {
  void *p = &p;
  const rill_status status = rill_memory_ipc_import(device, handle, &p);
  if (status != RILL_OK) assert_null(p);
  memcpy(out, &p, sizeof p);
  return status;
}

static uint32_t *import(const rill_ipc_handle *handle) {
  uint32_t *p;
  assert_ok(import_on(dut.device, handle, &p));
  return p;
}

#define API "rill_memory_ipc_import"
#define FEATURE RILL_FEATURE_IPC
#define IMPORT(device, handle) import_on((device), (handle), &(void *){ NULL })
#define EXPORT_ONE(handle) rill_memory_ipc_export(dut.memory, (handle))
#include "ipc_import.h"

/* Writes and reads all words with work of a stream. */
static void fill_words(uint32_t *p, uint32_t value) {
  rill_stream stream = new_stream("filler");
  assert_ok(rill_fill_async(stream, p, &value, sizeof value, WORDS));
  assert_completes(stream);
}

static void assert_words(const uint32_t *p, uint32_t value) {
  static uint32_t back[WORDS];
  rill_stream stream = new_stream("reader");
  assert_ok(rill_copy_async(stream, back, p, sizeof back));
  assert_completes(stream);
  for (size_t i = 0; i < WORDS; i++) assert_int_equal(back[i], value);
}

/* ---- in one process ---- */

static void refuses_null(void) {
  const rill_ipc_handle handle = { { 1 } };
  assert_fails(rill_memory_ipc_import(dut.device, &handle, NULL), RILL_ERROR_INVALID_ARGUMENT);
  IMPORT_FAILS(NULL, RILL_ERROR_INVALID_ARGUMENT);
}

/* C1.6 */
static void refuses_other_backends(void) {
  rill_ipc_handle handle;
  void *none;
  if (!shares_memory()) return;
  needs_foreign_device();
  assert_ok(rill_memory_ipc_export(dut.memory, &handle));
  assert_fails_in("rill_memory_ipc_import", import_on(dut.foreign, &handle, &none), RILL_ERROR_WRONG_BACKEND);
}

/* ---- in two ---- */

static void child_reads_and_writes(void) {
  rill_ipc_handle handle;
  peer_receive(peer_parent(), &handle, sizeof handle);
  uint32_t *inside = import(&handle), *p = inside - AT;
  rill_stream stream = new_stream("stream");
  assert_words(p, 11);
  fill_words(p, 12);
  /* the size is known */
  assert_fails(rill_copy_async(stream, p, dut.memory, WORDS * sizeof *p + 1), RILL_ERROR_OUT_OF_RANGE);
  /* C5.4: the memory cannot be freed by another address, and only once */
  assert_fails(rill_free(p), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_free(inside + 1), RILL_ERROR_INVALID_ARGUMENT);
  rill_ipc_handle again;
  assert_fails(rill_memory_ipc_export(inside, &again), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("imported");
  assert_ok(rill_free(inside));
  assert_fails(rill_free(inside), RILL_ERROR_NOT_FOUND);
}

/* C5.4, I11: each process sees what the other wrote; closing an import leaves the exporter's memory intact. */
static void both_see_the_same_memory(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_reads_and_writes");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  fill_words(p, 11);
  assert_ok(rill_memory_ipc_export(p + AT, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  assert_words(p, 12);
  fill_words(p, 13);
  assert_words(p, 13);
  assert_ok(rill_free(p));
}

/* I4: opens the memory twice and closes it in any order; also with a handle for another address of the same memory. */
static void child_opens_twice(void) {
  rill_ipc_handle handles[2];
  peer_receive(peer_parent(), handles, sizeof handles);
  for (int order = 0; order < 2; order++) {
    uint32_t *first = import(&handles[0]), *second = import(&handles[0]), *inside = import(&handles[1]);
    fill_words(first, 21);
    assert_words(second, 21);
    assert_words(inside - AT, 21);
    assert_ok(rill_free(order == 0 ? first : inside));
    assert_words(second, 21);
    fill_words(second, 22);
    assert_ok(rill_free(second));
    assert_words(order == 0 ? inside - AT : first, 22);
    assert_ok(rill_free(order == 0 ? inside : first));
    assert_fails(rill_free(order == 0 ? inside : first), RILL_ERROR_NOT_FOUND);
  }
}

static void opens_several_times(void) {
  rill_ipc_handle handles[2];
  uint32_t *p;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_opens_twice");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  fill_words(p, 11); /* memory checkers do not see the writes of the other process */
  assert_ok(rill_memory_ipc_export(p, &handles[0]));
  assert_ok(rill_memory_ipc_export(p + AT, &handles[1]));
  peer_send(peer, handles, sizeof handles);
  peer_ends(peer);
  assert_words(p, 22);
  assert_ok(rill_free(p));
}

static void refuse_damaged(const rill_ipc_handle *damaged) { IMPORT_FAILS(damaged, RILL_ERROR_INVALID_ARGUMENT); }

/* I6: every damaged handle is refused; neither refused nor closed imports leave anything open (I10). */
static void child_looks_closely(void) {
  rill_ipc_handle handle;
  peer_receive(peer_parent(), &handle, sizeof handle);
  assert_ok(rill_free(import(&handle))); /* at the first import a driver may allocate something that it keeps */
  const struct holdings before = holdings();
  with_each_damage(&handle, refuse_damaged);
  void *none;
  rill_event event;
  if (dut.second.id != 0) {
    assert_fails_in("rill_memory_ipc_import", import_on(dut.second, &handle, &none), RILL_ERROR_WRONG_DEVICE);
  }
  if (dut.foreign.id != 0) {
    assert_fails_in("rill_memory_ipc_import", import_on(dut.foreign, &handle, &none), RILL_ERROR_WRONG_BACKEND);
  }
  ignore(rill_event_ipc_import(dut.device, &handle, &event));
  assert_int_equal(event.id, 0);
  for (unsigned i = 0; i < scaled(50); i++) assert_ok(rill_free(import(&handle)));
  assert_holds_no_more_than(before, 50);
}

static void refuses_damaged_handles_and_leaks_nothing(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_looks_closely");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  assert_ok(rill_memory_ipc_export(p, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  const struct holdings before = holdings();
  assert_ok(rill_free(p));
  assert_true(holdings().files <= before.files);
}

/* I4, I10, I11: threads that open and close one handle do not close one another's imports. */
static const char *imports_and_frees(unsigned index, void *shared) {
  const rill_ipc_handle *handles = shared;
  for (unsigned i = 0; i < scaled(200); i++) {
    rill_memory_info info = RILL_MEMORY_INFO_INIT;
    uint32_t *p;
    REQUIRE_OK(rill_memory_ipc_import(dut.device, &handles[(index + i) % 2], (void **)&p));
    REQUIRE_OK(rill_memory_get_info(p, &info));
    REQUIRE(info.kind == RILL_MEMORY_DEVICE && info.size == WORDS * sizeof *p);
    REQUIRE(dut.gpu || *p == 51); /* on the CPU the memory is ordinary memory of this process */
    REQUIRE_OK(rill_free(p));
  }
  return NULL;
}

static void child_opens_in_threads(void) {
  rill_ipc_handle handles[2];
  peer_receive(peer_parent(), handles, sizeof handles);
  run_threads(4, imports_and_frees, handles);
  const struct holdings before = holdings();
  run_threads(4, imports_and_frees, handles);
  assert_holds_no_more_than(before, 800);
  uint32_t *p = import(&handles[0]);
  assert_words(p, 51);
  assert_ok(rill_free(p));
}

static void serves_threads_at_once(void) {
  rill_ipc_handle handles[2];
  uint32_t *p;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_opens_in_threads");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  fill_words(p, 51);
  assert_ok(rill_memory_ipc_export(p, &handles[0]));
  assert_ok(rill_memory_ipc_export(p + AT, &handles[1]));
  peer_send(peer, handles, sizeof handles);
  peer_ends(peer);
  assert_words(p, 51);
  assert_ok(rill_free(p));
}

static void child_exports_and_ends(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  assert_ok(rill_memory_ipc_export(p, &handle));
  peer_send(peer_parent(), &handle, sizeof handle);
}

/* I9 */
static void refuses_memory_of_a_process_that_has_ended(void) {
  rill_ipc_handle handle;
  void *none;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_exports_and_ends");
  peer_receive(peer, &handle, sizeof handle);
  peer_ends(peer);
  spoil_last_error();
  assert_int_not_equal(import_on(dut.device, &handle, &none), RILL_OK);
  assert_says("rill_memory_ipc_import");
  write_cell(new_stream("after"), 0, 1); /* later calls still work */
}

/* I1, I2: freed memory is either not found or still intact, because a driver may keep it for a while. The import never
 * finds another allocation. */
static void child_opens_what_was_freed(void) {
  rill_ipc_handle handle;
  void *p;
  peer_receive(peer_parent(), &handle, sizeof handle);
  if (import_on(dut.device, &handle, &p) == RILL_OK) {
    assert_true(dut.gpu);
    assert_ok(rill_free(p));
  } else {
    assert_says("rill_memory_ipc_import");
  }
}

static void does_not_find_what_was_freed(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_opens_what_was_freed");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  assert_ok(rill_memory_ipc_export(p, &handle));
  assert_ok(rill_free(p));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
}

/* C5.1, C5.4: an import may be closed while work uses it; the call waits for the work. */
static const char *opens_gate(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(5 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

static void child_closes_while_work_uses_it(void) {
  rill_ipc_handle handle;
  const uint32_t value = 31;
  peer_receive(peer_parent(), &handle, sizeof handle);
  uint32_t *p = import(&handle);
  rill_stream stream = new_stream("stream");
  fill_words(p, 30);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_fill_async(stream, p, &value, sizeof value, WORDS));
  struct background *opener = start_threads(1, opens_gate, gate);
  assert_ok(rill_free(p));
  join_threads(opener);
  assert_completes(stream);
}

static void waits_for_work_before_it_closes(void) {
  rill_ipc_handle handle;
  uint32_t *p;
  if (!shares_memory()) return;
  struct peer *peer = peer_start("child_closes_while_work_uses_it");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, WORDS, &p));
  fill_words(p, 11);
  assert_ok(rill_memory_ipc_export(p, &handle));
  peer_send(peer, &handle, sizeof handle);
  peer_ends(peer);
  assert_words(p, 31);
  assert_ok(rill_free(p));
}

int main(int argc, char **argv) {
  static const struct test roles[] = {
    TEST(child_reads_and_writes),         TEST(child_opens_twice),      TEST(child_looks_closely),
    TEST(child_opens_in_threads),         TEST(child_exports_and_ends), TEST(child_opens_what_was_freed),
    TEST(child_closes_while_work_uses_it)
  };
  static const struct test tests[] = {
    TEST(refuses_bad_handles),
    TEST(refuses_null),
    TEST(says_why_it_is_unsupported),
    TEST(refuses_invalid_bytes),
    TEST(refuses_exports_of_this_process),
    TEST(refuses_other_backends),
    TEST(both_see_the_same_memory),
    TEST(opens_several_times),
    TEST(refuses_damaged_handles_and_leaks_nothing),
    TEST(serves_threads_at_once),
    TEST(refuses_memory_of_a_process_that_has_ended),
    TEST(does_not_find_what_was_freed),
    TEST(waits_for_work_before_it_closes),
  };
  if (argc > 1) return PEER_MAIN(argv[1], roles);
  return RUN_ON_EACH_DEVICE("rill_memory_ipc_import", tests);
}
