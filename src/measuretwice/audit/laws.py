"""What columns are products and quotients of others in most lines, whatever they hold: efficiencies, products of bandwidth
and delay, rates by windows, the square-root law of losses, one thing in two units. A line in which one isn't is off."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from measuretwice.audit.cells import Number, Unit, listed, number_in, words_of
from measuretwice.audit.columns import LOSS, SPREADS
from measuretwice.audit.markup import Line
from measuretwice.audit.report import Problem, TableReport
from measuretwice.audit.sheets import Table
from measuretwice.audit.sums import kinds_of

# What is computed from others, by its heading: then a line in which it doesn't follow is wrong.
DERIVED = re.compile(
    r"%|\b(?:utili[sz]ation|efficiency|normali[sz]ed|share|fraction|percent\w*|ratio|bdp|product|predict\w*|theor\w+"
    r"|model\w*|mathis|padhye|expected|calculated|computed|ideal|ceiling|bound|speed ?up|overhead|per|relative|vs)\b"
)
OF_RATE = re.compile(r"\b(?:utili[sz]ation|efficiency|normali[sz]ed)\b")
FORETOLD = re.compile(r"\b(?:predict\w*|theor\w+|model\w*|expected|ideal|ceiling|bound)\b")
WINDOW = re.compile(r"\b(?:c?wnd|windows?|buffers?|rwin|rwnd|in flight|inflight)\b")
ROUND_TRIP = re.compile(r"\b(?:s?rtt|latency|delay|ping|round trip)\b")
# Where more is asked for than can be had, what was had stays behind.
ASKED = re.compile(
    r"\b(?:offered|target\w*|load|demand\w*|requested|nominal|rate limit|flows|streams|clients|users)\b"
)
NO_VALUE = re.compile(
    r"\b(?:id|no|port|date|year|day|month|time ?stamp|seed|run|trial|test|rank|version|row|line|round|sample|seq\w*)\b|^(?:time|t|n|index)?$"
)
# Quotients of units: of tens, bits, 1024 for 1000, minutes, hours, and two ways for one.
UNIT_QUOTIENTS = (
    1.0, 8.0, 1.25, 1.024, 1.048576, 1.073741824, 8.192, 8.388608, 8.589934592, 9.765625, 9.5367431640625, 9.31322574615,
    1.220703125, 1.1920928955, 6.0, 3.6, 2.0, 5.0,
)  # fmt: skip
# These say no more than how far values are apart, and a hop is a place.
APART = re.compile(rf"\b(?:{'|'.join(SPREADS)}|hop|last|start|end|jitter|variance|var)\b")
# How near lines must be to each other, and how many such sets of columns chance may make.
NEARNESS, BY_CHANCE = (0.002, 0.01), 1e-3
# How near a constant is to one of units, where it was computed rather than measured.
EXACT = 0.0007
# Of this many columns and lines all combinations are tried.
MOST_TRIED, MOST_LINES = 12, 400
LEAST_AGREEING = 3


@dataclass(frozen=True)
class _Values:
    """A column of numbers: its place, heading and words, its unit, and each line's number where it has one above 0."""

    place: int
    heading: str
    words: str
    unit: Unit | None
    by_line: Mapping[int, Number]

    def spread(self, lines: Collection[int]) -> float:
        """Return by how much the logarithms of some lines' numbers differ."""
        logs = [math.log(self.by_line[line].value) for line in lines]
        return max(logs) - min(logs)


@dataclass(frozen=True)
class _Law:
    """A column that is a constant times powers of others in most lines: the constant, the lines that agree and
    those that are off, by index, and how many such sets of columns chance would make."""

    column: _Values
    factors: tuple[tuple[_Values, float], ...]
    constant: float
    agreeing: tuple[int, ...]
    off: tuple[int, ...]
    chance: float

    @property
    def words(self) -> str:
        """Return what it is, in words."""
        above = [f"{c.heading!r}" for c, power in self.factors if power > 0]
        below = [f"{c.heading!r}" for c, power in self.factors if power == -1]
        below += [f"the root of {c.heading!r}" for c, power in self.factors if power == -0.5]
        text = " times ".join(above) or f"{self.constant:.4g}"
        times = (
            f" (times {self.constant:.4g})"
            if above and abs(self.constant - 1) > NEARNESS[0]
            else ""
        )
        return text + "".join(f" over {name}" for name in below) + times

    def again(self, line: int) -> float:
        """Return what a line's number would be."""
        powers = [math.pow(c.by_line[line].value, power) for c, power in self.factors]
        return math.prod([self.constant, *powers])


