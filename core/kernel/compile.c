#include "core/kernel/compile.h"

#include "core/device/life.h"
#include "core/kernel/compile_cache.h"
#include "core/kernel/module.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the log of a thread's last compile ---- */

static pthread_key_t log_key;
static bool log_key_made;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static void make_log_key(void) { log_key_made = pthread_key_create(&log_key, free) == 0; }

/* Takes over the text. */
static void set_log(char *text) {
  (void)pthread_once(&log_once, make_log_key);
  if (log_key_made) {
    free(pthread_getspecific(log_key));
    if (pthread_setspecific(log_key, text) == 0) return;
    (void)pthread_setspecific(log_key, NULL);
  }
  free(text);
}

/* ---- the request ---- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
static const char blanks[] = " \t\v\f";

static bool is_name(const char *text, size_t length) {
  return length > 0 && strspn(text, letters) >= length && (text[0] < '0' || text[0] > '9');
}

static bool is_definition(const char *option) {
  const bool defines = strncmp(option, "-D", 2) == 0;
  if (!defines && strncmp(option, "-U", 2) != 0) return false;
  const size_t name = strcspn(option + 2, "=");
  if (!is_name(option + 2, name)) return false;
  return defines || option[2 + name] == '\0';
}

static rill_status read_option(struct rill__compile *request, const char **definitions, size_t i, const char *option) {
  RILL_REQUIRE(option != NULL, RILL_ERROR_INVALID_ARGUMENT, "rill_compile_options.options[%zu] is NULL", i);
  RILL_REQUIRE(strpbrk(option, "\r\n") == NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.options[%zu] contains a newline", i);
  if (is_definition(option)) {
    definitions[request->definition_count++] = option;
  } else if (strcmp(option, "-std=c++17") == 0 || strcmp(option, "-std=c++20") == 0) {
    request->standard = option[9] == '7' ? 17 : 20;
  } else if (strcmp(option, "-ffp-contract=fast") == 0 || strcmp(option, "-ffp-contract=off") == 0) {
    request->fuse = option[14] == 'f';
  } else if (strcmp(option, "-g") == 0) {
    request->debug = true;
  } else {
    return rill__fail(
        RILL_ERROR_INVALID_ARGUMENT,
        "rill_compile_options.options[%zu] is \"%.80s\": not an option that every compiler accepts" RILL_HINT
        "the options are -DNAME, -DNAME=VALUE, -UNAME, -std=c++17, -std=c++20, -ffp-contract=fast, -ffp-contract=off "
        "and -g",
        i, option);
  }
  return RILL_OK;
}

enum { MAX_HEADER_NAME = 200 };

/* Returns true if the name is a relative path that stays inside its base directory. */
static bool is_header_name(const char *name) {
  if (name[0] == '\0' || strlen(name) > MAX_HEADER_NAME) return false;
  for (const char *part = name; part != NULL;) {
    const size_t length = strcspn(part, "/");
    if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.')) {
      return false;
    }
    part = part[length] == '/' ? part + length + 1 : NULL;
  }
  return strpbrk(name, "\\\"<>\r\n\t") == NULL;
}

