#include "core/diagnose/order_notes.h"

const struct rill__order_notes *_Atomic rill__order_notes;
