/* A vendor call that hangs blocks its caller alone; and time limits on the host's waits hold (C3.10, W18). */
#include "children.h"
#include "tour.h"

#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- only the caller blocks ---- */

/* Calls of a step that is walked again: new objects go into `fresh`, and `made` is used. */
static rill_status again(const struct step *step, struct tour *made, struct tour *fresh) {
  return step->run(step->part == MAKE ? fresh : made);
}

/* Steps that need objects created earlier in the same pass. */
static bool stands_alone(const struct step *step) {
  static const char *const chained[] = { "get_kernel", "get_image_kernel", "make_graph", "instantiate" };
  for (size_t i = 0; i < sizeof chained / sizeof *chained; i++) {
    if (strcmp(step->name, chained[i]) == 0) return false;
  }
  return step_applies(step) && step->part != RELEASE;
}

static void make(struct tour *tour) {
  const struct step *failed = tour_walk(tour, MAKE, USE);
  if (failed != NULL) fail_msg("%s: %s", failed->name, rill_last_error_text());
}

struct caller {
  const struct step *only; /* NULL: all that stand alone */
  struct tour made, fresh;
  _Atomic bool done;
};

static const char *call(unsigned index, void *shared) {
  struct caller *caller = shared;
  rill_status status = RILL_OK;
  (void)index;
  for (size_t i = 0; i < 2 * step_count && status == RILL_OK;
       i++) { /* twice: deferred releases happen in the next pass */
    const struct step *step = &steps[i % step_count];
    if (caller->only != NULL ? caller->only != step : !stands_alone(step)) continue;
    status = again(step, &caller->made, &caller->fresh);
  }
  atomic_store(&caller->done, true);
  return status == RILL_OK ? NULL : rill_last_error_text();
}

static struct background *hang_in(struct caller *caller, const char *function) {
  vendor.fake->hang(function);
  struct background *hanging = start_threads(1, call, caller);
  while (vendor.fake->hanging() == 0 && !atomic_load(&caller->done)) (void)sched_yield();
  return hanging;
}

static const struct step *step_named(const char *name) {
  for (size_t i = 0; i < step_count; i++) {
    if (strcmp(steps[i].name, name) == 0) return &steps[i];
  }
  fail_msg("there is no step %s", name);
  return NULL;
}

/* Takes all events that are kept for the next use, so that a step that makes one asks the vendor; and all streams. */
static void drain_pools(void) {
  for (int kind = 0; kind < 4; kind++) {
    const rill_event_options options = { .struct_size = sizeof options, .timing = kind & 1, .blocking_sync = kind & 2 };
    const uint64_t calls = vendor_calls("event_create");
    rill_event event;
    while (vendor_calls("event_create") == calls) assert_ok(rill_event_create(vendor.device, &options, &event));
  }
}

static void drain_stream_pools(void) {
  for (int kind = 0; kind < 3; kind++) {
    const rill_stream_options options = { .struct_size = sizeof options,
                                          .priority = kind == 1 ? RILL_PRIORITY_HIGH : 0,
                                          .blocking = kind == 2 };
    const uint64_t calls = vendor_calls("stream_create");
    rill_stream stream;
    while (vendor_calls("stream_create") == calls) assert_ok(rill_stream_create(vendor.device, &options, &stream));
  }
}

/* Queries and waits go to the driver unless the answer is already known, which depends on the progress of work; changes
 * of a graph query launches that use replaced objects. */
static bool may_ask(const struct step *step, const char *function) {
  static const char *const words[] = {
    "synchronize", "is_complete", "is_ready", "elapsed", "graph_set", "graph_update"
  };
  static const char *const fields[] = { "stream_query",      "stream_synchronize",    "event_query",
                                        "event_synchronize", "exchange_capture_mode", "stream_is_capturing" };
  bool question = false, asks = false;
  for (int i = 0; i < 6; i++) question = question || strstr(step->name, words[i]) != NULL;
  for (int i = 0; i < 6; i++) asks = asks || strcmp(vendor_name(fields[i]), function) == 0;
  return question && asks;
}

/* A copy from pageable memory waits for the host calls before it, if they are not known to be done, which depends on
 * the steps before. */
static bool may_wait(const struct step *step, const char *function) {
  static const char *const words[] = { "pageable_up", "2d_pageable", "held_copy_2d" };
  static const char *const fields[] = { "capturing", "query",   "synchronize",      "exchange_capture_mode",
                                        "context_",  "_device", "pointer_attribute" };
  const char *field = "";
  bool copies = false, needs = false;
  for (size_t i = 0; i < vendor_function_count; i++) {
    if (vendor_functions[i].name != NULL && strcmp(vendor_functions[i].name, function) == 0)
      field = vendor_functions[i].field;
  }
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) copies = copies || strstr(step->name, words[i]) != NULL;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) needs = needs || strstr(field, fields[i]) != NULL;
  return copies && needs;
}

