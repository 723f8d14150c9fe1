"""Emits groups of regions that one warp executes completely before the next warp starts.

This is done for blocks whose rows consist of whole warps. The lanes of a warp are counted from 0 to 31, and a value
that only the regions of a group use is kept in an array of 32 elements, which LLVM turns into registers. The regions of
a group are separated by warp functions, or by cuts without waiting. Such a cut may belong to an interchanged loop
(interchange.py), whose sums then stay in registers from one iteration to the next. All regions are emitted in two
versions, because blocks of other shapes execute the originals.

A group is entered only at its first region. When a warp reaches a region outside the group, the next warp starts. The
last warp leaves the group.
"""

from . import flow, llvm
from .all_below import EXTENSIONS
from .groups import QUOTIENTS, Groups
from .lanes import LANES
from .regions import require
from .row_loops import FLOATS, ThreadLoop

WIDEST = 128  # most threads that a group without warp functions executes at once; they divide the length of a row
MOST_OWN = 1024  # most bytes of values that these threads keep; after SROA about half of them remain in registers
ENDED = 0xFFFF  # defined in rill/device/host_schedule.h
NUMBERS = (*FLOATS, llvm.INTEGER_TYPE)


class Strips(Groups):
    # The warp version

    def add_warps(self):
        graph = {block: self.m.successors(block) for block in self.m.blocks(self.function)}
        self.owners = []  # (slot that each warp has for itself, blocks that use it, other instructions that use it)
        # This precedes find_own(), because it uses slots that other groups share.
        heads = [self.add_general(group) for group in self.groups]
        for group, (choice, general) in zip(self.groups, heads):
            blocks = self.loop_blocks(group, graph)
            wide = self.wide_width(group, set().union(*blocks.values()))
            warps = choice
            if wide:
                warps, self.width = self.new_block(""), wide
                self.add_group(group, choice, warps, graph, blocks)
                self.width = LANES
            self.add_group(group, warps, general, graph, blocks)
        for slot, blocks, others in self.owners:
            used = [user for user in self.m.users(slot) if self.lib.GetInstructionParent(user) not in blocks]
            require(others.issuperset(used), "only one group of regions uses a warp's own values")

    def loop_blocks(self, group, graph):
        """Returns the blocks of the loop over the threads for each region of a group that has such a loop."""
        loops = [r for r in group.regions if not r.scalar]
        return {r: flow.reachable(graph, [r.rows.loop], {r.latch}) - {r.latch} for r in loops}

    def wide_width(self, group, blocks):
        """Returns how many threads a group executes at once in blocks whose row length is a multiple of this number; None
        if these are no more than a warp. The values of so many threads still fit into registers."""
        size = sum(self.lib.ABISizeOfType(self.m.layout, kind) for slot, kind, _ in self.own_slots(group, blocks) if self.m.users(slot))
        width = min(WIDEST, MOST_OWN // max(size, 1))
        return 1 << (width.bit_length() - 1) if group.is_wide and width >= 2 * LANES else None

    def add_general(self, group):
        """Makes the block that selects a version of a group. Returns this block and the first block of the general
        version."""
        first = group.head()
        if first.scalar:
            choice = self.new_block("")
            for block in self.m.predecessors(first.head):
                self.m.redirect(block, first.head, choice)
            return choice, first.head
        self.lib.InstructionEraseFromParent(self.m.terminator(first.head))
        arguments = self.acts.get(first.sync)
        if not arguments:
            return first.head, first.rows.rows
        general = self.new_block("")
        self.at_end(general)
        those = self.those()
        self.act_with(first.sync, arguments, self.m.number(0), self.threads, those, self.m.number(ENDED))
        self.branch(first.rows.rows)
        return first.head, general

    def add_group(self, group, choice, general, graph, blocks):
        """Adds a loop over warps, or over strips of another width, in front of a group's regions. Blocks use it if their
        rows consist of whole warps, and if in each warp either all threads have ended or none has."""
        m, lib = self.m, self.lib
        size_x, size_y, _ = self.c.size
        loops = list(blocks)
        start, warps, latch = [self.new_block(name) for name in ("region%d.warps" % group.head().number, "", "")]
        self.find_own(set().union(*blocks.values()), group)
        self.at_end(choice)
        first, end, starts = m.number(0), self.threads, [m.number(0)] * 4
        complete = self.build("ICmp", llvm.EQ, self.build("And", size_x, m.number(self.width - 1)), m.number(0))
        if self.needs_next:
            first, end = self.load(m.i32, self.state[0]), self.load(m.i32, self.state[1])
            full = self.call("rill_sched_full_warps", self.next, self.threads, first, end, self.state[2])
            complete = self.build("And", complete, self.build("ICmp", llvm.NE, full, m.number(0)))
        self.choice = self.branch_if(complete, warps, general)
        self.at_end(warps)
        if self.needs_next:
            starts = self.place_of(first)
        self.branch(start)
        self.at_end(start)
        place = x, y, z, t = [self.build("Phi", m.i32) for _ in range(4)]
        wide = self.build("ZExt", t, m.i64)
        next_t, next_x = [self.nowrap(self.build("Add", value, m.number(self.width))) for value in (t, x)]
        more = self.build("ICmp", llvm.ULT, next_t, end)
        copied = []
        entries = {region: self.new_block("") for region in loops}
        few = self.seen_of(group)
        for region in group.regions:
            if region.scalar:
                copies = self.copy_way(region.head, graph)
                entries[region] = copies[region.head]
                copied += copies.values()
                self.leave_last(region, group, copies, more, latch, wide)
        self.at_end(start)
        if few:
            index, most = few
            some = self.build("ICmp", llvm.ULT, t if index == "rill_ir_thread" else x, m.number(most))
            skip = self.new_block("")
            self.branch_if(some, entries[group.head()], skip)
            self.at_end(skip)
            self.branch_if(more, latch, group.regions[-1].tail)
        else:
            self.branch(entries[group.head()])
        ways = {region.head: entries[region] for region in group.regions[1:]}
        for region in loops:
            self.at_end(entries[region])
            if region.sync in self.sources:
                self.exchange(region.sync, wide)
            elif self.acts.get(region.sync):
                warp_end = self.build("Add", t, m.number(LANES))
                self.act_with(region.sync, self.acts[region.sync], t, warp_end, lib.ConstNull(m.pointer), m.number(ENDED))
            self.copy_loop(region, [b for b in graph if b in blocks[region]], graph, place, wide)
            if region in group.following:
                self.branch(entries[group.following[region]])
            elif region.exits and region.exits[0].head in ways:
                after, copies = lib.GetInsertBlock(self.builder), self.copy_way(region.tail, graph)
                copied += copies.values()
                self.at_end(after)
                self.branch(copies[region.tail])
            else:
                self.copy_back(wide)
                self.branch_if(more, latch, region.tail)
        for block in copied:
            for other in m.successors(block):
                m.redirect(block, other, ways.get(other, other))
        self.at_end(latch)
        wraps = self.build("ICmp", llvm.EQ, next_x, size_x)
        next_x = self.build("Select", wraps, m.number(0), next_x)
        next_y = self.nowrap(self.build("Add", y, self.build("ZExt", wraps, m.i32)))
        wraps = self.build("ICmp", llvm.EQ, next_y, size_y)
        next_y = self.build("Select", wraps, m.number(0), next_y)
        next_z = self.nowrap(self.build("Add", z, self.build("ZExt", wraps, m.i32)))
        self.branch(start)
        for phi, first_one, following in zip((t, x, y, z), starts, (next_t, next_x, next_y, next_z)):
            lib.AddIncoming(phi, llvm.array([first_one, following]), llvm.array([warps, latch]), 2)

    def copy_way(self, first, graph):
        """Copies the blocks through which all threads go from one region to the next ones."""
        m = self.m
        stop = ({region.head for region in self.regions} | {self.ended}) - {first}
        found = flow.reachable(graph, [first], stop) - stop
        copies = m.copy_blocks(self.function, [block for block in graph if block in found], self.builder)
        for block in found:
            for phi in m.phis(block):
                m.add_ways(copies[phi], [(copies.get(v, v), copies[b]) for v, b in m.incoming(phi)])
        return {block: copies[block] for block in found}

    def leave_last(self, region, group, copies, more, latch, wide):
        """Redirects the exits of a region that is executed once: only the last warp leaves the group through them."""
        for way, target in region.leaves.items():
            if target in group.regions[1:]:
                continue
            check = self.new_block("")
            self.at_end(check)
            self.copy_back(wide)
            self.branch_if(more, latch, copies[way])
            for block in copies.values():
                if block != check:
                    self.m.redirect(block, copies[way], check)

    def find_own(self, blocks, group):
        """Finds the slots that only this group uses. An array for one warp replaces such a slot, and LLVM keeps it in
        registers."""
        self.own.clear()
        self.copied_back = []
        for slot, kind, others in self.own_slots(group, blocks):
            self.own[slot] = (self.allocate_warp(kind), kind)
            if others is None:
                self.copied_back.append(slot)
            else:
                self.owners.append((slot, blocks, others))

    def own_slots(self, group, blocks):
        """Returns (slot, type of an element, other instructions that use it) for the slots that only this group uses, and with
        None as the last item for those that only a wide group sets, but others use. The slots of phis at the group's entry
        are excluded, because their values are stored outside the group."""
        # The group itself performs these shuffles. A shuffle before a region that is executed once is performed for the
        # whole block.
        shuffles = [region.sync for region in group.regions if region.sync in self.sources and not region.scalar]
        others = {call for shuffle in shuffles for call in self.acted.get(shuffle, ())}
        found: dict = {}
        for value, (slot, kind, each) in self.slots.items():
            if not each or self.cut_phis.get(value) is group.head():
                continue
            if all(user in others or self.lib.GetInstructionParent(user) in blocks for user in self.m.users(slot)):
                found[slot] = kind, others
            elif group.is_wide and slot in self.set_by[group] and self.lib.GetTypeKind(kind) in NUMBERS:
                found[slot] = kind, None
        return [(slot, *more) for slot, more in found.items()]

    def seen_of(self, group):
        """Returns the name of an index and an exclusive upper bound if, in this group, only threads whose index is
        below this bound have effects that are visible outside the group, as in a sum by the first warp. Returns None
        for any other group."""
        if any(region.scalar for region in group.regions) or len(group.following) != len(group.regions) - 1:
            return None
        # All lanes receive the result of such a warp function.
        if any(self.slot(r.sync)[0] not in self.own for r in group.regions if r.sync in self.slots):
            return None
        few = [region.few for region in group.regions if self.is_seen(region)]
        names = {some.index for some in few if some}
        if len(names) != 1 or any(not some or some.every for some in few):
            return None
        return names.pop(), max(self.m.constant(some.limit) for some in few)

    def is_seen(self, region):
        """Returns whether the effects of a region are visible outside its group."""
        kept = [value for value in self.region_instructions(region) if value in self.slots or value in self.shared_slots]
        kept += [phi for _, _, copies in region.ways for phi, _ in copies]
        return region in self.storing or any(self.slot(v)[0] not in self.own or self.slot(v)[0] in self.copied_back for v in kept)

    def copy_loop(self, region, blocks, graph, place, wide):
        """Copies the body of a region's loop over the threads, up to the latch, into a loop over the lanes of the warp
        whose first thread is at `place`. The builder moves from the block in front of the new loop to the block after
        it."""
        m, lib, rows = self.m, self.lib, region.rows
        before = lib.GetInsertBlock(self.builder)
        copies = {block: self.new_block("") for block in blocks}
        latch, after = self.new_block("lane.latch"), self.new_block("lane.end")
        copies[region.latch] = latch
        own = self.apart_from_own(region, blocks, graph)
        x, y, z, t = place
        live = max(1, self.live_lanes.regions[region]) if region in self.live_lanes.simple else self.width
        few, count = region.few, m.number(live)
        if few and not few.every:
            count = self.build("Sub", m.number(m.constant(few.limit)), t if few.index == "rill_ir_thread" else x)
            some = self.build("ICmp", llvm.SGT, count, m.number(0))
            count = self.build("Select", self.build("ICmp", llvm.SLT, count, m.number(self.width)), count, m.number(self.width))
            self.branch_if(some, copies[rows.loop], after)
        else:
            self.branch(copies[rows.loop])
        self.at_end(copies[rows.loop])
        one = m.number(few.every[2] if few and few.every else 0) if live == 1 or (few and few.every) else None
        lane = one or self.build("Phi", m.i32)
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
                array = own.get(lib.GetOperand(value, 0)) if m.opcode(value) == llvm.GEP else None
                if array:
                    copies[value] = self.element(array[1], array[0], wide_lane)
                elif m.opcode(value) == llvm.PHI:
                    copies[value] = self.build("Phi", lib.TypeOf(value))
                    phis.append(value)
                else:
                    copies[value] = self.of_lane(region, value, place, lane)
                    if not copies[value]:
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
            self.thread_loops.append(ThreadLoop(copies[rows.loop], latch, lane))
        self.at_end(after)
        for slot, array in own.items():
            if array != self.own[slot]:
                self.copy_warp(array, self.own[slot])

    def apart_from_own(self, region, blocks, graph):
        """Returns the arrays that hold a warp's own values in a region. If lanes branch, LLVM may not vectorize the region, and
        arrays that lanes access one by one do not stay in registers. Such a region uses copies of the arrays."""
        m, own = self.m, dict(self.own)
        if any(len(graph[b]) > 1 for b in blocks):
            used = {m.operands(i)[0] for b in blocks for i in m.instructions(b) if m.opcode(i) == llvm.GEP}
            for slot, (_, kind) in self.own.items():
                if slot in used and self.lib.GetTypeKind(kind) in NUMBERS:
                    own[slot] = self.allocate_warp(kind), kind
                    self.copy_warp(self.own[slot], own[slot])
        return own

    def copy_warp(self, source, target):
        """Copies the values of the warps that are executed at once from one array to another."""
        kind = source[1]
        vector, alignment = self.lib.VectorType(kind, LANES), self.lib.ABISizeOfType(self.m.layout, kind)
        for first in range(0, self.width, LANES):
            places = [self.element(kind, array, self.m.number(first)) if first else array for array, _ in (source, target)]
            values = self.load(vector, places[0])
            for access in values, self.store(values, places[1]):
                self.lib.SetAlignment(access, alignment)

    def copy_back(self, wide):
        """Copies values that are used after the group to their slots, for the threads from number `wide` on."""
        for slot in self.copied_back:
            array, kind = self.own[slot]
            self.copy_warp((array, kind), (self.element(kind, slot, wide), kind))

    # Numbers of warps and lanes

    def of_lane(self, region, value, place, lane):
        """Builds a quotient or remainder of a thread's index in a form that shows LLVM that it is the same for all
        lanes of a warp, or the sum of such a value and the lane. Returns None for any other value."""
        m, opcode, kind = self.m, self.m.opcode(value), self.lib.TypeOf(value)
        if opcode in EXTENSIONS and kind == m.i64 and self.lib.TypeOf(self.lib.GetOperand(value, 0)) == m.i32:
            return self.widen(region, self.lib.GetOperand(value, 0), opcode, place, lane)
        if opcode not in (llvm.ADD, llvm.AND, *QUOTIENTS):
            return None
        of, by = m.operands(value)
        number = m.constant(by)
        shows = opcode == llvm.ADD or self.is_about_warps(value)
        if opcode == llvm.SDIV:  # rounds toward zero, so negative quotients are rounded up
            shows = shows and self.require_positive(region, of)
        first = self.first_of_warp(region, value if opcode == llvm.ADD else of, place) if shows else None
        if not first:
            return None
        if opcode == llvm.AND:
            first = self.build("And", first, m.number(number & ~(self.width - 1), kind))
        elif opcode != llvm.ADD:
            first = self.build(QUOTIENTS[opcode], first, by)
        if opcode in (llvm.ADD, llvm.AND, llvm.UREM):
            return self.nowrap(self.build("Add", first, lane if kind == m.i32 else self.build("ZExt", lane, kind)))
        return first

    def widen(self, region, value, extension, place, lane):
        """Builds the extension of a 32-bit number to 64 bits as a sum that has the lane as a separate term, because
        LLVM drops the no-wrap flags of sums that it reassociates. Returns None if the number does not depend on the
        lane."""
        m, flag = self.m, "nsw" if extension == llvm.SEXT else "nuw"
        first = self.first_of_warp(region, value, place)
        if first:
            return self.build("Add", self.build(EXTENSIONS[extension], first, m.i64), self.build("ZExt", lane, m.i64))
        if not m.is_binary(value, llvm.ADD) or flag not in m.text(value).split("add", 1)[1].split():
            return None
        terms = [self.widen(region, operand, extension, place, lane) for operand in m.operands(value)]
        if not any(terms):
            return None
        terms = [t or self.build(EXTENSIONS[extension], operand, m.i64) for t, operand in zip(terms, m.operands(value))]
        return self.build("Add", *terms)

    def require_positive(self, region, value):
        """Makes blocks use the general version if a sum with a thread's index may be negative there. Returns whether
        the sign of the sum can be computed before the threads start."""
        m, before = self.m, self.lib.GetInsertBlock(self.builder)
        self.before(self.choice)
        least = self.before_threads(region, value) if self.lib.TypeOf(value) == m.i32 else None
        if least:
            last = self.build("Add", least, self.build("Sub", self.threads, m.number(1)))
            signs = self.build("Or", least, last)
            positive = self.build("ICmp", llvm.SGE, signs, m.number(0))
            self.lib.SetOperand(self.choice, 0, self.build("And", self.lib.GetCondition(self.choice), positive))
        self.at_end(before)
        return bool(least)

    def before_threads(self, region, value, is_term=True):
        """Builds the value that a sum of a thread's index and of values known before the threads start has for index 0.
        Returns None for any other value, such as a multiple of the index."""
        if value in (region.index[0], region.index[3]):
            return self.m.number(0) if is_term else None
        if not self.lib.IsAInstruction(value) or value in self.c.prologue:
            return None if value in self.c.varying else value
        if self.m.opcode(value) not in (llvm.ADD, llvm.MUL, llvm.SHL):
            return None
        is_term = is_term and self.m.opcode(value) == llvm.ADD
        operands = [self.before_threads(region, operand, is_term) for operand in self.m.operands(value)]
        names = {llvm.ADD: "Add", llvm.MUL: "Mul", llvm.SHL: "Shl"}
        return self.build(names[self.m.opcode(value)], *operands) if all(operands) else None

    def first_of_warp(self, region, value, place):
        """Builds the value for the first lane of the warp, if it is a multiple of 32 there and grows by one with each
        lane. Returns None for any other value."""
        x, _, _, t = place
        if value in (region.index[0], region.index[3]):
            return x if value == region.index[0] else t
        opcode = self.m.opcode(value) if self.lib.IsAInstruction(value) else None
        if opcode in (llvm.ADD, llvm.OR):
            for a, b in (self.m.operands(value), self.m.operands(value)[::-1]):
                first = self.first_of_warp(region, a, place) if self.is_of_warps(b) else None
                if first:
                    return self.build("Add" if opcode == llvm.ADD else "Or", first, b)
        if opcode in (llvm.ZEXT, llvm.SEXT):
            first = self.first_of_warp(region, self.lib.GetOperand(value, 0), place)
            return first and self.build("ZExt" if opcode == llvm.ZEXT else "SExt", first, self.lib.TypeOf(value))
        return None

    def is_of_warps(self, value):
        """Returns whether a value is a multiple of 32 in blocks whose rows consist of whole warps."""
        if value == self.c.size[0]:
            return True
        if not self.lib.IsAInstruction(value):
            return (self.m.constant(value) or 0) % self.width == 0 and bool(self.lib.IsAConstantInt(value))
        opcode, operands = self.m.opcode(value), self.m.operands(value)
        if opcode in (llvm.ADD, llvm.SUB):
            return all(map(self.is_of_warps, operands))
        if opcode == llvm.SHL and self.m.constant(operands[1]) is not None:
            return (1 << min(self.m.constant(operands[1]), 16)) % self.width == 0 or self.is_of_warps(operands[0])
        return (opcode == llvm.MUL or opcode in (llvm.ZEXT, llvm.SEXT)) and any(map(self.is_of_warps, operands))
