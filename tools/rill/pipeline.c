#include "pipeline.h"

#include "image.rill.h"
#include "reference.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The sum of the radii of the filters that read neighbours. */
enum { HALO = 3 };

/* Points of time that are marked for each tile. The next stage waits for the end point of the previous one. The
 * kernels of a tile run one after another on one stream, so the end of one is the start of the next. */
enum { UPLOAD_START, UPLOAD_END, KERNELS_START, BLUR_END, SHARPEN_END, TONE_END, DOWNLOAD_START, DOWNLOAD_END, POINTS };

const char *const pipeline_stages[STAGES] = { "upload", "blur", "sharpen", "tone", "download" };

static const struct {
  uint8_t start, end;
} stage_points[STAGES] = { { UPLOAD_START, UPLOAD_END },
                           { KERNELS_START, BLUR_END },
                           { BLUR_END, SHARPEN_END },
                           { SHARPEN_END, TONE_END },
                           { DOWNLOAD_START, DOWNLOAD_END } };

/* A tile of the picture, and the source that its filters read: the tile with the halo that the picture has. */
struct tile {
  uint32_t x, y, width, height; /* in the picture */
  uint32_t source_x, source_y, source_width, source_height;
};

/* Device memory of a tile; reused when the tile has been downloaded. */
struct slot {
  uint32_t *source, *blurred, *result;
};

struct pipeline {
  const struct pipeline_options *options;
  const struct picture *in;
  struct picture *out;
  uint32_t tiles, columns;
  uint32_t slot_count, streams;
  rill_stream stream[PIPELINE_MAX_STREAMS];
  struct slot slot[2 * PIPELINE_MAX_STREAMS];
  uint32_t *sources, *results; /* pinned: all tiles with halo, all tiles */
  rill_event origin;
  rill_event *points; /* POINTS for each tile */
  rill_event *edges;  /* same count, for a graph: they order the streams of the capture */
  bool capturing;
};

/* ---- layout ---- */

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t across(uint32_t pixels, uint32_t tile) { return (pixels + tile - 1) / tile; }

uint64_t pipeline_tile_count(const struct picture *picture, uint32_t tile) {
  return (uint64_t)across(picture->width, tile) * across(picture->height, tile);
}

static struct tile tile_at(const struct pipeline *p, uint32_t index) {
  const uint32_t edge = p->options->tile;
  struct tile t = { .x = index % p->columns * edge, .y = index / p->columns * edge };
  t.width = smaller(edge, p->in->width - t.x);
  t.height = smaller(edge, p->in->height - t.y);
  t.source_x = t.x - smaller(t.x, HALO);
  t.source_y = t.y - smaller(t.y, HALO);
  t.source_width = smaller(t.x + t.width + HALO, p->in->width) - t.source_x;
  t.source_height = smaller(t.y + t.height + HALO, p->in->height) - t.source_y;
  return t;
}

/* Return the number of pixels of the largest tile, without and with its halo. */
static size_t result_pixels(const struct pipeline *p) {
  return (size_t)smaller(p->options->tile, p->in->width) * smaller(p->options->tile, p->in->height);
}
static size_t source_pixels(const struct pipeline *p) {
  return (size_t)smaller(p->options->tile + 2 * HALO, p->in->width) *
         smaller(p->options->tile + 2 * HALO, p->in->height);
}

static rill_event point(const struct pipeline *p, uint32_t tile, uint32_t which) {
  return p->points[(size_t)tile * POINTS + which];
}
static rill_event edge(const struct pipeline *p, uint32_t tile, uint32_t which) {
  return p->edges[(size_t)tile * POINTS + which];
}
static size_t point_count(const struct pipeline *p) { return (size_t)p->tiles * POINTS; }

/* Return the roles of streams. The first stream uploads, the last one downloads, and those between run kernels, if
 * there are that many streams. */
