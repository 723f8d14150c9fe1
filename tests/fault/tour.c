#include "tour_steps.h"

#include <sched.h>

rill_status tour_check_null(struct tour *tour, rill_status status, void *out, size_t size, const char *name) {
  const unsigned char *bytes = out;
  bool null = true;
  for (size_t i = 0; i < size; i++) null = null && bytes[i] == 0;
  if (status != RILL_OK && !null) {
    tour->spoiled = name;
    memset(out, 0, size);
  }
  return status;
}

const rill_bundle *tour_bundle(rill_bundle *copy) {
  *copy = gate_bundle;
  return copy;
}

void tour_note_call(void *user, rill_status status) {
  struct tour *t = user;
  (void)atomic_fetch_add(&t->reported, (int)status);
  (void)atomic_fetch_add(&t->called, 1);
}

void tour_count_call(void *user, rill_status status) {
  struct tour *t = user;
  (void)status;
  (void)atomic_fetch_add(&t->graph_calls, 1);
}

const struct step steps[] = {
#define TOUR_STEP(name, api, part, when_lost) { #name, #api, step_##name, part, when_lost },
#include "tour.def"
#undef TOUR_STEP
};
const size_t step_count = sizeof steps / sizeof *steps;

bool step_applies(const struct step *step) {
  static const char *const of_kernels[] = { "launch", "module", "kernel", "load_second", "get_kernel" };
  for (size_t i = 0; i < sizeof of_kernels / sizeof *of_kernels && !vendor.has_kernels; i++) {
    if (strstr(step->name, of_kernels[i]) != NULL) return false;
  }
  return vendor.cuda || strstr(step->name, "cluster") == NULL; /* the other has none */
}

const struct step *tour_walk(struct tour *tour, enum part first, enum part last) {
  for (size_t i = 0; i < step_count; i++) {
    const struct step *step = &steps[i];
    if (step->part < first || step->part > last || !step_applies(step)) continue;
    tour->status = step->run(tour);
    if (tour->status != RILL_OK) return step;
  }
  return NULL;
}

void tour_runs_clean(void) {
  struct tour tour = { .ms = -1 };
  const struct step *failed = tour_walk(&tour, MAKE, USE);
  if (failed != NULL) fail_msg("%s: %s", failed->name, rill_last_error_text());
  if (tour.spoiled != NULL) fail_msg("%s gave something wrong", tour.spoiled);
  assert_int_equal(atomic_load(&tour.called), 2);
  assert_int_equal(atomic_load(&tour.reported), RILL_OK);
  assert_true(tour.ms >= 0);
  failed = tour_walk(&tour, RELEASE, RELEASE);
  if (failed != NULL) fail_msg("%s: %s", failed->name, rill_last_error_text());
}

/* Released streams and events are kept for the next ones, up to a limit: with all kinds there, what else is alive
 * shows. */
static void fill_pools(rill_device device) {
  enum { MORE_THAN_KEPT = 300, MORE_STREAMS_THAN_KEPT = 70 };
  static rill_stream streams[MORE_STREAMS_THAN_KEPT];
  static rill_event events[MORE_THAN_KEPT];
  for (int kind = 0; kind < 3; kind++) {
    for (int i = 0; i < MORE_STREAMS_THAN_KEPT; i++) {
      const rill_stream_options options = { .struct_size = sizeof options,
                                            .priority = kind == 1 ? RILL_PRIORITY_HIGH : 0,
                                            .blocking = kind == 2 };
      streams[i] = RILL_NULL_STREAM;
      ignore(rill_stream_create(device, &options, &streams[i]));
    }
    for (int i = 0; i < MORE_STREAMS_THAN_KEPT; i++) ignore(rill_stream_release(streams[i]));
  }
  for (int kind = 0; kind < 4; kind++) {
    for (int i = 0; i < MORE_THAN_KEPT; i++) {
      const rill_event_options options = { .struct_size = sizeof options,
                                           .timing = kind & 1,
                                           .blocking_sync = kind & 2 };
      events[i] = RILL_NULL_EVENT;
      ignore(rill_event_create(device, &options, &events[i]));
    }
    for (int i = 0; i < MORE_THAN_KEPT; i++) ignore(rill_event_release(events[i]));
  }
}

size_t settle(void) {
  fill_pools(vendor.device);
  fill_pools(vendor.second);
  ignore(rill_device_synchronize(vendor.device)); /* complete objects are destroyed after it */
  ignore(rill_device_synchronize(vendor.second));
  return vendor.fake->live("*");
}
