"""Random kernels with barriers, of which every thread order gives the same result.

Each has the parameters of the kernels in barriers.kernel.cu.  Threads write only their own element of shared memory
or of the output, and read others' only after a barrier, so any difference between two ways of running one is a
mistake.  All arithmetic is on integers, wrapping, but for values that are loaded and stored.
"""

OPERATORS = ("+", "-", "*", "^", "&", "|")


class Generator:
    def __init__(self, numbers, name):
        self.numbers = numbers
        self.name = name
        self.count = 0
        self.lines = []
        self.readable = False  # what is in shared memory was written before the last barrier
        self.scopes = []  # lists of (name, kind): kind is thread, uniform, array, const, pointer or pointers
        self.loops = []  # of each loop around: whether all threads agree about it, and whether it has barriers
        self.shared = 0  # which of the two halves of shared memory is written now

    # Small choices

    def one_of(self, things):
        return things[self.numbers.randrange(len(things))]

    def chance(self, percent):
        return self.numbers.randrange(100) < percent

    def new_name(self):
        # Sometimes a name that is there already, so that it is hidden.
        if self.chance(8) and len(self.scopes) > 1:
            known = [name for scope in self.scopes[:-1] for name, _ in scope if name[0] not in "kq"]
            taken = {name for name, _ in self.scopes[-1]}
            known = [name for name in known if name not in taken]
            if known:
                return self.one_of(known)
        self.count += 1
        return "v%d" % self.count

    def visible(self, kinds):
        return [name for name, _, _ in self.placed(kinds)]

    def placed(self, kinds):
        """Returns (name, kind, number of its scope) of what can be named here."""
        seen, found = set(), []
        for number, scope in reversed(list(enumerate(self.scopes))):
            for name, kind in reversed(scope):
                if name not in seen:
                    seen.add(name)
                    if kind in kinds:
                        found.append((name, kind, number))
        return found

    def address(self, scope):
        """Returns the address of something that lives as long as a scope; None if there is nothing."""
        known = [(name, kind) for name, kind, number in self.placed(("thread", "array", "pointer")) if number <= scope]
        if not known:
            return None
        name, kind = self.one_of(known)
        if kind == "array":
            return self.one_of((name, "%s + 3" % name, "&%s[(%s) & 3]" % (name, self.value(1))))
        return name if kind == "pointer" else "&" + name

    def put(self, depth, text):
        self.lines.append("  " * depth + text)

    # Expressions

    def uniform(self, level=2):
        names = self.visible(("uniform", "counter"))
        choice = self.numbers.randrange(10)
        if level == 0 or choice < 3:
            return self.one_of(["0x%xu" % self.numbers.randrange(1, 9), "n", "bx", "threads"] + 2 * names)
        if choice < 8:
            return "(%s %s %s)" % (self.uniform(level - 1), self.one_of(OPERATORS), self.uniform(level - 1))
        if choice == 8:
            return "(%s %s %d)" % (self.uniform(level - 1), self.one_of(("/", "%", ">>")), self.numbers.randrange(1, 5))
        return "min(%s, %s)" % (self.uniform(level - 1), self.uniform(level - 1))

    def value(self, level=3):
        names = self.visible(("thread", "const"))
        names += ["*" + name for name in self.visible(("pointer",))]
        names += ["*%s[%s & 1]" % (name, self.one_of(("t", "n", "i"))) for name in self.visible(("pointers",))]
        arrays = self.visible(("array",))
        choice = self.numbers.randrange(14)
        if level == 0 or choice < 3:
            return self.one_of(["t", "i", "threadIdx.x", "threadIdx.y"] + 3 * names)
        if choice < 6:
            return "(%s %s %s)" % (self.value(level - 1), self.one_of(OPERATORS), self.value(level - 1))
        if choice == 6:
            return "(%s %s %d)" % (self.value(level - 1), self.one_of(("/", "%", ">>")), self.numbers.randrange(1, 7))
        if choice == 7:
            return self.uniform(1)
        if choice == 8 and arrays:
            return "%s[(%s) & 3]" % (self.one_of(arrays), self.value(level - 1))
        if choice == 9:
            return "(%s ? %s : %s)" % (self.condition(level - 1), self.value(level - 1), self.value(level - 1))
        if choice == 10:
            return "twice(%s)" % self.value(level - 1)
        if choice == 11:
            return "static_cast<unsigned>(static_cast<int>(x[(%s) %% count]))" % self.value(level - 1)
        if choice == 12 and self.readable:
            return "%s[(t + %s) %% threads]" % (self.other(), self.uniform(0))
        return "max(%s, %s)" % (self.value(level - 1), self.value(level - 1))

    def condition(self, level=2):
        operator = self.one_of(("<", ">", "==", "!=", "<=", ">="))
        if self.chance(25):
            return "%s < %s" % (self.one_of(("t", "threadIdx.x")), self.uniform(1))
        if self.chance(10):
            return "threadIdx.x == %d" % self.numbers.randrange(3)
        if self.chance(10):
            lane = self.one_of(("rill_lane()", "threadIdx.x % 32", "threadIdx.x % 8", "(t & 15)"))
            return "%s %s %d" % (lane, self.one_of(("==", "!=")), self.numbers.randrange(8))
        text = "(%s & 15) %s %d" % (self.value(level), operator, self.numbers.randrange(16))
        if self.chance(15):
            text += " %s (%s & 1) == 0" % (self.one_of(("&&", "||")), self.value(1))
        return text

    def below(self):
        """Returns a condition that holds for all threads of some blocks."""
        index = self.one_of(("threadIdx.x", "threadIdx.y", "threadIdx.x / 8", "threadIdx.x % 16", "threadIdx.x * 3"))
        first = self.one_of(("blockIdx.x * blockDim.x", "bx * threads", "bx * (threads / 32 + 1)", "(bx << 5)"))
        kind = self.one_of(("unsigned", "int", "long long", "size_t"))
        sum_ = "static_cast<%s>(%s + %s)" % (kind, first, index)
        sum_ = self.one_of((sum_, sum_, "%s / 32" % sum_, "static_cast<%s>(%s) + %s" % (kind, first, index)))
        limit = self.one_of(("count", "count - 5", "2 * threads", "threads - 1", "bx * threads + 3", "n + threads / 32", "n"))
        return "%s %s static_cast<%s>(%s)" % (sum_, self.one_of(("<", "<", "<=")), kind, limit)

    def agreed(self):
        """Returns a condition that all threads agree about."""
        if self.readable and self.chance(30):
            return "(%s[0] & 3) != 1" % self.other()  # and nobody can see that they do
        return "(%s & 7) %s %d" % (self.uniform(), self.one_of(("<", ">", "!=")), self.numbers.randrange(8))

    def mine(self):
        return "ab"[self.shared]

    def other(self):
        return "ab"[1 - self.shared]

    # Statements

    def barrier(self, depth):
        """Publishes something: who wrote one half reads it, and writes the other."""
        value = self.value(2)
        if self.chance(20):
            among = "rill_block_sum(%s)", "rill_block_max(%s)", "rill_warp_min(%s)", "rill_shuffle_xor(%s, 5)"
            value = self.one_of(among) % ("0u + " + value)
        self.put(depth, "%s[t] = %s;" % (self.mine(), value))
        self.put(depth, "__syncthreads();")
        self.shared = 1 - self.shared
        self.readable = True

    def point(self, depth):
        """Declares a pointer to a thread's own variables, or makes one point elsewhere, or changes two."""
        pointers = self.placed(("pointer",))
        here = len(self.scopes) - 1
        choice = self.numbers.randrange(8)
        if choice == 0 and pointers:
            name, _, scope = self.one_of(pointers)
            self.put_address(depth, "%s = %%s;" % name, scope)
        elif choice == 1 and len({scope for _, _, scope in pointers}) == 1 and len(pointers) > 1:
            (one, _, _), (two, _, _) = pointers[:2]
            self.put(depth, "{ unsigned *const swapped = %s; %s = %s; %s = swapped; }" % (one, one, two, two))
        elif choice == 2:
            self.count += 1
            if self.put_address(depth, "unsigned *q%d[2] = { %%s, %%s };" % self.count, here):
                self.scopes[-1].append(("q%d" % self.count, "pointers"))
        elif choice == 4:  # what only a pointer knows
            self.count += 1
            names = tuple("h%d%s" % (self.count, letter) for letter in "ab")
            self.put(depth, "unsigned %s[2] = { %s }, %s = %s;" % (names[0], self.value(1), names[1], self.value(1)))
            self.put(depth, "unsigned *q%d[2] = { %s, &%s };" % (self.count, names[0], names[1]))
            self.scopes[-1].append(("q%d" % self.count, "pointers"))
        elif choice == 3 and pointers:
            self.put(depth, "*%s %s= %s;" % (self.one_of(pointers)[0], self.one_of("+-^"), self.value()))
        else:
            self.count += 1
            text = self.one_of(("%s", "(%s) ? %%s : %%s" % self.condition(1).replace("%", "%%")))
            if self.put_address(depth, "unsigned *p%d = %s;" % (self.count, text), here):
                self.scopes[-1].append(("p%d" % self.count, "pointer"))

    def put_address(self, depth, text, scope):
        addresses = [self.address(scope) for _ in range(text.replace("%%", "").count("%s"))]
        if None in addresses:
            return False
        self.put(depth, text % tuple(addresses))
        return True

    def meet(self, depth):
        """Something that all threads that are left do at once."""
        names = self.visible(("thread",))
        text = self.one_of(
            (
                "sum_around<%d>(%s, a, t, threads)" % (self.numbers.randrange(1, 4), self.value(2)),
                "rill_shuffle_xor(%s, %d)" % (self.value(2), 1 << self.numbers.randrange(5)),
                "rill_shuffle_down(%s, %d)" % (self.value(2), self.numbers.randrange(1, 32)),
                "rill_shuffle_up(%s, %d)" % (self.value(2), self.numbers.randrange(1, 32)),
                "rill_shuffle(%s, %s & 31)" % (self.value(2), self.value(1)),
                "rill_shuffle_%s(%s, %d, %d)"
                % (self.one_of(("up", "down", "xor")), self.value(2), self.numbers.randrange(33), 1 << self.numbers.randrange(6)),
                "static_cast<unsigned>(rill_%s_%s((%s & 1023) * 0.1f) * 1e3f)"
                % (self.one_of(("warp", "block")), self.one_of(("sum", "min", "max")), self.value(2)),
                "static_cast<unsigned>(rill_%s_%s((%s) * -0x12345ll) >> 16)"
                % (self.one_of(("warp", "block")), self.one_of(("sum", "min", "max")), self.value(2)),
                "rill_shuffle_xor(%s * 0x123456789ull, %d) >> 16" % (self.value(2), 1 << self.numbers.randrange(6)),
                "sum_%s(%s)" % (self.one_of(("down", "up", "xor")), self.value(2)),
                "__syncthreads_count(%s)" % self.condition(1),
                "static_cast<unsigned>(rill_ballot(%s))" % self.condition(1),
            )
        )
        if "sum_around" in text:
            self.readable = False
            self.put(depth, "__syncthreads();")
        self.put(depth, "%s ^= %s;" % (self.one_of(["out"] + names), text))
        if "sum_around" in text:
            self.shared = 0
            self.settle(depth)

    def declare(self, depth, uniform):
        name = self.new_name()
        choice = self.numbers.randrange(8)
        if choice == 0:
            texts = [self.value(1) for _ in range(2)]
            kind, text = "array", "unsigned %s[4] = { %s };" % (name, ", ".join(texts))
        elif choice == 1:
            kind, text = "thread", "unsigned %s(%s);" % (name, self.value())
        elif choice == 2:
            kind, text = "const", "const unsigned %s = %s;" % (name, self.value())
        elif choice in (3, 4) and uniform:
            kind, text = "uniform", "unsigned %s = %s;" % (name, self.uniform())
        elif choice == 5:
            second = "w%d" % self.count
            kind, text = "thread", "unsigned %s = %s, %s = %s;" % (name, self.value(1), second, self.value(1))
            if not any(known == second for known, _ in self.scopes[-1]):
                if name not in text.split(name, 1)[1]:
                    self.put(depth, text)
                    self.scopes[-1] += [(name, "thread"), (second, "thread")]
                    return
            text = "unsigned %s = %s;" % (name, self.value(1))
        else:
            kind, text = "thread", "unsigned %s = %s;" % (name, self.value())
        if name in text.split(name, 1)[1]:
            text, kind = "unsigned %s = i;" % name, "thread"  # not of itself
        self.put(depth, text)
        self.scopes[-1].append((name, kind))

    def assign(self, depth):
        names, arrays = self.visible(("thread",)), self.visible(("array",))
        choice = self.numbers.randrange(6)
        if choice == 0 and arrays:
            self.put(depth, "%s[(%s) & 3] %s= %s;" % (self.one_of(arrays), self.value(1), self.one_of("+-^"), self.value()))
        elif choice == 1 and names:
            self.put(depth, "%s%s;" % (self.one_of(names), self.one_of(("++", "--"))))
        elif choice == 2:
            self.put(depth, "out ^= %s;" % self.value())
        elif choice == 3 and names:
            self.put(depth, "bump(&%s, %s);" % (self.one_of(names), self.value(1)))
        elif names:
            operator = self.one_of(("=", "+=", "-=", "^=", "*="))
            self.put(depth, "%s %s %s;" % (self.one_of(names), operator, self.value()))

    def uniform_assign(self, depth):
        names = self.visible(("uniform",))
        if names:
            self.put(depth, "%s %s %s;" % (self.one_of(names), self.one_of(("=", "+=", "^=")), self.uniform()))

    def private(self, depth, level):
        """A statement without barriers."""
        choice = self.numbers.randrange(8)
        if level == 0 or choice < 4:
            self.assign(depth)
        elif choice < 6:
            self.put(depth, "if (%s) {" % self.condition())
            self.private_block(depth + 1, level - 1)
            if self.chance(40):
                self.put(depth, "} else {")
                self.private_block(depth + 1, level - 1)
            self.put(depth, "}")
        elif choice == 6:
            self.count += 1
            name = "k%d" % self.count
            self.put(depth, "for (unsigned %s = 0; %s < (%s & 3); %s++) {" % (name, name, self.value(1), name))
            self.scopes.append([(name, "const")])
            self.private_block(depth + 1, level - 1)
            if self.chance(30):
                self.put(depth + 1, "if (%s) %s;" % (self.condition(1), self.one_of(("break", "continue"))))
            self.scopes.pop()
            self.put(depth, "}")
        else:
            self.put(depth, "switch (%s & 3) {" % self.value(1))
            for label in ("case 0:", "case 2:", "default:"):
                self.put(depth, label + " ;")
                self.assign(depth + 1)
                if self.chance(60):
                    self.put(depth + 1, "break;")
            self.put(depth, "}")

    def private_block(self, depth, level):
        self.scopes.append([])
        for _ in range(self.numbers.randrange(1, 4)):
            if self.chance(20):
                self.declare(depth, False)
            else:
                self.private(depth, level)
        self.scopes.pop()

    def together(self, depth, level, agree, agreed_loops):
        """A statement that all threads that are left execute.  `agree`: and it could be seen."""
        choice = self.numbers.randrange(24)
        if choice < 3:
            self.declare(depth, agree)
        elif choice in (20, 21):
            self.point(depth)
        elif choice == 22:
            self.meet(depth)
        elif choice < 7:
            self.private(depth, 2)
        elif choice < 10:
            self.barrier(depth)
        elif choice == 10 and agree:
            self.uniform_assign(depth)
        elif choice == 11 and level > 0:
            self.block(depth, level, agree, True)
        elif choice == 12 and level > 0:
            self.block(depth, level, agree, False)
        elif choice < 15 and level > 0:
            self.loop(depth, level, agree)
        elif choice == 15 and self.loops:
            jump = self.one_of(("break", "break", "continue"))
            self.put(depth, "if (%s) %s;" % (self.agreed(), jump))
        elif choice == 16 and self.chance(50):
            condition = self.condition() if self.chance(40) else "!(%s)" % self.below()
            if self.chance(20):
                condition = "!(%s && %s)" % (self.below(), self.below())
            self.put(depth, "if (%s) { y[i] = out; return; }" % condition)
        elif choice == 17 and self.chance(20):
            self.put(depth, "if (%s) { y[i] = out + 1; return; }" % self.agreed())
        elif choice == 18 and self.chance(30):
            self.put(depth, "if (t == threads + 5) return;")
        else:
            self.assign(depth)

    def settle(self, depth):
        """At a point that is reached in several ways, shared memory is in a known state."""
        self.readable = False
        self.put(depth, "__syncthreads();")
        self.put(depth, "a[t] = b[t] = %s;" % self.value(1))
        self.put(depth, "__syncthreads();")
        self.shared, self.readable = 0, True

    def block(self, depth, level, agree, conditional):
        self.settle(depth)
        self.put(depth, "if (%s) {" % self.agreed() if conditional else "{")
        both = conditional and self.chance(50)
        self.statements(depth + 1, level - 1, agree, both)
        if both:
            self.put(depth, "} else {")
            self.shared, self.readable = 0, True
            self.statements(depth + 1, level - 1, agree)
        self.put(depth, "}")
        self.settle(depth)

    def loop(self, depth, level, agree):
        self.count += 1
        name = "k%d" % self.count
        rounds = self.numbers.randrange(1, 4)
        choice = self.numbers.randrange(5)
        kind = "counter" if agree else "const"
        self.settle(depth)
        ending = "}"
        if choice == 0:
            header = "for (unsigned %s = 0; %s < %d; %s++) {" % (name, name, rounds, name)
        elif choice == 1:
            header = "for (unsigned %s = %d; %s > 0; %s >>= 1) {" % (name, 1 << rounds, name, name)
        elif choice == 2:  # nobody can see that all go around as many times
            self.put(depth, "unsigned %s = x[0] > 1000.0f ? 9 : 0;" % name)
            header, kind = "while (%s++ < %d) {" % (name, rounds), "const"
        elif choice == 3:
            self.put(depth, "unsigned %s = 0;" % name)
            header, ending = "do {", "} while (++%s < %d);" % (name, rounds)
            kind = "const"
        else:
            header = "for (unsigned %s = 0; %s < (b[0] & 3); %s += 1) {" % (name, name, name)
            self.put(depth, "__syncthreads();")
            self.put(depth, "b[t] = %d;" % rounds)
            self.put(depth, "__syncthreads();")
            # The loop leaves b alone: it ends when it started.
            self.put(depth, header)
            self.put(depth + 1, "out += a[(t + %s) %% threads];" % name)
            self.put(depth + 1, "__syncthreads();")
            self.put(depth + 1, "a[t] ^= out;")
            self.put(depth + 1, "__syncthreads();")
            self.put(depth, "}")
            self.settle(depth)
            return
        self.put(depth, header)
        self.scopes.append([(name, kind)])
        self.loops.append(True)
        self.settle(depth + 1)
        self.statements(depth + 1, level - 1, agree and choice < 2)
        self.loops.pop()
        self.scopes.pop()
        self.put(depth, ending)
        self.settle(depth)

    def statements(self, depth, level, agree, settled=False):
        self.scopes.append([])
        for _ in range(self.numbers.randrange(2, 6)):
            self.together(depth, level, agree, True)
        if settled:
            self.settle(depth)
        self.scopes.pop()

    def kernel(self):
        self.put(0, "RILL_KERNEL(%s, unsigned n, unsigned count, const float *x, unsigned *y) {" % self.name)
        self.put(1, "RILL_DYNAMIC_SHARED(unsigned, a);")
        self.put(1, "const unsigned threads = blockDim.x * blockDim.y * blockDim.z, bx = blockIdx.x;")
        self.put(1, "unsigned *const b = a + threads;")
        self.put(1, "const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;")
        self.put(1, "const unsigned i = blockIdx.x * threads + t;")
        self.put(1, "unsigned out = i;")
        self.scopes = [[]]
        self.settle(1)
        inside = self.chance(20)
        if inside:
            self.put(1, "if (%s) {" % self.below())
            self.settle(1)
        for _ in range(self.numbers.randrange(4, 12)):
            self.together(1, 2, True, True)
        for name in self.visible(("thread", "const", "uniform")):
            self.put(1, "out = out * 31 + %s;" % name)
        self.put(1, "y[i] = out;")
        if inside:
            self.put(1, "}")
        self.put(0, "}")
        return "\n".join(self.lines) + "\n"


