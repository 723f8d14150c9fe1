"""Removes `static` before kernels and before __constant__ and __device__ variables, which the host finds by name, as
with CUDA's runtime. Only nvcc keeps the names of static functions and variables. If a source contains such a `static`,
all compilers read copies of its files in which spaces replace the word. Lines and columns do not change, and #line
directives make messages and debuggers name the original files."""

import os
import re
import shutil

TOKEN = re.compile(
    r"""//(?:\\\r?\n|[^\n])*|/\*.*?\*/|R"([^ ()\\\t\n]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
    r"""|^[ \t]*\#(?:\\\r?\n|[^\n])*|[{};]""",
    re.DOTALL | re.MULTILINE,
)
WORD = re.compile(r"\bstatic\b")
SPACE_OF_MEMORY = re.compile(r"\b__(?:constant|device|global|managed)__")
TRANSPARENT = re.compile(r"(?:\bnamespace\b[^;=(){}]*|\bextern\s*\"C(?:\+\+)?\"\s*)$")
CONDITION = re.compile(r"[ \t]*#[ \t]*(if|el|endif)")  # also #ifdef, #else and so on
INSIDE = re.compile(r"\[[^][]*\]")
WITH_BRACKETS = re.compile(r"\b(?:__attribute__|__declspec|alignas|__align__)\s*\((?:[^()]|\([^()]*\))*\)")


def wanted(head):
    """Returns whether a declaration, up to its body or value, declares something that the host may look up by name."""
    if re.search(r"__global__|__constant__", head):
        return True
    return "(" not in INSIDE.sub(" ", WITH_BRACKETS.sub(" ", head))  # otherwise a __device__ function


def places(text):
    """Returns the positions of the words `static` to be removed, outside functions and classes."""
    found, depth, transparent = [], 0, []
    head, pieces, position = 0, [], 0
    conditions = []  # the open braces at each #if: all of its branches may open the same brace

    def end_of_head():
        code = "".join(pieces)
        code = code if re.search(r"\boperator\b", code) else code.split("=")[0]
        if depth == 0 and SPACE_OF_MEMORY.search(code) and wanted(code):
            found.extend(head + match.start() for match in WORD.finditer(code))

    for token in TOKEN.finditer(text):
        pieces.append(text[position : token.start()])
        position, what = token.end(), token.group(0)
        if what[0] not in "{};":
            # Comments, directives and strings count as blanks, except the string of extern "C".
            pieces.append(what if what in ('"C"', '"C++"') else " " * len(what))
            condition = CONDITION.match(what)
            if condition and condition.group(1) == "if":
                conditions.append((depth, transparent[:]))
            elif condition and conditions:
                if condition.group(1) == "el":
                    depth, transparent = conditions[-1][0], conditions[-1][1][:]
                else:
                    conditions.pop()
            continue
        if what == "{":
            inner = depth == 0 and TRANSPARENT.search("".join(pieces))
            if not inner:
                end_of_head()
            transparent.append(bool(inner))
            depth += not inner
        else:
            end_of_head()
            if what == "}" and transparent:
                depth -= not transparent.pop()
        head, pieces = position, []
    return found


def without(text):
    """Returns the text without `static` wherever the host would miss the name."""
    if not WORD.search(text) or not SPACE_OF_MEMORY.search(text):
        return text
    for place in places(text):
        text = text[:place] + " " * len("static") + text[place + len("static") :]
    return text


class Copies:
    """Copies of a source's files in a folder, under their own paths, so that they can include each other."""

    OWN = ".rillcc"  # a file that identifies the folder of a run that was interrupted

    def __init__(self, folder):
        self.folder = folder
        self.made = False
        self.originals = {}
        self.folders = []  # folders of the copied files

    def of(self, path):
        return self.folder + os.path.abspath(path)

    def original(self, path):
        return self.originals.get(path, path)

    def make(self, files, read, always=False):
        """Copies all `files` if one of them contains such a `static`, or if `always` is true."""
        texts = {path: read(path) for path in files}
        changed = {path: without(text) for path, text in texts.items()}
        if changed == texts and not always:
            return False
        if os.path.exists(os.path.join(self.folder, self.OWN)):
            shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        self.made = True
        with open(os.path.join(self.folder, self.OWN), "w", encoding="ascii"):
            pass
        for path, text in sorted(changed.items()):
            copy = self.of(path)
            self.originals[copy] = path
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            with open(copy, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write('#line 1 "%s"\n' % path.replace("\\", "\\\\").replace('"', '\\"') + text)
        self.folders = sorted({os.path.dirname(os.path.abspath(path)) for path in files})
        return True

    def append(self, path, text):
        with open(self.of(path), "a", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)

    def remove(self):
        if self.made:
            shutil.rmtree(self.folder, ignore_errors=True)

    def include_flags(self, flags):
        """Returns the flags, in which each -I is preceded by an -I of the folder with the copies. The files' own
        folders are added at the end, for files that only some compilers include."""
        result, flags = [], iter(flags)
        for flag in flags:
            if flag == "-I":
                folder = next(flags)
                result += ["-I", self.of(folder)] if os.path.isdir(self.of(folder)) else []
                result += ["-I", folder]
            else:
                result.append(flag)
        return result + [word for folder in self.folders for word in ("-I", folder)]