static rill_status check_header(const rill_compile_header *headers, size_t i) {
  const rill_compile_header *header = &headers[i];
  RILL_REQUIRE(header->name != NULL && header->text != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.headers[%zu].%s is NULL", i, header->name == NULL ? "name" : "text");
  RILL_REQUIRE(strpbrk(header->name, "\r\n") == NULL, RILL_ERROR_INVALID_ARGUMENT,
               "the name of rill_compile_options.headers[%zu] contains a newline", i);
  RILL_REQUIRE(is_header_name(header->name), RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.headers[%zu] is called \"%.80s\": not a relative path of at most %d characters "
               "without \"..\"",
               i, header->name, MAX_HEADER_NAME);
  RILL_REQUIRE(strncmp(header->name, "rill/", 5) != 0, RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.headers[%zu] is called \"%.80s\": names in rill/ are reserved for the dialect", i,
               header->name);
  for (size_t other = 0; other < i; other++) {
    RILL_REQUIRE(strcmp(headers[other].name, header->name) != 0, RILL_ERROR_INVALID_ARGUMENT,
                 "rill_compile_options.headers[%zu] and [%zu] are both called \"%.80s\"", other, i, header->name);
  }
  return RILL_OK;
}

rill_status rill__compile_check_options(const rill_compile_options *options) {
  RILL_REQUIRE(options->option_count == 0 || options->options != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.options is NULL, but option_count is %zu", options->option_count);
  RILL_REQUIRE(options->header_count == 0 || options->headers != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.headers is NULL, but header_count is %zu", options->header_count);
  const char *label = options->label;
  RILL_REQUIRE(label == NULL || strpbrk(label, "\"\\\r\n") == NULL, RILL_ERROR_INVALID_ARGUMENT,
               "rill_compile_options.label contains a quote, a backslash or a newline");
  for (size_t i = 0; i < options->header_count; i++) RILL_TRY(check_header(options->headers, i));
  return RILL_OK;
}

/* ---- the key of a result ---- */

enum { RECIPE = 3 }; /* increase it when backends change what they add to a source or to a compiler's options */

static void hash_text(struct rill__sha256 *hash, const char *text) { rill__sha256_add(hash, text, strlen(text) + 1); }

static void hash_number(struct rill__sha256 *hash, uint64_t number) {
  char text[24];
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
  hash_text(hash, text);
}

static void key_of(const struct rill__device *device, const struct rill__compile *request, const char *compiler,
                   uint8_t key[RILL__SHA256_BYTES]) {
  struct rill__sha256 hash;
  rill__sha256_begin(&hash);
  hash_number(&hash, RECIPE);
  hash_text(&hash, device->backend->name);
  hash_text(&hash, device->info.arch);
  hash_text(&hash, compiler);
  hash_number(&hash, request->standard);
  hash_number(&hash, (request->fuse ? 1u : 0u) + (request->debug ? 2u : 0u));
  hash_text(&hash, request->label); /* appears in messages of assertions */
  hash_number(&hash, request->definition_count);
  for (size_t i = 0; i < request->definition_count; i++) hash_text(&hash, request->definitions[i]);
  hash_number(&hash, request->header_count);
  for (size_t i = 0; i < request->header_count; i++) {
    hash_text(&hash, request->headers[i].name);
    hash_text(&hash, request->headers[i].text);
  }
  hash_text(&hash, request->source);
  rill__sha256_end(&hash, key);
}

static bool has_header(const struct rill__compile *request, const char *name, size_t length) {
  for (size_t i = 0; i < request->header_count; i++) {
    if (strlen(request->headers[i].name) == length && strncmp(request->headers[i].name, name, length) == 0) return true;
  }
  return false;
}

/* Returns true if a directive (the text after a '#') may read a file that the key does not cover, which means a file
 * other than the given headers and the compiler's own.  Returns true for directives that are written in an unusual
 * way. */
static bool reads_file(const struct rill__compile *request, const char *word) {
  static const char *const words[] = { "include", "include_next", "embed", "import" };
  const size_t length = strspn(word, letters);
  if (word[0] == '/' || word[length] == '\\') return true;
  bool reads = false;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    reads = reads || (strlen(words[i]) == length && strncmp(word, words[i], length) == 0);
  }
  if (!reads) return false;
  const char *target = word + length + strspn(word + length, blanks);
  const char *const name = target + 1;
  if (target[0] == '"') return !has_header(request, name, strcspn(name, "\"\n"));
  if (target[0] != '<' || name[0] == '/') return true;
  const size_t size = strcspn(name, ">\n");
  return memmem(name, size, "..", 2) != NULL;
}

/* Other ways to read a file, or to depend on something that changes by itself: other spellings of '#', tests for files,
 * the assembler, the clock. */
static const char *const unusual[] = { "%:", "\?\?=", "__has_include", "__has_embed", "incbin", "__DATE__", "__TIME" };

static bool reads_files(const struct rill__compile *request, const char *text) {
  for (const char *at = strchr(text, '#'); at != NULL; at = strchr(at + 1, '#')) {
    if (reads_file(request, at + 1 + strspn(at + 1, blanks))) return true;
  }
  for (size_t i = 0; i < sizeof unusual / sizeof unusual[0]; i++) {
    if (strstr(text, unusual[i]) != NULL) return true;
  }
  return false;
}

static bool is_closed(const struct rill__compile *request) {
  if (reads_files(request, request->source)) return false;
  for (size_t i = 0; i < request->definition_count; i++) {
    if (reads_files(request, request->definitions[i])) return false;
  }
  for (size_t i = request->dialect_header_count; i < request->header_count; i++) {
    if (reads_files(request, request->headers[i].text)) return false;
  }
  return true;
}

/* ---- compiling ---- */

/* Returns the first line that reports an error, or the first line of the log. */
static const char *first_error(const char *log, int *length) {
  static const char *const words[] = { "error:", "undefined reference", "undefined symbol" };
  const char *line = NULL;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    const char *found = strstr(log, words[i]);
    if (found != NULL && (line == NULL || found < line)) line = found;
  }
  if (line == NULL) line = strstr(log, "error");
  while (line != NULL && line > log && line[-1] != '\n') line--;
  if (line == NULL) line = log;
  const size_t full = strcspn(line, "\n");
  *length = full > 400 ? 400 : (int)full;
  return line;
}

static rill_status run_compiler(struct rill__device *device, const struct rill__compile *request,
                                struct rill__compiled *result) {
  const rill_status status = RILL_DISPATCH(device, module, compile, device, request, result);
  char *log = result->log;
  result->log = NULL;
  if (status != RILL_OK || result->image != NULL) {
    set_log(log);
    return status;
  }
  int length = 0;
  const char *line = first_error(log != NULL && log[0] != '\0' ? log : "the compiler gave no reason", &length);
  const rill_status failure = rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                                         "the source \"%.80s\" has errors: %.*s" RILL_HINT
                                         "see rill_compile_log for the compiler's full output",
                                         request->label, length, line);
  set_log(log);
  return failure;
}

