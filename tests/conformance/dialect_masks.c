/* CUDA's functions with a mask or a group are correct for every mask that contains the calling threads (C6.8). The
 * model has a list of the lanes that a mask names and that have not exited, and processes one lane after another. */
#include "support/testing.h"

#include "dialect_masks.rill.h"

enum { CALLS = 23, SUMS = 9, FACTS = 14, MOST_THREADS = 70, MOST_CASES = 400, ROLES = 6 };

struct lanes {
  uint32_t count, thread[32]; /* numbers of threads, in ascending order */
};

static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0xee, bytes);
  return p;
}

static uint64_t random_state;
static uint64_t random_number(void) { /* splitmix64 */
  uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* ---- cases ---- */

static struct {
  uint32_t threads, drop, cases;
  uint32_t *masks, *roles, *from, *words;
  uint64_t *values;
} in;

static bool lives(uint32_t thread) { return thread < in.threads && (in.drop == 0 || thread % in.drop != 0); }

/* Returns the active lanes that a mask names in the warp of a thread. */
static struct lanes lanes_of(uint32_t thread, uint32_t mask) {
  struct lanes lanes = { .count = 0 };
  for (uint32_t lane = 0; lane < 32; lane++) {
    const uint32_t other = thread / 32 * 32 + lane;
    if ((mask >> lane & 1) != 0 && lives(other)) lanes.thread[lanes.count++] = other;
  }
  return lanes;
}

/* Adds a case in which the lanes of `mask` are one group of their warp, and the other lanes form `others` more groups.
 */
static void add_case(uint32_t mask, uint32_t others) {
  const uint32_t c = in.cases++;
  assert_true(c < MOST_CASES);
  for (uint32_t first = 0; first < in.threads; first += 32) {
    uint32_t group[8] = { mask };
    for (uint32_t lane = 0; lane < 32; lane++) {
      const uint32_t g = (uint32_t)(random_number() % (others > 0 ? others : 1)) + 1;
      if ((mask >> lane & 1) == 0 && others > 0) group[g] |= 1u << lane;
    }
    const uint64_t seed = random_number(), few = random_number() % 3;
    for (uint32_t g = 0; g <= others; g++) {
      const struct lanes lanes = lanes_of(first, group[g]);
      const uint32_t role = (uint32_t)(random_number() % (ROLES - 1)) + 1;
      for (uint32_t i = 0; i < lanes.count; i++) {
        const size_t at = c * in.threads + lanes.thread[i];
        in.masks[at] = group[g];
        in.roles[at] = role;
        in.from[at] = lanes.thread[random_number() % lanes.count] % 32;
      }
    }
    for (uint32_t t = first; t < first + 32 && t < in.threads; t++) {
      /* values that differ in all bits, only in the label, or not at all */
      uint64_t value = few == 0 ? random_number() : few == 1 ? seed ^ random_number() >> 62 << 62 : seed;
      in.values[c * in.threads + t] = value;
      in.words[c * in.threads + t] = (uint32_t)(value >> 16);
    }
  }
}

/* Adds all masks of six lanes at one position in the warp, and masks of arbitrary lanes. */
static void make_cases(uint32_t threads, uint32_t drop, uint32_t shift) {
  in.threads = threads;
  in.drop = drop;
  in.cases = 0;
  const size_t count = (size_t)MOST_CASES * threads;
  in.masks = pinned(count * sizeof *in.masks);
  in.roles = pinned(count * sizeof *in.roles);
  in.from = pinned(count * sizeof *in.from);
  in.words = pinned(count * sizeof *in.words);
  in.values = pinned(count * sizeof *in.values);
  memset(in.masks, 0, count * sizeof *in.masks);
  memset(in.roles, 0, count * sizeof *in.roles);
  memset(in.from, 0, count * sizeof *in.from);
  random_state = threads * 1000 + drop * 100 + shift;
  for (uint32_t bits = 1; bits < 64; bits++) add_case(bits << shift, 0);
  for (uint32_t bits = 1; bits < 64; bits++) add_case(bits << shift, 1);
  for (uint32_t lanes = 1; lanes <= 32; lanes *= 2) add_case(~0u >> (32 - lanes), 1);
  for (uint32_t i = 0; i < 64; i++) add_case((uint32_t)random_number(), i % 4);
  add_case(~0u, 0);
}

static void free_cases(void) {
  assert_ok(rill_free(in.masks));
  assert_ok(rill_free(in.roles));
  assert_ok(rill_free(in.from));
  assert_ok(rill_free(in.words));
  assert_ok(rill_free(in.values));
}

/* Calls `check` for blocks that end with a partial warp, blocks of whole warps, and blocks with threads that exit
 * early. */
static void for_each_shape(void (*check)(rill_stream stream, const rill_launch *launch)) {
  static const struct {
    uint32_t threads, drop, shift;
  } shapes[] = { { 6, 0, 0 }, { 32, 0, 0 }, { 32, 0, 13 }, { 38, 0, 0 }, { 70, 0, 26 }, { 32, 3, 1 }, { 70, 5, 0 } };
  rill_stream stream = new_stream("stream");
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    make_cases(shapes[s].threads, shapes[s].drop, shapes[s].shift);
    const rill_launch launch = rill_launch_1d(1, shapes[s].threads);
    check(stream, &launch);
    free_cases();
  }
}