/* HIP: what a change of a graph has replaced goes with the next call of any thread that finds its launches over. Calls
 * that only submit work do not check. */
static bool may_destroy(const struct step *step, const char *function) {
  static const char *const submits[] = { "record_", "wait_", "fill", "copy", "launch", "host_call" };
  if (strcmp(vendor.backend, "hip") != 0 || strcmp(vendor_name("graph_exec_destroy"), function) != 0) return false;
  if (strstr(step->name, "_new_") != NULL) return true;
  bool submission = false;
  for (int i = 0; i < 6; i++) submission = submission || strncmp(step->name, submits[i], strlen(submits[i])) == 0;
  return !submission;
}

/* Pinned memory that constants and held copies do not need any more goes back with the first call that may block: here
 * it is a free, and if that is left out, the synchronize after it.  Until then those who need some look whether it is
 * still in use. */
static void note_what_is_put_off(bool *uses) {
  static const char *const words[] = { "device_synchronize", "constants", "held_pageable" };
  bool freeing = false;
  for (size_t i = 0; i < step_count; i++)
    freeing = freeing || (uses[i] && strcmp(steps[i].name, "free_something") == 0);
  for (size_t i = 0; i < step_count; i++) {
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
      uses[i] = uses[i] || (freeing && strstr(steps[i].name, words[k]) != NULL);
    }
  }
}

/* Whether each step may call the function; in several passes, since much is kept for the next time. */
static bool find_users(const char *function, struct tour *made, bool *uses) {
  enum { PASSES = 3 };
  static struct tour fresh;
  bool any = false;
  drain_stream_pools(); /* no step of these gives one back */
  for (int pass = 0; pass < PASSES; pass++) {
    for (size_t i = 0; i < step_count; i++) {
      if (!stands_alone(&steps[i])) continue;
      drain_pools();
      const uint64_t calls = vendor.fake->calls(function);
      assert_ok(again(&steps[i], made, &fresh));
      uses[i] = uses[i] || may_ask(&steps[i], function) || may_wait(&steps[i], function) ||
                may_destroy(&steps[i], function) || vendor.fake->calls(function) != calls;
      any = any || uses[i];
    }
  }
  note_what_is_put_off(uses);
  return any;
}

/* One function hangs in one thread; this thread makes every call that does not need it. */
static void others_continue(void) {
  static struct caller caller;
  static struct tour made, fresh;
  const char *function = getenv("RILL_TEST_FUNCTION");
  bool *uses = calloc(step_count, sizeof *uses);
  assert_non_null(function);
  assert_non_null(uses);
  vendor_begin();
  make(&caller.made);
  make(&made);
  if (find_users(function, &made, uses)) {
    struct background *hanging = hang_in(&caller, function);
    const bool hangs = !atomic_load(&caller.done); /* the function may no longer be needed */
    for (size_t i = 0; i < step_count && hangs; i++) {
      if (uses[i] || !stands_alone(&steps[i])) continue;
      (void)fprintf(stderr, "while %s hangs: %s\n", function, steps[i].name);
      assert_ok(again(&steps[i], &made, &fresh));
    }
    if (hangs) {
      assert_int_equal(vendor.fake->hanging(), 1);
      assert_false(atomic_load(&caller.done));
    }
    vendor.fake->clear();
    join_threads(hanging);
  }
  free(uses);
  assert_null(tour_walk(&made, RELEASE, RELEASE));
  assert_null(tour_walk(&caller.made, RELEASE, RELEASE));
}

/* What others submit to a captured stream is captured natively, under the lock of graphs, which whoever may break a
 * capture takes.  Drivers do not wait for work in these calls. */
static bool is_under_lock_of_graphs(const char *field) {
  return strcmp(field, "capture_begin") == 0 || strcmp(field, "capture_end") == 0 || strcmp(field, "capture_info") == 0;
}

/* A child for each function of the vendor. */
static void only_the_caller_blocks(void) {
  unsigned failed = 0, hung = 0;
  for (size_t i = 0; i < vendor_function_count; i++) {
    static struct child child;
    const char *function = vendor_functions[i].name;
    char variable[96];
    if (function == NULL || is_under_lock_of_graphs(vendor_functions[i].field)) continue;
    (void)snprintf(variable, sizeof variable, "RILL_TEST_FUNCTION=%s", function);
    const char *const variables[] = { variable };
    run_child("others_continue", variables, 1, &child);
    hung += strstr(child.output, " hangs: ") != NULL;
    if (child.exit_code == 0) continue;
    print_error("%s: %s\n%s\n", function, child_end(&child), child.output);
    failed++;
  }
  assert_int_equal(failed, 0);
  assert_true(hung > 20);
}

