/* backends/gpu/library.c: the search for a vendor's library (C1.9), with folders of this test in place of /opt.
 *
 * Each test runs in its own process, because a library stays loaded. RILL_TEST_OLD and RILL_TEST_NEW are the files of
 * two runtimes. The older one has a soname that ends in 6, the newer one in 7, and the loader finds the newer one. */
#include "backends/gpu/gpu.h"
#include "fault/children.h"
#include "support/testing.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool set_user_id; /* replaces the loader's view of the program */
char *__wrap_secure_getenv(const char *name);
char *__wrap_secure_getenv(const char *name) { return set_user_id ? NULL : getenv(name); }

/* ---- folders ---- */

static char root[64], why[1024], path[512];

static const char *in_root(const char *name) {
  (void)snprintf(path, sizeof path, "%s/%s", root, name);
  return path;
}

static int remove_one(const char *name, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(name);
}
static void remove_root(void) { (void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

static void begin(void) {
  (void)snprintf(root, sizeof root, "/tmp/rill-library-XXXXXX");
  assert_non_null(mkdtemp(root));
  assert_int_equal(atexit(remove_root), 0);
  assert_int_equal(unsetenv("TEST_PATH"), 0);
}

/* Adds a folder with an empty lib/. */
static void add_folder(const char *folder) {
  assert_int_equal(mkdir(in_root(folder), 0700), 0);
  (void)snprintf(path, sizeof path, "%s/%s/lib", root, folder);
  assert_int_equal(mkdir(path, 0700), 0);
}

static void add_library(const char *folder, const char *name, const char *variable) {
  (void)snprintf(path, sizeof path, "%s/%s/lib/%s", root, folder, name);
  assert_int_equal(symlink(getenv(variable), path), 0);
}

static void add_broken_library(const char *folder, const char *name) {
  (void)snprintf(path, sizeof path, "%s/%s/lib/%s", root, folder, name);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fclose(file), 0);
}

/* ---- the search ---- */

/* Sonames that are not installed on any machine, so that the loader finds none of them. */
static const char *const names[] = { "librill_test.so.7", "librill_test.so.6", NULL };
static const char *const variables[] = { "TEST_PATH", "TEST_HOME", NULL };
static const char *const none[] = { NULL };
static const char *const sonames[] = { "libamdhip64.so.7", "libamdhip64.so.6", NULL };

static void *look(void) {
  static char folders[80];
  (void)snprintf(folders, sizeof folders, "%s/vendor*", root);
  const struct gpu_places places = { names, none, variables, folders };
  return gpu_library_open(&places, why, sizeof why);
}

static void assert_found_in(void *library, const char *folder) {
  if (library == NULL) fail_msg("%s", why);
  assert_string_equal(why, "");
  (void)snprintf(path, sizeof path, "%s/%s/lib/", root, folder);
  if (strncmp(gpu_library_path(library), path, strlen(path)) != 0)
    fail_msg("%s is not in %s", gpu_library_path(library), path);
}

static void takes_what_the_process_has_loaded(void) {
  void *loaded = dlopen(getenv("RILL_TEST_OLD"), RTLD_NOW | RTLD_LOCAL);
  assert_non_null(loaded);
  const struct gpu_places places = { sonames, none, none, NULL };
  assert_ptr_equal(gpu_library_open(&places, why, sizeof why), loaded);
  assert_null(dlopen(sonames[0], RTLD_NOW | RTLD_NOLOAD));
  void *newer = dlopen(sonames[0], RTLD_NOW | RTLD_LOCAL); /* the loader can find the newer one */
  assert_non_null(newer);
  assert_ptr_not_equal(newer, loaded);
}

static void takes_what_is_loaded_under_another_name(void) {
  static const char *const other_names[] = { "libamdhip64.so.6", NULL };
  void *loaded = dlopen(getenv("RILL_TEST_OLD"), RTLD_NOW | RTLD_LOCAL);
  assert_non_null(loaded);
  const struct gpu_places places = { names, other_names, none, NULL };
  assert_ptr_equal(gpu_library_open(&places, why, sizeof why), loaded);
}

static void opens_nothing_under_another_name(void) {
  static const char *const other_names[] = { "libamdhip64.so.7", NULL };
  const struct gpu_places places = { names, other_names, none, NULL };
  assert_null(gpu_library_open(&places, why, sizeof why));
}

static void the_soname_comes_before_the_environment(void) {
  begin();
  add_folder("mine");
  add_library("mine", sonames[1], "RILL_TEST_OLD");
  assert_int_equal(setenv("TEST_PATH", in_root("mine"), 1), 0);
  const struct gpu_places places = { sonames, none, variables, NULL };
  assert_string_equal(gpu_library_path(gpu_library_open(&places, why, sizeof why)), getenv("RILL_TEST_NEW"));
}

static void the_environment_comes_before_folders(void) {
  begin();
  add_folder("mine");
  add_folder("vendor-9.0.0");
  add_library("mine", names[1], "RILL_TEST_OLD");
  add_library("vendor-9.0.0", names[0], "RILL_TEST_NEW");
  assert_int_equal(setenv("TEST_PATH", in_root("nothing"), 1), 0);
  assert_int_equal(setenv("TEST_HOME", in_root("mine"), 1), 0);
  assert_found_in(look(), "mine");
}

static void a_set_user_id_program_ignores_the_environment(void) {
  begin();
  add_folder("mine");
  add_library("mine", names[0], "RILL_TEST_NEW");
  assert_int_equal(setenv("TEST_PATH", in_root("mine"), 1), 0);
  set_user_id = true;
  assert_null(look());
  assert_non_null(strstr(why, "TEST_PATH: ignored in a set-user-id program; TEST_HOME: not set; "));
}

static void the_newest_folder_comes_first(void) {
  static const char *const folders[] = { "vendor-7.2.0", "vendor-6.10.1", "vendor-6.4.3", "vendor" };
  begin();
  for (size_t i = 0; i < 4; i++) {
    static const size_t order[] = { 1, 3, 2, 0 };
    add_folder(folders[order[i]]);
    add_broken_library(folders[order[i]], names[0]);
  }
  assert_null(look());
  const char *at = why;
  for (size_t i = 0; i < 4; i++) {
    char place[64];
    (void)snprintf(place, sizeof place, "%.24s/lib/%s", folders[i], names[0]);
    at = strstr(at, place);
    if (at == NULL) fail_msg("%s is not where it should be: %s", place, why);
  }
}

static void the_next_folder_is_tried(void) {
  begin();
  add_folder("vendor-7.2.0");
  add_folder("vendor-6.10.1");
  add_broken_library("vendor-7.2.0", names[0]);
  add_library("vendor-6.10.1", names[1], "RILL_TEST_OLD");
  assert_found_in(look(), "vendor-6.10.1");
}

static void names_all_that_was_tried(void) {
  char expected[512];
  begin();
  assert_null(look());
  (void)snprintf(expected, sizeof expected,
                 "%s, %s: cannot open shared object file: No such file or directory; TEST_PATH, TEST_HOME: not set; "
                 "%s/vendor*: no such folder",
                 names[0], names[1], root);
  assert_string_equal(why, expected);
  add_folder("vendor-1");
  add_folder("vendor-2");
  add_broken_library("vendor-2", names[1]);
  assert_int_equal(setenv("TEST_HOME", in_root("nothing"), 1), 0);
  assert_null(look());
  (void)snprintf(expected, sizeof expected,
                 "TEST_PATH: not set; %s/nothing/lib: has none of them; %s/vendor-2/lib/%s: file too short; "
                 "%s/vendor-1/lib: has none of them",
                 root, root, names[1], root);
  assert_non_null(strstr(why, expected));
}

static void a_long_text_is_cut(void) {
  const struct gpu_places places = { names, none, variables, NULL };
  char all[512], text[512];
  assert_null(gpu_library_open(&places, all, sizeof all));
  for (size_t size = 40; size <= strlen(all) + 1; size++) {
    memset(text, '#', sizeof text);
    assert_null(gpu_library_open(&places, text, size));
    assert_true(strlen(text) < size);
    assert_int_equal(text[size], '#');
    const bool cut = size <= strlen(all);
    assert_string_equal(text + strlen(text) - 3, cut ? "..." : all + strlen(all) - 3);
    assert_memory_equal(text, all, size - sizeof "...");
  }
}

static void finds_companions_in_the_same_folder(void) {
  begin();
  add_folder("vendor-7.2.0");
  add_library("vendor-7.2.0", names[0], "RILL_TEST_NEW");
  add_library("vendor-7.2.0", "librill_companion.so.7", "RILL_TEST_OLD");
  void *library = look();
  assert_found_in(library, "vendor-7.2.0");
  void *companion = gpu_library_beside(library, "librill_companion.so.7");
  assert_found_in(companion, "vendor-7.2.0");
  assert_ptr_equal(gpu_library_beside(library, "libamdhip64.so.6"), companion); /* which is already loaded */
  assert_null(gpu_library_beside(library, "librill_companion.so.6"));
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(takes_what_the_process_has_loaded),
    MODE(takes_what_is_loaded_under_another_name),
    MODE(opens_nothing_under_another_name),
    MODE(the_soname_comes_before_the_environment),
    MODE(the_environment_comes_before_folders),
    MODE(a_set_user_id_program_ignores_the_environment),
    MODE(the_newest_folder_comes_first),
    MODE(the_next_folder_is_tried),
    MODE(names_all_that_was_tried),
    MODE(a_long_text_is_cut),
    MODE(finds_companions_in_the_same_folder),
  };
  return RUN_MODES("the search for a library", argc, argv, modes);
}
