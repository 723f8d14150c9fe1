#!/usr/bin/env python3
"""Checks that repeated statements of documents, and statements about the source, agree: each rule below reads a fact where
it is defined and where it is stated."""

import json
import pathlib
import re
import sys

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md", "tests/fuzz/README.md", "kernels/README.md", "docs")
ENVIRONMENT, OPTIONS = "docs/reference/ENVIRONMENT.md", "docs/guides/BUILDING.md"
SOURCES = ("include", "core", "backends", "tools", "kernels", "tests", "docs/examples", ".ci", "meson.build", "meson_options.txt")
TEXT = re.compile(r"\.(c|h|hpp|cu|py|md|txt|build|sh|in|cmake|def|inc|toml|ini|txt)$|^[^.]+$|\.ci/")


class Tree:
    """The files of a checkout, some of them with another text, which is how the rules are tested."""

    def __init__(self, root, changed=None):
        self.root, self.changed, self.kept = pathlib.Path(root), changed or {}, {}

    def read(self, name):
        if name in self.changed:
            return self.changed[name]
        if name not in self.kept:
            self.kept[name] = (self.root / name).read_text(encoding="utf-8", errors="replace")
        return self.kept[name]

    def below(self, *names):
        found = []
        for name in names:
            path = self.root / name
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            relative = [str(file.relative_to(self.root)) for file in files if file.is_file() and "__pycache__" not in file.parts]
            found += [file for file in relative if TEXT.search(file)]
        return found

    def pages(self):
        return [name for name in self.below(*PAGES) if name.endswith(".md")]

    def sources(self):
        return [name for name in self.below(*SOURCES) if not name.endswith(".md") and "_facts" not in name]


def find(pattern, text, flags=0):
    """What the group of the pattern is; a text without it has changed its form, and the rule with it."""
    found = re.search(pattern, text, flags)
    if not found:
        sys.exit(f"nothing is like {pattern} in: {text[:200]}")
    return found[1]


def where(text, position):
    return text.count("\n", 0, position) + 1


def code_of(text):
    """Returns the code in a page: (line, text) of each line of a block and each span between backticks."""
    found, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            found.append((number, re.sub(r"^\$ ", "", line.strip())))
    # Spans may go over the end of a line.
    prose = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M | re.S)
    for span in re.finditer(r"`([^`]+)`", prose):
        found.append((where(prose, span.start()), " ".join(span[1].split())))
    return found


# ---- how long commands take ----

DURATION = re.compile(r"(?:(?:about|in|which takes?|takes?) )?((?:half an|an) hour|hours|(?:\w+|\d+) (?:seconds|minutes|hours))\b")
TIMED = (r"\.ci/run\b", r"\.ci/full\b", r"meson test(?: -C build)?(?=`|\s)(?! --)", r"meson test(?: -C build)? --setup long")


def durations(tree):
    """Checks the durations of commands: each belongs to the command named before it, in the same sentence or list item."""
    problems, count, said = [], 0, {}
    for name in tree.pages():
        for part in re.split(r"\n\s*\n|\.\s+(?=[A-Z`])", tree.read(name)):
            flat = " ".join(part.split())
            commands = sorted((m.start(), pattern) for pattern in TIMED for m in re.finditer(pattern, flat))
            for place in DURATION.finditer(flat):
                before = [pattern for start, pattern in commands if start < place.start()]
                if before and place[0].split()[0] in ("about", "in", "which", "take", "takes", "hours"):
                    said.setdefault(before[-1], []).append((place[1], name))
    # The scripts say it of themselves, in the comment that they begin with.
    for command in (".ci/run", ".ci/full"):
        comment = " ".join(find(r"#!.*\n((?:#.*\n)+)", tree.read(command)).replace("#", "").split())
        found = find(r"(?:About |take )((?:half an|an) hour|hours|\w+ (?:minutes|hours))", comment)
        said.setdefault(command.replace(".", r"\.") + r"\b", []).append((found, command))
    for pattern, places in said.items():
        count += len(places)
        if len({duration for duration, _ in places}) > 1:
            listed = ", ".join(f"{duration} ({name})" for duration, name in sorted(set(places)))
            problems.append(f"how long {pattern} takes: {listed}")
    if len({name for _, name in said.get(TIMED[0], [])}) < 2:
        problems.append(f"how long .ci/run takes is stated in {said.get(TIMED[0])} alone")
    return count, problems


# ---- environment variables ----


