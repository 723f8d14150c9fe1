/* Makes each vendor call of the tour fail once: the first call of a function, the second, the third … until the tour
 * runs clean. Each time the step that meets the failure reports which call failed with what and has no outputs; nothing
 * leaks, the thread's native state is as before, and the next tour works. */
#include "tour.h"

#include <stdio.h>

enum { CODE = 999, MOST_CALLS = 500 };

static size_t alive; /* native objects between tours */

/* Functions whose refusal may pass without an error, where (the beginning of a step's name; "" is anywhere), and how
 * many native objects stay that can no longer be destroyed: a module has up to five functions and a variable, a graph
 * up to GRAPH nodes, and an execution object. */
enum { GRAPH = 32 };
static const struct {
  const char *field, *step;
  size_t leaves;
} silent[] = {
  { "device_attribute", "", 0 },       /* 0: the driver does not know */
  { "function_attribute", "", 0 },     /* the same */
  { "device_can_access_peer", "", 0 }, /* rill_device_supports says no */
  { "stream_id", "", 0 },              /* rill's own number stands in */
  { "exchange_capture_mode", "", 0 },  /* an old driver has none either */
  { "context_current", "", 0 },        /* the context is pushed then */
  { "context_push", "import_", 0 },    /* of the vendor's default streams: to ask for the id */
  { "get_device", "import_", 0 },
  { "set_device", "", GRAPH }, /* every second one goes back to the owner's device; nobody could be notified */
  /* A release never fails; an object that it destroys may have to be queried first, and is destroyed in a later
   * call. */
  { "stream_destroy", "", 1 },
  { "event_destroy", "", 1 },
  { "module_unload", "", 7 },
  { "runtime_version", "", 0 },       /* the driver's stands in */
  { "stream_device", "release_", 0 }, /* whether the stream of an event still exists */
  { "stream_device", "unload_", 0 },
  { "stream_device", "free_", 0 },
  { "stream_device", "synchronize_", 0 },
  { "stream_is_capturing", "make_", 0 }, /* of a stream that has ended */
  { "stream_query", "make_", 0 },
  { "stream_is_capturing", "load_second", 0 }, /* it releases a module, and with it what has ended */
  { "stream_query", "load_second", 0 },
  { "stream_is_capturing", "device_synchronize", 0 }, /* whether a capture would be broken: it goes to the driver */
  { "stream_is_capturing", "register_host", 0 },
  { "stream_query", "register_host", 0 },
  { "context_push", "device_synchronize", 0 },
  { "context_push", "register_host", 0 },
  { "get_device", "device_synchronize", 0 },
  { "get_device", "register_host", 0 },
  { "stream_is_capturing", "release_", 0 },
  { "stream_is_capturing", "free_", 0 },
  { "stream_is_capturing", "synchronize_held", 0 },
  { "stream_is_capturing", "synchronize_other", 0 },
  { "stream_query", "release_", 0 },
  { "stream_query", "free_", 0 },
  { "stream_query", "synchronize_held", 0 },
  { "stream_query", "synchronize_other", 0 },
  { "event_query", "release_", 0 },
  { "event_query", "free_", 0 },
  { "host_free", "free_", 0 },               /* of held copies and of constants: another call tries again */
  { "event_record", "launch_constants", 0 }, /* the mark after constants: without it they are kept for longer */
  { "event_record", "end_hold", GRAPH },
  { "event_create", "release_", 0 }, /* after the work that may use a module */
  { "event_record", "release_", 0 },
  { "event_record", "graph_launch", GRAPH }, /* the mark after a launch: the object is never destroyed */
  { "event_record", "graph_capture", GRAPH },
  { "event_query", "make_", 0 }, /* whether an execution object that has been destroyed is idle */
  { "event_query", "import_", 0 },
  { "stream_is_capturing", "graph_capture", 0 },
  { "stream_query", "graph_capture", 0 },
  { "stream_is_capturing", "instantiate", 0 },
  { "stream_query", "instantiate", 0 },
  { "event_query", "graph_", 0 },           /* whether launches use what a change has replaced */
  { "event_query", "null_is_complete", 0 }, /* at its end what has been released is tried */
  { "event_query", "synchronize", 0 },
  { "event_query", "event_synchronize", 0 },
  { "graph_set_kernel", "graph_", 0 }, /* the graph is created again */
  { "graph_set_copy", "graph_", 0 },
  { "graph_set_fill", "graph_", 0 },
  { "graph_destroy", "", GRAPH },
  { "graph_exec_destroy", "", GRAPH },
  { "context_push", "instantiate", GRAPH }, /* to end an execution object, or the graph that a change was made of */
  { "context_push", "graph_", GRAPH },
  { "context_push", "synchronize", GRAPH },
  { "context_push", "event_synchronize", GRAPH },
  { "context_push", "imported_", GRAPH },
  { "get_device", "imported_", GRAPH },
  { "get_device", "instantiate", GRAPH },
  { "get_device", "graph_", GRAPH },
  { "get_device", "synchronize", GRAPH },
  { "get_device", "event_synchronize", GRAPH },
  { "capture_info", "graph_capture",
    0 }, /* work that other code may have submitted is then captured, even if there is none */
  { "context_synchronize", "release_", 0 }, /* before a module goes */
  { "context_synchronize", "free_", 0 },
  { "context_push", "release_", GRAPH },
  { "context_push", "free_", GRAPH },
  { "get_device", "release_", GRAPH },
  { "get_device", "free_", GRAPH },
  { "stream_is_capturing", "unload_", 0 }, /* a bundle's release */
  { "stream_query", "unload_", 0 },
  { "event_query", "unload_", 0 },
  { "event_create", "unload_", 0 },
  { "event_record", "unload_", 0 },
  { "context_synchronize", "unload_", 0 },
  { "context_push", "unload_", GRAPH },
  { "get_device", "unload_", GRAPH },
};

