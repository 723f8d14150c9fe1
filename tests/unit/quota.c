/* The number of processors and the amount of memory that control groups allow, with files of several systems in a
 * folder of this test. */
#include "support/testing.h"

#include "backends/cpu/cpu.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place) {
  (void)about, (void)kind, (void)place;
  return remove(path);
}

static void make_file(const char *path, const char *text) {
  char full[512];
  (void)snprintf(full, sizeof full, "%s%s", root, path);
  for (char *at = full + strlen(root) + 1; *at != '\0'; at++) {
    if (*at != '/') continue;
    *at = '\0';
    (void)mkdir(full, 0700);
    *at = '/';
  }
  FILE *const file = fopen(full, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void begin(const char *mounts, const char *groups) {
  (void)snprintf(root, sizeof root, "/tmp/rill-quota-XXXXXX");
  assert_non_null(mkdtemp(root));
  make_file("/proc/self/mountinfo", mounts);
  make_file("/proc/self/cgroup", groups);
}

static void check(uint32_t expected) {
  assert_int_equal(rill__cpu_quota_read(root), expected);
  assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#define SYSTEM "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n23 22 0:20 / /proc rw - proc proc rw\n"
#define VERSION_2 SYSTEM "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void check_memory(uint64_t expected) {
  assert_int_equal(rill__cpu_memory_quota_read(root), expected);
  assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void no_limit_is_known(void) {
  begin(SYSTEM, "");
  check(UINT32_MAX);
  (void)snprintf(root, sizeof root, "/nowhere/at/all");
  assert_int_equal(rill__cpu_quota_read(root), UINT32_MAX);
}

static void version_2_without_a_limit(void) {
  begin(VERSION_2, "0::/user.slice\n");
  make_file("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  check(UINT32_MAX);
}

static void version_2_rounds_up(void) {
  begin(VERSION_2, "0::/a\n");
  make_file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  check(2);
  begin(VERSION_2, "0::/a\n");
  make_file("/sys/fs/cgroup/a/cpu.max", "1000 100000\n");
  check(1);
  begin(VERSION_2, "0::/a\n");
  make_file("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  check(3);
}

/* A container that has its own view of the groups sees its group as the root of the mount. */
static void a_container_of_version_2(void) {
  begin(VERSION_2, "0::/\n");
  make_file("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  check(4);
}

/* The smallest limit of all groups on the path applies; missing files set no limit. */
static void the_smallest_limit_of_nested_groups_counts(void) {
  begin(VERSION_2, "0::/pods/one/box\n");
  make_file("/sys/fs/cgroup/pods/one/box/cpu.max", "max 100000\n");
  make_file("/sys/fs/cgroup/pods/one/cpu.max", "200000 50000\n");
  make_file("/sys/fs/cgroup/pods/cpu.max", "1600000 100000\n");
  check(4);
  begin(VERSION_2, "0::/pods/one/box\n");
  make_file("/sys/fs/cgroup/pods/one/box/cpu.max", "700000 100000\n");
  make_file("/sys/fs/cgroup/pods/cpu.max", "300000 100000\n");
  check(3);
}

/* Only a part of the hierarchy is mounted, and the path in /proc is relative to the whole hierarchy. */
static void limits_are_found_below_a_partial_mount(void) {
  begin(SYSTEM "30 22 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/abc\n");
  make_file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  check(2);
  begin(SYSTEM "30 22 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/abc/inner\n");
  make_file("/sys/fs/cgroup/cpu.max", "max 100000\n");
  make_file("/sys/fs/cgroup/inner/cpu.max", "500000 100000\n");
  check(5);
  begin(SYSTEM "30 22 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/abcdef\n");
  make_file("/sys/fs/cgroup/cpu.max", "600000 100000\n");
  check(6);
  begin(VERSION_2, "0::/../../other\n");
  make_file("/sys/fs/cgroup/cpu.max", "700000 100000\n");
  check(7);
}

#define VERSION_1                                                            \
  SYSTEM "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"                 \
         "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" \
         "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define GROUPS_1 "5:cpuset:/elsewhere\n4:cpuacct,cpu:/docker/abc\n1:name=systemd:/\n"

static void version_1(void) {
  begin(VERSION_1, GROUPS_1);
  make_file("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
  make_file("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  make_file("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
  make_file("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  check(3);
  begin(VERSION_1, GROUPS_1);
  make_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  make_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  check(UINT32_MAX);
}

/* Both versions are mounted, and either may have the limit. */
static void both_versions(void) {
  begin(VERSION_1 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", GROUPS_1 "0::/a\n");
  make_file("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "200000\n");
  make_file("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  make_file("/sys/fs/cgroup/unified/a/cpu.max", "800000 100000\n");
  check(2);
}

/* A value that no kernel writes is not a limit. */
static void ignores_malformed_limits(void) {
  static const char *const texts[] = { "",           "\n",          "x y\n", "0 100000\n",
                                       "100000 0\n", "-5 100000\n", "max\n", "99999999999999999999999999 1\n" };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    begin(VERSION_2 "garbage\n - cgroup2\n1 2 - cgroup2 x\n", "0::/a\nnonsense\n:\n");
    make_file("/sys/fs/cgroup/a/cpu.max", texts[i]);
    check(UINT32_MAX);
  }
}

static void memory_of_version_2(void) {
  begin(VERSION_2, "0::/pods/one\n");
  make_file("/sys/fs/cgroup/pods/one/memory.max", "max\n");
  check_memory(UINT64_MAX);
  begin(VERSION_2, "0::/pods/one\n");
  make_file("/sys/fs/cgroup/pods/one/memory.max", "4294967296\n");
  make_file("/sys/fs/cgroup/pods/memory.max", "1073741824\n");
  make_file("/sys/fs/cgroup/pods/cpu.max", "100 100000\n");
  check_memory(1073741824);
  begin(VERSION_2, "0::/\n");
  make_file("/sys/fs/cgroup/memory.max", "12345678\n");
  check_memory(12345678);
}

static void memory_of_version_1(void) {
  static const char mounts[] = SYSTEM "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                                      "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  begin(mounts, "4:cpu:/elsewhere\n5:memory:/docker/abc\n");
  make_file("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  make_file("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "536870912\n");
  make_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  /* the controller of this file is not mounted there */
  make_file("/sys/fs/cgroup/cpu/memory.limit_in_bytes", "4096\n");
  check_memory(536870912);
}

TESTS_ONCE("processors and memory of control groups", TEST(no_limit_is_known), TEST(version_2_without_a_limit),
           TEST(version_2_rounds_up), TEST(a_container_of_version_2), TEST(the_smallest_limit_of_nested_groups_counts),
           TEST(limits_are_found_below_a_partial_mount), TEST(version_1), TEST(both_versions),
           TEST(ignores_malformed_limits), TEST(memory_of_version_2), TEST(memory_of_version_1))
