/* Operations of random programs on memory, and kernels. */
#include "mix_operations.h"

#include "mix.rill.h"

enum { PAGE = 4096, CELL_BYTES = MIX_WORDS * sizeof(uint32_t) };

/* ---- cells ---- */

/* Returns the cell that a stream uses. There are few cells, so that streams share them. The race detector would report
 * unordered work on a shared word as a race of the library; with it, each stream has its own cell, and streams that are
 * created late in a round have none. Cells in device memory have even numbers and belong to the first device. */
static unsigned cell_for(const struct object *stream, uint32_t wanted) {
  const bool first = stream->device.id == mix.devices[0].id;
  if (UNDER_RACE_DETECTOR) return 2 * stream->number + (!first || stream->number % 2 != 0);
  return first ? wanted % MIX_SHARED_CELLS : wanted % MIX_SHARED_CELLS | 1;
}

static uint32_t *words_of(unsigned cell) { return mix.cells[cell % 2] + cell / 2 * MIX_WORDS; }

/* Copies a rectangle or a box; at the other end its rows are contiguous. */
static rill_status copy_cell(struct object *stream, uint32_t *dst, const uint32_t *src, uint32_t how) {
  const size_t half = CELL_BYTES / 2;
  const rill_copy_3d box = { sizeof box, dst, src, half, half, half, half, half, 1, 2 };
  switch (how % 3) {
    case 0: return rill_copy_async(stream_of(stream), dst, src, CELL_BYTES);
    case 1: return rill_copy_2d_async(stream_of(stream), dst, half, src, half, half, 2);
    default: return rill_copy_3d_async(stream_of(stream), &box);
  }
}

/* Writes a value that occurs only once, so that a word that is read identifies its write. */
OPERATION(write) {
  struct object *stream = mix_stream_at(o->a);
  const uint32_t value = atomic_fetch_add(&mix.values, 1) + 1;
  if (value >= MIX_VALUES) return;
  const unsigned cell = cell_for(stream, o->b);
  if (cell >= MIX_CELLS) return;
  struct call *call = mix_begin(w, CALL_WRITE, stream, NULL);
  call->data.cell = cell;
  call->data.value = value;
  atomic_store(&mix.writes[value], call);
  uint32_t *const words = words_of(call->data.cell), *const pinned = mix.sources + value * MIX_WORDS;
  uint32_t pageable[MIX_WORDS];
  for (unsigned i = 0; i < MIX_WORDS; i++) pageable[i] = pinned[i] = value;
  const rill_launch launch = rill_launch_1d(MIX_WORDS, MIX_WORDS);
  switch (o->c % 4) {
    case 0: MIX_END(call, copy_cell(stream, words, pinned, o->d), mix_full()); break;
    case 1: MIX_END(call, copy_cell(stream, words, pageable, o->d), mix_full()); break;
    case 2: MIX_END(call, mix_write_launch(stream_of(stream), &launch, words, value), mix_full()); break;
    default: {
      const size_t size = 4u << o->d % 3;
      MIX_END(call, rill_fill_async(stream_of(stream), words, pageable, size, CELL_BYTES / size), mix_full());
    }
  }
  memset(pageable, 0xee, sizeof pageable); /* the call has already read the source */
}

/* Copies to a location that no other read uses, in pinned or pageable memory. */
static void read_words(struct worker *w, struct object *stream, const uint32_t *from, unsigned cell,
                       const struct call *source, uint32_t how) {
  const unsigned place = atomic_fetch_add(&mix.reads, 1);
  if (place >= MIX_VALUES) return;
  struct call *call = mix_begin(w, CALL_READ, stream, NULL);
  call->data.cell = cell;
  call->data.source = source;
  call->data.seen = (place % 2 == 0 ? mix.seen : mix.pageable_seen) + place * MIX_WORDS;
  MIX_END(call, copy_cell(stream, call->data.seen, from, how), mix_full());
}

OPERATION(read) {
  struct object *stream = mix_stream_at(o->a);
  const unsigned cell = cell_for(stream, o->b);
  if (cell < MIX_CELLS) read_words(w, stream, words_of(cell), cell, NULL, o->c);
}

/* ---- kernels ---- */

OPERATION(pass) {
  struct object *stream = mix_stream_at(o->a);
  const rill_launch launch = rill_launch_1d(1, 1);
  struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call,
          mix_pass_launch(stream_of(stream), &launch, stream->started, stream->ended,
                          o->c % 4 == 0 ? o->d % mix.round.delay_ns : 0),
          mix_full());
  if (call->status == RILL_OK) atomic_fetch_add(&stream->passes, 1);
}

