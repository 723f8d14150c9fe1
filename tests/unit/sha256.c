/* SHA-256 of the examples in the standard, computed in one piece and in several. */
#include "core/object/sha256.h"
#include "support/testing.h"

#include <stdio.h>

static void check(const char *text, size_t repeat, const char *expected) {
  for (size_t piece = 1; piece < 200; piece += 63) { /* 1, 64, 127 and 190 */
    struct rill__sha256 hash;
    uint8_t out[RILL__SHA256_BYTES];
    char words[2 * RILL__SHA256_BYTES + 1];
    const size_t length = strlen(text), total = length * repeat;
    char *all = malloc(total + 1);
    for (size_t i = 0; i < repeat; i++) memcpy(all + i * length, text, length);
    rill__sha256_begin(&hash);
    for (size_t done = 0; done < total; done += piece) {
      rill__sha256_add(&hash, all + done, piece < total - done ? piece : total - done);
    }
    rill__sha256_end(&hash, out);
    free(all);
    for (int i = 0; i < RILL__SHA256_BYTES; i++) (void)snprintf(words + 2 * i, 3, "%02x", out[i]);
    assert_string_equal(words, expected);
  }
}

static void agrees_with_the_standard(void) {
  check("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  check("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  check("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TESTS_ONCE("sha256", TEST(agrees_with_the_standard))