static uint32_t kernel_streams(uint32_t streams) { return streams > 2 ? streams - 2 : 1; }
static uint32_t download_track(uint32_t streams) { return streams > 2 ? streams - 1 : 0; }
static uint32_t kernel_track(uint32_t streams, uint32_t tile) {
  return streams == 1 ? 0 : 1 + tile % kernel_streams(streams);
}

static uint32_t track_of(const struct pipeline *p, uint32_t stage, uint32_t tile) {
  if (stage == STAGE_UPLOAD) return 0;
  return stage == STAGE_DOWNLOAD ? download_track(p->streams) : kernel_track(p->streams, tile);
}

static const char *track_name(uint32_t streams, uint32_t track) {
  static const char *const kernels[PIPELINE_MAX_STREAMS - 2] = { "kernels 0",  "kernels 1", "kernels 2",  "kernels 3",
                                                                 "kernels 4",  "kernels 5", "kernels 6",  "kernels 7",
                                                                 "kernels 8",  "kernels 9", "kernels 10", "kernels 11",
                                                                 "kernels 12", "kernels 13" };
  if (streams == 1) return "all";
  if (streams == 2) return track == 0 ? "copies" : "kernels";
  if (track == 0) return "upload";
  return track == streams - 1 ? "download" : streams == 3 ? "kernels" : kernels[track - 1];
}

/* ---- create and destroy ---- */

static rill_status make_events(struct pipeline *p) {
  rill_status status = rill_event_create(p->options->device, RILL_EVENT_OPTIONS(.timing = true), &p->origin);
  for (size_t i = 0; i < point_count(p) && status == RILL_OK; i++) {
    status = rill_event_create(p->options->device, RILL_EVENT_OPTIONS(.timing = true), &p->points[i]);
    if (status == RILL_OK && p->options->graph) status = rill_event_create(p->options->device, NULL, &p->edges[i]);
  }
  return status;
}

static rill_status make_streams(struct pipeline *p) {
  rill_status status = RILL_OK;
  for (uint32_t i = 0; i < p->streams && status == RILL_OK; i++) {
    const char *label = track_name(p->streams, i);
    status = rill_stream_create(p->options->device, RILL_STREAM_OPTIONS(.label = label), &p->stream[i]);
  }
  return status;
}

static rill_status make_memory(struct pipeline *p) {
  const rill_device device = p->options->device;
  const size_t source = source_pixels(p), result = result_pixels(p);
  rill_status status = RILL_NEW(device, RILL_MEMORY_PINNED, source * p->tiles, &p->sources);
  if (status == RILL_OK) status = RILL_NEW(device, RILL_MEMORY_PINNED, result * p->tiles, &p->results);
  for (uint32_t i = 0; i < p->slot_count && status == RILL_OK; i++) {
    struct slot *slot = &p->slot[i];
    status = RILL_NEW(device, RILL_MEMORY_DEVICE, source, &slot->source);
    if (status == RILL_OK) status = RILL_NEW(device, RILL_MEMORY_DEVICE, source, &slot->blurred);
    if (status == RILL_OK) status = RILL_NEW(device, RILL_MEMORY_DEVICE, result, &slot->result);
  }
  return status;
}

static bool make(struct pipeline *p, struct pipeline_result *result) {
  const size_t bars = (size_t)p->tiles * STAGES;
  const bool graph = p->options->graph;
  p->points = calloc(point_count(p), sizeof *p->points);
  p->edges = graph ? calloc(point_count(p), sizeof *p->edges) : NULL;
  result->on_streams.bars = calloc(bars, sizeof *result->on_streams.bars);
  result->replay.bars = graph ? calloc(bars, sizeof *result->replay.bars) : NULL;
  if (p->points == NULL || result->on_streams.bars == NULL ||
      (graph && (p->edges == NULL || result->replay.bars == NULL))) {
    return complain("out of memory");
  }
  return (make_streams(p) == RILL_OK && make_events(p) == RILL_OK && make_memory(p) == RILL_OK) || complain_of_rill();
}

