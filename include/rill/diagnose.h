/* rill/diagnose.h: what rill checks, for libraries that check something themselves.
 *
 * RILL_CHECK in the environment is a list of checks, such as "comm,memory".  rill reads it once, when a program first
 * asks for a device, and names a word that it does not know on standard error.
 *
 *     if (rill_check_is_on("comm")) ... compare what the ranks do
 *
 * The thing people get wrong: a change of RILL_CHECK after the first device has been asked for has no effect.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_DIAGNOSE_H
#define RILL_DIAGNOSE_H

#include <rill/base.h>

RILL_EXTERN_C_BEGIN

/** Returns whether RILL_CHECK in the environment lists `name`; false for a name that is no check, and in a set-user-id
 *  program.
 *
 *  Errors:  none; false if `name` is NULL.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD bool rill_check_is_on(const char *name);

RILL_EXTERN_C_END

#endif
