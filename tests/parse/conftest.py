"""The corpora: what real tools printed (tests/data/parse/README.md says which and how)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "parse"


@pytest.fixture(scope="session")
def read() -> Callable[[str], str]:
    """The text of a corpus, by its path under tests/data/parse."""
    return lambda name: (DATA / name).read_text(encoding="utf-8")
