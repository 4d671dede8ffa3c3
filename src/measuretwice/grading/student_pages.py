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

from measuretwice.grading.gradebook import FILE
from measuretwice.grading.integrity import AGAIN, short_name
from measuretwice.grading.results import Answer, Graded, HandedFile
from measuretwice.grading.roster import squash
from measuretwice.grading.rubric import Criterion, Rubric
from measuretwice.grading.scoring import AnyRun, Mark
from measuretwice.grading.submission import SubmittedRun
from measuretwice.lab import Lab, read_questions
from measuretwice.report.markdown import clean
from measuretwice.report.report import environment
from measuretwice.runs.unpack import printable

TEMPLATES = Path(__file__).parent / "templates"
MAX_FIGURES = 12
MAX_SEEN = 9


@dataclass(frozen=True)
class CriterionRow:
    """One criterion: what earns how much, what the machine saw, what the lecturer gave."""

    mark: Mark
    title: str
    levels: list[tuple[str, str, str]]
    seen: list[tuple[str, str]]
    key: str = ""
    about: str = ""


@dataclass(frozen=True)
class QuestionSection:
    """One question with its answer, and the criteria that share its points."""

    number: int
    text: Markup
    answer: Markup | None
    words: int
    cited: list[tuple[str, str]]
    figures: list[tuple[str, str]]
    key: Markup
    rows: list[CriterionRow]

    @property
    def points(self) -> float:
        return sum(row.mark.points for row in self.rows)

    @property
    def given(self) -> float:
        return sum(row.mark.points_now for row in self.rows)

    @property
    def open(self) -> int:
        return sum(row.mark.is_open for row in self.rows)

    @property
    def is_settled(self) -> bool:
        """Return whether there is nothing to read and nothing to give, and nobody gave anything."""
        touched = any(row.mark.given is not None or row.mark.remark for row in self.rows)
        return not (self.open or self.given or self.answer or touched)


@dataclass(frozen=True)
class RunRow:
    name: str
    link: str | None
    about: str
    changed: str
    findings: str
    command: str
    again: str = ""


@dataclass(frozen=True)
class StudentPage:
    """Everything on one student; `before` and `after` are the neighbours' pages with their names."""

    stem: str
    entry: Graded
    lab: str
    points: float
    made: datetime
    files: list[tuple[str, HandedFile]]
    questions: list[QuestionSection]
    runs: list[RunRow]
    report: str | None
    before: tuple[str, str] | None
    after: tuple[str, str] | None
    marks_file: str = FILE

    @property
    def feedback_name(self) -> str:
        """The feedback's file: the name by which the student's system takes a file back, else ours."""
        names = (file.feedback for file in self.entry.files if file.counts)
        return next(filter(None, names), f"{self.stem}.html")

    def for_marking(self) -> str:
        """Return the page to mark from, as HTML."""
        return self._render("marking.html.j2")

    def feedback(self) -> str:
        """Return what a student gets back: points and remarks, and no word on anybody else or on a cause."""
        return self._render("feedback.html.j2")

    def _render(self, template: str) -> str:
        templates = environment(TEMPLATES, finalize=clean)
        return templates.get_template(template).render(page=self, signed=_signed)


def _signed(points: float) -> str:
    return f"{points:+g}".replace("-", "\u2212")


def stems(graded: Sequence[Graded]) -> list[str]:
    """Return a file's name for each student, the same each time: of the id and the name, in letters and digits."""
    names: dict[str, None] = {}
    for entry in graded:
        parts = dict.fromkeys(squash(text)[:40] for text in (entry.student or "", entry.name))
        stem = name = "-".join(filter(None, parts)) or "student"
        number = 1
        while stem in names:
            number += 1
            stem = f"{name}-{number}"
        names[stem] = None
    return list(names)


def make_pages(
    lab: Lab,
    rubric: Rubric,
    key: Mapping[int, str],
    graded: Sequence[Graded],
    reports: Mapping[int, str],
    made: datetime,
    links: Mapping[str, str],
) -> list[StudentPage]:
    """Return a page for each who handed in, in order. `reports` are links by a submission's index,
    `links` those to files that were handed in, by their path."""
    questions = read_questions(lab)
    handed_in = [
        (s, entry) for s, entry in zip(stems(graded), graded, strict=True) if entry.handed_in
    ]
    neighbours = [None, *((f"{stem}.html", entry.name) for stem, entry in handed_in), None]
    pages = []
    for number, (stem, entry) in enumerate(handed_in):
        report = reports.get(entry.place) if entry.place is not None else None
        sections = [
            _section(lab, rubric, answer, text, key.get(answer.question, ""), entry)
            for answer, text in zip(entry.answers, questions, strict=False)
        ]
        pages.append(
            StudentPage(
                stem,
                entry,
                lab.file.lab.title,
                rubric.points,
                made,
                [(links.get(file.path, ""), file) for file in entry.files],
                [section for section in sections if section.rows],
                [_run_row(run, report, entry) for run in entry.all_runs],
                report,
                before=neighbours[number],
                after=neighbours[number + 2],
            )
        )
    return pages


