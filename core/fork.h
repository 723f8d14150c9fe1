#ifndef RILL_CORE_FORK_H
#define RILL_CORE_FORK_H

/* Registers the fork handlers of core/fork.c; may be called again. */
void rill__fork_watch(void);

#endif
