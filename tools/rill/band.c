#include "band.h"

#include "image.rill.h"
#include "reference.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

enum { HALO = BAND_HALO, MOST_STREAMS = 16 };

const char *const band_stages[BAND_STAGES] = { "inner tile", "edge tile", "halo exchange" };

/* A tile with its halo, the part of the picture that its filters read. */
struct tile {
  uint32_t x, y, width, height;
  uint32_t source_x, source_y, source_width, source_height;
  bool edge; /* reads rows of another rank */
};

struct band {
  const struct band_options *options;
  uint32_t width, rows;            /* size of the band, without the rows of its neighbours */
  uint32_t above, below;           /* rows of its neighbours; 0 if there is none */
  uint32_t columns, tiles, tracks; /* tracks: streams for tiles */
  uint32_t *memory[2];             /* all rows: a pass reads one and writes the other */
  uint32_t *blurred[MOST_STREAMS];
  rill_stream exchange, track[MOST_STREAMS];
  rill_event origin, exchanged, done[MOST_STREAMS]; /* marks between streams, recorded again in each pass */
  rill_event *points;                               /* start and end of each exchange and each tile */
};

#define TRY(call)                           \
  do {                                      \
    const rill_status status_ = (call);     \
    if (status_ != RILL_OK) return status_; \
  } while (0)

static bool complained;

/* Prints an error of rill_comm, which has its own last error. */
static rill_status of_comm(rill_status status) {
  if (status != RILL_OK) complained = !complain("%s", rill_comm_last_error_text());
  return status;
}

/* ---- layout ---- */

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t across(uint32_t pixels, uint32_t tile) { return (pixels + tile - 1) / tile; }

uint32_t band_first(uint32_t height, uint32_t ranks, uint32_t rank) {
  return (uint32_t)((uint64_t)height * rank / ranks);
}
uint32_t band_rows(uint32_t height, uint32_t ranks, uint32_t rank) {
  return band_first(height, ranks, rank + 1) - band_first(height, ranks, rank);
}

/* Returns the number of rows that no other rank reads and that depend on no other rank. */
static uint32_t inner_rows(uint32_t rows, uint32_t above, uint32_t below) {
  return rows > above + below ? rows - above - below : 0;
}

static uint32_t tiles_of(const struct band_options *o, uint32_t width, uint32_t rows, uint32_t above, uint32_t below) {
  const uint32_t edges = (above > 0 ? 1u : 0u) + (below > 0 && rows > above ? 1u : 0u);
  return across(width, o->tile) * (across(inner_rows(rows, above, below), o->tile) + edges);
}

size_t band_most_bars(const struct band_options *options, const struct picture *picture) {
  const uint32_t rows = picture->height / options->ranks + 1;
  return (size_t)options->passes *
         (tiles_of(options, picture->width, rows, 0, 0) + 3 * across(picture->width, options->tile) + 1);
}

/* Returns a tile. The rows of tiles are, from the top, the upper edge, the inner rows and the lower edge. */
static struct tile tile_at(const struct band *b, uint32_t index) {
  const uint32_t edge = b->options->tile, all = b->above + b->rows + b->below, line = index / b->columns;
  const uint32_t inner = inner_rows(b->rows, b->above, b->below), first = b->above > 0;
  struct tile t = { .x = index % b->columns * edge };
  t.width = smaller(edge, b->width - t.x);
  if (line < first) { /* the tile is the whole band, if the band is that small */
    t.y = b->above;
    t.height = smaller(HALO, b->rows);
  } else if (line - first < across(inner, edge)) {
    t.y = 2 * b->above + (line - first) * edge;
    t.height = smaller(edge, 2 * b->above + inner - t.y);
  } else {
    t.height = smaller(HALO, b->rows - b->above);
    t.y = b->above + b->rows - t.height;
  }
  t.source_x = t.x - smaller(t.x, HALO);
  t.source_y = t.y - smaller(t.y, HALO);
  t.source_width = smaller(t.x + t.width + HALO, b->width) - t.source_x;
  t.source_height = smaller(t.y + t.height + HALO, all) - t.source_y;
  t.edge = t.source_y < b->above || t.source_y + t.source_height > b->above + b->rows;
  return t;
}

