/* Gates: operations that may not finish until the host acts, which are host calls and kernels that poll. */
#include "core/object/assert.h"
#include "core/order/state.h"

#include <stdlib.h>

static bool is_open(const struct rill__gate *gate) { return gate->ended || gate->position <= gate->timeline->seen; }

static void end_gate(struct rill__order *order, struct rill__gate *gate) {
  rill__clock_free(&gate->clock);
  rill__timeline_drop(order, gate->timeline);
}

/* Makes the array of gates smaller after many host calls have been pending at once. */
static void shrink_gates(struct rill__order *order) {
  enum { FEW = 1024 };
  if (order->gate_room <= FEW || order->gate_count > order->gate_room / 8) return;
  struct rill__gate *gates = realloc(order->gates, order->gate_room / 4 * sizeof *gates);
  if (gates == NULL) return;
  order->gates = gates;
  order->gate_room /= 4;
}

/* Removes the gates that are open. */
static void drop_open(struct rill__order *order) {
  size_t kept = 0;
  for (size_t i = 0; i < order->gate_count; i++) {
    if (is_open(&order->gates[i])) {
      end_gate(order, &order->gates[i]);
    } else {
      order->gates[kept++] = order->gates[i];
    }
  }
  order->gate_count = kept;
  order->gates_ended = 0;
  shrink_gates(order);
}

bool rill__gates_are_open(const struct rill__order *order, uint64_t gate) {
  for (size_t i = 0; i < order->gate_count && order->gates[i].serial <= gate; i++) {
    if (!is_open(&order->gates[i])) return false;
  }
  return true;
}

bool rill__gates_are_signaled(const struct rill__order *order, uint64_t gate) {
  for (size_t i = 0; i < order->gate_count && order->gates[i].serial <= gate; i++) {
    if (order->gates[i].is_signaled && !is_open(&order->gates[i])) return true;
  }
  return false;
}

/* Adds a gate for the last operation of the timeline. */
static bool add_gate(struct rill__order *order, struct rill__timeline *timeline, bool polls) {
  const bool full = order->gate_count == order->gate_room;
  if (full) drop_open(order);
  if (full && 2 * order->gate_count >= order->gate_room) {
    const size_t room = order->gate_room == 0 ? 16 : 2 * order->gate_room;
    struct rill__gate *gates = realloc(order->gates, room * sizeof *gates);
    if (gates == NULL) return false;
    order->gates = gates;
    order->gate_room = room;
  }
  timeline->gate = ++order->gate_serial;
  timeline->names++;
  RILL_ASSERT(order->gate_count == 0 || order->gates[order->gate_count - 1].serial < timeline->gate,
              "gates are sorted by serial number");
  order->gates[order->gate_count++] = (struct rill__gate){
    .serial = timeline->gate, .position = timeline->position, .timeline = timeline, .polls = polls
  };
  return true;
}

bool rill__gate_of_poll(struct rill__order *order, struct rill__timeline *timeline, bool is_signaled) {
  for (size_t i = 0; i < order->gate_count; i++) {
    struct rill__gate *const gate = &order->gates[i];
    if (gate->timeline != timeline || !gate->polls || is_open(gate)) continue;
    gate->position = timeline->position;
    gate->is_signaled |= is_signaled;
    if (timeline->gate < gate->serial) timeline->gate = gate->serial;
    return true;
  }
  if (!add_gate(order, timeline, true)) return false;
  order->gates[order->gate_count - 1].is_signaled = is_signaled;
  return true;
}

/* ---- host calls ---- */

uint64_t rill__order_call_submit(struct rill__order *order, uint64_t stream) {
  struct rill__timeline *timeline = rill__timeline_get(order, stream);
  if (timeline == NULL) return 0;
  timeline->position++;
  if (add_gate(order, timeline, false) &&
      rill__clock_join(&order->gates[order->gate_count - 1].clock, &timeline->clock)) {
    return timeline->gate;
  }
  rill__order_clear(order);
  return 0;
}

static struct rill__gate *find_gate(struct rill__order *order, uint64_t call) {
  size_t low = 0, high = order->gate_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (order->gates[middle].serial < call) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < order->gate_count && order->gates[low].serial == call ? &order->gates[low] : NULL;
}

void rill__order_call_start(struct rill__order *order, uint64_t call) {
  const struct rill__gate *const gate = find_gate(order, call);
  if (gate == NULL) return;
  rill__host_join(order, &gate->clock);
  if (gate->timeline->seen < gate->position - 1) gate->timeline->seen = gate->position - 1;
}

/* ---- pending findings ---- */

bool rill__pending_add(struct rill__order *order, const struct rill__order_finding *finding,
                       struct rill__timeline *timeline, uint64_t gate) {
  if (order->pending_count == order->pending_room) {
    const size_t room = order->pending_room == 0 ? 8 : 2 * order->pending_room;
    struct rill__pending *pending = realloc(order->pending, room * sizeof *pending);
    if (pending == NULL) return false;
    order->pending = pending;
    order->pending_room = room;
  }
  struct rill__order_op *const earlier = (struct rill__order_op *)(uintptr_t)finding->earlier;
  struct rill__order_op *const later = (struct rill__order_op *)(uintptr_t)finding->later;
  earlier->references++;
  later->references++;
  timeline->names++;
  order->pending[order->pending_count++] =
      (struct rill__pending){ *finding, earlier, later, timeline, timeline->position, gate, false };
  return true;
}

static void end_pending(struct rill__order *order, struct rill__pending *pending) {
  rill__order_op_unref(pending->earlier);
  rill__order_op_unref(pending->later);
  rill__timeline_drop(order, pending->timeline);
}

void rill__pending_update(struct rill__order *order) {
  for (size_t i = 0; i < order->pending_count; i++) {
    struct rill__pending *const pending = &order->pending[i];
    const struct rill__timeline *const timeline = pending->timeline;
    pending->seen = pending->position <= timeline->seen || pending->position <= timeline->maybe_seen;
  }
}

/* Decides pending findings.  A gate can have waited only for operations that were complete before it opened.  If the
 * host had not seen an operation complete by then, the gate did not wait for that operation. */
void rill__pending_decide(struct rill__order *order) {
  size_t kept = 0;
  for (size_t i = 0; i < order->pending_count; i++) {
    struct rill__pending pending = order->pending[i];
    if (!pending.seen && !rill__gates_are_open(order, pending.gate)) {
      order->pending[kept++] = pending;
      continue;
    }
    RILL_ASSERT(pending.finding.certain, "only a finding that may be certain is pending");
    pending.finding.certain = !pending.seen;
    order->report(order->user, &pending.finding);
    end_pending(order, &pending);
  }
  order->pending_count = kept;
}

void rill__order_call_end(struct rill__order *order, uint64_t call) {
  struct rill__gate *gate = find_gate(order, call);
  if (gate == NULL) return;
  rill__pending_update(order);
  gate->ended = true;
  rill__pending_decide(order);
  if (2 * ++order->gates_ended > order->gate_count) drop_open(order);
}

void rill__gates_clear(struct rill__order *order) {
  for (size_t i = 0; i < order->pending_count; i++) end_pending(order, &order->pending[i]);
  order->pending_count = 0;
  for (size_t i = 0; i < order->gate_count; i++) end_gate(order, &order->gates[i]);
  order->gate_count = 0;
}
