"""Duplicates the rest of a program, if it is short, for threads that have passed their last synchronization point.

After `if (warp == 0) v = sum_by_shuffles(v);` all threads execute the same basic block, some of them after the
shuffles. This block can be reached from two regions, so it would be a third region, and each thread would have to store
which region it executes next. With two copies of the block, each of the two regions ends in its own copy. Each thread
does the same as before, and the code after a thread's last synchronization point may run at any later time.
"""

from . import flow

MOST_COPIED = 40  # instructions


def duplicate_tails(finder):
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
    """Copies `blocks`, the first of which is `first`, for the edge from block `way` to `first`."""
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

