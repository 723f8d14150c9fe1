#!/usr/bin/env python3
"""rill-api.json beside the headers, as another reader of them and a compiled program have it.

usage: check_api_json.py rill-api.json INCLUDE COMPILER...
"""

import json
import pathlib
import re
import sys

import interface

path, include, *compiler = sys.argv[1:]
api = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
problems = []


def same(what, described, read):
    problems.extend(f"{what} {name}: {described.get(name)} described, {read.get(name)} in the headers"
                    for name in sorted(described.keys() | read.keys()) if described.get(name) != read.get(name))


def spelled(kind):
    """Returns a type as interface.py spells it."""
    if "function" in kind:
        function = kind["function"]
        return "%s(*)(%s)" % (spelled(function["returns"]), ",".join(map(spelled, (p["type"] for p in function["parameters"]))))
    words = ("const " if kind.get("const") else "") + kind["name"]
    return words + "*" * kind.get("pointer", 0) + ("[%d]" % kind["array"] if "array" in kind else "")


def without_names(signature):
    """Without inner const and struct, and with an array as the pointer that it becomes."""
    text = re.sub(r"\*const\b\s*", "*", signature).replace("_Bool", "bool").replace("struct ", "")
    return re.sub(r"\[\w*\]", "*", text)


text = interface.preprocess(compiler, include)
functions = {f["name"]: "%s(%s)" % (spelled(f["returns"]), ",".join(spelled(p["type"]) for p in f["parameters"]) or "void")
             for f in api["functions"] if not f.get("inline")}
same("function", functions, {name: without_names(kind) for name, kind in interface.functions(text).items()})

found = {name: fields for name, fields in interface.structs(text).items() if not name.startswith("rill_bundle")}
layouts, values = interface.measure(compiler, "c", include, found, [constant["name"] for constant in api["constants"]])
structs = {s["name"]: (s["size"], {f["name"]: (f["offset"], f["size"]) for f in s["fields"]}) for s in api["handles"] + api["structs"]}
same("struct", structs, {name: (layout.size, {field: at[:2] for field, at in layout.fields.items()}) for name, layout in layouts.items()})
same("constant", {constant["name"]: constant["value"] for constant in api["constants"]}, values)
enumerated = {name for name in interface.constants(compiler, include, text) if not name.startswith("RILL_BUNDLE")}
missing = enumerated - values.keys()
problems += [f"constant {name} is not described" for name in sorted(missing)]
same("status", {status["name"]: status["value"] for status in api["statuses"]},
     {name: value for name, value in values.items() if name == "RILL_OK" or name.startswith("RILL_ERROR_")})

# That a struct of zeros with its size is the struct of its initializer: what other languages build on.
raw = "\n".join(header.read_text(encoding="utf-8") for header in pathlib.Path(include, "rill").glob("*.h"))
initializers = re.findall(r"^#define (RILL_\w+_INIT)\b(.*)$", raw.replace("\\\n", " "), re.MULTILINE)
if len(initializers) < 10:
    problems.append(f"only {len(initializers)} initializers were found")
for name, body in initializers:
    if re.search(r"[1-9a-zA-Z]", re.sub(r"sizeof\(\w+\)|NULL|false", "", body)):
        problems.append(f"{name} is not all zeros: {' '.join(body.split())}")

statuses = {status["name"].removeprefix("RILL_ERROR_") for status in api["statuses"]}
for function in api["functions"]:
    if not function["doc"]:
        problems.append(f"{function['name']} has no description")
    if not function.get("inline") and not ("errors" in function and "like" in function):
        problems.append(f"{function['name']} has no errors or nothing that it is like")
    for word in re.findall(r"\b[A-Z]{3,}_[A-Z_]+\b", re.sub(r"RILL_\w+", "", function.get("errors", ""))):
        if word not in statuses:
            problems.append(f"{function['name']}: {word} is no status")
everything = json.dumps(api)
problems += [f"{mark} is left in the texts" for mark in ("/**", "*/", "RILL_API", "\\n * ") if mark in everything]

print("\n".join(problems) or f"{len(functions)} functions, {len(structs)} structs, {len(values)} constants, as in the headers")
sys.exit(bool(problems))