def body_of(table: Table) -> list[Line]:
    """Return the lines that sum no others up."""
    texts = [n for n in range(len(table.headings)) if len(table.values(n)) * 2 < len(table.lines)]
    kinds = kinds_of(table.lines, texts)
    return [line for line in table.lines if line.number not in kinds]


def _columns_of_numbers(table: Table, lines: Sequence[Line]) -> list[_Values]:
    columns = []
    for place, heading in enumerate(table.headings):
        cells = {n: number_in(x.cell(place), table.decimal_comma) for n, x in enumerate(lines)}
        held = {n: (number, unit) for n, (number, unit) in cells.items() if number}
        words, unit, _ = words_of(heading)
        if len(held) < LEAST_AGREEING or len(held) * 3 < len(lines) * 2 or NO_VALUE.search(words):
            continue
        own = {u.name if u else "" for _, u in held.values()}
        numbers = {
            n: number if len(own) == 1 or u is None else number * u.factor
            for n, (number, u) in held.items()
            if number.value > 0
        }
        if len(numbers) >= LEAST_AGREEING:
            cell_unit = next((u for _, u in held.values() if u), None)
            columns.append(_Values(place, heading, words, unit or cell_unit, numbers))
    return columns[:MOST_TRIED]


def laws_of(table: Table, elsewhere: Collection[frozenset[int]]) -> list[_Law]:
    """Return what columns follow from others by, in most lines and hardly by chance; the simplest first. `elsewhere` has the
    places of columns that are compared elsewhere."""
    lines = body_of(table)[:MOST_LINES]
    columns = _columns_of_numbers(table, lines)
    tried = [
        (column, factors)
        for column in columns
        for factors in _combinations(column, columns)
        if frozenset({column.place, *(c.place for c, _ in factors)}) not in elsewhere
    ]
    laws = [law for column, factors in tried if (law := _law(column, factors, len(tried)))]
    return sorted(laws, key=lambda law: (len(law.off) > 0, len(law.factors), law.chance))


def _combinations(
    column: _Values, columns: Sequence[_Values]
) -> Iterator[tuple[tuple[_Values, float], ...]]:
    others = [other for other in columns if other is not column]
    of_all = column.unit is not None and column.unit.quantity == "ratio"
    derived = of_all or bool(DERIVED.search(column.words))
    # What is expected of a row may be what it has, until it hasn't; and a loss is what was set, until it isn't.
    alone = derived and not FORETOLD.search(column.words) and not _is_loss(column)
    for other in others:
        if (alone and not ASKED.search(other.words)) or (
            other.place < column.place and _same_thing(column, other)
        ):
            yield ((other, 1.0),)
    rate = column.unit is not None and column.unit.quantity == "rate"
    for a, b in permutations(others, 2):
        if derived and a.place < b.place and not _same_thing(a, b):
            yield ((a, 1.0), (b, 1.0))
        if (
            (derived and not _same_thing(a, b))
            or _carried(column, a, b)
            or (rate and WINDOW.search(a.words) and ROUND_TRIP.search(b.words))
        ):
            yield ((a, 1.0), (b, -1.0))
        if rate and ROUND_TRIP.search(a.words) and _is_loss(b):
            yield ((a, -1.0), (b, -0.5))
            yield from (
                ((c, 1.0), (a, -1.0), (b, -0.5))
                for c in others
                if re.search(r"\b(?:mss|segment size|packet size)\b", c.words)
            )
    if rate or "sqrt" in column.words:
        yield from (((other, -0.5),) for other in others if _is_loss(other))


def _is_loss(column: _Values) -> bool:
    return bool(re.search(rf"\b{LOSS}\b|^p$|\bplr\b", column.words))


def _same_thing(a: _Values, b: _Values) -> bool:
    """Return whether two columns hold one thing in two units."""
    units = a.unit and b.unit and a.unit.quantity == b.unit.quantity and a.unit.name != b.unit.name
    return bool(units) and a.words == b.words


