#!/usr/bin/env python3
"""Does the prose keep the house's rules (styles/MT)? Vale reads the pages with all numbers filled in, and the strings in code that
people read; each hit is said with its place in the source.

    prose.py              all of it: exit 1 with a line for each new hit, where a rule has more than prose.toml allows
    prose.py --lower      the same, and write the counts that fell to prose.toml
    prose.py FILE ...     these pages or source files alone: exit 1 with a line for each hit

A rule whose level is `error` allows none. A sentence that is right although a rule says otherwise has a comment on one of its lines
that names the rule: {## vale: Per ##} in a page, `# vale: Per` in code, Vale's own in README.md and CONTRIBUTING.md.
"""

from __future__ import annotations

import bisect
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from texts import Passage, as_filled_in, passages

from measuretwice.base.errors import UserError
from measuretwice.site.build import check_page, prepare_text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COUNTS = "scripts/lint/prose.toml"
BUILT = "build/prose"
PLAIN = ("README.md", "CONTRIBUTING.md")
CODE = (
    "src/measuretwice/**/*.py", "labs/*/*.toml", "labs/*/facts.py", "labs/*/facts/*.py", "solutions/*.py",
    "docs/assets/**/*.js", "docs/assets/**/*.mjs", "docs/offline.js", "lab",
)  # fmt: skip
NOT_OURS = "docs/assets/vendor/"
# Whose words come to stand on several pages; code's strings do so as well.
SHARED = (
    "docs/layouts/*.j2", "docs/includes/*.j2", "docs/includes/*.md", "src/measuretwice/site/templates/*.j2", "labs/*/questions.md",
)  # fmt: skip
RIGHT = re.compile(r"\bvale: ([A-Z]\w+(?:, [A-Z]\w+)*)")
# How many characters before and behind a hit tell its place: as many as the source has in one piece.
WINDOWS = ((60, 60), (30, 30), (15, 15), (30, 0), (0, 30), (8, 8))
# In a source that many pages share, a shorter piece may be another sentence's.
LEAST_SHARED = 22
MOST_SHOWN = 40
BLOCK = re.compile(r"( *)(?:!!!|\?\?\?\+?|===)[ +]")
MATHS = re.compile(r"<math\b.*?</math>", re.DOTALL)
# What Vale would take for text, or find words in: { .class }, and <tag attributes>.
ATTRIBUTES = re.compile(r"\{:? ?[.#][^{}\n]*\}")
TAG = re.compile(r"<([a-zA-Z][\w-]*)\s[^<>]*?(/?)>")
# Where a card's words, and a fold's title, end: neither goes on in what comes next.
CELL_END = re.compile(r"(</span>$|</summary>)", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """Where in the source a hit is; `column` tells two of one line, or of one string, apart."""

    path: str
    line: int
    column: int


@dataclass(frozen=True)
class Hit:
    """What Vale says of a place, and the words there."""

    rule: str
    is_error: bool
    place: Place
    message: str
    words: str

    def __str__(self) -> str:
        return f"{self.place.path}:{self.place.line}: {self.rule}: {self.message}  [{self.words}]"


@dataclass
class Source:
    """A file of the source: its text, and the passages that people read where it is code."""

    path: str
    text: str
    passages: list[Passage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = self.text.splitlines()
        # What is looked through for the words of a page, and where each passage begins in it.
        self.words = "\n\n".join(passage.words for passage in self.passages) or self.text
        lengths = [len(passage.words) + 2 for passage in self.passages]
        self.begins = [sum(lengths[:index]) for index in range(len(lengths))]

    def at(self, offset: int, match: str) -> Place:
        """Return the place of a match that begins at `offset` of the words."""
        if not self.passages:
            line_begin = self.text.rfind("\n", 0, offset) + 1
            return Place(self.path, self.text.count("\n", 0, offset) + 1, offset - line_begin)
        index = bisect.bisect_right(self.begins, offset) - 1
        return self.in_passage(index, offset - self.begins[index], match)

    def in_passage(self, index: int, column: int, match: str) -> Place:
        """Return the place of a match in a passage: on the first of its lines that has the words."""
        passage = self.passages[index]
        lines = range(passage.first, passage.last + 1)
        guess = passage.first + passage.words.count("\n", 0, column)
        order = [guess, *lines] if guess in lines else lines
        line = next((line for line in order if match and match in self.lines[line - 1]), guess)
        return Place(self.path, min(line, passage.last), 10_000 * passage.first + column)

    def is_right(self, place: Place, rule: str) -> bool:
        """Return whether a comment beside the words says that the rule is wrong for them."""
        lines = [place.line]
        for passage in self.passages:
            if passage.first <= place.line <= passage.last:
                lines += range(passage.first, passage.last + 1)
        marks = (mark for line in lines for mark in RIGHT.finditer(self._line(line)))
        return any(rule in mark[1].split(", ") for mark in marks)

    def _line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


class Sources:
    """The source files of a checkout, read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, Source] = {}
        code = {path.relative_to(root).as_posix() for each in CODE for path in root.glob(each)}
        self.code = sorted(name for name in code if not name.startswith(NOT_OURS))
        shared = {path.relative_to(root).as_posix() for each in SHARED for path in root.glob(each)}
        self.others = [*sorted(shared), *self.code]

    def get(self, name: str) -> Source:
        """Return a source file; one that isn't there is empty."""
        if name not in self._read:
            path = self.root / name
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            self._read[name] = Source(name, text, passages(name, text) if name in self.code else [])
        return self._read[name]

    def place_on_page(self, page: str, number: int, line: str, column: int, match: str) -> Place:
        """Return the place from which words of a built page are: the page's own source, another's, or the built page itself."""
        own = f"docs/{page}"
        for before, after in WINDOWS:
            begin, end = max(0, column - before), min(len(line), column + len(match) + after)
            piece = line[begin:end].lstrip()
            begin, piece = end - len(piece), piece.rstrip()
            if piece and (at := self.get(own).words.find(piece)) >= 0:
                return self.get(own).at(at + max(0, column - begin), match)
            # In code a number is filled in.
            head = as_filled_in(line[begin:column])
            piece = as_filled_in(piece)
            for name in self.others if len(piece) >= LEAST_SHARED else ():
                source = self.get(name)
                if (at := source.words.find(piece)) >= 0:
                    return source.at(at + len(head), match)
        # Numbers stand in it: the same line on several pages is one place.
        return Place(f"{BUILT}/{page}", number, hash(line) + column)


def unfolded(text: str) -> str:
    """Return Markdown without the indentation below folds, notes and tabs, which Vale would take for code; lines stay lines."""
    text = MATHS.sub(lambda maths: "x" + "\n" * maths[0].count("\n"), text)
    text = TAG.sub(
        lambda tag: f"<{tag[1]}{tag[2]}>" + "\n" * tag[0].count("\n"), ATTRIBUTES.sub("", text)
    )
    text = CELL_END.sub(r".\1", text)
    lines, levels = [], [0]
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        while line.strip() and indent < levels[-1]:
            levels.pop()
        line = line[levels[-1] :] if line.strip() else ""
        if begin := BLOCK.match(line):
            levels.append(levels[-1] + len(begin[1]) + 4)
            # Its title is a sentence of its own.
            title = re.search(r'"(.*)"', line)
            line = title[1] if title else ""
        lines.append(line)
    return "\n".join(lines) + "\n"


def vale() -> str:
    """Return the program's path; UserError where it can't be had."""
    done = subprocess.run(
        ["bash", str(HERE / "vale.sh")], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise UserError("the prose can't be read: there is no Vale, and why is above")
    return done.stdout.strip()


def alerts(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield what Vale says of each file in `folder`, with the file's name there."""
    command = [vale(), "--no-global", f"--config={HERE / 'vale.ini'}", "--output=JSON", "--no-exit"]
    done = subprocess.run(
        [*command, "--sort", "."], cwd=folder, capture_output=True, text=True, check=False
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise UserError(f"Vale can't read the prose: {done.stdout}{done.stderr}") from None
    for name, of_file in found.items():
        for alert in of_file:
            yield name, alert


def built_pages(root: Path, wanted: list[str]) -> dict[str, str]:
    """Return the text of the pages with all numbers, by name; of the `wanted` ones alone, where some files are wanted."""
    if wanted:
        pages = [
            name.removeprefix("docs/")
            for name in wanted
            if name.startswith("docs/") and name.endswith(".md")
        ]
        return {page: check_page(root, page)[0] for page in pages}
    prepare_text(root, root / BUILT)
    paths = sorted((root / BUILT).rglob("*.md"))
    return {
        path.relative_to(root / BUILT).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
    }


def hits(root: Path, wanted: Iterable[str] = ()) -> list[Hit]:
    """Return all hits of a checkout, each place once; of the `wanted` files alone, where there are some."""
    sources, wanted = Sources(root), list(wanted)
    read = {f"pages/{page}": unfolded(text) for page, text in built_pages(root, wanted).items()}
    for name in PLAIN:
        if not wanted or name in wanted:
            read[name] = sources.get(name).text
    for name in sources.code:
        if not wanted or name in wanted:
            of_file = (passage.words for passage in sources.get(name).passages)
            read[f"code/{name}.md"] = "\n\n".join(of_file) + "\n"
    with tempfile.TemporaryDirectory() as temporary:
        for name, text in read.items():
            path = Path(temporary, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = {}
        for name, alert in alerts(Path(temporary)):
            hit = _hit(sources, name, read[name], alert)
            if not sources.get(hit.place.path).is_right(hit.place, hit.rule):
                found[
                    hit.rule,
                    hit.place.path.startswith(BUILT),
                    hit.place.path,
                    hit.place.line,
                    hit.place.column,
                ] = hit
    return sorted(found.values(), key=lambda hit: (hit.rule, hit.place.path, hit.place.line))


def _hit(sources: Sources, name: str, text: str, alert: dict[str, object]) -> Hit:
    """Return an alert with its place in the source."""
    match, number = str(alert["Match"]), int(str(alert["Line"]))
    line = text.split("\n")[number - 1]
    span = alert["Span"]
    assert isinstance(span, list)
    column = line.find(match, max(0, span[0] - 1)) if match else 0
    column = max(column, line.find(match), 0) if column < 0 else column
    kind, _, rest = name.partition("/")
    if kind == "pages":
        place = sources.place_on_page(rest, number, line, column, match)
    elif kind == "code":
        source = sources.get(rest.removesuffix(".md"))
        begin = sum(len(each) + 1 for each in text.split("\n")[: number - 1])
        place = source.at(begin + column, match)
    else:
        place = Place(name, number, column)
    words = line[max(0, column - 30) : column + len(match) + 40].strip()
    check = str(alert["Check"]).removeprefix("MT.")
    return Hit(check, alert["Severity"] == "error", place, str(alert["Message"]), words)


def changed_lines(root: Path) -> dict[str, list[range]]:
    """Return which lines differ from main, by file; none where git can't tell."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout

    base = git("merge-base", "HEAD", "main").strip() or "HEAD"
    changed: dict[str, list[range]] = defaultdict(list)
    name = ""
    for line in git("diff", "-U0", "--no-color", "--no-ext-diff", base).splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ ").removeprefix("b/")
        elif begin := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            changed[name].append(range(int(begin[1]), int(begin[1]) + int(begin[2] or 1)))
    for name in git("ls-files", "--others", "--exclude-standard").splitlines():
        changed[name].append(range(1, sys.maxsize))
    return changed


def judge(root: Path, found: list[Hit], *, lower: bool) -> int:
    """Compare with the counts; say which hits are new where a rule has more; return the exit status."""
    path = root / COUNTS
    allowed: dict[str, int] = tomllib.loads(path.read_text(encoding="utf-8"))
    of_rule: dict[str, list[Hit]] = {rule: [] for rule in allowed}
    for hit in found:
        of_rule.setdefault(hit.rule, []).append(hit)
    status, fell = 0, {}
    changed = changed_lines(root)
    for rule, of_this in of_rule.items():
        most = allowed.get(rule, 0)
        if len(of_this) < most:
            fell[rule] = len(of_this)
        if len(of_this) <= most:
            continue
        status = 1
        new = [
            hit
            for hit in of_this
            if any(hit.place.line in lines for lines in changed.get(hit.place.path, ()))
        ]
        print(f"{rule}: {len(of_this)} places, at most {most}; {'new' if new else 'all of them'}:")
        print("\n".join(f"  {hit}" for hit in (new or of_this)[:MOST_SHOWN]))
    if status:
        print(
            "Rewrite them; where the rule is wrong for a sentence, say so beside it: {## vale: RULE ##}, in code # vale: RULE"
        )
    if fell and lower:
        text = path.read_text(encoding="utf-8")
        for rule, count in fell.items():
            text = re.sub(rf"(?m)^{rule} = \d+$", f"{rule} = {count}", text)
        path.write_text(text, encoding="utf-8")
    elif fell:
        counts = ", ".join(f"{rule} = {count}" for rule, count in fell.items())
        print(f"prose: lower these in {COUNTS} (scripts/lint/prose.py --lower does): {counts}")
    print(f"prose: {len(found)} places by {len(of_rule)} rules")
    return status


def main(words: list[str]) -> int:
    root = Path(os.environ.get("MEASURETWICE_PROSE_OF", ROOT))
    files = [word for word in words if not word.startswith("--")]
    try:
        if files:
            found = hits(root, files)
            print("\n".join(map(str, found)) or "no hits")
            return 1 if found else 0
        return judge(root, hits(root), lower="--lower" in words)
    except UserError as error:
        print(f"prose: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
