"""The report that a student hands in: a section for each run, tables of all together; as HTML, Markdown and JSON.

Every string that comes from a run's folder is data: it is cleaned of what a terminal or browser would obey, and escaped.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from measuretwice.book.lab_book import Notes, read_first_try, read_notes
from measuretwice.checks import Finding, check_set, telling_values
from measuretwice.lab import Lab, read_questions
from measuretwice.lab.spoilers import cases_asked_about
from measuretwice.report.markdown import clean, fence, inline_html, markdown_text
from measuretwice.report.tables import (
    NONE,
    ReportTable,
    all_values_table,
    digests_table,
    key_values_table,
    loss_interval_of,
    own_changes,
    provenance_table,
    ratio_error_of,
    settings_table,
    stage_of,
    summary_table,
    validation_table,
)
from measuretwice.runs.remeasure import Excerpt, RunData
from measuretwice.runs.result import for_students, what_chance_does

# Each lab's notes by case.
Books = Mapping[str, Mapping[int, Notes]]
OFF = "something is off"
# Of more answers than that a case's cell has the least and the most.
MOST_ANSWERS = 4
# Of more trials than that a cell says what all runs came to.
MOST_TRIALS = 3
# A run's folder, which says its trial.
OF_TRIAL = re.compile(r"case-\d+-trial-(\d+)-")
# A number, and its unit, where it has one.
ANSWER = re.compile(r"(-?\d[\d.]*(?:e[+-]?\d+)?)(?: (.+))?")
TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class BookOfLab:
    """A lab's book in a report: its first try and its cases, a table each, and all of it word for word."""

    lab: str
    tables: tuple[ReportTable, ...]
    text: str


@dataclass(frozen=True)
class Section:
    """One run's part of the report."""

    id: str
    heading: str
    title: str
    not_compared: str | None
    settings: ReportTable
    validation: ReportTable
    findings: Sequence[Finding]
    values: ReportTable
    all_values: ReportTable
    excerpts: list[Excerpt]
    provenance: ReportTable
    provenance_missing: bool
    digests: ReportTable


@dataclass(frozen=True)
class Question:
    """A lab's question, its number in the lab's list, and what the student has answered so far."""

    text: str
    answer: str = ""
    number: int = 1


@dataclass(frozen=True)
class Report:
    """All that a report shows.

    `waiting` says which questions come later, `together` is about the runs as a set, `unusable` are lines on folders
    that it could not use.
    """

    title: str
    author: str | None
    made: datetime
    summaries: list[ReportTable]
    chance: str | None
    sections: list[Section]
    questions: list[tuple[str, list[Question]]]
    waiting: list[str]
    together: list[Finding]
    unusable: list[str]
    books: list[BookOfLab]


def make_report(
    runs: list[RunData],
    *,
    title: str | None,
    author: str | None,
    made: datetime,
    unusable: Sequence[str] = (),
    answers: dict[str, str] | None = None,
    books: Mapping[str, str] | None = None,
    for_marking: bool = False,
) -> Report:
    """Return the report on at least one run. `answers` are what `read_answers` returned, `books` each
    lab's book, as it stands. One that is for marking names every cause."""
    texts = books or {}
    notes = {name: read_notes(text) for name, text in texts.items()}

    def tells(run: RunData) -> bool:
        return for_marking or is_known(run, notes)

    runs = [run if tells(run) else _without_cause(run) for run in sorted(runs, key=_order)]
    labs = {run.lab.name: run.lab for run in runs}
    given = answers or {}
    questions = []
    waiting: list[str] = []
    for lab in labs.values():
        asked = [
            Question(text, given.get(text, ""), number)
            for number, text in enumerate(read_questions(lab), start=1)
        ]
        noted = None if for_marking else notes.get(lab.name)
        later = [question for question in asked if _is_to_wait(question, noted)]
        questions.append((lab.file.lab.title, [now for now in asked if now not in later]))
        waiting += _waiting_line(later, notes.get(lab.name, {}))
    return Report(
        title=title or "; ".join(lab.file.lab.title for lab in labs.values()),
        author=author,
        made=made,
        summaries=_summaries(runs, {} if for_marking else notes),
        chance=what_chance_does([run.result for run in runs]),
        sections=[
            _section(
                number, run, tells=tells(run), left_out=() if for_marking else _not_due(run, notes)
            )
            for number, run in enumerate(runs, start=1)
        ],
        questions=[(name, asked) for name, asked in questions if asked],
        waiting=waiting,
        together=[finding for lab in labs.values() for finding in _together(lab, runs, tells)],
        unusable=list(unusable),
        books=[
            book
            for lab in labs.values()
            if (book := book_of_lab(lab, texts.get(lab.name, ""))) is not None
        ],
    )


