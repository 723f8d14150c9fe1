/* JSON on stdout, one value per line. */
#ifndef RILL_TOOL_JSON_H
#define RILL_TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>

enum { JSON_DEPTH = 8 };

/* A zeroed struct is an empty document. */
struct json {
  int depth;
  bool any[JSON_DEPTH]; /* a value was written at this depth, so a comma comes next */
};

/* Each function writes one value: under `key` in an object; `key` is NULL in a list and for the document. */
void json_open(struct json *json, const char *key, char bracket);     /* '{' or '[' */
void json_close(struct json *json, char bracket);                     /* '}' or ']' */
void json_text(struct json *json, const char *key, const char *text); /* NULL: null; bytes that are not UTF-8: '?' */
void json_integer(struct json *json, const char *key, int64_t value);
void json_number(struct json *json, const char *key, double value);
void json_flag(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
