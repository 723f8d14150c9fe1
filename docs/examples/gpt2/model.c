/* GPT-2, as the papers describe it. The embeddings are followed by layers. Each layer adds two results to the residual
 * stream: causal self-attention, and two linear maps with a gelu between them. A layer normalization precedes each of
 * the two. After a final normalization, the token embeddings turn the result into logits. */
#include "model.h"

#include "../vendor_library.h"
#include "gpt2.rill.h"

#include <math.h>

enum { THREADS = 128, GELU_ROWS = 4 /* as in gpt2.kernel.cu */ };
enum { PART = 32, MOST_PARTS = 128 }; /* minimum rows of a partial column sum; maximum number of partial sums */

/* ---- layout of the tensors ---- */

static const struct {
  const char *name;
  int across, down; /* in multiples of `channels`; down is 0 for a vector; gpt2_size has the embeddings */
} tensors[GPT2_TENSORS] = {
  [GPT2_TOKENS] = { "token embedding", 1, 1 },
  [GPT2_POSITIONS] = { "position embedding", 1, 1 },
  [GPT2_NORM1_WEIGHT] = { "norm1 weight", 1, 0 },
  [GPT2_NORM1_BIAS] = { "norm1 bias", 1, 0 },
  [GPT2_QKV_WEIGHT] = { "qkv weight", 3, 1 },
  [GPT2_QKV_BIAS] = { "qkv bias", 3, 0 },
  [GPT2_ATTENTION_WEIGHT] = { "attention weight", 1, 1 },
  [GPT2_ATTENTION_BIAS] = { "attention bias", 1, 0 },
  [GPT2_NORM2_WEIGHT] = { "norm2 weight", 1, 0 },
  [GPT2_NORM2_BIAS] = { "norm2 bias", 1, 0 },
  [GPT2_EXPAND_WEIGHT] = { "expand weight", 4, 1 },
  [GPT2_EXPAND_BIAS] = { "expand bias", 4, 0 },
  [GPT2_CONTRACT_WEIGHT] = { "contract weight", 4, 1 },
  [GPT2_CONTRACT_BIAS] = { "contract bias", 1, 0 },
  [GPT2_NORM_WEIGHT] = { "norm weight", 1, 0 },
  [GPT2_NORM_BIAS] = { "norm bias", 1, 0 },
};

const char *gpt2_name(gpt2_tensor tensor) { return tensors[tensor].name; }

size_t gpt2_size(const gpt2_config *config, gpt2_tensor tensor) {
  const size_t channels = (size_t)config->channels;
  if (tensor == GPT2_TOKENS) return (size_t)config->padded * channels;
  if (tensor == GPT2_POSITIONS) return (size_t)config->positions * channels;
  return (size_t)tensors[tensor].across * channels * (tensors[tensor].down != 0 ? channels : 1);
}

/* Returns the number of floats in a layer's matrices (down 1) or vectors (down 0) before the tensor `end`. */
static size_t layer_size(const gpt2_config *config, int down, gpt2_tensor end) {
  size_t size = 0;
  for (gpt2_tensor t = GPT2_NORM1_WEIGHT; t < end; t++)
    if (tensors[t].down == down) size += gpt2_size(config, t);
  return size;
}

size_t gpt2_offset(const gpt2_config *config, gpt2_tensor tensor, int layer) {
  const size_t matrices = layer_size(config, 1, GPT2_NORM_WEIGHT), vectors = layer_size(config, 0, GPT2_NORM_WEIGHT);
  const size_t layers = gpt2_size(config, GPT2_TOKENS) + gpt2_size(config, GPT2_POSITIONS);
  const size_t end = layers + (size_t)config->layers * (matrices + vectors);
  if (tensor == GPT2_TOKENS) return 0;
  if (tensor == GPT2_POSITIONS) return gpt2_size(config, GPT2_TOKENS);
  if (tensor == GPT2_NORM_WEIGHT) return end;
  if (tensor == GPT2_NORM_BIAS) return end + gpt2_size(config, GPT2_NORM_WEIGHT);
  return layers + (size_t)layer * (matrices + vectors) + (tensors[tensor].down != 0 ? 0 : matrices) +
         layer_size(config, tensors[tensor].down, tensor);
}

size_t gpt2_parameters(const gpt2_config *config) {
  return gpt2_offset(config, GPT2_NORM_BIAS, 0) + gpt2_size(config, GPT2_NORM_BIAS);
}

