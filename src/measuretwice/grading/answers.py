"""What a student's report answers: its places for answers, and which raw files they quote."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

from measuretwice.grading.unpack import shown
from measuretwice.measure.imported import tidy
from measuretwice.report.markdown import read_books, read_places

MAX_REPORT_BYTES = 8 * 2**20
MAX_ANSWER = 20_000
MAX_QUOTES = 100
# So much of a line is no coincidence.
QUOTED = 16
WRITTEN = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".tex", ".pages", ".ipynb", ".md", ".html", ".htm")  # fmt: skip


def read_reports(files: Iterable[Path], tree: Path) -> tuple[dict[str, str], list[str]]:
    """Return what stands in the places for answers, by question as `plain` has it, and the names of
    other documents, to be read by hand."""
    places: dict[str, str] = {}
    written = []
    for path in files:
        suffix = path.suffix.lower()
        if suffix not in WRITTEN:
            continue
        found: dict[str, str] = {}
        if suffix in (".md", ".html", ".htm") and _is_small(path):
            text = tidy(path.read_bytes())
            found = read_places(text) if suffix == ".md" else _from_page(text)
        if not found:
            written.append(shown(path.relative_to(tree).as_posix()))
        for question, answer in found.items():
            key = plain(question)
            # Of two reports, the one that says more.
            if len(answer) >= len(places.get(key, "")):
                places[key] = answer.strip()[:MAX_ANSWER]
    return places, written


def reported_books(files: Iterable[Path]) -> dict[str, str]:
    """Return the lab books that reports hold, by lab."""
    books: dict[str, str] = {}
    for path in files:
        if path.suffix.lower() in (".md", ".html", ".htm") and _is_small(path):
            text = tidy(path.read_bytes())
            found = read_books(text) if path.suffix.lower() == ".md" else _page(text).books
            for lab, book in found.items():
                if len(book) > len(books.get(lab, "")):
                    books[lab] = book
    return books


def _is_small(path: Path) -> bool:
    return path.stat().st_size <= MAX_REPORT_BYTES


def plain(question: str) -> str:
    """A question's words without its markup: Markdown and HTML have the same."""
    return " ".join(re.sub(r"[`*_\\]", "", question).split())


class _Page(HTMLParser):
    """The places for answers in a report's HTML, and its lab books."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, str] = {}
        self.books: dict[str, str] = {}
        self._book: str | None = None
        self._text: list[str] = []
        self._question = ""
        self._divs_deep = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._divs_deep:
            self._divs_deep += tag == "div"
        elif tag == "p":
            self._text = []
        elif tag == "div" and ("class", "answer") in attrs:
            self._divs_deep, self._text = 1, []
        elif tag == "pre" and ("class", "lab-book") in attrs:
            self._book, self._text = dict(attrs).get("data-lab"), []

    def handle_endtag(self, tag: str) -> None:
        if self._divs_deep and tag == "div":
            self._divs_deep -= 1
            if not self._divs_deep and self._question:
                self.places[self._question] = "".join(self._text).strip()
                self._question = ""
        elif tag == "pre" and self._book:
            self.books[self._book], self._book = "".join(self._text).strip("\n"), None
        elif not self._divs_deep and tag == "p":
            asked = re.match(r"\s*Question [0-9]+\.\s*(.*)", "".join(self._text), re.DOTALL)
            self._question = asked[1] if asked else self._question

    def handle_data(self, data: str) -> None:
        self._text.append(data)


def _from_page(text: str) -> dict[str, str]:
    return _page(text).places


def _page(text: str) -> _Page:
    page = _Page()
    if 'class="answer"' in text or 'class="lab-book"' in text:
        # Of what no HTML has, such as <![x[, Python's parser says so with this: what stands before it counts.
        with contextlib.suppress(AssertionError):
            page.feed(text)
            page.close()
    return page


def find_quotes(
    places: Mapping[str, str], runs: Sequence[str], tree: Path
) -> tuple[dict[str, dict[str, list[str]]], dict[str, dict[str, str]]]:
    """Return for each question, by run, which of its raw files hold a line that the answer quotes; and, by
    question and line, the first file that holds it.

    `runs` are the runs' folders below `tree`.
    """
    lines = {
        (question, line)
        for question, answer in places.items()
        for line in (part.strip(" \t>*-") for part in re.split(r"[\n`]", answer))
        if len(line) >= QUOTED
    }
    searched = [(question, line.encode()) for question, line in sorted(lines)[:MAX_QUOTES]]
    found: dict[str, dict[str, list[str]]] = {}
    cited: dict[str, dict[str, str]] = {}
    if not searched:
        return found, cited
    for run in runs:
        folder = tree / run
        for path in sorted((folder / "raw").rglob("*")):
            if not path.is_file():
                continue
            content = path.read_bytes()
            for question, line in searched:
                if line in content:
                    files = found.setdefault(question, {}).setdefault(run, [])
                    name = path.relative_to(folder).as_posix()
                    if name not in files:
                        files.append(name)
                    place = f"{shown(run)}: {name.removeprefix('raw/')}"
                    cited.setdefault(question, {}).setdefault(line.decode(), place)
    return found, cited
