"""The one error of this room: a tool's output that cannot be read."""

from __future__ import annotations


class ParseError(ValueError):
    """A file that is not what it should be, and the place where that shows.

    `source` is the file's name, `where` the place in it ("line 12", "line 3 column 5" or a JSON
    path such as "$.end.streams[0]"), `problem` what is wrong and what was expected there.
    The text is one line: "FILE, line 12: what is wrong; expected ...".
    """

    def __init__(self, source: str, where: str, problem: str) -> None:
        # All three go to the base class, so that the error survives pickling between workers.
        super().__init__(source, where, problem)
        self.source = source
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        text = " ".join(f"{self.source}, {self.where}: {self.problem}".split())
        return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class TruncatedError(ParseError):
    """A text that is right as far as it goes, and ends too early."""
