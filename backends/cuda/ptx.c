/* Reads PTX as far as needed: how it begins, its target, and the names after ".entry". */
#include "backends/cuda/formats.h"

#include <stdio.h>
#include <string.h>

struct text {
  const char *at, *end;
};

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_ptx_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

static void skip_to(struct text *text, const char *mark) {
  const size_t length = strlen(mark);
  const char *found = memmem(text->at, (size_t)(text->end - text->at), mark, length);
  text->at = found == NULL ? text->end : found + length;
}

/* Skips space and comments. */
static void skip_space(struct text *text) {
  while (text->at < text->end) {
    const size_t left = (size_t)(text->end - text->at);
    if (is_space(*text->at)) text->at++;
    else if (left >= 2 && memcmp(text->at, "//", 2) == 0) skip_to(text, "\n");
    else if (left >= 2 && memcmp(text->at, "/*", 2) == 0) skip_to(text, "*/");
    else break;
  }
}

/* Reads a word and returns its length. */
static size_t take_word(struct text *text, const char **word) {
  skip_space(text);
  *word = text->at;
  if (text->at < text->end && *text->at == '.') text->at++;
  while (text->at < text->end && is_ptx_name(*text->at)) text->at++;
  return (size_t)(text->at - *word);
}

static bool is_word(const char *word, size_t length, const char *other) {
  return length == strlen(other) && memcmp(word, other, length) == 0;
}

/* Finds the next word that is a directive.  Returns false at the end.  Everything in between is skipped, including
 * strings. */
static bool next_directive(struct text *text, const char **word, size_t *length) {
  for (;;) {
    skip_space(text);
    if (text->at >= text->end) return false;
    if (*text->at == '"') {
      text->at++;
      skip_to(text, "\"");
    } else if (*text->at == '.' || is_ptx_name(*text->at)) {
      *length = take_word(text, word);
      if ((*word)[0] == '.') return true;
    } else {
      text->at++;
    }
  }
}

static struct text text_of(const void *data, size_t size) {
  const char *begin = data;
  return (struct text){ begin, begin + strnlen(begin, size) };
}

bool rill__cuda_is_ptx(const void *data, size_t size) {
  struct text text = text_of(data, size);
  const char *word;
  const size_t length = take_word(&text, &word);
  return is_word(word, length, ".version");
}

const char *rill__cuda_ptx_check(const void *data, size_t size, char target[CUDA_TARGET_SIZE],
                                 struct rill__image *image) {
  struct text text = text_of(data, size);
  image->work += size;
  if ((size_t)(text.end - text.at) + 1 < size) return "it has a zero byte inside";
  const char *word;
  size_t length;
  while (next_directive(&text, &word, &length)) {
    if (!is_word(word, length, ".target")) continue;
    length = take_word(&text, &word);
    if (length <= 3 || length >= CUDA_TARGET_SIZE - 1 || memcmp(word, "sm_", 3) != 0) return "its .target is not sm_NN";
    (void)snprintf(target, CUDA_TARGET_SIZE, "ptx_%.*s", (int)(length - 3), word + 3);
    return NULL;
  }
  return "it has no .target";
}

const char *rill__cuda_ptx_kernels(const void *data, size_t size, struct rill__image *out) {
  struct text text = text_of(data, size);
  const char *word;
  size_t length;
  out->work += size;
  while (next_directive(&text, &word, &length)) {
    if (!is_word(word, length, ".entry")) continue;
    length = take_word(&text, &word);
    if (length == 0 || length > RILL__NAME_MAX || word[0] == '.') return "an .entry has no name";
    if (rill__image_has_kernel(out, word, length)) continue; /* declared before */
    if (!rill__image_add_kernel(out, word, length, RILL__ARGS_UNKNOWN)) return "no memory";
  }
  return NULL;
}
