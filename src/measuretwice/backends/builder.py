"""The scripts that get a machine ready: it is in the cache, comes with the checkout, or is built (scripts/machines/)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_builder(
    script: Path, *options: str, quiet: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run it; what it prints is the machine's folder, what it says goes to stderr, or, `quiet`, to the result."""
    return subprocess.run(
        ["bash", str(script), *options],
        # It unpacks with a Python that is here: this one.
        env={**os.environ, "MEASURETWICE_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
