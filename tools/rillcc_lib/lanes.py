"""Shuffles by a constant distance: what a thread gets is read where the lane that has it keeps it.

A shuffle is otherwise a loop of its own, which writes for each thread what it gets into an array (rill_sched_shuffle32).
Where all threads of the block are there, and the distance is a constant, the region after the shuffle reads the element
of the other lane itself: two elements at constant distances and a choice, which LLVM makes vectors of.  The array has
SPARE elements more on either side, since both are read before one is chosen.

Regions that follow one another by such shuffles are there twice (find_chains).  In blocks whose rows are whole warps, one
warp goes through all of them before the next one does: the lanes are counted from 0 to 31, a shuffle is one of a vector
of 32 elements, and what only these regions use is in arrays of 32 elements, which LLVM makes registers of.  The other
copy is for blocks of other shapes.
"""

from . import flow, llvm
from .ir import DIVISIONS, PURE
from .loops import Loops
from .regions import BARRIER, SHUFFLES, SYNC_POINTS, WARP, WARP_ANY, require
from .slots import MOST_THREADS

SHUFFLE_FROM, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR = range(4)  # of rill/device/host_regions.h
LANES = 32
ENDED = 0xFFFF  # of rill/device/host_schedule.h
NOT_ATOMIC = 0  # of LLVMGetOrdering


