#!/usr/bin/env python3
"""Are modules and functions of a size? No module over 500 lines, no function over 60, and of the package no more modules
than a newcomer finds their way in.

    sizes.py [FOLDER ...]     default: the package. Exit 1 with a line for each that is larger.

How many parameters a function may have is ruff's to say (PLR0913 in pyproject.toml).
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

MODULE_LINES = 500
FUNCTION_LINES = 60
# Whoever adds one beyond these merges two that are read together.
PACKAGE_MODULES = 250
PACKAGE = Path(__file__).parents[2] / "src" / "measuretwice"


def too_large(path: Path) -> list[str]:
    """Return a line for the module and for each function in it that is over its limit."""
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    found = []
    if lines > MODULE_LINES:
        found.append(f"{path}:1: {lines} lines; a module has at most {MODULE_LINES}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                said = f"{node.name} has {length} lines; a function has at most {FUNCTION_LINES}"
                found.append(f"{path}:{node.lineno}: {said}")
    return found


def main(folders: list[str]) -> int:
    paths = [
        path for folder in folders or [str(PACKAGE)] for path in sorted(Path(folder).rglob("*.py"))
    ]
    found = [line for path in paths for line in too_large(path)]
    if not folders and len(paths) > PACKAGE_MODULES:
        found.append(f"{len(paths)} modules; the package has at most {PACKAGE_MODULES}")
    print("\n".join(found) or f"{len(paths)} modules, each of a size")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
