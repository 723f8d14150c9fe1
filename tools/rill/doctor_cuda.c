/* rill doctor: NVIDIA's GPUs. */
#include "doctor.h"
#include "loaded.h"
#include "machine.h"

#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_FILE "/proc/driver/nvidia/version"
#define CREATE_FILES "sudo nvidia-modprobe -c 0 -u"

static const char *const masks[] = { "CUDA_VISIBLE_DEVICES", NULL };

/* ---- the kernel's driver ---- */

static bool blame_kernel(struct doctor *doctor) {
  if (machine_has(doctor->root, VERSION_FILE)) return false;
  if (machine_has(doctor->root, "/sys/module/nouveau")) {
    return DOCTOR_FAIL(
        doctor, "cuda", "nouveau",
        "echo 'blacklist nouveau' | sudo tee /etc/modprobe.d/nouveau.conf && sudo update-initramfs -u && "
        "sudo reboot",
        "the kernel module nouveau drives the GPU, and NVIDIA's module is not loaded");
  }
  return DOCTOR_FAIL(doctor, "cuda", "kernel_driver", "sudo modprobe nvidia",
                     "this machine has an NVIDIA GPU, but the kernel module nvidia is not loaded");
}

static bool blame_files(struct doctor *doctor) {
  static const char *const files[] = { "/dev/nvidiactl", "/dev/nvidia-uvm" };
  struct device_file file = { "cuda", NULL, "--gpus all", CREATE_FILES };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    file.file = files[i];
    if (doctor_blame_file(doctor, &file)) return true;
  }
  if (machine_count(doctor->root, "/dev/nvidia[0-9]*") > 0) return false;
  file.file = "/dev/nvidia0";
  return doctor_blame_file(doctor, &file);
}

/* Finds the first word of a text that is a version, such as 535.104.05. Returns false if there is none. */
static bool find_version(const char *text, char *version, size_t size) {
  for (const char *c = text; *c != '\0'; c++) {
    const size_t length = strspn(c, "0123456789.");
    const bool starts = c == text || strchr(" .", c[-1]) != NULL;
    if (!starts || !isdigit((unsigned char)*c) || length >= size || memchr(c, '.', length) == NULL) continue;
    (void)snprintf(version, size, "%.*s", (int)length, c);
    return true;
  }
  return false;
}

/* ---- the driver's library ---- */

static bool blame_library(struct doctor *doctor, const struct doctor_devices *devices) {
  char command[256];
  if (devices->library != NULL) return false;
  if (doctor->in_container) {
    return DOCTOR_FAIL(doctor, "cuda", "library_missing",
                       "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...",
                       "the driver's library is missing in this container: %s", devices->why);
  }
  char line[256], version[32] = "";
  machine_line(doctor->root, VERSION_FILE, line, sizeof line);
  (void)find_version(line, version, sizeof version);
  (void)snprintf(command, sizeof command, "sudo apt install libnvidia-compute-%.*s || sudo apt install libcuda1",
                 (int)strcspn(version, "."), version);
  return DOCTOR_FAIL(doctor, "cuda", "library_missing", command, "the driver's library is missing: %s", devices->why);
}

static bool blame_stub(struct doctor *doctor, const struct doctor_devices *devices) {
  if (strstr(devices->library, "/stubs/") == NULL) return false;
  return DOCTOR_FAIL(doctor, "cuda", "library_stub",
                     "export LD_LIBRARY_PATH=$(echo \"$LD_LIBRARY_PATH\" | tr : '\\n' | grep -v stubs | paste -sd :)",
                     "%s is a stub for linking programs, and contains no driver", devices->library);
}

