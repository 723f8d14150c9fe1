"""Random kernels in CUDA's names, whose results are the same in whatever order their threads run.

Shared memory has two phases, separated by barriers: in the one each thread uses its own elements only, in the other
nobody writes. Atomic functions only accumulate. Signed numbers do not overflow, no index is outside its array, no
divisor is 0, and no NaN is looked at as bits, so that the result is defined to the last bit.

A kernel is a tree of statements, from which oracle_shrink.py takes parts.
"""

# What a value is made of: the divisors that are members of `pack` are neither 0 nor -1, and small (oracle_inputs.py).
# Without rillcc's passes clang saturates conversions to 8 and 16 bits there, and not on the way by 32 bits.
HEAD = """#ifndef TO
#if RILL_REGIONS
#define TO(TYPE, X) static_cast<TYPE>(X)
#else
template <bool Signed> struct by_way_of { typedef int type; };
template <> struct by_way_of<false> { typedef unsigned type; };
template <class T, class F> static __device__ T to(F x) {
  if (sizeof(T) >= 4) return static_cast<T>(x);
  return static_cast<T>(static_cast<typename by_way_of<(T(-1) < T(0))>::type>(x));
}
#define TO(TYPE, X) to<TYPE>(X)
#endif
#endif
struct pack {
  unsigned u; int i; unsigned short g; short h; unsigned char k; signed char j; unsigned long long q; long long r;
  unsigned low : 5, middle : 9; int high : 7; float f; double d;
};
struct pair { unsigned a, b; };
union word { unsigned u; int i; float f; unsigned short h[2]; unsigned char c[4]; };
static __device__ unsigned bits(float v) { return v != v ? 0x7fffffffu : __float_as_uint(v); }
static __device__ unsigned bits(double v) {
  const unsigned long long b = v != v ? 0x7fffffffffffffffull : static_cast<unsigned long long>(__double_as_longlong(v));
  return static_cast<unsigned>(b ^ b >> 32);
}
static __device__ unsigned fold(unsigned long long v) { return static_cast<unsigned>(v ^ v >> 32); }
static __device__ unsigned twice(unsigned v) { return 2 * v; }
static __device__ void bump(unsigned *v, unsigned by) { *v += by; }
static __device__ pair swapped(pair p) { return { p.b, p.a + 1 }; }
static __device__ unsigned plus(unsigned v, unsigned w) { return v + w; }
static __device__ unsigned minus(unsigned v, unsigned w) { return v - w; }
static __device__ unsigned product(unsigned v, unsigned w) { return v * w; }
static __device__ void add_by_cas(unsigned *p, unsigned v) {
  unsigned seen, old = *p;
  do {
    seen = old;
    old = atomicCAS(p, seen, seen + v);
  } while (old != seen);
}
static __device__ __noinline__ unsigned neighbour(unsigned *tile, unsigned t, unsigned threads, unsigned v) {
  tile[t] = v;
  __syncthreads();
  v = tile[(t + 1) % threads];
  __syncthreads();
  return v;
}
static __device__ unsigned opposite(unsigned *tile, unsigned t, unsigned threads, unsigned v) {
  return neighbour(tile, t, threads, v) ^ tile[t] << 1;
}
static __constant__ unsigned steps[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
"""
PARAMETERS = (
    "unsigned n, unsigned a, unsigned b, int c, float f, pack p, const pack *packs, const unsigned *in, const float *x, "
    "unsigned *out, unsigned *sums"
)
BITS = {
    "unsigned char": 8, "signed char": 8, "unsigned short": 16, "short": 16, "unsigned": 32, "int": 32,
    "unsigned long long": 64, "long long": 64,
}  # fmt: skip
INTEGERS = tuple(BITS)
SIGNED = ("signed char", "short", "int", "long long")
MEMBER = dict(zip(INTEGERS, "kjghuiqr"))
FLOATS = ("float", "double")
ACCUMULATORS = ("atomicAdd", "atomicXor", "atomicMax", "atomicOr")
MOST_THREADS = 256
# What kernels may be made without: conversions of numbers that are out of range, functions of some lanes of a warp, such
# functions in both branches, __reduce and __match, distances of __shfl_xor_sync that differ between lanes.
FEATURES = ("casts", "masks", "branched-masks", "reduce", "varying-xor")


class Block:
    """A compound statement: [head, statements] of each part, such as `if (...) {` and `} else {`, and the end."""

    def __init__(self, parts, end="}"):
        self.parts, self.end = parts, end


def render(nodes, depth=1):
    lines = []
    for node in nodes:
        if isinstance(node, str):
            lines.append("  " * depth + node)
            continue
        for head, body in node.parts:
            lines.append("  " * depth + head)
            lines += render(body, depth + 1)
        lines.append("  " * depth + node.end)
    return lines


class Kernel:
    """One kernel: its name, tree of statements, and in how many dimensions its blocks may have threads."""

    def __init__(self, name, nodes, dimensions):
        self.name, self.nodes, self.dimensions = name, nodes, dimensions

    def text(self):
        return "\n".join(["__global__ void %s(%s) {" % (self.name, PARAMETERS), *render(self.nodes), "}"]) + "\n"


