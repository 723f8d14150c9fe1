/* rill doctor: finds why devices do not work, and the command that fixes it. */
#include "doctor.h"

#include "loaded.h"
#include "machine.h"
#include "tool.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reporting ---- */

static const char *const severities[] = { "ok", "warning", "failure" };

static void write_finding(struct json *json, const struct finding *finding, const char *what) {
  json_open(json, NULL, '{');
  json_text(json, "severity", severities[finding->severity]);
  json_text(json, "area", finding->area);
  json_text(json, "check", finding->check);
  json_text(json, "what", what);
  json_text(json, "command", finding->command);
  json_close(json, '}');
}

void doctor_report(struct doctor *doctor, const struct finding *finding, const char *format, ...) {
  char what[2048];
  va_list list;
  va_start(list, format);
  (void)vsnprintf(what, sizeof what, format, list);
  va_end(list);
  doctor->warnings += finding->severity == SEVERITY_WARNING;
  doctor->failures += finding->severity == SEVERITY_FAILURE;
  if (doctor->json != NULL) {
    write_finding(doctor->json, finding, what);
    return;
  }
  (void)printf("%-8s %-7s %s\n", severities[finding->severity], finding->area, what);
  if (finding->command != NULL) (void)printf("%-16s $ %s\n", "", finding->command);
}

/* ---- devices ---- */

void doctor_find_devices(const char *backend, uint32_t id, struct doctor_devices *devices) {
  *devices = (struct doctor_devices){ .backend = backend };
  char name[32];
  rill_device device;
  for (;;) {
    (void)snprintf(name, sizeof name, "%s:%u", backend, devices->count);
    if (rill_device_open(name, &device) != RILL_OK) break;
    if (devices->count++ == 0) devices->first = device;
  }
  rill_error error = RILL_ERROR_INIT;
  if (rill_last_error(&error) == RILL_OK) {
    const char *start = strstr(error.message, "\": "); /* after the requested name */
    start = start != NULL ? start + 3 : error.message;
    (void)snprintf(devices->why, sizeof devices->why, "%.*s", (int)strcspn(start, "\n"), start);
    (void)snprintf(devices->hint, sizeof devices->hint, "%s", error.hint);
  }
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  if (devices->count > 0 && rill_device_get_info(devices->first, &info) == RILL_OK) {
    devices->driver_version = info.driver_version;
  }
  devices->library = loaded_driver(id, devices->path);
}

static bool use_device(const char *name) {
  rill_device device;
  rill_stream stream;
  void *memory = NULL;
  if (rill_device_open(name, &device) != RILL_OK || rill_device_default_stream(device, &stream) != RILL_OK ||
      rill_alloc(device, 4096, RILL_MEMORY_DEVICE, &memory) != RILL_OK) {
    return false;
  }
  const bool used = rill_fill_async(stream, memory, &(uint32_t){ 7 }, 4, 1024) == RILL_OK &&
                    rill_stream_synchronize(stream) == RILL_OK;
  return rill_free(memory) == RILL_OK && used;
}

bool doctor_try_devices(struct doctor *doctor, const struct doctor_devices *devices) {
  bool all = true;
  for (uint32_t i = 0; i < devices->count; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "%s:%u", devices->backend, i);
    if (use_device(name)) continue;
    rill_error error = RILL_ERROR_INIT;
    const bool full = rill_last_error(&error) == RILL_OK && error.status == RILL_ERROR_OUT_OF_MEMORY;
    const char *command = strcmp(devices->backend, "cuda") == 0 ? "nvidia-smi" : "rocm-smi --showpids";
    all = !DOCTOR_FAIL(doctor, devices->backend, "device_use", command, "%s exists, but cannot be used: %s%s", name,
                       rill_last_error_text(), full ? "; other processes use its memory" : "");
  }
  return all;
}

