/* calls.h: functions of calls.c for the control table; they take the lock themselves. */
#ifndef FAKE_CALLS_H
#define FAKE_CALLS_H

#include "options.h"

void fake_calls_fail(const char *function, unsigned nth, int code);
void fake_calls_hang(const char *function);
unsigned fake_calls_hanging(void);
void fake_calls_clear(void);
uint64_t fake_calls_count(const char *function);
void fake_calls_print(void);

#endif
