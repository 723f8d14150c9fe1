"""Statements of random kernels with loops that all threads go around alike, in which a thread reads a row, elements at a
distance, elements that other elements name, or elements around its own that lie between two limits."""

from oracle_kernels import FLOATS, Block, Expressions

NUMBERS = ("in[{k} * 8 + t]", "in[t * 3 + {k}]", "in[(t * 2 + {k} * {0}) & 1023]", "in[1000 - t - {k}]", "in[(i * 5 + {k}) & 1023]",
           "reinterpret_cast<const unsigned char *>(in)[t * {0} + {k}]", "in[{k}]", "t", "steps[{k} & 7]", "in[in[{k} + t] & 1023]")  # fmt: skip
UPDATES = (
    "{s} = in[({s} ^ {x}) & 1023] ^ {s} >> 8;", "{s} = in[{s} & 1023] + {x};", "{s} = ({s} ^ {x}) * 16777619u;", "{s} = {s} * 31 + {x};",
    "{s} += in[{x} & 1023];", "{s} ^= {x};", "{s} = max({s}, in[({x} >> 3) & 1023]);", "{s} = ({s} << 5) - {s} + in[(h + {x}) & 1023];",
    "{s} = reinterpret_cast<const unsigned char *>(in)[({s} & 7) * 256 + ({x} & 255)];", "{s} = steps[({s} + {x}) & 7];",
)  # fmt: skip
SUMS = ("{s} = {s} / 2 + static_cast<{t}>(x[{x} & 255]);", "{s} += static_cast<{t}>({x} & 0xff) * x[{y} & 255];", "{s} = {s} > 3 ? {s} - x[{x} & 127] : {s} + ({y} & 7);")

OWN = ("t", "threadIdx.x", "i", "(blockIdx.x * threads + threadIdx.x)", "t * 2", "(t & 31)")
OFFSETS = ("(a & 15)", "(b & 63) / 2", "(n & 7)", "{0}", "p.u % 20")
LIMITS = ("(n % 300)", "(a & 511)", "{0} * 9", "(threads + (b & 3))", "(i | 700)")
GUARDED = (
    "if (({c} < 0 || {c} >= {limit})) continue; {s} = {s} * 3 + {x};", "if ({c} >= 0 && {c} < {limit}) {s} += {x};",
    "{s} += {c} >= {low} && {c} < {limit} ? {x} : {k};", "if (({c} < {low}) | ({c} > {limit})) {s} = {s} * 5; else {s} ^= {x};",
    "if (!({c} < {low})) {{ {s} += {k}; if ({limit} > {c}) {s} += {x}; }}", "{s} = ({s} ^ in[max({low}, min({c}, {limit})) & 1023]) * 9;",
)  # fmt: skip


class Gathers(Expressions):
    def number(self, k):
        return self.one_of(NUMBERS).format(1 + self.below(9), k=k)

    def gathered(self):
        k, type_ = self.new("k"), self.one_of(("unsigned", "unsigned", "unsigned", *FLOATS))
        times = self.one_of(("%d" % (2 + self.below(30)), "(a & 7)", "(b & 31) + 1", "gridDim.x + 1"))
        names = [self.new("s") for _ in range(1 + self.chance(30))]
        updates = UPDATES if type_ == "unsigned" else SUMS
        texts = [self.one_of(updates).format(s=s, t=type_, x=self.number(k), y=self.number(k)) for s in names]
        if self.chance(15):
            texts[0] = "if (%s) %s" % (self.one_of(("in[%s + t] & 1" % k, "(b & 1) != 0", "t != 3", "%s & 1" % k)), texts[0])
        head = self.one_of(("unsigned {0} = 0; {0} < {1}; {0}++", "int {0} = 0; {0} < static_cast<int>({1}); {0}++", "unsigned {0} = {1}; {0}-- > 0;"))
        loop = Block([["for (%s) {" % head.format(k, times), texts]])
        start = self.one_of(("0", "t", "7"))
        result = "%s" if type_ == "unsigned" else "bits(%s)"
        return [*["%s %s = %s;" % (type_, s, start) for s in names], loop, *["h = h * 31 + %s;" % (result % s) for s in names]]

    def guarded(self):
        """Returns a loop in which a thread looks at elements around its own if they are inside of limits."""
        k, s, c, low, limit = [self.new(letter) for letter in "kscwm"]
        number = 1 + self.below(50)
        type_ = self.one_of(("int", "int", "unsigned", "long long"))
        own, offset, most = [self.one_of(texts).format(number) for texts in (OWN, OFFSETS, LIMITS)]
        cast = "static_cast<%s>(%%s)" % type_
        element = self.one_of(("{0} + {1} - {2}", "{0} - {2} + {1}", "{0} + ({1} - {2})", "{0} - {1} + {2}", "{0} - ({2} + {1})"))
        texts = ["const %s %s = %s;" % (type_, c, element.format(cast % own, cast % k, cast % offset))]
        values = dict(c=c, s=s, k=k, low=low, limit=limit, x=self.one_of(("in[%s & 1023]" % c, "in[(%s & 511) + %s]" % (c, k), "static_cast<unsigned>(%s)" % c)))
        texts += [self.one_of(GUARDED).format(**values)]
        head = self.one_of(("unsigned {0} = 0; {0} < {1}; {0}++", "unsigned {0} = {1}; {0}-- > 0;"))
        loop = Block([["for (%s) {" % head.format(k, self.one_of(("(a & 15)", "%d" % self.below(20), "(b & 7) + 1"))), texts]])
        limits = ["const %s %s = %s, %s = %s;" % (type_, low, cast % self.one_of(("0", "3", "(a & 31)")), limit, cast % most)]
        return ["unsigned %s = 1;" % s, *limits, loop, "h = h * 31 + %s;" % s]
