"""Threads that meet nobody any more have the rest of the program for themselves, if it is short.

After `if (warp == 0) v = sum_by_shuffles(v);` comes what all threads do, some of them after the shuffles: a block that
two regions lead to, which would be a third one, for which each thread notes where it goes on.  With two copies of that
block each region ends in its own.  A thread does the same as before, and what it does after its last sync may come
at any time after that.
"""

from . import flow, llvm

MOST_COPIED = 40  # instructions


def part(finder):
    for block in finder.order:
        leaving = [other for other in finder.predecessors[block] if other in finder.syncing]
        if block in finder.syncing or not leaving or len(finder.predecessors[block]) < 2:
            continue
        tail = flow.reachable(finder.successors, [block])
        if sum(len(finder.instructions[other]) for other in tail) > MOST_COPIED:
            continue
        keep = len(leaving) == len(finder.predecessors[block])
        for other in leaving[keep:]:
            copy(finder, other, block, [b for b in finder.order if b in tail])


def copy(finder, way, first, blocks):
    """Gives a way into some blocks, of which `first` is the first one, its own copy of them."""
    m, lib, builder = finder.m, finder.lib, finder.builder
    copies = {block: m.new_block(finder.function, "") for block in blocks}
    for block in blocks:
        for value in m.instructions(block):
            lib.PositionBuilderAtEnd(builder, copies[block])
            if m.opcode(value) == llvm.PHI:
                copies[value] = lib.BuildPhi(builder, lib.TypeOf(value), b"")
            else:
                copies[value] = lib.InstructionClone(value)
                m.insert(builder, copies[value])
    for block in blocks:
        for value in m.instructions(block):
            if m.opcode(value) == llvm.PHI:
                inside = [(copies.get(v, v), copies[b]) for v, b in m.incoming(value) if b in copies]
                inside += [(v, b) for v, b in m.incoming(value) if block == first and b == way]
                add_ways(lib, copies[value], inside)
                continue
            for i, operand in enumerate(m.operands(copies[value])):
                if operand in copies and not lib.IsABasicBlock(operand):
                    lib.SetOperand(copies[value], i, copies[operand])
        for other in m.successors(block):
            m.redirect(copies[block], other, copies[other])
    m.redirect(way, first, copies[first])
    for phi in m.phis(first):
        lib.PositionBuilderBefore(builder, phi)
        left = lib.BuildPhi(builder, lib.TypeOf(phi), b"")
        add_ways(lib, left, [(left if v == phi else v, b) for v, b in m.incoming(phi) if b != way])
        lib.ReplaceAllUsesWith(phi, left)
        lib.InstructionEraseFromParent(phi)


def add_ways(lib, phi, ways):
    lib.AddIncoming(phi, llvm.array([v for v, _ in ways]), llvm.array([b for _, b in ways]), len(ways))