HEAD = """#include <rill/device/kernel.h>
static __device__ unsigned twice(unsigned v) { return 2 * v; }
static __device__ void bump(unsigned *v, unsigned by) { *v += by; }
#define SUM(NAME, SHUFFLE)                                              \\
  static __device__ unsigned NAME(unsigned v) {                         \\
    float sum = static_cast<float>(v & 255);                            \\
    for (unsigned k = 16; k > 0; k /= 2) sum = SHUFFLE(sum, k) - 3 * sum; \\
    return static_cast<unsigned>(static_cast<long long>(sum));          \\
  }
SUM(sum_down, rill_shuffle_down)
SUM(sum_up, rill_shuffle_up)
SUM(sum_xor, rill_shuffle_xor)
template <int ROUNDS>
static __device__ unsigned sum_around(unsigned v, unsigned *a, unsigned t, unsigned threads) {
  unsigned seen[2] = { v, 1 }, *now = &seen[0], *next = &seen[1];
  __syncthreads(); /* v may be of others' elements */
  for (int k = 0; k < ROUNDS; k++) {
    a[t] = *now;
    __syncthreads();
    *next = *now + a[(t + k + 1) % threads];
    __syncthreads();
    unsigned *const last = now;
    now = next;
    next = last;
  }
  return *now;
}
"""


