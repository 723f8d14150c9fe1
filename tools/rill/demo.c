/* rill demo: filters a picture on a device, checks the result, and prints where the time went. */
#include "output.h"
#include "ranks.h"
#include "reference.h"
#include "report.h"
#include "tool.h"
#include "tool_config.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] = "usage: rill demo [PICTURE.png] [-o OUT.png] [--device NAME] [--streams N] [--tile N] "
                            "[--timeline FILE.svg] [--graph] [--ranks] [--passes N]";

enum { PATH_SIZE = 4096 };

struct options {
  const char *picture, *output, *device, *timeline;
  uint32_t streams, tile, passes;
  bool graph;                                           /* also run as a graph afterwards */
  bool ranks;                                           /* run as one of several processes; uses `passes` */
  char own_picture[PATH_SIZE], own_timeline[PATH_SIZE]; /* defaults of picture and timeline */
};

/* ---- the command line ---- */

static bool misuse(const char *what, const char *argument) { return complain("%s \"%s\"; %s", what, argument, usage); }

static bool read_number(const char *name, const char *text, uint32_t least, uint32_t most, uint32_t *out) {
  char *end = NULL;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < (long)least || value > (long)most) {
    return complain("%s takes a number from %u to %u, not \"%s\"; %s", name, least, most, text, usage);
  }
  *out = (uint32_t)value;
  return true;
}

static bool set_option(struct options *options, int option, const char *value) {
  switch (option) {
    case 'o': options->output = value; return true;
    case 'd': options->device = value; return true;
    case 'l': options->timeline = value; return true;
    case 'g': options->graph = true; return true;
    case 'r': options->ranks = true; return true;
    case 's': return read_number("--streams", value, 1, PIPELINE_MAX_STREAMS, &options->streams);
    case 'p': return read_number("--passes", value, 1, RANKS_MAX_PASSES, &options->passes);
    default: return read_number("--tile", value, PIPELINE_MIN_TILE, PIPELINE_MAX_TILE, &options->tile);
  }
}

static bool read_options(int argc, char **argv, struct options *options) {
  static const struct option names[] = {
    { "output", required_argument, NULL, 'o' },
    { "device", required_argument, NULL, 'd' },
    { "timeline", required_argument, NULL, 'l' },
    { "streams", required_argument, NULL, 's' },
    { "passes", required_argument, NULL, 'p' },
    { "tile", required_argument, NULL, 't' },
    { "graph", no_argument, NULL, 'g' },
    { "ranks", no_argument, NULL, 'r' },
    { NULL, 0, NULL, 0 },
  };
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":o:", names, NULL)) != -1;) {
    if (option == '?') return misuse("unknown option", argv[optind - 1]);
    if (option == ':') return misuse("a value is missing after", argv[optind - 1]);
    if (!set_option(options, option, optarg)) return false;
  }
  if (optind < argc) options->picture = argv[optind];
  return optind + 1 >= argc || misuse("only one picture can be filtered; unexpected argument", argv[optind + 1]);
}

static bool has_ending(const char *path, const char *ending) {
  const size_t length = strlen(path), end = strlen(ending);
  return length >= end && strcasecmp(path + length - end, ending) == 0;
}

static bool is_same_file(const char *a, const char *b) {
  struct stat one, two;
  return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* Checks that no file has two roles. */
static bool check_names(const struct options *options) {
  if (options->timeline != NULL && strcmp(options->timeline, options->output) == 0) {
    return misuse("the picture and the timeline cannot both be written to", options->output);
  }
  static const char *const others[] = { ".svg", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".pdf" };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (has_ending(options->output, others[i])) {
      return misuse("the filtered picture is a PNG file, and the drawing's name is set by --timeline, not by -o",
                    options->output);
    }
  }
  const char *const written[] = { options->output, options->timeline };
  for (int i = 0; i < 2; i++) {
    if (written[i] != NULL && is_same_file(options->picture, written[i])) {
      return misuse("the output would overwrite the picture", written[i]);
    }
  }
  return true;
}

/* Finds the picture installed with rill. It is next to the program in the build directory, otherwise at the install
 * location, relative to the program or, if the program's location is unknown, to the prefix of the build. */
static void find_own_picture(struct options *options) {
  static const char *const from_program[] = { TOOL_PICTURE, TOOL_PICTURE_FROM_BIN };
  char folder[PATH_SIZE], *path = options->own_picture;
  const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder);
  options->picture = path;
  if (length > 0 && length < (ssize_t)sizeof folder) {
    folder[length] = '\0';
    for (size_t i = 0; i < sizeof from_program / sizeof *from_program; i++) {
      const int folder_length = (int)(strrchr(folder, '/') - folder);
      const int written = snprintf(path, PATH_SIZE, "%.*s/%s", folder_length, folder, from_program[i]);
      if (written < PATH_SIZE && access(path, R_OK) == 0) return;
    }
  }
  (void)snprintf(path, PATH_SIZE, "%s", TOOL_PICTURE_INSTALLED);
}

