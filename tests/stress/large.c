/* Copies and fills more than 4 GiB, and checks both ends, which shows whether a size was truncated to 32 bits (C22 of
 * the edge cases). On a GPU the memory is the device's, if it has enough. On the CPU, most of the memory maps the same
 * 16 MiB repeatedly, to save space. */
#include "support/testing.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined __SANITIZE_THREAD__
#define UNDER_RACE_DETECTOR 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define UNDER_RACE_DETECTOR 1
#endif
#endif
#ifndef UNDER_RACE_DETECTOR
#define UNDER_RACE_DETECTOR 0 /* the race detector keeps four bytes of shadow memory for each byte */
#endif

static const size_t gib = (size_t)1 << 30, chunk = (size_t)16 << 20;
enum { TAIL = 4096, GUARD = 0xee };

#define SIZE (4 * gib + (chunk / 2) + 48) /* slightly more than 4 GiB, so that part of the next chunk is used */

/* Maps chunks of one file. The first and the last have pages of their own; all between them share the same pages. */
static void map_chunks(unsigned char *p) {
  const int file = memfd_create("rill test", MFD_CLOEXEC);
  assert_true(file >= 0);
  assert_int_equal(ftruncate(file, (off_t)(3 * chunk)), 0);
  const size_t count = 4 * gib / chunk + 1;
  for (size_t i = 0; i < count; i++) {
    const off_t offset = (off_t)(i == 0 ? 0 : i == count - 1 ? 2 * chunk : chunk);
    const void *there = mmap(p + i * chunk, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset);
    if (there == MAP_FAILED) fail_msg("a chunk cannot be mapped");
  }
  (void)close(file); /* the mapping stays valid */
}

/* Returns a large buffer. On the CPU it is mapped only once, because mapping takes long. */
static unsigned char *new_large(unsigned index) {
  static unsigned char *kept[2];
  const size_t all = 4 * gib + chunk;
  if (dut.gpu) {
    void *there = NULL;
    assert_ok(rill_alloc(dut.device, all, RILL_MEMORY_DEVICE, &there));
    return there;
  }
  if (kept[index] != NULL) return kept[index];
  unsigned char *p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail_msg("no addresses for %zu bytes", all);
  map_chunks(p);
  assert_ok(rill_host_register(dut.device, p, all)); /* otherwise a copy would make a copy of the source */
  return kept[index] = p;
}

static void end_large(unsigned char *p) {
  if (dut.gpu) assert_ok(rill_free(p));
}

static void needs_room(unsigned buffers) {
  uint64_t free_bytes = 0, total = 0;
  if (UNDER_RACE_DETECTOR) skip_because("a race detector needs four times as much memory");
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total));
  if (dut.gpu && free_bytes < (buffers + 1) * (4 * gib + chunk)) skip_because("the device has too little free memory");
}

/* Returns the byte at offset `i` of a source. */
static unsigned char byte_at(size_t i) { return (unsigned char)(i * 11 + i / 4096 + 5); }

/* Writes the bytes of byte_at, or the guard, at [at, at + TAIL). */
static void write_piece(rill_stream stream, unsigned char *p, size_t at, bool guard) {
  unsigned char piece[TAIL];
  for (size_t i = 0; i < TAIL; i++) piece[i] = guard ? GUARD : byte_at(at + i);
  assert_ok(rill_copy_async(stream, p + at, piece, TAIL));
  assert_completes(stream);
}

static void read_piece(rill_stream stream, const unsigned char *p, size_t at, unsigned char piece[TAIL]) {
  assert_ok(rill_copy_async(stream, piece, p + at, TAIL));
  assert_completes(stream);
}

/* Offsets at which a truncated size would show: the start, 4 GiB, and the end with the bytes after it. */
static const size_t begin = 0;
#define BEYOND (4 * gib)
#define END (SIZE - TAIL / 2)

