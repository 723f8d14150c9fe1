/* rill doctor: AMD's GPUs.  Untested on AMD hardware. */
#include "doctor.h"
#include "machine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES "/sys/class/kfd/kfd/topology/nodes"
#define GIVE_FILES "--device=/dev/kfd --device=/dev/dri"
#define SEE_LOG "sudo dmesg | grep -iE 'amdgpu|kfd' | tail -n 30"

enum { MOST_NODES = 64, MOST_GPUS = 64 };

/* Returns the variables that hide devices. CUDA_VISIBLE_DEVICES counts only if HIP_VISIBLE_DEVICES is empty. */
static const char *const *masks(void) {
  static const char *const all[] = { "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                     "GPU_DEVICE_ORDINAL", NULL };
  const char *hip = getenv("HIP_VISIBLE_DEVICES");
  return hip == NULL || hip[0] == '\0' ? all : all + 1;
}

/* ---- the kernel's list ---- */

struct gpus {
  bool has_list;
  uint32_t count;
  uint32_t targets[MOST_GPUS]; /* 100301 is gfx1031 */
  uint32_t minors[MOST_GPUS];  /* minor numbers, as in /dev/dri/renderD128 */
};

static void read_gpus(const char *root, struct gpus *gpus) {
  *gpus = (struct gpus){ .has_list = false };
  for (uint32_t node = 0; node < MOST_NODES; node++) {
    char file[128];
    (void)snprintf(file, sizeof file, NODES "/%u/properties", node);
    if (!machine_has(root, file)) break;
    gpus->has_list = true;
    if (machine_property(root, file, "simd_count") == 0) continue; /* a CPU */
    gpus->targets[gpus->count] = (uint32_t)machine_property(root, file, "gfx_target_version");
    gpus->minors[gpus->count++] = (uint32_t)machine_property(root, file, "drm_render_minor");
  }
}

static bool blame_kernel(struct doctor *doctor, const struct gpus *gpus) {
  if (gpus->has_list) return false;
  if (machine_has(doctor->root, "/sys/module/amdgpu")) {
    return DOCTOR_FAIL(doctor, "hip", "kernel_list", SEE_LOG,
                       "the kernel module amdgpu is loaded, but offers no GPU to ROCm: " NODES " is missing");
  }
  return DOCTOR_FAIL(doctor, "hip", "kernel_driver", "sudo modprobe amdgpu",
                     "this machine has an AMD GPU, but the kernel module amdgpu is not loaded");
}

static bool blame_kfd(struct doctor *doctor) {
  return doctor_blame_file(doctor, &(struct device_file){ "hip", "/dev/kfd", GIVE_FILES, SEE_LOG });
}

static bool blame_list(struct doctor *doctor, const struct gpus *gpus) {
  if (gpus->count > 0) return false;
  return DOCTOR_FAIL(doctor, "hip", "kernel_list", doctor->in_container ? "docker run " GIVE_FILES " ..." : SEE_LOG,
                     "the kernel lists no GPU in " NODES "%s",
                     doctor->in_container ? " that this container may read" : " that ROCm can use");
}

static bool blame_render_files(struct doctor *doctor, const struct gpus *gpus) {
  for (uint32_t i = 0; i < gpus->count; i++) {
    char name[32];
    (void)snprintf(name, sizeof name, "/dev/dri/renderD%u", gpus->minors[i]);
    if (doctor_blame_file(doctor, &(struct device_file){ "hip", name, GIVE_FILES, SEE_LOG })) return true;
  }
  return false;
}

/* ---- the runtime ---- */

static bool blame_library(struct doctor *doctor, const struct doctor_devices *devices) {
  if (devices->library != NULL) return false;
  return DOCTOR_FAIL(doctor, "hip", "library_missing",
                     "sudo apt install hip-runtime-amd || sudo apt install libamdhip64-5",
                     "ROCm's runtime is missing: %s", devices->why);
}

static bool blame_override(struct doctor *doctor) {
  const char *value = getenv("HSA_OVERRIDE_GFX_VERSION");
  if (value == NULL) return false;
  return DOCTOR_FAIL(doctor, "hip", "override", "unset HSA_OVERRIDE_GFX_VERSION",
                     "HSA_OVERRIDE_GFX_VERSION is \"%s\", which makes the runtime treat every GPU as another model",
                     value);
}

static bool blame_target(struct doctor *doctor, const struct doctor_devices *devices, const struct gpus *gpus) {
  char list[256] = "";
  for (uint32_t i = 0; i < gpus->count; i++) {
    const size_t used = strlen(list);
    const uint32_t target = gpus->targets[i];
    (void)snprintf(list + used, sizeof list - used, "%sgfx%u%x%x", i > 0 ? ", " : "", target / 10000,
                   target / 100 % 100, target % 100);
  }
  return DOCTOR_FAIL(
      doctor, "hip", "unsupported_gpu", "rocminfo | grep -E 'Runtime|gfx'",
      "the kernel lists %s, and their files can be opened, but the runtime finds %u: this version may not "
      "support the GPU (%s)",
      list, devices->count, devices->why);
}

static void blame(struct doctor *doctor, const struct doctor_devices *devices, const struct gpus *gpus) {
  (void)(doctor_blame_build(doctor, devices) || blame_kernel(doctor, gpus) || blame_kfd(doctor) ||
         blame_list(doctor, gpus) || blame_render_files(doctor, gpus) || blame_library(doctor, devices) ||
         doctor_blame_mask(doctor, "hip", masks()) || blame_override(doctor) || blame_target(doctor, devices, gpus));
}

/* ---- what works together ---- */

/* Programs that use $ROCM_PATH load another version of the runtime than rill, and the two versions do not work
 * together. */
static void compare_folders(struct doctor *doctor, const struct doctor_devices *devices) {
  char folder[PATH_MAX], command[PATH_MAX + 32];
  const char *path = getenv("ROCM_PATH");
  if (path == NULL || path[0] == '\0' || devices->library == NULL) return;
  const char *end = strstr(devices->library, "/lib");
  const bool there = realpath(path, folder) != NULL;
  if (there && strncmp(devices->library, folder, strlen(folder)) == 0 && devices->library[strlen(folder)] == '/')
    return;
  if (end != NULL) {
    (void)snprintf(command, sizeof command, "export ROCM_PATH=%.*s", (int)(end - devices->library), devices->library);
  } else {
    (void)snprintf(command, sizeof command, "unset ROCM_PATH");
  }
  DOCTOR_WARN(doctor, "hip", "rocm_path", command,
              "ROCM_PATH is \"%s\", but the runtime is %s: programs that use ROCM_PATH load another version", path,
              devices->library);
}

static void warn_of_override(struct doctor *doctor) {
  const char *value = getenv("HSA_OVERRIDE_GFX_VERSION");
  if (value == NULL) return;
  DOCTOR_WARN(
      doctor, "hip", "override", "unset HSA_OVERRIDE_GFX_VERSION",
      "HSA_OVERRIDE_GFX_VERSION is \"%s\": the runtime treats every GPU as this model, which AMD does not support",
      value);
}

void doctor_hip(struct doctor *doctor) {
  static struct doctor_devices devices;
  struct gpus gpus;
  doctor_find_devices("hip", RILL_BACKEND_HIP, &devices);
  read_gpus(doctor->root, &gpus);
  if (devices.count == 0 && gpus.count == 0 && machine_gpus(doctor->root, "0x1002") == 0) {
    DOCTOR_OK(doctor, "hip", "devices", "no AMD GPU in this machine");
    return;
  }
  if (devices.count == 0 || (devices.count < gpus.count && blame_render_files(doctor, &gpus))) {
    if (devices.count == 0) blame(doctor, &devices, &gpus);
    return;
  }
  if (!doctor_try_devices(doctor, &devices)) return;
  doctor_report_devices(doctor, &devices, gpus.count, masks());
  compare_folders(doctor, &devices);
  warn_of_override(doctor);
  doctor_communication(doctor, &devices);
}
