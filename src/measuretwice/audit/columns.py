"""Which column is what: by its heading's words and unit, by what its cells hold, or as a person says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.cells import Unit, listed, places_of, unknown_columns, words_of
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import jains_index

LOSS = r"(?:retrans\w*|retr|retx|retries|loss(?:es)?|lost|drop(?:s|ped)?)"
HALF = r"(?:halv\w*|(?:cwnd?|window|congestion) (?:half|cuts?|decreases?)|\w*reductions?|congestion events?)"
SHARE_OF = r"(?:rate|ratio|prob\w*|fraction|share|per (?:packet|segment))"
# Beside a mean: its bounds, and its spread. These say no more than the order in which they stand.
STATISTIC = re.compile(
    r"\b(?:min|max|median|p(?:[2579]5|[1-9]0|9[0-9]{1,3})|\d\dth|low|high|lower|upper"
    r"|std|ci|confidence|error|range|iqr|percentile|span|spread)\b"
)
# A bound of an interval is no spread.
BOUND = re.compile(r"\b(?:low|high|lower|upper)\b")
SPREADS = "std ci confidence error range iqr percentile span spread".split()
ROUTER = r"(?:router|queue|qdisc|switch|bottleneck)"
MEASURED_RATE = (
    r"(?:goodput|throughput|tput|thruput|bandwidth|bw|bit ?rate|(?:transfer|data|delivery|receive[rd]?|sending|send) rate"
    r"|(?:download|upload|transfer) speed)"
)
SUM = r"(?:total|sum|aggregated?|overall|combined)"
# No amount that was carried, though it has a size.
NO_AMOUNT = rf"{LOSS}|buffer|queue|window|cwnd?|packets?|pkts?|seg\w*|block|mtu|mss|frame|message|payload|socket|flight|rate|speed|per|time"
# What is of a machine, though a sender's or a receiver's.
OF_MACHINE = re.compile(r"\b(?:cpu|memory|mem|ram|power|energy)\b")
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
        Name("utilisation", "ratio", "the rate over the link's",
             r"^(?!.*\b(?:cpu|memory|mem|ram|core)\b).*\b(?:utili[sz]ation|link usage)\b|^of (?:the )?(?:link|capacity|advertised|nominal|line rate)\b"),
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
        Name("delivered", "ratio", "what arrived over what was sent", r"\b(?:delivery|delivered|reception) (?:ratio|fraction|share)\b|^pdr$"),
        Name("loss_ratio", "ratio", "losses over segments sent", rf"{LOSS}.*\b{SHARE_OF}|\brate (?:de |of |di )?(?:packets? )?{LOSS}|^p$|^(?:packet )?loss$"),
        Name("losses", "count", "segments lost or sent again", rf"\b{LOSS}\b"),
        Name("index", "ratio", "Jain's index", r"\b(?:jains?|jfi|fairness)\b|^index$"),
        Name("squares", "rate squared", "the sum of the squares of all flows' rates",
             r"\b(?:sq|squared?|squares|sumsq|x2)\b"),
        Name("asked", "count", "flows that were asked for",
             r"\b(?:asked|requested|configured|expected)\b.*\bflows\b|\bflows .*\b(?:asked|requested)\b|^asked"),
        Name("flows", "count", "how many flows there were",
             rf"^(?!.*\b(?:{MEASURED_RATE}|total|sum|per)\b).*\b(?:flows|flow count|ports|connections|nflows)\b|^n$|^number (?:of |de )?(?:tcp )?flows?$"
             r"|^total (?:number of |no of )?(?:tcp |udp )?(?:flows|connections|streams)$"
             r"|^(?:no |number |num |n |count |parallel |concurrent |tcp |of )*(?:streams|users|clients|senders)$"),
        Name("per_flow", "rate", "the mean rate of a run's flows", rf"{MEASURED_RATE} per (?:flow|stream|connection|user)|^(?:mean )?per (?:flow|stream|connection|user)(?: {MEASURED_RATE})?$"),
        Name("link", "rate", "the link's rate",
             r"^(?!.*\b(?:throughput|goodput|delay|latency|buffer|queue|drops?|loss|rtt)\b)"
             r".*\b(?:link|capacity|bottleneck|line rate|shap\w+|tc rate|(?:rate|bandwidth|bw) (?:limit|cap)"
             r"|(?:configured|emulated|nominal|set|specified|advertised) (?:bandwidth|bw|rate|speed))\b|^(?:advertised|nominal|nic|port speed)$"),
        Name("offered", "text", "what was offered, or asked for",
             r"\b(?:offered|target\w*|demand\w*|requested|nominal)\b.*\b(?:rate|load|throughput|bandwidth|bw|bit ?rate)\b"
             r"|\b(?:rate|throughput|bandwidth|bw|bit ?rate) (?:offered|target|demand|requested)\b|^(?:offered|target|demand|load)$",
             many=True),
        Name("fair_share", "ratio", "what would be fair", r"\bfair share\b"),
        Name("share", "ratio", "the share of all that was carried", r"\b(?:share|portion)\b"),
        Name("base_rtt", "time", "the round-trip time that was set",
             r"\b(?:base|configured|set|prop\w*|nominal|emulated) ?(?:rtt|round trip)\b"),
        Name("duration", "time", "how long the run or transfer took",
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
        Name("rtt", "time", "the mean round-trip time", r"^(?!.*\b(?:var|variance|varies|jitter|per|count|number|loss|worst|buffer|queue|queues|queued|queuing|queueing|gap|variation|mdev|product)\b).*\b(?:s?rtt|round trip|latency|ping)\b"),
        Name("mss", "bytes", "bytes of data in a segment", r"\b(?:mss|segment size)\b"),
        Name("sent_rate", "rate", "the rate at which it was sent, where another column has what arrived", r"(?!)"),
        Name("offered_rate", "rate", "the rate that was offered", r"(?!)"),
        Name("goodput", "rate", "a flow's rate",
             rf"^(?!.*model).*\b{MEASURED_RATE}\b|^(?:(?:own|mean|flow|data) )*(?:rate|speed)$|^(?:down|up)(?:load|link)$|^$"),
        Name("value", "number", "the mean of something, where other columns have its least and most", r"(?!)"),
        Name("algorithm", "text", "the algorithm",
             r"\b(?:algorithm|algo|cca?|congestion control|variant|protocol|scheme)\b|^tcp$"),
        Name("run", "text", "which run a row is from",
             r"\b(?:run|experiment|trial|repeat|repetition)\b", many=True),
        Name("flow", "text", "which flow a row is",
             r"^(?!.*\b(?:marks?|marked|size|control|duration|length|start|label)\b).*\b(?:flow|port|stream|connection|socket)\b", many=True),
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
    """A column that is by_name: its name here, its heading, its index, and its unit where it has one."""

    name: str
    heading: str
    place: int
    unit: Unit | None

    @property
    def words(self) -> str:
        """The heading's words, small and in English."""
        return words_of(self.heading)[0]

    @property
    def description(self) -> str:
        """The column as text: `goodput ("bandwidth_port", bit/s)`."""
        behind = f", {self.unit.name}" if self.unit and self.unit.name not in self.heading else ""
        return f"{self.name} ({self.heading!r}{behind})"


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
# How near to the link's rate a bandwidth is the link's, and in how many of the rows.
NEAR_LINK, NEARLY_ALL = 0.1, 0.9
MOST_WORDS = 10  # a longer heading is a sentence
MOST_VIEWS = 12
# Of these each of several columns is looked at; of others the first.
LEADING = tuple("goodput total losses loss_ratio index rtt bytes share utilisation".split())

