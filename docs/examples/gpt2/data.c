#include "data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 256, MODEL_MAGIC = 20240326, MODEL_VERSION = 3, TOKENS_MAGIC = 20240520, TOKENS_VERSION = 1 };

static void *allocate(size_t count, size_t size) {
  void *const memory = calloc(count, size);
  if (memory != NULL) return memory;
  (void)fprintf(stderr, "no memory for %zu values of %zu bytes\n", count, size);
  exit(1);
}

/* ---- random numbers: splitmix64 ---- */

uint64_t random_next(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

double random_unit(uint64_t *state) { return (double)(random_next(state) >> 11) / 9007199254740992.0; }

static double random_normal(uint64_t *state) {
  const double length = sqrt(-2 * log(1 - random_unit(state)));
  return length * cos(6.283185307179586 * random_unit(state));
}

/* ---- files ---- */

static void read_all(FILE *file, const char *path, void *to, size_t size, size_t count) {
  const size_t got = fread(to, size, count, file);
  if (got == count) return;
  (void)fprintf(stderr, "%s: %zu values of %zu bytes were expected, and %zu are there\n", path, count, size, got);
  exit(1);
}

static FILE *open_with_header(const char *path, int magic, int version, int32_t *header) {
  FILE *const file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  read_all(file, path, header, sizeof *header, HEADER);
  if (header[0] == magic && header[1] == version) return file;
  (void)fprintf(stderr, "%s: magic %d and version %d were expected, and %d and %d are there\n", path, magic, version,
                header[0], header[1]);
  exit(1);
}

static void close_at_end(FILE *file, const char *path) {
  const int more = fgetc(file) != EOF;
  (void)fclose(file);
  if (!more) return;
  (void)fprintf(stderr, "%s: longer than its header says\n", path);
  exit(1);
}

/* ---- parameters ---- */

float *parameters_load(const char *path, gpt2_config *config) {
  int32_t header[HEADER];
  FILE *const file = open_with_header(path, MODEL_MAGIC, MODEL_VERSION, header);
  int good = 1;
  for (int i = 2; i < 8; i++) good &= header[i] > 0 && header[i] <= 1 << 20;
  if (!good || header[7] < header[3] || header[6] % header[5] != 0) {
    (void)fprintf(stderr, "%s: %d positions, %d of %d tokens, %d layers, %d heads, %d channels\n", path, header[2],
                  header[3], header[7], header[4], header[5], header[6]);
    exit(1);
  }
  *config = (gpt2_config){ .positions = header[2],
                           .vocabulary = header[3],
                           .layers = header[4],
                           .heads = header[5],
                           .channels = header[6],
                           .padded = header[7] };
  float *const parameters = allocate(gpt2_parameters(config), sizeof *parameters);
  for (gpt2_tensor t = 0; t < GPT2_TENSORS; t++)
    for (int layer = 0; layer < gpt2_copies(config, t); layer++)
      read_all(file, path, parameters + gpt2_offset(config, t, layer), sizeof *parameters, gpt2_size(config, t));
  close_at_end(file, path);
  return parameters;
}

float *parameters_make(const gpt2_config *config, uint64_t seed) {
  float *const parameters = allocate(gpt2_parameters(config), sizeof *parameters);
  for (gpt2_tensor t = 0; t < GPT2_TENSORS; t++) {
    const int is_scale = t == GPT2_NORM1_WEIGHT || t == GPT2_NORM2_WEIGHT || t == GPT2_NORM_WEIGHT;
    const int is_added = t == GPT2_ATTENTION_WEIGHT || t == GPT2_CONTRACT_WEIGHT;
    const int is_zero = strstr(gpt2_name(t), "bias") != NULL;
    const double deviation = is_added ? 0.02 / sqrt(2.0 * config->layers) : 0.02;
    for (int layer = 0; layer < gpt2_copies(config, t); layer++) {
      float *const to = parameters + gpt2_offset(config, t, layer);
      for (size_t i = 0; i < gpt2_size(config, t); i++)
        to[i] = is_zero ? 0 : is_scale ? 1 : (float)(deviation * random_normal(&seed));
    }
  }
  return parameters;
}

/* ---- tokens ---- */

void corpus_load(corpus *c, const char *path) {
  int32_t header[HEADER];
  FILE *const file = open_with_header(path, TOKENS_MAGIC, TOKENS_VERSION, header);
  if (header[2] < 2) {
    (void)fprintf(stderr, "%s: %d tokens\n", path, header[2]);
    exit(1);
  }
  *c = (corpus){ .count = (size_t)header[2], .tokens = allocate((size_t)header[2], sizeof *c->tokens) };
  read_all(file, path, c->tokens, sizeof *c->tokens, c->count);
  close_at_end(file, path);
}

void corpus_make(corpus *c, size_t count, int vocabulary, uint64_t seed) {
  const uint64_t size = vocabulary < 65536 ? (uint64_t)vocabulary : 65536;
  uint64_t token = 0;
  *c = (corpus){ .count = count, .tokens = allocate(count, sizeof *c->tokens) };
  for (size_t i = 0; i < count; i++) {
    c->tokens[i] = (uint16_t)token;
    const uint64_t other = random_next(&seed);
    token = other % 8 == 0 ? (other >> 32) % size : (token * 5 + 3) % size;
  }
}

void corpus_take(corpus *c, int vocabulary, size_t count, size_t step, int *out) {
  for (size_t i = 0; i <= count; i++) {
    const size_t at = (c->next + i) % c->count;
    out[i] = c->tokens[at];
    if (out[i] < vocabulary) continue;
    (void)fprintf(stderr, "token %d at %zu is past the vocabulary of %d\n", out[i], at, vocabulary);
    exit(1);
  }
  c->next = (c->next + step) % c->count;
}
