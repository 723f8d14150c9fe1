/* Vendor libraries that lack functions.  Without one that is required there is no device, and the reason names it;
 * without an optional one everything works, or says UNSUPPORTED with the reason (C1.8, C1.9). */
#include "children.h"
#include "tour.h"

#include <dlfcn.h>
#include <stdio.h>

/* ---- in the child ---- */

static void check_unsupported(const char *what) {
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  if (error.status != RILL_ERROR_UNSUPPORTED) fail_msg("%s: %s", what, rill_last_error_text());
  if (strlen(error.message) < 20) fail_msg("%s: no reason: %s", what, error.message);
  (void)printf("unsupported: %s: %s\n", what, rill_last_error_text());
}

/* Checks that fill patterns are right, in whatever way they are written. */
static void check_fills(void) {
  static const unsigned char pattern[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
  unsigned char host[256], *memory = NULL;
  rill_stream stream;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_alloc(vendor.device, sizeof host, RILL_MEMORY_DEVICE, (void **)&memory));
  for (size_t size = 1; size <= sizeof pattern; size *= 2) {
    assert_ok(rill_fill_async(stream, memory, pattern, size, sizeof host / size));
    assert_ok(rill_copy_async(stream, host, memory, sizeof host));
    assert_ok(rill_stream_synchronize(stream));
    for (size_t i = 0; i < sizeof host; i++) assert_int_equal(host[i], pattern[i % size]);
    memset(host, 0, sizeof host);
    assert_ok(rill_copy_async(stream, memory, host, sizeof host));
    assert_ok(rill_fill_2d_async(stream, memory + 16, 48, pattern, size, 32 / size, 5));
    assert_ok(rill_copy_async(stream, host, memory, sizeof host));
    assert_ok(rill_stream_synchronize(stream));
    for (size_t i = 0; i < sizeof host; i++) {
      const bool inside = i >= 16 && (i - 16) / 48 < 5 && (i - 16) % 48 < 32;
      assert_int_equal(host[i], inside ? pattern[(i - 16) % 48 % size] : 0);
    }
  }
  assert_ok(rill_free(memory));
  assert_ok(rill_stream_release(stream));
}

static void check_ids(void) {
  rill_stream streams[2];
  uint64_t ids[2];
  for (int i = 0; i < 2; i++) {
    assert_ok(rill_stream_create(vendor.device, NULL, &streams[i]));
    assert_ok(rill_stream_id(streams[i], &ids[i]));
  }
  assert_int_not_equal(ids[0], ids[1]);
  for (int i = 0; i < 2; i++) assert_ok(rill_stream_release(streams[i]));
}

static void no_call(void *user, rill_status status) { (void)user, (void)status; }

/* Some functions are only for captures. */
static bool check_captures(void) {
  rill_stream stream;
  rill_event event;
  bool capturing = true;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  const bool started = native_begin_capture(stream);
  if (started) {
    if (rill_stream_record_event(stream, event, RILL_EVENT_EXTERNAL) != RILL_OK) check_unsupported("external record");
    if (rill_stream_host_call(stream, no_call, NULL) != RILL_OK) check_unsupported("captured host call");
    native_end_capture(stream);
  }
  assert_ok(rill_stream_is_capturing(stream, &capturing));
  assert_false(capturing);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(stream));
  return started;
}

/* Features that a missing function makes unavailable; other functions have replacements. */
static const struct {
  const char *field, *unsupported;
} needed[] = {
  { "managed_alloc", "alloc_managed" },
  { "host_register", "register_host" },
  { "host_unregister", "register_host" },
  { "prefetch", "prefetch" },
  { "prefetch", "held_prefetch" },
  { "advise", "advise" },
  { "advise", "advise_host" },
  { "device_can_access_peer", "enable_peer" },
  { "enable_peer", "enable_peer" },
  { "disable_peer", "enable_peer" },
  { "event_record_with_flags", "external record" },
  { "launch_host_function", "captured host call" },
  { "graph_upload", "graph_upload" },
  { "launch_extended", "kernel_active_clusters" },
  { "launch_extended", "kernel_cooperative_blocks" },
  { "launch_extended", "launch_cooperative" },
  { "launch_extended", "launch_cluster_attributes" },
  { "launch_extended", "launch_large_cluster" },
  { "launch_cooperative", "kernel_cooperative_blocks" },
  { "launch_cooperative", "launch_cooperative" },
  { "cluster_limit", "kernel_active_clusters" },
  { "cluster_limit", "launch_cluster_attributes" },
  { "cluster_limit", "launch_large_cluster" },
  { "active_clusters", "kernel_active_clusters" },
  { "active_clusters", "launch_cluster_attributes" },
  { "active_clusters", "launch_large_cluster" },
};

