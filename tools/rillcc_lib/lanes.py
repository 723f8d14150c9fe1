"""Shuffles by a constant distance: what a thread gets is read where the lane that has it keeps it.

A shuffle is otherwise a loop of its own, which writes for each thread what it gets into an array (rill_sched_shuffle32).
Where all threads of the block are there, and the distance is a constant, the region after the shuffle reads the element
of the other lane itself: two elements at constant distances and a choice, which LLVM makes vectors of.  The array has
SPARE elements more on either side, since both are read before one is chosen.

The loop over the threads is there twice then.  In whole warps it counts the lanes from 0 to 31, so that LLVM knows which
of them read where; the other is for the rest.
"""

from dataclasses import dataclass

from . import flow, llvm
from .regions import SHUFFLES
from .slots import SPARE, Slots

SHUFFLE_FROM, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR = range(4)  # of rill/device/host_regions.h
LANES = 32


@dataclass
class Rows:
    """The loop over a row of threads: its blocks, and the values from which and to which it counts."""

    row: int
    loop: int
    end: int
    first: int
    stop: int
    thread: int  # the number of the thread at the row's begin


class Lanes(Slots):
    def find_read_in_place(self):
        """The shuffles of which each thread reads what it gets where it is; only if no thread may have ended."""
        self.in_place = {r.sync: r for r in self.regions if r.sync is not None and r.uniform and self.is_in_place(r)}

    def exchange_arguments(self, call):
        """What is given to a sync, as it is kept."""
        arguments = self.m.arguments(call)
        return [self.exchanged.get(call, arguments[0]), *arguments[1:]] if arguments else []

    def is_in_place(self, region):
        c, call = self.c, region.sync
        if c.marker(call) not in SHUFFLES or self.way(call) is None:
            return False
        value = self.exchanged[call]
        if value not in c.block_of or value not in c.varying:
            return False
        for user in self.m.users(call):
            if self.m.opcode(user) == llvm.PHI:
                blocks = [block for incoming, block in self.m.incoming(user) if incoming == call]
            else:
                blocks = [c.block_of[user]]
            if any(c.owner[block] is not region for block in blocks):
                return False
        return not self.writes_slot(region, self.shared_slots.get(value, value))

    def writes_slot(self, region, key):
        """Whether threads write to a slot in a region, or as they leave it: others may not have read it yet."""
        inside = (value for block in region.blocks for value in self.c.instructions[block])
        if any(self.shared_slots.get(value, value) == key and value not in self.cut_phis for value in inside):
            return True
        return any(key in self.m.phis(other.entry) for other in region.exits)

    def way(self, call):
        """Of a shuffle: its kind, by how much, and the width; None if these are no constants or of no use here."""
        kind, by, width = [self.m.constant(argument) for argument in self.m.arguments(call)[1:4]]
        if None in (kind, by, width) or kind == SHUFFLE_FROM or width & (width - 1) or not width:
            return None
        width = min(width, SPARE)
        by = by if by < width else 0
        return None if kind == SHUFFLE_XOR and by & (by - 1) else (kind, by, width)

    def read_lane(self, region, call):
        """What a thread gets; the builder stands where the region's values are read."""
        kind, by, width = self.way(call)
        m, own_t, index = self.m, region.index[3], region.wide_index
        slot, _, _ = self.slot(self.exchanged[call])
        self.before(region.import_end)
        own = self.element_at(call, slot, index, 0)
        if not by:
            return own
        lane = self.build("And", own_t, m.number(LANES - 1))
        region.lane_values[lane] = "lane"
        inside = self.build("And", lane, m.number(width - 1))
        if kind == SHUFFLE_UP:
            reached, other = self.build("ICmp", llvm.UGE, inside, m.number(by)), self.element_at(call, slot, index, -by)
        elif kind == SHUFFLE_DOWN:
            reached = self.build("ICmp", llvm.ULT, inside, m.number(width - by))
            there = self.build("ICmp", llvm.ULT, self.build("Add", own_t, m.number(by)), self.threads)
            region.lane_values[there] = "there"
            reached, other = self.build("And", reached, there), self.element_at(call, slot, index, by)
        else:
            upper = self.build("ICmp", llvm.NE, self.build("And", lane, m.number(by)), m.number(0))
            reached = self.build("ICmp", llvm.ULT, self.build("Xor", own_t, m.number(by)), self.threads)
            region.lane_values[reached] = "there"
            below, above = self.element_at(call, slot, index, -by), self.element_at(call, slot, index, by)
            other = self.build("Select", upper, below, above)
        return self.build("Select", reached, other, own)

    def element_at(self, call, slot, index, distance):
        kind = self.lib.TypeOf(call)
        at = self.build("Add", index, self.m.number(distance, self.m.i64)) if distance else index
        return self.load(kind, self.element(kind, slot, at))

    # The loop over the lanes of whole warps

    def double_loops(self):
        for region in self.in_place.values():
            if region.rows is not None and region.lane_values:
                self.double_loop(region)

    def double_loop(self, region):
        """Puts a loop over whole warps of a row before the one over its threads."""
        m, lib, rows = self.m, self.lib, region.rows
        graph = {block: m.successors(block) for block in m.blocks(self.function)}
        warp, latch, after, rest = [self.new_block("region%d.%s" % (region.number, name)) for name in
                                    ("warp", "warp_latch", "warp_end", "rest")]
        lib.InstructionEraseFromParent(m.terminator(rows.row))
        self.at_end(rows.row)
        aligned = self.build("ICmp", llvm.EQ, self.build("And", rows.thread, m.number(LANES - 1)), m.number(0))
        count = self.build("And", self.build("Sub", rows.stop, rows.first), m.number(-LANES))
        end = self.nowrap(self.build("Add", rows.first, self.build("Select", aligned, count, m.number(0))))
        self.branch_if(self.build("ICmp", llvm.ULT, rows.first, end), warp, rest)
        self.at_end(warp)
        first = self.build("Phi", m.i32)
        loop = self.copy_loop(region, graph, latch, first)
        self.at_end(warp)
        self.branch(loop)
        self.at_end(after)
        following = self.nowrap(self.build("Add", first, m.number(LANES)))
        self.branch_if(self.build("ICmp", llvm.ULT, following, end), warp, rest)
        lib.AddIncoming(first, llvm.array([rows.first, following]), llvm.array([rows.row, after]), 2)
        self.at_end(latch)
        lane = m.phis(loop)[0]
        following = self.nowrap(self.build("Add", lane, m.number(1)))
        self.branch_if(self.build("ICmp", llvm.ULT, following, m.number(LANES)), loop, after)
        lib.AddIncoming(lane, llvm.array([m.number(0), following]), llvm.array([warp, latch]), 2)
        self.at_end(rest)
        self.branch_if(self.build("ICmp", llvm.ULT, end, rows.stop), rows.loop, rows.end)
        m.replace_phi(m.phis(rows.loop)[0], lambda value, block: (end, rest) if block == rows.row else (value, block), self.builder)

    def copy_loop(self, region, graph, latch, first):
        """Copies what a thread does, up to the latch, for the lane that a phi in front of it says."""
        m, lib, rows = self.m, self.lib, region.rows
        blocks = flow.reachable(graph, [rows.loop], {region.latch}) - {region.latch}
        blocks = [block for block in graph if block in blocks]
        copies = {block: self.new_block("") for block in blocks}
        copies[region.latch] = latch
        index = m.phis(rows.loop)[0]
        phis = []
        for block in blocks:
            self.at_end(copies[block])
            if block == rows.loop:
                lane = self.build("Phi", m.i32)
                copies[index] = self.nowrap(self.build("Add", first, lane))
            for value in m.instructions(block):
                known = region.lane_values.get(value)
                if value == index:
                    continue
                if known:
                    copies[value] = lane if known == "lane" else m.number(1, m.i1)
                elif m.opcode(value) == llvm.PHI:
                    copies[value] = self.build("Phi", lib.TypeOf(value))
                    phis.append(value)
                else:
                    copies[value] = lib.InstructionClone(value)
                    lib.InsertIntoBuilder(self.builder, copies[value])
        for block in blocks:
            for value in m.instructions(copies[block]):
                for i, operand in enumerate(m.operands(value)):
                    if operand in copies and not lib.IsABasicBlock(operand):
                        lib.SetOperand(value, i, copies[operand])
            for other in graph[block]:
                m.redirect(copies[block], other, copies[other])
        for phi in phis:
            ways = m.incoming(phi)
            values = [copies.get(value, value) for value, _ in ways]
            lib.AddIncoming(copies[phi], llvm.array(values), llvm.array([copies[way] for _, way in ways]), len(ways))
        return copies[rows.loop]