static uint32_t *row(const struct band *b, uint32_t which, uint32_t y) {
  return b->memory[which] + (size_t)y * b->width;
}

/* Returns the event at the start (`end` 0) or the end (`end` 1) of an exchange (`which` 0) or of tile `which` - 1. */
static rill_event point(const struct band *b, uint32_t pass, uint32_t which, uint32_t end) {
  return b->points[((size_t)pass * (b->tiles + 1) + which) * 2 + end];
}

/* ---- create and destroy ---- */

static rill_status make(struct band *b) {
  const struct band_options *o = b->options;
  const size_t all = (size_t)b->width * (b->above + b->rows + b->below);
  const size_t source = (size_t)smaller(o->tile + 2 * HALO, b->width) * (o->tile + 2 * HALO);
  const rill_event_options timed = { sizeof timed, true, false, false, false, NULL };
  TRY(rill_stream_create(o->device, RILL_STREAM_OPTIONS(.label = "halo", .priority = RILL_PRIORITY_HIGH),
                         &b->exchange));
  for (uint32_t i = 0; i < 2; i++) TRY(RILL_NEW(o->device, RILL_MEMORY_DEVICE, all, &b->memory[i]));
  for (uint32_t i = 0; i < b->tracks; i++) {
    TRY(rill_stream_create(o->device, RILL_STREAM_OPTIONS(.label = "tiles"), &b->track[i]));
    TRY(rill_event_create(o->device, NULL, &b->done[i]));
    TRY(RILL_NEW(o->device, RILL_MEMORY_DEVICE, source, &b->blurred[i]));
  }
  TRY(rill_event_create(o->device, &timed, &b->origin));
  TRY(rill_event_create(o->device, NULL, &b->exchanged));
  for (size_t i = 0; i < (size_t)o->passes * (b->tiles + 1) * 2; i++) {
    TRY(rill_event_create(o->device, &timed, &b->points[i]));
  }
  return RILL_OK;
}

static void end(struct band *b) {
  for (size_t i = 0; b->points != NULL && i < (size_t)b->options->passes * (b->tiles + 1) * 2; i++) {
    (void)rill_event_release(b->points[i]);
  }
  (void)rill_event_release(b->origin);
  (void)rill_event_release(b->exchanged);
  (void)rill_stream_release(b->exchange);
  for (uint32_t i = 0; i < b->tracks; i++) {
    (void)rill_event_release(b->done[i]);
    (void)rill_stream_release(b->track[i]);
    (void)rill_free(b->blurred[i]);
  }
  (void)rill_free(b->memory[0]);
  (void)rill_free(b->memory[1]);
  free(b->points);
}

/* ---- submitting ---- */

/* Sends this rank's outermost rows to its neighbours and receives their rows. */
static rill_status exchange_rows(const struct band *b, uint32_t which) {
  const struct band_options *o = b->options;
  const size_t count = (size_t)HALO * b->width;
  const uint32_t type = RILL_COMM_UINT32, up = o->rank - 1, down = o->rank + 1;
  TRY(rill_comm_group_begin());
  /* If an operation was refused, the end of the group fails with the same text. */
  if (b->above > 0) {
    (void)!rill_comm_send(o->comm, b->exchange, row(b, which, b->above), count, type, up);
    (void)!rill_comm_receive(o->comm, b->exchange, row(b, which, 0), count, type, up);
  }
  if (b->below > 0) {
    (void)!rill_comm_send(o->comm, b->exchange, row(b, which, b->above + b->rows - HALO), count, type, down);
    (void)!rill_comm_receive(o->comm, b->exchange, row(b, which, b->above + b->rows), count, type, down);
  }
  return rill_comm_group_end();
}

