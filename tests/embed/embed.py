#!/usr/bin/env python3
"""Uses rill as another project does.

usage: embed.py WAY, with RILL_SOURCE, RILL_BUILD and CC in the environment

Everything happens in a temporary directory.  Exit code 77 (skipped): a tool that the way needs is not here.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(os.environ["RILL_SOURCE"])
build = pathlib.Path(os.environ["RILL_BUILD"])
compiler = shlex.split(os.environ["CC"])
cxx = shlex.split(os.environ["CXX"])
for name in ("DESTDIR", "LD_LIBRARY_PATH"):  # the second is of the tests of this build
    os.environ.pop(name, None)
here = pathlib.Path(__file__).resolve().parent


def run(*command, expect=None, **options):
    """Runs a command; anything but success ends the test with its output."""
    words = [str(part) for part in command]
    print("$", " ".join(words), flush=True)
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    print(result.stdout, flush=True)
    if result.returncode != 0:
        sys.exit(f"exit status {result.returncode}")
    if expect and not re.search(expect, result.stdout):
        sys.exit(f"the output has no {expect!r}")
    return result.stdout


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"{tool} is not here")
            sys.exit(77)


def block(language, nth=0, page="EMBEDDING.md"):
    """Returns a block of code as it stands in the documents."""
    text = (source / "docs" / "guides" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[nth]


def clean_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith(("MESON", "RILL_TEST"))}


def install_static(work):
    """Builds the static library alone and installs it; returns the prefix."""
    prefix = work / "static"
    options = ["-Ddefault_library=static", "-Drill_tests=disabled", "-Drill_tools=false", "-Drill_comm=false", "--libdir=lib"]
    flags = [f"-Db_sanitize={flag.split('=')[1]}" for flag in sanitizer_flags()]
    run("meson", "setup", work / "build-static", source, f"--prefix={prefix}", *options, *flags, env=clean_environment())
    run("ninja", "-C", work / "build-static", "-j2", env=clean_environment())
    run("meson", "install", "-C", work / "build-static", "--no-rebuild", env=clean_environment())
    if not (prefix / "lib/librill.a").exists() or list(prefix.rglob("librill.so*")):
        sys.exit("a static build installs librill.a, and no shared library")
    return prefix


def sanitizer_flags():
    """Users need the sanitizer libraries that this build links."""
    options = json.loads(run("meson", "introspect", "--buildoptions", build))
    (chosen,) = (option["value"] for option in options if option["name"] == "b_sanitize")
    chosen = ",".join(chosen) if isinstance(chosen, list) else chosen  # newer versions of meson give a list
    chosen = chosen or "none"
    return [] if chosen == "none" else [f"-fsanitize={chosen}"]


def install(work, name="root"):
    """Installs the build below `work`; returns the environment that finds it there, and where it is."""
    root = work / name
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", root)
    for pc in sorted(root.rglob("rill*.pc")):
        # Acts as if that were the prefix, with spaces as Meson writes them.
        text = pc.read_text(encoding="utf-8")
        prefix = re.findall(r"^prefix=(.*)$", text, re.MULTILINE)[0]
        escaped = str(root).replace(" ", r"\ ")
        pc.write_text(text.replace(f"prefix={prefix}\n", f"prefix={escaped}{prefix}\n"), encoding="utf-8")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    library = pc.parent.parent
    environment["LD_LIBRARY_PATH"] = f"{library}:{environment.get('LD_LIBRARY_PATH', '')}"
    return environment, library


def check_installed(library):
    """Checks the files of `meson install`: headers, the library under its three names, the pkg-config file."""
    prefix = library
    while not (prefix / "include/rill/rill.h").exists():
        prefix = prefix.parent
        if prefix == prefix.parent:
            sys.exit("rill/rill.h is not installed")
    expected = sorted(path.relative_to(source / "include") for path in (source / "include/rill").rglob("*.h*"))
    missing = [str(path) for path in expected if not (prefix / "include" / path).exists()]
    missing += [name for name in ("librill.so", "librill.so.0") if not (library / name).exists()]
    shared = ("bin/rillcc", "share/rill/rillcc_lib/emit.py", "share/rill/kernels/rill_kernels.h")
    missing += [name for name in shared if not (prefix / name).exists()]
    missing += [name for name in ("rillConfig.cmake", "RillKernels.cmake") if not (library / "cmake/rill" / name).exists()]
    if missing:
        sys.exit(f"not installed: {missing}")


def with_pkgconfig(work):
    need("pkg-config", "meson")
    environment, library = install(work, "a root with spaces")
    check_installed(library)
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "rill", env=environment))
    program = work / "program"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run(*compiler, *strict, here / "program.c", "-o", program, *flags, *sanitizer_flags(), env=environment)
    run(program, env=environment, expect=r"^rill 0\.1 says 42$")
    if cxx:
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        run(*cxx, "-std=c++17", *warnings, "-x", "c++", here / "program.c", "-o", program, *flags, *sanitizer_flags(),
            env=environment)
        run(program, env=environment, expect=r"^rill 0\.1 says 42$")
        example = "#include <rill/rill.h>\n#include <stdexcept>\nrill_stream made(rill_device device) {\n" + block("cpp")
        (work / "made.cpp").write_text(example + "return stream.id != 0 ? stream : other;\n}\n", encoding="utf-8")
        compile_flags = shlex.split(run("pkg-config", "--cflags", "rill", env=environment))
        run(*cxx, "-std=c++17", *warnings, "-c", work / "made.cpp", "-o", work / "made.o", *compile_flags, env=environment)
        example = source / "docs/examples/hello_streams.cpp"  # which includes the installed rill.hpp
        run(*cxx, "-std=c++17", *warnings, example, "-o", program, *flags, *sanitizer_flags(), env=environment)
        run(program, env=environment, expect="4 rounds, 0 wrong values")
    if (library / "librill_comm.so.0").exists():
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "rill_comm", env=environment))
        example = source / "docs/examples/all_devices.c"
        run(*compiler, *strict, example, "-o", program, *flags, *sanitizer_flags(), env=environment)
        run(program, env=environment, expect="GPU")


CMAKE_PROGRAM = """cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(rill 0.1 REQUIRED)
get_target_property(type rill::rill TYPE)
message(STATUS "rill is a ${type}")
add_executable(program program.c)
target_link_libraries(program PRIVATE rill::rill)
"""
CMAKE_CPP_PROGRAM = """enable_language(CXX)
add_executable(streams hello_streams.cpp)
target_compile_features(streams PRIVATE cxx_std_17)
target_link_libraries(streams PRIVATE rill::rill)
"""


def cmake_program(work, name, environment, prefix, expect):
    project = work / name
    project.mkdir()
    shutil.copy(here / "program.c", project)
    shutil.copy(source / "docs/examples/hello_streams.cpp", project)
    (project / "CMakeLists.txt").write_text(CMAKE_PROGRAM + (CMAKE_CPP_PROGRAM if cxx else ""))
    flags = [f"-DCMAKE_{language}_FLAGS={' '.join(sanitizer_flags())}" for language in ("C", "CXX")]
    flags += [f"-DCMAKE_PREFIX_PATH={prefix}"]
    run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", *flags, env=environment, expect=expect)
    run("cmake", "--build", project / "build", env=environment)
    run(project / "build/program", env=environment, expect=r"^rill 0\.1 says 42$")
    if cxx:
        run(project / "build/streams", env=environment, expect="4 rounds, 0 wrong values")


def with_cmake(work):
    """The installed package: where it is, moved, and with /lib a link to /usr/lib."""
    need("cmake", "ninja", "meson")
    environment, library = install(work, "a root with spaces")
    environment.pop("PKG_CONFIG_PATH")
    prefix = library
    while not (prefix / "bin").exists():
        prefix = prefix.parent
    cmake_program(work, "as-installed", environment, prefix, "rill is a SHARED_LIBRARY")
    moved = work / "elsewhere/usr"
    moved.parent.mkdir()
    prefix.rename(moved)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    environment["LD_LIBRARY_PATH"] = str(moved / library.relative_to(prefix))
    cmake_program(work, "moved", environment, moved, "rill is a SHARED_LIBRARY")
    first = library.relative_to(prefix).parts[0]
    (moved.parent / first).symlink_to(f"usr/{first}")
    cmake_program(work, "merged", environment, moved.parent, "rill is a SHARED_LIBRARY")


def with_moved(work):
    """A prefix that is moved: its programs and libraries find each other with no variable set, and through links to them."""
    need("meson", "readelf")
    options = {option["name"]: option["value"] for option in json.loads(run("meson", "introspect", "--buildoptions", build))}
    environment, library = install(work)
    environment.pop("PKG_CONFIG_PATH")
    environment.pop("LD_LIBRARY_PATH")
    moved = work / "moved to here"
    (work / "root").rename(moved)
    library = moved / library.relative_to(work / "root")
    prefix = moved / options["prefix"].lstrip("/")
    binaries = sorted(path for path in (*library.glob("librill*.so.*.*.*"), prefix / "bin/rill") if path.exists())
    for binary in binaries:
        for said in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", run("readelf", "-d", binary)):
            for place in said.split(":"):
                if place.startswith((options["prefix"] + "/", str(build))) or not place.startswith(("$ORIGIN", "/")):
                    sys.exit(f"{binary.name} looks in {place}")
    kernel = work / "scale.rill.c"
    copy_kernels(work)
    link = work / "links"
    link.mkdir()
    for program in (prefix / "bin").iterdir():
        (link / program.name).symlink_to(program)
    for folder in (prefix / "bin", link):
        run(folder / "rillcc", "--target", "cpu", "-o", kernel, "--header", kernel.with_suffix(".h"), work / "scale.kernel.cu",
            env=environment)
        if not (folder / "rill").exists():
            continue
        version = run(folder / "rillcc", "--version", env=environment).split()[-1]
        run(folder / "rill", "--version", env=environment, expect=f"^rill {re.escape(version)}$")
        reported = run(folder / "rill", "info", "--json", env=environment)
        if json.loads(reported)["version"] != version:
            sys.exit(f"rill info is not of version {version}")
        if (prefix / options["datadir"] / "rill/landscape.png").exists():
            run(folder / "rill", "demo", "--device", "cpu", "-o", work / "out.png", env=environment,
                expect=r"landscape\.png")
    if (library / "librill_comm_mpi.so.0").exists() and (prefix / "bin/rill").exists():
        program = work / "comm"
        flags = ["-I", prefix / "include", "-L", library, "-lrill_comm", "-lrill", f"-Wl,-rpath,{library}", *sanitizer_flags()]
        run(*compiler, here / "comm_engine.c", "-o", program, *flags)
        environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # those of MPI
        run(program, env=environment, expect=re.escape(f"{library.resolve()}/librill_comm_mpi.so"))


def with_static(work):
    need("cmake", "ninja", "meson", "pkg-config")
    prefix = install_static(work)
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "--static", "rill", env=environment).split()
    run(*compiler, here / "program.c", "-o", work / "program", *flags, *sanitizer_flags(), env=environment)
    run(work / "program", env=environment, expect=r"^rill 0\.1 says 42$")
    cmake_program(work, "cmake-static", environment, prefix, "rill is a STATIC_LIBRARY")
    run(sys.executable, source / "tests/headers/check_globals.py", "nm", prefix / "lib/librill.a")


def with_fetchcontent(work):
    """The block of the documents, with the source that is here for what it would fetch."""
    need("cmake", "ninja")
    project = work / "project"
    project.mkdir()
    copy_kernels(project)
    (project / "kernels.c").rename(project / "program.c")
    start = "cmake_minimum_required(VERSION 3.20)\nproject(consumer C)\n"
    (project / "CMakeLists.txt").write_text(start + block("cmake", 1), encoding="utf-8")
    flags = [f"-DCMAKE_C_FLAGS={' '.join(sanitizer_flags())}", f"-DFETCHCONTENT_SOURCE_DIR_RILL={source}"]
    for kind in ("OFF", "ON"):
        directory = project / f"build-{kind}"
        run("cmake", "-G", "Ninja", "-S", project, "-B", directory, f"-DBUILD_SHARED_LIBS={kind}", *flags)
        run("cmake", "--build", directory, "-j2")
        run(directory / "program", expect=r"^the kernel says 42$")


def with_two_files(work):
    """Tests rill.h and rill.c by themselves, on each existing device and on those of the fake vendors."""
    run(sys.executable, source / "tools/amalgamate", work)
    strict = ["-Wall", "-Wextra", "-Werror"]
    run(*compiler, *strict, "-c", work / "rill.c", "-o", work / "rill.o", *sanitizer_flags())
    shutil.copy(here / "program.c", work)
    link = [work / "rill.o", "-lpthread", "-ldl", *sanitizer_flags()]
    program = work / "program"
    run(*compiler, *strict, "-DTWO_FILES", "-I", work, work / "program.c", *link, "-o", program)
    run(program, expect=r"^rill 0\.1 says 42$")
    if cxx:
        (work / "version.cpp").write_text('#include "rill.h"\nint main(void) { return rill_version() == 0; }\n', encoding="utf-8")
        run(*cxx, *strict, work / "version.cpp", *link, "-o", work / "version")
        run(work / "version")
    for device, folder in (("cuda:0", os.environ["RILL_FAKE_CUDA"]), ("hip:0", os.environ["RILL_FAKE_HIP"])):
        if folder:
            run(program, device, env=dict(os.environ, LD_LIBRARY_PATH=folder), expect=r"^rill 0\.1 says 42$")
    hidden = work / "hidden.so"
    run(*compiler, "-DRILL_API=", "-DRILL_NO_CUDA", "-DRILL_NO_HIP", "-fPIC", "-shared", work / "rill.c", "-o", hidden,
        *link[1:])
    if re.search(r"\brill_", run("nm", "-D", "--defined-only", hidden)):
        sys.exit("-DRILL_API= leaves names in what is exported")


def with_aarch64(work):
    """The two files, programs and kernels with barriers and shuffles on another architecture, emulated.  An emulator on
    x86-64 has its memory order, so errors of a weaker order do not show."""
    need("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64")
    cross, emulator = "aarch64-linux-gnu-gcc", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
    run(sys.executable, source / "tools/amalgamate", work)
    run(cross, "-O1", "-Wall", "-Wextra", "-Werror", "-c", work / "rill.c", "-o", work / "rill.o")
    flags = ["-I", work, "-I", source / "include"]
    link = [work / "rill.o", "-lpthread", "-ldl", "-o", work / "program"]
    run(cross, *flags, here / "program.c", *link)
    run(*emulator, work / "program", expect=r"^rill 0\.1 says 42$")
    for name, expect in (("hello_streams", "0 wrong values"), ("saxpy", "0 wrong values"), ("pipeline", "sum 2097152"),
                         ("warp_sum", "sum 8750.00, expected 8750.00")):
        folder = source / "docs/examples"
        kernels = []
        if (folder / f"{name}.kernel.cu").exists():
            kernels = [work / f"{name}.rill.c"]
            run(sys.executable, source / "tools/rillcc", "--target", "cpu", "--cxx", "aarch64-linux-gnu-g++", "--clang", "none",
                "-o", kernels[0], "--header", work / f"{name}.rill.h", folder / f"{name}.kernel.cu")
        run(cross, *flags, folder / f"{name}.c", *kernels, *link)
        run(*emulator, work / "program", env=dict(os.environ, RILL_DEVICE="cpu"), expect=expect)


def with_two_copies(work):
    """Two plugins, each with a copy of rill in it, in a program that links the shared library."""
    run(sys.executable, source / "tools/amalgamate", work)
    flags = ["-fPIC", "-pthread", "-I", source / "include", *sanitizer_flags()]
    run(*compiler, *flags, "-DRILL_API=", "-c", work / "rill.c", "-o", work / "hidden.o")
    run(*compiler, *flags, "-c", work / "rill.c", "-o", work / "seen.o")
    for name, copy in (("one", "hidden.o"), ("two", "hidden.o"), ("three", "seen.o")):
        define = ["-DRILL_API="] if copy == "hidden.o" else []
        run(*compiler, *flags, *define, "-shared", here / "copy.c", work / copy, "-ldl", "-o", work / f"{name}.so")
    library = ["-L", build, "-lrill", f"-Wl,-rpath,{build}", "-ldl", *sanitizer_flags()]
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread", "-I", source / "include"]
    run(*compiler, *strict, here / "copies.c", *library, "-o", work / "copies")
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    places = [("cpu", ""), ("cuda:0", os.environ["RILL_FAKE_CUDA"]), ("hip:0", os.environ["RILL_FAKE_HIP"])]
    for device, folder in places:
        if device == "cpu" or folder:
            environment["LD_LIBRARY_PATH"] = folder
            for way in ("stay", "close"):
                run(work / "copies", device, way, *(work / f"{name}.so" for name in ("one", "two", "three")),
                    env=environment, expect="^4 copies$")


def with_static_copies(work):
    """Two C files of a program include rill.c with RILL_STATIC: each has a copy, none of whose names the linker sees."""
    run(sys.executable, source / "tools/amalgamate", work)
    warnings = ["-Wall", "-Wextra", "-Werror"]
    sanitizers = sanitizer_flags()
    flags = ["-I", work, "-I", here, "-I", source / "include", *sanitizers]
    link = ["-lpthread", "-ldl", *sanitizers]
    for name in ("one", "two"):
        text = block("c") + f'#define rill_copy_work {name}\n#include "copy.c"\n'
        (work / f"{name}.c").write_text(text, encoding="utf-8")
        run(*compiler, *warnings, *flags, "-c", work / f"{name}.c", "-o", work / f"{name}.o")
        seen = re.findall(r" [A-Z] ([^_\n]\S*)$", run("nm", "-g", "--defined-only", work / f"{name}.o"), re.MULTILINE)
        # That one is weak: the copies share it (backends/cpu/fiber_switch.h).
        if set(seen) - {"rill__cpu_stack_switch"} != {name}:
            sys.exit(f"what {name}.o defines: {seen}")
    program = work / "static_copies"
    run(*compiler, *warnings, *flags, here / "static_copies.c", work / "one.o", work / "two.o", *link, "-o", program)
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    places = [("cpu", ""), ("cuda:0", os.environ["RILL_FAKE_CUDA"]), ("hip:0", os.environ["RILL_FAKE_HIP"])]
    for device, folder in places:
        if device == "cpu" or folder:
            run(program, device, env=environment | {"LD_LIBRARY_PATH": folder}, expect="^2 copies$")
    check_one_function(work, warnings)


def version_of(command):
    """Returns what a compiler says of its version, without the name that it was called by."""
    said = subprocess.run([*command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.split("\n")[0].partition(" ")[2]


def check_one_function(work, warnings):
    """A program that calls one function compiles without a warning.  RILL_STATIC is refused with a reason in C++, where
    rill.c cannot be, and after headers that lack GNU's declarations."""
    call = "int main(void) { return rill_version() == 0; }\n"
    (work / "version.c").write_text(block("c") + call, encoding="utf-8")
    (work / "version.cpp").write_text('#include "rill.h"\n' + call, encoding="utf-8")
    (work / "late.c").write_text("#include <stdio.h>\n" + block("c") + call, encoding="utf-8")
    compilers = [compiler] + [[name] for name in ("gcc", "clang") if shutil.which(name)]
    versions = {version_of(each): each for each in reversed(compilers)}  # `cc` and `gcc` are usually one compiler
    for each in versions.values():
        run(*each, *warnings, "-c", work / "version.c", "-o", work / "version.o")
    refused = [([*compiler, "-std=c11", "-c", work / "late.c"], "include rill.c before the system's headers")]
    if cxx:
        refused += [([*cxx, "-DRILL_STATIC", "-c", work / "version.cpp"], "RILL_STATIC is for C files")]
    for command, why in refused:
        result = subprocess.run([*command, "-o", work / "refused.o"], stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode == 0 or why not in result.stderr:
            sys.exit(f"not refused because {why!r}: {result.stderr}")


def with_no_gpu_compilers(work):
    """Nothing but gcc: whatever backends are asked for are built in, and the summary says why kernels are not compiled for
    them, why there is no demo and no test, and what to install."""
    need("meson", "ninja", "gcc", "g++")
    programs = work / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for path in sorted(pathlib.Path(folder).glob("*")):
            if not re.search("clang|nvcc|hipcc|lld|llvm|cmake|libpng|mpi", path.name) and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    environment = clean_environment() | {"PATH": str(programs), "CC": "gcc", "CXX": "g++", "RILL_CLANG": ""}
    environment |= {"RILL_NVCC": "none", "RILL_HIPCC": "none"}  # their folders are also searched
    environment |= {"PKG_CONFIG_LIBDIR": str(work), "PKG_CONFIG_PATH": ""}
    said = {"cuda": r"nvcc is disabled, and no clang 15 or later \(on Debian and Ubuntu: clang-19 libclc-19\)"
                    r"(?:; of kernels/ the PTX that came with the sources)?",
            "hip": r"hipcc is disabled, and no clang 15 or later with lld \(on Debian and Ubuntu: clang-19 lld-19 libclc-19\)"}
    absent = ("rill demo +: absent: no libpng found .*: libpng-dev", "tests +: left out: no cmocka found .*: libcmocka-dev",
              "mpi +: absent: .*no MPI found .*: libopenmpi-dev")
    both = ["cuda", "hip"]
    cases: list = [(["-Drill_backend=cuda"], ["cuda"]), (["-Drill_backend=cuda,hip"], both), ([], both)]
    for wanted, backends in cases:
        directory = work / f"build-{len(wanted)}-{len(backends)}"
        text = run("meson", "setup", directory, source, *wanted, env=environment)
        for each in absent:
            if not re.search(each, text):
                sys.exit(f"the summary does not say {each!r}")
        for backend in ("cuda", "hip"):
            built, kernels = rf"\n +{backend} +: built in; the library is looked for", rf"\n +{backend} +: none: {said[backend]}\n"
            if [bool(re.search(each, text)) for each in (built, kernels)] != [backend in backends] * 2:
                sys.exit(f"{backend}: not what is true")
        run("ninja", "-C", directory, "-j2", "kernels/gate.rill.c", env=environment)
    for option, why in (("-Drill_tests=enabled", "no cmocka found .*: libcmocka-dev"),
                        ("-Drill_backend=", "-Drill_backend= names no backend")):
        refused = subprocess.run(["meson", "setup", work / "refused", source, option], env=environment,
                                 stdout=subprocess.PIPE, text=True, check=False)
        if refused.returncode == 0 or not re.search(f"ERROR: .*{why}", refused.stdout):
            sys.exit(refused.stdout)


def with_make(work):
    need("make", "meson", "pkg-config")
    environment, _ = install(work)
    copy_kernels(work)
    (work / "kernels.c").rename(work / "program.c")
    (work / "Makefile").write_text(block("make"), encoding="utf-8")
    flags = " ".join(sanitizer_flags())
    command = ["make", "-C", work, f"CC={' '.join(compiler)} {flags}".rstrip()]
    run(*command, env=environment)
    edit_and_build_again(work, work / "program", environment, *command)
    shutil.copy(here / "sums.c", work)
    with (work / "Makefile").open("a", encoding="utf-8") as makefile:
        makefile.write(block("make", 1))
    run(*command, "sums", "RILLCC=$(shell pkg-config --variable=rillcc rill) --target cpu", env=environment)
    run(work / "sums", env=environment, expect=r"^the sum is 300000$")


def with_subproject(work):
    need("meson", "ninja")
    project = work / "project"
    (project / "subprojects").mkdir(parents=True)
    (project / "subprojects/rill").symlink_to(source, target_is_directory=True)
    shutil.copy(here / "program.c", project)
    (project / "meson.build").write_text(
        "project('consumer', 'c')\n"
        "rill_dep = dependency('rill', fallback: 'rill')\n"
        "test('program', executable('program', 'program.c', dependencies: rill_dep))\n"
    )
    environment = clean_environment()
    directory = project / "build"
    run("meson", "setup", directory, project, "-Drill:rill_backend=cpu", "--wrap-mode=default", env=environment)
    run("ninja", "-C", directory, "-j2", env=environment)
    run(directory / "program", env=environment, expect=r"^rill 0\.1 says 42$")
    # An embedder gets the library, not rill's own tests and tools.
    tests = run("meson", "test", "-C", directory, "--list", env=environment)
    if "conformance" in tests:
        sys.exit("the embedder's test run has rill's own tests in it")


# ---- projects with kernels of their own ----


def copy_kernels(project):
    for name in ("kernels.c", "scale.kernel.cu", "factor.h"):
        shutil.copy(here / name, project)


def edit_and_build_again(project, program, environment, *build_command):
    """Files that the kernel includes are dependencies; other files are not."""
    run(program, env=environment, expect=r"^the kernel says 42$")
    (project / "factor.h").write_text("#define FACTOR 3u\n", encoding="utf-8")
    run(*build_command, env=environment, expect="scale")
    run(program, env=environment, expect=r"^the kernel says 63$")
    idle = run(*build_command, env=environment)
    if "scale" in idle:
        sys.exit("kernels are compiled again when nothing has changed")


def meson_project(project):
    """The block of the documents in a project of its own."""
    text = block("meson").replace("'program.c'", "'kernels.c'").replace("executable('program'", "executable('kernels'")
    text = text.replace("command: [rillcc,", "command: [rillcc, '--target', 'cpu',")
    (project / "meson.build").write_text("project('consumer', 'c')\n" + text, encoding="utf-8")


def with_meson_kernels(project, environment, *setup):
    copy_kernels(project)
    directory = project / "build"
    flags = [f"-Dc_args={' '.join(sanitizer_flags())}", f"-Dc_link_args={' '.join(sanitizer_flags())}"]
    run("meson", "setup", directory, project, *setup, *flags, env=environment)
    run("ninja", "-C", directory, "-j2", env=environment)
    edit_and_build_again(project, directory / "kernels", environment, "ninja", "-v", "-C", directory, "-j2")


def with_pkgconfig_kernels(work):
    need("pkg-config", "meson", "ninja")
    environment, _ = install(work)
    project = work / "project"
    project.mkdir()
    meson_project(project)
    with_meson_kernels(project, environment)


def with_meson_and_cmake(work):
    """Without pkg-config, Meson finds rill with CMake."""
    need("cmake", "meson", "ninja")
    environment, library = install(work)
    environment.update(PKG_CONFIG_PATH="", PKG_CONFIG_LIBDIR=str(work))
    project = work / "project"
    project.mkdir()
    meson_project(project)
    with_meson_kernels(project, environment, f"-Dcmake_prefix_path={library / 'cmake/rill'}")


def with_wrap(work):
    """Tests the wrap of the documents, with a copy of the last commit."""
    need("meson", "ninja", "git")
    if not (source / ".git").exists():
        print("this is no checkout")
        sys.exit(77)
    project = work / "project"
    (project / "subprojects").mkdir(parents=True)
    wrap = block("ini").replace("URL", source.as_uri())
    (project / "subprojects/rill.wrap").write_text(wrap, encoding="utf-8")
    shutil.copy(here / "program.c", project)
    (project / "meson.build").write_text(
        "project('consumer', 'c')\nexecutable('program', 'program.c', dependencies: dependency('rill'))\n")
    environment = dict(clean_environment(), GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
    options = ["-Drill:rill_backend=cpu", "-Drill:rill_comm=false"]
    run("meson", "setup", project / "build", project, *options, env=environment)
    run("ninja", "-C", project / "build", "-j2", "program", env=environment)
    run(project / "build/program", env=environment, expect=r"^rill 0\.1 says 42$")


def with_subproject_kernels(work):
    need("meson", "ninja")
    project = work / "project"
    (project / "subprojects").mkdir(parents=True)
    (project / "subprojects/rill").symlink_to(source, target_is_directory=True)
    meson_project(project)
    environment = clean_environment()
    with_meson_kernels(project, environment, "-Drill:rill_backend=cpu", "--wrap-mode=default")


CMAKE_KERNELS = """cmake_minimum_required(VERSION 3.20)
project(consumer C)
find_package(rill 0.1 REQUIRED)
add_executable(kernels kernels.c)
rill_add_kernels(kernels scale.kernel.cu TARGETS cpu INCLUDE_DIRECTORIES . DEFINITIONS UNUSED=1)
add_library(more SHARED)
rill_add_kernels(more scale.kernel.cu TARGETS cpu PREFIX more_)
"""


def with_cmake_kernels(work, generator):
    environment, library = install(work)
    project = work / "project"
    project.mkdir()
    copy_kernels(project)
    (project / "CMakeLists.txt").write_text(CMAKE_KERNELS)
    flags = [f"-DCMAKE_C_FLAGS={' '.join(sanitizer_flags())}", f"-Drill_DIR={library / 'cmake/rill'}"]
    directory = project / "build"
    run("cmake", "-G", generator, "-S", project, "-B", directory, *flags, env=environment)
    command = ["cmake", "--build", directory]
    run(*command, env=environment)
    header = (directory / "more.kernels/more_scale.rill.h").read_text(encoding="utf-8")
    if "more_scale_launch" not in header:
        sys.exit("PREFIX does nothing")
    run(directory / "kernels", env=environment, expect=r"^the kernel says 42$")
    (project / "factor.h").write_text("#define FACTOR 3u\n", encoding="utf-8")
    run(*command, env=environment, expect="Compiling kernels of scale.kernel.cu")
    run(directory / "kernels", env=environment, expect=r"^the kernel says 63$")
    if "Compiling kernels" in run(*command, env=environment):
        sys.exit("kernels are compiled again when nothing has changed")


def with_cmake_ninja(work):
    need("cmake", "ninja", "meson")
    with_cmake_kernels(work, "Ninja")


def with_cmake_make(work):
    need("cmake", "make", "meson")
    with_cmake_kernels(work, "Unix Makefiles")


def with_readme(work):
    """The README's example, as it stands there."""
    readme = (source / "README.md").read_text(encoding="utf-8")
    example = re.search(r"<!-- example -->\s*```c\n(.*?)```", readme, re.DOTALL)
    if not example:
        sys.exit("README.md has no ```c block after <!-- example -->")
    lines = example.group(1).count("\n")
    print(f"{lines} lines")
    if lines > 35:
        sys.exit("the example has grown past what one reads at a glance")
    program = work / "example.c"
    program.write_text(example.group(1), encoding="utf-8")
    library = ["-L", build, "-lrill", f"-Wl,-rpath,{build}"]
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run(*compiler, *strict, "-I", source / "include", program, "-o", work / "example", *library, *sanitizer_flags())
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    run(work / "example", env=environment)


def with_start(work):
    """The programs of docs/START.md, built outside of rill by the commands of the page."""
    need("pkg-config", "meson", "ninja")
    environment, _ = install(work)
    cc = work / "bin" / "cc"
    cc.parent.mkdir()
    script = f'PATH={shlex.quote(environment["PATH"])} exec {shlex.join([*compiler, *sanitizer_flags()])} "$@"'
    cc.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")  # with a PATH on which it is not itself the cc
    cc.chmod(0o755)
    (rillcc,) = (work / "root").rglob("bin/rillcc")
    environment["PATH"] = f"{cc.parent}:{rillcc.parent}:{environment['PATH']}"
    environment["CC"] = str(cc)
    page = (source / "docs/START.md").read_text(encoding="utf-8")
    # The first block installs rill, and the second copies the folder of programs.
    _, copy, *commands = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    run("bash", "-e", "-c", copy.replace("docs/", f"{source}/docs/"), cwd=work, env=environment)
    for command in commands:
        run("bash", "-e", "-c", command, cwd=work / "start", env=environment)
    for program, printed in re.findall(r"^\$ \./(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for folder in ("", "build"):
            run(work / "start" / folder / program, env=environment, expect=f"^{re.escape(printed)}$")


ways = {
    "pkgconfig": with_pkgconfig,
    "cmake": with_cmake,
    "moved": with_moved,
    "subproject": with_subproject,
    "kernels-pkgconfig": with_pkgconfig_kernels,
    "kernels-subproject": with_subproject_kernels,
    "kernels-cmake-ninja": with_cmake_ninja,
    "kernels-cmake-make": with_cmake_make,
    "kernels-meson-and-cmake": with_meson_and_cmake,
    "kernels-make": with_make,
    "static": with_static,
    "fetchcontent": with_fetchcontent,
    "two-files": with_two_files,
    "two-copies": with_two_copies,
    "static-copies": with_static_copies,
    "aarch64": with_aarch64,
    "wrap": with_wrap,
    "no-gpu-compilers": with_no_gpu_compilers,
    "readme": with_readme,
    "start": with_start,
}
with tempfile.TemporaryDirectory(prefix="rill-embed-") as directory:
    ways[sys.argv[1]](pathlib.Path(directory))
