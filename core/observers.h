/* The observers that the environment enables. */
#ifndef RILL_CORE_OBSERVERS_H
#define RILL_CORE_OBSERVERS_H

/* Starts the observers, once, before rill searches for the first device. */
void rill__observers_start(void);

#endif