static rill_launch pixels_launch(uint32_t width, uint32_t height, const char *label) {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.block = (rill_dim3){ 32, 8, 1 };
  launch.grid = (rill_dim3){ across(width, 32), across(height, 8), 1 };
  launch.label = label;
  return launch;
}

static rill_status submit_tile(const struct band *b, const struct tile *t, uint32_t track, uint32_t from) {
  const size_t pitch = sizeof(uint32_t) * b->width, source_pitch = sizeof(uint32_t) * t->source_width;
  const int width = (int)t->width, height = (int)t->height;
  const int source_width = (int)t->source_width, source_height = (int)t->source_height;
  const uint32_t *source = row(b, from, t->source_y) + t->source_x;
  uint32_t *result = row(b, !from, t->y) + t->x, *blurred = b->blurred[track];
  const rill_stream stream = b->track[track];
  rill_launch launch = pixels_launch(t->source_width, t->source_height, "blur");
  if (b->options->lone_threads) launch.block = (rill_dim3){ 1, 1, 1 };
  TRY(image_blur_launch(stream, &launch, blurred, source_pitch, source_width, source_height, source, pitch,
                        source_width, source_height, 0, 0));
  launch = pixels_launch(t->width, t->height, "sharpen");
  TRY(image_sharpen_launch(stream, &launch, result, pitch, width, height, blurred, source_pitch, source_width,
                           source_height, (int)(t->x - t->source_x), (int)(t->y - t->source_y), FILTER_AMOUNT));
  launch.label = "tone";
  return image_tone_launch(stream, &launch, result, pitch, width, height, result, pitch, FILTER_SATURATION,
                           FILTER_CONTRAST, FILTER_BRIGHTNESS);
}

/* Inner tiles do not depend on other ranks and run during the exchange. Tiles at the edges run after it. */
static rill_status submit_tiles(const struct band *b, uint32_t pass, bool edges) {
  for (uint32_t i = 0, track = 0; i < b->tiles; i++) {
    const struct tile t = tile_at(b, i);
    if (t.edge != edges) continue;
    TRY(rill_stream_record_event(b->track[track], point(b, pass, i + 1, 0), 0));
    TRY(submit_tile(b, &t, track, pass % 2));
    TRY(rill_stream_record_event(b->track[track], point(b, pass, i + 1, 1), 0));
    track = (track + 1) % b->tracks;
  }
  return RILL_OK;
}

static rill_status submit_pass(const struct band *b, uint32_t pass) {
  TRY(rill_stream_record_event(b->exchange, point(b, pass, 0, 0), 0));
  TRY(of_comm(exchange_rows(b, pass % 2)));
  TRY(rill_stream_record_event(b->exchange, point(b, pass, 0, 1), 0));
  TRY(rill_stream_record_event(b->exchange, b->exchanged, 0));
  TRY(submit_tiles(b, pass, false));
  for (uint32_t i = 0; i < b->tracks; i++) TRY(rill_stream_wait_event(b->track[i], b->exchanged, 0));
  TRY(submit_tiles(b, pass, true));
  /* The next pass reads the rows that all streams wrote, and writes the rows that they read. */
  for (uint32_t i = 0; i < b->tracks; i++) TRY(rill_stream_record_event(b->track[i], b->done[i], 0));
  for (uint32_t i = 0; i < b->tracks; i++) {
    TRY(rill_stream_wait_event(b->exchange, b->done[i], 0));
    for (uint32_t k = 0; k < b->tracks; k++) TRY(rill_stream_wait_event(b->track[k], b->done[i], 0));
  }
  return RILL_OK;
}

static rill_status synchronize(const struct band *b) {
  TRY(rill_stream_synchronize(b->exchange));
  for (uint32_t i = 0; i < b->tracks; i++) TRY(rill_stream_synchronize(b->track[i]));
  return RILL_OK;
}

/* Runs everything once, to load the kernels and connect the ranks. Then starts the measured run in all ranks at the
 * same time. */
