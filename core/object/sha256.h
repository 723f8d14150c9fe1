/* SHA-256 (FIPS 180-4), used to name files and to detect damaged ones. */
#ifndef RILL_CORE_OBJECT_SHA256_H
#define RILL_CORE_OBJECT_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { RILL__SHA256_BYTES = 32 };

struct rill__sha256 {
  uint32_t state[8];
  uint64_t length; /* bytes so far */
  uint8_t block[64];
};

void rill__sha256_begin(struct rill__sha256 *hash);
void rill__sha256_add(struct rill__sha256 *hash, const void *data, size_t size);
void rill__sha256_end(struct rill__sha256 *hash, uint8_t out[RILL__SHA256_BYTES]);

#endif
