"""`lab run --case`: a case is run by its number, the prediction asked for first, the book kept.

What is printed is what was measured, and what the model says. What is off, and why, the student
finds; `lab check` helps a step at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import read_object
from measuretwice.book.book import LabBook
from measuretwice.book.notes import NONE, Entry, numbers_in
from measuretwice.book.predicted import (
    OF_ALL,
    Quantity,
    how_far_off,
    measured_by,
    quantity_of,
)
from measuretwice.cli import terminal
from measuretwice.lab import Lab, OwnScripts, Pitfall, Predict, StageName, Value, trial_params
from measuretwice.measure.expectations import against_model
from measuretwice.runs.folder import PROVENANCE
from measuretwice.runs.result import Result

# The seed of the runs that pages show.
PAGES_SEED = 1
# Answers that the model has a word on.
MODELLED = ("goodput_bps", "ratio")


@dataclass(frozen=True)
class CaseRun:
    """One call of ./lab run with --case: the case, the book, and what the student changed."""

    lab: Lab
    number: int
    stage: StageName | None
    changes: Mapping[str, Value]
    book: LabBook
    own: OwnScripts | None = None
    varied: Mapping[str, Value] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    seed: int = PAGES_SEED

    @property
    def pitfall(self) -> Pitfall:
        return self.lab.case(self.number)

    @property
    def tries_again(self) -> bool:
        """Is it a change of the student's own, not the first try?"""
        return bool(self.changes) or self.own is not None

    @property
    def dealt(self) -> str:
        """What a student's own run has, where the recorded run, which the page is about, has other values."""
        if not self.varied:
            return ""
        pages = self.lab.trials[self.pitfall.trial].set
        own = ", ".join(f"{name} {value}" for name, value in self.varied.items())
        recorded = ", ".join(
            f"{name} {pages.get(name, self.lab.defaults()[name]):.4g}" for name in self.varied
        )
        return f"Your own run has {own}; the recorded run on the page has {recorded}."

    def ask(self, predicted: str | None = None) -> None:
        """Note the prediction in the book; ask for it, where a person can answer, unless it was `predicted`."""
        heading = f"Case {self.number}: {self.pitfall.symptom}"
        if self.stage:
            self.book.add(self.number, "Shown", "the fixed run, asked for with --show-me")
            return
        if self.tries_again:
            self._add_once("Changed", in_words(self.changes, self.own))
        if self.dealt:
            heading += f"\n{self.dealt}"
        if promised := self._promised():
            heading += f"\n{promised}"
        said = (
            _ask_prediction(
                f"{heading}\n{self.pitfall.predict.ask}", quantity_of(self.pitfall.predict).label
            )
            if predicted is None
            else predicted
        )
        self._add_once("Prediction", said or NONE)
        self.said[:] = [said] if said else []

    def _promised(self) -> str:
        """What the model says of the student's own settings, where the answer is held against it: pages say it of theirs."""
        asked, model = self.pitfall.predict, self.lab.file.model
        if (
            model is None
            or not asked.compared
            or asked.value not in MODELLED
            or self.pitfall.trials
        ):
            return ""
        params = trial_params(
            self.lab, self.pitfall.trial, case=self.number, seed=self.seed, changes=self.changes
        )
        held = against_model(model, params, {})
        if held.model is None or held.model.bandwidth_bps is None:
            return ""
        settings = ", ".join(
            f"{name} {params[name]:.4g}" for name in (model.mss, model.rtt, model.loss)
        )
        return f"With {settings} the model with C = {model.constant:g} says {held.model.bandwidth_bps / 1e6:.4g} Mbit/s."

    def _add_once(self, kind: str, text: str) -> None:
        """Note it, unless a run that was begun for it, and broken off, has noted it already.

        That nothing was predicted is worth one line a case.
        """
        entries = self.book.notes(self.number).entries
        since = next(
            (at for at, entry in enumerate(reversed(entries)) if entry.kind == "Run"), None
        )
        pending = entries if text == NONE or since is None else entries[len(entries) - since :]
        if Entry(kind, text) not in pending:
            self.book.add(self.number, kind, text)

    def note(self, results: Sequence[Result], *, talk: bool) -> None:
        """Write each run that the book doesn't have yet into it; say how far the prediction was off."""
        notes = self.book.notes(self.number)
        written = {text.split(":")[0] for text in notes.of("Run")}
        for result in results:
            if result.place.name not in written:
                self.book.add(self.number, "Run", f"{result.place.name}: {self._answer(result)}")
        if talk and len(results) == 1 and self.said and self.pitfall.predict.compared:
            [told] = self.said
            asked = self._quantity
            off = how_far_off(told, self._scaled(results[0]), asked.unit)
            name = asked.name[0].upper() + asked.name[1:]
            measured = self._answer(results[0], in_percent="%" in told)
            print(f"{name}. You predicted: {told.rstrip('.')}. Measured: {measured}{off}.")

    @property
    def _quantity(self) -> Quantity:
        return measured_by(self.pitfall.predict)

    def _scaled(self, result: Result) -> float | None:
        return _scaled(self.pitfall.predict, result)

    def _answer(self, result: Result, *, in_percent: bool = False) -> str:
        return answer_of(self.pitfall.predict, result, in_percent=in_percent)


