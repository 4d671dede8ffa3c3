"""Numbers as cells have them, units, and which column is what: by its heading's words, or as a person says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from measuretwice.base.errors import UserError

# Numbers and units

# What people write where there is no value.
NOTHING = {"", "-", "--", "n/a", "na", "null", "none", "\N{EN DASH}", "\N{EM DASH}"}
CELL = re.compile(r"([+-]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d{1,6})?)\s*(\D{0,12})")
# A longer number was not measured.
MOST_DIGITS = 60
# Nor were these: within them a float holds every product that is computed here.
LARGEST, SMALLEST = 1e30, 1e-30

RATE = re.compile(
    r"(?<![A-Za-z])(?P<prefix>[kKMmGg]i?)?(?P<what>[bB]its?|[bB]ytes?|[bB])"
    r"(?:[pP][sS]|/s(?:ec)?|[ _]?per[ _]?(?:second|sec|s))(?![A-Za-z])"
    r"|(?<![A-Za-z])(?P<short>[kKMmGg])[bB]its?(?:[ _]s)?(?![A-Za-z])"
)
TIME = re.compile(
    r"(?<![A-Za-z'])(?:(?P<ms>ms|msecs?|milliseconds?)|(?P<us>us|\N{MICRO SIGN}s|usecs?|microseconds?)"
    r"|(?P<s>s|secs?|seconds?))(?![A-Za-z])"
)
PERCENT = re.compile(r"%|(?<![A-Za-z])(?:per ?cent|pct)(?![A-Za-z])", re.IGNORECASE)
PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 1024.0, "mi": 1024.0**2, "gi": 1024.0**3}


@dataclass(frozen=True)
class Unit:
    """A unit as it is written, and how many bit/s, seconds or ones it is."""

    name: str
    factor: float
    quantity: str


@dataclass(frozen=True)
class Number:
    """A number as it was printed, and the interval that its last digit leaves open."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> Number:
        """Read `95.75` or `1.02E+11`; ValueError for anything else, and for what nobody measures."""
        try:
            exact = Decimal(text.strip())
            half = Decimal(5).scaleb(int(exact.as_tuple().exponent) - 1)
            number = cls(float(exact), float(exact - half), float(exact + half))
        except (ArithmeticError, TypeError, ValueError):
            raise ValueError(f"{text!r} is no number") from None
        if number.high > LARGEST or number.low < -LARGEST or 0 < abs(number.value) < SMALLEST:
            raise ValueError(f"{text!r} is no number that can be measured")
        return number

    def __mul__(self, factor: float) -> Number:
        return Number(self.value * factor, self.low * factor, self.high * factor)


def find_unit(text: str) -> tuple[Unit | None, str]:
    """Find a unit in a heading or behind a number: the unit, and the text without it."""
    if match := RATE.search(text):
        prefix = (match["short"] or match["prefix"] or "").lower()
        # Bps and B/s are bytes; but who writes MBPS writes all in capitals.
        what = match["what"] or "bit"
        large = what == "B" and not match[0].isupper()
        bits = 8 if large or what.lower().startswith("byte") else 1
        unit = Unit(match[0], PREFIXES[prefix] * bits, "rate")
    elif match := TIME.search(text):
        factor = {"ms": 1e-3, "us": 1e-6, "s": 1.0}[match.lastgroup or "s"]
        unit = Unit(match[0], factor, "time")
    elif match := PERCENT.search(text):
        unit = Unit("%", 0.01, "ratio")
    else:
        return None, text
    return unit, f"{text[: match.start()]} {text[match.end() :]}"


