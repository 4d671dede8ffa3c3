"""Tables audited: how each was read, what was looked at and recomputed, which rows can't be true and why."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from measuretwice.audit import beside, columns, laws, sums, together
from measuretwice.audit.cells import by_encoding, find_unit, listed, places_of, words_of
from measuretwice.audit.columns import (
    NAMES,
    OF_RUNS,
    STATISTIC,
    Choice,
    Known,
)
from measuretwice.audit.report import Problem, Recomputed, Report, TableReport, read_in_any
from measuretwice.audit.rules import QUOTIENTS, Row, off_in
from measuretwice.audit.sheets import Table, read_tables
from measuretwice.audit.table import Given, Reading, read_rows
from measuretwice.base.errors import UserError
from measuretwice.stats.intervals import jains_index, slope_through_zero
from measuretwice.tcp.model import MATHIS_CONSTANTS, mathis_bandwidth_bps

# A C this many times beyond all of theory's is worth a remark; less is what queues and timeouts do.
FAR_FROM_THEORY = 2.0
# By what C is counted: its title, the model's rate, the ratio, and the count of a table of flows.
WAYS = (
    ("C by losses", "model_by_losses", "loss_ratio", "losses"),
    ("C by halvings", "model_by_halvings", "halving_ratio", "halvings"),
)
# With these a table has a rate; and words of headings that name none.
RATES = {"goodput", "total", "per_flow", "sent_rate", "1 goodput", "squares", "index", "value"}
SAME_TIME = 1.1
OTHER = re.compile(
    rf"\b(?:{columns.NO_AMOUNT}|rto|id|hops?|var|rttvar|snt|last|cpu|memory|size|count|number|samples|round|date|year|distance|score|rank|order|per)\b"
)
LISTS = "several values in a cell"
INTERVALS = "means, within their intervals"
MEANS = "means and medians, of the columns that they are of"
CHANGES, ORDER = "changes, of what they are changes of", "the order of least, mean and most"
ENDS, TOTALS = "what arrived, of what was sent", "totals, of the columns before them"
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
    ("delivered and lost, against what was sent", (("delivered", "loss_ratio"),)),
    ("shares and ratios, within 0 and 1", (("share",), ("loss_ratio",), ("delivered",), ("halving_ratio",), ("utilisation",))),
    ("rates beside each other, of their total and index", (("1 goodput", "total"), ("1 goodput", "index"))),
    (ENDS, (("offered_rate", "goodput"), ("offered_rate", "total"), ("sent_rate", "goodput"), ("sent_rate", "total"), ("received", "segments"))),
    ("round-trip times, against the one that was set", (("base_rtt", "rtt"), ("base_rtt", "min rtt"))),
    ("flows, against those asked for", (("flows", "asked"),)),
    ("the router's drops, against what it sent", (("drops", "sent", "losses"), ("drops", "sent", "halvings"))),
    (ORDER, tuple((f"{a} {n}", n) for a in ("min", "max", "p95", "p99") for n in ("rtt", "goodput", "value"))),
)  # fmt: skip


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
    of_flows = any(choice.name == "goodput" for choice in choices)
    wanted = {c.column for c in choices for t in tables if places_of(c.column, t.headings)}
    for table in tables:
        in_table = {c.column for c in choices if places_of(c.column, table.headings)}
        own = [c for c in choices if c.column not in wanted - in_table]
        try:
            views = columns.known_columns(table.headings, own, source, table.values, table.unit_of)
            names = _headings_apart(views)
            audited = [
                _audited(table, view, given, name, rates_of_flows=of_flows)
                for view, name in zip(views, names, strict=True)
            ]
        except UserError as error:
            plain = None if own else _by_words_alone(table)
            if not plain or "in which unit" in str(error):
                refused.append(error)
                if laws.has_numbers(table) and "in which unit" not in str(error):
                    named = listed([h for h in table.headings if h not in ("", "section")], 6)
                    unseen.append(f"a table with the columns {named}: none of them is known")
                if "in which unit" in str(error):
                    unseen.append(str(error).removeprefix(f"{source}: "))
                continue
            audited = [(plain, [], set())]
        audited = read_in_any(_of_one_rate(audited))
        audited += [(r, [], set()) for r in _as_it_stood(table)]
        if not own and not any(report.compared or report.recomputed for report, *_ in audited):
            unseen += laws.numbers_unread(table, audited[0][0])
        for report, unread, effects in audited:
            already = {(p.lines, p.text) for earlier in reports for p in earlier.problems}
            new = tuple(p for p in report.problems if (p.lines, p.text) not in already)
            reports.append(replace(report, problems=new))
            unseen += [text for text in unread if text not in unseen]
            used |= effects
    if not reports:
        raise UserError(f"{refused[0]}{by_encoding(content)}")
    unseen = [*_without_effect(given, used, reports), *unseen]
    return Report(source, tuple(reports), tuple(unseen), len(refused), rate_bps)


def _of_one_rate(
    audited: list[tuple[TableReport, list[str], set[str]]],
) -> list[tuple[TableReport, list[str], set[str]]]:
    """The ways to read a table, without what utilisations that belong to another way's rates don't fit."""

    def off(report: TableReport) -> float:
        count = sum(problem.text.startswith("utilisation") for problem in report.problems)
        of_link = any(column.name == "utilisation" for column in report.columns)
        return math.inf if not of_link or together.OTHER_UTILISATION in report.notes else count

    least = min((off(report) for report, _, _ in audited), default=0)
    return [
        entry
        if off(entry[0]) == least
        else (
            replace(
                entry[0],
                problems=tuple(
                    p for p in entry[0].problems if not p.text.startswith("utilisation")
                ),
                notes=tuple(note for note in entry[0].notes if note != together.OTHER_UTILISATION),
            ),
            *entry[1:],
        )
        for entry in audited
    ]


def _as_it_stood(table: Table) -> Iterator[TableReport]:
    """Yield the report on a table that lay on its side, as it stood: of its columns that follow from others."""
    if table.lying is None:
        return
    changed, changes, _ = beside.changes_off(table.lying)
    followed, by_laws, _ = laws.laws_off(table.lying, ())
    looked_at = [(CHANGES, changes)] * (changes > 0) + by_laws
    problems = (*changed, *followed)
    if looked_at:
        yield TableReport(
            table.title, "line", "quantity", len(table.lying.lines), (), (), tuple(looked_at), (), problems, ()
        )  # fmt: skip


def _without_effect(given: Given, used: set[str], reports: Sequence[TableReport]) -> Iterator[str]:
    """Options that changed nothing, and why; and that no rate is known, where nothing else was compared."""
    candidates = [heading for report in reports for heading in report.unused_rates]
    advice = f"--columns 'goodput={candidates[0] if candidates else 'COLUMN'}:Mbit/s'"
    if candidates and given.rate_bps is None and not any(report.compared for report in reports):
        were = "was" if len(candidates) == 1 else "were"
        some = ", ".join(map(repr, candidates[:3]))
        yield f"no column is known to have a rate, and {some} {were} not read: say which is what, such as {advice}"
    if given.rate_bps is not None and "rate" not in used:
        why = f"no column has a rate; say which has: {advice}"
        yield f"--rate had no effect: {'each row has its own link' if 'link' in used else why}"
    for option, value in (("mss", given.mss_bytes), ("rtt", given.rtt_s)):
        if value is not None and option not in used:
            own = f"the table has its own {option}"
            yield f"--{option} had no effect: {own if option in used else 'no C was computed with it'}"


def _headings_apart(views: Sequence[Known]) -> list[str]:
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


def _audited(
    table: Table, by_name: Known, given: Given, heading: str, *, rates_of_flows: bool
) -> tuple[TableReport, list[str], set[str]]:
    """One way to read a table: the report, what wasn't read, and which options and columns had an effect.
    `rates_of_flows` is whether a person says that the rates are those of flows."""
    reading = read_rows(table, by_name, given)
    groups = _as_flows(by_name, reading, rates_of_flows=rates_of_flows)
    notes = [*reading.notes]
    of_runs = groups is None and "total" not in by_name and not OF_RUNS.isdisjoint(by_name)
    if of_runs and "goodput" in by_name:
        # The rate of a run is the total of its flows.
        by_name = {"total" if name == "goodput" else name: c for name, c in by_name.items()}
        by_name["total"] = [replace(column, name="total") for column in by_name["total"]]
        reading = read_rows(table, by_name, given)
        if rates_of_flows:
            why = "the other columns differ from row to row"
            notes.append(f"the rates were read as totals: {why}")
    rows = reading.rows
    # What is of all flows of a run is no matter of one.
    left_out = OF_RUNS if groups is not None else set()
    problems = together.of_one_unit([*reading.problems, *_off_alone(rows, left_out)], rows)
    problems += together.off_together(rows, by_name)
    off_by_words, compared, in_order = _off_by_words(table, reading.columns)
    problems += [*sums.summaries_off(rows, reading.summaries), *off_by_words]
    recomputed = []
    if groups is not None:
        recomputed += [
            value for group in groups for value in _of_flows(group, reading, alone=len(rows) == 1)
        ]
        known_unit = "goodput" in reading.units and "flow" in reading.columns
        problems += together.off_beside_flows(rows, groups, known_unit=known_unit)
    constants, missing, used = _constants(rows, groups, given)
    recomputed += constants
    rate = "total" if "total" in by_name and groups is None else "goodput"
    off, remarks = sums.bytes_off(rows, rate)
    problems += off
    notes += [*missing, *together.remarks(rows, problems), *_far_from_theory(recomputed), *remarks]
    # A median that stands for the mean has two names, and one column.
    by_place = {column.place: column for alike in reading.columns.values() for column in alike}
    columns_read, places = tuple(by_place.values()), set(by_place)
    unread = {n: h for n, h in enumerate(table.headings) if n not in places | in_order and h}
    one_flow = len(rows) > 1 and len({row.texts.get("flow") for row in rows}) == 1
    report = TableReport(
        title=", ".join(filter(None, ("" if table.title in heading else table.title, heading))),
        place=table.place,
        kind="flow" if groups is not None and "flow" in by_name and not one_flow else "run",
        rows=len(rows),
        columns=columns_read,
        unused=tuple(unread.values()),
        looked_at=tuple(_looked_at(reading, groups, compared)),
        recomputed=tuple(recomputed),
        problems=tuple(sorted(problems, key=lambda problem: problem.lines)),
        notes=tuple(dict.fromkeys(notes)),
        unused_rates=tuple(_unused_rates(table, unread)) if RATES.isdisjoint(by_name) else (),
        row_of={line: row.line for row in rows for line in row.lines.values()},
    )
    return report, reading.unread, used | _effects(reading)


def _off_by_words(
    table: Table, by_name: Known
) -> tuple[list[Problem], Mapping[str, int], set[int]]:
    """Return what is off in columns by their headings' words, whatever was measured; what was compared, in how many rows;
    and the places of columns that stand in an order, of which not all are known."""
    places = {column.place for alike in by_name.values() for column in alike}
    changed, changes, of_changes = beside.changes_off(table)
    unordered, ordered, in_order = beside.orders_off(table, places)
    arrived, ends, of_ends = beside.ends_off(table)
    summed, sums_seen = beside.totals_off(table, places)
    means, of_means, places_of_means = beside.columns_off(table)
    inside, in_intervals, of_intervals = beside.intervals_off(table)
    of_lists, lists, in_lists = beside.lists_off(table)
    problems = [*means, *changed, *unordered, *arrived, *summed, *inside, *of_lists]
    compared = {
        CHANGES: changes,
        ORDER: ordered,
        ENDS: ends,
        TOTALS: sums_seen,
        MEANS: of_means,
        INTERVALS: in_intervals,
        LISTS: lists,
    }
    followed, by_laws, of_laws = laws.laws_off(table, _compared_elsewhere(by_name))
    problems += laws.copies_off(table, laws.body_of(table))
    off = {line for problem in problems for line in problem.lines}
    problems += [problem for problem in followed if off.isdisjoint(problem.lines)]
    return (
        problems,
        compared | dict(by_laws),
        in_order | of_ends | of_laws | of_changes | places_of_means | of_intervals | in_lists,
    )


def _compared_elsewhere(by_name: Known) -> set[frozenset[int]]:
    """The places of columns that rows are compared by, where their names are known."""
    place = {name: columns[0].place for name, columns in by_name.items()}
    sets = [("bytes", rate, "duration") for rate in ("goodput", "total")] + [
        ("utilisation", rate, "link") for rate in ("goodput", "total", "per_flow")
    ]
    sets += [(a, b, c) for a, b, c in QUOTIENTS]
    return {
        frozenset(place[name] for name in names) for names in sets if place.keys() >= set(names)
    }


def _by_words_alone(table: Table) -> TableReport | None:
    """The report on a table of which no column is known; None where nothing in it can be compared."""
    problems, compared, places = _off_by_words(table, {})
    looked_at = tuple((text, count) for text, count in compared.items() if count)
    unused = tuple(h for n, h in enumerate(table.headings) if h and n not in places)
    report = TableReport(
        table.title, table.place, "run", len(table.lines), (), unused, looked_at, (), tuple(problems), ()
    )  # fmt: skip
    return report if looked_at else None


def _off_alone(rows: Sequence[Row], left_out: Collection[str]) -> Iterator[Problem]:
    """Yield what can't be true of a row by itself, whatever the names that are left out hold."""
    for row in rows:
        numbers = {name: number for name, number in row.numbers.items() if name not in left_out}
        for kind, text in off_in(replace(row, numbers=numbers)):
            yield Problem(row.lines_of(text), row.label, kind, text)


