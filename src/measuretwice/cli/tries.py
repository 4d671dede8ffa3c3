"""The first try as other commands speak of it: ./lab check when a case is solved, ./lab progress."""

from __future__ import annotations

from pathlib import Path

from measuretwice.book.book import LabBook
from measuretwice.lab import Lab, moving_cases, plan_try
from measuretwice.runs.tries import read_tries, so_far, tries_folder


def opened_cases(book: LabBook) -> set[int]:
    """Return the cases that are solved, or whose mended run was asked for: no secret is left in them."""
    return {number for number, notes in book.all_notes().items() if notes.mended or notes.shown}


def try_again(lab: Lab, number: int) -> str:
    """Say what a solved case does to the first try; nothing where it does nothing."""
    if number not in moving_cases(lab):
        return ""
    return f"In a terminal, ./lab start {lab.name} repeats your first try with what you found."


def told_so_far(lab: Lab, out: Path, book: LabBook) -> str:
    """The first try and what became of it in one line; what to type where there is none yet, or more to see."""
    if not lab.file.first_try:
        return ""
    tries = read_tries(tries_folder(out, lab))
    if not tries:
        return f"No first try yet: ./lab start {lab.name}"
    plan = plan_try(lab, opened_cases(book))
    known = any(plan.cases == each.cases for each in tries)
    more = "" if known else f"\n./lab start {lab.name} shows what your last cases did to it."
    return so_far(tries) + more
