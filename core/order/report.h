/* The messages of a check of order on standard error. */
#ifndef RILL_CORE_ORDER_REPORT_H
#define RILL_CORE_ORDER_REPORT_H

#include "core/order/engine.h"

/* Lines to be written when the engine's lock has been released. */
struct rill__order_text {
  char *text;
  size_t used, room;
  uint64_t *reported; /* for each reported pair of operations, a hash of its description */
  size_t reported_count, reported_capacity;
  bool limit_reported; /* the limit of pairs was reported */
};

void rill__order_say(struct rill__order_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the lines of a finding, unless it has been reported. */
void rill__order_describe(struct rill__order_text *text, const struct rill__order_finding *finding);

#endif
