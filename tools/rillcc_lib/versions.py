"""A second version of kernels whose threads may end early or skip a sync point, for blocks in which none does.

After `if (i >= n) return;` threads of some blocks synchronize with others missing, which has to be checked at every sync
point.  In most blocks i is below n for all threads.  A kernel with such a condition, around or in front of sync points, is
emitted in two versions: as it is, and with the condition known (all_below.py says when it holds for all); a third function
is called for a block, and chooses.  The condition is of values that are known before the threads start, so each block does
what it did.  Loops whose threads go innermost (interchange.py) are in the second version only, which then takes blocks whose
rows are long enough.

A third version has such loops too, in which the threads beyond a border do nothing (borders.py).  It is for blocks of which
about a quarter of the threads is inside; loops thread by thread are faster where there are fewer.
"""

from . import all_below, borders, flow, llvm, whole_warps
from .ir import PURE
from .regions import BEGIN, BLOCK, BORDERS, INTERCHANGE, SYNC_POINTS, THREAD

SHORTEST_ROW = 8  # of threads that go innermost
CHOOSES, ALL, SOME = "rill_choose_", ".all", ".some"  # before and after the kernel's name


class Varying:
    """All values but those that can be computed before the threads start."""

    def __init__(self, versions):
        self.versions = versions

    def __contains__(self, value):
        return not self.versions.is_early(value)


