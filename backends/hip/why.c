/* AMD's runtime reports "no device" for every possible reason: no kernel driver, a container without the device files,
 * a user who may not open them, a mask, a GPU that this version does not support.  The kernel's list of GPUs (its
 * driver amdkfd, in /sys/class/kfd) and the device files distinguish these cases.  Untested on AMD hardware. */
#include "backends/hip/why.h"

#include "backends/gpu/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KFD "/dev/kfd"
#define NODES "/sys/class/kfd/kfd/topology/nodes"

enum { MAX_NODES = 64 };

struct amd_gpu {
  uint32_t node;   /* number in the kernel's list, which also contains the processors */
  uint32_t target; /* for example, 100301 is gfx1031; 0 if the kernel does not report it */
  char file[32];   /* for example /dev/dri/renderD128 */
  int code;        /* errno of opening the file; 0 if it can be opened */
};

struct amd_machine {
  const char *root;
  int kfd_code;
  bool has_list;
  uint32_t hidden; /* number of unreadable nodes: GPUs that were not given to the container */
  uint32_t count;
  struct amd_gpu gpus[MAX_NODES];
};

/* ---- reading the lists ---- */

static int open_device_file(const char *root, const char *file) {
  char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%s%s", root, file);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno;
  (void)close(fd);
  return 0;
}

/* Returns false if the node does not exist. */
static bool read_node(struct amd_machine *machine, uint32_t node) {
  char path[PATH_MAX], key[64];
  unsigned long long value, simds = 0, target = 0, minor = 0;
  (void)snprintf(path, sizeof path, "%s" NODES "/%u/properties", machine->root, node);
  FILE *file = fopen(path, "re");
  if (file == NULL && errno == ENOENT) return false;
  bool any = false;
  while (file != NULL && fscanf(file, "%63s %llu", key, &value) == 2) {
    any = true;
    if (strcmp(key, "simd_count") == 0) simds = value;
    if (strcmp(key, "gfx_target_version") == 0) target = value;
    if (strcmp(key, "drm_render_minor") == 0) minor = value;
  }
  if (file != NULL) (void)fclose(file);
  machine->hidden += !any;
  if (simds == 0) return true;
  struct amd_gpu *gpu = &machine->gpus[machine->count++];
  gpu->node = node;
  gpu->target = (uint32_t)target;
  (void)snprintf(gpu->file, sizeof gpu->file, "/dev/dri/renderD%u", (uint32_t)minor);
  return true;
}

static void read_list(struct amd_machine *machine) {
  uint32_t node = 0;
  while (node < MAX_NODES && read_node(machine, node)) node++;
  machine->has_list = node > 0;
}

static void open_device_files(struct amd_machine *machine) {
  machine->kfd_code = open_device_file(machine->root, KFD);
  for (uint32_t i = 0; i < machine->count; i++) {
    machine->gpus[i].code = open_device_file(machine->root, machine->gpus[i].file);
  }
}

/* ---- messages ---- */

static void add_target(const struct amd_gpu *gpu, char *why, size_t size) {
  const uint32_t target = gpu->target;
  if (target == 0) {
    gpu_append(why, size, "a GPU whose target it does not report");
  } else {
    gpu_append(why, size, "gfx%u%x%x", target / 10000, target / 100 % 100, target % 100);
  }
}

static void add_list(const struct amd_machine *machine, char *why, size_t size) {
  gpu_append(why, size, "the kernel lists ");
  for (uint32_t i = 0; i < machine->count; i++) {
    if (i > 0) gpu_append(why, size, i + 1 < machine->count ? ", " : " and ");
    add_target(&machine->gpus[i], why, size);
  }
}

