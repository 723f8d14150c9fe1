/* An access sets bits, four per byte, in a piece: a bitmap for PIECE_BYTES of memory.  Memory use therefore depends on
 * the bytes that a launch accesses, not on the number of its accesses.
 *
 * Invariants
 * - A piece does not move until the launch has ended, because workers remember the pieces that they used last.
 * - `pieces` is changed under the lock; the bits of a piece are only ever set.
 */
#include "backends/cpu/accesses.h"

#include "backends/cpu/lock.h"

#include <stdlib.h>
#include <string.h>

enum {
  PIECE_BYTES = 256,
  WORDS = PIECE_BYTES / 64,
  PIECES_MAX = 1 << 18, /* per launch: covers 64 MiB of accessed memory with 40 MiB of bitmaps */
  RANGES_MAX = 1 << 18, /* number of ranges passed to core */
  REMEMBERED = 64       /* number of pieces that a worker remembers */
};

struct piece {
  uintptr_t begin;
  struct piece *next; /* next piece of the hash chain */
  _Atomic uint64_t bits[RILL__ACCESSED_KINDS][WORDS];
};

struct cpu_accesses {
  uint64_t token;
  struct cpu_lock lock;
  struct piece **chains;
  size_t count, room; /* count: pieces; room: hash chains, a power of two, or 0 */
  bool lacking;       /* true if an access was not noted */
};

static _Thread_local struct {
  uint64_t token;
  struct piece *pieces[REMEMBERED];
} remembered;

struct cpu_accesses *rill__cpu_accesses_new(uint64_t token) {
  struct cpu_accesses *accesses = calloc(1, sizeof *accesses);
  if (accesses != NULL) accesses->token = token;
  return accesses;
}

/* ---- pieces ---- */

