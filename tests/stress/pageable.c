/* Random work on pageable memory, checked against a model (C5.3). On several streams, host calls and copies write the
 * memory, and copies of one or more rows read it. The program itself writes a source as soon as the call that reads it
 * has returned.
 *
 * The model runs each operation at its call. This is correct because the order is fully determined: each stream that
 * uses a buffer waits for the stream that used it last, and the program writes pageable memory only after a copy from
 * it has returned, and this copy has waited for all earlier writes. */
#include "support/testing.h"

enum { THREADS = 4, STREAMS = 3, BUFFERS = 8, PAGEABLE = 4, WORDS = 6000, STEPS = 400 };

struct buffer {
  uint32_t *words;
  uint32_t *model;
  unsigned stream; /* stream of the last use */
};

struct program {
  uint32_t state;
  rill_stream streams[STREAMS];
  struct buffer buffers[BUFFERS]; /* the first PAGEABLE buffers are from malloc */
};

static bool is_pinned(unsigned buffer) { return buffer >= PAGEABLE && buffer % 2 != 0; }

static uint32_t next(struct program *p) {
  p->state = p->state * 1664525 + 1013904223;
  return p->state >> 8;
}

struct write {
  uint32_t *to, value;
  size_t count;
  bool slow;
};

static void write_words(void *user, rill_status status) {
  struct write *const write = user;
  if (write->slow) let_pass_ns(20000);
  for (size_t i = 0; i < write->count && status == RILL_OK; i++) write->to[i] = write->value;
  free(write);
}

/* Makes the stream wait for the last use of the buffer, and returns a part of the buffer. */
static const char *use(struct program *p, unsigned stream, unsigned buffer) {
  if (p->buffers[buffer].stream != stream)
    REQUIRE_OK(rill_stream_wait_stream(p->streams[stream], p->streams[p->buffers[buffer].stream]));
  p->buffers[buffer].stream = stream;
  return NULL;
}

static const char *fill(struct program *p, unsigned stream, unsigned buffer, size_t at, size_t count) {
  struct buffer *const b = &p->buffers[buffer];
  const uint32_t value = next(p);
  const bool by_host = !dut.gpu || buffer < PAGEABLE || is_pinned(buffer), by_device = !dut.gpu || buffer >= PAGEABLE;
  for (size_t i = 0; i < count; i++) b->model[at + i] = value;
  if (by_device && (!by_host || next(p) % 2 == 0)) {
    REQUIRE_OK(rill_fill_async(p->streams[stream], b->words + at, &value, sizeof value, count));
  } else {
    struct write *const write = malloc(sizeof *write);
    *write = (struct write){ b->words + at, value, count, next(p) % 4 == 0 };
    REQUIRE_OK(rill_stream_host_call(p->streams[stream], write_words, write));
  }
  return NULL;
}

/* Copies at most a quarter of the buffer's words, as `rows` rows separated by gaps of the same length. */
static const char *copy(struct program *p, unsigned stream, unsigned to, unsigned from) {
  struct buffer *const dst = &p->buffers[to], *const src = &p->buffers[from];
  const size_t rows = next(p) % 2 == 0 ? 1 : 2 + next(p) % 6, width = 1 + next(p) % (WORDS / 4 / rows);
  const size_t dst_at = next(p) % (WORDS / 2), src_at = next(p) % (WORDS / 2), pitch = 2 * width;
  for (size_t row = 0; row < rows; row++)
    memcpy(dst->model + dst_at + row * pitch, src->model + src_at + row * width, width * sizeof *dst->model);
  REQUIRE_OK(rill_copy_2d_async(p->streams[stream], dst->words + dst_at, pitch * sizeof *dst->words,
                                src->words + src_at, width * sizeof *src->words, width * sizeof *src->words, rows));
  /* the source has been read, so a later write must not change the copy */
  if (from < PAGEABLE && to >= PAGEABLE && next(p) % 2 == 0) {
    const uint32_t value = next(p);
    for (size_t i = 0; i < rows * width; i++) src->words[src_at + i] = src->model[src_at + i] = value;
  }
  return NULL;
}

static const char *run_program(struct program *p) {
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_create(dut.device, NULL, &p->streams[i]));
  for (unsigned i = 0; i < BUFFERS; i++) {
    const uint32_t kind = is_pinned(i) ? RILL_MEMORY_PINNED : RILL_MEMORY_DEVICE, zero = 0;
    struct buffer *const b = &p->buffers[i];
    if (i < PAGEABLE) b->words = calloc(WORDS, sizeof *b->words);
    else REQUIRE_OK(RILL_NEW(dut.device, kind, WORDS, &b->words));
    if (i >= PAGEABLE) REQUIRE_OK(rill_fill_async(p->streams[0], b->words, &zero, sizeof zero, WORDS));
    b->model = calloc(WORDS, sizeof *b->model);
    REQUIRE(b->words != NULL && b->model != NULL);
  }
  for (unsigned i = 0; i < scaled(STEPS); i++) {
    const unsigned stream = next(p) % STREAMS, a = next(p) % BUFFERS, b = next(p) % BUFFERS;
    const char *failed = use(p, stream, a);
    const bool fills = a == b || next(p) % 3 == 0;
    if (failed == NULL && !fills) failed = use(p, stream, b);
    if (failed == NULL && !fills) failed = copy(p, stream, a, b);
    if (failed == NULL && fills) {
      const size_t at = next(p) % WORDS;
      failed = fill(p, stream, a, at, 1 + next(p) % (WORDS - at));
    }
    if (failed != NULL) return failed;
  }
  return NULL;
}

static const char *check_program(struct program *p) {
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_synchronize(p->streams[i]));
  for (unsigned i = 0; i < BUFFERS; i++) {
    static _Thread_local uint32_t seen[WORDS];
    REQUIRE_OK(rill_copy_async(p->streams[0], seen, p->buffers[i].words, sizeof seen));
    REQUIRE_OK(rill_stream_synchronize(p->streams[0]));
    REQUIRE(memcmp(seen, p->buffers[i].model, sizeof seen) == 0);
  }
  for (unsigned i = 0; i < STREAMS; i++) REQUIRE_OK(rill_stream_release(p->streams[i]));
  for (unsigned i = 0; i < BUFFERS; i++) {
    free(p->buffers[i].model);
    if (i < PAGEABLE) free(p->buffers[i].words);
    else REQUIRE_OK(rill_free(p->buffers[i].words));
  }
  return NULL;
}

static const char *run_and_check(unsigned index, void *seed) {
  struct program p;
  memset(&p, 0, sizeof p);
  p.state = *(const uint32_t *)seed + index * 7919;
  const char *const failed = run_program(&p);
  return failed != NULL ? failed : check_program(&p);
}

static void pageable_memory_is_used_in_order(void) {
  const char *const chosen = getenv("RILL_STRESS_SEED");
  uint32_t seed = chosen != NULL ? (uint32_t)strtoul(chosen, NULL, 10) : (uint32_t)now_ns();
  for (unsigned round = 0; round < scaled(6); round++, seed++) {
    print_message("RILL_STRESS_SEED=%u\n", seed);
    run_threads(THREADS, run_and_check, &seed);
  }
}

TESTS_ON_EACH_DEVICE("stress: pageable memory", TEST(pageable_memory_is_used_in_order))
