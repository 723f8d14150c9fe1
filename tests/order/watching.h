/* Captures the standard error of the process, for tests of reports. */
#ifndef RILL_TESTS_ORDER_WATCHING_H
#define RILL_TESTS_ORDER_WATCHING_H

#include "support/testing.h"

/* From begin to end, nothing but the text that is returned, which is valid until the next call. */
void watch_begin(void);
const char *watch_end(void);

#endif