def environment(tree):
    """Checks that the page has each variable that rill, its tools and quickstart read, and that each one in its table is
    read."""
    read = {}
    for name in tree.below("core", "backends", "tools"):
        text = tree.read(name)
        if name.endswith((".c", ".h", ".inc", ".def")):
            pattern = r'\b(?:secure_getenv|getenv|get)\("(RILL_[A-Z_0-9]+)"\)(?!.*for tests)'
        elif name.endswith(".py") or name == "tools/rillcc" or name == "tools/rill/rill-trace":
            pattern = r'(?:environ\.get\(|environ\[)"(RILL_[A-Z_0-9]+)"'
        else:
            pattern = r"\$\{?(RILL_[A-Z_0-9]+)" if name in ("tools/quickstart", "tools/dist-ptx") else r"(?!)"
        for found in re.finditer(pattern, text):
            read.setdefault(found[1], name)
    # rillcc names its compilers by a pattern.
    rillcc = tree.read("tools/rillcc")
    loop = re.search(r"for name, text in \((.*?)\n    \):\n        variable = \"RILL_%s\" % name\.upper\(\)", rillcc, re.S)
    if loop:
        read.update({f"RILL_{name.upper()}": "tools/rillcc" for name in re.findall(r'^        \("(\w+)",', loop[1], re.M)})
    documented = set()
    for first in re.findall(r"^\| (`RILL_.*?) \| ", tree.read(ENVIRONMENT), re.M):
        documented.update(re.findall(r"`(RILL_[A-Z_0-9]+)", first))
    if not loop or len(read) < 15 or len(documented) < 15:
        return 0, [f"{ENVIRONMENT} documents {len(documented)} variables, and {len(read)} seem to be read"]
    problems = [f"{ENVIRONMENT}: has no {name}, which {read[name]} reads" for name in sorted(read.keys() - documented)]
    problems += [f"{ENVIRONMENT}: nothing reads {name}" for name in sorted(documented - read.keys())]
    return len(read), problems


# ---- names ----

WORD = re.compile(r"(?<![\w$/.-])(rill_[a-z0-9_]+|RILL_[A-Z0-9_]+)(\*|\.\.\.|[A-Za-z]*)")


def names(tree):
    """Each rill_ and RILL_ that a page has is a word of the source, or begins one if it ends in _ or *."""
    known = set()
    for name in tree.sources():
        known.update(re.findall(r"\b(?:rill|RILL)_\w+", tree.read(name)))
        known.update(re.findall(r"-D((?:RILL|rill)_\w+)", tree.read(name)))
    known.add("rill_instance_scale")  # rillcc makes it of the name of a template
    everything = "\n".join(sorted(known))
    problems, count = [], 0
    for page in tree.pages():
        text = tree.read(page)
        for found in WORD.finditer(text):
            word, rest = found[1], found[2]
            if rest.isalpha() or word.endswith("_something"):
                continue  # a name in letters of both kinds, or one that stands for others
            count += 1
            is_prefix = word.endswith("_") or rest in ("*", "...")
            if word in known or (is_prefix and re.search(rf"^{word}", everything, re.M)):
                continue
            problems.append(f"{page}:{where(text, found.start())}: there is no {word}")
    return count, problems


def functions(tree):
    """Each function that a page calls is declared in a header."""
    headers = "\n".join(tree.read(name) for name in tree.below("include"))
    macros_and_functions = set(re.findall(r"\b(rill_\w+)\b", headers))
    # What rillcc writes, and what examples, kernels' hosts and other languages define.
    for name in [*tree.below("kernels", "docs/examples", "tools"), "meson.build"]:
        macros_and_functions.update(re.findall(r"\b(rill_\w+)", tree.read(name)))
    problems, count = [], 0
    for page in tree.pages():
        if "tests/" in page:
            continue
        text = tree.read(page)
        for found in re.finditer(r"(?<![\w.])(rill_[a-z0-9_]+)\(", text):
            count += 1
            if found[1] not in macros_and_functions:
                problems.append(f"{page}:{where(text, found.start())}: no header declares {found[1]}")
    return count, problems


# ---- options of the build ----


