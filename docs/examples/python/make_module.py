#!/usr/bin/env python3
"""Generates a Python module from rill-api.json, with every handle, struct, constant and function, for ctypes.

    python3 make_module.py /usr/local/share/rill/rill-api.json rill.py [rill_comm]

Names in the module have no prefix: rill_stream_create is stream_create, RILL_MEMORY_PINNED is MEMORY_PINNED.  A
function takes the same arguments as the C function.  If the last argument is a pointer to the result, it may be left
out, and the call returns the result.  A status other than RILL_OK raises an Error.  Structs take their fields by name and set their
struct_size.  None stands for NULL, and text is str.
"""

import json
import keyword
import sys

BASE = {
    "char": "c_char", "bool": "c_bool", "float": "c_float", "double": "c_double", "int": "c_int", "size_t": "c_size_t",
    "int32_t": "c_int32", "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32", "int64_t": "c_int64",
    "uint64_t": "c_uint64", "uintptr_t": "c_size_t", "intptr_t": "c_ssize_t",
}

HEAD = '''"""rill %(version)s for Python: made from rill-api.json."""

import ctypes
import os

_libraries = {
    name: ctypes.CDLL(os.environ.get(name.upper() + "_LIBRARY", "lib%%s.so.0" %% name)) for name in %(libraries)s
}


class Error(Exception):
    """A call that failed: its status as a number, and the text that rill has for it."""

    def __init__(self, status):
        self.status = status
        text = _libraries["rill"].rill_last_error_text
        text.restype = ctypes.c_char_p
        super().__init__(text().decode())


class _Struct(ctypes.Structure):
    def __init__(self, **fields):
        if self._fields_ and self._fields_[0][0] == "struct_size":
            fields.setdefault("struct_size", ctypes.sizeof(self))
        texts = {name: text.encode() for name, text in fields.items() if isinstance(text, str)}
        super().__init__(**{**fields, **texts})

    def __eq__(self, other):
        return type(self) is type(other) and bytes(self) == bytes(other)

    __hash__ = None




def _function(library, name, returns, types, result, doc):
    call = _libraries[library][name]
    call.restype, call.argtypes = returns, types

    def function(*arguments):
        arguments = [text.encode() if isinstance(text, str) else text for text in arguments]
        made = None
        if result is not None and len(arguments) == len(types) - 1:
            made = result()
            arguments.append(ctypes.byref(made))
        if len(arguments) != len(types):
            raise TypeError("%%s takes %%d arguments, not %%d" %% (name, len(types), len(arguments)))
        said = call(*arguments)
        if returns is not status:
            return said.decode() if isinstance(said, bytes) else said
        if said != 0:
            raise Error(said)
        return made.value if isinstance(made, ctypes._SimpleCData) else made

    function.__doc__ = doc
    return function

'''


def short(name):
    name = name[5:] if name.lower().startswith("rill_") else name
    return name + "_" if keyword.iskeyword(name) else name


def spelled(kind):
    """Returns the ctypes spelling of a type."""
    if "function" in kind:
        function = kind["function"]
        types = [spelled(function["returns"])] + [spelled(parameter["type"]) for parameter in function["parameters"]]
        return "ctypes.CFUNCTYPE(%s)" % ", ".join(types)
    name, pointers = kind["name"], kind.get("pointer", 0)
    if name in ("void", "char") and pointers:
        made, pointers = {"void": "ctypes.c_void_p", "char": "ctypes.c_char_p"}[name], pointers - 1
    elif name == "void":
        return "None"
    else:
        made = "ctypes." + BASE[name] if name in BASE else short(name)
    for _ in range(pointers):
        made = "ctypes.POINTER(%s)" % made
    return "%s * %d" % (made, kind["array"]) if "array" in kind else made


def members(name, fields, lines):
    """Returns the fields of a struct. Nested unions and structs become classes, which are appended to `lines`."""
    listed = []
    for field in fields:
        kind = field["type"]
        for inner, base in (("union", "ctypes.Union"), ("struct", "_Struct")):
            if inner in kind:
                made = "%s_%s" % (name, field["name"])
                inside = members(made, kind[inner], lines)
                lines += ["class %s(%s):" % (made, base), "    _fields_ = [%s]\n\n" % ", ".join(inside)]
                listed.append('("%s", %s)' % (field["name"], made))
                break
        else:
            listed.append('("%s", %s)' % (field["name"], spelled(kind)))
    return listed


def result_of(parameters):
    """Returns the type of the result to which the last argument points, or "None" if it is not a pointer to one result."""
    kind = parameters[-1]["type"] if parameters else {}
    pointers = kind.get("pointer", 0)
    if "function" in kind or kind.get("const") or pointers != (2 if kind.get("name") == "void" else 1) or kind["name"] == "char":
        return "None"
    return spelled({**kind, "pointer": pointers - 1})


def write(api, output):
    libraries = sorted({"rill", *sys.argv[3:]})
    lines = [HEAD % {"version": api["version"], "libraries": libraries}]
    structs = api["handles"] + api["structs"]
    for struct in structs:
        lines.append('class %s(_Struct):\n    """%s"""\n\n' % (short(struct["name"]), struct["doc"].replace('"', "'")))
    for kind in api["types"]:
        lines.append("%s = %s" % (short(kind["name"]), "ctypes.c_void_p" if "opaque" in kind["type"] else spelled(kind["type"])))
    for struct in structs:
        name, inner = short(struct["name"]), []
        fields = members(name, struct["fields"], inner)
        lines += inner + ["%s._fields_ = [%s]" % (name, ", ".join(fields))]
        lines.append("assert ctypes.sizeof(%s) == %d" % (name, struct["size"]))
    for constant in api["constants"]:
        lines.append("%s = %d" % (short(constant["name"]), constant["value"]))
    for function in api["functions"]:
        if function.get("inline") or function.get("library", "rill") not in libraries:
            continue
        types = ", ".join(spelled(parameter["type"]) for parameter in function["parameters"])
        signature = ", ".join(parameter["name"] for parameter in function["parameters"])
        doc = "(%s)\n\n%s\n\nErrors: %s" % (signature, function["doc"], function.get("errors", ""))
        lines.append("%s = _function(%r, %r, %s, [%s], %s, %r)" % (
            short(function["name"]), function.get("library", "rill"), function["name"], spelled(function["returns"]), types,
            result_of(function["parameters"]), doc))
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as text:
        write(json.load(text), sys.argv[2])
