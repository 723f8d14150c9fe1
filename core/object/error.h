/* Failures of calls: a status, a text with the numbers that matter, and a hint for the user.  None of this costs time
 * until something fails. */
#ifndef RILL_CORE_OBJECT_ERROR_H
#define RILL_CORE_OBJECT_ERROR_H

#include "core/object/thread.h"

/* In a format, separates the message from the hint. */
#define RILL_HINT "\x1f"

/* Sets the calling thread's last error and returns `status`. */
rill_status rill__fail(rill_status status, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

/* Does the same with the vendor's own code and its name. */
rill_status rill__fail_native(rill_status status, int32_t code, const char *name, const char *format, ...)
    __attribute__((cold, format(printf, 4, 5)));

/* Adds the name of the failed launch to the calling thread's error. */
void rill__error_of_launch(const char *label) __attribute__((cold));

/* Suspend and resume changes of the last error, for failures inside a call that will succeed. */
void rill__errors_suspend(void);
void rill__errors_resume(void);

/* Returns the failure that the calling thread's latest rill__fail wrote, even if errors were suspended. */
static inline const struct rill__error_record *rill__failure(void) {
  const struct rill__thread *self = rill__self;
  return self->suspend_depth == 0 ? &self->error : &self->suspended_error;
}

#define RILL_REQUIRE(condition, status, ...)                                    \
  do {                                                                          \
    if (RILL__UNLIKELY(!(condition))) return rill__fail((status), __VA_ARGS__); \
  } while (0)

/* Returns a failure to the caller; its text is already set. */
#define RILL_TRY(call)                                              \
  do {                                                              \
    const rill_status try_status_ = (call);                         \
    if (RILL__UNLIKELY(try_status_ != RILL_OK)) return try_status_; \
  } while (0)

#endif
