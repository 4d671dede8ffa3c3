"""The browser's machine on a site: what pages load to run a trial themselves.

    assets/machine/*.mjs          the page's side, from docs/ as it stands
    assets/machine/loads.json     what is fetched, once: names, sizes, digests
    assets/machine/rehearsal-*    a lab's short trial, by which the machine becomes fast before its first one
    assets/machine/...            the saved machine, v86, Pyodide in python/, xterm.js, and the kit, as a zip file

Where a patch was changed and none was built since, the same site is built, and its pages offer no run of their own.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuretwice.backends.browser import (
    COST,
    PYTHON,
    Browser,
    BrowserMachine,
    find_machine,
    given_to_guest,
    guest_words,
    packs_of,
)
from measuretwice.backends.machines import run_builder
from measuretwice.base.files import pack_zip
from measuretwice.base.paths import BROWSER_LIBRARIES, PACKAGE
from measuretwice.execute.batch import likely_seconds, open_batch
from measuretwice.lab import Lab, Plan, published_labs
from measuretwice.lab.schema.parameters import Parameter
from measuretwice.lab.spoilers import (
    INSTRUCTORS_ONLY,
    QUESTIONS,
    SEALED,
    SEALED_QUESTIONS,
    seal,
    split_spoilers,
)
from measuretwice.site.build_cache import PageFolder
from measuretwice.view.documents import parameter_meaning

FOLDER = "assets/machine"
# Of the package, what a page's Python has no use for.
NOT_IN_PAGES = ("cli", "site", "release", "testbeds", "grading", "audit")
# Pure Python that the rest of the package needs, packed as it is installed here.
PACKED = ("jinja2", "markupsafe")
# Of an experiment's time: long enough to compile what most packets pass through, where many do; and the longest that
# a page may be busy with it, whose reader only looks.
REHEARSAL_S = 3
LONGEST_REHEARSAL_S = 20
# What Pyodide could load besides: nothing of it is used, but it asks for the file.
LOCK = "pyodide-lock.json"


@dataclass(frozen=True)
class Parts:
    """A machine that is ready, and the folder of the libraries that pages load beside it."""

    machine: BrowserMachine
    libraries: Path


def find_parts() -> Parts | None:
    """Return what a site needs to run trials in its pages; None where the checkout's own machine isn't what its
    scripts would build now, and nobody has built that.

    The libraries beside it are fetched where they don't come with the checkout either; the script says so.
    """
    machine = find_machine()
    if machine is None or not BROWSER_LIBRARIES.is_file():
        return None
    done = run_builder(BROWSER_LIBRARIES)
    return Parts(machine, Path(done.stdout.strip())) if done.returncode == 0 else None


def add_machine(root: Path, labs: list[Lab], parts: Parts, pages: PageFolder) -> None:
    """Put all that a page loads into the site, and loads.json, which says what that is."""
    folder, libraries = parts.machine.folder, parts.libraries
    facts = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    lock = json.loads((libraries / LOCK).read_text(encoding="utf-8"))
    machine = {
        "state.bin.zst": (folder / "state.bin.zst").read_bytes(),
        "v86.wasm.gz": gzip.compress((folder / "v86.wasm").read_bytes(), mtime=0),
        "libv86.mjs": (folder / "libv86.mjs").read_bytes(),
    }
    python = {
        f"python/{path.name}": path.read_bytes()
        for path in sorted(libraries.iterdir())
        if not path.name.startswith("xterm") and path.name != LOCK
    }
    terminals = {path.name: path.read_bytes() for path in sorted(libraries.glob("xterm*"))}
    kit = {"kit.zip": kit_archive(root)}
    packs = {f"{PYTHON}.tar.gz": (folder / f"{PYTHON}.tar.gz").read_bytes()}
    for files in (machine, python, terminals, kit, packs):
        for name, content in files.items():
            pages.write_bytes(content, f"{FOLDER}/{name}")
    pages.copy(folder / "v86-LICENSE.txt", f"{FOLDER}/v86-LICENSE.txt")
    loads = {
        "machine": {
            "key": parts.machine.folder.name,
            "clock_address": facts["clock_address"],
            "facts": facts,
            "files": _listed(machine),
        },
        "python": {"files": _listed(python), "lock": {"info": lock["info"], "packages": {}}},
        "kit": {"files": _listed(kit)},
        "packs": {
            name.split(".")[0]: file for name, file in zip(packs, _listed(packs), strict=True)
        },
        "parameters": {lab.name: settings_for_pages(lab, lab.visible_settings()) for lab in labs},
    }
    pages.write(f"{FOLDER}/loads.json", json.dumps(loads, indent=1) + "\n")
    for lab in labs:
        if (short := rehearsal(root, lab, parts.machine)) is not None:
            pages.write(f"{FOLDER}/rehearsal-{lab.name}.json", json.dumps(short) + "\n")


def rehearsal(root: Path, lab: Lab, machine: BrowserMachine) -> dict[str, Any] | None:
    """Return the files and settings for a few seconds of a trial with many packets, by which the machine becomes
    fast."""
    backend = Browser(machine)
    batch = open_batch(root, lab, root, backend)
    plans = [
        batch.job(number, seed=1, changes={"duration_s": REHEARSAL_S}).plan for number in lab.trials
    ]
    able = [plan for plan in plans if not backend.problems(lab, [plan])]
    if not able:
        return None

    def likely_s(plan: Plan) -> float:
        return likely_seconds(plan.params, COST)

    plan = max(
        (plan for plan in able if likely_s(plan) <= LONGEST_REHEARSAL_S),
        key=likely_s,
        default=min(able, key=likely_s),
    )
    return {
        "words": guest_words(lab, plan),
        "packs": packs_of(lab),
        "files": given_to_guest(lab, plan, root),
    }


def _listed(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """Return the files that are fetched and kept; a module isn't, the browser loads it as one."""
    return [
        {
            "name": name,
            "bytes": len(content),
            "digest": hashlib.sha256(content).hexdigest()[:12],
            "module": name.endswith(".mjs"),
        }
        for name, content in files.items()
    ]