static float *weight(gpt2 *model, gpt2_tensor tensor, int layer) {
  return model->parameters + gpt2_offset(&model->config, tensor, layer);
}
static float *gradient(gpt2 *model, gpt2_tensor tensor, int layer) {
  return model->gradients + gpt2_offset(&model->config, tensor, layer);
}

/* ---- memory ---- */

/* Takes the next `count` floats, starting at a multiple of 256 bytes. */
static float *take(float *memory, size_t *used, size_t count) {
  float *const place = memory != NULL ? memory + *used : NULL;
  *used += (count + 63) / 64 * 64;
  return place;
}

/* Places all arrays in `memory`, and returns the number of floats needed. With NULL it only counts. */
static size_t plan(gpt2 *model, float *memory) {
  const gpt2_config *const c = &model->config;
  const size_t rows = (size_t)model->options.batch * (size_t)model->options.length, count = gpt2_parameters(c);
  const size_t row = rows * (size_t)c->channels;
  const size_t scores = rows * (size_t)c->heads * (size_t)model->options.length;
  size_t used = 0;
  model->parameters = take(memory, &used, count);
  model->gradients = take(memory, &used, count);
  model->moment1 = take(memory, &used, count);
  model->moment2 = take(memory, &used, count);
  model->inputs = (int *)take(memory, &used, rows);
  model->targets = (int *)take(memory, &used, rows);
  model->links = (int *)take(memory, &used, 2 * rows);
  model->rates = take(memory, &used, 3);
  for (int i = 0; i < c->layers; i++) {
    gpt2_layer *const layer = &model->layers[i];
    float **const of_rows[] = { &layer->input, &layer->middle, &layer->normal1, &layer->normal2, &layer->attended };
    float **const of_numbers[] = { &layer->mean1, &layer->scale1, &layer->mean2, &layer->scale2 };
    for (size_t j = 0; j < sizeof of_rows / sizeof *of_rows; j++) *of_rows[j] = take(memory, &used, row);
    for (size_t j = 0; j < sizeof of_numbers / sizeof *of_numbers; j++) *of_numbers[j] = take(memory, &used, rows);
    layer->heads = take(memory, &used, 3 * row);
    layer->probabilities = take(memory, &used, scores);
    layer->expanded = take(memory, &used, 4 * row);
    layer->activated = take(memory, &used, 4 * row);
  }
  model->output = take(memory, &used, row);
  model->normal = take(memory, &used, row);
  model->mean = take(memory, &used, rows);
  model->scale = take(memory, &used, rows);
  model->logits = take(memory, &used, rows * (size_t)c->padded);
  model->losses = take(memory, &used, rows);
  model->wide = take(memory, &used, 4 * row);
  model->narrow = take(memory, &used, row);
  model->split = take(memory, &used, row);
  model->d_stream = take(memory, &used, row);
  model->d_heads = take(memory, &used, 3 * row);
  model->d_scores = take(memory, &used, scores);
  model->parts = take(memory, &used, MOST_PARTS * 4 * (size_t)c->channels);
  return used;
}

void gpt2_open(gpt2 *model, rill_device device, const gpt2_config *config, const float *parameters,
               const gpt2_options *options) {
  const float zero = 0;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  memset(model, 0, sizeof *model);
  model->config = *config;
  model->options = *options;
  model->device = device;
  model->layers = calloc((size_t)config->layers, sizeof *model->layers);
  if (model->layers == NULL) abort();
  CHECK(rill_device_get_info(device, &info));
  model->warp_size = info.warp_size;
  CHECK(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "gpt2"), &model->stream));
  CHECK(rill_pool_create(device, RILL_POOL_OPTIONS(.label = "gpt2"), &model->pool));
  model->memory_size = plan(model, NULL) * sizeof(float);
  CHECK(rill_pool_alloc_async(model->pool, model->stream, model->memory_size, (void **)&model->memory));
  (void)plan(model, model->memory);
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, 1, &model->loss));
  products_open(&model->products, device, model->stream, &options->products);

  /* Gradients must be cleared: those of positions that no sequence reaches are never written. */
  const size_t count = gpt2_parameters(config);
  CHECK(rill_copy_async(model->stream, model->parameters, parameters, count * sizeof *parameters));
  CHECK(rill_fill_async(model->stream, model->gradients, &zero, sizeof zero, count));
  CHECK(rill_fill_async(model->stream, model->moment1, &zero, sizeof zero, count));
  CHECK(rill_fill_async(model->stream, model->moment2, &zero, sizeof zero, count));
  CHECK(rill_stream_synchronize(model->stream));
}