class Versions:
    """Of one kernel, a function that rillcc has prepared."""

    def __init__(self, module, kernel):
        self.m, self.lib, self.kernel = module, module.lib, kernel
        self.builder = self.lib.CreateBuilderInContext(module.context)
        self.varying = Varying(self)
        self.read(kernel)

    def close(self):
        self.lib.DisposeBuilder(self.builder)

    def read(self, function):
        """Finds what comes before the threads start, and what they start with; nothing if they do otherwise."""
        self.front, self.early, self.values, self.size = [], {}, [], [None]
        for instruction in self.m.instructions(self.lib.GetEntryBasicBlock(function)):
            if self.marker(instruction) == BEGIN:
                self.values = self.m.arguments(instruction)
                self.size = self.values[3:6]
                break
            self.front.append(instruction)

    def marker(self, value):
        """Returns the name of the function that is called; else None."""
        if not self.lib.IsAInstruction(value) or not self.lib.IsACallInst(value) or not self.m.callee(value):
            return None
        return self.m.name(self.m.callee(value))

    def is_early(self, value):
        if not self.lib.IsAInstruction(value):
            return True
        if value not in self.early:
            opcode = self.m.opcode(value)
            if self.marker(value) in BLOCK:
                self.early[value] = True
            elif opcode in PURE or (opcode == llvm.LOAD and value in self.front and not self.lib.GetVolatile(value)):
                self.early[value] = all(self.is_early(operand) for operand in self.m.operands(value))
            else:
                self.early[value] = False
        return self.early[value]

    # Which conditions

    def deciding(self, function):
        """Returns the ends of blocks that decide which sync points threads reach."""
        graph = {block: self.m.successors(block) for block in self.m.blocks(function)}
        meets = {b for b in graph if any(self.marker(i) in SYNC_POINTS for i in self.m.instructions(b))}
        ahead = {block: flow.reachable(graph, [block]) & meets for block in graph}
        deciding = [b for b, others in graph.items() if len({frozenset(ahead[other]) for other in others}) > 1]
        return [self.m.terminator(block) for block in deciding]

    def conditions(self, function):
        """Those which decide where threads meet, in the order of the function."""
        found = set().union(*(self.parts(self.lib.GetOperand(end, 0)) for end in self.deciding(function)))
        return [i for block in self.m.blocks(function) for i in self.m.instructions(block) if i in found]

    def is_about_warps(self):
        """Returns whether it depends on a thread's warp where it meets others."""
        agreed, ends = whole_warps.Agreed(self), self.deciding(self.kernel)
        conditions = [self.lib.GetOperand(end, 0) for end in ends]
        return any(not self.is_early(condition) and agreed.agree(condition) for condition in conditions)

    def parts(self, condition):
        """Returns the comparisons of which a condition is made."""
        found, work = set(), [condition]
        while work:
            value = work.pop()
            if not self.lib.IsAInstruction(value) or value in found:
                continue
            if self.m.opcode(value) in (llvm.AND, llvm.OR, llvm.XOR, llvm.SELECT, llvm.FREEZE):
                work += self.m.operands(value)
            elif self.m.opcode(value) == llvm.ICMP and not self.is_early(value):
                found.add(value)
        return found

    # The functions

    def add(self):
        """Makes the other functions, if there is such a condition."""
        self.read(self.kernel)  # which passes over the module may have changed
        if not self.values or self.lib.GetSubprogram(self.kernel):  # a debugger knows one function for a subprogram
            return
        conditions = self.conditions(self.kernel)
        cuts = [i for block in self.m.blocks(self.kernel) for i in self.m.instructions(block) if self.marker(i) == INTERCHANGE]
        if not conditions and not cuts:
            return
        whole_warps_only = self.is_about_warps()
        lib, kind, name = self.lib, self.lib.GlobalGetValueType(self.kernel), self.m.name(self.kernel)
        choice, every = [lib.AddFunction(self.m.handle, text.encode(), kind) for text in (CHOOSES + name, name + ALL)]
        start = lib.AppendBasicBlockInContext(self.m.context, choice, b"")
        lib.PositionBuilderAtEnd(self.builder, start)
        all_hold, quarter, known = self.build_all_hold(conditions, choice)
        long = lib.BuildICmp(self.builder, llvm.UGE, self.size[0], self.m.number(SHORTEST_ROW), b"")
        if whole_warps_only:
            rest = lib.BuildAnd(self.builder, self.size[0], self.m.number(whole_warps.LANES - 1), b"")
            all_hold = self.also(all_hold, lib.BuildICmp(self.builder, llvm.EQ, rest, self.m.number(0), b""))
        elif cuts:
            all_hold = self.also(all_hold, long)
        elif not known:
            for function in choice, every:
                lib.DeleteFunction(function)
            return
        self.known, some = known, None
        if cuts and self.borders(self.kernel, known).find():
            some = lib.AddFunction(self.m.handle, (name + SOME).encode(), kind)
        lib.ReplaceAllUsesWith(self.kernel, choice)
        for function in filter(None, (choice, every, some)):
            lib.SetLinkage(function, llvm.INTERNAL_LINKAGE)
            self.m.copy_attributes(self.kernel, function)
        if whole_warps_only:
            whole_warps.promise(self.m, every)
        ways = [self.m.add_call(self.builder, choice, callee) for callee in (every, self.kernel)]
        if some:
            otherwise = lib.AppendBasicBlockInContext(self.m.context, choice, b"")
            ways.append(self.m.add_call(self.builder, choice, some))
            lib.PositionBuilderAtEnd(self.builder, otherwise)
            lib.BuildCondBr(self.builder, self.also(quarter, long), ways.pop(), ways.pop())
            ways.append(otherwise)
        lib.PositionBuilderAtEnd(self.builder, start)
        lib.BuildCondBr(self.builder, all_hold, *ways)
        if some:
            self.copy_kernel(some)
        self.copy_kernel(every)
        self.read(every)
        conditions = self.conditions(every)
        for number, holds in known:
            lib.ReplaceAllUsesWith(conditions[number], self.m.number(holds, self.m.i1))
        for cut in cuts:
            lib.InstructionEraseFromParent(cut)
        self.m.run_passes("function(instsimplify,simplifycfg,adce)")

    def borders(self, function, known):
        self.read(function)
        conditions = self.conditions(function)
        return borders.Borders(self.m, function, [conditions[number] for number, _ in known], self.builder)

    def add_borders(self):
        """Leaves out the threads beyond a border in the version that has one."""
        some = self.m.function(self.m.name(self.kernel) + SOME)
        if some:
            self.m.set_text_attribute(some, BORDERS)
            self.borders(some, self.known).add()

    def build_all_hold(self, conditions, choice):
        """Builds what says that the conditions hold for all threads, and for a quarter of them; and gives the numbers of those
        for which that can be said, each with what it is then."""
        finder, all_hold, quarter, known = all_below.AllBelow(self, THREAD), None, None, []
        self.copies = {self.lib.GetParam(self.kernel, 0): self.lib.GetParam(choice, 0)}
        self.size = [self.here(value) for value in self.values[3:6]]
        for number, condition in enumerate(conditions):
            holds = finder.build_mostly(condition, self.here)
            if holds is None:
                continue
            known.append((number, finder.holds_mostly(condition)))
            # Where the kernel would not have compared, what is compared may have no value.
            holds = self.lib.BuildFreeze(self.builder, holds, b"")
            all_hold = self.also(all_hold, holds)
            quarter = self.also(quarter, self.lib.BuildFreeze(self.builder, finder.build_quarter(condition, self.here), b""))
        return all_hold, quarter, known

    def also(self, holds, other):
        return other if holds is None else self.lib.BuildAnd(self.builder, holds, other, b"")

    def here(self, value):
        """What stands for an early value in the function that chooses, where the builder stands."""
        if not self.lib.IsAInstruction(value):
            return self.copies.get(value, value)
        if value not in self.copies:
            name = self.marker(value)
            if name in BLOCK:
                self.copies[value] = self.here(self.values[BLOCK.index(name)])
            else:
                operands = [self.here(operand) for operand in self.m.operands(value)]
                copy = self.lib.InstructionClone(value)
                self.m.insert(self.builder, copy)
                for i, operand in enumerate(operands):
                    self.lib.SetOperand(copy, i, operand)
                self.copies[value] = copy
        return self.copies[value]

    def copy_kernel(self, function):
        """LLVM's C interface copies no functions, but puts one in the place of a call."""
        self.m.add_call(self.builder, function, self.kernel, self.m.attribute("alwaysinline"))
        self.m.run_passes("always-inline")
        for version in self.kernel, function:
            self.lib.AddAttributeAtIndex(version, llvm.FUNCTION_INDEX, self.m.attribute("noinline"))
