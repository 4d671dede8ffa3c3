"""Pages on one student: one to mark from, for the lecturer, and one to send back.

Whatever a student wrote is text in them: escaped, cut, and without what a browser or terminal would obey.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from measuretwice.grading.contents import OurRun
from measuretwice.grading.graded import Answer, AnyRun, Graded, HandedFile, Mark
from measuretwice.grading.marking import FILE
from measuretwice.grading.remarks import AGAIN, brief, lines
from measuretwice.grading.roster import squash
from measuretwice.grading.rubric import Criterion, Rubric
from measuretwice.grading.unpack import shown
from measuretwice.lab import Lab, read_questions
from measuretwice.report.markdown import clean
from measuretwice.report.render import environment

TEMPLATES = Path(__file__).parent / "templates"
MAX_FIGURES = 12
MAX_SEEN = 9


@dataclass(frozen=True)
class Row:
    """One criterion: what earns how much, what the machine saw, what the lecturer gave."""

    mark: Mark
    title: str
    levels: list[tuple[str, str, str]]
    seen: list[tuple[str, str]]
    key: str = ""
    about: str = ""


@dataclass(frozen=True)
class Asked:
    """One question with its answer, and the criteria that share its points."""

    number: int
    text: Markup
    points: float
    answer: Markup | None
    words: int
    cited: list[tuple[str, str]]
    figures: list[tuple[str, str]]
    key: Markup
    rows: list[Row]

    @property
    def given(self) -> float:
        return sum(row.mark.points_now for row in self.rows)

    @property
    def open(self) -> int:
        return sum(row.mark.is_open for row in self.rows)

    @property
    def is_settled(self) -> bool:
        """Is there nothing to read and nothing to give, and nobody gave anything?"""
        touched = any(row.mark.given is not None or row.mark.remark for row in self.rows)
        return not (self.open or self.given or self.answer or touched)


@dataclass(frozen=True)
class Sheet:
    """Everything on one student; `before` and `after` are the neighbours' pages with their names."""

    stem: str
    entry: Graded
    lab: str
    points: float
    made: datetime
    files: list[tuple[str, HandedFile]]
    look_at: list[str]
    notes: list[str]
    questions: list[Asked]
    runs: list[RunRow]
    report: str | None
    marks_file: str = FILE
    before: tuple[str, str] | None = None
    after: tuple[str, str] | None = None


@dataclass(frozen=True)
class RunRow:
    name: str
    link: str | None
    about: str
    changed: str
    findings: str
    command: str
    again: str = ""


def stems(graded: Sequence[Graded]) -> list[str]:
    """A file's name for each student, the same each time: of the id and the name, in letters and digits."""
    taken: set[str] = set()
    found = []
    for entry in graded:
        parts = dict.fromkeys(squash(text)[:40] for text in (entry.student or "", entry.name))
        stem = bare = "-".join(part for part in parts if part) or "student"
        number = 1
        while stem in taken:
            number += 1
            stem = f"{bare}-{number}"
        taken.add(stem)
        found.append(stem)
    return found


def make_sheets(
    lab: Lab,
    rubric: Rubric,
    key: Mapping[int, str],
    graded: Sequence[Graded],
    reports: Mapping[int, str],
    made: datetime,
    links: Mapping[str, str],
) -> list[Sheet]:
    """Return a sheet for each who handed in, in order. `reports` are links by a submission's place,
    `links` those to files that were handed in, by their path."""
    questions = read_questions(lab)
    named = [(stem, e) for stem, e in zip(stems(graded), graded, strict=True) if e.handed_in]
    sheets = []
    for number, (stem, entry) in enumerate(named):
        report = reports.get(entry.place) if entry.place is not None else None
        asked = [
            _asked(lab, rubric, answer, text, key.get(answer.question, ""), entry)
            for answer, text in zip(entry.answers, questions, strict=False)
        ]
        neighbours = [
            (f"{named[at][0]}.html", named[at][1].name) if 0 <= at < len(named) else None
            for at in (number - 1, number + 1)
        ]
        odd = lines([remark for remark in entry.remarks if remark.is_odd])
        sheets.append(
            Sheet(
                stem,
                entry,
                lab.file.lab.title,
                rubric.points,
                made,
                [(links.get(file.path, ""), file) for file in entry.files],
                [*([entry.problem] if entry.problem else []), *odd],
                [*entry.says, *entry.notes, *lines([r for r in entry.remarks if not r.is_odd])],
                [one for one in asked if one.rows],
                [_run(run, report, entry) for run in _all(entry)],
                report,
                before=neighbours[0],
                after=neighbours[1],
            )
        )
    return sheets


def _asked(lab: Lab, rubric: Rubric, answer: Answer, text: str, key: str, entry: Graded) -> Asked:
    rows = [
        _row(lab, criterion, mark, entry)
        for criterion, mark in zip(rubric.criteria, entry.marks, strict=False)
        if mark.question == answer.question
    ]
    cited = [(line, place) for line, place in answer.cited.items()]
    return Asked(
        answer.question,
        _markdown(text, inline=True),
        sum(row.mark.points for row in rows),
        None if answer.text is None else _marked(answer.text, answer.cited),
        len((answer.text or "").split()),
        cited,
        _figures(lab, answer, rows, entry),
        _markdown(key),
        rows,
    )


