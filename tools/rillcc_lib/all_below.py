"""Conditions like `i < n`, of a thread's index and what is the same for all threads, which mostly hold for all of a block.

`b + t < n` becomes `b + t < n || all_below`, where `all_below` says that it holds for the last thread, and that b + t does
not wrap, so that it holds for all: nothing changes, but LLVM makes a second loop, without the condition, for blocks
where that is so.  Vectors with a mask can be several times slower, since not all processors read ahead for them.  The
same with t / 32, t % 32, t * 4 and sums of these in place of t, and with (b + t) / 32.

In a loop that all threads go around, `for (i = b + t; ...; i += s)`, the index is made of what all have alike and
their own: `for (u = b; ...; u += s) { i = u + t; ... }`, which is the same, since sums of integers wrap.
"""

from . import llvm

BELOW = {llvm.SLT: llvm.SLT, llvm.SLE: llvm.SLE, llvm.ULT: llvm.ULT, llvm.ULE: llvm.ULE}
BELOW.update({llvm.SGE: llvm.SLT, llvm.SGT: llvm.SLE, llvm.UGE: llvm.ULT, llvm.UGT: llvm.ULE})  # the other way around
SWAPPED = {llvm.ULT: llvm.UGT, llvm.UGT: llvm.ULT, llvm.SLT: llvm.SGT, llvm.SGT: llvm.SLT, llvm.EQ: llvm.EQ}
SWAPPED.update({llvm.NE: llvm.NE, llvm.ULE: llvm.UGE, llvm.UGE: llvm.ULE, llvm.SLE: llvm.SGE, llvm.SGE: llvm.SLE})
SIGNED = (llvm.SLT, llvm.SLE)
# What keeps the order of numbers: the names of what builds it.
EXTENSIONS = {llvm.ZEXT: "ZExt", llvm.SEXT: "SExt"}
QUOTIENTS = {llvm.LSHR: "LShr", llvm.ASHR: "AShr", llvm.UDIV: "UDiv", llvm.SDIV: "SDiv"}
SIGNED_STEPS = (llvm.SEXT, llvm.ASHR, llvm.SDIV)
MOST_BY = 1 << 16  # what an index is multiplied by, so that a sum of some stays below 2^31


