#include "report.h"

#include "tool.h"

#include <stdlib.h>

struct totals {
  double stage[STAGES];  /* milliseconds */
  double busy;           /* sum over all stages */
  double copies, hidden; /* time of all copies, and of copies while a kernel ran */
};

static bool is_copy(uint32_t stage) { return stage == STAGE_UPLOAD || stage == STAGE_DOWNLOAD; }

/* A point of time at which the number of running kernels or copies changes. */
struct edge {
  double at;
  int kernels, copies;
};

static int by_time(const void *a, const void *b) {
  const double x = ((const struct edge *)a)->at, y = ((const struct edge *)b)->at;
  return (x > y) - (x < y);
}

static void measure_hidden(struct edge *edges, size_t count, struct totals *totals) {
  int kernels = 0, copies = 0;
  qsort(edges, count, sizeof *edges, by_time);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && kernels > 0) totals->hidden += copies * (edges[i].at - edges[i - 1].at);
    kernels += edges[i].kernels;
    copies += edges[i].copies;
  }
}

static bool measure(const struct pipeline_times *run, struct totals *totals) {
  *totals = (struct totals){ .busy = 0 };
  struct edge *edges = calloc(2 * run->bar_count, sizeof *edges);
  if (edges == NULL) return complain("out of memory");
  for (size_t i = 0; i < run->bar_count; i++) {
    const struct timeline_bar *bar = &run->bars[i];
    const double time = bar->end - bar->start;
    const int copy = is_copy(bar->stage);
    totals->stage[bar->stage] += time;
    totals->busy += time;
    if (copy) totals->copies += time;
    edges[2 * i] = (struct edge){ bar->start, !copy, copy };
    edges[2 * i + 1] = (struct edge){ bar->end, -!copy, -copy };
  }
  measure_hidden(edges, 2 * run->bar_count, totals);
  free(edges);
  return true;
}

static double hidden_percent(const struct totals *totals) {
  return totals->copies > 0 ? 100 * totals->hidden / totals->copies : 0;
}

static void print_stages(const struct report *r, const struct totals *totals) {
  const double pixels = (double)r->width * r->height;
  (void)printf("\n%-10s %8s %14s %14s %20s\n", "stage", "tiles", "total", "a tile", "while it runs");
  for (uint32_t i = 0; i < STAGES; i++) {
    const double ms = totals->stage[i];
    (void)printf("%-10s %8u %11.3f ms %11.1f us", pipeline_stages[i], r->run->tiles, ms, 1000 * ms / r->run->tiles);
    if (ms > 0) {
      const double rate = is_copy(i) ? 4 * pixels / ms / 1e6 : pixels / ms / 1e3;
      (void)printf(is_copy(i) ? " %15.2f GB/s" : " %11.0f Mpixel/s", rate);
    }
    (void)printf("\n");
  }
}

/* Returns the run that the report describes: the replay, if there is one. */
static const struct pipeline_times *times_of(const struct pipeline_result *run) {
  return run->nodes > 0 ? &run->replay : &run->on_streams;
}

/* Prints the time that a replay saves. */
static void print_graph(const struct pipeline_result *run) {
  const double saved = run->on_streams.host - run->replay.host;
  (void)printf(
      "graph      %zu nodes, captured in %.3f ms and instantiated in %.3f ms; a replay, compared with streams:\n",
      run->nodes, run->capture, run->instantiate);
  (void)printf("           %.3f ms to submit, on streams %.3f ms (%.1f times as long)\n", run->replay.submit,
               run->on_streams.submit, run->on_streams.submit / run->replay.submit);
  (void)printf("           %.3f ms on the device, on streams %.3f ms\n", run->replay.span, run->on_streams.span);
  (void)printf("           %.3f ms until the host saw the end, on streams %.3f ms", run->replay.host,
               run->on_streams.host);
  if (saved > 0) (void)printf(": saves %.3f ms", saved);
  (void)printf("\n");
}

