/* Run-time compilation by the host's C++ compiler, in a separate process and without a shell. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/image.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- finding the compiler ---- */

enum { MAX_WORDS = 16 };

struct command {
  char text[PATH_MAX]; /* RILL_CXX, split at its spaces */
  char path[PATH_MAX]; /* path of the program */
  const char *words[MAX_WORDS];
  int count; /* 0 if no compiler was found */
};

static bool is_program(const char *path) {
  struct stat about;
  return access(path, X_OK) == 0 && stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Searches PATH like a shell.  A program that runs with more rights than its user (AT_SECURE) searches only the
 * system's folders. */
static bool find_program(const char *name, char path[PATH_MAX]) {
  static const char safe[] = "/usr/local/bin:/usr/bin:/bin";
  if (strchr(name, '/') != NULL) {
    return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path);
  }
  const char *folders = getauxval(AT_SECURE) != 0 ? safe : getenv("PATH");
  for (const char *at = folders != NULL ? folders : safe; at != NULL;) {
    const size_t length = strcspn(at, ":");
    if (length > 0 && snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name) < PATH_MAX && is_program(path)) {
      return true;
    }
    at = at[length] == ':' ? at + length + 1 : NULL;
  }
  return false;
}

static void find_compiler(struct command *command) {
  static const char *const usual[] = { "c++", "g++", "clang++" };
  const char *named = getauxval(AT_SECURE) != 0 ? NULL : getenv("RILL_CXX");
  command->count = 0;
  if (named != NULL && named[0] != '\0') {
    if (snprintf(command->text, sizeof command->text, "%s", named) >= (int)sizeof command->text) return;
    char *rest = NULL;
    for (char *word = strtok_r(command->text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
      if (command->count == MAX_WORDS) {
        command->count = 0;
        return;
      }
      command->words[command->count++] = word;
    }
    if (command->count > 0 && !find_program(command->words[0], command->path)) command->count = 0;
  } else {
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && command->count == 0; i++) {
      command->words[0] = usual[i];
      if (find_program(usual[i], command->path)) command->count = 1;
    }
  }
}

bool rill__cpu_can_compile(const char **why) {
  struct command command;
  find_compiler(&command);
  *why = "";
  if (command.count != 0) return true;
  *why = "no C++ compiler was found: install c++, g++ or clang++ on the PATH, or set RILL_CXX to a compiler";
  return false;
}

rill_status rill__cpu_compiler(struct rill__device *device, char *identity, size_t size) {
  struct command command;
  struct stat about;
  const char *why = "";
  find_compiler(&command);
  if (command.count == 0 || stat(command.path, &about) != 0) {
    (void)rill__cpu_can_compile(&why);
    return rill__fail(RILL_ERROR_UNSUPPORTED, "compiling for %s: %s", device->name, why);
  }
  /* A compiler that is updated is a different file, so size, time and inode identify it. */
  size_t used =
      (size_t)snprintf(identity, size, "%lld:%lld.%09ld:%llu", (long long)about.st_size,
                       (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec, (unsigned long long)about.st_ino);
  for (int i = 0; i < command.count && used < size; i++) {
    used += (size_t)snprintf(identity + used, size - used, " %s", i == 0 ? command.path : command.words[i]);
  }
  RILL_REQUIRE(used < size, RILL_ERROR_UNSUPPORTED, "compiling for %s: RILL_CXX is longer than %zu bytes", device->name,
               size);
  return RILL_OK;
}

/* ---- files ---- */

static bool write_text(const char *path, const char *before, const char *text, const char *after) {
  FILE *file = fopen(path, "wxe");
  if (file == NULL) return false;
  const bool written = fputs(before, file) >= 0 && fputs(text, file) >= 0 && fputs(after, file) >= 0;
  return fclose(file) == 0 && written;
}

/* Writes a header, and creates the folders in its name. */
static bool write_header(const char *folder, const rill_compile_header *header) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/include/%s", folder, header->name) >= (int)sizeof path) return false;
  for (char *at = path + strlen(folder) + 1; *at != '\0'; at++) {
    if (*at != '/') continue;
    *at = '\0';
    (void)mkdir(path, 0700);
    *at = '/';
  }
  return write_text(path, "", header->text, "");
}

