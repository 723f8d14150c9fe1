/* Streams by their native handles: imported streams, and rill's own streams whose native handle was returned to the
 * caller. */
#include "core/stream/stream.h"

#include "core/sync/streams.h"

#include <stdlib.h>

/* ---- the table; guarded by device->lock ---- */

enum { BUCKETS = 1024 };

struct rill__natives {
  struct rill__stream *first[BUCKETS]; /* linked by next_native */
};

static struct rill__stream **bucket_of(struct rill__device *device, uintptr_t native) {
  return &rill__core(device)->natives->first[((uint64_t)native >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static bool make_table(struct rill__device *device) {
  if (rill__core(device)->natives == NULL) rill__core(device)->natives = calloc(1, sizeof *rill__core(device)->natives);
  return rill__core(device)->natives != NULL;
}

/* Returns the stream in the table for `native`, with a reference, or NULL. */
static struct rill__stream *find_native(struct rill__device *device, uintptr_t native) {
  if (rill__core(device)->natives == NULL) return NULL;
  for (struct rill__stream *stream = *bucket_of(device, native); stream != NULL;
       stream = rill__core(stream)->next_native) {
    if (stream->native == native && rill__object_try_ref(&stream->base)) return stream;
  }
  return NULL;
}

static void put_native(struct rill__stream *stream) {
  struct rill__stream **bucket = bucket_of(stream->base.device, stream->native);
  rill__core(stream)->next_native = *bucket;
  *bucket = stream;
  rill__core(stream)->in_natives = true;
}

rill_status rill__native_list(struct rill__stream *stream, uintptr_t native) {
  struct rill__device *device = stream->base.device;
  pthread_mutex_lock(&rill__core(device)->lock);
  const bool made = make_table(device);
  if (made && !rill__core(stream)->in_natives) {
    stream->native = native;
    put_native(stream);
  }
  pthread_mutex_unlock(&rill__core(device)->lock);
  RILL_REQUIRE(made, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a table of native streams");
  return RILL_OK;
}

void rill__native_unlist(struct rill__stream *stream) {
  struct rill__device *device = stream->base.device;
  if (!rill__core(stream)->in_natives) return;
  pthread_mutex_lock(&rill__core(device)->lock);
  struct rill__stream **link = bucket_of(device, stream->native);
  while (*link != stream) link = &rill__core(*link)->next_native;
  *link = rill__core(stream)->next_native;
  pthread_mutex_unlock(&rill__core(device)->lock);
}

/* ---- import ---- */

static rill_status import_new_stream(struct rill__device *device, uintptr_t native, const rill_import_options *o,
                                     struct rill__stream **out) {
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__stream_new(device, o->label, &stream));
  stream->native = native;
  stream->imported = true;
  atomic_store(&rill__is_shared, true);
  atomic_store(&stream->foreign, true);
  stream->owned = o->ownership == RILL_IMPORT_ADOPT;
  rill_status status = RILL_DISPATCH(stream, stream, import, stream);
  if (status == RILL_OK) status = rill__object_publish(&stream->base, RILL__STREAM);
  if (status != RILL_OK) {
    stream->owned = false;
    rill__unref(&stream->base);
    return status;
  }
  rill__core(stream)->release = o->release;
  rill__core(stream)->release_user = o->user;
  pthread_mutex_lock(&rill__core(device)->lock);
  const bool made = make_table(device);
  /* Looked up again under the lock: another thread may have imported the same native stream since the first look-up. */
  struct rill__stream *other = made ? find_native(device, native) : NULL;
  if (made && other == NULL) put_native(stream);
  pthread_mutex_unlock(&rill__core(device)->lock);
  *out = other != NULL ? other : stream;
  if (made && other == NULL) {
    rill__stream_list(stream);
    return RILL_OK;
  }
  stream->owned = false;
  rill__object_retire(&stream->base); /* another thread has imported it first, or there is no table */
  RILL_REQUIRE(made, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a table of native streams");
  return RILL_OK;
}

/* Checks that the import agrees with the first one about who destroys the native stream. */
static rill_status check_ownership(const struct rill__stream *stream, const rill_import_options *o) {
  const bool adopt = o->ownership == RILL_IMPORT_ADOPT;
  RILL_REQUIRE(stream->imported || (!adopt && o->release == NULL), RILL_ERROR_INVALID_ARGUMENT,
               "native stream 0x%llx was created by rill (%s), which destroys it" RILL_HINT
               "import it with the default options, or retain its handle",
               (unsigned long long)stream->native, rill__name_of(&stream->base).text);
  RILL_REQUIRE(!stream->imported || (adopt == stream->owned && o->release == rill__core(stream)->release &&
                                     (o->release == NULL || o->user == rill__core(stream)->release_user)),
               RILL_ERROR_INVALID_ARGUMENT,
               "native stream 0x%llx is imported already, with a different ownership or release function" RILL_HINT
               "retain the first handle instead",
               (unsigned long long)stream->native);
  return RILL_OK;
}

rill_status rill__stream_import(struct rill__device *device, uintptr_t native, const rill_import_options *o,
                                struct rill__stream **out) {
  pthread_mutex_lock(&rill__core(device)->lock);
  *out = find_native(device, native);
  pthread_mutex_unlock(&rill__core(device)->lock);
  const rill_import_options borrowed = RILL_IMPORT_OPTIONS_INIT;
  if (*out == NULL) RILL_TRY(import_new_stream(device, native, o != NULL ? o : &borrowed, out));
  const rill_status status = o != NULL ? check_ownership(*out, o) : RILL_OK;
  if (status != RILL_OK) {
    struct rill__object *last = NULL;
    (void)rill__object_release((*out)->base.id, RILL__STREAM, &last);
    if (last != NULL) rill__stream_end(*out);
  }
  return status;
}
