/* RILL_TRACE (see RILL_DISPATCH in core/backend.h). */
#ifndef RILL_CORE_DEVICE_TRACE_H
#define RILL_CORE_DEVICE_TRACE_H

#include "core/object/core.h"

/* Reads the environment.  Called before the first search for devices. */
void rill__trace_start(void);

#endif