/* The library is installed as libcuda.so.535.104.05, and works only with this version of the kernel's driver. */
static bool blame_versions(struct doctor *doctor, const struct doctor_devices *devices) {
  char line[256], kernel[32], library[32];
  machine_line(doctor->root, VERSION_FILE, line, sizeof line);
  const char *end = strstr(devices->library, ".so.");
  if (end == NULL || !find_version(line, kernel, sizeof kernel) || !find_version(end + 4, library, sizeof library) ||
      strcmp(kernel, library) == 0) {
    return false;
  }
  return DOCTOR_FAIL(
      doctor, "cuda", "driver_versions", doctor->in_container ? "docker run --gpus all ..." : "sudo reboot",
      "%s belongs to driver %s, but the kernel module has version %s%s", devices->library, library, kernel,
      doctor->in_container ? ": remove libcuda from the image, so that the container uses the host's" : "");
}

/* Returns true if the driver itself reports the mismatch. Older drivers report other errors. */
static bool is_mismatch(const struct doctor_devices *devices) { return strstr(devices->why, "returned 803 ") != NULL; }

static bool blame_fabric(struct doctor *doctor, const struct doctor_devices *devices) {
  if (strstr(devices->why, "returned 802 ") == NULL) return false;
  return DOCTOR_FAIL(doctor, "cuda", "fabric_manager", "sudo systemctl start nvidia-fabricmanager",
                     "the GPUs are connected by NVSwitch, but the fabric manager is not running: %s", devices->why);
}

static void blame(struct doctor *doctor, const struct doctor_devices *devices) {
  if (doctor_blame_build(doctor, devices) || blame_kernel(doctor) || blame_files(doctor) ||
      blame_library(doctor, devices) || blame_stub(doctor, devices) ||
      (is_mismatch(devices) && blame_versions(doctor, devices)) || blame_fabric(doctor, devices) ||
      doctor_blame_mask(doctor, "cuda", masks) || blame_versions(doctor, devices)) {
    return;
  }
  (void)DOCTOR_FAIL(doctor, "cuda", "unknown", "sudo dmesg | grep -i nvrm | tail", "%s", devices->why);
}

/* ---- what works together ---- */

/* A compiler of a newer major version may generate code that the driver does not support. */
static void compare_compiler(struct doctor *doctor, const struct doctor_devices *devices) {
  char path[PATH_MAX];
  int (*version)(int *, int *) = NULL;
  int major = 0, minor = 0;
  if (!rill_device_supports(devices->first, RILL_FEATURE_RTC, NULL)) return;
  if (loaded_library("libnvrtc.so", path) == NULL) return;
  void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD),
       *symbol = library != NULL ? dlsym(library, "nvrtcVersion") : NULL;
  memcpy(&version, &symbol, sizeof version);
  const bool known = version != NULL && version(&major, &minor) == 0;
  if (library != NULL) (void)dlclose(library);
  if (!known || (uint32_t)major <= devices->driver_version / 1000) return;
  DOCTOR_WARN(doctor, "cuda", "compiler_version", "sudo apt install cuda-drivers",
              "%s belongs to CUDA %d.%d, but the driver to CUDA %u.%u: kernels compiled at run time may not load", path,
              major, minor, devices->driver_version / 1000, devices->driver_version % 1000 / 10);
}

void doctor_cuda(struct doctor *doctor) {
  static struct doctor_devices devices;
  doctor_find_devices("cuda", RILL_BACKEND_CUDA, &devices);
  const uint32_t driven = machine_count(doctor->root, "/proc/driver/nvidia/gpus/*");
  const uint32_t present = driven > 0 ? driven : machine_gpus(doctor->root, "0x10de");
  if (devices.count == 0 && present == 0 && !machine_has(doctor->root, VERSION_FILE)) {
    DOCTOR_OK(doctor, "cuda", "devices", "no NVIDIA GPU in this machine");
    return;
  }
  if (devices.count == 0) {
    blame(doctor, &devices);
    return;
  }
  if (!doctor_try_devices(doctor, &devices)) return;
  doctor_report_devices(doctor, &devices, present, masks);
  compare_compiler(doctor, &devices);
  doctor_communication(doctor, &devices);
}
