#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values of a layer for all rows, in one block of memory. */
typedef struct layer_values {
  double *input, *normal1, *qkv, *probabilities, *attended, *middle, *normal2, *expanded, *activated, *output;
} layer_values;

typedef struct pass {
  const gpt2_config *config;
  int batch, length, rows, channels, heads, size;
  const double *parameters;
  double *gradients;
} pass;

static double *new_values(size_t count) {
  double *const values = calloc(count, sizeof *values);
  if (values == NULL) abort();
  return values;
}

static const double *weight(const pass *p, gpt2_tensor tensor, int layer) {
  return p->parameters + gpt2_offset(p->config, tensor, layer);
}
static double *gradient(const pass *p, gpt2_tensor tensor, int layer) {
  return p->gradients + gpt2_offset(p->config, tensor, layer);
}

/* ---- forward and backward of each operation; backward adds to gradients ---- */

static void linear(int rows, int in, int out, const double *x, const double *w, const double *bias, double *y) {
  for (int r = 0; r < rows; r++)
    for (int o = 0; o < out; o++) {
      double sum = bias != NULL ? bias[o] : 0;
      for (int i = 0; i < in; i++) sum += x[r * in + i] * w[o * in + i];
      y[r * out + o] = sum;
    }
}

static void linear_back(int rows, int in, int out, const double *x, const double *w, const double *dy, double *dx,
                        double *dw, double *dbias) {
  for (int r = 0; r < rows; r++)
    for (int o = 0; o < out; o++) {
      const double d = dy[r * out + o];
      if (dbias != NULL) dbias[o] += d;
      for (int i = 0; i < in; i++) {
        dx[r * in + i] += d * w[o * in + i];
        dw[o * in + i] += d * x[r * in + i];
      }
    }
}

static void moments_of(int n, const double *x, double *mean, double *scale) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) sum += x[i];
  *mean = sum / n;
  for (int i = 0; i < n; i++) squares += (x[i] - *mean) * (x[i] - *mean);
  *scale = 1 / sqrt(squares / n + 1e-5);
}

static void norm(int rows, int n, const double *x, const double *w, const double *bias, double *y) {
  for (int r = 0; r < rows; r++) {
    double mean, scale;
    moments_of(n, x + r * n, &mean, &scale);
    for (int i = 0; i < n; i++) y[r * n + i] = (x[r * n + i] - mean) * scale * w[i] + bias[i];
  }
}

static void norm_back(int rows, int n, const double *x, const double *w, const double *dy, double *dx, double *dw,
                      double *dbias) {
  for (int r = 0; r < rows; r++) {
    double mean, scale, sum = 0, along = 0;
    moments_of(n, x + r * n, &mean, &scale);
    for (int i = 0; i < n; i++) {
      const double normal = (x[r * n + i] - mean) * scale, d = dy[r * n + i];
      dw[i] += d * normal;
      dbias[i] += d;
      sum += d * w[i];
      along += d * w[i] * normal;
    }
    for (int i = 0; i < n; i++) {
      const double normal = (x[r * n + i] - mean) * scale;
      dx[r * n + i] += scale * (dy[r * n + i] * w[i] - sum / n - normal * along / n);
    }
  }
}

/* Returns where the queries, keys or values (`part` 0, 1, 2) of a head start in a row. */
static size_t head_at(const pass *p, int b, int t, int part, int head) {
  return ((size_t)(b * p->length + t) * 3 + (size_t)part) * (size_t)p->channels + (size_t)(head * p->size);
}

static double *scores_of(const pass *p, double *scores, int b, int head, int t) {
  return scores + ((size_t)(b * p->heads + head) * (size_t)p->length + (size_t)t) * (size_t)p->length;
}

