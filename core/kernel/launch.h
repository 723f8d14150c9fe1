/* Launches, and the checks of their shape, which queries about shapes also use. */
#ifndef RILL_CORE_KERNEL_LAUNCH_H
#define RILL_CORE_KERNEL_LAUNCH_H

#include "core/object/core.h"

/* number of blocks of a cluster that every device with clusters can run */
enum { RILL__PORTABLE_CLUSTER = 8 };

/* Checks and submits a launch. */
rill_status rill__launch(struct rill__stream *stream, struct rill__kernel *kernel, const rill_launch *shape,
                         const rill_arg *args, size_t count);

/* Reads and checks grid, block, cluster and dynamic shared memory.  Opts in to larger dynamic shared memory if
 * necessary. */
rill_status rill__launch_check_shape(struct rill__kernel *kernel, const rill_launch *shape, struct rill__launch *out);

/* Returns the number of blocks of a cooperative launch that the device can run at the same time; fails with UNSUPPORTED
 * if it has no such launches. */
rill_status rill__cooperative_blocks(struct rill__kernel *kernel, uint32_t threads, uint64_t shared, uint64_t *blocks);

/* Fails because neither the loaded image nor the driver describes the arguments. */
rill_status rill__fail_unknown_args(const struct rill__kernel *kernel) __attribute__((cold));

/* Checks only the dynamic shared memory. */
rill_status rill__launch_check_shared(struct rill__kernel *kernel, uint64_t bytes);

/* Converts the launch struct of an older or newer caller to the one of this library. */
rill_status rill__launch_read(rill_launch *into, const rill_launch *from);

#endif
