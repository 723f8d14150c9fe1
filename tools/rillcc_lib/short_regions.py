"""Finds out what a version of a kernel for blocks of one size (usual_blocks.py) can do at compile time.

A region is *short* if it contains no loop and few instructions, and if a block executes it once, or for fewer threads
each time, as in a sum that halves the number of its threads at each barrier. If the number of threads is a constant, the
loop over the threads is unrolled once it is vectorized. If all accesses to a shared array are in short regions and at
regular distances, each access is then to a constant part of the array, and LLVM keeps the array in registers.
"""

from . import flow, llvm
from .ir import PURE

MOST_INSTRUCTIONS = 40  # of a short region that differ between threads
FADD, FMUL = 9, 13  # opcodes
COMMUTATIVE = (llvm.ADD, llvm.MUL, FADD, FMUL, llvm.AND, llvm.OR, llvm.XOR)
MOST_BYTES = 1 << 14  # of a shared array that is kept in registers


class ShortRegions:
    """Works on the regions of a kernel before their values are replaced."""

    def __init__(self, writer):
        self.w, self.c, self.m, self.lib = writer, writer.c, writer.m, writer.lib
        graph = {region: region.exits for region in writer.regions}
        self.repeated = {region for region in writer.regions if region in flow.reachable(graph, region.exits)}

    def is_short(self, region, few):
        """Returns whether a region is short. `few` has the threads that do something in it."""
        c, inside = self.c, set(region.blocks)
        fewer = few and not few.every and not few.is_one() and self.m.constant(few.limit) is None
        if not self.w.is_flat or not (fewer or region not in self.repeated):
            return False
        if len([i for i in self.w.region_instructions(region) if i in c.varying]) > MOST_INSTRUCTIONS:
            return False
        graph = {block: [s for s in c.successors[block] if s in inside and s != region.entry] for block in region.blocks}
        return not any(block in flow.reachable(graph, graph[block]) for block in region.blocks)

    def arrays(self, short):
        """Returns the shared arrays to which all accesses are in short regions and at regular distances. A region that one
        thread executes for all is short as well."""
        m, lib, found = self.m, self.lib, []
        for variable in m.chain(lib.GetFirstGlobal(m.handle), lib.GetNextGlobal):
            if not lib.IsThreadLocal(variable) or lib.IsDeclaration(variable) or m.name(variable).endswith("rill_services"):
                continue
            users = [user for user in m.users(variable) if user in self.c.block_of]
            if not users or lib.ABISizeOfType(m.layout, lib.GlobalGetValueType(variable)) > MOST_BYTES:
                continue
            calls = all(self.w.intrinsic(user).startswith("llvm.threadlocal") for user in users)
            if calls and all(self.is_regular(user, short) for call in users for user in self.w.derived_users(call)):
                found.append(variable)
        return found

    def is_regular(self, user, short):
        """Returns whether an instruction that uses an address in an array belongs to a short region, and adds only regular
        distances."""
        if self.m.opcode(user) == llvm.GEP:
            return all(map(self.is_linear, self.m.operands(user)[1:]))
        region = self.c.owner[self.c.block_of[user]]
        return (region in short or region.scalar) and self.m.opcode(user) in (llvm.LOAD, llvm.STORE, llvm.CALL)

    def is_linear(self, value):
        """Returns whether a value is uniform, or computed from the thread's index and uniform values."""
        if value not in self.c.varying or self.c.marker(value):
            return True
        return self.m.opcode(value) in PURE and all(map(self.is_linear, self.m.operands(value)))

    # The order of loads

    def sort_loads(self, short):
        """Lets `s[t] += s[t + half]` load s[t] first. If the array is in registers, these are loads of the numbers that
        were stored there, and LLVM keeps their order: processors read memory ahead if addresses ascend."""
        for region in short:
            for block in region.blocks:
                inside = self.c.instructions[block]
                stored = {self.lib.GetOperand(i, 1): i for i in inside if self.m.opcode(i) == llvm.STORE}
                for later in [i for i in inside if self.m.opcode(i) == llvm.LOAD and self.lib.GetOperand(i, 0) in stored]:
                    self.sort(block, later)

    def sort(self, block, later):
        """Swaps a load with the load before it, and the operands of the operation that uses both, if this operation is
        commutative."""
        m, lib = self.m, self.lib
        inside = m.instructions(block)
        before = inside[: inside.index(later)]
        loads = [i for i in before if m.opcode(i) == llvm.LOAD]
        users = m.users(later)
        if not loads or len(users) != 1 or m.operands(users[0]) != [loads[-1], later] or m.opcode(users[0]) not in COMMUTATIVE:
            return
        between = before[before.index(loads[-1]) :]
        if lib.GetOperand(later, 0) in between or any(m.opcode(i) not in PURE for i in between[1:]) or lib.GetVolatile(later):
            return
        lib.InstructionRemoveFromParent(later)
        lib.PositionBuilderBefore(self.c.builder, loads[-1])
        m.insert(self.c.builder, later)
        lib.SetOperand(users[0], 0, later)
        lib.SetOperand(users[0], 1, loads[-1])
