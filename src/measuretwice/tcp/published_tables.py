"""Tables of published results: which of their rows can't be true? Pure functions on text.

A table's numbers are rounded, so every test takes each number for the interval that its last digit
leaves open, and flags a row only where no number in these intervals would do.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from measuretwice.parse import ParseError
from measuretwice.tcp.model import constant_by_regression

# From how many flows' best index a common ceiling is told, and from how far below the others' best.
CEILING_ROWS = 3
CEILING_GAP = 0.02


@dataclass(frozen=True)
class Number:
    """A number as it was printed, and the interval that its last digit leaves open."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> Number:
        """Read `95.75` or `1.02E+11`; ValueError for anything else."""
        try:
            exact = Decimal(text.strip())
            half = Decimal(5).scaleb(int(exact.as_tuple().exponent) - 1)
        except (InvalidOperation, TypeError, ValueError):
            raise ValueError(f"not a number: {text!r}") from None
        return cls(float(exact), float(exact - half), float(exact + half))


@dataclass(frozen=True)
class Row:
    """A row of results: flows of one run, their sum and the sum of their squares in one unit and its
    square, and Jain's index. What a table doesn't have is None. `link` is in the sum's unit."""

    name: str
    flows: int
    total: Number
    squares: Number | None = None
    jain: Number | None = None
    link: float | None = None
    asked: int | None = None


@dataclass(frozen=True)
class Problem:
    """What is wrong with a row: `index`, `link` or `flows`."""

    row: Row
    kind: str
    text: str


def problems_of(row: Row) -> list[Problem]:
    """Return what can't be true in a row by itself."""
    found = []
    if row.squares and row.jain:
        low = row.total.low**2 / (row.flows * row.squares.high)
        high = row.total.high**2 / (row.flows * row.squares.low)
        if row.jain.high < low or row.jain.low > high or low > 1:
            middle = row.total.value**2 / (row.flows * row.squares.value)
            found.append(
                Problem(row, "index", f"index {row.jain.value:g}; recomputed {middle:.6g}")
            )
    if row.link and row.total.low > row.link:
        share = row.total.value / row.link
        found.append(Problem(row, "link", f"{100 * share:.2f} % of the link"))
    if row.asked is not None and row.asked != row.flows:
        found.append(Problem(row, "flows", f"{row.flows} flows of {row.asked} that were asked for"))
    return found


def missing_shares(rows: Sequence[Row]) -> dict[int, float]:
    """Return the share of flows that seem to be missing, by number of flows, where some do.

    A flow that never ran is counted in n and adds nothing: an index can then be no more than the
    share of flows that did run. So where every row of some number of flows, whatever the algorithm,
    stays below one ceiling that other rows exceed, that is what its distance from 1 may say.
    """
    by_flows: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.jain and not any(problem.kind == "index" for problem in problems_of(row)):
            by_flows[row.flows].append(row.jain.value)
    best = max((max(values) for values in by_flows.values()), default=0.0)
    return {
        flows: 1 - max(values)
        for flows, values in sorted(by_flows.items())
        if len(values) >= CEILING_ROWS and max(values) < best - CEILING_GAP
    }


def constants(text: str, source: str) -> tuple[float, float]:
    """Return C by losses and C by halvings from a file of flows, by regression through zero.

    CSV with the columns `bandwidth_port` (bit/s), `x1` and `x2`: what the model with C = 1 gives by
    the flow's losses, and by its halvings. Flows without either are left out. ParseError where a
    column is missing or holds no number.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    points: dict[str, list[tuple[float, float]]] = {"x1": [], "x2": []}
    for line, row in enumerate(reader, start=2):
        for name, those in points.items():
            x, y = _number(row, name, line, source), _number(row, "bandwidth_port", line, source)
            if math.isfinite(x) and x > 0:
                those.append((x, y))
    if not all(points.values()):
        raise ParseError(source, "file", "there is no flow in it")
    return constant_by_regression(points["x1"]), constant_by_regression(points["x2"])


def _number(row: Mapping[str, str | None], name: str, line: int, source: str) -> float:
    try:
        return float(row[name] or "nan")
    except KeyError:
        raise ParseError(source, "line 1", f"there is no column {name}") from None
    except ValueError:
        raise ParseError(source, f"line {line}", f"{name}: {row[name]!r} is no number") from None


def read_rows(text: str, source: str) -> list[Row]:
    """Read a table with the columns name, link, asked, flows, total, squares and jain; a cell may be
    empty. ParseError names the line."""
    rows = []
    for line, cells in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        try:
            rows.append(
                Row(
                    name=cells["name"],
                    flows=int(cells["flows"]),
                    total=Number.of(cells["total"]),
                    squares=Number.of(cells["squares"]) if cells["squares"] else None,
                    jain=Number.of(cells["jain"]) if cells["jain"] else None,
                    link=float(cells["link"]) if cells["link"] else None,
                    asked=int(cells["asked"]) if cells["asked"] else None,
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ParseError(source, f"line {line}", f"not a row of results ({error})") from None
    return rows