def read_cell(text: str, decimal_comma: bool) -> tuple[Number | None, Unit | None]:
    """Read a cell: its number, none where it is empty, and the unit behind it, if any.

    Digits may stand in groups of three. ValueError says what the text is not.
    """
    if text.lower() in NOTHING:
        return None, None
    bare = re.sub("(?<=\\d)[ \u00a0\u202f'](?=\\d{3})", "", text)
    match = CELL.fullmatch(bare)
    if not match or len(bare) > MOST_DIGITS:
        raise ValueError(f"{text[:30]!r} is no number")
    digits, behind = match[1], match[2].strip()
    mark, group = (",", ".") if decimal_comma else (".", ",")
    digits = re.sub(rf"(?<=\d)\{group}(?=\d{{3}}(?:\D|$))", "", digits).replace(mark, ".")
    unit = None
    if behind:
        unit, rest = find_unit(f" {behind}")
        if unit is None or rest.strip():
            raise ValueError(f"{text[:30]!r} is no number")
    return Number.of(digits), unit


def read_rate_bps(text: str) -> float:
    """Read a link's rate, `10gbit` or `100 Mbit/s`; UserError for anything else."""
    try:
        number, unit = read_cell(text.strip(), decimal_comma=False)
    except ValueError:
        number, unit = None, None
    if number is None or unit is None or unit.quantity != "rate" or number.value <= 0:
        raise UserError(f"--rate {text}: expected a rate with its unit, such as 10gbit or 100mbit")
    return number.value * unit.factor


def significant_digits(text: str) -> int:
    """Return how many digits of a number say something: without zeros at either end."""
    digits = re.sub(r"\D", "", re.split(r"[eE]", text)[0])
    return len(digits.strip("0"))


# Columns

LOSS = r"(?:retrans\w*|retr|loss(?:es)?|lost|drop(?:s|ped)?)"
HALF = r"(?:halv\w*|(?:cwnd?|window|congestion) (?:half|cuts?|decreases?)|\w*reductions?|congestion events?)"
SHARE_OF = r"(?:rate|ratio|prob\w*|fraction|share|per (?:packet|segment))"
# Beside a value: its bounds, its spread.
BESIDE = re.compile(r"\b(?:low|high|lower|upper|max|std|stdev|stddev|sd|ci|stderr|error)\b")
ROUTER = r"(?:router|queue|qdisc|switch|bottleneck)"
MEASURED_RATE = r"(?:goodput|throughput|tput|bandwidth|bw|bit ?rate)"


@dataclass(frozen=True)
class Name:
    """Something that a column can hold: what it is called here, its quantity, and its headings.

    `quantity` is rate, rate squared, time, bytes, ratio, count, number or text. Of names with
    `many` a table may have several columns.
    """

    name: str
    quantity: str
    help: str
    headings: str
    many: bool = False


