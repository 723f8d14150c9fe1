#include <rill/rill.h>

uint32_t rill_version(void) {
  return (uint32_t)RILL_VERSION_MAJOR << 16 | (uint32_t)RILL_VERSION_MINOR << 8 | (uint32_t)RILL_VERSION_PATCH;
}
