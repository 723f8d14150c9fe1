/* What rill info --topology asks of NVIDIA's management library: two GPUs, 0000:01:00.0 and 0000:02:00.0, with 4 links.
 */
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void) { return 0; }

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
  static int devices[2];
  if (strcmp(id, "0000:01:00.0") != 0 && strcmp(id, "0000:02:00.0") != 0) return 6;
  *device = &devices[id[6] - '1'];
  return 0;
}

EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active) {
  (void)device;
  *active = link < 4;
  return link < 6 ? 0 : 2;
}

EXPORT int nvmlDeviceGetP2PStatus(void *a, void *b, int capability, int *status);
int nvmlDeviceGetP2PStatus(void *a, void *b, int capability, int *status) {
  *status = a != b && capability == 2 ? 0 : 5;
  return 0;
}
