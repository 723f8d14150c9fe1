/* data.h: weights and tokens, from files in the formats of llm.c or from a generator with a seed. */
#ifndef GPT2_DATA_H
#define GPT2_DATA_H

#include "model.h"

#include <stdint.h>

/* Pseudorandom numbers from a seed: the next 64-bit number, and a number in [0, 1). */
uint64_t random_next(uint64_t *state);
double random_unit(uint64_t *state);

/* Return parameters in the layout of model.h; the caller frees them. parameters_load reads a file (magic 20240326,
 * version 3, floats), which also sets the configuration. parameters_make initializes them as in GPT-2: normally
 * distributed with standard deviation 0.02; matrices whose results are added to the residual stream have a smaller
 * deviation, which depends on the number of layers. */
float *parameters_load(const char *path, gpt2_config *config);
float *parameters_make(const gpt2_config *config, uint64_t seed);

/* A text as tokens. Batches are taken one after another; after the end, they continue from the start. */
typedef struct corpus {
  uint16_t *tokens;
  size_t count, next;
} corpus;

/* Create a corpus. corpus_load reads a file (magic 20240520, version 1, 16-bit tokens). corpus_make generates
 * tokens: each is determined by the previous token, except for one in eight, so that there is something to learn. */
void corpus_load(corpus *c, const char *path);
void corpus_make(corpus *c, size_t count, int vocabulary, uint64_t seed);
/* Writes count + 1 tokens and advances by `step`. A token outside the vocabulary is an error. */
void corpus_take(corpus *c, int vocabulary, size_t count, size_t step, int *out);

#endif