Known = dict[str, list[Column]]
# A column's values that are numbers, by its index.
Values = Callable[[int], Sequence[float]]


def name_of(heading: str, cells: Unit | None = None) -> tuple[str, Unit | None]:
    """Return what a column is called here, `goodput` or `min rtt`, empty where that isn't known; and its heading's unit.

    `cells` is the unit that its cells have, where they have one.
    """
    words, own, has_value = words_of(heading)
    unit = own or cells
    if {"min", "max"} <= set(words.split()):
        # As ping has it, in one cell: min/avg/max/mdev.
        words = re.sub(r"\b(?:per|min|mean|max|std)\b", "", words)
    statistic = BOUND.search(words) or STATISTIC.search(words)
    if statistic:
        words = re.sub(r"\b(?:mean|value|bound)\b", "", STATISTIC.sub("", words))
    words = " ".join(words.split())
    quantity = unit.quantity if unit else ""
    # Of one thing beside another it isn't said which the values are.
    if len(words.split()) > MOST_WORDS or OF_MACHINE.search(words) or " vs " in f" {words} ":
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
    """Return the columns that are by_name, by name, once for each way to read the table.

    There are several ways where columns beside each other hold the same of different things, as the rates of TCP and of
    UDT. UserError, in one line, where no column is known, or where a choice names none.
    """
    by_name: Known = defaultdict(list)
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
        by_name[name].append(_with_unit(Column(name, heading, index, unit)))
    for name, columns in by_name.items():
        # A heading of names may have a quantity's word, too: the column with values is the quantity's.
        if quantity_of(name.split()[-1]) != "text" and any(values(c.place) for c in columns):
            by_name[name] = [c for c in columns if values(c.place)]
    for column in chosen:
        by_name[column.name].append(column)
    _add_unnamed(by_name, headings, values, settled | {column.heading for column in chosen})
    _sort_times(by_name, settled)
    if "goodput" not in settled:
        _find_links(by_name, values)
    _sort_rates(by_name, values, settled)
    _sort_counts(by_name, values, cell_unit)
    for key in [key for key in by_name if " " in key]:
        # A median stands for the mean where there is none; of bounds only those of one thing count.
        statistic, name = key.split()
        if statistic == "median" and not by_name.get(name):
            by_name[name] = [replace(column, name=name) for column in by_name[key]]
        elif len(by_name[key]) > 1:
            del by_name[key]
    by_name = {name: columns for name, columns in by_name.items() if columns}
    if not any(quantity_of(name) != "text" for name in by_name):
        numbers = [(h, values(place)) for place, h in enumerate(headings) if h and values(place)]
        raise unknown_columns(source, headings, numbers)
    return _views(by_name)


