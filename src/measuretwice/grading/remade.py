"""What is made anew of a submission's runs for who marks: a report, and whose numbers an answer has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from measuretwice.base.files import now
from measuretwice.grading.contents import Figure
from measuretwice.report.render import render_html
from measuretwice.report.report import make_report
from measuretwice.runs.remeasure import RunData

NUMBER = re.compile(r"(?<![\w.,])([0-9][0-9,]*(?:\.[0-9]+)?)(?:\s*(%))?(?![\w])")
# Fewer digits fit some value of a run by chance.
MIN_DIGITS = 3
MAX_NUMBERS = 40
MAX_FITS = 30


def write_report(path: Path, runs: Sequence[RunData]) -> None:
    """Write a report on the runs, from their raw files: every string in it is escaped, and no cause veiled.

    Nothing is written where there is no run. The answers stand on the page to mark from.
    """
    if not runs:
        return
    report = make_report(
        list(runs), title="The runs, measured again", author=None, made=now(), for_marking=True
    )
    path.write_text(render_html(report), encoding="utf-8", errors="replace")


def find_figures(
    places: Mapping[str, str], runs: Sequence[RunData]
) -> dict[str, tuple[Figure, ...]]:
    """Return for each question the numbers in its answer that a run has measured, rounded as they stand there."""
    return {question: found for question, text in places.items() if (found := _figures(text, runs))}


def _figures(text: str, runs: Sequence[RunData]) -> tuple[Figure, ...]:
    found: list[Figure] = []
    numbers = list(dict.fromkeys((match[1], match[2] or "") for match in NUMBER.finditer(text)))
    for number, percent in numbers[:MAX_NUMBERS]:
        bare = number.replace(",", "")
        if len(bare.replace(".", "").lstrip("0")) < MIN_DIGITS:
            continue
        decimals = len(bare.partition(".")[2])
        fits = [
            Figure(f"{number}{percent and ' %'}", run.name, name, float(value))
            for run in runs
            for name, value in run.result.measured.items()
            if isinstance(value, int | float) and _fits(float(bare), decimals, name, float(value), bool(percent))
        ]  # fmt: skip
        found += fits[:MAX_FITS]
    return tuple(found)


def _fits(number: float, decimals: int, name: str, value: float, percent: bool) -> bool:
    """Is it this value, in the unit that its name says or the one that people write?"""
    if percent:
        scales: tuple[float, ...] = (100.0,) if name.endswith("_ratio") else ()
    elif name.endswith("_bps"):
        scales = (1.0, 1e-6)
    elif name.endswith("_bytes"):
        scales = (1.0, 1e-3)
    else:
        scales = (1.0,)
    return any(round(value * scale, decimals) == number for scale in scales)
