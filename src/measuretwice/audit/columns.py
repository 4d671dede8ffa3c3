"""Which column is what: by its heading's words and unit, by what its cells hold, or as a person says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.cells import Unit, find_unit, words_of
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import jains_index

LOSS = r"(?:retrans\w*|retr|retx|retries|loss(?:es)?|lost|drop(?:s|ped)?)"
HALF = r"(?:halv\w*|(?:cwnd?|window|congestion) (?:half|cuts?|decreases?)|\w*reductions?|congestion events?)"
SHARE_OF = r"(?:rate|ratio|prob\w*|fraction|share|per (?:packet|segment))"
# Beside a mean: its bounds, and its spread. These say no more than the order in which they stand.
STATISTIC = re.compile(
    r"\b(?:min|max|median|p\d{1,3}|\d\dth|low|high|lower|upper|std|ci|error|range|iqr|percentile|span|spread)\b"
)
SPREADS = ("std", "ci", "error", "range", "iqr", "percentile", "span", "spread")
ROUTER = r"(?:router|queue|qdisc|switch|bottleneck)"
MEASURED_RATE = (
    r"(?:goodput|throughput|tput|thruput|bandwidth|bw|bit ?rate|(?:transfer|data|delivery|receive[rd]?|sending|send) rate"
    r"|(?:download|upload|transfer) speed)"
)
SUM = r"(?:total|sum|aggregated?|overall|combined)"
# No amount that was carried, though it has a size.
NO_AMOUNT = rf"{LOSS}|buffer|queue|window|cwnd?|packets?|pkts?|seg\w*|block|mtu|mss|socket|flight|rate|speed|per|time"
# Nor a flow's rate, though its unit is one.
NO_RATE = re.compile(
    r"\b(?:retention|efficiency|ratio|overhead|speed ?up|gain|improvement|diff\w*|delta|change|jitter|pacing|error|std|reserved|background|cross|models?|predicted|theor\w+|expected|mathis)\b"
)


@dataclass(frozen=True)
class Name:
    """Something that a column can hold: what it is called here, its quantity, and its headings.

    `quantity` is rate, rate squared, time, bytes, ratio, count, number or text. Of names with
    `many` a table may have several columns. A unit of another quantity rules a name out.
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
        Name("section", "text", "the heading above a row's table", r"^section$"),
        Name("utilisation", "ratio", "its rate over the link's",
             r"^(?!.*\b(?:cpu|memory|mem|ram|core)\b).*\b(?:utili[sz]ation|link usage)\b|^of (?:the )?(?:link|capacity)\b"),
        Name("drops_per_halving", "number", "the router's drops over halvings", rf"{ROUTER}.*\bdrop\w*.* per .*{HALF}"),
        Name("losses_per_halving", "number", "losses over halvings", rf"{LOSS}.* per .*{HALF}|^ratio$"),
        Name("drops", "count", "packets that the router dropped", rf"{ROUTER}.*\bdrop"),
        Name("sent", "count", "packets that the router sent", rf"{ROUTER}.*\b(?:sent|packets|forwarded|passed)"),
        Name("c_by_halvings", "number", "C as it was published, by halvings", rf"^(?:mathis )?c (?:by |from )?(?:cwnd|{HALF})|simple2 coef"),
        Name("c_by_losses", "number", "C as it was published, by losses",
             rf"^(?:mathis )?c (?:by |from )?(?:ss|iperf3?|packet |{LOSS})|simple1 coef"),
        Name("model_by_halvings", "rate", "the model's rate with C = 1, by halvings", rf"^x2$|model.*{HALF}"),
        Name("model_by_losses", "rate", "the model's rate with C = 1, by losses", rf"^x1$|model.*{LOSS}"),
        Name("halving_ratio", "ratio", "halvings over segments sent", rf"{HALF}.*\b{SHARE_OF}"),
        Name("halvings", "count", "how often the window was halved", HALF),
        Name("loss_ratio", "ratio", "losses over segments sent", rf"{LOSS}.*\b{SHARE_OF}|^p$|^(?:packet )?loss$"),
        Name("losses", "count", "segments lost or sent again", rf"\b{LOSS}\b"),
        Name("index", "ratio", "Jain's index", r"\b(?:jains?|jfi|fairness)\b|^index$"),
        Name("squares", "rate squared", "the sum of the squares of all flows' rates",
             r"\b(?:sq|squared?|squares|sumsq|x2)\b"),
        Name("asked", "count", "flows that were asked for",
             r"\b(?:asked|requested|configured|expected)\b.*\bflows\b|\bflows .*\b(?:asked|requested)\b|^asked"),
        Name("flows", "count", "how many flows there were",
             rf"^(?!.*\b(?:{MEASURED_RATE}|total|sum|per)\b).*\b(?:flows|flow count|ports|connections|nflows)\b|^n$|^number (?:of |de )?(?:tcp )?flows?$"
             r"|^(?:no |number |num |n |count |parallel |concurrent |tcp |of )*(?:streams|users|clients|senders)$"),
        Name("per_flow", "rate", "the mean rate of a run's flows", rf"{MEASURED_RATE} per (?:flow|stream|connection|user)"),
        Name("link", "rate", "the link's rate",
             r"^(?!.*\b(?:throughput|goodput|delay|latency|buffer|queue|drops?|loss|rtt)\b)"
             r".*\b(?:link|capacity|bottleneck|line rate|shap\w+|tc rate|(?:rate|bandwidth|bw) (?:limit|cap)"
             r"|(?:configured|emulated|nominal|set) (?:bandwidth|bw|rate))\b"),
        Name("offered", "text", "what was offered, or asked for",
             r"\b(?:offered|target\w*|demand\w*|requested|nominal)\b.*\b(?:rate|load|throughput|bandwidth|bw|bit ?rate)\b"
             r"|\b(?:rate|throughput|bandwidth|bw|bit ?rate) (?:offered|target|demand|requested)\b|^(?:offered|target|demand|load)$",
             many=True),
        Name("fair_share", "ratio", "what would be fair", r"\bfair share\b"),
        Name("share", "ratio", "its share of all that was carried", r"\b(?:share|portion)\b"),
        Name("base_rtt", "time", "the round-trip time that was set",
             r"\b(?:base|configured|set|prop\w*|nominal|emulated) ?(?:rtt|round trip)\b"),
        Name("duration", "time", "how long it took",
             r"\b(?:duration|elapsed|fct|(?:completion|transfer|download|upload|test|run|total) time|runtime|interval)\b"
             r"|^(?:seconds?|secs?)$"),
        Name("buffer", "count", "packets for which a queue has room",
             r"^(?!.*\b(?:drops?|mean|max|min|delay|occupancy)\b).*\b(?:buffer|queue|limit)\b.*\b(?:packets|pkts|pkt|p)\b"),
        Name("setting", "text", "what was set for a row", r"\b(?:base|configured|set|prop\w*) ?(?:delay|latency)|"
             r"\b(?:seed|buffer|delay|scale|queue|qdisc|aqm|setting|scenario|direction|topology)\b|^time(?:stamp)?\b|^t$",
             many=True),
        Name("bytes", "bytes", "what was carried",
             rf"^(?!.*\b(?:{NO_AMOUNT})\b).*\b(?:bytes|transfer(?:red)?|(?:file |flow |data )?size|volume|data|sent|received)\b"
             rf"|^$"),
        Name("received", "count", "packets that arrived",
             r"\b(?:received|rx|delivered|recv)\b.*\b(?:packets|pkts|segments|datagrams)\b"
             r"|\b(?:packets|pkts|segments|datagrams)\b.*\b(?:received|rx|delivered|recv)\b|^(?:received|rx)$"),
        Name("segments", "count", "segments sent", r"\b(?:segs?|segments|packets|pkts)\b|^sent$"),
        Name("total", "rate", "the sum of all flows' rates",
             rf"^(?:(?:the|of|all|flows?|rates?|tcp|mean|{MEASURED_RATE}|{SUM}) )*{SUM}"
             rf"(?: (?:of|all|flows?|rates?|tcp|mean|{MEASURED_RATE}))*$"),
        Name("rtt", "time", "the mean round-trip time", r"\b(?:s?rtt|round trip|latency|ping)\b"),
        Name("mss", "bytes", "bytes of data in a segment", r"\b(?:mss|segment size)\b"),
        Name("sent_rate", "rate", "the rate at which it was sent, where another column has what arrived", r"(?!)"),
        Name("goodput", "rate", "a flow's rate",
             rf"^(?!.*model).*\b{MEASURED_RATE}\b|^(?:(?:own|mean|flow|data) )*(?:rate|speed)$|^$"),
        Name("value", "number", "the mean of something, where other columns have its least and most", r"(?!)"),
        Name("algorithm", "text", "the algorithm",
             r"\b(?:algorithm|algo|cca?|congestion control|variant|protocol)\b|^tcp$"),
        Name("run", "text", "which run a row belongs to",
             r"\b(?:run|experiment|trial|repeat|repetition)\b", many=True),
        Name("flow", "text", "which flow a row is",
             r"\b(?:flow|port|stream|connection|socket)\b", many=True),
        Name("label", "text", "what a row is called",
             r"\b(?:name|label|what|row|test|case|title|file|id|sender|receiver|client|server|host)\b", many=True),
    )
}  # fmt: skip
# These are of all flows of a run.
OF_RUNS = {"total", "squares", "index", "flows", "asked", "c_by_losses", "c_by_halvings"}


