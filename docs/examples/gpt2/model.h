/* model.h: GPT-2 on a device: its memory, and its training step as work of a stream or as a graph.
 *
 *     gpt2_open(&model, device, &config, parameters, &options);
 *     gpt2_step(&model, batch, step);            // one training step, launch by launch
 *     gpt2_capture(&model);                      // captures the step as a graph
 *     gpt2_launch(&model, batch, step);          // launches the graph with two changed arguments
 *     rill_stream_synchronize(model.stream);     // now *model.loss is the loss
 *     gpt2_close(&model);
 */
#ifndef GPT2_MODEL_H
#define GPT2_MODEL_H

#include "products.h"

#include <rill/rill.h>

typedef struct gpt2_config {
  int layers, heads, channels;
  int positions;          /* maximum number of tokens of a sequence */
  int vocabulary, padded; /* number of tokens; number of rows of the token embedding */
} gpt2_config;

/* The tensors of a model, in the order of a checkpoint. The tensors between GPT2_POSITIONS and GPT2_NORM_WEIGHT exist
 * once per layer. */
typedef enum gpt2_tensor {
  GPT2_TOKENS,
  GPT2_POSITIONS,
  GPT2_NORM1_WEIGHT,
  GPT2_NORM1_BIAS,
  GPT2_QKV_WEIGHT,
  GPT2_QKV_BIAS,
  GPT2_ATTENTION_WEIGHT,
  GPT2_ATTENTION_BIAS,
  GPT2_NORM2_WEIGHT,
  GPT2_NORM2_BIAS,
  GPT2_EXPAND_WEIGHT,
  GPT2_EXPAND_BIAS,
  GPT2_CONTRACT_WEIGHT,
  GPT2_CONTRACT_BIAS,
  GPT2_NORM_WEIGHT,
  GPT2_NORM_BIAS,
  GPT2_TENSORS
} gpt2_tensor;

/* gpt2_parameters returns the number of floats in each of the arrays of parameters, gradients and moments. gpt2_offset
 * and gpt2_size return the place and the size of a tensor in such an array; `layer` matters only for tensors of a
 * layer. The two embeddings come first, then the layers, each with its matrices first, and then the last normalization.
 * Therefore the gradients of a bucket are contiguous, as are the weights of a layer that decay. */
size_t gpt2_parameters(const gpt2_config *config);
size_t gpt2_offset(const gpt2_config *config, gpt2_tensor tensor, int layer);
size_t gpt2_size(const gpt2_config *config, gpt2_tensor tensor);
const char *gpt2_name(gpt2_tensor tensor);
static inline int gpt2_copies(const gpt2_config *config, gpt2_tensor tensor) {
  return tensor > GPT2_POSITIONS && tensor < GPT2_NORM_WEIGHT ? config->layers : 1;
}

typedef struct gpt2_options {
  int batch, length; /* sequences per step, and tokens per sequence */
  float learning_rate, beta1, beta2, decay;
  product_options products;
  /* gradients_ready is called when `count` gradients starting at `first` have been submitted to the model's stream;
   * before_update is called before the update. Both may be NULL. */
  void (*gradients_ready)(void *user, float *first, size_t count);
  void (*before_update)(void *user);
  void *user;
} gpt2_options;

/* The values of a layer that the forward pass stores for the backward pass. */
typedef struct gpt2_layer {
  float *input, *middle;           /* the residual stream before attention, and before the feed-forward part */
  float *normal1, *mean1, *scale1; /* the first normalization: its output, means and scales */
  float *normal2, *mean2, *scale2;
  float *heads;         /* queries, keys, values of each head */
  float *probabilities; /* length x length for each head */
  float *attended;      /* the results of the heads, merged into rows */
  float *expanded, *activated;
} gpt2_layer;

typedef struct gpt2 {
  gpt2_config config;
  gpt2_options options;
  rill_device device;
  rill_stream stream;
  rill_pool pool;
  uint32_t warp_size;
  products products;
  float *memory; /* one block of the pool, which holds the arrays below */
  size_t memory_size;
  float *parameters, *gradients, *moment1, *moment2;
  int *inputs, *targets, *links; /* tokens; rows with the same token (link_rows) */
  float *rates;
  gpt2_layer *layers; /* an array in host memory */
  float *output, *normal, *mean, *scale, *logits, *losses;
  float *wide, *narrow, *split; /* scratch for both passes: rows of 4 * channels, rows of channels, channels by head */
  float *d_stream, *d_heads, *d_scores,
      *parts;  /* gradients of the residual stream, heads and scores; partial column sums */
  float *loss; /* pinned: the mean loss of the last step */
  rill_graph_exec graph;
  rill_graph_node begin; /* the node whose arguments differ from step to step */
} gpt2;

/* Creates a model. `parameters` is in host memory, and is copied. */
void gpt2_open(gpt2 *model, rill_device device, const gpt2_config *config, const float *parameters,
               const gpt2_options *options);
void gpt2_close(gpt2 *model);

/* Submit the parts of a step, in this order, to model->stream; gpt2_step submits all of them. `batch` is an array of
 * batch * length + 1 tokens that the device can read; it must stay unchanged until the stream has executed the step.
 * `step` counts from 0. */
void gpt2_begin(gpt2 *model, const int *batch, int step);
void gpt2_forward(gpt2 *model, int batch, int length);
void gpt2_backward(gpt2 *model);
void gpt2_update(gpt2 *model);
void gpt2_step(gpt2 *model, const int *batch, int step);

void gpt2_capture(gpt2 *model);
void gpt2_launch(gpt2 *model, const int *batch, int step);

/* Computes the logits of the token that follows `count` tokens: model->config.vocabulary numbers in host memory. */
void gpt2_predict(gpt2 *model, const int *tokens, int count, float *logits);

#endif
