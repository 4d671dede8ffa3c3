"""What a node says of itself made readable: nstat, link, softnet, sysctl, ethtool, addresses, and its queueing disciplines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from measuretwice.checks.queue_discipline import SHAPERS
from measuretwice.parse import ParseError, Qdisc, parse_nstat, parse_qdisc_samples, parse_tc_qdiscs
from measuretwice.parse.fields import UNKNOWN, Meaning, Meanings
from measuretwice.parse.host import (
    ETHTOOL,
    LINK,
    NSTAT,
    SOFTNET,
    SYSCTL,
    parse_assignments,
    parse_ethtool,
    parse_ip,
    parse_softnet,
)
from measuretwice.parse.tc_fields import COUNTERS, QDISC, QDISC_OPTIONS
from measuretwice.view import Block, Cell, Row, difference
from measuretwice.view.source import RawFile, SnapshotPair, Source

_LINK_FIELDS = ("mtu", "qdisc", "operstate", "txqlen")


def _titled(node: str, what: str) -> str:
    return f"{node}: {what}" if node else what


def nstat_blocks(pair: SnapshotPair) -> list[Block]:
    """Return the counters that grew between two snapshots; of one alone, those that aren't 0."""
    before, after = (_of(file, parse_nstat) for file in (pair.before, pair.after))
    names = dict.fromkeys([*after, *before])
    if not pair.both:
        rows = [
            Row(name, (value,), NSTAT.get(name, UNKNOWN))
            for name, value in {**before, **after}.items()
            if value
        ]
        return [
            Block(_titled(pair.node, "counters that aren't 0"), pair.names, ("value",), tuple(rows))
        ]
    rows = [
        Row(name, (before.get(name, 0), after.get(name, 0), grown), NSTAT.get(name, UNKNOWN))
        for name in names
        if (grown := after.get(name, 0) - before.get(name, 0))
    ]
    rows.sort(key=lambda row: (not row.meaning.text, row.name))
    note = f"{len(names) - len(rows)} counters that did not change are left out"
    columns = ("before", "after", "difference")
    return [
        Block(_titled(pair.node, "counters that grew"), pair.names, columns, tuple(rows), (note,))
    ]


def _of(file: RawFile | None, parse: Callable[[str, str], dict[str, int]]) -> dict[str, int]:
    return parse(file.read(), file.name) if file else {}


def softnet_blocks(pair: SnapshotPair) -> list[Block]:
    """Return the sums over all CPUs of /proc/net/softnet_stat's first three columns."""
    sides = [_of(file, parse_softnet) for file in (pair.before, pair.after) if file]
    rows = []
    for name, meaning in SOFTNET.items():
        values: list[Cell] = [counts[name] for counts in sides]
        if pair.both:
            values.append(difference(*values))
        rows.append(Row(name, tuple(values), meaning))
    columns = ("before", "after", "difference") if pair.both else ("value",)
    note = "hexadecimal in the file; the sum over all CPUs here"
    return [
        Block(
            _titled(pair.node, "/proc/net/softnet_stat"), pair.names, columns, tuple(rows), (note,)
        )
    ]


def link_blocks(pair: SnapshotPair) -> list[Block]:
    """Return each interface but lo: its MTU and qdisc, and what it counted."""
    before = {name: dict(fields) for name, fields in _links(pair.before)}
    after = {name: dict(fields) for name, fields in _links(pair.after)}
    columns = ("before", "after", "difference") if pair.both else ("value",)
    sides = (before, after) if pair.both else (before or after,)
    blocks = []
    for name in dict.fromkeys([*before, *after]):
        rows = []
        for field, meaning in LINK.items():
            values = [links.get(name, {}).get(field) for links in sides]
            if pair.both:
                values.append(difference(*values) if "." in field else None)
            if any(value is not None for value in values):
                rows.append(Row(field, tuple(values), meaning))
        blocks.append(Block(_titled(pair.node, name), pair.names, columns, tuple(rows)))
    return blocks