def _section(
    lab: Lab, rubric: Rubric, answer: Answer, text: str, key: str, entry: Graded
) -> QuestionSection:
    rows = [
        _criterion_row(lab, criterion, mark, entry)
        for criterion, mark in zip(rubric.criteria, entry.marks, strict=False)
        if mark.question == answer.question
    ]
    return QuestionSection(
        answer.question,
        _markdown(text, inline=True),
        None if answer.text is None else _mark_cited(answer.text, answer.cited),
        len((answer.text or "").split()),
        list(answer.cited.items()),
        _figures(answer, rows, entry),
        _markdown(key),
        rows,
    )


def _criterion_row(lab: Lab, criterion: Criterion, mark: Mark, entry: Graded) -> CriterionRow:
    levels = [(f"{level.points:g}", level.title, level.says) for level in criterion.levels]
    if mark.pitfall is None:
        return CriterionRow(mark, mark.title, levels, [])
    pitfall = lab.pitfall(mark.pitfall)
    title = f"{mark.title} ({pitfall.id})"
    notes = next((notes for notes in entry.book if notes.case == mark.case), None)
    if criterion.prediction:
        seen = [("Predicted", mark.predicted)]
        seen += [("Lab book", notes.prediction)] if notes and notes.prediction else []
        return CriterionRow(mark, title, levels, seen)
    seen = [
        ("Shown", mark.shown), ("Diagnosed", mark.diagnosed), ("Fixed", mark.fixed), ("Run again", mark.again),
    ]  # fmt: skip
    seen += [("Lab book", notes.diagnosis)] if notes and notes.diagnosis else []
    seen += [("Answers", "; ".join(notes.answers))] if notes and notes.answers else []
    for run in entry.all_runs:
        finding = next((finding for finding in run.findings if finding.id == pitfall.finding), None)
        if finding:
            what = f"{finding.measured}, expected {finding.expected}"
            seen.append(("Measured", f"{what} ({short_name(run.name)})"))
    # The last hint names the cause.
    return CriterionRow(mark, title, levels, seen[:MAX_SEEN], pitfall.hints[-1], criterion.about)


def _figures(answer: Answer, rows: list[CriterionRow], entry: Graded) -> list[tuple[str, str]]:
    """Return numbers of the answer that a run of this question's case has; of any run, if they have four digits."""
    pitfalls = {row.mark.pitfall for row in rows} - {None}
    of_case = {run.name for run in entry.runs if run.pitfall in pitfalls}
    figures: dict[str, str] = {}
    # The case's own runs first.
    for figure in sorted(answer.figures, key=lambda figure: figure.run not in of_case):
        digits = len(re.sub(r"\D", "", figure.text).lstrip("0"))
        if figure.run in of_case or digits > 3:
            run = short_name(printable(figure.run))
            figures.setdefault(figure.text, f"{figure.value} = {figure.measured:.6g} in {run}")
    return list(figures.items())[:MAX_FIGURES]


def _run_row(run: AnyRun, report: str | None, entry: Graded) -> RunRow:
    findings = "; ".join(
        f"{f.id} (measured {f.measured}, expected {f.expected})" for f in run.findings
    )
    stage = f"{run.pitfall}, {run.stage or 'changed by the student'}" if run.pitfall else "as it is"
    about = f"Trial {run.trial}, {stage}"
    if not isinstance(run, SubmittedRun):
        about += ", files of their own"
        return RunRow(run.name, None, about, "", run.in_words or findings, "")
    return RunRow(
        run.name,
        f"{report}#{run.anchor}" if report and run.anchor else None,
        f"{about}, seed {printable(run.seed)}",
        printable(", ".join(run.changed)),
        findings,
        run.command,
        "; ".join(r.says for r in entry.remarks if r.run == run.run and r.kind in AGAIN),
    )


def _mark_cited(text: str, cited: Mapping[str, str]) -> Markup:
    """Return an answer as it was written, with the lines marked that stand in a raw file."""
    text = str(clean(text))
    lines = [re.escape(str(clean(line))) for line in sorted(cited, key=len, reverse=True)]
    pieces = re.split(f"({'|'.join(lines)})", text) if lines else [text]
    return Markup("").join(
        Markup("<mark>{}</mark>").format(piece) if piece in cited else escape(piece)
        for piece in pieces
    )


def _markdown(text: str, *, inline: bool = False) -> Markup:
    """Return text of ours, a question or a key, as HTML. HTML in it is shown, not obeyed."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    return Markup(reader.renderInline(text) if inline else reader.render(text))