/* Only for functions that this vendor has. */
static bool is_hidden(const char *field) {
  for (size_t i = 0; i < vendor_function_count; i++) {
    if (strcmp(vendor_functions[i].field, field) == 0 && vendor_functions[i].name != NULL) return !vendor_has(field);
  }
  return false;
}

/* Prints which features are unsupported, and which must be. */
static void works(void) {
  static struct tour tour;
  vendor_begin();
  for (size_t i = 0; i < step_count; i++) {
    if (!step_applies(&steps[i])) continue;
    if (steps[i].run(&tour) != RILL_OK) check_unsupported(steps[i].name);
  }
  if (tour.spoiled != NULL) fail_msg("%s gave something wrong", tour.spoiled);
  assert_int_equal(atomic_load(&tour.called), 2);
  check_fills();
  check_ids();
  const bool captures = check_captures();
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    const bool of_captures =
        strstr(needed[i].unsupported, "external") != NULL || strstr(needed[i].unsupported, "captured") != NULL;
    if (of_captures && !captures) continue;
    if (is_hidden(needed[i].field)) (void)printf("to be unsupported: %s:\n", needed[i].unsupported);
  }
}

/* RILL_TEST_FUNCTION is what the reason has to name. */
static void has_no_device(void) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  char name[16];
  vendor_names();
  (void)snprintf(name, sizeof name, "%s:0", vendor.backend);
  assert_fails(rill_device_open(name, &device), RILL_ERROR_NO_DEVICE);
  assert_says(getenv("RILL_TEST_FUNCTION"));
  if (getenv("RILL_TEST_LIBRARY") != NULL) assert_says(vendor.cuda ? "libcuda.so.1" : "libamdhip64.so.");
  assert_true(rill_device_equal(device, RILL_NULL_DEVICE));
  assert_ok(rill_device_open("cpu", &device));
  assert_ok(rill_device_get_info(device, &info));
  assert_ok(rill_device_synchronize(device));
}

/* ---- in the parent ---- */

static unsigned check_child(const char *what, const struct child *child) {
  if (child->exit_code == 0) return 0;
  print_error("%s: %s\n%s\n", what, child_end(child), child->output);
  return 1;
}

/* Is there a line that begins with the two? */
static bool says(const struct child *child, const char *word, const char *what) {
  const size_t length = strlen(word);
  for (const char *at = strstr(child->output, word); at != NULL; at = strstr(at + length, word)) {
    const bool begins = at == child->output || at[-1] == '\n';
    if (begins && strncmp(at + length, what, strlen(what)) == 0) return true;
  }
  return false;
}

static unsigned count(const struct child *child, const char *word) {
  unsigned found = 0;
  for (const char *at = strstr(child->output, word); at != NULL; at = strstr(at + 1, word)) found++;
  return found;
}

/* Only features that need a missing function are unsupported, `f` among them. */
static unsigned check_list(const struct vendor_function *f, const struct child *child) {
  unsigned unsupported = 0;
  bool right = true;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    const bool is_missing = says(child, "to be unsupported: ", needed[i].unsupported);
    right = right && says(child, "unsupported: ", needed[i].unsupported) == is_missing;
    right = right && (is_missing || strcmp(needed[i].field, f->field) != 0);
    bool counted = false; /* several functions may be needed for one */
    for (size_t k = 0; k < i; k++) counted = counted || strcmp(needed[k].unsupported, needed[i].unsupported) == 0;
    unsupported += is_missing && !counted;
  }
  if (right && count(child, "\nunsupported: ") + (strncmp(child->output, "unsupported: ", 13) == 0) == unsupported)
    return 0;
  print_error("without %s, what needs a missing function is to be unsupported, and nothing else:\n%s\n", f->name,
              child->output);
  return 1;
}

