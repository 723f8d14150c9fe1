#!/usr/bin/env python3
"""Makes the module in a folder of its own and runs the script there: run.py make_module.py rill-api.json SCRIPT ..."""

import os
import subprocess
import sys
import tempfile

maker, api, *script = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="rill-python-") as folder:
    subprocess.run([sys.executable, maker, api, os.path.join(folder, "rill.py")], check=True)
    done = subprocess.run([sys.executable, *script], env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}, check=False)
sys.exit(done.returncode)