def options_of_build(tree):
    text = tree.read("meson_options.txt")
    options = {}
    for name, rest in re.findall(r"^option\('(\w+)',(.*?)(?=^option|\Z)", text, re.M | re.S):
        kind = find(r"type: '(\w+)'", rest)
        choices = re.findall(r"'([^']*)'", (re.search(r"choices: \[([^\]]*)\]", rest) or ["", ""])[1])
        if kind == "feature":
            choices = ["auto", "enabled", "disabled"]
        elif kind == "boolean":
            choices = ["true", "false"]
        value = find(r"value: \[?'?([\w-]*)", rest)
        options[name] = (kind, choices, value)
    table = re.search(r"^\| option \| values \| default \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)", tree.read(OPTIONS), re.M)
    if not table or len(options) < 5:
        return 0, [f"{OPTIONS} has no table of options, or meson_options.txt has none"]
    problems, in_table = [], set()
    for row in table[1].splitlines():
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        name = re.match(r"`-D(\w+)=`", cells[0])
        if not name or name[1] not in options:
            problems.append(f"{OPTIONS}: {cells[0]} is no option of meson_options.txt")
            continue
        in_table.add(name[1])
        _, choices, value = options[name[1]]
        named = set(re.findall(r"`([\w-]+)`", cells[1]))
        if missing := [choice for choice in choices if choice not in named]:
            problems.append(f"{OPTIONS}: the row of {name[1]} does not name {', '.join(missing)}")
        default = re.fullmatch(r"`([\w-]+)`", cells[2])
        if default and default[1] != value:
            problems.append(f"{OPTIONS}: {name[1]} is {value} by default, not {default[1]}")
    count = len(in_table)
    all_text = {page: tree.read(page) for page in [*tree.pages(), ".ci/run", ".ci/full", "tools/quickstart", "tools/packaging/debian/rules"]}
    for page, text in all_text.items():
        for found in re.finditer(r"-D(?:rill:)?(rill_\w+)(?:=\"?([\w-]+(?:,[\w-]+)*))?", text):
            count += 1
            line = f"{page}:{where(text, found.start())}"
            if found[1] not in options:
                problems.append(f"{line}: meson_options.txt has no {found[1]}")
            elif found[2] and options[found[1]][1]:
                for value in found[2].split(","):
                    if value not in options[found[1]][1]:
                        problems.append(f"{line}: {found[1]} cannot be {value}")
    for name in options.keys() - in_table:
        if not any(f"-D{name}" in text for page, text in all_text.items() if page.endswith(".md")):
            problems.append(f"meson_options.txt: no page tells of {name}")
    return count, problems


# ---- options of the programs ----


