"""Finding labs and reading them, with one clear line for the author of what can't be read.

A lab is a folder `labs/NN-<name>/`. Nothing here knows any lab by name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from measuretwice.base.errors import UserError
from measuretwice.base.text import has_controls
from measuretwice.lab.lab import Lab, name_of, short_path
from measuretwice.lab.schema import FORMAT_VERSION, LabFile
from measuretwice.lab.schema.problems import first_problem
from measuretwice.lab.sealed import SEALED, unseal
from measuretwice.lab.trials import read_trials
from measuretwice.lab.validation import check_trials_uses, check_uses


def find_labs(root: Path) -> dict[str, Path]:
    """Return each lab's folder by its name, in order of number, from `root`/labs."""
    found = (path.parent for path in (root / "labs").glob("[0-9][0-9]-*/lab.toml"))
    # What a lab is called is printed as it is.
    folders = sorted(folder for folder in found if folder.name.isprintable())
    return {name_of(folder): folder for folder in folders}


def published_labs(root: Path) -> dict[str, Lab]:
    """Read the labs that pages show: all but drafts, by name."""
    labs = {name: read_lab(folder) for name, folder in find_labs(root).items()}
    return {name: lab for name, lab in labs.items() if not lab.file.lab.draft}


def load_lab(root: Path, name: str) -> Lab:
    """Read one lab by its name (`mathis`) or folder name (`01-mathis`)."""
    labs = find_labs(root)
    folder = labs.get(name) or labs.get(re.sub(r"^[0-9][0-9]-", "", name))
    if folder is None:
        raise UserError(f"there is no lab {name[:60]!r}; there are: {', '.join(labs) or 'none'}")
    return read_lab(folder)


def read_lab(folder: Path) -> Lab:
    """Read the lab in `folder`; UserError says what is wrong with its files.

    As long as these stay as they are, by time and size, it is read once: pages and findings ask for
    all labs again and again.
    """
    for path in folder.rglob("*"):
        # It would be followed on this machine, by what copies the lab's files, and lead anywhere.
        if path.is_symlink():
            raise UserError(f"{short_path(path)}: a link; a lab's files stand in its own folder")
    if (folder / "lab.toml").exists() and not (folder / "lab.toml").is_file():
        raise UserError(f"{short_path(folder / 'lab.toml')}: isn't a plain file")
    found = sorted((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return _read_lab(folder, tuple((path, at.st_mtime_ns, at.st_size) for path, at in found))


@lru_cache(maxsize=16)
def _read_lab(folder: Path, _: tuple[object, ...]) -> Lab:
    bare = Lab(folder, _read_file(folder / "lab.toml"), trials={})
    check_uses(bare)
    lab = replace(bare, trials=read_trials(bare))
    check_trials_uses(lab)
    return lab


def _read_file(path: Path) -> LabFile:
    try:
        text = path.read_text(encoding="utf-8") + unseal(path.with_name(SEALED))
    except OSError as error:
        raise UserError(f"{short_path(path)}: can't be read: {error.strerror}") from None
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{short_path(path)}: not valid TOML: {error}") from None
    for key, text in _texts(document):
        if has_controls(text):
            raise UserError(
                f"{short_path(path)}: {key or 'a key'}: control characters, which a terminal would obey, in {text!r}"
            )
    # First of all: in another format the rest may mean something else.
    if (version := document.get("format_version")) != FORMAT_VERSION:
        found = "no such key" if version is None else f"got {version!r}"
        raise UserError(
            f"{short_path(path)}: format_version: expected {FORMAT_VERSION}, which is what this "
            f"kit reads; {found}"
        )
    try:
        return LabFile.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{short_path(path)}: {first_problem(error)}") from None


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts of a document, each with the key that it stands at; a key is a text of its table's."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _texts(part, f"{key}.{number}")
    elif isinstance(value, dict):
        for name, part in value.items():
            yield key, name
            yield from _texts(part, f"{key}.{name}" if key else name)
