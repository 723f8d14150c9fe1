/* The syntax of sizes in RILL_CPU_MEMORY. */
#include "support/testing.h"

#include "backends/cpu/cpu.h"

static void reads_numbers_and_units(void) {
  static const struct {
    const char *text;
    uint64_t bytes;
  } sizes[] = { { "1", 1 },
                { "1000000", 1000000 },
                { "7B", 7 },
                { "3K", 3 << 10 },
                { "3k", 3 << 10 },
                { "3KB", 3 << 10 },
                { "3KiB", 3 << 10 },
                { "512M", 512u << 20 },
                { "512MiB", 512u << 20 },
                { "2GiB", UINT64_C(2) << 30 },
                { "2g", UINT64_C(2) << 30 },
                { "5TiB", UINT64_C(5) << 40 },
                { "0010K", 10 << 10 },
                { "18446744073709551615", UINT64_MAX },
                { "16777215TiB", UINT64_C(16777215) << 40 } };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint64_t bytes = 0;
    if (!rill__cpu_parse_size(sizes[i].text, &bytes)) fail_msg("%s is refused", sizes[i].text);
    assert_int_equal(bytes, sizes[i].bytes);
  }
}

static void refuses_everything_else(void) {
  static const char *const bad[] = { "",
                                     " ",
                                     "0",
                                     "0GiB",
                                     "-1",
                                     "+1",
                                     " 1",
                                     "1 ",
                                     "abc",
                                     "GiB",
                                     "1.5G",
                                     "1 GiB",
                                     "2GiBs",
                                     "2Gi",
                                     "2Gb",
                                     "2X",
                                     "1e9",
                                     "0x100",
                                     "2GG",
                                     "2iB",
                                     "16777216T",
                                     "2BB",
                                     "1,000",
                                     "max",
                                     "18446744073709551616",
                                     "99999999999999999999999999",
                                     "17592186044416M" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint64_t bytes = 77;
    if (rill__cpu_parse_size(bad[i], &bytes)) fail_msg("\"%s\" is taken for %llu", bad[i], (unsigned long long)bytes);
    assert_int_equal(bytes, 77);
  }
}

TESTS_ONCE("sizes", TEST(reads_numbers_and_units), TEST(refuses_everything_else))
