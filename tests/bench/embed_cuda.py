"""embed_cuda.py NVCC SOURCE OUTPUT: compiles a CUDA source to a fat binary, and writes that as a C array, plain_image."""

import os
import subprocess
import sys
import tempfile

ARCHS = ("compute_80,code=sm_80", "compute_90,code=sm_90", "compute_80,code=compute_80")


def main(nvcc, source, output):
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "image")
        flags = [flag for arch in ARCHS for flag in ("-gencode", "arch=" + arch)]
        command = [nvcc, "-fatbin", "-O3", "-std=c++17", "-Wno-deprecated-gpu-targets", *flags, "-o", image, source]
        subprocess.run(command, check=True)
        with open(image, "rb") as file:
            data = file.read()
    rows = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
    with open(output, "w", encoding="ascii") as file:
        file.write("extern const unsigned char plain_image[];\n")
        file.write("_Alignas(64) const unsigned char plain_image[] = {\n%s\n};\n" % ",\n".join(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