class Lanes(Loops):
    def __init__(self, cutter):
        super().__init__(cutter)
        self.in_place = {}  # shuffle: the region that reads what it gives
        self.acted = {}  # sync: the calls of the functions that do what it is for

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

    def constants(self, call):
        """Of a shuffle: its kind, by how much, and the width; None if these are no constants."""
        kind, by, width = [self.m.constant(argument) for argument in self.m.arguments(call)[1:4]]
        return None if None in (kind, by, width) or width & (width - 1) or not width else (kind, by, min(width, LANES))

    def way(self, call):
        """The same, if it can be read in place."""
        kind, by, width = self.constants(call) or (SHUFFLE_FROM, 0, 0)
        by = by if by < width else 0
        return None if kind == SHUFFLE_FROM or (kind == SHUFFLE_XOR and by & (by - 1)) else (kind, by, width)

    def bring(self, region, value):
        return self.read_lane(region, value) if self.in_place.get(value) is region else super().bring(region, value)

    def read_lane(self, region, call):
        """What a thread gets; the builder stands where the region's values are read."""
        block = self.lib.GetInstructionParent(region.import_end)
        there = set(self.m.instructions(block))
        value = self.build_read_lane(region, call)
        region.lane_reads = [i for i in self.m.instructions(block) if i not in there]
        return value

    def build_read_lane(self, region, call):
        kind, by, width = self.way(call)
        m, own_t, index = self.m, region.index[3], region.wide_index
        slot, _, _ = self.slot(self.exchanged[call])
        self.before(region.import_end)
        own = self.element_at(call, slot, index, 0)
        if not by:
            return own
        lane = self.build("And", own_t, m.number(LANES - 1))
        inside = self.build("And", lane, m.number(width - 1))
        if kind == SHUFFLE_UP:
            reached, other = self.build("ICmp", llvm.UGE, inside, m.number(by)), self.element_at(call, slot, index, -by)
        elif kind == SHUFFLE_DOWN:
            reached = self.build("ICmp", llvm.ULT, inside, m.number(width - by))
            there = self.build("ICmp", llvm.ULT, self.build("Add", own_t, m.number(by)), self.threads)
            reached, other = self.build("And", reached, there), self.element_at(call, slot, index, by)
        else:
            upper = self.build("ICmp", llvm.NE, self.build("And", lane, m.number(by)), m.number(0))
            reached = self.build("ICmp", llvm.ULT, self.build("Xor", own_t, m.number(by)), self.threads)
            below, above = self.element_at(call, slot, index, -by), self.element_at(call, slot, index, by)
            other = self.build("Select", upper, below, above)
        return self.build("Select", reached, other, own)

    def element_at(self, call, slot, index, distance):
        kind = self.lib.TypeOf(call)
        at = self.build("Add", index, self.m.number(distance, self.m.i64)) if distance else index
        return self.load(kind, self.element(kind, slot, at))

    # What a sync is for

    def those(self):
        """What says who takes part, if that may not be all."""
        if not self.needs_next:
            return self.lib.ConstNull(self.m.pointer)
        return self.call("rill_sched_those", self.next, self.state[2])

    def act(self, target, first, end, those, number):
        """Does what a sync is for: exchanges values."""
        arguments = self.act_arguments(target.sync)
        if arguments and target.sync not in self.in_place:
            self.act_with(target.sync, arguments, first, end, those, number)

    def act_arguments(self, call):
        """The function that does what a sync is for, and the places and the kinds of what it gives and takes."""
        sync = SYNC_POINTS[self.c.marker(call)]
        if not sync.helper:
            return None
        slot, _, each = self.slot(call)
        places = [slot, self.m.number(1 if each else 0)]
        for argument in self.exchange_arguments(call):
            if argument in self.c.block_of:
                slot, _, each = self.slot(argument)
            else:
                slot, each = self.fixed(argument), False
            places += [slot, self.m.number(1 if each else 0)]
        return [sync.helper, *places]

    def act_with(self, call, arguments, first, end, those, number):
        helper, result, each, *places = arguments
        if any(sync.waits == BARRIER and sync.helper == helper for sync in SYNC_POINTS.values()):
            require(end == self.threads, "that a barrier acts for the whole block")
        made = self.call(helper, result, each, first, end, those, number, *places)
        self.acted.setdefault(call, []).append(made)

    def fixed(self, value):
        """Memory with a value that never changes."""
        with self.in_front():
            place = self.build("Alloca", self.lib.TypeOf(value))
            self.store(value, place)
        return place

    # Warp by warp

    def find_chains(self):
        """Lists of regions of which each but the first begins with a function of the warp, and is reached from the one
        before only: one warp goes through all of them before the next one does.  Nothing in them may show in what order
        warps come."""
        following = {}
        for region in self.regions:
            target = region.exits[0] if len(region.exits) == 1 else None
            ways = sum(target in other.exits for other in self.regions)
            linked = target and self.is_link(target) and ways == 1 and not self.m.phis(target.entry)
            if linked and not region.ends and self.fits(region) and self.fits(target):
                following[region] = target
        self.chains = []
        for region in self.regions:
            if region in following.values() or not self.fits(region):
                continue
            chain = [region]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            if any(other.sync in self.sources for other in chain):
                self.chains.append(chain)

    def is_link(self, region):
        return region.sync is not None and region.uniform and region.waits in (WARP, WARP_ANY)

    def find_sources(self):
        """Of each shuffle of a warp's own values by a constant: the type of what is given, and the lanes that the lanes of
        a whole warp read."""
        self.sources = {}
        for call, value in self.exchanged.items():
            if self.constants(call) and value in self.c.block_of and value in self.c.varying:
                self.sources[call] = (self.lib.TypeOf(call), [self.source(call, lane) for lane in range(LANES)])

    def note_acts(self):
        """What is needed of the chains' syncs when these are gone."""
        chained = [region for chain in self.chains for region in chain if region is not chain[0] or self.acts_by_warps(region)]
        links = [region.sync for region in chained]
        self.acts = {call: self.act_arguments(call) for call in links if self.c.marker(call) and call not in self.in_place}

    def acts_by_warps(self, region):
        """Whether a chain of regions does what the sync before it is for: a barrier's is done for the whole block first."""
        return any(chain[0] is region for chain in self.chains) and self.is_link(region)

    def fits(self, region):
        if region.scalar or not region.is_static() or (region.ends and region.exits):
            return False
        few = region.few
        if few and few.every and few.every[1] != LANES - 1:
            return False
        if few and (few.others or (not few.every and not 0 <= (self.m.constant(few.limit) or -1) <= MOST_THREADS)):
            return False
        return all(self.is_plain(i) for block in region.blocks for i in self.c.instructions[block])

    def is_plain(self, instruction):
        opcode = self.m.opcode(instruction)
        if opcode in (llvm.LOAD, llvm.STORE):
            return not self.lib.GetVolatile(instruction) and self.lib.GetOrdering(instruction) == NOT_ATOMIC
        if opcode == llvm.CALL:
            return bool(self.c.marker(instruction)) or self.c.is_pure_call(instruction) or self.is_lifetime(instruction)
        return opcode in PURE or opcode in DIVISIONS or opcode in (llvm.PHI, llvm.BR, llvm.SWITCH, llvm.RET)

    def add_warps(self):
        graph = {block: self.m.successors(block) for block in self.m.blocks(self.function)}
        self.owners = []  # a slot of which warps have their own, the blocks that use it, and the other users
        heads = [self.add_general(chain) for chain in self.chains]  # before find_own: these use the slots of other chains
        for chain, general in zip(self.chains, heads):
            self.add_chain(chain, general, graph)
        for slot, blocks, others in self.owners:
            used = [user for user in self.m.users(slot) if self.lib.GetInstructionParent(user) not in blocks]
            require(others.issuperset(used), "that only one chain of regions uses a warp's own values")

    def add_general(self, chain):
        """Makes the way to a chain's regions for blocks of other shapes; gives where it begins."""
        arguments = self.acts.get(chain[0].sync)
        if not arguments:
            return chain[0].rows.rows
        general = self.new_block("")
        self.at_end(general)
        those = self.those()
        self.act_with(chain[0].sync, arguments, self.m.number(0), self.threads, those, self.m.number(ENDED))
        self.branch(chain[0].rows.rows)
        return general

    def add_chain(self, chain, general, graph):
        """Puts a loop over warps in front of the loops of some regions, for blocks whose rows are whole warps and of whose
        warps none has ended in part."""
        m, lib, head = self.m, self.lib, chain[0].head
        size_x, size_y, _ = self.c.size
        blocks = {r: flow.reachable(graph, [r.rows.loop], {r.latch}) - {r.latch} for r in chain}
        start, warps = self.new_block("region%d.warps" % chain[0].number), self.new_block("")
        lib.InstructionEraseFromParent(m.terminator(head))
        self.find_own(set().union(*blocks.values()), chain)
        self.at_end(head)
        first, end, starts = m.number(0), self.threads, [m.number(0)] * 4
        complete = self.build("ICmp", llvm.EQ, self.build("And", size_x, m.number(LANES - 1)), m.number(0))
        if self.needs_next:
            first, end = self.load(m.i32, self.state[0]), self.load(m.i32, self.state[1])
            full = self.call("rill_sched_full_warps", self.next, self.threads, first, end, self.state[2])
            complete = self.build("And", complete, self.build("ICmp", llvm.NE, full, m.number(0)))
        self.branch_if(complete, warps, general)
        self.at_end(warps)
        if self.needs_next:
            starts = self.place_of(first)
        self.branch(start)
        self.at_end(start)
        x, y, z, t = [self.build("Phi", m.i32) for _ in range(4)]
        wide = self.build("ZExt", t, m.i64)
        for region in chain:
            if region.sync in self.sources:
                self.exchange(region.sync, wide)
            elif self.acts.get(region.sync):
                warp_end = self.build("Add", t, m.number(LANES))
                self.act_with(region.sync, self.acts[region.sync], t, warp_end, lib.ConstNull(m.pointer), m.number(ENDED))
            self.copy_loop(region, [b for b in graph if b in blocks[region]], graph, (x, y, z, t), wide)
        next_t, next_x = [self.nowrap(self.build("Add", value, m.number(LANES))) for value in (t, x)]
        wraps = self.build("ICmp", llvm.EQ, next_x, size_x)
        next_x = self.build("Select", wraps, m.number(0), next_x)
        next_y = self.nowrap(self.build("Add", y, self.build("ZExt", wraps, m.i32)))
        wraps = self.build("ICmp", llvm.EQ, next_y, size_y)
        next_y = self.build("Select", wraps, m.number(0), next_y)
        next_z = self.nowrap(self.build("Add", z, self.build("ZExt", wraps, m.i32)))
        last = lib.GetInsertBlock(self.builder)
        self.branch_if(self.build("ICmp", llvm.ULT, next_t, end), start, chain[-1].tail)
        for phi, first_one, following in zip((t, x, y, z), starts, (next_t, next_x, next_y, next_z)):
            lib.AddIncoming(phi, llvm.array([first_one, following]), llvm.array([warps, last]), 2)

    def find_own(self, blocks, chain):
        """The slots that nobody else uses: there a warp's values are enough, which LLVM keeps in registers."""
        self.own = {}
        # The chain does these shuffles itself.
        others = {call for region in chain if region.sync in self.sources for call in self.acted.get(region.sync, ())}
        for value, (slot, kind, each) in self.slots.items():
            if not each or value in self.cut_phis or any(phi == value for phi in self.shared_slots.values()):
                continue
            if all(user in others or self.lib.GetInstructionParent(user) in blocks for user in self.m.users(slot)):
                self.own[slot] = (self.allocate_warp(kind), kind)
                self.owners.append((slot, blocks, others))

    def allocate_warp(self, kind):
        with self.in_front():
            place = self.build("Alloca", self.lib.ArrayType2(kind, LANES))
            self.lib.SetAlignment(place, 64)
        return place

    def exchange(self, call, wide):
        """Does a shuffle of the whole warp that begins with the thread of number `wide`."""
        m, lib = self.m, self.lib
        kind, sources = self.sources[call]
        vector = lib.VectorType(kind, LANES)
        values = self.load(vector, self.warp_of(self.exchanged[call], wide))
        lib.SetAlignment(values, lib.ABISizeOfType(m.layout, kind))
        mask = lib.ConstVector(llvm.array([m.number(lane) for lane in sources]), LANES)
        if call in self.in_place:
            place = self.allocate_warp(kind)
            self.shuffled_of = (place, kind)
        else:
            place = self.warp_of(call, wide)
        stored = self.store(self.build("ShuffleVector", values, values, mask), place)
        lib.SetAlignment(stored, lib.ABISizeOfType(m.layout, kind))

    def warp_of(self, value, wide):
        """Where a value of the warp is kept that begins with the thread of number `wide`."""
        slot, kind, _ = self.slot(value)
        return self.own[slot][0] if slot in self.own else self.element(kind, slot, wide)

    def source(self, call, lane):
        kind, by, width = self.constants(call)
        inside = lane & (width - 1)
        if kind == SHUFFLE_FROM:
            return lane - inside + by if by < width else lane
        if kind == SHUFFLE_UP:
            return lane - by if by <= inside else lane
        if kind == SHUFFLE_DOWN:
            return lane + by if by < width - inside else lane
        return lane ^ by if by < width else lane

    def copy_loop(self, region, blocks, graph, place, wide):
        """Copies what a thread does, up to the latch, for the lanes of the warp whose first one is at `place`; the builder
        stands in front, and comes to stand after it."""
        m, lib, rows = self.m, self.lib, region.rows
        before = lib.GetInsertBlock(self.builder)
        copies = {block: self.new_block("") for block in blocks}
        latch, after = self.new_block("lane.latch"), self.new_block("lane.end")
        copies[region.latch] = latch
        x, y, z, t = place
        few, count = region.few, m.number(LANES)
        if few and not few.every:
            count = self.build("Sub", m.number(m.constant(few.limit)), t if few.index == "rill_ir_thread" else x)
            some = self.build("ICmp", llvm.SGT, count, m.number(0))
            count = self.build("Select", self.build("ICmp", llvm.SLT, count, m.number(LANES)), count, m.number(LANES))
            self.branch_if(some, copies[rows.loop], after)
        else:
            self.branch(copies[rows.loop])
        self.at_end(copies[rows.loop])
        one = few and few.every
        lane = m.number(one[2]) if one else self.build("Phi", m.i32)
        wide_lane = self.build("ZExt", lane, m.i64)
        own_x, own_t = [self.nowrap(self.build("Add", value, lane)) for value in (x, t)]
        copies.update(zip(region.index, (own_x, y, z, own_t)))
        copies[region.wide_index] = self.nowrap(self.build("Add", wide, wide_lane))
        for value in region.lane_reads:
            copies[value] = None
        if region.lane_reads:
            shuffled, kind = self.shuffled_of
            copies[region.lane_reads[-1]] = self.load(kind, self.element(kind, shuffled, wide_lane))
        phis = []
        for block in blocks:
            self.at_end(copies[block])
            for value in m.instructions(block):
                if value in copies:
                    continue
                own = self.own.get(lib.GetOperand(value, 0)) if m.opcode(value) == llvm.GEP else None
                if own:
                    copies[value] = self.element(own[1], own[0], wide_lane)
                elif m.opcode(value) == llvm.PHI:
                    copies[value] = self.build("Phi", lib.TypeOf(value))
                    phis.append(value)
                else:
                    copies[value] = lib.InstructionClone(value)
                    m.insert(self.builder, copies[value])
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
        self.at_end(latch)
        if one:
            self.branch(after)
        else:
            following = self.nowrap(self.build("Add", lane, m.number(1)))
            again = self.build("ICmp", llvm.ULT, following, count)
            self.mark_lanes(self.branch_if(again, copies[rows.loop], after))
            lib.AddIncoming(lane, llvm.array([m.number(0), following]), llvm.array([before, latch]), 2)
        self.at_end(after)