def source(numbers, count):
    return HEAD + "\n".join(Generator(numbers, "random_%d" % k).kernel() for k in range(count))


VOLUME = "(blockDim.x * blockDim.y * blockDim.z) + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
GUARDS = (  # what stands before the functions of a warp, and after them; who is not in between does not meet others again
    ("", ""),
    ("if (i >= n) return;", ""),
    ("if (i < n) {", "}"),
    ("if (i < n) {", "} else {\n    if (i < count) y[i] = 9;\n  }"),
    ("if ((i & 7) != 3) {", "}\n  if (i < count) y[i] += 1;"),
    ("if ((i / 32 & 1) == 0) {", "}\n  if (i < count) y[i] += static_cast<float>(w);"),
    ("if (threadIdx.x >= 32) return;\n  if (i >= n) { y[i] = 5; return; }", ""),
    ("if ((i & 31) > (i / 32 & 31)) return;", ""),
    ("for (; i < n; i += gridDim.x * %s) {" % VOLUME.split(" + ")[0], "}"),
    ("for (int k = 0; i < n; i += gridDim.x * %s, k++) {\n  if (k == 1) continue;\n" % VOLUME.split(" + ")[0], "}"),
    ("while (true) {\n  if (i >= n) break;", "i += 2 * gridDim.x * %s;\n  }" % VOLUME.split(" + ")[0]),
)
SHUFFLES = ("up(%s, %d)", "down(%s, %d)", "xor(%s, %d)", "up(%s, %d, 8)", "down(%s, %d, 16)", "(%s, %d)", "(%s, %d, 4)")


