"""Writes the function that executes the regions of regions.py for the threads of a block.

Each region becomes a loop over the threads. A value that a thread needs in a later region is kept in an element of an
array; a uniform value is kept once. A value that is cheap to compute from the thread's index is computed again instead.

If all threads leave a region for the same next region, the transition is a branch. Otherwise each thread stores the
number of its next region in `next`, and a function of the header (rill_sched_next) selects the region to run.
"""

from . import llvm, rows, short_regions
from .regions import FREE, SYNC_POINTS, THREAD, WARP, WARP_ANY, Refused, require
from .strips import ENDED, Strips

WAITS, ACTS = 0x8000, 0x4000


class Writer(Strips):
    def write(self):
        self.is_flat = not (self.c.calls("rill_ir_thread_y") or self.c.calls("rill_ir_thread_z"))
        for region in self.regions:
            region.scalar &= all(other.uniform for other in region.exits) and not self.copies_for_threads(region)
        self.needs_next = not all(region.is_static() and (not region.ends or not region.exits) for region in self.regions)
        if not self.needs_next:
            self.find_read_in_place()
        self.find_sources()
        self.prepare()
        self.short, self.are_short = {}, set()
        self.short_regions = short_regions.ShortRegions(self)
        for region in self.regions:
            self.open_region(region)
        self.find_groups()
        self.are_short.difference_update(*(group.regions for group in self.groups))
        self.arrays = self.short_regions.arrays(self.are_short)
        self.short_regions.sort_loads(self.are_short)
        for call in self.c.sync_points.values():
            self.take_operands(call)
        changes = [change for region in self.regions for change in self.collect(region)]
        for instruction, i, value in changes:
            self.lib.SetOperand(instruction, i, value)
        for value in list(self.slots):
            self.store_slot(value)
        self.store_shared_slots()
        for region in self.regions:
            self.close_region(region)
        if self.needs_next:
            self.dispatch()
        self.note_acts()
        self.clean()
        self.add_warps()
        self.mark_accesses()
        self.has_rows = rows.Rows(self).add(self.thread_loops)

    def copies_for_threads(self, region):
        """Returns whether an exit of a region leads to a phi that each thread has for itself, in another slot."""
        blocks = set(region.blocks)
        for other in region.exits:
            for phi in self.m.phis(other.entry):
                if phi not in self.c.varying:
                    continue
                ways = [value for value, block in self.m.incoming(phi) if block in blocks]
                if any(self.shared_slots.get(value, value) != phi for value in ways):
                    return True
        return False

    # Before the threads start

    def prepare(self):
        m = self.m
        self.c.prologue.discard(m.terminator(self.c.start))
        self.lib.InstructionEraseFromParent(m.terminator(self.c.start))
        self.at_end(self.c.start)
        x, y, z = self.c.size
        self.threads = self.build("Mul", self.build("Mul", x, y), z)
        self.setup_end = self.lib.BuildUnreachable(self.builder)
        self.masks = None
        if self.needs_next:
            self.before(self.setup_end)
            self.bytes += 2
            self.next = self.allocate_array(m.i16)
            self.state = [self.build("Alloca", kind) for kind in (m.i32, m.i32, m.i8)]  # first, end, complete
            self.store(m.number(1, m.i8), self.state[2])
            self.origin = self.build("Alloca", m.i32)
            if any(self.mask(region) is not None for region in self.regions):
                self.bytes += 4
                self.masks = self.allocate_array(m.i32)
            self.dispatcher = self.new_block("next")
        self.ended = self.new_block("ended")
        self.at_end(self.ended)
        self.lib.BuildRetVoid(self.builder)

    # Inputs and outputs of a region

    def collect(self, region):
        """Returns the changes to the instructions of a region: (instruction, number of the operand, new value)."""
        changes = []
        region.ways = []  # (block, region it leads to or None, [(phi, value)])
        region.masks = {}  # region: the lanes that it waits for
        for block in region.blocks:
            for instruction in self.c.instructions[block]:
                if instruction in self.cut_phis or self.c.marker(instruction):
                    continue
                if self.is_lifetime(instruction):
                    continue
                for i, operand in enumerate(self.m.operands(instruction)):
                    if self.lib.IsABasicBlock(operand):
                        continue
                    new = self.need(region, operand)
                    if new != operand:
                        changes.append((instruction, i, new))
            self.collect_ways(region, block)
        return changes

    def collect_ways(self, region, block):
        for other in self.c.successors[block]:
            target = self.c.owner[other]
            if other != target.entry:
                continue
            copies = []
            for phi in self.m.phis(other):
                value = next(value for value, way in self.m.incoming(phi) if way == block)
                if phi in self.c.varying:
                    if self.shared_slots.get(value, value) != phi:
                        copies.append((phi, self.need(region, value)))
                else:
                    self.slot(phi)
                    if not region.scalar and value in self.c.block_of:
                        self.slot(value)
                    elif region.scalar:
                        value = self.need(region, value)
                    copies.append((phi, value))
            region.ways.append((block, target, copies))
            if self.masks is not None and target.waits == WARP and not region.scalar:
                mask = self.mask(target)
                region.masks[target] = self.need(region, mask) if mask is not None else self.m.number(-1)

    def take_operands(self, call):
        """Allocates the slots from which the exchange at a synchronization point takes its arguments, and the slot of
        its result."""
        for argument in self.exchange_arguments(call):
            if argument in self.c.block_of:
                if self.c.marker(argument) in THREAD:
                    raise Refused("a warp function exchanges an index directly")
                self.slot(argument)
        if self.lib.TypeOf(call) != self.m.void and call not in self.in_place:
            self.slot(call)

    def store_slot(self, value):
        if value in self.cut_phis or self.c.marker(value) in SYNC_POINTS:
            return
        if value not in self.c.block_of:
            raise Refused("a warp function exchanges a pointer to a variable")
        self.store_after(value, value)

    def store_shared_slots(self):
        for value in self.shared_slots:
            self.store_after(value, value)

    def store_after(self, value, slot_of):
        region = self.c.owner[self.c.block_of[value]]
        block = self.c.block_of[value]
        slot, kind, each = self.slot(slot_of)
        inside = self.m.instructions(block)
        at = inside.index(value) + 1
        while self.m.opcode(inside[at]) == llvm.PHI:
            at += 1
        self.before(inside[at])
        place = self.element(kind, slot, region.wide_index) if each else slot
        self.store_value(value, place)

    # Transitions between regions

    def close_region(self, region):
        if region.scalar:
            self.close_scalar(region)
            return
        static = region.is_static()
        notes = self.needs_next and (not static or (region.ends and region.exits)) and not self.follows(region)
        for block, target, copies in region.ways:
            way = self.new_block("")
            self.m.redirect(block, target.entry, way)
            self.at_end(way)
            values = [(phi, value) for phi, value in copies if phi in self.c.varying]
            # build_transition or copy_by_origin copies the other values when all threads have left the region.
            together = region.uniform and target.uniform
            require(together or len(values) == len(copies), "no copy of a uniform value is dropped")
            for phi, value in values:
                slot, kind, _ = self.slot(phi)
                self.store_value(value, self.element(kind, slot, region.wide_index))
            self.store_mask(region, region.masks.get(target))
            if notes and not static:
                self.store_next(region, self.number(target))
            self.branch(region.latch)
        for block in region.blocks:
            end = self.m.terminator(block)
            if self.m.opcode(end) == llvm.RET:
                self.lib.InstructionEraseFromParent(end)
                self.at_end(block)
                if notes:
                    self.store_next(region, ENDED)
                self.branch(region.latch)
        self.at_end(region.tail)
        if static:
            self.build_transition(region)
        elif self.follows(region):
            self.follow(region, region.exits[0] if region.exits else None)
        else:
            if region.uniform:
                self.store(self.m.number(region.number), self.origin)
            self.branch(self.dispatcher)

    def follows(self, region):
        """Returns whether the threads that are executing all take the same exit, and may continue without a search for
        other threads."""
        return not region.uniform and len(region.exits) + region.ends == 1

    def number(self, target):
        return target.number | (WAITS if target.uniform or target.waits != FREE else 0)

    def mask(self, region):
        """Returns the value that says which lanes a region waits for, or None if it waits for all of them."""
        if region.sync is None or SYNC_POINTS[self.c.marker(region.sync)].mask is None:
            return None
        mask = self.m.arguments(region.sync)[SYNC_POINTS[self.c.marker(region.sync)].mask]
        return None if self.m.constant(mask) == 0xFFFFFFFF else mask

    def store_mask(self, region, mask):
        if self.masks is not None and mask is not None:
            self.store(mask, self.element(self.m.i32, self.masks, region.wide_index))

    def store_next(self, region, number):
        self.store(self.m.number(number, self.m.i16), self.element(self.m.i16, self.next, region.wide_index))

    def close_scalar(self, region):
        for block, target, copies in region.ways:
            way = self.new_block("")
            self.m.redirect(block, target.entry, way)
            region.leaves[way] = target
            self.at_end(way)
            self.copy_uniform([(phi, value) for phi, value in copies if phi not in self.c.varying])
            self.enter_region(target)
        self.at_end(region.tail)
        self.lib.BuildUnreachable(self.builder)

    def copy_uniform(self, copies):
        """Sets the phis that are kept once."""
        for phi, value in copies:
            self.store_value(value, self.slot(phi)[0])

    def build_transition(self, region):
        """Builds the transition to the next region when all threads have left a region; threads that have ended are
        left out."""
        if not region.exits:
            self.branch(self.ended)
            return
        target = region.exits[0]
        if region.ends:
            left = self.call("rill_sched_left", self.next, self.threads, self.state[2])
            some = self.new_block("")
            self.branch_if(self.build("ICmp", llvm.NE, left, self.m.number(0)), some, self.ended)
            self.at_end(some)
        self.copy_from(region, target)
        self.enter_region(target)

    def copy_from(self, region, target):
        """Sets the uniform phis of a region when all threads have reached it from another region."""
        for _, other, copies in region.ways:
            values = []
            for phi, value in copies if other is target else ():
                if phi in self.c.varying:
                    continue
                if value in self.c.block_of:
                    slot, kind, _ = self.slot(value)
                    values.append((phi, self.load(kind, slot), False))
                else:
                    values.append((phi, value, True))
            for phi, value, is_value in values:
                if is_value:
                    self.store_value(value, self.slot(phi)[0])
                else:
                    self.store(value, self.slot(phi)[0])

    def copy_by_origin(self, target):
        """Sets the uniform phis of a region if it is known only at run time which region the threads come from."""
        ways = [r for r in self.regions if r.uniform and not r.scalar and not r.is_static() and target in r.exits]
        if all(phi in self.c.varying for phi in self.m.phis(target.entry)):
            return
        done = self.new_block("")
        origin = self.load(self.m.i32, self.origin)
        switch = self.lib.BuildSwitch(self.builder, origin, done, len(ways))
        for region in ways:
            way = self.new_block("")
            self.lib.AddCase(switch, self.m.number(region.number), way)
            self.at_end(way)
            self.copy_from(region, target)
            self.branch(done)
        self.at_end(done)

    def enter_region(self, target):
        """Builds the transition to a uniform region."""
        if target.sync is not None and not self.acts_by_warps(target):
            self.act(target, self.m.number(0), self.threads, self.those(), self.m.number(ENDED))
        self.branch(target.head)

    def follow(self, region, target):
        m = self.m
        first, end = self.load(m.i32, self.state[0]), self.load(m.i32, self.state[1])
        number = m.number(self.number(target) if target else ENDED, m.i16)
        stay = self.new_block("")
        if target is not None and not target.uniform and target.waits == FREE:
            self.branch(target.head)
            self.lib.DeleteBasicBlock(stay)
            return
        if target is not None and not target.uniform and target.waits in (WARP, WARP_ANY):
            masks = self.masks if self.masks is not None and self.mask(target) is not None else self.lib.ConstNull(m.pointer)
            complete = self.call("rill_sched_is_warps", first, end, self.threads, masks)
            go = self.new_block("")
            self.branch_if(self.build("ICmp", llvm.NE, complete, m.number(0)), go, stay)
            self.at_end(go)
            self.act(target, first, end, self.lib.ConstNull(m.pointer), m.number(ENDED))
            self.branch(target.head)
        else:
            self.branch(stay)
        self.at_end(stay)
        self.call("rill_sched_note", self.next, first, end, number)
        self.branch(self.dispatcher)

    def dispatch(self):
        m, lib = self.m, self.lib
        self.at_end(self.dispatcher)
        kinds = bytes(region.waits | (8 if region.uniform else 0) for region in self.regions)
        table = lib.AddGlobal(m.handle, lib.TypeOf(self.text(kinds)), b"rill_waits")
        lib.SetInitializer(table, self.text(kinds))
        lib.SetGlobalConstant(table, 1)
        lib.SetLinkage(table, llvm.INTERNAL_LINKAGE)
        masks = self.masks or lib.ConstNull(m.pointer)
        found = self.call("rill_sched_next", self.next, self.threads, table, masks, *self.state)
        switch = lib.BuildSwitch(self.builder, found, self.ended, len(self.regions))
        for region in self.regions:
            if region.uniform:
                act = self.new_block("")
                lib.AddCase(switch, m.number(region.number | ACTS), act)
                self.at_end(act)
                self.copy_by_origin(region)
                self.enter_region(region)
                continue
            lib.AddCase(switch, m.number(region.number), region.head)
            act = self.new_block("")
            lib.AddCase(switch, m.number(region.number | ACTS), act)
            self.at_end(act)
            if region.sync is None:
                self.branch(region.head)
            else:
                self.act(region, m.number(0), self.threads, self.next, m.number(region.number))
                self.branch(region.head)

    def text(self, data):
        return self.lib.ConstStringInContext2(self.m.context, data, len(data), 1)

    def clean(self):
        """Erases the instructions that have been replaced."""
        lib = self.lib
        start = self.regions[0]
        self.before(self.setup_end)
        # This call follows all variables: the block may be split when the call is inlined, and LLVM turns only
        # variables in the first block of a function into registers.
        begins = self.call("rill_sched_begin", self.next, self.threads) if self.needs_next else None
        goes = self.branch(start.head)
        lib.InstructionEraseFromParent(self.setup_end)
        self.setup_end = begins or goes
        doomed = list(self.c.sync_points.values()) + list(self.cut_phis)
        # Search the blocks again: instructions that close_region erased must not be accessed.
        for instruction in [i for block in self.m.blocks(self.function) for i in self.m.instructions(block)]:
            if self.c.marker(instruction) in THREAD or (self.is_lifetime(instruction) and not self.is_local_life(instruction)):
                doomed.append(instruction)
        for instruction in doomed:
            if lib.TypeOf(instruction) != self.m.void:
                lib.ReplaceAllUsesWith(instruction, lib.GetUndef(lib.TypeOf(instruction)))
            lib.InstructionEraseFromParent(instruction)

    def is_local_life(self, instruction):
        return any(self.c.base(operand) in self.local for operand in self.m.operands(instruction))
