"""Chooses the groups of regions that strips.py emits: each warp executes a group completely before the next warp starts."""

from dataclasses import dataclass, field

from . import flow, live_lanes, llvm
from .ir import DIVISIONS, PURE
from .lanes import LANES, Lanes
from .regions import WARP, WARP_ANY
from .slots import MOST_THREADS

QUOTIENTS = {llvm.LSHR: "LShr", llvm.ASHR: "AShr", llvm.UDIV: "UDiv", llvm.UREM: "URem", llvm.SDIV: "SDiv"}


@dataclass(eq=False)
class Group:
    regions: list  # the group is entered at the first one
    following: dict = field(default_factory=dict)  # maps a region to the region that begins with the warp function after it
    is_wide: bool = False  # whether there is a version that executes the group for more threads than a warp at once

    def head(self):
        return self.regions[0]


class Groups(Lanes):
    def find_groups(self):
        """Finds the groups, whose effects must not depend on the order of warps."""
        self.groups, taken = [], set()
        graph = {region: region.exits for region in self.regions}
        order = list(reversed(flow.postorder(graph, self.regions[0])))
        self.befores = flow.reverse(graph)
        for region in order:
            if region in taken or not self.may_belong(region):
                continue
            inside = self.find_part(region, graph, taken) or self.find_inside(region, graph, taken)
            following = {r: r.exits[0] for r in inside if r.exits and self.is_linked(r, r.exits[0]) and r.exits[0] in inside}
            group = Group([region, *(r for r in order if r in inside and r is not region)], following)
            if self.has_loop(group) or any(r.sync in self.sources for r in inside):
                group.is_wide = self.may_be_wide(group)
                self.groups.append(group)
                taken |= inside
        self.storing = {region for region in self.regions if self.stores(region)}
        self.live_lanes = live_lanes.LiveLanes(self)

    def find_part(self, head, graph, taken):
        """Returns the regions up to the first warp function if they may be executed for more threads than a warp at once, as in
        a sum of a block whose threads first add up a row. Returns None for others."""
        inside = self.find_inside(head, {r: [e for e in exits if not self.is_link(e)] for r, exits in graph.items()}, taken)
        part = Group([head, *(inside - {head})])
        ends = any(self.is_link(other) for r in inside for other in graph[r])
        return inside if ends and self.has_loop(part) and self.may_be_wide(part) else None

    def has_loop(self, group):
        """Returns whether a group contains a complete interchanged loop that gains from being in the group. A loop that
        contains stores gains only if something in the group depends on the warp or the lane: LLVM compares the
        addresses of all accesses in each execution of the loop, which takes as long for the threads of a warp as for
        the threads of a row. A loop that gathers gains nothing from values in registers, and longer rows keep more loads
        in flight."""
        inside = set(group.regions[1:])
        graph = {r: [other for other in r.exits if other in inside] for r in inside}
        cut = {self.c.owner[block] for block in self.c.sync_points if self.c.is_free(block)}
        loops = [r for r in cut & inside if r in flow.reachable(graph, graph[r])]
        about_warps = [i for r in group.regions for i in self.region_instructions(r) if self.is_about_warps(i)]
        if any(self.c.gathers(r.blocks) for r in loops):
            return any(i in self.c.varying and self.c.depends_only_on_index(i) for i in about_warps)
        return any(about_warps or not self.stores(r) for r in loops)

    def may_be_wide(self, group):
        """Returns whether a group does not depend on warps, so that it may be executed for more threads than a warp at once."""
        warps = any(r.sync in self.sources or self.is_link(r) or (r.few and r.few.every) for r in group.regions)
        values = (i for r in group.regions for i in self.region_instructions(r) if i in self.c.varying and self.is_about_warps(i))
        return not (self.needs_next or self.c.has_borders or warps or any(map(self.c.depends_only_on_index, values)))

    def region_instructions(self, region):
        return [i for block in region.blocks for i in self.c.instructions[block]]

    def stores(self, region):
        return any(self.m.opcode(i) == llvm.STORE for i in self.region_instructions(region))

    def is_about_warps(self, value):
        """Returns whether a value may be the number of a warp or of a lane."""
        opcode = self.m.opcode(value)
        if opcode not in (llvm.AND, *QUOTIENTS):
            return False
        number = self.m.constant(self.lib.GetOperand(value, 1))
        return number is not None and self.divides_by_warps(opcode, number)

    def divides_by_warps(self, opcode, number):
        """Returns whether a quotient or remainder by this number is the same for all lanes of a warp, or the sum of
        such a value and the lane."""
        if opcode == llvm.AND:
            return number % self.width == self.width - 1
        if opcode in (llvm.LSHR, llvm.ASHR):
            number = 1 << min(number, 16)
        return number > 0 and number % self.width == 0

    def find_inside(self, head, graph, taken):
        """Returns the regions that can form a group that begins with `head`."""
        found = {head}
        work = [head]
        while work:
            region = work.pop()
            for other in graph[region]:
                if other not in found | taken and self.may_belong(other) and self.may_follow(region, other):
                    found.add(other)
                    work.append(other)
        while True:
            kept = {r for r in found if r is head or all(b in found and self.may_follow(b, r) for b in self.befores[r])}
            kept = flow.reachable({r: [e for e in graph[r] if e in kept and e is not head] for r in kept}, [head])
            if kept == found:
                return found
            found = kept

    def may_belong(self, region):
        return (self.fits(region) and not self.goes_far(region)) or (region.scalar and not self.needs_next and not region.ends)

    def goes_far(self, region):
        """Returns whether an interchanged loop advances by the size of the grid. Neighbouring warps then access the same page of
        memory in one iteration, and another page in the next one."""
        steps = (i for i in self.region_instructions(region) if self.m.opcode(i) == llvm.ADD)
        return any(map(self.c.is_free, region.blocks)) and any(self.is_of_grid(v, set()) for i in steps for v in self.m.operands(i))

    def is_of_grid(self, value, seen):
        """Returns whether a uniform value is computed from the size of the grid."""
        if value in self.c.grid or value in seen or value in self.c.varying or not self.lib.IsAInstruction(value):
            return value in self.c.grid
        seen.add(value)
        return self.m.opcode(value) in PURE and any(self.is_of_grid(v, seen) for v in self.m.operands(value))

    def may_follow(self, region, other):
        if other.sync is None and other.uniform:
            return not self.needs_next
        return self.is_linked(region, other)

    def is_linked(self, region, other):
        """Returns whether `other` begins with a warp function and can be reached only from `region`."""
        if not self.is_link(other) or self.befores[other] != [region] or self.m.phis(other.entry):
            return False
        return not region.scalar and not other.scalar and len(region.exits) == 1 and not region.ends

    def is_link(self, region):
        return region.sync is not None and region.uniform and region.waits in (WARP, WARP_ANY)

    def note_acts(self):
        """Stores what clean() would erase: the arguments of the groups' synchronization points, and the lanes that need their
        results."""
        self.live_lanes.find()
        self.result_lanes = {call: self.live_lanes.result_lanes(call) for call in self.sources}
        writers = self.find_writers()
        self.set_by = {group: {slot for slot, regions in writers.items() if regions <= set(group.regions)} for group in self.groups}
        links = [region.sync for group in self.groups for region in group.following.values()]
        links += [group.head().sync for group in self.groups if self.acts_by_warps(group.head())]
        self.acts = {call: self.act_arguments(call) for call in links if self.c.marker(call) and call not in self.in_place}

    def find_writers(self):
        """Returns the regions that write to each slot in which threads have elements; None for a warp function."""
        found, calls = {}, set(self.c.sync_points.values())
        stored = [(v, None if v in calls else self.c.owner[self.c.block_of[v]]) for v in [*self.slots, *self.shared_slots] if v not in self.cut_phis]
        stored += [(phi, region) for region in self.regions for _, _, copies in region.ways for phi, _ in copies]
        for value, region in stored:
            slot, _, each = self.slot(value)
            if each:
                found.setdefault(slot, set()).add(region)
        return found

    def acts_by_warps(self, region):
        """Returns whether a group itself performs the warp function before its first region. A barrier is performed for
        the whole block before the group is entered."""
        return any(group.head() is region for group in self.groups) and self.is_link(region) and not region.scalar

    def fits(self, region):
        if region.scalar or not region.is_static() or (region.ends and region.exits):
            return False
        few = region.few
        if few and (few.is_one() or (few.every and few.every[1] != LANES - 1)):
            return False
        if few and (few.others or (not few.every and not 0 <= (self.m.constant(few.limit) or -1) <= MOST_THREADS)):
            return False
        return all(map(self.is_plain, self.region_instructions(region)))

    def is_plain(self, instruction):
        opcode = self.m.opcode(instruction)
        if opcode in (llvm.LOAD, llvm.STORE):
            return not self.lib.GetVolatile(instruction) and self.lib.GetOrdering(instruction) == llvm.NOT_ATOMIC
        if opcode == llvm.CALL:
            return bool(self.c.marker(instruction)) or self.c.is_pure_call(instruction) or self.is_lifetime(instruction)
        return opcode in PURE or opcode in DIVISIONS or opcode in (llvm.PHI, llvm.BR, llvm.SWITCH, llvm.RET)