def _summaries(runs: Sequence[RunData], books: Books) -> list[ReportTable]:
    """A table for each lab, whose runs stand together: each has quantities of its own. Without a lab book nobody plays its cases."""
    tables: list[ReportTable] = []
    first = 1
    for _, of_lab in itertools.groupby(runs, key=lambda run: run.lab.name):
        group = list(of_lab)
        lab, book = group[0].lab, books.get(group[0].lab.name)
        cases = range(1, 1 + len(lab.file.pitfalls)) if book is not None else ()
        unsolved = [case for case in cases if not _is_open((book or {}).get(case))]
        table = summary_table(group, first, unsolved)
        first += len(group)
        tables.append(table)
    if len(tables) > 1:
        names = [name for name, _ in itertools.groupby(run.lab.file.lab.title for run in runs)]
        tables = [
            replace(table, caption=f"{name}: {table.caption[0].lower()}{table.caption[1:]}")
            for name, table in zip(names, tables, strict=True)
        ]
    return tables


def _is_to_wait(question: Question, book: Mapping[int, Notes] | None) -> bool:
    """Return whether a question would tell what is off in a case that its student is still to solve. Without a lab
    book nobody knows."""
    return (
        book is not None
        and not question.answer
        and any(not _is_open(book.get(case)) for case in cases_asked_about(question.text))
    )


def _is_open(notes: Notes | None) -> bool:
    return notes is not None and (notes.fixed or notes.shown)


def _waiting_line(later: Sequence[Question], book: Mapping[int, Notes]) -> list[str]:
    """The line on questions that wait; none where none does."""
    cases = sorted(
        {
            case
            for question in later
            for case in cases_asked_about(question.text)
            if not _is_open(book.get(case))
        }
    )
    if not cases:
        return []
    *others, last = map(str, cases)
    named = f"cases {', '.join(others)} and {last} are" if others else f"case {last} is"
    count = "1 more question appears" if len(later) == 1 else f"{len(later)} more questions appear"
    return [f"{count} here when {named} fixed, and the report is made again."]


def _section(
    position: int, run: RunData, *, tells: bool, left_out: Collection[str] = ()
) -> Section:
    result = run.result
    # Of two runs of one case and seed the changes tell them apart.
    heading = ", ".join(filter(None, [f"Trial {run.plan.trial}", stage_of(run), *own_changes(run)]))
    return Section(
        id=f"run-{position}",
        heading=f"{heading}, seed {run.plan.seed}",
        title=run.lab.listed_title(result.title),
        not_compared=result.not_comparable_because if result.model else None,
        settings=settings_table(run, tells=tells),
        validation=validation_table(result.expectations),
        findings=result.findings,
        values=key_values_table(run),
        all_values=all_values_table(run, left_out),
        excerpts=run.excerpts,
        provenance=provenance_table(run),
        provenance_missing=run.provenance is None,
        digests=digests_table(run),
    )


def _together(lab: Lab, runs: list[RunData], tells: Callable[[RunData], bool]) -> list[Finding]:
    """Return the findings that no single run shows, such as a trial run again only because it looked odd."""
    of_lab = [run for run in runs if run.lab.name == lab.name]
    findings = []
    for raised in check_set(lab, [run.result.member for run in of_lab]):
        is_told = all(tells(of_lab[index]) for index in raised.members)
        findings += [raised.finding] if is_told else without_cause([raised.finding])
    return findings


