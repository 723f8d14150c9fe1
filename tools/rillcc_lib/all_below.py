"""Splits loops over threads at conditions that usually hold for all threads of a block, such as `i < n` with a thread's
index and a uniform limit.

Let t be a thread's index and b a uniform value. `b + t < n` becomes `b + t < n || all_below`, where `all_below` is true
if the condition holds for the last thread and b + t does not wrap. The condition then holds for all threads, so results
do not change. However, LLVM emits a second loop, without the condition, for blocks in which `all_below` is true. Masked
vectors can be several times slower, because not all processors read ahead for them. t may also be t / 32, t % 32, t * 4
or a sum of these, and the condition may use (b + t) / 32.

If the limit is a small constant, as in `b + t > 0`, most blocks are above it, and the first thread determines whether
all threads are. Stencils have several such conditions at their borders, which share one second loop. So do the
conditions of a basic block inside a loop, such as `c >= 0 && c < n` with c = b + t - 3 + k.

In a loop that all threads execute together, `for (i = b + t; ...; i += s)`, the index is split into a uniform part and
the thread's own part: `for (u = b; ...; u += s) { i = u + t; ... }`. The result is the same, because sums of integers
wrap.
"""

from . import clamps, llvm

BELOW = {llvm.SLT: llvm.SLT, llvm.SLE: llvm.SLE, llvm.ULT: llvm.ULT, llvm.ULE: llvm.ULE}
BELOW.update({llvm.SGE: llvm.SLT, llvm.SGT: llvm.SLE, llvm.UGE: llvm.ULT, llvm.UGT: llvm.ULE})  # the negated comparisons
SWAPPED = {llvm.ULT: llvm.UGT, llvm.UGT: llvm.ULT, llvm.SLT: llvm.SGT, llvm.SGT: llvm.SLT, llvm.EQ: llvm.EQ}
SWAPPED.update({llvm.NE: llvm.NE, llvm.ULE: llvm.UGE, llvm.UGE: llvm.ULE, llvm.SLE: llvm.SGE, llvm.SGE: llvm.SLE})
SIGNED = (llvm.SLT, llvm.SLE)
# Operations that preserve the order of numbers, and the names of the functions that build them.
EXTENSIONS = {llvm.ZEXT: "ZExt", llvm.SEXT: "SExt"}
QUOTIENTS = {llvm.LSHR: "LShr", llvm.ASHR: "AShr", llvm.UDIV: "UDiv", llvm.SDIV: "SDiv"}
SIGNED_STEPS = (llvm.SEXT, llvm.ASHR, llvm.SDIV)
ABOVE = {llvm.SLT: llvm.SGE, llvm.SLE: llvm.SGT, llvm.ULT: llvm.UGE, llvm.ULE: llvm.UGT}
MOST_LOW = 64  # a limit up to this number is a lower bound, not the number of elements
MOST_BY = 1 << 16  # limit for factors of an index, so that a sum of several products stays below 2^31


class Less(int):
    """A uniform value that is subtracted from the other terms of a sum."""


