#include "timeline.h"

#include <string.h>

/* Dimensions of the drawing in its own units, which are pixels at its natural size. */
static const double least_width = 1280, most_width = 32000, margin = 32, plot_left = 136, plot_top = 128;
static const double track_height = 40, track_step = 56, axis_height = 56;

/* Distinguishable for people with any colour vision, and light enough for dark numbers on them. */
static const char *const colours[TIMELINE_MAX_STAGES] = { "#7db7e8", "#f2b45a", "#7cc7a3", "#e88f7a",
                                                          "#c3a2dc", "#d9cf63", "#9fb4bd", "#e5a3c4" };

static void put_escaped(FILE *file, const char *text) {
  for (; *text != '\0'; text++) {
    switch (*text) {
      case '&': (void)fputs("&amp;", file); break;
      case '<': (void)fputs("&lt;", file); break;
      case '>': (void)fputs("&gt;", file); break;
      default: (void)fputc(*text < ' ' || *text > '~' ? '?' : *text, file);
    }
  }
}

static void put_text(FILE *file, const char *class, double x, double y, const char *text) {
  (void)fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
  put_escaped(file, text);
  (void)fputs("</text>\n", file);
}

static double plot_bottom(const struct timeline *t) { return plot_top + (double)t->track_count * track_step; }

/* Returns a width at which bars and their numbers are visible, limited to the sizes that viewers open. */
static double drawing_width(const struct timeline *t) {
  const double parts = (double)t->track_count * (t->slices > 0 ? t->slices : 1);
  const double wanted = plot_left + margin + (parts > 0 ? (double)t->bar_count / parts * 12 : 0);
  return wanted < least_width ? least_width : wanted > most_width ? most_width : wanted;
}

static double plot_right(const struct timeline *t) { return drawing_width(t) - margin; }

static double to_x(const struct timeline *t, double ms) {
  const double right = plot_right(t), x = plot_left + ms / t->span * (right - plot_left);
  return x < plot_left ? plot_left : x > right ? right : x;
}

static void put_head(const struct timeline *t, FILE *file) {
  const double width = drawing_width(t), height = plot_bottom(t) + axis_height;
  (void)fprintf(file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n"
                "<style>\n"
                "text { font-family: 'DejaVu Sans', 'Segoe UI', Helvetica, Arial, sans-serif; fill: #24292f; }\n"
                ".title { font-size: 20px; font-weight: bold; }\n"
                ".subtitle { font-size: 13px; fill: #57606a; }\n"
                ".legend { font-size: 13px; }\n"
                ".track { font-size: 13px; text-anchor: end; }\n"
                ".tick { font-size: 12px; text-anchor: middle; fill: #57606a; }\n"
                ".number { font-size: 11px; text-anchor: middle; pointer-events: none; }\n"
                ".grid { stroke: #e3e7eb; }\n"
                ".axis { stroke: #8c959f; }\n"
                "</style>\n"
                "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
                width, height, width, height, width, height);
  put_text(file, "title", margin, 42, t->title);
  put_text(file, "subtitle", margin, 66, t->subtitle);
}

static void put_legend(const struct timeline *t, FILE *file) {
  double x = margin;
  for (uint32_t i = 0; i < t->stage_count; i++) {
    (void)fprintf(file, "<rect x=\"%.1f\" y=\"85\" width=\"14\" height=\"14\" rx=\"2\" fill=\"%s\"/>\n", x,
                  colours[i % TIMELINE_MAX_STAGES]);
    put_text(file, "legend", x + 21, 97, t->stages[i]);
    x += 53 + 8.0 * (double)strlen(t->stages[i]);
  }
}

/* Returns the distance between ticks: 1, 2 or 5 times a power of ten that gives at most `most` ticks. */
static double tick_step(double span, double most) {
  double power = 1e-6;
  for (;;) {
    if (span / power <= most) return power;
    if (span / (2 * power) <= most) return 2 * power;
    if (span / (5 * power) <= most) return 5 * power;
    power *= 10;
  }
}

static void put_axis(const struct timeline *t, FILE *file) {
  const double bottom = plot_bottom(t), step = tick_step(t->span, drawing_width(t) / 128);
  const bool micro = t->span < 2;
  for (int i = 0; i * step <= t->span * 1.000001; i++) {
    const double x = to_x(t, i * step);
    char text[32];
    (void)fprintf(file, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, plot_top - 8, x,
                  bottom);
    (void)snprintf(text, sizeof text, "%g%s", micro ? i * step * 1000 : i * step, micro ? " us" : " ms");
    put_text(file, "tick", x, bottom + 20, text);
  }
  (void)fprintf(file, "<line class=\"axis\" x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\"/>\n", plot_left, bottom,
                plot_right(t), bottom);
}

static void put_bar(const struct timeline *t, const struct timeline_bar *bar, FILE *file) {
  const double left = to_x(t, bar->start), right = to_x(t, bar->end);
  double shown = right - left > 0.4 ? right - left : 0.4;
  const double x = left + shown > plot_right(t) ? plot_right(t) - shown : left;
  const double height = track_height / (t->slices > 0 ? (double)t->slices : 1.0);
  const double y =
      plot_top + (double)bar->track * track_step + (track_step - track_height) / 2 - 4 + height * bar->slice;
  if (shown > 3) shown -= 0.8; /* a gap between neighbours */
  (void)fprintf(file, "<rect class=\"bar\" x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\" fill=\"%s\"><title>", x, y,
                shown, height, colours[bar->stage % TIMELINE_MAX_STAGES]);
  put_escaped(file, t->stages[bar->stage]);
  (void)fprintf(file, ", tile %u: %.1f us, from %.1f us on</title></rect>\n", bar->tile, (bar->end - bar->start) * 1000,
                bar->start * 1000);
  char text[16];
  const int length = snprintf(text, sizeof text, "%u", bar->tile);
  if (shown >= 4 + 7 * length && height >= 14) {
    put_text(file, "number", x + shown / 2, y + height / 2 + 4, text);
  }
}

void timeline_write(const struct timeline *t, FILE *file) {
  put_head(t, file);
  put_legend(t, file);
  put_axis(t, file);
  for (uint32_t i = 0; i < t->track_count; i++) {
    put_text(file, "track", plot_left - 16, plot_top + (double)i * track_step + track_step / 2, t->tracks[i]);
  }
  for (size_t i = 0; i < t->bar_count; i++) put_bar(t, &t->bars[i], file);
  (void)fputs("</svg>\n", file);
}
