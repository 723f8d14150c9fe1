/* Protection against pthread_cancel. */
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

/* Keeps pthread_cancel from ending the thread until the end of the block: a cancelled wait would leave a lock locked
 * and references counted.  Used wherever rill may wait or read files, because those are the cancellation points of
 * POSIX. */
#define RILL_WITHOUT_CANCEL() \
  const int cancel_before __attribute__((unused, cleanup(rill__cancel_restore))) = rill__cancel_disable()

#endif