def quantity_of(key: str) -> str:
    """The quantity of a name, also where a statistic stands before it: `p99 rtt` is a time."""
    return NAMES[key.split()[-1]].quantity


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
    choices = []
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
            choices.append(Choice(name, column, unit))
    return tuple(choices)


# What a column is

# Headings of columns beside each other that differ only in this are flows of one run.
NUMBERED = re.compile(
    r"\b(?:flows?|streams?|clients?|senders?|servers?|hosts?|users?|conn\w*|node|sta|h|s|c|f)? ?(?:\d+|[a-d])\b"
)
FLOW_WORD = re.compile(
    r"\b(?:flow|stream|client|sender|host|user|conn\w*|node|sta|h|s|c|f) ?(?:\d+|[a-d])\b"
)
SENT = re.compile(r"\b(?:send|sender|sent|sending|tx|upload)\b")
ARRIVED = re.compile(r"\b(?:receive[rd]?|receiving|recv|rx|deliver\w*|goodput|throughput)\b")
# A rate that was set is round: this many digits of it say something.
ROUND_DIGITS = 2
# How far the parts of a row may be from what stands beside them, to be taken for its parts.
PARTS = 0.01
# A longer heading is a sentence.
MOST_WORDS = 10
# More ways to read one table are no table of results.
MOST_VIEWS = 12
# Of these each of several columns is looked at; of others the first.
LEADING = (
    "goodput",
    "total",
    "losses",
    "loss_ratio",
    "index",
    "rtt",
    "bytes",
    "share",
    "utilisation",
)

