"""Finds for how many lanes of a warp a region must be executed, if the other lanes would compute only values that nothing
uses.

    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(~0u, v, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;

Only lane 0 uses the last sum. It is computed from the sums of lanes 0 and 1 before it, these from the sums of lanes 0 to
3, and so on. The first sum is needed in 16 lanes. LLVM does not find this out: each sum is used twice, by the next shuffle
and by the next addition.

The lanes that are needed are rounded up to the first 1, 2, 4, 8, 16 or 32 lanes. This applies to regions that only compute
values, because other versions of the same region may execute it for all lanes, whose inputs are then undefined.
"""

from . import llvm
from .ir import PURE

LANES = 32


def round_up(lanes):
    """Returns the smallest power of two that is at least the number of lanes; 0 for 0."""
    return 1 << (lanes - 1).bit_length() if lanes else 0


class LiveLanes:
    """Works on the regions of a kernel before the calls and branches in them are replaced. find() needs the values that
    each region reads."""

    def __init__(self, writer):
        self.w, self.c, self.m, self.lib = writer, writer.c, writer.m, writer.lib
        self.slots = {}  # value that has a slot: the lanes whose elements are used
        inside = {r for group in writer.groups if not group.is_wide for r in group.regions}
        self.simple = {r for r in inside if not r.scalar and not writer.needs_next and self.is_simple(r)}
        # Each region that is not executed once: the lanes for which it must be executed.
        self.regions = {r: 0 if r in self.simple else self.all_lanes(r) for r in writer.regions if not r.scalar}

    def all_lanes(self, region):
        """Returns a number of lanes such that all threads that do something in a region are among the first of their
        warps, if rows consist of whole warps."""
        few = region.few
        if few and few.every:
            _, mask, number = few.every
            return round_up(number + 1) if mask % LANES == LANES - 1 and number < LANES else LANES
        limit = self.m.constant(few.limit) if few and few.predicate == llvm.ULT else None
        return round_up(limit) if limit is not None and 0 < limit < LANES else LANES

    def is_simple(self, region):
        """Returns whether a region only computes values, without branches, and may do so from undefined values."""
        if region.few or any(len(self.c.successors[block]) > 1 for block in region.blocks):
            return False
        return all(self.is_value(i) for i in self.w.region_instructions(region))

    def is_value(self, value):
        opcode = self.m.opcode(value)
        if opcode == llvm.CALL:
            return bool(self.c.marker(value)) or self.c.is_computation(value)
        return opcode in PURE or opcode in (llvm.PHI, llvm.BR)

    def find(self):
        """Finds the lanes of the simple regions."""
        w, reads = self.w, {r: [] for r in self.regions}
        for region, value in w.imports:
            if region in reads and self.has_slot(value):
                reads[region].append(value)
        writes = {r: self.written(r) for r in self.simple}
        before = None
        while before != (self.slots, self.regions):
            before = dict(self.slots), dict(self.regions)
            for region in self.simple:
                self.regions[region] = max([self.regions[region], *(self.slots.get(self.key(v), 0) for v in writes[region])])
            for region, values in reads.items():
                for value in values:
                    self.use(value, self.regions[region])
            for call in self.c.sync_points.values():
                for i, argument in enumerate(w.exchange_arguments(call)):
                    self.use(argument, self.source_lanes(call) if i == 0 and call in w.sources else LANES)

    def key(self, value):
        return self.w.shared_slots.get(value, value)

    def has_slot(self, value):
        """Returns whether each thread has an element for a value."""
        return self.key(value) in self.w.slots and self.w.slot(value)[2]

    def use(self, value, lanes):
        key = self.key(value)
        self.slots[key] = max(self.slots.get(key, 0), lanes)

    def written(self, region):
        """Returns the values that a region writes to slots."""
        calls = set(self.c.sync_points.values())
        values = [v for v in self.w.region_instructions(region) if v not in calls and v not in self.w.cut_phis]
        values += [phi for _, _, copies in region.ways for phi, _ in copies]
        return [v for v in values if self.has_slot(v)]

    def result_lanes(self, call):
        """Returns the lanes that need the result of a shuffle. A region that is executed once may need any of them."""
        region = self.w.in_place.get(call)
        return self.regions.get(region, LANES) if region else self.slots.get(call, 0)

    def source_lanes(self, call):
        """Returns the lanes whose values reach the lanes that need the result of a shuffle."""
        lanes = self.result_lanes(call)
        return round_up(1 + max(self.w.sources[call][1][:lanes])) if lanes else 0
