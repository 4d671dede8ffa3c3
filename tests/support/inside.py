"""Programs of this machine in a guest that sees its files (uml.run_inside, as_machine)."""

from pathlib import Path

from measuretwice.backends.script import INSIDE_ROOT

ROOT = Path(__file__).parents[2]


def seen_inside(path: Path) -> str:
    """Return a path of this machine as programs inside see it: a tmpfs hides /tmp and /run, where
    the checkout may be, which is at INSIDE_ROOT."""
    return f"{INSIDE_ROOT}/{path.relative_to(ROOT)}" if path.is_relative_to(ROOT) else str(path)
