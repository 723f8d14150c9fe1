/* core/object/completion.h: what is remembered of completion, step by step in every order that matters. */
#include "core/object/completion.h"

#include "support/testing.h"

static struct rill__thread owner, other;

static void submit(struct rill__completion *work, struct rill__thread *thread) {
  rill__submission_begin(work, thread);
  rill__submission_end(work, thread);
}

/* Work that the owner submitted, and all of it known to be complete. */
static struct rill__completion known_work(void) {
  struct rill__completion work = { .owner = NULL };
  submit(&work, &owner);
  submit(&work, &other);
  assert_false(rill__completion_is_known(&work));
  const struct rill__completion_query asked = rill__query_completion(&work);
  assert_false(rill__completion_is_known(&work));
  rill__completion_remember(&work, &asked);
  assert_true(rill__completion_is_known(&work));
  return work;
}

static void what_has_no_work_is_complete(void) {
  const struct rill__completion work = { .owner = NULL };
  assert_true(rill__completion_is_known(&work));
}

static void remembers_an_answer(void) { (void)known_work(); }

static void new_work_makes_it_forget(void) {
  struct rill__thread *const threads[] = { &owner, &other };
  for (unsigned i = 0; i < 2; i++) {
    struct rill__completion work = known_work();
    submit(&work, threads[i]);
    assert_false(rill__completion_is_known(&work));
  }
}

/* C4.2: whoever has seen work run, which the driver can have before the call returns, does not hear that it is done. */
static void work_on_its_way_to_the_driver_counts(void) {
  struct rill__thread *const threads[] = { &owner, &other };
  for (unsigned i = 0; i < 2; i++) {
    struct rill__completion work = known_work();
    rill__submission_begin(&work, threads[i]);
    assert_false(rill__completion_is_known(&work));
    const struct rill__completion_query asked =
        rill__query_completion(&work); /* answered before the driver has the work */
    rill__completion_remember(&work, &asked);
    assert_false(rill__completion_is_known(&work));
    rill__submission_end(&work, threads[i]);
    rill__completion_remember(&work, &asked);
    assert_false(rill__completion_is_known(&work));
  }
}

static void work_during_the_question_counts(void) {
  struct rill__thread *const threads[] = { &owner, &other };
  for (unsigned i = 0; i < 2; i++) {
    struct rill__completion work = known_work();
    submit(&work, &owner);
    const struct rill__completion_query asked = rill__query_completion(&work);
    submit(&work, threads[i]);
    rill__completion_remember(&work, &asked);
    assert_false(rill__completion_is_known(&work));
  }
}

/* Two that submit at once: the end of one is not the end of both. */
static void each_submission_counts_by_itself(void) {
  struct rill__completion work = known_work();
  rill__submission_begin(&work, &owner);
  rill__submission_begin(&work, &other);
  rill__submission_end(&work, &owner);
  const struct rill__completion_query asked = rill__query_completion(&work);
  rill__completion_remember(&work, &asked);
  assert_false(rill__completion_is_known(&work));
  rill__submission_end(&work, &other);
  assert_false(rill__completion_is_known(&work));
}

/* A graph records one event at several nodes: the launch is one submission for each, by the same thread. */
static void submissions_nest(void) {
  struct rill__completion work = known_work();
  for (unsigned i = 0; i < 2; i++) rill__submission_begin_nested(&work);
  for (unsigned i = 0; i < 2; i++) {
    const struct rill__completion_query asked = rill__query_completion(&work);
    assert_false(rill__completion_remember(&work, &asked));
    assert_false(rill__completion_is_known(&work));
    rill__submission_end_nested(&work);
  }
  assert_false(rill__completion_is_known(&work));
  const struct rill__completion_query asked = rill__query_completion(&work);
  assert_true(rill__completion_remember(&work, &asked));
  assert_true(rill__completion_is_known(&work));
}

/* Of two that ask, the first asked before work that the second saw come. */
static void an_older_question_does_not_answer_for_a_newer_one(void) {
  struct rill__completion work = known_work();
  const struct rill__completion_query first = rill__query_completion(&work);
  submit(&work, &owner);
  const struct rill__completion_query second = rill__query_completion(&work);
  rill__completion_remember(&work, &first);
  assert_false(rill__completion_is_known(&work));
  rill__completion_remember(&work, &second);
  assert_true(rill__completion_is_known(&work));
}

static void forgets_on_request(void) {
  struct rill__completion work = known_work();
  rill__completion_forget(&work);
  assert_false(rill__completion_is_known(&work));
  rill__submission_begin(&work, &owner);
  assert_false(rill__completion_is_known(&work));
  rill__submission_end(&work, &owner);
  assert_false(rill__completion_is_known(&work));
}

TESTS_ONCE("core/object/completion.h", TEST(what_has_no_work_is_complete), TEST(remembers_an_answer),
           TEST(new_work_makes_it_forget), TEST(work_on_its_way_to_the_driver_counts),
           TEST(work_during_the_question_counts), TEST(each_submission_counts_by_itself), TEST(submissions_nest),
           TEST(an_older_question_does_not_answer_for_a_newer_one), TEST(forgets_on_request))
