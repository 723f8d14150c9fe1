/* Reads properties of this machine from the system. */
#include "backends/cpu/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LEAST_ADDRESS UINT64_C(0x10000)
#define GREATEST_ADDRESS UINT64_C(0xffffffffffff) /* 48 bits */

#if defined(__x86_64__)
#include <cpuid.h>

/* Returns the level in the x86-64 psABI.  The compiler runtime's answers for AVX also cover whether the system saves
 * the wide registers.  The other features are read with CPUID, because compilers differ in the names that they know. */
static uint32_t level_of_machine(void) {
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0, extended = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return 1;
  const unsigned basic = c;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0) extended = c;
  const unsigned v2 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B;
  if ((basic & v2) != v2 || (extended & bit_LAHF_LM) == 0) return 1;
  const unsigned v3 = bit_FMA | bit_MOVBE | bit_F16C | bit_OSXSAVE;
  if ((basic & v3) != v3 || (extended & bit_LZCNT) == 0) return 2;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) return 2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return 3;
  }
  return 4;
}
#else
static uint32_t level_of_machine(void) { return 0; }
#endif

static _Atomic uint32_t most_level; /* from RILL_CPU_LEVEL; 0 if unset */

uint32_t rill__cpu_x86_level(void) {
  const uint32_t level = level_of_machine(), most = atomic_load_explicit(&most_level, memory_order_relaxed);
  return most != 0 && most < level ? most : level;
}

uint32_t rill__cpu_x86_level_of(const char *target) {
  static const char *const levels[] = { "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" };
  for (uint32_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
    if (strcmp(target, levels[i]) == 0) return i + 1;
  }
  return 0;
}

void rill__cpu_x86_level_read(void) {
  const char *text = getenv("RILL_CPU_LEVEL");
  if (text == NULL || text[0] == '\0') return;
  const uint32_t level = rill__cpu_x86_level_of(text);
  if (level == 0)
    rill__cpu_warn_of_setting("RILL_CPU_LEVEL", text, "x86-64, x86-64-v2, x86-64-v3 or x86-64-v4; no limit is set");
  atomic_store_explicit(&most_level, level, memory_order_relaxed);
}

void rill__cpu_target(char *text, size_t size) {
  const uint32_t level = rill__cpu_x86_level();
  struct utsname machine;
  if (level > 1) {
    (void)snprintf(text, size, "x86-64-v%u", level);
  } else if (level == 1) {
    (void)snprintf(text, size, "x86-64");
  } else {
    (void)snprintf(text, size, "%.60s", uname(&machine) == 0 ? machine.machine : "unknown");
  }
}

/* The affinity of the thread that initialized the device.  Later threads may be bound to a single processor, as OpenMP
 * does with OMP_PROC_BIND. */
static struct {
  uint32_t count;
  bool has_set;
  cpu_set_t set;
} own_processors;

void rill__cpu_processors_read(void) {
  own_processors.has_set = sched_getaffinity(0, sizeof own_processors.set, &own_processors.set) == 0;
  const long online = sysconf(_SC_NPROCESSORS_ONLN); /* used if there are more processors than bits in the set */
  own_processors.count = own_processors.has_set ? (uint32_t)CPU_COUNT(&own_processors.set)
                         : online > 0           ? (uint32_t)online
                                                : 1;
  const uint32_t quota = rill__cpu_quota_read("");
  if (quota < own_processors.count) own_processors.count = quota;
}

uint32_t rill__cpu_count(void) { return own_processors.count; }

void rill__cpu_run_anywhere(void) {
  if (own_processors.has_set) (void)sched_setaffinity(0, sizeof own_processors.set, &own_processors.set);
}

size_t rill__cpu_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Reads the first line of a file.  Returns false if there is none. */
static bool read_line(const char *path, char *line, size_t size) {
  RILL_WITHOUT_CANCEL();
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  const bool read = fgets(line, (int)size, file) != NULL;
  (void)fclose(file);
  if (read) line[strcspn(line, "\n")] = '\0';
  return read;
}

/* Reads the value of the first line "key : value" of a file. */
static bool read_value(const char *path, const char *key, char *value, size_t size) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  char line[512];
  bool found = false;
  const size_t length = strlen(key);
  while (!found && fgets(line, sizeof line, file) != NULL) {
    const char *rest = line + length;
    if (strncmp(line, key, length) != 0) continue;
    rest += strspn(rest, " \t");
    if (*rest != ':') continue;
    rest += 1 + strspn(rest + 1, " \t");
    (void)snprintf(value, size, "%.*s", (int)strcspn(rest, "\n"), rest);
    found = true;
  }
  (void)fclose(file);
  return found;
}

void rill__cpu_name_read(char *name, size_t size) {
  if (read_value("/proc/cpuinfo", "model name", name, size) && name[0] != '\0') return;
  struct utsname machine;
  (void)snprintf(name, size, "%s processor", uname(&machine) == 0 ? machine.machine : "host");
}

uint32_t rill__cpu_clock_read(void) {
  char text[64];
  if (read_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", text, sizeof text)) {
    return (uint32_t)strtoul(text, NULL, 10);
  }
  if (read_value("/proc/cpuinfo", "cpu MHz", text, sizeof text)) return (uint32_t)(strtod(text, NULL) * 1000.0);
  return 0;
}

/* Returns false for numbers that cannot be addresses.  The system maps nothing below the lowest mapping found at the
 * first call, unless a program requests such an address.  The lower bound keeps sizes from being taken for
 * addresses. */
bool rill__cpu_may_be_address(uint64_t number) {
  static _Atomic uint64_t lowest;
  uint64_t known = atomic_load_explicit(&lowest, memory_order_relaxed);
  if (RILL__UNLIKELY(known == 0)) {
    char line[256];
    known = read_line("/proc/self/maps", line, sizeof line) ? strtoull(line, NULL, 16) : 0;
    if (known < LEAST_ADDRESS) known = LEAST_ADDRESS;
    atomic_store_explicit(&lowest, known, memory_order_relaxed);
  }
  return number >= known && number <= GREATEST_ADDRESS;
}

/* Returns what a process limit leaves after current use.  `used`: name of a line in /proc/self/status, in kB. */
static uint64_t left_of(const struct rlimit *limit, const char *used) {
  char text[64];
  if (limit->rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const uint64_t bytes = read_value("/proc/self/status", used, text, sizeof text) ? strtoull(text, NULL, 10) * 1024 : 0;
  return bytes < limit->rlim_cur ? (uint64_t)limit->rlim_cur - bytes : 0;
}

uint64_t rill__cpu_memory_read(void) {
  struct rlimit space = { .rlim_cur = RLIM_INFINITY }, data = { .rlim_cur = RLIM_INFINITY };
  (void)getrlimit(RLIMIT_AS, &space);
  (void)getrlimit(RLIMIT_DATA, &data);
  const uint64_t limits[] = { rill__cpu_memory_quota_read(""), left_of(&space, "VmSize"), left_of(&data, "VmData") };
  uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) least = limits[i] < least ? limits[i] : least;
  return least;
}
