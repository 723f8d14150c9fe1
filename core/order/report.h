/* What a check of order says on standard error. */
#ifndef RILL_CORE_ORDER_REPORT_H
#define RILL_CORE_ORDER_REPORT_H

#include "core/order/engine.h"

/* Lines that are to be written when the engine's lock is free. */
struct rill__order_text {
  char *text;
  size_t used, room;
  uint64_t *said; /* of each pair of operations that has been reported: a number made of its words */
  size_t said_count, said_room;
  bool said_all; /* the limit of pairs has been reported */
};

void rill__order_say(struct rill__order_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds the lines of a finding, unless it has been reported. */
void rill__order_describe(struct rill__order_text *text, const struct rill__order_finding *finding);

#endif
