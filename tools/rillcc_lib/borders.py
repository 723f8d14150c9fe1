"""Interchanges loops for blocks in which a border keeps some threads from executing the loop.

    if (i >= n) return;                              active = !(i >= n);
    for (k = 0; k < m; k++) s += a[k * n + i];       if (__syncthreads_count(active))
    z[i] = s;                                          for (k = 0; k < m; k++) if (active) s += a[k * n + i];
                                                     if (active) z[i] = s;

The threads beyond the border execute the loop with the others, but have no visible effects there and cannot fail: they
do not load, store, divide or call. All other instructions are executed for them too, with arbitrary values. The loop
over the threads can therefore become the inner one (interchange.py). If no thread is active, no thread enters the loop,
because its exit condition may be undefined and it might never end. If a thread is active, all threads take the same
path as this thread, because only uniform values decide the path.

This is done in a third version of a kernel (versions.py), for conditions that hold for all threads of most blocks.
"""

from dataclasses import dataclass

from . import flow, interchange, llvm
from .errors import RillccError
from .ir import DIVISIONS, PURE
from .regions import BLOCK, COUNT, INTERCHANGE, THREAD


@dataclass
class Border:
    """A branch that splits the threads: some go to the block `way` and on through `blocks`, the others to the block
    `past`."""

    block: int
    way: int
    past: int
    blocks: set