def options_of_programs(tree):
    main = tree.read("tools/rill/main.c")
    taken = {}
    for command, body in re.findall(r"help_of_(\w+)\[\] =\n(.*?);\n", main, re.S):
        taken[command] = set(re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", body)) | {"--help", "-h"}
    rillcc = re.findall(r"add_argument\((.*?)\)\n", tree.read("tools/rillcc"), re.S)
    own = {option for call in rillcc for option in re.findall(r'"(--?[A-Za-z][\w-]*)"', call.partition("help=")[0])}
    own |= {f"--{name}-option" for name in ("cpu", "cuda", "hip")} | {f"--{name}" for name in ("nvcc", "hipcc", "clang", "cxx")} | {"--help", "-h"}
    if len(taken) < 5 or len(own) < 20:
        return 0, [f"only {len(taken)} commands of rill and {len(own)} options of rillcc were found"]
    problems, count = [], 0
    for page in tree.pages():
        for line, code in code_of(tree.read(page)):
            # Up to where the shell or another program takes over.
            found = re.match(r"(?:[A-Z_]+=\S+ |\S*/)*(rill|rillcc)(?:\s+(.*))?$", re.split(r" [|>&;#]|&&", code)[0].strip())
            if not found or not found[2]:
                continue
            words = found[2].split()
            if found[1] == "rillcc":
                allowed, what = own, "rillcc"
            elif words[0] in taken:
                allowed, what = taken[words[0]], f"rill {words[0]}"
                words = words[: words.index("--")] if "--" in words else words
            elif re.fullmatch(r"[a-z]+", words[0]) and words[0] not in ("help", "version"):
                problems.append(f"{page}:{line}: rill has no command {words[0]}")
                continue
            else:
                continue
            for word in words:
                option = re.match(r"(--?[A-Za-z][\w-]*)", word)
                if not option:
                    continue
                count += 1
                short = option[1][:2] in ("-I", "-D", "-W", "-o") and not option[1].startswith("--")
                if option[1] not in allowed and not (short and option[1][:2] in allowed):
                    problems.append(f"{page}:{line}: {what} has no option {option[1]}")
    return count, problems


# ---- figures ----

NUMBER = re.compile(r"\d+(?:\.\d+)?")


def figures(tree):
    """Checks that a row of figures in README is that of docs/PERFORMANCE.md with the same first cell, rounded, and that a
    figure with a unit in README's text is one of docs/PERFORMANCE.md."""
    readme, pages = tree.read("README.md"), tree.read("docs/PERFORMANCE.md")
    rows = {}
    for line in pages.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|"):
            rows.setdefault(cells[0], []).append(cells[1:])
    problems, count = [], 0
    for number, line in enumerate(readme.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) < 3 or not all(NUMBER.fullmatch(cell) for cell in cells[1:]):
            continue
        count += 1

        def is_of(row, wanted):
            left = iter(row)
            return all(any(NUMBER.fullmatch(cell) and f"{float(cell):.{places(want)}f}" == want for cell in left) for want in wanted)

        if not any(is_of(row, cells[1:]) for row in rows.get(cells[0], [])):
            problems.append(f'README.md:{number}: docs/PERFORMANCE.md has no row "{cells[0]}" with {", ".join(cells[1:])}')
    part = re.search(r"^Host time per call.*?(?=^## )", readme, re.M | re.S)
    if not part or "PERFORMANCE.md" not in part[0] or count < 5:
        return count, [*problems, "README.md has no figures, or does not say where they are from"]
    text = re.sub(r"^\|.*\n", "", part[0], flags=re.M)
    units = r"\s(ns|us|ms|GFLOP/s|GB/s)\b"
    tokens = set(NUMBER.findall(pages)) | {f"{float(token):.0f}" for token in NUMBER.findall(pages)}
    for found in re.finditer(rf"(\d+(?:\.\d+)?)(?: (?:to|and) (\d+(?:\.\d+)?))?{units}", text):
        for value in (found[1], found[2]):
            if value:
                count += 1
                if value not in tokens:
                    problems.append(f"README.md: {found[0]} is not in docs/PERFORMANCE.md")
    return count, problems


def places(text):
    return len(text.partition(".")[2])


# ---- versions ----


def versions(tree):
    version = find(r"^  version: '([\d.]+)'", tree.read("meson.build"), re.M)
    base = tree.read("include/rill/base.h")
    header = ".".join(find(rf"#define RILL_VERSION_{part} (\d+)", base) for part in ("MAJOR", "MINOR", "PATCH"))
    problems = [] if header == version else [f"include/rill/base.h is of {header}, meson.build of {version}"]
    first = re.search(r"^## (\d+\.\d+\.\d+)", tree.read("CHANGELOG.md"), re.M)
    if not first or first[1] != version:
        problems.append(f"CHANGELOG.md begins with {first and first[1]}, and meson.build is of {version}")
    count = 2
    for page in tree.pages():
        text = tree.read(page)
        for found in re.finditer(r"(?:librill\w*\.so|`\.so|\brill(?:cc)?(?: version)?|version +|\bv)[ .](\d+\.\d+\.\d+)\b", text):
            count += 1
            if found[1] != version:
                problems.append(f"{page}:{where(text, found.start())}: {found[0]}, and meson.build is of {version}")
    needed = find(r"meson_version: '>= ([\d.]+)'", tree.read("meson.build"))
    for page in ("README.md", "tools/quickstart", "tools/packaging/debian/control"):
        for found in re.finditer(r"[Mm]eson(?: \(>=|>=| of|) ?(\d+\.\d+)", tree.read(page)):
            count += 1
            if found[1] != needed:
                problems.append(f"{page}: Meson {found[1]}, and meson.build needs {needed}")
    # The oldest runtimes of vendors.
    for vendor in ("CUDA", "HIP"):
        oldest = {}
        for page in ("README.md", "CHANGELOG.md", "docs/reference/SUPPORT.md"):
            for found in re.finditer(rf"\b{vendor} (\d+\.\d+) or (?:later|newer)|{vendor} \((\d+\.\d+) or (?:later|newer)\)", tree.read(page)):
                count += 1
                oldest.setdefault(found[1] or found[2], set()).add(page)
        if len(oldest) != 1:
            problems.append(f"the oldest {vendor}: {oldest}")
    return count, problems


# ---- numbers of things ----

WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()


def counts(tree):
    """Numbers that pages state of what can be counted: what any page says, and what is counted in which file."""
    stated = (
        (r"\b(\w+) loop shapes", "tests/bench/shapes.def", r"^(?:SHAPE|LOOP)\("),
        (r"\bThese (\w+) steps", "docs/guides/FIRST_RUN_ON_AMD.md", r"^## \d+\. "),
    )
    problems, count = [], 0
    for pattern, file, counted in stated:
        number = len(re.findall(counted, tree.read(file), re.M))
        said = [(page, found[1]) for page in tree.pages() for found in re.finditer(pattern, tree.read(page))]
        if not said:
            problems.append(f"no page has {pattern}: drop it here")
        count += len(said)
        for page, text in said:
            if text not in (str(number), WORDS[number] if number < len(WORDS) else ""):
                problems.append(f"{page} says {text}, and {file} has {number}")
    return count, problems


RULES = (durations, environment, names, functions, options_of_build, options_of_programs, figures, versions, counts)


def check(tree):
    problems, read = [], {}
    for rule in RULES:
        read[rule.__name__], found = rule(tree)
        problems += found
    return read, problems


if __name__ == "__main__":
    facts, problems = check(Tree(sys.argv[1]))
    print("\n".join(problems) or json.dumps(facts))
    sys.exit(bool(problems))
