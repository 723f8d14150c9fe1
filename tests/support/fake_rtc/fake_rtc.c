#include "fake_rtc.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- programs ---- */

static char **copy_texts(const char *const *texts, int count) {
  char **copies = calloc((size_t)count + 1, sizeof *copies);
  for (int i = 0; i < count && copies != NULL; i++) copies[i] = strdup(texts[i]);
  return copies;
}

static void free_texts(char **texts, int count) {
  for (int i = 0; i < count && texts != NULL; i++) free(texts[i]);
  free(texts);
}

int rtc_create(struct rtc_program **out, const char *source, const char *name, int count, const char *const *headers,
               const char *const *names) {
  if (out == NULL || source == NULL || count < 0 || (count > 0 && (headers == NULL || names == NULL)))
    return RTC_BAD_INPUT;
  struct rtc_program *program = calloc(1, sizeof *program);
  if (program == NULL) return RTC_NO_MEMORY;
  program->source = strdup(source);
  program->name = strdup(name != NULL ? name : "default_program");
  program->headers = copy_texts(headers, count);
  program->names = copy_texts(names, count);
  program->count = count;
  *out = program;
  rtc_count(1);
  return RTC_OK;
}

int rtc_destroy(struct rtc_program **program) {
  if (program == NULL || *program == NULL) return RTC_BAD_PROGRAM;
  free((*program)->source);
  free((*program)->name);
  free_texts((*program)->headers, (*program)->count);
  free_texts((*program)->names, (*program)->count);
  free((*program)->log);
  free((*program)->kernels);
  free(*program);
  *program = NULL;
  rtc_count(-1);
  return RTC_OK;
}

/* ---- compiling ---- */

static bool write_text(const char *folder, const char *name, const char *first, const char *text) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  for (char *at = path + strlen(folder) + 1; *at != '\0'; at++) {
    if (*at != '/') continue;
    *at = '\0';
    (void)mkdir(path, 0700);
    *at = '/';
  }
  FILE *file = fopen(path, "we");
  if (file == NULL) return false;
  (void)fprintf(file, "%s%s", first, text);
  return fclose(file) == 0;
}

static char *read_text(const char *folder, const char *name) {
  char path[1024];
  char *text = NULL;
  size_t size = 0;
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) return NULL;
  if (getdelim(&text, &size, '\0', file) < 0) {
    free(text);
    text = NULL;
  }
  (void)fclose(file);
  return text;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place) {
  (void)about, (void)kind, (void)place;
  return remove(path);
}

/* The preprocessor's exit status; its output and its words go into files of the folder. */
static int run_preprocessor(const char *folder, const char *const *words, int count) {
  char include[600], source[600], output[600], log[600];
  (void)snprintf(include, sizeof include, "-I%s", folder);
  (void)snprintf(source, sizeof source, "%s/source.cpp", folder);
  (void)snprintf(output, sizeof output, "%s/output", folder);
  (void)snprintf(log, sizeof log, "%s/log", folder);
  const char **all = calloc((size_t)count + 12, sizeof *all);
  int n = 0;
  all[n++] = "c++";
  all[n++] = "-E";
  all[n++] = "-P";
  for (int i = 0; i < count; i++) all[n++] = words[i];
  all[n++] = include;
  all[n++] = "-o";
  all[n++] = output;
  all[n++] = source;
  const pid_t process = fork();
  if (process == 0) {
    const int file = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0)
      (void)execvp(all[0], (char *const *)(void *)all);
    _exit(127);
  }
  int status = -1;
  (void)waitpid(process, &status, 0);
  free(all);
  return status;
}

/* Appends the names in "RILL_KERNEL(name, ..." and "RILL_KERNEL_BOUNDED(threads, name, ...". */
static char *find_kernels(const char *text) {
  char *found = calloc(1, strlen(text) + 1);
  for (const char *at = strstr(text, "RILL_KERNEL"); at != NULL && found != NULL; at = strstr(at + 1, "RILL_KERNEL")) {
    const char *name = at + strlen("RILL_KERNEL");
    if (strncmp(name, "_BOUNDED", 8) == 0) name = strchr(name, ',');
    if (name == NULL) break;
    name += 1 + strspn(name + 1, " ");
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    (void)strncat(found, name, length);
    (void)strcat(found, "\n"); /* there is room: the text has at least a comma or a bracket */
  }
  return found;
}

int rtc_preprocess(struct rtc_program *program, const char *const *words, int count) {
  char folder[] = "/tmp/fake-rtc-XXXXXX", first[512];
  if (mkdtemp(folder) == NULL) return RTC_NO_MEMORY;
  (void)snprintf(first, sizeof first, "#line 1 \"%.400s\"\n", program->name);
  for (int i = 0; i < program->count; i++) (void)write_text(folder, program->names[i], "", program->headers[i]);
  (void)write_text(folder, "rill/device/on_host.h", "", ""); /* RILL_KERNEL stays what it is */
  (void)write_text(folder, "source.cpp", first, program->source);
  const int status = run_preprocessor(folder, words, count);
  free(program->log);
  free(program->kernels);
  program->log = read_text(folder, "log");
  program->kernels = NULL;
  if (status == 0) {
    char *output = read_text(folder, "output");
    program->kernels = find_kernels(output != NULL ? output : "");
    free(output);
  }
  (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  return status == 0 ? RTC_OK : RTC_HAS_ERRORS;
}
