/* The backends of this build, and the devices that each has.
 *
 * A backend looks for its devices when somebody first asks for one of them, once in the process: to open "cpu" loads no
 * vendor's library, and to open the first GPU loads those of the vendors up to the first that has one.
 *
 * Invariant.  A backend is unknown, then one thread searches, then it is known for good, and its devices are constant.
 * Under the registry's lock no backend changes its state; a search itself runs without any lock, and
 * outside epochs, since a driver takes its time to start.
 */
#ifndef RILL_CORE_REGISTRY_H
#define RILL_CORE_REGISTRY_H

#include "core/device/backends.h"

/* ---- fork: core/fork.c ---- */

/* Called before and after each search, outside the lock. */
void rill__fork_watch(void);

void rill__registry_lock(void);
void rill__registry_unlock(void);

/* In the child, under the lock: a search that another thread was in when the process forked does not end any more. */
void rill__registry_after_fork(void);

#endif
