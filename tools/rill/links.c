#include "links.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- NVLink: NVIDIA's management library, opened at run time ---- */

enum { MOST_LINKS = 36, P2P_NVLINK = 2 };

static struct {
  bool tried, found;
  int (*init)(void);
  int (*by_pci_bus_id)(const char *id, void **device);
  int (*link_state)(void *device, unsigned link, int *active);
  int (*p2p_status)(void *a, void *b, int capability, int *status);
} nvml;

static bool fill(void *library, const char *name, void *field) {
  void *symbol = dlsym(library, name);
  memcpy(field, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool has_nvml(void) {
  if (nvml.tried) return nvml.found;
  nvml.tried = true;
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  nvml.found = library != NULL && fill(library, "nvmlInit_v2", &nvml.init) &&
               fill(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_pci_bus_id) &&
               fill(library, "nvmlDeviceGetNvLinkState", &nvml.link_state) &&
               fill(library, "nvmlDeviceGetP2PStatus", &nvml.p2p_status) && nvml.init() == 0;
  return nvml.found;
}

static bool find(const rill_device_info *info, void **device) {
  return info->backend == RILL_BACKEND_CUDA && has_nvml() && nvml.by_pci_bus_id(info->pci_bus_id, device) == 0;
}

bool links_nvlink(const rill_device_info *a, const rill_device_info *b) {
  void *first, *second;
  int status = -1;
  return find(a, &first) && find(b, &second) && nvml.p2p_status(first, second, P2P_NVLINK, &status) == 0 && status == 0;
}

unsigned links_nvlink_count(const rill_device_info *info) {
  void *device;
  unsigned count = 0;
  if (!find(info, &device)) return 0;
  for (unsigned link = 0; link < MOST_LINKS; link++) {
    int active = 0;
    if (nvml.link_state(device, link, &active) != 0) break;
    count += active == 1;
  }
  return count;
}

/* ---- XGMI: files of AMD's driver in sysfs ---- */

enum { PATH = 512, LINK_XGMI = 11 };

/* Returns the number after a name in a file of "name number" lines, or -1 if the name is missing. */
static long long property(const char *path, const char *name) {
  FILE *file = fopen(path, "r");
  char key[64];
  long long value = -1, found = -1;
  while (file != NULL && fscanf(file, "%63s %lld", key, &value) == 2) {
    if (strcmp(key, name) == 0) found = value;
  }
  if (file != NULL) (void)fclose(file);
  return found;
}

/* Returns the driver's number of the GPU at a PCI address, or -1 if it has none. */
static int node_of(const char *sysfs, const rill_device_info *info) {
  unsigned domain, bus, device, function;
  if (sscanf(info->pci_bus_id, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return -1;
  const long long location = bus << 8 | device << 3 | function;
  for (int node = 0; node < 1024; node++) {
    char path[PATH];
    (void)snprintf(path, sizeof path, "%.300s/class/kfd/kfd/topology/nodes/%d/properties", sysfs, node);
    const long long found = property(path, "location_id"), in = property(path, "domain");
    if (found == -1) return -1; /* past the last */
    if (found == location && (in == -1 || in == (long long)domain)) return node;
  }
  return -1;
}

bool links_xgmi(const char *sysfs, const rill_device_info *a, const rill_device_info *b) {
  if (a->backend != RILL_BACKEND_HIP || b->backend != RILL_BACKEND_HIP) return false;
  const int from = node_of(sysfs, a), to = node_of(sysfs, b);
  for (int link = 0; link < 64 && from >= 0 && to >= 0; link++) {
    char path[PATH];
    (void)snprintf(path, sizeof path, "%.300s/class/kfd/kfd/topology/nodes/%d/io_links/%d/properties", sysfs, from,
                   link);
    const long long other = property(path, "node_to");
    if (other == -1) return false;
    if (other == to && property(path, "type") == LINK_XGMI) return true;
  }
  return false;
}
