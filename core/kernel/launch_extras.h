/* Parts of a launch that few launches have: attributes and constants. */
#ifndef RILL_CORE_KERNEL_LAUNCH_EXTRAS_H
#define RILL_CORE_KERNEL_LAUNCH_EXTRAS_H

#include "core/held/held.h"

/* Checks and reads the attributes of a launch, whose shape is in `launch`. */
rill_status rill__attributes_read(struct rill__stream *stream, const rill_launch *shape,
                                  const struct rill__launch *launch, struct rill__launch_extras *out);

/* Checks the constants of a launch and copies them to pinned memory.  `out`: the payload that owns the copy, or NULL;
 * `extras` points to the copies. */
rill_status rill__constants_take(struct rill__stream *stream, struct rill__kernel *kernel, const rill_launch *shape,
                                 struct rill__launch_extras *extras, struct rill__payload **out);

#endif