def warp_statement(numbers, kind, in_loop):
    """Something that the lanes of a warp do together, or by themselves."""
    how, by = numbers.choice(SHUFFLES), numbers.randrange(32)
    what = numbers.choice(("v", "w", "static_cast<%s>(v + w)" % kind))
    target = numbers.choice("vw")
    shuffle = "  %s += rill_shuffle_%s;\n" % (target, how % (what, 1 << by % 5 if "xor" in how else by))
    shuffle = shuffle.replace("shuffle_(", "shuffle(")
    others = (
        "  %s += static_cast<%s>(rill_ballot(v > w) & 1023);\n" % (target, kind),
        "  %s += static_cast<%s>(rill_vote_any(v == 3) + 2 * rill_vote_all(w < 9));\n" % (target, kind),
        "  %s -= static_cast<%s>(rill_warp_sum(static_cast<float>(i & 63)));\n" % (target, kind),
        "  %s -= static_cast<%s>(rill_warp_max(static_cast<int>(i & 77)));\n" % (target, kind),
        "  rill_warp_sync();\n",
        "  %s += rill_shuffle_xor(%s, %d);\n" % (target, what, by),
        "  %s += rill_shuffle_down(%s, n & 7);\n" % (target, what),
        "  %s += rill_shuffle(%s, i & 15);\n" % (target, what),
        "  __syncthreads();\n  v += rill_shuffle_up(v, 2);\n" if not in_loop else shuffle,
        "  for (unsigned k = 16; k > 0; k /= 2) v = static_cast<%s>(v + rill_shuffle_down(v, k));\n" % kind,
    )
    own = ("", "", "  if (threadIdx.x % 32 == 7 && i < count) y[i] = static_cast<float>(w);\n",
           "  if (i < count) w += static_cast<%s>(x[i] + 4.0f);\n" % kind, "  for (int k = 0; k < (i & 3); k++) v = v * 3 - w;\n")
    return (numbers.choice(others) if numbers.randrange(4) == 0 else shuffle) + numbers.choice(own)


