"""Which of our modules a module's work follows from: itself, what it imports, what that imports ...

Read from the sources, so that the answer can't go stale as a list kept by hand would, and doesn't
depend on what happens to be imported already.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from measuretwice.base.paths import PACKAGE

# Who imports by name at run time may import any module of its own package.
AT_RUN_TIME = frozenset({"importlib", "pkgutil"})
# Python's own parser would take a tenth of a second for the package, at each ./lab run. That this
# finds the same is tested.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]*))",
    re.M,
)


def digest_of_code(*modules: str, root: Path = PACKAGE) -> bytes:
    """Return the SHA-256 of these modules and all that they import of the package in `root`."""
    digest = hashlib.sha256()
    for path in files_of_code(modules, root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


def files_of_code(modules: Iterable[str], root: Path = PACKAGE) -> list[Path]:
    """Return the files of these modules (such as "measuretwice.runs.derive") and of all of ours that
    they import, wherever in them the import stands."""
    found: set[Path] = set()
    todo = [path for module in modules for path in _files(module, root)]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += imports_of(path, root)
    return sorted(found)


def imports_of(path: Path, root: Path = PACKAGE) -> list[Path]:
    """Return the files of the package in `root` that a Python file imports by itself."""
    named = names_in(path)
    found = [file for name in sorted(named) for file in _files(name, root)]
    if named & AT_RUN_TIME:
        found += sorted(path.parent.rglob("*.py"))
    return found


def names_in(path: Path) -> set[str]:
    """Return what a Python file imports by itself: modules, and names that may be a module's."""
    found: set[str] = set()
    for match in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        package, names, modules = match.groups()
        words = {
            each.split()[0] for each in (names or modules).strip("()").split(",") if each.strip()
        }
        found |= {package, *(f"{package}.{word}" for word in words)} if package else words
    return found


def _files(name: str, root: Path) -> list[Path]:
    """The files that importing `name` runs: the packages that it is in, and its own; none where it
    isn't ours."""
    first, *parts = name.split(".")
    if first != PACKAGE.name:
        return []
    found = []
    for length in range(len(parts) + 1):
        place = root.joinpath(*parts[:length])
        found += [
            file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()
        ]
    return found