static void copies(void) {
  needs_room(2);
  rill_stream stream = new_stream("stream");
  unsigned char *from = new_large(0), *to = new_large(1), piece[TAIL];
  const size_t places[] = { begin, BEYOND, END };
  for (size_t i = 0; i < 3; i++) {
    write_piece(stream, from, places[i], false);
    write_piece(stream, to, places[i], true);
  }
  assert_ok(rill_copy_async(stream, to, from, SIZE));
  for (size_t i = 0; i < 3; i++) {
    read_piece(stream, to, places[i], piece);
    for (size_t k = 0; k < TAIL; k++) {
      assert_int_equal(piece[k], places[i] + k < SIZE ? byte_at(places[i] + k) : GUARD);
    }
  }
  end_large(from);
  end_large(to);
}

/* 513 rows; the last one begins at 4 GiB. On the CPU, only the last row and the first two have pages of their own. */
static const size_t pitch = (size_t)8 << 20, width = ((size_t)8 << 20) - 112;
enum { ROWS = 513 };

/* The start and the end of the first and the last row, and the bytes after each of them. */
#define ROW_PLACES \
  { 0, width - TAIL / 2, 4 * gib, 4 * gib + width - TAIL / 2 }

static bool in_row(size_t at) { return at % pitch < width && at / pitch < ROWS; }

static void copies_rows(void) {
  needs_room(2);
  rill_stream stream = new_stream("stream");
  unsigned char *from = new_large(0), *to = new_large(1), piece[TAIL];
  const size_t places[] = ROW_PLACES;
  for (size_t i = 0; i < 4; i++) {
    write_piece(stream, from, places[i], false);
    write_piece(stream, to, places[i], true);
  }
  assert_ok(rill_copy_2d_async(stream, to, pitch, from, pitch, width, ROWS));
  for (size_t i = 0; i < 4; i++) {
    read_piece(stream, to, places[i], piece);
    for (size_t k = 0; k < TAIL; k++) {
      assert_int_equal(piece[k], in_row(places[i] + k) ? byte_at(places[i] + k) : GUARD);
    }
  }
  end_large(from);
  end_large(to);
}

static void fills(void) {
  needs_room(1);
  rill_stream stream = new_stream("stream");
  unsigned char *p = new_large(0), piece[TAIL], pattern[16];
  const size_t places[] = { begin, BEYOND, END };
  for (size_t size = 1; size <= (dut.gpu ? 16 : 1); size *= 4) {
    for (size_t i = 0; i < 16; i++) pattern[i] = (unsigned char)(i * 3 + size);
    for (size_t i = 0; i < 3; i++) write_piece(stream, p, places[i], true);
    assert_ok(rill_fill_async(stream, p, pattern, size, SIZE / size));
    for (size_t i = 0; i < 3; i++) {
      read_piece(stream, p, places[i], piece);
      for (size_t k = 0; k < TAIL; k++) {
        assert_int_equal(piece[k], places[i] + k < SIZE ? pattern[(places[i] + k) % size] : GUARD);
      }
    }
  }
  end_large(p);
}

static void fills_rows(void) {
  needs_room(1);
  rill_stream stream = new_stream("stream");
  unsigned char *p = new_large(0), piece[TAIL], pattern[16];
  const size_t places[] = ROW_PLACES;
  for (size_t size = dut.gpu ? 1 : 16; size <= 16; size *= 4) {
    for (size_t i = 0; i < 16; i++) pattern[i] = (unsigned char)(i * 5 + size);
    for (size_t i = 0; i < 4; i++) write_piece(stream, p, places[i], true);
    assert_ok(rill_fill_2d_async(stream, p, pitch, pattern, size, width / size, ROWS));
    for (size_t i = 0; i < 4; i++) {
      read_piece(stream, p, places[i], piece);
      for (size_t k = 0; k < TAIL; k++) {
        assert_int_equal(piece[k], in_row(places[i] + k) ? pattern[(places[i] + k) % size] : GUARD);
      }
    }
  }
  end_large(p);
}

TESTS_ON_EACH_DEVICE("copies and fills beyond 4 GiB", TEST(copies), TEST(copies_rows), TEST(fills), TEST(fills_rows))
