/* core/diagnose/record.h, report.h: entries that are read while their thread writes are either complete or discarded.
 */
#include "core/diagnose/report.h"

#include "core/object/core.h"
#include "support/testing.h"

#include <sched.h>

enum { WRITERS = 3, READERS = 2 };

/* Returns a word of entry number n; all words of an entry are derived from n. */
static uint64_t word(uint64_t n, uint64_t which) { return (n + 1) * UINT64_C(0x9e3779b97f4a7c15) + which; }

struct shared {
  struct rill__stream *stream;
  _Atomic(struct rill__recorder *) recorders[WRITERS];
  _Atomic unsigned ready, running;
  unsigned rounds;
};

static void write_entry(struct rill__stream *stream, uint64_t n) {
  rill__record(rill__self, stream, RILL__OBSERVED_COPY, n + 1, word(n, 0), word(n, 1), word(n, 2));
}

static const char *check_entries(const struct rill__operation_record *items, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint64_t n = items[i].sequence;
    REQUIRE(i == 0 || n == items[i - 1].sequence + 1);
    REQUIRE(items[i].kind == RILL__OBSERVED_COPY);
    REQUIRE(items[i].subject == word(n, 0) && items[i].words[0] == word(n, 1) && items[i].words[1] == word(n, 2));
  }
  return NULL;
}

static const char *write_or_read(unsigned index, void *user) {
  struct shared *const shared = user;
  const struct rill__device *const device = shared->stream->base.device;
  if (index < WRITERS) {
    struct rill__thread *const self = rill__self != NULL ? rill__self : rill__thread_attach();
    REQUIRE(self != NULL && self->recorder != NULL);
    atomic_store(&self->recorder->written, 0); /* another thread may have used the recorder before */
    atomic_store(&shared->recorders[index], atomic_load(&self->recorder));
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < WRITERS) (void)sched_yield(); /* so that each thread has its own recorder */
    for (uint64_t n = 0; n < shared->rounds; n++) write_entry(shared->stream, n);
    atomic_fetch_sub(&shared->running, 1);
    return NULL;
  }
  struct rill__operation_record items[RILL__ENTRIES];
  uint64_t random = index;
  do {
    random = random * UINT64_C(6364136223846793005) + 1;
    struct rill__recorder *const recorder = atomic_load(&shared->recorders[(random >> 33) % WRITERS]);
    if (recorder == NULL) continue;
    const char *const wrong = check_entries(items, rill__recorder_read(recorder, device, items));
    if (wrong != NULL) return wrong;
  } while (atomic_load(&shared->running) > 0);
  return NULL;
}

static struct rill__stream *stream_of(rill_stream handle) { return rill__find(handle.id, RILL__STREAM); }

static void readers_see_entries_as_they_were_written(void) {
  struct shared shared = { .stream = stream_of(new_stream("written")), .running = WRITERS };
  struct rill__operation_record items[RILL__ENTRIES];
  shared.rounds = scaled(20000);
  run_threads(WRITERS + READERS, write_or_read, &shared);
  for (unsigned i = 0; i < WRITERS; i++) {
    const size_t count = rill__recorder_read(shared.recorders[i], shared.stream->base.device, items);
    assert_int_equal(count, RILL__ENTRIES - 1); /* the oldest entry may be in the process of being replaced */
    assert_int_equal(items[count - 1].sequence, shared.rounds - 1);
    assert_null(check_entries(items, count));
    atomic_store(&shared.recorders[i]->written, 0); /* these entries belong to no submission */
  }
}

static void few_entries_are_all_kept(void) {
  struct rill__stream *const stream = stream_of(new_stream("few"));
  struct rill__operation_record items[RILL__ENTRIES];
  struct rill__recorder *const recorder = rill__self->recorder;
  for (uint64_t count = 0; count < RILL__ENTRIES; count++) {
    atomic_store(&recorder->written, 0);
    for (uint64_t n = 0; n < count; n++) write_entry(stream, n);
    assert_int_equal(rill__recorder_read(recorder, stream->base.device, items), count);
    assert_null(check_entries(items, count));
  }
  atomic_store(&recorder->written, 0);
}

/* Each operation of a stream has its own number, whichever threads submit, and the numbers increase where the order is
 * certain. */
struct turns {
  rill_stream stream;
  _Atomic unsigned turn;
};
static const char *take_turns(unsigned index, void *user) {
  struct turns *const turns = user;
  const uint32_t pattern = 1;
  for (unsigned i = 0; i < 20; i++) {
    while (atomic_load(&turns->turn) % 2 != index) (void)sched_yield();
    REQUIRE_OK(rill_fill_async(turns->stream, dut.memory, &pattern, sizeof pattern, 1 + 2 * i + index));
    atomic_fetch_add(&turns->turn, 1);
  }
  return NULL;
}

static void numbers_follow_the_order_of_threads(void) {
  struct turns turns = { .stream = new_stream("shared") };
  struct gate *const gate = gate_close(turns.stream);
  struct rill__operation_list list;
  run_threads(2, take_turns, &turns);
  rill__operations_pending(stream_of(turns.stream)->base.device, &list);
  uint64_t fills = 0;
  for (size_t i = 0; i < list.count; i++) {
    if (list.items[i].stream != turns.stream.id || list.items[i].kind != RILL__OBSERVED_FILL) continue;
    assert_int_equal(list.items[i].subject, 4 * ++fills);
    assert_int_equal(list.items[i].missing, 0);
  }
  assert_int_equal(fills, 40);
  rill__operations_free(&list);
  gate_open(gate);
  assert_completes(turns.stream);
  rill__operations_pending(stream_of(turns.stream)->base.device, &list);
  for (size_t i = 0; i < list.count; i++) assert_int_not_equal(list.items[i].stream, turns.stream.id);
  rill__operations_free(&list);
}

static void names_are_stored_once(void) {
  char name[] = "kernel_of_this_test";
  const char *const kept = rill__name_intern(name);
  assert_non_null(kept);
  assert_ptr_not_equal(kept, name);
  assert_ptr_equal(rill__name_intern("kernel_of_this_test"), kept);
  name[0] = 'K';
  assert_string_equal(kept, "kernel_of_this_test");
  assert_ptr_not_equal(rill__name_intern(name), kept);
}

TESTS_ON_EACH_DEVICE("record", TEST(readers_see_entries_as_they_were_written), TEST(few_entries_are_all_kept),
                     TEST(numbers_follow_the_order_of_threads), TEST(names_are_stored_once))
