"""What can't be true in a row by itself.

Numbers are rounded: each is taken for the interval that its last digit leaves open, and a row is
named only where no numbers in these intervals would do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from measuretwice.audit.columns import NAMES
from measuretwice.audit.numbers import Number

# What arithmetic of floats adds to a difference.
FLOATS = 1e-9
# What a rule says: the kind of what is off, and a text for a person.
Said = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Row:
    """A row: its line in the file, what it is called, its numbers in bit/s, seconds and ones by
    name, and how each is to be shown."""

    line: int
    label: str
    numbers: Mapping[str, Number]
    texts: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]

    def has(self, *names: str) -> bool:
        return self.numbers.keys() >= set(names)

    def shown(self, name: str) -> str:
        """The number as the table has it."""
        return self.texts.get(name) or f"{self.numbers[name].value:.6g}"


RULES: list[Callable[[Row], Said]] = []


def rule(function: Callable[[Row], Said]) -> Callable[[Row], Said]:
    RULES.append(function)
    return function


def off_in(row: Row) -> list[tuple[str, str]]:
    """Return what is off in a row, each kind once: the rule that stands first says it."""
    found: dict[str, str] = {}
    for one in RULES:
        for kind, text in one(row):
            found.setdefault(kind, text)
    return list(found.items())


@rule
def negative(row: Row) -> Said:
    for name, number in row.numbers.items():
        if number.value < 0:
            yield "negative", f"{name} {row.shown(name)} is less than nothing"


@rule
def zero(row: Row) -> Said:
    """Where nothing was carried, shares and indices are of nothing."""
    for name in ("flows", "rtt", "mss", "segments", "sent", "link"):
        if row.has(name) and row[name].value == 0:
            yield "zero", f"{name} is 0"
    for name in ("total", "goodput"):
        if row.has(name) and row[name].value == 0:
            yield "zero", f"{name} is 0: nothing was carried"
    if row.has("total", "squares") and row["total"].value > 0 and row["squares"].value == 0:
        yield "squares", f"squares are 0, and the total is {row.shown('total')}"


@rule
def flows_are_whole(row: Row) -> Said:
    for name in ("flows", "asked"):
        if row.has(name) and row[name].value % 1:
            yield "flows", f"{row.shown(name)} flows are no whole number"


@rule
def squares_of_some_flows(row: Row) -> Said:
    """For rates x >= 0 of n flows: (sum x)^2 / n <= sum x^2 <= (sum x)^2."""
    if not row.has("total", "squares") or min(row["squares"].value, row["total"].value) <= 0:
        return
    total, squares = row["total"], row["squares"]
    if squares.low > total.high**2:
        yield (
            "squares",
            f"squares {row.shown('squares')} are more than the total's own square, "
            f"{row.shown('total')}²: no flows have both",
        )
    if row.has("flows") and row["flows"].value > 0:
        most = total.low**2 / (row["flows"].value * squares.high) if squares.high > 0 else 0.0
        if most > 1 + FLOATS:
            index = total.value**2 / (row["flows"].value * squares.value)
            printed = f"index {row.shown('index')}; " if row.has("index") else ""
            yield (
                "index",
                f"{printed}recomputed {index:.6g}, and none is more than 1: no "
                f"{row['flows'].value:.0f} flows have this total and these squares",
            )


@rule
def index_recomputes(row: Row) -> Said:
    if not row.has("index", "total", "squares", "flows"):
        return
    index, total, squares, flows = (row[n] for n in ("index", "total", "squares", "flows"))
    if flows.value <= 0 or squares.low <= 0 or total.low <= 0:
        return
    low = total.low**2 / (flows.value * squares.high)
    high = total.high**2 / (flows.value * squares.low)
    if _apart(index, low, high):
        again = total.value**2 / (flows.value * squares.value)
        yield "index", f"index {row.shown('index')}; recomputed {again:.6g}"


@rule
def index_bounds(row: Row) -> Said:
    if not row.has("index") or (row.has("total") and row["total"].value == 0):
        return
    index = row["index"]
    if index.low > 1:
        percent = (
            f"; {index.value:g} % would be {index.value / 100:g}" if 1 < index.value <= 100 else ""
        )
        yield "index", f"index {row.shown('index')} is more than 1{percent}"
    flows = row["flows"].value if row.has("flows") else 0
    if flows > 0 and index.high < 1 / flows:
        yield (
            "index",
            (
                f"index {row.shown('index')} is less than 1/n: {flows:.0f} flows can't come below {1 / flows:.4g}"
            ),
        )
    elif index.high <= 0:
        yield "index", f"index {row.shown('index')}: no flows have it; the least is 1/n"


@rule
def ratios(row: Row) -> Said:
    """A share of something is between 0 and 1."""
    for name in ("share", "fair_share", "loss_ratio", "halving_ratio"):
        if row.has(name) and row[name].low > 1:
            percent = f"; {row.shown(name)} % would be {row[name].value / 100:g}"
            yield (
                "share",
                (
                    f"{NAMES[name].help}: {row.shown(name)} is more than 1"
                    f"{percent if row[name].value <= 100 else ''}"
                ),
            )


@rule
def link(row: Row) -> Said:
    for name in ("total", "goodput"):
        if row.has("link", name) and row["link"].value > 0 and row[name].low > row["link"].high:
            share = row[name].value / row["link"].value
            yield "link", f"{name} is {100 * share:.2f} % of the link"


@rule
def flows_asked(row: Row) -> Said:
    if row.has("flows", "asked") and row["flows"].value != row["asked"].value:
        yield (
            "flows",
            f"{row['flows'].value:.0f} flows of {row['asked'].value:.0f} that were asked for",
        )


@rule
def losses_and_halvings(row: Row) -> Said:
    """A window is halved for a loss, once for all losses of a round trip."""
    if row.has("losses", "halvings") and row["losses"].high < row["halvings"].low:
        yield (
            "halvings",
            f"{row.shown('losses')} losses, and {row.shown('halvings')} halvings: each takes a loss at least",
        )
    elif row.has("c_by_losses", "c_by_halvings") and (
        row["c_by_losses"].high < row["c_by_halvings"].low
    ):
        yield (
            "halvings",
            f"C is {row.shown('c_by_losses')} by losses and {row.shown('c_by_halvings')} by halvings: "
            "some flow had fewer losses than halvings",
        )


@rule
def parts_of_segments(row: Row) -> Said:
    for part in ("losses", "halvings"):
        if row.has(part, "segments") and row[part].low > row["segments"].high:
            yield "counts", f"{row.shown(part)} {part}, of {row.shown('segments')} segments"


@rule
def quotients(row: Row) -> Said:
    """What was divided, divided again."""
    for name, above, below in (
        ("losses_per_halving", "losses", "halvings"),
        ("drops_per_halving", "drops", "halvings"),
        ("loss_ratio", "losses", "segments"),
        ("halving_ratio", "halvings", "segments"),
    ):
        if not row.has(name, above, below) or min(row[above].value, row[below].low) <= 0:
            continue
        low, high = row[above].low / row[below].high, row[above].high / row[below].low
        stated, again = row[name], row[above].value / row[below].value
        if not _apart(stated, low, high):
            continue
        if not _apart(stated * 0.01, low, high):
            yield (
                "percent",
                f"{NAMES[name].help}: {row.shown(name)} is per cent; as a ratio {again:.4g}",
            )
        else:
            yield "quotient", f"{NAMES[name].help}: {row.shown(name)}; recomputed {again:.6g}"


@rule
def both_by_segments(row: Row) -> Said:
    """Losses and halvings over the same segments: their quotient needs no segments."""
    names = ("losses", "halvings", "loss_ratio", "halving_ratio")
    if not row.has(*names) or row.has("segments") or min(row[n].low for n in names) <= 0:
        return
    losses, halvings, p, q = (row[name] for name in names)
    if _apart(
        Number(1, p.low / q.high, p.high / q.low),
        losses.low / halvings.high,
        losses.high / halvings.low,
    ):
        yield (
            "quotient",
            f"{row.shown('losses')} losses for {row.shown('halvings')} halvings, and their ratios to the "
            f"segments sent are {row.shown('loss_ratio')} and {row.shown('halving_ratio')}",
        )


def _apart(stated: Number, low: float, high: float) -> bool:
    return stated.high < low * (1 - FLOATS) or stated.low > high * (1 + FLOATS)


@rule
def constants_are_positive(row: Row) -> Said:
    for name in ("c_by_losses", "c_by_halvings"):
        if row.has(name) and row[name].high <= 0:
            yield "constant", f"{NAMES[name].help}: {row.shown(name)}; it is more than 0"
