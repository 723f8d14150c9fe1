"""Conditions like `i < n`, of a thread's index and what is the same for all threads, which mostly hold for all of a block.

`b + t < n` becomes `b + t < n || all_below`, where `all_below` says that it holds for the last thread, and that b + t does
not wrap, so that it holds for all: nothing changes, but LLVM makes a second loop, without the condition, for blocks
where that is so.  Vectors with a mask can be several times slower, since not all processors read ahead for them.
"""

from . import llvm

BELOW = {llvm.SLT: llvm.SLT, llvm.SLE: llvm.SLE, llvm.ULT: llvm.ULT, llvm.ULE: llvm.ULE}
BELOW.update({llvm.SGE: llvm.SLT, llvm.SGT: llvm.SLE, llvm.UGE: llvm.ULT, llvm.UGT: llvm.ULE})  # the other way around
SIGNED = (llvm.SLT, llvm.SLE)


class AllBelow:
    def __init__(self, finder, indices):
        self.c, self.m, self.lib = finder, finder.m, finder.lib
        self.indices = indices  # the names of the functions that give them

    def note(self):
        for block in self.c.order:
            for instruction in self.c.instructions[block]:
                if self.m.opcode(instruction) == llvm.ICMP and instruction in self.c.varying:
                    self.note_condition(instruction)

    def note_condition(self, condition):
        value, limit = self.m.operands(condition)
        predicate = self.lib.GetICmpPredicate(condition)
        if predicate not in BELOW or limit in self.c.varying:
            return
        below = BELOW[predicate]
        extension = self.m.opcode(value) if self.lib.IsAInstruction(value) else None
        if extension not in (llvm.ZEXT, llvm.SEXT):
            extension = None
        elif extension == llvm.SEXT and below not in SIGNED:
            return
        terms = self.terms(self.lib.GetOperand(value, 0) if extension else value)
        index = [term for term in terms if self.size(term)]
        if len(index) != 1 or len(terms) < 2 or any(term in self.c.varying for term in terms if term not in index):
            return
        self.lib.PositionBuilderBefore(self.c.builder, condition)
        terms.remove(index[0])
        base = terms[0]
        for term in terms[1:]:
            base = self.build("Add", base, term)
        last = self.build("Sub", self.size(index[0])(), self.m.number(1))
        kind = self.lib.TypeOf(base)
        last = self.build("Add", base, self.build("ZExt", last, kind) if kind != self.m.i32 else last)
        signed = extension == llvm.SEXT or (not extension and below in SIGNED)
        all_below = self.build("ICmp", llvm.SGE if signed else llvm.UGE, last, base)
        if extension:
            last = self.build("SExt" if signed else "ZExt", last, self.lib.TypeOf(value))
        all_below = self.build("And", all_below, self.build("ICmp", below, last, limit))
        self.lib.PositionBuilderBefore(self.c.builder, self.lib.GetNextInstruction(condition))
        if below == predicate:
            either = self.build("Or", all_below, condition)
        else:
            all_below = self.build("Xor", all_below, self.m.number(1, self.m.i1))
            either = self.build("And", all_below, condition)
        users = [user for user in self.m.users(condition) if user != either]
        for user in users:
            for i, operand in enumerate(self.m.operands(user)):
                if operand == condition:
                    self.lib.SetOperand(user, i, either)

    def terms(self, value):
        """What a value is the sum of."""
        if not self.m.is_binary(value, llvm.ADD) or value not in self.c.varying:
            return [value]
        return [term for operand in self.m.operands(value) for term in self.terms(operand)]

    def size(self, term):
        """Of an index of the thread: what builds the number of threads that it counts.  None of anything else."""
        if self.m.is_binary(term, llvm.ZEXT):
            term = self.lib.GetOperand(term, 0)
        marker = self.c.marker(term) if self.lib.IsAInstruction(term) else None
        if marker not in self.indices:
            return None
        x, y, z = self.c.size
        sizes = (lambda: x, lambda: y, lambda: z, lambda: self.build("Mul", self.build("Mul", x, y), z))
        return sizes[self.indices.index(marker)]

    def build(self, what, *arguments):
        return getattr(self.lib, "Build" + what)(self.c.builder, *arguments, b"")
