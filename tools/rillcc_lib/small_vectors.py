"""Splits loads and stores of vectors of floating-point numbers into loads and stores of their elements.

A function that returns a float2, such as make_float2, returns a vector of two floats because of the processor's calling
convention. After inlining, its result is therefore stored as a vector. LLVM does not vectorize a loop that already
contains vectors.
"""

from . import llvm

FLOAT_TYPE, DOUBLE_TYPE, VECTOR_TYPE = 2, 3, 13  # values of LLVMGetTypeKind


def split(module):
    builder = module.lib.CreateBuilderInContext(module.context)
    blocks = [block for function in module.functions() for block in module.blocks(function)]
    for access in [i for block in blocks for i in module.instructions(block) if module.opcode(i) in (llvm.LOAD, llvm.STORE)]:
        if module.opcode(access) == llvm.STORE:
            split_store(module, builder, access)
        else:
            split_load(module, builder, access)
    module.lib.DisposeBuilder(builder)


def split_store(module, builder, store):
    lib = module.lib
    value, pointer = module.operands(store)
    kind = lib.TypeOf(value)
    if not is_plain(module, store, kind):
        return
    elements = inserted(module, value)
    if set(elements) != set(range(length(module, kind))):
        return
    lib.PositionBuilderBefore(builder, store)
    for i in sorted(elements):
        made = lib.BuildStore(builder, elements[i], place(module, builder, kind, pointer, i))
        lib.SetAlignment(made, alignment(module, store, kind))
    lib.InstructionEraseFromParent(store)


def split_load(module, builder, load):
    lib, kind = module.lib, module.lib.TypeOf(load)
    users = module.users(load)
    if not is_plain(module, load, kind) or any(module.opcode(user) != llvm.EXTRACT_ELEMENT for user in users):
        return
    if any(module.constant(lib.GetOperand(user, 1)) is None for user in users):
        return
    element = lib.GetElementType(kind)
    lib.PositionBuilderBefore(builder, load)
    for user in users:
        where = place(module, builder, kind, lib.GetOperand(load, 0), module.constant(lib.GetOperand(user, 1)))
        made = lib.BuildLoad2(builder, element, where, b"")
        lib.SetAlignment(made, alignment(module, load, kind))
        lib.ReplaceAllUsesWith(user, made)
        lib.InstructionEraseFromParent(user)
    lib.InstructionEraseFromParent(load)


def is_plain(module, access, kind):
    lib = module.lib
    if lib.GetTypeKind(kind) != VECTOR_TYPE or lib.GetVolatile(access):
        return False
    return lib.GetTypeKind(lib.GetElementType(kind)) in (FLOAT_TYPE, DOUBLE_TYPE)


def length(module, kind):
    return module.lib.SizeOfTypeInBits(module.layout, kind) // (8 * element_size(module, kind))


def element_size(module, kind):
    return module.lib.ABISizeOfType(module.layout, module.lib.GetElementType(kind))


def inserted(module, value):
    """Returns the elements that were inserted into a vector one by one, by their index."""
    elements = {}
    while module.lib.IsAInstruction(value) and module.opcode(value) == llvm.INSERT_ELEMENT:
        vector, element, where = module.operands(value)
        if module.constant(where) is None:
            return {}
        elements.setdefault(module.constant(where), element)
        value = vector
    return elements


def alignment(module, access, kind):
    return min(module.lib.GetAlignment(access), element_size(module, kind))


def place(module, builder, kind, pointer, i):
    element = module.lib.GetElementType(kind)
    return module.lib.BuildGEP2(builder, element, pointer, llvm.array([module.number(i)]), 1, b"")
