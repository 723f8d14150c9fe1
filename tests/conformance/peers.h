/* Shared by the tests of peers. */
#ifndef RILL_TESTS_CONFORMANCE_PEERS_H
#define RILL_TESTS_CONFORMANCE_PEERS_H

#include "support/testing.h"

static inline bool peer_is_enabled(rill_device device, rill_device memory_of) {
  bool enabled = false;
  assert_ok(rill_device_is_peer_enabled(device, memory_of, &enabled));
  return enabled;
}

/* Skips the test unless there is a second device whose memory is accessible. */
static inline void needs_peer(void) {
  needs_second_device();
  if (!rill_device_can_access_peer(dut.device, dut.second, NULL)) skip();
}

/* Copies 64 cells to the other device and back; the driver chooses the path. */
static inline void check_copies_between_devices(void) {
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  uint32_t *far = NULL;
  assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, CELLS, &far));
  for (uint32_t i = 0; i < CELLS; i++) dut.host[i] = i * 3 + 1;
  assert_ok(rill_copy_async(here, dut.memory, dut.host, CELLS * sizeof *far));
  assert_ok(rill_copy_async(here, far, dut.memory, CELLS * sizeof *far));
  assert_ok(rill_stream_wait_stream(there, here));
  const uint32_t zero = 0;
  /* this fill may overtake work of the other stream */
  assert_ok(rill_fill_async(here, dut.memory, &zero, sizeof zero, CELLS / 2));
  assert_ok(rill_stream_wait_stream(there, here));
  assert_ok(rill_copy_async(there, dut.memory + 1, far + 1, (CELLS - 2) * sizeof *far));
  assert_completes(there);
  memset(dut.host, 0, CELLS * sizeof *far);
  assert_ok(rill_copy_async(here, dut.host, dut.memory, CELLS * sizeof *far));
  assert_completes(here);
  assert_int_equal(dut.host[0], 0);
  for (uint32_t i = 1; i < CELLS; i++) assert_int_equal(dut.host[i], i * 3 + 1);
  assert_ok(rill_free(far));
}

#endif
