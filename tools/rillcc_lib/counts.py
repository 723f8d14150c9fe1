"""Replaces comparisons of __syncthreads_count(1) with the number of threads in a block by true, where no thread can have
ended.

rill_block_sum counts the threads that take part, because its result must leave out threads that have ended. In most
kernels none has: before the count, all threads reach the same barriers in the same order, each of them once. LLVM then
removes the code for the other case, and the count becomes a barrier.
"""

from . import flow, llvm
from .regions import BARRIER, COUNT, SYNC_POINTS

SIZES = {"rill_ir_block_dim_x", "rill_ir_block_dim_y", "rill_ir_block_dim_z"}


class Counts:
    """Works on a kernel that has not been cut."""

    def __init__(self, module, function):
        self.m, self.lib, self.function = module, module.lib, function

    def marker(self, value):
        callee = self.m.callee(value) if self.lib.IsAInstruction(value) and self.lib.IsACallInst(value) else None
        return self.m.name(callee) if callee else None

    def fold(self):
        """Replaces all comparisons for which this is possible; returns whether there is one."""
        folded = False
        while any(self.fold_count(call) for call in self.certain()):
            folded = True
        return folded

    def certain(self):
        """Returns the counts that all threads reach, each of them once, after the same barriers."""
        m = self.m
        graph = {block: self.ways(block) for block in m.blocks(self.function)}
        entry = self.lib.GetEntryBasicBlock(self.function)
        graph = {block: graph[block] for block in flow.reachable(graph, [entry])}
        barriers = {}
        for block in graph:
            calls = [i for i in m.instructions(block) if self.marker(i) in SYNC_POINTS]
            calls = [call for call in calls if SYNC_POINTS[self.marker(call)].waits == BARRIER]
            if calls:
                barriers[block] = calls
        after = flow.postdominators(graph, [block for block in graph if not graph[block]])
        always, block = [], entry
        while block in graph:  # the blocks through which each thread passes
            if block not in flow.reachable(graph, graph[block]):
                always.append(block)
            block = after.get(block, flow.EXIT)
        found = []
        for block in always:
            if block in barriers:
                before = flow.reachable(graph, [entry], {block})
                if all(other in always for other in before if other in barriers):
                    found += [call for call in barriers[block] if self.marker(call) == COUNT]
        return found

    def ways(self, block):
        """Returns the successors of a block, without those that a constant condition excludes."""
        end = self.m.terminator(block)
        ways = list(dict.fromkeys(self.m.successors(block)))
        if self.m.opcode(end) != llvm.BR or len(ways) < 2:
            return ways
        taken = self.m.constant(self.lib.GetCondition(end))
        return ways if taken is None else [self.m.successors(block)[1 - taken]]

    def fold_count(self, call):
        """Replaces the comparisons of one count; returns whether there is one."""
        m, lib = self.m, self.lib
        if not m.constant(m.arguments(call)[0]):
            return False
        known = [user for user in m.users(call) if self.compares_with_size(user, call)]
        for user in known:
            equal = lib.GetICmpPredicate(user) == llvm.EQ
            lib.ReplaceAllUsesWith(user, m.number(equal, m.i1))
            lib.InstructionEraseFromParent(user)
        if not m.users(call):
            self.replace_by_barrier(call)
        return bool(known)

    def compares_with_size(self, user, call):
        """Returns whether an instruction compares the count with the number of threads in a block."""
        if not self.m.is_binary(user, llvm.ICMP) or self.lib.GetICmpPredicate(user) not in (llvm.EQ, llvm.NE):
            return False
        return any(self.factors(other) == sorted(SIZES) for other in self.m.operands(user) if other != call)

    def factors(self, value):
        """Splits a value into the factors of a product. Returns the sorted names of the functions that return the factors,
        with "" for a factor that is not a call."""
        if self.m.is_binary(value, llvm.MUL):
            return sorted(name for operand in self.m.operands(value) for name in self.factors(operand))
        return [self.marker(value) or ""]

    def replace_by_barrier(self, call):
        """Replaces a count that nothing uses."""
        m, lib = self.m, self.lib
        kind, name = lib.FunctionType(m.void, llvm.array([]), 0, 0), "rill_ir_barrier"
        barrier = m.function(name)
        if not barrier:
            barrier = lib.AddFunction(m.handle, name.encode(), kind)
            m.copy_attributes(m.callee(call), barrier)
        builder = lib.CreateBuilderInContext(m.context)
        lib.PositionBuilderBefore(builder, call)
        lib.InstructionSetDebugLoc(lib.BuildCall2(builder, kind, barrier, llvm.array([]), 0, b""), lib.InstructionGetDebugLoc(call))
        lib.DisposeBuilder(builder)
        lib.InstructionEraseFromParent(call)
