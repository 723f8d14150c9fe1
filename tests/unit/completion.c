/* core/object/completion.h: the completion cache, in every relevant order of steps. */
#include "core/object/completion.h"

#include "support/testing.h"

static struct rill__thread owner, other;

static void submit(struct rill__completion *work, struct rill__thread *thread) {
  rill__submission_begin(work, thread);
  rill__submission_end(work, thread);
}

/* Returns the state after the owner has submitted work that is known to be complete. */
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

static void no_work_means_complete(void) {
  const struct rill__completion work = { .owner = NULL };
  assert_true(rill__completion_is_known(&work));
}

static void remembers_an_answer(void) { (void)known_work(); }

static void new_work_discards_the_answer(void) {
  struct rill__thread *const threads[] = { &owner, &other };
  for (unsigned i = 0; i < 2; i++) {
    struct rill__completion work = known_work();
    submit(&work, threads[i]);
    assert_false(rill__completion_is_known(&work));
  }
}

/* C4.2: a thread that saw work run, possibly before the submitting call returned, must not see the work as
 * complete too early. */
static void work_not_yet_submitted_counts(void) {
  struct rill__thread *const threads[] = { &owner, &other };
  for (unsigned i = 0; i < 2; i++) {
    struct rill__completion work = known_work();
    rill__submission_begin(&work, threads[i]);
    assert_false(rill__completion_is_known(&work));
    const struct rill__completion_query asked =
        rill__query_completion(&work); /* the driver has answered before it received the work */
    rill__completion_remember(&work, &asked);
    assert_false(rill__completion_is_known(&work));
    rill__submission_end(&work, threads[i]);
    rill__completion_remember(&work, &asked);
    assert_false(rill__completion_is_known(&work));
  }
}

static void work_during_the_query_counts(void) {
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

/* If two threads submit concurrently, the end of one submission does not end the other. */
static void each_submission_counts_separately(void) {
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

/* If a graph records one event at several nodes, the launch is one submission per node, all by the same thread. */
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

/* One thread queries, then a second thread sees new work and queries: the result of the first query must not be used
 * for the second. */
static void an_older_query_does_not_answer_a_newer_one(void) {
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

TESTS_ONCE("core/object/completion.h", TEST(no_work_means_complete), TEST(remembers_an_answer),
           TEST(new_work_discards_the_answer), TEST(work_not_yet_submitted_counts), TEST(work_during_the_query_counts),
           TEST(each_submission_counts_separately), TEST(submissions_nest),
           TEST(an_older_query_does_not_answer_a_newer_one), TEST(forgets_on_request))
