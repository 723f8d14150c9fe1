#!/usr/bin/env python3
"""Compares the cpu device with OpenMP loops: the works of cpu_kernels.c, and the kernels of kernels/.

    tests/bench/compare_cpu.py FOLDER            makes in FOLDER what is not there yet, then compares
    tests/bench/compare_cpu.py --prepare FOLDER  only compiles the kernels into FOLDER, which needs clang

The machine on which this runs needs only gcc and OpenMP, if FOLDER was prepared on another one: images for the cpu are for
all processors of its kind.  The loops are compiled for this processor.  The comparison takes about a minute.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = [HERE / "cpu_kernels.kernel.cu"]
SOURCES += [ROOT / "kernels" / (name + ".kernel.cu")
            for name in "gate axpy copy2d fill histogram reduce scan sgemm stencil stream transpose".split()]
WITH_LAUNCHES = [ROOT / "kernels" / name for name in ("reduce.c", "scan.c", "sgemm.c")]
LOOPS = ["-O3", "-march=native", "-fopenmp-simd", "-fopenmp"]


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


def prepare(folder):
    """Compiles the kernels that are not there yet."""
    for source in SOURCES:
        name = source.name.replace(".kernel.cu", ".rill")
        if not (folder / (name + ".c")).exists():
            run(sys.executable, ROOT / "tools" / "rillcc", "--target", "cpu", "-o", folder / (name + ".c"),
                "--header", folder / (name + ".h"), source)


def build(folder):
    """Returns the two programs."""
    run(sys.executable, ROOT / "tools" / "amalgamate", folder)
    own = ["-std=c11", "-O2", "-D_GNU_SOURCE", "-DRILL_NO_CUDA", "-DRILL_NO_HIP", "-DBENCH_OPENMP"]
    own += ["-I%s" % path for path in (ROOT / "include", ROOT / "kernels", folder)]
    kernels = [folder / source.name.replace(".kernel.cu", ".rill.c") for source in SOURCES]
    loops = [(HERE / "cpu_openmp.c", "plain", LOOPS), (HERE / "cpu_openmp.c", "fast", [*LOOPS, "-ffast-math"]),
             (HERE / "kernels_openmp.c", "kernels", LOOPS)]
    own_sources = [folder / "rill.c", *kernels, *WITH_LAUNCHES]
    own_sources += [HERE / name for name in ("cpu_kernels.c", "kernels.c", "kernels_openblas.c")]
    objects, work = {}, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source in own_sources:
            objects[source.name] = folder / (source.name + ".o")
            work.append(pool.submit(run, "gcc", *own, "-c", "-o", objects[source.name], source))
        for source, name, flags in loops:
            objects[name] = folder / (name + ".loops.o")
            work.append(pool.submit(run, "gcc", *own, *flags, "-c", "-o", objects[name], source))
    for done in work:
        done.result()
    first = {"cpu_kernels.c", "cpu_kernels.rill.c", "plain", "fast"}
    programs = []
    for program, chosen in (("cpu_kernels", first | {"rill.c"}), ("kernels", objects.keys() - first)):
        programs.append(folder / program)
        run("gcc", "-fopenmp", "-o", programs[-1], *(objects[name] for name in sorted(chosen)), "-lpthread", "-ldl", "-lm")
    return programs


def main():
    parser = argparse.ArgumentParser(description="Compares the cpu device with OpenMP loops.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true", help="only compile the kernels, which needs clang")
    parser.add_argument("--rounds", type=int, default=9, help="of which the median counts")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    prepare(arguments.folder.resolve())
    if arguments.prepare:
        return
    cpu_kernels, kernels = build(arguments.folder.resolve())
    sys.stdout.flush()
    run(cpu_kernels, arguments.rounds)
    sys.stdout.write("\n")
    sys.stdout.flush()
    run(kernels, "--only", "_f32", "--rounds", arguments.rounds, "cpu")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit("compare_cpu.py: %s failed with status %d" % (error.cmd[0], error.returncode))