Known = dict[str, list[Column]]
# A column's values that are numbers, by its index.
Values = Callable[[int], Sequence[float]]


def name_of(heading: str, cells: Unit | None = None) -> tuple[str, Unit | None]:
    """Return what a column is called here, `goodput` or `min rtt`, empty where that isn't known; and its heading's unit.

    `cells` is the unit that its cells have, where they have one.
    """
    words, own, has_value = words_of(heading)
    unit = own or cells
    statistic = STATISTIC.search(words)
    if statistic:
        words = re.sub(r"\b(?:mean|value|bound)\b", "", STATISTIC.sub("", words))
    words = " ".join(words.split())
    quantity = unit.quantity if unit else ""
    if len(words.split()) > MOST_WORDS:
        return "", own
    if not words and not statistic and own and own.name.lower().startswith("sec"):
        return "duration", own
    if not words and (quantity != "rate" if statistic else quantity not in ("rate", "bytes")):
        return "", own
    for name in NAMES.values():
        if not re.search(name.headings, words) or (
            name.name == "goodput" and NO_RATE.search(words)
        ):
            continue
        wanted = name.quantity.split()[0]
        if quantity == "ratio" and name.name in ("losses", "goodput"):
            return ("loss_ratio" if name.name == "losses" else "utilisation"), own
        if unit and wanted not in ("text", quantity):
            continue
        if name.name == "bytes" and not unit and not re.search(r"bytes|transfer|file size", words):
            continue
        if has_value and name.name != "goodput":
            return "", own
        if statistic:
            measured = wanted in ("rate", "time") and statistic[0] not in SPREADS
            kind = "median" if statistic[0] in ("p50", "50th") else statistic[0]
            return (f"{kind} {name.name}" if measured else ""), own
        return name.name, own
    if quantity == "rate" and not statistic and not NO_RATE.search(words):
        return "goodput", own
    return "", own