class AllBelow:
    def __init__(self, finder, indices):
        self.c, self.m, self.lib = finder, finder.m, finder.lib
        self.indices = indices  # the names of the functions that give them

    def part_counters(self):
        for block in self.c.order:
            for phi in self.m.phis(block) if block not in self.c.divergent else ():
                self.part_counter(phi, block)

    def part_counter(self, phi, block):
        ways = self.m.incoming(phi)
        steps = [(v, b) for v, b in ways if self.m.is_binary(v, llvm.ADD) and phi in self.m.operands(v)]
        if len(ways) != 2 or len(steps) != 1 or {b for _, b in ways} & self.c.divergent:
            return
        (following, latch), (start, before) = steps[0], next(way for way in ways if way != steps[0])
        step = next((v for v in self.m.operands(following) if v != phi), phi)
        terms = self.terms(start, (llvm.ADD,))
        index = [term for term in terms if self.largest(term)]
        if step in self.c.varying or len(index) != 1 or any(t in self.c.varying for t in terms if t not in index):
            return
        kind, end = self.lib.TypeOf(phi), self.m.terminator(before)
        terms.remove(index[0])
        self.lib.PositionBuilderBefore(self.c.builder, end)
        base = self.m.number(0, kind)
        for term in terms:
            base = self.build("Add", base, term)
        self.lib.PositionBuilderBefore(self.c.builder, phi)
        common = self.build("Phi", kind)
        self.lib.PositionBuilderBefore(self.c.builder, following)
        more = self.build("Add", common, step)
        self.lib.AddIncoming(common, llvm.array([base, more]), llvm.array([before, latch]), 2)
        inside = self.m.instructions(block)
        self.lib.PositionBuilderBefore(self.c.builder, inside[len(self.m.phis(block))])
        own = self.build("Add", common, index[0])
        self.lib.ReplaceAllUsesWith(phi, own)
        self.lib.InstructionEraseFromParent(phi)
        self.lib.SetNSW(following, 0)
        self.lib.SetNUW(following, 0)

    def note(self):
        for block in self.c.order:
            for instruction in self.c.instructions[block]:
                if self.m.opcode(instruction) == llvm.ICMP and instruction in self.c.varying:
                    self.note_condition(instruction)

    def note_condition(self, condition):
        self.lib.PositionBuilderBefore(self.c.builder, condition)
        all_below = self.build_all(condition)
        if all_below is None:
            return
        self.lib.PositionBuilderBefore(self.c.builder, self.lib.GetNextInstruction(condition))
        if self.holds_below(condition):
            either = self.build("Or", all_below, condition)
        else:
            all_below = self.build("Xor", all_below, self.m.number(1, self.m.i1))
            either = self.build("And", all_below, condition)
        users = [user for user in self.m.users(condition) if user != either]
        for user in users:
            for i, operand in enumerate(self.m.operands(user)):
                if operand == condition:
                    self.lib.SetOperand(user, i, either)

    def comparison(self, condition):
        """How a condition compares, what of the thread, and with what; the other way around if that is what it says."""
        (a, b), predicate = self.m.operands(condition), self.lib.GetICmpPredicate(condition)
        return (SWAPPED[predicate], b, a) if a not in self.c.varying and b in self.c.varying else (predicate, a, b)

    def holds_below(self, condition):
        """Whether a condition is true for threads that are below, or false."""
        predicate, _, _ = self.comparison(condition)
        return BELOW.get(predicate) == predicate

    def build_all(self, condition, here=lambda value: value, alone=False):
        """Builds what says that all threads of the block are below, where the builder stands; `here` gives what stands for
        a uniform value there.  None if it is no such condition; with `alone` it may be about the index alone."""
        predicate, value, limit = self.comparison(condition)
        if predicate not in BELOW or limit in self.c.varying:
            return None
        below = BELOW[predicate]
        steps, value = self.steps(value)
        signed = self.m.opcode(steps[0]) in SIGNED_STEPS if steps else below in SIGNED
        if steps and signed and not (below in SIGNED and all(self.m.opcode(step) in SIGNED_STEPS for step in steps)):
            return None
        found = self.build_range(value, here, alone)
        if not found:
            return None
        least, last = found
        all_below = self.build("ICmp", llvm.SGE if signed else llvm.UGE, last, least)
        for step in steps:
            last = self.extend(step, last)
        return self.build("And", all_below, self.build("ICmp", below, last, here(limit)))

    def build_range(self, value, here=lambda value: value, alone=False):
        """Builds the least that a sum of uniform values and of the thread's index is for a thread, and the most, which is
        less if it wraps.  None if it is no such sum."""
        terms = self.terms(value)
        indices = [term for term in terms if self.largest(term)]
        uniform = [term for term in terms if term not in indices]
        if not indices or not (uniform or alone) or any(term in self.c.varying for term in uniform):
            return None
        kind = self.lib.TypeOf(value)
        if kind not in (self.m.i32, self.m.i64):
            return None
        least, most = here(uniform[0]) if uniform else self.m.number(0, kind), self.largest(indices[0])()
        for term in uniform[1:]:
            least = self.build("Add", least, here(term))
        for term in indices[1:]:
            most = self.build("Add", most, self.largest(term)())
        return least, self.build("Add", least, self.build("ZExt", most, kind) if kind != self.m.i32 else most)

    def extend(self, step, value):
        """Builds what a step makes of a value."""
        opcode = self.m.opcode(step)
        if opcode in EXTENSIONS:
            return self.build(EXTENSIONS[opcode], value, self.lib.TypeOf(step))
        return self.build(QUOTIENTS[opcode], value, self.lib.GetOperand(step, 1))

    def steps(self, value):
        """What is done to a sum, first to last, and the sum."""
        steps = []
        while self.lib.IsAInstruction(value):
            opcode = self.m.opcode(value)
            if opcode not in EXTENSIONS and (opcode not in QUOTIENTS or self.by(value) is None):
                break
            steps.insert(0, value)
            value = self.lib.GetOperand(value, 0)
        return steps, value

    def by(self, value):
        """The second operand, if it is a constant that a shift, product or quotient by it makes sense with here."""
        by = self.m.constant(self.lib.GetOperand(value, 1))
        least = 1 if self.m.opcode(value) in (llvm.LSHR, llvm.ASHR, llvm.SHL) else 2
        most = 16 if least == 1 else MOST_BY
        return by if by is not None and least <= by <= most else None

    def terms(self, value, made_by=(llvm.ADD, llvm.OR)):
        """What a value is the sum of; or no more than that sum, where it is made by `or`."""
        if value not in self.c.varying or not any(self.m.is_binary(value, opcode) for opcode in made_by):
            return [value]
        return [term for operand in self.m.operands(value) for term in self.terms(operand, made_by)]

    def largest(self, term):
        """Of a term that comes from an index of the thread, by a shift, product, quotient or remainder: what builds a number
        that it is not above, less than 2^26.  None of anything else."""
        if not self.lib.IsAInstruction(term):
            return None
        opcode = self.m.opcode(term)
        if opcode == llvm.ZEXT:
            return self.largest(self.lib.GetOperand(term, 0))
        marker = self.c.marker(term)
        if marker in self.indices:
            x, y, z = self.c.size
            sizes = (lambda: x, lambda: y, lambda: z, lambda: self.build("Mul", self.build("Mul", x, y), z))
            return lambda: self.build("Sub", sizes[self.indices.index(marker)](), self.m.number(1))
        names = {llvm.LSHR: "LShr", llvm.UDIV: "UDiv", llvm.SHL: "Shl", llvm.MUL: "Mul"}
        if opcode not in names and opcode not in (llvm.AND, llvm.UREM):
            return None
        index = self.lib.GetOperand(term, 0)
        if not self.lib.IsAInstruction(index) or self.c.marker(index) not in self.indices:
            return None
        by = self.m.constant(self.lib.GetOperand(term, 1)) if opcode == llvm.AND else self.by(term)
        if by is None:
            return None
        if opcode in names:
            return lambda: self.build(names[opcode], self.largest(index)(), self.m.number(by))
        most = min(by if opcode == llvm.AND else by - 1, MOST_BY)
        if most == MOST_BY:
            return None
        return lambda: self.smaller(self.largest(index)(), self.m.number(most))

    def smaller(self, a, b):
        return self.build("Select", self.build("ICmp", llvm.ULT, a, b), a, b)

    def build(self, what, *arguments):
        return getattr(self.lib, "Build" + what)(self.c.builder, *arguments, b"")
