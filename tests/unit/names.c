/* Source names of kernels, derived from mangled symbols. */
#include "core/kernel/image.h"
#include "support/testing.h"

/* The second string is the output of c++filt without the parameters and the return type. */
static const struct {
  const char *symbol, *name;
} known[] = {
  { "_Z3addP6float4PK6__halfi", "add" },
  { "_ZL3addPf", "add" },
  { "_ZN4game4moveEPfi", "game::move" },
  { "_ZN1a1bL1cEv", "a::b::c" },
  { "_ZN12_GLOBAL__N_13addEPf", "(anonymous namespace)::add" },
  { "_ZN1a5scaleIfEEvPT_S1_i", "a::scale<float>" },
  { "_Z5scaleIfLi4EEvPT_", "scale<float, 4>" },
  { "_Z4tileILi4ELb1ELb0EPKfEvv", "tile<4, true, false, const float *>" },
  { "_Z4stepILin2EyhEvv", "step<-2, unsigned long long, unsigned char>" },
  { "_Z1fI6matrixIfLi4EEN2ns4pairIiPvEEEvT_", "f<matrix<float, 4>, ns::pair<int, void *>>" },
};

static void names_are_those_of_the_source(void) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char name[128];
    assert_true(rill__source_name(known[i].symbol, name, sizeof name));
    assert_string_equal(name, known[i].name);
  }
}

static void unknown_symbols_are_refused(void) {
  static const char *const unknown[] = {
    "",
    "_Z",
    "saxpy",
    "_saxpy",
    "_Zsaxpy",
    "_Z3ad",
    "_Z99999999999999999999add",
    "_ZN",
    "_ZN1a",
    "_Z1fI",
    "_Z1fIf",
    "_Z1fILi4",
    "_Z1fILfE",
    "_Z1fIS_EvT_",
    "_Z1fIPKPfEvv",
    "_Z1fIPPPPPPPPPPPPPPPPPPPPfEvv",
  };
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    char name[128];
    assert_false(rill__source_name(unknown[i], name, sizeof name));
  }
}

/* Uses buffers of every size, every prefix of a symbol, and symbols with one changed byte. Allocations of the exact
 * size let the address sanitizer detect an access outside. */
static void stays_inside_its_buffers(void) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const size_t length = strlen(known[i].symbol), needed = strlen(known[i].name) + 1;
    for (size_t size = 0; size <= needed; size++) {
      char *room = malloc(size + (size == 0));
      assert_int_equal(rill__source_name(known[i].symbol, room, size), size == needed);
      free(room);
    }
    for (size_t n = 0; n <= length; n++) {
      for (int byte = n < length ? 1 : 255; byte < 256; byte++) {
        char *symbol = malloc(n + 2), room[64];
        memcpy(symbol, known[i].symbol, n);
        symbol[n] = (char)byte;
        symbol[n + 1] = '\0';
        if (rill__source_name(symbol, room, sizeof room)) assert_true(strlen(room) < sizeof room);
        free(symbol);
      }
    }
  }
}

TESTS_ONCE("names of kernels", TEST(names_are_those_of_the_source), TEST(unknown_symbols_are_refused),
           TEST(stays_inside_its_buffers))
