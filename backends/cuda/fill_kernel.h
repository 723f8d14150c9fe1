/* A kernel that fills rows with a pattern of 8 or 16 bytes, which the driver cannot do; included by vendor.h.
 *
 *   rill_fill(dst, pitch, width, height, even, odd): fills `height` rows, `pitch` bytes apart, with `width` words of 8
 *   bytes each.  Words with an even index become `even`, the others `odd`.
 *
 * A block has an even number of threads along x.  Each thread writes GPU_FILL_WORDS words of a row, one block width
 * apart.  The grid's x dimension covers a row; its y dimension has as many rows as fit, and each block continues with
 * later rows.  Every driver that rill supports can compile this code for its GPUs.
 */
#ifndef RILL_BACKENDS_CUDA_FILL_KERNEL_H
#define RILL_BACKENDS_CUDA_FILL_KERNEL_H

#define GPU_FILL_WORDS 4
#define GPU_FILL_NAME "rill_fill"
#define GPU_FILL_CODE                                                \
  ".version 6.0\n"                                                   \
  ".target sm_50\n"                                                  \
  ".address_size 64\n"                                               \
  ".visible .entry rill_fill(.param .u64 dst, .param .u64 pitch,\n"  \
  "    .param .u64 width, .param .u64 height,\n"                     \
  "    .param .u64 even, .param .u64 odd) {\n"                       \
  ".reg .pred %odd, %in, %done;\n"                                   \
  ".reg .b32 %t, %threads, %k, %low;\n"                              \
  ".reg .b64 %at, %pitch, %width, %height, %value, %other;\n"        \
  ".reg .b64 %x, %y, %rows, %next, %stride, %bytes;\n"               \
  "ld.param.u64 %at, [dst];\n"                                       \
  "ld.param.u64 %pitch, [pitch];\n"                                  \
  "ld.param.u64 %width, [width];\n"                                  \
  "ld.param.u64 %height, [height];\n"                                \
  "ld.param.u64 %value, [even];\n"                                   \
  "ld.param.u64 %other, [odd];\n"                                    \
  "cvta.to.global.u64 %at, %at;\n"                                   \
  "mov.u32 %t, %tid.x;\n"                                            \
  "mov.u32 %threads, %ntid.x;\n"                                     \
  "and.b32 %low, %t, 1;\n"                                           \
  "setp.ne.u32 %odd, %low, 0;\n"                                     \
  "@%odd mov.b64 %value, %other;\n"                                  \
  "mov.u32 %k, %ctaid.y;\n"                                          \
  "cvt.u64.u32 %y, %k;\n"                                            \
  "mov.u32 %k, %nctaid.y;\n"                                         \
  "cvt.u64.u32 %rows, %k;\n"                                         \
  "mov.u32 %k, %ctaid.x;\n"                                          \
  "mul.wide.u32 %x, %k, %threads;\n"                                 \
  "shl.b64 %x, %x, 2;\n"                                             \
  "cvt.u64.u32 %next, %t;\n"                                         \
  "add.u64 %x, %x, %next;\n" /* this thread's first word of a row */ \
  "cvt.u64.u32 %stride, %threads;\n"                                 \
  "shl.b64 %bytes, %stride, 3;\n"                                    \
  "mad.lo.u64 %at, %y, %pitch, %at;\n"                               \
  "shl.b64 %next, %x, 3;\n"                                          \
  "add.u64 %at, %at, %next;\n"                                       \
  "mul.lo.u64 %pitch, %rows, %pitch;\n"                              \
  "row:\n"                                                           \
  "setp.ge.u64 %done, %y, %height;\n"                                \
  "@%done bra end;\n"                                                \
  "mov.b64 %next, %at;\n"                                            \
  "mov.b64 %other, %x;\n"                                            \
  "mov.u32 %k, 0;\n"                                                 \
  "word:\n"                                                          \
  "setp.lt.u64 %in, %other, %width;\n"                               \
  "@%in st.global.u64 [%next], %value;\n"                            \
  "add.u64 %other, %other, %stride;\n"                               \
  "add.u64 %next, %next, %bytes;\n"                                  \
  "add.u32 %k, %k, 1;\n"                                             \
  "setp.lt.u32 %in, %k, 4;\n"                                        \
  "@%in bra word;\n"                                                 \
  "add.u64 %y, %y, %rows;\n"                                         \
  "add.u64 %at, %at, %pitch;\n"                                      \
  "bra row;\n"                                                       \
  "end:\n"                                                           \
  "ret;\n"                                                           \
  "}\n"

#endif
