/* rill/order.h: declares memory accesses that rill cannot see, for its order checker.
 *
 * With RILL_CHECK=order in the environment, rill reports unordered work that uses the same memory
 * (docs/guides/DIAGNOSE.md). rill knows the exact bytes of copies and fills. For kernels it knows only the
 * allocations to which their arguments point, and it does not see loads and stores of the host. A program can declare
 * these accesses. Without the check a declaration costs one branch.
 *
 *     rill_order_access(stream, half, bytes, RILL_ORDER_WRITE, "first half");  // of the kernel launched before
 *     ...
 *     rill_order_host_access(staging, bytes, RILL_ORDER_WRITE, "next batch");
 *     memcpy(staging, batch, bytes);
 *
 * Pitfall: a declaration must be exact. rill treats a declared range as an access to every byte of it.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_ORDER_H
#define RILL_ORDER_H

#include <rill/base.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Kinds of access. */
enum { RILL_ORDER_READ = 1, RILL_ORDER_WRITE = 2 };

/** Declares that work of the stream accesses `size` bytes at `p` at this point, like an operation that does only
 *  this. `access` is RILL_ORDER_READ, RILL_ORDER_WRITE or both. `label` names the access in reports and may be NULL.
 *  Size 0 has no effect.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (NULL, access), OUT_OF_RANGE (past the end of the address
 *           space), UNSUPPORTED (the stream is capturing), NOT_READY (the stream is held).
 *  Threads: any; calls on one stream are ordered as they arrive.
 *  Like:    nothing. */
RILL_API rill_status rill_order_access(rill_stream stream, const void *p, size_t size, uint32_t access,
                                       const char *label);

/** Declares that the host accesses the memory now. The access is ordered after all work for which the host has
 *  waited.
 *
 *  Errors:  INVALID_ARGUMENT (NULL, access), OUT_OF_RANGE (past the end of the address space).
 *  Like:    nothing. */
RILL_API rill_status rill_order_host_access(const void *p, size_t size, uint32_t access, const char *label);

RILL_EXTERN_C_END

#endif
