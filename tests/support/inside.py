"""The virtual kernel of this machine, and its files as programs in a guest see them."""

from pathlib import Path

import pytest

from measuretwice.backends.script import INSIDE_ROOT
from measuretwice.backends.virtual import Kernel, find_kernel

ROOT = Path(__file__).parents[2]


def built_kernel() -> Kernel:
    """The virtual kernel; the test is skipped where there is none."""
    found = find_kernel()
    if found is None:
        pytest.skip("the virtual kernel is not built: run scripts/kernel/build.sh")
    return found


def seen_inside(path: Path) -> str:
    """Return a path of this machine as programs inside see it (virtual.run_inside, as_machine): a tmpfs hides /tmp and
    /run, where the checkout may be, which is at INSIDE_ROOT."""
    return f"{INSIDE_ROOT}/{path.relative_to(ROOT)}" if path.is_relative_to(ROOT) else str(path)
