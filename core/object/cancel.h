/* What pthread_cancel may end. */
#ifndef RILL_CORE_OBJECT_CANCEL_H
#define RILL_CORE_OBJECT_CANCEL_H

#include <pthread.h>

static inline int rill__cancel_disable(void) {
  int before = 0;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void rill__cancel_restore(const int *before) {
  int ignored;
  (void)pthread_setcancelstate(*before, &ignored);
}

/* Until the end of the block, pthread_cancel does not end the thread: a wait that it ends would leave a lock taken and
 * references counted.  Stands where rill may wait or read files, which are the points where POSIX cancels. */
#define RILL_WITHOUT_CANCEL() \
  const int cancel_before __attribute__((unused, cleanup(rill__cancel_restore))) = rill__cancel_disable()

#endif
