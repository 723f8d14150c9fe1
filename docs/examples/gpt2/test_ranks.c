/* Compares training by several ranks with one process that has the complete batch: the losses of 20 steps, and the
 * weights after them. For the comparison, each rank also trains with the complete batch alone. */
#include "../vendor_library.h"
#include "data.h"
#include "ranks.h"

#include <math.h>

enum { STEPS = 20, BATCH = 4, LENGTH = 24, TOKENS = BATCH * LENGTH };

static const gpt2_config config = {
  .layers = 3, .heads = 2, .channels = 32, .positions = LENGTH, .vocabulary = 90, .padded = 96
};

static void step(gpt2 *model, corpus *text, int *batch, int number) {
  corpus_take(text, config.vocabulary, (size_t)(model->options.batch * LENGTH), TOKENS, batch);
  gpt2_step(model, batch, number);
  CHECK(rill_stream_synchronize(model->stream));
}

int main(void) {
  gpt2_options options = {
    .batch = BATCH, .length = LENGTH, .learning_rate = 3e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .products = { .own = 1 }
  };
  rill_device device;
  gpt2 alone, shared;
  ranks all;
  corpus text, part;
  int *batch, wrong = 0;
  float *const parameters = parameters_make(&config, 1);
  float first = 0, last = 0, worst = 0;
  CHECK(rill_device_open(NULL, &device));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, TOKENS + 1, &batch));
  gpt2_open(&alone, device, &config, parameters, &options);
  ranks_open(&all, device, &shared, &options);
  gpt2_open(&shared, device, &config, parameters, &options);
  corpus_make(&text, 3000, config.vocabulary, 7);
  corpus_make(&part, 3000, config.vocabulary, 7);
  part.next = all.rank * (TOKENS / all.count);
  for (int i = 0; i < STEPS; i++) {
    step(&alone, &text, batch, i);
    step(&shared, &part, batch, i);
    last = *alone.loss;
    if (i == 0) first = last;
    worst = fmaxf(worst, fabsf(*shared.loss - last));
    wrong += !(fabsf(*shared.loss - last) < 1e-4f);
  }
  wrong += !(last < first - 0.3f);
  printf("rank %u of %u: loss %.6f, then %.6f; largest difference %.2g\n", all.rank, all.count, (double)first,
         (double)last, (double)worst);
  ranks_close(&all);
  gpt2_close(&shared);
  gpt2_close(&alone);
  CHECK(rill_free(batch));
  free(parameters);
  free(text.tokens);
  free(part.tokens);
  return wrong != 0;
}
