"""Replaces integer divisions by arithmetic that every lane of a vector may execute.

clang's vectorizer miscompiles conditional divisions: if both operands are the same in all iterations of a loop, it
guards the division by the condition of the first lane, and all lanes use the result (docs/reference/KERNELS.md). LLVM
may find out late that operands are invariant, after it has hoisted loads or unswitched loops. rillcc therefore replaces
every division whose divisor is not a constant, in every function, after its own last pass.

The replacement cannot trap and needs no condition, so LLVM may hoist it out of loops and vectorize it. Quotients of up
to 32 bits are computed in double. This is exact: a quotient of two integers below 2^32 that is not an integer differs
from the nearest integer by more than the rounding error of a double. Wider quotients are calls that LLVM may hoist, of
functions that it does not inline.

Each function records whether it has divided by zero, and raises the processor's exception before it returns.
"""

from . import ir, llvm

CHECK = "rill_check_division"  # defined in rill/device/host_schedule.h
SIGNED = (llvm.SDIV, llvm.SREM)
REMAINDERS = (llvm.UREM, llvm.SREM)
MOST_BITS_OF_DOUBLES = 32
# Attributes of the functions that divide. They allow LLVM to hoist a call, and to call once for equal operands.
ATTRIBUTES = ("noinline", "nounwind", "willreturn", "speculatable")


class Divisions:
    def __init__(self, module):
        self.m, self.lib = module, module.lib
        self.double = self.lib.DoubleTypeInContext(module.context)
        self.quotients = {}  # maps (type, whether signed) to a function

    def replace(self):
        """Replaces the divisions of all functions."""
        self.builder = self.lib.CreateBuilderInContext(self.m.context)
        for function in self.m.functions():
            found = self.find(function)
            if found:
                self.replace_in(function, found)
        self.lib.DisposeBuilder(self.builder)
        left = [f for f in self.m.functions() if f not in self.quotients.values() and self.find(f)]
        if left:
            raise AssertionError("rillcc left a division in %s" % self.m.name(left[0]))

    def find(self, function):
        """Returns the integer divisions in a function whose divisor is not a constant."""
        inside = (i for block in self.m.blocks(function) for i in self.m.instructions(block))
        return [i for i in inside if self.m.opcode(i) in ir.DIVISIONS and self.is_variable(i)]

    def is_variable(self, division):
        kind = self.lib.GetTypeKind(self.lib.TypeOf(division))
        return kind == llvm.INTEGER_TYPE and self.m.constant(self.lib.GetOperand(division, 1)) is None

    def replace_in(self, function, divisions):
        lib, m = self.lib, self.m
        place = m.place_of_calls(function)
        lib.PositionBuilderBefore(self.builder, m.instructions(lib.GetEntryBasicBlock(function))[0])
        by_zero = self.build("Alloca", m.i1)
        lib.BuildStore(self.builder, m.number(0, m.i1), by_zero)
        for division in divisions:
            lib.PositionBuilderBefore(self.builder, division)
            lib.ReplaceAllUsesWith(division, self.divide(division, by_zero))
            lib.InstructionEraseFromParent(division)
        for end in [m.terminator(block) for block in m.blocks(function)]:
            if m.opcode(end) == llvm.RET:
                lib.PositionBuilderBefore(self.builder, end)
                call = self.call(m.function(CHECK), self.build("Load2", m.i1, by_zero))
                if place:
                    lib.InstructionSetDebugLoc(call, place)

    def divide(self, division, by_zero):
        """Builds the result of a division. If the quotient does not exist, the divisor is replaced by 1; a divisor of 0
        is also recorded in `by_zero`."""
        lib, m, opcode = self.lib, self.m, self.m.opcode(division)
        kind, (a, b) = lib.TypeOf(division), m.operands(division)
        missing = self.build("ICmp", llvm.EQ, b, m.number(0, kind))
        noted = self.build("Or", self.build("Load2", m.i1, by_zero), missing)
        lib.BuildStore(self.builder, noted, by_zero)
        if opcode in SIGNED:
            minus_one = lib.ConstAllOnes(kind)
            least = self.build("ICmp", llvm.EQ, a, self.build("Shl", minus_one, m.number(lib.GetIntTypeWidth(kind) - 1, kind)))
            wraps = self.build("And", least, self.build("ICmp", llvm.EQ, b, minus_one))
            missing = self.build("Or", missing, wraps)
        divisor = self.build("Select", missing, m.number(1, kind), b)
        quotient = self.quotient(a, divisor, kind, opcode in SIGNED)
        if opcode not in REMAINDERS:
            return quotient
        return self.build("Sub", a, self.build("Mul", quotient, divisor))

    def quotient(self, a, b, kind, signed):
        if self.lib.GetIntTypeWidth(kind) > MOST_BITS_OF_DOUBLES:
            return self.call(self.quotient_function(kind, signed), a, b)
        to_double, back = ("SIToFP", "FPToSI") if signed else ("UIToFP", "FPToUI")
        result = self.build("FDiv", self.build(to_double, a, self.double), self.build(to_double, b, self.double))
        return self.build(back, result, kind)

    def quotient_function(self, kind, signed):
        """Returns a function of x and y that returns x / y. Its callers ensure that the quotient exists."""
        key = (kind, signed)
        if key not in self.quotients:
            lib, m = self.lib, self.m
            name = "rill_quotient_%s%d" % ("i" if signed else "u", lib.GetIntTypeWidth(kind))
            function = lib.AddFunction(m.handle, name.encode(), lib.FunctionType(kind, llvm.array([kind, kind]), 2, 0))
            lib.SetLinkage(function, llvm.INTERNAL_LINKAGE)
            for attribute in [m.attribute(name) for name in ATTRIBUTES] + [m.no_memory()]:
                lib.AddAttributeAtIndex(function, llvm.FUNCTION_INDEX, attribute)
            builder = lib.CreateBuilderInContext(m.context)
            lib.PositionBuilderAtEnd(builder, m.new_block(function, ""))
            divide = lib.BuildSDiv if signed else lib.BuildUDiv
            lib.BuildRet(builder, divide(builder, lib.GetParam(function, 0), lib.GetParam(function, 1), b""))
            lib.DisposeBuilder(builder)
            self.quotients[key] = function
        return self.quotients[key]

    def call(self, function, *arguments):
        kind = self.lib.GlobalGetValueType(function)
        return self.lib.BuildCall2(self.builder, kind, function, llvm.array(arguments), len(arguments), b"")

    def build(self, what, *arguments):
        return getattr(self.lib, "Build" + what)(self.builder, *arguments, b"")