def source(kernels):
    return HEAD + "\n".join(kernel.text() for kernel in kernels)


class Variable:
    def __init__(self, name, type_, uniform=False, constant=False):
        self.name, self.type, self.uniform, self.constant = name, type_, uniform, constant


class Expressions:
    """Typed expressions. `uniform` asks for one that has the same value in all threads of a block."""

    def __init__(self, numbers, without=()):
        self.numbers, self.without = numbers, without
        self.scopes = [[]]
        self.count = 0
        self.readable = False  # whether `tile` may be read and not written

    def one_of(self, things):
        return things[self.numbers.randrange(len(things))]

    def one_of_weighted(self, *things):
        """One of (weight, thing)."""
        left = self.below(sum(weight for weight, _ in things))
        for weight, thing in things:
            left -= weight
            if left < 0:
                return thing

    def chance(self, percent):
        return self.numbers.randrange(100) < percent

    def below(self, limit):
        return self.numbers.randrange(limit)

    def new(self, letter):
        self.count += 1
        return "%s%d" % (letter, self.count)

    def variables(self, types, uniform=False, constant=True):
        return [
            v for scope in self.scopes for v in scope
            if v.type in types and (v.uniform or not uniform) and (constant or not v.constant)
        ]  # fmt: skip

    # Integers

    def leaf(self, uniform):
        """Returns an unsigned."""
        choices = ["a", "b", "n", "p.u", "blockIdx.x", "blockIdx.y", "threads", "%du" % self.below(100)]
        choices += ["static_cast<unsigned>(p.%s)" % name for name in ("low", "middle", "high")]
        choices += ["shared_pack.u", "packs[blockIdx.x].u", "uni[%d]" % self.below(8), "steps[%d]" % self.below(8)]
        if uniform:
            return self.one_of(choices)
        return self.one_of(choices + 5 * ["t", "h", "lane"] + 3 * ["i", "threadIdx.x", "in[i & 1023]", "tile[t]"])

    def unsigned(self, depth=2, uniform=False):
        known = self.variables(("unsigned",), uniform)
        choice = self.below(19)
        if depth == 0 or choice < 6:
            return self.one_of(known).name if known and self.chance(60) else self.leaf(uniform)
        one, two = (self.unsigned(depth - 1, uniform) for _ in range(2))
        if choice < 10:
            return "(%s %s %s)" % (one, self.one_of("+-*^&|"), two)
        if choice == 10:
            return "(%s %s %d)" % (one, self.one_of(("<<", ">>")), self.below(32))
        if choice == 11:
            return self.divided("unsigned", depth, uniform)
        if choice == 12:
            return "(%s ? %s : %s)" % (self.condition(depth - 1, uniform), one, two)
        if choice == 13:
            return "%s(%s, %s)" % (self.one_of(("min", "max", "plus")), one, two)
        if choice == 14:
            type_ = self.one_of(INTEGERS)
            value = self.integer(type_, depth - 1, uniform)
            return "fold(%s)" % value if BITS[type_] == 64 else "static_cast<unsigned>(%s)" % value
        if choice == 15:
            return self.one_of(("twice(%s)", "__brev(%s)", "static_cast<unsigned>(__popc(%s))")) % one
        if choice == 16:
            return self.converted(depth, uniform)
        if choice == 17 and not uniform:
            return self.load(depth)
        if choice == 18:
            return "steps[%s & 7]" % one
        return one

    def load(self, depth):
        index = self.unsigned(depth - 1)
        if self.readable and self.chance(60):
            at = self.one_of(("(t + %d) %% threads" % (1 + self.below(40)), "threads - 1 - t", "(%s) %% threads" % index))
            return "tile[%s]" % at
        return "in[(%s) & 1023]" % index

    def integer(self, type_, depth=2, uniform=False):
        if type_ == "unsigned":
            return self.unsigned(depth, uniform)
        known = self.variables((type_,), uniform)
        choice = self.below(8)
        if choice < 2 and known:
            return self.one_of(known).name
        if choice == 2:
            return self.one_of(("p.%s", "shared_pack.%s", "packs[blockIdx.x].%s")) % MEMBER[type_]
        if depth > 0 and choice == 3:
            return "static_cast<%s>(%s)" % (type_, self.divided(type_, depth, uniform))
        if depth > 0 and choice == 4:
            one, two = (self.integer(type_, depth - 1, uniform) for _ in range(2))
            return "static_cast<%s>(%s < %s ? %s : %s)" % (type_, one, two, two, one)
        if depth > 0 and choice == 5:
            return "static_cast<%s>(%s >> %d)" % (type_, self.integer(type_, depth - 1, uniform), self.below(BITS[type_]))
        if depth > 0 and BITS[type_] == 64:
            one = self.integer("unsigned long long", depth - 1, uniform)
            return "static_cast<%s>(%s %s %s)" % (type_, one, self.one_of("+-*^"), self.unsigned(depth - 1, uniform))
        return "static_cast<%s>(%s)" % (type_, self.unsigned(max(depth - 1, 0), uniform))

    def divisor(self, type_, uniform):
        """Returns a number of a type that is neither 0 nor -1, and that no compiler can know not to be."""
        places = ["p.%s", "p.%s", "shared_pack.%s", "packs[blockIdx.x].%s"]
        if not uniform:
            places += ["packs[t & 3].%s"]
        text = self.one_of(places) % MEMBER[type_]
        others = {"unsigned": ["a", "b", "blockDim.x", "gridDim.x", "(blockIdx.x + 3)"], "int": ["c"]}.get(type_)
        if others and self.chance(50):
            text = self.one_of(others)
        return text

    def divided(self, type_, depth, uniform):
        """Returns a quotient or remainder, computed in `type_` or in the int that it is promoted to."""
        first = self.integer(type_, depth - 1, uniform)
        return "(%s %s %s)" % (first, self.one_of("/%"), self.divisor(type_, uniform or self.chance(70)))

    def wrapped(self):
        """Returns an index below 1024 made of a quotient or remainder of uniform numbers and of the thread's own."""
        type_ = self.one_of(INTEGERS)
        member = self.one_of(("p.%s", "shared_pack.%s", "packs[blockIdx.x].%s")) % MEMBER[type_]
        where = self.one_of((member, "static_cast<%s>(b)" % type_))
        first = "static_cast<%s>(%s)" % (type_, self.one_of(("a", "b", "n", "uni[3]")))
        if type_ == "int":
            first = self.one_of((first, "c"))
        offset = " + 128" if type_ in SIGNED else ""
        index = "%s %% %s%s" % (first, where, offset)
        if self.chance(30):
            index = "(%s / %s & 255)" % (first, where)
        if self.chance(30):
            return "in[%s] + t" % index
        return "in[%s + t]" % index

    def condition(self, depth=1, uniform=False):
        compare = self.one_of(("<", ">", "==", "!=", "<=", ">="))
        choice = self.below(8)
        if uniform:
            if choice < 2:
                return "(%s & 3) %s %d" % (self.unsigned(depth, True), self.one_of(("==", "!=")), self.below(4))
            return "%s %s %s" % (self.unsigned(depth, True), compare, self.unsigned(depth, True))
        if choice < 3:  # false for lane 0
            return self.one_of(("lane >= %d", "lane > %d", "(lane & 7) > %d", "t > %d")) % (1 + self.below(6))
        if choice == 3:
            return self.one_of(("i < n", "lane %s 0" % self.one_of(("==", "!=")), "lane == %d" % self.below(32), "t < b"))
        if choice == 4:
            type_ = self.one_of(INTEGERS)
            return "%s %s %s" % (self.integer(type_, depth), compare, self.integer(type_, depth))
        if choice == 5:
            type_ = self.one_of(FLOATS)
            return "%s %s %s" % (self.floating(type_, depth), compare, self.floating(type_, depth))
        if choice == 6:
            one, two = self.condition(0), self.condition(0)
            return "(%s) %s (%s)" % (one, self.one_of(("&&", "||")), two)
        return "(%s & 7) %s %d" % (self.unsigned(depth), compare, self.below(8))

    # Floating point

    def floating(self, type_, depth=2, uniform=False):
        known = self.variables((type_,), uniform)
        suffix = "f" if type_ == "float" else ""
        choice = self.below(11)
        if known and choice < 3:
            return self.one_of(known).name
        if depth == 0 or choice < 5:
            leaves = ["0.1%s" % suffix, "-3.5%s" % suffix, "1e-39%s" % suffix, "static_cast<%s>(f)" % type_]
            leaves += ["p.f" if suffix else "p.d", "static_cast<%s>(%s & 1023)" % (type_, self.unsigned(0, uniform))]
            if not uniform:
                leaves += 2 * ["static_cast<%s>(x[%s & 255])" % (type_, self.one_of(("i", "t", "h")))]
            return self.one_of(leaves)
        one, two = (self.floating(type_, depth - 1, uniform) for _ in range(2))
        if choice < 8:
            return "(%s %s %s)" % (one, self.one_of("+-*/"), two)
        if choice == 8:
            return "%s%s(%s)" % (self.one_of(("floor", "fabs", "trunc", "ceil")), suffix, one)
        if choice == 9:
            return "sqrt%s(fabs%s(%s))" % (suffix, suffix, one)
        return "(%s ? %s : %s)" % (self.condition(0, uniform), one, two)

    def converted(self, depth, uniform):
        """Returns an unsigned made of a floating number."""
        type_ = self.one_of(FLOATS)
        value = self.floating(type_, depth - 1, uniform)
        if "casts" in self.without or self.chance(50):
            return "bits(%s)" % value
        to = self.one_of(INTEGERS)
        return ("fold(TO(%s, %s))" if BITS[to] == 64 else "static_cast<unsigned>(TO(%s, %s))") % (to, value)
