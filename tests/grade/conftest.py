"""What tests of grading share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout without recorded runs: hand-ins are made of them."""
    root = tmp_path_factory.mktemp("bare")
    (root / "labs").symlink_to(ROOT / "labs")
    return root
