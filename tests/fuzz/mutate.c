#include "fuzz.h"

#include <string.h>

/* splitmix64 */
uint64_t fuzz_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t bound) { return (size_t)(fuzz_random(state) % bound); }

unsigned fuzz_count_seeds(void) {
  static uint8_t bytes[FUZZ_MOST_BYTES];
  static unsigned count;
  while (fuzz_seed(count, bytes, sizeof bytes) > 0) count++;
  return count;
}

size_t fuzz_pick_seed(uint64_t *state, uint8_t *out, size_t capacity) {
  return fuzz_seed((unsigned)below(state, fuzz_count_seeds()), out, capacity);
}

/* Writes a number of 1, 2, 4 or 8 bytes that is difficult for parsers, at any place. */
static void put_number(uint64_t *state, uint8_t *data, size_t size) {
  static const uint64_t numbers[] = { 0,
                                      1,
                                      2,
                                      8,
                                      127,
                                      128,
                                      255,
                                      256,
                                      4095,
                                      4096,
                                      4097,
                                      65535,
                                      65536,
                                      INT32_MAX,
                                      UINT64_C(1) << 31,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 4095,
                                      UINT64_MAX };
  const size_t width = (size_t)1 << below(state, 4);
  if (width > size) return;
  uint64_t value = numbers[below(state, sizeof numbers / sizeof *numbers)];
  if (below(state, 4) == 0) value = (uint64_t)size + value;
  size_t at = below(state, size - width + 1);
  if (below(state, 4) != 0) at = at / width * width;
  for (size_t i = 0; i < width; i++) data[at + i] = (uint8_t)(value >> 8 * i);
}

/* Adds a small number to a number of 1, 2, 4 or 8 bytes, or subtracts it. */
static void nudge(uint64_t *state, uint8_t *data, size_t size) {
  const size_t width = (size_t)1 << below(state, 4);
  if (width > size) return;
  const size_t at = below(state, size / width) * width;
  uint64_t value = 0;
  for (size_t i = 0; i < width; i++) value |= (uint64_t)data[at + i] << 8 * i;
  value += (uint64_t)below(state, 33) - 16;
  for (size_t i = 0; i < width; i++) data[at + i] = (uint8_t)(value >> 8 * i);
}

/* Copies a part of another valid input, at the same offset. */
static void splice(uint64_t *state, uint8_t *data, size_t size) {
  static uint8_t other[FUZZ_MOST_BYTES];
  const size_t other_size = fuzz_pick_seed(state, other, sizeof other);
  const size_t common = size < other_size ? size : other_size;
  if (common == 0) return;
  const size_t at = below(state, common), length = 1 + below(state, common - at);
  memcpy(data + at, other + at, length);
}

/* Moves or repeats a part within the input. */
static void copy_inside(uint64_t *state, uint8_t *data, size_t size) {
  const size_t from = below(state, size), to = below(state, size);
  const size_t room = size - (from > to ? from : to);
  memmove(data + to, data + from, 1 + below(state, room < 64 ? room : 64));
}

static size_t resize(uint64_t *state, uint8_t *data, size_t size, size_t capacity) {
  if (below(state, 2) == 0) return below(state, size + 1);
  const size_t room = capacity - size;
  const size_t more = room == 0 ? 0 : 1 + below(state, room < 64 ? room : 64);
  for (size_t i = 0; i < more; i++) data[size + i] = (uint8_t)fuzz_random(state);
  return size + more;
}

size_t fuzz_mutate(uint64_t *state, uint8_t *data, size_t size, size_t capacity) {
  for (size_t changes = 1 + below(state, 4); changes > 0; changes--) {
    const size_t what = size == 0 ? 15 : below(state, 16);
    if (what < 4) {
      data[below(state, size)] ^= (uint8_t)(1u << below(state, 8));
    } else if (what < 6) {
      data[below(state, size)] = (uint8_t)fuzz_random(state);
    } else if (what < 9) {
      put_number(state, data, size);
    } else if (what < 11) {
      nudge(state, data, size);
    } else if (what < 13) {
      splice(state, data, size);
    } else if (what < 15) {
      copy_inside(state, data, size);
    } else {
      size = resize(state, data, size, capacity);
    }
  }
  return size;
}