#define EXPECT(what, got, expected)                                                                                    \
  do {                                                                                                                 \
    const uint64_t got_ = (got), expected_ = (expected);                                                               \
    if (got_ != expected_)                                                                                             \
      fail_msg("%s %u, %u threads, drop %u, case %u, thread %u, mask %#x: %#llx, not %#llx", what, result, in.threads, \
               in.drop, c, t, in.masks[c * in.threads + t], (unsigned long long)got_, (unsigned long long)expected_);  \
  } while (0)

/* ---- the model ---- */

static uint32_t bit_of(uint32_t thread) { return 1u << thread % 32; }

static uint32_t same_lanes(const struct lanes *lanes, const uint64_t *keys, uint64_t key) {
  uint32_t same = 0;
  for (uint32_t i = 0; i < lanes->count; i++)
    if (keys[lanes->thread[i]] == key) same |= bit_of(lanes->thread[i]);
  return same;
}

static uint32_t all_lanes(const struct lanes *lanes) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < lanes->count; i++) all |= bit_of(lanes->thread[i]);
  return all;
}

/* Returns the bits of the lanes whose value has one of `bits` set. */
static uint32_t lanes_with(const struct lanes *lanes, const uint64_t *values, uint64_t bits) {
  uint32_t with = 0;
  for (uint32_t i = 0; i < lanes->count; i++)
    if ((values[lanes->thread[i]] & bits) != 0) with |= bit_of(lanes->thread[i]);
  return with;
}

static uint32_t reduce_words(unsigned operation, const struct lanes *lanes, const uint32_t *words) {
  int64_t result = 0;
  for (uint32_t i = 0; i < lanes->count; i++) {
    const uint32_t word = words[lanes->thread[i]];
    const int64_t number = (int32_t)word;
    switch (operation) {
      case 0:
      case 1: result += word; break;
      case 2: result = i == 0 || word < (uint64_t)result ? word : result; break;
      case 3: result = i == 0 || word > (uint64_t)result ? word : result; break;
      case 4: result = i == 0 || number < result ? number : result; break;
      case 5: result = i == 0 || number > result ? number : result; break;
      case 6: result = i == 0 ? word : result & word; break;
      case 7: result |= word; break;
      default: result ^= word; break;
    }
  }
  return (uint32_t)result;
}

/* ---- one call for lanes of different masks ---- */

/* The value of lane `lane` of the warp, valid if the mask names that lane. */
struct shuffled {
  bool known;
  uint64_t value;
};
static struct shuffled shuffle(const struct lanes *lanes, const uint64_t *values, uint32_t t, uint32_t lane) {
  const bool named = (all_lanes(lanes) >> lane % 32 & 1) != 0;
  return (struct shuffled){ named && lane < 32, named ? values[t / 32 * 32 + lane % 32] : 0 };
}

static uint32_t float_bits(uint64_t value) {
  const uint32_t label = (uint32_t)(value >> 62);
  return (label & 1) << 31 | (label & 2) << 28;
}

