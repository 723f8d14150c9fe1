/* data.h: weights and tokens, from files in the formats of llm.c or from a generator with a seed. */
#ifndef GPT2_DATA_H
#define GPT2_DATA_H

#include "model.h"

#include <stdint.h>

/* Numbers that a seed determines: the next of 64 bits, and one from 0 to 1 (not included). */
uint64_t random_next(uint64_t *state);
double random_unit(uint64_t *state);

/* Parameters, laid out as model.h says; freed by the caller.  From a file (magic 20240326, version 3, floats), which
 * also states the configuration; or as GPT-2 was started: normal with deviation 0.02, what is added to the residual
 * stream with less, by the number of layers. */
float *parameters_load(const char *path, gpt2_config *config);
float *parameters_make(const gpt2_config *config, uint64_t seed);

/* A text as tokens, of which batches are taken one after another, from the start again at its end. */
typedef struct corpus {
  uint16_t *tokens;
  size_t count, next;
} corpus;

/* From a file (magic 20240520, version 1, tokens of 16 bits); or made: each token follows from the one before, but for
 * one in eight that does not, so that there is something to learn. */
void corpus_load(corpus *c, const char *path);
void corpus_make(corpus *c, size_t count, int vocabulary, uint64_t seed);
/* Writes count + 1 tokens, and goes on by `step`.  Those past the vocabulary are an error. */
void corpus_take(corpus *c, int vocabulary, size_t count, size_t step, int *out);

#endif
