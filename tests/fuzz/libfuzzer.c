/* A target under libFuzzer, which brings main.  Its inputs begin with the valid ones, without a corpus on disk. */
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  fuzz_begin(*argc, *argv);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  uint64_t state = seed;
  const uint64_t choice = fuzz_random(&state);
  if (size < 2 || choice % 64 == 0) {
    const size_t picked = fuzz_pick_seed(&state, data, capacity);
    if (picked > 0) size = picked;
  }
  size = choice / 64 % 2 == 0 ? LLVMFuzzerMutate(data, size, capacity) : fuzz_mutate(&state, data, size, capacity);
  return choice / 128 % 8 == 0 ? size : fuzz_repair(data, size, capacity);
}
