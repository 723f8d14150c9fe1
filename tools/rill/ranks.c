#include "ranks.h"

#include "band.h"
#include "output.h"
#include "reference.h"
#include "tool.h"

#include <rill/comm_mpi.h>

#include <stdlib.h>
#include <string.h>

/* Summary that each rank sends to the first rank with its bars, through device memory. */
struct summary {
  char device[32];
  uint64_t rows, wrong, bar_count;
  double span;
};

struct team {
  const struct ranks_options *options;
  const struct picture *in;
  struct band_options band;
  rill_device_info info;
  rill_stream stream;
  uint8_t *device_memory, *host_memory; /* a part of `part` bytes for each rank: summary, then bars */
  size_t part;
  struct picture out; /* the filtered picture; used on the first rank */
};

static bool complain_of_comm(void) { return complain("%s", rill_comm_last_error_text()); }

/* ---- ranks and devices ---- */

/* Returns the index of this process on its machine, as set by the launcher, or its rank if the launcher sets none. */
static uint32_t local_rank(uint32_t rank) {
  static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK",
                                       "SLURM_LOCALID" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]);
    if (value != NULL) return (uint32_t)strtoul(value, NULL, 10);
  }
  return rank;
}

/* Opens the requested device. By default, processes of a machine use its GPUs in turn, or the CPU if it has none. */
static bool choose_device(const char *name, uint32_t rank, rill_device *device) {
  if (name == NULL) name = getenv("RILL_DEVICE");
  if (name != NULL && name[0] != '\0') return rill_device_open(name, device) == RILL_OK || complain_of_rill();
  int32_t count = 0;
  if (rill_device_count(&count) != RILL_OK) return complain_of_rill();
  const int32_t gpus = count - 1; /* the CPU is the last */
  const int32_t index = gpus > 0 ? (int32_t)(local_rank(rank) % (uint32_t)gpus) : 0;
  return rill_device_get(index, device) == RILL_OK || complain_of_rill();
}

static bool join(struct team *team) {
  struct band_options *band = &team->band;
  rill_comm_id id;
  if (rill_comm_mpi_world(&id, &band->ranks, &band->rank) != RILL_OK) return complain_of_comm();
  team->info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  if (!choose_device(team->options->device, band->rank, &band->device)) return false;
  if (rill_device_get_info(band->device, &team->info) != RILL_OK) return complain_of_rill();
  const uint32_t least = team->in->height / band->ranks;
  if (least < BAND_HALO) {
    return complain("%u rows are too few for %u ranks: each needs at least %d", team->in->height, band->ranks,
                    BAND_HALO);
  }
  /* Longer than any work here. If a rank exits, the others fail after this time. */
  const rill_comm_options options = { sizeof options, UINT64_C(60000000000), "demo" };
  if (rill_comm_create(band->device, &id, band->ranks, band->rank, &options, &band->comm) != RILL_OK) {
    return complain_of_comm();
  }
  return rill_stream_create(band->device, RILL_STREAM_OPTIONS(.label = "gather"), &team->stream) == RILL_OK ||
         complain_of_rill();
}

/* ---- results ---- */

/* Filters the rows on which the band's result depends in plain C, and counts the wrong pixels. */
static bool count_wrong(const struct team *team, const uint32_t *pixels, uint64_t *wrong) {
  const struct band_options *band = &team->band;
  const uint32_t height = team->in->height, first = band_first(height, band->ranks, band->rank);
  const uint32_t rows = band_rows(height, band->ranks, band->rank), reach = BAND_HALO * band->passes;
  const uint32_t top = first > reach ? first - reach : 0;
  const uint32_t bottom = height - first - rows > reach ? first + rows + reach : height;
  const size_t line = (size_t)team->in->width * 4;
  struct picture from = { .width = team->in->width, .height = bottom - top }, to = from;
  bool ok = picture_allocate(&from) && picture_allocate(&to);
  if (ok) memcpy(from.pixels, team->in->pixels + top * line, line * from.height);
  for (uint32_t pass = 0; pass < band->passes && ok; pass++) {
    ok = reference_filter(&from, &to);
    const struct picture swap = from;
    from = to;
    to = swap;
  }
  *wrong = 0;
  for (size_t i = 0; i < (size_t)rows * team->in->width && ok; i++) {
    *wrong += memcmp(from.pixels + (first - top) * line + 4 * i, pixels + i, 4) != 0;
  }
  picture_free(&from);
  picture_free(&to);
  return ok;
}

static struct summary *summary_of(const struct team *team, uint32_t rank) {
  return (struct summary *)(void *)(team->host_memory + team->part * rank);
}
static struct timeline_bar *bars_of(const struct team *team, uint32_t rank) {
  return (struct timeline_bar *)(void *)(summary_of(team, rank) + 1);
}