/* HIP before 6 has one way only to learn a device's architecture. */
static bool is_the_only_way(const struct vendor_function *f) {
  static const char *const libraries[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  if (vendor.cuda || strcmp(f->field, "device_properties_r0000") != 0) return false;
  void *library = NULL;
  for (int i = 0; i < 3 && library == NULL; i++) library = dlopen(libraries[i], RTLD_NOW);
  assert_non_null(library);
  const bool only = dlsym(library, "hipGetDevicePropertiesR0600") == NULL;
  (void)dlclose(library);
  return only;
}

static void each_function_may_be_missing(void) {
  unsigned failed = 0;
  for (size_t i = 0; i < vendor_function_count; i++) {
    static struct child child;
    const struct vendor_function *f = &vendor_functions[i];
    char missing[96], named[96];
    if (f->name == NULL) continue;
    (void)snprintf(missing, sizeof missing, "RILL_FAKE_MISSING=%s", f->name);
    (void)snprintf(named, sizeof named, "RILL_TEST_FUNCTION=%s", f->name);
    const char *const variables[] = { missing, named, "RILL_TEST_LIBRARY=1" };
    const bool required = f->required || is_the_only_way(f);
    run_child(required ? "has_no_device" : "works", variables, f->required ? 3 : 2, &child);
    const unsigned bad = check_child(missing, &child);
    failed += bad != 0 ? 1 : required ? 0 : check_list(f, &child);
  }
  assert_int_equal(failed, 0);
}

static void all_optional_functions_may_be_missing(void) {
  static struct child child;
  static char missing[2048] = "RILL_FAKE_MISSING=";
  for (size_t i = 0; i < vendor_function_count; i++) {
    const struct vendor_function *f = &vendor_functions[i];
    /* One of the two ways to learn a HIP device's architecture must be there. */
    if (f->name == NULL || f->required || strcmp(f->field, "device_properties_r0000") == 0) continue;
    (void)snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s,", f->name);
  }
  const char *const variables[] = { missing };
  run_child("works", variables, 1, &child);
  assert_int_equal(check_child(missing, &child), 0);
}

/* HIP: no way to learn what the device is. */
static void a_query_for_the_architecture_is_required(void) {
  static struct child child;
  if (vendor.cuda) return;
  const char *const variables[] = { "RILL_FAKE_MISSING=hipGetDeviceProperties,hipGetDevicePropertiesR0600",
                                    "RILL_TEST_FUNCTION=hipGetDeviceProperties" };
  run_child("has_no_device", variables, 2, &child);
  assert_int_equal(check_child(variables[0], &child), 0);
}

static void old_versions_work(void) {
  static const char *const cuda[] = { "11080", "12000", "12040", "13000" };
  static const char *const hip[] = { "50221153", "50731921", "60443484", "70253211" };
  unsigned failed = 0;
  for (int i = 0; i < 4; i++) {
    static struct child child;
    char version[64];
    (void)snprintf(version, sizeof version, "RILL_FAKE_VERSION=%s", vendor.cuda ? cuda[i] : hip[i]);
    const char *const variables[] = { version };
    run_child("works", variables, 1, &child);
    failed += check_child(version, &child);
  }
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  static const struct mode modes[] = { MODE(works), MODE(has_no_device) };
  static const struct test tests[] = { TEST(each_function_may_be_missing), TEST(all_optional_functions_may_be_missing),
                                       TEST(a_query_for_the_architecture_is_required), TEST(old_versions_work) };
  if (argc > 1) return RUN_MODES("old drivers", argc, argv, modes);
  vendor_names();
  return RUN_ONCE("old drivers", tests);
}
