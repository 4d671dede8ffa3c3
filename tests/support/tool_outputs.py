"""What real tools printed (tests/data/parse/README.md says which and how)."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "parse"


def read(name: str) -> str:
    """The text of an output, by its path under tests/data/parse."""
    return (DATA / name).read_text(encoding="utf-8")