bool report_print(const struct report *r) {
  struct totals totals;
  const struct pipeline_result *run = r->run;
  const struct pipeline_times *times = times_of(run);
  if (!measure(times, &totals)) return false;
  (void)printf("picture    %s, %u x %u, in %u tile%s of at most %u x %u\n", r->picture, r->width, r->height, run->tiles,
               run->tiles == 1 ? "" : "s", r->tile, r->tile);
  (void)printf("device     %s, %s\n", device_name(&r->device).text, r->device.name);
  (void)printf("streams    %u (", run->tracks);
  for (uint32_t i = 0; i < run->tracks; i++) (void)printf("%s%s", i > 0 ? ", " : "", run->track_names[i]);
  (void)printf("), %u tile%s in flight\n", run->slots, run->slots == 1 ? "" : "s");
  (void)printf("result     equals that of the plain C filter in every byte\n");
  if (run->nodes > 0) print_graph(run);
  print_stages(r, &totals);
  const double pixels = (double)r->width * r->height;
  (void)printf("\ntime       %.3f ms from the first start to the last end, %.3f ms in all stages together\n",
               times->span, totals.busy);
  (void)printf("overlap    %.2f stages at a time; %.0f %% of the copy time is hidden by kernels\n",
               totals.busy / times->span, hidden_percent(&totals));
  (void)printf("host       %.3f ms to submit everything, %.3f ms until the host saw the end\n", times->submit,
               times->host);
  (void)printf("throughput %.1f Mpixel/s; the plain C filter on one thread: %.1f Mpixel/s\n",
               pixels / times->span / 1e3, pixels / r->reference / 1e3);
  return true;
}

/* ---- the drawing ---- */

/* Draws the tracks of both runs, one below the other on one axis. */
struct both {
  char names[PIPELINE_MAX_STREAMS][32];
  const char *tracks[2 * PIPELINE_MAX_STREAMS];
  struct timeline_bar *bars;
  size_t bar_count;
};

static bool add_replay(const struct pipeline_result *run, struct both *both) {
  const struct pipeline_times *first = &run->on_streams, *second = &run->replay;
  both->bars = calloc(first->bar_count + second->bar_count, sizeof *both->bars);
  if (both->bars == NULL) return complain("out of memory");
  for (uint32_t i = 0; i < run->tracks; i++) {
    (void)snprintf(both->names[i], sizeof both->names[i], "%s, graph", run->track_names[i]);
    both->tracks[i] = run->track_names[i];
    both->tracks[run->tracks + i] = both->names[i];
  }
  for (size_t i = 0; i < first->bar_count; i++) both->bars[both->bar_count++] = first->bars[i];
  for (size_t i = 0; i < second->bar_count; i++) {
    both->bars[both->bar_count] = second->bars[i];
    both->bars[both->bar_count++].track += run->tracks;
  }
  return true;
}

bool report_draw(const struct report *r, FILE *file) {
  struct totals totals;
  const struct pipeline_result *run = r->run;
  const struct pipeline_times *times = times_of(run);
  struct both both = { .bars = NULL };
  if (!measure(times, &totals) || (run->nodes > 0 && !add_replay(run, &both))) return false;
  char title[192], subtitle[256], streams[64] = "";
  if (run->nodes > 0) (void)snprintf(streams, sizeof streams, "on streams %.3f ms, as a graph ", run->on_streams.span);
  (void)snprintf(title, sizeof title, "rill demo on %s (%s)", device_name(&r->device).text, r->device.name);
  (void)snprintf(subtitle, sizeof subtitle,
                 "%u x %u pixels in %u tile%s; %s%.3f ms; %.2f stages at a time; %.0f %% of the copy time hidden by "
                 "kernels",
                 r->width, r->height, run->tiles, run->tiles == 1 ? "" : "s", streams, times->span,
                 totals.busy / times->span, hidden_percent(&totals));
  const bool two = run->nodes > 0;
  const struct timeline timeline = {
    .title = title,
    .subtitle = subtitle,
    .tracks = two ? both.tracks : run->track_names,
    .track_count = two ? 2 * run->tracks : run->tracks,
    .stages = pipeline_stages,
    .stage_count = STAGES,
    .bars = two ? both.bars : times->bars,
    .bar_count = two ? both.bar_count : times->bar_count,
    .span = run->on_streams.span > times->span ? run->on_streams.span : times->span,
  };
  timeline_write(&timeline, file);
  free(both.bars);
  return true;
}
