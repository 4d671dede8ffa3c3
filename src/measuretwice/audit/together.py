"""What can't be true of a table's rows together: copied rows, shares, indices and totals beside the flows they are of; and
what may be true and is worth to be looked at."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from measuretwice.audit.cells import Number, significant_digits
from measuretwice.audit.columns import NAMES, Known
from measuretwice.audit.report import Problem
from measuretwice.audit.rules import Row, apart, index_apart, off_in, utilisations_off
from measuretwice.stats.intervals import jains_index
from measuretwice.tcp.model import payload_limit

# What was measured, where two rows that have it all in common were hardly measured twice.
MEASURED = (
    "goodput", "total", "squares", "index", "share", "rtt", "losses", "halvings", "drops", "sent",
    "segments", "c_by_losses", "c_by_halvings", "loss_ratio", "halving_ratio", "model_by_losses",
    "model_by_halvings",
)  # fmt: skip
# How many equal pairs chance may make in a table before two rows count as one, copied.
CHANCE = 1e-3
# The first digits of results that are alike say nothing.
ALIKE_DIGITS = 2
# How far from the others' a row's segment size may be, as a share, where it follows from rounded values.
MSS_TOLERANCE = 0.01
# What sums of rounded parts may differ by from a total that was rounded elsewhere; shares from a whole.
ROUNDING, WHOLE = 0.005, 0.01
INDEX_SLACK = 0.003
# How far a loss may be from what is missing of what was offered, by headers and by when each end's clock began.
LOSS_SLACK = 0.03
# A packet in a queue, and how many times what a full buffer takes a round-trip time may be longer than the least.
FRAME_BYTES, FAR_LONGER, SHORT_S = 1514, 3.0, 0.05
# So many digits of a mean are hardly met again; of so many, six are hardly.
LONG_DIGITS, VERY_LONG_DIGITS = 7, 12
# From how many rows of one number of flows a common ceiling is told, and how far below the others' best.
CEILING_ROWS = 3
CEILING_GAP = 0.02
# Rows this far above one link are perhaps of another.
FAR_ABOVE = 2.0
OTHER_UTILISATION = "the utilisations don't follow from rates and link in most rows: they are of something else, or wrong"
# What a table of flows may have beside each flow, of all flows of its run.
OF_ALL = ("index", "total", "flows")


def groups_of(rows: Sequence[Row], *names: str) -> list[list[Row]]:
    """Rows that belong to one run: of the same run and settings, and with the same text in the columns of names.

    Where each flow stands in them several times, each time is another run. Where only some do, a port is used on
    several hosts.
    """
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.texts.get(name, "") for name in ("group", *names))].append(row)
    return [run for group in groups.values() for run in _runs_of(group)]


def _runs_of(group: Sequence[Row]) -> list[list[Row]]:
    counts = Counter(row.texts.get("flow", "") for row in group)
    if "" in counts or len(counts) < 2 or len(set(counts.values())) > 1:
        return [list(group)]
    runs: list[list[Row]] = [[] for _ in range(max(counts.values()))]
    seen: Counter[str] = Counter()
    for row in group:
        runs[seen[row.texts["flow"]]].append(row)
        seen[row.texts["flow"]] += 1
    return runs


def flows_of_runs(rows: Sequence[Row]) -> list[list[Row]]:
    """The flows of each run, where what is said of all is the same in the rows of several flows; else nothing."""
    beside = [name for name in OF_ALL if any(row.has(name) for row in rows)]
    groups = groups_of(rows, *beside)
    several = sum(len(group) > 1 for group in groups)
    # A run of one flow may be among them, where flows are counted.
    counted = all(any(map(str.isdigit, row.texts.get("flow", ""))) for row in rows)
    enough = several == len(groups) or (counted and several * 2 >= len(groups))
    return groups if beside and groups and enough else []


def by_their_index(rows: Sequence[Row]) -> list[list[Row]] | None:
    """The flows of each run, where most runs' rates have the index that stands beside each; else None."""
    if not all(row.has("index", "goodput") for row in rows):
        return None
    groups = flows_of_runs(rows)
    if not groups:
        # A host that stands in several runs is no part of what a run is called.
        shared = [row.texts.get("shared", "") for row in rows]
        runs = [
            ", ".join(part for part in row.texts.get("group", "").split(", ") if part != host)
            for row, host in zip(rows, shared, strict=True)
        ]
        groups = flows_of_runs(
            [
                replace(row, texts={**row.texts, "group": run})
                for row, run in zip(rows, runs, strict=True)
            ]
        )
    near = sum(
        _near(group[0]["index"], [row["goodput"] for row in group])
        for group in groups
        if len({row["goodput"].value for row in group}) > 1
    )
    return groups if near * 2 > len(groups) else None