void gpt2_close(gpt2 *model) {
  CHECK(rill_graph_exec_release(model->graph));
  CHECK(rill_stream_synchronize(model->stream));
  products_close(&model->products);
  CHECK(rill_free_async(model->stream, model->memory));
  CHECK(rill_free(model->loss));
  CHECK(rill_pool_release(model->pool));
  CHECK(rill_stream_release(model->stream));
  free(model->layers);
}

/* ---- launches ---- */

static rill_launch grid(size_t x, size_t y, size_t z, int block_x, int block_y) {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.grid = rill_dim((uint32_t)x, (uint32_t)y, (uint32_t)z);
  launch.block = rill_dim((uint32_t)block_x, (uint32_t)block_y, 1);
  return launch;
}

static size_t parts_of(size_t n, size_t part) { return (n + part - 1) / part; }

static rill_launch warp_for_each(const gpt2 *model, int rows) {
  return grid(parts_of((size_t)rows, THREADS / model->warp_size), 1, 1, THREADS, 1);
}

static void multiply(gpt2 *model, product p) { products_multiply(&model->products, &p); }

/* Computes y = x * w^T. x has `in` columns and y has `out` columns. */
static void linear(gpt2 *model, int rows, int in, int out, const float *x, const float *w, float *y) {
  multiply(model, (product){ A_BT, 1, rows, out, in, 1, x, w, y });
}

/* Computes dx = dy * w and dw = dy^T * x. */
static void linear_backward(gpt2 *model, int rows, int in, int out, const float *dy, const float *x, const float *w,
                            float *dx, float *dw) {
  multiply(model, (product){ A_B, 1, rows, in, out, 1, dy, w, dx });
  multiply(model, (product){ AT_B, 1, out, in, rows, 1, dy, x, dw });
}

/* Returns the launch shape of split_heads and merge_heads. */
static rill_launch for_heads(const gpt2 *model, int batch, int length, int parts) {
  const int heads = model->config.heads, size = model->config.channels / heads, deep = size < 256 ? 256 / size : 1;
  return grid(parts_of((size_t)length, (size_t)deep), (size_t)batch, (size_t)(parts * heads), size, deep);
}

static int rows_of_part(int rows) { return rows > PART * MOST_PARTS ? (rows + MOST_PARTS - 1) / MOST_PARTS : PART; }

static void add_up(gpt2 *model, int count, int columns, float *out) {
  const rill_launch launch = grid(parts_of((size_t)columns, THREADS), 1, 1, THREADS, 1);
  CHECK(add_parts_launch(model->stream, &launch, count, columns, model->parts, out));
}

static void bias_backward(gpt2 *model, int rows, int columns, const float *dy, float *db) {
  const int part = rows_of_part(rows), count = (rows + part - 1) / part;
  const rill_launch launch = grid(parts_of((size_t)columns, THREADS), (size_t)count, 1, THREADS, 1);
  CHECK(column_sums_launch(model->stream, &launch, rows, columns, part, dy, model->parts));
  add_up(model, count, columns, db);
}

/* Adds the gradient that flows from `dy` back through a normalization to d_stream. The gradients of the normalization's
 * weight and bias are contiguous, so one launch adds up both. */
static void normalize_backward(gpt2 *model, gpt2_tensor tensor, int layer, int rows, const float *dy, const float *x,
                               const float *mean, const float *scale) {
  const int channels = model->config.channels, part = rows_of_part(rows), count = (rows + part - 1) / part;
  const rill_launch by_warps = warp_for_each(model, rows);
  const rill_launch by_columns = grid(parts_of((size_t)channels, THREADS), (size_t)count, 1, THREADS, 1);
  CHECK(norm_column_sums_launch(model->stream, &by_columns, rows, channels, part, dy, x, mean, scale, model->parts));
  add_up(model, count, 2 * channels, gradient(model, tensor, layer));
  CHECK(norm_backward_launch(model->stream, &by_warps, rows, channels, dy, x, weight(model, tensor, layer), mean, scale,
                             model->d_stream));
}

/* ---- a step ---- */

void gpt2_begin(gpt2 *model, const int *batch, int step) {
  const gpt2_options *const o = &model->options;
  const rill_launch launch = rill_launch_1d((uint64_t)o->batch * (uint64_t)o->length, THREADS);
  CHECK(begin_step_launch(model->stream, &launch, batch, step, o->batch * o->length, o->learning_rate, o->beta1,
                          o->beta2, model->inputs, model->targets, model->rates));
}