/* Memory is freed last, because freeing waits for work that a failure may have left. */
static void end(struct pipeline *p) {
  for (size_t i = 0; p->points != NULL && i < point_count(p); i++) (void)rill_event_release(p->points[i]);
  (void)rill_event_release(p->origin);
  for (uint32_t i = 0; i < p->streams; i++) (void)rill_stream_release(p->stream[i]);
  for (uint32_t i = 0; i < p->slot_count; i++) {
    (void)rill_free(p->slot[i].source);
    (void)rill_free(p->slot[i].blurred);
    (void)rill_free(p->slot[i].result);
  }
  (void)rill_free(p->sources);
  (void)rill_free(p->results);
  free(p->points);
  for (size_t i = 0; p->edges != NULL && i < point_count(p); i++) (void)rill_event_release(p->edges[i]);
  free(p->edges);
}

/* ---- submitting ---- */

/* Calls a rill function and returns its status on failure. */
#define TRY(call)                           \
  do {                                      \
    const rill_status status_ = (call);     \
    if (status_ != RILL_OK) return status_; \
  } while (0)

static rill_launch pixels_launch(uint32_t width, uint32_t height, const char *label) {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.block = (rill_dim3){ 32, 8, 1 };
  launch.grid = (rill_dim3){ across(width, 32), across(height, 8), 1 };
  launch.label = label;
  return launch;
}

/* Marks a point of time. In a capture the mark is a node, which has a time after each launch and orders nothing;
 * another event orders the streams. */
static rill_status mark(const struct pipeline *p, rill_stream stream, uint32_t tile, uint32_t which) {
  TRY(rill_stream_record_event(stream, point(p, tile, which), RILL_EVENT_EXTERNAL));
  return p->capturing ? rill_stream_record_event(stream, edge(p, tile, which), 0) : RILL_OK;
}

static rill_status wait_for(const struct pipeline *p, rill_stream stream, uint32_t tile, uint32_t which) {
  const rill_event event = p->capturing ? edge(p, tile, which) : point(p, tile, which);
  return rill_stream_wait_event(stream, event, RILL_WAIT_MUST_BE_RECORDED);
}

static rill_status submit_upload(const struct pipeline *p, uint32_t index) {
  const struct tile t = tile_at(p, index);
  const struct slot *slot = &p->slot[index % p->slot_count];
  const rill_stream stream = p->stream[0];
  if (index >= p->slot_count) {
    TRY(wait_for(p, stream, index - p->slot_count, DOWNLOAD_END));
  }
  TRY(mark(p, stream, index, UPLOAD_START));
  TRY(rill_copy_async(stream, slot->source, p->sources + source_pixels(p) * index,
                      sizeof *slot->source * t.source_width * t.source_height));
  return mark(p, stream, index, UPLOAD_END);
}

static rill_status submit_kernels(const struct pipeline *p, uint32_t index) {
  const struct tile t = tile_at(p, index);
  const struct slot *slot = &p->slot[index % p->slot_count];
  const rill_stream stream = p->stream[kernel_track(p->streams, index)];
  const int width = (int)t.width, height = (int)t.height;
  const int source_width = (int)t.source_width, source_height = (int)t.source_height;
  const size_t source_pitch = sizeof(uint32_t) * t.source_width, pitch = sizeof(uint32_t) * t.width;

  TRY(wait_for(p, stream, index, UPLOAD_END));
  TRY(mark(p, stream, index, KERNELS_START));
  rill_launch launch = pixels_launch(t.source_width, t.source_height, "blur");
  if (p->options->lone_threads) launch.block = (rill_dim3){ 1, 1, 1 };
  TRY(image_blur_launch(stream, &launch, slot->blurred, source_pitch, source_width, source_height, slot->source,
                        source_pitch, source_width, source_height, 0, 0));
  TRY(mark(p, stream, index, BLUR_END));
  launch = pixels_launch(t.width, t.height, "sharpen");
  TRY(image_sharpen_launch(stream, &launch, slot->result, pitch, width, height, slot->blurred, source_pitch,
                           source_width, source_height, (int)(t.x - t.source_x), (int)(t.y - t.source_y),
                           FILTER_AMOUNT));
  TRY(mark(p, stream, index, SHARPEN_END));
  launch.label = "tone";
  TRY(image_tone_launch(stream, &launch, slot->result, pitch, width, height, slot->result, pitch, FILTER_SATURATION,
                        FILTER_CONTRAST, FILTER_BRIGHTNESS));
  return mark(p, stream, index, TONE_END);
}