def answer_of(asked: Predict, result: Result, *, in_percent: bool = False) -> str:
    """Return what a run says to a case's question, with its unit."""
    value, unit = _scaled(asked, result), measured_by(asked).unit
    if value is not None and in_percent and unit == OF_ALL:
        return f"{100 * value:.4g} %"
    if value is None:
        return "not measured"
    return f"{value:{'d' if isinstance(value, int) else '.4g'}} {unit}".rstrip()


def _scaled(asked: Predict, result: Result) -> float | None:
    value, scale = result.value(asked.value), measured_by(asked).scale
    return value if value is None or scale == 1 else value * scale


def open_case(
    lab: Lab,
    number: int,
    own: OwnScripts | None,
    *,
    show_me: bool,
    changes: Mapping[str, Value],
    out: Path,
    seed: int | None,
) -> tuple[CaseRun, int]:
    """Return the case, and the seed to run it with: the given one, or the lab book's."""
    lab.case(number)
    if show_me and changes:
        raise UserError("--show-me runs the fixed settings as they are: leave --set out")
    book = LabBook(out / lab.name, lab)
    begins = not book.exists
    books_seed = book.open(seed)
    if begins:
        print(f"Your lab book: {terminal.relative(book.path)} (seed {books_seed})", file=sys.stderr)
    stage: StageName | None = "fixed" if show_me else None
    seed = books_seed if seed is None else seed
    varied = lab.varied_by(lab.case(number), seed)
    page = lab.varied_by(lab.case(number), PAGES_SEED)
    own_values = {name: value for name, value in varied.items() if value != page.get(name)}
    return CaseRun(lab, number, stage, changes, book, own, own_values, seed=seed), seed


def print_case(case: CaseRun, results: Sequence[Result]) -> None:
    """Print what was measured beside what the model says, without a verdict; then where to look."""
    print(f"Case {case.number}: {case.pitfall.symptom}")
    terminal.print_table(case.lab, list(results), verdicts=False)
    place = terminal.relative(results[0].place if len(results) == 1 else results[0].place.parent)
    folder = place if len(results) == 1 else f"{place}/case-{case.number:02d}-*"
    if taken := _taken_from(results):
        print(f"\n{nothing_new(taken)}")
    print(
        f"\nWhat the tools printed is in {folder}/raw. Look for what "
        f"doesn't fit.\n./lab check {folder} says what is off; --hint 1, 2 or 3 helps a step further."
    )


def nothing_new(run: str) -> str:
    """What is said of a run whose raw files are another one's."""
    return (
        "Nothing was measured again: you changed how files are judged, and no packet differs "
        f"from those of {run}."
    )


def _taken_from(results: Sequence[Result]) -> str:
    """The run whose raw files these are; of a set of runs the first one's. Nothing where one was measured."""
    names = [read_object(result.place / PROVENANCE).get("raw_of") for result in results]
    return str(names[0]) if names and all(names) else ""


def _ask_prediction(question: str, label: str) -> str:
    """Ask for the number by itself, once more where there are several or none, then for the reason."""
    number = ask_person(
        f"{question}\nYour prediction, {label}: one number with its unit (Enter skips): "
    )
    if not number:
        return ""
    if len(numbers_in(number)) != 1:
        number = ask_person("Only the number that you predict, with its unit: ") or number
    why = ask_person("And why? (Enter skips): ")
    return f"{number.rstrip('.,; ')}, {why}" if why else number


def in_words(changes: Mapping[str, Value], own: OwnScripts | None = None) -> str:
    """Settings as --set takes them, and a student's own scripts by their digests."""
    scripts = own.digests if own else {}
    return ", ".join(
        [
            *(f"{name}={value}" for name, value in changes.items()),
            *(f"own {name} ({digest})" for name, digest in scripts.items()),
        ]
    )


def ask_person(question: str) -> str:
    """Return what a person answers in one line; nothing where nobody is at the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return ""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