def _with_unit(column: Column) -> Column:
    """The column, without a unit that is no unit of it."""
    fits = column.unit and column.unit.quantity == quantity_of(column.name).split()[0]
    return column if fits else replace(column, unit=None)


def _take(by_name: Known, name: str, columns: Sequence[Column], other: str) -> None:
    """Take some of a name's columns for something else."""
    by_name[name] = [column for column in by_name[name] if column not in columns]
    by_name[other] = by_name[other] + [_with_unit(replace(c, name=other)) for c in columns]


def _add_unnamed(
    by_name: Known, headings: Sequence[str], values: Values, left_out: set[str]
) -> None:
    """Take columns that are called `flow 1` and `flow 2` for their rates, where something is of all flows; and those that
    are called `min` and `max` and no more for statistics of one value."""
    plain = [Column("", h, place, None) for place, h in enumerate(headings) if h not in left_out]
    flows = [c for c in plain if FLOW_WORD.fullmatch(c.words) and values(c.place)]
    if len(flows) > 1 and not {"goodput"} & (set(by_name) | left_out) and OF_RUNS & set(by_name):
        places = {column.place for column in flows}
        for name in ("flow", "label"):
            by_name[name] = [column for column in by_name[name] if column.place not in places]
        by_name["goodput"] = [replace(column, name="goodput") for column in flows]
    # The best of times is the least, of rates the most: the values say which.
    ends = {c.words[:1]: c for c in plain if c.words in ("best", "worst", "wrst")}
    if len(ends) == 2:
        for key, column in zip(
            ("min value", "max value"),
            sorted(ends.values(), key=lambda c: sum(values(c.place))),
            strict=True,
        ):
            by_name[key] = [replace(column, name=key)]
    bare = [c for c in plain if c.words == "mean" or STATISTIC.fullmatch(c.words)]
    bare = [column for column in bare if column.words not in SPREADS]
    for column in bare if len(bare) > 1 or len(ends) > 1 else ():
        key = f"{column.words} value".replace("p50", "median").removeprefix("mean ")
        by_name[key] = [replace(column, name=key)]


