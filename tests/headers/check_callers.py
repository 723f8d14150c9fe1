#!/usr/bin/env python3
"""Programs of older and newer headers with today's library.

usage: check_callers.py INCLUDE RILLCC RILL_COMM RILL COMPILER ...

RILL_COMM and RILL are the libraries.  Headers are made in which every struct with a struct_size has its
last fields taken away, more of them from version to version, until none has more than it cannot do without; and headers in
which each has a field more.  callers.c is compiled with each of them and run, on the cpu and on the device
that a fake vendor in RILL_FAKE_CUDA gives.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import interface

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = 8
NEEDED = {"rill_launch": "block", "rill_copy_3d": "depth", "rill_stream_note": "name"}  # up to this field they are of no use without


def versions(struct, layout):
    """Returns how many fields the struct may have had, most first.  A version ended where its padding ended, before the
    next field: what lies in padding cannot have been added later."""
    names, counts = list(layout.fields), []
    for count in range(len(names), 0, -1):
        offset, size, _ = layout.fields[names[count - 1]]
        end = (offset + size + 7) // 8 * 8
        if count == len(names) or end <= layout.fields[names[count]][0]:
            counts.append(count)
        if names[count - 1] == NEEDED.get(struct):
            break
    return counts


def cut(text, struct, count, newer):
    """Returns a header with the struct's first fields alone, or one more, and its initializer for that."""
    found = re.search(r"(typedef struct %s \{)(.*?)(\n\} %s;)" % (struct, struct), text, re.DOTALL)
    if not found:
        return text
    body = re.sub(r"/\*.*?\*/", "", found.group(2), flags=re.DOTALL)
    kept, seen = [], 0
    for declaration in interface.pieces(body, ";"):
        fields = interface.fields_of(declaration)
        if seen >= count:
            break
        if seen + len(fields) > count:  # some of `a, b, c`
            kept.append("  %s;\n" % ", ".join(interface.pieces(declaration, ",")[: count - seen]))
        else:
            kept.append("  %s;\n" % declaration)
        seen += len(fields)
    kept += ["  uint64_t newer;\n"] if newer else []
    text = text[: found.start()] + found.group(1) + "\n" + "".join(kept) + found.group(3)[1:] + text[found.end() :]
    return re.sub(r"\{\s*sizeof\(%s\),[^;#]*?\}(\s*\n(?=[/#\n]))" % struct, r"{ sizeof(%s) }\1" % struct, text)


def write_headers(include, folder, layouts, version):
    """Version -1 is newer, 0 today's."""
    shutil.copytree(include, folder, dirs_exist_ok=True)
    lines = ["#define NEWER %d" % (version < 0)]
    chosen = {}
    for struct, layout in layouts.items():
        counts = versions(struct, layout)
        step = max(1.0, (len(counts) - 1) / (VERSIONS - 1))  # the last version has the fewest of each
        chosen[struct] = counts[min(round(max(version, 0) * step), len(counts) - 1)]
        lines.append("#define TODAY_%s ((size_t)%d)" % (struct, layout.size))
        for index, name in enumerate([*layout.fields, "newer"]):
            has = version < 0 if name == "newer" else index < chosen[struct]
            value = "((in)->%s = (value))" % name if has else "((void)(in), (void)(value))"
            lines += ["#define HAS_%s_%s %d" % (struct, name, has), "#define SET_%s_%s(in, value) %s" % (struct, name, value)]
    (folder / "fields.h").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for path in (folder / "rill").glob("*.h"):
        text = path.read_text(encoding="utf-8")
        for struct, count in chosen.items():
            text = cut(text, struct, count, version < 0)
        path.write_text(text, encoding="utf-8")
    return chosen


def unnamed(text, functions, layouts):
    """Functions that take a struct that grows, and that callers.c does not call."""
    growing = re.compile(r"\b(%s)\*" % "|".join(layouts))
    takers = [name for name, kind in functions.items() if growing.search(kind)]
    return [name for name in takers if not re.search(r"\b%s\(" % name, text)], len(takers)


class Builds:
    def __init__(self, work, include, rillcc, libraries, compiler):
        self.work, self.include, self.libraries, self.compiler = work, include, libraries, compiler
        command = [rillcc, "--target", "cpu", "--clang", "none", "-o", work / "one.rill.c", "--header", work / "one.rill.h"]
        subprocess.run([*command, HERE / "one.kernel.cu"], check=True)

    def run(self, version, layouts):
        """What went wrong with a version."""
        folder = self.work / f"version{version}"
        chosen = write_headers(self.include, folder, layouts, version)
        program = folder / "callers"
        flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
        flags += ["-I", folder, "-I", self.work, "-pthread"]
        paths = [f"-Wl,-rpath,{os.path.dirname(os.path.abspath(library))}" for library in self.libraries]
        sources = [HERE / "callers.c", self.work / "one.rill.c", *self.libraries, *paths, "-ldl"]
        done = subprocess.run([*self.compiler, *flags, *sources, "-o", program], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"version {version}: {done.stderr}", chosen
        for device, places in (("cpu", ""), ("cuda:0", os.environ.get("RILL_FAKE_CUDA", ""))):
            if places or device == "cpu":
                environment = dict(os.environ, LD_LIBRARY_PATH=places, RILL_CACHE=str(self.work / "cache"))
                done = subprocess.run(
                    [program, device], cwd=folder, env=environment, capture_output=True, text=True, check=False
                )
                if done.returncode:
                    return f"version {version} on {device}: status {done.returncode}\n{done.stdout}{done.stderr}", chosen
        return "", chosen


def main():
    include, rillcc, comm, rill, *compiler = sys.argv[1:]
    text = interface.preprocess(compiler, include)
    found = {name: fields for name, fields in interface.structs(text).items() if fields[0].name == "struct_size"}
    layouts, _ = interface.measure(compiler, "c", include, found)
    problems, takers = unnamed((HERE / "callers.c").read_text(encoding="utf-8"), interface.functions(text), layouts)
    problems = [f"callers.c does not call {name}" for name in problems]
    with tempfile.TemporaryDirectory(prefix="rill-callers-") as folder:
        builds = Builds(pathlib.Path(folder), pathlib.Path(include), rillcc, [comm, rill], compiler)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ran = list(pool.map(lambda version: builds.run(version, layouts), range(-1, VERSIONS)))
    seen = {(struct, count) for _, chosen in ran for struct, count in chosen.items()}
    problems += [problem for problem, _ in ran if problem]
    print("\n".join(problems) or f"{len(ran)} versions, {len(seen)} forms of {len(layouts)} structs, {takers} functions")
    sys.exit(bool(problems))


main()
