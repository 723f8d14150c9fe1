/* Every vendor function that a backend calls, as one that does nothing and succeeds: weak, so that null_cuda.c and
 * null_hip.c can define those that must return something. The list is the backends' own. */
#include NULL_VENDOR_HEADER /* renames by macro */

int null_success(void);

int null_success(void) { return 0; }

/* An assembler alias, since in C it would have to have each function's type. */
#define TEXT(name) #name
#define ALIAS(name) __asm__(".weak " TEXT(name) "\n.type " TEXT(name) ", %function\n.set " TEXT(name) ", null_success");
#define GPU_FUNCTION(field, name, need, capture) ALIAS(name)
#include "backends/gpu/gpu_api.def"