def _not_due(run: RunData, books: Books) -> Collection[str]:
    """The measured values whose names tell what the run's student is still to find."""
    notes = books.get(run.lab.name, {})
    known_cases = {case for case in notes if notes[case].knows_cause}
    return telling_values(run.lab, run.result.measured, known_cases)


def _without_cause(run: RunData) -> RunData:
    """The run with findings that don't name their cause."""
    findings = tuple(without_cause(run.result.findings))
    return replace(run, result=replace(run.result, findings=findings))


def anchors(runs: Sequence[RunData]) -> dict[str, str]:
    """Return each run's anchor in the report made of them, by the run's name."""
    return {run.name: f"run-{n}" for n, run in enumerate(sorted(runs, key=_order), start=1)}


def _order(run: RunData) -> tuple[str, int, int, str, str, int, str, str]:
    """By lab, case and trial; of one case's runs the first try comes first."""
    plan = run.plan
    return (
        plan.lab,
        plan.case or 0,
        plan.trial,
        plan.pitfall or "",
        plan.stage or "",
        plan.seed,
        str((run.provenance or {}).get("started", "")),
        plan.digest,
    )


def run_to_json(run: RunData) -> dict[str, Any]:
    """Return what the report says of one run, with every measured value; what tells a case's cause is packed."""
    interval = loss_interval_of(run)
    return {
        "run": run.name,
        **for_students(run.lab, run.result.to_json()),
        "loss_interval": interval and {"low": interval[0], "high": interval[1], "confidence": 0.95},
        "ratio_error": ratio_error_of(run),
        "provenance": run.provenance,
        "raw_sha256": run.digests,
    }


def book_of_lab(lab: Lab, text: str) -> BookOfLab | None:
    """Return a lab's book as a report has it; None where nothing is noted in it."""
    tables = (first_try_table(lab, read_first_try(text)), book_table(lab, read_notes(text)))
    noted = tuple(table for table in tables if table is not None)
    return BookOfLab(lab.name, noted, text.strip("\n")) if noted else None


def first_try_table(lab: Lab, notes: Notes) -> ReportTable | None:
    """Return what was predicted of the first try, and what came out, then and after each case; None without."""
    runs = [text.partition(": ") for text in notes.of("Run")]
    rows = [["predicted", text] for text in notes.of("Prediction")]
    rows += [[after, came] if colon else ["", after] for after, colon, came in runs]
    if not rows:
        return None
    return ReportTable(
        f"First try: {lab.file.lab.title}", ["when", "what came out"], rows, frozenset()
    )


def book_table(lab: Lab, notes: Mapping[int, Notes]) -> ReportTable | None:
    """Return a lab's cases as its book has them, a row each; None where it has none."""
    cases = [
        (number, pitfall, notes[number])
        for number, pitfall in enumerate(lab.file.pitfalls, start=1)
        if number in notes
    ]
    if not cases:
        return None
    columns = {
        "case": [str(number) for number, _, _ in cases],
        "what is seen": [pitfall.symptom for _, pitfall, _ in cases],
        "predicted": ["; ".join(of.of("Prediction")) or NONE for _, _, of in cases],
        "measured": [_measured_by_trial(of.of("Run")) for _, _, of in cases],
        "hints": [str(of.hints or "none") for _, _, of in cases],
        "known": ["; ".join(of.known_lines) or NONE for _, _, of in cases],
        "diagnosis": [of.diagnosis or NONE for _, _, of in cases],
        "changed": [_changed(of) for _, _, of in cases],
        "outcome": ["solved" if of.fixed else NONE for _, _, of in cases],
    }
    if not any(of.known_lines for _, _, of in cases):
        del columns["known"]
    return ReportTable(
        f"Lab book: {lab.file.lab.title}",
        list(columns),
        [list(row) for row in zip(*columns.values(), strict=True)],
        frozenset({0, 4}),
    )


