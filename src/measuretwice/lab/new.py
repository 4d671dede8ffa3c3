"""A new lab: a copy of one that there is, to be changed step by step while it keeps running."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.lab.lab import Lab
from measuretwice.lab.load import find_labs, load_lab, read_lab

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# Two digits stand before a lab's name.
LAST_NUMBER = 99


def copy_lab(root: Path, name: str, like: str | None = None) -> Lab:
    """Copy the lab `like`, or else the first, to labs/NN-`name`/ as a draft; return the copy.

    It is made in a hidden folder, so that one that was broken off is no lab. UserError where the
    name can't be had.
    """
    labs = find_labs(root)
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} can't be a lab's name: expected small letters and digits, a letter first, "
            "such as pacing or pacing-2"
        )
    if name in labs:
        raise UserError(f"there is a lab {name} already: {labs[name].relative_to(root)}")
    model = load_lab(root, like or next(iter(labs), "to copy"))
    number = 1 + max(int(folder.name[:2]) for folder in labs.values())
    if number > LAST_NUMBER:
        raise UserError(f"labs/ has a lab {LAST_NUMBER}: no number is left for another")
    folder = root / "labs" / f"{number:02d}-{name}"
    work = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        shutil.copytree(model.folder, work, ignore=shutil.ignore_patterns(".*", "__pycache__"))
        facts = work / "lab.toml"
        text = _as_draft(facts.read_text(encoding="utf-8"), name, model.name)
        facts.write_text(text, encoding="utf-8")
        if not read_lab(work).file.lab.draft:
            raise model.problem(
                "lab", "this lab's form can't be copied: [lab] on a line of its own"
            )
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return read_lab(folder)


def _as_draft(text: str, name: str, model: str) -> str:
    """lab.toml's text, with its first comment and its title those of a draft."""
    directives, facts = text.split("[lab]\n", 1)
    kept = [line for line in directives.splitlines() if line.startswith("#:") or line[:1] != "#"]
    comment = f"# The {name} lab: a copy of {model}, to be changed. Facts only."
    kept.insert(sum(line.startswith("#:") for line in kept), comment)
    facts = re.sub(r"^draft = .*\n", "", facts, count=1, flags=re.MULTILINE)
    title = f'title = "{name.capitalize()}: a copy of the {model} lab"\ndraft = true'
    facts = re.sub(r"^title = .*$", title, facts, count=1, flags=re.MULTILINE)
    return "\n".join(kept) + "\n[lab]\n" + facts
