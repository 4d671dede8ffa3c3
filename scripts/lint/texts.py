"""The words in code that people read: sentences of strings, each with the lines on which it stands.

What counts is how a string looks: three words in a row, and no regular expression. Of docstrings only those of commands are
read, since `./lab COMMAND --help` prints them. What is filled in, and each number, is 12. Pure: text in, passages out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

FILLED_IN = "12"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
WORDY = re.compile(r"[A-Za-z][a-z'’]+[,;:]? [a-z'’]+[,;:]? [a-z'’]+")
PATTERN = re.compile(r"\(\?|\\[bdswAZ]|\[\^")
TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")
DOUBLE = r'"(?P<double>(?:[^"\\\n]|\\.)*)"'
# Comments come first, so that a quote in them begins nothing.
STRINGS = {
    "toml": re.compile(
        rf"#[^\n]*|\"\"\"(?P<lines>.*?)\"\"\"|{DOUBLE}|'(?P<single>[^'\n]*)'", re.DOTALL
    ),
    "js": re.compile(
        r"//[^\n]*|/\*.*?\*/|" + DOUBLE + r"|'(?P<single>(?:[^'\\\n]|\\.)*)'"
        r"|`(?P<lines>(?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^{}`]|\{[^{}]*\}|`[^`]*`)*\})*)`",
        re.DOTALL,
    ),
    "sh": re.compile(r'\b(?:say|die) "(?P<double>(?:[^"\\]|\\.)*)"'),
}
# What is filled in: ${...} with one level of braces inside, $NAME.
FILLS = re.compile(r"\$\{((?:[^{}`]|\{[^{}]*\}|`[^`]*`)*)\}|\$\w+")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
ESCAPED = {"n": "\n", "t": " "}
LANGUAGES = {".toml": "toml", ".js": "js", ".mjs": "js", "": "sh"}


@dataclass(frozen=True)
class Passage:
    """What one string says, and the first and the last line of it."""

    first: int
    last: int
    words: str


def passages(name: str, text: str) -> list[Passage]:
    """Return what people read of a source file; its kind follows from its name."""
    path = PurePosixPath(name)
    if path.suffix == ".py":
        strings = _of_python(text, commands="cli" in path.parts)
        # Scripts of the shell begin with a comment.
        found = [passage for passage in strings if not passage.words.lstrip().startswith("#")]
        if path.parts[0] == "solutions":
            found += _of_cells(text)
    else:
        language = LANGUAGES[path.suffix]
        found = list(_of_strings(text, STRINGS[language], 1, fills=language != "toml"))
    return sorted(
        (
            Passage(passage.first, passage.last, words)
            for passage in found
            if WORDY.search(words := _plain(passage.words)) and not PATTERN.search(passage.words)
        ),
        key=lambda passage: (passage.first, passage.last),
    )


def _plain(words: str) -> str:
    """Return words without HTML's tags and without what would begin a block of code that never ends."""
    words = TAG.sub("", textwrap.dedent(words).strip())
    return as_filled_in(words.replace("```", "") if words.count("```") % 2 else words)


def as_filled_in(words: str) -> str:
    """Return words with each number as one that is filled in, so that a page's words are found in the code that makes them."""
    return NUMBER.sub(FILLED_IN, words)


def _of_strings(
    text: str, pattern: re.Pattern[str], line: int, *, fills: bool
) -> Iterator[Passage]:
    """Yield what stands in quotes, and in quotes within what is filled in."""
    for match in pattern.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        words = match[kind]
        first = line + text.count("\n", 0, match.start())
        if fills:
            for fill in FILLS.finditer(words):
                at = first + words.count("\n", 0, fill.start())
                yield from _of_strings(fill[1] or "", pattern, at, fills=True)
            words = FILLS.sub(FILLED_IN, words)
        if kind != "single" or fills:
            words = ESCAPE.sub(lambda escape: ESCAPED.get(escape[1], escape[1][-1]), words)
        yield Passage(first, first + match[0].count("\n"), words)


class _Strings(ast.NodeVisitor):
    """Collects the strings of a module: but for docstrings, unless they are a command's."""

    def __init__(self, *, commands: bool) -> None:
        self._commands = commands
        self.found: list[Passage] = []

    def _add(self, node: ast.expr, words: str) -> None:
        self.found.append(Passage(node.lineno, node.end_lineno or node.lineno, words))

    def visit_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        first = node.body[0]
        if self._commands and node.decorator_list and isinstance(first, ast.Expr):
            self._add(first.value, ast.get_docstring(node) or "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._add(node, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [
            str(part.value) if isinstance(part, ast.Constant) else FILLED_IN for part in node.values
        ]
        self._add(node, "".join(parts))
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)


def _of_python(text: str, *, commands: bool) -> Iterator[Passage]:
    visitor = _Strings(commands=commands)
    visitor.visit(ast.parse(text))
    yield from visitor.found


def _of_cells(text: str) -> Iterator[Passage]:
    """Yield the Markdown cells of a notebook that is kept as a script of Python."""
    line = 1
    for cell in re.split(r"(?m)^(?=# %%)", text):
        if cell.startswith("# %% [markdown]"):
            lines = cell.splitlines()[1:]
            words = "\n".join(each.removeprefix("#").removeprefix(" ") for each in lines)
            yield Passage(line + 1, line + len(lines), words)
        line += cell.count("\n")
