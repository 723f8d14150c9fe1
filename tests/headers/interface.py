"""Reads the public headers: structs with their fields, functions and constants, and where a compiler puts the fields."""

import collections
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ("rill/rill.h", "rill/comm.h", "rill/bundle.h")

Field = collections.namedtuple("Field", "name type")
Layout = collections.namedtuple("Layout", "size fields")  # fields: name -> (offset, size, type)


def preprocess(compiler, include):
    lines = "".join(f"#include <{name}>\n" for name in HEADERS)
    command = [*compiler, "-std=c11", "-E", "-P", "-DRILL_API=RILL_PUBLIC", "-I", str(include), "-x", "c", "-"]
    text = subprocess.run(command, input=lines, check=True, capture_output=True, text=True).stdout
    return re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text)


def tidy(text):
    return re.sub(r"\s*([*,()\[\]])\s*", r"\1", " ".join(text.split()))


def pieces(text, separator):
    """Splits at a separator that is not inside of brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "({[") - (character in ")}]")
        if character == separator and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [piece.strip() for piece in found if piece.strip()]


def fields_of(body):
    fields = []
    for declaration in pieces(body, ";"):
        pointer = re.fullmatch(r"(.*\(\*)(\w+)(\)\(.*\))", " ".join(declaration.split()))
        if pointer:
            fields.append(Field(pointer.group(2), tidy(pointer.group(1) + pointer.group(3))))
            continue
        base = ""
        for declarator in pieces(declaration, ","):
            ((kind, star, name, size),) = re.findall(r"\A(.*?)(\*?)(\w+)(\[\w+\])?\Z", declarator, re.DOTALL)
            base = base or kind
            fields.append(Field(name, tidy(base + star + size)))
    return fields


def structs(text):
    """Structs that programs know the inside of, in order."""
    found = {}
    for match in re.finditer(r"typedef struct(?: \w+)? \{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\} (rill_\w+);", text):
        found[match.group(2)] = fields_of(match.group(1))
    return found


def functions(text):
    found = {}
    for match in re.finditer(r"RILL_PUBLIC\s+([^;{]*?)\b(rill_\w+)\s*\(([^;]*?)\)\s*;", text):
        types = [re.sub(r"(?<=[\s*])\w+(?=$|\[)", "", parameter) for parameter in pieces(match.group(3), ",")]
        found[match.group(2)] = "%s(%s)" % (tidy(match.group(1)), tidy(", ".join(types)))
    return found


def constants(compiler, include, text):
    """Names of enumerations, and of macros that are numbers; what moves with each version is none."""
    names = [name for body in re.findall(r"\benum(?: \w+)? \{(.*?)\}", text, re.DOTALL) for name in re.findall(r"\bRILL_\w+", body)]
    lines = "".join(f"#include <{name}>\n" for name in HEADERS)
    command = [*compiler, "-std=c11", "-E", "-dM", "-I", str(include), "-x", "c", "-"]
    macros = subprocess.run(command, input=lines, check=True, capture_output=True, text=True).stdout
    number = r"\(?-?(?:U?INT(?:32|64)_C\()?(?:0x[0-9a-fA-F]+|\d+)[uUlL]*\)*"
    names += re.findall(rf"^#define (RILL_\w+) {number}$", macros, re.MULTILINE)
    return sorted({name for name in names if not re.search(r"_VERSION_|_END_$|_H$", name)})


def measure(compiler, language, include, found, names=()):
    """What a compiler makes of structs and constants."""
    lines = [f"#include <{name}>" for name in HEADERS] + ["#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for struct, fields in found.items():
        lines.append(f'(void)printf("{struct} %zu\\n", sizeof({struct}));')
        for field in fields:
            sizes = f"offsetof({struct}, {field.name}), sizeof((({struct} *)0)->{field.name})"
            lines.append(f'(void)printf("{struct} {field.name} %zu %zu\\n", {sizes});')
    lines += [f'(void)printf("{name} %lld\\n", (long long)({name}));' for name in names] + ["return 0;", "}"]
    with tempfile.TemporaryDirectory(prefix="rill-headers-") as folder:
        program = folder + "/measure"
        command = [*compiler, "-I", str(include), "-x", language, "-", "-o", program]
        subprocess.run(command, input="\n".join(lines) + "\n", check=True, text=True)
        said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    layouts, values = {}, {}
    for words in map(str.split, said.splitlines()):
        if len(words) == 4:
            struct, name, offset, size = words
            kind = next(field.type for field in found[struct] if field.name == name)
            layouts[struct].fields[name] = (int(offset), int(size), kind)
        elif words[0] in found:
            layouts[words[0]] = Layout(int(words[1]), {})
        else:
            values[words[0]] = int(words[1])
    return layouts, values
