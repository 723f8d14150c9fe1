/* Arrows of a trace, from the record of an event to the waits for it, and the times at which records were reached.
 *
 * A wait needs no timing event if the trace learns when the record that it waits for was reached, because the wait ends
 * at that time.  This requires that all work before the record is in the trace, which the arrow of the record notes in
 * `exact`. */
#ifndef RILL_CORE_TIMELINE_ARROWS_H
#define RILL_CORE_TIMELINE_ARROWS_H

#include "core/object/core.h"

/* Begins an arrow at the latest record of the event, which is in the stream with this number.  Returns the number of
 * the arrow, which is larger than 1 and than all earlier numbers. */
uint64_t rill__arrow_begin(struct rill__event *event, uint64_t stream, bool exact);

/* Returns the arrow from the latest record of the event; 0 if that record has none, because it is not in the trace or
 * because another event took its place in the table. */
uint64_t rill__arrow_find(struct rill__event *event, bool *exact);

/* Notes when the record of an arrow was reached, and where the arrow starts in the file (0: it does not), in the time
 * of the trace. */
void rill__arrow_reached(uint64_t arrow, uint64_t ns, uint64_t from);

/* Returns the stream of the record if the record was not reached yet, else 0. */
uint64_t rill__arrow_stream(uint64_t arrow);
/* Returns when the record was reached; 0 if that is not known.  Times are kept for the last 16,384 arrows; older
 * records count as reached. */
uint64_t rill__arrow_when(uint64_t arrow);
/* Returns where the arrow starts in the file; 0 if it does not, or if its times are no longer kept. */
uint64_t rill__arrow_from(uint64_t arrow);

/* Forgets all events. */
void rill__arrows_renew(void);
void rill__arrows_after_fork(void);

#endif