def warps(numbers, count):
    """Kernels of functions of a warp that follow one another, of which all threads, some or none come to."""
    text = "#include <rill/device/kernel.h>\n"
    for k in range(count):
        kind = numbers.choice(("float", "double", "unsigned", "unsigned long long", "short"))
        index = numbers.choice(("int", "int", "unsigned", "long long"))
        before, after = numbers.choice(GUARDS)
        loop = before.startswith(("for", "while"))
        text += "RILL_KERNEL(w%d, int size, int count, const float *x, float *y) {\n" % k
        text += "  const %s n = size;\n  %s i = static_cast<%s>(blockIdx.x) * %s;\n" % (index, index, index, VOLUME)
        text += "  %s v = static_cast<%s>(i < n ? x[i] + 4.0f : 3), w = 1;\n  %s\n" % (kind, kind, before)
        if loop and numbers.randrange(2):
            text += "  v = static_cast<%s>(x[i] + 4.0f);\n" % kind
        for _ in range(numbers.randrange(1, 8)):
            text += warp_statement(numbers, kind, loop or "{" in before)
        end = numbers.choice(("if (i < count)", "if (threadIdx.x % 32 == 0 && i < count)", "if ((i & 31) == 3 && i < count)"))
        text += "  %s y[i] = static_cast<float>(v) - static_cast<float>(w);\n  %s\n}\n" % (end, after)
    return text
