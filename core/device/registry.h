/* The backends of this build, and the devices that each has.
 *
 * A backend looks for its devices when somebody first asks for one of them, once in the process: to open "cpu" loads no
 * vendor's library, and to open the first GPU loads those of the vendors up to the first that has one.
 *
 * Invariant.  A backend is unknown, then one thread searches, then it is known for good, and its devices are constant.
 * Under the registry's lock no backend changes its state; a search itself runs without any lock, and
 * outside epochs, since a driver takes its time to start.
 */
#ifndef RILL_CORE_DEVICE_REGISTRY_H
#define RILL_CORE_DEVICE_REGISTRY_H

#include "core/device/backends.h"

/* A backend that is known afterwards; and that with a public number.  Outside epochs, as all that follows. */
const struct rill__search *rill__backend_look(size_t i);
rill_status rill__backend_find(uint32_t id, size_t *out);

/* Device number *index of all backends, or of the GPUs; NULL if there are fewer, which leaves by how many. */
struct rill__device *rill__device_nth(uint64_t *index, bool gpus_only);
uint32_t rill__device_count(void);
rill_status rill__fail_without_cpu(void);

/* `origin`: what stands before the name in texts. */
rill_status rill__device_open(const char *name, const char *origin, struct rill__device **out);

/* ---- fork: core/fork.c ---- */

/* Set before the first search: called before and after each, outside the lock. */
extern void (*_Atomic rill__around_search)(void);

void rill__registry_lock(void);
void rill__registry_unlock(void);

/* In the child, under the lock: a search that another thread was in when the process forked does not end any more. */
void rill__registry_after_fork(void);

#endif
