"""Tables audited: how each was read, what was looked at and recomputed, which rows can't be true and why."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from measuretwice.audit.amounts import bytes_off
from measuretwice.audit.columns import (
    OF_RUNS,
    Choice,
    Column,
    Known,
    headings_apart,
    known_columns,
)
from measuretwice.audit.rules import Row, off_in
from measuretwice.audit.sheets import Table, read_tables, read_unit, read_values
from measuretwice.audit.summaries import columns_off, summaries_off
from measuretwice.audit.table import Given, Reading, read_rows
from measuretwice.audit.together import (
    copied,
    fits,
    flows_of_runs,
    groups_of,
    implied_segments,
    longer_than_buffers,
    missing_shares,
    parts_of_one,
    repeated_to_the_last_digit,
    said_of_all,
    shares_recomputed,
    shares_together,
)
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.model import MATHIS_CONSTANTS, payload_limit

# A C this many times beyond all of theory's is worth a remark; less is what queues and timeouts do.
FAR_FROM_THEORY = 2.0
# Rows this far above one link are perhaps of another.
FAR_ABOVE = 2.0
# What is looked at where a row has these columns.
LOOKED_AT = (
    ("rates, against the link", (("total", "link"), ("goodput", "link"), ("per_flow", "link"))),
    ("bytes over time, against the rate", (("bytes", "goodput"), ("bytes", "total"))),
    ("Jain's index, recomputed", (("index", "total", "squares", "flows"),)),
    ("Jain's index, within its bounds", (("index",),)),
    ("sum and squares", (("total", "squares"),)),
    ("losses and halvings", (("losses", "halvings"), ("c_by_losses", "c_by_halvings"))),
    ("quotients, divided again", (("losses", "halvings", "losses_per_halving"), ("loss_ratio", "losses", "segments"),
                                  ("halving_ratio", "halvings", "segments"), ("drops_per_halving", "drops", "halvings"))),
    ("shares and ratios, within 0 and 1", (("share",), ("loss_ratio",), ("halving_ratio",), ("utilisation",))),
    ("what arrived, of what was sent", (("sent_rate", "goodput"), ("sent_rate", "total"), ("received", "segments"))),
    ("round-trip times, against the one that was set", (("base_rtt", "rtt"), ("base_rtt", "min rtt"))),
    ("flows, against those asked for", (("flows", "asked"),)),
    ("the order of least, mean and most", tuple((f"{a} {n}", n) for a in ("min", "max", "p95", "p99") for n in ("rtt", "goodput", "value"))),
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What can't be true: of which lines, what they are called, the kind of it, and why."""

    lines: tuple[int, ...]
    label: str
    kind: str
    text: str