def _sort_times(by_name: Known, settled: set[str]) -> None:
    """Tell a round-trip time that was set from a delay, and how long a row took from when it was."""
    if not any(re.search(r"rtt|round trip|ping", column.words) for column in by_name["rtt"]):
        # A latency may be of one way.
        _take(by_name, "base_rtt", by_name["base_rtt"], "setting")
    times = [c for c in by_name["setting"] if c.words in ("time", "time taken", "total time")]
    if (
        by_name["bytes"]
        and not by_name["duration"]
        and "duration" not in settled
        and len(times) == 1
    ):
        # Bytes over it will tell whether it is how long each row took.
        unit = words_of(times[0].heading)[1]
        by_name["duration"] = [_with_unit(replace(times[0], name="duration", unit=unit))]


def _find_links(by_name: Known, values: Values) -> None:
    """Of several rates the link's is round, or always the same; a bandwidth beside a goodput, and near the link's rate in
    nearly all rows, is the link's as it was measured."""

    def of(column: Column) -> list[float]:
        return [v * (column.unit.factor if column.unit else 1.0) for v in values(column.place)]

    rates = by_name["goodput"] + by_name["total"] + by_name["per_flow"]
    for column in by_name["goodput"] if len(rates) > 1 and not by_name["link"] else ():
        own = values(column.place)
        others = [v for c in rates if c is not column for v in values(c.place)]
        named = re.search(r"\b(?:bandwidth|bw|rate|speed)\b", column.words)
        put = next((of(c) for c in rates if c is not column and re.search(r"put\b", c.words)), [])
        below = sum(a <= b for a, b in zip(put, of(column), strict=False)) * 3 >= len(own) * 2
        coarse = below and all(_is_round(v, 1) for v in own)
        set_so = coarse or len(set(own)) < len(own) or not all(map(_is_round, others))
        constant = len(own) > 2 and len(set(own)) == 1 < len(set(others))
        is_set = constant or (bool(own) and set_so and all(map(_is_round, own)))
        if named and is_set and not STATISTIC.search(column.words):
            _take(by_name, "goodput", [column], "link")
            break
        if re.search(r"\bbit ?rate\b", column.words) and is_set:
            _take(by_name, "goodput", [column], "offered")
            break
    plain = [c for c in by_name["goodput"] if not re.search(r"put\b", c.words)]
    for column in plain if by_name["link"] and len(plain) < len(by_name["goodput"]) else ():
        own, link = of(column), of(by_name["link"][0])
        near = sum(abs(a - b) <= NEAR_LINK * b for a, b in zip(own, link, strict=False))
        varied = any(len(set(of(c))) > len(set(own)) for c in by_name["goodput"] if c not in plain)
        if len(own) == len(link) and near >= NEARLY_ALL * len(link) and varied:
            _take(by_name, "goodput", [column], "setting")


def _sort_rates(by_name: Known, values: Values, settled: set[str]) -> None:
    """Of several rates the sender's is not what arrived, and those of numbered flows are parts."""
    for name in ("goodput", "total"):
        sent = [c for c in by_name[name] if SENT.search(c.words)]
        arrived = [c for c in by_name[name] if c not in sent and ARRIVED.search(c.words)]
        two_ways = bool(sent and arrived) and _are_two_ways(sent[0], arrived[0], values)
        if name not in settled and sent and arrived and not two_ways:
            by_name["sent_rate"] = []
            _take(by_name, name, sent, "sent_rate")
    columns = by_name["goodput"]
    numbered = len({NUMBERED.sub("#", column.words) for column in columns}) == 1 and all(
        FLOW_WORD.search(column.words) for column in columns
    )
    if len(columns) < 2 or "goodput" in settled:
        return
    if numbered or _are_parts(columns, by_name, values):
        for number, column in enumerate(columns, 1):
            by_name[f"{number} goodput"] = [replace(column, name=f"{number} goodput")]
        if all(len(by_name[name]) != len(columns) for name in ("bytes", "rtt", "losses")):
            by_name["goodput"] = []


