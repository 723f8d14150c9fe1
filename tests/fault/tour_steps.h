/* Helpers for the steps of the tour. */
#ifndef RILL_TESTS_FAULT_TOUR_STEPS_H
#define RILL_TESTS_FAULT_TOUR_STEPS_H

#include "tour.h"

#include "gate.rill.h"

#include <rill/bundle.h>

#define TOUR_STEP(name, api, part, when_lost) rill_status step_##name(struct tour *t);
#include "tour.def"
#undef TOUR_STEP

#define STEP(name) rill_status step_##name(struct tour *t)

/* Poisons an output, and notes it if it is not null after a failure. */
#define POISON(out) memset(&(out), 0xa5, sizeof(out))
#define CHECKED(tour, status, out) tour_check_null((tour), (status), &(out), sizeof(out), __func__)
rill_status tour_check_null(struct tour *tour, rill_status status, void *out, size_t size, const char *name);

/* A step with one output: of the tour, or for a look. */
#define MAKING(name, out, call)        \
  STEP(name) {                         \
    POISON(out);                       \
    const rill_status status = (call); \
    return CHECKED(t, status, out);    \
  }

#define GETTING(name, type, call)      \
  STEP(name) {                         \
    type out;                          \
    POISON(out);                       \
    const rill_status status = (call); \
    return CHECKED(t, status, out);    \
  }

/* A copy of gate_bundle: what one has loaded is not there for the others. */
const rill_bundle *tour_bundle(rill_bundle *copy);

/* Host calls of streams, and of graphs. */
void tour_note_call(void *user, rill_status status);
void tour_count_call(void *user, rill_status status);

#endif