/* Replaces .png by .svg in the output's name. An output with another name, such as /dev/null, has no drawing. */
static void name_timeline(struct options *options) {
  const size_t length = strlen(options->output);
  if (length < 5 || length >= PATH_SIZE || strcmp(options->output + length - 4, ".png") != 0) return;
  memcpy(options->own_timeline, options->output, length - 4);
  memcpy(options->own_timeline + length - 4, ".svg", 5);
  options->timeline = options->own_timeline;
}

/* ---- the work ---- */

static bool find_device(const char *name, rill_device *device, rill_device_info *info) {
  return (rill_device_open(name, device) == RILL_OK && rill_device_get_info(*device, info) == RILL_OK) ||
         complain_of_rill();
}

static bool compare(const struct picture *got, const struct picture *expected) {
  const size_t pixels = (size_t)got->width * got->height;
  size_t wrong = 0, first = 0;
  for (size_t i = pixels; i-- > 0;) {
    if (memcmp(got->pixels + 4 * i, expected->pixels + 4 * i, 4) == 0) continue;
    wrong++;
    first = i;
  }
  return wrong == 0 || complain("the result differs from that of the plain C filter in %zu of %zu pixels, first in "
                                "column %zu of row %zu",
                                wrong, pixels, first % got->width, first / got->width);
}

static double now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static bool check_result(const struct picture *in, const struct picture *result, double *reference_ms) {
  struct picture expected = { .width = in->width, .height = in->height };
  if (!picture_allocate(&expected)) return false;
  const double start = now();
  bool ok = reference_filter(in, &expected);
  *reference_ms = now() - start;
  if (ok) ok = compare(result, &expected);
  picture_free(&expected);
  return ok;
}

/* Writes both files or neither. */
static bool write_files(const struct options *options, const struct picture *picture, const struct report *report) {
  struct output image = { 0 }, drawing = { 0 };
  bool ok = output_open(&image, options->output);
  if (ok) ok = picture_write(picture, image.file, options->output) && output_finish(&image);
  if (ok && options->timeline != NULL) {
    ok = output_open(&drawing, options->timeline) && report_draw(report, drawing.file) && output_finish(&drawing);
  }
  if (ok) ok = output_keep(&image) && output_keep(&drawing);
  output_drop(&image);
  output_drop(&drawing);
  return ok;
}

static bool filter(const struct options *options, const struct pipeline_options *how, const rill_device_info *device,
                   const struct picture *in, struct picture *out) {
  struct pipeline_result run = { 0 };
  struct report report = { .picture = strrchr(options->picture, '/'), .device = *device, .run = &run };
  report.picture = report.picture != NULL ? report.picture + 1 : options->picture;
  report.width = in->width;
  report.height = in->height;
  report.tile = how->tile;
  const bool ok = pipeline_run(how, in, out, &run) && check_result(in, out, &report.reference) &&
                  write_files(options, out, &report) && report_print(&report);
  pipeline_result_free(&run);
  return ok;
}

static bool demo_with_ranks(const struct options *options, bool *says) {
  const struct ranks_options how = { options->picture, options->output, options->timeline, options->device,
                                     options->streams, options->tile,   options->passes };
  struct picture in = { 0 };
  const bool ok = picture_read(options->picture, &in) && output_check(options->output) &&
                  (options->timeline == NULL || output_check(options->timeline)) && ranks_demo(&how, &in, says);
  picture_free(&in);
  return ok;
}

static bool demo(const struct options *options) {
  struct pipeline_options how = { .streams = options->streams, .tile = options->tile, .graph = options->graph };
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  struct picture in = { 0 };
  if (!picture_read(options->picture, &in)) return false;
  struct picture out = { .width = in.width, .height = in.height };
  const uint64_t tiles = pipeline_tile_count(&in, options->tile);
  bool ok =
      tiles <= PIPELINE_MAX_TILES || complain("%s would have %llu tiles, and the limit is %d: choose a larger --tile",
                                              options->picture, (unsigned long long)tiles, PIPELINE_MAX_TILES);
  if (ok) ok = output_check(options->output) && (options->timeline == NULL || output_check(options->timeline));
  if (ok) ok = find_device(options->device, &how.device, &info) && picture_allocate(&out);
  how.lone_threads = info.backend == RILL_BACKEND_CPU;
  if (ok) ok = filter(options, &how, &info, &in, &out);
  picture_free(&in);
  picture_free(&out);
  return ok;
}

int demo_command(int argc, char **argv) {
  struct options options = { .output = "rill-demo.png", .streams = 4, .tile = 256, .passes = 1 };
  bool says = true;
  if (!read_options(argc, argv, &options)) return EXIT_USAGE;
  if (options.picture == NULL) find_own_picture(&options);
  if (options.timeline == NULL) name_timeline(&options);
  if (!check_names(&options)) return EXIT_USAGE;
  if ((options.passes > 1 && !options.ranks) || (options.graph && options.ranks)) {
    (void)complain("--passes requires --ranks, and --graph cannot be combined with it; %s", usage);
    return EXIT_USAGE;
  }
  if (!(options.ranks ? demo_with_ranks(&options, &says) : demo(&options))) return EXIT_WORK;
  if (!says) return 0;
  (void)printf("wrote      %s%s%s\n", options.output, options.timeline != NULL ? " and " : "",
               options.timeline != NULL ? options.timeline : "");
  return fflush(stdout) == 0 ? 0 : EXIT_WORK;
}
