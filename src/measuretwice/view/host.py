"""A node's counters and settings made readable: nstat, link, softnet, sysctl, ethtool, addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from measuretwice.parse import ParseError, parse_nstat
from measuretwice.parse.fields import UNKNOWN, Meanings
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
from measuretwice.view.blocks import Block, Cell, Row, difference
from measuretwice.view.pairs import Pair
from measuretwice.view.source import RawFile

_LINK_FIELDS = ("mtu", "qdisc", "operstate", "txqlen")


def _titled(node: str, what: str) -> str:
    return f"{node}: {what}" if node else what


def nstat_blocks(pair: Pair) -> list[Block]:
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


def softnet_blocks(pair: Pair) -> list[Block]:
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


def link_blocks(pair: Pair) -> list[Block]:
    """Return each interface but lo: its MTU and qdisc, and what it counted."""
    before = {name: dict(fields) for name, fields in _links(pair.before)}
    after = {name: dict(fields) for name, fields in _links(pair.after)}
    columns = ("before", "after", "difference") if pair.both else ("value",)
    sides = (before, after) if pair.both else (before or after,)
    blocks = []
    for name in dict.fromkeys([*before, *after]):
        rows = []
        for field, meaning in LINK.items():
            values = [each.get(name, {}).get(field) for each in sides]
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
        found = [
            f"{info.get('local')}/{info.get('prefixlen')}"
            for info in (infos if isinstance(infos, list) else [])
            if isinstance(info, dict)
        ]
        rows.append(
            Row(
                str(link.get("ifname", "?")),
                (", ".join(found) or "none", str(link.get("address", ""))),
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