@dataclass(frozen=True)
class Recomputed:
    """A value computed from the table's rows: of which run, over how many rows, with its 95 %
    interval where it has one. `unit` is empty for a ratio, `?` where the table names none."""

    name: str
    value: float
    unit: str
    of: str
    rows: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class TableReport:
    """What an audit found in one table, or in one way to read it. `kind` is what a row is: `flow` or `run`. Notes aren't
    off. `looked_at` has what was compared, with the number of rows."""

    title: str
    place: str
    kind: str
    rows: int
    columns: tuple[Column, ...]
    unused: tuple[str, ...]
    looked_at: tuple[tuple[str, int], ...]
    recomputed: tuple[Recomputed, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def lines_off(self) -> int:
        """Return how many lines something is off in."""
        return len({line for problem in self.problems for line in problem.lines})


@dataclass(frozen=True)
class Report:
    """All that an audit found in a file. `unseen` says what was asked for and not looked at, or couldn't be read;
    `skipped` counts the file's other tables, of which no column is known."""

    source: str
    tables: tuple[TableReport, ...]
    unseen: tuple[str, ...]
    skipped: int

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what can't be true, of all tables."""
        return tuple(problem for table in self.tables for problem in table.problems)


def audit_table(
    content: bytes,
    source: str,
    choices: Sequence[Choice] = (),
    *,
    rate_bps: float | None = None,
    mss_bytes: float | None = None,
    rtt_s: float | None = None,
) -> Report:
    """Audit a file's tables: its bytes, its name, what a person says of its columns, the link's rate, the size of a
    segment and the round-trip time.

    UserError, in one line, where none can be read or isn't clear: what was found, and which option says it.
    """
    given = Given(rate_bps, mss_bytes, rtt_s)
    tables = read_tables(content, source)
    reports: list[TableReport] = []
    unseen: list[str] = []
    refused: list[UserError] = []
    used: set[str] = set()
    for table in tables:
        own_choices = [
            c for c in choices if not c.column or c.column in table.headings or len(tables) == 1
        ]
        try:
            views = known_columns(
                table.headings, own_choices, source, read_values(table), read_unit(table)
            )
            audited = [
                _audited(
                    table,
                    view,
                    given,
                    heading,
                    rates_of_flows=any(c.name == "goodput" for c in choices),
                )
                for view, heading in zip(views, headings_apart(views), strict=True)
            ]
        except UserError as error:
            refused.append(error)
            if "in which unit" in str(error):
                unseen.append(str(error).removeprefix(f"{source}: "))
            continue
        for report, unread, effects in audited:
            already = {
                (problem.lines, problem.text) for earlier in reports for problem in earlier.problems
            }
            new = tuple(p for p in report.problems if (p.lines, p.text) not in already)
            reports.append(replace(report, problems=new))
            unseen += [text for text in unread if text not in unseen]
            used |= effects
    if not reports:
        raise refused[0]
    if missing := [
        c for c in choices if c.column and not any(c.column in table.headings for table in tables)
    ]:
        raise UserError(
            f"--columns {missing[0].name}={missing[0].column}: stands nowhere in {source}"
        )
    return Report(source, tuple(reports), (*_without_effect(given, used), *unseen), len(refused))


def _without_effect(given: Given, used: set[str]) -> Iterator[str]:
    """Options that changed nothing, and why."""
    if given.rate_bps is not None and "rate" not in used:
        why = "each row has its link's own" if "link" in used else "no column has a rate"
        advice = "" if "link" in used else "; say which has: --columns goodput=COLUMN:Mbit/s"
        yield f"--rate had no effect: {why}{advice}"
    for option, value, column in (("mss", given.mss_bytes, "mss"), ("rtt", given.rtt_s, "rtt")):
        if value is not None and option not in used:
            why = (
                f"the table has its own {column}" if column in used else "no C was computed with it"
            )
            yield f"--{option} had no effect: {why}"


def _audited(
    table: Table, by_name: Known, given: Given, heading: str, *, rates_of_flows: bool
) -> tuple[TableReport, list[str], set[str]]:
    """One way to read a table: the report, what wasn't read, and which options and columns had an effect. `told` is
    whether a person says that the rates are those of flows."""
    reading = read_rows(table, by_name, given)
    groups = _as_flows(by_name, reading, rates_of_flows=rates_of_flows)
    notes = [*reading.notes]
    if groups is None:
        as_total = "goodput" in by_name
        by_name, reading = _as_runs(table, by_name, reading, given)
        if rates_of_flows and as_total and "goodput" not in by_name:
            notes.append(
                "the rates were read as totals: what stands beside them differs from row to row"
            )
    rows = reading.rows
    values = sum(len(row.texts.keys() & row.numbers.keys()) for row in rows)
    if not reading.problems and (not values or values * 2 < len(reading.unread)):
        words = f", but such as {reading.unread[0]}" if reading.unread else ""
        raise UserError(f"{table.source}: no row has a number in the columns that are known{words}")
    problems = [Problem(*problem) for problem in reading.problems]
    for row in rows:
        # What is of all flows of a run is no matter of one.
        own = row if groups is None else _without(row, OF_RUNS)
        problems += [Problem((row.line,), row.label, kind, text) for kind, text in off_in(own)]
    problems += _together(rows, reading)
    problems += [
        Problem((line.number,), line.cells[0], "summary", text) for line, text in columns_off(table)
    ]
    recomputed = []
    if groups is not None:
        recomputed += [
            value for group in groups for value in _of_flows(group, reading, alone=len(rows) == 1)
        ]
        problems += _beside_flows(groups)
        problems += [problem for group in _at_once(rows) for problem in _over_link(group, reading)]
    constants, missing, used = _constants(rows, groups, given)
    recomputed += constants
    off, remarks = bytes_off(rows, "total" if "total" in by_name and groups is None else "goodput")
    problems += [Problem((row.line,), row.label, "bytes", text) for row, text in off]
    notes += [*missing, *_remarks(rows, reading, problems, recomputed), *remarks]
    columns = [column for columns in reading.columns.values() for column in columns]
    places = {column.place for column in columns}
    report = TableReport(
        ", ".join(filter(None, (table.title, heading))), table.place,
        "flow" if groups is not None and "flow" in by_name else "run", len(rows), tuple(columns),
        tuple(heading for index, heading in enumerate(table.headings) if index not in places and heading),
        tuple(_looked_at(reading, groups)), tuple(recomputed),
        tuple(sorted(problems, key=lambda problem: problem.lines)), tuple(dict.fromkeys(notes)),
    )  # fmt: skip
    return report, reading.unread, used | _effects(reading)


def _without(row: Row, names: Collection[str]) -> Row:
    return replace(row, numbers={name: n for name, n in row.numbers.items() if name not in names})


def _looked_at(reading: Reading, groups: list[list[Row]] | None) -> Iterator[tuple[str, int]]:
    """Yield what was compared, and in how many rows."""
    for text, sets in LOOKED_AT:
        if count := sum(any(row.has(*names) for names in sets) for row in reading.rows):
            yield text, count
    if groups and not OF_RUNS.isdisjoint(reading.columns):
        yield "what stands beside each flow, of all flows", len(groups)
    if reading.summaries:
        yield "summary rows, against the others", len(reading.summaries)


def _effects(reading: Reading) -> set[str]:
    """Return whether --rate was compared with anything, and which columns make options needless."""
    used = {"mss", "rtt", "link"} & reading.columns.keys()
    for row in reading.rows:
        rated = any(row.has(name) for name in ("goodput", "total", "per_flow", "1 goodput"))
        if rated and row.has("link") and "link" not in row.texts:
            return used | {"rate"}
    return used


def _as_flows(by_name: Known, reading: Reading, *, rates_of_flows: bool) -> list[list[Row]] | None:
    """The flows of each run, where a row is a flow; None where it is a run or a part of one."""
    apart = "flow" in by_name or rates_of_flows
    if "goodput" not in by_name or (not apart and not OF_RUNS.isdisjoint(by_name)):
        return None
    if OF_RUNS.isdisjoint(by_name):
        return groups_of(reading.rows) if "flow" in by_name or "share" not in by_name else None
    return flows_of_runs(reading.rows) or None


def _as_runs(table: Table, by_name: Known, reading: Reading, given: Given) -> tuple[Known, Reading]:
    """The rate of a run is the total of its flows."""
    if "goodput" not in by_name or "total" in by_name or OF_RUNS.isdisjoint(by_name):
        return by_name, reading
    by_name = {
        ("total" if name == "goodput" else name): columns for name, columns in by_name.items()
    }
    by_name["total"] = [replace(column, name="total") for column in by_name["total"]]
    return by_name, read_rows(table, by_name, given)


def _beside_flows(groups: Sequence[Sequence[Row]]) -> Iterator[Problem]:
    """Yield what stands beside each flow and isn't true of all flows of its run."""
    for group in groups:
        for text in said_of_all(group):
            yield Problem(_lines(group), _of(group), "index", text)
        if len(group) > 1 and group[0].has("index"):
            row = group[0]
            bounded = replace(row, numbers={n: row[n] for n in ("index", "flows") if row.has(n)})
            for kind, text in off_in(bounded):
                yield Problem(_lines(group), _of(group), kind, text)


def _lines(group: Sequence[Row]) -> tuple[int, ...]:
    return tuple(row.line for row in group)


def _at_once(rows: Sequence[Row]) -> list[list[Row]]:
    """Flows that ran at once: of the same settings, also those whose columns aren't known."""
    return groups_of(
        [replace(row, texts={**row.texts, "group": row.texts["settings"]}) for row in rows]
    )


def _together(rows: Sequence[Row], reading: Reading) -> Iterator[Problem]:
    for row, earlier, names in copied(rows):
        whose = f" ({earlier.label})" if earlier.label else ""
        under = ", under another name" if row.label != earlier.label else ""
        yield Problem(
            (row.line,), row.label, "copied",
            f"the same {', '.join(names)} as line {earlier.line}{whose}: a copied row{under}",
        )  # fmt: skip
    for row, text in implied_segments(rows):
        yield Problem((row.line,), row.label, "model", text)
    for row, text in summaries_off(rows, reading.summaries):
        yield Problem((row.line,), row.label, "summary", text)
    parts = parts_of_one(rows)
    whole = any(abs(shares_together(group)[0] - 1) < 0.01 for group in parts)
    for group in parts:
        total, low, _ = shares_together(group)
        if low > 1 and all(row["share"].low <= 1 for row in group):
            if whole or "run" in reading.columns or "flow" in reading.columns:
                text = f"shares add up to {total:.4g}, more than 1"
                yield Problem(_lines(group), _of(group), "share", text)
        elif abs(total - 1) < 0.01:
            rate = "total" if group[0].has("total") else "goodput"
            for row, again in shares_recomputed(group, rate):
                text = f"share {row.shown('share')}; recomputed {again:.4g}"
                yield Problem((row.line,), row.label, "share", text)


def _of(group: Sequence[Row]) -> str:
    return group[0].texts.get("group", "")


def _of_flows(group: Sequence[Row], reading: Reading, *, alone: bool) -> Iterator[Recomputed]:
    """Sum and Jain's index of the flows of one run."""
    rates = [row["goodput"].value for row in group if row.has("goodput")]
    unit = reading.unit_of("goodput")
    if (len(rates) > 1 or (rates and alone)) and min(rates) >= 0 and "flow" in reading.columns:
        factor = unit.factor if unit else 1.0
        total = math.fsum(rates) / factor
        yield Recomputed("sum", total, unit.name if unit else "?", _of(group), len(rates))
        if max(rates) > 0:
            yield Recomputed("Jain's index", jains_index(rates), "", _of(group), len(rates))


def _constants(
    rows: Sequence[Row], groups: Sequence[Sequence[Row]] | None, given: Given
) -> tuple[list[Recomputed], list[str], set[str]]:
    """C of each run's flows, or of all rows; why there is none; and the options that it took."""
    names = (
        "loss_ratio",
        "losses",
        "halving_ratio",
        "halvings",
        "model_by_losses",
        "model_by_halvings",
    )
    if not any(row.has("goodput") for row in rows) or not any(
        row.has(name) for row in rows for name in names
    ):
        return [], [], set()
    # A run's flows have one C; rows that are runs give one together.
    several = groups if groups and all(len(group) > 1 for group in groups) else [rows]
    values: list[Recomputed] = []
    notes: list[str] = []
    used: set[str] = set()
    for group in several:
        fitted, missing = fits(group, given)
        whose = _of(group) if len(several) > 1 else ""
        for fit in fitted:
            values.append(Recomputed(fit.title, fit.value, "", whose, fit.flows, fit.low, fit.high))
            if fit.left_out:
                notes.append(
                    f"{fit.title}: {fit.left_out} of {len(group)} rows have no place in it"
                )
            used |= (
                {"mss"}
                if not group[0].has("mss") and not group[0].has("model_by_losses")
                else set()
            )
            used |= {"rtt"} if not group[0].has("rtt") else set()
        # What an option would give is worth a line; that a table counts no halvings isn't.
        asked = given.mss_bytes is not None or given.rtt_s is not None
        notes += [text for text, by_option in missing if (by_option or asked) and text not in notes]
    return values, notes, used


def _over_link(group: Sequence[Row], reading: Reading) -> Iterator[Problem]:
    """The flows of one run carry together no more than the link does."""
    linked = [row for row in group if row.has("link", "goodput")]
    if len({row["duration"].value for row in linked if row.has("duration")}) > 1:
        return  # Not all of the time were all of them there.
    if not linked or reading.unit_of("goodput") is None or "flow" not in reading.columns:
        return
    total, link = math.fsum(row["goodput"].low for row in linked), linked[0]["link"].value
    if len(linked) > 1 and total > link > 0 and all(row["link"].value == link for row in linked):
        carried = math.fsum(row["goodput"].value for row in linked)
        text = f"together {100 * carried / link:.2f} % of the link"
        yield Problem(_lines(linked), linked[0].texts["settings"].split("\t")[0], "link", text)


def _remarks(
    rows: Sequence[Row],
    reading: Reading,
    problems: Sequence[Problem],
    recomputed: Sequence[Recomputed],
) -> Iterator[str]:
    """Yield what isn't impossible, and worth to be looked at."""
    wrong = {line for problem in problems if problem.kind == "index" for line in problem.lines}
    for flows, share in missing_shares(rows, wrong).items():
        yield (
            f"all rows with {flows} flows stay below an index of {1 - share:.4g}, which others exceed: "
            f"as if {100 * share:.1f} % of the flows were counted and never ran"
        )
    above = [
        row.line
        for row in rows
        if row.has("total", "link")
        and payload_limit(row["link"].value) < row["total"].low <= row["link"].high
    ]
    if above:
        yield (
            f"{len(above)} of {len(rows)} totals are more than {100 * payload_limit(1):.1f} % of the link: "
            "not to be had in Ethernet frames of an MTU of 1500 with TCP's timestamps"
        )
    far = [row for row in rows for name in ("total", "goodput")
           if row.has("link", name) and "link" not in row.texts and row[name].low > FAR_ABOVE * row["link"].high]  # fmt: skip
    if far and len(far) < len(rows):
        yield (
            f"{len(far)} of {len(rows)} rows are far above the rate of --rate: if the table has several links, a column "
            "says which, with --columns link=COLUMN"
        )
    nothing = [
        row.line
        for row in rows
        for name in ("total", "goodput")
        if row.has(name) and row[name].value == 0
    ]
    if set(nothing) - {line for problem in problems for line in problem.lines}:
        yield f"a rate of 0 in {len(nothing)} of {len(rows)} rows: nothing was carried"
    yield from repeated_to_the_last_digit(rows)
    yield from longer_than_buffers(rows)
    for group in parts_of_one(rows):
        total, _, high = shares_together(group)
        if high < 1:
            whose = f" ({_of(group)})" if _of(group) else ""
            yield (
                f"the shares of lines {group[0].line} to {group[-1].line}{whose} add up to {total:.4g}: a row "
                "is missing, or they are shares of the link"
            )
    theory = [constant.value for constant in MATHIS_CONSTANTS.values() if constant.name != "1"]
    for constant in recomputed:
        if constant.name == "C by halvings" and not (
            min(theory) / FAR_FROM_THEORY < constant.value < max(theory) * FAR_FROM_THEORY
        ):
            yield (
                f"C by halvings is {constant.value:.4g}, where theory has {min(theory):.2g} to {max(theory):.3g} "
                "for Reno: look at how halvings were counted"
            )
