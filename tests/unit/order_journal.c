/* core/order/journal.h: runs a program whose kernel accesses become known late, and compares the findings with those of
 * the same program if everything is known at once. Also tests which accesses of kernels conflict. */
#include "core/order/journal.h"

#include "support/testing.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 64, STREAMS = 4, EVENTS = 3, STEPS = 60, BASE = 0x100000 };

struct finding {
  uint32_t earlier, later;
  bool certain;
  uintptr_t begin;
  size_t size;
};

/* The findings that a journal has reported. */
struct report {
  struct finding list[4096];
  size_t count;
};

static void keep_finding(void *user, const struct rill__order_finding *finding) {
  struct report *const report = user;
  assert_true(report->count < sizeof report->list / sizeof *report->list);
  report->list[report->count++] = (struct finding){ .earlier = finding->earlier != NULL ? finding->earlier->tag : 0,
                                                    .later = finding->later->tag,
                                                    .certain = finding->certain,
                                                    .begin = finding->begin,
                                                    .size = finding->size };
}

static uint64_t random_state;
static uint32_t pick(uint32_t count) {
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % count;
}

/* A step of the program; both runs use the same steps. */
struct step {
  uint32_t kind, stream, event, tag;
  uint64_t token; /* for a kernel */
  struct rill__order_range ranges[2];
  size_t count;
};

static void pick_ranges(struct step *step) {
  static const uint8_t ways[] = { RILL__ACCESSED_READ, RILL__ACCESSED_WRITE, RILL__ACCESSED_UPDATE,
                                  RILL__ACCESSED_READ | RILL__ACCESSED_WRITE };
  step->count = 1 + pick(2);
  for (size_t i = 0; i < step->count; i++) {
    const uint32_t half = BYTES / 2, first = (uint32_t)i * half + pick(half),
                   size = 1 + pick((uint32_t)(i + 1) * half - first);
    const uint8_t how = ways[pick(4)];
    step->ranges[i] = (struct rill__order_range){
      .begin = BASE + first, .size = size, .write = how != RILL__ACCESSED_READ, .how = how
    };
  }
}

static void pick_program(struct step *steps) {
  for (uint32_t i = 0; i < STEPS; i++) {
    steps[i] = (struct step){ .kind = pick(10), .stream = 1 + pick(STREAMS), .event = 1 + pick(EVENTS), .tag = i + 1 };
    pick_ranges(&steps[i]);
    if (steps[i].kind < 4) steps[i].token = 1000 + i;
  }
}

static void submit_step(struct rill__journal *journal, const struct step *step, uint64_t token) {
  struct rill__order_op *op = rill__order_op_new();
  assert_non_null(op);
  op->tag = step->tag;
  rill__journal_submit(journal, step->stream, op, RILL__TOUCH_USE, 0, step->ranges, step->count, token);
  rill__order_op_unref(op);
}

static void take_step(struct rill__journal *journal, const struct step *step, uint64_t token) {
  switch (step->kind) {
    default: submit_step(journal, step, token); return;
    case 6: rill__journal_record(journal, step->stream, step->event); return;
    case 7: rill__journal_wait(journal, step->stream, step->event); return;
    case 8: rill__journal_host_wait_event(journal, step->event); return;
    case 9:
      if (step->tag % 4 == 0) rill__journal_host_wait_stream(journal, step->stream);
      else rill__journal_forget(journal, BASE + step->tag % BYTES, 1);
      return;
  }
}

static void report_kernel(struct rill__journal *journal, const struct step *step) {
  rill__journal_accessed(journal, step->token, step->ranges, step->count, 0);
}

/* Runs the program; kernels end in random order. */
static void run_late(struct rill__journal *journal, const struct step *steps) {
  const struct step *running[STEPS];
  size_t count = 0;
  for (uint32_t i = 0; i < STEPS; i++) {
    take_step(journal, &steps[i], steps[i].token);
    if (steps[i].token != 0) running[count++] = &steps[i];
    while (count > 0 && pick(3) == 0) {
      const size_t which = pick((uint32_t)count);
      report_kernel(journal, running[which]);
      running[which] = running[--count];
    }
  }
  while (count > 0) report_kernel(journal, running[--count]);
}

static struct report at_once, late;

