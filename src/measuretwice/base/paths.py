"""Where the package itself stands, and the programs that it starts on this machine.

MEASURETWICE_ROOT names where labs are read from, and may be somebody else's folder. What is run here, outside
a virtual kernel, is always the running package's own.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# What must be on PYTHONPATH so that another Python finds the package.
SOURCE = PACKAGE.parent
CHECKOUT = SOURCE.parent
KERNEL_BUILDER = CHECKOUT / "scripts/kernel/build.sh"
BROWSER_BUILDER = CHECKOUT / "scripts/browser/build.sh"
BROWSER_LIBRARIES = CHECKOUT / "scripts/browser/libraries.sh"
BROWSER_RUNNER = CHECKOUT / "scripts/browser/run.mjs"
HOST_GUARD = CHECKOUT / "scripts/host/guard.sh"
EMULATOR = CHECKOUT / "scripts/host/emulator.c"
# In place of the kernel's tracing, where a run isn't root's.
EMULATED_EVENTS = CHECKOUT / "scripts/host/events.c"
# For programs there that would become somebody else, and can't.
EMULATED_STAY_ROOT = CHECKOUT / "scripts/host/stay_root.c"
# What stands in for programs on an emulated run's nodes.
EMULATED_TOOLS = CHECKOUT / "scripts/host/emulated"
REMOTE_GUARD = CHECKOUT / "scripts/remote/guard.sh"
# What `./lab release` writes at the top of a release, and no checkout has.
RELEASE_FILE = "release.json"


def is_release(root: Path) -> bool:
    """Return whether the kit in `root` is a students' release, without answers, and no checkout."""
    return (root / RELEASE_FILE).is_file()


def cache_folder() -> Path:
    """Return where machines, and what was learnt about this one, are kept; as scripts/kernel/tools.sh has it."""
    if given := os.environ.get("MEASURETWICE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "measuretwice"


def digest_of_packages(*names: str, root: Path = PACKAGE) -> bytes:
    """Return the SHA-256 of all modules of these packages in `root`, by path and content."""
    digest = hashlib.sha256()
    for path in sorted(path for name in names for path in (root / name).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()
