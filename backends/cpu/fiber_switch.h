/* Switches between stacks, and informs the tools that watch stacks (sanitizers, Valgrind).
 *
 * `fiber_switch(from, to)` saves the running context in `from` and resumes `to`.  `fiber_prepare` creates a context
 * that starts at `entry` on a new stack.  Floating-point modes are not switched, because kernels cannot change them. */
#ifndef RILL_CPU_FIBER_SWITCH_H
#define RILL_CPU_FIBER_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif

#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

#if !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT 1
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

struct context {
#ifdef FIBER_UCONTEXT
  ucontext_t native;
#else
  void *stack_pointer; /* points to the saved registers */
#endif
#ifdef FIBER_ASAN
  void *fake_stack;
  const void *bottom;
  size_t size;
#endif
#ifdef FIBER_TSAN
  void *tsan;
#endif
#ifdef VALGRIND_STACK_REGISTER
  unsigned valgrind;
#endif
};

#ifndef FIBER_UCONTEXT
/* Pushes the callee-saved registers, stores the stack pointer in *save, and pops the registers from `load`.
 *
 * The symbol is weak and assembled once, so that all files of a program that include rill.c share it.  It cannot be
 * local to a file, because link-time optimization may move its callers to another one.  If the layout of a frame
 * changes, the name has to change also. */
extern void rill__cpu_stack_switch(void **save, void *load);

#if defined(__x86_64__)
__asm__(".ifndef rill__cpu_stack_switch\n"
        ".text\n"
        ".p2align 4\n"
        ".weak rill__cpu_stack_switch\n"
        ".hidden rill__cpu_stack_switch\n"
        ".type rill__cpu_stack_switch, @function\n"
        "rill__cpu_stack_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size rill__cpu_stack_switch, . - rill__cpu_stack_switch\n"
        ".endif\n");

/* Builds the first frame of a stack: six registers, the return address for `ret`, and the zero that ends a backtrace.
 */
static inline void *first_frame(void *top, void (*entry)(void)) {
  uintptr_t *frame = (uintptr_t *)top - 8;
  for (int i = 0; i < 8; i++) frame[i] = 0;
  frame[6] = (uintptr_t)entry;
  return frame;
}
#else
__asm__(".ifndef rill__cpu_stack_switch\n"
        ".text\n"
        ".p2align 4\n"
        ".weak rill__cpu_stack_switch\n"
        ".hidden rill__cpu_stack_switch\n"
        ".type rill__cpu_stack_switch, %function\n"
        "rill__cpu_stack_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x2, sp\n"
        "  str x2, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size rill__cpu_stack_switch, . - rill__cpu_stack_switch\n"
        ".endif\n");

static inline void *first_frame(void *top, void (*entry)(void)) {
  uintptr_t *frame = (uintptr_t *)top - 20;
  for (int i = 0; i < 20; i++) frame[i] = 0;
  frame[11] = (uintptr_t)entry; /* x30 */
  return frame;
}
#endif
#endif

/* Creates a context that starts at `entry`.  `stack` and `size` are multiples of 64. */
static inline void fiber_prepare(struct context *context, void *stack, size_t size, void (*entry)(void)) {
#ifdef FIBER_UCONTEXT
  (void)getcontext(&context->native);
  context->native.uc_stack.ss_sp = stack;
  context->native.uc_stack.ss_size = size;
  context->native.uc_link = NULL;
  makecontext(&context->native, entry, 0);
#else
  context->stack_pointer = first_frame((char *)stack + size, entry);
#endif
#ifdef FIBER_ASAN
  context->bottom = stack;
  context->size = size;
#endif
#ifdef FIBER_TSAN
  context->tsan = __tsan_create_fiber(0);
#endif
#ifdef VALGRIND_STACK_REGISTER
  context->valgrind = VALGRIND_STACK_REGISTER(stack, (char *)stack + size);
#endif
}

static inline void fiber_end(struct context *context) {
  (void)context;
#ifdef FIBER_TSAN
  __tsan_destroy_fiber(context->tsan);
#endif
#ifdef VALGRIND_STACK_REGISTER
  VALGRIND_STACK_DEREGISTER(context->valgrind);
#endif
}

/* Has to be called first on a new stack.  `from`: the context that was left; the first switch from a thread's own stack
 * reports the extent of that stack. */
static inline void fiber_begin(struct context *from) {
  (void)from;
#ifdef FIBER_ASAN
  __sanitizer_finish_switch_fiber(NULL, &from->bottom, &from->size);
#endif
}

static inline void fiber_switch(struct context *from, struct context *to) {
#ifdef FIBER_ASAN
  __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
#endif
#ifdef FIBER_TSAN
  __tsan_switch_to_fiber(to->tsan, 0);
#endif
#ifdef FIBER_UCONTEXT
  (void)swapcontext(&from->native, &to->native);
#else
  rill__cpu_stack_switch(&from->stack_pointer, to->stack_pointer);
#endif
#ifdef FIBER_ASAN
  __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

#endif
