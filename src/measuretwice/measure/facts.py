"""What files say of a run besides rates and windows: who received, what was averaged, how red is set.

Values are numbers by name, as all measured values are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from measuretwice.lab import Lab
from measuretwice.parse import ParseError, Qdisc, parse_tc_qdiscs

Values = dict[str, float | int | None]


def key_of(node: str) -> str:
    """A node's name as part of a key."""
    return node.replace("-", "_")


def received(lab: Lab, addresses: Sequence[str | None]) -> Values:
    """How many flows each node received, by the addresses that iperf3 itself names."""
    owners = {
        end.address.split("/")[0]: end.node
        for link in lab.file.topology.links
        for end in (link.a, link.b)
    }
    nodes = [owners[address] for address in addresses if address in owners]
    return {f"{key_of(node)}_received_flows": nodes.count(node) for node in sorted(set(nodes))}


def rate_rows(raw: Path, name: str) -> Values:
    """The rows that averages were taken from, and how many of them span others.

    A line each in `raw`/<node>/`name`: start, end (seconds) and bit/s.
    """
    rows = spanning = 0
    for path in sorted(raw.glob(f"*/{name}")):
        spans: list[tuple[float, float]] = []
        for number, line in enumerate(text_of(path).splitlines(), start=1):
            try:
                start_s, end_s, _ = map(float, line.split())
            except ValueError:
                raise ParseError(
                    name_of(path), f"line {number}", "expected start, end and bit/s"
                ) from None
            spans.append((start_s, end_s))
        rows += len(spans)
        spanning += sum(sum(start <= a and b <= end for a, b in spans) > 2 for start, end in spans)
    return {"rate_rows": rows, "rate_rows_spanning": spanning}


def red_setup(path: Path) -> Values:
    """What red was told, as `tc -d` prints it: its limits, and the logarithms that follow from burst
    and bandwidth (tc-red(8)); nothing for other disciplines."""
    for qdisc in parse_tc_qdiscs(text_of(path), name_of(path)):
        if qdisc.kind == "red":
            cell, ewma = qdisc.options.get("Scell_log"), qdisc.options.get("ewma")
            return {
                "red_limit_bytes": qdisc.limit_bytes,
                "red_max_bytes": qdisc.max_bytes,
                "red_cell_log": None if cell is None else int(cell),
                "red_ewma_log": None if ewma is None else int(ewma),
            }
    return {}


def marks(qdisc: Qdisc) -> int:
    """Packets that were marked instead of dropped: red, codel and its kin, and cake by its tins."""
    tins = qdisc.stats.get("tins") or []
    kinds = [qdisc.stats, *tins] if isinstance(tins, list) else [qdisc.stats]
    seen = sum(int(one.get("ecn_mark") or 0) for one in kinds if isinstance(one, Mapping))
    return (qdisc.marked_packets or 0) + seen


def text_of(path: Path) -> str:
    """A raw file's text; what is no UTF-8 shows as such."""
    return path.read_text(encoding="utf-8", errors="replace")


def name_of(path: Path) -> str:
    """A raw file's name as errors say it: its node's folder and its own."""
    return f"{path.parent.name}/{path.name}"