def name_of_run(group: Sequence[Row]) -> str:
    return group[0].texts.get("group", "")


def _of_row(row: Row, kind: str, text: str) -> Problem:
    return Problem(row.lines_of(text), row.label, kind, text)


def _of_run(group: Sequence[Row], kind: str, text: str) -> Problem:
    return Problem(tuple(row.line for row in group), name_of_run(group), kind, text)


# What can't be true


def off_together(rows: Sequence[Row], by_name: Known) -> Iterator[Problem]:
    """Yield what can't be true of all rows together."""
    yield from _copied(rows)
    yield from (_of_row(row, "quotient", text) for row, text in utilisations_off(rows)[0])
    yield from _counts_off(rows, by_name)
    yield from _offered_losses_off(rows)
    yield from _implied_segments(rows)
    yield from _shares_off(rows, runs_known="run" in by_name or "flow" in by_name)
    # What was sent again may arrive; what was lost doesn't.
    lost = (
        re.search(r"loss|lost|drop", by_name["loss_ratio"][0].words)
        if "loss_ratio" in by_name
        else None
    )
    for row in rows if lost else ():
        if (
            row.has("delivered", "loss_ratio")
            and row["delivered"].low + row["loss_ratio"].low > 1 + WHOLE
        ):
            text = (
                f"{row.shown('delivered')} delivered and {row.shown('loss_ratio')} lost are "
                f"{100 * (row['delivered'].value + row['loss_ratio'].value):.4g} % of what was sent"
            )
            yield _of_row(row, "share", text)


def _counts_off(rows: Sequence[Row], by_name: Known) -> Iterator[Problem]:
    """Yield rows with more packets lost than didn't arrive; or fewer, where in most rows it is as many."""
    # What was sent again is no loss of what was sent once.
    columns = [*by_name.get("losses", ()), *by_name.get("loss_ratio", ())]
    if not any(re.search(r"loss|lost|drop", column.words) for column in columns[:1]):
        return
    having = [row for row in rows if row.has("segments", "received", "losses")]
    missing = {row.line: row["segments"].value - row["received"].value for row in having}
    equal = [row for row in having if missing[row.line] == row["losses"].value]
    for row in having:
        more = row["losses"].low > missing[row.line] >= 0
        fewer = row["losses"].high < missing[row.line] and len(equal) * 2 > len(having)
        if more or fewer:
            text = (
                f"{row.shown('received')} of {row.shown('segments')} packets received leaves {missing[row.line]:.0f} "
                f"lost, but the table has {row.shown('losses')}"
            )
            yield _of_row(row, "counts", text)


def _offered_losses_off(rows: Sequence[Row]) -> Iterator[Problem]:
    """Yield rows whose loss isn't what is missing of the rate that was offered, where in most rows it is."""
    having = [
        row for row in rows if row.positive("offered_rate") and row.has("goodput", "loss_ratio")
    ]
    missing = {r.line: 1 - r["goodput"].value / r["offered_rate"].value for r in having}
    apart_by = {r.line: abs(missing[r.line] - r["loss_ratio"].value) for r in having}
    wrong = [row for row in having if apart_by[row.line] > 2 * LOSS_SLACK]
    near = sum(apart_by[row.line] <= LOSS_SLACK for row in having)
    for row in (
        wrong if len(having) > 2 and len(wrong) + near == len(having) and len(wrong) < near else ()
    ):
        text = (
            f"{row.shown('goodput')} arrived of {row.shown('offered_rate')} is a loss of "
            f"{row.as_shown(missing[row.line], 'loss_ratio', 3)}, but the table has {row.shown('loss_ratio')}"
        )
        yield _of_row(row, "quotient", text)


