"""Adds a version of kernels with synchronization points or interchanged loops in which the block size is a constant, the
usual size.

Between two synchronization points, an outer loop iterates over the rows of a block, and an inner one over the threads of
a row. In a kernel with many synchronization points these loops are short, as in a sum that halves the number of its
threads at each barrier, and most instructions only compute trip counts. If LLVM knows the block size, it removes the
outer loop or unrolls both. The order of the loops does not change, so each thread computes the same.

A block of the usual size uses this version only if all_below.py has found that the conditions such as `i < n` hold for
all its threads, as in most blocks. The version then has no code for other blocks. This lets LLVM keep shared arrays
in registers (short_regions.py): if loops over the threads are unrolled, each access to such an array is to a constant
part of it.
"""

from dataclasses import dataclass

from . import llvm
from .ir import PURE

FLAT, SQUARE = (256, 1, 1), (16, 16, 1)
MOST_INSTRUCTIONS = 8000  # larger kernels get no second version
USUAL, CHOOSES = ".usual", ".by_size"  # after the function's name
MARKERS = ["rill_ir_size_" + axis for axis in "xyz"]
LINE = 64  # bytes of a cache line


@dataclass
class Kernel:
    """A function that runs blocks."""

    function: int
    size: list  # the instructions before the loops that load the block size
    usual: tuple  # the usual size
    short: dict  # maps the metadata of a loop to that of an unrolled one, and whether a block executes it once
    arrays: list  # shared arrays that may be kept in registers
    tested: int = 0  # how many conditions are tested before the version is called


