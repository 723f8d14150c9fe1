/* A fuzz target: one parser of foreign bytes, called with arbitrary bytes.
 *
 * A target is a file tests/fuzz/NAME.c with the five functions below and its line in meson.build.  It is a test in
 * every build, with driver.c; and a program of libFuzzer where the build is configured for that (README.md).
 *
 * The target judges the parser's answers with FUZZ_REQUIRE; memory checkers find the rest.  A target behaves
 * the same for the same bytes, whatever came before.
 */
#ifndef RILL_TESTS_FUZZ_FUZZ_H
#define RILL_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUZZ_MOST_BYTES = 256 * 1024 }; /* of one input */

/* ---- defined by a target ---- */

/* Once, before all: opens devices, makes the valid inputs.  A process of the target's own making is recognized by its
 * first argument what it is for, and does not return. */
void fuzz_begin(int argc, char **argv);

/* Writes the valid input `index` and gives its size; 0 from the first index that there is none for. */
size_t fuzz_seed(unsigned index, uint8_t *out, size_t capacity);

/* Corrects check sums, lengths and similar fields after a mutation, so that the code after them is reached. Returns the
 * size. */
size_t fuzz_repair(uint8_t *data, size_t size, size_t capacity);

/* The target itself: gives 0, or aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Once, after all: gives back what fuzz_begin made.  Not called under libFuzzer. */
void fuzz_end(void);

/* ---- used by a target ---- */

#define FUZZ_REQUIRE(condition, ...)                                        \
  do {                                                                      \
    if (!(condition)) {                                                     \
      (void)fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      (void)fprintf(stderr, __VA_ARGS__);                                   \
      (void)fputc('\n', stderr);                                            \
      abort();                                                              \
    }                                                                       \
  } while (0)

/* ---- mutate.c ---- */

/* Seeded numbers: the same in every build. */
uint64_t fuzz_random(uint64_t *state);

/* Makes one or a few small changes in place; returns the new size. */
size_t fuzz_mutate(uint64_t *state, uint8_t *data, size_t size, size_t capacity);

/* Return the number of valid inputs, and one of them. */
unsigned fuzz_count_seeds(void);
size_t fuzz_pick_seed(uint64_t *state, uint8_t *out, size_t capacity);

#endif
