"""Moves warp functions out of conditions on which all lanes of a warp agree.

    if (threadIdx.x < 32) {
      v = threadIdx.x < warps ? shared[threadIdx.x] : 0;
      v += __shfl_down_sync(~0u, v, 16);
      if (threadIdx.x == 0) *sum = v;
    }

Some warps reach this shuffle and others do not, so each thread of the kernel would have to store which region it
executes next. Warps exchange nothing with one another there, so all warps can execute the shuffle:

    v = threadIdx.x < 32 ? ... : 0;
    v += __shfl_down_sync(~0u, v, 16);
    if (threadIdx.x < 32 && threadIdx.x == 0) *sum = v;

The condition remains around code with visible effects: loads, stores and branches. This is done if all remaining
threads reach the condition together (regions.py), in a version of the kernel for blocks whose rows consist of whole
warps (versions.py).
"""

from . import flow, llvm
from .ir import PURE

WHOLE_WARPS = b"rill-full-warps"  # an attribute of a function that is called only for such blocks
LANES = 32
DEPTH = 12  # largest depth of an expression that is examined
EXTENSIONS = (llvm.SEXT, llvm.ZEXT, llvm.TRUNC)
BELOW = (llvm.ULT, llvm.SLT, llvm.UGE, llvm.SGE)  # comparisons with a multiple of 32 on which the lanes of a warp agree
UP_TO = (llvm.ULE, llvm.SLE, llvm.UGT, llvm.SGT)  # comparisons with a multiple of 32 less one on which the lanes of a warp agree


def promise(module, function):
    """Marks a kernel that is called only for blocks whose rows consist of whole warps."""
    module.set_text_attribute(function, WHOLE_WARPS)


def is_for(module, function):
    return module.has_text_attribute(function, WHOLE_WARPS)


