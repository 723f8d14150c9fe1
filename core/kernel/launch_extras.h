/* What few launches have: attributes and constants. */
#ifndef RILL_CORE_KERNEL_LAUNCH_EXTRAS_H
#define RILL_CORE_KERNEL_LAUNCH_EXTRAS_H

#include "core/call.h"

/* Values of constants, in pinned memory of their own: taken at the call. */
struct rill__constants;

/* Checks the attributes of a launch, whose shape is in `launch`, and reads them. */
rill_status rill__attributes_read(struct rill__stream *stream, const rill_launch *shape,
                                  const struct rill__launch *launch, struct rill__launch_extras *out);

/* Checks and takes the constants of a launch; `extras` points to them. */
rill_status rill__constants_take(struct rill__stream *stream, struct rill__kernel *kernel, const rill_launch *shape,
                                 struct rill__launch_extras *extras, struct rill__constants **out);

/* Bytes that they hold. */
size_t rill__constants_bytes(const struct rill__constants *constants);

/* Ends them, which may be NULL: after the stream's driver may have read them, or unused. */
void rill__constants_finish(struct rill__stream *stream, struct rill__constants *constants);
void rill__constants_drop(struct rill__constants *constants);

#endif