# In this order: the first whose words a heading has. Words are in small letters, `/` is per.
NAMES: dict[str, Name] = {
    name.name: name
    for name in (
        Name("drops_per_halving", "number", "the router's drops over halvings",
             rf"{ROUTER}.*\bdrop\w*.* per .*{HALF}"),
        Name("losses_per_halving", "number", "losses over halvings",
             rf"{LOSS}.* per .*{HALF}|^ratio$"),
        Name("drops", "count", "packets that the router dropped", rf"{ROUTER}.*\bdrop"),
        Name("sent", "count", "packets that the router sent",
             rf"{ROUTER}.*\b(?:sent|packets|forwarded|passed)"),
        Name("c_by_halvings", "number", "C as it was published, by halvings",
             rf"^(?:mathis )?c (?:by |from )?(?:cwnd|{HALF})|simple2 coef"),
        Name("c_by_losses", "number", "C as it was published, by losses",
             rf"^(?:mathis )?c (?:by |from )?(?:ss|iperf3?|packet |{LOSS})|simple1 coef"),
        Name("model_by_halvings", "rate", "the model's rate with C = 1, by halvings",
             rf"^x2$|model.*{HALF}"),
        Name("model_by_losses", "rate", "the model's rate with C = 1, by losses",
             rf"^x1$|model.*{LOSS}"),
        Name("halving_ratio", "ratio", "halvings over segments sent", rf"{HALF}.*\b{SHARE_OF}"),
        Name("halvings", "count", "how often the window was halved", HALF),
        Name("loss_ratio", "ratio", "losses over segments sent",
             rf"{LOSS}.*\b{SHARE_OF}|^p$|^(?:packet )?loss$"),
        Name("losses", "count", "segments lost or sent again", rf"\b{LOSS}\b"),
        Name("index", "ratio", "Jain's index", r"\b(?:jains?|jfi|fairness)\b|^index$"),
        Name("squares", "rate squared", "the sum of the squares of all flows' rates",
             r"\b(?:sq|squared?|squares|sumsq|x2)\b"),
        Name("asked", "count", "flows that were asked for",
             r"\b(?:asked|requested|configured|expected)\b.*\bflows\b|\bflows .*\b(?:asked|requested)\b|^asked"),
        Name("flows", "count", "how many flows there were",
             r"\b(?:flows|flow count|ports|connections|nflows)\b|^n$"),
        Name("link", "rate", "the link's rate", r"\b(?:link|capacity|bottleneck)\b"),
        Name("fair_share", "ratio", "what would be fair", r"\bfair share\b"),
        Name("share", "ratio", "its share of all that was carried", r"\b(?:share|portion)\b"),
        Name("setting", "text", "what was set for a row", r"\b(?:base|configured|set|min|prop\w*) ?"
             r"(?:rtt|delay)|\bminrtt\b|\b(?:duration|seed|buffer|delay|interval|scale)\b|^time\b",
             many=True),
        Name("segments", "count", "segments sent",
             r"\b(?:segs?|segments|packets|pkts)\b|^sent$"),
        Name("total", "rate", "the sum of all flows' rates",
             r"^(?!.*(?:bytes|model)).*\b(?:total|sum|aggregate|overall|combined)\b"),
        Name("rtt", "time", "the mean round-trip time", r"\b(?:s?rtt|round trip|latency)\b"),
        Name("mss", "bytes", "bytes of data in a segment", r"\b(?:mss|segment size)\b"),
        Name("goodput", "rate", "a flow's rate", rf"^(?!.*model).*\b(?:{MEASURED_RATE}|rate|speed)\b|^$"),
        Name("algorithm", "text", "the algorithm",
             r"\b(?:algorithm|algo|cca?|congestion control|variant|protocol)\b|^tcp$"),
        Name("run", "text", "which run a row belongs to",
             r"\b(?:run|experiment|trial|repeat|repetition)\b", many=True),
        Name("flow", "text", "which flow a row is",
             r"\b(?:flow|port|stream|connection|socket|sender|receiver|id)\b", many=True),
        Name("label", "text", "what a row is called",
             r"\b(?:name|label|what|row|test|case|title|scenario)\b", many=True),
    )
}  # fmt: skip
# Of these a table of flows has none: a row is a whole run then.
OF_RUNS = {"total", "squares", "index", "flows", "asked", "c_by_losses", "c_by_halvings", "share"}


@dataclass(frozen=True)
class Choice:
    """What a person said of a column: NAME=COLUMN:UNIT. An empty column means that there is none."""

    name: str
    column: str
    unit: Unit | None = None


@dataclass(frozen=True)
class Column:
    """A column that is known: its name here, its heading, its index, and its unit where it has one."""

    name: str
    heading: str
    place: int
    unit: Unit | None

    @property
    def description(self) -> str:
        """The column as text: `goodput ("bandwidth_port", bit/s)`."""
        behind = f", {self.unit.name}" if self.unit and self.unit.name not in self.heading else ""
        return f"{self.name} ({self.heading!r}{behind})"


def read_choices(texts: Iterable[str]) -> tuple[Choice, ...]:
    """Read what --columns says: NAME=COLUMN or NAME=COLUMN:UNIT, several between commas."""
    found = []
    for text in texts:
        # A column's own heading may have a comma in it: what has no = belongs to what is before.
        for part in re.split(r",(?=\s*\w+=)", text):
            name, equals, column = (piece.strip() for piece in part.partition("="))
            if not equals or name not in NAMES:
                raise UserError(
                    f"--columns {part.strip()}: expected NAME=COLUMN, with NAME one of {', '.join(NAMES)}"
                )
            heading, colon, behind = column.rpartition(":")
            unit = find_unit(f" {behind.strip()}")[0] if colon else None
            if unit is not None:
                column = heading.strip()
            if unit and unit.quantity != NAMES[name].quantity.split()[0]:
                raise UserError(
                    f"--columns {part.strip()}: {unit.name} is no unit of a {NAMES[name].quantity}"
                )
            found.append(Choice(name, column, unit))
    return tuple(found)