static rill_status submit_download(const struct pipeline *p, uint32_t index) {
  const struct tile t = tile_at(p, index);
  const struct slot *slot = &p->slot[index % p->slot_count];
  const rill_stream stream = p->stream[download_track(p->streams)];
  TRY(wait_for(p, stream, index, TONE_END));
  TRY(mark(p, stream, index, DOWNLOAD_START));
  TRY(rill_copy_async(stream, p->results + result_pixels(p) * index, slot->result,
                      sizeof *slot->result * t.width * t.height));
  return mark(p, stream, index, DOWNLOAD_END);
}

static rill_status synchronize(const struct pipeline *p) {
  for (uint32_t i = 0; i < p->streams; i++) TRY(rill_stream_synchronize(p->stream[i]));
  return RILL_OK;
}

/* Loads the kernels and wakes the device with the first tile, so that the times are those of steady work. */
static rill_status warm_up(const struct pipeline *p) {
  TRY(submit_upload(p, 0));
  TRY(submit_kernels(p, 0));
  TRY(submit_download(p, 0));
  return synchronize(p);
}

/* With one stream for both copies, a download submitted immediately would delay the next upload until the kernels are
 * done, so it is submitted one tile later. */
static rill_status submit(const struct pipeline *p) {
  const uint32_t late = p->streams == 2 ? 1 : 0;
  TRY(rill_stream_record_event(p->stream[0], p->origin, RILL_EVENT_EXTERNAL));
  for (uint32_t i = 1; i < p->streams; i++) TRY(rill_stream_wait_stream(p->stream[i], p->stream[0]));
  for (uint32_t i = 0; i < p->tiles + late; i++) {
    if (i < p->tiles) TRY(submit_upload(p, i));
    if (i < p->tiles) TRY(submit_kernels(p, i));
    if (i >= late) TRY(submit_download(p, i - late));
  }
  return RILL_OK;
}

/* ---- as a graph ---- */

static rill_status submit_and_join(const struct pipeline *p) {
  TRY(submit(p));
  for (uint32_t i = 1; i < p->streams; i++) TRY(rill_stream_wait_stream(p->stream[0], p->stream[i]));
  return RILL_OK;
}

/* Captures the job that was submitted to the streams as a graph. */
static rill_status capture(struct pipeline *p, rill_graph *graph) {
  TRY(rill_stream_capture_begin(p->stream[0], RILL_CAPTURE_THREAD));
  p->capturing = true;
  const rill_status submitted = submit_and_join(p);
  p->capturing = false;
  if (submitted == RILL_OK) return rill_stream_capture_end(p->stream[0], graph);
  (void)!rill_stream_capture_abort(p->stream[0]);
  return submitted;
}

/* ---- before and after ---- */

static void cut(const struct pipeline *p) {
  for (uint32_t i = 0; i < p->tiles; i++) {
    const struct tile t = tile_at(p, i);
    uint32_t *to = p->sources + source_pixels(p) * i;
    for (uint32_t y = 0; y < t.source_height; y++) {
      const size_t from = ((size_t)(t.source_y + y) * p->in->width + t.source_x) * 4;
      memcpy(to + (size_t)y * t.source_width, p->in->pixels + from, (size_t)t.source_width * 4);
    }
  }
}

static void assemble(const struct pipeline *p) {
  for (uint32_t i = 0; i < p->tiles; i++) {
    const struct tile t = tile_at(p, i);
    const uint32_t *from = p->results + result_pixels(p) * i;
    for (uint32_t y = 0; y < t.height; y++) {
      const size_t to = ((size_t)(t.y + y) * p->in->width + t.x) * 4;
      memcpy(p->out->pixels + to, from + (size_t)y * t.width, (size_t)t.width * 4);
    }
  }
}