/* Writes 'A is "0" and B is ""' for the variables that are set, and the command "unset A B". */
static bool describe_masks(const char *const *masks, char *text, size_t size, char *command, size_t command_size) {
  text[0] = '\0';
  (void)snprintf(command, command_size, "unset");
  for (; *masks != NULL; masks++) {
    const char *value = getenv(*masks);
    const size_t used = strlen(text), command_used = strlen(command);
    if (value == NULL) continue;
    (void)snprintf(text + used, size - used, "%s%s is \"%.200s\"", used > 0 ? " and " : "", *masks, value);
    (void)snprintf(command + command_used, command_size - command_used, " %s", *masks);
  }
  return text[0] != '\0';
}

void doctor_report_devices(struct doctor *doctor, const struct doctor_devices *devices, uint32_t present,
                           const char *const *masks) {
  char text[1024], command[128], hidden[1100] = "";
  const bool fewer = present > devices->count,
             masked = describe_masks(masks, text, sizeof text, command, sizeof command);
  if (fewer && masked) (void)snprintf(hidden, sizeof hidden, " of %u, because %s", present, text);
  DOCTOR_OK(doctor, devices->backend, "devices", "%u %s%s; driver %u.%u, %s", devices->count,
            devices->count == 1 && !fewer ? "device" : "devices", hidden, devices->driver_version / 1000,
            devices->driver_version % 1000 / 10, devices->library != NULL ? devices->library : "no library of its own");
  if (!fewer || masked) return;
  DOCTOR_WARN(doctor, devices->backend, "devices_missing", "sudo dmesg | grep -iE 'nvrm|amdgpu|kfd' | tail -n 30",
              "the kernel lists %u GPUs, but the driver finds only %u: %s", present, devices->count, devices->why);
}

bool doctor_blame_mask(struct doctor *doctor, const char *area, const char *const *masks) {
  char text[1024], command[128];
  if (!describe_masks(masks, text, sizeof text, command, sizeof command)) return false;
  return DOCTOR_FAIL(doctor, area, "mask", command, "%s, which hides all devices", text);
}

bool doctor_blame_build(struct doctor *doctor, const struct doctor_devices *devices) {
  char command[128];
  if (strstr(devices->why, "not built in") == NULL) return false;
  (void)snprintf(command, sizeof command, "meson configure build -Drill_backend=%s && ninja -C build",
                 devices->backend);
  return DOCTOR_FAIL(doctor, devices->backend, "not_built", command, "rill was built without this backend");
}

/* ---- device files ---- */

static bool blame_missing(struct doctor *doctor, const struct device_file *file) {
  char command[256];
  (void)snprintf(command, sizeof command, "docker run %s ...", file->option);
  return DOCTOR_FAIL(
      doctor, file->area, "device_file_missing", doctor->in_container ? command : file->create, "%s is missing%s",
      file->file, doctor->in_container ? ": it was not passed to this container" : ", although the driver is loaded");
}

static bool blame_group(struct doctor *doctor, const struct device_file *file, gid_t group) {
  char command[256];
  const struct group *entry = getgrgid(group);
  if (doctor->in_container || entry == NULL) {
    (void)snprintf(command, sizeof command, "docker run --group-add %u ...", (unsigned)group);
    return DOCTOR_FAIL(doctor, file->area, "device_file_group", command,
                       "%s is for members of group %u, and this process is not a member", file->file, (unsigned)group);
  }
  (void)snprintf(command, sizeof command, "sudo usermod -aG %s \"$USER\" && newgrp %s", entry->gr_name, entry->gr_name);
  return DOCTOR_FAIL(doctor, file->area, "device_file_group", command,
                     "%s is for members of group %s, and this process is not a member", file->file, entry->gr_name);
}

bool doctor_blame_file(struct doctor *doctor, const struct device_file *file) {
  char path[PATH_MAX], command[256];
  struct stat status = { .st_mode = 0 };
  const int code = machine_open(doctor->root, file->file);
  if (code == 0) return false;
  if (code == ENOENT) return blame_missing(doctor, file);
  (void)snprintf(path, sizeof path, "%s%s", doctor->root, file->file);
  const bool there = stat(path, &status) == 0;
  if (code == EACCES && there && status.st_uid != geteuid() && (status.st_mode & 060) == 060) {
    return blame_group(doctor, file, status.st_gid);
  }
  if (doctor->in_container) {
    (void)snprintf(command, sizeof command, "docker run %s ...", file->option);
  } else {
    (void)snprintf(command, sizeof command, "sudo chmod a+rw %s", file->file);
  }
  return DOCTOR_FAIL(doctor, file->area, "device_file_closed", command, "%s cannot be opened: %s (its mode is %04o)",
                     file->file, strerror(code), (unsigned)(status.st_mode & 07777));
}

