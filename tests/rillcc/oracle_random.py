"""The statements of random kernels (oracle_kernels.py).

There are three places where a statement may stand: where all threads of the block are that have not returned, where all
lanes of a warp are, and where a thread is by itself. Each place allows what the ones after it allow.
"""

import re

from oracle_few import Few
from oracle_kernels import FLOATS, INTEGERS, MOST_THREADS, Block, Kernel, Variable, render

# Shared variables: the name, the declaration, and what gives it a value.
PROLOGUE = (
    ("words", "RILL_DYNAMIC_SHARED(unsigned, words);", "words[4 * t] = words[4 * t + 1] = h;"),
    ("tile", "__shared__ unsigned tile[%d];" % MOST_THREADS, "tile[t] = h;"),
    ("slots", "__shared__ unsigned slots[%d], turn;" % MOST_THREADS, "slots[t] = 0; if (t == 0) turn = 0;"),
    ("uni", "__shared__ unsigned uni[8];", "for (unsigned k = t; k < 8; k += threads) uni[k] = in[k] % 600 + 1;"),
    ("totals", "__shared__ unsigned totals[4];", "for (unsigned k = t; k < 4; k += threads) totals[k] = k;"),
    ("shared_pack", "__shared__ pack shared_pack;", "if (t == 0) shared_pack = packs[2];"),
)
# A store to `words` as one type, its index and value, and a load as another one, its offset in the thread's 16 bytes.
VIEWS = (
    ("double", "2 * t", "static_cast<double>(h & 0xffff) + 0.5", "unsigned", 1),
    ("float", "4 * t + 1", "static_cast<float>(h & 0xffff) * 0.5f", "unsigned char", 6),
    ("unsigned", "4 * t + 1", "h", "unsigned short", 3),
    ("unsigned char", "16 * t + 7", "static_cast<unsigned char>(h)", "unsigned", 1),
    ("unsigned long long", "2 * t", "h * 0x100000001ull", "int", 1),
)
DEPTH = 3  # of compound statements
NUMBERS = {1: "threadIdx.x", 3: "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"}
BLOCKS = {1: "blockIdx.x", 3: "((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x)"}