static double now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static rill_status read_times(const struct pipeline *p, struct pipeline_times *times) {
  double first = 0, last = 0;
  for (uint32_t tile = 0; tile < p->tiles; tile++) {
    float at[POINTS];
    for (uint32_t i = 0; i < POINTS; i++) TRY(rill_event_elapsed_time(p->origin, point(p, tile, i), &at[i]));
    if (tile == 0) first = (double)at[UPLOAD_START];
    for (uint32_t stage = 0; stage < STAGES; stage++) {
      struct timeline_bar *bar = &times->bars[times->bar_count++];
      *bar = (struct timeline_bar){ .track = track_of(p, stage, tile), .stage = stage, .tile = tile };
      bar->start = (double)at[stage_points[stage].start] - first;
      bar->end = (double)at[stage_points[stage].end] - first;
      if (bar->end > last) last = bar->end;
    }
  }
  times->span = last > 0 ? last : 1e-6;
  return RILL_OK;
}

/* Submits the job to the streams or as a launch of `exec`, and waits for it. */
static rill_status run(const struct pipeline *p, const rill_graph_exec *exec, struct pipeline_times *times) {
  memset(p->results, 0, sizeof *p->results * result_pixels(p) * p->tiles);
  const double start = now();
  const rill_status submitted = exec != NULL ? rill_graph_launch(*exec, p->stream[0]) : submit(p);
  times->submit = now() - start;
  TRY(submitted);
  TRY(synchronize(p));
  times->host = now() - start;
  return read_times(p, times);
}

/* Runs one launch to warm up and one to measure. */
static rill_status replay(const struct pipeline *p, rill_graph graph, rill_graph_exec *exec,
                          struct pipeline_result *result) {
  TRY(rill_graph_get_nodes(graph, NULL, &result->nodes));
  const double start = now();
  TRY(rill_graph_instantiate(graph, exec));
  result->instantiate = now() - start;
  TRY(rill_graph_launch(*exec, p->stream[0]));
  TRY(synchronize(p));
  return run(p, exec, &result->replay);
}

static rill_status run_as_graph(struct pipeline *p, struct pipeline_result *result) {
  rill_graph graph = { 0 };
  rill_graph_exec exec = { 0 };
  const double start = now();
  TRY(capture(p, &graph));
  result->capture = now() - start;
  const rill_status status = replay(p, graph, &exec, result);
  (void)rill_graph_exec_release(exec);
  (void)rill_graph_release(graph);
  return status;
}

static rill_status run_all(struct pipeline *p, struct pipeline_result *result) {
  TRY(warm_up(p));
  TRY(run(p, NULL, &result->on_streams));
  return p->options->graph ? run_as_graph(p, result) : RILL_OK;
}

bool pipeline_run(const struct pipeline_options *options, const struct picture *in, struct picture *out,
                  struct pipeline_result *result) {
  struct pipeline p = { .options = options, .in = in, .out = out };
  p.streams = options->streams;
  p.columns = across(in->width, options->tile);
  p.tiles = (uint32_t)pipeline_tile_count(in, options->tile);
  p.slot_count = smaller(p.streams == 1 ? 1 : 2 * kernel_streams(p.streams) + 2, p.tiles);
  *result = (struct pipeline_result){ .tiles = p.tiles, .slots = p.slot_count, .tracks = p.streams };
  for (uint32_t i = 0; i < p.streams; i++) result->track_names[i] = track_name(p.streams, i);
  bool ok = make(&p, result);
  if (ok) {
    cut(&p);
    ok = run_all(&p, result) == RILL_OK || complain_of_rill();
  }
  if (ok) assemble(&p);
  end(&p);
  return ok;
}

void pipeline_result_free(struct pipeline_result *result) {
  free(result->on_streams.bars);
  free(result->replay.bars);
  result->on_streams.bars = result->replay.bars = NULL;
}
