/* Files that appear complete or not at all: written beside their place and renamed at the end. */
#ifndef RILL_TOOL_OUTPUT_H
#define RILL_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
  const char *path; /* as the user gave it */
  char *place;      /* where the file goes: links followed */
  char *temporary;  /* NULL: `place` is no regular file and is written directly */
  FILE *file;
};

/* Each complains when it fails. */
bool output_open(struct output *output, const char *path);
bool output_finish(struct output *output); /* all bytes are in the temporary file, which is closed */
bool output_keep(struct output *output);   /* it takes its name */

/* Ends an output in any state; one that was not kept leaves nothing.  A zeroed one is fine too. */
void output_drop(struct output *output);

/* Finds out early whether a file could be written. */
bool output_check(const char *path);

#endif
