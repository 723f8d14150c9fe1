"""The parts of rillcc: scan (reads a source), compilers (run them), offload (AMD bundles), emit (writes C),
listing (lists the contents of a file)."""