def _copied(rows: Sequence[Row]) -> Iterator[Problem]:
    """Rows that have all they measured in common with an earlier one.

    Only where chance would hardly do it: each value's chance to be met again is how often others of
    its column are, or, where none is, what its digits leave open.
    """
    names = [name for name in MEASURED if any(row.has(name) for row in rows)]
    if any(row.has("bytes", "duration") for row in rows):
        # A rate that is their quotient has no digits of its own.
        names = [name for name in names if name not in ("goodput", "total")] + ["bytes", "duration"]
    alike: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if any(row.has(name) for name in names):
            alike[tuple(row.texts.get(name, "") for name in names)].append(row)
    pairs = len(rows) * (len(rows) - 1) / 2
    counts = {name: Counter(row.texts.get(name, "") for row in rows) for name in names}
    for texts, same in alike.items():
        shared = {name: text for name, text in zip(names, texts, strict=True) if text}
        ours = len(same) * (len(same) - 1) / 2
        expected = pairs
        for name, text in shared.items() if ours else ():
            met = sum(count * (count - 1) / 2 for count in counts[name].values()) - ours
            digits = max(significant_digits(text) - ALIKE_DIGITS, 0)
            expected *= min(1.0, max(met / pairs, 10.0**-digits))
        earlier = same[0]
        for row in same[1:] if expected < CHANCE else ():
            whose = f" ({earlier.label})" if earlier.label else ""
            under = ", under another name" if row.label != earlier.label else ""
            text = (
                f"the same {', '.join(shared)} as line {earlier.line}{whose}: a copied row{under}"
            )
            yield Problem((row.line,), row.label, "copied", text)


def _implied_segments(rows: Sequence[Row]) -> Iterator[Problem]:
    """Rows whose model rate isn't MSS/(RTT sqrt(p)) with the segment size that the others have."""
    for model, ratio in (("model_by_losses", "loss_ratio"), ("model_by_halvings", "halving_ratio")):
        sizes = {
            row.line: row[model].value * row["rtt"].value * math.sqrt(row[ratio].value) / 8
            for row in rows
            if row.has(model, ratio, "rtt") and min(row[n].value for n in (model, ratio, "rtt")) > 0
        }
        middle = statistics.median(sizes.values()) if len(sizes) >= 3 else 0.0
        for row in rows:
            size = sizes.get(row.line, middle)
            if middle and abs(size / middle - 1) > MSS_TOLERANCE:
                again = f"with the segment size of the other rows, {row[model].value * middle / size:.6g}"
                text = f"{NAMES[model].help}: {row.shown(model)}; by RTT and ratio, {again}"
                yield _of_row(row, "model", text)


def _parts_of_one(rows: Sequence[Row]) -> list[tuple[list[Row], Number]]:
    """Groups of rows whose shares are parts of one whole, of one run, each of something else; and what they add up to."""
    return [
        (group, Number.sum_of([row["share"] for row in group]))
        for group in groups_of([row for row in rows if row.has("share")])
        if len({row.texts.get("who", "") for row in group}) == len(group) > 1
    ]


def _shares_off(rows: Sequence[Row], *, runs_known: bool) -> Iterator[Problem]:
    """Shares that add up to more than 1, where others add up to it or the table tells its runs; and those of a whole which
    aren't the rows' parts of all rates."""
    parts = _parts_of_one(rows)
    whole = any(abs(total.value - 1) < WHOLE for _, total in parts)
    for group, total in parts:
        if total.low > 1 and all(row["share"].low <= 1 for row in group):
            if whole or runs_known:
                yield _of_run(group, "share", f"shares add up to {total.value:.4g}, more than 1")
            continue
        rate = "total" if group[0].has("total") else "goodput"
        if abs(total.value - 1) >= WHOLE or not all(
            row.has(rate) and row[rate].low >= 0 for row in group
        ):
            continue
        carried = Number.sum_of([row[rate] for row in group])
        for row in group if carried.low > 0 else ():
            again = row[rate].over(carried)
            if apart(row["share"], again):
                text = f"share {row.shown('share')}; recomputed {again.value:.4g}"
                yield _of_row(row, "share", text)


