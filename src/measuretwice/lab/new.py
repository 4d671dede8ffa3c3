"""A new lab: a copy of one that there is, to be changed step by step while it keeps running, and whole pages to fill in."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from string import Template

from measuretwice.base.errors import UserError
from measuretwice.lab.lab import Lab
from measuretwice.lab.load import find_labs, load_lab, read_lab
from measuretwice.lab.schema.parameters import TrialTable
from measuretwice.lab.spoilers import QUESTIONS

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# Two digits stand before a lab's name.
LAST_NUMBER = 99
TEMPLATES = Path(__file__).with_name("templates")
FACTS = "facts.py"
# What a bare copy lacks: files about what the model measured, and tables of lab.toml, with those below them.
ABOUT_RESULTS = ("rubric.toml", "rules.toml", "published*", "audit.*", "make_*.py")
TAUGHT = ("pitfalls", "recordings", "figures", "first_try", "expect", "model")
TABLE = re.compile(r"\[\[?([a-z_.]+)\]\]?", re.ASCII)


def copy_lab(root: Path, name: str, like: str | None = None, *, bare: bool = False) -> Lab:
    """Copy the lab `like`, or else the first, to labs/NN-`name`/ as a draft; return the copy.

    A `bare` copy is only what runs: the network, the parameters, the nodes' scripts and the first trial. It is made in a hidden folder, so that one that was broken off is no lab. UserError where the
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
        lacks = ABOUT_RESULTS if bare else ()
        left_out = shutil.ignore_patterns(".*", "__pycache__", FACTS, "facts", "studies", *lacks)
        shutil.copytree(model.folder, work, ignore=left_out)
        for path in work.rglob("*"):
            if path.suffix in (".sh", ".py"):
                _name_anew(path, model.folder.name, folder.name)
        (work / FACTS).write_text(_filled(f"{FACTS}.txt", folder=folder.name), encoding="utf-8")
        facts = work / "lab.toml"
        text = _as_draft(facts.read_text(encoding="utf-8"), name, model.name)
        facts.write_text(_bare(text) if bare else text, encoding="utf-8")
        if bare:
            (work / QUESTIONS).write_text(_filled(QUESTIONS), encoding="utf-8")
            if isinstance(model.file.trials, TrialTable):
                _keep_first_trial(work / model.file.trials.file)
        if not read_lab(work).file.lab.draft:
            raise model.problem(
                "lab", "this lab's form can't be copied: [lab] on a line of its own"
            )
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return read_lab(folder)


def add_pages(root: Path, lab: Lab) -> list[Path]:
    """Write a page for each of a lab's cases, and its front, to docs/modules/, where there is such a folder; return them.

    Each is whole: all headings in their order, with what belongs below them. A file that is there stays as it is,
    so a draft whose cases became more can be given the pages that it lacks.
    """
    folder = root / "docs" / "modules" / lab.folder.name
    if not folder.parent.is_dir():
        return []
    folder.mkdir(exist_ok=True)
    pages = {
        f"case-{number:02d}.md": _filled("case.md", case=pitfall.id)
        for number, pitfall in enumerate(lab.file.pitfalls, 1)
    } | {"index.md": _filled("index.md", name=lab.name, trial=str(min(lab.trials)))}
    added = [folder / name for name in sorted(pages) if not (folder / name).exists()]
    for path in added:
        path.write_text(pages[path.name], encoding="utf-8")
    return added


def _filled(template: str, **words: str) -> str:
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _name_anew(script: Path, old: str, new: str) -> None:
    """Name the new lab in a script where the old one stood: "Lab 05" in a comment, labs/05-queues in a path."""
    text = script.read_text(encoding="utf-8")
    text = text.replace(f"labs/{old}/", f"labs/{new}/")
    script.write_text(re.sub(rf"\bLab {old[:2]}\b", f"Lab {new[:2]}", text), encoding="utf-8")


def _as_draft(text: str, name: str, model: str) -> str:
    """lab.toml's text, with its first comment and its title those of a draft."""
    directives, facts = text.split("[lab]\n", 1)
    header = [line for line in directives.splitlines() if line.startswith("#:") or line[:1] != "#"]
    comment = f"# The {name} lab: a copy of {model}, to be changed. Facts only."
    header.insert(sum(line.startswith("#:") for line in header), comment)
    facts = re.sub(r"^draft = .*\n", "", facts, count=1, flags=re.MULTILINE)
    title = f'title = "{name.capitalize()}: a copy of the {model} lab"\ndraft = true'
    facts = re.sub(r"^title = .*$", title, facts, count=1, flags=re.MULTILINE)
    return "\n".join(header) + "\n[lab]\n" + facts


def _bare(text: str) -> str:
    """lab.toml's text without the tables of `TAUGHT`, and with the first of the trials that it lists.

    Comments above a table go with it.
    """
    bare: list[str] = []
    above: list[str] = []
    keeps, trials = True, 0
    for line in text.splitlines():
        if table := TABLE.fullmatch(line.rstrip()):
            name = table[1].split(".")[0]
            trials += name == "trials"
            keeps = name not in TAUGHT and (name != "trials" or trials == 1)
        elif not line.strip() or line.startswith("#"):
            above.append(line)
            continue
        if keeps:
            bare += [*above, line]
        above = []
    return "\n".join(bare) + "\n"


def _keep_first_trial(table: Path) -> None:
    """Cut a table of trials after its first row."""
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    table.write_text("".join(lines[:2]), encoding="utf-8")
