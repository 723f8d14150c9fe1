"""Emits a second version of each kernel whose threads may end early or skip a synchronization point, for blocks in
which none does.

After `if (i >= n) return;` some threads may be missing at every synchronization point, and this has to be tested there.
In most blocks, however, i is below n for all threads. If a kernel has such a condition around or in front of
synchronization points, it is emitted in two versions: as written, and with the condition replaced by a constant. A
third function is called for each block and calls one of the versions; all_below.py builds the test whether the
condition holds for all threads. The test uses only values that are known before the threads start, so each block does
the same as before. Only the second version contains interchanged loops (interchange.py). It is then used only for
blocks whose rows are long enough.

A third version also contains such loops, in which threads beyond a border do nothing (borders.py). It is for blocks in
which at least about a quarter of the threads are inside. With fewer threads, loops thread by thread are faster.
"""

from . import all_below, borders, flow, llvm, whole_warps
from .regions import BEGIN, BLOCK, BORDERS, INTERCHANGE, SYNC_POINTS, THREAD

SHORTEST_ROW = 8  # threads for which a loop is interchanged
CHOOSES, ALL, SOME = "rill_choose_", ".all", ".some"  # added before or after the kernel's name


class Varying:
    """Contains all values except those that can be computed before the threads start."""

    def __init__(self, versions):
        self.versions = versions

    def __contains__(self, value):
        return not self.versions.is_early(value)


class Versions:
    """The versions of one kernel, which rillcc has prepared."""

    def __init__(self, module, kernel):
        self.m, self.lib, self.kernel = module, module.lib, kernel
        self.builder = self.lib.CreateBuilderInContext(module.context)
        self.varying = Varying(self)
        self.read(kernel)

    def close(self):
        self.lib.DisposeBuilder(self.builder)

    def read(self, function):
        """Finds the instructions before the threads start, and the values with which the threads start. There are no
        such values if the entry block does not start the threads."""
        self.front, self.early, self.values, self.size = [], {}, [], [None]
        for instruction in self.m.instructions(self.lib.GetEntryBasicBlock(function)):
            if self.marker(instruction) == BEGIN:
                self.values = self.m.arguments(instruction)
                self.size = self.values[3:6]
                break
            self.front.append(instruction)

    def marker(self, value):
        """Returns the name of the called function, or None if the value is not a direct call."""
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
            elif self.m.is_computable(value) or (opcode == llvm.LOAD and value in self.front and not self.lib.GetVolatile(value)):
                self.early[value] = all(self.is_early(operand) for operand in self.m.operands(value))
            else:
                self.early[value] = False
        return self.early[value]

    # Choice of conditions

    def deciding(self, function):
        """Returns the branches that decide which synchronization points a thread reaches, each with the number of the way
        to all of them, or None."""
        graph = {block: self.m.successors(block) for block in self.m.blocks(function)}
        meets = {b for b in graph if any(self.marker(i) in SYNC_POINTS for i in self.m.instructions(b))}
        ahead = {block: flow.reachable(graph, [block]) & meets for block in graph}
        deciding = [b for b, others in graph.items() if len({frozenset(ahead[other]) for other in others}) > 1]
        found = {}
        for block in deciding:
            ways = [ahead[other] for other in graph[block]]
            all_of_them = [number for number, way in enumerate(ways) if way == set().union(*ways)]
            end = self.m.terminator(block)
            found[end] = all_of_them[0] if len(all_of_them) == 1 and self.m.opcode(end) == llvm.BR else None
        return found

    def conditions(self, function):
        """Returns the comparisons that decide which synchronization points a thread reaches, in the order of the
        function."""
        found = set().union(*(self.parts(self.lib.GetOperand(end, 0)) for end in self.deciding(function)))
        return [i for block in self.m.blocks(function) for i in self.m.instructions(block) if i in found]

    def is_about_warps(self):
        """Returns whether a thread's warp decides which synchronization points the thread reaches."""
        agreed = whole_warps.Agreed(self)
        conditions = [self.lib.GetOperand(end, 0) for end in self.deciding(self.kernel)]
        return any(not self.is_early(condition) and agreed.agree(condition) for condition in conditions)

    def wanted(self):
        """Returns the values of comparisons for which a thread reaches all synchronization points, as far as known."""
        found = {}
        work = [(self.lib.GetOperand(end, 0), way == 0) for end, way in self.deciding(self.kernel).items() if way is not None]
        while work:
            value, holds = work.pop()
            opcode, operands = (self.m.opcode(value), self.m.operands(value)) if self.lib.IsAInstruction(value) else (None, [])
            if opcode == llvm.ICMP:
                found[value] = holds
            elif opcode == llvm.FREEZE or opcode == (llvm.AND if holds else llvm.OR):
                work += [(operand, holds) for operand in operands]
            elif opcode == llvm.XOR and self.m.constant(operands[1]) == 1:
                work.append((operands[0], not holds))
            elif opcode == llvm.SELECT and self.m.constant(operands[2 if holds else 1]) == int(not holds):
                work += [(operand, holds) for operand in (operands[0], operands[1 if holds else 2])]
        return found

    def parts(self, condition):
        """Returns the comparisons of which a condition consists."""
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
        """Adds the other versions and the function that chooses, if the kernel has such a condition."""
        self.read(self.kernel)  # passes over the module may have changed it
        if not self.values or self.lib.GetSubprogram(self.kernel):  # a debugger expects one function for each subprogram
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
        """Makes the threads beyond a border inactive in the version with borders."""
        some = self.m.function(self.m.name(self.kernel) + SOME)
        if some:
            self.m.set_text_attribute(some, BORDERS)
            self.borders(some, self.known).add()

    def build_all_hold(self, conditions, choice):
        """Builds a value that is true if the conditions hold for all threads, and one that is true if they hold for a
        quarter of the threads. Also returns the number of each condition for which this can be tested, with the
        condition's value in this case."""
        finder, all_hold, quarter, known = all_below.AllBelow(self, THREAD), None, None, []
        finder.wanted = self.wanted()
        self.copies = {self.lib.GetParam(self.kernel, 0): self.lib.GetParam(choice, 0)}
        self.size = [self.here(value) for value in self.values[3:6]]
        for number, condition in enumerate(conditions):
            holds = finder.build_mostly(condition, self.here)
            if holds is None:
                continue
            known.append((number, finder.holds_mostly(condition)))
            # If the kernel would not have reached this comparison, its operands may be poison.
            holds = self.lib.BuildFreeze(self.builder, holds, b"")
            all_hold = self.also(all_hold, holds)
            quarter = self.also(quarter, self.lib.BuildFreeze(self.builder, finder.build_quarter(condition, self.here), b""))
        return all_hold, quarter, known

    def also(self, holds, other):
        return other if holds is None else self.lib.BuildAnd(self.builder, holds, other, b"")

    def here(self, value):
        """Returns an early value at the builder's position in the function that chooses."""
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
        """Makes `function` a copy of the kernel. LLVM's C interface cannot copy a function, so the kernel is inlined
        into a function that only calls it."""
        self.m.add_call(self.builder, function, self.kernel, self.m.attribute("alwaysinline"))
        self.m.run_passes("always-inline")
        for version in self.kernel, function:
            self.lib.AddAttributeAtIndex(version, llvm.FUNCTION_INDEX, self.m.attribute("noinline"))
