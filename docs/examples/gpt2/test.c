/* Compares the model on a device with reference.c: the losses and parameters of 20 steps, on streams and as a graph,
 * and the gradient of each tensor. Compares the gradients of the reference with finite differences of its loss.
 *
 * RILL_TEST_DEVICE selects the device; if it is not set, RILL_DEVICE does. With the argument "library" the vendor's
 * library computes the matrix products, otherwise rill's kernels do. */
#include "../vendor_library.h"
#include "data.h"
#include "reference.h"

#include <math.h>

enum { STEPS = 20 };

static int failures;

static void expect(int holds, const char *what, const char *which, double value, double bound) {
  if (holds) return;
  (void)fprintf(stderr, "%s, %s: %g, bound %g\n", what, which, value, bound);
  failures++;
}

typedef struct setting {
  const char *name;
  gpt2_config config;
  int batch, length;
} setting;

/* Some sizes are not multiples of a block, a warp or a tile, and some sequences are shorter than the maximum. */
static const setting settings[] = {
  { "small", { .layers = 2, .heads = 2, .channels = 48, .positions = 24, .vocabulary = 61, .padded = 64 }, 3, 17 },
  { "wide", { .layers = 1, .heads = 3, .channels = 96, .positions = 70, .vocabulary = 300, .padded = 320 }, 1, 70 },
  { "deep", { .layers = 4, .heads = 1, .channels = 16, .positions = 8, .vocabulary = 20, .padded = 20 }, 5, 8 },
};

static gpt2_options options = {
  .learning_rate = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .decay = 0.1f, .products = { .own = 1 }
};

/* Makes parameters that all affect the result: no bias is 0, and no scale is 1. */
static float *make_parameters(const gpt2_config *config, uint64_t seed) {
  float *const parameters = parameters_make(config, seed);
  for (size_t i = 0; i < gpt2_parameters(config); i++) parameters[i] += (float)(0.2 * random_unit(&seed) - 0.1);
  return parameters;
}

static double *as_double(const float *x, size_t count) {
  double *const y = calloc(count, sizeof *y);
  if (y == NULL) abort();
  for (size_t i = 0; i < count; i++) y[i] = (double)x[i];
  return y;
}

/* Tests some derivatives of each tensor: the finite difference (loss(x + h) - loss(x - h)) / 2h has an error of about
 * h^2. */
static void test_finite_differences(const setting *s) {
  const gpt2_config *const c = &s->config;
  const size_t count = gpt2_parameters(c);
  float *const start = make_parameters(c, 5);
  double *const parameters = as_double(start, count), *const gradients = as_double(start, count);
  int *const tokens = calloc((size_t)(s->batch * s->length) + 1, sizeof *tokens);
  uint64_t seed = 9;
  corpus text;
  corpus_make(&text, 1000, c->vocabulary, 3);
  corpus_take(&text, c->vocabulary, (size_t)(s->batch * s->length), 0, tokens);
  (void)reference_loss(c, s->batch, s->length, tokens, parameters, gradients);
  for (gpt2_tensor t = 0; t < GPT2_TENSORS; t++)
    for (int layer = 0; layer < gpt2_copies(c, t); layer++)
      for (int k = 0; k < 4; k++) {
        const size_t i = gpt2_offset(c, t, layer) + random_next(&seed) % gpt2_size(c, t);
        const double h = 1e-4, old = parameters[i];
        parameters[i] = old + h;
        const double above = reference_loss(c, s->batch, s->length, tokens, parameters, NULL);
        parameters[i] = old - h;
        const double below = reference_loss(c, s->batch, s->length, tokens, parameters, NULL);
        parameters[i] = old;
        const double error = fabs((above - below) / (2 * h) - gradients[i]);
        expect(error < 1e-7 + 1e-5 * fabs(gradients[i]), "finite difference", gpt2_name(t), error, 1e-7);
      }
  free(start);
  free(parameters);
  free(gradients);
  free(tokens);
  free(text.tokens);
}

/* Compares each tensor; the error is the largest difference divided by the tensor's largest absolute value. */
static void compare(const setting *s, const char *what, const float *got, const double *expected, double bound) {
  for (gpt2_tensor t = 0; t < GPT2_TENSORS; t++)
    for (int layer = 0; layer < gpt2_copies(&s->config, t); layer++) {
      const size_t first = gpt2_offset(&s->config, t, layer);
      double worst = 0, most = 0;
      for (size_t i = first; i < first + gpt2_size(&s->config, t); i++) {
        /* A NaN counts as infinite. */
        const double difference = fabs((double)got[i] - expected[i]);
        worst = difference <= worst ? worst : difference < HUGE_VAL ? difference : HUGE_VAL;
        most = fmax(most, fabs(expected[i]));
      }
      if (getenv("GPT2_VERBOSE") != NULL)
        printf("%s, %s %s %d: %.2g of %.2g\n", s->name, what, gpt2_name(t), layer, worst, most);
      expect(worst <= bound * most && most > 0, what, gpt2_name(t), worst / most, bound);
    }
}

typedef struct run {
  gpt2 model;
  corpus text;
  int *batch; /* pinned: the device reads it */
  float *gradients, *parameters;
} run;