class Agreed:
    """Finds values that are the same for all lanes of a warp, in blocks whose rows consist of whole warps."""

    def __init__(self, finder):
        self.c, self.m, self.lib = finder, finder.m, finder.lib
        self.known = {}  # results, because expressions share parts

    def agree(self, value, depth=DEPTH):
        """Returns whether a value is the same for all lanes of a warp."""
        if value not in self.c.varying:
            return True
        if depth <= 0 or not self.lib.IsAInstruction(value):
            return False
        if value not in self.known:
            self.known[value] = self.find_agree(value, depth)
        return self.known[value]

    def find_agree(self, value, depth):
        marker, opcode = self.c.marker(value), self.m.opcode(value)
        if marker:
            return marker in ("rill_ir_thread_y", "rill_ir_thread_z")
        operands = self.m.operands(value)
        if opcode in (llvm.LSHR, llvm.ASHR, llvm.UDIV) and self.is_consecutive(operands[0], depth - 1):
            number = self.m.constant(operands[1]) or 0
            return number % LANES == 0 and number > 0 if opcode == llvm.UDIV else number >= 5
        if opcode == llvm.AND and self.is_consecutive(operands[0], depth - 1):
            return self.m.constant(operands[1]) is not None and self.m.constant(operands[1]) % LANES == 0
        if opcode == llvm.ICMP and self.is_consecutive(operands[0], depth - 1):
            predicate, number = self.lib.GetICmpPredicate(value), self.m.constant(operands[1])
            if predicate in BELOW:
                return self.is_multiple(operands[1]) and self.agree(operands[1], depth - 1)
            return predicate in UP_TO and number is not None and number % LANES == LANES - 1
        return opcode in PURE and opcode != llvm.FREEZE and all(self.agree(operand, depth - 1) for operand in operands)

    def is_consecutive(self, value, depth):
        """Returns whether a value is a multiple of 32 for the first lane of a warp, and grows by one with each lane."""
        if value not in self.c.varying or depth <= 0:
            return False
        if self.c.marker(value):
            return self.c.marker(value) in ("rill_ir_thread_x", "rill_ir_thread")
        opcode, operands = self.m.opcode(value), self.m.operands(value)
        if opcode in (llvm.ADD, llvm.OR):
            ways = (operands, operands[::-1])
            return any(self.is_consecutive(a, depth - 1) and self.is_multiple(b) and self.agree(b, depth - 1) for a, b in ways)
        if opcode in EXTENSIONS:
            return self.lib.TypeOf(value) in (self.m.i32, self.m.i64) and self.is_consecutive(operands[0], depth - 1)
        return False

    def is_multiple(self, value, depth=DEPTH // 2):
        """Returns whether a value is a multiple of 32."""
        if value == self.c.size[0] or (self.lib.IsAInstruction(value) and self.c.marker(value) == "rill_ir_block_dim_x"):
            return True
        if self.lib.IsAConstantInt(value):
            return self.m.constant(value) % LANES == 0
        if depth == 0 or not self.lib.IsAInstruction(value):
            return False
        opcode, operands = self.m.opcode(value), self.m.operands(value)
        if opcode == llvm.SHL:
            by = self.m.constant(operands[1])
            return by is not None and (by >= 5 or self.is_multiple(operands[0], depth - 1))
        if opcode in (llvm.ADD, llvm.SUB):
            return all(self.is_multiple(operand, depth - 1) for operand in operands)
        return opcode in (llvm.MUL, llvm.AND, *EXTENSIONS) and any(self.is_multiple(operand, depth - 1) for operand in operands)


class WholeWarps:
    """Works on a kernel that a Finder has read."""

    def __init__(self, finder, masks):
        self.c, self.m, self.lib, self.builder = finder, finder.m, finder.lib, finder.builder
        self.agreed = Agreed(finder)
        self.masks = masks  # warp function: the number of the argument that names the lanes, or None

    def take(self):
        """Lets all warps execute the warp functions under one such condition; returns whether there is one."""
        for block in self.c.order:
            end = self.m.terminator(block)
            if block in self.c.divergent or self.m.opcode(end) != llvm.BR or end not in self.c.varying:
                continue
            if len(self.c.successors[block]) == 2 and self.agreed.agree(self.lib.GetCondition(end)) and self.move_out_of_branch(block):
                return True
        return False

    def move_out_of_branch(self, block):
        """Lets all warps execute the warp functions under the condition at the end of a block, if possible; returns
        whether it was."""
        c = self.c
        after = c.after[0].get(block, flow.EXIT)
        ways = self.m.successors(block)
        sides = [flow.reachable(c.successors, [way], {after}) - {after} for way in ways]
        syncs = [[b for b in c.order if b in side and b in c.sync_points and not c.is_free(b)] for side in sides]
        if sides[0] & sides[1] or bool(syncs[0]) == bool(syncs[1]):
            return False
        if syncs[1]:
            ways, sides, syncs = ways[::-1], sides[::-1], syncs[::-1]
        if not self.is_chain(block, sides[0], syncs[0], ways[0], after):
            return False
        for free in [b for b in sides[0] if c.is_free(b)]:
            self.lib.InstructionEraseFromParent(c.sync_points.pop(free))
        self.guard(block, ways[0], ways[1], sides[0], syncs[0])
        return True

    def is_chain(self, block, inside, syncs, first, after):
        """Returns whether each thread that enters executes all warp functions inside, one after another in the order of
        `syncs`, and each for all lanes."""
        c = self.c
        if block in inside or not all(self.is_for_all(c.sync_points[sync]) for sync in syncs):
            return False
        if any(before not in inside and before != block for b in inside for before in c.predecessors[b]):
            return False
        chain, at = [], first
        while at in inside:
            chain.append(at)
            at = c.after[0].get(at, flow.EXIT)
        if at != after or [b for b in chain if b in syncs] != syncs:
            return False
        graph = {b: [s for s in c.successors[b] if s in inside] for b in inside}
        return not any(b in flow.reachable(graph, graph[b]) for b in (first, *syncs))

    def is_for_all(self, call):
        name = self.c.marker(call)
        if name not in self.masks:
            return False
        mask = self.masks[name]
        return mask is None or self.m.constant(self.m.arguments(call)[mask]) == 0xFFFFFFFF

    # The code between two warp functions

    def guard(self, block, first, other, inside, syncs):
        """Puts the condition in front of each part between the warp functions, the first of which begins with `first`.
        Threads for which the condition is false go to `other`."""
        m, c = self.m, self.c
        self.condition, self.holds = self.lib.GetCondition(m.terminator(block)), m.successors(block)[0] == first
        before = block
        for sync in syncs:
            part = flow.reachable(c.successors, [first], {sync}) - {sync}
            call, own = c.sync_points[sync], m.instructions(sync)
            seen = [i for i in own[: own.index(call)] if m.opcode(i) != llvm.PHI and not self.is_harmless(i)]
            if seen:
                front = m.split(sync, seen[-1], self.builder)
                first, part = front if first == sync else first, part | {front}
            self.freeze(call)
            if part:
                self.join(part, sync, self.split_paths(before, first, sync))
            elif before == block:
                self.end(block, self.lib.BuildBr, first)
            before, first = sync, m.successors(sync)[0]
        if first not in inside:  # no code follows the last warp function
            nothing = m.new_block(None, "", before=first)
            self.lib.PositionBuilderAtEnd(self.builder, nothing)
            self.lib.BuildBr(self.builder, first)
            self.replace_predecessor(first, before, nothing)
            m.redirect(before, first, nothing)
            first = nothing
        self.replace_predecessor(other, block, self.split_paths(before, first, other))

    def split_paths(self, before, first, other):
        """Lets threads for which the condition is false go to `other` instead of to the part that begins with `first`.
        Returns the block that ends with this branch."""
        m = self.m
        if self.lib.GetNumSuccessors(m.terminator(before)) == 1:
            place = m.new_block(None, "", before=first)
            m.redirect(before, first, place)
            self.replace_predecessor(first, before, place)
            before = place
        self.end(before, self.lib.BuildCondBr, self.condition, *((first, other) if self.holds else (other, first)))
        return before

    def end(self, block, build, *arguments):
        """Ends a block with a branch."""
        if self.m.terminator(block):
            self.lib.InstructionEraseFromParent(self.m.terminator(block))
        self.lib.PositionBuilderAtEnd(self.builder, block)
        build(self.builder, *arguments)

    def replace_predecessor(self, block, old, new):
        """Replaces the predecessor `old` by `new` in the phis of a block."""
        for phi in self.m.phis(block) if old != new else ():
            self.m.replace_phi(phi, lambda v, b: (v, new if b == old else b), self.builder)

    def is_harmless(self, value):
        """Returns whether all threads may compute a value."""
        return self.m.opcode(value) in PURE or self.c.is_computation(value) or self.is_index(value)

    def is_index(self, value):
        return (self.c.marker(value) or "").startswith("rill_ir_thread")

    def freeze(self, call):
        """Freezes the arguments of a warp function: in threads that skipped a part they are undefined, and any number
        is valid."""
        for i, argument in enumerate(self.m.arguments(call)):
            if self.lib.IsAInstruction(argument) and (i > 0 or not self.exchanges_value(call)):
                self.lib.PositionBuilderBefore(self.builder, call)
                self.lib.SetOperand(call, i, self.lib.BuildFreeze(self.builder, argument, b""))

    def exchanges_value(self, call):
        return self.c.marker(call).startswith("rill_ir_shuffle")

    def join(self, part, sync, parted):
        """Adds zeros to the phis for the threads that skipped a part; these values are not used."""
        m, lib = self.m, self.lib
        order = self.m.blocks(self.c.function)
        befores = [b for b in order if b != parted and sync in m.successors(b)]
        for phi in m.phis(sync):
            m.add_ways(phi, [(lib.ConstNull(lib.TypeOf(phi)), parted)])
        for value in [i for b in order if b in part for i in m.instructions(b)]:
            uses = [(user, i) for user in m.users(value) for i in self.uses_outside(user, value, part)]
            if uses:
                lib.PositionBuilderBefore(self.builder, m.instructions(sync)[0])
                phi = lib.BuildPhi(self.builder, lib.TypeOf(value), b"")
                for user, i in uses:
                    lib.SetOperand(user, i, phi)
                m.add_ways(phi, [(value, b) for b in befores] + [(lib.ConstNull(lib.TypeOf(value)), parted)])

    def uses_outside(self, user, value, part):
        """Returns the indices of the operands by which a value of a part is used outside the part."""
        operands = self.m.operands(user)
        if self.m.opcode(user) == llvm.PHI:
            return [i for i, (v, b) in enumerate(self.m.incoming(user)) if v == value and b not in part]
        outside = self.lib.GetInstructionParent(user) not in part
        return [i for i, operand in enumerate(operands) if operand == value] if outside else []
