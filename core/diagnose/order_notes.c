#include "core/diagnose/order_notes.h"

const struct rill__order_notes *_Atomic rill__order_notes;

void rill__accessed(uint64_t token, const struct rill__accessed *ranges, size_t count, bool complete) {
  RILL__NOTE_ORDER(accessed, token, ranges, count, complete);
}
