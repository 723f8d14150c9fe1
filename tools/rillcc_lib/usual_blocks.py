"""Adds a version of kernels with synchronization points or interchanged loops in which the block size is a constant, the
usual size.

Between two synchronization points, an outer loop iterates over the rows of a block, and an inner one over the threads of
a row. In a kernel with many synchronization points these loops are short, as in a sum that halves the number of its
threads at each barrier, and most instructions only compute trip counts. If LLVM knows the block size, it removes the
outer loop or unrolls both. The order of the loops does not change, so each thread computes the same.
"""

from . import llvm

FLAT, SQUARE = (256, 1, 1), (16, 16, 1)
MOST_INSTRUCTIONS = 1500  # larger kernels get no second version
USUAL, CHOOSES = ".usual", ".by_size"  # after the function's name
MARKERS = ["rill_ir_size_" + axis for axis in "xyz"]


class UsualBlocks:
    """The functions of a module that run blocks, with their kernels cut."""

    def __init__(self, module):
        self.m, self.lib = module, module.lib
        self.kernels = []

    def note(self, function, size, is_flat):
        """Adds a function to the list, unless it is large or has debug information. `size` has the instructions before the
        loops that load the block size."""
        if not all(map(self.lib.IsAInstruction, size)) or self.lib.GetSubprogram(function):
            return
        if sum(len(self.m.instructions(block)) for block in self.m.blocks(function)) <= MOST_INSTRUCTIONS:
            self.kernels.append((function, size, FLAT if is_flat else SQUARE))

    def add(self):
        if not self.kernels:
            return
        self.builder = self.lib.CreateBuilderInContext(self.m.context)
        made = [self.add_version(*kernel) for kernel in self.kernels]
        self.lib.DisposeBuilder(self.builder)
        self.m.run_passes("always-inline")
        for function, usual, numbers in made:
            for version in function, usual:
                self.lib.AddAttributeAtIndex(version, llvm.FUNCTION_INDEX, self.m.attribute("noinline"))
            for marker, number in zip(MARKERS, numbers):
                for call in self.calls(marker, usual):
                    self.lib.ReplaceAllUsesWith(call, self.m.number(number))
                    self.lib.InstructionEraseFromParent(call)
                for call in self.calls(marker, function):
                    self.lib.ReplaceAllUsesWith(call, self.lib.GetOperand(call, 0))
                    self.lib.InstructionEraseFromParent(call)
        for marker in map(self.m.function, MARKERS):
            self.lib.DeleteFunction(marker)

    def calls(self, marker, function):
        users = self.m.users(self.m.function(marker))
        return [call for call in users if self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(call)) == function]

    def add_version(self, function, size, numbers):
        """Adds the version, which so far only calls the function, and the function that chooses the version for a block."""
        lib, m = self.lib, self.m
        kind, name = lib.GlobalGetValueType(function), m.name(function)
        choice, usual = [lib.AddFunction(m.handle, text.encode(), kind) for text in (name + CHOOSES, name + USUAL)]
        lib.ReplaceAllUsesWith(function, choice)
        for made in choice, usual:
            lib.SetLinkage(made, llvm.INTERNAL_LINKAGE)
            m.copy_attributes(function, made)
        start = lib.AppendBasicBlockInContext(m.context, choice, b"")
        lib.PositionBuilderAtEnd(self.builder, start)
        copies = {lib.GetParam(function, 0): lib.GetParam(choice, 0)}
        is_usual = None
        for value, number in zip(size, numbers):
            equal = lib.BuildICmp(self.builder, llvm.EQ, self.copy(value, copies), m.number(number), b"")
            is_usual = equal if is_usual is None else lib.BuildAnd(self.builder, is_usual, equal, b"")
        ways = [m.add_call(self.builder, choice, callee) for callee in (usual, function)]
        lib.PositionBuilderAtEnd(self.builder, start)
        lib.BuildCondBr(self.builder, is_usual, *ways)
        for value, marker in zip(size, MARKERS):
            self.mark(value, marker)
        kind = lib.GetEnumAttributeKindForName(b"noinline", 8)
        lib.RemoveEnumAttributeAtIndex(function, llvm.FUNCTION_INDEX, kind)
        m.add_call(self.builder, usual, function, m.attribute("alwaysinline"))
        return function, usual, numbers

    def copy(self, value, copies):
        """Copies a value that is loaded or computed before the threads start."""
        if self.lib.IsAInstruction(value) and value not in copies:
            operands = [self.copy(operand, copies) for operand in self.m.operands(value)]
            copies[value] = self.lib.InstructionClone(value)
            self.m.insert(self.builder, copies[value])
            for i, operand in enumerate(operands):
                self.lib.SetOperand(copies[value], i, operand)
        return copies.get(value, value)

    def mark(self, value, name):
        """Puts a call of a marker between a value and its users. add() replaces it in each version."""
        lib, m = self.lib, self.m
        kind = lib.FunctionType(m.i32, llvm.array([m.i32]), 1, 0)
        marker = m.function(name) or lib.AddFunction(m.handle, name.encode(), kind)
        lib.PositionBuilderBefore(self.builder, lib.GetNextInstruction(value))
        call = lib.BuildCall2(self.builder, kind, marker, llvm.array([m.number(0)]), 1, b"")
        lib.ReplaceAllUsesWith(value, call)
        lib.SetOperand(call, 0, value)
