"""A student who never was plays a case with the kit's own commands, and hands in a report: recorded for the page on reports.

    make site-assets
    PYTHONPATH=src .venv/bin/python tests/support/finished_report.py

What she types and writes stands in docs/includes/finished-report/played.toml. Her runs are recorded sets, which
`./lab record` makes.
"""

from __future__ import annotations

import contextlib
import glob
import re
import shlex
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from command_line import lab_on_terminal

from measuretwice.lab import load_lab, read_questions

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs/includes/finished-report"
# Those that say where runs go.
MAKES_RUNS = "run"


def what_she_does() -> dict[str, Any]:
    return tomllib.loads((RECORDED / "played.toml").read_text(encoding="utf-8"))


def play(folder: Path) -> Path:
    """Do all of it in an empty folder; return that of the runs, with the lab book and the report."""
    played = what_she_does()
    with contextlib.chdir(folder):
        for step in played["steps"]:
            lab, *words = shlex.split(step["command"])
            assert lab == "./lab"
            out = ["--out", "runs"] if words[0] == MAKES_RUNS else []
            paths = [path for word in words for path in (sorted(glob.glob(word)) or [word])]
            answers = [(asked, f"{typed}\n") for asked, typed in step.get("answers", [])]
            code, printed = lab_on_terminal(*paths, *out, answers=answers)
            # A check of a first try has findings.
            assert code == 0 or (words[0] == "check" and code == 1), (step["command"], printed)
        runs = folder / "runs" / str(played["lab"])
        write_answers(runs / "report.md", played)
        code, printed = lab_on_terminal(*words, answers=[])
        assert code == 0, printed
    return runs


def write_answers(report: Path, played: dict[str, Any]) -> None:
    """Write her answers where the report's Markdown has a place for each."""
    text = report.read_text(encoding="utf-8")
    asked = read_questions(load_lab(ROOT, played["lab"]))
    for number, answer in played["answers"].items():
        head, found, tail = text.partition(f"**Question {number}.** {asked[int(number) - 1]}\n")
        assert found, number
        text = (
            head + found + tail.replace("Your answer:\n", f"Your answer:\n\n{answer.strip()}\n", 1)
        )
    report.write_text(text, encoding="utf-8")


def lines_from_files(answer: str) -> list[str]:
    return re.findall(r"^ {4}(.+)$", answer, re.MULTILINE)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="measuretwice-report-") as name:
        book = (play(Path(name)) / "lab-book.md").read_text(encoding="utf-8")
    (RECORDED / "lab-book.txt").write_text(book, encoding="utf-8")
