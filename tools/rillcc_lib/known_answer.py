"""Tests whether a clang correctly vectorizes loops with conditional divisions of invariant operands, by running a
program whose result is known.

If rillcc rewrites the module that clang compiles, divisions.py avoids the problem. If rillcc cannot load clang's LLVM,
clang compiles the loops over threads by itself, and these loops are vectorized only if this program's result is
correct.
"""

PROGRAM = """
enum { N = 64 };
static unsigned in[2 * N], out[N];
static volatile int numbers[] = { 53, 40 };
#define DIVISIONS(F) F(0, unsigned, a % b + i) F(1, int, a % b + i) F(2, unsigned, b * (a / b) + i - a + a % b)
#define MORE(F) F(3, unsigned long, a % b + i) F(4, long, (a / b) * 4 + i) F(5, unsigned short, a % b + i)
#define FUNCTION(K, T, INDEX)                                                                                     \\
  __attribute__((noinline)) void some##K(unsigned *restrict to, const unsigned *restrict from, T a, T b) {        \\
    for (unsigned i = 0; i < N; i++) {                                                                            \\
      unsigned v = 1;                                                                                             \\
      if ((i & 31) >= 3) v = from[INDEX];                                                                         \\
      to[i] = v;                                                                                                  \\
    }                                                                                                             \\
  }
DIVISIONS(FUNCTION)
MORE(FUNCTION)
#define CHECK(K, T, INDEX)                                                                                        \\
  {                                                                                                               \\
    const T a = (T)numbers[0], b = (T)numbers[1];                                                                 \\
    some##K(out, in, a, b);                                                                                       \\
    for (unsigned i = 0; i < N; i++)                                                                              \\
      if (out[i] != ((i & 31) < 3 ? 1 : 7 * (unsigned)(INDEX) + 2)) return K + 1;                                 \\
  }
int main(void) {
  for (unsigned i = 0; i < 2 * N; i++) in[i] = 7 * i + 2;
  DIVISIONS(CHECK)
  MORE(CHECK)
  return 0;
}
"""


def divides_correctly(toolchain, compiler, flags, name):
    """Returns whether loops that the compiler emits with these flags divide correctly. Returns False if the program
    cannot be compiled or run here."""
    source, program = toolchain.path(name + ".c"), toolchain.path(name)
    with open(source, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    command = [*compiler, "-x", "c", "-O3", *flags, "-o", program, source]
    return toolchain.execute(command).returncode == 0 and toolchain.execute([program]).returncode == 0
