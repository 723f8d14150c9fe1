/* A run-time compiler for tests: the common parts of NVRTC and hipRTC.
 *
 * The host's preprocessor reads the source, so errors and conditions are real; the output is the list of its kernels,
 * in a form that the fake driver loads. The fake driver runs the host code of kernels of the same names. */
#ifndef RILL_TESTS_FAKE_RTC_H
#define RILL_TESTS_FAKE_RTC_H

#include <stdbool.h>
#include <stddef.h>

enum { RTC_OK = 0, RTC_NO_MEMORY = 1, RTC_BAD_INPUT = 3, RTC_BAD_PROGRAM = 4, RTC_BAD_OPTION = 5, RTC_HAS_ERRORS = 6 };

struct rtc_program {
  char *source, *name;
  char **headers, **names;
  int count;
  char *log;     /* of the last compile; NULL: nothing was said */
  char *kernels; /* their names with a line end after each; NULL: not compiled */
};

int rtc_create(struct rtc_program **out, const char *source, const char *name, int count, const char *const *headers,
               const char *const *names);
int rtc_destroy(struct rtc_program **program);

/* Enters each vendor function; returns the error to fail with, or RTC_OK (rtc_control.h). */
int rtc_enter(const char *function);
/* Count one program more, or one less. */
void rtc_count(int change);
/* The options of a compile. */
void rtc_note_options(const char *const *options, int count);

/* `words` are options of the host's compiler. */
int rtc_preprocess(struct rtc_program *program, const char *const *words, int count);

#endif
