/* Shared by the tests of handles for other processes. */
#ifndef RILL_TESTS_CONFORMANCE_IPC_H
#define RILL_TESTS_CONFORMANCE_IPC_H

#include "support/peer.h"

#include <dirent.h>
#include <stdio.h>

static inline bool shares_events(void) { return rill_device_supports(dut.device, RILL_FEATURE_EVENT_IPC, NULL); }
static inline bool shares_memory(void) { return rill_device_supports(dut.device, RILL_FEATURE_IPC, NULL); }

/* Calls `refuse` with the handle damaged in each byte in several ways, and with the handle truncated to each length
 * (the rest is zero). */
static inline void with_each_damage(const rill_ipc_handle *handle, void (*refuse)(const rill_ipc_handle *damaged)) {
  static const uint8_t flips[] = { 0x01, 0x80, 0xff };
  rill_ipc_handle damaged;
  for (size_t i = 0; i < sizeof *handle; i++) {
    for (size_t j = 0; j < sizeof flips; j++) {
      damaged = *handle;
      damaged.bytes[i] ^= flips[j];
      refuse(&damaged);
    }
  }
  for (size_t cut = 0; cut < sizeof *handle; cut++) {
    memset(&damaged, 0, sizeof damaged);
    memcpy(&damaged, handle, cut);
    if (memcmp(&damaged, handle, sizeof damaged) != 0) refuse(&damaged);
  }
}

/* The resources of the process (I10). */
struct holdings {
  unsigned files, mappings;
};

static inline struct holdings holdings(void) {
  struct holdings now = { 0, 0 };
  DIR *directory = opendir("/proc/self/fd");
  FILE *maps = fopen("/proc/self/maps", "re");
  assert_true(directory != NULL && maps != NULL);
  while (readdir(directory) != NULL) now.files++;
  for (int c = getc(maps); c != EOF; c = getc(maps)) now.mappings += c == '\n';
  (void)closedir(directory);
  (void)fclose(maps);
  return now;
}

/* Checks the resources after `rounds` repetitions of an operation; allocators and drivers may have kept a little
 * memory. */
static inline void assert_holds_no_more_than(struct holdings before, unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) { /* later calls destroy released objects */
    rill_event event;
    assert_ok(rill_event_create(dut.device, NULL, &event));
    assert_ok(rill_event_release(event));
  }
  const struct holdings now = holdings();
  assert_true(rounds > 20);
  assert_true(now.files < before.files + rounds / 10);
  assert_true(now.mappings < before.mappings + rounds / 2);
}

#endif
