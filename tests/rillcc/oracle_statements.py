"""The statements of random kernels that a thread executes by itself."""

from oracle_gathers import Gathers
from oracle_kernels import ACCUMULATORS, FLOATS, INTEGERS, Block, Variable


class Statements(Gathers):
    """Makes lists of statements, strings and Blocks. `depth` says how many compound ones may be around each other."""

    def __init__(self, numbers, without):
        super().__init__(numbers, without)
        self.budget = self.one_of((4, 7, 10, 14))  # of statements, about

    def assignment(self):
        known = self.variables(INTEGERS + FLOATS, constant=False)
        known = [v for v in known if not v.uniform]
        if known and self.chance(50):
            v = self.one_of(known)
            if v.type in FLOATS:
                return "%s = %s;" % (v.name, self.floating(v.type))
            if self.chance(30) and v.type == "unsigned":
                return "bump(&%s, %s);" % (v.name, self.unsigned())
            return "%s = %s;" % (v.name, self.integer(v.type))
        return self.one_of(("h = h * 31 + %s;", "h ^= %s;", "h += %s;")) % self.unsigned()

    def declaration(self, uniform):
        type_ = self.one_of(INTEGERS + FLOATS + ("unsigned",) * 5)
        uniform = uniform and self.chance(60)
        constant = self.chance(30)
        make = self.floating if type_ in FLOATS else self.integer
        name = self.new("u" if uniform else "v")
        text = "%s%s %s = %s;" % ("const " if constant else "", type_, name, make(type_, 2, uniform))
        self.scopes[-1].append(Variable(name, type_, uniform, constant))
        return text

    def uniform_assignment(self):
        known = self.variables(INTEGERS, True, constant=False)
        if not known:
            return self.assignment()
        v = self.one_of(known)
        return "%s = %s;" % (v.name, self.integer(v.type, 2, True))

    def nested(self, make, *arguments):
        """Returns the statements of a scope of their own."""
        self.scopes.append([])
        nodes = make(*arguments)
        self.scopes.pop()
        return nodes

    def own_statements(self, depth):
        nodes = []
        for _ in range(1 + self.below(3)):
            if self.chance(15):
                nodes.append(self.declaration(False))
            else:
                nodes += self.own(depth)
        return nodes

    def own(self, depth):
        """Statements of a thread by itself."""
        self.budget -= 1
        if depth == 0 or self.budget < 0:
            return [self.assignment()]
        make = self.one_of_weighted(
            (4, lambda: [self.assignment()]),
            (4, lambda: self.own_branch(depth)),
            (2, self.guarded_division),
            (1, lambda: self.own_loop(depth)),
            (1, self.own_switch),
            (1, self.own_skip),
            (1, self.accumulation),
            (1, self.array),
            (1, self.pair),
            (1, self.word),
            (1, self.fields),
            (1, self.function),
            (1, self.operations),
            (1, self.rows),
            (2, self.gathered),
            (2, self.guarded),
            (1, self.ragged),
            (1, self.around),
            (2, self.own_row),
            (not self.readable, lambda: ["tile[t] = %s;" % self.unsigned()]),
        )
        return make()

    def own_branch(self, depth):
        parts = [["if (%s) {" % self.condition(), self.nested(self.own_statements, depth - 1)]]
        if self.chance(35):
            parts.append(["} else {", self.nested(self.own_statements, depth - 1)])
        return [Block(parts)]

    def own_loop(self, depth):
        k = self.new("k")
        body = self.nested(self.own_statements, depth - 1)
        if self.chance(30):
            body.append("if (%s) %s;" % (self.condition(), self.one_of(("break", "continue"))))
        return [Block([["for (unsigned %s = 0; %s < (%s & 3); %s++) {" % (k, k, self.unsigned(1), k), body]])]

    def own_switch(self):
        cases = []
        for label in ("case 0:", "case 2:", "default:"):
            cases += [label, self.assignment()] + (["break;"] if self.chance(60) else [])
        return [Block([["switch (%s & 3) {" % self.unsigned(1), cases]])]

    def own_skip(self):
        label = self.new("skip")
        return ["if (%s) goto %s;" % (self.condition(), label), self.assignment(), self.assignment(), label + ":;"]

    def accumulation(self):
        """Adds to a variable of the block or the grid; each variable has one operation, so the order does not matter."""
        k = self.below(len(ACCUMULATORS))
        how = "add_by_cas" if k == 0 and self.chance(50) else ACCUMULATORS[k]
        return ["%s(&%s[%d], %s);" % (how, self.one_of(("totals", "sums")), k, self.unsigned())]

    def array(self):
        """Returns a local array, and a pointer into it that depends on the thread."""
        array = self.new("array")
        body = [
            "unsigned %s[4] = { %s, %s, t, 7 };" % (array, self.unsigned(), self.unsigned()),
            "%s[%s & 3] += %s;" % (array, self.unsigned(1), self.unsigned(1)),
            "unsigned *p%s = %s ? &%s[1] : %s;" % (array, self.condition(), array, array),
            "*p%s ^= h;" % array,
            "h += %s[%s & 3] * 5 + %s[1];" % (array, self.unsigned(1), array),
        ]
        return [Block([["{", body]])]

    def pair(self):
        """Returns a struct that is passed and returned by value."""
        name = self.new("pair")
        return [
            "pair %s = { %s, h };" % (name, self.unsigned()),
            "if (%s) %s = swapped(%s);" % (self.condition(), name, name),
            "h = h * 3 + %s.a - %s.b;" % (name, name),
        ]

    def word(self):
        """Returns a union of which one member is written and another one read."""
        name = self.new("word")
        members = {"f": "1.5f", "i": "-7", "h[1]": "static_cast<unsigned short>(h)", "c[2]": "static_cast<unsigned char>(t)"}
        member = self.one_of(tuple(members))
        texts = ["word %s; %s.u = %s;" % (name, name, self.unsigned()), "%s.%s = %s;" % (name, member, members[member])]
        return texts + ["h ^= %s.u;" % name]

    def fields(self):
        """Bit-fields of a copy of a parameter."""
        name = self.new("fields")
        value = "static_cast<unsigned>(%s.%s)"
        return [
            "pack %s = p; %s.low = %s & 31;" % (name, name, self.unsigned()),
            "%s.high = static_cast<int>(t & 63) - 40;" % name,
            "h += %s * 3 + %s + %s;" % tuple(value % (name, field) for field in ("low", "high", "middle")),
        ]

    def function(self):
        name = self.new("f")
        text = "auto %s = [%s](unsigned v) { return v * 3 + %s; };" % (name, self.one_of("=&"), self.unsigned(1))
        return [text, "h ^= %s(%s) + %s(t);" % (name, self.unsigned(1), name)]

    def operations(self):
        """Returns a call through a pointer to a function."""
        name = self.new("operations")
        which = self.unsigned(1, self.chance(50))
        return [
            "unsigned (*%s[3])(unsigned, unsigned) = { plus, minus, product };" % name,
            "h = %s[%s %% 3](h, %s);" % (name, which, self.unsigned(1)),
        ]

    def rows(self):
        """Returns a loop that all threads go around as often, and in which neighbours read neighbouring elements, or the
        same one."""
        k, s, type_ = self.new("k"), self.new("s"), self.one_of(("unsigned", *FLOATS))
        times = self.one_of(("%d" % (2 + self.below(7)), "(a & 7)", "(b & 7) + 2", "gridDim.x + 1", "blockIdx.x"))
        width = self.one_of(("%d" % self.below(40), "(b & 31)", "1"))
        x, y = "in[%s * %s + threadIdx.x]" % (k, width), self.one_of(("in[%s]" % k, "in[%s * 3 + 1]" % k, "t"))
        if type_ == "unsigned":
            body = self.one_of(("%s = %s * 31 + %s * %s;", "%s = %s + (%s ^ %s);", "%s = %s > 9 ? %s : %s;")) % (s, s, x, y)
        else:
            number = "static_cast<%s>(%%s & 0xff)" % type_
            body = "%s = %s / 2 + %s * %s;" % (s, s, number % x, number % y)
        head = self.one_of(("unsigned %s = 0; %s < %s; %s++" % (k, k, times, k), "unsigned %s = %s; %s-- > 0;" % (k, times, k)))
        texts = [body] + (["if (%s == (c & 7)) break;" % k] if self.chance(20) else [])
        result = s if type_ == "unsigned" else "bits(%s)" % s
        return ["%s %s = %s;" % (type_, s, self.one_of(("0", "t"))), Block([["for (%s) {" % head, texts]]), "h = h * 31 + %s;" % result]

    def ragged(self, value="%s"):
        """Returns a loop that threads leave in different rounds, as they begin at their own index; `value` says what is
        taken of the sum."""
        k, s, type_ = self.new("k"), self.new("s"), self.one_of(("unsigned", *FLOATS))
        counter, signed = self.one_of((("unsigned", False), ("int", True), ("unsigned long long", False)))
        start = self.one_of(("t", "lane", "threadIdx.x", "i", "t * 2", "t + 3", "(i & 31)", "blockIdx.x * 5 + lane"))
        step = self.one_of(("threads", "blockDim.x", "32", "64", "blockDim.x * gridDim.x", "3", "(b & 63) + 1"))
        end = self.one_of(("%d" % self.below(700), "(a & 511)", "threads * 2 + (b & 7)", "200u - (c & 31)", "(a & 3) * 32"))
        if signed:
            step, end = "static_cast<int>(%s)" % step, "static_cast<int>(%s)" % end
        x = self.one_of(("in[%s]" % k, "in[%s + (b & 63)]" % k, "in[t / 32 * 3 + %s]" % k, "in[%s & 63]" % k))
        y = self.one_of(("in[%s + 9]" % k, "t", "in[5]", "in[%s * 2 & 1023]" % k, "static_cast<unsigned>(%s)" % k))
        if type_ == "unsigned":
            texts = [self.one_of(("%s = %s * 31 + %s * %s;", "%s = %s + (%s ^ %s);", "%s = %s > 9 ? %s : %s;")) % (s, s, x, y)]
        else:
            number = "static_cast<%s>(%%s & 0xff)" % type_
            texts = ["%s = %s / 2 + %s * %s;" % (s, s, number % x, number % y)]
        if self.chance(25):
            texts = [Block([["if (%s) {" % self.one_of(("in[%s] & 1" % k, "(b & 1) != 0", "t != 3")), texts]])]
        if self.chance(25):
            more = self.new("s")
            texts.append("%s ^= static_cast<unsigned>(%s) + %s;" % (more, k, x))
            s_more = [more]
        else:
            s_more = []
        tests = self.one_of(("%s < %s" % (k, end), "%s > %s" % (end, k), "%s <= %s" % (k, end), "!(%s >= %s)" % (k, end)))
        nodes = ["%s %s = %s;" % (type_, s, self.one_of(("0", "t")))] + ["unsigned %s = 1;" % name for name in s_more]
        first = "%s %s = static_cast<%s>(%s);" % (counter, k, counter, start)
        if self.chance(20) and start != "i":
            loop = ["{", [first, Block([["do {", texts]], "} while ((%s += %s) < %s);" % (k, step, end))]]
        else:
            loop = ["for (%s %s; %s += %s) {" % (first, tests, k, step), texts]
        result = s if type_ == "unsigned" else "bits(%s)" % s
        return [*nodes, Block([loop]), "h = h * 31 + %s;" % (value % result)] + ["h ^= %s;" % name for name in s_more]

    def around(self):
        """Returns a loop that threads leave in different rounds, around sums of the numbers of a row or a column."""
        c, k, s, v, type_ = self.new("c"), self.new("k"), self.new("s"), self.new("v"), self.one_of(FLOATS)
        counter = self.one_of(("unsigned", "int"))
        start, step = self.one_of(("t", "threadIdx.x", "lane", "t * 2 + 1")), self.one_of(("threads", "blockDim.x", "32", "(b & 63) + 1"))
        end, times = self.one_of(("%d" % self.below(300), "(a & 255)", "50", "(b & 127)")), self.one_of(("16", "(a & 31) + 9", "(b & 31)", "23"))
        x = self.one_of(("in[%s * 8 + %s]", "in[%s + %s * 2]", "in[%s * 5 + %s + (b & 63)]")) % (k, c)
        add = "%s = %s %s static_cast<%s>(%s & 0xff);" % (v, v, self.one_of(("+", "/ 2 -", "* in[%s] +" % k)), type_, x)
        inner = Block([["for (unsigned %s = 0; %s < %s; %s++) {" % (k, k, times, k), [add]]])
        texts = ["%s %s = static_cast<%s>(%s);" % (type_, v, type_, self.one_of(("0", c))), inner, "%s = %s / 2 + %s;" % (s, s, v)]
        if self.chance(25):
            texts[1] = Block([["if (%s) {" % self.one_of(("in[%s] & 1" % c, "(b & 1) != 0", "t != 3")), [inner]]])
        head = "for ({n} {c} = static_cast<{n}>({start}); {c} < static_cast<{n}>({end}); {c} += static_cast<{n}>({step})) {{"
        loop = [head.format(n=counter, c=c, start=start, end=end, step=step), texts]
        return ["%s %s = 0;" % (type_, s), Block([loop]), "h = h * 31 + bits(%s);" % s]

    def own_row(self):
        """Returns a sum over numbers that are neighbours of each other, and a row away from those of the next thread."""
        k, s, type_ = self.new("k"), self.new("s"), self.one_of(FLOATS)
        times = self.one_of(("%d" % (16 + self.below(40)), "(a & 31) + 10", "(b & 63)", "gridDim.x * 8 + 1", "blockIdx.x * 24"))
        row = self.one_of(("t", "t", "threadIdx.x", "(i & 127)", "(h & 127)", "lane")) + " * %d" % self.one_of((1, 2, 3))
        start, counter = self.one_of(("0", "(a & 7)", "3")), self.one_of(("unsigned", "int", "unsigned long long"))
        element = self.one_of(("unsigned", "unsigned", "float", "float", "unsigned short", "signed char", "double"))
        if element == "double":  # there are 512
            row = "(%s & 127)" % row
        x = "reinterpret_cast<const %s *>(in)[%s + static_cast<%s>(%s)]" % (element, row, counter, k)
        if self.chance(20):
            x = "x[(%s & 127) + static_cast<%s>(%s)]" % (row, counter, k)
        y = self.one_of(("x[%s]" % k, "0.5f", "in[%s + 7]" % k, "(t + 1)", "in[%s * 2 + (%s & 63)]" % (k, row)))
        values = dict(s=s, t=type_, x=x, y=y)
        body = self.one_of((
            "{s} += static_cast<{t}>({x}) * static_cast<{t}>({y});",
            "{s} = {s} / 2 + static_cast<{t}>({x}) - static_cast<{t}>({y});",
            "{s} = {s} * static_cast<{t}>(0.5) + fabs(static_cast<{t}>({x}));",
            "{s} = static_cast<{t}>({x}) > {s} ? static_cast<{t}>({y}) : {s} + 1;",
        )).format(**values)  # fmt: skip
        texts, results = [body], "h = h * 31 + bits(%s);" % s
        nodes = ["%s %s = %s;" % (type_, s, self.one_of(("0", "t", "static_cast<%s>(x[t & 63])" % type_)))]
        if self.chance(25):
            more = self.new("s")
            nodes.append("unsigned %s = h;" % more)
            texts.insert(self.below(2), "%s = %s * 3 + static_cast<unsigned>(%s);" % (more, more, k))
            results += " h ^= %s;" % more
        head = "for ({c} {k} = static_cast<{c}>({b}); {k} < static_cast<{c}>({b} + {n}); {k}++) {{"
        loop = Block([[head.format(c=counter, k=k, b=start, n=times), texts]])
        if self.chance(40):
            loop = Block([["if (%s) {" % self.one_of((self.condition(), "i < n", "threadIdx.x >= 1", "a > 2 && t < 70")), [loop]]])
        return [*nodes, loop, results]

    def guarded_division(self):
        """Returns a quotient of uniform numbers where lane 0 may not be, as an index or a value."""
        if self.chance(50):
            text = self.one_of(("h = %s;", "h += %s;")) % self.wrapped()
        else:
            text = "h = h * 5 + static_cast<unsigned>%s;" % self.divided(self.one_of(INTEGERS), 1, True)
        return ["if (%s) %s" % (self.condition(), text)]
