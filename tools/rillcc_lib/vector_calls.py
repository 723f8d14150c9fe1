"""Makes functions of vectors for the mathematical functions that remain calls (rill/device/host_math_trig.h).

LLVM's vectorizer replaces a call in a loop by a call of the function for as many lanes, which an attribute of the
called function names. In C a function for 4 doubles takes a pointer, because a compiler passes larger vectors than the
processor's level has in memory. This module adds functions that take and return vectors.
"""

from . import llvm

FUNCTIONS = "sin", "cos", "tan"
NAMES = ["rill_math_" + name for name in FUNCTIONS]
LANES = 2, 4, 8
VARIANTS = b"vector-function-abi-variant"
# How a vector of 512 bits is passed depends on this attribute, so neither the functions nor their callers have it.
LEGAL_WIDTH = b"min-legal-vector-width"


def vector_name(name, lanes):
    return "rill_math_%s_by_%d" % (name, lanes)


def called(module):
    """Returns the functions of one number that are called, by their names."""
    functions = {name: module.function("rill_math_" + name) for name in FUNCTIONS}
    return {name: f for name, f in functions.items() if f and any(map(module.lib.IsACallInst, module.users(f)))}


def add(module):
    """Adds the functions of vectors. Until `drop`, LLVM must neither remove them nor change the types of the functions of
    one number, so both are in the list of used functions."""
    lib, names = module.lib, module.used()
    for name, function in called(module).items():
        variants = []
        for lanes in LANES:
            add_vector(module, name, lanes)
            variants.append("_ZGV_LLVM_N%dv_rill_math_%s(%s)" % (lanes, name, vector_name(name, lanes)))
            names.append(vector_name(name, lanes))
        text = ",".join(variants).encode()
        attribute = lib.CreateStringAttribute(module.context, VARIANTS, len(VARIANTS), text, len(text))
        lib.AddAttributeAtIndex(function, llvm.FUNCTION_INDEX, attribute)
        lib.AddAttributeAtIndex(function, llvm.FUNCTION_INDEX, module.attribute("speculatable"))
        freeze_argument(module, function)
        names.append("rill_math_" + name)
    module.set_used(names)


def freeze_argument(module, function):
    """Makes calls valid for threads that skip them, whose arguments may be undefined: the function branches on its
    argument."""
    lib, argument = module.lib, module.lib.GetParam(function, 0)
    kind = lib.GetEnumAttributeKindForName(b"noundef", 7)
    lib.RemoveEnumAttributeAtIndex(function, 1, kind)
    for call in filter(lib.IsACallInst, module.users(function)):
        lib.RemoveCallSiteEnumAttribute(call, 1, kind)
    users = module.users(argument)
    builder = lib.CreateBuilderInContext(module.context)
    lib.PositionBuilderBefore(builder, module.instructions(lib.GetEntryBasicBlock(function))[0])
    frozen = lib.BuildFreeze(builder, argument, b"")
    lib.DisposeBuilder(builder)
    for user in users:
        for i in (i for i, operand in enumerate(module.operands(user)) if operand == argument):
            lib.SetOperand(user, i, frozen)


def add_vector(module, name, lanes):
    lib, in_memory = module.lib, module.function("rill_math_%s_of_%d" % (name, lanes))
    vector = lib.VectorType(lib.DoubleTypeInContext(module.context), lanes)
    function = lib.AddFunction(module.handle, vector_name(name, lanes).encode(), lib.FunctionType(vector, llvm.array([vector]), 1, 0))
    lib.SetLinkage(function, llvm.INTERNAL_LINKAGE)
    module.copy_attributes(in_memory, function)
    remove_legal_width(module, function)
    builder = lib.CreateBuilderInContext(module.context)
    lib.PositionBuilderAtEnd(builder, module.new_block(function, ""))
    place = lib.BuildAlloca(builder, vector, b"")
    lib.BuildStore(builder, lib.BuildFreeze(builder, lib.GetParam(function, 0), b""), place)
    lib.BuildCall2(builder, lib.GlobalGetValueType(in_memory), in_memory, llvm.array([place]), 1, b"")
    lib.BuildRet(builder, lib.BuildLoad2(builder, vector, place, b""))
    lib.DisposeBuilder(builder)


def remove_legal_width(module, function):
    module.lib.RemoveStringAttributeAtIndex(function, llvm.FUNCTION_INDEX, LEGAL_WIDTH, len(LEGAL_WIDTH))


def drop(module):
    """Removes the functions that nothing calls any more, and prepares the callers of the others."""
    needed = called(module)
    unneeded = {vector_name(name, lanes) for name in FUNCTIONS if name not in needed for lanes in LANES}
    unneeded |= {"rill_math_" + name for name in FUNCTIONS if name not in needed}
    used = module.used()
    if unneeded.intersection(used):
        module.set_used([name for name in used if name not in unneeded])
        module.run_passes("globaldce")
    for function in needed.values():
        for call in filter(module.lib.IsACallInst, module.users(function)):
            remove_legal_width(module, module.lib.GetBasicBlockParent(module.lib.GetInstructionParent(call)))
