"""What a student's .venv has is enough for what students use: neither an import at a module's head nor one in a function
asks for a package that only the site, the cluster or the tests bring."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/measuretwice"
# What runs with the site's packages: `./lab docs` and `./lab release` install them first.
SITE = ("site/", "release/", "facts/", "cli/docs.py", "cli/release.py")
CLUSTER = {"dask", "distributed"}
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if not str(path.relative_to(PACKAGE)).startswith(SITE)
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_for_students() -> set[str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return {normal(line.split("==")[0]) for line in lines if "==" in line}


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, but for those that only a type checker reads."""
    pending = list(ast.parse(path.read_text()).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        pending.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_students_use_needs_only_their_packages(path: Path) -> None:
    distributions = packages_distributions()
    known = installed_for_students()
    for module in imported(path):
        first = module.partition(".")[0]
        assert not module.startswith(("measuretwice.site", "measuretwice.release")), module
        if first in sys.stdlib_module_names or first in CLUSTER | {"measuretwice"}:
            continue
        assert {normal(name) for name in distributions.get(first, [])} & known, module
