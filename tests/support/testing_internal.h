/* Shared by the files of the test helpers. */
#ifndef RILL_TESTS_SUPPORT_TESTING_INTERNAL_H
#define RILL_TESTS_SUPPORT_TESTING_INTERNAL_H

#include "testing.h"

/* Built for the race detector? */
#if defined(__SANITIZE_THREAD__)
#define UNDER_RACE_DETECTOR true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_RACE_DETECTOR true
#endif
#endif
#ifndef UNDER_RACE_DETECTOR
#define UNDER_RACE_DETECTOR false
#endif

/* "cuda:0" */
void name_device(const rill_device_info *info, char *name, size_t size);

/* Around the tests of one device: memory for cells and gates, every kernel that they use loaded. */
int objects_begin(void);
void objects_end(void);

/* Around one test.  objects_finish opens gates, waits for the device and releases; false if a gate opened itself. */
void objects_reset(void);
bool objects_finish(void);

#endif
