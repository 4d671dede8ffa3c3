"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from measuretwice.base.errors import UserError


def write_json(path: Path, content: Any) -> None:
    """Write to a neighbour file first, then rename it. OSError where that can't be."""
    text = json.dumps(content, indent=2, sort_keys=False) + "\n"
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def write_text(path: Path, text: str) -> None:
    """Write what a person asked for; UserError where that can't be."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(
            f"{path}: can't be written ({error.strerror}); choose another place with --out"
        ) from None
