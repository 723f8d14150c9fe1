#!/usr/bin/env python3
"""No public header gives a C++ program a warning, by its text or through the macros that the program uses.

usage: check_warnings.py INCLUDE_DIRECTORY COMPILER ...

In C++17 and C++20, with exceptions and without, under the warnings that C++ projects turn on.  Uses are compiled to the
end, since gcc finds results that are ignored only then.
"""

import pathlib
import subprocess
import sys
import tempfile

include, *compiler = sys.argv[1:]
here = pathlib.Path(__file__).resolve().parent
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wuseless-cast".split()
failed = []
count = 0


def compiles(*arguments):
    command = [*compiler, "-I", include, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as directory:
    empty = pathlib.Path(directory, "empty.cpp")
    empty.write_text("int main() { return 0; }\n", encoding="utf-8")
    flags = [flag for flag in WARNINGS if compiles("-fsyntax-only", "-Werror", flag, empty).returncode == 0]  # clang has no -Wuseless-cast
    if len(flags) < len(WARNINGS) - 1:
        sys.exit(f"of {WARNINGS} the compiler knows {flags} alone")
    # A flag that finds nothing in what it is for proves nothing.
    empty.write_text("long f(double d) { return (long)d; }\nint main() { return f(0) != 0; }\n", encoding="utf-8")
    if compiles("-fsyntax-only", "-Werror", *flags, empty).returncode == 0:
        sys.exit("the flags do not find an old cast")
    sources = [here / "uses.cpp", here / "uses_hpp.cpp"]
    headers = sorted(path for path in pathlib.Path(include, "rill").rglob("*.h*") if "device" not in path.parts)
    # Each header of C++ by itself; and one source with every header twice.  check_alone.py has those of C by themselves.
    alone = [[header] for header in headers if header.suffix == ".hpp"]
    for group in [headers * 2, *alone]:
        source = pathlib.Path(directory, (group[0].name if len(group) == 1 else "all") + ".cpp")
        lines = "".join(f"#include <{header.relative_to(include)}>\n" for header in group)
        source.write_text(lines + "int main() { return 0; }\n", encoding="utf-8")
        sources.append(source)
    to_the_end = ["-O1", "-c", "-o", pathlib.Path(directory, "made.o")]
    modes = [["-std=c++17"], ["-std=c++20", "-fno-exceptions", "-fno-rtti"]]
    modes_of_uses = [*modes, ["-std=c++20"], ["-std=c++17", "-fno-exceptions", "-fno-rtti"]]
    for source in sources:
        use = source.parent == here
        for mode in modes_of_uses if use else modes if source.name == "all.cpp" else modes[:1]:
            count += 1
            result = compiles(*mode, *(to_the_end if use else ["-fsyntax-only"]), "-Werror", *flags, source)
            if result.returncode != 0:
                failed.append(f"{source.name} {' '.join(mode)}")
                print(f"{failed[-1]}:\n{result.stderr}")

print(f"{len(headers)} headers, {count} compilations, {len(failed)} with warnings: {', '.join(failed)}")
sys.exit(bool(failed) or not headers)