/* Gathers the summaries and bars of all ranks, on every rank. */
static bool gather_summaries(struct team *team) {
  const struct band_options *band = &team->band;
  const size_t own = team->part * band->rank;
  if (rill_copy_async(team->stream, team->device_memory + own, team->host_memory + own, team->part) != RILL_OK) {
    return complain_of_rill();
  }
  if (rill_comm_all_gather(band->comm, team->stream, team->device_memory, team->device_memory + own, team->part,
                           RILL_COMM_UINT8) != RILL_OK) {
    return complain_of_comm();
  }
  if (rill_copy_async(team->stream, team->host_memory, team->device_memory, team->part * band->ranks) != RILL_OK) {
    return complain_of_rill();
  }
  return rill_stream_synchronize(team->stream) == RILL_OK || complain_of_rill();
}

/* Sends all bands to the first rank, through device memory. */
static bool gather_picture(struct team *team, const uint32_t *pixels) {
  const struct band_options *band = &team->band;
  const uint32_t width = team->in->width, height = team->in->height;
  const size_t own = (size_t)width * band_rows(height, band->ranks, band->rank);
  const bool first = band->rank == 0;
  uint32_t *memory = NULL;
  bool ok = RILL_NEW(band->device, RILL_MEMORY_DEVICE, first ? (size_t)width * height : own, &memory) == RILL_OK &&
            rill_copy_async(team->stream, memory, pixels, own * 4) == RILL_OK;
  if (!ok) return complain_of_rill();
  ok = rill_comm_group_begin() == RILL_OK;
  if (!first) (void)!rill_comm_send(band->comm, team->stream, memory, own, RILL_COMM_UINT32, 0);
  for (uint32_t i = 1; i < band->ranks && first; i++) {
    (void)!rill_comm_receive(band->comm, team->stream, memory + (size_t)width * band_first(height, band->ranks, i),
                             (size_t)width * band_rows(height, band->ranks, i), RILL_COMM_UINT32, i);
  }
  ok = (ok && rill_comm_group_end() == RILL_OK) || complain_of_comm(); /* also fails if an operation was refused */
  if (ok && first) {
    ok = picture_allocate(&team->out) &&
         (rill_copy_async(team->stream, team->out.pixels, memory, (size_t)width * height * 4) == RILL_OK ||
          complain_of_rill());
  }
  if (ok) ok = rill_stream_synchronize(team->stream) == RILL_OK || complain_of_rill();
  (void)rill_free(memory);
  return ok;
}

/* ---- output of the first rank ---- */

static int by_start(const void *a, const void *b) {
  const double x = ((const struct timeline_bar *)a)->start, y = ((const struct timeline_bar *)b)->start;
  return (x > y) - (x < y);
}

/* Returns the milliseconds of an interval in which tiles ran. The bars are sorted by their start. */
static double covered(const struct timeline_bar *bars, size_t count, double start, double end) {
  double sum = 0;
  for (size_t i = 0; i < count && bars[i].start < end; i++) {
    if (bars[i].stage == BAND_EXCHANGE || bars[i].end <= start) continue;
    const double from = bars[i].start > start ? bars[i].start : start, to = bars[i].end < end ? bars[i].end : end;
    sum += to - from;
    start = to;
  }
  return sum;
}

/* Computes the milliseconds of all exchanges, and of the part during which a tile ran. Sorts the bars. */
static void measure(struct timeline_bar *bars, size_t count, double *exchange, double *hidden) {
  *exchange = *hidden = 0;
  qsort(bars, count, sizeof *bars, by_start);
  for (size_t i = 0; i < count; i++) {
    if (bars[i].stage != BAND_EXCHANGE) continue;
    *exchange += bars[i].end - bars[i].start;
    *hidden += covered(bars, count, bars[i].start, bars[i].end);
  }
}

static bool print_report(const struct team *team) {
  const struct band_options *band = &team->band;
  const char *slash = strrchr(team->options->picture, '/');
  uint64_t wrong = 0;
  (void)printf("picture    %s, %u x %u, in %u band%s, %u pass%s\n", slash != NULL ? slash + 1 : team->options->picture,
               team->in->width, team->in->height, band->ranks, band->ranks == 1 ? "" : "s", band->passes,
               band->passes == 1 ? "" : "es");
  (void)printf("\n%-5s %-16s %6s %6s %14s %14s %8s\n", "rank", "device", "rows", "tiles", "time", "halo exchange",
               "hidden");
  for (uint32_t i = 0; i < band->ranks; i++) {
    const struct summary *s = summary_of(team, i);
    double exchange, hidden;
    measure(bars_of(team, i), s->bar_count, &exchange, &hidden);
    (void)printf("%-5u %-16s %6llu %6llu %11.3f ms %11.3f ms %6.0f %%\n", i, s->device, (unsigned long long)s->rows,
                 (unsigned long long)(s->bar_count / band->passes - 1), s->span, exchange,
                 exchange > 0 ? 100 * hidden / exchange : 0);
    wrong += s->wrong;
  }
  if (wrong > 0) {
    return complain("the result differs from that of the plain C filter in %llu pixels", (unsigned long long)wrong);
  }
  (void)printf("\nresult     equals that of the plain C filter in every byte\n");
  return true;
}

