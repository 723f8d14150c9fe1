/* backends/hip/why.c: the reason for which HIP reports no devices, and the target that a device needs. A folder
 * replaces /, with its /dev and /sys. */
#include "backends/gpu/gpu.h"
#include "support/testing.h"

#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534, NAMELESS = 1234567 };

static char root[64], why[1024];

/* ---- a machine ---- */

static int remove_one(const char *name, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(name);
}

static const char *in_root(const char *name) {
  static char path[256];
  (void)snprintf(path, sizeof path, "%s%s", root, name);
  return path;
}

static void make_folder(const char *name) { assert_int_equal(mkdir(in_root(name), 0755), 0); }

static void make_file(const char *name, const char *text) {
  FILE *file = fopen(in_root(name), "we");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void begin(void) {
  static const char *const variables[] = { "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
                                           "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION" };
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) assert_int_equal(unsetenv(variables[i]), 0);
  (void)snprintf(root, sizeof root, "/tmp/rill-why-XXXXXX");
  assert_non_null(mkdtemp(root));
  assert_int_equal(chmod(root, 0755), 0);
  make_folder("/dev");
  make_folder("/dev/dri");
  make_folder("/sys");
  why[0] = '\0';
}

static void end(void) { (void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* Node 0 in the kernel's list is the CPU. */
static void add_list(void) {
  make_folder("/sys/class");
  make_folder("/sys/class/kfd");
  make_folder("/sys/class/kfd/kfd");
  make_folder("/sys/class/kfd/kfd/topology");
  make_folder("/sys/class/kfd/kfd/topology/nodes");
  make_folder("/sys/class/kfd/kfd/topology/nodes/0");
  make_file("/sys/class/kfd/kfd/topology/nodes/0/properties",
            "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\ndrm_render_minor 0\n");
}

static void add_gpu(unsigned node, unsigned target, unsigned minor) {
  char name[80], text[160];
  (void)snprintf(name, sizeof name, "/sys/class/kfd/kfd/topology/nodes/%u", node);
  make_folder(name);
  (void)snprintf(name, sizeof name, "/sys/class/kfd/kfd/topology/nodes/%u/properties", node);
  (void)snprintf(text, sizeof text,
                 "cpu_cores_count 0\nsimd_count 80\nunique_id 18446744073709551615\ngfx_target_version %u\n"
                 "drm_render_minor %u\n",
                 target, minor);
  make_file(name, text);
  (void)snprintf(name, sizeof name, "/dev/dri/renderD%u", minor);
  make_file(name, "");
}

/* Sets up a machine without problems. */
static void add_all(void) {
  make_file("/dev/kfd", "");
  add_list();
  add_gpu(1, 100301, 128);
}

/* ---- the reasons ---- */

static void explain(void) { rill__hip_explain(root, true, 0, why, sizeof why); }

/* Checks the first line of the reason. */
static void assert_reason(const char *expected) {
  why[strcspn(why, "\n")] = '\0';
  assert_string_equal(why, expected);
}

static void assert_detail(const char *expected) {
  const char *at = strstr(why, expected);
  const size_t length = strlen(expected);
  if (at == NULL || at == why || at[-1] != '\n' || (at[length] != '\n' && at[length] != '\0'))
    fail_msg("there is no line \"%s\" in: %s", expected, why);
}

static void a_missing_driver_is_named(void) {
  begin();
  explain();
  assert_detail("no GPU in /sys/class/kfd/kfd/topology/nodes");
  assert_reason("/dev/kfd is missing: there is no AMD GPU, or the kernel's driver, amdgpu, is not loaded");
  end();
}

static void a_container_without_the_device(void) {
  begin();
  add_all();
  assert_int_equal(remove(in_root("/dev/kfd")), 0);
  explain();
  assert_detail("node 1 of the kernel's list is gfx1031; /dev/dri/renderD128: can be opened");
  assert_reason("/dev/kfd is missing, although the kernel's driver is loaded: a container needs --device=/dev/kfd "
                "--device=/dev/dri");
  end();
}

static void a_container_without_render_nodes(void) {
  begin();
  add_all();
  assert_int_equal(remove(in_root("/dev/dri/renderD128")), 0);
  explain();
  assert_detail("/dev/kfd: can be opened");
  assert_reason("/dev/dri/renderD128 is missing: a container needs --device=/dev/dri");
  end();
}

/* Nodes that the container can list but not read. */
static void a_container_that_hides_gpus(void) {
  begin();
  make_file("/dev/kfd", "");
  add_list();
  make_folder("/sys/class/kfd/kfd/topology/nodes/1");
  make_folder("/sys/class/kfd/kfd/topology/nodes/1/properties");
  explain();
  assert_detail("nodes there that cannot be read: 1");
  assert_reason("the kernel lists no GPU in /sys/class/kfd/kfd/topology/nodes that this process may read: a container "
                "needs --device=/dev/dri");
  end();
}

static void no_gpu_in_the_list(void) {
  begin();
  make_file("/dev/kfd", "");
  add_list();
  explain();
  assert_reason("the kernel lists no GPU in /sys/class/kfd/kfd/topology/nodes");
  end();
}

/* Explains `file` as another user without groups, after setting the file's group and mode. */
static void explain_refused(const char *file, gid_t group, mode_t mode) {
  if (geteuid() != 0) skip_because("only root can become another user");
  begin();
  add_all();
  assert_int_equal(chmod(in_root("/dev/kfd"), 0666), 0);
  assert_int_equal(chmod(in_root("/dev/dri/renderD128"), 0666), 0);
  assert_int_equal(chown(in_root(file), 0, group), 0);
  assert_int_equal(chmod(in_root(file), mode), 0);
  gid_t groups[256];
  const int count = getgroups(256, groups);
  assert_true(count >= 0);
  const gid_t own = getegid();
  assert_int_equal(setgroups(0, NULL), 0);
  assert_int_equal(setegid(NOBODY), 0);
  assert_int_equal(seteuid(NOBODY), 0);
  explain();
  assert_int_equal(seteuid(0), 0);
  assert_int_equal(setegid(own), 0);
  assert_int_equal(setgroups((size_t)count, groups), 0);
  end();
}

static void the_missing_group_is_named(void) {
  struct group *group = getgrgid(0);
  char expected[256];
  assert_non_null(group);
  explain_refused("/dev/kfd", 0, 0660);
  (void)snprintf(
      expected, sizeof expected,
      "/dev/kfd is for members of group %s, and this process is not a member: usermod -aG %s USER, then log in again",
      group->gr_name, group->gr_name);
  assert_detail("/dev/kfd: Permission denied");
  assert_reason(expected);
}

static void a_group_without_a_name(void) {
  explain_refused("/dev/dri/renderD128", NAMELESS, 0660);
  assert_reason("/dev/dri/renderD128 is for members of group 1234567, which has no name here, and this process is not "
                "a member: a "
                "container needs --group-add 1234567");
}

/* Joining the group does not help if the group cannot open the file, or if the process is already a member. */
static void the_mode_of_the_file_is_named(void) {
  explain_refused("/dev/kfd", NAMELESS, 0600);
  assert_reason("/dev/kfd cannot be opened: Permission denied (its mode is 0600; a container needs --device=/dev/kfd)");
  why[0] = '\0';
  explain_refused("/dev/kfd", NOBODY, 0060);
  assert_detail("/dev/kfd: can be opened");
}

static void a_gpu_that_the_runtime_does_not_count(void) {
  begin();
  add_all();
  add_gpu(2, 90010, 129);
  add_gpu(3, 90402, 130);
  add_gpu(4, 0, 131);
  assert_int_equal(setenv("HSA_OVERRIDE_GFX_VERSION", "10.3.0", 1), 0);
  explain();
  assert_detail("node 2 of the kernel's list is gfx90a; /dev/dri/renderD129: can be opened");
  assert_detail("HSA_OVERRIDE_GFX_VERSION is \"10.3.0\"");
  assert_reason(
      "the kernel lists gfx1031, gfx90a, gfx942 and a GPU whose target it does not report, whose files can be "
      "opened, and the runtime counts 0: a variable hides GPUs, or this version of the runtime does not "
      "support all of them");
  end();
}

static void a_mask_is_named_only_once(void) {
  begin();
  add_all();
  assert_int_equal(setenv("HIP_VISIBLE_DEVICES", "7", 1), 0);
  assert_int_equal(setenv("GPU_DEVICE_ORDINAL", "3", 1), 0);
  (void)snprintf(why, sizeof why, "the library counts no device; HIP_VISIBLE_DEVICES is \"7\"");
  explain();
  assert_detail("GPU_DEVICE_ORDINAL is \"3\"");
  const char *first = strstr(why, "HIP_VISIBLE_DEVICES");
  assert_non_null(strstr(first, "; the kernel lists gfx1031, "));
  assert_null(strstr(first + 1, "HIP_VISIBLE_DEVICES"));
  end();
}

static void missing_gpus_are_counted(void) {
  begin();
  add_all();
  add_gpu(2, 110501, 129);
  rill__hip_explain(root, true, 2, why, sizeof why);
  assert_string_equal(why, "");
  rill__hip_explain(root, true, 1, why, sizeof why);
  assert_reason("the kernel lists gfx1031 and gfx1151, whose files can be opened, and the runtime counts 1: a variable "
                "hides GPUs, or this version of the runtime does not support all of them");
  end();
}

static void a_missing_runtime_is_explained(void) {
  begin();
  rill__hip_explain(root, false, 0, why, sizeof why);
  assert_string_equal(why, "");
  add_all();
  rill__hip_explain(root, false, 0, why, sizeof why);
  assert_detail("/dev/kfd: can be opened");
  assert_reason("the kernel lists gfx1031, for which ROCm's runtime has to be installed");
  end();
}

static void code_fits_related_targets(void) {
  static const struct gpu_target device = { "gfx1031" }, alone = { "gfx90a:sramecc+:xnack-" };
  char needs[128];
  assert_int_equal(gpu_vendor_fit(&device, "gfx1030"), 0);
  assert_int_equal(gpu_vendor_fit(&device, "gfx10-1-generic"), 0);
  assert_int_equal(gpu_vendor_fit(&device, "gfx10-3"), 0);
  assert_true(gpu_vendor_fit(&device, "gfx10-3-generic") > 0);
  assert_true(gpu_vendor_fit(&device, "gfx1031") > gpu_vendor_fit(&device, "gfx10-3-generic"));
  assert_int_equal(unsetenv("HSA_OVERRIDE_GFX_VERSION"), 0);
  gpu_vendor_needs(&device, needs, sizeof needs);
  assert_string_equal(needs, "gfx1031 or gfx10-3-generic");
  assert_int_equal(setenv("HSA_OVERRIDE_GFX_VERSION", "9.0.10", 1), 0);
  gpu_vendor_needs(&alone, needs, sizeof needs);
  assert_string_equal(needs, "gfx90a:sramecc+:xnack- (HSA_OVERRIDE_GFX_VERSION is \"9.0.10\")");
  assert_int_equal(unsetenv("HSA_OVERRIDE_GFX_VERSION"), 0);
}

TESTS_ONCE("why HIP finds no device", TEST(a_missing_driver_is_named), TEST(a_container_without_the_device),
           TEST(a_container_without_render_nodes), TEST(a_container_that_hides_gpus), TEST(no_gpu_in_the_list),
           TEST(the_missing_group_is_named), TEST(a_group_without_a_name), TEST(the_mode_of_the_file_is_named),
           TEST(a_gpu_that_the_runtime_does_not_count), TEST(a_mask_is_named_only_once), TEST(missing_gpus_are_counted),
           TEST(a_missing_runtime_is_explained), TEST(code_fits_related_targets))