def off_beside_flows(
    rows: Sequence[Row], groups: Sequence[Sequence[Row]], *, known_unit: bool
) -> Iterator[Problem]:
    """Yield what stands beside each flow of a run and isn't true of them all; and flows that carry more than their link."""
    for group in groups:
        for text in _said_of_all(group):
            yield _of_run(group, "index", text)
        if len(group) > 1 and group[0].has("index"):
            row = group[0]
            bounded = replace(row, numbers={n: row[n] for n in ("index", "flows") if row.has(n)})
            for kind, text in off_in(bounded):
                yield _of_run(group, kind, text)
    # At once ran those of the same settings, also where their columns aren't known.
    at_once = [replace(row, texts={**row.texts, "group": row.texts["settings"]}) for row in rows]
    for group in groups_of(at_once) if known_unit else ():
        linked = [row for row in group if row.has("link", "goodput")]
        if len({row["duration"].value for row in linked if row.has("duration")}) > 1:
            continue  # Not all of the time were all of them there.
        links = {row["link"].value for row in linked}
        total = Number.sum_of([row["goodput"] for row in linked])
        if len(linked) > 1 and len(links) == 1 and total.low > max(links) > 0:
            text = f"together {100 * total.value / max(links):.2f} % of the link"
            name = name_of_run(linked).split("\t")[0]
            yield replace(_of_run(linked, "link", text), label=name)


def _said_of_all(group: Sequence[Row]) -> Iterator[str]:
    first, flows = group[0], [row["goodput"] for row in group if row.has("goodput")]
    sent = [row["sent_rate"] for row in group if row.has("sent_rate")]
    some_missing = first.has("flows") and first["flows"].value != len(group)
    if len(flows) < len(group) or min(flow.value for flow in flows) < 0 or some_missing:
        return
    total = Number.sum_of(flows)
    if total.value <= 0:
        return
    if first.has("index") and not any(
        _near(first["index"], rates) for rates in (flows, sent) if len(rates) == len(group)
    ):
        again = jains_index([flow.value for flow in flows])
        yield f"index {first.shown('index')}; recomputed from its {len(flows)} flows {again:.6g}"
    if first.has("total") and apart(first["total"], total, ROUNDING):
        share = total.value / first["total"].value if first["total"].value else math.inf
        yield f"total {first.shown('total')}; its {len(flows)} flows add up to {share:.4g} times as much"


def _near(index: Number, rates: Sequence[Number]) -> bool:
    """Return whether rates have an index, but for what comes of other ends and other times of the same flows."""
    wider = Number(index.value, index.low - INDEX_SLACK, index.high + INDEX_SLACK)
    if any(rate.value < 0 for rate in rates):
        return False
    return math.fsum(rate.value for rate in rates) <= 0 or not index_apart(wider, rates)


def of_one_unit(problems: list[Problem], rows: Sequence[Row]) -> list[Problem]:
    """Return the problems; where most rates are far above their link, one in place of one for each: a unit is wrong, and not the rows."""
    offered = [problem for problem in problems if problem.kind == "offered"]
    if len(offered) * 2 > len(rows):
        # Of one flow, perhaps, where the rates are of all.
        problems = [problem for problem in problems if problem.kind != "offered"]
    above = [problem for problem in problems if problem.kind == "link"]
    shares = [
        row[name].value / row["link"].value
        for row in rows
        for name in ("total", "goodput")
        if row.has(name) and row.positive("link")
    ]
    if len(above) * 2 <= len(rows) or len(above) < 3 or statistics.median(shares) < FAR_ABOVE:
        return problems
    whose = "the link's column" if "link" in rows[0].texts else "--rate"
    lines = tuple(line for problem in above for line in problem.lines)
    text = (
        f"rates are {min(s for s in shares if s > 1):.3g} to {max(shares):.3g} times the link: {whose} or a unit is "
        "wrong, rather than each of these rows"
    )
    return [Problem(lines, "", "link", text), *(p for p in problems if p.kind != "link")]


# What is worth to be looked at


