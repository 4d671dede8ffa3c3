"""What a student wrote: a report's answers, the files and numbers that they quote, and lab books."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.book.lab_book import BOOK, LabBook, Notes, read_notes
from measuretwice.book.prediction import (
    Answer,
    has_reason,
    has_unit,
    judged_numbers,
    number_in,
    why_not,
)
from measuretwice.facts.sets import RecordedSets
from measuretwice.grading.submission import CaseNotes, MatchedNumber
from measuretwice.lab import Lab, published_labs
from measuretwice.lab.schema.cases import Judgement
from measuretwice.measure.imported import tidy
from measuretwice.report.markdown import read_books as books_in_markdown
from measuretwice.report.markdown import read_places as answers_in_markdown
from measuretwice.runs.remeasure import RunData
from measuretwice.runs.unpack import printable

MAX_REPORT_BYTES = 8 * 2**20
MAX_CHARACTERS = 20_000
MAX_QUOTES = 100
# A line of this many characters is quoted by no coincidence.
MIN_QUOTED_CHARACTERS = 16
HTML = (".html", ".htm")
DOCUMENTS = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".tex", ".pages", ".ipynb", ".md", *HTML)

NUMBER = re.compile(r"(?<![\w.,])([0-9][0-9,]*(?:\.[0-9]+)?)(?:\s*(%))?(?![\w])")
# Fewer digits match some value of a run by chance.
MIN_DIGITS = 3
MAX_NUMBERS = 40
MAX_MATCHES = 30
MAX_ANSWERS = 30


# Reports


@dataclass(frozen=True)
class Reports:
    """What reports hold: answers by normalized question, lab books by lab; and the names of documents
    to be read by hand."""

    answers: dict[str, str] = field(default_factory=dict)
    books: dict[str, str] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)


def read_reports(files: Iterable[Path], tree: Path) -> Reports:
    """Read the documents among `files`, which lie below `tree`. Of two answers, or books, the longer counts."""
    reports = Reports()
    for path in files:
        suffix = path.suffix.lower()
        if suffix not in DOCUMENTS:
            continue
        answers: Mapping[str, str] = {}
        books: Mapping[str, str] = {}
        if suffix in (".md", *HTML) and path.stat().st_size <= MAX_REPORT_BYTES:
            text = tidy(path.read_bytes())
            if suffix == ".md":
                answers, books = answers_in_markdown(text), books_in_markdown(text)
            else:
                page = _read_html(text)
                answers, books = page.answers, page.books
        if not answers:
            reports.documents.append(printable(path.relative_to(tree).as_posix()))
        for question, answer in answers.items():
            key = normalize_question(question)
            if len(answer) >= len(reports.answers.get(key, "")):
                reports.answers[key] = answer.strip()[:MAX_CHARACTERS]
        for lab, book in books.items():
            if len(book) > len(reports.books.get(lab, "")):
                reports.books[lab] = book
    return reports


def normalize_question(question: str) -> str:
    """Return a question's words without markup, so that Markdown and HTML have the same."""
    return " ".join(re.sub(r"[`*_\\]", "", question).split())


