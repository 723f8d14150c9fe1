#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns the length in bytes of the UTF-8 character at `text`, or 0 if there is none. */
static int character_length(const unsigned char *text) {
  const int length = text[0] < 0x80                       ? 1
                     : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                     : text[0] >= 0xe0 && text[0] <= 0xef ? 3
                     : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                          : 0;
  for (int i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  const unsigned second = length > 2 ? text[1] : 0x80;
  const bool overlong = (text[0] == 0xe0 && second < 0xa0) || (text[0] == 0xf0 && second < 0x90);
  const bool surrogate = text[0] == 0xed && second >= 0xa0, too_large = text[0] == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

static void write_text(const char *text) {
  (void)putchar('"');
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
    const int length = character_length(c);
    if (length == 0) {
      (void)putchar('?');
    } else if (*c < 0x20 || *c == 0x7f) {
      (void)printf("\\u%04x", *c);
    } else {
      if (*c == '"' || *c == '\\') (void)putchar('\\');
      (void)fwrite(c, 1, (size_t)length, stdout);
    }
    c += length == 0 ? 1 : length;
  }
  (void)putchar('"');
}

/* Starts a new line and writes the key. */
static void begin(struct json *json, const char *key) {
  if (json->depth > 0) {
    (void)printf("%s\n%*s", json->any[json->depth] ? "," : "", 2 * json->depth, "");
    json->any[json->depth] = true;
  }
  if (key == NULL) return;
  write_text(key);
  (void)fputs(": ", stdout);
}

void json_open(struct json *json, const char *key, char bracket) {
  begin(json, key);
  (void)putchar(bracket);
  json->any[++json->depth] = false;
}

void json_close(struct json *json, char bracket) {
  const bool any = json->any[json->depth--];
  if (any) (void)printf("\n%*s", 2 * json->depth, "");
  (void)putchar(bracket);
  if (json->depth == 0) (void)putchar('\n');
}

void json_text(struct json *json, const char *key, const char *text) {
  if (text == NULL) {
    json_null(json, key);
    return;
  }
  begin(json, key);
  write_text(text);
}

void json_integer(struct json *json, const char *key, int64_t value) {
  begin(json, key);
  (void)printf("%" PRId64, value);
}

void json_number(struct json *json, const char *key, double value) {
  begin(json, key);
  (void)printf("%.6g", value);
}

void json_flag(struct json *json, const char *key, bool value) {
  begin(json, key);
  (void)fputs(value ? "true" : "false", stdout);
}

void json_null(struct json *json, const char *key) {
  begin(json, key);
  (void)fputs("null", stdout);
}