class Generator(Few):
    def __init__(self, numbers, without):
        super().__init__(numbers, without)
        self.has_tickets = False
        self.dimensions = 1 if self.chance(65) else 3

    # What all lanes of a warp do

    def mask(self):
        return self.one_of(("live", "~0u", "0xffffffffu"))

    def lanes(self, mask):
        """Returns an unsigned that lanes of a mask make together; all of them evaluate the expression."""
        reduce = "reduce" not in self.without
        make = self.one_of_weighted(
            (6, lambda: self.shuffle(mask)),
            (3, lambda: self.vote(mask)),
            (reduce, lambda: "__match_any_sync(%s, %s & 3)" % (mask, self.unsigned())),
            (2 * reduce, lambda: self.reduction(mask)),
            (mask.startswith(("~", "0")), lambda: "rill_warp_%s(0u + %s)" % (self.fold(), self.unsigned())),
        )
        return make()

    def fold(self):
        return self.one_of(("sum", "min", "max"))

    def shuffle(self, mask):
        type_ = self.one_of(("unsigned", "unsigned", "int", "unsigned long long", "long long") + FLOATS)
        value = self.floating(type_) if type_ in FLOATS else self.integer(type_)
        how = self.one_of(("", "_up", "_down", "_xor"))
        by = self.one_of(("%d" % self.below(32), "%d" % (1 << self.below(5))))
        if self.chance(30) and not (how == "_xor" and "varying-xor" in self.without):
            by = "static_cast<%s>(%s & 31)" % ("unsigned" if how in ("_up", "_down") else "int", self.unsigned(1))
        width = self.one_of(("", "", "", ", 2", ", 4", ", 8", ", 16", ", 32"))
        text = "__shfl%s_sync(%s, static_cast<%s>(%s), %s%s)" % (how, mask, type_, value, by, width)
        if type_ in FLOATS:
            return "bits(%s)" % text
        return ("fold(static_cast<unsigned long long>(%s))" if "long" in type_ else "static_cast<unsigned>(%s)") % text

    def vote(self, mask):
        how = self.one_of(("__any_sync", "__all_sync", "__ballot_sync"))
        return "static_cast<unsigned>(%s(%s, %s))" % (how, mask, self.condition())

    def reduction(self, mask):
        how = self.one_of(("add", "min", "max", "and", "or", "xor"))
        type_ = self.one_of(("unsigned", "int")) if how in ("add", "min", "max") else "unsigned"
        value = "static_cast<%s>(%s)" % (type_, self.unsigned())
        return "static_cast<unsigned>(__reduce_%s_sync(%s, %s))" % (how, mask, value)

    def warp_statements(self, depth):
        nodes = []
        for _ in range(1 + self.below(2)):
            nodes += self.warp(depth)
        return nodes

    def warp(self, depth):
        """Statements of all lanes of a warp that have not returned."""
        self.budget -= 1
        if self.budget < 0:
            depth = 0
        inside, reduce, masks = depth > 0, "reduce" not in self.without, "masks" not in self.without
        make = self.one_of_weighted(
            (8, lambda: [self.one_of(("h = h * 31 + %s;", "h ^= %s;", "h += %s;")) % self.lanes(self.mask())]),
            (1, lambda: [self.declaration(False)]),
            (1, lambda: ["__syncwarp(%s);" % self.mask()]),
            (inside, lambda: self.vote_loop(depth)),
            (inside, lambda: self.vote_branch(depth)),
            (3 * inside, lambda: self.branch_of_warps(depth)),
            (1, self.scan),
            (reduce, self.match_all),
            (2 * masks, self.partial),
            (3, lambda: self.own(depth)),
        )
        return make()

    def vote_branch(self, depth):
        head = "if (%s(%s, %s)) {" % (self.one_of(("__any_sync", "__all_sync")), self.mask(), self.condition())
        parts = [[head, self.nested(self.warp_statements, depth - 1)]]
        if self.chance(30):
            parts.append(["} else {", self.nested(self.warp_statements, depth - 1)])
        return [Block(parts)]

    def of_warp(self):
        """Returns a condition that the lanes of a warp agree about, in blocks of every shape."""
        return self.one_of((
            "t < 32", "t < 32", "threadIdx.x < 32", "t / 32 == 0", "t < 64", "t >= 32", "t > 31", "t / 32 == %d" % self.below(3),
            "(t >> 5 & 1) != %d" % self.below(2), "t >> 5 <= (b & 3)", "t < 32 && (a & 2) == 0", "t >= 64 || b > 50",
            "(t & ~31u) == (c & 32)", "t < threads / 32 * 32",
        ))  # fmt: skip

    def branch_of_warps(self, depth):
        """Functions of the lanes of some warps."""
        parts = [["if (%s) {" % self.of_warp(), self.nested(self.warp_statements, depth - 1)]]
        if self.chance(30):
            parts.append(["} else {", self.nested(self.one_of((self.warp_statements, self.own_statements)), depth - 1)])
        return [Block(parts)]

    def by_lanes(self, v, type_):
        """What a program does to reduce a number over the lanes of a warp."""
        k, how = self.new("k"), self.one_of(("down", "xor", "down", "up"))
        text = "__shfl_%s_sync(~0u, %s, %s)" % (how, v, k)
        body = self.one_of(("%s += %s;", "%s = max(%s, %%s);" % ("%s", v), "%s = %s * 3 - %%s;" % ("%s", v)))
        if type_ in FLOATS:
            body = "%s = %s / 2 + %%s;" % ("%s", v)
        elif type_ != "unsigned":
            body = "%s += %s;"
        loop = self.one_of(("unsigned %s = 16; %s > 0; %s /= 2", "int %s = 16; %s; %s >>= 1", "unsigned %s = 1; %s < 32; %s *= 2"))
        return Block([["for (%s) {" % (loop % (k, k, k)), [body % (v, text)]]])

    def scan(self):
        v, k = self.new("v"), self.new("k")
        first = "unsigned %s = %s;" % (v, self.unsigned())
        self.scopes[-1].append(Variable(v, "unsigned"))
        up = "__shfl_up_sync(%s, %s, %s)" % (self.mask(), v, k)
        body = ["const unsigned below = %s;" % up, "if (lane >= %s) %s += below;" % (k, v)]
        return [first, Block([["for (unsigned %s = 1; %s < 32; %s <<= 1) {" % (k, k, k), body]])]

    def match_all(self):
        name = self.new("all")
        value = self.unsigned(1, self.chance(50))
        text = "int %s; h += __match_all_sync(%s, %s & 1, &%s); h = h * 2 + static_cast<unsigned>(%s);"
        return [text % (name, self.mask(), value, name, name)]

    def partial(self):
        """Functions of lanes that some condition chooses, with their mask; or of groups, all at once."""
        mask = self.new("mask")
        if "reduce" not in self.without and self.chance(40):
            return [
                "const unsigned %s = __match_any_sync(live, %s & 3);" % (mask, self.one_of(("lane", "h", "t / 5"))),
                "h = h * 31 + %s;" % self.lanes(mask),
            ]
        taken = self.new("taken")
        nodes = ["const bool %s = %s;" % (taken, self.condition())]
        nodes.append("const unsigned %s = __ballot_sync(live, %s);" % (mask, taken))
        first = ["h = h * 31 + %s;" % self.lanes(mask)]
        if self.chance(40):
            first.append(self.assignment())
            first.append("h += %s;" % self.lanes(mask))
        parts = [["if (%s) {" % taken, first]]
        if self.chance(40) and "branched-masks" not in self.without:
            parts.append(["} else {", ["h = h * 31 + %s;" % self.lanes("(live & ~%s)" % mask)]])
        return nodes + [Block(parts)]

    def vote_loop(self, depth):
        """Returns a loop that ends by a vote of the warp."""
        w = self.new("w")
        first = "unsigned %s = %s & 7;" % (w, self.unsigned(1, self.chance(50)))
        body = self.nested(self.warp_statements, depth - 1)
        if self.chance(50):
            end = "} while (__any_sync(%s, %s != 0 && --%s > 0));" % (self.mask(), w, w)
            return [first, Block([["do {", body]], end)]
        body.append("if (%s > 0) %s--;" % (w, w))
        return [first, Block([["while (%s) {" % ("__any_sync(%s, %s > 0)" % (self.mask(), w)), body]])]

    # What all threads of the block do

    def settle(self):
        """At a point that is reached in several ways each thread uses its own elements only."""
        nodes = ["__syncthreads();"] if self.readable else []
        self.readable = False
        return nodes

    def block_statements(self, depth, in_loop, most=3):
        nodes = []
        for _ in range(1 + self.below(most)):
            nodes += self.block(depth, in_loop)
        return nodes

    def counted(self):
        """Statements around a barrier that returns a value."""
        what = self.condition()
        u = self.new("u")
        text = self.one_of((
            "static_cast<unsigned>(__syncthreads_count(%s))" % what,
            "static_cast<unsigned>(__syncthreads_and(%s))" % what,
            "static_cast<unsigned>(__syncthreads_or(%s))" % what,
            "rill_block_%s(0u + %s)" % (self.fold(), self.unsigned()),
            "static_cast<unsigned>(__syncthreads_count(7) %s int(blockDim.z * blockDim.x * blockDim.y))" % self.one_of(("==", "!=", "<")),
        ))  # fmt: skip
        if self.chance(60):
            self.scopes[-1].append(Variable(u, "unsigned", True, self.chance(50)))
            nodes = ["unsigned %s = %s;" % (u, text)]
        else:
            nodes = ["h = h * 31 + %s;" % text]
        # Warps may go one by one through what comes before and after, if lanes give values to fixed others.
        if self.chance(50):
            nodes.insert(0, "h ^= %s;" % self.fixed_shuffle())
        while self.chance(50):
            nodes.append("h = h * 5 + %s;" % self.fixed_shuffle())
        return nodes

    def fixed_shuffle(self):
        return "__shfl_%s_sync(~0u, h, %d)" % (self.one_of(("xor", "up", "down")), 1 << self.below(5))

    def block(self, depth, in_loop):
        """Statements of all threads of the block that have not returned."""
        self.budget -= 1
        if self.budget < 0:
            depth = 0
        inside, jumps, once = depth > 0, in_loop and not self.readable, depth == DEPTH and not self.has_tickets
        make = self.one_of_weighted(
            (3, lambda: [self.declaration(True)]),
            (4, lambda: [self.uniform_assignment()]),
            (3, self.exchange),
            (5, self.counted),
            (1, self.total),
            (3 * inside, lambda: self.branch(depth, in_loop)),
            (5 * inside, lambda: self.loop(depth)),
            (3 * inside, lambda: self.vote_loop(depth) + [self.uniform_assignment()]),
            (inside, lambda: self.switch(depth)),
            (inside, lambda: self.skip(depth)),
            (1, self.leave),
            (2 * jumps, lambda: ["if (%s) %s;" % (self.condition(1, True), self.one_of(("break", "continue")))]),
            (1, self.tree),
            (3, lambda: self.sum_by_hand(depth)),
            (1, self.tree_of_warp),
            (1, self.meeting),
            (2 * once, self.tickets),
            (1, self.views),
            (2, self.rows),
            (2, self.own_row),
            (3, lambda: self.ragged(self.one_of(("%s", "__shfl_xor_sync(~0u, %s, 4)", "rill_warp_sum(0u + %s)")))),
            (8, lambda: self.warp(depth)),
            (3, lambda: self.own(depth)),
        )
        return make()

    def exchange(self):
        nodes = self.settle() + ["tile[t] = %s;" % self.unsigned(), "__syncthreads();"]
        self.readable = True
        return nodes + ["h = h * 31 + %s;" % self.load(1)]

    def total(self):
        u, k = self.new("u"), self.below(4)
        self.scopes[-1].append(Variable(u, "unsigned", True, True))
        return ["__syncthreads();", "const unsigned %s = totals[%d];" % (u, k), "__syncthreads();"]

    def skip(self, depth):
        label = self.new("skip")
        nodes = self.settle() + ["if (%s) goto %s;" % (self.condition(1, True), label)]
        inside = self.nested(self.block_statements, depth - 1, False, 2) + self.settle()
        return nodes + [Block([["{", inside]]), label + ":;"]

    def agreed(self):
        """Returns a condition that all threads agree about, by what they know or by asking each other."""
        if self.chance(25):
            return "%s(%s)" % (self.one_of(("__syncthreads_or", "__syncthreads_and")), self.condition())
        if self.chance(25):
            return "blockIdx.x %s %d" % (self.one_of(("==", "!=")), self.below(3))
        return self.condition(1, True)

    def branch(self, depth, in_loop):
        nodes = self.settle()
        parts = [["if (%s) {" % self.agreed(), self.nested(self.block_statements, depth - 1, in_loop) + self.settle()]]
        if self.chance(40):
            parts.append(["} else {", self.nested(self.block_statements, depth - 1, in_loop) + self.settle()])
        return nodes + [Block(parts)]

    def loop(self, depth):
        """Returns a loop that all threads go around as often."""
        nodes = self.settle()
        k = self.new("k")
        choice = self.below(5)
        self.scopes.append([Variable(k, "unsigned", True, True)] if choice < 4 else [])
        # A `continue` must not skip what ends the loop, so only loops that count in their heads have it.
        body = self.changing() if self.chance(40) else []
        body += self.nested(self.block_statements, depth - 1, choice == 0) + self.settle()
        self.scopes.pop()
        if choice == 0:
            times = self.one_of(("%d" % (1 + self.below(3)), "(a & 3)", "(uni[1] & 3)", "gridDim.x", "blockIdx.x + 1"))
            return nodes + [Block([["for (unsigned %s = 0; %s < %s; %s++) {" % (k, k, times, k), body]])]
        if choice == 1:
            nodes.append("unsigned %s = 0;" % k)
            return nodes + [Block([["do {", body]], "} while (++%s < %d);" % (k, 1 + self.below(3)))]
        if choice == 2:
            nodes.append("unsigned %s = 0;" % k)
            return nodes + [Block([["while (true) {", body + ["if (%s++ == %d) break;" % (k, self.below(3))]]])]
        if choice == 3:
            nodes.append("unsigned %s = 0;" % k)
            label = self.new("again")
            return nodes + [label + ":;", Block([["{", body]]), "if (%s++ < %d) goto %s;" % (k, self.below(3), label)]
        nodes.append("unsigned %s = %s & 3;" % (k, self.unsigned(1)))
        return nodes + [Block([["while (__syncthreads_or(%s > 0)) {" % k, body + ["if (%s > 0) %s--;" % (k, k)]]])]

    def changing(self):
        """Returns a loop that ends by a vote and reads a uniform variable, which changes after it."""
        u = self.one_of(self.variables(("unsigned",), True, constant=False)).name
        nodes = self.vote_loop(1)
        nodes[-1].parts[0][1].append("h = h * 3 + (%s & 7);" % u)
        nodes.append("%s = %s;" % (u, self.unsigned(1, True)))
        if self.chance(85):
            nodes = [Block([["if (%s) {" % self.condition(1, True), nodes]])]
        return nodes + ["__syncthreads();", "h = h * 31 + %s;" % u]

    def switch(self, depth):
        nodes, cases = self.settle(), []
        for label in ("case 1:", "case 3:", "default:"):
            inside = self.nested(self.block_statements, depth - 1, False, 2) + self.settle()
            cases += [label, Block([["{", inside]])] + (["break;"] if self.chance(60) else [])
        return nodes + [Block([["switch (%s & 3) {" % self.unsigned(1, True), cases]])]

    def leave(self):
        """Some threads, or all of a block, return."""
        if self.chance(30):
            return ["if (%s) { out[i] = h + 1; return; }" % self.condition(1, True)]
        gone = self.new("gone")
        condition = self.one_of((self.condition(), "i >= n", "t >= b", "lane > %d" % self.below(32), "t >= 64", "t / 32 == 1"))
        return [
            "const bool %s = %s;" % (gone, condition),
            "live = __ballot_sync(%s, !%s);" % (self.mask(), gone),
            "if (%s) { out[i] = h; return; }" % gone,
        ]

    def tree(self):
        """Returns a tree over shared memory with a barrier at each level."""
        nodes = self.settle() + ["tile[t] = %s;" % self.unsigned(), "__syncthreads();"]
        k = self.new("k")
        head = "for (unsigned %s = %d; %s > 0; %s /= 2) {" % (k, MOST_THREADS // 2, k, k)
        body = ["if (t < %s && t + %s < threads) tile[t] = tile[t] * 3 + tile[t + %s];" % (k, k, k), "__syncthreads();"]
        self.readable = True
        return [*nodes, Block([[head, body]]), "h += tile[0];"]

    def tree_of_its_own(self):
        """Returns a tree over an array that nothing else uses, before any thread returns."""
        s, k = self.new("s"), self.new("k")
        type_ = self.one_of(("unsigned", "unsigned", "unsigned char", "float", "double", "unsigned long long"))
        value = self.floating(type_) if type_ in FLOATS else "static_cast<%s>(%s)" % (type_, self.unsigned())
        if self.chance(60):
            value = "i < n ? %s : static_cast<%s>(%d)" % (value, type_, self.below(4))
        steps = ("{s}[t] += {other};", "{s}[t] = {s}[t] - {other};", "{s}[t] = {other} * 3 + {s}[t];")
        step = self.one_of(steps[:2] if type_ in FLOATS else (*steps, "{s}[t] = {s}[t] < {other} ? {other} : {s}[t];"))
        start, guard = self.one_of((("threads / 2", ""), (str(MOST_THREADS // 2), " && t + %s < threads" % k)))
        body = ["if (t < %s%s) %s" % (k, guard, step.format(s=s, other="%s[t + %s]" % (s, k))), "__syncthreads();"]
        loop = Block([["for (unsigned %s = %s; %s > 0; %s /= 2) {" % (k, start, k, k), body]])
        result = "bits(%s[0])" % s if type_ in FLOATS else "static_cast<unsigned>(%s[0])" % s
        nodes = ["__shared__ %s %s[%d];" % (type_, s, MOST_THREADS), "%s[t] = %s;" % (s, value), "__syncthreads();", loop]
        return [*nodes, "h = h * 31 + %s;" % result, "__syncthreads();"]

    def sum_by_hand(self, depth):
        """What a program does to reduce a number over a block: by the lanes of each warp, and by those of the first one."""
        type_ = self.one_of(("unsigned", "unsigned", "int", "float"))
        first = self.new("v")
        value = self.floating(type_) if type_ in FLOATS else "static_cast<%s>(%s & 0xffff)" % (type_, self.unsigned())
        to, back = ("bits(%s)", "__uint_as_float(%s)") if type_ in FLOATS else ("static_cast<unsigned>(%s)", "static_cast<%s>(%%s)" % type_)
        store = self.one_of(("if (t % 32 == 0)", "if ((t & 31) == 0)", "if (t % 32 == 0)", "if (t % 32 == 9)"))
        nodes: list = ["%s %s = %s;" % (type_, first, value)]
        if self.chance(50):
            nodes.append(self.row_of_block(first, type_))
        kept = self.new("v")
        after = self.one_of(([], [], ["h = h * 3 + %s;" % (to % first)], ["h = h * 3 + %s;" % (to % kept)]))
        nodes += ["const %s %s = %s;" % (type_, kept, first), self.by_lanes(first, type_), "__syncthreads();"]
        nodes += ["%s tile[t / 32] = %s;" % (store, to % first), "__syncthreads();", *after]
        load = back % ("t < (threads + 31) / 32 ? tile[t] : %du" % self.below(3))
        inside = ["%s = %s;" % (first, load)] if self.chance(60) else []
        if not inside:
            nodes.append("%s = %s;" % (first, load))
        inside.append(self.by_lanes(first, type_))
        self.readable = False
        if self.chance(30):
            inside += self.nested(self.own_statements, max(depth - 1, 0))
        inside += [self.one_of(("if (t == 0) tile[0] = %s;", "if (t == 0) { atomicAdd(&totals[0], 5u); tile[0] = %s; }")) % (to % first)]
        nodes.append(Block([["if (%s) {" % self.one_of(("t < 32", "t / 32 == 0", "threadIdx.x < 32")), inside]]))
        self.readable = True
        return [*nodes, "__syncthreads();", "h = h * 31 + tile[0];"]

    def sums(self):
        """The statements of a kernel: sums over the block alone, so that no thread is ever missing."""
        nodes = []
        for _ in range(1 + self.below(2)):
            nodes += self.sum_by_hand(0)
            if self.chance(30):
                nodes.append("__syncthreads();")
        return nodes

    def row_of_block(self, v, type_):
        """Adds numbers of a row that the threads of the block read together."""
        k = self.new("k")
        term = "x[%s & 255] * 0.5f" % k if type_ in FLOATS and self.chance(40) else "static_cast<%s>(in[%s] & 0xff)" % (type_, k)
        limit = self.one_of(("min(n, 1000u)", "a % 700", "600", "threads", "threads * 3 + %d" % self.below(3), "(b & 3) * threads"))
        more = self.one_of(("threads", "threads", "threads * 2", "blockDim.x"))
        return Block([["for (unsigned %s = t; %s < %s; %s += %s) {" % (k, k, limit, k, more), ["%s += %s;" % (v, term)]]])

    def tree_of_warp(self):
        """Returns a tree over shared memory whose last levels are those of a warp."""
        nodes = self.settle() + ["tile[t] = %s;" % self.unsigned(), "__syncthreads();"]
        k = self.new("k")
        add = "if (t < %s && t + %s < threads) tile[t] += tile[t + %s];"
        nodes.append(Block([["for (unsigned %s = %d; %s > 32; %s /= 2) {" % (k, MOST_THREADS // 2, k, k), [add % (k, k, k), "__syncthreads();"]]]))
        if self.chance(50):
            inside = []
            for step in (32, 16, 8, 4, 2, 1):
                inside += ["if (t + %d < threads) h = tile[t] + tile[t + %d] * 3;" % (step, step), "__syncwarp();", "tile[t] = h;", "__syncwarp();"]
        else:
            v = self.new("v")
            inside = ["unsigned %s = tile[t] + (t + 32 < threads ? tile[t + 32] : 0);" % v, self.by_lanes(v, "unsigned"), "__syncwarp();"]
            inside.append("tile[t] = %s;" % v)
        self.readable = True
        return [*nodes, Block([["if (t < 32) {", inside]]), "__syncthreads();", "h += tile[0];"]

    def meeting(self):
        """Barriers inside a function, one that a pointer points to, or a lambda."""
        nodes = self.settle()
        meet, value = self.new("meet"), self.unsigned()
        if self.chance(60):
            return nodes + ["h = h * 31 + %s(tile, t, threads, %s);" % (self.one_of(("neighbour", "opposite")), value)]
        if self.chance(30):
            pointers = "unsigned (*%s[2])(unsigned *, unsigned, unsigned, unsigned) = { neighbour, opposite };" % meet
            return nodes + [pointers, "h += %s[%s & 1](tile, t, threads, %s);" % (meet, self.unsigned(1, True), value)]
        return nodes + [
            "auto %s = [&](unsigned v) { tile[t] = v + %s; __syncthreads(); return tile[threads - 1 - t]; };" % (meet, value),
            "h = h * 3 + %s(h);" % meet,
            "__syncthreads();",
            "h ^= %s(%s);" % (meet, self.unsigned(1)),
            "__syncthreads();",
        ]

    def tickets(self):
        """Each thread takes a number, whose order is unspecified, and the sum over all numbers does not depend on it."""
        self.has_tickets = True
        u, k = self.new("u"), self.new("k")
        nodes = ["slots[atomicAdd(&turn, 1u)] = %s;" % self.unsigned(), "__syncthreads();", "unsigned %s = 0;" % u]
        nodes.append("for (unsigned %s = 0; %s < threads; %s++) %s += slots[%s] * 3 + 1;" % (k, k, k, u, k))
        self.scopes[-1].append(Variable(u, "unsigned", True))
        return nodes

    def views(self):
        """Shared memory looked at as several types: 16 bytes for each thread, of which the first 8 have values."""
        stored, index, value, loaded, offset = self.one_of(VIEWS)
        at = self.one_of(("t", "((t + 5) % threads)", "(threads - 1 - t)"))
        size = {"unsigned char": 1, "unsigned short": 2}.get(loaded, 4)
        store = "reinterpret_cast<%s *>(words)[%s] = %s;" % (stored, index, value)
        load = "reinterpret_cast<%s *>(words)[%d * %s + %d]" % (loaded, 16 // size, at, offset)
        return [store, "__syncthreads();", "h = h * 31 + static_cast<unsigned>(%s);" % load, "__syncthreads();"]

    def kernel(self, name):
        nodes = []
        nodes.append("unsigned u0 = %s;" % self.unsigned(1, True))
        self.scopes[0].append(Variable("u0", "unsigned", True))
        if self.chance(25):  # before anything is written
            nodes += self.own_row()
        if self.chance(20):
            nodes += self.tree_of_its_own()
        if self.chance(8):
            nodes, self.budget = nodes[:1] + self.border(), 0
        elif self.chance(8):
            nodes, self.budget = nodes[:1] + self.few(), 0
        elif self.chance(5):  # loops that depend on no warp
            nodes, self.budget = nodes[:1] + self.columns(), 0
        elif self.chance(8):
            nodes, self.budget = nodes[:1] + self.sums(), 0
        while self.budget > 0:
            nodes += self.block(DEPTH, False)
        for v in self.variables(INTEGERS + FLOATS):
            if v.type in FLOATS:
                nodes.append("h = h * 31 + bits(%s);" % v.name)
            else:
                nodes.append("h = h * 31 + %s;" % ("fold(%s)" if "long" in v.type else "static_cast<unsigned>(%s)") % v.name)
        nodes.append("out[i] = h;")
        return Kernel(name, self.prologue(nodes) + nodes, self.dimensions)

    def prologue(self, nodes):
        """Declares what the statements use."""
        words = set(re.findall(r"\w+", "\n".join(render(nodes))))
        shared = [(declaration, value) for name, declaration, value in PROLOGUE if name in words]
        threads = "blockDim.x" if self.dimensions == 1 else "blockDim.x * blockDim.y * blockDim.z"
        lines = ["const unsigned threads = %s;" % threads, "const unsigned t = %s;" % NUMBERS[self.dimensions]]
        lines.append("const unsigned i = %s * threads + t;" % BLOCKS[self.dimensions])
        lines += ["const unsigned lane = t & 31;"] if "lane" in words else []
        lanes = "threads - (t & ~31u) >= 32 ? ~0u : (1u << (threads & 31)) - 1"
        lanes = "__activemask()" if self.chance(20) else lanes
        lines += ["unsigned live = %s;" % lanes] if "live" in words else []
        lines += ["unsigned h = i * 7 + in[%s];" % self.one_of(("t & 63", "t"))]
        lines += [declaration for declaration, _ in shared] + [value for _, value in shared]
        return lines + (["__syncthreads();"] if {"slots", "uni", "totals", "shared_pack"} & words else [])


def kernels(numbers, count, without=()):
    return [Generator(numbers, without).kernel("k%d" % k) for k in range(count)]