class AllBelow:
    def __init__(self, finder, indices):
        self.c, self.m, self.lib = finder, finder.m, finder.lib
        self.indices = indices  # the names of the functions that return them
        self.wanted: dict = {}  # the values of conditions for which a thread goes where most threads go, if this is known

    def split_counters(self):
        for block in self.c.order:
            for phi in self.m.phis(block) if block not in self.c.divergent else ():
                self.split_counter(phi, block)

    def split_counter(self, phi, block):
        ways = self.m.incoming(phi)
        steps = [(v, b) for v, b in ways if self.m.is_binary(v, llvm.ADD) and phi in self.m.operands(v)]
        if len(ways) != 2 or len(steps) != 1 or {b for _, b in ways} & self.c.divergent:
            return
        (following, latch), (start, before) = steps[0], next(way for way in ways if way != steps[0])
        step = next((v for v in self.m.operands(following) if v != phi), phi)
        terms = self.terms(start, (llvm.ADD, llvm.SUB))
        index = [term for term in terms if self.largest(term)]
        if step in self.c.varying or len(index) != 1 or any(t in self.c.varying for t in terms if t not in index):
            return
        kind, end = self.lib.TypeOf(phi), self.m.terminator(before)
        terms.remove(index[0])
        self.lib.PositionBuilderBefore(self.c.builder, end)
        base = self.m.number(0, kind)
        for term in terms:
            base = self.plus(base, term)
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
        found = []
        for block in self.c.order:
            inside = self.c.instructions[block]
            found += [i for i in inside if self.m.opcode(i) == llvm.ICMP and i in self.c.varying]
        joined = [condition for condition in found if self.is_known_early(condition)]
        if len(joined) < 2 or not any(map(self.is_low, joined)):
            joined = []
        clamped = clamps.Clamps(self)
        together = dict.fromkeys(joined, self.build_before_threads(joined)) if joined else {}
        for block in self.c.order:
            together.update(self.build_for_block(block, [i for i in self.c.instructions[block] if i in found and i not in joined]))
            for condition in self.c.instructions[block]:
                if condition not in found:
                    continue
                self.lib.PositionBuilderBefore(self.c.builder, condition)
                holds = together[condition] if condition in together else self.build_mostly(condition)
                if holds is not None:
                    self.note_condition(condition, holds)
            clamped.note(block)

    def build_for_block(self, block, conditions):
        """Builds a value that is true if each of several conditions in a block, one of which has a low limit, holds for all
        threads, in front of the first of them. They then have one second loop. Returns the value for each of these
        conditions."""
        known = {condition: self.parts(condition) for condition in conditions}
        inside = self.c.instructions[block]
        before = set(inside[: inside.index(conditions[0])]) if conditions else set()
        joined = [c for c, parts in known.items() if parts and parts[1] and self.are_before(before, inside, [*parts[1], parts[2]])]
        if len(joined) < 2 or not any(map(self.is_low, joined)):
            return {}
        self.lib.PositionBuilderBefore(self.c.builder, conditions[0])
        together = self.build_mostly(joined[0])
        for condition in joined[1:]:
            together = self.build("And", together, self.build_mostly(condition))
        return dict.fromkeys(joined, self.build("Freeze", together))

    @staticmethod
    def are_before(before, inside, values):
        return all(value in before or value not in inside for value in values)

    def is_known_early(self, condition):
        """Returns whether build_mostly() accepts a condition, and can build its value anywhere in the kernel."""
        known = self.parts(condition)
        return known is not None and bool(known[1]) and all(map(self.is_early, (*known[1], known[2])))

    def is_early(self, value):
        """Returns whether a uniform value can be computed anywhere from values that are known before the threads start."""
        if value not in self.c.block_of:
            return True
        return self.m.is_computable(value) and all(map(self.is_early, self.m.operands(value)))

    def build_before_threads(self, conditions):
        """Builds a value that is true if each condition holds for all threads, before the threads start, so that all
        regions use one value and LLVM needs only one second loop for each."""
        copies = {}
        self.lib.PositionBuilderBefore(self.c.builder, self.m.terminator(self.c.start))

        def here(value):
            if value not in self.c.block_of:
                return value
            if value not in copies:
                operands = [here(operand) for operand in self.m.operands(value)]
                copies[value] = self.lib.InstructionClone(value)
                self.m.insert(self.c.builder, copies[value])
                for i, operand in enumerate(operands):
                    self.lib.SetOperand(copies[value], i, operand)
            return copies[value]

        together = self.build_mostly(conditions[0], here)
        for condition in conditions[1:]:
            together = self.build("And", together, self.build_mostly(condition, here))
        together = self.build("Freeze", together)  # a condition that is guarded by another one may be poison
        self.c.prologue |= set(self.m.instructions(self.c.start))
        return together

    def note_condition(self, condition, holds):
        self.lib.PositionBuilderBefore(self.c.builder, self.lib.GetNextInstruction(condition))
        if self.holds_mostly(condition):
            either = self.build("Or", holds, condition)
        else:
            holds = self.build("Xor", holds, self.m.number(1, self.m.i1))
            either = self.build("And", holds, condition)
        if self.lib.IsAInstruction(either):
            self.m.mark(either, self.m.joined_kind)  # for usual_blocks.py
        users = [user for user in self.m.users(condition) if user != either]
        for user in users:
            for i, operand in enumerate(self.m.operands(user)):
                if operand == condition:
                    self.lib.SetOperand(user, i, either)

    def comparison(self, condition):
        """Returns the predicate of a condition, its operand that differs between threads, and the uniform operand. The
        predicate is swapped if the condition has the operands in the other order."""
        (a, b), predicate = self.m.operands(condition), self.lib.GetICmpPredicate(condition)
        return (SWAPPED[predicate], b, a) if a not in self.c.varying and b in self.c.varying else (predicate, a, b)

    def holds_below(self, condition):
        """Returns the value that a condition has for threads below the limit."""
        predicate, _, _ = self.comparison(condition)
        return BELOW.get(predicate) == predicate

    def is_low(self, condition):
        """Returns whether the limit of a condition is so low that most threads are above it."""
        predicate, _, limit = self.comparison(condition)
        number = self.m.constant(limit)
        if number is None or predicate not in BELOW:
            return self.wanted.get(condition, self.holds_below(condition)) != self.holds_below(condition)
        signed = BELOW[predicate] in SIGNED
        negative = signed and number >> (self.lib.GetIntTypeWidth(self.lib.TypeOf(limit)) - 1)
        return bool(negative) or number <= MOST_LOW

    def holds_mostly(self, condition):
        """Returns the value that a condition has for all threads when the value from build_mostly() is true."""
        return self.holds_below(condition) != self.is_low(condition)

    def build_mostly(self, condition, here=lambda value: value):
        """Builds a value that is true if all threads of the block are below the limit. If the limit is low, the value
        is true if no thread is below it."""
        return self.build_all(condition, here, low=self.is_low(condition))

    def parts(self, condition):
        """Splits a condition that compares the sum of uniform values and a thread's index with a uniform limit. Returns
        the operations on the sum, the sum's uniform terms, the limit, whether the sum is signed, and the sum. Returns
        None for any other condition."""
        predicate, value, limit = self.comparison(condition)
        if predicate not in BELOW or limit in self.c.varying:
            return None
        below = BELOW[predicate]
        steps, value = self.steps(value)
        signed = self.m.opcode(steps[0]) in SIGNED_STEPS if steps else below in SIGNED
        if steps and signed and not (below in SIGNED and all(self.m.opcode(step) in SIGNED_STEPS for step in steps)):
            return None
        found = self.split(value)
        return (steps, [*found[1], *self.inner_terms(found[2])], limit, signed, value) if found else None

    def build_all(self, condition, here=lambda value: value, alone=False, low=False):
        """Builds a value, at the builder's position, that is true if all threads of the block are below the limit; with
        `low`, it is true if no thread is below the limit. `here` maps a uniform value to its equivalent at this
        position. With `alone`, the sum may consist of the index alone. Returns None for a condition of another form."""
        known = self.parts(condition)
        if known is None or not (known[1] or alone):
            return None
        steps, _, limit, signed, value = known
        below = BELOW[self.comparison(condition)[0]]
        least, last, _, fits = self.build_range(value, here, alone)
        ordered = self.build("ICmp", llvm.SGE if signed else llvm.UGE, last, least)
        for fit in fits:
            ordered = self.build("And", ordered, fit)
        end = least if low else last
        for step in steps:
            end = self.extend(step, end)
        return self.build("And", ordered, self.build("ICmp", ABOVE[below] if low else below, end, here(limit)))

    def build_quarter(self, condition, here):
        """Builds a value that is true if a condition that build_mostly() accepts holds for at least a quarter of the
        threads, approximately."""
        steps, _, limit, _, value = self.parts(condition)
        least, last, _, _ = self.build_range(value, here)
        quarter = self.build("LShr", self.build("Sub", last, least), self.m.number(2, self.lib.TypeOf(value)))
        low, below = self.is_low(condition), BELOW[self.comparison(condition)[0]]
        end = self.build("Sub", last, quarter) if low else self.build("Add", least, quarter)
        for step in steps:
            end = self.extend(step, end)
        return self.build("ICmp", ABOVE[below] if low else below, end, here(limit))

    def split(self, value):
        """Splits a sum into the terms that depend on the thread's index, uniform terms, and extensions to 64 bits of 32-bit
        sums that can be split. Returns None for any other value."""
        terms = self.terms(value)
        sums = [term for term in terms if self.is_extended(term)]
        indices = [term for term in terms if self.largest(term) and term not in sums]
        uniform = [term for term in terms if term not in indices and term not in sums]
        if not (indices or sums) or any(term in self.c.varying for term in uniform):
            return None
        return (indices, uniform, sums) if self.lib.TypeOf(value) in (self.m.i32, self.m.i64) else None

    def is_extended(self, term):
        if term not in self.c.varying or self.m.opcode(term) not in EXTENSIONS or self.largest(term):
            return False
        found = self.split(self.lib.GetOperand(term, 0))
        return bool(found) and not found[2]

    def inner_terms(self, sums):
        """Returns the uniform terms of sums that are extended to 64 bits."""
        return [term for value in sums for term in self.split(self.lib.GetOperand(value, 0))[1]]

    def build_range(self, value, here=lambda value: value, alone=False):
        """Builds the least and the greatest value that a sum of uniform values and of the thread's index has in any
        thread; if the sum wraps, the greatest is less than the least. Also returns the terms that differ between
        threads, and values that must also be true. Returns None for any other value."""
        found = self.split(value)
        if not found or not (found[1] or self.inner_terms(found[2]) or alone):
            return None
        (indices, uniform, sums), kind, fits = found, self.lib.TypeOf(value), []
        least, most = self.m.number(0, kind), self.m.number(0)
        for term in uniform:
            least = self.plus(least, term, here)
        for term in indices:
            most = self.build("Add", most, self.largest(term)())
        last = self.build("Add", least, self.build("ZExt", most, kind) if kind != self.m.i32 else most)
        for term in sums:
            extends = EXTENSIONS[self.m.opcode(term)]
            low, high, _, _ = self.build_range(self.lib.GetOperand(term, 0), here, True)
            fits.append(self.build("ICmp", llvm.SGE if extends == "SExt" else llvm.UGE, high, low))
            least, last = [self.build("Add", a, self.build(extends, b, kind)) for a, b in ((least, low), (last, high))]
        return least, last, [*indices, *sums], fits

    def extend(self, step, value):
        """Builds the result of one of the operations in `steps` for a value."""
        opcode = self.m.opcode(step)
        if opcode in EXTENSIONS:
            return self.build(EXTENSIONS[opcode], value, self.lib.TypeOf(step))
        return self.build(QUOTIENTS[opcode], value, self.lib.GetOperand(step, 1))

    def steps(self, value):
        """Returns the operations on a sum, first to last, and the sum."""
        steps = []
        while self.lib.IsAInstruction(value):
            opcode = self.m.opcode(value)
            if opcode not in EXTENSIONS and (opcode not in QUOTIENTS or self.by(value) is None):
                break
            steps.insert(0, value)
            value = self.lib.GetOperand(value, 0)
        return steps, value

    def by(self, value):
        """Returns the second operand if it is a constant in the range that is supported for this shift, product or
        quotient; otherwise None."""
        by = self.m.constant(self.lib.GetOperand(value, 1))
        least = 1 if self.m.opcode(value) in (llvm.LSHR, llvm.ASHR, llvm.SHL) else 2
        most = 16 if least == 1 else MOST_BY
        return by if by is not None and least <= by <= most else None

    def plus(self, value, term, here=lambda value: value):
        """Builds the sum of a value and of a term of a sum."""
        return self.build("Sub" if isinstance(term, Less) else "Add", value, here(term))

    def terms(self, value, made_by=(llvm.ADD, llvm.SUB, llvm.OR)):
        """Returns the terms of a sum. If it is built by `or`, the sum of the terms is an upper bound of the value."""
        if value not in self.c.varying or not any(self.m.is_binary(value, opcode) for opcode in made_by):
            return [value]
        if self.m.is_binary(value, llvm.SUB):
            first, less = self.m.operands(value)
            return [value] if less in self.c.varying else [*self.terms(first, made_by), Less(less)]
        return [term for operand in self.m.operands(value) for term in self.terms(operand, made_by)]

    def largest(self, term):
        """Returns a function that builds an upper bound, less than 2^26, of a term. The term must be a shift, product,
        quotient or remainder of an index of the thread, or a remainder of any value. Returns None for any other term."""
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
        if opcode not in names and (opcode not in (llvm.AND, llvm.UREM) or term not in self.c.varying):
            return None
        index = self.lib.GetOperand(term, 0)
        is_index = bool(self.lib.IsAInstruction(index)) and self.c.marker(index) in self.indices
        by = self.m.constant(self.lib.GetOperand(term, 1)) if opcode == llvm.AND else self.by(term)
        if by is None or (opcode in names and not is_index):
            return None
        if opcode in names:
            return lambda: self.build(names[opcode], self.largest(index)(), self.m.number(by))
        most = min(by if opcode == llvm.AND else by - 1, MOST_BY)
        if most == MOST_BY:
            return None
        if not is_index:
            return lambda: self.m.number(most)
        return lambda: self.smaller(self.largest(index)(), self.m.number(most))

    def smaller(self, a, b):
        return self.build("Select", self.build("ICmp", llvm.ULT, a, b), a, b)

    def build(self, what, *arguments):
        return getattr(self.lib, "Build" + what)(self.c.builder, *arguments, b"")
