from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from outside import Machine, machine_outside


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with machine_outside(tmp_path) as found:
        yield found
