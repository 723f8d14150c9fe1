#include "core/object/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void mix(struct rill__sha256 *hash) {
  uint32_t w[64], s[8];
  for (size_t i = 0; i < 16; i++) {
    const uint8_t *p = hash->block + 4 * i;
    w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
  }
  for (int i = 16; i < 64; i++) {
    const uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(s, hash->state, sizeof s);
  for (int i = 0; i < 64; i++) {
    const uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const uint32_t first = s[7] + e + choice + constants[i] + w[i];
    const uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    memmove(s + 1, s, 7 * sizeof s[0]);
    s[4] += first;
    s[0] = first + a + majority;
  }
  for (int i = 0; i < 8; i++) hash->state[i] += s[i];
}

void rill__sha256_begin(struct rill__sha256 *hash) {
  static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
  memcpy(hash->state, start, sizeof start);
  hash->length = 0;
}

void rill__sha256_add(struct rill__sha256 *hash, const void *data, size_t size) {
  const uint8_t *from = data;
  while (size > 0) {
    const size_t used = hash->length % sizeof hash->block, room = sizeof hash->block - used;
    const size_t n = size < room ? size : room;
    memcpy(hash->block + used, from, n);
    hash->length += n;
    from += n;
    size -= n;
    if (n == room) mix(hash);
  }
}

void rill__sha256_end(struct rill__sha256 *hash, uint8_t out[RILL__SHA256_BYTES]) {
  const uint64_t bits = hash->length * 8;
  static const uint8_t one = 0x80, zero = 0;
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
  rill__sha256_add(hash, &one, 1);
  while (hash->length % 64 != 56) rill__sha256_add(hash, &zero, 1);
  rill__sha256_add(hash, length, sizeof length);
  for (int i = 0; i < RILL__SHA256_BYTES; i++) out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