def _row(lab: Lab, criterion: Criterion, mark: Mark, entry: Graded) -> Row:
    levels = [(f"{level.points:g}", level.title, level.says) for level in criterion.levels]
    if mark.pitfall is None:
        return Row(mark, mark.title, levels, [])
    pitfall = lab.pitfall(mark.pitfall)
    title = f"{mark.title} ({pitfall.id})"
    notes = next((one for one in entry.book if one.case == mark.case), None)
    if criterion.prediction:
        seen = [("Predicted", mark.predicted)]
        seen += [("Lab book", notes.prediction)] if notes and notes.prediction else []
        return Row(mark, title, levels, seen)
    seen = [
        ("Shown", mark.shown), ("Diagnosed", mark.diagnosed), ("Fixed", mark.mended), ("Run again", mark.again),
    ]  # fmt: skip
    seen += [("Lab book", notes.diagnosis)] if notes and notes.diagnosis else []
    for run in _all(entry):
        found = [one for one in run.findings if one.id == pitfall.finding]
        seen += [
            ("Measured", f"{one.measured}, expected {one.expected} ({brief(run.name)})")
            for one in found[:1]
        ]
    # The last hint names the cause.
    return Row(mark, title, levels, seen[:MAX_SEEN], pitfall.hints[-1], criterion.about)


def _figures(lab: Lab, answer: Answer, rows: list[Row], entry: Graded) -> list[tuple[str, str]]:
    """Numbers of the answer that a run of this question's case has; of any run, where they have four digits."""
    of_question = {row.mark.pitfall for row in rows} - {None}
    staged = {run.name for run in entry.runs if run.pitfall in of_question}
    found: dict[str, str] = {}
    # The case's own runs first.
    for figure in sorted(answer.figures, key=lambda figure: figure.run not in staged):
        digits = len(re.sub(r"\D", "", figure.text).lstrip("0"))
        if figure.run in staged or digits > 3:
            where = f"{figure.value} = {figure.measured:.6g} in {brief(shown(figure.run))}"
            found.setdefault(figure.text, where)
    return list(found.items())[:MAX_FIGURES]


def _all(entry: Graded) -> list[AnyRun]:
    return [*entry.runs, *entry.brought]


def _run(run: AnyRun, report: str | None, entry: Graded) -> RunRow:
    findings = "; ".join(
        f"{f.id} (measured {f.measured}, expected {f.expected})" for f in run.findings
    )
    stage = f"{run.pitfall}, {run.stage or 'changed by the student'}" if run.pitfall else "as it is"
    if isinstance(run, OurRun):
        link = f"{report}#{run.anchor}" if report and run.anchor else None
        about = f"Trial {run.trial}, {stage}, seed {shown(run.seed)}"
        again = "; ".join(r.says for r in entry.remarks if r.run == run.run and r.kind in AGAIN)
        changed = shown(", ".join(run.changed))
        return RunRow(run.name, link, about, changed, findings, run.command, again)
    about = f"Trial {run.trial}, {stage}, files of their own"
    return RunRow(run.name, None, about, "", run.problem or findings, "")


def _marked(text: str, cited: Mapping[str, str]) -> Markup:
    """An answer as it was written, with the lines marked that stand in a raw file."""
    parts = [Markup("")]
    rest = str(clean(text))
    pattern = "|".join(re.escape(str(clean(line))) for line in sorted(cited, key=len, reverse=True))
    for piece in re.split(f"({pattern})", rest) if pattern else [rest]:
        whole = escape(piece)
        parts.append(Markup("<mark>{}</mark>").format(piece) if piece in cited else whole)
    return Markup("").join(parts)


def _markdown(text: str, *, inline: bool = False) -> Markup:
    """Text of ours as HTML: a question or a key. HTML in it is shown, not obeyed."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(reader.renderInline(text) if inline else reader.render(text))


def render_sheet(sheet: Sheet) -> str:
    """Return the page to mark from, as HTML."""
    return (
        environment(TEMPLATES, finalize=clean)
        .get_template("marking.html.j2")
        .render(it=sheet, signed=_signed)
    )


def render_feedback(sheet: Sheet) -> str:
    """Return what a student gets back: points and remarks, and no word on anybody else or on a cause."""
    room = environment(TEMPLATES, finalize=clean)
    return room.get_template("feedback.html.j2").render(it=sheet, signed=_signed)


def _signed(points: float) -> str:
    return f"{points:+g}".replace("-", "\u2212")


def feedback_name(sheet: Sheet) -> str:
    """Where a student's feedback stands: under the name by which their system takes a file back, else ours."""
    return next(
        (file.feedback for file in sheet.entry.files if file.counts and file.feedback),
        f"{sheet.stem}.html",
    )