/* The first use of a device hangs: others can be used. */
static void first_use_of_one_device_blocks_no_other(void) {
  static struct caller caller;
  rill_stream stream;
  rill_device device;
  char name[16];
  vendor_names();
  (void)snprintf(name, sizeof name, "%s:1", vendor.backend);
  assert_ok(rill_device_open(name, &device));
  assert_ok(rill_stream_create(device, NULL, &stream)); /* what is the process's first is over */
  vendor_begin();
  caller.only = step_named("make_stream");
  struct background *hanging = hang_in(&caller, vendor_name("context_priority_range"));
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_event event;
  assert_ok(rill_device_get_info(vendor.device, &info));
  assert_ok(rill_stream_record_new_event(stream, NULL, &event));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_event_release(event));
  assert_ok(rill_device_synchronize(vendor.cpu));
  assert_ok(rill_stream_release(stream));
  vendor.fake->clear();
  join_threads(hanging);
}

static void count_release(void *user, uintptr_t native) {
  (void)native;
  (void)atomic_fetch_add((_Atomic int *)user, 1);
}

/* Release never blocks (C1.3), with a function to be called too. */
static void release_with_a_function_does_not_block(void) {
  static struct caller caller;
  static _Atomic int releases;
  const rill_import_options options = { .struct_size = sizeof options, .release = count_release, .user = &releases };
  rill_stream imported;
  vendor_begin();
  make(&caller.made);
  caller.only = step_named("fill_on_second");
  assert_ok(rill_stream_release(caller.made.imported));
  caller.made.imported.id = 0;
  assert_ok(rill_stream_import(vendor.device, vendor.native_stream, &options, &imported));
  struct background *hanging = hang_in(&caller, vendor_name("fill_32"));
  assert_ok(rill_stream_release(imported));
  assert_int_equal(atomic_load(&releases), 1);
  vendor.fake->clear();
  join_threads(hanging);
  assert_null(tour_walk(&caller.made, RELEASE, RELEASE));
}

/* ---- launches of graphs ---- */

struct graph_caller {
  rill_graph_exec exec;
  rill_graph_node node;
  rill_stream stream;
  uint32_t *memory;
};

static const char *launch_graph(unsigned index, void *shared) {
  const struct graph_caller *caller = shared;
  (void)index;
  REQUIRE_OK(rill_graph_launch(caller->exec, caller->stream));
  return NULL;
}

static const char *change_graph(unsigned index, void *shared) {
  const struct graph_caller *caller = shared;
  const uint32_t value = 2;
  (void)index;
  REQUIRE_OK(rill_graph_exec_set_fill(caller->exec, caller->node, caller->memory, &value, sizeof value, 1));
  return NULL;
}

static void make_graph(struct graph_caller *caller) {
  rill_graph graph;
  const uint32_t value = 1;
  assert_ok(rill_stream_create(vendor.device, NULL, &caller->stream));
  assert_ok(rill_graph_create(vendor.device, &graph));
  assert_ok(rill_graph_add_fill(graph, NULL, 0, caller->memory, &value, sizeof value, 1, &caller->node));
  assert_ok(rill_graph_instantiate(graph, &caller->exec));
  assert_ok(rill_graph_release(graph));
}

static void end_graph(struct graph_caller *caller) {
  assert_ok(rill_stream_synchronize(caller->stream));
  assert_ok(rill_graph_exec_release(caller->exec));
  assert_ok(rill_stream_release(caller->stream));
}

/* Runs a forked child that exits with the problem it found, under a time limit. */
static void fork_with_graph(const struct graph_caller *caller) {
  (void)fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)alarm(CHILD_SECONDS / 2);
    if (rill_graph_launch(caller->exec, caller->stream) != RILL_ERROR_NO_DEVICE) _exit(1);
    if (rill_graph_exec_release(caller->exec) != RILL_OK) _exit(2);
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

/* The driver may wait for the device in a launch when its queue is full. Calls on that execution object wait for the
 * launch; calls on other objects, including forks, continue. */
static void launch_of_a_graph_blocks_its_object_only(void) {
  struct graph_caller first, second;
  vendor_begin();
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, TOUR_WORDS, &first.memory));
  second.memory = first.memory + 1;
  make_graph(&first);
  make_graph(&second);
  vendor.fake->hang(vendor_name("graph_launch"));
  struct background *launching = start_threads(1, launch_graph, &first);
  while (vendor.fake->hanging() == 0) (void)sched_yield();
  struct background *changing = start_threads(2, change_graph, &first);
  assert_null(change_graph(0, &second));
  assert_ok(rill_fill_async(second.stream, second.memory, &second.exec, 4, 1));
  fork_with_graph(&first);
  vendor.fake->clear();
  join_threads(launching);
  join_threads(changing);
  assert_null(launch_graph(0, &first));
  assert_null(launch_graph(0, &second));
  end_graph(&first);
  end_graph(&second);
  assert_ok(rill_free(first.memory));
}

