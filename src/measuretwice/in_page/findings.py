"""What the checker found, as a page shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measuretwice.cli.diagnose import told


def said_of(document: dict[str, Any], hint: int | None) -> dict[str, Any]:
    """A document of the checker's as a page may show it at that step of help."""
    told_of = [told(finding, hint) for finding in document["findings"]]
    return {
        "name": Path(document["run"]).name,
        "findings": [{"heading": heading, "lines": lines} for heading, lines in told_of],
    }