void gpt2_forward(gpt2 *model, int batch, int length) {
  const int channels = model->config.channels, heads = model->config.heads, size = channels / heads;
  const int rows = batch * length, count = batch * heads;
  const rill_stream stream = model->stream;
  const rill_launch by_rows = grid((size_t)rows, 1, 1, THREADS, 1), by_warps = warp_for_each(model, rows);
  const rill_launch by_scores = warp_for_each(model, rows * heads);
  const rill_launch for_three = for_heads(model, batch, length, 3), for_one = for_heads(model, batch, length, 1);
  const rill_launch by_gelu = grid(parts_of((size_t)rows, GELU_ROWS), parts_of(4 * (size_t)channels, 256), 1, 256, 1);
  const size_t part = (size_t)rows * (size_t)channels;
  CHECK(embed_launch(stream, &by_rows, channels, length, model->inputs, weight(model, GPT2_TOKENS, 0),
                     weight(model, GPT2_POSITIONS, 0), model->narrow));

  /* The residual stream is x + add + bias; the next normalization computes this sum. */
  const float *x = model->narrow, *add = NULL, *bias = NULL;
  for (int i = 0; i < model->config.layers; i++) {
    gpt2_layer *const l = &model->layers[i];
    CHECK(residual_norm_launch(stream, &by_warps, rows, channels, x, add, bias, weight(model, GPT2_NORM1_WEIGHT, i),
                               weight(model, GPT2_NORM1_BIAS, i), l->input, l->normal1, l->mean1, l->scale1));
    linear(model, rows, channels, 3 * channels, l->normal1, weight(model, GPT2_QKV_WEIGHT, i), model->wide);
    CHECK(split_heads_launch(stream, &for_three, length, size, heads, 3, weight(model, GPT2_QKV_BIAS, i), model->wide,
                             l->heads));
    const float *const q = l->heads, *const k = q + part, *const v = k + part;
    multiply(model, (product){ A_BT, count, length, length, size, 1 / sqrtf((float)size), q, k, l->probabilities });
    CHECK(softmax_launch(stream, &by_scores, rows * heads, length, l->probabilities));
    multiply(model, (product){ A_B, count, length, size, length, 1, l->probabilities, v, model->split });
    CHECK(merge_heads_launch(stream, &for_one, length, size, heads, 1, model->split, l->attended));
    linear(model, rows, channels, channels, l->attended, weight(model, GPT2_ATTENTION_WEIGHT, i), model->narrow);

    CHECK(residual_norm_launch(stream, &by_warps, rows, channels, l->input, model->narrow,
                               weight(model, GPT2_ATTENTION_BIAS, i), weight(model, GPT2_NORM2_WEIGHT, i),
                               weight(model, GPT2_NORM2_BIAS, i), l->middle, l->normal2, l->mean2, l->scale2));
    linear(model, rows, channels, 4 * channels, l->normal2, weight(model, GPT2_EXPAND_WEIGHT, i), l->expanded);
    CHECK(gelu_launch(stream, &by_gelu, rows, 4 * channels, weight(model, GPT2_EXPAND_BIAS, i), l->expanded,
                      l->activated));
    linear(model, rows, 4 * channels, channels, l->activated, weight(model, GPT2_CONTRACT_WEIGHT, i), model->narrow);
    x = l->middle;
    add = model->narrow;
    bias = weight(model, GPT2_CONTRACT_BIAS, i);
  }
  CHECK(residual_norm_launch(stream, &by_warps, rows, channels, x, add, bias, weight(model, GPT2_NORM_WEIGHT, 0),
                             weight(model, GPT2_NORM_BIAS, 0), model->output, model->normal, model->mean,
                             model->scale));
}

/* Calls gradients_ready for the gradients from `first` to `end`, which have been submitted. */
static void announce(gpt2 *model, size_t first, size_t end) {
  if (model->options.gradients_ready != NULL)
    model->options.gradients_ready(model->options.user, model->gradients + first, end - first);
}

