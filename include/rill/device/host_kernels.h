/* rill/device/host_kernels.h: how the kernels of a source become an image (rill/device/cpu_image.h).
 * Included by rill/device/on_host.h.
 *
 * Each kernel adds an entry to a section, which is the image's table. With RILL_NOTES it instead adds a note to the
 * object for rillcc: its name as the compiler spells it, and the types and sizes of its parameters.
 */
#ifndef RILL_DEVICE_HOST_KERNELS_H
#define RILL_DEVICE_HOST_KERNELS_H

#include <type_traits>

/* ---- arguments ---- */

template <class T> static __forceinline__ const T &rill_host_arg(const rill_cpu_block *block, size_t i) {
  static_assert(!std::is_reference_v<T>, "a kernel cannot take a reference; take a value or a pointer");
  static_assert(std::is_trivially_copyable_v<T>, "a kernel parameter must be trivially copyable");
  return *static_cast<const T *>(block->grid->args[i]);
}

template <class... P> struct rill_host_sizes {
  static constexpr uint32_t list[sizeof...(P) + 1] = { static_cast<uint32_t>(sizeof(P))..., 0 };
};

/* ---- notes for rillcc ---- */

#if RILL_NOTES
enum { RILL_NOTE_TEXT = 512, RILL_NOTE_PARAMETERS = 4096, RILL_NOTE_MAGIC = 0x45544f4e };
enum { RILL_NOTE_PLAIN = 0, RILL_NOTE_CLASS = 1, RILL_NOTE_ENUM = 2, RILL_NOTE_REFUSED = 3 };
struct rill_note_type {
  uint32_t size, alignment, kind;
  char text[RILL_NOTE_TEXT];
};
/* `function` is 0 for RILL_KERNEL. For other kernels rillcc reads the symbol from the relocation. */
template <size_t COUNT, class Function> struct rill_note {
  uint32_t magic, size, line, count;
  char name[RILL_NOTE_TEXT], file[RILL_NOTE_TEXT], parameters[RILL_NOTE_PARAMETERS];
  rill_note_type types[COUNT == 0 ? 1 : COUNT];
  Function function;
};
template <size_t SIZE> static constexpr void rill_note_copy(char (&to)[SIZE], const char *from) {
  for (size_t i = 0; i + 1 < SIZE && from[i] != '\0'; i++) to[i] = from[i];
}
template <class T> static constexpr rill_note_type rill_note_of_type() {
  rill_note_type note = {};
  note.size = sizeof(T);
  note.alignment = alignof(T);
  note.kind = std::is_reference_v<T> || !std::is_trivially_copyable_v<T> ? RILL_NOTE_REFUSED
              : std::is_class_v<T> || std::is_union_v<T>                 ? RILL_NOTE_CLASS
              : std::is_enum_v<T>                                        ? RILL_NOTE_ENUM
                                                                         : RILL_NOTE_PLAIN;
  rill_note_copy(note.text, __PRETTY_FUNCTION__);
  return note;
}
template <class... P, class Function>
static constexpr auto rill_note_of(const char *name, const char *file, uint32_t line, const char *parameters,
                                   Function function) {
  rill_note<sizeof...(P), Function> note = {};
  note.magic = RILL_NOTE_MAGIC;
  note.size = sizeof note;
  note.line = line;
  note.count = sizeof...(P);
  rill_note_copy(note.name, name);
  rill_note_copy(note.file, file);
  rill_note_copy(note.parameters, parameters);
  [[maybe_unused]] size_t i = 0;
  ((note.types[i++] = rill_note_of_type<P>()), ...);
  note.function = function;
  return note;
}
template <class... P>
static constexpr auto rill_note_kernel(const char *name, const char *file, uint32_t line, const char *parameters,
                                       void (*)(RILL_HIDDEN_ P...)) {
  return rill_note_of<P...>(name, file, line, parameters, 0L);
}
template <class... P>
static constexpr auto rill_note_instance(const char *name, const char *file, uint32_t line, void (*function)(P...)) {
  return rill_note_of<P...>(name, file, line, "", function);
}
#endif

/* ---- the table ---- */

