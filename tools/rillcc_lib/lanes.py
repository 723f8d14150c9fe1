"""Emits shuffles by a constant distance: each thread reads the value directly from the other lane's element.

Any other shuffle is a loop that writes each thread's result to an array (rill_sched_shuffle32). If no thread of the
block has ended, and the distance is constant, the region after the shuffle instead reads the element of the other lane
itself. It loads two elements at constant distances and selects one, which LLVM can vectorize. Both elements are loaded
before one is selected, so the array has SPARE additional elements at each end.

If a warp runs several regions that are separated by such shuffles (strips.py), a shuffle becomes a shuffle of a vector
of 32 elements.
"""

from . import live_lanes, llvm
from .loops import Loops
from .regions import BARRIER, SHUFFLES, SYNC_POINTS, require

SHUFFLE_FROM, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR = range(4)  # of rill/device/host_regions.h
LANES = 32


class Lanes(Loops):
    width = LANES  # threads for which the group of regions that is being added is executed at once (strips.py)

    def __init__(self, cutter):
        super().__init__(cutter)
        self.in_place = {}  # shuffle: the region that reads its result
        self.acted = {}  # synchronization point: the calls of the functions that perform its exchange
        self.warp_arrays = set()  # the arrays with an element for each lane of one warp
        self.result_lanes = {}  # shuffle: for how many lanes its result is needed (live_lanes.py)
        self.own = {}  # slot: the array of one warp that replaces it in a group of regions (strips.py), and its element type

    def find_read_in_place(self):
        """Finds the shuffles whose results are read in place. This is valid only if no thread can have ended."""
        self.in_place = {r.sync: r for r in self.regions if r.sync is not None and r.uniform and self.is_in_place(r)}

    def exchange_arguments(self, call):
        """Returns the arguments of a synchronization point. For a shuffle, the first one is the value whose slot holds
        the exchanged value."""
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
        """Returns whether threads write to a slot in a region or when they leave it, although other threads may not
        have read it yet."""
        inside = (value for block in region.blocks for value in self.c.instructions[block])
        if any(self.shared_slots.get(value, value) == key and value not in self.cut_phis for value in inside):
            return True
        return any(key in self.m.phis(other.entry) for other in region.exits)

    def constants(self, call):
        """Returns the kind, distance and width of a shuffle, or None if these are not constants."""
        kind, by, width = [self.m.constant(argument) for argument in self.m.arguments(call)[1:4]]
        return None if None in (kind, by, width) or width & (width - 1) or not width else (kind, by, min(width, LANES))

    def way(self, call):
        """Returns the kind, distance and width of a shuffle whose result can be read in place; None for any other
        shuffle."""
        kind, by, width = self.constants(call) or (SHUFFLE_FROM, 0, 0)
        by = by if by < width else 0
        return None if kind == SHUFFLE_FROM or (kind == SHUFFLE_XOR and by & (by - 1)) else (kind, by, width)

    def import_value(self, region, value):
        return self.read_lane(region, value) if self.in_place.get(value) is region else super().import_value(region, value)

    def read_lane(self, region, call):
        """Builds a thread's result of a shuffle at the place where the region's values are read."""
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

    # The exchange at a synchronization point

    def those(self):
        """Builds the argument that names the participating lanes, or a null pointer if all take part."""
        if not self.needs_next:
            return self.lib.ConstNull(self.m.pointer)
        return self.call("rill_sched_those", self.next, self.state[2])

    def act(self, target, first, end, those, number):
        """Performs the exchange of a region's synchronization point."""
        arguments = self.act_arguments(target.sync)
        if arguments and target.sync not in self.in_place:
            self.act_with(target.sync, arguments, first, end, those, number)

    def act_arguments(self, call):
        """Returns the function that performs the exchange of a synchronization point, the slots of its result and its
        arguments, and after each slot whether every thread has its own element. Returns None if there is no exchange."""
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
            require(end == self.threads, "a barrier acts for the whole block")
        made = self.call(helper, result, each, first, end, those, number, *places)
        self.acted.setdefault(call, []).append(made)

    def fixed(self, value):
        """Builds memory that holds a value that never changes."""
        with self.in_front():
            place = self.build("Alloca", self.lib.TypeOf(value))
            self.store(value, place)
        return place

    # The warp version (strips.py)

    def find_sources(self):
        """Finds the shuffles by a constant of values that each thread has. For each of them, stores the type of the
        value and the lane that each lane of a warp reads."""
        self.sources = {}
        for call, value in self.exchanged.items():
            if self.constants(call) and value in self.c.block_of and value in self.c.varying:
                self.sources[call] = (self.lib.TypeOf(call), [self.source(call, lane) for lane in range(LANES)])

    def exchange(self, call, wide):
        """Performs a shuffle for the complete warp that begins with thread number `wide`."""
        m, lib = self.m, self.lib
        kind, sources = self.sources[call]
        live = max(1, self.result_lanes[call])
        sources = sources[:live]
        count = live_lanes.round_up(1 + max(sources))
        source = self.warp_of(self.exchanged[call], wide)
        if call in self.in_place:
            place = self.allocate_warp(kind)
            self.shuffled_of = (place, kind)
        else:
            place = self.warp_of(call, wide)
        if live == 1:
            self.store(self.load(kind, self.element(kind, source, m.number(sources[0]))), place)
            return
        values = self.load(lib.VectorType(kind, count), source)
        lib.SetAlignment(values, lib.ABISizeOfType(m.layout, kind))
        mask = lib.ConstVector(llvm.array([m.number(lane) for lane in sources]), live)
        stored = self.store(self.build("ShuffleVector", values, values, mask), place)
        lib.SetAlignment(stored, lib.ABISizeOfType(m.layout, kind))

    def allocate_warp(self, kind):
        with self.in_front():
            place = self.build("Alloca", self.lib.ArrayType2(kind, self.width))
            self.lib.SetAlignment(place, 64)
        self.warp_arrays.add(place)
        return place

    def is_kept(self, pointer):
        """Returns whether a pointer is to a slot, whose memory exists for each thread."""
        if self.m.is_binary(pointer, llvm.GEP):
            pointer = self.lib.GetOperand(pointer, 0)
        return pointer in self.warp_arrays or any(pointer == slot for slot, _, _ in self.slots.values())

    def warp_of(self, value, wide):
        """Returns where a value is kept for the warp that begins with thread number `wide`."""
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