/* ---- areas without a file of their own ---- */

void doctor_cpu(struct doctor *doctor) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_device device;
  if (!use_device("cpu") || rill_device_open("cpu", &device) != RILL_OK ||
      rill_device_get_info(device, &info) != RILL_OK) {
    (void)DOCTOR_FAIL(doctor, "cpu", "device_use", NULL, "the cpu device cannot be used: %s", rill_last_error_text());
    return;
  }
  DOCTOR_OK(doctor, "cpu", "devices", "%s, %u processors", info.arch, info.compute_units);
}

/* InfiniBand adapters pin the memory that they send, and their libraries fail if the limit is too low. Memory that a
 * GPU driver pins does not count. */
void doctor_system(struct doctor *doctor) {
  struct rlimit limit;
  const uint32_t adapters = machine_count(doctor->root, "/sys/class/infiniband/*");
  if (adapters == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const char *command = doctor->in_container ? "docker run --ulimit memlock=-1 ..."
                        : limit.rlim_max == RLIM_INFINITY
                            ? "ulimit -l unlimited"
                            : "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/memlock.conf";
  DOCTOR_WARN(doctor, "system", "memlock", command,
              "this process may lock only %llu KiB of memory, which is too little for %u InfiniBand %s: NCCL, RCCL and "
              "MPI fail to register buffers",
              (unsigned long long)limit.rlim_cur / 1024, adapters, adapters == 1 ? "adapter" : "adapters");
}

/* ---- the command ---- */

static const struct {
  const char *name;
  void (*look)(struct doctor *doctor);
} areas[] = {
  { "cpu", doctor_cpu }, { "cuda", doctor_cuda },     { "hip", doctor_hip },
  { "mpi", doctor_mpi }, { "system", doctor_system },
};
enum { AREAS = sizeof areas / sizeof *areas };

static bool choose(const char *name, bool chosen[AREAS]) {
  for (int i = 0; i < AREAS; i++) {
    if (strcmp(areas[i].name, name) == 0) return chosen[i] = true;
  }
  return false;
}

static int misuse(const char *argument) {
  (void)complain("doctor: unexpected argument \"%s\"; usage: rill doctor [cpu] [cuda] [hip] [mpi] [system] [--json]",
                 argument);
  return EXIT_USAGE;
}

static void print_counts(const struct doctor *doctor) {
  (void)printf("%u failure%s, %u warning%s\n", doctor->failures, doctor->failures == 1 ? "" : "s", doctor->warnings,
               doctor->warnings == 1 ? "" : "s");
}

int doctor_command(int argc, char **argv) {
  struct json json = { 0 };
  bool chosen[AREAS] = { false }, any = false;
  const char *root = getenv("RILL_DOCTOR_ROOT"); /* for tests: the root of another machine */
  struct doctor doctor = { .root = root != NULL ? root : "" };
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) {
      doctor.json = &json;
    } else if (choose(argv[i], chosen)) {
      any = true;
    } else {
      return misuse(argv[i]);
    }
  }
  doctor.in_container = machine_has(doctor.root, "/.dockerenv") || machine_has(doctor.root, "/run/.containerenv");
  if (doctor.json != NULL) {
    json_open(&json, NULL, '{');
    json_text(&json, "version", version_text(rill_version()).text);
    json_open(&json, "findings", '[');
  }
  for (int i = 0; i < AREAS; i++) {
    if (chosen[i] || !any) areas[i].look(&doctor);
  }
  if (doctor.json != NULL) {
    json_close(&json, ']');
    json_integer(&json, "failures", doctor.failures);
    json_integer(&json, "warnings", doctor.warnings);
    json_close(&json, '}');
  } else {
    print_counts(&doctor);
  }
  return fflush(stdout) == 0 && doctor.failures == 0 ? 0 : EXIT_WORK;
}