/* Streams share the constant. With the race detector only one default stream uses it. */
OPERATION(add) {
  struct object *stream = mix_stream_at(UNDER_RACE_DETECTOR ? o->a % mix.device_count : o->a);
  const uint32_t one = 1;
  const rill_constant step = { "mix_step", &one, sizeof one };
  rill_launch launch = rill_launch_1d(1, 1);
  launch.constants = &step;
  launch.constant_count = 1;
  struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, mix_add_launch(stream_of(stream), &launch, stream->added), mix_full());
  if (call->status == RILL_OK) atomic_fetch_add(&stream->adds, 1);
}

/* Releases a module of this thread while its kernel may run; nothing else keeps the module loaded. */
OPERATION(load) {
  struct object *stream = mix_stream_at(o->a);
  rill_bundle *const bundle = &w->bundle;
  rill_module module;
  rill_kernel kernel;
  const rill_launch launch = rill_launch_1d(1, 1);
  *bundle = mix_bundle;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(call, rill_module_load(stream->device, bundle, &module), 0) != RILL_OK) return;
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  const bool found = MIX_END(call, rill_module_get_kernel(module, "mix_pass", &kernel), 0) == RILL_OK;
  (void)rill_module_release(module);
  if (!found) return;
  call = mix_begin(w, CALL_OTHER, stream, NULL);
  MIX_END(call, rill_stream_launch(stream_of(stream), kernel, &launch, RILL_ARGS(stream->started, stream->ended, 0ull)),
          mix_full());
  if (call->status == RILL_OK) atomic_fetch_add(&stream->passes, 1);
  (void)rill_kernel_release(kernel);
}

/* ---- allocations and frees ---- */

static rill_status allocate(struct object *stream, size_t size, uint32_t how, void **out) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  const bool first = stream->device.id == mix.devices[0].id;
  switch (how % 4) {
    case 0: return rill_alloc(stream->device, size, kinds[how / 4 % 2], out);
    case 1: return rill_alloc_async(stream_of(stream), size, out);
    default:
      return first ? rill_pool_alloc_async(mix.pools[how % 2], stream_of(stream), size, out)
                   : rill_alloc_async(stream_of(stream), size, out);
  }
}

static struct piece *new_piece(struct worker *w, struct object *stream, const struct operation *o) {
  struct piece *piece = calloc(1, sizeof *piece);
  const uint32_t value = mix_hash(o->c, o->d) & 0xffffff;
  piece->count = ((size_t)64 << o->d % 12) + o->b % 64;
  struct call *call = mix_begin(w, CALL_OTHER, o->c % 4 == 0 ? NULL : stream, NULL);
  if (MIX_END(call, allocate(stream, piece->count * 4, o->c, (void **)&piece->words), MIX_MAY(OUT_OF_MEMORY)) !=
      RILL_OK) {
    free(piece);
    return NULL;
  }
  piece->fill = call = mix_begin(w, CALL_WRITE, stream, NULL);
  call->data.cell = MIX_CELLS;
  call->data.value = value;
  MIX_END(call, rill_fill_async(stream_of(stream), piece->words, &value, 4, piece->count), mix_full());
  return piece;
}

void mix_end_piece(struct worker *w, struct piece *piece, struct object *stream, uint32_t how) {
  struct object *own = piece->fill->object;
  bool ordered = stream == own;
  if (!ordered && stream->device.id == own->device.id && !mix.round.abandons)
    ordered = mix_wait_stream(w, stream, own) == RILL_OK;
  if (!ordered) stream = own;
  const uint32_t *const last = piece->words + piece->count - MIX_WORDS;
  if (piece->fill->status == RILL_OK)
    read_words(w, stream, how % 2 == 0 ? piece->words : last, MIX_CELLS, piece->fill, how / 2);
  struct call *call = NULL;
  if (how % 8 < 2 && stream != own) {
    call = mix_begin(w, CALL_OTHER, stream, NULL);
    if (MIX_END(call, rill_memory_record_use(piece->words, stream_of(stream)), mix_full()) == RILL_OK) stream = own;
  }
  rill_status status = RILL_ERROR_NOT_FOUND;
  if (how % 8 != 7) { /* the free is refused for memory from rill_alloc, and if the stream was destroyed */
    call = mix_begin(w, CALL_OTHER, stream, NULL);
    status = MIX_END(call, rill_free_async(stream_of(stream), piece->words), MIX_MAY(INVALID_ARGUMENT) | mix_full());
  }
  if (status != RILL_OK) {
    call = mix_begin(w, CALL_OTHER, NULL, NULL);
    status = MIX_END(call, rill_free(piece->words), mix_full());
  }
  if (status == RILL_OK) {
    free(piece);
    return;
  }
  piece->next = atomic_load(&mix.leftovers);
  while (!atomic_compare_exchange_weak(&mix.leftovers, &piece->next, piece)) {
  }
}