def known_columns(
    headings: Sequence[str],
    choices: Sequence[Choice],
    source: str,
    values: Values,
    cell_unit: Callable[[int], Unit | None],
) -> list[Known]:
    """Return the columns that are known, by name, once for each way to read the table.

    There are several ways where columns beside each other hold the same of different things, as the rates of TCP and of
    UDT. UserError, in one line, where no column is known, or where a choice names none.
    """
    by_name: Known = {}
    chosen = _chosen(headings, choices, source)
    chosen_indices = {column.place for column in chosen}
    settled = {choice.name for choice in choices}
    for index, heading in enumerate(headings):
        name, unit = name_of(heading, cell_unit(index))
        if not name or index in chosen_indices or name in settled:
            continue
        cells = unit or cell_unit(index)
        if cells and cells.quantity == "rate" and name in ("flow", "label", "run", "algorithm"):
            name = "goodput"  # the sender's rate is no sender
        fits = unit is not None and unit.quantity == quantity_of(name).split()[0]
        by_name.setdefault(name, []).append(Column(name, heading, index, unit if fits else None))
    for column in chosen:
        by_name.setdefault(column.name, []).append(column)
    _add_unnamed(by_name, headings, values, settled | {column.heading for column in chosen})
    _sort_times(by_name, settled)
    _sort_rates(by_name, values, settled)
    _attach_statistics(by_name)
    if not any(quantity_of(name) != "text" for name in by_name):
        raise UserError(
            f"{source}: no column is known; found {_listed(headings)}: say which is what with "
            "--columns, such as --columns goodput=COLUMN:Mbit/s"
        )
    return _views(by_name)


def _add_unnamed(
    by_name: Known, headings: Sequence[str], values: Values, left_out: set[str]
) -> None:
    """Take columns that are called `flow 1` and `flow 2` for their rates, where something is of all flows; and those that
    are called `min` and `max` and no more for statistics of one value."""
    plain = [
        (place, words_of(heading)[0])
        for place, heading in enumerate(headings)
        if heading not in left_out
    ]
    flows = [place for place, words in plain if FLOW_WORD.fullmatch(words) and values(place)]
    if (
        len(flows) > 1
        and not {"goodput", "goodput="} & (set(by_name) | left_out)
        and OF_RUNS & set(by_name)
    ):
        by_name["goodput"] = [Column("goodput", headings[place], place, None) for place in flows]
        for name in ("flow", "label"):
            by_name[name] = [
                column for column in by_name.get(name, []) if column.place not in flows
            ]
    bare = [(place, "" if words == "mean" else words) for place, words in plain
            if (words == "mean" or STATISTIC.fullmatch(words)) and words not in SPREADS]  # fmt: skip
    if len(bare) > 1:
        for place, statistic in bare:
            key = f"{statistic.replace('p50', 'median')} value".strip()
            by_name[key] = [Column(key, headings[place], place, None)]


def _sort_times(by_name: Known, settled: set[str]) -> None:
    """Tell a round-trip time that was set from a delay, and how long a row took from when it was."""
    measured = [words_of(column.heading)[0] for column in by_name.get("rtt", [])]
    if "base_rtt" in by_name and not any(
        re.search(r"rtt|round trip|ping", words) for words in measured
    ):
        # A latency may be of one way.
        set_so = [replace(column, name="setting") for column in by_name.pop("base_rtt")]
        by_name["setting"] = by_name.get("setting", []) + set_so
    times = [
        column
        for column in by_name.get("setting", [])
        if words_of(column.heading)[0] in ("time", "time taken", "total time")
    ]
    if "bytes" in by_name and "duration" not in settled | set(by_name) and len(times) == 1:
        # Bytes over it will tell whether it is how long each row took.
        unit = words_of(times[0].heading)[1]
        fits = unit is not None and unit.quantity == "time"
        by_name["duration"] = [replace(times[0], name="duration", unit=unit if fits else None)]