/* Returns up to `most` bytes of a file, followed by a zero, or NULL with errno set. */
static char *read_whole_file(const char *path, size_t most, size_t *size) {
  *size = 0;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0) return NULL;
  char *data = NULL;
  if (fstat(file, &about) == 0) {
    const size_t wanted = (size_t)about.st_size < most ? (size_t)about.st_size : most;
    data = malloc(wanted + 1);
    ssize_t got = 1;
    while (data != NULL && *size < wanted && got != 0) {
      got = read(file, data + *size, wanted - *size);
      if (got < 0 && errno != EINTR) break;
      if (got > 0) *size += (size_t)got;
    }
    if (data != NULL && got < 0) {
      free(data);
      data = NULL;
    }
    if (data != NULL) data[*size] = '\0';
  }
  const int error = errno;
  (void)close(file);
  errno = error;
  return data;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place) {
  (void)about, (void)kind, (void)place;
  (void)remove(path);
  return 0;
}

/* ---- running ---- */

/* Results of run_command other than an exit status; a status of 128 or more stands for a signal. */
enum { DID_NOT_RUN = -1, STATUS_UNKNOWN = -2 };

/* Runs the compiler with its output in a log file.  Returns the exit status, or DID_NOT_RUN with errno set.  The
 * compiler gets a minimal environment, because variables that add include folders would change its output. */
static int run_command(const char *const *words, const char *path, const char *folder, const char *log) {
  char search[PATH_MAX + 8], home[PATH_MAX + 8], temporary[PATH_MAX + 8];
  const char *const search_now = getenv("PATH"), *const home_now = getenv("HOME");
  (void)snprintf(search, sizeof search, "PATH=%s", search_now != NULL ? search_now : "/usr/local/bin:/usr/bin:/bin");
  (void)snprintf(home, sizeof home, "HOME=%s", home_now != NULL ? home_now : "/");
  (void)snprintf(temporary, sizeof temporary, "TMPDIR=%s", folder);
  char locale[] = "LC_ALL=C.UTF-8";
  char *const environment[] = { search, home, temporary, locale, NULL };

  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t none, all;
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  if ((errno = posix_spawn_file_actions_init(&files)) != 0) return DID_NOT_RUN;
  if ((errno = posix_spawnattr_init(&how)) != 0) {
    (void)posix_spawn_file_actions_destroy(&files);
    return DID_NOT_RUN;
  }
  (void)posix_spawnattr_setsigmask(&how, &none);
  (void)posix_spawnattr_setsigdefault(&how, &all);
  (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  int code = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (code == 0) code = posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (code == 0) code = posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t process = 0;
  if (code == 0) code = posix_spawn(&process, path, &files, &how, (char *const *)(uintptr_t)words, environment);
  (void)posix_spawnattr_destroy(&how);
  (void)posix_spawn_file_actions_destroy(&files);
  if (code != 0) {
    errno = code;
    return DID_NOT_RUN;
  }
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(process, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended < 0)
    return STATUS_UNKNOWN; /* the program reaps all children itself, so only the output files show the result */
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns true if a line continuation may split a word, or if a digraph may spell "##": a search for words is then
 * unreliable. */
static bool has_broken_words(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789#";
  if (strstr(text, "%:") != NULL) return true;
  for (const char *at = strchr(text, '\\'); at != NULL; at = strchr(at + 1, '\\')) {
    const char *next = at + 1 + strspn(at + 1, " \t\r");
    if (at > text && *next == '\n' && strchr(letters, at[-1]) != NULL && next[1] != '\0' &&
        strchr(letters, next[1]) != NULL)
      return true;
  }
  return false;
}

static bool has_any(const char *text, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strstr(text, words[i]) != NULL) return true;
  }
  return has_broken_words(text);
}

/* Returns true if any of the words may occur in the source, the definitions or the headers other than the dialect's
 * own. */
static bool mentions(const struct rill__compile *request, const char *const *words, size_t count) {
  bool found = !request->closed || has_any(request->source, words, count);
  for (size_t i = 0; i < request->definition_count; i++) {
    found = found || has_any(request->definitions[i], words, count);
  }
  for (size_t i = request->dialect_header_count; i < request->header_count; i++) {
    found = found || has_any(request->headers[i].text, words, count);
  }
  return found;
}

/* Returns true if the threads of a block may synchronize.  Each thread then runs on its own stack. */
static bool may_synchronize(const struct rill__compile *request) {
  static const char *const words[] = { "__sync",      "rill_shuffle",   "rill_vote",     "rill_lane",
                                       "rill_ballot", "rill_warp_sync", "rill_exchange", "##" };
  return mentions(request, words, sizeof words / sizeof words[0]);
}

