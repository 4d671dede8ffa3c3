"""The browser's machine for tests: taken from the cache, or built, which takes minutes once."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from measuretwice.site.machine import Parts, find_parts

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts/browser"


@functools.cache
def lacking() -> str:
    """Why there is none: the packages that its builder misses; empty where it is there, or can be built."""
    if find_parts() is not None:
        return ""
    done = subprocess.run(
        ["bash", str(SCRIPTS / "build.sh"), "--needs"], capture_output=True, text=True, check=True
    )
    packages = " ".join(dict.fromkeys(done.stdout.split()))
    return f"the browser's machine can't be built: apt-get install {packages}" if packages else ""


@functools.cache
def ready() -> Parts | None:
    """The machine and the libraries of its pages; None where it can't be had: then a test of its own fails, and the
    site is looked at without it."""
    if lacking():
        return None
    for name in ("build.sh", "libraries.sh"):
        subprocess.run(["bash", str(SCRIPTS / name)], stdout=subprocess.DEVNULL, check=False)
    return find_parts()