static double dot(int n, const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void attention(const pass *p, const double *qkv, double *probabilities, double *out) {
  for (int b = 0; b < p->batch; b++)
    for (int head = 0; head < p->heads; head++)
      for (int t = 0; t < p->length; t++) {
        double *const row = scores_of(p, probabilities, b, head, t), sum = 0;
        double *const to = out + (size_t)(b * p->length + t) * (size_t)p->channels + head * p->size;
        for (int s = 0; s <= t; s++) {
          row[s] = exp(dot(p->size, qkv + head_at(p, b, t, 0, head), qkv + head_at(p, b, s, 1, head)) / sqrt(p->size));
          sum += row[s];
        }
        for (int s = 0; s <= t; s++) {
          row[s] /= sum;
          for (int i = 0; i < p->size; i++) to[i] += row[s] * qkv[head_at(p, b, s, 2, head) + (size_t)i];
        }
      }
}

static void attention_back(const pass *p, const double *qkv, double *probabilities, const double *dout, double *dqkv) {
  double *const d = new_values((size_t)p->length);
  for (int b = 0; b < p->batch; b++)
    for (int head = 0; head < p->heads; head++)
      for (int t = 0; t < p->length; t++) {
        const double *const row = scores_of(p, probabilities, b, head, t);
        const double *const from = dout + (size_t)(b * p->length + t) * (size_t)p->channels + head * p->size;
        const size_t q = head_at(p, b, t, 0, head);
        double sum = 0;
        for (int s = 0; s <= t; s++) {
          d[s] = dot(p->size, from, qkv + head_at(p, b, s, 2, head));
          sum += row[s] * d[s];
        }
        for (int s = 0; s <= t; s++) {
          const size_t k = head_at(p, b, s, 1, head), v = head_at(p, b, s, 2, head);
          const double score = row[s] * (d[s] - sum) / sqrt(p->size);
          for (int i = 0; i < p->size; i++) {
            dqkv[v + (size_t)i] += row[s] * from[i];
            dqkv[q + (size_t)i] += score * qkv[k + (size_t)i];
            dqkv[k + (size_t)i] += score * qkv[q + (size_t)i];
          }
        }
      }
  free(d);
}

static const double gelu_factor = 0.79788456080286535588; /* sqrt(2 / pi) */

static double gelu(double x) { return 0.5 * x * (1 + tanh(gelu_factor * (x + 0.044715 * x * x * x))); }

static double gelu_slope(double x) {
  const double t = tanh(gelu_factor * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_factor * (1 + 3 * 0.044715 * x * x);
}

/* ---- the passes ---- */

static layer_values new_layer(const pass *p) {
  const size_t row = (size_t)p->rows * (size_t)p->channels;
  layer_values l;
  l.input = new_values(17 * row + (size_t)p->rows * (size_t)p->heads * (size_t)p->length);
  l.normal1 = l.input + row;
  l.qkv = l.normal1 + row;
  l.attended = l.qkv + 3 * row;
  l.middle = l.attended + row;
  l.normal2 = l.middle + row;
  l.expanded = l.normal2 + row;
  l.activated = l.expanded + 4 * row;
  l.output = l.activated + 4 * row;
  l.probabilities = l.output + row;
  return l;
}

static void layer_forward(const pass *p, int i, layer_values *l) {
  const int c = p->channels, n = p->rows;
  norm(n, c, l->input, weight(p, GPT2_NORM1_WEIGHT, i), weight(p, GPT2_NORM1_BIAS, i), l->normal1);
  linear(n, c, 3 * c, l->normal1, weight(p, GPT2_QKV_WEIGHT, i), weight(p, GPT2_QKV_BIAS, i), l->qkv);
  attention(p, l->qkv, l->probabilities, l->attended);
  linear(n, c, c, l->attended, weight(p, GPT2_ATTENTION_WEIGHT, i), weight(p, GPT2_ATTENTION_BIAS, i), l->middle);
  for (int j = 0; j < n * c; j++) l->middle[j] += l->input[j];
  norm(n, c, l->middle, weight(p, GPT2_NORM2_WEIGHT, i), weight(p, GPT2_NORM2_BIAS, i), l->normal2);
  linear(n, c, 4 * c, l->normal2, weight(p, GPT2_EXPAND_WEIGHT, i), weight(p, GPT2_EXPAND_BIAS, i), l->expanded);
  for (int j = 0; j < n * 4 * c; j++) l->activated[j] = gelu(l->expanded[j]);
  linear(n, 4 * c, c, l->activated, weight(p, GPT2_CONTRACT_WEIGHT, i), weight(p, GPT2_CONTRACT_BIAS, i), l->output);
  for (int j = 0; j < n * c; j++) l->output[j] += l->middle[j];
}

/* d is the gradient of the residual stream. On entry it is the gradient after the layer, on return before the layer. */
static void layer_backward(const pass *p, int i, layer_values *l, double *d) {
  const int c = p->channels, n = p->rows;
  const size_t row = (size_t)n * (size_t)c;
  double *const normal = new_values(row), *const wide = new_values(4 * row), *const qkv = new_values(3 * row);
  linear_back(n, 4 * c, c, l->activated, weight(p, GPT2_CONTRACT_WEIGHT, i), d, wide,
              gradient(p, GPT2_CONTRACT_WEIGHT, i), gradient(p, GPT2_CONTRACT_BIAS, i));
  for (size_t j = 0; j < 4 * row; j++) wide[j] *= gelu_slope(l->expanded[j]);
  linear_back(n, c, 4 * c, l->normal2, weight(p, GPT2_EXPAND_WEIGHT, i), wide, normal,
              gradient(p, GPT2_EXPAND_WEIGHT, i), gradient(p, GPT2_EXPAND_BIAS, i));
  norm_back(n, c, l->middle, weight(p, GPT2_NORM2_WEIGHT, i), normal, d, gradient(p, GPT2_NORM2_WEIGHT, i),
            gradient(p, GPT2_NORM2_BIAS, i));
  memset(normal, 0, row * sizeof *normal);
  linear_back(n, c, c, l->attended, weight(p, GPT2_ATTENTION_WEIGHT, i), d, normal,
              gradient(p, GPT2_ATTENTION_WEIGHT, i), gradient(p, GPT2_ATTENTION_BIAS, i));
  attention_back(p, l->qkv, l->probabilities, normal, qkv);
  memset(normal, 0, row * sizeof *normal);
  linear_back(n, c, 3 * c, l->normal1, weight(p, GPT2_QKV_WEIGHT, i), qkv, normal, gradient(p, GPT2_QKV_WEIGHT, i),
              gradient(p, GPT2_QKV_BIAS, i));
  norm_back(n, c, l->input, weight(p, GPT2_NORM1_WEIGHT, i), normal, d, gradient(p, GPT2_NORM1_WEIGHT, i),
            gradient(p, GPT2_NORM1_BIAS, i));
  free(normal);
  free(wide);
  free(qkv);
}

double reference_loss(const gpt2_config *config, int batch, int length, const int *tokens, const double *parameters,
                      double *gradients) {
  const int c = config->channels, rows = batch * length, vocabulary = config->vocabulary;
  const size_t row = (size_t)rows * (size_t)c;
  const pass p = { config, batch, length, rows, c, config->heads, c / config->heads, parameters, gradients };
  layer_values *const layers = calloc((size_t)config->layers + 1, sizeof *layers); /* the last holds only an input */
  double *const normal = new_values(row), *const logits = new_values((size_t)rows * (size_t)vocabulary);
  double loss = 0;
  if (layers == NULL) abort();
  for (int i = 0; i <= config->layers; i++) layers[i] = new_layer(&p);
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < c; j++)
      layers[0].input[r * c + j] =
          weight(&p, GPT2_TOKENS, 0)[tokens[r] * c + j] + weight(&p, GPT2_POSITIONS, 0)[r % length * c + j];
  for (int i = 0; i < config->layers; i++) {
    layer_forward(&p, i, &layers[i]);
    memcpy(layers[i + 1].input, layers[i].output, row * sizeof(double));
  }
  const double *const last = layers[config->layers].input;
  norm(rows, c, last, weight(&p, GPT2_NORM_WEIGHT, 0), weight(&p, GPT2_NORM_BIAS, 0), normal);
  linear(rows, c, vocabulary, normal, weight(&p, GPT2_TOKENS, 0), NULL, logits);
  for (int r = 0; r < rows; r++) {
    double *const x = logits + r * vocabulary, sum = 0;
    for (int i = 0; i < vocabulary; i++) sum += exp(x[i]);
    loss += (log(sum) - x[tokens[r + 1]]) / rows;
    for (int i = 0; i < vocabulary; i++) x[i] = (exp(x[i]) / sum - (i == tokens[r + 1])) / rows;
  }

  if (gradients != NULL) {
    double *const d = new_values(row), *const d_normal = new_values(row);
    memset(gradients, 0, gpt2_parameters(config) * sizeof *gradients);
    linear_back(rows, c, vocabulary, normal, weight(&p, GPT2_TOKENS, 0), logits, d_normal, gradient(&p, GPT2_TOKENS, 0),
                NULL);
    norm_back(rows, c, last, weight(&p, GPT2_NORM_WEIGHT, 0), d_normal, d, gradient(&p, GPT2_NORM_WEIGHT, 0),
              gradient(&p, GPT2_NORM_BIAS, 0));
    for (int i = config->layers - 1; i >= 0; i--) layer_backward(&p, i, &layers[i], d);
    for (int r = 0; r < rows; r++)
      for (int j = 0; j < c; j++) {
        gradient(&p, GPT2_TOKENS, 0)[tokens[r] * c + j] += d[r * c + j];
        gradient(&p, GPT2_POSITIONS, 0)[r % length * c + j] += d[r * c + j];
      }
    free(d);
    free(d_normal);
  }
  for (int i = 0; i <= config->layers; i++) free(layers[i].input);
  free(layers);
  free(normal);
  free(logits);
  return loss;
}

void reference_update(const gpt2_config *config, const gpt2_options *options, int step, const double *gradients,
                      double *parameters, double *moments) {
  const size_t count = gpt2_parameters(config);
  const double beta1 = (double)options->beta1, beta2 = (double)options->beta2;
  for (gpt2_tensor t = 0; t < GPT2_TENSORS; t++) {
    const int is_vector = t == GPT2_NORM1_WEIGHT || t == GPT2_NORM2_WEIGHT || t == GPT2_NORM_WEIGHT ||
                          strstr(gpt2_name(t), "bias") != NULL;
    const double decay = is_vector ? 0 : (double)options->decay;
    for (int layer = 0; layer < gpt2_copies(config, t); layer++)
      for (size_t i = gpt2_offset(config, t, layer), end = i + gpt2_size(config, t); i < end; i++) {
        double *const m = &moments[i], *const v = &moments[count + i];
        *m = beta1 * *m + (1 - beta1) * gradients[i];
        *v = beta2 * *v + (1 - beta2) * gradients[i] * gradients[i];
        const double m_full = *m / (1 - pow(beta1, step + 1)), v_full = *v / (1 - pow(beta2, step + 1));
        parameters[i] -= (double)options->learning_rate * (m_full / (sqrt(v_full) + 1e-8) + decay * parameters[i]);
      }
  }
}