/* Returns true if there may be device functions or assertions.  They may read the thread indices, which then have to be
 * kept in memory. */
static bool may_have_helpers(const struct rill__compile *request) {
  static const char *const words[] = { "__device__", "assert", "##" };
  return mentions(request, words, sizeof words / sizeof words[0]);
}

static const char *const flags[] = {
  /* the flags that rillcc also passes, so that results do not depend on which of the two compiled */
  "-x",
  "c++",
  "-O3",
  "-ffp-contract=off",
  "-fno-math-errno",
  "-fno-trapping-math",
  "-fno-strict-aliasing",
  "-fPIC",
  "-fvisibility=hidden",
  "-fno-exceptions",
  "-fno-rtti",
  "-fno-lto",
  "-fstack-clash-protection",
  "-fstack-usage",
  "-shared",
  "-static-libgcc",
  "-Wl,--as-needed",
  "-Wl,-z,defs",
  "-Wl,-z,noseparate-code",
  "-Wl,--build-id=none"
};
enum { FLAGS = sizeof flags / sizeof flags[0], OTHER_WORDS = 13 };

struct place {
  char folder[PATH_MAX - 64]; /* private to this compilation; removed afterwards */
  char include[PATH_MAX], source[PATH_MAX], image[PATH_MAX], log[PATH_MAX];
};

static bool make_place(struct place *place) {
  const char *temporary = getauxval(AT_SECURE) != 0 ? NULL : getenv("TMPDIR");
  if (temporary == NULL || temporary[0] != '/') temporary = "/tmp";
  const int length = snprintf(place->folder, sizeof place->folder, "%s/rill-compile-XXXXXX", temporary);
  if (length >= (int)sizeof place->folder) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (mkdtemp(place->folder) == NULL) return false;
  (void)snprintf(place->include, sizeof place->include, "%s/include", place->folder);
  (void)snprintf(place->source, sizeof place->source, "%s/kernels.cpp", place->folder);
  (void)snprintf(place->image, sizeof place->image, "%s/kernels.so", place->folder);
  (void)snprintf(place->log, sizeof place->log, "%s/log", place->folder);
  return true;
}

static bool write_files(const struct place *place, const struct rill__compile *request) {
  char before[512];
  (void)snprintf(before, sizeof before, "#include <rill/device/kernel.h>\n#line 1 \"%.400s\"\n", request->label);
  bool written = mkdir(place->include, 0700) == 0;
  for (size_t i = 0; i < request->header_count && written; i++) {
    written = write_header(place->folder, &request->headers[i]);
  }
  return written && write_text(place->source, before, request->source, "\n");
}

/* Returns the words of the command in an array for the caller to free, or NULL. */
static const char **make_words(const struct command *command, const struct place *place,
                               const struct rill__compile *request, const char *march) {
  const char **words = calloc((size_t)command->count + FLAGS + request->definition_count + OTHER_WORDS, sizeof *words);
  if (words == NULL) return NULL;
  size_t n = 0;
  words[n++] = command->path;
  for (int i = 1; i < command->count; i++) words[n++] = command->words[i];
  for (size_t i = 0; i < FLAGS; i++) words[n++] = flags[i];
  if (march[0] != '\0') words[n++] = march;
  words[n++] = request->standard == 20 ? "-std=c++20" : "-std=c++17";
  words[n++] = may_synchronize(request) ? "-DRILL_LOOPS=0" : "-DRILL_LOOPS=1";
  words[n++] = "-DRILL_STACKS_LATER=1";
  if (!may_have_helpers(request)) words[n++] = "-DRILL_HELPERS_READ_INDEX=0";
  words[n++] = request->debug ? "-g" : "-Wl,-S"; /* symbols are kept: symbols.c finds variables by them */
  for (size_t i = 0; i < request->definition_count; i++) words[n++] = request->definitions[i];
  words[n++] = "-I";
  words[n++] = place->include;
  words[n++] = "-o";
  words[n++] = place->image;
  words[n++] = place->source;
  return words;
}

/* Stores the kernels' stack requirement in the image.  If the requirement is unbounded, returns false and appends the
 * reason to the log.  If the compiler wrote no stack sizes, leaves the image unchanged. */