static size_t chain_of_piece(const struct cpu_accesses *accesses, uintptr_t begin) {
  return (size_t)((uint64_t)begin / PIECE_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (accesses->room - 1);
}

static bool add_chains(struct cpu_accesses *accesses) {
  struct piece **const before = accesses->chains;
  const size_t room = accesses->room;
  struct piece **const chains = calloc(room == 0 ? 64 : 2 * room, sizeof(struct piece *));
  if (chains == NULL) return false;
  accesses->chains = chains;
  accesses->room = room == 0 ? 64 : 2 * room;
  for (size_t i = 0; i < room; i++) {
    for (struct piece *piece = before[i], *next; piece != NULL; piece = next) {
      struct piece **const chain = &chains[chain_of_piece(accesses, piece->begin)];
      next = piece->next;
      piece->next = *chain;
      *chain = piece;
    }
  }
  free(before);
  return true;
}

/* Returns the piece, created if necessary; NULL if there is no room for a new one.  Call it under the lock. */
static struct piece *get_piece(struct cpu_accesses *accesses, uintptr_t begin) {
  struct piece *piece = accesses->room > 0 ? accesses->chains[chain_of_piece(accesses, begin)] : NULL;
  while (piece != NULL && piece->begin != begin) piece = piece->next;
  if (piece != NULL) return piece;
  if (accesses->count == PIECES_MAX || (accesses->count >= accesses->room && !add_chains(accesses))) return NULL;
  piece = calloc(1, sizeof *piece);
  if (piece == NULL) return NULL;
  struct piece **const chain = &accesses->chains[chain_of_piece(accesses, begin)];
  piece->begin = begin;
  piece->next = *chain;
  *chain = piece;
  accesses->count++;
  return piece;
}

static struct piece *find_piece(struct cpu_accesses *accesses, uintptr_t begin) {
  if (remembered.token != accesses->token) memset(&remembered, 0, sizeof remembered);
  remembered.token = accesses->token;
  struct piece **const place = &remembered.pieces[begin / PIECE_BYTES % REMEMBERED];
  if (*place != NULL && (*place)->begin == begin) return *place;
  cpu_acquire(&accesses->lock);
  struct piece *const piece = get_piece(accesses, begin);
  if (piece == NULL) accesses->lacking = true;
  cpu_release(&accesses->lock);
  if (piece != NULL) *place = piece;
  return piece;
}

/* Returns a word with bits `first` to `end` - 1 set. */
static uint64_t bits_of(size_t first, size_t end) {
  return (end - first == 64 ? UINT64_MAX : (UINT64_C(1) << (end - first)) - 1) << first;
}

static void set_bits(struct piece *piece, size_t first, size_t end, uint32_t how) {
  for (size_t word = first / 64; word * 64 < end; word++) {
    const size_t from = word * 64 > first ? 0 : first - word * 64, to = end - word * 64 < 64 ? end - word * 64 : 64;
    const uint64_t bits = bits_of(from, to);
    for (uint32_t kind = 0; kind < RILL__ACCESSED_KINDS; kind++) {
      if ((how >> kind & 1) == 0) continue;
      if ((~atomic_load_explicit(&piece->bits[kind][word], memory_order_relaxed) & bits) != 0)
        atomic_fetch_or_explicit(&piece->bits[kind][word], bits, memory_order_relaxed);
    }
  }
}

void rill__cpu_accesses_note(struct cpu_accesses *accesses, uintptr_t p, size_t size, uint32_t how) {
  const uintptr_t end = p + size;
  while (p < end) {
    const uintptr_t begin = p / PIECE_BYTES * PIECE_BYTES;
    const uintptr_t stop = end - begin < PIECE_BYTES ? end : begin + PIECE_BYTES;
    struct piece *const piece = find_piece(accesses, begin);
    if (piece == NULL) return;
    set_bits(piece, p - begin, stop - begin, how);
    p = stop;
  }
}

/* ---- ranges ---- */

struct ranges {
  struct rill__accessed *list;
  size_t count, room;
  bool full;
};

static void add_range(struct ranges *ranges, uintptr_t begin, size_t size, uint32_t how) {
  struct rill__accessed *const last = ranges->count > 0 ? &ranges->list[ranges->count - 1] : NULL;
  if (last != NULL && last->how == how && last->begin + last->size == begin) {
    last->size += size;
    return;
  }
  if (ranges->count == ranges->room && !ranges->full) {
    const size_t room = ranges->room == 0 ? 64 : 2 * ranges->room;
    struct rill__accessed *larger = room <= RANGES_MAX ? realloc(ranges->list, room * sizeof *larger) : NULL;
    ranges->full = larger == NULL;
    if (larger != NULL) ranges->list = larger;
    if (larger != NULL) ranges->room = room;
  }
  if (!ranges->full) ranges->list[ranges->count++] = (struct rill__accessed){ begin, size, how };
}

static uint32_t access_kinds_at(const uint64_t bits[RILL__ACCESSED_KINDS], size_t bit) {
  uint32_t how = 0;
  for (uint32_t kind = 0; kind < RILL__ACCESSED_KINDS; kind++) how |= (uint32_t)(bits[kind] >> bit & 1) << kind;
  return how;
}

/* Works a word at a time.  A run of bytes with the same kinds of access ends where a bit of any kind changes. */
static void add_ranges(struct ranges *ranges, const struct piece *piece) {
  for (size_t word = 0; word < WORDS; word++) {
    uint64_t bits[RILL__ACCESSED_KINDS], changes = 0;
    for (uint32_t kind = 0; kind < RILL__ACCESSED_KINDS; kind++) {
      bits[kind] = atomic_load_explicit(&piece->bits[kind][word], memory_order_relaxed);
      changes |= bits[kind] ^ bits[kind] << 1;
    }
    for (size_t first = 0, end; first < 64; first = end) {
      const uint64_t later = first == 63 ? 0 : changes & UINT64_MAX << (first + 1);
      end = later == 0 ? 64 : (size_t)__builtin_ctzll(later);
      const uint32_t how = access_kinds_at(bits, first);
      if (how != 0) add_range(ranges, piece->begin + word * 64 + first, end - first, how);
    }
  }
}

static int compare_pieces(const void *a, const void *b) {
  const uintptr_t x = (*(struct piece *const *)a)->begin, y = (*(struct piece *const *)b)->begin;
  return x < y ? -1 : x > y;
}

/* Returns the pieces sorted by address, in an array from malloc, or NULL. */
static struct piece **sort_pieces(const struct cpu_accesses *accesses) {
  struct piece **const all = malloc((accesses->count + 1) * sizeof(struct piece *));
  size_t count = 0;
  for (size_t i = 0; i < accesses->room && all != NULL; i++) {
    for (struct piece *piece = accesses->chains[i]; piece != NULL; piece = piece->next) all[count++] = piece;
  }
  if (all != NULL) qsort(all, count, sizeof(struct piece *), compare_pieces);
  return all;
}

static void free_pieces(struct cpu_accesses *accesses) {
  for (size_t i = 0; i < accesses->room; i++) {
    for (struct piece *piece = accesses->chains[i], *next; piece != NULL; piece = next) {
      next = piece->next;
      free(piece);
    }
  }
  free(accesses->chains);
}

void rill__cpu_accesses_end(struct cpu_accesses *accesses) {
  struct ranges ranges = { 0 };
  struct piece **const all = sort_pieces(accesses);
  for (size_t i = 0; i < accesses->count && all != NULL; i++) add_ranges(&ranges, all[i]);
  const bool complete = all != NULL && !ranges.full && !accesses->lacking;
  rill__accessed(accesses->token, ranges.list, ranges.count, complete);
  free(all);
  free(ranges.list);
  free_pieces(accesses);
  free(accesses);
}