def _links(file: RawFile | None) -> Iterator[tuple[str, Iterator[tuple[str, Cell]]]]:
    for link in parse_ip(file.read(), file.name) if file else ():
        name = str(link.get("ifname", "?"))
        if name != "lo":
            yield name, _link_fields(link)


def _link_fields(link: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    for name in _LINK_FIELDS:
        if isinstance(value := link.get(name), int | str):
            yield name, value
    counters = link.get("stats64")
    for way, counts in counters.items() if isinstance(counters, Mapping) else ():
        for name, count in counts.items() if isinstance(counts, Mapping) else ():
            if isinstance(count, int):
                yield f"{way}.{name}", count


def address_blocks(file: RawFile) -> list[Block]:
    """Return each interface's addresses."""
    rows = []
    for link in parse_ip(file.read(), file.name):
        infos = link.get("addr_info")
        addresses = [
            f"{info.get('local')}/{info.get('prefixlen')}"
            for info in (infos if isinstance(infos, list) else [])
            if isinstance(info, dict)
        ]
        rows.append(
            Row(
                str(link.get("ifname", "?")),
                (", ".join(addresses) or "none", str(link.get("address", ""))),
            )
        )
    columns = ("addresses", "link address")
    return [Block(_titled(file.node, "addresses"), file.name, columns, tuple(rows))]


def _settings(file: RawFile, meanings: Meanings, what: str) -> list[Block]:
    """Lines of a name, = and a value; those whose meaning is known come first."""
    rows = [
        Row(name, (value, number), meanings.get(name, UNKNOWN))
        for name, value, number, _ in parse_assignments(file.read())
    ]
    if not rows:
        raise ParseError(file.name, "file", "no line is NAME=VALUE")
    rows.sort(key=lambda row: not row.meaning.text)
    return [Block(_titled(file.node, what), file.name, ("value", "line"), tuple(rows))]


def sysctl_blocks(file: RawFile) -> list[Block]:
    """Return sysctls, those with a known meaning first."""
    return _settings(file, SYSCTL, "sysctls")


def speed_blocks(file: RawFile) -> list[Block]:
    """Return the speed that each interface takes for its cable's, in Mbit/s."""
    return _settings(file, {}, "speed of each interface, Mbit/s (/sys/class/net/*/speed)")


def offload_blocks(file: RawFile) -> list[Block]:
    """Return each interface's features as ethtool -k prints them, a block each."""
    blocks: dict[str, list[Row]] = {}
    for name, value, number, interface in parse_ethtool(file.read()):
        row = Row(name, (value, number), ETHTOOL.get(name, UNKNOWN))
        blocks.setdefault(interface or "?", []).append(row)
    if not blocks:
        raise ParseError(file.name, "file", "no feature in it; expected what ethtool -k prints")
    return [
        Block(
            _titled(file.node, f"features of {name}"),
            file.name,
            ("value", "line"),
            tuple(sorted(rows, key=lambda row: not row.meaning.text)),
            ("[fixed]: can't be changed on this interface",),
        )
        for name, rows in blocks.items()
    ]


# What a mean over samples says something of: the others only grow.
LENGTHS = ("backlog", "qlen")
# Behind all qdiscs that have something to count.
_IDLE = 3
_PER_BYTE = 8


def qdisc_blocks(pair: SnapshotPair, source: Source) -> list[Block]:
    """Return a block for each qdisc of a node; those that only pass packets on, in one line.

    First come those of a node whose queue was sampled, its queue before what shapes; of other nodes what drops or holds
    packets; and last a run's text of how all was set up, whose counters have counted nothing yet.
    """
    samples = {file.node for file in source.files if file.base == "queue.txt"}
    is_set_up = source.sort == "run" and pair.before is None and pair.names.endswith(".txt")
    first_rank = (int(is_set_up), int(pair.node not in samples))
    before = _by_place(pair.before)
    after = _by_place(pair.after)
    blocks, idle = [], []
    for key in dict.fromkeys([*before, *after]):
        first, last = before.get(key), after.get(key)
        newest = last or first
        assert newest is not None
        if newest[1].kind == "noqueue" and not any(
            _counts(snapshot[1]) for snapshot in (first, last) if snapshot
        ):
            idle.append(newest[1].dev or "?")
            continue
        block = _block(pair, first, last)
        title = f"{block.title}, as set up before the run" if is_set_up else block.title
        shapes = int(newest[1].kind in SHAPERS)
        did = _did(first and first[1], newest[1])
        rank = (*first_rank, *((shapes, did) if pair.node in samples else (did, shapes)))
        blocks.append(replace(block, title=title, rank=rank))
    if idle:
        note = f"noqueue on {', '.join(idle)}: no queue there, and all its counters are 0"
        blocks.append(
            Block(
                f"{pair.node}: other interfaces".removeprefix(": "),
                pair.names,
                (),
                (),
                (note,),
                (*first_rank, _IDLE, 0),
            )
        )
    return blocks


def _did(before: Qdisc | None, newest: Qdisc) -> int:
    """0 for what dropped packets since `before`, 1 for what held some, 2 for what did neither."""
    for place, name in enumerate(("drops", "overlimits")):
        then, now = (getattr(qdisc, COUNTERS[name], None) or 0 for qdisc in (before, newest))
        if now > then or (before is newest and now):
            return place
    return 2


def _by_place(file: RawFile | None) -> dict[tuple[str, str, str], tuple[int, Qdisc]]:
    """The qdiscs of a file by device, parent and kind: what stays when a handle changes."""
    if file is None:
        return {}
    text = file.read()
    start = max(0, text.find("[") if '"kind"' in text else text.find("qdisc "))
    return {
        (qdisc.dev or "", qdisc.parent or "root", qdisc.kind): (number, qdisc)
        for number, qdisc in enumerate(parse_tc_qdiscs(text[start:], file.name))
    }


def _counts(qdisc: Qdisc) -> bool:
    return any(getattr(qdisc, field) for field in COUNTERS.values())


def _block(
    pair: SnapshotPair, first: tuple[int, Qdisc] | None, last: tuple[int, Qdisc] | None
) -> Block:
    both = [
        (file, snapshot)
        for file, snapshot in ((pair.before, first), (pair.after, last))
        if snapshot
    ]
    columns = tuple(when for when, snapshot in (("before", first), ("after", last)) if snapshot)
    qdiscs = [snapshot[1] for _, snapshot in both]
    newest = qdiscs[-1]
    if len(both) == 2:
        columns = (*columns, "difference")
    elif not pair.both:
        columns = ("value",)
    notes = []
    if pair.both and len(both) == 1:
        notes.append(f"only in the file taken {columns[0]} the test")
    where = f"parent {newest.parent}" if newest.parent else "root"
    title = f"{newest.kind} {newest.handle} {where}" + (f" on {newest.dev}" if newest.dev else "")
    places = ", ".join(_place(file, snapshot[0]) for file, snapshot in both if file)
    rows = [*_option_rows(qdiscs, len(columns)), *_counter_rows(qdiscs, len(columns))]
    node = f"{pair.node}: " if pair.node else ""
    return Block(f"{node}{title}", places, columns, tuple(rows), tuple(notes))


def _place(file: RawFile, number: int) -> str:
    """A qdisc's place among those of its file: in JSON the path, in text which of them it is."""
    return (
        f"{file.name} $[{number}]"
        if file.base.endswith(".json")
        else f"{file.name}, no. {number + 1}"
    )


def _option_rows(qdiscs: Sequence[Qdisc], width: int) -> Iterator[Row]:
    """Yield the options that were set. A difference of settings is left empty: they are no counters."""
    meanings = QDISC_OPTIONS.get(qdiscs[-1].kind, {})
    flat = [dict(_flat(qdisc.options)) for qdisc in qdiscs]
    for name in dict.fromkeys(name for options in flat for name in options):
        values = tuple(options.get(name) for options in flat)
        meaning_of_option = meanings.get(name) or QDISC.get(name, UNKNOWN)
        meaning = _in_other_units(meaning_of_option, values[-1])
        yield Row(name, (*values, *[None] * (width - len(values))), meaning)


def _counter_rows(qdiscs: Sequence[Qdisc], width: int) -> Iterator[Row]:
    for name, field in COUNTERS.items():
        yield _row(name, [getattr(qdisc, field) for qdisc in qdiscs], width)
    # A count of 0 may be the clue: that red has dropped none by its curve.
    for name, values in _statistics(qdiscs):
        yield _row(name, values, width)


def _statistics(qdiscs: Sequence[Qdisc]) -> Iterator[tuple[str, list[Cell]]]:
    """Yield what a kind counts besides, as red's early and pdrop, in each look at it."""
    flat = [dict(_flat(qdisc.stats)) for qdisc in qdiscs]
    for name in dict.fromkeys(name for stats in flat for name in stats):
        yield name, [stats.get(name) for stats in flat]


def _row(name: str, values: Sequence[Cell], width: int) -> Row:
    more = [difference(values[0], values[-1])] if width > len(values) else []
    return Row(name, (*values, *more), QDISC.get(name, UNKNOWN))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Cell]]:
    """Options as tc prints them; one in an object as OBJECT.NAME, a list's as one text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{above}{name}", " ".join(map(str, value))
        else:
            yield f"{above}{name}", value


def _in_other_units(meaning: Meaning, value: Cell) -> Meaning:
    """Beside a number in tc's unit for programs, the same in the unit that people set."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        # tc's text has its units beside its numbers.
        return Meaning("", meaning.text, meaning.source) if isinstance(value, str) else meaning
    factor, unit = {
        "bytes/s": (_PER_BYTE / 1e6, "Mbit/s"),
        "µs": (1e-3, "ms"),
        "s": (1e3, "ms"),
        "0 to 1": (100.0, "%"),
    }.get(meaning.unit, (0.0, ""))
    if not factor:
        return meaning
    return Meaning(meaning.unit, f"{value * factor:.6g} {unit}: {meaning.text}", meaning.source)


