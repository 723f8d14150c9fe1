/* rill_bundle_unload */
#include "support/testing.h"

#include "gate.rill.h"
#include "launch.rill.h"

#include <rill/bundle.h>

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

/* A bundle, with its strings and arguments, in memory that is later unmapped, like that of a library. */
struct plugin {
  rill_bundle bundle;
  rill_bundle_kernel *kernels;
  char *text;
};

static struct plugin open_plugin(void) {
  enum { NAME = 64, ARGS = 8 };
  const size_t count = launch_bundle.kernel_count;
  struct plugin plugin = { .bundle = launch_bundle };
  plugin.kernels = calloc(count, sizeof *plugin.kernels);
  plugin.text = calloc(count, NAME);
  for (size_t i = 0; i < count; i++) {
    const rill_bundle_kernel *from = &launch_bundle.kernels[i];
    rill_bundle_arg *args = malloc(from->arg_count * sizeof *args + 1);
    char *name = plugin.text + i * NAME;
    assert_true(strlen(from->name) < NAME);
    memcpy(name, from->name, strlen(from->name));
    if (from->arg_count > 0) memcpy(args, from->args, from->arg_count * sizeof *args);
    plugin.kernels[i] = (rill_bundle_kernel){ .name = name, .args = args, .arg_count = from->arg_count };
  }
  plugin.bundle.kernels = plugin.kernels;
  return plugin;
}

static void close_plugin(struct plugin *plugin) {
  for (size_t i = 0; i < plugin->bundle.kernel_count; i++) free((void *)(uintptr_t)plugin->kernels[i].args);
  free(plugin->kernels);
  free(plugin->text);
  memset(&plugin->bundle, 0xa5, sizeof plugin->bundle);
}

static void check_store(rill_stream stream, uint32_t value) {
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], value);
}

/* ---- misuse ---- */

static void refuses_invalid_bundles(void) {
  rill_bundle bundle = gate_bundle;
  assert_fails(rill_bundle_unload(NULL), RILL_ERROR_INVALID_ARGUMENT);
  bundle.magic = 0;
  assert_fails(rill_bundle_unload(&bundle), RILL_ERROR_INVALID_ARGUMENT);
}

static void does_nothing_if_it_is_not_loaded(void) {
  rill_bundle bundle = gate_bundle;
  for (int i = 0; i < 2; i++) assert_ok(rill_bundle_unload(&bundle));
}

/* ---- what is released ---- */

/* A reference whose cached kernels were unloaded looks them up again. */
static void references_load_the_bundle_again(void) {
  rill_stream stream = new_stream("stream");
  rill_bundle bundle = launch_bundle;
  rill_kernel_ref ref = { &bundle, "store", { 0, 0 } };
  uint32_t *out = dut.memory;
  uint64_t last = 0;
  for (uint32_t i = 1; i <= 3; i++) {
    assert_ok(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(i, out)));
    check_store(stream, i);
    const uint64_t now = ref.cache[0] != 0 ? ref.cache[0] : ref.cache[1];
    assert_int_not_equal(now, last);
    last = now;
    assert_ok(rill_bundle_unload(&bundle));
  }
}

/* A bundle that is later placed at the same address is treated as another bundle. */
static void forgets_the_address(void) {
  rill_stream stream = new_stream("stream");
  rill_bundle bundle = gate_bundle;
  rill_kernel_ref increment = { &bundle, "increment", { 0, 0 } }, store = { &bundle, "store", { 0, 0 } };
  uint32_t *out = dut.memory;
  assert_fails(rill_stream_launch_ref(stream, &store, &one_thread, RILL_ARGS(3u, out)), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_stream_launch_ref(stream, &increment, &one_thread, RILL_ARGS(out)));
  assert_ok(rill_bundle_unload(&bundle));
  bundle = launch_bundle;
  assert_fails(
      rill_stream_launch_ref(stream, &(rill_kernel_ref){ &bundle, "increment", { 0, 0 } }, &one_thread, RILL_ARGS(out)),
      RILL_ERROR_NOT_FOUND);
  assert_ok(rill_stream_launch_ref(stream, &store, &one_thread, RILL_ARGS(3u, out)));
  check_store(stream, 3);
  assert_ok(rill_bundle_unload(&bundle));
}

/* ---- what stays ---- */