static void start(run *r, rill_device device, const setting *s, const float *parameters) {
  gpt2_options o = options;
  const size_t count = gpt2_parameters(&s->config);
  o.batch = s->batch;
  o.length = s->length;
  gpt2_open(&r->model, device, &s->config, parameters, &o);
  expect((r->model.products.handle == NULL) == options.products.own, "products", "of the kind that was asked for", 0,
         0);
  corpus_make(&r->text, 1000, s->config.vocabulary, 3);
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, (size_t)(s->batch * s->length) + 1, &r->batch));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, count, &r->gradients));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, count, &r->parameters));
}

static void finish(run *r) {
  gpt2_close(&r->model);
  CHECK(rill_free(r->batch));
  CHECK(rill_free(r->gradients));
  CHECK(rill_free(r->parameters));
  free(r->text.tokens);
}

static void step(run *r, const setting *s, int number, int by_graph) {
  const size_t rows = (size_t)(s->batch * s->length), bytes = gpt2_parameters(&s->config) * sizeof(float);
  corpus_take(&r->text, s->config.vocabulary, rows, rows, r->batch);
  if (by_graph) gpt2_launch(&r->model, r->batch, number);
  else gpt2_step(&r->model, r->batch, number);
  CHECK(rill_copy_async(r->model.stream, r->gradients, r->model.gradients, bytes));
  CHECK(rill_copy_async(r->model.stream, r->parameters, r->model.parameters, bytes));
  CHECK(rill_stream_synchronize(r->model.stream));
}

static void test_training(rill_device device, const setting *s) {
  const size_t count = gpt2_parameters(&s->config);
  float *const first = make_parameters(&s->config, 5);
  double *const parameters = as_double(first, count), *const gradients = as_double(first, count);
  double *const moments = calloc(2 * count, sizeof *moments);
  gpt2_options o = options;
  run by_streams, by_graph;
  double loss = 0, before = 0;
  start(&by_streams, device, s, first);
  start(&by_graph, device, s, first);
  gpt2_capture(&by_graph.model);
  for (int i = 0; i < STEPS; i++) {
    step(&by_streams, s, i, 0);
    step(&by_graph, s, i, 1);
    loss = reference_loss(&s->config, s->batch, s->length, by_streams.batch, parameters, gradients);
    if (i == 0) {
      before = loss;
      compare(s, "gradient", by_streams.gradients, gradients, 2e-5);
    }
    reference_update(&s->config, &o, i, gradients, parameters, moments);
    const double error = fabs((double)*by_streams.model.loss - loss);
    if (getenv("GPT2_VERBOSE") != NULL) printf("%s, step %d: loss %.6f, error %.2g\n", s->name, i, loss, error);
    expect(error < 1e-4, "loss", s->name, error, 1e-4);
    /* The graph runs the same kernels in the same order, so the results must be bit-identical. */
    expect(*by_streams.model.loss == *by_graph.model.loss, "loss by a graph", s->name, (double)*by_graph.model.loss,
           loss);
  }
  expect(loss < before - 0.5, "loss after the steps", s->name, loss, before - 0.5);
  compare(s, "parameters", by_streams.parameters, parameters, 1e-2);
  expect(memcmp(by_streams.gradients, by_graph.gradients, count * sizeof *first) == 0, "gradients by a graph", s->name,
         0, 0);
  expect(memcmp(by_streams.parameters, by_graph.parameters, count * sizeof *first) == 0, "parameters by a graph",
         s->name, 0, 0);
  finish(&by_streams);
  finish(&by_graph);
  free(first);
  free(parameters);
  free(gradients);
  free(moments);
}

/* Tests that a prediction does not depend on the tokens that follow. */
static void test_prediction(rill_device device, const setting *s) {
  float *const parameters = make_parameters(&s->config, 5);
  double *const as_doubles = as_double(parameters, gpt2_parameters(&s->config));
  float *const logits = calloc((size_t)s->config.vocabulary, sizeof *logits);
  run r;
  start(&r, device, s, parameters);
  corpus_take(&r.text, s->config.vocabulary, (size_t)s->length, 0, r.batch);
  for (int count = 1; count <= s->length; count++) {
    double sum = 0;
    gpt2_predict(&r.model, r.batch, count, logits);
    for (int i = 0; i < s->config.vocabulary; i++) sum += exp((double)logits[i]);
    /* The loss of the last token alone is the difference of the total losses of `count` and `count - 1` tokens. */
    const double loss = log(sum) - (double)logits[r.batch[count]];
    const double all = count * reference_loss(&s->config, 1, count, r.batch, as_doubles, NULL);
    const double others =
        count == 1 ? 0 : (count - 1) * reference_loss(&s->config, 1, count - 1, r.batch, as_doubles, NULL);
    expect(fabs(loss - (all - others)) < 1e-4, "prediction", s->name, fabs(loss - (all - others)), 1e-4);
  }
  finish(&r);
  free(parameters);
  free(as_doubles);
  free(logits);
}

int main(int argument_count, char **arguments) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  options.products.own = argument_count < 2 || strcmp(arguments[1], "library") != 0;
  CHECK(rill_device_open(getenv("RILL_TEST_DEVICE"), &device));
  CHECK(rill_device_get_info(device, &info));
  test_finite_differences(&settings[0]);
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    test_training(device, &settings[i]);
    test_prediction(device, &settings[i]);
  }
  printf("gpt2 on %s: %d failures\n", info.name, failures);
  return failures != 0;
}
