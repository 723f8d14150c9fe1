/* Reads the description of a code object's kernels, which is in MessagePack format. */
#include "backends/hip/formats.h"

#include <string.h>

/* ---- MessagePack ---- */

enum kind { NOTHING, NUMBER, TEXT, LIST, MAP, OTHER };

struct value {
  enum kind kind;
  uint64_t number; /* number of elements of a LIST, or of pairs of a MAP */
  const char *text;
  size_t length;
};

struct reader {
  const unsigned char *at, *end;
  uint64_t *work; /* counts values */
};

/* Reads a big-endian number of `n` bytes.  Returns false if there are fewer bytes. */
static bool take_number(struct reader *r, size_t n, uint64_t *out) {
  if ((size_t)(r->end - r->at) < n) return false;
  *out = 0;
  while (n-- > 0) *out = *out << 8 | *r->at++;
  return true;
}

/* Skips the `length` bytes of the value. */
static bool take_bytes(struct reader *r, uint64_t length, enum kind kind, struct value *out) {
  if ((uint64_t)(r->end - r->at) < length) return false;
  *out = (struct value){ .kind = kind, .text = (const char *)r->at, .length = (size_t)length };
  r->at += length;
  return true;
}

static bool take_sized(struct reader *r, size_t width, uint64_t more, enum kind kind, struct value *out) {
  uint64_t length;
  return take_number(r, width, &length) && take_bytes(r, length + more, kind, out);
}

static bool take_elements(struct reader *r, size_t width, enum kind kind, struct value *out) {
  *out = (struct value){ .kind = kind };
  return take_number(r, width, &out->number);
}

/* Reads one value.  For a list or map, reads only its header; the elements are the next values.  NOTHING is nil. */
static bool take_value(struct reader *r, struct value *out) {
  uint64_t head;
  *out = (struct value){ .kind = OTHER };
  ++*r->work;
  if (!take_number(r, 1, &head)) return false;
  const struct value small = { .kind = NUMBER, .number = head & 0x7f };
  if (head < 0x80) *out = small;
  else if (head < 0x90) *out = (struct value){ .kind = MAP, .number = head & 15 };
  else if (head < 0xa0) *out = (struct value){ .kind = LIST, .number = head & 15 };
  else if (head < 0xc0) return take_bytes(r, head & 31, TEXT, out);
  else if (head >= 0xe0) return true; /* a small negative number */
  else switch (head) {
      case 0xc0: out->kind = NOTHING; break;
      case 0xc1: return false;
      case 0xc2:
      case 0xc3: break; /* false, true */
      case 0xc4: return take_sized(r, 1, 0, OTHER, out);
      case 0xc5: return take_sized(r, 2, 0, OTHER, out);
      case 0xc6: return take_sized(r, 4, 0, OTHER, out);
      case 0xc7: return take_sized(r, 1, 1, OTHER, out);
      case 0xc8: return take_sized(r, 2, 1, OTHER, out);
      case 0xc9: return take_sized(r, 4, 1, OTHER, out);
      case 0xca: return take_bytes(r, 4, OTHER, out);
      case 0xcb: return take_bytes(r, 8, OTHER, out);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: out->kind = NUMBER; return take_number(r, (size_t)1 << (head - 0xcc), &out->number);
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3: return take_bytes(r, UINT64_C(1) << (head - 0xd0), OTHER, out);
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8: return take_bytes(r, 1 + (UINT64_C(1) << (head - 0xd4)), OTHER, out);
      case 0xd9: return take_sized(r, 1, 0, TEXT, out);
      case 0xda: return take_sized(r, 2, 0, TEXT, out);
      case 0xdb: return take_sized(r, 4, 0, TEXT, out);
      case 0xdc: return take_elements(r, 2, LIST, out);
      case 0xdd: return take_elements(r, 4, LIST, out);
      case 0xde: return take_elements(r, 2, MAP, out);
      default: return take_elements(r, 4, MAP, out);
    }
  return true;
}

/* Skips a value and everything in it.  Every value has at least one byte, so this terminates. */
static bool skip(struct reader *r) {
  for (uint64_t left = 1; left > 0; left--) {
    struct value value;
    if (!take_value(r, &value)) return false;
    if (value.kind == LIST) left += value.number;
    if (value.kind == MAP) left += 2 * value.number;
  }
  return true;
}

static bool is_text(const struct value *value, const char *text) {
  return value->kind == TEXT && value->length == strlen(text) && memcmp(value->text, text, value->length) == 0;
}

/* Finds a key in the map at `map`; `out` then reads its value.  Returns false if the key is missing. */
static bool find_in_map(struct reader map, const char *name, struct reader *out) {
  struct value value;
  if (!take_value(&map, &value) || value.kind != MAP) return false;
  for (uint64_t i = value.number; i > 0; i--) {
    struct value key;
    struct reader at = map;
    if (take_value(&at, &key) && is_text(&key, name)) {
      *out = at;
      return true;
    }
    if (!skip(&map) || !skip(&map)) return false;
  }
  return false;
}