def words_of(heading: str) -> tuple[str, Unit | None]:
    """A heading's words in small letters, with blanks between, and its unit: `mean rtt`, ms."""
    unit, rest = find_unit(heading)
    rest = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", rest).replace("/", " per ")
    words = re.sub(r"[\W_]+", " ", rest.lower().replace("'s", "s"))
    return words.strip(), unit


def _name_of(heading: str) -> tuple[Name | None, Unit | None]:
    words, unit = words_of(heading)
    if BESIDE.search(words) or not (words or (unit and unit.quantity == "rate")):
        return None, unit
    for name in NAMES.values():
        if re.search(name.headings, words):
            return name, unit
    return None, unit


def known_columns(
    headings: Sequence[str], choices: Sequence[Choice], source: str
) -> dict[str, list[Column]]:
    """Return the columns that are known, by name: one each, but for names with `many`.

    UserError, in one line, where none is, where two could be the same, or where a choice names
    none.
    """
    found: dict[str, list[Column]] = {}
    chosen = _chosen(headings, choices, source)
    chosen_indices = {column.place for column in chosen}
    settled = {choice.name for choice in choices}
    for index, heading in enumerate(headings):
        name, unit = _name_of(heading)
        if name is None or index in chosen_indices or name.name in settled:
            continue
        if unit is not None and unit.quantity == "rate" and name.name == "flow":
            continue  # the sender's rate is no sender
        fits = unit is not None and unit.quantity == name.quantity.split()[0]
        found.setdefault(name.name, []).append(
            Column(name.name, heading, index, unit if fits else None)
        )
    for column in chosen:
        found.setdefault(column.name, []).append(column)
    if "goodput" in found and "total" not in found and OF_RUNS & set(found) - {"share"}:
        found["total"] = [
            Column("total", column.heading, column.place, column.unit)
            for column in found.pop("goodput")
        ]
    _refuse_twins(found, source)
    if not any(NAMES[name].quantity != "text" for name in found):
        raise UserError(
            f"{source}: no column is known; found {_listed(headings)}: say which is what with "
            "--columns, such as --columns goodput=COLUMN:Mbit/s"
        )
    return found


def _chosen(headings: Sequence[str], choices: Sequence[Choice], source: str) -> list[Column]:
    columns = []
    for choice in choices:
        if not choice.column:
            continue
        indices = [index for index, heading in enumerate(headings) if heading == choice.column]
        if len(indices) != 1:
            times = "twice" if indices else "nowhere"
            raise UserError(
                f"--columns {choice.name}={choice.column}: stands {times} in {source}; its columns: "
                f"{_listed(headings)}"
            )
        unit = choice.unit
        if unit is None:
            _, unit = words_of(choice.column)
            if unit and unit.quantity != NAMES[choice.name].quantity.split()[0]:
                unit = None
        columns.append(Column(choice.name, choice.column, indices[0], unit))
    return columns


def _refuse_twins(found: dict[str, list[Column]], source: str) -> None:
    twins = {
        name: columns
        for name, columns in found.items()
        if len(columns) > 1 and not NAMES[name].many
    }
    if twins:
        asked = "; ".join(
            f"{NAMES[name].help}: {' or '.join(repr(column.heading) for column in columns)}?"
            for name, columns in twins.items()
        )
        given = ",".join(f"{name}={columns[0].heading}" for name, columns in twins.items())
        raise UserError(f"{source}: {asked} Say which, such as --columns '{given}'")


def _listed(headings: Sequence[str], most: int = 12) -> str:
    some = ", ".join(repr(heading[:40]) for heading in headings[:most])
    return f"{some} and {len(headings) - most} more" if len(headings) > most else some