def queue_blocks(file: RawFile) -> list[Block]:
    """Return a block for each qdisc of a sampled queue: its length over all samples, its counters."""
    samples = parse_qdisc_samples(file.read(), file.name, allow_truncated_tail=True)
    if not samples:
        raise ParseError(file.name, "file", "there is no whole sample in it")
    by_queue: dict[tuple[str, str], list[Qdisc]] = {}
    for sample in samples:
        for qdisc in sample.qdiscs:
            by_queue.setdefault((qdisc.kind, qdisc.parent or "root"), []).append(qdisc)
    span_s = samples[-1].time_s - samples[0].time_s
    note = (
        f"{len(samples)} samples in {span_s:.1f} s; each follows a line '# t=' with its Unix time"
    )
    node = f"{file.node}: " if file.node else ""
    return [
        Block(
            f"{node}{kind} {qdiscs[0].handle} {parent}, sampled",
            file.name,
            ("first", "smallest", "mean", "largest", "last"),
            tuple(_sampled_rows(qdiscs)),
            (note,),
        )
        for (kind, parent), qdiscs in by_queue.items()
    ]


def _sampled_rows(qdiscs: Sequence[Qdisc]) -> Iterator[Row]:
    meanings = QDISC_OPTIONS.get(qdiscs[0].kind, {})
    for name, value in _flat(qdiscs[0].options):
        meaning = _in_other_units(meanings.get(name, UNKNOWN), value)
        yield Row(name, (value, None, None, None, None), meaning)
    for name, field in COUNTERS.items():
        values = [getattr(qdisc, field) or 0 for qdisc in qdiscs]
        spread: tuple[Cell, ...] = (None, None, None)
        if name in LENGTHS:
            spread = (min(values), round(sum(values) / len(values), 3), max(values))
        yield Row(name, (values[0], *spread, values[-1]), QDISC[name])
    for name, counts in _statistics(qdiscs):
        yield Row(name, (counts[0], None, None, None, counts[-1]), QDISC.get(name, UNKNOWN))
