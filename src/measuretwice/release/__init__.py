"""A students' release is made of what is named here; whatever isn't named stays out of it.

lab, requirements, licences     as they are
src/                            without the parts that only instructors use
scripts/                        what a run needs
machines/                       the virtual kernel, ready to be unpacked, and its licences
labs/                           lab.toml as students may read it, the rest of it and the questions sealed; no rubric, no facts
docs/pages/                     the site's pages, made from docs/ and the recorded runs
sample-data/                    the broken runs under their cases' numbers, and sets that name no cause
README.md, release.json         made for it
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from measuretwice import __version__
from measuretwice.base.errors import UserError
from measuretwice.base.paths import RELEASE_FILE, is_release
from measuretwice.lab import Lab, published_labs
from measuretwice.lab.schema import SCHEMA_FILE
from measuretwice.lab.spoilers import (
    INSTRUCTORS_ONLY,
    QUESTIONS,
    SEALED,
    SEALED_QUESTIONS,
    seal,
    split_spoilers,
)
from measuretwice.runs.recorded import SET_FILE
from measuretwice.site.build import prepare
from measuretwice.site.navigation import release_settings
from measuretwice.site.reference import Command

AS_THEY_ARE = (
    "lab", "LICENSE", "LICENSE-docs", "CITATION.cff", "requirements.txt", "requirements-cluster.txt",
    "requirements-docs.txt", "requirements-dev.txt", "docs/includes/glossary.md", "docs/includes/theme/main.html", SCHEMA_FILE,
)  # fmt: skip
FOLDERS = ("scripts/after", "scripts/kernel", "scripts/host", "scripts/remote")
# Besides: the virtual kernel, ready to be unpacked, and what unpacks it.
SCRIPTS = (
    "scripts/*.sh", "scripts/docs/serve.py", "scripts/machines/shipped.py", "machines/kernel.*", "machines/README.md", "machines/licences/*",
)  # fmt: skip
# What only those use who make the site, mark hand-ins or make a release.
LEFT_OUT_OF_PACKAGE = frozenset(
    {"site", "grading", "release", "facts", "cli/grade.py", "cli/record.py", "cli/release.py"}
)  # fmt: skip
# Of a lab's folder: what says how answers are marked, and what is made in another way.
LEFT_OUT_OF_LAB = INSTRUCTORS_ONLY | {"lab.toml", SEALED, QUESTIONS}
PAGES = "docs/pages"
# A file that a page shows as it is, or a part of one.
SNIPPET = re.compile(r'--8<-- "([^":]+)')
README = Path(__file__).parent / "templates" / "README.md"


def make_release(
    root: Path,
    out: Path,
    *,
    commands: Sequence[Command],
    add_site: Callable[[Path], None] | None = None,
) -> None:
    """Write the release of `root` to `out`, whole or not at all; `out` must not be there yet.

    `commands` are those that students have, for the site's reference; `add_site` builds the site of
    a release that is otherwise finished.
    """
    if is_release(root):
        raise UserError("this is a students' release itself: make one from the whole checkout")
    out = out.absolute()
    if out.exists() or out.is_symlink():
        raise UserError(f"{out}: is there already; name a folder that isn't")
    if out.is_relative_to(root / "build"):
        raise UserError(f"{out}: what is in build/ may go at any time; name another folder")
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        part.mkdir(parents=True)
        _add_files(root, part)
        for lab in published_labs(root).values():
            _add_lab(lab, part)
            _add_recorded(root, lab, part)
        _add_pages(root, part, commands)
        _add_own_files(root, part)
        if add_site:
            add_site(part)
        part.rename(out)
    except OSError as error:
        raise UserError(f"{error.filename or out}: {error.strerror}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def archive(folder: Path, kind: str) -> Path:
    """Pack a release beside itself, `kind` being zip or tar.gz; return the archive."""
    form = {"zip": "zip", "tar.gz": "gztar"}[kind]
    path = shutil.make_archive(str(folder), form, root_dir=folder.parent, base_dir=folder.name)
    return Path(path)


def _add_files(root: Path, part: Path) -> None:
    chosen = (path for pattern in SCRIPTS for path in root.glob(pattern))
    names = [*AS_THEY_ARE, *(str(path.relative_to(root)) for path in chosen)]
    for name in FOLDERS:
        names += _files_below(root, root / name)
    package = root / "src/measuretwice"
    for name in _files_below(package, package):
        if not any(name == left or name.startswith(f"{left}/") for left in LEFT_OUT_OF_PACKAGE):
            names.append(f"src/measuretwice/{name}")
    _copy(root, part, names)


def _files_below(top: Path, folder: Path) -> list[str]:
    """The files of a folder that are the kit's own, by their paths below `top`."""
    return [
        path.relative_to(top).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _is_made(path.relative_to(folder))
    ]


def _is_made(path: Path) -> bool:
    """Return whether a tool made it: a hidden file, or a compiled one."""
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _copy(root: Path, part: Path, names: Iterable[str]) -> None:
    for name in names:
        target = part / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, target)


def _add_lab(lab: Lab, part: Path) -> None:
    target = part / "labs" / lab.folder.name
    names = [
        name
        for name in _files_below(lab.folder, lab.folder)
        if name.split("/")[0] not in LEFT_OUT_OF_LAB
    ]
    _copy(lab.folder, target, names)
    open_text, other = split_spoilers(lab.path.read_text(encoding="utf-8"))
    target.mkdir(parents=True, exist_ok=True)
    (target / lab.path.name).write_text(open_text, encoding="utf-8")
    (target / SEALED).write_text(seal(other), encoding="ascii")
    questions = lab.folder / QUESTIONS
    if questions.is_file():
        sealed = seal(questions.read_text(encoding="utf-8"))
        (target / SEALED_QUESTIONS).write_text(sealed, encoding="ascii")


def _add_recorded(root: Path, lab: Lab, part: Path) -> None:
    """The sets that students may see: of each case its first try, and what names no cause."""
    samples = Path("sample-data") / lab.folder.name
    for name in sets_for_students(lab):
        if (root / samples / name / SET_FILE).is_file():
            _copy(root, part, _files_below(root, root / samples / name))


def sets_for_students(lab: Lab) -> list[str]:
    """Return the names of the recorded sets that a release has.

    Of a lab with cases those of [[recordings]] that say `for_students`: any other may differ from a
    broken run in the cause alone, or be called by it.
    """
    cases = [lab.set_name(f"{pitfall.id}-broken") for pitfall in lab.file.pitfalls]
    return cases + [
        recording.id for recording in lab.file.recordings if recording.for_students or not cases
    ]


def _add_pages(root: Path, part: Path, commands: Sequence[Command]) -> None:
    """The site's pages with all their numbers: the release has not all runs that these come from."""
    pages = root / "build" / "docs-release"
    prepare(root, pages, release=True, commands=commands)
    shutil.copytree(pages, part / PAGES)
    shown = {
        name
        for page in pages.rglob("*.md")
        for name in SNIPPET.findall(page.read_text(encoding="utf-8"))
    }
    _copy(root, part, sorted(name for name in shown if not (part / name).exists()))
    settings = (root / "mkdocs.yml").read_text(encoding="utf-8")
    (part / "mkdocs.yml").write_text(release_settings(settings), encoding="utf-8")


def _add_own_files(root: Path, part: Path) -> None:
    shutil.copyfile(README, part / "README.md")
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    facts = {
        "for": "students",
        "measuretwice": __version__,
        "git_commit": done.stdout.strip() or None,
    }
    (part / RELEASE_FILE).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
