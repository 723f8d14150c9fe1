#ifndef RILL_CORE_FORK_H
#define RILL_CORE_FORK_H

/* Registers the handlers of core/fork.c, once more. */
void rill__fork_watch(void);

#endif