static void add_group(gid_t group, char *why, size_t size) {
  char buffer[2048];
  struct group entry, *found = NULL;
  if (getgrgid_r(group, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL) {
    gpu_append(why, size,
               "is for members of group %s, and this process is not a member: usermod -aG %s USER, then log in again",
               found->gr_name, found->gr_name);
  } else {
    gpu_append(
        why, size,
        "is for members of group %u, which has no name here, and this process is not a member: a container needs "
        "--group-add %u",
        (unsigned)group, (unsigned)group);
  }
}

/* Appends the reason why a device file cannot be opened. */
static void add_refusal(const char *root, const char *file, int code, char *why, size_t size) {
  char path[PATH_MAX];
  struct stat status = { .st_mode = 0 };
  (void)snprintf(path, sizeof path, "%s%s", root, file);
  const bool is_there = stat(path, &status) == 0;
  const bool of_group = is_there && status.st_uid != geteuid() && (status.st_mode & 060) == 060;
  gpu_append(why, size, "%s ", file);
  if (code == ENOENT) {
    gpu_append(why, size, "is missing");
  } else if (code == EACCES && of_group) {
    add_group(status.st_gid, why, size);
  } else {
    gpu_append(why, size, "cannot be opened: %s (its mode is %04o; a container needs --device=%s)", strerror(code),
               (unsigned)(status.st_mode & 07777), file);
  }
}

static void add_reason(const struct amd_machine *machine, bool has_runtime, uint32_t counted, char *why, size_t size) {
  const struct amd_gpu *closed = NULL; /* the first one that cannot be opened */
  for (uint32_t i = 0; i < machine->count && closed == NULL; i++) {
    if (machine->gpus[i].code != 0) closed = &machine->gpus[i];
  }
  if (!has_runtime) {
    add_list(machine, why, size);
    gpu_append(why, size, ", for which ROCm's runtime has to be installed");
  } else if (machine->kfd_code != 0) {
    add_refusal(machine->root, KFD, machine->kfd_code, why, size);
    if (machine->kfd_code == ENOENT) {
      gpu_append(why, size,
                 machine->has_list ? ", although the kernel's driver is loaded: a container needs --device=" KFD
                                     " --device=/dev/dri"
                                   : ": there is no AMD GPU, or the kernel's driver, amdgpu, is not loaded");
    }
  } else if (machine->count == 0) {
    gpu_append(why, size, "the kernel lists no GPU in " NODES);
    if (machine->hidden > 0) gpu_append(why, size, " that this process may read: a container needs --device=/dev/dri");
  } else if (closed != NULL) {
    add_refusal(machine->root, closed->file, closed->code, why, size);
    if (closed->code == ENOENT) gpu_append(why, size, ": a container needs --device=/dev/dri");
  } else {
    add_list(machine, why, size);
    gpu_append(why, size,
               ", whose files can be opened, and the runtime counts %u: a variable hides GPUs, or this version of the "
               "runtime does not support all of them",
               counted);
  }
}

static const char *state_of(int code) { return code == 0 ? "can be opened" : strerror(code); }

static void add_details(const struct amd_machine *machine, char *why, size_t size) {
  static const char *const variables[] = { GPU_MASK_VARIABLES, "HSA_OVERRIDE_GFX_VERSION" };
  gpu_append(why, size, "\n%s: %s", KFD, state_of(machine->kfd_code));
  for (uint32_t i = 0; i < machine->count; i++) {
    gpu_append(why, size, "\nnode %u of the kernel's list is ", machine->gpus[i].node);
    add_target(&machine->gpus[i], why, size);
    gpu_append(why, size, "; %s: %s", machine->gpus[i].file, state_of(machine->gpus[i].code));
  }
  if (machine->count == 0) gpu_append(why, size, "\nno GPU in " NODES);
  if (machine->hidden > 0) gpu_append(why, size, "\nnodes there that cannot be read: %u", machine->hidden);
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *value = getenv(variables[i]);
    if (value == NULL || strstr(why, variables[i]) != NULL) continue; /* mentioned in the first line */
    gpu_append(why, size, "\n%s is \"%s\"", variables[i], value);
  }
}

void rill__hip_explain(const char *root, bool has_runtime, uint32_t counted, char *why, size_t size) {
  struct amd_machine machine = { .root = root };
  read_list(&machine);
  if (counted > 0 ? machine.count <= counted : !has_runtime && machine.count == 0) return;
  open_device_files(&machine);
  if (why[0] != '\0') gpu_append(why, size, "; ");
  add_reason(&machine, has_runtime, counted, why, size);
  add_details(&machine, why, size);
}