/* ---- time limits ---- */

static void check_limit(rill_status status, uint64_t start, uint64_t ns) {
  const uint64_t passed = now_ns() - start;
  if (status != RILL_ERROR_TIMEOUT) fail_msg("gave %s: %s", rill_status_name(status), rill_last_error_text());
  if (passed < ns) fail_msg("%llu ns early", (unsigned long long)(ns - passed));
}

static void check_limits(rill_stream stream, rill_event event) {
  static const uint64_t limits[] = { 0, 1, 1000, MILLISECOND, 20 * MILLISECOND };
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    uint64_t start = now_ns();
    check_limit(rill_stream_synchronize_for(stream, limits[i]), start, limits[i]);
    start = now_ns();
    check_limit(rill_event_synchronize_for(event, limits[i]), start, limits[i]);
  }
}

static void limits_on_pending_work_hold(void) {
  rill_stream stream;
  rill_event event;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_new_event(stream, NULL, &event));
  check_limits(stream, event);
  vendor.fake->resume(0);
  /* Both are usable, and no limit is too long. */
  assert_ok(rill_stream_synchronize_for(stream, UINT64_MAX));
  assert_ok(rill_event_synchronize_for(event, UINT64_MAX));
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_synchronize_for(event, UINT64_MAX - 1));
  assert_ok(rill_stream_synchronize_for(stream, UINT64_MAX - 1));
  assert_ok(rill_stream_synchronize_for(stream, 0)); /* nothing to wait for */
  assert_ok(rill_event_synchronize_for(event, 0));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(stream));
}

static void limits_on_held_work_hold(void) {
  rill_stream held, other;
  rill_event first, event;
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &held));
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_event_create(vendor.device, NULL, &first));
  assert_ok(rill_stream_wait_event(held, first, 0));
  assert_ok(rill_stream_record_new_event(held, NULL, &event));
  check_limits(held, event);
  /* The work is submitted to the driver and blocks there: the limit covers both waits. */
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_event(other, first, 0));
  check_limits(held, event);
  vendor.fake->resume(0);
  assert_ok(rill_stream_synchronize_for(held, UINT64_MAX));
  assert_ok(rill_event_synchronize_for(event, UINT64_MAX));
  assert_ok(rill_event_release(first));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(held));
  assert_ok(rill_stream_release(other));
}

static const char *wait_long(unsigned index, void *shared) {
  const struct tour *tour = shared;
  if (index % 2 == 0) REQUIRE_OK(rill_stream_synchronize_for(tour->stream, TIMEOUT_NS));
  REQUIRE_OK(rill_event_synchronize_for(tour->event, TIMEOUT_NS));
  return NULL;
}

/* Waiting threads block no other thread, not even on the same stream. */
static void waits_block_their_callers_only(void) {
  static struct tour tour;
  bool out = true;
  vendor_begin();
  make(&tour);
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_event(tour.stream, tour.event, 0));
  struct background *waiting = start_threads(4, wait_long, &tour);
  assert_ok(rill_stream_record_event(tour.stream, tour.start, 0));
  assert_ok(rill_stream_wait_event(tour.other, tour.event, 0));
  assert_ok(rill_stream_is_complete(tour.stream, &out));
  assert_false(out);
  assert_ok(rill_event_is_ready(tour.event, &out));
  assert_false(out);
  assert_fails(rill_stream_synchronize_for(tour.other, MILLISECOND), RILL_ERROR_TIMEOUT);
  vendor.fake->resume(0);
  join_threads(waiting);
  assert_null(tour_walk(&tour, RELEASE, RELEASE));
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(first_use_of_one_device_blocks_no_other),
    MODE(release_with_a_function_does_not_block),
    MODE(launch_of_a_graph_blocks_its_object_only),
    MODE(limits_on_pending_work_hold),
    MODE(limits_on_held_work_hold),
    MODE(waits_block_their_callers_only),
  };
  static const struct test each[] = { TEST(only_the_caller_blocks) };
  static const struct test one[] = { TEST(others_continue) };
  if (argc > 1 && strcmp(argv[1], one[0].name) == 0) return RUN_ONCE("hangs", one);
  const int failed = RUN_MODES("hangs", argc, argv, modes);
  vendor_names();
  return argc > 1 ? failed : failed | RUN_ONCE("hangs", each);
}
