/* Files that appear complete or not at all: written next to their destination and renamed at the end. */
#ifndef RILL_TOOL_OUTPUT_H
#define RILL_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
  const char *path; /* as the user gave it */
  char *place;      /* destination of the file, with links followed */
  char *temporary;  /* NULL: `place` is not a regular file and is written directly */
  FILE *file;
};

/* Each prints an error on failure. */
bool output_open(struct output *output, const char *path);
bool output_finish(struct output *output); /* all bytes are in the temporary file, which is closed */
bool output_keep(struct output *output);   /* it takes its name */

/* Ends an output in any state, including zeroed. If it was not kept, it leaves no file. */
void output_drop(struct output *output);

/* Checks early whether a file can be written. */
bool output_check(const char *path);

#endif