static void check_call(uint32_t c, uint32_t t, const unsigned long long *out) {
  const uint64_t *const values = in.values + c * in.threads;
  const uint32_t lane = t % 32, from = in.from[c * in.threads + t], width = 1u << c % 6;
  const uint32_t by = (uint32_t)(values[t] >> 32) & 31, inside = lane % width, start = lane - inside;
  const struct lanes lanes = lanes_of(t, in.masks[c * in.threads + t]);
  const uint32_t all = all_lanes(&lanes), twos = lanes_with(&lanes, values, 2);
  uint64_t labels[MOST_THREADS] = { 0 };
  for (uint32_t i = 0; i < in.threads; i++) labels[i] = values[i] >> 62;
  const uint32_t same = same_lanes(&lanes, labels, labels[t]), every = same == all ? all : 0;
  const uint64_t source = values[t / 32 * 32 + from];
  const struct shuffled own = { true, values[t] };
  const uint64_t expected[CALLS] = { lanes_with(&lanes, values, 1),
                                     (uint32_t)(twos != 0) + 2u * (twos == all),
                                     source,
                                     (uint32_t)source,
                                     (uint32_t)source,
                                     float_bits(source),
                                     source,
                                     0,
                                     0,
                                     0,
                                     0,
                                     0,
                                     same,
                                     same,
                                     same,
                                     same,
                                     same,
                                     every,
                                     every != 0,
                                     every + (uint64_t)(every != 0),
                                     every + (uint64_t)(every != 0),
                                     (uint32_t)source,
                                     0 };
  /* Such a shuffle may reach lanes outside the mask, which CUDA leaves undefined. */
  const uint32_t crossed = lane ^ by;
  const struct shuffled reached[] = {
    shuffle(&lanes, values, t, start + from % width),
    by <= inside ? shuffle(&lanes, values, t, lane - by) : own,
    inside + by < width ? shuffle(&lanes, values, t, lane + by) : own,
    crossed <= (lane | (width - 1)) ? shuffle(&lanes, values, t, crossed) : own,
    shuffle(&lanes, values, t, crossed),
  };
  for (uint32_t result = 0; result < CALLS; result++) {
    const uint64_t got = out[(c * CALLS + result) * in.threads + t];
    if (result >= 7 && result < 12) {
      const struct shuffled *const r = &reached[result - 7];
      const bool is_wide = result == 9 || result == 11;
      if (r->known) EXPECT("call", got, is_wide ? r->value : (uint32_t)r->value);
    } else if (result == CALLS - 1) {
      const struct lanes living = lanes_of(t, ~0u);
      EXPECT("active lanes", got & ~(uint64_t)all_lanes(&living), 0);
      EXPECT("active lanes", got >> lane & 1, 1);
    } else {
      EXPECT("call", got, expected[result]);
    }
  }
}

static void check_calls(rill_stream stream, const rill_launch *launch) {
  unsigned long long *out = pinned((size_t)in.cases * CALLS * in.threads * sizeof *out);
  assert_ok(mask_calls_launch(stream, launch, in.drop, in.cases, in.masks, in.from,
                              (const unsigned long long *)in.values, out));
  assert_completes(stream);
  for (uint32_t c = 0; c < in.cases; c++)
    for (uint32_t t = 0; t < in.threads; t++)
      if (lives(t) && in.masks[c * in.threads + t] != 0) check_call(c, t, out);
  assert_ok(rill_free(out));
}

static void calls_exchange_only_within_the_mask(void) { for_each_shape(check_calls); }

/* ---- reductions ---- */

static void check_reductions(rill_stream stream, const rill_launch *launch) {
  unsigned *out = pinned((size_t)in.cases * SUMS * in.threads * sizeof *out);
  assert_ok(mask_reductions_launch(stream, launch, in.drop, in.cases, in.masks, in.words, out));
  assert_completes(stream);
  for (uint32_t c = 0; c < in.cases; c++)
    for (uint32_t t = 0; t < in.threads; t++) {
      const struct lanes lanes = lanes_of(t, in.masks[c * in.threads + t]);
      for (uint32_t result = 0; lives(t) && lanes.count > 0 && result < SUMS; result++)
        EXPECT("reduction", out[(c * SUMS + result) * in.threads + t],
               reduce_words(result, &lanes, in.words + c * in.threads));
    }
  /* the same with a mask that is known at compile time */
  assert_ok(mask_of_all_launch(stream, launch, in.drop, in.words, out));
  assert_completes(stream);
  for (uint32_t t = 0, c = in.cases - 1; t < in.threads; t++) {
    const struct lanes lanes = lanes_of(t, ~0u);
    static const unsigned operations[] = { 0, 4, 8 };
    uint64_t keys[MOST_THREADS];
    for (uint32_t i = 0; i < in.threads; i++) keys[i] = in.words[i] & 3;
    for (uint32_t result = 0; lives(t) && result < 3; result++)
      EXPECT("reduction of all", out[result * in.threads + t], reduce_words(operations[result], &lanes, in.words));
    const uint32_t result = 3;
    if (lives(t)) EXPECT("match of all", out[3 * in.threads + t], same_lanes(&lanes, keys, keys[t]));
  }
  assert_ok(rill_free(out));
}