def _unused_rates(table: Table, left: Mapping[int, str]) -> Iterator[str]:
    """Yield the headings of columns of numbers that aren't known, and whose words are no other thing's."""
    for place, heading in left.items():
        words, unit, _ = words_of(heading)
        other = any(p.search(words) for p in (STATISTIC, columns.NO_RATE, OTHER))
        values = table.values(place)
        filled = len(set(values)) > 1 and len(values) * 2 > len(table.lines)
        if filled and not unit and not other and not table.unit_of(place):
            yield heading


def _looked_at(
    reading: Reading, groups: list[list[Row]] | None, compared: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Yield what was compared, and in how many rows; `compared` is what was of columns by their words alone."""
    counts = {text: count for text, count in compared.items() if count}
    for text, sets in LOOKED_AT:
        if count := sum(any(row.has(*names) for names in sets) for row in reading.rows):
            counts[text] = max(count, counts.get(text, 0))
    yield from counts.items()
    if groups and not OF_RUNS.isdisjoint(reading.columns):
        yield "the values of all flows together, repeated next to each flow", len(groups)
    if reading.summaries:
        yield "summary rows, against the others", len(reading.summaries)


def _effects(reading: Reading) -> set[str]:
    """Return whether --rate was compared with anything, and which columns make options needless."""
    used = {"mss", "rtt", "link"} & reading.columns.keys()
    rates = ("goodput", "total", "per_flow", "1 goodput")
    given = (row for row in reading.rows if row.has("link") and "link" not in row.texts)
    return used | {"rate" for row in given if any(row.has(name) for name in rates)}


def _as_flows(by_name: Known, reading: Reading, *, rates_of_flows: bool) -> list[list[Row]] | None:
    """The flows of each run, where a row is a flow; None where it is a run or a part of one."""
    apart = "flow" in by_name or rates_of_flows
    if "goodput" not in by_name:
        return None
    if not apart and not OF_RUNS.isdisjoint(by_name):
        # Rows of hosts are flows where their rates have the index that stands beside them.
        return together.by_their_index(reading.rows)
    if OF_RUNS.isdisjoint(by_name):
        of_flows = "flow" in by_name or "share" not in by_name
        return together.groups_of(reading.rows) if of_flows else None
    return together.flows_of_runs(reading.rows) or None


def _of_flows(group: Sequence[Row], reading: Reading, *, alone: bool) -> Iterator[Recomputed]:
    """Sum and Jain's index of the flows of one run."""
    rates = [row["goodput"].value for row in group if row.has("goodput")]
    unit = reading.units.get("goodput")
    times = [row["duration"].value for row in group if row.has("duration")]
    # Flows of other lengths weren't all there all of the time.
    apart = bool(times) and max(times) > SAME_TIME * min(times)
    # A row each time that a flow was looked at.
    again = len(group) > 1 and len({row.texts.get("flow") for row in group}) == 1
    several = len(rates) > 1 and not apart and not again
    if (several or (rates and alone)) and min(rates) >= 0 and "flow" in reading.columns:
        name = together.name_of_run(group)
        total = math.fsum(rates) / (unit.factor if unit else 1.0)
        yield Recomputed("sum", total, unit.name if unit else "?", name, len(rates))
        if max(rates) > 0:
            yield Recomputed("Jain's index", jains_index(rates), "", name, len(rates))


def read_choices(texts: Iterable[str]) -> tuple[Choice, ...]:
    """Read what --columns says: NAME=COLUMN or NAME=COLUMN:UNIT, several between commas."""
    choices = []
    for text in texts:
        # A column's own heading may have a comma in it: what has no = belongs to what is before.
        for part in re.split(r",(?=\s*\w+=)", text):
            name, equals, column = (piece.strip() for piece in part.partition("="))
            option = f"--columns {part.strip()}"
            if not equals or name not in NAMES:
                names = ", ".join(NAMES)
                raise UserError(f"{option}: expected NAME=COLUMN, with NAME one of {names}")
            heading, colon, behind = column.rpartition(":")
            unit = find_unit(f" {behind.strip()}")[0] if colon else None
            if unit is not None:
                column = heading.strip()
            if unit and unit.quantity != NAMES[name].quantity.split()[0]:
                raise UserError(f"{option}: {unit.name} is no unit of a {NAMES[name].quantity}")
            choices.append(Choice(name, column, unit))
    return tuple(choices)


# C of flows, by losses and by halvings


def _constants(
    rows: Sequence[Row], groups: Sequence[Sequence[Row]] | None, given: Given
) -> tuple[list[Recomputed], list[str], set[str]]:
    """C of each run's flows, or of all rows; why there is none; and the options that it took.

    C of goodput = C * model by regression through zero over flows, with its 95 % interval, which a single flow doesn't
    have. Flows without a loss, or a halving, have no place in the model and are left out.
    """
    counted = {name for _, *names in WAYS for name in names}
    if not any(row.has("goodput") for row in rows) or all(
        counted.isdisjoint(row.numbers) for row in rows
    ):
        return [], [], set()
    # A run's flows have one C; rows that are runs give one together.
    several = groups if groups and all(len(group) > 1 for group in groups) else [rows]
    values: list[Recomputed] = []
    notes: list[str] = []
    used: set[str] = set()
    for group in several:
        whose = together.name_of_run(group) if len(several) > 1 else ""
        for title, model, ratio, count in WAYS:
            points = [
                (expected, row["goodput"].value)
                for row in group
                if row.has("goodput")
                and row["goodput"].value >= 0
                and (expected := _model(row, model, ratio, count, given))
            ]
            if not points:
                notes += _why_none(
                    group,
                    (title, model, ratio, count),
                    given,
                    flows=any(row.texts.get("flow") for row in group),
                )
                continue
            slope, low, high = slope_through_zero(points)
            ends = (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)
            values.append(Recomputed(title, slope, "", whose, len(points), *ends))
            if left_out := len(group) - len(points):
                notes.append(f"{title}: {left_out} of {len(group)} rows are left out of it")
            first = group[0]
            used |= {"mss"} if not first.has("mss") and not first.has("model_by_losses") else set()
            used |= {"rtt"} if not first.has("rtt") else set()
    return values, notes, used


def _model(row: Row, model: str, ratio: str, count: str, given: Given) -> float | None:
    """Return what the model gives a flow with C = 1; None where it gives nothing finite."""
    if row.has(model):
        return row[model].value if row[model].value > 0 else None
    mss = row["mss"].value if row.has("mss") else given.mss_bytes
    rtt_s = row["rtt"].value if row.has("rtt") else given.rtt_s
    p = row[ratio].value if row.has(ratio) else 0.0
    if not row.has(ratio) and row.has(count) and row.positive("segments"):
        p = row[count].value / row["segments"].value
    if mss is None or rtt_s is None or not 0 < p <= 1 or rtt_s <= 0 or mss <= 0:
        return None
    return mathis_bandwidth_bps(mss, rtt_s * 1e3, p)


def _why_none(
    rows: Sequence[Row], way: tuple[str, str, str, str], given: Given, *, flows: bool
) -> Iterator[str]:
    """Yield why there is no C, with the option that would help. What an option gives is worth a line, of flows; that a
    table counts no halvings isn't, unless one was given."""
    title, model, ratio, count = way
    has = {name for row in rows for name in row.numbers}
    lacking = [] if "goodput" in has else ["goodput"]
    lacking += [] if "rtt" in has or given.rtt_s is not None else ["rtt (or --rtt)"]
    lacking += [] if ratio in has else [name for name in (count, "segments") if name not in has]
    lacking += [] if "mss" in has or given.mss_bytes is not None else ["mss (or --mss)"]
    asked = given.mss_bytes is not None or given.rtt_s is not None
    if asked or (flows and lacking and all(name.endswith(")") for name in lacking)):
        none = f"no flow has {model} or {ratio} above 0"
        yield f"{title}: not recomputed, {'it has no ' + ', '.join(lacking) if lacking else none}"


def _far_from_theory(recomputed: Sequence[Recomputed]) -> Iterator[str]:
    theory = [constant.value for constant in MATHIS_CONSTANTS.values() if constant.name != "1"]
    least, most = min(theory), max(theory)
    for value in recomputed:
        near = least / FAR_FROM_THEORY < value.value < most * FAR_FROM_THEORY
        if value.name == "C by halvings" and not near:
            yield (
                f"C by halvings is {value.value:.4g}, where theory has {least:.2g} to {most:.3g} "
                "for Reno: look at how halvings were counted"
            )