static bool draw(const struct team *team, FILE *file) {
  const struct band_options *band = &team->band;
  char title[192], subtitle[192];
  size_t count = 0;
  double span = 0;
  char(*names)[32] = calloc(band->ranks, sizeof *names);
  const char **tracks = calloc(band->ranks, sizeof *tracks);
  for (uint32_t i = 0; i < band->ranks; i++) count += summary_of(team, i)->bar_count;
  struct timeline_bar *bars = calloc(count, sizeof *bars);
  const bool ok = names != NULL && tracks != NULL && bars != NULL;
  count = 0;
  for (uint32_t i = 0; i < band->ranks && ok; i++) {
    const struct summary *s = summary_of(team, i);
    (void)snprintf(names[i], sizeof names[i], "rank %u", i);
    tracks[i] = names[i];
    memcpy(bars + count, bars_of(team, i), s->bar_count * sizeof *bars);
    count += s->bar_count;
    span = s->span > span ? s->span : span;
  }
  (void)snprintf(title, sizeof title, "rill demo on %u rank%s (%s)", band->ranks, band->ranks == 1 ? "" : "s",
                 team->info.name);
  (void)snprintf(subtitle, sizeof subtitle, "%u x %u pixels, %u pass%s; %.3f ms", team->in->width, team->in->height,
                 band->passes, band->passes == 1 ? "" : "es", span);
  const struct timeline timeline = { .title = title,
                                     .subtitle = subtitle,
                                     .tracks = tracks,
                                     .track_count = band->ranks,
                                     .slices = 1 + (band->streams > 1 ? band->streams - 1 : 1),
                                     .stages = band_stages,
                                     .stage_count = BAND_STAGES,
                                     .bars = bars,
                                     .bar_count = count,
                                     .span = span };
  if (ok) timeline_write(&timeline, file);
  free(bars);
  free(tracks);
  free(names);
  return ok || complain("out of memory");
}

static bool write_files(const struct team *team) {
  struct output image = { 0 }, drawing = { 0 };
  const struct ranks_options *o = team->options;
  bool ok = output_open(&image, o->output) && picture_write(&team->out, image.file, o->output) && output_finish(&image);
  if (ok && o->timeline != NULL) {
    ok = output_open(&drawing, o->timeline) && draw(team, drawing.file) && output_finish(&drawing);
  }
  if (ok) ok = output_keep(&image) && output_keep(&drawing);
  output_drop(&image);
  output_drop(&drawing);
  return ok;
}

/* ---- the command ---- */

static bool work(struct team *team) {
  struct band_options *band = &team->band;
  team->part = sizeof(struct summary) + band_most_bars(band, team->in) * sizeof(struct timeline_bar);
  if (RILL_NEW(band->device, RILL_MEMORY_DEVICE, team->part * band->ranks, &team->device_memory) != RILL_OK ||
      RILL_NEW(band->device, RILL_MEMORY_PINNED, team->part * band->ranks, &team->host_memory) != RILL_OK) {
    return complain_of_rill();
  }
  struct summary *own = summary_of(team, band->rank);
  struct band_result result = { .bars = bars_of(team, band->rank) };
  bool ok = band_run(band, team->in, &result) && count_wrong(team, result.pixels, &own->wrong);
  if (ok) {
    (void)snprintf(own->device, sizeof own->device, "%s", device_name(&team->info).text);
    own->rows = band_rows(team->in->height, band->ranks, band->rank);
    own->bar_count = result.bar_count;
    own->span = result.span;
    ok = gather_summaries(team) && gather_picture(team, result.pixels);
  }
  if (ok && band->rank == 0) ok = print_report(team) && write_files(team);
  (void)rill_free(result.pixels);
  return ok;
}

bool ranks_demo(const struct ranks_options *options, const struct picture *in, bool *says) {
  struct team team = { .options = options, .in = in };
  team.band.streams = options->streams;
  team.band.tile = options->tile;
  team.band.passes = options->passes;
  team.out = (struct picture){ .width = in->width, .height = in->height };
  bool ok = join(&team);
  *says = team.band.rank == 0;
  team.band.lone_threads = team.info.backend == RILL_BACKEND_CPU;
  if (ok) ok = work(&team);
  (void)rill_free(team.device_memory);
  (void)rill_free(team.host_memory);
  (void)rill_stream_release(team.stream);
  (void)rill_comm_release(team.band.comm);
  picture_free(&team.out);
  return ok;
}