static void reductions_cover_only_the_mask(void) { for_each_shape(check_reductions); }

/* ---- lanes in different functions ---- */

static uint32_t expected_of_role(uint32_t c, uint32_t t) {
  const size_t at = c * in.threads + t;
  const struct lanes lanes = lanes_of(t, in.masks[at]);
  const uint32_t *const words = in.words + c * in.threads;
  uint32_t changed[MOST_THREADS], expected = 0;
  uint64_t keys[MOST_THREADS];
  switch (in.roles[at]) {
    case 1:
      for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < in.threads; i++) changed[i] = words[i] + k;
        expected = 31 * expected + reduce_words(0, &lanes, changed);
      }
      return expected;
    case 2: return words[t / 32 * 32 + in.from[at]];
    case 3:
      for (uint32_t k = 0; k < 5; k++) {
        for (uint32_t i = 0; i < in.threads; i++) keys[i] = words[i];
        expected = 31 * expected + lanes_with(&lanes, keys, 1u << k);
      }
      return expected;
    case 4:
      for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < in.threads; i++) keys[i] = words[i] >> k & 3;
        expected = 31 * expected + same_lanes(&lanes, keys, keys[t]);
      }
      return expected;
    case 5:
      expected = reduce_words(5, &lanes, words);
      return 31 * expected + (expected ^ words[t / 32 * 32 + in.from[at]]);
    default: return 0;
  }
}

static void check_branches(rill_stream stream, const rill_launch *launch) {
  unsigned *out = pinned((size_t)in.cases * in.threads * sizeof *out);
  assert_ok(mask_branches_launch(stream, launch, in.drop, in.cases, in.masks, in.roles, in.from, in.words, out));
  assert_completes(stream);
  for (uint32_t c = 0; c < in.cases; c++)
    for (uint32_t t = 0; t < in.threads; t++) {
      const uint32_t result = in.roles[c * in.threads + t];
      if (lives(t)) EXPECT("role", out[c * in.threads + t], expected_of_role(c, t));
    }
  assert_ok(rill_free(out));
}

static void masks_divide_a_warp_between_functions(void) { for_each_shape(check_branches); }

/* ---- groups ---- */

/* Checks what thread t found out about its group. The lanes must be a subset of `most`, or equal to `most` if
 * `exactly`. */
static void check_facts(uint32_t c, uint32_t t, const unsigned long long *facts, uint32_t most, bool exactly) {
  const uint64_t *const values = in.values + c * in.threads;
  uint32_t result = 0;
  const uint32_t mask = (uint32_t)facts[0];
  EXPECT("lanes of a group", facts[0] & ~(uint64_t)most, 0);
  EXPECT("lanes of a group", mask & bit_of(t), bit_of(t));
  if (exactly) EXPECT("lanes of a group", mask, most);
  const struct lanes lanes = lanes_of(t, mask);
  uint32_t rank = 0, odd = 0, twos = 0, same = 0, words[MOST_THREADS];
  while (lanes.thread[rank] != t) rank++;
  for (uint32_t i = 0; i < in.threads; i++) words[i] = (uint32_t)values[i];
  for (uint32_t i = 0; i < lanes.count; i++) {
    const uint64_t value = values[lanes.thread[i]];
    odd |= (uint32_t)(value & 1) << i;
    twos += (value & 2) != 0;
    same |= (uint32_t)(value >> 62 == values[t] >> 62) << i;
  }
  const bool alike = same == (lanes.count == 32 ? ~0u : (1u << lanes.count) - 1);
  const uint64_t expected[FACTS] = { mask,
                                     1,
                                     lanes.count,
                                     rank,
                                     odd,
                                     (twos != 0) + 2 * (uint64_t)(twos == lanes.count),
                                     values[lanes.thread[rank > 0 ? rank - 1 : rank]],
                                     words[lanes.thread[rank + 2 < lanes.count ? rank + 2 : rank]],
                                     reduce_words(0, &lanes, words),
                                     reduce_words(5, &lanes, words),
                                     reduce_words(8, &lanes, words),
                                     same,
                                     alike ? same : 0,
                                     alike };
  for (; result < FACTS; result++) EXPECT("facts", facts[result * in.threads], expected[result]);
}

