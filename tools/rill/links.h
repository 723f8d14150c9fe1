/* Links between GPUs other than PCIe, as reported by the vendors. */
#ifndef RILL_TOOL_LINKS_H
#define RILL_TOOL_LINKS_H

#include <rill/rill.h>

/* Returns whether NVLink connects the two GPUs; false if NVIDIA's management library is missing. */
bool links_nvlink(const rill_device_info *a, const rill_device_info *b);
/* Returns the number of active NVLinks of a GPU, or 0 if it has none or the number is unknown. */
unsigned links_nvlink_count(const rill_device_info *info);

/* Returns whether AMD's driver lists an XGMI link between the two GPUs below `sysfs`. */
bool links_xgmi(const char *sysfs, const rill_device_info *a, const rill_device_info *b);

#endif