static void late_accesses_give_the_same_findings(void) {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    struct step steps[STEPS];
    random_state = seed;
    at_once.count = late.count = 0;
    pick_program(steps);
    struct rill__journal *first = rill__journal_new(keep_finding, &at_once);
    struct rill__journal *second = rill__journal_new(keep_finding, &late);
    for (uint32_t i = 0; i < STEPS; i++) take_step(first, &steps[i], 0);
    run_late(second, steps);
    if (at_once.count != late.count) fail_msg("seed %u: %zu findings, %zu", (unsigned)seed, at_once.count, late.count);
    for (size_t i = 0; i < late.count; i++) {
      const struct finding *const a = &at_once.list[i], *const b = &late.list[i];
      if (a->earlier != b->earlier || a->later != b->later || a->certain != b->certain || a->begin != b->begin ||
          a->size != b->size)
        fail_msg("seed %u: finding %zu is of %u and %u, %u and %u", (unsigned)seed, i, a->earlier, a->later, b->earlier,
                 b->later);
    }
    found += late.count;
    rill__journal_free(first);
    rill__journal_free(second);
  }
  assert_true(found > 10000);
}

/* Submits two operations on two streams; returns 'c', 'p' or '-' for a certain finding, a possible one or none. */
static char find_between(uint8_t earlier, uint8_t later) {
  at_once.count = 0;
  struct rill__journal *journal = rill__journal_new(keep_finding, &at_once);
  struct step step = { .stream = 1, .tag = 1, .count = 1 };
  step.ranges[0] = (struct rill__order_range){ .begin = BASE, .size = 4, .how = earlier };
  submit_step(journal, &step, 0);
  step.stream = step.tag = 2;
  step.ranges[0].how = later;
  submit_step(journal, &step, 0);
  rill__journal_free(journal);
  if (at_once.count == 0) return '-';
  return at_once.list[0].certain ? 'c' : 'p';
}

static void atomic_accesses_are_permitted(void) {
  enum { R = RILL__ACCESSED_READ, W = RILL__ACCESSED_WRITE, U = RILL__ACCESSED_UPDATE, P = RILL__ACCESSED_POLL };
  static const struct {
    uint8_t a, b;
    char finding;
  } pairs[] = { { R, R, '-' },         { R, W, 'c' },     { R, U, 'c' },     { R, P, '-' },        { W, W, 'c' },
                { W, U, 'c' },         { W, P, '-' },     { U, U, '-' },     { U, P, '-' },        { P, P, '-' },
                { U | P, U | P, '-' }, { U | P, R, 'c' }, { U | P, W, 'p' }, { U | W, U | P, 'p' } };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const char there = find_between(pairs[i].a, pairs[i].b), back = find_between(pairs[i].b, pairs[i].a);
    if (there != pairs[i].finding || back != pairs[i].finding)
      fail_msg("%u and %u: %c and %c, not %c", pairs[i].a, pairs[i].b, there, back, pairs[i].finding);
  }
}

/* A kernel that does not end delays only a limited number of entries; after that the ranges from its submission are
 * used. */
static void the_backlog_is_bounded(void) {
  at_once.count = 0;
  struct rill__journal *journal = rill__journal_new(keep_finding, &at_once);
  struct step step = { .stream = 1, .tag = 1, .count = 1 };
  step.ranges[0] = (struct rill__order_range){ .begin = BASE, .size = 4, .write = true, .vague = true };
  submit_step(journal, &step, 7);
  step.stream = step.tag = 2;
  step.ranges[0].vague = false;
  step.ranges[0].begin += BYTES;
  for (size_t i = 0; i < RILL__JOURNAL_BYTES / 100 && !rill__journal_was_full(journal); i++)
    submit_step(journal, &step, 0);
  const char *label = NULL;
  assert_false(rill__journal_awaits(journal, 7, &label));
  step.ranges[0].begin -= BYTES;
  submit_step(journal, &step, 0);
  assert_int_equal(at_once.count, 1);
  assert_false(at_once.list[0].certain);
  rill__journal_accessed(journal, 7, NULL, 0, 0);
  rill__journal_free(journal);
}

TESTS_ONCE("core/order/journal.h", TEST(late_accesses_give_the_same_findings), TEST(atomic_accesses_are_permitted),
           TEST(the_backlog_is_bounded))
