"""Lets a thread use an index itself in place of its minimum or maximum with a uniform limit, such as max(i - 1, 0), if this
changes nothing for any thread of the block: neighbouring threads then access neighbouring elements.

Let c be the sum of a thread's index and uniform values. `min(max(c, 0), n)` becomes `all_between ? c : min(max(c, 0), n)`,
where `all_between` is true if c is at least 0 and at most n for all threads, for all such indices of a basic block.
LLVM emits a second loop over the threads, without minima and maxima, in which `all_between` is true.
"""

from . import llvm

# Intrinsics, and the comparison of an index with the limit that holds if the index is not changed.
CLAMPS = {"smin": llvm.SLE, "smax": llvm.SGE, "umin": llvm.ULE, "umax": llvm.UGE}


def predicate(module, value):
    """Returns the comparison that belongs to a minimum or maximum of integers; None for any other value."""
    callee = module.callee(value) if module.opcode(value) == llvm.CALL else None
    name = module.name(callee).split(".") if callee else []
    return CLAMPS.get(name[1]) if len(name) == 3 and name[0] == "llvm" and name[2] in ("i32", "i64") else None


class Clamps:
    """Works on a kernel; `below` is the AllBelow that builds values for it."""

    def __init__(self, below):
        self.below, self.c, self.m, self.lib = below, below.c, below.m, below.lib

    def note(self, block):
        found = self.find(block)
        if not found:
            return
        first = next(value for value in self.c.instructions[block] if value in found)
        self.lib.PositionBuilderBefore(self.c.builder, first)
        holds = None
        for condition in dict.fromkeys(condition for _, conditions in found.values() for condition in conditions):
            one = self.below.build_all(condition, low=self.lib.GetICmpPredicate(condition) in (llvm.SGE, llvm.UGE))
            holds = one if holds is None else self.below.build("And", holds, one)
            self.lib.InstructionEraseFromParent(condition)
        holds = self.below.build("Freeze", holds)
        inner = {index for value in found for index in self.m.arguments(value)}
        for value, (index, _) in found.items():
            if value not in inner:
                self.replace(value, index, holds)

    def find(self, block):
        """Returns (index, comparisons that hold if it is not changed) for the minima and maxima of a block, if all their
        uniform values are computed before the first of them. An index may have been limited before."""
        inside, found = self.c.instructions[block], {}
        before = None
        for number, value in enumerate(inside):
            compares, index, limit = self.clamp(value)
            if not compares:
                continue
            before = set(inside[:number]) if before is None else before
            index, conditions = found.get(index, (index, []))
            self.lib.PositionBuilderBefore(self.c.builder, value)
            condition = self.lib.BuildICmp(self.c.builder, compares, index, limit, b"")
            parts = self.below.parts(condition)
            if parts and parts[1] and self.below.are_before(before, inside, [*parts[1], limit]):
                found[value] = index, [*conditions, condition]
            else:
                self.lib.InstructionEraseFromParent(condition)
        return found

    def clamp(self, value):
        """Returns (predicate, index, limit) of a minimum or maximum of a value that differs between threads and of a uniform
        limit: it is the index if the comparison holds."""
        compares = predicate(self.m, value)
        varying = [argument for argument in self.m.arguments(value) if argument in self.c.varying] if compares else []
        if len(varying) != 1:
            return None, None, None
        return compares, varying[0], next(argument for argument in self.m.arguments(value) if argument != varying[0])

    def replace(self, value, index, holds):
        users = self.m.users(value)
        self.lib.PositionBuilderBefore(self.c.builder, self.lib.GetNextInstruction(value))
        same = self.below.build("Select", holds, index, value)
        for user in users:
            for i, operand in enumerate(self.m.operands(user)):
                if operand == value:
                    self.lib.SetOperand(user, i, same)