class _ReportParser(HTMLParser):
    """Collects a report's answers by question, and its lab books by lab."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, str] = {}
        self.books: dict[str, str] = {}
        self._book_lab: str | None = None
        self._text: list[str] = []
        self._question = ""
        self._div_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._div_depth:
            self._div_depth += tag == "div"
        elif tag == "p":
            self._text = []
        elif tag == "div" and ("class", "answer") in attrs:
            self._div_depth, self._text = 1, []
        elif tag == "pre" and ("class", "lab-book") in attrs:
            self._book_lab, self._text = dict(attrs).get("data-lab"), []

    def handle_endtag(self, tag: str) -> None:
        if self._div_depth and tag == "div":
            self._div_depth -= 1
            if not self._div_depth and self._question:
                self.answers[self._question] = "".join(self._text).strip()
                self._question = ""
        elif tag == "pre" and self._book_lab:
            self.books[self._book_lab], self._book_lab = "".join(self._text).strip("\n"), None
        elif not self._div_depth and tag == "p":
            asked = re.match(r"\s*Question [0-9]+\.\s*(.*)", "".join(self._text), re.DOTALL)
            self._question = asked[1] if asked else self._question

    def handle_data(self, data: str) -> None:
        self._text.append(data)


def _read_html(text: str) -> _ReportParser:
    parser = _ReportParser()
    if 'class="answer"' in text or 'class="lab-book"' in text:
        # Python's parser raises this for what no HTML has, such as <![x[: what stands before it counts.
        with contextlib.suppress(AssertionError):
            parser.feed(text)
            parser.close()
    return parser


# What answers quote


def find_quotes(
    answers: Mapping[str, str], runs: Sequence[str], tree: Path
) -> tuple[dict[str, dict[str, list[str]]], dict[str, dict[str, str]]]:
    """Return by question and run the raw files that hold a line which the answer quotes; and by question
    and line the first file that holds it. `runs` are the runs' folders below `tree`.
    """
    lines = {
        (question, line)
        for question, answer in answers.items()
        for line in (part.strip(" \t>*-") for part in re.split(r"[\n`]", answer))
        if len(line) >= MIN_QUOTED_CHARACTERS
    }
    searched = [(question, line.encode()) for question, line in sorted(lines)[:MAX_QUOTES]]
    quotes: dict[str, dict[str, list[str]]] = {}
    cited: dict[str, dict[str, str]] = {}
    for run in runs if searched else ():
        for path in sorted((tree / run / "raw").rglob("*")):
            if not path.is_file():
                continue
            content = path.read_bytes()
            name = path.relative_to(tree / run).as_posix()
            for question, line in searched:
                if line in content:
                    files = quotes.setdefault(question, {}).setdefault(run, [])
                    if name not in files:
                        files.append(name)
                    where = f"{printable(run)}: {name.removeprefix('raw/')}"
                    cited.setdefault(question, {}).setdefault(line.decode(), where)
    return quotes, cited


def match_numbers(
    answers: Mapping[str, str], runs: Sequence[RunData]
) -> dict[str, tuple[MatchedNumber, ...]]:
    """Return by question the numbers in its answer that a run has measured, rounded as they stand there."""
    matched = {question: _matches(text, runs) for question, text in answers.items()}
    return {question: numbers for question, numbers in matched.items() if numbers}


def _matches(text: str, runs: Sequence[RunData]) -> tuple[MatchedNumber, ...]:
    matched: list[MatchedNumber] = []
    numbers = list(dict.fromkeys((match[1], match[2] or "") for match in NUMBER.finditer(text)))
    for number, percent in numbers[:MAX_NUMBERS]:
        digits = number.replace(",", "")
        if len(digits.replace(".", "").lstrip("0")) < MIN_DIGITS:
            continue
        decimals = len(digits.partition(".")[2])
        matches = [
            MatchedNumber(f"{number}{percent and ' %'}", run.name, name, float(value))
            for run in runs
            for name, value in run.result.measured.items()
            if isinstance(value, int | float)
            and any(
                round(float(value) * scale, decimals) == float(digits)
                for scale in _scales(name, bool(percent))
            )
        ]
        matched += matches[:MAX_MATCHES]
    return tuple(matched)


def _scales(name: str, percent: bool) -> tuple[float, ...]:
    """Return the factors from a value's unit, which its name has, to units that people write."""
    if percent:
        return (100.0,) if name.endswith("_ratio") else ()
    if name.endswith("_bps"):
        return (1.0, 1e-6)
    return (1.0, 1e-3) if name.endswith("_bytes") else (1.0,)


# Lab books