/* Modules and kernels that have other references keep working without the memory of the bundle. */
static void objects_that_others_hold_stay_valid(void) {
  rill_stream stream = new_stream("stream");
  struct plugin plugin = open_plugin();
  rill_module module;
  rill_kernel kernel, other = { 1 };
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  uint32_t *out = dut.memory;
  size_t size = 0;
  assert_ok(rill_bundle_preload(dut.device, &plugin.bundle));
  assert_ok(rill_module_load(dut.device, &plugin.bundle, &module));
  assert_ok(rill_module_get_kernel(module, "store", &kernel));
  assert_ok(rill_bundle_unload(&plugin.bundle));
  close_plugin(&plugin);
  assert_ok(rill_stream_launch(stream, kernel, &one_thread, RILL_ARGS(11u, out)));
  check_store(stream, 11);
  assert_ok(rill_kernel_get_info(kernel, &info));
  assert_string_equal(info.name, "store");
  assert_ok(rill_kernel_arg_size(kernel, 0, &size));
  assert_int_equal(size, 4);
  assert_fails(rill_stream_launch(stream, kernel, &one_thread, RILL_ARGS(11u)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_module_get_kernel(module, "none", &other), RILL_ERROR_NOT_FOUND);
  assert_says("store");
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_get_kernel(module, "store", &kernel));
  assert_ok(rill_module_release(module));
  assert_ok(rill_stream_launch(stream, kernel, &one_thread, RILL_ARGS(12u, out)));
  check_store(stream, 12);
  assert_ok(rill_kernel_release(kernel));
}

/* Work that was submitted still completes; the call does not wait for it. */
static void running_work_completes(void) {
  rill_stream stream = new_stream("stream");
  struct plugin plugin = open_plugin();
  char name[] = "store";
  rill_kernel_ref ref = { &plugin.bundle, name, { 0, 0 } };
  uint32_t *out = dut.memory;
  assert_ok(rill_bundle_preload(dut.device, &plugin.bundle)); /* a driver may wait for running kernels to load code */
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(21u, out)));
  assert_ok(rill_bundle_unload(&plugin.bundle));
  close_plugin(&plugin);
  assert_false(is_complete(stream));
  gate_open(gate);
  check_store(stream, 21);
}

/* C3.8: held work keeps its kernel. */
static void held_work_completes(void) {
  rill_stream stream = new_stream("held"), other = new_stream("other");
  rill_event first = new_event("first");
  struct plugin plugin = open_plugin();
  rill_kernel_ref ref = { &plugin.bundle, "store", { 0, 0 } };
  uint32_t *out = dut.memory;
  assert_ok(rill_stream_wait_event(stream, first, 0));
  assert_ok(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(31u, out)));
  assert_ok(rill_bundle_unload(&plugin.bundle));
  close_plugin(&plugin);
  assert_ok(rill_stream_record_event(other, first, 0));
  check_store(stream, 31);
}

static void serves_every_device(void) {
  needs_second_device();
  struct plugin plugin = open_plugin();
  rill_kernel_ref ref = { &plugin.bundle, "store", { 0, 0 } };
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  uint32_t *cells = dut.host, *next = dut.host + 1;
  assert_ok(rill_stream_launch_ref(here, &ref, &one_thread, RILL_ARGS(1u, cells)));
  assert_ok(rill_stream_launch_ref(there, &ref, &one_thread, RILL_ARGS(2u, next)));
  assert_ok(rill_bundle_unload(&plugin.bundle));
  close_plugin(&plugin);
  assert_completes(here);
  assert_completes(there);
  assert_int_equal(dut.host[0], 1);
  assert_int_equal(dut.host[1], 2);
}

/* ---- threads ---- */

static const char *loads_and_unloads(unsigned index, void *shared) {
  rill_bundle *bundle = shared;
  rill_kernel_ref ref = { bundle, "store", { 0, 0 } };
  uint32_t *out = dut.memory + index;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (uint32_t i = 1; i <= 30; i++) {
    if (index % 4 == 0) REQUIRE_OK(rill_bundle_unload(bundle));
    if (index % 4 == 1) REQUIRE_OK(rill_bundle_preload(dut.device, bundle));
    REQUIRE_OK(rill_stream_launch_ref(stream, &ref, &one_thread, RILL_ARGS(i, out)));
  }
  REQUIRE_OK(rill_copy_async(stream, dut.host + index, out, sizeof *out));
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  REQUIRE(dut.host[index] == 30);
  return NULL;
}

/* If the memory stays valid, loads and unloads by many threads do not interfere. */
static void serves_many_threads(void) {
  rill_bundle bundle = launch_bundle;
  run_threads(8, loads_and_unloads, &bundle);
  assert_ok(rill_bundle_unload(&bundle));
}

TESTS_ON_EACH_DEVICE("rill_bundle_unload", TEST(refuses_invalid_bundles), TEST(does_nothing_if_it_is_not_loaded),
                     TEST(references_load_the_bundle_again), TEST(forgets_the_address),
                     TEST(objects_that_others_hold_stay_valid), TEST(running_work_completes), TEST(held_work_completes),
                     TEST(serves_every_device), TEST(serves_many_threads))