static bool may_be_silent(const char *field, const char *step, size_t *leaves) {
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
    if (strcmp(silent[i].field, field) != 0 || strncmp(step, silent[i].step, strlen(silent[i].step)) != 0) continue;
    *leaves = silent[i].leaves;
    return true;
  }
  return false;
}

/* "event_record, call 3: make_event: " */
static char place[160];

/* All problems are reported, not only the first. */
static unsigned problems;
#define BAD(...) (problems++, print_error("%s", place), print_error(__VA_ARGS__), print_error("\n"))

static struct {
  const struct vendor_function *function;
  unsigned nth;
  uint64_t calls;     /* before the tour */
  const char *struck; /* the step in which the call was refused; NULL: not yet */
  bool reported;
} refusal;

static void check_error(const struct step *step, const char *function) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (step->api[0] != '\0' && strcmp(error.api, step->api) != 0)
    BAD("the error is of %s, not of %s", error.api, step->api);
  /* A feature that the driver does not report is unsupported. */
  const char *field = refusal.function->field;
  const bool question = strcmp(field, "device_attribute") == 0 || strcmp(field, "device_can_access_peer") == 0;
  if (error.status == RILL_ERROR_UNSUPPORTED && question) return;
  if (error.native_code != CODE || strcmp(error.native_name, vendor.unknown) != 0) {
    BAD("the native error is %d %s: %s", (int)error.native_code, error.native_name, rill_last_error_text());
  }
  if (error.status != RILL_ERROR_BACKEND) BAD("the status is %s", rill_status_name(error.status));
  if (strstr(error.message, function) == NULL) BAD("the text does not name %s: %s", function, rill_last_error_text());
}

