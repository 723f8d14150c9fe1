/* How a call fails: status, text with the numbers in it, and what to do.  Nothing here costs anything until
 * something fails. */
#ifndef RILL_CORE_OBJECT_ERROR_H
#define RILL_CORE_OBJECT_ERROR_H

#include "core/object/thread.h"

/* In a format: ends what was wrong, begins what to do about it. */
#define RILL_HINT "\x1f"

/* Sets the calling thread's last error and returns `status`. */
rill_status rill__fail(rill_status status, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/* The same, with the vendor's own code and its name. */
rill_status rill__fail_native(rill_status status, int32_t code, const char *name, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));

/* Adds to the calling thread's error which launch failed. */
void rill__error_of_launch(const char *label) __attribute__((cold));

/* Between the two, failures inside a call that will succeed do not touch the last error. */
void rill__errors_suspend(void);
void rill__errors_resume(void);

/* What the calling thread's latest rill__fail wrote, suspended or not. */
static inline const struct rill__error_record *rill__failure(void) {
  const struct rill__thread *self = rill__self;
  return self->suspend_depth == 0 ? &self->error : &self->suspended_error;
}

#define RILL_REQUIRE(condition, status, ...)                                    \
  do {                                                                          \
    if (RILL__UNLIKELY(!(condition))) return rill__fail((status), __VA_ARGS__); \
  } while (0)

/* Passes a failure on, whose text stands already. */
#define RILL_TRY(call)                                              \
  do {                                                              \
    const rill_status try_status_ = (call);                         \
    if (RILL__UNLIKELY(try_status_ != RILL_OK)) return try_status_; \
  } while (0)

#endif
