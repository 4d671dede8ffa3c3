"""A reader's runs beside each other, as a page's table has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from measuretwice.book.predicted import measured_by
from measuretwice.cli import terminal
from measuretwice.cli.case_books import changes_of
from measuretwice.cli.cases import answer_of
from measuretwice.lab import Lab
from measuretwice.runs.goodput import goodput_means, goodput_of
from measuretwice.runs.result import Result


def table_of(lab: Lab, results: Sequence[Result], case: int | None) -> dict[str, Any]:
    """Return what stands in each row's heading, and each run's values in words, in that order.

    `asked` is what a case's question asks for, and each run's `answer` is what it says to that.
    """
    return {
        "headings": [*terminal.HEADINGS],
        "asked": measured_by(lab.case(case).predict).name if case is not None else "",
        "runs": [_shown(lab, result) for result in results],
    }


def _shown(lab: Lab, result: Result) -> dict[str, Any]:
    return {
        "folder": result.place.name,
        "trial": result.trial,
        "seed": result.seed,
        "shown": result.stage == "fixed",
        "changes": {name: str(value) for name, value in changes_of(lab, result).items()},
        "settings": {name: str(value) for name, value in result.params.items()},
        "answer": _answer(lab, result),
        "values": terminal.row_of(lab, result),
        "verdict": None if result.case else terminal.verdict(result),
        "expectations": [] if result.case else terminal.expectation_rows(result),
        "goodput": goodput_means(lab, result.params),
    }


def _answer(lab: Lab, result: Result) -> str | None:
    """None where no measured value answers a case's question, and where it is the goodput that the table has anyhow."""
    asked = lab.case(result.case).predict if result.case else None
    if asked is None or not asked.compared or asked.value == goodput_of(lab, result).name:
        return None
    return answer_of(asked, result)
