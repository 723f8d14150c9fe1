/* Trains GPT-2 and generates text with it. GPT2.md describes how to build and run it. */
#include "../vendor_library.h"
#include "data.h"

#include <getopt.h>
#include <math.h>
#include <time.h>

#ifdef GPT2_RANKS
#include "ranks.h"
enum { BY_GRAPH = 0 }; /* on the CPU, communication between ranks cannot be captured */
#else
enum { BY_GRAPH = 1 };
#endif

typedef struct settings {
  const char *device, *model, *tokens;
  int steps, generate, graph;
  gpt2_config config;
  gpt2_options options;
} settings;

static void usage(void) {
  (void)fprintf(stderr, "usage: gpt2 [--device NAME] [--batch N] [--length N] [--steps N] [--rate X] [--decay X]\n"
                        "            [--graph | --streams] [--own-products] [--tf32] [--generate N]\n"
                        "            [--model FILE] [--tokens FILE]\n"
                        "            [--layers N] [--heads N] [--channels N] [--vocabulary N]\n");
  exit(2);
}

/* A command line option. It takes a text, a number from `least` to `most`, a real number, or no value. */
typedef struct choice {
  const char *name, **text;
  int *number, least, most;
  float *real;
  int *flag, value;
} choice;

static void choose(const choice *c, const char *text) {
  char *end = NULL;
  if (c->text != NULL) *c->text = text;
  if (c->flag != NULL) *c->flag = c->value;
  if (c->number != NULL) {
    const long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= c->least && value <= c->most) *c->number = (int)value;
    else (void)fprintf(stderr, "--%s %s: not a number from %d to %d\n", c->name, text, c->least, c->most), exit(2);
  }
  if (c->real != NULL) {
    *c->real = strtof(text, &end);
    if (end != text && *end == '\0' && *c->real >= 0 && *c->real < HUGE_VALF) return;
    (void)fprintf(stderr, "--%s %s: not a number of at least 0\n", c->name, text);
    exit(2);
  }
}

static settings read_options(int count, char **arguments) {
  settings s = { .steps = 20, .graph = BY_GRAPH };
  gpt2_config *const c = &s.config;
  gpt2_options *const o = &s.options;
  *c = (gpt2_config){ .layers = 6, .heads = 6, .channels = 384, .vocabulary = 4096 };
  *o = (gpt2_options){ .batch = 4, .length = 64, .learning_rate = 3e-4f, .beta1 = 0.9f, .beta2 = 0.999f };
  const choice choices[] = {
    { "device", .text = &s.device },
    { "model", .text = &s.model },
    { "tokens", .text = &s.tokens },
    { "batch", .number = &o->batch, .least = 1, .most = 4096 },
    { "length", .number = &o->length, .least = 1, .most = 65536 },
    { "steps", .number = &s.steps, .least = 0, .most = 1 << 30 },
    { "generate", .number = &s.generate, .least = 0, .most = 1 << 20 },
    { "layers", .number = &c->layers, .least = 1, .most = 1000 },
    { "heads", .number = &c->heads, .least = 1, .most = 1000 },
    { "channels", .number = &c->channels, .least = 1, .most = 65536 },
    { "vocabulary", .number = &c->vocabulary, .least = 2, .most = 65536 },
    { "rate", .real = &o->learning_rate },
    { "decay", .real = &o->decay },
    { "graph", .flag = &s.graph, .value = 1 },
    { "streams", .flag = &s.graph, .value = 0 },
    { "own-products", .flag = &o->products.own, .value = 1 },
    { "tf32", .flag = &o->products.tf32, .value = 1 },
  };
  enum { CHOICES = sizeof choices / sizeof *choices };
  struct option names[CHOICES + 1] = { 0 };
  for (int i = 0; i < CHOICES; i++) names[i] = (struct option){ choices[i].name, choices[i].flag == NULL, NULL, i };
  for (int i; (i = getopt_long(count, arguments, "", names, NULL)) != -1;) {
    if (i == '?') usage();
    choose(&choices[i], optarg);
  }
  if (optind != count) usage();
  c->positions = o->length;
  c->padded = (c->vocabulary + 127) / 128 * 128;
  return s;
}

