/* rill/status.h: status codes, and the reason for the last failure.
 *
 * Every call that can fail returns a rill_status and stores its results through its last pointer arguments. After a
 * failure the results are null, 0 or false, and no part of the call's work is enqueued. The calling thread can ask for
 * the reason:
 *
 *     if (rill_stream_synchronize(stream) != RILL_OK) {
 *       fprintf(stderr, "%s\n", rill_last_error_text());
 *     }
 *
 * Pitfall: success does not change the last error. Check the status first.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_STATUS_H
#define RILL_STATUS_H

#include <rill/base.h>

/* Every status: name without prefix, number (never changed or reused), description. */
#define RILL_STATUS_LIST(X)                                                             \
  X(OK, 0, "success")                                                                   \
  X(ERROR_INVALID_ARGUMENT, 1, "an argument is invalid")                                \
  X(ERROR_OUT_OF_RANGE, 2, "a value lies outside its range or limit")                   \
  X(ERROR_INVALID_HANDLE, 3, "the handle is zero, invalid or of another type")          \
  X(ERROR_STALE_HANDLE, 4, "the last reference to the object has been released")        \
  X(ERROR_WRONG_DEVICE, 5, "the objects belong to different devices")                   \
  X(ERROR_WRONG_BACKEND, 6, "the objects belong to different backends")                 \
  X(ERROR_NO_DEVICE, 7, "no such device exists on this machine")                        \
  X(ERROR_NOT_FOUND, 8, "nothing has this name")                                        \
  X(ERROR_OUT_OF_MEMORY, 9, "out of memory")                                            \
  X(ERROR_UNSUPPORTED, 10, "the device or its driver does not support this")            \
  X(ERROR_TIMING_DISABLED, 11, "the event was created without timing")                  \
  X(ERROR_NOT_RECORDED, 12, "the event has not been recorded")                          \
  X(ERROR_NOT_READY, 13, "the work is not complete")                                    \
  X(ERROR_TIMEOUT, 14, "the time limit expired first")                                  \
  X(ERROR_CAPTURE_ACTIVE, 15, "the call would break an active capture")                 \
  X(ERROR_CAPTURE_INVALID, 16, "the capture has been invalidated")                      \
  X(ERROR_DEVICE_LOST, 17, "enqueued work faulted; the device cannot be used any more") \
  X(ERROR_BACKEND, 18, "the vendor's driver refused a call")                            \
  X(ERROR_INTERNAL, 19, "internal error in rill; please report it")                     \
  X(ERROR_CHECK, 20, "a check that RILL_CHECK enables found a mistake")

enum {
#define RILL_STATUS_ENUM_(name, number, text) RILL_##name = number,
  RILL_STATUS_LIST(RILL_STATUS_ENUM_) RILL_STATUS_END_ /* private: one past the last */
#undef RILL_STATUS_ENUM_
};

RILL_EXTERN_C_BEGIN

/** The calling thread's last failure. Strings are never NULL and stay valid until this thread's next failing call. */
typedef struct rill_error {
  size_t struct_size;
  rill_status status;      /**< RILL_OK if no call of this thread has failed yet */
  int32_t native_code;     /**< the vendor's own code; 0 if the vendor was not involved */
  const char *api;         /**< the function that failed, including typed launches ("saxpy_launch") */
  const char *object;      /**< label or id of the first object among its arguments; "" if none */
  const char *native_name; /**< the vendor's name of native_code; "" if none */
  const char *message;     /**< the cause, with numbers; further lines are details */
  const char *hint;        /**< how to fix it; may be "" */
} rill_error;
#define RILL_ERROR_INIT \
  { sizeof(rill_error), 0, 0, NULL, NULL, NULL, NULL, NULL }

/** Returns the calling thread's last failure without clearing it.
 *
 *  Errors:  INVALID_ARGUMENT (out is NULL or its struct_size is 0), which does not become the last
 *           error itself.
 *  Threads: any; each thread has its own last error.
 *  Like:    cudaPeekAtLastError, cuGetErrorName and cuGetErrorString in one. */
RILL_API RILL_NODISCARD rill_status rill_last_error(rill_error *out);

/** Returns the calling thread's last failure as one line without details, or "" if no call has failed. Never NULL.
 *
 *  Errors:  none.
 *  Threads: any; the text is valid until this thread's next failing call.
 *  Like:    dlerror. */
RILL_API RILL_NODISCARD const char *rill_last_error_text(void);

/** Returns the name of a status, such as "RILL_ERROR_TIMEOUT", or "RILL_ERROR_?" for an unknown number.
 *
 *  Errors:  none; never NULL.
 *  Like:    cuGetErrorName, hipGetErrorName. */
RILL_API RILL_NODISCARD const char *rill_status_name(rill_status status);

/** Returns a description of a status, or "unknown status" for an unknown number.
 *
 *  Errors:  none; never NULL.
 *  Like:    cuGetErrorString, hipGetErrorString. */
RILL_API RILL_NODISCARD const char *rill_status_message(rill_status status);

RILL_EXTERN_C_END

#endif