static bool run_step(struct tour *tour, const struct step *step) {
  const rill_status status = step->run(tour);
  const char *function = refusal.function->name;
  if (refusal.struck == NULL && vendor.fake->calls(function) - refusal.calls >= refusal.nth)
    refusal.struck = step->name;
  if (status == RILL_OK) return true;
  (void)snprintf(place, sizeof place, "%s, call %u: %s: ", function, refusal.nth, step->name);
  check_error(step, function);
  refusal.reported = true;
  return false;
}

/* Up to the step that fails, then the releases; a second try must succeed. */
static void walk(struct tour *tour) {
  bool good = true;
  for (size_t i = 0; i < step_count; i++) {
    const struct step *step = &steps[i];
    if (!step_applies(step) || (!good && step->part != RELEASE)) continue;
    if (run_step(tour, step)) continue;
    good = false;
    if (step->part == RELEASE && step->run(tour) != RILL_OK) BAD("a second try fails too: %s", rill_last_error_text());
  }
}

/* Runs one tour with the nth call refused; returns false if there were fewer calls. */
static bool tour_with_refusal(const struct vendor_function *f, unsigned nth) {
  struct tour tour = { .ms = 0 };
  size_t leaves = 0;
  const struct native_state before = native_state();
  (void)snprintf(place, sizeof place, "%s, call %u: ", f->name, nth);
  refusal.function = f;
  refusal.nth = nth;
  refusal.calls = vendor.fake->calls(f->name);
  refusal.struck = NULL;
  refusal.reported = false;
  vendor.fake->fail_call(f->name, nth, CODE);
  walk(&tour);
  vendor.fake->clear();
  if (tour.spoiled != NULL) BAD("%s left an output that is not null", tour.spoiled);
  const bool silence = refusal.struck != NULL && may_be_silent(f->field, refusal.struck, &leaves);
  if (refusal.struck != NULL && !refusal.reported && !silence) BAD("%s passes it over in silence", refusal.struck);
  /* Calls that restore the owner's state can also be refused. */
  if (strcmp(f->field, "set_device") == 0 || strcmp(f->field, "exchange_capture_mode") == 0) {
    native_put_back(before);
  }
  const struct native_state after = native_state();
  if (after.current != before.current) BAD("the current context or device is %p", (void *)after.current);
  if (after.last_error != 0) BAD("the thread's last error is %d", after.last_error);
  if (after.capture_mode != before.capture_mode) BAD("the thread's capture mode is %d", after.capture_mode);
  const size_t now = settle();
  if (now > alive + leaves) BAD("%zu native objects are left, not %zu", now, alive);
  if (now > alive) alive = now;
  return refusal.struck != NULL;
}

static void refusals_of(const struct vendor_function *f) {
  const unsigned step = strcmp(f->field, "exchange_capture_mode") == 0 ? 23 : 1; /* it is around most others */
  for (unsigned nth = 1; tour_with_refusal(f, nth); nth += step) {
    tour_runs_clean();
    if (nth >= step * MOST_CALLS) fail_msg("%s is called %u times and more", f->name, nth);
  }
  (void)settle();
}

static void every_call_of_the_tour_can_fail(void) {
  unsigned functions = 0;
  for (int i = 0; i < 3; i++) tour_runs_clean();
  alive = settle(); /* memory that rill keeps permanently */
  for (size_t i = 0; i < vendor_function_count; i++) {
    const struct vendor_function *f = &vendor_functions[i];
    if (f->name == NULL || strcmp(f->field, "context_pop") == 0) continue; /* cannot fail */
    const uint64_t calls = vendor.fake->calls(f->name);
    tour_runs_clean();
    if (vendor.fake->calls(f->name) != calls) refusals_of(f), functions++;
  }
  assert_true(functions > 20);
  assert_int_equal(problems, 0);
}

int main(void) {
  static const struct test begin[] = { TEST(vendor_begin) };
  static const struct test tests[] = { TEST(every_call_of_the_tour_can_fail) };
  if (RUN_ONCE("fake devices", begin) != 0) return 1;
  return RUN_ONCE("failing vendor calls", tests);
}
