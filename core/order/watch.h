/* RILL_CHECK=order: reports the operations of rill's objects to the engine, and writes its findings. */
#ifndef RILL_CORE_ORDER_WATCH_H
#define RILL_CORE_ORDER_WATCH_H

#include "core/diagnose/observe.h"
#include "core/order/journal.h"

/* Enables the check if RILL_CHECK requests it.  Call it once. */
void rill__order_start(void);

/* Notes an access that the user declares; does nothing if the check is off.  `access`: RILL_ORDER_*. */
void rill__order_declare(struct rill__stream *stream, const void *p, size_t size, uint32_t access, const char *label);

/* Lock and unlock the check, around a fork. */
void rill__order_lock(void);
void rill__order_unlock(void);
void rill__order_after_fork(void); /* called in the child instead of unlock: the parent's work does not exist there */

/* ---- core/order/operations.c; call these inside an epoch, under the lock ---- */

/* Notifies the journal of an operation that is being submitted. */
void rill__order_notify(struct rill__journal *journal, const struct rill__observed *what);

/* Return the group of a device, and an unused number for a stream or event that is not one of rill's objects. */
uint32_t rill__order_group_of(const struct rill__device *device);
uint64_t rill__order_number(void);

/* Returns true if other code may order work of the device without rill's knowledge; NULL: of any device. */
bool rill__order_is_shared(const struct rill__device *device);

/* Creates an operation of a stream, or of the host if `stream` is NULL.  Returns NULL if there is no host memory. */
struct rill__order_op *rill__order_op_of(const struct rill__stream *stream, const char *what, const char *name,
                                         size_t size);

/* Finds memory that an operation of the stream accesses.  Returns false if that memory is not checked. */
bool rill__order_find(const struct rill__stream *stream, const void *p, size_t size, bool write,
                      struct rill__order_range *out);

#endif
