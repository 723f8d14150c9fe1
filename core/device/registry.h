/* The backends of this build, and their devices.
 *
 * A backend is searched for devices when one of them is first requested, once in the process.  So opening "cpu" loads
 * no vendor library, and opening the first GPU loads the libraries of the vendors up to the first one that has a GPU.
 *
 * Invariant: a backend is unknown, then one thread searches, and then it is known for good and its devices are
 * constant.  No backend changes its state without the registry's lock.  The search itself runs without any lock and
 * outside epochs, because a driver takes a long time to start.
 */
#ifndef RILL_CORE_DEVICE_REGISTRY_H
#define RILL_CORE_DEVICE_REGISTRY_H

#include "core/device/backends.h"

/* Return a backend after searching it if necessary, and the backend with a public number.  Call these and the functions
 * below outside epochs. */
const struct rill__search *rill__backend_search(size_t i);
rill_status rill__backend_find(uint32_t id, size_t *out);

/* Returns device number *index of all backends, or of the GPUs.  If there are fewer, returns NULL and subtracts their
 * number from *index. */
struct rill__device *rill__device_nth(uint64_t *index, bool gpus_only);
uint32_t rill__device_count(void);
rill_status rill__fail_without_cpu(void);

/* Opens a device by name.  `origin`: text to put before the name in messages. */
rill_status rill__device_open(const char *name, const char *origin, struct rill__device **out);

/* ---- fork: core/fork.c ---- */

/* Set before the first search.  Called before and after each search, outside the lock. */
extern void (*_Atomic rill__around_search)(void);

void rill__registry_lock(void);
void rill__registry_unlock(void);

/* Called in the child, under the lock: a search that another thread was running during the fork never ends there. */
void rill__registry_after_fork(void);

#endif