static void check_sizes(const settings *s) {
  const gpt2_config *const c = &s->config;
  const char *wrong = NULL;
  if (c->channels % c->heads != 0) wrong = "the heads do not divide the channels";
  else if (c->channels / c->heads > 512) wrong = "a head has more than 512 channels";
  else if (s->options.length > c->positions) wrong = "the length is more than the model's positions";
  else if ((int64_t)s->options.batch * s->options.length > 1 << 20) wrong = "a step of more than 2^20 tokens";
  else if ((int64_t)c->channels * s->options.length > 1 << 30) wrong = "a sequence has more than 2^30 values";
  if (wrong == NULL) return;
  (void)fprintf(stderr, "%s: %d channels, %d heads, %d positions, batch %d, length %d\n", wrong, c->channels, c->heads,
                c->positions, s->options.batch, s->options.length);
  exit(2);
}

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- batches ---- */

enum { SLOTS = 2 };

/* Uploads batches on a separate stream: each is copied while the previous step runs.
 *
 * Invariant: the host writes a slot's pinned memory only after the slot's last upload, and the slot's device memory is
 * written only after the step that read it. */
typedef struct feed {
  rill_stream stream;
  size_t count;
  struct {
    int *host, *device;
    rill_event uploaded, used;
  } slots[SLOTS];
} feed;

static void feed_open(feed *f, rill_device device, size_t count) {
  f->count = count;
  CHECK(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "feed"), &f->stream));
  for (int i = 0; i < SLOTS; i++) {
    CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, count + 1, &f->slots[i].host));
    CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, count + 1, &f->slots[i].device));
    CHECK(rill_event_create(device, NULL, &f->slots[i].uploaded));
    CHECK(rill_event_create(device, NULL, &f->slots[i].used));
    CHECK(rill_stream_record_event(f->stream, f->slots[i].uploaded, 0));
    CHECK(rill_stream_record_event(f->stream, f->slots[i].used, 0));
  }
}

static void feed_close(feed *f) {
  CHECK(rill_stream_synchronize(f->stream));
  for (int i = 0; i < SLOTS; i++) {
    CHECK(rill_free(f->slots[i].host));
    CHECK(rill_free(f->slots[i].device));
    CHECK(rill_event_release(f->slots[i].uploaded));
    CHECK(rill_event_release(f->slots[i].used));
  }
  CHECK(rill_stream_release(f->stream));
}

/* Starts the upload of the batch of a step. */
static void feed_upload(feed *f, corpus *text, int vocabulary, size_t stride, int step) {
  const int i = step % SLOTS;
  CHECK(rill_event_synchronize(f->slots[i].uploaded));
  corpus_take(text, vocabulary, f->count, stride, f->slots[i].host);
  CHECK(rill_stream_wait_event(f->stream, f->slots[i].used, 0));
  CHECK(rill_copy_async(f->stream, f->slots[i].device, f->slots[i].host, (f->count + 1) * sizeof(int)));
  CHECK(rill_stream_record_event(f->stream, f->slots[i].uploaded, 0));
}

/* ---- training and generation ---- */