/* Returns the plain value of a key; NOTHING if the key is missing. */
static struct value get(struct reader map, const char *name) {
  struct value value = { .kind = NOTHING };
  struct reader at;
  if (find_in_map(map, name, &at) && !take_value(&at, &value)) value.kind = NOTHING;
  return value;
}

static uint64_t get_number(struct reader map, const char *name, uint64_t most) {
  const struct value value = get(map, name);
  return value.kind == NUMBER && value.number <= most ? value.number : 0;
}

/* Enters the list of a key and returns its number of elements. */
static uint64_t enter_list(struct reader map, const char *name, struct reader *out) {
  struct value value;
  if (!find_in_map(map, name, out) || !take_value(out, &value) || value.kind != LIST) return 0;
  return value.number;
}

/* ---- kernels ---- */

/* Returns true for arguments that the compiler adds to those of the source. */
static bool is_hidden(const struct value *kind) {
  static const char hidden[] = "hidden_";
  return kind->kind == TEXT && kind->length >= sizeof hidden - 1 && memcmp(kind->text, hidden, sizeof hidden - 1) == 0;
}

static const char *read_metadata_args(struct reader kernel, struct rill__image *out) {
  struct reader at;
  for (uint64_t left = enter_list(kernel, ".args", &at); left > 0; left--) {
    const struct value kind = get(at, ".value_kind"), size = get(at, ".size"), name = get(at, ".name");
    if (size.kind != NUMBER || size.number > UINT32_MAX) return "its note lacks the size of an argument";
    const size_t length = name.kind == TEXT && name.length <= RILL__NAME_MAX ? name.length : 0;
    if (!is_hidden(&kind)) {
      if (!rill__image_add_arg(out, name.text, length, (uint32_t)size.number)) return "no memory";
      rill__image_set_offset(out, (uint32_t)get_number(at, ".offset", UINT32_MAX) & ~RILL_BUNDLE_ARG_READS);
    }
    if (!skip(&at)) return "its note ends inside of a list of arguments";
  }
  return NULL;
}

static const char *read_kernel(struct reader kernel, struct rill__image *out) {
  static const char suffix[] = ".kd";
  const size_t extra = sizeof suffix - 1;
  struct value name = get(kernel, ".symbol");
  if (name.kind != TEXT || name.length <= extra || name.length > RILL__NAME_MAX ||
      memcmp(name.text + name.length - extra, suffix, extra) != 0)
    return "its note lacks the symbol of a kernel";
  if (memchr(name.text, '\0', name.length) != NULL) return "its note has a symbol with a zero byte inside";
  const char *fault = rill__image_read_kernel(out, name.text, name.length - extra, 0);
  if (fault != NULL) return fault;
  struct rill__kernel_needs *needs = &out->needs[out->kernel_count - 1];
  needs->static_shared = get_number(kernel, ".group_segment_fixed_size", UINT32_MAX);
  needs->max_threads = (uint32_t)get_number(kernel, ".max_flat_workgroup_size", UINT32_MAX);
  needs->warp_size = (uint32_t)get_number(kernel, ".wavefront_size", 64);
  struct reader at;
  if (enter_list(kernel, ".reqd_workgroup_size", &at) == 3) {
    for (int i = 0; i < 3; i++) {
      struct value size;
      if (!take_value(&at, &size) || size.kind != NUMBER || size.number == 0 || size.number > UINT32_MAX) {
        return "its note has an impossible block shape";
      }
      needs->block[i] = (uint32_t)size.number;
    }
  }
  return read_metadata_args(kernel, out);
}

const char *rill__hip_metadata_read(const void *data, size_t size, char target[HIP_TARGET_SIZE],
                                    struct rill__image *image) {
  const struct reader top = { data, (const unsigned char *)data + size, &image->work };
  struct reader at = top;
  struct value value;
  if (!take_value(&at, &value) || value.kind != MAP) return "its note is not a map";
  at = top;
  if (!skip(&at)) return "its note ends too early";
  if (target != NULL) {
    static const char prefix[] = "amdgcn-amd-amdhsa--";
    const size_t length = sizeof prefix - 1;
    value = get(top, "amdhsa.target");
    target[0] = '\0';
    if (value.kind == TEXT && value.length > length && value.length - length < HIP_TARGET_SIZE &&
        memcmp(value.text, prefix, length) == 0) {
      memcpy(target, value.text + length, value.length - length);
      target[value.length - length] = '\0';
    }
    return NULL;
  }
  for (uint64_t left = enter_list(top, "amdhsa.kernels", &at); left > 0; left--) {
    const char *fault = read_kernel(at, image);
    if (fault != NULL) return fault;
    if (!skip(&at)) return "its note ends inside of the list of kernels";
  }
  return NULL;
}