def remarks(rows: Sequence[Row], problems: Sequence[Problem]) -> Iterator[str]:
    """Yield what isn't impossible, and worth to be looked at."""
    wrong = {line for problem in problems if problem.kind == "index" for line in problem.lines}
    yield from _missing_flows(rows, wrong)
    if utilisations_off(rows)[1]:
        yield OTHER_UTILISATION
    linked = [
        (name, row[name], row["link"], row)
        for row in rows
        for name in ("total", "goodput")
        if row.has(name, "link")
    ]
    above = [
        rate
        for name, rate, link, _ in linked
        if name == "total" and payload_limit(link.value) < rate.low <= link.high
    ]
    if above:
        yield (
            f"{len(above)} of {len(rows)} totals are between {100 * payload_limit(1):.1f} % and 100 % of the link: "
            "not to be had in Ethernet frames with an MTU of 1500 and TCP's timestamps"
        )
    far = [
        rate
        for _, rate, link, row in linked
        if "link" not in row.texts and rate.low > FAR_ABOVE * link.high
    ]
    if far and len(far) < len(rows):
        yield (
            f"{len(far)} of {len(rows)} rows are far above the rate of --rate: if the table has several links, a column "
            "says which, with --columns link=COLUMN"
        )
    nothing = [row.line for row in rows for n in ("total", "goodput") if row.has(n) and row[n].value == 0]  # fmt: skip
    if set(nothing) - {line for problem in problems for line in problem.lines}:
        yield f"a rate of 0 in {len(nothing)} of {len(rows)} rows: nothing was carried"
    yield from _repeated(rows)
    yield from _longer_than_buffers(rows)
    for group, total in _parts_of_one(rows):
        if total.high < 1:
            whose = f" ({name_of_run(group)})" if name_of_run(group) else ""
            yield (
                f"the shares of lines {group[0].line} to {group[-1].line}{whose} add up to {total.value:.4g}: a row "
                "is missing, or they are shares of the link"
            )


def _longer_than_buffers(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a remark where round-trip times are far longer than the rows' buffers take to empty."""
    having = [row for row in rows if row.has("buffer", "rtt", "link") and row["link"].value > 0]
    least = min((row["rtt"].value for row in having), default=0.0)
    times = {row.line: row["buffer"].value * FRAME_BYTES * 8 / row["link"].value for row in having}
    long = [
        row for row in having if row["rtt"].value - least > FAR_LONGER * times[row.line] + SHORT_S
    ]
    if long and len(long) < len(having):
        row = long[0]
        yield (
            f"{len(long)} of {len(rows)} round-trip times are far longer than their buffers take to empty (line {row.line}: "
            f"{row.shown('rtt')} behind {row.shown('buffer')} packets, which are {times[row.line] * 1e3:.3g} ms of the link), "
            "so another queue is on the path"
        )


def _repeated(rows: Sequence[Row]) -> Iterator[str]:
    """Means of what was measured that are the same in several rows, though what else was measured differs."""
    for name in ("rtt", "goodput", "total", "losses"):
        having = [row for row in rows if row.has(name) and row.has("goodput") | row.has("total")]
        alike: dict[str, list[Row]] = defaultdict(list)
        for row in having:
            text = row.texts.get(name, "")
            # Of very long ones two will do, and the last digits may differ.
            long = significant_digits(text) >= VERY_LONG_DIGITS
            alike[f"{row[name].value:.5e}" if long else text].append(row)
        for key, same in alike.items():
            text = same[0].texts.get(name, "")
            others = {tuple(row.texts.get(n, "") for n in MEASURED if n != name) for row in same}
            enough = (3 if key == text else 2) <= len(same) <= len(having) / 2 + 1
            if enough and len(others) == len(same) and significant_digits(text) >= LONG_DIGITS:
                lines = ", ".join(str(row.lines.get(name, row.line)) for row in same[:10])
                digit = "last" if len({row.texts[name] for row in same}) == 1 else "sixth"
                verb = "are" if name == "losses" else "is"
                yield f"{name} {verb} {text} to the {digit} digit in lines {lines}, while the rest differs: hardly measured"


def _missing_flows(rows: Sequence[Row], wrong: Collection[int]) -> Iterator[str]:
    """Yield numbers of flows of which some seem to be missing; `wrong` has the lines whose index can't be true.

    A flow that never ran is counted in n and adds nothing: an index can then be no more than the
    share of flows that did run. So where every row of some number of flows, whatever the algorithm,
    stays below one ceiling that other rows exceed, that is what its distance from 1 may say.
    """
    by_flows: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row.has("index", "flows") and row.line not in wrong and 0 < row["index"].value <= 1:
            by_flows[int(row["flows"].value)].append(row["index"].value)
    best = max(map(max, by_flows.values()), default=0.0)
    for flows, values in sorted(by_flows.items()):
        if len(values) >= CEILING_ROWS and max(values) < best - CEILING_GAP:
            yield (
                f"all rows with {flows} flows have an index of {max(values):.4g} at most, which others exceed: "
                f"as if {100 * (1 - max(values)):.1f} % of the flows were counted and never ran"
            )
