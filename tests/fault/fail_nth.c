/* Each vendor call of the tour made to fail once: the first call of a function, the second, the third … until the tour
 * runs clean.  Each time the step that meets it says which call failed, with what, and gives no outputs; nothing leaks,
 * the thread's native state is as before, and the next tour works. */
#include "tour.h"

#include <stdio.h>

enum { CODE = 999, MOST_CALLS = 500 };

static size_t alive; /* native objects between tours */

/* Functions whose refusal may pass without an error, and why. */
static const struct {
  const char *field;
  bool everywhere; /* else only where something is released */
  bool leaves_one; /* the object that it should have ended */
} silent[] = {
  { "device_attribute", true, false },      /* 0: the driver does not know */
  { "function_attribute", true, false },    /* the same */
  { "device_can_access_peer", true, false }, /* rill_device_supports says no */
  { "stream_id", true, false },             /* rill's own number stands in */
  { "exchange_capture_mode", true, false }, /* an old driver has none either */
  { "stream_is_capturing", false, false },  /* asked before a stream is asked about its work */
  { "stream_query", false, false },
  { "event_query", false, false },
  { "event_create", false, false }, /* marks of modules that are to be unloaded: made later */
  { "event_record", false, false },
  { "context_synchronize", false, false }, /* before a module is unloaded */
  { "stream_destroy", false, true },
  { "event_destroy", false, true },
  { "module_unload", false, true },
  { "set_device", true, false }, /* every second one goes back to the owner's device; nobody could be told */
};

static bool may_be_silent(const char *field, bool releasing, bool *leaves_one) {
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
    if (strcmp(silent[i].field, field) != 0) continue;
    *leaves_one = silent[i].leaves_one;
    return silent[i].everywhere || releasing;
  }
  return false;
}

/* "event_record, call 3: make_event: " */
static char place[160];

/* All that is wrong is told, not the first thing only. */
static unsigned problems;
#define BAD(...) (problems++, print_error("%s", place), print_error(__VA_ARGS__), print_error("\n"))

static void check_error(const struct step *step, const char *function) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (strcmp(error.api, step->api) != 0) BAD("the error is of %s, not of %s", error.api, step->api);
  if (error.native_code != CODE || strcmp(error.native_name, vendor.unknown) != 0) {
    BAD("the native error is %d %s: %s", (int)error.native_code, error.native_name, rill_last_error_text());
  }
  if (error.status != RILL_ERROR_BACKEND) BAD("the status is %s", rill_status_name(error.status));
  if (strstr(error.message, function) == NULL) BAD("the text does not name %s: %s", function, rill_last_error_text());
}

/* Frees what refused to go; twice is enough. */
static const struct step *release_all(struct tour *tour, const char *function, bool *told) {
  const struct step *failed = NULL;
  for (size_t i = 0; i < step_count; i++) {
    if (steps[i].part != RELEASE || !step_applies(&steps[i])) continue;
    if (steps[i].run(tour) == RILL_OK) continue;
    failed = &steps[i];
    (void)snprintf(place + strlen(place), sizeof place - strlen(place), "%s: ", failed->name);
    check_error(failed, function);
    *told = true;
    if (steps[i].run(tour) != RILL_OK) BAD("a second try fails too: %s", rill_last_error_text());
  }
  return failed;
}

/* One tour with the nth call refused; false if there were not as many. */
static bool tour_with_failure(const struct vendor_function *f, unsigned nth) {
  struct tour tour = { .ms = 0 };
  bool told = false, leaves_one = false;
  const struct native_state before = native_state();
  const uint64_t calls = vendor.fake->calls(f->name);
  vendor.fake->fail_call(f->name, nth, CODE);
  (void)snprintf(place, sizeof place, "%s, call %u: ", f->name, nth);
  const struct step *failed = tour_walk(&tour, MAKE, USE);
  if (failed != NULL) {
    (void)snprintf(place + strlen(place), sizeof place - strlen(place), "%s: ", failed->name);
    check_error(failed, f->name);
    told = true;
  }
  if (tour.spoiled != NULL) BAD("%s left an output that is not null", tour.spoiled);
  const bool struck_before = vendor.fake->calls(f->name) - calls >= nth;
  (void)release_all(&tour, f->name, &told);
  /* What was put off is given back by later calls. */
  if (vendor.fake->calls(f->name) - calls < nth) (void)settle(alive);
  const bool struck = vendor.fake->calls(f->name) - calls >= nth;
  vendor.fake->clear();
  if (struck && !told && !may_be_silent(f->field, !struck_before, &leaves_one)) {
    BAD("the refused call was passed over in silence");
  }
  if (!vendor.cuda && strcmp(f->field, "set_device") == 0) native_set_nothing();
  const struct native_state after = native_state();
  if (after.current != before.current) BAD("the current context or device is %p", (void *)after.current);
  if (after.last_error != 0) BAD("the thread's last error is %d", after.last_error);
  if (after.capture_mode != before.capture_mode) BAD("the thread's capture mode is %d", after.capture_mode);
  const size_t now = settle(alive);
  if (now > alive && !(leaves_one && now == alive + 1)) BAD("%zu native objects are left, not %zu", now, alive);
  alive = now > alive ? now : alive;
  return struck;
}

static void refusals_of(const struct vendor_function *f) {
  for (unsigned nth = 1; tour_with_failure(f, nth); nth++) {
    tour_runs_clean();
    if (nth == MOST_CALLS) fail_msg("%s is called %u times and more", f->name, nth);
  }
  (void)settle(alive);
}

static void every_call_of_the_tour_can_fail(void) {
  unsigned functions = 0;
  for (int i = 0; i < 3; i++) tour_runs_clean();
  alive = settle(SIZE_MAX); /* what rill keeps for good */
  for (size_t i = 0; i < vendor_function_count; i++) {
    const struct vendor_function *f = &vendor_functions[i];
    if (f->name == NULL || strcmp(f->field, "context_pop") == 0) continue; /* has nothing to refuse */
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
  if (RUN_ONCE("devices of the fake", begin) != 0) return 1;
  return RUN_ONCE("vendor calls that fail", tests);
}