def read_books(
    root: Path, files: Iterable[Path], reported: Mapping[str, str], tree: Path
) -> tuple[dict[str, tuple[CaseNotes, ...]], list[str]]:
    """Return each lab's book, by its cases, and a line on each book that can't be read.

    `files` are those called lab-book.md, `reported` the books that reports hold, by lab, which count
    where there is no file. Of two books of one lab the one with more cases counts.
    """
    labs = published_labs(root)
    books: dict[str, tuple[CaseNotes, ...]] = {}
    problems = []
    for path in files:
        name = printable(path.relative_to(tree).as_posix())
        try:
            text = LabBook(path.parent, next(iter(labs.values()))).text
        except UserError as error:
            problems.append(str(error).replace(str(path), name))
            continue
        lab = _lab_of_book(path, text, labs)
        if lab is None:
            problems.append(f"{name}: it isn't clear which lab's book it is")
        elif len(cases := _cases(lab, text)) >= len(books.get(lab.name, ())):
            books[lab.name] = cases
    for name, text in reported.items():
        if name in labs and name not in books:
            books[name] = _cases(labs[name], text)
    return books, problems


def is_book(path: Path) -> bool:
    return path.name == BOOK


def _lab_of_book(path: Path, text: str, labs: Mapping[str, Lab]) -> Lab | None:
    """Return the lab by the folder's name, or else by the title in the first line."""
    if path.parent.name in labs:
        return labs[path.parent.name]
    first = text.lstrip().split("\n", 1)[0]
    return next((lab for lab in labs.values() if lab.file.lab.title in first), None)


def _cases(lab: Lab, text: str) -> tuple[CaseNotes, ...]:
    return tuple(
        _case_notes(notes)
        for number, notes in sorted(read_notes(text).items())
        if 1 <= number <= len(lab.file.pitfalls)
    )


def _case_notes(notes: Notes) -> CaseNotes:
    prediction = notes.prediction or ""
    return CaseNotes(
        notes.case,
        notes.prediction and prediction[:MAX_CHARACTERS],
        first=notes.predicted_first,
        number=number_in(prediction) is not None,
        unit=has_unit(prediction),
        reason=has_reason(prediction),
        hints=notes.hints,
        hints_before=notes.hints_before_diagnosis,
        diagnosis=notes.diagnosis and notes.diagnosis[:MAX_CHARACTERS],
        shown=notes.shown,
        fixed=notes.fixed,
        answers=tuple(text[:MAX_CHARACTERS] for text in notes.judgements[:MAX_ANSWERS]),
    )


def judge_answers(
    root: Path,
    books: Mapping[str, tuple[CaseNotes, ...]],
    runs: Mapping[str, Sequence[tuple[RunData, str]]],
    labs: Mapping[str, Lab],
) -> dict[str, tuple[CaseNotes, ...]]:
    """Return the books with a word on which answers to cases' questions are right, by the runs that were handed in; those
    that a page has judged by the recorded runs, by these.

    `runs` are each lab's, each with what was changed in it, in words.
    """
    return {
        name: tuple(
            _judged(notes, RecordedSets(root, labs[name]), runs.get(name, ())) for notes in cases
        )
        for name, cases in books.items()
    }


def _judged(
    notes: CaseNotes, recorded: RecordedSets, runs: Sequence[tuple[RunData, str]]
) -> CaseNotes:
    pitfall = recorded.lab.case(notes.case)
    judgement = pitfall.judgement
    if judgement is None or not notes.answers:
        return notes
    own = [
        (changed, data.result)
        for data, changed in runs
        if data.plan.case == notes.case and data.plan.stage is None
    ]
    answers = [Answer.read(text) for text in notes.answers]
    by_own = [answer for answer in answers if not answer.by_recorded]
    by_recorded = [answer for answer in answers if answer.by_recorded]
    recorded_numbers: list[float] = []
    if by_recorded and judgement.number:
        # A checkout without recorded runs can't say.
        with contextlib.suppress(UserError):
            recorded_numbers.append(recorded.judged_number(pitfall.id))
    return replace(
        notes,
        answered=_is_any_right(judgement, by_own, judged_numbers(judgement, own)),
        answered_by_recorded=_is_any_right(judgement, by_recorded, recorded_numbers),
    )


def _is_any_right(
    judgement: Judgement, answers: Sequence[Answer], numbers: Sequence[float]
) -> bool:
    for answer in answers:
        with contextlib.suppress(UserError):
            if not why_not(judgement, answer, numbers):
                return True
    return False