static rill_status submit(const struct band *b, const uint32_t *own_rows) {
  const size_t bytes = sizeof(uint32_t) * b->width * b->rows;
  TRY(submit_pass(b, 0));
  TRY(synchronize(b));
  TRY(rill_copy_async(b->exchange, row(b, 0, b->above), own_rows, bytes));
  TRY(of_comm(rill_comm_barrier(b->options->comm, b->exchange)));
  TRY(rill_stream_synchronize(b->exchange));
  TRY(rill_stream_record_event(b->exchange, b->origin, 0));
  for (uint32_t i = 0; i < b->tracks; i++) TRY(rill_stream_wait_event(b->track[i], b->origin, 0));
  for (uint32_t pass = 0; pass < b->options->passes; pass++) TRY(submit_pass(b, pass));
  return synchronize(b);
}

/* ---- results ---- */

static rill_status read_bar(const struct band *b, uint32_t pass, uint32_t which, struct timeline_bar *bar) {
  float start = 0, stop = 0;
  TRY(rill_event_elapsed_time(b->origin, point(b, pass, which, 0), &start));
  TRY(rill_event_elapsed_time(b->origin, point(b, pass, which, 1), &stop));
  bar->track = b->options->rank;
  bar->tile = which == 0 ? pass : which - 1;
  bar->start = (double)start;
  bar->end = (double)stop;
  return RILL_OK;
}

static rill_status read_times(const struct band *b, struct band_result *result) {
  result->bar_count = 0;
  result->span = 1e-6;
  for (uint32_t pass = 0; pass < b->options->passes; pass++) {
    uint32_t tracks[2] = { 0, 0 }; /* the next track of inner tiles, and of tiles at the edges */
    for (uint32_t which = 0; which <= b->tiles; which++) {
      struct timeline_bar *bar = &result->bars[result->bar_count++];
      *bar = (struct timeline_bar){ .stage = BAND_EXCHANGE };
      if (which > 0) {
        const bool edge = tile_at(b, which - 1).edge;
        bar->stage = edge ? BAND_EDGE : BAND_INNER;
        bar->slice = 1 + tracks[edge]++ % b->tracks;
      }
      TRY(read_bar(b, pass, which, bar));
      if (bar->end > result->span) result->span = bar->end;
    }
  }
  return RILL_OK;
}

static rill_status run(struct band *b, const struct picture *in, struct band_result *result) {
  const size_t pixels = (size_t)b->width * b->rows;
  const uint32_t first = band_first(in->height, b->options->ranks, b->options->rank);
  TRY(make(b));
  TRY(RILL_NEW(b->options->device, RILL_MEMORY_PINNED, pixels, &result->pixels));
  memcpy(result->pixels, in->pixels + (size_t)first * b->width * 4, pixels * 4);
  TRY(submit(b, result->pixels));
  TRY(rill_copy_async(b->exchange, result->pixels, row(b, b->options->passes % 2, b->above), pixels * 4));
  TRY(rill_stream_synchronize(b->exchange));
  return read_times(b, result);
}

bool band_run(const struct band_options *o, const struct picture *in, struct band_result *result) {
  struct band b = { .options = o, .width = in->width, .rows = band_rows(in->height, o->ranks, o->rank) };
  b.above = o->rank > 0 ? HALO : 0;
  b.below = o->rank + 1 < o->ranks ? HALO : 0;
  b.tracks = o->streams > 1 ? smaller(o->streams, MOST_STREAMS) - 1 : 1;
  b.columns = across(b.width, o->tile);
  b.tiles = tiles_of(o, b.width, b.rows, b.above, b.below);
  b.points = calloc((size_t)o->passes * (b.tiles + 1) * 2, sizeof *b.points);
  const rill_status status = b.points != NULL ? run(&b, in, result) : RILL_ERROR_OUT_OF_MEMORY;
  if (status != RILL_OK && !complained) (void)complain_of_rill();
  end(&b);
  return status == RILL_OK;
}
