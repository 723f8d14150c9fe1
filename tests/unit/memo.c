/* core/memo.h: what is remembered of completion, step by step in every order that matters. */
#include "core/memo.h"

#include "support/testing.h"

static struct rill__thread here = { .next_token = UINT64_C(1) << 40 }, there = { .next_token = UINT64_C(2) << 40 };

static struct rill__memo new_memo(void) {
  struct rill__memo memo;
  atomic_init(&memo.state, RILL__MEMO_CHANGED);
  return memo;
}

static void remembers_an_answer(void) {
  struct rill__memo memo = new_memo();
  assert_false(rill__memo_knows(&memo));
  const uint64_t token = rill__memo_ask(&memo, &here);
  assert_false(rill__memo_knows(&memo));
  rill__memo_seen(&memo, token);
  assert_true(rill__memo_knows(&memo));
}

static void new_work_makes_it_forget(void) {
  struct rill__memo memo = new_memo();
  rill__memo_seen(&memo, rill__memo_ask(&memo, &here));
  rill__memo_changed(&memo);
  assert_false(rill__memo_knows(&memo));
}

static void work_during_the_question_counts(void) {
  struct rill__memo memo = new_memo();
  const uint64_t token = rill__memo_ask(&memo, &here);
  rill__memo_changed(&memo);
  rill__memo_seen(&memo, token);
  assert_false(rill__memo_knows(&memo));
}

/* Of two that ask, the first may have asked before work that the second saw come. */
static void an_older_question_does_not_answer_for_a_newer_one(void) {
  struct rill__memo memo = new_memo();
  const uint64_t first = rill__memo_ask(&memo, &here);
  rill__memo_changed(&memo);
  const uint64_t second = rill__memo_ask(&memo, &there);
  assert_int_not_equal(first, second);
  rill__memo_seen(&memo, first);
  assert_false(rill__memo_knows(&memo));
  rill__memo_seen(&memo, second);
  assert_true(rill__memo_knows(&memo));
}

static void tokens_are_never_used_twice(void) {
  struct rill__memo memo = new_memo();
  const uint64_t first = rill__memo_ask(&memo, &here);
  rill__memo_changed(&memo);
  (void)rill__memo_ask(&memo, &here);
  rill__memo_seen(&memo, first);
  assert_false(rill__memo_knows(&memo));
}

int main(void) {
  static const struct test tests[] = {
    TEST(remembers_an_answer),
    TEST(new_work_makes_it_forget),
    TEST(work_during_the_question_counts),
    TEST(an_older_question_does_not_answer_for_a_newer_one),
    TEST(tokens_are_never_used_twice),
  };
  return RUN_ONCE("core/memo.h", tests);
}
