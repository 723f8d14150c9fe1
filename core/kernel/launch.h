/* Launches: what is checked of their shape, for those who ask about shapes too. */
#ifndef RILL_CORE_KERNEL_LAUNCH_H
#define RILL_CORE_KERNEL_LAUNCH_H

#include "core/object/core.h"

/* Blocks of a cluster that every device with clusters can run. */
enum { RILL__PORTABLE_CLUSTER = 8 };

/* Checks and submits. */
rill_status rill__launch(struct rill__stream *stream, struct rill__kernel *kernel, const rill_launch *shape,
                         const rill_arg *args, size_t count);

/* Reads and checks grid, block, cluster and dynamic shared memory, which is opted in to if it has to be. */
rill_status rill__launch_check_shape(struct rill__kernel *kernel, const rill_launch *shape, struct rill__launch *out);

/* How many blocks of a cooperative launch run at a time on the whole device; UNSUPPORTED without such launches. */
rill_status rill__cooperative_blocks(struct rill__kernel *kernel, uint32_t threads, uint64_t shared, uint64_t *blocks);

/* What was loaded does not tell the arguments; nor does the driver. */
rill_status rill__fail_unknown_args(const struct rill__kernel *kernel) __attribute__((cold));

/* Dynamic shared memory alone. */
rill_status rill__launch_check_shared(struct rill__kernel *kernel, uint64_t bytes);

/* The launch struct of an older or newer caller, as this library has it. */
rill_status rill__launch_read(rill_launch *into, const rill_launch *from);

#endif