/* Returns the symbol that rillcc has read from the notes, or the kernel's own name. */
static constexpr const char *rill_symbol_or(const char *symbol, const char *name) {
  return symbol[0] == 'R' && symbol[1] == 'I' && symbol[2] == 'L' && symbol[3] == 'L' ? name : symbol;
}

#if RILL_NOTES
#define RILL_NOTE_(NAME, NOTE)                                                                                       \
  __attribute__((__section__("rill_notes"), __used__, __aligned__(8))) static constexpr auto RILL_JOIN_(rill_noted_, \
                                                                                                        NAME) = NOTE;
#define RILL_REGISTER_(NAME, PARAMETERS) \
  RILL_NOTE_(NAME, rill_note_kernel(#NAME, __FILE__, __LINE__, PARAMETERS, RILL_JOIN_(rill_body_, NAME)))
#define RILL_KERNEL_INSTANCE(NAME, ...) \
  RILL_NOTE_(NAME, rill_note_instance(#NAME, __FILE__, __LINE__, +__VA_ARGS__)) static_assert(true, "")
#else
#define RILL_ENTRY_(NAME, FORMS, SYMBOL)                                                                          \
  __attribute__((__section__("rill_kernels"), __used__, __aligned__(8))) static const rill_cpu_kernel RILL_JOIN_( \
      rill_entry_, NAME) = FORMS::rill_kernel_(SYMBOL, RILL_TEXT_(RILL_JOIN_(RILL_MEETS_, NAME))[0] == '1');
#define RILL_REGISTER_(NAME, PARAMETERS) RILL_ENTRY_(NAME, rill_host_forms<RILL_JOIN_(rill_body_, NAME)>, #NAME)
#define RILL_KERNEL_INSTANCE(NAME, ...)                                                                               \
  using RILL_JOIN_(rill_forms_, NAME) =                                                                               \
      rill_host_forms<+__VA_ARGS__, struct RILL_JOIN_(rill_body_, NAME), decltype(+__VA_ARGS__)>;                     \
  RILL_ENTRY_(NAME, RILL_JOIN_(rill_forms_, NAME), rill_symbol_or(RILL_TEXT_(RILL_JOIN_(RILL_SYMBOL_, NAME)), #NAME)) \
  static_assert(true, "")
#endif

/* rillcc writes the table after compilation (rillcc_lib/stacks.py). */
#if RILL_STACKS_LATER
/* Placeholder for the stack size of each kernel of the image (rill/device/cpu_image.h). The run-time compiler finds
 * it by its mark and fills it in, once the compiler has reported the sizes. */
struct rill_stacks_place {
  char mark[16];
  uint64_t stacks[2];
};
__attribute__((used)) static const rill_stacks_place rill_stacks = { RILL_CPU_STACKS_MARK, { 1, 0 } };

/* The linker's symbols for the start and end of the section, which does not exist if there are no kernels. */
extern "C" const rill_cpu_kernel __start_rill_kernels[] __attribute__((weak, visibility("hidden")));
extern "C" const rill_cpu_kernel __stop_rill_kernels[] __attribute__((weak, visibility("hidden")));

extern "C" __attribute__((visibility("default"))) const rill_cpu_image_table rill_cpu_image;

extern "C" const rill_cpu_image_table rill_cpu_image = { RILL_CPU_IMAGE_MAGIC,
                                                         RILL_CPU_IMAGE_VERSION,
                                                         __start_rill_kernels,
                                                         nullptr,
                                                         static_cast<uint32_t>(__stop_rill_kernels -
                                                                               __start_rill_kernels),
                                                         0,
                                                         rill_stacks.stacks,
                                                         0,
                                                         nullptr };
#endif

/* ---- assertions ---- */

#ifdef __GLIBC__
#define RILL_ASSERT_LINE_ unsigned
#define RILL_ASSERT_THROWS_ noexcept
#else
#define RILL_ASSERT_LINE_ int
#define RILL_ASSERT_THROWS_
#endif

/* Called by assert of <assert.h>. This function is private to the image; the C library's function would abort the
 * process. */
extern "C" __attribute__((noreturn)) void __assert_fail(const char *expression, const char *file,
                                                        RILL_ASSERT_LINE_ line,
                                                        const char *function) RILL_ASSERT_THROWS_;

#endif
