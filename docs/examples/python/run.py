#!/usr/bin/env python3
"""Generates the module in a temporary folder and runs a script with it: run.py make_module.py rill-api.json SCRIPT ..."""

import os
import subprocess
import sys
import tempfile

maker, api, *script = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="rill-python-") as folder:
    subprocess.run([sys.executable, maker, api, os.path.join(folder, "rill.py")], check=True)
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *script], env=environment, check=False)
sys.exit(done.returncode)
