"""Threads that no longer synchronize get their own copy of the rest of the program, if it is short.

After `if (warp == 0) v = sum_by_shuffles(v);` comes what all threads do, some of them after the shuffles: a block that
two regions lead to, which would be a third one, for which each thread notes where it goes on.  With two copies of that
block each region ends in its own.  A thread does the same as before, and what it does after its last sync may come
at any time after that.
"""

from . import flow

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
    copies = m.copy_blocks(finder.function, blocks, builder)
    for block in blocks:
        for phi in m.phis(block):
            inside = [(copies.get(v, v), copies[b]) for v, b in m.incoming(phi) if b in copies]
            m.add_ways(copies[phi], inside + [(v, b) for v, b in m.incoming(phi) if block == first and b == way])
    m.redirect(way, first, copies[first])
    for phi in m.phis(first):
        lib.PositionBuilderBefore(builder, phi)
        left = lib.BuildPhi(builder, lib.TypeOf(phi), b"")
        m.add_ways(left, [(left if v == phi else v, b) for v, b in m.incoming(phi) if b != way])
        lib.ReplaceAllUsesWith(phi, left)
        lib.InstructionEraseFromParent(phi)

