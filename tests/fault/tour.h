/* A tour of every public function that can reach a vendor, one call a step, in three parts: make, use and release.
 *
 * Programs of this folder walk it with something wrong: a call that fails or hangs, a function that is missing, a lost
 * device, somebody else's context.  A step poisons its outputs beforehand; `spoiled` notes one that is not null after a
 * failure (C1.1).
 *
 *     struct tour tour = { 0 };
 *     const struct step *failed = tour_walk(&tour, MAKE, USE);      // NULL: all steps gave RILL_OK
 *     tour_walk(&tour, RELEASE, RELEASE);                           // whatever there is
 */
#ifndef RILL_TESTS_FAULT_TOUR_H
#define RILL_TESTS_FAULT_TOUR_H

#include "vendor.h"

enum { TOUR_WORDS = 64 };

struct tour {
  rill_stream stream, high, other, imported, null_stream, legacy, per_thread;
  rill_stream default_stream, second_stream;                               /* the first is borrowed */
  rill_event event, start, end, shared, from_vendor, fresh, cached, first; /* cached is borrowed; first: held for it */
  rill_event before_work; /* recorded on the idle stream, and seen complete */
  rill_module module, image_module;
  rill_kernel kernel, second_kernel, image_kernel;
  uint32_t *memory, *more, *pinned, *managed, *second_memory, *scratch; /* TOUR_WORDS each */
  uint32_t pageable[TOUR_WORDS], registered[TOUR_WORDS];                /* the second within a step */
  rill_kernel_ref ref, typed_ref;
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node fill_node, kernel_node;
  float ms;
  _Atomic int called, reported; /* host calls run, and the sum of what statuses they got */
  _Atomic int graph_calls;      /* of launches of graphs */
  const char *spoiled;          /* the step whose output was not null */
  rill_status status;           /* of the step that failed */
};

enum part { MAKE, USE, RELEASE };

/* What a step must give once the device is lost (C2.6). */
enum when_lost { LOST, WORKS };

struct step {
  const char *name, *api; /* api: the public function */
  rill_status (*run)(struct tour *tour);
  enum part part;
  enum when_lost when_lost;
};
extern const struct step steps[];
extern const size_t step_count;

/* The first step that failed, of the parts from `first` to `last`; NULL if none did.  Steps that need what was not made
 * are left out of RELEASE only. */
const struct step *tour_walk(struct tour *tour, enum part first, enum part last);

/* Whether the step is for this vendor and this build. */
bool step_applies(const struct step *step);

/* The whole tour, which must run clean, its results right. */
void tour_runs_clean(void);

/* The number of native objects that are alive when rill has as many to use again as it ever keeps, and after a
 * synchronize of each device. */
size_t settle(void);

#endif