static void train(gpt2 *model, const settings *s, corpus *text, size_t stride, int report) {
  const size_t rows = (size_t)model->options.batch * (size_t)model->options.length;
  double total = 0;
  feed f;
  feed_open(&f, model->device, rows);
  if (s->graph && s->steps > 0) gpt2_capture(model);
  if (s->steps > 0) feed_upload(&f, text, s->config.vocabulary, stride, 0);
  for (int step = 0; step < s->steps; step++) {
    const int i = step % SLOTS;
    const double begin = now();
    CHECK(rill_stream_wait_event(model->stream, f.slots[i].uploaded, 0));
    if (s->graph) gpt2_launch(model, f.slots[i].device, step);
    else gpt2_step(model, f.slots[i].device, step);
    CHECK(rill_stream_record_event(model->stream, f.slots[i].used, 0));
    if (step + 1 < s->steps) feed_upload(&f, text, s->config.vocabulary, stride, step + 1);
    CHECK(rill_stream_synchronize(model->stream));
    const double ms = now() - begin;
    if (step > 0) total += ms;
    if (report)
      printf("step %d: loss %.6f, %.2f ms, %.0f tokens/s\n", step, (double)*model->loss, ms, (double)stride / ms * 1e3);
  }
  if (report && s->steps > 1)
    printf("%.2f ms for a step on average, the first left out; %.0f tokens/s\n", total / (s->steps - 1),
           (double)stride * (s->steps - 1) / total * 1e3);
  feed_close(&f);
}

/* Draws a token at random, with the probabilities that the logits give. */
static int draw(const float *logits, int count, uint64_t *seed) {
  float most = logits[0];
  double sum = 0;
  for (int i = 1; i < count; i++) most = fmaxf(most, logits[i]);
  for (int i = 0; i < count; i++) sum += exp((double)(logits[i] - most));
  double left = random_unit(seed) * sum;
  for (int i = 0; i < count - 1; i++)
    if ((left -= exp((double)(logits[i] - most))) < 0) return i;
  return count - 1;
}

/* Generates `count` tokens. The first token is GPT-2's end-of-text token, the last of the vocabulary. */
static void generate(gpt2 *model, int count) {
  const int length = model->options.length;
  uint64_t seed = 1337;
  int *const tokens = calloc((size_t)count + 1, sizeof *tokens);
  float *const logits = calloc((size_t)model->config.vocabulary, sizeof *logits);
  if (tokens == NULL || logits == NULL) abort();
  tokens[0] = model->config.vocabulary - 1;
  for (int i = 1; i <= count; i++) {
    const int seen = i < length ? i : length;
    gpt2_predict(model, tokens + i - seen, seen, logits);
    tokens[i] = draw(logits, model->config.vocabulary, &seed);
    printf("%d%s", tokens[i], i < count ? " " : "\n");
  }
  free(tokens);
  free(logits);
}

int main(int argument_count, char **arguments) {
  settings s = read_options(argument_count, arguments);
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  corpus text;
  gpt2 model;
  float *const parameters = s.model != NULL ? parameters_load(s.model, &s.config) : parameters_make(&s.config, 1);
  check_sizes(&s);
  if (s.tokens != NULL) corpus_load(&text, s.tokens);
  else corpus_make(&text, 1 << 18, s.config.vocabulary, 2);
  CHECK(rill_device_open(s.device, &device));
  CHECK(rill_device_get_info(device, &info));
  const size_t tokens = (size_t)s.options.batch * (size_t)s.options.length; /* in the batch of all ranks */
  uint32_t rank = 0;
#ifdef GPT2_RANKS
  ranks all;
  ranks_open(&all, device, &model, &s.options);
  rank = all.rank;
  text.next = rank * (tokens / all.count) % text.count;
#endif
  gpt2_open(&model, device, &s.config, parameters, &s.options);
  free(parameters);
  if (rank == 0)
    printf("%s: %d layers, %d heads, %d channels, %d tokens; batch %d, length %d; %.1f million parameters, %.0f MiB; "
           "products by %s; %s\n",
           info.name, s.config.layers, s.config.heads, s.config.channels, s.config.vocabulary, s.options.batch,
           s.options.length, (double)gpt2_parameters(&s.config) * 1e-6, (double)model.memory_size / (1 << 20),
           model.products.handle != NULL ? "the vendor's library" : "rill's kernels", s.graph ? "a graph" : "streams");
  train(&model, &s, &text, tokens, rank == 0);
  if (rank == 0 && s.generate > 0) generate(&model, s.generate);
#ifdef GPT2_RANKS
  ranks_close(&all);
#endif
  gpt2_close(&model);
  free(text.tokens);
  return 0;
}
