"""The report that a student hands in: one HTML file, and the same as Markdown, from their runs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from measuretwice.base.errors import UserError
from measuretwice.base.files import now, write_text
from measuretwice.book.lab_book import LabBook
from measuretwice.course.archives import Unpacked, unpacked
from measuretwice.figures.rows import ModelRuns, ParameterNames
from measuretwice.lab import find_labs
from measuretwice.report.markdown import read_answers
from measuretwice.report.report import Report, make_report, render_html, render_markdown
from measuretwice.runs.folder import runs_in
from measuretwice.runs.remeasure import RunData, read_run

# With fewer, a table says it better.
RUNS_FOR_A_FIGURE = 3


@dataclass(frozen=True)
class ReportRuns:
    """The runs that a report is about, and where it is written: `page` is HTML, `notes` Markdown.

    `unusable` has a line for each folder that can't be used. `targets` are the folders that were asked for.
    """

    runs: list[RunData]
    unusable: list[str]
    targets: tuple[Path, ...]
    page: Path

    @property
    def notes(self) -> Path:
        return self.page.with_suffix(".md")


@contextmanager
def opened_for_report(
    root: Path, targets: Sequence[Path], out: Path | None
) -> Iterator[tuple[Unpacked, Path]]:
    """Lay archives open; yield the folders, and the path of the report: `out`, or in the folder common to all targets.

    UserError for a path that can't be a report's, and where a lab's name has no runs yet.
    """
    labs = find_labs(root)
    asked = tuple(_runs_of(root, target, labs) for target in targets)
    with unpacked(asked) as opened:
        # Of an archive the report lies beside it.
        place = _common(tuple(target.parent for target in asked) if opened.archives else asked)
        yield opened, _page(root, out, place)


def read_report_runs(root: Path, targets: tuple[Path, ...], page: Path) -> ReportRuns:
    """Read each run once. UserError where none can be used."""
    folder = _common(targets)
    runs, unusable = _read(root, targets, folder)
    return ReportRuns(runs, unusable, targets, page)


def write_report(
    about: ReportRuns,
    *,
    title: str | None = None,
    author: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> None:
    """Write the report as HTML and as Markdown.

    `answers`, by their questions' texts, are taken besides those that an earlier report's Markdown has. UserError where
    that has answers to other questions.
    """
    all_answers = {**_answers(about.notes), **(answers or {})}
    report = make_report(
        about.runs,
        title=title,
        author=author,
        made=now(),
        unusable=about.unusable,
        answers=all_answers,
        books=_books(about.runs, about.targets),
    )
    _keep_answers(report, all_answers, about.notes)
    about.page.parent.mkdir(parents=True, exist_ok=True)
    figures = _figures(about.runs)
    write_text(about.page, render_html(report, figures))
    write_text(about.notes, render_markdown(report, figures))


def _books(runs: list[RunData], targets: tuple[Path, ...]) -> dict[str, str]:
    """Each lab's lab book: the one beside the runs that were asked for."""
    books = {}
    for lab in {run.lab.name: run.lab for run in runs}.values():
        for folder in (*targets, *(target.parent for target in targets)):
            for place in (folder, folder / lab.name):
                book = LabBook(place, lab)
                if lab.name not in books and place.name == lab.name and book.exists:
                    books[lab.name] = book.text
    return books


def _figures(runs: list[RunData]) -> list[tuple[str, str]] | None:
    """Each lab's runs compared with its model, where there are enough of them for a figure; None where nothing can draw them."""
    figures = []
    for lab in {run.lab.name: run.lab for run in runs}.values():
        labs_runs = [run for run in runs if run.lab.name == lab.name]
        if lab.file.model is None or len(labs_runs) < RUNS_FOR_A_FIGURE:
            continue
        # In a page there is none: its weight wouldn't be paid by a report's two figures.
        if importlib.util.find_spec("matplotlib") is None:
            return None
        # matplotlib takes half a second to import.
        from measuretwice.figures.files import draw_against_model
        from measuretwice.figures.style import svg_text

        results = [replace(run.result, folder=Path(run.name)) for run in labs_runs]
        compared = ModelRuns([(lab.name, results)], names=ParameterNames.of(lab))
        for figure in ("measured-against-model", "window-against-loss"):
            try:
                drawn = draw_against_model(figure, compared)
            except UserError:  # nothing in these runs that it could show
                continue
            figures.append((f"{drawn.title}. {drawn.caption}", svg_text(drawn)))
    return figures


def _read(root: Path, targets: tuple[Path, ...], folder: Path) -> tuple[list[RunData], list[str]]:
    """Read each run once; the second list says which folders can't be used, and why."""
    runs: dict[Path, RunData] = {}
    problems: dict[str, None] = {}
    for target in targets:
        folders = runs_in(target)
        if not folders:
            lacks = "no run of ./lab in it; ./lab run makes one"
            problems[
                f"{target}: {lacks if target.exists() else 'there is no such file or folder'}"
            ] = None
        for run in folders:
            if run.resolve() in runs:
                continue
            try:
                runs[run.resolve()] = read_run(root, run, _name(run, folder))
            except UserError as error:
                problems[str(error)] = None
    if not runs:
        first, *others = problems
        raise UserError(first + (f" (and {len(others)} more)" if others else ""))
    return list(runs.values()), [_below(line, folder) for line in problems]


def _runs_of(root: Path, target: Path, labs: Container[str]) -> Path:
    """The folder that is meant: a lab's name means all its runs, unless a folder here is called so."""
    name = str(target)
    if name not in labs or target.exists():
        return target
    folder = root / "runs" / name
    if not folder.is_dir():
        raise UserError(f"{name}: nothing is measured yet; ./lab run {name} does it")
    return folder


def _common(targets: tuple[Path, ...]) -> Path:
    """The folder that holds all that was asked for: where the report goes."""
    return Path(os.path.commonpath([target.resolve() for target in targets]))


def _name(run: Path, folder: Path) -> str:
    """A run's name in the report: below the common folder, so that no path of the machine shows."""
    below = run.resolve().relative_to(folder).parts[-2:]
    return "/".join(below) or run.resolve().name


def _below(line: str, folder: Path) -> str:
    """A line about a folder without the path that leads to the common one."""
    for prefix in (str(folder), os.path.relpath(folder)):
        line = line.removeprefix(prefix + os.sep)
    return line


def _page(root: Path, out: Path | None, folder: Path) -> Path:
    if out is None and folder.is_relative_to((root / "sample-data").resolve()):
        return root / "runs" / "report.html"  # what the kit came with stays as it came
    if out is None:
        return folder / "report.html" if folder.is_dir() else folder.with_name("report.html")
    if out.is_dir():
        raise UserError(f"--out {out}: is a folder; name a file in it, such as report.html")
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {out}: expected a name that ends in .html")
    return out


def _answers(notes: Path) -> dict[str, str]:
    """The answers that a student wrote into an earlier report's Markdown."""
    if not notes.is_file():
        return {}
    return read_answers(notes.read_text(encoding="utf-8", errors="replace"))


def _keep_answers(report: Report, answers: dict[str, str], notes: Path) -> None:
    """Never write over an answer that the new report has no place for."""
    texts = {question.answer for _, asked in report.questions for question in asked}
    if any(answer not in texts for answer in answers.values()):
        raise UserError(
            f"{notes}: has answers to questions that these runs don't ask; "
            "move it away, or give another --out"
        )