static void attention_backward(gpt2 *model, int i) {
  const gpt2_options *const o = &model->options;
  const int channels = model->config.channels, heads = model->config.heads, size = channels / heads;
  const int length = o->length, rows = o->batch * length, count = o->batch * heads;
  const size_t part = (size_t)rows * (size_t)channels;
  gpt2_layer *const l = &model->layers[i];
  const float *const q = l->heads, *const k = q + part, *const v = k + part;
  float *const dq = model->d_heads, *const dk = dq + part, *const dv = dk + part;
  const float factor = 1 / sqrtf((float)size);
  const rill_launch for_three = for_heads(model, o->batch, length, 3), for_one = for_heads(model, o->batch, length, 1);
  const rill_launch by_scores = warp_for_each(model, rows * heads);

  bias_backward(model, rows, channels, model->d_stream, gradient(model, GPT2_ATTENTION_BIAS, i));
  linear_backward(model, rows, channels, channels, model->d_stream, l->attended,
                  weight(model, GPT2_ATTENTION_WEIGHT, i), model->narrow, gradient(model, GPT2_ATTENTION_WEIGHT, i));
  CHECK(split_heads_launch(model->stream, &for_one, length, size, heads, 1, NULL, model->narrow, model->split));
  multiply(model, (product){ AT_B, count, length, size, length, 1, l->probabilities, model->split, dv });
  multiply(model, (product){ A_BT, count, length, length, size, 1, model->split, v, model->d_scores });
  CHECK(softmax_backward_launch(model->stream, &by_scores, rows * heads, length, l->probabilities, model->d_scores));
  multiply(model, (product){ A_B, count, length, size, length, factor, model->d_scores, k, dq });
  multiply(model, (product){ AT_B, count, length, size, length, factor, model->d_scores, q, dk });
  CHECK(merge_heads_launch(model->stream, &for_three, length, size, heads, 3, model->d_heads, model->wide));
  bias_backward(model, rows, 3 * channels, model->wide, gradient(model, GPT2_QKV_BIAS, i));
  linear_backward(model, rows, channels, 3 * channels, model->wide, l->normal1, weight(model, GPT2_QKV_WEIGHT, i),
                  model->narrow, gradient(model, GPT2_QKV_WEIGHT, i));
  normalize_backward(model, GPT2_NORM1_WEIGHT, i, rows, model->narrow, l->input, l->mean1, l->scale1);
}

static void feed_forward_backward(gpt2 *model, int i) {
  const int channels = model->config.channels, rows = model->options.batch * model->options.length;
  const size_t count = 4 * (size_t)rows * (size_t)channels;
  gpt2_layer *const l = &model->layers[i];
  const rill_launch by_elements = rill_launch_1d(count, 256);
  bias_backward(model, rows, channels, model->d_stream, gradient(model, GPT2_CONTRACT_BIAS, i));
  linear_backward(model, rows, 4 * channels, channels, model->d_stream, l->activated,
                  weight(model, GPT2_CONTRACT_WEIGHT, i), model->wide, gradient(model, GPT2_CONTRACT_WEIGHT, i));
  CHECK(gelu_backward_launch(model->stream, &by_elements, (int64_t)count, l->expanded, model->wide));
  bias_backward(model, rows, 4 * channels, model->wide, gradient(model, GPT2_EXPAND_BIAS, i));
  linear_backward(model, rows, channels, 4 * channels, model->wide, l->normal2, weight(model, GPT2_EXPAND_WEIGHT, i),
                  model->narrow, gradient(model, GPT2_EXPAND_WEIGHT, i));
  normalize_backward(model, GPT2_NORM2_WEIGHT, i, rows, model->narrow, l->middle, l->mean2, l->scale2);
}