static bool note_stacks(const char *folder, struct rill__compiled *result) {
  enum { MAX_SIZES = 1 << 24 };
  static const char *const names[] = { "kernels.su", "kernels.so-kernels.su" }; /* names used by clang and by gcc */
  char path[PATH_MAX], why[256] = "";
  size_t size = 0;
  char *sizes = NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && sizes == NULL; i++) {
    if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path)
      sizes = read_whole_file(path, MAX_SIZES, &size);
  }
  uint64_t need = 0;
  const bool bounded = sizes == NULL || rill__cpu_stacks_read(sizes, &need, why, sizeof why);
  free(sizes);
  if (bounded) {
    rill__cpu_stacks_write(result->image, result->size, need);
    return true;
  }
  char *log = NULL;
  if (asprintf(&log, "%s%s\n", result->log != NULL ? result->log : "", why) < 0) log = NULL;
  if (log != NULL) {
    free(result->log);
    result->log = log;
  }
  free(result->image);
  result->image = NULL;
  return false;
}

/* Reads the compiler's output.  Returns OK without an image if the source has errors. */
static rill_status take_image(const struct place *place, const char *compiler, int ended, const char *target,
                              struct rill__compiled *result) {
  RILL_REQUIRE(ended < 128, RILL_ERROR_BACKEND, "%s was killed by signal %d", compiler, ended - 128);
  RILL_REQUIRE(ended != 126 && ended != 127, RILL_ERROR_BACKEND,
               "%s exited with status %d: one of its programs cannot be run" RILL_HINT "see rill_compile_log for more",
               compiler, ended);
  const bool has_image = access(place->image, F_OK) == 0;
  const bool has_log = result->log != NULL && result->log[0] != '\0';
  if (ended > 0 || (ended == STATUS_UNKNOWN && !has_image && has_log)) return RILL_OK;
  RILL_REQUIRE(has_image, RILL_ERROR_BACKEND, "%s wrote no output and exited with %s", compiler,
               ended == 0 ? "status 0" : "a status that is unknown because this program handles or ignores SIGCHLD");
  result->image = read_whole_file(place->image, SIZE_MAX - 1, &result->size);
  RILL_REQUIRE(result->image != NULL, errno == ENOMEM ? RILL_ERROR_OUT_OF_MEMORY : RILL_ERROR_BACKEND,
               "reading the output of %s: %s", compiler, strerror(errno));
  const char *fault = rill__cpu_image_fault(result->image, result->size);
  if (fault == NULL && !note_stacks(place->folder, result)) return RILL_OK;
  if (fault == NULL && rill__cpu_seal(&result->image, &result->size, target)) return RILL_OK;
  free(result->image);
  result->image = NULL;
  if (fault == NULL) {
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for an image of %zu bytes", result->size);
  }
  return rill__fail(RILL_ERROR_BACKEND, "%s wrote %zu bytes that cannot be loaded: %s", compiler, result->size, fault);
}

static rill_status compile_in(const struct place *place, struct rill__device *device,
                              const struct rill__compile *request, struct rill__compiled *result) {
  enum { MAX_LOG = 1 << 20 };
  struct command command;
  char march[80] = "";
  size_t size = 0;
  find_compiler(&command);
  RILL_REQUIRE(command.count != 0, RILL_ERROR_BACKEND, "the C++ compiler for %s no longer exists", device->name);
  RILL_REQUIRE(write_files(place, request), RILL_ERROR_BACKEND, "writing the source to %s: %s", place->folder,
               strerror(errno));
  if (rill__cpu_x86_level() != 0) (void)snprintf(march, sizeof march, "-march=%.64s", device->info.arch);
  const char **words = make_words(&command, place, request, march);
  RILL_REQUIRE(words != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a compiler's options");
  const int ended = run_command(words, command.path, place->folder, place->log);
  free(words);
  RILL_REQUIRE(ended != DID_NOT_RUN, RILL_ERROR_BACKEND, "running %s: %s", command.path, strerror(errno));
  result->log = read_whole_file(place->log, MAX_LOG, &size);
  return take_image(place, command.path, ended, device->info.arch, result);
}

rill_status rill__cpu_compile(struct rill__device *device, const struct rill__compile *request,
                              struct rill__compiled *result) {
  struct place *place = malloc(sizeof *place);
  RILL_REQUIRE(place != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu bytes of file names", sizeof *place);
  rill_status status = RILL_OK;
  if (!make_place(place)) {
    status = rill__fail(RILL_ERROR_BACKEND, "creating a folder for the compiler (%.200s): %s", place->folder,
                        strerror(errno));
  } else {
    status = compile_in(place, device, request, result);
    (void)nftw(place->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  }
  free(place);
  return status;
}
