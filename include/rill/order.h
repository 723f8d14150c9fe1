/* rill/order.h: accesses of memory that rill cannot see, for its check of order.
 *
 * With RILL_CHECK=order in the environment, rill reports work that uses the same memory without being ordered
 * (docs/guides/DIAGNOSE.md).  Of copies and fills it knows the bytes; of a kernel only which allocations it was given, and of
 * the host's own loads and stores nothing.  A program may say what these access; without the check that costs a branch.
 *
 *     rill_order_access(stream, half, bytes, RILL_ORDER_WRITE, "first half");  // of the kernel launched before
 *     ...
 *     rill_order_host_access(staging, bytes, RILL_ORDER_WRITE, "next batch");
 *     memcpy(staging, batch, bytes);
 *
 * The thing people get wrong: what is declared must be true.  A declared range is taken for an access of all of it.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_ORDER_H
#define RILL_ORDER_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** What is done to memory. */
enum { RILL_ORDER_READ = 1, RILL_ORDER_WRITE = 2 };

/** Says that work of the stream accesses `size` bytes at `p` at this point, as if an operation did that does nothing
 *  else.  `access`: RILL_ORDER_READ, RILL_ORDER_WRITE or both.  `label` names the access in reports; may be NULL.
 *  Size 0: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, access), OUT_OF_RANGE (past the end of memory),
 *           UNSUPPORTED (the stream captures), NOT_READY (it is held).
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    nothing. */
RILL_API rill_status rill_order_access(rill_stream stream, const void *p, size_t size, uint32_t access,
                                       const char *label);

/** Says that the host accesses the memory now, after all that it has waited for so far.
 *
 *  Errors:  INVALID_ARGUMENT (NULL, access), OUT_OF_RANGE (past the end of memory).
 *  Like:    nothing. */
RILL_API rill_status rill_order_host_access(const void *p, size_t size, uint32_t access, const char *label);

RILL_EXTERN_C_END

#endif