/* maximum length of a compiler's description: a path and a command */
enum { COMPILER_SIZE = 2 * PATH_MAX + 256 };

/* Computes the key of the result and opens the folder of the cache; `*folder` is -1 if the result is not cached. */
static rill_status open_cache(struct rill__device *device, const struct rill__compile *request, bool use_cache,
                              uint8_t key[RILL__SHA256_BYTES], int *folder) {
  char *compiler = malloc(COMPILER_SIZE);
  RILL_REQUIRE(compiler != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %d bytes", COMPILER_SIZE);
  *folder = -1;
  const rill_status status = RILL_DISPATCH(device, module, compiler, device, compiler, COMPILER_SIZE);
  if (status == RILL_OK && use_cache && request->closed) *folder = rill__cache_open();
  if (*folder >= 0) key_of(device, request, compiler, key);
  free(compiler);
  return status;
}

/* Loads the result from the cache or compiles the source, and then caches the result if it could be loaded. */
static rill_status compile(struct rill__device *device, const struct rill__compile *request, bool use_cache,
                           struct rill__module **out) {
  struct rill__compiled result = { .image = NULL };
  uint8_t key[RILL__SHA256_BYTES];
  int folder = -1;
  RILL_TRY(open_cache(device, request, use_cache, key, &folder));
  const bool kept = folder >= 0 && rill__cache_get(folder, key, &result.image, &result.size);
  rill_status status = kept ? RILL_OK : run_compiler(device, request, &result);
  if (status == RILL_OK) {
    status = rill__module_load_image(device, result.image, result.size, request->label, out);
    if (status == RILL_OK && folder >= 0 && !kept) {
      rill__cache_put(folder, key, result.image, result.size, RILL__CACHE_BYTES);
    }
  }
  free(result.image);
  if (folder >= 0) (void)close(folder);
  return status;
}

/* Sets the headers, which are the dialect's and then the caller's, and the caller's definitions. */
static rill_status build_request(const rill_compile_options *options, struct rill__compile *request,
                                 const char **definitions, rill_compile_header *headers) {
  request->definitions = definitions;
  for (size_t i = 0; i < options->option_count; i++) {
    RILL_TRY(read_option(request, definitions, i, options->options[i]));
  }
  request->headers = headers;
  request->dialect_header_count = rill__dialect_header_count;
  request->header_count = rill__dialect_header_count + options->header_count;
  memcpy(headers, rill__dialect_headers, rill__dialect_header_count * sizeof *headers);
  for (size_t i = 0; i < options->header_count; i++) headers[rill__dialect_header_count + i] = options->headers[i];
  request->closed = is_closed(request);
  return RILL_OK;
}

rill_status rill__compile_check_device(struct rill__device *device) {
  const char *why = "";
  RILL_TRY(rill__device_activate(device));
  RILL_TRY(rill__check_usable(device));
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, RILL_FEATURE_RTC, &why), RILL_ERROR_UNSUPPORTED,
               "compiling for %s: %s", device->name, why);
  return RILL_OK;
}

const char *rill__compile_log(void) {
  (void)pthread_once(&log_once, make_log_key);
  const char *text = log_key_made ? pthread_getspecific(log_key) : NULL;
  return text != NULL ? text : "";
}

void rill__compile_log_clear(void) { set_log(NULL); }

rill_status rill__compile(struct rill__device *device, const char *source, const rill_compile_options *o,
                          struct rill__module **out) {
  struct rill__compile request = {
    .source = source, .label = o->label != NULL ? o->label : "kernels", .standard = 17, .fuse = true
  };
  RILL_WITHOUT_CANCEL();
  const size_t headers_size = (rill__dialect_header_count + o->header_count) * sizeof(rill_compile_header);
  const char **definitions = calloc(o->option_count + 1, sizeof *definitions);
  rill_compile_header *headers = malloc(headers_size);
  rill_status status = RILL_OK;
  if (definitions == NULL || headers == NULL) {
    status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu options and %zu headers", o->option_count,
                        o->header_count);
  } else {
    status = build_request(o, &request, definitions, headers);
  }
  if (status == RILL_OK) status = compile(device, &request, !o->no_cache, out);
  free(definitions);
  free(headers);
  return status;
}
