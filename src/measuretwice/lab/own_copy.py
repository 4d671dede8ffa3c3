"""A student's own copy of a lab's node scripts and settings, which runs of theirs use.

runs/<lab>/edit/nodes/           the lab's node scripts, to be edited
runs/<lab>/edit/settings.toml    its settings, each in a comment until somebody changes it
"""

from __future__ import annotations

import ast
import datetime
import difflib
import hashlib
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab.lab import Lab
from measuretwice.lab.schema.parameters import Parameter, Value

FOLDER = "edit"
NODES, SETTINGS = "nodes", "settings.toml"
# A node's script finds what all labs share three folders up.
SHARED = "scripts"


@dataclass(frozen=True)
class OwnScripts:
    """The node scripts that somebody has changed: name and content of each; the others are the lab's."""

    files: tuple[tuple[str, bytes], ...]

    @property
    def digests(self) -> dict[str, str]:
        """Each one's SHA-256, the first 16 digits, by name."""
        return {name: hashlib.sha256(text).hexdigest()[:16] for name, text in self.files}

    def lay_out(self, lab: Lab, shared: Path, folder: Path) -> None:
        """Write a checkout's part below `folder` that runs them: all node scripts, and the `shared` ones."""
        nodes = folder / "labs" / lab.folder.name / NODES
        nodes.mkdir(parents=True)
        for name, text in {**_scripts(lab.folder / NODES), **dict(self.files)}.items():
            _write_script(nodes / name, text)
        (folder / SHARED).mkdir()
        for path in shared.glob("*.sh"):
            _write_script(folder / SHARED / path.name, path.read_bytes())

    def diff(self, lab: Lab) -> str:
        """Return what was changed in the lab's scripts, as diff -u has it."""
        lines: list[str] = []
        for name, text in self.files:
            path = lab.folder / NODES / name
            before = path.read_text(encoding="utf-8").splitlines(True) if path.is_file() else []
            own = text.decode("utf-8", "replace").splitlines(True)
            after = [line if line.endswith("\n") else f"{line}\n" for line in own]
            lines += difflib.unified_diff(before, after, f"a/{NODES}/{name}", f"b/{NODES}/{name}")
        return "".join(lines)


@dataclass(frozen=True)
class OwnCopy:
    """What stands in a copy that a run is to use: scripts that differ, None where none does, and settings."""

    scripts: OwnScripts | None = None
    settings: Mapping[str, Value] = field(default_factory=dict)

    @property
    def changes(self) -> str:
        """The files and settings that differ from the lab's, in a line; empty where none does."""
        names = [name for name, _ in self.scripts.files] if self.scripts else []
        names += [f"{name}={value}" for name, value in self.settings.items()]
        return ", ".join(names)


def _scripts(nodes: Path) -> dict[str, bytes]:
    """The node scripts in a folder, by name; OSError where one can't be read."""
    return {
        path.name: path.read_bytes()
        for path in sorted(nodes.glob("*"))
        if path.suffix in (".sh", ".py") and path.is_file()
    }


def _write_script(path: Path, text: bytes) -> None:
    """Write a script that is a command, too, as in a live lab's terminals."""
    path.write_bytes(text)
    path.chmod(0o755)


def copy_folder(out: Path, lab: Lab) -> Path:
    """Return where a lab's own copy stands, in the folder of runs `out`."""
    return out / lab.name / FOLDER


def make_copy(out: Path, lab: Lab, settings: Mapping[str, Parameter]) -> bool:
    """Make the copy, which names these settings; False where there is one, which stays as it is. OSError where it can't be."""
    folder = copy_folder(out, lab)
    if folder.exists():
        return False
    part = folder.with_name(f".{FOLDER}.part")
    (part / NODES).mkdir(parents=True, exist_ok=True)
    for name, text in _scripts(lab.folder / NODES).items():
        _write_script(part / NODES / name, text)
    (part / SETTINGS).write_text(_settings_text(lab, settings), encoding="utf-8")
    part.rename(folder)
    return True


def put_aside(out: Path, lab: Lab, now: datetime.datetime) -> Path | None:
    """Rename the copy, so that runs are the lab's own again; None where there is none."""
    folder = copy_folder(out, lab)
    if not folder.exists():
        return None
    aside = folder.with_name(f"{FOLDER}-until-{now:%Y%m%d-%H%M%S}")
    number = 1
    while aside.exists():
        number += 1
        aside = folder.with_name(f"{FOLDER}-until-{now:%Y%m%d-%H%M%S}-{number}")
    folder.rename(aside)
    return aside


def read_copy(out: Path, lab: Lab) -> OwnCopy:
    """Return what a lab's own copy changes; nothing where there is none.

    UserError names the file and line of what can't be run.
    """
    folder = copy_folder(out, lab)
    if not folder.is_dir():
        return OwnCopy()
    labs = _scripts(lab.folder / NODES)
    own = {name: text for name, text in _scripts(folder / NODES).items() if labs.get(name) != text}
    for name, text in own.items():
        _refuse_broken(folder / NODES / name, text)
    scripts = OwnScripts(tuple(own.items())) if own else None
    return OwnCopy(scripts, _read_settings(folder / SETTINGS, lab))


def _refuse_broken(path: Path, text: bytes) -> None:
    """UserError with the line where a script's syntax is wrong."""
    if path.suffix == ".py":
        try:
            ast.parse(text, str(path))
        except (RecursionError, MemoryError):
            raise _broken(path, None, "nested too deep") from None
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            raise _broken(path, line, getattr(error, "msg", str(error))) from None
        return
    # Of some errors bash -n speaks and still exits with 0. A here-document without an end is a warning.
    done = subprocess.run(
        ["bash", "-n", path.resolve()],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if "warning:" not in line]
    if errors:
        match = re.match(r".*?: line (\d+): (.*)", errors[0])
        raise _broken(path, int(match[1]) if match else None, match[2] if match else errors[0])


def _broken(path: Path, line: int | None, what: str) -> UserError:
    where = f"{path}: line {line}" if line else str(path)
    return UserError(f"{where}: {what}; correct it, or leave your copy out with --no-edit")


def _read_settings(path: Path, lab: Lab) -> dict[str, Value]:
    if not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no TOML, no UTF-8, a number of thousands of digits
        raise _broken(path, None, str(error)) from None
    except RecursionError:
        raise _broken(path, None, "nested too deep") from None
    settings: dict[str, Value] = {}
    for name, value in document.items():
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise UserError(
                f"{path}: {name}: expected a number or a word in quotes, as --set takes it"
            )
        settings[name] = lab.read_value(name, value, f"{path}: {name}")
    return settings


def _settings_text(lab: Lab, settings: Mapping[str, Parameter]) -> str:
    """Each of these settings in a comment, with its meaning and its default."""
    lines = [
        f"# Your settings of the lab {lab.name}. Take the # before a setting away and change its value:",
        "# it then holds for each of your runs, over what a trial or a case sets. --set goes over it.",
        "# Whatever else --set takes may be added.",
    ]
    for name, parameter in settings.items():
        lines += [
            "",
            *textwrap.wrap(parameter.help, 92, initial_indent="# ", subsequent_indent="# "),
        ]
        value = parameter.default
        shown = f'"{value}"' if isinstance(value, str) else "" if value is None else str(value)
        lines.append(f"#{name} = {shown}".rstrip())
    return "\n".join(lines) + "\n"
