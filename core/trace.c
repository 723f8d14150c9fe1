#include "core/object/options.h"
#include "core/observers.h"
#include "core/timeline/timeline.h"

#include <rill/trace.h>

rill_status rill_trace_start(const rill_trace_options *options) {
  RILL_ENTER();
  rill__observers_start(); /* a trace that RILL_TIMELINE requests begins first */
  rill_trace_options o = RILL_TRACE_OPTIONS_INIT;
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_trace_options"));
  return rill__timeline_start(o.path != NULL ? o.path : "rill-trace.json",
                              o.max_bytes != 0 ? o.max_bytes : RILL__TIMELINE_LIMIT, o.graph_nodes);
}

rill_status rill_trace_stop(void) {
  RILL_ENTER_TO_BLOCK();
  rill__leave(&self);
  return rill__timeline_stop(true);
}

rill_status rill_range_push(const char *name) {
  RILL_ENTER();
  RILL_REQUIRE(name != NULL, RILL_ERROR_INVALID_ARGUMENT, "name is NULL");
  self->ranges++;
  rill__timeline_range_push(name);
  return RILL_OK;
}

rill_status rill_range_pop(void) {
  RILL_ENTER();
  RILL_REQUIRE(self->ranges > 0, RILL_ERROR_INVALID_ARGUMENT, "the thread has no open range");
  self->ranges--;
  rill__timeline_range_pop();
  return RILL_OK;
}
