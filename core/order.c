#include "core/order/watch.h"
#include "core/sync/submit.h"

#include <rill/order.h>

static rill_status check_access(const void *p, size_t size, uint32_t access) {
  const uint32_t known = RILL_ORDER_READ | RILL_ORDER_WRITE;
  RILL_REQUIRE(p != NULL, RILL_ERROR_INVALID_ARGUMENT, "p is NULL");
  RILL_REQUIRE(access != 0 && (access & ~known) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "access is 0x%x, but must be RILL_ORDER_READ, RILL_ORDER_WRITE or both", access);
  RILL_REQUIRE((uintptr_t)p <= UINTPTR_MAX - size, RILL_ERROR_OUT_OF_RANGE,
               "%zu bytes at %p extend past the end of the address space", size, p);
  return RILL_OK;
}

rill_status rill_order_access(rill_stream stream, const void *p, size_t size, uint32_t access, const char *label) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (size == 0) return RILL_OK;
  RILL_TRY(check_access(p, size, access));
  RILL_REQUIRE(!rill__is_captured(s), RILL_ERROR_UNSUPPORTED,
               "%s is capturing, and a graph has no node for a declared access" RILL_HINT
               "declare it after each launch of the graph",
               rill__name_of(&s->base).text);
  RILL_REQUIRE(!rill__is_held(s), RILL_ERROR_NOT_READY,
               "%s is held, so its work is not submitted yet" RILL_HINT "record the event that it waits for first",
               rill__name_of(&s->base).text);
  rill__order_declare(s, p, size, access, label);
  return RILL_OK;
}

rill_status rill_order_host_access(const void *p, size_t size, uint32_t access, const char *label) {
  RILL_ENTER();
  if (size == 0) return RILL_OK;
  RILL_TRY(check_access(p, size, access));
  rill__order_declare(NULL, p, size, access, label);
  return RILL_OK;
}
