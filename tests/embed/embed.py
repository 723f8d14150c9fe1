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
for name in ("DESTDIR", "LD_LIBRARY_PATH"):  # the second is of the tests of this build
    os.environ.pop(name, None)
here = pathlib.Path(__file__).resolve().parent


def run(*command, expect=None, **options):
    """Runs a command; anything but success ends the test with its output."""
    command = [str(part) for part in command]
    print("$", " ".join(command), flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
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


def sanitizer_flags():
    """What this build links for a sanitizer, its users need too."""
    options = json.loads(run("meson", "introspect", "--buildoptions", build))
    (chosen,) = (option["value"] for option in options if option["name"] == "b_sanitize")
    chosen = ",".join(chosen) if isinstance(chosen, list) else chosen  # newer versions of meson give a list
    chosen = chosen or "none"
    return [] if chosen == "none" else [f"-fsanitize={chosen}"]


def install(work):
    """Installs the build below `work`; gives the environment that finds it there, and where it is."""
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", work / "root")
    for pc in sorted((work / "root").rglob("rill*.pc")):
        # As if that were the prefix.
        text = pc.read_text(encoding="utf-8")
        prefix = re.search(r"^prefix=(.*)$", text, re.MULTILINE).group(1)
        pc.write_text(text.replace(f"prefix={prefix}\n", f"prefix={work / 'root'}{prefix}\n"), encoding="utf-8")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent))
    library = pc.parent.parent
    environment["LD_LIBRARY_PATH"] = f"{library}:{environment.get('LD_LIBRARY_PATH', '')}"
    return environment, library


def check_installed(library):
    """What `meson install` puts in place: headers, the library under its three names, the pkg-config file."""
    prefix = library
    while not (prefix / "include/rill/rill.h").exists():
        prefix = prefix.parent
        if prefix == prefix.parent:
            sys.exit("rill/rill.h is not installed")
    expected = sorted(path.relative_to(source / "include") for path in (source / "include/rill").rglob("*.h"))
    missing = [str(path) for path in expected if not (prefix / "include" / path).exists()]
    missing += [name for name in ("librill.so", "librill.so.0") if not (library / name).exists()]
    missing += [name for name in ("bin/rillcc", "share/rill/rillcc_lib/emit.py") if not (prefix / name).exists()]
    missing += [name for name in ("rillConfig.cmake", "RillKernels.cmake") if not (library / "cmake/rill" / name).exists()]
    if missing:
        sys.exit(f"not installed: {missing}")


def with_pkgconfig(work):
    need("pkg-config", "meson")
    environment, library = install(work)
    check_installed(library)
    flags = run("pkg-config", "--cflags", "--libs", "rill", env=environment).split()
    program = work / "program"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run(*compiler, *strict, here / "program.c", "-o", program, *flags, *sanitizer_flags(), env=environment)
    run(program, env=environment, expect=r"^rill 0\.1 says 42$")
    if (library / "librill_comm.so.0").exists():
        flags = run("pkg-config", "--cflags", "--libs", "rill_comm", env=environment).split()
        example = source / "docs/examples/all_devices.c"
        run(*compiler, *strict, example, "-o", program, *flags, *sanitizer_flags(), env=environment)
        run(program, env=environment, expect="GPU")


def with_cmake(work):
    need("cmake", "pkg-config", "meson")
    environment, _ = install(work)
    project = work / "project"
    project.mkdir()
    shutil.copy(here / "program.c", project)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\n"
        "project(consumer C)\n"
        "find_package(PkgConfig REQUIRED)\n"
        "pkg_check_modules(RILL REQUIRED IMPORTED_TARGET rill)\n"
        "add_executable(program program.c)\n"
        "target_link_libraries(program PRIVATE PkgConfig::RILL)\n"
    )
    flags = " ".join(sanitizer_flags())
    run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_C_FLAGS={flags}", env=environment)
    run("cmake", "--build", project / "build", env=environment)
    run(project / "build/program", env=environment, expect=r"^rill 0\.1 says 42$")


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
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MESON", "RILL_TEST"))}
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
    """What the kernel includes is a dependency; what it does not is none."""
    run(program, env=environment, expect=r"^the kernel says 42$")
    (project / "factor.h").write_text("#define FACTOR 3u\n", encoding="utf-8")
    run(*build_command, env=environment, expect="scale")
    run(program, env=environment, expect=r"^the kernel says 63$")
    idle = run(*build_command, env=environment)
    if "scale" in idle:
        sys.exit("kernels are compiled again when nothing has changed")


MESON_KERNELS = """
rillcc = find_program(rill_dep.get_variable(pkgconfig: 'rillcc', internal: 'rillcc'))
scale = custom_target('scale.rill',
  input: 'scale.kernel.cu',
  output: ['scale.rill.c', 'scale.rill.h'],
  depfile: 'scale.rill.d',
  command: [rillcc, '--target', 'cpu', '-o', '@OUTPUT0@', '--header', '@OUTPUT1@', '--depfile', '@DEPFILE@', '@INPUT@'],
)
executable('kernels', 'kernels.c', scale, dependencies: rill_dep)
"""


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
    (project / "meson.build").write_text("project('consumer', 'c')\nrill_dep = dependency('rill')\n" + MESON_KERNELS)
    with_meson_kernels(project, environment)


def with_subproject_kernels(work):
    need("meson", "ninja")
    project = work / "project"
    (project / "subprojects").mkdir(parents=True)
    (project / "subprojects/rill").symlink_to(source, target_is_directory=True)
    text = "project('consumer', 'c')\nrill_dep = dependency('rill', fallback: 'rill')\n"
    (project / "meson.build").write_text(text + MESON_KERNELS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MESON", "RILL_TEST"))}
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


ways = {
    "pkgconfig": with_pkgconfig,
    "cmake": with_cmake,
    "subproject": with_subproject,
    "kernels-pkgconfig": with_pkgconfig_kernels,
    "kernels-subproject": with_subproject_kernels,
    "kernels-cmake-ninja": with_cmake_ninja,
    "kernels-cmake-make": with_cmake_make,
    "readme": with_readme,
}
with tempfile.TemporaryDirectory(prefix="rill-embed-") as directory:
    ways[sys.argv[1]](pathlib.Path(directory))