void gpt2_backward(gpt2 *model) {
  const gpt2_config *const c = &model->config;
  const gpt2_options *const o = &model->options;
  const int rows = o->batch * o->length;
  const float zero = 0;
  const rill_stream stream = model->stream;
  const rill_launch by_rows = grid((size_t)rows, 1, 1, 256, 1), one = grid(1, 1, 1, 256, 1);
  linear(model, rows, c->channels, c->padded, model->normal, weight(model, GPT2_TOKENS, 0), model->logits);
  CHECK(classify_launch(stream, &by_rows, c->vocabulary, c->padded, 1.0f / (float)rows, model->targets, model->logits,
                        model->losses));
  CHECK(mean_loss_launch(stream, &one, rows, model->losses, model->loss));
  linear_backward(model, rows, c->channels, c->padded, model->logits, model->normal, weight(model, GPT2_TOKENS, 0),
                  model->narrow, gradient(model, GPT2_TOKENS, 0));
  CHECK(rill_fill_async(stream, model->d_stream, &zero, sizeof zero, (size_t)rows * (size_t)c->channels));
  normalize_backward(model, GPT2_NORM_WEIGHT, 0, rows, model->narrow, model->output, model->mean, model->scale);
  size_t end = gpt2_parameters(c), first = gpt2_offset(c, GPT2_NORM_WEIGHT, 0);
  announce(model, first, end);
  for (int i = c->layers - 1; i >= 0; i--) {
    feed_forward_backward(model, i);
    attention_backward(model, i);
    end = first;
    first = gpt2_offset(c, GPT2_QKV_WEIGHT, i);
    announce(model, first, end);
  }
  const rill_launch by_positions = rill_launch_1d((uint64_t)o->length * (uint64_t)c->channels, 256);
  const rill_launch by_links = rill_launch_1d((uint64_t)rows, 64);
  const rill_launch by_tokens = grid((size_t)rows, parts_of((size_t)c->channels, THREADS), 1, THREADS, 1);
  CHECK(link_rows_launch(stream, &by_links, rows, model->inputs, model->links));
  CHECK(embed_tokens_backward_launch(stream, &by_tokens, rows, c->channels, model->inputs, model->links,
                                     model->d_stream, gradient(model, GPT2_TOKENS, 0)));
  CHECK(embed_positions_backward_launch(stream, &by_positions, o->length * c->channels, o->batch, model->d_stream,
                                        gradient(model, GPT2_POSITIONS, 0)));
  announce(model, 0, first);
}

static void update_range(gpt2 *model, size_t first, size_t end, float decay) {
  const gpt2_options *const o = &model->options;
  const rill_launch launch = rill_launch_1d(end - first, 256);
  CHECK(adamw_launch(model->stream, &launch, (int64_t)(end - first), decay, o->beta1, o->beta2, model->rates,
                     model->gradients + first, model->parameters + first, model->moment1 + first,
                     model->moment2 + first));
}

/* Applies weight decay to matrices and embeddings, but not to biases and normalization weights. */
void gpt2_update(gpt2 *model) {
  const gpt2_config *const c = &model->config;
  if (model->options.before_update != NULL) model->options.before_update(model->options.user);
  size_t first = gpt2_offset(c, GPT2_QKV_WEIGHT, 0);
  update_range(model, 0, first, model->options.decay);
  for (int i = 0; i < c->layers; i++) {
    const size_t vectors = gpt2_offset(c, GPT2_NORM1_WEIGHT, i);
    const size_t end = vectors + layer_size(c, 0, GPT2_NORM_WEIGHT);
    update_range(model, first, vectors, model->options.decay);
    update_range(model, vectors, end, 0);
    first = end;
  }
  update_range(model, first, gpt2_parameters(c), 0);
}

void gpt2_step(gpt2 *model, const int *batch, int step) {
  gpt2_begin(model, batch, step);
  gpt2_forward(model, model->options.batch, model->options.length);
  gpt2_backward(model);
  gpt2_update(model);
}

/* ---- a step as a graph ---- */

void gpt2_capture(gpt2 *model) {
  rill_graph graph;
  CHECK(rill_stream_capture_begin(model->stream, RILL_CAPTURE_RELAXED));
  gpt2_step(model, model->inputs, 0); /* gpt2_launch replaces the batch and the step */
  CHECK(rill_stream_capture_end(model->stream, &graph));
  CHECK(rill_graph_find_node(graph, "begin_step", 0, &model->begin));
  CHECK(rill_graph_instantiate(graph, &model->graph));
  CHECK(rill_graph_release(graph));
}

void gpt2_launch(gpt2 *model, const int *batch, int step) {
  CHECK(rill_graph_exec_set_kernel_arg(model->graph, model->begin, 0, &batch, sizeof batch));
  CHECK(rill_graph_exec_set_kernel_arg(model->graph, model->begin, 1, &step, sizeof step));
  CHECK(rill_graph_launch(model->graph, model->stream));
}

/* ---- generation ---- */

void gpt2_predict(gpt2 *model, const int *tokens, int count, float *logits) {
  const gpt2_config *const c = &model->config;
  const size_t last = (size_t)(count - 1) * (size_t)c->channels;
  CHECK(rill_copy_async(model->stream, model->inputs, tokens, (size_t)count * sizeof *tokens));
  gpt2_forward(model, 1, count);
  linear(model, 1, c->channels, c->padded, model->normal + last, weight(model, GPT2_TOKENS, 0), model->logits);
  CHECK(rill_copy_async(model->stream, logits, model->logits, (size_t)c->vocabulary * sizeof *logits));
  CHECK(rill_stream_synchronize(model->stream));
}