def _sort_rates(by_name: Known, values: Values, settled: set[str]) -> None:
    """Of several rates: the link's is round, the sender's is not what arrived, and those of numbered flows are parts."""
    rates = by_name.get("goodput", []) + by_name.get("total", [])
    if len(rates) > 1 and "link" not in by_name and "goodput" not in settled:
        for column in by_name.get("goodput", []):
            words, _, _ = words_of(column.heading)
            named = re.search(r"\b(?:bandwidth|bw|rate|speed)\b", words) and not STATISTIC.search(
                words
            )
            own, others = (
                values(column.place),
                [v for c in rates if c is not column for v in values(c.place)],
            )
            set_so = len(set(own)) < len(own) or not all(map(_is_round, others))
            if named and own and all(map(_is_round, own)) and set_so:
                by_name["link"] = [replace(column, name="link")]
                by_name["goodput"] = [c for c in by_name["goodput"] if c is not column]
                break
    for name in ("goodput", "total"):
        columns = by_name.get(name, [])
        sent = [c for c in columns if SENT.search(words_of(c.heading)[0])]
        arrived = [c for c in columns if c not in sent and ARRIVED.search(words_of(c.heading)[0])]
        if name not in settled and sent and arrived:
            by_name[name] = [c for c in columns if c not in sent]
            by_name["sent_rate"] = [replace(c, name="sent_rate") for c in sent]
    columns = by_name.get("goodput", [])
    bare = {NUMBERED.sub("#", words_of(c.heading)[0]) for c in columns}
    numbered = len(bare) == 1 and all(FLOW_WORD.search(words_of(c.heading)[0]) for c in columns)
    if (
        len(columns) > 1
        and "goodput" not in settled
        and (numbered or _are_parts(columns, by_name, values))
    ):
        for number, column in enumerate(columns, 1):
            by_name[f"{number} goodput"] = [replace(column, name=f"{number} goodput")]
        if not any(
            len(by_name.get(name, ())) == len(columns) for name in ("bytes", "rtt", "losses")
        ):
            by_name["goodput"] = []
    for name in ("goodput", "total"):
        if name in by_name and not by_name[name]:
            del by_name[name]


def _are_parts(columns: Sequence[Column], by_name: Known, values: Values) -> bool:
    """Return whether in half of the rows and more the rates add up to the total beside them, or have its index."""
    rows = list(zip(*(values(column.place) for column in columns), strict=False))
    for name in ("total", "index"):
        stated = values(by_name[name][0].place) if name in by_name else []
        if (
            not rows
            or len(stated) != len(rows)
            or any(len(values(c.place)) != len(rows) for c in columns)
        ):
            continue
        again = [
            sum(row) if name == "total" else jains_index(row) if any(row) else 0.0 for row in rows
        ]
        near = sum(abs(a - s) <= PARTS * abs(s) for a, s in zip(again, stated, strict=True))
        if near * 2 >= len(rows):
            return True
    return False


def _is_round(value: float) -> bool:
    return len(f"{value:.8e}".split("e")[0].replace(".", "").strip("0")) <= ROUND_DIGITS


def _attach_statistics(by_name: Known) -> None:
    """A median stands for the mean where there is none; of bounds only those of one thing count."""
    for key in [key for key in by_name if " " in key]:
        statistic, name = key.split()
        if statistic == "median" and name not in by_name:
            by_name[name] = [replace(column, name=name) for column in by_name[key]]
        elif len(by_name[key]) > 1:
            del by_name[key]


def _views(by_name: Known) -> list[Known]:
    """One for each of several columns of one name; columns of other names with as many go with them, in their order."""
    twins = {
        name: columns
        for name, columns in by_name.items()
        if len(columns) > 1 and not (name in NAMES and NAMES[name].many)
    }
    leader = next((name for name in LEADING if name in twins), "")
    if not leader:
        return [by_name | {name: columns[:1] for name, columns in twins.items()}]
    views = []
    for index, column in enumerate(twins[leader][:MOST_VIEWS]):
        view = dict(by_name)
        for name, columns in twins.items():
            if len(columns) == len(twins[leader]):
                view[name] = [columns[index]]
            else:
                alike = [c for c in columns if _rest(c) and _rest(c) == _rest(column)]
                view[name] = alike[:1] or columns[:1]
        views.append(view)
    return views


def headings_apart(views: Sequence[Known]) -> list[str]:
    """Return what each way to read a table is called: the headings that only it has read."""
    if len(views) == 1:
        return [""]
    read = [
        {columns[0].heading: None for name, columns in view.items() if " " not in name}
        for view in views
    ]
    return [
        ", ".join([h for h in own if not all(h in other for other in read)][:2]) or next(iter(own))
        for own in read
    ]


def _rest(column: Column) -> str:
    """A heading's words but for those that say what it holds."""
    words = words_of(column.heading)[0]
    return re.sub(
        rf"\b(?:{MEASURED_RATE}|mean|rtt|latency|transfer|bytes|rate|{LOSS})\b", "", words
    ).strip()


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
        unit = choice.unit or words_of(choice.column)[1]
        if unit and unit.quantity != NAMES[choice.name].quantity.split()[0]:
            unit = None
        columns.append(Column(choice.name, choice.column, indices[0], unit))
    return columns


def _listed(headings: Sequence[str], most: int = 12) -> str:
    some = ", ".join(repr(heading[:40]) for heading in headings[:most])
    return f"{some} and {len(headings) - most} more" if len(headings) > most else some
