"""The modules of rillcc. The main ones: compilers and host run the compilers, notes reads the kernels of a source, spmd
rewrites modules for the CPU, emit writes the C file and its header, and listing lists the contents of a file."""
