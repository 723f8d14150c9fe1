/* Links between GPUs that are not PCIe: what the vendors tell of them. */
#ifndef RILL_TOOL_LINKS_H
#define RILL_TOOL_LINKS_H

#include <rill/rill.h>

/* Whether the two are joined by NVLink; false where NVIDIA's management library is not here or says no. */
bool links_nvlink(const rill_device_info *a, const rill_device_info *b);
/* Active NVLinks of a GPU; 0 if it has none, or nobody can tell. */
unsigned links_nvlink_count(const rill_device_info *info);

/* Whether AMD's driver lists an XGMI link between the two below `sysfs`. */
bool links_xgmi(const char *sysfs, const rill_device_info *a, const rill_device_info *b);

#endif
