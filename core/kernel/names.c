/* Reads the part of the C++ ABI's mangling that kernel names use. */
#include "core/kernel/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Reading and writing stay in bounds: `at` ends with a zero, and a name that does not fit makes the conversion fail. */
struct mangled {
  const char *at;
  char *out;
  size_t used, size;
  int depth; /* nesting of names inside template arguments */
  bool fits;
};

static __attribute__((format(printf, 2, 3))) void write_part(struct mangled *m, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(m->out + m->used, m->size - m->used, format, args);
  va_end(args);
  m->fits = m->fits && n >= 0 && (size_t)n < m->size - m->used;
  if (m->fits) m->used += (size_t)n;
}

static bool accept_char(struct mangled *m, char c) {
  if (*m->at != c) return false;
  m->at++;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads an identifier with its length: "4move". */
static bool read_identifier(struct mangled *m) {
  static const char anonymous[] = "_GLOBAL__N_1";
  size_t length = 0;
  for (; is_digit(*m->at) && length < m->size; m->at++) length = length * 10 + (size_t)(*m->at - '0');
  if (length == 0 || strnlen(m->at, length) < length) return false;
  const bool unnamed = length == sizeof anonymous - 1 && memcmp(m->at, anonymous, length) == 0;
  write_part(m, "%.*s", unnamed ? 21 : (int)length, unnamed ? "(anonymous namespace)" : m->at);
  m->at += length;
  return m->fits;
}

static bool read_name(struct mangled *m);

/* Reads an integer: "Li4E" is 4, "Lin2E" is -2, "Lb1E" is true. */
static bool read_literal(struct mangled *m) {
  const char type = *m->at;
  if (type == '\0' || strchr("bcahstijlmxy", type) == NULL) return false;
  m->at++;
  const bool negative = accept_char(m, 'n');
  const size_t digits = strspn(m->at, "0123456789");
  if (digits == 0 || m->at[digits] != 'E') return false;
  if (type == 'b') {
    write_part(m, "%s", *m->at == '0' ? "false" : "true");
  } else {
    write_part(m, "%s%.*s", negative ? "-" : "", (int)digits, m->at);
  }
  m->at += digits + 1;
  return m->fits;
}

static const char *builtin_type(char letter) {
  switch (letter) {
    case 'v': return "void";
    case 'b': return "bool";
    case 'c': return "char";
    case 'a': return "signed char";
    case 'h': return "unsigned char";
    case 's': return "short";
    case 't': return "unsigned short";
    case 'i': return "int";
    case 'j': return "unsigned int";
    case 'l': return "long";
    case 'm': return "unsigned long";
    case 'x': return "long long";
    case 'y': return "unsigned long long";
    case 'f': return "float";
    case 'd': return "double";
    default: return NULL;
  }
}

/* Reads a type or a constant. */
static bool read_argument(struct mangled *m) {
  enum { DEEPEST = 16 };
  if (m->depth == DEEPEST) return false;
  if (accept_char(m, 'L')) return read_literal(m);
  m->depth++;
  bool known = true;
  if (accept_char(m, 'P')) {
    known = read_argument(m);
    write_part(m, " *");
  } else if (accept_char(m, 'K')) {
    write_part(m, "const ");
    known = *m->at != 'P' && read_argument(m); /* `float *const` has the const in another place */
  } else if (*m->at == 'N' || is_digit(*m->at)) {
    known = read_name(m);
  } else {
    const char *const type = builtin_type(*m->at);
    known = type != NULL;
    if (known) write_part(m, "%s", type);
    if (known) m->at++;
  }
  m->depth--;
  return known && m->fits;
}

static bool read_arguments(struct mangled *m) {
  if (!accept_char(m, 'I')) return true;
  write_part(m, "<");
  for (bool first = true; !accept_char(m, 'E'); first = false) {
    if (!first) write_part(m, ", ");
    if (!read_argument(m)) return false;
  }
  write_part(m, ">");
  return m->fits;
}

/* Reads the name of a function or type: one name, or several in "N ... E". 'L' marks a static function. */
static bool read_name(struct mangled *m) {
  const bool nested = accept_char(m, 'N');
  for (bool first = true; first || (nested && !accept_char(m, 'E')); first = false) {
    if (!first) write_part(m, "::");
    (void)accept_char(m, 'L');
    if (!read_identifier(m) || !read_arguments(m)) return false;
  }
  return true;
}

bool rill__source_name(const char *symbol, char *out, size_t size) {
  if (strncmp(symbol, "_Z", 2) != 0 || size == 0) return false;
  struct mangled mangled = { .at = symbol + 2, .out = out, .size = size, .fits = true };
  return read_name(&mangled);
}
