/* The observers that the environment asks for. */
#ifndef RILL_CORE_OBSERVERS_H
#define RILL_CORE_OBSERVERS_H

/* Starts them, once; before the first device is looked for. */
void rill__observers_start(void);

#endif