def settings_for_pages(lab: Lab, settings: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the values that `--set` takes of these, for a page's fields."""
    return {
        name: {
            "help": parameter.help,
            "unit": parameter_meaning(lab, name).unit,
            "default": parameter.default,
            "min": parameter.min,
            "max": parameter.max,
            "choices": parameter.choices,
            "whole": parameter.integer,
        }
        for name, parameter in settings.items()
    }


def kit_archive(root: Path) -> bytes:
    """Return the kit as a page's Python has it: labs, scripts, this package, and the libraries that it needs."""
    files: dict[str, bytes | Path] = {}
    for lab in published_labs(root).values():
        files |= _lab_files(lab)
    files |= {
        path.relative_to(root).as_posix(): path
        for folder in ("scripts", "scripts/after")
        for path in (root / folder).glob("*.sh")
    }
    for path in PACKAGE.rglob("*"):
        below = path.relative_to(PACKAGE)
        if path.is_file() and below.parts[0] not in NOT_IN_PAGES and path.suffix != ".pyc":
            files[f"src/{PACKAGE.name}/{below.as_posix()}"] = path
    for name in PACKED:
        files |= _installed(name)
    return pack_zip(files)


def _lab_files(lab: Lab) -> dict[str, bytes | Path]:
    """A lab as students may have it: what tells the causes of its cases is sealed, as in a students' release."""
    folder = f"labs/{lab.folder.name}"
    facts, other = split_spoilers(lab.path.read_text(encoding="utf-8"))
    files: dict[str, bytes | Path] = {
        f"{folder}/{path.relative_to(lab.folder).as_posix()}": path
        for path in lab.folder.rglob("*")
        if path.is_file()
        and not path.name.startswith(".")
        and "__pycache__" not in path.parts
        and path.relative_to(lab.folder).parts[0] not in INSTRUCTORS_ONLY
    }
    files[f"{folder}/{lab.path.name}"] = facts.encode()
    if other.strip():
        files[f"{folder}/{SEALED}"] = seal(other).encode()
    questions = files.pop(f"{folder}/{QUESTIONS}", None)
    if isinstance(questions, Path):
        sealed = seal(questions.read_text(encoding="utf-8"))
        files[f"{folder}/{SEALED_QUESTIONS}"] = sealed.encode()
    return files


def _installed(name: str) -> dict[str, Path]:
    """An installed package's Python, and its licence."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} isn't installed"
    assert spec.submodule_search_locations, f"{name} is no package"
    top = Path(spec.submodule_search_locations[0])
    files = {
        f"libraries/{name}/{path.relative_to(top).as_posix()}": path for path in top.rglob("*.py")
    }
    for file in importlib.metadata.files(name) or ():
        if "licen" in file.name.lower():
            files[f"libraries/{name}/{file.name}"] = Path(str(file.locate()))
    return files