def _carried(rate: _Values, amount: _Values, time: _Values) -> bool:
    """Return whether columns are a rate, and the bytes and the time that make it."""
    quantities = [column.unit.quantity if column.unit else "" for column in (rate, amount, time)]
    counted = "bytes" in amount.words.split() and quantities[1] == ""
    if (
        quantities[0] != "rate"
        or quantities[2] != "time"
        or not (counted or quantities[1] == "bytes")
    ):
        return False
    other = rf"{WINDOW.pattern}|{ROUND_TRIP.pattern}|\b(?:queue|bdp|product|gap|mss|packet|jitter|max|min|p\d\d)\b"
    return not any(re.search(other, column.words) for column in (rate, amount, time))


def _law(column: _Values, factors: tuple[tuple[_Values, float], ...], tried: int) -> _Law | None:
    """Return the law that most lines obey, where it is one and hardly by chance."""
    members = [column, *(c for c, _ in factors)]
    lines = [n for n in column.by_line if all(n in c.by_line for c in members)]
    if len(lines) < LEAST_AGREEING:
        return None
    logs = {
        n: math.log(column.by_line[n].value)
        - sum(power * math.log(c.by_line[n].value) for c, power in factors)
        for n in lines
    }
    for near in NEARNESS:
        middle = max(logs.values(), key=lambda v: sum(abs(v - o) <= near for o in logs.values()))
        agreeing = [n for n in lines if abs(logs[n] - middle) <= near]
        spreads = [c.spread(agreeing) for c in members]
        varied = [spread for spread in spreads if spread > 1e-9]
        if len(agreeing) < LEAST_AGREEING or len(varied) < 2 or min(varied) <= 4 * near:
            continue
        spread = min(varied)
        constant = math.exp(statistics.median(logs[n] for n in agreeing))
        # By its heading a utilisation is of a rate.
        of_rate = OF_RATE.search(column.words) and _quantity(factors[0][0]) == "rate"
        chance = float((1 if of_rate else tried) * math.comb(len(lines), len(agreeing)))
        chance *= (2 * near / spread) ** (len(agreeing) - 1)
        of_units = _is_of_units(constant, near)
        chance *= min(1.0, len(UNIT_QUOTIENTS) * 2 * near / math.log(10)) if of_units else 1.0
        alone = len(factors) == 1 and factors[0][1] == 1
        copied = (
            alone and abs(constant - 1) <= near and _quantity(column) == _quantity(factors[0][0])
        )
        few = alone and not of_units and len(agreeing) <= LEAST_AGREEING + 1
        if chance > BY_CHANCE or few or copied or (len(varied) < len(spreads) and not of_units):
            continue
        law = _Law(column, factors, constant, tuple(agreeing), (), chance)
        rest = [n for n in lines if n not in agreeing and _is_off(law, n, near)]
        if len(rest) > max(1, len(lines) // 4):
            return None
        return _Law(column, factors, constant, tuple(agreeing), tuple(rest), chance)
    return None


def _quantity(column: _Values) -> str:
    return column.unit.quantity if column.unit else ""


def _is_of_units(constant: float, near: float) -> bool:
    mantissa = constant / 10.0 ** math.floor(math.log10(constant) + near)
    return any(abs(math.log(mantissa / value)) <= near for value in UNIT_QUOTIENTS)


def _is_off(law: _Law, line: int, near: float) -> bool:
    """Return whether no numbers that round to a line's obey a law."""
    low = high = law.constant
    for column, power in law.factors:
        number = column.by_line[line]
        # What others agree by more closely than its digits would have it was set, and isn't rounded.
        coarse = [n.high / n.value - 1 for n in (column.by_line[x] for x in law.agreeing)]
        exact = statistics.median(coarse) > 2 * near
        ends = [number.value] if exact else [max(number.low, 1e-30), number.high]
        low, high = low * min(e**power for e in ends), high * max(e**power for e in ends)
    own = law.column.by_line[line]
    # Some cut digits off.
    digit = own.high - own.value
    above = own.low - digit > high * (1 + 2 * near)
    below = own.high + digit < low * (1 - 2 * near)
    # A window is no more than a bound, but where what others have was computed by it.
    bound = any(WINDOW.search(c.words) for c, _ in law.factors) and not _is_of_units(
        law.constant, EXACT
    )
    # As much as there is, and no more than that.
    full = (
        law.column.unit
        and law.column.unit.quantity == "ratio"
        and high > 1 / law.column.unit.factor
    )
    return above or (below and not bound and not full)


def laws_off(
    table: Table, elsewhere: Collection[frozenset[int]]
) -> tuple[list[Problem], list[tuple[str, int]], set[int]]:
    """Return the lines in which a column isn't the product or quotient of others that it is in most lines; what was
    compared, in how many lines; and the places of the columns."""
    lines = body_of(table)[:MOST_LINES]
    laws = laws_of(table, elsewhere)
    problems: dict[int, Problem] = {}
    seen: dict[int, tuple[str, int]] = {}
    places: set[int] = set()
    for law in laws:
        by = " and ".join(repr(c.heading) for c, _ in law.factors)
        count = len(law.agreeing) + len(law.off)
        seen.setdefault(law.column.place, (f"{law.column.heading!r}, by {by}", count))
        places |= {law.column.place, *(c.place for c, _ in law.factors)}
        for n in law.off:
            cell = lines[n].cell(law.column.place)
            again = law.again(n)
            shown = f"{again:.4g}" if again < 1e4 else f"{again:.0f}"
            text = f"{law.column.heading} {cell}; in {len(law.agreeing)} other rows it is {law.words}, which makes {shown} here"
            label = lines[n].cells[0] if not re.match(r"[\d.]+$", lines[n].cells[0]) else ""
            problems.setdefault(n, Problem((lines[n].number,), label, "quotient", text))
    return list(problems.values()), list(seen.values()), places


def numbers_unread(table: Table, report: TableReport) -> Iterator[str]:
    """Say which columns of numbers were not read, where no other was compared with any."""
    read = [column.place for column in report.columns if table.values(column.place)]
    places = [n for n, heading in enumerate(table.headings) if heading in report.unused]
    left = []
    for n in places:
        values, words = table.values(n), words_of(table.headings[n])[0]
        named = NO_VALUE.search(words) or APART.search(words)
        # What rises from row to row before all that was measured is what was set.
        rising = n < min(read, default=0) and all(a < b for a, b in pairwise(values))
        if len(set(values)) > 1 and len(values) * 2 > len(table.lines) and not named and not rising:
            left.append(table.headings[n])
    if left:
        several = "these columns of numbers were" if len(left) > 1 else "a column of numbers was"
        yield f"{several} not read: {listed(left)}"


def has_numbers(table: Table) -> bool:
    """Return whether a table has two columns of numbers, or more, so that something was measured in it."""
    counts = [len(table.values(place)) for place in range(len(table.headings))]
    return sum(count * 2 > len(table.lines) > 1 for count in counts) > 1


# So many numbers that all of two rows have in common weren't measured twice.
MANY_ALIKE = 4


def copies_off(table: Table, body: Sequence[Line]) -> Iterator[Problem]:
    """Yield the lines that have all their numbers in common with an earlier one of another name: of columns in which no other
    line has these, and enough."""
    numeric = [
        n for n in range(len(table.headings)) if len(table.values(n)) * 3 > len(table.lines) * 2
    ]
    names = [n for n in range(len(table.headings)) if n not in numeric]
    alike: dict[tuple[str, ...], list[Line]] = {}
    for line in body if names else ():
        alike.setdefault(tuple(line.cell(n) for n in numeric), []).append(line)
    for cells, lines in alike.items():
        others = [line for line in body if line not in lines]
        own = [
            table.headings[n]
            for n, cell in zip(numeric, cells, strict=True)
            if len(re.sub(r"[^1-9]", "", cell)) > 1 and all(line.cell(n) != cell for line in others)
        ]
        first = lines[0]
        for line in lines[1:] if len(own) >= MANY_ALIKE and others else ():
            if line.cell(names[0]) == first.cell(names[0]):
                continue
            whose = f"line {first.number} ({first.cell(names[0])})"
            text = f"all {len(numeric)} numbers are those of {whose}, under another name"
            yield Problem((line.number,), line.cell(names[0]), "copied", text)
