/* core/device/ipc: forged handles with a valid checksum. */
#include "core/device/ipc.h"
#include "support/testing.h"

static struct rill__ipc_bytes good(uint8_t kind) {
  struct rill__device *device = rill__find(dut.device.id, RILL__DEVICE);
  rill_ipc_handle handle;
  struct rill__ipc_bytes content = { .kind = kind };
  if (kind == RILL__IPC_MEMORY) content.size = 4096;
  rill__ipc_write(&content, device, &handle);
  memcpy(&content, &handle, sizeof content);
  content.exporter ^= UINT64_C(1) << 40; /* pretend that another process exported it */
  return content;
}

static rill_status import_memory(struct rill__ipc_bytes content) {
  rill_ipc_handle handle;
  void *p = &handle;
  content.check = rill__ipc_check(&content);
  memcpy(&handle, &content, sizeof handle);
  const rill_status status = rill_memory_ipc_import(dut.device, &handle, &p);
  assert_null(p); /* a failed import returns nothing */
  return status;
}

#define FORGED(field, value, status, text)                                     \
  do {                                                                         \
    struct rill__ipc_bytes forged_ = good(RILL__IPC_MEMORY);                   \
    forged_.field = (value);                                                   \
    assert_fails_in("rill_memory_ipc_import", import_memory(forged_), status); \
    assert_says(text);                                                         \
  } while (0)

static void checks_every_field(void) {
  FORGED(version, 2, RILL_ERROR_UNSUPPORTED, "version 2");
  FORGED(kind, RILL__IPC_EVENT, RILL_ERROR_INVALID_ARGUMENT, "an event");
  FORGED(kind, 77, RILL_ERROR_INVALID_ARGUMENT, "unknown");
  FORGED(backend, 9, RILL_ERROR_WRONG_BACKEND, "backend 9");
  FORGED(native_size, 63, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED(lead, 1, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED(device[3], good(RILL__IPC_MEMORY).device[3] ^ 0x5a, RILL_ERROR_WRONG_DEVICE, "UUID");
  FORGED(device[15], good(RILL__IPC_MEMORY).device[15] ^ 1, RILL_ERROR_WRONG_DEVICE, "UUID");
  FORGED(exporter, good(RILL__IPC_MEMORY).exporter ^ UINT64_C(1) << 40, RILL_ERROR_INVALID_ARGUMENT, "this process");
  FORGED(size, 0, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED(size, UINT64_MAX, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED(offset, 4096, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED(offset, UINT64_MAX, RILL_ERROR_INVALID_ARGUMENT, "forged");
}

static rill_status import_event(struct rill__ipc_bytes content) {
  rill_ipc_handle handle;
  rill_event event = { 1 };
  content.check = rill__ipc_check(&content);
  memcpy(&handle, &content, sizeof handle);
  const rill_status status = rill_event_ipc_import(dut.device, &handle, &event);
  assert_int_equal(event.id, 0);
  return status;
}

#define FORGED_EVENT(field, value, status, text)                             \
  do {                                                                       \
    struct rill__ipc_bytes forged_ = good(RILL__IPC_EVENT);                  \
    forged_.field = (value);                                                 \
    assert_fails_in("rill_event_ipc_import", import_event(forged_), status); \
    assert_says(text);                                                       \
  } while (0)

/* A device that cannot share events refuses before it reads the handle. */
static void checks_every_field_of_events(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_EVENT_IPC, NULL)) {
    FORGED_EVENT(size, 0, RILL_ERROR_UNSUPPORTED, "events of ");
    return;
  }
  FORGED_EVENT(version, 0, RILL_ERROR_UNSUPPORTED, "version 0");
  FORGED_EVENT(kind, RILL__IPC_MEMORY, RILL_ERROR_INVALID_ARGUMENT, "memory");
  FORGED_EVENT(size, 1, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED_EVENT(offset, 1, RILL_ERROR_INVALID_ARGUMENT, "forged");
  FORGED_EVENT(backend, 9, RILL_ERROR_WRONG_BACKEND, "backend 9");
  FORGED_EVENT(device[0], good(RILL__IPC_EVENT).device[0] ^ 0x5a, RILL_ERROR_WRONG_DEVICE, "UUID");
  FORGED_EVENT(exporter, good(RILL__IPC_EVENT).exporter ^ UINT64_C(1) << 40, RILL_ERROR_INVALID_ARGUMENT,
               "this process");
  assert_int_not_equal(import_event(good(RILL__IPC_EVENT)), RILL_OK); /* it refers to no event */
}

/* The claimed size exceeds the device's memory. */
static void checks_the_size(void) {
  FORGED(size, dut.info.memory_total + 1, RILL_ERROR_INVALID_ARGUMENT, "forged");
  assert_says(dut.name);
}

/* Forges the native bytes in many ways, as someone who knows their layout could. */
static void native_bytes_may_be_anything(void) {
  uint64_t state = 88172645463325252u;
  for (unsigned i = 0; i < scaled(20000); i++) {
    struct rill__ipc_bytes content = good(RILL__IPC_MEMORY);
    for (size_t j = 0; j < sizeof content.native; j++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      /* half of the handles have mostly zeros and small numbers */
      content.native.bytes[j] = i % 2 == 0 || j < 8 || j == 8 ? (unsigned char)state : 0;
      if (i % 2 == 1 && j % 4 != 0) content.native.bytes[j] = 0;
    }
    assert_int_not_equal(import_memory(content), RILL_OK);
    assert_says("rill_memory_ipc_import");
  }
}

/* Reads random bytes, and valid handles with several damaged bytes. */
static void bytes_may_be_anything(void) {
  uint64_t state = 1234567891234567u;
  for (unsigned i = 0; i < scaled(20000); i++) {
    const struct rill__ipc_bytes content = good(i % 2 == 0 ? RILL__IPC_MEMORY : RILL__IPC_EVENT);
    rill_ipc_handle handle;
    void *p;
    memcpy(&handle, &content, sizeof handle);
    for (size_t j = 0; j < sizeof handle; j++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      if (i % 4 < 2 || state % 16 == 0) handle.bytes[j] = (uint8_t)(state >> 32);
    }
    assert_int_not_equal(rill_memory_ipc_import(dut.device, &handle, &p), RILL_OK);
    assert_null(p);
  }
}

/* A change of any single byte is detected. */
static void the_check_sees_every_byte(void) {
  const struct rill__ipc_bytes content = good(RILL__IPC_MEMORY);
  const uint64_t check = rill__ipc_check(&content);
  for (size_t i = 0; i < offsetof(struct rill__ipc_bytes, check); i++) {
    for (unsigned flip = 1; flip < 256; flip++) {
      struct rill__ipc_bytes damaged = content;
      ((unsigned char *)&damaged)[i] ^= (unsigned char)flip;
      assert_int_not_equal(rill__ipc_check(&damaged), check);
    }
  }
}

TESTS_ON_EACH_DEVICE("core/device/ipc", TEST(checks_every_field), TEST(checks_every_field_of_events),
                     TEST(checks_the_size), TEST(native_bytes_may_be_anything), TEST(bytes_may_be_anything),
                     TEST(the_check_sees_every_byte))