class UsualBlocks:
    """The functions of a module that run blocks, with their kernels cut. `callers` is a function that returns the direct
    and indirect callers of functions."""

    def __init__(self, module, callers):
        self.m, self.lib, self.callers = module, module.lib, callers
        self.kernels = []

    def note(self, finder, writer):
        """Adds a function to the list, unless it is large or has debug information."""
        function, size = finder.function, finder.size
        if not all(map(self.lib.IsAInstruction, size)) or self.lib.GetSubprogram(function):
            return
        if sum(len(self.m.instructions(block)) for block in self.m.blocks(function)) > MOST_INSTRUCTIONS:
            return
        usual = FLAT if writer.is_flat else SQUARE
        self.kernels.append(Kernel(function, size, usual, writer.short, writer.arrays))

    def add(self):
        if not self.kernels:
            return
        self.builder = self.lib.CreateBuilderInContext(self.m.context)
        made = [self.add_version(kernel) for kernel in self.kernels]
        self.m.run_passes("always-inline")
        for kernel, usual in zip(self.kernels, made):
            for version in kernel.function, usual:
                self.lib.AddAttributeAtIndex(version, llvm.FUNCTION_INDEX, self.m.attribute("noinline"))
            known = self.conditions(usual)
            if len(known) != kernel.tested:  # a version may assume only the conditions that are tested before it is called
                self.drop(kernel, usual)
                continue
            for condition, _, holds in known:
                self.lib.ReplaceAllUsesWith(condition, self.m.number(holds, self.m.i1))
            for marker, number in zip(MARKERS, kernel.usual):
                for call in self.calls(marker, usual):
                    self.replace(call, self.m.number(number))
                for call in self.calls(marker, kernel.function):
                    self.replace(call, self.lib.GetOperand(call, 0))
            self.unroll(kernel, usual)
            for variable in kernel.arrays:
                self.keep_on_stack(variable, usual)
        self.lib.DisposeBuilder(self.builder)
        for marker in map(self.m.function, MARKERS):
            self.lib.DeleteFunction(marker)

    def drop(self, kernel, usual):
        """Lets all blocks use the function itself."""
        self.lib.ReplaceAllUsesWith(usual, kernel.function)
        self.lib.DeleteFunction(usual)
        for marker in MARKERS:
            for call in self.calls(marker, kernel.function):
                self.replace(call, self.lib.GetOperand(call, 0))

    def replace(self, call, value):
        self.lib.ReplaceAllUsesWith(call, value)
        self.lib.InstructionEraseFromParent(call)

    def calls(self, marker, function):
        users = self.m.users(self.m.function(marker))
        return [call for call in users if self.lib.GetBasicBlockParent(self.lib.GetInstructionParent(call)) == function]

    def add_version(self, kernel):
        """Adds and returns the version, which so far only calls the function, and adds the function that chooses the
        version for a block."""
        lib, m, function = self.lib, self.m, kernel.function
        kind, name = lib.GlobalGetValueType(function), m.name(function)
        choice, usual = [lib.AddFunction(m.handle, text.encode(), kind) for text in (name + CHOOSES, name + USUAL)]
        lib.ReplaceAllUsesWith(function, choice)
        for made in choice, usual:
            lib.SetLinkage(made, llvm.INTERNAL_LINKAGE)
            m.copy_attributes(function, made)
        start = lib.AppendBasicBlockInContext(m.context, choice, b"")
        lib.PositionBuilderAtEnd(self.builder, start)
        copies = {lib.GetParam(function, 0): lib.GetParam(choice, 0)}
        is_usual = m.number(1, m.i1)
        for value, number in zip(kernel.size, kernel.usual):
            equal = lib.BuildICmp(self.builder, llvm.EQ, self.copy(value, copies), m.number(number), b"")
            is_usual = lib.BuildAnd(self.builder, is_usual, equal, b"")
        ways = [m.add_call(self.builder, choice, callee) for callee in (usual, function)]
        test = m.new_block(choice, "")
        lib.PositionBuilderAtEnd(self.builder, start)
        lib.BuildCondBr(self.builder, is_usual, test, ways[1])
        lib.PositionBuilderAtEnd(self.builder, test)
        all_hold = m.number(1, m.i1)
        known = self.conditions(function)
        kernel.tested = len(known)
        for _, value, holds in known:
            # If the kernel would not have reached this condition, it may be poison.
            known = lib.BuildFreeze(self.builder, self.copy(value, copies), b"")
            equal = lib.BuildICmp(self.builder, llvm.EQ, known, m.number(holds, m.i1), b"")
            all_hold = lib.BuildAnd(self.builder, all_hold, equal, b"")
        lib.BuildCondBr(self.builder, all_hold, *ways)
        for value, marker in zip(kernel.size, MARKERS):
            self.mark(value, marker)
        kind = lib.GetEnumAttributeKindForName(b"noinline", 8)
        lib.RemoveEnumAttributeAtIndex(function, llvm.FUNCTION_INDEX, kind)
        m.add_call(self.builder, usual, function, m.attribute("alwaysinline"))
        return usual

    def conditions(self, function):
        """Returns the conditions that all_below.py has joined with a value that is known before the threads start. For each
        of them, returns this value, and the number that both have if all threads agree."""
        instructions = [i for block in self.m.blocks(function) for i in self.m.instructions(block)]
        joined = [i for i in instructions if self.lib.GetMetadata(i, self.m.joined_kind)]
        parts = [(i, self.lib.GetOperand(i, 0), int(self.m.opcode(i) == llvm.OR)) for i in joined]
        return [part for part in parts if self.is_early(part[1])]

    def is_early(self, value):
        """Returns whether a value can be computed before the threads start."""
        m, lib = self.m, self.lib
        if not lib.IsAInstruction(value):
            return True
        block, opcode = lib.GetInstructionParent(value), m.opcode(value)
        if opcode == llvm.LOAD:
            known = block == lib.GetEntryBasicBlock(lib.GetBasicBlockParent(block)) and not lib.GetVolatile(value)
        elif opcode == llvm.CALL:
            return m.callee(value) is not None and m.name(m.callee(value)) in MARKERS
        else:
            known = opcode in PURE
        return known and all(map(self.is_early, m.operands(value)))

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

    # In the version

    def unroll(self, kernel, function):
        """Makes LLVM unroll short loops over the threads completely once it has vectorized them, so that shared arrays are
        in registers. LLVM would then move the loads of a loop to the operations that use them, and reverse their order on
        the way, and processors would not read ahead. An empty statement of assembly, which might write memory, keeps
        loads in front of it."""
        m, lib = self.m, self.lib
        kind = lib.GetMDKindIDInContext(m.context, b"llvm.loop", 9)
        nothing = lib.FunctionType(m.void, llvm.array([]), 0, 0)
        assembly = lib.GetInlineAsm(nothing, b"", 0, b"", 0, 1, 0, 0, 0)
        for block in m.blocks(function) if kernel.arrays else ():
            end = m.terminator(block)
            unrolled, once = kernel.short.get(lib.GetMetadata(end, kind), (None, False))
            if unrolled:
                lib.SetMetadata(end, kind, unrolled)
            if once:
                after = m.successors(block)[1]
                lib.PositionBuilderBefore(self.builder, m.instructions(after)[len(m.phis(after))])
                lib.BuildCall2(self.builder, nothing, assembly, llvm.array([]), 0, b"")

    def keep_on_stack(self, variable, function):
        """Replaces a shared array by a variable on the stack, unless the kernel calls another function that uses the array.
        Shared memory has no defined contents when a block starts. The variable is set to zero nevertheless, because
        rill_block_sum requires zeros in its array, and the value of a variable that was never stored is undefined in LLVM."""
        m, lib = self.m, self.lib
        parents = {call: lib.GetBasicBlockParent(lib.GetInstructionParent(call)) for call in m.users(variable) if lib.IsAInstruction(call)}
        if function in self.callers(set(parents.values()) - {function}):
            return
        kind = lib.GlobalGetValueType(variable)
        lib.PositionBuilderBefore(self.builder, m.instructions(lib.GetEntryBasicBlock(function))[0])
        place = lib.BuildAlloca(self.builder, kind, b"")
        lib.SetAlignment(place, max(LINE, lib.GetAlignment(variable)))
        lib.BuildMemSet(self.builder, place, m.number(0, m.i8), m.number(lib.ABISizeOfType(m.layout, kind), m.i64), LINE)
        for call, parent in parents.items():
            if parent == function:
                self.replace(call, place)