OPERATION(allocate) {
  struct object *stream = mix_stream_at(o->a);
  struct piece *piece = new_piece(w, stream, o);
  if (piece == NULL) return;
  if (o->b % 2 == 0) piece = atomic_exchange(&mix.pieces[o->b % MIX_PIECES], piece);
  if (piece != NULL) mix_end_piece(w, piece, stream, o->c);
}

OPERATION(end_piece) {
  struct piece *piece = atomic_exchange(&mix.pieces[o->b % MIX_PIECES], NULL);
  if (piece != NULL) mix_end_piece(w, piece, mix_stream_at(o->a), o->c);
}

OPERATION(trim) {
  rill_pool_info info = RILL_POOL_INFO_INIT;
  uint64_t free_bytes, total;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_pool_trim(mix.pools[o->a % 2], o->b % 3 == 0 ? 0 : 1 << 20), 0);
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_pool_get_info(mix.pools[o->a % 2], &info), 0);
  const bool exact = mix.round.threads == 1; /* with several threads the numbers may be from different moments */
  if (exact && (info.used > info.used_peak || info.reserved > info.reserved_peak)) {
    mix_complain(call, "more than the peak is used");
  }
  call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_device_get_memory(mix.devices[o->a % mix.device_count], &free_bytes, &total), 0);
  if (call->status == RILL_OK && free_bytes > total) mix_complain(call, "more is free than there is");
}

/* Refused during a capture. */
void mix_unregister(struct worker *w) {
  if (!w->registered) return;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  w->registered = MIX_END(call, rill_host_unregister(w->page), 0) != RILL_OK;
}

/* Registers, copies, queries and unregisters host memory. */
OPERATION(register) {
  struct object *stream = mix_stream_at(o->a);
  const uint32_t value = (uint32_t)mix_hash(w->index, mix_tick());
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  uint32_t *const words = (uint32_t *)(void *)w->page;
  mix_before_blocking(w);
  mix_unregister(w);
  if (w->registered) return;
  for (size_t i = 0; i < PAGE / 4; i++) words[i] = value;
  struct call *registered = mix_begin(w, CALL_OTHER, NULL, NULL);
  if (MIX_END(registered, rill_host_register(stream->device, w->page, PAGE), 0) != RILL_OK) return;
  w->registered = true;
  registered->data.value = value;
  struct call *call = mix_begin(w, CALL_OTHER, NULL, NULL);
  MIX_END(call, rill_memory_get_info(w->page + o->d % PAGE, &info), 0);
  if (info.base != w->page || info.size != PAGE) mix_complain(call, "does not know the registered memory");
  read_words(w, stream, words + o->d % (PAGE / 4 - MIX_WORDS), MIX_CELLS, registered, o->c);
  mix_before_blocking(w);
  mix_unregister(w);
}

/* Fills the queue of a stream that is held until another thread records the event, so that later submissions do not
 * fit. Streams share the destination, as they share the constant. */
OPERATION(pile_up) {
  static unsigned char source[24 << 20];
  rill_event_options options = RILL_EVENT_OPTIONS_INIT;
  struct object *stream = mix_stream_at(UNDER_RACE_DETECTOR ? 0 : o->a), *event;
  if (stream->device.id != mix.devices[0].id || atomic_exchange(&mix.piling, true)) return;
  options.label = "pile";
  event = mix_new_event(w, stream->device, &options);
  if (event == NULL) return;
  bool held = mix_wait(w, stream, event, 0) == RILL_OK;
  mix_put_event(w, o->b, event);
  for (size_t size = sizeof source, pieces = 0; held && size >= 16 && pieces < 24; pieces++) {
    struct call *call = mix_begin(w, CALL_OTHER, stream, NULL);
    const rill_status status = MIX_END(call, rill_copy_async(stream_of(stream), mix.pile, source, size), mix_full());
    if (status == RILL_ERROR_OUT_OF_MEMORY) size /= 4;
    held = (status == RILL_OK || status == RILL_ERROR_OUT_OF_MEMORY) && !atomic_load(&event->recorded);
  }
  atomic_store(&mix.piling, false);
}