def _sort_counts(by_name: Known, values: Values, cell_unit: Callable[[int], Unit | None]) -> None:
    """Take a total beside lost packets for all packets, offered rates for numbers, and a host's own two ends for nothing."""
    whole = [c for c in by_name["total"] if c.words in ("total", "total packets") and not c.unit]
    lost = [v for c in by_name["losses"][:1] for v in values(c.place)]
    for column in whole if lost and not by_name["segments"] else ():
        own = values(column.place)
        if len(own) == len(lost) and all(a >= b for a, b in zip(own, lost, strict=True)):
            _take(by_name, "total", [column], "segments")
    for c in by_name["offered"] if by_name["goodput"] or by_name["total"] else ():
        unit = words_of(c.heading)[1]
        of_rate = (u := unit or cell_unit(c.place)) and u.quantity == "rate"
        if of_rate and re.search(r"offered|load|bit ?rate", c.words):
            by_name["offered_rate"].append(replace(c, name="offered_rate", unit=unit))
    ends = [by_name[name][0] for name in ("segments", "received") if by_name[name]]
    of_losses = by_name["losses"] or by_name["loss_ratio"]
    if len(ends) == 2 and not of_losses and _are_two_ways(ends[0], ends[1], values):
        _take(by_name, "received", [ends[1]], "setting")
    per = "losses_per_halving"
    by_name[per] = [c for c in by_name[per] if by_name["halvings"] or c.words != "ratio"]


def _are_two_ways(sent: Column, arrived: Column, values: Values) -> bool:
    """Return whether two columns are a host's two directions: up and down, or in most rows more came than went."""
    up = re.search(r"\b(?:upload|up|ul|tx)\b", sent.words)
    if not up or not re.search(r"\b(?:download|down|dl|rx)\b", arrived.words):
        return False
    more = [a > b for a, b in zip(values(arrived.place), values(sent.place), strict=False)]
    return "tx" not in up[0] or sum(more) * 2 > len(more)


def _are_parts(columns: Sequence[Column], by_name: Known, values: Values) -> bool:
    """Return whether in half of the rows and more the rates add up to the total beside them, or have its index."""
    parts = [values(column.place) for column in columns]
    for name in ("total", "index"):
        stated = values(by_name[name][0].place) if by_name[name] else []
        if not stated or any(len(part) != len(stated) for part in parts):
            continue
        near = 0
        for value, *row in zip(stated, *parts, strict=True):
            again = sum(row) if name == "total" else jains_index(row) if any(row) else 0.0
            near += abs(again - value) <= PARTS * abs(value)
        if near * 2 >= len(stated):
            return True
    return False


def _is_round(value: float, digits: int = ROUND_DIGITS) -> bool:
    return len(f"{value:.8e}".split("e")[0].replace(".", "").strip("0")) <= digits


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
            alike = [c for c in columns if _rest(c) and _rest(c) == _rest(column)] or columns
            view[name] = [columns[index] if len(columns) == len(twins[leader]) else alike[0]]
        views.append(view)
    return views


def _rest(column: Column) -> str:
    """A heading's words but for those that say what it holds."""
    what = rf"\b(?:{MEASURED_RATE}|mean|rtt|latency|transfer|bytes|rate|{LOSS})\b"
    return re.sub(what, "", column.words).strip()


def _chosen(headings: Sequence[str], choices: Sequence[Choice], source: str) -> list[Column]:
    columns = []
    for choice in choices:
        if not choice.column:
            continue
        indices = places_of(choice.column, headings)
        if len(indices) != 1:
            wrong = "stands nowhere" if not indices else f"stands {len(indices)} times"
            number = f"; by its number: {choice.name}=#{indices[0] + 1}" if indices else ""
            raise UserError(
                f"--columns {choice.name}={choice.column}: {wrong} in {source}{number}; its columns: "
                f"{listed(headings)}"
            )
        heading = headings[indices[0]]
        unit = choice.unit or words_of(heading)[1]
        columns.append(_with_unit(Column(choice.name, heading, indices[0], unit)))
    return columns