class Borders:
    """Works on one kernel; `conditions` are those that hold for all threads of most blocks."""

    def __init__(self, module, kernel, conditions, builder):
        self.m, self.lib, self.kernel, self.builder = module, module.lib, kernel, builder
        self.conditions = set(conditions)
        self.i = interchange.Interchange(module, kernel)
        self.graph = self.i.graph
        self.order = list(reversed(flow.postorder(self.graph, self.lib.GetEntryBasicBlock(kernel))))

    # Choice of borders

    def find(self):
        """Returns the borders in front of loops, each nested in the one before it. Returns an empty list if the threads
        cannot stay together there."""
        parting = [block for block in self.order if self.parts_threads(block)]
        if not parting:
            return []
        first = parting[0]
        for past in self.graph[first]:
            border = self.border(first, past)
            if border:
                inner = [self.border(block, past) for block in parting[1:] if block in border.blocks]
                outside = [block for block in parting[1:] if block not in border.blocks and block != first]
                borders = [border, *inner]
                if all(inner) and self.are_fit(borders) and not any(self.cuts(flow.reachable(self.graph, [b])) for b in outside):
                    return borders
        return []

    def parts_threads(self, block):
        end = self.m.terminator(block)
        if len(self.graph[block]) < 2:
            return False
        return self.m.opcode(end) != llvm.BR or not self.i.is_uniform(self.lib.GetCondition(end))

    def border(self, block, past):
        """Returns the border for a branch that leads either to `past` or to blocks that all lead to `past`. Returns
        None for any other branch."""
        ways = self.graph[block]
        if self.m.opcode(self.m.terminator(block)) != llvm.BR or len(ways) != 2 or past not in ways or ways[0] == ways[1]:
            return None
        way = ways[0] if ways[1] == past else ways[1]
        blocks = flow.reachable(self.graph, [way], [past]) - {past}
        closed = all(set(self.m.predecessors(b)) <= (blocks if b != way else {block}) for b in blocks)
        known = self.known(self.lib.GetCondition(self.m.terminator(block)))
        if block in blocks or not closed or not known or not self.cuts(blocks) or self.m.phis(way):
            return None
        return Border(block, way, past, blocks)

    def known(self, condition):
        """Returns whether a condition is made only of constants, uniform conditions and those in `conditions`."""
        if not self.lib.IsAInstruction(condition):
            return bool(self.lib.IsAConstantInt(condition))
        if self.m.opcode(condition) in (llvm.AND, llvm.OR, llvm.XOR, llvm.SELECT):
            return all(map(self.known, self.m.operands(condition)))
        return condition in self.conditions or self.i.is_uniform(condition)

    def cuts(self, blocks):
        return any(self.i.marker(i) == INTERCHANGE for b in blocks for i in self.i.instructions[b])

    def are_fit(self, borders):
        """Returns whether each thread can skip the code inside the borders by itself."""
        first, nested = borders[0], [set(border.blocks) for border in borders]
        if any(not inner < outer for outer, inner in zip(nested, nested[1:])):
            return False
        ends = [block for block in first.blocks if not self.graph[block]]
        return not ends and all(self.is_fit(i) for block in first.blocks for i in self.i.instructions[block][:-1])

    def is_fit(self, value):
        opcode = self.m.opcode(value)
        if opcode in (llvm.LOAD, llvm.STORE):
            return not self.lib.GetVolatile(value) and self.lib.GetOrdering(value) == llvm.NOT_ATOMIC
        if opcode == llvm.CALL:
            return self.i.marker(value) in (*THREAD, *BLOCK, INTERCHANGE) or self.i.is_pure(value)
        return opcode in PURE or opcode in DIVISIONS or opcode == llvm.PHI

    # Transformation

    def add(self):
        """Replaces the borders; returns whether there is one."""
        borders = self.find()
        ways_out = [block for block in self.order if borders and block in borders[0].blocks and borders[0].past in self.graph[block]]
        inside = {block: [b for b in borders if block in b.blocks] for block in self.order}
        self.failing = {i for block in self.order if inside[block] for i in self.i.instructions[block] if self.may_fail(i)}
        blocks = {i: block for block in self.order for i in self.i.instructions[block] if i in self.failing}
        active, needed = None, {}
        for border in borders:
            if active is not None:
                self.leave_out(border.block, active)
            active = border.active = self.count(border, active)
            needed.update((i, active) for i, block in blocks.items() if block in border.blocks)
        for block in self.order:
            if inside[block] and not any(border.block == block for border in borders):
                self.leave_out(block, inside[block][-1].active)
        self.check(needed)
        for phi in self.m.phis(borders[0].past) if borders else ():
            self.m.replace_phi(phi, lambda v, b, phi=phi: (self.at_exit(phi, v, b, borders, inside) if b in ways_out else v, b), self.builder)
        return bool(borders)

    def check(self, needed):
        """Invariant: instructions that have side effects or can fail are in blocks that only active threads reach. `needed` has
        the condition of the active threads for each such instruction."""
        for value, active in needed.items():
            block = self.lib.GetInstructionParent(value)
            ends = [self.m.terminator(other) for other in self.m.predecessors(block)]
            operands = self.m.operands(ends[0]) if len(ends) == 1 and self.m.opcode(ends[0]) == llvm.BR else []
            ways = [self.lib.GetSuccessor(end, i) == block for end in ends for i in range(self.lib.GetNumSuccessors(end))]
            if operands[:1] != [active] or ways != [True, False]:
                text = "threads beyond a border execute `%s` in %s, which is a bug in rillcc"
                raise RillccError(text % (self.m.text(value).strip(), self.m.name(self.kernel)))

    def at_exit(self, phi, value, block, borders, inside):
        """Builds the value that a phi has after the borders. Each thread gets the value from the border at which it
        left the other threads."""
        start = {b: v for v, b in self.m.incoming(phi)}
        self.lib.PositionBuilderBefore(self.builder, self.m.terminator(block))
        passed = inside[block]
        result = start[passed[0].block]
        for border, following in zip(passed, [start[b.block] for b in passed[1:]] + [value]):
            result = self.lib.BuildSelect(self.builder, border.active, following, result, b"")
        return result

    def count(self, border, active):
        """Lets all threads pass a border if one of them is inside. Returns a value that is true if this thread is
        inside."""
        m, lib, end = self.m, self.lib, self.m.terminator(border.block)
        kind = lib.FunctionType(m.i32, llvm.array([m.i32]), 1, 0)
        counts = m.function(COUNT)
        if not counts:
            counts = lib.AddFunction(m.handle, COUNT.encode(), kind)
            for name in "convergent", "nounwind":
                lib.AddAttributeAtIndex(counts, llvm.FUNCTION_INDEX, m.attribute(name))
        lib.PositionBuilderBefore(self.builder, end)
        inside = lib.GetCondition(end)
        if m.successors(border.block)[0] != border.way:
            inside = lib.BuildXor(self.builder, inside, m.number(1, m.i1), b"")
        if active is not None:
            inside = lib.BuildSelect(self.builder, active, inside, m.number(0, m.i1), b"")
        number = lib.BuildZExt(self.builder, inside, m.i32, b"")
        some = lib.BuildCall2(self.builder, kind, counts, llvm.array([number]), 1, b"")
        some = lib.BuildICmp(self.builder, llvm.NE, some, m.number(0), b"")
        lib.BuildCondBr(self.builder, some, border.way, border.past)
        lib.InstructionEraseFromParent(end)
        return inside

    def leave_out(self, block, active):
        """Guards the instructions of a block that can fail or have visible effects, and the instructions that use their
        results, so that only active threads execute them."""
        m, lib, inside = self.m, self.lib, self.m.instructions(block)
        marks = [i for i in inside if self.i.marker(i) == INTERCHANGE]
        stop = marks[0] if marks else inside[-1]
        kept, some = [], set()
        for value in inside[: inside.index(stop)]:
            if m.opcode(value) != llvm.PHI and (value in self.failing or some & set(m.operands(value))):
                some.add(value)
                kept.append(value)
        if not kept:
            return
        for value in kept:
            lib.InstructionRemoveFromParent(value)
            lib.PositionBuilderBefore(self.builder, stop)
            m.insert(self.builder, value)
        users = {value: [u for u in m.users(value) if u not in some] for value in kept}
        before = m.instructions(block)[: m.instructions(block).index(kept[0])]
        if before:
            head = m.split(block, before[-1], self.builder)
        else:
            head = m.new_block(None, "", before=block)
            for other in m.predecessors(block):
                m.redirect(other, block, head)
            lib.PositionBuilderAtEnd(self.builder, head)
            lib.BuildBr(self.builder, block)
        body = m.split(block, kept[-1], self.builder)
        lib.InstructionEraseFromParent(m.terminator(head))
        lib.PositionBuilderAtEnd(self.builder, head)
        lib.BuildCondBr(self.builder, active, body, block)
        for value in kept:
            if not users[value]:
                continue
            lib.PositionBuilderBefore(self.builder, m.instructions(block)[0])
            joined = lib.BuildPhi(self.builder, lib.TypeOf(value), b"")
            m.add_ways(joined, [(value, body), (lib.GetUndef(lib.TypeOf(value)), head)])
            for user in users[value]:
                for i, operand in enumerate(m.operands(user)):
                    if operand == value:
                        lib.SetOperand(user, i, joined)

    def may_fail(self, value):
        opcode = self.m.opcode(value)
        if opcode in (llvm.LOAD, llvm.STORE):
            return True
        return ((opcode == llvm.CALL and not self.i.marker(value)) or opcode in DIVISIONS) and not self.i.is_uniform(value)