def _changed(notes: Notes) -> str:
    """Return what a student did about a case: settings, an answer to its question; or that the fixed run was asked for."""
    answers = [f"answered {answer}" for answer in notes.judgements[-1:]]
    return "; ".join([*notes.of("Changed"), *answers]) or ("shown" if notes.shown else NONE)


def _measured_by_trial(runs: Sequence[str]) -> str:
    """Return what a case's runs came to, as its book has them; of a few trials each by itself."""
    by_trial: dict[str, list[str]] = {}
    for text in runs:
        trial = OF_TRIAL.match(text)
        by_trial.setdefault(trial[1] if trial else "", []).append(text.split(": ", 1)[-1])
    if not 1 < len(by_trial) <= MOST_TRIALS:
        return _measured([text.split(": ", 1)[-1] for text in runs])
    return "; ".join(
        f"trial {int(trial)}: {_measured(by_trial[trial])}" if trial else _measured(by_trial[trial])
        for trial in sorted(by_trial)
    )


def _measured(answers: Sequence[str]) -> str:
    """Return what a case's runs came to: each answer once, with how many runs had it; of many the least and the most."""
    runs = Counter(answers)
    if len(runs) <= MOST_ANSWERS:
        cells = (f"{text} ({count} runs)" if count > 1 else text for text, count in runs.items())
        return "; ".join(cells) or NONE
    # An answer may be several numbers, such as each flow's.
    parts = [part for text in runs for part in text.split(", ")]
    numbers = [match for part in parts if (match := ANSWER.fullmatch(part))]
    units = {match[2] for match in numbers}
    if len(units) != 1:
        return "; ".join(runs)
    least, most = (pick(numbers, key=lambda match: float(match[1]))[1] for pick in (min, max))
    return f"{least} to {most} {units.pop() or ''}".rstrip() + f" ({len(answers)} runs)"


def is_known(run: RunData, books: Books) -> bool:
    """Return whether the mistake in a run is no secret: of a case, once its student named it or took the last
    hint."""
    if not run.plan.case:
        return True
    notes = books.get(run.plan.lab, {}).get(run.plan.case)
    return notes is not None and (notes.diagnosis is not None or notes.hints == 3)


def without_cause(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings that say what is off, and not why."""
    return [
        replace(
            finding,
            id=OFF,
            measured=finding.symptom or finding.measured,
            expected=NONE if finding.symptom else finding.expected,
            why="",
        )
        for finding in findings
    ]


def environment(*folders: Path, **options: Any) -> Environment:
    """Return jinja's environment for a report's templates: values are escaped, and one that is missing is an error.

    Templates in `folders` can use the report's.
    """
    return Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )


def render_html(report: Report, figures: Sequence[tuple[str, str]] | None = ()) -> str:
    """Return the report as one HTML file. `figures` are captions and SVG texts of our own; None where nothing could draw them."""
    room = environment(finalize=clean)
    room.filters["inline"] = inline_html
    drawings = [(caption, _drawing(svg)) for caption, svg in figures or ()]
    return room.get_template("report.html.j2").render(
        report=report, figures=drawings, undrawn=figures is None
    )


def render_markdown(report: Report, figures: Sequence[tuple[str, str]] | None = ()) -> str:
    """Return the same as Markdown. Of `figures` only the captions: drawings are in the HTML."""
    room = environment(finalize=markdown_text)
    room.filters |= {"fence": fence, "verbatim": Markup}
    captions = [caption for caption, _ in figures or ()]
    text = room.get_template("report.md.j2").render(
        report=report, figures=captions, undrawn=figures is None
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _drawing(svg: str) -> Markup:
    """The <svg> element alone: what stands before it in a file has no place in HTML."""
    start = svg.find("<svg")
    return Markup(svg[start:] if start >= 0 else "")
