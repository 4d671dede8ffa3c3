"""`lab edit`: a student's own copy of a lab's node scripts and settings, to be changed and run. `lab new`: a lab of one's
own, begun as a copy of one that runs."""

from __future__ import annotations

import datetime
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import LabBook
from measuretwice.cli import terminal
from measuretwice.cli.options import OUT, root_folder
from measuretwice.execute.job import check_writable
from measuretwice.lab import Lab, OwnCopy, copy_folder, load_lab, make_copy, put_aside, read_copy
from measuretwice.lab.load import find_labs, read_lab
from measuretwice.lab.new import add_pages, copy_lab
from measuretwice.runs.folder import give_back


@click.command()
@click.argument("lab_name", metavar="LAB")
@click.option(
    "--undo", is_flag=True, help="Put the copy aside, so that runs use the lab's own scripts again."
)
@click.option("--open", "open_it", is_flag=True, help="Open it in your editor ($EDITOR).")
@OUT
def edit(lab_name: str, undo: bool, open_it: bool, out: Path | None) -> int:
    """Make your own copy of LAB's node scripts and settings, to change and run.

    The copy is LAB/edit/ in the folder of runs, and your runs use what you change in it. Files
    that are already there are never overwritten.
    """
    root = root_folder()
    lab = load_lab(root, lab_name)
    runs = (out or terminal.default_out(root)).absolute()
    if undo:
        _undo(runs, lab)
        return 0
    editor = _editor() if open_it else []
    check_writable(runs)
    cases = LabBook(runs / lab.name, lab).known_cases()
    created, folder = make_copy(runs, lab, lab.visible_settings(cases)), copy_folder(runs, lab)
    if created:
        give_back(folder, runs)
    if editor and (failed := subprocess.run([*editor, str(folder)], check=False).returncode):
        return failed
    changed = read_copy(runs, lab).changes
    if created and not changed:
        about = f"your own copy of {lab.name}'s node scripts (nodes/) and settings (settings.toml). Edit it"
    else:
        about = (
            f"your own copy, {f'changed: {changed}' if changed else 'nothing in it is changed yet'}"
        )
    print(
        f"{terminal.relative(folder)}: {about}. Runs use it: "
        f"./lab run {lab.name} {'--case N' if lab.file.pitfalls else '--trial N'}\n"
        f"--no-edit leaves it out of a run; ./lab edit {lab.name} --undo puts it aside, and deletes nothing"
    )
    return 0


def _undo(runs: Path, lab: Lab) -> None:
    aside = put_aside(runs, lab, datetime.datetime.now())
    if aside is None:
        print(f"there is no copy of {lab.name}: runs use the lab's own scripts already")
        return
    print(
        f"runs of {lab.name} use the lab's own scripts again; your copy is kept in {terminal.relative(aside)}"
    )


def _editor() -> list[str]:
    """The person's editor as words; UserError where there is none, or nobody to use it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("--open: there is no terminal here for an editor: leave it out")
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not words:
        raise UserError(
            "--open: EDITOR names no editor: EDITOR=nano ./lab edit ..., or leave it out"
        )
    return words


def own_copy(runs: Path, lab: Lab, *, leave_out: bool) -> OwnCopy:
    """Return what a run is to use of the student's copy, and say so where that is anything."""
    if leave_out:
        return OwnCopy()
    own = read_copy(runs, lab)
    if own.changes:
        print(
            f"your own copy is used ({own.changes}), in {terminal.relative(copy_folder(runs, lab))}; "
            "--no-edit leaves it out",
            file=sys.stderr,
        )
    return own


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--like", metavar="LAB", help="The lab to copy.  [default: the first, the smallest]")
@click.option(
    "--bare", is_flag=True, help="Copy only what runs: network, scripts and the first trial."
)
def new(name: str, like: str | None, *, bare: bool) -> int:
    """Begin a lab of your own, as a copy of one that runs, in labs/NN-NAME/.

    The copy is a draft, so you can list, run, check and change it, but no page shows it yet. For a lab of another
    network or question, take a bare copy: it has no cases, questions or results to throw away. Called again for a draft, the
    command begins a page for each case that you added since.
    """
    root = root_folder()
    begun = find_labs(root).get(name)
    if begun and not like and not bare and (lab := read_lab(begun)).file.lab.draft:
        pages = add_pages(root, lab)
        print(
            f"docs/modules/{begun.name}/: pages begun: {len(pages)}; what was there stays as it was"
        )
        return 0
    lab = copy_lab(root, name, like, bare=bare)
    pages = add_pages(root, lab)
    folder = f"labs/{lab.folder.name}"
    print(
        f"{folder}: {lab.file.lab.title}\n"
        f"It runs already: ./lab run {name} --trial {min(lab.trials)}\n"
        "As a draft it appears on no page, and needs no recorded runs. What comes next:\n"
        f"  1. {folder}/lab.toml: title, network, parameters, trials, and what you expect of them\n"
        f"  2. {folder}/nodes/: what each node does; questions.md: the questions\n"
        f"  3. ./lab record {name}: its recorded runs, into sample-data/{lab.folder.name}/\n"
        f"  4. {folder}/facts.py: numbers from its recorded runs, by name\n"
        f"  5. docs/modules/{lab.folder.name}/: its pages, {len(pages)} begun, each with a line in mkdocs.yml\n"
        "  6. remove draft = true from lab.toml; then make test tells you what is missing"
    )
    return 0