/* Returns the active threads of t's warp whose role is in the same branch. */
static uint32_t branch_of(uint32_t c, uint32_t t) {
  const uint32_t *const roles = in.roles + c * in.threads;
  uint32_t branch = 0;
  for (uint32_t i = t / 32 * 32; i < t / 32 * 32 + 32 && i < in.threads; i++)
    if (lives(i) && (roles[t] < 3 ? roles[i] < 3 : roles[i] == 3)) branch |= bit_of(i);
  return branch;
}

static void check_coalesced(rill_stream stream, const rill_launch *launch) {
  unsigned long long *out = pinned((size_t)in.cases * FACTS * in.threads * sizeof *out);
  assert_ok(
      mask_coalesced_launch(stream, launch, in.drop, in.cases, in.roles, (const unsigned long long *)in.values, out));
  assert_completes(stream);
  for (uint32_t c = 0; c < in.cases; c++)
    for (uint32_t t = 0; t < in.threads; t++) {
      const unsigned long long *const facts = out + (size_t)c * FACTS * in.threads + t;
      if (!lives(t) || in.roles[c * in.threads + t] > 3) continue;
      const struct lanes members = lanes_of(t, (uint32_t)facts[0]);
      const uint32_t result = 1, branch = branch_of(c, t);
      if (in.roles[c * in.threads + t] == 3) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < members.count; i++) sum += (uint32_t)in.values[c * in.threads + members.thread[i]];
        EXPECT("lanes of a group", facts[0] & ~(uint64_t)branch, 0);
        EXPECT("lanes of a group", facts[0] & bit_of(t), bit_of(t));
        EXPECT("sum of a group", facts[in.threads], sum);
      } else {
        check_facts(c, t, facts, branch, false);
      }
      /* All members of a group report the same members. */
      for (uint32_t i = 0; i < members.count; i++)
        EXPECT("members", out[(size_t)c * FACTS * in.threads + members.thread[i]], facts[0]);
    }
  assert_ok(rill_free(out));
}

static void converged_threads_form_a_group(void) { for_each_shape(check_coalesced); }

static void check_tiles(rill_status (*launch_tiles)(rill_stream, const rill_launch *, unsigned,
                                                    const unsigned long long *, const unsigned *, unsigned long long *),
                        uint32_t lanes) {
  rill_stream stream = new_stream("stream");
  const uint32_t sizes[] = { lanes, 3 * lanes < MOST_THREADS ? 3 * lanes : 2 * lanes, 64 };
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    make_cases(sizes[s], 0, 0);
    const rill_launch launch = rill_launch_1d(1, in.threads);
    unsigned long long *out = pinned((size_t)in.cases * 3 * FACTS * in.threads * sizeof *out);
    assert_ok(launch_tiles(stream, &launch, in.cases, (const unsigned long long *)in.values, in.roles, out));
    assert_completes(stream);
    for (uint32_t c = 0; c < in.cases; c++)
      for (uint32_t t = 0; t < in.threads; t++) {
        const uint32_t *const roles = in.roles + c * in.threads;
        uint32_t tile = 0, half = 0, same = 0;
        for (uint32_t i = t / lanes * lanes; i < t / lanes * lanes + lanes; i++) {
          tile |= bit_of(i);
          if ((roles[i] < 3) == (roles[t] < 3)) half |= bit_of(i);
          if (roles[i] == roles[t]) same |= bit_of(i);
        }
        const unsigned long long *const facts = out + (size_t)c * 3 * FACTS * in.threads + t;
        check_facts(c, t, facts, tile, true);
        check_facts(c, t, facts + FACTS * in.threads, half, true);
        check_facts(c, t, facts + 2 * FACTS * in.threads, same, true);
      }
    assert_ok(rill_free(out));
    free_cases();
  }
}

static void tiles_and_their_parts_are_groups(void) {
  check_tiles(mask_tiles_4_launch, 4);
  check_tiles(mask_tiles_32_launch, 32);
#ifdef EVERY_INSTANCE /* tests/levels */
  check_tiles(mask_tiles_2_launch, 2);
  check_tiles(mask_tiles_8_launch, 8);
  check_tiles(mask_tiles_16_launch, 16);
#endif
}

TESTS_ON_EACH_DEVICE("masks in kernels", TEST(calls_exchange_only_within_the_mask),
                     TEST(reductions_cover_only_the_mask), TEST(masks_divide_a_warp_between_functions),
                     TEST(converged_threads_form_a_group), TEST(tiles_and_their_parts_are_groups))
