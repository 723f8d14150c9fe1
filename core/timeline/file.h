/* The file of a timeline: a list of events in the JSON of Chrome's trace viewer, which Perfetto reads.  It grows event
 * by event, and viewers read a list without its end, so a program that crashes leaves a file that can be read. */
#ifndef RILL_CORE_TIMELINE_FILE_H
#define RILL_CORE_TIMELINE_FILE_H

#include <rill/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Creates the file, or empties it.  One at a time; `limit`: in bytes. */
rill_status rill__trace_file_open(const char *path, uint64_t limit);

/* Adds one event, given as a JSON object.  What the limit or a full disk has no room for is counted as dropped.  Any
 * thread; without an open file, nothing happens. */
void rill__trace_file_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Counts an event as dropped. */
void rill__trace_file_drop(void);

/* Hands what has been added to the system, so that it outlives the process. */
void rill__trace_file_flush(void);

/* Ends the list, with `unfinished` events that have no end yet, and closes the file.  False if something was dropped
 * because the disk was full or failed. */
bool rill__trace_file_close(uint64_t unfinished);

/* In the child of a fork: the file is the parent's. */
void rill__trace_file_abandon(void);

/* Writes `text` as the inside of a JSON string, cut to what fits. */
void rill__json_escape(char *out, size_t size, const char *text);

#endif
